/* Tensors: their shapes, their integers, and the rules of operators that work element by
 * element. */
#include "private.h"

#include <stdio.h>

/* The most elements of a tensor, 2^53: beyond it not every integer is a double. */
#define COUNT_MAX 9007199254740992.0

bool
onnx_fail(const struct onnx_node *node, const char *format, ...)
{
    char text[400], name[ONNX_NAME_MAX], type[ONNX_NAME_MAX];
    const Onnx__Node *message = node->message;
    const char *called = *message->name          ? message->name
                         : message->n_output > 0 ? message->output[0]
                                                 : "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rec_fail(node->b->err, REC_DATA, "%s: node '%s' (%s): %s", node->b->name,
                    onnx_clean(called, name), onnx_clean(message->op_type, type), text);
}

bool
onnx_count(struct onnx_tensor *tensor)
{
    tensor->count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->dim[i] < 0)
            return false;
        tensor->count *= (double)tensor->dim[i];
        if (!(tensor->count <= COUNT_MAX) || (double)tensor->dim[i] > COUNT_MAX)
            return false;
    }
    tensor->shaped = true;
    tensor->known = tensor->known && tensor->rank <= 1 && tensor->count <= ONNX_RANK_MAX;
    return true;
}

void
onnx_scalar(struct onnx_tensor *tensor, int64_t value)
{
    *tensor = (struct onnx_tensor){.shaped = true, .count = 1, .known = true};
    tensor->value[0] = value;
}

/* Reads integer i of a tensor in the file, where it is in raw_data or in a list of its
 * type. False: the tensor has fewer integers, or elements of another type. */
static bool
take_integer(const Onnx__Tensor *message, size_t i, int64_t *value)
{
    enum { INT32 = 6, INT64 = 7, BOOL = 9 };
    size_t size = message->element == INT64 ? 8 : message->element == INT32 ? 4 : 1;
    int32_t word;
    if (message->element != INT32 && message->element != INT64 &&
        message->element != BOOL)
        return false;
    if (message->raw_data.len >= (i + 1) * size) {
        if (size == 8)
            memcpy(value, message->raw_data.data + 8 * i, 8);
        else if (size == 4) {
            memcpy(&word, message->raw_data.data + 4 * i, 4);
            *value = word;
        } else
            *value = message->raw_data.data[i];
    } else if (size == 8 && i < message->n_int64_data)
        *value = message->int64_data[i];
    else if (size < 8 && i < message->n_int32_data)
        *value = message->int32_data[i];
    else
        return false;
    return true;
}

bool
onnx_take_tensor(const Onnx__Tensor *message, struct onnx_tensor *tensor)
{
    *tensor = (struct onnx_tensor){.known = true};
    if (message->n_dim > ONNX_RANK_MAX)
        return false;
    for (; tensor->rank < message->n_dim; tensor->rank++)
        tensor->dim[tensor->rank] = message->dim[tensor->rank];
    if (!onnx_count(tensor))
        return false;
    for (size_t i = 0; tensor->known && (double)i < tensor->count; i++)
        tensor->known = take_integer(message, i, &tensor->value[i]);
    return true;
}

const struct onnx_tensor *
onnx_in(const struct onnx_node *node, size_t i)
{
    if (i >= node->nin || node->in[i] == REC_NONE)
        return NULL;
    return &node->b->value[node->in[i]].tensor;
}

double
onnx_reads(const struct onnx_node *node)
{
    double sum = 0;
    for (size_t i = 0; i < node->nin; i++) {
        const struct onnx_tensor *in = onnx_in(node, i);
        bool seen = !in || onnx_is_parameter(node, i);
        for (size_t k = 0; k < i && !seen; k++)
            seen = node->in[k] == node->in[i];
        sum += seen ? 0 : in->count;
    }
    return sum;
}

size_t
onnx_parameters(const struct onnx_node *node)
{
    const struct onnx_value *value = node->b->value;
    size_t n = 0;
    for (size_t i = 0; i < node->nin; i++) {
        bool seen = !onnx_is_parameter(node, i);
        for (size_t k = 0; k < i && !seen; k++)
            seen = onnx_is_parameter(node, k) &&
                   value[node->in[k]].param == value[node->in[i]].param;
        n += !seen;
    }
    return n;
}

