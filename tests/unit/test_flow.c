/* Flows that share links: closed forms, laws, capacities that change. */
#include "unit.h"

#include "rampipe/flow.h"

enum { MOST = 64 };

static struct rec_error error;

/* Links with the flows of a test: ends by the caller's id. */
struct net_of_test {
    struct flow_links *links;
    double end[MOST];
    uint64_t order[MOST]; /* ids in the order of their ends */
    int ended;
};

static struct net_of_test
make(uint32_t n, const double *capacity)
{
    struct net_of_test net = {.links = flow_links_new(n, capacity, &error)};
    assert_non_null(net.links);
    for (int i = 0; i < MOST; i++)
        net.end[i] = -1;
    return net;
}

#define LINKS(...) \
    make(sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})
#define ROUTE(...) (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4

static void
assert_same(double ours, double expected)
{
    if (ours != expected)
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

static uint32_t
start_heavy(struct net_of_test *net, double time, uint64_t id, double bytes,
            double weight, const uint32_t *link, size_t n)
{
    const struct flow_spec spec = {id, bytes, weight, link, (uint32_t)n, NULL};
    uint32_t flow;
    if (!flow_start(net->links, time, &spec, &flow, &error))
        fail_msg("%s", error.text);
    assert_int_equal(flow_id(net->links, flow), id);
    return flow;
}

static uint32_t
start(struct net_of_test *net, double time, uint64_t id, double bytes,
      const uint32_t *link, size_t n)
{
    return start_heavy(net, time, id, bytes, 1, link, n);
}

static void
ended(void *context, uint64_t id, double time)
{
    struct net_of_test *net = context;
    assert_true(id < MOST && net->end[id] < 0);
    net->end[id] = time;
    net->order[net->ended++] = id;
}

static void
reach(struct net_of_test *net, double time)
{
    if (!flow_advance(net->links, time, ended, net, &error))
        fail_msg("%s", error.text);
}

static void
set_capacity(struct net_of_test *net, double time, uint32_t link, double capacity)
{
    if (!flow_capacity(net->links, time, link, capacity, &error))
        fail_msg("%s", error.text);
}

static void
assert_close(double ours, double expected)
{
    if (!(fabs(ours - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

/* ---- by hand ----------------------------------------------------------------- */

/*
 * 6 bytes/s. a (12 bytes) starts at 0, b (12) at 1: a alone sends 6 until 1, then each
 * gets 3: a ends at 3 with b's 6 sent; b has 6 left, alone: 4. The latest end with
 * nothing lost: 24 bytes at 6 bytes/s take 4 s.
 */
static void
test_one_link(void **state)
{
    struct net_of_test net = LINKS(6);
    struct flow_load load;
    double bytes, busy;
    uint32_t a, b;
    (void)state;

    a = start(&net, 0, 0, 12, ROUTE(0));
    assert_same(flow_next(net.links), 2);
    b = start(&net, 1, 1, 12, ROUTE(0));
    assert_same(flow_rate(net.links, a), 3);
    assert_same(flow_rate(net.links, b), 3);
    assert_same(flow_left(net.links, a), 6);
    assert_same(flow_next(net.links), 3);
    reach(&net, 2);
    assert_same(flow_left(net.links, b), 9);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 12);
    assert_same(load.busy, 2);
    flow_load_take(net.links, 0, &bytes, &busy);
    assert_true(bytes == 12 && busy == 2);
    assert_same(load.rate, 6);
    assert_same(load.flows, 2);
    assert_same(load.level, 3);
    assert_same(load.capacity, 6);
    reach(&net, INFINITY);
    assert_same(net.end[0], 3);
    assert_same(net.end[1], 4);
    assert_true(isinf(flow_next(net.links)));
    /* idle from 4 to 10 */
    start(&net, 10, 2, 3, ROUTE(0));
    reach(&net, INFINITY);
    assert_same(net.end[2], 10.5);
    reach(&net, 20);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 27 - 12); /* which were taken at 2 */
    assert_same(load.busy, 4.5 - 2);
    assert_same(load.rate, 0);
    assert_same(load.flows, 0);
    assert_true(isinf(load.level));
    flow_links_free(net.links);
}

/*
 * A parking lot: a flow over n links of 1 byte/s, and one flow over each link. All get
 * 1/2, so after 2 s those of 1 byte end; the long one of L bytes has L - 1 left, and goes
 * on at 1: it ends at L + 1. Its bottleneck is the first link of its route.
 */
static void
test_parking_lot(void **state)
{
    struct net_of_test net = LINKS(1, 1, 1, 1);
    uint32_t all;
    (void)state;

    all = start(&net, 0, 9, 5, ROUTE(3, 2, 1, 0));
    for (uint32_t i = 0; i < 4; i++)
        start(&net, 0, i, 1, ROUTE(i));
    assert_same(flow_rate(net.links, all), 0.5);
    assert_true(flow_bottleneck(net.links, all) < 4);
    reach(&net, 2);
    assert_int_equal(net.ended, 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(net.order[i], i); /* ends of one instant: in order of starts */
    assert_same(flow_rate(net.links, all), 1);
    reach(&net, INFINITY);
    assert_same(net.end[9], 6);
    flow_links_free(net.links);
}

/*
 * A flow that crosses a link of 6 bytes/s twice counts twice: it gets 2 beside another,
 * which gets 2, too. Both have 4 bytes: they end at 2.
 */
static void
test_twice(void **state)
{
    struct net_of_test net = LINKS(6, 100);
    struct flow_load load;
    uint32_t a;
    (void)state;

    a = start(&net, 0, 0, 4, ROUTE(0, 1, 0));
    assert_same(flow_rate(net.links, a), 3);
    start(&net, 0, 1, 4, ROUTE(0));
    assert_same(flow_rate(net.links, a), 2);
    assert_int_equal(flow_bottleneck(net.links, a), 0);
    flow_load(net.links, 0, &load);
    assert_same(load.flows, 3);
    assert_same(load.rate, 6);
    flow_load(net.links, 1, &load);
    assert_same(load.rate, 2);
    reach(&net, INFINITY);
    assert_same(net.end[0], 2);
    assert_same(net.end[1], 2);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 12);
    flow_links_free(net.links);
}

/*
 * Three flows and one that stands for three share 12 bytes/s of link 0: 2 each. The three
 * also cross link 1, of 3 bytes/s: they get 1 each, and the others (12 - 3) / 3 = 3. As
 * three flows they do the same.
 */
static void
test_weight(void **state)
{
    for (int apart = 0; apart < 2; apart++) {
        struct net_of_test net = LINKS(12, 3);
        struct flow_load load;
        uint32_t one, three = 0;
        (void)state;

        one = start(&net, 0, 0, 30, ROUTE(0));
        start(&net, 0, 1, 30, ROUTE(0));
        start(&net, 0, 2, 30, ROUTE(0));
        for (uint64_t i = 0; i < (apart ? 3 : 1); i++)
            three = start_heavy(&net, 0, 3 + i, 12, apart ? 1 : 3, ROUTE(0, 1));
        assert_same(flow_rate(net.links, three), 1);
        assert_same(flow_rate(net.links, one), 3);
        assert_int_equal(flow_bottleneck(net.links, three), 1);
        assert_int_equal(flow_bottleneck(net.links, one), 0);
        flow_load(net.links, 0, &load);
        assert_same(load.rate, 12);
        assert_same(load.flows, 6);
        reach(&net, INFINITY);
        assert_same(net.end[0], 10);
        assert_same(net.end[3], 12);
        flow_load(net.links, 1, &load);
        assert_same(load.bytes, 36);
        flow_links_free(net.links);
    }
}

/* The crossings of each link may be given: 2 of the flows cross link 0, and 4 link 1.
 * min(10 / 2, 8 / 4) = 2 bytes/s each. */
static void
test_crossing(void **state)
{
    struct net_of_test net = LINKS(10, 8);
    const double crossing[] = {2, 4};
    const struct flow_spec spec = {7, 10, 4, (uint32_t[]){0, 1}, 2, crossing};
    struct flow_load load;
    uint32_t flow;
    (void)state;

    assert_true(flow_start(net.links, 0, &spec, &flow, &error));
    assert_same(flow_rate(net.links, flow), 2);
    reach(&net, INFINITY);
    assert_same(net.end[7], 5);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 20);
    flow_load(net.links, 1, &load);
    assert_same(load.bytes, 40);
    flow_links_free(net.links);
}

/* What takes no time: no bytes, or no link. The other flow has its link for itself. */
static void
test_at_once(void **state)
{
    struct net_of_test net = LINKS(2, 0);
    (void)state;

    start(&net, 0, 0, 8, ROUTE(0));
    assert_true(isinf(flow_rate(net.links, start(&net, 1, 1, 5, NULL, 0))));
    start(&net, 1, 2, 0, ROUTE(0));
    start(&net, 1, 3, 0, ROUTE(1, 0));
    assert_same(flow_next(net.links), 1);
    reach(&net, 1);
    assert_int_equal(net.ended, 3);
    assert_int_equal(net.order[0], 1);
    reach(&net, INFINITY);
    assert_same(net.end[0], 4);
    assert_same(net.end[3], 1);
    flow_links_free(net.links);
}

/*
 * 4 bytes/s, two flows of 20 bytes. At 2 each has 16 left; at 1 byte/s until 6 each sends
 * 2; the link fails from 6 to 10; then 8 bytes/s: 14 / 4 = 3.5 s. They end at 13.5.
 * A flow on another link goes on meanwhile.
 */
static void
test_capacity(void **state)
{
    struct net_of_test net = LINKS(4, 1);
    struct flow_load load;
    uint32_t a, b;
    (void)state;

    a = start(&net, 0, 0, 20, ROUTE(0));
    b = start(&net, 0, 1, 20, ROUTE(0));
    start(&net, 0, 2, 8, ROUTE(1));
    set_capacity(&net, 2, 0, 1);
    assert_same(flow_left(net.links, a), 16);
    assert_same(flow_rate(net.links, a), 0.5);
    assert_int_equal(flow_still(net.links, 0), FLOW_NONE);
    set_capacity(&net, 6, 0, 0);
    assert_same(flow_rate(net.links, b), 0);
    assert_int_equal(flow_still(net.links, 0), a);
    assert_int_equal(flow_still(net.links, a + 1), b);
    assert_int_equal(flow_still(net.links, b + 1), FLOW_NONE);
    assert_int_equal(flow_bottleneck(net.links, a), 0);
    assert_same(flow_next(net.links), 8);
    reach(&net, 9);
    assert_same(net.end[2], 8);
    assert_true(isinf(flow_next(net.links)));
    set_capacity(&net, 10, 0, 8);
    assert_same(flow_next(net.links), 13.5);
    reach(&net, INFINITY);
    assert_same(net.end[0], 13.5);
    assert_same(net.end[1], 13.5);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 40);
    assert_same(load.busy, 9.5); /* not from 6 to 10 */
    assert_same(load.capacity, 8);
    flow_links_free(net.links);
}

/* A link that is not full becomes narrower than its flow, and wider again: 10 bytes at 2
 * until 1, at 1 until 3, at 2: 1 + 2 + 6 / 2 = 6 s. */
static void
test_narrow(void **state)
{
    struct net_of_test net = LINKS(2, 5);
    uint32_t flow;
    (void)state;

    flow = start(&net, 0, 0, 10, ROUTE(0, 1));
    assert_int_equal(flow_bottleneck(net.links, flow), 0);
    set_capacity(&net, 1, 1, 1);
    assert_int_equal(flow_bottleneck(net.links, flow), 1);
    set_capacity(&net, 3, 1, 5);
    reach(&net, INFINITY);
    assert_same(net.end[0], 6);
    flow_links_free(net.links);
}

/* Two flows of 12 on 4 bytes/s; at 3 one is taken away with 6 left; the other has 6 left
 * and the link for itself: 4.5. What was taken goes on elsewhere. */
static void
test_stop(void **state)
{
    struct net_of_test net = LINKS(4, 2);
    struct flow_load load;
    double left;
    uint32_t a;
    (void)state;

    a = start(&net, 0, 0, 12, ROUTE(0, 1));
    start(&net, 0, 1, 12, ROUTE(0));
    assert_true(flow_stop(net.links, 3, a, &left, &error));
    assert_same(left, 6);
    start(&net, 3, 2, left, ROUTE(1));
    reach(&net, INFINITY);
    assert_same(net.end[0], -1);
    assert_same(net.end[1], 4.5);
    assert_same(net.end[2], 6);
    flow_load(net.links, 0, &load);
    assert_same(load.bytes, 18);
    flow_load(net.links, 1, &load);
    assert_same(load.bytes, 12);
    assert_false(flow_stop(net.links, 9, a, NULL, &error));
    assert_int_equal(error.code, REC_BUG);
    assert_same(flow_rate(net.links, a), 0);
    assert_same(flow_left(net.links, a), 0);
    assert_int_equal(flow_bottleneck(net.links, a), FLOW_NONE);
    flow_links_free(net.links);
}

/* ---- closed forms ------------------------------------------------------------ */

/*
 * n hosts around a switch that never blocks, each with a link up and one down of B; every
 * host sends S bytes to every other at once. Each link carries (n-1) S, all alike: each
 * flow gets B / (n-1), and all end at (n-1) S / B.
 */
static void
test_switch(void **state)
{
    enum { N = 8 };
    double capacity[2 * N];
    struct net_of_test net;
    (void)state;

    for (int i = 0; i < 2 * N; i++)
        capacity[i] = 10;
    net = make(2 * N, capacity);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < N; k++)
            if (i != k)
                start(&net, 0, i * N + k, 5, ROUTE(i, N + k));
    assert_close(flow_next(net.links), (N - 1) * 5 / 10.0);
    reach(&net, INFINITY);
    assert_int_equal(net.ended, N * (N - 1)); /* at one instant */
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < N; k++)
            if (i != k)
                assert_same(net.end[i * N + k], net.end[1]);
    flow_links_free(net.links);
}

