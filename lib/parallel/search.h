/* What the files of the search share. */
#ifndef RAMPIPE_PARALLEL_SEARCH_WALK_H
#define RAMPIPE_PARALLEL_SEARCH_WALK_H

#include "closed.h"

struct values {
    uint32_t *value; /* owned */
    size_t n, room;
};

/* The best mixes so far by the closed form: a heap whose first entry is the worst. */
struct pool {
    struct pool_entry {
        struct parallel_mix mix;
        struct parallel_closed closed;
    } * entry; /* owned */
    size_t n, room, limit;
    bool full;   /* some had no room */
    double left; /* what these take at least */
};
bool pool_add(struct pool *pool, const struct parallel_mix *mix,
              const struct parallel_closed *closed, struct rec_error *err) REC_MUST_CHECK;
/* Has it no room for a mix that takes at least so many seconds? */
bool pool_refuses(struct pool *pool, double seconds);

struct walk {
    const struct parallel_search *search;
    struct parallel_found *found;
    struct parallel_machine
        machine; /* that of the search, which keeps what it looks up */
    struct closed closed;
    struct parallel_mix mix; /* what has been chosen so far */
    struct values tensor, context, stages, experts, micro;
    struct closed_layers *layers; /* owned: [experts][micro][recompute][sharded] */
    double *numbers;              /* owned: of the layers */
    const struct parallel_schedule *alternating, *interleaved;
    struct pool pool;
    int depth; /* how far the mix came whose refusal is `reason` */
};

/* Simulates the best of the pool: found->best. */
bool search_simulate(struct walk *w, struct rec_error *err) REC_MUST_CHECK;

#endif
