/*
 * Kinds of clusters with links and routes: every route is a path, links are counted,
 * and exchanges take the time that closed forms say.
 */
#include "rampipe/net.h"
#include "unit.h"

static struct rec_error err;

/* A mesh of four servers in a row with a switch above them, and a route that is given. */
static const char mesh[] = "cluster\tcustom\ta,b,c,d\t8e10\n"
                           "link\ta\tb\t4\t1\tboth=1\n"
                           "link\tb\tc\t2\t1\tboth=1\n"
                           "link\tc\td\t4\t1\tboth=1\n"
                           "link\ta\tup\t1\t1\tboth=1\n"
                           "link\td\tup\t1\t0.5\tboth=1\n"
                           "route\ta\td\tb,c\n";

/* Two leaves of two servers, below two spines. */
static const char leaves[] = "cluster\tcustom\ta,b,c,d\t8e10\tties=source\n"
                             "link\ta\tx\t8\t0.5\tboth=1\nlink\tb\tx\t8\t0.5\tboth=1\n"
                             "link\tc\ty\t8\t0.5\tboth=1\nlink\td\ty\t8\t0.5\tboth=1\n"
                             "link\tx\ts\t8\t0.5\tboth=1\nlink\tx\tt\t8\t0.5\tboth=1\n"
                             "link\ty\ts\t8\t0.5\tboth=1\nlink\ty\tt\t8\t0.5\tboth=1\n";

static struct net *
read_text(const char *text)
{
    struct rec_reader *reader = rec_reader_open_text("test", rec_str(text), &err);
    struct net_reading reading = {NULL, false};
    struct rec rec;
    bool ok = reader != NULL;
    while (ok && rec_next(reader, &rec, &err) > 0)
        ok = net_reading_take(&reading, reader, &rec, NULL, &err);
    ok = ok && net_reading_end(&reading, &err);
    rec_reader_close(reader);
    if (ok)
        return reading.net;
    net_free(reading.net);
    return NULL;
}

static struct net *
cluster(const char *text)
{
    struct net *net = strchr(text, '\t') ? read_text(text) : net_parse(text, &err);
    if (!net)
        fail_msg("%s: %s", text, err.text);
    return net;
}

