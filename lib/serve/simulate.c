/* Serves queries event by event: moves them along the edges from station to station, and
 * lets the events of stations happen. rampipe/serve.h has the rules and the order of
 * events, station.h what a station does. */
#include "engine.h"

#include <math.h>

/* Reports a query that leaves, unless it came during the warm-up. */
static bool
tell_end(struct serve_sim *sim, const struct query *query, const char *dropped,
         double time, struct rec_error *err)
{
    struct serve_reply reply = {
        {query->id, query->id_len}, query->arrival, time, dropped};
    return !sim->sink.reply || query->arrival < sim->options.warmup ||
           sim->sink.reply(sim->sink.context, &reply, err);
}

/* The last token of a query is taken away: the query is done, and its place is free for
 * another. */
static bool
retire(struct serve_sim *sim, uint32_t index, double time, struct rec_error *err)
{
    const struct query *query = &sim->query[index];
    if (sim->watch) /* a query's index is its number in the sample: it keeps its place */
        return true;
    sim->vacant[sim->nvacant++] = index;
    return query->dropped || tell_end(sim, query, NULL, time, err);
}

/* Takes away one token of a query. */
static inline bool
release(struct serve_sim *sim, uint32_t index, double time, struct rec_error *err)
{
    return --sim->query[index].tokens > 0 || retire(sim, index, time, err);
}

/* ---- what stations call --------------------------------------------------- */

/* Counts usage up to `time`. Must be called before anything at the station changes. */
static inline void
count_usage(struct serve_station *station, double time)
{
    double seconds = time - station->counted;
    if (!(seconds > 0))
        return;
    station->counted = time;
    /* those that waited already when the warm-up ended */
    if (station->waiting > station->usage.longest)
        station->usage.longest = station->waiting;
    station->usage.waiting += seconds * station->waiting;
    station->usage.busy += seconds * station->busy;
    station->usage.replicas += seconds * station->replicas;
}

bool
serve_push(struct serve_sim *sim, struct serve_station *station, double time,
           enum serve_moment moment, uint32_t slot, struct rec_error *err)
{
    uint64_t key =
        serve_make_key(moment, station->stage->rank, station->sequence++, slot);
    return time < 1e300
               ? event_queue_push(&sim->events, (struct event_entry){time, key}, err)
               : rec_fail(err, REC_DATA,
                          "stage '%s' would work until %g s; times must be below 1e300 s",
                          station->stage->name, time);
}

bool
serve_drop_late(struct serve_sim *sim, const struct serve_station *station,
                uint32_t index, double time, bool *late, struct rec_error *err)
{
    struct query *query = &sim->query[index];
    *late = query->dropped || time - query->arrival > sim->options.drop_after;
    if (!*late)
        return true;
    if (!query->dropped) {
        query->dropped = true;
        if (!tell_end(sim, query, station->stage->name, time, err))
            return false;
    }
    return release(sim, index, time, err);
}

static bool
tell_visits(struct serve_sim *sim, const struct serve_station *station,
            const struct serve_token *token, uint32_t n, double started, double time,
            struct rec_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct query *query = &sim->query[token[i].query];
        struct serve_visit visit = {.id = {query->id, query->id_len},
                                    .stage = station->stage->name,
                                    .enqueued = token[i].enqueued,
                                    .started = started,
                                    .finished = time,
                                    .batch = n};
        if (query->arrival >= sim->options.warmup &&
            !sim->sink.visit(sim->sink.context, &visit, err))
            return false;
    }
    return true;
}

bool
serve_leave(struct serve_sim *sim, struct serve_station *station,
            const struct serve_token *token, uint32_t n, double started, double time,
            struct rec_error *err)
{
    sim->happened++;
    if (time >= sim->options.warmup) {
        station->usage.queries += n;
        station->usage.batches++;
    }
    return (!sim->watch || sim->watch(sim->sink.context, token, n, time, err)) &&
           (!sim->sink.visit ||
            tell_visits(sim, station, token, n, started, time, err)) &&
           serve_go_on(sim, sim->pipeline->out + station->stage->first_edge,
                       station->stage->nedges, token, n, time, err);
}

/* ---- along the edges ----------------------------------------------------- */

/* A copy of a query's token comes along an edge. True if it enters the stage. It does not
 * enter if the query is dropped or does not take the edge, or if the stage is a join that
 * waits for more tokens of the query: at a join only the last token goes on. */
static inline bool
comes(struct serve_sim *sim, const struct serve_edge *edge,
      const struct serve_station *to, uint32_t index)
{
    struct query *query = &sim->query[index];
    if (query->dropped ||
        (edge->chance != REC_NONE && !(query->chances >> edge->chance & 1)))
        return false;
    if (to->join != REC_NONE && --sim->waits[(size_t)index * sim->njoins + to->join] > 0)
        return false;
    query->tokens++;
    return true;
}

/* Queries come along an edge, in their order, and enter the stage together, so that they
 * may share a batch. They pass a stage with no model at once. */
