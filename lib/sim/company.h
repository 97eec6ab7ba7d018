/*
 * lib/sim/company.h - jobs whose steps are simulated together.
 *
 *     together.c   steps of several jobs on one clock and one carrier
 *     company.c    the mean steps of a company, and what is remembered of them
 *     party.c      a job that runs: its steps so far, and how it goes on
 *     companies.c  which running jobs are a company, and when each of them ends
 */
#ifndef SIM_COMPANY_H
#define SIM_COMPANY_H

#include "rampipe/sim.h"

/** Fills *placed, whose arrays the layout owns, but for what carries the deps. It keeps
 * `member`, for messages. */
bool sim_layout_place(const struct sim_member *member, struct sim_placed *placed,
                      struct rec_error *err) REC_MUST_CHECK;

/** By what the deps of a step are carried whose member shares links. If the courier of
 * the sharing has the same keys in all steps, they have a plan. */
void sim_layout_share(const struct sim_member *member, struct sim_placed *placed,
                      const struct sim_courier *courier);

/* ---- steps on one clock --------------------------------------------------- */

/* A job whose steps are simulated one after the other. */
struct sim_run {
    struct sim_member member;
    struct sim_together *together; /* whose carrier has its batches */
    struct sim_stepping *stepping; /* the step that runs; NULL: all its steps are over */
    double begun;                  /* when that step began, seconds */
    double next;                   /* its next event but for arrivals, seconds */
    uint32_t sending;              /* its batches on the way */
    double left;                   /* steps left, with the one that runs */
    double steps;                  /* steps that are over */
    double ended;                  /* when the last of them ended, seconds */
    struct sim_step sum;           /* over these: seconds, comm, comp, busy */
};

/* Runs that share a clock and a carrier. It is freed when the last of them leaves. */
struct sim_together {
    const struct sim_layouts *pool; /* has the sharing */
    void *carrier;
    struct sim_run **run; /* in order of their numbers; not owned */
    size_t n, room;
};

/** NULL: *err. */
struct sim_together *sim_together_new(const struct sim_layouts *pool,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `together` may be NULL. Its runs are not freed. */
void sim_together_free(struct sim_together *together);
/** Makes a run of `left` steps of a job. The job has already run the first of them alone
 * for `passed` seconds, which is at most the length of that step. The run has a carrier
 * of its own, until sim_together_join() joins it to others. The first step may end before
 * this function returns. NULL: *err. */
struct sim_run *sim_run_new(const struct sim_layouts *pool,
                            const struct sim_member *member, double left, double passed,
                            double time, struct rec_error *err) REC_MUST_CHECK;
/** Frees a run, which leaves the others if it is not alone; `run` may be NULL. What it
 * has on its way must be taken by nobody: all its steps are over, or all its company
 * ends. */
void sim_run_free(struct sim_run *run);
/** Moves a run, at `time`. Those that it was together with are freed if it was the last.
 * No event of either is before `time`. */
bool sim_together_join(struct sim_together *together, struct sim_run *run, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** Adds what the links have carried by `time` to the loads of its first run. */
bool sim_together_count(struct sim_together *together, double time,
                        struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: all steps are over. */
double sim_together_next(const struct sim_together *together);
/** Lets all events up to and at `until` happen, but none after an instant at which a run
 * ended its last step, or, if `each`, any step: *stopped is that instant, seconds, else
 * INFINITY. */
bool sim_together_advance(struct sim_together *together, double until, bool each,
                          double *stopped, struct rec_error *err) REC_MUST_CHECK;
/** What servers run in a step, on average, server-seconds: beside others the lanes of a
 * server overlap in another way than alone. Only then is it not that of *alone. */
double sim_mean_busy(double mean, const struct sim_step *alone);

/* ---- running jobs ---------------------------------------------------------- */

/* Told when it is reckoned anew when a job ends. INFINITY: it is not known yet. */
typedef bool sim_reckoned(void *context, uint32_t job, double finish,
                          struct rec_error *err);

struct sim_companies;

/** NULL: *err. `exact` as of sim_replay_share(). */
struct sim_companies *sim_companies_new(const struct sim_layouts *pool, double exact,
                                        sim_reckoned *reckoned, void *context,
                                        struct rec_error *err) REC_MUST_CHECK;
void sim_companies_free(struct sim_companies *companies);
/** A job of `steps` steps starts. *alone is what a step costs it alone, more than 0
 * seconds. */
bool sim_companies_start(struct sim_companies *companies, const struct sim_member *member,
                         const struct sim_step *alone, double steps, double time,
                         struct rec_error *err) REC_MUST_CHECK;
/** A job ends, at the time that was reckoned, or leaves at the end of the simulated
 * time. */
bool sim_companies_end(struct sim_companies *companies, uint32_t job, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** True if the job was in a company, or links that it uses have changed; then sets *step
 * to the mean of its steps so far. */
bool sim_companies_step(struct sim_companies *companies, uint32_t job, double time,
                        struct sim_step *step);
/** The time of the next event, seconds: also when links change (pool->faults). What
 * follows from starts, ends and changes happens just after their instant, so that all of
 * them are known. */
double sim_companies_next(struct sim_companies *companies);
/** The link of capacity 0 for which a job waits; UINT32_MAX: there is none. */
uint32_t sim_companies_still(const struct sim_companies *companies, uint32_t job);
/** Lets events happen, none after `until`; stops when an end becomes known. */
bool sim_companies_advance(struct sim_companies *companies, double until,
                           struct rec_error *err) REC_MUST_CHECK;

#endif
