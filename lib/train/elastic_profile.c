/* The profile of elastic training: measured iteration times as points (size, seconds),
 * linear interpolation between them, and the reader of the published CSV files. */
#include "elastic_private.h"
#include "rampipe/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void
train_elastic_profile_free(struct train_elastic_profile *profile)
{
    free(profile->size);
    free(profile->seconds);
    *profile = (struct train_elastic_profile){0};
}

bool
train_elastic_profile_add(struct train_elastic_profile *p, double size, double seconds,
                          struct rec_error *err)
{
    size_t i = p->n; /* insertion sort: a profile has few points */
    if (!rec_grow(&p->size, &p->room, p->n + 1, sizeof *p->size, err) ||
        !rec_grow(&p->seconds, &p->seconds_room, p->n + 1, sizeof *p->seconds, err))
        return false;
    for (; i > 0 && p->size[i - 1] > size; i--) {
        p->size[i] = p->size[i - 1];
        p->seconds[i] = p->seconds[i - 1];
    }
    p->size[i] = size;
    p->seconds[i] = seconds;
    p->n++;
    return i == 0 || p->size[i - 1] < size ||
           rec_fail(err, REC_DATA, "size %g has two times", size);
}

size_t
train_elastic_profile_find(const struct train_elastic_profile *p, double size)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->size[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double
train_elastic_iteration(const struct train_elastic_profile *p, double size)
{
    size_t i;
    double share;
    if (size <= p->size[0])
        return p->seconds[0] * p->size[0] / size;
    if (size >= p->size[p->n - 1])
        return p->seconds[p->n - 1];
    i = train_elastic_profile_find(p, size) - 1;
    share = (size - p->size[i]) / (p->size[i + 1] - p->size[i]);
    return p->seconds[i] + share * (p->seconds[i + 1] - p->seconds[i]);
}

/* ---- measured CSVs ------------------------------------------------------- */

/* One measured value. */
struct measured {
    double size;  /* of the cluster, from the row's first field; 0: the file has none */
    double value; /* seconds */
    size_t row;   /* number of the row, which keeps the order of sorting stable */
};

struct column {
    struct measured *at;
    size_t n, room;
};

static int
by_size(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Returns the mean, rounded to whole seconds, of the values whose size is that of the
 * value at *i, and moves *i behind them. Values are sorted by size, and
 * summed in the order of the file. */
static double
take_mean(const struct column *column, size_t *i)
{
    double size = column->at[*i].size, sum = 0, n = 0;
    for (; *i < column->n && column->at[*i].size == size; ++*i, n++)
        sum += column->at[*i].value;
    return rint(sum / n);
}

/* Reads field number `column` of a file whose rows have `columns` fields, and the size in
 * the first field if `sized`. The first `skip` rows are skipped. */
static bool
read_column(const char *directory, const char *name, size_t columns, size_t column,
            bool sized, size_t skip, struct column *values, struct rec_error *err)
{
    char *path;
    struct rec_reader *reader;
    struct csv_source *source = NULL;
    struct csv_row row;
    int status = -1;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return rec_fail_memory(err);
    reader = rec_reader_open((const char *const *)&path, 1,
                             &(struct rec_reader_options){0}, err);
    if (reader && (source = csv_source_new(reader, err)))
        while ((status = csv_source_next(source, &row, err)) > 0) {
            struct measured one = {.row = values->n};
            if (skip > 0) {
                skip--;
                continue;
            }
            if (row.nfields != columns || !rec_parse_num(row.field[column], &one.value) ||
                !(one.value >= 0) || isinf(one.value) ||
                (sized &&
                 (!rec_parse_num(row.field[0], &one.size) || !(one.size >= 1)))) {
                rec_fail_at(err, path, row.line,
                            "a row must have %zu fields with numbers, and the file must "
                            "have no header",
                            columns);
                status = -1;
                break;
            }
            if (!rec_grow(&values->at, &values->room, values->n + 1, sizeof one, err)) {
                status = -1;
                break;
            }
            values->at[values->n++] = one;
        }
    if (status == 0 && values->n == 0) {
        rec_fail(err, REC_DATA, "%s: the file has no measured values", path);
        status = -1;
    }
    csv_source_free(source);
    rec_reader_close(reader);
    free(path);
    return status == 0;
}

static void
free_column(struct column *column)
{
    free(column->at);
    *column = (struct column){0};
}

bool
train_elastic_profile_read(struct train_elastic_profile *p, const char *directory,
                           struct rec_error *err)
{
    struct column column = {0};
    size_t i = 0;
    /* the published statistics leave out the first reconfiguration: the start */
    bool ok = read_column(directory, "reconfig.csv", 4, 3, false, 1, &column, err);
    if (ok)
        p->reconfigure = take_mean(&column, &i);
    free_column(&column);
    ok = ok &&
         read_column(directory, "async-checkpoint_0.csv", 1, 0, false, 0, &column, err);
    i = 0;
    if (ok)
        p->checkpoint = take_mean(&column, &i);
    free_column(&column);
    ok = ok && read_column(directory, "loop_times_0.csv", 7, 4, true, 0, &column, err);
    if (ok)
        qsort(column.at, column.n, sizeof *column.at, by_size);
    for (i = 0; ok && i < column.n;) {
        double size = column.at[i].size, seconds = take_mean(&column, &i);
        ok = seconds > 0
                 ? train_elastic_profile_add(p, size, seconds, err)
                 : rec_fail(
                       err, REC_DATA,
                       "%s/loop_times_0.csv: iterations with %g instances take 0 s after "
                       "rounding to whole seconds: give iteration times instead",
                       directory, size);
    }
    free_column(&column);
    return ok;
}
