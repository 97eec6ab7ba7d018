/*
 * The best plan of all, by branch and bound.
 *
 * Stages that share an ancestor, or of which one is an ancestor of the other, form a
 * group (groups.c). What happens in a group does not depend on other groups, but a query
 * may be late because of any. Within a group, options are chosen for the stages in
 * topological order, and each stage is simulated behind the choices before it. If a query
 * is late even with the least time that is still to come, it is late whatever is chosen
 * for later stages; if too many queries are, this branch is cut. What remains are the
 * solutions of the group, without those that another one makes superfluous. One solution
 * of each group form a plan, if not too many queries are late in one or another.
 */
#include "search.h"

#include "rampipe/random.h"

#include <math.h>
#include <stdlib.h>

/* ---- sets of late queries ------------------------------------------------ */

static void
copy_set(const struct search *search, struct late *to, const struct late *from)
{
    to->n = from ? from->n : 0;
    if (from)
        memcpy(to->bit, from->bit, search->words * sizeof *to->bit);
    else
        memset(to->bit, 0, search->words * sizeof *to->bit);
}

static void
join_sets(const struct search *search, struct late *to, const struct late *a,
          const struct late *b)
{
    to->n = 0;
    for (size_t i = 0; i < search->words; i++) {
        to->bit[i] = a->bit[i] | b->bit[i];
        to->n += (uint64_t)__builtin_popcountll(to->bit[i]);
    }
}

static bool
is_subset(const struct search *search, const struct late *a, const struct late *b)
{
    if (a->n > b->n)
        return false;
    for (size_t i = 0; i < search->words; i++)
        if (a->bit[i] & ~b->bit[i])
            return false;
    return true;
}

/* ---- what cannot be better ----------------------------------------------- */

/* Can no plan that costs at least `cost`, and whose slowest stage takes at most `rate`,
 * be better than the best so far? Costs count as equal if they differ only by the
 * rounding of sums of prices. */
static bool
is_hopeless(const struct search *search, double cost, double rate)
{
    const struct serve_objective *objective = &search->planner->objective;
    double same = 1e-9 * (1 + cost);
    if (cost > objective->budget + same)
        return true;
    if (!search->found)
        return false;
    if (objective->goal == SERVE_LEAST_COST)
        return cost >= search->cost - same;
    return rate < search->rate * (1 - 1e-12) ||
           (rate <= search->rate * (1 + 1e-12) && cost >= search->cost - same);
}

/* Is `by` at least as good as `a` in every way: no dearer, no slower, and no query late
 * that is not late with `a`? Then every plan with `a` has one with `by` that is as
 * good. */
static bool
is_superfluous(const struct search *search, const struct solution *a,
               const struct solution *by)
{
    bool rate =
        search->planner->objective.goal == SERVE_LEAST_COST || by->rate >= a->rate;
    return by->cost <= a->cost && rate && is_subset(search, &by->late, &a->late);
}

/* ---- solutions of a group ------------------------------------------------ */

/* Keeps the choices for the stages of a group as a solution, unless another makes it
 * superfluous; those that it makes superfluous are dropped. */
static bool
keep_solution(struct search *search, struct group *group, double cost, double rate,
              struct rec_error *err)
{
    struct solution one = {.cost = cost, .rate = rate};
    size_t kept = 0;

    one.late = search->level[group->n - 1].late;
    for (size_t i = 0; i < group->nsolutions; i++)
        if (is_superfluous(search, &one, &group->solution[i]))
            return true;
    for (size_t i = 0; i < group->nsolutions; i++)
        if (is_superfluous(search, &group->solution[i], &one))
            serve_free_solution(&group->solution[i]);
        else
            group->solution[kept++] = group->solution[i];
    group->nsolutions = kept;
    one.choice = calloc(group->n, sizeof *one.choice);
    if (!one.choice || !serve_new_set(search, &one.late, err)) {
        free(one.choice);
        return rec_fail_memory(err);
    }
    copy_set(search, &one.late, &search->level[group->n - 1].late);
    for (size_t i = 0; i < group->n; i++)
        one.choice[i] = search->choice[group->stage[i]];
    if (!rec_grow(&group->solution, &group->room, kept + 1, sizeof *group->solution,
                  err)) {
        serve_free_solution(&one);
        return false;
    }
    group->solution[group->nsolutions++] = one;
    return true;
}

/* Groups `g` and later have their choices, which cost `cost`; tries all solutions of the
 * groups before `g` with them. A plan is found when g is 0. */
