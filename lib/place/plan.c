/*
 * Plans: the order in which the units of a graph are placed, and the parents of each. The
 * order is Kahn's (A. B. Kahn, "Topological sorting of large networks", 1962) with a
 * first in first out queue, as in the published simulator: which block a unit gets
 * depends on it, so another order would give other results.
 */
#include "rampipe/place.h"

#include <math.h>
#include <stdlib.h>

/* True if a unit is a step of the plan: a backward unit with a twin goes where that
 * goes. */
static bool
is_placed(const struct graph *graph, uint32_t unit)
{
    const struct graph_op *op = &graph->op[graph->member[graph->unit[unit].first]];
    return op->pass != GRAPH_BACKWARD || graph->unit[unit].twin == GRAPH_NONE;
}

struct planner {
    const struct graph *graph;
    uint32_t *seen;    /* per unit: 1 + the unit whose neighbours it was last put among */
    uint32_t *waiting; /* per unit: parents not yet ordered */
    uint32_t *order;   /* units */
    uint32_t *place;   /* per unit: its position in the order */
};

/* Lists the distinct units that a unit depends on (`before`), or that depend on it, in
 * order of deps; without sync deps. Returns their number. */
static uint32_t
neighbours(struct planner *p, uint32_t unit, bool before, uint32_t *list)
{
    const struct graph *graph = p->graph;
    const uint32_t *start = before ? graph->in_start : graph->out_start;
    const uint32_t *deps = before ? graph->in : graph->out;
    uint32_t n = 0;

    for (uint32_t j = 0; j < graph->unit[unit].parts; j++) {
        uint32_t op = graph->member[graph->unit[unit].first + j];
        for (uint32_t i = start[op]; i < start[op + 1]; i++) {
            const struct graph_dep *dep = &graph->dep[deps[i]];
            uint32_t other = graph->op[before ? dep->src : dep->dst].unit;
            if (dep->sync || other == unit || p->seen[other] == unit + 1 ||
                !is_placed(graph, other))
                continue;
            p->seen[other] = unit + 1;
            list[n++] = other;
        }
    }
    return n;
}

/* Kahn's algorithm over the units that are placed. *nparents is the sum over all of them.
 * False: they have a cycle. */
static bool
order_units(struct planner *p, uint32_t *list, uint32_t *nparents, uint32_t *nsteps)
{
    uint32_t head = 0, tail = 0, placed = 0, n;

    *nparents = 0;
    for (uint32_t u = 0; u < p->graph->nunits; u++) {
        if (!is_placed(p->graph, u))
            continue;
        placed++;
        p->waiting[u] = neighbours(p, u, true, list);
        *nparents += p->waiting[u];
        if (p->waiting[u] == 0)
            p->order[tail++] = u;
    }
    memset(p->seen, 0, p->graph->nunits * sizeof *p->seen);
    for (; head < tail; head++) {
        p->place[p->order[head]] = head;
        n = neighbours(p, p->order[head], false, list);
        for (uint32_t i = 0; i < n; i++)
            if (--p->waiting[list[i]] == 0)
                p->order[tail++] = list[i];
    }
    *nsteps = tail;
    return tail == placed;
}

double
place_part_memory(const struct graph *graph, uint32_t unit)
{
    double most = 0;
    for (uint32_t j = 0; j < graph->unit[unit].parts; j++) {
        uint32_t i = graph->member[graph->unit[unit].first + j];
        const struct graph_op *op = &graph->op[i];
        double need = op->memory, hold = graph_op_hold(graph, i);
        if (op->pair != GRAPH_NONE) {
            need = fmax(need, graph->op[op->pair].memory);
            hold += graph_op_hold(graph, op->pair);
        }
        most = fmax(most, need + hold);
    }
    return most;
}

static void
fill_steps(struct planner *p, struct place_plan *plan)
{
    uint32_t next = 0;
    memset(p->seen, 0, p->graph->nunits * sizeof *p->seen);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        struct place_step *step = &plan->step[i];
        step->unit = p->order[i];
        step->memory = place_part_memory(p->graph, step->unit);
        step->first_parent = next;
        step->nparents = neighbours(p, step->unit, true, plan->parent + next);
        for (uint32_t j = 0; j < step->nparents; j++)
            plan->parent[next + j] = p->place[plan->parent[next + j]];
        next += step->nparents;
    }
}