static const struct {
    const char *text;
    uint32_t servers, links, nodes, longest;
} rows[] = {
    /* 2 a server */
    {"island:8,3e11,2e-6,8e10", 8, 16, 9, 2},
    /* a K-ary fat tree has K^3/4 hosts, as many cables on each of its three levels, and
     * 5 K^2/4 switches */
    {"fat-tree:4,8,1,1", 16, 96, 36, 6},
    {"fat-tree:8,8,1,1", 128, 768, 208, 6},
    {"fat-tree:16,8,1,1", 1024, 6144, 1344, 6},
    /* 6 leaves of 8 hosts and 4 links up: 48 + 24 cables; 6 leaves, 4 spines */
    {"fat-tree:6x8,8,1,1,taper=2", 48, 144, 58, 4},
    {"fat-tree:1x1x8,8,1,1", 8, 16, 9, 2},
    /* 2 pods of 3 leaves of 4 nodes of 8 with 4 adapters: 192 servers, 384 links inside,
     * 24 islands. 96 adapters; a leaf has 16 down, 8 up: 48; 8 switches a pod with 3 up:
     * 48. Switches 6 + 16 + 24. */
    {"fat-tree:2x3x4,8,1,1,taper=2,gpus=8,adapters=4,inside=16", 192, 384 + 2 * 192,
     192 + 24 + 46, 8},
    {"fat-tree:3x4,8,1,1,gpus=2,inside=16", 24, 48 + 2 * (24 + 24), 24 + 12 + 3 + 8, 4},
    /* 3 groups of 4 nodes of 2: 48 links inside, 12 islands; in each of 2 rails 12 cables
     * to leaves and 3 * 2 to 2 spines; 5 switches a rail */
    {"rail:3,4,2,8,1,16,1,taper=2", 24, 48 + 2 * 2 * 18, 24 + 12 + 2 * 5, 6},
    {"rail:1,4,2,8,1,16,1", 8, 16 + 2 * 8, 8 + 4 + 2, 4},
    {"rail:2,4,1,8,1,16,1", 8, 2 * 16, 8 + 2 + 4, 6},
    {"torus:4x4,8,1,1", 16, 64, 16, 4},
    {"torus:3x5,8,1,1", 15, 60, 15, 3},
    {"torus:4x4x4,8,1,1", 64, 384, 64, 6},
    /* a dimension of 2 has one link from each server, one of 1 none */
    {"torus:2x5x1,8,1,1", 10, 30, 10, 3},
    /* 5 groups of 2 routers of 2 hosts, each router with 2 global links: each group has
     * one to each other. 40 + 10 * 1 + 5 * 4 */
    {"dragonfly:5,2,2,8,1,1", 20, 70, 30, 5},
    /* 3 groups of 4 routers with 1 global link: two to each other group */
    {"dragonfly:3,4,2,8,1,1,links=1", 24, 48 + 12 * 3 + 3 * 4, 36, 5},
    {"dragonfly:1,3,2,8,1,1", 6, 12 + 6, 9, 5},
    {mesh, 4, 10, 5, 3},
    {leaves, 4, 16, 8, 4},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Equal for lists of routes that have the same links, in any order. */
static uint64_t
sum_route(const uint32_t *link, uint32_t n, uint64_t more)
{
    for (uint32_t i = 0; i < n; i++)
        more += rec_mix(link[i]);
    return rec_mix(more);
}

/* The routes of a fan, written out. The links in which they differ are alike. */
static uint64_t
sum_fan(const struct net *net, const struct net_fan *fan, uint32_t *routes)
{
    struct net_link first, one;
    uint64_t sum = 0;
    *routes += fan->ntips == 0;
    if (fan->ntips == 0)
        return sum_route(fan->route, fan->n, 0);
    for (uint32_t i = 0; i < fan->ntips; i++) {
        net_link(net, fan->tip[0], &first);
        net_link(net, fan->tip[i], &one);
        assert_true(one.capacity == first.capacity && one.latency == first.latency);
        if (i >= fan->skip && i < fan->skip + fan->nskip)
            continue;
        sum += sum_route(fan->shared, fan->n - 1, rec_mix(fan->tip[i]));
        ++*routes;
    }
    return sum;
}

/* Fans are the routes from each server to each other one, of all servers and of a few. */
static void
test_fans(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        struct net *net = cluster(rows[r].text);
        uint32_t n = net_servers(net), *server = calloc(n, sizeof *server), m, hops;
        uint32_t *link = calloc(net_longest_route(net) + 1, sizeof *link);
        for (uint32_t step = 1; step < 6; step += 2) {
            struct rec_error error;
            struct net_each *each;
            struct net_fan fan;
            uint64_t ours = 0, sum = 0;
            uint32_t routes = m = 0;
            for (uint32_t i = 0; i < n; i += step) /* backwards */
                server[m++] = n - 1 - i;
            assert_non_null(each = net_each_new(net, server, m, &error));
            while (net_each_next(each, &fan))
                ours += sum_fan(net, &fan, &routes);
            assert_int_equal(routes, m * (m - 1));
            for (uint32_t i = 0; i < m; i++)
                for (uint32_t j = 0; j < m; j++)
                    if (i != j) {
                        hops = net_route(net, server[i], server[j], link);
                        sum += sum_route(link, hops, 0);
                    }
            if (ours != sum)
                fail_msg("%s, every %u: the routes differ", rows[r].text, step);
            net_each_free(each);
        }
        free(link);
        free(server);
        net_free(net);
    }
}

/* Each route is a path from one server to the other over links that there are, without a
 * link twice, and no longer than the longest; links join two different nodes, and no two
 * have both ends in common. */
