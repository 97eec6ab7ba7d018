/*
 * Replay: carries out what an allocator decided, and checks it against the rules of a
 * plan. It believes nothing that the stream says: a broken rule ends the simulation,
 * whatever program wrote the stream. Between records only ends of jobs happen, so they
 * are the only events; and where jobs share links, what their companies simulate, and
 * starts of jobs that had to wait for their servers.
 */
#include "loads.h"
#include "first.h"
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- layouts ------------------------------------------------------------- */

/* Forgets layouts that no job holds until there is room for another one of this graph. */
static void
make_room(struct sim_replay *r, const struct graph *graph)
{
    struct sim_layout *old;
    while ((old = sim_layouts_excess(&r->pool, sim_layout_bytes(graph)))) {
        r->layout[graph_stream_forget(&r->stream, rec_str(old->where.id))] = NULL;
        sim_layout_free(old);
    }
}

/* Takes a layout from the stream when all its places have come. */
static bool
take_layout(void *context, struct graph_layout *where, struct rec_error *err)
{
    struct sim_replay *r = context;
    const struct graph *graph = where->graph;
    struct sim_layout *layout;
    make_room(r, graph);
    if (!rec_grow(&r->layout, &r->layout_room, r->nlayouts + 1, sizeof *r->layout, err) ||
        !(layout = sim_layout_new(where, err)))
        return false;
    r->layout[r->nlayouts++] = layout;
    sim_layouts_add(&r->pool, layout);
    return graph_model_flops(graph, &layout->flops, err);
}

/* ---- beginning and end --------------------------------------------------- */

struct sim_replay *
sim_replay_new(const struct sim_replay_sink *sink, double until, struct rec_error *err)
{
    struct sim_replay *r = calloc(1, sizeof *r);
    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    r->sink = *sink;
    r->pool.explains = sink->explain != NULL;
    r->until = until;
    r->stream.await = true;
    r->stream.laid = take_layout;
    r->stream.context = r;
    r->pool.limit = SIM_LAYOUTS_MAX;
    return r;
}

void
sim_replay_keep(struct sim_replay *r, size_t bytes)
{
    r->pool.limit = bytes;
}

void
sim_replay_share(struct sim_replay *r, const struct sim_sharing *sharing, void *self,
                 double exact)
{
    r->pool.sharing = sharing;
    r->pool.shared = self;
    r->exact = exact;
}

void
sim_replay_measure(struct sim_replay *r, const struct collective_table *table)
{
    r->table = table;
}

void
sim_replay_advise(struct sim_replay *r, const char *advice)
{
    r->stream.store.advice = advice;
}

void
sim_replay_free(struct sim_replay *r)
{
    if (!r)
        return;
    sim_companies_free(r->companies); /* they use layouts */
    sim_faults_free(r->faults);
    sim_loads_free(r->pool.loads);
    for (size_t i = 0; i < r->nlayouts; i++)
        sim_layout_free(r->layout[i]);
    for (size_t i = 0; i < r->nlive; i++) {
        free(r->live[i].id);
        free(r->live[i].graphs);
        free(r->live[i].claim);
        sim_first_free(r->live[i].first);
    }
    net_free(r->net);
    graph_stream_free(&r->stream);
    event_queue_free(&r->ends);
    free(r->layout);
    free(r->live);
    free(r->vacant);
    free(r->holder);
    free(r->free_at);
    free(r->servers);
    free(r->taken);
    free(r->due);
    free(r);
}

static bool broken(const struct rec_reader *reader, struct rec_error *err,
                   const char *rule, const char *format, ...) REC_PRINTF(4, 5);

static bool
broken(const struct rec_reader *reader, struct rec_error *err, const char *rule,
       const char *format, ...)
{
    struct rec_error what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    return rec_reader_fail(reader, err, "the rule '%s' is broken: %s", rule, what.text);
}

/* ---- jobs ---------------------------------------------------------------- */

/* Advances the time to that of a record. Jobs that finish at this time end first, so that
 * their servers are free for a job that starts now. */
static bool
pass_time(struct sim_replay *r, double time, struct rec_error *err)
{
    r->past = time > r->until;
    return event_clock_reach(r->clock, time, err) && sim_jobs_advance(r, time, err);
}

static bool
add_job(struct sim_replay *r, const struct graph_said *said, struct rec_error *err)
{
    struct live live = {.job = said->job};
    uint32_t index;

    if (!pass_time(r, live.job.arrival, err))
        return false;
    *said->tag = REC_NONE;
    if (r->past)
        return true;
    if (r->nvacant)
        index = r->vacant[--r->nvacant];
    else if (rec_grow(&r->live, &r->live_room, r->nlive + 1, sizeof *r->live, err))
        index = (uint32_t)r->nlive++;
    else
        return false;
    live.id = strndup(live.job.id.ptr, live.job.id.len);
    live.graphs = strndup(live.job.graphs.ptr, live.job.graphs.len);
    r->live[index] = live;
    if (!live.id || !live.graphs)
        return rec_fail_memory(err);
    r->live[index].job.id = rec_str(live.id);
    r->live[index].job.graphs = rec_str(live.graphs);
    r->waiting++;
    *said->tag = index;
    return true;
}

