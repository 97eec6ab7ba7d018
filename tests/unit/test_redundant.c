/* Training with redundant computation: cases that a pencil solves, laws, and what more
 * removals do. */
#include "unit.h"

#include "rampipe/train.h"

/* Pipelines of 3: one takes 4 s a step, two take 2 s. */
static struct train_redundant_profile
small(void)
{
    static const char text[] = "# a comment\nname\tsmall\nsamples\t10\nstages\t3\n"
                               "creation\t45\nrendezvous_global\t30\n"
                               "rendezvous_local\t20\nslowdown\t1.5\nspot_price\t0.5\n"
                               "step\t3\t1\t4\nstep\t3\t2\t2\nstep\t2\t1\t9\n";
    struct train_redundant_profile p;
    struct rec_error err;
    write_file("small.tsv", text, strlen(text));
    assert_true(train_redundant_profile_read(&p, "small.tsv", &err));
    return p;
}

struct event {
    double time;
    enum spot_kind kind;
    const char *ids;
    uint64_t count;
};

struct told {
    char events[4000];
    uint64_t all;
};

static void
hear_row(void *context, const struct train_redundant_row *row)
{
    struct told *told = context;
    size_t len = strlen(told->events);
    if (strcmp(row->event, "step") != 0 && strcmp(row->event, "add") != 0 &&
        strcmp(row->event, "ready") != 0 && len < 3900)
        snprintf(told->events + len, sizeof told->events - len, "%g %s %llux%llu;",
                 row->time, row->event, (unsigned long long)row->pipelines,
                 (unsigned long long)row->stages);
}

static void
hear_state(void *context, double time, enum train_redundant_status status, bool degraded,
           const uint64_t count[TRAIN_NSTATES])
{
    struct told *told = context;
    (void)time;
    assert_true(!degraded || status == TRAIN_REDUNDANT_RUNNING);
    told->all = count[0] + count[1] + count[2];
}

static struct train_redundant_result
simulate(const struct train_redundant_options *o, const struct event *event, size_t n,
         double end, struct told *told)
{
    struct train_redundant_sink sink = {hear_row, hear_state, NULL, told};
    struct train_redundant_result result;
    struct rec_error err;
    struct train_redundant *r;

    memset(told, 0, sizeof *told);
    r = train_redundant_new(o, &sink, &err);
    assert_non_null(r);
    for (size_t i = 0; i < n; i++) {
        struct spot_event x = {event[i].time,
                               event[i].kind,
                               event[i].count,
                               {event[i].ids, event[i].ids ? strlen(event[i].ids) : 0}};
        assert_true(train_redundant_take(r, &x, &err));
    }
    assert_true(train_redundant_finish(r, end, &result, &err));
    train_redundant_free(r);
    return result;
}

static const struct event six = {0, SPOT_ADD, "a,b,c,d,e,f", 6};

static struct train_redundant_options
options(const struct train_redundant_profile *profile)
{
    return (struct train_redundant_options){
        .profile = profile, .price = 0.5, .seed = 1, .end = INFINITY};
}

/* Six are ready at 45, meet until 75, and then do a step of 10 samples every 2 s: 50
 * until 175, 5 samples/s for 6 x 0.5 US$ an hour. */
static void
test_quiet(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    struct told told;
    struct train_redundant_result r = simulate(&o, &six, 1, 175, &told);
    (void)state;
    assert_string_equal(told.events, "45 rendezvous_global 0x0;75 config 2x3;");
    assert_true(r.steps == 50 && r.first == 75 && r.last == 175);
    assert_near(r.performance, 5, 1e-12);
    assert_near(r.instances, 6, 1e-12);
    assert_near(r.cost, 3, 1e-12);
    assert_near(r.value, 5.0 / 3, 1e-12);
    assert_near(r.seconds[TRAIN_STALL], 45, 1e-9);
    assert_near(r.seconds[TRAIN_RECONFIGURE], 30, 1e-9);
    assert_near(r.seconds[TRAIN_USEFUL], 100, 1e-9);
    o.steps = 7;
    r = simulate(&o, &six, 1, INFINITY, &told);
    assert_true(r.steps == 7 && r.end == 89);
    train_redundant_profile_free(&p);
}

