/* The means of all heuristics (placer.c), for heuristic.c and price.c. */
#ifndef RAMPIPE_ALLOC_PLACER_H
#define RAMPIPE_ALLOC_PLACER_H

#include "rampipe/alloc.h"

/* Before which rack (counted c * R + r) no free block of a shape starts, if it may lie
 * anywhere in the cluster. */
struct alloc_bound {
    uint32_t shape[3]; /* [2] is 0: a diagonal of [0] servers */
    uint32_t rack;
};

enum { ALLOC_BOUNDS = 64 };

struct alloc_vacancy {
    uint32_t rack;             /* servers of one */
    uint32_t words;            /* of one */
    uint32_t racks;            /* of a communication group */
    uint32_t n;                /* free servers */
    uint64_t *free;            /* bit s of a rack's words: server s is free */
    struct alloc_bound *bound; /* of shapes last looked for; NULL: not kept */
};

/* How far a job has filled its servers: no block of this shape that starts before `at`
 * has room for `memory` bytes a server. */
struct alloc_fill {
    uint64_t job; /* placer->jobs, when it was */
    uint32_t shape[3], at[3];
    double memory;
    bool full; /* a free one has not */
};

/* The rack before which no free block of this shape starts: what is found may be written
 * there. A server that comes free moves it back. NULL: not kept. */
uint32_t *alloc_bound(const struct alloc_vacancy *vacancy, const uint32_t shape[3]);
static inline uint32_t
alloc_shape_hash(const uint32_t shape[3])
{
    return ((shape[0] * 37 + shape[1]) * 37 + shape[2]) % ALLOC_BOUNDS;
}

struct alloc_placer {
    struct alloc_placer_options options;
    uint32_t nservers;
    struct rng *rng; /* NULL if the heuristic is pure */

    /* The job being placed; what a heuristic may set first: */
    uint32_t origin[3], limit[3]; /* where it may lie: the whole cluster */
    uint32_t within[3];           /* its blocks have a legal shape within this one: the
                                     cluster's */
    /* The notebook's order of shapes, and a unit may go to the servers of a parent that
     * has
       a divisor of its parts; else as many, and the simulator's order. */
    bool notebook;
    /* and how it stands: */
    const struct alloc_vacancy *vacancy;
    uint64_t jobs; /* counts what was placed, or tried */
    struct alloc_fill fill[ALLOC_BOUNDS];
    bool saw_block;  /* a free block was there, without memory */
    double most;     /* bytes left on each server of one: the most seen */
    uint32_t failed; /* the unit that is being placed */
    double *used;    /* per server, bytes; 0 when not touched */
    uint32_t *held, nheld, nused;
    bool *is_held;
    uint32_t *server; /* per member of the graph */
    size_t server_room;
    uint32_t *order; /* of tasks: steps in order of their starts */
    size_t order_room;
    uint32_t *block; /* servers of the block that is tried */
    size_t block_room;
};

/*
 * Places all units, after forgetting what stood before: each on the servers of a parent
 * if that is allowed and there is memory, else in the first free block of a legal shape
 * inside origin and limit.
 */
enum alloc_outcome alloc_place_units(struct alloc_placer *placer,
                                     const struct alloc_plan *plan);
/*
 * Memory never binds: no server could be given too much, and the heuristic is first fit.
 * So all units of as many parts go to the first free block for so many, or to their
 * parents', which is the same; a placement is known by these blocks.
 */
bool alloc_is_light(const struct alloc_placer *placer, const struct alloc_plan *plan);
/* Places the first unit of each number of parts of such a plan; what placement->server
 * says of other units is void. False: out of memory. */
bool alloc_place_kinds(struct alloc_placer *placer, const struct alloc_plan *plan,
                       const struct alloc_vacancy *vacancy,
                       struct alloc_placement *placement,
                       struct rec_error *err) REC_MUST_CHECK;
/* Places tasks; p->order is filled. False: out of memory. */
bool alloc_place_tasks(struct alloc_placer *placer, const struct alloc_plan *plan,
                       enum alloc_outcome *outcome, struct rec_error *err) REC_MUST_CHECK;
/* The server at an offset from the block's origin; blocks wrap around the cluster. */
uint32_t alloc_server_at(const struct alloc_placer *placer, uint32_t c, uint32_t r,
                         uint32_t s);
/* The job has this server, whether it uses it or not. */
void alloc_hold(struct alloc_placer *placer, uint32_t server);

#endif
