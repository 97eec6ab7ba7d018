/* Flows that share links: all-to-all on a torus, and the exact figures of others. */
#include "unit.h"

#include "flows.h"

#include <glob.h>

static struct rec_error error;

static void
assert_close(double ours, double expected)
{
    if (!(fabs(ours - expected) <= 1e-12 * fabs(expected)))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

/* ---- a torus ------------------------------------------------------------------ */

/* The link of direction `way` (x+, x-, y+, y-) that leaves a node of a torus. */
static uint32_t
torus_link(uint32_t side, uint32_t x, uint32_t y, uint32_t way)
{
    return 4 * (y * side + x) + way;
}

/* A route by dimension order, the shorter way around, ties forward. */
static uint32_t
torus_route(uint32_t side, uint32_t from, uint32_t to, uint32_t *link)
{
    uint32_t at[] = {from % side, from / side}, end[] = {to % side, to / side}, n = 0;
    for (uint32_t d = 0; d < 2; d++) {
        bool back = (end[d] + side - at[d]) % side > side / 2;
        while (at[d] != end[d]) {
            link[n++] = torus_link(side, at[0], at[1], 2 * d + back);
            at[d] = (at[d] + (back ? side - 1 : 1)) % side;
        }
    }
    return n;
}

/*
 * All-to-all on a k x k torus, k even. The loaded direction is forward: distances 1 to
 * k/2 go there, and a node at distance d crosses d links, so along a ring of k nodes the
 * forward links carry k (1 + ... + k/2) = k (k/2)(k/2 + 1)/2 crossings in all, for each
 * pair of one ring. There are k destinations (in x: rows; in y: columns) for each, and k
 * links: k (k/2)(k/2+1)/2 messages a link. All flows over a loaded link end when its
 * bytes have gone: T = S k (k/2)(k/2+1)/2 / B.
 */
static void
test_torus(void **state)
{
    for (uint32_t side = 4; side <= 6; side += 2) {
        uint32_t nodes = side * side, route[32], flow;
        double capacity[4 * 36], expected;
        struct flow_links *links;
        struct flows flows = {.nevents = 0};
        struct flow_load load;
        double last = 0;
        (void)state;

        for (uint32_t i = 0; i < 4 * nodes; i++)
            capacity[i] = 3;
        links = flow_links_new(4 * nodes, capacity, &error);
        flows.event = calloc((size_t)nodes * nodes, sizeof *flows.event);
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = 0; b < nodes; b++)
                if (a != b) {
                    struct flow_spec spec = {a * nodes + b, 7, 1, route, 0, NULL};
                    spec.n = torus_route(side, a, b, route);
                    assert_true(flow_start(links, 0, &spec, &flow, &error));
                }
        assert_true(flow_advance(links, INFINITY, flows_ended, &flows, &error));
        for (uint32_t i = 0; i < nodes * nodes; i++)
            last = fmax(last, flows.event[i].end);
        expected = 7.0 * side * (side / 2) * (side / 2 + 1) / 2 / 3;
        assert_close(last, expected);
        for (uint32_t i = 0; i < nodes; i++) {
            flow_load(links, 4 * i, &load);
            assert_close(load.bytes, 3 * expected);
            assert_close(load.busy, expected);
        }
        flows_free(&flows);
        flow_links_free(links);
    }
}

/* ---- exact figures ---------------------------------------------------------------- */

/* The path of ../shared/golden/parallel/NAME. */
static void
find(char path[4096], const char *name)
{
    snprintf(path, 4096, "%s/../shared/golden/parallel/%s",
             getenv("ROOT") ? getenv("ROOT") : ".", name);
}

static void
compare(const char *path, double most)
{
    struct flows flows = {.nevents = 0};
    if (!flows_read(&flows, rec_reader_open(&path, 1, NULL, &error), &error) ||
        !flows_run(&flows, &error))
        fail_msg("%s: %s", path, error.text);
    assert_true(flows.nevents > 1);
    for (size_t i = 0; i < flows.nevents; i++) {
        const struct flows_event *e = &flows.event[i];
        if (!(fabs(e->end - e->expected) <= most * e->expected))
            fail_msg("%s: flow %s ends at %.17g, not %.17g", path, e->name, e->end,
                     e->expected);
    }
    flows_free(&flows);
}

static void
test_fluid(void **state)
{
    char pattern[4096];
    glob_t found;
    (void)state;

    find(pattern, "fluid/*.tsv");
    if (glob(pattern, 0, NULL, &found) != 0)
        skip();
    assert_true(found.gl_pathc >= 14);
    for (size_t i = 0; i < found.gl_pathc; i++)
        compare(found.gl_pathv[i], 1e-9);
    globfree(&found);
}

static void
test_fluid_big(void **state)
{
    char path[4096];
    FILE *file;
    (void)state;

    find(path, "fluid-big.tsv.gz");
    if (!(file = fopen(path, "r")))
        skip();
    fclose(file);
    compare(path, 1e-6);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torus),
        cmocka_unit_test(test_fluid),
        cmocka_unit_test(test_fluid_big),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
