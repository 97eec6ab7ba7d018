/* Fills in the time of op records from their work, and scales graphs to another batch or
 * precision. The records of a graph are written into memory first, since it is known only
 * at its end whether all its times are of the device. */
#include "private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The text of the graph at hand, as it will be written, except that its graph record has
 * both versions of the keys device= and peak=: those of this device, which hold if all
 * times are of it, and those with which it came. The end of the graph decides.
 */
struct device_held {
    struct rec_writer *writer; /* into text */
    char *text;
    size_t len, room;
    /* text[claim, before) are device= and peak= of this device; text[before, rest) are
     * these keys as they came */
    size_t claim, before, rest;
    bool empty;            /* it has a graph record, and no op yet */
    uint64_t filled, kept; /* as in struct device_fill */
    const char *file;      /* file and line of its graph record; NULL: no graph is open */
    uint64_t line;
    char graph[64]; /* name of the graph, which may be cut */
    char op[64];    /* name of its first op without work, which may be cut */
};

/* The sink of held->writer. */
static int
append(void *context, const char *bytes, size_t len)
{
    struct device_held *held = context;
    if (!rec_grow(&held->text, &held->room, held->len + len, 1, NULL))
        return ENOMEM;
    if (len > 0)
        memcpy(held->text + held->len, bytes, len);
    held->len += len;
    return 0;
}

/* The bytes of text so far. */
static size_t
length(struct device_held *held)
{
    rec_writer_flush(held->writer);
    return held->len;
}

static void
copy_name(char name[64], struct rec_str s)
{
    snprintf(name, 64, "%.*s", REC_SAID(s));
}

/* The numbers of an op record. */
struct op {
    double compute, memory;
    double param, activation; /* NAN: the op does not have the key */
    struct device_work work;
    bool has_work, backward, has_part;
    bool sends;         /* communication, whose time does not depend on a device */
    const char *opaque; /* its key of bytes that may be of parameters; NULL: no bytes */
};

/* True if the graph stays as it is but for its times. Half the bytes of twice the batch
 * are not the same. */
static bool
is_same(const struct device_fill *fill)
{
    return fill->samples == 1 && fill->elements == 1;
}

static bool
read_gemm(const struct rec_reader *reader, const struct rec *rec,
          struct device_work *work, struct rec_error *err)
{
    struct rec_str text;
    uint64_t shape[4];
    if (!rec_find_key(rec, "gemm", &text))
        return true;
    if (!rec_parse_product(text, shape))
        return rec_bad_text(reader, rec, rec_key_spec(rec, rec_str("gemm")), text, err);
    for (int i = 0; i < 4; i++)
        work->gemm[i] = (double)shape[i];
    return true;
}

/* A part I/N of an op has an N-th of the columns of its product, as partition gives it an
 * N-th of the parameters and the output. gemm= is still that of the whole op. */
static bool
read_part(const struct rec_reader *reader, const struct rec *rec, struct op *op,
          struct rec_error *err)
{
    struct rec_str text;
    uint64_t part, parts;
    if (!(op->has_part = rec_find_key(rec, "part", &text)))
        return true;
    if (!rec_parse_part(text, &part, &parts))
        return rec_bad_text(reader, rec, rec_key_spec(rec, rec_str("part")), text, err);
    op->work.gemm[2] /= (double)parts;
    return true;
}

static bool
read_op(const struct rec_reader *reader, const struct rec *rec, struct op *op,
        struct rec_error *err)
{
    double flops = NAN, moved = NAN, hold = 0, bytes = 0;
    struct rec_str text;
    *op = (struct op){.param = NAN, .activation = NAN};
    if (!rec_get_number(reader, rec, 4, &op->compute, err) ||
        !rec_get_number(reader, rec, 5, &op->memory, err) ||
        !rec_key_number(reader, rec, "flops", &flops, err) ||
        !rec_key_number(reader, rec, "moved", &moved, err) ||
        !rec_key_number(reader, rec, "param", &op->param, err) ||
        !rec_key_number(reader, rec, "activation", &op->activation, err) ||
        !rec_key_number(reader, rec, "hold", &hold, err) ||
        !rec_key_number(reader, rec, "bytes", &bytes, err) ||
        !read_gemm(reader, rec, &op->work, err) || !read_part(reader, rec, op, err))
        return false;
    op->has_work = !isnan(flops) || !isnan(moved);
    op->work.flops = isnan(flops) ? 0 : flops;
    op->work.moved = isnan(moved) ? 0 : moved;
    op->backward = rec_str_is(rec->field[3], "backward");
    op->sends = rec_find_key(rec, "coll", &text);
    op->opaque = hold > 0 ? "hold" : op->sends && bytes > 0 ? "bytes" : NULL;
    rec_find_key(rec, "class", &op->work.kind);
    return true;
}

