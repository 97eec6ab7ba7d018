/*
 * Several streams. Either they are pieces of one run: they follow each other on one time
 * line and have one cluster, which this file checks. Or each stream is a run: it is
 * reduced by itself, and each figure of each group is a value in a distribution over the
 * runs. The result is the count, mean, standard error, ... of each such distribution.
 */
#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- one time line ------------------------------------------------------- */

static bool
fail_mixed(struct metrics *m, const struct rec_reader *reader, struct rec_error *err,
           const char *what)
{
    m->mixed = true;
    return rec_reader_fail(reader, err, "%s", what);
}

/* Fields are equal if their numbers are: 1 and 1.0 are the same cluster. */
static bool
same_field(struct rec_str a, struct rec_str b)
{
    double x, y;
    return rec_str_eq(a, b) || (rec_parse_num(a, &x) && rec_parse_num(b, &y) && x == y);
}

static bool
same_line(struct rec_str a, struct rec_str b)
{
    struct rec_str x, y;
    do {
        bool more = rec_str_split(&a, '\t', &x);
        if (more != rec_str_split(&b, '\t', &y))
            return false;
        if (!more)
            return true;
    } while (same_field(x, y));
    return false;
}

bool
metrics_same_note(struct metrics *m, const struct rec_reader *reader,
                  const struct rec *rec, struct rec_error *err)
{
    const char **noted = &m->noted[rec->type];
    char text[100];
    if (!*noted)
        return (*noted = rec_arena_copy(&m->arena, rec->line, err)) != NULL;
    if (same_line(rec_str(*noted), rec->line))
        return true;
    snprintf(text, sizeof text, "this %s differs from that of the %s before it",
             rec_spec(rec->type)->name, m->family->name);
    return fail_mixed(m, reader, err, text);
}

/* Within a stream, cases may end in any order. But a case that ends before the end of the
 * previous streams shows that the streams are different runs, which must not be added. */
bool
metrics_follows(struct metrics *m, const struct rec_reader *reader, const struct rec *rec,
                const struct metrics_case *one, struct rec_error *err)
{
    struct rec_str id = rec->field[1];
    double end = -(double)INFINITY;
    char text[200];
    int added;

    for (size_t i = 0; i < METRICS_MOMENTS; i++)
        end = fmax(end, one->at[i].to);
    m->last = fmax(m->last, end);
    if (m->family->whole && m->apart) {
        snprintf(text, sizeof text,
                 "a stream before this one has %s, too: reduce each run alone",
                 m->family->name);
        return fail_mixed(m, reader, err, text);
    }
    if (end < m->before) {
        snprintf(text, sizeof text,
                 "the streams overlap in time: this record is of %.17g s, but a stream "
                 "before it lasts to %.17g s",
                 end, m->before);
        return fail_mixed(m, reader, err, text);
    }
    if (!m->what[rec->type])
        return true;
    added = rec_ids_add(&m->ended[m->named[rec->type]], id, err);
    if (added == 0) {
        snprintf(text, sizeof text, "%s '%.*s' has ended already", m->what[rec->type],
                 REC_SAID(id));
        return fail_mixed(m, reader, err, text);
    }
    return added > 0;
}

bool
metrics_next_stream(struct metrics *m, const struct rec_reader *reader,
                    struct rec_error *err)
{
    const char *file = rec_reader_file(reader);
    uint64_t header = rec_reader_streams(reader);
    if (m->file && !m->marked && m->file == file && m->header == header)
        return true;
    if (m->marked || m->header != header) /* else the rest of a stream without a header */
        m->apart = m->last > -(double)INFINITY;
    m->file = file;
    m->header = header;
    m->marked = false;
    m->before = m->last;
    return !m->runs || metrics_end_run(m, err);
}

/* ---- runs ---------------------------------------------------------------- */

/* A figure, or a statistic of a quantity, of the runs. */
struct run_row {
    const char *name, *unit;
    bool padded; /* the figure of a label: a run without the label has a 0 */
};

