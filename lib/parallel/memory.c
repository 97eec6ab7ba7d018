/*
 * Memory of a device. What backward keeps is counted op by op (model.c); with the ops of
 * GPT it is the formula of Korthikanti et al., 2022: s b h (10 + 24 / t + 5 a s / (h t))
 * bytes a layer, and its variants for sequence parallelism and recomputation.
 */
#include "private.h"

#include <math.h>
#include <string.h>

/* Bytes of an element in 16 bits and in 32. */
enum { ELEMENT = 2, FLOAT = 4 };
/* Of what Adam holds of a parameter: a 32-bit copy and two moments. */
enum { ADAM = 12 };

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

/* Products that multiply in 8 or 4 bits; the head does in 16. */
static bool
small(const struct parallel_op *op, const struct parallel_mix *mix)
{
    return op->does == PARALLEL_PRODUCT && op->split != PARALLEL_VOCABULARY &&
           mix->precision != PARALLEL_BF16;
}

/* They keep their inputs as they read them. */
static double
input_share(const struct parallel_op *op, const struct parallel_mix *mix)
{
    return !small(op, mix) ? 1 : mix->precision == PARALLEL_FP8 ? 0.5 : 0.25;
}

/* What a frozen weight takes: as the products read it, since no optimizer needs it in 16
 * bits. In 4 bits blocks of 16 have a scale, along each dimension of a copy. */
static double
frozen_bytes(const struct parallel_op *op, const struct parallel_mix *mix)
{
    if (!small(op, mix) || op->split == PARALLEL_TOKENS)
        return ELEMENT;
    return mix->precision == PARALLEL_FP8 ? mix->turned ? 2 : 1 : 2 * 0.5625;
}

/* Of what an op keeps, the share that stays if it is kept in 8 bits: attention keeps what
 * its kernel reads, and the result, which is the input of the projection; the activation
 * function its input. */
static double
kept_share(const struct parallel_op *op, const struct parallel_mix *mix)
{
    bool attention = op->does == PARALLEL_ATTENTION || op->segment == PARALLEL_PROJECTION;
    bool up = op->segment == PARALLEL_MLP && op->does == PARALLEL_PRODUCT;
    return (attention && mix->attention_fp8) || (up && mix->activation_fp8) ? 0.5 : 1;
}

/* An adapter keeps its input behind dropout, and the mask. */
static double
adapter_kept(const struct parallel_op *op, const struct parallel_mix *mix)
{
    double by = op->split == PARALLEL_INNER ? parallel_divided(op->split, mix)
                                            : parallel_divided(PARALLEL_TOKENS, mix);
    return parallel_adapted(mix, op) ? (ELEMENT + 1) * op->k / by : 0;
}

