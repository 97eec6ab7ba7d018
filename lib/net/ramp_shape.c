/* Which blocks of servers are legal in a RAMP. The order of shapes is the simulator's,
 * and results depend on it: placing takes the first block that is free. */
#include "ramp.h"

#include <math.h>

/* The square root of n if n is a square, else 0. */
static uint32_t
exact_root(uint32_t n)
{
    uint32_t q = (uint32_t)lround(sqrt(n));
    return q * q == n ? q : 0;
}

/* For each divisor i of k, in ascending order: (q, q, i), (p, 1, i), (p, i, 1). */
bool
net_ramp_next_shape(struct net_ramp_shapes *w)
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
    struct net_ramp_shapes w = {limit, parts, i, 0, true, true, {0}};
    while (i <= shape[2] && net_ramp_next_shape(&w))
        if (w.shape[0] <= shape[0] && w.shape[1] <= shape[1] && w.shape[2] <= shape[2])
            return true;
    return false;
}

/* Divisors come in pairs, so trying them up to the square root is enough. */
bool
net_ramp_has_block(const uint32_t shape[3], uint32_t parts)
{
    for (uint32_t i = 1; (uint64_t)i * i <= parts; i++)
        if (parts % i == 0 &&
            (has_shape(shape, parts, i) || has_shape(shape, parts, parts / i)))
            return true;
    return false;
}

/* A column (parts, 1, 1) fits if parts <= C; a diagonal needs parts <= R <= C, too. */
bool
net_ramp_is_legal(const uint32_t shape[3], uint32_t parts)
{
    return parts >= 1 && (parts <= shape[0] || net_ramp_has_block(shape, parts));
}

/* ---- all blocks ----------------------------------------------------------- */

/* A shape of blocks; shape[2] is 0: a diagonal of shape[0] servers. */
struct kind {
    uint32_t shape[3];
    uint32_t origins[3]; /* how many origins it has along each coordinate */
};

enum { KINDS_MAX = 200 }; /* shapes of a degree */

/* Adds a shape if it fits and is not there yet. Returns the new number of shapes. */
static uint32_t
add_kind(struct kind *kind, uint32_t n, const uint32_t limit[3], const uint32_t shape[3])
{
    uint32_t length = shape[2] ? shape[2] : 1;
    if (n == KINDS_MAX || shape[0] > limit[0] || shape[1] > limit[1] || length > limit[2])
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(kind[i].shape, shape, sizeof kind[i].shape) == 0)
            return n;
    memcpy(kind[n].shape, shape, sizeof kind[n].shape);
    kind[n].origins[0] = limit[0] - shape[0] + 1;
    kind[n].origins[1] = limit[1] - shape[1] + 1;
    kind[n].origins[2] = limit[2] - length + 1;
    return n + 1;
}

/* Lists the shapes that are tried for a unit of this many parts. */
static uint32_t
list_kinds(const uint32_t limit[3], uint32_t degree, struct kind *kind)
{
    struct net_ramp_shapes w = {limit, degree, 1, 0, true, true, {0}};
    const uint32_t diagonal[3] = {degree, degree, 0}, column[3] = {degree, 1, 1};
    uint32_t n = 0;
    while (net_ramp_next_shape(&w))
        n = add_kind(kind, n, limit, w.shape);
    if (degree > 1)
        n = add_kind(kind, n, limit, diagonal);
    return add_kind(kind, n, limit, column);
}

static uint64_t
origins_of(const struct kind *kind)
{
    return (uint64_t)kind->origins[0] * kind->origins[1] * kind->origins[2];
}

uint64_t
net_ramp_count_blocks(const struct net *net, uint32_t k)
{
    const struct net_ramp *ramp = (const struct net_ramp *)net;
    struct kind kind[KINDS_MAX];
    uint32_t nkinds = list_kinds(ramp->shape, k, kind);
    uint64_t all = 0;
    for (uint32_t i = 0; i < nkinds; i++)
        all += origins_of(&kind[i]);
    return all;
}

/* Writes the servers of the block whose origin has this number; origins are counted with
 * the position in the rack fastest. */
static void
list_block(const uint32_t limit[3], const struct kind *kind, uint64_t origin,
           uint32_t *server)
{
    uint32_t s = (uint32_t)(origin % kind->origins[2]);
    uint32_t r = (uint32_t)(origin / kind->origins[2] % kind->origins[1]);
    uint32_t c = (uint32_t)(origin / kind->origins[2] / kind->origins[1]);
    uint32_t n = 0;
    for (uint32_t i = 0; i < kind->shape[0]; i++)
        if (kind->shape[2] == 0)
            server[n++] = ((c + i) * limit[1] + r + i) * limit[2] + s;
        else
            for (uint32_t j = 0; j < kind->shape[1]; j++)
                for (uint32_t k = 0; k < kind->shape[2]; k++)
                    server[n++] = ((c + i) * limit[1] + r + j) * limit[2] + s + k;
}

/* Blocks are numbered shape by shape. */
void
net_ramp_block(const struct net *net, uint32_t k, uint64_t which, uint32_t *server)
{
    const struct net_ramp *ramp = (const struct net_ramp *)net;
    struct kind kind[KINDS_MAX];
    uint32_t nkinds = list_kinds(ramp->shape, k, kind), i = 0;
    for (; i + 1 < nkinds && which >= origins_of(&kind[i]); i++)
        which -= origins_of(&kind[i]);
    list_block(ramp->shape, &kind[i], which, server);
}
