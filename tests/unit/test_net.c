/* The network RAMP: which parts have a block, collectives and their times, names. */
#include "graphs.h"
#include "published.h"

/* The published lists of valid degrees (reference 8.2; 18 and 32 have shapes too). */
static void
test_has_shape(void **state)
{
    static const struct {
        uint32_t shape[3];
        const char *degrees;
    } table[] = {{{4, 4, 2}, " 1 2 4 6 8 16 18 32 "},
                 {{4, 2, 4}, " 1 2 4 6 8 12 16 "},
                 {{2, 2, 2}, " 1 2 4 8 "}};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (uint32_t k = 1; k <= 40; k += k == 1 ? 1 : 2) {
            char word[20];
            snprintf(word, sizeof word, " %u ", k);
            if (net_ramp_has_block(table[i].shape, k) !=
                (strstr(table[i].degrees, word) != NULL))
                fail_msg("shape %zu, %u parts", i, k);
        }
}

/*
 * x = C = 4, rate = 1.6e12/4 = 4e11 bytes/s, per transceiver 1e11. Latency of a sub-step
 * 50e-9 + 2*100e-9 = 250e-9. Two servers in two groups, one rack, one position, 8000 B:
 * sub = [2, min(2,1) = 1, 1, ceil(1/4) = 1]. d = 2: m = 4000, transceivers 4/(2-1) = 4,
 * comm = 250e-9 + 4000/4e11 = 260e-9. Reduction: n = log2 2 = 1, AI = 1/6, flops =
 * 2e12/6 (< 130e12), 1*4000/2 = 2000 -> 6e-9. T = 2*260e-9 + 6e-9 = 526e-9.
 *
 * Four groups, two racks, two positions, 1000 B: sub = [4, 2, 2, 1].
 *   d=4: m=250, trx 4/3=1: 250e-9 + 250/1e11 = 252.5e-9; n=2, AI=2/10, 2*250/2=250 ->
 *        250/4e11 = 0.625e-9.
 *   d=2: m=125, trx 4: 250e-9 + 125/4e11 = 250.3125e-9; 62.5/(2e12/6) = 0.1875e-9.
 *   d=2: m=ceil(62.5)=63: 250e-9 + 63/4e11 = 250.1575e-9; 31.5/(2e12/6) = 0.0945e-9.
 *   T = 2*752.97e-9 + 0.907e-9 = 1506.847e-9.
 *
 * Only the third coordinate differs, at most x of them: all sub are 1, T = 0. Five
 * positions: ceil(5/4) = 2 gives one sub-step after all: as the first case with m = 500.
 */
static void
test_collective(void **state)
{
    (void)state;
    assert_near(net_ramp_collective_seconds(&published, 2, 1, 1, 8000), 526e-9);
    assert_near(net_ramp_collective_seconds(&published, 4, 2, 2, 1000), 1506.847e-9);
    assert_same(net_ramp_collective_seconds(&published, 1, 1, 1, 8000), 0);
    assert_same(net_ramp_collective_seconds(&published, 1, 1, 2, 8000), 0);
    assert_same(net_ramp_collective_seconds(&published, 1, 1, 4, 8000), 0);
    assert_near(net_ramp_collective_seconds(&published, 1, 1, 5, 1000),
                2 * (250e-9 + 500 / 4e11) + 250 / (2e12 / 6));
    /* 4e11 bytes/s, two io: 250e-9 + 4000/4e11 = 260e-9 */
    assert_near(net_ramp_one_to_one_seconds(&published, 4000), 260e-9);
}

/*
 * A transceiver has bandwidth/C = 4e11, not 1e11. 2 groups, 8000 bytes: d = 2, 4 of 4
 * transceivers, 4000 bytes at 1.6e12: 2 * (250e-9 + 2.5e-9), and the reduction of 2000
 * numbers as before, 4000/2/(2e12/6) = 6e-9. One to one is the same.
 */
