/* The operators Attention and RotaryEmbedding, which ONNX has since version 23 of its
 * operators (onnx.ai). Attention is counted as the fused attention of named networks
 * (lib/input/attention.c), so that a model costs the same in both forms. */
#include "private.h"

/* The shape of an operand. Its heads are a dimension of their own (samples, heads,
 * length, width), or lie side by side in the last of three (samples, length, heads x
 * width). */
struct heads {
    int64_t samples, heads, length, width;
};

/* `name` is the attribute with the number of heads, which only three dimensions need. */
static bool
read_heads(struct onnx_node *node, const struct onnx_tensor *x, const char *name,
           struct heads *h)
{
    if (x->rank == 4) {
        *h = (struct heads){x->dim[0], x->dim[1], x->dim[2], x->dim[3]};
        return true;
    }
    if (x->rank != 3)
        return onnx_fail(node, "its operands must have 3 or 4 dimensions, got %u",
                         x->rank);
    *h = (struct heads){.samples = x->dim[0], .length = x->dim[1]};
    h->heads = onnx_integer(node->message, name, 0);
    if (h->heads < 1 || x->dim[2] % h->heads != 0)
        return onnx_fail(node, "%s must divide the last of 3 dimensions, %lld, got %lld",
                         name, (long long)x->dim[2], (long long)h->heads);
    h->width = x->dim[2] / h->heads;
    return true;
}

/* ---- attention ------------------------------------------------------------ */

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

struct attention {
    struct heads q, k, v;
    int64_t past;  /* keys of earlier calls (a KV cache) */
    int64_t total; /* all keys: of earlier calls and of this one */
};

/* Checks past_key or past_value: the keys or values of earlier calls, with their heads as
 * a dimension of their own. */
static bool
check_past(struct onnx_node *node, const struct onnx_tensor *past,
           const struct heads *now, int64_t length)
{
    return (past->rank == 4 && past->dim[0] == now->samples &&
            past->dim[1] == now->heads && past->dim[2] == length &&
            past->dim[3] == now->width) ||
           onnx_fail(node, "past_key and past_value must have the samples, heads and "
                           "width of K and V, and the same length");
}

/* The mask is broadcast to samples, heads, queries and keys. It may have fewer keys than
 * K: the keys behind its end are then masked. */
static bool
check_mask(struct onnx_node *node, const struct attention *a)
{
    const struct onnx_tensor *mask = onnx_in(node, MASK);
    const int64_t to[4] = {a->q.samples, a->q.heads, a->q.length, a->total};
    if (!mask)
        return true;
    if (mask->rank > 4)
        return onnx_fail(node, "its mask has %u dimensions, more than 4", mask->rank);
    for (uint32_t i = 0; i < mask->rank; i++) {
        uint32_t at = 4 - mask->rank + i;
        if (mask->dim[i] != 1 && mask->dim[i] != to[at] &&
            (at < 3 || mask->dim[i] > to[at]))
            return onnx_fail(node, "dimension %u of its mask is %lld, not %lld", i,
                             (long long)mask->dim[i], (long long)to[at]);
    }
    return true;
}

static bool
read_attention(struct onnx_node *node, struct attention *a)
{
    const struct onnx_tensor *q = onnx_in(node, Q), *k = onnx_in(node, K),
                             *v = onnx_in(node, V);
    const struct onnx_tensor *key = onnx_in(node, PAST_KEY),
                             *value = onnx_in(node, PAST_VALUE);
    if (!q || !k || !v)
        return onnx_fail(node, "it needs Q, K and V");
    if (q->rank != k->rank || q->rank != v->rank)
        return onnx_fail(node, "Q, K and V must have the same number of dimensions");
    if (!read_heads(node, q, "q_num_heads", &a->q) ||
        !read_heads(node, k, "kv_num_heads", &a->k) ||
        !read_heads(node, v, "kv_num_heads", &a->v))
        return false;
    if (a->q.samples != a->k.samples || a->k.samples != a->v.samples ||
        a->k.heads != a->v.heads || a->k.length != a->v.length ||
        a->q.width != a->k.width)
        return onnx_fail(node,
                         "Q, K and V must have the same number of samples, K and V the "
                         "same heads and length, and Q the width of K");
    if (a->k.heads < 1 || a->q.heads % a->k.heads != 0)
        return onnx_fail(node, "%lld heads of Q cannot share %lld of K",
                         (long long)a->q.heads, (long long)a->k.heads);
    if (!key != !value)
        return onnx_fail(node, "past_key and past_value go together");
    a->past = key && key->rank == 4 ? key->dim[2] : 0;
    if (key && (!check_past(node, key, &a->k, a->past) ||
                !check_past(node, value, &a->v, a->past)))
        return false;
    if (__builtin_add_overflow(a->past, a->k.length, &a->total))
        return onnx_fail(node, "it has more keys than can be counted");
    return check_mask(node, a);
}

