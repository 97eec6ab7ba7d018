/* Why a step takes as long as it does: what links carry, what holds exchanges back. */
#ifndef RAMPIPE_SIM_WHY_H
#define RAMPIPE_SIM_WHY_H

#include "rampipe/sim.h"

/* What the records need to be written. Starts as {0}. */
struct why {
    uint64_t unfinished; /* jobs that had started */
    /* Links by level, counted when the first record is written. */
    struct why_level {
        char *name;
        uint32_t links;
    } * level;
    size_t nlevels, room;
};

/** Writes a load record. */
bool why_write_load(struct why *why, struct rec_writer *writer, const struct net *net,
                    const struct sim_load *load, struct rec_error *err) REC_MUST_CHECK;
/** Writes an explain record. */
void why_write_reason(struct rec_writer *writer, const struct sim_done *done,
                      const struct net *net, const struct sim_reason *reason);
/** Leaves {0}. */
void why_free(struct why *why);

#endif
