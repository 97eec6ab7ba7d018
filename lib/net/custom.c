/*
 * A network of the user's own: servers, other nodes, and links between them.
 *
 *     cluster custom SERVERS MEMORY
 *     link    FROM TO BANDWIDTH LATENCY
 *     route   FROM TO VIA
 *
 * SERVERS are the names of the servers, in order. Every other name that a link has is
 * that of a node which only forwards. A link leads one way; with both=1 there is another
 * one back. All nodes forward, servers too. A message takes the route with the fewest
 * links; of these, one with the least latency; of these, the one whose last link that is
 * not common comes first in the stream. With ties=source equal ways are shared out among
 * the servers that send: of n links that lead to a node equally well, server i takes
 * number i mod n, so that leaves use all their spines. A route record gives another one:
 * VIA are the nodes between two servers, in order, and a link may be used twice.
 *
 * Routes are kept as a tree for each server that sends: the link by which a node is
 * reached. Routes that are given stand apart.
 */
#include "rampipe/net_kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NODES_MAX = 1 << 24,
    /* Entries of the trees, servers times nodes: half a gigabyte. */
    TREES_MAX = 1 << 27
};

/* A route that a record gives: via[first..first + n) are its links. */
struct given {
    uint32_t from, to, first, n, line;
};

struct custom {
    struct net net;
    struct rec_arena names;
    struct rec_map index; /* name -> node */
    const char **name;    /* per node */
    struct net_link *link;
    struct rec_map ends; /* pairs of nodes -> the link from one to the other */
    struct given *given; /* after close(): by from, then by to */
    uint32_t *via;
    uint32_t *into; /* per server and node: the link by which it is reached */
    uint32_t servers, nnodes, nlinks, ngiven;
    size_t name_room, link_room, given_room, via_room, nvia;
    bool by_source;   /* ties=source */
    const char *file; /* of the cluster record */
    uint64_t line;
};

#define CUSTOM(net) ((struct custom *)(net))

static const struct custom *
of(const struct net *net)
{
    return (const struct custom *)net;
}

static void
free_custom(struct net *net)
{
    struct custom *c = CUSTOM(net);
    rec_map_free(&c->index);
    rec_map_free(&c->ends);
    rec_arena_free(&c->names);
    free(c->name);
    free(c->link);
    free(c->given);
    free(c->via);
    free(c->into);
    free(c);
}

/* ---- records --------------------------------------------------------------- */

/* Adds a node, whose name is new. */
static bool
add_node(struct custom *c, struct rec_str name, struct rec_error *err)
{
    const char *kept;
    if (!rec_grow(&c->name, &c->name_room, c->nnodes + 1, sizeof *c->name, err) ||
        !(kept = rec_arena_copy(&c->names, name, err)) ||
        !rec_map_add(&c->index, (struct rec_str){kept, name.len}, c->nnodes, err))
        return false;
    c->name[c->nnodes++] = kept;
    return true;
}

static bool
check_name(const struct rec_reader *reader, struct rec_str name, struct rec_error *err)
{
    return (name.len > 0 && name.len < NET_NAME_MAX) ||
           rec_reader_fail(reader, err,
                           "the name of a node must have from 1 to %d bytes, got '%.*s'",
                           NET_NAME_MAX - 1, REC_SAID(name));
}

static bool
read_servers(struct custom *c, const struct rec_reader *reader, struct rec_str names,
             struct rec_error *err)
{
    struct rec_str one;
    while (rec_str_split(&names, ',', &one)) {
        if (!check_name(reader, one, err))
            return false;
        if (rec_map_get(&c->index, one) != REC_NONE)
            return rec_reader_fail(reader, err, "server '%.*s' is there twice",
                                   (int)one.len, one.ptr);
        if (!add_node(c, one, err))
            return false;
    }
    c->servers = c->nnodes;
    return true;
}

