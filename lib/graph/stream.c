/*
 * Checks the references among the records of a stream (struct graph_stream), for reccheck
 * and sim. The messages name the rule that is broken. Layouts are remembered by name; the
 * whole layout only while it is being read. A job is remembered until it
 * starts or is turned away, in an entry that the next job reuses: so memory does not grow
 * with the number of jobs.
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* A layout that has come. */
struct graph_known {
    const char *id;
    uint32_t graph, nslots;
};

/* A job that is neither started nor turned away. */
struct graph_waiting {
    char *text; /* its id and graphs, owned; a gap keeps it for the next job */
    size_t room;
    struct rec_str id, graphs; /* views of text; id.ptr NULL: this entry is a gap */
    double arrival;
    uint32_t tag;
};

void
graph_stream_free(struct graph_stream *s)
{
    for (size_t i = 0; i < s->nwaiting; i++)
        free(s->waiting[i].text);
    graph_store_free(&s->store);
    graph_jobs_free(&s->jobs);
    rec_map_free(&s->layouts);
    rec_arena_free(&s->names);
    rec_map_free(&s->waits);
    rec_map_free(&s->unique);
    rec_ids_free(&s->ended);
    free(s->layout);
    graph_layout_free(&s->open);
    free(s->waiting);
    free(s->gap);
    *s = (struct graph_stream){.await = s->await,
                               .servers = s->servers,
                               .laid = s->laid,
                               .context = s->context,
                               .store.advice = s->store.advice};
}

static bool
broken(const struct rec_reader *reader, struct rec_error *err, const char *rule,
       const char *what, struct rec_str id)
{
    return rec_reader_fail(reader, err, "the rule '%s' is broken: %s '%.*s' %s", rule,
                           what, (int)id.len, id.ptr, "is there twice");
}

/* ---- layouts ------------------------------------------------------------- */

uint32_t
graph_stream_forget(struct graph_stream *s, struct rec_str layout)
{
    uint32_t index = rec_map_get(&s->layouts, layout);
    rec_map_remove(&s->layouts, layout);
    s->forgets = true;
    return index;
}

static bool
close_layout(struct graph_stream *s, struct rec_error *err)
{
    bool ok;
    if (!s->open.id) /* most records are behind no layout */
        return true;
    ok = graph_layout_check(&s->open, err) &&
         (!s->laid || s->laid(s->context, &s->open, err));
    graph_layout_free(&s->open);
    return ok;
}

static bool
open_layout(struct graph_stream *s, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct rec_str id;
    uint64_t slots;
    uint32_t graph;
    const char *name;

    if (!rec_need(reader, rec, err) || !rec_get_id(reader, rec, 1, &id, err) ||
        !rec_get_count(reader, rec, 3, &slots, err))
        return false;
    graph = graph_store_find(&s->store, rec->field[2]);
    if (graph == REC_NONE)
        return rec_reader_fail(reader, err,
                               "layout of graph '%.*s', which has not come before",
                               (int)rec->field[2].len, rec->field[2].ptr);
    if (rec_map_get(&s->layouts, id) != REC_NONE)
        return rec_reader_fail(reader, err, "layout '%.*s' is there twice", (int)id.len,
                               id.ptr);
    if (slots < 1 || slots > GRAPH_SLOTS_MAX)
        return rec_reader_fail(reader, err, "a layout has from 1 to %d slots",
                               GRAPH_SLOTS_MAX);
    if (!(name = rec_arena_copy(&s->names, id, err)) ||
        !rec_grow(&s->layout, &s->layout_room, s->nlayouts + 1, sizeof *s->layout, err) ||
        !graph_layout_start(&s->open, id, s->store.graph[graph], (uint32_t)slots, err))
        return false;
    s->layout[s->nlayouts] = (struct graph_known){name, graph, (uint32_t)slots};
    return rec_map_add(&s->layouts, (struct rec_str){name, id.len},
                       (uint32_t)s->nlayouts++, err);
}

