/*
 * Serving, event by event. A query in the pipeline is as many tokens as it has branches; a
 * token is in the queue of a stage, or in a batch of it. An event is a batch that is done, or,
 * after a batching delay, one that is taken.
 */
#include "rampipe/random.h"
#include "rampipe/serve.h"

#include <math.h>
#include <stdlib.h>

/* A token. */
struct token {
    uint32_t query;
    double enqueued; /* seconds */
};

struct batch {
    struct token *token;
    size_t room;
    uint32_t n;
    double started; /* seconds */
};

struct station {
    const struct serve_stage *stage;
    const struct serve_config *config;
    double *seconds; /* of a batch of 1, 2, ..., config->batch */
    uint32_t join;   /* which of the stages with several parents; REC_NONE: none */
    /* the queue, a ring */
    struct token *ring;
    size_t room; /* a power of two, or 0 */
    size_t head, tail;
    /* replicas: idle ones, those that wait to take a batch, those that are busy */
    uint32_t idle, taking, busy;
    uint32_t surplus; /* of the last two, those that go once they have nothing to do */
    struct batch *batch;
    size_t nbatches, batch_room;
    uint32_t *vacant; /* batches that are none */
    size_t nvacant, vacant_room;
    uint64_t sequence; /* of batches */
    struct serve_usage usage;
    double counted; /* up to when usage is known, seconds */
    /* of tokens that pass a stage with no model */
    struct token *passing;
    size_t passing_room;
};

struct query {
    double arrival;
    uint64_t chances; /* bit i: it takes edge i of those with a probability */
    uint32_t tokens;
    bool dropped;
    char *id; /* its buffer stays when another query comes here */
    size_t id_len, id_room;
};

struct serve_sim {
    const struct serve_pipeline *pipeline;
    struct serve_options options;
    struct serve_sink sink;
    bool drops;
    struct station *station; /* per stage */
    uint32_t njoins;
    uint16_t
        *parents;  /* per join: how many tokens it waits for, if all edges are taken */
    bool *reached; /* per stage, while a query's edges are drawn */
    struct rng *rng;
    struct sim_queue events;
    struct query *query;
    uint16_t *waits; /* njoins a query */
    size_t nqueries, query_room, waits_room;
    uint32_t *vacant;
    size_t nvacant, vacant_room;
    double begin, now;
    uint64_t happened;
};

/* An event's key: what happens, at which stage, in which order, and the batch. */
enum { FINISH, TAKE };
enum { SLOT_BITS = 21, SEQUENCE_BITS = 32, RANK_BITS = 10 };
_Static_assert(1 << SLOT_BITS > SERVE_REPLICAS_MAX, "a slot each");
_Static_assert(1 << RANK_BITS >= SERVE_STAGES_MAX, "a rank each");

static uint64_t
make_key(uint64_t what, uint32_t rank, uint64_t sequence, uint32_t slot)
{
    sequence &= ((uint64_t)1 << SEQUENCE_BITS) - 1;
    return what << 63 | (uint64_t)rank << (SLOT_BITS + SEQUENCE_BITS) |
           sequence << SLOT_BITS | slot;
}

/* ---- start and end ------------------------------------------------------- */

static bool
open_station(struct serve_sim *sim, uint32_t s, const struct serve_config *config,
             struct rec_error *err)
{
    struct station *station = &sim->station[s];
    const struct serve_profile *profile;
    station->stage = &sim->pipeline->stage[s];
    station->join = station->stage->parents > 1 ? sim->njoins++ : REC_NONE;
    station->config = config;
    if (station->join != REC_NONE)
        sim->parents[station->join] = (uint16_t)station->stage->parents;
    if (station->stage->model == REC_NONE)
        return true;
    profile = &sim->pipeline->profile[config->profile];
    station->idle = config->replicas;
    station->seconds = malloc(config->batch * sizeof *station->seconds);
    if (!station->seconds)
        return rec_fail_memory(err);
    for (uint32_t n = 1; n <= config->batch; n++)
        station->seconds[n - 1] = serve_seconds(profile, sim->options.service, n);
    return true;
}

