/*
 * Replay: what an allocator decided, checked against RAMP's rules and carried out. It
 * believes nothing: whoever wrote the stream, a broken rule ends the simulation.
 */
#include "rampipe/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A job, from its record to its end. */
struct live {
    char *id, *graphs;
    struct graph_job job;
    struct sim_layout *layout; /* NULL: it has not started */
    struct sim_cost cost;
    double start, finish;
};

struct sim_replay {
    struct sim_replay_sink sink;
    struct sim_clock *clock; /* which a record waits for; borrowed */
    double until, now;
    bool has_cluster;
    struct net_cluster cluster;
    struct graph_store store;

    struct sim_layout **layout;
    uint32_t *forgotten; /* unused places of layout */
    size_t nlayouts, layout_room, nforgotten, forgotten_room;
    bool forgets;           /* a layout was forgotten */
    struct rec_map layouts; /* by id */
    struct sim_layouts pool;
    struct sim_layout *open; /* that still gets places, NULL: none */

    struct live *live;
    uint32_t *vacant;
    size_t nlive, live_room, nvacant, vacant_room;
    struct rec_map jobs; /* by id: those that have not ended */
    struct sim_queue ends;
    uint64_t
        *holder; /* per server: the start (counted from 1) that had it last; 0: none */
    double *free_at; /* per server, seconds */
    uint32_t *servers;
    size_t servers_room;
    uint64_t pending; /* jobs neither started nor blocked */
    uint64_t starts;
    bool past; /* records are beyond the simulated time */
};

struct sim_replay *
sim_replay_new(const struct sim_replay_sink *sink, double until, struct rec_error *err)
{
    struct sim_replay *r = calloc(1, sizeof *r);
    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    r->sink = *sink;
    r->until = until;
    r->pool.limit = SIM_LAYOUTS_MAX;
    return r;
}

void
sim_replay_keep(struct sim_replay *r, size_t bytes)
{
    r->pool.limit = bytes;
}

void
sim_replay_free(struct sim_replay *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nlayouts; i++)
        sim_layout_free(r->layout[i]);
    for (size_t i = 0; i < r->nlive; i++) {
        free(r->live[i].id);
        free(r->live[i].graphs);
    }
    graph_store_free(&r->store);
    rec_map_free(&r->layouts);
    rec_map_free(&r->jobs);
    sim_queue_free(&r->ends);
    free(r->layout);
    free(r->forgotten);
    free(r->live);
    free(r->vacant);
    free(r->holder);
    free(r->free_at);
    free(r->servers);
    free(r);
}

static const char every_op_once[] = "every op is placed once";

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

/* ---- layouts ------------------------------------------------------------- */

/* Layouts that no job holds make room for that of a graph. */
static bool
make_room(struct sim_replay *r, const struct graph *graph, struct rec_error *err)
{
    struct sim_layout *old;
    while ((old = sim_layouts_excess(&r->pool, sim_layout_bytes(graph)))) {
        uint32_t index = rec_map_get(&r->layouts, rec_str(old->id));
        if (!rec_grow(&r->forgotten, &r->forgotten_room, r->nforgotten + 1,
                      sizeof *r->forgotten, err))
            return false;
        r->forgotten[r->nforgotten++] = index;
        r->forgets = true;
        rec_map_remove(&r->layouts, rec_str(old->id));
        sim_layout_free(old);
        r->layout[index] = NULL;
    }
    return true;
}