/*
 * "a", stage 0 of pipeline 0, goes at 100.5, in the step of 99 to 101. Stage 2 takes
 * over; the rest of the step, 0.5 s, is 1.5 times slower: it ends at 101.25, the 13th.
 * One of five does two stages, 40 % > 5 %: those that run meet, until 121.25; five make
 * one pipeline of three, 4 s a step: 13 more until 175. Lives: 100.5 and five of 175.
 */
static void
test_loss(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    struct event event[] = {six, {100.5, SPOT_PREEMPT, "a", 1}};
    struct told told;
    struct train_redundant_result r = simulate(&o, event, 2, 175, &told);
    (void)state;
    assert_string_equal(told.events, "45 rendezvous_global 0x0;75 config 2x3;"
                                     "100.5 remove 2x3;100.5 fallback 2x3;"
                                     "101.25 rendezvous_local 2x3;121.25 config 1x3;");
    assert_true(r.steps == 26 && r.fatal == 0 && r.lost_active == 1);
    assert_near(r.degraded, 0.75, 1e-9);
    assert_near(r.seconds[TRAIN_WASTED], 0, 1e-9);
    assert_near(r.lifetime_mean, (100.5 + 5 * 175) / 6, 1e-9);
    assert_near(r.lifetime_median, 175, 1e-9);
    assert_true(isnan(r.preemption_mean));
    train_redundant_profile_free(&p);
}

/*
 * Then "c", which does stages 2 and 0 since, goes at 100.75: fatal. The step that runs
 * since 99 is lost; all meet until 130.75; four make one pipeline; 11 steps until 175.
 */
static void
test_fatal(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    struct event event[] = {
        six, {100.5, SPOT_PREEMPT, "a", 1}, {100.75, SPOT_PREEMPT, "c", 1}};
    struct told told;
    struct train_redundant_result r = simulate(&o, event, 3, 175, &told);
    (void)state;
    assert_string_equal(told.events,
                        "45 rendezvous_global 0x0;75 config 2x3;100.5 remove 2x3;"
                        "100.5 fallback 2x3;100.75 rendezvous_global 2x3;"
                        "100.75 fatal 2x3;130.75 config 1x3;");
    assert_true(r.steps == 12 + 11 && r.fatal == 1 && r.rendezvous == 2);
    assert_near(r.seconds[TRAIN_WASTED], 1.75, 1e-9);
    assert_near(r.preemption_mean, 0.25, 1e-9);
    train_redundant_profile_free(&p);
}

/*
 * Two of six go while all meet (at 50): at 75 the meeting starts again, until 105; four
 * make one pipeline. At 110 two more come: ready at 155, when two wait and 3 + 1 + 2 make
 * two pipelines: after the step that ends at 157, those that run meet until 177.
 */
static void
test_again(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    struct event event[] = {six, {50, SPOT_PREEMPT, "b,e", 2}, {110, SPOT_ADD, "g,h", 2}};
    struct told told;
    struct train_redundant_result r = simulate(&o, event, 3, 180, &told);
    (void)state;
    assert_string_equal(told.events, "45 rendezvous_global 0x0;50 remove 0x0;"
                                     "50 remove 0x0;75 redo 0x0;105 config 1x3;"
                                     "157 rendezvous_local 1x3;177 config 2x3;");
    assert_true(r.steps == 13 + 1);
    train_redundant_profile_free(&p);
}

