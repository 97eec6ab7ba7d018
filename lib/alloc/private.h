/* The functions of those rows of alloc_choosers that have files of their own, scorer.c
 * and rollout.c, and what these need to know of the others. The contracts are those of
 * struct alloc_chooser. */
#ifndef RAMPIPE_ALLOC_PRIVATE_H
#define RAMPIPE_ALLOC_PRIVATE_H

#include "rampipe/alloc.h"

/* `better` of a rule that takes the first alternative that can start. */
bool alloc_never_better(const struct alloc_alternative *a,
                        const struct alloc_alternative *b);

void *alloc_scorer_open(const struct alloc_choice *choice,
                        struct rec_error *err) REC_MUST_CHECK;
bool alloc_scorer_decide(void *self, struct alloc_question *question, uint32_t *choice,
                         struct rec_error *err) REC_MUST_CHECK;
bool alloc_scorer_judge(void *self, struct alloc_question *question, uint32_t *choice,
                        double *worths, struct rec_error *err) REC_MUST_CHECK;
/* Adds n experts with weights of 0. */
bool scorer_add_experts(struct alloc_scorer *scorer, uint32_t n,
                        struct rec_error *err) REC_MUST_CHECK;
/* Does the scorer have experts for other clusters only? */
bool scorer_is_foreign(const struct alloc_scorer *scorer, const struct net *net);

void *alloc_rollout_open(const struct alloc_choice *choice,
                         struct rec_error *err) REC_MUST_CHECK;
void alloc_rollout_free(void *self);
bool alloc_rollout_arrive(void *self, const struct graph_job *job, struct rec_error *err);
bool alloc_rollout_decide(void *self, struct alloc_question *question, uint32_t *choice,
                          struct rec_error *err) REC_MUST_CHECK;
bool alloc_rollout_judge(void *self, struct alloc_question *question, uint32_t *choice,
                         double *worths, struct rec_error *err) REC_MUST_CHECK;

#endif
