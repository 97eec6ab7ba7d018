/* The times of exchanges in a RAMP. Formulas are those of the ddls simulator, to the
 * byte: its results are compared with ours. */
#include "ramp.h"

#include <math.h>

double
net_ramp_one_to_one_seconds(const struct net_ramp *ramp, double bytes)
{
    double rate = ramp->bandwidth / ramp->shape[0];
    return ramp->propagation + 2 * ramp->io + bytes / rate;
}

double
net_ramp_collective_seconds(const struct net_ramp *ramp, uint32_t g, uint32_t r,
                            uint32_t s, double bytes)
{
    uint32_t x = ramp->shape[0];
    uint32_t sub[4] = {g, g < s ? g : s, r, (s + x - 1) / x};
    bool node = ramp->collective_rate == NET_COLLECTIVE_NODE;
    double rate = ramp->bandwidth / x, communicate = 0, compute = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t d = sub[i], transceivers;
        double hops, intensity, flops;
        bytes = ceil(bytes / d);
        if (d < 2)
            continue;
        transceivers = x / (d - 1);
        if (transceivers < 1)
            transceivers = 1;
        communicate += ramp->propagation + 2 * ramp->io +
                       bytes / (node ? transceivers * rate : transceivers * rate / x);
        hops = ceil(log2(d));
        intensity = hops / ((d + 1) * 2.0); /* two bytes a number */
        flops = fmin(2e12 * intensity, 130e12);
        compute += hops * bytes / 2 / flops;
    }
    return 2 * communicate + compute;
}

/* ---- among given servers --------------------------------------------------- */

/* Bits that count_values() has at hand: it reads the servers once for each window of so
 * many values, so that it needs no memory of the size of the cluster. */
enum { WINDOW = 4096 };

/* How many values servers have, where a server's is index / divide % modulus. */
static uint32_t
count_values(const uint32_t *server, uint32_t n, uint32_t divide, uint32_t modulus)
{
    uint64_t seen[WINDOW / 64];
    uint32_t count = 0;
    for (uint32_t base = 0; base < modulus; base += WINDOW) {
        uint32_t width = modulus - base < WINDOW ? modulus - base : WINDOW;
        memset(seen, 0, (width + 63) / 64 * sizeof *seen);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t value = server[i] / divide % modulus - base;
            if (value < width)
                seen[value / 64] |= (uint64_t)1 << value % 64;
        }
        for (uint32_t w = 0; w < (width + 63) / 64; w++)
            count += (uint32_t)__builtin_popcountll(seen[w]);
    }
    return count;
}

/* The bytes of an exchange, as the published rule sums them over its deps. Of a coll
 * record an all-reduce is two phases in which each of n servers has S / n, an all-to-all
 * n servers with S each, all others are one phase. */
static double
sum_bytes(const struct net_exchange *e)
{
    switch (e->kind) {
    case GRAPH_ALL_REDUCE: return 2 * e->bytes;
    case GRAPH_ALL_TO_ALL: return e->n * e->bytes;
    case GRAPH_BARRIER: return 0;
    default: return e->bytes;
    }
}

static double
among(const struct net_ramp *ramp, const struct net_exchange *exchange)
{
    const uint32_t *shape = ramp->shape, *server = exchange->server, n = exchange->n;
    return net_ramp_collective_seconds(
        ramp, count_values(server, n, shape[1] * shape[2], shape[0]),
        count_values(server, n, shape[2], shape[1]), count_values(server, n, 1, shape[2]),
        sum_bytes(exchange));
}

/* ---- at least ---------------------------------------------------------------- */

/* The time of an exchange in a block. A pair of it may be two servers that differ in as
 * many coordinates as two can there: that is the longest pairwise exchange of the block,
 * and every server of the block has a partner for it. */
static double
in_block(const struct net_ramp *ramp, const struct net_exchange *exchange,
         const uint32_t shape[3])
{
    uint32_t n[3];
    for (int d = 0; d < 3; d++)
        n[d] = exchange->kind == GRAPH_SYNC_PAIR && shape[d] > 1 ? 2 : shape[d];
    return net_ramp_collective_seconds(ramp, n[0], n[1], n[2], sum_bytes(exchange));
}

/* The least time over the legal shapes of a block. */
static double
least(const struct net_ramp *ramp, const struct net_exchange *exchange)
{
    const uint32_t *n = ramp->shape, k = exchange->n;
    const uint32_t diagonal[3] = {k, k, 1}, column[3] = {k, 1, 1};
    struct net_ramp_shapes w = {n, k, 1, 0, true, true, {0}};
    double seconds = INFINITY;
    while (net_ramp_next_shape(&w))
        seconds = fmin(seconds, in_block(ramp, exchange, w.shape));
    if (k <= n[0])
        seconds = fmin(seconds, in_block(ramp, exchange, column));
    if (k <= n[0] && k <= n[1])
        seconds = fmin(seconds, in_block(ramp, exchange, diagonal));
    return isinf(seconds) ? 0 : seconds; /* no legal block: it is never placed */
}

/* ---- many exchanges --------------------------------------------------------- */

/* What was last worked out for a pair, by the coordinates in which the two differ (bits
 * 4: group, 2: rack, 1: position), and for a message. The pairs of an op follow each
 * other and have as many bytes. */
struct memo {
    struct {
        double bytes, seconds;
    } pair[8], message;
};

static double
of_pair(const struct net_ramp *ramp, const struct net_exchange *e, struct memo *memo)
{
    const uint32_t *n = ramp->shape;
    double bytes = sum_bytes(e);
    uint32_t a = e->server[0], b = e->server[1], s = a % n[2] != b % n[2], g, r, k;
    a /= n[2];
    b /= n[2];
    r = a % n[1] != b % n[1];
    g = a / n[1] != b / n[1];
    k = g * 4 + r * 2 + s;
    if (memo->pair[k].bytes != bytes) {
        memo->pair[k].bytes = bytes;
        memo->pair[k].seconds =
            net_ramp_collective_seconds(ramp, g + 1, r + 1, s + 1, bytes);
    }
    return memo->pair[k].seconds;
}

bool
net_ramp_alone(const struct net *net, const struct net_exchange *exchange, size_t n,
               double *seconds, struct rec_error *err)
{
    const struct net_ramp *ramp = (const struct net_ramp *)net;
    struct memo memo;
    (void)err;
    for (int k = 0; k < 8; k++)
        memo.pair[k].bytes = -1;
    memo.message.bytes = -1;
    memo.message.seconds = 0;
    for (size_t i = 0; i < n; i++) {
        const struct net_exchange *e = &exchange[i];
        if (e->kind == GRAPH_MESSAGE || e->kind == GRAPH_SEND) {
            if (memo.message.bytes != e->bytes) {
                memo.message.bytes = e->bytes;
                memo.message.seconds = net_ramp_one_to_one_seconds(ramp, e->bytes);
            }
            seconds[i] = memo.message.seconds;
        } else if (!e->server)
            seconds[i] = least(ramp, e);
        else
            seconds[i] = e->n == 2 ? of_pair(ramp, e, &memo) : among(ramp, e);
    }
    return true;
}
