/* The tuner, as a run has it: it hears of arrivals, and says what changes. */
#ifndef RAMPIPE_SERVE_TUNER_H
#define RAMPIPE_SERVE_TUNER_H

#include "rampipe/serve.h"

struct serve_tuner;

/* Of a sealed pipeline that is configured, which is borrowed. REC_DATA: it is not said
 * what the pipeline was planned for. */
struct serve_tuner *serve_tuner_new(const struct serve_pipeline *pipeline,
                                    enum serve_service service,
                                    const struct serve_tuning *tuning,
                                    struct rec_error *err) REC_MUST_CHECK;
/* `tuner` may be NULL. */
void serve_tuner_free(struct serve_tuner *tuner);
/* A query arrives, not before what has happened. What it changes comes after `time`. */
bool serve_tuner_arrival(struct serve_tuner *tuner, double time,
                         struct rec_error *err) REC_MUST_CHECK;
/* When it does something next, seconds; INFINITY: not before another query comes. */
double serve_tuner_next(const struct serve_tuner *tuner);
/* What it does next: 1 *change, 0 nothing changes, -1 *err. */
int serve_tuner_step(struct serve_tuner *tuner, struct serve_change *change,
                     struct rec_error *err) REC_MUST_CHECK;
/* Takes the next of the replicas that are still starting: false, there is none. */
bool serve_tuner_starting(struct serve_tuner *tuner, struct serve_change *change);
/* US$ an hour of a stage in a static plan for the highest rate over half a minute so far;
 * NAN: not known. */
double serve_tuner_fixed(const struct serve_tuner *tuner, uint32_t stage);

#endif
