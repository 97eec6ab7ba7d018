/*
 * rampipe/ramp.h - RAMP: servers, blocks, allocation, communication times.
 *
 * A RAMP cluster has C communication groups of R racks of S servers (R <= C); a server is
 * c-r-s, its index (c*R + r)*S + s. Every pair of servers has a direct optical channel,
 * so jobs that share no server never wait for each other.
 *
 *     ramp_plan     what placing needs to know of a graph: units in order, parents
 *     ramp_allocate the plan on the free servers: units to their parents' servers if that
 *                   is possible, else to the first free block of a legal shape
 *     ramp_transfer_times   how long each dep takes, collective or one to one
 *
 * Sources: the GreedyBlockAllocator notebook of RAMP, and the ddls simulator
 * ("Partitioning Distributed Compute Jobs with Reinforcement Learning and Graph Neural
 * Networks").
 */
#ifndef RAMPIPE_RAMP_H
#define RAMPIPE_RAMP_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

/** The published cluster's parameters: bytes/s, seconds, seconds, bytes. */
#define RAMP_BANDWIDTH 1.6e12
#define RAMP_PROPAGATION 50e-9
#define RAMP_IO 100e-9
#define RAMP_MEMORY 80e9

struct ramp_cluster {
    uint32_t shape[3];  /* C, R, S */
    double bandwidth;   /* of a node, bytes/s */
    double memory;      /* of a server, bytes; may be inf */
    double propagation; /* seconds */
    double io;          /* seconds, at each end */
};

/** Checks R <= C and sizes. */
bool ramp_check_cluster(const struct ramp_cluster *cluster,
                        struct rec_error *err) REC_MUST_CHECK;
uint32_t ramp_servers(const struct ramp_cluster *cluster);
/** Room for any server's name. */
#define RAMP_NAME_MAX 36
size_t ramp_format_server(const struct ramp_cluster *cluster, uint32_t server,
                          char name[RAMP_NAME_MAX]);
/** Reads c-r-s; false if there is no such server. */
bool ramp_parse_server(const struct ramp_cluster *cluster, struct rec_str name,
                       uint32_t *server) REC_MUST_CHECK;
bool ramp_read_cluster(const struct rec_reader *reader, const struct rec *rec,
                       struct ramp_cluster *cluster,
                       struct rec_error *err) REC_MUST_CHECK;
void ramp_write_cluster(const struct ramp_cluster *cluster, struct rec_writer *writer);

/* ---- placing ------------------------------------------------------------- */

/** One unit to place; its twin goes to the same servers. */
struct ramp_step {
    uint32_t unit;
    uint32_t first_parent, nparents; /* parent[first_parent...]: earlier steps */
    double memory; /* of one part (the largest), shared with its twin, bytes */
};

/**
 * The units that are placed (all but the twins of others), in Kahn's order of the
 * unpartitioned graph: first in first out, in order of ops and deps.
 */
struct ramp_plan {
    const struct graph *graph; /* borrowed */
    struct ramp_step *step;
    uint32_t nsteps;
    uint32_t *parent; /* in order of deps */
    uint32_t *twin; /* per member of graph->member: its twin's place there, or its own */
};

bool ramp_plan_make(const struct graph *graph, struct ramp_plan *plan,
                    struct rec_error *err) REC_MUST_CHECK;
void ramp_plan_free(struct ramp_plan *plan);

enum ramp_heuristic {
    RAMP_FIRST_FIT, /* the simulator's: all servers of no other job are the block */
    RAMP_BLOCK /* the notebook's: an empty meta-block is reserved, all goes into it */
};

enum ramp_outcome { RAMP_PLACED, RAMP_NO_SERVERS, RAMP_NO_BLOCK, RAMP_NO_MEMORY };
/** The CAUSE of a block record; "placed" for RAMP_PLACED. */
const char *ramp_outcome_name(enum ramp_outcome outcome);

struct ramp_allocator;

/** NULL: *err. `meta` is the meta-block's shape (RAMP_BLOCK only). */
struct ramp_allocator *ramp_allocator_new(const struct ramp_cluster *cluster,
                                          enum ramp_heuristic heuristic,
                                          const uint32_t meta[3],
                                          struct rec_error *err) REC_MUST_CHECK;
void ramp_allocator_free(struct ramp_allocator *allocator);

