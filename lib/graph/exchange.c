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

/* The groups of an op's unit that are exchanges: of the deps that leave it and of those
 * that enter it, without sync deps. Groups count from 1; 0: none. */
struct spot {
    uint32_t leaves, enters;
};

/* One pass over the deps of a placed graph. */
struct pass {
    const struct graph *graph;
    const uint32_t *slot; /* per op */
    struct spot *spot;    /* per op */
    enum graph_sync sync;
    enum graph_same same;
    struct graph_exchanges *made;
    int32_t *balance; /* per slot of the group: deps it sends minus deps it receives */
    uint32_t *seen;   /* per slot: the last stamp that had it */
    uint32_t stamp;   /* number of the group at hand */
    uint32_t *here;   /* per slot of the group: parts of the unit on it */
    uint32_t *dep;    /* deps of the current group, if it has a list of them */
    size_t ndeps, room;
    /* Exchanges of two slots by a hash, of which a later one may take the place;
     * GRAPH_NONE: none. NULL: GRAPH_SAME_NONE. */
    uint32_t *known;
    uint32_t nslots;
};

enum { KNOWN_BITS = 14 }; /* of a hash */

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

/* Where an exchange of two slots may be known. */
static inline uint32_t *
place_of(const struct pass *p, enum graph_exchange_kind kind, uint32_t a, uint32_t b,
         double bytes)
{
    size_t pair = ((size_t)(kind != GRAPH_MESSAGE) * p->nslots + a) * p->nslots + b;
    uint64_t bits;
    memcpy(&bits, &bytes, sizeof bits);
    return &p->known[(bits + pair * REC_MIX_STEP) * REC_MIX_STEP >> (64 - KNOWN_BITS)];
}

/* True if an exchange is one of these two slots, with as many bytes. */
static inline bool
is_of(const struct graph_exchanges *made, uint32_t number, enum graph_exchange_kind kind,
      uint32_t a, uint32_t b, double bytes)
{
    const struct graph_exchange *e = &made->exchange[number];
    return e->bytes == bytes && e->kind == kind && made->member[e->first] == a &&
           made->member[e->first + 1] == b;
}

static bool
add_new_two(struct pass *p, enum graph_exchange_kind kind, uint32_t a, uint32_t b,
            double bytes, uint32_t *number, struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    struct graph_exchange e = {kind, (uint32_t)made->nmembers, 2, bytes, bytes};
    if (!reserve(made, 2, err))
        return false;
    made->member[made->nmembers++] = a;
    made->member[made->nmembers++] = b;
    return add_exchange(p, &e, number, err);
}

