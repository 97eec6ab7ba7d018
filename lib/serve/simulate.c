/* Serves queries event by event: a discrete-event simulation with a queue of batches that
 * end and of replicas that take a batch. rampipe/serve.h has the rules and the order of
 * events. */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

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

/* Takes away one token of a query. With the last one the query is done, and its place is
 * free for another. */
static bool
release(struct serve_sim *sim, uint32_t index, double time, struct rec_error *err)
{
    struct query *query = &sim->query[index];
    if (--query->tokens > 0)
        return true;
    if (sim->watch) /* a query's index is its number in the sample: it keeps its place */
        return true;
    sim->vacant[sim->nvacant++] = index;
    return query->dropped || tell_end(sim, query, NULL, time, err);
}

/* ---- stations ------------------------------------------------------------ */

static uint32_t
queue_length(const struct station *station)
{
    return (uint32_t)(station->tail - station->head);
}

/* Counts usage up to `time`. Must be called before the queue or the replicas change. */
static inline void
count_usage(struct station *station, double time)
{
    double seconds = time - station->counted;
    if (!(seconds > 0))
        return;
    station->counted = time;
    station->usage.waiting += seconds * queue_length(station);
    station->usage.busy += seconds * station->busy;
    station->usage.replicas +=
        seconds * (station->idle + station->taking + station->busy);
}

static bool
enqueue(struct station *station, struct serve_token token, struct rec_error *err)
{
    size_t n = station->tail - station->head;
    if (n == station->room) {
        struct serve_token *ring;
        if (n >= REC_NONE || !(ring = malloc((n ? 2 * n : 64) * sizeof *ring)))
            return rec_fail_memory(err);
        for (size_t i = 0; i < n; i++)
            ring[i] = station->ring[(station->head + i) & (n - 1)];
        free(station->ring);
        station->ring = ring;
        station->room = n ? 2 * n : 64;
        station->head = 0;
        station->tail = n;
    }
    station->ring[station->tail++ & (station->room - 1)] = token;
    return true;
}

/* Finds a batch that is not in use. `vacant` grows with `batch`, so that giving one back
 * never needs memory. */
static bool
open_batch(struct station *station, uint32_t *slot, struct rec_error *err)
{
    if (station->nvacant > 0) {
        *slot = station->vacant[--station->nvacant];
        return true;
    }
    *slot = (uint32_t)station->nbatches;
    if (!rec_grow(&station->batch, &station->batch_room, station->nbatches + 1,
                  sizeof *station->batch, err) ||
        !rec_grow(&station->vacant, &station->vacant_room, station->nbatches + 1,
                  sizeof *station->vacant, err))
        return false;
    station->batch[station->nbatches++] = (struct batch){0};
    return true;
}

/* Checks the token at the head of the queue. True if its query was dropped before, or is
 * dropped now because it is too late; the token is then released. *ok becomes false if an
 * error occurred (*err). */
static bool
is_late(struct serve_sim *sim, const struct station *station, uint32_t index, double time,
        bool *ok, struct rec_error *err)
{
    struct query *query = &sim->query[index];
    if (!query->dropped && !(time - query->arrival > sim->options.drop_after))
        return false;
    if (!query->dropped) {
        query->dropped = true;
        *ok = tell_end(sim, query, station->stage->name, time, err);
    }
    *ok = release(sim, index, time, err) && *ok;
    return true;
}

/* Adds an event of a station. Times above 1e300 are refused: sums of them, over replicas
 * or queries, might exceed the range of a double. */
static bool
push(struct serve_sim *sim, struct station *station, double time, uint64_t what,
     uint32_t slot, struct rec_error *err)
{
    uint64_t key = serve_make_key(what, station->stage->rank, station->sequence++, slot);
    return time < 1e300
               ? event_queue_push(&sim->events, (struct event_entry){time, key}, err)
               : rec_fail(err, REC_DATA,
                          "stage '%s' would work until %g s; times must be below 1e300 s",
                          station->stage->name, time);
}

/* A replica takes waiting queries, up to a batch. The caller has counted it as busy. If
 * no query waits (or all were dropped), the replica becomes idle, or is removed if there
 * is one replica too many. */
static bool
start_batch(struct serve_sim *sim, struct station *station, double time,
            struct rec_error *err)
{
    uint32_t most = station->most, slot;
    struct batch *batch;
    bool ok = true;

