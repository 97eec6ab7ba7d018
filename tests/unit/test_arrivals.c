/* Arrivals: spacings, rates that change, files. Draws against closed forms within five
 * standard errors; evenly spaced ones against the integral of the rate itself. */
#include "unit.h"

#include "rampipe/random.h"

enum { N = 100000 };
static double at[N];
static struct rec_error err;

/* The first N, or as many as come before a time; how many. */
static int
draw(const struct rng_arrivals_options *options, double until)
{
    struct rng_arrivals *arrivals = rng_arrivals_new(options, &err);
    int n = 0, status = 1;
    assert_non_null(arrivals);
    while (n < N && (status = rng_arrivals_next(arrivals, &at[n], &err)) > 0 &&
           at[n] < until) {
        assert_true(n == 0 || at[n] >= at[n - 1]);
        n++;
    }
    assert_true(status >= 0);
    rng_arrivals_free(arrivals);
    return n;
}

/* Mean 1/rate, variance (cv/rate)^2. */
static void
test_spacings(void **state)
{
    static const double cvs[] = {0.3, 1, 4};
    (void)state;
    for (size_t i = 0; i < sizeof cvs / sizeof *cvs; i++) {
        double m = 0, v = 0, fourth = 0, sd = cvs[i] / 50;
        draw(&(struct rng_arrivals_options){.cv = cvs[i], .rate = 50, .seed = 3},
             INFINITY);
        assert_true(at[0] == 0);
        m = at[N - 1] / (N - 1);
        assert_near(m, 1.0 / 50, 5 * sd / sqrt(N));
        for (int k = 1; k < N; k++) {
            double square = (at[k] - at[k - 1] - m) * (at[k] - at[k - 1] - m);
            v += square / (N - 2);
            fourth += square * square / (N - 1);
        }
        assert_near(v, sd * sd, 5 * sqrt((fourth - v * v) / N));
    }
    draw(&(struct rng_arrivals_options){.cv = 0, .rate = 30}, INFINITY);
    for (int k = 0; k < N; k++)
        assert_true(at[k] == k / 30.0); /* nothing adds up */
    draw(&(struct rng_arrivals_options){.spacing = "fixed:0.5", .rate = 1}, INFINITY);
    assert_true(at[7] == 3.5);
}

/* The integral of rate (1 + A sin(2 pi t / P)). */
static double
integral(double rate, double amplitude, double period, double t)
{
    return rate *
           (t + amplitude * period / (2 * M_PI) * (1 - cos(2 * M_PI * t / period)));
}

static void
test_sinusoid(void **state)
{
    static const char *const texts[] = {"0:3", "0.5:3", "1:3"};
    int n;
    double quarter[4] = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        draw(
            &(struct rng_arrivals_options){
                .cv = 0, .rate = 1234, .change = "sinusoid", .change_text = texts[i]},
            INFINITY);
        for (int k = 0; k < N; k++)
            assert_near(integral(1234, i / 2.0, 3, at[k]), k, 1e-13 * k + 1e-12);
    }
    n = draw(
        &(struct rng_arrivals_options){
            .cv = 1, .rate = 1000, .change = "sinusoid", .change_text = "0.8:4"},
        80);
    for (int k = 0; k < n; k++)
        quarter[(int)fmod(at[k], 4)]++;
    for (int i = 0; i < 4; i++) {
        double mean = 20 * (integral(1000, 0.8, 4, i + 1) - integral(1000, 0.8, 4, i));
        assert_near(quarter[i], mean, 5 * sqrt(mean));
    }
}

/* Evenly spaced: 4 at 10/s from 1 s on, none for a second, then 2/s, then none for
 * ever. */
static void
test_piecewise(void **state)
{
    static const double expected[] = {1, 1.1, 1.2, 1.3, 2.4, 2.9, 3.4};
    struct rng_arrivals_options options = {
        .rate = 1, .change = "piecewise", .change_text = "0:0,1:10,1.4:0,2.4:2,3.9:0"};
    int n;
    double steps[3] = {0};
    (void)state;
    assert_int_equal(draw(&options, INFINITY), 7);
    for (int i = 0; i < 7; i++)
        assert_near(at[i], expected[i], 1e-12);
    options.change_text = "0:1000,10:200,30:4000";
    options.cv = 1;
    n = draw(&options, 40);
    for (int k = 0; k < n; k++)
        steps[at[k] < 10 ? 0 : at[k] < 30 ? 1 : 2]++;
    assert_near(steps[0], 10000, 5 * 100);
    assert_near(steps[1], 4000, 5 * 63.2);
    assert_near(steps[2], 40000, 5 * 200);
}

/*
 * Means of 1 s on and 3 s off: the share of on is p = 1/4, the mean rate is p R + (1 - p)
 * r. Evenly spaced queries count the integral of the rate, whose variance grows by 2 (R -
 * r)^2 p (1 - p) / (1/1 + 1/3) a second. In a cycle of 4 s there is one time off; at R =
 * 20 and r = 0 a spacing of more than 0.2 s is one, and of them exp(-0.2/3), 94 %, are so
 * long, if fewer than 1/20 s of on do not join two: 5 %.
 */
static void
test_on_off(void **state)
{
    static const double off_rates[] = {0, 8};
    static const char *const texts[] = {"1:3", "1:3:8"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        double r = off_rates[i], mean = (20 + 3 * r) / 4, until = 8000, bursts = 0;
        double sd = sqrt(2 * (20 - r) * (20 - r) * 3 / 16 / (4.0 / 3) * until);
        int n = draw(
            &(struct rng_arrivals_options){
                .cv = 0, .rate = 20, .change = "on-off", .change_text = texts[i]},
            until);
        assert_near(n, mean * until, 5 * sd);
        for (int k = 1; k < n; k++)
            bursts += at[k] - at[k - 1] > 0.2;
        if (i == 0)
            assert_near(bursts, until / 4 * exp(-0.2 / 3) * 0.95,
                        0.05 * until / 4 + 5 * sqrt(10.0 / 16 * until / 4));
        else
            assert_true(bursts == 0);
    }
}

