/*
 * rampipe/learn_batch.h - many episodes at once, decided step by step by the caller. The
 * functions are flat, with arrays that the caller owns, so that other languages can call
 * them: scripts/rampipe_vector.py does, by ctypes.
 *
 *     open -> reset each copy -> step -> step ... (reset a copy that has ended) -> close
 *
 * A copy is an episode on a cluster of its own. All copies share what is remembered of
 * placements. A decision is the one that ramp-alloc would make by the same choice.
 *
 * Actions: 0 refuses the job; action a takes its alternative of degree
 * learn_batch_degree(a), the first one if it has several, and places it as
 * learn_batch_place(a) says.
 */
#ifndef RAMPIPE_LEARN_BATCH_H
#define RAMPIPE_LEARN_BATCH_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct learn_batch;

/** Texts as the options of tracegen jobs and alloc have them; not kept. */
struct learn_batch_options {
    /* A file of graphs and jobs as partition writes them. With `interarrival`, jobs are
     * drawn from the alternatives of these jobs as by `tracegen jobs --sampling
     * remove-and-repeat`; without it (NULL), these jobs are each episode. */
    const char *input;
    const char *cluster; /* KIND:FIELD,..., or a file (net_find()) */
    const char *place; /* ways of placing, as --heuristic; NULL: the cluster's default */
    const char *interarrival; /* a distribution, seconds */
    const char *fraction;     /* deadline / sequential time, a distribution; NULL: none */
    const char *steps;        /* a distribution */
    uint64_t jobs;            /* in an episode that is drawn */
    uint32_t copies;          /* at least 1 */
};

/**
 * What the functions below write for each copy. All are the caller's until the batch is
 * closed; each may be NULL. Of a copy whose episode has ended, the first three are 0.
 */
struct learn_batch_arrays {
    float *feature; /* [copies * actions * features] of what can start; else 0 */
    uint8_t *mask;  /* [copies * actions] 1: it can start; and of action 0 */
    uint32_t *job;  /* [copies] the template of the job that waits for a decision */
    /* By learn_batch_step() only; 0 for a copy that had ended before: */
    float *reward;      /* [copies] 1: the job was placed, -1: blocked or refused */
    uint8_t *ended;     /* [copies] 1: that was the last job; call learn_batch_reset() */
    double *completion; /* [copies] seconds from arrival; INFINITY: not placed */
};

/** NULL: message[room] says why. */
struct learn_batch *learn_batch_open(const struct learn_batch_options *options,
                                     char *message, size_t room) REC_MUST_CHECK;
/** Says where results go; what *arrays points to is borrowed. */
void learn_batch_use(struct learn_batch *batch, const struct learn_batch_arrays *arrays);
/** `batch` may be NULL. */
void learn_batch_close(struct learn_batch *batch);
/** Why the last function that returned false did so. */
const char *learn_batch_message(const struct learn_batch *batch);

/** How many actions there are: the degrees of the input in each way of placing, and 0. */
uint32_t learn_batch_actions(const struct learn_batch *batch);
/** The degree of an action; ascending, 0 for action 0. */
uint32_t learn_batch_degree(const struct learn_batch *batch, uint32_t action);
/** The way of placing of an action, as place= of agents names it; "" for action 0. */
const char *learn_batch_place(const struct learn_batch *batch, uint32_t action);
/** How many features an alternative has, and their names (struct alloc_feature). */
uint32_t learn_batch_features(void);
const char *learn_batch_feature(uint32_t i);
/** The templates of jobs: different alternatives of the input, as a text with commas. */
uint32_t learn_batch_templates(const struct learn_batch *batch);
const char *learn_batch_template(const struct learn_batch *batch, uint32_t i);

/** Begins an episode of a copy, also in mid-episode. The same seed gives the same jobs;
 * if they are those of the input, it changes nothing. */
bool learn_batch_reset(struct learn_batch *batch, uint32_t copy,
                       uint32_t seed) REC_MUST_CHECK;
/**
 * Decides a job of each copy by action[copies], and lets time pass until the next one
 * comes. Copies whose episode has ended are left out. False: an action is not below
 * learn_batch_actions(), and no job was decided; or memory or the input failed.
 */
bool learn_batch_step(struct learn_batch *batch, const int32_t *action) REC_MUST_CHECK;

/** Writes the alloc and block records of a copy into a file, from its next decision on;
 * path NULL ends the file, which is not kept otherwise. Names of layouts are counted over
 * all copies. */
bool learn_batch_record(struct learn_batch *batch, uint32_t copy,
                        const char *path) REC_MUST_CHECK;

REC_END_DECLS

#endif
