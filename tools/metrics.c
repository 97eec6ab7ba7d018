/* metrics [OPTION]... [FILE]... - results of simulations -> figures. */
#include "ggo/metrics.h"
#include "main.h"

#include "metrics_print.h"

#include <math.h>
#include <unistd.h>

enum { BINS_MOST = 1000000000 };

/* What is asked for. */
struct wanted {
    size_t format;
    double seconds, slo; /* of an interval, 0: no series; NAN: none */
    uint64_t bins;       /* 0: no histogram */
    struct rec_limit limit;
};

static bool
read_seconds(struct cli *cli, const char *option, const char *text, double *seconds)
{
    return cli_seconds(cli, option, text, false, seconds) &&
           (*seconds > 0 || cli_usage(cli, "--%s must be > 0, got '%s'", option, text));
}

static void
free_reducers(struct metrics **reducer)
{
    for (size_t i = 0; reducer && reducer[i]; i++)
        metrics_free(reducer[i]);
    free(reducer);
}

/* A reducer of each family, behind the last one NULL; NULL: cli->err. */
static struct metrics **
make_reducers(struct cli *cli, const char *by, bool runs, const struct wanted *wanted)
{
    struct metrics **reducer;
    size_t n = 0;
    while (metrics_family(n))
        n++;
    reducer = calloc(n + 1, sizeof *reducer);
    if (!reducer)
        rec_fail_memory(&cli->err);
    for (size_t i = 0; reducer && i < n; i++) {
        if (!(reducer[i] =
                  metrics_new(metrics_family(i), by, wanted->seconds, runs, &cli->err))) {
            free_reducers(reducer);
            return NULL;
        }
        metrics_limit(reducer[i], wanted->limit);
        metrics_set_objective(reducer[i], wanted->slo);
    }
    return reducer;
}

/* A record was refused: says which option is to blame, or would help. */
static bool
explain(struct cli *cli, const struct metrics *reducer, bool runs)
{
    struct rec_error why = cli->err;
    if (why.code == REC_USAGE)
        return cli_usage(cli, "--series: %s", why.text);
    if (metrics_mixed(reducer) && !runs)
        rec_fail(&cli->err, why.code, "%s (if each stream is a run, say --runs)",
                 why.text);
    return false;
}

static bool
read_all(struct cli *cli, struct metrics *const reducer[], bool runs)
{
    struct rec rec;
    int status;

    while ((status = cli_next(cli, &rec)) > 0)
        for (size_t i = 0; reducer[i]; i++)
            if (metrics_take(reducer[i], cli->reader, &rec, &cli->err) < 0)
                return explain(cli, reducer[i], runs);
    return status == 0;
}

/* What should have come: the records of all families. */
static void
say_none(struct cli *cli)
{
    char list[200] = "";
    const char *name;
    for (size_t i = 0; metrics_family(i); i++)
        for (size_t k = 0; (name = metrics_family_record(metrics_family(i), k)); k++)
            rec_list_name(list, sizeof list, name);
    rec_fail(&cli->err, REC_NO,
             "no results came (%s records): put %smetrics behind %ssim", list,
             cli->prefix, cli->prefix);
}

static const char *
name_of(const struct metrics *reducer)
{
    return metrics_family_name(metrics_family_of(reducer));
}

/* The reducer whose results the stream has; NULL: cli->err. */
static struct metrics *
choose(struct cli *cli, struct metrics *const reducer[])
{
    struct metrics *chosen = NULL;
    for (size_t i = 0; reducer[i]; i++) {
        if (metrics_cases(reducer[i]) == 0)
            continue;
        if (chosen) {
            rec_fail(&cli->err, REC_DATA,
                     "the stream has both %s and %s: reduce them apart", name_of(chosen),
                     name_of(reducer[i]));
            return NULL;
        }
        chosen = reducer[i];
    }
    if (!chosen)
        say_none(cli);
    return chosen;
}

static bool
read_options(struct cli *cli, const struct metrics_args *args, struct wanted *wanted)
{
    static const char *const formats[] = {"table", "tsv", "csv", "json", NULL};
    bool person = !cli->output && isatty(STDOUT_FILENO);
    *wanted = (struct wanted){.format = person ? METRICS_TABLE : METRICS_TSV, .slo = NAN};
    return (!args->format_given ||
            cli_choice(cli, "format", args->format_arg, formats, &wanted->format)) &&
           cli_limit(cli, args->limit_arg, &wanted->limit) &&
           (!args->series_given ||
            read_seconds(cli, "series", args->series_arg, &wanted->seconds)) &&
           (!args->slo_given || read_seconds(cli, "slo", args->slo_arg, &wanted->slo)) &&
           (!args->histogram_given || cli_count(cli, "histogram", args->histogram_arg, 1,
                                                BINS_MOST, &wanted->bins)) &&
           (!args->by_given || !args->series_given ||
            cli_usage(cli, "--series is of all cases: give no --by")) &&
           (!args->runs_given || !args->series_given ||
            cli_usage(cli, "--series is of one run: give no --runs")) &&
           (!args->runs_given || !args->histogram_given ||
            cli_usage(cli, "--histogram is of one run: give no --runs")) &&
           (!args->series_given || !args->histogram_given ||
            cli_usage(cli, "--histogram or --series: give one")) &&
           (!args->by_given || rec_is_text(rec_str(args->by_arg)) ||
            cli_usage(cli, "--by must be UTF-8"));
}

/* What there is of some families only. */
static bool
suits(struct cli *cli, const struct metrics *reducer, const struct metrics_args *args)
{
    if (args->series_given && metrics_nintervals(reducer) == 0)
        return cli_usage(cli, "--series: there is none of %s", name_of(reducer));
    if (args->slo_given && !metrics_has_objective(metrics_family_of(reducer)))
        return cli_usage(cli, "--slo: %s have no latency", name_of(reducer));
    if (args->runs_given && !metrics_has_runs(reducer))
        return cli_usage(cli,
                         "--runs is of jobs and queries: statistics of %s are of many "
                         "anyway",
                         name_of(reducer));
    return true;
}

static bool
print(struct cli *cli, struct metrics *reducer, const struct metrics_args *args,
      const struct wanted *wanted)
{
    enum metrics_format format = (enum metrics_format)wanted->format;
    bool figures = !args->series_given && !args->histogram_given;
    double bins = (double)wanted->bins * (double)metrics_ngroups(reducer);

    if (!suits(cli, reducer, args) ||
        (figures && format != METRICS_TABLE &&
         !rec_limit(&wanted->limit, metrics_label_rows(reducer),
                    "rows of causes or stages", &cli->err)) ||
        !rec_limit(&wanted->limit, bins, "rows", &cli->err) ||
        !metrics_end(reducer, &cli->err) || !cli_open_writer(cli, false))
        return false;
    if (args->series_given)
        return metrics_print_series(cli, reducer, format);
    if (args->histogram_given)
        return metrics_print_histogram(cli, reducer, (size_t)wanted->bins, format);
    return metrics_print(cli, reducer, args->by_arg, format);
}

static bool
run(struct cli *cli, const struct metrics_args *args)
{
    struct metrics **reducer = NULL, *chosen = NULL;
    struct wanted wanted;
    bool ok = read_options(cli, args, &wanted) && cli_open_reader(cli) &&
              (reducer = make_reducers(cli, args->by_arg, args->runs_given, &wanted)) &&
              read_all(cli, reducer, args->runs_given) &&
              (chosen = choose(cli, reducer)) && print(cli, chosen, args, &wanted);

    free_reducers(reducer);
    return ok;
}
