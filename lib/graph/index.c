/*
 * Closing a graph: finds twins, builds the lists of deps by op and the units, and checks
 * all that a record alone cannot show. All of it takes O(ops + deps). Adjacency is two
 * arrays (compressed sparse rows), which walks read in order.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* An op that a dep names is created before its record comes. If the record does not come,
 * its compute stays NAN. */
static bool
check_ops(const struct graph *graph, struct rec_error *err)
{
    for (size_t i = 0; i < graph->nops; i++)
        if (isnan(graph->op[i].compute))
            return graph_fail(graph, graph->op[i].line, err,
                              "op '%s' is named here, but the graph has no such op",
                              graph->op[i].id);
    return true;
}

/* Joins each op with the op that its pair= names. One of the two records is enough: the
 * other one need not have pair=. */
static bool
join_twins(struct graph *graph, struct rec_error *err)
{
    for (uint32_t i = 0; i < graph->nops; i++) {
        struct graph_op *op = &graph->op[i], *twin;
        if (!op->pair_id)
            continue;
        op->pair = graph_find(graph, rec_str(op->pair_id));
        if (op->pair == GRAPH_NONE)
            return graph_fail(graph, op->line, err,
                              "op '%s' has pair=%s, but the graph has no such op", op->id,
                              op->pair_id);
        twin = &graph->op[op->pair];
        if (op->pair == i || (twin->pair_id && strcmp(twin->pair_id, op->id) != 0))
            return graph_fail(graph, op->line, err,
                              "op '%s' has pair=%s, but that op is not its twin", op->id,
                              op->pair_id);
        if ((op->pass == GRAPH_BACKWARD) == (twin->pass == GRAPH_BACKWARD))
            return graph_fail(
                graph, op->line, err,
                "op '%s' has pair=%s, but exactly one of two twins must be a "
                "backward op",
                op->id, op->pair_id);
        if (twin->pair != GRAPH_NONE && twin->pair != i)
            return graph_fail(graph, op->line, err,
                              "op '%s' has pair=%s, but that op is not its twin: it is "
                              "the twin of '%s'",
                              op->id, op->pair_id, graph->op[twin->pair].id);
        twin->pair = i;
    }
    return true;
}

/* Groups the deps by source or by destination. The deps of op i are list[k] for start[i]
 * <= k < start[i + 1]. This is a counting sort, which keeps the order of deps. While the
 * list is filled, start[i] is the place of the next dep of op i. When it is full,
 * start[i] has the value that belongs to start[i + 1], so all values move up by one.
 * `to`, if it is not NULL, gets the destinations of the deps in the same order. A loop
 * over the list then needs not read the deps, which lie far apart in memory. */
static void
group_deps(const struct graph *graph, bool by_src, uint32_t *start, uint32_t *list,
           uint32_t *to)
{
    memset(start, 0, (graph->nops + 1) * sizeof *start);
    for (size_t d = 0; d < graph->ndeps; d++)
        start[(by_src ? graph->dep[d].src : graph->dep[d].dst) + 1]++;
    for (size_t i = 0; i < graph->nops; i++)
        start[i + 1] += start[i];
    for (size_t d = 0; d < graph->ndeps; d++) {
        const struct graph_dep *dep = &graph->dep[d];
        uint32_t at = start[by_src ? dep->src : dep->dst]++;
        list[at] = (uint32_t)d;
        if (to)
            to[at] = dep->dst | (dep->sync ? GRAPH_SYNC : 0);
    }
    for (size_t i = graph->nops; i > 0; i--)
        start[i] = start[i - 1];
    start[0] = 0;
}

/* seen[dst] is 1 + the last op that was found to have a dep to dst. */
static bool
check_repeats(const struct graph *graph, struct rec_error *err)
{
    uint32_t *seen = calloc(graph->nops + 1, sizeof *seen);
    bool ok = true;
    if (!seen)
        return rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < graph->nops; i++)
        for (uint32_t j = graph->out_start[i]; ok && j < graph->out_start[i + 1]; j++) {
            const struct graph_dep *dep = &graph->dep[graph->out[j]];
            if (seen[dep->dst] == i + 1)
                ok = graph_fail(graph, dep->line, err,
                                "the dep from '%s' to '%s' is there twice",
                                graph->op[i].id, graph->op[dep->dst].id);
            seen[dep->dst] = i + 1;
        }
    free(seen);
    return ok;
}

