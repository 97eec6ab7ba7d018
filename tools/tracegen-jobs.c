/* tracegen jobs: jobs drawn over the graphs of a stream. */
#include "ggo/tracegen-jobs.h"
#define CLI_SEED true
#include "main.h"

#include "rampipe/random.h"
#include "rampipe/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Arrivals at one instant after which --until is given up: time does not pass. */
enum { STILL_ARRIVALS_MAX = 1000000 };
static const double STEPS_MAX =
    9007199254740992; /* 2^53: a double has every integer to it */

/* Streams of random numbers, one a quantity, next to those of arrivals in lib/random.
 * They may never change: a seed must always give the same jobs. */
enum { STREAM_STEPS = 2, STREAM_DEADLINE = 3, STREAM_CHOICE = 4 };

enum sampling { CYCLE, REPLACE, REMOVE, REMOVE_AND_REPEAT };

struct pool_graph {
    const char *id;
    double sequential; /* seconds a step */
};

struct drawing {
    struct cli *cli;
    uint64_t jobs; /* the number to draw; UINT64_MAX with --until */
    double until;  /* seconds */
    bool exact;    /* --jobs was given: fewer are an error */
    const char *prefix;
    enum sampling sampling;
    struct rng_arrivals *arrivals;
    struct rng_dist *steps, *deadline;
    struct rng *choice; /* draws graphs */
    struct graph_reading reading;
    struct pool_graph *pool;
    size_t npool, room;
    struct rec_arena arena;
    uint32_t *order; /* sampling without replacement: the graphs left come first */
    size_t left;     /* number of graphs that are left in this round */
};

/* Library messages name no options: if an option's value is wrong, it is named here. */
static bool
explain(struct drawing *d, const char *option, const struct rec_error *err)
{
    if (err->code == REC_USAGE)
        return cli_usage(d->cli, "--%s: %s", option, err->text);
    d->cli->err = *err;
    return false;
}

static bool
read_dist(struct drawing *d, const char *option, const char *text, uint32_t seed,
          uint32_t stream, struct rng_dist **dist)
{
    struct rec_error err;
    *dist = rng_dist_new(text, seed, stream, &err);
    return *dist || explain(d, option, &err);
}

/* Checks the number of jobs, or an estimate of it, against --limit, and makes the
 * arrivals. */
static bool
read_arrivals(struct drawing *d, const struct tracegen_jobs_args *args, uint32_t seed)
{
    struct rng_arrivals_options options = {
        .spacing = args->interarrival_arg, .rate = 1, .seed = seed};
    struct rec_limit limit;
    struct rec_error err;
    double jobs = (double)d->jobs;

    if (!cli_limit(d->cli, args->limit_arg, &limit))
        return false;
    if (args->until_given && !rng_arrivals_estimate(&options, d->until, &jobs, &err))
        return explain(d, "interarrival", &err);
    if (!rec_limit(&limit, jobs, "jobs", &d->cli->err))
        return false;
    d->arrivals = rng_arrivals_new(&options, &err);
    return d->arrivals || explain(d, "interarrival", &err);
}

static bool
read_options(struct drawing *d, const struct tracegen_jobs_args *args)
{
    static const char *const hows[] = {"cycle", "replace", "remove", "remove-and-repeat",
                                       NULL};
    struct cli *cli = d->cli;
    uint64_t seed;
    size_t how = 0;

    d->jobs = 100;
    d->until = INFINITY;
    d->exact = args->jobs_given;
    d->prefix = args->prefix_arg;
    if (args->jobs_given && args->until_given)
        return cli_usage(cli, "give --jobs or --until, not both");
    if (strpbrk(d->prefix, ",=\t\r\n") || !rec_is_text(rec_str(d->prefix)))
        return cli_usage(cli, "--prefix must be UTF-8 and have no comma, '=' or TAB");
    if (args->until_given) {
        d->jobs = UINT64_MAX;
        if (!cli_seconds(cli, "until", args->until_arg, false, &d->until))
            return false;
    }
    if ((args->jobs_given &&
         !cli_count(cli, "jobs", args->jobs_arg, 0, UINT64_MAX - 1, &d->jobs)) ||
        !cli_choice(cli, "sampling", args->sampling_arg, hows, &how) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed) ||
        !read_arrivals(d, args, (uint32_t)seed) ||
        !read_dist(d, "steps", args->steps_arg, (uint32_t)seed, STREAM_STEPS,
                   &d->steps) ||
        (args->deadline_fraction_given &&
         !read_dist(d, "deadline-fraction", args->deadline_fraction_arg, (uint32_t)seed,
                    STREAM_DEADLINE, &d->deadline)))
        return false;
    d->sampling = (enum sampling)how;
    d->choice = rng_new((uint32_t)seed, STREAM_CHOICE, &cli->err);
    return d->choice != NULL;
}

