/*
 * Hash map from texts to 32-bit numbers.
 *
 * Most texts are ids that count on (op 1, 2, 3 ..., parts 7a, 7b, 7c ...), and are looked
 * up nearly in this order. So texts of one family (rec_hash_family()) lie side by side,
 * and a large map is read in order, not all over memory:
 *
 *     page of a family     |  member 0 | member 1 | member 2 | ...        |
 *     another              |           |          |          |  member 3  |
 *
 * A family has one page of up to 256 slots, and begins anywhere in it, which a secret
 * decides (rec_hash()), as it decides the page. If the slot of a text is taken, the
 * search goes on at the same slot of the next page, and from the last page to the slot
 * behind it in the first. Down these columns this is linear probing (Knuth, TAOCP 3,
 * 6.4), at most two thirds full. A family has at most one text in a column, so families
 * do not displace each other as wholes, and whoever chooses the texts cannot make the
 * chains longer than random ones (tests/unit/test_map.c).
 *
 * Removing an entry moves later entries of its chain back (algorithm 6.4R), so that there
 * are no tombstones, and lookups stay fast however often entries come and go.
 */
#include "private.h"

#include <stdlib.h>

/* Where a search is. A page has 2^bits slots. */
struct place {
    size_t slot;
    unsigned bits;
};

static inline struct place
home_of(const struct rec_map *map, struct rec_str key)
{
    unsigned bits = (unsigned)__builtin_ctzll(map->nslots) / 2, member;
    uint64_t hash = rec_hash_family(key, &member);
    bits = bits < 8 ? bits : 8;
    /* In a small map a family is larger than a page. Each piece of it gets a page, and
     * begins elsewhere in it: 10a, 20a, 30a ... would meet in one column. */
    hash += (member >> bits) * 0x9e3779b97f4a7c15u;
    return (struct place){((size_t)(hash >> 16 << bits) & (map->nslots - 1)) |
                              ((hash + member) & (((size_t)1 << bits) - 1)),
                          bits};
}

/* The next slot of a search: down the column, then at the head of the next one. */
static inline size_t
after(const struct rec_map *map, struct place at)
{
    size_t page = (size_t)1 << at.bits, next = at.slot + page;
    return next < map->nslots ? next : (next + 1) & (page - 1);
}

/* How many steps a search takes from one slot to another. */
static size_t
steps(const struct rec_map *map, struct place from, size_t to)
{
    size_t pages = map->nslots >> from.bits, column = ((size_t)1 << from.bits) - 1;
    size_t a = (from.slot & column) * pages + (from.slot >> from.bits);
    size_t b = (to & column) * pages + (to >> from.bits);
    return (b - a) & (map->nslots - 1);
}

/* The place of a key, or of the free slot where it belongs. The map is never full. */
static struct place
find(const struct rec_map *map, struct rec_str key)
{
    struct place at = home_of(map, key);
    for (; map->slot[at.slot].key; at.slot = after(map, at))
        if (map->slot[at.slot].len == key.len &&
            memcmp(map->slot[at.slot].key, key.ptr, key.len) == 0)
            break;
    return at;
}

uint32_t
rec_map_get(const struct rec_map *map, struct rec_str key)
{
    size_t i;
    if (map->used == 0)
        return REC_NONE;
    i = find(map, key).slot;
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
            map->slot[find(map, (struct rec_str){old.slot[i].key, old.slot[i].len})
                          .slot] = old.slot[i];
    free(old.slot);
    return true;
}

bool
rec_map_add(struct rec_map *map, struct rec_str key, uint32_t value,
            struct rec_error *err)
{
    if ((map->used + 1) * 3 > map->nslots * 2 && !grow(map, err))
        return false;
    map->slot[find(map, key).slot] =
        (struct rec_map_slot){key.ptr, (uint32_t)key.len, value};
    map->used++;
    return true;
}

void
rec_map_remove(struct rec_map *map, struct rec_str key)
{
    struct place at;
    size_t hole;
    if (map->used == 0)
        return;
    at = find(map, key);
    hole = at.slot;
    if (!map->slot[hole].key)
        return;
    map->used--;
    while (map->slot[at.slot = after(map, at)].key) {
        const struct rec_map_slot *other = &map->slot[at.slot];
        struct place home = home_of(map, (struct rec_str){other->key, other->len});
        /* An entry may move into the hole only if its own search, which begins at its
         * home, comes to the hole first. */
        if (steps(map, home, hole) < steps(map, home, at.slot)) {
            map->slot[hole] = *other;
            hole = at.slot;
        }
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
