/*
 * The time of an exchange alone on a cluster with links and routes. A message takes the
 * latency of its route, and its bytes over the least capacity on it. An exchange of
 * several servers is a sequence of rounds (rounds.c). In each, some servers send to
 * others, all at once: a round takes the largest latency of their routes, and on each
 * link the bytes that go through it over its capacity, of which the largest counts. A
 * link that a route has twice carries the bytes twice.
 */
#include "rounds.h"

#include <math.h>
#include <stdlib.h>

/* What a round costs: the largest latency of its routes, seconds, and the link that takes
 * longest, with what goes through it. */
struct cost {
    double latency, capacity;
    double shares; /* of the bytes of a transfer */
    uint32_t link;
};

/* What the links carry in a round. */
struct load {
    const struct net *net;
    struct net_rounds rounds;
    uint32_t *route; /* scratch */
    double *shares;  /* per link: sum over the transfers through it */
    double *delay;   /* per link with shares > 0: its latency, seconds */
    uint32_t *used;  /* the links with shares > 0 */
    uint32_t nused;
    double latency; /* the largest of a route, seconds */
    /* The last servers that sent each to each other, and the cost. Most ops of a graph
     * lie on the same servers, and counting takes n^2 routes. */
    const uint32_t *server;
    uint32_t n;
    struct cost direct;
};

/* A link carries a share more. */
static inline void
load_link(struct load *l, uint32_t on, double share)
{
    struct net_link link;
    if (!(l->shares[on] > 0)) {
        l->used[l->nused++] = on;
        net_link(l->net, on, &link);
        l->delay[on] = link.latency;
    }
    l->shares[on] += share;
}

static void
add_route(struct load *l, const uint32_t *route, uint32_t n, double share)
{
    double latency = 0;
    for (uint32_t i = 0; i < n; i++) {
        load_link(l, route[i], share);
        latency += l->delay[route[i]];
    }
    l->latency = fmax(l->latency, latency);
}

static void
add(struct load *l, uint32_t from, uint32_t to, double share)
{
    add_route(l, l->route, net_route(l->net, from, to, l->route), share);
}

/* Routes that differ in their tips; the first one stands for the latency of all. */
static void
add_fan(struct load *l, const struct net_fan *fan)
{
    uint32_t flows = fan->ntips - fan->nskip, first = fan->skip > 0 ? 0 : fan->nskip;
    add_route(l, fan->route, fan->n, 1);
    if (flows < 2)
        return;
    for (uint32_t i = 0; i + 1 < fan->n; i++)
        load_link(l, fan->shared[i], flows - 1);
    for (uint32_t i = first + 1; i < fan->ntips; i++) {
        if (i == fan->skip)
            i += fan->nskip;
        if (i < fan->ntips)
            load_link(l, fan->tip[i], 1);
    }
}

/* Ends a round. */
static struct cost
carry(struct load *l)
{
    struct cost cost = {l->latency, 1, 0, 0};
    struct net_link link;
    for (uint32_t i = 0; i < l->nused; i++) {
        double *shares = &l->shares[l->used[i]];
        net_link(l->net, l->used[i], &link);
        if (*shares / link.capacity > cost.shares / cost.capacity) {
            cost.capacity = link.capacity;
            cost.shares = *shares;
            cost.link = l->used[i];
        }
        *shares = 0;
    }
    l->nused = 0;
    l->latency = 0;
    return cost;
}

/* What it costs that each server sends to each other one. */
static bool
direct(struct load *l, const uint32_t *server, uint32_t n, struct cost *cost,
       struct rec_error *err)
{
    if (n != l->n || memcmp(server, l->server, n * sizeof *server) != 0) {
        struct net_each *each = net_each_new(l->net, server, n, err);
        struct net_fan fan;
        if (!each)
            return false;
        while (net_each_next(each, &fan))
            if (fan.ntips > 0)
                add_fan(l, &fan);
            else
                add_route(l, fan.route, fan.n, 1);
        net_each_free(each);
        l->server = server;
        l->n = n;
        l->direct = carry(l);
    }
    *cost = l->direct;
    return true;
}

/* What a round costs. */
static bool
cost_of(struct load *l, const struct net_exchange *e, const struct net_round *round,
        struct cost *cost, struct rec_error *err)
{
    if (!round->transfer)
        return direct(l, e->server, e->n, cost, err);
    for (uint32_t i = 0; i < round->n; i++)
        add(l, round->transfer[i].from, round->transfer[i].to, round->transfer[i].share);
    *cost = carry(l);
    return true;
}

/* Adds the time of a round: latencies, and what the slowest link takes. */
static bool
one_round(struct load *l, const struct net_exchange *e, const struct net_round *round,
          double *seconds, struct rec_error *err)
{
    struct cost cost;
    if (!cost_of(l, e, round, &cost, err))
        return false;
    *seconds += round->times * (round->latencies / round->times * cost.latency +
                                round->each * cost.shares / cost.capacity);
    return true;
}

