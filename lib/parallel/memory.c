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
    if (mix->lora > 0 && op->does == PARALLEL_PRODUCT)
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

unsigned
parallel_held(const struct parallel_kind *kind, const struct parallel_mix *mix,
              const struct parallel_model *model, double *dense, double *experts)
{
    unsigned tensors = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double weights = op->does == PARALLEL_PRODUCT ? op->k * op->n : 0, kv;
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

double
parallel_memory_sum(const struct parallel_memory *m)
{
    return m->weights + m->gradients + m->optimizer + m->activations + m->working;
}

/* Adds what virtual stage `chunk` holds for good, and what it keeps of a microbatch. */
static double
add_chunk(const struct parallel_mix *mix, const struct parallel_model *model,
          const struct parallel_chunk *chunk, double *dense, double *experts,
          double *working)
{
    double kept = 0;
    for (uint32_t i = 0; i < chunk->layers; i++) {
        const struct parallel_kind *kind = &model->kind[model->of[chunk->first + i]];
        bool full =
            mix->recompute == PARALLEL_FULL && (mix->again == 0 || i < mix->again);
        double all = parallel_kept(kind, model, mix);
        parallel_held(kind, mix, model, dense, experts);
        kept += full ? input_of(model, mix) : all;
        if (full && all > *working)
            *working = all;
    }
    if (chunk->embedding) {
        parallel_held(&model->embedding, mix, model, dense, experts);
        kept += parallel_kept(&model->embedding, model, mix);
    }
    if (chunk->head) {
        double loss = parallel_kept(&model->head, model, mix);
        parallel_held(&model->head, mix, model, dense, experts);
        if (model->t.tied && mix->pp > 1) /* a copy of the embedding's */
            *dense += (double)model->t.words * model->t.width / mix->tp;
        if (loss > *working)
            *working = loss;
    }
    return kept;
}

double
parallel_stage_kept(const struct parallel_mix *mix, const struct parallel_model *model,
                    uint32_t stage)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    double dense = 0, experts = 0, working = 0;
    return add_chunk(mix, model, &chunk, &dense, &experts, &working);
}

void
parallel_memory_of(const struct parallel_mix *mix, const struct parallel_model *model,
                   uint32_t r, double gradient, struct parallel_memory *memory)
{
    double dense = 0, experts = 0, working = 0, held, shards, spread;
    for (uint32_t i = 0; i < mix->vp; i++) {
        struct parallel_chunk chunk =
            parallel_chunk_of(mix, model, parallel_stage(mix->schedule, mix->pp, r, i));
        add_chunk(mix, model, &chunk, &dense, &experts, &working);
    }
    held = dense + experts;
    shards = mix->shard > 0 ? mix->shard : (double)mix->dp * mix->cp;
    spread = (double)mix->dp * mix->cp * mix->tp / ((double)mix->ep * mix->etp);
    if (spread > shards)
        spread = shards;
    *memory = (struct parallel_memory){
        .weights = ELEMENT * (mix->zero >= 3 ? dense / shards + experts / spread : held),
        .gradients =
            gradient * (mix->zero >= 2 ? dense / shards + experts / spread : held),
        .optimizer = ADAM * (mix->zero >= 1 ? dense / shards + experts / spread : held),
        .working = working,
    };
    if (mix->lora > 0)
        memory->gradients = memory->optimizer = 0;
}
