/*
 * Placing on RAMP: the heuristics.
 *
 *     first-fit  any free servers: that of the ddls simulator ("Partitioning Distributed
 *                Compute Jobs with Reinforcement Learning and Graph Neural Networks")
 *     block      inside an empty meta-block, which the job reserves: the
 *                GreedyBlockAllocator notebook's
 *     compact    as few neighbouring communication groups as possible, then racks
 *     compact-2, compact-3, compact-back
 *                the same, in the second, the third and the last such place: so a chooser
 *                can decide where a job goes
 *
 * A heuristic sets the box in which the job may lie (origin, limit and within of struct
 * place_ramp), and calls place_units(). A new one is a function and a row of place_kinds.
 */
#include "ramp.h"

#include "rampipe/net_ramp.h"

#include <stdlib.h>

static bool
suits(const struct net *net)
{
    return net_ramp_of(net) != NULL;
}

/* The argument of a heuristic is the shape of a meta-block. */
static void *
open(const struct place_options *options, struct rec_error *err)
{
    static const uint32_t meta[3] = {2, 2, 2};
    struct place_ramp *ramp = calloc(1, sizeof *ramp);
    if (!ramp) {
        rec_fail_memory(err);
        return NULL;
    }
    ramp->shape = net_ramp_of(options->net)->shape;
    memcpy(ramp->meta, meta, sizeof meta);
    if (!options->argument || net_ramp_parse_shape(options->argument, ramp->meta, err))
        return ramp;
    free(ramp);
    return NULL;
}

static void
release(void *own)
{
    free(own);
}

/* Sets the box to the whole cluster, and the rules to those of the simulator; a heuristic
 * may change both. */
static enum place_outcome
begin(struct place_placer *p, const struct place_plan *plan)
{
    struct place_ramp *ramp = place_ramp_of(p);
    (void)plan;
    ramp->index = p->vacancy->index;
    ramp->notebook = false;
    memset(ramp->origin, 0, sizeof ramp->origin);
    memcpy(ramp->limit, ramp->shape, sizeof ramp->limit);
    memcpy(ramp->within, ramp->shape, sizeof ramp->within);
    return PLACE_PLACED;
}

/* The heuristic of the ddls simulator: a job may use every free server of the cluster. */
static enum place_outcome
first_fit(struct place_placer *p, const struct place_plan *plan)
{
    return place_units(p, plan);
}

/* ---- the notebook's: the job reserves an empty meta-block and stays in it -- */

/* True if all servers of the box are free. */
static bool
is_empty(const struct place_placer *p)
{
    const struct place_ramp *ramp = place_ramp_of(p);
    for (uint32_t c = 0; c < ramp->limit[0]; c++)
        for (uint32_t r = 0; r < ramp->limit[1]; r++)
            for (uint32_t s = 0; s < ramp->limit[2]; s++)
                if (!place_bit(p->vacancy, place_ramp_server(ramp, c, r, s)))
                    return false;
    return true;
}

/* Makes the first empty meta-block the box of the job. It may wrap around the cluster. */
static bool
find_meta_block(struct place_placer *p)
{
    struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *n = ramp->shape;
    for (int d = 0; d < 3; d++) {
        ramp->limit[d] = ramp->within[d] = ramp->meta[d];
        if (ramp->limit[d] > n[d])
            return false;
    }
    for (uint32_t o = 0; o < p->nservers; o++) {
        ramp->origin[0] = o / n[2] / n[1];
        ramp->origin[1] = o / n[2] % n[1];
        ramp->origin[2] = o % n[2];
        if (is_empty(p))
            return true;
    }
    return false;
}

/* GreedyBlockAllocator: the job holds the whole meta-block, also servers it does not
 * use. */
static enum place_outcome
block(struct place_placer *p, const struct place_plan *plan)
{
    struct place_ramp *ramp = place_ramp_of(p);
    enum place_outcome outcome;
    ramp->notebook = p->multiples = true;
    if (!find_meta_block(p))
        return PLACE_NO_BLOCK;
    outcome = place_units(p, plan);
    for (uint32_t c = 0; outcome == PLACE_PLACED && c < ramp->limit[0]; c++)
        for (uint32_t r = 0; r < ramp->limit[1]; r++)
            for (uint32_t s = 0; s < ramp->limit[2]; s++)
                place_hold(p, place_ramp_server(ramp, c, r, s));
    return outcome;
}

/* ---- as few communication groups as possible, then as few racks ----------- */

/* Tries a box of limit[0] groups and limit[1] racks at all positions, without wrapping
 * around, until the plan has fitted `nth` times, from the first position on, or from the
 * last one back. If it fits at fewer, it goes to the last one tried at which it fits. */
