/*
 * lib/sim/party.h - a job that runs, alone or in a company. It goes on in one of two
 * ways: its steps are simulated (`run`), or all of them take the same time, so that its
 * end is known.
 */
#ifndef SIM_PARTY_H
#define SIM_PARTY_H

#include "company.h"
#include "loads.h"

struct sim_party {
    struct sim_member member;
    struct sim_step alone; /* a step of it if nobody else sends; if it stands, a step of
                              before */
    struct sim_step step;  /* a step of it at present; without `run` */
    double since;          /* `left` and `part` are those of this time, seconds */
    double left;           /* steps left, with the one that has begun */
    double part;           /* of that step, how much of it is over: 0 to 1 */
    struct sim_run *run;   /* its steps are simulated; NULL: they all take `step` */
    double steps;          /* that are over, but for those of `run`; may be broken */
    struct sim_step sum;   /* over these: seconds, comm, comp, busy */
    uint32_t company;      /* UINT32_MAX: it has just started */
    bool shared;           /* it has been in a company of more than one, or its links
                              have changed: its steps differ */
    bool stands;           /* no step ends while the links are as they are */
    bool told;             /* that the last step of `run` is over */
    bool touched;          /* its links change at this instant */
    bool mean;             /* `step` is the mean of a company */
    double total;          /* steps */
    struct sim_shares own; /* what a step sends alone, if what links carry is asked for */
};

/** Brings a job whose steps are all alike to `time`, which is not after its end. */
void sim_party_refresh(struct sim_party *party, double time);
/** Simulates the steps of a job from now on. The job is in the middle of a step: the part
 * of it that is over is what it would be if the job had run alone. The step is counted
 * when it ends. */
bool sim_party_simulate(struct sim_party *party, const struct sim_layouts *pool,
                        double time, struct rec_error *err) REC_MUST_CHECK;
/** They are no longer simulated. How much of the one that has begun is over, follows from
 * the mean of those before. */
bool sim_party_stop(struct sim_party *party, double time,
                    struct rec_error *err) REC_MUST_CHECK;
/** Finds `own` for the links as they are, if what links carry is asked for. */
bool sim_party_weigh(struct sim_party *party, struct rec_error *err) REC_MUST_CHECK;
/** A job ends or leaves at `time`: adds the bytes of its steps to what the links have
 * carried, and what is known only now of their time. */
bool sim_party_count(struct sim_party *party, double time,
                     struct rec_error *err) REC_MUST_CHECK;
/** True if steps of the job differed; then sets *step to the mean of those so far. */
bool sim_party_mean(struct sim_party *party, double time, struct sim_step *step);

#endif
