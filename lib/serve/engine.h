/*
 * The inside of a simulation, which only its files see: setup.c makes it and its queries,
 * simulate.c lets events happen, alone.c simulates a single stage.
 *
 * A query in the pipeline has a token for each of its branches; a token is in the queue
 * of a stage, or in one of its batches. There are two kinds of event: a batch is done, or
 * a replica takes a batch after the batching delay.
 */
#ifndef RAMPIPE_SERVE_ENGINE_H
#define RAMPIPE_SERVE_ENGINE_H

#include "private.h"

#include "rampipe/event.h"
#include "rampipe/random.h"

struct batch {
    struct serve_token *token;
    size_t room;
    uint32_t n;
    double started; /* seconds */
};

/* What a stage's station does in this simulation: it serves queries; it plays back the
 * batches of an earlier simulation; or nothing, and queries do not come to it. */
enum mode { RUNS, PLAYS, IS_ABSENT };

struct station {
    enum mode mode;
    const struct serve_trail *trail; /* PLAYS: the batches */
    size_t played;                   /* PLAYS: how many of them are over */
    const struct serve_stage *stage;
    const struct serve_config *config;
    uint32_t most;   /* the most queries in a batch */
    double *seconds; /* [n - 1]: time of a batch of n, for n up to `known` */
    uint32_t known;
    uint32_t join; /* index among the stages with several parents; REC_NONE: one parent */
    /* the queue, a ring: head and tail only grow, and count modulo `room` */
    struct serve_token *ring;
    size_t room; /* a power of two, or 0 */
    size_t head, tail;
    /* numbers of replicas: idle, waiting for the batching delay, busy */
    uint32_t idle, taking, busy;
    uint32_t surplus; /* of `taking` and `busy`, those that go when they become idle */
    struct batch *batch;
    size_t nbatches, batch_room;
    uint32_t *vacant; /* indices of batches that are not in use */
    size_t nvacant, vacant_room;
    uint64_t sequence; /* number of the next event */
    struct serve_usage usage;
    double counted; /* the time up to which usage is counted, seconds */
    /* scratch: tokens that pass a stage with no model, or leave a batch that is played */
    struct serve_token *passing;
    size_t passing_room;
};

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
    bool drops;              /* options.drop_after is finite */
    struct station *station; /* per stage */
    uint32_t njoins;         /* number of stages with several parents */
    uint16_t *parents;       /* per join: the number of its parents */
    bool *reached;           /* scratch, per stage: a query being drawn comes there */
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

/* An event's key orders events of equal times, and names the batch: from the highest bit,
 * the kind of event, the stage's rank, the event's number in its stage, and the batch's
 * index. */
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

/* From now on, replicas of a station take at most `batch` queries. */
bool serve_set_batch(struct serve_sim *sim, struct station *station, uint32_t batch,
                     struct rec_error *err) REC_MUST_CHECK;

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

/* The next batch of a station that PLAYS is done. */
bool serve_play_batch(struct serve_sim *sim, struct station *station, double time,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
