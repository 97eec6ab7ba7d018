/* How fast elastic training is: points, and the measured CSVs they come from. */
#include "rampipe/csv.h"
#include "rampipe/train.h"

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
    size_t i = p->n;
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

double
train_elastic_iteration(const struct train_elastic_profile *p, double size)
{
    size_t i = 0;
    double share;
    if (size <= p->size[0])
        return p->seconds[0] * p->size[0] / size;
    if (size >= p->size[p->n - 1])
        return p->seconds[p->n - 1];
    while (p->size[i + 1] < size)
        i++;
    share = (size - p->size[i]) / (p->size[i + 1] - p->size[i]);
    return p->seconds[i] + share * (p->seconds[i + 1] - p->seconds[i]);
}

/* ---- measured CSVs ------------------------------------------------------- */

/* Sums of a column, by the size in another if there is one. */
struct means {
    double *size, *sum, *n;
    size_t count, size_room, sum_room, n_room;
};

static bool
add_value(struct means *m, double size, double value, struct rec_error *err)
{
    size_t i = 0;
    while (i < m->count && m->size[i] != size)
        i++;
    if (i == m->count) {
        if (!rec_grow(&m->size, &m->size_room, i + 1, sizeof *m->size, err) ||
            !rec_grow(&m->sum, &m->sum_room, i + 1, sizeof *m->sum, err) ||
            !rec_grow(&m->n, &m->n_room, i + 1, sizeof *m->n, err))
            return false;
        m->size[i] = size;
        m->sum[i] = m->n[i] = 0;
        m->count++;
    }
    m->sum[i] += value;
    m->n[i]++;
    return true;
}

/* Reads `column`, of rows of `columns` fields, after the first `skip` rows. */
static bool
read_column(const char *directory, const char *name, size_t columns, size_t column,
            bool sized, size_t skip, struct means *means, struct rec_error *err)
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
            double value, size = 0;
            if (skip > 0) {
                skip--;
                continue;
            }
            if (row.nfields != columns || !rec_parse_num(row.field[column], &value) ||
                !(value >= 0) || isinf(value) ||
                (sized && (!rec_parse_num(row.field[0], &size) || !(size >= 1)))) {
                rec_fail_at(err, path, row.line,
                            "a row has %zu fields, numbers, and no header", columns);
                status = -1;
                break;
            }
            if (!add_value(means, size, value, err)) {
                status = -1;
                break;
            }
        }
    if (status == 0 && means->count == 0) {
        rec_fail(err, REC_DATA, "%s: nothing was measured", path);
        status = -1;
    }
    csv_source_free(source);
    rec_reader_close(reader);
    free(path);
    return status == 0;
}

static void
free_means(struct means *m)
{
    free(m->size);
    free(m->sum);
    free(m->n);
    *m = (struct means){0};
}

bool
train_elastic_profile_read(struct train_elastic_profile *p, const char *directory,
                           struct rec_error *err)
{
    struct means m = {0};
    bool ok = read_column(directory, "reconfig.csv", 4, 3, false, 1, &m, err);
    if (ok)
        p->reconfigure = rint(m.sum[0] / m.n[0]);
    free_means(&m);
    ok = ok && read_column(directory, "async-checkpoint_0.csv", 1, 0, false, 0, &m, err);
    if (ok)
        p->checkpoint = rint(m.sum[0] / m.n[0]);
    free_means(&m);
    ok = ok && read_column(directory, "loop_times_0.csv", 7, 4, true, 0, &m, err);
    for (size_t i = 0; ok && i < m.count; i++) {
        double seconds = rint(m.sum[i] / m.n[i]);
        ok = seconds > 0 ? train_elastic_profile_add(p, m.size[i], seconds, err)
                         : rec_fail(err, REC_DATA,
                                    "%s/loop_times_0.csv: iterations of size %g take 0 s "
                                    "when rounded to seconds: give iteration times",
                                    directory, m.size[i]);
    }
    free_means(&m);
    return ok;
}
