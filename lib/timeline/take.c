/*
 * Turns records into slices, flights, marks and arrows, as they come. Records with a
 * start and an end are rows of a table; those of training are in training.c.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct timeline_row rows[] = {
    {.type = REC_ATTEMPT,
     .look = TIMELINE_TASK,
     .name = 1,
     .start = 3,
     .end = 4,
     .status = 5,
     .process_key = "host",
     .process_else = "tasks",
     .counter = "running",
     .lane = "lane"},
    {.type = REC_RUN,
     .look = TIMELINE_OP,
     .process = 1,
     .track = 3,
     .name = 2,
     .start = 4,
     .end = 5,
     .job = true,
     .runs = true,
     .layer = true,
     .counter = "busy servers",
     .lane = "lane"},
    {.type = REC_SEND,
     .shape = TIMELINE_FLIGHT,
     .look = TIMELINE_SEND,
     .process = 1,
     .name = 2,
     .other = 3,
     .from = 4,
     .to = 5,
     .start = 6,
     .end = 7,
     .bytes = 8,
     .job = true,
     .runs = true,
     .counter = "bytes in flight"},
    {.type = REC_EXCHANGE,
     .shape = TIMELINE_FLIGHT,
     .look = TIMELINE_SEND,
     .process = 1,
     .name = 2,
     .from = 4,
     .to = 4,
     .start = 5,
     .end = 6,
     .bytes = 7,
     .job = true,
     .runs = true,
     .counter = "bytes in flight"},
    {.type = REC_VISIT,
     .look = TIMELINE_BATCH,
     .process = 2,
     .name = 1,
     .start = 4,
     .end = 5,
     .runs = true,
     .counter = "busy replicas",
     .lane = "replica"},
    {.type = REC_VISIT,
     .shape = TIMELINE_FLIGHT,
     .look = TIMELINE_WAIT,
     .process = 2,
     .name = 1,
     .start = 3,
     .end = 4,
     .runs = true,
     .counter = "waiting"},
};
enum { NROWS = sizeof rows / sizeof *rows };

/* A run on a lane that has a name: the lanes of a server run beside each other. */
static const struct timeline_row lane_row = {.type = REC_RUN,
                                             .look = TIMELINE_OP,
                                             .process = 1,
                                             .track = 3,
                                             .name = 2,
                                             .start = 4,
                                             .end = 5,
                                             .job = true,
                                             .runs = true,
                                             .layer = true,
                                             .laned = true,
                                             .counter = "busy named lanes",
                                             .lane = "lane"};

const char *
timeline_record(size_t i)
{
    static const enum rec_type shown[] = {REC_ATTEMPT, REC_RUN,   REC_SEND, REC_EXCHANGE,
                                          REC_VISIT,   REC_STATE, REC_TRAIN};
    return i < sizeof shown / sizeof *shown ? rec_spec(shown[i])->name : NULL;
}

/* ---- time ---------------------------------------------------------------- */

/* The latest time, in nanoseconds: about 126 years. Two of them can be added without
 * overflowing an int64_t. */
#define LATEST 4e18

int64_t
timeline_nanoseconds(double seconds)
{
    return (int64_t)llround(fmax(-LATEST, fmin(LATEST, 1e9 * seconds)));
}

bool
timeline_get_seconds(const struct rec_reader *reader, const struct rec *rec, size_t index,
                     double *seconds, struct rec_error *err)
{
    if (!rec_get_number(reader, rec, index, seconds, err))
        return false;
    return *seconds <= LATEST / 1e9 ||
           rec_reader_fail(reader, err, "a timeline ends at %g s, got %g", LATEST / 1e9,
                           *seconds);
}

struct timeline *
timeline_new(const struct timeline_options *options, struct rec_error *err)
{
    struct timeline *t = calloc(1, sizeof *t);
    if (!t) {
        rec_fail_memory(err);
        return NULL;
    }
    t->from = timeline_nanoseconds(options->from);
    t->to = timeline_nanoseconds(options->to);
    t->job = options->job;
    t->sends = options->sends;
    t->most = options->links;
    t->batch.track = t->run_process = REC_NONE;
    return t;
}

