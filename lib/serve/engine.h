/*
 * The inside of a simulation, which only its files see: setup.c makes it and its queries,
 * simulate.c lets events happen, alone.c simulates a single stage, batch.c and others are
 * kinds of station (station.h).
 *
 * A query in the pipeline has a token for each of its branches; a token is at a station.
 */
#ifndef RAMPIPE_SERVE_ENGINE_H
#define RAMPIPE_SERVE_ENGINE_H

#include "station.h"

#include "rampipe/event.h"
#include "rampipe/random.h"

struct query {
    double arrival;   /* seconds */
    uint64_t chances; /* bit i: the query takes the edge of chance i */
    uint32_t tokens;
    bool dropped;
    char *id; /* the buffer stays for the next query with this index */
    size_t id_len, id_room;
};

struct serve_sim {
    const struct serve_pipeline *pipeline;
    struct serve_options options;
    struct serve_sink sink;
    bool drops;                     /* options.drop_after is finite */
    struct serve_station **station; /* per stage */
    uint32_t njoins;                /* number of stages with several parents */
    uint16_t *parents;              /* per join: the number of its parents */
    bool *reached; /* scratch, per stage: a query being drawn comes there */
    struct rng *rng;
    struct event_queue events;
    struct query *query;
    uint16_t *waits; /* per query and join: the tokens that have not come yet */
    size_t nqueries, query_room, waits_room;
    uint32_t *vacant; /* indices of queries that have left */
    size_t nvacant, vacant_room;
    double begin, now; /* of the first query, and of the last event, seconds */
    uint64_t happened; /* number of events */
    /* hears of the batches of the only stage that is simulated; NULL: all stages are */
    bool (*watch)(void *context, const struct serve_token *token, uint32_t n, double time,
                  struct rec_error *err);
};

/* An event's key orders events of equal times, and names the event: from the highest bit,
 * its moment, the stage's rank, the event's number in its stage, and its slot. */
enum { SLOT_BITS = 21, SEQUENCE_BITS = 32, RANK_BITS = 10 };
_Static_assert(1 << SLOT_BITS == SERVE_SLOTS && (int)SERVE_SLOTS > SERVE_REPLICAS_MAX,
               "a slot each");
_Static_assert(1 << RANK_BITS >= SERVE_STAGES_MAX, "a rank each");

static inline uint64_t
serve_make_key(enum serve_moment moment, uint32_t rank, uint64_t sequence, uint32_t slot)
{
    sequence &= ((uint64_t)1 << SEQUENCE_BITS) - 1;
    return (uint64_t)moment << 63 | (uint64_t)rank << (SLOT_BITS + SEQUENCE_BITS) |
           sequence << SLOT_BITS | slot;
}

/* ---- setup.c ---- */

/* Makes a query with one token, and draws the edges that it takes. Returns its index;
 * REC_NONE: *err. */
uint32_t serve_open_query(struct serve_sim *sim, double arrival, struct rec_str id,
                          struct rec_error *err);

/* ---- simulate.c ---- */

/* Tokens leave their stage along those of `edges` that their queries take. */
bool serve_go_on(struct serve_sim *sim, const uint32_t *edges, size_t nedges,
                 const struct serve_token *token, uint32_t n, double time,
                 struct rec_error *err) REC_MUST_CHECK;

/* ---- alone.c ---- */

/* The next batch of a station that plays is done. */
bool serve_play_batch(struct serve_sim *sim, struct serve_station *station, double time,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
