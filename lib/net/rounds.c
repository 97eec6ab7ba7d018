/*
 * What an exchange sends, as rounds. In each, some servers send to others, all at once.
 *
 * A collective is sent directly: each of n servers sends an equal share to each other
 * one, in n - 1 rounds of which only the sum of bytes matters. So are the sync deps of an
 * op, with algorithm=direct. The other algorithms know them as an all-reduce of S bytes
 * among n servers, where S is the size of one sync dep (reference: Thakur, Rabenseifner
 * and Gropp, "Optimization of collective communication operations in MPICH", 2005;
 * Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan", 2009). An all-reduce of S bytes is:
 *
 *   direct            2 times n - 1 rounds: each server sends S / n to each other one
 *   ring              2 (n - 1) rounds: each server sends S / n to the next one. If the
 *                     servers are q in each of k nodes, there are q rings with a share of
 *                     1 / q each, which leave a node by another server each, so that all
 *                     its adapters carry the same.
 *   tree              two binary trees with S / 2 each: a server that is inside one is
 *                     (but for the root's child) a leaf of the other; the bytes are sent
 *                     in many small pieces, so links carry all rounds at once, and the
 *                     latency is that of the depth, up and down.
 *   halving-doubling  2 log2 n rounds with partners 1, 2, 4, ... servers away and S / 2,
 *                     S / 4, ..., and back. Servers beyond a power of two give their
 *                     bytes to another one first, and get them back in the end.
 *   hierarchical      a direct reduce-scatter in each node, an all-reduce on rings among
 *                     the nodes, each with a share of S / q, a direct all-gather in each
 *                     node, one after the other. If the nodes have unequally many
 *                     servers, the shares are those of the first q of a node, where q is
 *                     the least of these numbers.
 *   in-switch         switches add up: each server sends S (n + 1) / n up, and gets as
 *                     much: all parts for the sums of others, and its own sum for all
 *                     (reference: Klenk, Jiang, Thorson and Dennison, "An in-network
 *                     architecture for accelerating shared-memory multiprocessor
 *                     collectives", 2020). On a link between switches S goes once, as in
 *                     a ring of neighbours: so these are its transfers. In nodes of q
 *                     servers S (q + 1) / q is sent inside, and among k nodes each
 *                     adapter has S / q (k + 1) / k, all at once.
 *   torus             along one dimension after the other (torus.c)
 *
 * A reduce-scatter is the first half of an all-reduce, an all-gather the second half. A
 * broadcast goes along a chain or down both trees in many small pieces, or is scattered
 * and then gathered; a reduce is a broadcast backwards. docs/networks.md has the table.
 */
#include "rounds.h"

#include <stdlib.h>

uint32_t
rounds_log2_up(uint32_t n)
{
    uint32_t k = 0;
    while (k < 32 && (uint64_t)1 << k < n)
        k++;
    return k;
}

/* ---- rounds ------------------------------------------------------------------- */

void
rounds_send(struct net_maker *k, uint32_t from, uint32_t to, double share)
{
    struct net_rounds *r = k->rounds;
    k->ok = k->ok && rec_grow(&r->transfer, &r->transfer_room, r->ntransfers + 1,
                              sizeof *r->transfer, k->err);
    if (k->ok)
        r->transfer[r->ntransfers++] =
            (struct net_transfer){k->back ? to : from, k->back ? from : to, share};
}

static void
send(struct net_maker *k, uint32_t from, uint32_t to)
{
    rounds_send(k, from, to, 1);
}

static void
add_round(struct net_maker *k, double times, double latencies, double bytes)
{
    struct net_rounds *r = k->rounds;
    k->ok = k->ok && rec_grow(&r->round, &r->round_room, (size_t)r->n + 1,
                              sizeof *r->round, k->err);
    if (k->ok)
        r->round[r->n++] = (struct net_round){times * latencies,
                                              times * bytes,
                                              NULL,
                                              (uint32_t)(r->ntransfers - k->first),
                                              times,
                                              bytes};
    k->first = r->ntransfers;
}

void
rounds_end(struct net_maker *k, double times, double latencies, double bytes)
{
    if (k->first < k->rounds->ntransfers)
        add_round(k, times, latencies, bytes);
}

/* Sets where the transfers of each round are, which moved while some were added. */
static void
set_transfers(struct net_rounds *r)
{
    size_t first = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->round[i].n)
            r->round[i].transfer = r->transfer + first;
        first += r->round[i].n;
    }
}

static void
reverse(struct net_rounds *r)
{
    for (uint32_t i = 0; i < r->n / 2; i++) {
        struct net_round first = r->round[i];
        r->round[i] = r->round[r->n - 1 - i];
        r->round[r->n - 1 - i] = first;
    }
}

/* ---- direct ------------------------------------------------------------------- */

