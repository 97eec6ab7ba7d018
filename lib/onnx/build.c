/* Makes the layers of a network from the nodes of an ONNX graph. All values are added
 * first; then weights.c decides which inputs are data and which are weights; then each
 * node is read in order: the shapes of its outputs are inferred, and a layer is added
 * unless the node costs nothing. At the end the network is scaled to the batch that was
 * asked for. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* The most inputs of a node. find_reads() compares each of them with all others, so the
 * limit keeps a damaged file from taking hours. */
enum { INPUTS_MAX = 4096 };

static bool
fail(const struct onnx_building *b, const char *what, const char *name, const char *more)
{
    char text[ONNX_NAME_MAX];
    return rec_fail(b->err, REC_DATA, "%s: %s '%s' %s", b->name, what,
                    onnx_clean(name, text), more);
}

/* ---- shapes given by the file ---------------------------------------------------- */

/* Reads the size of a dimension: a number, or a name whose size the options give. 1:
 * *size is set; 0: it is not known. If `leads`, the dimension is the samples of an input;
 * without a number it is 1 sample, which scale() multiplies. */
static int
take_dimension(const struct onnx_building *b, const Onnx__Dimension *dim, bool leads,
               int64_t *size)
{
    *size = dim->number;
    if (dim->size_case == ONNX__DIMENSION__SIZE_NUMBER)
        return 1;
    for (size_t i = 0;
         dim->size_case == ONNX__DIMENSION__SIZE_SYMBOL && i < b->options->ndimensions;
         i++)
        if (strcmp(b->options->dimension[i].name, dim->symbol) == 0) {
            *size = b->options->dimension[i].size;
            return 1;
        }
    *size = 1;
    return leads;
}

bool
onnx_take_info(const struct onnx_building *b, const Onnx__ValueInfo *info,
               enum onnx_shape_of of, struct onnx_tensor *tensor)
{
    bool input = of != ONNX_INNER;
    const Onnx__TensorType *type = info->type ? info->type->tensor : NULL;
    const Onnx__Shape *shape = type ? type->shape : NULL;
    char text[ONNX_NAME_MAX], name[ONNX_NAME_MAX];
    *tensor = (struct onnx_tensor){.shaped = false};
    if (!shape || shape->n_dim > ONNX_RANK_MAX)
        return !input || fail(b, "the input", info->name,
                              "has no shape, or one of more than 8 dimensions");
    for (uint32_t i = 0; i < shape->n_dim; i++) {
        const Onnx__Dimension *dim = shape->dim[i];
        bool symbol = dim->size_case == ONNX__DIMENSION__SIZE_SYMBOL;
        if (take_dimension(b, dim, i == 0 && of != ONNX_WEIGHT, &tensor->dim[i]))
            continue;
        return !input ||
               rec_fail(b->err, REC_DATA,
                        "%s: the input '%s' does not say how large its dimension %u%s%s "
                        "is: name a size for it",
                        b->name, onnx_clean(info->name, name), i, symbol ? ", " : "",
                        symbol ? onnx_clean(dim->symbol, text) : "");
    }
    tensor->rank = (uint32_t)shape->n_dim;
    if (onnx_count(tensor))
        return true;
    tensor->shaped = false;
    return !input ||
           fail(b, "the input", info->name,
                "has a negative dimension, or more elements than can be counted");
}

/* A value may be in both lists: the first one holds. */
static bool
index_infos(struct onnx_building *b)
{
    const Onnx__Graph *graph = b->graph;
    for (size_t i = 0; i < graph->n_value_info + graph->n_output; i++) {
        bool inner = i < graph->n_value_info;
        const Onnx__ValueInfo *info =
            inner ? graph->value_info[i] : graph->output[i - graph->n_value_info];
        if (rec_map_get(&b->infos, rec_str(info->name)) == REC_NONE &&
            !rec_map_add(&b->infos, rec_str(info->name), (uint32_t)i, b->err))
            return false;
    }
    return true;
}

/* The shape that the file gives for a value; not shaped if it gives none. */
static struct onnx_tensor
said_of(struct onnx_building *b, const char *name)
{
    const Onnx__Graph *graph = b->graph;
    struct onnx_tensor tensor = {.shaped = false};
    uint32_t i = rec_map_get(&b->infos, rec_str(name));
    if (i != REC_NONE)
        (void)onnx_take_info(b,
                             i < graph->n_value_info
                                 ? graph->value_info[i]
                                 : graph->output[i - graph->n_value_info],
                             ONNX_INNER, &tensor);
    return tensor;
}

