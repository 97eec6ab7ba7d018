/* A run: a simulation, and perhaps a tuner, driven by the records of a pipeline and of
 * its queries. As a model (rampipe/event.h) it shares a clock with others. */
#include "private.h"
#include "tuner.h"

#include <math.h>
#include <stdlib.h>

struct serve_run {
    struct serve_pipeline *pipeline;
    struct serve_options options;
    struct serve_run_sink sink;
    struct serve_sim *sim; /* NULL: no query or change has come */
    bool tunes;
    struct serve_tuning tuning;
    struct serve_tuner *tuner; /* NULL: none, or no query has come */
    bool closed;               /* no more records come */
    struct serve_order order;
    uint64_t queries;
};

struct serve_run *
serve_run_new(struct serve_pipeline *pipeline, const struct serve_options *options,
              const struct serve_run_sink *sink, struct rec_error *err)
{
    struct serve_run *run = calloc(1, sizeof *run);
    if (!run) {
        rec_fail_memory(err);
        return NULL;
    }
    run->pipeline = pipeline;
    run->options = *options;
    run->sink = *sink;
    return run;
}

void
serve_run_tune(struct serve_run *run, const struct serve_tuning *tuning)
{
    run->tunes = true;
    run->tuning = *tuning;
}

void
serve_run_free(struct serve_run *run)
{
    if (!run)
        return;
    serve_tuner_free(run->tuner);
    serve_sim_free(run->sim);
    rec_ids_free(&run->order.ids);
    free(run);
}

uint64_t
serve_run_queries(const struct serve_run *run)
{
    return run->queries;
}

uint64_t
serve_run_events(const struct serve_run *run)
{
    return run->sim ? serve_sim_events(run->sim) : 0;
}

/* Called at each query and change. At the first one the pipeline's records have all come:
 * it is sealed, and its simulation and tuner are made. */
static bool
begin(struct serve_run *run, const struct rec_reader *reader, struct rec_error *err)
{
    struct serve_pipeline *p = run->pipeline;
    if (run->sim)
        return true;
    if (!(p->sealed || serve_pipeline_seal(p, err)) || !serve_pipeline_configured(p, err))
        return rec_locate(reader, err);
    if (run->tunes &&
        !(run->tuner = serve_tuner_new(p, run->options.service, &run->tuning, err)))
        return rec_locate(reader, err);
    run->sim = serve_sim_new(p, NULL, &run->options, &run->sink.queries, err);
    return run->sim != NULL;
}

/* The time of the tuner's next step, seconds. When no more queries come and all are
 * served, it has none: otherwise it would look for ever. */
static double
tuner_next(const struct serve_run *run)
{
    if (!run->tuner || (run->closed && isinf(serve_sim_next(run->sim))))
        return (double)INFINITY;
    return serve_tuner_next(run->tuner);
}

/* Lets the tuner take its next step, and makes the change that it wants. */
static bool
tune(struct serve_run *run, struct rec_error *err)
{
    struct serve_change change;
    int any = serve_tuner_step(run->tuner, &change, err);
    if (any > 0 && run->sink.changed &&
        !run->sink.changed(run->sink.queries.context, &change, err))
        return false;
    return any >= 0 && (any == 0 || serve_sim_change(run->sim, &change, err));
}

/* Lets all events up to and at `time` happen; at equal times, those of stages before
 * those of the tuner. Advancing the stages may end the work for the tuner, so it is asked
 * again. */
static bool
happen(struct serve_run *run, double time, struct rec_error *err)
{
    double next;
    while ((next = tuner_next(run)) <= time && !isinf(next)) {
        if (!serve_sim_advance(run->sim, next, err))
            return false;
        if (tuner_next(run) <= next && !tune(run, err))
            return false;
    }
    return serve_sim_advance(run->sim, time, err);
}

static bool
take_query(struct serve_run *run, struct event_clock *clock,
           const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    double time;
    run->queries++;
    return begin(run, reader, err) &&
           serve_read_query(&run->order, reader, rec, &time, err) &&
           event_clock_reach(clock, time, err) &&
           (((!run->tuner ||
              (happen(run, time, err) && serve_tuner_arrival(run->tuner, time, err))) &&
             serve_sim_query(run->sim, time, rec->field[1], err)) ||
            rec_locate(reader, err));
}

/* A config record with time=. */
static bool
take_change(struct serve_run *run, struct event_clock *clock,
            const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct serve_change change;
    if (run->tunes)
        return rec_reader_fail(
            reader, err,
            "a config with time= must not come when the tuner changes replicas");
    return begin(run, reader, err) && rec_need(reader, rec, err) &&
           serve_read_change(run->pipeline, reader, rec, &change, err) &&
           serve_order_time(&run->order, reader, change.time, err) &&
           event_clock_reach(clock, change.time, err) &&
           (serve_sim_change(run->sim, &change, err) || rec_locate(reader, err));
}

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct serve_run *run = self;
    int taken;
    if (rec->type == REC_QUERY)
        return take_query(run, clock, reader, rec, err) ? 1 : -1;
    taken = serve_pipeline_take(run->pipeline, reader, rec, err);
    if (taken == 0 && rec->type == REC_CONFIG)
        return take_change(run, clock, reader, rec, err) ? 0 : -1;
    /* 0 leaves a record to others, too: config and planned records are also results. */
    return taken > 0 && (rec->type == REC_CONFIG || rec->type == REC_PLANNED) ? 0 : taken;
}

static double
model_next(void *self)
{
    const struct serve_run *run = self;
    double next = run->sim ? serve_sim_next(run->sim) : (double)INFINITY;
    return run->tuner ? fmin(next, tuner_next(run)) : next;
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    struct serve_run *run = self;
    return run->tuner ? happen(run, time, err) : serve_sim_advance(run->sim, time, err);
}

static double
model_close(void *self)
{
    struct serve_run *run = self;
    run->closed = true;
    return (double)INFINITY;
}

/* Replicas that are still starting at the end are paid for until then: it is as if they
 * began to work at that time. */
static bool
pay_starting(struct serve_run *run, struct rec_error *err)
{
    struct serve_change change;
    while (serve_tuner_starting(run->tuner, &change)) {
        change.time = serve_sim_now(run->sim);
        if (!serve_sim_change(run->sim, &change, err))
            return false;
    }
    return true;
}

static bool
model_end(void *self, double time, struct rec_error *err)
{
    struct serve_run *run = self;
    const struct serve_pipeline *p = run->pipeline;
    (void)time;
    if (run->tuner && !pay_starting(run, err))
        return false;
    if (run->sim && isinf(serve_sim_next(run->sim)) &&
        !serve_sim_advance(run->sim, INFINITY, err))
        return false;
    for (uint32_t s = 0; run->sim && run->sink.served && s < p->nstages; s++) {
        const struct serve_stage *stage = &p->stage[s];
        struct serve_served served = {.stage = stage, .config = &stage->config};
        if (stage->model == REC_NONE)
            continue;
        served.hardware = p->name[p->profile[stage->config.profile].hardware];
        served.price = p->price[p->profile[stage->config.profile].hardware];
        served.end = serve_sim_now(run->sim);
        served.begin =
            fmin(served.end, fmax(serve_sim_begin(run->sim), run->options.warmup));
        served.fixed = run->tuner ? serve_tuner_fixed(run->tuner, s) : NAN;
        served.usage = serve_sim_usage(run->sim, s);
        if (!run->sink.served(run->sink.queries.context, &served, err))
            return false;
    }
    return true;
}

const struct event_model serve_model = {"serving",     model_take, model_next,
                                        model_advance, model_end,  model_close};
