/* ramp-alloc [OPTION]... [FILE]... - jobs -> layouts, allocs and blocks. */
#include "ggo/ramp-alloc.h"
#define CLI_UNSHOWN "map",
#include "main.h"

#include "ramp-alloc_map.h"
#include "rampipe/alloc.h"

struct ramp_alloc {
    struct cli *cli;
    struct alloc_admission_options options;
    struct graph_store store;
    struct graph_jobs jobs;
    struct alloc_admission *admission;
    uint32_t *down;
    char *choose;          /* --choose, cut at the colon */
    struct map_view *view; /* NULL without --map */
    bool cluster_written;
};

/* --down c-r-s,c-r-s */
static bool
read_down(struct ramp_alloc *r, const char *text)
{
    struct rec_str rest = rec_str(text), name;
    size_t room = 0;
    while (rec_str_split(&rest, ',', &name)) {
        if (!rec_grow(&r->down, &room, r->options.ndown + 1, sizeof *r->down,
                      &r->cli->err))
            return false;
        if (!net_parse_server(&r->options.placer.cluster, name,
                              &r->down[r->options.ndown++]))
            return cli_usage(r->cli,
                             "--down names server '%.*s', which is not in the cluster",
                             (int)name.len, name.ptr);
    }
    r->options.down = r->down;
    return true;
}

static bool
read_shape(struct cli *cli, const char *option, const char *text, uint32_t shape[3])
{
    struct rec_error wrong;
    return net_parse_shape(text, shape, &wrong) ||
           cli_usage(cli, "--%s %s", option, wrong.text);
}

static bool
read_cluster(struct cli *cli, const struct ramp_alloc_args *args,
             struct net_cluster *cluster)
{
    static const char *const rates[] = {"published", "node", NULL};
    struct rec_error wrong;
    size_t rate;
    if (!read_shape(cli, "shape", args->shape_arg, cluster->shape) ||
        !cli_rate(cli, "bandwidth", args->bandwidth_arg, false, &cluster->bandwidth) ||
        !cli_seconds(cli, "propagation", args->propagation_arg, false,
                     &cluster->propagation) ||
        !cli_seconds(cli, "io", args->io_arg, false, &cluster->io) ||
        !cli_bytes(cli, "memory", args->memory_arg, true, &cluster->memory) ||
        !cli_choice(cli, "collective-rate", args->collective_rate_arg, rates, &rate))
        return false;
    cluster->kind = &net_ramp;
    cluster->collective_rate = (enum net_collective_rate)rate;
    return net_check(cluster, &wrong) || cli_usage(cli, "%s", wrong.text);
}

/* --choose NAME or NAME:ARGUMENT */
static bool
read_chooser(struct ramp_alloc *r, const char *text)
{
    struct alloc_admission_options *options = &r->options;
    struct cli *cli = r->cli;
    char *argument;
    size_t row;

    if (!(r->choose = strdup(text)))
        return rec_fail_memory(&cli->err);
    if ((argument = strchr(r->choose, ':')))
        *argument++ = '\0';
    if (!cli_choose_row(cli, "choose", r->choose, alloc_choosers, sizeof *alloc_choosers,
                        &row))
        return false;
    options->chooser = &alloc_choosers[row];
    if (!argument != !options->chooser->argument || (argument && !*argument))
        return cli_usage(cli, "--choose %s%s%s %s, got '%s'", r->choose,
                         options->chooser->argument ? ":" : "",
                         options->chooser->argument ? options->chooser->argument : "",
                         options->chooser->argument ? "needs it" : "takes nothing more",
                         text);
    return !argument ||
           (options->choosing = options->chooser->open(argument, &cli->err)) != NULL;
}

static bool
read_options(struct ramp_alloc *r, const struct ramp_alloc_args *args)
{
    static const char *const orders[] = {"fifo", "shortest", NULL};
    struct cli *cli = r->cli;
    struct alloc_placer_options *placer = &r->options.placer;
    size_t heuristic, order;
    uint64_t queue;

    if (!read_cluster(cli, args, &placer->cluster) ||
        !cli_choose_row(cli, "heuristic", args->heuristic_arg, alloc_heuristics,
                        sizeof *alloc_heuristics, &heuristic) ||
        !read_shape(cli, "meta", args->meta_arg, placer->meta) ||
        !read_chooser(r, args->choose_arg) ||
        !cli_choice(cli, "order", args->order_arg, orders, &order) ||
        !cli_count(cli, "queue", args->queue_arg, 0, UINT32_MAX, &queue))
        return false;
    placer->heuristic = &alloc_heuristics[heuristic];
    r->options.order = (enum alloc_order)order;
    r->options.queue = (size_t)queue;
    if (args->order_given && queue == 0)
        return cli_usage(cli, "--order is for --queue");
    if (args->down_given && !read_down(r, args->down_arg))
        return false;
    if (args->meta_given && strcmp(args->heuristic_arg, "block") != 0)
        return cli_usage(cli, "--meta is for --heuristic block");
    return true;
}

