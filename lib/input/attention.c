/* The attention of transformers: its flops, and the elements that it reads and writes.
 * Queries, keys and values come from one product (grouped()) or from short vectors
 * (latent(), DeepSeek-V2, 2024, section 2.1). The attention itself is one fused layer, as
 * in FlashAttention (Dao et al., 2022), or three layers that keep all scores in
 * memory. */
#include "transformer.h"

#include <stdio.h>

double
input_score_passes(double bytes)
{
    return (bytes < 4 ? 37 : 33) / bytes;
}

/* One attention of queries over keys. Numbers of elements are those of the whole
 * batch. */
struct scores {
    uint32_t q;          /* the layer that makes the queries */
    uint32_t kv;         /* the layer that makes keys and values; INPUT_NONE: q does */
    uint32_t more;       /* another layer that is read, or INPUT_NONE */
    double nkeys;        /* keys of one sample */
    double keys, values; /* elements of all keys, of all values */
    double bias;         /* elements of the bias that is added to scores; 0: none */
    unsigned window;     /* a query attends to at most this number of keys; 0: all */
    bool causal;
};

static unsigned
value_width(const struct input_transformer *t)
{
    return t->value_width > 0 ? t->value_width : t->head_width;
}

/* The operations on one score between the two products: 5 for the softmax, 1 for a bias,
 * 8 for the tanh that bounds it. */
static double
score_flops(const struct scores *s, const struct input_transformer *t)
{
    return 5 + (s->bias > 0 || t->alibi ? 1 : 0) + (t->cap_scores ? 8 : 0);
}

/* The number of pairs of a query and a key to which it attends, in a sample of n queries.
 * A causal mask leaves half of the square, n^2/2: the diagonal counts half, as is usual.
 * With a window of w keys, the first w queries have w^2/2 pairs and the others w each. */
static double
pairs(const struct scores *s, double n)
{
    double w = s->window;
    if (!s->causal)
        return n * s->nkeys;
    return w > 0 && w < n ? w * w / 2 + (n - w) * w : n * n / 2;
}

/* Lets the layer that was just added read ->more, too. */
static uint32_t
also_reads(struct input_network *a, uint32_t layer, const struct scores *s)
{
    if (s->more != INPUT_NONE)
        input_also(a, layer, s->more);
    return layer;
}

/* Classifies a layer as products of a sequence x k and a k x m matrix, one for each head
 * of each sample. */
static uint32_t
each_head(struct input_network *a, uint32_t layer, const struct input_transformer *t,
          double m, double k)
{
    return input_classify(a, layer, "matmul", a->batch * t->heads, a->sequence, m, k);
}

/* Attention that is not fused: a product that makes scores, the softmax with all
 * operations on scores, and a product with the values. A mask saves no work here, since
 * the products compute all scores. */
static uint32_t
unfused(struct input_network *a, const struct scores *s,
        const struct input_transformer *t)
{
    unsigned width = t->heads * t->head_width, out = t->heads * value_width(t);
    double tokens = a->batch * a->sequence, scores = tokens * s->nkeys * t->heads;
    /* Bounding a score takes three more operations (quotient, tanh, product), each of
     * which reads and writes it. */
    double passes = t->score_passes + (t->cap_scores ? 6 : 0);
    uint32_t x, y;
    x = input_add(a, s->q, s->kv, t->sinks ? t->heads : 0, 2 * scores * t->head_width,
                  scores, "Scores(heads=%u, width=%u)", t->heads, width);
    input_reads(a, x, tokens * width + s->keys + s->bias);
    each_head(a, also_reads(a, x, s), t, s->nkeys, t->head_width);
    y = input_add(a, x, INPUT_NONE, 0, score_flops(s, t) * scores, scores, "Softmax()");
    /* of the elements moved for a score, one is the layer's output */
    input_reads(a, y, scores * (passes - 1));
    x = input_add(a, y, s->kv == INPUT_NONE ? s->q : s->kv, 0,
                  2 * scores * value_width(t), tokens * out, "Values(heads=%u, width=%u)",
                  t->heads, out);
    return each_head(a, input_reads(a, x, scores + s->values), t, value_width(t),
                     s->nkeys);
}

/* Fused attention, one layer: scores stay on the chip, and only queries, keys, values, a
 * bias and the result are moved. A mask saves work. */
