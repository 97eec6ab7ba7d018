/* plan [OPTION]... [FILE]... - a pipeline and a sample of queries -> how to run it. */
#include "ggo/plan.h"
#define CLI_SEED true
#define CLI_UNSHOWN "limit",
#include "main.h"

#include "rampipe/random.h"
#include "rampipe/serve.h"

#include <math.h>

struct planning {
    struct cli *cli;
    struct serve_objective objective;
    bool exact;
    struct serve_pipeline pipeline;
    struct serve_order order;
    double *arrival; /* times of the n queries of the sample, seconds */
    size_t n, room;
    double holdout;              /* the share of the sample to hold out; NAN: not given */
    struct serve_arrivals drawn; /* how the sample was drawn */
    double *again;               /* n arrivals drawn in the same way; NULL: none were */
    uint32_t redrawn;            /* their seed */
    size_t planned; /* the plan is for the first `planned` of the n queries */
    bool ended;     /* the stream of the queries has ended */
    size_t rungs;   /* number of rungs to write */
};

/* At the last rung the rate is about a thousand times the planned one (1.15^50 =
 * 1084). */
enum { RUNGS_MAX = 50 };

static void
tell(void *context, uint64_t simulations)
{
    cli_progress(context, simulations, 0, "simulations");
}

static bool
read_options(struct planning *p, const struct plan_args *args)
{
    static const char *const services[] = {"batch", "query", NULL};
    static const char *const goals[] = {"throughput", NULL};
    struct serve_objective *o = &p->objective;
    struct cli *cli = p->cli;
    size_t service = SERVE_BATCH, goal;
    uint64_t seed, replicas, rungs;

    if ((args->slo_given && !cli_seconds(cli, "slo", args->slo_arg, false, &o->slo)) ||
        !cli_amount(cli, "percentile", args->percentile_arg, false, &o->percentile) ||
        !cli_amount(cli, "budget", args->budget_arg, true, &o->budget) ||
        (args->maximize_given &&
         !cli_choice(cli, "maximize", args->maximize_arg, goals, &goal)) ||
        !cli_count(cli, "max-replicas", args->max_replicas_arg, 1, SERVE_REPLICAS_MAX,
                   &replicas) ||
        !cli_count(cli, "rungs", args->rungs_arg, 0, RUNGS_MAX, &rungs) ||
        !cli_limit(cli, args->limit_arg, &o->limit) ||
        !cli_choice(cli, "service", args->service_arg, services, &service) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed))
        return false;
    if (!args->slo_given)
        return cli_usage(cli, "give the latency objective, --slo SECONDS");
    if (!(o->slo > 0))
        return cli_usage(cli, "--slo must be above 0");
    if (args->maximize_given && !args->budget_given)
        return cli_usage(cli, "--maximize needs a --budget");
    if (!(o->percentile > 0 && o->percentile <= 100))
        return cli_usage(cli, "--percentile must be above 0 and at most 100, got '%s'",
                         args->percentile_arg);
    o->goal = args->maximize_given ? SERVE_MOST_THROUGHPUT : SERVE_LEAST_COST;
    o->replicas = (uint32_t)replicas;
    o->options.service = (enum serve_service)service;
    o->options.seed = (uint32_t)seed;
    o->options.stream = rng_stream(args->stream_arg);
    o->tell = tell;
    o->context = cli;
    p->exact = args->exact_given;
    p->holdout = NAN;
    if (args->holdout_given &&
        !cli_amount(cli, "holdout", args->holdout_arg, false, &p->holdout))
        return false;
    if (p->holdout >= 1)
        return cli_usage(cli, "--holdout must be from 0 to below 1, got '%s'",
                         args->holdout_arg);
    if (rungs > 0 && p->holdout == 0)
        return cli_usage(
            cli, "--rungs needs held-out queries: it must not be given with --holdout 0");
    p->rungs = (size_t)rungs;
    return true;
}

/* ---- records ------------------------------------------------------------- */

static bool
take_query(struct planning *p, const struct rec *rec)
{
    struct cli *cli = p->cli;
    double time;
    if (p->ended)
        return rec_reader_fail(
            cli->reader, &cli->err,
            "queries come in two streams, but a plan is made for one sample");
    if (!serve_read_query(&p->order, cli->reader, rec, &time, &cli->err) ||
        !rec_grow(&p->arrival, &p->room, p->n + 1, sizeof *p->arrival, &cli->err))
        return false;
    p->arrival[p->n++] = time;
    return true;
}

static bool
take(struct planning *p, const struct rec *rec)
{
    struct cli *cli = p->cli;
    if (rec->type == REC_QUERY)
        return take_query(p, rec);
    p->ended = p->ended || (rec->type == REC_MARK && p->n > 0);
    /* The plan replaces these, so they need not fit the pipeline. */
    if (rec->type == REC_CONFIG || rec->type == REC_ENVELOPE ||
        rec->type == REC_PLANNED || rec->type == REC_RUNG)
        return rec_need(cli->reader, rec, &cli->err);
    if (rec->type == REC_ARRIVALS)
        return serve_read_arrivals(&p->drawn, cli->reader, rec, &cli->err);
    if (serve_pipeline_take(&p->pipeline, cli->reader, rec, &cli->err) < 0)
        return false;
    rec_put_line(cli->writer, rec->line);
    return true;
}