/* ---- values ------------------------------------------------------------------------ */

/* Adds a value. Its name must be new: each value is made once. */
static struct onnx_value *
add_value(struct onnx_building *b, const char *name)
{
    struct onnx_value *value;
    if (rec_map_get(&b->values, rec_str(name)) != REC_NONE) {
        fail(b, "the value", name, "is made twice");
        return NULL;
    }
    if (!rec_grow(&b->value, &b->value_room, b->nvalues + 1, sizeof *b->value, b->err) ||
        !rec_map_add(&b->values, rec_str(name), (uint32_t)b->nvalues, b->err))
        return NULL;
    value = &b->value[b->nvalues++];
    *value = (struct onnx_value){.layer = REC_NONE, .param = REC_NONE};
    return value;
}

static bool
add_initializers(struct onnx_building *b)
{
    for (size_t i = 0; i < b->graph->n_initializer; i++) {
        const Onnx__Tensor *tensor = b->graph->initializer[i];
        struct onnx_value *value = add_value(b, tensor->name);
        if (!value)
            return false;
        if (!onnx_take_tensor(tensor, &value->tensor))
            return fail(b, "the initialiser", tensor->name,
                        "has a negative dimension, more than 8, or more elements than "
                        "can be counted");
        value->made = value->starts = true;
        if (onnx_is_float(tensor->element) && value->tensor.rank > 0)
            value->param = (uint32_t)(b->nvalues - 1);
    }
    return true;
}

/* Adds a value for each input that is no initialiser: older files list the initialisers
 * among their inputs, too. */
static bool
add_inputs(struct onnx_building *b)
{
    for (size_t i = 0; i < b->graph->n_input; i++) {
        const Onnx__ValueInfo *info = b->graph->input[i];
        uint32_t at = rec_map_get(&b->values, rec_str(info->name));
        if (at != REC_NONE && b->value[at].starts)
            continue;
        if (!add_value(b, info->name))
            return false;
    }
    return true;
}

static bool
add_outputs(struct onnx_building *b)
{
    for (size_t i = 0; i < b->graph->n_node; i++) {
        const Onnx__Node *node = b->graph->node[i];
        for (size_t k = 0; k < node->n_output; k++)
            if (*node->output[k] && !add_value(b, node->output[k]))
                return false;
    }
    return true;
}

static void
mark_reads(struct onnx_building *b)
{
    for (size_t i = 0; i < b->graph->n_node; i++)
        for (size_t k = 0; k < b->graph->node[i]->n_input; k++) {
            uint32_t at = rec_map_get(&b->values, rec_str(b->graph->node[i]->input[k]));
            if (at != REC_NONE)
                b->value[at].read = true;
        }
}

/* Adds a layer, which reads nothing, for each input that is data and that a node reads.
 * The first of them gives the file's batch. */
static bool
start_inputs(struct onnx_building *b)
{
    bool ok = true;
    for (size_t i = 0; ok && i < b->graph->n_input; i++) {
        const Onnx__ValueInfo *info = b->graph->input[i];
        uint32_t at = rec_map_get(&b->values, rec_str(info->name));
        struct onnx_value *value = &b->value[at];
        struct input_layer layer = {.text = "Input", .kind = "memory"};
        if (value->starts || !value->read)
            continue;
        ok = onnx_take_info(b, info, ONNX_DATA, &value->tensor);
        if (ok && b->batch == 0 && value->tensor.rank > 0 && value->tensor.dim[0] > 0)
            b->batch = (double)value->tensor.dim[0];
        value->made = true;
        value->layer = (uint32_t)b->network->nlayers;
        layer.out = value->tensor.count;
        ok = ok && input_network_add(b->network, &layer, NULL, 0, b->err);
    }
    return ok;
}

/* ---- nodes ------------------------------------------------------------------------- */

static bool
find_operator(struct onnx_node *node)
{
    const char *domain = node->message->domain;
    bool ours = !*domain || strcmp(domain, "ai.onnx") == 0;
    char text[ONNX_NAME_MAX];
    for (node->op = onnx_operators; ours && node->op->name; node->op++)
        if (strcmp(node->op->name, node->message->op_type) == 0)
            return true;
    return onnx_fail(node, "this operator%s%s is not known", ours ? "" : " of ",
                     ours ? "" : onnx_clean(domain, text));
}

