/* Layouts and the costs they remember. */
#include "rampipe/sim.h"

#include <math.h>
#include <stdlib.h>

struct sim_layout *
sim_layout_new(struct rec_str id, const struct graph *graph, uint32_t nslots,
               struct rec_error *err)
{
    struct sim_layout *layout = calloc(1, sizeof *layout);
    size_t n = graph->nops + 1;
    if (layout) {
        layout->graph = graph;
        layout->nslots = nslots;
        layout->slot = malloc(n * sizeof *layout->slot);
        layout->placed = calloc(n, sizeof *layout->placed);
        layout->id = rec_arena_copy(&layout->arena, id, err);
    }
    if (!layout || !layout->slot || !layout->placed || !layout->id) {
        sim_layout_free(layout);
        rec_fail_memory(err);
        return NULL;
    }
    memset(layout->slot, 0xff, n * sizeof *layout->slot);
    return layout;
}

void
sim_layout_free(struct sim_layout *layout)
{
    if (!layout)
        return;
    free(layout->slot);
    free(layout->placed);
    free(layout->priority);
    free(layout->cost);
    rec_map_free(&layout->memo);
    rec_arena_free(&layout->arena);
    free(layout);
}

bool
sim_layout_seal(struct sim_layout *layout, struct rec_error *err)
{
    const struct graph *graph = layout->graph;
    double *memory;

    if (!graph_check_placed(graph, layout->id, layout->slot, err))
        return false;
    memory = calloc((size_t)layout->nslots + 1, sizeof *memory);
    if (!memory)
        return rec_fail_memory(err);
    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[i];
        uint32_t slot = layout->slot[i];
        double own = op->memory;
        if (op->pair != GRAPH_NONE && layout->slot[op->pair] == slot) {
            double twin = graph->op[op->pair].memory;
            own = own > twin || (own == twin && i < op->pair) ? own : 0;
        }
        memory[slot] += own;
        if (memory[slot] > layout->memory) {
            layout->memory = memory[slot];
            layout->full_slot = slot;
        }
    }
    free(memory);
    layout->memory_sum = graph_memory_sum(graph);
    layout->dep_bytes = graph_dep_bytes(graph);
    return true;
}

bool
sim_layout_observe(const struct sim_layout *layout, const struct net_cluster *cluster,
                   const uint32_t *servers, const struct sim_observer *observer,
                   struct sim_cost *cost, struct rec_error *err)
{
    const struct graph *graph = layout->graph;
    uint32_t *server_of_op = malloc((graph->nops + 1) * sizeof *server_of_op);
    double *seconds = malloc((graph->ndeps + 1) * sizeof *seconds);
    struct sim_placed placed = {graph,          layout->nslots,   layout->slot,
                                layout->placed, layout->priority, seconds};
    bool ok = server_of_op && seconds;

    if (!ok)
        rec_fail_memory(err);
    for (size_t i = 0; ok && i < graph->nops; i++)
        server_of_op[i] = servers[layout->slot[i]];
    ok = ok &&
         net_transfer_times(cluster, graph, server_of_op, seconds, &cost->traffic, err) &&
         sim_step(&placed, observer, &cost->step, err);
    free(server_of_op);
    free(seconds);
    return ok;
}

/* Simulates a geometry that is new, and remembers. */
static bool
learn(struct sim_layout *layout, const struct net_cluster *cluster,
      const uint32_t *servers, struct rec_str geometry, uint32_t *index,
      struct rec_error *err)
{
    const char *key = rec_arena_copy(&layout->arena, geometry, err);
    if (!key ||
        !rec_grow(&layout->cost, &layout->cost_room, layout->ncosts + 1,
                  sizeof *layout->cost, err) ||
        !sim_layout_observe(layout, cluster, servers, NULL, &layout->cost[layout->ncosts],
                            err))
        return false;
    *index = (uint32_t)layout->ncosts++;
    return rec_map_add(&layout->memo, (struct rec_str){key, geometry.len}, *index, err);
}

bool
sim_layout_cost(struct sim_layout *layout, const struct net_cluster *cluster,
                const uint32_t *servers, struct sim_cost *cost, struct rec_error *err)
{
    size_t size = net_geometry_numbers(cluster, layout->nslots) * sizeof(uint32_t);
    uint32_t *geometry = malloc(size + 1), index = REC_NONE;
    bool ok = geometry ? net_geometry(cluster, servers, layout->nslots, geometry, err)
                       : rec_fail_memory(err);
    if (ok) {
        struct rec_str key = {(const char *)geometry, size};
        index = rec_map_get(&layout->memo, key);
        ok = index != REC_NONE || learn(layout, cluster, servers, key, &index, err);
    }
    if (ok)
        *cost = layout->cost[index];
    free(geometry);
    return ok;
}
