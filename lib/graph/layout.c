/* The one layout: where the ops of a graph go. It is made by allocators and importers,
 * read from a stream, simulated and converted; its records are written here. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

bool
graph_layout_start(struct graph_layout *layout, struct rec_str id,
                   const struct graph *graph, uint32_t nslots, struct rec_error *err)
{
    size_t n = graph->nops + 1;
    *layout = (struct graph_layout){.graph = graph,
                                    .nslots = nslots,
                                    .id = strndup(id.ptr, id.len),
                                    .slot = malloc(n * sizeof *layout->slot),
                                    .placed = calloc(n, sizeof *layout->placed)};
    if (!layout->id || !layout->slot || !layout->placed) {
        graph_layout_free(layout);
        return rec_fail_memory(err);
    }
    memset(layout->slot, 0xff, n * sizeof *layout->slot); /* REC_NONE */
    return true;
}

void
graph_layout_free(struct graph_layout *layout)
{
    free(layout->id);
    free(layout->slot);
    free(layout->placed);
    free(layout->priority);
    free(layout->lane);
    free(layout->order);
    free(layout->lane_name);
    free(layout->transfer);
    free(layout->transfer_of);
    rec_map_free(&layout->lanes);
    rec_arena_free(&layout->names);
    *layout = (struct graph_layout){.id = NULL};
}

bool
graph_layout_name(struct graph_layout *layout, struct rec_str id, struct rec_error *err)
{
    char *name = strndup(id.ptr, id.len);
    if (!name)
        return rec_fail_memory(err);
    free(layout->id);
    layout->id = name;
    return true;
}

void
graph_layout_place(struct graph_layout *layout, uint32_t op, uint32_t slot)
{
    layout->slot[op] = slot;
    layout->placed[op] = layout->nplaced++;
}

bool
graph_layout_prefer(struct graph_layout *layout, uint32_t op, double priority,
                    struct rec_error *err)
{
    size_t n = layout->graph->nops;
    if (!layout->priority) {
        layout->priority = malloc((n + 1) * sizeof *layout->priority);
        if (!layout->priority)
            return rec_fail_memory(err);
        for (size_t i = 0; i < n; i++)
            layout->priority[i] = NAN;
    }
    layout->priority[op] = priority;
    return true;
}

/* Bytes are held on one server, so the op that releases them must be there. */
static bool
check_holds(const struct graph_layout *layout, struct rec_error *err)
{
    const struct graph *graph = layout->graph;
    for (size_t i = 0; i < graph->nholds; i++) {
        const struct graph_hold *hold = &graph->hold[i];
        if (hold->release != GRAPH_NONE &&
            layout->slot[hold->op] != layout->slot[hold->release])
            return rec_fail(err, REC_DATA,
                            "layout '%s': op '%s' on slot %u releases what op '%s' holds "
                            "on slot %u: both must be on the same slot",
                            layout->id, graph->op[hold->release].id,
                            layout->slot[hold->release], graph->op[hold->op].id,
                            layout->slot[hold->op]);
    }
    return true;
}

static bool
check_lanes(const struct graph_layout *layout, struct rec_error *err)
{
    struct graph_lanes lanes;
    if (!graph_lanes_make(&lanes, layout, err))
        return false;
    graph_lanes_free(&lanes);
    return true;
}

bool
graph_layout_check(const struct graph_layout *layout, struct rec_error *err)
{
    const struct graph *graph = layout->graph;
    size_t nplaced = 0, missing = graph->nops;
    for (size_t i = graph->nops; i-- > 0;)
        if (layout->slot[i] == REC_NONE)
            missing = i;
        else
            nplaced++;
    if (missing == graph->nops)
        return check_holds(layout, err) && check_lanes(layout, err);
    return rec_fail(err, REC_DATA,
                    "the rule 'every op is placed once' is broken: layout '%s' places "
                    "%zu of the %zu ops of graph '%s': op '%s' is placed nowhere, and %u "
                    "deps wait for it",
                    layout->id, nplaced, graph->nops, graph->id, graph->op[missing].id,
                    graph->out_start[missing + 1] - graph->out_start[missing]);
}

