/* Spot traces: what is drawn refits to what it was drawn from; tests of distributions. */
#include "unit.h"

#include "rampipe/spot.h"

#include <gsl/gsl_cdf.h>

/* The statistics that the published notebook prints, with three big additions. */
static struct spot_model
example(void)
{
    struct spot_model m;
    static const double spacings[] = {60, 60, 60, 120, 240, 300, 480, 1080};
    static const double counts[] = {1, 1, 1, 1, 2, 3, 5, 10};
    struct rec_error err;

    spot_model_clear(&m);
    m.chance_preempt_minute = 0.16338028169014085;
    m.chance_add_minute = 0.14366197183098592;
    m.preempt_mean = 2.413793103448276;
    m.preempt_std = 2.086165648825032;
    m.regular_mean = 2.5416666666666665;
    m.regular_std = 1.9456261184790364;
    m.prob_big = 0.058823529411764705;
    m.preempt_shape = 1.25;
    m.preempt_scale_s = 400;
    m.add_shape = 0.8;
    m.add_scale_s = 300;
    for (size_t i = 0; i < 8; i++)
        assert_true(spot_values_add(&m.preempt_spacings, spacings[i], 1, &err) &&
                    spot_values_add(&m.add_spacings, 2 * spacings[i], 1, &err) &&
                    spot_values_add(&m.preempt_counts, counts[i], 1, &err) &&
                    spot_values_add(&m.add_counts, counts[i], 1, &err));
    return m;
}

static bool
keep(void *context, const struct spot_event *event, struct rec_error *err)
{
    return spot_trace_add(context, *event, err);
}

/* Draws 100,000 minutes and fits them. */
static struct spot_model
refit(const struct spot_model *model, enum spot_process process, bool empirical)
{
    struct spot_drawing drawing = {.process = process,
                                   .empirical_counts = empirical,
                                   .minutes = 100000,
                                   .interval = 60,
                                   .seed = 7};
    struct spot_trace trace = {.end = 6e6, .instances = 1};
    struct spot_model again;
    struct rec_error err;
    assert_true(spot_draw(model, &drawing, keep, &trace, &err));
    assert_true(spot_model_fit(&trace, &again, &err));
    spot_trace_free(&trace);
    return again;
}

#define assert_within(got, want, error) assert_near(got, want, 3 * (error))

/* Mean, deviation and its standard error, sqrt((m4 - s^4) / n) / (2 s), of a list. */
static void
moments(const struct spot_values *v, double *mean, double *std, double *kurtosis)
{
    double m2 = 0, m4 = 0;
    *mean = 0;
    for (size_t i = 0; i < v->n; i++)
        *mean += v->at[i].weight * v->at[i].value / v->total;
    for (size_t i = 0; i < v->n; i++) {
        double d = v->at[i].value - *mean;
        m2 += v->at[i].weight * d * d / v->total;
        m4 += v->at[i].weight * d * d * d * d / v->total;
    }
    *std = sqrt(m2);
    *kurtosis = m4;
}

static void
assert_refits(const struct spot_values *want, double n, double mean, double std)
{
    double m, s, m4;
    moments(want, &m, &s, &m4);
    assert_within(mean, m, s / sqrt(n));
    assert_within(std, s, sqrt((m4 - s * s * s * s) / n) / (2 * s));
}

/* P(count = k) of the published rule: a normal, rounded, without sign, 0 made 1. */
static double
folded(double mean, double std, int k)
{
    double p = 0;
    for (int j = k == 1 ? 0 : k; j <= k; j++)
        for (int sign = j ? -1 : 1; sign <= 1; sign += 2)
            p += gsl_cdf_gaussian_P((sign * j + 0.5 - mean) / std, 1) -
                 gsl_cdf_gaussian_P((sign * j - 0.5 - mean) / std, 1);
    return p;
}

