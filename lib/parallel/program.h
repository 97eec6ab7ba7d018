/* How the program of a step is made: what its two files share. */
#ifndef RAMPIPE_PARALLEL_PROGRAM_H
#define RAMPIPE_PARALLEL_PROGRAM_H

#include "private.h"

enum { PARALLEL_NONE = -1 };

/* The last exchanges of weights that all replicas have, and of experts';
 * PARALLEL_NONE. */
struct parallel_pair {
    int64_t dense, experts;
};
static const struct parallel_pair parallel_no_pair = {PARALLEL_NONE, PARALLEL_NONE};

/* Seconds of the segments of a kind of layer. */
struct parallel_cut {
    bool known;
    double forward[PARALLEL_SEGMENTS], backward[PARALLEL_SEGMENTS];
    double again; /* of what runs again in part */
};

struct parallel_making {
    struct parallel_program *program;
    const struct parallel_graph *graph;
    const struct parallel_question *q;
    const struct parallel_times *times;
    struct rec_error *err;
    struct parallel_item *item; /* the orders of all devices; owned */
    size_t each;                /* items of a device */
    uint32_t m, stages;         /* microbatches, virtual stages */
    bool replicas, messages;    /* exchanges that the network times */
    unsigned inner;             /* of enum parallel_overlap: those inside passes */
    struct parallel_cut *cut;   /* of each kind of layer; owned */
    bool split;
    uint32_t *first,
        *last;        /* nodes of a pass, [pass][virtual stage][microbatch]; owned */
    uint32_t *member; /* room for a group; owned */
    /* of the device at hand */
    uint32_t r;
    uint32_t before[3];         /* the last nodes of its compute lane */
    uint32_t start;             /* the node behind which the step begins */
    struct parallel_pair waits; /* the exchanges that the optimizer waits for */
    uint64_t exchanges;         /* so many so far */
};

/* Parameters on a rank. */
struct parallel_amount {
    double dense, experts;
};

struct parallel_node *parallel_add_node(struct parallel_making *mk, const char *pass,
                                        double seconds, enum parallel_lane lane);
uint32_t parallel_node_index(const struct parallel_making *mk,
                             const struct parallel_node *node);
bool parallel_add_edge(struct parallel_making *mk, uint32_t from, uint32_t to,
                       double bytes);
/* An op of a pass of a virtual stage; of layer j, UINT32_MAX: it ends the pass. */
struct parallel_node *parallel_add_pass_node(struct parallel_making *mk,
                                             const struct parallel_item *item,
                                             uint32_t stage, uint32_t j,
                                             const char *inner, double seconds);
/* Adds the ops of layer j, or of a virtual stage without layers, cut at what groups
 * exchange (program_layer.c); `last`: they end the pass. */
bool parallel_cut_pass(struct parallel_making *mk, const struct parallel_item *item,
                       uint32_t stage, uint32_t j, bool last);
/* Seconds of a pass, but for what replicas exchange beside it. */
double parallel_part_seconds(const struct parallel_making *mk,
                             const struct parallel_passes *p, unsigned pass);
/* What a blocking message adds to a pass. */
double parallel_blocked(const struct parallel_making *mk, unsigned pass, uint32_t stage);
/* FLOPs of the model in n layers of a pass on a rank, attention in full. */
double parallel_pass_flops(const struct parallel_making *mk, unsigned pass,
                           uint32_t stage, uint32_t j, uint32_t n);
/* Members of a group. */
uint32_t parallel_group_size(struct parallel_making *mk, enum parallel_group group);
/* An exchange that begins behind the node `from`; *which stays as it is if there is
 * nothing to do. */
bool parallel_exchange_behind(struct parallel_making *mk, const char *what,
                              const char *kind, enum parallel_group group, double bytes,
                              uint32_t from, int64_t *which);
/* Lets the node `to` wait for exchanges. */
bool parallel_await_one(struct parallel_making *mk, int64_t exchange, uint32_t to);
bool parallel_await(struct parallel_making *mk, struct parallel_pair exchange,
                    uint32_t to);
/* What a rank has of layers j to j + n - 1 of a virtual stage, with the ends that they
 * are beside, or of all of the stage if it has no layers. `trained`: what is not
 * frozen. */
struct parallel_amount parallel_amount_of(const struct parallel_making *mk,
                                          uint32_t stage, uint32_t j, uint32_t n,
                                          bool trained);
/* Gradients behind the node `from`; `last`: of the last microbatch. */
bool parallel_exchange_gradients(struct parallel_making *mk, struct parallel_amount p,
                                 uint32_t from, bool last);
/* Weights are gathered behind the node `from`, before the node `to`; UINT32_MAX: no node
 * waits for them. */
bool parallel_gather(struct parallel_making *mk, struct parallel_amount p, uint32_t from,
                     uint32_t to);

#endif