static void
test_paths(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        struct net *net = cluster(rows[r].text);
        uint32_t n = net_servers(net), *link = calloc(net_longest_route(net) + 1, 4);
        bool *seen = calloc(net_links(net), 1);
        uint32_t longest = 0;
        struct net_link one;
        if (n != rows[r].servers || net_links(net) != rows[r].links ||
            net_nodes(net) != rows[r].nodes)
            fail_msg("%s: %u servers, %u links, %u nodes", rows[r].text, n,
                     net_links(net), net_nodes(net));
        assert_int_equal(net_longest_route(net), rows[r].longest);
        for (uint32_t i = 0; i < net_links(net); i++) {
            net_link(net, i, &one);
            assert_true(one.from < net_nodes(net) && one.to < net_nodes(net));
            assert_true(one.from != one.to && one.capacity > 0);
        }
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                uint32_t hops = net_route(net, i, j, link), at = i;
                for (uint32_t k = 0; k < hops; k++) {
                    net_link(net, link[k], &one);
                    if (one.from != at || seen[link[k]])
                        fail_msg("%s: %u to %u, link %u", rows[r].text, i, j, k);
                    seen[link[k]] = true;
                    at = one.to;
                }
                for (uint32_t k = 0; k < hops; k++)
                    seen[link[k]] = false;
                if (at != j || (i != j) != (hops > 0))
                    fail_msg("%s: %u to %u ends at %u", rows[r].text, i, j, at);
                longest = hops > longest ? hops : longest;
            }
        assert_true(longest <= rows[r].longest);
        free(link);
        free(seen);
        net_free(net);
    }
}

/* Servers 0 to n - 1 of a cluster, and an exchange of S bytes from each to each other. */
static double
alone(const struct net *net, enum graph_exchange_kind kind, const uint32_t *server,
      uint32_t n, double bytes)
{
    uint32_t all[300];
    double seconds, sum = kind == GRAPH_MESSAGE ? bytes : bytes * n * (n - 1.0);
    struct net_exchange e = {kind, server, n, sum, sum};
    for (uint32_t i = 0; !server && i < n; i++)
        all[i] = i;
    if (!server)
        e.server = all;
    assert_true(net_alone(net, &e, 1, &seconds, &err));
    return seconds;
}

static void
all_to_all(const char *text, double want)
{
    struct net *net = cluster(text);
    double got = alone(net, GRAPH_COLLECTIVE, NULL, net_servers(net), 24);
    if (fabs(got / want - 1) > 1e-12)
        fail_msg("%s: %.17g, expected %.17g", text, got, want);
    net_free(net);
}

/*
 * All n servers send S = 24 bytes to each other one, over links of 8 bytes/s without
 * latency. The closed forms of the reference (parallel.md, 6.4, 6.5):
 *
 *   fat tree, full bandwidth: a host link carries (n - 1) S, no link carries more; so it
 *     does on the K-ary tree, as d-mod-k spreads destinations evenly. (Golden
 *     fluid/fat4_alltoall: 16 hosts, 64 bytes, 16 bytes/s: 15 * 64 / 16 = 60 s.)
 *   taper 2: a leaf of 8 of 48 hosts sends 8 * 40 S over 4 links up.
 *   k x k torus, k even: each of the loaded links carries k (k/2) (k/2 + 1) / 2 messages:
 *     4 * 2 * 3 / 2 = 12 for k = 4; for k = 6: 6 * 3 * 4 / 2 = 36. (Golden
 *     fluid/torus4x4_alltoall: 12 * 24 / 8 = 36 s.)
 *   torus of 3 x 5: along a ring of odd k a link carries k' (k^2 - 1) / 8 messages, k'
 *     servers beside it: 5 * 1 = 5 along 3, 3 * 3 = 9 along 5.
 *   rail of 2 groups of 4 nodes of 2, taper 2: a leaf has 2 links up. Each of its 4 nodes
 *     sends through it what 2 servers send to the 4 of its number in the other group:
 *     4 * 2 * 4 = 32 messages over 2 links, 16 each, more than a host link with 2 * 7.
 *   fat tree of 2 leaves of 2 nodes with 2 servers and one adapter: an adapter carries
 *     2 * 6 messages out.
 *   two leaves of two servers below two spines, ties=source: each spine carries what one
 *     server of a leaf sends to the two others, 2 messages; a server's link has 3. With
 *     ties=first all 4 go over one spine.
 *   dragonfly of 5 groups of 2 routers of 2 hosts, one link to each other group: 4 * 4
 *     messages on a global link (which has half of the bandwidth, or a host link with 19
 *     would count). A link inside a group: 2 * 2 messages to the other
 *     router, 2 * 8 to two groups over it, and what 2 groups send over the first router
 *     to the second's hosts, 2 * 4 * 2: 36.
 */
