/*
 * A simulation at work, which only its files see: setup.c makes it and its queries,
 * simulate.c lets things happen, alone.c simulates one stage of it.
 *
 * A query in the pipeline is as many tokens as it has branches; a token is in the queue
 * of a stage, or in a batch of it. An event is a batch that is done, or, after a batching
 * delay, one that is taken.
 */
#ifndef RAMPIPE_SERVE_ENGINE_H
#define RAMPIPE_SERVE_ENGINE_H

#include "private.h"

#include "rampipe/random.h"

struct batch {
    struct serve_token *token;
    size_t room;
    uint32_t n;
    double started; /* seconds */
};

/* What a station does in this simulation. */
enum mode { RUNS, PLAYS, IS_ABSENT };

struct station {
    enum mode mode;
    const struct serve_trail *trail; /* that it plays */
    size_t played;
    const struct serve_stage *stage;
    const struct serve_config *config;
    uint32_t most;   /* queries that a replica takes at a time */
    double *seconds; /* of a batch of 1, 2, ..., known */
    uint32_t known;
    uint32_t join; /* which of the stages with several parents; REC_NONE: none */
    /* the queue, a ring */
    struct serve_token *ring;
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
    struct serve_token *passing;
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
    /* of the one stage that is simulated alone; NULL: all are */
    bool (*watch)(void *context, const struct serve_token *token, uint32_t n, double time,
                  struct rec_error *err);
};

/* An event's key: what happens, at which stage, in which order, and the batch. */
enum { FINISH, TAKE };
enum { SLOT_BITS = 21, SEQUENCE_BITS = 32, RANK_BITS = 10 };
_Static_assert(1 << SLOT_BITS > SERVE_REPLICAS_MAX, "a slot each");
_Static_assert(1 << RANK_BITS >= SERVE_STAGES_MAX, "a rank each");

static inline uint64_t
serve_make_key(uint64_t what, uint32_t rank, uint64_t sequence, uint32_t slot)
{
    sequence &= ((uint64_t)1 << SEQUENCE_BITS) - 1;
    return what << 63 | (uint64_t)rank << (SLOT_BITS + SEQUENCE_BITS) |
           sequence << SLOT_BITS | slot;
}

/* ---- setup.c ---- */

/* Replicas of a station take at most `batch` queries from now on. */
bool serve_set_batch(struct serve_sim *sim, struct station *station, uint32_t batch,
                     struct rec_error *err) REC_MUST_CHECK;

/* A place for a query, whose edges are drawn; REC_NONE: *err. */
uint32_t serve_open_query(struct serve_sim *sim, double arrival, struct rec_str id,
                          struct rec_error *err);

/* ---- simulate.c ---- */

/* Tokens leave where they are, along the edges that their queries take. */
bool serve_go_on(struct serve_sim *sim, const uint32_t *edges, size_t nedges,
                 const struct serve_token *token, uint32_t n, double time,
                 struct rec_error *err) REC_MUST_CHECK;

/* ---- alone.c ---- */

/* The next batch that a station plays is done. */
bool serve_play_batch(struct serve_sim *sim, struct station *station, double time,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