/* Scales a value of which the part `fixed` does not grow; NAN: all of it grows. A fixed
 * part larger than the value is taken to be all of it. */
static double
grow(double value, double fixed, double factor)
{
    fixed = isnan(fixed) ? 0 : fmin(fixed, value);
    return fixed + (value - fixed) * factor;
}

/* Scales an op to another batch and precision (device_fill_take()). */
static void
rescale(const struct device_fill *fill, struct op *op)
{
    double *rows = &op->work.gemm[op->work.gemm[0] > 1 ? 0 : 1];
    *rows = ceil(*rows * fill->samples);
    op->work.flops *= fill->samples;
    op->work.moved =
        fill->elements *
        grow(op->work.moved, (op->backward ? 2 : 1) * op->param, fill->samples);
    op->memory = fill->elements * grow(op->memory, op->param, fill->samples);
    op->activation *= fill->elements * fill->samples;
    op->param *= fill->elements;
}

/* Writes a key of an op that was scaled. */
static void
put_op_key(const struct op *op, struct rec_str key, struct rec_str value,
           struct rec_writer *writer)
{
    const double *gemm = op->work.gemm;
    if (rec_str_is(key, "flops"))
        rec_num_key(writer, "flops", op->work.flops);
    else if (rec_str_is(key, "moved"))
        rec_num_key(writer, "moved", op->work.moved);
    else if (rec_str_is(key, "param"))
        rec_num_key(writer, "param", op->param);
    else if (rec_str_is(key, "activation"))
        rec_num_key(writer, "activation", op->activation);
    else if (rec_str_is(key, "gemm"))
        rec_printf(writer, "\tgemm=%.0fx%.0fx%.0fx%.0f", gemm[0], gemm[1], gemm[2],
                   gemm[3]);
    else
        rec_str_field(writer, (struct rec_str){key.ptr, key.len + 1 + value.len});
}

static bool
put_op(const struct device_fill *fill, const struct rec_reader *reader,
       const struct rec *rec, const struct op *op, struct rec_writer *writer,
       struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;

    rec_begin(writer, "op");
    for (size_t i = 1; i <= 3; i++)
        rec_str_field(writer, rec->field[i]);
    rec_num_field(writer, op->compute);
    if (is_same(fill)) { /* the other fields are passed on byte for byte */
        for (size_t i = 5; i < rec->nfields; i++)
            rec_str_field(writer, rec->field[i]);
        rec_end(writer);
        return true;
    }
    rec_num_field(writer, op->memory);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        put_op_key(op, key, value, writer);
    rec_end(writer);
    return status == 0;
}

/* Counts an op; communication counts as neither filled nor kept. */
static void
count_op(struct device_held *held, const struct op *op, const struct rec *rec)
{
    if (op->has_work)
        held->filled++;
    else if (!op->sends && held->kept++ == 0)
        copy_name(held->op, rec->field[2]);
}

static bool
take_op(struct device_fill *fill, const struct rec_reader *reader, const struct rec *rec,
        struct rec_writer *writer, struct rec_error *err)
{
    int id = (int)(rec->field[2].len < 60 ? rec->field[2].len : 60);
    bool same = is_same(fill);
    struct rec_error why;
    struct op op;