/* ---- results ------------------------------------------------------------- */

static void
write_configs(struct planning *p, const struct serve_plan *plan)
{
    const struct serve_pipeline *pipeline = &p->pipeline;
    struct rec_writer *w = p->cli->writer;
    for (size_t s = 0; s < pipeline->nstages; s++) {
        const struct serve_config *config = &plan->config[s];
        if (config->profile == REC_NONE)
            continue;
        rec_begin(w, "config");
        rec_text_field(w, pipeline->stage[s].name);
        rec_text_field(w, pipeline->name[pipeline->profile[config->profile].hardware]);
        rec_uint_field(w, config->batch);
        rec_uint_field(w, config->replicas);
        if (!isnan(config->load))
            rec_num_key(w, "load", config->load);
        rec_end(w);
    }
}

static void
write_planned(struct planning *p, const struct serve_planner *planner,
              const struct serve_plan *plan, const struct serve_attained *attained)
{
    const struct serve_objective *o = &p->objective;
    struct rec_writer *w = p->cli->writer;
    bool throughput = o->goal == SERVE_MOST_THROUGHPUT;
    rec_begin(w, "planned");
    rec_text_field(w, throughput ? "throughput" : "cost");
    rec_num_field(w, plan->cost);
    if (o->options.service == SERVE_QUERY)
        rec_text_key(w, "service", "query");
    rec_num_key(w, "slo", o->slo);
    rec_num_key(w, "percentile", o->percentile);
    rec_num_key(w, "latency", plan->latency);
    if (!isinf(plan->throughput))
        rec_num_key(w, "throughput", plan->throughput);
    if (!isnan(serve_planner_rate(planner)))
        rec_num_key(w, "rate", serve_planner_rate(planner));
    rec_uint_key(w, "queries", p->planned);
    rec_uint_key(w, "late", plan->late);
    if (!isnan(plan->bound) && !isinf(plan->bound))
        rec_num_key(w, throughput ? "upper" : "lower", plan->bound);
    if (attained->queries > 0) {
        rec_uint_key(w, "holdout", attained->queries);
        if (p->again)
            rec_uint_key(w, "redrawn", p->redrawn);
        rec_num_key(w, "attained", attained->share);
        rec_num_key(w, "attained_lower", attained->lower);
        rec_num_key(w, "attained_upper", attained->upper);
        rec_uint_key(w, "added", attained->added);
        if (attained->carried > 0)
            rec_num_key(w, "carried", attained->carried);
    }
    rec_uint_key(w, "simulations", serve_planner_simulations(planner));
    rec_end(w);
}

/* Writes the envelope: the most queries in windows of time. Their lengths double, from
 * the time that a query alone takes to a minute. */
static bool
write_envelope(struct planning *p, const struct serve_planner *planner,
               const struct serve_plan *plan)
{
    struct rec_writer *w = p->cli->writer;
    double least = serve_plan_seconds(planner, plan), seconds, *longer = NULL;
    if (p->holdout != 0 &&
        (!(longer = calloc(p->n, SERVE_RESAMPLED * sizeof *longer))
             ? !rec_fail_memory(&p->cli->err)
             : !serve_resample(p->arrival, p->n, longer, p->objective.options.seed,
                               &p->cli->err))) {
        free(longer);
        return false;
    }
    for (seconds = least; seconds > 0; seconds *= 2) {
        seconds = fmin(seconds, 60);
        rec_begin(w, "envelope");
        rec_num_field(w, seconds);
        rec_uint_field(w, serve_envelope(p->arrival, p->n, seconds));
        if (longer)
            rec_uint_key(w, "resampled",
                         serve_envelope(longer, SERVE_RESAMPLED * p->n, seconds));
        rec_end(w);
        if (seconds >= 60)
            break;
    }
    free(longer);
    return true;
}

static void
write_rung(struct planning *p, double rate, const struct serve_config *config,
           const double *fixed)
{
    const struct serve_pipeline *pipeline = &p->pipeline;
    struct rec_writer *w = p->cli->writer;
    for (size_t s = 0; s < pipeline->nstages; s++) {
        if (pipeline->stage[s].model == REC_NONE)
            continue;
        rec_begin(w, "rung");
        rec_num_field(w, rate);
        rec_text_field(w, pipeline->stage[s].name);
        rec_uint_field(w, config[s].batch);
        rec_uint_field(w, config[s].replicas);
        if (!isnan(fixed[s]))
            rec_num_key(w, "static", fixed[s]);
        rec_end(w);
    }
}

/* Writes the rungs: configurations for higher rates, and what a plan for each of these
 * rates alone would cost. */
