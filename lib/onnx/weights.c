/*
 * Tells which inputs of a model are weights, and which parameters are trained. A model
 * that was exported without its values (export_params=False) has its weights among its
 * inputs, and does not say which inputs are data. The operators that read an input tell:
 *
 *     data -----> [Conv] <---- weight                 only a weight can be this operand
 *     data -----> [Add] <----- [Transpose] <---- ?    either can: its shape decides
 *
 * A value that is made from one input alone, by any operators, is followed to the
 * operator where it meets other values: that operator tells what the input is.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* The origin of a value: the index of the one input from which it is made, or one of
 * these. */
#define OF_DATA REC_NONE
#define OF_CONSTANTS (REC_NONE - 1)

/* What the operators tell of an input. */
struct use {
    bool open;     /* the file says nothing that a weight cannot be */
    bool data;     /* it is an operand that only data can be */
    bool weight;   /* it is an operand that only a weight can be */
    bool beside;   /* it meets data in an operator that takes both */
    bool expanded; /* it is copied along a dimension, such as the samples */
    bool unsure;   /* taken for a weight by its shape alone, before all sure weights */
};

struct following {
    struct onnx_building *b;
    struct use *use;  /* for each value */
    uint32_t *origin; /* for each value */
    bool has_weights; /* the file has the values of some weights */
};

static uint32_t
find(const struct onnx_building *b, const char *name)
{
    return *name ? rec_map_get(&b->values, rec_str(name)) : REC_NONE;
}

/* The row of a node's operator; the last row, without a name, if it is not known. */
static const struct onnx_operator *
row_of(const Onnx__Node *node)
{
    const struct onnx_operator *op = onnx_operators;
    while (op->name && strcmp(op->name, node->op_type) != 0)
        op++;
    return op;
}

/* ---- one node ---------------------------------------------------------------------- */

/* The origin of operand i. An operand that is left out or has an unknown name counts as a
 * constant; an input that is surely data counts as data. */
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

/* The functions follow_*() look at one node: they mark what it tells of the inputs from
 * which its operands are made, and return the origin of its output. This one is of
 * operators whose operands from `first` on are weights and whose others are data. */
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

/* Recurrent operators: the first operand and the buffers are data, the others weights. */
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

/* Operators that take data and weights alike. If several inputs meet, the result is taken
 * to be made from the largest, and the others to stand beside data. */
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

/* Marks input `origin`, whose operand is `likely` a weight. It is one if the file has no
 * weights of its own; if it has, the input may be data, such as features of the nodes of
 * a graph, which are rows to choose from, or right factors. */
static void
use_as_weight(struct following *f, uint32_t origin, bool likely)
{
    if (likely && !f->has_weights)
        f->use[origin].weight = true;
    else
        f->use[origin].beside = true;
}

/* Matrix products: the right operand is a weight. If it has more than two dimensions, a
 * stack of matrices, it may be data, as in attention. Operand 2 is what Gemm adds. */
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

/* Gather along the first axis: a table of rows, of which data choose some. */
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

/* A shape is known before anything runs, so the outputs of free operators are
 * constants. */
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

/* ---- the inputs ----------------------------------------------------------- */

/* Can an input be a weight? A weight has elements of floating point, and numbers for all
 * its dimensions. */
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

/* The number of samples of the first input that is surely data. 0: there is no such
 * input, or the file has a name instead of the number. */
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

/* Decides on the inputs that are not surely data. Exporters put weights behind the data.
 * So an input that only stands beside data is a weight if its first dimension is not the
 * batch, or if a sure weight comes before it, provided that the model has a sure weight
 * at all. An input that is expanded to the samples, such as a class token, has no samples
 * itself, and so is a weight. */
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

/* Does the file have weights of its own: initialisers of two or more dimensions that are
 * read, or the stand-ins for them in a light model (stands_for_parameter() in
 * build.c)? */
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

/* Tells weights from data by the operators that read them. */
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
    /* Twice: a later node may tell that an input is data, which changes what it means
     * that another input stands beside it. */
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

/* Makes an input a weight: an initialiser whose values are not known. */
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

/* Makes the inputs found to be weights initialisers, and lists the others. If the
 * user names the data, all other inputs are weights. */
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
                                  : !use->weight || use->data) {
            b->inputs->guessed = b->inputs->guessed || (use->beside && !use->data);
            (void)rec_list_name(b->inputs->data, sizeof b->inputs->data,
                                onnx_clean(info->name, text));
        } else if (!take_weight(b, info, value))
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

/* ---- samples -------------------------------------------------------------- */

