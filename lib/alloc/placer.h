/*
 * What all heuristics place with (placer.c, vacancy.c, tasks.c), for heuristic.c and
 * price.c. Shapes are those of blocks: communication groups, racks, servers a rack; where
 * [2] is 0, the shape is a diagonal of [0] servers.
 */
#ifndef RAMPIPE_ALLOC_PLACER_H
#define RAMPIPE_ALLOC_PLACER_H

#include "rampipe/alloc.h"
#include "rampipe/net_ramp.h"

/* A search for free blocks of a shape may skip the racks before this one: no free block
 * of the shape starts there. It holds for blocks that may lie anywhere in the cluster. */
struct alloc_bound {
    uint32_t shape[3];
    uint32_t rack; /* c * R + r */
};

enum { ALLOC_BOUNDS = 64 }; /* shapes that a bound is kept for, by hash */

struct alloc_vacancy {
    uint32_t rack;             /* servers of a rack */
    uint32_t words;            /* words of 64 bits that a rack has in `free` */
    uint32_t racks;            /* racks of a communication group */
    uint32_t n;                /* free servers */
    uint64_t *free;            /* rack after rack, a bit for each server: it is free */
    struct alloc_bound *bound; /* by alloc_shape_hash(); NULL: none are kept */
};

/* How far the current job has filled its servers: no free block of this shape that starts
 * before `at` has room for `memory` more bytes on each server. */
struct alloc_fill {
    uint64_t job; /* it holds only while placer->jobs is this number */
    uint32_t shape[3], at[3];
    double memory;
    bool full; /* a block before `at` was free, but lacked memory */
};

/* The bound of a shape, which the caller may raise to what a search has found. It is
 * lowered when a server comes free. NULL: no bounds are kept. */
uint32_t *alloc_bound(const struct alloc_vacancy *vacancy, const uint32_t shape[3]);
static inline uint32_t
alloc_shape_hash(const uint32_t shape[3])
{
    return ((shape[0] * 37 + shape[1]) * 37 + shape[2]) % ALLOC_BOUNDS;
}

struct alloc_placer {
    struct alloc_placer_options options;
    uint32_t nservers;

    /* What a heuristic may set before it places a job; it starts as the whole cluster: */
    uint32_t origin[3], limit[3]; /* the box in which the job may lie, and its size */
    uint32_t within[3]; /* blocks have a shape that is legal in such a cluster */
    /* The rules of the notebook: a unit may go to the servers of a parent whose number
     * of parts divides its own, and shapes are tried in the notebook's order. If false,
     * those of the simulator: the parent must have as many parts. */
    bool notebook;

    /* The job that is being placed: */
    const struct alloc_vacancy *vacancy;
    uint64_t jobs; /* how often placing has begun: what was known of the fill is void */
    struct alloc_fill fill[ALLOC_BOUNDS]; /* by alloc_shape_hash() */
    bool saw_block; /* for the current unit: a block was free, but lacked memory */
    double most; /* of such blocks: the most that was left on a fullest server, bytes */
    uint32_t failed; /* the current unit, and in the end the one that failed */
    double *used;    /* per server: bytes of this job; 0 if it is not held */
    uint32_t *held, nheld, nused; /* as in struct alloc_placement */
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
alloc_shape(const struct alloc_placer *placer)
{
    return net_ramp_of(placer->options.net)->shape;
}

/*
 * Places all units of a job, from nothing: each on the servers of a parent if the rules
 * allow it and there is memory, else in the first free block of a legal shape inside the
 * box.
 */
enum alloc_outcome alloc_place_units(struct alloc_placer *placer,
                                     const struct alloc_plan *plan);
/*
 * True if memory cannot decide where a unit goes: no server can be asked for more than it
 * has, and the heuristic takes the first free block of the cluster. Then all units of k
 * parts go to the same block, whether as the first free one for k parts or as that of a
 * parent. So a placement is known once there is a block for each number of parts.
 */
bool alloc_is_light(const struct alloc_placer *placer, const struct alloc_plan *plan);
/* Places a light plan: only the first unit of each number of parts. placement->server is
 * not valid for other units. False: out of memory. */
bool alloc_place_kinds(struct alloc_placer *placer, const struct alloc_plan *plan,
                       const struct alloc_vacancy *vacancy,
                       struct alloc_placement *placement,
                       struct rec_error *err) REC_MUST_CHECK;
/* Places tasks; p->order is filled. False: out of memory. */
bool alloc_place_tasks(struct alloc_placer *placer, const struct alloc_plan *plan,
                       enum alloc_outcome *outcome, struct rec_error *err) REC_MUST_CHECK;
/* The server at an offset from the origin of the box, which wraps around the cluster. */
uint32_t alloc_server_at(const struct alloc_placer *placer, uint32_t c, uint32_t r,
                         uint32_t s);
/* Adds a server to those that the job holds, if it is not there yet. */
void alloc_hold(struct alloc_placer *placer, uint32_t server);

#endif
