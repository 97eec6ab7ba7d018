/*
 * Lower bounds of the servers and of the time that a graph needs, whichever free servers
 * it is placed on. The proof is in floor.c, and for users in ramp-alloc-bound(1).
 */
#ifndef RAMPIPE_ALLOC_FLOOR_H
#define RAMPIPE_ALLOC_FLOOR_H

#include "rampipe/alloc.h"

struct floor {
    uint32_t servers; /* lower bound of the servers that the job holds */
    double step;      /* lower bound of the time of a step, seconds */
};

/*
 * The floor of a plan on a cluster of which `servers` are in service. It holds for every
 * placement that place_units() makes while placer->notebook is false, whichever
 * servers are free and in whichever order they are tried, and for every placement of
 * tasks.
 */
bool floor_find(const struct net *net, const struct place_plan *plan, uint32_t servers,
                struct floor *floor, struct rec_error *err) REC_MUST_CHECK;

#endif