static void
write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void
test_file(void **state)
{
    struct rng_arrivals_options options = {.file = "deltas", .rate = 1000};
    (void)state;
    write_text("deltas", "0.1\n# what\n\n0.2\n0\n3e2");
    assert_int_equal(draw(&options, INFINITY), 5);
    assert_true(at[0] == 0 && at[1] == 0.1 / 1000 && at[2] == (0.1 + 0.2) / 1000 &&
                at[3] == at[2] && at[4] == (0.1 + 0.2 + 3e2) / 1000);
    options.speed_up = 3;
    assert_int_equal(draw(&options, INFINITY), 5);
    assert_true(at[2] == (0.1 / 3 + 0.2 / 3) / 1000);
}

/* How many arrive before the file is wrong, and what is said then. */
static void
check_bad(const char *text, int n, const char *message)
{
    struct rng_arrivals *arrivals;
    double time;
    int status = -1;
    write_text("bad", text);
    arrivals =
        rng_arrivals_new(&(struct rng_arrivals_options){.file = "bad", .rate = 1}, &err);
    while (arrivals && (status = rng_arrivals_next(arrivals, &time, &err)) > 0)
        n--;
    assert_int_equal(status, -1);
    assert_int_equal(n, 0);
    assert_int_equal(err.code, REC_DATA);
    if (!strstr(err.text, message))
        fail_msg("%s", err.text);
    rng_arrivals_free(arrivals);
}

static void
test_bad_files(void **state)
{
    (void)state;
    check_bad("# none\n", 0, "the file has no inter-arrival times");
    check_bad("-1\n", 0, "bad:1: an inter-arrival time must be a number >= 0, got '-1'");
    check_bad("1\n2\nnan\n", 3, "bad:3: an inter-arrival time must be");
    check_bad("1\ninf\n", 2, "bad:2: an inter-arrival time must be");
    check_bad("1\n1 2\n", 2, "bad:2: an inter-arrival time must be");
    check_bad("1e308\n1e308\n", 2, "bad:2: the inter-arrival times sum to more than");
}

static void
test_refused(void **state)
{
    static const char *const bad[][2] = {
        {"on-off", "1"},           {"on-off", "1:0"},
        {"on-off", "0:1"},         {"on-off", "1:1:-1"},
        {"on-off", "1:1:1:1"},     {"on-off", "1e-4:1e-4:1"},
        {"on-off", "1:x"},         {"on-off", "1:inf"},
        {"sinusoid", "1.1:5"},     {"sinusoid", "-0.1:5"},
        {"sinusoid", "1"},         {"sinusoid", "1:0"},
        {"sinusoid", "1:5:1"},     {"sinusoid", "1:1e308"},
        {"sinusoid", ""},          {"piecewise", ""},
        {"piecewise", "1:5"},      {"piecewise", "0:5,0:6"},
        {"piecewise", "0:5,2:-1"}, {"piecewise", "0:5,2"},
        {"piecewise", "0:inf"},    {"piecewise", "0:5,2:6:7"},
        {"piecewise", "0:5,"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rng_arrivals_options options = {
            .cv = 1, .rate = 50, .change = bad[i][0], .change_text = bad[i][1]};
        double n;
        assert_null(rng_arrivals_new(&options, &err));
        assert_int_equal(err.code, REC_USAGE);
        assert_non_null(strstr(err.text, ", got '"));
        assert_false(rng_arrivals_estimate(&options, 1, &n, &err));
    }
    assert_null(rng_arrivals_new(
        &(struct rng_arrivals_options){.spacing = "fixed", .rate = 1}, &err));
    assert_null(
        rng_arrivals_new(&(struct rng_arrivals_options){.cv = 1e-9, .rate = 1}, &err));
}

static void
check_estimate(struct rng_arrivals_options options, double until, double expected)
{
    double n;
    assert_true(rng_arrivals_estimate(&options, until, &n, &err));
    assert_near(n, expected, 1e-9 * expected);
}

static void
test_estimate(void **state)
{
    (void)state;
    check_estimate((struct rng_arrivals_options){.cv = 1, .rate = 7}, 1e3, 7e3);
    /* m(t) = t/mean + (cv^2 - 1)/2 + o(1) */
    check_estimate((struct rng_arrivals_options){.cv = 3, .rate = 7}, 1e3, 7e3 + 4);
    check_estimate((struct rng_arrivals_options){.spacing = "fixed:2", .rate = 1}, 1e3,
                   500);
    check_estimate(
        (struct rng_arrivals_options){
            .cv = 1, .rate = 7, .change = "on-off", .change_text = "1:3:5"},
        1e3, 5.5e3);
    check_estimate(
        (struct rng_arrivals_options){
            .cv = 1, .rate = 7, .change = "sinusoid", .change_text = "1:8"},
        12, integral(7, 1, 8, 12));
    check_estimate(
        (struct rng_arrivals_options){
            .cv = 1, .rate = 1, .change = "piecewise", .change_text = "0:5,2:0,4:3,9:1"},
        6, 16);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spacings),  cmocka_unit_test(test_sinusoid),
        cmocka_unit_test(test_piecewise), cmocka_unit_test(test_on_off),
        cmocka_unit_test(test_file),      cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_estimate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
