/*
 * rampipe/map.h - a map from text to a number, and an arena for text that lives long.
 *
 * Lookup does not depend on addresses, and nothing iterates over a map, so no result
 * depends on the order of hashes.
 */
#ifndef RAMPIPE_MAP_H
#define RAMPIPE_MAP_H

#include "rampipe/record.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    const char *key; /* NULL: free */
    uint32_t len;
    uint32_t value;
};

/** Text -> uint32_t. Starts as {0}. Keys are not copied: they must outlive their entry.
 */
struct map {
    struct map_slot *slot;
    size_t nslots; /* a power of two, or 0 */
    size_t used;
};

/** The value of a key, MAP_NONE if it has none. */
uint32_t map_get(const struct map *map, struct rec_str key);
/** Sets the value of a key that is not there yet. False: out of memory. */
bool map_add(struct map *map, struct rec_str key, uint32_t value,
             struct rec_error *err) REC_MUST_CHECK;
/** Removes a key, if it is there. */
void map_remove(struct map *map, struct rec_str key);
void map_clear(struct map *map);
void map_free(struct map *map);

struct arena_chunk;

/** Memory that is given back all at once. Starts as {0}. */
struct arena {
    struct arena_chunk *chunk;
    size_t left;
};

/** A NUL-terminated copy that stays where it is until arena_free(). NULL: *err. */
const char *arena_copy(struct arena *arena, struct rec_str text, struct rec_error *err);
void arena_free(struct arena *arena);

#endif
