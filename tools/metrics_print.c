/* Figures as a table for a person, as TSV, CSV and JSON for a program. */
#include "metrics_print.h"

#include <math.h>
#include <stdio.h>

/* ---- TSV, CSV, JSON ------------------------------------------------------ */

static void
put_csv(struct cli *cli, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        rec_printf(cli->writer, "%s", text);
        return;
    }
    rec_printf(cli->writer, "\"");
    for (; *text; text++)
        rec_printf(cli->writer, *text == '"' ? "\"\"" : "%c", *text);
    rec_printf(cli->writer, "\"");
}

static void
put_json(struct cli *cli, const char *text, size_t len)
{
    rec_printf(cli->writer, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            rec_printf(cli->writer, "\\%c", c);
        else if (c < ' ')
            rec_printf(cli->writer, "\\u%04x", c);
        else
            rec_printf(cli->writer, "%c", c);
    }
    rec_printf(cli->writer, "\"");
}

/* Where the rows go, and what stood before. */
struct rows {
    struct cli *cli;
    enum metrics_format format;
    const char *group, *metric;
};

static void
emit_row(void *context, const char *group, const char *metric, const char *statistic,
         double value)
{
    struct rows *rows = context;
    struct cli *cli = rows->cli;
    char number[REC_NUM_MAX];

    rec_format_num(number, value);
    if (rows->format == METRICS_TSV)
        rec_printf(cli->writer, "%s\t%s\t%s\t%s\n", group, metric, statistic, number);
    else {
        put_csv(cli, group);
        rec_printf(cli->writer, ",");
        put_csv(cli, metric);
        rec_printf(cli->writer, ",%s,%s\n", statistic, number);
    }
}

/* {"group": {"metric": {"statistic": value}}} */
static void
emit_json(void *context, const char *group, const char *metric, const char *statistic,
          double value)
{
    struct rows *rows = context;
    struct cli *cli = rows->cli;
    char number[REC_NUM_MAX];

    if (rows->group != group) {
        rec_printf(cli->writer, rows->group ? "}},\n    " : "\n    ");
        put_json(cli, group, strlen(group));
        rec_printf(cli->writer, ": {\n      ");
    } else if (!rows->metric || strcmp(rows->metric, metric) != 0)
        rec_printf(cli->writer, "},\n      ");
    if (rows->group != group || strcmp(rows->metric, metric) != 0) {
        put_json(cli, metric, strlen(metric));
        rec_printf(cli->writer, ": {");
    } else
        rec_printf(cli->writer, ", ");
    rec_format_num(number, value);
    put_json(cli, statistic, strlen(statistic));
    rec_printf(cli->writer, ": %s", number);
    rows->group = group;
    rows->metric = strcmp(statistic, "value") == 0 ? "" : metric;
}

static void
put_provenance(struct cli *cli)
{
    struct rec_str rest = rec_str(rec_reader_provenance(cli->reader)), line;
    bool first = true;
    rec_printf(cli->writer, "  \"provenance\": [");
    while (rec_str_split(&rest, '\n', &line)) {
        if (line.len < 3)
            continue;
        rec_printf(cli->writer, first ? "\n    " : ",\n    ");
        put_json(cli, line.ptr + 3, line.len - 3);
        first = false;
    }
    rec_printf(cli->writer, "],\n");
}

/* ---- the table ----------------------------------------------------------- */

