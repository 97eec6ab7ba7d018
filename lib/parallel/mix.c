/* How a model is divided over ranks: what must divide what, and the layers of each
 * virtual stage. */
#include "private.h"

bool
parallel_frozen(const struct parallel_mix *mix, const struct parallel_op *op)
{
    return mix->frozen ? mix->frozen & op->part : mix->lora > 0;
}

uint32_t
parallel_again(const struct parallel_mix *mix, uint32_t stage)
{
    if (mix->recompute != PARALLEL_FULL)
        return 0;
    return mix->again_of ? mix->again_of[stage] : mix->again ? mix->again : UINT32_MAX;
}

uint32_t
parallel_microbatches(const struct parallel_mix *mix)
{
    return mix->global / (mix->dp * mix->micro);
}

uint64_t
parallel_ranks(const struct parallel_mix *mix)
{
    return (uint64_t)mix->tp * mix->cp * mix->pp * mix->dp;
}

/* Writes the divisors of `whole` next to `part`, below and above. */
static bool
fail_division(uint64_t whole, uint64_t part, const char *what, struct rec_error *err)
{
    uint64_t below = part < whole ? part : whole, above = part;
    while (below > 1 && whole % below != 0)
        below--;
    while (above < whole && whole % above != 0)
        above++;
    if (above > whole || above == below)
        return rec_fail(err, REC_DATA, "%s: %llu does not divide %llu; %llu does", what,
                        (unsigned long long)part, (unsigned long long)whole,
                        (unsigned long long)below);
    return rec_fail(err, REC_DATA, "%s: %llu does not divide %llu; %llu and %llu do",
                    what, (unsigned long long)part, (unsigned long long)whole,
                    (unsigned long long)below, (unsigned long long)above);
}

static bool
divides(uint64_t whole, uint64_t part, const char *what, struct rec_error *err)
{
    return whole % part == 0 || fail_division(whole, part, what, err);
}

static bool
check_layers(const struct parallel_mix *mix, const struct parallel_model *model,
             struct rec_error *err)
{
    uint64_t stages = (uint64_t)mix->pp * mix->vp, sum = 0;
    uint64_t all = (uint64_t)model->t.layers + (mix->ends ? 2 : 0);
    if (mix->layers) {
        for (uint64_t i = 0; i < stages; i++)
            sum += mix->layers[i];
        if (sum != all)
            return rec_fail(err, REC_DATA,
                            "the list of layers has %llu layers in all, the model %llu",
                            (unsigned long long)sum, (unsigned long long)all);
        return !mix->ends || (mix->layers[0] > 0 && mix->layers[stages - 1] > 0) ||
               rec_fail(err, REC_DATA,
                        "both ends count as layers: the first and the last of the list "
                        "must be at least 1");
    }
    if (mix->ends)
        return divides(all, stages, "layers, with both ends, over stages and chunks",
                       err);
    return stages <= all ||
           rec_fail(err, REC_DATA,
                    "%llu stages and chunks for %llu layers: some would have none",
                    (unsigned long long)stages, (unsigned long long)all);
}

/* What a rank gets a whole number of, or a whole number of ranks gets one of. */
static bool
shares(uint64_t whole, uint64_t part, const char *what, struct rec_error *err)
{
    return part % whole == 0 || divides(whole, part, what, err);
}

bool
parallel_tensor_check(const struct parallel_mix *mix, const struct parallel_model *model,
                      struct rec_error *err)
{
    const struct input_transformer *t = &model->t;
    bool latent = t->kv_rank > 0;
    if (!divides(t->heads, mix->tp, "heads over tensor ranks", err) ||
        !divides(mix->tp, mix->etp, "tensor ranks over those of an expert", err) ||
        (!latent &&
         !shares(t->kv_heads, mix->tp, "heads of keys over tensor ranks", err)))
        return false;
    for (unsigned i = 0; i < model->nkinds; i++) {
        if (!model->kind[i].experts &&
            !divides(t->inner, mix->tp, "the width of an MLP over tensor ranks", err))
            return false;
        if (model->kind[i].experts &&
            (!divides(t->expert_inner > 0 ? t->expert_inner : t->inner, mix->etp,
                      "the width of an expert over its tensor ranks", err) ||
             !divides(t->shared_inner, mix->tp,
                      "the width of shared experts over tensor ranks", err)))
            return false;
    }
    return true;
}

