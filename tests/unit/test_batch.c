/*
 * Episodes that are decided step by step. On two servers, jobs of 4 s on one server or of
 * 1 s on two come at 0, 1, 2 and 3 s, to be done within 4 s.
 */
#include "rampipe/learn_batch.h"
#include "unit.h"

static const char input[] = "graph\tg/1\tm\tof=g\tdegree=1\nop\tg/1\to\tforward\t4\t0\n"
                            "graph\tg/2\tm\tof=g\tdegree=2\n"
                            "op\tg/2\ta\tforward\t1\t0\tof=o\tpart=1/2\n"
                            "op\tg/2\tb\tforward\t1\t0\tof=o\tpart=2/2\n"
                            "job\t0\tg/1,g/2\t0\t1\t4\njob\t1\tg/1,g/2\t1\t1\t4\n"
                            "job\t2\tg/1,g/2\t2\t1\t4\njob\t3\tg/1,g/2\t3\t1\t4\n";

enum { COPIES = 3, ACTIONS = 3, JOBS = 4 };

static struct learn_batch *
open_batch(struct learn_batch_arrays *to)
{
    static uint8_t mask[COPIES * ACTIONS], ended[COPIES];
    static float feature[COPIES * ACTIONS * 100], reward[COPIES];
    static double completion[COPIES];
    static uint32_t job[COPIES];
    const struct learn_batch_options options = {
        .input = "batch.rec", .cluster = "ramp:2,1,1,1e12,inf", .copies = COPIES};
    char why[200];
    struct learn_batch *batch;
    write_file("batch.rec", input, sizeof input - 1);
    batch = learn_batch_open(&options, why, sizeof why);
    if (!batch)
        fail_msg("%s", why);
    assert_true(learn_batch_features() <= 100);
    *to = (struct learn_batch_arrays){feature, mask, job, reward, ended, completion};
    learn_batch_use(batch, to);
    return batch;
}

/* Copy 0 takes one server when it can: jobs 0 and 1 hold both until 4 and 5, and 2 and 3
 * are blocked. Copy 1 takes two servers: each is done before the next comes. Copy 2
 * refuses the first, then takes two. */
static void
test_copies_differ(void **state)
{
    static const int32_t action[JOBS][COPIES] = {
        {1, 2, 0}, {1, 2, 2}, {1, 2, 2}, {1, 2, 2}};
    static const float reward[JOBS][COPIES] = {
        {1, 1, -1}, {1, 1, 1}, {-1, 1, 1}, {-1, 1, 1}};
    static const bool starts[JOBS] = {true, true, false, false}; /* in copy 0, on one */
    struct learn_batch_arrays to;
    struct learn_batch *batch = open_batch(&to);
    (void)state;
    assert_int_equal(learn_batch_actions(batch), ACTIONS);
    for (uint32_t a = 0; a < ACTIONS; a++)
        assert_int_equal(learn_batch_degree(batch, a), a);
    assert_int_equal(learn_batch_templates(batch), 1);
    assert_string_equal(learn_batch_template(batch, 0), "g/1,g/2");
    for (int turn = 0; turn < 2;
         turn++) { /* an episode after another is like the first */
        for (uint32_t i = 0; i < COPIES; i++)
            assert_true(learn_batch_reset(batch, i, 1));
        for (uint32_t t = 0; t < JOBS; t++) {
            assert_int_equal(to.mask[0], 1);
            assert_int_equal(to.mask[1], starts[t]);
            assert_int_equal(to.mask[2], t == 0);
            assert_true(to.mask[ACTIONS + 1] && to.mask[ACTIONS + 2]);
            assert_true(to.feature[learn_batch_features()] == starts[t]); /* one: 1 */
            assert_true(learn_batch_step(batch, action[t]));
            for (uint32_t i = 0; i < COPIES; i++) {
                assert_true(to.reward[i] == reward[t][i]);
                assert_true(to.completion[i] == (reward[t][i] < 0    ? (double)INFINITY
                                                 : action[t][i] == 1 ? 4
                                                                     : 1));
                assert_int_equal(to.ended[i], t + 1 == JOBS);
            }
        }
        assert_int_equal(to.mask[0], 0);
        assert_true(learn_batch_step(batch, action[0])); /* nothing is left to decide */
        assert_true(to.reward[0] == 0 && to.ended[0] == 0);
    }
    learn_batch_close(batch);
}

static void
test_wrong(void **state)
{
    static const int32_t high[COPIES] = {0, 3, 0};
    struct learn_batch_options options = {.input = "batch.rec", .cluster = "island:2"};
    struct learn_batch_arrays to;
    struct learn_batch *batch = open_batch(&to);
    char why[200];
    (void)state;
    assert_true(learn_batch_reset(batch, 1, 1));
    assert_false(learn_batch_step(batch, high));
    assert_string_equal(learn_batch_message(batch),
                        "an action is 0 to 2, got 3 for copy 1");
    assert_false(learn_batch_reset(batch, COPIES, 1));
    assert_false(learn_batch_record(batch, COPIES, "x"));
    assert_true(learn_batch_record(batch, 1, "decided.rec"));
    assert_true(learn_batch_step(batch, (int32_t[]){0, 1, 0}));
    assert_true(learn_batch_record(batch, 1, NULL));
    learn_batch_close(batch);
    assert_null(learn_batch_open(&options, why, sizeof why));
    assert_string_equal(why, "a batch needs one copy at least");
    options.copies = 1;
    assert_null(learn_batch_open(&options, why, sizeof why));
    options.cluster = "ramp:129,1,1,1e12,inf"; /* as many alternatives as were named */
    options.place = "first-fit,free-block:1-2";
    assert_null(learn_batch_open(&options, why, sizeof why));
    assert_string_equal(why, "'first-fit,free-block:1-2' names ways that do not suit "
                             "ramp:129,1,1,1e12,inf");
    learn_batch_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_differ),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