/* Each server sends `bytes` to each other one. */
static void
each_to_each(struct net_maker *k, uint32_t n, double times, double bytes)
{
    add_round(k, times, n - 1, bytes);
}

static void
direct_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    each_to_each(k, m->n, 2, bytes / m->n);
}

static void
direct_scatter(struct net_maker *k, const struct members *m, double bytes)
{
    each_to_each(k, m->n, 1, bytes / m->n);
}

static void
direct_broadcast(struct net_maker *k, const struct members *m, double bytes)
{
    for (uint32_t i = 1; i < m->n; i++)
        send(k, m->server[0], m->server[i]);
    rounds_end(k, 1, m->n - 1, bytes);
}

/* ---- rings -------------------------------------------------------------------- */

/* Ring r enters node j at one server, goes through all of them, and leaves at the
 * neighbour of that one: upwards in every second node, downwards in the others. So it
 * leaves and enters at servers of the same number. */
static uint32_t
on_ring(const struct members *m, uint32_t r, uint32_t j, uint32_t step)
{
    uint32_t q = m->most;
    uint32_t at = j % 2 ? (r + q - 1 + q - step) % q : (r + step) % q;
    return m->server[m->first[j] + at];
}

/* Adds what all send to the next one, but not to `end`, where a chain begins. Returns how
 * many rings there are. */
static uint32_t
send_on_rings(struct net_maker *k, const struct members *m, uint32_t end)
{
    uint32_t q = m->least < m->most ? 1 : m->most;
    for (uint32_t r = 0; m->least == m->most && r < q; r++)
        for (uint32_t j = 0; j < m->nodes; j++)
            for (uint32_t i = 0; i < q; i++) {
                uint32_t next = i + 1 < q ? on_ring(m, r, j, i + 1)
                                          : on_ring(m, r, (j + 1) % m->nodes, 0);
                if (next != end)
                    send(k, on_ring(m, r, j, i), next);
            }
    for (uint32_t i = 0; m->least < m->most && i < m->n; i++)
        if (m->server[(i + 1) % m->n] != end)
            send(k, m->server[i], m->server[(i + 1) % m->n]);
    return q;
}

static void
ring_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    uint32_t q = send_on_rings(k, m, UINT32_MAX);
    rounds_end(k, 2 * (m->n - 1.0), 1, bytes / m->n / q);
}

static void
ring_scatter(struct net_maker *k, const struct members *m, double bytes)
{
    uint32_t q = send_on_rings(k, m, UINT32_MAX);
    rounds_end(k, m->n - 1.0, 1, bytes / m->n / q);
}

/* Chains, in many small pieces. */
static void
ring_broadcast(struct net_maker *k, const struct members *m, double bytes)
{
    uint32_t q = send_on_rings(k, m, m->server[0]);
    rounds_end(k, 1, m->n - 1, bytes / q);
}

/* ---- trees -------------------------------------------------------------------- */

/* The parent of number i in a binary tree of n numbers in order: odd ones are leaves. 0
 * is the root, and has one child. */
static uint32_t
parent(uint32_t i, uint32_t n)
{
    uint32_t bit = i & -i, up = (i ^ bit) | (bit << 1);
    return up >= n ? i ^ bit : up;
}

/* The server of number i of n in a tree. In the second one the leaves of the first have
 * even numbers: the order is reversed, or moved on by one if n is odd. */
static uint32_t
in_tree(const uint32_t *server, uint32_t n, int second, uint32_t i)
{
    if (second)
        i = n % 2 ? (i + 1) % n : n - 1 - i;
    return server[i];
}

static void
tree_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    for (uint32_t i = 1; i < m->n; i++)
        for (int second = 0; second < 2; second++) {
            uint32_t a = in_tree(m->server, m->n, second, i);
            uint32_t b = in_tree(m->server, m->n, second, parent(i, m->n));
            send(k, a, b);
            send(k, b, a);
        }
    rounds_end(k, 1, 2 * rounds_log2_up(m->n), bytes / 2);
}

/* The first member is above both trees, which are of the others. */
static void
tree_broadcast(struct net_maker *k, const struct members *m, double bytes)
{
    const uint32_t *others = m->server + 1;
    uint32_t n = m->n - 1;
    for (int second = 0; second < 2; second++) {
        send(k, m->server[0], in_tree(others, n, second, 0));
        for (uint32_t i = 1; i < n; i++)
            send(k, in_tree(others, n, second, parent(i, n)),
                 in_tree(others, n, second, i));
    }
    rounds_end(k, 1, 1 + rounds_log2_up(n), bytes / 2);
}

/* ---- halving and doubling ------------------------------------------------------ */

