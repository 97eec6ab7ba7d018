/* Rules of the operators that make shapes, change them, and move elements. A rule that
 * needs integers whose values are not known leaves the output unshaped and returns true:
 * the file may give the shape. The elements of short lists of integers are
 * computed, too (onnx_tensor.value), since models compute shapes with these operators. */
#include "private.h"

static bool
too_many(struct onnx_node *node)
{
    return onnx_fail(node, "its output has too many elements, or a negative dimension");
}

static bool
no_input(struct onnx_node *node)
{
    return onnx_fail(node, "it has no input");
}

/* ---- constants ------------------------------------------------------------------- */

/* A constant is a tensor, an integer, a list of integers, or a number whose value no
 * shape needs. Other kinds, such as texts, get their shape from the file. */
bool
onnx_constant(struct onnx_node *node)
{
    const Onnx__Attribute *tensor = onnx_attribute(node->message, "value");
    const Onnx__Attribute *ints = onnx_attribute(node->message, "value_ints");
    const Onnx__Attribute *one = onnx_attribute(node->message, "value_int");
    if (tensor && tensor->t)
        return onnx_take_tensor(tensor->t, &node->out) || too_many(node);
    if (one)
        onnx_scalar(&node->out, one->i);
    else if (ints) {
        node->out = (struct onnx_tensor){.rank = 1, .known = true};
        node->out.dim[0] = (int64_t)ints->n_ints;
        if (!onnx_count(&node->out))
            return too_many(node);
        for (size_t i = 0; node->out.known && i < ints->n_ints; i++)
            node->out.value[i] = ints->ints[i];
    } else if (onnx_attribute(node->message, "value_float")) {
        onnx_scalar(&node->out, 0);
        node->out.known = false;
    }
    return true;
}

/* The output's shape is the input's list of integers, its elements are all `value`. */
bool
onnx_constant_of_shape(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    const Onnx__Attribute *of = onnx_attribute(node->message, "value");
    struct onnx_tensor value = {.shaped = false};
    if (!in || !in->known)
        return in ? true : no_input(node);
    if (of && of->t && !onnx_take_tensor(of->t, &value))
        return too_many(node);
    node->out.rank = (uint32_t)in->count;
    memcpy(node->out.dim, in->value, sizeof node->out.dim);
    node->out.known = value.known;
    if (!onnx_count(&node->out))
        return too_many(node);
    for (uint32_t i = 0; node->out.known && i < ONNX_RANK_MAX; i++)
        node->out.value[i] = value.value[0];
    return true;
}

/* The output is the list of the input's dimensions from `start` to `end`, which count
 * from the last one if they are negative, and are clamped. */
bool
onnx_shape(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    int64_t rank = in ? in->rank : 0, from, to;
    if (!in)
        return no_input(node);
    from = onnx_integer(node->message, "start", 0);
    to = onnx_integer(node->message, "end", rank);
    from += from < 0 && from >= -rank ? rank : 0;
    to += to < 0 && to >= -rank ? rank : 0;
    from = from < 0 ? 0 : from > rank ? rank : from;
    to = to < from ? from : to > rank ? rank : to;
    node->out = (struct onnx_tensor){.rank = 1, .dim = {to - from}, .known = true};
    for (int64_t i = from; i < to; i++)
        node->out.value[i - from] = in->dim[i];
    return onnx_count(&node->out);
}

bool
onnx_size(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    if (!in)
        return no_input(node);
    onnx_scalar(&node->out, (int64_t)in->count);
    return true;
}

/* Completes an output that has the input's elements in another shape. */
static bool
reshaped(struct onnx_node *node, const struct onnx_tensor *in)
{
    struct onnx_tensor *out = &node->out;
    out->known = in->known;
    memcpy(out->value, in->value, sizeof out->value);
    if (!onnx_count(out))
        return too_many(node);
    return out->count == in->count ||
           onnx_fail(node, "its input has %.0f elements, its output would have %.0f",
                     in->count, out->count);
}

/* A dimension of -1 takes the elements that the others leave (`rest`); one of 0 is that
 * of the input, unless `allowzero`. If the rest is no whole number, the dimension becomes
 * 0 and reshaped() reports the difference. */
