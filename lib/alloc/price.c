/*
 * Prices graphs. Four results are remembered, because a million jobs may use a few
 * graphs: the plan of a graph; the layouts that its placements had (which op shares a
 * server with which), each with the costs of the geometries it was used with (sim.h);
 * the placement that a graph gets in a state of the cluster, and its outline (trial.h).
 * So a job whose graph and layout are known takes time in proportion to its servers, and
 * an alternative whose outline is known that of a look into a table.
 */
#include "price.h"

#include <math.h>
#include <stdlib.h>

/* What is remembered of a graph. */
struct known {
    struct place_plan plan;
    bool planned;
    uint32_t degree;
    /* A key, see key_of() and set_act_key() -> index into pricer->laid: [true] of layouts
     * by which light plans are placed. */
    struct rec_map layouts[2];
    uint32_t recent; /* the index into pricer->laid of the layout that was found last */
    /* What placing it on an empty cluster gave, if that is known: */
    bool alone_known;
    enum place_outcome alone;
    double alone_step; /* time of a step, seconds; INFINITY: it was not placed */
};

/* A way of placing. */
struct way {
    const struct place_options *options; /* borrowed */
    struct place_placer *placer;
    /* The servers that are free, as of the last settle(), and those that would be free if
     * there were no jobs. Ways with the same index, and those without
     * one, share them. */
    struct place_vacancy *now, *alone;
    bool shares; /* they belong to a way before this one */
    char name[PLACE_NAME_MAX];
};

/* A layout. */
struct laid {
    struct sim_layout *layout; /* NULL: the entry is unused */
    bool light;                /* it is in known->layouts[light], */
    struct rec_str key;        /* with this key */
    char *own;                 /* the bytes of the key; NULL: those of layout->slot */
    uint64_t serial;           /* which layout has this entry: counts those made */
};

struct pricer {
    const struct net *net;           /* borrowed */
    const struct graph_store *store; /* borrowed */
    struct way *way;
    uint32_t nways;
    size_t way_room;
    uint64_t *settled; /* trials.state when the vacancies were last told of changes */
    struct trials trials;
    struct trial last; /* the last placement; its servers belong to the placer */
    /* How often the vacancies were told of changes, and what that was when `last` was
     * placed on the servers that are free; UINT64_MAX: on others. */
    uint64_t settles, last_settled;
    struct known *known; /* per graph of the store */
    size_t nknown, known_room;
    struct laid *laid;
    uint32_t *vacant; /* indexes of unused entries of laid */
    size_t nlaid, laid_room, nvacant, vacant_room;
    uint64_t serial; /* layouts made so far */
    struct sim_layouts pool;
    /* Scratch: */
    uint32_t *slots;    /* per server of a placement: its slot */
    uint32_t *op_slots; /* per op: its slot */
    uint32_t *key;      /* see set_key() */
    size_t op_slots_room, key_room, nkey;
};

struct pricer *
pricer_new(const struct place_options *options, const struct graph_store *store,
           size_t layouts, bool futures, struct rec_error *err)
{
    struct pricer *p = calloc(1, sizeof *p);
    if (!p) {
        rec_fail_memory(err);
        return NULL;
    }
    p->net = options->net;
    p->store = store;
    p->pool.limit = layouts;
    p->slots = calloc(net_servers(options->net), sizeof *p->slots);
    p->settled = calloc(net_servers(options->net) / 64 + 1, sizeof *p->settled);
    if (!p->slots || !p->settled)
        rec_fail_memory(err);
    else if (pricer_add_way(p, options, err) &&
             trials_init(&p->trials, net_servers(options->net), futures, err))
        return p;
    pricer_free(p);
    return NULL;
}

bool
pricer_add_way(struct pricer *p, const struct place_options *options,
               struct rec_error *err)
{
    struct way *way;
    if (!rec_grow(&p->way, &p->way_room, p->nways + 1, sizeof *p->way, err))
        return false;
    way = &p->way[p->nways++];
    *way = (struct way){.options = options};
    place_options_name(options, way->name);
    if (!(way->placer = place_placer_new(options, err)))
        return false;
    for (const struct way *before = p->way; before < way && !way->shares; before++)
        if (!options->kind->index_new ||
            before->options->kind->index_new == options->kind->index_new) {
            way->now = before->now;
            way->alone = before->alone;
            way->shares = true;
        }
    return way->shares ||
           ((way->now = place_vacancy_new(options->kind, options->net, err)) &&
            (way->alone = place_vacancy_new(options->kind, options->net, err)));
}

