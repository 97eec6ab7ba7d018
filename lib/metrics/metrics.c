/* The reducer: records in, groups and their figures out. */
#include "rampipe/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const quantity_names[METRICS_NQUANTITIES] = {
    "completion time",
    "waiting time",
    "speed-up",
    "comm overhead",
    "comp overhead",
    "utilisation",
    "servers",
    "degree",
    "sequential time",
    "deadline",
    "deadline fraction",
    "sequential time of blocked",
    "deadline of blocked",
    "deadline fraction of blocked"};

const char *
metrics_quantity_name(enum metrics_quantity quantity)
{
    return quantity_names[quantity];
}

/* Appends an empty group; its index, or -1. */
static int64_t
add_group(struct metrics *metrics, struct rec_str name, struct rec_error *err)
{
    struct metrics_group *group;
    const char *kept = rec_arena_copy(&metrics->arena, name, err);
    if (!kept || !rec_grow(&metrics->group, &metrics->room, metrics->ngroups + 1,
                           sizeof *metrics->group, err))
        return -1;
    group = &metrics->group[metrics->ngroups];
    *group = (struct metrics_group){.name = kept};
    return (int64_t)metrics->ngroups++;
}

bool
metrics_start(struct metrics *metrics, const char *by, struct rec_error *err)
{
    *metrics = (struct metrics){.by = by, .first = NAN};
    return add_group(metrics, rec_str("all"), err) == 0;
}

void
metrics_free(struct metrics *metrics)
{
    for (size_t i = 0; i < metrics->ngroups; i++) {
        for (int q = 0; q < METRICS_NQUANTITIES; q++)
            metrics_dist_free(&metrics->group[i].dist[q]);
        free(metrics->group[i].cause);
    }
    free(metrics->group);
    rec_map_free(&metrics->names);
    rec_arena_free(&metrics->arena);
    *metrics = (struct metrics){0};
}

/* ---- one record ---------------------------------------------------------- */

/* The keys that are read, NAN when absent. */
enum {
    STEPS,
    STEP,
    COMM,
    COMP,
    SERVERS,
    BUSY,
    SEQUENTIAL,
    DEADLINE,
    MEMORY,
    DEP_BYTES,
    FLOW_BYTES,
    DEMAND_MEMORY,
    DEMAND_BYTES,
    ARRIVAL,
    DEGREE,
    NKEYS
};
static const char *const key_names[NKEYS] = {
    "steps",      "step",          "comm",         "comp",    "servers",
    "busy",       "sequential",    "deadline",     "memory",  "dep_bytes",
    "flow_bytes", "demand_memory", "demand_bytes", "arrival", "degree"};

static bool
read_keys(const struct rec_reader *reader, const struct rec *rec, double key[NKEYS],
          struct rec_error *err)
{
    struct rec_str name, value;
    size_t at = 0;
    int status;

    for (int i = 0; i < NKEYS; i++)
        key[i] = NAN;
    while ((status = rec_next_key(reader, rec, &at, &name, &value, err)) > 0)
        for (int i = 0; i < NKEYS; i++) {
            if (!rec_str_is(name, key_names[i]))
                continue;
            if (!rec_parse_num(value, &key[i]) || key[i] < 0 ||
                (isinf(key[i]) && i != DEADLINE))
                return rec_reader_fail(reader, err,
                                       "%s must be a number >= 0%s, got '%.*s'",
                                       key_names[i], i == DEADLINE ? " or inf" : "",
                                       (int)(value.len < 60 ? value.len : 60), value.ptr);
            break;
        }
    return status == 0;
}

/* The name of the record's group: the value of the key, or "-". */
static struct rec_str
group_name(const struct metrics *metrics, const struct rec *rec, const double key[NKEYS],
           char text[REC_NUM_MAX])
{
    struct rec_str name = {"-", 1};
    if (strcmp(metrics->by, "graph") == 0 && rec->type == REC_DONE)
        return rec->field[2];
    if (strcmp(metrics->by, "cause") == 0)
        return rec->type == REC_BLOCK ? rec->field[3] : rec_str("done");
    if (strcmp(metrics->by, "deadline") == 0) {
        double fraction = key[DEADLINE] / (key[STEPS] * key[SEQUENTIAL]);
        if (isnan(fraction))
            return name;
        snprintf(text, REC_NUM_MAX, "%.3g", fraction);
        return rec_str(text);
    }
    rec_find_key(rec, metrics->by, &name);
    return name;
}