/* The number of pairs of a query and a key to which it attends, in one sample and head.
 * Every query attends to the keys of earlier calls. With a causal mask it attends to the
 * new keys up to its own, and the diagonal counts half, as in a named network (half of
 * the square). A query beyond the last new key attends to all keys. */
static double
count_pairs(const struct attention *a, bool causal)
{
    double n = (double)a->q.length, total = (double)a->total;
    double below = fmin(n, (double)a->k.length);
    if (!causal)
        return n * total;
    return below * (double)a->past + below * below / 2 + (n - below) * total;
}

static bool
shape_attention(struct onnx_node *node, const struct attention *a)
{
    const struct onnx_tensor *q = onnx_in(node, Q);
    struct onnx_tensor *out = &node->out;
    out->rank = 4;
    out->dim[0] = a->q.samples;
    switch (node->output) {
    case 0:
        *out = (struct onnx_tensor){.rank = q->rank};
        memcpy(out->dim, q->dim, sizeof out->dim);
        if (q->rank == 4)
            out->dim[3] = a->v.width;
        else if (__builtin_mul_overflow(a->q.heads, a->v.width, &out->dim[2]))
            out->dim[2] = -1;
        break;
    case 1:
    case 2:
        out->dim[1] = a->k.heads;
        out->dim[2] = a->total;
        out->dim[3] = node->output == 1 ? a->k.width : a->v.width;
        break;
    case 3:
        out->dim[1] = a->q.heads;
        out->dim[2] = a->q.length;
        out->dim[3] = a->total;
        break;
    default: return onnx_fail(node, "it has more than 4 outputs");
    }
    return onnx_count(out) || onnx_fail(node, "its output has too many elements");
}

bool
onnx_attention(struct onnx_node *node)
{
    /* operations per score, as many as the operators Softmax and Tanh take */
    enum { SOFTMAX = 5, CAP = 8 };
    bool causal = onnx_integer(node->message, "is_causal", 0) != 0;
    struct attention a = {.past = 0};
    double each;
    if (onnx_in(node, LENGTHS))
        return onnx_fail(
            node, "nonpad_kv_seqlen is not covered: its lengths depend on the data");
    if (onnx_integer(node->message, "left_window_size", -1) >= 0 ||
        onnx_integer(node->message, "right_window_size", -1) >= 0)
        return onnx_fail(node, "a window of keys is not covered");
    if (!read_attention(node, &a) || !shape_attention(node, &a))
        return false;
    each = 2 * (double)a.k.width + 2 * (double)a.v.width + SOFTMAX;
    each += onnx_in(node, MASK) ? 1 : 0;
    each += onnx_number(node->message, "softcap") > 0 ? CAP : 0;
    node->flops =
        (double)a.q.samples * (double)a.q.heads * count_pairs(&a, causal) * each;
    node->read = onnx_reads(node);
    return true;
}

/* ---- positions ------------------------------------------------------------ */

/* Turns each pair of elements by an angle, which takes 4 products and 2 sums: 3
 * operations per element. */
bool
onnx_rotary(struct onnx_node *node)
{
    enum { EACH = 3 };
    const struct onnx_tensor *x = onnx_in(node, 0), *rows = onnx_in(node, 3);
    int64_t turned = onnx_integer(node->message, "rotary_embedding_dim", 0);
    struct heads h = {.samples = 0};
    double tokens;
    if (!x)
        return onnx_fail(node, "it has no input");
    if (node->output > 0)
        return onnx_fail(node, "it has more than one output");
    if (!read_heads(node, x, "num_heads", &h))
        return false;
    turned = turned == 0 ? h.width : turned;
    if (turned < 0 || turned > h.width || turned % 2 != 0)
        return onnx_fail(node, "%lld elements of %lld cannot be turned in pairs",
                         (long long)turned, (long long)h.width);
    if (rows &&
        (rows->rank != 2 || rows->dim[0] != h.samples || rows->dim[1] != h.length))
        return onnx_fail(node, "position_ids must be %lld by %lld", (long long)h.samples,
                         (long long)h.length);
    for (size_t i = 1; i < 3; i++) {
        const struct onnx_tensor *angles = onnx_in(node, i);
        bool fits = angles && angles->rank == (rows ? 2 : 3) &&
                    angles->dim[angles->rank - 1] == turned / 2;
        if (!fits ||
            (!rows && (angles->dim[0] != h.samples || angles->dim[1] != h.length)))
            return onnx_fail(
                node,
                "the dimensions of cos_cache and sin_cache must be %s, and %lld "
                "angles",
                rows ? "positions" : "samples, their length", (long long)(turned / 2));
    }
    tokens = (double)h.samples * (double)h.length;
    node->out = *x;
    node->out.known = false;
    node->flops = EACH * tokens * (double)h.heads * (double)turned;
    node->read = x->count + tokens * (double)turned + (rows ? rows->count : 0);
    return true;
}