uint32_t
pricer_ways(const struct pricer *p)
{
    return p->nways;
}

const char *
pricer_way_name(const struct pricer *p, uint32_t way)
{
    return p->way[way].name;
}

void
pricer_free(struct pricer *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->nways; i++) {
        place_placer_free(p->way[i].placer);
        if (p->way[i].shares)
            continue;
        place_vacancy_free(p->way[i].now);
        place_vacancy_free(p->way[i].alone);
    }
    free(p->way);
    for (size_t i = 0; i < p->nknown; i++) {
        place_plan_free(&p->known[i].plan);
        rec_map_free(&p->known[i].layouts[false]);
        rec_map_free(&p->known[i].layouts[true]);
    }
    for (size_t i = 0; i < p->nlaid; i++) {
        sim_layout_free(p->laid[i].layout);
        free(p->laid[i].own);
    }
    trials_free(&p->trials);
    free(p->settled);
    free(p->known);
    free(p->laid);
    free(p->vacant);
    free(p->slots);
    free(p->op_slots);
    free(p->key);
    free(p);
}

void
pricer_take(struct pricer *p, uint32_t server)
{
    trials_flip(&p->trials, server);
}

void
pricer_give_back(struct pricer *p, uint32_t server)
{
    trials_flip(&p->trials, server);
}

void
pricer_set_down(struct pricer *p, uint32_t server)
{
    for (uint32_t i = 0; i < p->nways; i++)
        place_set_free(p->way[i].alone, server, false);
    pricer_take(p, server);
}

/* Tells the vacancies which servers were taken or came free: they are only needed to
 * place something that is not known yet. */
static void
settle(struct pricer *p)
{
    for (size_t w = 0; w < p->trials.nwords; w++) {
        uint64_t state = p->trials.state[w];
        p->settles += state != p->settled[w];
        for (uint64_t differ = state ^ p->settled[w]; differ; differ &= differ - 1) {
            int bit = __builtin_ctzll(differ);
            for (uint32_t i = 0; i < p->nways; i++)
                if (!p->way[i].shares)
                    place_set_free(p->way[i].now, (uint32_t)(w * 64 + (size_t)bit),
                                   !(state >> bit & 1));
        }
        p->settled[w] = state;
    }
}

const struct place_vacancy *
pricer_vacancy(struct pricer *p)
{
    settle(p);
    return p->way[0].now;
}

const uint64_t *
pricer_taken(const struct pricer *p, size_t *nwords)
{
    *nwords = p->trials.nwords;
    return p->trials.state;
}

void
pricer_flip(struct pricer *p, const uint64_t *servers, uint64_t marks)
{
    trials_flip_all(&p->trials, servers, marks);
}

const struct net *
pricer_net(const struct pricer *p)
{
    return p->net;
}

/* What is known of a graph, with its plan. NULL: *err. */
static struct known *
know(struct pricer *p, uint32_t index, struct rec_error *err)
{
    const struct graph *graph = p->store->graph[index];
    struct known *known;

    if (!rec_grow(&p->known, &p->known_room, p->store->ngraphs, sizeof *p->known, err))
        return NULL;
    for (; p->nknown < p->store->ngraphs; p->nknown++)
        p->known[p->nknown] = (struct known){0};
    known = &p->known[index];
    if (known->planned)
        return known;
    if (!place_plan_make(graph, &known->plan, err))
        return NULL;
    known->planned = true;
    known->degree = 1;
    for (size_t u = 0; u < graph->nunits; u++)
        if (graph->unit[u].parts > known->degree)
            known->degree = graph->unit[u].parts;
    if (graph->degree > 0)
        known->degree = graph->degree;
    return known;
}

bool
pricer_degree(struct pricer *p, uint32_t index, uint32_t *degree, struct rec_error *err)
{
    const struct known *known = know(p, index, err);
    if (known)
        *degree = known->degree;
    return known != NULL;
}

/*
 * Sets p->key, by which a layout of a light plan is looked up: for each number of parts
 * the slots of the first unit that has it. They say where all other units go, and are
 * much shorter than the slots of all ops. `slot` is per server if `server` is given,
 * which says the server of each member; else it is per op.
 */
