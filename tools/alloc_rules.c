/* Admission: jobs -> layouts, allocs and blocks. */
#include "alloc_rules.h"

#include "alloc_map.h"
#include "graph_times.h"
#include "rampipe/alloc.h"

#include <fcntl.h>
#include <limits.h>

struct allocator {
    struct cli *cli;
    const struct alloc_rules *rules;
    struct alloc_admission_options options;
    struct graph_reading reading;
    struct alloc_admission *admission; /* NULL: the cluster is not known yet */
    struct alloc_cluster *cluster;     /* borrowed; its net is that of `reading_net` */
    struct net_reading reading_net;    /* of a cluster in the stream */
    struct alloc_choosing base, choosing;
    struct alloc_agent_options asking; /* --agent */
    struct alloc_agent *agent;         /* NULL without */
    struct map_view *view;             /* NULL without --map */
    bool cluster_written;
};

/* Puts the name of the option before an error of the library if it is about its value. */
static bool
explain(struct cli *cli, const char *option)
{
    struct rec_error err = cli->err;
    return err.code == REC_USAGE && cli_usage(cli, "--%s %s", option, err.text);
}

static bool
is_rollout(const struct alloc_rules *rules)
{
    return !rules->agent_given && strncmp(rules->choose, "rollout:", 8) == 0;
}

/* Refuses options of rollouts where there are none. */
static bool
check_rollout(struct cli *cli, const struct alloc_rules *rules)
{
    const char *option = rules->base_given      ? "base"
                         : rules->horizon_given ? "horizon"
                         : rules->seed_given    ? "seed"
                                                : NULL;
    return !option || is_rollout(rules) ||
           cli_usage(cli, "--%s is for --choose rollout:N", option);
}

/* --choose, and the options of rollouts. */
static bool
read_chooser(struct allocator *r, const struct alloc_rules *rules)
{
    struct alloc_choice choice = {.admission = &r->options, .store = &r->reading.store};
    struct cli *cli = r->cli;
    struct rec_error *err = &cli->err;
    uint64_t horizon = 0, seed;
    bool rollout = is_rollout(rules);

    if ((rules->horizon_given &&
         !cli_count(cli, "horizon", rules->horizon, 1, 1000000, &horizon)) ||
        !cli_count(cli, "seed", rules->seed, 0, UINT32_MAX, &seed))
        return false;
    choice.horizon = (uint32_t)horizon;
    choice.seed = (uint32_t)seed;
    r->options.choosing = &r->choosing;
    if (rollout && strncmp(rules->base, "rollout:", 8) == 0)
        return cli_usage(cli, "--base must decide without rollouts");
    if (rollout && !alloc_choosing_open(&r->base, rules->base, &choice, err))
        return explain(cli, "base");
    choice.base = &r->base;
    return alloc_choosing_open(&r->choosing, rules->choose, &choice, err) ||
           explain(cli, "choose");
}

/* --agent COMMAND, or fd:IN,OUT for a process that is running already. */
static bool
read_agent(struct allocator *r, const struct alloc_rules *rules)
{
    struct alloc_agent_options *asking = &r->asking;
    struct cli *cli = r->cli;
    struct rec_str rest = rec_str(rules->agent), in, out;
    uint64_t from = 0, to = 0;

    *asking = (struct alloc_agent_options){
        .name = rules->agent, .command = rules->agent, .provenance = cli->provenance};
    if (!cli_seconds(cli, "agent-timeout", rules->agent_timeout, true, &asking->timeout))
        return false;
    if (asking->timeout == 0)
        return cli_usage(cli, "--agent-timeout must be more than 0");
    r->choosing.chooser = &alloc_agent_chooser;
    r->options.choosing = &r->choosing;
    if (strncmp(rest.ptr, "fd:", 3) != 0)
        return rest.len > 0 || cli_usage(cli, "--agent must be a command, got ''");
    rest = rec_str(rest.ptr + 3);
    rec_str_split(&rest, ',', &in);
    if (!rec_str_split(&rest, ',', &out) || rest.ptr || !rec_parse_uint(in, &from) ||
        !rec_parse_uint(out, &to) || from < 3 || to < 3 || from > INT_MAX ||
        to > INT_MAX || fcntl((int)from, F_GETFD) < 0 || fcntl((int)to, F_GETFD) < 0)
        return cli_usage(
            cli,
            "--agent fd:IN,OUT must be two descriptors that are open, from 3 "
            "on, got '%s'",
            rules->agent);
    asking->command = NULL;
    asking->from = (int)from;
    asking->to = (int)to;
    return true;
}