/* The lane of an op, and its place in the order of that lane. */
static bool
add_lane(struct graph_layout *layout, const struct rec_reader *reader,
         const struct rec *rec, uint32_t op, struct rec_error *err)
{
    uint64_t order = GRAPH_NO_ORDER;
    struct rec_str text;
    if (rec_find_key(rec, "lane", &text) &&
        (!rec_check_text(reader, rec, rec_key_spec(rec, rec_str("lane")), text, err) ||
         !graph_layout_lane(layout, op, text, err)))
        return false;
    if (!rec_find_key(rec, "order", &text))
        return true;
    if (!rec_key_count(reader, rec, "order", &order, err))
        return false;
    if (order == GRAPH_NO_ORDER)
        return rec_reader_fail(reader, err, "order must be less than 2^64 - 1");
    return graph_layout_queue(layout, op, order, err);
}

static bool
add_place(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct graph_layout *layout = &s->open;
    double priority = NAN;
    struct rec_str id;
    uint64_t slot;
    uint32_t op;

    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 3, &slot, err))
        return false;
    id = rec->field[2];
    if (!layout->id || !rec_str_is(rec->field[1], layout->id))
        return rec_reader_fail(reader, err,
                               "the places of layout '%.*s' must come right behind its "
                               "layout record",
                               (int)rec->field[1].len, rec->field[1].ptr);
    op = graph_find(layout->graph, id);
    if (op == GRAPH_NONE)
        return rec_reader_fail(reader, err, "graph '%s' has no op '%.*s' to place",
                               layout->graph->id, (int)id.len, id.ptr);
    if (slot >= layout->nslots)
        return rec_reader_fail(reader, err,
                               "op '%.*s' goes to slot %llu, but the layout has slots 0 "
                               "to %u",
                               (int)id.len, id.ptr, (unsigned long long)slot,
                               layout->nslots - 1);
    if (layout->slot[op] != REC_NONE)
        return rec_reader_fail(reader, err,
                               "the rule 'every op is placed once' is broken: op '%.*s' "
                               "is placed twice",
                               (int)id.len, id.ptr);
    graph_layout_place(layout, op, (uint32_t)slot);
    if (!rec_key_number(reader, rec, "priority", &priority, err) ||
        !(isnan(priority) || graph_layout_prefer(layout, op, priority, err)))
        return false;
    return add_lane(layout, reader, rec, op, err);
}

static bool
add_transfer(struct graph_stream *s, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    struct graph_layout *layout = &s->open;
    double priority = NAN;
    uint64_t channel;
    uint32_t src, dst, dep = GRAPH_NONE;

    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 4, &channel, err) ||
        !rec_key_number(reader, rec, "priority", &priority, err))
        return false;
    if (!layout->id || !rec_str_is(rec->field[1], layout->id))
        return rec_reader_fail(reader, err,
                               "the transfers of layout '%.*s' must come right behind "
                               "its places",
                               (int)rec->field[1].len, rec->field[1].ptr);
    src = graph_find(layout->graph, rec->field[2]);
    dst = graph_find(layout->graph, rec->field[3]);
    if (src != GRAPH_NONE && dst != GRAPH_NONE)
        dep = graph_find_dep(layout->graph, src, dst);
    if (dep == GRAPH_NONE ||
        (layout->transfer_of && layout->transfer_of[dep] != GRAPH_NONE))
        return rec_reader_fail(
            reader, err,
            dep == GRAPH_NONE ? "graph '%s' has no dep from '%.*s' to '%.*s'"
                              : "graph '%s': the dep from '%.*s' to '%.*s' has a "
                                "transfer already",
            layout->graph->id, (int)rec->field[2].len, rec->field[2].ptr,
            (int)rec->field[3].len, rec->field[3].ptr);
    return graph_layout_transfer(layout, dep, channel, priority, err);
}

/* ---- jobs ---------------------------------------------------------------- */

