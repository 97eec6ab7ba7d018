/* A transformer as kinds of layers: the ops of one token of one layer, what is divided in
 * them, and what backward keeps. Sources stand in rampipe/parallel.h. */
#include "private.h"

#include <stdlib.h>

/* Bytes of an element of activations, and of one of a mask. */
enum { ELEMENT = 2, MASK = 1 };

static unsigned
value_width(const struct input_transformer *t)
{
    return t->value_width > 0 ? t->value_width : t->head_width;
}

/* ---- ops ------------------------------------------------------------------- */

static struct parallel_op *
add(struct parallel_kind *kind, const char *name, enum parallel_class does,
    enum parallel_split split)
{
    struct parallel_op *op = &kind->op[kind->nops++];
    *op = (struct parallel_op){.name = name, .does = does, .split = split, .rows = 1};
    return op;
}

/* Says of which part the ops from `first` on are, unless they are of one already. */
static void
mark(struct parallel_kind *kind, unsigned first, enum parallel_part part)
{
    for (unsigned i = first; i < kind->nops; i++)
        if (kind->op[i].part == 0)
            kind->op[i].part = part;
}

/* A product of `rows` rows a token whose input is kept: what its weights' gradient
 * needs. */
static struct parallel_op *
product(struct parallel_kind *kind, const char *name, enum parallel_split split, double k,
        double n, bool bias)
{
    struct parallel_op *op = add(kind, name, PARALLEL_PRODUCT, split);
    op->k = k;
    op->n = n;
    op->params = k * n + (bias ? n : 0);
    return op;
}

static struct parallel_op *
move(struct parallel_kind *kind, const char *name, enum parallel_split split,
     double forward, double backward)
{
    struct parallel_op *op = add(kind, name, PARALLEL_MOVE, split);
    op->moved = forward;
    op->moved_back = backward;
    op->kernels = 1;
    return op;
}

static void
norm(struct parallel_kind *kind, const char *name, double width,
     const struct input_transformer *t)
{
    struct parallel_op *op = move(kind, name, PARALLEL_TOKENS, 2 * width, 3 * width);
    op->params = (t->rms ? 1 : 2) * width;
    op->kept = ELEMENT * width;
    op->part = PARALLEL_PART_NORMS;
}

/* Adds what attention or the MLP made to its input: dropout, the sum, norms around it. */
static void
join(struct parallel_kind *kind, const char *name, const struct parallel_model *m)
{
    double h = m->t.width, mask = m->style.no_dropout ? 0 : (double)MASK / ELEMENT;
    struct parallel_op *op;
    if (m->t.norm_inside)
        norm(kind, "norm inside", h, &m->t);
    op = move(kind, name, PARALLEL_TOKENS, (3 + mask) * h, (2 + mask) * h);
    op->kept = ELEMENT * mask * h;
    if (m->t.norm_behind)
        norm(kind, "norm behind", h, &m->t);
}

/* Ops from `first` on are of a segment. */
static void
place(struct parallel_kind *kind, unsigned first, enum parallel_segment segment)
{
    for (unsigned i = first; i < kind->nops; i++)
        kind->op[i].segment = segment;
}

/* Queries, keys and values of one product, or each by way of a short vector (DeepSeek-V2,
 * 2024, section 2.1), and what attention needs of them. */
