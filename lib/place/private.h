/*
 * What all ways of placing share (place.c, vacancy.c, tasks.c), for the files of their
 * rows.
 */
#ifndef RAMPIPE_PLACE_PRIVATE_H
#define RAMPIPE_PLACE_PRIVATE_H

#include "rampipe/place.h"

struct place_vacancy {
    const struct place_kind *kind;
    uint32_t n;     /* free servers */
    uint64_t *free; /* bit s % 64 of free[s / 64]: server s is free */
    void *index;    /* of the kind; owned */
};

struct place_placer {
    struct place_options options;
    uint32_t nservers;
    double memory; /* of a server, bytes; may be infinite */
    void *own;     /* of the kind; owned */

    /* The rule by which a unit may go to the servers of a parent. If true, the parent's
     * number of parts divides its own; if false, the parent has as many parts. */
    bool multiples;
    bool light; /* place_light(): only the first unit of each number of parts is placed */

    /* The job that is being placed: */
    const struct place_vacancy *vacancy;
    uint64_t jobs;   /* how often placing has begun */
    bool saw_block;  /* for the current unit: servers were free, but lacked memory */
    double most;     /* of such servers: the most that was left on a fullest one, bytes */
    uint32_t failed; /* the current unit, and in the end the one that failed */
    double *used;    /* per server: bytes of this job; 0 if it is not held */
    uint32_t *held, nheld, nused; /* as in struct place_placement */
    bool *is_held;                /* per server */
    uint32_t *server;             /* per index into graph->member */
    size_t server_room;
    uint32_t *order; /* of tasks: steps in order of their starts */
    size_t order_room;
    uint32_t *block; /* servers for the parts of a unit, see place_take() */
    size_t block_room;
};

/* Rows of place_kinds. */
extern const struct place_kind place_free_block, place_near, place_lowest, place_spread,
    place_random;

/*
 * Places all units of a job, from nothing: each on the servers of a parent if the rule
 * allows it and there is memory, else where the kind finds servers for it.
 */
enum place_outcome place_units(struct place_placer *placer,
                               const struct place_plan *plan);
/* True if a server has room for `bytes` more. The tolerance is for the rounding of sums:
 * n parts of 1/n of its memory must fit. */
static inline bool
place_has_room(const struct place_placer *p, uint32_t server, double bytes)
{
    return p->used[server] + bytes <= p->memory * (1 + 1e-12);
}
/* Puts a unit on the free servers in p->block, if all have room for a part. If not, notes
 * how much its fullest server has left, which explains why the job was blocked. */
bool place_take(struct place_placer *placer, const struct graph_unit *unit,
                double memory);
/* Notes how much is left on the fullest of the k free servers that have most left: of
 * kinds for which any servers would do. `list` is scratch, of all servers. */
void place_note_room(struct place_placer *placer, uint32_t k, uint32_t *list);
/* Places tasks; p->order is filled. False: out of memory. */
bool place_tasks(struct place_placer *placer, const struct place_plan *plan,
                 enum place_outcome *outcome, struct rec_error *err) REC_MUST_CHECK;
/* Adds a server to those that the job holds, if it is not there yet. */
void place_hold(struct place_placer *placer, uint32_t server);

/* place_is_free(), for searches. */
static inline bool
place_bit(const struct place_vacancy *vacancy, uint32_t server)
{
    return vacancy->free[server / 64] >> server % 64 & 1;
}

#endif
