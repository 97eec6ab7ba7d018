/* tracegen queries: arrivals at a serving pipeline. */
#include "ggo/tracegen-queries.h"
#define CLI_SEED !args.deltas_given
#define CLI_PATHS "deltas",
#include "main.h"

#include "rampipe/random.h"

#include <math.h>

/* Arrivals at one instant after which --until is given up: time does not pass. */
enum { STILL_ARRIVALS_MAX = 1000000 };

struct drawing {
    struct cli *cli;
    uint64_t queries; /* the number to draw; UINT64_MAX: as many as come */
    double until;     /* seconds */
    bool exact;       /* --queries was given: fewer are a no */
    const char *prefix;
    const char *process; /* the option of the process: errors of its value name it */
    size_t unit;         /* of --deltas */
    struct rng_arrivals_options options;
    struct rng_arrivals *arrivals;
};

/* ---- options ------------------------------------------------------------- */

/* Exactly one of --rate, --piecewise, --interarrival and --deltas must be given, and no
 * option that would do nothing with it. */
static bool
check_process(struct drawing *d, const struct tracegen_queries_args *args)
{
    unsigned processes = args->rate_given + args->piecewise_given +
                         args->interarrival_given + args->deltas_given;
    unsigned changes = args->on_off_given + args->sinusoid_given + args->piecewise_given;

    if (processes != 1)
        return cli_usage(d->cli,
                         "give one of --rate, --piecewise, --interarrival and --deltas");
    if (changes > 1)
        return cli_usage(d->cli, "give one of --on-off, --sinusoid and --piecewise");
    if ((args->on_off_given || args->sinusoid_given) && !args->rate_given)
        return cli_usage(d->cli, "--%s needs --rate",
                         args->on_off_given ? "on-off" : "sinusoid");
    if (args->cv_given && !args->rate_given && !args->piecewise_given)
        return cli_usage(d->cli, "--cv belongs to --rate or --piecewise");
    if ((args->unit_given || args->speed_up_given) && !args->deltas_given)
        return cli_usage(d->cli, "--%s belongs to --deltas",
                         args->unit_given ? "unit" : "speed-up");
    if (args->deltas_given && (args->seed_given || args->limit_given))
        return cli_usage(d->cli, "--deltas draws nothing: give no --%s",
                         args->seed_given ? "seed" : "limit");
    return true;
}

static bool
read_number(struct drawing *d, const struct tracegen_queries_args *args)
{
    struct cli *cli = d->cli;
    d->exact = args->queries_given;
    d->queries = args->until_given || args->deltas_given ? UINT64_MAX : 1000;
    d->until = INFINITY;
    if (args->queries_given && args->until_given)
        return cli_usage(cli, "give --queries or --until, not both");
    return (!args->queries_given || cli_count(cli, "queries", args->queries_arg, 0,
                                              UINT64_MAX - 1, &d->queries)) &&
           (!args->until_given ||
            cli_seconds(cli, "until", args->until_arg, false, &d->until));
}

/* Reads the options of --deltas. Standard input cannot be both its file and the
 * stream. */
static bool
read_deltas(struct drawing *d, const struct tracegen_queries_args *args)
{
    static const double in_a_second[] = {1, 1e3, 1e6};
    struct cli *cli = d->cli;
    bool standard = !args->no_input_given && cli->nfiles == 0;

    for (size_t i = 0; i < cli->nfiles; i++)
        standard = standard || strcmp(cli->files[i], "-") == 0;
    if (standard && strcmp(args->deltas_arg, "-") == 0)
        return cli_usage(cli, "--deltas - and the stream are both standard input: give "
                              "--no-input, or a FILE");
    if (!cli_amount(cli, "speed-up", args->speed_up_arg, false, &d->options.speed_up))
        return false;
    d->options.file = args->deltas_arg;
    d->options.rate = in_a_second[d->unit];
    return d->options.speed_up > 0 || cli_usage(cli, "--speed-up must be more than 0");
}

static bool
read_rate(struct drawing *d, const struct tracegen_queries_args *args)
{
    struct rng_arrivals_options *o = &d->options;
    const struct {
        const char *name, *text;
    } change[] = {{"on-off", args->on_off_arg},
                  {"sinusoid", args->sinusoid_arg},
                  {"piecewise", args->piecewise_arg}};

    o->rate = 1;
    d->process = "rate";
    if (args->interarrival_given) {
        d->process = "interarrival";
        o->spacing = args->interarrival_arg;
        return true;
    }
    if ((args->rate_given &&
         !cli_amount(d->cli, "rate", args->rate_arg, false, &o->rate)) ||
        !cli_amount(d->cli, "cv", args->cv_arg, false, &o->cv))
        return false;
    if (o->rate == 0)
        return cli_usage(d->cli, "--rate must be more than 0");
    if (o->cv != 0 && (o->cv < 1e-6 || o->cv > 1e3))
        return cli_usage(d->cli, "--cv must be 0, or from 1e-6 to 1000, got '%s'",
                         args->cv_arg);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        if (change[i].text) {
            d->process = o->change = change[i].name;
            o->change_text = change[i].text;
        }
    return true;
}

/* Library messages name no options: if the process's value is wrong, its option is named
 * here. */
