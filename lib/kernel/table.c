/* Tables of laws as records: read and written. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* Reads a list of `n` numbers, "-" for one that is not known. */
static bool
read_list(const struct rec_reader *reader, const struct rec *rec, const char *key,
          double *value, int n, struct rec_error *err)
{
    struct rec_str text = {NULL, 0}, part;
    int i = 0;
    bool ok = rec_find_key(rec, key, &text);
    for (; ok && i < n && rec_str_split(&text, ',', &part); i++)
        if (rec_str_is(part, "-"))
            value[i] = (double)NAN;
        else
            ok = rec_parse_num(part, &value[i]) && isfinite(value[i]);
    return (ok && i == n && !text.ptr) ||
           rec_reader_fail(reader, err, "%s must be %d numbers with commas between them",
                           key, n);
}

/* Fields and keys by which times become infinite or no numbers. */
static bool
check_law(const struct rec_reader *reader, const struct kernel_law *law,
          struct rec_error *err)
{
    for (int i = 0; i < KERNEL_NPARAMETERS; i++) {
        const struct kernel_range *range = &kernel_ranges[law->op][i];
        if (!(law->p[i] >= range->low && law->p[i] <= range->high))
            return rec_reader_fail(
                reader, err, "%s: number %d must be from %g to %g, got %g",
                i < KERNEL_NCONSTANTS                         ? "constants"
                : i < KERNEL_NCONSTANTS + KERNEL_NCOORDINATES ? "lengths"
                                                              : "spread",
                i < KERNEL_NCONSTANTS ? i + 1
                : i < KERNEL_NCONSTANTS + KERNEL_NCOORDINATES
                    ? i + 1 - KERNEL_NCONSTANTS
                    : i + 1 - KERNEL_NCONSTANTS - KERNEL_NCOORDINATES,
                range->low, range->high, law->p[i]);
    }
    return true;
}

static int
read_word(const struct rec_reader *reader, const struct rec *rec, size_t index,
          const char *const *words, const char *what, struct rec_error *err)
{
    int word = kernel_word(words, rec->field[index]);
    if (word < 0)
        rec_reader_fail(reader, err, "%s '%.*s' is not known", what,
                        REC_SAID(rec->field[index]));
    return word;
}

/* NULL: *err. */
static struct kernel_law *
take_law(struct kernel_table *table, const struct rec_reader *reader,
         const struct rec *rec, struct rec_error *err)
{
    const struct device *device;
    struct kernel_law *law;
    char name[100];
    uint64_t cast = 0;
    int op, dtype, set;

    snprintf(name, sizeof name, "%.*s", (int)rec->field[2].len, rec->field[2].ptr);
    device = device_find(table->devices, name);
    if (!device) {
        rec_reader_fail(reader, err, "there is no device '%s'", name);
        return NULL;
    }
    if ((op = read_word(reader, rec, 3, kernel_ops, "OP", err)) < 0 ||
        (dtype = read_word(reader, rec, 4, kernel_dtypes, "DTYPE", err)) < 0 ||
        (set = read_word(reader, rec, 5, kernel_sets, "SET", err)) < 0)
        return NULL;
    if (op == KERNEL_MEMORY) {
        rec_reader_fail(reader, err, "OP of a law must be gemm or attention");
        return NULL;
    }
    law = kernel_law_find(table, device, (enum kernel_op)op, (enum kernel_dtype)dtype,
                          (enum kernel_set)set);
    if (law)
        law->npoints = 0;
    else
        law = kernel_law_add(table, device, (enum kernel_op)op, (enum kernel_dtype)dtype,
                             (enum kernel_set)set, err);
    if (!law || !read_list(reader, rec, "constants", law->p, KERNEL_NCONSTANTS, err) ||
        !read_list(reader, rec, "lengths", law->p + KERNEL_NCONSTANTS,
                   KERNEL_NCOORDINATES, err) ||
        !read_list(reader, rec, "spread",
                   law->p + KERNEL_NCONSTANTS + KERNEL_NCOORDINATES, KERNEL_NSPREADS,
                   err) ||
        !read_list(reader, rec, "means", law->mean, KERNEL_NPASSES, err) ||
        !rec_key_count(reader, rec, "cast", &cast, err) || !check_law(reader, law, err))
        return NULL;
    law->ready = false;
    law->cast = cast != 0;
    for (int i = 0; i < KERNEL_NPASSES; i++)
        if (fabs(law->mean[i]) > 10) { /* a factor of 22,000 is no law */
            rec_reader_fail(reader, err, "means must be from -10 to 10");
            return NULL;
        }
    return law;
}

