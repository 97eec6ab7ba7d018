/* What is shown, as it comes. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
static const struct timeline_row rows[] = {
    /*                             category  process track name other start end status bytes */
    {REC_ATTEMPT, TIMELINE_SLICE,  "task",   0,      0,    1,   0,    3,    4,  5,     0, "host", "tasks"},
    {REC_RUN,     TIMELINE_SLICE,  "op",     1,      3,    2,   0,    4,    5,  0,     0, NULL, NULL},
    {REC_SEND,    TIMELINE_FLIGHT, "send",   1,      0,    2,   3,    6,    7,  0,     8, NULL, NULL},
};
/* clang-format on */
enum { NROWS = sizeof rows / sizeof *rows };

const char *
timeline_record(size_t i)
{
    return i < NROWS ? rec_spec(rows[i].type)->name : NULL;
}

/* ---- time ---------------------------------------------------------------- */

#define LATEST 4e18 /* nanoseconds, about 126 years: two may be added */

/* Seconds as nanoseconds, within what can be shown. */
static int64_t
nanoseconds(double seconds)
{
    return (int64_t)llround(fmax(-LATEST, fmin(LATEST, 1e9 * seconds)));
}

struct timeline *
timeline_new(double from, double to, struct rec_error *err)
{
    struct timeline *t = calloc(1, sizeof *t);
    if (!t) {
        rec_fail_memory(err);
        return NULL;
    }
    t->from = nanoseconds(from);
    t->to = nanoseconds(to);
    return t;
}

void
timeline_free(struct timeline *t)
{
    if (!t)
        return;
    free(t->slice);
    free(t->mark);
    free(t->arrow);
    free(t->process);
    free(t->group);
    free(t->name);
    rec_map_free(&t->processes);
    rec_map_free(&t->groups);
    rec_map_free(&t->names);
    rec_arena_free(&t->arena);
    free(t);
}

uint64_t
timeline_count(const struct timeline *t)
{
    return t->nslices;
}

bool
timeline_any(const struct timeline *t)
{
    return t->any;
}

/* ---- names --------------------------------------------------------------- */

/* A new name of a map, which it has as number `index`. NULL: *err. */
static const char *
keep(struct timeline *t, struct rec_map *map, struct rec_str text, size_t index,
     struct rec_error *err)
{
    const char *kept = rec_arena_copy(&t->arena, text, err);
    return kept && rec_map_add(map, (struct rec_str){kept, text.len}, (uint32_t)index,
                               err)
               ? kept
               : NULL;
}

static bool
find_process(struct timeline *t, struct rec_str text, uint32_t *process,
             struct rec_error *err)
{
    const char *kept;
    *process = rec_map_get(&t->processes, text);
    if (*process != REC_NONE)
        return true;
    if (!rec_grow(&t->process, &t->process_room, t->nprocesses + 1, sizeof *t->process,
                  err) ||
        !(kept = keep(t, &t->processes, text, t->nprocesses, err)))
        return false;
    *process = (uint32_t)t->nprocesses;
    t->process[t->nprocesses++] = kept;
    return true;
}

/* `track` is empty for lanes. */
static bool
find_group(struct timeline *t, uint32_t process, struct rec_str track, uint32_t *group,
           struct rec_error *err)
{
    char *text;
    const char *kept;
    int len = asprintf(&text, "%u\t%.*s", process, (int)track.len, track.ptr);
    if (len < 0)
        return rec_fail_memory(err);
    *group = rec_map_get(&t->groups, rec_str(text));
    if (*group == REC_NONE) {
        kept = rec_grow(&t->group, &t->group_room, t->ngroups + 1, sizeof *t->group, err)
                   ? keep(t, &t->groups, rec_str(text), t->ngroups, err)
                   : NULL;
        if (kept) {
            *group = (uint32_t)t->ngroups;
            kept += (size_t)len - track.len;
            t->group[t->ngroups++] =
                (struct timeline_group){process, track.len > 0 ? kept : NULL};
        }
    }
    free(text);
    return *group != REC_NONE;
}

static bool
find_name(struct timeline *t, struct rec_str text, uint32_t *name, struct rec_error *err)
{
    const char *kept;
    *name = rec_map_get(&t->names, text);
    if (*name != REC_NONE)
        return true;
    if (!rec_grow(&t->name, &t->name_room, t->nnames + 1, sizeof *t->name, err) ||
        !(kept = keep(t, &t->names, text, t->nnames, err)))
        return false;
    *name = (uint32_t)t->nnames;
    t->name[t->nnames++] = (struct timeline_name){kept, REC_NONE, REC_NONE};
    return true;
}

/* ---- records ------------------------------------------------------------- */

/* Runs that follow each other in a log are on the time line of the first. */
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
    t->later = isnan(began) ? 0 : nanoseconds(fmax(0, began - t->began));
    return true;
}

