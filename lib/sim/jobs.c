/* The jobs of a replay, from their start to their end. */
#include "replay.h"

#include <stdlib.h>

bool
sim_jobs_forget(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct live *live = &r->live[index];
    if (live->layout)
        sim_layout_release(live->layout);
    free(live->id);
    free(live->graphs);
    *live = (struct live){0};
    if (!rec_grow(&r->vacant, &r->vacant_room, r->nvacant + 1, sizeof *r->vacant, err))
        return false;
    r->vacant[r->nvacant++] = index;
    return true;
}

/* The graph that a job runs, or its first alternative. */
static const struct graph *
graph_of(const struct sim_replay *r, const struct live *live)
{
    struct rec_str rest = live->job.graphs, id;
    if (live->layout)
        return live->layout->where.graph;
    rec_str_split(&rest, ',', &id);
    return r->stream.store.graph[graph_store_find(&r->stream.store, id)];
}

struct sim_done
sim_jobs_describe(const struct sim_replay *r, const struct live *live)
{
    return (struct sim_done){.job = live->job,
                             .graph = graph_of(r, live),
                             .layout = live->layout,
                             .cost = &live->cost,
                             .start = live->start,
                             .finish = live->finish};
}

bool
sim_jobs_advance(struct sim_replay *r, double time, struct rec_error *err)
{
    double stop = time < r->until ? time : r->until;
    while (r->ends.n && r->ends.event[0].time <= stop) {
        uint32_t index = (uint32_t)event_queue_pop(&r->ends).key;
        struct sim_done done = sim_jobs_describe(r, &r->live[index]);
        if (r->sink.done && !r->sink.done(r->sink.context, &done, err))
            return false;
        if (!sim_jobs_forget(r, index, err))
            return false;
    }
    return true;
}

bool
sim_jobs_leave(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct sim_done done = sim_jobs_describe(r, &r->live[index]);
    return (!r->sink.unfinished ||
            r->sink.unfinished(r->sink.context, &done, r->until, err)) &&
           sim_jobs_forget(r, index, err);
}