    if (!open_batch(station, &slot, err))
        return false;
    batch = &station->batch[slot];
    if (!rec_grow(&batch->token, &batch->room,
                  queue_length(station) < most ? queue_length(station) : most,
                  sizeof *batch->token, err))
        return false;
    batch->n = 0;
    batch->started = time;
    while (batch->n < most && station->head < station->tail) {
        struct serve_token token = station->ring[station->head++ & (station->room - 1)];
        if (!sim->drops || !is_late(sim, station, token.query, time, &ok, err))
            batch->token[batch->n++] = token;
    }
    sim->happened++;
    if (batch->n > 0)
        return ok && push(sim, station, time + station->seconds[batch->n - 1], FINISH,
                          slot, err);
    station->vacant[station->nvacant++] = slot;
    station->busy--;
    if (station->surplus > 0)
        station->surplus--;
    else
        station->idle++;
    return ok;
}

/* Lets idle replicas take batches for `n` queries of the queue: as many replicas as these
 * queries need, or all idle ones if they are fewer. They take the batches at once, or
 * after the batching delay. */
static bool
wake(struct serve_sim *sim, struct station *station, uint32_t n, double time,
     struct rec_error *err)
{
    uint32_t most = station->most, needed = n / most + (n % most > 0);
    double delay = station->config->delay;

    while (needed-- > 0 && station->idle > 0) {
        station->idle--;
        if (delay > 0) {
            station->taking++;
            if (!push(sim, station, time + delay, TAKE, 0, err))
                return false;
        } else {
            station->busy++;
            if (!start_batch(sim, station, time, err))
                return false;
        }
    }
    return true;
}

/* ---- along the edges ----------------------------------------------------- */

/* A copy of a query's token comes along an edge. True if it enters the stage. It does not
 * enter if the query is dropped or does not take the edge, or if the stage is a join that
 * waits for more tokens of the query: at a join only the last token goes on. */
static inline bool
comes(struct serve_sim *sim, const struct serve_edge *edge, const struct station *to,
      uint32_t index)
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

/* Queries come to a stage with no model: they pass it at once. */
static bool
pass(struct serve_sim *sim, const struct serve_edge *edge, struct station *to,
     const struct serve_token *token, uint32_t n, double time, struct rec_error *err)
{
    uint32_t m = 0;
    if (!rec_grow(&to->passing, &to->passing_room, n, sizeof *to->passing, err))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (comes(sim, edge, to, token[i].query))
            to->passing[m++] = (struct serve_token){token[i].query, time};
    return serve_go_on(sim, sim->pipeline->out + to->stage->first_edge, to->stage->nedges,
                       to->passing, m, time, err);
}

/* Queries come along an edge, in their order. All are in the queue before a replica takes
 * any, so that they may share a batch. */
static bool
arrive(struct serve_sim *sim, const struct serve_edge *edge,
       const struct serve_token *token, uint32_t n, double time, struct rec_error *err)
{
    struct station *to = &sim->station[edge->dst];
    uint32_t m = 0;

    sim->happened++;
    if (to->stage->model == REC_NONE)
        return pass(sim, edge, to, token, n, time, err);
    if (to->mode != RUNS)
        return true;
    count_usage(to, time);
    for (uint32_t i = 0; i < n; i++)
        if (comes(sim, edge, to, token[i].query)) {
            if (!enqueue(to, (struct serve_token){token[i].query, time}, err))
                return false;
            m++;
        }
    if (time >= sim->options.warmup && queue_length(to) > to->usage.longest)
        to->usage.longest = queue_length(to);
    return wake(sim, to, m, time, err);
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

static bool
tell_visits(struct serve_sim *sim, const struct station *station,
            const struct batch *batch, double time, struct rec_error *err)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct query *query = &sim->query[batch->token[i].query];
        struct serve_visit visit = {{query->id, query->id_len},
                                    station->stage->name,
                                    batch->token[i].enqueued,
                                    batch->started,
                                    time,
                                    batch->n};
        if (query->arrival >= sim->options.warmup &&
            !sim->sink.visit(sim->sink.context, &visit, err))
            return false;
    }
    return true;
}

/* A replica has finished its batch. It is removed if there is one replica too many; else
 * it becomes idle, and takes the next batch if queries wait. */