struct serve_sim *
serve_sim_new(const struct serve_pipeline *pipeline, const struct serve_config *config,
              const struct serve_options *options, const struct serve_sink *sink,
              struct rec_error *err)
{
    struct serve_sim *sim = calloc(1, sizeof *sim);
    size_t n = pipeline->nstages + 1;
    if (!sim) {
        rec_fail_memory(err);
        return NULL;
    }
    sim->pipeline = pipeline;
    sim->options = *options;
    sim->sink = *sink;
    sim->drops = !isinf(options->drop_after);
    sim->begin = sim->now = NAN;
    sim->station = calloc(n, sizeof *sim->station);
    sim->parents = calloc(n, sizeof *sim->parents);
    sim->reached = calloc(n, sizeof *sim->reached);
    if (!sim->station || !sim->parents || !sim->reached) {
        rec_fail_memory(err);
        goto failed;
    }
    for (size_t i = 0; i < pipeline->nstages; i++) {
        uint32_t s = pipeline->order[i];
        if (!open_station(sim, s, config ? &config[s] : &pipeline->stage[s].config, err))
            goto failed;
    }
    if (pipeline->nchances > 0 &&
        !(sim->rng = rng_new(options->seed, options->stream, err)))
        goto failed;
    return sim;
failed:
    serve_sim_free(sim);
    return NULL;
}

static void
close_station(struct station *station)
{
    for (size_t i = 0; i < station->nbatches; i++)
        free(station->batch[i].token);
    free(station->batch);
    free(station->vacant);
    free(station->ring);
    free(station->seconds);
    free(station->passing);
}

void
serve_sim_free(struct serve_sim *sim)
{
    if (!sim)
        return;
    for (size_t s = 0; sim->station && s < sim->pipeline->nstages; s++)
        close_station(&sim->station[s]);
    for (size_t q = 0; q < sim->nqueries; q++)
        free(sim->query[q].id);
    rng_free(sim->rng);
    sim_queue_free(&sim->events);
    free(sim->station);
    free(sim->parents);
    free(sim->reached);
    free(sim->query);
    free(sim->waits);
    free(sim->vacant);
    free(sim);
}

/* ---- queries ------------------------------------------------------------- */

/* Which edges a query takes, drawn for all alike; how many tokens each join waits for. */
static void
draw_edges(struct serve_sim *sim, struct query *query, uint16_t *waits)
{
    const struct serve_pipeline *p = sim->pipeline;
    const struct serve_edge *edge;

    memcpy(waits, sim->parents, sim->njoins * sizeof *waits);
    query->chances = 0;
    if (!sim->rng)
        return;
    for (size_t i = 0; i < p->nedges; i++)
        if (p->edge[i].chance != REC_NONE)
            query->chances |= (uint64_t)(rng_uniform(sim->rng) < p->edge[i].p)
                              << p->edge[i].chance;
    memset(waits, 0, sim->njoins * sizeof *waits);
    memset(sim->reached, 0, p->nstages * sizeof *sim->reached);
    for (size_t i = 0, at = 0; i <= p->nstages; i++) {
        const struct serve_stage *stage = i > 0 ? &p->stage[p->order[i - 1]] : NULL;
        size_t n = stage ? stage->nedges : p->nentries;
        at = stage ? stage->first_edge : 0;
        if (stage && !sim->reached[p->order[i - 1]])
            continue;
        for (size_t e = 0; e < n; e++) {
            edge = &p->edge[p->out[at + e]];
            if (edge->dst == REC_NONE ||
                (edge->chance != REC_NONE && !(query->chances >> edge->chance & 1)))
                continue;
            sim->reached[edge->dst] = true;
            if (sim->station[edge->dst].join != REC_NONE)
                waits[sim->station[edge->dst].join]++;
        }
    }
}

