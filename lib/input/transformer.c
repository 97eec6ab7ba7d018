/* Transformers. Sources: see tools/pdgen.h2m. */
#include "private.h"

#include <stdio.h>

static uint32_t
embedding(struct input_network *a, uint32_t x, unsigned words, unsigned width)
{
    double out = a->batch * a->sequence * width;
    return input_add(a, x, INPUT_NONE, (double)words * width, 0, out, "Embedding(%u, %u)",
                     words, width);
}

static uint32_t
norm(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    double out = a->batch * a->sequence * t->width;
    return input_add(a, x, INPUT_NONE, (t->rms ? 1.0 : 2.0) * t->width,
                     (t->rms ? 4 : 8) * out, out, "%s(%u)",
                     t->rms ? "RMSNorm" : "LayerNorm", t->width);
}

double
input_score_passes(double bytes)
{
    return (bytes < 4 ? 37 : 33) / bytes;
}

/* Reads so many elements, instead of all its inputs wrote. */
static uint32_t
reads(struct input_network *a, uint32_t layer, double elements)
{
    if (!a->failed)
        a->layer[layer].in = elements;
    return layer;
}

/* A product of n x k by k x m for each head of each sample. */
static uint32_t
each_head(struct input_network *a, uint32_t layer, const struct input_transformer *t,
          unsigned m, unsigned k)
{
    return input_classify(a, layer, "matmul", a->batch * t->heads, a->sequence, m, k);
}

/* Two products, of the full square whatever the mask, and what is done to scores between. */
static uint32_t
unfused_attention(struct input_network *a, uint32_t qkv,
                  const struct input_transformer *t)
{
    unsigned width = t->heads * t->head_width, n = (unsigned)a->sequence;
    double tokens = a->batch * n, scores = tokens * n * t->heads;
    double keys = tokens * t->kv_heads * t->head_width;
    uint32_t x, y;
    x = input_add(a, qkv, INPUT_NONE, 0, 2 * tokens * n * width, scores,
                  "Scores(heads=%u, width=%u)", t->heads, width);
    each_head(a, reads(a, x, tokens * width + keys), t, n, t->head_width);
    y = input_add(a, x, INPUT_NONE, 0, 5 * scores, scores, "Softmax()");
    reads(a, y, scores * (t->score_passes - 1));
    x = input_add(a, y, qkv, 0, 2 * tokens * n * width, tokens * width,
                  "Values(heads=%u, width=%u)", t->heads, width);
    return each_head(a, reads(a, x, scores + keys), t, t->head_width, n);
}

/* Scores, softmax and their weighted sum: 4 n^2 width FLOPs for n tokens, half of them
 * below a causal mask; fused, so that only queries, keys, values and results are moved.
 */
static uint32_t
attention(struct input_network *a, uint32_t qkv, const struct input_transformer *t)
{
    unsigned width = t->heads * t->head_width;
    double n = a->sequence, flops = 4 * n * n * width + 5 * n * n * t->heads;
    char shared[40] = "";
    uint32_t y;
    if (t->score_passes > 0)
        return unfused_attention(a, qkv, t);
    if (t->kv_heads != t->heads)
        snprintf(shared, sizeof shared, "kv_heads=%u, ", t->kv_heads);
    y = input_add(a, qkv, INPUT_NONE, 0, a->batch * flops / (t->causal ? 2 : 1),
                  a->batch * n * width, "Attention(heads=%u, %swidth=%u%s)", t->heads,
                  shared, width, t->causal ? ", causal" : "");
    return input_classify(a, y, "attention", 0, 0, 0, 0);
}

static uint32_t
residual(struct input_network *a, uint32_t x, uint32_t y)
{
    double n = a->failed ? 0 : a->layer[x].out;
    return input_add(a, x, y, 0, n, n, "Add");
}