/* ---- lower bounds --------------------------------------------------------------- */

/*
 * Without servers. In an all-reduce a server sends 2 (n - 1) / n S on average, whatever
 * the algorithm, but S or more if switches add up; in all other exchanges of n servers
 * (n - 1) / n S. A part of these bytes leaves each server by its own links, on the mean
 * at most by all of them at once. In a collective more servers than these may take part.
 */
static double
bound(const struct net *net, const struct net_exchange *e)
{
    const struct net_routes *r = &net->routes;
    double n = e->n, rounds = n - 1, each = e->flow / n;
    bool adds = r->algorithm == NET_IN_SWITCH;
    if (e->kind == GRAPH_MESSAGE || e->kind == GRAPH_SEND)
        return r->latency + e->bytes / r->bandwidth;
    if (e->n < 2)
        return 0;
    if (e->kind == GRAPH_COLLECTIVE)
        each = e->flow / net_servers(net);
    if (e->kind == GRAPH_SYNC_ALL && r->algorithm != NET_DIRECT) {
        each = adds ? each / (n - 1) : 2 * each / n;
        rounds = adds                       ? 2
                 : r->algorithm == NET_RING ? 2 * (n - 1)
                                            : 2 * rounds_log2_up(e->n);
    }
    if (e->kind > GRAPH_SYNC_ALL) {
        rounds = 1;
        each = e->kind == GRAPH_BARRIER ? 0 : (n - 1) / n * e->bytes;
        if (e->kind == GRAPH_ALL_REDUCE)
            each = adds ? e->bytes : 2 * each;
    }
    return rounds * r->latency + each / r->leaving;
}

/* ---- all ------------------------------------------------------------------------ */

static bool
one_alone(struct load *l, const struct net_exchange *e, double *seconds,
          struct rec_error *err)
{
    *seconds = 0;
    if (!net_rounds_make(l->net, e, &l->rounds, err))
        return false;
    for (uint32_t i = 0; i < l->rounds.n; i++)
        if (!one_round(l, e, &l->rounds.round[i], seconds, err))
            return false;
    return true;
}

static bool
make_room(struct load *l, struct rec_error *err)
{
    const struct net_routes *routes = &l->net->routes;
    if (l->shares)
        return true;
    l->route = malloc((routes->longest + (size_t)1) * sizeof *l->route);
    l->shares = calloc((size_t)routes->links + 1, sizeof *l->shares);
    l->delay = malloc(((size_t)routes->links + 1) * sizeof *l->delay);
    l->used = malloc(((size_t)routes->links + 1) * sizeof *l->used);
    return (l->route && l->shares && l->delay && l->used) || rec_fail_memory(err);
}

static void
free_load(struct load *l)
{
    net_rounds_free(&l->rounds);
    free(l->route);
    free(l->shares);
    free(l->delay);
    free(l->used);
}

bool
net_alone_by_links(const struct net *net, const struct net_exchange *exchange, size_t n,
                   double *seconds, struct rec_error *err)
{
    struct load l = {.net = net};
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        if (!exchange[i].server) {
            seconds[i] = bound(net, &exchange[i]);
            continue;
        }
        ok = make_room(&l, err) && one_alone(&l, &exchange[i], &seconds[i], err);
    }
    free_load(&l);
    return ok;
}

/* Adds to on[link] what the slowest link of each round takes, and to *why what is alike
 * for all. */
static bool
add_rounds(struct load *l, const struct net_exchange *e, struct net_why *on,
           struct net_why *why, struct rec_error *err)
{
    if (!net_rounds_make(l->net, e, &l->rounds, err))
        return false;
    for (uint32_t i = 0; i < l->rounds.n; i++) {
        const struct net_round *round = &l->rounds.round[i];
        struct cost cost;
        if (!cost_of(l, e, round, &cost, err))
            return false;
        struct net_why *one = &on[cost.link];
        why->latency += round->latencies * cost.latency;
        one->link = cost.link;
        one->seconds += round->times * round->each * cost.shares / cost.capacity;
        one->bytes += round->times * round->each * cost.shares;
        one->flows = fmax(one->flows, cost.shares);
        if (one->seconds > why->seconds) {
            double latency = why->latency;
            *why = *one;
            why->latency = latency;
        }
    }
    return true;
}

bool
net_alone_why(const struct net *net, const struct net_exchange *exchange,
              struct net_why *why, struct rec_error *err)
{
    struct load l = {.net = net};
    struct net_why *on = calloc((size_t)net->routes.links + 1, sizeof *on);
    bool ok;
    *why = (struct net_why){.link = 0};
    ok = (on || rec_fail_memory(err)) && make_room(&l, err) &&
         add_rounds(&l, exchange, on, why, err);
    free_load(&l);
    free(on);
    return ok;
}
