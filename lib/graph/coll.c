/*
 * Exchanges of groups of ops (colls). A dep may leave a coll, and its record may come
 * before that of the coll: then the name is taken for one of an op at first. When the
 * graph is closed, such names are taken out of the ops, and the deps that leave colls out
 * of the other deps: all that walks along deps from op to op never meets a coll.
 */
#include "private.h"

#include <stdlib.h>

double
graph_coll_bytes(enum graph_exchange_kind kind, double bytes, uint32_t n)
{
    if (n < 2 || kind == GRAPH_BARRIER)
        return 0;
    if (kind == GRAPH_SEND)
        return bytes;
    return (kind == GRAPH_ALL_REDUCE ? 2 : 1) * (n - 1.0) * bytes;
}

const char *
graph_coll_name(const struct graph_coll *coll)
{
    return rec_exchange_name((size_t)(coll->kind - GRAPH_ALL_REDUCE));
}

bool
graph_refuse_colls(const struct graph *graph, const char *why, struct rec_error *err)
{
    return graph->ncolls == 0 || graph_fail(graph, graph->coll[0].line, err,
                                            "graph '%s' has coll '%s', which %s",
                                            graph->id, graph->coll[0].id, why);
}

/* ---- building ------------------------------------------------------------ */

/* Appends the ops of a group to coll_op[]. */
static bool
add_group(struct graph *graph, struct graph_coll *coll, struct rec_str ops,
          struct rec_error *err)
{
    struct rec_str name;
    coll->first = (uint32_t)graph->ncoll_ops;
    while (rec_str_split(&ops, ',', &name)) {
        uint32_t op = graph_intern(graph, name, coll->line, err);
        if (op == GRAPH_NONE)
            return false;
        if (graph->ncoll_ops >= GRAPH_SYNC - 1)
            return rec_fail_memory(err);
        if (!rec_grow(&graph->coll_op, &graph->coll_op_room, graph->ncoll_ops + 1,
                      sizeof *graph->coll_op, err))
            return false;
        graph->coll_op[graph->ncoll_ops++] = op;
    }
    coll->n = (uint32_t)(graph->ncoll_ops - coll->first);
    return true;
}

static bool
check_group(const struct graph *graph, const struct graph_coll *coll,
            struct rec_error *err)
{
    if (coll->n < 2)
        return graph_fail(graph, coll->line, err,
                          "coll '%s' has a group of one op: it needs at least two",
                          coll->id);
    if (coll->kind == GRAPH_SEND && coll->n != 2)
        return graph_fail(graph, coll->line, err,
                          "coll '%s' is a send, so its group is the sender and the "
                          "receiver, not %u ops",
                          coll->id, coll->n);
    return coll->kind != GRAPH_BARRIER || coll->bytes == 0 ||
           graph_fail(graph, coll->line, err,
                      "coll '%s' is a barrier, which sends nothing: its BYTES must be 0",
                      coll->id);
}

bool
graph_add_coll(struct graph *graph, const struct graph_coll *from, struct rec_str id,
               struct rec_str ops, struct rec_str lane, struct rec_str extra,
               struct rec_error *err)
{
    struct graph_coll coll = {
        .kind = from->kind, .bytes = from->bytes, .line = from->line, .extra = ""};
    if (!rec_is_kind(id, REC_KIND_ID))
        return graph_fail(graph, from->line, err,
                          "'%.*s' is not a name for a coll: a name is not empty, and has "
                          "no ',' and no '='",
                          (int)id.len, id.ptr);
    if (rec_map_get(&graph->coll_index, id) != REC_NONE)
        return graph_fail(graph, from->line, err, "coll '%.*s' is defined twice",
                          (int)id.len, id.ptr);
    if (graph->ncolls >= GRAPH_SYNC - 1)
        return rec_fail_memory(err);
    if (!(coll.id = rec_arena_copy(&graph->arena, id, err)) ||
        (lane.ptr && !(coll.lane = rec_arena_copy(&graph->arena, lane, err))) ||
        (extra.len && !(coll.extra = rec_arena_copy(&graph->arena, extra, err))) ||
        !add_group(graph, &coll, ops, err) || !check_group(graph, &coll, err) ||
        !rec_grow(&graph->coll, &graph->coll_room, graph->ncolls + 1, sizeof *graph->coll,
                  err))
        return false;
    graph->coll[graph->ncolls] = coll;
    return rec_map_add(&graph->coll_index, (struct rec_str){coll.id, id.len},
                       (uint32_t)graph->ncolls++, err);
}

