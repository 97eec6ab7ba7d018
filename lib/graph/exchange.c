/*
 * Which deps of a placed graph are one exchange. The rules are those of the ddls
 * simulator, to the byte: its results are compared with ours. They look only at which ops
 * share a slot, so what is found holds wherever the slots lie.
 *
 * A split graph repeats itself: its units lie on the same slots and send as many bytes.
 * Equal exchanges get one number, so that a network works out each time once. They are
 * found by a hash table whose entries are numbers of exchanges.
 */
#include "rampipe/graph.h"

#include <stdlib.h>

/* One pass over the deps of a placed graph. */
struct pass {
    const struct graph *graph;
    const uint32_t *slot; /* per op */
    enum graph_sync sync;
    struct graph_exchanges *made;
    int32_t *balance; /* per slot: deps it sends minus deps it receives; 0 between uses */
    uint32_t *seen;   /* per slot: the last stamp that had it */
    uint32_t stamp;   /* number of the group at hand */
    uint32_t *back;   /* per op: the sync dep from it to the current op; or GRAPH_NONE */
    uint32_t *dep;    /* deps of the current group */
    size_t ndeps, room;
    uint32_t *table; /* exchanges by their hash; GRAPH_NONE: free */
    size_t size;     /* of the table: a power of two */
    /* The last exchange of each two slots, as a message at a * nslots + b, of sync deps
     * behind all these; GRAPH_NONE: none. NULL: there are too many slots. */
    uint32_t *last;
    uint32_t nslots;
    uint64_t seed; /* of the hashes */
};

enum { LAST_MAX = 512 }; /* slots for which the last exchanges are kept */

/* ---- equal exchanges ------------------------------------------------------ */

/* The mixing step of wyhash. */
static inline uint64_t
mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Seeded, so that nobody can choose sizes whose hashes are equal. rec_hash() of the whole
 * would be four times as long, and most exchanges have two members. */
static uint64_t
hash_of(const struct pass *p, const struct graph_exchange *e)
{
    const uint32_t *member = p->made->member + e->first;
    uint64_t bits, hash;
    memcpy(&bits, &e->bytes, sizeof bits);
    hash = mix(bits ^ p->seed, ((uint64_t)e->n << 8 | e->kind) ^ p->seed);
    for (uint32_t i = 0; i < e->n; i++)
        hash = mix(hash ^ member[i], p->seed);
    return hash;
}

static bool
is_same(const struct graph_exchanges *made, const struct graph_exchange *a,
        const struct graph_exchange *b)
{
    return a->kind == b->kind && a->n == b->n && a->bytes == b->bytes &&
           a->flow == b->flow &&
           memcmp(made->member + a->first, made->member + b->first,
                  a->n * sizeof *made->member) == 0;
}

/* Doubles the table, which is at most half full. */
static bool
widen(struct pass *p, struct rec_error *err)
{
    size_t size = p->size ? 2 * p->size : 64;
    uint32_t *table = malloc(size * sizeof *table);
    if (!table)
        return rec_fail_memory(err);
    memset(table, 0xff, size * sizeof *table);
    for (uint32_t i = 0; i < p->made->n; i++) {
        size_t at = hash_of(p, &p->made->exchange[i]) & (size - 1);
        while (table[at] != GRAPH_NONE)
            at = (at + 1) & (size - 1);
        table[at] = i;
    }
    free(p->table);
    p->table = table;
    p->size = size;
    return true;
}

/* Sets *number to that of an exchange whose members are the last ones of member[]. If an
 * equal one is known already, they are taken back. */
static bool
number_of(struct pass *p, const struct graph_exchange *e, uint32_t *number,
          struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    size_t at;
    if (2 * (made->n + 1) > p->size && !widen(p, err))
        return false;
    at = hash_of(p, e) & (p->size - 1);
    for (; p->table[at] != GRAPH_NONE; at = (at + 1) & (p->size - 1))
        if (is_same(made, &made->exchange[p->table[at]], e)) {
            made->nmembers = e->first;
            *number = p->table[at];
            return true;
        }
    if (made->n >= GRAPH_NONE ||
        !rec_grow(&made->exchange, &made->room, made->n + 1, sizeof *made->exchange, err))
        return made->n < GRAPH_NONE ? false : rec_fail_memory(err);
    *number = p->table[at] = (uint32_t)made->n;
    made->exchange[made->n++] = *e;
    return true;
}

static bool
add_member(struct pass *p, uint32_t slot, struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    if (made->nmembers >= GRAPH_NONE ||
        !rec_grow(&made->member, &made->member_room, made->nmembers + 1,
                  sizeof *made->member, err))
        return made->nmembers < GRAPH_NONE ? false : rec_fail_memory(err);
    made->member[made->nmembers++] = slot;
    return true;
}

/* The same for an exchange of two slots, with `bytes` that all cross. Most have the bytes
 * of the last one between the two, which needs no hash. */
