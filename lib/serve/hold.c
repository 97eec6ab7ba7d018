/*
 * Judges plans by queries that they were not fitted to (a trial), and adds replicas until
 * the attainment holds there, too.
 *
 * Late queries come in bursts, so n queries say less than n independent ones would. The
 * method of batch means tells how many they are worth: the variance of the means of
 * batches of consecutive queries gives the variance of the share in time. With that
 * number of queries, Wilson's interval is the confidence interval of the share.
 */
#include "planner.h"

#include <math.h>
#include <stdlib.h>

/* Batches of consecutive queries, and Student's t for their 19 degrees of freedom (95
 * %). */
enum { BATCHES = 20 };
#define STUDENT_T 2.093

/* The result of a trial. */
struct outcome {
    uint64_t late; /* queries that are late */
    double excess; /* the sum of the times by which they are late, seconds */
};

struct trying {
    const struct serve_planner *planner;
    double *over; /* per query: its latency beyond the objective, seconds; < 0: in time */
    struct outcome outcome;
};

static bool
hear_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    struct trying *trying = context;
    double over = reply->finish - reply->arrival - trying->planner->objective.slo;
    uint32_t query;
    (void)err;
    if (reply->id.len != sizeof query)
        return true;
    memcpy(&query, reply->id.ptr, sizeof query);
    trying->over[query] = over;
    trying->outcome.late += over > 0;
    trying->outcome.excess += fmax(0, over);
    return true;
}

/* Simulates a trial. The id of a query that counts is the bytes of its number; queries of
 * the warm-up have none, and hear_reply() skips them. */
static bool
try(struct serve_planner *planner, const struct serve_choice *choice,
    const struct serve_trial *trial, double *over, struct outcome *outcome,
    struct rec_error *err)
{
    struct trying trying = {planner, over, {0, 0}};
    struct serve_sink sink = {hear_reply, NULL, &trying};
    struct serve_options options = planner->objective.options;
    struct serve_sim *sim;
    bool ok;

    options.seed = trial->seed;
    serve_set_configs(planner, choice);
    if (!serve_count_simulation(planner, err) ||
        !(sim = serve_sim_new(planner->pipeline, planner->config, &options, &sink, err)))
        return false;
    ok = true;
    for (uint32_t i = 0; ok && i < trial->n; i++) {
        struct rec_str id = {(const char *)&i, i >= trial->from ? sizeof i : 0};
        ok = serve_sim_query(sim, trial->arrival[i] / trial->speed, id, err);
    }
    ok = ok && serve_sim_advance(sim, INFINITY, err);
    serve_sim_free(sim);
    *outcome = trying.outcome;
    return ok;
}

/* How late a query must be to count for the dependence of late queries: later than the
 * objective, or if no query is, than the share `percentile` of the queries. None late
 * would else look like n independent queries in time, where lateness comes in bursts that
 * the trial just missed. It did not just miss them if the objective is further away from
 * the slowest query than that is from the median. `scratch` has room for n values. */
static double
find_bound(const double *over, size_t n, double percentile, double *scratch)
{
    double slowest = -INFINITY;
    for (size_t i = 0; i < n; i++)
        slowest = fmax(slowest, over[i]);
    if (slowest > 0)
        return 0;
    memcpy(scratch, over, n * sizeof *over);
    if (2 * slowest < serve_select(scratch, n, n / 2))
        return 0;
    return serve_select(scratch, n, n - serve_allowed(n, percentile) - 1);
}

/* Fills *attained from n > 0 queries in the order in which they came. */
static void
attain(const double *over, size_t n, double bound, struct serve_attained *attained)
{
    double missed = 0, late = 0, sum = 0, squares = 0, worth = (double)n, share, z;
    double middle, half;
    for (size_t b = 0; b < BATCHES; b++) {
        size_t from = b * n / BATCHES, to = (b + 1) * n / BATCHES;
        double in = 0, mean;
        for (size_t i = from; i < to; i++) {
            in += over[i] > bound;
            late += over[i] > 0;
        }
        missed += in;
        mean = to > from ? in / (double)(to - from) : 0;
        sum += mean;
        squares += mean * mean;
    }
    share = 1 - missed / (double)n;
    if (missed > 0 && missed < (double)n) {
        double variance = (squares - sum * sum / BATCHES) / (BATCHES - 1) / BATCHES;
        if (variance > 0)
            worth = fmin(worth, share * (1 - share) / variance);
    }
    share = 1 - late / (double)n;
    z = STUDENT_T * STUDENT_T / worth;
    middle = (share + z / 2) / (1 + z);
    half = sqrt(z * share * (1 - share) + z * z / 4) / (1 + z);
    *attained =
        (struct serve_attained){.queries = n,
                                .late = (uint64_t)late,
                                .share = 100 * share,
                                .lower = 100 * fmax(0, middle - half),
                                .upper = late > 0 ? 100 * fmin(1, middle + half) : 100};
}

