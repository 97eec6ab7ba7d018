/* Elastic training: cases that a pencil solves, laws that always hold, and what more
 * preemption does. */
#include "unit.h"

#include "rampipe/train.h"

/* 16: 18 s, 32: 11 s, 48: 9 s, 64: 8 s; reconfiguration 88 s, checkpoint 89 s. */
static struct train_elastic_profile
published(void)
{
    struct train_elastic_profile p = {.reconfigure = 88, .checkpoint = 89};
    struct rec_error err;
    assert_true(train_elastic_profile_add(&p, 64, 8, &err));
    assert_true(train_elastic_profile_add(&p, 16, 18, &err));
    assert_true(train_elastic_profile_add(&p, 48, 9, &err));
    assert_true(train_elastic_profile_add(&p, 32, 11, &err));
    return p;
}

static struct train_elastic_options
options(const struct train_elastic_profile *profile)
{
    return (struct train_elastic_options){.profile = profile,
                                          .prepare = 180,
                                          .depth = 16,
                                          .start = 32,
                                          .capacity = 64,
                                          .victims = TRAIN_LOWEST,
                                          .seed = 1,
                                          .end = INFINITY};
}

struct event {
    double time;
    int add, preempt;
};

/* What was told, and the population as it should be. */
struct told {
    struct train_elastic_row row[4000];
    size_t nrows;
    double time;
    uint64_t all;
};

static void
hear_row(void *context, const struct train_elastic_row *row)
{
    struct told *told = context;
    assert_true(told->nrows < 4000);
    told->row[told->nrows++] = *row;
}

static void
hear_state(void *context, double time, enum train_elastic_phase phase,
           const uint64_t count[TRAIN_NSTATES])
{
    struct told *told = context;
    (void)phase;
    assert_true(time >= told->time);
    told->time = time;
    told->all = count[0] + count[1] + count[2];
}

static struct train_elastic_result
simulate(const struct train_elastic_options *o, const struct event *event, size_t n,
         double end, struct told *told)
{
    struct train_elastic_sink sink = {hear_row, hear_state, NULL, told};
    struct train_elastic_result result;
    struct rec_error err;
    struct train_elastic *e;

    memset(told, 0, sizeof *told);
    e = train_elastic_new(o, &sink, &err);
    assert_non_null(e);
    for (size_t i = 0; i < n; i++) {
        struct spot_event x = {.time = event[i].time};
        x.kind = SPOT_PREEMPT;
        x.count = (uint64_t)event[i].preempt;
        if (x.count > 0)
            assert_true(train_elastic_take(e, &x, &err));
        x.kind = SPOT_ADD;
        x.count = (uint64_t)event[i].add;
        if (x.count > 0)
            assert_true(train_elastic_take(e, &x, &err));
    }
    assert_true(train_elastic_finish(e, end, &result, &err));
    train_elastic_free(e);
    return result;
}

static void
assert_row(const struct told *told, size_t i, double time, bool reconfig, int id,
           int size)
{
    const struct train_elastic_row *row = &told->row[i];
    assert_true(i < told->nrows);
    assert_true(row->time == time && row->reconfig == reconfig && row->id == id &&
                row->size == (uint64_t)size);
}

/*
 * 32 instances lose one at 240. Iterations of 11 s; a checkpoint starts with iteration 1
 * at 11 and ends at 100; the next at 110, the first end after it, is written at 199 and
 * holds iterations up to 9. The third, from 209, is not done at 240. So: back to
 * iteration 10, which began at 110: 130 s are lost; 21 iterations were done, 11 of them
 * are lost. 31 instances make one pipeline: from 328 on an iteration takes 18 s, the k-th
 * ends at 328 + 18 k <= 900: 31 of them. Steps: 10 + 31.
 */
