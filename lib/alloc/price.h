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
 * bytes. `futures`: the same states of the cluster come again and again. NULL: *err. */
struct pricer *pricer_new(const struct place_options *options,
                          const struct graph_store *store, size_t layouts, bool futures,
                          struct rec_error *err) REC_MUST_CHECK;
/* Adds another way of placing: number 1, 2, ...; way 0 is that of pricer_new(). Servers
 * must not have been taken yet. */
bool pricer_add_way(struct pricer *pricer, const struct place_options *options,
                    struct rec_error *err) REC_MUST_CHECK;
/* How many there are. */
uint32_t pricer_ways(const struct pricer *pricer);
const char *pricer_way_name(const struct pricer *pricer, uint32_t way);
void pricer_free(struct pricer *pricer);
/* Marks a server as taken, or as free again. */
void pricer_take(struct pricer *pricer, uint32_t server);
void pricer_give_back(struct pricer *pricer, uint32_t server);
/* Marks free servers as taken, or taken ones as free: a set, whose marks an outline
 * has. */
void pricer_flip(struct pricer *pricer, const uint64_t *servers, uint64_t marks);
/* Takes a server out of service for ever: an "empty" cluster does not have it either. */
void pricer_set_down(struct pricer *pricer, uint32_t server);
/* The cluster; borrowed. */
const struct net *pricer_net(const struct pricer *pricer);
/* The servers that are free now; borrowed until the next call. */
const struct place_vacancy *pricer_vacancy(struct pricer *pricer);
/* The servers that are taken now, a bit for each, and how many words they are. */
const uint64_t *pricer_taken(const struct pricer *pricer, size_t *nwords);
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
/* Places the graph on the servers that are free, in way 0. The result is valid until the
 * next call. NULL: *err. */
const struct trial *pricer_try(struct pricer *pricer, uint32_t index,
                               struct rec_error *err) REC_MUST_CHECK;
const struct trial *pricer_try_way(struct pricer *pricer, uint32_t index, uint32_t way,
                                   struct rec_error *err) REC_MUST_CHECK;
/* The same in short, and much faster if it is known. */
const struct outline *pricer_outline(struct pricer *pricer, uint32_t index, uint32_t way,
                                     struct rec_error *err) REC_MUST_CHECK;
/* Sets taken[], as many words as those of pricer_taken(), to the servers of a trial, and
 * returns their marks, XORed. */
uint64_t pricer_mask(const struct pricer *pricer, const struct trial *trial,
                     uint64_t *taken);
/* A trial of a layout of the graph that the caller has made, without a name, on servers
 * that are free: slot i is servers[i], which is borrowed. The layout is taken over if no
 * equal one is known; else the caller frees it. */
const struct trial *pricer_lay(struct pricer *pricer, uint32_t index,
                               struct graph_layout *where, const uint32_t *servers,
                               struct rec_error *err) REC_MUST_CHECK;
/* Places the graph on an empty cluster, in the way in which it is fastest. *step is the
 * time of a step, seconds; INFINITY: it could not be placed. */
bool pricer_try_alone(struct pricer *pricer, uint32_t index, enum place_outcome *outcome,
                      double *step, struct rec_error *err) REC_MUST_CHECK;
/* The same, but *step is a lower bound of the time of a step, whichever servers are free
 * when the graph is placed. Jobs on fewer free servers may be faster than alone: on those
 * that are no stragglers, or where its parts happen to lie better. */
bool pricer_try_least(struct pricer *pricer, uint32_t index, enum place_outcome *outcome,
                      double *step, struct rec_error *err) REC_MUST_CHECK;
/* Lower bounds of what the graph needs, whichever servers are free. floor->servers is 0
 * if it cannot be placed, not even on an empty cluster. */
bool pricer_floor(struct pricer *pricer, uint32_t index, struct floor *floor,
                  struct rec_error *err) REC_MUST_CHECK;

#endif