static bool
number_of_two(struct pass *p, enum graph_exchange_kind kind, uint32_t a, uint32_t b,
              double bytes, uint32_t *number, struct rec_error *err)
{
    struct graph_exchange e = {kind, (uint32_t)p->made->nmembers, 2, bytes, bytes};
    size_t at = ((size_t)(kind != GRAPH_MESSAGE) * p->nslots + a) * p->nslots + b;
    if (p->last && p->last[at] != GRAPH_NONE &&
        p->made->exchange[p->last[at]].bytes == bytes) {
        *number = p->last[at];
        return true;
    }
    if (!add_member(p, a, err) || !add_member(p, b, err) ||
        !number_of(p, &e, number, err))
        return false;
    if (p->last)
        p->last[at] = *number;
    return true;
}

/* ---- groups of deps ------------------------------------------------------- */

/* Makes all deps of the group one exchange. Its members are the slots at both ends of its
 * deps, in the order in which they appear. */
static bool
set_group(struct pass *p, enum graph_exchange_kind kind, struct rec_error *err)
{
    struct graph_exchange e = {.kind = kind, .first = (uint32_t)p->made->nmembers};
    uint32_t number;
    p->stamp++;
    for (size_t i = 0; i < p->ndeps; i++) {
        const struct graph_dep *dep = &p->graph->dep[p->dep[i]];
        const uint32_t ends[2] = {p->slot[dep->src], p->slot[dep->dst]};
        e.bytes += dep->bytes;
        e.flow += ends[0] == ends[1] ? 0 : dep->bytes;
        for (int k = 0; k < 2; k++) {
            if (p->seen[ends[k]] == p->stamp)
                continue;
            p->seen[ends[k]] = p->stamp;
            if (!add_member(p, ends[k], err))
                return false;
        }
    }
    e.n = (uint32_t)p->made->nmembers - e.first;
    if (!number_of(p, &e, &number, err))
        return false;
    for (size_t i = 0; i < p->ndeps; i++)
        p->made->of_dep[p->dep[i]] = number;
    p->made->collectives++;
    return true;
}

/* True if each slot sends as many deps of the group as it receives: the published rule
 * for which deps are one collective. */
static bool
is_collective(struct pass *p)
{
    bool balanced = true;
    for (size_t i = 0; i < p->ndeps; i++) {
        const struct graph_dep *dep = &p->graph->dep[p->dep[i]];
        p->balance[p->slot[dep->src]]++;
        p->balance[p->slot[dep->dst]]--;
    }
    for (size_t i = 0; i < p->ndeps; i++) {
        const struct graph_dep *dep = &p->graph->dep[p->dep[i]];
        const uint32_t both[2] = {p->slot[dep->src], p->slot[dep->dst]};
        for (int e = 0; e < 2; e++) {
            balanced = balanced && p->balance[both[e]] == 0;
            p->balance[both[e]] = 0;
        }
    }
    return balanced && p->ndeps > 0;
}

/* The deps that leave (or enter) the parts of a unit: sync deps, or all others. */
static bool
collect(struct pass *p, const struct graph_unit *unit, bool leaving, bool sync,
        struct rec_error *err)
{
    const uint32_t *start = leaving ? p->graph->out_start : p->graph->in_start;
    const uint32_t *list = leaving ? p->graph->out : p->graph->in;
    p->ndeps = 0;
    for (uint32_t j = 0; j < unit->parts; j++) {
        uint32_t op = p->graph->member[unit->first + j];
        if (!rec_grow(&p->dep, &p->room, p->ndeps + start[op + 1] - start[op] + 1,
                      sizeof *p->dep, err))
            return false;
        for (uint32_t i = start[op]; i < start[op + 1]; i++)
            if (p->graph->dep[list[i]].sync == sync)
                p->dep[p->ndeps++] = list[i];
    }
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
        ok = number_of_two(p, GRAPH_SYNC_PAIR, p->slot[op], p->slot[dep->dst], bytes,
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
    if (p->sync == GRAPH_SYNC_BY_UNIT)
        return collect(p, unit, true, true, err) &&
               (p->ndeps == 0 || set_group(p, GRAPH_SYNC_ALL, err));
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
    for (size_t u = 0; u < graph->nunits; u++) {
        const struct graph_unit *unit = &graph->unit[u];
        bool backward = graph->op[graph->member[unit->first]].pass == GRAPH_BACKWARD;
        if (unit->parts == 1 || (backward && unit->twin == GRAPH_NONE))
            continue;
        if (!collect(p, unit, !backward, false, err) ||
            (is_collective(p) && !set_group(p, GRAPH_COLLECTIVE, err)) ||
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
        if (!number_of_two(p, GRAPH_MESSAGE, from, to, dep->bytes, &made->of_dep[d], err))
            return false;
    }
    return true;
}

bool
graph_exchanges_make(const struct graph *graph, const uint32_t *slot, uint32_t nslots,
                     enum graph_sync sync, struct graph_exchanges *made,
                     struct rec_error *err)
{
    struct pass p = {.graph = graph,
                     .slot = slot,
                     .sync = sync,
                     .made = made,
                     .nslots = nslots,
                     .seed = rec_hash(rec_str(graph->id)) | 1};
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
    free(p.table);
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