/* ---- rules of a plan ----------------------------------------------------- */

static bool
read_servers(struct sim_replay *r, const struct rec_reader *reader, struct rec_str list,
             struct rec_error *err)
{
    struct rec_error why;
    struct rec_str name;
    uint32_t n = 0;
    while (rec_str_split(&list, ',', &name)) {
        if (!rec_grow(&r->servers, &r->servers_room, n + 1, sizeof *r->servers, err))
            return false;
        if (!net_parse_server(r->net, name, &r->servers[n], &why))
            return broken(reader, err, "servers are of the cluster", "%s", why.text);
        n++;
    }
    return true;
}

/* Checks that each server of the job has no other job, comes only once in the list, and
 * has enough memory. */
static bool
check_servers(struct sim_replay *r, const struct rec_reader *reader, uint32_t index,
              struct rec_error *err)
{
    const struct sim_layout *layout = r->live[index].layout;
    double time = r->live[index].start;
    char name[NET_NAME_MAX];
    bool held;

    for (uint32_t i = 0; i < layout->where.nslots; i++) {
        uint32_t server = r->servers[i];
        net_format_server(r->net, server, name);
        if (r->holder[server] == r->starts)
            return broken(reader, err, "the slots of a job are different servers",
                          "server %s is there twice", name);
        held = r->companies ? sim_jobs_queue(r, index, i) : r->holder[server] > 0;
        if (held && r->free_at[server] > time)
            return broken(
                reader, err, "one job at a time on a server",
                "job '%s' takes server %s at %.17g, but another job has it until %.17g",
                r->live[index].id, name, time, r->free_at[server]);
        r->holder[server] = r->starts;
    }
    if (layout->memory > net_memory(r->net) * (1 + 1e-12)) {
        net_format_server(r->net, r->servers[layout->full_slot], name);
        return broken(reader, err, "the memory of a server is not exceeded",
                      "job '%s' needs %.17g bytes on server %s, which has %.17g",
                      r->live[index].id, layout->memory, name, net_memory(r->net));
    }
    return true;
}

/* Checks that no server needs more memory than it has while the ops of the job hold
 * bytes. */
static bool
check_peak(const struct sim_replay *r, const struct rec_reader *reader,
           const struct live *live, struct rec_error *err)
{
    const struct graph *graph = live->layout->where.graph;
    uint32_t slot;
    double peak = sim_layout_peak(live->layout, &live->cost, &slot);
    char name[NET_NAME_MAX];

    if (!(peak > net_memory(r->net) * (1 + 1e-12)))
        return true;
    net_format_server(r->net, r->servers[slot], name);
    return broken(reader, err, "the memory of a server is not exceeded",
                  "job '%s' needs %.17g bytes on server %s, which has %.17g, at the end "
                  "of op '%s'",
                  live->id, peak, name, net_memory(r->net),
                  graph->op[live->cost.step.peak_op].id);
}

/* ---- records ------------------------------------------------------------- */

static bool
take_cluster(struct sim_replay *r, struct rec_error *err)
{
    uint32_t n = net_servers(r->net);
    r->holder = calloc(n, sizeof *r->holder);
    r->free_at = calloc(n, sizeof *r->free_at);
    if (!r->holder || !r->free_at)
        return rec_fail_memory(err);
    return true;
}

/* All records of the cluster have come: the jobs can share its links. */
static bool
open_net(struct sim_replay *r, struct rec_error *err)
{
    const struct net_fault *fault;
    if (r->pool.sharing)
        return sim_jobs_share(r, err);
    return net_faults(r->net, &fault) == 0 ||
           rec_fail_at(err, fault->file, fault->line,
                       "a link changes while jobs run, but nothing shares the links: the "
                       "time that an exchange takes alone does not say when. Faults need "
                       "contention");
}

/* Takes the records of the cluster. */
static bool
read_net(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
         struct rec_error *err)
{
    struct net_reading reading = {r->net, r->net_open};
    bool ok = net_reading_take(&reading, reader, rec, NULL, err);
    bool closed = !reading.open && (r->net_open || rec->type == REC_CLUSTER);
    struct rec_error why;
    r->net = reading.net;
    r->net_open = reading.open;
    if (ok && rec->type == REC_CLUSTER && r->table &&
        !net_measure(r->net, r->table, &why))
        return rec_reader_fail(reader, err, "%s", why.text);
    return ok && (!closed || open_net(r, err));
}