static void
write_layout(struct rec_writer *writer, const struct sim_layout *layout,
             const uint32_t *order)
{
    rec_begin(writer, "layout");
    rec_text_field(writer, layout->id);
    rec_text_field(writer, layout->graph->id);
    rec_uint_field(writer, layout->nslots);
    rec_end(writer);
    for (size_t i = 0; i < layout->graph->nops; i++) {
        rec_begin(writer, "place");
        rec_text_field(writer, layout->id);
        rec_text_field(writer, layout->graph->op[order[i]].id);
        rec_uint_field(writer, layout->slot[order[i]]);
        if (layout->priority)
            rec_num_key(writer, "priority", layout->priority[order[i]]);
        rec_end(writer);
    }
}

static void
write_alloc(struct rec_writer *writer, const struct net_cluster *cluster,
            const struct alloc_decision *decision)
{
    char name[NET_NAME_MAX];
    rec_begin(writer, "alloc");
    rec_str_field(writer, decision->job.id);
    rec_text_field(writer, decision->graph->id);
    rec_text_field(writer, decision->layout->id);
    rec_num_field(writer, decision->time);
    for (uint32_t i = 0; i < decision->layout->nslots; i++) {
        size_t len = net_format_server(cluster, decision->servers[i], name);
        rec_put_bytes(writer, i ? "," : "\t", 1);
        rec_put_bytes(writer, name, len);
    }
    rec_end(writer);
}

/* Why no block was found for the op that could not be placed. */
static void
explain_no_block(const struct ramp_alloc *r, const struct alloc_decision *decision)
{
    const uint32_t *shape = r->options.placer.cluster.shape;
    const struct graph *graph = decision->graph;
    const struct graph_unit *unit = &graph->unit[decision->failed];
    const struct graph_op *op = &graph->op[graph->member[unit->first]];
    char legal[400];

    net_format_legal_parts(shape, legal, sizeof legal);
    cli_note(
        r->cli,
        "job '%.*s': op '%s' of graph '%s' has %u parts, which have %s on a %ux%ux%u "
        "cluster; legal are %s",
        (int)decision->job.id.len, decision->job.id.ptr, op->of ? op->of : op->id,
        graph->id, unit->parts,
        net_is_legal(shape, unit->parts) ? "no free block of a legal shape"
                                         : "no legal shape",
        shape[0], shape[1], shape[2], legal);
}

static bool
decide(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct ramp_alloc *r = context;
    struct rec_writer *writer = r->cli->writer;

    if (decision->cause) {
        graph_begin_block(writer, &decision->job, decision->time, decision->cause,
                          decision->graph);
        rec_end(writer);
        if (r->cli->verbose && strcmp(decision->cause, "no_block") == 0)
            explain_no_block(r, decision);
    } else {
        if (decision->new_layout) {
            size_t n = decision->graph->nops;
            uint32_t *order = malloc((n + 1) * sizeof *order);
            if (!order)
                return rec_fail_memory(err);
            for (uint32_t i = 0; i < n; i++)
                order[decision->layout->placed[i]] = i;
            write_layout(writer, decision->layout, order);
            free(order);
        }
        write_alloc(writer, &r->options.placer.cluster, decision);
    }
    return !r->view ||
           map_view_show(r->view, decision, alloc_admission_owners(r->admission), err);
}

static bool
take_job(struct ramp_alloc *r, const struct rec *rec)
{
    struct cli *cli = r->cli;
    struct graph_job job;

    if (!graph_jobs_read(&r->jobs, &r->store, cli->reader, rec, &job, &cli->err))
        return false;
    if (!alloc_admission_advance(r->admission, &job, &cli->err))
        return rec_locate(cli->reader, &cli->err);
    rec_put_line(cli->writer, rec->line);
    return alloc_admission_arrive(r->admission, &job, &cli->err) ||
           rec_locate(cli->reader, &cli->err);
}

static bool
take(struct ramp_alloc *r, const struct rec *rec)
{
    struct cli *cli = r->cli;
    bool data = rec->type != REC_COMMENT && rec->type != REC_MARK;

    if (rec->type == REC_CLUSTER)
        return rec_reader_fail(cli->reader, &cli->err,
                               "the stream has a cluster already: it has been through an "
                               "allocator");
    if (data && !r->cluster_written) {
        net_write(&r->options.placer.cluster, cli->writer);
        r->cluster_written = true;
    }
    if (!graph_continues(rec) && !graph_store_end(&r->store, &cli->err))
        return false;
    if (rec->type == REC_JOB)
        return take_job(r, rec);
    rec_put_line(cli->writer, rec->line);
    if (rec->type == REC_GRAPH || rec->type == REC_OP || rec->type == REC_DEP)
        return graph_store_read(&r->store, cli->reader, rec, &cli->err);
    return true;
}

static bool
run(struct cli *cli, const struct ramp_alloc_args *args)
{
    struct ramp_alloc r = {.cli = cli};
    struct rec rec;
    int status = 0;
    bool ok = read_options(&r, args) && cli_open_filter(cli) &&
              (r.admission =
                   alloc_admission_new(&r.options, &r.store, decide, &r, &cli->err)) &&
              (!args->map_given ||
               (r.view = map_view_new(&r.options.placer.cluster, &cli->err)));

    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&r, &rec);
    ok = ok && status == 0 && graph_store_end(&r.store, &cli->err) &&
         alloc_admission_end(r.admission, &cli->err);
    free(r.down);
    if (r.options.choosing)
        r.options.chooser->free(r.options.choosing);
    free(r.choose);
    map_view_free(r.view);
    alloc_admission_free(r.admission);
    graph_store_free(&r.store);
    graph_jobs_free(&r.jobs);
    return ok;
}
