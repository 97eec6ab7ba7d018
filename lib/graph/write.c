/* Graphs as records and as Graphviz. */
#include "private.h"

#include <math.h>
#include <stdio.h>

static void
put_extra(struct rec_writer *writer, const char *extra)
{
    rec_put_bytes(writer, extra, strlen(extra)); /* brings its TABs */
}

void
graph_pass_key(const struct graph *graph, const char *key, struct rec_writer *writer)
{
    struct rec_str value;
    if (graph_key(graph, key, &value))
        rec_str_key(writer, key, value);
}

static void
write_op(const struct graph *graph, const struct graph_op *op, struct rec_writer *writer)
{
    static const char *const pass[] = {"forward", "backward", "task"};
    rec_begin(writer, "op");
    rec_text_field(writer, graph->id);
    rec_text_field(writer, op->id);
    rec_text_field(writer, pass[op->pass]);
    rec_num_field(writer, op->compute);
    rec_num_field(writer, op->memory);
    put_extra(writer, op->extra);
    if (!isnan(op->param))
        rec_num_key(writer, "param", op->param);
    if (!isnan(op->activation))
        rec_num_key(writer, "activation", op->activation);
    if (op->pair != GRAPH_NONE)
        rec_text_key(writer, "pair", graph->op[op->pair].id);
    if (op->of) {
        char part[40];
        rec_text_key(writer, "of", op->of);
        snprintf(part, sizeof part, "%u/%u", op->part, op->parts);
        rec_text_key(writer, "part", part);
    }
    rec_end(writer);
}

void
graph_write(const struct graph *graph, struct rec_writer *writer)
{
    rec_begin(writer, "graph");
    rec_text_field(writer, graph->id);
    rec_text_field(writer, graph->model);
    put_extra(writer, graph->extra);
    rec_end(writer);
    for (size_t i = 0; i < graph->nops; i++)
        write_op(graph, &graph->op[i], writer);
    for (size_t d = 0; d < graph->ndeps; d++) {
        const struct graph_dep *dep = &graph->dep[d];
        rec_begin(writer, "dep");
        rec_text_field(writer, graph->id);
        rec_text_field(writer, graph->op[dep->src].id);
        rec_text_field(writer, graph->op[dep->dst].id);
        rec_num_field(writer, dep->bytes);
        if (dep->sync)
            rec_text_key(writer, "kind", "sync");
        put_extra(writer, dep->extra);
        rec_end(writer);
    }
}

void
graph_write_job(const struct graph *graph, uint64_t steps, struct rec_writer *writer)
{
    rec_begin(writer, "job");
    rec_text_field(writer, graph->id);
    rec_text_field(writer, graph->id);
    rec_num_field(writer, 0);
    rec_uint_field(writer, steps);
    rec_text_field(writer, "inf");
    rec_end(writer);
}

static void
put(struct rec_writer *writer, const char *text)
{
    rec_put_bytes(writer, text, strlen(text));
}

static void
put_quoted(struct rec_writer *writer, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\')
            put(writer, "\\");
        rec_put_bytes(writer, text + i, 1);
    }
}

static void
put_dot_op(const struct graph_op *op, struct rec_writer *writer)
{
    static const char *const colour[] = {"lightblue", "lightsalmon", "lightgrey"};
    const char *type = strstr(op->extra, "\ttype=");
    char number[REC_NUM_MAX];

    put(writer, "    \"");
    put_quoted(writer, op->id, strlen(op->id));
    put(writer, "\" [label=\"");
    put_quoted(writer, op->id, strlen(op->id));
    if (type) {
        put(writer, "\\n");
        put_quoted(writer, type + 6, strcspn(type + 6, "\t"));
    }
    rec_format_num(number, op->compute);
    put(writer, "\\n");
    put(writer, number);
    put(writer, " s\", fillcolor=");
    put(writer, colour[op->pass]);
    put(writer, "];\n");
}

void
graph_write_dot(const struct graph *graph, struct rec_writer *writer)
{
    put(writer, "digraph \"");
    put_quoted(writer, graph->id, strlen(graph->id));
    put(writer, "\" {\n    rankdir=TB;\n    node [shape=box, style=filled];\n");
    for (size_t i = 0; i < graph->nops; i++)
        put_dot_op(&graph->op[i], writer);
    for (size_t d = 0; d < graph->ndeps; d++) {
        const struct graph_dep *dep = &graph->dep[d];
        char number[REC_NUM_MAX];
        put(writer, "    \"");
        put_quoted(writer, graph->op[dep->src].id, strlen(graph->op[dep->src].id));
        put(writer, "\" -> \"");
        put_quoted(writer, graph->op[dep->dst].id, strlen(graph->op[dep->dst].id));
        rec_format_num(number, dep->bytes);
        put(writer, "\" [label=\"");
        put(writer, number);
        put(writer, dep->sync ? "\", style=dashed];\n" : "\"];\n");
    }
    put(writer, "}\n");
}
