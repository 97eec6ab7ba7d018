/* Figures as a table for a person, as TSV, CSV and JSON for a program. */
#include "metrics_print.h"

#include <math.h>
#include <stdio.h>

void
metrics_put_text(struct cli *cli, const char *text)
{
    rec_put_bytes(cli->writer, text, strlen(text));
}

/* ---- TSV and CSV --------------------------------------------------------- */

void
metrics_put_field(struct cli *cli, enum metrics_format format, bool first,
                  const char *text)
{
    bool quoted = format == METRICS_CSV && strpbrk(text, ",\"");
    if (!first)
        metrics_put_text(cli, format == METRICS_CSV ? "," : "\t");
    if (!quoted) {
        metrics_put_text(cli, text);
        return;
    }
    metrics_put_text(cli, "\"");
    for (; *text; text++)
        rec_printf(cli->writer, *text == '"' ? "\"\"" : "%c", *text);
    metrics_put_text(cli, "\"");
}

void
metrics_put_number(struct cli *cli, enum metrics_format format, bool first, double value)
{
    char number[REC_NUM_MAX];
    rec_format_num(number, value);
    metrics_put_field(cli, format, first, number);
}

static void
put_rows(struct cli *cli, struct metrics *m, enum metrics_format format)
{
    struct metrics_figure figure;
    metrics_put_text(cli, format == METRICS_CSV ? "group,metric,statistic,value\n"
                                                : "group\tmetric\tstatistic\tvalue\n");
    for (size_t g = 0; g < metrics_ngroups(m); g++)
        for (size_t i = 0; metrics_figure(m, g, i, &figure); i++)
            for (size_t k = 0; k < figure.n; k++) {
                metrics_put_field(cli, format, true, metrics_group_name(m, g));
                metrics_put_field(cli, format, false, figure.name);
                metrics_put_field(cli, format, false, figure.statistic[k]);
                metrics_put_number(cli, format, false, figure.value[k]);
                metrics_put_text(cli, "\n");
            }
}

static void
put_series_rows(struct cli *cli, const struct metrics *m, enum metrics_format format)
{
    struct metrics_value value;
    for (size_t i = 0; metrics_interval(m, 0, i, &value); i++)
        metrics_put_field(cli, format, i == 0, value.name);
    metrics_put_text(cli, "\n");
    for (size_t n = 0; n < metrics_nintervals(m); n++) {
        for (size_t i = 0; metrics_interval(m, n, i, &value); i++)
            metrics_put_number(cli, format, i == 0, value.value);
        metrics_put_text(cli, "\n");
    }
}

/* ---- JSON ---------------------------------------------------------------- */

struct json *
metrics_open_json(struct cli *cli, int lines, const char *name)
{
    struct rec_str rest = rec_str(rec_reader_provenance(cli->reader)), line;
    struct json *json = json_new(cli->writer, lines, &cli->err);
    if (!json)
        return NULL;
    json_open_map(json);
    json_text(json, "provenance");
    json_open_list(json);
    while (rec_str_split(&rest, '\n', &line))
        if (line.len > 3) /* behind #@ TAB */
            json_str(json, (struct rec_str){line.ptr + 3, line.len - 3});
    json_close_list(json);
    json_text(json, name);
    return json;
}

/* {"groups": {group: {metric: {statistic: value}}}} */
static bool
put_json(struct cli *cli, struct metrics *m)
{
    struct json *json = metrics_open_json(cli, 3, "groups");
    struct metrics_figure figure;
    if (!json)
        return false;
    json_open_map(json);
    for (size_t g = 0; g < metrics_ngroups(m); g++) {
        json_text(json, metrics_group_name(m, g));
        json_open_map(json);
        for (size_t i = 0; metrics_figure(m, g, i, &figure); i++) {
            json_text(json, figure.name);
            json_open_map(json);
            for (size_t k = 0; k < figure.n; k++) {
                json_text(json, figure.statistic[k]);
                json_num(json, figure.value[k]);
            }
            json_close_map(json);
        }
        json_close_map(json);
    }
    json_close_map(json);
    json_close_map(json);
    return json_close(json, &cli->err);
}