/* A log may have several runs, whose times count from the beginning of each. began= puts
 * them on the time line of the first run. */
static bool
find_began(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    double began = NAN;
    if (!rec_key_number(reader, rec, "began", &began, err))
        return false;
    if (!t->some && !isnan(began)) {
        t->some = true;
        t->began = began;
    }
    t->later = isnan(began) ? 0 : timeline_nanoseconds(fmax(0, began - t->began));
    return true;
}

/* ---- slices -------------------------------------------------------------- */

/* What stands behind the names of a run: nothing in the first one, then its number. */
static const char *
run_suffix(const struct timeline *t, char text[32])
{
    *text = '\0';
    if (t->run > 0)
        snprintf(text, 32, ", run %llu", (unsigned long long)t->run + 1);
    return text;
}

bool
timeline_find_run(struct timeline *t, struct rec_str name, bool runs, uint32_t *process,
                  struct rec_error *err)
{
    char run[32], *text;
    bool ok;
    if (!runs)
        return timeline_find_process(t, name, process, err);
    if (asprintf(&text, "%.*s%s", (int)name.len, name.ptr, run_suffix(t, run)) < 0)
        return rec_fail_memory(err);
    ok = timeline_find_process(t, rec_str(text), process, err);
    free(text);
    if (ok && t->run_process == REC_NONE)
        t->run_process = *process;
    return ok;
}

/* Finds the track of a lane of a server: "SERVER LANE". */
static bool
find_lane(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
          uint32_t process, uint32_t *group, struct rec_error *err)
{
    struct rec_str server = rec->field[row->track], lane = {"", 0};
    char *text;
    bool ok;
    (void)rec_find_key(rec, "lane", &lane);
    if (asprintf(&text, "%.*s %.*s", (int)server.len, server.ptr, (int)lane.len,
                 lane.ptr) < 0)
        return rec_fail_memory(err);
    ok = timeline_find_group(t, process, rec_str(text), row->lane, group, err);
    free(text);
    return ok;
}

/* Finds the tracks that a flight leaves and reaches. If one field has both, it is a list
 * of all that take part: a line leads from the first to the last. */
static bool
find_ends(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
          struct timeline_slice *slice, struct rec_error *err)
{
    struct rec_str from = rec->field[row->from], to = rec->field[row->to], rest = from;
    if (row->from == row->to) {
        (void)rec_str_split(&rest, ',', &from);
        while (rec_str_split(&rest, ',', &to))
            ;
    }
    return timeline_find_group(t, slice->group, from, "lane", &slice->src, err) &&
           timeline_find_group(t, slice->group, to, "lane", &slice->dst, err);
}

/* Finds the process and the group of a slice; of a flight, also the groups at its
 * ends. */
static bool
find_place(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
           struct timeline_slice *slice, struct rec_error *err)
{
    struct rec_str process = rec->field[row->process], track = {"", 0};
    uint32_t number;
    slice->src = slice->dst = REC_NONE;
    if (row->process_key && !rec_find_key(rec, row->process_key, &process))
        process = rec_str(row->process_else);
    if (!timeline_find_run(t, process, row->runs, &number, err))
        return false;
    slice->group = number;
    if (row->shape == TIMELINE_FLIGHT)
        return !row->from || find_ends(t, row, rec, slice, err);
    if (row->laned)
        return find_lane(t, row, rec, number, &slice->group, err);
    if (row->track)
        track = rec->field[row->track];
    return timeline_find_group(t, number, track, row->lane, &slice->group, err);
}

/* The names of ops count within the job and the run: within a process. */
static struct rec_str
scope_of(const struct timeline *t, const struct timeline_slice *slice)
{
    uint32_t process = slice->row->shape == TIMELINE_FLIGHT
                           ? slice->group
                           : t->group[slice->group].process;
    return rec_str(slice->row->job ? t->process[process] : "");
}

/* Names a slice by its field; a flight between two ops "SRC > DST", a batch of several
 * queries (field 6 of a visit is BATCH, their number) "N queries". */
