/* A bounded memory of ids: two generations of hash tables. */
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

int
rec_ids_add(struct rec_ids *ids, struct rec_str id, struct rec_error *err)
{
    uint64_t hash = rec_hash(id), *slot;

    hash += hash == 0;
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
