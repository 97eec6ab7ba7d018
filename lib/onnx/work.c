/* Rules of the operators that compute: convolutions, pools, matrix products, reductions.
 * A multiply-add counts as two operations, as in all of rampipe. */
#include "private.h"

/* A window that slides over the dimensions of an image. */
struct window {
    uint32_t n; /* dimensions, without samples and channels */
    int64_t kernel[ONNX_RANK_MAX], stride[ONNX_RANK_MAX], dilation[ONNX_RANK_MAX];
    int64_t before[ONNX_RANK_MAX], pad[ONNX_RANK_MAX]; /* in front; sum of both sides */
    bool same; /* auto_pad: padded so that the output has length / stride elements */
    bool up;   /* ceil_mode: a window that only fits in part counts */
};

/* The largest length in an attribute, so that products of two lengths do not overflow. */
#define LENGTH_MAX ((int64_t)1 << 30)

/* Reads the n integers of an attribute; without it, all are `otherwise`. They must not be
 * less than `least`. */
static bool
read_lengths(struct onnx_node *node, const char *name, uint32_t n, int64_t least,
             int64_t otherwise, int64_t *list)
{
    const Onnx__Attribute *said = onnx_attribute(node->message, name);
    if (said && said->n_ints != n)
        return onnx_fail(node, "%s must have %u numbers, got %zu", name, n, said->n_ints);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = said ? said->ints[i] : otherwise;
        if (list[i] < least || list[i] > LENGTH_MAX)
            return onnx_fail(node, "%s must be from %lld to %lld, got %lld", name,
                             (long long)least, (long long)LENGTH_MAX, (long long)list[i]);
    }
    return true;
}

static bool
is_said(const Onnx__Attribute *attribute, const char *word)
{
    return attribute && attribute->s.len == strlen(word) &&
           memcmp(attribute->s.data, word, attribute->s.len) == 0;
}

/* Reads the attributes of a window. `kernel` is its size as the weights give it; NULL:
 * the attribute kernel_shape gives it. */
static bool
read_window(struct onnx_node *node, uint32_t n, const int64_t *kernel, struct window *w)
{
    const Onnx__Attribute *pad = onnx_attribute(node->message, "auto_pad");
    int64_t pads[2 * ONNX_RANK_MAX];
    *w = (struct window){.n = n, .up = onnx_integer(node->message, "ceil_mode", 0) != 0};
    w->same = is_said(pad, "SAME_UPPER") || is_said(pad, "SAME_LOWER");
    if (!kernel && !onnx_attribute(node->message, "kernel_shape"))
        return onnx_fail(node, "it has no kernel_shape");
    if (!(kernel ? true : read_lengths(node, "kernel_shape", n, 1, 1, w->kernel)) ||
        !read_lengths(node, "strides", n, 1, 1, w->stride) ||
        !read_lengths(node, "dilations", n, 1, 1, w->dilation) ||
        !read_lengths(node, "pads", 2 * n, -LENGTH_MAX, 0, pads))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (kernel)
            w->kernel[i] = kernel[i];
        if (w->kernel[i] < 1 || w->kernel[i] > LENGTH_MAX)
            return onnx_fail(node,
                             "a dimension of its kernel is 0, negative or too large");
        if (is_said(pad, "VALID"))
            continue;
        w->before[i] = pads[i];
        w->pad[i] = pads[i] + pads[i + n];
    }
    return true;
}

static double
window_count(const struct window *w)
{
    double count = 1;
    for (uint32_t i = 0; i < w->n; i++)
        count *= (double)w->kernel[i];
    return count;
}

/* The number of places of the window in dimension i of length x; -1: it does not fit.
 * With ceil_mode the last window may fit in part, but must not begin behind the image. */