static bool
open_layout(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
            struct rec_error *err)
{
    uint32_t graph, index;
    uint64_t slots;
    struct sim_layout *layout;

    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 3, &slots, err))
        return false;
    graph = graph_store_find(&r->store, rec->field[2]);
    if (graph == REC_NONE)
        return rec_reader_fail(reader, err, "layout of graph '%.*s', which has not come",
                               (int)rec->field[2].len, rec->field[2].ptr);
    if (rec_map_get(&r->layouts, rec->field[1]) != REC_NONE)
        return rec_reader_fail(reader, err, "layout '%.*s' is there twice",
                               (int)rec->field[1].len, rec->field[1].ptr);
    if (slots < 1 || slots > 1u << 24)
        return rec_reader_fail(reader, err, "a layout has from 1 to %u slots", 1u << 24);
    if (!make_room(r, r->store.graph[graph], err) ||
        !rec_grow(&r->layout, &r->layout_room, r->nlayouts + 1, sizeof *r->layout, err))
        return false;
    layout = sim_layout_new(rec->field[1], r->store.graph[graph], (uint32_t)slots, err);
    if (!layout)
        return false;
    index = (uint32_t)(r->nforgotten ? r->forgotten[--r->nforgotten] : r->nlayouts++);
    r->layout[index] = r->open = layout;
    sim_layouts_add(&r->pool, layout);
    return rec_map_add(&r->layouts, rec_str(layout->id), index, err);
}

static bool
set_priority(struct sim_layout *layout, const struct rec_reader *reader,
             struct rec_str text, uint32_t op, struct rec_error *err)
{
    size_t n = layout->graph->nops;
    double value;
    if (!rec_parse_num(text, &value) || !isfinite(value))
        return rec_reader_fail(reader, err, "priority must be a number");
    if (!layout->priority) {
        layout->priority = malloc((n + 1) * sizeof *layout->priority);
        if (!layout->priority)
            return rec_fail_memory(err);
        for (size_t i = 0; i < n; i++)
            layout->priority[i] = NAN;
    }
    layout->priority[op] = value;
    return true;
}

static bool
add_place(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct sim_layout *layout = r->open;
    struct rec_str priority;
    uint64_t slot;
    uint32_t op;

    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 3, &slot, err))
        return false;
    if (!layout || !rec_str_is(rec->field[1], layout->id))
        return rec_reader_fail(reader, err,
                               "a place of layout '%.*s' must stand behind its layout "
                               "record",
                               (int)rec->field[1].len, rec->field[1].ptr);
    op = graph_find(layout->graph, rec->field[2]);
    if (op == GRAPH_NONE)
        return rec_reader_fail(reader, err, "graph '%s' has no op '%.*s' to place",
                               layout->graph->id, (int)rec->field[2].len,
                               rec->field[2].ptr);
    if (slot >= layout->nslots)
        return rec_reader_fail(reader, err,
                               "op '%.*s' goes to slot %llu, but the layout has slots 0 "
                               "to %u",
                               (int)rec->field[2].len, rec->field[2].ptr,
                               (unsigned long long)slot, layout->nslots - 1);
    if (layout->slot[op] != REC_NONE)
        return broken(reader, err, every_op_once, "op '%.*s' is placed twice",
                      (int)rec->field[2].len, rec->field[2].ptr);
    layout->slot[op] = (uint32_t)slot;
    layout->placed[op] = layout->nplaced++;
    return !rec_find_key(rec, "priority", &priority) ||
           set_priority(layout, reader, priority, op, err);
}

static bool
close_layout(struct sim_replay *r, const struct rec_reader *reader, struct rec_error *err)
{
    struct sim_layout *layout = r->open;
    r->open = NULL;
    return !layout || sim_layout_seal(layout, err) ||
           (reader ? rec_locate(reader, err) : false);
}

/* ---- jobs ---------------------------------------------------------------- */

static bool
forget(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct live *live = &r->live[index];
    if (live->layout)
        sim_layout_release(live->layout);
    rec_map_remove(&r->jobs, rec_str(live->id));
    free(live->id);
    free(live->graphs);
    *live = (struct live){0};
    if (!rec_grow(&r->vacant, &r->vacant_room, r->nvacant + 1, sizeof *r->vacant, err))
        return false;
    r->vacant[r->nvacant++] = index;
    return true;
}

/* The graph that a job runs, or its first alternative; NULL: that has not come. */
static const struct graph *
graph_of(const struct sim_replay *r, const struct live *live)
{
    struct rec_str rest = live->job.graphs, id;
    uint32_t index;
    if (live->layout)
        return live->layout->graph;
    rec_str_split(&rest, ',', &id);
    index = graph_store_find(&r->store, id);
    return index == REC_NONE ? NULL : r->store.graph[index];
}

