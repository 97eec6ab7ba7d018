/*
 * Inputs that are weights: a model that was exported without its values
 * (export_params=False) has them among its inputs, and does not say which are data.
 *
 *     data -----> [Conv] <---- weight                 an operand that only a weight is
 *     data -----> [Add] <----- [Transpose] <---- ?    beside data: its shape decides
 *
 * What is made of one input alone, by whatever operators, is followed to where it meets
 * others.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* What a value is made of: the index of an input, or one of these. */
#define OF_DATA REC_NONE
#define OF_CONSTANTS (REC_NONE - 1)

/* What is known of a value that is an input. */
struct use {
    bool open;     /* it may be a weight */
    bool data;     /* it is an operand that only data are */
    bool weight;   /* it is an operand that only a weight is */
    bool beside;   /* it meets data in an operator that takes either */
    bool expanded; /* it is copied along a dimension, such as the samples */
    bool unsure;   /* a weight, as far as its shape says, in front of all sure ones */
};

struct following {
    struct onnx_building *b;
    struct use *use;  /* per value */
    uint32_t *origin; /* per value */
    bool has_weights; /* the file has some */
};

static uint32_t
find(const struct onnx_building *b, const char *name)
{
    return *name ? rec_map_get(&b->values, rec_str(name)) : REC_NONE;
}

/* The last row, of no name, if the operator is not known. */
static const struct onnx_operator *
row_of(const Onnx__Node *node)
{
    const struct onnx_operator *op = onnx_operators;
    while (op->name && strcmp(op->name, node->op_type) != 0)
        op++;
    return op;
}

/* ---- one node ---------------------------------------------------------------------- */

/* What operand i is made of. What is left out, or of an unknown name, is a constant. */
static uint32_t
origin_of(const struct following *f, const Onnx__Node *node, size_t i)
{
    uint32_t at = i < node->n_input ? find(f->b, node->input[i]) : REC_NONE, origin;
    if (at == REC_NONE)
        return OF_CONSTANTS;
    origin = f->origin[at];
    return origin < OF_CONSTANTS && f->use[origin].data ? OF_DATA : origin;
}

static bool
is_input(uint32_t origin)
{
    return origin < OF_CONSTANTS;
}

/* The operands from `first` on are weights, those before it are data. */
static uint32_t
follow_weights(struct following *f, const Onnx__Node *node, size_t first)
{
    for (size_t i = 0; i < node->n_input; i++) {
        uint32_t origin = origin_of(f, node, i);
        if (is_input(origin) && i < first)
            f->use[origin].data = true;
        else if (is_input(origin))
            f->use[origin].weight = true;
    }
    return OF_DATA;
}

/* So are all but the first one and those that hold data of samples. */
static uint32_t
follow_recurrent(struct following *f, const Onnx__Node *node, unsigned buffers)
{
    for (size_t i = 0; i < node->n_input; i++) {
        uint32_t origin = origin_of(f, node, i);
        bool data = i == 0 || (i < 32 && (buffers & ONNX_BUFFER(i)) != 0);
        if (is_input(origin) && data)
            f->use[origin].data = true;
        else if (is_input(origin))
            f->use[origin].weight = true;
    }
    return OF_DATA;
}

/* An operator that takes data and weights alike. What is made of several inputs is taken
 * for made of the largest. */
static uint32_t
follow_any(struct following *f, const Onnx__Node *node)
{
    const struct onnx_value *value = f->b->value;
    uint32_t result = OF_CONSTANTS;
    for (size_t i = 0; i < node->n_input; i++) {
        uint32_t origin = origin_of(f, node, i);
        if (origin == OF_DATA || result == OF_DATA)
            result = origin == OF_CONSTANTS ? result : OF_DATA;
        else if (is_input(origin) &&
                 (!is_input(result) ||
                  value[origin].tensor.count > value[result].tensor.count))
            result = origin;
    }
    for (size_t i = 0; i < node->n_input; i++) {
        uint32_t origin = origin_of(f, node, i);
        if (is_input(origin) && origin != result)
            f->use[origin].beside = true;
    }
    return result;
}