static void
test_all_to_all(void **state)
{
    char first[sizeof leaves], *ties;
    (void)state;
    all_to_all("fat-tree:4,8,0,1", 15 * 24 / 8.0);
    all_to_all("fat-tree:8,8,0,1", 127 * 24 / 8.0);
    all_to_all("fat-tree:4x4x4,8,0,1", 63 * 24 / 8.0);
    all_to_all("fat-tree:6x8,8,0,1,taper=2", 8 * 40 / 4 * 24 / 8.0);
    all_to_all("torus:4x4,8,0,1", 12 * 24 / 8.0);
    all_to_all("torus:6x6,8,0,1", 36 * 24 / 8.0);
    all_to_all("torus:3x5,8,0,1", 9 * 24 / 8.0);
    all_to_all("torus:3x5,8,0,1,bandwidth_y=80", 5 * 24 / 8.0);
    all_to_all("rail:2,4,2,8,0,1e9,1,taper=2", 16 * 24 / 8.0);
    all_to_all("fat-tree:2x2,8,0,1,gpus=2,adapters=1,inside=1e9", 12 * 24 / 8.0);
    all_to_all(leaves, 3 * 0.5 * 4 + 3 * 24 / 8.0);
    strcpy(first, leaves);
    ties = strstr(first, "source");
    memmove(ties, "first\n", 6); /* and an empty line */
    all_to_all(first, 3 * 0.5 * 4 + 4 * 24 / 8.0);
    all_to_all("dragonfly:5,2,2,8,0,1,local=1e9,global=4", 16 * 24 / 4.0);
    all_to_all("dragonfly:5,2,2,8,0,1,global=1e9", 36 * 24 / 8.0);
}

/*
 * An all-reduce of S = 24 bytes on one switch, B = 8 bytes/s, latency l = 0.5 s a message
 * (two links): the forms of the reference (6.1). A server that is inside one tree and has
 * two children sends S / 2 up and S down there, and S / 2 up in the other tree: 2 S / B.
 * With 6 servers, which is no power of two, two give their bytes to others first:
 * 2 (l + S / B) more than 4 servers take.
 */
static void
test_algorithms(void **state)
{
    const double l = 0.5, b = 8, s = 24;
    static const struct {
        const char *text;
        uint32_t n;
        double latencies, bytes; /* in units of S */
    } one[] = {{"direct", 8, 7, 7},
               {"ring", 8, 14, 2 * 7 / 8.0},
               {"ring", 5, 8, 2 * 4 / 5.0},
               {"tree", 8, 6, 2},
               {"tree", 7, 6, 2},
               {"halving-doubling", 8, 6, 2 * 7 / 8.0},
               {"halving-doubling", 6, 4 + 2, 2 * 3 / 4.0 + 2}};
    (void)state;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        for (int island = 0; island < 2; island++) {
            char text[100];
            struct net *net;
            double want = one[i].latencies * l + one[i].bytes * s / b, got;
            snprintf(text, sizeof text, "%s,1,algorithm=%s",
                     island ? "island:9,8,0.5" : "fat-tree:1x9,8,0.25", one[i].text);
            net = cluster(text);
            got = alone(net, GRAPH_SYNC_ALL, NULL, one[i].n, s);
            if (fabs(got / want - 1) > 1e-12)
                fail_msg("%s, %u: %.17g, expected %.17g", text, one[i].n, got, want);
            net_free(net);
        }
}

