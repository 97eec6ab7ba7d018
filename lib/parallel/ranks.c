/*
 * Which ranks a stage and a group have.
 *
 * A rank has a digit for each dimension: tensor, context, expert, replica, stage. The
 * order of ranks says which digit changes fastest. Without the stage, what is left is the
 * number of the column, 0 to t c D - 1. Experts deal the same columns in another way:
 * their dimensions are expert tensor, expert, replica of an expert.
 */
#include "private.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"tp", "cp", "ep", "dp", "pp"};
enum { DIMENSIONS = PARALLEL_DIMENSIONS, ORDERS = 120 };

/* ---- orders -------------------------------------------------------------- */

static unsigned
bit(unsigned a, unsigned b)
{
    return 1U << (a * DIMENSIONS + b);
}

bool
parallel_order_before(unsigned order, enum parallel_dimension a,
                      enum parallel_dimension b)
{
    return a < b ? !(order & bit(a, b)) : order & bit(b, a);
}

/* The order of a list of all dimensions. */
static unsigned
order_of(const unsigned list[DIMENSIONS])
{
    unsigned order = 0;
    for (unsigned i = 0; i < DIMENSIONS; i++)
        for (unsigned j = i + 1; j < DIMENSIONS; j++)
            if (list[i] > list[j])
                order |= bit(list[j], list[i]);
    return order;
}

bool
parallel_order_read(struct rec_str text, unsigned *order)
{
    unsigned list[DIMENSIONS], n = 0, seen = 0, any = 0;
    for (;; text.ptr++, text.len--) {
        unsigned d = 0;
        while (d < DIMENSIONS && (text.len < 2 || memcmp(text.ptr, names[d], 2) != 0))
            d++;
        if (d == DIMENSIONS || seen & 1U << d)
            return false;
        seen |= 1U << d;
        list[n++] = d;
        text.ptr += 2, text.len -= 2;
        if (text.len == 0)
            break;
        if (*text.ptr != '-' && *text.ptr != ',')
            return false;
    }
    if (n == DIMENSIONS - 1 && !(seen & 1U << PARALLEL_DIM_EP)) {
        /* inside the replicas */
        any = PARALLEL_ORDER_ANY;
        for (; n > 0 && list[n - 1] != PARALLEL_DIM_DP; n--)
            list[n] = list[n - 1];
        list[n] = PARALLEL_DIM_DP;
        list[n - 1] = PARALLEL_DIM_EP;
        n = DIMENSIONS;
    }
    if (n < DIMENSIONS)
        return false;
    *order = order_of(list) | any;
    return true;
}

/* The i-th of all orders, beginning with tp-cp-ep-dp-pp; `any`: without ep. */
static unsigned
order_number(unsigned i, bool any, char text[16])
{
    unsigned left[DIMENSIONS] = {0, 1, 2, 3, 4}, all = ORDERS, order = 0;
    text[0] = 0;
    for (unsigned n = DIMENSIONS; n > 0; n--) {
        unsigned which = i / (all /= n), d = left[which];
        i %= all;
        memmove(&left[which], &left[which + 1], (n - 1 - which) * sizeof *left);
        if (!any || d != PARALLEL_DIM_EP)
            snprintf(text + strlen(text), 16 - strlen(text), "%s%s", *text ? "-" : "",
                     names[d]);
    }
    return parallel_order_read(rec_str(text), &order) ? order : 0;
}

/* ---- columns ------------------------------------------------------------- */

/* How many ranks each dimension has, of experts or of what is not one. */
static void
sizes(const struct parallel_mix *mix, bool experts, uint32_t size[DIMENSIONS])
{
    uint32_t all = mix->tp * mix->cp * mix->dp;
    size[PARALLEL_DIM_TP] = experts ? mix->etp : mix->tp;
    size[PARALLEL_DIM_CP] = experts ? 1 : mix->cp;
    size[PARALLEL_DIM_EP] = experts ? mix->ep : 1;
    size[PARALLEL_DIM_DP] = experts ? all / (mix->ep * mix->etp) : mix->dp;
    size[PARALLEL_DIM_PP] = 1;
}

/* How far apart neighbours in a dimension are; of stages, how many columns lie together
 * before the next stage. */
static uint32_t
stride_of(const struct parallel_mix *mix, bool experts, enum parallel_dimension of)
{
    uint32_t size[DIMENSIONS], stride = 1;
    sizes(mix, experts, size);
    for (unsigned d = 0; d < DIMENSIONS; d++)
        if (d != of && parallel_order_before(mix->order, (enum parallel_dimension)d, of))
            stride *= size[d];
    return stride;
}

uint32_t
parallel_together(const struct parallel_mix *mix)
{
    return stride_of(mix, false, PARALLEL_DIM_PP);
}

uint64_t
parallel_rank(const struct parallel_mix *mix, uint32_t device, uint32_t column)
{
    uint32_t together = parallel_together(mix);
    return ((uint64_t)(column / together) * mix->pp + device) * together +
           column % together;
}

static struct parallel_spread
line(const struct parallel_mix *mix, bool experts, enum parallel_dimension of)
{
    uint32_t size[DIMENSIONS];
    sizes(mix, experts, size);
    return (struct parallel_spread){stride_of(mix, experts, of), size[of], 1, 1};
}