/* {"series": [{column: value}]} */
static bool
put_series_json(struct cli *cli, const struct metrics *m)
{
    struct json *json = metrics_open_json(cli, 2, "series");
    struct metrics_value value;
    if (!json)
        return false;
    json_open_list(json);
    for (size_t n = 0; n < metrics_nintervals(m); n++) {
        json_open_map(json);
        for (size_t i = 0; metrics_interval(m, n, i, &value); i++) {
            json_text(json, value.name);
            json_num(json, value.value);
        }
        json_close_map(json);
    }
    json_close_list(json);
    json_close_map(json);
    return json_close(json, &cli->err);
}

/* ---- the table ----------------------------------------------------------- */

/* The units that are printed with the number and with a prefix, and the smallest prefix
 * of each: an index of prefix[] in format_scaled(). */
enum { ONES = 5, NANO = 8 };
static const struct {
    const char *name;
    int least;
} scaled[] = {{"s", NANO}, {"B", ONES}, {"B/s", ONES}, {"FLOP/s", ONES}};

/* The smallest prefix of a unit; -1: it is not scaled. */
static int
least_prefix(const char *unit)
{
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        if (strcmp(unit, scaled[i].name) == 0)
            return scaled[i].least;
    return -1;
}

const char *
metrics_unit_apart(const char *unit)
{
    return strcmp(unit, "%") == 0 || least_prefix(unit) >= 0 ? "" : unit;
}

