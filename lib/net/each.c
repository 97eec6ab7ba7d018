/* The routes from each of some servers to each other one, as fans where kinds have them
 * (struct net_routes). */
#include "rampipe/net_kind.h"

#include <stdlib.h>

struct net_each {
    const struct net *net;
    const uint32_t *server;
    uint32_t n;
    uint32_t *route; /* room for one */
    uint32_t *other; /* the servers in order of their ports, then of their numbers */
    uint32_t *tip; /* of each of these the link in which its routes differ from others */
    uint32_t *first, nports; /* per port, and one more: its part of other[] */
    uint32_t i, port, k;     /* of the next route: server; port; place in it */
};

/* ---- ports -------------------------------------------------------------------- */

static uint32_t
port_of(const struct net *net, uint32_t server)
{
    uint32_t port = net->routes.port;
    switch (net->routes.fans) {
    case NET_FANS_FROM: return server / port;
    case NET_FANS_TO: return server % port;
    default: return 0;
    }
}

/* The first server of the node of a server; how many a node has. */
static uint32_t
node_of(const struct net *net, uint32_t server, uint32_t *size)
{
    *size = net->routes.node > 1 ? net->routes.node : 1;
    return server / *size * *size;
}

/* The route between one of the servers of a port and another server. */
static uint32_t
find_route(const struct net_each *each, uint32_t other, uint32_t server)
{
    return each->net->routes.fans == NET_FANS_FROM
               ? net_route(each->net, other, server, each->route)
               : net_route(each->net, server, other, each->route);
}

static int
by_port(const void *a, const void *b, void *context)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t p = port_of(context, x), q = port_of(context, y);
    return p != q ? (p > q) - (p < q) : (x > y) - (x < y);
}

/* A tip is the same whatever the other server, which is in another node. */
static uint32_t
find_tip(const struct net_each *each, uint32_t server)
{
    uint32_t size, node = node_of(each->net, server, &size), n;
    if (size >= net_servers(each->net))
        return UINT32_MAX;
    n = find_route(each, server, (node + size) % net_servers(each->net));
    return each->route[each->net->routes.fans == NET_FANS_FROM ? 0 : n - 1];
}

static void
make_ports(struct net_each *each)
{
    uint32_t n = each->n;
    memcpy(each->other, each->server, n * sizeof *each->other);
    qsort_r(each->other, n, sizeof *each->other, by_port, (void *)(uintptr_t)each->net);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t port = port_of(each->net, each->other[i]);
        if (i == 0 || port != port_of(each->net, each->other[i - 1]))
            each->first[each->nports++] = i;
        if (each->net->routes.fans != NET_NO_FANS)
            each->tip[i] = find_tip(each, each->other[i]);
    }
    each->first[each->nports] = n;
}

/* ---- the interface -------------------------------------------------------------- */

struct net_each *
net_each_new(const struct net *net, const uint32_t *server, uint32_t n,
             struct rec_error *err)
{
    struct net_each *each = calloc(1, sizeof *each);
    size_t room = ((size_t)n + 1) * sizeof(uint32_t);
    if (each) {
        *each = (struct net_each){.net = net, .server = server, .n = n};
        each->route = malloc(((size_t)net_longest_route(net) + 1) * sizeof *each->route);
        each->other = malloc(room);
        each->tip = malloc(room);
        each->first = malloc(room);
    }
    if (!each || !each->route || !each->other || !each->tip || !each->first) {
        rec_fail_memory(err);
        net_each_free(each);
        return NULL;
    }
    make_ports(each);
    return each;
}

void
net_each_free(struct net_each *each)
{
    if (!each)
        return;
    free(each->route);
    free(each->other);
    free(each->tip);
    free(each->first);
    free(each);
}

uint32_t
net_each_ports(const struct net_each *each)
{
    return each->nports;
}

void
net_each_rewind(struct net_each *each)
{
    each->i = each->port = each->k = 0;
}

/* Where a number is or would be among other[from..to), which are in order. */
static uint32_t
position(const struct net_each *each, uint32_t from, uint32_t to, uint32_t server)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (each->other[middle] < server)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The fan of a server and a port, first; then the routes of its own node. */
static bool
next_of_port(struct net_each *each, struct net_fan *fan)
{
    uint32_t server = each->server[each->i], size;
    uint32_t node = node_of(each->net, server, &size);
    uint32_t first = each->first[each->port], end = each->first[each->port + 1];
    uint32_t from = first, to = end; /* those of its own node */
    if (each->net->routes.fans != NET_NO_FANS) {
        from = position(each, first, end, node);
        to = position(each, from, end, node + size);
    }
    if (each->k == 0) {
        each->k = 1;
        if (end - first > to - from) {
            uint32_t one = from > first ? first : to;
            bool is_first = each->net->routes.fans == NET_FANS_FROM;
            *fan = (struct net_fan){.route = each->route,
                                    .tip = each->tip + first,
                                    .ntips = end - first,
                                    .skip = from - first,
                                    .nskip = to - from,
                                    .port = each->port};
            fan->n = find_route(each, each->other[one], server);
            fan->shared = fan->route + is_first;
            return true;
        }
    }
    for (; from + each->k - 1 < to; each->k++) {
        uint32_t other = each->other[from + each->k - 1];
        if (other == server)
            continue;
        each->k++;
        *fan = (struct net_fan){.route = each->route,
                                .n = find_route(each, other, server),
                                .shared = each->route};
        return true;
    }
    return false;
}

bool
net_each_next(struct net_each *each, struct net_fan *fan)
{
    for (; each->i < each->n; each->i++, each->port = 0)
        for (; each->port < each->nports; each->port++, each->k = 0)
            if (next_of_port(each, fan))
                return true;
    return false;
}
