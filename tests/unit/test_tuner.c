/* The tuner of serving pipelines, and the envelopes that it goes by. */
#include "unit.h"

#include "rampipe/serve.h"

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
                                       cmocka_unit_test(test_envelope_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
