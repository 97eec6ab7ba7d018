/* Computes the features of alternatives, for question.c; alloc.h has their symbols, and
 * features.c their formulas. */
#ifndef RAMPIPE_ALLOC_FEATURES_H
#define RAMPIPE_ALLOC_FEATURES_H

#include "blocks.h"
#include "rounds.h"
#include "running.h"

/* Indexes in alloc_features[]. SHARE, BLOCK_LATER and FREE_LATER are the first of several
 * features: of 5 sizes of blocks, of 3 horizons, of 3 horizons. */
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

/* What is kept of the jobs that have arrived: sums, so that memory does not grow. */
struct arrivals {
    uint64_t n;
    double first, last; /* arrivals, seconds */
    double work;        /* sum of sequential time * steps, seconds */
    double fraction;    /* sum of deadline / work, each at most 2 */
    double fraction2;   /* sum of their squares */
    double needed;      /* sum of h(the speed-up that a job needs) */
    double gap2;        /* sum of squared times between two arrivals, seconds^2 */
};

struct features {
    uint32_t nservers;
    struct blocks blocks;
    double height[BLOCKS_DEGREES + 1]; /* [0] is 0; [i + 1] is h() of degree i */
    double *h;                         /* h(n) for n = 0 to nservers */
    struct arrivals arrivals;
    struct rounds rounds; /* a kind: the jobs with the same list of graphs */
    /* The regime and the cluster at the last features_look(); symbols as in alloc.h: */
    double mean_work;               /* W, seconds */
    double need, spread, variation; /* the features of these names */
    double interarrival;            /* ia, seconds */
    double load;                    /* l */
    double now;                     /* seconds */
    double remaining;               /* the feature of this name */
    uint32_t nfree;
    uint32_t ending[3]; /* servers that come free within each horizon */
    double within[3];   /* the horizons: 1, 3 and 9 times ia from now, seconds */
    uint64_t busy[4];   /* up to 64 servers: those that are not free now, and then */
    const struct running *running;
    size_t nrunning;
    /* Of more than 64 servers, for each: */
    double *when; /* seconds until it is free; INFINITY: out of service */
    bool *taken;  /* scratch: all false between calls */
};

/* The job that is being decided. */
struct features_job {
    double arrival, deadline;   /* seconds */
    double work;                /* sequential time * steps, seconds; at least W / 1e9 */
    double size;                /* ln(work / W) */
    uint32_t widest, narrowest; /* most and fewest servers of those that can start */
};

/* NULL: *err. */
struct features *features_new(const struct net *net,
                              struct rec_error *err) REC_MUST_CHECK;
void features_free(struct features *features);
/* Counts a job that has arrived; its work is in seconds on one server. */
void features_arrive(struct features *features, const struct graph_job *job, double work);
/* Forgets all arrivals. */
void features_forget(struct features *features);
/* Copies the arrivals of another. */
void features_remember(struct features *features, const struct features *from);
/* The regime (alloc_regime) of the arrivals so far. */
void features_regime(struct features *features, double value[ALLOC_REGIME]);
/* Takes the state of the cluster for all features until the next look: the servers that
 * are not free, and the jobs that run; `running` is borrowed as long. */
void features_look(struct features *features, const uint64_t *taken, double now,
                   const struct running *running, size_t nrunning);
/* Bounds job->work from below, and sets job->size. Call it after features_look(). */
void features_begin(const struct features *features, struct features_job *job);
/* The features of an alternative that can start. */
void features_of(struct features *features, const struct features_job *job,
                 const struct alloc_alternative *alternative,
                 double value[ALLOC_FEATURES]);

#endif
