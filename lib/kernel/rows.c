/* Measured kernels from tables with a header line. */
#include "private.h"

#include <math.h>

enum column {
    DEVICE,
    SECONDS,
    DTYPE,
    SET,
    PASS,
    GROUPS,
    OUT,
    QUANTIZE,
    M,
    K,
    N,
    BATCH,
    SEQ,
    HEADS,
    KV,
    QK_DIM,
    V_DIM,
    NCOLUMNS
};
static const char *const names[] = {
    "device", "time_s", "dtype", "set", "pass",  "groups", "out",    "quantize", "m",
    "k",      "n",      "batch", "seq", "heads", "kv",     "qk_dim", "v_dim"};

/* How tables call passes. */
static const struct {
    const char *name;
    enum kernel_pass pass;
} passes[] = {{"forward", KERNEL_FORWARD},        {"fwd", KERNEL_FORWARD},
              {"input gradient", KERNEL_INPUT},   {"input-gradient", KERNEL_INPUT},
              {"bwd_grad_act", KERNEL_INPUT},     {"weight gradient", KERNEL_WEIGHT},
              {"weight-gradient", KERNEL_WEIGHT}, {"bwd_grad_w", KERNEL_WEIGHT},
              {"backward", KERNEL_BACKWARD}};

struct row {
    const struct rec_reader *reader;
    struct rec_str field[NCOLUMNS]; /* ptr NULL: there is no such column */
};

static bool
read_count(const struct row *row, enum column column, uint64_t *value,
           struct rec_error *err)
{
    if (!row->field[column].ptr || row->field[column].len == 0)
        return true;
    return (rec_parse_uint(row->field[column], value) && *value >= 1 &&
            *value <= (uint64_t)1 << 40) ||
           rec_reader_fail(row->reader, err,
                           "%s must be an integer from 1 to 2^40, got '%.*s'",
                           names[column], (int)fmin((double)row->field[column].len, 60),
                           row->field[column].ptr);
}

static bool
fail_word(const struct row *row, enum column column, struct rec_error *err)
{
    return rec_reader_fail(row->reader, err, "%s '%.*s' is not known", names[column],
                           (int)fmin((double)row->field[column].len, 60),
                           row->field[column].ptr);
}

static bool
read_shape(const struct row *row, struct kernel_shape *shape, struct rec_error *err)
{
    static const enum column gemm[] = {M, K, N};
    static const enum column attention[] = {BATCH, SEQ, HEADS, KV, QK_DIM, V_DIM};
    bool product = row->field[M].ptr != NULL;
    const enum column *at = product ? gemm : attention;
    struct rec_str pass = row->field[PASS];

    shape->op = product ? KERNEL_GEMM : KERNEL_ATTENTION;
    for (int i = 0; i < (product ? 3 : 6); i++) {
        if (!product && i >= 4)
            shape->size[i] = 128;
        if (!read_count(row, at[i], &shape->size[i], err))
            return false;
        if (shape->size[i] == 0)
            return rec_reader_fail(row->reader, err, "%s must be given", names[at[i]]);
    }
    if (!product && shape->size[2] % shape->size[3] != 0)
        return rec_reader_fail(row->reader, err, "kv must divide heads");
    for (size_t i = 0; pass.ptr && i <= sizeof passes / sizeof *passes; i++)
        if (i == sizeof passes / sizeof *passes)
            return fail_word(row, PASS, err);
        else if (rec_str_is(pass, passes[i].name)) {
            shape->pass = passes[i].pass;
            break;
        }
    if (product == (shape->pass == KERNEL_BACKWARD) && shape->pass != KERNEL_FORWARD)
        return fail_word(row, PASS, err);
    if (rec_str_is(row->field[OUT], "fp32") || rec_str_is(row->field[OUT], "4"))
        shape->out = 4;
    else if (row->field[OUT].len > 0 && !rec_str_is(row->field[OUT], "bf16") &&
             !rec_str_is(row->field[OUT], "fp16") && !rec_str_is(row->field[OUT], "2"))
        return fail_word(row, OUT, err);
    shape->cast = rec_str_is(row->field[QUANTIZE], "1");
    /* with batch= a product is one of several in a kernel, as with groups= */
    return read_count(row, GROUPS, &shape->groups, err) &&
           (product ? read_count(row, BATCH, &shape->size[5], err) : true);
}

