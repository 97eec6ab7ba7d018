/*
 * An island: N servers behind one switch that never blocks, as the GPUs of a node that
 * are joined by NVSwitch. Each server has a link of BANDWIDTH into it and one out of it.
 *
 *     cluster island N BANDWIDTH LATENCY MEMORY
 *
 * The time of an exchange alone follows from what each server sends and receives. A
 * message of S bytes takes LATENCY + S / BANDWIDTH. In a group of n servers each sends to
 * each other one, round after round: n - 1 rounds of LATENCY, and F bytes that cross in
 * all, n servers at BANDWIDTH each. For the sync deps of an op, of S bytes each, that is
 * a direct all-reduce: (n - 1) (LATENCY + S / BANDWIDTH). With algorithm=ring it is one
 * of a ring, which sends less: 2 (n - 1) (LATENCY + S / (n BANDWIDTH)) (Patarasuk and
 * Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
 * The other algorithms, and exchanges of coll records, are those of rounds.c.
 *
 * Link 2 i leads from server i into the switch, link 2 i + 1 from there to the server;
 * each has half of LATENCY.
 */
#include "rampipe/net_kind.h"

#include <stdio.h>

struct island {
    struct net net;
    uint32_t servers;
    double bandwidth; /* of a server, in each direction, bytes/s */
    double latency;   /* of a message, seconds */
};

static const struct island *
of(const struct net *net)
{
    return (const struct island *)net;
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"island", "server"};
    struct island i = {.net.kind = &net_island, .net.routes.in_switch = true};
    struct net_routes *routes = &i.net.routes;
    if (!net_get_counts(reader, rec, 2, 1, &i.servers, err) ||
        !rec_get_number(reader, rec, 3, &i.bandwidth, err) ||
        !rec_get_number(reader, rec, 4, &i.latency, err) ||
        !rec_get_number(reader, rec, 5, &i.net.memory, err) ||
        !net_key_algorithm(reader, rec, &i.net, err))
        return NULL;
    if (!(i.bandwidth > 0)) {
        rec_reader_fail(reader, err, "the bandwidth of a server must be > 0");
        return NULL;
    }
    routes->nodes = i.servers + 1;
    routes->links = 2 * i.servers;
    routes->longest = 2;
    routes->fans = NET_FANS_FROM;
    routes->port = i.servers;
    routes->latency = i.latency;
    routes->bandwidth = routes->leaving = i.bandwidth;
    i.net.measured.node = i.servers;
    net_set_levels(&i.net, 1, names, &i.servers);
    return net_keep(&i.net, sizeof i, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    rec_uint_field(writer, of(net)->servers);
    rec_num_field(writer, of(net)->bandwidth);
    rec_num_field(writer, of(net)->latency);
    rec_num_field(writer, net->memory);
    net_write_algorithm(net, writer);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    snprintf(text, NET_TEXT_MAX, "an island of %u server%s", of(net)->servers,
             of(net)->servers == 1 ? "" : "s");
}

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    const struct island *island = of(net);
    uint32_t at[2] = {i / 2, island->servers};
    *link = (struct net_link){at[i % 2], at[1 - i % 2], island->bandwidth,
                              island->latency / 2};
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    (void)net;
    link[0] = 2 * from;
    link[1] = 2 * to + 1;
    return 2;
}

static void
node_name(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    (void)net, (void)node;
    strcpy(name, "switch");
}

static double
one_alone(const struct net *net, const struct net_exchange *e)
{
    const struct island *island = of(net);
    double n = e->n, rounds = n - 1, each = e->flow / n; /* bytes that a server sends */
    if (e->kind == GRAPH_MESSAGE)
        return island->latency + e->bytes / island->bandwidth;
    if (e->n < 2)
        return 0;
    /* Without servers this is a lower bound: more servers than these may take part in a
     * collective, as those of other ops. */
    if (!e->server && e->kind == GRAPH_COLLECTIVE)
        each = e->flow / island->servers;
    if (net->routes.algorithm == NET_RING && e->kind == GRAPH_SYNC_ALL) {
        each = 2 * each / n; /* each / (n - 1) is S */
        rounds = 2 * (n - 1);
    }
    return rounds * island->latency + each / island->bandwidth;
}

static bool
alone(const struct net *net, const struct net_exchange *exchange, size_t n,
      double *seconds, struct rec_error *err)
{
    enum graph_exchange_kind last =
        net->routes.algorithm > NET_RING ? GRAPH_SYNC_PAIR : GRAPH_SYNC_ALL;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        if (exchange[i].kind > last)
            ok = net_alone_by_links(net, &exchange[i], 1, &seconds[i], err);
        else
            seconds[i] = one_alone(net, &exchange[i]);
    return ok;
}

const struct net_kind net_island = {.name = "island",
                                    .mark = '.',
                                    .read = read,
                                    .write = write,
                                    .describe = describe,
                                    .sync = GRAPH_SYNC_BY_UNIT,
                                    .alone = alone,
                                    .link = get_link,
                                    .route = route,
                                    .node_name = node_name};
