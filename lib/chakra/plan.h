/* How a graph becomes traces; of lib/chakra alone. */
#ifndef RAMPIPE_CHAKRA_PLAN_H
#define RAMPIPE_CHAKRA_PLAN_H

#include "private.h"

struct chakra_plan {
    const struct graph *graph;
    const struct chakra_layout *layout;
    uint32_t *dst; /* per dep: the op whose node waits for it; GRAPH_NONE: none */
    uint32_t *in, *in_start; /* deps in[in_start[i]..in_start[i + 1]) are op i's by dst */
    uint32_t *slot_op, *slot_start; /* ops on slot s, likewise */
    uint32_t *placed;               /* per op: its turn among the places */
    uint32_t *join;    /* per op: the join that its deps come from, or GRAPH_NONE */
    uint32_t *message; /* per op, a send or receive: its dep, or GRAPH_NONE */
    bool *folded;      /* per op: a join or ring, which has no node */
};

/* The collective operation that the op is a member of; REC_NONE: none. */
uint32_t chakra_collective_of(const struct graph_op *op);

#endif
