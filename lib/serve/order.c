/* The records behind those of a pipeline: queries and changes, in order of time. */
#include "private.h"

bool
serve_order_time(struct serve_order *order, const struct rec_reader *reader, double time,
                 struct rec_error *err)
{
    if (order->begun && time < order->last)
        return rec_reader_fail(reader, err, "time runs backwards: %.15g after %.15g",
                               time, order->last);
    if (time > SERVE_TIME_MAX)
        return rec_reader_fail(reader, err,
                               "a time must be at most %g s: later ones would swallow "
                               "the times of batches",
                               SERVE_TIME_MAX);
    order->begun = true;
    order->last = time;
    return true;
}

bool
serve_read_query(struct serve_order *order, const struct rec_reader *reader,
                 const struct rec *rec, double *time, struct rec_error *err)
{
    struct rec_str id;
    int added;
    if (!rec_need(reader, rec, err) || !rec_get_id(reader, rec, 1, &id, err) ||
        !rec_get_number(reader, rec, 2, time, err) ||
        !serve_order_time(order, reader, *time, err))
        return false;
    added = rec_ids_add(&order->ids, id, err);
    return added > 0 ||
           (added == 0 &&
            rec_reader_fail(reader, err, "query '%.*s' comes twice", REC_SAID(id)));
}
