/* ramp-alloc bound [OPTION]... [FILE]... - jobs -> a bound on how many could start. */
#include "ggo/ramp-alloc-bound.h"
#define CLI_UNSHOWN "limit",
#include "main.h"

#include "graph_times.h"
#include "net_option.h"
#include "ramp_cluster.h"
#include "rampipe/alloc.h"

#include <math.h>

struct bound {
    struct cli *cli;
    struct alloc_cluster cluster;
    struct alloc_relaxation_options options;
    struct alloc_annealing_options annealing_options;
    bool runs;      /* each stream is a run of its own */
    uint64_t ended; /* runs that are complete */
    uint64_t njobs; /* jobs of all runs */
    /* The current run: */
    struct graph_reading reading;
    struct alloc_relaxation *relaxation; /* NULL: it has no job yet */
    struct alloc_annealing *annealing;   /* NULL: the same, or without --anneal */
};

static void
forget(struct bound *b)
{
    alloc_relaxation_free(b->relaxation);
    alloc_annealing_free(b->annealing);
    graph_reading_free(&b->reading);
    b->relaxation = NULL;
    b->annealing = NULL;
}

/* What a schedule starts may not be more than a bound. A whole one is raised by it. */
static bool
search(struct bound *b, struct alloc_relaxed *relaxed, uint64_t *reached)
{
    struct rec_error *err = &b->cli->err;
    *reached = 0;
    if (!b->annealing)
        return true;
    cli_progress_share(b->cli, NAN, b->njobs, "jobs read, searching a schedule");
    if (!alloc_annealing_run(b->annealing, reached, err))
        return false;
    if ((double)*reached > relaxed->accepted + 1e-6 ||
        (b->options.nodes && *reached > relaxed->whole))
        return rec_fail(err, REC_BUG, "a schedule starts %llu jobs, more than the bound",
                        (unsigned long long)*reached);
    if (*reached > relaxed->found)
        relaxed->found = *reached;
    return true;
}

static bool
finish(struct bound *b)
{
    struct rec_writer *writer = b->cli->writer;
    struct alloc_relaxed relaxed;
    uint64_t reached;
    cli_progress_share(b->cli, NAN, b->njobs, "jobs read, solving the program");
    if (!alloc_relaxation_solve(b->relaxation, &relaxed, &b->cli->err) ||
        !search(b, &relaxed, &reached))
        return false;
    rec_begin(writer, "bound");
    rec_uint_field(writer, relaxed.jobs);
    rec_num_field(writer, relaxed.accepted);
    rec_uint_key(writer, "able", relaxed.able);
    rec_uint_key(writer, "servers", relaxed.servers);
    if (b->options.nodes) {
        rec_uint_key(writer, "whole", relaxed.whole);
        rec_uint_key(writer, "gap", relaxed.whole - relaxed.found);
        rec_uint_key(writer, "nodes", relaxed.nodes);
    }
    if (b->annealing)
        rec_uint_key(writer, "reached", reached);
    rec_end(writer);
    b->ended++;
    forget(b);
    return true;
}

static bool
take_job(struct bound *b)
{
    struct cli *cli = b->cli;
    b->njobs++;
    if (!b->relaxation && (!(b->relaxation = alloc_relaxation_new(
                                 &b->options, &b->reading.store, &cli->err)) ||
                           (b->annealing_options.steps &&
                            !(b->annealing = alloc_annealing_new(
                                  &b->annealing_options, &b->reading.store, &cli->err)))))
        return false;
    return (alloc_relaxation_arrive(b->relaxation, &b->reading.job, &cli->err) &&
            (!b->annealing ||
             alloc_annealing_arrive(b->annealing, &b->reading.job, &cli->err))) ||
           (cli->err.code == REC_DATA && rec_locate(cli->reader, &cli->err));
}

static bool
take(struct bound *b, const struct rec *rec)
{
    struct cli *cli = b->cli;
    enum graph_taken taken;
    if (rec->type == REC_CLUSTER)
        return rec_reader_fail(cli->reader, &cli->err,
                               "the stream has a cluster already: it has been through an "
                               "allocator");
    if (!graph_reading_take(&b->reading, cli->reader, rec, &taken, &cli->err))
        return false;
    if (rec->type == REC_MARK && b->runs && b->relaxation)
        return finish(b);
    if (taken == GRAPH_JOB_TAKEN)
        return take_job(b);
    if (taken == GRAPH_NOT_TAKEN)
        rec_put_line(cli->writer, rec->line);
    return true;
}

/* A schedule shows each job only its own servers, among which is no second block. */
static bool
can_anneal(struct cli *cli, const struct bound *b)
{
    char name[PLACE_NAME_MAX];
    place_options_name(&b->cluster.placer, name);
    return b->annealing_options.steps == 0 ||
           place_options_number(&b->cluster.placer) == 1 ||
           cli_usage(cli,
                     "--anneal cannot search for --heuristic %s, only for %s:1: it shows "
                     "each job no other free servers than its own, which are the first "
                     "block",
                     name, b->cluster.placer.kind->name);
}

static bool
run(struct cli *cli, const struct ramp_alloc_bound_args *args)
{
    const struct ramp_cluster_options options = RAMP_CLUSTER_OPTIONS(args);
    struct bound b = {.cli = cli, .runs = args->runs_given};
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    int status = 0;
    struct net *net = NULL;
    uint64_t seed = 1;
    bool ok =
        (!args->cluster_given || (net = net_option(cli, "cluster", args->cluster_arg))) &&
        ramp_cluster_read(cli, &options, net, &b.cluster) &&
        cli_limit(cli, args->limit_arg, &b.options.limit) &&
        cli_count(cli, "nodes", args->nodes_arg, 0, INT32_MAX, &b.options.nodes) &&
        cli_count(cli, "anneal", args->anneal_arg, 0, UINT32_MAX,
                  &b.annealing_options.steps) &&
        can_anneal(cli, &b) &&
        cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed) &&
        (!args->seed_given || b.annealing_options.steps ||
         cli_usage(cli, "--seed is for --anneal")) &&
        cli_open_filter(cli);

    cli->gathers = true;
    b.options.placer = b.cluster.placer;
    b.options.down = b.cluster.down;
    b.options.ndown = b.cluster.ndown;
    b.annealing_options.placer = b.cluster.placer;
    b.annealing_options.down = b.cluster.down;
    b.annealing_options.ndown = b.cluster.ndown;
    b.annealing_options.seed = (uint32_t)seed;
    b.reading.store.advice = graph_times_advice(cli, args->allow_zero_given, advice);
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&b, &rec);
    ok = ok && status == 0 && graph_reading_end(&b.reading, &cli->err);
    if (ok && !b.relaxation && b.ended == 0)
        ok = rec_fail(&cli->err, REC_DATA,
                      "the input has no job records: put %stracegen jobs before this",
                      cli->prefix);
    ok = ok && (!b.relaxation || finish(&b));
    forget(&b);
    alloc_cluster_free(&b.cluster);
    return ok;
}
