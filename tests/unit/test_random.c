/* Generators: seeds and streams. Distributions: moments within four standard errors,
 * shapes by Kolmogorov and Smirnov. */
#include "unit.h"

#include "rampipe/random.h"

#include <gsl/gsl_cdf.h>
#include <float.h>
#include <math.h>

enum { N = 100000 };
static double sample[N];

static void
draw(const char *text)
{
    struct rec_error err;
    struct rng_dist *dist = rng_dist_new(text, 7, 1, &err);
    assert_non_null(dist);
    for (int i = 0; i < N; i++)
        sample[i] = rng_dist_draw(dist);
    rng_dist_free(dist);
}

/* The mean of N draws has the standard error sd / sqrt(N); the variance's is taken from
 * the sample's fourth moment. */
static void
check_moments(const char *text, double mean, double sd)
{
    double m = 0, v = 0, fourth = 0;
    draw(text);
    for (int i = 0; i < N; i++)
        m += sample[i] / N;
    for (int i = 0; i < N; i++) {
        double square = (sample[i] - m) * (sample[i] - m);
        v += square / (N - 1);
        fourth += square * square / N;
    }
    assert_true(fabs(m - mean) <= 4 * sd / sqrt(N) + 1e-12);
    assert_true(fabs(v - sd * sd) <= 4 * sqrt(fmax(0, fourth - v * v) / N) + 1e-12);
}

static void
test_moments(void **state)
{
    (void)state;
    check_moments("fixed:3.5", 3.5, 0);
    check_moments("uniform:2:8", 5, 6 / sqrt(12));
    check_moments("exponential:4", 4, 4);
    check_moments("gamma:10:0.5", 10, 5);
    check_moments("gamma:10:1.5", 10, 15);
    check_moments("normal:50:5", 50, 5); /* ten deviations from 0: nothing is redrawn */
    check_moments("lognormal:10:3", 10, 3);
    /* 0.2 * 1 + 0.3 * 2 + 0.5 * 4 = 2.8; 0.2 + 1.2 + 8 - 2.8^2 = 1.56 */
    check_moments("pmf:1=0.2,2=0.3,4=0.5", 2.8, sqrt(1.56));
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The largest distance to the cdf; 1.95 / sqrt(N) is exceeded with probability 0.001. */
static void
check_cdf(const char *text, double (*cdf)(double))
{
    double most = 0;
    draw(text);
    qsort(sample, N, sizeof *sample, compare);
    for (int i = 0; i < N; i++) {
        double p = cdf(sample[i]);
        most = fmax(most, fmax(fabs(p - (double)i / N), fabs(p - (double)(i + 1) / N)));
    }
    assert_true(most < 1.95 / sqrt(N));
}

static double
exponential_cdf(double x)
{
    return gsl_cdf_exponential_P(x, 4);
}

/* mean 10, CV 2: shape 1/4, scale 40 */
static double
gamma_cdf(double x)
{
    return gsl_cdf_gamma_P(x, 0.25, 40);
}

static double
uniform_cdf(double x)
{
    return gsl_cdf_flat_P(x, 2, 8);
}

/* normal:1:1 truncated at 0 */
static double
truncated_cdf(double x)
{
    double below = gsl_cdf_ugaussian_P(-1);
    return (gsl_cdf_ugaussian_P(x - 1) - below) / (1 - below);
}

/* Shape 0 is the normal: z in +-3.0902 (99.8 %) mapped to [0, 1]. */
static double
skew0_cdf(double x)
{
    return (gsl_cdf_ugaussian_P(3.090232306 * (2 * x - 1)) - 0.001) / 0.998;
}

static void
test_shapes(void **state)
{
    (void)state;
    check_cdf("exponential:4", exponential_cdf);
    check_cdf("gamma:10:2", gamma_cdf);
    check_cdf("uniform:2:8", uniform_cdf);
    check_cdf("normal:1:1", truncated_cdf);
    check_cdf("skewnormal:0:0:1", skew0_cdf);
}

static void
test_skew(void **state)
{
    double low = 0, high = 0;
    (void)state;
    draw("skewnormal:8:10:20"); /* skewed to the right: more than half below the middle */
    for (int i = 0; i < N; i++) {
        assert_true(sample[i] >= 10 && sample[i] <= 20);
        low += sample[i] < 15;
    }
    draw("skewnormal:-8:10:20");
    for (int i = 0; i < N; i++)
        high += sample[i] > 15;
    assert_true(low > 0.8 * N && high > 0.8 * N);
    /* in the limit half a normal |z|, of which [0.0012533, 3.2905267] is mapped to [0,
     * 1] */
    check_moments("skewnormal:1e4:0:1", 0.241594, 0.181342);
    check_moments("skewnormal:1e154:0:1", 0.241594, 0.181342);
}

static void
test_rounding_and_files(void **state)
{
    static const double expected[] = {1, 2.5, 4};
    struct rec_error err;
    struct rng_dist *dist;
    (void)state;
    draw("uniform:0:1:2");
    for (int i = 0; i < N; i++)
        assert_true(sample[i] == round(sample[i] * 100) / 100);
    write_file("values", "# three\n1\n2.5\n\n4\n", 17);
    dist = rng_dist_new("file:values", 1, 1, &err);
    assert_non_null(dist);
    for (int i = 0; i < 7; i++)
        assert_true(rng_dist_draw(dist) == expected[i % 3]);
    rng_dist_free(dist);
}

static void
test_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "5",
                                      "fixed",
                                      "fixed:",
                                      "fixed:x",
                                      "fixed:1:2",
                                      "fixed:inf",
                                      "uniform:1",
                                      "uniform:2:1",
                                      "uniform:0:1:1.5",
                                      "gamma:1:0",
                                      "gamma:1:1e155",
                                      "gamma:1:1e-200",
                                      "lognormal:1:1e155",
                                      "lognormal:1e-200:1e200",
                                      "normal:-1:1",
                                      "lognormal:0:1",
                                      "skewnormal:1:2:2",
                                      "pmf:",
                                      "pmf:1",
                                      "pmf:1=1,2=0.1",
                                      "pmf:-1=1",
                                      "pmf:1=-1,2=2",
                                      "weird:1"};
    struct rec_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(rng_dist_new(bad[i], 1, 1, &err));
        assert_int_equal(err.code, REC_USAGE);
    }
    assert_null(rng_dist_new("file:nowhere", 1, 1, &err));
    assert_int_equal(err.code, REC_IO);
}

