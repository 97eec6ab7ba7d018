/*
 * The rounds of exchanges: what collectives take by each algorithm, by closed forms; and
 * laws of what is sent.
 */
#include "rampipe/net.h"
#include "rampipe/net_ramp.h"
#include "unit.h"

#include <math.h>

static struct rec_error err;

static struct net *
cluster(const char *text)
{
    struct net *net = net_parse(text, &err);
    if (!net)
        fail_msg("%s: %s", text, err.text);
    return net;
}

static double
on(const struct net *net, enum graph_exchange_kind kind, const uint32_t *server,
   uint32_t n, double bytes)
{
    struct net_exchange e = {kind, server, n, bytes, bytes};
    double seconds;
    if (!net_alone(net, &e, 1, &seconds, &err))
        fail_msg("%s", err.text);
    return seconds;
}

/* Servers 0 to n - 1. */
static double
alone(const struct net *net, enum graph_exchange_kind kind, uint32_t n, double bytes)
{
    uint32_t all[300];
    for (uint32_t i = 0; i < n; i++)
        all[i] = i;
    return on(net, kind, all, n, bytes);
}

/*
 * n servers on one switch, B = 8 bytes/s, latency l = 0.5 s a message (two links), a
 * buffer of S = 24 bytes (reference, 6.1):
 *
 *   direct: an all-reduce is a reduce-scatter and an all-gather, in each of which a
 *     server sends S / n to each of n - 1 others. A broadcast sends S n - 1 times from
 *     one server.
 *   ring: half of an all-reduce has n - 1 rounds of S / n. A broadcast is a chain of
 *     n - 1 links with S, in small pieces, so all send at once.
 *   tree: the first server has S / 2 for the root of each tree of the others; a server
 *     that is inside one tree sends S / 2 to two others. Trees of 7 are 3 deep, the
 *     first server is above them.
 *   halving-doubling: S / 2, S / 4, S / 8 with 8 servers; with 6 as the ring. A broadcast
 *     is scattered so, and gathered: 2 log2 n rounds and 2 (n - 1) / n S; with 6 servers
 *     by 4 of them, who give S to the two others in the end.
 *   in-switch: (n + 1) / n S of an all-reduce, up and down.
 *   All-to-all: S / n to each of n - 1 others. A barrier sends no bytes.
 */
