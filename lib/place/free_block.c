/*
 * Placing in the N-th free block: of the blocks that are legal for the units of most
 * parts, inside which there are legal blocks for all others, and whose servers are all
 * free, in the order of net_block(). All units of the job go to servers of this block.
 * As alternatives of one job, the first N of them let a chooser decide which servers it
 * gets.
 *
 * All blocks of the cluster are listed once, as masks: it has 128 servers at most.
 */
#include "private.h"

#include <stdlib.h>

enum { SERVERS = 128, WORDS = SERVERS / 64 };

/* Of servers, or of other numbers: i is in it if bit i % 64 of word[i / 64] is 1. */
struct set {
    uint64_t word[WORDS];
};

/* The blocks of a number of parts. */
struct blocks {
    uint32_t n;
    struct set *mask;  /* per block: its servers */
    struct set *holds; /* per block: k - 1 is in it if a block of k parts lies in it */
    struct set known;  /* the k - 1 for which that was looked up */
    uint32_t *server;  /* per block: its servers, in order of parts */
};

/* What a placer keeps. */
struct free_block {
    uint64_t nth;                  /* from 1 */
    const struct set *block;       /* of the job */
    struct blocks of[SERVERS + 1]; /* by the number of parts */
};

static bool
suits(const struct net *net)
{
    return !net_takes_any(net) && net_servers(net) <= SERVERS;
}

static void
release(void *own)
{
    struct free_block *f = own;
    for (int i = 0; i <= SERVERS; i++) {
        free(f->of[i].mask);
        free(f->of[i].holds);
        free(f->of[i].server);
    }
    free(f);
}

/* ---- sets ---------------------------------------------------------------- */

static void
add(struct set *set, uint32_t i)
{
    set->word[i / 64] |= (uint64_t)1 << i % 64;
}

static bool
has(const struct set *set, uint32_t i)
{
    return set->word[i / 64] >> i % 64 & 1;
}

/* Is all of `inner` in `outer`? */
static bool
lies_in(const struct set *inner, const struct set *outer)
{
    uint64_t outside = 0;
    for (int w = 0; w < WORDS; w++)
        outside |= inner->word[w] & ~outer->word[w];
    return !outside;
}

/* ---- lists --------------------------------------------------------------- */

static bool
list_blocks(const struct net *net, uint32_t parts, struct blocks *b)
{
    b->n = (uint32_t)net_count_blocks(net, parts);
    b->mask = calloc(b->n + 1, sizeof *b->mask);
    b->holds = calloc(b->n + 1, sizeof *b->holds);
    b->server = calloc((size_t)b->n * parts + 1, sizeof *b->server);
    for (uint32_t i = 0; b->mask && b->holds && b->server && i < b->n; i++) {
        uint32_t *server = b->server + (size_t)i * parts;
        net_block(net, parts, i, server);
        for (uint32_t j = 0; j < parts; j++)
            add(&b->mask[i], server[j]);
    }
    return b->mask && b->holds && b->server;
}

/* Notes in which blocks there is a block of k parts. */
static void
nest_blocks(struct blocks *b, const struct blocks *inner, uint32_t k)
{
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t j = 0; j < inner->n; j++)
            if (lies_in(&inner->mask[j], &b->mask[i])) {
                add(&b->holds[i], k - 1);
                break;
            }
    add(&b->known, k - 1);
}

static void *
open(const struct place_options *options, struct rec_error *err)
{
    struct free_block *f = calloc(1, sizeof *f);
    uint32_t n = net_servers(options->net);
    bool ok = f || rec_fail_memory(err);
    if (ok)
        f->nth = 1;
    if (ok && options->argument &&
        (!rec_parse_uint(rec_str(options->argument), &f->nth) || f->nth == 0 ||
         f->nth > PLACE_PLACES_MAX))
        ok = rec_fail(err, REC_USAGE, "must be the number of a block, from 1 to %d",
                      PLACE_PLACES_MAX);
    for (uint32_t k = 1; ok && k <= n; k++)
        ok = list_blocks(options->net, k, &f->of[k]) || rec_fail_memory(err);
    if (ok)
        return f;
    if (f)
        release(f);
    return NULL;
}

/* Chooses the block. */
static enum place_outcome
begin(struct place_placer *p, const struct place_plan *plan)
{
    struct free_block *f = p->own;
    uint64_t left = f->nth;
    struct set vacant = {{0}}, kinds = {{0}};
    struct blocks *b;
    if (plan->largest > p->nservers)
        return PLACE_NO_BLOCK;
    memcpy(vacant.word, p->vacancy->free, (p->nservers + 63) / 64 * sizeof *vacant.word);
    b = &f->of[plan->largest];
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        uint32_t unit = plan->step[plan->kind[k]].unit,
                 parts = plan->graph->unit[unit].parts;
        if (parts == plan->largest)
            p->failed = unit;
        if (parts == 0)
            continue;
        add(&kinds, parts - 1);
        if (!has(&b->known, parts - 1))
            nest_blocks(b, &f->of[parts], parts);
    }
    for (uint32_t i = 0; i < b->n; i++)
        if (lies_in(&b->mask[i], &vacant) && lies_in(&kinds, &b->holds[i]) &&
            --left == 0) {
            f->block = &b->mask[i];
            return PLACE_PLACED;
        }
    return PLACE_NO_BLOCK;
}

/* Puts a unit on the first block inside that of the job that has room. */
static bool
find(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    const struct free_block *f = p->own;
    const struct blocks *b = &f->of[unit->parts];
    for (uint32_t i = 0; i < b->n; i++)
        if (lies_in(&b->mask[i], f->block)) {
            memcpy(p->block, b->server + (size_t)i * unit->parts,
                   unit->parts * sizeof *p->block);
            if (place_take(p, unit, memory))
                return true;
        }
    return false;
}

const struct place_kind place_free_block = {.name = "free-block",
                                            .argument = "N",
                                            .network = "clusters of at most 128 servers "
                                                       "whose units need blocks",
                                            .suits = suits,
                                            .open = open,
                                            .close = release,
                                            .begin = begin,
                                            .find = find,
                                            .place = place_units,
                                            .whole = true,
                                            .numbered = true};
