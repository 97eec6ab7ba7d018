/* metrics [OPTION]... [FILE]... - done and block records -> figures. */
#include "ggo/metrics.h"
#include "main.h"

#include "metrics_print.h"

#include <unistd.h>

static bool
read_series(struct cli *cli, const char *text, double *width)
{
    return cli_amount(cli, "series", text, false, width) &&
           (*width > 0 || cli_usage(cli, "--series must be > 0, got '%s'", text));
}

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const formats[] = {"table", "tsv", "csv", "json", NULL};
    bool person = !cli->output && isatty(STDOUT_FILENO);
    size_t format = person ? METRICS_TABLE : METRICS_TSV;
    struct metrics metrics = {0};
    struct metrics_series series = {0};
    struct metrics_job job;
    struct rec rec;
    int status = 0;
    bool ok =
        (!args->format_given ||
         cli_choice(cli, "format", args->format_arg, formats, &format)) &&
        (!args->series_given || read_series(cli, args->series_arg, &series.width)) &&
        (!args->by_given || !args->series_given ||
         cli_usage(cli, "--series is of all jobs: give no --by")) &&
        cli_open_reader(cli) && metrics_start(&metrics, args->by_arg, &cli->err);

    while (ok && (status = cli_next(cli, &rec)) > 0) {
        int taken = metrics_take(&metrics, cli->reader, &rec, &job, &cli->err);
        ok = taken == 0 || (taken > 0 && (series.width == 0 ||
                                          metrics_series_add(&series, &job, &cli->err)));
    }
    ok = ok && status == 0;
    if (ok && metrics.jobs == 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "no done or block records came: put metrics behind sim");
    if (ok && cli_open_writer(cli, false)) {
        metrics_sort(&metrics);
        if (series.width > 0)
            metrics_print_series(cli, &metrics, &series, (enum metrics_format)format);
        else
            metrics_print(cli, &metrics, (enum metrics_format)format);
    } else
        ok = false;
    metrics_free(&metrics);
    metrics_series_free(&series);
    return ok;
}
