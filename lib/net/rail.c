/*
 * Rails: nodes of S servers each, every server with its own adapter. Adapter i of all
 * nodes of a group leads to leaf i, their rail; leaves of the same rail in different
 * groups are joined by a spine of that rail. So servers of the same number in different
 * nodes of a group are one leaf apart. A message to another number goes first to the
 * server of that number in its own node, over the island in the node, and then along the
 * rail (the way of NCCL's PXN and of rail-only networks: Wang, Ghobadi, Shakeri, Zhang
 * and Hasani, "Rail-only: a low-cost high-performance network for training LLMs with
 * trillion parameters", 2023).
 *
 *     cluster rail GROUPS NODES SERVERS BANDWIDTH LATENCY INSIDE MEMORY
 *
 * BANDWIDTH and LATENCY are of a link of a rail, INSIDE is the bandwidth of a server in
 * its node. taper= is that of the leaves: links down over links up. A server is
 * group.node.number, or node.number if there is one group.
 *
 * Links: two of each server into its island and back, if S > 1; the trees of the rails.
 * Nodes behind the servers: the switches of the islands; those of the trees.
 */
#include "tree.h"

#include <math.h>
#include <stdio.h>

struct rail {
    struct net net;
    struct tree tree;  /* of one rail; its ends are the nodes */
    uint32_t count[3]; /* groups, nodes, servers of a node */
    double inside;     /* of a server in its node, bytes/s */
    double inside_latency, taper;
    uint32_t base, inner; /* first link of the trees; switches of islands */
};

static const struct rail *
of(const struct net *net)
{
    return (const struct rail *)net;
}

/* ---- record --------------------------------------------------------------- */

static void
set_routes(struct rail *f)
{
    struct net_routes *r = &f->net.routes;
    uint32_t servers = net_servers(&f->net), each = f->count[2];
    f->base = each > 1 ? 2 * servers : 0;
    f->inner = each > 1 ? servers / each : 0;
    r->links = f->base + each * f->tree.links;
    r->nodes = servers + f->inner + each * f->tree.nodes;
    r->longest = 2 + 2 * f->tree.n;
    /* With a spine, what leads to a rail of another group depends on the node there. */
    r->fans = f->tree.n == 1 ? NET_FANS_TO : NET_NO_FANS;
    r->port = each;
    r->latency = 2 * f->tree.latency;
    r->bandwidth = r->leaving = f->tree.bandwidth;
    if (each > 1) {
        r->latency = fmin(r->latency, f->inside_latency);
        r->bandwidth = fmax(r->bandwidth, f->inside);
        r->leaving += f->inside;
    }
}

static bool
read_rates(struct rail *f, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct rec_str key;
    if (!rec_get_number(reader, rec, 5, &f->tree.bandwidth, err) ||
        !rec_get_number(reader, rec, 6, &f->tree.latency, err) ||
        !rec_get_number(reader, rec, 7, &f->inside, err) ||
        !rec_get_number(reader, rec, 8, &f->net.memory, err) ||
        !net_key_bandwidth(reader, rec, "taper", &f->taper, err))
        return false;
    f->inside_latency = f->tree.latency;
    if (!rec_key_number(reader, rec, "inside_latency", &f->inside_latency, err))
        return false;
    if (!(f->tree.bandwidth > 0 && f->inside > 0))
        return rec_reader_fail(reader, err, "BANDWIDTH and INSIDE must be > 0");
    return f->count[0] > 1 || !rec_find_key(rec, "taper", &key) ||
           rec_reader_fail(reader, err,
                           "taper= is of rails that have a spine: there must be at "
                           "least two groups");
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"cluster", "group", "node", "gpu"};
    static const char *const small[] = {"cluster", "node", "gpu"};
    struct rail f = {.net.kind = &net_rail, .taper = 1};
    bool groups;
    if (!net_get_counts(reader, rec, 2, 3, f.count, err) ||
        !read_rates(&f, reader, rec, err))
        return NULL;
    groups = f.count[0] > 1;
    f.net.routes.node = f.count[2];
    f.net.routes.in_switch = true;
    f.net.measured.node = f.count[2];
    f.tree.n = groups ? 2 : 1;
    f.tree.down[0] = f.count[1];
    f.tree.down[1] = f.count[0];
    f.tree.taper[0] = f.taper;
    f.tree.taper[1] = 1;
    if (!net_key_algorithm(reader, rec, &f.net, err) ||
        !tree_make(&f.tree, reader, err) ||
        !net_check_links(reader, (f.tree.links + 2.0 * f.tree.ends) * f.count[2],
                         (f.tree.nodes + 2.0 * f.tree.ends) * f.count[2], err))
        return NULL;
    net_set_levels(&f.net, groups ? 3 : 2, groups ? names : small, f.count + !groups);
    set_routes(&f);
    return net_keep(&f.net, sizeof f, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    const struct rail *f = of(net);
    for (int i = 0; i < 3; i++)
        rec_uint_field(writer, f->count[i]);
    rec_num_field(writer, f->tree.bandwidth);
    rec_num_field(writer, f->tree.latency);
    rec_num_field(writer, f->inside);
    rec_num_field(writer, net->memory);
    rec_num_key(writer, "inside_latency", f->inside_latency);
    if (f->taper != 1)
        rec_num_key(writer, "taper", f->taper);
    net_write_algorithm(net, writer);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    const struct rail *f = of(net);
    snprintf(text, NET_TEXT_MAX, "%u rails of %u nodes", f->count[2],
             f->count[0] * f->count[1]);
}

