/*
 * lib/sim/private.h - the machine that simulates a training step.
 *
 *     prepare.c   fills it from a placed graph
 *     step.c      lets events happen
 *     colls.c     exchanges of groups, and the lanes on which they queue
 *     stepping.c  the interface
 *     memory.c    what ops hold
 *     deadlock.c  what is said of lanes that wait for each other
 */
#ifndef SIM_PRIVATE_H
#define SIM_PRIVATE_H

#include "rampipe/event.h"
#include "rampipe/sim.h"

#define NONE UINT32_MAX

enum { CHAIN_BITS = 4, CHAINS = 1 << CHAIN_BITS };

struct batch {
    double key;      /* that of its deps; 0: they arrive at once. The batches of an op are
                       in order of their keys. sim_alone writes over it, once sent */
    uint32_t first;  /* n == 1: the target itself; else index of the first in target[] */
    uint32_t n : 31; /* targets, of which there are fewer than ops: for a sync dep no op
                        waits */
    uint32_t last : 1; /* no batch of its op is behind it */
};

/* An op. */
struct task {
    double rank;      /* the lower rank runs first: compute, or the order of priorities */
    double remaining; /* compute that is left, seconds */
    uint32_t waiting; /* deps to it that have not arrived */
    uint32_t lane;
    uint32_t placed; /* among equal ranks the higher one runs first; on a strict lane, its
                        place in the order */
    uint32_t batch;  /* its first batch; they end where those of the next task begin */
};

struct ready {
    double rank;
    uint32_t placed, op;
};

struct lane {
    struct ready running; /* op NONE: nothing runs */
    double started;       /* when that op was started last, seconds */
    uint32_t version;     /* counts the ops stopped: an end of an older version is void */
    uint32_t first;       /* its part of ready[] */
    /* By priority: a heap of ready ops, ready[first] to ready[first + nready - 1].
     * Strictly: all its ops in their order, of which the first nready have started. */
    uint32_t nready, nops;
    uint32_t server;
    bool strict;
    bool dirty;  /* it is in the list of lanes that must choose anew */
    bool asleep; /* its server has not started yet, and starts late */
};

struct machine {
    const struct sim_placed *placed;
    const struct graph *graph;
    const struct sim_observer *observer;
    struct sim_step *result;
    struct event_queue ends; /* key: the lane's version, the lane (32 bits each) */
    /* Of sim_alone: the batches that arrive at one instant are a chain in `arrivals`, in
     * any order. */
    struct event_queue arrivals; /* key: the first batch of the chain */
    uint32_t *next;              /* per batch: the next of its chain, NONE: none; */
    uint64_t *chained;           /* a bit a batch: it is the first of several. NULL: each
                                    batch is a chain */
    struct {
        double time;
        uint32_t first;
    } chain[CHAINS]; /* the last ones, by a hash of their time */
    double started, now;

    const struct sim_courier *courier;
    void *carrier;   /* its data */
    uint64_t member; /* the upper half of the tokens of batches */
    bool drives;     /* the machine lets the courier's events happen, not its owner */
    double *left;  /* per batch: when it left, seconds; for an observer who hears of flows
                     when they arrive */
    bool foretold; /* an observer hears of flows when they leave */
    size_t nsending; /* batches on the way */

    struct task *task;
    struct batch *batch;
    uint32_t *target; /* the ops that wait for the deps of a batch, in order of batches */
    /* The deps in order of batches; NULL: nobody asks for them. */
    uint32_t *dep, *first_dep; /* dep[first_dep[b]..first_dep[b + 1]) are those of b */
    bool planned;              /* batch, target and dep are those of a plan */

    /* Behind the lanes stands one for each server, if servers may start late: an end in
     * it is the start of the server, `started` the delay, and `dirty` says that the end
     * is known. */
    struct lane *lane;
    uint32_t nlanes;
    struct ready *ready;
    uint32_t *dirty; /* lanes that must choose anew */
    uint32_t ndirty;
    uint32_t *ended; /* ops that ended at this instant, whose deps have not left yet */
    uint32_t nended;
    uint32_t *running; /* per server: lanes that run; NULL: each server has one lane */
    uint32_t nbusy;    /* servers of which a lane runs */
    struct memory *memory; /* what ops hold; NULL: nothing */
    struct colls *colls;   /* NULL: the graph has none */
    uint32_t coll_batch;   /* batch[coll_batch + c] is that of coll c */
    bool colls_due;        /* sim_colls_start() has something to do */
    size_t ops_left;
    size_t batches_left; /* that have not arrived, also those of colls */
};

/** The courier of a step that has none: a dep takes its own time, whatever else is sent.
 * Its data is the machine. */
extern const struct sim_courier sim_alone;

/** Fills the arrays, and makes the ops ready that wait for nothing. */
bool sim_machine_prepare(struct machine *m, struct rec_error *err) REC_MUST_CHECK;
void sim_machine_release(struct machine *m);
/** An op whose deps have arrived waits for its lane. */
void sim_machine_ready(struct machine *m, uint32_t op);
/** A batch arrives at `time`, before which nothing else happens. */
void sim_machine_arrive(struct machine *m, uint64_t batch, double time);
/** Lets everything happen at this instant that takes no time, until nothing more does:
 * deps leave ended ops, and lanes choose, which may end more ops. */
bool sim_machine_settle(struct machine *m, struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: there is none. */
double sim_machine_next(struct machine *m);
/** Lets all events up to and at `until` happen. */
bool sim_machine_advance(struct machine *m, double until,
                         struct rec_error *err) REC_MUST_CHECK;

/** Fills *err for a step that cannot go on because lanes wait for each other. */
bool sim_machine_fail_lanes(const struct machine *m, struct rec_error *err);

/** Makes m->colls and the batches of colls, behind those of ops. */
bool sim_colls_prepare(struct machine *m, struct rec_error *err) REC_MUST_CHECK;
void sim_colls_free(struct colls *colls);
/** An op has ended: its groups wait for one op less. */
void sim_colls_end_op(struct machine *m, uint32_t op);
/** All else at this instant has happened: returns a coll that starts now; NONE: no coll
 * does. */
uint32_t sim_colls_start(struct machine *m);
/** A coll that was started has ended: its lane is free. */
void sim_colls_end(struct machine *m, uint32_t c);
/** True if an op waits for a coll of whose group ops have not ended, *coll. */
bool sim_colls_missing(const struct machine *m, uint32_t op, uint32_t *coll);

/** What the ops of a step hold, if they hold anything. */
struct memory *sim_memory_new(const struct sim_placed *placed,
                              const struct sim_observer *observer,
                              struct rec_error *err) REC_MUST_CHECK;
void sim_memory_free(struct memory *memory);
/** An op has ended. */
void sim_memory_end(struct memory *memory, uint32_t op);
/** All that happens at this instant has happened. */
void sim_memory_settle(struct memory *memory, double time);
/** The step has ended: what is still held is released. REC_DATA: bytes were released
 * before the op that holds them had ended. */
bool sim_memory_finish(struct memory *memory, double time, struct sim_step *step,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
