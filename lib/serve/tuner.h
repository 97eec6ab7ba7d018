/* The tuner as a run sees it: the run tells it of arrivals, and it tells the run of
 * changes. */
#ifndef RAMPIPE_SERVE_TUNER_H
#define RAMPIPE_SERVE_TUNER_H

#include "rampipe/serve.h"

struct serve_tuner;

/* Makes a tuner for a pipeline that is sealed, configured, and borrowed. REC_DATA: the
 * records do not say what the pipeline was planned for. */
struct serve_tuner *serve_tuner_new(const struct serve_pipeline *pipeline,
                                    enum serve_service service,
                                    const struct serve_tuning *tuning,
                                    struct rec_error *err) REC_MUST_CHECK;
/* `tuner` may be NULL. */
void serve_tuner_free(struct serve_tuner *tuner);
/* A query arrives at `time`, not before any event so far. Changes that this causes come
 * after `time`. */
bool serve_tuner_arrival(struct serve_tuner *tuner, double time,
                         struct rec_error *err) REC_MUST_CHECK;
/* The time of its next step, seconds; INFINITY: none before another query comes. */
double serve_tuner_next(const struct serve_tuner *tuner);
/* Takes the next step. 1: *change is to be made; 0: nothing changes; -1: *err. */
int serve_tuner_step(struct serve_tuner *tuner, struct serve_change *change,
                     struct rec_error *err) REC_MUST_CHECK;
/* Takes the next change that is due, however far ahead: at the end of a run, replicas
 * that are still starting must be paid for. False: there is none. */
bool serve_tuner_starting(struct serve_tuner *tuner, struct serve_change *change);
/* The cost of a stage, US$ an hour, in a static plan for the highest rate that came over
 * any half minute so far; NAN: not known. */
double serve_tuner_fixed(const struct serve_tuner *tuner, uint32_t stage);

#endif
