/* The tuner of serving pipelines, and the envelopes that it goes by. */
#include "unit.h"

#include "rampipe/event.h"
#include "rampipe/serve.h"

/* What a run told. */
struct heard {
    size_t queries, changes;
    uint32_t most[2]; /* replicas of each stage, that some change says */
};

static bool
hear_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    (void)reply;
    (void)err;
    ((struct heard *)context)->queries++;
    return true;
}

static bool
hear_change(void *context, const struct serve_change *change, struct rec_error *err)
{
    struct heard *heard = context;
    (void)err;
    heard->changes++;
    if (change->replicas > heard->most[change->stage])
        heard->most[change->stage] = change->replicas;
    return true;
}

/* A tuned run of the stream in the file "in". */
static struct heard
run_tuned(double quiet)
{
    static const char *const files[] = {"in"};
    static const struct rec_reader_options reading;
    const struct serve_options options = {.drop_after = INFINITY};
    const struct serve_tuning tuning = {SERVE_PUBLISHED, .activation = 1, .quiet = quiet};
    struct heard heard = {0};
    const struct serve_run_sink sink = {{hear_reply, NULL, &heard}, NULL, hear_change};
    struct serve_pipeline pipeline = {0};
    struct event_clock clock = {0};
    struct rec_error err;
    struct rec rec;
    int status;
    struct rec_reader *reader = rec_reader_open(files, 1, &reading, &err);
    struct serve_run *run = serve_run_new(&pipeline, &options, &sink, &err);
    assert_non_null(reader);
    assert_non_null(run);
    serve_run_tune(run, &tuning);
    assert_true(event_clock_add(&clock, &serve_model, run, &err));
    while ((status = rec_next(reader, &rec, &err)) > 0)
        if (event_clock_take(&clock, reader, &rec, &err) < 0)
            fail_msg("%s", err.text);
    assert_int_equal(status, 0);
    assert_true(event_clock_end(&clock, INFINITY, &err));
    event_clock_free(&clock);
    serve_run_free(run);
    serve_pipeline_free(&pipeline);
    rec_reader_close(reader);
    return heard;
}

/* Arrivals that were planned for: bursts of up to 20, some at one instant. */
static size_t
draw_arrivals(double *times, size_t n)
{
    double time = 0;
    for (size_t i = 0; i < n; i++)
        times[i] = time +=
            (double)random_below(random_below(20) ? 4 : 400) * (i % 3 ? 0.03 : 0.1);
    return n;
}

static void
write_stream(const double *times, size_t n, double rate, const double *sample,
             size_t nsample)
{
    FILE *file = fopen("in", "w");
    assert_non_null(file);
    fprintf(file,
            "profile\tm\tcpu\t1\t0.1\t40\nprofile\tm\tcpu\t4\t0.2\t80\n"
            "stage\ta\tm\nstage\tb\tm\nedge\ta\tb\tp=0.5\n"
            "config\ta\tcpu\t4\t4\tload=%.17g\nconfig\tb\tcpu\t1\t5\tload=%.17g\n",
            rate, rate / 2);
    for (double seconds = 0.1; seconds < 60; seconds *= 2)
        fprintf(file, "envelope\t%.17g\t%llu\n", seconds,
                (unsigned long long)serve_envelope(sample, nsample, seconds));
    for (size_t i = 0; i < n; i++)
        fprintf(file, "query\tq%zu\t%.17g\n", i, times[i]);
    assert_int_equal(fclose(file), 0);
}

/*
 * The very sample that was planned for needs no more than was planned, to the bit: no
 * window holds more than the envelope; what goes in quiet times comes back, and no more.
 * With one arrival more in the busiest tenth of a second it does. Every query is done.
 */
static void
test_sample(void **state)
{
    enum { N = 2000 };
    static double sample[N], times[N + 1];
    (void)state;
    for (int round = 0; round < 10; round++) {
        size_t n = draw_arrivals(sample, N), end = 0;
        double rate = (double)n / sample[n - 1];
        uint64_t most = serve_envelope(sample, n, 0.1);
        struct heard heard;
        write_stream(sample, n, rate, sample, n);
        heard = run_tuned((double)INFINITY);
        assert_int_equal(heard.queries, n);
        assert_int_equal(heard.changes, 0);
        heard = run_tuned(3);
        assert_int_equal(heard.queries, n);
        assert_true(heard.changes > 10);
        assert_int_equal(heard.most[0], 4);
        assert_in_range(heard.most[1], 2, 5);

        while (serve_envelope(sample, end, 0.1) < most)
            end++;
        memcpy(times, sample, n * sizeof *times);
        memmove(&times[end], &times[end - 1], (n - end + 1) * sizeof *times);
        write_stream(times, n + 1, rate, sample, n);
        heard = run_tuned((double)INFINITY);
        assert_int_equal(heard.queries, n + 1);
        assert_true(heard.most[0] > 4 && heard.most[1] > 5);
    }
}

/* A window holds what comes less than its width after its first arrival. */
static void
test_envelope(void **state)
{
    static const double times[] = {0, 1, 1, 1.5, 3, 3.5, 4, 4.5, 100};
    (void)state;
    assert_int_equal(serve_envelope(times, 9, 0.25), 2);
    assert_int_equal(serve_envelope(times, 9, 1), 3);
    assert_int_equal(serve_envelope(times, 9, 1.5), 3); /* 1.5 is not in [0, 1.5) */
    assert_int_equal(serve_envelope(times, 9, 1.75), 4);
    assert_int_equal(serve_envelope(times, 9, 4), 7);
    assert_int_equal(serve_envelope(times, 9, 1e300), 9);
    assert_int_equal(serve_envelope(times, 1, 1), 1);
    assert_int_equal(serve_envelope(times, 0, 1), 0);
}

/* By brute force, for arrivals some of which come together. */
static void
test_envelope_all(void **state)
{
    double times[60];
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t n = random_below(60);
        double time = 0, width = 0.25 * (1 + (double)random_below(40));
        uint64_t most = 0;
        for (size_t i = 0; i < n; i++)
            times[i] = time += 0.25 * (double)random_below(5);
        for (size_t i = 0; i < n; i++) {
            uint64_t held = 0;
            for (size_t j = i; j < n; j++)
                held += times[j] < times[i] + width;
            most = held > most ? held : most;
        }
        assert_int_equal(serve_envelope(times, n, width), most);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_envelope),
                                       cmocka_unit_test(test_envelope_all),
                                       cmocka_unit_test(test_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
