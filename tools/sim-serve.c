/* sim serve [OPTION]... [FILE]... - queries through a pipeline of models. */
#include "ggo/sim-serve.h"
#define CLI_SEED true
#include "main.h"

#include "rampipe/event.h"
#include "rampipe/random.h"
#include "rampipe/serve.h"

#include <math.h>

/* The pipeline, and the run of the stream that is being read. */
struct serving {
    struct cli *cli;
    struct serve_options options;
    bool tunes;
    struct serve_tuning tuning;
    struct serve_run_sink sink;
    struct serve_pipeline pipeline;
    bool served; /* a run has used it: the next record of a pipeline begins another one */
    struct serve_run *run;
    struct event_clock clock;
    uint64_t runs;
    bool warned; /* the warning about a pipeline without rungs was given; */
    bool other;  /* that about a plan for another --service */
};

static bool
read_options(struct serving *s, const struct sim_serve_args *args)
{
    static const char *const services[] = {"batch", "query", NULL};
    static const char *const rules[] = {
        [SERVE_DAMPED] = "damped", [SERVE_PUBLISHED] = "published", NULL};
    size_t service = SERVE_BATCH, rule = SERVE_DAMPED;
    uint64_t seed;
    s->options.drop_after = INFINITY;
    s->tunes = args->tune_given;
    if (!cli_choice(s->cli, "service", args->service_arg, services, &service) ||
        !cli_count(s->cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed) ||
        !cli_seconds(s->cli, "warmup", args->warmup_arg, false, &s->options.warmup) ||
        !cli_choice(s->cli, "tuner", args->tuner_arg, rules, &rule) ||
        !cli_seconds(s->cli, "activation", args->activation_arg, false,
                     &s->tuning.activation) ||
        !cli_seconds(s->cli, "scale-down-after", args->scale_down_after_arg, true,
                     &s->tuning.quiet) ||
        (args->drop_after_given &&
         !cli_seconds(s->cli, "drop-after", args->drop_after_arg, false,
                      &s->options.drop_after)))
        return false;
    if (!s->tunes &&
        (args->tuner_given || args->activation_given || args->scale_down_after_given))
        return cli_usage(s->cli,
                         "--tuner, --activation and --scale-down-after are for --tune");
    s->options.service = (enum serve_service)service;
    s->tuning.rule = (enum serve_rule)rule;
    s->options.seed = (uint32_t)seed;
    s->options.stream = rng_stream(args->stream_arg);
    return true;
}

/* ---- records ------------------------------------------------------------- */

static bool
write_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    struct serving *s = context;
    struct rec_writer *w = s->cli->writer;
    (void)err;
    rec_begin(w, reply->dropped ? "drop" : "reply");
    rec_str_field(w, reply->id);
    rec_num_field(w, reply->arrival);
    rec_num_field(w, reply->finish);
    if (reply->dropped)
        rec_text_field(w, reply->dropped);
    rec_end(w);
    return true;
}

static bool
write_visit(void *context, const struct serve_visit *visit, struct rec_error *err)
{
    struct serving *s = context;
    struct rec_writer *w = s->cli->writer;
    (void)err;
    rec_begin(w, "visit");
    rec_str_field(w, visit->id);
    rec_text_field(w, visit->stage);
    rec_num_field(w, visit->enqueued);
    rec_num_field(w, visit->started);
    rec_num_field(w, visit->finished);
    rec_uint_field(w, visit->batch);
    rec_end(w);
    return true;
}

static bool
write_change(void *context, const struct serve_change *change, struct rec_error *err)
{
    struct serving *s = context;
    struct rec_writer *w = s->cli->writer;
    const struct serve_stage *stage = &s->pipeline.stage[change->stage];
    (void)err;
    rec_begin(w, "config");
    rec_text_field(w, stage->name);
    rec_text_field(w,
                   s->pipeline.name[s->pipeline.profile[stage->config.profile].hardware]);
    rec_uint_field(w, change->batch);
    rec_uint_field(w, change->replicas);
    rec_num_key(w, "time", change->time);
    if (change->ordered < change->time)
        rec_num_key(w, "ordered", change->ordered);
    rec_end(w);
    return true;
}

