/* Groups over several nodes, of other shapes than were measured. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Twice the ranks on the same adapters of a node: the share of the bus bandwidth that is
 * left, beside what the exchange inside the node adds. Two nodes of 8 A100 with 4
 * adapters each reach 17.5 GB/s at 64 MiB (reference, section 6), of 4 ranks 21.4. */
#define CROWD 0.83
/* Latency of tokens grows by this for each doubling of the group: one token in normal
 * mode takes 27 and 38 us to 2 and 8 nodes, and 49 and 66 us back. */
#define LATENCY_GROWTH 1.17
/* Share of an adapter's bandwidth that tokens reach: the geometric mean of two figures.
 * Combine of 4,096 tokens over 8 nodes of H100 reaches 0.94. The description of the table
 * says that 8 nodes reach 19 GB/s and 4 nodes 50 GB/s; the former is so if all 4 copies
 * of a token are counted, so that 3 of the latter cross an adapter: 0.75. */
#define ADAPTER_REACH 0.84
/* Below this share the adapters of a measured group were congested. */
#define CONGESTED 0.5
/* Fewer tokens than this do not fill the pipes, so that bandwidth says little. */
#define FEW_TOKENS 128

static uint64_t
per_node(const struct collective_series *series)
{
    return series->ranks / series->nodes;
}

/* By ranks in a node, with equal nodes; or by nodes, with equal ranks in each. */
static struct collective_near
near_shapes(const struct collective_groups *groups, uint64_t ranks, uint64_t nodes,
            bool by_nodes)
{
    struct collective_near near = {NULL, NULL, NULL};
    uint64_t value = by_nodes ? nodes : ranks / nodes, second = 0, below = 0;
    uint64_t above = UINT64_MAX;
    for (size_t i = 0; i < groups->n; i++) {
        const struct collective_series *s = groups->series[i];
        uint64_t at = by_nodes ? s->nodes : per_node(s);
        if ((s->nodes < 2 && !by_nodes) ||
            (by_nodes ? per_node(s) != ranks / nodes : s->nodes != nodes))
            continue;
        if (at > value && at < above) {
            near.above = s;
            above = at;
        } else if (at <= value && at > below) {
            near.second = near.below;
            second = below;
            near.below = s;
            below = at;
        } else if (at < below && at > second) {
            near.second = s;
            second = at;
        }
    }
    return near;
}

/* The series of `ranks` ranks over `nodes` nodes; NULL: it was not measured. */
static const struct collective_series *
find_shape(const struct collective_groups *groups, uint64_t ranks, uint64_t nodes)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->series[i]->ranks == ranks && groups->series[i]->nodes == nodes)
            return groups->series[i];
    return NULL;
}

/* The time of an exchange among `ranks` ranks inside a node. */
static bool
inside(const struct collective_groups *groups, uint64_t ranks, double size,
       double *seconds)
{
    const struct collective_series *series = find_shape(groups, ranks, 1);
    struct collective_answer answer = {.seconds = 0};
    bool ok = series || collective_law_ranks(groups, ranks, size, &answer);
    *seconds = series ? collective_curve(groups->table, series, size) : answer.seconds;
    return ok;
}

/*
 * NCCL has a protocol for small buffers, LL, which needs less time for a step but sends a
 * flag with each four bytes, so twice the bytes. NCCL estimates the times of LL and of
 * its plain protocol, and takes the shorter one. This is the size where both are equal,
 * for an all-reduce by rings of n ranks over k nodes: 2 (n - 1) steps, 2 k of them over
 * adapters. The constants are those of NCCL 2.18 (src/graph/tuning.cc) on processors of
 * Intel. With two nodes NCCL takes the bandwidth inside a node for that of the ring, so
 * that it keeps LL for too long.
 */