/* Input `origin` is where a weight stands, or data if the file has its weights anyway:
 * features of a graph's nodes are chosen from, too, and multiplied by what is on the
 * left. */
static void
use_as_weight(struct following *f, uint32_t origin, bool likely)
{
    if (likely && !f->has_weights)
        f->use[origin].weight = true;
    else
        f->use[origin].beside = true;
}

/* Matrices by matrices: the right one is the weight; stacks of matrices may be data. */
static uint32_t
follow_product(struct following *f, const Onnx__Node *node)
{
    uint32_t left = origin_of(f, node, 0), right = origin_of(f, node, 1);
    uint32_t added = origin_of(f, node, 2);
    if (left == OF_CONSTANTS || right == OF_CONSTANTS)
        return follow_any(f, node);
    if (is_input(left) && is_input(right))
        f->use[left].data = true;
    else if (is_input(left))
        f->use[left].beside = true;
    if (is_input(right) && right != left)
        use_as_weight(f, right, f->b->value[right].tensor.rank <= 2);
    if (is_input(added))
        use_as_weight(f, added, true);
    return OF_DATA;
}

/* A table of rows, which data choose from. */
static uint32_t
follow_table(struct following *f, const Onnx__Node *node)
{
    uint32_t table = origin_of(f, node, 0), rows = origin_of(f, node, 1);
    if (rows == OF_CONSTANTS || onnx_integer(node, "axis", 0) != 0)
        return follow_any(f, node);
    if (is_input(rows))
        f->use[rows].data = true;
    if (is_input(table) && table != rows)
        use_as_weight(f, table, true);
    return OF_DATA;
}

static uint32_t
follow(struct following *f, const Onnx__Node *node)
{
    const struct onnx_operator *op = row_of(node);
    uint32_t origin = origin_of(f, node, 0);
    if (op->name && op->cost == ONNX_FREE)
        return OF_CONSTANTS;
    if (op->rule == onnx_expand && is_input(origin))
        f->use[origin].expanded = true;
    switch (op->weights) {
    case ONNX_BEHIND: return follow_weights(f, node, 1);
    case ONNX_ACTIVATIONS: return follow_weights(f, node, SIZE_MAX);
    case ONNX_RECURRENT: return follow_recurrent(f, node, op->buffers);
    case ONNX_RIGHT: return follow_product(f, node);
    case ONNX_TABLE: return follow_table(f, node);
    default: return follow_any(f, node);
    }
}

/* ---- the inputs
 * ---------------------------------------------------------------------- */

/* Does an input say all that a weight says: floating point, each dimension a number? */
static bool
may_be_weight(const Onnx__ValueInfo *info)
{
    const Onnx__TensorType *type = info->type ? info->type->tensor : NULL;
    if (!type || !type->shape || !onnx_is_float(type->element))
        return false;
    for (size_t i = 0; i < type->shape->n_dim; i++)
        if (type->shape->dim[i]->size_case != ONNX__DIMENSION__SIZE_NUMBER)
            return false;
    return true;
}

static bool
is_named(const struct onnx_options *options, const char *name)
{
    for (size_t i = 0; i < options->ndata; i++)
        if (strcmp(options->data[i], name) == 0)
            return true;
    return false;
}

/* The value of input i; NULL: it is an initialiser, or nothing reads it. */
static struct onnx_value *
value_of(const struct onnx_building *b, size_t i)
{
    uint32_t at = find(b, b->graph->input[i]->name);
    if (at == REC_NONE || b->value[at].starts || !b->value[at].read)
        return NULL;
    return &b->value[at];
}

/* Is the first dimension of an input the batch of the data? `batch`: 0 if it is not
 * known. */
