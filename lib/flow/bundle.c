/*
 * Bundles: flows of one route, of which there may be hundreds at once where a job sends
 * more than the network carries. They have one rate at every instant. So the search for
 * rates sees one bundle, and of its flows only the one that ends first must be known:
 * each ends when the bundle has sent what it had sent at the flow's start, and the
 * flow's bytes.
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* ---- amounts ----------------------------------------------------------------- */

/* Sums of many terms lose what a short flow needs, so what rounding leaves is kept. */
static struct amount
add(struct amount a, double bytes)
{
    double sum = a.high + bytes, part = sum - a.high;
    a.low += (a.high - (sum - part)) + (bytes - part);
    a.high = sum;
    return a;
}

static double
minus(struct amount a, struct amount b)
{
    return (a.high - b.high) + (a.low - b.low);
}

/* ---- the table of routes ------------------------------------------------------- */

static uint64_t
hash_route(const uint32_t *via, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = rec_mix(hash ^ via[i]);
    return hash;
}

static uint32_t *
bucket_of(const struct flow_links *links, uint32_t first, uint32_t n)
{
    return &links->bucket[hash_route(links->via + first, n) & (links->nbuckets - 1)];
}

static void
enter(struct flow_links *links, uint32_t number)
{
    const struct pace *pace = &links->pace[number];
    uint32_t *bucket = bucket_of(links, pace->first, pace->n);
    links->bundle[number].next = *bucket;
    *bucket = number;
}

static bool
grow_table(struct flow_links *links, struct rec_error *err)
{
    size_t before = links->nbuckets, n = before ? 2 * before : 64;
    uint32_t *old = links->bucket, *bucket = malloc(n * sizeof *bucket);
    if (!bucket)
        return rec_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        bucket[i] = FLOW_NONE;
    links->bucket = bucket;
    links->nbuckets = n;
    for (size_t i = 0; i < before; i++)
        for (uint32_t b = old[i], next; b != FLOW_NONE; b = next) {
            next = links->bundle[b].next;
            enter(links, b);
        }
    free(old);
    return true;
}

bool
bundle_reserve(struct flow_links *links, struct rec_error *err)
{
    size_t n = (size_t)links->nbundles + 1;
    return rec_grow(&links->pace, &links->pace_room, n, sizeof *links->pace, err) &&
           rec_grow(&links->bundle, &links->bundle_room, n, sizeof *links->bundle, err) &&
           rec_grow(&links->changed, &links->changed_room, n, sizeof *links->changed,
                    err) &&
           ends_reserve(&links->ends, n, err) &&
           (n < links->nbuckets || grow_table(links, err));
}

/* Flows that cross a link twice, and those of classes, have crossings of their own. */
static bool
is_route(const struct flow_links *links, uint32_t number, uint32_t first, uint32_t n,
         double weight)
{
    const struct pace *pace = &links->pace[number];
    double whole = links->bundle[number].weight;
    if (pace->n != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (links->via[pace->first + i] != links->via[first + i] ||
            links->crossing[pace->first + i] * weight !=
                links->crossing[first + i] * whole)
            return false;
    return true;
}

uint32_t
bundle_find(const struct flow_links *links, uint32_t n, double weight)
{
    uint32_t first = (uint32_t)links->nsteps, b;
    if (n == 0)
        return FLOW_NONE;
    for (b = *bucket_of(links, first, n); b != FLOW_NONE; b = links->bundle[b].next)
        if (is_route(links, b, first, n, weight))
            return b;
    return FLOW_NONE;
}

uint32_t
bundle_make(struct flow_links *links, const struct pace *pace)
{
    uint32_t number = links->free_bundle;
    if (number == FLOW_NONE)
        number = links->nbundles++;
    else
        links->free_bundle = links->bundle[number].next;
    links->pace[number] = *pace;
    links->bundle[number] =
        (struct bundle){.was = pace->rate, .since = links->now, .flow = FLOW_NONE};
    if (pace->n > 0)
        enter(links, number);
    return number;
}

void
bundle_drop(struct flow_links *links, uint32_t number)
{
    const struct pace *pace = &links->pace[number];
    if (pace->n > 0) {
        uint32_t *at = bucket_of(links, pace->first, pace->n);
        while (*at != number)
            at = &links->bundle[*at].next;
        *at = links->bundle[number].next;
    }
    links->bundle[number].next = links->free_bundle;
    links->free_bundle = number;
}

void
bundle_stand(struct flow_links *links, uint32_t number, bool still)
{
    const struct pace *pace = &links->pace[number];
    if (links->bundle[number].still == still)
        return;
    links->bundle[number].still = still;
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++) {
        struct account *account = &links->account[links->via[i]];
        uint32_t n = links->link[links->via[i]].n;
        if (still && ++account->still == n)
            account->busy += links->now - account->since;
        else if (!still && account->still-- == n)
            account->since = links->now;
    }
}

