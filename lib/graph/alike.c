/*
 * What the deps of a split graph have in common, wherever it is placed: the parts of a
 * unit often send as many bytes to the same ops, a part sends as many to all parts of
 * another unit, and sync deps come in pairs. It is found once for each graph, because
 * graph_exchanges_make() needs it for each of its layouts.
 */
#include "private.h"

#include <stdlib.h>

/* True if the deps of two parts, without sync deps, have the same other ends and bytes.
 * Adds the bytes of the second one, and counts them in *deps. */
static bool
add_row(const struct graph *graph, bool leaving, uint32_t first, uint32_t op,
        struct graph_alike *alike)
{
    const uint32_t *start = leaving ? graph->out_start : graph->in_start;
    const uint32_t *list = leaving ? graph->out : graph->in;
    uint32_t a = start[first], end = start[first + 1], deps = 0;
    for (uint32_t b = start[op]; b < start[op + 1]; b++) {
        const struct graph_dep *y = &graph->dep[list[b]], *x;
        if (y->sync)
            continue;
        while (a < end && graph->dep[list[a]].sync)
            a++;
        if (a == end)
            return false;
        x = &graph->dep[list[a++]];
        if ((leaving ? x->dst != y->dst : x->src != y->src) || x->bytes != y->bytes)
            return false;
        alike->bytes += y->bytes;
        deps++;
    }
    while (a < end && graph->dep[list[a]].sync)
        a++;
    alike->deps = deps;
    return a == end;
}

/* Lists what each part of a unit has, if they are alike. */
static bool
add_ends(struct graph *graph, bool leaving, uint32_t first, struct graph_alike *alike,
         struct rec_error *err)
{
    const uint32_t *start = leaving ? graph->out_start : graph->in_start;
    const uint32_t *list = leaving ? graph->out : graph->in;
    alike->first = (uint32_t)graph->nends;
    if (!alike->is)
        return true;
    if (!rec_grow(&graph->end, &graph->end_room, graph->nends + alike->deps,
                  sizeof *graph->end, err))
        return false;
    for (uint32_t i = start[first]; i < start[first + 1]; i++) {
        const struct graph_dep *dep = &graph->dep[list[i]];
        if (!dep->sync)
            graph->end[graph->nends++] =
                (struct graph_end){leaving ? dep->dst : dep->src, dep->bytes};
    }
    return true;
}

static bool
find(struct graph *graph, const struct graph_unit *unit, bool leaving,
     struct graph_alike *alike, struct rec_error *err)
{
    const uint32_t *part = graph->member + unit->first;
    *alike = (struct graph_alike){.is = unit->parts > 1};
    for (uint32_t j = 0; alike->is && j < unit->parts; j++)
        alike->is = add_row(graph, leaving, part[0], part[j], alike);
    return add_ends(graph, leaving, part[0], alike, err);
}

/* For each op that sends a sync dep to `op`: sets sent[] to that dep, or clears it
 * again. So the dep in the other direction is found without a search. */
static void
mark(const struct graph *graph, uint32_t *sent, uint32_t op, bool set)
{
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (graph->dep[graph->in[i]].sync)
            sent[graph->dep[graph->in[i]].src] = set ? graph->in[i] : GRAPH_NONE;
}

static bool
find_pairs(struct graph *graph, size_t nsync, struct rec_error *err)
{
    uint32_t *sent = malloc((graph->nops + 1) * sizeof *sent), n = 0;
    graph->pair = malloc((nsync + 1) * sizeof *graph->pair);
    graph->pair_start = malloc((graph->nops + 1) * sizeof *graph->pair_start);
    if (!sent || !graph->pair || !graph->pair_start) {
        free(sent);
        return rec_fail_memory(err);
    }
    memset(sent, 0xff, graph->nops * sizeof *sent);
    for (uint32_t op = 0; op < graph->nops; op++) {
        graph->pair_start[op] = n;
        mark(graph, sent, op, true);
        for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
            uint32_t to = graph->out_to[i] & ~GRAPH_SYNC, dep = graph->out[i];
            bool first = sent[to] == GRAPH_NONE || op < to;
            if (graph->out_to[i] & GRAPH_SYNC && first)
                graph->pair[n++] = (struct graph_pair){
                    to, dep, sent[to],
                    graph->dep[dep].bytes +
                        (sent[to] == GRAPH_NONE ? 0 : graph->dep[sent[to]].bytes)};
        }
        mark(graph, sent, op, false);
    }
    graph->pair_start[graph->nops] = n;
    free(sent);
    return true;
}

/* True if dep d continues the row of the one before it. */
static inline bool
is_in_row(const struct graph *graph, size_t d)
{
    const struct graph_dep *x = &graph->dep[d - 1], *y = &graph->dep[d];
    return y->src == x->src && y->dst == x->dst + 1 && y->bytes == x->bytes &&
           y->sync == x->sync && graph->op[y->dst].unit == graph->op[x->dst].unit;
}

/* The deps of an op are in the order of their records in graph->out, so rows stay whole
 * there. */
bool
graph_find_rows(struct graph *graph, struct rec_error *err)
{
    uint32_t *at = malloc((graph->ndeps + 1) * sizeof *at); /* per dep: its row */
    size_t n = 0;
    for (size_t d = 0; d < graph->ndeps; d++)
        n += d == 0 || !is_in_row(graph, d);
    graph->row = malloc((n + 1) * sizeof *graph->row);
    graph->row_start = malloc((graph->nops + 1) * sizeof *graph->row_start);
    graph->row_order = malloc((n + 1) * sizeof *graph->row_order);
    if (!at || !graph->row || !graph->row_start || !graph->row_order) {
        free(at);
        return rec_fail_memory(err);
    }
    for (uint32_t i = 0; i < graph->nops; i++) {
        graph->row_start[i] = (uint32_t)graph->nrows;
        for (uint32_t j = graph->out_start[i]; j < graph->out_start[i + 1]; j++) {
            uint32_t d = graph->out[j];
            if (j == graph->out_start[i] || d != graph->out[j - 1] + 1 ||
                !is_in_row(graph, d))
                graph->row[graph->nrows++] =
                    (struct graph_row){graph->dep[d].bytes, d, 0, i, graph->out_to[j]};
            graph->row[graph->nrows - 1].n++;
            at[d] = (uint32_t)graph->nrows - 1;
        }
    }
    graph->row_start[graph->nops] = (uint32_t)graph->nrows;
    n = 0;
    for (size_t d = 0; d < graph->ndeps; d += graph->row[at[d]].n)
        graph->row_order[n++] = at[d];
    free(at);
    return true;
}

bool
graph_find_alike(struct graph *graph, struct rec_error *err)
{
    size_t nsync = 0;
    for (size_t u = 0; u < graph->nunits; u++) {
        struct graph_unit *unit = &graph->unit[u];
        bool backward = graph->op[graph->member[unit->first]].pass == GRAPH_BACKWARD;
        if ((!backward && !find(graph, unit, true, &unit->out, err)) ||
            (backward && unit->twin != GRAPH_NONE &&
             !find(graph, unit, false, &unit->in, err)))
            return false;
    }
    for (size_t d = 0; d < graph->ndeps; d++)
        nsync += graph->dep[d].sync;
    return nsync == 0 || find_pairs(graph, nsync, err);
}
