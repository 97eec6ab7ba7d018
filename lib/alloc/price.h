/*
 * What placing a graph would give, on the servers that are free now and on a cluster that
 * it has for itself. What a pure heuristic gave in a state is remembered (trial.h).
 */
#ifndef RAMPIPE_ALLOC_PRICE_H
#define RAMPIPE_ALLOC_PRICE_H

#include "floor.h"
#include "trial.h"

struct pricer;

/* `options` and `store` are borrowed; `layouts`: bytes of those kept that no job holds.
 * NULL: *err. */
struct pricer *pricer_new(const struct alloc_placer_options *options,
                          const struct graph_store *store, size_t layouts,
                          struct rec_error *err) REC_MUST_CHECK;
void pricer_free(struct pricer *pricer);
/* A server is taken, or free again. */
void pricer_take(struct pricer *pricer, uint32_t server);
void pricer_give_back(struct pricer *pricer, uint32_t server);
/* A server is out of service for ever, also of an empty cluster. */
void pricer_set_down(struct pricer *pricer, uint32_t server);
/* What is free. */
const struct alloc_vacancy *pricer_vacancy(const struct pricer *pricer);
/* Forgets layouts that no job holds, if they are too many; trials are void then. */
bool pricer_forget(struct pricer *pricer, struct rec_error *err) REC_MUST_CHECK;
/* The degree of a graph of the store: its degree=, or the most parts an op has. */
bool pricer_degree(struct pricer *pricer, uint32_t index, uint32_t *degree,
                   struct rec_error *err) REC_MUST_CHECK;
/* The graph on the servers that are free; valid until the next call. NULL: *err. */
const struct trial *pricer_try(struct pricer *pricer, uint32_t index,
                               struct rec_error *err) REC_MUST_CHECK;
/* The graph on an empty cluster: *step is the time of a step, seconds, INFINITY if it
 * could not be placed. */
bool pricer_try_alone(struct pricer *pricer, uint32_t index, enum alloc_outcome *outcome,
                      double *step, struct rec_error *err) REC_MUST_CHECK;
/* What the graph needs at least, whatever is free. floor->servers is 0 if it cannot be
 * placed even on an empty cluster, nor on any other. */
bool pricer_floor(struct pricer *pricer, uint32_t index, struct floor *floor,
                  struct rec_error *err) REC_MUST_CHECK;

#endif
