/*
 * lib/sim/company.h - jobs whose steps are simulated together.
 *
 *     together.c   steps of several jobs on one clock and one carrier
 *     company.c    the mean steps of a company, and what is remembered of them
 */
#ifndef SIM_COMPANY_H
#define SIM_COMPANY_H

#include "rampipe/sim.h"

/** Fills *placed, whose arrays the layout owns, but for what carries the deps. */
bool sim_layout_place(struct sim_layout *layout, const struct net *net,
                      struct sim_placed *placed, struct rec_error *err) REC_MUST_CHECK;

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
/** Makes a run of `left` steps of a job that has run alone for so many seconds of the
 * first one, and no longer than it takes. It is alone with a carrier of its own:
 * sim_together_join(). Its first step may end before it returns. NULL: *err. */
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
/** The time of the next event, seconds; INFINITY: all steps are over. */
double sim_together_next(const struct sim_together *together);
/** Lets all events up to and at `until` happen, but none after an instant at which a run
 * ended its last step, or, if `each`, any step: *stopped is that instant, seconds, else
 * INFINITY. */
bool sim_together_advance(struct sim_together *together, double until, bool each,
                          double *stopped, struct rec_error *err) REC_MUST_CHECK;

#endif