static double
flags_until(double n, double k, double bandwidth)
{
    double over = 2 * k, within = 2 * (n - 1) - over;
    double plain = 1.9 * (8.4e-6 + within * 3.4e-6 + over * 14e-6);
    double flags = 6.6e-6 + within * 1.8 * 0.6e-6 + over * 2.7e-6;
    double rate = fmin(bandwidth / 4, k > 2 ? 20.4e9 : 39e9);
    return (plain - flags) / (2 * (n - 1) / n * (1 / rate - 1 / bandwidth));
}

/*
 * As many ranks in a node as have an adapter each: rings through different adapters run
 * side by side, so that each adapter carries one of q parts of the group's bytes. How
 * long that takes, one rank in each node shows; to it comes the exchange inside the node.
 *
 *     t(q, S) = t(1, S f(q k) / f(k) / q) + t_inside(q, S)     f: the bus factor, k nodes
 *
 * Where the larger group still sends flags, the adapter carries its part twice.
 */
static bool
own_adapters(const struct collective_groups *groups, uint64_t q, uint64_t nodes,
             double size, const struct collective_fabric *fabric, double *seconds)
{
    const struct collective_series *one = find_shape(groups, nodes, nodes);
    const char *kind = groups->series[0]->what.kind;
    double part = size / (double)q * collective_bus_factor(kind, q * nodes) /
                  collective_bus_factor(kind, nodes);
    double bandwidth = nodes > 2 ? (double)q * fabric->adapter : fabric->bandwidth;
    double smallest, largest, wire, over;

    if (!one || !inside(groups, q, size, seconds))
        return false;
    over = collective_curve(groups->table, one, part);
    if (strcmp(kind, "all-reduce") == 0 && bandwidth > 0 &&
        size < flags_until((double)(q * nodes), (double)nodes, bandwidth)) {
        collective_range(groups->table, one, &smallest, &largest);
        wire = collective_curve(groups->table, one, largest) / largest;
        over = fmax(over, collective_floor(groups->table, one) + 2 * part * wire);
    }
    *seconds += over;
    return true;
}

/*
 * More ranks in each node than were measured. Up to the number of adapters each has its
 * own one. Still more share them: the part of the time that the adapters take, which the
 * largest size shows, grows with the bytes and the crowd, and the rest by the exchange
 * inside a node.
 */
static bool
more_ranks(const struct collective_groups *groups, const struct collective_series *a,
           uint64_t ranks, uint64_t nodes, double size,
           const struct collective_fabric *fabric, struct collective_answer *answer)
{
    uint64_t q = ranks / nodes, from = per_node(a);
    uint64_t adapters = fabric ? fabric->adapters : 0;
    double smallest, largest, seconds, slowest, wire, few, many;

    if (adapters == 0)
        return false; /* nothing says whether the ranks share them */
    collective_range(groups->table, a, &smallest, &largest);
    if (from < adapters) {
        from = q < adapters ? q : adapters;
        if (!own_adapters(groups, from, nodes, size, fabric, &seconds) ||
            !own_adapters(groups, from, nodes, largest, fabric, &slowest))
            return false;
    } else {
        seconds = collective_curve(groups->table, a, size);
        slowest = collective_curve(groups->table, a, largest);
    }
    snprintf(answer->law, sizeof answer->law,
             "%s: an adapter for each rank, from %llu in each of %llu nodes, and inside "
             "a node",
             a->system, (unsigned long long)per_node(a), (unsigned long long)nodes);
    if (q > from) {
        wire = fmin(seconds, slowest * size / largest);
        seconds += wire * (collective_bus_factor(a->what.kind, ranks) /
                               collective_bus_factor(a->what.kind, from * nodes) *
                               pow(1 / CROWD, log2((double)q / (double)from)) -
                           1);
        if (inside(groups, from, size, &few) && inside(groups, q, size, &many))
            seconds += fmax(0, many - few);
        snprintf(answer->law, sizeof answer->law,
                 "%s: adapters shared, from %llu ranks in each of %llu nodes", a->system,
                 (unsigned long long)from, (unsigned long long)nodes);
    }
    answer->seconds = seconds;
    answer->how = COLLECTIVE_NODES;
    return true;
}