static uint32_t
activation(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    static const struct {
        const char *text;
        double flops;
    } kinds[] = {[INPUT_GELU] = {"GELU()", 8},
                 [INPUT_SILU] = {"SiLU()", 5},
                 [INPUT_RELU] = {"ReLU()", 1}};
    return input_pointwise(a, x, kinds[t->activation].flops, kinds[t->activation].text);
}

/* A linear layer of an MLP, or of all experts, among which the rows are divided evenly. */
static uint32_t
mlp_linear(struct input_network *a, uint32_t x, double rows, unsigned in, unsigned out,
           const struct input_transformer *t)
{
    double weights = (double)in * out;
    uint32_t y;
    if (t->experts == 0)
        return input_linear(a, x, rows, in, out, t->mlp_bias);
    y = input_add(a, x, INPUT_NONE, t->experts * (weights + (t->mlp_bias ? out : 0)),
                  2 * weights * rows, rows * out,
                  "ExpertLinear(experts=%u, in_features=%u, out_features=%u)", t->experts,
                  in, out);
    return input_classify(a, y, "matmul", t->experts,
                          rows < t->experts ? 1 : rows / t->experts, out, in);
}

static uint32_t
mlp(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    double tokens = a->batch * a->sequence, rows = tokens;
    uint32_t y, up, router;
    if (t->experts > 0) {
        rows *= t->experts_used;
        router = input_linear(a, x, tokens, t->width, t->experts, false);
        x = input_add(a, x, router, 0, 0, rows * t->width, "Dispatch(top=%u)",
                      t->experts_used);
    }
    y = activation(a, mlp_linear(a, x, rows, t->width, t->inner, t), t);
    if (t->gated) {
        up = mlp_linear(a, x, rows, t->width, t->inner, t);
        y = input_add(a, y, up, 0, rows * t->inner, rows * t->inner, "Mul");
    }
    y = mlp_linear(a, y, rows, t->inner, t->width, t);
    if (t->experts > 0)
        y = input_add(a, y, INPUT_NONE, 0, 2 * rows * t->width, tokens * t->width,
                      "Combine(top=%u)", t->experts_used);
    return y;
}

static uint32_t
block(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    double rows = a->batch * a->sequence;
    unsigned inside = t->heads * t->head_width;
    uint32_t y = t->norm_first ? norm(a, x, t) : x;
    y = input_linear(a, y, rows, t->width, inside + 2 * t->kv_heads * t->head_width,
                     t->attention_bias);
    y = input_linear(a, attention(a, y, t), rows, inside, t->width, t->output_bias);
    x = residual(a, y, x);
    if (!t->norm_first)
        x = norm(a, x, t);
    y = t->norm_first ? norm(a, x, t) : x;
    x = residual(a, mlp(a, y, t), x);
    return t->norm_first ? x : norm(a, x, t);
}

void
input_transformer_build(struct input_network *a, const struct input_transformer *t)
{
    double rows = a->batch * a->sequence;
    uint32_t tokens = input_add(a, INPUT_NONE, INPUT_NONE, 0, 0, rows, "Input");
    uint32_t x = embedding(a, tokens, t->words, t->width);
    if (t->positions > 0)
        x = residual(a, x, embedding(a, tokens, t->positions, t->width));
    if (t->types > 0)
        x = residual(a, x, embedding(a, tokens, t->types, t->width));
    if (!t->norm_first)
        x = norm(a, x, t);
    for (unsigned i = 0; i < t->layers; i++)
        x = block(a, x, t);
    if (t->norm_first)
        x = norm(a, x, t);
    if (t->pooler) {
        x = input_add(a, x, INPUT_NONE, 0, 0, a->batch * t->width, "FirstToken()");
        x = input_linear(a, x, a->batch, t->width, t->width, true);
        x = input_pointwise(a, x, 8, "Tanh()");
    }
    if (t->head)
        x = input_linear(a, x, rows, t->width, t->words, false);
    if (t->tied && !a->failed)
        a->layer[x].params = 0; /* the embedding owns the weights; still read here */
}
