/* ramp-alloc bound [OPTION]... [FILE]... - jobs -> a bound on how many could start. */
#include "ggo/ramp-alloc-bound.h"
#define CLI_UNSHOWN "limit",
#include "main.h"

#include "graph_times.h"
#include "ramp_cluster.h"

#include <math.h>

struct bound {
    struct cli *cli;
    struct ramp_cluster cluster;
    struct alloc_relaxation_options options;
    bool runs;      /* each stream is a run of its own */
    uint64_t ended; /* runs that are complete */
    uint64_t njobs; /* jobs of all runs */
    /* The current run: */
    struct graph_store store;
    struct graph_jobs jobs;
    struct alloc_relaxation *relaxation; /* NULL: it has no job yet */
};

static void
forget(struct bound *b)
{
    alloc_relaxation_free(b->relaxation);
    graph_jobs_free(&b->jobs);
    graph_store_free(&b->store);
    b->relaxation = NULL;
    b->jobs = (struct graph_jobs){.last = 0};
}

static bool
finish(struct bound *b)
{
    struct rec_writer *writer = b->cli->writer;
    struct alloc_relaxed relaxed;
    cli_progress_share(b->cli, NAN, b->njobs, "jobs read, solving the program");
    if (!alloc_relaxation_solve(b->relaxation, &relaxed, &b->cli->err))
        return false;
    rec_begin(writer, "bound");
    rec_uint_field(writer, relaxed.jobs);
    rec_num_field(writer, relaxed.accepted);
    rec_uint_key(writer, "able", relaxed.able);
    rec_uint_key(writer, "servers", relaxed.servers);
    rec_end(writer);
    b->ended++;
    forget(b);
    return true;
}

static bool
take_job(struct bound *b, const struct rec *rec)
{
    struct cli *cli = b->cli;
    struct graph_job job;
    b->njobs++;
    if (!b->relaxation &&
        !(b->relaxation = alloc_relaxation_new(&b->options, &b->store, &cli->err)))
        return false;
    return graph_jobs_read(&b->jobs, &b->store, cli->reader, rec, &job, &cli->err) &&
           (alloc_relaxation_arrive(b->relaxation, &job, &cli->err) ||
            (cli->err.code == REC_DATA && rec_locate(cli->reader, &cli->err)));
}

static bool
take(struct bound *b, const struct rec *rec)
{
    struct cli *cli = b->cli;
    if (rec->type == REC_CLUSTER)
        return rec_reader_fail(cli->reader, &cli->err,
                               "the stream has a cluster already: it has been through an "
                               "allocator");
    if (!rec_continues(rec, REC_GRAPH) && !graph_store_end(&b->store, &cli->err))
        return false;
    if (rec->type == REC_MARK && b->runs && b->relaxation)
        return finish(b);
    if (rec->type == REC_JOB)
        return take_job(b, rec);
    if (rec_is_part(rec, REC_GRAPH))
        return graph_store_read(&b->store, cli->reader, rec, &cli->err);
    rec_put_line(cli->writer, rec->line);
    return true;
}

static bool
run(struct cli *cli, const struct ramp_alloc_bound_args *args)
{
    const struct ramp_cluster_options options = RAMP_CLUSTER_OPTIONS(args);
    struct bound b = {.cli = cli, .runs = args->runs_given};
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    int status = 0;
    bool ok = ramp_cluster_read(cli, &options, &b.cluster) &&
              cli_limit(cli, args->limit_arg, &b.options.limit) && cli_open_filter(cli);

    cli->gathers = true;
    b.options.placer = b.cluster.placer;
    b.options.down = b.cluster.down;
    b.options.ndown = b.cluster.ndown;
    b.store.advice = graph_times_advice(cli, args->allow_zero_given, advice);
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&b, &rec);
    ok = ok && status == 0 && graph_store_end(&b.store, &cli->err);
    if (ok && !b.relaxation && b.ended == 0)
        ok = rec_fail(&cli->err, REC_DATA,
                      "the input has no job records: put %stracegen jobs before this",
                      cli->prefix);
    ok = ok && (!b.relaxation || finish(&b));
    forget(&b);
    ramp_cluster_free(&b.cluster);
    return ok;
}