static bool
find_inputs(struct onnx_node *node)
{
    struct onnx_building *b = node->b;
    char name[ONNX_NAME_MAX];
    node->nin = 0;
    if (node->message->n_input > INPUTS_MAX)
        return onnx_fail(node, "it has more than %d inputs", INPUTS_MAX);
    if (!rec_grow(&node->in, &node->in_room, node->message->n_input + 1, sizeof *node->in,
                  b->err))
        return false;
    for (size_t i = 0; i < node->message->n_input; i++) {
        const char *from = node->message->input[i];
        uint32_t at = *from ? rec_map_get(&b->values, rec_str(from)) : REC_NONE;
        node->in[node->nin++] = at;
        if (!*from)
            continue;
        onnx_clean(from, name);
        if (at == REC_NONE)
            return onnx_fail(
                node, "its input '%s' is made by no node, and is no input of the model",
                name);
        if (!b->value[at].made)
            return onnx_fail(node,
                             "its input '%s' is made by no node before it: nodes must be "
                             "in order, without cycles",
                             name);
        if (!b->value[at].tensor.shaped)
            return onnx_fail(node, "the shape of its input '%s' is not known", name);
    }
    return true;
}

bool
onnx_is_parameter(const struct onnx_node *node, size_t i)
{
    bool buffer = i < 32 && (node->op->buffers & ONNX_BUFFER(i)) != 0;
    return node->in[i] != REC_NONE && node->b->value[node->in[i]].param != REC_NONE &&
           !buffer;
}

/* Writes the layers that a node reads to `reads`, each once, in the order of its inputs,
 * and returns their number. Sums up the elements and parameters that it reads. A
 * parameter is owned by the first layer that reads it; later ones are tied to it. */
static size_t
find_reads(struct onnx_node *node, uint32_t *reads, struct input_layer *layer)
{
    struct onnx_building *b = node->b;
    size_t n = 0;
    for (size_t i = 0; i < node->nin; i++) {
        struct onnx_value *value =
            node->in[i] == REC_NONE ? NULL : &b->value[node->in[i]];
        bool seen = value == NULL;
        for (size_t k = 0; value && k < i && !seen; k++)
            seen = node->in[k] == node->in[i];
        if (seen)
            continue;
        if (onnx_is_parameter(node, i)) {
            struct onnx_value *root = &b->value[value->param];
            layer->weights += root->tensor.count;
            layer->params += root->owned ? 0 : root->tensor.count;
            root->owned = true;
        }
        if (value->layer == REC_NONE)
            continue;
        layer->in += value->tensor.count;
        for (size_t k = 0; k < n && !seen; k++)
            seen = reads[k] == value->layer;
        if (!seen)
            reads[n++] = value->layer;
    }
    if (!isnan(node->read))
        layer->in = node->read;
    return n;
}

/* Adds the layer of a node, which writes `out` elements and among them `value`. */
static bool
add_layer(struct onnx_node *node, struct onnx_value *value, double out)
{
    struct onnx_building *b = node->b;
    struct input_layer layer = {.out = out};
    uint32_t *reads = calloc(node->nin + 1, sizeof *reads);
    size_t n;
    bool ok = reads || rec_fail_memory(b->err);
    layer.flops = isnan(node->flops) ? node->op->each * out : node->flops;
    layer.kind = node->kind ? node->kind : "memory";
    memcpy(layer.gemm, node->gemm, sizeof layer.gemm);
    snprintf(layer.text, sizeof layer.text, "%s", node->op->name);
    if (ok) {
        n = find_reads(node, reads, &layer);
        if (n == 0 && onnx_parameters(node) < 2)
            layer.weights = 0; /* a part or form of one parameter, as a view of it */
        value->layer = (uint32_t)b->network->nlayers;
        ok = input_network_add(b->network, &layer, reads, n, b->err);
    }
    free(reads);
    return ok;
}

/* Is the output of a node computed from constants alone, so that it costs nothing in
 * training? *param becomes the parameter from which it is made, if it is one; REC_NONE
 * otherwise. A node that combines several parameters is work in each step. A node of at
 * most two inputs, one of them a parameter, is taken for the parameter itself, such as
 * its transposition. */
static bool
is_constant(const struct onnx_node *node, uint32_t *param)
{
    size_t params = 0;
    *param = REC_NONE;
    for (size_t i = 0; i < node->nin; i++) {
        if (node->in[i] == REC_NONE)
            continue;
        if (node->b->value[node->in[i]].layer != REC_NONE)
            return node->op->cost == ONNX_FREE;
        if (onnx_is_parameter(node, i)) {
            *param = node->b->value[node->in[i]].param;
            params++;
        }
    }
    return params == 0 || (params == 1 && node->nin <= 2) || node->op->cost != ONNX_WORK;
}