static struct sim_done
describe(const struct sim_replay *r, const struct live *live)
{
    return (struct sim_done){.job = live->job,
                             .graph = graph_of(r, live),
                             .layout = live->layout,
                             .cost = &live->cost,
                             .start = live->start,
                             .finish = live->finish};
}

/* The jobs that end by `time` end, in order of finish, then of start. */
static bool
advance(struct sim_replay *r, double time, struct rec_error *err)
{
    double stop = time < r->until ? time : r->until;
    while (r->ends.n && r->ends.event[0].time <= stop) {
        uint32_t index = (uint32_t)sim_queue_pop(&r->ends).key;
        struct sim_done done = describe(r, &r->live[index]);
        if (r->sink.done && !r->sink.done(r->sink.context, &done, err))
            return false;
        if (!forget(r, index, err))
            return false;
    }
    return true;
}

/* Lets time pass to that of a record. */
static bool
pass_time(struct sim_replay *r, const struct rec_reader *reader, double time,
          struct rec_error *err)
{
    r->past = time > r->until;
    if (time < r->now)
        return rec_reader_fail(reader, err,
                               "records must come in order of time: %.17g after %.17g",
                               time, r->now);
    r->now = time;
    return sim_clock_reach(r->clock, time, err) && advance(r, time, err);
}

static bool
add_job(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
        struct rec_error *err)
{
    struct live live = {0};
    uint32_t index;

    if (!graph_read_job(reader, rec, &live.job, err) ||
        !pass_time(r, reader, live.job.arrival, err))
        return false;
    if (r->past)
        return true;
    if (rec_map_get(&r->jobs, live.job.id) != REC_NONE)
        return rec_reader_fail(reader, err, "job '%.*s' is there already",
                               (int)live.job.id.len, live.job.id.ptr);
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
    r->pending++;
    return rec_map_add(&r->jobs, rec_str(live.id), index, err);
}

/* The job of an alloc or block record, which must not have started. */
static uint32_t
pending_job(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
            struct rec_error *err)
{
    uint32_t index = rec_map_get(&r->jobs, rec->field[1]);
    if (index != REC_NONE && !r->live[index].layout)
        return index;
    rec_reader_fail(reader, err, "%.*s of job '%.*s', which %s", (int)rec->field[0].len,
                    rec->field[0].ptr, (int)rec->field[1].len, rec->field[1].ptr,
                    index == REC_NONE ? "has not come before or has ended"
                                      : "has started already");
    return REC_NONE;
}

/* ---- RAMP's rules -------------------------------------------------------- */

static bool
read_servers(struct sim_replay *r, const struct rec_reader *reader, struct rec_str list,
             const struct sim_layout *layout, struct rec_error *err)
{
    struct rec_str name;
    uint32_t n = 0;
    while (rec_str_split(&list, ',', &name)) {
        if (!rec_grow(&r->servers, &r->servers_room, n + 1, sizeof *r->servers, err))
            return false;
        if (!net_parse_server(&r->cluster, name, &r->servers[n]))
            return broken(reader, err, "servers are of the cluster",
                          "there is no server '%.*s' in a %ux%ux%u", (int)name.len,
                          name.ptr, r->cluster.shape[0], r->cluster.shape[1],
                          r->cluster.shape[2]);
        n++;
    }
    if (n != layout->nslots)
        return rec_reader_fail(reader, err, "layout '%s' has %u slots, got %u servers",
                               layout->id, layout->nslots, n);
    return true;
}

/* One job a server, each server once in a job, memory enough. */
static bool
check_servers(struct sim_replay *r, const struct rec_reader *reader, uint32_t index,
              struct rec_error *err)
{
    const struct sim_layout *layout = r->live[index].layout;
    double time = r->live[index].start;
    char name[NET_NAME_MAX];

