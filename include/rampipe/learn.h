/*
 * rampipe/learn.h - training choosers by an evolution strategy on simulated episodes.
 *
 *     learn_cma      the evolution strategy: proposes points, and is told their values
 *     learn_course   episodes of drawn jobs on a cluster, the same for all scorers
 *     learn_train    the training of a scorer: points are weights, judged by episodes
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

/** Begins at start[n], with a standard deviation of `sigma` in each coordinate.
 * `population` is the number of points of a generation; 0: 4 + 3 ln n. NULL: *err. */
struct learn_cma *learn_cma_new(const double *start, uint32_t n, double sigma,
                                uint32_t population, uint32_t seed,
                                struct rec_error *err) REC_MUST_CHECK;
/** `cma` may be NULL. */
void learn_cma_free(struct learn_cma *cma);
/** The number of points of a generation. */
uint32_t learn_cma_population(const struct learn_cma *cma);
/** Proposes a generation: points of n numbers each, one after the other. The cma owns
 * them; they are valid until the next call. */
const double *learn_cma_ask(struct learn_cma *cma);
/** Takes a value for each point that was proposed. Less is better; of equal ones the
 * first counts as better. */
void learn_cma_tell(struct learn_cma *cma, const double *value);
/** The mean of the distribution that points are drawn from, n numbers; the cma's. */
const double *learn_cma_mean(const struct learn_cma *cma);
/** The size of its steps. */
double learn_cma_sigma(const struct learn_cma *cma);

/* ---- episodes ------------------------------------------------------------ */

/** Jobs are drawn from templates as `tracegen jobs --sampling remove-and-repeat` draws
 * them: at random, each template once in every round. */
struct learn_template {
    struct rec_str graphs; /* alternatives, separated by commas */
    double sequential;     /* time of a step on one server, seconds */
};

/** How the jobs of an episode come: distributions (struct rng_dist). */
struct learn_setting {
    const char *interarrival; /* seconds */
    const char *fraction; /* deadline / (sequential time * steps); NULL: no deadlines */
    const char *steps;    /* training steps of a job */
    uint32_t world;       /* in training: where they come */
    uint32_t expert;      /* in training: which expert it is for */
};

/** What counts in an episode: of each job a number, and of the episode their mean. */
enum learn_objective {
    LEARN_BLOCKED, /* 1 if the job is blocked, else 0 */
    LEARN_WORK,    /* the same, weighted by sequential time * steps */
    /* Completion time / (sequential time * steps); 1 if it is blocked. */
    LEARN_COMPLETION,
    /* Servers * time / (sequential time * steps), weighted by the latter; a blocked job
     * costs `price` instead: what it costs to have its work done elsewhere, in the price
     * of a server here. */
    LEARN_COST
};

struct learn_course_options {
    struct alloc_admission_options admission; /* its chooser must be ready to decide */
    uint64_t jobs;                            /* in an episode */
    const struct learn_template *templates;   /* borrowed */
    uint32_t ntemplates;
    enum learn_objective objective;
    double price; /* of LEARN_COST */
    /* Called before each job, from any thread; true ends the episode. May be NULL. */
    bool (*stop)(void);
};

struct learn_course;

/** `store` is borrowed. If jobs have no sequential time by which the objective divides:
 * REC_DATA. NULL: *err. */