/* Other numbers of ranks in each node: between two of them by powers. */
static bool
other_ranks(const struct collective_groups *groups, uint64_t ranks, uint64_t nodes,
            double size, const struct collective_fabric *fabric,
            struct collective_answer *answer)
{
    struct collective_near near = near_shapes(groups, ranks, nodes, false);
    const struct collective_series *a = near.below, *b = near.above;
    double share;

    if (!a)
        return false;
    if (!b)
        return more_ranks(groups, a, ranks, nodes, size, fabric, answer);
    share = log2((double)(ranks / nodes) / (double)per_node(a)) /
            log2((double)per_node(b) / (double)per_node(a));
    answer->seconds = pow(collective_curve(groups->table, a, size), 1 - share) *
                      pow(collective_curve(groups->table, b, size), share);
    snprintf(answer->law, sizeof answer->law,
             "%s: between %llu and %llu ranks in each of %llu nodes", a->system,
             (unsigned long long)per_node(a), (unsigned long long)per_node(b),
             (unsigned long long)nodes);
    return true;
}

/* The share of a rank's messages that leaves its node, or the rank itself. */
static double
leaving(double parts)
{
    return 1 - 1 / parts;
}

/* Bytes of a token: a state in fp8 with a scale for each 128, or in bf16. */
static double
token_bytes(const struct collective_what *what)
{
    bool fp8 = strstr(what->kind, "dispatch") != NULL;
    return (double)what->hidden * (fp8 ? 1 + 4.0 / 128 : 2);
}

/* A token crosses once to each other rank that has an expert of it, and experts are drawn
 * evenly: (n - 1) (1 - (1 - 1/n)^topk) copies. */
double
collective_tokens_least(const struct collective_what *what, uint64_t ranks, double size,
                        double bandwidth)
{
    double n = (double)ranks,
           others = (n - 1) * (1 - pow(leaving(n), (double)what->topk));
    return size * token_bytes(what) * others / bandwidth;
}

/*
 * Tokens in another group of one node than the only one that was measured: transfer in
 * proportion to the share of messages that leaves a rank, latency by doublings. This was
 * checked on 4 and 8 ranks, so not beyond a doubling.
 */
bool
collective_law_one_group(const struct collective_groups *groups, uint64_t ranks,
                         double size, double *seconds, uint64_t *from)
{
    const struct collective_series *one = NULL;
    double floor, transfer;

    for (size_t i = 0; i < groups->n; i++)
        if (groups->series[i]->nodes == 1 && !one)
            one = groups->series[i];
    if (!one || collective_bus_factor(one->what.kind, 2) > 0 || ranks > 2 * one->ranks ||
        2 * ranks < one->ranks)
        return false;
    floor = collective_floor(groups->table, one);
    transfer = fmax(0, collective_curve(groups->table, one, size) - floor);
    *seconds = floor * pow(LATENCY_GROWTH, log2((double)ranks / (double)one->ranks)) +
               transfer * leaving((double)ranks) / leaving((double)one->ranks);
    *from = one->ranks;
    return true;
}

/* How many other nodes a token goes to: experts are drawn from at most 4 nodes. */
static double
remote(double nodes)
{
    return fmin(nodes, 4) * leaving(nodes);
}

/*
 * What the processors of a rank move for a token in normal mode, in states of a token.
 * Experts are drawn evenly from c = min(nodes, 4) nodes of G ranks. A token comes once to
 * each of these nodes, and from there goes once to each rank that has an expert of it:
 * G (1 - (1 - 1/G)^(topk / c)) ranks of a node. In a single node it goes straight there.
 */
static double
forwarded(const struct collective_series *series, double nodes)
{
    double c = fmin(nodes, 4), g = (double)per_node(series);
    double reached = g * (1 - pow(leaving(g), (double)series->what.topk / c));
    return c * reached + (nodes > 1 ? c : 0);
}

/*
 * Tokens over a number of nodes between two that were measured: the longer of forwarding
 * inside nodes, which the smaller group shows, and of the adapters, which the larger one
 * shows unless it was congested. With few tokens latency rules, which grows by doublings
 * of the nodes: there the mean of both logarithms is taken.
 */
