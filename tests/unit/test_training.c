/* Models of training on spot instances, run in a program of one's own. */
#include "graphs.h"

#include "rampipe/event.h"
#include "rampipe/train.h"

#define NMODELS 4

/* What a model told, in order, and how it ended. */
struct heard {
    char text[20000];
    bool ended;
    int64_t steps;
    double seconds[TRAIN_NACCOUNTS], by_state[TRAIN_NSTATES];
};

static void
hear(struct heard *heard, const char *what, double time, int64_t id)
{
    size_t used = strlen(heard->text);
    assert_false(heard->ended);
    assert_true(used + 60 < sizeof heard->text);
    sprintf(heard->text + used, "%s %.17g %lld\n", what, time, (long long)id);
}

static void
hear_end(struct heard *heard, int64_t steps, const double *seconds,
         const double *by_state)
{
    heard->ended = true;
    heard->steps = steps;
    memcpy(heard->seconds, seconds, sizeof heard->seconds);
    memcpy(heard->by_state, by_state, sizeof heard->by_state);
}

static void
elastic_row(void *context, const struct train_elastic_row *row)
{
    hear(context, row->reconfig ? "reconfig" : "step", row->time, row->id);
}

static void
elastic_end(void *context, const struct train_elastic_result *r)
{
    hear_end(context, r->steps, r->seconds, r->by_state);
}

static void
redundant_row(void *context, const struct train_redundant_row *row)
{
    hear(context, row->event, row->time, (int64_t)row->steps);
}

static void
redundant_end(void *context, const struct train_redundant_result *r)
{
    hear_end(context, (int64_t)r->steps, r->seconds, r->by_state);
}

static struct train_elastic *
new_elastic(const struct train_elastic_profile *profile, enum train_elastic_rules rules,
            struct heard *heard)
{
    const struct train_elastic_options options = {
        .profile = profile,
        .prepare = 45,
        .depth = 3,
        .capacity = 64,
        .seed = 1,
        .end = INFINITY,
        .rules = rules,
        .tick = rules == TRAIN_ELASTIC_SANE ? 0 : 5};
    const struct train_elastic_sink sink = {elastic_row, NULL, elastic_end, heard};
    struct rec_error err;
    return train_elastic_new(&options, &sink, &err);
}

static struct train_redundant *
new_redundant(const struct train_redundant_profile *profile, uint64_t steps,
              struct heard *heard)
{
    const struct train_redundant_options options = {
        .profile = profile, .steps = steps, .price = 1, .seed = 1, .end = INFINITY};
    const struct train_redundant_sink sink = {redundant_row, NULL, redundant_end, heard};
    struct rec_error err;
    return train_redundant_new(&options, &sink, &err);
}

/* Runs those of the models that are asked for (bit i: model i) on one clock. */
static void
run_models(const char *text, unsigned which, struct heard heard[NMODELS])
{
    static double size[] = {3, 6}, seconds[] = {4, 2};
    static struct train_redundant_speed speed[] = {{3, 1, 4000}, {3, 2, 2000}};
    const struct train_elastic_profile elastic = {
        .size = size, .seconds = seconds, .n = 2, .reconfigure = 30, .checkpoint = 10};
    const struct train_redundant_profile redundant = {.name = "x",
                                                      .samples = 1,
                                                      .stages = 3,
                                                      .creation_ms = 45000,
                                                      .global_ms = 30000,
                                                      .local_ms = 20000,
                                                      .slowdown = 1.5,
                                                      .speed = speed,
                                                      .nspeeds = 2};
    struct train_elastic *e[2] = {new_elastic(&elastic, TRAIN_ELASTIC_SANE, &heard[0]),
                                  new_elastic(&elastic, TRAIN_ELASTIC_LATER, &heard[1])};
    struct train_redundant *r[2] = {new_redundant(&redundant, 0, &heard[2]),
                                    new_redundant(&redundant, 50, &heard[3])};
    struct rec_reader *reader = open_text(text);
    struct event_clock clock = {0};
    struct rec_error err = {.text = ""};
    struct rec rec;
    int status;

    memset(heard, 0, NMODELS * sizeof *heard);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(e[i] && r[i]);
        if (which & 1u << i)
            assert_true(event_clock_add(&clock, &train_elastic_model, e[i], &err));
        if (which & 4u << i)
            assert_true(event_clock_add(&clock, &train_redundant_model, r[i], &err));
    }
    while ((status = rec_next(reader, &rec, &err)) > 0)
        assert_int_equal(event_clock_take(&clock, reader, &rec, &err), 1);
    if (status < 0 || !event_clock_end(&clock, INFINITY, &err))
        fail_msg("%s", err.text);
    event_clock_free(&clock);
    close_text(reader);
    for (int i = 0; i < 2; i++) {
        train_elastic_free(e[i]);
        train_redundant_free(r[i]);
    }
}

/*
 * Models on one clock hear one trace, and each does what it does alone: none sees the
 * others, however their times interleave (steps of 2 and 4 s, ticks of 5 s, events at
 * thirds of seconds). All time is accounted for: the states' instance-seconds are those
 * of the trace, 6 instances less those that are gone: 6 * 100 1/3 + 5 * 50 1/3 + 6 * 149
 * 1/3 = 1749 2/3; by ticks, 6 * 105 + 5 * 50 + 6 * 145. The last model stops by itself
 * when its 50 steps are done.
 */
static void
test_company(void **state)
{
    static struct heard together[NMODELS], alone[NMODELS];
    char *text = tabs("trace 0 300\nadd 0 6\npreempt 100.33333333333333 1\n"
                      "add 150.66666666666666 1\n");
    (void)state;
    run_models(text, 15, together);
    for (unsigned i = 0; i < NMODELS; i++) {
        run_models(text, 1u << i, alone);
        assert_true(together[i].ended && alone[i].ended && alone[i].steps > 0);
        assert_string_equal(together[i].text, alone[i].text);
        assert_true(memcmp(&together[i].seconds, &alone[i].seconds,
                           sizeof alone[i].seconds) == 0);
        assert_true(memcmp(&together[i].by_state, &alone[i].by_state,
                           sizeof alone[i].by_state) == 0);
    }
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int s = 0; s < TRAIN_NSTATES; s++)
            sum += together[i].by_state[s];
        assert_true(fabs(sum - (i == 1 ? 1750 : 1749 + 2. / 3)) < 1e-2);
    }
    assert_int_equal(together[3].steps, 50);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_company)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