/* Of two generators' first numbers none is equal by chance but once in 2^32. */
static bool
same_start(uint32_t seed, uint32_t stream, uint32_t other_seed, uint32_t other_stream)
{
    struct rec_error err;
    struct rng *a = rng_new(seed, stream, &err);
    struct rng *b = rng_new(other_seed, other_stream, &err);
    bool same = true;
    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < 4; i++)
        same = rng_uniform(a) == rng_uniform(b) && same;
    rng_free(a);
    rng_free(b);
    return same;
}

/*
 * Seeds of one stream start sequences of their own. GSL takes the state 0 for 4357, the
 * Mersenne Twister's own default is 5489. In stream k the state is seed * c ^ k * d, so
 * s and s + 1/c (mod 2^32) have states that differ by 1: 1/c = 0xe8b2f51, for 0xe8b2f51
 * * 0x9e3779b1 = 1 (mod 2^32).
 */
static void
test_seeds(void **state)
{
    (void)state;
    for (uint32_t stream = 0; stream < 5; stream++) {
        assert_true(same_start(7, stream, 7, stream));
        assert_false(same_start(7, stream, 7, stream + 1));
        assert_false(same_start(0, stream, 4357, stream));
        assert_false(same_start(0, stream, 5489, stream));
        assert_false(same_start(0, stream, 1, stream));
        assert_false(same_start(5, stream, 5 + 0xe8b2f51u, stream));
    }
}

/* Of a result y: its distance to the true value, in units in the last place of that. Long
 * double has 11 bits more. */
static double
error_of(double y, long double truth)
{
    int e;
    frexp((double)truth, &e);
    return (double)fabsl((y - truth) / ldexpl(1, e - DBL_MANT_DIG));
}

/* Logarithms from everywhere, and of 1 - tiny; powers that neither vanish nor
 * overflow. */
static void
test_functions(void **state)
{
    struct rec_error err;
    struct rng *rng = rng_new(1, 0, &err);
    (void)state;
    assert_non_null(rng);
    for (int i = 0; i < 200000; i++) {
        double u = rng_uniform(rng) + 0x1p-33, v = rng_uniform(rng), x, y;
        x = i % 3 == 0   ? u
            : i % 3 == 1 ? exp(1400 * (u - 0.5))
                         : 1 - ldexp(u, -i % 50 - 1);
        assert_true(error_of(rng_log(x), logl(x)) < 0.501);
        assert_true(error_of(rng_log1p(x), log1pl(x)) < 1);
        assert_true(error_of(rng_log1p(ldexp(u, -60)), log1pl(ldexpl(u, -60))) < 1);
        y = (v - 0.5) * (i % 2 ? 1400 : 4);
        assert_true(error_of(rng_exp(y), expl(y)) < 0.501);
        assert_true(fabsl(rng_tanh(y) - tanhl(y)) < 3e-8L);
        assert_true(fabs(rng_tanh(y)) <= 1 && rng_tanh(-y) == -rng_tanh(y));
        y = 4 * v;
        assert_true(error_of(rng_pow(-rng_log(u), y), powl(-rng_log(u), y)) < 0.6);
    }
    for (int i = 0; i < 200000; i++) { /* every octant, and near to whole numbers */
        double u = rng_uniform(rng), x = i % 4 < 3 ? 8 * u - 4 : 1 + ldexp(u, -i % 50);
        long double r = fmodl(x, 2), near = roundl(r);
        long double truth = sinl(acosl(-1) * (r - near)) * (fmodl(near, 2) != 0 ? -1 : 1);
        assert_true(error_of(rng_sinpi(x), truth) < 0.8);
    }
    rng_free(rng);
    assert_true(rng_sinpi(0.5) == 1 && rng_sinpi(-2.5) == -1 && rng_sinpi(7) == 0);
    assert_true(rng_sinpi(1e300) == 0 && isnan(rng_sinpi(INFINITY)));
    assert_true(rng_log(0) == -INFINITY && rng_log(1) == 0 &&
                rng_log(INFINITY) == INFINITY);
    assert_true(rng_exp(0) == 1 && rng_exp(-1e300) == 0 && rng_exp(1e300) == INFINITY);
    assert_true(rng_pow(0, 2) == 0 && rng_pow(2, 1e300) == INFINITY);
    assert_true(rng_pow(1, 1e308) == 1 && rng_pow(7, 0) == 1 && rng_pow(2, -1e300) == 0);
    assert_true(isnan(rng_log(-1)) && isnan(rng_exp(NAN)) && isnan(rng_pow(2, NAN)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),  cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_skew),     cmocka_unit_test(test_rounding_and_files),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
