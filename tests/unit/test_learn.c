/* The evolution strategy, features of alternatives, scorers. */
#include "graphs.h"
#include "published.h"

#include "rampipe/learn.h"

/* ---- the evolution strategy -------------------------------------------------------- */

enum { MOST = 16 };

/* Scales a million apart, turned: the ellipsoid that needs a covariance. */
static double
ellipsoid(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        double y = x[i] - 1 + (i > 0 ? 0.5 * (x[i - 1] - 1) : 0);
        sum += pow(1e6, (double)i / (n - 1)) * y * y;
    }
    return sum;
}

/* A curved valley; from 0 the way to (1, 1, ...) follows it (Rosenbrock 1960). */
static double
valley(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        sum += 100 * pow(x[i + 1] - x[i] * x[i], 2) + pow(1 - x[i], 2);
    return sum;
}

static uint64_t
minimise(double (*f)(const double *, uint32_t), uint32_t n, double found[MOST])
{
    static const double start[MOST];
    double value[100];
    struct rec_error err;
    struct learn_cma *cma = learn_cma_new(start, n, 0.5, 0, 1, &err);
    uint32_t population = learn_cma_population(cma);
    uint64_t calls = 0;
    while (f(learn_cma_mean(cma), n) > 1e-10 && calls < 100000) {
        const double *x = learn_cma_ask(cma);
        for (uint32_t k = 0; k < population; k++)
            value[k] = f(x + (size_t)k * n, n);
        learn_cma_tell(cma, value);
        calls += population;
    }
    memcpy(found, learn_cma_mean(cma), n * sizeof *found);
    learn_cma_free(cma);
    return calls;
}

/* Hansen's tutorial has 6e3 calls for the ellipsoid and 8e3 for the valley in 10
 * dimensions, to 1e-10, about; without a covariance the ellipsoid takes over 1e6. */
static void
test_minimiser(void **state)
{
    double found[MOST];
    (void)state;
    assert_in_range(minimise(ellipsoid, 10, found), 1000, 12000);
    for (int i = 0; i < 10; i++)
        assert_true(fabs(found[i] - 1) < 1e-4);
    assert_in_range(minimise(valley, 10, found), 1000, 20000);
    for (int i = 0; i < 10; i++)
        assert_true(fabs(found[i] - 1) < 1e-3);
}

/* ---- features ---------------------------------------------------------------------- */

/* A chooser that notes the features of alternative `noted` of the last job. */
struct noting {
    uint32_t take;
    double feature[2][ALLOC_FEATURES];
    bool can[2];
};

static bool
note(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    struct noting *noting = self;
    for (uint32_t i = 0; i < 2; i++) {
        const struct alloc_alternative *a = alloc_question_try(q, i, err);
        assert_non_null(a);
        noting->can[i] = !a->cause;
        if (!a->cause)
            assert_true(alloc_question_features(q, i, noting->feature[i], err));
    }
    *choice = noting->take;
    return true;
}

static const struct alloc_chooser noter = {
    .name = "note", .observes = true, .decide = note};

static bool
ignore(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    (void)context, (void)decision, (void)err;
    return true;
}

static double
feature(const double *x, const char *name)
{
    for (int i = 0; i < ALLOC_FEATURES; i++)
        if (strcmp(alloc_features[i].name, name) == 0)
            return x[i];
    fail_msg("there is no feature %s", name);
    return 0;
}

/*
 * A rack of 4 servers. Graph one: an op of 8 s on one server; graph two: its halves, 4 s
 * on two. Job a comes at 0 (2 steps, 16 s of work, deadline 32) and takes two servers
 * until 8. Job b comes at 4: W = 16, ia = 4, N = 4, so l = ln(16 / (4 * 4)) / 2 = 0. f =
 * 2 are free.
 *   one: n = 1, t = 16: left (2-1)/4, work 16/16, completion ln(1 + 16/4)/2, slack 16/32
 *   two: n = 2, t = 8:  left 0,       work 16/16, completion ln(1 + 8/4)/2,  slack 8/32
 * a ends in 4 = ia: 2 servers within ia; it outlasts neither. Of the three blocks of two
 * servers in a row (0-1, 1-2, 2-3) that which is left, 2-3, is free now: none after two,
 * none after one, which takes server 2. Once a has ended: 0-1 is, of all 4 none.
 */
