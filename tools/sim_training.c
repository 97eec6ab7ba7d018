/* What the models of training on spot instances share: runs, options, accounts. */
#include "sim_training.h"

#include "rampipe/train.h"

#include <math.h>

bool
training_read(struct training *t, const struct training_options *options)
{
    static const char *const victims[] = {"random", "oldest", "newest", "lowest", NULL};
    t->brief = options->brief;
    if (!cli_seconds(t->cli, "until", options->until, true, &t->until))
        return false;
    if (isfinite(t->until) && t->until > SPOT_TIME_MAX)
        return cli_usage(t->cli, "--until must be at most %g, or inf", SPOT_TIME_MAX);
    return cli_count(t->cli, "seed", options->seed, 0, UINT32_MAX, &t->seed) &&
           cli_choice(t->cli, "victims", options->victims, victims, &t->victims) &&
           cli_amount(t->cli, "price", options->price, false, &t->price) &&
           cli_amount(t->cli, "on-demand-price", options->on_demand_price, false,
                      &t->on_demand_price);
}

/* Runs are independent of each other, and each is the same wherever it stands: its seed
 * comes of where its trace came from. */
static bool
begin(struct training *t)
{
    const char *provenance = rec_reader_provenance(t->cli->reader);
    uint64_t hash = *provenance ? rec_hash(rec_str(provenance)) : 0;
    if (t->running)
        return true;
    t->running = true;
    t->runs++;
    if (t->until < t->order.start)
        return cli_usage(t->cli, "--until %.15g is before the start of the trace, %.15g",
                         t->until, t->order.start);
    return t->begin(t, (uint32_t)(t->seed + (hash ^ hash >> 32)));
}

static bool
finish(struct training *t)
{
    double end = isfinite(t->until) ? t->until
                 : t->order.framed  ? t->order.end
                 : t->needs_end     ? t->order.last
                                    : INFINITY;
    bool ok;
    if (!begin(t))
        return false;
    ok = t->finish(t, end);
    t->running = false;
    t->order = (struct spot_order){0};
    return ok;
}

static bool
take(struct training *t, const struct spot_event *event)
{
    if (!begin(t))
        return false;
    if (event->time > t->until)
        return true; /* the run ends before */
    return t->take(t, event) || rec_locate(t->cli->reader, &t->cli->err);
}

bool
training_run(struct training *t)
{
    struct cli *cli = t->cli;
    struct spot_event event;
    struct rec rec;
    int status;

    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0) {
        int taken = spot_read(&t->order, cli->reader, &rec, &event, &cli->err);
        if (taken < 0 || (taken > 0 && !take(t, &event)))
            return false;
        if (rec.type == REC_TRACE && !begin(t))
            return false;
        if (rec.type == REC_MARK && t->running && !finish(t))
            return false;
        if (taken == 0 && rec.type != REC_TRACE)
            rec_put_line(cli->writer, rec.line);
    }
    if (status < 0)
        return false;
    if (t->runs == 0 && isinf(t->until))
        return rec_fail(&cli->err, REC_DATA,
                        "no trace, add or preempt records came: put tracegen before, or "
                        "give --until to simulate a quiet cluster");
    return (t->runs > 0 && !t->running) || finish(t);
}

void
training_write_accounts(struct training *t, const double seconds[4],
                        const double instance_seconds[4])
{
    static const char *const names[] = {"useful", "wasted", "reconfiguring", "stalled"};
    for (size_t i = 0; i < TRAIN_NACCOUNTS; i++) {
        /* what was moved to another account may leave -1e-12 */
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