static bool
open_agent(struct allocator *r)
{
    if (!r->asking.name)
        return true;
    r->asking.started = cli_guard_group;
    r->asking.net = r->cluster->net;
    r->asking.store = r->options.whole ? &r->reading.store : NULL;
    r->choosing.self = r->agent = alloc_agent_open(&r->asking, &r->cli->err);
    return r->agent != NULL;
}

static bool
read_options(struct allocator *r, const struct alloc_rules *rules)
{
    static const char *const orders[] = {"fifo", "shortest", NULL};
    struct cli *cli = r->cli;
    size_t order;
    uint64_t queue;

    if (!check_rollout(cli, rules) ||
        !(rules->agent_given ? read_agent(r, rules) : read_chooser(r, rules)) ||
        !cli_choice(cli, "order", rules->order, orders, &order) ||
        !cli_count(cli, "queue", rules->queue, 0, UINT32_MAX, &queue))
        return false;
    r->options.order = (enum alloc_order)order;
    r->options.queue = (size_t)queue;
    if (rules->order_given && queue == 0)
        return cli_usage(cli, "--order is for --queue");
    if (rules->choose_given && rules->agent_given)
        return cli_usage(cli, "--agent takes the place of --choose");
    r->options.whole = rules->whole_actions_given;
    return rules->agent_given || (!rules->agent_timeout_given && !r->options.whole) ||
           cli_usage(cli, "--agent-timeout and --whole-actions are for --agent");
}

/* True if the job does not take as many servers as its degree says. */
static bool
takes_others(const struct alloc_decision *decision)
{
    uint32_t degree = decision->graph->degree;
    return degree > 0 && decision->layout->where.nslots != degree;
}

static const struct graph_op *
failed_op(const struct alloc_decision *decision)
{
    const struct graph *graph = decision->graph;
    return &graph->op[graph->member[graph->unit[decision->failed].first]];
}

/* Writes which op could not be placed; an action says so itself. */
static void
name_op(const struct allocator *r, const struct alloc_decision *decision)
{
    const struct graph_op *op = failed_op(decision);
    if (decision->op == GRAPH_NONE)
        rec_text_key(r->cli->writer, "op", op->of ? op->of : op->id);
}

/* Writes how much memory it lacks, too. */
static void
explain_no_memory(const struct allocator *r, const struct alloc_decision *decision)
{
    const struct graph *graph = decision->graph;
    const struct graph_op *op = failed_op(decision);
    double needs = place_part_memory(graph, decision->failed);
    double all = graph_memory_held(graph);

    name_op(r, decision);
    rec_num_key(r->cli->writer, "needs", needs);
    rec_num_key(r->cli->writer, "missing", needs - decision->left);
    if (op->pass != GRAPH_TASK)
        rec_num_key(r->cli->writer, "memory", all);
    if (r->cli->verbose && decision->op == GRAPH_NONE)
        cli_note(r->cli,
                 "job '%.*s': op '%s' of graph '%s' needs %.10g bytes on a server for "
                 "each of its parts (%u); the free block with most room has %.10g of "
                 "%.10g left: %.10g are missing (the job needs %.10g in all)",
                 (int)decision->job.id.len, decision->job.id.ptr,
                 op->of ? op->of : op->id, graph->id, needs,
                 graph->unit[decision->failed].parts, decision->left,
                 net_memory(r->options.placer.net), needs - decision->left, all);
}