static void
test_one_loss(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    struct event events[] = {{240, 0, 1}};
    static struct told told;
    struct train_elastic_result r = simulate(&o, events, 1, 900, &told);
    (void)state;
    assert_row(&told, 0, 0, false, 0, 32);
    assert_row(&told, 21, 231, false, 21, 32);
    assert_row(&told, 22, 240, true, 0, 31);
    assert_true(told.row[22].after == 16 && told.row[22].redo == 10);
    assert_true(told.row[22].since == 110);
    assert_row(&told, 23, 328, false, 10, 16);
    assert_row(&told, 24, 346, false, 11, 16);
    assert_true(r.steps == 41 && r.lost == 11 && r.iterations == 21 + 31);
    assert_true(r.seconds[TRAIN_USEFUL] == 110 + 572);
    assert_true(r.seconds[TRAIN_WASTED] == 130);
    assert_true(r.seconds[TRAIN_RECONFIGURE] == 88);
    assert_true(r.seconds[TRAIN_STALL] == 0);
    assert_true(r.instance_seconds[TRAIN_WASTED] == 130 * 32);
    assert_true(r.by_state[TRAIN_ACTIVE] == 240 * 32 + 660 * 16);
    assert_true(r.by_state[TRAIN_STANDBY] == 660 * 15);
    train_elastic_profile_free(&p);
}

/*
 * All go at 150, more than there are. Nothing trains until 16 are there again: 16 come at
 * 300, are ready at 480, and train from 568 on. The checkpoint that ended at 100 held
 * iteration 0 only (it began at 11): iteration 1 is next.
 */
static void
test_none_left(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    struct event events[] = {{150, 0, 100}, {300, 16, 0}};
    static struct told told;
    struct train_elastic_result r = simulate(&o, events, 2, 1000, &told);
    (void)state;
    assert_row(&told, 14, 150, true, 0, 0);
    assert_row(&told, 15, 480, true, 1, 0);
    assert_row(&told, 16, 568, false, 1, 16);
    assert_true(r.preempted == 32 && r.lost_active == 32 && r.added == 16);
    assert_true(r.seconds[TRAIN_STALL] == 330 && r.seconds[TRAIN_RECONFIGURE] == 88);
    /* 568 + 18 k <= 1000: 24 */
    assert_true(r.steps == 1 + 24);
    train_elastic_profile_free(&p);
}

/*
 * Sizes that were not measured: pipelines of 8. 24 instances take (18 + 11) / 2 s, 8 take
 * 18 * 16 / 8, 72 as long as 64. A load time comes on top of the reconfiguration.
 */
static void
test_sizes(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    struct event events[] = {{0.25, 0, 16}};
    static struct told told;
    (void)state;
    assert_true(train_elastic_iteration(&p, 24) == 14.5);
    assert_true(train_elastic_iteration(&p, 8) == 36);
    assert_true(train_elastic_iteration(&p, 72) == 8);
    assert_true(train_elastic_iteration(&p, 64) == 8);
    o.depth = 8;
    o.start = 24;
    o.load = 2;
    simulate(&o, events, 1, 300, &told);
    assert_row(&told, 1, 0.25, true, 0, 8);
    assert_row(&told, 2, 90.25, false, 0, 8);
    assert_row(&told, 3, 126.25, false, 1, 8);
    train_elastic_profile_free(&p);
}

/* A cluster that starts empty, with what comes at once: no reconfiguration, no wait. */
static void
test_first_instances(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    struct event events[] = {{0, 33, 0}, {50, 40, 0}};
    static struct told told;
    struct train_elastic_result r;
    (void)state;
    o.start = 0;
    r = simulate(&o, events, 2, 60, &told);
    assert_row(&told, 0, 0, false, 0, 32);
    assert_row(&told, 5, 55, false, 5, 32);
    assert_true(r.start == 33 && r.added == 31 && r.refused == 9 && told.all == 64);
    train_elastic_profile_free(&p);
}

/*
 * 16 more are ready at 180, while the checkpoint begun at 110 is being written. Now:
 * stop, back to iteration 1 (the first checkpoint held iteration 0 only), 188 - ... at
 * 268. Saved: at 199, when it is written, back to 10, at 287.
 */
static void
test_grow(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    struct event events[] = {{0, 16, 0}};
    static struct told told;
    (void)state;
    simulate(&o, events, 1, 300, &told);
    assert_row(&told, 17, 180, true, 0, 32);
    assert_row(&told, 18, 268, false, 1, 48);
    o.grow_saved = true;
    simulate(&o, events, 1, 300, &told);
    assert_row(&told, 19, 199, true, 0, 32);
    assert_row(&told, 20, 287, false, 10, 48);
    train_elastic_profile_free(&p);
}

/* ---- laws ---------------------------------------------------------------- */

