/*
 * Writes the trace: events of the Trace Event Format as JSON, in order of time. Slices
 * become an event each (X), flights two (b, e), arrows two (s, f), marks one (i). At each
 * begin and end of a slice the counter of its process is written (C).
 */
#include "private.h"

#include "rampipe/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* Events at the same time are written in this order: slices end before others begin, so
 * that counters do not jump, and arrows follow the slices that they are bound to. */
enum kind { FLIGHT_END, SLICE_END, SLICE, FLIGHT, ARROW, ARROW_HEAD, MARK, RATE };

struct event {
    int64_t at;     /* nanoseconds */
    uint32_t index; /* of a slice, an arrow, a mark or a point, depending on kind */
    enum kind kind;
};

/* The values of the counters of a process. */
struct load {
    /* Slices, those on named lanes, and flights that have begun but not ended: */
    uint32_t running, laned, flights;
    double bytes; /* bytes in flight */
};

struct picture {
    struct timeline *t;
    struct json *json;
    struct timeline_lanes lanes;
    struct event *event;
    size_t nevents, event_room;
    struct load *load;
    struct timeline_point *point; /* of the counters of links */
    size_t npoints;
};

/* ---- events -------------------------------------------------------------- */

static bool
add(struct picture *p, int64_t at, enum kind kind, size_t index, struct rec_error *err)
{
    if (!rec_grow(&p->event, &p->event_room, p->nevents + 1, sizeof *p->event, err))
        return false;
    p->event[p->nevents++] = (struct event){at, (uint32_t)index, kind};
    return true;
}

static int
compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* A slice without length has no end event: the event of its beginning writes all of
 * it. */
static bool
add_slice(struct picture *p, size_t i, struct rec_error *err)
{
    const struct timeline_slice *slice = &p->t->slice[i];
    bool flight = slice->row->shape == TIMELINE_FLIGHT;
    return add(p, slice->from, flight ? FLIGHT : SLICE, i, err) &&
           (slice->to == slice->from ||
            add(p, slice->to, flight ? FLIGHT_END : SLICE_END, i, err));
}

/* The tail is 1 ns before the end of its slice, so that it lies inside of the slice. */
static bool
add_arrow(struct picture *p, size_t i, struct rec_error *err)
{
    uint32_t from, to;
    return !timeline_find_arrow(p->t, &p->t->arrow[i], &from, &to) ||
           (add(p, p->t->slice[from].to - 1, ARROW, i, err) &&
            add(p, p->t->slice[to].from, ARROW_HEAD, i, err));
}

static bool
make_events(struct picture *p, struct rec_error *err)
{
    struct timeline *t = p->t;
    timeline_find_ends(t);
    for (size_t i = 0; i < t->nslices; i++)
        if (!add_slice(p, i, err))
            return false;
    for (size_t i = 0; i < t->narrows; i++)
        if (!add_arrow(p, i, err))
            return false;
    for (size_t i = 0; i < t->nmarks; i++)
        if (!add(p, t->mark[i].at, MARK, i, err))
            return false;
    for (size_t i = 0; i < p->npoints; i++)
        if (!add(p, p->point[i].at, RATE, i, err))
            return false;
    if (p->nevents > 1)
        qsort(p->event, p->nevents, sizeof *p->event, compare_events);
    return true;
}

/* ---- JSON ---------------------------------------------------------------- */

static void
put_text(struct picture *p, const char *key, const char *text)
{
    json_text(p->json, key);
    json_text(p->json, text);
}

static void
put_number(struct picture *p, const char *key, double value)
{
    json_text(p->json, key);
    json_num(p->json, value);
}

/* Opens an event of a phase ("X", "b", ...) in a process. In the trace, processes and
 * tracks are numbered from 1. */
static void
open_event(struct picture *p, const char *phase, uint32_t process)
{
    json_open_map(p->json);
    put_text(p, "ph", phase);
    put_number(p, "pid", process + 1);
}

/* Times of the format are microseconds. */
static void
put_time(struct picture *p, const char *key, int64_t at)
{
    put_number(p, key, (double)at / 1000);
}

static void
put_value(struct picture *p, const struct rec_field_spec *spec, struct rec_str text)
{
    char name[32];
    size_t n = 0;
    double value;
    bool word = spec->kind == REC_KIND_ID || spec->kind == REC_KIND_TEXT;
    for (; spec->name[n] && n + 1 < sizeof name; n++)
        name[n] = (char)tolower((unsigned char)spec->name[n]);
    name[n] = '\0';
    json_text(p->json, name);
    if (!word && rec_parse_num(text, &value))
        json_num(p->json, value);
    else
        json_str(p->json, text);
}