/* A change of one stage that was tried. */
struct step {
    bool found;
    uint32_t stage;
    struct serve_choice to;
    double price;           /* what it adds to the cost, US$ an hour */
    struct outcome outcome; /* of the trial with it */
};

/* A climb goes from a plan, by steps, to one with which enough queries of the trial are
 * in time. */
struct climb {
    struct serve_planner *planner;
    const struct serve_trial *trial;
    struct serve_choice *choice; /* per stage: where the climb is */
    double *over, *scratch;      /* per query of the trial: as in struct trying */
    double rate;                 /* the highest mean rate that may come, queries/s */
    struct outcome outcome;      /* of the trial with `choice` */
    uint64_t fewest;             /* late queries at the best step so far */
    double least;                /* the least excess so far, seconds */
    size_t idle;                 /* steps since `fewest` or `least` went down */
};

/* Step a is better than b if it makes fewer queries late for its price; of equal ones, if
 * it reduces the excess more for its price: two stages may have to improve before any
 * query is in time. */
static bool
is_better(const struct climb *climb, const struct step *a, const struct step *b)
{
    double la = (double)climb->outcome.late - (double)a->outcome.late;
    double lb = (double)climb->outcome.late - (double)b->outcome.late;
    if (!b->found || la / a->price != lb / b->price)
        return !b->found || la / a->price > lb / b->price;
    return (climb->outcome.excess - a->outcome.excess) / a->price >
           (climb->outcome.excess - b->outcome.excess) / b->price;
}

static bool
try_step(struct climb *climb, uint32_t s, struct serve_choice to, double price,
         struct step *best, struct rec_error *err)
{
    struct step step = {true, s, to, price, {0, 0}};
    struct serve_choice before = climb->choice[s];
    bool ok;
    climb->choice[s] = to;
    ok =
        try(climb->planner, climb->choice, climb->trial, climb->over, &step.outcome, err);
    climb->choice[s] = before;
    if (ok && is_better(climb, &step, best))
        *best = step;
    return ok;
}

static bool
refuse(const struct climb *climb, struct rec_error *err)
{
    return rec_fail(err, REC_NO,
                    "the plan meets %g s for the sample, but not for held-out queries: "
                    "%llu of %zu are late, and more replicas do not help or are "
                    "not allowed",
                    climb->planner->objective.slo,
                    (unsigned long long)climb->outcome.late,
                    climb->trial->n - climb->trial->from);
}

/* Adds the replica that helps most for its price. A price of 0 counts as almost 0: it is
 * a divisor. */
static bool
add_replica(struct climb *climb, struct rec_error *err)
{
    const struct serve_objective *objective = &climb->planner->objective;
    double cost = serve_cost(climb->planner, climb->choice);
    struct step best = {0};
    for (uint32_t s = 0; s < climb->planner->pipeline->nstages; s++) {
        struct serve_choice more = climb->choice[s];
        double price;
        if (!serve_has_model(climb->planner, s) || more.replicas == objective->replicas)
            continue;
        price = serve_chosen(climb->planner, s, more)->price;
        more.replicas++;
        if (cost + price <= objective->budget * (1 + 1e-12) &&
            !try_step(climb, s, more, fmax(price, 1e-9), &best, err))
            return false;
    }
    if (!best.found)
        return refuse(climb, err);
    climb->choice[best.stage] = best.to;
    return true;
}

/* Changes one stage to its next larger or smaller batch, by the change that makes fewest
 * queries late; none, if all make as many late as now. */
static bool
change_batch(struct climb *climb, bool *changed, struct rec_error *err)
{
    struct step best = {0};
    for (uint32_t s = 0; s < climb->planner->pipeline->nstages; s++) {
        const struct serve_menu *menu = &climb->planner->menu[s];
        for (int by = -1; by <= 1 && serve_has_model(climb->planner, s); by += 2) {
            struct serve_choice to = climb->choice[s];
            uint32_t profile = menu->option[to.option].profile;
            if ((by < 0 && to.option == 0) || (by > 0 && to.option + 1 == menu->n))
                continue;
            to.option = by < 0 ? to.option - 1 : to.option + 1;
            if (menu->option[to.option].profile == profile &&
                !try_step(climb, s, to, 1, &best, err))
                return false;
        }
    }
    *changed = best.found && best.outcome.late < climb->outcome.late;
    if (*changed)
        climb->choice[best.stage] = best.to;
    return true;
}