/*
 * Two levels (reference, 6.2): k = 2 nodes of q = 4 servers on rails, adapters of A = 8
 * bytes/s, inside B = 64, no latency, S = 64, n = 8.
 *
 *   ring: 4 rings of S / 4 leave each node by another adapter, so the group has q A on
 *     its way: 2 (n - 1) rounds of S / n / 4 bytes over A: 2 * 7 * 2 / 8 = 3.5 s, which
 *     is 2 (n - 1) / n S / (q A). A server's link inside carries 3 of the 4 rings:
 *     2 * 7 * 3 * 2 / 64, less.
 *   With 1 server in each of 2 nodes there is one ring: 2 S / 2 / A = 8 s.
 *   hierarchical: inside 3 S / 4 / B = 0.75 s, rings of S / 4 among 2 nodes:
 *     2 (S / 4) / 2 / A = 2 s, inside again: 3.5 s.
 *   direct: each server sends S to 4 servers of the other node; 4 of its node send
 *     through its adapter to its own number there: 4 S / A = 32 s.
 */
static void
test_two_levels(void **state)
{
    static const uint32_t apart[] = {1, 5}, uneven[] = {0, 1, 4};
    struct net *net;
    (void)state;
    net = cluster("rail:1,2,4,8,0,64,1,algorithm=ring");
    assert_near(alone(net, GRAPH_SYNC_ALL, NULL, 8, 64), 3.5, 1e-12);
    assert_near(alone(net, GRAPH_SYNC_ALL, apart, 2, 64), 8, 1e-12);
    /* 3 servers, unequally many: one ring 0, 1, 4, each link once; 4 rounds of S / 3 */
    assert_near(alone(net, GRAPH_SYNC_ALL, uneven, 3, 48), 4 * 16 / 8.0, 1e-12);
    net_free(net);
    net = cluster("rail:1,2,4,8,0,64,1,algorithm=hierarchical");
    assert_near(alone(net, GRAPH_SYNC_ALL, NULL, 8, 64), 0.75 + 2 + 0.75, 1e-12);
    /* one server of the least node: S to it and back inside, 2 S / 2 between */
    assert_near(alone(net, GRAPH_SYNC_ALL, uneven, 3, 48), 2 * 48 / 64.0 + 48 / 8.0,
                1e-12);
    net_free(net);
    net = cluster("rail:1,2,4,8,0,64,1");
    assert_near(alone(net, GRAPH_SYNC_ALL, NULL, 8, 64), 32, 1e-12);
    net_free(net);
}

/* A message takes the latency of its route and its bytes over the least capacity. a to c
 * by two links rather than three; a to d over `up` would be as short, but a route is
 * given; d to a has none: over `up`, 1.5 s and 1 byte/s. */
static void
test_message(void **state)
{
    static const uint32_t ends[][2] = {{0, 2}, {0, 3}, {3, 0}, {1, 3}};
    static const double want[] = {2 + 24 / 2.0, 3 + 24 / 2.0, 1.5 + 24, 2 + 24 / 2.0};
    struct net *net = cluster(mesh);
    char name[NET_NODE_MAX];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_near(alone(net, GRAPH_MESSAGE, ends[i], 2, 24), want[i], 1e-12);
    net_format_node(net, 4, name);
    assert_string_equal(name, "up");
    net_free(net);
}

/* A route may use a link twice: it then carries the bytes twice. */
static void
test_twice(void **state)
{
    static const uint32_t ends[] = {0, 1};
    struct net *net = cluster("cluster\tcustom\ta,b\t1\n"
                              "link\ta\ts\t8\t0\tboth=1\nlink\ts\tb\t8\t0\tboth=1\n"
                              "route\ta\tb\ts,a,s\n");
    (void)state;
    assert_near(alone(net, GRAPH_MESSAGE, ends, 2, 24), 2 * 24 / 8.0, 1e-12);
    net_free(net);
}

/* Of routes with as many links the one with the least latency counts; of these the one
 * whose link came first. */
