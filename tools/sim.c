/* sim [OPTION]... [FILE]... - event simulation of jobs on a cluster. */
#include "ggo/sim.h"
#define CLI_PATHS "collective-table",
#include "main.h"

#include "collective_table.h"
#include "graph_times.h"
#include "rampipe/event.h"
#include "rampipe/sim.h"
#include "sim_done.h"
#include "sim_parts.h"
#include "sim_step.h"
#include "sim_why.h"

struct sim {
    struct cli *cli;
    struct done_memo *memo;
    struct why why;
    struct parts parts;
    bool timeline, explain;
    bool shares;
    bool shown;       /* the first step of the job that ends now */
    uint64_t unshown; /* jobs whose first step was not over */
};

/* Costs are remembered by geometry, but a timeline needs each op's times: the step is
 * simulated once more, for an observer. */
static bool
write_step(void *context, const struct sim_done *done, const struct net *net,
           const uint32_t *servers, struct rec_error *err)
{
    struct sim *sim = context;
    return (!sim->timeline ||
            timeline_observe(sim->cli->writer, done, net, servers, err)) &&
           (!sim->explain || !parts_has(done) ||
            parts_observe(&sim->parts, sim->cli->writer, done, net, servers, err));
}

static bool
write_moment(void *context, const struct sim_done *done, const struct net *net,
             const uint32_t *servers, const struct sim_moment *moment,
             struct rec_error *err)
{
    struct sim *sim = context;
    (void)err;
    if (sim->explain && parts_has(done))
        parts_happened(&sim->parts, done, moment);
    if (!sim->timeline)
        return true;
    sim->shown = true;
    timeline_write_moment(sim->cli->writer, done, net, servers, moment);
    return true;
}

static bool
write_done(void *context, const struct sim_done *done, struct rec_error *err)
{
    struct sim *sim = context;
    sim->shown = false;
    return (sim->parts.n == 0 ||
            parts_write(&sim->parts, sim->cli->writer, done, done->start, err)) &&
           done_write(sim->memo, done, sim->cli->writer, err);
}

static bool
write_unfinished(void *context, const struct sim_done *done, double time,
                 struct rec_error *err)
{
    struct sim *sim = context;
    struct rec_writer *w = sim->cli->writer;

    (void)err;
    sim->why.unfinished += done->layout != NULL;
    sim->unshown += sim->timeline && sim->shares && done->layout && !sim->shown;
    sim->parts.n = 0;
    sim->shown = false;
    graph_begin_block(w, &done->job, time, "unfinished", done->graph);
    if (done->layout) {
        rec_num_key(w, "start", done->start);
        rec_uint_key(w, "servers", done->layout->where.nslots);
        rec_num_key(w, "busy", done_busy_share(done));
    }
    rec_end(w);
    return true;
}

static bool
read_exact(struct cli *cli, const struct sim_args *args, double *steps)
{
    *steps = SIM_COMPANY_EXACT;
    if (!args->exact_given)
        return true;
    return cli_amount(cli, "exact", args->exact_arg, true, steps) &&
           (args->contention_given ||
            cli_usage(cli,
                      "--exact says how jobs that share links are simulated: it needs "
                      "--contention"));
}

static bool
write_reason(void *context, const struct sim_done *done, const struct net *net,
             const struct sim_reason *reason, struct rec_error *err)
{
    struct sim *sim = context;
    (void)err;
    why_write_reason(sim->cli->writer, done, net, reason);
    return true;
}

static bool
check_links(struct cli *cli, const struct sim_args *args)
{
    return !args->links_given || args->contention_given ||
           cli_usage(cli, "--links says what links carry: it needs --contention");
}

static bool
write_load(void *context, const struct net *net, const struct sim_load *load,
           struct rec_error *err)
{
    struct sim *sim = context;
    return why_write_load(&sim->why, sim->cli->writer, net, load, err);
}

static bool
run(struct cli *cli, const struct sim_args *args)
{
    bool steps = args->timeline_given, shares = args->contention_given;
    bool explain = args->explain_given;
    struct sim sim = {
        .cli = cli, .timeline = steps, .shares = shares, .explain = explain};
    struct sim_replay_sink sink = {
        .done = write_done,
        .unfinished = write_unfinished,
        .started = (steps || explain) && !shares ? write_step : NULL,
        .happened = (steps || explain) && shares ? write_moment : NULL,
        .load = args->links_given ? write_load : NULL,
        .explain = args->explain_given ? write_reason : NULL,
        .context = &sim};
    struct sim_replay *replay = NULL;
    struct sim_flows *flows = NULL;
    struct collective_table table = {.nseries = 0};
    struct event_clock clock = {0};
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    double until, layouts, exact;
    int status = 0, taken = 0;
    bool ok = cli_seconds(cli, "until", args->until_arg, true, &until) &&
              cli_bytes(cli, "layout-memory", args->layout_memory_arg, true, &layouts) &&
              read_exact(cli, args, &exact) && check_links(cli, args) &&
              (!args->collective_table_given ||
               collective_table_option(cli, args->collective_table_arg, &table)) &&
              cli_open_filter(cli) && (sim.memo = done_memo_new(&cli->err)) &&
              (replay = sim_replay_new(&sink, until, &cli->err)) &&
              (!args->contention_given || (flows = sim_flows_new(&cli->err))) &&
              event_clock_add(&clock, &sim_replay_model, replay, &cli->err);

    if (ok) {
        sim_replay_keep(replay, layouts < (double)SIZE_MAX ? (size_t)layouts : SIZE_MAX);
        sim_replay_advise(replay,
                          graph_times_advice(cli, args->allow_zero_given, advice));
    }
    if (ok && args->collective_table_given)
        sim_replay_measure(replay, &table);
    if (ok && flows)
        sim_replay_share(replay, &sim_flows_sharing, flows, exact);
    while (ok && (status = cli_next(cli, &rec)) > 0) {
        taken = event_clock_take(&clock, cli->reader, &rec, &cli->err);
        if (taken == 0)
            rec_put_line(cli->writer, rec.line);
        ok = taken >= 0;
    }
    ok = ok && status == 0 && event_clock_end(&clock, until, &cli->err);
    if (ok && args->links_given && sim.why.unfinished)
        cli_warn(
            cli,
            "jobs are unfinished: %llu. Of the step that they were in, the links have "
            "the bytes of the part that was over, by time",
            (unsigned long long)sim.why.unfinished);
    if (ok && sim.unshown)
        cli_warn(cli,
                 "jobs are unfinished in their first step: %llu. --timeline shows only "
                 "steps that were over",
                 (unsigned long long)sim.unshown);
    event_clock_free(&clock);
    sim_replay_free(replay);
    sim_flows_free(flows);
    collective_table_free(&table);
    done_memo_free(sim.memo);
    why_free(&sim.why);
    parts_free(&sim.parts);
    return ok;
}
