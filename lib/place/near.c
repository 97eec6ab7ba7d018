/*
 * Placing on any network whose units may go to any servers: on those that lie nearest to
 * each other by the levels of the network (net_levels()), so that a job spans as few
 * islands, leaves and pods as possible.
 *
 * Of a set of servers, the k nearest ones are found so. Of the groups that have k of the
 * set, the smallest level counts; of that level the group with the fewest of the set
 * (best fit: what is left of other groups stays whole), then that in the fullest
 * surroundings, then that of the lowest number. If this group has smaller groups inside,
 * none of them has k: all of the set in the one that has most are taken, and the rest are
 * the nearest ones of what is left in the group.
 *
 * The job's block are the nearest free servers for its units of most parts. Smaller units
 * go to the nearest servers of the block. Units for which the block lacks memory go to
 * the nearest free servers with memory in the group of the block, else in the group
 * around that, and so on.
 */
#include "private.h"

#include <stdlib.h>

/* The levels but the last, which is a server, and numbers for each of their groups. */
struct near_levels {
    const struct net_level *level; /* borrowed */
    uint32_t n;
    uint32_t **count; /* per level, per group */
};

/* What a placer keeps. */
struct near {
    struct near_levels lacks; /* free servers that lack memory for the current unit */
    uint32_t *list;           /* scratch: servers */
    uint32_t *block;          /* of the job, ascending */
    uint32_t nblock;
    uint32_t level, group; /* the group of the block */
};

static bool
suits(const struct net *net)
{
    return net_takes_any(net);
}

/* ---- counts -------------------------------------------------------------- */

static void
levels_close(struct near_levels *levels)
{
    for (uint32_t l = 0; levels->count && l < levels->n; l++)
        free(levels->count[l]);
    free(levels->count);
}

/* Makes room for the counts, which are 0. */
static bool
levels_open(struct near_levels *levels, const struct net *net, struct rec_error *err)
{
    uint32_t servers = net_servers(net);
    bool ok;
    levels->n = (uint32_t)net_levels(net, &levels->level);
    levels->n -= levels->n > 1;
    ok = (levels->count = calloc(levels->n, sizeof *levels->count));
    for (uint32_t l = 0; ok && l < levels->n; l++)
        ok = (levels->count[l] =
                  calloc(servers / levels->level[l].servers, sizeof **levels->count));
    return ok || rec_fail_memory(err);
}

static inline void
add(struct near_levels *levels, uint32_t server, uint32_t amount)
{
    for (uint32_t l = 0; l < levels->n; l++)
        levels->count[l][server / levels->level[l].servers] += amount;
}

static void
index_free(void *index)
{
    levels_close(index);
    free(index);
}

/* The index counts the free servers. */
static void *
index_new(const struct net *net, struct rec_error *err)
{
    struct near_levels *levels = calloc(1, sizeof *levels);
    if (!levels)
        rec_fail_memory(err);
    else if (levels_open(levels, net, err)) {
        for (uint32_t l = 0; l < levels->n; l++)
            for (uint32_t g = 0; g < net_servers(net) / levels->level[l].servers; g++)
                levels->count[l][g] = levels->level[l].servers;
        return levels;
    } else
        index_free(levels);
    return NULL;
}

static void
index_set(void *index, uint32_t server, bool free)
{
    add(index, server, free ? 1 : UINT32_MAX); /* - 1 */
}

static void
release(void *own)
{
    struct near *near = own;
    levels_close(&near->lacks);
    free(near->list);
    free(near->block);
    free(near);
}

static void *
open(const struct place_options *options, struct rec_error *err)
{
    struct near *near = calloc(1, sizeof *near);
    uint32_t servers = net_servers(options->net);
    if (!near) {
        rec_fail_memory(err);
        return NULL;
    }
    near->list = calloc(servers, sizeof *near->list);
    near->block = calloc(servers, sizeof *near->block);
    if (!near->list || !near->block)
        rec_fail_memory(err);
    else if (levels_open(&near->lacks, options->net, err))
        return near;
    release(near);
    return NULL;
}

/* ---- the nearest ones of a list of servers ------------------------------- */