/* A place for a query, REC_NONE: *err. */
static uint32_t
open_query(struct serve_sim *sim, double arrival, struct rec_str id,
           struct rec_error *err)
{
    uint32_t index;
    struct query *query;
    if (sim->nvacant > 0)
        index = sim->vacant[--sim->nvacant];
    else {
        if (sim->nqueries >= REC_NONE ||
            !rec_grow(&sim->query, &sim->query_room, sim->nqueries + 1,
                      sizeof *sim->query, err) ||
            !rec_grow(&sim->waits, &sim->waits_room, (sim->nqueries + 1) * sim->njoins,
                      sizeof *sim->waits, err) ||
            !rec_grow(&sim->vacant, &sim->vacant_room, sim->nqueries + 1,
                      sizeof *sim->vacant, err))
            return REC_NONE;
        index = (uint32_t)sim->nqueries++;
        sim->query[index] = (struct query){0};
    }
    query = &sim->query[index];
    query->arrival = arrival;
    query->tokens = 1; /* at the source */
    query->dropped = false;
    if (id.len > query->id_room && !rec_grow(&query->id, &query->id_room, id.len, 1, err))
        return REC_NONE;
    if (id.len > 0)
        memcpy(query->id, id.ptr, id.len);
    query->id_len = id.len;
    draw_edges(sim, query, sim->waits + index * sim->njoins);
    return index;
}

static bool
tell_end(struct serve_sim *sim, const struct query *query, const char *dropped,
         double time, struct rec_error *err)
{
    struct serve_reply reply = {
        {query->id, query->id_len}, query->arrival, time, dropped};
    return !sim->sink.reply || query->arrival < sim->options.warmup ||
           sim->sink.reply(sim->sink.context, &reply, err);
}