static double
tokens_between(const struct collective_groups *groups, const struct collective_series *a,
               const struct collective_series *b, double nodes, double size,
               double adapter)
{
    double share =
        log2(nodes / (double)a->nodes) / log2((double)b->nodes / (double)a->nodes);
    double small = collective_curve(groups->table, a, size);
    double large = collective_curve(groups->table, b, size);
    double floor_small = collective_floor(groups->table, a);
    double floor_large = collective_floor(groups->table, b);
    double latency = pow(floor_small, 1 - share) * pow(floor_large, share);
    double bytes = size * token_bytes(&a->what);
    double forward = fmax(0, small - floor_small) * forwarded(a, nodes) /
                     forwarded(a, (double)a->nodes);
    double wire = fmax(0, large - floor_large) * remote(nodes) / remote((double)b->nodes);
    double by_pipes, by_powers = pow(small, 1 - share) * pow(large, share);

    if (large > floor_large &&
        remote((double)b->nodes) * bytes / (large - floor_large) < CONGESTED * adapter)
        wire = remote(nodes) * bytes / (ADAPTER_REACH * adapter);
    by_pipes = latency + fmax(forward, wire);
    return size < FEW_TOKENS ? sqrt(by_pipes * by_powers) : by_pipes;
}

/*
 * Tokens over more nodes than were measured. Of the messages of a rank, and of the flags
 * that tell each expert about them, the share 1 - 1/nodes goes through an adapter. So the
 * times of two numbers of nodes and that of a third one lie on a line in this share. A
 * single node has no adapter on the way: from it transfer grows with the share, and
 * latency by doublings.
 */
static double
tokens_beyond(const struct collective_groups *groups, const struct collective_series *a,
              const struct collective_series *b, double nodes, double size)
{
    double floor = collective_floor(groups->table, b);
    double after = collective_curve(groups->table, b, size);
    double before = collective_curve(groups->table, a, size);
    double share = leaving((double)b->nodes), more = leaving(nodes) - share;

    if (a->nodes > 1)
        return after +
               fmax(0, after - before) * more / (share - leaving((double)a->nodes));
    return floor * pow(LATENCY_GROWTH, log2(nodes / (double)b->nodes)) +
           fmax(0, after - floor) * leaving(nodes) / share;
}

static bool
other_nodes(const struct collective_groups *groups, uint64_t ranks, uint64_t nodes,
            double size, double adapter, struct collective_answer *answer)
{
    struct collective_near near = near_shapes(groups, ranks, nodes, true);
    const struct collective_series *a = near.above ? near.below : near.second;
    const struct collective_series *b = near.above ? near.above : near.below;

    if (!a || !b ||
        (near.above && (adapter <= 0 || b->what.hidden == 0 || b->what.topk == 0)))
        return false;
    answer->apart = near.above ? "tokens-between" : NULL;
    answer->seconds = near.above
                          ? tokens_between(groups, a, b, (double)nodes, size, adapter)
                          : tokens_beyond(groups, a, b, (double)nodes, size);
    snprintf(answer->law, sizeof answer->law, "%s: %s %llu and %llu nodes", b->system,
             near.above ? "adapters and forwarding, between"
                        : "messages that leave the node, from",
             (unsigned long long)a->nodes, (unsigned long long)b->nodes);
    return true;
}

bool
collective_law_nodes(const struct collective_groups *groups, uint64_t ranks,
                     uint64_t nodes, double size, const struct collective_fabric *fabric,
                     struct collective_answer *answer)
{
    if (groups->n == 0 || nodes < 2)
        return false;
    answer->how = COLLECTIVE_NODES;
    return collective_bus_factor(groups->series[0]->what.kind, 2) > 0
               ? other_ranks(groups, ranks, nodes, size, fabric, answer)
               : other_nodes(groups, ranks, nodes, size, fabric ? fabric->adapter : 0,
                             answer);
}
