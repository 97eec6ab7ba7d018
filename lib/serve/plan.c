/* What both planners share: the menus they choose from, bounds that rule choices out
 * without a simulation, and simulations that judge the rest. */
#include "planner.h"

#include <math.h>
#include <stdlib.h>

/* ---- menus --------------------------------------------------------------- */

/* Adds an option for each batch of a profile. A larger batch may be faster than a smaller
 * one, so `shortest` is the least over all sizes. */
static bool
add_options(struct serve_planner *planner, struct serve_menu *menu, uint32_t index,
            struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    const struct serve_profile *profile = &p->profile[index];
    enum serve_service service = planner->objective.options.service;

    for (size_t i = 0; i < profile->n; i++) {
        struct serve_choice_option option = {.profile = index,
                                             .batch = (uint32_t)profile->point[i].batch,
                                             .price = p->price[profile->hardware],
                                             .shortest = INFINITY};
        option.alone = serve_seconds(profile, service, 1);
        option.rate = serve_throughput(profile, service, option.batch);
        for (uint32_t n = 1; n <= option.batch; n++)
            option.shortest = fmin(option.shortest, serve_seconds(profile, service, n));
        if (!rec_grow(&menu->option, &menu->room, menu->n + 1, sizeof *menu->option, err))
            return false;
        menu->option[menu->n++] = option;
        menu->shortest = fmin(menu->shortest, option.shortest);
        menu->cheapest = fmin(menu->cheapest, option.price);
    }
    return true;
}

static int
compare_options(const void *a, const void *b)
{
    const struct serve_choice_option *x = a, *y = b;
    if (x->price != y->price)
        return x->price < y->price ? -1 : 1;
    if (x->profile != y->profile)
        return x->profile < y->profile ? -1 : 1;
    return (x->batch > y->batch) - (x->batch < y->batch);
}

static bool
make_menu(struct serve_planner *planner, uint32_t s, struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    const struct serve_stage *stage = &p->stage[s];
    struct serve_menu *menu = &planner->menu[s];
    if (stage->model == REC_NONE)
        return true;
    menu->shortest = menu->cheapest = INFINITY;
    for (uint32_t i = 0; i < p->nprofiles; i++)
        if (p->profile[i].model == stage->model &&
            !isnan(p->price[p->profile[i].hardware]) &&
            !add_options(planner, menu, i, err))
            return false;
    if (menu->n == 0)
        return rec_fail_at(err, stage->place.file, stage->place.line,
                           "model '%s' has no profile on hardware with a price: give a "
                           "price record for the hardware of one of its profiles",
                           p->name[stage->model]);
    qsort(menu->option, menu->n, sizeof *menu->option, compare_options);
    return true;
}

/* ---- the least time before and behind a stage ---------------------------- */

/* The least time before stage `s`, seconds: a query that comes to it has come along at
 * least one edge (the least over all edges), and along every edge that all queries take
 * (the most over these). `certain` and *comes: all queries come to the stage. */
static void
find_head(struct serve_planner *planner, uint32_t s, const bool certain[], bool *comes)
{
    const struct serve_pipeline *p = planner->pipeline;
    double least = INFINITY, most = 0;
    *comes = false;
    for (size_t i = 0; i < p->nedges; i++) {
        const struct serve_edge *edge = &p->edge[i];
        double before = 0;
        if (edge->dst != s)
            continue;
        if (edge->src != REC_NONE)
            before = planner->menu[edge->src].head + planner->menu[edge->src].shortest;
        least = fmin(least, before);
        if (edge->chance == REC_NONE && (edge->src == REC_NONE || certain[edge->src])) {
            most = fmax(most, before);
            *comes = true;
        }
    }
    planner->menu[s].head = fmax(least, most);
}

/* The least time behind stage `s`, seconds: the most over the edges that all queries
 * take. */
static void
find_tail(struct serve_planner *planner, uint32_t s)
{
    const struct serve_pipeline *p = planner->pipeline;
    for (uint32_t e = 0; e < p->stage[s].nedges; e++) {
        const struct serve_edge *edge = &p->edge[p->out[p->stage[s].first_edge + e]];
        if (edge->dst != REC_NONE && edge->chance == REC_NONE)
            planner->menu[s].tail =
                fmax(planner->menu[s].tail,
                     planner->menu[edge->dst].shortest + planner->menu[edge->dst].tail);
    }
}