static bool
take_row(struct kernel_table *table, const struct row *row, struct rec_error *err)
{
    struct kernel_shape shape = {.op = KERNEL_GEMM};
    const struct device *device;
    struct kernel_law *law;
    int dtype = KERNEL_BF16, set;
    double seconds;
    char name[100];

    snprintf(name, sizeof name, "%.*s", (int)fmin((double)row->field[DEVICE].len, 99),
             row->field[DEVICE].ptr);
    if (!(device = device_find(table->devices, name)))
        return rec_reader_fail(row->reader, err,
                               "there is no device '%s'; a device record adds one", name);
    if (!read_shape(row, &shape, err))
        return false;
    if (shape.op == KERNEL_GEMM && shape.size[5] > 0) {
        shape.groups = shape.size[5] * (shape.groups ? shape.groups : 1);
        shape.size[5] = 0;
    }
    if (shape.groups > 1 << 30)
        return rec_reader_fail(row->reader, err, "groups must be at most 2^30");
    if (row->field[DTYPE].ptr &&
        (dtype = kernel_word(kernel_dtypes, row->field[DTYPE])) < 0)
        return fail_word(row, DTYPE, err);
    set = row->field[DTYPE].ptr ? KERNEL_INFERENCE : KERNEL_TRAINING;
    if (row->field[SET].ptr && (set = kernel_word(kernel_sets, row->field[SET])) < 0)
        return fail_word(row, SET, err);
    if (!rec_parse_num(row->field[SECONDS], &seconds) || !(seconds > 0) || seconds > 1e6)
        return rec_reader_fail(row->reader, err, "time_s must be > 0 and <= 1e6");

    law = kernel_law_find(table, device, shape.op, (enum kernel_dtype)dtype,
                          (enum kernel_set)set);
    if (!law) {
        const struct kernel_law *like = kernel_law_relative(
            table, device, shape.op, (enum kernel_dtype)dtype, (enum kernel_set)set);
        /* adding a law may move the others */
        double p[KERNEL_NPARAMETERS];
        if (like)
            memcpy(p, like->p, sizeof p);
        law = kernel_law_add(table, device, shape.op, (enum kernel_dtype)dtype,
                             (enum kernel_set)set, err);
        if (!law)
            return false;
        if (like)
            memcpy(law->p, p, sizeof p);
        law->cast = shape.cast;
    }
    if (shape.cast != law->cast)
        return rec_reader_fail(row->reader, err,
                               "quantize must be the same in all rows of %s", law->name);
    return kernel_law_add_point(law, &shape, seconds, true, err);
}

bool
kernel_rows_read(struct kernel_table *table, struct rec_reader *reader,
                 struct rec_error *err)
{
    struct row row = {.reader = reader};
    struct rec_str line, part;
    int at[NCOLUMNS];
    char mark;
    int status = rec_next_line(reader, &line, err), columns = 0;

    if (status <= 0)
        return status == 0 && rec_reader_fail(reader, err, "the table is empty");
    for (int i = 0; i < NCOLUMNS; i++)
        at[i] = -1;
    mark = memchr(line.ptr, '\t', line.len) ? '\t' : ',';
    for (; rec_str_split(&line, mark, &part); columns++)
        for (int i = 0; i < NCOLUMNS; i++)
            if (rec_str_is(part, names[i]))
                at[i] = columns;
    for (int i = 0; i < NCOLUMNS; i++)
        if ((i < DTYPE || (i > M && i <= N && at[M] >= 0) ||
             (i >= BATCH && i <= KV && at[M] < 0)) &&
            at[i] < 0)
            return rec_reader_fail(reader, err, "the table must have the column %s",
                                   names[i]);
    while ((status = rec_next_line(reader, &line, err)) > 0) {
        int n = 0;
        if (line.len == 0)
            continue;
        if (memchr(line.ptr, '"', line.len))
            return rec_reader_fail(reader, err, "a table of kernels has no quotes");
        for (; rec_str_split(&line, mark, &part); n++)
            for (int i = 0; i < NCOLUMNS; i++)
                if (at[i] == n)
                    row.field[i] = part;
        if (n != columns)
            return rec_reader_fail(reader, err, "%d columns are needed, as in line 1",
                                   columns);
        if (!take_row(table, &row, err))
            return false;
    }
    return status == 0;
}