static void
queries(struct parallel_kind *kind, const struct parallel_model *m)
{
    const struct input_transformer *t = &m->t;
    double h = t->width, d = t->head_width, a = t->heads, g = t->kv_heads;
    double both = (a + g) * d;
    struct parallel_op *op;
    if (t->kv_rank > 0) {
        double nope = d - t->rope_width;
        if (t->q_rank > 0) {
            product(kind, "Q down", PARALLEL_WHOLE, h, t->q_rank, t->attention_bias);
            norm(kind, "Q norm", t->q_rank, t);
        }
        op = product(kind, "Q up", PARALLEL_COLUMNS, t->q_rank > 0 ? t->q_rank : h, a * d,
                     false);
        op->kept_input = t->q_rank > 0 ? ELEMENT * t->q_rank : 0;
        op = product(kind, "KV down", PARALLEL_WHOLE, h, t->kv_rank + t->rope_width,
                     t->attention_bias);
        op->kept_input = ELEMENT * h;
        norm(kind, "KV norm", t->kv_rank, t);
        op = product(kind, "KV up", PARALLEL_COLUMNS, t->kv_rank,
                     a * (nope + value_width(t)), false);
        op->kept_input = ELEMENT * t->kv_rank;
        both = 2 * a * d;
    } else {
        op = product(kind, "QKV", PARALLEL_COLUMNS, h, both + g * value_width(t),
                     t->attention_bias);
        op->kept_input = ELEMENT * h;
        op->kv = g * (d + value_width(t));
        if (t->qk_norm != INPUT_QK_NONE) {
            op = move(kind, "QK norm", PARALLEL_HEADS, 2 * both, 3 * both);
            op->params = t->qk_norm == INPUT_QK_ALL_HEADS ? both : 2 * d;
            op->kept = ELEMENT * both;
        }
    }
    if (t->positions == 0 && !t->alibi)
        move(kind, "rotary", PARALLEL_HEADS, 2 * both, 2 * both);
}

/* Attention proper: one fused kernel that keeps a statistic of 4 bytes for each query, or
 * products around a softmax whose matrix is written. In 16 bits, softmax reads and writes
 * 2 + 2 bytes an element, and dropout 2 + 2 + 1; backward moves 11. */
static void
attention(struct parallel_kind *kind, const struct parallel_model *m)
{
    const struct input_transformer *t = &m->t;
    double d = t->head_width, dv = value_width(t), a = t->heads;
    double g = t->kv_rank > 0 ? a : t->kv_heads;
    unsigned first = kind->nops;
    struct parallel_op *op;
    if (!m->style.unfused) {
        op = add(kind, "attention", PARALLEL_ATTENTION, PARALLEL_HEADS);
        op->k = d;
        op->n = dv;
        op->kept = ELEMENT * (a * d + g * (d + dv)) + 4 * a;
        op->kv = ELEMENT * g * (d + dv);
    } else {
        double mask = m->style.no_dropout ? 0 : 1;
        op = add(kind, "scores", PARALLEL_SCORES, PARALLEL_HEADS);
        op->k = d;
        op->kept = ELEMENT * (a * d + g * (d + dv));
        op->kv = ELEMENT * g * (d + dv);
        op = move(kind, "softmax", PARALLEL_HEADS, (4 + 5 * mask) / ELEMENT * a,
                  (6 + 5 * mask) / ELEMENT * a);
        op->kept = (ELEMENT + (ELEMENT + MASK) * mask) * a;
        op->matched = op->core = true;
        op = add(kind, "values", PARALLEL_SCORES, PARALLEL_HEADS);
        op->k = dv;
    }
    op->params = t->sinks ? a : 0;
    place(kind, first, PARALLEL_CORE);
    op = product(kind, "projection", PARALLEL_INNER, a * dv, t->width, t->output_bias);
    op->kept = ELEMENT * a * dv;
    op->segment = PARALLEL_PROJECTION;
}

/* An MLP of this inner width for `rows` rows a token; `split` is PARALLEL_EXPERTS for
 * `count` experts, else PARALLEL_COLUMNS. */
static void
mlp(struct parallel_kind *kind, const struct input_transformer *t, double f, double rows,
    double count, bool experts)
{
    enum parallel_split split = experts ? PARALLEL_EXPERTS : PARALLEL_COLUMNS;
    double h = t->width, up = t->gated ? 2 * f : f;
    struct parallel_op *op =
        product(kind, experts ? "experts up" : "MLP up", split, h, up, t->mlp_bias);
    op->rows = rows;
    op->params *= count;
    op->kept_input = experts ? 0 : ELEMENT * h;
    op->kept = ELEMENT * rows * (up + (experts ? h : 0));
    op = move(kind, experts ? "experts activation" : "activation", split, rows * (up + f),
              rows * (2 * up + f));
    op->kept = ELEMENT * rows * f;
    op->next_input = true;
    op = product(kind, experts ? "experts down" : "MLP down",
                 experts ? PARALLEL_EXPERTS_INNER : PARALLEL_INNER, f, h, t->mlp_bias);
    op->rows = rows;
    op->params *= count;
}

