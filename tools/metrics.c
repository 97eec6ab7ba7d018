/* metrics [OPTION]... [FILE]... - results of simulations -> figures. */
#include "ggo/metrics.h"
#include "main.h"

#include "metrics_print.h"

#include <unistd.h>

static bool
read_series(struct cli *cli, const char *text, double *width)
{
    return cli_seconds(cli, "series", text, false, width) &&
           (*width > 0 || cli_usage(cli, "--series must be > 0, got '%s'", text));
}

struct reducers {
    struct metrics metrics;
    struct metrics_training training;
    struct metrics_series series;
};

static bool
read_all(struct cli *cli, struct reducers *r)
{
    struct metrics_job job;
    struct rec rec;
    int status = 0;
    bool ok = true;

    while (ok && (status = cli_next(cli, &rec)) > 0) {
        int taken = metrics_take(&r->metrics, cli->reader, &rec, &job, &cli->err);
        if (taken > 0 && r->series.width > 0)
            ok = metrics_series_add(&r->series, &job, &cli->err);
        else if (taken == 0)
            taken = metrics_training_take(&r->training, cli->reader, &rec, &cli->err);
        ok = ok && taken >= 0;
    }
    return ok && status == 0;
}

static bool
print(struct cli *cli, struct reducers *r, enum metrics_format format)
{
    bool runs = r->training.group[0].runs > 0;
    if (r->metrics.jobs == 0 && !runs)
        return rec_fail(&cli->err, REC_NO,
                        "no done, block or trained records came: put metrics behind sim");
    if (r->metrics.jobs > 0 && runs)
        return rec_fail(&cli->err, REC_DATA,
                        "the stream has both jobs and training runs: reduce them apart");
    if (runs && r->series.width > 0)
        return cli_usage(cli, "--series is of jobs; scripts/plot-training draws runs");
    if (!cli_open_writer(cli, false))
        return false;
    if (runs) {
        metrics_training_sort(&r->training);
        metrics_print_training(cli, &r->training, format);
    } else {
        metrics_sort(&r->metrics);
        if (r->series.width > 0)
            metrics_print_series(cli, &r->metrics, &r->series, format);
        else
            metrics_print(cli, &r->metrics, format);
    }
    return true;
}

static bool
run(struct cli *cli, const struct metrics_args *args)
{
    static const char *const formats[] = {"table", "tsv", "csv", "json", NULL};
    bool person = !cli->output && isatty(STDOUT_FILENO);
    size_t format = person ? METRICS_TABLE : METRICS_TSV;
    struct reducers r = {0};
    bool ok =
        (!args->format_given ||
         cli_choice(cli, "format", args->format_arg, formats, &format)) &&
        (!args->series_given || read_series(cli, args->series_arg, &r.series.width)) &&
        (!args->by_given || !args->series_given ||
         cli_usage(cli, "--series is of all jobs: give no --by")) &&
        cli_open_reader(cli) && metrics_start(&r.metrics, args->by_arg, &cli->err) &&
        metrics_training_start(&r.training, args->by_arg, &cli->err) &&
        read_all(cli, &r) && print(cli, &r, (enum metrics_format)format);

    metrics_free(&r.metrics);
    metrics_training_free(&r.training);
    metrics_series_free(&r.series);
    return ok;
}