/* Three digits and a prefix or unit that a person reads at a glance. */
static void
format_value(char text[32], double value, const char *unit)
{
    static const struct {
        double from;
        const char *prefix;
    } prefix[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"}, {1e3, "k"},
                  {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    double size = fabs(value);

    if (strcmp(unit, "%") == 0)
        snprintf(text, 32, "%.2f %%", 100 * value);
    else if (!*unit && size < 1e7)
        snprintf(text, 32, size == floor(size) ? "%.0f" : "%.4g", value);
    else if (strcmp(unit, "s") == 0 && size >= 1)
        snprintf(text, 32, size < 1e7 ? "%.7g s" : "%.4g s", value);
    else {
        /* Only seconds have thousandths; 0.5 B/s is that. */
        size_t i = 0, last = strcmp(unit, "s") == 0 ? 8 : 5;
        while (i < last && size < prefix[i].from)
            i++;
        if (size == 0)
            snprintf(text, 32, "0 %s", unit);
        else
            snprintf(text, 32, "%.4g %s%s", value / prefix[i].from, prefix[i].prefix,
                     unit);
    }
}

static const char *
unit_of(const char *metric, bool distribution)
{
    static const char *const percent[] = {
        "rate:", "blocking rate", "acceptance rate", "utilisation", "overhead", NULL};
    if (strcmp(metric, "arrival rate") == 0)
        return "/s";
    if (strstr(metric, "throughput") || strstr(metric, "load"))
        return "B/s";
    if (strstr(metric, " time") && !strstr(metric, "overhead"))
        return "s";
    if (strcmp(metric, "horizon") == 0 ||
        (strstr(metric, "deadline") && !strstr(metric, "fraction") && distribution))
        return "s";
    for (const char *const *p = percent; *p; p++)
        if (strstr(metric, *p))
            return "%";
    return "";
}

/* The statistics of a distribution come one after the other: a line of columns. */
static void
emit_table(void *context, const char *group, const char *metric, const char *statistic,
           double value)
{
    struct rows *rows = context;
    char text[32];

    if (strcmp(group, rows->group) != 0)
        return;
    if (strcmp(statistic, "count") == 0) {
        if (!rows->metric)
            rec_printf(rows->cli->writer,
                       "\n%-28s %9s %14s %14s %14s %14s %14s %14s %14s\n", "", "count",
                       "mean", "sd", "min", "p50", "p95", "p99", "max");
        rows->metric = metric;
        rec_printf(rows->cli->writer, "%-28s %9.0f", metric, value);
        return;
    }
    format_value(text, value, unit_of(metric, strcmp(statistic, "value") != 0));
    if (strcmp(statistic, "value") == 0)
        rec_printf(rows->cli->writer, "%-34s %16s\n", metric, text);
    else
        rec_printf(rows->cli->writer, " %14s%s", text,
                   strcmp(statistic, "max") == 0 ? "\n" : "");
}

static double
dist_mean(const struct metrics_dist *dist)
{
    return dist->n ? dist->mean : (double)NAN;
}

static void
put_cell(struct cli *cli, double value, const char *unit)
{
    char text[32] = "-";
    if (!isnan(value))
        format_value(text, value, unit);
    rec_printf(cli->writer, " %12s", text);
}

/* One line a group. */
static void
put_groups(struct cli *cli, struct metrics *metrics)
{
    int width = 8;
    for (size_t i = 0; i < metrics->ngroups; i++)
        if ((int)strlen(metrics->group[i].name) > width)
            width = (int)strlen(metrics->group[i].name);
    rec_printf(cli->writer, "%-*s %9s %9s %12s %12s %12s %12s %12s %12s %12s\n", width,
               metrics->by, "jobs", "done", "blocked", "completion", "p95", "speed-up",
               "comm", "utilisation", "servers");
    for (size_t i = 1; i <= metrics->ngroups; i++) { /* the total comes last */
        struct metrics_group *g = &metrics->group[i % metrics->ngroups];
        struct metrics_dist *completion = &g->dist[METRICS_COMPLETION];
        double jobs = (double)(g->done + g->blocked);
        rec_printf(cli->writer, "%-*s %9.0f %9llu", width, g->name, jobs,
                   (unsigned long long)g->done);
        put_cell(cli, (double)g->blocked / jobs, "%");
        put_cell(cli, dist_mean(completion), "s");
        put_cell(cli,
                 completion->n ? metrics_dist_quantile(completion, 0.95) : (double)NAN,
                 "s");
        put_cell(cli, dist_mean(&g->dist[METRICS_SPEEDUP]), "");
        put_cell(cli, dist_mean(&g->dist[METRICS_COMM]), "%");
        put_cell(cli, dist_mean(&g->dist[METRICS_BUSY]), "%");
        put_cell(cli, dist_mean(&g->dist[METRICS_SERVERS]), "");
        rec_printf(cli->writer, "\n");
    }
}

void
metrics_print_figures(struct cli *cli, enum metrics_format format,
                      void (*figures)(void *of, metrics_emit *emit, void *context),
                      void *of)
{
    struct rows rows = {cli, format, NULL, NULL};
    if (format == METRICS_JSON) {
        rec_printf(cli->writer, "{\n");
        put_provenance(cli);
        rec_printf(cli->writer, "  \"groups\": {");
        figures(of, emit_json, &rows);
        rec_printf(cli->writer, "}}\n  }\n}\n");
        return;
    }
    rec_printf(cli->writer, format == METRICS_TSV ? "group\tmetric\tstatistic\tvalue\n"
                                                  : "group,metric,statistic,value\n");
    figures(of, emit_row, &rows);
}

static void
job_figures(void *of, metrics_emit *emit, void *context)
{
    metrics_figures(of, emit, context);
}

void
metrics_print(struct cli *cli, struct metrics *metrics, enum metrics_format format)
{
    struct rows rows = {cli, format, metrics->group[0].name, NULL};
    if (format != METRICS_TABLE)
        metrics_print_figures(cli, format, job_figures, metrics);
    else if (metrics->by)
        put_groups(cli, metrics);
    else
        metrics_figures(metrics, emit_table, &rows);
}

/* ---- series -------------------------------------------------------------- */

enum { NCOLUMNS = 14 };
static const char *const column[NCOLUMNS] = {"time",
                                             "arrived",
                                             "started",
                                             "done",
                                             "blocked",
                                             "blocking_rate",
                                             "running",
                                             "servers",
                                             "mounted_utilisation",
                                             "cluster_utilisation",
                                             "completion_mean",
                                             "compute_throughput",
                                             "dep_throughput",
                                             "flow_throughput"};

/* A quotient, 0/0 being 0: an interval in which nothing happened. */
static double
ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void
fill_row(const struct metrics *metrics, const struct metrics_series *series, size_t i,
         double row[NCOLUMNS])
{
    const struct metrics_bin *b = &series->bin[i];
    double w = series->width, done = (double)b->done, blocked = (double)b->blocked;
    const double values[NCOLUMNS] = {(double)i * w,
                                     (double)b->arrived,
                                     (double)b->started,
                                     done,
                                     blocked,
                                     ratio(blocked, done + blocked),
                                     b->running / w,
                                     b->server_seconds / w,
                                     ratio(b->busy_seconds, b->server_seconds),
                                     ratio(b->busy_seconds, metrics->servers * w),
                                     ratio(b->completion, done),
                                     b->memory / w,
                                     b->dep_bytes / w,
                                     b->flow_bytes / w};
    memcpy(row, values, sizeof values);
}

void
metrics_print_series(struct cli *cli, const struct metrics *metrics,
                     const struct metrics_series *series, enum metrics_format format)
{
    const char *between = format == METRICS_TSV ? "\t" : format == METRICS_CSV ? "," : "";
    char number[REC_NUM_MAX];
    double row[NCOLUMNS];

    if (format == METRICS_JSON) {
        rec_printf(cli->writer, "{\n");
        put_provenance(cli);
        rec_printf(cli->writer, "  \"series\": [");
    } else
        for (int c = 0; c < NCOLUMNS; c++)
            rec_printf(cli->writer, format == METRICS_TABLE ? "%s%20s" : "%s%s",
                       c ? between : "", column[c]);
    for (size_t i = 0; i < series->nbins; i++) {
        fill_row(metrics, series, i, row);
        rec_printf(cli->writer,
                   format == METRICS_JSON ? (i ? ",\n    {" : "\n    {") : "\n");
        for (int c = 0; c < NCOLUMNS; c++) {
            rec_format_num(number, row[c]);
            if (format == METRICS_JSON)
                rec_printf(cli->writer, "%s\"%s\": %s", c ? ", " : "", column[c], number);
            else if (format == METRICS_TABLE)
                rec_printf(cli->writer, "%20.6g", row[c]);
            else
                rec_printf(cli->writer, "%s%s", c ? between : "", number);
        }
        rec_printf(cli->writer, format == METRICS_JSON ? "}" : "");
    }
    rec_printf(cli->writer, format == METRICS_JSON ? "\n  ]\n}\n" : "\n");
}