/* ---- the flows of a bundle ------------------------------------------------------- */

static bool
ends_before(const struct flow_links *links, uint32_t a, uint32_t b)
{
    const struct flow *x = &links->flow[a], *y = &links->flow[b];
    double later = minus(x->due, y->due);
    return later < 0 || (later == 0 && x->serial < y->serial);
}

/* Joins two heaps, either of which may be empty. */
static uint32_t
meld(struct flow_links *links, uint32_t a, uint32_t b)
{
    struct flow *flow = links->flow;
    uint32_t first = a, second = b;
    if (a == FLOW_NONE || b == FLOW_NONE)
        return a == FLOW_NONE ? b : a;
    if (ends_before(links, b, a)) {
        first = b;
        second = a;
    }
    flow[second].next = flow[first].child;
    if (flow[first].child != FLOW_NONE)
        flow[flow[first].child].before = second;
    flow[second].before = first;
    flow[first].child = second;
    return first;
}

/* Joins the children of a flow, two by two, and then all of them. */
static uint32_t
meld_children(struct flow_links *links, uint32_t parent)
{
    struct flow *flow = links->flow;
    uint32_t pairs = FLOW_NONE, whole = FLOW_NONE, next;
    for (uint32_t a = flow[parent].child, b; a != FLOW_NONE; a = next) {
        b = flow[a].next;
        next = b == FLOW_NONE ? FLOW_NONE : flow[b].next;
        flow[a].next = FLOW_NONE;
        if (b != FLOW_NONE)
            flow[b].next = FLOW_NONE;
        a = meld(links, a, b);
        flow[a].next = pairs;
        pairs = a;
    }
    for (; pairs != FLOW_NONE; pairs = next) {
        next = flow[pairs].next;
        flow[pairs].next = FLOW_NONE;
        whole = meld(links, whole, pairs);
    }
    return whole;
}

void
bundle_reach(struct flow_links *links, uint32_t number)
{
    struct bundle *bundle = &links->bundle[number];
    double bytes = bundle->was * (links->now - bundle->since);
    if (bytes > 0) {
        bundle->left = bundle->left > bytes ? bundle->left - bytes : 0;
        bundle->sent = add(bundle->sent, bytes);
    }
    bundle->since = links->now;
}

void
bundle_end(struct flow_links *links, uint32_t number)
{
    const struct bundle *bundle = &links->bundle[number];
    double end = links->now;
    if (bundle->flow == FLOW_NONE)
        end = (double)INFINITY;
    else if (bundle->left > 0)
        end =
            bundle->was > 0 ? links->now + bundle->left / bundle->was : (double)INFINITY;
    ends_set(&links->ends, number, end);
}

void
bundle_add(struct flow_links *links, uint32_t number, uint32_t f)
{
    struct bundle *bundle = &links->bundle[number];
    struct flow *flow = &links->flow[f];
    bundle_reach(links, number);
    flow->bundle = number;
    flow->due = add(bundle->sent, flow->size);
    flow->child = flow->next = FLOW_NONE;
    bundle->weight += flow->weight;
    bundle->flows++;
    bundle->before += flow->weight * bundle->sent.high;
    bundle->flow = meld(links, bundle->flow, f);
    if (bundle->flow == f) {
        bundle->left = flow->size;
        bundle_end(links, number);
    }
}

void
bundle_remove(struct flow_links *links, uint32_t f)
{
    struct flow *flow = &links->flow[f];
    struct bundle *bundle = &links->bundle[flow->bundle];
    uint32_t below = meld_children(links, f);
    bundle_reach(links, flow->bundle);
    bundle->before -= flow->weight * (flow->due.high - flow->size);
    if (bundle->flow != f) {
        struct flow *before = &links->flow[flow->before];
        *(before->child == f ? &before->child : &before->next) = flow->next;
        if (flow->next != FLOW_NONE)
            links->flow[flow->next].before = flow->before;
        bundle->flow = meld(links, bundle->flow, below);
        return;
    }
    /* Rounding of the time must not leave a rest to the others. */
    if (bundle->left <= 0 && minus(flow->due, bundle->sent) > 0)
        bundle->sent = flow->due;
    bundle->flow = below;
    if (below != FLOW_NONE) {
        bundle->left = minus(links->flow[below].due, bundle->sent);
        bundle->left = bundle->left > 0 ? bundle->left : 0;
    }
    bundle_end(links, flow->bundle);
}

double
bundle_left(const struct flow_links *links, uint32_t f)
{
    const struct flow *flow = &links->flow[f];
    const struct bundle *bundle = &links->bundle[flow->bundle];
    double left = bundle->flow == f ? bundle->left : minus(flow->due, bundle->sent);
    if (bundle->was > 0 && left > 0)
        left -= bundle->was * (links->now - bundle->since);
    return left > 0 ? left : 0;
}
