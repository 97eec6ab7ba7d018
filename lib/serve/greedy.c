/* The published planner (InferLine, section 4): from a plan that meets the objective to
 * cheaper ones, one action at a time. It is greedy, and simulates little. */
#include "planner.h"

#include <math.h>
#include <stdlib.h>

/* The best of the configurations that were tried. */
struct best {
    struct serve_choice *choice; /* per stage; owned */
    bool found;
    double cost, latency; /* US$ an hour, seconds */
};

/* ---- moves --------------------------------------------------------------- */

/* Moves *option to the next larger batch of its hardware. False: there is none. */
static bool
next_batch(const struct serve_menu *menu, uint32_t *option)
{
    if (*option + 1 == menu->n ||
        menu->option[*option + 1].profile != menu->option[*option].profile)
        return false;
    ++*option;
    return true;
}

/* Moves *option to the smallest batch of the next cheaper hardware. False: there is none.
 * Options are in order of price, then hardware, then batch. */
static bool
next_cheaper(const struct serve_menu *menu, uint32_t *option)
{
    double price = menu->option[*option].price;
    uint32_t to = *option;
    while (to > 0 && menu->option[to].price >= price)
        to--;
    if (menu->option[to].price >= price)
        return false;
    while (to > 0 && menu->option[to - 1].profile == menu->option[to].profile)
        to--;
    *option = to;
    return true;
}

/* Keeps `choice` in *best if it meets the objective and is better. What costs more than
 * the best is not simulated, which saves most simulations. */
static bool
try(struct serve_planner *planner, const struct serve_choice *choice, struct best *best,
    struct rec_error *err)
{
    struct serve_verdict verdict;
    double cost = serve_cost(planner, choice);
    if (best->found && cost > best->cost)
        return true;
    if (!serve_judge(planner, choice, &verdict, err))
        return false;
    if (!verdict.met ||
        (best->found && cost == best->cost && verdict.latency >= best->latency))
        return true;
    best->found = true;
    best->cost = cost;
    best->latency = verdict.latency;
    memcpy(best->choice, choice, planner->pipeline->nstages * sizeof *choice);
    return true;
}

/* The actions: each tries changes of stage `s`, and leaves `choice` as it was. This one
 * takes a replica away. */
static bool
try_fewer(struct serve_planner *planner, struct serve_choice *choice, uint32_t s,
          struct best *best, struct rec_error *err)
{
    bool ok;
    if (choice[s].replicas == 1)
        return true;
    choice[s].replicas--;
    ok = try(planner, choice, best, err);
    choice[s].replicas++;
    return ok;
}

/* The next larger batch: it costs the same, but may allow fewer replicas later. */
static bool
try_bigger(struct serve_planner *planner, struct serve_choice *choice, uint32_t s,
           struct best *best, struct rec_error *err)
{
    struct serve_choice before = choice[s];
    bool ok = !next_batch(&planner->menu[s], &choice[s].option) ||
              try(planner, choice, best, err);
    choice[s] = before;
    return ok;
}

static struct best
new_best(const struct serve_planner *planner, struct rec_error *err)
{
    struct best best = {.choice =
                            calloc(planner->pipeline->nstages + 1, sizeof *best.choice)};
    if (!best.choice)
        rec_fail_memory(err);
    return best;
}

/* The stage on the next cheaper hardware. It starts with batches of 1 and the fewest
 * replicas that meet the objective without costing more than now; then fewer replicas and
 * larger batches are tried for this stage alone, as long as the objective is still
 * met. */
static bool
try_cheaper(struct serve_planner *planner, struct serve_choice *choice, uint32_t s,
            struct best *best, struct rec_error *err)
{
    struct serve_choice before = choice[s];
    double most = serve_cost(planner, choice);
    struct best local = new_best(planner, err);
    bool ok = local.choice != NULL;

    if (ok && next_cheaper(&planner->menu[s], &choice[s].option)) {
        struct serve_verdict verdict = {.met = false};
        for (choice[s].replicas = 1; ok && serve_cost(planner, choice) <= most &&
                                     choice[s].replicas <= planner->objective.replicas;
             choice[s].replicas++) {
            ok = serve_judge(planner, choice, &verdict, err);
            if (verdict.met)
                break;
        }
        while (ok && verdict.met) {
            ok = try(planner, choice, best, err);
            local.found = false;
            ok = ok && try_fewer(planner, choice, s, &local, err) &&
                 try_bigger(planner, choice, s, &local, err);
            verdict.met = local.found;
            if (local.found)
                choice[s] = local.choice[s];
        }
    }
    free(local.choice);
    choice[s] = before;
    return ok;
}

/* ---- the planner --------------------------------------------------------- */

/* Batches of 1 on the hardware that serves a single query fastest; of equally fast ones,
 * on the cheapest, which comes first in the menu. */
static void
choose_fastest(const struct serve_planner *planner, struct serve_choice *choice)
{
    for (uint32_t s = 0; s < planner->pipeline->nstages; s++) {
        const struct serve_menu *menu = &planner->menu[s];
        choice[s] = (struct serve_choice){0, 1};
        for (uint32_t i = 0; i < menu->n; i++)
            if (menu->option[i].batch == 1 &&
                menu->option[i].alone < menu->option[choice[s].option].alone)
                choice[s].option = i;
    }
}

