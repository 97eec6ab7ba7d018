/* What placing a graph would give: on the servers that are free, and on an empty cluster. */
#include "price.h"

#include <math.h>
#include <stdlib.h>

/* What is known of a graph: how to place it, and the layouts it got so far. */
struct known {
    struct alloc_plan plan;
    bool planned;
    uint32_t degree;
    struct rec_map layouts; /* slots of all members -> index into ->layout */
    bool alone_known;       /* what placing it on an empty cluster gave: */
    enum alloc_outcome alone;
    double alone_step; /* time of a step then, seconds; INFINITY: it was not placed */
};

struct pricer {
    const struct alloc_placer_options *options; /* borrowed */
    const struct graph_store *store;            /* borrowed */
    struct alloc_placer *placer;
    struct alloc_vacancy *now;   /* what is free */
    struct alloc_vacancy *alone; /* what would be, had the cluster no job */
    struct trials trials;
    struct trial
        last; /* the last placement that was tried; its servers are the placer's */
    struct known *known;
    size_t nknown, known_room;
    struct sim_layout **layout;
    size_t nlayouts, layout_room;
    struct rec_arena keys;
    uint32_t *slots; /* scratch: slot of each server; slots of members */
    uint32_t *members;
    size_t members_room;
};

struct pricer *
pricer_new(const struct alloc_placer_options *options, const struct graph_store *store,
           struct rec_error *err)
{
    struct pricer *p = calloc(1, sizeof *p);
    if (!p) {
        rec_fail_memory(err);
        return NULL;
    }
    p->options = options;
    p->store = store;
    p->slots = calloc(net_servers(&options->cluster), sizeof *p->slots);
    if (!p->slots)
        rec_fail_memory(err);
    else if ((p->placer = alloc_placer_new(options, err)) &&
             (p->now = alloc_vacancy_new(&options->cluster, err)) &&
             (p->alone = alloc_vacancy_new(&options->cluster, err)) &&
             trials_init(&p->trials, net_servers(&options->cluster), err))
        return p;
    pricer_free(p);
    return NULL;
}

void
pricer_free(struct pricer *p)
{
    if (!p)
        return;
    alloc_placer_free(p->placer);
    for (size_t i = 0; i < p->nknown; i++) {
        alloc_plan_free(&p->known[i].plan);
        rec_map_free(&p->known[i].layouts);
    }
    for (size_t i = 0; i < p->nlayouts; i++)
        sim_layout_free(p->layout[i]);
    trials_free(&p->trials);
    rec_arena_free(&p->keys);
    alloc_vacancy_free(p->now);
    alloc_vacancy_free(p->alone);
    free(p->known);
    free(p->layout);
    free(p->slots);
    free(p->members);
    free(p);
}

void
pricer_take(struct pricer *p, uint32_t server)
{
    alloc_set_free(p->now, server, false);
    trials_flip(&p->trials, server);
}

void
pricer_give_back(struct pricer *p, uint32_t server)
{
    alloc_set_free(p->now, server, true);
    trials_flip(&p->trials, server);
}

void
pricer_set_down(struct pricer *p, uint32_t server)
{
    alloc_set_free(p->alone, server, false);
    pricer_take(p, server);
}