static bool
find_ways(struct serve_planner *planner, struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    bool *certain = calloc(p->nstages + 1, sizeof *certain);
    if (!certain)
        return rec_fail_memory(err);
    for (size_t i = 0; i < p->nstages; i++)
        find_head(planner, p->order[i], certain, &certain[p->order[i]]);
    for (size_t i = p->nstages; i-- > 0;)
        find_tail(planner, p->order[i]);
    free(certain);
    return true;
}

/* ---- start and end ------------------------------------------------------- */

/* Counts the queries that come to each stage. This depends on the edges that are drawn,
 * not on configurations, so one simulation with any of them will do. */
static bool
count_visits(struct serve_planner *planner, struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    static const struct serve_sink nobody;
    struct serve_sim *sim;
    bool ok;
    for (uint32_t s = 0; s < p->nstages; s++)
        if (serve_has_model(planner, s))
            planner->config[s] =
                (struct serve_config){.profile = planner->menu[s].option[0].profile,
                                      .batch = 1,
                                      .replicas = SERVE_REPLICAS_MAX};
    sim = serve_sim_new(p, planner->config, &planner->objective.options, &nobody, err);
    ok = sim != NULL;
    for (size_t i = 0; ok && i < planner->n; i++)
        ok = serve_sim_query(sim, planner->arrival[i], (struct rec_str){NULL, 0}, err);
    ok = ok && serve_sim_advance(sim, INFINITY, err);
    for (uint32_t s = 0; ok && s < p->nstages; s++)
        planner->menu[s].visits = serve_sim_usage(sim, s).queries;
    serve_sim_free(sim);
    return ok;
}

/* 99.9 % of 1000 queries are 999, even if the product rounds to a little more. */
uint64_t
serve_allowed(size_t n, double percentile)
{
    return n - (uint64_t)ceil((double)n * percentile / 100 * (1 - 1e-12));
}

struct serve_planner *
serve_planner_new(const struct serve_pipeline *pipeline, const double *arrival, size_t n,
                  const struct serve_objective *objective, struct rec_error *err)
{
    struct serve_planner *planner = calloc(1, sizeof *planner);
    bool ok;
    if (!planner) {
        rec_fail_memory(err);
        return NULL;
    }
    if (pipeline->nstages == 0 || n == 0) {
        rec_fail(err, REC_DATA, "there is no %s to plan for", n == 0 ? "query" : "stage");
        free(planner);
        return NULL;
    }
    planner->pipeline = pipeline;
    planner->arrival = arrival;
    planner->n = n;
    planner->objective = *objective;
    planner->objective.options.drop_after = INFINITY;
    planner->objective.options.warmup = 0;
    planner->allowed = serve_allowed(n, objective->percentile);
    /* Times are rounded sums: a bound must be exceeded by more than that to rule a choice
     * out. */
    planner->margin = 1e-12 * (arrival[n - 1] + objective->slo);
    planner->menu = calloc(pipeline->nstages + 1, sizeof *planner->menu);
    planner->config = calloc(pipeline->nstages + 1, sizeof *planner->config);
    planner->latency = calloc(n + 1, sizeof *planner->latency);
    planner->end = calloc(pipeline->nstages + 1, sizeof *planner->end);
    ok = (planner->menu && planner->config && planner->latency && planner->end) ||
         rec_fail_memory(err);
    for (uint32_t s = 0; ok && s < pipeline->nstages; s++)
        ok = make_menu(planner, s, err);
    if (ok && find_ways(planner, err) && count_visits(planner, err))
        return planner;
    serve_planner_free(planner);
    return NULL;
}

void
serve_planner_free(struct serve_planner *planner)
{
    if (!planner)
        return;
    for (size_t s = 0; planner->menu && s < planner->pipeline->nstages; s++)
        free(planner->menu[s].option);
    free(planner->menu);
    free(planner->config);
    free(planner->latency);
    free(planner->end);
    free(planner->verdict);
    rec_map_free(&planner->known);
    rec_arena_free(&planner->arena);
    free(planner);
}

void
serve_plan_free(struct serve_plan *plan)
{
    free(plan->config);
    *plan = (struct serve_plan){0};
}

uint64_t
serve_planner_simulations(const struct serve_planner *planner)
{
    return planner->simulations;
}

double
serve_planner_rate(const struct serve_planner *planner)
{
    size_t n = planner->n;
    double seconds = n > 0 ? planner->arrival[n - 1] - planner->arrival[0] : 0;
    return seconds > 0 ? (double)(n - 1) / seconds : (double)NAN;
}

