/* Lanes of a layout: the lists by which a slot runs its ops beside each other, each by
 * priority or strictly in an order (the keys lane= and order= of place). */
#include "private.h"

#include <stdlib.h>

/* Makes the array of an attribute that only some ops have, filled with 0xff. */
static void *
fill_new(size_t n, size_t size, struct rec_error *err)
{
    void *array = malloc((n + 1) * size);
    if (array)
        memset(array, 0xff, (n + 1) * size);
    else
        rec_fail_memory(err);
    return array;
}

/* The number of a lane's name; GRAPH_NONE: *err. */
static uint32_t
name_lane(struct graph_layout *layout, struct rec_str name, struct rec_error *err)
{
    uint32_t i = rec_map_get(&layout->lanes, name);
    const char *copy;
    if (i != REC_NONE)
        return i;
    copy = rec_arena_copy(&layout->names, name, err);
    if (!copy ||
        !rec_grow(&layout->lane_name, &layout->lane_room, layout->nnames + 1,
                  sizeof *layout->lane_name, err) ||
        !rec_map_add(&layout->lanes, (struct rec_str){copy, name.len},
                     (uint32_t)layout->nnames, err))
        return GRAPH_NONE;
    layout->lane_name[layout->nnames] = copy;
    return (uint32_t)layout->nnames++;
}

bool
graph_layout_lane(struct graph_layout *layout, uint32_t op, struct rec_str name,
                  struct rec_error *err)
{
    if (!layout->lane &&
        !(layout->lane = fill_new(layout->graph->nops, sizeof *layout->lane, err)))
        return false;
    layout->lane[op] = name_lane(layout, name, err);
    return layout->lane[op] != GRAPH_NONE;
}

bool
graph_layout_queue(struct graph_layout *layout, uint32_t op, uint64_t order,
                   struct rec_error *err)
{
    if (!layout->order &&
        !(layout->order = fill_new(layout->graph->nops, sizeof *layout->order, err)))
        return false;
    layout->order[op] = order;
    return true;
}

const char *
graph_layout_lane_name(const struct graph_layout *layout, uint32_t op)
{
    return !layout->lane || layout->lane[op] == GRAPH_NONE
               ? NULL
               : layout->lane_name[layout->lane[op]];
}

/* ---- the lists ------------------------------------------------------------ */

/* The value by which ops are grouped: slot, or lane; ops that name no lane come first. */
static uint32_t
group_of(const struct graph_layout *layout, bool by_slot, uint32_t op)
{
    return by_slot ? layout->slot[op] : layout->lane ? layout->lane[op] + 1 : 0;
}

/* A counting sort that keeps the order of equal ones. */
static bool
sort_by(const struct graph_layout *layout, bool by_slot, const uint32_t *from,
        uint32_t *to, struct rec_error *err)
{
    size_t nops = layout->graph->nops, n = by_slot ? layout->nslots : layout->nnames + 1;
    uint32_t *start = calloc(n + 1, sizeof *start);
    if (!start)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < nops; i++)
        start[group_of(layout, by_slot, i) + 1]++;
    for (size_t i = 0; i < n; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < nops; i++)
        to[start[group_of(layout, by_slot, from[i])]++] = from[i];
    free(start);
    return true;
}

static int
by_order(const void *a, const void *b, void *context)
{
    const struct graph_layout *layout = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t p = layout->order[x], q = layout->order[y];
    return p != q ? (p < q ? -1 : 1) : x < y ? -1 : x > y;
}

static bool
fail_lane(const struct graph_layout *layout, uint32_t op, uint32_t other,
          const char *what, struct rec_error *err)
{
    const char *name = graph_layout_lane_name(layout, op);
    return rec_fail(err, REC_DATA, "layout '%s': ops '%s' and '%s' on %s%s%sslot %u %s",
                    layout->id, layout->graph->op[op].id, layout->graph->op[other].id,
                    name ? "lane '" : "", name ? name : "", name ? "' of " : "",
                    layout->slot[op], what);
}

/* Sorts the n ops of a lane by order=, and numbers them. */
static bool
queue_lane(const struct graph_layout *layout, uint32_t *op, uint32_t n, uint32_t *turn,
           struct rec_error *err)
{
    bool sorted = true;
    if (!layout->order)
        return true;
    for (uint32_t i = 1; i < n; i++) {
        bool has = layout->order[op[i]] != GRAPH_NO_ORDER;
        if (has != (layout->order[op[0]] != GRAPH_NO_ORDER))
            return fail_lane(
                layout, op[0], op[i],
                "differ: one has order=, one has not; all ops of a lane have it or none",
                err);
        sorted = sorted && layout->order[op[i - 1]] < layout->order[op[i]];
    }
    if (layout->order[op[0]] == GRAPH_NO_ORDER)
        return true;
    if (!sorted)
        qsort_r(op, n, sizeof *op, by_order, (void *)(uintptr_t)layout);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && layout->order[op[i - 1]] == layout->order[op[i]])
            return fail_lane(layout, op[i - 1], op[i],
                             "have the same order=: on a lane each op has its own", err);
        turn[op[i]] = i;
    }
    return true;
}

static bool
find_lanes(const struct graph_layout *layout, uint32_t *list, struct graph_lanes *lanes,
           struct rec_error *err)
{
    size_t nops = layout->graph->nops;
    for (size_t i = 0, n; i < nops; i += n) {
        uint32_t first = list[i];
        for (n = 0;
             i + n < nops && layout->slot[list[i + n]] == layout->slot[first] &&
             group_of(layout, false, list[i + n]) == group_of(layout, false, first);
             n++)
            lanes->lane[list[i + n]] = lanes->n;
        lanes->name[lanes->n] = graph_layout_lane_name(layout, first);
        lanes->slot[lanes->n++] = layout->slot[first];
        if (!queue_lane(layout, list + i, (uint32_t)n, lanes->turn, err))
            return false;
    }
    return true;
}

bool
graph_lanes_make(struct graph_lanes *lanes, const struct graph_layout *layout,
                 struct rec_error *err)
{
    size_t n = layout->graph->nops;
    uint32_t *list, *other;
    bool ok;

    *lanes = (struct graph_lanes){0};
    if (!layout->lane && !layout->order)
        return true;
    list = malloc((n + 1) * sizeof *list);
    other = malloc((n + 1) * sizeof *other);
    lanes->lane = malloc((n + 1) * sizeof *lanes->lane);
    lanes->turn = fill_new(n, sizeof *lanes->turn, err);
    lanes->slot = malloc((n + 1) * sizeof *lanes->slot);
    lanes->name = malloc((n + 1) * sizeof *lanes->name);
    ok = (list && other && lanes->lane && lanes->turn && lanes->slot && lanes->name) ||
         rec_fail_memory(err);
    if (ok)
        graph_layout_order(layout, list);
    ok = ok && sort_by(layout, false, list, other, err) &&
         sort_by(layout, true, other, list, err) && find_lanes(layout, list, lanes, err);
    free(list);
    free(other);
    if (!ok)
        graph_lanes_free(lanes);
    return ok;
}

void
graph_lanes_free(struct graph_lanes *lanes)
{
    free(lanes->lane);
    free(lanes->turn);
    free(lanes->slot);
    free(lanes->name);
    *lanes = (struct graph_lanes){0};
}