static void
join_groups(struct search *search, size_t g, double cost, double rate)
{
    const struct serve_planner *planner = search->planner;
    double before = 0;

    if (is_hopeless(search, cost, rate))
        return;
    if (g == 0) {
        search->found = true;
        search->cost = cost;
        search->rate = rate;
        memcpy(search->best, search->choice,
               planner->pipeline->nstages * sizeof *search->best);
        return;
    }
    for (size_t k = 0; k + 1 < g; k++)
        before += search->group[k].cheapest;
    struct group *group = &search->group[g - 1];
    for (size_t i = 0; i < group->nsolutions; i++) {
        const struct solution *solution = &group->solution[i];
        if (is_hopeless(search, cost + solution->cost + before,
                        fmin(rate, solution->rate)))
            continue;
        join_sets(search, &search->joint[g - 1], &search->joint[g], &solution->late);
        if (search->joint[g - 1].n > planner->allowed)
            continue;
        for (size_t s = 0; s < group->n; s++)
            search->choice[group->stage[s]] = solution->choice[s];
        join_groups(search, g - 1, cost + solution->cost, fmin(rate, solution->rate));
    }
}

/* ---- one stage ----------------------------------------------------------- */

/* The simulation of one stage. */
struct watching {
    struct search *search;
    struct level *level;
    double tail; /* the least time behind the stage, seconds */
    bool late;   /* too many queries are late: the simulation was stopped */
};

/* A batch of the stage is done: records it for the stages behind, and marks its late
 * queries. At a last stage (tail 0) lateness is exact; else the sum with `tail` may be
 * rounded, and only a query that is late by more than that is surely late. False ends the
 * simulation. */
static bool
take_batch(void *context, const struct serve_token *token, uint32_t n, double time,
           struct rec_error *err)
{
    struct watching *watching = context;
    struct serve_planner *planner = watching->search->planner;
    struct serve_trail *trail = &watching->level->trail;
    struct late *late = &watching->level->late;
    double slack = watching->tail > 0 ? planner->margin : 0;

    if (!rec_grow(&trail->batch, &trail->room, trail->nbatches + 1, sizeof *trail->batch,
                  err) ||
        !rec_grow(&trail->member, &trail->member_room, trail->nmembers + n,
                  sizeof *trail->member, err))
        return false;
    trail->batch[trail->nbatches++] =
        (struct serve_trailed){time, (uint32_t)trail->nmembers};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t query = token[i].query;
        uint64_t bit = (uint64_t)1 << query % 64, *word = &late->bit[query / 64];
        trail->member[trail->nmembers++] = query;
        if (time + watching->tail - planner->arrival[query] >
                planner->objective.slo + slack &&
            !(*word & bit)) {
            *word |= bit;
            late->n++;
        }
    }
    watching->late = late->n > planner->allowed;
    return !watching->late;
}

/* Simulates a stage with its choice, behind the choices before it. *met: not too many
 * queries are surely late; *waited: some query waited in the stage's queue. The other
 * stages' configs do not matter, but must be valid. */
static bool
simulate_stage(struct search *search, size_t depth, uint32_t s, bool *met, bool *waited,
               struct rec_error *err)
{
    struct serve_planner *planner = search->planner;
    const struct serve_choice_option *option =
        serve_chosen(planner, s, search->choice[s]);
    struct watching watching = {search, &search->level[depth], planner->menu[s].tail,
                                false};
    struct serve_sink sink = {NULL, NULL, &watching};
    struct serve_sim *sim;
    bool ok;

    for (uint32_t i = 0; i < planner->pipeline->nstages; i++)
        if (serve_has_model(planner, i))
            planner->config[i] = (struct serve_config){
                .profile = planner->menu[i].option[0].profile, .batch = 1, .replicas = 1};
    planner->config[s] = (struct serve_config){.profile = option->profile,
                                               .batch = option->batch,
                                               .replicas = search->choice[s].replicas};
    watching.level->trail.nbatches = watching.level->trail.nmembers = 0;
    copy_set(search, &watching.level->late,
             depth > 0 ? &search->level[depth - 1].late : NULL);
    if (!serve_count_simulation(planner, err) ||
        !(sim = serve_sim_new(planner->pipeline, planner->config,
                              &planner->objective.options, &sink, err)))
        return false;
    serve_sim_only(sim, s, take_batch);
    ok = true;
    for (size_t i = 0; ok && i < search->parents[s].n; i++) {
        uint32_t parent = search->parents[s].stage[i];
        ok = serve_sim_play(sim, parent, &search->level[search->level_of[parent]].trail,
                            err);
    }
    for (size_t i = 0; ok && i < planner->n; i++)
        ok = serve_sim_query(sim, planner->arrival[i], (struct rec_str){NULL, 0}, err);
    ok = ok && serve_sim_advance(sim, INFINITY, err);
    *met = ok;
    *waited = !ok || serve_sim_usage(sim, s).waiting > 0;
    serve_sim_free(sim);
    return ok || watching.late;
}

/* ---- the search ---------------------------------------------------------- */