static bool
read_ties(struct custom *c, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct rec_str ties;
    if (!rec_find_key(rec, "ties", &ties))
        return true;
    c->by_source = rec_str_is(ties, "source");
    return c->by_source || rec_str_is(ties, "first") ||
           rec_reader_fail(reader, err, "ties must be first or source, got '%.*s'",
                           REC_SAID(ties));
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"cluster", "server"};
    struct custom *c = calloc(1, sizeof *c);
    if (!c) {
        rec_fail_memory(err);
        return NULL;
    }
    c->net.kind = &net_custom;
    c->line = rec_reader_line(reader);
    c->file = rec_arena_copy(&c->names, rec_str(rec_reader_file(reader)), err);
    if (!c->file || !read_servers(c, reader, rec->field[2], err) ||
        !rec_get_number(reader, rec, 3, &c->net.memory, err) ||
        !net_key_algorithm(reader, rec, &c->net, err) ||
        !read_ties(c, reader, rec, err)) {
        free_custom(&c->net);
        return NULL;
    }
    net_set_levels(&c->net, 1, names, &c->servers);
    return &c->net;
}

/* The node of that name. `may_add`: if there is none, it is added. */
static bool
find_node(struct custom *c, const struct rec_reader *reader, struct rec_str name,
          bool may_add, uint32_t *node, struct rec_error *err)
{
    *node = rec_map_get(&c->index, name);
    if (*node != REC_NONE)
        return true;
    if (!may_add)
        return rec_reader_fail(
            reader, err, "no link before this record has a node '%.*s'", REC_SAID(name));
    *node = c->nnodes;
    if (c->nnodes >= NODES_MAX)
        return rec_reader_fail(reader, err, "a cluster has up to %d nodes", NODES_MAX);
    return check_name(reader, name, err) && add_node(c, name, err);
}

static uint32_t
find_link(const struct custom *c, uint32_t from, uint32_t to)
{
    uint32_t ends[2] = {from, to};
    return rec_map_get(&c->ends, (struct rec_str){(const char *)ends, sizeof ends});
}

static bool
add_link(struct custom *c, const struct rec_reader *reader, const struct net_link *link,
         struct rec_error *err)
{
    uint32_t ends[2] = {link->from, link->to};
    const char *key;
    if (find_link(c, link->from, link->to) != REC_NONE)
        return rec_reader_fail(reader, err,
                               "there is a link from %s to %s already: several cables "
                               "are one link with the sum of their bandwidths, or lead "
                               "over a node each",
                               c->name[link->from], c->name[link->to]);
    key =
        rec_arena_copy(&c->names, (struct rec_str){(const char *)ends, sizeof ends}, err);
    if (!key ||
        !rec_map_add(&c->ends, (struct rec_str){key, sizeof ends}, c->nlinks, err) ||
        !rec_grow(&c->link, &c->link_room, c->nlinks + 1, sizeof *c->link, err))
        return false;
    c->link[c->nlinks++] = *link;
    return true;
}

static bool
take_link(struct custom *c, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct net_link link;
    struct rec_str from, to;
    uint64_t both = 0;
    if (!rec_get_id(reader, rec, 1, &from, err) ||
        !rec_get_id(reader, rec, 2, &to, err) ||
        !find_node(c, reader, from, true, &link.from, err) ||
        !find_node(c, reader, to, true, &link.to, err) ||
        !rec_get_number(reader, rec, 3, &link.capacity, err) ||
        !rec_get_number(reader, rec, 4, &link.latency, err) ||
        !rec_key_count(reader, rec, "both", &both, err))
        return false;
    if (!(link.capacity > 0))
        return rec_reader_fail(reader, err, "the bandwidth of a link must be > 0, got 0");
    if (link.from == link.to)
        return rec_reader_fail(reader, err, "a link joins two different nodes, got %s",
                               c->name[link.from]);
    if (both > 1)
        return rec_reader_fail(reader, err, "both must be 0 or 1, got %llu",
                               (unsigned long long)both);
    if (!add_link(c, reader, &link, err))
        return false;
    link = (struct net_link){link.to, link.from, link.capacity, link.latency};
    return !both || add_link(c, reader, &link, err);
}