/*
 * Sharing is not monotone (flow.h). Flow a: 9 bytes over x and z, b: 6 over x, c: 12 over
 * x and y; x carries 3, y 2, z 1. All get 1 until b ends at 6. Then a, by z, keeps 1, and
 * c gets 2, by y: both end at 9. With z = 2 all get 1 until 6 as before. Then a and c
 * share x, 3/2 each; a ends at 6 + 3 / (3/2) = 8, and c, which has 3 left, gets 2: 9.5.
 */
static void
test_not_monotone(void **state)
{
    enum { X, Y, Z };
    for (int wide = 0; wide < 2; wide++) {
        struct net_of_test net = LINKS(3, 2, wide ? 2 : 1);
        (void)state;
        start(&net, 0, 0, 9, ROUTE(X, Z));
        start(&net, 0, 1, 6, ROUTE(X));
        start(&net, 0, 2, 12, ROUTE(X, Y));
        reach(&net, INFINITY);
        assert_same(net.end[0], wide ? 8 : 9);
        assert_same(net.end[1], 6);
        assert_same(net.end[2], wide ? 9.5 : 9);
        flow_links_free(net.links);
    }
}

/*
 * Sharing makes differences grow (flow.h). A flow of B bytes has a link of capacity C for
 * itself until s, and shares it with n others from then on. Those are long, so it gets
 * C / (n + 1), and ends at s + (n + 1) (B - C s) / C = (n + 1) B / C - n s. If the others
 * start d later, it ends n d earlier.
 */