/* Tells why no block was found for the op that could not be placed. */
static void
explain_no_block(const struct allocator *r, const struct alloc_decision *decision)
{
    const struct net *net = r->options.placer.net;
    const struct graph *graph = decision->graph;
    const struct graph_unit *unit = &graph->unit[decision->failed];
    const struct graph_op *op = failed_op(decision);
    char legal[400], where[NET_TEXT_MAX];

    net_describe(net, where);
    net_format_legal_parts(net, legal, sizeof legal);
    cli_note(r->cli,
             "job '%.*s': op '%s' of graph '%s' has %u parts, which have %s on %s; "
             "legal are %s",
             (int)decision->job.id.len, decision->job.id.ptr, op->of ? op->of : op->id,
             graph->id, unit->parts,
             net_is_legal(net, unit->parts) ? "no free block of a legal shape"
                                            : "no legal shape",
             where, legal);
}

/* Tells why a layout has another number of servers than the graph's degree. */
static void
explain_servers(const struct allocator *r, const struct alloc_decision *decision)
{
    const struct graph *graph = decision->graph;
    uint32_t most = 1;
    for (size_t u = 0; u < graph->nunits; u++)
        if (graph->unit[u].parts > most)
            most = graph->unit[u].parts;
    cli_note(r->cli,
             "layout %s: graph '%s' of degree %u takes %u servers: its ops have at most "
             "%u parts, and two ops may lie on different servers",
             decision->layout->where.id, graph->id, graph->degree,
             decision->layout->where.nslots, most);
}

static bool
decide(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct allocator *r = context;
    struct rec_writer *writer = r->cli->writer;

    if (decision->new_graph)
        graph_write(decision->graph, writer);
    if (decision->cause) {
        graph_begin_block(writer, &decision->job, decision->time, decision->cause,
                          decision->graph);
        if (strcmp(decision->cause, "no_memory") == 0)
            explain_no_memory(r, decision);
        else if (strcmp(decision->cause, "hold_and_release") == 0)
            name_op(r, decision);
        alloc_decision_explain(decision, r->options.placer.net, writer);
        rec_end(writer);
        if (r->cli->verbose && strcmp(decision->cause, "no_block") == 0)
            explain_no_block(r, decision);
    } else {
        const struct graph_layout *where = &decision->layout->where;
        if (decision->new_layout) {
            if (!graph_layout_write(where, writer, err))
                return false;
            if (takes_others(decision))
                explain_servers(r, decision);
        }
        graph_begin_alloc(writer, decision->job.id, where, decision->time);
        net_servers_field(r->options.placer.net, decision->servers, where->nslots,
                          writer);
        if (takes_others(decision))
            rec_uint_key(writer, "degree", decision->graph->degree);
        rec_end(writer);
    }
    return (!r->options.whole || alloc_agent_tell(r->agent, decision, err)) &&
           (!r->view ||
            map_view_show(r->view, decision, alloc_admission_owners(r->admission), err));
}

static bool
take_job(struct allocator *r, const struct rec *rec)
{
    struct cli *cli = r->cli;
    const struct graph_job *job = &r->reading.job;

    if (!alloc_admission_advance(r->admission, job, &cli->err))
        return rec_locate(cli->reader, &cli->err);
    rec_put_line(cli->writer, rec->line);
    return alloc_admission_arrive(r->admission, job, &cli->err) ||
           rec_locate(cli->reader, &cli->err);
}

/* Jobs are placed with the heuristics that the policy of --choose or --base is for. */
static bool
follow_policy(struct allocator *r)
{
    struct place_ways ways = alloc_choosing_trained(&r->choosing);
    if (ways.n == 0)
        ways = alloc_choosing_trained(&r->base);
    return alloc_cluster_follow(r->cli, ways, r->cluster);
}

/* Warns if a policy was trained for other ways of placing, or for other clusters. */
static bool
check_policy(const struct allocator *r, const struct alloc_choosing *c)
{
    char where[NET_TEXT_MAX];
    if (!alloc_cluster_compare(r->cli, r->cluster, c->argument,
                               alloc_choosing_trained(c)))
        return false;
    if (!alloc_choosing_is_foreign(c, r->cluster->net))
        return true;
    net_describe(r->cluster->net, where);
    cli_warn(r->cli, "%s has no expert for %s: those for other clusters decide",
             c->argument, where);
    return true;
}

