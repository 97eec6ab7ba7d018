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
/* Lets the node `to` wait for exchanges. */
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
