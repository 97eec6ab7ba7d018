/* Finds the largest batch with which training a graph fits into the memory of one server.
 * The model: need(B) = weights, gradients and optimizer, which do not depend on B, plus B
 * times the outputs of one sample. An op and its twin share their memory. */
#include "private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The memory that an op holds. */
struct holder {
    const char *id, *pair; /* pair: NULL if the op has none */
    double weights;        /* bytes */
    double outputs;        /* bytes per sample */
    uint32_t twin;         /* index of its twin; REC_NONE: it has none */
    uint64_t line;         /* of its record */
};

/* The graph at hand. */
struct device_model {
    const char *id, *file;
    uint64_t line;
    double batch;     /* of its activation= */
    double parameter; /* bytes that training holds for each byte of weights */
    struct holder *op;
    size_t nops, room;
    struct rec_map index; /* op -> index */
    struct rec_arena arena;
};

/* The bytes that a model needs with some batch. */
struct need {
    double weights, gradients, state, outputs, all;
};

static void
free_model(struct device_fit *fit)
{
    if (!fit->model)
        return;
    free(fit->model->op);
    rec_map_free(&fit->model->index);
    rec_arena_free(&fit->model->arena);
    free(fit->model);
    fit->model = NULL;
}

/* ---- reading ------------------------------------------------------------- */

static bool
read_batch(const struct device_fit *fit, const struct rec_reader *reader,
           const struct rec *rec, double *batch, struct rec_error *err)
{
    uint64_t own = 0;
    struct rec_str id = rec->field[1], text;
    if (!rec_find_key(rec, "batch", &text)) {
        *batch = fit->batch;
        return *batch > 0 ||
               rec_reader_fail(reader, err,
                               "graph '%.*s' has no batch=, so it is not known how its "
                               "outputs grow with the batch: give the batch",
                               REC_SAID(id));
    }
    if (!rec_key_count(reader, rec, "batch", &own, err))
        return false;
    *batch = (double)own;
    return own > 0 ||
           rec_reader_fail(reader, err, "graph '%.*s': batch must be >= 1, got 0",
                           REC_SAID(id));
}

static bool
take_graph(struct device_fit *fit, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct device_model *model = fit->model = calloc(1, sizeof *model);
    if (!model)
        return rec_fail_memory(err);
    model->file = rec_reader_file(reader);
    model->line = rec_reader_line(reader);
    return (model->id = rec_arena_copy(&model->arena, rec->field[1], err)) &&
           read_batch(fit, reader, rec, &model->batch, err) &&
           device_read_parameter(fit->optimizer, fit->precision, reader, rec,
                                 &model->parameter, err);
}

/* Refuses an op whose memory with another batch is not known. `fills`: it has param= or
 * activation=. */
static bool
check_op(const struct device_model *model, const struct rec_reader *reader,
         const struct rec *rec, bool fills, struct rec_error *err)
{
    struct rec_str id = rec->field[2], text;
    double memory, hold = 0;
    if (!model || !rec_str_is(rec->field[1], model->id))
        return rec_reader_fail(reader, err, "op '%.*s' has no graph record before it",
                               REC_SAID(id));
    if (rec_map_get(&model->index, id) != REC_NONE)
        return rec_reader_fail(reader, err, "op '%.*s' comes twice", REC_SAID(id));
    if (rec_find_key(rec, "part", &text))
        return rec_reader_fail(reader, err,
                               "op '%.*s' is a part, and which parts share a server is "
                               "not known: give the graph before it is partitioned",
                               REC_SAID(id));
    if (!rec_key_number(reader, rec, "hold", &hold, err))
        return false;
    if (hold > 0)
        return rec_reader_fail(reader, err,
                               "op '%.*s' has hold=, bytes of which it is not known how "
                               "they grow with the batch",
                               REC_SAID(id));
    if (!rec_get_number(reader, rec, 5, &memory, err))
        return false;
    return fills || memory == 0 ||
           rec_reader_fail(reader, err,
                           "op '%.*s' has neither param= nor activation=, so it is not "
                           "known how its memory grows with the batch",
                           REC_SAID(id));
}

static bool
take_op(struct device_fit *fit, const struct rec_reader *reader, const struct rec *rec,
        struct rec_error *err)
{
    struct device_model *model = fit->model;
    double param = NAN, activation = NAN;
    struct rec_str pair;
    struct holder op = {.twin = REC_NONE, .line = rec_reader_line(reader)};