bool
onnx_reshape(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    bool zeros = onnx_integer(node->message, "allowzero", 0) != 0;
    int64_t shape[ONNX_RANK_MAX];
    double rest = in ? in->count : 0;
    uint32_t n, open = ONNX_RANK_MAX;
    if (!in)
        return no_input(node);
    if (onnx_list(node, 1, "shape", shape, &n) <= 0)
        return true;
    node->out.rank = n;
    for (uint32_t i = 0; i < n; i++) {
        if (shape[i] == -1 && open == ONNX_RANK_MAX) {
            open = i;
            continue;
        }
        if (shape[i] == 0 && !zeros && i < in->rank)
            shape[i] = in->dim[i];
        node->out.dim[i] = shape[i];
        rest = shape[i] == 0 ? 0 : rest / (double)shape[i];
    }
    if (open < ONNX_RANK_MAX)
        node->out.dim[open] = rest == floor(rest) && rest >= 0 ? (int64_t)rest : 0;
    return reshaped(node, in);
}

/* Makes a matrix: the dimensions before the axis become its rows, the others its
 * columns. */
bool
onnx_flatten(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    int64_t axis = onnx_integer(node->message, "axis", 1);
    if (!in)
        return no_input(node);
    if (axis < -(int64_t)in->rank || axis > (int64_t)in->rank)
        return onnx_fail(node, "there is no axis %lld among %u", (long long)axis,
                         in->rank);
    axis += axis < 0 ? in->rank : 0;
    node->out = (struct onnx_tensor){.rank = 2, .dim = {1, 1}};
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t *dim = &node->out.dim[i < (uint32_t)axis ? 0 : 1];
        if (__builtin_mul_overflow(*dim, in->dim[i], dim))
            return too_many(node);
    }
    return reshaped(node, in);
}

/* Marks the axes that a node names, of a tensor of `rank`. 1: it names
 * some; 0: it names none; -1: they are not known; -2: there is no such axis, *err. */
static int
mark_axes(struct onnx_node *node, uint32_t rank, bool mark[ONNX_RANK_MAX], uint32_t *n)
{
    int64_t axes[ONNX_RANK_MAX];
    int there = onnx_list(node, 1, "axes", axes, n);
    uint32_t at;
    memset(mark, 0, ONNX_RANK_MAX * sizeof *mark);
    for (uint32_t i = 0; there > 0 && i < *n; i++) {
        if (!onnx_axis(node, axes[i], rank, &at))
            return -2;
        mark[at] = true;
    }
    return there;
}

/* Removes the named axes, or all dimensions of length 1. */
bool
onnx_squeeze(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    bool mark[ONNX_RANK_MAX];
    uint32_t n;
    int there;
    if (!in)
        return no_input(node);
    there = mark_axes(node, in->rank, mark, &n);
    if (there < 0)
        return there == -1;
    for (uint32_t i = 0; i < in->rank; i++)
        if (!(there ? mark[i] : in->dim[i] == 1))
            node->out.dim[node->out.rank++] = in->dim[i];
    return reshaped(node, in);
}

/* The axes count in the output's dimensions, of which there are n more than the
 * input's. */
bool
onnx_unsqueeze(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    bool mark[ONNX_RANK_MAX];
    int64_t axes[ONNX_RANK_MAX];
    uint32_t n, from = 0;
    int there;
    if (!in)
        return no_input(node);
    if (onnx_list(node, 1, "axes", axes, &n) < 0)
        return true;
    if (in->rank + n > ONNX_RANK_MAX)
        return onnx_fail(node, "more than %d dimensions", ONNX_RANK_MAX);
    there = mark_axes(node, in->rank + n, mark, &n);
    if (there < 0)
        return there == -1;
    for (uint32_t i = 0; i < in->rank + n; i++) {
        if (!mark[i] && from == in->rank)
            return onnx_fail(node, "an axis is there twice");
        node->out.dim[i] = mark[i] ? 1 : in->dim[from++];
    }
    node->out.rank = in->rank + n;
    return reshaped(node, in);
}

/* ---- moving elements --------------------------------------------------------------- */

bool
onnx_transpose(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    const Onnx__Attribute *order = onnx_attribute(node->message, "perm");
    bool used[ONNX_RANK_MAX] = {false};
    uint32_t at;
    if (!in)
        return no_input(node);
    if (order && order->n_ints != in->rank)
        return onnx_fail(node, "perm has %zu axes of %u", order->n_ints, in->rank);
    node->out.rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!onnx_axis(node, order ? order->ints[i] : in->rank - 1 - i, in->rank, &at))
            return false;
        if (used[at])
            return onnx_fail(node, "perm has axis %u twice", at);
        used[at] = true;
        node->out.dim[i] = in->dim[at];
    }
    return onnx_count(&node->out);
}

