/*
 * Placing on RAMP (ramp.c, ramp_search.c, ramp_index.c). Shapes are those of blocks:
 * communication groups, racks, servers a rack; where [2] is 0, the shape is a diagonal of
 * [0] servers.
 */
#ifndef RAMPIPE_PLACE_RAMP_H
#define RAMPIPE_PLACE_RAMP_H

#include "private.h"

/* A search for free blocks of a shape may skip the racks before this one: no free block
 * of the shape starts there. It holds for blocks that may lie anywhere in the cluster. */
struct place_ramp_bound {
    uint32_t shape[3];
    uint32_t rack; /* c * R + r */
};

enum { PLACE_RAMP_BOUNDS = 64 }; /* shapes that a bound is kept for, by hash */

/* All blocks of some number of parts in a box, in the order in which they are tried. */
struct place_ramp_list {
    bool known;
    uint32_t n, parts;
    uint64_t *mask;   /* per block: bit s for each server s */
    uint32_t *server; /* per block: its `parts` servers */
    size_t mask_room, server_room;
    uint64_t free;  /* the servers that were free when it was last searched, */
    uint32_t first; /* and the first free block; n: none is */
    struct place_ramp_list *next; /* of the lists that were begun */
};

/* Where plans whose ops have some numbers of parts fit as compactly as possible: the
 * boxes of the least groups, and then the least racks, in which there are free blocks of
 * each. */
struct place_ramp_fits {
    uint64_t free;     /* the servers that were free when they were searched */
    uint64_t kinds;    /* bit i: some op has i + 1 parts; 0: the entry is unused */
    uint32_t limit[2]; /* of the boxes */
    uint32_t n;        /* boxes; 0: the plans fit nowhere */
    uint8_t rack[64];  /* of each its first rack, c * R + r, in ascending order */
};

enum { PLACE_RAMP_FITS = 64 };

/* Which servers are free, as the search needs it. */
struct place_ramp_index {
    uint32_t rack;  /* servers of a rack */
    uint32_t words; /* words of 64 bits that a rack has in `free` */
    uint32_t racks; /* racks of a communication group */
    uint64_t *free; /* rack after rack, a bit for each server: it is free */
    uint64_t *some; /* group after group, a bit for each rack: it has a free server */
    uint32_t group; /* words of 64 bits that a group has in `some` */
    struct place_ramp_bound *bound; /* by place_ramp_hash(); NULL: none are kept */
    /* On clusters of up to 64 servers: by box and number of parts, see lists_of(). */
    struct place_ramp_list *lists, *begun;
    struct place_ramp_fits fits[PLACE_RAMP_FITS]; /* by a hash of kinds */
};

void *place_ramp_index_new(const struct net *net, struct rec_error *err) REC_MUST_CHECK;
void place_ramp_index_free(void *index);
void place_ramp_index_set(void *index, uint32_t server, bool free);

/* How far the current job has filled its servers: no free block of this shape that starts
 * before `at` has room for `memory` more bytes on each server. */
struct place_ramp_fill {
    uint64_t job; /* it holds only while placer->jobs is this number */
    uint32_t shape[3], at[3];
    double memory;
    bool full; /* a block before `at` was free, but lacked memory */
};

/* The first rack of group c, from rack r on, that has a free server; without one, the
 * number of racks of a group. */
uint32_t place_ramp_next(const struct place_ramp_index *index, uint32_t c, uint32_t r);

/* The bound of a shape, which the caller may raise to what a search has found. It is
 * lowered when a server comes free. NULL: no bounds are kept. */
uint32_t *place_ramp_bound(const struct place_ramp_index *index, const uint32_t shape[3]);
static inline uint32_t
place_ramp_hash(const uint32_t shape[3])
{
    return ((shape[0] * 37 + shape[1]) * 37 + shape[2]) % PLACE_RAMP_BOUNDS;
}

/* What is kept while jobs are placed: the `own` of the placer. */
struct place_ramp {
    const uint32_t *shape; /* C, R, S of the cluster */
    uint32_t meta[3];      /* shape of a meta-block */

    /* What a heuristic may set before it places a job; it starts as the whole cluster: */
    uint32_t origin[3], limit[3]; /* the box in which the job may lie, and its size */
    uint32_t within[3]; /* blocks have a shape that is legal in such a cluster */
    /* The rules of the notebook: a unit may go to the servers of a parent whose number
     * of parts divides its own, and shapes are tried in the notebook's order. If false,
     * those of the simulator: the parent must have as many parts. */
    bool notebook;

    struct place_ramp_index *index;                 /* of the vacancy */
    struct place_ramp_fill fill[PLACE_RAMP_BOUNDS]; /* by place_ramp_hash() */
};

static inline struct place_ramp *
place_ramp_of(const struct place_placer *placer)
{
    return placer->own;
}

/* Puts a unit into the first free block of a legal shape inside the box. */
bool place_ramp_find(struct place_placer *placer, const struct graph_unit *unit,
                     double memory);
/* Where the plan fits. NULL: it is not known, because memory may be a limit, or the
 * cluster has more than 64 servers. It changes the box. */
const struct place_ramp_fits *place_ramp_fits(struct place_placer *placer,
                                              const struct place_plan *plan);
/* The server at an offset from the origin of the box, which wraps around the cluster. */
uint32_t place_ramp_server(const struct place_ramp *ramp, uint32_t c, uint32_t r,
                           uint32_t s);

/* Rows of place_kinds. */
extern const struct place_kind place_ramp_first_fit, place_ramp_block, place_ramp_compact,
    place_ramp_compact_2, place_ramp_compact_3, place_ramp_compact_back;

#endif