/* Adds a link to the route that is being read. */
static bool
add_hop(struct custom *c, const struct rec_reader *reader, uint32_t from, uint32_t to,
        struct rec_error *err)
{
    uint32_t link = find_link(c, from, to);
    if (link == REC_NONE)
        return rec_reader_fail(reader, err,
                               "the route is no path: no link before this record leads "
                               "from %s to %s",
                               c->name[from], c->name[to]);
    if (!rec_grow(&c->via, &c->via_room, c->nvia + 1, sizeof *c->via, err))
        return false;
    c->via[c->nvia++] = link;
    return true;
}

static bool
take_route(struct custom *c, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct given given = {.first = (uint32_t)c->nvia,
                          .line = (uint32_t)rec_reader_line(reader)};
    struct rec_str via = rec->field[3], one;
    uint32_t at, next;
    if (!find_node(c, reader, rec->field[1], false, &given.from, err) ||
        !find_node(c, reader, rec->field[2], false, &given.to, err))
        return false;
    if (given.from >= c->servers || given.to >= c->servers || given.from == given.to)
        return rec_reader_fail(
            reader, err, "a route leads from a server to another one, got %s and %s",
            c->name[given.from], c->name[given.to]);
    for (at = given.from; rec_str_split(&via, ',', &one); at = next)
        if (!find_node(c, reader, one, false, &next, err) ||
            !add_hop(c, reader, at, next, err))
            return false;
    if (!add_hop(c, reader, at, given.to, err) ||
        !rec_grow(&c->given, &c->given_room, c->ngiven + 1, sizeof *c->given, err))
        return false;
    given.n = (uint32_t)c->nvia - given.first;
    c->given[c->ngiven++] = given;
    return true;
}

static bool
add(struct net *net, const struct rec_reader *reader, const struct rec *rec,
    struct rec_error *err)
{
    return rec->type == REC_LINK ? take_link(CUSTOM(net), reader, rec, err)
                                 : take_route(CUSTOM(net), reader, rec, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    net_servers_field(net, NULL, of(net)->servers, writer);
    rec_num_field(writer, net->memory);
    if (of(net)->by_source)
        rec_text_key(writer, "ties", "source");
    net_write_algorithm(net, writer);
}

static void
write_parts(const struct net *net, struct rec_writer *writer)
{
    const struct custom *c = of(net);
    for (uint32_t i = 0; i < c->nlinks; i++) {
        rec_begin(writer, "link");
        rec_text_field(writer, c->name[c->link[i].from]);
        rec_text_field(writer, c->name[c->link[i].to]);
        rec_num_field(writer, c->link[i].capacity);
        rec_num_field(writer, c->link[i].latency);
        rec_end(writer);
    }
    for (uint32_t i = 0; i < c->ngiven; i++) {
        const struct given *g = &c->given[i];
        rec_begin(writer, "route");
        rec_text_field(writer, c->name[g->from]);
        rec_text_field(writer, c->name[g->to]);
        for (uint32_t k = 0; k + 1 < g->n; k++) {
            const char *name = c->name[c->link[c->via[g->first + k]].to];
            rec_put_bytes(writer, k ? "," : "\t", 1);
            rec_put_bytes(writer, name, strlen(name));
        }
        rec_end(writer);
    }
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    snprintf(text, NET_TEXT_MAX, "a custom cluster of %u servers", of(net)->servers);
}

static const char *
server_name(const struct net *net, uint32_t server)
{
    return of(net)->name[server];
}

static bool
find_server(const struct net *net, struct rec_str name, uint32_t *server)
{
    *server = rec_map_get(&of(net)->index, name);
    return *server < of(net)->servers;
}

/* ---- routes ---------------------------------------------------------------- */

/* Scratch for the trees of all servers. */
struct search {
    uint32_t *out, *start; /* links out[start[i]..start[i + 1]) leave node i */
    uint32_t *queue;       /* nodes in order of hops */
    uint32_t *hops;
    double *latency;
    uint32_t *equal, *seen; /* links that lead to a node equally well */
};

static bool
index_links(const struct custom *c, struct search *s, struct rec_error *err)
{
    size_t nodes = (size_t)c->nnodes + 2;
    s->start = calloc(nodes, sizeof *s->start);
    s->out = malloc(((size_t)c->nlinks + 1) * sizeof *s->out);
    s->queue = malloc(nodes * sizeof *s->queue);
    s->hops = malloc(nodes * sizeof *s->hops);
    s->latency = malloc(nodes * sizeof *s->latency);
    s->equal = malloc(nodes * sizeof *s->equal);
    s->seen = malloc(nodes * sizeof *s->seen);
    if (!s->equal || !s->seen || !s->start || !s->out || !s->queue || !s->hops ||
        !s->latency)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < c->nlinks; i++)
        s->start[c->link[i].from + 2]++;
    for (uint32_t i = 1; i < c->nnodes + 2; i++)
        s->start[i] += s->start[i - 1];
    for (uint32_t i = 0; i < c->nlinks; i++)
        s->out[s->start[c->link[i].from + 1]++] = i;
    return true;
}

