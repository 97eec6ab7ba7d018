/* Figures of training runs, for a person and for programs. */
#include "metrics_print.h"

#include <math.h>
#include <stdio.h>

/* Where the lines go, and what stood before. */
struct table {
    struct cli *cli;
    const char *group, *metric;
};

static void
training_figures(void *of, metrics_emit *emit, void *context)
{
    metrics_training_figures(of, emit, context);
}

/* One run: a line a figure. More: a line of statistics. */
static void
emit_training_table(void *context, const char *group, const char *metric,
                    const char *statistic, double value)
{
    struct table *table = context;
    const char *unit = metrics_training_unit(metric);
    bool named = *unit && strcmp(unit, "%") != 0;
    char text[32];

    if (strcmp(group, table->group) != 0)
        return;
    if (strcmp(unit, "%") == 0)
        snprintf(text, sizeof text, "%.3f %%", 100 * value);
    else
        snprintf(text, sizeof text, value == floor(value) ? "%.0f" : "%.6g", value);
    if (strcmp(statistic, "value") == 0) {
        rec_printf(table->cli->writer, "%-28s %16s%s%s\n", metric, text, named ? " " : "",
                   named ? unit : "");
        return;
    }
    if (strcmp(statistic, "count") == 0) {
        if (!table->metric)
            rec_printf(table->cli->writer,
                       "\n%-28s %8s %12s %12s %12s %12s %12s %12s %12s\n", "", "runs",
                       "mean", "se", "sd", "min", "p50", "p95", "max");
        table->metric = metric;
        rec_printf(table->cli->writer, "%-28s %8.0f", metric, value);
        return;
    }
    rec_printf(table->cli->writer, " %12s", text);
    if (strcmp(statistic, "max") == 0)
        rec_printf(table->cli->writer, "%s%s\n", named ? "  " : "", named ? unit : "");
}

static void
put_training_groups(struct cli *cli, const struct metrics_training *t)
{
    static const char *const shown[] = {"steps",        "goodput",    "useful share",
                                        "wasted share", "idle share", "throughput",
                                        "cost rate",    "value"};
    char text[32];
    rec_printf(cli->writer, "%-16s %8s", t->by, "runs");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        rec_printf(cli->writer, " %13s", shown[i]);
    rec_printf(cli->writer, "\n");
    for (size_t g = 1; g <= t->ngroups; g++) { /* the total comes last */
        const struct metrics_runs *group = &t->group[g % t->ngroups];
        rec_printf(cli->writer, "%-16s %8llu", group->name,
                   (unsigned long long)group->runs);
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
            bool percent = strcmp(metrics_training_unit(shown[i]), "%") == 0;
            double mean = metrics_training_mean(group, shown[i]);
            snprintf(text, sizeof text, percent ? "%.2f %%" : "%.6g",
                     percent ? 100 * mean : mean);
            rec_printf(cli->writer, " %13s", isnan(mean) ? "-" : text);
        }
        rec_printf(cli->writer, "\n");
    }
}

void
metrics_print_training(struct cli *cli, struct metrics_training *training,
                       enum metrics_format format)
{
    struct table table = {cli, training->group[0].name, NULL};
    if (format != METRICS_TABLE)
        metrics_print_figures(cli, format, training_figures, training);
    else if (training->by)
        put_training_groups(cli, training);
    else
        metrics_training_figures(training, emit_training_table, &table);
}
