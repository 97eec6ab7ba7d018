/*
 * Flows in text, as ../shared/golden/parallel/fluid has them, separated by tabs:
 *
 *     link NAME CAPACITY
 *     flow NAME START BYTES LINK[,LINK...] [FINISH [weight=W]]
 *     capacity LINK TIME CAPACITY
 *
 * Links come before what names them. For unit tests and for the benchmark.
 */
#ifndef TESTS_FLOWS_H
#define TESTS_FLOWS_H

#include "rampipe/flow.h"

#include <math.h>
#include <stdlib.h>

/** A start of a flow, or a change of a capacity. */
struct flows_event {
    double time, amount; /* bytes, or bytes/s */
    double weight;       /* 0: a change of a capacity */
    double expected;     /* when it ends, NAN: not said */
    double end;          /* when it does; INFINITY: it stands still */
    const char *name;
    uint32_t first, n; /* its links, in via[] */
    uint32_t order;    /* in the text */
};

struct flows {
    struct flows_event *event; /* in order of time */
    size_t nevents, event_room;
    uint32_t *via;
    size_t nvia, via_room;
    double *capacity; /* per link */
    size_t nlinks, link_room;
    struct rec_map names; /* of links */
    struct rec_arena arena;
};

static inline bool
flows_number(struct rec_str text, double *value, struct rec_error *err)
{
    return rec_parse_num(text, value) ||
           rec_fail(err, REC_DATA, "'%.*s' is no number", (int)text.len, text.ptr);
}

static inline bool
flows_link(struct flows *flows, const struct rec_str field[8], struct rec_error *err)
{
    const char *name = rec_arena_copy(&flows->arena, field[1], err);
    return name &&
           rec_grow(&flows->capacity, &flows->link_room, flows->nlinks + 1,
                    sizeof *flows->capacity, err) &&
           flows_number(field[2], &flows->capacity[flows->nlinks], err) &&
           rec_map_add(&flows->names, rec_str(name), (uint32_t)flows->nlinks++, err);
}

static inline bool
flows_line(struct flows *flows, struct rec_str line, struct rec_error *err)
{
    struct rec_str field[8] = {{"", 0}}, route, id;
    struct flows_event event = {.end = INFINITY, .first = (uint32_t)flows->nvia};
    size_t n = 0;

    while (n < 8 && rec_str_split(&line, '\t', &field[n]))
        n++;
    if (rec_str_is(field[0], "link"))
        return flows_link(flows, field, err);
    event.weight = rec_str_is(field[0], "flow");
    event.expected = NAN;
    event.order = (uint32_t)flows->nevents;
    event.name = rec_arena_copy(&flows->arena, field[1], err);
    if (!event.name || !flows_number(field[2], &event.time, err) ||
        !flows_number(field[3], &event.amount, err))
        return false;
    if (n > 5 && field[5].len > 0 && !flows_number(field[5], &event.expected, err))
        return false;
    if (n > 6) {
        struct rec_str weight = field[6], key;
        if (!rec_str_split(&weight, '=', &key) || !rec_str_is(key, "weight") ||
            !flows_number(weight, &event.weight, err))
            return rec_fail(err, REC_DATA, "flow '%s': it has no weight", event.name);
    }
    route = event.weight > 0 ? field[4] : field[1];
    while (route.len > 0 && rec_str_split(&route, ',', &id)) {
        if (!rec_grow(&flows->via, &flows->via_room, flows->nvia + 1, sizeof *flows->via,
                      err))
            return false;
        flows->via[flows->nvia++] = rec_map_get(&flows->names, id);
        event.n++;
    }
    if (!rec_grow(&flows->event, &flows->event_room, flows->nevents + 1,
                  sizeof *flows->event, err))
        return false;
    flows->event[flows->nevents++] = event;
    return true;
}

static inline int
flows_by_time(const void *a, const void *b)
{
    const struct flows_event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static inline void
flows_free(struct flows *flows)
{
    rec_map_free(&flows->names);
    rec_arena_free(&flows->arena);
    free(flows->event);
    free(flows->via);
    free(flows->capacity);
    *flows = (struct flows){.nevents = 0};
}

/** Reads flows, and closes the reader, which may be NULL. *flows starts as {0}. */
static inline bool
flows_read(struct flows *flows, struct rec_reader *reader, struct rec_error *err)
{
    struct rec rec;
    int status = -1;
    if (reader)
        while ((status = rec_next(reader, &rec, err)) > 0)
            if (rec.type != REC_COMMENT && rec.type != REC_MARK &&
                !flows_line(flows, rec.line, err))
                break;
    rec_reader_close(reader);
    if (status == 0 && flows->nevents > 0)
        qsort(flows->event, flows->nevents, sizeof *flows->event, flows_by_time);
    return status == 0;
}

static inline void
flows_ended(void *context, uint64_t id, double time)
{
    struct flows *flows = context;
    flows->event[id].end = time;
}

/** Runs the flows to their ends. */
static inline bool
flows_run(struct flows *flows, struct rec_error *err)
{
    struct flow_links *links =
        flow_links_new((uint32_t)flows->nlinks, flows->capacity, err);
    bool ok = links;
    for (size_t i = 0; ok && i < flows->nevents; i++) {
        const struct flows_event *e = &flows->event[i];
        const struct flow_spec spec = {i,    e->amount, e->weight, flows->via + e->first,
                                       e->n, NULL};
        uint32_t flow;
        ok = flow_advance(links, e->time, flows_ended, flows, err) &&
             (e->weight > 0
                  ? flow_start(links, e->time, &spec, &flow, err)
                  : flow_capacity(links, e->time, flows->via[e->first], e->amount, err));
    }
    ok = ok && flow_advance(links, INFINITY, flows_ended, flows, err);
    flow_links_free(links);
    return ok;
}

#endif