/* No more pipelines than the table has: 9 instances make two of three, three wait. */
static void
test_cap(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    struct event event[] = {{0, SPOT_ADD, NULL, 9}};
    struct told told;
    struct train_redundant_result r = simulate(&o, event, 1, 75 + 20, &told);
    (void)state;
    assert_string_equal(told.events, "45 rendezvous_global 0x0;75 config 2x3;");
    assert_true(r.steps == 10 && r.by_state[TRAIN_STANDBY] == 30 * 9 + 20 * 3);
    train_redundant_profile_free(&p);
}

/*
 * In every run the accounts sum to the time, instance-times by account and by state to
 * the integral of the population, no step is faster than the best, instances are kept.
 */
static void
test_laws(void **state)
{
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    static struct event event[300];
    struct told told;
    (void)state;
    for (int i = 0; i < 500; i++) {
        double end = 5000, time = 0, seconds = 0, accounts = 0, states = 0, integral = 0;
        uint64_t there = 0, every = 5 + random_below(200);
        struct train_redundant_result r;
        size_t n = 0;
        for (; n < 300; n++) {
            uint64_t count = 1 + random_below(4);
            double step = (double)(1 + random_below(every * 1000)) / 500;
            if (time + step > end)
                break;
            integral += step * (double)there;
            time += step;
            if (random_below(2) && there + count < 15) {
                event[n] = (struct event){time, SPOT_ADD, NULL, count};
                there += count;
            } else {
                event[n] = (struct event){time, SPOT_PREEMPT, NULL, count};
                there -= count < there ? count : there;
            }
        }
        integral += (end - time) * (double)there;
        o.victims = (enum train_victims)random_below(4);
        o.seed = (uint32_t)i;
        r = simulate(&o, event, n, end, &told);
        for (int a = 0; a < TRAIN_NACCOUNTS; a++) {
            assert_true(r.seconds[a] >= -1e-9);
            seconds += r.seconds[a];
            accounts += r.instance_seconds[a];
        }
        for (int s = 0; s < TRAIN_NSTATES; s++)
            states += r.by_state[s];
        assert_near(seconds, end, 1e-6);
        assert_near(accounts, states, 1e-6);
        assert_true((double)r.steps * 2 <= r.seconds[TRAIN_USEFUL] + 1e-9);
        assert_true(r.added - r.preempted == told.all);
        assert_true(told.all == there);
        assert_near(states, integral, 1e-6);
    }
    train_redundant_profile_free(&p);
}

static bool
pass(void *context, const struct spot_event *event, struct rec_error *err)
{
    return train_redundant_take(context, event, err);
}

/* Mean steps over many drawn traces fall as removals become likelier. */
static void
test_more_preemption(void **state)
{
    static const double removal[] = {0.02, 0.1, 0.3, 0.6};
    struct train_redundant_profile p = small();
    struct train_redundant_options o = options(&p);
    double before = INFINITY;
    struct rec_error err;
    (void)state;
    for (int k = 0; k < 4; k++) {
        double steps = 0;
        for (uint32_t seed = 0; seed < 200; seed++) {
            struct spot_hourly h = {.desired = 6, .minutes = 720, .seed = seed};
            struct train_redundant_sink sink = {0};
            struct train_redundant_result result;
            struct train_redundant *r = train_redundant_new(&o, &sink, &err);
            for (int i = 0; i < 24; i++) {
                h.addition[i] = 0.5;
                h.removal[i] = removal[k];
            }
            assert_non_null(r);
            assert_true(spot_draw_hourly(&h, pass, r, &err));
            assert_true(train_redundant_finish(r, 43200, &result, &err));
            steps += (double)result.steps / 200;
            train_redundant_free(r);
        }
        assert_true(steps < before - 100);
        before = steps;
    }
    train_redundant_profile_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quiet),
                                       cmocka_unit_test(test_loss),
                                       cmocka_unit_test(test_fatal),
                                       cmocka_unit_test(test_again),
                                       cmocka_unit_test(test_cap),
                                       cmocka_unit_test(test_laws),
                                       cmocka_unit_test(test_more_preemption)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
