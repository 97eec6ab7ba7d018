/*
 * Stations. While a pipeline is simulated, every stage with a model has a station, where
 * its queries are served. What a station does is a row of functions, struct
 * serve_station_kind, and the engine (simulate.c) knows a station only by its row:
 *
 *     edges --> come() --> queue, replicas --> serve_leave() --> edges
 *                              |     ^
 *                 serve_push() |     | happen()
 *                              v     |
 *                       the queue of events
 *
 * The engine decides which queries come to a station (edges with a probability, joins,
 * dropped queries), orders the events of all stations, reports visits and replies, and
 * sums up usage. To add a kind of station:
 *
 * 1. lib/serve/NAME.c: a struct that begins with a struct serve_station; the functions;
 *    the row, `const struct serve_station_kind serve_NAME`. The row's fields stand in
 *    order and without their names, so that one that is missing does not compile.
 * 2. The row's declaration at the end of this file, and a line in serve_pipeline_seal(),
 *    which says by the records of a stage that it is of this kind.
 * 3. A unit test whose figures are worked out by hand.
 *
 * batch.c is such a file; tests/unit/test_station.c adds a kind of its own.
 */
#ifndef RAMPIPE_SERVE_STATION_H
#define RAMPIPE_SERVE_STATION_H

#include "private.h"

/* A stage's station. A kind keeps its own data behind it. */
struct serve_station {
    const struct serve_station_kind *kind; /* NULL: no model, queries pass at once */
    const struct serve_stage *stage;
    const struct serve_config *config;   /* the stage's first one, not the changed one */
    const struct serve_profile *profile; /* that of the config; NULL: no model */
    /* What the engine sums up over time (struct serve_usage); the kind keeps it right. */
    uint32_t waiting;  /* queries in the queue */
    uint32_t busy;     /* replicas at work */
    uint32_t replicas; /* replicas that are paid for */
    /* What follows is the engine's; a kind leaves it alone. */
    enum serve_mode mode;
    const struct serve_trail *trail; /* SERVE_PLAYS: the batches */
    size_t played;                   /* SERVE_PLAYS: how many of them are over */
    uint32_t join;     /* index among the stages with several parents; REC_NONE */
    uint64_t sequence; /* number of the next event */
    struct serve_usage usage;
    double counted; /* the time up to which usage is counted, seconds */
    /* scratch: tokens that enter the station, or leave a batch that is played */
    struct serve_token *passing;
    size_t passing_room;
};

/* When an event happens among those of equal times: what ends at any station comes before
 * what begins at any. */
enum serve_moment { SERVE_ENDS, SERVE_BEGINS };

/*
 * A kind of station. In every call `time` is that of the simulation, seconds, and usage
 * has been counted up to it: so a function may change `waiting`, `busy` and `replicas` as
 * it goes. False: *err; the simulation has failed, and the only call that follows is
 * close().
 */
struct serve_station_kind {
    size_t size; /* of its struct, which begins with a struct serve_station */
    /* Begins with the station's config. What the kind keeps is zero. */
    bool (*open)(struct serve_station *station, const struct serve_options *options,
                 struct rec_error *err);
    /* n queries come, at least one, in the order in which they are to be served: the
     * station keeps for each {token[i].query, time}. Every one must leave later, by
     * serve_leave(), or be dropped, by serve_drop_late(). */
    bool (*come)(struct serve_sim *sim, struct serve_station *station,
                 const struct serve_token *token, uint32_t n, double time,
                 struct rec_error *err);
    /* An event of the station happens, of those that it announced by serve_push(). */
    bool (*happen)(struct serve_sim *sim, struct serve_station *station,
                   enum serve_moment moment, uint32_t slot, double time,
                   struct rec_error *err);
    /* From now on, change->time, the stage has change->replicas, which take at most
     * change->batch queries. What is being served is finished as it was begun; new
     * replicas work at once. */
    bool (*change)(struct serve_sim *sim, struct serve_station *station,
                   const struct serve_change *change, struct rec_error *err);
    /* Frees what the station owns, but not the struct; also after a failed open(). */
    void (*close)(struct serve_station *station);
};

/* ---- what a kind may call (simulate.c) ------------------------------------ */

/* Announces an event of the station: at `time` its happen() is called with `moment` and
 * `slot`, a number of its own below SERVE_SLOTS. Events of equal times and moments happen
 * by stage, in topological order, and at one stage in the order in which they were
 * announced. REC_DATA: the time is not below 1e300; sums of such times, over replicas or
 * queries, might exceed the range of a double. */
enum { SERVE_SLOTS = 1 << 21 };
bool serve_push(struct serve_sim *sim, struct serve_station *station, double time,
                enum serve_moment moment, uint32_t slot,
                struct rec_error *err) REC_MUST_CHECK;
/* n queries leave the station, which served them together as a batch since `started`.
 * Their visits are reported, and they go on along the edges; `token` must stay as it is
 * meanwhile. */
bool serve_leave(struct serve_sim *sim, struct serve_station *station,
                 const struct serve_token *token, uint32_t n, double started, double time,
                 struct rec_error *err) REC_MUST_CHECK;
/* To be called before a query begins to be served. *late: it has been dropped, now
 * because it is too late (options.drop_after), or before elsewhere; its token is gone. */
bool serve_drop_late(struct serve_sim *sim, const struct serve_station *station,
                     uint32_t query, double time, bool *late,
                     struct rec_error *err) REC_MUST_CHECK;

/* ---- the kinds ------------------------------------------------------------- */

/* Replicas with one queue, which take batches (rampipe/serve.h). */
extern const struct serve_station_kind serve_batches;

#endif
