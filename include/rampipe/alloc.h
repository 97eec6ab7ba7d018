/*
 * rampipe/alloc.h - who gets which servers: plans, heuristics, policies, admission.
 *
 *     alloc_plan       what placing needs to know of a graph: units in order, parents
 *     alloc_place      the plan on the free servers: units to their parents' servers if
 *                      that is possible, else to the first free block of a legal shape
 *     alloc_policy     how much a job is offered to be partitioned
 *     alloc_admission  jobs arrive, take servers, wait or are turned away
 *
 * Sources: the GreedyBlockAllocator notebook of RAMP, and the ddls simulator
 * ("Partitioning Distributed Compute Jobs with Reinforcement Learning and Graph Neural
 * Networks").
 */
#ifndef RAMPIPE_ALLOC_H
#define RAMPIPE_ALLOC_H

#include "rampipe/graph.h"
#include "rampipe/net.h"
#include "rampipe/sim.h"

/* ---- placing ------------------------------------------------------------- */

/** One unit to place; its twin goes to the same servers. */
struct alloc_step {
    uint32_t unit;
    uint32_t first_parent, nparents; /* parent[first_parent...]: earlier steps */
    double memory; /* of one part (the largest), shared with its twin, bytes */
};

/**
 * The units that are placed (all but the twins of others), in Kahn's order of the
 * unpartitioned graph: first in first out, in order of ops and deps.
 */
struct alloc_plan {
    const struct graph *graph; /* borrowed */
    struct alloc_step *step;
    uint32_t nsteps;
    uint32_t *parent; /* in order of deps */
    uint32_t *twin; /* per member of graph->member: its twin's place there, or its own */
};

bool alloc_plan_make(const struct graph *graph, struct alloc_plan *plan,
                     struct rec_error *err) REC_MUST_CHECK;
void alloc_plan_free(struct alloc_plan *plan);

enum alloc_heuristic {
    ALLOC_FIRST_FIT, /* the simulator's: all servers of no other job are the block */
    ALLOC_BLOCK /* the notebook's: an empty meta-block is reserved, all goes into it */
};

enum alloc_outcome { ALLOC_PLACED, ALLOC_NO_SERVERS, ALLOC_NO_BLOCK, ALLOC_NO_MEMORY };
/** The CAUSE of a block record; "placed" for ALLOC_PLACED. */
const char *alloc_outcome_name(enum alloc_outcome outcome);

struct alloc_placer;

/** NULL: *err. `meta` is the meta-block's shape (ALLOC_BLOCK only). */
struct alloc_placer *alloc_placer_new(const struct net_cluster *cluster,
                                      enum alloc_heuristic heuristic,
                                      const uint32_t meta[3],
                                      struct rec_error *err) REC_MUST_CHECK;
void alloc_placer_free(struct alloc_placer *allocator);

/** A placement; the arrays belong to the allocator until its next use. */
struct alloc_placement {
    const uint32_t *server; /* per member of graph->member: its server; twins included */
    const uint32_t *held;   /* the job's servers: used ones in order of first use, then
                               the rest of its meta-block */
    uint32_t nheld, nused;
};

/**
 * Places a plan on an empty job. taken[server] is true for servers of other jobs; nothing
 * of it is changed. Each server is checked for memory. False: out of memory.
 */
bool alloc_place(struct alloc_placer *allocator, const struct alloc_plan *plan,
                 const bool *taken, enum alloc_outcome *outcome,
                 struct alloc_placement *placement, struct rec_error *err) REC_MUST_CHECK;

/* ---- how much to partition ----------------------------------------------- */

/** Which degrees a job is offered, in order of preference. */
enum alloc_policy {
    ALLOC_POLICY_NONE,           /* 1 */
    ALLOC_POLICY_MIN,            /* 2, then 1 */
    ALLOC_POLICY_MAX,            /* the largest first */
    ALLOC_POLICY_SIP_ML,         /* the largest up to a limit first */
    ALLOC_POLICY_ACCEPTABLE_JCT, /* the smallest that could meet the deadline if nothing
                                   but computing took time, then smaller ones */
    ALLOC_POLICY_RANDOM,         /* all in random order */
    ALLOC_POLICY_ALL             /* all, the smallest first */
};

/** The most degrees a policy can offer. */
#define ALLOC_DEGREES_MAX 4096

/**
 * The degrees up to `most` that have a block on an empty cluster of this shape,
 * ascending: 1 and even numbers for which net_has_block(). Returns how many.
 */
uint32_t alloc_valid_degrees(const uint32_t shape[3], uint32_t most,
                             uint32_t degree[ALLOC_DEGREES_MAX]);

/**
 * The alternatives of a job that takes `sequential` seconds on one server and may take
 * `deadline` seconds: offered[], in order of preference. `limit` is that of SIP_ML;
 * draw() gives a number in [0, n) for RANDOM. Returns how many, at least 1. Source: the
 * heuristics of the ddls simulator (NoParallelism, MinParallelism, MaxParallelism, SiPML,
 * AcceptableJCT), which take the first of these that the cluster has servers for.
 */
uint32_t alloc_policy_offer(enum alloc_policy policy, const uint32_t *valid,
                            uint32_t nvalid, uint32_t limit, double sequential,
                            double deadline, uint32_t (*draw)(void *context, uint32_t n),
                            void *context, uint32_t *offered);

/* ---- admission (ramp-alloc) ---------------------------------------------- */

/** Which alternative of a job is taken. */
enum alloc_choose {
    ALLOC_FIRST,        /* the first that can be placed and meets the deadline */
    ALLOC_FIRST_DEGREE, /* the first whose degree is at most the number of free servers;
                         if that fails the job is blocked: the published simulator */
    ALLOC_FASTEST,      /* of those that can, the one that completes first */
    ALLOC_FEWEST        /* of those that can, the one with the fewest servers */
};

enum alloc_order { ALLOC_FIFO, ALLOC_SHORTEST };

struct alloc_admission_options {
    struct net_cluster cluster;
    enum alloc_heuristic heuristic;
    uint32_t meta[3];
    enum alloc_choose choose;
    size_t queue; /* jobs that may wait */
    enum alloc_order order;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
};

/** The owner of a server that is out of service. */
#define ALLOC_DOWN UINT64_MAX

/** What became of a job; valid during the call. */
struct alloc_decision {
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

struct alloc_admission;

/** Called for each decision, in order of time. False: stop, *err filled. */
typedef bool alloc_decide(void *context, const struct alloc_decision *decision,
                          struct rec_error *err);

struct alloc_admission *alloc_admission_new(const struct alloc_admission_options *options,
                                            struct graph_store *store,
                                            alloc_decide *decide, void *context,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Lets time pass: jobs end, jobs that wait are decided. Before the arrival of `job`. */
bool alloc_admission_advance(struct alloc_admission *admission,
                             const struct graph_job *job,
                             struct rec_error *err) REC_MUST_CHECK;
/** A job arrives, at the time that alloc_admission_advance() was called with. */
bool alloc_admission_arrive(struct alloc_admission *admission,
                            const struct graph_job *job,
                            struct rec_error *err) REC_MUST_CHECK;
/** No more arrivals: jobs that wait are decided as the others end. */
bool alloc_admission_end(struct alloc_admission *admission,
                         struct rec_error *err) REC_MUST_CHECK;
/** The job on each server: 0 none, else its number, counted from 1 in order of starts. */
const uint64_t *alloc_admission_owners(const struct alloc_admission *admission);
void alloc_admission_free(struct alloc_admission *admission);

#endif
