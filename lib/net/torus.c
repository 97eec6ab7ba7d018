/*
 * A torus of two or three dimensions, as of TPUs: each server has a link to the next one
 * and to the one before in each dimension, and the last is next to the first.
 *
 *     cluster torus SHAPE BANDWIDTH LATENCY MEMORY
 *
 * SHAPE is XxY or XxYxZ. BANDWIDTH is of a link in each direction; bandwidth_y= and
 * bandwidth_z= are of those along the second and third dimension. A message goes along
 * one dimension after the other, in the order of SHAPE, the shorter way around; of two
 * equally long ways forward. A server is x.y.z, and the servers of a row (x.y) are
 * numbered one after another.
 *
 * A dimension of one server has no links, one of two has one link from each server.
 * Links are numbered by dimension, the last first; there by server, forward first.
 */
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIMENSIONS = 3 };

struct torus {
    struct net net;
    uint32_t n;                 /* dimensions */
    uint32_t count[DIMENSIONS]; /* as in SHAPE */
    double bandwidth[DIMENSIONS], latency;
    uint32_t stride[DIMENSIONS]; /* from a server to the next one */
    uint32_t ways[DIMENSIONS];   /* links of a server: 0, 1 or 2 */
    uint32_t first[DIMENSIONS];  /* link of the dimension */
};

static const struct torus *
of(const struct net *net)
{
    return (const struct torus *)net;
}

static void
set_routes(struct torus *t)
{
    struct net_routes *r = &t->net.routes;
    uint32_t servers = net_servers(&t->net), stride = 1;
    r->nodes = servers;
    r->latency = t->latency;
    for (uint32_t d = t->n; d-- > 0;) {
        t->stride[d] = stride;
        stride *= t->count[d];
        t->ways[d] = t->count[d] > 2 ? 2 : t->count[d] - 1;
        t->first[d] = r->links;
        r->links += t->ways[d] * servers;
        r->longest += t->count[d] / 2;
        r->leaving += t->ways[d] * t->bandwidth[d];
        if (t->ways[d])
            r->bandwidth = fmax(r->bandwidth, t->bandwidth[d]);
    }
    if (servers == 1) /* nothing is sent; but the bounds divide by these */
        r->bandwidth = r->leaving = t->bandwidth[0];
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const keys[] = {NULL, "bandwidth_y", "bandwidth_z"};
    static const char *const flat[] = {"torus", "row", "server"};
    static const char *const deep[] = {"torus", "plane", "row", "server"};
    struct torus t = {.net.kind = &net_torus};
    struct rec_str key;
    t.n = net_get_shape(reader, rec, 2, DIMENSIONS, t.count, err);
    if (!t.n ||
        !net_get_rates(reader, rec, 3, &t.bandwidth[0], &t.latency, &t.net.memory, err))
        return NULL;
    if (t.n < 2) {
        rec_reader_fail(reader, err, "SHAPE of a torus must be XxY or XxYxZ, got %u",
                        t.count[0]);
        return NULL;
    }
    for (uint32_t d = 1; d < DIMENSIONS; d++) {
        t.bandwidth[d] = t.bandwidth[0];
        if (!net_key_bandwidth(reader, rec, keys[d], &t.bandwidth[d], err))
            return NULL;
        if (d >= t.n && rec_find_key(rec, keys[d], &key)) {
            rec_reader_fail(reader, err, "%s is for a torus of three dimensions",
                            keys[d]);
            return NULL;
        }
    }
    if (!net_key_algorithm(reader, rec, &t.net, err))
        return NULL;
    net_set_levels(&t.net, t.n, t.n == 2 ? flat : deep, t.count);
    set_routes(&t);
    return net_keep(&t.net, sizeof t, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    static const char *const keys[] = {NULL, "bandwidth_y", "bandwidth_z"};
    const struct torus *t = of(net);
    for (uint32_t d = 0; d < t->n; d++) {
        rec_put_bytes(writer, d ? "x" : "\t", 1);
        rec_put_uint(writer, t->count[d]);
    }
    rec_num_field(writer, t->bandwidth[0]);
    rec_num_field(writer, t->latency);
    rec_num_field(writer, net->memory);
    for (uint32_t d = 1; d < t->n; d++)
        if (t->bandwidth[d] != t->bandwidth[0])
            rec_num_key(writer, keys[d], t->bandwidth[d]);
    net_write_algorithm(net, writer);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    const struct torus *t = of(net);
    int len = snprintf(text, NET_TEXT_MAX, "a ");
    for (uint32_t d = 0; d < t->n; d++)
        len += snprintf(text + len, (size_t)(NET_TEXT_MAX - len), "%s%u", d ? "x" : "",
                        t->count[d]);
    snprintf(text + len, (size_t)(NET_TEXT_MAX - len), " torus");
}

/* ---- links and routes ------------------------------------------------------ */

static uint32_t
coordinate(const struct torus *t, uint32_t server, uint32_t d)
{
    return server / t->stride[d] % t->count[d];
}

/* The neighbour of a server along a dimension. */
static uint32_t
next_of(const struct torus *t, uint32_t server, uint32_t d, bool back)
{
    uint32_t at = coordinate(t, server, d), n = t->count[d];
    uint32_t to = back ? (at ? at - 1 : n - 1) : (at + 1 < n ? at + 1 : 0);
    return server - at * t->stride[d] + to * t->stride[d];
}

static void
get_link(const struct net *net, uint32_t i, struct net_link *link)
{
    const struct torus *t = of(net);
    uint32_t d = 0, server;
    while (i < t->first[d] || t->ways[d] == 0)
        d++;
    server = (i - t->first[d]) / t->ways[d];
    *link = (struct net_link){server,
                              next_of(t, server, d, (i - t->first[d]) % t->ways[d] == 1),
                              t->bandwidth[d], t->latency};
}

static uint32_t
route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct torus *t = of(net);
    uint32_t n = 0;
    for (uint32_t d = 0; d < t->n; d++) {
        uint32_t size = t->count[d];
        uint32_t ahead = (coordinate(t, to, d) + size - coordinate(t, from, d)) % size;
        bool back = ahead > size - ahead;
        for (uint32_t hops = back ? size - ahead : ahead; hops > 0; hops--) {
            link[n++] = t->first[d] + from * t->ways[d] + back;
            from = next_of(t, from, d, back);
        }
    }
    return n;
}

