/* Writes what devices do in a step as a graph and its layout: of one rank of each stage,
 * or of all. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lanes[] = {"compute", "activations",    "gradients", "tensor",
                                    "context", "tokens",         "data",      "experts",
                                    "between", "experts-between"};

struct writing {
    const struct parallel_program *program;
    const struct parallel_question *q;
    struct rec_writer *writer;
    const char *id;
    bool unfold;
    uint32_t column, columns; /* of a stage: one, or t c D */
    uint32_t folded;          /* columns whose exchanges each of its own stands for */
    uint32_t *member;         /* owned */
};

/* The name of a node or a swap: in the graph of all ranks, with the rank. */
static void
name_of(const struct writing *w, char text[PARALLEL_NAME + 24], const char *name,
        uint32_t device, uint32_t column)
{
    if (w->unfold)
        snprintf(text, PARALLEL_NAME + 24, "%s@%llu", name,
                 (unsigned long long)parallel_rank(&w->q->mix, device, column));
    else
        snprintf(text, PARALLEL_NAME + 24, "%s", name);
}

static void
name_field(const struct writing *w, uint32_t i)
{
    const struct parallel_node *node = &w->program->node[i];
    char text[PARALLEL_NAME + 24];
    name_of(w, text, node->name, node->device, w->column);
    rec_text_field(w->writer, text);
}

static void
write_node(const struct writing *w, uint32_t i)
{
    const struct parallel_node *node = &w->program->node[i];
    rec_begin(w->writer, "op");
    rec_text_field(w->writer, w->id);
    name_field(w, i);
    rec_text_field(w->writer, node->pass);
    rec_num_field(w->writer, node->seconds);
    rec_num_field(w->writer, 0);
    if (node->type[0])
        rec_text_key(w->writer, "type", node->type);
    rec_num_key(w->writer, "flops", node->flops);
    if (node->hold > 0) {
        char text[PARALLEL_NAME + 24];
        rec_num_key(w->writer, "hold", node->hold);
        if (node->release != UINT32_MAX) {
            name_of(w, text, w->program->node[node->release].name, node->device,
                    w->column);
            rec_text_key(w->writer, "release", text);
        }
    }
    rec_end(w->writer);
}

static void
write_edge(const struct writing *w, const struct parallel_edge *edge)
{
    rec_begin(w->writer, "dep");
    rec_text_field(w->writer, w->id);
    name_field(w, edge->from);
    name_field(w, edge->to);
    rec_num_field(w->writer, edge->bytes);
    rec_end(w->writer);
}

/* A coll is of a whole group, so its first member writes it. */
static void
write_swap(const struct writing *w, const struct parallel_swap *swap)
{
    uint32_t n = parallel_members(&w->q->mix, swap->group, w->column, w->member);
    char name[PARALLEL_NAME + 24], text[PARALLEL_NAME + 24];
    const struct parallel_node *from = &w->program->node[swap->from];
    if (w->member[0] != w->column)
        return;
    name_of(w, name, swap->name, swap->device, w->column);
    rec_begin(w->writer, "coll");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, name);
    rec_text_field(w->writer, swap->kind);
    rec_num_field(w->writer, swap->bytes);
    for (uint32_t i = 0; i < n; i++) {
        name_of(w, text, from->name, from->device, w->member[i]);
        rec_put_bytes(w->writer, i ? "," : "\tops=", i ? 1 : 5);
        rec_put_bytes(w->writer, text, strlen(text));
    }
    rec_text_key(w->writer, "lane", lanes[swap->lane]);
    rec_end(w->writer);
    for (uint32_t i = 0; i < n && swap->to != UINT32_MAX; i++) {
        const struct parallel_node *to = &w->program->node[swap->to];
        name_of(w, text, to->name, to->device, w->member[i]);
        rec_begin(w->writer, "dep");
        rec_text_field(w->writer, w->id);
        rec_text_field(w->writer, name);
        rec_text_field(w->writer, text);
        rec_num_field(w->writer, 0);
        rec_end(w->writer);
    }
}

static void
write_place(const struct writing *w, uint32_t i)
{
    const struct parallel_node *node = &w->program->node[i];
    char order[24];
    rec_begin(w->writer, "place");
    rec_text_field(w->writer, w->id);
    name_field(w, i);
    rec_uint_field(w->writer, w->unfold
                                  ? parallel_rank(&w->q->mix, node->device, w->column)
                                  : node->device);
    rec_text_key(w->writer, "lane", lanes[node->lane]);
    snprintf(order, sizeof order, "%llu", (unsigned long long)node->order);
    rec_text_key(w->writer, "order", order);
    rec_end(w->writer);
}

static void
write_head(const struct writing *w)
{
    const struct parallel_question *q = w->q;
    rec_begin(w->writer, "graph");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_text_key(w->writer, "device", q->device);
    rec_num_key(w->writer, "peak", q->machine.peak[q->mix.precision]);
    rec_num_key(w->writer, "batch", q->mix.global);
    rec_num_key(w->writer, "sequence", q->sequence);
    rec_text_key(w->writer, "family", "transformer");
    if (w->folded > 1)
        rec_uint_key(w->writer, "stands_for", w->folded);
    rec_end(w->writer);
}

/* True if the network times some of it. */
static bool
exchanges(const struct parallel_program *program)
{
    for (size_t i = 0; i < program->nedges; i++)
        if (program->edge[i].bytes > 0)
            return true;
    for (size_t i = 0; i < program->nnodes; i++)
        if (program->node[i].lane >= PARALLEL_LANE_TENSOR)
            return true;
    return false;
}

bool
parallel_program_write(const struct parallel_program *program,
                       const struct parallel_question *q, bool unfold, const char *id,
                       struct rec_writer *writer, struct rec_error *err)
{
    uint32_t all = q->mix.tp * q->mix.cp * q->mix.dp;
    struct writing w = {.program = program,
                        .q = q,
                        .writer = writer,
                        .id = id,
                        .unfold = unfold,
                        .columns = unfold ? all : 1,
                        .folded = unfold || !exchanges(program) ? 1 : all};
    if (!(w.member = calloc(all, sizeof *w.member)))
        return rec_fail_memory(err);
    write_head(&w);
    for (w.column = 0; w.column < w.columns; w.column++)
        for (uint32_t i = 0; i < program->nnodes; i++)
            write_node(&w, i);
    for (w.column = 0; w.column < w.columns; w.column++) {
        for (size_t i = 0; i < program->nedges; i++)
            write_edge(&w, &program->edge[i]);
        for (size_t i = 0; i < program->nswaps; i++)
            write_swap(&w, &program->swap[i]);
    }
    rec_begin(writer, "layout");
    rec_text_field(writer, id);
    rec_text_field(writer, id);
    rec_uint_field(writer, unfold ? parallel_ranks(&q->mix) : q->mix.pp);
    rec_end(writer);
    for (w.column = 0; w.column < w.columns; w.column++)
        for (uint32_t i = 0; i < program->nnodes; i++)
            write_place(&w, i);
    free(w.member);
    return true;
}
