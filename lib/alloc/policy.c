/* Policies: into how many parts the ops of a job may be split. A new one is a function
 * and a row of alloc_policies. */
#include "rampipe/alloc.h"

#include <math.h>

uint32_t
alloc_valid_degrees(const struct net *net, uint32_t most,
                    uint32_t degree[ALLOC_DEGREES_MAX])
{
    uint32_t servers = net_servers(net);
    uint32_t n = 0;
    degree[n++] = 1;
    for (uint32_t d = 2; d <= most && d <= servers && n < ALLOC_DEGREES_MAX; d += 2)
        if (net_has_block(net, d))
            degree[n++] = d;
    return n;
}

/* Offers valid[0..n), the largest first. */
static uint32_t
descend(const uint32_t *valid, uint32_t n, uint32_t *offered)
{
    for (uint32_t i = 0; i < n; i++)
        offered[i] = valid[n - 1 - i];
    return n;
}

/* How many of the valid degrees are at most `limit`; at least one, because the first is
 * 1. */
static uint32_t
up_to(const uint32_t *valid, uint32_t n, double limit)
{
    while (n > 1 && valid[n - 1] > limit)
        n--;
    return n;
}

static uint32_t
offer_none(const struct alloc_offer *o, uint32_t *offered)
{
    return descend(o->valid, 1, offered);
}

static uint32_t
offer_min(const struct alloc_offer *o, uint32_t *offered)
{
    return descend(o->valid, up_to(o->valid, o->nvalid, 2), offered);
}

static uint32_t
offer_max(const struct alloc_offer *o, uint32_t *offered)
{
    return descend(o->valid, o->nvalid, offered);
}

static uint32_t
offer_sip_ml(const struct alloc_offer *o, uint32_t *offered)
{
    return descend(o->valid, up_to(o->valid, o->nvalid, o->limit), offered);
}

/* Up to the first valid degree that would meet the deadline if parts computed perfectly
 * in parallel; that one first. If none would, all of them. */
static uint32_t
offer_acceptable_jct(const struct alloc_offer *o, uint32_t *offered)
{
    double target = ceil(o->sequential / o->deadline);
    uint32_t n = 1;
    while (n < o->nvalid && o->valid[n - 1] < target)
        n++;
    return descend(o->valid, n, offered);
}

/* The shuffle of Fisher and Yates in its inside-out form, which copies as it goes. */
static uint32_t
offer_random(const struct alloc_offer *o, uint32_t *offered)
{
    for (uint32_t i = 0; i < o->nvalid; i++) {
        uint32_t j = rng_below(o->rng, i + 1);
        offered[i] = offered[j];
        offered[j] = o->valid[i];
    }
    return o->nvalid;
}

static uint32_t
offer_all(const struct alloc_offer *o, uint32_t *offered)
{
    memcpy(offered, o->valid, o->nvalid * sizeof *offered);
    return o->nvalid;
}

const struct alloc_policy alloc_policies[] = {
    {"none", false, false, offer_none},
    {"min", false, false, offer_min},
    {"max", false, false, offer_max},
    {"sip-ml", true, false, offer_sip_ml},
    {"acceptable-jct", false, false, offer_acceptable_jct},
    {"random", false, true, offer_random},
    {"all", false, false, offer_all},
    {NULL, false, false, NULL}};