static void
test_difference_grows(void **state)
{
    enum { N = 8 };
    const double bytes = 4, capacity = 2, later[] = {0, 0x1p-20};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct net_of_test net = LINKS(capacity);
        start(&net, 0, N, bytes, ROUTE(0));
        reach(&net, 1 + later[k]);
        for (uint64_t i = 0; i < N; i++)
            start(&net, 1 + later[k], i, 100, ROUTE(0));
        reach(&net, INFINITY);
        assert_same(net.end[N], (N + 1) * bytes / capacity - N * (1 + later[k]));
        flow_links_free(net.links);
    }
}

/* ---- laws on random flows ------------------------------------------------------ */

enum { LINKS_MOST = 20, FLOWS_MOST = 40 };

/* Flows drawn at random; `of` says which link of the net is link i of theirs. */
struct drawn {
    uint32_t nlinks, nflows, of[LINKS_MOST];
    double capacity[LINKS_MOST], start[FLOWS_MOST], bytes[FLOWS_MOST];
    uint32_t route[FLOWS_MOST][6], n[FLOWS_MOST];
};

static struct drawn
draw(void)
{
    struct drawn d = {.nlinks = 2 + (uint32_t)random_below(LINKS_MOST - 2),
                      .nflows = 1 + (uint32_t)random_below(FLOWS_MOST - 1)};
    double time = 0;
    for (uint32_t i = 0; i < d.nlinks; i++) {
        d.capacity[i] = (double)(1 + random_below(20));
        d.of[i] = i;
    }
    for (uint32_t f = 0; f < d.nflows; f++) {
        d.start[f] = time += (double)random_below(3);
        d.bytes[f] = (double)(1 + random_below(100));
        d.n[f] = 1 + (uint32_t)random_below(6);
        for (uint32_t i = 0; i < d.n[f]; i++)
            d.route[f][i] = (uint32_t)random_below(d.nlinks);
    }
    return d;
}

