/*
 * The caches are direct-mapped: a graph and a state have one place in each. The hash of a
 * state is Zobrist's (A. L. Zobrist, "A new hashing method with application for game
 * playing", 1970): one XOR updates it when a server is taken or comes free. Equal hashes
 * never give a wrong result: the whole state is compared. For whole trials that is done
 * with the state that had the hash before, once after it has changed: it then has the
 * same number, or else a new one, and trials are found by the number. An outline has a
 * state of its own, because there are many more of them than numbers.
 */
#include "trial.h"

#include <stdlib.h>

enum {
    BUDGET_BYTES = 32 << 20,  /* of whole trials, roughly */
    OUTLINES_BYTES = 8 << 20, /* of outlines, at most */
    /* The same. A larger table finds few more, and each look into it misses the cache. */
    OUTLINES = 1 << 16,
    FIRST_OUTLINES = 1 << 12, /* before it grows, at most */
    GROWTH = 8,               /* the factor by which it grows */
    /* But futures that are played again and again come back to the same states. */
    FUTURES = 32
};

/* Fixed marks keep a run the same on every machine. */
static uint64_t
mark_of(uint64_t i)
{
    return rec_mix(i * REC_MIX_STEP);
}

bool
trials_init(struct trials *trials, uint32_t nservers, bool futures, struct rec_error *err)
{
    size_t more = futures ? FUTURES : 1;
    size_t each = sizeof(struct trial) + nservers / 4 + 100;
    trials->nwords = (nservers + 63) / 64;
    for (trials->ntrials = 1 << 12; trials->ntrials > 16; trials->ntrials /= 2)
        if (trials->ntrials * each < BUDGET_BYTES)
            break;
    trials->trial = calloc(trials->ntrials, sizeof *trials->trial);
    trials->known = calloc(trials->ntrials, sizeof *trials->known);
    trials->filled = malloc(trials->ntrials * sizeof *trials->filled);
    trials->filled_states = malloc(trials->ntrials * sizeof *trials->filled_states);
    trials->state = calloc(trials->nwords, sizeof *trials->state);
    trials->outline_bytes =
        sizeof(struct outline) + 2 * trials->nwords * sizeof *trials->state;
    for (trials->most_outlines = more * OUTLINES; trials->most_outlines > 16;
         trials->most_outlines /= 2)
        if (trials->most_outlines * trials->outline_bytes <= more * OUTLINES_BYTES)
            break;
    trials->noutlines =
        trials->most_outlines < FIRST_OUTLINES ? trials->most_outlines : FIRST_OUTLINES;
    trials->outlines = calloc(trials->noutlines, trials->outline_bytes);
    trials->mark = calloc(nservers, sizeof *trials->mark);
    if (!trials->trial || !trials->known || !trials->filled || !trials->filled_states ||
        !trials->outlines || !trials->state || !trials->mark)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < nservers; i++)
        trials->mark[i] = mark_of(i);
    return true;
}

void
trials_free(struct trials *trials)
{
    for (size_t i = 0; i < trials->nfilled; i++)
        free(trials->trial[trials->filled[i]].servers);
    for (size_t i = 0; i < trials->nfilled_states; i++)
        free(trials->known[trials->filled_states[i]].word);
    free(trials->trial);
    free(trials->known);
    free(trials->outlines);
    free(trials->filled);
    free(trials->filled_states);
    free(trials->state);
    free(trials->mark);
}

void
trials_flip(struct trials *trials, uint32_t server)
{
    trials->state[server / 64] ^= (uint64_t)1 << server % 64;
    trials->hash ^= trials->mark[server];
    trials->number = 0;
}

void
trials_flip_all(struct trials *trials, const uint64_t *servers, uint64_t marks)
{
    for (size_t w = 0; w < trials->nwords; w++)
        trials->state[w] ^= servers[w];
    trials->hash ^= marks;
    trials->number = 0;
}

static uint64_t
hash_of(const struct trials *trials, uint32_t key)
{
    return trials->hash ^ mark_of((uint64_t)key << 32);
}

static struct trial *
place_of(const struct trials *trials, uint32_t key)
{
    return &trials->trial[hash_of(trials, key) & (trials->ntrials - 1)];
}

