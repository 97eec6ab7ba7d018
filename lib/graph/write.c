/* Writes graphs as records and in Graphviz's language (dot). */
#include "private.h"

#include <math.h>
#include <stdio.h>

static void
put_extra(struct rec_writer *writer, const char *extra)
{
    rec_put_bytes(writer, extra, strlen(extra)); /* each key has its TAB before it */
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

static void
write_dep(const struct graph *graph, const char *src, const struct graph_dep *dep,
          struct rec_writer *writer)
{
    rec_begin(writer, "dep");
    rec_text_field(writer, graph->id);
    rec_text_field(writer, src);
    rec_text_field(writer, graph->op[dep->dst].id);
    rec_num_field(writer, dep->bytes);
    if (dep->sync)
        rec_text_key(writer, "kind", "sync");
    put_extra(writer, dep->extra);
    rec_end(writer);
}

static void
write_coll(const struct graph *graph, const struct graph_coll *coll,
           struct rec_writer *writer)
{
    rec_begin(writer, "coll");
    rec_text_field(writer, graph->id);
    rec_text_field(writer, coll->id);
    rec_text_field(writer, graph_coll_name(coll));
    rec_num_field(writer, coll->bytes);
    put_extra(writer, coll->extra);
    for (uint32_t i = 0; i < coll->n; i++) {
        put_extra(writer, i ? "," : "\tops=");
        put_extra(writer, graph->op[graph->coll_op[coll->first + i]].id);
    }
    if (coll->lane)
        rec_text_key(writer, "lane", coll->lane);
    rec_end(writer);
    for (uint32_t d = 0; d < coll->nafter; d++)
        write_dep(graph, coll->id, &graph->after[coll->after + d], writer);
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
    for (size_t d = 0; d < graph->ndeps; d++)
        write_dep(graph, graph->op[graph->dep[d].src].id, &graph->dep[d], writer);
    for (size_t c = 0; c < graph->ncolls; c++)
        write_coll(graph, &graph->coll[c], writer);
}

/* A job that arrives at once and has no deadline, so that a single graph can be piped
 * into tools that read jobs. */
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

/* Writes a text inside the quotes of a dot string. */
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
put_quantity(struct rec_writer *writer, double value, enum rec_quantity quantity)
{
    char text[REC_QUANTITY_MAX];
    rec_format_quantity(text, value, quantity, 3);
    put(writer, text);
}

/* Adds a line to the label of a node: dot breaks lines at a backslash and an n. */
static void
put_dot_line(struct rec_writer *writer, struct rec_str text)
{
    put(writer, "\\n");
    put_quoted(writer, text.ptr, text.len);
}

/* A time of 0 next to work says that the time is not known (graph_check_times()): it is
 * left out. */
static void
put_dot_op(const struct graph_op *op, struct rec_writer *writer)
{
    static const char *const colour[] = {"lightblue", "lightsalmon", "lightgrey"};
    struct rec_str text;
    double flops = 0;

    put(writer, "    \"");
    put_quoted(writer, op->id, strlen(op->id));
    put(writer, "\" [label=\"");
    put_quoted(writer, op->id, strlen(op->id));
    if (graph_op_key(op, "label", &text))
        put_dot_line(writer, text);
    if (graph_op_key(op, "type", &text))
        put_dot_line(writer, text);
    if (graph_op_key(op, "flops", &text) && rec_parse_num(text, &flops) && flops > 0) {
        put(writer, "\\n");
        put_quantity(writer, flops, REC_FLOPS);
    }
    if (op->compute > 0 || !(flops > 0)) {
        put(writer, "\\n");
        put_quantity(writer, op->compute, REC_SECONDS);
    }
    put(writer, "\", fillcolor=");
    put(writer, colour[op->pass]);
    put(writer, "];\n");
}

/* Puts twins side by side, so that the backward pass runs up beside the forward pass.
 * With one pass below the other the picture would be twice as high. */
static void
put_dot_twins(const struct graph *graph, struct rec_writer *writer)
{
    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->pair == GRAPH_NONE || op->pass != GRAPH_FORWARD)
            continue;
        put(writer, "    {rank=same; \"");
        put_quoted(writer, op->id, strlen(op->id));
        put(writer, "\"; \"");
        put_quoted(writer, graph->op[op->pair].id, strlen(graph->op[op->pair].id));
        put(writer, "\"}\n");
    }
}

static void
put_dot_edge(const char *from, const char *to, struct rec_writer *writer)
{
    put(writer, "    \"");
    put_quoted(writer, from, strlen(from));
    put(writer, "\" -> \"");
    put_quoted(writer, to, strlen(to));
    put(writer, "\";\n");
}

static void
put_dot_coll(const struct graph *graph, const struct graph_coll *coll,
             struct rec_writer *writer)
{
    put(writer, "    \"");
    put_quoted(writer, coll->id, strlen(coll->id));
    put(writer, "\" [shape=ellipse, fillcolor=white, label=\"");
    put_quoted(writer, coll->id, strlen(coll->id));
    put_dot_line(writer, rec_str(graph_coll_name(coll)));
    put(writer, "\\n");
    put_quantity(writer, coll->bytes, REC_BYTES);
    put(writer, "\"];\n");
    for (uint32_t i = 0; i < coll->n; i++)
        put_dot_edge(graph->op[graph->coll_op[coll->first + i]].id, coll->id, writer);
    for (uint32_t d = coll->after; d < coll->after + coll->nafter; d++)
        put_dot_edge(coll->id, graph->op[graph->after[d].dst].id, writer);
}

/* True if an op stands beside its twin. Deps between two such ops must not put one below
 * the other. */
static bool
runs_up(const struct graph_op *op)
{
    return op->pass == GRAPH_BACKWARD && op->pair != GRAPH_NONE;
}

void
graph_write_dot(const struct graph *graph, struct rec_writer *writer)
{
    put(writer, "digraph \"");
    put_quoted(writer, graph->id, strlen(graph->id));
    put(writer, "\" {\n    graph [label=\"");
    put_quoted(writer, graph->id, strlen(graph->id));
    put(writer, "\", labelloc=t, fontname=\"sans-serif\"];\n"
                "    node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                "    edge [fontname=\"sans-serif\", fontsize=11];\n");
    for (size_t i = 0; i < graph->nops; i++)
        put_dot_op(&graph->op[i], writer);
    for (size_t d = 0; d < graph->ndeps; d++) {
        const struct graph_dep *dep = &graph->dep[d];
        put(writer, "    \"");
        put_quoted(writer, graph->op[dep->src].id, strlen(graph->op[dep->src].id));
        put(writer, "\" -> \"");
        put_quoted(writer, graph->op[dep->dst].id, strlen(graph->op[dep->dst].id));
        put(writer, "\" [label=\"");
        put_quantity(writer, dep->bytes, REC_BYTES);
        put(writer, dep->sync ? "\", style=dashed" : "\"");
        if (runs_up(&graph->op[dep->src]) && runs_up(&graph->op[dep->dst]))
            put(writer, ", constraint=false");
        put(writer, "];\n");
    }
    for (size_t c = 0; c < graph->ncolls; c++)
        put_dot_coll(graph, &graph->coll[c], writer);
    put_dot_twins(graph, writer);
    put(writer, "}\n");
}