static bool
has_batch(const struct onnx_value *value, int64_t batch)
{
    return value->tensor.rank > 0 && batch > 0 && value->tensor.dim[0] == batch;
}

/* Samples in the first input that is surely data; 0: there is none, or it has a name. */
static int64_t
find_batch(const struct following *f)
{
    const struct onnx_building *b = f->b;
    for (size_t i = 0; i < b->graph->n_input; i++) {
        const Onnx__ValueInfo *info = b->graph->input[i];
        const struct onnx_value *value = value_of(b, i);
        const struct use *use = value ? &f->use[value - b->value] : NULL;
        if (!use || (use->open && !use->data))
            continue;
        if (value->tensor.shaped && value->tensor.rank > 0)
            return info->type->tensor->shape->dim[0]->size_case ==
                           ONNX__DIMENSION__SIZE_NUMBER
                       ? value->tensor.dim[0]
                       : 0;
    }
    return 0;
}

/* Who exports weights as inputs puts them behind the data. So one that only stands beside
 * data is a weight if it has no batch, or if a sure weight is before it; and only if
 * there is a sure one at all. What is expanded to the samples, a class token, has none of
 * them. */
static void
decide(struct following *f)
{
    const struct onnx_building *b = f->b;
    int64_t batch = find_batch(f);
    bool any = false, behind = false;
    for (size_t i = 0; i < b->graph->n_input; i++) {
        const struct onnx_value *value = value_of(b, i);
        const struct use *use = value ? &f->use[value - b->value] : NULL;
        any = any || (use && use->weight && !use->data);
    }
    for (size_t i = 0; i < b->graph->n_input; i++) {
        struct onnx_value *value = value_of(b, i);
        struct use *use = value ? &f->use[value - b->value] : NULL;
        if (!use || !use->open || use->data)
            continue;
        use->weight = use->weight || (any && use->beside && use->expanded);
        behind = behind || use->weight;
        if (use->weight || !use->beside || !any)
            continue;
        use->unsure = !behind;
        use->weight = behind || !has_batch(value, batch);
    }
}

static bool
check_names(const struct onnx_building *b)
{
    char text[ONNX_NAME_MAX];
    for (size_t k = 0; k < b->options->ndata; k++) {
        bool there = false;
        for (size_t i = 0; i < b->graph->n_input && !there; i++)
            there = strcmp(b->graph->input[i]->name, b->options->data[k]) == 0;
        if (!there)
            return rec_fail(b->err, REC_DATA, "%s: it has no input '%s'", b->name,
                            onnx_clean(b->options->data[k], text));
    }
    return true;
}

/* Matrices or more among the initialisers, or what stands for them in a light model. */
static bool
find_initializers(const struct onnx_building *b)
{
    for (size_t i = 0; i < b->nvalues; i++)
        if (b->value[i].read && b->value[i].param == i && b->value[i].tensor.rank >= 2)
            return true;
    for (size_t i = 0; i < b->graph->n_node; i++) {
        const Onnx__Node *node = b->graph->node[i];
        uint32_t at = node->n_input > 0 ? find(b, node->input[0]) : REC_NONE;
        if (at != REC_NONE && b->value[at].starts &&
            strcmp(node->op_type, "ConstantOfShape") == 0)
            return true;
    }
    return false;
}

/* Tells weights from data by what reads them. */
static void
guess(struct following *f)
{
    struct onnx_building *b = f->b;
    f->has_weights = find_initializers(b);
    for (size_t i = 0; i < b->nvalues; i++)
        f->origin[i] = OF_CONSTANTS;
    for (size_t i = 0; i < b->graph->n_input; i++) {
        struct onnx_value *value = value_of(b, i);
        uint32_t at = value ? (uint32_t)(value - b->value) : REC_NONE;
        if (!value)
            continue;
        (void)onnx_take_info(b, b->graph->input[i], ONNX_INNER, &value->tensor);
        f->use[at].open = may_be_weight(b->graph->input[i]) && value->tensor.shaped;
        f->origin[at] = f->use[at].open ? at : OF_DATA;
    }
    /* twice: that an input is data may be known only behind where it met others */
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < b->graph->n_node; i++) {
            const Onnx__Node *node = b->graph->node[i];
            uint32_t origin = follow(f, node), at;
            for (size_t k = 0; k < node->n_output; k++)
                if ((at = find(b, node->output[k])) != REC_NONE)
                    f->origin[at] = origin;
        }
    decide(f);
}

