/*
 * A set of ids in bounded memory. struct rec_ids in record.h says how long it knows an
 * id.
 *
 * Most streams count their jobs or queries (j1, j2, j3 ...), a little out of order where
 * several arrive together. A run keeps all of these in 8 kB, exactly. Only other ids go
 * into the hash tables, of which the older one is dropped when the newer one is full.
 */
#include "rampipe/record.h"

#include <stdlib.h>

/* ---- hash tables: open addressing with linear probing ---------------------------- */

/* The slot of a hash, or the free slot where it belongs. */
static uint64_t *
find(uint64_t *table, size_t size, uint64_t hash)
{
    size_t i = (size_t)hash & (size - 1);
    while (table[i] && table[i] != hash)
        i = (i + 1) & (size - 1);
    return &table[i];
}

/* Doubles the table of the newer generation. */
static bool
grow(struct rec_ids *ids, struct rec_error *err)
{
    size_t old = ids->size[0], size = old ? old * 2 : 1024;
    uint64_t *table = calloc(size, sizeof *table);
    if (!table)
        return rec_fail_memory(err);
    for (size_t i = 0; i < old; i++)
        if (ids->hash[0][i])
            *find(table, size, ids->hash[0][i]) = ids->hash[0][i];
    free(ids->hash[0]);
    ids->hash[0] = table;
    ids->size[0] = size;
    return true;
}

/* Called when the newer generation is full: it becomes the older one. The table of the
 * generation that is dropped is cleared and used again, so nothing is allocated. */
static void
turn(struct rec_ids *ids)
{
    uint64_t *table = ids->hash[1];
    size_t size = ids->size[1];
    ids->hash[1] = ids->hash[0];
    ids->size[1] = ids->size[0];
    ids->hash[0] = table;
    ids->size[0] = size;
    ids->n = 0;
    if (size)
        memset(table, 0, size * sizeof *table);
}

static bool
is_known(const struct rec_ids *ids, uint64_t hash)
{
    for (int i = 0; i < 2; i++)
        if (ids->size[i] && *find(ids->hash[i], ids->size[i], hash))
            return true;
    return false;
}

/* Never 0, which marks a free slot. */
static uint64_t
hash_of(struct rec_str id)
{
    uint64_t hash = rec_hash(id);
    return hash + (hash == 0);
}

/* ---- runs ---------------------------------------------------------------- */

/* Splits an id into a prefix of *len bytes and the number behind it, of at most 18 digits
 * (which fit into 64 bits). Leading zeros belong to the prefix, so that j7 and j07 stay
 * different ids. False if the id does not end in a digit, or if the prefix is longer than
 * REC_IDS_PREFIX. */
static bool
split_number(struct rec_str id, size_t *len, uint64_t *number)
{
    size_t at = id.len;
    uint64_t digit = 1;
    *number = 0;
    *len = id.len;
    for (; at > 0 && id.len - at < 18; digit *= 10) {
        unsigned c = (unsigned char)id.ptr[--at] - (unsigned)'0';
        if (c > 9)
            break;
        if (c > 0 || *len == id.len) {
            *number += c * digit;
            *len = at;
        }
    }
    return *len < id.len && *len <= REC_IDS_PREFIX;
}

static bool
has_prefix(const struct rec_ids_run *run, struct rec_str id, size_t len)
{
    return run->len == len && memcmp(run->prefix, id.ptr, len) == 0;
}

/* The word of `ahead` that holds the bit of a number. The bitmap is used as a ring: its
 * bits stand for the REC_IDS_AHEAD numbers behind run->to. */
static uint64_t *
word_of(const struct rec_ids_run *run, uint64_t number)
{
    return &run->ahead[number % REC_IDS_AHEAD / 64];
}

static uint64_t
bit_of(uint64_t number)
{
    return (uint64_t)1 << number % 64;
}

/* Has the number, which is not less than run->from, come already? *goes_on says whether
 * it lies in the window behind the run, so that put_in_run() could add it. */
static bool
is_in_run(const struct rec_ids_run *run, uint64_t number, bool *goes_on)
{
    *goes_on = number > run->to && number - run->to <= REC_IDS_AHEAD;
    return *goes_on ? (*word_of(run, number) & bit_of(number)) != 0 : number <= run->to;
}

static void
put_in_run(struct rec_ids_run *run, uint64_t number)
{
    *word_of(run, number) |= bit_of(number);
    /* If the gap behind the run is closed now, the run grows over all numbers that had
     * come early. Their bits are cleared, for the ring will use them again. */
    for (uint64_t next = run->to + 1; *word_of(run, next) & bit_of(next); next++) {
        *word_of(run, next) &= ~bit_of(next);
        run->to = next;
    }
}

static bool
begin_run(struct rec_ids *ids, struct rec_str id, size_t len, uint64_t number,
          struct rec_error *err)
{
    struct rec_ids_run *run = &ids->run[ids->nruns];
    run->ahead = calloc(REC_IDS_AHEAD / 64, sizeof *run->ahead);
    if (!run->ahead)
        return rec_fail_memory(err);
    run->from = run->to = number;
    run->len = len;
    memcpy(run->prefix, id.ptr, len);
    ids->nruns++;
    return true;
}

enum { NOT_BY_RUNS = 2 };

/* Adds an id to the runs: returns as rec_ids_add(), or NOT_BY_RUNS if the id fits no run
 * and there are REC_IDS_RUNS of them already. */
static int
add_to_runs(struct rec_ids *ids, struct rec_str id, size_t len, uint64_t number,
            struct rec_error *err)
{
    struct rec_ids_run *on = NULL;

    /* Several runs may have the prefix, for example after a gap in the numbers. All are
     * searched before the id is added to one. */
    for (size_t i = 0; i < ids->nruns; i++) {
        struct rec_ids_run *run = &ids->run[i];
        bool goes_on;
        if (number < run->from || !has_prefix(run, id, len))
            continue;
        if (is_in_run(run, number, &goes_on))
            return 0;
        if (goes_on)
            on = run;
    }
    if (!on && ids->nruns == REC_IDS_RUNS)
        return NOT_BY_RUNS;
    /* The id may have been hashed before a run grew to where it fits in. */
    if (ids->size[0] > 0 && is_known(ids, hash_of(id)))
        return 0;
    if (!on)
        return begin_run(ids, id, len, number, err) ? 1 : -1;
    put_in_run(on, number);
    return 1;
}

/* ---- the set ------------------------------------------------------------- */

int
rec_ids_add(struct rec_ids *ids, struct rec_str id, struct rec_error *err)
{
    uint64_t hash, *slot, number;
    size_t len;
    int added = split_number(id, &len, &number) ? add_to_runs(ids, id, len, number, err)
                                                : NOT_BY_RUNS;

    if (added != NOT_BY_RUNS)
        return added;
    hash = hash_of(id);
    if (ids->size[1] && *find(ids->hash[1], ids->size[1], hash))
        return 0;
    if (ids->n == REC_IDS_KEPT)
        turn(ids);
    if (2 * (ids->n + 1) > ids->size[0] && !grow(ids, err)) /* at most half full */
        return -1;
    slot = find(ids->hash[0], ids->size[0], hash);
    if (*slot)
        return 0;
    *slot = hash;
    ids->n++;
    return 1;
}

void
rec_ids_free(struct rec_ids *ids)
{
    for (size_t i = 0; i < ids->nruns; i++)
        free(ids->run[i].ahead);
    free(ids->hash[0]);
    free(ids->hash[1]);
    *ids = (struct rec_ids){0};
}
