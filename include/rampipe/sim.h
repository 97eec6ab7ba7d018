/*
 * rampipe/sim.h - event simulation: the event queue, one training step, layouts, replay.
 *
 * sim_step() at work: each server runs one op at a time, the ready op of highest priority
 * (preemptively); each dep is on its way from the end of its source for its own time,
 * whatever else is sent; an op is ready when the deps of all its parents have arrived.
 * The step ends when all ops and all deps, sync deps too, are done.
 *
 * In RAMP nothing contends once a job is placed, so what a training step costs depends
 * only on the graph, on which ops share a server, and on how the servers lie to each
 * other. A layout (op -> slot) remembers the costs of all geometries it was used with:
 *
 *     graph --- layout (op -> slot) --- geometry (how slots lie to each other) --- cost
 */
#ifndef RAMPIPE_SIM_H
#define RAMPIPE_SIM_H

#include "rampipe/graph.h"
#include "rampipe/net.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- the event queue ----------------------------------------------------- */

/** An event: what happens is the owner's; equal times go by key. */
struct sim_event {
    double time; /* seconds; not negative */
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

/** Called when an op has run from start to end and when a flow is done; for timelines. */
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

/**
 * A step piece by piece, for whoever has a clock that others share. sim_step() is all of
 * it at once, from time 0 on.
 */
struct sim_stepping;

/** Starts a step at `time`, seconds; what takes no time has happened. *placed and
 * *observer are copied, what they point to is borrowed. NULL: *err. */
struct sim_stepping *sim_stepping_new(const struct sim_placed *placed,
                                      const struct sim_observer *observer, double time,
                                      struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: nothing is left to happen. */
double sim_stepping_next(struct sim_stepping *stepping);
/** Lets everything happen up to and at `time`. */
bool sim_stepping_advance(struct sim_stepping *stepping, double time,
                          struct rec_error *err) REC_MUST_CHECK;
/** The result, once nothing is left to happen; false: a deadlock, as sim_step() says
 * it. */
bool sim_stepping_end(struct sim_stepping *stepping, struct sim_step *step,
                      struct rec_error *err) REC_MUST_CHECK;
/** `stepping` may be NULL. */
void sim_stepping_free(struct sim_stepping *stepping);

/* ---- models and their clock ---------------------------------------------- */

struct sim_clock;

/**
 * What a simulator is to a clock; one row a model. `self` is the model's own.
 *
 *     take     a record: 1 it is the model's, 0 it is not, -1 *err. Before it does what
 *              the record says of time t it calls sim_clock_reach(clock, t)
 *     next     when something happens by itself, seconds; INFINITY: nothing will
 *     advance  lets happen what happens by itself up to and at `time`
 *     end      time stops at `time`; INFINITY: nothing is left
 *     close    no more records come: when the model ends by what they said, seconds;
 *              INFINITY, or no such function: when nothing is left
 */
struct sim_model {
    const char *name;
    int (*take)(void *self, struct sim_clock *clock, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err);
    double (*next)(void *self);
    bool (*advance)(void *self, double time, struct rec_error *err);
    bool (*end)(void *self, double time, struct rec_error *err);
    double (*close)(void *self);
};

/** One clock for several models: always the least next time happens first, of equal ones
 * that of the model that was added first. Starts as {0}. */
struct sim_clock {
    struct sim_clocked *model; /* owned; sim_clock_free() */
    size_t n, room;
};

/** `model` and `self` are borrowed. */
bool sim_clock_add(struct sim_clock *clock, const struct sim_model *model, void *self,
                   struct rec_error *err) REC_MUST_CHECK;
/** Lets everything happen before `time`, in all models. */
bool sim_clock_reach(struct sim_clock *clock, double time,
                     struct rec_error *err) REC_MUST_CHECK;
/** Gives a record to all models: 1 it was one's, 0 it was no one's, -1 *err. */
int sim_clock_take(struct sim_clock *clock, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** No more records come: lets everything happen up to and at `time`, or to the model's
 * own end where that is earlier, then ends the models. */
bool sim_clock_end(struct sim_clock *clock, double time,
                   struct rec_error *err) REC_MUST_CHECK;
void sim_clock_free(struct sim_clock *clock);

/** A step on a clock; `self` is a struct sim_stepping. */
extern const struct sim_model sim_step_model;

/* ---- layouts ------------------------------------------------------------- */

/** What one training step of a placed graph costs. */
struct sim_cost {
    struct sim_step step;
    struct net_traffic traffic;
};

/** Where the ops of a graph go. Made by sim_layout_new(), filled, then sealed. */
struct sim_layout {
    char *id;                  /* owned; "": none yet, see sim_layout_name() */
    const struct graph *graph; /* borrowed */
    uint32_t nslots;
    uint32_t *slot;   /* per op; REC_NONE: not placed yet */
    uint32_t *placed; /* per op: its turn */
    double *priority; /* per op, NAN: none; NULL if no op has one */
    uint32_t nplaced;
    double memory;               /* that the fullest slot holds, bytes */
    uint32_t full_slot;          /* which that is */
    double memory_sum;           /* that all slots hold, bytes */
    double op_memory, dep_bytes; /* sums over the ops and the deps of the graph */
    double flops;                /* of a replay: graph_model_flops(); else 0 */
    struct rec_map memo;         /* geometry -> index of cost */
    struct sim_cost *cost;
    size_t ncosts, cost_room, cost_bytes;
    struct rec_arena arena; /* of the geometries */
    /* In a pool: */
    struct sim_layouts *pool;
    struct sim_layout *before,
        *after; /* of those that are held, or of those that are not */
    uint64_t holds;
};

/**
 * A pool of layouts, which bounds what they need: those that no job holds go, the one
 * first that has been idle longest, once all together need more than `limit` bytes; and
 * all costs are forgotten, to be simulated anew, once they need more than SIM_COSTS_MAX.
 * Bytes are counted alike on every machine, by the number of ops. Starts as {.limit =
 * ...}.
 */
struct sim_layouts {
    struct sim_layout_list {
        struct sim_layout *first, *last;
    } idle, held;
    size_t limit, bytes, cost_bytes;
};

struct sim_layout *sim_layout_new(struct rec_str id, const struct graph *graph,
                                  uint32_t nslots, struct rec_error *err) REC_MUST_CHECK;
/** `layout` may be NULL. It leaves its pool, if it is in one. */
void sim_layout_free(struct sim_layout *layout);
/** Gives a layout another name. */
bool sim_layout_name(struct sim_layout *layout, struct rec_str id,
                     struct rec_error *err) REC_MUST_CHECK;
/** Gives an op a priority; the others have none until they are given one. */
bool sim_layout_prefer(struct sim_layout *layout, uint32_t op, double priority,
                       struct rec_error *err) REC_MUST_CHECK;
/** Checks that every op is placed, and sums the memory of each slot: an op and its twin
 * on one slot need the larger of the two; a task needs its own only while it runs. */
bool sim_layout_seal(struct sim_layout *layout, struct rec_error *err) REC_MUST_CHECK;
/** The cost with slot i on server servers[i]; simulated once per geometry. */
bool sim_layout_cost(struct sim_layout *layout, const struct net_cluster *cluster,
                     const uint32_t *servers, struct sim_cost *cost,
                     struct rec_error *err) REC_MUST_CHECK;
/** The same, simulated anew for an observer. */
bool sim_layout_observe(const struct sim_layout *layout,
                        const struct net_cluster *cluster, const uint32_t *servers,
                        const struct sim_observer *observer, struct sim_cost *cost,
                        struct rec_error *err) REC_MUST_CHECK;

/** What sim and ramp-alloc keep of layouts that no job holds. The allocator's is less, so
 * that it never names one that the simulator has forgotten. */
#define SIM_LAYOUTS_MAX ((size_t)1 << 28)
#define SIM_LAYOUTS_MAX_ALLOC ((size_t)1 << 26)
/** Bytes of the costs that all layouts of a pool remember. */
#define SIM_COSTS_MAX ((size_t)1 << 26)

/** Puts a layout that no job holds into a pool, which does not own it. */
void sim_layouts_add(struct sim_layouts *pool, struct sim_layout *layout);
/** A job starts on a layout of a pool, or ends. */
void sim_layout_hold(struct sim_layout *layout);
void sim_layout_release(struct sim_layout *layout);
/** The layout that must go before `bytes` more are there; NULL: none has to, or can. */
struct sim_layout *sim_layouts_excess(const struct sim_layouts *pool, size_t bytes);
/** What a layout of a graph counts, bytes; its costs are counted apart. */
size_t sim_layout_bytes(const struct graph *graph);

/* ---- replay (sim) -------------------------------------------------------- */

/** A job that has started; valid during the call. */
struct sim_done {
    struct graph_job job;
    const struct graph *graph; /* what it runs */
    const struct sim_layout *layout;
    const struct sim_cost *cost;
    double start, finish; /* seconds */
};

struct sim_replay;

/** What a replay tells; any of the functions may be NULL. */
struct sim_replay_sink {
    bool (*done)(void *context, const struct sim_done *done, struct rec_error *err);
    /* A job that is not complete at the end of the simulated time. If it still waits, its
     * layout is NULL, and graph its first alternative. */
    bool (*unfinished)(void *context, const struct sim_done *done, double time,
                       struct rec_error *err);
    /* A job starts, on these servers. */
    bool (*started)(void *context, const struct sim_done *done,
                    const struct net_cluster *cluster, const uint32_t *servers,
                    struct rec_error *err);
    void *context;
};

/** `until`: the end of the simulated time, seconds; inf: when all jobs are complete. */
struct sim_replay *sim_replay_new(const struct sim_replay_sink *sink, double until,
                                  struct rec_error *err) REC_MUST_CHECK;
void sim_replay_free(struct sim_replay *replay);
/** Keeps `bytes` of layouts that no job holds, instead of SIM_LAYOUTS_MAX: what an alloc
 * names after that must have been laid out again. */
void sim_replay_keep(struct sim_replay *replay, size_t bytes);
/** Graphs must pass graph_check_times(), with this advice, which is kept. */
void sim_replay_advise(struct sim_replay *replay, const char *advice);

/**
 * A replay as a model; `self` is a struct sim_replay. It takes the records that say what
 * was planned (graphs, layouts, jobs, allocs), in order of time, and blocks after the end
 * of the simulated time; it looks at cluster and other block records, but leaves them to
 * whoever comes next. The sink hears of what ends before a record's time first. RAMP's
 * rules are checked, and the one that a stream breaks is named.
 */
extern const struct sim_model sim_replay_model;

REC_END_DECLS

#endif
