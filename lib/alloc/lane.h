/* A small cluster in a simulated future: up to 64 servers, whose set is a word, and the
 * jobs that run there, in order of their ends. */
#ifndef RAMPIPE_ALLOC_LANE_H
#define RAMPIPE_ALLOC_LANE_H

#include "rampipe/alloc.h"

/* A running job. */
struct stay {
    double finish; /* seconds */
    uint64_t taken;
    uint64_t mark; /* of these two */
};

/* A future that is being played. */
struct lane {
    uint32_t future, nstays;
    uint32_t accepted;
    uint64_t busy;        /* bit s: server s is not free */
    uint64_t state;       /* XOR of the marks of the stays */
    struct stay stay[64]; /* the one that ends first is the last */
};

/* The same for the same servers and the same end. */
static inline uint64_t
lane_mark(uint64_t taken, double finish)
{
    uint64_t bits;
    memcpy(&bits, &finish, sizeof bits);
    return rec_mix(taken ^ rec_mix(bits));
}

/* A job without servers changes nothing. */
static inline void
lane_occupy(struct lane *lane, uint64_t taken, double finish)
{
    uint32_t i = lane->nstays;
    struct stay stay = {finish, taken, lane_mark(taken, finish)};
    if (!taken)
        return;
    for (; i > 0 && lane->stay[i - 1].finish < finish; i--)
        lane->stay[i] = lane->stay[i - 1];
    lane->stay[i] = stay;
    lane->nstays++;
    lane->busy |= taken;
    lane->state ^= stay.mark;
}

/* Lets the jobs end that do so until `time`. */
static inline void
lane_pass(struct lane *lane, double time)
{
    while (lane->nstays && lane->stay[lane->nstays - 1].finish <= time) {
        const struct stay *stay = &lane->stay[--lane->nstays];
        lane->busy ^= stay->taken;
        lane->state ^= stay->mark;
    }
}

#endif