static bool
name_slice(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
           struct timeline_slice *slice, struct rec_error *err)
{
    struct rec_str text = rec->field[row->name], other = rec->field[row->other];
    uint64_t queries = 1;
    char *both = NULL;
    int len = 0;
    bool ok;
    if (row->look == TIMELINE_BATCH && rec_parse_uint(rec->field[6], &queries) &&
        queries > 1)
        len = asprintf(&both, "%llu queries", (unsigned long long)queries);
    else if (row->other)
        len = asprintf(&both, "%.*s > %.*s", (int)text.len, text.ptr, (int)other.len,
                       other.ptr);
    if (len < 0)
        return rec_fail_memory(err);
    ok = timeline_find_name(t, scope_of(t, slice), both ? rec_str(both) : text,
                            &slice->name, err);
    free(both);
    return ok;
}

/* Chunks of a device of a pipeline have two shades: chunk 0, chunk 1, ... */
static bool
is_odd_chunk(struct rec_str type)
{
    return type.len > 6 && strncmp(type.ptr, "chunk ", 6) == 0 &&
           (type.ptr[type.len - 1] - '0') % 2 == 1;
}

static enum timeline_look
look_of(const struct timeline_row *row, const struct rec *rec)
{
    struct rec_str pass, type;
    if (row->status && !rec_str_is(rec->field[row->status], "0"))
        return TIMELINE_FAILED;
    if (row->type != REC_RUN)
        return row->look;
    if (!rec_find_key(rec, "type", &type))
        type = rec_str("");
    if (rec_str_is(type, "exchange"))
        return TIMELINE_SEND;
    if (rec_str_is(type, "weights"))
        return TIMELINE_WEIGHTS;
    if (rec_find_key(rec, "pass", &pass))
        return rec_str_is(pass, "forward")
                   ? is_odd_chunk(type) ? TIMELINE_FORWARD_ODD : TIMELINE_FORWARD
               : rec_str_is(pass, "backward")
                   ? is_odd_chunk(type) ? TIMELINE_BACKWARD_ODD : TIMELINE_BACKWARD
                   : row->look;
    return row->look;
}

/* Adds the arrow of a transfer: from the last run of the op that sends to the first run
 * of the op that receives. */
static bool
add_send_arrow(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
               const struct timeline_slice *slice, struct rec_error *err)
{
    struct timeline_arrow arrow = {.category = timeline_looks[TIMELINE_SEND].name};
    struct rec_str scope = scope_of(t, slice);
    return timeline_find_name(t, scope, rec->field[row->name], &arrow.src, err) &&
           timeline_find_name(t, scope, rec->field[row->other], &arrow.dst, err) &&
           timeline_add_arrow(t, &arrow, err);
}

/* The visits of the queries of a batch follow each other, and each says how many queries
 * the batch has. *joins: this visit is of the same batch as the one before, so it makes
 * no slice of its own. */
static bool
joins_batch(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
            const struct timeline_slice *slice, bool *joins, struct rec_error *err)
{
    const struct timeline_slice *batch = &t->batch;
    uint64_t queries;
    if (!rec_get_count(reader, rec, 6, &queries, err))
        return false;
    *joins = t->queries > 0 && batch->group == slice->group &&
             batch->from == slice->from && batch->to == slice->to;
    t->queries = *joins ? t->queries - 1 : queries > 0 ? queries - 1 : 0;
    t->batch = *slice;
    return true;
}

/* Keeps a slice that is shown. A query that did not wait has no slice for waiting. */
static bool
keep_slice(struct timeline *t, const struct timeline_row *row,
           const struct rec_reader *reader, const struct rec *rec,
           struct timeline_slice *slice, struct rec_error *err)
{
    bool joins = false;
    if (!find_place(t, row, rec, slice, err) ||
        (row->look == TIMELINE_BATCH && !joins_batch(t, reader, rec, slice, &joins, err)))
        return false;
    if (joins || (row->look == TIMELINE_WAIT && slice->from == slice->to))
        return true;
    return name_slice(t, row, rec, slice, err) &&
           (slice->line = rec_arena_copy(&t->arena, rec->line, err)) &&
           timeline_add_slice(t, slice, err) &&
           (!row->other || !row->bytes || add_send_arrow(t, row, rec, slice, err));
}

