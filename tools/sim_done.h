/* The done records of `sim`. */
#ifndef RAMPIPE_SIM_DONE_H
#define RAMPIPE_SIM_DONE_H

#include "rampipe/sim.h"

/* Remembers the texts of keys that are the same for many jobs. */
struct done_memo;

/* NULL: *err. */
struct done_memo *done_memo_new(struct rec_error *err) REC_MUST_CHECK;
/* `memo` may be NULL. */
void done_memo_free(struct done_memo *memo);
/* Writes the record of a job that is complete. */
bool done_write(struct done_memo *memo, const struct sim_done *done, struct rec_writer *w,
                struct rec_error *err) REC_MUST_CHECK;
/* The share of the time that the job's servers run ops. */
double done_busy_share(const struct sim_done *done);

#endif
