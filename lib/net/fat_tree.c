/*
 * A fat tree: hosts below leaf switches, these below the switches of a pod, these below
 * the spine (tree.h has its links and routes). All links have the same bandwidth, so the
 * taper of a level is a number of links.
 *
 *     cluster fat-tree SHAPE BANDWIDTH LATENCY MEMORY
 *
 * SHAPE is PxLxH, P pods of L leaves of H hosts; LxH, leaves below one spine; or K, the
 * K-ary fat tree of K pods of K/2 leaves of K/2 adapters (Al-Fares, Loukissas and Vahdat,
 * "A scalable, commodity data center network architecture", 2008). taper= is that of the
 * leaves, pod_taper= that of the switches of a pod: links down over links up.
 *
 * With gpus=G a host is a node of G servers, which an island of inside= bytes/s each
 * joins, and has adapters=A adapters (by default G), each for G / A servers next to each
 * other. Where servers share an adapter, they reach it over the switch of the island.
 *
 * Links: two of each server into its island and back, if there are islands; the tree.
 * Nodes behind the servers: the switches of the islands; those of the tree.
 */
#include "tree.h"

#include <math.h>
#include <stdio.h>

struct fat_tree {
    struct net net;
    struct tree tree;
    uint32_t shape[3], nshape;
    uint32_t gpus, adapters; /* of a node; 1: hosts are servers */
    double inside;           /* of a server in its node, bytes/s */
    double inside_latency;   /* of a message in a node, seconds */
    double taper, pod_taper;
    uint32_t base, inner; /* first link of the tree; switches of islands */
};

static const struct fat_tree *
of(const struct net *net)
{
    return (const struct fat_tree *)net;
}

/* ---- record --------------------------------------------------------------- */

static bool
read_node(struct fat_tree *f, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    uint64_t gpus = 1, adapters;
    bool given;
    if (!rec_key_count(reader, rec, "gpus", &gpus, err))
        return false;
    adapters = gpus;
    f->inside_latency = f->tree.latency;
    if (!rec_key_count(reader, rec, "adapters", &adapters, err) ||
        !net_key_bandwidth(reader, rec, "inside", &f->inside, err) ||
        !rec_key_number(reader, rec, "inside_latency", &f->inside_latency, err))
        return false;
    given = f->inside > 0;
    if (gpus < 1 || gpus > 1u << 20)
        return rec_reader_fail(reader, err, "gpus must be from 1 to %u, got %llu",
                               1u << 20, (unsigned long long)gpus);
    if (given != (gpus > 1))
        return rec_reader_fail(reader, err,
                               "inside=, the bandwidth in a node, is needed with gpus= "
                               "of 2 or more, and only then");
    if (adapters < 1 || gpus % adapters != 0)
        return rec_reader_fail(reader, err, "adapters must divide gpus, %llu, got %llu",
                               (unsigned long long)gpus, (unsigned long long)adapters);
    f->gpus = (uint32_t)gpus;
    f->adapters = (uint32_t)adapters;
    return true;
}

/* Turns SHAPE into levels, from the leaves up. A K-ary tree has K/2 adapters a leaf. */
static bool
set_shape(struct fat_tree *f, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct rec_str key;
    double servers = f->gpus;
    uint32_t shape[3] = {f->shape[0], f->shape[0] / 2, f->shape[0] / 2}, k = f->shape[0];
    uint32_t n = 3, skip = 0;
    if (f->nshape == 1 && (k % 2 != 0 || k > 400))
        return rec_reader_fail(reader, err,
                               "a K-ary fat tree has an even K up to 400, got %u", k);
    if (f->nshape == 1 && k / 2 % f->adapters != 0)
        return rec_reader_fail(reader, err,
                               "a leaf of a %u-ary fat tree has %u links down, which "
                               "%u adapters a host do not divide",
                               k, k / 2, f->adapters);
    if (f->nshape > 1) {
        n = f->nshape;
        for (uint32_t i = 0; i < n; i++)
            shape[i] = f->shape[i];
        shape[n - 1] *= f->adapters;
    }
    for (uint32_t i = 0; i < n; i++)
        servers *= f->nshape > 1 ? f->shape[i] : shape[i];
    servers /= f->nshape > 1 ? 1 : f->adapters;
    if (servers > 1u << 24)
        return rec_reader_fail(reader, err, "a cluster has up to %u servers, got %.0f",
                               1u << 24, servers);
    while (skip + 1 < n && shape[skip] == 1)
        skip++; /* one pod is no level */
    if (rec_find_key(rec, "pod_taper", &key) && n - skip < 3)
        return rec_reader_fail(reader, err,
                               "pod_taper= is of a tree that has pods: SHAPE must be "
                               "PxLxH with at least two pods, or K");
    if (rec_find_key(rec, "taper", &key) && n - skip < 2)
        return rec_reader_fail(reader, err,
                               "taper= is of a tree that has a spine: there must be at "
                               "least two leaves");
    f->tree.n = n - skip;
    for (uint32_t s = 0; s < f->tree.n; s++) {
        f->tree.down[s] = shape[n - 1 - s];
        f->tree.taper[s] = s ? f->pod_taper : f->taper;
    }
    return true;
}