/* Takes a record with a start and an end. It is checked even if it is not shown. Only
 * rows with a process_key, the attempts of tasks, have began= and so a place on a time
 * line of several runs. */
static bool
take_slice(struct timeline *t, const struct timeline_row *row,
           const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct timeline_slice slice = {
        .row = row, .track = REC_NONE, .look = look_of(row, rec)};
    double start, end;
    t->any = true;
    if (!timeline_get_seconds(reader, rec, row->start, &start, err) ||
        !timeline_get_seconds(reader, rec, row->end, &end, err) ||
        (row->bytes && !rec_get_number(reader, rec, row->bytes, &slice.bytes, err)) ||
        (row->process_key && !find_began(t, reader, rec, err)))
        return false;
    if (t->job && !(row->job && rec_str_is(rec->field[row->process], t->job)))
        return true;
    if (row->bytes && !t->sends)
        return true;
    slice.from = (row->process_key ? t->later : 0) + timeline_nanoseconds(start);
    slice.to = (row->process_key ? t->later : 0) + timeline_nanoseconds(end);
    return !timeline_shows(t, slice.from, slice.to) ||
           keep_slice(t, row, reader, rec, &slice, err);
}

/* ---- records about slices: deps, ends of tasks, blocks ------------------------- */

/* A dep between tasks is an arrow. Deps between ops, which have no hazard=, are not
 * shown: their sends are. */
static bool
take_dep(struct timeline *t, const struct rec *rec, struct rec_error *err)
{
    struct timeline_arrow arrow = {.category = NULL};
    struct rec_str hazard;
    return !rec_find_key(rec, "hazard", &hazard) ||
           (timeline_find_name(t, rec_str(""), rec->field[2], &arrow.src, err) &&
            timeline_find_name(t, rec_str(""), rec->field[3], &arrow.dst, err) &&
            (arrow.category = rec_arena_copy(&t->arena, hazard, err)) &&
            timeline_add_arrow(t, &arrow, err));
}

/* A done record says that the last attempt of a task succeeded, even if its status is not
 * 0 (a task with ok=any): then its slice loses the look of a failure. */
static bool
take_done(struct timeline *t, const struct rec *rec, struct rec_error *err)
{
    uint32_t name;
    if (!timeline_get_name(t, rec->field[1], &name, err))
        return false;
    if (name != REC_NONE && t->name[name].last != REC_NONE)
        t->slice[t->name[name].last].look = t->slice[t->name[name].last].row->look;
    return true;
}

/* A job that was not placed, or a task that was not run, is a mark. */
static bool
take_block(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct timeline_mark mark = {.type = REC_BLOCK};
    double time;
    if (!timeline_get_seconds(reader, rec, 2, &time, err))
        return false;
    mark.at = t->later + timeline_nanoseconds(time);
    return !timeline_shows(t, mark.at, mark.at) ||
           (t->job && !rec_str_is(rec->field[1], t->job)) ||
           ((t->nprocesses > 0 ||
             timeline_find_process(t, rec_str("tasks"), &mark.process, err)) &&
            (mark.line = rec_arena_copy(&t->arena, rec->line, err)) &&
            timeline_add_mark(t, &mark, err));
}