/* Is the node a stand-in for a weight? Light models, from which the values were removed,
 * make a weight with ConstantOfShape from an initialiser that has its shape. */
static bool
stands_for_parameter(const struct onnx_node *node)
{
    const Onnx__Attribute *value = onnx_attribute(node->message, "value");
    return node->op->rule == onnx_constant_of_shape && node->nin > 0 &&
           node->in[0] != REC_NONE && node->b->value[node->in[0]].starts &&
           node->out.rank > 0 &&
           (!value || !value->t || onnx_is_float(value->t->element));
}

/* Infers the shape of output node->output by the operator's rule; if the rule cannot, the
 * file must give the shape. */
static bool
run_rule(struct onnx_node *node, const char *output)
{
    char name[ONNX_NAME_MAX];
    node->out = (struct onnx_tensor){.shaped = false};
    node->flops = node->read = NAN;
    node->kind = node->op->kind;
    memset(node->gemm, 0, sizeof node->gemm);
    if (!node->op->rule(node))
        return false;
    if (!node->out.shaped)
        node->out = said_of(node->b, output);
    return node->out.shaped ||
           onnx_fail(node,
                     "the shape of its output '%s' cannot be inferred: let "
                     "onnx.shape_inference.infer_shapes write it into the file",
                     onnx_clean(output, name));
}

/* Infers the shape of output i, whose value *value becomes. */
static bool
shape_output(struct onnx_node *node, size_t i, struct onnx_value **value)
{
    const char *name = node->message->output[i];
    node->output = i;
    *value = &node->b->value[rec_map_get(&node->b->values, rec_str(name))];
    if (!run_rule(node, name))
        return false;
    (*value)->tensor = node->out;
    (*value)->made = true;
    return true;
}

/* Finds the layer or parameter of which a value is made, and adds the node's layer if it
 * needs one. `written` are the elements that this layer writes. */
static bool
place_output(struct onnx_node *node, struct onnx_value *value, double written)
{
    struct onnx_building *b = node->b;
    uint32_t param;
    if (is_constant(node, &param))
        value->param = stands_for_parameter(node) ? (uint32_t)(value - b->value) : param;
    else if (node->op->cost == ONNX_VIEW && node->in[0] != REC_NONE) {
        value->layer = b->value[node->in[0]].layer;
        value->param = b->value[node->in[0]].param;
    } else
        return add_layer(node, value, written);
    return true;
}

/* ONNX_APART: each output has a layer of its own, or none if it has no name. */
static bool
take_apart(struct onnx_node *node)
{
    struct onnx_value *value;
    for (size_t i = 0; i < node->message->n_output; i++)
        if (*node->message->output[i] && (!shape_output(node, i, &value) ||
                                          !place_output(node, value, node->out.count)))
            return false;
    return true;
}

/* ONNX_FIRST: outputs behind the first one belong to its layer. Only the file can give
 * their shapes, which are needed only if a node reads them. */
static bool
take_first(struct onnx_node *node)
{
    struct onnx_building *b = node->b;
    const Onnx__Node *message = node->message;
    struct onnx_value *first, *value;
    if (!*message->output[0])
        return onnx_fail(node, "its first output is left out");
    if (!shape_output(node, 0, &first) || !place_output(node, first, node->out.count))
        return false;
    for (size_t i = 1; i < message->n_output; i++) {
        if (!*message->output[i])
            continue;
        value = &b->value[rec_map_get(&b->values, rec_str(message->output[i]))];
        value->made = true;
        value->layer = first->layer;
        value->tensor = said_of(b, message->output[i]);
    }
    return true;
}

/* ONNX_TOGETHER: one layer writes all outputs that have names. It has the work that the
 * rule sets for the last of them, which is that of the whole node. */
static bool
take_together(struct onnx_node *node)
{
    struct onnx_value *first = NULL, *value;
    double written = 0;
    for (size_t i = 0; i < node->message->n_output; i++) {
        if (!*node->message->output[i])
            continue;
        if (!shape_output(node, i, &value))
            return false;
        written += node->out.count;
        first = first ? first : value;
    }
    if (!first)
        return onnx_fail(node, "all its outputs are left out");
    if (!place_output(node, first, written))
        return false;
    for (size_t i = 0; i < node->message->n_output; i++)
        if (*node->message->output[i]) {
            const char *name = node->message->output[i];
            value = &node->b->value[rec_map_get(&node->b->values, rec_str(name))];
            value->layer = first->layer;
        }
    return true;
}

