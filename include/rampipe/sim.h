/*
 * rampipe/sim.h - event simulation: the event queue, and one training step.
 *
 * sim_step() at work: each server runs one op at a time, the ready op of highest priority
 * (preemptively); each dep is on its way from the end of its source for its own time,
 * whatever else is sent; an op is ready when the deps of all its parents have arrived.
 * The step ends when all ops and all deps, sync deps too, are done.
 */
#ifndef RAMPIPE_SIM_H
#define RAMPIPE_SIM_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

/* ---- the event queue ----------------------------------------------------- */

/** An event: what happens is the owner's; equal times go by key. */
struct sim_event {
    double time; /* seconds */
    uint64_t key;
};

/** A priority queue, earliest first. Starts as {0}. */
struct sim_queue {
    struct sim_event *event; /* a heap of four children a node */
    size_t n, room;
};

bool sim_queue_push(struct sim_queue *queue, struct sim_event event,
                    struct rec_error *err) REC_MUST_CHECK;
/** Takes the earliest event off; the queue must not be empty. */
struct sim_event sim_queue_pop(struct sim_queue *queue);
void sim_queue_free(struct sim_queue *queue);

/* ---- one training step --------------------------------------------------- */

/** A placed graph. All arrays are borrowed. */
struct sim_placed {
    const struct graph *graph;
    uint32_t nservers;
    const uint32_t *server;    /* per op: 0 to nservers-1 */
    const uint32_t *placed;    /* per op: when it was placed on its server; among equal
                                  ops the later one runs first */
    const double *priority;    /* per op, higher first, NAN: none; NULL: shortest first */
    const double *dep_seconds; /* per dep: time on the way, 0 for no flow */
};

/** Called when an op has run from start to end, and when a flow is done; for timelines.
 */
struct sim_observer {
    void (*run)(void *context, uint32_t op, double start, double end);
    void (*send)(void *context, uint32_t dep, double start, double end);
    void *context;
};

struct sim_step {
    double seconds;    /* of the step */
    double comm;       /* with at least one flow on its way, seconds */
    double comp;       /* with at least one op running, seconds */
    double busy;       /* server-seconds of ops running */
    double sequential; /* sum of compute, seconds */
    uint32_t used;     /* servers with at least one op */
    uint64_t events;   /* ops and deps completed */
};

/**
 * Simulates one step. `observer` may be NULL. False: out of memory, or a deadlock (a
 * cycle), which *err describes by what waits for what.
 */
bool sim_step(const struct sim_placed *placed, const struct sim_observer *observer,
              struct sim_step *step, struct rec_error *err) REC_MUST_CHECK;

#endif
