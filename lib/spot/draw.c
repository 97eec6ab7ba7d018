/* Spot traces drawn from a model, by the published generator (a coin for each kind of
 * event in each interval; Thorpe et al. 2023) or by renewal processes; and the test of
 * Kolmogorov and Smirnov, by which drawn traces are compared with measured ones. */
#include "rampipe/random.h"
#include "rampipe/spot.h"

#include <math.h>
#include <stdlib.h>

/* Largest mean and deviation of an event's number of instances: the mean and many
 * deviations still fit a uint64_t. */
static const double COUNT_MAX = 1e12;

/* The pilot draws spacings to estimate how many a trace needs. It has a stream of its
 * own, so that the trace does not depend on it. */
enum { PILOT_DRAWS = 4096, PILOT_STREAM = 1 };

/* The published generator draws big additions uniformly from 11 to 31 instances. */
enum { BIG_LEAST = 11, BIG_RANGE = 21 };

/* Values to draw from, each with its weight as chance. */
struct bag {
    const struct spot_values *values;
    double *below; /* [i]: sum of the weights of values 0 to i; owned */
};

/* One kind of event, and the figures of the model that it is drawn by. */
struct source {
    enum spot_kind kind;
    double chance;       /* of an event in a minute; renewal: events a minute */
    double mean, std;    /* of the instances of an event */
    double big;          /* chance that an addition is big */
    double shape, scale; /* of Weibull spacings; the scale in seconds */
    struct bag spacings, counts;
    double next; /* renewal: time of the next event, seconds */
};

struct draw {
    const struct spot_drawing *drawing;
    struct rng *rng;
    double population; /* instances that are there, if the drawing is bounded */
    spot_sink *sink;
    void *context;
};