static bool
find_place(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
           struct timeline_slice *slice, struct rec_error *err)
{
    struct rec_str process = rec->field[row->process], track = {"", 0};
    uint32_t number;
    if (row->process_key && !rec_find_key(rec, row->process_key, &process))
        process = rec_str(row->process_else);
    if (!find_process(t, process, &number, err))
        return false;
    slice->group = number;
    if (row->shape == TIMELINE_FLIGHT)
        return true;
    if (row->track)
        track = rec->field[row->track];
    return find_group(t, number, track, &slice->group, err);
}

/* "SRC > DST" of what goes from one to the other. */
static bool
name_slice(struct timeline *t, const struct timeline_row *row, const struct rec *rec,
           uint32_t *name, struct rec_error *err)
{
    struct rec_str src = rec->field[row->name], dst = rec->field[row->other];
    char *text;
    bool ok;
    if (!row->other)
        return find_name(t, src, name, err);
    if (asprintf(&text, "%.*s > %.*s", (int)src.len, src.ptr, (int)dst.len, dst.ptr) < 0)
        return rec_fail_memory(err);
    ok = find_name(t, rec_str(text), name, err);
    free(text);
    return ok;
}

static bool
take_slice(struct timeline *t, const struct timeline_row *row,
           const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct timeline_slice slice = {.row = row, .track = REC_NONE};
    double start, end;
    t->any = true;
    if (!rec_check(reader, rec, err) ||
        !rec_get_number(reader, rec, row->start, &start, err) ||
        !rec_get_number(reader, rec, row->end, &end, err) ||
        (row->bytes && !rec_get_number(reader, rec, row->bytes, &slice.bytes, err)) ||
        !find_began(t, reader, rec, err))
        return false;
    slice.from = t->later + nanoseconds(start);
    slice.to = t->later + nanoseconds(end);
    slice.failed = row->status && !rec_str_is(rec->field[row->status], "0");
    if (slice.to < t->from || slice.from > t->to)
        return true;
    if (!find_place(t, row, rec, &slice, err) ||
        !name_slice(t, row, rec, &slice.name, err) ||
        !(slice.line = rec_arena_copy(&t->arena, rec->line, err)) ||
        !rec_grow(&t->slice, &t->slice_room, t->nslices + 1, sizeof slice, err))
        return false;
    t->name[slice.name].last = (uint32_t)t->nslices;
    t->slice[t->nslices++] = slice;
    return true;
}

/* A dep between tasks: others have no hazard. */
static bool
take_dep(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
         struct rec_error *err)
{
    struct timeline_arrow arrow;
    struct rec_str hazard;
    if (!rec_need(reader, rec, err))
        return false;
    if (!rec_find_key(rec, "hazard", &hazard))
        return true;
    if (!find_name(t, rec->field[2], &arrow.src, err) ||
        !find_name(t, rec->field[3], &arrow.dst, err) ||
        !(arrow.category = rec_arena_copy(&t->arena, hazard, err)) ||
        !rec_grow(&t->arrow, &t->arrow_room, t->narrows + 1, sizeof arrow, err))
        return false;
    t->arrow[t->narrows++] = arrow;
    return true;
}

/* With ok=any what ended somehow was done. */
static bool
take_done(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    uint32_t name;
    if (!rec_need(reader, rec, err))
        return false;
    name = rec_map_get(&t->names, rec->field[1]);
    if (name != REC_NONE && t->name[name].last != REC_NONE)
        t->slice[t->name[name].last].failed = false;
    return true;
}

/* What was not run, or not placed. */
static bool
take_block(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct timeline_mark mark = {.process = 0};
    double time;
    if (!rec_check(reader, rec, err) || !rec_get_number(reader, rec, 2, &time, err))
        return false;
    mark.at = t->later + nanoseconds(time);
    if (mark.at < t->from || mark.at > t->to)
        return true;
    if ((t->nprocesses == 0 && !find_process(t, rec_str("tasks"), &mark.process, err)) ||
        !(mark.line = rec_arena_copy(&t->arena, rec->line, err)) ||
        !rec_grow(&t->mark, &t->mark_room, t->nmarks + 1, sizeof mark, err))
        return false;
    t->mark[t->nmarks++] = mark;
    return true;
}

bool
timeline_take(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
              struct rec_error *err)
{
    for (size_t i = 0; i < NROWS; i++)
        if (rec->type == rows[i].type)
            return take_slice(t, &rows[i], reader, rec, err);
    switch (rec->type) {
    case REC_DEP: return take_dep(t, reader, rec, err);
    case REC_DONE: return take_done(t, reader, rec, err);
    case REC_BLOCK: return take_block(t, reader, rec, err);
    default: return true;
    }
}