static void
test_collective_of_node(void **state)
{
    struct net_ramp node = published;
    (void)state;
    node.collective_rate = NET_COLLECTIVE_NODE;
    assert_near(net_ramp_collective_seconds(&node, 2, 1, 1, 8000),
                2 * (250e-9 + 2.5e-9) + 6e-9);
    assert_near(net_ramp_one_to_one_seconds(&node, 4000), 260e-9);
}

/*
 * On 4x4x2: up to C = 4 in a column. From the factor pairs p * i with i <= S: square p =
 * 1, 4, 9, 16 (q <= 4), flat p <= 4. So with i = 1: 1 to 4, 9, 16; with i = 2: 2, 4, 6,
 * 8, 18, 32. On 2x2x2: 1, 2, 4; with i = 2: 2, 4, 8.
 */
static void
test_legal_parts(void **state)
{
    const struct net_ramp small = RAMP(2, 2, 2, 1);
    const struct net *large = &published.net;
    char text[80];
    (void)state;
    net_format_legal_parts(large, text, sizeof text);
    assert_string_equal(text, "1 to 4, 6, 8, 9, 16, 18, 32");
    net_format_legal_parts(&small.net, text, sizeof text);
    assert_string_equal(text, "1, 2, 4, 8");
    net_format_legal_parts(large, text, 20);
    assert_string_equal(text, "1 to 4, 6, 8, ...");
    for (uint32_t k = 1; k <= 8; k++)
        assert_int_equal(net_is_legal(&small.net, k),
                         k == 1 || k == 2 || k == 4 || k == 8);
    assert_false(net_is_legal(&small.net, 0));
}

#define PAIR(deps)                                                                  \
    "graph g m\n"                                                                   \
    "op g 1a forward 1 1 of=1 part=1/2 pair=4a\nop g 1b forward 1 1 of=1 part=2/2 " \
    "pair=4b\n"                                                                     \
    "op g 2a forward 1 1 of=2 part=1/2 pair=3a\nop g 2b forward 1 1 of=2 part=2/2 " \
    "pair=3b\n"                                                                     \
    "op g 3a backward 1 1 of=3 part=1/2\nop g 3b backward 1 1 of=3 part=2/2\n"      \
    "op g 4a backward 1 1 of=4 part=1/2\nop g 4b backward 1 1 of=4 part=2/2\n" deps

#define FULL(u, v, bytes)                                                           \
    "dep g " #u "a " #v "a " #bytes "\ndep g " #u "a " #v "b " #bytes "\ndep g " #u \
    "b " #v "a " #bytes "\ndep g " #u "b " #v "b " #bytes "\n"
#define SYNC(u, bytes)                                                          \
    "dep g " #u "a " #u "b " #bytes " kind=sync\ndep g " #u "b " #u "a " #bytes \
    " kind=sync\n"

/* The time of each dep, with exchanges told apart as `same` says. Returns how many there
 * are. */
static size_t
time_deps(const struct net *net, const struct graph *g, const uint32_t *server,
          enum graph_same same, double *seconds, struct net_traffic *traffic)
{
    uint32_t nservers = net_servers(net);
    struct graph_exchanges e;
    struct rec_error err;
    size_t n;
    assert_true(graph_exchanges_make(g, server, nservers, net_sync(net), same, &e, &err));
    *traffic = (struct net_traffic){e.flows, e.collectives, e.flow_bytes};
    for (size_t d = 0; d < g->ndeps; d++) {
        const struct graph_exchange *one = &e.exchange[e.of_dep[d]];
        seconds[d] = 0;
        if (e.of_dep[d] != GRAPH_NONE)
            assert_true(net_alone(net,
                                  &(struct net_exchange){one->kind, e.member + one->first,
                                                         one->n, one->bytes, one->flow},
                                  1, &seconds[d], &err));
    }
    n = e.n;
    graph_exchanges_free(&e);
    return n;
}

