/* Spot traces by chances of the hour of day: the later simulator's generator, whose rules
 * are at spot_draw_hourly() in rampipe/spot.h. An hour is drawn first, into a table of
 * its seconds, and then played in order of time, so that nothing must be sorted. */
#include "rampipe/random.h"
#include "rampipe/spot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOUR = 3600 /* seconds */, WORD = 64 /* bits */ };

/* A node that leaves in this hour. */
struct removal {
    size_t node;   /* index in struct hourly's `node` */
    uint32_t next; /* index of the next removal in the same second; REC_NONE: none */
};

/* What happens in a second of the hour: first the additions, then the removals, as a
 * linked list in the order in which the nodes were added. */
struct second {
    uint64_t additions;
    uint32_t first, last; /* indices of removals; first is REC_NONE: none */
};

struct hourly {
    const struct spot_hourly *options;
    double addition[24];
    struct rng *rng;
    uint64_t *node; /* numbers of instances, in order of addition; 0: gone in this hour */
    size_t nodes;   /* entries of `node` */
    size_t n, room; /* n of the instances are there */
    uint64_t names; /* numbers given so far: the last instance is node<names> */
    struct removal *removal;
    size_t nremovals, removal_room;
    struct second second[HOUR];
    /* A bit for each second in which something happens: most hours have few such seconds,
     * and play_hour() skips the rest 64 at a time. */
    uint64_t busy[HOUR / WORD + 1];
    spot_sink *sink;
    void *context;
};

static bool
emit(struct hourly *h, double time, enum spot_kind kind, uint64_t node,
     struct rec_error *err)
{
    char name[32];
    int len = snprintf(name, sizeof name, "node%llu", (unsigned long long)node);
    struct spot_event event = {time, kind, 1, {name, (size_t)len}};
    return h->sink(h->context, &event, err);
}

static bool
add_node(struct hourly *h, double time, struct rec_error *err)
{
    if (!rec_grow(&h->node, &h->room, h->nodes + 1, sizeof *h->node, err))
        return false;
    h->node[h->nodes++] = ++h->names;
    h->n++;
    return emit(h, time, SPOT_ADD, h->names, err);
}

static void
set_busy(struct hourly *h, uint32_t second)
{
    h->busy[second / WORD] |= UINT64_C(1) << second % WORD;
}

/* Appends a removal to a second's list. The caller keeps the list in order of addition:
 * no node that was added after `node` may be in it yet. */
static bool
keep_removal(struct hourly *h, uint32_t second, size_t node, struct rec_error *err)
{
    struct second *at = &h->second[second];
    uint32_t i = (uint32_t)h->nremovals;
    if (!rec_grow(&h->removal, &h->removal_room, h->nremovals + 1, sizeof *h->removal,
                  err))
        return false;
    h->removal[h->nremovals++] = (struct removal){node, REC_NONE};
    if (at->first == REC_NONE)
        at->first = i;
    else
        h->removal[at->last].next = i;
    at->last = i;
    set_busy(h, second);
    return true;
}

/* The node that was just added may leave in the same hour. A second before `added` is
 * drawn in vain: the node stays. */
static bool
draw_early_removal(struct hourly *h, uint32_t added, double chance, struct rec_error *err)
{
    uint32_t second;
    if (!(chance > rng_uniform(h->rng)))
        return true;
    second = rng_below(h->rng, HOUR);
    return second < added || keep_removal(h, second, h->nodes - 1, err);
}

/* Additions come first, and a node added now may be appended to this second's removals
 * before those are played. */
static bool
play_second(struct hourly *h, double start, uint32_t second, double removal,
            struct rec_error *err)
{
    struct second *at = &h->second[second];
    for (; at->additions > 0; at->additions--)
        if (h->n < h->options->desired && (!add_node(h, start + second, err) ||
                                           !draw_early_removal(h, second, removal, err)))
            return false;
    for (; at->first != REC_NONE; at->first = h->removal[at->first].next) {
        size_t node = h->removal[at->first].node;
        uint64_t name = h->node[node];
        h->node[node] = 0;
        h->n--;
        if (!emit(h, start + second, SPOT_PREEMPT, name, err))
            return false;
    }
    return true;
}

/* Plays the seconds whose bits are set, in order. An early removal sets bits only for
 * this second or later ones, so the lowest bit is still this second's when it is
 * cleared. */
static bool
play_hour(struct hourly *h, double start, double removal, struct rec_error *err)
{
    double end = h->options->minutes * 60;
    for (uint32_t word = 0; word <= HOUR / WORD; word++)
        while (h->busy[word]) {
            uint32_t second = word * WORD + (uint32_t)__builtin_ctzll(h->busy[word]);
            if (start + second >= end)
                return true;
            if (!play_second(h, start, second, removal, err))
                return false;
            h->busy[word] &= h->busy[word] - 1;
        }
    return true;
}

/* Closes the gaps in `node`. Only between hours: removals hold indices of it. */
static void
forget_the_gone(struct hourly *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->nodes; i++)
        if (h->node[i])
            h->node[n++] = h->node[i];
    h->nodes = n;
    h->nremovals = 0;
}

/* Draws the hour's removals and additions into the table of seconds, and plays them. The
 * order of the draws may not change: a seed must always give the same trace. */
static bool
draw_hour(struct hourly *h, double start, unsigned hour, struct rec_error *err)
{
    double removal = h->options->removal[hour];
    uint64_t trials;

    forget_the_gone(h);
    for (size_t i = 0; i < h->nodes; i++)
        if (removal > rng_uniform(h->rng) &&
            !keep_removal(h, rng_below(h->rng, HOUR), i, err))
            return false;
    trials = h->options->desired -
             (h->n < h->options->desired ? h->n : h->options->desired) + h->nremovals;
    for (uint64_t i = 0; i < trials; i++)
        if (h->addition[hour] > rng_uniform(h->rng)) {
            uint32_t second = rng_below(h->rng, HOUR);
            h->second[second].additions++;
            set_busy(h, second);
        }
    return play_hour(h, start, removal, err);
}

static bool
draw_all(struct hourly *h, struct rec_error *err)
{
    const struct spot_hourly *o = h->options;
    double hours = ceil(o->minutes / 60);

    for (size_t i = 0; i < HOUR; i++)
        h->second[i].first = REC_NONE;
    memcpy(h->addition, o->addition, sizeof h->addition);
    if (o->random_addition)
        for (int i = 0; i < 24; i++)
            h->addition[i] = rng_uniform(h->rng);
    for (uint64_t i = 0; i < o->desired; i++)
        if (h->addition[o->start_hour] > rng_uniform(h->rng) && !add_node(h, 0, err))
            return false;
    for (double i = 0; i < hours; i++)
        if (!draw_hour(h, i * HOUR, (unsigned)fmod(i + o->start_hour, 24), err))
            return false;
    return true;
}

bool
spot_draw_hourly(const struct spot_hourly *options, spot_sink *sink, void *context,
                 struct rec_error *err)
{
    struct hourly h = {.options = options, .sink = sink, .context = context};
    /* every hour draws for each of the `desired` instances: there, it may leave; else, it
     * may come */
    double draws = (double)options->desired * (ceil(options->minutes / 60) + 1);
    bool ok;

    if (!rec_limit(&options->limit, draws * fmax(options->traces, 1), "draws", err))
        return false;
    h.rng = rng_new(options->seed, 0, err);
    ok = h.rng && draw_all(&h, err);
    rng_free(h.rng);
    free(h.node);
    free(h.removal);
    return ok;
}
