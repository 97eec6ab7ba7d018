/*
 * Ways of placing to compare others with, on any network whose units may go to any
 * servers. Each has an order of all servers; a job gets the first free ones in it.
 *
 *     lowest   by number, as first-fit by a list of servers would
 *     spread   one of each group of the largest level below the whole, then the second
 *              one of each, and so on; inside these groups likewise
 *     random   shuffled once, by a seed
 *
 * The job's block are the first free servers for its units of most parts. Smaller units
 * go to the first servers of the block, and units for which the block lacks memory to the
 * first free servers with memory.
 */
#include "private.h"

#include <stdlib.h>

/* What a placer keeps. */
struct ordered {
    uint32_t *server; /* in their order */
    uint32_t n;
    uint32_t *block; /* of the job */
    uint32_t nblock;
    uint32_t *list; /* scratch */
};

static bool
suits(const struct net *net)
{
    return net_takes_any(net);
}

static void
release(void *own)
{
    struct ordered *o = own;
    free(o->server);
    free(o->block);
    free(o->list);
    free(o);
}

/* In the order of their numbers. */
static void *
open_lowest(const struct place_options *options, struct rec_error *err)
{
    struct ordered *o = calloc(1, sizeof *o);
    if (!o) {
        rec_fail_memory(err);
        return NULL;
    }
    o->n = net_servers(options->net);
    o->server = malloc(o->n * sizeof *o->server);
    o->block = malloc(o->n * sizeof *o->block);
    o->list = malloc(o->n * sizeof *o->list);
    if (!o->server || !o->block || !o->list) {
        release(o);
        rec_fail_memory(err);
        return NULL;
    }
    for (uint32_t i = 0; i < o->n; i++)
        o->server[i] = i;
    return o;
}

/* A server is a number whose digits say which group of each level it is in. The order is
 * by the last digit first, so the digits of place i are those of i, the other way
 * round. */
static void *
open_spread(const struct place_options *options, struct rec_error *err)
{
    struct ordered *o = open_lowest(options, err);
    const struct net_level *level;
    size_t n = net_levels(options->net, &level);
    for (uint32_t i = 0; o && i < o->n; i++) {
        uint32_t left = i, server = 0;
        for (size_t l = 1; l < n; l++) {
            uint32_t groups = level[l - 1].servers / level[l].servers;
            server += left % groups * level[l].servers;
            left /= groups;
        }
        o->server[i] = server;
    }
    return o;
}

/* A number for each seed and server. A generator of rampipe/random.h would bring its
 * library to the allocators. */
static uint64_t
draw(uint64_t seed, uint64_t server)
{
    return rec_mix(seed << 32 | server);
}

static int
by_draw(const void *a, const void *b, void *seed)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t of_x = draw(*(const uint64_t *)seed, x);
    uint64_t of_y = draw(*(const uint64_t *)seed, y);
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : (x > y) - (x < y);
}

static void *
open_random(const struct place_options *options, struct rec_error *err)
{
    uint64_t seed = 1;
    struct ordered *o;
    if (options->argument &&
        (!rec_parse_uint(rec_str(options->argument), &seed) || seed > UINT32_MAX)) {
        rec_fail(err, REC_USAGE, "must be a seed, an integer from 0 to %u", UINT32_MAX);
        return NULL;
    }
    if ((o = open_lowest(options, err)))
        qsort_r(o->server, o->n, sizeof *o->server, by_draw, &seed);
    return o;
}

/* Takes the first k of a list of servers that are free and have room. */
static bool
take_first(struct place_placer *p, const uint32_t *list, uint32_t n, uint32_t k,
           double memory, uint32_t *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; found < k && i < n; i++)
        if (place_bit(p->vacancy, list[i]) && place_has_room(p, list[i], memory))
            out[found++] = list[i];
    return found == k;
}

static enum place_outcome
begin(struct place_placer *p, const struct place_plan *plan)
{
    struct ordered *o = p->own;
    o->nblock = plan->largest;
    return take_first(p, o->server, o->n, o->nblock, 0, o->block) ? PLACE_PLACED
                                                                  : PLACE_NO_SERVERS;
}

static bool
find(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    struct ordered *o = p->own;
    bool found = memory <= p->memory * (1 + 1e-12) &&
                 (take_first(p, o->block, o->nblock, unit->parts, memory, p->block) ||
                  take_first(p, o->server, o->n, unit->parts, memory, p->block));
    if (!found)
        place_note_room(p, unit->parts, o->list);
    return found && place_take(p, unit, memory);
}

#define ORDERED(NAME, OPEN)                                                           \
    .name = NAME, .network = "clusters without blocks", .suits = suits, .open = OPEN, \
    .close = release, .begin = begin, .find = find, .place = place_units, .whole = true

const struct place_kind place_lowest = {ORDERED("lowest", open_lowest)};
const struct place_kind place_spread = {ORDERED("spread", open_spread)};
const struct place_kind place_random = {ORDERED("random", open_random),
                                        .argument = "SEED"};