/* Adds replicas to the slowest stage until the objective is met. */
static bool
provision(struct serve_planner *planner, struct serve_choice *choice,
          struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    struct serve_verdict verdict;
    uint32_t least;
    double rate;

    for (;;) {
        if (!serve_judge(planner, choice, &verdict, err))
            return false;
        if (verdict.met)
            return true;
        rate = serve_bottleneck(planner, choice, &least);
        if (least == REC_NONE)
            return rec_fail(err, REC_NO, "no stage has a model to provision");
        if (choice[least].replicas == planner->objective.replicas)
            return rec_fail(err, REC_NO,
                            "%u replicas of stage '%s' with batches of 1 serve %g "
                            "queries/s, which is too slow for the objective of %g s",
                            choice[least].replicas, p->stage[least].name, rate,
                            planner->objective.slo);
        choice[least].replicas++;
    }
}

/* Would the objective be met if no query ever waited, alone in its batch? If not, adding
 * replicas is in vain, and provision() would not end before the largest number of
 * them. */
static bool
check_alone(struct serve_planner *planner, const struct serve_choice *choice,
            struct serve_choice *many, struct rec_error *err)
{
    const struct serve_pipeline *p = planner->pipeline;
    struct serve_verdict verdict;
    for (uint32_t s = 0; s < p->nstages; s++)
        many[s] = (struct serve_choice){choice[s].option, SERVE_REPLICAS_MAX};
    if (!serve_judge(planner, many, &verdict, err))
        return false;
    return verdict.met || rec_fail(err, REC_NO,
                                   "batches of 1 on the fastest hardware do not meet the "
                                   "objective of %g s with any number of replicas",
                                   planner->objective.slo);
}

typedef bool action(struct serve_planner *, struct serve_choice *, uint32_t,
                    struct best *, struct rec_error *);

/* Takes the best action until none meets the objective at the same cost or less. Actions
 * that save most are tried first, since try() simulates nothing that costs more than the
 * best so far. */
static bool
minimize(struct serve_planner *planner, struct serve_choice *choice,
         struct rec_error *err)
{
    static action *const actions[] = {try_cheaper, try_fewer, try_bigger};
    struct best best = new_best(planner, err);
    size_t n = planner->pipeline->nstages;
    bool ok = best.choice != NULL;
    do {
        double cost = serve_cost(planner, choice);
        best.found = false;
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
            for (uint32_t s = 0; ok && s < n; s++)
                if (serve_has_model(planner, s))
                    ok = actions[i](planner, choice, s, &best, err);
        best.found = best.found && best.cost <= cost;
        if (ok && best.found)
            memcpy(choice, best.choice, n * sizeof *choice);
    } while (ok && best.found);
    free(best.choice);
    return ok;
}

/* ---- throughput ---------------------------------------------------------- */

/* Changes the slowest stage's choice to `with`, if that raises its capacity within the
 * budget and the objective is still met; *taken says so. */
static bool
spend(struct serve_planner *planner, struct serve_choice *choice, uint32_t s,
      struct serve_choice with, bool *taken, struct rec_error *err)
{
    struct serve_choice before = choice[s];
    struct serve_verdict verdict;
    if (serve_capacity(planner, s, with) <= serve_capacity(planner, s, before))
        return true;
    choice[s] = with;
    if (serve_cost(planner, choice) <= planner->objective.budget) {
        if (!serve_judge(planner, choice, &verdict, err))
            return false;
        *taken = verdict.met;
    }
    if (!*taken)
        choice[s] = before;
    return true;
}

/* Speeds up the slowest stage as long as possible, by the first of these that works: the
 * next larger batch, one more replica, dearer hardware. */
static bool
spend_budget(struct serve_planner *planner, struct serve_choice *choice,
             struct rec_error *err)
{
    bool taken;
    uint32_t s;
    do {
        taken = false;
        if (isinf(serve_bottleneck(planner, choice, &s)))
            return true;
        struct serve_choice bigger = choice[s], more = choice[s], dearer = choice[s];
        const struct serve_menu *menu = &planner->menu[s];
        if (next_batch(menu, &bigger.option) &&
            !spend(planner, choice, s, bigger, &taken, err))
            return false;
        more.replicas++;
        if (!taken && more.replicas <= planner->objective.replicas &&
            !spend(planner, choice, s, more, &taken, err))
            return false;
        while (!taken && ++dearer.option < menu->n)
            if (menu->option[dearer.option].price >
                    menu->option[choice[s].option].price &&
                !spend(planner, choice, s, dearer, &taken, err))
                return false;
    } while (taken);
    return true;
}

static bool
plan_greedily(struct serve_planner *planner, struct serve_choice *choice,
              struct serve_choice *many, struct serve_plan *plan, struct rec_error *err)
{
    choose_fastest(planner, choice);
    if (!check_alone(planner, choice, many, err) || !provision(planner, choice, err) ||
        !minimize(planner, choice, err))
        return false;
    if (serve_cost(planner, choice) > planner->objective.budget)
        return rec_fail(
            err, REC_NO,
            "the cheapest configuration found that meets %g s costs %g US$ an "
            "hour, more than %g",
            planner->objective.slo, serve_cost(planner, choice),
            planner->objective.budget);
    return (planner->objective.goal == SERVE_LEAST_COST ||
            spend_budget(planner, choice, err)) &&
           serve_make_plan(planner, choice, plan, err);
}

bool
serve_plan_greedily(struct serve_planner *planner, struct serve_plan *plan,
                    struct rec_error *err)
{
    size_t n = planner->pipeline->nstages + 1;
    struct serve_choice *choice = calloc(n, sizeof *choice);
    struct serve_choice *many = calloc(n, sizeof *many);
    bool ok = (choice && many) || rec_fail_memory(err);
    ok = ok && serve_can_meet(planner, err) &&
         plan_greedily(planner, choice, many, plan, err);
    free(choice);
    free(many);
    return ok;
}
