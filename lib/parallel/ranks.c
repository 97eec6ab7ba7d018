/* Which ranks a stage and a group have. */
#include "private.h"

uint64_t
parallel_rank(const struct parallel_mix *mix, uint32_t device, uint32_t column)
{
    uint32_t inside = mix->tp * mix->cp;
    if (mix->order == PARALLEL_TP_CP_DP_PP)
        return (uint64_t)device * inside * mix->dp + column;
    return ((uint64_t)(column / inside) * mix->pp + device) * inside + column % inside;
}

uint32_t
parallel_members(const struct parallel_mix *mix, enum parallel_group group,
                 uint32_t column, uint32_t *member)
{
    bool experts = group == PARALLEL_EXPERT_SHARDS || group == PARALLEL_EXPERT_BETWEEN;
    bool between = group == PARALLEL_BETWEEN || group == PARALLEL_EXPERT_BETWEEN;
    uint32_t stride = experts ? mix->ep * mix->etp : mix->tp;
    uint32_t all = mix->tp * mix->cp * mix->dp / stride, own = column / stride;
    uint32_t shards = mix->shard > 0 && mix->shard < all ? mix->shard : all;
    uint32_t n = between ? all / shards : shards;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t replica = between ? i * shards + own % shards : own - own % shards + i;
        member[i] = replica * stride + column % stride;
    }
    return n;
}