struct learn_course *learn_course_new(const struct learn_course_options *options,
                                      struct graph_store *store,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `course` may be NULL. */
void learn_course_free(struct learn_course *course);
/** Runs an episode. *blocking is the share of its jobs that were blocked, or what the
 * objective says. The same seed draws the same jobs for every course. False: *err; its
 * code is REC_OK if the episode
 * was stopped. */
bool learn_course_run(struct learn_course *course, const struct learn_setting *setting,
                      uint32_t seed, double *blocking,
                      struct rec_error *err) REC_MUST_CHECK;
/** The regime after all jobs of the last episode had arrived. */
void learn_course_regime(const struct learn_course *course, double value[ALLOC_REGIME]);

/* ---- training ------------------------------------------------------------ */

struct learn_progress {
    uint64_t generation; /* how many have ended */
    double seconds;      /* processor time */
    double value;        /* of a generation's best point: the mean over active experts */
    double sigma;        /* size of the steps: the mean over active experts */
    /* How much of the training is done: the share of the seconds or of the generations
     * that were asked for, whichever is larger. NAN: all generations have ended, and the
     * candidates are compared. */
    double share;
};

/** A cluster, and jobs that come there. */
struct learn_world {
    struct learn_course_options course; /* its chooser is set by the training */
    struct graph_store *store;          /* borrowed */
};

struct learn_options {
    const struct learn_world *worlds; /* borrowed; at least one */
    uint32_t nworlds;
    const struct learn_setting *settings; /* borrowed */
    uint32_t nsettings;
    uint32_t nexperts; /* settings of the same expert have the same weights */
    bool by_shape;     /* all settings of an expert are on the same cluster */
    /* UINT64_MAX: only `seconds` limits them; 0: each expert becomes the candidate that
     * it would start from */
    uint64_t generations;
    double seconds; /* processor time; INFINITY: only `generations` limits it */
    double sigma;   /* size of the first steps */
    uint32_t seed, threads;
    uint32_t
        final; /* episodes that compare the finalists; 0: candidates are not compared */
    /* Called after each episode that the calling thread has run. May be NULL. */
    void (*tell)(void *context, const struct learn_progress *progress);
    void *context;
};

/**
 * Trains a scorer, all its experts at the same time: each has a strategy of its own,
 * whose points are its weights in units of 1 / the spread of each feature (struct
 * alloc_feature). In all episodes the other experts decide, too, where their centers are
 * nearest. The center of an expert is the mean regime of an episode of each setting.
 *
 * Value of a point: for each setting of its expert, the blocking rate in one episode (the
 * same for all points of a generation), divided by sqrt(0.001 + the mean blocking rate of
 * the generation's points in that setting); of these the mean. The divisor keeps heavy
 * loads, under which most jobs are blocked, from counting alone, and light loads, too.
 *
 * Start: the candidate with the best value over 4 episodes of each setting. Candidates
 * are the experts of `start` and the first five of the simple rules below. If the
 * experts are as many as those that are trained, each starts from its own unless
 * another candidate is better by more than two standard errors, and gets the `after` of
 * its own, which has no effect in training. If `start` is NULL, the
 * candidates are all simple rules, with `units` hidden units whose weights are 0. Their
 * scores, in units of 2 sigma, for an alternative of n servers are
 *     50 - 50 servers: takes the fewest servers, and refuses no job; of equally many the
 *         first, or as the next two say
 *     50 - 50 servers + 5 block-1 + 5 block-3 + 5 block-9
 *     50 - 50 servers + 3 share-1 + 3 share-2 + 3 share-3 + 3 share-4 + 3 share-8
 *     1/2 + s (1 - full) - work - servers + (block-1 + block-3 + block-9) / 10 for s = 5,
 *         40: takes the least work, unless it is more than a limit that falls as the
 *         cluster fills
 *     0
 *     1 - 20 ln((1 + n) / (1 + d))^2 for d = 1, 2, 4, ...: takes d servers or none, as
 *         the one degree of SiP-ML
 *     block-1 / h(d) - size - 20 ln((1 + n) / (1 + d))^2: moreover takes only short jobs
 *         if no block of d servers would be free for the next job
 *     2 height - work - overhead + 3 block-1 + 3 block-3 - 2 free-1 - 2 free-3 - m for
 *         m = 0, 1/2, 1: packs jobs densely
 * They are made for the cluster of the expert with `by_shape`, else for the first one.
 * If there are several experts, weights of features of the regime are not trained and
 * stay 0, unless `start` has some.
 *
 * After 40, 80, 160, ... generations the experts are compared in each setting; "better"
 * means by more than two standard errors. An expert starts again from the best of the
 * others, if that is better there and its value beats that of the expert's first start.
 * Else, if the expert's own value does not beat that of its first start, it starts again
 * from there with steps of sigma / 10; if it did so before, and its first start is
 * better, it rests.
 *
 * End: candidates are the mean of the strategy's means over the last third of the
 * generations, the means over each sixth but the first, and the points that the expert
 * started from last and first. They are compared over 12 episodes, and the best three
 * over `final` more; there, half of what counts is the mean over the episodes, and half
 * the worst of each 20 of them, because a policy that jams on some seeds is not
 * wanted. If
 * `final` is 0, or the course is stopped (*stopped), the expert
 * becomes the first candidate without a comparison. A generation that was not completed
 * does not count.
 *
 * *generations is how many there were. The same number gives the same
 * scorer whatever `threads` is; if training was stopped, with `final` 0. NULL: *err; its
 * code is REC_OK if training was stopped before the first generation was completed.
 */
struct alloc_scorer *learn_train(const struct learn_options *options,
                                 const struct alloc_scorer *start, uint32_t units,
                                 uint64_t *generations, bool *stopped,
                                 struct rec_error *err) REC_MUST_CHECK;

/** Training draws jobs with fewer seeds than this from options->seed on, if it ends after
 * so many generations. */
uint64_t learn_seeds(const struct learn_options *options, uint64_t generations);

/**
 * Trains what states of a cluster are worth if jobs come as in the settings of an expert,
 * which must be of the same cluster (alloc_value_train()): as many streams of each, or
 * one more. It learns from `jobs` jobs. `start` may be NULL, `units` and `jobs` may be 0,
 * and `margin` NAN (struct alloc_value_options). A value of one setting is for jobs of
 * that size, one of several for jobs of any. Deadlines and blocked jobs count, whatever
 * the objective of the course is. NULL: *err; its code is REC_OK if the course was
 * stopped.
 */
struct alloc_value *learn_value(const struct learn_options *options, uint32_t expert,
                                const struct alloc_value *start, uint32_t units,
                                uint64_t jobs, double margin, uint32_t seed,
                                struct rec_error *err) REC_MUST_CHECK;

/** Who teaches an expert, and on which jobs. */
struct learn_lesson {
    const struct learn_world *world; /* borrowed, as all here */
    const struct learn_setting *setting;
    const struct alloc_choosing *teacher; /* opened for this world */
    uint64_t jobs;
    uint32_t seed;
};

/**
 * Expert iteration: an expert of a scorer learns to answer as a teacher does, in states
 * to which its own answers lead (Anthony, Tian and Barber, "Thinking Fast and Slow with
 * Deep Learning and Tree Search", 2017; Ross, Gordon and Bagnell, "A Reduction of
 * Imitation Learning and Structured Prediction to No-Regret Online Learning", 2011).
 * Scores s stand for shares of answers, exp(s) of each alternative and 1 of a refusal.
 * They move towards those that the teacher would give: exp(worth / 0.1), where it tells
 * what answers are worth in jobs (alloc_choosing_judge()), else all to its answer. At
 * first the teacher decides, and from half of the jobs on the expert alone. Steps are
 * those of Adam, one for 128 jobs, and shrink from 1e-2 to 1e-5 in units of 1 / the
 * spread of each feature. Weights of hidden units that are 0 begin at random. False:
 * *err, and the expert is as before; the code is REC_OK if the course was stopped.
 */
bool learn_teach(struct alloc_scorer *scorer, uint32_t expert,
                 const struct learn_lesson *lesson, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
