/*
 * Whole actions: what an agent says about a job before its answer (AGENTS in
 * ramp-alloc(1)). Lines are collected as they come. At the answer they are applied to the
 * alternative that it names:
 *
 *     split      ops of the alternative get parts: a new graph, in the store
 *     place      servers of ops, checked against the rules; or priorities only
 *     transfer   channels of deps, and priorities on them
 *
 * What the action leaves out is decided as for any alternative.
 */
#ifndef RAMPIPE_ALLOC_ACT_H
#define RAMPIPE_ALLOC_ACT_H

#include "question.h"

struct act;

/* How ops are split, by keys of the answer. */
struct act_split {
    enum graph_sizes sizes;
    enum graph_gradients gradients;
};

/* `store` is borrowed; the graphs that are made are added to it. NULL: *err. */
struct act *act_new(struct graph_store *store, struct rec_error *err) REC_MUST_CHECK;
/* `act` may be NULL. */
void act_free(struct act *act);
/* Begins the action for another job. */
void act_clear(struct act *act);
/* The bytes of the lines since; 0: nothing was said. */
size_t act_bytes(const struct act *act);
/* Takes a line about `job`. *taken: it is part of an action. REC_DATA: *err says what is
 * wrong with it. */
bool act_take(struct act *act, struct rec_str line, struct rec_str job, bool *taken,
              struct rec_error *err) REC_MUST_CHECK;
/* Applies the action to a graph of the job, the first of whose alternatives, `first`, has
 * been tried, and sets *choice for alloc_chooser.decide. `way` is how it is placed where
 * the action says no servers; NULL: in the first way with which it can start. REC_DATA:
 * it names what there is not, or says something twice. */
bool act_apply(struct act *act, struct alloc_question *q, uint32_t first,
               const uint32_t *way, const struct act_split *how, uint32_t *choice,
               struct rec_error *err) REC_MUST_CHECK;

#endif