/* Pairs of a query and a key are a matrix of `sequence` columns. */
static double
kept_of(const struct parallel_op *op, const struct parallel_model *model,
        const struct parallel_mix *mix, bool selective)
{
    double shared = op->does == PARALLEL_PRODUCT ? 0 : op->kv;
    double by = parallel_divided(op->split, mix);
    /* of each query, in 32 bits */
    double statistic =
        op->does == PARALLEL_ATTENTION ? FLOAT * (double)model->t.heads : 0;
    double kept = ((op->kept - statistic - shared) / by +
                   shared / parallel_divided_kv(model, mix)) *
                      kept_share(op, mix) +
                  statistic / by;
    bool frozen = parallel_frozen(mix, op);
    if ((op->core && selective) || (frozen && op->next_input))
        return 0;
    if (op->does == PARALLEL_PRODUCT && frozen) /* its weights need no input */
        return kept + adapter_kept(op, mix);
    if (op->matched && !parallel_softmax_joined(model, mix)) /* in 32 bits, not in 16 */
        kept += (FLOAT - ELEMENT) * model->t.heads / by;
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
    if (model->t.gated &&
        (strcmp(op->name, "MLP up") == 0 || strcmp(op->name, "experts up") == 0)) {
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

/* Those of its adapter, which tensor ranks divide. They are trained. */
static double
adapter_params(const struct parallel_op *op, const struct parallel_mix *mix)
{
    return parallel_adapted(mix, op) ? mix->lora * (op->k + op->n) / mix->tp : 0;
}

/* Those of the copy of a tied embedding that the head has, on another device. A search
 * has no schedule yet; it takes none that is a V. */
static double
tied_params(const struct parallel_mix *mix, const struct parallel_model *model)
{
    bool apart = mix->pp > 1 && !(mix->schedule && mix->schedule->vshape);
    return model->t.tied && apart ? (double)model->t.words * model->t.width / mix->tp : 0;
}

static void
add_params(const struct parallel_kind *kind, const struct parallel_mix *mix,
           const struct parallel_model *model, bool trained, double *dense,
           double *experts)
{
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        *dense += adapter_params(op, mix);
        if (trained && parallel_frozen(mix, op))
            continue;
        *(is_expert(op) ? experts : dense) += params_of(op, mix, model);
    }
    if (kind == &model->head &&
        !(trained && parallel_frozen(mix, &model->embedding.op[0])))
        *dense += tied_params(mix, model);
}

void
parallel_held(const struct parallel_kind *kind, const struct parallel_mix *mix,
              const struct parallel_model *model, double *dense, double *experts)
{
    add_params(kind, mix, model, false, dense, experts);
}

void
parallel_trained(const struct parallel_kind *kind, const struct parallel_mix *mix,
                 const struct parallel_model *model, double *dense, double *experts)
{
    add_params(kind, mix, model, true, dense, experts);
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
    double layer;  /* bytes for a while, of a layer or an end */
    double loss;   /* bytes for a while, of the scores of words */
    double scores; /* bytes of the scores of all microbatches */
    double whole;  /* parameters of the ends */
    double most;   /* parameters of the largest trained weight */
    double saved;  /* bytes of frozen weights in 8 or 4 bits that 16 would take more */
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
 * fp16, added in 32, unless copy_of() adds it later; weights that are sharded are
 * gathered whole, this layer's and the next one's. */
static double
passing(const struct parallel_kind *kind, const struct parallel_mix *mix,
        const struct parallel_model *model, const struct parallel_stack *stack)
{
    double dense = 0, experts = 0;
    if (parallel_zero(mix) < 3)
        return (ELEMENT + (mix->fp16 || stack->flat ? 0 : FLOAT)) * largest(kind, mix);
    parallel_held(kind, mix, model, &dense, &experts);
    return 2 * ELEMENT * (dense + experts);
}

/* Adds what some layers of a kind hold. The parts of one layer are computed once. Then
 * they are added for each layer, since one multiplication would round in another way. */
static void
add_kind(const struct parallel_kind *kind, const struct parallel_mix *mix,
         const struct parallel_model *model, uint32_t layers, struct held *held)
{
    struct {
        double *sum, adds;
    } part[4 * PARALLEL_OPS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double params = params_of(op, mix, model), adapter = adapter_params(op, mix);
        if (params == 0)
            continue;
        if (adapter > 0) {
            part[n].sum = &held->dense;
            part[n++].adds = adapter;
            part[n].sum = &held->dense_trained;
            part[n++].adds = adapter;
        }
        part[n].sum = is_expert(op) ? &held->experts : &held->dense;
        part[n++].adds = params;
        if (parallel_frozen(mix, op)) {
            part[n].sum = &held->saved;
            part[n++].adds = (ELEMENT - frozen_bytes(op, mix)) * params;
        } else {
            part[n].sum = is_expert(op) ? &held->experts_trained : &held->dense_trained;
            part[n++].adds = params;
        }
    }
    for (uint32_t i = 0; i < layers; i++)
        for (unsigned j = 0; j < n; j++)
            *part[j].sum += part[j].adds;
}

double
parallel_sent_kept(const struct parallel_mix *mix, const struct parallel_model *model)
{
    return mix->pp > 1 && !mix->frees ? input_of(model, mix) : 0;
}

/* Backward an op reads the gradient of its result and writes that of its input: of the
 * widest op of a layer that is no product. When a product runs, what the ops behind it
 * had kept is free again. */
static double
gradients_of(const struct parallel_kind *kind, const struct parallel_model *model,
             const struct parallel_mix *mix)
{
    double most = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        /* softmax and dropout pass on as many scores as they get */
        double wide = op->matched ? 2.0 * model->t.heads * model->sequence : op->moved;
        at_least(&most, wide / parallel_divided(op->split, mix));
    }
    return ELEMENT * parallel_tokens(model, mix) * most;
}

/* Of a layer that is computed again, what its backward pass needs beside what was kept;
 * autograd keeps the inputs of products as they were gathered, unless the gather is cut
 * into pieces beside the product. */
static double
again_of(const struct parallel_kind *kind, const struct parallel_model *model,
         const struct parallel_mix *mix, bool full, bool gathered)
{
    struct parallel_mix whole = *mix;
    double all, sum = 0, parts = parallel_divided(PARALLEL_TOKENS, mix);
    whole.recompute = PARALLEL_KEEP_ALL;
    all = parallel_kept(kind, model, &whole);
    if (gathered && !(mix->overlap & PARALLEL_OVERLAP_TP))
        for (unsigned i = 0; i < kind->nops; i++)
            sum += kind->op[i].kept_input * (1 - 1 / parts);
    return sum * parallel_tokens(model, mix) +
           (full ? all : all - parallel_kept(kind, model, mix));
}

static void
add_head(const struct parallel_mix *mix, const struct parallel_model *model,
         const struct parallel_stack *stack, struct held *held)
{
    double copy = (double)model->t.words * model->t.width / mix->tp;
    double scores = parallel_tokens(model, mix) * model->t.words / mix->tp;
    double bytes = mix->tp > 1 ? stack->sharded_loss : stack->loss;
    add_kind(&model->head, mix, model, 1, held);
    held->dense += tied_params(mix, model);
    if (!parallel_frozen(mix, &model->embedding.op[0]))
        held->dense_trained += tied_params(mix, model);
    held->loss += parallel_kept(&model->head, model, mix) + (bytes - FLOAT) * scores;
    if (stack->reserved && mix->sequence)
        held->loss += ELEMENT * parallel_tokens(model, mix) * model->t.width;
    if (mix->pp > 1) /* the scores, and their concatenation */
        held->scores += 2 * ELEMENT * scores * parallel_microbatches(mix);
    held->whole += model->t.tied ? 0 : copy;
    at_least(&held->most, largest(&model->head, mix));
    at_least(&held->layer, passing(&model->head, mix, model, stack));
}

/* The end of the layers from i on that are of one kind, and all or none of which are
 * computed again. */
static uint32_t
run_of(const struct parallel_model *model, const struct parallel_chunk *chunk,
       uint32_t again, uint32_t i)
{
    const unsigned *of = model->of + chunk->first;
    uint32_t end = i + 1;
    while (end < chunk->layers && of[end] == of[i] && (end < again) == (i < again))
        end++;
    return end;
}

static void
add_stage(const struct parallel_mix *mix, const struct parallel_model *model,
          uint32_t stage, const struct parallel_stack *stack, struct held *held)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    uint32_t computed = parallel_again(mix, stage);
    for (uint32_t i = 0, end; i < chunk.layers; i = end) {
        const struct parallel_kind *kind = &model->kind[model->of[chunk.first + i]];
        bool full = i < computed, again = full || mix->recompute == PARALLEL_HALF;
        bool core = mix->recompute == PARALLEL_SELECTIVE;
        end = run_of(model, &chunk, computed, i);
        add_kind(kind, mix, model, end - i, held);
        at_least(&held->most, largest(kind, mix));
        at_least(&held->layer,
                 passing(kind, mix, model, stack) + gradients_of(kind, model, mix) +
                     (again || core
                          ? again_of(kind, model, mix, full, again && stack->reserved)
                          : 0));
    }
    if (chunk.embedding) {
        double table = (double)model->t.words * model->t.width / mix->tp;
        add_kind(&model->embedding, mix, model, 1, held);
        held->whole += table;
        if (!parallel_frozen(mix, &model->embedding.op[0]))
            at_least(&held->most, table);
    }
    if (chunk.head)
        add_head(mix, model, stack, held);
}