static void
test_features(void **state)
{
    struct graph_store store = {.graph = NULL};
    struct noting noting = {.take = 1};
    struct alloc_choosing choosing = {.chooser = &noter, .self = &noting};
    const struct net_ramp cluster = RAMP(1, 1, 4, 10);
    struct alloc_admission_options options = {
        .placer = {.net = &cluster.net, .kind = place_kinds[0]}, .choosing = &choosing};
    double regime[ALLOC_REGIME];
    struct graph_job a = {
        .id = rec_str("a"), .graphs = rec_str("one,two"), .steps = 2, .deadline = 32};
    struct graph_job b = a, c = a;
    struct rec_error err = {.text = ""};
    struct alloc_admission *admission;
    const double *one = noting.feature[0], *two = noting.feature[1];
    char *text = tabs("graph one m\nop one x forward 8 0\n"
                      "graph two m\nop two xa forward 4 0 of=x part=1/2\n"
                      "op two xb forward 4 0 of=x part=2/2\n");
    struct rec_reader *reader = open_text(text);
    struct rec rec;
    (void)state;
    while (rec_next(reader, &rec, &err) > 0) {
        assert_true(rec_continues(&rec, REC_GRAPH) || graph_store_end(&store, &err));
        assert_true(graph_store_read(&store, reader, &rec, &err));
    }
    assert_true(graph_store_end(&store, &err));
    close_text(reader);
    free(text);

    admission = alloc_admission_new(&options, &store, ignore, NULL, &err);
    assert_true(alloc_admission_arrive(admission, &a, &err));
    /* of the first job ia = W / N: load 1, all is free */
    assert_near(feature(two, "completion"), log(1 + 8 / (16. / 4)) / 2);
    assert_same(feature(two, "load"), 0);
    assert_same(feature(two, "remaining"), 0);
    b.id = rec_str("b");
    b.arrival = 4;
    assert_true(alloc_admission_advance(admission, &b, &err));
    assert_true(alloc_admission_arrive(admission, &b, &err));
    assert_true(noting.can[0] && noting.can[1]);
    assert_same(feature(one, "one"), 1);
    assert_same(feature(one, "servers"), 0.25);
    assert_same(feature(two, "servers"), 0.5);
    assert_near(feature(one, "completion"), log(5) / 2);
    assert_near(feature(two, "completion"), log(3) / 2);
    assert_same(feature(one, "work"), 1);
    assert_same(feature(two, "overhead"), 1);
    assert_same(feature(one, "left"), 0.25);
    assert_same(feature(two, "left"), 0);
    assert_same(feature(one, "slack"), 0.5);
    assert_same(feature(two, "slack"), 0.25);
    assert_same(feature(one, "fraction"), 2);
    assert_same(feature(one, "size"), 0);
    assert_same(feature(one, "load"), 0);
    assert_same(feature(one, "widest"), 0);
    assert_same(feature(two, "widest"), 1);
    assert_same(feature(one, "narrowest"), 1);
    assert_same(feature(one, "full"), 0.5);
    assert_same(feature(one, "ending"), 0.5);
    assert_near(feature(one, "remaining"), log(2) / 2);
    assert_same(feature(one, "outlast"), 0);
    assert_near(feature(one, "block"), log(2) / log(5)); /* one server */
    assert_same(feature(two, "block"), 0);
    assert_near(feature(one, "block-1"), log(3) / log(5)); /* servers 0 and 1 */
    assert_near(feature(two, "block-1"), log(3) / log(5));
    assert_near(feature(two, "block-3"), 1); /* itself has ended, too: all */
    assert_same(feature(one, "free-1"), 0.75);
    assert_same(feature(two, "free-1"), 0.5);
    assert_same(feature(two, "free-9"), 1);
    assert_same(feature(one, "share-8"), 0); /* of two servers, half of the rack */
    assert_near(feature(two, "height"), log(3) / log(5));
    assert_near(feature(two, "height2"), pow(log(3) / log(5), 2));
    /* both need a speed-up of 16/32, and differ in nothing; two are imagined before
     * them */
    assert_near(feature(two, "need"), (0.24 + 2 * (log(1.5) / log(5) - 1. / 3)) / 4);
    assert_near(feature(two, "need-height"), feature(two, "need") * log(3) / log(5));
    assert_near(feature(two, "spread"), sqrt(0.08 / 4) - 0.2);
    /* one time between jobs, which is the mean: Q = G = 1 */
    assert_near(feature(two, "variation"), sqrt(3.5 / 3 - 1) - 1);
    /* job c, when both have ended, must be twice as fast; its fraction is 8/16, not 2 */
    c.id = rec_str("c");
    c.arrival = 20;
    c.deadline = 8;
    assert_true(alloc_admission_advance(admission, &c, &err));
    assert_true(alloc_admission_arrive(admission, &c, &err));
    assert_near(feature(two, "need"), (0.24 + (2 * log(1.5) + log(3)) / log(5) - 1) / 5);
    /* 2, 2 and 1/2, whose mean is 3/2: D = 1/4 + 1/4 + 1 */
    assert_near(feature(two, "spread"), sqrt((1.5 + 0.08) / 5) - 0.2);
    assert_near(feature(two, "spread-height2"),
                feature(two, "spread") * pow(log(3) / log(5), 2));
    /* 4 and 16 s between jobs: Q = (4^2 + 16^2) / 10^2 */
    assert_near(feature(two, "variation"), sqrt(5.22 / 4 - 1) - 1);
    alloc_admission_regime(admission, regime);
    for (int i = 0; i < ALLOC_REGIME; i++)
        assert_near(regime[i], two[alloc_regime[i].feature]);
    alloc_admission_free(admission);
    graph_store_free(&store);
}