static void
test_refit_coins(void **state)
{
    struct spot_model m = example(), again = refit(&m, SPOT_COIN, false);
    double p = m.chance_preempt_minute, q = m.chance_add_minute, b = m.prob_big;
    struct spot_values counts = {0};
    struct rec_error err;
    (void)state;
    assert_within(again.chance_preempt_minute, p, sqrt(p * (1 - p) / 1e5));
    assert_within(again.chance_add_minute, q, sqrt(q * (1 - q) / 1e5));
    assert_within(again.prob_big, b, sqrt(b * (1 - b) / again.add_events));
    /* big additions are uniform over 11..31: mean 21, variance (21^2 - 1) / 12 */
    assert_within(again.alt_big_mean, 21, sqrt((21 * 21 - 1) / 12.0 / again.big_adds));
    for (int k = 1; k < 30; k++)
        assert_true(
            spot_values_add(&counts, k, folded(m.preempt_mean, m.preempt_std, k), &err));
    assert_near(counts.total, 1, 1e-9);
    assert_refits(&counts, again.term_rows, again.preempt_mean, again.preempt_std);
    free(counts.at);
    spot_model_free(&again);
    spot_model_free(&m);
}

/* The renewal processes refit to the spacings, empirical counts to the counts. */
static void
test_refit_renewals(void **state)
{
    struct spot_model m = example(), again;
    double mean = 60 / m.chance_preempt_minute, n;
    (void)state;

    again = refit(&m, SPOT_EXPONENTIAL, true);
    n = again.term_rows;
    assert_within(again.alt_true_mttp_s, mean, mean / sqrt(n));
    /* m4 of an exponential is 9 mean^4 */
    assert_within(again.alt_true_mttp_std_s, mean, mean * sqrt(8 / n) / 2);
    assert_within(again.chance_preempt_minute, m.chance_preempt_minute,
                  m.chance_preempt_minute / sqrt(n));
    assert_refits(&m.preempt_counts, n, again.preempt_mean, again.preempt_std);
    spot_model_free(&again);

    /* asymptotic errors of the maximum likelihood: 0.7797 k / sqrt(n), 1.0530 scale/k /
     * sqrt(n) (Cohen 1965) */
    again = refit(&m, SPOT_WEIBULL, true);
    n = again.term_rows;
    assert_within(again.preempt_shape, m.preempt_shape,
                  0.7797 * m.preempt_shape / sqrt(n));
    assert_within(again.preempt_scale_s, m.preempt_scale_s,
                  1.0530 * m.preempt_scale_s / m.preempt_shape / sqrt(n));
    n = again.add_events;
    assert_within(again.add_shape, m.add_shape, 0.7797 * m.add_shape / sqrt(n));
    assert_within(again.add_scale_s, m.add_scale_s,
                  1.0530 * m.add_scale_s / m.add_shape / sqrt(n));
    spot_model_free(&again);

    again = refit(&m, SPOT_EMPIRICAL, true);
    assert_refits(&m.preempt_spacings, again.term_rows, again.alt_true_mttp_s,
                  again.alt_true_mttp_std_s);
    assert_refits(&m.preempt_counts, again.term_rows, again.preempt_mean,
                  again.preempt_std);
    assert_true(spot_ks_test(&m.preempt_spacings, &again.preempt_spacings).p > 0.01);
    /* the other kind's spacings are twice as long: that shows */
    assert_true(spot_ks_test(&again.add_spacings, &again.preempt_spacings).p < 1e-6);
    spot_model_free(&again);
    spot_model_free(&m);
}

/* A bounded population stays in [0, capacity], and takes what there is. */
static void
test_bounded(void **state)
{
    struct spot_model m = example();
    struct spot_drawing drawing = {.process = SPOT_COIN,
                                   .minutes = 20000,
                                   .interval = 60,
                                   .bounded = true,
                                   .start = 3,
                                   .capacity = 8,
                                   .seed = 1};
    struct spot_trace trace = {0};
    struct rec_error err;
    int64_t population = 3;
    bool emptied = false, filled = false;
    (void)state;
    assert_true(spot_draw(&m, &drawing, keep, &trace, &err));
    for (size_t i = 0; i < trace.n; i++) {
        int64_t n = (int64_t)trace.event[i].count;
        population += trace.event[i].kind == SPOT_ADD ? n : -n;
        assert_true(n > 0 && population >= 0 && population <= 8);
        emptied = emptied || population == 0;
        filled = filled || population == 8;
    }
    assert_true(emptied && filled);
    spot_trace_free(&trace);
    spot_model_free(&m);
}

/*
 * Two samples of three: at 1 the first function is 1/3 and the second 0, and they differ
 * by 1/3 up to 4: D = 1/3. Equal samples: D = 0, p = 1. Apart: D = 1. p is checked
 * against the other form of Kolmogorov's limit, 1 - sqrt(2 pi)/x sum exp(-(2k-1)^2 pi^2 /
 * (8x^2)), at Stephens' x = (r + 0.12 + 0.11/r) D, r = sqrt(nm/(n+m)).
 */