static void
free_search(struct search *s)
{
    free(s->out);
    free(s->start);
    free(s->queue);
    free(s->hops);
    free(s->latency);
    free(s->equal);
    free(s->seen);
}

/* Breadth first from a server. All nodes of n hops come before those of n + 1, so the
 * latency of a node is final before it is used; of equal ones the first link stays. */
static void
search_from(const struct custom *c, struct search *s, uint32_t from, uint32_t *into)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nnodes; i++) {
        into[i] = REC_NONE;
        s->hops[i] = UINT32_MAX;
    }
    s->hops[from] = 0;
    s->latency[from] = 0;
    s->queue[n++] = from;
    for (uint32_t at = 0; at < n; at++) {
        uint32_t node = s->queue[at];
        for (uint32_t k = s->start[node]; k < s->start[node + 1]; k++) {
            const struct net_link *link = &c->link[s->out[k]];
            double latency = s->latency[node] + link->latency;
            uint32_t to = link->to, hops = s->hops[node] + 1;
            if (hops > s->hops[to] ||
                (hops == s->hops[to] &&
                 (latency > s->latency[to] ||
                  (latency == s->latency[to] && s->out[k] > into[to]))))
                continue;
            if (s->hops[to] == UINT32_MAX)
                s->queue[n++] = to;
            s->hops[to] = hops;
            s->latency[to] = latency;
            into[to] = s->out[k];
        }
    }
}

/* Chooses among equal links by the number of the server that sends: counts them, and then
 * takes them in the same order again. */
static void
share_out(const struct custom *c, struct search *s, uint32_t from, uint32_t *into)
{
    memset(s->equal, 0, c->nnodes * sizeof *s->equal);
    memset(s->seen, 0, c->nnodes * sizeof *s->seen);
    for (int taking = 0; taking < 2; taking++)
        for (uint32_t i = 0; i < c->nlinks; i++) {
            const struct net_link *link = &c->link[i];
            uint32_t to = link->to;
            if (s->hops[link->from] == UINT32_MAX ||
                s->hops[link->from] + 1 != s->hops[to] ||
                s->latency[link->from] + link->latency != s->latency[to])
                continue;
            if (!taking)
                s->equal[to]++;
            else if (s->seen[to]++ == from % s->equal[to])
                into[to] = i;
        }
}

