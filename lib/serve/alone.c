/* Simulates one stage alone, behind stages whose batches are known and are played back.
 * The search for the best plan (exact.c) tries many choices for a stage behind the same
 * choices for those before it, and so simulates only what changes. */
#include "engine.h"

void
serve_sim_only(struct serve_sim *sim, uint32_t stage,
               bool (*watch)(void *context, const struct serve_token *token, uint32_t n,
                             double time, struct rec_error *err))
{
    for (size_t s = 0; s < sim->pipeline->nstages; s++)
        sim->station[s]->mode =
            s == stage || !sim->station[s]->kind ? SERVE_RUNS : SERVE_IS_ABSENT;
    sim->watch = watch;
}

/* One event at a time: the next is pushed when this one has happened. Its number is that
 * of the batch, so that events of equal times are ordered as they were in the first
 * simulation. */
static bool
push_played(struct serve_sim *sim, const struct serve_station *station,
            struct rec_error *err)
{
    size_t i = station->played;
    struct event_entry event;
    if (i == station->trail->nbatches)
        return true;
    event.time = station->trail->batch[i].finish;
    event.key = serve_make_key(SERVE_ENDS, station->stage->rank, i, 0);
    return event_queue_push(&sim->events, event, err);
}

bool
serve_sim_play(struct serve_sim *sim, uint32_t stage, const struct serve_trail *trail,
               struct rec_error *err)
{
    struct serve_station *station = sim->station[stage];
    station->mode = SERVE_PLAYS;
    station->trail = trail;
    station->played = 0;
    return push_played(sim, station, err);
}

bool
serve_play_batch(struct serve_sim *sim, struct serve_station *station, double time,
                 struct rec_error *err)
{
    const struct serve_trail *trail = station->trail;
    size_t i = station->played++;
    uint32_t first = trail->batch[i].first, n;

    n = (uint32_t)(i + 1 < trail->nbatches ? trail->batch[i + 1].first
                                           : trail->nmembers) -
        first;
    if (!rec_grow(&station->passing, &station->passing_room, n, sizeof *station->passing,
                  err))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t query = trail->member[first + k];
        /* A batch that takes no time by rounding ends at its query's arrival, and so is
         * played before it: events of batches come before arrivals. */
        if (query >= sim->nqueries)
            return rec_fail(err, REC_DATA,
                            "service times are too short: added to a time of %g s, they "
                            "are lost by rounding",
                            time);
        sim->query[query].tokens++;
        station->passing[k] = (struct serve_token){query, time};
    }
    return serve_go_on(sim, sim->pipeline->out + station->stage->first_edge,
                       station->stage->nedges, station->passing, n, time, err) &&
           push_played(sim, station, err);
}
