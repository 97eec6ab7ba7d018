/* sim elastic [OPTION]... [FILE]... - pipelines on instances that come and go. */
#include "ggo/sim-elastic.h"
#define CLI_SEED true
#define CLI_PATHS "profile",
#define CLI_UNSHOWN "limit",
#include "main.h"

#include "sim_training.h"

#include "rampipe/train.h"

#include <math.h>

struct model {
    struct training training; /* first: callbacks get a pointer to it, and cast it */
    struct train_elastic_options options;
    struct train_elastic_profile profile;
    double samples;
    uint64_t
        on_demand; /* instances bought on demand; 0: those at the start, in pipelines */
};

/* ---- options ------------------------------------------------------------- */

/* SIZE:SECONDS,... */
static bool
read_iterations(struct cli *cli, const char *text, struct train_elastic_profile *profile)
{
    struct rec_str rest = rec_str(text), part, size;
    double x, seconds;
    while (rec_str_split(&rest, ',', &part)) {
        if (!rec_str_split(&part, ':', &size) || !rec_parse_num(size, &x) || !(x >= 1) ||
            isinf(x) || !part.ptr || !rec_parse_num(part, &seconds) ||
            !(seconds >= 1e-3) || isinf(seconds))
            return cli_usage(cli,
                             "--iteration must be SIZE:SECONDS,... with SIZE >= 1 and "
                             "SECONDS >= 0.001, got '%s'",
                             text);
        if (!train_elastic_profile_add(profile, x, seconds, &cli->err))
            return cli->err.code == REC_DATA &&
                   cli_usage(cli, "--iteration: %s", cli->err.text);
    }
    return true;
}

/* A directory of measurements gives all times; options replace single ones of them. */
static bool
read_profile(struct training *t, struct model *m, const struct sim_elastic_args *args)
{
    struct train_elastic_profile *p = &m->profile;
    if (args->profile_given &&
        !train_elastic_profile_read(p, args->profile_arg, &t->cli->err))
        return false;
    if (args->profile_given && args->iteration_given) {
        double reconfigure = p->reconfigure, checkpoint = p->checkpoint;
        train_elastic_profile_free(p);
        p->reconfigure = reconfigure;
        p->checkpoint = checkpoint;
    }
    if ((!args->profile_given || args->iteration_given) &&
        !read_iterations(t->cli, args->iteration_arg, p))
        return false;
    return ((args->profile_given && !args->reconfigure_given) ||
            cli_seconds(t->cli, "reconfigure", args->reconfigure_arg, false,
                        &p->reconfigure)) &&
           ((args->profile_given && !args->checkpoint_given) ||
            cli_seconds(t->cli, "checkpoint", args->checkpoint_arg, false,
                        &p->checkpoint));
}

static bool
read_rules(struct training *t, struct train_elastic_options *o,
           const struct sim_elastic_args *args)
{
    static const char *const rules[] = {"sane", "published", "later", NULL};
    static const char *const grows[] = {"now", "saved", NULL};
    size_t rule = args->tick_given ? TRAIN_ELASTIC_PUBLISHED : TRAIN_ELASTIC_SANE,
           grow = 0;

    if ((args->rules_given &&
         !cli_choice(t->cli, "rules", args->rules_arg, rules, &rule)) ||
        !cli_choice(t->cli, "grow", args->grow_arg, grows, &grow))
        return false;
    o->rules = (enum train_elastic_rules)rule;
    o->grow_saved = grow == 1;
    o->tick = o->rules == TRAIN_ELASTIC_SANE ? 0 : 5;
    if (args->tick_given &&
        (!cli_seconds(t->cli, "tick", args->tick_arg, false, &o->tick) || o->tick < 1e-3))
        return cli_usage(t->cli, "--tick must be at least 0.001, got '%s'",
                         args->tick_arg);
    if (o->rules != TRAIN_ELASTIC_SANE && o->grow_saved)
        return cli_usage(t->cli, "--grow saved needs --rules sane");
    if (o->rules != TRAIN_ELASTIC_SANE && args->load_given)
        cli_warn(t->cli, "the published rules do not use --load");
    return true;
}

