/*
 * Memory of a device. What backward keeps is counted op by op (model.c); with the ops of
 * GPT it is the formula of Korthikanti et al., 2022: s b h (10 + 24 / t + 5 a s / (h t))
 * bytes a layer, and its variants for sequence parallelism and recomputation.
 */
#include "private.h"

/* Bytes of an element in 16 bits and in 32. */
enum { ELEMENT = 2, FLOAT = 4 };
/* Of what Adam holds of a parameter: a 32-bit copy and two moments; of fp16 also the
 * gradient in 32 bits. */
enum { ADAM = 12, ADAM_FP16 = 16 };
double
parallel_tokens(const struct parallel_model *model, const struct parallel_mix *mix)
{
    return mix->micro * model->sequence / mix->cp;
}

double
parallel_divided(enum parallel_split split, const struct parallel_mix *mix)
{
    switch (split) {
    case PARALLEL_TOKENS: return mix->sequence ? mix->tp : 1;
    case PARALLEL_WHOLE: return 1;
    default: return mix->tp;
    }
}

double
parallel_divided_kv(const struct parallel_model *model, const struct parallel_mix *mix)
{
    unsigned heads = model->t.kv_rank > 0 ? model->t.heads : model->t.kv_heads;
    return mix->tp < heads ? mix->tp : heads;
}

/* Products in 8 or 4 bits keep their inputs as they read them; the head is in 16 bits. */
static double
input_share(const struct parallel_op *op, const struct parallel_mix *mix)
{
    bool small = op->does == PARALLEL_PRODUCT && op->split != PARALLEL_VOCABULARY;
    return !small || mix->precision == PARALLEL_BF16 ? 1
           : mix->precision == PARALLEL_FP8          ? 0.5
                                                     : 0.25;
}

/* Pairs of a query and a key are a matrix of `sequence` columns. */
static double
kept_of(const struct parallel_op *op, const struct parallel_model *model,
        const struct parallel_mix *mix, bool selective)
{
    double shared = op->does == PARALLEL_PRODUCT ? 0 : op->kv;
    double kept = (op->kept - shared) / parallel_divided(op->split, mix) +
                  shared / parallel_divided_kv(model, mix);
    if (op->core && selective)
        return 0;
    if (op->does == PARALLEL_PRODUCT && parallel_frozen(mix, op))
        return kept; /* no gradient of its weights needs its input */
    if (op->matched)
        kept *= model->sequence;
    return kept +
           op->kept_input * input_share(op, mix) / parallel_divided(PARALLEL_TOKENS, mix);
}

/* The results of an op, bytes a token, of which every second product's are kept if the
 * others are computed again: each matrix counts, also those of one product (queries, keys
 * and values; both halves of a gated MLP). *products counts them. */
static double
kept_result(const struct parallel_op *op, const struct parallel_model *model,
            const struct parallel_mix *mix, unsigned *products)
{
    double part[3] = {op->n - op->kv, op->kv / 2, op->kv / 2}, sum = 0, by;
    unsigned parts = op->kv > 0 ? 3 : 1;
    if (op->does == PARALLEL_ATTENTION)
        return (ELEMENT * op->n + FLOAT) * model->t.heads / mix->tp;
    if (op->does != PARALLEL_PRODUCT)
        return 0;
    if (model->t.gated && op->k == model->t.width && op->n == 2.0 * model->t.inner) {
        part[0] = part[1] = op->n / 2;
        parts = 2;
    }
    by = op->split == PARALLEL_INNER ? parallel_divided(PARALLEL_TOKENS, mix)
                                     : parallel_divided(op->split, mix);
    for (unsigned i = 0; i < parts; i++)
        if ((*products)++ % 2 == 0)
            sum += ELEMENT * op->rows * part[i] / by;
    return sum;
}

/* Of a layer that is run again: its input. */
static double
input_of(const struct parallel_model *model, const struct parallel_mix *mix)
{
    return ELEMENT * parallel_tokens(model, mix) * model->t.width /
           parallel_divided(PARALLEL_TOKENS, mix);
}

