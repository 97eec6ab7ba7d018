/* Histograms: bars for a person, rows for a program. */
#include "metrics_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BAR = 40 /* columns of the longest bar */ };

/* A function that prints the histogram of a group. */
typedef void put_group(struct cli *, struct json *, enum metrics_format, const char *name,
                       const struct metrics_histogram *);

static double
share(uint64_t seen, const struct metrics_histogram *histogram)
{
    return (double)seen / (double)histogram->n;
}

static void
put_rows(struct cli *cli, struct json *json, enum metrics_format format, const char *name,
         const struct metrics_histogram *histogram)
{
    uint64_t seen = 0;
    (void)json;
    for (size_t i = 0; i < histogram->nbins; i++) {
        const struct metrics_bin *bin = &histogram->bin[i];
        seen += bin->n;
        metrics_put_field(cli, format, true, name);
        metrics_put_field(cli, format, false, histogram->name);
        metrics_put_number(cli, format, false, bin->lower);
        metrics_put_number(cli, format, false, bin->upper);
        metrics_put_number(cli, format, false, (double)bin->n);
        metrics_put_number(cli, format, false, share(seen, histogram));
        metrics_put_text(cli, "\n");
    }
}

/* group: {metric: [{lower, upper, count, cumulative}]} */
static void
put_json(struct cli *cli, struct json *json, enum metrics_format format, const char *name,
         const struct metrics_histogram *histogram)
{
    uint64_t seen = 0;
    (void)cli, (void)format;
    json_text(json, name);
    json_open_map(json);
    json_text(json, histogram->name);
    json_open_list(json);
    for (size_t i = 0; i < histogram->nbins; i++) {
        const struct metrics_bin *bin = &histogram->bin[i];
        seen += bin->n;
        json_open_map(json);
        json_text(json, "lower");
        json_num(json, bin->lower);
        json_text(json, "upper");
        json_num(json, bin->upper);
        json_text(json, "count");
        json_num(json, (double)bin->n);
        json_text(json, "cumulative");
        json_num(json, share(seen, histogram));
        json_close_map(json);
    }
    json_close_list(json);
    json_close_map(json);
}

/* Prints a bar whose length is in proportion to the values in its bin. The fullest bin
 * has BAR columns, and a bin that is not empty has at least one. */
static void
put_bar(struct cli *cli, uint64_t n, uint64_t most)
{
    static const char bar[BAR + 1] = "########################################";
    int length = most ? (int)ceil(BAR * ((double)n / (double)most)) : 0;
    rec_printf(cli->writer, length ? " %.*s\n" : "\n", length, bar);
}

static void
put_table(struct cli *cli, struct json *json, enum metrics_format format,
          const char *name, const struct metrics_histogram *histogram)
{
    const char *unit = metrics_unit_apart(histogram->unit);
    uint64_t seen = 0, most = 0;
    char lower[32], upper[32], part[32];

    (void)json, (void)format;
    for (size_t i = 0; i < histogram->nbins; i++)
        most = histogram->bin[i].n > most ? histogram->bin[i].n : most;
    rec_printf(cli->writer, "%s, %s%s%s\n%12s %12s %9s %12s\n", histogram->name, name,
               *unit ? ", " : "", unit, "above", "up to", "count", "cumulative");
    for (size_t i = 0; i < histogram->nbins; i++) {
        const struct metrics_bin *bin = &histogram->bin[i];
        seen += bin->n;
        metrics_format_value(lower, bin->lower, histogram->unit);
        metrics_format_value(upper, bin->upper, histogram->unit);
        metrics_format_value(part, share(seen, histogram), "%");
        rec_printf(cli->writer, "%12s %12s %9.0f %12s", lower, upper, (double)bin->n,
                   part);
        put_bar(cli, bin->n, most);
    }
}

/* In tables the total comes last, as in other tables; elsewhere it comes first. A group
 * without values, such as a stage, has no histogram. */
static bool
put_groups(struct cli *cli, struct metrics *m, size_t bins, struct json *json,
           enum metrics_format format)
{
    put_group *put = json ? put_json : format == METRICS_TABLE ? put_table : put_rows;
    size_t n = metrics_ngroups(m);
    for (size_t i = 0; i < n; i++) {
        size_t group = format == METRICS_TABLE ? (i + 1) % n : i;
        struct metrics_histogram histogram;
        if (!metrics_histogram(m, group, bins, &histogram, &cli->err))
            return false;
        if (histogram.n > 0 || group == 0)
            put(cli, json, format, metrics_group_name(m, group), &histogram);
        if (histogram.n > 0 && group != 0 && format == METRICS_TABLE)
            metrics_put_text(cli, "\n");
        free(histogram.bin);
    }
    return true;
}

bool
metrics_print_histogram(struct cli *cli, struct metrics *m, size_t bins,
                        enum metrics_format format)
{
    struct json *json;
    bool ok;
    if (format == METRICS_TABLE)
        return put_groups(cli, m, bins, NULL, format);
    if (format != METRICS_JSON) {
        metrics_put_text(cli, format == METRICS_CSV
                                  ? "group,metric,lower,upper,count,cumulative\n"
                                  : "group\tmetric\tlower\tupper\tcount\tcumulative\n");
        return put_groups(cli, m, bins, NULL, format);
    }
    if (!(json = metrics_open_json(cli, 4, "histograms")))
        return false;
    json_open_map(json);
    ok = put_groups(cli, m, bins, json, format);
    json_close_map(json);
    json_close_map(json);
    return json_close(json, &cli->err) && ok;
}
