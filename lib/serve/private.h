/*
 * What the files of lib/serve share with each other and with nobody else. Mainly: the
 * planner may have one stage simulated alone, while the batches of the stages before it
 * are played back. This gives the same result as simulating all, since no stage depends
 * on one whose queries do not come to it.
 */
#ifndef RAMPIPE_SERVE_PRIVATE_H
#define RAMPIPE_SERVE_PRIVATE_H

#include "rampipe/serve.h"

/* Appends an edge: of a record or, while the pipeline is sealed, from the source. */
bool serve_add_edge(struct serve_pipeline *pipeline, struct serve_edge edge,
                    struct rec_error *err) REC_MUST_CHECK;

/* The largest batch of a profile. */
uint64_t serve_largest(const struct serve_profile *profile);
/* Reads a config record with time=, for a sealed pipeline. Only REPLICAS and BATCH may
 * differ from the stage's first config. */
bool serve_read_change(struct serve_pipeline *pipeline, const struct rec_reader *reader,
                       const struct rec *rec, struct serve_change *change,
                       struct rec_error *err) REC_MUST_CHECK;
/* A query or change is at `time` (seconds). False: *err, time runs backwards. */
bool serve_order_time(struct serve_order *order, const struct rec_reader *reader,
                      double time, struct rec_error *err) REC_MUST_CHECK;

/* A branch of a query, which waits at a stage or is in one of its batches. */
struct serve_token {
    uint32_t query;  /* index; in a simulation of one stage, its number in the sample */
    double enqueued; /* seconds */
};

/* The batches of a stage in the order in which they were done. Starts as {0}. */
struct serve_trail {
    struct serve_trailed {
        double finish;  /* seconds */
        uint32_t first; /* index in `member`; its queries end where the next's begin */
    } * batch;
    uint32_t *member; /* queries */
    size_t nbatches, room, nmembers, member_room;
};

/* What a station does in a simulation: it serves queries; it plays back the batches of an
 * earlier simulation; or nothing, and queries do not come to it. */
enum serve_mode { SERVE_RUNS, SERVE_PLAYS, SERVE_IS_ABSENT };

/* Makes a new simulation simulate only `stage`. `watch` hears of each of its batches that
 * is done; if it returns false, the simulation ends. */
void serve_sim_only(struct serve_sim *sim, uint32_t stage,
                    bool (*watch)(void *context, const struct serve_token *token,
                                  uint32_t n, double time, struct rec_error *err));
/* Has the batches of another stage played back; `trail` is borrowed. */
bool serve_sim_play(struct serve_sim *sim, uint32_t stage,
                    const struct serve_trail *trail,
                    struct rec_error *err) REC_MUST_CHECK;

#endif