static void
test_shortest(void **state)
{
    uint32_t link[4];
    struct net *net = cluster("cluster\tcustom\ta,b\t1\n"
                              "link\ta\tx\t8\t2\nlink\ta\ty\t8\t1\nlink\ta\tz\t8\t0\n"
                              "link\tx\tb\t8\t0\nlink\tz\tb\t8\t1\nlink\ty\tb\t8\t0\n"
                              "link\tb\ta\t8\t0\n");
    (void)state;
    assert_int_equal(net_route(net, 0, 1, link), 2); /* x: 2 s, y: 1 s, z: 1 s */
    assert_int_equal(link[0], 2);
    assert_int_equal(link[1], 4);
    net_free(net);
}

/* True if switches may add up. */
static bool
has_switch(const char *text)
{
    return strncmp(text, "island", 6) == 0 || strncmp(text, "fat-tree", 8) == 0 ||
           strncmp(text, "rail", 4) == 0;
}

/* Random lists of servers: if their geometries are equal, so is the time of every
 * exchange among them, to the bit. Most lists are moved or permuted copies of others, so
 * that many geometries are equal. */
static void
test_geometry(void **state)
{
    enum { N = 6, LISTS = 60 };
    static const enum graph_exchange_kind kinds[] = {GRAPH_MESSAGE, GRAPH_COLLECTIVE,
                                                     GRAPH_SYNC_ALL, GRAPH_BROADCAST,
                                                     GRAPH_ALL_GATHER};
    static const char *const how[] = {"", ",algorithm=ring", ",algorithm=tree",
                                      ",algorithm=halving-doubling",
                                      ",algorithm=in-switch"};
    int equal = 0;
    (void)state;
    for (int t = 0; t < part_of(5 * ROWS); t++) {
        char text[300];
        size_t r = (size_t)t % (ROWS - 2);
        struct net *net;
        uint32_t server[LISTS][N], *numbers[LISTS], n = N;
        size_t size, which = (size_t)t / (ROWS - 2) % 5;
        if (which == 4 && !has_switch(rows[r].text))
            continue;
        snprintf(text, sizeof text, "%s%s", rows[r].text, how[which]);
        net = cluster(text);
        size = net_geometry_numbers(net, n) * sizeof(uint32_t);
        for (int i = 0; i < LISTS; i++) {
            uint32_t all = net_servers(net), add = (uint32_t)random_below(all);
            for (uint32_t k = 0; k < n; k++) {
                bool taken;
                do {
                    server[i][k] = i > 0 && random_below(8) ? (server[0][k] + add) % all
                                                            : (uint32_t)random_below(all);
                    taken = false;
                    for (uint32_t j = 0; j < k; j++)
                        taken = taken || server[i][j] == server[i][k];
                } while (taken);
            }
            numbers[i] = malloc(size + 1);
            assert_true(net_geometry(net, server[i], n, numbers[i], &err));
        }
        for (int i = 1; i < LISTS; i++)
            for (int j = 0; j < i; j++) {
                if (memcmp(numbers[i], numbers[j], size) != 0)
                    continue;
                equal++;
                for (int k = 0; k < 5; k++)
                    for (uint32_t m = 2; m <= n; m += k ? 1 : n) {
                        double a = alone(net, kinds[k], server[i], m, 24);
                        double b = alone(net, kinds[k], server[j], m, 24);
                        if (memcmp(&a, &b, sizeof a) != 0)
                            fail_msg("%s: %.17g and %.17g", text, a, b);
                    }
            }
        for (int i = 0; i < LISTS; i++)
            free(numbers[i]);
        net_free(net);
    }
    assert_true(equal > 1000);
}