/* Sets *number to that of an exchange of two slots, with `bytes` that all cross. */
static inline bool
add_two(struct pass *p, enum graph_exchange_kind kind, uint32_t a, uint32_t b,
        double bytes, uint32_t *number, struct rec_error *err)
{
    uint32_t *known = p->same == GRAPH_SAME_NONE ? NULL : place_of(p, kind, a, b, bytes);
    if (known && *known != GRAPH_NONE && is_of(p->made, *known, kind, a, b, bytes)) {
        *number = *known;
        return true;
    }
    if (!add_new_two(p, kind, a, b, bytes, number, err))
        return false;
    if (known)
        *known = *number;
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
    p->here[slot] = 0;
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

/* The same for a unit whose parts are alike, by the deps of its first part: the work is
 * O(parts + deps of a part). No list of the deps is made. */
static bool
collect_alike(struct pass *p, const struct graph_unit *unit, bool leaving,
              struct graph_exchange *group, struct rec_error *err)
{
    const struct graph_alike *alike = leaving ? &unit->out : &unit->in;
    const uint32_t *part = p->graph->member + unit->first;
    int32_t each = leaving ? 1 : -1, parts = (int32_t)unit->parts;

    *group = (struct graph_exchange){.first = (uint32_t)p->made->nmembers};
    p->ndeps = (size_t)alike->deps * unit->parts;
    p->stamp++;
    if (p->ndeps == 0)
        return true;
    if (!reserve(p->made, (size_t)alike->deps + unit->parts, err))
        return false;
    group->bytes = alike->bytes;
    for (uint32_t j = 0; j < unit->parts; j++) {
        join(p, p->slot[part[j]]);
        p->here[p->slot[part[j]]]++;
        p->balance[p->slot[part[j]]] += each * (int32_t)alike->deps;
    }
    for (uint32_t i = 0; i < alike->deps; i++) {
        const struct graph_end *end = &p->graph->end[alike->first + i];
        uint32_t other = p->slot[end->op];
        join(p, other);
        p->balance[other] -= each * parts;
        group->flow += end->bytes * (unit->parts - p->here[other]);
    }
    group->n = (uint32_t)p->made->nmembers - group->first;
    return true;
}

/* True if each slot sends as many deps of the group as it receives: the published rule
 * for which deps are one collective. */
static bool
is_collective(const struct pass *p, const struct graph_exchange *group)
{
    if (p->ndeps == 0)
        return false; /* there may be no members at all */
    for (uint32_t i = group->first; i < group->first + group->n; i++)
        if (p->balance[p->made->member[i]] != 0)
            return false;
    return true;
}

/* Adds the group as one exchange, *number, or if it is none, forgets its members. */
static bool
add_group(struct pass *p, struct graph_exchange *group, enum graph_exchange_kind kind,
          bool is_one, uint32_t *number, struct rec_error *err)
{
    group->kind = kind;
    *number = GRAPH_NONE;
    if (!is_one)
        p->made->nmembers = group->first;
    else if (add_exchange(p, group, number, err))
        p->made->collectives++;
    return !is_one || *number != GRAPH_NONE;
}

/* The deps of the group are those of the exchange. */
static void
take_deps(struct pass *p, uint32_t number)
{
    for (size_t i = 0; i < p->ndeps && number != GRAPH_NONE; i++)
        p->made->of_dep[p->dep[i]] = number;
}

/* The deps that leave or enter the parts of a unit are those of the exchange. */
static void
take_parts(struct pass *p, const struct graph_unit *unit, bool leaving, uint32_t number)
{
    const uint32_t *part = p->graph->member + unit->first;
    for (uint32_t j = 0; j < unit->parts; j++)
        *(leaving ? &p->spot[part[j]].leaves : &p->spot[part[j]].enters) = number + 1;
}

static bool
set_collective(struct pass *p, const struct graph_unit *unit, bool leaving,
               struct rec_error *err)
{
    bool alike = (leaving ? unit->out : unit->in).is;
    struct graph_exchange group;
    uint32_t number;
    if (!(alike ? collect_alike(p, unit, leaving, &group, err)
                : collect(p, unit, leaving, false, &group, err)) ||
        !add_group(p, &group, GRAPH_COLLECTIVE, is_collective(p, &group), &number, err))
        return false;
    if (number != GRAPH_NONE)
        take_parts(p, unit, leaving, number);
    return true;
}

/* ---- sync deps by pairs --------------------------------------------------- */

/* Each pair of sync deps x -> y, y -> x is an exchange of its own. */
static bool
set_pairs(struct pass *p, uint32_t op, struct rec_error *err)
{
    const struct graph *graph = p->graph;
    struct graph_exchanges *made = p->made;
    for (uint32_t i = graph->pair_start[op]; i < graph->pair_start[op + 1]; i++) {
        const struct graph_pair *pair = &graph->pair[i];
        uint32_t from = p->slot[op], to = p->slot[pair->to];
        made->collectives++;
        if (from == to)
            continue; /* no flow */
        if (!add_two(p, GRAPH_SYNC_PAIR, from, to, pair->bytes, &made->of_dep[pair->dep],
                     err))
            return false;
        if (pair->back != GRAPH_NONE)
            made->of_dep[pair->back] = made->of_dep[pair->dep];
    }
    return true;
}

static bool
set_sync(struct pass *p, const struct graph_unit *unit, struct rec_error *err)
{
    struct graph_exchange group;
    uint32_t number;
    if (!p->graph->pair)
        return true;
    if (p->sync == GRAPH_SYNC_BY_UNIT) {
        if (!collect(p, unit, true, true, &group, err) ||
            !add_group(p, &group, GRAPH_SYNC_ALL, p->ndeps > 0, &number, err))
            return false;
        take_deps(p, number);
        return true;
    }
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
        if (!set_collective(p, unit, !backward, err) || !set_sync(p, unit, err))
            return false;
    }
    return true;
}

