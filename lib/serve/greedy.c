/* The published planner: from a plan that surely meets the objective to a cheaper one,
 * step by step. */
#include "planner.h"

#include <math.h>
#include <stdlib.h>

/* The best of what was tried; choices are per stage. */
struct best {
    struct serve_choice *choice;
    bool found;
    double cost, latency;
};

/* ---- moves --------------------------------------------------------------- */

/* The options of a stage of one hardware: that of the next batch; false: there is
 * none. */
static bool
next_batch(const struct serve_menu *menu, uint32_t *option)
{
    if (*option + 1 == menu->n ||
        menu->option[*option + 1].profile != menu->option[*option].profile)
        return false;
    ++*option;
    return true;
}

/* The smallest batch of the next cheaper hardware. */
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

/* Whether what is in `choice` is the best so far, which is kept in *best. */
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

/* A replica less. */
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

/* One stage on cheaper hardware, with replicas and batch found anew for it alone. */
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

/* Batches of one on the hardware that is fastest alone, of equal ones the cheapest. */
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

/* Replicas where there is least throughput, until the objective is met. */
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
                            "%u replicas of stage '%s', with batches of 1, take %g "
                            "queries/s, too few to meet %g s",
                            choice[least].replicas, p->stage[least].name, rate,
                            planner->objective.slo);
        choice[least].replicas++;
    }
}

/* With queries that never wait, alone in their batches. */
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
    return verdict.met ||
           rec_fail(err, REC_NO,
                    "batches of 1 on the fastest hardware do not meet %g s, however many "
                    "replicas there are",
                    planner->objective.slo);
}

typedef bool action(struct serve_planner *, struct serve_choice *, uint32_t,
                    struct best *, struct rec_error *);

/* What saves most is tried first: what costs more than the best so far is not
 * simulated. */
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

/* A change of the slowest stage is taken if it makes it faster within the budget. */
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

/* The next batch, a replica more, dearer hardware: the first that works, of the stage
 * that is slowest, as long as one does. */
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
