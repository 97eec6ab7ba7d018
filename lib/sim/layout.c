/* Layouts (which slot each op is on), the costs that they remember by geometry, and the
 * pools that bound their memory. A cluster runs the same few graphs on the same few
 * geometries, so most jobs need no simulation. */
#include "channels.h"
#include "company.h"
#include "faults.h"
#include "first.h"

#include <math.h>
#include <stdlib.h>

/* ---- pools ---------------------------------------------------------------- */

/* About the bytes that a layout needs apart from its ops, and those of a remembered cost
 * with its entry in the map. */
enum { LAYOUT_BYTES = 1000, COST_BYTES = sizeof(struct sim_cost) + 32 };

/* A pool has two doubly linked lists: of layouts that jobs hold, and of idle ones in the
 * order in which they became idle, so that the first has been idle longest. */
static struct sim_layout_list *
list_of(const struct sim_layout *layout)
{
    return layout->holds ? &layout->pool->held : &layout->pool->idle;
}

static void
append(struct sim_layout *layout)
{
    struct sim_layout_list *list = list_of(layout);
    layout->before = list->last;
    layout->after = NULL;
    *(list->last ? &list->last->after : &list->first) = layout;
    list->last = layout;
}

static void
unlink_layout(struct sim_layout *layout)
{
    struct sim_layout_list *list = list_of(layout);
    *(layout->before ? &layout->before->after : &list->first) = layout->after;
    *(layout->after ? &layout->after->before : &list->last) = layout->before;
}

/* What a layout counts for in its pool. */
static size_t
bytes_of(const struct sim_layout *layout)
{
    const struct graph_layout *where = &layout->where;
    return sim_layout_bytes(where->graph) + where->ntransfers * sizeof *where->transfer;
}

void
sim_layouts_add(struct sim_layouts *pool, struct sim_layout *layout)
{
    layout->pool = pool;
    layout->serial = pool->serials++;
    append(layout);
    pool->bytes += bytes_of(layout);
}

void
sim_layout_hold(struct sim_layout *layout)
{
    if (layout->holds == 0)
        unlink_layout(layout);
    if (layout->holds++ == 0)
        append(layout);
}

void
sim_layout_release(struct sim_layout *layout)
{
    if (layout->holds == 1)
        unlink_layout(layout);
    if (--layout->holds == 0)
        append(layout);
}

size_t
sim_layout_bytes(const struct graph *graph)
{
    bool tasks =
        graph->nops && graph->op[0].pass == GRAPH_TASK; /* tasks are given priorities */
    return LAYOUT_BYTES +
           graph->nops * (2 * sizeof(uint32_t) + (tasks ? sizeof(double) : 0));
}

struct sim_layout *
sim_layouts_excess(const struct sim_layouts *pool, size_t bytes)
{
    return pool->bytes + bytes > pool->limit ? pool->idle.first : NULL;
}

static void
leave_pool(struct sim_layout *layout)
{
    unlink_layout(layout);
    layout->pool->bytes -= bytes_of(layout);
    layout->pool = NULL;
}

/* ---- layouts -------------------------------------------------------------- */

static void
forget_costs(struct sim_layout *layout)
{
    if (layout->pool)
        layout->pool->cost_bytes -= layout->cost_bytes;
    layout->cost_bytes = 0;
    free(layout->cost);
    rec_map_free(&layout->memo);
    rec_map_free(&layout->by_times);
    rec_arena_free(&layout->arena);
    layout->cost = NULL;
    layout->ncosts = layout->cost_room = 0;
}

static size_t
exchange_bytes(const struct sim_layout *layout)
{
    const struct graph_exchanges *e = &layout->exchanges;
    const struct graph *graph = layout->where.graph;
    size_t bytes = e->room * sizeof *e->exchange + e->member_room * sizeof *e->member;
    if (e->of_dep)
        bytes += (graph->ndeps + graph->ncolls) * sizeof *e->of_dep +
                 (layout->pool && layout->pool->sharing ? sim_plan_bytes(graph) : 0);
    return bytes;
}

/* Forgets which deps the exchanges are of. What remains is small, and is all that times
 * need: most new geometries have times that are known from another one. */
static void
forget_deps(struct sim_layout *layout)
{
    layout->pool->exchange_bytes -= exchange_bytes(layout);
    free(layout->exchanges.of_dep);
    free(layout->exchanges.of_coll);
    layout->exchanges.of_dep = layout->exchanges.of_coll = NULL;
    layout->pool->exchange_bytes += exchange_bytes(layout);
}

