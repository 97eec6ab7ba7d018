/* Makes a simulation's stations, and the queries in it. Memory follows the queries that
 * are in the pipeline, not all that came: the place of one that has left is used
 * again. */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

/* ---- start and end ------------------------------------------------------- */

static bool
open_station(struct serve_sim *sim, uint32_t s, const struct serve_config *config,
             struct rec_error *err)
{
    const struct serve_stage *stage = &sim->pipeline->stage[s];
    const struct serve_station_kind *kind = stage->kind;
    struct serve_station *station = calloc(1, kind ? kind->size : sizeof *station);
    if (!station)
        return rec_fail_memory(err);
    sim->station[s] = station;
    station->kind = kind;
    station->stage = stage;
    station->config = config;
    station->join = stage->parents > 1 ? sim->njoins++ : REC_NONE;
    station->counted = (double)INFINITY; /* until the first query comes */
    if (station->join != REC_NONE)
        sim->parents[station->join] = (uint16_t)stage->parents;
    if (!kind)
        return true;
    station->profile = &sim->pipeline->profile[config->profile];
    return kind->open(station, &sim->options, err);
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
close_station(struct serve_station *station)
{
    if (station && station->kind)
        station->kind->close(station);
    if (station)
        free(station->passing);
    free(station);
}

void
serve_sim_free(struct serve_sim *sim)
{
    if (!sim)
        return;
    for (size_t s = 0; sim->station && s < sim->pipeline->nstages; s++)
        close_station(sim->station[s]);
    for (size_t q = 0; q < sim->nqueries; q++)
        free(sim->query[q].id);
    rng_free(sim->rng);
    event_queue_free(&sim->events);
    free(sim->station);
    free(sim->parents);
    free(sim->reached);
    free(sim->query);
    free(sim->waits);
    free(sim->vacant);
    free(sim);
}

/* ---- queries ------------------------------------------------------------- */

/* Draws the edges that a query takes, and counts the tokens that each join waits for.
 * Every query draws a number for each edge with a probability, even for edges that it
 * cannot reach: so what it takes depends on its number only. A join waits for a token on
 * each of its edges whose source the query reaches and that it takes; stages are visited
 * in topological order, so that a stage's source is known before it. The first round of
 * the loop is the source. */
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
            if (sim->station[edge->dst]->join != REC_NONE)
                waits[sim->station[edge->dst]->join]++;
        }
    }
}

uint32_t
serve_open_query(struct serve_sim *sim, double arrival, struct rec_str id,
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
            !rec_grow(&sim->waits, &sim->waits_room,
                      (sim->nqueries + 1) * sim->njoins + 1, /* without joins, too */
                      sizeof *sim->waits, err) ||
            !rec_grow(&sim->vacant, &sim->vacant_room, sim->nqueries + 1,
                      sizeof *sim->vacant, err))
            return REC_NONE;
        index = (uint32_t)sim->nqueries++;
        sim->query[index] = (struct query){0};
    }
    query = &sim->query[index];
    query->arrival = arrival;
    query->tokens = 1; /* it stands at the source */
    query->dropped = false;
    if (id.len > query->id_room && !rec_grow(&query->id, &query->id_room, id.len, 1, err))
        return REC_NONE;
    if (id.len > 0)
        memcpy(query->id, id.ptr, id.len);
    query->id_len = id.len;
    draw_edges(sim, query, sim->waits + (size_t)index * sim->njoins);
    return index;
}