static bool
pass_time(struct graph_stream *s, const struct rec_reader *reader, double time,
          struct rec_error *err)
{
    if (time < s->now)
        return rec_reader_fail(reader, err,
                               "records must come in order of time: %.17g after %.17g",
                               time, s->now);
    s->now = time;
    return true;
}

/* Remembers a job until it is started or turned away. */
static bool
keep_job(struct graph_stream *s, struct graph_said *said, struct rec_error *err)
{
    const struct graph_job *job = &said->job;
    struct graph_waiting *w;
    uint32_t index;

    if (s->ngaps)
        index = s->gap[--s->ngaps];
    else if (rec_grow(&s->waiting, &s->waiting_room, s->nwaiting + 1, sizeof *s->waiting,
                      err)) {
        index = (uint32_t)s->nwaiting++;
        s->waiting[index] = (struct graph_waiting){.tag = 0};
    } else
        return false;
    w = &s->waiting[index];
    if (!rec_grow(&w->text, &w->room, job->id.len + job->graphs.len, 1, err))
        return false;
    memcpy(w->text, job->id.ptr, job->id.len);
    memcpy(w->text + job->id.len, job->graphs.ptr, job->graphs.len);
    w->id = (struct rec_str){w->text, job->id.len};
    w->graphs = (struct rec_str){w->text + job->id.len, job->graphs.len};
    w->arrival = job->arrival;
    said->tag = &w->tag;
    return rec_map_add(&s->waits, w->id, index, err);
}

/* Without a cluster (and without `await`) jobs are only a workload: nobody has to start
 * them. */
static bool
take_job(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
         struct graph_said *said, struct rec_error *err)
{
    s->arrived = true;
    return graph_jobs_read(&s->jobs, &s->store, reader, rec, &said->job, err) &&
           pass_time(s, reader, said->job.arrival, err) &&
           (!(s->clustered || s->await) || keep_job(s, said, err));
}

/* The job of an alloc or block record, which must be waiting; NULL: *err. */
static struct graph_waiting *
find_waiting(struct graph_stream *s, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    uint32_t index = rec_map_get(&s->waits, rec->field[1]);
    if (index != REC_NONE)
        return &s->waiting[index];
    rec_reader_fail(
        reader, err,
        "%.*s of job '%.*s', which has not arrived before, or has already been "
        "started or blocked",
        (int)rec->field[0].len, rec->field[0].ptr, (int)rec->field[1].len,
        rec->field[1].ptr);
    return NULL;
}

static bool
end_waiting(struct graph_stream *s, struct graph_waiting *w, struct rec_error *err)
{
    rec_map_remove(&s->waits, w->id);
    w->id.ptr = NULL;
    if (!rec_grow(&s->gap, &s->gap_room, s->ngaps + 1, sizeof *s->gap, err))
        return false;
    s->gap[s->ngaps++] = (uint32_t)(w - s->waiting);
    return true;
}

/* ---- allocs -------------------------------------------------------------- */

static bool
is_named(struct rec_str list, struct rec_str graph)
{
    struct rec_str id;
    while (rec_str_split(&list, ',', &id))
        if (rec_str_eq(id, graph))
            return true;
    return false;
}

/* A job may start on one of its alternatives, or on what an agent has made of one (of=),
 * by splitting its ops. */
static bool
is_alternative(struct rec_str list, const struct graph *graph)
{
    struct rec_str of;
    return is_named(list, rec_str(graph->id)) ||
           (graph_key(graph, "of", &of) && is_named(list, of));
}

static bool
check_servers(struct graph_stream *s, const struct rec_reader *reader,
              struct rec_str list, const struct graph_known *layout,
              struct rec_error *err)
{
    struct rec_str rest = list, name;
    uint32_t n = 1;

