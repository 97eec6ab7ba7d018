/* Where the first step of a job goes on each of its servers, if its layout has lanes. */
#ifndef RAMPIPE_SIM_PARTS_H
#define RAMPIPE_SIM_PARTS_H

#include "rampipe/sim.h"

/* What happened in a step so far. Starts as {0}. */
struct parts {
    struct parts_span {
        double start, end; /* seconds */
        uint32_t slot, what;
    } * span;
    size_t n, room;
    struct parts_name {
        char text[48];
    } * name; /* of `what`: passes, then lanes of exchanges in order of appearance */
    size_t nnames, name_room;
    bool failed; /* out of memory */
};

/** True if the job has such parts: its ops are on lanes. */
bool parts_has(const struct sim_done *done);
/** The step of a job that shares no links: simulates it once more, and writes part
 * records. */
bool parts_observe(struct parts *parts, struct rec_writer *writer,
                   const struct sim_done *done, const struct net *net,
                   const uint32_t *servers, struct rec_error *err) REC_MUST_CHECK;
/** Something happened in a step whose jobs share links. */
void parts_happened(struct parts *parts, const struct sim_done *done,
                    const struct sim_moment *moment);
/** All has: writes part records of the step, which began at `start`, and forgets it. */
bool parts_write(struct parts *parts, struct rec_writer *writer,
                 const struct sim_done *done, double start,
                 struct rec_error *err) REC_MUST_CHECK;
/** Leaves {0}. */
void parts_free(struct parts *parts);

#endif