static int
by_ends(const void *a, const void *b)
{
    const struct given *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static const struct given *
find_given(const struct custom *c, uint32_t from, uint32_t to)
{
    struct given key = {.from = from, .to = to};
    return c->ngiven ? bsearch(&key, c->given, c->ngiven, sizeof key, by_ends) : NULL;
}

/* Takes what the bounds need from a route. */
static void
note_route(struct custom *c, double latency, double bandwidth, uint32_t hops)
{
    struct net_routes *r = &c->net.routes;
    r->latency = fmin(r->latency, latency);
    r->bandwidth = fmax(r->bandwidth, bandwidth);
    r->longest = hops > r->longest ? hops : r->longest;
}

static bool
check_given(struct custom *c, struct rec_error *err)
{
    if (c->ngiven)
        qsort(c->given, c->ngiven, sizeof *c->given, by_ends);
    for (uint32_t i = 0; i < c->ngiven; i++) {
        const struct given *g = &c->given[i];
        double latency = 0, bandwidth = INFINITY;
        if (i > 0 && by_ends(g - 1, g) == 0)
            return rec_fail_at(err, c->file, g->line > g[-1].line ? g->line : g[-1].line,
                               "there is a route from %s to %s already", c->name[g->from],
                               c->name[g->to]);
        for (uint32_t k = 0; k < g->n; k++) {
            const struct net_link *link = &c->link[c->via[g->first + k]];
            latency += link->latency;
            bandwidth = fmin(bandwidth, link->capacity);
        }
        note_route(c, latency, bandwidth, g->n);
    }
    return true;
}

static bool
search_all(struct custom *c, struct search *s, struct rec_error *err)
{
    double best = 0;
    for (uint32_t i = 0; i < c->nlinks; i++)
        best = fmax(best, c->link[i].capacity);
    for (uint32_t from = 0; from < c->servers; from++) {
        uint32_t *into = c->into + (size_t)from * c->nnodes;
        search_from(c, s, from, into);
        if (c->by_source)
            share_out(c, s, from, into);
        for (uint32_t to = 0; to < c->servers; to++) {
            if (to == from || find_given(c, from, to))
                continue;
            if (s->hops[to] == UINT32_MAX)
                return rec_fail_at(err, c->file, c->line,
                                   "there is no way from server %s to server %s over the "
                                   "links of this cluster",
                                   c->name[from], c->name[to]);
            note_route(c, s->latency[to], best, s->hops[to]);
        }
    }
    return true;
}

static void
sum_leaving(struct custom *c, const struct search *s)
{
    for (uint32_t i = 0; i < c->servers; i++) {
        double sum = 0;
        for (uint32_t k = s->start[i]; k < s->start[i + 1]; k++)
            sum += c->link[s->out[k]].capacity;
        c->net.routes.leaving = fmax(c->net.routes.leaving, sum);
    }
}

static bool
close_custom(struct net *net, struct rec_error *err)
{
    struct custom *c = CUSTOM(net);
    struct net_routes *r = &net->routes;
    struct search s = {.out = NULL};
    bool ok;
    if ((double)c->servers * c->nnodes > TREES_MAX)
        return rec_fail_at(err, c->file, c->line,
                           "a custom cluster has up to %d servers times nodes, got %u "
                           "servers and %u nodes: are its links those of another kind?",
                           TREES_MAX, c->servers, c->nnodes);
    r->nodes = c->nnodes;
    r->links = c->nlinks;
    r->latency = INFINITY;
    c->into = malloc(((size_t)c->servers * c->nnodes + 1) * sizeof *c->into);
    ok = (c->into || rec_fail_memory(err)) && index_links(c, &s, err) &&
         check_given(c, err) && search_all(c, &s, err);
    if (ok)
        sum_leaving(c, &s);
    if (c->servers == 1) { /* nothing is sent; but the bounds divide by these */
        r->latency = 0;
        r->bandwidth = r->leaving = 1;
    }
    free_search(&s);
    return ok;
}

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    *link = of(net)->link[i];
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct custom *c = of(net);
    const struct given *given = find_given(c, from, to);
    const uint32_t *into = c->into + (size_t)from * c->nnodes;
    uint32_t n = 0;
    if (given) {
        memcpy(link, c->via + given->first, given->n * sizeof *link);
        return given->n;
    }
    for (; to != from; to = c->link[into[to]].from)
        link[n++] = into[to];
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t other = link[i];
        link[i] = link[n - 1 - i];
        link[n - 1 - i] = other;
    }
    return n;
}

static void
node_name(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    strcpy(name, of(net)->name[node]);
}

/* Nothing is known of which servers are alike, so only the same ones cost the same. */
static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    (void)net, (void)err;
    memcpy(numbers, server, n * sizeof *numbers);
    return true;
}

const struct net_kind net_custom = {.name = "custom",
                                    .mark = '.',
                                    .read = read,
                                    .write = write,
                                    .free = free_custom,
                                    .describe = describe,
                                    .numbers = 1,
                                    .geometry = geometry,
                                    .sync = GRAPH_SYNC_BY_UNIT,
                                    .alone = net_alone_by_links,
                                    .link = get_link,
                                    .route = route,
                                    .node_name = node_name,
                                    .add = add,
                                    .close = close_custom,
                                    .write_parts = write_parts,
                                    .server_name = server_name,
                                    .find_server = find_server};