static bool
write_rungs(struct planning *p, struct serve_planner *planner,
            const struct serve_plan *plan, const struct serve_trial *trial)
{
    struct rec_error *err = &p->cli->err;
    double speed[RUNGS_MAX], rate = serve_planner_rate(planner), by = 1;
    size_t n = p->rungs, nstages = p->pipeline.nstages;
    struct serve_trial faster = *trial;
    struct serve_config *rung = calloc(RUNGS_MAX * nstages, sizeof *rung);
    double *fixed = calloc(nstages, sizeof *fixed);
    bool ok = (rung && fixed) || rec_fail_memory(err);

    for (size_t i = 0; i < n; i++)
        speed[i] = by *= SERVE_STEP;
    if (isnan(rate))
        n = 0;
    ok = ok && serve_plan_rungs(planner, trial, plan, speed, &n, rung, err);
    for (size_t i = 0; ok && i < n; i++) {
        faster.speed = speed[i];
        ok = serve_plan_fixed(planner, &faster, fixed, err);
        if (ok)
            write_rung(p, rate * speed[i], &rung[i * nstages], fixed);
    }
    free(fixed);
    free(rung);
    return ok;
}

/* Chooses the queries to judge the plan by: others that are drawn in the same way, or the
 * last ones of the sample, for which it is then not planned. */
static bool
hold_out(struct planning *p)
{
    p->planned = p->n;
    if (isnan(p->holdout) && !serve_draw_again(&p->drawn, p->arrival, p->n, &p->again,
                                               &p->redrawn, &p->cli->err))
        return false;
    if (!p->again && p->holdout != 0)
        p->planned -= (size_t)ceil((double)p->n * (isnan(p->holdout) ? 0.2 : p->holdout));
    return p->planned > 0 || rec_fail(&p->cli->err, REC_DATA,
                                      "%zu queries are too few to hold some of them out: "
                                      "give more, or --holdout 0",
                                      p->n);
}

/* Judges the plan by queries that it was not fitted to, and adds replicas where they miss
 * the objective. */
static bool
secure(struct planning *p, struct serve_planner *planner, struct serve_plan *plan,
       const struct serve_trial *trial, struct serve_attained *attained)
{
    const struct serve_objective *o = &p->objective;
    if (!serve_plan_secure(planner, trial, plan, attained, &p->cli->err))
        return false;
    if (attained->lower < o->percentile)
        cli_warn(
            p->cli,
            "%zu held-out queries are too few to show that %g %% meet the objective: "
            "none is late, which shows %.4g %%",
            attained->queries, o->percentile, attained->lower);
    return true;
}

static bool
make_plan(struct planning *p)
{
    struct rec_error *err = &p->cli->err;
    struct serve_plan plan = {0};
    struct serve_attained attained = {0};
    double started = cli_now();
    struct serve_planner *planner =
        serve_planner_new(&p->pipeline, p->arrival, p->planned, &p->objective, err);
    bool ok = planner && serve_plan_greedily(planner, &plan, err);
    struct serve_trial trial = {p->again ? p->again : p->arrival, p->n,
                                p->again ? 0 : p->planned, 1, p->objective.options.seed};

    if (ok)
        cli_note(p->cli, "greedily: %g US$ an hour, %g queries/s, %llu simulations",
                 plan.cost, plan.throughput,
                 (unsigned long long)serve_planner_simulations(planner));
    if (planner && p->exact && (ok || err->code == REC_NO))
        ok = serve_plan_exactly(planner, &plan, err);
    if (p->again)
        trial.seed += SERVE_SEED_DISTANCE;
    ok = ok && (p->holdout == 0 || secure(p, planner, &plan, &trial, &attained));
    if (ok) {
        write_configs(p, &plan);
        ok = write_envelope(p, planner, &plan) &&
             (p->rungs == 0 || write_rungs(p, planner, &plan, &trial));
        write_planned(p, planner, &plan, &attained);
    }
    if (planner)
        cli_note(p->cli, "%llu simulations in %.3g s",
                 (unsigned long long)serve_planner_simulations(planner),
                 cli_now() - started);
    serve_plan_free(&plan);
    serve_planner_free(planner);
    return ok;
}

static bool
run(struct cli *cli, const struct plan_args *args)
{
    struct planning p = {.cli = cli};
    struct rec rec;
    int status = 0;
    bool ok = (cli->gathers = true) && read_options(&p, args) && cli_open_filter(cli);

    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&p, &rec);
    ok = ok && status == 0 &&
         (p.n > 0 ||
          rec_fail(&cli->err, REC_DATA, "no queries came: put %stracegen queries before",
                   cli->prefix)) &&
         serve_pipeline_seal(&p.pipeline, &cli->err) && hold_out(&p) && make_plan(&p);
    serve_arrivals_free(&p.drawn);
    free(p.again);
    rec_ids_free(&p.order.ids);
    free(p.arrival);
    serve_pipeline_free(&p.pipeline);
    return ok;
}
