/*
 * rampipe/learn.h - training choosers: an evolution strategy, and episodes to judge by.
 *
 *     learn_cma      proposes points, and is told what they are worth
 *     learn_course   episodes of drawn jobs on a cluster, the same for all scorers
 */
#ifndef RAMPIPE_LEARN_H
#define RAMPIPE_LEARN_H

#include "rampipe/alloc.h"

REC_BEGIN_DECLS

/* ---- evolution strategy -------------------------------------------------- */

/**
 * A minimiser by the CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial", 2016, with
 * positive weights), whose covariance is kept as its Cholesky factor: the evolution path
 * of the step size uses the mean of the standard normal draws (Krause, Arbones and Igel,
 * "CMA-ES with Optimal Covariance Update and Storage Complexity", 2016). For the first
 * 100 n / sqrt(population) generations it learns variances only, at (n + 2) / 3 times the
 * rates (Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space
 * Complexity", 2008).
 */
struct learn_cma;

/** From start[n], steps of `sigma` in each direction; `population` 0: 4 + 3 ln n. NULL:
 * *err. */
struct learn_cma *learn_cma_new(const double *start, uint32_t n, double sigma,
                                uint32_t population, uint32_t seed,
                                struct rec_error *err) REC_MUST_CHECK;
/** `cma` may be NULL. */
void learn_cma_free(struct learn_cma *cma);
/** How many points are proposed at a time. */
uint32_t learn_cma_population(const struct learn_cma *cma);
/** Proposes points: n numbers each, one after the other; the cma's, until the next
 * call. */
const double *learn_cma_ask(struct learn_cma *cma);
/** What those points were worth; less is better, of equal ones the first. */
void learn_cma_tell(struct learn_cma *cma, const double *value);
/** The mean of what is proposed, n numbers; the cma's. */
const double *learn_cma_mean(const struct learn_cma *cma);
double learn_cma_sigma(const struct learn_cma *cma);

/* ---- episodes ------------------------------------------------------------ */

/** What a course draws its jobs from, as `tracegen jobs --sampling remove-and-repeat`. */
struct learn_template {
    struct rec_str graphs; /* alternatives, separated by commas */
    double sequential;     /* time of a step on one server, seconds */
};

/** Distributions (struct rng_dist) of an episode. */
struct learn_setting {
    const char *interarrival; /* seconds */
    const char *fraction;     /* deadline by sequential time * steps; NULL: no deadline */
};

struct learn_course_options {
    struct alloc_admission_options
        admission;     /* of a chooser that is open, or needs not be */
    const char *steps; /* a distribution */
    uint64_t jobs;     /* an episode */
    const struct learn_template *templates; /* borrowed */
    uint32_t ntemplates;
    /* Asked before each job, by any thread: true ends the episode. NULL: it never
     * does. */
    bool (*stop)(void);
};

struct learn_course;

/** `store` is borrowed. NULL: *err. */
struct learn_course *learn_course_new(const struct learn_course_options *options,
                                      struct graph_store *store,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `course` may be NULL. */
void learn_course_free(struct learn_course *course);
/** The share of the jobs of an episode that are blocked. The same seed draws the same
 * jobs for every course. False: *err; its code is REC_OK if the episode was stopped. */
bool learn_course_run(struct learn_course *course, const struct learn_setting *setting,
                      uint32_t seed, double *blocking,
                      struct rec_error *err) REC_MUST_CHECK;
/** The regime of the last episode's jobs, all of them. */
void learn_course_regime(const struct learn_course *course, double value[ALLOC_REGIME]);

/* ---- training ------------------------------------------------------------ */

struct learn_progress {
    uint64_t generation; /* that ended */
    double seconds;      /* of processor time */
    double value;        /* of the generation's best, the mean over the experts */
    double sigma;        /* the same */
    /* Of the seconds or the generations that were asked for, whichever is more; NAN: all
     * generations have ended, and what they came to is compared. */
    double share;
};

struct learn_options {
    struct learn_course_options course;   /* with a chooser of its own */
    const struct learn_setting *settings; /* borrowed */
    uint32_t nsettings;
    bool experts; /* one for each setting, not one for all */
    uint64_t
        generations; /* at least 1; UINT64_MAX: as many as `seconds` are enough for */
    double seconds;  /* of processor time; INFINITY: as long as it takes */
    double sigma;    /* the first steps */
    uint32_t seed, threads;
    uint32_t final; /* episodes that compare the best candidates in the end; 0: none is */
    /* After each episode of the thread that calls. */
    void (*tell)(void *context, const struct learn_progress *progress);
    void *context;
};

/**
 * Trains a scorer, all its experts at the same time. A point's value is the mean over the
 * expert's settings of its blocking in one episode, the same for all points of a
 * generation, divided by the root of 0.001 and the mean blocking of the generation's
 * points in that setting: so neither the loads under which most is blocked count alone,
 * nor those under which hardly anything is. Steps are taken in units of 1 / the spread of
 * each feature (struct alloc_feature).
 *
 * What an expert starts from is that which is worth most over 4 episodes of each of its
 * settings: of the experts of `start` (its own, if there are as many as settings and no
 * other is better), or if that is NULL, of weights (of `units` hidden units) that are 2
 * sigma times: nothing; for d = 1, 2, 4, ..., r - 20 ln((1 + n) / (1 + d))^2 for n
 * servers, where r is 1, which takes d or none (the one degree of SiP-ML), or block-1 /
 * h(d) - size, which takes only short jobs where no d would be free for the next; and,
 * for m = 0, 1/2, 1, 2 height - work - overhead + 3 block-1 + 3 block-3 - 2 free-1 - 2
 * free-3 - m, which packs. Weights of features of the regime stay 0 if each setting has
 * its expert, unless `start` has some. After 40, 80, 160, ... generations an expert
 * starts anew from the best of the others if that does better in its setting, by more
 * than two standard errors; if it does no better than what it first started from, then
 * from that, with steps of sigma / 10; and if it is then worse, it rests. In the end it
 * becomes what is worth most, over 12 episodes, and of the best three over `final` more,
 * of: the mean of the strategy's means over the last third of the generations, over each
 * sixth but the first, and what it started from, at first and last. In all episodes the
 * other experts decide, too, where they are at home; an expert's center is the regime of
 * an episode of its setting.
 *
 * If `final` is 0 it becomes the first of these without being compared, and so it does if
 * the course is stopped; *stopped says so. A generation that was not whole does not
 * count.
 *
 * *generations: how many there were, at least one; the same number, and `final` 0 if it
 * was stopped, gives the same scorer, whatever `threads`. NULL: *err; its code is REC_OK
 * if it was stopped before the first generation was whole.
 */
struct alloc_scorer *learn_train(const struct learn_options *options,
                                 struct graph_store *store,
                                 const struct alloc_scorer *start, uint32_t units,
                                 uint64_t *generations, bool *stopped,
                                 struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