/** A placement; the arrays belong to the allocator until its next use. */
struct ramp_placement {
    const uint32_t *server; /* per member of graph->member: its server; twins included */
    const uint32_t *held;   /* the job's servers: used ones in order of first use, then
                               the rest of its meta-block */
    uint32_t nheld, nused;
};

/**
 * Places a plan on an empty job. taken[server] is true for servers of other jobs; nothing
 * of it is changed. Each server is checked for memory. False: out of memory.
 */
bool ramp_allocate(struct ramp_allocator *allocator, const struct ramp_plan *plan,
                   const bool *taken, enum ramp_outcome *outcome,
                   struct ramp_placement *placement,
                   struct rec_error *err) REC_MUST_CHECK;

/** True if a block of `parts` servers has a legal shape on an empty cluster (without the
 * two fallback shapes), the simulator's test of a valid degree. */
bool ramp_has_shape(const uint32_t shape[3], uint32_t parts);

/* ---- how much to partition ----------------------------------------------- */

/** Which degrees a job is offered, in order of preference. */
enum ramp_policy {
    RAMP_POLICY_NONE,           /* 1 */
    RAMP_POLICY_MIN,            /* 2, then 1 */
    RAMP_POLICY_MAX,            /* the largest first */
    RAMP_POLICY_SIP_ML,         /* the largest up to a limit first */
    RAMP_POLICY_ACCEPTABLE_JCT, /* the smallest that could meet the deadline if nothing
                                   but computing took time, then smaller ones */
    RAMP_POLICY_RANDOM,         /* all in random order */
    RAMP_POLICY_ALL             /* all, the smallest first */
};

/** The most degrees a policy can offer. */
#define RAMP_DEGREES_MAX 4096

/**
 * The degrees up to `most` that have a block on an empty cluster of this shape,
 * ascending: 1 and even numbers for which ramp_has_shape(). Returns how many.
 */
uint32_t ramp_valid_degrees(const uint32_t shape[3], uint32_t most,
                            uint32_t degree[RAMP_DEGREES_MAX]);

/**
 * The alternatives of a job that takes `sequential` seconds on one server and may take
 * `deadline` seconds: offered[], in order of preference. `limit` is that of SIP_ML;
 * draw() gives a number in [0, n) for RANDOM. Returns how many, at least 1. Source: the
 * heuristics of the ddls simulator (NoParallelism, MinParallelism, MaxParallelism, SiPML,
 * AcceptableJCT), which take the first of these that the cluster has servers for.
 */
uint32_t ramp_policy_offer(enum ramp_policy policy, const uint32_t *valid,
                           uint32_t nvalid, uint32_t limit, double sequential,
                           double deadline, uint32_t (*draw)(void *context, uint32_t n),
                           void *context, uint32_t *offered);

/* ---- communication ------------------------------------------------------- */

/**
 * Time of a collective among servers that differ in g communication groups, r racks and s
 * server positions, with `bytes` in all, seconds: up to four sub-steps over [g, min(g,s),
 * r, ceil(s/C)], each propagation + 2 io + bytes/rate, there and back, and the reduction
 * in between at min(2e12 AI, 130e12) FLOP/s. Servers that differ only in their position
 * in the rack cost nothing, as published.
 */
double ramp_collective_seconds(const struct ramp_cluster *cluster, uint32_t g, uint32_t r,
                               uint32_t s, double bytes);
/** propagation + 2 io + bytes/(bandwidth/C), seconds. */
double ramp_one_to_one_seconds(const struct ramp_cluster *cluster, double bytes);

struct ramp_traffic {
    uint64_t flows;       /* deps that cross servers with bytes > 0 */
    uint64_t collectives; /* as the reference counts them */
    double flow_bytes;
};

/**
 * The time of every dep of a placed graph: seconds[ndeps], 0 when it is no flow. The
 * out-deps of a split forward op are one collective if the deps' sources and destinations
 * are the same servers, equally often; so are the in-deps of a split backward op; each
 * pair of sync deps is one; all others are one to one.
 */
bool ramp_transfer_times(const struct ramp_cluster *cluster, const struct graph *graph,
                         const uint32_t *server_of_op, double *seconds,
                         struct ramp_traffic *traffic,
                         struct rec_error *err) REC_MUST_CHECK;

#endif
