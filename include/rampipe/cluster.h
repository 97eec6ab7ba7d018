/*
 * rampipe/cluster.h - jobs on a RAMP cluster: layouts, what they cost, admission, replay.
 *
 * In RAMP nothing contends once a job is placed, so what a training step costs depends
 * only on the graph, on which ops share a server, and on how the servers lie to each
 * other. A layout (op -> slot) remembers the costs of all geometries it was used with:
 *
 *     graph --- layout (op -> slot) --- geometry (slot -> c, r, s up to renaming) ---
 * cost
 */
#ifndef RAMPIPE_CLUSTER_H
#define RAMPIPE_CLUSTER_H

#include "rampipe/ramp.h"
#include "rampipe/sim.h"

/** What one training step of a placed graph costs. */
struct sim_cost {
    struct sim_step step;
    struct ramp_traffic traffic;
};

/** Where the ops of a graph go. Made by sim_layout_new(), filled, then sealed. */
struct sim_layout {
    const char *id;            /* owned */
    const struct graph *graph; /* borrowed */
    uint32_t nslots;
    uint32_t *slot;   /* per op; REC_NONE: not placed yet */
    uint32_t *placed; /* per op: its turn */
    double *priority; /* per op, NAN: none; NULL if no op has one */
    uint32_t nplaced;
    double memory;                /* of the fullest slot, bytes */
    uint32_t full_slot;           /* which that is */
    double memory_sum, dep_bytes; /* of the graph */
    struct rec_map memo;          /* geometry -> index of cost */
    struct sim_cost *cost;
    size_t ncosts, cost_room;
    struct rec_arena arena;
};

struct sim_layout *sim_layout_new(struct rec_str id, const struct graph *graph,
                                  uint32_t nslots, struct rec_error *err) REC_MUST_CHECK;
void sim_layout_free(struct sim_layout *layout);
/** Checks that every op is placed, and sums the memory of each slot: an op and its twin
 * on one slot need the larger of the two. */
bool sim_layout_seal(struct sim_layout *layout, struct rec_error *err) REC_MUST_CHECK;
/** The cost with slot i on server servers[i]; simulated once per geometry. */
bool sim_layout_cost(struct sim_layout *layout, const struct ramp_cluster *cluster,
                     const uint32_t *servers, struct sim_cost *cost,
                     struct rec_error *err) REC_MUST_CHECK;
/** The same, simulated anew for an observer. */
bool sim_layout_observe(const struct sim_layout *layout,
                        const struct ramp_cluster *cluster, const uint32_t *servers,
                        const struct sim_observer *observer, struct sim_cost *cost,
                        struct rec_error *err) REC_MUST_CHECK;

/* ---- admission (ramp-alloc) ---------------------------------------------- */

/** Which alternative of a job is taken. */
enum sim_choose {
    SIM_FIRST,        /* the first that can be placed and meets the deadline */
    SIM_FIRST_DEGREE, /* the first whose degree is at most the number of free servers;
                         if that fails the job is blocked: the published simulator */
    SIM_FASTEST,      /* of those that can, the one that completes first */
    SIM_FEWEST        /* of those that can, the one with the fewest servers */
};

enum sim_order { SIM_FIFO, SIM_SHORTEST };

struct sim_admission_options {
    struct ramp_cluster cluster;
    enum ramp_heuristic heuristic;
    uint32_t meta[3];
    enum sim_choose choose;
    size_t queue; /* jobs that may wait */
    enum sim_order order;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
};

/** The owner of a server that is out of service. */
#define SIM_DOWN UINT64_MAX

/** What became of a job; valid during the call. */
struct sim_decision {
    struct graph_job job;
    double time;               /* seconds */
    const char *cause;         /* of a block; NULL: it starts */
    const struct graph *graph; /* the alternative taken, or the last one tried */
    struct sim_layout *layout;
    bool new_layout;         /* used for the first time */
    const uint32_t *servers; /* per slot */
    const struct sim_cost *cost;
    double finish; /* seconds */
};

struct sim_admission;

/** Called for each decision, in order of time. False: stop, *err filled. */
typedef bool sim_decide(void *context, const struct sim_decision *decision,
                        struct rec_error *err);

struct sim_admission *sim_admission_new(const struct sim_admission_options *options,
                                        struct graph_store *store, sim_decide *decide,
                                        void *context,
                                        struct rec_error *err) REC_MUST_CHECK;
/** Lets time pass: jobs end, jobs that wait are decided. Before the arrival of `job`. */
bool sim_admission_advance(struct sim_admission *admission, const struct graph_job *job,
                           struct rec_error *err) REC_MUST_CHECK;
/** A job arrives, at the time that sim_admission_advance() was called with. */
bool sim_admission_arrive(struct sim_admission *admission, const struct graph_job *job,
                          struct rec_error *err) REC_MUST_CHECK;
/** No more arrivals: jobs that wait are decided as the others end. */
bool sim_admission_end(struct sim_admission *admission,
                       struct rec_error *err) REC_MUST_CHECK;
/** The job on each server: 0 none, else its number, counted from 1 in order of starts. */
const uint64_t *sim_admission_owners(const struct sim_admission *admission);
void sim_admission_free(struct sim_admission *admission);

/* ---- replay (sim) -------------------------------------------------------- */

/** A job that is complete; valid during the call. */
struct sim_done {
    struct graph_job job;
    const struct sim_layout *layout;
    const struct sim_cost *cost;
    double start, finish; /* seconds */
};

struct sim_replay;

/** What a replay tells; any of the functions may be NULL. */
struct sim_replay_sink {
    bool (*done)(void *context, const struct sim_done *done, struct rec_error *err);
    /* A job that is not complete at `until`; its layout is NULL if it still waits. */
    bool (*unfinished)(void *context, const struct sim_done *done, double time,
                       struct rec_error *err);
    /* A job starts, on these servers. */
    bool (*started)(void *context, const struct sim_done *done,
                    const struct ramp_cluster *cluster, const uint32_t *servers,
                    struct rec_error *err);
    void *context;
};

/** `until`: the end of the simulated time, seconds; inf: when all jobs are complete. */
struct sim_replay *sim_replay_new(const struct sim_replay_sink *sink, double until,
                                  struct rec_error *err) REC_MUST_CHECK;
/**
 * Takes a record of any type that ramp-alloc writes (others are ignored), in order of
 * time. The sink hears of what ends before the record's time first. Checks RAMP's rules,
 * and names the one that a stream breaks.
 */
bool sim_replay_take(struct sim_replay *replay, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** The stream is over: all jobs that run end. */
bool sim_replay_end(struct sim_replay *replay, struct rec_error *err) REC_MUST_CHECK;
void sim_replay_free(struct sim_replay *replay);

#endif
