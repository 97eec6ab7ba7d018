/* The floating-point operations of a model in a training step (graph_model_flops()). */
#include "private.h"

#include <math.h>

/* The value of flops=, 0 if the op has none. */
static bool
read_flops(const struct graph *graph, const struct graph_op *op, double *flops,
           struct rec_error *err)
{
    struct rec_str text;
    *flops = 0;
    if (!graph_op_key(op, "flops", &text))
        return true;
    if (rec_parse_num(text, flops) && *flops >= 0 && isfinite(*flops))
        return true;
    return graph_fail(graph, op->line, err,
                      "op '%.60s': flops must be a number >= 0, got '%.*s'", op->id,
                      REC_SAID(text));
}

/* The operations of an op without those that are recomputed: a backward op counts at most
 * twice its forward op. */
static bool
model_flops(const struct graph *graph, const struct graph_op *op, double *flops,
            struct rec_error *err)
{
    const struct graph_op *twin = op->pair == GRAPH_NONE ? NULL : &graph->op[op->pair];
    double forward;
    if (!read_flops(graph, op, flops, err))
        return false;
    if (op->pass != GRAPH_BACKWARD || !twin)
        return true;
    if (!read_flops(graph, twin, &forward, err))
        return false;
    *flops = fmin(*flops, 2 * forward);
    return true;
}

bool
graph_model_flops(const struct graph *graph, double *flops, struct rec_error *err)
{
    struct rec_str text;
    double sum = 0, one;
    bool known = true;

    *flops = NAN;
    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i];
        if (graph_op_key(op, "coll", &text))
            continue;
        if (!model_flops(graph, op, &one, err))
            return false;
        known = known &&
                (graph_op_key(op, "flops", &text) || graph_op_key(op, "moved", &text));
        sum += one;
    }
    if (known && sum > 0 && isfinite(sum))
        *flops = sum;
    return true;
}