static int64_t
slide(const struct window *w, uint32_t i, int64_t x)
{
    int64_t s = w->stride[i];
    int64_t rest, n;
    if (w->same)
        return x / s + (x % s != 0);
    if (x > ((int64_t)1 << 53))
        return -1;
    rest = x + w->pad[i] - w->dilation[i] * (w->kernel[i] - 1) - 1 + (w->up ? s - 1 : 0);
    if (rest < 0)
        return -1;
    n = rest / s + 1;
    return w->up && n > 1 && (n - 1) * s >= x + w->before[i] ? n - 1 : n;
}

/* The first input, which must have samples, channels and at least one more dimension;
 * NULL: *err. */
static const struct onnx_tensor *
image(struct onnx_node *node)
{
    const struct onnx_tensor *x = onnx_in(node, 0);
    if (x && x->rank >= 3)
        return x;
    onnx_fail(node, "its input must have samples, channels and dimensions, 3 or more");
    return NULL;
}

/* Makes node->out the shape that results when the window slides over x. */
static bool
slide_over(struct onnx_node *node, const struct onnx_tensor *x, const struct window *w,
           int64_t channels)
{
    struct onnx_tensor *out = &node->out;
    out->rank = x->rank;
    out->dim[0] = x->dim[0];
    out->dim[1] = channels;
    for (uint32_t i = 0; i < w->n; i++)
        if ((out->dim[i + 2] = slide(w, i, x->dim[i + 2])) < 0)
            return onnx_fail(node, "its window does not fit into dimension %u", i + 2);
    return onnx_count(out) || onnx_fail(node, "its output has too many elements");
}

/* The second input, the weights, which must have as many dimensions as x; NULL: *err. */
static const struct onnx_tensor *
weights_of(struct onnx_node *node, const struct onnx_tensor *x)
{
    const struct onnx_tensor *weights = onnx_in(node, 1);
    if (weights && weights->rank == x->rank)
        return weights;
    onnx_fail(node, "its weights must have %u dimensions, as its input has", x->rank);
    return NULL;
}

bool
onnx_convolution(struct onnx_node *node)
{
    const struct onnx_tensor *x = image(node);
    const struct onnx_tensor *weights = x ? weights_of(node, x) : NULL;
    int64_t group = onnx_integer(node->message, "group", 1);
    struct window w;
    if (!weights)
        return false;
    if (group < 1 || x->dim[1] % group != 0 || x->dim[1] / group != weights->dim[1] ||
        weights->dim[0] % group != 0)
        return onnx_fail(
            node, "its weights take %lld channels a group, its input has %lld in %lld",
            (long long)weights->dim[1], (long long)x->dim[1], (long long)group);
    if (!read_window(node, x->rank - 2, weights->dim + 2, &w) ||
        !slide_over(node, x, &w, weights->dim[0]))
        return false;
    node->flops = 2 * node->out.count * (double)weights->dim[1] * window_count(&w);
    return true;
}

/* ConvTranspose: each element of the input is spread over a window. */
bool
onnx_transposed(struct onnx_node *node)
{
    const struct onnx_tensor *x = image(node);
    const struct onnx_tensor *weights = x ? weights_of(node, x) : NULL;
    int64_t group = onnx_integer(node->message, "group", 1), more[ONNX_RANK_MAX];
    struct onnx_tensor *out = &node->out;
    struct window w;
    if (!weights)
        return false;
    if (group < 1 || group > LENGTH_MAX || x->dim[1] != weights->dim[0] ||
        weights->dim[1] > LENGTH_MAX)
        return onnx_fail(node, "its weights take %lld channels, its input has %lld",
                         (long long)weights->dim[0], (long long)x->dim[1]);
    if (!read_window(node, x->rank - 2, weights->dim + 2, &w) ||
        !read_lengths(node, "output_padding", w.n, 0, 0, more))
        return false;
    node->flops = 2 * x->count * (double)weights->dim[1] * window_count(&w);
    if (w.same || onnx_attribute(node->message, "output_shape"))
        return true; /* the file must give the shape */
    out->rank = x->rank;
    out->dim[0] = x->dim[0];
    out->dim[1] = weights->dim[1] * group;
    for (uint32_t i = 0; i < w.n; i++) {
        if (x->dim[i + 2] > LENGTH_MAX)
            return onnx_fail(node, "its output has too many elements");
        out->dim[i + 2] = w.stride[i] * (x->dim[i + 2] - 1) + more[i] +
                          w.dilation[i] * (w.kernel[i] - 1) + 1 - w.pad[i];
    }
    return onnx_count(out) ||
           onnx_fail(node, "its output has a negative dimension, or too many elements");
}

