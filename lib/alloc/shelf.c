/* Layouts of graphs, by the placements that had them. */
#include "shelf.h"

#include <stdlib.h>

bool
shelf_init(struct shelf *s, uint32_t nservers, size_t bytes, struct rec_error *err)
{
    s->pool.limit = bytes;
    s->slots = calloc(nservers, sizeof *s->slots);
    return s->slots || rec_fail_memory(err);
}

void
shelf_free(struct shelf *s)
{
    for (size_t i = 0; i < s->ngraphs; i++) {
        rec_map_free(&s->graph[i].layouts[false]);
        rec_map_free(&s->graph[i].layouts[true]);
    }
    for (size_t i = 0; i < s->nlaid; i++) {
        sim_layout_free(s->laid[i].layout);
        free(s->laid[i].key);
    }
    free(s->graph);
    free(s->laid);
    free(s->vacant);
    free(s->slots);
    free(s->op_slots);
    free(s->key);
}

/* Adds a number to s->key. */
static bool
add_key(struct shelf *s, uint32_t number, struct rec_error *err)
{
    if (!rec_grow(&s->key, &s->key_room, s->nkey + 1, sizeof *s->key, err))
        return false;
    s->key[s->nkey++] = number;
    return true;
}

/*
 * Sets s->key, by which a layout of a light plan is looked up: for each number of parts
 * the slots of the first unit that has it, which say where all other units go, and are
 * much shorter than the slots of all ops. `slot` is per server if `server` is given,
 * which says the server of each member; else it is per op. How many slots there are comes
 * last: a job may hold servers that have none of its ops.
 */
static bool
set_key(struct shelf *s, const struct place_plan *plan, const uint32_t *slot,
        const uint32_t *server, uint32_t nslots, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    s->nkey = 0;
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        const struct graph_unit *unit = &graph->unit[plan->step[plan->kind[k]].unit];
        if (!rec_grow(&s->key, &s->key_room, s->nkey + unit->parts, sizeof *s->key, err))
            return false;
        for (uint32_t i = unit->first; i < unit->first + unit->parts; i++)
            s->key[s->nkey++] = slot[server ? server[i] : graph->member[i]];
    }
    return add_key(s, nslots, err);
}

/* The same for other plans: the slots of all ops, and the order of steps, if any. */
static bool
set_long_key(struct shelf *s, const struct place_plan *plan, const uint32_t *op_slots,
             const uint32_t *order, uint32_t nslots, struct rec_error *err)
{
    size_t nops = plan->graph->nops, nsteps = order ? plan->nsteps : 0;
    if (!rec_grow(&s->key, &s->key_room, nops + nsteps + 1, sizeof *s->key, err))
        return false;
    memcpy(s->key, op_slots, nops * sizeof *s->key);
    if (order)
        memcpy(s->key + nops, order, nsteps * sizeof *s->key);
    s->nkey = nops + nsteps;
    return add_key(s, nslots, err);
}

static struct rec_str
key_at_hand(const struct shelf *s)
{
    return (struct rec_str){(const char *)s->key, s->nkey * sizeof *s->key};
}

/* Frees the layout at `place`, which no job holds. */
static bool
forget(struct shelf *s, uint32_t place, struct rec_error *err)
{
    struct shelf_layout *laid = &s->laid[place];
    if (!rec_grow(&s->vacant, &s->vacant_room, s->nvacant + 1, sizeof *s->vacant, err))
        return false;
    s->vacant[s->nvacant++] = place;
    rec_map_remove(&s->graph[laid->graph].layouts[laid->light],
                   (struct rec_str){laid->key, laid->key_len});
    sim_layout_free(laid->layout);
    free(laid->key);
    *laid = (struct shelf_layout){.layout = NULL};
    return true;
}

bool
shelf_forget(struct shelf *s, struct rec_error *err)
{
    struct sim_layout *old;
    while ((old = sim_layouts_excess(&s->pool, 0)))
        if (!forget(s, old->tag, err))
            return false;
    return true;
}

/* True if this is a layout of the graph. */
static bool
is_layout_of(const struct shelf_layout *laid, uint32_t index)
{
    return laid->layout && laid->graph == index;
}

bool
shelf_drop(struct shelf *s, uint32_t index, bool *dropped, struct rec_error *err)
{
    *dropped = false;
    for (uint32_t i = 0; i < s->nlaid; i++)
        if (is_layout_of(&s->laid[i], index) && s->laid[i].layout->holds > 0)
            return true;
    for (uint32_t i = 0; i < s->nlaid; i++)
        if (is_layout_of(&s->laid[i], index) && !forget(s, i, err))
            return false;
    if (index < s->ngraphs) {
        rec_map_free(&s->graph[index].layouts[false]);
        rec_map_free(&s->graph[index].layouts[true]);
        s->graph[index] = (struct shelf_graph){.recent = 0};
    }
    *dropped = true;
    return true;
}