double
parallel_kept(const struct parallel_kind *kind, const struct parallel_model *model,
              const struct parallel_mix *mix)
{
    double sum = 0;
    unsigned products = 0;
    bool layer = kind != &model->embedding && kind != &model->head;
    if (mix->recompute == PARALLEL_HALF && layer) {
        for (unsigned i = 0; i < kind->nops; i++)
            sum += kept_result(&kind->op[i], model, mix, &products);
        return sum * parallel_tokens(model, mix) + input_of(model, mix);
    }
    for (unsigned i = 0; i < kind->nops; i++)
        sum += kept_of(&kind->op[i], model, mix, mix->recompute == PARALLEL_SELECTIVE);
    return sum * parallel_tokens(model, mix);
}

static bool
is_expert(const struct parallel_op *op)
{
    return op->split == PARALLEL_EXPERTS || op->split == PARALLEL_EXPERTS_INNER;
}

/* The parameters of an op that a rank holds. */
static double
params_of(const struct parallel_op *op, const struct parallel_mix *mix,
          const struct parallel_model *model)
{
    double weights = op->does == PARALLEL_PRODUCT ? op->k * op->n : 0, kv;
    switch (op->split) {
    case PARALLEL_EXPERTS:
    case PARALLEL_EXPERTS_INNER: return op->params / ((double)mix->ep * mix->etp);
    case PARALLEL_COLUMNS:
        kv = op->n > 0 ? op->params * op->kv / op->n : 0;
        return (op->params - kv) / mix->tp + kv / parallel_divided_kv(model, mix);
    case PARALLEL_INNER: /* each rank has all biases */
        return op->params > 0 ? weights / mix->tp + (op->params - weights) : 0;
    case PARALLEL_VOCABULARY: return op->params / mix->tp;
    default: return op->params;
    }
}

static unsigned
add_params(const struct parallel_kind *kind, const struct parallel_mix *mix,
           const struct parallel_model *model, bool trained, double *dense,
           double *experts)
{
    unsigned tensors = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        if (trained && parallel_frozen(mix, op))
            continue;
        *(is_expert(op) ? experts : dense) += params_of(op, mix, model);
        tensors += op->params > 0;
    }
    return tensors;
}

unsigned
parallel_held(const struct parallel_kind *kind, const struct parallel_mix *mix,
              const struct parallel_model *model, double *dense, double *experts)
{
    return add_params(kind, mix, model, false, dense, experts);
}

unsigned
parallel_trained(const struct parallel_kind *kind, const struct parallel_mix *mix,
                 const struct parallel_model *model, double *dense, double *experts)
{
    return add_params(kind, mix, model, true, dense, experts);
}

double
parallel_memory_sum(const struct parallel_memory *m)
{
    return m->weights + m->gradients + m->optimizer + m->activations + m->working +
           m->overhead;
}

/* What a virtual stage holds for good, keeps of a microbatch, and needs for a while. */
struct held {
    double dense, experts; /* parameters */
    double dense_trained, experts_trained;
    double kept, working; /* bytes */
};

static void
at_least(double *most, double value)
{
    if (value > *most)
        *most = value;
}

/* The largest trained weight of these ops on one rank. */
static double
largest(const struct parallel_kind *kind, const struct parallel_mix *mix)
{
    double most = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double by = is_expert(op) ? mix->etp : parallel_divided(op->split, mix);
        if (op->does == PARALLEL_PRODUCT && !parallel_frozen(mix, op))
            at_least(&most, op->k * op->n / by);
    }
    return most;
}

/* What weights need for a while. The gradient of one is made in 16 bits and, but for
 * fp16, added in 32; weights that are sharded are gathered whole, this layer's and the
 * next one's. */
static double
passing(const struct parallel_kind *kind, const struct parallel_mix *mix,
        const struct parallel_model *model)
{
    double dense = 0, experts = 0;
    if (mix->zero < 3)
        return (ELEMENT + (mix->fp16 ? 0 : FLOAT)) * largest(kind, mix);
    parallel_held(kind, mix, model, &dense, &experts);
    return 2 * ELEMENT * (dense + experts);
}

/* Adds what the ops of a kind hold in so many layers that follow each other. What a layer
 * adds is computed once, but added layer by layer: a product would be rounded in another
 * way. */
