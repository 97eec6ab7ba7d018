/* Which blocks of servers are legal in a RAMP. The order of shapes is the simulator's,
 * and results depend on it: placing takes the first block that is free. */
#include "rampipe/net.h"

#include <math.h>
#include <stdio.h>

/* The square root of n if n is a square, else 0. */
static uint32_t
exact_root(uint32_t n)
{
    uint32_t q = (uint32_t)lround(sqrt(n));
    return q * q == n ? q : 0;
}

/* For each divisor i of k, in ascending order: (q, q, i), (p, 1, i), (p, i, 1). */
bool
net_next_shape(struct net_shapes *w)
{
    const uint32_t *m = w->limit;
    for (; w->i <= w->k && w->i <= m[2]; w->i++, w->which = 0) {
        uint32_t i = w->i, p = w->k / i, q = exact_root(p);
        if (w->k % i != 0)
            continue;
        while (w->which < 3) {
            int which = w->which++;
            if (which == 0 ? !w->square || !q || q > m[0] || q > m[1]
                           : !w->flat || p > m[0] || p > m[1])
                continue;
            w->shape[0] = which == 0 ? q : p;
            w->shape[1] = which == 0 ? q : which == 1 ? 1 : i;
            w->shape[2] = which == 2 ? 1 : i;
            return true;
        }
    }
    return false;
}

/* True if one of the shapes of the factor pair (parts / i, i) fits into the cluster. */
static bool
has_shape(const uint32_t shape[3], uint32_t parts, uint32_t i)
{
    const uint32_t limit[3] = {shape[0], shape[1], i};
    struct net_shapes w = {limit, parts, i, 0, true, true, {0}};
    while (i <= shape[2] && net_next_shape(&w))
        if (w.shape[0] <= shape[0] && w.shape[1] <= shape[1] && w.shape[2] <= shape[2])
            return true;
    return false;
}

/* Divisors come in pairs, so trying them up to the square root is enough. */
bool
net_has_block(const uint32_t shape[3], uint32_t parts)
{
    for (uint32_t i = 1; (uint64_t)i * i <= parts; i++)
        if (parts % i == 0 &&
            (has_shape(shape, parts, i) || has_shape(shape, parts, parts / i)))
            return true;
    return false;
}

/* A column (parts, 1, 1) fits if parts <= C; a diagonal needs parts <= R <= C, too. */
bool
net_is_legal(const uint32_t shape[3], uint32_t parts)
{
    return parts >= 1 && (parts <= shape[0] || net_has_block(shape, parts));
}

void
net_format_legal_parts(const uint32_t shape[3], char *text, size_t room)
{
    uint32_t servers = shape[0] * shape[1] * shape[2];
    char range[40];
    text[0] = '\0';
    for (uint32_t k = 1, last; k <= servers; k = last + 1) {
        last = k;
        if (!net_is_legal(shape, k))
            continue;
        while (last < servers && net_is_legal(shape, last + 1))
            last++;
        if (last <= k + 1)
            snprintf(range, sizeof range, "%u", last = k);
        else
            snprintf(range, sizeof range, "%u to %u", k, last);
        if (!rec_list_name(text, room, range))
            return;
    }
}