/* Puts an op into its unit, which the first of its parts to come creates with room for
 * all parts. `names` maps the op that was split to the unit of its parts. */
static bool
add_unit(struct graph *graph, struct rec_map *names, size_t *next, struct graph_op *op,
         struct rec_error *err)
{
    uint32_t u = op->of ? rec_map_get(names, rec_str(op->of)) : REC_NONE;
    if (u == REC_NONE) {
        u = (uint32_t)graph->nunits++;
        graph->unit[u] = (struct graph_unit){
            .first = (uint32_t)*next, .parts = op->parts, .twin = GRAPH_NONE};
        *next += op->parts;
        if (*next > graph->nops)
            return graph_fail(
                graph, op->line, err,
                "op '%s' is part %u of %u, but the graph lacks parts of its ops", op->id,
                op->part, op->parts);
        for (uint32_t j = 0; j < op->parts; j++)
            graph->member[graph->unit[u].first + j] = GRAPH_NONE;
        if (op->of && !rec_map_add(names, rec_str(op->of), u, err))
            return false;
    }
    op->unit = u;
    if (graph->unit[u].parts != op->parts ||
        graph->member[graph->unit[u].first + op->part - 1] != GRAPH_NONE)
        return graph_fail(graph, op->line, err,
                          "op '%s' is part %u/%u of '%s', which does not fit its other "
                          "parts",
                          op->id, op->part, op->parts, op->of);
    graph->member[graph->unit[u].first + op->part - 1] = (uint32_t)(op - graph->op);
    return true;
}

/* Checks that the parts of an op are alike: all of one pass, all with or without a twin,
 * and the twins are the parts of one op. All parts exist: add_unit() has filled nops
 * places with nops ops. */
static bool
check_units(struct graph *graph, const struct rec_map *names, struct rec_error *err)
{
    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i], *first;
        struct graph_unit *unit = &graph->unit[op->unit];
        uint32_t twin;
        if (!op->of && names->used && rec_map_get(names, rec_str(op->id)) != REC_NONE)
            return graph_fail(graph, op->line, err,
                              "op '%s' is whole, but other ops are parts of it", op->id);
        first = &graph->op[graph->member[unit->first]];
        if (op->pass != first->pass)
            return graph_fail(
                graph, op->line, err,
                "'%s' and '%s' are parts of the same op, but of different passes", op->id,
                first->id);
        if ((op->pair == GRAPH_NONE) != (first->pair == GRAPH_NONE))
            return graph_fail(
                graph, op->line, err,
                "'%s' and '%s' are parts of the same op, but only one of them "
                "has a twin",
                op->id, first->id);
        if (op->pair == GRAPH_NONE)
            continue;
        twin = graph->op[op->pair].unit;
        if (unit->twin == GRAPH_NONE)
            unit->twin = twin;
        if (unit->twin != twin || twin == op->unit)
            return graph_fail(
                graph, op->line, err,
                "op '%s' has pair=%s, but its other parts have another twin", op->id,
                graph->op[op->pair].id);
        if (graph->unit[twin].parts != unit->parts)
            return graph_fail(
                graph, op->line, err,
                "op '%s' is one of %u parts, but its twin '%s' is one of %u", op->id,
                unit->parts, graph->op[op->pair].id, graph->unit[twin].parts);
    }
    return true;
}

/* Groups the ops into units: the parts of an op are a unit, and so is an op that was not
 * split. */
static bool
find_units(struct graph *graph, struct rec_error *err)
{
    struct rec_map names = {0};
    size_t next = 0;
    bool ok = true;

    graph->nunits = 0;
    for (size_t i = 0; ok && i < graph->nops; i++)
        ok = add_unit(graph, &names, &next, &graph->op[i], err);
    ok = ok && check_units(graph, &names, err);
    rec_map_free(&names);
    return ok;
}

