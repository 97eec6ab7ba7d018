/* Distributions of the reducer: exact while small, within their error when large. */
#include "unit.h"

#include "rampipe/metrics.h"

#include <math.h>

static void
add(struct metrics_dist *dist, double value)
{
    struct rec_error err;
    assert_true(metrics_dist_add(dist, value, &err));
}

/* 1 ... 5: mean 3, sample variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5; type 7: the p-quantile
 * of n values is at rank p (n - 1), so p95 is at 3.8: 4 + 0.8. */
static void
test_small(void **state)
{
    struct metrics_dist dist = {0};
    (void)state;
    for (int i = 5; i >= 1; i--)
        add(&dist, i);
    assert_near(dist.mean, 3, 1e-15);
    assert_near(metrics_dist_deviation(&dist), sqrt(2.5), 1e-15);
    assert_near(metrics_dist_quantile(&dist, 0.5), 3, 1e-15);
    assert_near(metrics_dist_quantile(&dist, 0.95), 4.8, 1e-14);
    assert_true(metrics_dist_quantile(&dist, 0) == 1 && dist.least == 1);
    assert_true(metrics_dist_quantile(&dist, 1) == 5 && dist.most == 5);
    metrics_dist_free(&dist);
}

/* In 6 bins of equal ratio, those beside each other of values that have equal ratios:
 * zeros in a bin before them, the others by sixths, each within what one bucket holds. */
static void
check_bins(struct metrics_dist *dist, uint64_t zeros, uint64_t others)
{
    struct metrics_bin *bin;
    struct rec_error err;
    uint64_t seen = 0;
    size_t n;
    assert_true(metrics_dist_bins(dist, 6, &bin, &n, &err) && n == 7);
    assert_true(bin[0].n == zeros && bin[0].lower == 0 && bin[0].upper == 0);
    for (size_t i = 1; i < n; i++) {
        assert_true(fabs((double)bin[i].n / (double)others * 6 - 1) < 1e-4);
        assert_true(i == 1 || bin[i].lower == bin[i - 1].upper);
        assert_near(log(bin[i].upper / bin[i].lower) / log(dist->most / bin[1].lower),
                    1.0 / 6, 1e-12);
        seen += bin[i].n;
    }
    assert_true(seen == others && bin[n - 1].upper == dist->most);
    free(bin);
}

/* A value at an edge is in the bin below it; of equal values there is one bin, of none
 * none. */
static void
test_bins(void **state)
{
    struct metrics_dist dist = {0};
    struct metrics_bin *bin;
    struct rec_error err;
    size_t n;
    (void)state;
    assert_true(metrics_dist_bins(&dist, 2, &bin, &n, &err) && n == 0 && !bin);
    add(&dist, 4);
    add(&dist, 4);
    assert_true(metrics_dist_bins(&dist, 9, &bin, &n, &err) && n == 1);
    assert_true(bin[0].lower == 4 && bin[0].upper == 4 && bin[0].n == 2);
    free(bin);
    add(&dist, 1); /* edges 1, 2, 4 */
    add(&dist, 2);
    add(&dist, 2.0625);
    assert_true(metrics_dist_bins(&dist, 2, &bin, &n, &err) && n == 2);
    assert_near(bin[0].upper, 2, 1e-15);
    assert_true(bin[0].n == 2 && bin[1].n == 3);
    free(bin);
    metrics_dist_free(&dist);
}

/* A million values of 18 orders of magnitude, zeros among them. */
static void
test_large(void **state)
{
    enum { MANY = 1000000 };
    struct metrics_dist dist = {0};
    double sum = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        double value =
            i % 10 == 0 ? 0 : exp(41.4 * (double)((i * 7919LL) % MANY) / MANY - 20);
        add(&dist, value);
        sum += value;
    }
    assert_true(dist.n == MANY && !dist.value);
    check_bins(&dist, MANY / 10, 9 * MANY / 10);
    assert_true(fabs(dist.mean - sum / MANY) <= 1e-9 * dist.mean);
    /* the value of rank r is exp(41.4 r' / MANY - 20) up to the spacing of 4e-5 */
    for (double p = 0.15; p < 1; p += 0.05) {
        double want, got = metrics_dist_quantile(&dist, p);
        size_t rank = (size_t)(p * (MANY - 1)), below = 0;
        for (int i = 0; i < MANY; i++)
            below += i % 10 != 0;
        /* ranks of the values that are not 0 start behind the zeros */
        want = exp(41.4 * (double)(rank - (MANY - below)) / (double)below - 20);
        assert_true(fabs(got / want - 1) < METRICS_ERROR + 41.4 * 20 / MANY);
    }
    assert_true(metrics_dist_quantile(&dist, 0.05) == 0);
    assert_true(metrics_dist_quantile(&dist, 1) <= dist.most);
    assert_true(dist.nbuckets < 300000); /* memory does not grow with the values */
    metrics_dist_free(&dist);
}

/* The switch from values to buckets loses nothing. */
/* Values that fall and fall are not moved each time: how often room is made in front. */
static void
test_falling(void **state)
{
    struct metrics_dist dist = {0};
    size_t moved = 0;
    (void)state;
    for (size_t i = 0; i < METRICS_EXACT; i++)
        add(&dist, 1000);
    for (size_t i = 0; i < 30000; i++) {
        int64_t first = dist.first;
        add(&dist, 1000 * pow(1 + METRICS_ERROR, -(double)i));
        moved += dist.first != first;
    }
    assert_in_range(moved, 1, 200);
    assert_true(dist.nbuckets < 40000);
    metrics_dist_free(&dist);
}

static void
test_switch(void **state)
{
    struct metrics_dist dist = {0};
    uint64_t counted = 0;
    (void)state;
    for (int i = 0; i <= METRICS_EXACT; i++)
        add(&dist, 1 + i % 100);
    counted = dist.zeros;
    for (size_t i = 0; i < dist.nbuckets; i++)
        counted += dist.bucket[i];
    assert_true(counted == dist.n && dist.n == METRICS_EXACT + 1);
    assert_near(metrics_dist_quantile(&dist, 0.5), 50, 50 * METRICS_ERROR + 1);
    metrics_dist_free(&dist);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small), cmocka_unit_test(test_bins),
        cmocka_unit_test(test_large), cmocka_unit_test(test_falling),
        cmocka_unit_test(test_switch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