static void
mixture(struct parallel_kind *kind, const struct input_transformer *t)
{
    double h = t->width, f = t->expert_inner > 0 ? t->expert_inner : t->inner;
    double rows = t->experts_used;
    unsigned first = kind->nops;
    struct parallel_op *op =
        product(kind, "router", PARALLEL_TOKENS, h, t->experts, t->router_bias);
    op->kept_input = ELEMENT * h;
    move(kind, "permute", PARALLEL_TOKENS, (1 + rows) * h, (1 + rows) * h);
    place(kind, first, PARALLEL_ROUTE);
    first = kind->nops;
    mlp(kind, t, f, rows, t->experts, true);
    place(kind, first, PARALLEL_MLP);
    first = kind->nops;
    op = move(kind, "unpermute", PARALLEL_TOKENS, (1 + rows) * h, (1 + 2 * rows) * h);
    op->kept = ELEMENT * rows * h;
    if (t->shared_inner > 0)
        mlp(kind, t, t->shared_inner, 1, 1, false);
    if (t->shared_gate)
        product(kind, "shared gate", PARALLEL_TOKENS, h, 1, false);
    place(kind, first, PARALLEL_RETURN);
}

static void
make_layer(struct parallel_kind *kind, const struct parallel_model *m)
{
    const struct input_transformer *t = &m->t;
    unsigned first, second;
    if (t->norm_before)
        norm(kind, "norm 1", t->width, t);
    first = kind->nops; /* the norm is PARALLEL_BEFORE, which is 0 */
    queries(kind, m);
    place(kind, first, PARALLEL_QUERIES);
    attention(kind, m);
    first = kind->nops;
    join(kind, "sum 1", m);
    mark(kind, 0, PARALLEL_PART_ATTENTION);
    second = kind->nops;
    if (t->norm_before)
        norm(kind, "norm 2", t->width, t);
    place(kind, first, PARALLEL_MIDDLE);
    first = kind->nops;
    if (kind->experts)
        mixture(kind, t);
    else {
        mlp(kind, t, t->inner, 1, 1, false);
        place(kind, first, PARALLEL_MLP);
    }
    first = kind->nops;
    join(kind, "sum 2", m);
    place(kind, first, PARALLEL_BEHIND);
    mark(kind, second, kind->experts ? PARALLEL_PART_EXPERTS : PARALLEL_PART_MLP);
}

/* The embedding looks words up; the head makes scores of words. Cross entropy as in
 * Megatron-LM's fused kernels: forward it reads a score in 16 and writes it in 32 bits,
 * subtracts the largest one and takes the exponential (4 + 4 bytes), divides (4 + 4);
 * backward it scales (4 + 4) and writes 16 bits again (4 + 2). It keeps 32 bits. The host
 * issues kernels for the largest one and the sum, too. */
static void
make_ends(struct parallel_model *m)
{
    const struct input_transformer *t = &m->t;
    double h = t->width, words = t->words;
    double mask = m->style.no_dropout ? 0 : (double)MASK / ELEMENT;
    struct parallel_op *op =
        move(&m->embedding, "embedding", PARALLEL_VOCABULARY, 2 * h, 2 * h);
    op->params = words * h;
    op = move(&m->embedding, "positions", PARALLEL_TOKENS,
              (mask > 0 ? 2 + mask : 0) * h + (t->positions > 0 ? 2 * h : 0),
              (mask > 0 ? 2 + mask : 0) * h);
    op->params = t->positions * h;
    op->kept = ELEMENT * mask * h;
    if (t->norm_embedding)
        norm(&m->embedding, "norm", h, t);
    mark(&m->embedding, 0, PARALLEL_PART_EMBEDDING);
    if (t->norm_final)
        norm(&m->head, "last norm", h, t);
    op = product(&m->head, "head", PARALLEL_VOCABULARY, h, words, false);
    op->kept_input = ELEMENT * h;
    if (t->tied)
        op->params = 0;
    op = move(&m->head, "loss", PARALLEL_VOCABULARY, 22.0 / ELEMENT * words,
              14.0 / ELEMENT * words);
    op->kept = 4 * words;
    op->kernels = 5;
    mark(&m->head, 0, PARALLEL_PART_HEAD);
}

/* ---- a model --------------------------------------------------------------- */

