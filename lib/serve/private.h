/*
 * What the planner knows of the simulator: one stage can be simulated alone, behind
 * others whose batches are played back, for no stage depends on one that it gets nothing
 * from.
 */
#ifndef RAMPIPE_SERVE_PRIVATE_H
#define RAMPIPE_SERVE_PRIVATE_H

#include "rampipe/serve.h"

/* An edge more, of the pipeline's records or, when it is sealed, from the source. */
bool serve_add_edge(struct serve_pipeline *pipeline, struct serve_edge edge,
                    struct rec_error *err) REC_MUST_CHECK;

/* A query at a stage: one token of it. */
struct serve_token {
    uint32_t query;  /* in a simulation of one stage: its number, counted from 0 */
    double enqueued; /* seconds */
};

/* The batches of a stage in the order in which they were done. Starts as {0}. */
struct serve_trail {
    struct serve_trailed {
        double finish;  /* seconds */
        uint32_t first; /* in member; up to the first of the next */
    } * batch;
    uint32_t *member; /* queries */
    size_t nbatches, room, nmembers, member_room;
};

/* Simulates `stage` alone from now on, before any query came; `watch` hears of each of
 * its batches that is done, false ends the simulation. */
void serve_sim_only(struct serve_sim *sim, uint32_t stage,
                    bool (*watch)(void *context, const struct serve_token *token,
                                  uint32_t n, double time, struct rec_error *err));
/* What another stage did; borrowed. */
bool serve_sim_play(struct serve_sim *sim, uint32_t stage,
                    const struct serve_trail *trail,
                    struct rec_error *err) REC_MUST_CHECK;

#endif