/* The first dimension of an input; NULL: it is no data, or has no dimensions. */
static const Onnx__Dimension *
samples_of(const struct onnx_building *b, size_t i, const struct onnx_value **value)
{
    *value = value_of(b, i);
    return *value && (*value)->tensor.rank > 0
               ? b->graph->input[i]->type->tensor->shape->dim[0]
               : NULL;
}

/* Do two first dimensions differ? Names without a size, which all stand for one sample,
 * do if they are different. */
static bool
differs(const Onnx__Dimension *x, int64_t nx, const Onnx__Dimension *y, int64_t ny)
{
    bool names = nx == 1 && x->size_case == ONNX__DIMENSION__SIZE_SYMBOL &&
                 y->size_case == ONNX__DIMENSION__SIZE_SYMBOL;
    return nx != ny || (names && strcmp(x->symbol, y->symbol) != 0);
}

/* Lists the inputs that are data with their samples, "x: 8, y: n". */
static void
list_samples(struct onnx_building *b)
{
    const struct onnx_value *value;
    b->inputs->batch = b->batch > 0 ? b->batch : 1;
    for (size_t i = 0; i < b->graph->n_input; i++) {
        const Onnx__Dimension *dim = samples_of(b, i, &value);
        char name[ONNX_NAME_MAX], symbol[ONNX_NAME_MAX], text[2 * ONNX_NAME_MAX + 4];
        if (!dim)
            continue;
        if (dim->size_case == ONNX__DIMENSION__SIZE_SYMBOL && value->tensor.dim[0] == 1)
            onnx_clean(dim->symbol, symbol);
        else
            snprintf(symbol, sizeof symbol, "%lld", (long long)value->tensor.dim[0]);
        snprintf(text, sizeof text, "%s: %s", onnx_clean(b->graph->input[i]->name, name),
                 symbol);
        (void)rec_list_name(b->inputs->samples, sizeof b->inputs->samples, text);
    }
}

/* Has a value a dimension of this name? */
static bool
has_dimension(const Onnx__ValueInfo *info, const char *name)
{
    const Onnx__TensorType *type = info->type ? info->type->tensor : NULL;
    for (size_t i = 0; type && type->shape && i < type->shape->n_dim; i++)
        if (type->shape->dim[i]->size_case == ONNX__DIMENSION__SIZE_SYMBOL &&
            strcmp(type->shape->dim[i]->symbol, name) == 0)
            return true;
    return false;
}

/* Lists the dimensions to which the options give a size, and that the file does not
 * have. */
static void
list_unknown(struct onnx_building *b)
{
    const Onnx__Graph *graph = b->graph;
    char text[ONNX_NAME_MAX];
    for (size_t k = 0; k < b->options->ndimensions; k++) {
        const char *name = b->options->dimension[k].name;
        bool there = false;
        for (size_t i = 0; i < graph->n_input && !there; i++)
            there = has_dimension(graph->input[i], name);
        for (size_t i = 0; i < graph->n_value_info && !there; i++)
            there = has_dimension(graph->value_info[i], name);
        for (size_t i = 0; i < graph->n_output && !there; i++)
            there = has_dimension(graph->output[i], name);
        if (!there)
            (void)rec_list_name(b->inputs->unknown, sizeof b->inputs->unknown,
                                onnx_clean(name, text));
    }
}

bool
onnx_check_samples(struct onnx_building *b)
{
    const struct onnx_value *value, *first = NULL;
    const Onnx__Dimension *dim, *of_first = NULL;
    char name[ONNX_NAME_MAX];
    bool differ = false;
    for (size_t i = 0; i < b->graph->n_input; i++) {
        if (!(dim = samples_of(b, i, &value)))
            continue;
        if (value->tensor.dim[0] == 0)
            return rec_fail(b->err, REC_DATA,
                            "%s: the input '%s' has no samples: its "
                            "first dimension is 0",
                            b->name, onnx_clean(b->graph->input[i]->name, name));
        differ = differ || (first && differs(dim, value->tensor.dim[0], of_first,
                                             first->tensor.dim[0]));
        if (!first) {
            first = value;
            of_first = dim;
        }
    }
    if (differ)
        list_samples(b);
    list_unknown(b);
    return true;
}

/* ---- gradients ------------------------------------------------------------ */

static void
mark(struct onnx_building *b, const char *name)
{
    uint32_t at = find(b, name);
    if (at != REC_NONE)
        b->value[at].trained = true;
}

/* If a gradient reaches an output of the node, it reaches the operands, too, except
 * buffers. The nodes are visited from the last to the first. */
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

/* A value that no node reads is an end of the graph, from which gradients start, as the
 * graph's outputs are. */
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
