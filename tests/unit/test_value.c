/*
 * What states are worth (lib/alloc/value.c, value_train.c): the network by hand, and a
 * value whose weights are all 0, which decides as the rule first: rollouts with it count
 * the same jobs (discount 1) and so decide the same.
 */
#include "bound_settings.h"

#include "../../lib/alloc/value.h"

/* Two servers, scales 1, 2, 4 and 8 s. Server 1 is free in 8 ln 2 s: its inputs are
 * 1 - 2^-8, 1 - 2^-4, 1 - 2^-2 and 1 - 2^-1. Unit 5 of the first layer has the bias 1 and
 * weights 2 and -4 of the last input of both servers: 1 - 4 / 2 = -1 becomes 0, and
 * without the job 1. Unit 3 of the second layer has the bias 0.25 and weight 3 of that
 * unit, and the result is 10 and twice this: 10.5, or 16.5. If all of it is discounted by
 * a half, refusing a job is worth 8.25, and starting it 1 + 5.25. */
static void
test_network(void **state)
{
    struct alloc_value *v = value_new("", 2, 1, &err);
    struct value_option option = {2, 8 * log(2)};
    float sum[VALUE_FIRST], second[VALUE_SECOND], input[VALUE_SCALES];
    double worth;
    (void)state;
    assert_non_null(v);
    v->discount = 0.5;
    for (int i = 0; i < VALUE_SCALES; i++)
        v->scale[i] = 1 << i;
    value_first_bias(v)[5] = 1;
    value_first(v, 3)[5] = 2;
    value_first(v, 7)[5] = -4;
    value_second(v, 5)[3] = 3;
    value_second_bias(v)[3] = 0.25;
    value_third(v)[3] = 2;
    *value_third_bias(v) = 10;
    value_inputs(v, 8 * log(2), input);
    for (int i = 0; i < VALUE_SCALES; i++)
        assert_near(input[i], 1 - pow(2, -(8 >> i)), 1e-6);
    value_empty(v, sum);
    assert_near(value_worth(v, sum, second), 16.5, 1e-6);
    assert_int_equal(value_choose(v, NULL, sum, &option, 1, &worth), 1);
    assert_near(worth, 8.25, 1e-6);
    value_add(v, sum, 2, 8 * log(2));
    assert_near(value_worth(v, sum, second), 10.5, 1e-6);
    value_add(v, sum, 1, INFINITY); /* -1 + 2 */
    assert_near(value_worth(v, sum, second), 16.5, 1e-6);
    /* with nothing to lose, a job starts */
    *value_third(v) = value_third(v)[3] = 0;
    assert_int_equal(value_choose(v, NULL, sum, &option, 1, &worth), 0);
    assert_near(worth, 1 + 5, 1e-6);
    alloc_value_free(v);
}

/* What rollouts decide, as a list of ends; 0: the job is blocked. */
struct decided {
    uint32_t n;
    double finish[JOBS];
};

static bool
note(void *context, const struct alloc_decision *decision, struct rec_error *error)
{
    struct decided *decided = context;
    (void)error;
    decided->finish[decided->n++] = decision->cause ? 0 : decision->finish;
    return true;
}

static struct decided
play(struct setting *s, const struct stream *stream, struct alloc_choosing *base,
     uint32_t horizon)
{
    struct decided decided = {0};
    struct alloc_choosing rollout = {.chooser = alloc_chooser_find(rec_str("rollout"))};
    struct alloc_admission_options options = {.placer = s->placer,
                                              .choosing = &rollout,
                                              .down = stream->down,
                                              .ndown = stream->ndown};
    struct alloc_choice choice = {.argument = "20",
                                  .admission = &options,
                                  .store = &s->store,
                                  .base = base,
                                  .horizon = horizon,
                                  .seed = 1};
    struct alloc_admission *admission;
    rollout.self = rollout.chooser->open(&choice, &err);
    assert_non_null(rollout.self);
    admission = alloc_admission_new(&options, &s->store, note, &decided, &err);
    assert_non_null(admission);
    for (uint32_t i = 0; i < stream->njobs; i++)
        if (!alloc_admission_advance(admission, &stream->job[i], &err) ||
            !alloc_admission_arrive(admission, &stream->job[i], &err))
            fail_msg("%s", err.text);
    assert_true(alloc_admission_end(admission, &err));
    alloc_admission_free(admission);
    rollout.chooser->free(rollout.self);
    return decided;
}

static void
test_same(void **state)
{
    uint32_t blocked = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct setting s;
        struct stream stream;
        struct alloc_choosing first = {.chooser = alloc_chooser_find(rec_str("first"))};
        struct alloc_choosing learned = {.chooser =
                                             alloc_chooser_find(rec_str("learned"))};
        struct alloc_scorer *scorer = alloc_scorer_new(0, 1, &err);
        char text[NET_TEXT_MAX];
        struct decided one, other;
        uint32_t horizon = 1 + (uint32_t)random_below(8);
        assert_non_null(scorer);
        make_setting(&s, 64);
        make_stream(&stream, &s, JOBS);
        net_describe(s.placer.net, text);
        scorer->expert[0].value = value_new(text, net_servers(s.placer.net), 1, &err);
        assert_non_null(scorer->expert[0].value);
        scorer->expert[0].value->discount = 1;
        scorer->expert[0].value->work = NAN; /* suits jobs of any size */
        learned.self = scorer;
        one = play(&s, &stream, &first, horizon);
        other = play(&s, &stream, &learned, horizon);
        for (uint32_t j = 0; j < stream.njobs; j++) {
            if (one.finish[j] != other.finish[j])
                fail_msg("setting %d, job %u: %g and %g", i, j, one.finish[j],
                         other.finish[j]);
            blocked += one.finish[j] == 0;
        }
        alloc_scorer_free(scorer);
        free_setting(&s);
    }
    assert_true(blocked > 500);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_network),
                                       cmocka_unit_test(test_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
