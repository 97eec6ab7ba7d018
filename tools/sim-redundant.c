/* sim redundant [OPTION]... [FILE]... - pipelines that keep a neighbour's stage too. */
#include "ggo/sim-redundant.h"
#define CLI_SEED true
#define CLI_PATHS "profile",
#define CLI_UNSHOWN "limit",
#include "main.h"

#include "sim_training.h"

#include "rampipe/train.h"

#include <math.h>

struct model {
    struct training training; /* first: callbacks get a pointer to it, and cast it */
    struct train_redundant_options options;
    struct train_redundant_profile profile;
};

static bool
read_options(struct model *m, const struct sim_redundant_args *args)
{
    struct training *t = &m->training;
    if (!args->profile_given)
        return cli_usage(t->cli, "a --profile FILE is needed, such as "
                                 "traces/redundant/bert.tsv");
    if (!train_redundant_profile_read(&m->profile, args->profile_arg, &t->cli->err))
        return false;
    m->options.profile = &m->profile;
    m->options.victims = (enum train_victims)t->victims;
    m->options.steps = m->profile.steps;
    if (args->steps_given &&
        !cli_count(t->cli, "steps", args->steps_arg, 0, UINT64_MAX, &m->options.steps))
        return false;
    if (!args->price_given)
        t->price = m->profile.price;
    if (!args->on_demand_price_given)
        t->on_demand_price = m->profile.on_demand_price;
    m->options.price = t->price;
    m->options.end = t->until;
    m->options.limit = t->limit;
    return true;
}

/* ---- records ------------------------------------------------------------- */

static void
write_row(void *context, const struct train_redundant_row *row)
{
    static const char *const statuses[] = {"STOPPED", "RENDEZVOUS", "RUNNING"};
    struct training *t = context;
    struct rec_writer *w = t->cli->writer;
    rec_begin(w, "train");
    rec_num_field(w, row->time);
    rec_text_field(w, row->event);
    rec_uint_field(w, row->steps);
    rec_uint_field(w, row->instances);
    if (strcmp(row->event, "step") != 0) {
        rec_uint_key(w, "pipelines", row->pipelines);
        rec_uint_key(w, "stages", row->stages);
        rec_uint_key(w, "waiting", row->waiting);
        rec_uint_key(w, "fatal", row->fatal);
        rec_text_key(w, "status", statuses[row->status]);
    }
    rec_end(w);
}

static void
write_state(void *context, double time, enum train_redundant_status status, bool degraded,
            const uint64_t count[TRAIN_NSTATES])
{
    static const char *const phases[] = {"stalled", "reconfiguring", "training"};
    training_write_state(context, time, count, degraded ? "degraded" : phases[status]);
}

static void
put_known(struct rec_writer *w, const char *key, double value)
{
    if (isfinite(value)) /* performance at no cost has infinite value: no key */
        rec_num_key(w, key, value);
}

static void
write_result(void *context, const struct train_redundant_result *r)
{
    struct training *t = context;
    const struct model *m = (const struct model *)t;
    struct rec_writer *w = t->cli->writer;
    const struct train_redundant_profile *p = &m->profile;
    training_write_accounts(t, r->seconds, r->instance_seconds);
    rec_begin(w, "trained");
    rec_text_field(w, "redundant");
    rec_num_field(w, r->begin);
    rec_num_field(w, r->end);
    rec_uint_field(w, r->steps);
    rec_text_key(w, "name", p->name);
    if (m->options.steps > 0)
        rec_uint_key(w, "target", m->options.steps);
    rec_num_key(w, "samples", p->samples);
    rec_uint_key(w, "fatal", r->fatal);
    rec_uint_key(w, "rendezvous", r->rendezvous);
    rec_uint_key(w, "preempted", r->preempted);
    rec_uint_key(w, "lost_active", r->lost_active);
    rec_uint_key(w, "added", r->added);
    rec_num_key(w, "degraded", r->degraded);
    training_write_keys(t, r->by_state);
    if (p->on_demand_instances > 0 && p->on_demand_step > 0) {
        rec_num_key(w, "on_demand_instances", p->on_demand_instances);
        rec_num_key(w, "on_demand_step", p->on_demand_step);
    }
    put_known(w, "first", r->first);
    put_known(w, "last", r->last);
    put_known(w, "lifetime_mean", r->lifetime_mean);
    put_known(w, "lifetime_median", r->lifetime_median);
    put_known(w, "lifetime_stdev", r->lifetime_stdev);
    put_known(w, "preemption_mean", r->preemption_mean);
    put_known(w, "preemption_median", r->preemption_median);
    put_known(w, "preemption_stdev", r->preemption_stdev);
    put_known(w, "average_instances", r->instances);
    put_known(w, "average_cost", r->cost);
    put_known(w, "average_performance", r->performance);
    put_known(w, "average_value", r->value);
    rec_end(w);
    if (m->options.steps > r->steps && isinf(t->until))
        cli_note(t->cli, "the trace ended after %llu of %llu steps",
                 (unsigned long long)r->steps, (unsigned long long)m->options.steps);
}

/* ---- runs ---------------------------------------------------------------- */

static void *
new_run(struct training *t, uint32_t seed)
{
    const struct model *m = (const struct model *)t;
    struct train_redundant_options options = m->options;
    struct train_redundant_sink sink = {t->brief ? NULL : write_row,
                                        t->brief ? NULL : write_state, write_result, t};
    options.seed = seed;
    options.stream = t->stream;
    return train_redundant_new(&options, &sink, &t->cli->err);
}

static void
free_run(void *run)
{
    train_redundant_free(run);
}

static bool
run(struct cli *cli, const struct sim_redundant_args *args)
{
    const struct training_options options = TRAINING_OPTIONS(args);
    struct model model = {.training = {.cli = cli,
                                       .model = &train_redundant_model,
                                       .new_run = new_run,
                                       .free_run = free_run}};
    bool ok = training_read(&model.training, &options) && read_options(&model, args) &&
              training_run(&model.training);
    train_redundant_profile_free(&model.profile);
    return ok;
}
