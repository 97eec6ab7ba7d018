/* Bytes that ops hold after they have run: the keys hold= and release= of ops. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

bool
graph_is_hold(struct rec_str key)
{
    return rec_str_is(key, "hold") || rec_str_is(key, "release");
}

bool
graph_has_hold(const char *extra)
{
    return strstr(extra, "\thold=") || strstr(extra, "\trelease=");
}

static bool
read_hold(const struct graph *graph, uint32_t op, struct graph_hold *hold,
          struct rec_error *err)
{
    const struct graph_op *from = &graph->op[op];
    struct rec_str bytes, release;
    bool released = graph_op_key(from, "release", &release);

    *hold = (struct graph_hold){.op = op, .release = GRAPH_NONE};
    if (!graph_op_key(from, "hold", &bytes))
        return graph_fail(
            graph, from->line, err,
            "op '%s' has release=, but no hold=BYTES that would be released", from->id);
    if (!rec_parse_num(bytes, &hold->bytes) || !(hold->bytes >= 0) ||
        !isfinite(hold->bytes))
        return graph_fail(graph, from->line, err,
                          "op '%s': hold must be a number >= 0, got '%.*s'", from->id,
                          REC_SAID(bytes));
    if (!released)
        return true;
    hold->release = graph_find(graph, release);
    if (hold->release == GRAPH_NONE)
        return graph_fail(graph, from->line, err,
                          "op '%s' has release=%.*s, but the graph has no such op",
                          from->id, REC_SAID(release));
    if (hold->release == op)
        return graph_fail(graph, from->line, err,
                          "op '%s' has release=%s: an op holds bytes from its end on, so "
                          "another op must release them",
                          from->id, from->id);
    return true;
}

bool
graph_find_holds(struct graph *graph, struct rec_error *err)
{
    size_t room = 0;
    if (!graph->holds)
        return true;
    for (uint32_t i = 0; i < graph->nops; i++) {
        if (!graph_has_hold(graph->op[i].extra))
            continue;
        if (!rec_grow(&graph->hold, &room, graph->nholds + 1, sizeof *graph->hold, err) ||
            !read_hold(graph, i, &graph->hold[graph->nholds++], err))
            return false;
    }
    return true;
}

static int
by_op(const void *op, const void *hold)
{
    uint32_t a = *(const uint32_t *)op, b = ((const struct graph_hold *)hold)->op;
    return a < b ? -1 : a > b;
}

double
graph_op_hold(const struct graph *graph, uint32_t op)
{
    const struct graph_hold *hold =
        graph->nholds
            ? bsearch(&op, graph->hold, graph->nholds, sizeof *graph->hold, by_op)
            : NULL;
    return hold ? hold->bytes : 0;
}
