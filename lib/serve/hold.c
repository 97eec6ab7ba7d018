/*
 * Plans held against queries that they were not fitted to. Queries that are late come in
 * bursts: the interval of the attainment comes of the means of batches of queries, one
 * behind the other (batch means), which say how many independent queries the sample is
 * worth; with so many it is Wilson's.
 */
#include "planner.h"

#include <math.h>
#include <stdlib.h>

/* Batches; Student's t for them, 95 per cent. */
enum { BATCHES = 20 };
#define STUDENT 2.093

/* What happened to the queries of a trial. */
struct outcome {
    uint64_t late;
    double excess; /* by how much in all, seconds */
};

struct trying {
    const struct serve_planner *planner;
    unsigned char *late; /* per query */
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
    trying->late[query] = over > 0;
    trying->outcome.late += over > 0;
    trying->outcome.excess += fmax(0, over);
    return true;
}

/* Simulates a trial; those of its queries that count have their number for an id. */
static bool
try(struct serve_planner *planner, const struct serve_choice *choice,
    const struct serve_trial *trial, unsigned char *late, struct outcome *outcome,
    struct rec_error *err)
{
    struct trying trying = {planner, late, {0, 0}};
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

void
serve_attain(const unsigned char *late, size_t n, struct serve_attained *attained)
{
    double missed = 0, sum = 0, squares = 0, worth = (double)n, share, z, middle, half;
    for (size_t b = 0; b < BATCHES; b++) {
        size_t from = b * n / BATCHES, to = (b + 1) * n / BATCHES;
        double in = 0, mean;
        for (size_t i = from; i < to; i++)
            in += late[i];
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
    z = STUDENT * STUDENT / worth;
    middle = (share + z / 2) / (1 + z);
    half = sqrt(z * share * (1 - share) + z * z / 4) / (1 + z);
    *attained =
        (struct serve_attained){.queries = n,
                                .late = (uint64_t)missed,
                                .share = 100 * share,
                                .lower = 100 * fmax(0, middle - half),
                                .upper = missed > 0 ? 100 * fmin(1, middle + half) : 100};
}

/* A step of the climb: what is better by `outcome` for what it costs more. */
struct step {
    bool found;
    uint32_t stage;
    struct serve_choice to;
    double price;
    struct outcome outcome;
};

struct climb {
    struct serve_planner *planner;
    const struct serve_trial *trial;
    struct serve_choice *choice; /* per stage */
    unsigned char *late;         /* per query */
    double rate; /* queries/s that may come, on average, in the long run */
    struct outcome outcome;
    uint64_t fewest; /* late at a step so far */
    double least;    /* excess */
    size_t idle;     /* steps since one of them was less */
};

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
        try(climb->planner, climb->choice, climb->trial, climb->late, &step.outcome, err);
    climb->choice[s] = before;
    if (ok && is_better(climb, &step, best))
        *best = step;
    return ok;
}

static bool
refuse(const struct climb *climb, struct rec_error *err)
{
    return rec_fail(
        err, REC_NO,
        "what meets %g s for the sample does not for queries that it was not "
        "planned for: %llu of %zu are late, and more replicas do not help or are "
        "not allowed",
        climb->planner->objective.slo, (unsigned long long)climb->outcome.late,
        climb->trial->n - climb->trial->from);
}

/* The replica more that helps most for its price. */
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

/* The next larger or smaller batch that makes fewer late, if there is one. */
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

/* Steps that make nothing better end: two stages may have to be better both, but not more
 * than there are. */
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

/* The upper end of the confidence interval (95 per cent) of the rate of arrivals, with
 * spacings that are independent; 0: all come at once. */
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

/* Each stage gets the replicas that serve the rate. A sample of some seconds does not
 * show that a stage is a few per cent too slow, for its queue grows slowly; a run of an
 * hour does. */
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
                            "up to %g queries may come in a second, but stage '%s' takes "
                            "%g, and more replicas are not allowed",
                            rate, planner->pipeline->stage[s].name, least);
        climb->choice[s].replicas++;
    }
    return true;
}

/* Better step by step, until enough queries of the trial are done in time; *attained. */
static bool
climb_up(struct climb *climb, bool batches, struct serve_attained *attained,
         struct rec_error *err)
{
    const struct serve_trial *trial = climb->trial;
    climb->fewest = UINT64_MAX;
    climb->least = INFINITY;
    climb->idle = 0;
    for (;;) {
        bool changed = false;
        if (!carry_rate(climb, err) ||
            !try(climb->planner, climb->choice, trial, climb->late, &climb->outcome, err))
            return false;
        serve_attain(climb->late + trial->from, trial->n - trial->from, attained);
        if (attained->late == 0 ||
            attained->lower >= climb->planner->objective.percentile)
            return true;
        batches = batches || climb->idle > 1; /* replicas do not help */
        if (!progresses(climb, err) || (batches && !change_batch(climb, &changed, err)) ||
            (!changed && !add_replica(climb, err)))
            return false;
    }
}

/* A plan as choices. */
static bool
open_climb(struct climb *climb, const struct serve_plan *plan, struct rec_error *err)
{
    struct serve_planner *planner = climb->planner;
    size_t n = planner->pipeline->nstages;
    climb->rate = fmax(highest_rate(planner->arrival, planner->n),
                       highest_rate(climb->trial->arrival, climb->trial->n));
    climb->choice = calloc(n + 1, sizeof *climb->choice);
    climb->late = calloc(climb->trial->n + 1, sizeof *climb->late);
    if (!climb->choice || !climb->late)
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
    free(climb->late);
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

    while (ok &&
           (ok = climb_up(&climb, false, attained, err) &&
                 serve_judge(planner, climb.choice, &verdict, err)) &&
           !verdict.met) /* a replica more may, rarely, make more late */
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
    ok = ok || err->code == REC_NO; /* there are fewer */
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
