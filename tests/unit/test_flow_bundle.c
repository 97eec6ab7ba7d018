/*
 * Flows of one route have one rate, and are searched for as one. Ends, loads and what is
 * left are as if each flow were alone on its route.
 */
#include "rampipe/flow.h"
#include "unit.h"

#include <math.h>

static struct rec_error err;

enum { FLOWS = 400, ROUTES = 6, LINKS = 5 };

struct ends {
    double at[FLOWS];
    uint32_t order[FLOWS], n;
};

static void
note(void *context, uint64_t id, double time)
{
    struct ends *ends = context;
    ends->at[id] = time;
    ends->order[ends->n++] = (uint32_t)id;
}

static uint32_t
start(struct flow_links *links, double time, uint64_t id, double bytes, double weight,
      const uint32_t *link, uint32_t n)
{
    const struct flow_spec spec = {
        .id = id, .bytes = bytes, .weight = weight, .link = link, .n = n};
    uint32_t flow;
    if (!flow_start(links, time, &spec, &flow, &err))
        fail_msg("%s", err.text);
    return flow;
}

static void
advance(struct flow_links *links, double time, struct ends *ends)
{
    if (!flow_advance(links, time, note, ends, &err))
        fail_msg("%s", err.text);
}

/*
 * One link of 6 bytes/s. From 0 on a, b and c with 6, 12 and 12 bytes get 2 bytes/s each.
 * a ends at 3; b and c have 6 bytes left and get 3 bytes/s. At 4 c is stopped, with 3
 * left. d, of weight 2, starts with 2 bytes for each of both: b and they get 2 bytes/s. d
 * ends at 5, b has 1 byte left then, and ends at 5 + 1/6.
 */
static void
test_one_route(void **state)
{
    const double capacity = 6;
    const uint32_t link = 0;
    struct flow_links *links = flow_links_new(1, &capacity, &err);
    struct ends ends = {.n = 0};
    struct flow_load load;
    uint32_t b, c, d;
    double left;
    (void)state;
    (void)start(links, 0, 0, 6, 1, &link, 1);
    b = start(links, 0, 1, 12, 1, &link, 1);
    c = start(links, 0, 2, 12, 1, &link, 1);
    advance(links, 4, &ends);
    assert_true(ends.n == 1 && ends.at[0] == 3);
    assert_true(flow_rate(links, b) == 3 && flow_rate(links, c) == 3);
    flow_load(links, 0, &load);
    assert_true(load.flows == 2 && load.rate == 6 && load.bytes == 24 && load.busy == 4);
    assert_true(flow_stop(links, 4, c, &left, &err) && left == 3);
    flow_load(links, 0, &load);
    assert_true(load.flows == 1 && load.rate == 6 && load.bytes == 24);
    d = start(links, 4, 3, 2, 2, &link, 1);
    assert_true(flow_rate(links, d) == 2 && flow_rate(links, b) == 2);
    flow_load(links, 0, &load);
    assert_true(load.flows == 3 && load.rate == 6);
    advance(links, 4.5, &ends);
    assert_true(flow_left(links, d) == 1 && flow_left(links, b) == 2);
    advance(links, INFINITY, &ends);
    assert_true(ends.n == 3 && ends.at[3] == 5);
    assert_true(fabs(ends.at[1] - 31.0 / 6) < 1e-14);
    flow_load(links, 0, &load);
    assert_true(load.flows == 0 && load.busy == ends.at[1]);
    assert_true(fabs(load.bytes - 31) < 1e-12);
    flow_links_free(links);
}

/* The same flows, each of which may have a link of its own besides, so wide that it holds
 * none back: then no two have the same route. */
static void
run(uint64_t seed, bool apart, struct ends *ends, double *left)
{
    static const uint32_t route[ROUTES][3] = {{0},       {1, 2}, {2, 1},
                                              {0, 1, 3}, {4, 3}, {2, 2}};
    static const uint32_t length[ROUTES] = {1, 2, 2, 3, 2, 2};
    double capacity[LINKS + FLOWS], time = 0;
    struct flow_links *links;
    uint32_t number[FLOWS];
    random_state = seed;
    memset(ends, 0, sizeof *ends);
    for (uint32_t i = 0; i < LINKS + FLOWS; i++)
        capacity[i] = i < LINKS ? 1 + i : 1e9;
    links = flow_links_new(LINKS + FLOWS, capacity, &err);
    for (uint32_t i = 0; i < FLOWS; i++) {
        uint32_t kind = (uint32_t)(random_below(ROUTES)), link[4];
        double bytes = (double)(1 + random_below(50));
        double weight = 1 + (double)(random_below(4) / 3);
        time += (double)random_below(8) / 4;
        memcpy(link, route[kind], sizeof route[kind]);
        link[length[kind]] = LINKS + i;
        advance(links, time, ends);
        number[i] = start(links, time, i, bytes, weight, link, length[kind] + apart);
        left[i] = -1;
        if (i % 7 == 3 && ends->at[i - 1] == 0)
            assert_true(flow_stop(links, time, number[i - 1], &left[i - 1], &err));
        if (i % 31 == 5)
            assert_true(flow_capacity(links, time, i % LINKS, 1 + (double)(i % 3), &err));
    }
    advance(links, INFINITY, ends);
    flow_links_free(links);
}

static void
test_as_if_apart(void **state)
{
    static struct ends one, other;
    static double left[FLOWS], rest[FLOWS];
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run(seed, false, &one, left);
        run(seed, true, &other, rest);
        assert_int_equal(one.n, other.n);
        for (uint32_t i = 0; i < FLOWS; i++)
            if (fabs(one.at[i] - other.at[i]) > 1e-12 * other.at[i] ||
                fabs(left[i] - rest[i]) > 1e-10)
                fail_msg("seed %llu, flow %u: %.17g, but %.17g alone on its route",
                         (unsigned long long)seed, i, one.at[i], other.at[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_route),
        cmocka_unit_test(test_as_if_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
