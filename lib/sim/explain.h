/* lib/sim/explain.h - why the exchanges of a job's first step take as long as they do. */
#ifndef SIM_EXPLAIN_H
#define SIM_EXPLAIN_H

#include "first.h"

/** Tells of an exchange. */
typedef bool sim_explained(void *context, const struct sim_reason *reason,
                           struct rec_error *err);

/** Tells of the exchanges of a step of a member, in order of their starts. `reasons`
 * NULL: jobs share no links, and each exchange takes its time alone. */
bool sim_explain(const struct sim_member *member, const struct sim_first *reasons,
                 sim_explained *tell, void *context,
                 struct rec_error *err) REC_MUST_CHECK;

#endif
