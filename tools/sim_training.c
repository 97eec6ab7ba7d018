/* What the models of training on spot instances share: runs, options, accounts. */
#include "sim_training.h"

#include "rampipe/event.h"
#include "rampipe/random.h"
#include "rampipe/train.h"

#include <math.h>

bool
training_read(struct training *t, const struct training_options *options)
{
    static const char *const victims[] = {"random", "oldest", "newest", "lowest", NULL};
    t->brief = options->brief;
    t->stream = rng_stream(options->stream);
    if (!cli_seconds(t->cli, "until", options->until, true, &t->until))
        return false;
    if (isfinite(t->until) && t->until > SPOT_TIME_MAX)
        return cli_usage(t->cli, "--until must be at most %g, or inf", SPOT_TIME_MAX);
    return cli_limit(t->cli, options->limit, &t->limit) &&
           cli_count(t->cli, "seed", options->seed, 0, UINT32_MAX, &t->seed) &&
           cli_choice(t->cli, "victims", options->victims, victims, &t->victims) &&
           cli_amount(t->cli, "price", options->price, false, &t->price) &&
           cli_amount(t->cli, "on-demand-price", options->on_demand_price, false,
                      &t->on_demand_price);
}

/* A run, and its clock. */
struct run {
    void *model;
    struct event_clock clock;
    bool begun; /* the model took a record */
};

/* The seed of the next run: the first has that of --seed, and each other one the next
 * number, as the traces of tracegen preempt --runs. So a run can be repeated alone. */
static uint32_t
next_seed(const struct training *t)
{
    return (uint32_t)(t->seed + t->runs);
}

static bool
begin(struct training *t, struct run *run)
{
    *run = (struct run){t->new_run(t, next_seed(t)), {0}, false};
    return run->model && event_clock_add(&run->clock, t->model, run->model, &t->cli->err);
}

static void
forget(struct training *t, struct run *run)
{
    event_clock_free(&run->clock);
    t->free_run(run->model);
    *run = (struct run){.model = NULL};
}

static bool
finish(struct training *t, struct run *run)
{
    bool ok = (run->model || begin(t, run)) &&
              event_clock_end(&run->clock, t->until, &t->cli->err);
    t->runs += run->begun;
    forget(t, run);
    return ok && cli_change_provenance(t->cli, "seed", next_seed(t));
}

/* Takes a record. The mark between two streams ends a run that has begun. */
static bool
take(struct training *t, struct run *run, const struct rec *rec)
{
    int taken = 0;
    if (rec->type == REC_MARK && run->begun)
        return finish(t, run);
    if (rec->type == REC_MARK)
        forget(t, run);
    else if (rec->type != REC_COMMENT) {
        if (!run->model && !begin(t, run))
            return false;
        taken = event_clock_take(&run->clock, t->cli->reader, rec, &t->cli->err);
    }
    run->begun = run->begun || taken > 0;
    if (taken == 0)
        rec_put_line(t->cli->writer, rec->line);
    return taken >= 0;
}

bool
training_run(struct training *t)
{
    struct cli *cli = t->cli;
    struct run run = {0};
    struct rec rec;
    int status = 0;
    bool ok = cli_open_filter(cli);

    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(t, &run, &rec);
    ok = ok && status == 0;
    if (ok && t->runs == 0 && !run.begun && isinf(t->until))
        ok = rec_fail(&cli->err, REC_DATA,
                      "no trace, add or preempt records came: put %stracegen before, or "
                      "give --until to simulate a quiet cluster",
                      cli->prefix);
    if (ok && (run.begun || t->runs == 0))
        ok = finish(t, &run);
    forget(t, &run);
    return ok;
}

void
training_write_accounts(struct training *t, const double seconds[4],
                        const double instance_seconds[4])
{
    static const char *const names[] = {"useful", "wasted", "reconfiguring", "stalled"};
    for (size_t i = 0; i < TRAIN_NACCOUNTS; i++) {
        /* time that was moved to another account may leave -1e-12 by rounding */
        rec_begin(t->cli->writer, "account");
        rec_text_field(t->cli->writer, names[i]);
        rec_num_field(t->cli->writer, fmax(0, seconds[i]));
        rec_num_field(t->cli->writer, fmax(0, instance_seconds[i]));
        rec_end(t->cli->writer);
    }
}

void
training_write_state(struct training *t, double time, const uint64_t count[3],
                     const char *phase)
{
    rec_begin(t->cli->writer, "state");
    rec_num_field(t->cli->writer, time);
    for (int s = 0; s < TRAIN_NSTATES; s++)
        rec_uint_field(t->cli->writer, count[s]);
    rec_text_key(t->cli->writer, "phase", phase);
    rec_end(t->cli->writer);
}

void
training_write_keys(struct training *t, const double by_state[3])
{
    struct rec_writer *w = t->cli->writer;
    rec_num_key(w, "active", by_state[TRAIN_ACTIVE]);
    rec_num_key(w, "standby", by_state[TRAIN_STANDBY]);
    rec_num_key(w, "preparing", by_state[TRAIN_PREPARING]);
    rec_num_key(w, "price", t->price);
    rec_num_key(w, "on_demand_price", t->on_demand_price);
}
