/*
 * The time of an exchange alone on a cluster with links and routes. A message takes the
 * latency of its route, and its bytes over the least capacity on it. An exchange of
 * several servers is a sequence of rounds. In each, some servers send to others, all at
 * once: a round takes the largest latency of their routes, and on each link the bytes
 * that go through it over its capacity, of which the largest counts. A link that a route
 * has twice carries the bytes twice.
 *
 * A collective is sent directly: each of n servers sends an equal share to each other
 * one, in n - 1 rounds of which only the sum of bytes matters. So are the sync deps of an
 * op, with algorithm=direct. The other algorithms know them as an all-reduce of S bytes
 * among n servers, where S is the size of one sync dep (reference: Thakur, Rabenseifner
 * and Gropp, "Optimization of collective communication operations in MPICH", 2005;
 * Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan", 2009):
 *
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
 */
#include "rampipe/net_kind.h"

#include <math.h>
#include <stdlib.h>

/* What a round costs: the largest latency of its routes, seconds, and the link that takes
 * longest, with the messages that go through it. */
struct cost {
    double latency, capacity;
    uint32_t count;
};

/* What the links carry in a round. */
struct load {
    const struct net *net;
    uint32_t *route; /* scratch */
    uint32_t *count; /* per link: messages through it */
    uint32_t *used;  /* the links with count > 0 */
    uint32_t nused;
    double latency; /* the largest of a route, seconds */
    /* The last servers that sent each to each other, and the cost. Most ops of a graph
     * lie on the same servers, and counting takes n^2 routes. */
    const uint32_t *server;
    uint32_t n;
    struct cost direct;
};

/* The members of an exchange, those of one node one after another. */
struct members {
    uint32_t *server;
    uint32_t n;
    uint32_t *first; /* node j has server[first[j]..first[j + 1]) */
    uint32_t nodes;
    uint32_t least, most; /* servers of a node */
};

static void
add(struct load *l, uint32_t from, uint32_t to)
{
    uint32_t n = net_route(l->net, from, to, l->route);
    struct net_link link;
    double latency = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (l->count[l->route[i]]++ == 0)
            l->used[l->nused++] = l->route[i];
        net_link(l->net, l->route[i], &link);
        latency += link.latency;
    }
    l->latency = fmax(l->latency, latency);
}

/* Ends a round. */
static struct cost
carry(struct load *l)
{
    struct cost cost = {l->latency, 1, 0};
    struct net_link link;
    for (uint32_t i = 0; i < l->nused; i++) {
        uint32_t *count = &l->count[l->used[i]];
        net_link(l->net, l->used[i], &link);
        if (*count / link.capacity > cost.count / cost.capacity) {
            cost.capacity = link.capacity;
            cost.count = *count;
        }
        *count = 0;
    }
    l->nused = 0;
    l->latency = 0;
    return cost;
}

/* The time of a round: `latencies` times the largest latency of a route, and what the
 * slowest link takes if each message has `bytes`. */
static double
seconds_of(const struct cost *cost, double latencies, double bytes)
{
    return latencies * cost->latency + bytes * cost->count / cost->capacity;
}

/* Ends a round; the time of `rounds` equal ones. */
static double
repeat(struct load *l, double rounds, double bytes)
{
    struct cost cost = carry(l);
    return rounds * seconds_of(&cost, 1, bytes);
}

/* ---- algorithms -------------------------------------------------------------- */

/* Each server sends `bytes` to each other one. */
static double
direct(struct load *l, const uint32_t *server, uint32_t n, double bytes)
{
    if (n != l->n || memcmp(server, l->server, n * sizeof *server) != 0) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                if (i != j)
                    add(l, server[i], server[j]);
        l->server = server;
        l->n = n;
        l->direct = carry(l);
    }
    return seconds_of(&l->direct, n - 1, bytes);
}

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

static double
ring(struct load *l, const struct members *m, double bytes)
{
    uint32_t q = m->most;
    if (m->least < m->most) {
        for (uint32_t i = 0; i < m->n; i++)
            add(l, m->server[i], m->server[(i + 1) % m->n]);
        q = 1;
    } else
        for (uint32_t r = 0; r < q; r++)
            for (uint32_t j = 0; j < m->nodes; j++) {
                for (uint32_t i = 0; i + 1 < q; i++)
                    add(l, on_ring(m, r, j, i), on_ring(m, r, j, i + 1));
                add(l, on_ring(m, r, j, q - 1), on_ring(m, r, (j + 1) % m->nodes, 0));
            }
    return repeat(l, 2 * (m->n - 1.0), bytes / m->n / q);
}

