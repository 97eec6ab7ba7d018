/*
 * A dragonfly: groups of routers, each router with hosts; the routers of a group are
 * joined each to each other, and groups by global links (Kim, Dally, Scott and Abts,
 * "Technology-driven, highly-scalable dragonfly topology", 2008).
 *
 *     cluster dragonfly GROUPS ROUTERS HOSTS BANDWIDTH LATENCY MEMORY
 *
 * BANDWIDTH and LATENCY are of the links of hosts; local= is the bandwidth between
 * routers of a group, global= and global_latency= are of links between groups (without
 * these keys they have the same). A router has links= global links (by default as many as
 * hosts). A server is group.router.host.
 *
 * Global link s of a group (of router s / links) leads s mod (GROUPS - 1) + 1 groups on,
 * the last group is followed by the first; the one with which it shares a cable leads as
 * many groups back. Each two groups have equally many; global links that are left over
 * are not used. Routes are minimal: to the router that has a link to the group of the
 * destination, over it, and to the router of the destination. If there are several such
 * links, those of the host number of the destination are taken in turn.
 *
 * Links: two of each host (up, down); those in groups, by the router they leave; global
 * ones, by group. Nodes behind the servers: routers.
 */
#include "rampipe/net_kind.h"

#include <stdio.h>

struct dragonfly {
    struct net net;
    uint32_t count[3];               /* groups, routers of a group, hosts of a router */
    double bandwidth, local, global; /* bytes/s */
    double latency, global_latency;  /* seconds */
    uint32_t ports;                  /* global links of a router */
    uint32_t copies;                 /* links from one group to another */
    uint32_t first_local, first_global;
};

static const struct dragonfly *
of(const struct net *net)
{
    return (const struct dragonfly *)net;
}

/* ---- record --------------------------------------------------------------- */

/* Global links that a group uses. */
static uint32_t
used(const struct dragonfly *f)
{
    return f->copies * (f->count[0] - 1);
}

static bool
read_keys(struct dragonfly *f, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    uint64_t ports = f->count[2];
    f->local = f->global = f->bandwidth;
    f->global_latency = f->latency;
    if (!net_key_bandwidth(reader, rec, "local", &f->local, err) ||
        !net_key_bandwidth(reader, rec, "global", &f->global, err) ||
        !rec_key_number(reader, rec, "global_latency", &f->global_latency, err) ||
        !rec_key_count(reader, rec, "links", &ports, err))
        return false;
    if (ports < 1 || ports > 1u << 20)
        return rec_reader_fail(reader, err, "links must be from 1 to %u, got %llu",
                               1u << 20, (unsigned long long)ports);
    f->ports = (uint32_t)ports;
    if (f->count[0] > 1) {
        uint64_t most = ports * f->count[1] / (f->count[0] - 1);
        if (most < 1)
            return rec_reader_fail(
                reader, err,
                "%u routers of a group with %llu global links each do not reach the "
                "%u other groups: there must be at least one link to each",
                f->count[1], (unsigned long long)ports, f->count[0] - 1);
        f->copies = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
    }
    return true;
}

static bool
set_routes(struct dragonfly *f, const struct rec_reader *reader, struct rec_error *err)
{
    struct net_routes *r = &f->net.routes;
    double servers = net_servers(&f->net), routers = (double)f->count[0] * f->count[1];
    double local = routers * (f->count[1] - 1.0);
    double global = (double)f->copies * (f->count[0] - 1.0) * f->count[0];
    if (!net_check_links(reader, 2 * servers + local + global, servers + routers, err))
        return false;
    f->first_local = 2 * net_servers(&f->net);
    f->first_global = f->first_local + (uint32_t)local;
    r->links = f->first_global + (uint32_t)global;
    r->nodes = (uint32_t)(servers + routers);
    r->longest = 5;
    r->fans = NET_FANS_FROM; /* the way is chosen by the router, and by the destination */
    r->port = f->count[2];
    r->latency = 2 * f->latency;
    r->bandwidth = r->leaving = f->bandwidth;
    return true;
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"cluster", "group", "router", "server"};
    struct dragonfly f = {.net.kind = &net_dragonfly};
    if (!net_get_counts(reader, rec, 2, 3, f.count, err) ||
        !net_get_rates(reader, rec, 5, &f.bandwidth, &f.latency, &f.net.memory, err) ||
        !read_keys(&f, reader, rec, err) || !net_key_algorithm(reader, rec, &f.net, err))
        return NULL;
    net_set_levels(&f.net, 3, names, f.count);
    return set_routes(&f, reader, err) ? net_keep(&f.net, sizeof f, err) : NULL;
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    const struct dragonfly *f = of(net);
    for (int i = 0; i < 3; i++)
        rec_uint_field(writer, f->count[i]);
    rec_num_field(writer, f->bandwidth);
    rec_num_field(writer, f->latency);
    rec_num_field(writer, net->memory);
    rec_num_key(writer, "local", f->local);
    rec_num_key(writer, "global", f->global);
    rec_num_key(writer, "global_latency", f->global_latency);
    rec_uint_key(writer, "links", f->ports);
    net_write_algorithm(net, writer);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    const uint32_t *n = of(net)->count;
    snprintf(text, NET_TEXT_MAX, "a %ux%ux%u dragonfly", n[0], n[1], n[2]);
}

