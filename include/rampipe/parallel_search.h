/*
 * rampipe/parallel_search.h - which mix of parallelism is best.
 *
 *     parallel_closed_step()    a step in closed form: microseconds, not milliseconds
 *     parallel_search()         all mixes of so many devices by the closed form, the best
 *                               of them by parallel_step()
 *     parallel_search_why()     why it does not choose one
 *
 * Notation as in rampipe/parallel.h.
 */
#ifndef RAMPIPE_PARALLEL_SEARCH_H
#define RAMPIPE_PARALLEL_SEARCH_H

#include "rampipe/parallel_step.h"

REC_BEGIN_DECLS

/** A step in closed form. */
struct parallel_closed {
    double seconds;
    double memory; /* bytes of the device that needs most */
};

/**
 * The closed form of parallel_step(): the same costs of layers, exchanges and memory,
 * but the pipeline is not run. A device ends no sooner than
 *
 *     its start, while passes of other stages run that it waits for
 *     + all its passes
 *     + its end, while it waits for the passes of others of the last microbatches
 *
 * so that the closed form is at most what parallel_step() says but for rounding. It is
 * less where stages that differ hold each other up in the middle of a step.
 * REC_DATA: the mix is wrong for the model, or its schedule has no closed form (those
 * that split the backward pass).
 */
bool parallel_closed_step(const struct parallel_model *model,
                          const struct parallel_mix *mix,
                          const struct parallel_machine *machine,
                          struct parallel_closed *answer,
                          struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
