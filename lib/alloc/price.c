/*
 * Prices graphs. Four results are remembered, because a million jobs may use a few
 * graphs: the plan of a graph; the layouts that its placements had (shelf.h); the
 * placement that a graph gets in a state of the cluster, and its outline (trial.h). An
 * alternative whose outline is known takes the time of a look into a table.
 */
#include "price.h"

#include "shelf.h"

#include <math.h>
#include <stdlib.h>

/* What is remembered of a graph. */
struct known {
    struct place_plan plan;
    bool planned;
    uint32_t degree;
    /* What placing it on an empty cluster gave, if that is known: */
    bool alone_known;
    enum place_outcome alone;
    double alone_step; /* time of a step, seconds; INFINITY: it was not placed */
    bool least_known;
    double least_step; /* lower bound of that on any servers, seconds */
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
    struct shelf shelf; /* the layouts */
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
    p->settled = calloc(net_servers(options->net) / 64 + 1, sizeof *p->settled);
    if (!p->settled)
        rec_fail_memory(err);
    else if (shelf_init(&p->shelf, net_servers(options->net), layouts, err) &&
             pricer_add_way(p, options, err) &&
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
    for (size_t i = 0; i < p->nknown; i++)
        place_plan_free(&p->known[i].plan);
    shelf_free(&p->shelf);
    trials_free(&p->trials);
    free(p->settled);
    free(p->known);
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

bool
pricer_forget(struct pricer *p, struct rec_error *err)
{
    return shelf_forget(&p->shelf, err);
}

bool
pricer_drop(struct pricer *p, uint32_t index, bool *dropped, struct rec_error *err)
{
    if (!shelf_drop(&p->shelf, index, dropped, err))
        return false;
    if (*dropped && index < p->nknown) {
        place_plan_free(&p->known[index].plan);
        p->known[index] = (struct known){.planned = false};
    }
    return true;
}

/* Completes p->last, a trial that was placed in the layout at trial->place. */
static bool
set_cost(struct pricer *p, struct rec_error *err)
{
    struct trial *t = &p->last;
    t->layout = p->shelf.laid[t->place].layout;
    t->serial = p->shelf.laid[t->place].serial;
    return sim_layout_cost(t->layout, p->net, t->servers, &t->cost, err);
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
    return shelf_place(&p->shelf, index, &known->plan, light, &placement, &trial->place,
                       err) &&
           set_cost(p, err);
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
    if (trial &&
        (trial->serial == 0 || p->shelf.laid[trial->place].serial == trial->serial))
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

const struct trial *
pricer_lay(struct pricer *p, uint32_t index, struct graph_layout *where,
           const uint32_t *servers, struct rec_error *err)
{
    struct known *known = know(p, index, err);
    if (!known)
        return NULL;
    p->last = (struct trial){.key = index * p->nways + 1,
                             .outcome = PLACE_PLACED,
                             .servers = (uint32_t *)(uintptr_t)servers,
                             .nservers = where->nslots};
    return shelf_take(&p->shelf, index, &known->plan,
                      place_is_light(p->way[0].placer, &known->plan), where,
                      &p->last.place, err) &&
                   set_cost(p, err)
               ? &p->last
               : NULL;
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

/* If the step on the empty cluster is the bound that floor_find() has lowered a little,
 * it is taken: then no placement takes less, and its last digits are right. */
static double
at_most(double alone, double floor)
{
    static const double lowered = 1.5e-9;
    return alone * (1 - lowered) <= floor ? alone : fmin(alone, floor);
}

/* The time of a step if its work is all that counts, shared by healthy servers. */
static double
least_shared(const struct place_plan *plan, uint32_t servers)
{
    return graph_sequential(plan->graph) / servers * (1 - 1e-9);
}

/* Sets known->least_step. floor_find() does not hold for ways that are alike: of these
 * the step on the empty cluster is the least one, but for stragglers. If there are some,
 * only the work of the servers is certain. */
static bool
find_least(const struct pricer *p, struct known *known, struct rec_error *err)
{
    uint32_t nalike = 0, servers = place_count_free(p->way[0].alone);
    bool straggling = net_has_stragglers(p->net);
    struct floor floor = {.step = INFINITY};
    for (uint32_t i = 0; i < p->nways && !known->plan.tasks; i++)
        nalike += p->way[i].options->kind->alike;
    if (nalike < p->nways && !floor_find(p->net, &known->plan, servers, &floor, err))
        return false;
    if (nalike && straggling)
        floor.step = fmin(floor.step, least_shared(&known->plan, servers));
    known->least_step = at_most(known->alone_step, floor.step);
    known->least_known = true;
    return true;
}

bool
pricer_try_least(struct pricer *p, uint32_t index, enum place_outcome *outcome,
                 double *step, struct rec_error *err)
{
    struct known *known;
    if (!pricer_try_alone(p, index, outcome, step, err))
        return false;
    known = &p->known[index];
    if (*outcome == PLACE_PLACED && !known->least_known && !find_least(p, known, err))
        return false;
    *step = *outcome == PLACE_PLACED ? known->least_step : INFINITY;
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
        uint32_t servers;
        if (!place_graph(p, index, 0, p->way[0].alone, err))
            return false;
        servers = p->last.nservers;
        if (p->last.outcome == PLACE_PLACED)
            *floor = (struct floor){servers, net_has_stragglers(p->net)
                                                 ? least_shared(&known->plan, servers)
                                                 : p->last.cost.step.seconds};
        return pricer_forget(p, err);
    }
    return may_be_placed(p, &known->plan, &may, err) &&
           (!may || floor_find(p->net, &known->plan, place_count_free(p->way[0].alone),
                               floor, err));
}
