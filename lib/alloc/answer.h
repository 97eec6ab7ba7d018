/* The answers of agents, for agent.c. */
#ifndef RAMPIPE_ALLOC_ANSWER_H
#define RAMPIPE_ALLOC_ANSWER_H

#include "act.h"

/* Takes "answer JOB GRAPH KEYS" apart, and sets *choice for alloc_chooser.decide. Unknown
 * keys are skipped, so that agents may write more than is read here. `act` is what came
 * before it; NULL: the agent has no whole actions. REC_DATA: *err says what is wrong. */
bool answer_take(struct act *act, struct alloc_question *q, struct rec_str line,
                 uint32_t *choice, struct rec_error *err) REC_MUST_CHECK;

#endif
