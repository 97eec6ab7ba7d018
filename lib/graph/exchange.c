/*
 * Which deps of a placed graph are one exchange. The rules are those of the ddls
 * simulator, to the byte: its results are compared with ours. They look only at which ops
 * share a slot, so what is found holds wherever the slots lie.
 *
 * A split graph repeats itself: its units lie on the same slots and send as many bytes.
 * Two slots that exchange as much as they last did make the same exchange again.
 */
#include "rampipe/graph.h"

#include <stdlib.h>

/* One pass over the deps of a placed graph. */
struct pass {
    const struct graph *graph;
    const uint32_t *slot; /* per op */
    enum graph_sync sync;
    struct graph_exchanges *made;
    int32_t *balance; /* per slot of the group: deps it sends minus deps it receives */
    uint32_t *seen;   /* per slot: the last stamp that had it */
    uint32_t stamp;   /* number of the group at hand */
    uint32_t *back;   /* per op: the sync dep from it to the current op; or GRAPH_NONE */
    uint32_t *dep;    /* deps of the current group */
    size_t ndeps, room;
    /* The last exchange of each two slots, as a message at a * nslots + b, of sync deps
     * behind all these; GRAPH_NONE: none. NULL: there are too many slots. */
    uint32_t *last;
    uint32_t nslots;
};

enum { LAST_MAX = 512 }; /* slots for which the last exchanges are kept */

/* ---- exchanges ------------------------------------------------------------ */

/* Adds an exchange whose members are the last ones of member[]. */
static bool
add_exchange(struct pass *p, const struct graph_exchange *e, uint32_t *number,
             struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    if (made->n >= GRAPH_NONE ||
        !rec_grow(&made->exchange, &made->room, made->n + 1, sizeof *made->exchange, err))
        return made->n < GRAPH_NONE ? false : rec_fail_memory(err);
    *number = (uint32_t)made->n;
    made->exchange[made->n++] = *e;
    return true;
}

/* Makes room for n more members. */
static bool
reserve(struct graph_exchanges *made, size_t n, struct rec_error *err)
{
    if (made->nmembers + n >= GRAPH_NONE)
        return rec_fail_memory(err);
    return made->nmembers + n <= made->member_room ||
           rec_grow(&made->member, &made->member_room, made->nmembers + n,
                    sizeof *made->member, err);
}

/* Sets *number to that of an exchange of two slots, with `bytes` that all cross. */
static bool
add_two(struct pass *p, enum graph_exchange_kind kind, uint32_t a, uint32_t b,
        double bytes, uint32_t *number, struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    struct graph_exchange e = {kind, (uint32_t)made->nmembers, 2, bytes, bytes};
    size_t at = ((size_t)(kind != GRAPH_MESSAGE) * p->nslots + a) * p->nslots + b;
    if (p->last && p->last[at] != GRAPH_NONE &&
        made->exchange[p->last[at]].bytes == bytes) {
        *number = p->last[at];
        return true;
    }
    if (!reserve(made, 2, err))
        return false;
    made->member[made->nmembers++] = a;
    made->member[made->nmembers++] = b;
    if (!add_exchange(p, &e, number, err))
        return false;
    if (p->last)
        p->last[at] = *number;
    return true;
}

/* ---- groups of deps ------------------------------------------------------- */

/* Adds a slot to the members of the group at hand, unless it is there. */
static inline void
join(struct pass *p, uint32_t slot)
{
    if (p->seen[slot] == p->stamp)
        return;
    p->seen[slot] = p->stamp;
    p->balance[slot] = 0;
    p->made->member[p->made->nmembers++] = slot;
}

/*
 * The deps that leave (or enter) the parts of a unit: sync deps, or all others. Members
 * of the group are the slots at both ends of its deps, in the order in which they appear.
 * They stand behind those of the exchanges that were added, until the group is added,
 * too.
 */