/* All servers are alike, and routes depend only on how two servers lie to each other: so
 * servers are numbered from the first one on. */
static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    const struct torus *t = of(net);
    (void)err;
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = 0;
        for (uint32_t d = 0; d < t->n; d++) {
            uint32_t size = t->count[d], at = coordinate(t, server[i], d);
            numbers[i] += (at + size - coordinate(t, server[0], d)) % size * t->stride[d];
        }
    }
    return true;
}

/* ---- algorithm=torus --------------------------------------------------------- */

/*
 * An all-reduce along one dimension after the other: a reduce-scatter along x, then y,
 * then z, and all-gathers back. So that no link rests, the buffer is divided: of D
 * dimensions in which the servers differ, part i begins with dimension i, and half of
 * each part goes around forward, the other half back. In step k the servers of each row
 * along a dimension of m servers are a ring on which P bytes are left of a part:
 *
 *     m - 1 rounds, in which each server sends P / (2 m) to both neighbours
 *
 * after which P / m is left of it. The steps of all parts go together. On a torus of
 * equal sides the links of each server carry 2 (n - 1) / n S / (2 D) in all (Mikami,
 * Suganuma, Tanaka and Kageyama, "Massively distributed SGD: ImageNet/ResNet-50 training
 * in a flash", 2018, for two dimensions).
 */
struct box {
    uint32_t d; /* the dimension */
    uint32_t first, n;
};