/* Without servers, the time is a lower bound of that on random servers. */
static void
test_bounds(void **state)
{
    static const char *const how[] = {"",
                                      ",algorithm=ring",
                                      ",algorithm=tree",
                                      ",algorithm=halving-doubling",
                                      ",algorithm=hierarchical",
                                      ",algorithm=in-switch"};
    (void)state;
    for (int t = 0; t < part_of(20 * ROWS); t++) {
        size_t r = (size_t)t % ROWS, a = (size_t)random_below(6);
        uint32_t server[8], n = 2 + (uint32_t)random_below(7);
        bool nodes =
            strstr(rows[r].text, "gpus") || strncmp(rows[r].text, "rail", 4) == 0;
        char text[400];
        struct net *net;
        if (a == 4 && (!nodes || strstr(rows[r].text, "4,1,8")))
            a = 1;
        if (a == 5 && !has_switch(rows[r].text))
            a = 2;
        if (strchr(rows[r].text, '\t'))
            snprintf(text, sizeof text, "%s", rows[r].text);
        else
            snprintf(text, sizeof text, "%s%s", rows[r].text, how[a]);
        net = cluster(text);
        if (n > net_servers(net))
            n = net_servers(net);
        for (uint32_t k = 0; k < n; k++) {
            bool taken;
            do {
                server[k] = (uint32_t)random_below(net_servers(net));
                taken = false;
                for (uint32_t j = 0; j < k; j++)
                    taken = taken || server[j] == server[k];
            } while (taken);
        }
        for (int kind = GRAPH_MESSAGE; kind <= GRAPH_SEND; kind++) {
            bool two =
                kind == GRAPH_MESSAGE || kind == GRAPH_SYNC_PAIR || kind == GRAPH_SEND;
            uint32_t m = two ? 2 : n;
            double sum = kind == GRAPH_MESSAGE ? 24 : 24.0 * m * (m - 1), least, real;
            struct net_exchange e = {(enum graph_exchange_kind)kind, NULL, m, sum, sum};
            assert_true(net_alone(net, &e, 1, &least, &err));
            real = alone(net, e.kind, server, m, 24);
            if (least > real * (1 + 1e-12) || !(least > 0))
                fail_msg("%s: %d: %.17g, on %u servers %.17g", text, kind, least, m,
                         real);
        }
        net_free(net);
    }
}

/* What a record describes is written, and read again, as the same cluster. */
static void
test_written(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        struct net *net = cluster(rows[r].text), *again;
        struct rec_writer *writer = rec_writer_open("net.rec", NULL, &err);
        char *text, one[NET_TEXT_MAX], two[NET_TEXT_MAX];
        net_write(net, writer);
        assert_true(rec_writer_close(writer, true, &err));
        text = read_file("net.rec", NULL);
        again = cluster(text);
        net_describe(net, one);
        net_describe(again, two);
        assert_string_equal(one, two);
        assert_int_equal(net_links(net), net_links(again));
        for (uint32_t i = 0; i < net_links(net); i++) {
            struct net_link a, b;
            net_link(net, i, &a);
            net_link(again, i, &b);
            assert_memory_equal(&a, &b, sizeof a);
        }
        for (uint32_t i = 0; i < net_nodes(net); i++) {
            net_format_node(net, i, one);
            net_format_node(again, i, two);
            assert_string_equal(one, two);
        }
        free(text);
        net_free(net);
        net_free(again);
    }
}

/* No two nodes have the same name, and servers are found by theirs. */
static void
test_names(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        struct net *net = cluster(rows[r].text);
        char(*name)[NET_NODE_MAX] = calloc(net_nodes(net), NET_NODE_MAX);
        struct rec_map map = {NULL, 0, 0};
        uint32_t server;
        for (uint32_t i = 0; i < net_nodes(net); i++) {
            struct rec_str text = {name[i], net_format_node(net, i, name[i])};
            if (rec_map_get(&map, text) != REC_NONE)
                fail_msg("%s: two nodes are named '%s'", rows[r].text, name[i]);
            assert_true(rec_map_add(&map, text, i, &err));
            assert_int_equal(net_parse_server(net, text, &server, &err),
                             i < net_servers(net));
            assert_true(i >= net_servers(net) || server == i);
        }
        rec_map_free(&map);
        free(name);
        net_free(net);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),      cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_algorithms), cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_message),    cmocka_unit_test(test_twice),
        cmocka_unit_test(test_shortest),   cmocka_unit_test(test_geometry),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_written),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_fans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