    if (!rec_key_number(reader, rec, "param", &param, err) ||
        !rec_key_number(reader, rec, "activation", &activation, err) ||
        !check_op(model, reader, rec, !isnan(param) || !isnan(activation), err))
        return false;
    op.weights = isnan(param) ? 0 : param;
    op.outputs = isnan(activation) ? 0 : activation / model->batch;
    if (!(op.id = rec_arena_copy(&model->arena, rec->field[2], err)) ||
        (rec_find_key(rec, "pair", &pair) &&
         !(op.pair = rec_arena_copy(&model->arena, pair, err))) ||
        !rec_grow(&model->op, &model->room, model->nops + 1, sizeof op, err) ||
        !rec_map_add(&model->index, rec_str(op.id), (uint32_t)model->nops, err))
        return false;
    model->op[model->nops++] = op;
    return true;
}

/* Pairs ops with their twins. As in lib/graph, it suffices if one of the two names the
 * other. */
static bool
find_twins(struct device_model *model, struct rec_error *err)
{
    for (uint32_t i = 0; i < model->nops; i++) {
        struct holder *op = &model->op[i], *twin;
        uint32_t at;
        if (!op->pair)
            continue;
        at = rec_map_get(&model->index, rec_str(op->pair));
        twin = at == REC_NONE ? NULL : &model->op[at];
        if (!twin || at == i || (twin->pair && strcmp(twin->pair, op->id) != 0) ||
            (twin->twin != REC_NONE && twin->twin != i))
            return rec_fail(
                err, REC_DATA, "%s:%" PRIu64 ": op '%.60s' has pair=%.60s, but %s",
                model->file, op->line, op->id, op->pair,
                twin ? "that op is not its twin" : "the graph has no such op");
        op->twin = at;
        twin->twin = i;
    }
    return true;
}

/* ---- the need of memory ---------------------------------------------------- */

static double
bytes_of(const struct device_model *model, const struct holder *op, double batch)
{
    return op->weights * (op->pair ? model->parameter : 1) + op->outputs * batch;
}

/* Sums up the ops. Of an op and its twin, which share what they hold, only the one that
 * needs more is counted, and of equals the first. */
static struct need
find_need(const struct device_fit *fit, double batch)
{
    const struct device_model *model = fit->model;
    struct need need = {0};
    double trained = 0;
    for (size_t i = 0; i < model->nops; i++) {
        const struct holder *op = &model->op[i];
        double own = bytes_of(model, op, batch), twin;
        if (op->twin != REC_NONE) {
            twin = bytes_of(model, &model->op[op->twin], batch);
            if (own < twin || (own == twin && op->twin < i))
                continue;
        }
        need.weights += op->weights;
        trained += op->pair ? op->weights : 0;
        need.outputs += op->outputs * batch;
    }
    if (fit->optimizer) {
        need.gradients = trained;
        need.state = trained * (model->parameter - 2); /* without weight and gradient */
    }
    need.all = need.weights + need.gradients + need.state + need.outputs;
    return need;
}

/* The largest batch that fits. Since the need grows with the batch, this doubles the
 * batch until it does not fit, and then halves the gap. 0: no batch fits;
 * DEVICE_BATCH_MAX: the largest may be larger than can be told. */
static double
find_largest(const struct device_fit *fit)
{
    double fits = 0, excess = 1;
    while (find_need(fit, excess).all <= fit->memory) {
        fits = excess;
        excess *= 2;
        if (fits >= DEVICE_BATCH_MAX)
            return DEVICE_BATCH_MAX;
    }
    while (excess - fits > 1) {
        double middle = floor((fits + excess) / 2);
        if (find_need(fit, middle).all <= fit->memory)
            fits = middle;
        else
            excess = middle;
    }
    return fits;
}

/* ---- the answer ----------------------------------------------------------- */

static const char *
show(char text[REC_QUANTITY_MAX], double bytes)
{
    rec_format_quantity(text, bytes, REC_BYTES, 4);
    return text;
}

/* "weights 3.1 GB, gradients ..., outputs ..." */
static void
list_need(const struct device_fit *fit, const struct need *need, char text[200])
{
    char weights[REC_QUANTITY_MAX], gradients[REC_QUANTITY_MAX], state[REC_QUANTITY_MAX],
        outputs[REC_QUANTITY_MAX];
    show(weights, need->weights);
    show(outputs, need->outputs);
    if (fit->optimizer)
        snprintf(text, 200, "weights %s, gradients %s, optimizer (%s) %s, outputs %s",
                 weights, show(gradients, need->gradients), fit->optimizer->name,
                 show(state, need->state), outputs);
    else
        snprintf(text, 200, "parameters %s, outputs %s", weights, outputs);
}