/* The mean rate of arrivals at a stage, queries/s. */
static double
load_of(const struct serve_planner *planner, uint32_t stage)
{
    return serve_planner_rate(planner) * (double)planner->menu[stage].visits /
           (double)planner->n;
}

double
serve_plan_seconds(const struct serve_planner *planner, const struct serve_plan *plan)
{
    const struct serve_pipeline *p = planner->pipeline;
    double longest = 0, *end = planner->end;
    for (size_t i = 0; i < p->nstages; i++) {
        uint32_t s = p->order[i];
        end[s] = 0;
        for (size_t e = 0; e < p->nedges; e++)
            if (p->edge[e].dst == s && p->edge[e].src != REC_NONE)
                end[s] = fmax(end[s], end[p->edge[e].src]);
        if (serve_has_model(planner, s))
            end[s] += serve_seconds(&p->profile[plan->config[s].profile],
                                    planner->objective.options.service, 1);
        longest = fmax(longest, end[s]);
    }
    return longest;
}

/* ---- bounds -------------------------------------------------------------- */

double
serve_cost(const struct serve_planner *planner, const struct serve_choice *choice)
{
    double cost = 0;
    for (uint32_t s = 0; s < planner->pipeline->nstages; s++)
        if (serve_has_model(planner, s))
            cost += choice[s].replicas * serve_chosen(planner, s, choice[s])->price;
    return cost;
}

double
serve_capacity(const struct serve_planner *planner, uint32_t stage,
               struct serve_choice choice)
{
    const struct serve_menu *menu = &planner->menu[stage];
    return choice.replicas * menu->option[choice.option].rate * (double)planner->n /
           (double)menu->visits; /* infinite if no query comes to the stage */
}

double
serve_bottleneck(const struct serve_planner *planner, const struct serve_choice *choice,
                 uint32_t *least)
{
    double rate = INFINITY, one;
    *least = REC_NONE;
    for (uint32_t s = 0; s < planner->pipeline->nstages; s++)
        if (serve_has_model(planner, s) &&
            ((one = serve_capacity(planner, s, choice[s])) < rate ||
             *least == REC_NONE)) {
            rate = one;
            *least = s;
        }
    return rate;
}

/* A query that is in time leaves the stage at most `slo` after the last arrival. From the
 * first arrival until then, the stage can serve so many queries and no more; the others
 * are late. */
bool
serve_too_slow(const struct serve_planner *planner, uint32_t stage,
               struct serve_choice choice)
{
    const struct serve_menu *menu = &planner->menu[stage];
    double seconds =
        planner->arrival[planner->n - 1] - planner->arrival[0] + planner->objective.slo;
    double done = choice.replicas * menu->option[choice.option].rate * seconds;
    return (double)menu->visits - done * (1 + 1e-9) > (double)planner->allowed + 1;
}

bool
serve_can_meet(struct serve_planner *planner, struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    for (uint32_t s = 0; s < p->nstages; s++) {
        const struct serve_menu *menu = &planner->menu[s];
        double least = menu->head + menu->shortest + menu->tail;
        if (menu->visits > planner->allowed &&
            least > planner->objective.slo + planner->margin)
            return rec_fail(err, REC_NO,
                            "no configuration meets %g s: a path through stage '%s' "
                            "takes at least %g s, even without waiting",
                            planner->objective.slo, p->stage[s].name, least);
    }
    return true;
}

bool
serve_count_simulation(struct serve_planner *planner, struct rec_error *err)
{
    planner->simulations++;
    if (planner->objective.tell)
        planner->objective.tell(planner->objective.context, planner->simulations);
    return rec_limit(&planner->objective.limit, (double)planner->simulations,
                     "simulations", err);
}

/* ---- judging ------------------------------------------------------------- */

struct judging {
    struct serve_planner *planner;
    size_t n; /* queries that have left the pipeline */
    uint64_t late;
    bool stopped; /* the simulation was stopped, as too many queries are late */
};

static bool
take_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    struct judging *judging = context;
    struct serve_planner *planner = judging->planner;
    double latency = reply->finish - reply->arrival;
    (void)err;
    planner->latency[judging->n++] = latency;
    judging->late += latency > planner->objective.slo;
    judging->stopped = judging->late > planner->allowed;
    return !judging->stopped;
}