static bool
take_node(struct onnx_node *node)
{
    if (!find_operator(node) || !find_inputs(node))
        return false;
    if (node->message->n_output == 0)
        return onnx_fail(node, "it has no output");
    switch (node->op->outputs) {
    case ONNX_APART: return take_apart(node);
    case ONNX_TOGETHER: return take_together(node);
    default: return take_first(node);
    }
}

/* ---- the network ---------------------------------------------------------- */

/* A network has one last layer. If several layers are read by no other, adds one that
 * reads them all. */
static bool
join_ends(struct onnx_building *b)
{
    struct input_network *network = b->network;
    struct input_layer layer = {.text = "Output", .kind = "memory"};
    bool *read = calloc(network->nlayers + 1, sizeof *read);
    uint32_t *ends = calloc(network->nlayers + 1, sizeof *ends);
    bool ok = (read && ends) || rec_fail_memory(b->err);
    size_t n = 0;
    for (size_t i = 0; ok && i < network->nreads; i++)
        read[network->read[i]] = true;
    for (uint32_t i = 0; ok && i < network->nlayers; i++)
        if (!read[i])
            ends[n++] = i;
    if (ok && n > 1)
        ok = input_network_add(network, &layer, ends, n, b->err);
    free(read);
    free(ends);
    return ok;
}

/* Do data reach a layer, which is no input? `of_data` says which layers before it they
 * reach. A layer that reads no other one is made of parameters. Copies of parameters are
 * taken to be those that each sample needs. */
static bool
is_of_data(const struct input_network *network, const struct input_layer *layer,
           const bool *of_data)
{
    for (size_t i = 0; i < layer->ninputs; i++)
        if (of_data[network->read[layer->first + i]])
            return true;
    return strcmp(layer->text, "Expand") == 0 || strcmp(layer->text, "Tile") == 0;
}

/* Scales all layers that data reach from the file's batch to the one that was asked for.
 * Of a matrix product, the number of products grows if there are several, else their rows
 * M. The first `inputs` layers are the inputs. */
static bool
scale(struct onnx_building *b, size_t inputs)
{
    struct input_network *network = b->network;
    double from = b->batch > 0 ? b->batch : 1, sum = 0;
    bool *of_data = calloc(network->nlayers, sizeof *of_data);
    if (!of_data)
        return rec_fail_memory(b->err);
    network->batch = b->options->batch > 0 ? b->options->batch : from;
    for (size_t i = 0; i < network->nlayers; i++) {
        struct input_layer *layer = &network->layer[i];
        double *rows = &layer->gemm[layer->gemm[0] > 1 ? 0 : 1], factor;
        of_data[i] = i < inputs || is_of_data(network, layer, of_data);
        factor = of_data[i] ? network->batch / from : 1;
        layer->flops *= factor;
        layer->in *= factor;
        layer->out *= factor;
        *rows = ceil(*rows * factor);
        sum += layer->flops + layer->in + layer->out + layer->weights;
    }
    free(of_data);
    return sum < 1e300 ||
           rec_fail(b->err, REC_DATA, "%s: it is more work than can be counted", b->name);
}

static bool
build(struct onnx_building *b)
{
    struct onnx_node node = {.b = b};
    size_t inputs;
    bool ok = index_infos(b) && add_initializers(b) && add_inputs(b) && add_outputs(b);
    if (ok)
        mark_reads(b);
    ok = ok && onnx_find_weights(b);
    if (ok)
        onnx_mark_trained(b);
    ok = ok && start_inputs(b) && onnx_check_samples(b);
    inputs = b->network->nlayers;
    for (size_t i = 0; ok && i < b->graph->n_node; i++) {
        node.message = b->graph->node[i];
        ok = take_node(&node);
    }
    free(node.in);
    if (ok && b->network->nlayers == inputs)
        ok = rec_fail(b->err, REC_DATA, "%s: nothing is computed from an input", b->name);
    return ok && join_ends(b) && scale(b, inputs);
}

bool
onnx_read(const char *path, const struct onnx_options *options,
          struct input_network *network, struct onnx_inputs *inputs,
          struct rec_error *err)
{
    Onnx__Model *model = onnx_message_read(path, err);
    struct onnx_building b = {.name = rec_input_name(path),
                              .options = options,
                              .graph = model ? model->graph : NULL,
                              .network = network,
                              .inputs = inputs,
                              .err = err};
    bool ok;
    *network = (struct input_network){.batch = 0};
    *inputs = (struct onnx_inputs){.weights = 0};
    ok = model && build(&b);
    rec_map_free(&b.values);
    rec_map_free(&b.infos);
    free(b.value);
    onnx_message_free(model);
    if (!ok)
        input_network_free(network);
    return ok;
}
