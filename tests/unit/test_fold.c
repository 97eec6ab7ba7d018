/*
 * Rounds that are folded: what many servers send to each other arrives when it would if
 * each flow were carried by itself, whatever else is on the links, when links degrade,
 * and when it moves to another carrier.
 */
#include "../../lib/sim/carrier.h"
#include "unit.h"

#include <math.h>

static struct rec_error err;

/* From `time` on servers first, first + step, ... send to each other, or, if n is 0, one
 * to another. Or, if `bytes` is less than 0, link `first` gets the capacity -bytes. Or,
 * if `moves`, all that is on its way moves to another carrier. */
struct event {
    double time, bytes;
    uint32_t first, step, n, to;
    bool moves;
};

enum { EVENTS = 24, SERVERS = 2048 };

struct heard {
    double at[EVENTS], now;
};

static void
hear(void *context, uint64_t token)
{
    struct heard *heard = context;
    heard->at[(uint32_t)token] = heard->now;
}

static void
need(bool ok)
{
    if (!ok)
        fail_msg("%s", err.text);
}

static void
pass(struct sim_carrier *carrier, double until, struct heard *heard)
{
    while ((heard->now = sim_carrier_next(carrier)) <= until && heard->now < INFINITY)
        need(sim_carrier_advance(carrier, heard->now, hear, heard, &err));
}

static struct sim_carrier *
open_carrier(const struct sim_member *member, struct sim_carrier *from, double time,
             uint32_t fold_from)
{
    struct sim_carrier *carrier = sim_carrier_new(&err);
    need(carrier);
    sim_carrier_fold_from(carrier, fold_from);
    need(sim_carrier_take(carrier, member, from, time, &err));
    sim_carrier_free(from);
    return carrier;
}

static void
begin(struct sim_carrier *carrier, uint32_t i, const struct event *e)
{
    const struct net_round round = {.latencies = 1, .bytes = e->bytes};
    static uint32_t server[SERVERS];
    uint32_t batch;
    need(sim_carrier_begin(carrier, i, 0, 0, &batch, &err));
    for (uint32_t k = 0; k < e->n; k++)
        server[k] = e->first + k * e->step;
    if (e->n == 0)
        need(sim_carrier_send(carrier, batch, e->first, e->to, e->bytes, e->time, &err));
    else if (sim_carrier_folds(carrier, &round, e->n))
        need(sim_carrier_fold(carrier, batch, &round, server, e->n, e->time, &err));
    else
        for (uint32_t k = 0; k < e->n * e->n; k++)
            if (k / e->n != k % e->n)
                need(sim_carrier_send(carrier, batch, server[k / e->n], server[k % e->n],
                                      e->bytes, e->time, &err));
}

/* Carries n events on a cluster, folded from so many servers on. */
static void
carry(const char *cluster, const struct event *event, uint32_t n, uint32_t fold_from,
      struct heard *heard)
{
    static struct sim_layout layout;
    struct net *net = net_parse(cluster, &err);
    struct sim_member member = {.layout = &layout, .net = net};
    struct sim_carrier *carrier;
    need(net);
    *heard = (struct heard){.now = 0};
    carrier = open_carrier(&member, NULL, 0, fold_from);
    for (uint32_t i = 0; i < n; i++) {
        const struct event *e = &event[i];
        pass(carrier, e->time, heard);
        if (e->moves)
            carrier = open_carrier(&member, carrier, e->time, fold_from);
        else if (e->bytes < 0)
            need(sim_carrier_capacity(carrier, e->time, e->first % net_links(net),
                                      -e->bytes, &err));
        else
            begin(carrier, i, e);
    }
    pass(carrier, INFINITY, heard);
    sim_carrier_free(carrier);
    net_free(net);
}

/* Each arrives at the same time in both ways. The clusters have latencies of 0: what is
 * not folded waits for the latency of its own route. */
static void
compare(const char *cluster, const struct event *event, uint32_t n)
{
    struct heard folded, plain;
    carry(cluster, event, n, 3, &folded);
    carry(cluster, event, n, UINT32_MAX, &plain);
    for (uint32_t i = 0; i < n; i++)
        if (fabs(folded.at[i] - plain.at[i]) > 1e-9 * plain.at[i] ||
            (event[i].bytes > 0 && !event[i].moves && !(folded.at[i] > event[i].time)))
            fail_msg("%s: event %u of %u arrives at %.17g, but unfolded at %.17g",
                     cluster, i, n, folded.at[i], plain.at[i]);
}

