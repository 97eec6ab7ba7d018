/* The plan by which a graph becomes traces, for plan.c and write.c. */
#ifndef RAMPIPE_CHAKRA_PLAN_H
#define RAMPIPE_CHAKRA_PLAN_H

#include "private.h"

struct chakra_plan {
    const struct graph *graph;
    const struct graph_layout *layout;
    const char *cluster;     /* chakra_plan_cluster(); NULL: not known */
    char *servers, **server; /* per slot the name of its server; owned */
    uint32_t *dst; /* of each dep: the op whose node waits for it, or GRAPH_NONE */
    /* The deps that op i waits for are in[k] for in_start[i] <= k < in_start[i + 1]; the
     * ops on slot s are slot_op[k] for slot_start[s] <= k < slot_start[s + 1]. */
    uint32_t *in, *in_start;
    uint32_t *slot_op, *slot_start;
    /* of each op: */
    uint32_t *join;    /* a member of a collective: its join, or GRAPH_NONE */
    uint32_t *message; /* a send or receive: the dep between both, or GRAPH_NONE */
    bool *folded;      /* it is a join or start, and becomes no node */
    bool *coll_folded; /* of each coll: its members become the nodes */
    /* A coll has a node for each slot of its group. It is known by the first op there, as
     * an index of graph->coll_op[]: */
    uint32_t *entry_coll; /* of each entry its coll */
    uint32_t *entry_next; /* the next one of the group on the slot, or GRAPH_NONE */
    uint32_t *coll_slots; /* of each coll, the number of its slots */
    /* op_entry[k] for entry_start[i] <= k < entry_start[i + 1] are the nodes that stand
     * behind op i, the last one of the group on its slot. Op i waits for after_in[k] of
     * graph->after for after_start[i] <= k < after_start[i + 1]; after_entry[] of these
     * are the nodes that they leave. */
    uint32_t *op_entry, *entry_start;
    uint32_t *after_entry, *after_in, *after_start;
};

/* Plans the nodes of colls; of a graph without colls, all is NULL. REC_DATA: an op waits
 * for a coll that has no op on its slot. */
bool chakra_plan_colls(struct chakra_plan *plan, struct rec_error *err);

/* The kind of collective of which the op is a member, an index of chakra_collectives[];
 * REC_NONE: it is no member. */
uint32_t chakra_collective_of(const struct graph_op *op);

#endif