static bool
explain(struct drawing *d, bool ok)
{
    struct rec_error err = d->cli->err;
    if (ok || err.code != REC_USAGE)
        return ok;
    return cli_usage(d->cli, "--%s: %s", d->process, err.text);
}

/* Checks the number of queries, or an estimate of it, against --limit. */
static bool
check_limit(struct drawing *d, const struct tracegen_queries_args *args)
{
    struct rec_limit limit;
    double queries = (double)d->queries;
    if (!cli_limit(d->cli, args->limit_arg, &limit))
        return false;
    if (args->until_given &&
        !explain(d, rng_arrivals_estimate(&d->options, d->until, &queries, &d->cli->err)))
        return false;
    return rec_limit(&limit, queries, "queries", &d->cli->err);
}

static bool
read_options(struct drawing *d, const struct tracegen_queries_args *args)
{
    static const char *const units[] = {"s", "ms", "us", NULL};
    struct cli *cli = d->cli;
    uint64_t seed;

    d->prefix = args->prefix_arg;
    if (strpbrk(d->prefix, ",=\t\r\n") || !rec_is_text(rec_str(d->prefix)))
        return cli_usage(cli, "--prefix must be UTF-8 and have no comma, '=' or TAB");
    if (args->no_input_given && (cli->nfiles > 0 || args->partial_given))
        return cli_usage(cli, "--no-input reads no stream: give no %s",
                         cli->nfiles ? "FILE" : "--partial");
    if (!cli_choice(cli, "unit", args->unit_arg, units, &d->unit) ||
        !check_process(d, args) || !read_number(d, args) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed))
        return false;
    d->options.seed = (uint32_t)seed;
    if (args->deltas_given ? !read_deltas(d, args)
                           : !read_rate(d, args) || !check_limit(d, args))
        return false;
    d->arrivals = rng_arrivals_new(&d->options, &cli->err);
    return explain(d, d->arrivals != NULL);
}

/* ---- drawing ------------------------------------------------------------- */

static bool
pass_on(struct cli *cli)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0) {
        if (rec.type == REC_QUERY)
            return rec_reader_fail(cli->reader, &cli->err,
                                   "the stream has queries already");
        if (rec.type != REC_ARRIVALS) /* one that came is of other queries */
            rec_put_line(cli->writer, rec.line);
    }
    if (status < 0 && cli->nfiles == 0 && rec_reader_bytes(cli->reader) == 0) {
        struct rec_error err = cli->err;
        return rec_fail(&cli->err, err.code, "%s; --no-input reads none", err.text);
    }
    return status == 0;
}

/* Writes how the queries are drawn, so that plan can draw others like them. */
static void
write_arrivals(struct drawing *d)
{
    const struct rng_arrivals_options *o = &d->options;
    struct rec_writer *w = d->cli->writer;
    if (o->file || (o->spacing && strncmp(o->spacing, "file:", 5) == 0))
        return; /* by then the file may have changed */
    rec_begin(w, "arrivals");
    rec_uint_field(w, o->seed);
    if (o->spacing)
        rec_text_key(w, "spacing", o->spacing);
    else {
        rec_num_key(w, "rate", o->rate);
        rec_num_key(w, "cv", o->cv);
    }
    if (o->change) {
        rec_text_key(w, "change", o->change);
        rec_text_key(w, "shape", o->change_text);
    }
    rec_end(w);
}

static bool
write_queries(struct drawing *d)
{
    struct cli *cli = d->cli;
    double time, last = -1;
    uint64_t i, still = 0;
    int status = 1;

    write_arrivals(d);
    for (i = 0; i < d->queries; i++) {
        if (!rec_writer_ok(cli->writer, &cli->err))
            return false;
        status = rng_arrivals_next(d->arrivals, &time, &cli->err);
        if (status <= 0 || time >= d->until)
            break;
        still = time > last ? 0 : still + 1;
        if (still > STILL_ARRIVALS_MAX && isfinite(d->until) && !d->options.file)
            return rec_fail(&cli->err, REC_DATA,
                            "inter-arrival times are always 0: --until never comes");
        last = time;
        rec_begin(cli->writer, "query");
        rec_text_field(cli->writer, d->prefix);
        rec_put_uint(cli->writer, i);
        rec_num_field(cli->writer, time);
        rec_end(cli->writer);
        if ((i & 0xfff) == 0)
            cli_progress_share(
                cli,
                d->queries == UINT64_MAX && isinf(d->until)
                    ? -1
                    : fmax((double)i / (double)d->queries, time / d->until),
                i, "queries");
    }
    if (status == 0 && d->exact)
        return rec_fail(&cli->err, REC_NO, "no more than %llu queries come: %s",
                        (unsigned long long)i,
                        d->options.file ? "--deltas ends"
                                        : "the rate stays 0, or time is more than a "
                                          "number can say");
    return status >= 0;
}

static bool
run(struct cli *cli, const struct tracegen_queries_args *args)
{
    struct drawing d = {.cli = cli};
    bool ok = read_options(&d, args);

    if (ok && args->no_input_given)
        ok = cli_open_writer(cli, true);
    else
        ok = ok && cli_open_filter(cli) && pass_on(cli);
    ok = ok && write_queries(&d);
    rng_arrivals_free(d.arrivals);
    return ok;
}