static void
times(const char *text, const char *const *servers, double *seconds,
      struct net_traffic *traffic, struct graph *g)
{
    const struct net *net = &published.net;
    uint32_t server[20];
    struct rec_error err;
    *g = graph_text(text);
    for (size_t i = 0; i < g->nops; i++)
        assert_true(net_parse_server(net, rec_str(servers[i]), &server[i], &err));
    time_deps(net, g, server, net_same(net), seconds, traffic);
}

/* The same graph with 0, 1e6 or 2e6 bytes a dep, at random. Frees *from. */
static struct graph
with_bytes(struct graph *from)
{
    struct graph g = {0};
    struct rec_error err;
    assert_true(graph_start(&g, rec_str("g"), rec_str("m"), "", &err));
    for (size_t i = 0; i < from->nops; i++)
        assert_true(graph_add_op(&g, &from->op[i], from->op[i].pair_id, &err));
    for (size_t d = 0; d < from->ndeps; d++) {
        const struct graph_dep *dep = &from->dep[d];
        assert_true(graph_add_dep(&g, rec_str(from->op[dep->src].id),
                                  rec_str(from->op[dep->dst].id), 1e6 * draw(3),
                                  dep->sync, "", 0, &err));
    }
    assert_true(graph_close(&g, &err));
    graph_free(from);
    return g;
}

/*
 * Exchanges that take equally long may be one: each dep takes as long as when they are
 * told apart, and as much is counted. The ops lie at random, so that few units exchange
 * as a whole; in half of the graphs each dep has one of three numbers of bytes.
 */
static void
test_same(void **state)
{
    static const char *const nets[] = {"ramp:4,4,2", "fat-tree:4x8,8,1,1,taper=2",
                                       "torus:4x8,8,1,1", "island:32,8,1,1"};
    static double apart[6000], same[6000];
    struct net_traffic one, other;
    (void)state;
    for (uint32_t t = 0; t < 4 * 3; t++) {
        struct rec_error err;
        struct graph g = partitioned(CHAIN_OF_THREE, 2 + t / 4 * 12);
        struct net *net = net_parse(nets[t % 4], &err);
        uint32_t server[200];
        size_t all, fewer;
        assert_non_null(net);
        assert_true(g.nops <= 200 && g.ndeps <= 6000);
        for (uint32_t i = 0; i < g.nops; i++)
            server[i] = draw(net_servers(net));
        if (t % 8 < 4)
            g = with_bytes(&g);
        all = time_deps(net, &g, server, GRAPH_SAME_NONE, apart, &one);
        fewer = time_deps(net, &g, server, net_same(net), same, &other);
        assert_true(fewer < all || g.ndeps < 100);
        assert_memory_equal(apart, same, g.ndeps * sizeof *same);
        assert_memory_equal(&one, &other, sizeof one);
        net_free(net);
        graph_free(&g);
    }
}

/*
 * All on the same two servers, 0-0-0 and 1-0-0. 1 -> 2 (forward), 2 -> 3 (join) and
 * 3 -> 4 (backward) are one collective each, of all 4 deps' bytes; the join is seen from
 * both sides. Two sync pairs. Of each four deps two stay on their server: no flow, 0.
 */
static void
test_collectives(void **state)
{
    static const char *const where[] = {"0-0-0", "1-0-0", "0-0-0", "1-0-0",
                                        "0-0-0", "1-0-0", "0-0-0", "1-0-0"};
    struct net_traffic traffic;
    struct graph g;
    double t[40];
    (void)state;
    times(
        PAIR(FULL(1, 2, 2000) FULL(2, 3, 4000) FULL(3, 4, 0) SYNC(3, 500) SYNC(4, 1000)),
        where, t, &traffic, &g);
    assert_same(t[0], 0); /* 1a -> 2a: the same server */
    assert_near(t[1], 526e-9);
    assert_same(t[1], t[2]);
    assert_same(t[3], 0);
    assert_near(t[5], net_ramp_collective_seconds(&published, 2, 1, 1, 16000));
    assert_same(t[9], 0); /* 3a -> 4b: nothing to move */
    assert_near(t[12], net_ramp_collective_seconds(&published, 2, 1, 1, 1000));
    assert_same(t[12], t[13]);
    assert_near(t[14], net_ramp_collective_seconds(&published, 2, 1, 1, 2000));
    /* F(1), F(2), B(3) = the join again, B(4), 2 sync pairs */
    assert_int_equal(traffic.collectives, 6);
    assert_int_equal(traffic.flows, 2 + 2 + 0 + 4);
    assert_same(traffic.flow_bytes, 4000 + 8000 + 2 * 500 + 2 * 1000);
    graph_free(&g);
}

