/* Makes the layers of a transformer from its numbers (struct input_transformer), without
 * any knowledge of families. attention.c makes those of attention. Shapes and their
 * sources: see tools/pdgen.h2m. */
#include "transformer.h"

#include <stdlib.h>

static uint32_t
embedding(struct input_network *a, uint32_t x, unsigned words, unsigned width)
{
    double out = a->batch * a->sequence * width;
    return input_add(a, x, INPUT_NONE, (double)words * width, 0, out, "Embedding(%u, %u)",
                     words, width);
}

uint32_t
input_norm(struct input_network *a, uint32_t x, bool rms, unsigned weights,
           double elements)
{
    uint32_t y =
        input_add(a, x, INPUT_NONE, (rms ? 1.0 : 2.0) * weights, (rms ? 4 : 8) * elements,
                  elements, "%s(%u)", rms ? "RMSNorm" : "LayerNorm", weights);
    return input_reads(a, y, elements); /* `elements` may be fewer than x has */
}

static uint32_t
norm(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    return input_norm(a, x, t->rms, t->width, a->batch * a->sequence * t->width);
}

static uint32_t
sum(struct input_network *a, uint32_t x, uint32_t y)
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

/* ---- MLPs ---------------------------------------------------------------- */

/* One dense MLP, or the MLPs of all experts. The rows are taken to be divided evenly
 * among the experts, since how a router chooses depends on the data. */
struct mlp {
    unsigned experts; /* 0: one dense MLP */
    unsigned inner;   /* width between its products */
    double rows;      /* tokens, counted once for each expert that they go through */
};

/* One product of an MLP. That of experts is a batch of products, one for each expert, of
 * at least one row. */
static uint32_t
mlp_linear(struct input_network *a, uint32_t x, const struct mlp *m, unsigned in,
           unsigned out, bool bias)
{
    double weights = (double)in * out;
    uint32_t y;
    if (m->experts == 0)
        return input_linear(a, x, m->rows, in, out, bias);
    y = input_add(a, x, INPUT_NONE, m->experts * (weights + (bias ? out : 0)),
                  2 * weights * m->rows, m->rows * out,
                  "ExpertLinear(experts=%u, in_features=%u, out_features=%u)", m->experts,
                  in, out);
    return input_classify(a, y, "matmul", m->experts,
                          m->rows < m->experts ? 1 : m->rows / m->experts, out, in);
}

static uint32_t
product(struct input_network *a, uint32_t x, uint32_t y)
{
    double n = a->failed ? 0 : a->layer[x].out;
    return input_add(a, x, y, 0, n, n, "Mul");
}

static uint32_t
mlp(struct input_network *a, uint32_t x, const struct mlp *m,
    const struct input_transformer *t)
{
    uint32_t y = activation(a, mlp_linear(a, x, m, t->width, m->inner, t->mlp_bias), t);
    if (t->gated)
        y = product(a, y, mlp_linear(a, x, m, t->width, m->inner, t->mlp_bias));
    return mlp_linear(a, y, m, m->inner, t->width, t->mlp_bias);
}

/* The MLP that all tokens go through, in addition to their experts. */
static uint32_t
shared_mlp(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    const struct mlp shared = {0, t->shared_inner, a->batch * a->sequence};
    uint32_t y = mlp(a, x, &shared, t), gate;
    if (!t->shared_gate)
        return y;
    gate = input_linear(a, x, shared.rows, t->width, 1, false);
    return product(a, y, input_pointwise(a, gate, 4, "Sigmoid()"));
}

/* A mixture of experts: a router scores the experts, the rows of tokens are copied to the
 * chosen ones, and the results are summed with the router's weights. */
static uint32_t
mixture(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    double tokens = a->batch * a->sequence;
    const struct mlp experts = {t->experts, t->expert_inner ? t->expert_inner : t->inner,
                                tokens * t->experts_used};
    uint32_t router = input_linear(a, x, tokens, t->width, t->experts, t->router_bias);
    uint32_t y = input_add(a, x, router, 0, 0, experts.rows * t->width,
                           "Dispatch(top=%u)", t->experts_used);
    y = mlp(a, y, &experts, t);
    y = input_add(a, y, INPUT_NONE, 0, 2 * experts.rows * t->width, tokens * t->width,
                  "Combine(top=%u)", t->experts_used);
    return t->shared_inner > 0 ? sum(a, y, shared_mlp(a, x, t)) : y;
}

/* ---- a layer ------------------------------------------------------------- */

/* What the layers of one stack, encoder or decoder, have in common. */
struct stack {
    bool causal;
    uint32_t bias;   /* the layer that makes a bias for the scores, or INPUT_NONE */
    uint32_t memory; /* the encoder's output, which its layers read, or INPUT_NONE */
};

static uint32_t
norm_before(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    return t->norm_before ? norm(a, x, t) : x;
}

/* Adds y, the result of attention or MLP on x, to x, with the norms around the
 * addition. */
static uint32_t
join(struct input_network *a, uint32_t x, uint32_t y, const struct input_transformer *t)
{
    x = sum(a, t->norm_inside ? norm(a, y, t) : y, x);
    return t->norm_behind ? norm(a, x, t) : x;
}

static uint32_t
feed(struct input_network *a, uint32_t x, const struct input_block *block,
     const struct input_transformer *t)
{
    const struct mlp dense = {0, t->inner, a->batch * a->sequence};
    return block->mixture ? mixture(a, x, t) : mlp(a, x, &dense, t);
}

/* Appends one layer of a stack. If it is parallel, the MLP reads the layer's input
 * instead of attention's result. */