    for (size_t i = 0; i < list.len; i++)
        n += list.ptr[i] == ',';
    rec_map_clear(&s->unique);
    while (s->servers && rec_str_split(&rest, ',', &name)) {
        if (rec_map_get(&s->unique, name) != REC_NONE)
            return broken(reader, err, "the slots of a job are different servers",
                          "server", name);
        if (!rec_map_add(&s->unique, name, n, err))
            return false;
    }
    return n == layout->nslots ||
           rec_reader_fail(reader, err, "layout '%s' has %u slots, got %u servers",
                           layout->id, layout->nslots, n);
}

static bool
take_alloc(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
           struct graph_said *said, struct rec_error *err)
{
    struct rec_str graph = rec->field[2];
    const struct graph_known *layout;
    const struct graph *of;
    struct graph_waiting *w;

    if (!rec_need(reader, rec, err) || !rec_get_number(reader, rec, 4, &said->time, err))
        return false;
    if (!s->clustered)
        return rec_reader_fail(reader, err, "an alloc needs a cluster record before it");
    if (!(w = find_waiting(s, reader, rec, err)))
        return false;
    if (said->time < w->arrival)
        return rec_reader_fail(reader, err,
                               "the rule 'a job starts after it arrives' is broken: job "
                               "'%.*s' starts at %.17g and arrives at %.17g",
                               (int)w->id.len, w->id.ptr, said->time, w->arrival);
    if (!pass_time(s, reader, said->time, err))
        return false;
    said->layout = rec_map_get(&s->layouts, rec->field[3]);
    if (said->layout == REC_NONE)
        return rec_reader_fail(reader, err,
                               s->forgets
                                   ? "there is no layout '%.*s' before this alloc, "
                                     "or it was forgotten while no job held it: it "
                                     "must be written again"
                                   : "there is no layout '%.*s' before this alloc",
                               (int)rec->field[3].len, rec->field[3].ptr);
    layout = &s->layout[said->layout];
    of = s->store.graph[layout->graph];
    if (!rec_str_is(graph, of->id))
        return rec_reader_fail(reader, err, "layout '%s' is of graph '%s', not '%.*s'",
                               layout->id, of->id, (int)graph.len, graph.ptr);
    if (!is_alternative(w->graphs, of))
        return rec_reader_fail(reader, err, "job '%.*s' asks for %.*s, not for '%.*s'",
                               (int)w->id.len, w->id.ptr, (int)w->graphs.len,
                               w->graphs.ptr, (int)graph.len, graph.ptr);
    said->tag = &w->tag;
    return check_servers(s, reader, rec->field[5], layout, err) && end_waiting(s, w, err);
}

/* ---- results ------------------------------------------------------------- */

/* Takes a record that ends a job, in a stream of results: a job ends only once. */
static bool
end_job(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
        struct rec_error *err)
{
    struct rec_str id;
    int added =
        rec_get_id(reader, rec, 1, &id, err) ? rec_ids_add(&s->ended, id, err) : -1;
    return added > 0 ||
           (added == 0 && rec_reader_fail(reader, err, "job '%.*s' has ended already",
                                          (int)id.len, id.ptr));
}

static bool
take_block(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
           struct graph_said *said, struct rec_error *err)
{
    double arrival = 0, start;
    struct graph_waiting *w;

    if (!rec_need(reader, rec, err) ||
        !rec_get_number(reader, rec, 2, &said->time, err) ||
        !rec_key_number(reader, rec, "arrival", &arrival, err))
        return false;
    start = arrival;
    if (!rec_key_number(reader, rec, "start", &start, err))
        return false;
    if (start < arrival)
        return rec_reader_fail(reader, err,
                               "start must not be before arrival: %.17g < %.17g", start,
                               arrival);
    if (!pass_time(s, reader, said->time, err))
        return false;
    /* Among results alone there are no jobs that could be waiting. */
    if (!s->await && !(s->arrived && s->clustered))
        return end_job(s, reader, rec, err);
    if (!(w = find_waiting(s, reader, rec, err)))
        return false;
    said->tag = &w->tag;
    return end_waiting(s, w, err);
}