/* Gives up after as many steps without an improvement as there are stages: all stages may
 * need a replica before a query is in time, but no more than all. An excess counts as
 * improved if it fell by 1 %. */
static bool
progresses(struct climb *climb, struct rec_error *err)
{
    const struct outcome *outcome = &climb->outcome;
    if (outcome->late < climb->fewest || outcome->excess < 0.99 * climb->least)
        climb->idle = 0;
    climb->fewest = outcome->late < climb->fewest ? outcome->late : climb->fewest;
    climb->least = fmin(climb->least, outcome->excess);
    return climb->idle++ < climb->planner->pipeline->nstages || refuse(climb, err);
}

/* The upper end of the confidence interval (95 %) of the rate of arrivals, queries/s, by
 * the deviation of the spacings, which are taken as independent; 0: all come at once. */
static double
highest_rate(const double *arrival, size_t n)
{
    double mean, squares = 0;
    if (n < 3 || !(arrival[n - 1] > arrival[0]))
        return 0;
    mean = (arrival[n - 1] - arrival[0]) / (double)(n - 1);
    for (size_t i = 1; i < n; i++) {
        double over = (arrival[i] - arrival[i - 1]) / mean - 1;
        squares += over * over;
    }
    return (1 + 1.96 * sqrt(squares) / (double)(n - 1)) / mean;
}

/* Adds replicas until every stage can serve the highest rate that may come. If a stage is
 * too slow by a few per cent, its queue grows slowly: a sample of some seconds does not
 * show it, but a run of an hour would. */
static bool
carry_rate(struct climb *climb, struct rec_error *err)
{
    struct serve_planner *planner = climb->planner;
    const struct serve_objective *objective = &planner->objective;
    double rate = climb->rate * climb->trial->speed, least;
    uint32_t s;
    while ((least = serve_bottleneck(planner, climb->choice, &s)) < rate) {
        double price = serve_chosen(planner, s, climb->choice[s])->price;
        if (climb->choice[s].replicas == objective->replicas ||
            serve_cost(planner, climb->choice) + price > objective->budget * (1 + 1e-12))
            return rec_fail(err, REC_NO,
                            "up to %g queries/s may arrive, but stage '%s' serves only "
                            "%g, and more replicas are not allowed",
                            rate, planner->pipeline->stage[s].name, least);
        climb->choice[s].replicas++;
    }
    return true;
}

/* Takes steps until enough queries of the trial are in time; *attained is then that of
 * the last trial. `batches`: change batches where that helps, before replicas are added;
 * without it this begins only when replicas have not helped for two steps. */
static bool
climb_up(struct climb *climb, bool batches, struct serve_attained *attained,
         struct rec_error *err)
{
    const struct serve_trial *trial = climb->trial;
    const double *over = climb->over + trial->from;
    double percentile = climb->planner->objective.percentile;
    size_t n = trial->n - trial->from;
    climb->fewest = UINT64_MAX;
    climb->least = INFINITY;
    climb->idle = 0;
    for (;;) {
        bool changed = false;
        if (!carry_rate(climb, err) ||
            !try(climb->planner, climb->choice, trial, climb->over, &climb->outcome, err))
            return false;
        attain(over, n, find_bound(over, n, percentile, climb->scratch), attained);
        if (attained->late == 0 || attained->lower >= percentile)
            return true;
        batches = batches || climb->idle > 1;
        if (!progresses(climb, err) || (batches && !change_batch(climb, &changed, err)) ||
            (!changed && !add_replica(climb, err)))
            return false;
    }
}

/* Starts a climb at a plan: turns its configs into choices of the planner's menus. */
static bool
open_climb(struct climb *climb, const struct serve_plan *plan, struct rec_error *err)
{
    struct serve_planner *planner = climb->planner;
    size_t n = planner->pipeline->nstages;
    climb->rate = fmax(highest_rate(planner->arrival, planner->n),
                       highest_rate(climb->trial->arrival, climb->trial->n));
    climb->choice = calloc(n + 1, sizeof *climb->choice);
    climb->over = calloc(climb->trial->n + 1, sizeof *climb->over);
    climb->scratch = calloc(climb->trial->n + 1, sizeof *climb->scratch);
    if (!climb->choice || !climb->over || !climb->scratch)
        return rec_fail_memory(err);
    for (uint32_t s = 0; s < n; s++) {
        const struct serve_menu *menu = &planner->menu[s];
        struct serve_choice *choice = &climb->choice[s];
        choice->replicas = plan->config[s].replicas;
        while (choice->option + 1 < menu->n &&
               (menu->option[choice->option].profile != plan->config[s].profile ||
                menu->option[choice->option].batch != plan->config[s].batch))
            choice->option++;
    }
    return true;
}