/*
 * Servers that send 8 bytes to each other over links of 2 bytes/s. In an island of 16, a
 * server sends 15 * 8 bytes: 60 s, after a latency of 0.5 s. Of one link at a quarter the
 * 15 flows take 240 s. A tree of full bandwidth carries as much, if its spines are used
 * evenly: in 16 leaves of 16 hosts, 255 * 8 bytes leave a host. A rail of 4 nodes of 4: a
 * server sends to the three others of its rail what it has for these, and what the other
 * 3 of its node have: 4 * 3 * 8 bytes at 2 bytes/s, 48 s, in which it also sends 15 - 3
 * flows into its node at 8 bytes/s, which take no longer.
 */
static void
test_closed_forms(void **state)
{
    static const struct {
        const char *cluster;
        uint32_t n;
        double end;
    } rows[] = {
        {"island:16,2,0.5,1", 16, 60.5},
        {"island:1000,2,0,1", 1000, 999 * 4},
        {"fat-tree:16x16,2,0,1", 256, 255 * 4},
        {"rail:1,4,4,2,0,8,1", 16, 48},
    };
    const struct event slow[] = {{.bytes = -0.5, .first = 6},
                                 {.bytes = 8, .step = 1, .n = 16}};
    struct heard heard;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct event event = {.bytes = 8, .step = 1, .n = rows[i].n};
        carry(rows[i].cluster, &event, 1, 3, &heard);
        if (fabs(heard.at[0] - rows[i].end) > 1e-12 * rows[i].end)
            fail_msg("%s: %.17g", rows[i].cluster, heard.at[0]);
    }
    carry(rows[0].cluster, slow, 2, 3, &heard);
    assert_true(fabs(heard.at[1] - 240.5) < 1e-12);
}

/* All of 256 GPUs, and with one link that has half of its capacity for a while. */
static void
test_256(void **state)
{
    const struct event event[] = {{.bytes = 8, .step = 1, .n = 256},
                                  {.time = 300, .bytes = -1, .first = 700},
                                  {.time = 900, .bytes = -2, .first = 700}};
    (void)state;
    compare("fat-tree:8x4x8,2,0,1", event, 3);
    compare("rail:1,32,8,2,0,8,1", event, 3);
}

/* Exchanges of some servers and single messages, at random, on links that degrade, fail
 * and recover, and on their way from carrier to carrier. */
static void
test_random(void **state)
{
    static const char *const clusters[] = {"fat-tree:4,2,0,1",
                                           "fat-tree:4x6,2,0,1,taper=3",
                                           "rail:2,3,4,2,0,8,1",
                                           "fat-tree:3x4,2,0,1,gpus=2,inside=9",
                                           "torus:4x4,2,0,1",
                                           "island:20,2,0,1",
                                           "dragonfly:3,4,2,2,0,1,links=1",
                                           "rail:1,6,4,2,0,8,1"};
    (void)state;
    for (uint64_t seed = 0; seed < 96; seed++) {
        struct event event[EVENTS] = {{0}};
        uint32_t n = 3 + (uint32_t)(seed % (EVENTS - 3));
        double time = 0;
        random_state = seed;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t what = random_below(8);
            time += (double)random_below(40);
            event[i] = (struct event){.time = time,
                                      .bytes = (double)(1 + random_below(9)),
                                      .first = (uint32_t)random_below(4),
                                      .step = 1 + (uint32_t)random_below(2),
                                      .n = 3 + (uint32_t)random_below(4),
                                      .to = 4 + (uint32_t)random_below(12),
                                      .moves = what == 7};
            if (what < 2)
                event[i].n = 0;
            if (what == 6) {
                event[i].bytes = -(double)(1 + random_below(4)) / 2;
                event[i].first = (uint32_t)random_below(100);
            }
        }
        compare(clusters[seed % 8], event, n);
    }
}

/*
 * An all-to-all of 2,048 GPUs: 2,047 flows of 8 bytes leave each, at 2 bytes/s 8,188 s.
 * On rails, 8 times 255 go over a link of a rail: 8,160 s. A link that has 1 byte/s from
 * 3,000 on has sent 6,000 bytes by then, and the rest takes twice as long.
 */
static void
test_2048(void **state)
{
    static const struct {
        const char *cluster;
        uint32_t link;
        double end;
    } rows[] = {{"fat-tree:16x8x16,2,0,1", 0, 3000 + 2047 * 8 - 6000},
                {"rail:1,256,8,2,0,8,1", 2 * 2048, 3000 + 8 * 255 * 8 - 6000}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct event event[] = {{.bytes = 8, .step = 1, .n = 2048},
                                      {.time = 3000, .bytes = -1, .first = rows[i].link}};
        struct heard heard;
        carry(rows[i].cluster, event, 2, SIM_CARRIER_FOLD, &heard);
        if (fabs(heard.at[0] - rows[i].end) > 1e-9 * rows[i].end)
            fail_msg("%s: %.17g", rows[i].cluster, heard.at[0]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_256),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_2048),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