    for (uint32_t i = 0; i < layout->nslots; i++) {
        uint32_t server = r->servers[i];
        net_format_server(&r->cluster, server, name);
        if (r->holder[server] == r->starts)
            return broken(reader, err, "the slots of a job are different servers",
                          "server %s is there twice", name);
        if (r->holder[server] && r->free_at[server] > time)
            return broken(reader, err, "one job at a time on a server",
                          "job '%s' takes server %s at %.17g, which is taken until %.17g",
                          r->live[index].id, name, time, r->free_at[server]);
        r->holder[server] = r->starts;
    }
    if (layout->memory > r->cluster.memory * (1 + 1e-12)) {
        net_format_server(&r->cluster, r->servers[layout->full_slot], name);
        return broken(reader, err, "the memory of a server is not exceeded",
                      "job '%s' needs %.17g bytes on server %s, which has %.17g",
                      r->live[index].id, layout->memory, name, r->cluster.memory);
    }
    return true;
}

static bool
is_alternative(struct rec_str list, struct rec_str graph)
{
    struct rec_str id;
    while (rec_str_split(&list, ',', &id))
        if (rec_str_eq(id, graph))
            return true;
    return false;
}

static bool
check_alloc(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
            uint32_t index, struct sim_layout **layout, struct rec_error *err)
{
    const struct live *live = &r->live[index];
    uint32_t found = rec_map_get(&r->layouts, rec->field[3]);

    if (found == REC_NONE)
        return rec_reader_fail(
            reader, err,
            r->forgets ? "there is no layout '%.*s' before this alloc, or it has been "
                         "forgotten: of layouts that no job holds %zu bytes are kept; "
                         "it must be written again"
                       : "there is no layout '%.*s' before this alloc",
            (int)rec->field[3].len, rec->field[3].ptr, r->pool.limit);
    *layout = r->layout[found];
    if (!rec_str_is(rec->field[2], (*layout)->graph->id))
        return rec_reader_fail(reader, err, "layout '%s' is of graph '%s', not '%.*s'",
                               (*layout)->id, (*layout)->graph->id,
                               (int)rec->field[2].len, rec->field[2].ptr);
    if (!is_alternative(live->job.graphs, rec->field[2]))
        return rec_reader_fail(reader, err, "job '%s' asks for %s, not for '%.*s'",
                               live->id, live->graphs, (int)rec->field[2].len,
                               rec->field[2].ptr);
    return read_servers(r, reader, rec->field[5], *layout, err);
}

/* ---- records ------------------------------------------------------------- */

static bool
take_cluster(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err)
{
    uint32_t n;
    if (r->has_cluster)
        return rec_reader_fail(reader, err, "a stream has one cluster, this is another");
    if (!net_read(reader, rec, &r->cluster, err))
        return false;
    r->has_cluster = true;
    n = net_servers(&r->cluster);
    r->holder = calloc(n, sizeof *r->holder);
    r->free_at = calloc(n, sizeof *r->free_at);
    return (r->holder && r->free_at) || rec_fail_memory(err);
}

static bool
take_alloc(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    double time;
    uint32_t index;
    struct live *live;
    struct sim_layout *layout = NULL;
    struct sim_done done;
    struct rec_error inner;

    if (!rec_need(reader, rec, err) || !rec_get_number(reader, rec, 4, &time, err))
        return false;
    if (r->past || time > r->until)
        return pass_time(r, reader, time, err);
    if (!r->has_cluster)
        return rec_reader_fail(reader, err, "an alloc needs a cluster record before it");
    index = pending_job(r, reader, rec, err);
    if (index == REC_NONE)
        return false;
    live = &r->live[index];
    if (time < live->job.arrival)
        return broken(reader, err, "a job starts after it arrives",
                      "job '%s' starts at %.17g and arrives at %.17g", live->id, time,
                      live->job.arrival);
    if (!pass_time(r, reader, time, err) ||
        !check_alloc(r, reader, rec, index, &layout, err))
        return false;
    live->start = time;
    live->layout = layout;
    sim_layout_hold(layout);
    r->starts++;
    if (!check_servers(r, reader, index, err))
        return false;
    if (!sim_layout_cost(layout, &r->cluster, r->servers, &live->cost, &inner)) {
        *err = inner;
        return inner.code == REC_DATA
                   ? rec_reader_fail(reader, err, "job '%s': %s", live->id, inner.text)
                   : false;
    }
    live->finish = time + live->cost.step.seconds * live->job.steps;
    if (!isfinite(live->finish))
        return rec_reader_fail(reader, err,
                               "job '%s' would run longer than a number holds", live->id);
    for (uint32_t i = 0; i < layout->nslots; i++)
        r->free_at[r->servers[i]] = live->finish;
    r->pending--;
    done = describe(r, live);
    if (r->sink.started &&
        !r->sink.started(r->sink.context, &done, &r->cluster, r->servers, err))
        return false;
    return sim_queue_push(&r->ends,
                          (struct sim_event){live->finish, r->starts << 32 | index}, err);
}

