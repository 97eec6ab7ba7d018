/*
 * Placing the units of a plan, in any way: a unit goes to the servers of a parent if that
 * is possible, else to those that the kind finds for it.
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

const char *
place_outcome_name(enum place_outcome outcome)
{
    static const char *const names[] = {"placed", "no_servers", "no_block", "no_memory",
                                        "hold_and_release"};
    return names[outcome];
}

struct place_placer *
place_placer_new(const struct place_options *options, struct rec_error *err)
{
    struct place_placer *p = calloc(1, sizeof *p);
    if (!p) {
        rec_fail_memory(err);
        return NULL;
    }
    p->options = *options;
    p->nservers = net_servers(options->net);
    p->memory = net_memory(options->net);
    p->used = calloc(p->nservers, sizeof *p->used);
    p->held = calloc(p->nservers, sizeof *p->held);
    p->is_held = calloc(p->nservers, sizeof *p->is_held);
    if (!p->used || !p->held || !p->is_held)
        rec_fail_memory(err);
    else if ((p->own = options->kind->open(options, err)))
        return p;
    place_placer_free(p);
    return NULL;
}

void
place_placer_free(struct place_placer *p)
{
    if (!p)
        return;
    if (p->own)
        p->options.kind->close(p->own);
    free(p->used);
    free(p->held);
    free(p->is_held);
    free(p->server);
    free(p->block);
    free(p->order);
    free(p);
}

void
place_hold(struct place_placer *p, uint32_t server)
{
    if (p->is_held[server])
        return;
    p->is_held[server] = true;
    p->held[p->nheld++] = server;
}

/* ---- units --------------------------------------------------------------- */

/* Puts the parts of a step on the servers of one of its parents, if the rule allows it
 * and all servers have room; else what was placed is taken back. */
static bool
place_with_parent(struct place_placer *p, const struct place_plan *plan,
                  const struct place_step *step, uint32_t parent)
{
    const struct graph_unit *unit = &plan->graph->unit[step->unit];
    const struct graph_unit *above = &plan->graph->unit[plan->step[parent].unit];
    const uint32_t *list = p->server + above->first;
    uint32_t placed;

    if (p->multiples ? unit->parts % above->parts != 0 : unit->parts != above->parts)
        return false;
    for (placed = 0; placed < unit->parts; placed++) {
        uint32_t server = list[placed % above->parts];
        if (!place_has_room(p, server, step->memory))
            break;
        p->used[server] += step->memory;
        p->server[unit->first + placed] = server;
    }
    if (placed == unit->parts)
        return true;
    while (placed-- > 0)
        p->used[list[placed % above->parts]] -= step->memory;
    return false;
}

bool
place_take(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    double left = INFINITY;
    bool room = true;
    for (uint32_t i = 0; i < unit->parts; i++) {
        room = room && place_has_room(p, p->block[i], memory);
        left = fmin(left, p->memory - p->used[p->block[i]]);
    }
    if (!room) {
        p->saw_block = true;
        p->most = fmax(p->most, left);
        return false;
    }
    for (uint32_t i = 0; i < unit->parts; i++) {
        p->used[p->block[i]] += memory;
        p->server[unit->first + i] = p->block[i];
        place_hold(p, p->block[i]);
    }
    return true;
}

static int
by_use(const void *a, const void *b, void *context)
{
    const double *used = context;
    double x = used[*(const uint32_t *)a], y = used[*(const uint32_t *)b];
    return (x > y) - (x < y);
}

void
place_note_room(struct place_placer *p, uint32_t k, uint32_t *list)
{
    uint32_t empty = p->vacancy->n - p->nheld;
    double left = p->memory;
    if (k > empty) {
        memcpy(list, p->held, p->nheld * sizeof *list);
        qsort_r(list, p->nheld, sizeof *list, by_use, p->used);
        left -= p->used[list[k - empty - 1]];
    }
    p->saw_block = true;
    p->most = left > p->most ? left : p->most;
}

/* Only the servers that the last job held are cleared: a cluster may have millions. */
static void
forget_job(struct place_placer *p)
{
    for (uint32_t i = 0; i < p->nheld; i++) {
        p->used[p->held[i]] = 0;
        p->is_held[p->held[i]] = false;
    }
    p->nheld = p->nused = 0;
    p->jobs++;
}

/* place_units() of a light plan. */
static enum place_outcome
place_kinds_of(struct place_placer *p, const struct place_plan *plan)
{
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        p->failed = plan->step[plan->kind[k]].unit;
        if (!p->options.kind->find(p, &plan->graph->unit[p->failed], 0))
            return PLACE_NO_BLOCK;
    }
    p->nused = p->nheld;
    return PLACE_PLACED;
}