/* Runs it on a net of n links that carry `factor` times as much; all ends. Between
 * events, the loads must be what the rates say; in the end, what went in has come out. */
static void
run(const struct drawn *d, uint32_t n, double factor, double end[FLOWS_MOST])
{
    double capacity[LINKS_MOST + 3], sum[LINKS_MOST + 3] = {0}, bytes[LINKS_MOST] = {0};
    struct net_of_test net;
    struct flow_load load;
    double now = 0;
    uint32_t f = 0;

    for (uint32_t i = 0; i < n; i++)
        capacity[i] = 1;
    for (uint32_t i = 0; i < d->nlinks; i++)
        capacity[d->of[i]] = factor * d->capacity[i];
    net = make(n, capacity);
    for (;;) {
        double starts = f < d->nflows ? d->start[f] / factor : INFINITY;
        double next = fmin(starts, flow_next(net.links));
        if (isinf(next))
            break;
        for (uint32_t i = 0; i < n; i++) {
            flow_load(net.links, i, &load);
            assert_true(load.rate <= load.capacity * (1 + 1e-12));
            sum[i] += load.rate * (next - now);
        }
        reach(&net, now = next);
        for (; f < d->nflows && d->start[f] / factor == now; f++) {
            uint32_t route[6];
            for (uint32_t i = 0; i < d->n[f]; i++) {
                route[i] = d->of[d->route[f][i]];
                bytes[d->route[f][i]] += d->bytes[f];
            }
            start(&net, now, f, d->bytes[f], route, d->n[f]);
        }
    }
    assert_int_equal(net.ended, d->nflows);
    memcpy(end, net.end, FLOWS_MOST * sizeof *end);
    for (uint32_t i = 0; i < d->nlinks; i++) {
        flow_load(net.links, d->of[i], &load);
        assert_same(load.bytes, bytes[i]);
        assert_true(fabs(sum[d->of[i]] - bytes[i]) <= 1e-9 * bytes[i]);
        assert_true(load.busy * load.capacity >= bytes[i] * (1 - 1e-9));
    }
    flow_links_free(net.links);
}