/* The order itself is not kept: it is wanted only to learn whether there is one. */
static bool
check_cycles(const struct graph *graph, struct rec_error *err)
{
    uint32_t *order = malloc((graph->nops + 1) * sizeof *order);
    bool ok = order ? graph_order(graph, order, err) : rec_fail_memory(err);
    free(order);
    return ok;
}

/* A graph that was not partitioned has no degree=; then the degree is 0. */
static void
read_degree(struct graph *graph)
{
    struct rec_str text;
    uint64_t n;
    graph->degree =
        graph_key(graph, "degree", &text) && rec_parse_uint(text, &n) && n < UINT32_MAX
            ? (uint32_t)n
            : 0;
}

/* The sums are computed once, because they are asked for with each job. */
static void
add_up(struct graph *graph)
{
    graph->sequential = graph->memory = graph->bytes = 0;
    for (size_t i = 0; i < graph->nops; i++) {
        graph->sequential += graph->op[i].compute;
        graph->memory += graph->op[i].memory;
    }
    for (size_t d = 0; d < graph->ndeps; d++) {
        graph->bytes += graph->dep[d].bytes;
        graph->parents[graph->dep[d].dst] += !graph->dep[d].sync;
    }
    for (size_t c = 0; c < graph->ncolls; c++) {
        const struct graph_coll *coll = &graph->coll[c];
        graph->bytes += graph_coll_bytes(coll->kind, coll->bytes, coll->n);
    }
    for (size_t d = 0; d < graph->nafter; d++)
        graph->parents[graph->after[d].dst]++;
}

bool
graph_close(struct graph *graph, struct rec_error *err)
{
    size_t nops, ndeps;

    graph->open = false;
    if (!graph_find_colls(graph, err))
        return false;
    nops = graph->nops;
    ndeps = graph->ndeps;
    if (nops == 0)
        return graph_fail(graph, graph->line, err,
                          "graph '%.60s' has no ops: its op records stand behind its "
                          "graph record, without others between",
                          graph->id);
    if (!check_ops(graph, err) || !join_twins(graph, err) ||
        !graph_find_holds(graph, err))
        return false;
    graph->out_start = calloc(nops + 1, sizeof *graph->out_start);
    graph->in_start = calloc(nops + 1, sizeof *graph->in_start);
    graph->out = calloc(ndeps + 1, sizeof *graph->out);
    graph->in = calloc(ndeps + 1, sizeof *graph->in);
    graph->out_to = calloc(ndeps + 1, sizeof *graph->out_to);
    graph->parents = calloc(nops + 1, sizeof *graph->parents);
    graph->unit = calloc(nops + 1, sizeof *graph->unit);
    graph->member = calloc(nops + 1, sizeof *graph->member);
    if (!graph->out_start || !graph->in_start || !graph->out || !graph->in ||
        !graph->out_to || !graph->parents || !graph->unit || !graph->member)
        return rec_fail_memory(err);
    add_up(graph);
    read_degree(graph);
    group_deps(graph, true, graph->out_start, graph->out, graph->out_to);
    group_deps(graph, false, graph->in_start, graph->in, NULL);
    return check_repeats(graph, err) && find_units(graph, err) &&
           graph_group_colls(graph, err) && graph_find_rows(graph, err) &&
           check_cycles(graph, err) && graph_find_alike(graph, err);
}

/* A parent that Kahn's order has not reached, of an op or a coll that it has not reached
 * either. There is one, because it would be in the order if all its parents were. Coll c
 * has the number nops + c. */
static uint32_t
waiting_parent(const struct graph *graph, const uint32_t *waiting, uint32_t at)
{
    uint32_t nops = (uint32_t)graph->nops, j = 0;
    if (at >= nops) {
        const uint32_t *group = graph->coll_op + graph->coll[at - nops].first;
        while (!waiting[group[j]])
            j++;
        return group[j];
    }
    for (j = graph->in_start[at]; j < graph->in_start[at + 1]; j++) {
        const struct graph_dep *dep = &graph->dep[graph->in[j]];
        if (!dep->sync && waiting[dep->src])
            return dep->src;
    }
    for (j = 0; graph->after[j].dst != at || !waiting[nops + graph->after[j].src];)
        j++;
    return nops + graph->after[j].src;
}

