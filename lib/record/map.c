/*
 * Hash map from texts to 32-bit numbers.
 *
 * The map uses open addressing with linear probing, at most two thirds full. Removing an
 * entry moves later entries of its probe chain back (Knuth, TAOCP 3, algorithm 6.4R), so
 * that there are no tombstones, and lookups stay fast however often entries come and go.
 */
#include "rampipe/record.h"

#include <stdlib.h>

/* The slot of a key, or the free slot where it belongs. The map is never full. */
static size_t
find(const struct rec_map *map, struct rec_str key)
{
    size_t i = (size_t)rec_hash(key) & (map->nslots - 1);
    for (; map->slot[i].key; i = (i + 1) & (map->nslots - 1))
        if (map->slot[i].len == key.len &&
            memcmp(map->slot[i].key, key.ptr, key.len) == 0)
            break;
    return i;
}

uint32_t
rec_map_get(const struct rec_map *map, struct rec_str key)
{
    size_t i;
    if (map->used == 0)
        return REC_NONE;
    i = find(map, key);
    return map->slot[i].key ? map->slot[i].value : REC_NONE;
}

static bool
grow(struct rec_map *map, struct rec_error *err)
{
    struct rec_map old = *map;
    map->nslots = old.nslots ? old.nslots * 2 : 16;
    map->slot = calloc(map->nslots, sizeof *map->slot);
    if (!map->slot) {
        *map = old;
        return rec_fail_memory(err);
    }
    for (size_t i = 0; i < old.nslots; i++)
        if (old.slot[i].key)
            map->slot[find(map, (struct rec_str){old.slot[i].key, old.slot[i].len})] =
                old.slot[i];
    free(old.slot);
    return true;
}

bool
rec_map_add(struct rec_map *map, struct rec_str key, uint32_t value,
            struct rec_error *err)
{
    if ((map->used + 1) * 3 > map->nslots * 2 && !grow(map, err))
        return false;
    map->slot[find(map, key)] = (struct rec_map_slot){key.ptr, (uint32_t)key.len, value};
    map->used++;
    return true;
}

void
rec_map_remove(struct rec_map *map, struct rec_str key)
{
    size_t mask = map->nslots - 1, hole, i;
    if (map->used == 0 || !map->slot[hole = find(map, key)].key)
        return;
    map->used--;
    for (i = (hole + 1) & mask; map->slot[i].key; i = (i + 1) & mask) {
        struct rec_str other = {map->slot[i].key, map->slot[i].len};
        size_t home = (size_t)rec_hash(other) & mask;
        /* An entry may move into the hole only if the hole is not before its home slot,
         * where lookups begin. Distances are taken around the end of the table. */
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slot[hole] = map->slot[i];
        hole = i;
    }
    map->slot[hole].key = NULL;
}

void
rec_map_clear(struct rec_map *map)
{
    if (map->nslots)
        memset(map->slot, 0, map->nslots * sizeof *map->slot);
    map->used = 0;
}

void
rec_map_free(struct rec_map *map)
{
    free(map->slot);
    *map = (struct rec_map){0};
}