bool
onnx_pool(struct onnx_node *node)
{
    const struct onnx_tensor *x = image(node);
    struct window w;
    if (!x || !read_window(node, x->rank - 2, NULL, &w) ||
        !slide_over(node, x, &w, x->dim[1]))
        return false;
    node->flops = node->out.count * window_count(&w);
    return true;
}

bool
onnx_global_pool(struct onnx_node *node)
{
    const struct onnx_tensor *x = image(node);
    if (!x)
        return false;
    node->out.rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        node->out.dim[i] = i < 2 ? x->dim[i] : 1;
    node->flops = x->count;
    return onnx_count(&node->out);
}

/* LRN: a window of channels. */
bool
onnx_window(struct onnx_node *node)
{
    if (!onnx_same(node))
        return false;
    node->flops = node->out.count * (double)onnx_integer(node->message, "size", 1);
    return node->flops >= 0 || onnx_fail(node, "size must not be negative");
}

/* ---- matrix products ------------------------------------------------------------ */

/* Completes a node that computes `batch` products of an M x K and a K x N matrix. */
static bool
multiply(struct onnx_node *node, double batch, double m, int64_t k, int64_t n)
{
    if (!onnx_count(&node->out))
        return onnx_fail(node, "its output has too many elements");
    node->flops = 2 * node->out.count * (double)k;
    node->gemm[0] = batch;
    node->gemm[1] = m;
    node->gemm[2] = (double)n;
    node->gemm[3] = (double)k;
    return true;
}

bool
onnx_gemm(struct onnx_node *node)
{
    const struct onnx_tensor *a = onnx_in(node, 0), *b = onnx_in(node, 1);
    int ta = onnx_integer(node->message, "transA", 0) != 0;
    int tb = onnx_integer(node->message, "transB", 0) != 0;
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return onnx_fail(node, "its operands must be two matrices");
    if (a->dim[1 - ta] != b->dim[tb])
        return onnx_fail(node,
                         "a matrix of %lld columns is multiplied by one of %lld rows",
                         (long long)a->dim[1 - ta], (long long)b->dim[tb]);
    node->out.rank = 2;
    node->out.dim[0] = a->dim[ta];
    node->out.dim[1] = b->dim[1 - tb];
    return multiply(node, 1, (double)a->dim[ta], a->dim[1 - ta], b->dim[1 - tb]);
}

/* The dimensions of A and B in front of the matrices, broadcast. */
static bool
batches(struct onnx_node *node, const struct onnx_tensor *a, const struct onnx_tensor *b)
{
    struct onnx_tensor *out = &node->out;
    out->rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t x = a->rank - 2 + i < out->rank ? 1 : a->dim[a->rank - 2 + i - out->rank];
        int64_t y = b->rank - 2 + i < out->rank ? 1 : b->dim[b->rank - 2 + i - out->rank];
        if (x != y && x != 1 && y != 1)
            return onnx_fail(node, "%lld and %lld matrices do not go together",
                             (long long)x, (long long)y);
        out->dim[i] = x == 1 ? y : x;
    }
    return onnx_count(out) || onnx_fail(node, "its output has too many elements");
}

/* Follows numpy's rules: a vector on the left is a row, a vector on the right a column,
 * and the output does not have the dimension that was added. */