static uint32_t
add_block(struct input_network *a, uint32_t x, const struct stack *stack,
          const struct input_block *block, const struct input_transformer *t)
{
    uint32_t from = norm_before(a, x, t);
    uint32_t y =
        input_self_attention(a, from, stack->bias, stack->causal, block->window, t);
    if (t->parallel) {
        if (!t->one_norm)
            from = norm_before(a, x, t);
        return sum(a, sum(a, feed(a, from, block, t), y), x);
    }
    x = join(a, x, y, t);
    if (stack->memory != INPUT_NONE)
        x = join(a, x, input_cross_attention(a, norm_before(a, x, t), stack->memory, t),
                 t);
    return join(a, x, feed(a, norm_before(a, x, t), block, t), t);
}

/* ---- the first and the last layers --------------------------------------- */

static uint32_t
embed_words(struct input_network *a, uint32_t tokens, const struct input_transformer *t)
{
    unsigned width = t->word_width > 0 ? t->word_width : t->width;
    uint32_t x = embedding(a, tokens, t->words, width);
    if (width != t->width)
        x = input_linear(a, x, a->batch * a->sequence, width, t->width, false);
    if (t->positions > 0)
        x = sum(a, x, embedding(a, tokens, t->positions, t->width));
    if (t->types > 0)
        x = sum(a, x, embedding(a, tokens, t->types, t->width));
    return t->norm_embedding ? norm(a, x, t) : x;
}

/* The embedding of an image (ViT): a convolution makes a vector of each patch; a learned
 * token is put before them, and learned positions are added. */
static uint32_t
embed_patches(struct input_network *a, const struct input_transformer *t)
{
    double pixels = (double)t->image * t->image * t->channels;
    double out = a->batch * a->sequence * t->width;
    double patches = a->batch * (a->sequence - 1);
    double weights = (double)t->channels * t->patch * t->patch * t->width;
    uint32_t x = input_add(a, INPUT_NONE, INPUT_NONE, 0, 0, a->batch * pixels, "Input");
    x = input_add(a, x, INPUT_NONE, weights + t->width, 2 * weights * patches,
                  patches * t->width,
                  "Conv2d(%u, %u, kernel_size=(%u, %u), stride=(%u, %u))", t->channels,
                  t->width, t->patch, t->patch, t->patch, t->patch);
    input_classify(a, x, "convolution", 0, 0, 0, 0);
    x = input_add(a, x, INPUT_NONE, t->width, 0, out, "ClassToken(%u)", t->width);
    return input_add(a, x, INPUT_NONE, a->sequence * t->width, out, out,
                     "Positions(%.0f, %u)", a->sequence, t->width);
}

/* Marks the weights of a layer as owned by another: this layer reads them, but they are
 * not counted as its parameters. */
static uint32_t
owned_elsewhere(struct input_network *a, uint32_t layer)
{
    if (!a->failed)
        a->layer[layer].params = 0;
    return layer;
}

/* Appends a stack: the bias of its scores, if it has one, its layers, and the last norm.
 * As in T5, the layers of a stack share the bias. `block` NULL: all layers are alike. */
static uint32_t
add_stack(struct input_network *a, uint32_t tokens, uint32_t x, struct stack stack,
          const struct input_block *block, unsigned layers,
          const struct input_transformer *t)
{
    const struct input_block same = {.mixture = t->experts > 0};
    double n = a->sequence;
    if (t->relative_buckets > 0) {
        stack.bias = input_add(
            a, tokens, INPUT_NONE, (double)t->relative_buckets * t->heads, 0,
            n * n * t->heads, "RelativeBias(%u, %u)", t->relative_buckets, t->heads);
        input_reads(a, stack.bias, n * n);
    }
    for (unsigned i = 0; i < layers; i++)
        x = add_block(a, x, &stack, block ? &block[i] : &same, t);
    return t->norm_final ? norm(a, x, t) : x;
}

/* Appends what the model makes of the last layer's tokens: a pooler, a classifier, or the
 * scores of words. */
static void
add_outputs(struct input_network *a, uint32_t x, const struct input_transformer *t)
{
    double rows = a->batch * a->sequence;
    unsigned width = t->word_width > 0 ? t->word_width : t->width;
    if (t->pooler || t->labels > 0)
        x = input_add(a, x, INPUT_NONE, 0, 0, a->batch * t->width, "FirstToken()");
    if (t->pooler) {
        x = input_linear(a, x, a->batch, t->width, t->width, true);
        x = input_pointwise(a, x, 8, "Tanh()");
    }
    if (t->labels > 0)
        input_linear(a, x, a->batch, t->width, t->labels, true);
    if (!t->head)
        return;
    if (width != t->width)
        x = input_linear(a, x, rows, t->width, width, false);
    x = input_linear(a, x, rows, width, t->words, false);
    if (t->tied)
        owned_elsewhere(a, x);
    if (t->cap_words)
        input_pointwise(a, x, 8, "Tanh()");
}

void
input_transformer_build(struct input_network *a, const struct input_transformer *t)
{
    struct stack stack = {false, INPUT_NONE, INPUT_NONE};
    double rows = a->batch * a->sequence;
    uint32_t tokens = INPUT_NONE, x;
    if (t->patch > 0)
        x = embed_patches(a, t);
    else {
        tokens = input_add(a, INPUT_NONE, INPUT_NONE, 0, 0, rows, "Input");
        x = embed_words(a, tokens, t);
    }
    if (t->encoder_layers > 0) {
        stack.memory = add_stack(a, tokens, x, stack, NULL, t->encoder_layers, t);
        x = owned_elsewhere(a, embedding(a, tokens, t->words, t->width));
    }
    stack.causal = t->causal;
    add_outputs(a, add_stack(a, tokens, x, stack, t->block, t->layers, t), t);
}

void
input_transformer_free(struct input_transformer *t)
{
    free(t->block);
    t->block = NULL;
}
