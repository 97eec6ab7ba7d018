/* What features are made of, for question.c; their formulas are in alloc.h. */
#ifndef RAMPIPE_ALLOC_FEATURES_H
#define RAMPIPE_ALLOC_FEATURES_H

#include "blocks.h"
#include "placer.h"

/* In order of alloc_features[]. */
enum {
    ALLOC_ONE,
    ALLOC_SERVERS,
    ALLOC_COMPLETION,
    ALLOC_WORK,
    ALLOC_OVERHEAD,
    ALLOC_LEFT,
    ALLOC_LEFT2,
    ALLOC_SLACK,
    ALLOC_FRACTION,
    ALLOC_SIZE,
    ALLOC_LOAD,
    ALLOC_LOAD2,
    ALLOC_LOAD_SERVERS,
    ALLOC_LOAD_WORK,
    ALLOC_LOAD_OVERHEAD,
    ALLOC_LOAD_LEFT,
    ALLOC_LOAD_SIZE,
    ALLOC_WIDEST,
    ALLOC_NARROWEST,
    ALLOC_BLOCK,
    ALLOC_LOAD_BLOCK,
    ALLOC_SHARE,
    ALLOC_BLOCK_LATER = ALLOC_SHARE + 5,
    ALLOC_FREE_LATER = ALLOC_BLOCK_LATER + 3,
    ALLOC_ENDING = ALLOC_FREE_LATER + 3,
    ALLOC_REMAINING,
    ALLOC_OUTLAST,
    ALLOC_FULL,
    ALLOC_HEIGHT,
    ALLOC_HEIGHT2,
    ALLOC_LOAD_HEIGHT,
    ALLOC_LOAD_HEIGHT2,
    ALLOC_NEED,
    ALLOC_NEED_HEIGHT,
    ALLOC_NEED_HEIGHT2,
    ALLOC_SPREAD,
    ALLOC_SPREAD_HEIGHT,
    ALLOC_SPREAD_HEIGHT2,
    ALLOC_VARIATION
};

struct running {
    struct sim_layout *layout; /* NULL: of another admission */
    uint32_t *servers;         /* NULL: the place is empty */
    uint32_t nservers;
    double finish; /* seconds */
};

/* Arrivals so far. */
struct arrivals {
    uint64_t n;
    double first, last;                             /* seconds */
    double work, fraction, fraction2, needed, gap2; /* sums; gap: between two, seconds */
};

struct features {
    uint32_t nservers;
    struct blocks blocks;
    uint32_t share[5];                 /* which degree */
    double height[BLOCKS_DEGREES + 1]; /* h() of none, and of each degree */
    double *h;                         /* of 0 to nservers servers */
    struct arrivals arrivals;
    /* the cluster at a decision: */
    double mean_work, need, spread, variation, interarrival, load, now, remaining;
    uint32_t nfree, ending[3];
    struct horizon horizon[3];
    const struct running *running;
    size_t nrunning;
    double *when; /* per server: seconds until it is free */
    bool *taken;  /* scratch */
};

/* The job of a decision. */
struct features_job {
    double arrival, deadline; /* seconds */
    double work; /* sequential time * steps, seconds; as W, at least W / 1e9 */
    double size; /* ln(work / W) */
    uint32_t widest, narrowest;
};

/* NULL: *err. */
struct features *features_new(const struct net_cluster *cluster,
                              struct rec_error *err) REC_MUST_CHECK;
void features_free(struct features *features);
/* A job of so much work, seconds, has arrived. */
void features_arrive(struct features *features, const struct graph_job *job, double work);
/* There were no arrivals. */
void features_forget(struct features *features);
/* The arrivals were those of another. */
void features_remember(struct features *features, const struct features *from);
/* The regime (alloc_regime) of the arrivals so far. */
void features_regime(struct features *features, double value[ALLOC_REGIME]);
/* Looks at the cluster; what is given is borrowed until the next look. */
void features_look(struct features *features, const struct alloc_vacancy *vacancy,
                   double now, const struct running *running, size_t nrunning);
/* Fills in the rest of a job whose work is set. After features_look(). */
void features_begin(const struct features *features, struct features_job *job);
void features_of(struct features *features, const struct features_job *job,
                 const struct alloc_alternative *alternative,
                 double value[ALLOC_FEATURES]);

#endif
