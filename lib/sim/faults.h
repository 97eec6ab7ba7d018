/*
 * lib/sim/faults.h - the links of a cluster that have changed by now.
 *
 * A step costs the same over the same links. So the cost of a job is remembered with its
 * state: which of the links that it may use are not well, and by how much. Jobs that use
 * none of these cost what they cost on any servers that lie to each other as theirs.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "rampipe/sim.h"

struct sim_faults;

/** All links are well; `net` is borrowed. NULL: *err. */
struct sim_faults *sim_faults_new(const struct net *net,
                                  struct rec_error *err) REC_MUST_CHECK;
/** `faults` may be NULL, here and below: then no link ever changes. */
void sim_faults_free(struct sim_faults *faults);
/** When the next links change, seconds; INFINITY: never. */
double sim_faults_next(const struct sim_faults *faults);
/** True if the changes at that time are of links that a member may use. */
bool sim_faults_touch(const struct sim_member *member);
/** They happen. */
bool sim_faults_happen(struct sim_faults *faults, struct rec_error *err) REC_MUST_CHECK;
/** True if a link has failed. */
bool sim_faults_failed(const struct sim_faults *faults);
/** Multiplies the capacities of all links by their factors. */
void sim_faults_apply(const struct sim_faults *faults, double *capacity);
/** A part of a key; starts as {0}, `bytes` is to be freed. */
struct sim_state {
    char *bytes;
    size_t n, room;
};
/** Adds the state of a member, and `number` before it; nothing, if the links that it may
 * use are all well. With equal states, layouts and geometries members cost the same. */
bool sim_faults_state(const struct sim_member *member, uint32_t number,
                      struct sim_state *state, struct rec_error *err) REC_MUST_CHECK;
/** Fills *err for a job that waits for a link, which has failed and never recovers. */
bool sim_faults_stop(const struct sim_faults *faults, uint32_t link, struct rec_str job,
                     struct rec_error *err);

#endif