static bool
take_block(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    double time;
    uint32_t index;
    if (!rec_need(reader, rec, err) || !rec_get_number(reader, rec, 2, &time, err))
        return false;
    if (r->past || time > r->until)
        return pass_time(r, reader, time, err);
    index = pending_job(r, reader, rec, err);
    if (index == REC_NONE || !pass_time(r, reader, time, err))
        return false;
    r->pending--;
    return forget(r, index, err);
}

static bool
take(struct sim_replay *r, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    if (!graph_continues(rec) && !graph_store_end(&r->store, err))
        return false;
    if (rec->type != REC_PLACE && rec->type != REC_COMMENT && rec->type != REC_OTHER &&
        !close_layout(r, reader, err))
        return false;
    switch (rec->type) {
    case REC_CLUSTER: return take_cluster(r, reader, rec, err);
    case REC_GRAPH:
    case REC_OP:
    case REC_DEP: return graph_store_read(&r->store, reader, rec, err);
    case REC_LAYOUT: return open_layout(r, reader, rec, err);
    case REC_PLACE: return add_place(r, reader, rec, err);
    case REC_JOB: return add_job(r, reader, rec, err);
    case REC_ALLOC: return take_alloc(r, reader, rec, err);
    case REC_BLOCK: return take_block(r, reader, rec, err);
    default: return true;
    }
}

/* Records that say what was planned end here, and blocks that the simulated time does not
 * reach; all others go on. */
static bool
is_consumed(const struct sim_replay *r, enum rec_type type)
{
    return type == REC_GRAPH || type == REC_OP || type == REC_DEP || type == REC_JOB ||
           type == REC_LAYOUT || type == REC_PLACE || type == REC_ALLOC ||
           (type == REC_BLOCK && r->past);
}

static int
model_take(void *self, struct sim_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct sim_replay *r = self;
    r->clock = clock;
    if (!take(r, reader, rec, err))
        return -1;
    return is_consumed(r, rec->type);
}

static double
model_next(void *self)
{
    const struct sim_replay *r = self;
    double next = r->ends.n ? r->ends.event[0].time : (double)INFINITY;
    return next <= r->until ? next : (double)INFINITY;
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    return advance(self, time, err);
}

/* A job that the end of the simulated time finds unfinished. */
static bool
leave(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct sim_done done = describe(r, &r->live[index]);
    return (!r->sink.unfinished ||
            r->sink.unfinished(r->sink.context, &done, r->until, err)) &&
           forget(r, index, err);
}

/* The stream is over; what was to end by `time` has ended. */
static bool
model_end(void *self, double time, struct rec_error *err)
{
    struct sim_replay *r = self;
    (void)time;
    if (!graph_store_end(&r->store, err) || !close_layout(r, NULL, err))
        return false;
    while (r->ends.n) { /* beyond the simulated time */
        uint32_t index = (uint32_t)sim_queue_pop(&r->ends).key;
        if (!leave(r, index, err))
            return false;
    }
    for (uint32_t i = 0; r->pending && i < r->nlive; i++) {
        if (!r->live[i].id)
            continue;
        if (!r->past)
            return rec_fail(err, REC_DATA,
                            "job '%s' was neither started nor blocked (%llu such jobs): "
                            "has the stream been through an allocator?",
                            r->live[i].id, (unsigned long long)r->pending);
        r->pending--;
        if (!leave(r, i, err))
            return false;
    }
    return true;
}

const struct sim_model sim_replay_model = {"jobs",        model_take, model_next,
                                           model_advance, model_end,  NULL};