/* ---- closing ------------------------------------------------------------- */

/* Sets to[i] to the new number of op i, or if that name is one of a coll, to the coll,
 * marked by GRAPH_SYNC. The ops move up. */
static bool
renumber(struct graph *graph, uint32_t *to, struct rec_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->nops; i++) {
        struct graph_op *op = &graph->op[i];
        uint32_t c = rec_map_get(&graph->coll_index, rec_str(op->id));
        if (c != REC_NONE && op->compute >= 0) /* NAN: it is only named */
            return graph_fail(graph, graph->coll[c].line, err,
                              "'%s' is the name of an op, so a coll cannot have it",
                              op->id);
        to[i] = c != REC_NONE ? GRAPH_SYNC | c : n;
        if (c == REC_NONE)
            graph->op[n++] = *op;
    }
    if (n == graph->nops)
        return true;
    graph->nops = n;
    rec_map_clear(&graph->index);
    for (uint32_t i = 0; i < n; i++)
        if (!rec_map_add(&graph->index, rec_str(graph->op[i].id), i, err))
            return false;
    return true;
}

static bool
check_dep(const struct graph *graph, const struct graph_dep *dep, uint32_t src,
          uint32_t dst, struct rec_error *err)
{
    if (dst & GRAPH_SYNC)
        return graph_fail(graph, dep->line, err,
                          "a dep cannot enter coll '%s': it waits for the ops of its "
                          "group (ops=), and for nothing else",
                          graph->coll[dst & ~GRAPH_SYNC].id);
    return !(src & GRAPH_SYNC) || (dep->bytes == 0 && !dep->sync) ||
           graph_fail(graph, dep->line, err,
                      "a dep from coll '%s' says only who waits for it: it must have 0 "
                      "bytes, and no kind=sync",
                      graph->coll[src & ~GRAPH_SYNC].id);
}

/* Numbers the ends of deps anew, and moves those that leave colls to after[]. */
static bool
part_deps(struct graph *graph, const uint32_t *to, struct rec_error *err)
{
    size_t n = 0, room = 0;
    for (size_t d = 0; d < graph->ndeps; d++) {
        struct graph_dep dep = graph->dep[d];
        uint32_t src = to[dep.src], dst = to[dep.dst];
        if (!check_dep(graph, &dep, src, dst, err))
            return false;
        dep.src = src & ~GRAPH_SYNC;
        dep.dst = dst;
        if (!(src & GRAPH_SYNC)) {
            graph->dep[n++] = dep;
            continue;
        }
        if (!rec_grow(&graph->after, &room, graph->nafter + 1, sizeof dep, err))
            return false;
        graph->after[graph->nafter++] = dep;
        graph->coll[dep.src].nafter++;
    }
    graph->ndeps = n;
    return true;
}

/* Sorts after[] by coll; deps of one coll stay in order. */
static bool
sort_after(struct graph *graph, struct rec_error *err)
{
    struct graph_dep *sorted = malloc((graph->nafter + 1) * sizeof *sorted);
    uint32_t next = 0;
    if (!sorted)
        return rec_fail_memory(err);
    for (size_t c = 0; c < graph->ncolls; c++) {
        graph->coll[c].after = next;
        next += graph->coll[c].nafter;
        graph->coll[c].nafter = 0;
    }
    for (size_t d = 0; d < graph->nafter; d++) {
        struct graph_coll *coll = &graph->coll[graph->after[d].src];
        sorted[coll->after + coll->nafter++] = graph->after[d];
    }
    free(graph->after);
    graph->after = sorted;
    return true;
}