/* Along one dimension the servers must be n neighbours, perhaps around the end. Returns
 * n; 0: they are not, or memory ends, and then *ok is false. */
static uint32_t
find_side(const struct torus *t, const struct net_exchange *e, struct box *side, bool *ok)
{
    uint32_t size = t->count[side->d], begins = 0;
    bool *has = calloc((size_t)size + 1, sizeof *has);
    *ok = has != NULL;
    for (uint32_t i = 0; has && i < e->n; i++)
        has[coordinate(t, e->server[i], side->d)] = true;
    side->first = 0;
    for (uint32_t at = 0; has && at < size; at++) {
        side->n += has[at];
        if (has[at] && !has[at ? at - 1 : size - 1]) {
            side->first = at;
            begins++;
        }
    }
    free(has);
    return begins > 1 ? 0 : side->n;
}

/* Finds the sides of the box that the servers are, of those dimensions in which they
 * differ. Returns how many there are; 0: *err. */
static uint32_t
find_box(const struct torus *t, const struct net_exchange *e, struct box *side,
         struct rec_error *err)
{
    uint64_t all = 1;
    uint32_t n = 0;
    bool ok = true;
    for (uint32_t d = 0; ok && d < t->n; d++) {
        side[n] = (struct box){.d = d};
        all *= find_side(t, e, &side[n], &ok);
        n += side[n].n > 1;
    }
    if (!ok)
        return rec_fail_memory(err);
    if (all == e->n)
        return n;
    rec_fail(err, REC_DATA,
             "with algorithm=torus the %u servers of an exchange must be a box of the "
             "torus, as 2x2 next to each other: these are none",
             e->n);
    return 0;
}

/* The neighbours along side s of all servers of the box send to each other: a ring on
 * each row. `at` runs over the servers of the box. */
static void
send_rings(const struct torus *t, const struct net_exchange *e, const struct box *s,
           double share, struct net_maker *maker)
{
    uint32_t size = t->count[s->d], stride = t->stride[s->d];
    for (uint32_t i = 0; i < e->n; i++) {
        uint32_t at = coordinate(t, e->server[i], s->d);
        uint32_t step = (at + size - s->first) % size + 1; /* of the next one */
        uint32_t to = step < s->n ? (at + 1) % size : s->first;
        uint32_t next = e->server[i] - at * stride + to * stride;
        rounds_send(maker, e->server[i], next, share);
        rounds_send(maker, next, e->server[i], share);
    }
}

/* Step k: part i goes along side i + k. */
static void
make_step(const struct torus *t, const struct net_exchange *e, const struct box *side,
          uint32_t n, uint32_t k, double bytes, struct net_maker *maker)
{
    double each[DIMENSIONS], most = 0;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct box *s = &side[(i + k) % n];
        each[i] = bytes / n / 2;
        for (uint32_t j = 0; j < k; j++)
            each[i] /= side[(i + j) % n].n;
        each[i] *= (s->n - 1.0) / s->n;
        most = fmax(most, each[i]);
        longest = s->n > longest ? s->n : longest;
    }
    for (uint32_t i = 0; i < n; i++)
        send_rings(t, e, &side[(i + k) % n], most > 0 ? each[i] / most : 1, maker);
    rounds_end(maker, 1, longest - 1, most);
}

static bool
by_dimension(const struct net *net, const struct net_exchange *e, bool half, double bytes,
             struct net_maker *maker)
{
    const struct torus *t = of(net);
    struct box side[DIMENSIONS];
    uint32_t n = find_box(t, e, side, maker->err);
    for (uint32_t k = 0; k < n; k++)
        make_step(t, e, side, n, k, bytes, maker);
    for (uint32_t k = n; !half && k-- > 0;)
        make_step(t, e, side, n, k, bytes, maker);
    maker->ok = maker->ok && n > 0;
    return maker->ok;
}

const struct net_kind net_torus = {.name = "torus",
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
                                   .by_dimension = by_dimension};