static void
forget_exchanges(struct sim_layout *layout)
{
    if (layout->pool)
        layout->pool->exchange_bytes -= exchange_bytes(layout);
    graph_exchanges_free(&layout->exchanges);
    sim_plan_free(layout->plan);
    layout->plan = NULL;
}

void
sim_layout_free(struct sim_layout *layout)
{
    if (!layout)
        return;
    forget_costs(layout);
    forget_exchanges(layout);
    if (layout->pool)
        leave_pool(layout);
    graph_lanes_free(&layout->lanes);
    graph_layout_free(&layout->where);
    free(layout->slot_memory);
    free(layout);
}

/* Sums the memory of each slot, which a step needs where ops hold bytes. */
static bool
sum_memory(struct sim_layout *layout, struct rec_error *err)
{
    const struct graph_layout *where = &layout->where;
    double *memory = malloc(((size_t)where->nslots + 1) * sizeof *memory);

    if (!memory)
        return rec_fail_memory(err);
    layout->bound_slot = graph_layout_memory_bound(where, memory);
    layout->memory_bound = memory[layout->bound_slot];
    layout->full_slot =
        where->graph->nholds ? graph_layout_memory(where, memory) : layout->bound_slot;
    layout->memory = memory[layout->full_slot];
    for (uint32_t i = 0; i < where->nslots; i++)
        layout->memory_sum += memory[i];
    if (where->graph->nholds)
        layout->slot_memory = memory;
    else
        free(memory);
    return true;
}

struct sim_layout *
sim_layout_new(struct graph_layout *where, struct rec_error *err)
{
    struct sim_layout *layout = calloc(1, sizeof *layout);
    if (!layout) {
        graph_layout_free(where);
        rec_fail_memory(err);
        return NULL;
    }
    layout->where = *where;
    *where = (struct graph_layout){.id = NULL};
    if (!graph_layout_check(&layout->where, err) ||
        !graph_lanes_make(&layout->lanes, &layout->where, err) ||
        !sum_memory(layout, err)) {
        sim_layout_free(layout);
        return NULL;
    }
    layout->op_memory = graph_memory_sum(layout->where.graph);
    layout->dep_bytes = graph_dep_bytes(layout->where.graph);
    return layout;
}

/* ---- time of the exchanges -------------------------------------------------- */

/* Forgets what the layouts of a list but this one exchange, wholly or in part. */
static void
forget_others(const struct sim_layout_list *list, const struct sim_layout *layout,
              void (*forget)(struct sim_layout *))
{
    for (struct sim_layout *other = list->first; other; other = other->after)
        if (other != layout)
            forget(other);
}

/* Finds what a layout exchanges. It is the same for all geometries, so it is kept, as
 * long as all layouts of the pool need no more than SIM_EXCHANGES_MAX for it. Where jobs
 * share links, a courier looks it up while they run. Without `deps`, it needs not be
 * known of which deps the exchanges are. */
static bool
find_exchanges(struct sim_layout *layout, const struct net *net, bool deps,
               struct rec_error *err)
{
    struct sim_layouts *pool = layout->pool;
    enum graph_same same =
        pool && (pool->sharing || pool->explains) ? GRAPH_SAME_NONE : net_same(net);
    if (layout->exchanges.of_dep || (!deps && layout->exchanges.n > 0))
        return true;
    forget_exchanges(layout);
    if (!graph_exchanges_make(layout->where.graph, layout->where.slot,
                              layout->where.nslots, net_sync(net), same,
                              &layout->exchanges, err))
        return false;
    if (!pool)
        return true;
    pool->exchange_bytes += exchange_bytes(layout);
    if (!pool->sharing && pool->exchange_bytes > SIM_EXCHANGES_MAX) {
        forget_others(&pool->idle, layout, forget_deps);
        forget_others(&pool->held, layout, forget_deps);
    }
    if (pool->exchange_bytes > SIM_EXCHANGES_MAX)
        forget_others(&pool->idle, layout, forget_exchanges);
    if (!pool->sharing && pool->exchange_bytes > SIM_EXCHANGES_MAX)
        forget_others(&pool->held, layout, forget_exchanges);
    return true;
}

/* The times that the exchanges of a layout take alone with its slots on these servers,
 * seconds. NULL: *err. */
