/* Keeps the graphs of a stream for the jobs that refer to them, and reads jobs. A graph
 * enters the store when it is closed, so a graph that is not complete is never found. */
#include "rampipe/graph.h"

#include <stdlib.h>

bool
graph_store_read(struct graph_store *store, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err)
{
    if (rec->type == REC_GRAPH) {
        if (rec->nfields > 1 && graph_store_find(store, rec->field[1]) != REC_NONE)
            return rec_reader_fail(reader, err, "graph '%.*s' is there twice",
                                   (int)rec->field[1].len, rec->field[1].ptr);
        store->reading = calloc(1, sizeof *store->reading);
        if (!store->reading)
            return rec_fail_memory(err);
    }
    if (!store->reading)
        return rec_reader_fail(reader, err,
                               "the record %.*s comes before its graph record",
                               (int)rec->field[0].len, rec->field[0].ptr);
    return graph_read(store->reading, reader, rec, err);
}

bool
graph_store_add(struct graph_store *store, struct graph *graph, struct rec_error *err)
{
    if (!rec_grow(&store->graph, &store->room, store->ngraphs + 1, sizeof *store->graph,
                  err) ||
        !rec_map_add(&store->index, rec_str(graph->id), (uint32_t)store->ngraphs, err))
        return false;
    store->graph[store->ngraphs++] = graph;
    return true;
}

void
graph_store_drop(struct graph_store *store, uint32_t index)
{
    struct graph *graph = store->graph[index];
    if (!graph)
        return;
    rec_map_remove(&store->index, rec_str(graph->id));
    graph_free(graph);
    free(graph);
    store->graph[index] = NULL;
}

bool
graph_store_end(struct graph_store *store, struct rec_error *err)
{
    struct graph *graph = store->reading;
    if (!graph)
        return true;
    if (!graph_close(graph, err) ||
        (store->advice && !graph_check_times(graph, store->advice, err)) ||
        !graph_store_add(store, graph, err))
        return false;
    store->reading = NULL;
    return true;
}

uint32_t
graph_store_find(const struct graph_store *store, struct rec_str id)
{
    return rec_map_get(&store->index, id);
}

void
graph_store_free(struct graph_store *store)
{
    for (uint32_t i = 0; i < store->ngraphs; i++)
        graph_store_drop(store, i);
    if (store->reading)
        graph_free(store->reading);
    free(store->reading);
    free(store->graph);
    rec_map_free(&store->index);
    /* The advice is an option of the tool, not of the stream: it stays for the next. */
    *store = (struct graph_store){.advice = store->advice};
}

bool
graph_read_job(const struct rec_reader *reader, const struct rec *rec,
               struct graph_job *job, struct rec_error *err)
{
    uint64_t steps;
    *job = (struct graph_job){.known = NULL};
    if (!rec_need(reader, rec, err) ||
        !rec_get_number(reader, rec, 3, &job->arrival, err) ||
        !rec_get_count(reader, rec, 4, &steps, err) ||
        !rec_get_number(reader, rec, 5, &job->deadline, err))
        return false;
    if (!rec_get_id(reader, rec, 1, &job->id, err))
        return false;
    if (steps > GRAPH_STEPS_MAX)
        return rec_reader_fail(reader, err, "job '%.*s': STEPS must be at most %lld",
                               (int)rec->field[1].len, rec->field[1].ptr,
                               (long long)GRAPH_STEPS_MAX);
    job->graphs = rec->field[2];
    job->steps = (double)steps;
    return true;
}

bool
graph_jobs_read(struct graph_jobs *jobs, const struct graph_store *store,
                const struct rec_reader *reader, const struct rec *rec,
                struct graph_job *job, struct rec_error *err)
{
    struct rec_str rest, id;
    int added;

    if (!graph_read_job(reader, rec, job, err))
        return false;
    for (rest = job->graphs; store && rec_str_split(&rest, ',', &id);)
        if (graph_store_find(store, id) == REC_NONE)
            return rec_reader_fail(
                reader, err,
                "job '%.*s' refers to graph '%.*s', which has not come before",
                (int)job->id.len, job->id.ptr, (int)id.len, id.ptr);
    if (job->arrival < jobs->last)
        return rec_reader_fail(reader, err,
                               "jobs must come in order of arrival: job '%.*s' arrives "
                               "at %.17g, before %.17g",
                               (int)job->id.len, job->id.ptr, job->arrival, jobs->last);
    jobs->last = job->arrival;
    added = rec_ids_add(&jobs->ids, job->id, err);
    return added > 0 ||
           (added == 0 && rec_reader_fail(reader, err, "job '%.*s' is there already",
                                          (int)job->id.len, job->id.ptr));
}

void
graph_jobs_free(struct graph_jobs *jobs)
{
    rec_ids_free(&jobs->ids);
}

/* The record repeats what metrics needs of the job and its graph, so that results can be
 * reduced without the records of jobs and graphs. The caller may add keys, and ends the
 * record. */
void
graph_begin_block(struct rec_writer *writer, const struct graph_job *job, double time,
                  const char *cause, const struct graph *graph)
{
    rec_begin(writer, "block");
    rec_str_field(writer, job->id);
    rec_num_field(writer, time);
    rec_text_field(writer, cause);
    if (graph) {
        rec_text_key(writer, "graph", graph->id);
        rec_text_key(writer, "model", graph->model);
    }
    rec_num_key(writer, "arrival", job->arrival);
    if (graph) {
        graph_pass_key(graph, "degree", writer);
        rec_num_key(writer, "sequential", graph_sequential(graph));
    }
    rec_num_key(writer, "steps", job->steps);
    rec_num_key(writer, "deadline", job->deadline);
    if (graph) {
        graph_pass_key(graph, "demand_memory", writer);
        graph_pass_key(graph, "demand_bytes", writer);
    }
}