double
parallel_stage_kept(const struct parallel_mix *mix, const struct parallel_model *model,
                    uint32_t stage)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    double sum = chunk.head ? 0 : parallel_sent_kept(mix, model);
    uint32_t computed = parallel_again(mix, stage);
    for (uint32_t i = 0, end; i < chunk.layers; i = end) {
        const struct parallel_kind *kind = &model->kind[model->of[chunk.first + i]];
        double kept =
            i < computed ? input_of(model, mix) : parallel_kept(kind, model, mix);
        for (end = run_of(model, &chunk, computed, i); i < end; i++)
            sum += kept;
    }
    return sum + (chunk.embedding ? parallel_kept(&model->embedding, model, mix) : 0);
}

/*
 * What copies of gradients take when backward is over, and has freed its activations. The
 * optimizer of fp16 reads them in 32 bits, which are freed behind its step
 * (_copy_model_grads_to_main_grads() in megatron/core/optimizer/optimizer.py). DeepSpeed
 * makes them flat, too: of all, in 32 bits twice (FP16_Optimizer.step()); of a shard, in
 * 16 bits and in 32 (DeepSpeedZeroOptimizer.step()); of bf16 each weight's in 32, in turn
 * (BF16_Optimizer.update_hp_grads()).
 */
static double
copy_of(const struct parallel_mix *mix, const struct parallel_stack *stack,
        double trained, double sharded, double most)
{
    if (!mix->fp16)
        return stack->flat ? FLOAT * most : 0;
    if (mix->zero >= 1)
        return (FLOAT + (stack->flat ? ELEMENT : 0)) * sharded;
    return (stack->flat ? 2 * FLOAT : FLOAT) * trained;
}

