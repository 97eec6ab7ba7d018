/* Placing on the nearest servers, against a plain placer, on a network of this test's
 * own: pods of racks of servers. */
#include "graphs.h"
#include "rampipe/net_kind.h"
#include "rampipe/place.h"
#include "unit.h"

enum { SERVERS = 64, UNITS = 6, PARTS = 9 };

static struct rec_error err;

/* ---- a network of three levels and the servers ------------------------------------- */

static void
pods_describe(const struct net *net, char text[NET_TEXT_MAX])
{
    snprintf(text, NET_TEXT_MAX, "pods of %u servers", net_servers(net));
}

static const struct net_kind kind = {
    .name = "pods", .mark = '.', .describe = pods_describe};

static struct net
make_pods(uint32_t pods, uint32_t racks, uint32_t servers, double memory)
{
    static const char *const names[] = {"cluster", "pod", "rack", "server"};
    struct net net = {.kind = &kind, .memory = memory};
    net_set_levels(&net, 3, names, (const uint32_t[]){pods, racks, servers});
    return net;
}

/* ---- a plain placer ---------------------------------------------------------------- */

typedef bool set[SERVERS];

static uint32_t
count(const struct net *pods, const set in, uint32_t level, uint32_t server)
{
    uint32_t size = pods->level[level].servers, n = 0;
    for (uint32_t s = server / size * size; s < server / size * size + size; s++)
        n += in[s];
    return n;
}

/* True if group a of this level comes before group b: fewer of the set in it, or else in
 * the group around it, and so on. Both are named by a server. */
static bool
comes_before(const struct net *pods, const set in, int level, uint32_t a, uint32_t b)
{
    for (int l = level; l >= 0; l--) {
        uint32_t x = count(pods, in, (uint32_t)l, a), y = count(pods, in, (uint32_t)l, b);
        if (x != y)
            return x < y;
    }
    return a < b;
}

/* Adds the k nearest servers of a set to `out`. Returns the level of their group, and its
 * first server in *first. */
static int
nearest(const struct net *pods, const set in, uint32_t k, set out, uint32_t *first)
{
    uint32_t n = net_servers(pods), best = n, size, most = n;
    int level = 4;
    set rest = {false};
    while (best == n) {
        size = pods->level[--level].servers;
        for (uint32_t s = 0; s < n; s += size)
            if (count(pods, in, (uint32_t)level, s) >= k &&
                (best == n || comes_before(pods, in, level, s, best)))
                best = s;
    }
    *first = best;
    for (uint32_t s = best; s < best + size; s++)
        rest[s] = in[s];
    if (level < 2) { /* there are groups inside: the one with most */
        uint32_t inside = pods->level[level + 1].servers, left = k, unused;
        for (uint32_t s = best; s < best + size; s += inside)
            if (most == n || count(pods, rest, (uint32_t)level + 1, s) >
                                 count(pods, rest, (uint32_t)level + 1, most))
                most = s;
        for (uint32_t s = most; s < most + inside; s++)
            if (rest[s] && left > 0) {
                out[s] = true;
                rest[s] = false;
                left--;
            }
        if (left > 0)
            nearest(pods, rest, left, out, &unused);
        return level;
    }
    for (uint32_t s = best; k > 0; s++)
        if (rest[s]) {
            out[s] = true;
            k--;
        }
    return level;
}

struct plain {
    enum place_outcome outcome;
    uint32_t server[UNITS * PARTS]; /* per member */
    double used[SERVERS];
    double left;
};

static int
falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Tries to put a unit on servers; false: one of them lacks memory. */
static bool
put(const struct net *pods, struct plain *p, const struct graph_unit *unit,
    const uint32_t *server, double memory)
{
    for (uint32_t i = 0; i < unit->parts; i++)
        if (p->used[server[i]] + memory > pods->memory)
            return false;
    for (uint32_t i = 0; i < unit->parts; i++) {
        p->server[unit->first + i] = server[i];
        p->used[server[i]] += memory;
    }
    return true;
}

/* Of a set that is narrowed to servers with room: places a unit on the nearest ones. */
static bool
put_near(const struct net *pods, struct plain *p, const struct graph_unit *unit,
         const set among, double memory)
{
    uint32_t n = net_servers(pods), room = 0, server[SERVERS], k = 0, first;
    set with = {false}, out = {false};
    for (uint32_t s = 0; s < n; s++) {
        with[s] = among[s] && p->used[s] + memory <= pods->memory;
        room += with[s];
    }
    if (room < unit->parts)
        return false;
    nearest(pods, with, unit->parts, out, &first);
    for (uint32_t s = 0; s < n; s++)
        if (out[s])
            server[k++] = s;
    return put(pods, p, unit, server, memory);
}