/*
 * 2 lies elsewhere: its sources and destinations are not the same servers, so 1 -> 2 and
 * 2 -> 3 are one to one, 250e-9 + 2000/4e11 = 255e-9. Unsplit ops have no collectives.
 */
static void
test_one_to_one(void **state)
{
    static const char *const where[] = {"0-0-0", "1-0-0", "0-1-0", "1-0-0",
                                        "0-0-0", "1-0-0", "0-0-0", "1-0-0"};
    struct net_traffic traffic;
    struct graph g;
    double t[40];
    (void)state;
    times(PAIR(FULL(1, 2, 2000) FULL(2, 3, 2000) FULL(3, 4, 2000)), where, t, &traffic,
          &g);
    for (int d = 0; d < 8; d++)
        assert_near(t[d], d == 3 || d == 7 ? 0 : 255e-9);
    assert_near(t[9], 526e-9);
    assert_int_equal(traffic.collectives, 1);
    graph_free(&g);
}

/* Servers that differ only in their position: a collective of flows that takes 0. */
static void
test_same_rack(void **state)
{
    static const char *const where[] = {"0-0-0", "0-0-1", "0-0-0", "0-0-1",
                                        "0-0-0", "0-0-1", "0-0-0", "0-0-1"};
    struct net_traffic traffic;
    struct graph g;
    double t[40];
    (void)state;
    times(PAIR(FULL(1, 2, 2000)), where, t, &traffic, &g);
    for (int d = 0; d < 4; d++)
        assert_same(t[d], 0);
    assert_int_equal(traffic.flows, 2);
    graph_free(&g);
}

/* A split sink without forward deps is no collective (published: division by zero). */
static void
test_empty_group(void **state)
{
    static const char *const where[] = {"0-0-0", "1-0-0", "0-0-0", "1-0-0",
                                        "0-0-0", "1-0-0", "0-0-0", "1-0-0"};
    struct net_traffic traffic;
    struct graph g;
    double t[1];
    (void)state;
    times(PAIR(""), where, t, &traffic, &g);
    assert_int_equal(traffic.collectives, 0);
    graph_free(&g);
}

/*
 * An island of 8 servers, 3e11 bytes/s in each direction, 2e-6 s. Alone (reference
 * parallel.md, 6.1):
 *   a message of S bytes: l + S/B;
 *   sync deps of S bytes among n parts, F = n (n - 1) S in all: direct, each server sends
 *   S to each other one, (n - 1)(l + S/B); on a ring 2 (n - 1)(l + S/(nB));
 *   a collective: n - 1 rounds of latency, and each server sends a share F/n of what
 *   crosses.
 * Without servers, a lower bound: more servers may take part in a collective.
 */
static double
alone(const struct net *net, const struct net_exchange *exchange)
{
    struct rec_error err;
    double seconds;
    assert_true(net_alone(net, exchange, 1, &seconds, &err));
    return seconds;
}