void
parallel_memory_of(const struct parallel_mix *asked, const struct parallel_model *model,
                   uint32_t r, const struct parallel_stack *stack,
                   struct parallel_memory *memory)
{
    struct parallel_mix copy = *asked, *mix = &copy;
    struct held held = {0};
    double whole, trained, shard, sharded, shards = (double)mix->dp * mix->cp;
    double spread = shards * mix->tp / ((double)mix->ep * mix->etp);
    double gradient = mix->gradient ? mix->gradient : mix->fp16 ? ELEMENT : stack->held;
    if (mix->shard > 0)
        shards = mix->shard;
    if (spread > shards)
        spread = shards;
    mix->zero = parallel_zero(mix);
    for (uint32_t i = 0; i < mix->vp; i++)
        add_stage(mix, model, parallel_stage(mix->schedule, mix->pp, r, i), stack, &held);
    whole = held.dense + held.experts;
    trained = held.dense_trained + held.experts_trained;
    shard = held.dense / shards + held.experts / spread;
    sharded = held.dense_trained / shards + held.experts_trained / spread;
    *memory = (struct parallel_memory){
        .weights = ELEMENT * whole - held.saved,
        .gradients = gradient * (mix->zero >= 2 ? sharded : trained),
        .optimizer = ADAM * (mix->zero >= 1 ? sharded : trained),
        .copy = copy_of(mix, stack, trained, sharded, held.most),
        .working = stack->reserved ? held.loss + held.layer : fmax(held.loss, held.layer),
        .overhead = stack->overhead + (stack->reserved ? held.scores : 0),
    };
    if (mix->zero >= 3) {
        /* in 32 bits those that are trained are the optimizer's copy, too */
        memory->weights = ELEMENT * (mix->fp16 ? shard : shard - sharded);
        /* under a pipeline they stay whole between microbatches, and so do gradients */
        if (mix->pp > 1) {
            memory->weights += ELEMENT * whole;
            memory->gradients += FLOAT * trained;
        } else if (stack->reserved)
            memory->weights += ELEMENT * held.whole;
    }
    /* the driver counts what the allocator has kept of both */
    if (stack->overhead > 0) {
        memory->optimizer += memory->copy;
        memory->copy = 0;
    }
}

void
parallel_memory_keep(struct parallel_memory *memory, double activations)
{
    memory->activations = activations;
    memory->working = fmax(memory->working, memory->copy - activations);
}