static enum place_outcome
try_windows(struct place_placer *p, const struct place_plan *plan, int nth, bool back)
{
    struct place_ramp *ramp = place_ramp_of(p);
    uint32_t groups = ramp->shape[0] - ramp->limit[0] + 1;
    uint32_t racks = ramp->shape[1] - ramp->limit[1] + 1;
    uint32_t last[3] = {0, 0, 0};
    enum place_outcome outcome = PLACE_NO_BLOCK;
    int fits = 0;
    for (uint32_t c = 0; c < groups; c++)
        for (uint32_t r = 0; r < racks; r++) {
            ramp->origin[0] = back ? groups - 1 - c : c;
            ramp->origin[1] = back ? racks - 1 - r : r;
            if ((outcome = place_units(p, plan)) != PLACE_PLACED)
                continue;
            memcpy(last, ramp->origin, sizeof last);
            if (++fits == nth)
                return PLACE_PLACED;
        }
    if (fits == 0)
        return outcome;
    memcpy(ramp->origin, last, sizeof last);
    return place_units(p, plan);
}

/* Places the plan in the box that fit_windows() would find. */
static enum place_outcome
take_fit(struct place_placer *p, const struct place_plan *plan,
         const struct place_ramp_fits *fits, uint32_t nth, bool back)
{
    struct place_ramp *ramp = place_ramp_of(p);
    memset(ramp->origin, 0, sizeof ramp->origin);
    memcpy(ramp->limit, ramp->shape, sizeof ramp->limit);
    if (fits->n > 0) { /* else a unit must say that it has no place */
        uint32_t rack = fits->rack[(back || nth > fits->n ? fits->n : nth) - 1];
        ramp->origin[0] = rack / ramp->shape[1];
        ramp->origin[1] = rack % ramp->shape[1];
        memcpy(ramp->limit, fits->limit, sizeof fits->limit);
    }
    return place_units(p, plan);
}

/* Widens the box by one group at a time until the plan fits with all racks, then by one
 * rack at a time. Each step places the whole plan again at every position of the box. */
static enum place_outcome
fit_windows(struct place_placer *p, const struct place_plan *plan, int nth, bool back)
{
    struct place_ramp *ramp = place_ramp_of(p);
    const struct place_ramp_fits *fits = place_ramp_fits(p, plan);
    const uint32_t *n = ramp->shape;
    enum place_outcome outcome;
    if (fits)
        return take_fit(p, plan, fits, (uint32_t)nth, back);
    ramp->limit[0] = 1;
    ramp->limit[1] = n[1];
    while ((outcome = try_windows(p, plan, 1, back)) != PLACE_PLACED &&
           ramp->limit[0] < n[0])
        ramp->limit[0]++;
    if (outcome != PLACE_PLACED)
        return outcome;
    ramp->limit[1] = 1; /* the loop ends: with all racks the plan fits */
    while (try_windows(p, plan, nth, back) != PLACE_PLACED)
        ramp->limit[1]++;
    return PLACE_PLACED;
}

static enum place_outcome
compact(struct place_placer *p, const struct place_plan *plan)
{
    return fit_windows(p, plan, 1, false);
}

static enum place_outcome
compact_2(struct place_placer *p, const struct place_plan *plan)
{
    return fit_windows(p, plan, 2, false);
}

static enum place_outcome
compact_3(struct place_placer *p, const struct place_plan *plan)
{
    return fit_windows(p, plan, 3, false);
}

static enum place_outcome
compact_back(struct place_placer *p, const struct place_plan *plan)
{
    return fit_windows(p, plan, 1, true);
}

#define HEURISTIC                                                           \
    .network = "RAMP", .suits = suits, .index_new = place_ramp_index_new,   \
    .index_set = place_ramp_index_set, .index_free = place_ramp_index_free, \
    .open = open, .close = release, .begin = begin, .find = place_ramp_find

const struct place_kind place_ramp_first_fit = {HEURISTIC, .name = "first-fit",
                                                .place = first_fit, .whole = true};
const struct place_kind place_ramp_block = {
    HEURISTIC, .name = "block", .argument = "CxRxS", .place = block, .alike = true};
const struct place_kind place_ramp_compact = {HEURISTIC, .name = "compact",
                                              .place = compact, .whole = true};
const struct place_kind place_ramp_compact_2 = {HEURISTIC, .name = "compact-2",
                                                .place = compact_2, .whole = true};
const struct place_kind place_ramp_compact_3 = {HEURISTIC, .name = "compact-3",
                                                .place = compact_3, .whole = true};
const struct place_kind place_ramp_compact_back = {HEURISTIC, .name = "compact-back",
                                                   .place = compact_back, .whole = true};