/* The parent of number i in a binary tree of n numbers in order: odd ones are leaves. 0
 * is the root, and has one child. */
static uint32_t
parent(uint32_t i, uint32_t n)
{
    uint32_t bit = i & -i, up = (i ^ bit) | (bit << 1);
    return up >= n ? i ^ bit : up;
}

/* The server of number i in a tree. In the second one the leaves of the first have even
 * numbers: the order is reversed, or moved on by one if n is odd. */
static uint32_t
in_tree(const struct members *m, int second, uint32_t i)
{
    if (second)
        i = m->n % 2 ? (i + 1) % m->n : m->n - 1 - i;
    return m->server[i];
}

static uint32_t
log2_up(uint32_t n)
{
    uint32_t k = 0;
    while (k < 32 && (uint64_t)1 << k < n)
        k++;
    return k;
}

static double
tree(struct load *l, const struct members *m, double bytes)
{
    struct cost cost;
    for (uint32_t i = 1; i < m->n; i++)
        for (int second = 0; second < 2; second++) {
            uint32_t a = in_tree(m, second, i);
            uint32_t b = in_tree(m, second, parent(i, m->n));
            add(l, a, b);
            add(l, b, a);
        }
    cost = carry(l);
    return seconds_of(&cost, 2 * log2_up(m->n), bytes / 2);
}

static double
halving_doubling(struct load *l, const struct members *m, double bytes)
{
    uint32_t power = 1, more;
    double seconds = 0;
    while (power <= m->n / 2)
        power *= 2;
    more = m->n - power;
    for (uint32_t i = 0; i < more; i++)
        add(l, m->server[power + i], m->server[i]);
    if (more)
        seconds += repeat(l, 1, bytes);
    for (uint32_t away = 1; away < power; away *= 2) {
        bytes /= 2;
        for (uint32_t i = 0; i < power; i++)
            add(l, m->server[i], m->server[i ^ away]);
        seconds += repeat(l, 2, bytes);
    }
    for (uint32_t i = 0; i < more; i++)
        add(l, m->server[i], m->server[power + i]);
    if (more)
        seconds += repeat(l, 1, bytes * power);
    return seconds;
}

/* Each server of a node sends a share to each of the first q, or gets it back. */
static double
inside(struct load *l, const struct members *m, double share, bool back)
{
    struct cost cost;
    for (uint32_t j = 0; j < m->nodes; j++)
        for (uint32_t a = m->first[j]; a < m->first[j + 1]; a++)
            for (uint32_t i = 0; i < m->least; i++) {
                uint32_t b = m->first[j] + i;
                if (a != b)
                    add(l, m->server[back ? b : a], m->server[back ? a : b]);
            }
    cost = carry(l);
    return seconds_of(&cost, m->most - 1, share);
}

static double
hierarchical(struct load *l, const struct members *m, double bytes)
{
    double share = bytes / m->least, k = m->nodes, seconds = inside(l, m, share, false);
    for (uint32_t i = 0; m->nodes > 1 && i < m->least; i++)
        for (uint32_t j = 0; j < m->nodes; j++)
            add(l, m->server[m->first[j] + i],
                m->server[m->first[(j + 1) % m->nodes] + i]);
    seconds += repeat(l, 2 * (k - 1), share / k);
    return seconds + inside(l, m, share, true);
}

/* ---- members ------------------------------------------------------------------ */

static void
free_members(struct members *m)
{
    free(m->server);
    free(m->first);
}

/* Sorts the servers by their nodes, which come in the order in which they first appear,
 * so that lists with equal geometries are sorted alike. */