enum place_outcome
place_units(struct place_placer *p, const struct place_plan *plan)
{
    const struct place_kind *kind = p->options.kind;
    forget_job(p);
    if (p->light)
        return place_kinds_of(p, plan);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct place_step *step = &plan->step[i];
        bool placed = false;
        p->saw_block = false;
        p->failed = step->unit;
        for (uint32_t j = 0; !placed && j < step->nparents; j++)
            placed =
                place_with_parent(p, plan, step, plan->parent[step->first_parent + j]);
        if (!placed && !kind->find(p, &plan->graph->unit[step->unit], step->memory))
            return p->saw_block ? PLACE_NO_MEMORY : PLACE_NO_BLOCK;
    }
    p->nused = p->nheld;
    return PLACE_PLACED;
}

/* ---- the whole plan ------------------------------------------------------ */

/* place_placement.left: looks at all servers for the failed unit again. It asks for an
 * infinite amount of memory, so that all of them are refused and noted in p->most. */
static double
find_room(struct place_placer *p, const struct place_plan *plan)
{
    if (plan->tasks)
        return p->most;
    p->jobs++; /* what was found for this job is void */
    p->most = 0;
    return p->options.kind->find(p, &plan->graph->unit[p->failed], INFINITY) ? 0
                                                                             : p->most;
}

/* Puts the twins of the placed ops on the same servers. */
static void
place_twins(struct place_placer *p, const struct place_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &plan->graph->unit[plan->step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++)
            p->server[plan->twin[j]] = p->server[j];
    }
}

static uint32_t
server_of(const struct place_placer *p, const struct graph *graph, uint32_t op)
{
    const struct graph_op *o = &graph->op[op];
    return p->server[graph->unit[o->unit].first + o->part - 1];
}

/* Is what an op holds released on another server? A twin shares the server of its op, any
 * other op that releases may have gone elsewhere. p->failed is then the unit of that. */
static bool
lie_apart(struct place_placer *p, const struct graph *graph)
{
    for (size_t i = 0; i < graph->nholds; i++) {
        const struct graph_hold *hold = &graph->hold[i];
        if (hold->release != GRAPH_NONE &&
            server_of(p, graph, hold->op) != server_of(p, graph, hold->release)) {
            p->failed = graph->op[hold->release].unit;
            return true;
        }
    }
    return false;
}

/* Makes room for a plan. */
static bool
start_job(struct place_placer *p, const struct place_plan *plan,
          const struct place_vacancy *vacancy, struct rec_error *err)
{
    if (!rec_grow(&p->server, &p->server_room, plan->graph->nops, sizeof *p->server,
                  err) ||
        !rec_grow(&p->block, &p->block_room, plan->largest, sizeof *p->block, err))
        return false;
    forget_job(p);
    p->vacancy = vacancy;
    p->multiples = false;
    p->light = false;
    p->failed = plan->nsteps ? plan->step[0].unit : 0;
    return true;
}

/* Whether there are servers at all; if so, the kind gets ready for the units of a job. */
static enum place_outcome
begin_units(struct place_placer *p, const struct place_plan *plan)
{
    return p->vacancy->n ? p->options.kind->begin(p, plan) : PLACE_NO_SERVERS;
}

bool
place_on(struct place_placer *p, const struct place_plan *plan,
         const struct place_vacancy *vacancy, struct place_placement *placement,
         struct rec_error *err)
{
    enum place_outcome outcome = PLACE_NO_SERVERS;
    if (!start_job(p, plan, vacancy, err))
        return false;
    if (vacancy->n > 0 && plan->tasks && !place_tasks(p, plan, &outcome, err))
        return false;
    if (!plan->tasks && (outcome = begin_units(p, plan)) == PLACE_PLACED)
        outcome = p->options.kind->place(p, plan);
    if (outcome == PLACE_PLACED) {
        place_twins(p, plan);
        if (lie_apart(p, plan->graph))
            outcome = PLACE_APART;
    }
    *placement =
        (struct place_placement){outcome,
                                 p->failed,
                                 outcome == PLACE_NO_MEMORY ? find_room(p, plan) : 0,
                                 p->server,
                                 p->held,
                                 p->nheld,
                                 p->nused,
                                 plan->tasks ? p->order : NULL};
    return true;
}

bool
place_is_light(const struct place_placer *p, const struct place_plan *plan)
{
    return p->options.kind->whole && !plan->tasks && !plan->across &&
           plan->memory <= p->memory;
}

bool
place_light(struct place_placer *p, const struct place_plan *plan,
            const struct place_vacancy *vacancy, struct place_placement *placement,
            struct rec_error *err)
{
    enum place_outcome outcome;
    if (!start_job(p, plan, vacancy, err))
        return false;
    p->light = true;
    if ((outcome = begin_units(p, plan)) == PLACE_PLACED)
        outcome = p->options.kind->whole ? p->options.kind->place(p, plan)
                                         : place_units(p, plan);
    *placement = (struct place_placement){.outcome = outcome,
                                          .failed = p->failed,
                                          .server = p->server,
                                          .held = p->held,
                                          .nheld = p->nheld,
                                          .nused = p->nheld};
    return true;
}
