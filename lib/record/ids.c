/* A bounded memory of ids: runs of numbers, and two generations of hash tables. */
#include "rampipe/record.h"

#include <stdlib.h>

/* The slot of a hash, or the free one where it goes. */
static uint64_t *
find(uint64_t *table, size_t size, uint64_t hash)
{
    size_t i = (size_t)hash & (size - 1);
    while (table[i] && table[i] != hash)
        i = (i + 1) & (size - 1);
    return &table[i];
}

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

/* The newer generation is full: it becomes the older one. */
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

static uint64_t
hash_of(struct rec_str id)
{
    uint64_t hash = rec_hash(id);
    return hash + (hash == 0);
}

/* ---- runs ---------------------------------------------------------------- */

/* Splits an id into a prefix and the number behind it, which has no zero in front: an id
 * is split in one way. False: it has none, or one that is too long. */
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

/* The word of a number in `ahead`, and its bit there. */
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

/* Is the number in the run or ahead of it, or (*goes_on) may it be put there? */
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

/* As rec_ids_add(), by the runs alone; NOT_BY_RUNS: they do not know. */
static int
add_to_runs(struct rec_ids *ids, struct rec_str id, size_t len, uint64_t number,
            struct rec_error *err)
{
    struct rec_ids_run *on = NULL;

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
    if (ids->size[0] > 0 && is_known(ids, hash_of(id)))
        return 0;
    if (!on)
        return begin_run(ids, id, len, number, err) ? 1 : -1;
    put_in_run(on, number);
    return 1;
}

/* ---- all ----------------------------------------------------------------- */

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
    if (2 * (ids->n + 1) > ids->size[0] && !grow(ids, err))
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
