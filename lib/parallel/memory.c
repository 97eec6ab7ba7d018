/*
 * Memory of a device. What backward keeps is counted op by op (model.c); with the ops of
 * GPT it is the formula of Korthikanti et al., 2022: s b h (10 + 24 / t + 5 a s / (h t))
 * bytes a layer, and its variants for sequence parallelism and recomputation.
 */
#include "private.h"

/* Bytes of an element in 16 bits, and of what Adam holds of a parameter: a 32-bit copy
 * and two moments. */
enum { ELEMENT = 2, ADAM = 12 };

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
    return kept + op->kept_input / parallel_divided(PARALLEL_TOKENS, mix);
}

double
parallel_kept(const struct parallel_kind *kind, const struct parallel_model *model,
              const struct parallel_mix *mix)
{
    double sum = 0;
    for (unsigned i = 0; i < kind->nops; i++)
        sum += kept_of(&kind->op[i], model, mix, mix->recompute == PARALLEL_SELECTIVE);
    return sum * parallel_tokens(model, mix);
}

/* Of a layer that is run again: its input. */
static double
input_of(const struct parallel_model *model, const struct parallel_mix *mix)
{
    return ELEMENT * parallel_tokens(model, mix) * model->t.width /
           parallel_divided(PARALLEL_TOKENS, mix);
}

static unsigned
add_params(const struct parallel_kind *kind, const struct parallel_mix *mix,
           const struct parallel_model *model, bool trained, double *dense,
           double *experts)
{
    unsigned tensors = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double weights = op->does == PARALLEL_PRODUCT ? op->k * op->n : 0, kv;
        if (trained && parallel_frozen(mix, op))
            continue;
        switch (op->split) {
        case PARALLEL_EXPERTS:
        case PARALLEL_EXPERTS_INNER:
            *experts += op->params / ((double)mix->ep * mix->etp);
            break;
        case PARALLEL_COLUMNS:
            kv = op->n > 0 ? op->params * op->kv / op->n : 0;
            *dense += (op->params - kv) / mix->tp + kv / parallel_divided_kv(model, mix);
            break;
        case PARALLEL_INNER: /* each rank has all biases */
            *dense += op->params > 0 ? weights / mix->tp + (op->params - weights) : 0;
            break;
        case PARALLEL_VOCABULARY: *dense += op->params / mix->tp; break;
        default: *dense += op->params;
        }
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
    return m->weights + m->gradients + m->optimizer + m->activations + m->working;
}

/* Parameters on a device. */
struct params {
    double dense, experts;
    double dense_trained, experts_trained;
};

static void
add_kind(const struct parallel_kind *kind, const struct parallel_mix *mix,
         const struct parallel_model *model, struct params *p)
{
    parallel_held(kind, mix, model, &p->dense, &p->experts);
    parallel_trained(kind, mix, model, &p->dense_trained, &p->experts_trained);
}

/* Adds what a virtual stage holds for good. Returns what it keeps of a microbatch. */
static double
add_stage(const struct parallel_mix *mix, const struct parallel_model *model,
          uint32_t stage, struct params *p, double *working)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    double kept = 0;
    for (uint32_t i = 0; i < chunk.layers; i++) {
        const struct parallel_kind *kind = &model->kind[model->of[chunk.first + i]];
        bool full = i < parallel_again(mix, stage);
        double all = parallel_kept(kind, model, mix);
        add_kind(kind, mix, model, p);
        kept += full ? input_of(model, mix) : all;
        if (full && all > *working)
            *working = all;
    }
    if (chunk.embedding) {
        add_kind(&model->embedding, mix, model, p);
        kept += parallel_kept(&model->embedding, model, mix);
    }
    if (chunk.head) {
        double loss = parallel_kept(&model->head, model, mix);
        double copy = (double)model->t.words * model->t.width / mix->tp;
        add_kind(&model->head, mix, model, p);
        if (model->t.tied && mix->pp > 1) { /* of the embedding's */
            p->dense += copy;
            p->dense_trained += parallel_frozen(mix, &model->embedding.op[0]) ? 0 : copy;
        }
        if (loss > *working)
            *working = loss;
    }
    return kept;
}

double
parallel_stage_kept(const struct parallel_mix *mix, const struct parallel_model *model,
                    uint32_t stage)
{
    struct params p = {0};
    double working = 0;
    return add_stage(mix, model, stage, &p, &working);
}

void
parallel_memory_of(const struct parallel_mix *mix, const struct parallel_model *model,
                   uint32_t r, double gradient, struct parallel_memory *memory)
{
    struct params p = {0};
    double working = 0, shards, spread, trained, sharded;
    for (uint32_t i = 0; i < mix->vp; i++)
        add_stage(mix, model, parallel_stage(mix->schedule, mix->pp, r, i), &p, &working);
    shards = mix->shard > 0 ? mix->shard : (double)mix->dp * mix->cp;
    spread = (double)mix->dp * mix->cp * mix->tp / ((double)mix->ep * mix->etp);
    if (spread > shards)
        spread = shards;
    trained = p.dense_trained + p.experts_trained;
    sharded = p.dense_trained / shards + p.experts_trained / spread;
    *memory = (struct parallel_memory){
        .weights = ELEMENT * (mix->zero >= 3 ? p.dense / shards + p.experts / spread
                                             : p.dense + p.experts),
        .gradients = gradient * (mix->zero >= 2 ? sharded : trained),
        .optimizer = ADAM * (mix->zero >= 1 ? sharded : trained),
        .working = working,
    };
}