struct run_group {
    const char *name;
    uint64_t runs;             /* runs that have the group */
    struct metrics_dist *dist; /* over these runs, one for each row */
    size_t ndists, room;
};

struct metrics_runs {
    uint64_t n;
    struct run_row *row;
    size_t nrows, row_room;
    struct rec_map rows;
    struct run_group *group; /* [0] is the total */
    size_t ngroups, group_room;
    struct rec_map groups;
    struct rec_arena names;
};

struct metrics_runs *
metrics_runs_new(struct rec_error *err)
{
    struct metrics_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        rec_fail_memory(err);
    return runs;
}

void
metrics_runs_free(struct metrics_runs *runs)
{
    if (!runs)
        return;
    for (size_t g = 0; g < runs->ngroups; g++) {
        for (size_t i = 0; i < runs->group[g].ndists; i++)
            metrics_dist_free(&runs->group[g].dist[i]);
        free(runs->group[g].dist);
    }
    free(runs->row);
    free(runs->group);
    rec_map_free(&runs->rows);
    rec_map_free(&runs->groups);
    rec_arena_free(&runs->names);
    free(runs);
}

/* The name of a row: "horizon", "completion time, mean". The caller frees it. NULL: out
 * of memory. */
static char *
name_row(const char *figure, const char *statistic)
{
    char *name;
    if (strcmp(statistic, "value") == 0)
        return strdup(figure);
    return asprintf(&name, "%s, %s", figure, statistic) < 0 ? NULL : name;
}

/* Is this the name that name_row() would make? (It does not make it, so it cannot run out
 * of memory.) */
static bool
is_called(const char *name, const char *figure, const char *statistic)
{
    size_t len = strlen(figure);
    if (strncmp(name, figure, len) != 0)
        return false;
    name += len;
    if (strcmp(statistic, "value") == 0)
        return *name == '\0';
    return strncmp(name, ", ", 2) == 0 && strcmp(name + 2, statistic) == 0;
}

/* Finds the row of the k-th statistic of a figure, and adds it if it is new. Returns its
 * index; REC_NONE: *err. */
static uint32_t
find_row(struct metrics_runs *runs, const struct metrics_figure *figure, size_t k,
         bool padded, struct rec_error *err)
{
    char *name = name_row(figure->name, figure->statistic[k]);
    uint32_t index;
    struct run_row row = {.unit = figure->unit, .padded = padded};

    if (!name) {
        rec_fail_memory(err);
        return REC_NONE;
    }
    if (strcmp(figure->statistic[k], "count") == 0)
        row.unit = "";
    index = rec_map_get(&runs->rows, rec_str(name));
    if (index == REC_NONE &&
        (row.name = rec_arena_copy(&runs->names, rec_str(name), err)) &&
        rec_grow(&runs->row, &runs->row_room, runs->nrows + 1, sizeof row, err) &&
        rec_map_add(&runs->rows, rec_str(row.name), (uint32_t)runs->nrows, err)) {
        index = (uint32_t)runs->nrows++;
        runs->row[index] = row;
    }
    free(name);
    return index;
}

static uint32_t
find_group(struct metrics_runs *runs, const char *name, struct rec_error *err)
{
    uint32_t index = rec_map_get(&runs->groups, rec_str(name));
    if (index != REC_NONE)
        return index;
    name = rec_arena_copy(&runs->names, rec_str(name), err);
    if (!name ||
        !rec_grow(&runs->group, &runs->group_room, runs->ngroups + 1, sizeof *runs->group,
                  err) ||
        !rec_map_add(&runs->groups, rec_str(name), (uint32_t)runs->ngroups, err))
        return REC_NONE;
    runs->group[runs->ngroups] = (struct run_group){.name = name};
    return (uint32_t)runs->ngroups++;
}

/* Makes the distributions of a group for the first `need` rows. The distribution of a
 * padded row begins with a 0 for each run before this one. */