static double *
time_exchanges(const struct sim_member *member, struct rec_error *err)
{
    const struct graph_exchanges *e = &member->layout->exchanges;
    double *alone = malloc((e->n + 1) * sizeof *alone);
    uint32_t *server = malloc((e->nmembers + 1) * sizeof *server);
    struct net_exchange *on = malloc((e->n + 1) * sizeof *on);
    bool ok = (alone && server && on) || rec_fail_memory(err);
    for (size_t i = 0; ok && i < e->nmembers; i++)
        server[i] = member->servers[e->member[i]];
    for (size_t i = 0; ok && i < e->n; i++)
        on[i] = (struct net_exchange){e->exchange[i].kind, server + e->exchange[i].first,
                                      e->exchange[i].n, e->exchange[i].bytes,
                                      e->exchange[i].flow};
    ok = ok && net_alone(member->net, on, e->n, alone, err);
    free(server);
    free(on);
    if (ok)
        return alone;
    free(alone);
    return NULL;
}

/* Sets seconds[] to the time of each dep, and behind these of each coll: that of its
 * exchange. */
static void
time_deps(const struct sim_layout *layout, const double *alone, double *seconds)
{
    const struct graph_exchanges *e = &layout->exchanges;
    size_t ndeps = layout->where.graph->ndeps, ncolls = layout->where.graph->ncolls;
    for (size_t d = 0; d < ndeps; d++)
        seconds[d] = e->of_dep[d] == GRAPH_NONE ? 0 : alone[e->of_dep[d]];
    for (size_t c = 0; c < ncolls; c++)
        seconds[ndeps + c] = e->of_coll[c] == GRAPH_NONE ? 0 : alone[e->of_coll[c]];
}

static void
name_server(const void *names, uint32_t slot, char name[NET_NAME_MAX])
{
    const struct sim_member *member = names;
    net_format_server(member->net, member->servers[slot], name);
}

static void
pace_of(const void *names, uint32_t slot, double *speed, double *delay)
{
    const struct sim_member *member = names;
    net_pace(member->net, member->servers[slot], speed, delay);
}

/* True if servers may be slow or late. */
static bool
is_slow(const struct sim_member *member)
{
    return member->health != SIM_ALL_WELL && net_has_stragglers(member->net);
}

bool
sim_layout_place(const struct sim_member *member, struct sim_placed *placed,
                 struct rec_error *err)
{
    struct sim_layout *layout = member->layout;
    *placed = (struct sim_placed){.graph = layout->where.graph,
                                  .nservers = layout->where.nslots,
                                  .server = layout->where.slot,
                                  .placed = layout->where.placed,
                                  .priority = layout->where.priority,
                                  .lane = layout->lanes.lane,
                                  .nlanes = layout->lanes.n,
                                  .turn = layout->lanes.turn,
                                  .memory = layout->slot_memory,
                                  .pace = is_slow(member) ? pace_of : NULL,
                                  .lane_name = layout->lanes.name,
                                  .name_server = name_server,
                                  .names = member};
    if (!find_exchanges(layout, member->net, true, err))
        return false;
    placed->exchange = layout->exchanges.of_dep;
    placed->coll_exchange = layout->exchanges.of_coll;
    return true;
}

void
sim_layout_share(const struct sim_member *member, struct sim_placed *placed,
                 const struct sim_courier *courier)
{
    const struct sim_sharing *sharing = member->layout->pool->sharing;
    placed->courier = courier;
    placed->member = member->number;
    if (sharing->courier->key == sim_key_by_exchange)
        placed->plan = &member->layout->plan;
}

/* A step of a job that shares its links with none but itself. REC_NO: it stands still, as
 * a link has failed. */
static bool
carry(const struct sim_member *member, struct sim_placed *placed,
      const struct sim_observer *observer, struct sim_step *step, struct rec_error *err)
{
    const struct sim_layouts *pool = member->layout->pool;
    bool ok = (placed->carrier = pool->sharing->open(pool->shared, err)) &&
              pool->sharing->take(placed->carrier, member, NULL, 0, err) &&
              sim_first_begin(member->first, member->layout, 0, err);
    sim_layout_share(member, placed, pool->sharing->courier);
    placed->may_stand = sim_faults_failed(pool->faults);
    ok = ok &&
         sim_step(placed, observer ? observer : sim_first_observer(member->first), step,
                  err) &&
         sim_first_end(member->first, step->seconds, err);
    sim_first_stop(member->first);
    if (placed->carrier)
        pool->sharing->close(placed->carrier);
    return ok;
}

