/* What the two halves of redundant computation share: the simulation (redundant.c) and
 * its instances (redundant_nodes.c). */
#ifndef RAMPIPE_REDUNDANT_PRIVATE_H
#define RAMPIPE_REDUNDANT_PRIVATE_H

#include "rampipe/random.h"
#include "rampipe/redundant.h"

#define REDUNDANT_NEVER INT64_MAX

enum status { CREATING, READY, RUNNING };

/* A place in the pipelines. */
struct coordinate {
    uint64_t pipeline, stage;
};

struct node {
    char *name;      /* owned */
    uint64_t serial; /* never used again */
    int64_t start;   /* ms */
    enum status status;
    bool leaving;     /* named by a preemption of this instant */
    int ncoordinates; /* 2: it does a lost neighbour's work too */
    struct coordinate coordinate[2];
};

/* Values to describe, in ms. */
struct sample {
    double *value;
    size_t n, room;
};

struct redundant {
    struct redundant_options options;
    struct redundant_sink sink;
    const struct redundant_profile *profile;
    struct redundant_result result;
    struct rng *rng;
    struct node *node; /* in the order in which they came */
    size_t nnodes, node_room;
    struct rec_map names;       /* of the nodes */
    uint64_t numbers;           /* given so far to nodes without a name */
    uint64_t serials, count[3]; /* by status */
    uint64_t doubled;           /* running nodes with two coordinates */
    size_t nleaving;
    enum redundant_status status;
    uint64_t *listed; /* serials in the rendezvous */
    size_t nlisted, listed_room;
    uint64_t pipelines, stages, waiting;
    int64_t step_ms, next_step, timeout, next_ready;
    bool global; /* the rendezvous is of all; else of those that run */
    bool fallback, handled;
    uint64_t fallback_steps;
    int64_t fallback_time, step_start;
    uint64_t steps;
    bool configured; /* at least once */
    int64_t first, last;

    int64_t now, happened; /* the last event */
    struct sample lifetime, gap;
    int64_t last_removal; /* REDUNDANT_NEVER: none */
    char **removal;       /* of this instant: ids of each preemption, or "" */
    uint64_t *removal_count;
    size_t nremovals, removal_room, count_room;

    double nodes_ms;         /* instances x ms up to `now` */
    int64_t first_node;      /* when the first came; REDUNDANT_NEVER: not yet */
    double first_nodes;      /* how many came then */
    double start_nodes_ms;   /* at step_start */
    double last_nodes_ms;    /* at the end of the last step */
    double inverse_cost;     /* sum over steps of 1 / (US$ an hour) */
    int64_t changed;         /* when the number of nodes last changed */
    double changed_nodes_ms; /* nodes_ms then */
    bool done;

    bool told, told_degraded;
    enum redundant_status told_status;
    uint64_t told_count[FLEET_NSTATES];
};

/* How things stand, told. */
void redundant_tell(struct redundant *redundant, const char *event);
/* The time of the next instance that will be ready: those that came first are. */
void redundant_find_next_ready(struct redundant *redundant);
bool redundant_start_rendezvous(struct redundant *redundant, bool global,
                                const char *event, struct rec_error *err) REC_MUST_CHECK;
/* Adds an instance; without id it gets a number. */
bool redundant_add_node(struct redundant *redundant, struct rec_str id,
                        struct rec_error *err) REC_MUST_CHECK;
/* Remembers a preemption; redundant_end_instant() carries it out, after the additions. */
bool redundant_keep_removal(struct redundant *redundant, const struct spot_event *event,
                            struct rec_error *err) REC_MUST_CHECK;
bool redundant_end_instant(struct redundant *redundant,
                           struct rec_error *err) REC_MUST_CHECK;
bool redundant_keep_value(struct sample *sample, int64_t ms,
                          struct rec_error *err) REC_MUST_CHECK;

#endif