bool
onnx_matmul(struct onnx_node *node)
{
    const struct onnx_tensor *x = onnx_in(node, 0), *y = onnx_in(node, 1);
    struct onnx_tensor a, b, *out = &node->out;
    int64_t n, k;
    double batch, m;
    bool rows;
    if (!x || !y || x->rank < 1 || y->rank < 1)
        return onnx_fail(node, "its operands must be two matrices");
    a = *x;
    b = *y;
    if (a.rank == 1) {
        a.dim[1] = a.dim[0];
        a.dim[0] = 1;
        a.rank = 2;
    }
    if (b.rank == 1)
        b.dim[b.rank++] = 1;
    m = (double)a.dim[a.rank - 2];
    k = a.dim[a.rank - 1];
    n = b.dim[b.rank - 1];
    if (k != b.dim[b.rank - 2])
        return onnx_fail(node,
                         "a matrix of %lld columns is multiplied by one of %lld rows",
                         (long long)k, (long long)b.dim[b.rank - 2]);
    if (!batches(node, &a, &b))
        return false;
    /* If the right operand is one matrix, the rows of all matrices of the left one are
     * multiplied by it in one product. */
    rows = b.rank == 2;
    batch = rows ? 1 : out->count;
    if (rows)
        m *= out->count;
    if (x->rank > 1)
        out->dim[out->rank++] = a.dim[a.rank - 2];
    if (y->rank > 1)
        out->dim[out->rank++] = n;
    return multiply(node, batch, m, k, n);
}

/* ---- reductions ------------------------------------------------------------------ */

/* Without axes, all dimensions are reduced. ArgMax and ArgMin have an attribute `axis`
 * instead. One operation per element of the input. */
bool
onnx_reduce(struct onnx_node *node)
{
    const struct onnx_tensor *x = onnx_in(node, 0);
    bool keep = onnx_integer(node->message, "keepdims", 1) != 0, gone[ONNX_RANK_MAX];
    int64_t axes[ONNX_RANK_MAX];
    uint32_t n, at;
    int there;
    if (!x)
        return onnx_fail(node, "it has no input");
    there = onnx_list(node, 1, "axes", axes, &n);
    if (there < 0)
        return true;
    if (there == 0 && strncmp(node->op->name, "Arg", 3) == 0) {
        axes[0] = onnx_integer(node->message, "axis", 0);
        n = 1;
    }
    for (uint32_t i = 0; i < x->rank; i++)
        gone[i] = n == 0 && !onnx_integer(node->message, "noop_with_empty_axes", 0);
    for (uint32_t i = 0; i < n; i++) {
        if (!onnx_axis(node, axes[i], x->rank, &at))
            return false;
        gone[at] = true;
    }
    for (uint32_t i = 0; i < x->rank; i++)
        if (!gone[i] || keep)
            node->out.dim[node->out.rank++] = gone[i] ? 1 : x->dim[i];
    node->flops = x->count;
    return onnx_count(&node->out);
}

/* TopK counts one operation per element of the input: how a device finds the largest
 * elements is not modelled. */
bool
onnx_top(struct onnx_node *node)
{
    const struct onnx_tensor *x = onnx_in(node, 0);
    const Onnx__Attribute *said = onnx_attribute(node->message, "k");
    int64_t k[ONNX_RANK_MAX];
    uint32_t at, n;
    int there;
    if (!x)
        return onnx_fail(node, "it has no input");
    if (node->output > 1)
        return onnx_fail(node, "it has more than 2 outputs");
    if (!onnx_axis(node, onnx_integer(node->message, "axis", -1), x->rank, &at))
        return false;
    node->flops = x->count;
    there = onnx_list(node, 1, "", k, &n);
    if (there < 0)
        return true;
    if (there == 0 && said)
        k[0] = said->i;
    else if (n != 1)
        return onnx_fail(node, "K must be one number");
    if (k[0] < 0 || k[0] > x->dim[at])
        return onnx_fail(node, "it takes %lld of %lld elements", (long long)k[0],
                         (long long)x->dim[at]);
    node->out = *x;
    node->out.known = false;
    node->out.dim[at] = k[0];
    return onnx_count(&node->out);
}