static bool
step_by_courier(const struct sim_member *member, struct sim_placed *placed,
                const struct sim_observer *observer, struct sim_step *step,
                struct rec_error *err)
{
    struct sim_member well = *member;
    if (carry(member, placed, observer, step, err))
        return true;
    if (err->code != REC_NO)
        return false;
    well.health = SIM_LINKS_WELL;
    well.loads = NULL;
    well.first = NULL;
    if (!carry(&well, placed, NULL, step, err))
        return false;
    step->seconds = step->comm = (double)INFINITY;
    return true;
}

static bool
step_by_times(const struct sim_member *member, const double *alone,
              struct sim_placed *placed, const struct sim_observer *observer,
              struct sim_step *step, struct rec_error *err)
{
    const struct graph_layout *layout = &member->layout->where;
    size_t n = placed->graph->ndeps + placed->graph->ncolls;
    double *seconds = malloc((n + 1) * sizeof *seconds);
    struct sim_channels *channels = NULL;
    bool ok = seconds || rec_fail_memory(err);
    if (ok)
        time_deps(member->layout, alone, seconds);
    placed->dep_seconds = seconds;
    placed->coll_seconds = seconds ? seconds + placed->graph->ndeps : NULL;
    if (ok && layout->ntransfers) {
        ok = (channels = sim_channels_new(layout, placed, err)) != NULL;
        placed->courier = &sim_channels_courier;
        placed->carrier = channels;
    }
    ok = ok && sim_step(placed, observer, step, err);
    placed->courier = NULL;
    placed->dep_seconds = placed->coll_seconds = NULL;
    sim_channels_free(channels);
    free(seconds);
    return ok;
}

static bool
is_shared(const struct sim_layout *layout)
{
    return layout->pool && layout->pool->sharing;
}

/* Simulates a step whose exchanges take these times alone. */
static bool
simulate(const struct sim_member *member, const double *alone, struct sim_placed *placed,
         const struct sim_observer *observer, struct sim_cost *cost,
         struct rec_error *err)
{
    const struct graph_exchanges *e = &member->layout->exchanges;
    bool shared = is_shared(member->layout);
    if (!step_by_times(member, alone, placed, shared ? NULL : observer, &cost->step, err))
        return false;
    cost->estimate = cost->step.seconds;
    if (shared && !step_by_courier(member, placed, observer, &cost->step, err))
        return false;
    cost->traffic = (struct net_traffic){e->flows, e->collectives, e->flow_bytes};
    return true;
}

/* The times of the exchanges of a member, which are owned. */
static bool
prepare(const struct sim_member *member, double **alone, struct rec_error *err)
{
    const struct graph_layout *where = &member->layout->where;
    if (is_shared(member->layout) && where->ntransfers)
        return rec_fail(err, REC_DATA,
                        "layout '%s' gives deps channels, which links that jobs share do "
                        "not have",
                        where->id);
    return find_exchanges(member->layout, member->net, false, err) &&
           (*alone = time_exchanges(member, err)) != NULL;
}

bool
sim_member_observe(const struct sim_member *member, const struct sim_observer *observer,
                   struct sim_cost *cost, struct rec_error *err)
{
    struct sim_placed placed;
    double *alone = NULL;
    bool ok = prepare(member, &alone, err) && sim_layout_place(member, &placed, err) &&
              simulate(member, alone, &placed, observer, cost, err);
    free(alone);
    return ok;
}

bool
sim_layout_observe(struct sim_layout *layout, const struct net *net,
                   const uint32_t *servers, const struct sim_observer *observer,
                   struct sim_cost *cost, struct rec_error *err)
{
    struct sim_member member = {
        .layout = layout, .net = net, .servers = servers, .health = SIM_AS_IT_IS};
    return sim_member_observe(&member, observer, cost, err);
}

double
sim_layout_peak(const struct sim_layout *layout, const struct sim_cost *cost,
                uint32_t *slot)
{
    bool holds = layout->where.graph->nholds > 0;
    *slot = holds ? cost->step.peak_server : layout->full_slot;
    return holds ? cost->step.peak_memory : layout->memory;
}

/* ---- remembered costs ------------------------------------------------------ */

/* Forgets all costs of a pool when they need too much memory. This is rare, so it is not
 * worth keeping the costs in order of their use. */