/* Finds the first step with each number of parts, and the sums. The time is the number of
 * steps times that of kinds, which are few. */
static void
find_kinds(struct place_plan *plan)
{
    const struct graph_unit *unit = plan->graph->unit;
    plan->largest = 1;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        uint32_t parts = unit[plan->step[i].unit].parts, k = 0;
        while (k < plan->nkinds && unit[plan->step[plan->kind[k]].unit].parts != parts)
            k++;
        if (k == plan->nkinds)
            plan->kind[plan->nkinds++] = i;
        plan->largest = parts > plan->largest ? parts : plan->largest;
        plan->memory += plan->step[i].memory;
    }
}

/* Part i of an op and part i of its twin are twins: both are at index i of their
 * units. */
static void
fill_twins(const struct graph *graph, uint32_t *twin)
{
    for (uint32_t i = 0; i < graph->nops; i++) {
        uint32_t pair = graph->op[graph->member[i]].pair;
        twin[i] = i;
        if (pair != GRAPH_NONE)
            twin[i] = graph->unit[graph->op[pair].unit].first + graph->op[pair].part - 1;
    }
}

/* Units of as many parts that lie on one block have part i on the same server. */
static bool
are_across(const struct graph *graph)
{
    for (size_t i = 0; i < graph->nholds; i++) {
        const struct graph_hold *hold = &graph->hold[i];
        const struct graph_op *op = &graph->op[hold->op], *other;
        if (hold->release == GRAPH_NONE)
            continue;
        other = &graph->op[hold->release];
        if (op->part != other->part || op->parts != other->parts)
            return true;
    }
    return false;
}

static bool
are_tasks(const struct graph *graph)
{
    for (size_t i = 0; i < graph->nops; i++)
        if (graph->op[i].pass != GRAPH_TASK || graph->op[i].parts != 1)
            return false;
    return graph->nops > 0;
}

bool
place_plan_make(const struct graph *graph, struct place_plan *plan, struct rec_error *err)
{
    size_t n = graph->nunits + 1;
    struct planner p = {graph, calloc(n, sizeof(uint32_t)), calloc(n, sizeof(uint32_t)),
                        calloc(n, sizeof(uint32_t)), calloc(n, sizeof(uint32_t))};
    uint32_t *list = calloc(n, sizeof *list), nparents = 0;
    bool ok = p.seen && p.waiting && p.order && p.place && list;

    *plan = (struct place_plan){.graph = graph};
    if (!ok)
        rec_fail_memory(err);
    else if (!order_units(&p, list, &nparents, &plan->nsteps)) {
        /* If the ops have a cycle, graph_order() names it; else only the units have
         * one. */
        uint32_t *order = calloc(graph->nops + 1, sizeof *order);
        ok = order ? graph_order(graph, order, err) : rec_fail_memory(err);
        free(order);
        if (ok)
            ok = rec_fail(err, REC_DATA,
                          "graph '%s': ops depend on each other's parts in a cycle",
                          graph->id);
    } else {
        plan->step = calloc(plan->nsteps + 1, sizeof *plan->step);
        plan->parent = calloc((size_t)nparents + 1, sizeof *plan->parent);
        plan->twin = calloc(graph->nops + 1, sizeof *plan->twin);
        plan->kind = calloc(plan->nsteps + 1, sizeof *plan->kind);
        ok = plan->step && plan->parent && plan->twin && plan->kind;
        if (ok) {
            plan->tasks = are_tasks(graph);
            plan->across = are_across(graph);
            fill_steps(&p, plan);
            find_kinds(plan);
            fill_twins(graph, plan->twin);
        } else
            rec_fail_memory(err);
    }
    free(p.seen);
    free(p.waiting);
    free(p.order);
    free(p.place);
    free(list);
    if (!ok)
        place_plan_free(plan);
    return ok;
}

void
place_plan_free(struct place_plan *plan)
{
    free(plan->step);
    free(plan->parent);
    free(plan->twin);
    free(plan->kind);
    *plan = (struct place_plan){0};
}