static bool
fail_none(const struct device_fit *fit, struct rec_error *err)
{
    const struct device_model *model = fit->model;
    struct need need = find_need(fit, 1);
    char list[200], all[REC_QUANTITY_MAX], memory[REC_QUANTITY_MAX],
        missing[REC_QUANTITY_MAX];
    list_need(fit, &need, list);
    return rec_fail(err, REC_NO,
                    "%s:%" PRIu64
                    ": graph '%.60s': not even a batch of 1 fits into %s: it needs "
                    "%s (%s), %s more",
                    model->file, model->line, model->id, show(memory, fit->memory),
                    show(all, need.all), list, show(missing, need.all - fit->memory));
}

static bool
fail_any(const struct device_fit *fit, struct rec_error *err)
{
    const struct device_model *model = fit->model;
    char outputs[REC_QUANTITY_MAX], memory[REC_QUANTITY_MAX];
    return rec_fail(err, REC_NO,
                    "%s:%" PRIu64
                    ": graph '%.60s': every batch fits into %s, because its outputs "
                    "(activation=) need %s per sample",
                    model->file, model->line, model->id, show(memory, fit->memory),
                    show(outputs, find_need(fit, 1).outputs));
}

static void
write_answer(const struct device_fit *fit, double batch, struct rec_writer *writer)
{
    struct need need = find_need(fit, batch), next = find_need(fit, batch + 1);
    char list[200], all[REC_QUANTITY_MAX], memory[REC_QUANTITY_MAX],
        more[REC_QUANTITY_MAX];
    list_need(fit, &need, list);
    rec_printf(writer,
               "# %s: a batch of %.0f fits into %s: it needs %s (%s); a batch of %.0f "
               "needs %s\n",
               fit->model->id, batch, show(memory, fit->memory), show(all, need.all),
               list, batch + 1, show(more, next.all));
    rec_begin(writer, "fit");
    rec_text_field(writer, fit->model->id);
    rec_num_field(writer, batch);
    rec_num_field(writer, need.all);
    rec_num_key(writer, "limit", fit->memory);
    rec_num_key(writer, "weights", need.weights);
    if (fit->optimizer) {
        rec_num_key(writer, "gradients", need.gradients);
        rec_num_key(writer, "optimizer_state", need.state);
    }
    rec_num_key(writer, "outputs", need.outputs);
    rec_num_key(writer, "next", next.all);
    if (fit->optimizer)
        rec_text_key(writer, "optimizer", fit->optimizer->name);
    rec_end(writer);
}

bool
device_fit_end(struct device_fit *fit, struct rec_writer *writer, struct rec_error *err)
{
    struct device_model *model = fit->model;
    double batch;

    if (!model)
        return true;
    if (model->nops == 0)
        return device_fail_no_ops(model->file, model->line, model->id, err);
    if (!find_twins(model, err))
        return false;
    if (!isfinite(find_need(fit, DEVICE_BATCH_MAX).all))
        return rec_fail(err, REC_DATA,
                        "%s:%" PRIu64 ": graph '%.60s' needs more than a number can say",
                        model->file, model->line, model->id);
    batch = find_largest(fit);
    if (batch == 0)
        return fail_none(fit, err);
    if (batch >= DEVICE_BATCH_MAX)
        return fail_any(fit, err);
    write_answer(fit, batch, writer);
    fit->graphs++;
    free_model(fit);
    return true;
}

bool
device_fit_take(struct device_fit *fit, const struct rec_reader *reader,
                const struct rec *rec, struct rec_writer *writer, struct rec_error *err)
{
    bool ours = rec_is_part(rec, REC_GRAPH);

    if (!rec_continues(rec, REC_GRAPH) && !device_fit_end(fit, writer, err))
        return false;
    if (ours && !rec_need(reader, rec, err))
        return false;
    if (rec->type == REC_GRAPH)
        return take_graph(fit, reader, rec, err);
    if (rec->type == REC_OP)
        return take_op(fit, reader, rec, err);
    if (!ours && rec->type != REC_JOB)
        rec_put_line(writer, rec->line);
    return true;
}

void
device_fit_free(struct device_fit *fit)
{
    free_model(fit);
}