static size_t
draw_events(struct event *event, size_t room, double end, double rate, double share_added)
{
    size_t n = 0;
    for (double t = 0; n < room; n++) {
        t += -log(((double)random_below(1u << 30) + 1) / (1u << 30)) / rate;
        if (t >= end)
            break;
        event[n] = (struct event){t, 0, 0};
        if ((double)random_below(1000) < 1000 * share_added)
            event[n].add = (int)random_below(12);
        else
            event[n].preempt = 1 + (int)random_below(6);
    }
    return n;
}

/*
 * In every run, by any rules: the accounts sum to the time, and the instance-times by
 * account and by state to the trace's: the integral of the population, which is what came
 * and was not refused less what went and was there. Iterations done are those that count
 * and those lost. No faster than the best iteration. Instances are kept.
 */
static void
test_laws(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    static struct event event[400];
    static struct told told;
    (void)state;
    for (int i = 0; i < 400; i++) {
        double end = 20000, seconds = 0, by_account = 0, by_state = 0, integral = 0;
        size_t n = draw_events(event, 400, end, 1.0 / (20 + (double)random_below(400)),
                               0.1 * (double)(2 + random_below(7)));
        double population, last = 0;
        struct train_elastic_result r;
        o.start = random_below(70);
        o.capacity = 64;
        o.depth = 1 + random_below(20);
        o.victims = (enum train_victims)random_below(4);
        o.rules = (enum train_elastic_rules)random_below(3);
        o.tick = o.rules == TRAIN_ELASTIC_SANE ? 0 : 5;
        o.grow_saved = o.rules == TRAIN_ELASTIC_SANE && random_below(2);
        r = simulate(&o, event, n, end, &told);
        for (int a = 0; a < TRAIN_NACCOUNTS; a++) {
            assert_true(r.seconds[a] >= -1e-9);
            seconds += r.seconds[a];
            by_account += r.instance_seconds[a];
        }
        for (int s = 0; s < TRAIN_NSTATES; s++)
            by_state += r.by_state[s];
        population = (double)o.start;
        for (size_t j = 0; j < n && o.rules == TRAIN_ELASTIC_SANE; j++) {
            integral += (event[j].time - last) * population;
            last = event[j].time;
            population -= fmin(population, event[j].preempt);
            population += fmin(event[j].add, fmax(0, 64 - population));
        }
        integral += (end - last) * population;
        assert_near(seconds, end, 1e-6);
        assert_near(by_account, by_state, 1e-9 * by_state + 1e-6);
        if (o.rules == TRAIN_ELASTIC_SANE)
            assert_near(by_state, integral, 1e-9 * integral + 1e-6);
        assert_true((int64_t)r.iterations == r.steps + r.lost);
        assert_true((double)r.iterations <= seconds / 8 + 1);
        assert_true((double)r.steps * 8 <= r.seconds[TRAIN_USEFUL] + 1e-6 ||
                    o.rules != TRAIN_ELASTIC_SANE);
        assert_true(r.start + r.added - r.preempted == told.all);
        assert_true(r.lost_active <= r.preempted);
    }
    train_elastic_profile_free(&p);
}

/* Mean goodput over many traces falls as preemptions come faster, other things equal. */
static void
test_more_preemption(void **state)
{
    struct train_elastic_profile p = published();
    struct train_elastic_options o = options(&p);
    double before = INFINITY;
    static struct told told;
    (void)state;
    for (double every = 8000; every > 200; every /= 3) {
        double steps = 0;
        for (int i = 0; i < 200; i++) {
            static struct event event[400];
            size_t n = draw_events(event, 400, 20000, 1 / every, 0);
            /* each preemption is made good 100 s later */
            struct event both[800];
            size_t m = 0;
            for (size_t j = 0, k = 0; j < n || k < n;)
                if (j < n && event[j].time <= event[k].time + 100)
                    both[m++] = event[j++];
                else
                    both[m++] = (struct event){event[k].time + 100, event[k].preempt, 0},
                    k++;
            while (m > 0 && both[m - 1].time > 20000)
                m--;
            steps += (double)simulate(&o, both, m, 20000, &told).steps / 200;
        }
        assert_true(steps < before - 10);
        before = steps;
    }
    train_elastic_profile_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_loss),       cmocka_unit_test(test_none_left),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_first_instances),
        cmocka_unit_test(test_grow),           cmocka_unit_test(test_laws),
        cmocka_unit_test(test_more_preemption)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