/* Puts a sealed layout among those that are known, with a copy of the key at hand, and
 * into the pool that bounds their memory. */
static bool
keep(struct shelf *s, uint32_t index, bool light, struct sim_layout *layout,
     uint32_t *place, struct rec_error *err)
{
    struct rec_str key = key_at_hand(s);
    char *own = malloc(key.len);
    if (!own)
        return rec_fail_memory(err);
    key.ptr = memcpy(own, key.ptr, key.len);
    *place = (uint32_t)(s->nvacant ? s->vacant[s->nvacant - 1] : s->nlaid);
    if (!rec_grow(&s->laid, &s->laid_room, s->nlaid + 1, sizeof *s->laid, err) ||
        !rec_map_add(&s->graph[index].layouts[light], key, *place, err)) {
        free(own);
        return false;
    }
    if (s->nvacant)
        s->nvacant--;
    else
        s->nlaid++;
    layout->tag = *place;
    s->laid[*place] = (struct shelf_layout){.layout = layout,
                                            .serial = ++s->serial,
                                            .graph = index,
                                            .light = light,
                                            .key = own,
                                            .key_len = key.len};
    sim_layouts_add(&s->pool, layout);
    return true;
}

/* Gives tasks priorities by which each server runs them in the order in which they were
 * placed: that is the order of the list schedule (tasks.c). */
static bool
set_turns(struct graph_layout *layout, struct rec_error *err)
{
    for (uint32_t i = 0; i < layout->nplaced; i++)
        if (!graph_layout_prefer(layout, i, layout->nplaced - layout->placed[i], err))
            return false;
    return true;
}

/* Makes a layout that puts each op on its slot in s->op_slots. Ops are placed in the
 * order of the plan's steps, or in `order` if it is not NULL, each followed by its
 * twin. */
static bool
make(struct shelf *s, uint32_t index, const struct place_plan *plan, bool light,
     uint32_t nslots, const uint32_t *order, uint32_t *place, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    struct graph_layout where;
    struct sim_layout *layout;
    uint32_t turn = 0;

    if (!graph_layout_start(&where, rec_str(""), graph, nslots, err))
        return false;
    memcpy(where.slot, s->op_slots, graph->nops * sizeof *where.slot);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct place_step *step = &plan->step[order ? order[i] : i];
        const struct graph_unit *unit = &graph->unit[step->unit];
        for (uint32_t j = 0; j < unit->parts; j++) {
            uint32_t op = graph->member[unit->first + j], twin = graph->op[op].pair;
            where.placed[op] = turn++;
            if (twin != GRAPH_NONE)
                where.placed[twin] = turn++;
        }
    }
    where.nplaced = turn;
    if (order && !set_turns(&where, err)) {
        graph_layout_free(&where);
        return false;
    }
    layout = sim_layout_new(&where, err);
    if (layout && keep(s, index, light, layout, place, err))
        return true;
    sim_layout_free(layout);
    return false;
}

/* Sets s->op_slots: from the servers of all members, or for a light plan from s->key:
 * there each unit has the slots of the first unit with as many parts. */
static bool
set_op_slots(struct shelf *s, const struct place_plan *plan, bool light,
             const uint32_t *server, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    if (!rec_grow(&s->op_slots, &s->op_slots_room, graph->nops + 1, sizeof *s->op_slots,
                  err))
        return false;
    for (size_t i = 0; !light && i < graph->nops; i++)
        s->op_slots[graph->member[i]] = s->slots[server[i]];
    for (uint32_t i = 0; light && i < plan->nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[plan->step[i].unit];
        const uint32_t *slot = s->key;
        for (uint32_t k = 0, parts;
             (parts = graph->unit[plan->step[plan->kind[k]].unit].parts) != unit->parts;
             k++)
            slot += parts;
        for (uint32_t j = 0; j < unit->parts; j++) {
            s->op_slots[graph->member[unit->first + j]] = slot[j];
            s->op_slots[graph->member[plan->twin[unit->first + j]]] = slot[j];
        }
    }
    return true;
}

/* The layout with the key at hand; REC_NONE: it is not known. Most placements of a graph
 * have one of a few layouts, so the last one is tried first. */
static uint32_t
look_up(struct shelf *s, uint32_t index, bool light)
{
    struct shelf_graph *graph = &s->graph[index];
    struct rec_str key = key_at_hand(s);
    const struct shelf_layout *recent =
        graph->recent < s->nlaid ? &s->laid[graph->recent] : NULL;
    uint32_t place;
    if (recent && recent->light == light && is_layout_of(recent, index) &&
        recent->key_len == key.len && memcmp(recent->key, key.ptr, key.len) == 0)
        return graph->recent;
    if ((place = rec_map_get(&graph->layouts[light], key)) != REC_NONE)
        graph->recent = place;
    return place;
}

