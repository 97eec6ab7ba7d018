/* Checks whether the ops of a graph say how long they take (graph_check_times()). */
#include "private.h"

/* True if an op has this key, with a number above 0. */
static bool
has_amount(const struct graph_op *op, const char *key)
{
    struct rec_str text;
    double value;
    return graph_op_key(op, key, &text) && rec_parse_num(text, &value) && value > 0;
}

/* Communication takes its time in the network, not on a server. */
static bool
is_sent(const struct graph_op *op)
{
    struct rec_str coll;
    return graph_op_key(op, "coll", &coll);
}

bool
graph_check_times(const struct graph *graph, const char *advice, struct rec_error *err)
{
    const struct graph_op *working = NULL, *training = NULL;
    size_t nworking = 0, ntraining = 0;

    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->compute > 0 || is_sent(op))
            continue;
        if ((has_amount(op, "flops") || has_amount(op, "moved")) && nworking++ == 0)
            working = op;
        if (op->pass != GRAPH_TASK && ntraining++ == 0)
            training = op;
    }
    if (working)
        return graph_fail(graph, working->line, err,
                          "%zu of %zu ops of graph '%s' do work (flops=, moved=) in no "
                          "time, the first is '%s': %s",
                          nworking, graph->nops, graph->id, working->id, advice);
    if (training && graph_sequential(graph) == 0)
        return graph_fail(graph, training->line, err,
                          "no op of graph '%s' takes any time (%zu ops of a training "
                          "step): %s",
                          graph->id, ntraining, advice);
    return true;
}
