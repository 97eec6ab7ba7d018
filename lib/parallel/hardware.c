/* Operations that devices run: those of the model, and what they run again. */
#include "private.h"

bool
parallel_runs_again(const struct parallel_mix *mix, const struct parallel_op *op,
                    unsigned product)
{
    bool core = op->core || op->does == PARALLEL_SCORES;
    bool kept = op->does == PARALLEL_ATTENTION ||
                (op->does == PARALLEL_PRODUCT && product % 2 == 0);
    return mix->recompute == PARALLEL_FULL ||
           (mix->recompute == PARALLEL_SELECTIVE && core) ||
           (mix->recompute == PARALLEL_HALF && !kept);
}

/* Multiply-adds of a token through a layer, forward, again, backward. */
static double
work_of(const struct parallel_model *model, const struct parallel_mix *mix,
        const struct parallel_kind *kind, double attention, bool again)
{
    unsigned products = 0;
    double sum = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        double times = parallel_frozen(mix, op) && op->does == PARALLEL_PRODUCT ? 2 : 3;
        if (again && parallel_runs_again(mix, op, products))
            times++;
        sum += times * parallel_op_work(model, kind, op, attention);
        products += op->does == PARALLEL_PRODUCT;
    }
    return sum;
}

double
parallel_hardware_flops(const struct parallel_model *model,
                        const struct parallel_mix *mix, double attention)
{
    double sum = work_of(model, mix, &model->head, attention, false);
    for (uint32_t stage = 0; stage < mix->pp * mix->vp; stage++) {
        struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
        for (uint32_t j = 0; j < chunk.layers; j++)
            sum += work_of(
                model, mix, &model->kind[model->of[chunk.first + j]], attention,
                mix->recompute != PARALLEL_FULL || j < parallel_again(mix, stage));
    }
    return 2 * sum * mix->global * model->sequence;
}