/* ---- scorers ----------------------------------------------------------------------- */

/* One unit: 2 * x0 + 3 * tanh(0.5 * x1). */
static void
test_scorer(void **state)
{
    struct rec_error err;
    struct alloc_scorer *scorer = alloc_scorer_new(1, 1, &err);
    double x[ALLOC_FEATURES] = {0.25, 1.5}, *weight;
    (void)state;
    assert_int_equal(alloc_scorer_size(1), 2 * ALLOC_FEATURES + 1);
    weight = scorer->expert[0].weight;
    weight[0] = 2;
    weight[ALLOC_FEATURES + 1] = 0.5;
    weight[2 * ALLOC_FEATURES] = 3;
    assert_near(alloc_scorer_score(scorer, 1, x), 0.5 + 3 * rng_tanh(0.75));
    x[1] = -1.5;
    assert_near(alloc_scorer_score(scorer, 1, x), 0.5 - 3 * rng_tanh(0.75));
    alloc_scorer_free(scorer);
}

/* Two experts, which differ in load by its unit and in need by twice its own: where load
 * is x units and need y of them away from the first, it is nearer by (x - 1)^2 + (y -
 * 2)^2 - x^2 - y^2 = 5 - 2x - 4y > 0; and of equally near ones the first. */
static void
test_experts(void **state)
{
    struct rec_error err;
    struct alloc_scorer *scorer = alloc_scorer_new(0, 2, &err);
    const int load = alloc_regime[0].feature, need = alloc_regime[1].feature;
    (void)state;
    scorer->expert[0].weight[0] = 1;
    scorer->expert[1].weight[0] = 2;
    scorer->expert[1].center[0] = alloc_regime[0].unit;
    scorer->expert[1].center[1] = 2 * alloc_regime[1].unit;
    for (int k = 0; k < 16; k++) {
        double at[2] = {k / 4 - 1., k % 4 - 1.}, x[ALLOC_FEATURES] = {1};
        x[load] = at[0] * alloc_regime[0].unit;
        x[need] = at[1] * alloc_regime[1].unit;
        assert_near(alloc_scorer_score(scorer, 1, x),
                    5 - 2 * at[0] - 4 * at[1] > 0 ? 1 : 2);
    }
    alloc_scorer_free(scorer);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimiser),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_scorer),
        cmocka_unit_test(test_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