static void
bound_costs(struct sim_layouts *pool)
{
    struct sim_layout *layout;
    if (pool->cost_bytes <= SIM_COSTS_MAX)
        return;
    for (layout = pool->idle.first; layout; layout = layout->after)
        forget_costs(layout);
    for (layout = pool->held.first; layout; layout = layout->after)
        forget_costs(layout);
}

/* Adds `index` to a map of the layout. */
static bool
remember(struct sim_layout *layout, struct rec_map *map, struct rec_str key,
         uint32_t index, struct rec_error *err)
{
    key.ptr = rec_arena_copy(&layout->arena, key, err);
    layout->cost_bytes += key.len;
    if (layout->pool)
        layout->pool->cost_bytes += key.len;
    return key.ptr && rec_map_add(map, key, index, err);
}

/* Simulates a step, and adds its cost, number *index. */
static bool
add_cost(const struct sim_member *member, const double *alone, uint32_t *index,
         struct rec_error *err)
{
    struct sim_layout *layout = member->layout;
    struct sim_placed placed;
    /* most layouts need one cost; rec_grow() would allocate more */
    if (!layout->cost && (layout->cost = malloc(sizeof *layout->cost)))
        layout->cost_room = 1;
    if (!rec_grow(&layout->cost, &layout->cost_room, layout->ncosts + 1,
                  sizeof *layout->cost, err) ||
        !sim_layout_place(member, &placed, err) ||
        !simulate(member, alone, &placed, NULL, &layout->cost[layout->ncosts], err))
        return false;
    *index = (uint32_t)layout->ncosts++;
    layout->cost_bytes += COST_BYTES;
    if (layout->pool)
        layout->pool->cost_bytes += COST_BYTES;
    return true;
}

/* Finds the cost of a new geometry, *index, and remembers it. Where jobs share no links
 * and all servers are healthy, a step is a function of the times that its exchanges take
 * alone: if these are known from another geometry, there is nothing to simulate. */
static bool
learn(const struct sim_member *member, struct rec_str geometry, uint32_t *index,
      struct rec_error *err)
{
    struct sim_layout *layout = member->layout;
    struct sim_member unseen = *member; /* what is tried out, no link has carried */
    double *alone = NULL;
    struct rec_str times;
    bool by_times, ok;
    unseen.loads = NULL;
    unseen.first = NULL;
    if (layout->pool)
        bound_costs(layout->pool);
    *index = REC_NONE;
    ok = prepare(&unseen, &alone, err);
    by_times = ok && !is_shared(layout) && !is_slow(member);
    times = (struct rec_str){(const char *)alone, layout->exchanges.n * sizeof *alone};
    if (by_times)
        *index = rec_map_get(&layout->by_times, times);
    if (ok && *index == REC_NONE)
        ok = add_cost(&unseen, alone, index, err) &&
             (!by_times || remember(layout, &layout->by_times, times, *index, err));
    free(alone);
    return ok && remember(layout, &layout->memo, geometry, *index, err);
}

bool
sim_member_cost(const struct sim_member *member, struct sim_cost *cost,
                struct rec_error *err)
{
    struct sim_layout *layout = member->layout;
    const struct net *net = member->net;
    uint32_t n = layout->where.nslots, index = REC_NONE;
    size_t numbers = net_geometry_numbers(net, n), bytes = numbers * sizeof(uint32_t);
    struct sim_state state = {0};
    uint32_t *geometry = NULL;
    bool ok = sim_faults_state(member, 0, &state, err) &&
              ((geometry = malloc(bytes + state.n + 1)) || rec_fail_memory(err)) &&
              net_geometry(net, member->servers, n, geometry, err);
    if (ok) {
        struct rec_str key = {(const char *)geometry, bytes + state.n};
        if (member->health == SIM_ALL_WELL && net_has_stragglers(net))
            memset(geometry + numbers - n, 0, n * sizeof *geometry);
        if (state.n > 0)
            memcpy((char *)geometry + bytes, state.bytes, state.n);
        index = rec_map_get(&layout->memo, key);
        ok = index != REC_NONE || learn(member, key, &index, err);
    }
    if (ok)
        *cost = layout->cost[index];
    free(state.bytes);
    free(geometry);
    return ok;
}

bool
sim_layout_cost(struct sim_layout *layout, const struct net *net, const uint32_t *servers,
                struct sim_cost *cost, struct rec_error *err)
{
    struct sim_member member = {
        .layout = layout, .net = net, .servers = servers, .health = SIM_AS_IT_IS};
    return sim_member_cost(&member, cost, err);
}
