/*
 * What a graph needs at least of servers and of time, on whichever servers it is placed:
 * the proof is in floor.c, and for users in ramp-alloc-bound(1).
 */
#ifndef RAMPIPE_ALLOC_FLOOR_H
#define RAMPIPE_ALLOC_FLOOR_H

#include "rampipe/alloc.h"

struct floor {
    uint32_t servers; /* that the job holds, at least */
    double step;      /* seconds that a step takes, at least */
};

/*
 * The floor of a plan that alloc_place_units() places, in any order of free servers, on
 * at most `servers` of them; for heuristics that leave placer->notebook false, and for
 * tasks.
 */
bool floor_find(const struct net_cluster *cluster, const struct alloc_plan *plan,
                uint32_t servers, struct floor *floor,
                struct rec_error *err) REC_MUST_CHECK;

#endif