static bool
go_free(struct serve_sim *sim, struct station *station, double time,
        struct rec_error *err)
{
    if (station->surplus > 0)
        station->surplus--;
    else {
        station->idle++;
        return wake(sim, station, queue_length(station) > 0, time, err);
    }
    return true;
}

static bool
finish_batch(struct serve_sim *sim, struct station *station, uint32_t slot, double time,
             struct rec_error *err)
{
    struct batch batch = station->batch[slot];
    count_usage(station, time);
    if (time >= sim->options.warmup) {
        station->usage.queries += batch.n;
        station->usage.batches++;
    }
    station->busy--;
    /* The batch is given back only after its tokens have gone on, so that no other batch
     * uses its memory before. */
    if ((sim->watch && !sim->watch(sim->sink.context, batch.token, batch.n, time, err)) ||
        (sim->sink.visit && !tell_visits(sim, station, &batch, time, err)) ||
        !serve_go_on(sim, sim->pipeline->out + station->stage->first_edge,
                     station->stage->nedges, batch.token, batch.n, time, err))
        return false;
    station->vacant[station->nvacant++] = slot;
    sim->happened++;
    return go_free(sim, station, time, err);
}

static bool
take_batch(struct serve_sim *sim, struct station *station, double time,
           struct rec_error *err)
{
    count_usage(station, time);
    station->taking--;
    station->busy++;
    return start_batch(sim, station, time, err);
}

/* ---- time ---------------------------------------------------------------- */

double
serve_sim_next(const struct serve_sim *sim)
{
    return sim->events.n > 0 ? sim->events.event[0].time : (double)INFINITY;
}

bool
serve_sim_advance(struct serve_sim *sim, double time, struct rec_error *err)
{
    while (sim->events.n > 0 && sim->events.event[0].time <= time) {
        struct event_entry event = event_queue_pop(&sim->events);
        uint32_t rank = (uint32_t)(event.key >> (SLOT_BITS + SEQUENCE_BITS)) &
                        ((1u << RANK_BITS) - 1);
        uint32_t slot = (uint32_t)event.key & ((1u << SLOT_BITS) - 1);
        struct station *station = &sim->station[sim->pipeline->order[rank]];
        sim->now = event.time;
        if (!(station->mode == PLAYS ? serve_play_batch(sim, station, event.time, err)
              : event.key >> 63 == FINISH
                  ? finish_batch(sim, station, slot, event.time, err)
                  : take_batch(sim, station, event.time, err)))
            return false;
    }
    return true;
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
            sim->station[s].counted = fmax(time, sim->options.warmup);
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
count_starting(struct serve_sim *sim, struct station *station, uint32_t n,
               const struct serve_change *change)
{
    double from = fmax(change->ordered, fmax(sim->begin, sim->options.warmup));
    if (!isnan(sim->begin) && change->time > from)
        station->usage.replicas += n * (change->time - from);
}

/* If there are too many replicas, idle ones are removed at once; `surplus` is the number
 * of others that are removed when they become idle. If there are too few replicas, those
 * in `surplus` are kept before new ones are added. */
bool
serve_sim_change(struct serve_sim *sim, const struct serve_change *change,
                 struct rec_error *err)
{
    struct station *station = &sim->station[change->stage];
    uint32_t now, more, stay;
    if (!serve_sim_advance(sim, change->time, err))
        return false;
    count_usage(station, change->time);
    if (!serve_set_batch(sim, station, change->batch, err))
        return false;
    if (!isnan(sim->begin))
        sim->now = change->time;
    now = station->idle + station->taking + station->busy - station->surplus;
    /* A replica in its batching delay is not idle: it takes its batch first. */
    if (change->replicas <= now) {
        more = now - change->replicas;
        stay = more < station->idle ? more : station->idle;
        station->idle -= stay;
        station->surplus += more - stay;
        return true;
    }
    more = change->replicas - now;
    stay = more < station->surplus ? more : station->surplus;
    station->surplus -= stay;
    station->idle += more - stay;
    count_starting(sim, station, more - stay, change);
    return wake(sim, station, queue_length(station), change->time, err);
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
    struct station station = sim->station[stage];
    count_usage(&station, sim->now);
    return station.usage;
}

uint64_t
serve_sim_events(const struct serve_sim *sim)
{
    return sim->happened;
}