static inline bool
is_message(const struct graph_exchanges *made, uint32_t number, double bytes)
{
    return number != GRAPH_NONE && made->exchange[number].bytes == bytes &&
           made->exchange[number].kind == GRAPH_MESSAGE;
}

/* The exchange of a message. With GRAPH_SAME_BYTES its slots are those of the first one
 * that has as many bytes, which most often is the last one, *last. */
static inline bool
add_message(struct pass *p, uint32_t from, uint32_t to, double bytes, uint32_t *last,
            uint32_t *number, struct rec_error *err)
{
    uint32_t *known;
    if (p->same != GRAPH_SAME_BYTES)
        return add_two(p, GRAPH_MESSAGE, from, to, bytes, number, err);
    if (!is_message(p->made, *last, bytes)) {
        known = place_of(p, GRAPH_MESSAGE, 0, 0, bytes);
        if (!is_message(p->made, *known, bytes) &&
            !add_two(p, GRAPH_MESSAGE, from, to, bytes, known, err))
            return false;
        *last = *known;
    }
    *number = *last;
    return true;
}

/* All flows of n deps have exchange `number`. A dep that stays on its slot is no flow.
 * Returns the number of flows. */
static inline uint32_t
share(const uint32_t *slot, uint32_t n, uint32_t from, uint32_t number, uint32_t *of_dep)
{
    uint32_t flows = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool flow = slot[i] != from;
        of_dep[i] = flow ? number : GRAPH_NONE;
        flows += flow;
    }
    return flows;
}

/* Sets the exchanges of a row of sync deps, those in pairs of which have theirs, or of
 * messages that are told apart. *flows counts the flows. */
static bool
set_each(struct pass *p, const struct graph_row *row, uint32_t *last, uint32_t *flows,
         struct rec_error *err)
{
    const uint32_t *slot = p->slot + (row->to & ~GRAPH_SYNC);
    uint32_t from = p->slot[row->from], *of_dep = p->made->of_dep + row->first;
    for (uint32_t i = 0; i < row->n; i++) {
        if (slot[i] == from)
            of_dep[i] = GRAPH_NONE;
        else if (of_dep[i] == GRAPH_NONE &&
                 !add_message(p, from, slot[i], row->bytes, last, &of_dep[i], err))
            return false;
        *flows += slot[i] != from;
    }
    return true;
}

/* Sets the exchanges of a row of messages that are one if they have as many bytes, or of
 * deps of a group. */
static bool
set_one(struct pass *p, const struct graph_row *row, uint32_t number, uint32_t *last,
        uint32_t *flows, struct rec_error *err)
{
    const uint32_t *slot = p->slot + row->to;
    uint32_t from = p->slot[row->from], i = 0;
    if (number == GRAPH_NONE) {
        while (i < row->n && slot[i] == from)
            i++;
        if (i < row->n && !add_message(p, from, slot[i], row->bytes, last, &number, err))
            return false;
    }
    *flows = share(slot, row->n, from, number, p->made->of_dep + row->first);
    return true;
}

/* The exchanges of the deps of a row: the group, which of two is the later one; the pairs
 * that sync deps are in; or else messages. Deps without bytes have none, also if they are
 * part of a group. */
static bool
set_row(struct pass *p, const struct graph_row *row, uint32_t *last,
        struct rec_error *err)
{
    uint32_t to = row->to & ~GRAPH_SYNC, flows = 0;
    uint32_t leaves = p->spot[row->from].leaves, enters = p->spot[to].enters;
    uint32_t group = leaves > enters ? leaves : enters;