static void
format_scaled(char text[32], double value, const char *unit, int least)
{
    static const struct {
        double from;
        const char *prefix;
    } prefix[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"}, {1e3, "k"},
                  {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    int i = 0;
    while (i < least && fabs(value) < prefix[i].from)
        i++;
    if (value == 0)
        snprintf(text, 32, "0 %s", unit);
    else
        snprintf(text, 32, "%.4g %s%s", value / prefix[i].from, prefix[i].prefix, unit);
}

void
metrics_format_value(char text[32], double value, const char *unit)
{
    double size = fabs(value);
    int least = least_prefix(unit);

    if (isnan(value))
        snprintf(text, 32, "-");
    else if (strcmp(unit, "%") == 0)
        snprintf(text, 32, "%.2f %%", 100 * value);
    else if (strcmp(unit, "s") == 0 && size >= 1)
        snprintf(text, 32, size < 1e7 ? "%.7g s" : "%.4g s", value);
    else if (least >= 0)
        format_scaled(text, value, unit, least);
    else if (size >= 1e7)
        format_scaled(text, value, "", ONES);
    else if (size == floor(size))
        snprintf(text, 32, "%.0f", value);
    else /* four digits, but not of the whole part */
        snprintf(text, 32, size < 1000 ? "%.4g" : "%.1f", value);
}

static void
put_value(struct cli *cli, const char *name, const char *unit, double value)
{
    char text[32];
    metrics_format_value(text, value, unit);
    unit = metrics_unit_apart(unit);
    rec_printf(cli->writer, "%-34s %16s%s%s\n", name, text, *unit ? " " : "", unit);
}

/* Prints a line of statistics, of which the first is the count; before the first line,
 * their names. */
static void
put_distribution(struct cli *cli, const struct metrics_figure *figure, int width,
                 bool first)
{
    const char *unit = metrics_unit_apart(figure->unit);
    char text[32];
    if (first) {
        rec_printf(cli->writer, "\n%*s %9s", width, "", figure->statistic[0]);
        for (size_t k = 1; k < figure->n; k++)
            rec_printf(cli->writer, " %14s", figure->statistic[k]);
        metrics_put_text(cli, "\n");
    }
    rec_printf(cli->writer, "%-*s %9.0f", width, figure->name, figure->value[0]);
    for (size_t k = 1; k < figure->n; k++) {
        metrics_format_value(text, figure->value[k], figure->unit);
        rec_printf(cli->writer, " %14s", text);
    }
    rec_printf(cli->writer, "%s%s\n", *unit ? " " : "", unit);
}

/* Prints the total. The distributions of a single case are shown as values: their
 * means. */
static void
put_total(struct cli *cli, struct metrics *m)
{
    bool single = metrics_cases(m) == 1, first = true;
    struct metrics_figure figure;
    int width = 28;
    for (size_t i = 0; metrics_figure(m, 0, i, &figure); i++)
        if (figure.n > 1 && strlen(figure.name) > (size_t)width)
            width = (int)strlen(figure.name);
    for (size_t i = 0; metrics_figure(m, 0, i, &figure); i++)
        if (figure.n == 1 || single)
            put_value(cli, figure.name, figure.unit, figure.value[figure.n > 1]);
        else {
            put_distribution(cli, &figure, width, first);
            first = false;
        }
}

static int
width_of(const struct metrics_value *value)
{
    size_t title = strlen(value->name), unit = strlen(metrics_unit_apart(value->unit));
    size_t width = title > unit ? title : unit;
    return width > 12 ? (int)width : 12;
}

static void
put_cell(struct cli *cli, const struct metrics_value *value)
{
    char text[32];
    metrics_format_value(text, value->value, value->unit);
    rec_printf(cli->writer, " %*s", width_of(value), text);
}

/* Prints one line for each group, the total last. Units that are not in the cells stand
 * above the columns. */
static void
put_groups(struct cli *cli, struct metrics *m, const char *by)
{
    size_t n = metrics_ngroups(m), width = strlen(by) > 8 ? strlen(by) : 8;
    struct metrics_value value;
    bool units = false;

    for (size_t g = 0; g < n; g++)
        if (strlen(metrics_group_name(m, g)) > width)
            width = strlen(metrics_group_name(m, g));
    rec_printf(cli->writer, "%-*s", (int)width, by);
    for (size_t i = 0; metrics_column(m, 0, i, &value); i++) {
        rec_printf(cli->writer, " %*s", width_of(&value), value.name);
        units = units || *metrics_unit_apart(value.unit);
    }
    rec_printf(cli->writer, units ? "\n%-*s" : "\n", (int)width, "");
    for (size_t i = 0; units && metrics_column(m, 0, i, &value); i++)
        rec_printf(cli->writer, " %*s", width_of(&value), metrics_unit_apart(value.unit));
    metrics_put_text(cli, units ? "\n" : "");
    for (size_t g = 1; g <= n; g++) {
        rec_printf(cli->writer, "%-*s", (int)width, metrics_group_name(m, g % n));
        for (size_t i = 0; metrics_column(m, g % n, i, &value); i++)
            put_cell(cli, &value);
        metrics_put_text(cli, "\n");
    }
}

static void
put_series(struct cli *cli, const struct metrics *m)
{
    struct metrics_value value;
    for (size_t i = 0; metrics_interval(m, 0, i, &value); i++)
        rec_printf(cli->writer, " %*s", width_of(&value), value.name);
    metrics_put_text(cli, "\n");
    for (size_t n = 0; n < metrics_nintervals(m); n++) {
        for (size_t i = 0; metrics_interval(m, n, i, &value); i++)
            put_cell(cli, &value);
        metrics_put_text(cli, "\n");
    }
}

/* ---- all formats --------------------------------------------------------- */

bool
metrics_print(struct cli *cli, struct metrics *m, const char *by,
              enum metrics_format format)
{
    if (format == METRICS_JSON)
        return put_json(cli, m);
    if (format != METRICS_TABLE)
        put_rows(cli, m, format);
    else if (by)
        put_groups(cli, m, by);
    else
        put_total(cli, m);
    return true;
}

bool
metrics_print_series(struct cli *cli, const struct metrics *m, enum metrics_format format)
{
    if (format == METRICS_JSON)
        return put_series_json(cli, m);
    if (format == METRICS_TABLE)
        put_series(cli, m);
    else
        put_series_rows(cli, m, format);
    return true;
}