/* From now on it is as an initialiser without its values. */
static bool
take_weight(struct onnx_building *b, const Onnx__ValueInfo *info,
            struct onnx_value *value)
{
    if (!onnx_take_info(b, info, ONNX_WEIGHT, &value->tensor))
        return false;
    value->made = value->starts = true;
    if (onnx_is_float(info->type->tensor->element) && value->tensor.rank > 0)
        value->param = (uint32_t)(value - b->value);
    b->inputs->weights++;
    return true;
}

static bool
take(struct following *f)
{
    struct onnx_building *b = f->b;
    char text[ONNX_NAME_MAX];
    for (size_t i = 0; i < b->graph->n_input; i++) {
        const Onnx__ValueInfo *info = b->graph->input[i];
        struct onnx_value *value = value_of(b, i);
        const struct use *use = value ? &f->use[value - b->value] : NULL;
        if (!use)
            continue;
        if (b->options->ndata > 0 ? is_named(b->options, info->name)
                                  : !use->weight || use->data)
            (void)rec_list_name(b->inputs->data, sizeof b->inputs->data,
                                onnx_clean(info->name, text));
        else if (!take_weight(b, info, value))
            return false;
        else if (use->unsure)
            (void)rec_list_name(b->inputs->unsure, sizeof b->inputs->unsure,
                                onnx_clean(info->name, text));
    }
    return true;
}

bool
onnx_find_weights(struct onnx_building *b)
{
    size_t n = b->nvalues + 1;
    struct following f = {
        .b = b, .use = calloc(n, sizeof *f.use), .origin = malloc(n * sizeof *f.origin)};
    bool ok = (f.use && f.origin) || rec_fail_memory(b->err);
    ok = ok && check_names(b);
    if (ok && b->options->ndata == 0)
        guess(&f);
    ok = ok && take(&f);
    free(f.use);
    free(f.origin);
    return ok;
}

/* ---- gradients
 * ------------------------------------------------------------------------ */

static void
mark(struct onnx_building *b, const char *name)
{
    uint32_t at = find(b, name);
    if (at != REC_NONE)
        b->value[at].trained = true;
}

/* From the end to the start: what has a gradient gives one to what it is made of. */
static void
follow_back(struct onnx_building *b, const Onnx__Node *node)
{
    const struct onnx_operator *op = row_of(node);
    bool any = false;
    for (size_t i = 0; i < node->n_output && !any; i++) {
        uint32_t at = find(b, node->output[i]);
        any = at != REC_NONE && b->value[at].trained;
    }
    for (size_t i = 0; any && op->cost != ONNX_FREE && i < node->n_input; i++)
        if (i >= 32 || (op->buffers & ONNX_BUFFER(i)) == 0)
            mark(b, node->input[i]);
}

void
onnx_mark_trained(struct onnx_building *b)
{
    for (size_t i = 0; i < b->nvalues; i++)
        b->value[i].trained = !b->value[i].read;
    for (size_t i = 0; i < b->graph->n_output; i++)
        mark(b, b->graph->output[i]->name);
    for (size_t i = b->graph->n_node; i > 0; i--)
        follow_back(b, b->graph->node[i - 1]);
    for (size_t i = 0; i < b->nvalues; i++)
        if (!b->value[i].trained)
            b->value[i].param = REC_NONE;
}
