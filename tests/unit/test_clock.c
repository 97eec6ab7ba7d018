/* Models that share a clock. */
#include "graphs.h"

#include "rampipe/event.h"
#include "rampipe/sim.h"

/* Something that happens every `period` seconds, from `next` on, `left` times. */
struct beat {
    char name;
    double period, next;
    int left;
    char *log; /* where all that happens is told */
};

static int
beat_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
          const struct rec *rec, struct rec_error *err)
{
    struct beat *beat = self;
    double time;
    if (rec->type != REC_ADD)
        return 0;
    if (!rec_get_number(reader, rec, 1, &time, err) ||
        !event_clock_reach(clock, time, err))
        return -1;
    *strchr(beat->log, '\0') = '!';
    return 1;
}

static double
beat_next(void *self)
{
    const struct beat *beat = self;
    return beat->left ? beat->next : (double)INFINITY;
}

static bool
beat_advance(void *self, double time, struct rec_error *err)
{
    struct beat *beat = self;
    (void)err;
    for (; beat->left && beat->next <= time; beat->left--) {
        *strchr(beat->log, '\0') = beat->name;
        beat->next += beat->period;
    }
    return true;
}

static bool
beat_end(void *self, double time, struct rec_error *err)
{
    struct beat *beat = self;
    (void)err;
    *strchr(beat->log, '\0') = isinf(time) ? '.' : ':';
    return true;
}

static const struct event_model beat_model = {"beat",       beat_take, beat_next,
                                              beat_advance, beat_end,  NULL};

/*
 * a at 0 2 4 6 8, b at 1 4 7, and a step of two ops of 3 s each from time 1 on, which
 * ends at 7 (its middle, at 4, is an event too). The clock goes
 *
 *     0a 1b 2a 4a 4b (the step's first op) 6a 7b (its second) 8a
 *
 * for of one instant the model that was added first is first. The record of time 4 waits
 * for all before 4, not for those at 4, and both hear it. Nothing of the step changes by
 * the company.
 */
static void
test_clock(void **state)
{
    char log[40] = "";
    struct beat a = {'a', 2, 0, 5, log}, b = {'b', 3, 1, 3, log};
    struct graph g = graph_text("graph g m\nop g 1 forward 3 0\n"
                                "op g 2 forward 3 0\ndep g 1 2 0\n");
    const uint32_t server[] = {0, 0}, turn[] = {0, 1};
    const double seconds[] = {0};
    struct sim_placed placed = {.graph = &g,
                                .nservers = 1,
                                .server = server,
                                .placed = turn,
                                .dep_seconds = seconds};
    struct rec_error err = {.text = ""};
    struct sim_stepping *s = sim_stepping_new(&placed, NULL, 1, &err);
    struct rec_reader *reader;
    struct event_clock clock = {0};
    struct sim_step result;
    char *text = tabs("add 4 1\ntrace 0 9\n");
    struct rec rec;
    (void)state;

    reader = open_text(text);
    assert_non_null(s);
    assert_true(event_clock_add(&clock, &sim_step_model, s, &err) &&
                event_clock_add(&clock, &beat_model, &a, &err) &&
                event_clock_add(&clock, &beat_model, &b, &err));
    assert_int_equal(rec_next(reader, &rec, &err), 1);
    assert_int_equal(event_clock_take(&clock, reader, &rec, &err), 1);
    assert_string_equal(log, "aba!!");
    assert_same(sim_stepping_next(s), 4);
    assert_int_equal(rec_next(reader, &rec, &err), 1);
    assert_int_equal(event_clock_take(&clock, reader, &rec, &err), 0);
    assert_true(event_clock_reach(&clock, 8, &err));
    assert_string_equal(log, "aba!!abab");
    assert_true(isinf(sim_stepping_next(s)));
    assert_true(event_clock_end(&clock, 8, &err));
    assert_string_equal(log, "aba!!ababa::");
    assert_true(sim_stepping_end(s, &result, &err));
    assert_same(result.seconds, 6);
    assert_same(result.comp, 6);
    event_clock_free(&clock);
    sim_stepping_free(s);
    close_text(reader);
    free(text);
    graph_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