/* An agent is told that a job has started: for it, that stands for the alloc. */
static bool
take_start(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
           struct graph_said *said, struct rec_error *err)
{
    struct graph_waiting *w;
    double finish;
    if (!rec_need(reader, rec, err) ||
        !rec_get_number(reader, rec, 3, &said->time, err) ||
        !rec_get_later(reader, rec, 4, said->time, &finish, err) ||
        !pass_time(s, reader, said->time, err))
        return false;
    return (w = find_waiting(s, reader, rec, err)) && end_waiting(s, w, err);
}

static bool
take_cluster(struct graph_stream *s, const struct rec_reader *reader,
             struct rec_error *err)
{
    if (s->clustered)
        return rec_reader_fail(
            reader, err,
            "a stream must have only one cluster record, and this is the second");
    if (s->arrived)
        return rec_reader_fail(reader, err,
                               "the cluster record must come before the jobs");
    s->clustered = true;
    return true;
}

/* The next of several concatenated streams begins. Pieces of a plan are one input, so all
 * is kept; results of another stream are another run. */
static void
take_mark(struct graph_stream *s)
{
    if (s->planned)
        return;
    s->clustered = false;
    s->now = 0;
    rec_ids_free(&s->ended);
}

/* Parts of a cluster stand behind its record. Only their place is checked here. */
static bool
check_part(struct graph_stream *s, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    bool part = rec_is_part(rec, REC_CLUSTER) && rec->type != REC_CLUSTER;
    if (part && !s->cluster_open)
        return rec_reader_fail(reader, err,
                               "this %s record is part of no cluster: it must stand "
                               "behind a cluster record",
                               rec->spec->name);
    s->cluster_open = part || rec->type == REC_CLUSTER;
    return true;
}

/* ---- all ----------------------------------------------------------------- */

/* A graph and a layout end with the first record that cannot belong to them, and are
 * checked then. */
bool
graph_stream_take(struct graph_stream *s, const struct rec_reader *reader,
                  const struct rec *rec, struct graph_said *said, struct rec_error *err)
{
    *said = (struct graph_said){.tag = NULL};
    if (rec->type == REC_COMMENT || rec->type == REC_OTHER)
        return true;
    if (!rec_continues(rec, REC_GRAPH) && !graph_store_end(&s->store, err))
        return false;
    if (!rec_continues(rec, REC_LAYOUT) && !close_layout(s, err))
        return rec_locate(reader, err);
    if (!check_part(s, reader, rec, err))
        return false;
    if (rec_is_part(rec, REC_GRAPH)) {
        s->planned = true;
        return graph_store_read(&s->store, reader, rec, err);
    }
    switch (rec->type) {
    case REC_LAYOUT: s->planned = true; return open_layout(s, reader, rec, err);
    case REC_PLACE: return add_place(s, reader, rec, err);
    case REC_TRANSFER: return add_transfer(s, reader, rec, err);
    case REC_JOB: s->planned = true; return take_job(s, reader, rec, said, err);
    case REC_ALLOC: return take_alloc(s, reader, rec, said, err);
    case REC_BLOCK: return take_block(s, reader, rec, said, err);
    case REC_START: return take_start(s, reader, rec, said, err);
    case REC_DONE: return end_job(s, reader, rec, err);
    case REC_CLUSTER: return take_cluster(s, reader, err);
    case REC_MARK: take_mark(s); return true;
    default: return true;
    }
}

bool
graph_stream_end(struct graph_stream *s, struct rec_error *err)
{
    return graph_store_end(&s->store, err) && close_layout(s, err);
}

bool
graph_stream_decided(const struct graph_stream *s, struct rec_error *err)
{
    const struct graph_waiting *w = s->waiting;
    if (s->waits.used == 0)
        return true;
    while (!w->id.ptr)
        w++;
    return rec_fail(err, REC_DATA,
                    "job '%.*s' was neither started nor blocked (%zu such jobs): has the "
                    "stream been through an allocator?",
                    (int)w->id.len, w->id.ptr, s->waits.used);
}
