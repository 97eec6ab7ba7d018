/* A step whose deps are carried by a courier of this test's own: a bus that all exchanges
 * on their way share. Jobs that share it slow each other. */
#include "graphs.h"

#include "rampipe/sim.h"

enum { MOST = 16 };

/* Batches on the bus share its capacity fairly: each of n gets 1/n byte a second. */
struct bus {
    double now, left[MOST];
    uint64_t batch[MOST];
    const double *bytes; /* of each exchange; those of the next step begin at 4 */
    uint32_t n, exchange[MOST], sends;
    bool deaf, broken;
};

static void
bus_reach(struct bus *bus, double time)
{
    for (uint32_t i = 0; i < bus->n; i++)
        bus->left[i] -= (time - bus->now) / bus->n;
    bus->now = time;
}

static bool
bus_send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
         struct rec_error *err)
{
    struct bus *bus = self;
    (void)dep;
    if (bus->broken)
        return rec_fail(err, REC_IO, "the bus is broken");
    assert_true(time >= bus->now && bus->n < MOST);
    bus_reach(bus, time);
    bus->batch[bus->n] = batch;
    bus->exchange[bus->n] = exchange;
    bus->left[bus->n++] = bus->bytes[exchange + 4 * (batch >> 32)];
    bus->sends++;
    return true;
}

static double
bus_next(void *self)
{
    const struct bus *bus = self;
    double least = INFINITY;
    if (bus->n == 0 || bus->deaf)
        return INFINITY;
    for (uint32_t i = 0; i < bus->n; i++)
        least = fmin(least, bus->left[i]);
    return bus->now + least * bus->n;
}

static bool
bus_advance(void *self, double time, sim_arrived *arrived, void *context,
            struct rec_error *err)
{
    struct bus *bus = self;
    (void)err;
    assert_same(bus_next(bus), time);
    bus_reach(bus, time);
    for (uint32_t i = bus->n; i-- > 0;)
        if (bus->left[i] == 0) {
            uint64_t batch = bus->batch[i];
            bus->n--;
            bus->batch[i] = bus->batch[bus->n];
            bus->left[i] = bus->left[bus->n];
            bus->exchange[i] = bus->exchange[bus->n];
            arrived(context, batch);
        }
    return true;
}

static const struct sim_courier bus_row = {"bus", sim_key_by_exchange, bus_send, bus_next,
                                           bus_advance};

/* What an observer saw of the deps, by their number. */
struct seen {
    double left[MOST], arrived[MOST];
    uint32_t n;
};

static void
see_send(void *context, uint32_t dep, double start, double end)
{
    struct seen *seen = context;
    seen->left[dep] = start;
    seen->arrived[dep] = end;
    seen->n++;
}

static const uint32_t order[MOST] = {0, 1, 2,  3,  4,  5,  6,  7,
                                     8, 9, 10, 11, 12, 13, 14, 15};

/* Each op is on a server of its own. */
static struct sim_placed
on_bus(const struct graph *graph, const uint32_t *exchange, struct bus *bus)
{
    return (struct sim_placed){.graph = graph,
                               .nservers = (uint32_t)graph->nops,
                               .server = order,
                               .placed = order,
                               .exchange = exchange,
                               .courier = &bus_row,
                               .carrier = bus};
}

#define OP(id, seconds) "op g " id " forward " seconds " 0\n"

/*
 * a ends at 2 and c at 4. a's 10 bytes are alone until 4, 2 of them go; then they share
 * the bus with c's 6 bytes, which take until 16, and a's next 6 go. The last 2 are alone
 * and arrive at 18. d runs 16..17, b 18..21. Alone, a's bytes would arrive at 12, c's at
 * 10, and b would end at 15.
 */
static const char two_pairs[] = "graph g m\n" OP("a", "2") OP("b", "3") OP("c", "4")
    OP("d", "1") "dep g a b 10\ndep g c d 6\n";
static const uint32_t pairs_exchange[] = {0, 1};
static const double pairs_bytes[] = {10, 6};

static void
test_share(void **state)
{
    struct graph g = graph_text(two_pairs);
    struct bus bus = {.bytes = pairs_bytes};
    struct sim_placed placed = on_bus(&g, pairs_exchange, &bus);
    struct seen seen = {.n = 0};
    struct sim_observer observer = {.send = see_send, .context = &seen};
    struct sim_step step, plain;
    struct rec_error err = {.text = ""};
    (void)state;

    assert_true(sim_step(&placed, &observer, &step, &err));
    assert_same(step.seconds, 21);
    assert_same(step.comm, 16);
    assert_same(step.comp, 8);
    assert_same(step.busy, 10);
    assert_int_equal(seen.n, 2);
    assert_same(seen.left[0], 2);
    assert_same(seen.arrived[0], 18);
    assert_same(seen.left[1], 4);
    assert_same(seen.arrived[1], 16);
    bus = (struct bus){.bytes = pairs_bytes};
    assert_true(sim_step(&placed, NULL, &plain, &err));
    assert_memory_equal(&plain, &step, sizeof plain);
    graph_free(&g);
}