static void
add_kind(const struct parallel_kind *kind, const struct parallel_mix *mix,
         const struct parallel_model *model, uint32_t layers, struct held *held)
{
    struct {
        double *sum, params;
    } part[2 * PARALLEL_OPS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double params = params_of(op, mix, model);
        if (params == 0)
            continue;
        part[n].sum = is_expert(op) ? &held->experts : &held->dense;
        part[n++].params = params;
        if (parallel_frozen(mix, op))
            continue;
        part[n].sum = is_expert(op) ? &held->experts_trained : &held->dense_trained;
        part[n++].params = params;
    }
    for (uint32_t i = 0; i < layers; i++)
        for (unsigned j = 0; j < n; j++)
            *part[j].sum += part[j].params;
}

double
parallel_sent_kept(const struct parallel_mix *mix, const struct parallel_model *model)
{
    return mix->pp > 1 ? input_of(model, mix) : 0;
}

/* `bytes` is what the loss holds of a score. */
static void
add_stage(const struct parallel_mix *mix, const struct parallel_model *model,
          uint32_t stage, double bytes, struct held *held)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    const unsigned *of = model->of + chunk.first;
    uint32_t again = parallel_again(mix, stage);
    double input = input_of(model, mix);
    for (uint32_t i = 0, end; i < chunk.layers; i = end) {
        unsigned which = of[i];
        const struct parallel_kind *kind = &model->kind[which];
        double all = parallel_kept(kind, model, mix), pass = passing(kind, mix, model);
        for (end = i; end < chunk.layers && of[end] == which; end++) {
            bool full = end < again;
            held->kept += full ? input : all;
            at_least(&held->working, pass + (full ? all : 0));
        }
        add_kind(kind, mix, model, end - i, held);
    }
    if (chunk.embedding) {
        add_kind(&model->embedding, mix, model, 1, held);
        held->kept += parallel_kept(&model->embedding, model, mix);
    }
    if (chunk.head) {
        double loss = parallel_kept(&model->head, model, mix);
        double copy = (double)model->t.words * model->t.width / mix->tp;
        add_kind(&model->head, mix, model, 1, held);
        if (model->t.tied && mix->pp > 1) { /* of the embedding's */
            held->dense += copy;
            held->dense_trained +=
                parallel_frozen(mix, &model->embedding.op[0]) ? 0 : copy;
        }
        loss += (bytes - FLOAT) * parallel_tokens(model, mix) * model->t.words / mix->tp;
        at_least(&held->working, loss);
        at_least(&held->working, passing(&model->head, mix, model));
    } else
        held->kept += parallel_sent_kept(mix, model);
}

double
parallel_stage_kept(const struct parallel_mix *mix, const struct parallel_model *model,
                    uint32_t stage)
{
    struct held held = {0};
    add_stage(mix, model, stage, FLOAT, &held);
    return held.kept;
}

void
parallel_memory_of(const struct parallel_mix *mix, const struct parallel_model *model,
                   uint32_t r, const struct parallel_stack *stack,
                   struct parallel_memory *memory)
{
    struct held held = {0};
    double whole, trained, shard, sharded, shards = (double)mix->dp * mix->cp;
    double spread = shards * mix->tp / ((double)mix->ep * mix->etp);
    double gradient = mix->gradient ? mix->gradient : mix->fp16 ? ELEMENT : stack->held;
    for (uint32_t i = 0; i < mix->vp; i++)
        add_stage(mix, model, parallel_stage(mix->schedule, mix->pp, r, i), stack->loss,
                  &held);
    if (mix->shard > 0)
        shards = mix->shard;
    if (spread > shards)
        spread = shards;
    whole = held.dense + held.experts;
    trained = held.dense_trained + held.experts_trained;
    shard = held.dense / shards + held.experts / spread;
    sharded = held.dense_trained / shards + held.experts_trained / spread;
    *memory = (struct parallel_memory){
        .weights = ELEMENT * whole,
        .gradients = gradient * (mix->zero >= 2 ? sharded : trained),
        .optimizer =
            (mix->fp16 ? ADAM_FP16 : ADAM) * (mix->zero >= 1 ? sharded : trained),
        .working = held.working,
        .overhead = stack->overhead,
    };
    if (mix->zero >= 3) {
        /* in 32 bits those that are trained are the optimizer's copy, too */
        memory->weights = ELEMENT * (mix->fp16 ? shard : shard - sharded);
        /* under a pipeline they stay whole between microbatches, and so do gradients */
        if (mix->pp > 1) {
            memory->weights += ELEMENT * whole;
            memory->gradients += FLOAT * trained;
        }
    }
}
