/*
 * lib/sim/carrier.h - what jobs have on its way, over links that they share fairly.
 *
 *     batch     what arrives as a whole, known by its token (rampipe/sim.h)
 *     piece     what a batch sends from one server to another: it waits for the latency
 *               of its route, then it is a flow over its links (rampipe/flow.h)
 *     carrier   the pieces of the jobs of one company, and the links of the cluster
 *
 * A batch arrives when all its pieces have.
 */
#ifndef SIM_CARRIER_H
#define SIM_CARRIER_H

#include "rampipe/sim.h"

struct sim_carrier;

/** A carrier without members. NULL: *err. */
struct sim_carrier *sim_carrier_new(struct rec_error *err) REC_MUST_CHECK;
/** What is on its way is lost. `carrier` may be NULL. */
void sim_carrier_free(struct sim_carrier *carrier);
/** Carries for a member from `time` on, also what it has on its way in `from`, which may
 * be NULL. All members are on one cluster, whose links are as they are at the first call.
 * REC_DATA: the cluster has no links. */
bool sim_carrier_take(struct sim_carrier *carrier, const struct sim_member *member,
                      struct sim_carrier *from, double time,
                      struct rec_error *err) REC_MUST_CHECK;
/** The member whose batch has this token. NULL: the carrier does not carry for it. */
const struct sim_member *sim_carrier_member(const struct sim_carrier *carrier,
                                            uint64_t token);

/** Begins a batch of an exchange, at `time`. *batch is its number while pieces are added
 * to it. */
bool sim_carrier_begin(struct sim_carrier *carrier, uint64_t token, uint32_t exchange,
                       double time, uint32_t *batch,
                       struct rec_error *err) REC_MUST_CHECK;
/** A batch sends `bytes` from one server to another one, from `time` on. */
bool sim_carrier_send(struct sim_carrier *carrier, uint32_t batch, uint32_t from,
                      uint32_t to, double bytes, double time,
                      struct rec_error *err) REC_MUST_CHECK;
/** The latency of the route between two servers, seconds. */
double sim_carrier_latency(const struct sim_carrier *carrier, uint32_t from, uint32_t to);
/** The same as sim_carrier_send(), but the flow starts at `start`, not after the latency
 * of its route. */
bool sim_carrier_send_at(struct sim_carrier *carrier, uint32_t batch, uint32_t from,
                         uint32_t to, double bytes, double time, double start,
                         struct rec_error *err) REC_MUST_CHECK;
/** A batch does not arrive before `until`; `measured`: as a time was measured. */
bool sim_carrier_wait(struct sim_carrier *carrier, uint32_t batch, double time,
                      double until, bool measured, struct rec_error *err) REC_MUST_CHECK;

/** True if a round among n servers is to be sent by sim_carrier_fold(): each server sends
 * to each other one, and there are many; or such a round was sent before. */
bool sim_carrier_folds(const struct sim_carrier *carrier, const struct net_round *round,
                       uint32_t n);
/** A batch sends a round among n servers from `time` on, as classes of flows that are
 * alike. From then on all that this carrier carries is carried so. REC_USAGE: too few
 * flows are alike. */
bool sim_carrier_fold(struct sim_carrier *carrier, uint32_t batch,
                      const struct net_round *round, const uint32_t *server, uint32_t n,
                      double time, struct rec_error *err) REC_MUST_CHECK;
/** So many servers that send to each other are folded; others are flows of their own. */
enum { SIM_CARRIER_FOLD = 65 };
/** Sets another number than SIM_CARRIER_FOLD; for tests. */
void sim_carrier_fold_from(struct sim_carrier *carrier, uint32_t servers);
/** From `time` on a link of the cluster has another capacity, bytes/s. */
bool sim_carrier_capacity(struct sim_carrier *carrier, double time, uint32_t link,
                          double capacity, struct rec_error *err) REC_MUST_CHECK;

/** As `count` of struct sim_sharing. */
bool sim_carrier_count(struct sim_carrier *carrier, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** As `still` of struct sim_sharing. */
uint32_t sim_carrier_still(struct sim_carrier *carrier, uint32_t member);

/** As `next` and `advance` of struct sim_courier. */
double sim_carrier_next(struct sim_carrier *carrier);
bool sim_carrier_advance(struct sim_carrier *carrier, double time, sim_arrived *arrived,
                         void *context, struct rec_error *err) REC_MUST_CHECK;

#endif
