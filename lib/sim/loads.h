/*
 * lib/sim/loads.h - what the links of a cluster carry.
 *
 * All steps of a job send the same bytes over the same links, whatever else is sent. So
 * the bytes of a job are those of a step, which is simulated alone for them, times its
 * steps. How long a link is busy depends on what else is sent, and is added up while
 * time passes:
 *
 *     steps that are simulated    what the carrier of their company measures
 *     a job alone                 what its step alone measures, times its steps
 *     a mean step of a company    what is measured in the windows of the mean
 *
 * No two companies use a link at the same time, so their times add up.
 */
#ifndef SIM_LOADS_H
#define SIM_LOADS_H

#include "rampipe/flow.h"
#include "rampipe/sim.h"

/** What links have carried: per link of a cluster. */
struct sim_loads {
    uint32_t n;
    double *bytes, *busy; /* bytes; seconds in which something moved */
    double *one, *other;  /* room for as many of both */
    bool
        by_steps; /* bytes come from the steps of jobs, and only the time from carriers */
};

/** Nothing is carried yet. NULL: *err. */
struct sim_loads *sim_loads_new(const struct net *net,
                                struct rec_error *err) REC_MUST_CHECK;
/** `loads` may be NULL. */
void sim_loads_free(struct sim_loads *loads);
/** Adds what flows have sent since it was last taken. If colour[] is given, each of their
 * links stands for all those of the cluster that have its number as colour. */
void sim_loads_take(struct sim_loads *loads, struct flow_links *links,
                    const uint32_t *colour, uint32_t ncolours);
/** Leaves what is new. */
void sim_loads_clear(struct sim_loads *loads);

/** What the links carry over which a job sends. */
struct sim_share {
    uint32_t link;
    double bytes, busy; /* in a step */
};
struct sim_shares {
    struct sim_share *of;
    uint32_t n;
};

/** Lists those of some loads that are not 0; *shares is {0} or filled. */
bool sim_shares_make(const struct sim_loads *loads, struct sim_shares *shares,
                     struct rec_error *err) REC_MUST_CHECK;
/** Leaves {0}. */
void sim_shares_free(struct sim_shares *shares);
/** Adds `bytes` times the bytes, and `busy` times the time. */
void sim_loads_add(struct sim_loads *loads, const struct sim_shares *shares, double bytes,
                   double busy);

/** What a step of a member sends alone, over the links as they are; if it never ends on
 * these, as if they were all well. */
bool sim_loads_of_step(const struct sim_member *member, struct sim_shares *shares,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
