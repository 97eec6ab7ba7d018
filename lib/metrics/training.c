/* Training runs reduced to figures: shares of time, goodput, cost, value, and their
 * spread over many runs. */
#include "rampipe/metrics.h"

#include <math.h>
#include <stdlib.h>

enum quantity {
    STEPS,
    TIME,
    USEFUL,
    WASTED,
    RECONFIGURING,
    STALLED,
    IDLE,
    GOODPUT,
    THROUGHPUT,
    INSTANCES,
    COST,
    COST_RATE,
    VALUE,
    ON_DEMAND_THROUGHPUT,
    ON_DEMAND_COST_RATE,
    ON_DEMAND_VALUE,
    AGAINST_THROUGHPUT,
    AGAINST_COST_RATE,
    AGAINST_VALUE,
    NDERIVED
};

/* Quantities with a key are the value of that key. */
static const struct {
    const char *name, *unit, *key;
} quantities[] = {
    [STEPS] = {"steps", "", NULL},
    [TIME] = {"time", "s", NULL},
    [USEFUL] = {"useful share", "%", NULL},
    [WASTED] = {"wasted share", "%", NULL},
    [RECONFIGURING] = {"reconfiguring share", "%", NULL},
    [STALLED] = {"stalled share", "%", NULL},
    [IDLE] = {"idle share", "%", NULL},
    [GOODPUT] = {"goodput", "steps/h", NULL},
    [THROUGHPUT] = {"throughput", "samples/s", NULL},
    [INSTANCES] = {"instances", "", NULL},
    [COST] = {"cost", "US$", NULL},
    [COST_RATE] = {"cost rate", "US$/h", NULL},
    [VALUE] = {"value", "samples/s/(US$/h)", NULL},
    [ON_DEMAND_THROUGHPUT] = {"on-demand throughput", "samples/s", NULL},
    [ON_DEMAND_COST_RATE] = {"on-demand cost rate", "US$/h", NULL},
    [ON_DEMAND_VALUE] = {"on-demand value", "samples/s/(US$/h)", NULL},
    [AGAINST_THROUGHPUT] = {"throughput / on-demand", "", NULL},
    [AGAINST_COST_RATE] = {"cost rate / on-demand", "", NULL},
    [AGAINST_VALUE] = {"value / on-demand", "", NULL},
    {"preempted instances", "", "preempted"},
    {"preempted while active", "", "lost_active"},
    {"added instances", "", "added"},
    {"refused instances", "", "refused"},
    {"lost steps", "", "lost"},
    {"reconfigurations", "", "reconfigurations"},
    {"checkpoints", "", "checkpoints"},
    {"rendezvous", "", "rendezvous"},
    {"fatal failures", "", "fatal"},
    {"degraded time", "s", "degraded"},
    {"lifetime of an instance", "s", "lifetime_mean"},
    {"time between preemptions", "s", "preemption_mean"},
    {"published instances", "", "average_instances"},
    {"published performance", "samples/s", "average_performance"},
    {"published cost", "US$/h", "average_cost"},
    {"published value", "samples/s/(US$/h)", "average_value"},
};
enum { NQUANTITIES = sizeof quantities / sizeof *quantities };
_Static_assert(NQUANTITIES <= METRICS_TRAINING_MAX, "room for all quantities");

bool
metrics_training_start(struct metrics_training *t, const char *by, struct rec_error *err)
{
    *t = (struct metrics_training){.by = by};
    if (!rec_grow(&t->group, &t->room, 1, sizeof *t->group, err))
        return false;
    t->group[0] = (struct metrics_runs){.name = "all"};
    t->ngroups = 1;
    return true;
}

void
metrics_training_free(struct metrics_training *t)
{
    for (size_t i = 0; i < t->ngroups; i++)
        for (size_t q = 0; q < NQUANTITIES; q++)
            metrics_dist_free(&t->group[i].dist[q]);
    free(t->group);
    rec_map_free(&t->names);
    rec_arena_free(&t->arena);
}

/* ---- one run ------------------------------------------------------------- */

static bool
take_account(struct metrics_training *t, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    static const char *const states[] = {"useful", "wasted", "reconfiguring", "stalled"};
    for (size_t i = 0; i < 4; i++)
        if (rec_str_is(rec->field[1], states[i])) {
            t->accounted = true;
            return rec_get_number(reader, rec, 2, &t->seconds[i], err) &&
                   rec_get_number(reader, rec, 3, &t->instance_seconds[i], err);
        }
    return rec_reader_fail(reader, err,
                           "unknown state '%.*s': expected useful, wasted, "
                           "reconfiguring or stalled",
                           (int)rec->field[1].len, rec->field[1].ptr);
}