static bool
fill_bag(struct bag *bag, struct rec_error *err)
{
    double sum = 0;
    if (bag->values->n == 0)
        return true;
    if (!(bag->below = calloc(bag->values->n, sizeof *bag->below)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < bag->values->n; i++)
        bag->below[i] = sum += bag->values->at[i].weight;
    return true;
}

/* Binary search for the first value whose cumulative weight is above a uniform
 * variable. */
static double
from_bag(const struct draw *d, const struct bag *bag)
{
    size_t low = 0, high = bag->values->n - 1;
    double u = rng_uniform(d->rng) * bag->below[high];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bag->below[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return bag->values->at[low].value;
}

/* The instances of an event, by the published rule unless the model's own are asked for.
 * The rule takes the absolute value, so what is drawn has a larger mean than `mean`. */
static double
draw_count(const struct draw *d, const struct source *s)
{
    double n;
    if (d->drawing->empirical_counts)
        return from_bag(d, &s->counts);
    if (s->kind == SPOT_ADD && rng_uniform(d->rng) < s->big)
        return BIG_LEAST + rng_below(d->rng, BIG_RANGE);
    n = fabs(rint(s->mean + rng_normal(d->rng, s->std)));
    return n < 1 ? 1 : n;
}

/* Draws an event's instances and hands the event on. If the bounds leave it none, there
 * is no event; its count was drawn all the same. */
static bool
emit(struct draw *d, const struct source *s, double time, struct rec_error *err)
{
    struct spot_event event = {.time = time, .kind = s->kind};
    double n = draw_count(d, s);
    if (d->drawing->bounded) {
        double room = (double)d->drawing->capacity - d->population;
        n = fmin(n, s->kind == SPOT_ADD ? fmax(0, room) : d->population);
        d->population += s->kind == SPOT_ADD ? n : -n;
    }
    if (n < 1)
        return true;
    event.count = (uint64_t)n;
    return d->sink(d->context, &event, err);
}

/* The published generator. Each interval tosses both coins before it looks at either, and
 * if both events happen, the preemption comes first. */
static bool
draw_coins(struct draw *d, const struct source source[2], struct rec_error *err)
{
    double interval = d->drawing->interval;
    double tosses = floor(d->drawing->minutes * 60 / interval);
    for (double i = 0; i < tosses; i++) {
        double u[2] = {rng_uniform(d->rng), 0};
        u[1] = rng_uniform(d->rng);
        for (int k = 0; k < 2; k++)
            if (u[k] < source[k].chance * interval / 60 &&
                !emit(d, &source[k], i * interval, err))
                return false;
    }
    return true;
}

static double
draw_spacing(const struct draw *d, const struct source *s)
{
    if (d->drawing->process == SPOT_EMPIRICAL)
        return from_bag(d, &s->spacings);
    if (d->drawing->process == SPOT_WEIBULL)
        return rng_weibull(d->rng, s->scale, s->shape);
    return rng_exponential(d->rng, 60 / s->chance);
}

/* Two renewal processes side by side: the earlier next event happens, of equal ones the
 * preemption. A kind with no chance never comes. */
static bool
draw_renewals(struct draw *d, struct source source[2], struct rec_error *err)
{
    double end = d->drawing->minutes * 60;
    for (int k = 0; k < 2; k++)
        source[k].next = source[k].chance > 0 ? draw_spacing(d, &source[k]) : INFINITY;
    for (;;) {
        struct source *s = &source[source[1].next < source[0].next];
        if (s->next >= end)
            return true;
        if (!emit(d, s, s->next, err))
            return false;
        s->next += draw_spacing(d, s);
    }
}

static double
or_zero(double x)
{
    return isnan(x) ? 0 : x;
}

static struct source
make_source(const struct spot_model *m, enum spot_kind kind)
{
    struct source s = {.kind = kind};
    if (kind == SPOT_PREEMPT) {
        s.chance = or_zero(m->chance_preempt_minute);
        s.mean = m->preempt_mean;
        s.std = or_zero(m->preempt_std);
        s.shape = m->preempt_shape;
        s.scale = m->preempt_scale_s;
        s.spacings.values = &m->preempt_spacings;
        s.counts.values = &m->preempt_counts;
    } else {
        s.chance = or_zero(m->chance_add_minute);
        s.mean = m->regular_mean;
        s.std = or_zero(m->regular_std);
        s.big = or_zero(m->prob_big);
        s.shape = m->add_shape;
        s.scale = m->add_scale_s;
        s.spacings.values = &m->add_spacings;
        s.counts.values = &m->add_counts;
    }
    return s;
}

/* How many draws the trace will take: two coins an interval, or the number of spacings
 * until the end, by the mean of a pilot's draws. The pilot cuts each spacing at the end:
 * otherwise a few huge ones would make the mean large though nearly all are small. */
static bool
count_draws(const struct spot_drawing *drawing, const struct source source[2],
            double *draws, struct rec_error *err)
{
    double end = drawing->minutes * 60, sum;
    struct draw d = {.drawing = drawing};

    *draws = 2 * floor(end / drawing->interval);
    if (drawing->process == SPOT_COIN)
        return true;
    if (!(d.rng = rng_new(drawing->seed, PILOT_STREAM, err)))
        return false;
    *draws = 0;
    for (int k = 0; k < 2; k++) {
        sum = 0;
        for (int i = 0; i < PILOT_DRAWS && source[k].chance > 0; i++)
            sum += fmin(end, draw_spacing(&d, &source[k]));
        if (source[k].chance > 0 && end > 0)
            *draws += end * PILOT_DRAWS / sum;
    }
    rng_free(d.rng);
    return true;
}

static bool
check_draws(const struct spot_drawing *drawing, const struct source source[2],
            struct rec_error *err)
{
    double draws = 0;
    return drawing->limit.most <= 0 ||
           (count_draws(drawing, source, &draws, err) &&
            rec_limit(&drawing->limit, draws * fmax(drawing->traces, 1), "draws", err));
}

/* Does the model say all that drawing this kind of event needs? If its chance is 0 it
 * never comes, and nothing else is needed. */
static bool
check_source(const struct source *s, const struct spot_drawing *drawing,
             struct rec_error *err)
{
    const char *name = s->kind == SPOT_ADD ? "additions" : "preemptions";
    double longest = s->spacings.values->n > 0
                         ? s->spacings.values->at[s->spacings.values->n - 1].value
                         : 0;
    if (s->chance == 0)
        return true;
    if (drawing->process == SPOT_COIN && s->chance * drawing->interval / 60 > 1)
        return rec_fail(err, REC_USAGE,
                        "%s have the chance %g per interval, must be at most 1: make the "
                        "interval shorter, or draw spacings instead of coins",
                        name, s->chance * drawing->interval / 60);
    if (drawing->process == SPOT_WEIBULL && !(s->shape > 0 && s->scale > 0))
        return rec_fail(err, REC_USAGE,
                        "the model has no Weibull distribution of spacings of %s", name);
    if (drawing->process == SPOT_EMPIRICAL && !(longest > 0))
        return rec_fail(err, REC_USAGE, "the model has no list of spacings of %s", name);
    if (drawing->empirical_counts ? s->counts.values->n == 0
                                  : isnan(s->mean) && s->big < 1)
        return rec_fail(err, REC_USAGE,
                        "the model has no number of instances per event for %s", name);
    if (drawing->empirical_counts
            ? s->counts.values->at[s->counts.values->n - 1].value > COUNT_MAX
            : s->mean > COUNT_MAX || s->std > COUNT_MAX)
        return rec_fail(err, REC_USAGE,
                        "the numbers of instances in %s must be at most %g", name,
                        COUNT_MAX);
    return true;
}

bool
spot_draw(const struct spot_model *model, const struct spot_drawing *drawing,
          spot_sink *sink, void *context, struct rec_error *err)
{
    struct source source[2] = {make_source(model, SPOT_PREEMPT),
                               make_source(model, SPOT_ADD)};
    struct draw d = {drawing, NULL, (double)drawing->start, sink, context};
    bool ok;

    if (!check_source(&source[0], drawing, err) ||
        !check_source(&source[1], drawing, err))
        return false;
    d.rng = rng_new(drawing->seed, 0, err);
    ok = d.rng && fill_bag(&source[0].spacings, err) &&
         fill_bag(&source[0].counts, err) && fill_bag(&source[1].spacings, err) &&
         fill_bag(&source[1].counts, err) && check_draws(drawing, source, err) &&
         (drawing->process == SPOT_COIN ? draw_coins(&d, source, err)
                                        : draw_renewals(&d, source, err));
    for (int k = 0; k < 2; k++) {
        free(source[k].spacings.below);
        free(source[k].counts.below);
    }
    rng_free(d.rng);
    return ok;
}

/* ---- goodness of fit ----------------------------------------------------- */

/* Kolmogorov's limit distribution: Q(x) = 2 sum over k >= 1 of (-1)^(k-1) exp(-2 k^2
 * x^2). */
static double
kolmogorov(double x)
{
    double sum = 0, term;
    if (x < 0.2) /* the series is slow there, and Q is 1 to the last digit */
        return 1;
    for (int k = 1; k <= 100; k++) {
        term = rng_exp(-2.0 * k * k * x * x);
        sum += k % 2 ? term : -term;
        if (term < 1e-16)
            break;
    }
    return fmin(1, fmax(0, 2 * sum));
}

/* Walks both samples in order of value at once: after each value, the two distribution
 * functions are compared. Values are settled, so each comes once in a sample. */
struct spot_ks
spot_ks_test(const struct spot_values *a, const struct spot_values *b)
{
    struct spot_ks ks = {a->total, b->total, NAN, NAN};
    double below_a = 0, below_b = 0, root;
    size_t i = 0, j = 0;

    if (a->n == 0 || b->n == 0)
        return ks;
    ks.d = 0;
    while (i < a->n && j < b->n) {
        double x = fmin(a->at[i].value, b->at[j].value);
        if (a->at[i].value == x)
            below_a += a->at[i++].weight / a->total;
        if (b->at[j].value == x)
            below_b += b->at[j++].weight / b->total;
        ks.d = fmax(ks.d, fabs(below_a - below_b));
    }
    /* Stephens' correction for finite samples (1970) */
    root = sqrt(ks.n * ks.m / (ks.n + ks.m));
    ks.p = kolmogorov((root + 0.12 + 0.11 / root) * ks.d);
    return ks;
}