/* The least cost of all groups but `g`: of those that were searched, of their solutions;
 * of others, one cheapest replica a stage. */
static double
cost_beside(const struct search *search, size_t g)
{
    double cost = 0;
    for (size_t i = 0; i < search->ngroups; i++)
        cost += i == g ? 0 : search->group[i].cheapest;
    return cost;
}

/* The least cost of the stages of a group from index `depth` on. */
static double
cost_behind(const struct search *search, const struct group *group, size_t depth)
{
    double cost = 0;
    for (; depth < group->n; depth++)
        cost += search->planner->menu[group->stage[depth]].cheapest;
    return cost;
}

/* Are too many queries surely late, before anything is simulated: all that come to the
 * stage, by the least times before, in and behind it; or some, by the stage's
 * throughput? */
static bool
is_impossible(const struct search *search, uint32_t s)
{
    const struct serve_planner *planner = search->planner;
    const struct serve_menu *menu = &planner->menu[s];
    const struct serve_choice_option *option =
        serve_chosen(planner, s, search->choice[s]);
    return (menu->visits > planner->allowed &&
            menu->head + option->shortest + menu->tail >
                planner->objective.slo + planner->margin) ||
           serve_too_slow(planner, s, search->choice[s]);
}

static bool search_stage(struct search *search, size_t g, size_t depth, double cost,
                         double rate, struct rec_error *err);

/* Tries all numbers of replicas of one option, from 1 up. It stops when the cost is too
 * high, or when no query waited: then more replicas would serve no query earlier. */
static bool
search_replicas(struct search *search, size_t g, size_t depth, uint32_t option,
                double cost, double rate, struct rec_error *err)
{
    const struct group *group = &search->group[g];
    struct serve_planner *planner = search->planner;
    uint32_t s = group->stage[depth];
    double price = planner->menu[s].option[option].price, rest;
    bool met, waited = true;

    rest = cost_beside(search, g) + cost_behind(search, group, depth + 1);
    for (uint32_t n = 1; n <= planner->objective.replicas && waited; n++) {
        double with = cost + n * price, slowest;
        search->choice[s] = (struct serve_choice){option, n};
        slowest = fmin(rate, serve_capacity(planner, s, search->choice[s]));
        if (is_hopeless(search, with + rest, INFINITY))
            break;
        if (is_hopeless(search, with + rest, slowest) || is_impossible(search, s))
            continue;
        if (!simulate_stage(search, depth, s, &met, &waited, err) ||
            (met && !search_stage(search, g, depth + 1, with, slowest, err)))
            return false;
        /* Idle replicas change nothing but the throughput, which may be the goal. */
        waited = waited ||
                 (planner->objective.goal == SERVE_MOST_THROUGHPUT && slowest < rate);
    }
    return true;
}

/* Tries all choices for the stages of group `g` from `depth` on. Solutions of all groups
 * but the last are kept; those of the last are joined with them at once, so that a good
 * plan is found early and bounds the rest. */
static bool
search_stage(struct search *search, size_t g, size_t depth, double cost, double rate,
             struct rec_error *err)
{
    struct group *group = &search->group[g];
    if (depth == group->n && g + 1 < search->ngroups)
        return keep_solution(search, group, cost, rate, err);
    if (depth == group->n) {
        copy_set(search, &search->joint[g],
                 group->n > 0 ? &search->level[depth - 1].late : NULL);
        join_groups(search, g, cost, rate);
        return true;
    }
    for (uint32_t i = 0; i < search->planner->menu[group->stage[depth]].n; i++)
        if (!search_replicas(search, g, depth, i, cost, rate, err))
            return false;
    return true;
}

/* ---- how long it will take ----------------------------------------------- */

/* An upper bound of the number of children that a node at this depth has in the tree:
 * choices for the stage that are not hopeless by their cost alone. */
static double
count_children(const struct search *search, size_t g, size_t depth)
{
    const struct group *group = &search->group[g];
    const struct serve_planner *planner = search->planner;
    const struct serve_menu *menu = &planner->menu[group->stage[depth]];
    double rest = cost_beside(search, g) + cost_behind(search, group, 0) - menu->cheapest;
    double children = 0;
    for (uint32_t i = 0; i < menu->n; i++)
        for (uint32_t n = 1; n <= planner->objective.replicas; n++, children++)
            if (is_hopeless(search, n * menu->option[i].price + rest, INFINITY))
                break;
    return children;
}

/*
 * Estimates the simulations that the search of a group takes, by one random way down its
 * tree. All children of a node are simulated, and the way goes on to a random one of the
 * m that are not cut off; the estimated number of nodes at the next depth is m times that
 * at this one (`alike`). The mean of *simulations over all ways down is the exact number
 * (Knuth, "Estimating the efficiency of backtrack programs", Mathematics of Computation
 * 29, 1975).
 */