/* ---- links and routes ------------------------------------------------------ */

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    const struct rail *f = of(net);
    uint32_t servers = net_servers(net), each = f->count[2], end = 0, rail;
    uint32_t *side[2] = {&link->from, &link->to};
    if (i < f->base) {
        uint32_t at[2] = {i / 2, servers + i / 2 / each};
        *link =
            (struct net_link){at[i % 2], at[1 - i % 2], f->inside, f->inside_latency / 2};
        return;
    }
    rail = (i - f->base) / f->tree.links;
    tree_link(&f->tree, (i - f->base) % f->tree.links, link, &end);
    for (int k = 0; k < 2; k++)
        if (*side[k] != UINT32_MAX)
            *side[k] += servers + f->inner + rail * f->tree.nodes;
        else
            *side[k] = end * each + rail;
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct rail *f = of(net);
    uint32_t each = f->count[2], node = from / each, rail = to % each, n = 0;
    if (from % each != rail) {
        link[n++] = 2 * from;
        link[n++] = 2 * (node * each + rail) + 1;
    }
    if (node != to / each)
        n += tree_route(&f->tree, node, to / each, f->base + rail * f->tree.links,
                        link + n);
    return n;
}

static void
node_name(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    const struct rail *f = of(net);
    char text[NET_NODE_MAX];
    node -= net_servers(net);
    if (node < f->inner) {
        net_format_server(net, node * f->count[2], text);
        *strrchr(text, '.') = '\0';
        snprintf(name, NET_NODE_MAX, "node %.40s", text);
        return;
    }
    tree_name(&f->tree, (node - f->inner) % f->tree.nodes, text);
    snprintf(name, NET_NODE_MAX, "rail %u %.40s", (node - f->inner) / f->tree.nodes,
             text);
}

/*
 * Two lists of servers cost the same if groups, nodes and rails can be renamed so that
 * one becomes the other, and so can the switches of the spine that lead to the nodes: to
 * node d those of number d mod width[1].
 */
enum { NUMBERS = 4 };

static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    const struct rail *f = of(net);
    uint32_t each = f->count[2], spine = f->tree.n > 1 ? f->tree.width[1] : 1;
    const uint32_t names[NUMBERS] = {f->count[0], f->tree.ends, each, spine};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = server[i] / each, *to = numbers + (size_t)i * NUMBERS;
        to[0] = node / f->count[1];
        to[1] = node;
        to[2] = server[i] % each;
        to[3] = node % spine;
    }
    for (uint32_t k = 0; k < NUMBERS; k++)
        if (!net_rename(numbers + k, n, NUMBERS, names[k], err))
            return false;
    return true;
}

const struct net_kind net_rail = {.name = "rail",
                                  .mark = '.',
                                  .read = read,
                                  .write = write,
                                  .describe = describe,
                                  .numbers = NUMBERS,
                                  .geometry = geometry,
                                  .sync = GRAPH_SYNC_BY_UNIT,
                                  .alone = net_alone_by_links,
                                  .link = get_link,
                                  .route = route,
                                  .node_name = node_name};
