/* Two streams side by side: metrics --compare. */
#include "metrics_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 40 }; /* columns of a name in a table */

/* A figure, or a statistic of one, in both streams. */
struct row {
    const char *group, *metric, *statistic, *unit;
    double predicted, actual, error; /* NAN: there is none */
};

struct table {
    struct cli *cli;
    struct row *row;
    size_t n, room;
    struct rec_map rows; /* by group, metric and statistic */
    struct rec_arena arena;
};

/* ---- rows ---------------------------------------------------------------- */

static struct row *
add_row(struct table *t, const struct row *row)
{
    if (!rec_grow(&t->row, &t->room, t->n + 1, sizeof *t->row, &t->cli->err))
        return NULL;
    t->row[t->n] = *row;
    return &t->row[t->n++];
}

/* Finds the row of a figure, and adds it if it is new. NULL: cli->err. */
static struct row *
find_row(struct table *t, const struct row *row)
{
    struct rec_error *err = &t->cli->err;
    char *text;
    const char *key = NULL;
    uint32_t at;
    if (asprintf(&text, "%s\t%s\t%s", row->group, row->metric, row->statistic) < 0) {
        rec_fail_memory(err);
        return NULL;
    }
    at = rec_map_get(&t->rows, rec_str(text));
    if (at == REC_NONE)
        key = rec_arena_copy(&t->arena, rec_str(text), err);
    free(text);
    if (at != REC_NONE)
        return &t->row[at];
    return key && rec_map_add(&t->rows, rec_str(key), (uint32_t)t->n, err)
               ? add_row(t, row)
               : NULL;
}

/* The relative error; NAN if a value that is not 0 is compared with 0. */
static double
error_of(double predicted, double actual)
{
    if (predicted == actual)
        return 0;
    return actual != 0 ? (predicted - actual) / fabs(actual) : (double)NAN;
}

static bool
collect(struct table *t, struct metrics *m, bool predicted)
{
    struct metrics_figure figure;
    for (size_t g = 0; g < metrics_ngroups(m); g++)
        for (size_t i = 0; metrics_figure(m, g, i, &figure); i++)
            for (size_t k = 0; k < figure.n; k++) {
                bool counts = figure.n > 1 && k == 0;
                struct row new = {metrics_group_name(m, g),
                                  figure.name,
                                  figure.statistic[k],
                                  counts ? "" : figure.unit,
                                  NAN,
                                  NAN,
                                  NAN},
                           *row = find_row(t, &new);
                if (!row)
                    return false;
                *(predicted ? &row->predicted : &row->actual) = figure.value[k];
                row->error = error_of(row->predicted, row->actual);
            }
    return true;
}

/* ---- cases of the same name ----------------------------------------------- */

static bool
add_pairs(struct table *t, const char *name, const char *unit,
          struct metrics_pairs *pairs)
{
    struct metrics_dist *dist = &pairs->error;
    const struct {
        const char *name;
        double value;
    } statistic[] = {{"count", (double)dist->n},
                     {"mean", dist->n > 0 ? dist->mean : (double)NAN},
                     {"p50", metrics_dist_quantile(dist, 0.5)},
                     {"p95", metrics_dist_quantile(dist, 0.95)},
                     {"max", dist->n > 0 ? dist->most : (double)NAN},
                     {"weighted", pairs->weighted}};
    struct row both = {
        "all", "in both", "value", "", (double)pairs->both, (double)pairs->both, 0};
    struct row one = {"all", "in one only",        "value",
                      "",    (double)pairs->first, (double)pairs->second,
                      NAN};
    struct row worst = {"all",
                        "worst",
                        pairs->worst ? pairs->worst : "-",
                        unit,
                        pairs->worst ? pairs->worst_first : (double)NAN,
                        pairs->worst ? pairs->worst_second : (double)NAN,
                        NAN};
    char text[100];
    const char *metric;

    snprintf(text, sizeof text, "error of %s", name);
    metric = rec_arena_copy(&t->arena, rec_str(text), &t->cli->err);
    if (!metric || !add_row(t, &both) || !add_row(t, &one))
        return false;
    for (size_t i = 0; i < sizeof statistic / sizeof *statistic; i++) {
        struct row row = {"all", metric, statistic[i].name, "",
                          NAN,   NAN,    statistic[i].value};
        if (i == 0) {
            row.predicted = row.actual = row.error;
            row.error = 0;
        }
        if (!add_row(t, &row))
            return false;
    }
    snprintf(text, sizeof text, "worst %s", name);
    worst.metric = rec_arena_copy(&t->arena, rec_str(text), &t->cli->err);
    worst.error = error_of(worst.predicted, worst.actual);
    return worst.metric && add_row(t, &worst);
}

