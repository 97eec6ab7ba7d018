/*
 * Exchanges that share links are sent in rounds (lib/sim/rounds.c): what they take if
 * nothing else is sent, and if something is.
 */
#include "rampipe/sim.h"
#include "unit.h"

#include <math.h>

enum { MOST = 16 };

static struct rec_error err;

/* When batches arrive, by the lower half of their tokens. */
struct heard {
    double now, at[MOST];
    uint32_t n;
};

static void
hear(void *context, uint64_t token)
{
    struct heard *heard = context;
    heard->at[(uint32_t)token] = heard->now;
    heard->n++;
}

/* Lets all events happen. */
static void
run(void *carrier, struct heard *heard)
{
    const struct sim_courier *courier = sim_flows_sharing.courier;
    while (isfinite(heard->now = courier->next(carrier)))
        if (!courier->advance(carrier, heard->now, hear, heard, &err))
            fail_msg("%s", err.text);
}

static struct net *
cluster(const char *text)
{
    struct net *net = net_parse(text, &err);
    if (!net)
        fail_msg("%s: %s", text, err.text);
    return net;
}

/* A member whose layout has these exchanges, with slot i on server i. */
static struct sim_member
member_of(struct sim_layout *layout, struct graph_exchange *exchange, uint32_t n,
          uint32_t *slot, const struct net *net, uint32_t number)
{
    layout->exchanges.exchange = exchange;
    layout->exchanges.n = n;
    layout->exchanges.member = slot;
    return (struct sim_member){
        .number = number, .layout = layout, .net = net, .servers = slot};
}

static void *
carrier_of(const struct sim_member *member)
{
    void *carrier = sim_flows_sharing.open(NULL, &err);
    assert_non_null(carrier);
    assert_true(sim_flows_sharing.take(carrier, member, NULL, 0, &err));
    return carrier;
}

/* A coll of every kind, by every algorithm, takes what net_alone() says. On these
 * clusters the transfers of a round have equal bytes on each link, so a round ends when
 * the link that is busy longest has carried them. */
static void
test_alone(void **state)
{
    static const char *const clusters[] = {
        "island:12,8,0.5,1,algorithm=%s", "rail:2,2,3,8,0.25,64,1,algorithm=%s",
        "fat-tree:2x3,8,0.25,1,gpus=2,adapters=1,inside=64,algorithm=%s",
        "torus:3x4,8,0.5,1,algorithm=%s"};
    static const char *const how[] = {
        "direct",       "ring",      "tree", "halving-doubling",
        "hierarchical", "in-switch", "torus"};
    int tried = 0;
    (void)state;
    for (size_t c = 0; c < 4; c++)
        for (size_t a = 0; a < 7; a++) {
            char text[120];
            struct net *net;
            uint32_t slot[12];
            bool has = a < 4 || (a == 4 && (c == 1 || c == 2)) || (a == 5 && c < 3) ||
                       (a == 6 && c == 3);
            if (!has)
                continue;
            snprintf(text, sizeof text, clusters[c], how[a]);
            net = cluster(text);
            for (uint32_t i = 0; i < 12; i++)
                slot[i] = i;
            for (int kind = GRAPH_ALL_REDUCE; kind <= GRAPH_SEND; kind++)
                for (uint32_t n = 4; n <= 12; n += 4) {
                    double bytes = kind == GRAPH_BARRIER ? 0 : 48, want;
                    uint32_t m = kind == GRAPH_SEND ? 2 : n;
                    struct graph_exchange one = {(enum graph_exchange_kind)kind, 0, m,
                                                 bytes, bytes};
                    struct net_exchange e = {one.kind, slot, m, bytes, bytes};
                    struct sim_layout layout = {.memory = 0};
                    struct sim_member member = member_of(&layout, &one, 1, slot, net, 0);
                    struct heard heard = {.n = 0};
                    void *carrier = carrier_of(&member);
                    assert_true(net_alone(net, &e, 1, &want, &err));
                    if (!sim_flows_sharing.courier->send(carrier, 7, GRAPH_NONE, 0, 2,
                                                         &err))
                        fail_msg("%s", err.text);
                    run(carrier, &heard);
                    sim_flows_sharing.close(carrier);
                    assert_int_equal(heard.n, 1);
                    if (!(fabs((heard.at[7] - 2) / want - 1) < 1e-9))
                        fail_msg("%s: kind %d of %u: %.17g, alone %.17g", text, kind, m,
                                 heard.at[7] - 2, want);
                    tried++;
                }
            net_free(net);
        }
    assert_true(tried > 400);
}