/*
 * The deps that leave a for exchange 0 are one batch, though one is a sync dep and one of
 * exchange 1 is between them; that of no exchange (to e) is no flow. Both exchanges take
 * 4 bytes: they share the bus from 1 to 9. b, c and d run 9..10, e 1..2.
 */
static void
test_batches(void **state)
{
    struct graph g =
        graph_text("graph g m\n" OP("a", "1") OP("b", "1") OP("c", "1") OP("d", "1") OP(
            "e", "1") "dep g a b 1\ndep g a c 1\ndep g a d 1 kind=sync\ndep g a e 1\n");
    const uint32_t exchange[] = {0, 1, 0, GRAPH_NONE};
    const double bytes[] = {4, 4};
    struct bus bus = {.bytes = bytes};
    struct sim_placed placed = on_bus(&g, exchange, &bus);
    struct seen seen = {.n = 0};
    struct sim_observer observer = {.send = see_send, .context = &seen};
    struct sim_step step;
    struct rec_error err = {.text = ""};
    (void)state;

    assert_true(sim_step(&placed, &observer, &step, &err));
    assert_int_equal(bus.sends, 2);
    assert_int_equal(seen.n, 3);
    assert_same(seen.arrived[2], 9);
    assert_same(step.seconds, 10);
    assert_same(step.comm, 8);
    assert_same(step.busy, 5);
    graph_free(&g);
}

/* Two steps that share a bus: which batch is whose. */
struct company {
    struct sim_stepping *member[2];
    double now;
};

static void
hand_over(void *context, uint64_t batch)
{
    struct company *company = context;
    sim_stepping_arrive(company->member[batch >> 32], batch, company->now);
}

/*
 * The two pairs above as two jobs, of which the second starts at 1: its op takes 3 s. So
 * each is slowed by the other as above: the first ends at 21, the second at 17.
 */
static void
test_company(void **state)
{
    struct graph g[] = {
        graph_text("graph g m\n" OP("a", "2") OP("b", "3") "dep g a b 1"),
        graph_text("graph g m\n" OP("c", "3") OP("d", "1") "dep g c d 1")};
    const uint32_t exchange[] = {0};
    const double bytes[] = {10, 0, 0, 0, 6}; /* exchange 0 of the steps 0 and 1 */
    struct bus bus = {.bytes = bytes};
    struct company company = {.now = 0};
    struct sim_step step[2];
    struct rec_error err = {.text = ""};
    (void)state;

    for (uint32_t i = 0; i < 2; i++) {
        struct sim_placed placed = on_bus(&g[i], exchange, &bus);
        placed.member = i;
        company.member[i] = sim_stepping_new(&placed, NULL, i, &err);
        assert_non_null(company.member[i]);
    }
    for (;;) {
        double next[] = {sim_stepping_next(company.member[0]),
                         sim_stepping_next(company.member[1]), bus_next(&bus)};
        company.now = fmin(next[2], fmin(next[0], next[1]));
        if (isinf(company.now))
            break;
        if (next[2] == company.now)
            assert_true(bus_advance(&bus, company.now, hand_over, &company, &err));
        for (int i = 0; i < 2; i++)
            assert_true(sim_stepping_advance(company.member[i], company.now, &err));
    }
    for (int i = 0; i < 2; i++) {
        assert_true(sim_stepping_end(company.member[i], &step[i], &err));
        sim_stepping_free(company.member[i]);
        graph_free(&g[i]);
    }
    assert_same(step[0].seconds, 21);
    assert_same(step[0].comm, 16);
    assert_same(step[1].seconds, 16);
    assert_same(step[1].comm, 12);
}

/* An error of the courier is that of the step; a courier that brings nothing is found. */
static void
test_bad_courier(void **state)
{
    struct graph g = graph_text(two_pairs);
    struct bus bus = {.bytes = pairs_bytes, .broken = true};
    struct sim_placed placed = on_bus(&g, pairs_exchange, &bus);
    struct sim_step step;
    struct rec_error err = {.text = ""};
    (void)state;

    assert_false(sim_step(&placed, NULL, &step, &err));
    assert_string_equal(err.text, "the bus is broken");
    bus = (struct bus){.bytes = pairs_bytes, .deaf = true};
    assert_false(sim_step(&placed, NULL, &step, &err));
    assert_string_equal(err.text,
                        "graph 'g': 2 batches have left and never arrive by the "
                        "courier 'bus', with 2 ops left");
    assert_int_equal(err.code, REC_BUG);
    graph_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_company),
        cmocka_unit_test(test_bad_courier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