static void
set_levels(struct fat_tree *f)
{
    static const char *const all[] = {"pod", "leaf", "node", "gpu"};
    const char *name[5] = {"cluster"};
    uint32_t count[4], n = 0;
    for (uint32_t s = f->tree.n; s-- > 0; n++) {
        count[n] = s ? f->tree.down[s] : f->tree.down[0] / f->adapters;
        name[n + 1] = s ? all[2 - s] : "server";
    }
    if (f->gpus > 1) {
        name[n] = all[2];
        count[n++] = f->gpus;
        name[n] = all[3];
    }
    net_set_levels(&f->net, n, name, count);
}

static void
set_routes(struct fat_tree *f)
{
    struct net_routes *r = &f->net.routes;
    uint32_t servers = f->net.level[0].servers;
    bool islands = f->gpus > 1, shared = f->adapters < f->gpus;
    f->base = islands ? 2 * servers : 0;
    f->inner = islands ? servers / f->gpus : 0;
    r->links = f->base + f->tree.links;
    r->nodes = servers + f->inner + f->tree.nodes;
    r->longest = 2 * f->tree.n + (shared ? 2 : 0);
    /* The way up is chosen by the destination, so all of a leaf, or of an adapter that
       GPUs share, go the same way. */
    r->fans = NET_FANS_FROM;
    r->port = shared ? f->gpus / f->adapters : f->tree.down[0];
    r->latency = 2 * f->tree.latency + (shared ? f->inside_latency : 0);
    if (islands)
        r->latency = fmin(r->latency, f->inside_latency);
    r->bandwidth = fmax(f->tree.bandwidth, f->inside);
    r->leaving = shared ? f->inside : f->tree.bandwidth + f->inside;
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct fat_tree f = {.net.kind = &net_fat_tree, .taper = 1, .pod_taper = 1};
    f.nshape = net_get_shape(reader, rec, 2, 3, f.shape, err);
    if (!f.nshape ||
        !net_get_rates(reader, rec, 3, &f.tree.bandwidth, &f.tree.latency, &f.net.memory,
                       err) ||
        !net_key_bandwidth(reader, rec, "taper", &f.taper, err) ||
        !net_key_bandwidth(reader, rec, "pod_taper", &f.pod_taper, err) ||
        !read_node(&f, reader, rec, err) || !set_shape(&f, reader, rec, err))
        return NULL;
    f.net.routes.node = f.gpus;
    f.net.routes.in_switch = true;
    f.net.measured.node = f.gpus > 1 ? f.gpus : 1;
    if (!net_key_algorithm(reader, rec, &f.net, err))
        return NULL;
    if (!tree_make(&f.tree, reader, err))
        return NULL;
    set_levels(&f);
    set_routes(&f);
    return net_keep(&f.net, sizeof f, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    const struct fat_tree *f = of(net);
    for (uint32_t i = 0; i < f->nshape; i++) {
        rec_put_bytes(writer, i ? "x" : "\t", 1);
        rec_put_uint(writer, f->shape[i]);
    }
    rec_num_field(writer, f->tree.bandwidth);
    rec_num_field(writer, f->tree.latency);
    rec_num_field(writer, net->memory);
    if (f->taper != 1)
        rec_num_key(writer, "taper", f->taper);
    if (f->pod_taper != 1)
        rec_num_key(writer, "pod_taper", f->pod_taper);
    if (f->gpus > 1) {
        rec_uint_key(writer, "gpus", f->gpus);
        rec_uint_key(writer, "adapters", f->adapters);
        rec_num_key(writer, "inside", f->inside);
        rec_num_key(writer, "inside_latency", f->inside_latency);
    }
    net_write_algorithm(net, writer);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    const struct fat_tree *f = of(net);
    int len = f->nshape == 1 ? snprintf(text, NET_TEXT_MAX, "a %u-ary", f->shape[0])
                             : snprintf(text, NET_TEXT_MAX, "a ");
    for (uint32_t i = 0; f->nshape > 1 && i < f->nshape; i++)
        len += snprintf(text + len, (size_t)(NET_TEXT_MAX - len), "%s%u", i ? "x" : "",
                        f->shape[i]);
    snprintf(text + len, (size_t)(NET_TEXT_MAX - len), " fat tree of %u servers",
             net_servers(net));
}

/* ---- links and routes ------------------------------------------------------ */

static uint32_t
end_of(const struct fat_tree *f, uint32_t server)
{
    return server / (f->gpus / f->adapters);
}

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    const struct fat_tree *f = of(net);
    uint32_t servers = net_servers(net), tree = servers + f->inner, end = 0;
    uint32_t *side[2] = {&link->from, &link->to};
    if (i < f->base) {
        uint32_t at[2] = {i / 2, servers + i / 2 / f->gpus};
        *link =
            (struct net_link){at[i % 2], at[1 - i % 2], f->inside, f->inside_latency / 2};
        return;
    }
    tree_link(&f->tree, i - f->base, link, &end);
    for (int k = 0; k < 2; k++)
        if (*side[k] != UINT32_MAX)
            *side[k] += tree;
        else
            *side[k] = f->adapters < f->gpus ? servers + end / f->adapters : end;
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct fat_tree *f = of(net);
    bool near = f->gpus > 1 && from / f->gpus == to / f->gpus;
    bool shared = f->adapters < f->gpus;
    uint32_t n = 0;
    if (near || shared)
        link[n++] = 2 * from;
    if (!near)
        n += tree_route(&f->tree, end_of(f, from), end_of(f, to), f->base, link + n);
    if (near || shared)
        link[n++] = 2 * to + 1;
    return n;
}

