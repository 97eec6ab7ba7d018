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
    double left; /* the least seconds of those that had no room; INFINITY: none */
    bool full;   /* some had no room */
};
bool pool_add(struct pool *pool, const struct parallel_mix *mix,
              const struct parallel_closed *closed, struct rec_error *err) REC_MUST_CHECK;

struct walk {
    const struct parallel_search *search;
    struct parallel_found *found;
    struct closed closed;
    struct parallel_mix mix; /* what has been chosen so far */
    struct values tensor, context, stages, experts, micro;
    struct closed_layers *layers; /* owned: [experts][micro][recompute][sharded] */
    size_t nlayers;
    const struct parallel_schedule *alternating, *interleaved;
    struct pool pool;
    int depth; /* how far the mix came whose refusal is `reason` */
};

/* Simulates the best of the pool: found->best. */
bool search_simulate(struct walk *w, struct rec_error *err) REC_MUST_CHECK;

#endif