/* Context ranks and replicas, the nearer of the two first; one line if it can be. */
static struct parallel_spread
replicas(const struct parallel_mix *mix)
{
    struct parallel_spread a = line(mix, false, PARALLEL_DIM_CP), b;
    b = line(mix, false, PARALLEL_DIM_DP);
    if (b.stride < a.stride || (b.stride == a.stride && a.n == 1)) {
        struct parallel_spread swap = a;
        a = b, b = swap;
    }
    if (b.n == 1 || a.n == 1 || a.stride * a.n == b.stride)
        return (struct parallel_spread){a.n == 1 ? b.stride : a.stride, a.n * b.n, 1, 1};
    return (struct parallel_spread){a.stride, a.n, b.stride, b.n};
}

/* Without regard to shards. */
static struct parallel_spread
spread(const struct parallel_mix *mix, enum parallel_group group)
{
    switch (group) {
    case PARALLEL_TENSOR: return line(mix, false, PARALLEL_DIM_TP);
    case PARALLEL_CONTEXT: return line(mix, false, PARALLEL_DIM_CP);
    case PARALLEL_EXPERT: return line(mix, true, PARALLEL_DIM_EP);
    case PARALLEL_EXPERT_SHARDS:
    case PARALLEL_EXPERT_BETWEEN: return line(mix, true, PARALLEL_DIM_DP);
    default: return replicas(mix);
    }
}

struct parallel_spread
parallel_spread_of(const struct parallel_mix *mix, enum parallel_group group)
{
    struct parallel_spread s = spread(mix, group);
    uint32_t all = s.n * s.rows;
    uint32_t shards = mix->shard > 0 && mix->shard < all ? mix->shard : all;
    if (group == PARALLEL_TENSOR || group == PARALLEL_CONTEXT || group == PARALLEL_EXPERT)
        return s;
    if (group == PARALLEL_SHARDS || group == PARALLEL_EXPERT_SHARDS) {
        if (shards <= s.n)
            return (struct parallel_spread){s.stride, shards, 1, 1};
        s.rows = shards / s.n;
        return s;
    }
    if (shards >= s.n)
        return (struct parallel_spread){
            s.rows > 1 ? s.far * (shards / s.n) : s.stride * shards, all / shards, 1, 1};
    s.stride *= shards;
    s.n /= shards;
    return s;
}

uint32_t
parallel_members(const struct parallel_mix *mix, enum parallel_group group,
                 uint32_t column, uint32_t *member)
{
    struct parallel_spread s = parallel_spread_of(mix, group);
    uint32_t first = column - column / s.stride % s.n * s.stride;
    first -= first / s.far % s.rows * s.far;
    for (uint32_t i = 0; i < s.n * s.rows; i++)
        member[i] = first + i % s.n * s.stride + i / s.n * s.far;
    return s.n * s.rows;
}

/* ---- what can be laid out ------------------------------------------------ */

/* NULL: it can. */
static const char *
wrong(const struct parallel_mix *mix, bool experts)
{
    uint32_t together = parallel_together(mix);
    struct parallel_spread e = line(mix, true, PARALLEL_DIM_EP);
    bool inside = parallel_order_before(mix->order, PARALLEL_DIM_EP, PARALLEL_DIM_PP);
    if (experts && mix->etp > 1 &&
        stride_of(mix, true, PARALLEL_DIM_TP) != stride_of(mix, false, PARALLEL_DIM_TP))
        return "the tensor ranks of an expert are not those of a tensor group";
    if (experts && mix->ep > 1 && mix->pp > 1 && !(mix->order & PARALLEL_ORDER_ANY)) {
        if (inside && together % (e.stride * e.n) != 0)
            return "expert groups do not fit in what lies before the next stage";
        if (!inside && e.stride % together != 0)
            return "expert ranks lie before the next stage, not behind it";
    }
    if (mix->shard > 0 && spread(mix, PARALLEL_SHARDS).rows > 1)
        return "groups that shard lie across tensor groups";
    return NULL;
}

/* By how many exchanges of neighbours two orders differ. */
static unsigned
distance(unsigned a, unsigned b)
{
    unsigned n = 0;
    for (unsigned differ = (a ^ b) & ~PARALLEL_ORDER_ANY; differ; differ &= differ - 1)
        n++;
    return n;
}

bool
parallel_order_check(const struct parallel_mix *mix, bool experts, struct rec_error *err)
{
    const char *why = wrong(mix, experts);
    bool any = mix->order & PARALLEL_ORDER_ANY;
    struct parallel_mix other = *mix;
    unsigned least = UINT32_MAX;
    char text[16], nearest[16] = "";
    if (!why)
        return true;
    for (unsigned i = 0; i < ORDERS; i++) {
        other.order = order_number(i, any, text);
        if (!wrong(&other, experts) && distance(mix->order, other.order) < least) {
            least = distance(mix->order, other.order);
            memcpy(nearest, text, sizeof text);
        }
    }
    return rec_fail(err, REC_DATA,
                    "in this order of ranks %s; the nearest that can be "
                    "laid out is %s",
                    why, nearest);
}