static bool
set_key(struct pricer *p, const struct known *known, const uint32_t *slot,
        const uint32_t *server, struct rec_error *err)
{
    const struct place_plan *plan = &known->plan;
    const struct graph *graph = plan->graph;
    p->nkey = 0;
    if (!rec_grow(&p->key, &p->key_room, 1, sizeof *p->key, err)) /* of an empty graph */
        return false;
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        const struct graph_unit *unit = &graph->unit[plan->step[plan->kind[k]].unit];
        if (!rec_grow(&p->key, &p->key_room, p->nkey + unit->parts, sizeof *p->key, err))
            return false;
        for (uint32_t i = unit->first; i < unit->first + unit->parts; i++)
            p->key[p->nkey++] = slot[server ? server[i] : graph->member[i]];
    }
    return true;
}

/* The key of a layout in known->layouts: p->key of a light plan, else the slots of all
 * ops. It is a view of these numbers, not a copy. */
static struct rec_str
key_of(const struct pricer *p, const struct known *known, bool light,
       const uint32_t *op_slots)
{
    size_t n = light ? p->nkey : known->plan.graph->nops;
    return (struct rec_str){(const char *)(light ? p->key : op_slots),
                            n * sizeof *op_slots};
}

/* Frees the layout at `place`, which no job holds. */
static bool
forget_layout(struct pricer *p, struct known *known, uint32_t place,
              struct rec_error *err)
{
    if (!rec_grow(&p->vacant, &p->vacant_room, p->nvacant + 1, sizeof *p->vacant, err))
        return false;
    p->vacant[p->nvacant++] = place;
    rec_map_remove(&known->layouts[p->laid[place].light], p->laid[place].key);
    sim_layout_free(p->laid[place].layout);
    free(p->laid[place].own);
    p->laid[place] = (struct laid){0};
    return true;
}

bool
pricer_forget(struct pricer *p, struct rec_error *err)
{
    struct sim_layout *old;
    while ((old = sim_layouts_excess(&p->pool, 0))) {
        uint32_t graph = graph_store_find(p->store, rec_str(old->where.graph->id));
        if (!forget_layout(p, &p->known[graph], old->tag, err))
            return false;
    }
    return true;
}

/* True if this is a layout of the graph. */
static bool
is_layout_of(const struct laid *laid, const struct graph *graph)
{
    return laid->layout && laid->layout->where.graph == graph;
}

bool
pricer_drop(struct pricer *p, uint32_t index, bool *dropped, struct rec_error *err)
{
    const struct graph *graph = p->store->graph[index];
    *dropped = false;
    for (uint32_t i = 0; i < p->nlaid; i++)
        if (is_layout_of(&p->laid[i], graph) && p->laid[i].layout->holds > 0)
            return true;
    for (uint32_t i = 0; i < p->nlaid; i++)
        if (is_layout_of(&p->laid[i], graph) &&
            !forget_layout(p, &p->known[index], i, err))
            return false;
    if (index < p->nknown) {
        place_plan_free(&p->known[index].plan);
        rec_map_free(&p->known[index].layouts[false]);
        rec_map_free(&p->known[index].layouts[true]);
        p->known[index] = (struct known){0};
    }
    *dropped = true;
    return true;
}

/* Puts a sealed layout among those that are known, and into the pool that bounds their
 * memory. The key is that of the plan, or of p->key, which is copied. */