static bool
read_options(struct model *m, const struct sim_elastic_args *args)
{
    struct training *t = &m->training;
    struct train_elastic_options *o = &m->options;
    struct cli *cli = t->cli;

    o->start_given = args->start_given;
    o->end = t->until;
    o->limit = t->limit;
    o->profile = &m->profile;
    o->victims = (enum train_victims)t->victims;
    return read_profile(t, m, args) && read_rules(t, o, args) &&
           cli_seconds(cli, "load", args->load_arg, false, &o->load) &&
           cli_seconds(cli, "prepare", args->prepare_arg, false, &o->prepare) &&
           cli_amount(cli, "samples", args->samples_arg, false, &m->samples) &&
           cli_count(cli, "depth", args->depth_arg, 1, 1u << 20, &o->depth) &&
           cli_count(cli, "start", args->start_arg, 0, 1u << 20, &o->start) &&
           cli_count(cli, "capacity", args->capacity_arg, 0, 1u << 20, &o->capacity) &&
           (!args->on_demand_given ||
            (cli_count(cli, "on-demand", args->on_demand_arg, 1, 1u << 20,
                       &m->on_demand) &&
             (m->on_demand >= o->depth ||
              cli_usage(cli,
                        "--on-demand must be at least --depth, %llu: fewer instances "
                        "form no pipeline",
                        (unsigned long long)o->depth))));
}

/* ---- records ------------------------------------------------------------- */

static void
write_row(void *context, const struct train_elastic_row *row)
{
    struct training *t = context;
    struct rec_writer *w = t->cli->writer;
    rec_begin(w, "train");
    rec_num_field(w, row->time);
    rec_text_field(w, row->reconfig ? "reconfig" : "step");
    rec_uint_field(w, (uint64_t)row->id);
    rec_uint_field(w, row->size);
    if (row->reconfig) {
        rec_uint_key(w, "after", row->after);
        rec_uint_key(w, "redo", (uint64_t)row->redo);
        if (!isnan(row->since))
            rec_num_key(w, "since", row->since);
    }
    rec_end(w);
}

static void
write_state(void *context, double time, enum train_elastic_phase phase,
            const uint64_t count[TRAIN_NSTATES])
{
    static const char *const phases[] = {"training", "reconfiguring", "stalled"};
    training_write_state(context, time, count, phases[phase]);
}

static void
write_result(void *context, const struct train_elastic_result *r)
{
    struct training *t = context;
    const struct model *m = (const struct model *)t;
    struct rec_writer *w = t->cli->writer;
    uint64_t depth = m->options.depth, on_demand = m->on_demand;
    if (on_demand == 0)
        on_demand = r->start < depth ? depth : r->start / depth * depth;
    training_write_accounts(t, r->seconds, r->instance_seconds);
    rec_begin(w, "trained");
    rec_text_field(w, "elastic");
    rec_num_field(w, r->begin);
    rec_num_field(w, r->end);
    rec_uint_field(w, (uint64_t)r->steps);
    rec_num_key(w, "samples", m->samples);
    rec_uint_key(w, "iterations", r->iterations);
    rec_num_key(w, "lost", (double)r->lost);
    rec_uint_key(w, "reconfigurations", r->reconfigurations);
    rec_uint_key(w, "checkpoints", r->checkpoints);
    rec_uint_key(w, "start", r->start);
    rec_uint_key(w, "preempted", r->preempted);
    rec_uint_key(w, "lost_active", r->lost_active);
    rec_uint_key(w, "added", r->added);
    rec_uint_key(w, "refused", r->refused);
    training_write_keys(t, r->by_state);
    rec_uint_key(w, "on_demand_instances", on_demand);
    /* those beyond whole pipelines are paid for, but do not train */
    rec_num_key(
        w, "on_demand_step",
        train_elastic_iteration(&m->profile, (double)(on_demand / depth * depth)));
    rec_end(w);
}

/* ---- runs ---------------------------------------------------------------- */

static void *
new_run(struct training *t, uint32_t seed)
{
    const struct model *m = (const struct model *)t;
    struct train_elastic_options options = m->options;
    struct train_elastic_sink sink = {t->brief ? NULL : write_row,
                                      t->brief ? NULL : write_state, write_result, t};
    options.seed = seed;
    options.stream = t->stream;
    return train_elastic_new(&options, &sink, &t->cli->err);
}

static void
free_run(void *run)
{
    train_elastic_free(run);
}

static bool
run(struct cli *cli, const struct sim_elastic_args *args)
{
    const struct training_options options = TRAINING_OPTIONS(args);
    struct model model = {.training = {.cli = cli,
                                       .model = &train_elastic_model,
                                       .new_run = new_run,
                                       .free_run = free_run}};
    bool ok = training_read(&model.training, &options) && read_options(&model, args) &&
              training_run(&model.training);
    train_elastic_profile_free(&model.profile);
    return ok;
}