/*
 * Two colls of four servers on an island of 8 bytes/s without latency: a ring all-gather
 * of 64 bytes sends 48 over each link, a barrier nothing. Alone the first takes 6 s. A
 * message of 16 bytes from server 0 to 1, from the same instant on, halves the rate of a
 * link: the ring's flow there has 16 bytes after 4 s, and the last 32 need 4 s: 8 s.
 */
static void
test_shared(void **state)
{
    struct net *net = cluster("island:4,8,0,1,algorithm=ring");
    uint32_t slot[] = {0, 1, 2, 3};
    struct graph_exchange exchange[] = {{GRAPH_ALL_GATHER, 0, 4, 64, 192},
                                        {GRAPH_BARRIER, 0, 4, 0, 0},
                                        {GRAPH_SEND, 0, 2, 16, 16}};
    struct sim_layout layout = {.memory = 0};
    struct sim_member member = member_of(&layout, exchange, 3, slot, net, 0);
    struct heard heard = {.n = 0};
    void *carrier = carrier_of(&member);
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        assert_true(sim_flows_sharing.courier->send(carrier, i, GRAPH_NONE, i, 0, &err));
    /* a batch of member 1, which the carrier does not know */
    assert_false(sim_flows_sharing.courier->send(carrier, (uint64_t)1 << 32, GRAPH_NONE,
                                                 0, 0, &err));
    assert_int_equal(err.code, REC_BUG);
    run(carrier, &heard);
    assert_int_equal(heard.n, 3);
    assert_near(heard.at[0], 8, 1e-12);
    assert_near(heard.at[1], 0, 0);
    assert_near(heard.at[2], 4, 1e-12);
    sim_flows_sharing.close(carrier);
    net_free(net);
}

/*
 * A halving-doubling all-reduce of 64 bytes among 4 servers, B = 8 bytes/s, l = 0.5 s:
 * two rounds of 32 bytes, there and back, are sent as one: 2 l + 64 / 8 = 9 s; then two
 * of 16: 2 l + 32 / 8 = 5 s. It moves to another carrier in its first latency, in its
 * first flows, and in its second ones, and takes 14 s as if it had stayed.
 */
static void
test_moved(void **state)
{
    static const double when[] = {0.5, 5, 12};
    struct net *net = cluster("island:4,8,0.5,1,algorithm=halving-doubling");
    uint32_t slot[] = {0, 1, 2, 3};
    struct graph_exchange one = {GRAPH_ALL_REDUCE, 0, 4, 64, 384};
    struct sim_layout layout = {.memory = 0};
    struct sim_member member = member_of(&layout, &one, 1, slot, net, 3);
    const struct sim_courier *courier = sim_flows_sharing.courier;
    uint64_t token = (uint64_t)3 << 32 | 5;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct heard heard = {.n = 0};
        void *from = carrier_of(&member), *to = sim_flows_sharing.open(NULL, &err);
        assert_true(courier->send(from, token, GRAPH_NONE, 0, 0, &err));
        while ((heard.now = courier->next(from)) < when[i])
            assert_true(courier->advance(from, heard.now, hear, &heard, &err));
        assert_true(sim_flows_sharing.take(to, &member, from, when[i], &err));
        sim_flows_sharing.close(from);
        run(to, &heard);
        assert_int_equal(heard.n, 1);
        assert_near(heard.at[5], 14, 1e-12);
        sim_flows_sharing.close(to);
    }
    net_free(net);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