/* One token less; with the last of them the query is done. */
static bool
release(struct serve_sim *sim, uint32_t index, double time, struct rec_error *err)
{
    struct query *query = &sim->query[index];
    if (--query->tokens > 0)
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

/* What the station is doing it does until `time`. */
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
enqueue(struct station *station, struct token token, struct rec_error *err)
{
    size_t n = station->tail - station->head;
    if (n == station->room) {
        struct token *ring;
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

/* The number of a batch that is free. */
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

/* A query that nobody waits for any more: true, one token of it is gone. */
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

/* A replica takes what waits, up to a batch. It must be counted as busy; with nothing there
 * it becomes idle. */
static bool
start_batch(struct serve_sim *sim, struct station *station, double time,
            struct rec_error *err)
{
    uint32_t most = station->config->batch, slot;
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
        struct token token = station->ring[station->head++ & (station->room - 1)];
        if (!sim->drops || !is_late(sim, station, token.query, time, &ok, err))
            batch->token[batch->n++] = token;
    }
    sim->happened++;
    if (batch->n > 0)
        return ok &&
               sim_queue_push(&sim->events,
                              (struct sim_event){time + station->seconds[batch->n - 1],
                                                 make_key(FINISH, station->stage->rank,
                                                          station->sequence++, slot)},
                              err);
    station->vacant[station->nvacant++] = slot;
    station->busy--;
    if (station->surplus > 0)
        station->surplus--;
    else
        station->idle++;
    return ok;
}

/* Idle replicas see `n` queries that came: as many as they need take them, at once or after
 * the batching delay. */
static bool
wake(struct serve_sim *sim, struct station *station, uint32_t n, double time,
     struct rec_error *err)
{
    uint32_t most = station->config->batch, needed = n / most + (n % most > 0);
    double delay = station->config->delay;

    while (needed-- > 0 && station->idle > 0) {
        station->idle--;
        if (delay > 0) {
            station->taking++;
            if (!sim_queue_push(
                    &sim->events,
                    (struct sim_event){time + delay, make_key(TAKE, station->stage->rank,
                                                              station->sequence++, 0)},
                    err))
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

static bool go_on(struct serve_sim *sim, const uint32_t *edges, size_t nedges,
                  const struct token *token, uint32_t n, double time,
                  struct rec_error *err);

/* A token that goes along an edge to where nobody waits for others. */
static inline bool
comes(struct serve_sim *sim, const struct serve_edge *edge, const struct station *to,
      uint32_t index)
{
    struct query *query = &sim->query[index];
    if (query->dropped ||
        (edge->chance != REC_NONE && !(query->chances >> edge->chance & 1)))
        return false;
    if (to->join != REC_NONE && --sim->waits[index * sim->njoins + to->join] > 0)
        return false;
    query->tokens++;
    return true;
}

/* What comes at a stage with no model passes at once. */
static bool
pass(struct serve_sim *sim, const struct serve_edge *edge, struct station *to,
     const struct token *token, uint32_t n, double time, struct rec_error *err)
{
    uint32_t m = 0;
    if (!rec_grow(&to->passing, &to->passing_room, n, sizeof *to->passing, err))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (comes(sim, edge, to, token[i].query))
            to->passing[m++] = (struct token){token[i].query, time};
    return go_on(sim, sim->pipeline->out + to->stage->first_edge, to->stage->nedges,
                 to->passing, m, time, err);
}

/* Queries come along an edge, as one list. */
static bool
arrive(struct serve_sim *sim, const struct serve_edge *edge, const struct token *token,
       uint32_t n, double time, struct rec_error *err)
{
    struct station *to = &sim->station[edge->dst];
    uint32_t m = 0;

    sim->happened++;
    if (to->stage->model == REC_NONE)
        return pass(sim, edge, to, token, n, time, err);
    count_usage(to, time);
    for (uint32_t i = 0; i < n; i++)
        if (comes(sim, edge, to, token[i].query)) {
            if (!enqueue(to, (struct token){token[i].query, time}, err))
                return false;
            m++;
        }
    if (time >= sim->options.warmup && queue_length(to) > to->usage.longest)
        to->usage.longest = queue_length(to);
    return wake(sim, to, m, time, err);
}

/* Tokens leave where they are, along the edges that their queries take. */
static bool
go_on(struct serve_sim *sim, const uint32_t *edges, size_t nedges,
      const struct token *token, uint32_t n, double time, struct rec_error *err)
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

/* A replica has nothing to do: it goes, if it is one too many, else takes what waits. */
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
    /* The batch's place is free once its tokens have gone on. */
    if ((sim->sink.visit && !tell_visits(sim, station, &batch, time, err)) ||
        !go_on(sim, sim->pipeline->out + station->stage->first_edge,
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
        struct sim_event event = sim_queue_pop(&sim->events);
        uint32_t rank = (uint32_t)(event.key >> (SLOT_BITS + SEQUENCE_BITS)) &
                        ((1u << RANK_BITS) - 1);
        uint32_t slot = (uint32_t)event.key & ((1u << SLOT_BITS) - 1);
        struct station *station = &sim->station[sim->pipeline->order[rank]];
        sim->now = event.time;
        if (!(event.key >> 63 == FINISH
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
    struct token token;
    if (!serve_sim_advance(sim, time, err))
        return false;
    if (isnan(sim->begin)) {
        sim->begin = time;
        for (size_t s = 0; s < sim->pipeline->nstages; s++)
            sim->station[s].counted = fmax(time, sim->options.warmup);
    }
    sim->now = time;
    sim->happened++;
    token = (struct token){open_query(sim, time, id, err), time};
    return token.query != REC_NONE &&
           go_on(sim, sim->pipeline->out, sim->pipeline->nentries, &token, 1, time, err);
}

bool
serve_sim_replicas(struct serve_sim *sim, uint32_t stage, uint32_t replicas, double time,
                   struct rec_error *err)
{
    struct station *station = &sim->station[stage];
    uint32_t now, more, stay;
    if (!serve_sim_advance(sim, time, err))
        return false;
    count_usage(station, time);
    now = station->idle + station->taking + station->busy - station->surplus;
    if (replicas < now) {
        more = now - replicas;
        stay = more < station->idle ? more : station->idle;
        station->idle -= stay;
        station->surplus += more - stay;
        return true;
    }
    more = replicas - now;
    stay = more < station->surplus ? more : station->surplus;
    station->surplus -= stay;
    station->idle += more - stay;
    return wake(sim, station, queue_length(station), time, err);
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
