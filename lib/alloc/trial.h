/*
 * Caches of trials. A trial is what placing a graph gave in a state of the cluster; the
 * state is which servers are taken; a placement depends on nothing else but the way of
 * placing. A few thousand trials are remembered whole, and tens of thousands as what
 * decisions need: an outline says which servers a job would take, and how long its steps
 * would be.
 * The sizes of the caches are bounded: a new trial overwrites the one at its place.
 */
#ifndef RAMPIPE_ALLOC_TRIAL_H
#define RAMPIPE_ALLOC_TRIAL_H

#include "rampipe/alloc.h"

struct trial {
    uint32_t key; /* of the graph and the way of placing, + 1; 0: the entry is unused */
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

/* A trial in short. */
struct outline {
    uint32_t key;           /* as in struct trial */
    uint32_t outcome : 4;   /* an enum place_outcome */
    uint32_t nservers : 28; /* if it was placed */
    uint64_t marks;         /* of these servers, XORed */
    double step;            /* time of a training step, seconds */
    /* trials->nwords words of the state, then as many of the servers that the job would
     * take: bit s % 64 of word s / 64. */
    uint64_t word[];
};

struct trials {
    struct trial *trial;
    struct trial_state *known;
    size_t ntrials; /* entries of each, a power of two */
    /* The entries that have arrays. Most jobs of a short stream leave most entries
     * untouched, and what is not touched costs no memory. */
    uint32_t *filled, *filled_states;
    size_t nfilled, nfilled_states;
    /* A table of entries of `outline_bytes`. It begins small, and grows as entries are
     * filled: `noutlines`, a power of two, becomes `most_outlines` at most. */
    char *outlines;
    size_t noutlines, most_outlines, outlines_filled, outline_bytes;
    size_t nwords;    /* words of a state */
    uint64_t *state;  /* the state of the cluster now */
    uint64_t number;  /* of that state; 0: it must be looked up */
    uint64_t numbers; /* given so far */
    uint64_t *mark;   /* per server: a random number */
    uint64_t hash;    /* of the state: the marks of the taken servers, XORed */
};

/* `futures`: the same states come again and again. */
bool trials_init(struct trials *trials, uint32_t nservers, bool futures,
                 struct rec_error *err) REC_MUST_CHECK;
void trials_free(struct trials *trials);
/* Changes the state: a free server becomes taken, a taken one free. */
void trials_flip(struct trials *trials, uint32_t server);
/* The same of a set of servers, trials->nwords words, whose marks are known. */
void trials_flip_all(struct trials *trials, const uint64_t *servers, uint64_t marks);
/* The trial of this key in this state, or NULL. */
const struct trial *trials_find(struct trials *trials, uint32_t key);
/* The entry of this key's outline in this state; if it does not hold that, *known is
 * false, and the caller fills it but for the state. It is there until the next call. */
struct outline *trials_outline(struct trials *trials, uint32_t key, bool *known);
/* Remembers a trial in the present state; its servers are copied. */
bool trials_keep(struct trials *trials, const struct trial *trial,
                 struct rec_error *err) REC_MUST_CHECK;

#endif
