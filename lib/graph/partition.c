/* How much to split: one degree for all ops, or an explicit list. The plan is the number
 * of parts of each op and the order in which they are split; graph_split() does it. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* Allocates the plan of a graph; all ops are whole. */
static bool
start_plan(const struct graph *graph, uint32_t **parts, uint32_t **rank,
           struct rec_error *err)
{
    *parts = calloc(graph->nops + 1, sizeof **parts);
    *rank = calloc(graph->nops + 1, sizeof **rank);
    if (!*parts || !*rank)
        return rec_fail_memory(err);
    for (size_t i = 0; i < graph->nops; i++)
        (*parts)[i] = 1;
    return true;
}

/* Splits an op and then its twin into k parts, as number `position` in the order. */
static void
plan_op(const struct graph *graph, uint32_t op, uint32_t k, uint32_t position,
        uint32_t *parts, uint32_t *rank)
{
    uint32_t twin = graph->op[op].pair;
    parts[op] = k;
    rank[op] = 2 * position;
    if (twin != GRAPH_NONE) {
        parts[twin] = k;
        rank[twin] = 2 * position + 1;
    }
}

/* True if an op can be split by itself. A task cannot: it is a command. A backward op
 * with a twin is split when its forward op is. */
static bool
is_split(const struct graph_op *op)
{
    return op->pass != GRAPH_TASK &&
           (op->pass != GRAPH_BACKWARD || op->pair == GRAPH_NONE);
}

/* The largest legal number of parts that is not more than k. */
static uint32_t
round_down(const struct graph_partition *how, uint32_t k)
{
    uint32_t low = 0, high = how->nlegal; /* it is among legal[low .. high) */
    if (!how->legal)
        return k;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (how->legal[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return how->legal[low];
}

static bool
plan_degree(const struct graph *graph, const struct graph_partition *how, uint32_t *parts,
            uint32_t *rank)
{
    for (uint32_t i = 0; i < graph->nops; i++)
        if (is_split(&graph->op[i])) {
            uint32_t k = graph_parts(graph->op[i].compute, how->quantum, how->degree);
            plan_op(graph, i, round_down(how, k), i, parts, rank);
        }
    return true;
}

static bool
plan_list(const struct graph *graph, const struct graph_partition *how, uint32_t *parts,
          uint32_t *rank, struct rec_error *err)
{
    for (uint32_t n = 0; n < how->nlist; n++) {
        uint32_t op = graph_find(graph, how->list[n].op);
        if (op == GRAPH_NONE || !is_split(&graph->op[op]))
            return rec_fail(err, REC_DATA, "graph '%s' has no %sop '%.*s' to split%s",
                            graph->id, op == GRAPH_NONE ? "" : "forward ",
                            (int)how->list[n].op.len, how->list[n].op.ptr,
                            op == GRAPH_NONE ? ""
                            : graph->op[op].pass == GRAPH_TASK
                                ? "; a task has no parts"
                                : "; it is split when its forward twin is");
        plan_op(graph, op, how->list[n].parts, n, parts, rank);
    }
    return true;
}

/* True for a key that partitioning sets; an earlier partitioning's must not stay. */
static bool
is_own_key(struct rec_str field)
{
    static const char *const own[] = {"of", "degree", "parts", "demand_memory",
                                      "demand_bytes"};
    struct rec_str name;
    rec_str_split(&field, '=', &name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (rec_str_is(name, own[i]))
            return true;
    return false;
}

/* The keys of the partitioned graph: those of the old one and how it was made. */
static char *
make_extra(const struct graph *from, uint32_t degree, uint32_t most,
           struct rec_error *err)
{
    char memory[REC_NUM_MAX], bytes[REC_NUM_MAX];
    struct rec_str rest = rec_str(from->extra), field;
    struct rec_text text;
    bool first = true;

    if (!rec_text_open(&text, err))
        return NULL;
    for (; rec_str_split(&rest, '\t', &field); first = false)
        if (!first && !is_own_key(field)) /* the first is empty: keys begin with a TAB */
            fprintf(text.out, "\t%.*s", (int)field.len, field.ptr);
    fprintf(text.out, "\tof=%s\tdegree=%u\tparts=%u", from->id, degree, most);
    rec_format_num(memory, graph_memory_sum(from));
    rec_format_num(bytes, graph_dep_bytes(from));
    fprintf(text.out, "\tdemand_memory=%s\tdemand_bytes=%s", memory, bytes);
    return rec_text_close(&text, err);
}

/* How many parts each op gets, and when it is split. */
static bool
make_plan(const struct graph *from, const struct graph_partition *how, uint32_t **parts,
          uint32_t **rank, struct rec_error *err)
{
    return start_plan(from, parts, rank, err) &&
           (how->list ? plan_list(from, how, *parts, *rank, err)
                      : plan_degree(from, how, *parts, *rank));
}

/* The number of ops and deps of the new graph, without making it: the deps grow with the
 * square of the parts. */
static double
count_made(const struct graph *from, const struct graph_partition *how,
           const uint32_t *parts)
{
    double n = 0;
    for (size_t d = 0; d < from->ndeps; d++)
        n += (double)parts[from->dep[d].src] * parts[from->dep[d].dst];
    for (uint32_t i = 0; i < from->nops; i++) {
        n += parts[i];
        if (from->op[i].pass == GRAPH_BACKWARD && how->gradients == GRAPH_GRADIENTS_DEPS)
            n += (double)parts[i] * (parts[i] - 1);
    }
    return n;
}

bool
graph_partition_count(const struct graph *from, const struct graph_partition *how,
                      double *made, struct rec_error *err)
{
    uint32_t *parts = NULL, *rank = NULL;
    bool ok = make_plan(from, how, &parts, &rank, err);
    if (ok)
        *made += count_made(from, how, parts);
    free(parts);
    free(rank);
    return ok;
}

bool
graph_partition(const struct graph *from, const struct graph_partition *how,
                struct graph *to, struct rec_error *err)
{
    uint32_t *parts = NULL, *rank = NULL, most = 1, degree;
    char *extra = NULL, *id = NULL;
    bool ok = make_plan(from, how, &parts, &rank, err);

    for (size_t i = 0; ok && i < from->nops; i++)
        if (parts[i] > most)
            most = parts[i];
    degree = how->list ? most : how->degree;
    ok = ok && (extra = make_extra(from, degree, most, err));
    if (ok && asprintf(&id, "%s/%u", from->id, degree) < 0) {
        id = NULL;
        ok = rec_fail_memory(err);
    }
    if (ok) {
        struct graph_split split = {parts, rank, how->sizes, how->gradients};
        ok = graph_split(from, &split, rec_str(id), extra, to, err);
    }
    free(parts);
    free(rank);
    free(extra);
    free(id);
    return ok;
}