/* Hoare's algorithm, as in N. Wirth, "Algorithms + Data Structures = Programs" (1976). */
double
serve_select(double *value, size_t n, size_t k)
{
    int64_t low = 0, high = (int64_t)n - 1, i, j;
    while (low < high) {
        double pivot = value[k], swap;
        i = low;
        j = high;
        do {
            while (value[i] < pivot)
                i++;
            while (pivot < value[j])
                j--;
            if (i <= j) {
                swap = value[i];
                value[i++] = value[j];
                value[j--] = swap;
            }
        } while (i <= j);
        if (j < (int64_t)k)
            low = i;
        if ((int64_t)k < i)
            high = j;
    }
    return value[k];
}

void
serve_set_configs(struct serve_planner *planner, const struct serve_choice *choice)
{
    for (uint32_t s = 0; s < planner->pipeline->nstages; s++)
        if (serve_has_model(planner, s)) {
            const struct serve_choice_option *option =
                serve_chosen(planner, s, choice[s]);
            planner->config[s] = (struct serve_config){.profile = option->profile,
                                                       .batch = option->batch,
                                                       .replicas = choice[s].replicas};
        }
}

static bool
simulate(struct serve_planner *planner, const struct serve_choice *choice,
         struct serve_verdict *verdict, struct rec_error *err)
{
    struct judging judging = {.planner = planner};
    struct serve_sink sink = {take_reply, NULL, &judging};
    struct serve_sim *sim;
    bool ok;

    serve_set_configs(planner, choice);
    if (!serve_count_simulation(planner, err) ||
        !(sim = serve_sim_new(planner->pipeline, planner->config,
                              &planner->objective.options, &sink, err)))
        return false;
    ok = true;
    for (size_t i = 0; ok && i < planner->n; i++)
        ok = serve_sim_query(sim, planner->arrival[i], (struct rec_str){NULL, 0}, err);
    ok = ok && serve_sim_advance(sim, INFINITY, err);
    serve_sim_free(sim);
    *verdict = (struct serve_verdict){.met = ok, .late = judging.late};
    if (ok)
        verdict->latency =
            serve_select(planner->latency, planner->n, planner->n - planner->allowed - 1);
    return ok || judging.stopped;
}

bool
serve_judge(struct serve_planner *planner, const struct serve_choice *choice,
            struct serve_verdict *verdict, struct rec_error *err)
{
    size_t n = planner->pipeline->nstages;
    struct rec_str key = {(const char *)choice, n * sizeof *choice};
    uint32_t known = rec_map_get(&planner->known, key);

    if (known != REC_NONE) {
        *verdict = planner->verdict[known];
        return true;
    }
    *verdict = (struct serve_verdict){.met = true};
    for (uint32_t s = 0; s < n && verdict->met; s++)
        if (serve_has_model(planner, s) && serve_too_slow(planner, s, choice[s]))
            verdict->met = false;
    if (verdict->met && !simulate(planner, choice, verdict, err))
        return false;
    if (!(key.ptr = rec_arena_copy(&planner->arena, key, err)) ||
        !rec_grow(&planner->verdict, &planner->verdict_room, planner->nverdicts + 1,
                  sizeof *planner->verdict, err) ||
        !rec_map_add(&planner->known, key, (uint32_t)planner->nverdicts, err))
        return false;
    planner->verdict[planner->nverdicts++] = *verdict;
    return true;
}

bool
serve_make_plan(struct serve_planner *planner, const struct serve_choice *choice,
                struct serve_plan *plan, struct rec_error *err)
{
    size_t n = planner->pipeline->nstages;
    struct serve_verdict verdict;
    uint32_t least;
    if (!serve_judge(planner, choice, &verdict, err))
        return false;
    if (!verdict.met)
        return rec_fail(err, REC_BUG, "a plan does not meet what it was chosen for");
    if (!plan->config && !(plan->config = calloc(n + 1, sizeof *plan->config)))
        return rec_fail_memory(err);
    for (uint32_t s = 0; s < n; s++) {
        plan->config[s] = (struct serve_config){.profile = REC_NONE, .load = NAN};
        if (serve_has_model(planner, s))
            plan->config[s] = (struct serve_config){
                .profile = serve_chosen(planner, s, choice[s])->profile,
                .batch = serve_chosen(planner, s, choice[s])->batch,
                .replicas = choice[s].replicas,
                .load = load_of(planner, s)};
    }
    plan->cost = serve_cost(planner, choice);
    plan->throughput = serve_bottleneck(planner, choice, &least);
    plan->latency = verdict.latency;
    plan->late = verdict.late;
    plan->bound = NAN;
    return true;
}