static bool
keep_layout(struct pricer *p, struct known *known, bool light, struct sim_layout *layout,
            struct rec_str key, uint32_t *place, struct rec_error *err)
{
    char *own = NULL;
    if (key.ptr == (const char *)p->key) {
        if (!(own = malloc(key.len + 1)))
            return rec_fail_memory(err);
        key.ptr = memcpy(own, key.ptr, key.len);
    }
    *place = (uint32_t)(p->nvacant ? p->vacant[p->nvacant - 1] : p->nlaid);
    if (!rec_grow(&p->laid, &p->laid_room, p->nlaid + 1, sizeof *p->laid, err) ||
        !rec_map_add(&known->layouts[light], key, *place, err)) {
        free(own);
        return false;
    }
    if (p->nvacant)
        p->nvacant--;
    else
        p->nlaid++;
    layout->tag = *place;
    p->laid[*place] = (struct laid){layout, light, key, own, ++p->serial};
    sim_layouts_add(&p->pool, layout);
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

/* Makes a layout that puts each op on its slot in p->op_slots. Ops are placed in the
 * order of the plan's steps, or in `order` if it is not NULL, each followed by its
 * twin. */
static bool
make_layout(struct pricer *p, struct known *known, bool light, uint32_t nslots,
            const uint32_t *order, uint32_t *place, struct rec_error *err)
{
    const struct graph *graph = known->plan.graph;
    struct graph_layout where;
    struct sim_layout *layout;
    uint32_t turn = 0;

    if (!graph_layout_start(&where, rec_str(""), graph, nslots, err))
        return false;
    memcpy(where.slot, p->op_slots, graph->nops * sizeof *where.slot);
    for (uint32_t i = 0; i < known->plan.nsteps; i++) {
        const struct place_step *step = &known->plan.step[order ? order[i] : i];
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
    if (layout && keep_layout(p, known, light, layout,
                              key_of(p, known, light, layout->where.slot), place, err))
        return true;
    sim_layout_free(layout);
    return false;
}

/* Sets p->op_slots: from the servers of all members, or for a light plan from p->key:
 * there each unit has the slots of the first unit with as many parts. */
static bool
set_op_slots(struct pricer *p, const struct known *known, bool light,
             const uint32_t *server, struct rec_error *err)
{
    const struct place_plan *plan = &known->plan;
    const struct graph *graph = plan->graph;
    if (!rec_grow(&p->op_slots, &p->op_slots_room, graph->nops + 1, sizeof *p->op_slots,
                  err))
        return false;
    for (size_t i = 0; !light && i < graph->nops; i++)
        p->op_slots[graph->member[i]] = p->slots[server[i]];
    for (uint32_t i = 0; light && i < plan->nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[plan->step[i].unit];
        const uint32_t *slot = p->key;
        for (uint32_t k = 0, parts;
             (parts = graph->unit[plan->step[plan->kind[k]].unit].parts) != unit->parts;
             k++)
            slot += parts;
        for (uint32_t j = 0; j < unit->parts; j++) {
            p->op_slots[graph->member[unit->first + j]] = slot[j];
            p->op_slots[graph->member[plan->twin[unit->first + j]]] = slot[j];
        }
    }
    return true;
}

/* The layout with the key at hand; REC_NONE: it is not known. Most placements of a graph
 * have one of a few layouts, so the last one is tried first. */
static uint32_t
look_up(const struct pricer *p, struct known *known, bool light)
{
    struct rec_str key = key_of(p, known, light, p->op_slots);
    const struct laid *recent = known->recent < p->nlaid ? &p->laid[known->recent] : NULL;
    uint32_t place;
    if (recent && recent->light == light && is_layout_of(recent, known->plan.graph) &&
        recent->key.len == key.len && memcmp(recent->key.ptr, key.ptr, key.len) == 0)
        return known->recent;
    if ((place = rec_map_get(&known->layouts[light], key)) != REC_NONE)
        known->recent = place;
    return place;
}

/* Finds the layout of a placement, or makes it. The slot of a server is its position
 * among the servers that the job holds. */
static bool
find_layout(struct pricer *p, struct known *known, bool light,
            const struct place_placement *placement, struct trial *t,
            struct rec_error *err)
{
    for (uint32_t i = 0; i < placement->nheld; i++)
        p->slots[placement->held[i]] = i;
    if (light ? !set_key(p, known, p->slots, placement->server, err)
              : !set_op_slots(p, known, false, placement->server, err))
        return false;
    t->place = look_up(p, known, light);
    if (t->place == REC_NONE &&
        ((light && !set_op_slots(p, known, true, NULL, err)) ||
         !make_layout(p, known, light, t->nservers, placement->order, &t->place, err)))
        return false;
    t->layout = p->laid[t->place].layout;
    t->serial = p->laid[t->place].serial;
    return true;
}

/* Places a graph on the servers that `vacancy` says are free, and simulates a step. The
 * result is in p->last. */
static bool
place_graph(struct pricer *p, uint32_t index, uint32_t way,
            const struct place_vacancy *vacancy, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    struct place_placer *placer = p->way[way].placer;
    struct trial *trial = &p->last;
    struct place_placement placement;
    bool light;

    if (!known)
        return false;
    p->last_settled = vacancy == p->way[way].now ? p->settles : UINT64_MAX;
    light = place_is_light(placer, &known->plan);
    if (light ? !place_light(placer, &known->plan, vacancy, &placement, err)
              : !place_on(placer, &known->plan, vacancy, &placement, err))
        return false;
    *trial = (struct trial){.key = index * p->nways + way + 1,
                            .outcome = placement.outcome,
                            .failed = placement.failed,
                            .left = placement.left};
    if (trial->outcome != PLACE_PLACED)
        return true;
    trial->servers = (uint32_t *)(uintptr_t)placement.held;
    trial->nservers = placement.nheld;
    return find_layout(p, known, light, &placement, trial, err) &&
           sim_layout_cost(trial->layout, p->net, trial->servers, &trial->cost, err);
}

/* Does the way have no place whenever the one before it has none, if memory is no limit?
 * Numbers of places ascend. */
static bool
follows(const struct pricer *p, uint32_t way)
{
    const struct place_kind *before = p->way[way - 1].options->kind;
    return !before->numbered || before == p->way[way].options->kind;
}

/* Has the graph just been tried in the way before this one, where no block was free for
 * some op, and would this way find none, either? */
static bool
fails_again(const struct pricer *p, uint32_t index, uint32_t way)
{
    return way > 0 && follows(p, way) && p->last.key == index * p->nways + way &&
           p->last_settled == p->settles && p->last.outcome == PLACE_NO_BLOCK &&
           place_is_light(p->way[way - 1].placer, &p->known[index].plan) &&
           place_is_light(p->way[way].placer, &p->known[index].plan);
}

const struct trial *
pricer_try_way(struct pricer *p, uint32_t index, uint32_t way, struct rec_error *err)
{
    /* A remembered trial is void if its layout was forgotten since: another one may have
     * its entry, with another serial. A serial of 0 means that nothing was placed. */
    const struct trial *trial = trials_find(&p->trials, index * p->nways + way);
    if (trial && (trial->serial == 0 || p->laid[trial->place].serial == trial->serial))
        return trial;
    settle(p);
    if (fails_again(p, index, way))
        p->last.key++;
    else if (!place_graph(p, index, way, p->way[way].now, err))
        return NULL;
    if (!trials_keep(&p->trials, &p->last, err))
        return NULL;
    return &p->last;
}

const struct trial *
pricer_try(struct pricer *p, uint32_t index, struct rec_error *err)
{
    return pricer_try_way(p, index, 0, err);
}

uint64_t
pricer_mask(const struct pricer *p, const struct trial *trial, uint64_t *taken)
{
    uint64_t marks = 0;
    memset(taken, 0, p->trials.nwords * sizeof *taken);
    for (uint32_t i = 0; i < trial->nservers; i++) {
        taken[trial->servers[i] / 64] |= (uint64_t)1 << trial->servers[i] % 64;
        marks ^= p->trials.mark[trial->servers[i]];
    }
    return marks;
}

const struct outline *
pricer_outline(struct pricer *p, uint32_t index, uint32_t way, struct rec_error *err)
{
    bool known;
    uint32_t key = index * p->nways + way;
    struct outline *o = trials_outline(&p->trials, key, &known);
    const struct trial *trial;
    if (known)
        return o;
    if (!(trial = pricer_try_way(p, index, way, err)))
        return NULL;
    o->key = key + 1;
    o->outcome = trial->outcome & 15;
    o->nservers = trial->nservers & 0xfffffff;
    o->marks = pricer_mask(p, trial, o->word + p->trials.nwords);
    o->step = trial->cost.step.seconds;
    return o;
}

/* ---- layouts that an agent has made ---------------------------------------- */

/* True if a layout says nothing but slots, and its ops were placed in the order of the
 * plan: a heuristic might have made it. */
static bool
is_plain(const struct known *known, const struct graph_layout *where)
{
    const struct graph *graph = where->graph;
    uint32_t turn = 0;
    if (known->plan.tasks || where->priority || where->ntransfers)
        return false;
    for (uint32_t i = 0; i < known->plan.nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[known->plan.step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++) {
            uint32_t twin = graph->op[graph->member[j]].pair;
            if (where->placed[graph->member[j]] != turn++ ||
                (twin != GRAPH_NONE && where->placed[twin] != turn++))
                return false;
        }
    }
    return true;
}

/* Sets p->key to all that a layout says. It is longer than the keys of plain ones. */
static bool
set_act_key(struct pricer *p, const struct graph_layout *where, struct rec_error *err)
{
    size_t nops = where->graph->nops, n = where->ntransfers,
           words = sizeof(double) / sizeof(uint32_t),
           all =
               2 + 2 * nops + (where->priority ? words * nops : 0) + n * (1 + 2 * words);
    uint32_t *at;
    if (!rec_grow(&p->key, &p->key_room, all, sizeof *p->key, err))
        return false;
    at = p->key;
    *at++ = where->priority != NULL;
    *at++ = (uint32_t)n;
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
    p->nkey = all;
    return true;
}

/* The key of a layout, and which map has it: those of a heuristic's if it is like one. */
static bool
find_key(struct pricer *p, const struct known *known, const struct graph_layout *where,
         struct rec_str *key, bool *light, struct rec_error *err)
{
    size_t nops = where->graph->nops;
    bool plain = is_plain(known, where);
    *light = plain && place_is_light(p->way[0].placer, &known->plan);
    if (*light) {
        if (!set_key(p, known, where->slot, NULL, err) ||
            !set_op_slots(p, known, true, NULL, err))
            return false;
        plain = memcmp(p->op_slots, where->slot, nops * sizeof *where->slot) == 0;
    }
    if (plain) {
        *key = key_of(p, known, *light, where->slot);
        return true;
    }
    *light = false;
    if (!set_act_key(p, where, err))
        return false;
    *key = (struct rec_str){(const char *)p->key, p->nkey * sizeof *p->key};
    return true;
}

const struct trial *
pricer_lay(struct pricer *p, uint32_t index, struct graph_layout *where,
           const uint32_t *servers, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    struct sim_layout *layout = NULL;
    struct trial *t = &p->last;
    struct rec_str key;
    bool light;
    if (!known || !find_key(p, known, where, &key, &light, err))
        return NULL;
    *t = (struct trial){.key = index * p->nways + 1,
                        .outcome = PLACE_PLACED,
                        .servers = (uint32_t *)(uintptr_t)servers,
                        .nservers = where->nslots,
                        .place = rec_map_get(&known->layouts[light], key)};
    if (t->place == REC_NONE &&
        (!(layout = sim_layout_new(where, err)) ||
         !keep_layout(p, known, light, layout, key, &t->place, err))) {
        sim_layout_free(layout);
        return NULL;
    }
    t->layout = p->laid[t->place].layout;
    t->serial = p->laid[t->place].serial;
    return sim_layout_cost(t->layout, p->net, servers, &t->cost, err) ? t : NULL;
}

bool
pricer_try_alone(struct pricer *p, uint32_t index, enum place_outcome *outcome,
                 double *step, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    if (!known)
        return false;
    for (uint32_t i = 0; !known->alone_known && i < p->nways; i++) {
        if (!place_graph(p, index, i, p->way[i].alone, err))
            return false;
        if (i == 0)
            known->alone_step = INFINITY;
        if (i == 0 || known->alone != PLACE_PLACED)
            known->alone = p->last.outcome;
        if (p->last.outcome == PLACE_PLACED)
            known->alone_step = fmin(known->alone_step, p->last.cost.step.seconds);
    }
    known->alone_known = true;
    *outcome = known->alone;
    *step = known->alone_step;
    return true;
}

/* *may is false only if the graph can never be placed: if a unit has no block on the
 * empty cluster, or a part of it needs more memory than a server has. The place of a
 * numbered way may be missing where there are others. */
static bool
may_be_placed(struct pricer *p, const struct place_plan *plan, bool *may,
              struct rec_error *err)
{
    struct place_placement placement;
    if (!place_light(p->way[0].placer, plan, p->way[0].alone, &placement, err))
        return false;
    *may = placement.outcome == PLACE_PLACED || p->way[0].options->kind->numbered;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        *may = *may && plan->step[i].memory <= net_memory(p->net) * (1 + 1e-12);
    return true;
}

bool
pricer_floor(struct pricer *p, uint32_t index, struct floor *floor, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    bool may;
    *floor = (struct floor){0, INFINITY};
    if (!known)
        return false;
    if (p->way[0].options->kind->alike && !known->plan.tasks) {
        if (!place_graph(p, index, 0, p->way[0].alone, err))
            return false;
        if (p->last.outcome == PLACE_PLACED)
            *floor = (struct floor){p->last.nservers, p->last.cost.step.seconds};
        return pricer_forget(p, err);
    }
    return may_be_placed(p, &known->plan, &may, err) &&
           (!may || floor_find(p->net, &known->plan, place_count_free(p->way[0].alone),
                               floor, err));
}
