/* Classes of flows: the network of classes has the ends of the whole one. */
#include "unit.h"

#include "fabrics.h"

static struct rec_error error;

static void
assert_close(double ours, double expected, double most)
{
    if (ours != expected && !(fabs(ours - expected) <= most * fabs(expected)))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

static double *
equal_links(uint32_t n, double capacity)
{
    double *all = malloc(n * sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = capacity;
    return all;
}

static struct flow_classes *
find(uint32_t n, const double *capacity, const uint32_t *label,
     const struct flow_source *source)
{
    struct flow_classes *classes =
        flow_classes_find(n, capacity, label, source, 10000, &error);
    if (!classes)
        fail_msg("%s", error.text);
    return classes;
}

/* A link whose capacity changes at a time, in a network or in its classes. */
struct change {
    double time, capacity;
    uint32_t link;
};

static void
note_end(void *context, uint64_t id, double time)
{
    double *end = context;
    end[id] = time;
}

/* The end of each flow of a source, each started by itself, in the order in which the
 * source gives them. */
static double *
run_whole(uint32_t n, const double *capacity, const struct flow_source *source,
          const struct change *change, size_t *nflows)
{
    struct flow_links *links = flow_links_new(n, capacity, &error);
    struct flow_route route;
    double *end = NULL;
    size_t room = 0;
    *nflows = 0;
    source->rewind(source->self);
    while (source->next(source->self, &route)) {
        const struct flow_spec spec = {*nflows,    route.bytes, route.weight,
                                       route.link, route.n,     NULL};
        uint32_t flow;
        assert_int_equal(route.nfan, 0);
        assert_true(rec_grow(&end, &room, *nflows + 1, sizeof *end, &error));
        end[*nflows] = INFINITY;
        if (!flow_advance(links, route.delay, note_end, end, &error) ||
            !flow_start(links, route.delay, &spec, &flow, &error))
            fail_msg("%s", error.text);
        ++*nflows;
    }
    if (change)
        assert_true(
            flow_advance(links, change->time, note_end, end, &error) &&
            flow_capacity(links, change->time, change->link, change->capacity, &error));
    assert_true(flow_advance(links, INFINITY, note_end, end, &error));
    flow_links_free(links);
    return end;
}

/* Every flow of the source has a class, which ends when the flow itself does. */
static void
compare(const struct flow_classes *classes, const double *finish, const double *end,
        size_t nflows, const struct flow_source *source)
{
    double *seen = calloc(classes->n, sizeof *seen), flows = 0;
    struct flow_route route;
    size_t i = 0;
    source->rewind(source->self);
    for (; source->next(source->self, &route); i++) {
        uint32_t class = flow_classes_of(classes, &route);
        assert_true(class < classes->n);
        assert_true(classes->of[class].bytes == route.bytes &&
                    classes->of[class].delay == route.delay &&
                    classes->of[class].group == route.group);
        seen[class] += route.weight;
        if (isinf(end[i]))
            assert_true(isinf(finish[class]));
        else
            assert_close(finish[class], end[i], 1e-9);
    }
    assert_int_equal(i, nflows);
    for (uint32_t c = 0; c < classes->n; c++) {
        assert_true(seen[c] == classes->of[c].flows);
        flows += seen[c];
    }
    assert_true(flows == classes->flows);
    free(seen);
}

/* Runs a fabric by classes, from fans and flow by flow, and as a whole. Returns the
 * classes, and the last end. */
static uint32_t
check_fabric(struct fabric *fabric, const double *capacity, double *last)
{
    const struct flow_source source = fabric_source(fabric);
    bool fans = fabric->fans;
    struct flow_classes *from_fans = find(fabric->nlinks, capacity, NULL, &source),
                        *classes;
    double *finish, *end, again;
    uint32_t n = from_fans->n;
    size_t nflows;

    fabric->fans = false;
    classes = find(fabric->nlinks, capacity, NULL, &source);
    assert_int_equal(classes->n, n);
    assert_int_equal(classes->ncolours, from_fans->ncolours);
    assert_true(classes->flows == fabric->ngpus * (fabric->ngpus - 1.0));
    assert_true(classes->flows == from_fans->flows);
    finish = malloc(n * sizeof *finish);
    end = run_whole(fabric->nlinks, capacity, &source, NULL, &nflows);
    assert_true(flow_classes_run(classes, finish, last, &error));
    compare(classes, finish, end, nflows, &source);
    assert_true(flow_classes_run(from_fans, finish, &again, &error));
    compare(from_fans, finish, end, nflows, &source);
    assert_close(again, *last, 1e-12);
    fabric->fans = fans;
    flow_classes_free(classes);
    flow_classes_free(from_fans);
    free(finish);
    free(end);
    return n;
}

/*
 * A fat tree of 4 ports and no taper: 16 GPUs. A GPU's link carries 15 flows, an edge
 * switch's up one flow of each of its 2 GPUs to every second of the 14 GPUs elsewhere,
 * 14: so all flows end at 15 S / B. There are three classes, by how high flows go. With 2
 * GPUs below each port an edge link carries as many as 4 * 28 / 2 = 56 flows, a GPU's 31.
 */
static void
test_tree(void **state)
{
    (void)state;
    for (uint32_t below = 1; below <= 2; below++) {
        struct fabric fabric = fabric_tree(4, below, 6);
        double *capacity = equal_links(fabric.nlinks, 3), last;
        assert_int_equal(check_fabric(&fabric, capacity, &last), 3);
        assert_close(last, (below == 1 ? 15 : 56) * 6 / 3.0, 1e-12);
        free(capacity);
        fabric_free(&fabric);
    }
}

/* One network whole, then with link `at` of each kind of link at half capacity, or
 * failed. */
static void
check_links(struct fabric *fabric, const uint32_t *at, int n)
{
    double *capacity = equal_links(fabric->nlinks, 50e9), whole, last;
    assert_true(check_fabric(fabric, capacity, &whole) <= 3);
    for (int i = 0; i < n; i++) {
        uint32_t classes;
        capacity[at[i]] = i == 1 ? 0 : 25e9;
        classes = check_fabric(fabric, capacity, &last);
        assert_true(classes > 3 && classes < 1000);
        assert_true(last >= whole * (1 - 1e-12));
        assert_true(isinf(last) == (i == 1));
        capacity[at[i]] = 50e9;
    }
    free(capacity);
    fabric_free(fabric);
}

/* A tree and rails of g GPUs: each of the first `kinds` kinds of their links. */
static void
check_size(struct fabric tree, struct fabric spine, struct fabric inside, int kinds)
{
    uint32_t g = tree.ngpus, half = tree.k / 2, edges = tree.k * half * half;
    const uint32_t of_tree[] = {2 * g + 1, 1, g + 5, 2 * g + edges + 3,
                                2 * g + 2 * edges + 7};
    const uint32_t of_rail[] = {2 * g + 9, 3 * g + 3, 1, g + 5, 4 * g + 7};
    assert_true(spine.ngpus == g && inside.ngpus == g);
    check_links(&tree, of_tree, kinds);
    check_links(&spine, of_rail, kinds);
    check_links(&inside, of_rail, kinds < 4 ? kinds : 4);
}

/* With links of every kind at half capacity, or failed. Runs of 256 GPUs take seconds. */
static void
test_links(void **state)
{
    (void)state;
    check_size(fabric_tree(4, 4, 1e6), fabric_rail(8, true, 4, 1e6),
               fabric_rail(8, false, 4, 1e6), 5);
    if (getenv("EVERY"))
        check_size(fabric_tree(8, 2, 1e6), fabric_rail(32, true, 16, 1e6),
                   fabric_rail(32, false, 16, 1e6), 2);
}

/* 256 GPUs on a tree, whole and with a link from an edge switch at half capacity; and
 * on a rail, whole. */
static void
test_256(void **state)
{
    struct fabric tree = fabric_tree(8, 2, 1e6), rail = fabric_rail(32, true, 16, 1e6);
    const uint32_t link[] = {2 * 256 + 1};
    (void)state;
    assert_true(tree.ngpus == 256 && rail.ngpus == 256);
    check_links(&tree, link, 1);
    check_links(&rail, NULL, 0);
}

/* ---- sources of the test's own --------------------------------------------------- */

struct list {
    const struct flow_route *route;
    size_t n, at;
    bool fickle; /* it gives a flow less each time */
};

static void
list_rewind(void *self)
{
    struct list *list = self;
    list->at = 0;
    list->n -= list->fickle;
}

static bool
list_next(void *self, struct flow_route *route)
{
    struct list *list = self;
    if (list->at == list->n)
        return false;
    *route = list->route[list->at++];
    return true;
}

#define VIA(...) \
    .link = (uint32_t[]){__VA_ARGS__}, .n = sizeof((uint32_t[]){__VA_ARGS__}) / 4

/*
 * Flows of two groups, with a delay, a weight, other bytes, a link crossed twice, and no
 * link. Links 0 and 1 carry the same flows, and are one colour.
 */
static void
test_list(void **state)
{
    const struct flow_route route[] = {
        {VIA(0, 2), .weight = 1, .bytes = 8},
        {VIA(1, 2), .weight = 1, .bytes = 8},
        {VIA(2, 0), .weight = 2, .bytes = 8, .group = 1},
        {VIA(1, 2), .weight = 2, .bytes = 8, .group = 1},
        {VIA(3, 3), .weight = 1, .bytes = 8},
        {.n = 0, .weight = 3, .bytes = 5},
        {VIA(2, 3), .weight = 1, .bytes = 3},
        {VIA(2, 3), .weight = 1, .bytes = 3, .delay = 4},
        {VIA(3), .weight = 1, .bytes = 0, .delay = 7},
    };
    const double capacity[] = {2, 2, 5, 1, 1};
    struct list list = {route, sizeof route / sizeof *route, 0, false};
    const struct flow_source source = {list_rewind, list_next, &list};
    struct flow_classes *classes = find(5, capacity, NULL, &source);
    double finish[8], last, *end;
    size_t nflows;
    (void)state;

    assert_int_equal(classes->n, 7);
    assert_int_equal(classes->ncolours, 4);
    assert_int_equal(classes->colour[0], classes->colour[1]);
    assert_true(classes->links[classes->colour[0]] == 2);
    assert_true(classes->flows == 13);
    assert_true(flow_classes_run(classes, finish, &last, &error));
    end = run_whole(5, capacity, &source, NULL, &nflows);
    compare(classes, finish, end, nflows, &source);
    assert_int_equal(flow_classes_of(classes, &(struct flow_route){VIA(4), .weight = 1}),
                     FLOW_NONE);
    assert_int_equal(flow_classes_of(classes, &(struct flow_route){VIA(9), .weight = 1}),
                     FLOW_NONE);
    free(end);
    flow_classes_free(classes);
}

/* No flow, no link. */
static void
test_nothing(void **state)
{
    struct list list = {NULL, 0, 0, false};
    const struct flow_source source = {list_rewind, list_next, &list};
    struct flow_classes *classes = find(0, NULL, NULL, &source);
    double last = 1;
    (void)state;
    assert_int_equal(classes->n, 0);
    assert_true(flow_classes_run(classes, NULL, &last, &error));
    assert_true(last == 0);
    flow_classes_free(classes);
}

/*
 * A link of a tree degrades while all flows are under way. Its label tells it apart, so
 * its capacity can be changed in the network of the classes, which ends as the whole one.
 */
static void
test_label(void **state)
{
    struct fabric fabric = fabric_tree(4, 2, 6);
    uint32_t *label = calloc(fabric.nlinks, sizeof *label), flow;
    double *capacity = equal_links(fabric.nlinks, 3), *finish, *end;
    const struct change change = {10, 1, 2 * 32 + 3};
    const struct flow_source source = fabric_source(&fabric);
    struct flow_classes *classes;
    struct flow_links *links;
    size_t nflows;
    (void)state;

    label[change.link] = 1;
    classes = find(fabric.nlinks, capacity, label, &source);
    assert_true(classes->n > 3);
    assert_true(classes->links[classes->colour[change.link]] == 1);
    links = flow_links_new(classes->ncolours, classes->capacity, &error);
    finish = calloc(classes->n, sizeof *finish);
    for (uint32_t i = 0; i < classes->n; i++) {
        const struct flow_class *class = &classes->of[i];
        const struct flow_spec spec = {i,           class->bytes, class->flows,
                                       class->link, class->n,     class->crossing};
        assert_true(flow_start(links, 0, &spec, &flow, &error));
    }
    assert_true(flow_advance(links, change.time, note_end, finish, &error));
    assert_true(flow_capacity(links, change.time, classes->colour[change.link],
                              change.capacity, &error));
    assert_true(flow_advance(links, INFINITY, note_end, finish, &error));
    fabric.fans = false;
    end = run_whole(fabric.nlinks, capacity, &source, &change, &nflows);
    compare(classes, finish, end, nflows, &source);
    flow_links_free(links);
    flow_classes_free(classes);
    fabric_free(&fabric);
    free(label);
    free(capacity);
    free(finish);
    free(end);
}

static void
refuse(struct flow_route route, const double *capacity, enum rec_code code,
       const char *text)
{
    struct list list = {&route, 1, 0, false};
    const struct flow_source source = {list_rewind, list_next, &list};
    assert_null(flow_classes_find(2, capacity, NULL, &source, 9, &error));
    assert_int_equal(error.code, code);
    assert_string_equal(error.text, text);
}

static void
test_refused(void **state)
{
    const double good[] = {1, 2}, bad[] = {1, NAN};
    const struct flow_route route[] = {{VIA(0), .weight = 1, .bytes = 1},
                                       {VIA(1), .weight = 1, .bytes = 1},
                                       {VIA(1), .weight = 1, .bytes = 1},
                                       {VIA(1), .weight = 1, .bytes = 1}};
    struct list list = {route, 4, 0, false};
    const struct flow_source source = {list_rewind, list_next, &list};
    (void)state;

    refuse(route[0], bad, REC_DATA,
           "link 1: the capacity must be a finite number >= 0, got nan");
    refuse((struct flow_route){VIA(0), .weight = 1, .bytes = -1}, good, REC_DATA,
           "a flow: the bytes must be a finite number >= 0, got -1");
    refuse((struct flow_route){VIA(0), .weight = 1, .bytes = 1, .delay = INFINITY}, good,
           REC_DATA, "a flow: the delay must be a finite number >= 0, got inf");
    refuse((struct flow_route){VIA(0), .bytes = 1}, good, REC_DATA,
           "a flow: the weight must be at least 1, got 0");
    refuse((struct flow_route){VIA(0, 2), .weight = 1}, good, REC_DATA,
           "a flow: there is no link 2, only 2 links");
    refuse((struct flow_route){VIA(0), .weight = 1, .fan = (uint32_t[]){1, 3}, .nfan = 2},
           good, REC_DATA, "a flow: there is no link 3, only 2 links");
    refuse((struct flow_route){VIA(0), .weight = 1, .fan = (uint32_t[]){1}, .nfan = 1,
                               .skip = 1, .nskip = 1},
           good, REC_DATA, "a fan: it skips links that it does not have");
    assert_null(flow_classes_find(2, good, NULL, &source, 1, &error));
    assert_int_equal(error.code, REC_NO);
    assert_string_equal(error.text,
                        "there are more than 1 classes of flows that are alike");
    list.fickle = true;
    assert_null(flow_classes_find(2, (double[]){1, 1}, NULL, &source, 9, &error));
    assert_int_equal(error.code, REC_BUG);
    assert_string_equal(error.text, "flows: a source gave 3 flows, then 2");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),    cmocka_unit_test(test_links),
        cmocka_unit_test(test_256),     cmocka_unit_test(test_list),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_label),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