    fill->held->empty = false;
    if (!read_op(reader, rec, &op, err))
        return false;
    if (!same && op.has_part)
        return rec_reader_fail(reader, err,
                               "op '%.*s' is a part: scale the graph to another batch "
                               "or precision before it is partitioned",
                               id, rec->field[2].ptr);
    if (!same && op.opaque)
        return rec_reader_fail(reader, err,
                               "%s= of op '%.*s' may be bytes of parameters or of "
                               "activations, so it is not known for another batch or "
                               "precision",
                               op.opaque, id, rec->field[2].ptr);
    if (!same && !op.has_work && op.compute > 0)
        return rec_reader_fail(
            reader, err,
            "op '%.*s' has neither flops= nor moved=, so its time with "
            "another batch or precision is not known",
            id, rec->field[2].ptr);
    if (!same)
        rescale(fill, &op);
    if (!isfinite(op.work.flops + op.work.moved + op.memory))
        return rec_reader_fail(reader, err, "op '%.*s' becomes too large", id,
                               rec->field[2].ptr);
    if (op.has_work && !device_seconds(fill->roofline, &op.work, &op.compute, &why))
        return rec_reader_fail(reader, err, "op '%.*s': %s", id, rec->field[2].ptr,
                               why.text);
    count_op(fill->held, &op, rec);
    return put_op(fill, reader, rec, &op, writer, err);
}

/* Called only if the graph is scaled. Every dep carries data of the batch. */
static bool
take_dep(const struct device_fill *fill, const struct rec_reader *reader,
         const struct rec *rec, struct rec_writer *writer, struct rec_error *err)
{
    double bytes;
    if (!rec_get_number(reader, rec, 4, &bytes, err))
        return false;
    bytes *= fill->samples * fill->elements;
    if (!isfinite(bytes))
        return rec_reader_fail(reader, err, "the dep becomes too large");
    rec_begin(writer, "dep");
    for (size_t i = 1; i <= 3; i++)
        rec_str_field(writer, rec->field[i]);
    rec_num_field(writer, bytes);
    for (size_t i = 5; i < rec->nfields; i++)
        rec_str_field(writer, rec->field[i]);
    rec_end(writer);
    return true;
}

/* Finds the factors by which the graph is scaled, and refuses those that cannot be. */
static bool
read_graph(struct device_fill *fill, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    enum device_precision precision = fill->roofline->precision;
    struct rec_str text;
    double batch = 0;

    fill->samples = fill->elements = 1;
    if (!rec_key_number(reader, rec, "batch", &batch, err))
        return false;
    if (fill->batch > 0 && batch == 0)
        return rec_reader_fail(reader, err,
                               "graph '%.*s' has no batch=, so it cannot be scaled to "
                               "another",
                               REC_SAID(rec->field[1]));
    if (fill->batch > 0)
        fill->samples = fill->batch / batch;
    if (!device_key_precision(reader, rec, &precision, err))
        return false;
    fill->elements =
        device_element(fill->roofline->precision) / device_element(precision);
    if (rec_find_key(rec, "optimizer", &text) && !is_same(fill))
        return rec_reader_fail(
            reader, err,
            "graph '%.*s' has optimizer=, so its MEMORY is what "
            "training needs: scale the graph before MEMORY is filled in",
            REC_SAID(rec->field[1]));
    return true;
}

static bool
take_graph(struct device_fill *fill, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct device_held *held = fill->held;
    struct rec_writer *writer = held->writer;
    struct rec_str key, value;
    size_t at = 0;
    int status;

    if (!read_graph(fill, reader, rec, err))
        return false;
    rec_begin(writer, "graph");
    rec_str_field(writer, rec->field[1]);
    rec_str_field(writer, rec->field[2]);
    held->claim = length(held);
    rec_text_key(writer, "device", fill->roofline->device);
    rec_num_key(writer, "peak", fill->roofline->peak);
    held->before = length(held);
    if (rec_find_key(rec, "device", &value))
        rec_str_key(writer, "device", value);
    if (rec_find_key(rec, "peak", &value))
        rec_str_key(writer, "peak", value);
    held->rest = length(held);
    if (fill->batch > 0)
        rec_num_key(writer, "batch", fill->batch);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (rec_str_is(key, "precision"))
            rec_text_key(writer, "precision",
                         device_precisions[fill->roofline->precision]);
        else if (!rec_str_is(key, "device") && !rec_str_is(key, "peak") &&
                 !(rec_str_is(key, "batch") && fill->batch > 0))
            rec_str_field(writer, (struct rec_str){key.ptr, key.len + 1 + value.len});
    rec_end(writer);
    return status == 0;
}

/* Makes the room for graphs. Ops without a graph record are taken for one graph. */
static bool
open_held(struct device_fill *fill, struct rec_error *err)
{
    struct device_held *held = fill->held = calloc(1, sizeof *held);
    const struct rec_sink sink = {append, held};
    fill->samples = fill->elements = 1;
    if (!held)
        return rec_fail_memory(err);
    held->writer = rec_writer_open_sink(&sink, "the graph at hand", NULL, err);
    return held->writer != NULL;
}

