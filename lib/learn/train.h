/* Training, and the judging of points in it: train.c and judge.c. */
#ifndef RAMPIPE_LEARN_TRAIN_H
#define RAMPIPE_LEARN_TRAIN_H

#include "rampipe/learn.h"

#include <pthread.h>
#include <stdatomic.h>

struct learn_worker {
    struct learn_trainer *trainer;
    struct learn_course **course; /* per world */
    struct alloc_choosing choosing;
    struct alloc_scorer *scorer; /* choosing.self; its weights change between episodes */
    pthread_t thread;
    struct rec_error err;
    bool failed;
};

/* An expert in training. Points are in the coordinates of its strategy. */
struct learn_search {
    struct learn_cma *cma;
    const double *points; /* what learn_judge() judges: npoints points */
    const double *mean;   /* its weights while points of other searches are judged; NULL:
                              it has none yet, and takes the point that is judged */
    double *value;        /* of each point, from learn_judge(); less is better */
    double sigma;         /* of its first steps */
    bool rests;           /* it has given up: nothing beats what it first started from */
    double *first;        /* the point it first started from; owned */
    double *start;        /* the point it last started from, in the same array */
    double *means;        /* the mean after each generation */
    size_t value_room, means_room;
    struct alloc_expert *expert; /* of the result */
};

struct learn_trainer {
    const struct learn_options *options;
    struct alloc_scorer *result;
    size_t n;      /* coordinates of a point */
    size_t *place; /* per coordinate: its index in alloc_expert.weight */
    double *scale; /* per coordinate: weight / coordinate, 1 / the feature's spread */
    struct learn_search *search;
    uint32_t nsearches;
    struct learn_worker *worker;
    uint32_t nworkers;
    uint64_t generation;
    /* The call of learn_judge() that is running: each search has npoints points, and each
     * point gets nepisodes episodes in each of its settings. */
    uint32_t npoints, nepisodes, seed;
    uint32_t episodes; /* added to the seed, so that finalists get fresh episodes */
    double *blocking;  /* [point][setting][episode]: blocking rate */
    size_t room;
    atomic_uint next; /* index in blocking[] of the next episode to run */
    bool breeding;    /* the points are a generation, which counts as progress */
    bool tail;        /* the worst episodes count as much as the mean */
    struct learn_progress progress;
};

/* Of all threads, from the start of the program. */
double learn_processor_seconds(void);
/* The search whose expert decides in a setting. */
struct learn_search *learn_search_of(const struct learn_trainer *trainer,
                                     uint32_t setting);
/* How many settings a search has. */
uint32_t learn_settings_of(const struct learn_trainer *trainer,
                           const struct learn_search *search);
/* Writes the weights of a point. */
void learn_set_weights(const struct learn_trainer *trainer, const double *point,
                       double *weight);
/* Runs the episodes of all points of all searches, and sets the values. The same
 * generation always has the same seeds, so all points get the same jobs. */
bool learn_judge(struct learn_trainer *trainer, uint32_t npoints, uint32_t nepisodes,
                 struct rec_error *err) REC_MUST_CHECK;
/* The point with the least value; of equal ones the first. */
uint32_t learn_best_point(const struct learn_search *search, uint32_t npoints);
/* True if a point blocks fewer jobs than another in the settings of a search, by more
 * than two standard errors of the mean difference over the episodes: then it is unlikely
 * to be chance. */
bool learn_is_better(const struct learn_trainer *trainer, uint32_t search, uint32_t point,
                     uint32_t other);

#endif