static uint32_t
fused(struct input_network *a, const struct scores *s, const struct input_transformer *t)
{
    unsigned width = t->heads * t->head_width, out = t->heads * value_width(t);
    double tokens = a->batch * a->sequence;
    double each = 2.0 * t->head_width + 2.0 * value_width(t) + score_flops(s, t);
    char shared[30] = "", values[30] = "", window[30] = "";
    uint32_t y;
    if (t->kv_heads != t->heads)
        snprintf(shared, sizeof shared, "kv_heads=%u, ", t->kv_heads);
    if (out != width)
        snprintf(values, sizeof values, ", values=%u", out);
    if (s->window > 0 && s->window < a->sequence)
        snprintf(window, sizeof window, ", window=%u", s->window);
    y = input_add(a, s->q, s->kv, t->sinks ? t->heads : 0,
                  a->batch * pairs(s, a->sequence) * t->heads * each, tokens * out,
                  "Attention(heads=%u, %swidth=%u%s%s%s)", t->heads, shared, width,
                  values, s->causal ? ", causal" : "", window);
    input_reads(a, y, tokens * width + s->keys + s->values + s->bias);
    return input_classify(a, also_reads(a, y, s), "attention", 0, 0, 0, 0);
}

static uint32_t
attend(struct input_network *a, const struct scores *s, const struct input_transformer *t)
{
    return t->score_passes > 0 ? unfused(a, s, t) : fused(a, s, t);
}

/* Attention whose queries, keys and values come from one product. Queries and keys may be
 * normalized, with weights that all heads share or with weights of each head. */
static uint32_t
grouped(struct input_network *a, uint32_t x, const struct input_transformer *t,
        struct scores *s)
{
    double tokens = a->batch * a->sequence;
    unsigned both = (t->heads + t->kv_heads) * t->head_width;
    uint32_t qkv = input_linear(a, x, tokens, t->width,
                                both + t->kv_heads * value_width(t), t->attention_bias);
    s->q = qkv;
    s->keys = tokens * t->kv_heads * t->head_width;
    s->values = tokens * t->kv_heads * value_width(t);
    if (t->qk_norm != INPUT_QK_NONE) {
        unsigned weights = t->qk_norm == INPUT_QK_ALL_HEADS ? both : 2 * t->head_width;
        s->q = input_norm(a, qkv, t->rms, weights, tokens * both);
        s->kv = qkv;
    }
    return attend(a, s, t);
}

/* Latent attention: the input is projected down to short vectors, which are normalized
 * and projected up to queries, and to keys and values. */
static uint32_t
latent(struct input_network *a, uint32_t x, const struct input_transformer *t,
       struct scores *s)
{
    double tokens = a->batch * a->sequence;
    unsigned width = t->heads * t->head_width, from = t->width;
    uint32_t down, y = x;
    if (t->q_rank > 0) {
        down = input_linear(a, x, tokens, t->width, t->q_rank, t->attention_bias);
        y = input_norm(a, down, t->rms, t->q_rank, tokens * t->q_rank);
        from = t->q_rank;
    }
    s->q = input_linear(a, y, tokens, from, width, false);
    down = input_linear(a, x, tokens, t->width, t->kv_rank + t->rope_width,
                        t->attention_bias);
    y = input_norm(a, down, t->rms, t->kv_rank, tokens * t->kv_rank);
    s->kv =
        input_linear(a, y, tokens, t->kv_rank,
                     t->heads * (t->head_width - t->rope_width + value_width(t)), false);
    s->more = down; /* has the part of the keys that all heads share (rope_width) */
    s->keys =
        tokens * (t->heads * (t->head_width - t->rope_width) + (double)t->rope_width);
    s->values = tokens * t->heads * value_width(t);
    return attend(a, s, t);
}

/* The product behind attention, which makes the layer's width of the heads' results. */
static uint32_t
project(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    return input_linear(a, x, a->batch * a->sequence, t->heads * value_width(t), t->width,
                        t->output_bias);
}

uint32_t
input_self_attention(struct input_network *a, uint32_t x, uint32_t bias, bool causal,
                     unsigned window, const struct input_transformer *t)
{
    double n = a->sequence;
    struct scores s = {.kv = INPUT_NONE,
                       .more = bias,
                       .nkeys = n,
                       .bias = bias == INPUT_NONE ? 0 : n * n * t->heads,
                       .causal = causal,
                       .window = window};
    return project(a, (t->kv_rank > 0 ? latent : grouped)(a, x, t, &s), t);
}

uint32_t
input_cross_attention(struct input_network *a, uint32_t x, uint32_t memory,
                      const struct input_transformer *t)
{
    double tokens = a->batch * a->sequence;
    unsigned keys = t->kv_heads * t->head_width, values = t->kv_heads * value_width(t);
    struct scores s = {.more = INPUT_NONE,
                       .nkeys = a->sequence,
                       .keys = tokens * keys,
                       .values = tokens * values};
    s.q =
        input_linear(a, x, tokens, t->width, t->heads * t->head_width, t->attention_bias);
    s.kv = input_linear(a, memory, tokens, t->width, keys + values, t->attention_bias);
    return project(a, attend(a, &s, t), t);
}