/* Writes the fields and known keys of a record as the arguments of an event. */
static void
put_args(struct picture *p, enum rec_type type, const char *line)
{
    const struct rec_spec *spec = rec_spec(type);
    struct rec_str rest = rec_str(line), value;
    json_text(p->json, "args");
    json_open_map(p->json);
    (void)rec_str_split(&rest, '\t', &value);
    for (size_t i = 0; i < spec->nfields && rec_str_split(&rest, '\t', &value); i++)
        put_value(p, &spec->fields[i], value);
    for (const struct rec_field_spec *key = spec->keys; key->name; key++)
        if (timeline_find_value(rest, key->name, &value))
            put_value(p, key, value);
    json_close_map(p->json);
}

static void
put_counter(struct picture *p, const char *name, int64_t at, uint32_t process,
            double value)
{
    open_event(p, "C", process);
    put_text(p, "name", name);
    put_time(p, "ts", at);
    json_text(p->json, "args");
    json_open_map(p->json);
    put_number(p, name, value);
    json_close_map(p->json);
    json_close_map(p->json);
}

static void
put_name(struct picture *p, const char *what, uint32_t process, uint32_t track,
         const char *name)
{
    open_event(p, "M", process);
    put_text(p, "name", what);
    if (track != REC_NONE)
        put_number(p, "tid", track + 1);
    json_text(p->json, "args");
    json_open_map(p->json);
    put_text(p, "name", name);
    json_close_map(p->json);
    json_close_map(p->json);
}

static void
put_names(struct picture *p)
{
    const struct timeline *t = p->t;
    for (uint32_t i = 0; i < t->nprocesses; i++)
        put_name(p, "process_name", i, REC_NONE, t->process[i]);
    for (uint32_t i = 0; i < p->lanes.ntracks; i++) {
        char name[TIMELINE_TRACK_NAME];
        timeline_name_track(t, p->lanes.track[i], name);
        put_name(p, "thread_name", t->group[p->lanes.track[i].group].process, i, name);
    }
}

/* A slice that failed is red in Chrome, by the colour name "terrible"; Perfetto shows its
 * category. */
static void
put_slice(struct picture *p, const struct timeline_slice *slice)
{
    char text[TIMELINE_SLICE_NAME];
    open_event(p, "X", p->t->group[slice->group].process);
    put_number(p, "tid", slice->track + 1);
    put_text(p, "name", timeline_name_slice(p->t, slice, text));
    put_text(p, "cat", timeline_looks[slice->look].name);
    if (slice->look == TIMELINE_FAILED)
        put_text(p, "cname", "terrible");
    put_time(p, "ts", slice->from);
    put_time(p, "dur", slice->to - slice->from);
    put_args(p, slice->row->type, slice->line);
    json_close_map(p->json);
}

/* Writes the begin (b) or the end (e) of a flight. Both have the same id, the number of
 * the slice, by which viewers match them. */
static void
put_flight(struct picture *p, const struct timeline_slice *slice, const char *phase,
           int64_t at)
{
    char id[24];
    snprintf(id, sizeof id, "%zu", (size_t)(slice - p->t->slice) + 1);
    open_event(p, phase, slice->group);
    put_text(p, "name", p->t->name[slice->name].text);
    put_text(p, "cat", timeline_looks[slice->look].name);
    put_text(p, "id", id);
    put_time(p, "ts", at);
    if (*phase == 'b')
        put_args(p, slice->row->type, slice->line);
    json_close_map(p->json);
}

static void
put_mark(struct picture *p, const struct timeline_mark *mark)
{
    char text[TIMELINE_MARK_NAME];
    timeline_name_mark(mark, text);
    open_event(p, "i", mark->process);
    put_text(p, "name", text);
    put_text(p, "s", "p");
    put_time(p, "ts", mark->at);
    put_args(p, mark->type, mark->line);
    json_close_map(p->json);
}

/* Writes the tail (s) or the head (f) of an arrow. bp=e binds the head to the slice
 * that encloses its time, as the tail is bound; without it, viewers bind it to the
 * next slice. */
static void
put_arrow(struct picture *p, const struct event *event)
{
    const struct timeline_arrow *arrow = &p->t->arrow[event->index];
    bool head = event->kind == ARROW_HEAD;
    uint32_t which = head ? p->t->name[arrow->dst].first : p->t->name[arrow->src].last;
    const struct timeline_slice *slice = &p->t->slice[which];
    open_event(p, head ? "f" : "s", p->t->group[slice->group].process);
    put_number(p, "tid", slice->track + 1);
    put_text(p, "name", "dep");
    put_text(p, "cat", arrow->category);
    put_number(p, "id", event->index + 1);
    if (head)
        put_text(p, "bp", "e");
    put_time(p, "ts", event->at);
    json_close_map(p->json);
}