/* Lists of integers are concatenated, too: models build shapes so. */
bool
onnx_concat(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    struct onnx_tensor *out = &node->out;
    uint32_t at = 0, known = 0;
    if (!in)
        return no_input(node);
    if (!onnx_axis(node, onnx_integer(node->message, "axis", 0), in->rank, &at))
        return false;
    *out = *in;
    out->dim[at] = 0;
    out->known = true;
    for (size_t k = 0; k < node->nin; k++) {
        if (!(in = onnx_in(node, k)) || in->rank != out->rank)
            return onnx_fail(node, "its inputs must be of one rank");
        for (uint32_t i = 0; i < in->rank; i++)
            if (i != at && in->dim[i] != out->dim[i])
                return onnx_fail(node, "dimensions %lld and %lld do not go together",
                                 (long long)out->dim[i], (long long)in->dim[i]);
        if (__builtin_add_overflow(out->dim[at], in->dim[at], &out->dim[at]))
            return too_many(node);
        out->known = out->known && in->known && known + in->count <= ONNX_RANK_MAX;
        for (uint32_t i = 0; out->known && i < (uint32_t)in->count; i++)
            out->value[known++] = in->value[i];
    }
    return onnx_count(out) || too_many(node);
}

/* The number of elements that a slice takes of an axis. *from becomes the first of them.
 * Both ends count from the end of the axis if negative, and are then clamped, as ONNX
 * says: with a negative step, `to` may lie before the first element, at -1. */
static int64_t
slice_axis(int64_t length, int64_t *from, int64_t to, int64_t step)
{
    int64_t most = step > 0 ? length : length - 1;
    if (length == 0)
        return 0;
    *from += *from < 0 ? length : 0;
    to += to < 0 ? length : 0;
    *from = *from < 0 ? 0 : *from > most ? most : *from;
    to = to < (step > 0 ? 0 : -1) ? (step > 0 ? 0 : -1) : to > length ? length : to;
    if (step > 0)
        return to > *from ? (to - *from - 1) / step + 1 : 0;
    return *from > to ? (*from - to - 1) / -step + 1 : 0;
}

/* Only the elements of the slice are read, not the whole input. */
bool
onnx_slice(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    int64_t from[ONNX_RANK_MAX], to[ONNX_RANK_MAX], axes[ONNX_RANK_MAX],
        step[ONNX_RANK_MAX];
    uint32_t n, nto, naxes, nsteps, at;
    int has_axes, has_steps;
    if (!in)
        return no_input(node);
    has_axes = onnx_list(node, 3, "axes", axes, &naxes);
    has_steps = onnx_list(node, 4, "steps", step, &nsteps);
    if (onnx_list(node, 1, "starts", from, &n) <= 0 ||
        onnx_list(node, 2, "ends", to, &nto) <= 0 || has_axes < 0 || has_steps < 0)
        return true;
    if (nto != n || (has_axes && naxes != n) || (has_steps && nsteps != n))
        return onnx_fail(node, "starts, ends, axes and steps must be equally long");
    node->out = *in;
    for (uint32_t i = 0; i < n; i++) {
        int64_t by = has_steps ? step[i] : 1;
        if (by == 0 || by == INT64_MIN)
            return onnx_fail(node, "a step must not be 0");
        if (!onnx_axis(node, has_axes ? axes[i] : i, in->rank, &at))
            return false;
        node->out.dim[at] = slice_axis(in->dim[at], &from[i], to[i], by);
        for (int64_t k = 0; in->known && k < node->out.dim[at]; k++)
            node->out.value[k] = in->value[from[i] + k * by];
    }
    node->out.known = in->known && n <= 1;
    node->read = onnx_count(&node->out) ? node->out.count : 0;
    return true;
}

/* The parts have the lengths that are given; else they are equally long, except that the
 * last one may be shorter. */