static bool
arrive(struct serve_sim *sim, const struct serve_edge *edge,
       const struct serve_token *token, uint32_t n, double time, struct rec_error *err)
{
    struct serve_station *to = sim->station[edge->dst];
    uint32_t m = 0;

    sim->happened++;
    if (to->mode != SERVE_RUNS)
        return true;
    while (m < n && comes(sim, edge, to, token[m].query))
        m++;
    if (m < n) {
        if (n > to->passing_room &&
            !rec_grow(&to->passing, &to->passing_room, n, sizeof *to->passing, err))
            return false;
        memcpy(to->passing, token, m * sizeof *token);
        for (uint32_t i = m + 1; i < n; i++)
            if (comes(sim, edge, to, token[i].query))
                to->passing[m++] = token[i];
        token = to->passing;
    }
    if (!to->kind)
        return serve_go_on(sim, sim->pipeline->out + to->stage->first_edge,
                           to->stage->nedges, token, m, time, err);
    count_usage(to, time);
    if (time >= sim->options.warmup && to->waiting + m > to->usage.longest)
        to->usage.longest = to->waiting + m;
    return m == 0 || to->kind->come(sim, to, token, m, time, err);
}

/* Copies of the tokens go along all edges first, and only then the tokens themselves are
 * taken away: a query's number of tokens is 0 only when it is done. */
bool
serve_go_on(struct serve_sim *sim, const uint32_t *edges, size_t nedges,
            const struct serve_token *token, uint32_t n, double time,
            struct rec_error *err)
{
    const struct serve_edge *edge = sim->pipeline->edge;
    bool ok = true;
    for (size_t e = 0; e < nedges; e++)
        if (edge[edges[e]].dst != REC_NONE &&
            !arrive(sim, &edge[edges[e]], token, n, time, err))
            return false;
    for (uint32_t i = 0; i < n && ok; i++)
        ok = release(sim, token[i].query, time, err);
    return ok;
}

/* ---- time ---------------------------------------------------------------- */

double
serve_sim_next(const struct serve_sim *sim)
{
    return sim->events.n > 0 ? sim->events.event[0].time : (double)INFINITY;
}

/* No event is left: have all queries left, too? A station that loses one must not go
 * unnoticed, as its reply would just be missing. A query that leaves gives its place
 * back, except if there is a `watch`. */
static bool
check_left(const struct serve_sim *sim, struct rec_error *err)
{
    return sim->watch || sim->nvacant == sim->nqueries ||
           rec_fail(err, REC_BUG, "%zu queries came to a stage and never left it",
                    sim->nqueries - sim->nvacant);
}

bool
serve_sim_advance(struct serve_sim *sim, double time, struct rec_error *err)
{
    while (sim->events.n > 0 && sim->events.event[0].time <= time) {
        struct event_entry event = event_queue_pop(&sim->events);
        uint32_t rank = (uint32_t)(event.key >> (SLOT_BITS + SEQUENCE_BITS)) &
                        ((1u << RANK_BITS) - 1);
        uint32_t slot = (uint32_t)event.key & ((1u << SLOT_BITS) - 1);
        struct serve_station *station = sim->station[sim->pipeline->order[rank]];
        sim->now = event.time;
        if (station->mode == SERVE_PLAYS) {
            if (!serve_play_batch(sim, station, event.time, err))
                return false;
            continue;
        }
        count_usage(station, event.time);
        if (!station->kind->happen(sim, station, (enum serve_moment)(event.key >> 63),
                                   slot, event.time, err))
            return false;
    }
    return !isinf(time) || check_left(sim, err);
}

bool
serve_sim_query(struct serve_sim *sim, double time, struct rec_str id,
                struct rec_error *err)
{
    struct serve_token token;
    if (!serve_sim_advance(sim, time, err))
        return false;
    if (isnan(sim->begin)) {
        sim->begin = time;
        for (size_t s = 0; s < sim->pipeline->nstages; s++)
            sim->station[s]->counted = fmax(time, sim->options.warmup);
    }
    sim->now = time;
    sim->happened++;
    token = (struct serve_token){serve_open_query(sim, time, id, err), time};
    return token.query != REC_NONE &&
           serve_go_on(sim, sim->pipeline->out, sim->pipeline->nentries, &token, 1, time,
                       err);
}

/* Counts the time from the order of `n` replicas until now, when they begin to work: it
 * is paid for, too. Time before the first query, or in the warm-up, is not counted. */
static void
count_starting(struct serve_sim *sim, struct serve_station *station, uint32_t n,
               const struct serve_change *change)
{
    double from = fmax(change->ordered, fmax(sim->begin, sim->options.warmup));
    if (!isnan(sim->begin) && change->time > from)
        station->usage.replicas += n * (change->time - from);
}

bool
serve_sim_change(struct serve_sim *sim, const struct serve_change *change,
                 struct rec_error *err)
{
    struct serve_station *station = sim->station[change->stage];
    uint32_t before;
    if (!serve_sim_advance(sim, change->time, err))
        return false;
    if (!isnan(sim->begin))
        sim->now = change->time;
    count_usage(station, change->time);
    before = station->replicas;
    if (!station->kind->change(sim, station, change, err))
        return false;
    if (station->replicas > before)
        count_starting(sim, station, station->replicas - before, change);
    return true;
}

double
serve_sim_begin(const struct serve_sim *sim)
{
    return sim->begin;
}

double
serve_sim_now(const struct serve_sim *sim)
{
    return sim->now;
}

struct serve_usage
serve_sim_usage(const struct serve_sim *sim, uint32_t stage)
{
    struct serve_station station = *sim->station[stage];
    count_usage(&station, sim->now);
    return station.usage;
}

uint64_t
serve_sim_events(const struct serve_sim *sim)
{
    return sim->happened;
}