/* ---- links and routes ------------------------------------------------------ */

/* The router that the other end of global link s of a group is on, in its group. */
static uint32_t
other_end(const struct dragonfly *f, uint32_t s)
{
    uint32_t groups = f->count[0], on = s % (groups - 1) + 1;
    return (s / (groups - 1) * (groups - 1) + groups - on - 1) / f->ports;
}

static uint32_t
local_link(const struct dragonfly *f, uint32_t group, uint32_t from, uint32_t to)
{
    uint32_t a = f->count[1];
    return f->first_local + (group * a + from) * (a - 1) + to - (to > from);
}

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    const struct dragonfly *f = of(net);
    uint32_t servers = net_servers(net), a = f->count[1], group;
    if (i < f->first_local) {
        uint32_t at[2] = {i / 2, servers + i / 2 / f->count[2]};
        *link = (struct net_link){at[i % 2], at[1 - i % 2], f->bandwidth, f->latency};
    } else if (i < f->first_global) {
        uint32_t router = (i - f->first_local) / (a - 1);
        uint32_t to = (i - f->first_local) % (a - 1);
        to += to >= router % a;
        *link = (struct net_link){servers + router, servers + router / a * a + to,
                                  f->local, f->latency};
    } else {
        uint32_t s = (i - f->first_global) % used(f), groups = f->count[0], to;
        group = (i - f->first_global) / used(f);
        to = (group + s % (groups - 1) + 1) % groups;
        *link = (struct net_link){servers + group * a + s / f->ports,
                                  servers + to * a + other_end(f, s), f->global,
                                  f->global_latency};
    }
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct dragonfly *f = of(net);
    uint32_t groups = f->count[0], a = f->count[1], n = 0;
    uint32_t here = from / f->count[2], there = to / f->count[2];
    uint32_t group = here / a, target = there / a;
    link[n++] = 2 * from;
    here %= a;
    there %= a;
    if (group != target) {
        uint32_t on = (target + groups - group) % groups;
        uint32_t s = to % (a * f->count[2]) % f->copies * (groups - 1) + on - 1;
        if (here != s / f->ports)
            link[n++] = local_link(f, group, here, s / f->ports);
        link[n++] = f->first_global + group * used(f) + s;
        here = other_end(f, s);
    }
    if (here != there)
        link[n++] = local_link(f, target, here, there);
    link[n++] = 2 * to + 1;
    return n;
}

static void
node_name(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    const struct dragonfly *f = of(net);
    node -= net_servers(net);
    snprintf(name, NET_NODE_MAX, "router %u.%u", node / f->count[1], node % f->count[1]);
}

/* Groups are alike: which router leads to which group depends only on how many groups on
 * that one lies. So groups are numbered from that of the first server on. In a group
 * each router leads elsewhere, so the numbers of routers and hosts stay. */
static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    const struct dragonfly *f = of(net);
    uint32_t each = f->count[1] * f->count[2], servers = net_servers(net);
    (void)err;
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = (server[i] + servers - server[0] / each * each) % servers;
    return true;
}

const struct net_kind net_dragonfly = {.name = "dragonfly",
                                       .mark = '.',
                                       .read = read,
                                       .write = write,
                                       .describe = describe,
                                       .numbers = 1,
                                       .geometry = geometry,
                                       .sync = GRAPH_SYNC_BY_UNIT,
                                       .alone = net_alone_by_links,
                                       .link = get_link,
                                       .route = route,
                                       .node_name = node_name};
