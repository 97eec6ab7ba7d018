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
/** The member whose batch has this token. */
const struct sim_member *sim_carrier_member(const struct sim_carrier *carrier,
                                            uint64_t token);

/** Begins a batch. *batch is its number while pieces are added to it. */
bool sim_carrier_begin(struct sim_carrier *carrier, uint64_t token, uint32_t *batch,
                       struct rec_error *err) REC_MUST_CHECK;
/** A batch sends `bytes` from one server to another one, from `time` on. */
bool sim_carrier_send(struct sim_carrier *carrier, uint32_t batch, uint32_t from,
                      uint32_t to, double bytes, double time,
                      struct rec_error *err) REC_MUST_CHECK;

/** As `still` of struct sim_sharing. */
uint32_t sim_carrier_still(struct sim_carrier *carrier, uint32_t member);

/** As `next` and `advance` of struct sim_courier. */
double sim_carrier_next(struct sim_carrier *carrier);
bool sim_carrier_advance(struct sim_carrier *carrier, double time, sim_arrived *arrived,
                         void *context, struct rec_error *err) REC_MUST_CHECK;

#endif