bool
onnx_split(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    const Onnx__Attribute *said = onnx_attribute(node->message, "split");
    const struct onnx_tensor *given = onnx_in(node, 1);
    int64_t n = (int64_t)node->message->n_output, each, part;
    uint32_t at;
    if (!in)
        return no_input(node);
    if (!onnx_axis(node, onnx_integer(node->message, "axis", 0), in->rank, &at))
        return false;
    if (given && !given->known)
        return true;
    if ((given && given->count != (double)n) || (said && (int64_t)said->n_ints != n))
        return onnx_fail(node, "split must have one length for each output");
    each = in->dim[at] / n + (in->dim[at] % n != 0);
    part = in->dim[at] - each * (int64_t)node->output;
    part = part < 0 ? 0 : part < each ? part : each;
    if (given || said)
        part = given ? given->value[node->output] : said->ints[node->output];
    if (part < 0 || part > in->dim[at])
        return onnx_fail(node, "a part of %lld of %lld", (long long)part,
                         (long long)in->dim[at]);
    node->out = *in;
    node->out.known = false;
    node->out.dim[at] = part;
    node->read = onnx_count(&node->out) ? node->out.count : 0;
    return true;
}

/* Picks integers from a list by a list of indexes, if the values of both are known. */
static void
pick(struct onnx_tensor *out, const struct onnx_tensor *in,
     const struct onnx_tensor *index)
{
    out->known = in->known && index->known && in->rank == 1;
    for (uint32_t i = 0; out->known && i < (uint32_t)index->count; i++) {
        int64_t k = index->value[i] + (index->value[i] < 0 ? in->dim[0] : 0);
        out->known = k >= 0 && k < in->dim[0];
        out->value[i] = out->known ? in->value[k] : 0;
    }
}

/* The axis is replaced by the dimensions of the indexes. */
bool
onnx_gather(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0), *index = onnx_in(node, 1);
    struct onnx_tensor *out = &node->out;
    uint32_t at = 0;
    if (!in || !index)
        return no_input(node);
    if (!onnx_axis(node, onnx_integer(node->message, "axis", 0), in->rank, &at))
        return false;
    if (in->rank + index->rank - 1 > ONNX_RANK_MAX)
        return onnx_fail(node, "more than %d dimensions", ONNX_RANK_MAX);
    for (uint32_t i = 0; i < in->rank; i++) {
        for (uint32_t k = 0; i == at && k < index->rank; k++)
            out->dim[out->rank++] = index->dim[k];
        if (i != at)
            out->dim[out->rank++] = in->dim[i];
    }
    pick(out, in, index);
    if (!onnx_count(out))
        return too_many(node);
    /* Of data, the chosen elements are read; a parameter counts apart, as a whole. */
    node->read = index->count;
    if (node->b->value[node->in[0]].layer != REC_NONE)
        node->read += out->count;
    return true;
}

/* Broadcasts the input with the shape that is asked for, which may have fewer
 * dimensions. */
bool
onnx_expand(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0);
    int64_t shape[ONNX_RANK_MAX];
    struct onnx_tensor *out = &node->out;
    uint32_t n;
    if (!in)
        return no_input(node);
    if (onnx_list(node, 1, "shape", shape, &n) <= 0)
        return true;
    out->rank = n > in->rank ? n : in->rank;
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t x = i + in->rank < out->rank ? 1 : in->dim[i + in->rank - out->rank];
        int64_t y = i + n < out->rank ? 1 : shape[i + n - out->rank];
        if (x != y && x != 1 && y != 1)
            return onnx_fail(node, "dimensions %lld and %lld do not go together",
                             (long long)x, (long long)y);
        out->dim[i] = x == 1 ? y : x;
    }
    return onnx_count(out) || too_many(node);
}

/* Input 3 names the axes to pad; the file must then give the shape. */
bool
onnx_pad(struct onnx_node *node)
{
    const struct onnx_tensor *in = onnx_in(node, 0), *given = onnx_in(node, 1);
    const Onnx__Attribute *said = onnx_attribute(node->message, "pads");
    const int64_t *pads = given ? given->value : said ? said->ints : NULL;
    if (!in)
        return no_input(node);
    if (!pads || (given && !given->known) || onnx_in(node, 3))
        return true;
    if ((given ? given->count : (double)said->n_ints) != 2.0 * in->rank)
        return onnx_fail(node, "two pads for each of %u dimensions are needed", in->rank);
    node->out = *in;
    node->out.known = false;
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t *dim = &node->out.dim[i];
        if (__builtin_add_overflow(*dim, pads[i], dim) ||
            __builtin_add_overflow(*dim, pads[i + in->rank], dim))
            return too_many(node);
    }
    return onnx_count(&node->out) || too_many(node);
}

/* Infers nothing: the file must give the shape. */
bool
onnx_said(struct onnx_node *node)
{
    (void)node;
    return true;
}