static bool
check(const struct input_transformer *t, struct rec_error *err)
{
    const char *what = t->encoder_layers > 0        ? "an encoder"
                       : t->patch > 0               ? "patches of images"
                       : t->parallel                ? "attention beside its MLP"
                       : t->relative_buckets > 0    ? "learned biases of scores"
                       : t->pooler || t->labels > 0 ? "a classifier"
                       : t->types > 0               ? "types of tokens"
                       : !t->head                   ? "no head"
                       : t->word_width > 0 && t->word_width != t->width
                           ? "embeddings narrower than its layers"
                           : NULL;
    return what == NULL ||
           rec_fail(err, REC_DATA,
                    "the model has %s, for which parallel training is not modelled",
                    what);
}

/* The kind of a layer, which is added if there is none yet. */
static unsigned
kind_of(struct parallel_model *m, const struct input_block *block)
{
    unsigned i = 0;
    unsigned window = block->window < m->sequence ? block->window : 0;
    while (i < m->nkinds &&
           (m->kind[i].window != window || m->kind[i].experts != block->mixture))
        i++;
    if (i == m->nkinds) {
        m->kind[i].window = window;
        m->kind[i].experts = block->mixture;
        make_layer(&m->kind[i], m);
        m->nkinds++;
    }
    return i;
}

bool
parallel_model_make(const struct input_transformer *t, double sequence,
                    const struct parallel_style *style, struct parallel_model *m,
                    struct rec_error *err)
{
    const struct input_block same = {.mixture = t->experts > 0};
    *m = (struct parallel_model){.t = *t, .sequence = sequence, .style = *style};
    m->t.block = NULL;
    if (!check(t, err))
        return false;
    m->of = calloc(t->layers, sizeof *m->of);
    /* at most one kind a layer */
    m->kind = calloc(t->block ? t->layers : 1, sizeof *m->kind);
    if (!m->of || !m->kind) {
        parallel_model_free(m);
        return rec_fail_memory(err);
    }
    for (unsigned i = 0; i < t->layers; i++)
        m->of[i] = kind_of(m, t->block ? &t->block[i] : &same);
    make_ends(m);
    return true;
}

void
parallel_model_free(struct parallel_model *m)
{
    free(m->of);
    free(m->kind);
    m->of = NULL;
    m->kind = NULL;
}

/* ---- counts ---------------------------------------------------------------- */

static double
kind_params(const struct parallel_kind *kind)
{
    double sum = 0;
    for (unsigned i = 0; i < kind->nops; i++)
        sum += kind->op[i].params;
    return sum;
}

double
parallel_model_params(const struct parallel_model *m)
{
    double sum = kind_params(&m->embedding) + kind_params(&m->head);
    for (unsigned i = 0; i < m->t.layers; i++)
        sum += kind_params(&m->kind[m->of[i]]);
    return sum;
}

/* Pairs of a query and a key for which a query's token computes scores. The full square
 * of a window is twice what its mask leaves. */
static double
keys(const struct parallel_model *m, const struct parallel_kind *kind, double share)
{
    double n = m->sequence, w = kind->window;
    return share * (w > 0 ? 2 * (w - w * w / (2 * n)) : n);
}

double
parallel_op_work(const struct parallel_model *m, const struct parallel_kind *kind,
                 const struct parallel_op *op, double share)
{
    if (op->does == PARALLEL_PRODUCT) /* a router is of tokens */
        return op->split != PARALLEL_TOKENS ? op->rows * op->k * op->n : 0;
    if (op->does == PARALLEL_SCORES || op->does == PARALLEL_ATTENTION)
        return keys(m, kind, share) * m->t.heads * (op->k + op->n);
    return 0;
}

double
parallel_kind_work(const struct parallel_model *m, const struct parallel_kind *kind,
                   double share)
{
    double sum = 0;
    for (unsigned i = 0; i < kind->nops; i++)
        sum += parallel_op_work(m, kind, &kind->op[i], share);
    return sum;
}

double
parallel_model_flops(const struct parallel_model *m, double samples, double attention,
                     bool again)
{
    double layers = 0, tokens = samples * m->sequence;
    for (unsigned i = 0; i < m->t.layers; i++)
        layers += parallel_kind_work(m, &m->kind[m->of[i]], attention);
    return tokens * (2 * (again ? 4 : 3) * layers +
                     6 * parallel_kind_work(m, &m->head, attention));
}