static void
test_ks(void **state)
{
    struct spot_values a = {0}, b = {0}, c = {0}, none = {0};
    struct rec_error err;
    struct spot_ks ks;
    double r, x, sum = 0;
    const double pi = 3.14159265358979323846;
    (void)state;
    for (int i = 1; i <= 3; i++)
        assert_true(spot_values_add(&a, i, 1, &err) &&
                    spot_values_add(&b, i + 1, 1, &err) &&
                    spot_values_add(&c, i + 10, 40, &err));
    ks = spot_ks_test(&a, &b);
    assert_near(ks.d, 1.0 / 3, 1e-12);
    assert_true(ks.n == 3 && ks.m == 3);
    r = sqrt(1.5);
    x = (r + 0.12 + 0.11 / r) / 3;
    for (int k = 1; k < 20; k++)
        sum += exp(-(2 * k - 1) * (2 * k - 1) * pi * pi / (8 * x * x));
    assert_near(ks.p, 1 - sqrt(2 * pi) / x * sum, 1e-9);
    ks = spot_ks_test(&a, &a);
    assert_true(ks.d == 0 && ks.p == 1);
    ks = spot_ks_test(&a, &c);
    assert_near(ks.d, 1, 1e-12);
    assert_true(ks.p < 0.01);
    assert_true(isnan(spot_ks_test(&a, &none).p));
    free(a.at);
    free(b.at);
    free(c.at);
}

struct hourly_walk {
    uint64_t desired, there, added, removed;
    double last;
    struct rec_map names;
    struct rec_arena arena;
};

static bool
walk_hourly(void *context, const struct spot_event *event, struct rec_error *err)
{
    struct hourly_walk *w = context;
    assert_true(event->count == 1 && event->ids.len > 0 && event->time >= w->last);
    w->last = event->time;
    if (event->kind == SPOT_ADD) {
        const char *copy = rec_arena_copy(&w->arena, event->ids, err);
        assert_true(rec_map_get(&w->names, event->ids) == REC_NONE);
        w->there++;
        w->added++;
        assert_true(w->there <= w->desired);
        return copy && rec_map_add(&w->names, rec_str(copy), 0, err);
    }
    assert_true(rec_map_get(&w->names, event->ids) != REC_NONE);
    rec_map_remove(&w->names, event->ids);
    w->there--;
    w->removed++;
    return true;
}

/* Removals an hour, when additions are certain. Every instance comes once and leaves
 * once, never more than desired. */
static double
hourly_removals(uint64_t desired, double removal, int hours)
{
    struct spot_hourly h = {.desired = desired, .minutes = 60 * hours, .seed = 3};
    struct hourly_walk w = {.desired = desired};
    struct rec_error err;
    for (int i = 0; i < 24; i++) {
        h.addition[i] = 1;
        h.removal[i] = removal;
    }
    assert_true(spot_draw_hourly(&h, walk_hourly, &w, &err));
    assert_true(w.added - w.removed == w.there);
    rec_map_free(&w.names);
    rec_arena_free(&w.arena);
    return (double)w.removed / hours;
}

/*
 * One instance is desired, r = 1/2 leave, what is missing comes for certain; all times
 * are uniform. If it is there at the start of an hour, it leaves with chance r; the other
 * comes if its time is later (1/2; else the place is taken), and leaves too if that time
 * is later still (r/3 of those): r + r^2/6 = 0.5417 removals, and it is there at the end
 * with chance 1 - r/2 - r^2/6. If it is not there, one comes, and leaves with chance r/2.
 * So it is there at the start of a share (1 - r/2) / (1 + r^2/6) = 0.72 of the hours:
 * removals an hour are 0.72 * 0.5417 + 0.28 * 0.25 = 0.46; 4 errors of 100000 hours are
 * 0.007.
 */
static void
test_hourly(void **state)
{
    (void)state;
    assert_near(hourly_removals(1, 0.5, 100000), 0.46, 0.007);
    assert_true(hourly_removals(40, 0.1, 3000) > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refit_coins), cmocka_unit_test(test_refit_renewals),
        cmocka_unit_test(test_bounded), cmocka_unit_test(test_ks),
        cmocka_unit_test(test_hourly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