static uint32_t
power_below(uint32_t n)
{
    uint32_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* The servers beyond a power of two give their bytes to those with whom they share a
 * number, or get them. */
static void
send_beyond(struct net_maker *k, const struct members *m, uint32_t power, bool get,
            double bytes)
{
    for (uint32_t i = 0; i < m->n - power; i++)
        send(k, m->server[get ? i : power + i], m->server[get ? power + i : i]);
    rounds_end(k, 1, 1, bytes);
}

static void
halve(struct net_maker *k, const struct members *m, uint32_t power, double times,
      double bytes)
{
    for (uint32_t away = 1; away < power; away *= 2) {
        bytes /= 2;
        for (uint32_t i = 0; i < power; i++)
            send(k, m->server[i], m->server[i ^ away]);
        rounds_end(k, times, 1, bytes);
    }
}

static void
halving_doubling_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    uint32_t power = power_below(m->n);
    send_beyond(k, m, power, false, bytes);
    halve(k, m, power, 2, bytes);
    send_beyond(k, m, power, true, bytes);
}

static void
halving_doubling_scatter(struct net_maker *k, const struct members *m, double bytes)
{
    if (power_below(m->n) == m->n)
        halve(k, m, m->n, 1, bytes);
    else
        ring_scatter(k, m, bytes);
}

/* The first member scatters, and then all gather. */
static void
halving_doubling_broadcast(struct net_maker *k, const struct members *m, double bytes)
{
    uint32_t power = power_below(m->n);
    for (uint32_t away = power / 2; away > 0; away /= 2) {
        for (uint32_t i = 0; i < power; i += 2 * away)
            send(k, m->server[i], m->server[i + away]);
        rounds_end(k, 1, 1, bytes / power * away);
    }
    for (uint32_t away = 1; away < power; away *= 2) {
        for (uint32_t i = 0; i < power; i++)
            send(k, m->server[i], m->server[i ^ away]);
        rounds_end(k, 1, 1, bytes / power * away);
    }
    send_beyond(k, m, power, true, bytes);
}

/* ---- nodes -------------------------------------------------------------------- */

/* Each server of a node sends a share to each of the first q, or gets it back. */
static void
inside(struct net_maker *k, const struct members *m, double share, bool back)
{
    for (uint32_t j = 0; j < m->nodes; j++)
        for (uint32_t a = m->first[j]; a < m->first[j + 1]; a++)
            for (uint32_t i = 0; i < m->least; i++) {
                uint32_t b = m->first[j] + i;
                if (a != b)
                    send(k, m->server[back ? b : a], m->server[back ? a : b]);
            }
    rounds_end(k, 1, m->most - 1, share);
}

/* Adds what the first q servers of each node but the last `ends` send to those of the
 * same number in the next node. */
static void
send_among_nodes(struct net_maker *k, const struct members *m, uint32_t ends,
                 double share)
{
    for (uint32_t i = 0; m->nodes > 1 && i < m->least; i++)
        for (uint32_t j = 0; j < m->nodes - ends; j++)
            rounds_send(k, m->server[m->first[j] + i],
                        m->server[m->first[(j + 1) % m->nodes] + i], share);
}

static void
hierarchical_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    double share = bytes / m->least, nodes = m->nodes;
    inside(k, m, share, false);
    send_among_nodes(k, m, 0, 1);
    rounds_end(k, 2 * (nodes - 1), 1, share / nodes);
    inside(k, m, share, true);
}

static void
hierarchical_scatter(struct net_maker *k, const struct members *m, double bytes)
{
    double share = bytes / m->least, nodes = m->nodes;
    if (m->least < m->most) {
        ring_scatter(k, m, bytes);
        return;
    }
    inside(k, m, share, false);
    send_among_nodes(k, m, 0, 1);
    rounds_end(k, nodes - 1, 1, share / nodes);
}

/* The first member scatters in its node; chains among the nodes; all nodes gather. */
static void
hierarchical_broadcast(struct net_maker *k, const struct members *m, double bytes)
{
    double share = bytes / m->least;
    for (uint32_t i = 1; i < m->least; i++)
        send(k, m->server[0], m->server[i]);
    rounds_end(k, 1, m->least - 1, share);
    send_among_nodes(k, m, 1, 1);
    rounds_end(k, 1, m->nodes - 1, share);
    inside(k, m, share, true);
}

/* ---- switches that add up ------------------------------------------------------- */

/* Adds what the servers of each node send to their neighbours. */
static void
send_in_nodes(struct net_maker *k, const struct members *m)
{
    for (uint32_t j = 0; j < m->nodes; j++) {
        uint32_t first = m->first[j], size = m->first[j + 1] - first;
        for (uint32_t i = 0; size > 1 && i < size; i++)
            rounds_send(k, m->server[first + i], m->server[first + (i + 1) % size],
                        (size + 1.0) / size);
    }
}