static bool
dive(struct search *search, size_t g, struct rng *rng, double *simulations,
     struct rec_error *err)
{
    struct group *group = &search->group[g];
    struct serve_planner *planner = search->planner;
    double alike = 1, cost = 0;

    for (size_t depth = 0; depth < group->n; depth++) {
        uint32_t s = group->stage[depth], alive = 0, tried = 0;
        double rest = cost_beside(search, g) + cost_behind(search, group, depth + 1);
        struct serve_choice chosen = {0, 1};
        for (uint32_t i = 0; i < planner->menu[s].n; i++) {
            bool met, waited = true;
            for (uint32_t n = 1; n <= planner->objective.replicas && waited; n++) {
                struct serve_choice *choice = &search->choice[s];
                *choice = (struct serve_choice){i, n};
                if (is_hopeless(search,
                                cost + rest + n * planner->menu[s].option[i].price,
                                INFINITY))
                    break;
                if (is_impossible(search, s))
                    continue;
                if (!simulate_stage(search, depth, s, &met, &waited, err))
                    return false;
                tried++;
                /* each of the children alive so far is equally likely to be the chosen
                 * one */
                if (met && rng_below(rng, ++alive) == 0)
                    chosen = *choice;
            }
        }
        *simulations += alike * tried;
        if (alive == 0)
            return true;
        alike *= alive;
        search->choice[s] = chosen;
        cost += chosen.replicas * serve_chosen(planner, s, chosen)->price;
        if (!simulate_stage(search, depth, s, &(bool){false}, &(bool){false}, err))
            return false;
    }
    return true;
}

static int
compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Refuses a search that would take too long before it begins. If even the upper bound of
 * the tree is within the limit, no estimate is needed. A random way down seldom
 * overestimates the tree by far, but often underestimates it; so the median of a few must
 * exceed the limit. */
static bool
estimate(struct search *search, size_t g, struct rec_error *err)
{
    enum { DIVES = 3 };
    struct serve_planner *planner = search->planner;
    double most = 1, sum = 0, simulations[DIVES] = {0};
    uint64_t before = planner->simulations;
    struct rng *rng;
    bool ok;

    for (size_t depth = 0; depth < search->group[g].n; depth++) {
        most *= count_children(search, g, depth);
        sum += most;
    }
    if (rec_limit(&planner->objective.limit, (double)before + sum, "", NULL))
        return true;
    rng = rng_new(1, rng_stream("exact"), err);
    ok = rng != NULL;
    for (int i = 0; ok && i < DIVES; i++)
        ok = dive(search, g, rng, &simulations[i], err);
    rng_free(rng);
    qsort(simulations, DIVES, sizeof *simulations, compare_numbers);
    return ok && rec_limit(&planner->objective.limit,
                           (double)before + simulations[DIVES / 2], "simulations", err);
}

static int
compare_solutions(const void *a, const void *b)
{
    const struct solution *x = a, *y = b;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

/* Searches group after group. If a group has no solution, no plan is better than the best
 * so far. When a group has been searched, its least cost is known and bounds the later
 * ones. */
static bool
search_groups(struct search *search, struct rec_error *err)
{
    for (size_t g = 0; g < search->ngroups; g++) {
        struct group *group = &search->group[g];
        for (size_t i = 0; i < group->n; i++)
            search->level_of[group->stage[i]] = (uint32_t)i;
        if (!estimate(search, g, err) || !search_stage(search, g, 0, 0, INFINITY, err))
            return false;
        if (g + 1 == search->ngroups)
            break;
        if (group->nsolutions == 0)
            return true;
        qsort(group->solution, group->nsolutions, sizeof *group->solution,
              compare_solutions);
        group->cheapest = group->solution[0].cost;
    }
    return true;
}

bool
serve_plan_exactly(struct serve_planner *planner, struct serve_plan *plan,
                   struct rec_error *err)
{
    struct search search = {.planner = planner,
                            .found = plan->config != NULL,
                            .cost = plan->cost,
                            .rate = plan->throughput};
    bool before = search.found, ok;
    double cost = plan->cost, rate = plan->throughput;

    ok = serve_can_meet(planner, err) && serve_open_search(&search, err) &&
         search_groups(&search, err);
    if (ok && !search.found)
        ok = rec_fail(err, REC_NO,
                      "no configuration meets %g s within the budget and %u "
                      "replicas a stage: all were tried or are ruled out",
                      planner->objective.slo, planner->objective.replicas);
    if (ok && (!before || search.cost != cost || search.rate != rate))
        ok = serve_make_plan(planner, search.best, plan, err);
    if (ok)
        plan->bound =
            planner->objective.goal == SERVE_LEAST_COST ? plan->cost : plan->throughput;
    serve_close_search(&search);
    return ok;
}
