/* What a value looks like before it learns, and with which weights it begins. */
#include "future.h"

#include <math.h>
#include <string.h>

/* Weights are drawn so that the sums of a layer are as large as those of the one before
 * (He et al., "Delving Deep into Rectifiers", 2015); about 60 inputs are not 0. */
static bool
draw_weights(struct alloc_value *v, uint32_t seed, struct rec_error *err)
{
    struct rng *rng = rng_new(seed, rng_stream("value"), err);
    if (!rng)
        return false;
    for (uint32_t i = 0; i < value_inputs(v); i++)
        for (uint32_t j = 0; j < v->units; j++)
            value_first(v, i)[j] = (float)rng_normal(rng, sqrt(2.0 / 60));
    for (uint32_t i = 0; i < v->units; i++)
        for (uint32_t j = 0; j < v->second; j++)
            value_second(v, i)[j] = (float)rng_normal(rng, sqrt(2.0 / v->units));
    for (uint32_t j = 0; j < v->second; j++)
        value_third(v)[j] = (float)rng_normal(rng, sqrt(1.0 / v->second));
    rng_free(rng);
    return true;
}

/* A start without kinds will do. */
static bool
same_kinds(const struct alloc_value *v, const struct alloc_value *start)
{
    bool same = start->nkinds == 0 || start->nkinds == v->nkinds;
    for (uint32_t i = 0; same && i < start->nkinds; i++)
        same = fabs(v->kind[i] - start->kind[i]) <= start->kind[i] / 10;
    return same;
}

/* Are its scales of time right for these jobs? */
static bool
same_work(const struct alloc_value *v, const struct alloc_value *start)
{
    return v->work <= 2 * start->work && v->work >= start->work / 2;
}

/* Takes over what the start's second layer and the result make of its units. The weights
 * of other units are 0 where they lead to units that the start has, and in the result. */
static void
take_layers(struct alloc_value *v, const struct alloc_value *start)
{
    size_t size = start->second * sizeof *v->weight;
    for (uint32_t i = 0; i < v->units; i++)
        if (i < start->units)
            memcpy(value_second(v, i), value_second(start, i), size);
        else
            memset(value_second(v, i), 0, size);
    memcpy(value_second_bias(v), value_second_bias(start), size);
    memset(value_third(v), 0, v->second * sizeof *v->weight);
    memcpy(value_third(v), value_third(start), size);
    *value_third_bias(v) = *value_third_bias(start);
}

/* Takes over the weights of n inputs; the start has them from `from` on, or not at all:
 * then they are 0. */
static void
take_inputs(struct alloc_value *v, uint32_t first, uint32_t n,
            const struct alloc_value *start, const uint32_t *from)
{
    for (uint32_t i = 0; i < n; i++)
        if (from)
            memcpy(value_first(v, first + i), value_first(start, *from + i),
                   start->units * sizeof *v->weight);
        else
            memset(value_first(v, first + i), 0, v->units * sizeof *v->weight);
}

/* Takes the weights of a start, if it is for the same cluster and jobs. Units and inputs
 * that it does not have change nothing at first: the others learn to listen to them. Its
 * scales of time stay: for jobs of other sizes they are wrong, and value_knows() would
 * not let it decide. False: it is for others. */
static bool
go_on(struct alloc_value *v, const struct alloc_value *start)
{
    uint32_t first = 0, ordered, kinds;
    if (!start || strcmp(start->cluster, v->cluster) != 0 ||
        start->nshapes != v->nshapes ||
        memcmp(start->size, v->size, v->nshapes * sizeof *v->size) != 0 ||
        !same_work(v, start) || !same_kinds(v, start))
        return false;
    ordered = value_ordered_at(start);
    kinds = value_kinds_at(start);
    take_inputs(v, 0, value_ordered_at(v), start, &first);
    take_inputs(v, value_ordered_at(v), value_kinds_at(v) - value_ordered_at(v), start,
                start->ordered ? &ordered : NULL);
    take_inputs(v, value_kinds_at(v), v->nkinds, start, start->nkinds ? &kinds : NULL);
    memcpy(value_first_bias(v), value_first_bias(start),
           start->units * sizeof *v->weight);
    take_layers(v, start);
    v->work = start->work;
    for (uint32_t i = 0; i < start->nkinds; i++)
        v->kind[i] = start->kind[i];
    return true;
}

/* Fills in what the value says of its kinds. */
static void
find_kinds(const struct alloc_value_options *o, struct alloc_value *v)
{
    const struct alloc_value_world *w = o->world;
    struct rounds rounds = {0};
    double mean = 0;
    if (o->nworlds == 1 && w->nkinds >= 2 && w->nkinds <= ROUNDS_KINDS)
        v->nkinds = w->nkinds;
    for (uint32_t i = 0; i < v->nkinds; i++) {
        rounds_arrive(&rounds, i, w->sequential[i]);
        mean += w->sequential[i] / v->nkinds;
    }
    for (uint32_t i = 0; i < v->nkinds; i++)
        v->kind[i] = rounds.kind[i].sequential / mean;
}

/* Says what the value looks like. If it learns nothing it is like the start. */
static bool
find_form(const struct alloc_value_options *o, struct alloc_value *v,
          struct rec_error *err)
{
    const struct net *net = o->world->admission->placer.net;
    const struct alloc_value *start = o->start;
    if (!futures_small(o->world->admission))
        return rec_fail(err, REC_USAGE,
                        "values of states are for clusters of at most 64 servers, this "
                        "one has %u",
                        net_servers(net));
    v->units = o->units ? o->units : start ? start->units : VALUE_UNITS;
    if (start && v->units < start->units)
        return rec_fail(err, REC_USAGE,
                        "a value of %u units cannot go on with %u; to begin anew, leave "
                        "it out of the file",
                        start->units, v->units);
    v->second = start && o->jobs == 0 ? start->second : VALUE_SECOND;
    v->ordered = !start || o->jobs > 0 || start->ordered;
    net_describe(net, v->cluster);
    v->servers = net_servers(net);
    v->work = o->nworlds == 1 ? o->world->work : 0;
    v->discount = o->discount;
    find_kinds(o, v);
    return value_shapes_of(net, v->size, &v->nshapes, err);
}

struct alloc_value *
value_start(const struct alloc_value_options *o, bool *goes_on, struct rec_error *err)
{
    struct alloc_value form = {.margin = 0}, *v;
    if (!find_form(o, &form, err) || !(v = value_new(&form, err)))
        return NULL;
    if (!draw_weights(v, o->seed, err)) {
        alloc_value_free(v);
        return NULL;
    }
    *goes_on = go_on(v, o->start);
    if (*goes_on && o->jobs == 0)
        v->discount = o->start->discount;
    return v;
}