/* Opens what needs the cluster, once that is known. */
static bool
start(struct allocator *r)
{
    struct rec_error *err = &r->cli->err;
    if (r->rules->follow && !follow_policy(r))
        return false;
    if (!check_policy(r, &r->choosing) || !check_policy(r, &r->base))
        return false;
    r->options.placer = r->cluster->placer;
    r->options.more = r->cluster->more;
    r->options.nmore = r->cluster->nmore;
    r->options.down = r->cluster->down;
    r->options.ndown = r->cluster->ndown;
    return open_agent(r) &&
           (r->admission =
                alloc_admission_new(&r->options, &r->reading.store, decide, r, err)) &&
           (!r->rules->map_given || (r->view = map_view_new(r->cluster->net, err)));
}

/* All records of the cluster have come: they say where jobs are placed. */
static bool
place(struct allocator *r)
{
    return r->rules->place(r->cli, r->rules->context, r->cluster) && start(r);
}

/* Passes the records of the cluster on as they are. *taken: this is one of them. */
static bool
take_cluster(struct allocator *r, const struct rec *rec, bool *taken)
{
    struct cli *cli = r->cli;
    bool ok;
    if (rec->type == REC_CLUSTER && !r->rules->place)
        return rec_reader_fail(cli->reader, &cli->err, "%s", r->rules->refusal);
    if (rec->type == REC_CLUSTER && r->cluster->net)
        return rec_reader_fail(cli->reader, &cli->err,
                               "this is the second cluster: jobs are placed on one");
    ok = net_reading_take(&r->reading_net, cli->reader, rec, taken, &cli->err);
    if (r->reading_net.net)
        r->cluster->net = r->reading_net.net;
    if (!ok)
        return false;
    if (*taken) {
        rec_put_line(cli->writer, rec->line);
        r->cluster_written = true;
    }
    return r->admission || !r->cluster->net || r->reading_net.open || place(r);
}

static bool
take(struct allocator *r, const struct rec *rec)
{
    struct cli *cli = r->cli;
    bool plan = rec->type == REC_GRAPH || rec->type == REC_JOB;
    enum graph_taken taken;
    bool of_cluster;

    if (!take_cluster(r, rec, &of_cluster))
        return false;
    if (of_cluster)
        return true;
    if (r->rules->unplaced &&
        (rec->type == REC_ALLOC || rec->type == REC_LAYOUT || rec->type == REC_BLOCK))
        return rec_reader_fail(cli->reader, &cli->err,
                               "the stream has been through an allocator already");
    /* Not before the plan: what comes before may be a stream of its own. */
    if (plan && !r->rules->place && !r->cluster_written) {
        net_write(r->cluster->net, cli->writer);
        r->cluster_written = true;
    }
    if (!graph_reading_take(&r->reading, cli->reader, rec, &taken, &cli->err))
        return false;
    if (taken == GRAPH_JOB_TAKEN && !r->admission)
        return rec_reader_fail(
            cli->reader, &cli->err,
            "job '%.*s' comes before a cluster: give --cluster, or put "
            "a cluster record before the jobs",
            (int)r->reading.job.id.len, r->reading.job.id.ptr);
    if (taken == GRAPH_JOB_TAKEN)
        return take_job(r, rec);
    rec_put_line(cli->writer, rec->line);
    return true;
}

bool
alloc_rules_run(struct cli *cli, const struct alloc_rules *rules,
                struct alloc_cluster *cluster)
{
    struct allocator r = {.cli = cli, .rules = rules, .cluster = cluster};
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    int status = 0;
    bool ok =
        read_options(&r, rules) && cli_open_filter(cli) && (rules->place || start(&r));

    r.reading.store.advice = graph_times_advice(cli, rules->allow_zero_given, advice);
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&r, &rec);
    ok = ok && status == 0 && net_reading_end(&r.reading_net, &cli->err) &&
         (r.admission || !r.cluster->net || place(&r)) &&
         graph_reading_end(&r.reading, &cli->err) &&
         (!r.admission || alloc_admission_end(r.admission, &cli->err)) &&
         (!r.agent || alloc_agent_end(r.agent, &cli->err));
    alloc_agent_free(r.agent);
    cli_guard_group(0);
    map_view_free(r.view);
    alloc_admission_free(r.admission);
    if (!r.agent)
        alloc_choosing_close(&r.choosing);
    alloc_choosing_close(&r.base);
    graph_reading_free(&r.reading);
    return ok;
}