static void
test_island(void **state)
{
    const double l = 2e-6, b = 3e11, s = 12e6;
    const uint32_t server[] = {1, 3, 4, 6, 7};
    struct rec_error err;
    struct net *direct = net_parse("island:8,3e11,2e-6,80e9", &err);
    struct net *ring = net_parse("island:8,3e11,2e-6,80e9,algorithm=ring", &err);
    struct net_exchange message = {GRAPH_MESSAGE, server, 2, s, s};
    struct net_exchange sync = {GRAPH_SYNC_ALL, server, 5, 20 * s, 20 * s};
    struct net_exchange group = {GRAPH_COLLECTIVE, server, 5, 25 * s, 20 * s};
    const struct net_level *level;
    (void)state;
    assert_non_null(direct);
    assert_non_null(ring);
    assert_near(alone(direct, &message), l + s / b);
    assert_near(alone(direct, &sync), 4 * (l + s / b));
    assert_near(alone(ring, &sync), 8 * (l + s / (5 * b)));
    assert_near(alone(direct, &group), 4 * l + 20 * s / 5 / b);
    assert_near(alone(ring, &group), 4 * l + 20 * s / 5 / b);
    group.server = sync.server = message.server = NULL;
    assert_near(alone(direct, &message), l + s / b);
    assert_near(alone(direct, &sync), 4 * (l + s / b));
    assert_near(alone(direct, &group), 4 * l + 20 * s / 8 / b);
    assert_int_equal(net_levels(direct, &level), 2);
    assert_int_equal(level[0].servers, 8);
    for (uint32_t k = 0; k <= 9; k++)
        assert_int_equal(net_is_legal(direct, k), k >= 1 && k <= 8);
    net_free(direct);
    net_free(ring);
}

/* A description is that of a record; a RAMP has the published parameters by default. */
static void
test_parse(void **state)
{
    static const char *const bad[] = {"",
                                      "island",
                                      "island:8",
                                      "ramp:4,4",
                                      "ramp:2,4,1",
                                      "island:8,1,1,1,1",
                                      "ring:3",
                                      "island:8,1,1,x",
                                      "island:8,1,1,1,a",
                                      "island:0,1,1,1"};
    static const uint32_t sizes[] = {32, 8, 2, 1};
    struct rec_error err;
    struct net *net = net_parse("ramp:4,4,2", &err);
    const struct net_level *level;
    (void)state;
    assert_non_null(net);
    assert_same(net_ramp_of(net)->bandwidth, NET_RAMP_BANDWIDTH);
    assert_same(net_memory(net), NET_RAMP_MEMORY);
    assert_same(net_ramp_of(net)->io, NET_RAMP_IO);
    assert_int_equal(net_levels(net, &level), 4);
    for (int d = 0; d < 4; d++) /* 4 groups of 4 racks of 2 servers */
        assert_int_equal(level[d].servers, sizes[d]);
    net_free(net);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (net_parse(bad[i], &err))
            fail_msg("'%s' is no cluster", bad[i]);
        if (err.code != REC_USAGE)
            fail_msg("'%s': %s", bad[i], err.text);
    }
}

static void
test_server_names(void **state)
{
    static const char *const bad[] = {"",      "0",      "0-0",     "0-0-2",
                                      "4-0-0", "0-4-0",  "0-0-0-0", "0-0-0 ",
                                      "a-0-0", "-1-0-0", "0--0",    "0-0-"};
    char name[NET_NAME_MAX];
    struct rec_error err;
    uint32_t server;
    (void)state;
    for (uint32_t i = 0; i < 32; i++) {
        net_format_server(&published.net, i, name);
        assert_true(net_parse_server(&published.net, rec_str(name), &server, &err));
        assert_int_equal(server, i);
    }
    assert_int_equal(net_format_server(&published.net, 31, name), 5);
    assert_string_equal(name, "3-3-1");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (net_parse_server(&published.net, rec_str(bad[i]), &server, &err))
            fail_msg("'%s' is no server", bad[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has_shape),
        cmocka_unit_test(test_collective),
        cmocka_unit_test(test_collective_of_node),
        cmocka_unit_test(test_legal_parts),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_one_to_one),
        cmocka_unit_test(test_same_rack),
        cmocka_unit_test(test_empty_group),
        cmocka_unit_test(test_island),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_server_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