static bool
sort_members(const struct net *net, const struct net_exchange *e, struct members *m,
             struct rec_error *err)
{
    uint32_t size = net->routes.node > 1 ? net->routes.node : net_servers(net);
    uint32_t *node = malloc((e->n + 1) * sizeof *node);
    bool ok;
    *m = (struct members){.n = e->n};
    m->server = malloc((e->n + 1) * sizeof *m->server);
    m->first = calloc((size_t)e->n + 2, sizeof *m->first);
    ok = (node && m->server && m->first) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < e->n; i++)
        node[i] = net->routes.node > 1 ? e->server[i] / size : i;
    ok = ok && (net->routes.node <= 1 ||
                net_rename(node, e->n, 1, net_servers(net) / size, err));
    for (uint32_t i = 0; ok && i < e->n; i++) {
        node[i] += net->routes.node <= 1; /* as net_rename() does, from 1 on */
        m->nodes = node[i] > m->nodes ? node[i] : m->nodes;
        m->first[node[i]]++;
    }
    if (ok)
        m->least = e->n;
    for (uint32_t j = 0; ok && j < m->nodes; j++) {
        uint32_t here = m->first[j + 1];
        m->least = here < m->least ? here : m->least;
        m->most = here > m->most ? here : m->most;
        m->first[j + 1] += m->first[j];
    }
    /* first[j] is now where node j begins, and moves on while its servers are put there:
     * then it is where node j ends, which is the next one's beginning. */
    for (uint32_t i = 0; ok && i < e->n; i++)
        m->server[m->first[node[i] - 1]++] = e->server[i];
    for (uint32_t j = m->nodes; ok && j > 0; j--)
        m->first[j] = m->first[j - 1];
    if (ok)
        m->first[0] = 0;
    else
        free_members(m);
    free(node);
    return ok;
}

static bool
all_reduce(struct load *l, const struct net_exchange *e, double bytes, double *seconds,
           struct rec_error *err)
{
    static double (*const algorithm[])(struct load *, const struct members *, double) = {
        [NET_RING] = ring,
        [NET_TREE] = tree,
        [NET_HALVING_DOUBLING] = halving_doubling,
        [NET_HIERARCHICAL] = hierarchical};
    struct members m;
    if (!sort_members(l->net, e, &m, err))
        return false;
    *seconds = algorithm[l->net->routes.algorithm](l, &m, bytes);
    free_members(&m);
    return true;
}

/* ---- lower bounds --------------------------------------------------------------- */

/*
 * Without servers. In an all-reduce a server sends 2 (n - 1) / n S on average, whatever
 * the algorithm. A part of these bytes leaves each server by its own links, on the mean
 * at most by all of them at once. In a collective more servers than these may take part.
 */
static double
bound(const struct net *net, const struct net_exchange *e)
{
    const struct net_routes *r = &net->routes;
    double n = e->n, rounds = n - 1, each = e->flow / n;
    if (e->kind == GRAPH_MESSAGE)
        return r->latency + e->bytes / r->bandwidth;
    if (e->n < 2)
        return 0;
    if (e->kind == GRAPH_COLLECTIVE)
        each = e->flow / net_servers(net);
    if (e->kind == GRAPH_SYNC_ALL && r->algorithm != NET_DIRECT) {
        each = 2 * each / n;
        rounds = r->algorithm == NET_RING ? 2 * (n - 1) : 2 * log2_up(e->n);
    }
    return rounds * r->latency + each / r->leaving;
}

/* ---- all ------------------------------------------------------------------------ */

static double
message(struct load *l, const struct net_exchange *e)
{
    add(l, e->server[0], e->server[1]);
    return repeat(l, 1, e->bytes);
}

static bool
one_alone(struct load *l, const struct net_exchange *e, double *seconds,
          struct rec_error *err)
{
    double pairs = (double)e->n * (e->n - 1.0);
    *seconds = 0;
    if (e->kind == GRAPH_MESSAGE)
        *seconds = message(l, e);
    else if (e->n < 2)
        return true;
    else if (e->kind == GRAPH_SYNC_ALL && l->net->routes.algorithm != NET_DIRECT)
        return all_reduce(l, e, e->flow / pairs, seconds, err);
    else
        *seconds = direct(l, e->server, e->n, e->flow / pairs);
    return true;
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
        if (!l.count) {
            l.route = malloc((net->routes.longest + (size_t)1) * sizeof *l.route);
            l.count = calloc((size_t)net->routes.links + 1, sizeof *l.count);
            l.used = malloc(((size_t)net->routes.links + 1) * sizeof *l.used);
            ok = (l.route && l.count && l.used) || rec_fail_memory(err);
        }
        ok = ok && one_alone(&l, &exchange[i], &seconds[i], err);
    }
    free(l.route);
    free(l.count);
    free(l.used);
    return ok;
}
