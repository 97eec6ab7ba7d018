/* Policies: how much a job is to be partitioned. */
#include "rampipe/alloc.h"

#include <math.h>

uint32_t
alloc_valid_degrees(const uint32_t shape[3], uint32_t most,
                    uint32_t degree[ALLOC_DEGREES_MAX])
{
    uint64_t servers = (uint64_t)shape[0] * shape[1] * shape[2];
    uint32_t n = 0;
    degree[n++] = 1;
    for (uint32_t d = 2; d <= most && d <= servers && n < ALLOC_DEGREES_MAX; d += 2)
        if (net_has_block(shape, d))
            degree[n++] = d;
    return n;
}

/* valid[0..n) from the largest down. */
static uint32_t
descend(const uint32_t *valid, uint32_t n, uint32_t *offered)
{
    for (uint32_t i = 0; i < n; i++)
        offered[i] = valid[n - 1 - i];
    return n;
}

/* How many valid degrees are at most `limit`; at least the first, 1. */
static uint32_t
up_to(const uint32_t *valid, uint32_t n, double limit)
{
    while (n > 1 && valid[n - 1] > limit)
        n--;
    return n;
}

uint32_t
alloc_policy_offer(enum alloc_policy policy, const uint32_t *valid, uint32_t nvalid,
                   uint32_t limit, double sequential, double deadline,
                   uint32_t (*draw)(void *context, uint32_t n), void *context,
                   uint32_t *offered)
{
    uint32_t n = nvalid;
    double target;

    switch (policy) {
    case ALLOC_POLICY_NONE: return descend(valid, 1, offered);
    case ALLOC_POLICY_MIN: return descend(valid, up_to(valid, n, 2), offered);
    case ALLOC_POLICY_MAX: return descend(valid, n, offered);
    case ALLOC_POLICY_SIP_ML: return descend(valid, up_to(valid, n, limit), offered);
    case ALLOC_POLICY_ACCEPTABLE_JCT:
        target = ceil(sequential / deadline);
        for (n = 1; n < nvalid && valid[n - 1] < target; n++)
            ;
        return descend(valid, n, offered);
    case ALLOC_POLICY_RANDOM:
        for (uint32_t i = 0; i < n; i++) { /* Fisher and Yates, from inside out */
            uint32_t j = draw(context, i + 1);
            offered[i] = offered[j];
            offered[j] = valid[i];
        }
        return n;
    case ALLOC_POLICY_ALL: break;
    }
    memcpy(offered, valid, n * sizeof *offered);
    return n;
}
