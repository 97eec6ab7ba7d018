/*
 * What placing a graph on a cluster in a certain state gave, remembered: a placement by a
 * pure heuristic depends on the graph and on which servers are taken, and on nothing
 * else. A cache of bounded size, in which a new trial displaces the one whose place it
 * takes.
 */
#ifndef RAMPIPE_ALLOC_TRIAL_H
#define RAMPIPE_ALLOC_TRIAL_H

#include "rampipe/alloc.h"

struct trial {
    uint32_t graph; /* index + 1; 0: the place is empty */
    enum alloc_outcome outcome;
    uint64_t word;   /* bit per server: taken; of the first 64 */
    uint64_t *state; /* of all, if there are more */
    uint32_t failed; /* the unit that could not be placed */
    double left;     /* no_memory: that it would have had, bytes */
    struct sim_layout *layout;
    uint32_t place;    /* of the layout among those that are known, */
    uint64_t serial;   /* and which of those that had this place; 0: there is none */
    uint32_t *servers; /* of the slots */
    uint32_t nservers;
    uint32_t room; /* for servers, of a place */
    struct sim_cost cost;
};

struct trials {
    struct trial *trial;
    size_t ntrials;         /* a power of two */
    size_t nwords;          /* of a state */
    uint64_t *state, *mark; /* now; a random number per server */
    uint64_t hash;          /* of the state: marks of the taken servers, xored */
};

bool trials_init(struct trials *trials, uint32_t nservers,
                 struct rec_error *err) REC_MUST_CHECK;
void trials_free(struct trials *trials);
/* A server is taken, or free again. */
void trials_flip(struct trials *trials, uint32_t server);
/* The trial of this graph in this state, or NULL. */
const struct trial *trials_find(const struct trials *trials, uint32_t graph);
/* Remembers one; its servers are copied. */
bool trials_keep(struct trials *trials, const struct trial *trial,
                 struct rec_error *err) REC_MUST_CHECK;

#endif