bool
parallel_context_check(const struct parallel_mix *mix, const struct parallel_model *model,
                       struct rec_error *err)
{
    const struct input_transformer *t = &model->t;
    uint64_t tokens = (uint64_t)model->sequence, dealt = (uint64_t)mix->tp * mix->cp;
    if (mix->cp > 1 &&
        !divides(tokens, mix->cp, "tokens of a sample over context ranks", err))
        return false;
    if (mix->sequence &&
        !divides(tokens / mix->cp, mix->tp,
                 "tokens of a sample on a context rank over tensor ranks "
                 "(sequence parallelism)",
                 err))
        return false;
    return mix->cp == 1 || !mix->deal_heads ||
           (divides(t->heads, dealt,
                    "heads, which are dealt, over tensor and context ranks", err) &&
            (t->kv_rank > 0 ||
             shares(t->kv_heads, dealt,
                    "heads of keys, which are dealt, over tensor and context ranks",
                    err)));
}

/* Ranks are counted in 32 bits. */
static bool
check_ranks(const struct parallel_mix *mix, struct rec_error *err)
{
    double ranks = (double)mix->tp * mix->cp * mix->dp * mix->pp;
    return ranks <= INT32_MAX ||
           rec_fail(err, REC_DATA, "tp x cp x dp x pp is %.0f devices, more than %d",
                    ranks, INT32_MAX);
}

uint32_t
parallel_zero(const struct parallel_mix *mix)
{
    uint64_t shards = mix->shard > 0 ? mix->shard : (uint64_t)mix->dp * mix->cp;
    return shards <= 1 && mix->zero > 2 ? 2 : mix->zero;
}

bool
parallel_mix_check(const struct parallel_mix *mix, const struct parallel_model *model,
                   struct rec_error *err)
{
    const struct input_transformer *t = &model->t;
    uint64_t group = (uint64_t)mix->dp * mix->cp * mix->tp;
    if (!check_ranks(mix, err) || !parallel_tensor_check(mix, model, err) ||
        !divides(mix->global, (uint64_t)mix->dp * mix->micro,
                 "samples of a step over replicas and microbatches", err) ||
        !check_layers(mix, model, err))
        return false;
    if (mix->ep > 1 && t->experts == 0)
        return rec_fail(err, REC_DATA, "expert parallelism %u, but no layer has experts",
                        mix->ep);
    if (t->experts > 0 &&
        (!divides(t->experts, mix->ep, "experts over expert ranks", err) ||
         !divides(group, (uint64_t)mix->ep * mix->etp,
                  "ranks of a stage over those of an expert group", err)))
        return false;
    if (!parallel_context_check(mix, model, err))
        return false;
    if (mix->shard > 0 && !divides(mix->dp, mix->shard, "replicas over shards", err))
        return false;
    if (mix->shard > 0 && mix->zero == 0)
        return rec_fail(err, REC_DATA,
                        "groups of %u replicas shard nothing: zero must be 1 to 3",
                        mix->shard);
    if (mix->shard > 0 && t->experts > 0 &&
        !divides(group / ((uint64_t)mix->ep * mix->etp), mix->shard,
                 "replicas of an expert over shards", err))
        return false;
    if (!parallel_order_check(mix, t->experts > 0, err))
        return false;
    if (mix->lora > 0 && t->experts > 0 && mix->adapters & PARALLEL_ADAPT_MLP)
        return rec_fail(
            err, REC_DATA,
            "adapters of experts are not modelled: lora_on must not have mlp");
    if (mix->lora == 0 && mix->frozen == PARALLEL_PART_ALL)
        return rec_fail(err, REC_DATA,
                        "all weights are frozen and there are no adapters (lora_rank=): "
                        "nothing is trained");
    return true;
}

struct parallel_chunk
parallel_chunk_of(const struct parallel_mix *mix, const struct parallel_model *model,
                  uint32_t stage)
{
    uint32_t stages = mix->pp * mix->vp, ends = mix->ends ? 2 : 0;
    uint32_t all = model->t.layers + ends, first = 0, n;
    struct parallel_chunk chunk = {.embedding = stage == 0, .head = stage == stages - 1};
    if (mix->layers) {
        for (uint32_t i = 0; i < stage; i++)
            first += mix->layers[i];
        n = mix->layers[stage];
    } else {
        uint32_t more = all % stages;
        n = all / stages + (stage < more);
        first = stage * (all / stages) + (stage < more ? stage : more);
    }
    if (mix->ends) {
        /* layer 0 of the list is the embedding, the last one the head */
        n -= (chunk.embedding ? 1U : 0U) + (chunk.head ? 1U : 0U);
        first = chunk.embedding ? 0 : first - 1;
    }
    chunk.first = first;
    chunk.layers = n;
    return chunk;
}
