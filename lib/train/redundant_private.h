/* What the two halves of redundant computation share: the simulation (redundant.c) and
 * its instances (redundant_nodes.c). */
#ifndef RAMPIPE_REDUNDANT_PRIVATE_H
#define RAMPIPE_REDUNDANT_PRIVATE_H

#include "rampipe/random.h"
#include "rampipe/train.h"

#define TRAIN_REDUNDANT_NEVER INT64_MAX

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

struct train_redundant {
    struct train_redundant_options options;
    struct train_redundant_sink sink;
    const struct train_redundant_profile *profile;
    struct train_redundant_result result;
    struct rng *rng;
    struct node *node; /* in the order in which they came */
    size_t nnodes, node_room;
    struct rec_map names;       /* of the nodes */
    uint64_t numbers;           /* given so far to nodes without a name */
    uint64_t serials, count[3]; /* by status */
    uint64_t doubled;           /* running nodes with two coordinates */
    size_t nleaving;
    enum train_redundant_status status;
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
    int64_t last_removal; /* TRAIN_REDUNDANT_NEVER: none */
    char **removal;       /* of this instant: ids of each preemption, or "" */
    uint64_t *removal_count;
    size_t nremovals, removal_room, count_room;

    double nodes_ms;         /* instances x ms up to `now` */
    int64_t first_node;      /* when the first came; TRAIN_REDUNDANT_NEVER: not yet */
    double first_nodes;      /* how many came then */
    double start_nodes_ms;   /* at step_start */
    double last_nodes_ms;    /* at the end of the last step */
    double inverse_cost;     /* sum over steps of 1 / (US$ an hour) */
    int64_t changed;         /* when the number of nodes last changed */
    double changed_nodes_ms; /* nodes_ms then */
    bool done;

    bool told, told_degraded;
    enum train_redundant_status told_status;
    uint64_t told_count[TRAIN_NSTATES];
};

/* How things stand, told. */
void train_redundant_tell(struct train_redundant *redundant, const char *event);
/* The time of the next instance that will be ready: those that came first are. */
void train_redundant_find_next_ready(struct train_redundant *redundant);
bool train_redundant_start_rendezvous(struct train_redundant *redundant, bool global,
                                      const char *event,
                                      struct rec_error *err) REC_MUST_CHECK;
/* Adds an instance; without id it gets a number. */
bool train_redundant_add_node(struct train_redundant *redundant, struct rec_str id,
                              struct rec_error *err) REC_MUST_CHECK;
/* Remembers a preemption; train_redundant_end_instant() carries it out, after the
 * additions. */
bool train_redundant_keep_removal(struct train_redundant *redundant,
                                  const struct spot_event *event,
                                  struct rec_error *err) REC_MUST_CHECK;
bool train_redundant_end_instant(struct train_redundant *redundant,
                                 struct rec_error *err) REC_MUST_CHECK;
bool train_redundant_keep_value(struct sample *sample, int64_t ms,
                                struct rec_error *err) REC_MUST_CHECK;

#endif
