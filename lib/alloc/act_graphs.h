/* The graphs that are made for whole actions, for act.c. */
#ifndef RAMPIPE_ALLOC_ACT_GRAPHS_H
#define RAMPIPE_ALLOC_ACT_GRAPHS_H

#include "act.h"

struct act_graphs;

/* What an agent has said about an op. */
struct act_part {
    const char *op;
    uint32_t parts;
};

/* `store` is borrowed; what is made is added to it. NULL: *err. */
struct act_graphs *act_graphs_new(struct graph_store *store,
                                  struct rec_error *err) REC_MUST_CHECK;
/* `graphs` may be NULL. */
void act_graphs_free(struct act_graphs *graphs);
/* Sets *graph from an alternative to what the parts make of it, and q->unnamed if there
 * are some. Graphs that no job runs on may be dropped from the store. REC_DATA: an op
 * cannot be split, or is named twice. */
bool act_graphs_split(struct act_graphs *graphs, struct alloc_question *q,
                      const struct act_part *part, size_t nparts,
                      const struct act_split *how, uint32_t *graph,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
