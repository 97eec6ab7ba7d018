/*
 * Prices graphs: places one on the servers that are free now, or on an empty cluster, and
 * simulates a step there. No job is started. The result for a state of the cluster is
 * remembered (trial.h).
 */
#ifndef RAMPIPE_ALLOC_PRICE_H
#define RAMPIPE_ALLOC_PRICE_H

#include "floor.h"
#include "trial.h"

struct pricer;

/* `options` and `store` are borrowed. Layouts that no job holds are kept up to `layouts`
 * bytes. NULL: *err. */
struct pricer *pricer_new(const struct place_options *options,
                          const struct graph_store *store, size_t layouts,
                          struct rec_error *err) REC_MUST_CHECK;
void pricer_free(struct pricer *pricer);
/* Marks a server as taken, or as free again. */
void pricer_take(struct pricer *pricer, uint32_t server);
void pricer_give_back(struct pricer *pricer, uint32_t server);
/* Takes a server out of service for ever: an "empty" cluster does not have it either. */
void pricer_set_down(struct pricer *pricer, uint32_t server);
/* The cluster; borrowed. */
const struct net *pricer_net(const struct pricer *pricer);
/* The servers that are free now; borrowed. */
const struct place_vacancy *pricer_vacancy(const struct pricer *pricer);
/* Forgets layouts that no job holds, if they are too many. What pricer_try() returned
 * before is then no longer valid. */
bool pricer_forget(struct pricer *pricer, struct rec_error *err) REC_MUST_CHECK;
/* Forgets all that is known of a graph, which is not asked for again, unless a job runs
 * on one of its layouts. */
bool pricer_drop(struct pricer *pricer, uint32_t index, bool *dropped,
                 struct rec_error *err) REC_MUST_CHECK;
/* The degree of a graph of the store: its degree=, or the most parts an op has. */
bool pricer_degree(struct pricer *pricer, uint32_t index, uint32_t *degree,
                   struct rec_error *err) REC_MUST_CHECK;
/* Places the graph on the servers that are free. The result is valid until the next call.
 * NULL: *err. */
const struct trial *pricer_try(struct pricer *pricer, uint32_t index,
                               struct rec_error *err) REC_MUST_CHECK;
/* The same for a layout of the graph that the caller has made, without a name, on servers
 * that are free: slot i is servers[i], which is borrowed. The layout is taken over if no
 * equal one is known; else the caller frees it. */
const struct trial *pricer_lay(struct pricer *pricer, uint32_t index,
                               struct graph_layout *where, const uint32_t *servers,
                               struct rec_error *err) REC_MUST_CHECK;
/* Places the graph on an empty cluster. *step is the time of a step, seconds; INFINITY:
 * it could not be placed. */
bool pricer_try_alone(struct pricer *pricer, uint32_t index, enum place_outcome *outcome,
                      double *step, struct rec_error *err) REC_MUST_CHECK;
/* Lower bounds of what the graph needs, whichever servers are free. floor->servers is 0
 * if it cannot be placed, not even on an empty cluster. */
bool pricer_floor(struct pricer *pricer, uint32_t index, struct floor *floor,
                  struct rec_error *err) REC_MUST_CHECK;

#endif