static bool
write_served(void *context, const struct serve_served *served, struct rec_error *err)
{
    struct serving *s = context;
    struct rec_writer *w = s->cli->writer;
    (void)err;
    if (s->pipeline.planned && s->pipeline.service != s->options.service && !s->other) {
        s->other = true;
        cli_warn(s->cli, "the pipeline was planned with --service %s",
                 s->pipeline.service == SERVE_QUERY
                     ? "query"
                     : "batch (or by an older version, which does not say it)");
    }
    if (s->tunes && s->tuning.rule == SERVE_DAMPED && s->pipeline.nrungs == 0 &&
        !s->warned) {
        s->warned = true;
        cli_warn(s->cli,
                 "no rung says how to run stages at higher rates: replicas grow with "
                 "the rate, which costs more; plan --rungs 10 writes rungs");
    }
    rec_begin(w, "served");
    rec_text_field(w, served->stage->name);
    rec_num_field(w, served->begin);
    rec_num_field(w, served->end);
    rec_text_key(w, "hardware", served->hardware);
    rec_uint_key(w, "batch", served->config->batch);
    rec_uint_key(w, "queries", served->usage.queries);
    rec_uint_key(w, "batches", served->usage.batches);
    rec_num_key(w, "busy", served->usage.busy);
    rec_num_key(w, "waiting", served->usage.waiting);
    rec_uint_key(w, "longest", served->usage.longest);
    rec_num_key(w, "replicas", served->usage.replicas);
    if (!isnan(served->fixed))
        rec_num_key(w, "static_peak", served->fixed);
    if (!isnan(served->price))
        rec_num_key(w, "price", served->price);
    rec_end(w);
    return true;
}

/* ---- runs ---------------------------------------------------------------- */

/* The first run has the seed of --seed, and each other one the next number, so that a run
 * can be repeated alone. */
static bool
begin(struct serving *s)
{
    struct serve_options options = s->options;
    options.seed += (uint32_t)s->runs;
    s->run = serve_run_new(&s->pipeline, &options, &s->sink, &s->cli->err);
    if (s->run && s->tunes)
        serve_run_tune(s->run, &s->tuning);
    return s->run && event_clock_add(&s->clock, &serve_model, s->run, &s->cli->err);
}

static void
forget(struct serving *s)
{
    event_clock_free(&s->clock);
    serve_run_free(s->run);
    s->run = NULL;
}

/* The stream ends, and with it the run, if it had queries; else the stream was only the
 * pipeline. */
static bool
finish(struct serving *s)
{
    bool ok = true;
    if (s->run && serve_run_queries(s->run) > 0) {
        ok = event_clock_end(&s->clock, INFINITY, &s->cli->err);
        cli_note(s->cli, "%llu queries, %llu events",
                 (unsigned long long)serve_run_queries(s->run),
                 (unsigned long long)serve_run_events(s->run));
        s->runs++;
        s->served = true;
    }
    forget(s);
    return ok &&
           cli_change_provenance(s->cli, "seed", (uint32_t)(s->options.seed + s->runs));
}

static bool
take(struct serving *s, const struct rec *rec)
{
    int taken = 0;
    if (rec->type == REC_MARK)
        return finish(s);
    if (s->served && !s->run && serve_is_pipeline(rec)) {
        serve_pipeline_free(&s->pipeline);
        s->served = false;
    }
    if (rec->type != REC_COMMENT) {
        if (!s->run && !begin(s))
            return false;
        taken = event_clock_take(&s->clock, s->cli->reader, rec, &s->cli->err);
    }
    if (taken == 0)
        rec_put_line(s->cli->writer, rec->line);
    return taken >= 0;
}

static bool
run(struct cli *cli, const struct sim_serve_args *args)
{
    struct serving s = {.cli = cli};
    struct rec rec;
    int status = 0;
    bool ok;
    s.sink =
        (struct serve_run_sink){{write_reply, args->trace_given ? write_visit : NULL, &s},
                                write_served,
                                write_change};
    ok = read_options(&s, args) && cli_open_filter(cli);

    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&s, &rec);
    ok = ok && status == 0 && finish(&s) &&
         (s.runs > 0 ||
          rec_fail(&cli->err, REC_DATA, "no queries came: put %stracegen queries before",
                   cli->prefix));
    forget(&s);
    serve_pipeline_free(&s.pipeline);
    return ok;
}