static void
test_one_switch(void **state)
{
    const double l = 0.5, b = 8, s = 24;
    static const struct {
        const char *how;
        enum graph_exchange_kind kind;
        uint32_t n;
        double latencies, bytes; /* in units of S */
    } one[] = {{"direct", GRAPH_ALL_REDUCE, 8, 14, 2 * 7 / 8.0},
               {"direct", GRAPH_ALL_GATHER, 8, 7, 7 / 8.0},
               {"direct", GRAPH_REDUCE_SCATTER, 5, 4, 4 / 5.0},
               {"direct", GRAPH_ALL_TO_ALL, 8, 7, 7 / 8.0},
               {"direct", GRAPH_BROADCAST, 8, 7, 7},
               {"direct", GRAPH_REDUCE, 8, 7, 7},
               {"direct", GRAPH_BARRIER, 8, 14, 0},
               {"direct", GRAPH_SEND, 2, 1, 1},
               {"ring", GRAPH_ALL_REDUCE, 8, 14, 2 * 7 / 8.0},
               {"ring", GRAPH_ALL_GATHER, 8, 7, 7 / 8.0},
               {"ring", GRAPH_REDUCE_SCATTER, 5, 4, 4 / 5.0},
               {"ring", GRAPH_ALL_TO_ALL, 8, 7, 7 / 8.0},
               {"ring", GRAPH_BROADCAST, 5, 4, 1},
               {"ring", GRAPH_REDUCE, 8, 7, 1},
               {"ring", GRAPH_BARRIER, 8, 14, 0},
               {"tree", GRAPH_ALL_REDUCE, 8, 6, 2},
               {"tree", GRAPH_ALL_GATHER, 8, 7, 7 / 8.0},
               {"tree", GRAPH_BROADCAST, 8, 4, 1},
               {"tree", GRAPH_REDUCE, 8, 4, 1},
               {"tree", GRAPH_BROADCAST, 2, 1, 1},
               {"tree", GRAPH_BARRIER, 7, 6, 0},
               {"halving-doubling", GRAPH_ALL_REDUCE, 8, 6, 2 * 7 / 8.0},
               {"halving-doubling", GRAPH_ALL_GATHER, 8, 3, 7 / 8.0},
               {"halving-doubling", GRAPH_REDUCE_SCATTER, 6, 5, 5 / 6.0},
               {"halving-doubling", GRAPH_BROADCAST, 8, 6, 2 * 7 / 8.0},
               {"halving-doubling", GRAPH_REDUCE, 6, 4 + 1, 2 * 3 / 4.0 + 1},
               {"in-switch", GRAPH_ALL_REDUCE, 8, 2, 9 / 8.0},
               {"in-switch", GRAPH_ALL_REDUCE, 2, 2, 3 / 2.0},
               {"in-switch", GRAPH_ALL_GATHER, 8, 7, 7 / 8.0},
               {"in-switch", GRAPH_BROADCAST, 8, 7, 1},
               {"in-switch", GRAPH_BARRIER, 8, 2, 0},
               {"ring", GRAPH_ALL_REDUCE, 1, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        for (int island = 0; island < 2; island++) {
            char text[100];
            struct net *net;
            double want = one[i].latencies * l + one[i].bytes * s / b, got;
            snprintf(text, sizeof text, "%s,1,algorithm=%s",
                     island ? "island:9,8,0.5" : "fat-tree:1x9,8,0.25", one[i].how);
            net = cluster(text);
            got = alone(net, one[i].kind, one[i].n, s);
            if (!(fabs(got - want) <= 1e-12 * want))
                fail_msg("row %zu: %s, %u: %.17g, expected %.17g", i, text, one[i].n, got,
                         want);
            net_free(net);
        }
}

/* Trees: no server sends or gets more than S, whatever their number. */
static void
test_trees(void **state)
{
    struct net *net = cluster("island:80,8,0,1,algorithm=tree");
    (void)state;
    for (uint32_t n = 2; n <= 80; n++)
        if (fabs(alone(net, GRAPH_BROADCAST, n, 24) / 3 - 1) > 1e-12 ||
            fabs(alone(net, GRAPH_REDUCE, n, 24) / 3 - 1) > 1e-12)
            fail_msg("%u servers: %g", n, alone(net, GRAPH_BROADCAST, n, 24));
    net_free(net);
}

/*
 * Two levels (reference, 6.2, 6.3): k = 2 nodes of q = 4 servers on rails, adapters of
 * A = 8 bytes/s, inside B = 64, no latency, S = 64, n = 8.
 *
 *   ring all-gather: 4 rings, which leave a node by another adapter each: half of the
 *     3.5 s of an all-reduce. Broadcast: 4 chains with S / 4 each over 8 bytes/s: 2 s.
 *   hierarchical reduce-scatter: inside 3 S / 4 / B = 0.75 s, then S / 4 among 2 nodes,
 *     1/2 of it over A: 1 s. All-gather: the same backwards. Broadcast: S / 4 to each of
 *     3 in the first node, 0.75 s, chains with S / 4, 2 s, 3 S / 4 / B inside, 0.75 s.
 *   in-switch: inside S (q + 1) / q / B = 1.25 s; at the same time adapters
 *     S / q (k + 1) / k / A = 3 s.
 *   all-to-all: S / n = 8 to each. An adapter carries what the 4 servers of a node send
 *     to its number in the other: 4 * 8 / 8 = 4 s = (n - q) / n S / A. A server's link
 *     inside carries 3 for its own node and 3 for the other: 6 * 8 / 64, less. The
 *     largest counts, not the sum.
 *   With B = 4: 3 for the own node, and 3 for other numbers of the other one: 12 s.
 */
static void
test_two_levels(void **state)
{
    static const struct {
        const char *rest;
        enum graph_exchange_kind kind;
        double seconds;
    } rows[] = {{"64,1,algorithm=ring", GRAPH_ALL_GATHER, 1.75},
                {"64,1,algorithm=ring", GRAPH_REDUCE_SCATTER, 1.75},
                {"64,1,algorithm=ring", GRAPH_BROADCAST, 2},
                {"64,1,algorithm=hierarchical", GRAPH_REDUCE_SCATTER, 1.75},
                {"64,1,algorithm=hierarchical", GRAPH_ALL_GATHER, 1.75},
                {"64,1,algorithm=hierarchical", GRAPH_BROADCAST, 3.5},
                {"64,1,algorithm=hierarchical", GRAPH_REDUCE, 3.5},
                {"64,1,algorithm=in-switch", GRAPH_ALL_REDUCE, 3},
                {"16,1,algorithm=in-switch", GRAPH_ALL_REDUCE, 5},
                {"64,1", GRAPH_ALL_TO_ALL, 4},
                {"64,1,algorithm=hierarchical", GRAPH_ALL_TO_ALL, 4},
                {"4,1", GRAPH_ALL_TO_ALL, 12}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        struct net *net;
        double got;
        snprintf(text, sizeof text, "rail:1,2,4,8,0,%s", rows[i].rest);
        net = cluster(text);
        got = alone(net, rows[i].kind, 8, 64);
        if (!(fabs(got / rows[i].seconds - 1) < 1e-12))
            fail_msg("row %zu: %s: %.17g, expected %g", i, text, got, rows[i].seconds);
        net_free(net);
    }
}

/*
 * Switches that add up in a tree: of 3 leaves of 4 hosts with a quarter of their
 * bandwidth up, each link up carries S (n + 1) / n once. n = 12, S = 24: 26 / 8 s, in
 * whatever order the members come, and 2 latencies of the longest route, of 4 links. On
 * a ring in this order each leaf would send to another one 4 times.
 */
static void
test_tree_of_switches(void **state)
{
    static const uint32_t order[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    struct net *net = cluster("fat-tree:3x4,8,0.25,1,taper=4,algorithm=in-switch");
    (void)state;
    assert_near(on(net, GRAPH_ALL_REDUCE, order, 12, 24), 2 * 4 * 0.25 + 26 / 8.0, 1e-12);
    net_free(net);
}

/*
 * A torus, B = 8 bytes/s, l = 0.5 s, S = 96. Of D dimensions each part is S / D, half of
 * it each way around.
 *
 *   4 x 4: first 3 rounds of S / 2 / 2 / 4 each way: 3 S / 16. Then of S / 2 / 4:
 *     3 S / 64. The half of an all-reduce sends 15 S / 64 over each link: 2 (n - 1) / n S
 *     over 4 links in all. 12 rounds.
 *   4 x 4 x 4: S / 3 each; 3/8, 3/32, 3/128 of it, 63/128 S / 3 = (n - 1) / n S / 6.
 *   4 x 8: along x 3/4 of S / 4 in the first step, S / 4 / 8 in the second; along y 7/8
 *     of S / 4, then of S / 4 / 4. The slower counts: 7 rounds, 7/32 S, then
 *     max(3/4 S / 32, 7/8 S / 16) = 7/128 S: 35/128 S.
 *   4 x 8, y of 4 times the bandwidth: x counts: 3/16 S, then 3/128 S: 27/128 S.
 *   2 x 2 of 4 x 4, also around the end: the neighbour of both ways is the same.
 *     S / 4 / 2 twice, and then S / 8 / 2 twice: 3/8 S.
 *   A row of 3 of 8 x 8: both rings close over two links back, so each link carries two
 *     times S / 2 / 3 in each of two rounds, which take 2 l: 2/3 S and 4 l.
 *   A reduce-scatter and an all-gather are halves. Others go on rings: a chain of 4
 *     around a row of 4.
 */
static void
test_torus(void **state)
{
    static const uint32_t corner[] = {15, 12, 3, 0}, row[] = {9, 10, 11};
    static const uint32_t bent[] = {0, 1, 4}, gap[] = {0, 2, 4, 6};
    const double l = 0.5, s = 96;
    struct net *net = cluster("torus:4x4,8,0.5,1,algorithm=torus");
    double sync;
    uint32_t all[16];
    struct net_exchange e = {GRAPH_ALL_REDUCE, bent, 3, s, s};
    struct net_exchange deps = {GRAPH_SYNC_ALL, all, 16, s * 16 * 15, s * 16 * 15};
    (void)state;
    assert_near(alone(net, GRAPH_ALL_REDUCE, 16, s), 12 * l + 30 / 64.0 * s / 8, 1e-12);
    assert_near(alone(net, GRAPH_ALL_GATHER, 16, s), 6 * l + 15 / 64.0 * s / 8, 1e-12);
    assert_near(alone(net, GRAPH_REDUCE_SCATTER, 16, s), 6 * l + 15 / 64.0 * s / 8,
                1e-12);
    assert_near(on(net, GRAPH_REDUCE_SCATTER, corner, 4, s), 2 * l + 3 / 8.0 * s / 8,
                1e-12);
    assert_near(alone(net, GRAPH_BROADCAST, 4, s), 3 * l + s / 8, 1e-12);
    for (uint32_t i = 0; i < 16; i++)
        all[i] = i;
    assert_true(net_alone(net, &deps, 1, &sync, &err));
    assert_near(sync, 12 * l + 30 / 64.0 * s / 8, 1e-12);
    assert_false(net_alone(net, &e, 1, &sync, &err));
    assert_non_null(strstr(err.text, "must be a box of the torus"));
    net_free(net);
    net = cluster("torus:4x4x4,8,0.5,1,algorithm=torus");
    assert_near(alone(net, GRAPH_REDUCE_SCATTER, 64, s), 9 * l + 63 / 128.0 * s / 3 / 8,
                1e-12);
    net_free(net);
    net = cluster("torus:4x8,8,0.5,1,algorithm=torus");
    assert_near(alone(net, GRAPH_REDUCE_SCATTER, 32, s), 14 * l + 35 / 128.0 * s / 8,
                1e-12);
    net_free(net);
    net = cluster("torus:4x8,8,0.5,1,bandwidth_y=32,algorithm=torus");
    assert_near(alone(net, GRAPH_REDUCE_SCATTER, 32, s), 14 * l + 27 / 128.0 * s / 8,
                1e-12);
    net_free(net);
    net = cluster("torus:8x8,8,0.5,1,algorithm=torus");
    assert_near(on(net, GRAPH_REDUCE_SCATTER, row, 3, s), 4 * l + 2 / 3.0 * s / 8, 1e-12);
    e = (struct net_exchange){GRAPH_ALL_REDUCE, gap, 4, s, s};
    assert_false(net_alone(net, &e, 1, &sync, &err));
    net_free(net);
}

/* A RAMP counts the bytes that all put in (reference, 6.5): 2 S of an all-reduce, n S of
 * an all-to-all, S of the others; a send is one to one. */
static void
test_ramp(void **state)
{
    static const struct {
        enum graph_exchange_kind kind;
        double buffers;
    } rows[] = {{GRAPH_ALL_REDUCE, 2}, {GRAPH_ALL_TO_ALL, 4},     {GRAPH_ALL_GATHER, 1},
                {GRAPH_BROADCAST, 1},  {GRAPH_REDUCE_SCATTER, 1}, {GRAPH_BARRIER, 0}};
    struct net *net = cluster("ramp:4,4,2,1.6e12,8e10");
    struct net_rounds rounds = {.n = 0};
    struct net_exchange e = {GRAPH_ALL_REDUCE, (uint32_t[]){0, 1}, 2, 1, 1};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t n = 2; n <= 4; n += 2)
            assert_near(alone(net, rows[i].kind, n, 8000 * (n == 2 && i == 1 ? 2 : 1)),
                        alone(net, GRAPH_COLLECTIVE, n, 8000 * rows[i].buffers), 1e-18);
    assert_near(alone(net, GRAPH_SEND, 2, 8000), alone(net, GRAPH_MESSAGE, 2, 8000), 0);
    assert_false(net_rounds_make(net, &e, &rounds, &err)); /* it has no links */
    net_rounds_free(&rounds);
    net_free(net);
}

/* What a round says of itself, and what each server sends and gets in all. */
static void
check_rounds(const struct net_exchange *e, const struct net_rounds *rounds, double *sent,
             double *got)
{
    for (uint32_t r = 0; r < rounds->n; r++) {
        const struct net_round *round = &rounds->round[r];
        assert_near(round->bytes, round->times * round->each, 1e-12 * round->bytes);
        assert_true(round->latencies > 0 && (round->transfer == NULL) == (round->n == 0));
        for (uint32_t i = 0; i < round->n; i++) {
            const struct net_transfer *t = &round->transfer[i];
            assert_true(t->share > 0 && t->from != t->to);
            sent[t->from] += t->share * round->bytes;
            got[t->to] += t->share * round->bytes;
        }
        for (uint32_t i = 0; !round->n && i < e->n; i++) {
            sent[e->server[i]] += (e->n - 1) * round->bytes;
            got[e->server[i]] += (e->n - 1) * round->bytes;
        }
    }
}

/*
 * Random members of clusters of all kinds. All that is sent is (n - 1) S in half of an
 * all-reduce and 2 (n - 1) S in a whole one, whatever the algorithm, but (n + 1) S where
 * one switch adds up; (n - 1) S in an all-to-all. Each server gets at least what it
 * lacks: (n - 1) / n S of an all-gather, S of a broadcast but for the first one. No other
 * server sends or gets anything.
 */
static void
test_sums(void **state)
{
    static const char *const clusters[] = {
        "island:24,8,1,1", "rail:2,4,3,8,1,64,1",
        "fat-tree:2x3,8,1,1,gpus=4,adapters=2,inside=64", "torus:4x6,8,1,1",
        "dragonfly:5,2,2,8,1,1"};
    static const char *const how[] = {"direct",           "ring",         "tree",
                                      "halving-doubling", "hierarchical", "in-switch"};
    struct net_rounds rounds = {.n = 0};
    (void)state;
    for (int t = 0; t < part_of(2000); t++) {
        enum graph_exchange_kind kind =
            GRAPH_ALL_REDUCE + (unsigned)random_below(GRAPH_BARRIER - GRAPH_ALL_REDUCE);
        size_t at = (size_t)random_below(5), algorithm = (size_t)random_below(6);
        uint32_t server[24], n = 2 + (uint32_t)random_below(10), all;
        double sent[24] = {0}, got[24] = {0}, sum = 0, s = 60, want;
        struct net_exchange e = {kind, server, n, s, s};
        bool nodes = at == 1 || at == 2;
        struct net *net;
        char text[100];
        if ((algorithm == 4 && !nodes) || (algorithm == 5 && at != 0))
            algorithm = 1;
        snprintf(text, sizeof text, "%s,algorithm=%s", clusters[at], how[algorithm]);
        net = cluster(text);
        all = net_servers(net);
        for (uint32_t i = 0; i < n; i++) {
            bool taken;
            do {
                server[i] = (uint32_t)random_below(all);
                taken = false;
                for (uint32_t j = 0; j < i; j++)
                    taken = taken || server[j] == server[i];
            } while (taken);
        }
        assert_true(net_rounds_make(net, &e, &rounds, &err));
        check_rounds(&e, &rounds, sent, got);
        for (uint32_t i = 0; i < n; i++) {
            double least = kind == GRAPH_REDUCE      ? 0
                           : kind != GRAPH_BROADCAST ? (n - 1.0) / n * s
                                                     : s * (i > 0);
            if (got[server[i]] < least - 1e-9)
                fail_msg("%s, kind %d: number %u of %u gets %g, not %g", text, kind, i, n,
                         got[server[i]], least);
            sum += sent[server[i]];
            sent[server[i]] = got[server[i]] = 0;
        }
        for (uint32_t i = 0; i < all; i++)
            assert_true(sent[i] == 0 && got[i] == 0);
        want = (n - 1) * s;
        if (kind == GRAPH_ALL_REDUCE)
            want = algorithm == 5 ? (n + 1) * s : 2 * want;
        /* a broadcast that is scattered first sends more */
        if (kind == GRAPH_BROADCAST || kind == GRAPH_REDUCE)
            assert_true(sum > want - 1e-9 && sum < 2.5 * want + s);
        else if (fabs(sum - want) > 1e-9)
            fail_msg("%s, kind %d, %u servers: %g, expected %g", text, kind, n, sum,
                     want);
        net_free(net);
    }
    net_rounds_free(&rounds);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_switch), cmocka_unit_test(test_trees),
        cmocka_unit_test(test_two_levels), cmocka_unit_test(test_tree_of_switches),
        cmocka_unit_test(test_torus),      cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