/* seen[op] is 1 + the last coll in whose group, or among whose deps, the op is. */
static bool
check_coll(const struct graph *graph, uint32_t c, uint32_t *seen, struct rec_error *err)
{
    const struct graph_coll *coll = &graph->coll[c];
    for (uint32_t i = 0; i < coll->n; i++) {
        uint32_t op = graph->coll_op[coll->first + i];
        if (seen[op] == 2 * c + 1)
            return graph_fail(graph, coll->line, err,
                              "the group of coll '%s' has op '%s' twice", coll->id,
                              graph->op[op].id);
        seen[op] = 2 * c + 1;
    }
    for (uint32_t i = 0; i < coll->nafter; i++) {
        const struct graph_dep *dep = &graph->after[coll->after + i];
        if (seen[dep->dst] == 2 * c + 2)
            return graph_fail(graph, dep->line, err,
                              "the dep from '%s' to '%s' is there twice", coll->id,
                              graph->op[dep->dst].id);
        seen[dep->dst] = 2 * c + 2;
    }
    return true;
}

static bool
check_colls(const struct graph *graph, struct rec_error *err)
{
    uint32_t *seen = calloc(graph->nops + 1, sizeof *seen);
    bool ok = seen || rec_fail_memory(err);
    for (uint32_t c = 0; ok && c < graph->ncolls; c++)
        ok = check_coll(graph, c, seen, err);
    free(seen);
    return ok;
}

/* Numbers the ops of groups anew. */
static bool
name_groups(struct graph *graph, const uint32_t *to, struct rec_error *err)
{
    for (size_t c = 0; c < graph->ncolls; c++)
        for (uint32_t i = 0; i < graph->coll[c].n; i++) {
            uint32_t *op = &graph->coll_op[graph->coll[c].first + i];
            if (to[*op] & GRAPH_SYNC)
                return graph_fail(graph, graph->coll[c].line, err,
                                  "the group of coll '%s' has '%s', which is a coll: a "
                                  "group has ops",
                                  graph->coll[c].id,
                                  graph->coll[to[*op] & ~GRAPH_SYNC].id);
            *op = to[*op];
        }
    return true;
}

bool
graph_find_colls(struct graph *graph, struct rec_error *err)
{
    uint32_t *to;
    bool ok;
    if (graph->ncolls == 0)
        return true;
    to = malloc((graph->nops + 1) * sizeof *to);
    ok = (to || rec_fail_memory(err)) && renumber(graph, to, err) &&
         part_deps(graph, to, err) && sort_after(graph, err) &&
         name_groups(graph, to, err) && check_colls(graph, err);
    free(to);
    return ok;
}

/* A counting sort, as of deps by op (lib/graph/index.c). */
bool
graph_group_colls(struct graph *graph, struct rec_error *err)
{
    uint32_t *start;
    if (graph->ncolls == 0)
        return true;
    start = graph->coll_of_start = calloc(graph->nops + 2, sizeof *start);
    graph->coll_of = malloc((graph->ncoll_ops + 1) * sizeof *graph->coll_of);
    if (!start || !graph->coll_of)
        return rec_fail_memory(err);
    for (size_t i = 0; i < graph->ncoll_ops; i++)
        start[graph->coll_op[i] + 2]++;
    for (size_t i = 2; i <= graph->nops; i++)
        start[i] += start[i - 1];
    for (uint32_t c = 0; c < graph->ncolls; c++)
        for (uint32_t i = 0; i < graph->coll[c].n; i++)
            graph->coll_of[start[graph->coll_op[graph->coll[c].first + i] + 1]++] = c;
    return true;
}