static bool
collect(struct pass *p, const struct graph_unit *unit, bool leaving, bool sync,
        struct graph_exchange *group, struct rec_error *err)
{
    const struct graph *graph = p->graph;
    const uint32_t *start = leaving ? graph->out_start : graph->in_start;
    const uint32_t *list = leaving ? graph->out : graph->in;
    *group = (struct graph_exchange){.first = (uint32_t)p->made->nmembers};
    p->ndeps = 0;
    p->stamp++;
    for (uint32_t j = 0; j < unit->parts; j++) {
        uint32_t op = graph->member[unit->first + j];
        size_t n = start[op + 1] - start[op];
        if (!rec_grow(&p->dep, &p->room, p->ndeps + n + 1, sizeof *p->dep, err) ||
            !reserve(p->made, n + 1, err))
            return false;
        for (uint32_t i = start[op]; i < start[op + 1]; i++) {
            const struct graph_dep *dep = &graph->dep[list[i]];
            uint32_t from = p->slot[dep->src], to = p->slot[dep->dst];
            if (dep->sync != sync)
                continue;
            p->dep[p->ndeps++] = list[i];
            join(p, from);
            join(p, to);
            p->balance[from]++;
            p->balance[to]--;
            group->bytes += dep->bytes;
            group->flow += from == to ? 0 : dep->bytes;
        }
    }
    group->n = (uint32_t)p->made->nmembers - group->first;
    return true;
}

/* True if each slot sends as many deps of the group as it receives: the published rule
 * for which deps are one collective. */
static bool
is_collective(const struct pass *p, const struct graph_exchange *group)
{
    const uint32_t *member = p->made->member + group->first;
    for (uint32_t i = 0; i < group->n; i++)
        if (p->balance[member[i]] != 0)
            return false;
    return p->ndeps > 0;
}

/* Makes all deps of the group one exchange, or if it is none, forgets its members. */
static bool
add_group(struct pass *p, struct graph_exchange *group, enum graph_exchange_kind kind,
          bool is_one, struct rec_error *err)
{
    uint32_t number;
    group->kind = kind;
    if (!is_one) {
        p->made->nmembers = group->first;
        return true;
    }
    if (!add_exchange(p, group, &number, err))
        return false;
    for (size_t i = 0; i < p->ndeps; i++)
        p->made->of_dep[p->dep[i]] = number;
    p->made->collectives++;
    return true;
}

/* ---- sync deps by pairs --------------------------------------------------- */

/* For each op that sends a sync dep to `op`: sets back[] to that dep, or clears it
 * again. So the dep in the other direction is found without a search. */
static void
mark_back(struct pass *p, uint32_t op, bool set)
{
    const struct graph *graph = p->graph;
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (graph->dep[graph->in[i]].sync)
            p->back[graph->dep[graph->in[i]].src] = set ? graph->in[i] : GRAPH_NONE;
}

/* Each pair of sync deps x -> y, y -> x is an exchange of its own. */
static bool
set_pairs(struct pass *p, uint32_t op, struct rec_error *err)
{
    const struct graph *graph = p->graph;
    bool ok = true;
    mark_back(p, op, true);
    for (uint32_t i = graph->out_start[op]; ok && i < graph->out_start[op + 1]; i++) {
        uint32_t out = graph->out[i];
        const struct graph_dep *dep = &graph->dep[out];
        uint32_t back = p->back[dep->dst];
        double bytes;
        if (!dep->sync || (back != GRAPH_NONE && dep->dst < op))
            continue; /* the pair was done when dep->dst was `op` */
        p->made->collectives++;
        if (p->slot[op] == p->slot[dep->dst])
            continue; /* no flow */
        bytes = dep->bytes + (back == GRAPH_NONE ? 0 : graph->dep[back].bytes);
        ok = add_two(p, GRAPH_SYNC_PAIR, p->slot[op], p->slot[dep->dst], bytes,
                     &p->made->of_dep[out], err);
        if (back != GRAPH_NONE)
            p->made->of_dep[back] = p->made->of_dep[out];
    }
    mark_back(p, op, false);
    return ok;
}

