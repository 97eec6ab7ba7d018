/* A bounded memory of ids: runs of numbers, and two generations of hash tables. */
#include "rampipe/record.h"

#include <stdlib.h>

/* Where a hash belongs. Ids that were made to crowd one place do so under one seed only:
 * an odd multiplier, here the address of a table, spreads them anew in every run. What is
 * found does not depend on it. */
static size_t
home(const uint64_t *table, size_t size, uint64_t hash)
{
    uint64_t odd = ((uint64_t)(uintptr_t)table ^ 0x9e3779b97f4a7c15u) | 1;
    hash *= odd;
    return (size_t)((hash ^ hash >> 32) * 0xd6e8feb86659fd93u >> 20) & (size - 1);
}

/* The slot of a hash, or the free one where it goes. */
static uint64_t *
find(uint64_t *table, size_t size, uint64_t hash)
{
    size_t i = home(table, size, hash);
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

/* Splits an id into a prefix and the number behind it, which has no zero in front: an id is
 * split in one way. False: it has none, or one that is too long. */
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

/* As rec_ids_add(), by the runs alone; -1: they do not know. */
static int
add_to_runs(struct rec_ids *ids, struct rec_str id, size_t len, uint64_t number)
{
    struct rec_ids_run *run;
    bool hashed = ids->size[0] > 0, on = false;

    for (size_t i = 0; i < ids->nruns; i++) {
        run = &ids->run[i];
        if (number - run->from > run->to - run->from + 1 || !has_prefix(run, id, len))
            continue;
        if (number <= run->to)
            return 0;
        ids->last = i;
        on = true;
    }
    if (!on && ids->nruns == REC_IDS_RUNS)
        return -1;
    if (hashed && is_known(ids, hash_of(id)))
        return 0;
    if (on) {
        ids->run[ids->last].to = number;
        return 1;
    }
    run = &ids->run[ids->nruns++];
    run->from = run->to = number;
    run->len = len;
    memcpy(run->prefix, id.ptr, len);
    return 1;
}

/* ---- all ----------------------------------------------------------------- */

int
rec_ids_add(struct rec_ids *ids, struct rec_str id, struct rec_error *err)
{
    uint64_t hash, *slot, number;
    size_t len;
    int added = split_number(id, &len, &number) ? add_to_runs(ids, id, len, number) : -1;

    if (added >= 0)
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
    free(ids->hash[0]);
    free(ids->hash[1]);
    *ids = (struct rec_ids){0};
}
