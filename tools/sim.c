/* sim [OPTION]... [FILE]... - event simulation of jobs on a RAMP cluster. */
#include "ggo/sim.h"
#include "main.h"

#include "graph_times.h"
#include "rampipe/event.h"
#include "rampipe/sim.h"

#include <math.h>
#include <stdlib.h>

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

/* Costs are remembered by geometry, but a timeline needs each op's times: the step is
 * simulated once more, for an observer. */
static bool
write_timeline(void *context, const struct sim_done *done, const struct net *net,
               const uint32_t *servers, struct rec_error *err)
{
    struct cli *cli = context;
    struct timeline timeline = {cli->writer, done, net, servers};
    struct sim_observer observer = {
        .run = write_run, .send = write_send, .context = &timeline};
    struct sim_cost again;
    return sim_layout_observe(done->layout, net, servers, &observer, &again, err);
}

static double
busy_share(const struct sim_done *done)
{
    const struct sim_step *step = &done->cost->step;
    return step->seconds > 0 ? step->busy / (done->layout->where.nslots * step->seconds)
                             : 0;
}

static bool
write_done(void *context, const struct sim_done *done, struct rec_error *err)
{
    struct cli *cli = context;
    struct rec_writer *w = cli->writer;
    const struct sim_layout *layout = done->layout;
    const struct sim_step *step = &done->cost->step;
    uint32_t slot;

    (void)err;
    rec_begin(w, "done");
    rec_str_field(w, done->job.id);
    rec_text_field(w, layout->where.graph->id);
    rec_num_field(w, done->job.arrival);
    rec_num_field(w, done->start);
    rec_num_field(w, done->finish);
    rec_text_key(w, "model", layout->where.graph->model);
    graph_pass_key(layout->where.graph, "degree", w);
    rec_num_key(w, "steps", done->job.steps);
    rec_num_key(w, "step", step->seconds);
    rec_num_key(w, "comm", step->comm);
    rec_num_key(w, "comp", step->comp);
    rec_uint_key(w, "servers", layout->where.nslots);
    rec_num_key(w, "busy", busy_share(done));
    rec_num_key(w, "sequential", step->sequential);
    rec_uint_key(w, "flows", done->cost->traffic.flows);
    rec_uint_key(w, "collectives", done->cost->traffic.collectives);
    rec_num_key(w, "deadline", done->job.deadline);
    rec_num_key(w, "memory", layout->memory_sum);
    rec_num_key(w, "peak_memory", sim_layout_peak(layout, done->cost, &slot));
    rec_num_key(w, "op_memory", layout->op_memory);
    rec_num_key(w, "dep_bytes", layout->dep_bytes);
    rec_num_key(w, "flow_bytes", done->cost->traffic.flow_bytes);
    graph_pass_key(layout->where.graph, "demand_memory", w);
    graph_pass_key(layout->where.graph, "demand_bytes", w);
    graph_pass_key(layout->where.graph, "batch", w);
    graph_pass_key(layout->where.graph, "sequence", w);
    if (!isnan(layout->flops))
        rec_num_key(w, "flops", layout->flops);
    graph_pass_key(layout->where.graph, "peak", w);
    rec_end(w);
    return true;
}

static bool
write_unfinished(void *context, const struct sim_done *done, double time,
                 struct rec_error *err)
{
    struct cli *cli = context;
    struct rec_writer *w = cli->writer;

    (void)err;
    graph_begin_block(w, &done->job, time, "unfinished", done->graph);
    if (done->layout) {
        rec_num_key(w, "start", done->start);
        rec_uint_key(w, "servers", done->layout->where.nslots);
        rec_num_key(w, "busy", busy_share(done));
    }
    rec_end(w);
    return true;
}

static bool
run(struct cli *cli, const struct sim_args *args)
{
    struct sim_replay_sink sink = {.done = write_done,
                                   .unfinished = write_unfinished,
                                   .started =
                                       args->timeline_given ? write_timeline : NULL,
                                   .context = cli};
    struct sim_replay *replay = NULL;
    struct event_clock clock = {0};
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    double until, layouts;
    int status = 0, taken = 0;
    bool ok = cli_seconds(cli, "until", args->until_arg, true, &until) &&
              cli_bytes(cli, "layout-memory", args->layout_memory_arg, true, &layouts) &&
              cli_open_filter(cli) &&
              (replay = sim_replay_new(&sink, until, &cli->err)) &&
              event_clock_add(&clock, &sim_replay_model, replay, &cli->err);

    if (ok) {
        sim_replay_keep(replay, layouts < (double)SIZE_MAX ? (size_t)layouts : SIZE_MAX);
        sim_replay_advise(replay,
                          graph_times_advice(cli, args->allow_zero_given, advice));
    }
    while (ok && (status = cli_next(cli, &rec)) > 0) {
        taken = event_clock_take(&clock, cli->reader, &rec, &cli->err);
        if (taken == 0)
            rec_put_line(cli->writer, rec.line);
        ok = taken >= 0;
    }
    ok = ok && status == 0 && event_clock_end(&clock, until, &cli->err);
    event_clock_free(&clock);
    sim_replay_free(replay);
    return ok;
}