static void
place_plainly(const struct net *pods, const struct place_plan *plan, const set is_free,
              struct plain *p)
{
    uint32_t n = net_servers(pods), nfree = 0, first;
    set block = {false};
    int level;
    memset(p, 0, sizeof *p);
    for (uint32_t s = 0; s < n; s++)
        nfree += is_free[s];
    p->outcome = PLACE_NO_SERVERS;
    if (nfree < plan->largest || nfree == 0)
        return;
    level = nearest(pods, is_free, plan->largest, block, &first);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct place_step *step = &plan->step[i];
        const struct graph_unit *unit = &plan->graph->unit[step->unit];
        bool placed = false;
        for (uint32_t j = 0; !placed && j < step->nparents; j++) {
            const struct graph_unit *parent =
                &plan->graph->unit[plan->step[plan->parent[step->first_parent + j]].unit];
            placed = parent->parts == unit->parts &&
                     put(pods, p, unit, p->server + parent->first, step->memory);
        }
        placed = placed || put_near(pods, p, unit, block, step->memory);
        for (int l = level; !placed && l >= 0; l--) {
            uint32_t size = pods->level[l].servers;
            set around = {false};
            for (uint32_t s = first / size * size; s < first / size * size + size; s++)
                around[s] = is_free[s];
            placed = put_near(pods, p, unit, around, step->memory);
        }
        if (!placed) {
            double left[SERVERS];
            uint32_t m = 0;
            for (uint32_t s = 0; s < n; s++)
                if (is_free[s])
                    left[m++] = pods->memory - p->used[s];
            qsort(left, m, sizeof *left, falling);
            p->left = left[unit->parts - 1];
            p->outcome = PLACE_NO_MEMORY;
            return;
        }
    }
    p->outcome = PLACE_PLACED;
}

/* ---- random plans ------------------------------------------------------------------ */

/* Units of a few numbers of parts, one behind the other or not. */
static struct graph
random_graph(void)
{
    static char text[200 * UNITS * PARTS + 30 * UNITS * PARTS * PARTS];
    uint32_t n = 1 + (uint32_t)random_below(UNITS), parts[UNITS], few[2];
    char *at = text + sprintf(text, "graph g m\n");
    few[0] = 1 + (uint32_t)random_below(PARTS);
    few[1] = 1 + (uint32_t)random_below(PARTS);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t memory = random_below(5);
        parts[i] = few[random_below(2)];
        for (uint32_t j = 0; j < parts[i]; j++)
            if (parts[i] == 1)
                at += sprintf(at, "op g u%u forward 1 %llu\n", i,
                              (unsigned long long)memory);
            else
                at += sprintf(at, "op g u%u_%u forward 1 %llu of=u%u part=%u/%u\n", i, j,
                              (unsigned long long)memory, i, j + 1, parts[i]);
        if (i > 0 && random_below(2)) {
            uint32_t from = (uint32_t)random_below(i);
            char a[20], b[20];
            sprintf(a, parts[from] == 1 ? "u%u" : "u%u_0", from);
            sprintf(b, parts[i] == 1 ? "u%u" : "u%u_0", i);
            at += sprintf(at, "dep g %s %s 1\n", a, b);
        }
    }
    return graph_text(text);
}

/* One placer and one vacancy for many jobs: what they remember must not show. */
static void
test_plain(void **state)
{
    uint32_t outcomes[4] = {0}, light = 0;
    (void)state;
    for (int turn = 0; turn < part_of(300); turn++) {
        struct net pods = make_pods(
            1 + (uint32_t)random_below(4), 1 + (uint32_t)random_below(4),
            1 + (uint32_t)random_below(4), random_below(3) ? 6 : (double)INFINITY);
        uint32_t n = net_servers(&pods);
        struct place_options options = {.net = &pods};
        struct place_vacancy *vacancy;
        struct place_placer *placer;
        set is_free;
        assert_true(place_options_parse(&options, NULL, &err));
        assert_string_equal(options.kind->name, "near");
        vacancy = place_vacancy_new(options.kind, &pods, &err);
        placer = place_placer_new(&options, &err);
        assert_true(vacancy && placer && place_count_free(vacancy) == n);
        memset(is_free, true, sizeof is_free);
        for (int job = 0; job < 12; job++) {
            struct graph graph = random_graph();
            struct place_placement got;
            struct place_plan plan;
            struct plain plain;
            for (uint32_t i = 0; job > 0 && i < 1 + n / 4; i++) {
                uint32_t s = (uint32_t)random_below(n);
                is_free[s] = random_below(2);
                place_set_free(vacancy, s, is_free[s]);
            }
            assert_true(place_plan_make(&graph, &plan, &err));
            assert_true(place_on(placer, &plan, vacancy, &got, &err));
            place_plainly(&pods, &plan, is_free, &plain);
            assert_int_equal(got.outcome, plain.outcome);
            outcomes[got.outcome]++;
            for (uint32_t m = 0; got.outcome == PLACE_PLACED && m < graph.nops; m++)
                assert_int_equal(got.server[m], plain.server[m]);
            if (got.outcome == PLACE_NO_MEMORY)
                assert_true(got.left == plain.left);
            if (place_is_light(placer, &plan)) {
                light++;
                assert_true(place_light(placer, &plan, vacancy, &got, &err));
                assert_int_equal(got.outcome, plain.outcome);
                for (uint32_t k = 0; got.outcome == PLACE_PLACED && k < plan.nkinds;
                     k++) {
                    const struct graph_unit *unit =
                        &graph.unit[plan.step[plan.kind[k]].unit];
                    assert_memory_equal(got.server + unit->first,
                                        plain.server + unit->first,
                                        unit->parts * sizeof *got.server);
                }
            }
            place_plan_free(&plan);
            graph_free(&graph);
        }
        place_placer_free(placer);
        place_vacancy_free(vacancy);
    }
    assert_true(light > 100 && outcomes[PLACE_PLACED] > 200);
    assert_true(outcomes[PLACE_NO_MEMORY] > 20 && outcomes[PLACE_NO_SERVERS] > 20);
    assert_int_equal(outcomes[PLACE_NO_BLOCK], 0);
}