/* The first index in an ascending list whose server is not less than `server`. */
static uint32_t
lower_bound(const uint32_t *list, uint32_t n, uint32_t server)
{
    uint32_t low = 0;
    while (n > 0) {
        uint32_t half = n / 2;
        if (list[low + half] < server) {
            low += half + 1;
            n -= half + 1;
        } else
            n = half;
    }
    return low;
}

/* How many servers of a list belong to the group of this level that has `server`. */
static uint32_t
count_around(const uint32_t *list, uint32_t n, uint32_t server, uint32_t size)
{
    uint32_t first = server / size * size;
    return lower_bound(list, n, first + size) - lower_bound(list, n, first);
}

/* The end of the run that begins at `first`: servers of one group of this size. */
static uint32_t
run_end(const uint32_t *list, uint32_t n, uint32_t first, uint32_t size)
{
    uint32_t group = list[first] / size;
    while (first < n && list[first] / size == group)
        first++;
    return first;
}

/* True if servers a and b lie in groups with equally many of the list, and those around a
 * are the fuller ones: on the smallest level above `level` on which they differ. */
static bool
is_fuller(const struct near_levels *levels, const uint32_t *list, uint32_t n,
          uint32_t level, uint32_t a, uint32_t b)
{
    while (level-- > 0) {
        uint32_t size = levels->level[level].servers;
        uint32_t x = count_around(list, n, a, size), y = count_around(list, n, b, size);
        if (x != y)
            return x < y;
    }
    return false;
}

/* Finds the group of which the k nearest servers of a list are, which has at least k, and
 * narrows the list to it. Returns its level. */