static void
begin_graph(struct device_held *held, const struct rec_reader *reader,
            const struct rec *rec)
{
    held->empty = rec->type == REC_GRAPH;
    held->file = rec_reader_file(reader);
    held->line = rec_reader_line(reader);
    copy_name(held->graph, rec->field[1]);
}

bool
device_fail_no_ops(const char *file, uint64_t line, const char *graph,
                   struct rec_error *err)
{
    return rec_fail(
        err, REC_DATA,
        "%s:%llu: graph '%s' has no ops: its op records stand behind its graph "
        "record, without others between",
        file, (unsigned long long)line, graph);
}

bool
device_fill_end(struct device_fill *fill, struct rec_writer *writer,
                struct rec_error *err)
{
    struct device_held *held = fill->held;
    uint64_t all;
    size_t from, to;

    if (!held || !held->file)
        return true;
    rec_writer_flush(held->writer);
    if (!rec_writer_ok(held->writer, err))
        return false;
    if (held->empty)
        return device_fail_no_ops(held->file, held->line, held->graph, err);
    all = held->filled + held->kept;
    if (held->kept > 0 && !fill->keep_times)
        return rec_fail(err, REC_NO,
                        "%s:%llu: %llu of %llu ops of graph '%s' have no work (neither "
                        "flops= nor moved=), the first is '%s': their time on %s is "
                        "not known%s%s%s",
                        held->file, (unsigned long long)held->line,
                        (unsigned long long)held->kept, (unsigned long long)all,
                        held->graph, held->op, fill->roofline->device,
                        fill->option ? " (" : "", fill->option ? fill->option : "",
                        fill->option ? " lets them keep their times)" : "");
    /* The keys device= and peak= are this device's if all times are, those that came with
     * the graph if no time was filled in, and left out if there are both. */
    from = held->kept == 0 ? held->before : held->claim;
    to = held->filled == 0 && held->kept > 0 ? held->before : held->rest;
    rec_put_bytes(writer, held->text, from);
    rec_put_bytes(writer, held->text + to, held->len - to);
    fill->filled += held->filled;
    fill->kept += held->kept;
    held->file = NULL;
    held->len = held->claim = held->before = held->rest = 0;
    held->filled = held->kept = 0;
    return true;
}

void
device_fill_free(struct device_fill *fill)
{
    struct rec_error late; /* not reported: what is still held is not wanted any more */
    if (!fill->held)
        return;
    if (fill->held->writer && !rec_writer_close(fill->held->writer, false, &late))
        late.code = REC_OK;
    free(fill->held->text);
    free(fill->held);
    fill->held = NULL;
}

/* What a dep carries is activations, which grow with the batch. A coll may carry those or
 * gradients, which do not, and nothing says which. */
static bool
fail_coll(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    return rec_reader_fail(reader, err,
                           "what coll '%.*s' carries may be gradients or activations, so "
                           "its BYTES for another batch or precision are not known",
                           REC_SAID(rec->field[2]));
}

/* Comments and unknown records among those of a graph are held back with them, to keep
 * their places. A record of another type ends the graph, as a graph record does. */
bool
device_fill_take(struct device_fill *fill, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_writer *writer, struct rec_error *err)
{
    bool ours = rec_is_part(rec, REC_GRAPH),
         inside = ours || rec_continues(rec, REC_GRAPH);

    if (!fill->held && !open_held(fill, err))
        return false;
    if (!rec_continues(rec, REC_GRAPH) && !device_fill_end(fill, writer, err))
        return false;
    if (ours && !rec_need(reader, rec, err))
        return false;
    if (ours && !fill->held->file)
        begin_graph(fill->held, reader, rec);
    if (inside && fill->held->file)
        writer = fill->held->writer;
    if (rec->type == REC_GRAPH)
        return take_graph(fill, reader, rec, err);
    if (rec->type == REC_OP)
        return take_op(fill, reader, rec, writer, err);
    if (rec->type == REC_DEP && fill->samples * fill->elements != 1)
        return take_dep(fill, reader, rec, writer, err);
    if (rec->type == REC_COLL && !is_same(fill))
        return fail_coll(reader, rec, err);
    rec_put_line(writer, rec->line);
    return true;
}