/* Takes SHAPE:MICROSECONDS. */
static bool
take_kernel(struct kernel_law *law, const struct rec_reader *reader,
            const struct kernel_shape *like, struct rec_str text, struct rec_error *err)
{
    struct kernel_shape shape = *like;
    struct rec_str rest = text, size;
    double time;

    if (!rec_str_split(&rest, ':', &size) || !rest.ptr || !rec_parse_num(rest, &time) ||
        !(time > 0) || time > 1e12)
        return rec_reader_fail(
            reader, err,
            "KERNELS must be SHAPE:MICROSECONDS, > 0 and <= 1e12, got '%.*s'",
            REC_SAID(text));
    if (!kernel_shape_read(&shape, size, err))
        return rec_locate(reader, err);
    /* kernel_table_write() writes no kernel twice, and looking for one would take long */
    return kernel_law_add_point(law, &shape, time / 1e6, false, err);
}

static bool
take_timed(struct kernel_law *law, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct kernel_shape shape = {.op = law->op, .cast = law->cast};
    struct rec_str word, rest = rec->field[2];
    int pass = 0;

    if (!rec_key_count(reader, rec, "groups", &shape.groups, err) ||
        !rec_key_count(reader, rec, "out", &shape.out, err))
        return false;
    if (rec_find_key(rec, "pass", &word) && (pass = kernel_word(kernel_passes, word)) < 0)
        return rec_reader_fail(reader, err, "pass '%.*s' is not known", REC_SAID(word));
    if (pass != KERNEL_FORWARD &&
        (law->op == KERNEL_ATTENTION) != (pass == KERNEL_BACKWARD))
        return rec_reader_fail(reader, err, "%s has no pass %s", kernel_ops[law->op],
                               kernel_passes[pass]);
    shape.pass = (enum kernel_pass)pass;
    if (shape.groups > 1 << 30)
        return rec_reader_fail(reader, err, "groups must be <= 2^30");
    while (rec_str_split(&rest, ' ', &word))
        if (!take_kernel(law, reader, &shape, word, err))
            return false;
    return true;
}

static bool
take_check(struct kernel_table *table, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct kernel_check check;
    if (!(check.name = rec_arena_copy(&table->arena, rec->field[1], err)) ||
        !rec_get_count(reader, rec, 2, &check.rows, err) ||
        !rec_get_number(reader, rec, 3, &check.mean, err) ||
        !rec_get_number(reader, rec, 4, &check.p90, err) ||
        !rec_get_number(reader, rec, 5, &check.worst, err) ||
        !rec_grow(&table->check, &table->check_room, table->nchecks + 1, sizeof check,
                  err))
        return false;
    table->check[table->nchecks++] = check;
    return true;
}

static bool
keep_provenance(struct kernel_table *table, const struct rec_reader *reader,
                struct rec_error *err)
{
    char *lines;
    if (asprintf(&lines, "%s%s", table->provenance ? table->provenance : "",
                 rec_reader_provenance(reader)) < 0)
        return rec_fail_memory(err);
    table->provenance = rec_arena_copy(&table->arena, rec_str(lines), err);
    free(lines);
    return table->provenance != NULL;
}

bool
kernel_table_read(struct kernel_table *table, struct rec_reader *reader,
                  struct rec_error *err)
{
    struct kernel_law *law = NULL;
    char open[64] = "";
    struct rec rec;
    int status;
    bool ok = true;

    while (ok && (status = rec_next(reader, &rec, err)) > 0) {
        if (rec.type == REC_COMMENT || rec.type == REC_MARK || rec.type == REC_OTHER)
            continue;
        if (!rec_check(reader, &rec, err))
            return false;
        if (rec.type == REC_LAW) {
            law = take_law(table, reader, &rec, err);
            ok = law != NULL;
            snprintf(open, sizeof open, "%.*s", (int)rec.field[1].len, rec.field[1].ptr);
        } else if (rec.type == REC_TIMED) {
            if (!law || !rec_str_is(rec.field[1], open))
                return rec_reader_fail(reader, err,
                                       "a timed record must follow the law record '%.*s'",
                                       REC_SAID(rec.field[1]));
            ok = take_timed(law, reader, &rec, err);
        } else if (rec.type == REC_CHECKED)
            ok = take_check(table, reader, &rec, err);
        else
            return rec_reader_fail(
                reader, err,
                "a table of kernels has law, timed and checked records, got '%.*s'",
                REC_SAID(rec.field[0]));
    }
    return ok && status == 0 && keep_provenance(table, reader, err);
}