/*
 * Twice the capacities, and starts at half the times: all ends at half the times, to the
 * bit, because a factor of two does not round. Links under other numbers, and links that
 * nothing crosses, change nothing but the order in which sums round.
 */
static void
test_laws(void **state)
{
    (void)state;
    for (int round = 0; round < part_of(800); round++) {
        struct drawn d = draw();
        double end[FLOWS_MOST], twice[FLOWS_MOST], moved[FLOWS_MOST];
        run(&d, d.nlinks, 1, end);
        run(&d, d.nlinks, 2, twice);
        for (uint32_t i = 0; i < d.nlinks; i++)
            d.of[i] = d.nlinks + 2 - i; /* 0 to 2 are crossed by nothing */
        run(&d, d.nlinks + 3, 1, moved);
        for (uint32_t f = 0; f < d.nflows; f++) {
            assert_same(2 * twice[f], end[f]);
            assert_close(moved[f], end[f]);
        }
    }
}

/* ---- what is refused ------------------------------------------------------------- */

static void
assert_refused(bool ok, enum rec_code code, const char *text)
{
    assert_false(ok);
    assert_int_equal(error.code, code);
    assert_string_equal(error.text, text);
}

static void
test_refused(void **state)
{
    const double bad[] = {1, -1}, nan_too[] = {NAN};
    struct net_of_test net = LINKS(2, 2);
    struct flow_spec spec = {5, 1, 1, (uint32_t[]){0, 2}, 2, NULL};
    uint32_t flow = 0;
    (void)state;

    assert_refused(flow_links_new(2, bad, &error), REC_DATA,
                   "link 1: the capacity must be a finite number >= 0, got -1");
    assert_null(flow_links_new(1, nan_too, &error));
    assert_refused(flow_start(net.links, 0, &spec, &flow, &error), REC_DATA,
                   "flow 5: there is no link 2, only 2 links");
    spec.n = 1;
    spec.bytes = -2;
    assert_refused(flow_start(net.links, 0, &spec, &flow, &error), REC_DATA,
                   "flow 5: the bytes must be a finite number >= 0, got -2");
    spec.bytes = NAN;
    assert_false(flow_start(net.links, 0, &spec, &flow, &error));
    spec.bytes = INFINITY;
    assert_false(flow_start(net.links, 0, &spec, &flow, &error));
    spec.bytes = 4;
    spec.weight = 0;
    assert_refused(flow_start(net.links, 0, &spec, &flow, &error), REC_DATA,
                   "flow 5: the weight must be a finite number > 0, got 0");
    spec.weight = 1;
    spec.crossing = bad + 1;
    assert_refused(flow_start(net.links, 0, &spec, &flow, &error), REC_DATA,
                   "flow 5: the crossing must be a finite number > 0, got -1");
    spec.crossing = NULL;
    assert_true(flow_start(net.links, 1, &spec, &flow, &error));
    assert_refused(flow_start(net.links, 0.5, &spec, &flow, &error), REC_BUG,
                   "flows: time 0.5 comes after time 1");
    assert_refused(flow_start(net.links, 4, &spec, &flow, &error), REC_BUG,
                   "flows: time 4 comes before the end at 3");
    assert_refused(flow_advance(net.links, 0, ended, &net, &error), REC_BUG,
                   "flows: time 0 comes after time 1");
    assert_false(flow_advance(net.links, NAN, ended, &net, &error));
    assert_false(flow_start(net.links, INFINITY, &spec, &flow, &error));
    assert_refused(flow_capacity(net.links, 1, 0, INFINITY, &error), REC_DATA,
                   "link 0: the capacity must be a finite number >= 0, got inf");
    assert_refused(flow_capacity(net.links, 1, 2, 1, &error), REC_DATA,
                   "there is no link 2, only 2 links");
    reach(&net, INFINITY); /* none of these has changed anything */
    assert_same(net.end[5], 3);
    assert_int_equal(net.ended, 1);
    flow_links_free(net.links);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_link),     cmocka_unit_test(test_parking_lot),
        cmocka_unit_test(test_twice),        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_crossing),     cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_capacity),     cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_stop),         cmocka_unit_test(test_switch),
        cmocka_unit_test(test_not_monotone), cmocka_unit_test(test_difference_grows),
        cmocka_unit_test(test_laws),         cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
