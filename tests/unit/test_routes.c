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
};
enum { ROWS = sizeof rows / sizeof *rows };

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