/* a / b; unknown where b is 0. */
static double
ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

struct run {
    double steps, seconds, samples, price;
    double on_demand_price, on_demand_instances, on_demand_step;
};

static bool
read_run(const struct rec_reader *reader, const struct rec *rec, struct run *run,
         struct rec_error *err)
{
    double start, end;
    uint64_t steps;
    *run = (struct run){.samples = NAN,
                        .price = NAN,
                        .on_demand_price = NAN,
                        .on_demand_instances = NAN,
                        .on_demand_step = NAN};
    if (!rec_need(reader, rec, err) || !rec_get_number(reader, rec, 2, &start, err) ||
        !rec_get_number(reader, rec, 3, &end, err) ||
        !rec_get_count(reader, rec, 4, &steps, err) ||
        !rec_key_number(reader, rec, "samples", &run->samples, err) ||
        !rec_key_number(reader, rec, "price", &run->price, err) ||
        !rec_key_number(reader, rec, "on_demand_price", &run->on_demand_price, err) ||
        !rec_key_number(reader, rec, "on_demand_instances", &run->on_demand_instances,
                        err) ||
        !rec_key_number(reader, rec, "on_demand_step", &run->on_demand_step, err))
        return false;
    if (end < start)
        return rec_reader_fail(reader, err, "the run ends before it starts");
    run->steps = (double)steps;
    run->seconds = end - start;
    return true;
}

static void
derive(const struct metrics_training *t, const struct run *run, double value[])
{
    double hours = run->seconds / 3600, instance_seconds = 0;
    value[STEPS] = run->steps;
    value[TIME] = run->seconds;
    for (size_t i = 0; i < 4; i++) {
        value[USEFUL + i] =
            t->accounted ? ratio(t->seconds[i], run->seconds) : (double)NAN;
        instance_seconds += t->accounted ? t->instance_seconds[i] : (double)NAN;
    }
    value[IDLE] = value[RECONFIGURING] + value[STALLED];
    value[GOODPUT] = ratio(run->steps, hours);
    value[THROUGHPUT] = ratio(run->steps * run->samples, run->seconds);
    value[INSTANCES] = ratio(instance_seconds, run->seconds);
    value[COST] = instance_seconds / 3600 * run->price;
    value[COST_RATE] = ratio(value[COST], hours);
    value[VALUE] = ratio(value[THROUGHPUT], value[COST_RATE]);
    value[ON_DEMAND_THROUGHPUT] = ratio(run->samples, run->on_demand_step);
    value[ON_DEMAND_COST_RATE] = run->on_demand_instances * run->on_demand_price;
    value[ON_DEMAND_VALUE] =
        ratio(value[ON_DEMAND_THROUGHPUT], value[ON_DEMAND_COST_RATE]);
    value[AGAINST_THROUGHPUT] = ratio(value[THROUGHPUT], value[ON_DEMAND_THROUGHPUT]);
    value[AGAINST_COST_RATE] = ratio(value[COST_RATE], value[ON_DEMAND_COST_RATE]);
    value[AGAINST_VALUE] = ratio(value[VALUE], value[ON_DEMAND_VALUE]);
}

/* ---- groups -------------------------------------------------------------- */

/* The group of a record, 0 if all are one; REC_NONE: *err. */
static uint32_t
find_group(struct metrics_training *t, const struct rec *rec, struct rec_error *err)
{
    struct rec_str name = rec_str("-");
    uint32_t i;
    const char *copy;
    if (!t->by)
        return 0;
    if (strcmp(t->by, "model") == 0)
        name = rec->field[1];
    else
        rec_find_key(rec, t->by, &name);
    i = rec_map_get(&t->names, name);
    if (i != REC_NONE)
        return i;
    copy = rec_arena_copy(&t->arena, name, err);
    if (!copy || !rec_grow(&t->group, &t->room, t->ngroups + 1, sizeof *t->group, err) ||
        !rec_map_add(&t->names, rec_str(copy), (uint32_t)t->ngroups, err))
        return REC_NONE;
    t->group[t->ngroups] = (struct metrics_runs){.name = copy};
    return (uint32_t)t->ngroups++;
}