static bool
set_sync(struct pass *p, const struct graph_unit *unit, struct rec_error *err)
{
    struct graph_exchange group;
    if (p->sync == GRAPH_SYNC_BY_UNIT)
        return collect(p, unit, true, true, &group, err) &&
               add_group(p, &group, GRAPH_SYNC_ALL, p->ndeps > 0, err);
    for (uint32_t j = 0; j < unit->parts; j++)
        if (!set_pairs(p, p->graph->member[unit->first + j], err))
            return false;
    return true;
}

/* ---- all deps ------------------------------------------------------------- */

/* The groups of all units that are split: deps that leave a forward unit, deps that enter
 * a backward one, and sync deps. */
static bool
set_groups(struct pass *p, struct rec_error *err)
{
    const struct graph *graph = p->graph;
    struct graph_exchange group;
    for (size_t u = 0; u < graph->nunits; u++) {
        const struct graph_unit *unit = &graph->unit[u];
        bool backward = graph->op[graph->member[unit->first]].pass == GRAPH_BACKWARD;
        if (unit->parts == 1 || (backward && unit->twin == GRAPH_NONE))
            continue;
        if (!collect(p, unit, !backward, false, &group, err) ||
            !add_group(p, &group, GRAPH_COLLECTIVE, is_collective(p, &group), err) ||
            !set_sync(p, unit, err))
            return false;
    }
    return true;
}

/* All other deps are messages. Deps that are no flows have no exchange, also if they are
 * part of a group. */
static bool
set_others(struct pass *p, struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    for (size_t d = 0; d < p->graph->ndeps; d++) {
        const struct graph_dep *dep = &p->graph->dep[d];
        uint32_t from = p->slot[dep->src], to = p->slot[dep->dst];
        if (from == to || dep->bytes == 0) {
            made->of_dep[d] = GRAPH_NONE;
            continue;
        }
        made->flows++;
        made->flow_bytes += dep->bytes;
        if (made->of_dep[d] != GRAPH_NONE)
            continue;
        if (!add_two(p, GRAPH_MESSAGE, from, to, dep->bytes, &made->of_dep[d], err))
            return false;
    }
    return true;
}

bool
graph_exchanges_make(const struct graph *graph, const uint32_t *slot, uint32_t nslots,
                     enum graph_sync sync, struct graph_exchanges *made,
                     struct rec_error *err)
{
    struct pass p = {
        .graph = graph, .slot = slot, .sync = sync, .made = made, .nslots = nslots};
    size_t nlast = nslots <= LAST_MAX ? 2 * (size_t)nslots * nslots : 0;
    bool ok;

    *made = (struct graph_exchanges){0};
    made->of_dep = malloc((graph->ndeps + 1) * sizeof *made->of_dep);
    p.balance = calloc((size_t)nslots + 1, sizeof *p.balance);
    p.seen = calloc((size_t)nslots + 1, sizeof *p.seen);
    p.back = malloc((graph->nops + 1) * sizeof *p.back);
    p.last = nlast ? malloc(nlast * sizeof *p.last) : NULL;
    ok = (made->of_dep && p.balance && p.seen && p.back && (p.last || !nlast)) ||
         rec_fail_memory(err);
    if (ok) {
        memset(made->of_dep, 0xff, graph->ndeps * sizeof *made->of_dep);
        memset(p.back, 0xff, graph->nops * sizeof *p.back);
        if (p.last)
            memset(p.last, 0xff, nlast * sizeof *p.last);
        ok = set_groups(&p, err) && set_others(&p, err);
    }
    free(p.balance);
    free(p.seen);
    free(p.back);
    free(p.last);
    free(p.dep);
    if (!ok)
        graph_exchanges_free(made);
    return ok;
}

void
graph_exchanges_free(struct graph_exchanges *made)
{
    free(made->exchange);
    free(made->member);
    free(made->of_dep);
    *made = (struct graph_exchanges){0};
}
