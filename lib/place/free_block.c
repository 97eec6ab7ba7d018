/*
 * Placing in the N-th free block: of the blocks that are legal for the units of most
 * parts, inside which there are legal blocks for all others, and whose servers are all
 * free, in the order of net_block(). All units of the job go to servers of this block.
 * As alternatives of one job, the first N of them let a chooser decide which servers it
 * gets.
 *
 * All blocks of the cluster are listed once, as masks: it has 64 servers at most.
 */
#include "private.h"

#include <stdlib.h>

enum { SERVERS = 64 };

/* The blocks of a number of parts. */
struct blocks {
    uint32_t n;
    uint64_t *mask;   /* per block: bit s for each server s */
    uint64_t *holds;  /* per block: bit k - 1 if a block of k parts lies in it */
    uint32_t *server; /* per block: its servers, in order of parts */
};

/* What a placer keeps. */
struct free_block {
    uint64_t nth;                  /* from 1 */
    uint64_t block;                /* of the job: bit s for each server s */
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
            b->mask[i] |= (uint64_t)1 << server[j];
    }
    return b->mask && b->holds && b->server;
}

/* Notes which blocks of k parts lie in larger ones. */
static void
nest_blocks(struct free_block *f, uint32_t nservers, uint32_t k)
{
    const struct blocks *inner = &f->of[k];
    for (uint32_t parts = k; parts <= nservers; parts++)
        for (uint32_t i = 0; i < f->of[parts].n; i++)
            for (uint32_t j = 0; j < inner->n; j++)
                if (!(inner->mask[j] & ~f->of[parts].mask[i])) {
                    f->of[parts].holds[i] |= (uint64_t)1 << (k - 1);
                    break;
                }
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
        (!rec_parse_uint(rec_str(options->argument), &f->nth) || f->nth == 0))
        ok = rec_fail(err, REC_USAGE, "must be the number of a block, from 1");
    for (uint32_t k = 1; ok && k <= n; k++)
        ok = list_blocks(options->net, k, &f->of[k]) || rec_fail_memory(err);
    for (uint32_t k = 1; ok && k <= n; k++)
        nest_blocks(f, n, k);
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
    uint64_t left = f->nth, taken = ~p->vacancy->free[0], kinds = 0;
    const struct blocks *b;
    if (plan->largest > p->nservers)
        return PLACE_NO_BLOCK;
    b = &f->of[plan->largest];
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        uint32_t unit = plan->step[plan->kind[k]].unit,
                 parts = plan->graph->unit[unit].parts;
        kinds |= parts ? (uint64_t)1 << (parts - 1) : 0;
        if (parts == plan->largest)
            p->failed = unit;
    }
    for (uint32_t i = 0; i < b->n; i++)
        if (!(b->mask[i] & taken) && !(kinds & ~b->holds[i]) && --left == 0) {
            f->block = b->mask[i];
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
        if (!(b->mask[i] & ~f->block)) {
            memcpy(p->block, b->server + (size_t)i * unit->parts,
                   unit->parts * sizeof *p->block);
            if (place_take(p, unit, memory))
                return true;
        }
    return false;
}

const struct place_kind place_free_block = {.name = "free-block",
                                            .argument = "N",
                                            .network = "clusters of at most 64 servers "
                                                       "whose units need blocks",
                                            .suits = suits,
                                            .open = open,
                                            .close = release,
                                            .begin = begin,
                                            .find = find,
                                            .place = place_units,
                                            .whole = true,
                                            .numbered = true};