/* ---- worked cases ------------------------------------------------------------------ */

/* The servers of one op of k parts; `taken` ends with SERVERS. */
static void
expect(const struct net *pods, uint32_t k, const uint32_t *taken, const uint32_t *want)
{
    char text[1000] = "graph g m\n", *at = text + strlen(text);
    struct place_options options = {.net = pods};
    struct place_vacancy *vacancy;
    struct place_placer *placer;
    struct place_placement got;
    struct place_plan plan;
    struct graph graph;
    for (uint32_t j = 0; j < k; j++)
        at += sprintf(at, "op g x%u forward 1 1 of=x part=%u/%u\n", j, j + 1, k);
    graph = graph_text(text);
    assert_true(place_options_parse(&options, "NEAR", &err));
    vacancy = place_vacancy_new(options.kind, pods, &err);
    placer = place_placer_new(&options, &err);
    for (; *taken < SERVERS; taken++)
        place_set_free(vacancy, *taken, false);
    assert_true(place_plan_make(&graph, &plan, &err));
    assert_true(place_on(placer, &plan, vacancy, &got, &err));
    assert_int_equal(got.outcome, PLACE_PLACED);
    assert_int_equal(got.nheld, k);
    assert_memory_equal(got.server, want, k * sizeof *want);
    place_placer_free(placer);
    place_vacancy_free(vacancy);
    place_plan_free(&plan);
    graph_free(&graph);
}
#define LIST(...) ((const uint32_t[]){__VA_ARGS__})

/*
 * Two pods of two racks of four. Free in the racks after 0, 1, 4, 9 are taken: 2, 3, 3,
 * 4. Two parts go to the rack with two left, three to the first rack with three whose pod
 * is fuller (rack 1: its pod has 5, that of rack 2 has 7). Four fit rack 3 alone. Five
 * fit no rack, and pod 0 has just five. Six: pod 1, of which rack 3 has most, all four,
 * and the rest are two of rack 2.
 */
static void
test_best_fit(void **state)
{
    const struct net pods = make_pods(2, 2, 4, 10);
    const uint32_t *taken = LIST(0, 1, 4, 9, SERVERS);
    (void)state;
    expect(&pods, 2, taken, LIST(2, 3));
    expect(&pods, 3, taken, LIST(5, 6, 7));
    expect(&pods, 4, taken, LIST(12, 13, 14, 15));
    expect(&pods, 5, taken, LIST(2, 3, 5, 6, 7));
    expect(&pods, 6, taken, LIST(8, 10, 12, 13, 14, 15));
}