/* ---- formats ------------------------------------------------------------- */

static void
put_rows(const struct table *t, enum metrics_format format)
{
    static const char *const columns[] = {"group",     "metric", "statistic",
                                          "predicted", "actual", "error"};
    for (size_t i = 0; i < 6; i++)
        metrics_put_field(t->cli, format, i == 0, columns[i]);
    metrics_put_text(t->cli, "\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct row *row = &t->row[i];
        metrics_put_field(t->cli, format, true, row->group);
        metrics_put_field(t->cli, format, false, row->metric);
        metrics_put_field(t->cli, format, false, row->statistic);
        metrics_put_number(t->cli, format, false, row->predicted);
        metrics_put_number(t->cli, format, false, row->actual);
        metrics_put_number(t->cli, format, false, row->error);
        metrics_put_text(t->cli, "\n");
    }
}

/* {"comparison": [{column: value}]} */
static bool
put_json(const struct table *t)
{
    struct json *json = metrics_open_json(t->cli, 2, "comparison");
    if (!json)
        return false;
    json_open_list(json);
    for (size_t i = 0; i < t->n; i++) {
        const struct row *row = &t->row[i];
        json_open_map(json);
        json_text(json, "group");
        json_text(json, row->group);
        json_text(json, "metric");
        json_text(json, row->metric);
        json_text(json, "statistic");
        json_text(json, row->statistic);
        json_text(json, "predicted");
        json_num(json, row->predicted);
        json_text(json, "actual");
        json_num(json, row->actual);
        json_text(json, "error");
        json_num(json, row->error);
        json_close_map(json);
    }
    json_close_list(json);
    json_close_map(json);
    return json_close(json, &t->cli->err);
}

/* Prints "GROUP: METRIC, STATISTIC", without the group if it is the total, and without
 * the statistic if the metric is a single value. */
static void
put_name(const struct table *t, const struct row *row)
{
    bool total = strcmp(row->group, "all") == 0;
    bool plain = strcmp(row->statistic, "value") == 0;
    const char *piece[] = {total ? "" : row->group, total ? "" : ": ", row->metric,
                           plain ? "" : ", ", plain ? "" : row->statistic};
    size_t width = 0;
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++) {
        metrics_put_text(t->cli, piece[i]);
        width += strlen(piece[i]);
    }
    rec_printf(t->cli->writer, "%*s", width < WIDTH ? WIDTH - (int)width : 0, "");
}

/* A figure is shown if one side has it, a statistic only if both have. */
static bool
is_shown(const struct row *row)
{
    bool count = strcmp(row->statistic, "count") == 0;
    return strcmp(row->statistic, "value") == 0
               ? !isnan(row->predicted) || !isnan(row->actual)
               : !isnan(row->error) &&
                     !(count && (row->predicted == 0 || row->actual == 0));
}

static void
put_table(const struct table *t)
{
    rec_printf(t->cli->writer, "%-*s %16s %16s %12s\n", WIDTH, "", "predicted", "actual",
               "error");
    for (size_t i = 0; i < t->n; i++) {
        const struct row *row = &t->row[i];
        const char *unit = metrics_unit_apart(row->unit);
        char predicted[32], actual[32], error[32];
        if (!is_shown(row))
            continue;
        put_name(t, row);
        metrics_format_value(predicted, row->predicted, row->unit);
        metrics_format_value(actual, row->actual, row->unit);
        metrics_format_value(error, row->error, "%");
        rec_printf(t->cli->writer, " %16s %16s %12s%s%s\n", predicted, actual, error,
                   *unit ? " " : "", unit);
    }
}

bool
metrics_print_comparison(struct cli *cli, struct metrics *predicted,
                         struct metrics *actual, enum metrics_format format)
{
    struct table t = {.cli = cli};
    struct metrics_pairs pairs = {.worst = NULL};
    const char *unit, *name = metrics_main_quantity(actual, &unit);
    bool ok = collect(&t, actual, false) && collect(&t, predicted, true) &&
              metrics_pair(predicted, actual, &pairs, &cli->err) &&
              add_pairs(&t, name, unit, &pairs);
    if (ok && format == METRICS_JSON)
        ok = put_json(&t);
    else if (ok && format == METRICS_TABLE)
        put_table(&t);
    else if (ok)
        put_rows(&t, format);
    metrics_pairs_free(&pairs);
    rec_map_free(&t.rows);
    rec_arena_free(&t.arena);
    free(t.row);
    return ok;
}