/* What ranks exchange that a graph leaves out would share links with what it has. */
static bool
check_folded(const struct sim_replay *r, const struct rec_reader *reader,
             const struct graph *graph, struct rec_error *err)
{
    struct rec_str ranks;
    if (!r->pool.sharing || !graph_key(graph, "stands_for", &ranks))
        return true;
    return rec_reader_fail(reader, err,
                           "graph '%s' is folded: one rank stands for %.*s, whose "
                           "exchanges would share links with its own. A graph of all "
                           "ranks (unfolded) has them, or nothing shares the links "
                           "(without contention)",
                           graph->id, (int)ranks.len, ranks.ptr);
}

static bool
take_alloc(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
           const struct graph_said *said, struct rec_error *err)
{
    uint32_t index = *said->tag;
    struct sim_layout *layout = r->layout[said->layout];
    struct rec_error inner;
    double alone;
    struct live *live;

    if (!pass_time(r, said->time, err))
        return false;
    if (r->past)
        return true;
    if (!read_servers(r, reader, rec->field[5], err))
        return false;
    live = &r->live[index];
    live->start = said->time;
    live->layout = layout;
    sim_layout_hold(layout);
    live->number = ++r->starts;
    if (((r->companies || r->sink.explain) && !sim_jobs_claim(r, index, err)) ||
        !check_servers(r, reader, index, err) ||
        !check_folded(r, reader, layout->where.graph, err))
        return false;
    if (!sim_layout_cost(layout, r->net, r->servers, &live->cost, &inner)) {
        *err = inner;
        return inner.code == REC_DATA
                   ? rec_reader_fail(reader, err, "job '%s': %s", live->id, inner.text)
                   : false;
    }
    if (!check_peak(r, reader, live, err))
        return false;
    alone = said->time + live->cost.estimate * live->job.steps;
    if (!isfinite(alone))
        return rec_reader_fail(reader, err,
                               "job '%s' would run longer than a number holds", live->id);
    if (event_is_late(said->time, live->cost.estimate * live->job.steps))
        return rec_reader_fail(reader, err,
                               "job '%s' would take %.9g s from %.17g s on: so late, its "
                               "end cannot be told",
                               live->id, live->cost.estimate * live->job.steps,
                               said->time);
    for (uint32_t i = 0; i < layout->where.nslots; i++)
        r->free_at[r->servers[i]] = alone;
    r->waiting--;
    return (live->claim && live->claim->awaits > 0) ||
           sim_jobs_start(r, index, live->claim ? live->claim->server : r->servers,
                          said->time, err);
}

static bool
take_block(struct sim_replay *r, const struct graph_said *said, struct rec_error *err)
{
    if (!pass_time(r, said->time, err))
        return false;
    if (r->past)
        return true;
    r->waiting--;
    return sim_jobs_forget(r, *said->tag, err);
}

static bool
take(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    struct graph_said said;
    if (!graph_stream_take(&r->stream, reader, rec, &said, err) ||
        !read_net(r, reader, rec, err))
        return false;
    switch (rec->type) {
    case REC_CLUSTER: return take_cluster(r, err);
    case REC_JOB: return add_job(r, &said, err);
    case REC_ALLOC: return take_alloc(r, reader, rec, &said, err);
    case REC_BLOCK: return take_block(r, &said, err);
    default: return true;
    }
}

/* The records of the plan are not passed on, and neither are blocks after the end of the
 * simulated time. All other records stay in the stream. */
static bool
is_consumed(const struct sim_replay *r, const struct rec *rec)
{
    return rec_is_part(rec, REC_GRAPH) || rec_is_part(rec, REC_LAYOUT) ||
           rec->type == REC_JOB || rec->type == REC_ALLOC ||
           (rec->type == REC_BLOCK && r->past);
}

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct sim_replay *r = self;
    r->clock = clock;
    if (!take(r, reader, rec, err))
        return -1;
    return is_consumed(r, rec);
}

static double
model_next(void *self)
{
    struct sim_replay *r = self;
    double next = sim_jobs_next(r);
    return next <= r->until ? next : (double)INFINITY;
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    return sim_jobs_advance(self, time, err);
}

/* The stream is over, and the jobs that finish in the simulated time have ended. All
 * others are unfinished, first those that have started. */
static bool
model_end(void *self, double time, struct rec_error *err)
{
    struct sim_replay *r = self;
    (void)time;
    if ((r->net_open && (!net_close(r->net, err) || !open_net(r, err))) ||
        !graph_stream_end(&r->stream, err) ||
        (!r->past && !graph_stream_decided(&r->stream, err)))
        return false;
    if (!sim_jobs_leave_all(r, err))
        return false;
    for (uint32_t i = 0; r->waiting && i < r->nlive; i++) {
        if (!r->live[i].id)
            continue;
        r->waiting--;
        if (!sim_jobs_leave(r, i, err))
            return false;
    }
    return sim_jobs_loads(r, err);
}

const struct event_model sim_replay_model = {"jobs",        model_take, model_next,
                                             model_advance, model_end,  NULL};
