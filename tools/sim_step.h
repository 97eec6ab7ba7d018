/* The first step of a job as records: when its ops ran, data were sent, links carried. */
#ifndef RAMPIPE_SIM_STEP_H
#define RAMPIPE_SIM_STEP_H

#include "rampipe/sim.h"

/** Writes the records of a job that starts, whose exchanges take their time alone. */
bool timeline_observe(struct rec_writer *writer, const struct sim_done *done,
                      const struct net *net, const uint32_t *servers,
                      struct rec_error *err) REC_MUST_CHECK;
/** Writes the record of one moment of its first step, where jobs share links. */
void timeline_write_moment(struct rec_writer *writer, const struct sim_done *done,
                           const struct net *net, const uint32_t *servers,
                           const struct sim_moment *moment);

#endif