static bool
count_cause(struct metrics *metrics, struct metrics_group *group, struct rec_str name,
            struct rec_error *err)
{
    size_t i = 0;
    while (i < group->ncauses && !rec_str_is(name, group->cause[i].name))
        i++;
    if (i == group->ncauses) {
        const char *kept = rec_arena_copy(&metrics->arena, name, err);
        if (!kept || !rec_grow(&group->cause, &group->cause_room, i + 1,
                               sizeof *group->cause, err))
            return false;
        for (; i > 0 && strcmp(group->cause[i - 1].name, kept) > 0; i--)
            group->cause[i] = group->cause[i - 1];
        group->cause[i] = (struct metrics_cause){kept, 0};
        group->ncauses++;
    }
    group->cause[i].n++;
    return true;
}

static bool
observe(struct metrics_group *group, enum metrics_quantity quantity, double value,
        struct rec_error *err)
{
    return !isfinite(value) || metrics_dist_add(&group->dist[quantity], value, err);
}

static double
or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

/* Sequential time, deadline and fraction, three quantities from `first` on. */
static bool
observe_demand(struct metrics_group *group, enum metrics_quantity first,
               const double key[NKEYS], struct rec_error *err)
{
    double sequential = key[STEPS] * key[SEQUENTIAL];
    return observe(group, first, sequential, err) &&
           observe(group, first + 1, key[DEADLINE], err) &&
           observe(group, first + 2, key[DEADLINE] / sequential, err);
}

static bool
count_done(struct metrics_group *group, const struct metrics_job *job,
           const double key[NKEYS], struct rec_error *err)
{
    double completion = job->finish - job->arrival, run = job->finish - job->start;

    group->done++;
    group->running += run;
    group->server_seconds += or_zero(key[SERVERS] * run);
    group->busy_seconds += or_zero(key[BUSY] * key[SERVERS] * run);
    group->comm_seconds += or_zero(key[STEPS] * key[COMM]);
    group->comp_seconds += or_zero(key[STEPS] * key[COMP]);
    group->memory += or_zero(key[MEMORY]);
    group->dep_bytes += or_zero(key[DEP_BYTES]);
    group->flow_bytes += or_zero(key[FLOW_BYTES]);
    group->demand_memory += or_zero(key[DEMAND_MEMORY]);
    group->demand_bytes += or_zero(key[DEMAND_BYTES]);
    return observe(group, METRICS_COMPLETION, completion, err) &&
           observe(group, METRICS_WAITING, job->start - job->arrival, err) &&
           observe(group, METRICS_SPEEDUP, key[STEPS] * key[SEQUENTIAL] / completion,
                   err) &&
           observe(group, METRICS_COMM, key[COMM] / key[STEP], err) &&
           observe(group, METRICS_COMP, key[COMP] / key[STEP], err) &&
           observe(group, METRICS_BUSY, key[BUSY], err) &&
           observe(group, METRICS_SERVERS, key[SERVERS], err) &&
           observe(group, METRICS_DEGREE, key[DEGREE], err) &&
           observe_demand(group, METRICS_SEQUENTIAL, key, err);
}

static bool
count_job(struct metrics *metrics, struct metrics_group *group, const struct rec *rec,
          const struct metrics_job *job, const double key[NKEYS], struct rec_error *err)
{
    group->offered += or_zero(key[DEMAND_MEMORY]) + or_zero(key[DEMAND_BYTES]);
    if (!job->blocked)
        return count_done(group, job, key, err);
    group->blocked++;
    return count_cause(metrics, group, rec->field[3], err) &&
           observe_demand(group, METRICS_BLOCKED_SEQUENTIAL, key, err);
}

static bool
read_times(const struct rec_reader *reader, const struct rec *rec, const double *key,
           struct metrics_job *job, struct rec_error *err)
{
    if (job->blocked) {
        if (!rec_get_number(reader, rec, 2, &job->finish, err))
            return false;
        job->arrival = isnan(key[ARRIVAL]) ? job->finish : key[ARRIVAL];
        job->start = job->finish;
    } else if (!rec_get_number(reader, rec, 3, &job->arrival, err) ||
               !rec_get_number(reader, rec, 4, &job->start, err) ||
               !rec_get_number(reader, rec, 5, &job->finish, err))
        return false;
    if (job->arrival > job->start || job->start > job->finish)
        return rec_reader_fail(reader, err,
                               "a job arrives, starts and finishes in this order");
    return true;
}