static bool
add_run(struct metrics_runs *group, const double value[], double target,
        struct rec_error *err)
{
    group->runs++;
    group->targeted = group->targeted || target > 0;
    group->short_of_target += value[STEPS] < target;
    for (size_t q = 0; q < NQUANTITIES; q++)
        if (!isnan(value[q]) && !metrics_dist_add(&group->dist[q], value[q], err))
            return false;
    return true;
}

static bool
take_run(struct metrics_training *t, const struct rec_reader *reader,
         const struct rec *rec, struct rec_error *err)
{
    double value[NQUANTITIES], target = 0;
    struct rec_str text;
    struct run run;
    uint32_t group;

    if (!read_run(reader, rec, &run, err) ||
        !rec_key_number(reader, rec, "target", &target, err))
        return false;
    derive(t, &run, value);
    for (size_t q = NDERIVED; q < NQUANTITIES; q++) {
        value[q] = NAN;
        if (rec_find_key(rec, quantities[q].key, &text) &&
            (!rec_parse_num(text, &value[q]) || isinf(value[q])))
            return rec_reader_fail(reader, err, "%s must be a number, got '%.*s'",
                                   quantities[q].key, (int)text.len, text.ptr);
    }
    t->accounted = false;
    memset(t->seconds, 0, sizeof t->seconds);
    memset(t->instance_seconds, 0, sizeof t->instance_seconds);
    group = find_group(t, rec, err);
    return group != REC_NONE && add_run(&t->group[0], value, target, err) &&
           (group == 0 || add_run(&t->group[group], value, target, err));
}

int
metrics_training_take(struct metrics_training *t, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err)
{
    if (rec->type == REC_ACCOUNT)
        return rec_need(reader, rec, err) && take_account(t, reader, rec, err) ? 1 : -1;
    if (rec->type == REC_TRAINED)
        return take_run(t, reader, rec, err) ? 1 : -1;
    return 0;
}

/* ---- figures ------------------------------------------------------------- */

static void
emit_spread(const char *group, const char *metric, struct metrics_dist *d,
            metrics_emit *emit, void *context)
{
    double sd = metrics_dist_deviation(d);
    emit(context, group, metric, "count", (double)d->n);
    emit(context, group, metric, "mean", d->mean);
    emit(context, group, metric, "se", sd / sqrt((double)d->n));
    emit(context, group, metric, "sd", sd);
    emit(context, group, metric, "min", d->least);
    emit(context, group, metric, "p50", metrics_dist_quantile(d, 0.5));
    emit(context, group, metric, "p95", metrics_dist_quantile(d, 0.95));
    emit(context, group, metric, "max", d->most);
}

static int
compare_groups(const void *a, const void *b)
{
    const struct metrics_runs *x = a, *y = b;
    return metrics_compare_names(x->name, y->name);
}

void
metrics_training_sort(struct metrics_training *t)
{
    if (t->ngroups > 2)
        qsort(t->group + 1, t->ngroups - 1, sizeof *t->group, compare_groups);
}

void
metrics_training_figures(struct metrics_training *t, metrics_emit *emit, void *context)
{
    for (size_t i = 0; i < t->ngroups; i++) {
        struct metrics_runs *g = &t->group[i];
        emit(context, g->name, "runs", "value", (double)g->runs);
        if (g->targeted)
            emit(context, g->name, "runs short of their steps", "value",
                 (double)g->short_of_target);
        for (size_t q = 0; q < NQUANTITIES; q++) {
            if (g->dist[q].n == 0)
                continue;
            if (g->runs == 1)
                emit(context, g->name, quantities[q].name, "value", g->dist[q].mean);
            else
                emit_spread(g->name, quantities[q].name, &g->dist[q], emit, context);
        }
    }
}

const char *
metrics_training_unit(const char *metric)
{
    for (size_t q = 0; q < NQUANTITIES; q++)
        if (strcmp(metric, quantities[q].name) == 0)
            return quantities[q].unit;
    return "";
}

double
metrics_training_mean(const struct metrics_runs *group, const char *metric)
{
    for (size_t q = 0; q < NQUANTITIES; q++)
        if (strcmp(metric, quantities[q].name) == 0)
            return group->dist[q].n > 0 ? group->dist[q].mean : (double)NAN;
    return NAN;
}