/* Writes the counter of instances of a training run from a state record; at the end
 * of the state all values are 0. The next state, which begins at that time, sets them
 * again. */
static void
put_instances(struct picture *p, const struct timeline_slice *slice, int64_t at,
              bool begins)
{
    struct rec_str rest = rec_str(slice->line), field;
    const struct rec_spec *spec = rec_spec(REC_STATE);
    open_event(p, "C", p->t->group[slice->group].process);
    put_text(p, "name", slice->row->counter);
    put_time(p, "ts", at);
    json_text(p->json, "args");
    json_open_map(p->json);
    (void)rec_str_split(&rest, '\t', &field);
    (void)rec_str_split(&rest, '\t', &field);
    for (size_t i = 1; i < spec->nfields && rec_str_split(&rest, '\t', &field); i++)
        put_value(p, &spec->fields[i], begins ? field : rec_str("0"));
    json_close_map(p->json);
    json_close_map(p->json);
}

/* Updates the counter of a process after a slice has begun or ended, and writes it. */
static void
put_load(struct picture *p, const struct timeline_slice *slice, int64_t at, bool begins)
{
    bool flight = slice->row->shape == TIMELINE_FLIGHT;
    uint32_t process = flight ? slice->group : p->t->group[slice->group].process;
    struct load *load = &p->load[process];
    uint32_t *n = flight              ? &load->flights
                  : slice->row->laned ? &load->laned
                                      : &load->running;
    if (!slice->row->counter)
        return;
    if (slice->row->type == REC_STATE) {
        put_instances(p, slice, at, begins);
        return;
    }
    *n += begins ? 1 : -1u;
    load->bytes += begins ? slice->bytes : -slice->bytes;
    if (load->flights == 0)
        load->bytes = 0; /* removes rounding errors of the sum */
    put_counter(p, slice->row->counter, at, process,
                slice->row->bytes ? load->bytes : *n);
}

static void
put_slice_event(struct picture *p, const struct timeline_slice *slice, enum kind kind)
{
    bool lasts = slice->to > slice->from, begins = kind == SLICE || kind == FLIGHT;
    if (kind == SLICE)
        put_slice(p, slice);
    if (kind == FLIGHT)
        put_flight(p, slice, "b", slice->from);
    if (kind == FLIGHT_END || (kind == FLIGHT && !lasts))
        put_flight(p, slice, "e", slice->to);
    if (lasts)
        put_load(p, slice, begins ? slice->from : slice->to, begins);
}

static void
put_rate(struct picture *p, const struct timeline_point *point)
{
    const struct timeline_links *links = &p->t->links;
    const struct timeline_link *link = &links->link[point->link];
    put_counter(p, link->name, point->at, link->memory ? links->memory : links->process,
                point->rate);
}

static void
put_event(struct picture *p, const struct event *event)
{
    switch (event->kind) {
    case SLICE:
    case SLICE_END:
    case FLIGHT:
    case FLIGHT_END: put_slice_event(p, &p->t->slice[event->index], event->kind); break;
    case ARROW:
    case ARROW_HEAD: put_arrow(p, event); break;
    case MARK: put_mark(p, &p->t->mark[event->index]); break;
    case RATE: put_rate(p, &p->point[event->index]); break;
    }
}

static bool
put_all(struct picture *p, struct rec_writer *writer, struct rec_error *err)
{
    p->json = json_new(writer, 2, err);
    if (!p->json)
        return false;
    json_open_map(p->json);
    put_text(p, "displayTimeUnit", "ms");
    json_text(p->json, "traceEvents");
    json_open_list(p->json);
    put_names(p);
    for (size_t i = 0; i < p->nevents && rec_writer_ok(writer, err); i++)
        put_event(p, &p->event[i]);
    json_close_list(p->json);
    json_close_map(p->json);
    return json_close(p->json, err) && rec_writer_ok(writer, err);
}

bool
timeline_write(struct timeline *t, struct rec_writer *writer, struct rec_error *err)
{
    struct picture p = {.t = t};
    bool ok =
        timeline_make_points(t, &p.point, &p.npoints, err) &&
        ((p.load = calloc(t->nprocesses + 1, sizeof *p.load)) || rec_fail_memory(err)) &&
        timeline_lay(t, &p.lanes, false, err) && make_events(&p, err) &&
        put_all(&p, writer, err);
    timeline_lanes_free(&p.lanes);
    free(p.event);
    free(p.load);
    free(p.point);
    return ok;
}