static bool
read_cluster(struct metrics *metrics, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    double servers = 1;
    uint64_t n;
    if (!rec_need(reader, rec, err))
        return false;
    for (size_t i = 2; i <= 4; i++) {
        if (!rec_get_count(reader, rec, i, &n, err))
            return false;
        servers *= (double)n;
    }
    metrics->servers = servers;
    return true;
}

int
metrics_take(struct metrics *metrics, const struct rec_reader *reader,
             const struct rec *rec, struct metrics_job *job, struct rec_error *err)
{
    double key[NKEYS];
    char text[REC_NUM_MAX];
    uint32_t index;

    if (rec->type == REC_CLUSTER)
        return read_cluster(metrics, reader, rec, err) ? 0 : -1;
    if (rec->type != REC_DONE && rec->type != REC_BLOCK)
        return 0;
    *job = (struct metrics_job){.blocked = rec->type == REC_BLOCK};
    if (!rec_need(reader, rec, err) || !read_keys(reader, rec, key, err) ||
        !read_times(reader, rec, key, job, err))
        return -1;
    job->servers = key[SERVERS];
    job->busy = key[BUSY];
    job->memory = key[MEMORY];
    job->dep_bytes = key[DEP_BYTES];
    job->flow_bytes = key[FLOW_BYTES];
    metrics->jobs++;
    if (isnan(metrics->first) || job->arrival < metrics->first)
        metrics->first = job->arrival;
    metrics->last_arrival = fmax(metrics->last_arrival, job->arrival);
    metrics->last = fmax(metrics->last, job->finish);
    if (!count_job(metrics, &metrics->group[0], rec, job, key, err))
        return -1;
    if (metrics->by) {
        struct rec_str name = group_name(metrics, rec, key, text);
        index = rec_map_get(&metrics->names, name);
        if (index == REC_NONE) {
            int64_t new = add_group(metrics, name, err);
            if (new < 0 ||
                !rec_map_add(&metrics->names, rec_str(metrics->group[new].name),
                             index = (uint32_t) new, err))
                return -1;
        }
        if (!count_job(metrics, &metrics->group[index], rec, job, key, err))
            return -1;
    }
    return 1;
}

int
metrics_compare_names(const char *a, const char *b)
{
    double p, q;
    bool pa = rec_parse_num(rec_str(a), &p), qb = rec_parse_num(rec_str(b), &q);
    if (pa && qb && p != q)
        return p < q ? -1 : 1;
    if (pa != qb)
        return pa ? -1 : 1;
    return strcmp(a, b);
}

static int
compare_groups(const void *a, const void *b)
{
    const struct metrics_group *x = a, *y = b;
    return metrics_compare_names(x->name, y->name);
}

void
metrics_sort(struct metrics *metrics)
{
    qsort(metrics->group + 1, metrics->ngroups - 1, sizeof *metrics->group,
          compare_groups);
}

/* ---- figures ------------------------------------------------------------- */

static void
emit_summary(const struct metrics *metrics, const struct metrics_group *g,
             metrics_emit *emit, void *context)
{
    double jobs = (double)(g->done + g->blocked);
    double horizon = metrics->last - metrics->first;
    double arrivals = metrics->last_arrival - metrics->first;
    const struct {
        const char *name;
        double amount, by; /* left out when `by` is not > 0 */
    } figure[] = {
        {"jobs", jobs, 1},
        {"done", (double)g->done, 1},
        {"blocked", (double)g->blocked, 1},
        {"blocking rate", (double)g->blocked, jobs},
        {"acceptance rate", (double)g->done, jobs},
        {"horizon", horizon, 1},
        {"arrival rate", jobs - 1, arrivals},
        {"offered load", g->offered, g->offered > 0 ? arrivals : 0},
        {"jobs running", g->running, horizon},
        {"servers in use", g->server_seconds, g->dist[METRICS_SERVERS].n ? horizon : 0},
        {"mounted utilisation", g->busy_seconds, g->server_seconds},
        {"cluster utilisation", g->busy_seconds, metrics->servers * horizon},
        {"comm overhead, time weighted", g->comm_seconds,
         g->dist[METRICS_COMM].n ? g->running : 0},
        {"comp overhead, time weighted", g->comp_seconds,
         g->dist[METRICS_COMP].n ? g->running : 0},
        {"compute throughput", g->memory, g->memory > 0 ? horizon : 0},
        {"dep throughput", g->dep_bytes, g->dep_bytes > 0 ? horizon : 0},
        {"flow throughput", g->flow_bytes, g->flow_bytes > 0 ? horizon : 0},
        {"cluster throughput", g->memory + g->dep_bytes,
         g->memory + g->dep_bytes > 0 ? horizon : 0},
        {"demand compute throughput", g->demand_memory,
         g->demand_memory > 0 ? horizon : 0},
        {"demand dep throughput", g->demand_bytes, g->demand_bytes > 0 ? horizon : 0},
        {"demand throughput", g->demand_memory + g->demand_bytes,
         g->demand_memory + g->demand_bytes > 0 ? horizon : 0},
    };
    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
        if (figure[i].by > 0)
            emit(context, g->name, figure[i].name, "value",
                 figure[i].amount / figure[i].by);
    for (size_t i = 0; i < g->ncauses; i++) {
        char name[100];
        snprintf(name, sizeof name, "blocked: %.80s", g->cause[i].name);
        emit(context, g->name, name, "value", (double)g->cause[i].n);
        snprintf(name, sizeof name, "blocking rate: %.80s", g->cause[i].name);
        emit(context, g->name, name, "value", (double)g->cause[i].n / jobs);
    }
}