    if (row->bytes == 0) {
        memset(p->made->of_dep + row->first, 0xff, row->n * sizeof(uint32_t));
        return true;
    }
    if (row->to & GRAPH_SYNC || (group == 0 && p->same != GRAPH_SAME_BYTES)
            ? !set_each(p, row, last, &flows, err)
            : !set_one(p, row, group - 1, last, &flows, err))
        return false;
    p->made->flows += flows;
    for (; flows > 0; flows--) /* a product would be rounded differently */
        p->made->flow_bytes += row->bytes;
    return true;
}

static bool
set_deps(struct pass *p, struct rec_error *err)
{
    const struct graph *graph = p->graph;
    uint32_t last = GRAPH_NONE;
    for (size_t i = 0; i < graph->nrows; i++)
        if (!set_row(p, &graph->row[graph->row_order[i]], &last, err))
            return false;
    return true;
}

/* ---- colls ---------------------------------------------------------------- */

/* A coll is an exchange of the slots of its group, each of which counts once. */
static bool
set_coll(struct pass *p, uint32_t c, struct rec_error *err)
{
    struct graph_exchanges *made = p->made;
    const struct graph_coll *coll = &p->graph->coll[c];
    struct graph_exchange e = {coll->kind, (uint32_t)made->nmembers, 0, coll->bytes, 0};
    uint64_t *count = coll->kind == GRAPH_SEND ? &made->flows : &made->collectives;

    made->of_coll[c] = GRAPH_NONE;
    if (!reserve(made, coll->n, err))
        return false;
    p->stamp++;
    for (uint32_t i = 0; i < coll->n; i++)
        join(p, p->slot[p->graph->coll_op[coll->first + i]]);
    e.n = (uint32_t)made->nmembers - e.first;
    e.flow = graph_coll_bytes(e.kind, e.bytes, e.n);
    made->flow_bytes += e.flow;
    if (e.n > 1 && (e.flow > 0 || e.kind == GRAPH_BARRIER)) {
        *count += 1;
        return add_exchange(p, &e, &made->of_coll[c], err);
    }
    made->nmembers = e.first;
    *count += coll->kind != GRAPH_SEND;
    return true;
}

static bool
set_colls(struct pass *p, struct rec_error *err)
{
    for (uint32_t c = 0; c < p->graph->ncolls; c++)
        if (!set_coll(p, c, err))
            return false;
    return true;
}

bool
graph_exchanges_make(const struct graph *graph, const uint32_t *slot, uint32_t nslots,
                     enum graph_sync sync, enum graph_same same,
                     struct graph_exchanges *made, struct rec_error *err)
{
    struct pass p = {.graph = graph,
                     .slot = slot,
                     .sync = sync,
                     .same = same,
                     .made = made,
                     .nslots = nslots};
    size_t nknown = same == GRAPH_SAME_NONE ? 0 : (size_t)1 << KNOWN_BITS;
    bool ok;

    *made = (struct graph_exchanges){0};
    made->of_dep = malloc((graph->ndeps + 1) * sizeof *made->of_dep);
    made->of_coll = graph->ncolls ? malloc(graph->ncolls * sizeof *made->of_coll) : NULL;
    p.balance = calloc((size_t)nslots + 1, sizeof *p.balance);
    p.seen = calloc((size_t)nslots + 1, sizeof *p.seen);
    p.here = calloc((size_t)nslots + 1, sizeof *p.here);
    p.spot = calloc(graph->nops + 1, sizeof *p.spot);
    p.known = nknown ? malloc(nknown * sizeof *p.known) : NULL;
    ok = (made->of_dep && (made->of_coll || !graph->ncolls) && p.balance && p.seen &&
          p.here && p.spot && (p.known || !nknown)) ||
         rec_fail_memory(err);
    if (ok) {
        memset(made->of_dep, 0xff, graph->ndeps * sizeof *made->of_dep);
        if (p.known)
            memset(p.known, 0xff, nknown * sizeof *p.known);
        ok = set_groups(&p, err) && set_deps(&p, err) && set_colls(&p, err);
    }
    free(p.balance);
    free(p.seen);
    free(p.here);
    free(p.spot);
    free(p.known);
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
    free(made->of_coll);
    *made = (struct graph_exchanges){0};
}