static const char *
name_at(const struct graph *graph, uint32_t at)
{
    return at < graph->nops ? graph->op[at].id : graph->coll[at - graph->nops].id;
}

/* Reports a cycle. It is found by walking from parent to parent, from an op that Kahn's
 * order did not reach, until an op comes again. */
static bool
fail_cycle(const struct graph *graph, const uint32_t *waiting, uint32_t at,
           struct rec_error *err)
{
    char text[400];
    uint32_t *step = calloc(graph->nops + graph->ncolls + 1, sizeof *step), n = 0, first;
    size_t used = 0;

    if (!step)
        return rec_fail_memory(err);
    while (!step[at]) {
        step[at] = ++n;
        at = waiting_parent(graph, waiting, at);
    }
    first = at;
    n = 0;
    do { /* once around the cycle; the message names 12 ops at most */
        if (used < sizeof text && n++ < 12)
            used += (size_t)snprintf(text + used, sizeof text - used, "'%s' waits for ",
                                     name_at(graph, at));
        at = waiting_parent(graph, waiting, at);
    } while (at != first);
    free(step);
    return graph_fail(graph,
                      first < graph->nops ? graph->op[first].line
                                          : graph->coll[first - graph->nops].line,
                      err, "graph '%s' has a cycle: %s%s'%s'", graph->id, text,
                      n > 12 ? "... " : "", name_at(graph, first));
}

/* Op i is in the order: so are the ops behind those of its colls of which it was the last
 * op. Returns the new end of the order. */
static size_t
pass_colls(const struct graph *graph, uint32_t i, uint32_t *waiting, uint32_t *order,
           size_t tail)
{
    for (uint32_t j = graph->coll_of_start[i]; j < graph->coll_of_start[i + 1]; j++) {
        const struct graph_coll *coll = &graph->coll[graph->coll_of[j]];
        if (--waiting[graph->nops + graph->coll_of[j]] > 0)
            continue;
        for (uint32_t d = coll->after; d < coll->after + coll->nafter; d++)
            if (--waiting[graph->after[d].dst] == 0)
                order[tail++] = graph->after[d].dst;
    }
    return tail;
}

/* Sync deps are left out, because the parts of an op exchange them in both directions:
 * they would always be cycles. */
bool
graph_order(const struct graph *graph, uint32_t *order, struct rec_error *err)
{
    uint32_t *waiting = calloc(graph->nops + graph->ncolls + 1, sizeof *waiting);
    size_t head = 0, tail = 0;
    bool ok = true;

    if (!waiting)
        return rec_fail_memory(err);
    memcpy(waiting, graph->parents, graph->nops * sizeof *waiting);
    for (size_t c = 0; c < graph->ncolls; c++)
        waiting[graph->nops + c] = graph->coll[c].n;
    for (uint32_t i = 0; i < graph->nops; i++)
        if (waiting[i] == 0)
            order[tail++] = i;
    for (; head < tail; head++) {
        uint32_t i = order[head];
        for (uint32_t j = graph->out_start[i]; j < graph->out_start[i + 1]; j++) {
            uint32_t to = graph->out_to[j];
            if (!(to & GRAPH_SYNC) && --waiting[to] == 0)
                order[tail++] = to;
        }
        if (graph->ncolls)
            tail = pass_colls(graph, i, waiting, order, tail);
    }
    for (uint32_t i = 0; tail < graph->nops && i < graph->nops; i++)
        if (waiting[i]) {
            ok = fail_cycle(graph, waiting, i, err);
            break;
        }
    free(waiting);
    return ok;
}

double
graph_sequential(const struct graph *graph)
{
    return graph->sequential;
}

double
graph_memory_sum(const struct graph *graph)
{
    return graph->memory;
}

double
graph_memory_held(const struct graph *graph)
{
    double sum = 0;
    for (uint32_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->pair == GRAPH_NONE)
            sum += op->memory;
        else if (i < op->pair)
            sum += fmax(op->memory, graph->op[op->pair].memory);
    }
    return sum;
}

double
graph_dep_bytes(const struct graph *graph)
{
    return graph->bytes;
}