/* What a job sends over a link becomes a part of the counter of the link. */
static bool
take_rate(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct rec_str from = rec->field[2], to = rec->field[3];
    struct timeline_rate one = {.link = 0};
    double start, end, capacity;
    char run[32], *name;
    bool ok;
    if (!timeline_get_seconds(reader, rec, 4, &start, err) ||
        !timeline_get_seconds(reader, rec, 5, &end, err) ||
        !rec_get_number(reader, rec, 6, &one.rate, err) ||
        !rec_get_number(reader, rec, 7, &capacity, err))
        return false;
    one.from = timeline_nanoseconds(start);
    one.to = timeline_nanoseconds(end);
    if (t->most == 0 || (t->job && !rec_str_is(rec->field[1], t->job)) ||
        !timeline_shows(t, one.from, one.to))
        return true;
    if (asprintf(&name, "%.*s > %.*s%s", (int)from.len, from.ptr, (int)to.len, to.ptr,
                 run_suffix(t, run)) < 0)
        return rec_fail_memory(err);
    ok = timeline_add_rate(t, rec_str(name), capacity, &one, one.rate * (end - start),
                           err);
    free(name);
    return ok;
}

/* What a server holds becomes a counter of its own. */
static bool
take_held(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct timeline_rate one = {.link = 0};
    double start, end;
    char run[32], *name;
    bool ok;
    if (!timeline_get_seconds(reader, rec, 3, &start, err) ||
        !timeline_get_seconds(reader, rec, 4, &end, err) ||
        !rec_get_number(reader, rec, 5, &one.rate, err))
        return false;
    one.from = timeline_nanoseconds(start);
    one.to = timeline_nanoseconds(end);
    if ((t->job && !rec_str_is(rec->field[1], t->job)) ||
        !timeline_shows(t, one.from, one.to))
        return true;
    if (asprintf(&name, "memory of %.*s%s", (int)rec->field[2].len, rec->field[2].ptr,
                 run_suffix(t, run)) < 0)
        return rec_fail_memory(err);
    ok = timeline_add_rate(t, rec_str(name), -1, &one, 0, err);
    free(name);
    return ok;
}

/* Ends a stream. A phase or iteration that is still open is dropped: nobody knows when it
 * would have ended. Marks of jobs that were blocked go to the first process of their run,
 * as those of the first run did. */
static void
end_run(struct timeline *t)
{
    for (; t->marked < t->nmarks; t->marked++)
        if (t->run > 0 && t->run_process != REC_NONE &&
            t->mark[t->marked].type == REC_BLOCK)
            t->mark[t->marked].process = t->run_process;
    t->run_process = REC_NONE;
    t->run++;
    t->opened = false;
    t->training = (struct timeline_training){.stateful = false};
    t->queries = 0;
}

/* The row of a record that is of the type of `row`. */
static const struct timeline_row *
row_of(const struct timeline_row *row, const struct rec *rec)
{
    struct rec_str lane;
    return rec->type == REC_RUN && rec_find_key(rec, "lane", &lane) ? &lane_row : row;
}

/* A type may have several rows: a visit is a slice of its batch and a wait before it. */
bool
timeline_take(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
              struct rec_error *err)
{
    bool ok = t->opened || rec->type == REC_MARK ||
              timeline_add_provenance(t, rec_str(rec_reader_provenance(reader)), err),
         checked = false;
    t->opened = true;
    for (size_t i = 0; i < NROWS && ok; i++)
        if (rec->type == rows[i].type) {
            ok = (checked || rec_check(reader, rec, err)) &&
                 take_slice(t, row_of(&rows[i], rec), reader, rec, err);
            checked = true;
        }
    if (!ok)
        return false;
    switch (rec->type) {
    case REC_DEP: return rec_need(reader, rec, err) && take_dep(t, rec, err);
    case REC_DONE: return rec_need(reader, rec, err) && take_done(t, rec, err);
    case REC_BLOCK: return rec_check(reader, rec, err) && take_block(t, reader, rec, err);
    case REC_HELD: return rec_check(reader, rec, err) && take_held(t, reader, rec, err);
    case REC_RATE: return rec_check(reader, rec, err) && take_rate(t, reader, rec, err);
    case REC_STATE:
        return rec_check(reader, rec, err) && timeline_take_state(t, reader, rec, err);
    case REC_TRAIN:
        return rec_check(reader, rec, err) && timeline_take_train(t, reader, rec, err);
    case REC_TRAINED:
        return rec_check(reader, rec, err) && timeline_take_trained(t, reader, rec, err);
    case REC_MARK: end_run(t); return true;
    default: return true;
    }
}