/* Has room for what is known of a graph. */
static bool
know(struct shelf *s, uint32_t index, struct rec_error *err)
{
    if (!rec_grow(&s->graph, &s->graph_room, (size_t)index + 1, sizeof *s->graph, err))
        return false;
    for (; s->ngraphs <= index; s->ngraphs++)
        s->graph[s->ngraphs] = (struct shelf_graph){.recent = 0};
    return true;
}

bool
shelf_place(struct shelf *s, uint32_t index, const struct place_plan *plan, bool light,
            const struct place_placement *placement, uint32_t *place,
            struct rec_error *err)
{
    if (!know(s, index, err))
        return false;
    for (uint32_t i = 0; i < placement->nheld; i++)
        s->slots[placement->held[i]] = i;
    if (light ? !set_key(s, plan, s->slots, placement->server, placement->nheld, err)
              : !set_op_slots(s, plan, false, placement->server, err) ||
                    !set_long_key(s, plan, s->op_slots, placement->order,
                                  placement->nheld, err))
        return false;
    *place = look_up(s, index, light);
    return *place != REC_NONE ||
           ((!light || set_op_slots(s, plan, true, NULL, err)) &&
            make(s, index, plan, light, placement->nheld, placement->order, place, err));
}

/* ---- layouts that an agent has made ---------------------------------------- */

/* True if a layout says nothing but slots, and its ops were placed in the order of the
 * plan: a heuristic might have made it. */
static bool
is_plain(const struct place_plan *plan, const struct graph_layout *where)
{
    const struct graph *graph = where->graph;
    uint32_t turn = 0;
    if (plan->tasks || where->priority || where->ntransfers)
        return false;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[plan->step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++) {
            uint32_t twin = graph->op[graph->member[j]].pair;
            if (where->placed[graph->member[j]] != turn++ ||
                (twin != GRAPH_NONE && where->placed[twin] != turn++))
                return false;
        }
    }
    return true;
}

/* Sets s->key to all that a layout says. It is longer than the keys of plain ones. */
static bool
set_act_key(struct shelf *s, const struct graph_layout *where, struct rec_error *err)
{
    size_t nops = where->graph->nops, n = where->ntransfers,
           words = sizeof(double) / sizeof(uint32_t),
           all =
               3 + 2 * nops + (where->priority ? words * nops : 0) + n * (1 + 2 * words);
    uint32_t *at;
    if (!rec_grow(&s->key, &s->key_room, all, sizeof *s->key, err))
        return false;
    at = s->key;
    *at++ = where->priority != NULL;
    *at++ = (uint32_t)n;
    *at++ = where->nslots;
    memcpy(at, where->slot, nops * sizeof *at);
    memcpy(at + nops, where->placed, nops * sizeof *at);
    at += 2 * nops;
    if (where->priority)
        memcpy(at, where->priority, nops * sizeof *where->priority);
    at += where->priority ? words * nops : 0;
    for (size_t i = 0; i < n; i++, at += 1 + 2 * words) {
        const struct graph_transfer *transfer = &where->transfer[i];
        *at = transfer->dep;
        memcpy(at + 1, &transfer->channel, sizeof transfer->channel);
        memcpy(at + 1 + words, &transfer->priority, sizeof transfer->priority);
    }
    s->nkey = all;
    return true;
}

/* Sets s->key for a layout, and which map has it: as those of a heuristic if it is like
 * one. */
static bool
find_key(struct shelf *s, const struct place_plan *plan, const struct graph_layout *where,
         bool *light, struct rec_error *err)
{
    size_t nops = where->graph->nops;
    bool plain = is_plain(plan, where);
    *light = *light && plain;
    if (*light) {
        if (!set_key(s, plan, where->slot, NULL, where->nslots, err) ||
            !set_op_slots(s, plan, true, NULL, err))
            return false;
        if (memcmp(s->op_slots, where->slot, nops * sizeof *where->slot) == 0)
            return true;
        plain = false;
    }
    *light = false;
    return plain ? set_long_key(s, plan, where->slot, NULL, where->nslots, err)
                 : set_act_key(s, where, err);
}

bool
shelf_take(struct shelf *s, uint32_t index, const struct place_plan *plan, bool light,
           struct graph_layout *where, uint32_t *place, struct rec_error *err)
{
    struct sim_layout *layout;
    if (!know(s, index, err) || !find_key(s, plan, where, &light, err))
        return false;
    *place = rec_map_get(&s->graph[index].layouts[light], key_at_hand(s));
    if (*place != REC_NONE)
        return true;
    layout = sim_layout_new(where, err);
    if (layout && keep(s, index, light, layout, place, err))
        return true;
    sim_layout_free(layout);
    return false;
}
