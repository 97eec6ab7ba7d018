#include "sim_step.h"

#include <stdlib.h>

/* What the records of a job's first step need. Times are seconds of the simulation. */
struct timeline {
    struct rec_writer *writer;
    const struct sim_done *job;
    const struct net *net;
    const uint32_t *servers;
    double start; /* of the times that follow */
    /* Of each slot: what it holds, and since when. Owned */
    double *bytes, *since;
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
    rec_num_field(t->writer, t->start + start);
    rec_num_field(t->writer, t->start + end);
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
    rec_num_field(t->writer, t->start + start);
    rec_num_field(t->writer, t->start + end);
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
    rec_num_field(t->writer, t->start + start);
    rec_num_field(t->writer, t->start + end);
    rec_num_field(t->writer, coll->bytes);
    if (coll->lane)
        rec_text_key(t->writer, "lane", coll->lane);
    rec_end(t->writer);
}

static void
write_held(void *context, uint32_t slot, double time, double bytes)
{
    const struct timeline *t = context;
    char name[NET_NAME_MAX];
    if (t->bytes[slot] > 0 && time > t->since[slot]) {
        rec_begin(t->writer, "held");
        rec_str_field(t->writer, t->job->job.id);
        net_format_server(t->net, t->servers[slot], name);
        rec_text_field(t->writer, name);
        rec_num_field(t->writer, t->start + t->since[slot]);
        rec_num_field(t->writer, t->start + time);
        rec_num_field(t->writer, t->bytes[slot]);
        rec_end(t->writer);
    }
    t->bytes[slot] = bytes;
    t->since[slot] = time;
}

bool
timeline_observe(struct rec_writer *writer, const struct sim_done *done,
                 const struct net *net, const uint32_t *servers, struct rec_error *err)
{
    size_t slots = done->layout->where.nslots;
    struct timeline timeline = {writer, done, net, servers, done->start, NULL, NULL};
    struct sim_observer observer = {.run = write_run,
                                    .send = write_send,
                                    .coll = write_coll,
                                    .hold = write_held,
                                    .context = &timeline};
    struct sim_cost again;
    bool ok;
    timeline.bytes = calloc(slots + 1, sizeof *timeline.bytes);
    timeline.since = calloc(slots + 1, sizeof *timeline.since);
    ok = (timeline.bytes && timeline.since) || rec_fail_memory(err);
    ok = ok && sim_layout_observe(done->layout, net, servers, &observer, &again, err);
    free(timeline.bytes);
    free(timeline.since);
    return ok;
}

static void
write_rate(const struct timeline *t, const struct sim_moment *moment)
{
    struct net_link link;
    char name[NET_NODE_MAX];
    net_link(t->net, moment->which, &link);
    rec_begin(t->writer, "rate");
    rec_str_field(t->writer, t->job->job.id);
    net_format_node(t->net, link.from, name);
    rec_text_field(t->writer, name);
    net_format_node(t->net, link.to, name);
    rec_text_field(t->writer, name);
    rec_num_field(t->writer, moment->start);
    rec_num_field(t->writer, moment->end);
    rec_num_field(t->writer, moment->rate);
    rec_num_field(t->writer, link.capacity);
    rec_end(t->writer);
}

void
timeline_write_moment(struct rec_writer *writer, const struct sim_done *done,
                      const struct net *net, const uint32_t *servers,
                      const struct sim_moment *moment)
{
    struct timeline timeline = {writer, done, net, servers, 0, NULL, NULL};
    switch (moment->what) {
    case SIM_RAN: write_run(&timeline, moment->which, moment->start, moment->end); break;
    case SIM_SENT:
        write_send(&timeline, moment->which, moment->start, moment->end);
        break;
    case SIM_EXCHANGED:
        write_coll(&timeline, moment->which, moment->start, moment->end);
        break;
    case SIM_CARRIED: write_rate(&timeline, moment); break;
    }
}