bool
kernel_table_read_file(struct kernel_table *table, const char *path,
                       struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct rec_str line;
    bool ok = reader != NULL;
    if (ok) {
        int status = rec_peek_line(reader, &line, err);
        bool columns = status > 0 && line.len > 0 && line.ptr[0] != '#' &&
                       (memmem(line.ptr, line.len, "time_s", 6) ||
                        memmem(line.ptr, line.len, "device", 6) == line.ptr);
        ok = status >= 0 && (columns ? kernel_rows_read(table, reader, err)
                                     : kernel_table_read(table, reader, err));
    }
    rec_reader_close(reader);
    return ok;
}

static void
write_list(struct rec_writer *writer, const char *key, const double *value, int n)
{
    rec_printf(writer, "\t%s=", key);
    for (int i = 0; i < n; i++)
        if (isnan(value[i]))
            rec_printf(writer, "%s-", i ? "," : "");
        else
            rec_printf(writer, "%s%.4g", i ? "," : "", value[i]);
}

static void
write_shape(struct rec_writer *writer, const struct kernel_shape *shape)
{
    int n = shape->op == KERNEL_GEMM ? 3 : 6;
    if (shape->op == KERNEL_ATTENTION && shape->size[4] == 128 && shape->size[5] == 128)
        n = 4;
    for (int i = 0; i < n; i++)
        rec_printf(writer, "%s%llu", i ? "," : "", (unsigned long long)shape->size[i]);
}

/* Writes a record of some kernels from number `k` on; returns how many. */
static size_t
write_timed(struct rec_writer *writer, const struct kernel_law *law, size_t name,
            size_t k)
{
    enum { MOST = 8 };
    const struct kernel_shape *first = &law->point[k].shape;
    size_t n = 0;

    rec_begin(writer, "timed");
    rec_printf(writer, "\tl%zu\t", name);
    for (; n < MOST && k + n < law->npoints; n++) {
        const struct kernel_point *point = &law->point[k + n];
        if (point->shape.pass != first->pass || point->shape.groups != first->groups ||
            point->shape.out != first->out)
            break;
        if (n)
            rec_printf(writer, " ");
        write_shape(writer, &point->shape);
        rec_printf(writer, ":%.4g", point->seconds * 1e6);
    }
    if (first->pass != KERNEL_FORWARD)
        rec_printf(writer, "\tpass=%s", kernel_passes[first->pass]);
    if (first->groups > 1)
        rec_printf(writer, "\tgroups=%llu", (unsigned long long)first->groups);
    if (first->out == 4)
        rec_printf(writer, "\tout=4");
    rec_end(writer);
    return n;
}

void
kernel_table_write(const struct kernel_table *table, struct rec_writer *writer)
{
    for (size_t i = 0; i < table->nlaws; i++) {
        const struct kernel_law *law = &table->law[i];
        rec_begin(writer, "law");
        rec_printf(writer, "\tl%zu\t%s\t%s\t%s\t%s", i + 1, law->device->name,
                   kernel_ops[law->op], kernel_dtypes[law->dtype], kernel_sets[law->set]);
        write_list(writer, "constants", law->p, KERNEL_NCONSTANTS);
        write_list(writer, "lengths", law->p + KERNEL_NCONSTANTS, KERNEL_NCOORDINATES);
        write_list(writer, "spread", law->p + KERNEL_NCONSTANTS + KERNEL_NCOORDINATES,
                   KERNEL_NSPREADS);
        write_list(writer, "means", law->mean, KERNEL_NPASSES);
        if (law->cast)
            rec_printf(writer, "\tcast=1");
        rec_end(writer);
        for (size_t k = 0; k < law->npoints;)
            k += write_timed(writer, law, i + 1, k);
    }
    for (size_t i = 0; i < table->nchecks; i++) {
        const struct kernel_check *check = &table->check[i];
        rec_begin(writer, "checked");
        rec_printf(writer, "\t%s\t%llu\t%.4f\t%.4f\t%.4f", check->name,
                   (unsigned long long)check->rows, check->mean, check->p90,
                   check->worst);
        rec_end(writer);
    }
}