static uint32_t
narrow(const struct near_levels *levels, uint32_t **list, uint32_t *n, uint32_t k)
{
    for (uint32_t l = levels->n; l-- > 0;) {
        uint32_t size = levels->level[l].servers, best = 0, most = UINT32_MAX;
        for (uint32_t i = 0, end; size >= k && i < *n; i = end) {
            end = run_end(*list, *n, i, size);
            if (end - i >= k &&
                (end - i < most ||
                 (end - i == most &&
                  is_fuller(levels, *list, *n, l, (*list)[i], (*list)[best])))) {
                best = i;
                most = end - i;
            }
        }
        if (most < UINT32_MAX) {
            *list += best;
            *n = most;
            return l;
        }
    }
    return 0; /* not reached: the whole cluster has k */
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Writes the k nearest servers of an ascending list of n >= k, which it changes, to
 * out[], ascending. */
static void
take_nearest(const struct near_levels *levels, uint32_t *list, uint32_t n, uint32_t k,
             uint32_t *out)
{
    uint32_t taken = 0;
    while (taken < k) {
        uint32_t need = k - taken, level = narrow(levels, &list, &n, need), first = 0;
        uint32_t most = need;
        if (level + 1 < levels->n && n > need) {
            most = 0;
            for (uint32_t i = 0, end; i < n; i = end) {
                end = run_end(list, n, i, levels->level[level + 1].servers);
                if (end - i > most) {
                    first = i;
                    most = end - i;
                }
            }
        }
        memcpy(out + taken, list + first, most * sizeof *list);
        memmove(list + first, list + first + most, (n - first - most) * sizeof *list);
        taken += most;
        n -= most;
    }
    qsort(out, k, sizeof *out, by_number);
}

/* ---- all free servers ---------------------------------------------------- */

/* How many servers of a group are free and have memory for the current unit. */
static inline uint32_t
count_of(const struct place_placer *p, uint32_t level, uint32_t group)
{
    const struct near_levels *levels = p->vacancy->index;
    const struct near *near = p->own;
    return levels->count[level][group] - near->lacks.count[level][group];
}

/* As is_fuller(), of all servers that are free and have memory, up to the level of the
 * search. */
static bool
lies_fuller(const struct place_placer *p, uint32_t top, uint32_t level, uint32_t a,
            uint32_t b)
{
    const struct net_level *of = ((const struct near *)p->own)->lacks.level;
    uint32_t size = of[level].servers;
    while (level-- > top) {
        uint32_t around = of[level].servers / size;
        uint32_t x = count_of(p, level, a / around), y = count_of(p, level, b / around);
        if (x != y)
            return x < y;
    }
    return false;
}

/* Narrows a group in the same way as narrow(), by the counts. False: it has not k. */
static bool
narrow_group(const struct place_placer *p, uint32_t k, uint32_t *level, uint32_t *group)
{
    const struct near *near = p->own;
    const struct net_level *of = near->lacks.level;
    if (count_of(p, *level, *group) < k)
        return false;
    for (uint32_t l = near->lacks.n; l-- > *level;) {
        uint32_t inside = of[*level].servers / of[l].servers, first = *group * inside;
        uint32_t best = 0, most = UINT32_MAX;
        for (uint32_t g = first; of[l].servers >= k && g < first + inside; g++) {
            uint32_t n = count_of(p, l, g);
            if (n >= k &&
                (n < most || (n == most && lies_fuller(p, *level, l, g, best)))) {
                best = g;
                most = n;
            }
        }
        if (most < UINT32_MAX) {
            *level = l;
            *group = best;
            break;
        }
    }
    return true;
}

/* Lists the servers of a group that are free and have room: of a group without groups
 * inside, the first k of them, which are the nearest. Returns their number. */
static uint32_t
list_group(const struct place_placer *p, uint32_t level, uint32_t group, uint32_t k,
           double memory)
{
    const struct near *near = p->own;
    uint32_t size = near->lacks.level[level].servers, n = 0;
    uint32_t most = level + 1 == near->lacks.n ? k : size;
    for (uint32_t s = group * size; n < most && s < (group + 1) * size; s++)
        if (s % 64 == 0 && !p->vacancy->free[s / 64])
            s += 63;
        else if (place_bit(p->vacancy, s) && place_has_room(p, s, memory))
            near->list[n++] = s;
    return n;
}

/* Finds the nearest servers in a group, and then in those around it, and writes them to
 * out[]. *level and *group become those of the group that they were found in. */
static bool
search(struct place_placer *p, uint32_t k, double memory, uint32_t *level,
       uint32_t *group, uint32_t *out)
{
    struct near *near = p->own;
    const struct net_level *of = near->lacks.level;
    while (!narrow_group(p, k, level, group)) {
        if (*level == 0)
            return false;
        --*level;
        *group /= of[*level].servers / of[*level + 1].servers;
    }
    take_nearest(&near->lacks, near->list, list_group(p, *level, *group, k, memory), k,
                 out);
    return true;
}

/* ---- units --------------------------------------------------------------- */

static enum place_outcome
begin(struct place_placer *p, const struct place_plan *plan)
{
    struct near *near = p->own;
    near->level = near->group = 0;
    near->nblock = plan->largest;
    return search(p, near->nblock, 0, &near->level, &near->group, near->block)
               ? PLACE_PLACED
               : PLACE_NO_SERVERS;
}

/* Counts the servers that the job has filled, or no longer counts them. */
static void
mark_full(struct place_placer *p, double memory, uint32_t amount)
{
    struct near *near = p->own;
    for (uint32_t i = 0; i < p->nheld; i++)
        if (!place_has_room(p, p->held[i], memory))
            add(&near->lacks, p->held[i], amount);
}

static bool
find(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    struct near *near = p->own;
    uint32_t level = near->level, group = near->group, n = 0;
    bool found = memory <= p->memory * (1 + 1e-12);
    if (!found) {
        place_note_room(p, unit->parts, near->list);
        return false;
    }
    for (uint32_t i = 0; i < near->nblock; i++)
        if (place_has_room(p, near->block[i], memory))
            near->list[n++] = near->block[i];
    if (n >= unit->parts)
        take_nearest(&near->lacks, near->list, n, unit->parts, p->block);
    else {
        mark_full(p, memory, 1);
        found = search(p, unit->parts, memory, &level, &group, p->block);
        mark_full(p, memory, UINT32_MAX); /* - 1 */
    }
    if (!found)
        place_note_room(p, unit->parts, near->list);
    return found && place_take(p, unit, memory);
}

const struct place_kind place_near = {.name = "near",
                                      .network = "clusters without blocks",
                                      .suits = suits,
                                      .index_new = index_new,
                                      .index_set = index_set,
                                      .index_free = index_free,
                                      .open = open,
                                      .close = release,
                                      .begin = begin,
                                      .find = find,
                                      .place = place_units,
                                      .whole = true};
