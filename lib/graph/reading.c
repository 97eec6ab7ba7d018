/* The one way in which tools take graphs and jobs from a stream. */
#include "rampipe/graph.h"

/* Hands over the graph that is open, which no later one may be called like. */
static bool
hand_over(struct graph_reading *r, struct rec_error *err)
{
    const char *id;
    if (!r->graph.open)
        return true;
    return graph_close(&r->graph, err) &&
           (!r->store.advice || graph_check_times(&r->graph, r->store.advice, err)) &&
           (id = rec_arena_copy(&r->names, rec_str(r->graph.id), err)) &&
           rec_map_add(&r->ids, rec_str(id), r->nhanded++, err) &&
           r->whole(r->context, &r->graph, err);
}

static bool
read_part(struct graph_reading *r, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    if (!r->whole)
        return graph_store_read(&r->store, reader, rec, err);
    if (rec->type == REC_GRAPH && rec->nfields > 1 &&
        rec_map_get(&r->ids, rec->field[1]) != REC_NONE)
        return rec_reader_fail(reader, err, "graph '%.*s' is there twice",
                               (int)rec->field[1].len, rec->field[1].ptr);
    return graph_read(&r->graph, reader, rec, err);
}

bool
graph_reading_take(struct graph_reading *r, const struct rec_reader *reader,
                   const struct rec *rec, enum graph_taken *taken, struct rec_error *err)
{
    *taken = GRAPH_NOT_TAKEN;
    if (!rec_continues(rec, REC_GRAPH) && !graph_reading_end(r, err))
        return false;
    if (rec_is_part(rec, REC_GRAPH)) {
        *taken = GRAPH_PART_TAKEN;
        return read_part(r, reader, rec, err);
    }
    if (rec->type != REC_JOB)
        return true;
    *taken = GRAPH_JOB_TAKEN;
    return graph_jobs_read(&r->jobs, r->whole ? NULL : &r->store, reader, rec, &r->job,
                           err);
}

bool
graph_reading_end(struct graph_reading *r, struct rec_error *err)
{
    return r->whole ? hand_over(r, err) : graph_store_end(&r->store, err);
}

void
graph_reading_free(struct graph_reading *r)
{
    graph_store_free(&r->store);
    graph_free(&r->graph);
    rec_map_free(&r->ids);
    rec_arena_free(&r->names);
    graph_jobs_free(&r->jobs);
    *r = (struct graph_reading){
        .whole = r->whole, .context = r->context, .store.advice = r->store.advice};
}