int
onnx_list(const struct onnx_node *node, size_t input, const char *attribute,
          int64_t list[ONNX_RANK_MAX], uint32_t *n)
{
    const struct onnx_tensor *in = onnx_in(node, input);
    const Onnx__Attribute *said = onnx_attribute(node->message, attribute);
    const int64_t *from = in ? in->value : said ? said->ints : NULL;
    *n = 0;
    if (in ? !in->known : said && said->n_ints > ONNX_RANK_MAX)
        return -1;
    if (!in && !said)
        return 0;
    *n = (uint32_t)(in ? in->count : (double)said->n_ints);
    for (uint32_t i = 0; i < *n; i++)
        list[i] = from[i];
    return 1;
}

bool
onnx_axis(struct onnx_node *node, int64_t axis, uint32_t rank, uint32_t *at)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onnx_fail(node, "there is no axis %lld among %u", (long long)axis, rank);
    *at = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

/* ---- element by element ------------------------------------------------------- */

/* Broadcasts an input's shape with the output's shape so far, by numpy's rules:
 * dimensions are paired from the last one, and 1 fits any length. */
static bool
broadcast(struct onnx_node *node, const struct onnx_tensor *in)
{
    struct onnx_tensor *out = &node->out, was = *out;
    if (in->rank > out->rank) {
        uint32_t more = in->rank - was.rank;
        out->rank = in->rank;
        for (uint32_t i = 0; i < out->rank; i++)
            out->dim[i] = i < more ? 1 : was.dim[i - more];
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t *to = &out->dim[out->rank - in->rank + i];
        if (*to == 1)
            *to = in->dim[i];
        else if (in->dim[i] != 1 && in->dim[i] != *to)
            return onnx_fail(node, "dimensions %lld and %lld do not go together",
                             (long long)*to, (long long)in->dim[i]);
    }
    return true;
}

static bool
is_operator(const struct onnx_node *node, const char *name)
{
    return strcmp(node->op->name, name) == 0;
}

/* Computes an operator on single integers; false: the result is not known. Only operators
 * that models use on shapes are computed. */
static bool
calculate(const struct onnx_node *node, const int64_t x[3], int64_t *y)
{
    if (node->nin == 1) {
        *y = x[0];
        return is_operator(node, "Cast");
    }
    if (is_operator(node, "Add"))
        return !__builtin_add_overflow(x[0], x[1], y);
    if (is_operator(node, "Sub"))
        return !__builtin_sub_overflow(x[0], x[1], y);
    if (is_operator(node, "Mul"))
        return !__builtin_mul_overflow(x[0], x[1], y);
    if (is_operator(node, "Div")) {
        bool sane = x[1] != 0 && !(x[0] == INT64_MIN && x[1] == -1);
        *y = sane ? x[0] / x[1] : 0;
        return sane;
    }
    *y = is_operator(node, "Equal") ? x[0] == x[1] : x[0] ? x[1] : x[2];
    return is_operator(node, "Equal") || is_operator(node, "Where");
}

/* Computes the integers of the output, if it is short and the inputs' are known (constant
 * folding). */
static void
fold(struct onnx_node *node)
{
    struct onnx_tensor *out = &node->out;
    out->known = node->nin <= 3 && out->rank <= 1 && out->count <= ONNX_RANK_MAX;
    for (uint32_t i = 0; out->known && i < (uint32_t)out->count; i++) {
        int64_t x[3] = {0};
        for (size_t k = 0; k < node->nin; k++) {
            const struct onnx_tensor *in = onnx_in(node, k);
            if (!in || !in->known) {
                out->known = false;
                return;
            }
            x[k] = in->value[in->count == 1 ? 0 : i];
        }
        out->known = calculate(node, x, &out->value[i]);
    }
}

bool
onnx_pointwise(struct onnx_node *node)
{
    size_t operands = 0;
    for (size_t i = 0; i < node->nin; i++) {
        const struct onnx_tensor *in = onnx_in(node, i);
        operands += in != NULL;
        if (in && !broadcast(node, in))
            return false;
    }
    if (operands == 0)
        return onnx_fail(node, "it has no input");
    if (!onnx_count(&node->out))
        return onnx_fail(node, "its output has too many elements");
    if (is_operator(node, "Sum"))
        node->flops = node->out.count * (double)(operands - 1);
    fold(node);
    return true;
}

/* The output has the shape of the first input, whatever the other inputs are. */
bool
onnx_same(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    if (!in)
        return onnx_fail(node, "it has no input");
    node->out = *in;
    node->out.known = in->known && node->op->cost == ONNX_VIEW;
    return true;
}
