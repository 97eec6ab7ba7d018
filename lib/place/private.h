/*
 * What all heuristics place with (ramp_search.c, vacancy.c, tasks.c), for ramp.c. Shapes are those of blocks: communication groups, racks, servers a rack; where
 * [2] is 0, the shape is a diagonal of [0] servers.
 */
#ifndef RAMPIPE_PLACE_PRIVATE_H
#define RAMPIPE_PLACE_PRIVATE_H

#include "rampipe/net_ramp.h"
#include "rampipe/place.h"

/* A search for free blocks of a shape may skip the racks before this one: no free block
 * of the shape starts there. It holds for blocks that may lie anywhere in the cluster. */
struct place_ramp_bound {
    uint32_t shape[3];
    uint32_t rack; /* c * R + r */
};

enum { PLACE_RAMP_BOUNDS = 64 }; /* shapes that a bound is kept for, by hash */

struct place_vacancy {
    uint32_t rack;  /* servers of a rack */
    uint32_t words; /* words of 64 bits that a rack has in `free` */
    uint32_t racks; /* racks of a communication group */
    uint32_t n;     /* free servers */
    uint64_t *free; /* rack after rack, a bit for each server: it is free */
    struct place_ramp_bound *bound; /* by place_ramp_hash(); NULL: none are kept */
};

/* How far the current job has filled its servers: no free block of this shape that starts
 * before `at` has room for `memory` more bytes on each server. */
struct place_ramp_fill {
    uint64_t job; /* it holds only while placer->jobs is this number */
    uint32_t shape[3], at[3];
    double memory;
    bool full; /* a block before `at` was free, but lacked memory */
};

/* The bound of a shape, which the caller may raise to what a search has found. It is
 * lowered when a server comes free. NULL: no bounds are kept. */
uint32_t *place_ramp_bound(const struct place_vacancy *vacancy, const uint32_t shape[3]);
static inline uint32_t
place_ramp_hash(const uint32_t shape[3])
{
    return ((shape[0] * 37 + shape[1]) * 37 + shape[2]) % PLACE_RAMP_BOUNDS;
}

struct place_placer {
    struct place_options options;
    uint32_t nservers;

    /* What a heuristic may set before it places a job; it starts as the whole cluster: */
    uint32_t origin[3], limit[3]; /* the box in which the job may lie, and its size */
    uint32_t within[3]; /* blocks have a shape that is legal in such a cluster */
    /* The rules of the notebook: a unit may go to the servers of a parent whose number
     * of parts divides its own, and shapes are tried in the notebook's order. If false,
     * those of the simulator: the parent must have as many parts. */
    bool notebook;

    /* The job that is being placed: */
    const struct place_vacancy *vacancy;
    uint64_t jobs; /* how often placing has begun: what was known of the fill is void */
    struct place_ramp_fill fill[PLACE_RAMP_BOUNDS]; /* by place_ramp_hash() */
    bool saw_block; /* for the current unit: a block was free, but lacked memory */
    double most; /* of such blocks: the most that was left on a fullest server, bytes */
    uint32_t failed; /* the current unit, and in the end the one that failed */
    double *used;    /* per server: bytes of this job; 0 if it is not held */
    uint32_t *held, nheld, nused; /* as in struct place_placement */
    bool *is_held;                /* per server */
    uint32_t *server;             /* per index into graph->member */
    size_t server_room;
    uint32_t *order; /* of tasks: steps in order of their starts */
    size_t order_room;
    uint32_t *block; /* scratch: servers of the block that is tried */
    size_t block_room;
};

/* C, R, S of the cluster. */
static inline const uint32_t *
place_ramp_shape(const struct place_placer *placer)
{
    return net_ramp_of(placer->options.net)->shape;
}

/*
 * Places all units of a job, from nothing: each on the servers of a parent if the rules
 * allow it and there is memory, else in the first free block of a legal shape inside the
 * box.
 */
enum place_outcome place_units(struct place_placer *placer,
                               const struct place_plan *plan);
/* Places tasks; p->order is filled. False: out of memory. */
bool place_tasks(struct place_placer *placer, const struct place_plan *plan,
                 enum place_outcome *outcome, struct rec_error *err) REC_MUST_CHECK;
/* The server at an offset from the origin of the box, which wraps around the cluster. */
uint32_t place_ramp_server(const struct place_placer *placer, uint32_t c, uint32_t r,
                           uint32_t s);
/* Adds a server to those that the job holds, if it is not there yet. */
void place_hold(struct place_placer *placer, uint32_t server);

#endif
