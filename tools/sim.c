/* sim [OPTION]... [FILE]... - event simulation of jobs on a cluster. */
#include "ggo/sim.h"
#define CLI_PATHS "collective-table",
#include "main.h"

#include "collective_table.h"
#include "graph_times.h"
#include "rampipe/event.h"
#include "rampipe/sim.h"
#include "sim_done.h"
#include "sim_why.h"

#include <math.h>
#include <stdlib.h>

struct sim {
    struct cli *cli;
    struct done_memo *memo;
    struct why why;
    bool timeline;
    uint64_t slowed; /* jobs whose steps took longer than the one in the timeline */
};

/* What the observer needs to write a timeline of a job's first step. */
struct timeline {
    struct rec_writer *writer;
    const struct sim_done *job;
    const struct net *net;
    const uint32_t *servers;
};

static void
put_server(const struct timeline *t, uint32_t op)
{
    char name[NET_NAME_MAX];
    net_format_server(t->net, t->servers[t->job->layout->where.slot[op]], name);
    rec_text_field(t->writer, name);
}

/* The output of sim has no op records, so a run record carries the name of the op's
 * layer, which pictures show. */
static void
pass_op_key(struct rec_writer *writer, const struct graph_op *op, const char *key)
{
    struct rec_str value;
    if (graph_op_key(op, key, &value))
        rec_str_key(writer, key, value);
}

static void
write_run(void *context, uint32_t op, double start, double end)
{
    const struct timeline *t = context;
    const struct graph_op *which = &t->job->layout->where.graph->op[op];
    const char *lane = graph_layout_lane_name(&t->job->layout->where, op);
    enum graph_pass pass = which->pass;
    rec_begin(t->writer, "run");
    rec_str_field(t->writer, t->job->job.id);
    rec_text_field(t->writer, which->id);
    put_server(t, op);
    rec_num_field(t->writer, t->job->start + start);
    rec_num_field(t->writer, t->job->start + end);
    if (pass != GRAPH_TASK)
        rec_text_key(t->writer, "pass", pass == GRAPH_FORWARD ? "forward" : "backward");
    if (lane)
        rec_text_key(t->writer, "lane", lane);
    pass_op_key(t->writer, which, "type");
    pass_op_key(t->writer, which, "label");
    rec_end(t->writer);
}

static void
write_send(void *context, uint32_t d, double start, double end)
{
    const struct timeline *t = context;
    const struct graph *graph = t->job->layout->where.graph;
    const struct graph_dep *dep = &graph->dep[d];
    rec_begin(t->writer, "send");
    rec_str_field(t->writer, t->job->job.id);
    rec_text_field(t->writer, graph->op[dep->src].id);
    rec_text_field(t->writer, graph->op[dep->dst].id);
    put_server(t, dep->src);
    put_server(t, dep->dst);
    rec_num_field(t->writer, t->job->start + start);
    rec_num_field(t->writer, t->job->start + end);
    rec_num_field(t->writer, dep->bytes);
    rec_end(t->writer);
}

/* The servers of a coll in the order of ranks, each once. */
static void
put_members(const struct timeline *t, uint32_t c)
{
    const struct graph_exchanges *e = &t->job->layout->exchanges;
    const struct graph_exchange *exchange = &e->exchange[e->of_coll[c]];
    char name[NET_NAME_MAX];
    for (uint32_t i = 0; i < exchange->n; i++) {
        size_t len =
            net_format_server(t->net, t->servers[e->member[exchange->first + i]], name);
        rec_put_bytes(t->writer, i ? "," : "\t", 1);
        rec_put_bytes(t->writer, name, len);
    }
}

static void
write_coll(void *context, uint32_t c, double start, double end)
{
    const struct timeline *t = context;
    const struct graph_coll *coll = &t->job->layout->where.graph->coll[c];
    rec_begin(t->writer, "exchange");
    rec_str_field(t->writer, t->job->job.id);
    rec_text_field(t->writer, coll->id);
    rec_text_field(t->writer, graph_coll_name(coll));
    put_members(t, c);
    rec_num_field(t->writer, t->job->start + start);
    rec_num_field(t->writer, t->job->start + end);
    rec_num_field(t->writer, coll->bytes);
    if (coll->lane)
        rec_text_key(t->writer, "lane", coll->lane);
    rec_end(t->writer);
}

/* Costs are remembered by geometry, but a timeline needs each op's times: the step is
 * simulated once more, for an observer. */
static bool
write_timeline(void *context, const struct sim_done *done, const struct net *net,
               const uint32_t *servers, struct rec_error *err)
{
    const struct sim *sim = context;
    struct timeline timeline = {sim->cli->writer, done, net, servers};
    struct sim_observer observer = {
        .run = write_run, .send = write_send, .coll = write_coll, .context = &timeline};
    struct sim_cost again;
    return sim_layout_observe(done->layout, net, servers, &observer, &again, err);
}

static bool
write_done(void *context, const struct sim_done *done, struct rec_error *err)
{
    struct sim *sim = context;
    sim->slowed += sim->timeline && done->cost->step.seconds > done->alone * (1 + 1e-9);
    return done_write(sim->memo, done, sim->cli->writer, err);
}

static bool
write_unfinished(void *context, const struct sim_done *done, double time,
                 struct rec_error *err)
{
    struct sim *sim = context;
    struct rec_writer *w = sim->cli->writer;

    (void)err;
    sim->why.unfinished += done->layout != NULL;
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
    struct sim sim = {.cli = cli, .timeline = args->timeline_given};
    struct sim_replay_sink sink = {.done = write_done,
                                   .unfinished = write_unfinished,
                                   .started =
                                       args->timeline_given ? write_timeline : NULL,
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
    if (ok && sim.slowed)
        cli_warn(cli,
                 "--timeline shows first steps as if nothing slowed them, but the steps "
                 "of %llu jobs took longer: %ssim --explain says why",
                 (unsigned long long)sim.slowed, cli->prefix);
    event_clock_free(&clock);
    sim_replay_free(replay);
    sim_flows_free(flows);
    collective_table_free(&table);
    done_memo_free(sim.memo);
    why_free(&sim.why);
    return ok;
}
