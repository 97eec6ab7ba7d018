/* Measured steps near a predicted one: traces/measured-steps.rec. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file is put into the library as it is; see stack.c. */
__asm__(".pushsection .rodata\n"
        ".hidden parallel_measured, parallel_measured_size\n"
        ".global parallel_measured, parallel_measured_size\n"
        ".balign 8\n"
        "parallel_measured_size: .8byte 2f - 1f\n"
        "parallel_measured:\n"
        "1: .incbin \"traces/measured-steps.rec\"\n"
        "2: .byte 0\n"
        ".popsection\n");
extern const char parallel_measured[];
extern const uint64_t parallel_measured_size;

struct candidate {
    double distance;
    size_t row;
};

static double
apart(double a, double b)
{
    return fabs(log2(a / b));
}

/* A step of another device or precision tells little; factors of two of the size of the
 * model count fully, those of the number of devices half, those of degrees a third. */
static double
distance(const struct parallel_question *a, const struct parallel_question *b)
{
    const struct parallel_mix *x = &a->mix, *y = &b->mix;
    size_t family = strcspn(a->device, "-");
    double d =
        strcmp(a->device, b->device) == 0 ? 0
        : strcspn(b->device, "-") == family && strncmp(a->device, b->device, family) == 0
            ? 1
            : 8;
    d += x->precision == y->precision ? 0 : 4;
    d += (a->t.experts > 0) == (b->t.experts > 0) ? 0 : 4;
    d += apart(parallel_model_params(&a->model), parallel_model_params(&b->model));
    d += apart((double)parallel_ranks(x), (double)parallel_ranks(y)) / 2;
    d += (apart(x->tp, y->tp) + apart(x->pp, y->pp) + apart(x->cp, y->cp) +
          apart(x->ep, y->ep) + apart(a->sequence, b->sequence)) /
         3;
    return d + ((x->zero == 3) == (y->zero == 3) ? 0 : 1);
}

/* 1: *q is the next question of the file; 0: the end; -1: *err. One that is not covered
 * is passed over. */
static int
next(struct rec_reader *reader, const struct parallel_tables *tables, size_t *row,
     struct rec *rec, struct parallel_question *q, struct rec_error *err)
{
    int status;
    while ((status = rec_next(reader, rec, err)) > 0) {
        if (rec->type != REC_TRAINING)
            continue;
        ++*row;
        if (parallel_question_read(q, tables, reader, rec, err))
            return 1;
        parallel_question_free(q);
        if (err->code != REC_NO)
            return -1;
    }
    return status;
}

static bool
find(const struct parallel_tables *tables, const struct parallel_question *q,
     struct candidate *nearest, uint32_t n, struct rec_error *err)
{
    struct rec_str text = {parallel_measured, parallel_measured_size};
    struct rec_reader *reader = rec_reader_open_text("measured-steps.rec", text, err);
    struct parallel_question one;
    struct rec rec;
    size_t row = 0;
    int status = -1;
    for (uint32_t i = 0; i < n; i++)
        nearest[i] = (struct candidate){INFINITY, 0};
    while (reader && (status = next(reader, tables, &row, &rec, &one, err)) > 0) {
        struct candidate c = {distance(q, &one), row};
        for (uint32_t i = 0; i < n; i++)
            if (c.distance < nearest[i].distance) {
                struct candidate moved = nearest[i];
                nearest[i] = c;
                c = moved;
            }
        parallel_question_free(&one);
    }
    rec_reader_close(reader);
    return status == 0;
}

static void
write_mix(struct rec_writer *writer, const struct parallel_mix *mix)
{
    const struct {
        const char *name;
        uint32_t n;
    } degree[] = {{"tp", mix->tp}, {"pp", mix->pp}, {"vp", mix->vp},    {"cp", mix->cp},
                  {"ep", mix->ep}, {"dp", mix->dp}, {"zero", mix->zero}};
    char text[120] = "";
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++)
        if (degree[i].n > (i == 6 ? 0 : 1))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %u",
                     text[0] ? " " : "", degree[i].name, degree[i].n);
    rec_text_key(writer, "mix", text[0] ? text : "one device");
}

static bool
write_one(const struct parallel_question *q, const struct rec_reader *reader,
          const struct rec *rec, struct rec_str id, struct rec_writer *writer,
          struct rec_error *err)
{
    static const char *const precisions[] = {"bf16", "fp8", "fp4"};
    struct parallel_step step;
    struct rec_str source;
    double measured = 0;
    if (!rec_key_number(reader, rec, "measured", &measured, err) ||
        !parallel_step(&q->model, &q->mix, &q->machine, &step, err))
        return false;
    rec_begin(writer, "near");
    rec_str_field(writer, id);
    rec_str_field(writer, rec->field[1]);
    rec_num_field(writer, measured);
    rec_num_field(writer, step.seconds);
    rec_text_key(writer, "device", q->device);
    rec_text_key(writer, "precision", precisions[q->mix.precision]);
    rec_num_key(writer, "gpus", (double)parallel_ranks(&q->mix));
    rec_num_key(writer, "params", parallel_model_params(&q->model));
    write_mix(writer, &q->mix);
    rec_text_key(writer, "stack", q->machine.stack->name);
    if (rec_find_key(rec, "source", &source)) {
        rec_put_bytes(writer, "\tsource=", 8);
        rec_put_bytes(writer, source.ptr, source.len);
    }
    rec_end(writer);
    return true;
}

static bool
write_row(const struct parallel_tables *tables, size_t wanted, struct rec_str id,
          struct rec_writer *writer, struct rec_error *err)
{
    struct rec_str text = {parallel_measured, parallel_measured_size};
    struct rec_reader *reader = rec_reader_open_text("measured-steps.rec", text, err);
    struct parallel_question one;
    struct rec rec;
    size_t row = 0;
    bool ok = reader != NULL, found = false;
    while (ok && !found && next(reader, tables, &row, &rec, &one, err) > 0) {
        found = row == wanted;
        ok = !found || write_one(&one, reader, &rec, id, writer, err);
        parallel_question_free(&one);
    }
    rec_reader_close(reader);
    return ok && found;
}

bool
parallel_near_write(const struct parallel_tables *tables,
                    const struct parallel_question *q, struct rec_str id, uint32_t n,
                    struct rec_writer *writer, struct rec_error *err)
{
    struct candidate *nearest = calloc(n, sizeof *nearest);
    struct parallel_tables without = *tables;
    bool ok;
    without.kernels = NULL; /* what was measured is predicted by its own stack */
    without.servers = 0;    /* and on its own machine */
    tables = &without;
    ok = nearest ? find(tables, q, nearest, n, err) : rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = nearest[i].row == 0 || write_row(tables, nearest[i].row, id, writer, err);
    free(nearest);
    return ok;
}