static bool
add_to_pool(void *context, const struct graph *graph, struct rec_error *err)
{
    struct drawing *d = context;
    if (!rec_grow(&d->pool, &d->room, d->npool + 1, sizeof *d->pool, err))
        return false;
    d->pool[d->npool].id = rec_arena_copy(&d->arena, rec_str(graph->id), err);
    d->pool[d->npool].sequential = graph_sequential(graph);
    return d->pool[d->npool++].id != NULL;
}

static bool
take(struct drawing *d, const struct rec *rec)
{
    struct cli *cli = d->cli;
    enum graph_taken taken;
    if (rec->type == REC_JOB)
        return rec_reader_fail(cli->reader, &cli->err,
                               "the stream has jobs already (%spd2graph --no-job makes "
                               "one that has none)",
                               cli->prefix);
    if (!graph_reading_take(&d->reading, cli->reader, rec, &taken, &cli->err))
        return false;
    rec_put_line(cli->writer, rec->line);
    return true;
}

/* The graph of the next job; NULL: none is left. Without replacement, the graph drawn
 * changes places with the last one left (Fisher and Yates), in O(1). */
static const struct pool_graph *
choose(struct drawing *d, uint64_t job)
{
    uint32_t i;
    if (d->sampling == CYCLE)
        return &d->pool[job % d->npool];
    if (d->sampling == REPLACE)
        return &d->pool[rng_below(d->choice, (uint32_t)d->npool)];
    if (d->left == 0) {
        if (d->sampling == REMOVE && job > 0)
            return NULL;
        d->left = d->npool;
        for (i = 0; i < d->npool; i++)
            d->order[i] = i;
    }
    i = rng_below(d->choice, (uint32_t)d->left);
    {
        uint32_t chosen = d->order[i];
        d->order[i] = d->order[--d->left];
        return &d->pool[chosen];
    }
}

static bool
write_job(struct drawing *d, uint64_t number, const struct pool_graph *graph, double time)
{
    struct rec_writer *writer = d->cli->writer;
    double steps = fmax(1, round(rng_dist_draw(d->steps))), deadline = INFINITY;

    if (steps > STEPS_MAX)
        return rec_fail(&d->cli->err, REC_DATA,
                        "job %llu has %g steps, more than 2^53: --steps is too large",
                        (unsigned long long)number, steps);
    if (d->deadline)
        deadline = rng_dist_draw(d->deadline) * (graph->sequential * steps);
    rec_begin(writer, "job");
    rec_text_field(writer, d->prefix);
    rec_put_uint(writer, number);
    rec_text_field(writer, graph->id);
    rec_num_field(writer, time);
    rec_uint_field(writer, (uint64_t)steps);
    rec_num_field(writer, deadline);
    rec_end(writer);
    return true;
}

static bool
write_jobs(struct drawing *d)
{
    struct cli *cli = d->cli;
    double time, last = -1;
    uint64_t still = 0;
    int status;

    if (d->npool == 0)
        return rec_fail(&cli->err, REC_DATA,
                        "the stream has no graphs to draw jobs over");
    if (!(d->order = calloc(d->npool, sizeof *d->order)))
        return rec_fail_memory(&cli->err);
    for (uint64_t i = 0; i < d->jobs; i++) {
        const struct pool_graph *graph;
        if ((status = rng_arrivals_next(d->arrivals, &time, &cli->err)) < 0)
            return false;
        if (status > 0 && time >= d->until)
            break;
        if (!(graph = choose(d, i)))
            return !d->exact ||
                   rec_fail(&cli->err, REC_NO,
                            "--sampling remove ends after %llu jobs, one a graph",
                            (unsigned long long)i);
        if (status == 0)
            return rec_fail(&cli->err, REC_DATA,
                            "job %llu arrives later than a number can say: "
                            "--interarrival is too long",
                            (unsigned long long)i);
        if (!rec_writer_ok(cli->writer, &cli->err) || !write_job(d, i, graph, time))
            return false;
        still = time > last ? 0 : still + 1;
        if (still > STILL_ARRIVALS_MAX && d->jobs == UINT64_MAX)
            return rec_fail(&cli->err, REC_DATA,
                            "--interarrival is always 0: --until never comes");
        last = time;
        if ((i & 0xfff) == 0)
            cli_progress_share(cli, fmax((double)i / (double)d->jobs, time / d->until), i,
                               "jobs");
    }
    return true;
}

static bool
run(struct cli *cli, const struct tracegen_jobs_args *args)
{
    struct drawing d = {.cli = cli, .reading.whole = add_to_pool, .reading.context = &d};
    struct rec rec;
    int status = 0;
    bool ok = read_options(&d, args) && cli_open_filter(cli);

    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&d, &rec);
    ok = ok && status == 0 && graph_reading_end(&d.reading, &cli->err) && write_jobs(&d);
    rng_arrivals_free(d.arrivals);
    rng_dist_free(d.steps);
    rng_dist_free(d.deadline);
    rng_free(d.choice);
    graph_reading_free(&d.reading);
    rec_arena_free(&d.arena);
    free(d.pool);
    free(d.order);
    return ok;
}
