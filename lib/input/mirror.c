/* Mirrors a forward graph into one training step of forward and backward ops. The numbers
 * of the backward ops and the order of the deps are those of the reference simulator. */
#include "rampipe/input.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the id of the backward twin of op i: 2n - i + 1, where n is the largest id. */
static void
twin_id(const char *id, unsigned long largest, char *text, size_t room)
{
    snprintf(text, room, "%lu", 2 * largest - strtoul(id, NULL, 10) + 1);
}

static int
compare_index(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static bool
mirror_ops(const struct graph *forward, const struct input_twin *backward,
           unsigned long largest, struct graph *to, struct rec_error *err)
{
    char twin[32];
    for (size_t i = 0; i < forward->nops; i++) {
        twin_id(forward->op[i].id, largest, twin, sizeof twin);
        if (!graph_add_op(to, &forward->op[i], backward ? twin : NULL, err))
            return false;
    }
    for (size_t i = 0; backward && i < forward->nops; i++) {
        struct graph_op op = forward->op[i];
        const char *pair = op.id;
        twin_id(op.id, largest, twin, sizeof twin);
        op.id = twin;
        op.pass = GRAPH_BACKWARD;
        op.compute = backward[i].compute;
        if (backward[i].extra)
            op.extra = backward[i].extra;
        if (!graph_add_op(to, &op, pair, err))
            return false;
    }
    return true;
}

/* Adds the deps of the forward pass, op by op, in the order of the file. Behind those of
 * op `last` (NULL: no op) comes the dep that joins it to its twin. */
static bool
forward_deps(const struct graph *forward, const struct graph_op *last,
             unsigned long largest, struct graph *to, struct rec_error *err)
{
    char twin[32];
    for (size_t i = 0; i < forward->nops; i++) {
        for (uint32_t j = forward->out_start[i]; j < forward->out_start[i + 1]; j++) {
            const struct graph_dep *dep = &forward->dep[forward->out[j]];
            const struct graph_op *src = &forward->op[dep->src];
            if (!graph_add_dep(to, rec_str(src->id), rec_str(forward->op[dep->dst].id),
                               src->activation, false, "", dep->line, err))
                return false;
        }
        if (&forward->op[i] != last)
            continue;
        twin_id(last->id, largest, twin, sizeof twin);
        if (!graph_add_dep(to, rec_str(last->id), rec_str(twin), last->activation, false,
                           "", 0, err))
            return false;
    }
    return true;
}

/* Adds, for each op v, the deps b(v) -> b(u) to the twins of its predecessors u, in the
 * order of the ops u. */
static bool
backward_deps(const struct graph *forward, unsigned long largest, struct graph *to,
              struct rec_error *err)
{
    uint32_t *sources = calloc(forward->ndeps + 1, sizeof *sources);
    char from[32], into[32];
    bool ok = true;

    if (!sources)
        return rec_fail_memory(err);
    for (size_t v = 0; ok && v < forward->nops; v++) {
        uint32_t n = 0;
        for (uint32_t j = forward->in_start[v]; j < forward->in_start[v + 1]; j++)
            sources[n++] = forward->dep[forward->in[j]].src;
        if (n > 1)
            qsort(sources, n, sizeof *sources, compare_index);
        twin_id(forward->op[v].id, largest, from, sizeof from);
        for (uint32_t j = 0; ok && j < n; j++) {
            twin_id(forward->op[sources[j]].id, largest, into, sizeof into);
            ok = graph_add_dep(to, rec_str(from), rec_str(into),
                               forward->op[v].activation, false, "", 0, err);
        }
    }
    free(sources);
    return ok;
}

bool
input_mirror(const struct graph *forward, const struct input_twin *backward,
             struct graph *to, struct rec_error *err)
{
    unsigned long largest = 0;
    const struct graph_op *last = NULL;

    for (size_t i = 0; i < forward->nops; i++) {
        unsigned long id = strtoul(forward->op[i].id, NULL, 10);
        if (!last || id > largest) {
            largest = id;
            last = &forward->op[i];
        }
    }
    return mirror_ops(forward, backward, largest, to, err) &&
           forward_deps(forward, backward ? last : NULL, largest, to, err) &&
           (!backward || backward_deps(forward, largest, to, err)) &&
           graph_close(to, err);
}