/* The number of the state now; 0: out of memory. */
static uint64_t
number_state(struct trials *trials)
{
    size_t i = trials->hash & (trials->ntrials - 1);
    size_t bytes = trials->nwords * sizeof *trials->state;
    struct trial_state *known = &trials->known[i];
    if (trials->number)
        return trials->number;
    if (!known->number || memcmp(known->word, trials->state, bytes) != 0) {
        if (!known->word) {
            if (!(known->word = malloc(bytes)))
                return 0;
            trials->filled_states[trials->nfilled_states++] = (uint32_t)i;
        }
        memcpy(known->word, trials->state, bytes);
        known->number = ++trials->numbers;
    }
    return trials->number = known->number;
}

const struct trial *
trials_find(struct trials *trials, uint32_t key)
{
    const struct trial *trial = place_of(trials, key);
    if (trial->key != key + 1 || trial->state != number_state(trials))
        return NULL;
    return trial;
}

/* The graphs of a job have keys in a row: their entries share lines of the cache. */
static struct outline *
outline_at(const struct trials *trials, uint64_t hash, uint32_t key)
{
    size_t at = (hash + key) & (trials->noutlines - 1);
    return (void *)(trials->outlines + at * trials->outline_bytes);
}

static uint64_t
hash_of_state(const struct trials *trials, const uint64_t *word)
{
    uint64_t hash = 0;
    for (size_t w = 0; w < trials->nwords; w++)
        for (uint64_t left = word[w]; left; left &= left - 1)
            hash ^= trials->mark[w * 64 + (size_t)__builtin_ctzll(left)];
    return hash;
}

/* Makes the table of outlines larger. Without memory for that it stays as it is. */
static void
grow_outlines(struct trials *trials)
{
    size_t bytes = trials->outline_bytes, before = trials->noutlines;
    size_t n =
        before * GROWTH < trials->most_outlines ? before * GROWTH : trials->most_outlines;
    char *old = trials->outlines, *outlines = calloc(n, bytes);
    if (!outlines)
        return;
    trials->outlines = outlines;
    trials->noutlines = n;
    for (size_t i = 0; i < before; i++) {
        const struct outline *o = (void *)(old + i * bytes);
        if (o->key)
            memcpy(outline_at(trials, hash_of_state(trials, o->word), o->key - 1), o,
                   bytes);
    }
    free(old);
}

struct outline *
trials_outline(struct trials *trials, uint32_t key, bool *known)
{
    struct outline *o = outline_at(trials, trials->hash, key);
    *known = o->key == key + 1 && o->word[0] == trials->state[0] &&
             (trials->nwords == 1 ||
              memcmp(o->word, trials->state, trials->nwords * sizeof *o->word) == 0);
    if (!*known) {
        trials->outlines_filled += o->key == 0;
        if (trials->outlines_filled > trials->noutlines / 2 &&
            trials->noutlines < trials->most_outlines) {
            grow_outlines(trials);
            o = outline_at(trials, trials->hash, key);
        }
        o->key = 0; /* until the caller has filled it */
        memcpy(o->word, trials->state, trials->nwords * sizeof *o->word);
    }
    return o;
}

/* Makes room in an entry. Its array stays with it and only grows. */
static bool
prepare(struct trials *trials, struct trial *place, uint32_t nservers)
{
    uint32_t *servers;
    if (nservers <= place->room)
        return true;
    if (!(servers = realloc(place->servers, nservers * sizeof *servers)))
        return false;
    if (!place->servers)
        trials->filled[trials->nfilled++] = (uint32_t)(place - trials->trial);
    place->servers = servers;
    place->room = nservers;
    return true;
}

bool
trials_keep(struct trials *trials, const struct trial *trial, struct rec_error *err)
{
    struct trial *place = place_of(trials, trial->key - 1);
    uint64_t number = number_state(trials);
    struct trial old;

    place->key = 0; /* unused, if making room fails */
    if (!number || !prepare(trials, place, trial->nservers))
        return rec_fail_memory(err);
    old = *place;
    *place = *trial;
    place->state = number;
    place->servers = old.servers;
    place->room = old.room;
    if (trial->nservers)
        memcpy(place->servers, trial->servers, trial->nservers * sizeof *place->servers);
    return true;
}