void
graph_layout_order(const struct graph_layout *layout, uint32_t *order)
{
    for (size_t i = 0; i < layout->graph->nops; i++)
        order[layout->placed[i]] = (uint32_t)i;
}

/* What an op needs on its server besides its twin: of both there only the larger memory
 * counts; of equal ones, that of the first op. */
static double
own_memory(const struct graph_layout *layout, uint32_t i)
{
    const struct graph_op *op = &layout->graph->op[i];
    double twin;
    if (op->pair == GRAPH_NONE || layout->slot[op->pair] != layout->slot[i])
        return op->memory;
    twin = layout->graph->op[op->pair].memory;
    return op->memory > twin || (op->memory == twin && i < op->pair) ? op->memory : 0;
}

/* The largest task of a slot comes first: other ops add to it, wherever they stand. */
uint32_t
graph_layout_memory(const struct graph_layout *layout, double *memory)
{
    const struct graph *graph = layout->graph;
    uint32_t full = 0;
    for (uint32_t i = 0; i < layout->nslots; i++)
        memory[i] = 0;
    for (int tasks = 1; tasks >= 0; tasks--)
        for (uint32_t i = 0; i < graph->nops; i++) {
            uint32_t slot = layout->slot[i];
            double own;
            if ((graph->op[i].pass == GRAPH_TASK) != tasks)
                continue;
            own = own_memory(layout, i);
            memory[slot] = tasks ? fmax(memory[slot], own) : memory[slot] + own;
            if (memory[slot] > memory[full])
                full = slot;
        }
    return full;
}

uint32_t
graph_layout_memory_bound(const struct graph_layout *layout, double *memory)
{
    const struct graph *graph = layout->graph;
    uint32_t full = graph_layout_memory(layout, memory);
    for (size_t i = 0; i < graph->nholds; i++) {
        uint32_t slot = layout->slot[graph->hold[i].op];
        memory[slot] += graph->hold[i].bytes;
        if (memory[slot] > memory[full])
            full = slot;
    }
    return full;
}

bool
graph_layout_write(const struct graph_layout *layout, struct rec_writer *writer,
                   struct rec_error *err)
{
    const struct graph *graph = layout->graph;
    uint32_t *order = malloc((graph->nops + 1) * sizeof *order);
    if (!order)
        return rec_fail_memory(err);
    graph_layout_order(layout, order); /* the reader counts turns by the records */
    rec_begin(writer, "layout");
    rec_text_field(writer, layout->id);
    rec_text_field(writer, graph->id);
    rec_uint_field(writer, layout->nslots);
    rec_end(writer);
    for (size_t i = 0; i < graph->nops; i++) {
        uint32_t op = order[i];
        rec_begin(writer, "place");
        rec_text_field(writer, layout->id);
        rec_text_field(writer, graph->op[op].id);
        rec_uint_field(writer, layout->slot[op]);
        if (layout->priority && !isnan(layout->priority[op]))
            rec_num_key(writer, "priority", layout->priority[op]);
        if (layout->order && layout->order[op] != GRAPH_NO_ORDER)
            rec_uint_key(writer, "order", layout->order[op]);
        if (graph_layout_lane_name(layout, op))
            rec_text_key(writer, "lane", graph_layout_lane_name(layout, op));
        rec_end(writer);
    }
    graph_layout_write_transfers(layout, writer);
    free(order);
    return true;
}

void
graph_begin_alloc(struct rec_writer *writer, struct rec_str job,
                  const struct graph_layout *layout, double time)
{
    rec_begin(writer, "alloc");
    rec_str_field(writer, job);
    rec_text_field(writer, layout->graph->id);
    rec_text_field(writer, layout->id);
    rec_num_field(writer, time);
}