/* The members that lie below one switch follow each other. First the latencies in the
 * nodes, then those among nodes and all bytes. */
static void
in_switch_all_reduce(struct net_maker *k, const struct members *m, double bytes)
{
    double nodes = m->nodes;
    send_in_nodes(k, m);
    if (m->nodes > 1) {
        rounds_end(k, 1, 2, 0);
        send_in_nodes(k, m);
        send_among_nodes(k, m, 0, (nodes + 1) / nodes / m->least);
    }
    rounds_end(k, 1, 2, bytes);
}

/* ---- all ---------------------------------------------------------------------- */

typedef void form(struct net_maker *, const struct members *, double);

/* The algorithms of the three collectives of which all are made. */
static const struct {
    form *all_reduce, *scatter, *broadcast;
} forms[] = {
    [NET_DIRECT] = {direct_all_reduce, direct_scatter, direct_broadcast},
    [NET_RING] = {ring_all_reduce, ring_scatter, ring_broadcast},
    [NET_TREE] = {tree_all_reduce, ring_scatter, tree_broadcast},
    [NET_HALVING_DOUBLING] = {halving_doubling_all_reduce, halving_doubling_scatter,
                              halving_doubling_broadcast},
    [NET_HIERARCHICAL] = {hierarchical_all_reduce, hierarchical_scatter,
                          hierarchical_broadcast},
    [NET_IN_SWITCH] = {in_switch_all_reduce, ring_scatter, ring_broadcast},
    [NET_TORUS] = {NULL, NULL, ring_broadcast}, /* along dimensions */
};

static bool
make_form(struct net_maker *k, const struct net *net, const struct net_exchange *e,
          form *make, bool sorted, double bytes)
{
    uint32_t *server = NULL;
    struct members m;
    if (sorted)
        k->ok = ((server = malloc(((size_t)e->n + 1) * sizeof *server)) ||
                 rec_fail_memory(k->err)) &&
                members_by_levels(net, e->server, e->n, server, k->err);
    k->ok = k->ok && members_sort(net, sorted ? server : e->server, e->n, &m, k->err);
    if (k->ok) {
        make(k, &m, bytes);
        members_free(&m);
    }
    free(server);
    return k->ok;
}

/* Rounds of a collective of S bytes by the algorithm of the cluster. */
static bool
make_collective(struct net_maker *k, const struct net *net, const struct net_exchange *e,
                enum graph_exchange_kind kind, double bytes)
{
    enum net_algorithm how = net->routes.algorithm;
    bool broadcast = kind == GRAPH_BROADCAST || kind == GRAPH_REDUCE;
    bool half = kind == GRAPH_ALL_GATHER || kind == GRAPH_REDUCE_SCATTER;
    form *make = broadcast ? forms[how].broadcast
                 : half    ? forms[how].scatter
                           : forms[how].all_reduce;
    k->back = kind == GRAPH_ALL_GATHER || kind == GRAPH_REDUCE;
    return make ? make_form(k, net, e, make, how == NET_IN_SWITCH && !broadcast && !half,
                            bytes)
                : net->kind->by_dimension(net, e, half, bytes, k);
}

bool
net_rounds_make(const struct net *net, const struct net_exchange *e,
                struct net_rounds *rounds, struct rec_error *err)
{
    struct net_maker k = {rounds, 0, false, true, err};
    double pairs = (double)e->n * (e->n - 1.0);
    char text[NET_TEXT_MAX];
    rounds->n = 0;
    rounds->ntransfers = 0;
    if (net_links(net) == 0) {
        net_describe(net, text);
        return rec_fail(err, REC_DATA, "no links are known of %s", text);
    }
    if (e->kind == GRAPH_MESSAGE || e->kind == GRAPH_SEND) {
        send(&k, e->server[0], e->server[1]);
        rounds_end(&k, 1, 1, e->bytes);
    } else if (e->n < 2)
        return true;
    else if (e->kind > GRAPH_SYNC_ALL && e->kind != GRAPH_ALL_TO_ALL)
        k.ok =
            make_collective(&k, net, e, e->kind, e->kind == GRAPH_BARRIER ? 0 : e->bytes);
    else if (e->kind == GRAPH_SYNC_ALL && net->routes.algorithm != NET_DIRECT)
        k.ok = make_collective(&k, net, e, GRAPH_ALL_REDUCE, e->flow / pairs);
    else
        each_to_each(&k, e->n, 1,
                     e->kind == GRAPH_ALL_TO_ALL ? e->bytes / e->n : e->flow / pairs);
    set_transfers(rounds);
    if (k.back)
        reverse(rounds);
    return k.ok;
}

void
net_rounds_free(struct net_rounds *rounds)
{
    free(rounds->round);
    free(rounds->transfer);
    *rounds = (struct net_rounds){.n = 0};
}