static void
close_climb(struct climb *climb)
{
    free(climb->choice);
    free(climb->over);
    free(climb->scratch);
}

bool
serve_plan_secure(struct serve_planner *planner, const struct serve_trial *trial,
                  struct serve_plan *plan, struct serve_attained *attained,
                  struct rec_error *err)
{
    struct climb climb = {.planner = planner, .trial = trial};
    struct serve_verdict verdict;
    double bound = plan->bound;
    bool ok = open_climb(&climb, plan, err);

    while (
        ok &&
        (ok = climb_up(&climb, false, attained, err) &&
              serve_judge(planner, climb.choice, &verdict, err)) &&
        !verdict
             .met) /* more replicas may, rarely, make more queries of the sample late */
        ok = add_replica(&climb, err);
    for (size_t s = 0; ok && s < planner->pipeline->nstages; s++)
        attained->added += climb.choice[s].replicas - plan->config[s].replicas;
    ok =
        ok && (attained->added == 0 || serve_make_plan(planner, climb.choice, plan, err));
    plan->bound = bound;
    attained->carried = climb.rate;
    close_climb(&climb);
    return ok;
}

/* Each rung begins where the one before ended, so that settings grow with the rate. The
 * budget does not bound them: a tuner adds replicas for a short time only. */
bool
serve_plan_rungs(struct serve_planner *planner, const struct serve_trial *trial,
                 const struct serve_plan *plan, const double *speed, size_t *n,
                 struct serve_config *rung, struct rec_error *err)
{
    struct serve_trial faster = *trial;
    struct climb climb = {.planner = planner, .trial = &faster};
    size_t nstages = planner->pipeline->nstages, found = 0;
    double budget = planner->objective.budget;
    bool ok = open_climb(&climb, plan, err);

    planner->objective.budget = INFINITY;
    for (; ok && found < *n; found++) {
        struct serve_attained attained;
        faster.speed = speed[found];
        ok = climb_up(&climb, true, &attained, err);
        if (!ok)
            break;
        serve_set_configs(planner, climb.choice);
        for (size_t s = 0; s < nstages; s++)
            rung[found * nstages + s] = planner->config[s];
    }
    *n = found;
    ok = ok || err->code == REC_NO; /* fewer rungs are no error */
    planner->objective.budget = budget;
    close_climb(&climb);
    return ok;
}

bool
serve_plan_fixed(const struct serve_planner *planner, const struct serve_trial *trial,
                 double *cost, struct rec_error *err)
{
    const struct serve_pipeline *pipeline = planner->pipeline;
    struct serve_objective objective = planner->objective;
    struct serve_planner *other = NULL;
    struct serve_plan plan = {0};
    struct serve_attained attained = {0};
    double *arrival = calloc(planner->n + trial->n, sizeof *arrival);
    struct serve_trial faster = *trial;
    bool ok = arrival || rec_fail_memory(err), found = false;

    objective.goal = SERVE_LEAST_COST;
    objective.budget = INFINITY;
    for (size_t i = 0; ok && i < planner->n; i++)
        arrival[i] = planner->arrival[i] / trial->speed;
    for (size_t i = 0; ok && i < trial->n; i++)
        arrival[planner->n + i] = trial->arrival[i] / trial->speed;
    faster.speed = 1;
    faster.arrival = ok ? arrival + planner->n : NULL;
    ok =
        ok && (other = serve_planner_new(pipeline, arrival, planner->n, &objective, err));
    found = ok && serve_plan_greedily(other, &plan, err) &&
            serve_plan_secure(other, &faster, &plan, &attained, err);
    for (size_t s = 0; ok && s < pipeline->nstages; s++) {
        const struct serve_config *config = found ? &plan.config[s] : NULL;
        cost[s] = NAN;
        if (found && config->profile != REC_NONE)
            cost[s] = config->replicas *
                      pipeline->price[pipeline->profile[config->profile].hardware];
    }
    ok = ok && (found || err->code == REC_NO);
    serve_plan_free(&plan);
    serve_planner_free(other);
    free(arrival);
    return ok;
}
