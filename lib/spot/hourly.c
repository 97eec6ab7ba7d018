/* Spot traces by chances of the hour of day: the later simulator's generator. */
#include "rampipe/random.h"
#include "rampipe/spot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOUR = 3600 };

struct change {
    double time;
    uint64_t node; /* removals: its number; additions: order */
    bool add;
};

struct hourly {
    const struct spot_hourly *options;
    double addition[24];
    struct rng *rng;
    uint64_t *node; /* the instances, in order of addition */
    size_t n, room;
    uint64_t names; /* given so far */
    struct change *removal, *add;
    size_t nremovals, removal_room, nadds, add_room, next_removal;
    spot_sink *sink;
    void *context;
};

static int
by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

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
push(struct change **list, size_t *n, size_t *room, struct change change,
     struct rec_error *err)
{
    if (!rec_grow(list, room, *n + 1, sizeof **list, err))
        return false;
    (*list)[(*n)++] = change;
    return true;
}

static bool
add_node(struct hourly *h, double time, struct rec_error *err)
{
    if (!rec_grow(&h->node, &h->room, h->n + 1, sizeof *h->node, err))
        return false;
    h->node[h->n++] = ++h->names;
    return emit(h, time, SPOT_ADD, h->names, err);
}

static bool
remove_node(struct hourly *h, const struct change *change, struct rec_error *err)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->node[i] == change->node) {
            memmove(h->node + i, h->node + i + 1, (--h->n - i) * sizeof *h->node);
            return emit(h, change->time, SPOT_PREEMPT, change->node, err);
        }
    return true; /* an hour never removes a node twice */
}

/* A second of the hour that starts at `start`. */
static double
some_second(struct hourly *h, double start)
{
    return start + rng_below(h->rng, HOUR);
}

/* A node that just came may leave in the same hour, not before it came. */
static bool
draw_early_removal(struct hourly *h, double start, double added, double chance,
                   struct rec_error *err)
{
    struct change change = {0, h->names, false};
    size_t i;
    if (!(chance > rng_uniform(h->rng)))
        return true;
    change.time = some_second(h, start);
    if (change.time < added)
        return true;
    if (!push(&h->removal, &h->nremovals, &h->removal_room, change, err))
        return false;
    for (i = h->nremovals - 1;
         i > h->next_removal && by_time(&change, &h->removal[i - 1]) < 0; i--)
        h->removal[i] = h->removal[i - 1];
    h->removal[i] = change;
    return true;
}

static bool
play_hour(struct hourly *h, double start, double removal, struct rec_error *err)
{
    double end = h->options->minutes * 60;
    size_t next = 0;
    h->next_removal = 0;
    for (;;) {
        const struct change *gone =
            h->next_removal < h->nremovals ? &h->removal[h->next_removal] : NULL;
        const struct change *come = next < h->nadds ? &h->add[next] : NULL;
        if (gone && come && !(gone->time < come->time))
            gone = NULL;
        if ((!gone && !come) || (gone ? gone : come)->time >= end)
            return true;
        if (gone) {
            struct change change = *gone;
            h->next_removal++;
            if (!remove_node(h, &change, err))
                return false;
            continue;
        }
        next++;
        if (h->n < h->options->desired &&
            (!add_node(h, come->time, err) ||
             !draw_early_removal(h, start, come->time, removal, err)))
            return false;
    }
}

static bool
draw_hour(struct hourly *h, double start, unsigned hour, struct rec_error *err)
{
    double removal = h->options->removal[hour];
    uint64_t trials;

    h->nremovals = h->nadds = 0;
    for (size_t i = 0; i < h->n; i++)
        if (removal > rng_uniform(h->rng)) {
            struct change change = {some_second(h, start), h->node[i], false};
            if (!push(&h->removal, &h->nremovals, &h->removal_room, change, err))
                return false;
        }
    trials = h->options->desired -
             (h->n < h->options->desired ? h->n : h->options->desired) + h->nremovals;
    for (uint64_t i = 0; i < trials; i++)
        if (h->addition[hour] > rng_uniform(h->rng)) {
            struct change change = {some_second(h, start), i, true};
            if (!push(&h->add, &h->nadds, &h->add_room, change, err))
                return false;
        }
    if (h->nremovals > 0)
        qsort(h->removal, h->nremovals, sizeof *h->removal, by_time);
    if (h->nadds > 0)
        qsort(h->add, h->nadds, sizeof *h->add, by_time);
    return play_hour(h, start, removal, err);
}

static bool
draw_all(struct hourly *h, struct rec_error *err)
{
    const struct spot_hourly *o = h->options;
    double hours = ceil(o->minutes / 60);

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
    /* each instance that is there may leave, each that is not may come */
    double draws = (double)options->desired * (ceil(options->minutes / 60) + 1);
    bool ok;

    if (options->most > 0 && draws > options->most)
        return rec_fail(err, REC_USAGE,
                        "a trace would take about %.3g draws, more than the %.3g allowed",
                        draws, options->most);

    h.rng = rng_new(options->seed, 0, err);
    ok = h.rng && draw_all(&h, err);
    rng_free(h.rng);
    free(h.node);
    free(h.removal);
    free(h.add);
    return ok;
}
