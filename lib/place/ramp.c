/*
 * Heuristics: where the parts of a job go. A heuristic sets the box in which the job may
 * lie (origin, limit and within of struct place_placer), and calls place_units(). A
 * new one is a function and a row of place_kinds.
 */
#include "private.h"

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
    for (uint32_t c = 0; c < p->limit[0]; c++)
        for (uint32_t r = 0; r < p->limit[1]; r++)
            for (uint32_t s = 0; s < p->limit[2]; s++)
                if (!place_is_free(p->vacancy, place_ramp_server(p, c, r, s)))
                    return false;
    return true;
}

/* Makes the first empty meta-block the box of the job. It may wrap around the cluster. */
static bool
find_meta_block(struct place_placer *p)
{
    const uint32_t *n = place_ramp_shape(p);
    for (int d = 0; d < 3; d++) {
        p->limit[d] = p->within[d] = p->options.meta[d];
        if (p->limit[d] > n[d])
            return false;
    }
    for (uint32_t o = 0; o < p->nservers; o++) {
        p->origin[0] = o / n[2] / n[1];
        p->origin[1] = o / n[2] % n[1];
        p->origin[2] = o % n[2];
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
    enum place_outcome outcome;
    p->notebook = true;
    if (!find_meta_block(p))
        return PLACE_NO_BLOCK;
    outcome = place_units(p, plan);
    for (uint32_t c = 0; outcome == PLACE_PLACED && c < p->limit[0]; c++)
        for (uint32_t r = 0; r < p->limit[1]; r++)
            for (uint32_t s = 0; s < p->limit[2]; s++)
                place_hold(p, place_ramp_server(p, c, r, s));
    return outcome;
}

/* ---- as few communication groups as possible, then as few racks ----------- */

/* Tries a box of limit[0] groups and limit[1] racks at all positions, without wrapping
 * around, until the plan fits. */
static enum place_outcome
try_windows(struct place_placer *p, const struct place_plan *plan)
{
    const uint32_t *n = place_ramp_shape(p);
    enum place_outcome outcome = PLACE_NO_BLOCK;
    for (uint32_t c = 0; outcome != PLACE_PLACED && c + p->limit[0] <= n[0]; c++)
        for (uint32_t r = 0; outcome != PLACE_PLACED && r + p->limit[1] <= n[1]; r++) {
            p->origin[0] = c;
            p->origin[1] = r;
            outcome = place_units(p, plan);
        }
    return outcome;
}

/* Widens the box by one group at a time until the plan fits with all racks, then by one
 * rack at a time. Each step places the whole plan again at every position of the box. */
static enum place_outcome
compact(struct place_placer *p, const struct place_plan *plan)
{
    const uint32_t *n = place_ramp_shape(p);
    enum place_outcome outcome;
    p->limit[0] = 1;
    while ((outcome = try_windows(p, plan)) != PLACE_PLACED && p->limit[0] < n[0])
        p->limit[0]++;
    if (outcome != PLACE_PLACED)
        return outcome;
    p->limit[1] = 1; /* the loop ends: with all racks the plan fits */
    while (try_windows(p, plan) != PLACE_PLACED)
        p->limit[1]++;
    return PLACE_PLACED;
}

const struct place_kind place_kinds[] = {
    {.name = "first-fit", .place = first_fit, .whole = true},
    {.name = "block", .place = block, .alike = true},
    {.name = "compact", .place = compact},
    {.name = NULL}};
