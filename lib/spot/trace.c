/* Traces of spot clusters: their records read and written, and whole traces in memory. */
#include "rampipe/spot.h"

#include <stdlib.h>

static bool
read_trace(struct spot_order *order, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct rec_str value;
    if (order->framed || order->begun)
        return rec_reader_fail(
            reader, err, "a trace record must come once, before preempt and add records");
    if (!rec_need(reader, rec, err) ||
        !rec_get_number(reader, rec, 1, &order->start, err) ||
        !rec_get_later(reader, rec, 2, order->start, &order->end, err))
        return false;
    if (order->end > SPOT_TIME_MAX)
        return rec_reader_fail(reader, err, "END must be at most %g s", SPOT_TIME_MAX);
    order->instances = 0;
    order->populated = rec_find_key(rec, "instances", &value);
    if (!rec_key_count(reader, rec, "instances", &order->instances, err))
        return false;
    order->framed = true;
    order->last = order->start;
    return true;
}

int
spot_read(struct spot_order *order, const struct rec_reader *reader,
          const struct rec *rec, struct spot_event *event, struct rec_error *err)
{
    if (rec->type == REC_TRACE)
        return read_trace(order, reader, rec, err) ? 0 : -1;
    if (rec->type != REC_PREEMPT && rec->type != REC_ADD)
        return 0;
    event->kind = rec->type == REC_ADD ? SPOT_ADD : SPOT_PREEMPT;
    if (!rec_need(reader, rec, err) ||
        !rec_get_number(reader, rec, 1, &event->time, err) ||
        !rec_get_count(reader, rec, 2, &event->count, err) ||
        !rec_key_ids(reader, rec, "ids", &event->ids, err))
        return -1;
    if (event->time < order->last) {
        rec_reader_fail(reader, err, "time runs backwards: %.15g after %.15g",
                        event->time, order->last);
        return -1;
    }
    if (event->time > SPOT_TIME_MAX) {
        rec_reader_fail(reader, err, "TIME must be at most %g s", SPOT_TIME_MAX);
        return -1;
    }
    if (order->framed && event->time > order->end) {
        rec_reader_fail(reader, err, "%.15g is after the end of the trace, %.15g",
                        event->time, order->end);
        return -1;
    }
    order->begun = true;
    order->last = event->time;
    return 1;
}

void
spot_write_trace(struct rec_writer *writer, double start, double end,
                 const uint64_t *instances)
{
    rec_begin(writer, "trace");
    rec_num_field(writer, start);
    rec_num_field(writer, end);
    if (instances)
        rec_uint_key(writer, "instances", *instances);
    rec_end(writer);
}

void
spot_write_event(struct rec_writer *writer, const struct spot_event *event)
{
    rec_begin(writer, event->kind == SPOT_ADD ? "add" : "preempt");
    rec_num_field(writer, event->time);
    rec_uint_field(writer, event->count);
    if (event->ids.len > 0)
        rec_str_key(writer, "ids", event->ids);
    rec_end(writer);
}

bool
spot_trace_add(struct spot_trace *trace, struct spot_event event, struct rec_error *err)
{
    if (!rec_grow(&trace->event, &trace->room, trace->n + 1, sizeof *trace->event, err))
        return false;
    if (event.ids.len > 0 &&
        !(event.ids.ptr = rec_arena_copy(&trace->arena, event.ids, err)))
        return false;
    trace->event[trace->n++] = event;
    return true;
}

void
spot_trace_free(struct spot_trace *trace)
{
    free(trace->event);
    free(trace->row);
    rec_arena_free(&trace->arena);
    *trace = (struct spot_trace){0};
}