static struct known *
know(struct pricer *p, uint32_t index, struct rec_error *err)
{
    const struct graph *graph = p->store->graph[index];
    struct known *known;
    struct rec_str degree;
    uint64_t n;

    if (!rec_grow(&p->known, &p->known_room, p->store->ngraphs, sizeof *p->known, err))
        return NULL;
    for (; p->nknown < p->store->ngraphs; p->nknown++)
        p->known[p->nknown] = (struct known){0};
    known = &p->known[index];
    if (known->planned)
        return known;
    if (!alloc_plan_make(graph, &known->plan, err))
        return NULL;
    known->planned = true;
    known->degree = 1;
    for (size_t u = 0; u < graph->nunits; u++)
        if (graph->unit[u].parts > known->degree)
            known->degree = graph->unit[u].parts;
    if (graph_key(graph, "degree", &degree) && rec_parse_uint(degree, &n) &&
        n < UINT32_MAX)
        known->degree = (uint32_t)n;
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

/* The layout that puts members on these slots, found or made. */
static bool
find_layout(struct pricer *p, struct known *known, struct trial *t, struct rec_error *err)
{
    const struct graph *graph = known->plan.graph;
    struct rec_str key = {(const char *)p->members, graph->nops * sizeof *p->members};
    uint32_t index = rec_map_get(&known->layouts, key), turn = 0;
    struct sim_layout *layout;
    const char *kept;

    if (index != REC_NONE) {
        t->layout = p->layout[index];
        return true;
    }
    layout = t->layout = sim_layout_new(rec_str(""), graph, t->nservers, err);
    if (!layout)
        return false;
    for (uint32_t i = 0; i < known->plan.nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[known->plan.step[i].unit];
        for (uint32_t j = 0; j < unit->parts; j++) {
            uint32_t op = graph->member[unit->first + j], twin = graph->op[op].pair;
            layout->slot[op] = p->members[unit->first + j];
            layout->placed[op] = turn++;
            if (twin != GRAPH_NONE) {
                layout->slot[twin] = layout->slot[op];
                layout->placed[twin] = turn++;
            }
        }
    }
    layout->nplaced = turn;
    if (!sim_layout_seal(layout, err) || !(kept = rec_arena_copy(&p->keys, key, err)) ||
        !rec_grow(&p->layout, &p->layout_room, p->nlayouts + 1, sizeof *p->layout, err) ||
        !rec_map_add(&known->layouts, (struct rec_str){kept, key.len},
                     (uint32_t)p->nlayouts, err)) {
        sim_layout_free(layout);
        return false;
    }
    p->layout[p->nlayouts++] = layout;
    return true;
}

/* Places a graph on the servers that are free and prices the placement: p->last. */
static bool
place_graph(struct pricer *p, uint32_t index, const struct alloc_vacancy *vacancy,
            struct rec_error *err)
{
    struct known *known = know(p, index, err);
    struct trial *trial = &p->last;
    struct alloc_placement placement;

    if (!known || !alloc_place(p->placer, &known->plan, vacancy, &placement, err))
        return false;
    *trial = (struct trial){
        .graph = index + 1, .outcome = placement.outcome, .failed = placement.failed};
    if (trial->outcome != ALLOC_PLACED)
        return true;
    if (!rec_grow(&p->members, &p->members_room, known->plan.graph->nops,
                  sizeof *p->members, err))
        return false;
    trial->servers = (uint32_t *)(uintptr_t)placement.held;
    trial->nservers = placement.nheld;
    for (uint32_t i = 0; i < placement.nheld; i++)
        p->slots[placement.held[i]] = i;
    for (size_t i = 0; i < known->plan.graph->nops; i++)
        p->members[i] = p->slots[placement.server[i]];
    return find_layout(p, known, trial, err) &&
           sim_layout_cost(trial->layout, &p->options->cluster, trial->servers,
                           &trial->cost, err);
}

const struct trial *
pricer_try(struct pricer *p, uint32_t index, struct rec_error *err)
{
    bool pure = p->options->heuristic->pure;
    const struct trial *trial = pure ? trials_find(&p->trials, index) : NULL;
    if (trial)
        return trial;
    if (!place_graph(p, index, p->now, err) ||
        (pure && !trials_keep(&p->trials, &p->last, err)))
        return NULL;
    return &p->last;
}

bool
pricer_try_alone(struct pricer *p, uint32_t index, enum alloc_outcome *outcome,
                 double *step, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    if (!known)
        return false;
    if (!known->alone_known) {
        if (!place_graph(p, index, p->alone, err))
            return false;
        known->alone_known = true;
        known->alone = p->last.outcome;
        known->alone_step =
            known->alone == ALLOC_PLACED ? p->last.cost.step.seconds : (double)INFINITY;
    }
    *outcome = known->alone;
    *step = known->alone_step;
    return true;
}
