/*
 * A cache of trials. A trial is what placing a graph gave in a state of the cluster; the
 * state is which servers are taken; a placement depends on nothing else. The size of
 * the cache is bounded: a new trial overwrites the one at its place.
 */
#ifndef RAMPIPE_ALLOC_TRIAL_H
#define RAMPIPE_ALLOC_TRIAL_H

#include "rampipe/alloc.h"

struct trial {
    uint32_t graph; /* index in the store + 1; 0: the entry is unused */
    enum place_outcome outcome;
    uint64_t state;  /* its number */
    uint32_t failed; /* as in struct place_placement */
    double left;     /* the same */
    /* If it was placed: */
    struct sim_layout *layout;
    uint32_t place;    /* index of the layout in pricer->laid, */
    uint64_t serial;   /* and its serial there; 0: nothing was placed */
    uint32_t *servers; /* per slot; owned by the entry */
    uint32_t nservers;
    uint32_t room; /* of servers[] in an entry */
    struct sim_cost cost;
};

/* A state that the cluster had. A state has one number for as long as it is here. */
struct trial_state {
    uint64_t number; /* from 1; 0: the entry is unused */
    uint64_t *word;  /* bit s % 64 of word s / 64: server s is taken; owned */
};

struct trials {
    struct trial *trial;
    struct trial_state *known;
    size_t ntrials; /* entries of each, a power of two */
    /* The entries that have arrays. Most jobs of a short stream leave most entries
     * untouched, and what is not touched costs no memory. */
    uint32_t *filled, *filled_states;
    size_t nfilled, nfilled_states;
    size_t nwords;    /* words of a state */
    uint64_t *state;  /* the state of the cluster now */
    uint64_t number;  /* of that state; 0: it must be looked up */
    uint64_t numbers; /* given so far */
    uint64_t *mark;   /* per server: a random number */
    uint64_t hash;    /* of the state: the marks of the taken servers, XORed */
};

bool trials_init(struct trials *trials, uint32_t nservers,
                 struct rec_error *err) REC_MUST_CHECK;
void trials_free(struct trials *trials);
/* Changes the state: a free server becomes taken, a taken one free. */
void trials_flip(struct trials *trials, uint32_t server);
/* The trial of this graph in this state, or NULL. */
const struct trial *trials_find(struct trials *trials, uint32_t graph);
/* Remembers a trial in the present state; its servers are copied. */
bool trials_keep(struct trials *trials, const struct trial *trial,
                 struct rec_error *err) REC_MUST_CHECK;

#endif