void
metrics_figures(struct metrics *metrics, metrics_emit *emit, void *context)
{
    static const struct {
        const char *name;
        double p;
    } quantile[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};

    for (size_t i = 0; i < metrics->ngroups; i++) {
        struct metrics_group *g = &metrics->group[i];
        emit_summary(metrics, g, emit, context);
        for (int q = 0; q < METRICS_NQUANTITIES; q++) {
            struct metrics_dist *d = &g->dist[q];
            if (d->n == 0)
                continue;
            emit(context, g->name, quantity_names[q], "count", (double)d->n);
            emit(context, g->name, quantity_names[q], "mean", d->mean);
            emit(context, g->name, quantity_names[q], "sd", metrics_dist_deviation(d));
            emit(context, g->name, quantity_names[q], "min", d->least);
            for (int p = 0; p < 3; p++)
                emit(context, g->name, quantity_names[q], quantile[p].name,
                     metrics_dist_quantile(d, quantile[p].p));
            emit(context, g->name, quantity_names[q], "max", d->most);
        }
    }
}

/* ---- series -------------------------------------------------------------- */

enum { BINS_MAX = 10000000 };

static struct metrics_bin *
bin_at(struct metrics_series *series, double time, struct rec_error *err)
{
    double index = floor(time / series->width);
    size_t need;
    if (index >= BINS_MAX) {
        rec_fail(err, REC_DATA,
                 "--series %g makes more than %d intervals; take a larger one",
                 series->width, BINS_MAX);
        return NULL;
    }
    need = (size_t)index + 1;
    if (!rec_grow(&series->bin, &series->room, need, sizeof *series->bin, err))
        return NULL;
    for (; series->nbins < need; series->nbins++)
        series->bin[series->nbins] = (struct metrics_bin){0};
    return &series->bin[need - 1];
}

bool
metrics_series_add(struct metrics_series *series, const struct metrics_job *job,
                   struct rec_error *err)
{
    struct metrics_bin *bin = bin_at(series, job->finish, err);
    double width = series->width;

    if (!bin)
        return false;
    if (job->blocked)
        bin->blocked++;
    else {
        bin->done++;
        bin->completion += job->finish - job->arrival;
        bin->memory += or_zero(job->memory);
        bin->dep_bytes += or_zero(job->dep_bytes);
        bin->flow_bytes += or_zero(job->flow_bytes);
        series->bin[(size_t)(job->start / width)].started++;
    }
    series->bin[(size_t)(job->arrival / width)].arrived++;
    if (job->blocked)
        return true;
    for (size_t i = (size_t)(job->start / width); i < series->nbins; i++) {
        double from = fmax(job->start, (double)i * width);
        double to = fmin(job->finish, (double)(i + 1) * width);
        if (from >= job->finish)
            break;
        series->bin[i].running += to - from;
        series->bin[i].server_seconds += or_zero(job->servers * (to - from));
        series->bin[i].busy_seconds += or_zero(job->busy * job->servers * (to - from));
    }
    return true;
}

void
metrics_series_free(struct metrics_series *series)
{
    free(series->bin);
    *series = (struct metrics_series){0};
}