static bool
make_dists(const struct metrics_runs *runs, struct run_group *group, size_t need,
           struct rec_error *err)
{
    if (!rec_grow(&group->dist, &group->room, need, sizeof *group->dist, err))
        return false;
    for (; group->ndists < need; group->ndists++) {
        struct metrics_dist *dist = &group->dist[group->ndists];
        *dist = (struct metrics_dist){.n = 0};
        for (uint64_t k = 0; runs->row[group->ndists].padded && k < group->runs; k++)
            if (!metrics_dist_add(dist, 0, err))
                return false;
    }
    return true;
}

/* Adds the figures of group g, of the run that has just ended, to the distributions. */
static bool
add_group(struct metrics *m, size_t g, struct rec_error *err)
{
    struct metrics_runs *runs = m->runs;
    uint32_t index = find_group(runs, m->group[g].name, err);
    struct metrics_figure figure;

    if (index == REC_NONE)
        return false;
    for (size_t i = 0; metrics_run_figure(m, g, i, &figure); i++)
        for (size_t k = 0; k < figure.n; k++) {
            /* A single value behind the family's own figures is the figure of a label. */
            bool padded = i >= m->nfigures && figure.n == 1;
            uint32_t row = find_row(runs, &figure, k, padded, err);
            if (row == REC_NONE || !make_dists(runs, &runs->group[index], row + 1, err))
                return false;
            if (isfinite(figure.value[k]) &&
                !metrics_dist_add(&runs->group[index].dist[row], figure.value[k], err))
                return false;
        }
    runs->group[index].runs++;
    return true;
}

/* A stream without cases does not count as a run; otherwise a stream that has only a
 * comment or a cluster record would be a run whose figures are 0. */
bool
metrics_end_run(struct metrics *m, struct rec_error *err)
{
    if (m->cases > 0)
        metrics_find_present(m);
    for (size_t g = 0; m->cases > 0 && g < m->ngroups; g++)
        if (!add_group(m, g, err))
            return false;
    m->runs->n += m->cases > 0;
    metrics_clear(m);
    return true;
}

static int
compare_run_groups(const void *a, const void *b)
{
    const struct run_group *x = a, *y = b;
    return metrics_compare_names(x->name, y->name);
}

void
metrics_runs_end(struct metrics_runs *runs)
{
    if (runs->ngroups > 2)
        qsort(runs->group + 1, runs->ngroups - 1, sizeof *runs->group,
              compare_run_groups);
}

uint64_t
metrics_runs_count(const struct metrics_runs *runs)
{
    return runs->n;
}

size_t
metrics_runs_ngroups(const struct metrics_runs *runs)
{
    return runs->ngroups;
}

const char *
metrics_runs_group(const struct metrics_runs *runs, size_t group)
{
    return runs->group[group].name;
}

bool
metrics_runs_figure(struct metrics_runs *runs, size_t group, size_t i,
                    struct metrics_figure *figure)
{
    struct run_group *g = &runs->group[group];
    struct metrics_dist none = {.n = 0};
    if (i > runs->nrows)
        return false;
    if (i == 0) {
        *figure = (struct metrics_figure){"runs", "", 1, {"value"}, {(double)g->runs}};
        return true;
    }
    *figure = (struct metrics_figure){.name = runs->row[i - 1].name,
                                      .unit = runs->row[i - 1].unit};
    metrics_describe(true, i <= g->ndists ? &g->dist[i - 1] : &none, figure);
    return true;
}

bool
metrics_runs_mean(const struct metrics_runs *runs, size_t group,
                  const struct metrics_show *show, struct metrics_value *value)
{
    const struct run_group *g;
    size_t row = 0;
    *value = (struct metrics_value){show->title, "", NAN};
    while (row < runs->nrows &&
           !is_called(runs->row[row].name, show->figure, show->statistic))
        row++;
    if (row == runs->nrows)
        return false;
    value->unit = runs->row[row].unit;
    if (group >= runs->ngroups)
        return true; /* without a run there is no mean */
    g = &runs->group[group];
    if (row < g->ndists && g->dist[row].n > 0)
        value->value = g->dist[row].mean;
    return true;
}
