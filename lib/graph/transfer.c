/* Transfers of a layout: the channels that its deps are given (transfer records). */
#include "private.h"

#include <math.h>
#include <stdlib.h>

uint32_t
graph_find_dep(const struct graph *graph, uint32_t src, uint32_t dst)
{
    for (uint32_t i = graph->out_start[src]; i < graph->out_start[src + 1]; i++)
        if (graph->dep[graph->out[i]].dst == dst)
            return graph->out[i];
    return GRAPH_NONE;
}

bool
graph_layout_transfer(struct graph_layout *layout, uint32_t dep, uint64_t channel,
                      double priority, struct rec_error *err)
{
    size_t ndeps = layout->graph->ndeps;
    if (!layout->transfer_of) {
        layout->transfer_of = malloc((ndeps + 1) * sizeof *layout->transfer_of);
        if (!layout->transfer_of)
            return rec_fail_memory(err);
        memset(layout->transfer_of, 0xff, (ndeps + 1) * sizeof *layout->transfer_of);
    }
    if (!rec_grow(&layout->transfer, &layout->transfer_room, layout->ntransfers + 1,
                  sizeof *layout->transfer, err))
        return false;
    layout->transfer_of[dep] = (uint32_t)layout->ntransfers;
    layout->transfer[layout->ntransfers++] =
        (struct graph_transfer){dep, channel, priority};
    return true;
}

void
graph_layout_write_transfers(const struct graph_layout *layout, struct rec_writer *writer)
{
    const struct graph *graph = layout->graph;
    for (size_t i = 0; i < layout->ntransfers; i++) {
        const struct graph_transfer *transfer = &layout->transfer[i];
        const struct graph_dep *dep = &graph->dep[transfer->dep];
        rec_begin(writer, "transfer");
        rec_text_field(writer, layout->id);
        rec_text_field(writer, graph->op[dep->src].id);
        rec_text_field(writer, graph->op[dep->dst].id);
        rec_uint_field(writer, transfer->channel);
        if (!isnan(transfer->priority))
            rec_num_key(writer, "priority", transfer->priority);
        rec_end(writer);
    }
}