/* A row of the table lacks nothing that is not optional; the default suits. */
static void
test_rows(void **state)
{
    const struct net pods = make_pods(1, 1, 1, 1);
    struct net *ramp = net_parse("ramp:2,2,2", &err);
    struct place_options options = {.net = &pods};
    (void)state;
    for (size_t i = 0; place_kinds[i]; i++) {
        const struct place_kind *row = place_kinds[i];
        assert_true(row->name && row->network && row->suits && row->open && row->close &&
                    row->begin && row->find && row->place);
        assert_true(!row->index_new == !row->index_set &&
                    !row->index_new == !row->index_free);
        assert_ptr_equal(place_kind_find(rec_str(row->name)), row);
        assert_true(row->suits(&pods) != row->suits(ramp));
    }
    assert_string_equal(place_kind_of(ramp)->name, "first-fit");
    assert_string_equal(place_kind_of(&pods)->name, "near");
    assert_false(place_options_parse(&options, "first-fit", &err));
    assert_string_equal(err.text,
                        "first-fit is for RAMP, not for pods of 1 servers: take near");
    assert_false(place_options_parse(&options, "far", &err));
    assert_string_equal(err.text,
                        "must be one of near, lowest, spread, random, got 'far'");
    assert_false(place_options_parse(&options, "near:2", &err));
    assert_string_equal(err.text, "near takes no argument, got 'near:2'");
    options.net = ramp;
    assert_true(place_options_parse(&options, "block:2x2x1", &err));
    assert_string_equal(options.argument, "2x2x1");
    assert_false(place_options_parse(&options, "block:2x2", &err));
    assert_int_equal(err.code, REC_USAGE);
    options.argument = "2x2";
    assert_null(place_placer_new(&options, &err));
    assert_int_equal(err.code, REC_USAGE);
    net_free(ramp);
}

/* Where 6 servers go, one of which is taken, on 2 pods of 2 racks of 4 servers. `spread`
 * goes from pod to pod, and in a pod from rack to rack: 0, 8, 4, 12, 1, 9, 5, ... A seed
 * gives the same servers again, another one others, and all of them are free. */
static void
test_ordered(void **state)
{
    static const struct {
        const char *text;
        uint32_t server[6];
    } ways[] = {{"lowest", {0, 1, 2, 3, 5, 6}},
                {"spread", {0, 8, 12, 1, 9, 5}},
                {"random:1", {0}},
                {"random:1", {0}},
                {"random:2", {0}}};
    const struct net pods = make_pods(2, 2, 4, 10);
    struct graph graph =
        graph_text("graph g m\nop g a forward 1 1 of=1 part=1/6\n"
                   "op g b forward 1 1 of=1 part=2/6\nop g c forward 1 1 of=1 part=3/6\n"
                   "op g d forward 1 1 of=1 part=4/6\nop g e forward 1 1 of=1 part=5/6\n"
                   "op g f forward 1 1 of=1 part=6/6\n");
    uint32_t got[5][6];
    struct place_plan plan;
    (void)state;
    assert_true(place_plan_make(&graph, &plan, &err));
    for (int w = 0; w < 5; w++) {
        struct place_options options = {.net = &pods};
        struct place_placement placement;
        struct place_vacancy *vacancy;
        struct place_placer *placer;
        assert_true(place_options_parse(&options, ways[w].text, &err));
        vacancy = place_vacancy_new(options.kind, &pods, &err);
        placer = place_placer_new(&options, &err);
        place_set_free(vacancy, 4, false);
        assert_true(place_on(placer, &plan, vacancy, &placement, &err));
        assert_int_equal(placement.outcome, PLACE_PLACED);
        assert_int_equal(placement.nheld, 6);
        memcpy(got[w], placement.held, sizeof got[w]);
        for (int i = 0; i < 6; i++)
            assert_true(got[w][i] != 4 && got[w][i] < 16);
        if (w < 2)
            assert_memory_equal(got[w], ways[w].server, sizeof got[w]);
        place_placer_free(placer);
        place_vacancy_free(vacancy);
    }
    assert_memory_equal(got[2], got[3], sizeof got[2]);
    assert_memory_not_equal(got[2], got[4], sizeof got[2]);
    place_plan_free(&plan);
    graph_free(&graph);
}

/* 2 pods of 2 racks of 4 servers: names are those of the levels, and a geometry numbers
 * the pods and racks in the order in which they appear. */
static void
test_levels(void **state)
{
    const struct net pods = make_pods(2, 2, 4, 10);
    const uint32_t servers[] = {13, 4, 15, 0}, want[] = {1, 1, 2, 2, 1, 1, 2, 3};
    uint32_t numbers[8], server;
    char name[NET_NAME_MAX];
    (void)state;
    assert_int_equal(net_format_server(&pods, 13, name), 5);
    assert_string_equal(name, "1.1.1");
    for (uint32_t s = 0; s < net_servers(&pods); s++) {
        net_format_server(&pods, s, name);
        assert_true(net_parse_server(&pods, rec_str(name), &server, &err));
        assert_int_equal(server, s);
    }
    for (int i = 0; i < 4; i++) {
        static const char *const bad[] = {"1.2.0", "1.1", "1.1.1.1", "1.1."};
        assert_false(net_parse_server(&pods, rec_str(bad[i]), &server, &err));
    }
    assert_int_equal(net_geometry_numbers(&pods, 4), 8);
    assert_true(net_geometry(&pods, servers, 4, numbers, &err));
    assert_memory_equal(numbers, want, sizeof want);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels), cmocka_unit_test(test_ordered),
        cmocka_unit_test(test_plain),  cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