static void
node_name(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    const struct fat_tree *f = of(net);
    char first[NET_NAME_MAX];
    node -= net_servers(net);
    if (node >= f->inner) {
        tree_name(&f->tree, node - f->inner, name);
        return;
    }
    /* the name of its first server without the last number */
    net_format_server(net, node * f->gpus, first);
    *strrchr(first, '.') = '\0';
    snprintf(name, NET_NODE_MAX, "node %s", first);
}

/*
 * Two lists of servers cost the same if pods, leaves, nodes and shared adapters can be
 * renamed so that one becomes the other, and so can the switches that the routes to the
 * servers go through. By d-mod-k these are numbered d mod width[s] for end d.
 */
enum { NUMBERS = 6 };

static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    const struct fat_tree *f = of(net);
    const struct tree *t = &f->tree;
    uint32_t names[NUMBERS] = {0}, servers = net_servers(net);
    for (uint32_t s = 0; s + 1 < t->n; s++) {
        names[s] = t->blocks[s];
        names[2 + s] = t->width[s + 1];
    }
    names[4] = f->gpus > 1 ? servers / f->gpus : 0;
    names[5] = f->adapters < f->gpus ? t->ends : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t end = end_of(f, server[i]), *to = numbers + (size_t)i * NUMBERS;
        memset(to, 0, NUMBERS * sizeof *to);
        for (uint32_t s = 0; s + 1 < t->n; s++) {
            to[s] = end / t->size[s];
            to[2 + s] = end % t->width[s + 1];
        }
        if (names[4])
            to[4] = server[i] / f->gpus;
        if (names[5])
            to[5] = end;
    }
    for (uint32_t k = 0; k < NUMBERS; k++)
        if (names[k] && !net_rename(numbers + k, n, NUMBERS, names[k], err))
            return false;
    return true;
}

const struct net_kind net_fat_tree = {.name = "fat-tree",
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
