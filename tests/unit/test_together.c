/* Companies, jobs that share links: times that are worked out by hand, and what fails. */
#include "buses.h"

/* Steps of 8 s and of 5 s alone, on one bus; and one that takes no time. */
#define LONG                                                                       \
    "graph long m\nop long 1 forward 2 0\nop long 2 forward 2 0\ndep long 1 2 4\n" \
    "layout long long 2\nplace long 1 0\nplace long 2 1\n"
#define SHORT                                                                          \
    "graph short m\nop short 1 forward 1 0\nop short 2 forward 1 0\ndep short 1 2 3\n" \
    "layout short short 2\nplace short 1 0\nplace short 2 1\n"
#define NOTHING "graph none m\nop none 1 task 0 0\nlayout none none 1\nplace none 1 0\n"
#define JOB(id, graph, time, steps, servers)        \
    "job " id " " graph " " time " " steps " inf\n" \
    "alloc " id " " graph " " graph " " time " " servers "\n"
#define LONG_SHORT                                                       \
    CLUSTER LONG SHORT NOTHING JOB("a", "long", "0", "2", "0-0-0,0-0-1") \
        JOB("b", "short", "1", "1", "0-0-2,1-0-0")

static void
expect(const struct result *result, double start, double finish, double waited)
{
    assert_int_equal(result->done, 1);
    assert_same(result->start, start);
    assert_same(result->finish, finish);
    assert_same(result->waited, waited);
}

/*
 * a computes until 2, b from 1 to 2. Then both send: b's 3 bytes arrive at 8, a's 4 when
 * 1 is left of them then, at 9. b ends at 9. a's step ends at 11; its second one is alone
 * and ends at 19. Alone, a would end at 16 and b at 6.
 */
static void
test_two_jobs(void **state)
{
    struct heard heard;
    (void)state;
    for (int i = 0; i < 2; i++) {
        replay(LONG_SHORT, &buses_sharing, i ? INFINITY : SIM_COMPANY_EXACT, INFINITY,
               &heard);
        expect(&heard.of[0], 0, 19, 0);
        expect(&heard.of[1], 1, 9, 0);
        assert_string_equal(heard.order, "+a+b-b-a");
        assert_same(heard.of[0].cost.step.seconds, 9.5);
        assert_same(heard.of[0].cost.step.comm, (7 + 4) / 2.);
        assert_same(heard.of[0].cost.step.comp, 4);
        assert_same(heard.of[0].cost.step.busy, 4);
        assert_same(heard.of[1].cost.step.seconds, 8);
        assert_same(heard.of[1].cost.step.comm, 6);
        assert_same(heard.of[1].cost.step.comp, 2);
    }
    replay(LONG_SHORT, NULL, 0, INFINITY, &heard); /* RAMP's channels are not shared */
    assert_true(heard.of[0].finish < 8.1 && heard.of[1].finish < 3.1);
}

/*
 * c is to have the servers of b from 6 on, when b would have ended alone. It starts when
 * b ends, at 9, sends from 10 to 13, when a sends again, and ends at 14. An alloc record
 * of 9 is carried out after b's end at this instant, with the same result. One of 2
 * breaks the rule: b computes until 3, if it could send in no time, as RAMP nearly can.
 */
static void
test_wait(void **state)
{
    struct heard heard;
    struct rec_error err = {.text = ""};
    const char *want = ": the rule 'one job at a time on a server' is broken: job 'c' "
                       "takes server 0-0-2 at 2, but another job has it until 3";
    (void)state;
    replay(LONG_SHORT JOB("c", "short", "6", "1", "0-0-2,1-0-0"), &buses_sharing,
           INFINITY, INFINITY, &heard);
    expect(&heard.of[2], 9, 14, 3);
    expect(&heard.of[0], 0, 19, 0);
    assert_string_equal(heard.order, "+a+b-b+c-c-a");
    replay(LONG_SHORT JOB("c", "short", "9", "1", "0-0-2,1-0-0"), &buses_sharing,
           INFINITY, INFINITY, &heard);
    expect(&heard.of[2], 9, 14, 0);
    expect(&heard.of[0], 0, 19, 0);
    assert_string_equal(heard.order, "+a+b-b+c-c-a");
    assert_false(try_replay(LONG_SHORT JOB("c", "short", "2", "1", "0-0-2,1-0-0"),
                            &buses_sharing, INFINITY, INFINITY, &heard, &err));
    assert_non_null(strstr(err.text, want));
    assert_int_equal(err.code, REC_DATA);
}

/*
 * d waits for a server of c, and for one of b; c waits for b. c has a server more that
 * nobody waits for. b ends at 9, c runs 9..14 and d 14..19: it sends 15..18, when a,
 * whose second step sends 13..17 alone, has sent 2 of its 4 bytes. So both share from 15
 * on: a's last 2 arrive at 19, d has 1 left then and gets it at 20. a computes 19..21; d
 * until 21.
 */
static void
test_line(void **state)
{
    struct heard heard;
    (void)state;
    replay(LONG_SHORT JOB("c", "short", "6", "1", "1-0-0,1-0-1")
               JOB("d", "short", "11", "1", "0-0-2,1-0-1"),
           &buses_sharing, INFINITY, INFINITY, &heard);
    expect(&heard.of[2], 9, 14, 3);
    expect(&heard.of[3], 14, 21, 3);
    expect(&heard.of[0], 0, 21, 0);
    assert_string_equal(heard.order, "+a+b-b+c-c+d-a-d");
}

/* The simulated time ends while a and b send, and c waits; or while c runs. */
static void
test_until(void **state)
{
    static const char text[] = LONG_SHORT JOB(
        "c", "short", "6", "1",
        "0-0-2,1-0-0") "job d long 8 1 inf\nalloc d long long 20 0-1-0,0-1-1\n";
    struct heard heard;
    (void)state;
    replay(text, &buses_sharing, INFINITY, 8.5, &heard);
    assert_string_equal(heard.order, "+a+b?a?b?c?d");
    assert_true(heard.of[0].started && heard.of[1].started);
    assert_false(heard.of[2].started || heard.of[3].started);
    assert_same(heard.of[0].cost.step.seconds, 8); /* no step is over: alone */
    replay(text, &buses_sharing, INFINITY, 10, &heard);
    assert_string_equal(heard.order, "+a+b-b+c?a?c?d");
    replay(text, &buses_sharing, INFINITY, 12, &heard);
    assert_string_equal(heard.order, "+a+b-b+c?a?c?d");
    assert_same(heard.of[0].cost.step.seconds, 11); /* its first step */
    replay(text, &buses_sharing, 0, 3, &heard);     /* the ends are known */
    assert_string_equal(heard.order, "+a+b?b?a");
}

/* A job whose steps take no time ends when it starts, however many it has, and slows
 * nobody. */
static void
test_no_time(void **state)
{
    struct heard heard;
    (void)state;
    replay(CLUSTER LONG NOTHING JOB("a", "long", "0", "2", "0-0-0,0-0-1")
               JOB("b", "none", "3", "1000000000000000", "0-0-2")
                   JOB("c", "none", "3", "1", "0-0-2"),
           &buses_sharing, INFINITY, INFINITY, &heard);
    expect(&heard.of[0], 0, 16, 0);
    expect(&heard.of[1], 3, 3, 0);
    expect(&heard.of[2], 3, 3, 0);
}

/*
 * Mean steps. a and b are alike and begin at once: both always send at once, which takes
 * 8 s, and a step takes 12. b's 100 steps end at 1200. a has 100 left, of 8 s: 2000. c,
 * on the other bus, begins 4 s later than d, so one of them sends while the other
 * computes, and neither is slowed.
 */
static void
test_phases(void **state)
{
    struct heard heard;
    (void)state;
    replay(CLUSTER LONG JOB("a", "long", "0", "200", "0-0-0,0-0-1")
               JOB("b", "long", "0", "100", "0-0-2,1-0-0")
                   JOB("d", "long", "0", "200", "0-1-0,0-1-1")
                       JOB("c", "long", "4", "200", "0-1-2,1-1-0"),
           &buses_sharing, 0, INFINITY, &heard);
    expect(&heard.of[0], 0, 2000, 0);
    expect(&heard.of[1], 0, 1200, 0);
    expect(&heard.of[2], 4, 1604, 0);
    expect(&heard.of[3], 0, 1600, 0);
    assert_same(heard.of[0].cost.step.seconds, 10);
    assert_same(heard.of[0].cost.step.comm, 6);
    assert_same(heard.of[0].cost.step.comp, 4);
}

/* A long job is slowed by 200 short ones, one after the other, so its end is reckoned
 * again 400 times. Old ends are dropped, and none is taken for the true one. */
static void
test_many_changes(void **state)
{
    struct heard mean, truth;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    fputs(CLUSTER LONG SHORT JOB("a", "long", "0", "1000", "0-0-0,0-0-1"), out);
    for (int i = 0; i < 200; i++)
        fprintf(out, "job b%d short %d 2 inf\nalloc b%d short short %d 0-0-2,1-0-0\n", i,
                21 * i, i, 21 * i);
    fclose(out);
    replay(text, &buses_sharing, 0, INFINITY, &mean);
    replay(text, &buses_sharing, INFINITY, INFINITY, &truth);
    assert_int_equal(mean.of[0].done, 1);
    assert_int_equal(mean.of[1].done, 200);
    assert_int_equal(truth.of[1].done, 200);
    assert_true(truth.of[0].finish > 8300);
    assert_close(mean.of[0].finish, truth.of[0].finish, 0.02);
    free(text);
}

/* ---- the cost of a company ------------------------------------------------- */

static struct sim_layout *
add_layout(struct sim_layouts *pool, const struct graph *graph)
{
    struct graph_layout where;
    struct sim_layout *layout;
    struct rec_error err = {.text = ""};
    assert_true(graph_layout_start(&where, rec_str("l"), graph, 2, &err));
    for (uint32_t i = 0; i < graph->nops; i++)
        graph_layout_place(&where, i, i);
    layout = sim_layout_new(&where, &err);
    assert_non_null(layout);
    sim_layouts_add(pool, layout);
    return layout;
}

/*
 * Two jobs of LONG at once: 12 s each, as above; one half a step behind: 8 s. The same
 * company elsewhere, or in another order, is not simulated again. One of LONG, and one
 * that computes 2 s, sends 3 bytes and computes 3 s: both always send at once. It takes
 * 6 s until those 3 bytes are there, and 1 s more for the other: 2 + 7 + 2 and 2 + 6 + 3
 * are both 11.
 */
static void
test_cost(void **state)
{
    struct graph g[] = {
        graph_text("graph g m\nop g 1 forward 2 0\nop g 2 forward 2 0\ndep g 1 2 4\n"),
        graph_text("graph h m\nop h 1 forward 2 0\nop h 2 forward 3 0\ndep h 1 2 3\n"),
        graph_text("graph i m\nop i 1 forward 0 0\nop i 2 forward 0 0\n"),
        graph_text("graph j m\nop j 1 forward 1e-9 0\nop j 2 forward 0 0\n")};
    struct rec_error err = {.text = ""};
    struct net *net = net_parse("ramp:2,2,3,1.6e12,inf", &err);
    struct sim_layouts pool = {.limit = SIZE_MAX, .sharing = &buses_sharing};
    struct sim_layout *layout[4];
    const uint32_t at[] = {0, 1}, there[] = {2, 6}, far[] = {3, 4}, farther[] = {5, 9};
    const double behind[] = {0, 0.5};
    struct sim_company company = {.nsteps = 0};
    struct sim_cost alone;
    struct sim_step step[3];
    int opened;
    (void)state;

    for (int i = 0; i < 4; i++)
        layout[i] = add_layout(&pool, &g[i]);
    {
        struct sim_member two[] = {{0, layout[0], net, at, SIM_AS_IT_IS, NULL, NULL},
                                   {1, layout[0], net, there, SIM_AS_IT_IS, NULL, NULL}};
        struct sim_member same[] = {
            {7, layout[0], net, far, SIM_AS_IT_IS, NULL, NULL},
            {3, layout[0], net, farther, SIM_AS_IT_IS, NULL, NULL}};
        seen.opened = seen.closed = 0;
        assert_true(sim_company_cost(&company, two, NULL, 1, step, &err));
        assert_true(sim_layout_cost(layout[0], net, at, &alone, &err));
        assert_memory_equal(step, &alone.step, sizeof *step);
        assert_same(step[0].seconds, 8);
        assert_true(sim_company_cost(&company, two, NULL, 2, step, &err));
        for (int i = 0; i < 2; i++) {
            assert_same(step[i].seconds, 12);
            assert_same(step[i].comm, 8);
            assert_same(step[i].comp, 4);
            assert_same(step[i].busy, 4);
        }
        opened = seen.opened;
        step[0].seconds = step[1].seconds = 0;
        assert_true(sim_company_cost(&company, same, NULL, 2, step, &err));
        assert_same(step[0].seconds, 12);
        assert_same(step[1].seconds, 12);
        assert_int_equal(seen.opened, opened);
        assert_true(sim_company_cost(&company, two, behind, 2, step, &err));
        assert_same(step[0].seconds, 8);
        assert_same(step[1].seconds, 8);
        assert_true(seen.opened > opened);
    }
    {
        struct sim_member both[] = {
            {0, layout[1], net, at, SIM_AS_IT_IS, NULL, NULL},
            {1, layout[2], net, farther, SIM_AS_IT_IS, NULL, NULL},
            {2, layout[0], net, there, SIM_AS_IT_IS, NULL, NULL}};
        struct sim_member turned[] = {both[2], both[0]};
        assert_true(sim_company_cost(&company, both, NULL, 3, step, &err));
        assert_same(step[0].seconds, 11);
        assert_same(step[1].seconds, 0); /* takes no time */
        assert_same(step[2].seconds, 11);
        opened = seen.opened;
        assert_true(sim_company_cost(&company, turned, NULL, 2, step, &err));
        assert_same(step[0].comm, 7);
        assert_same(step[1].comm, 6);
        assert_int_equal(seen.opened, opened);
        both[1].layout = layout[3];
        assert_false(sim_company_cost(&company, both, NULL, 3, step, &err));
        assert_int_equal(err.code, REC_USAGE);
        assert_non_null(strstr(err.text, "more than 10000000000"));
    }
    assert_int_equal(seen.opened, seen.closed);
    sim_company_forget(&company);
    for (int i = 0; i < 4; i++) {
        sim_layout_free(layout[i]);
        graph_free(&g[i]);
    }
    net_free(net);
}

/* ---- what fails ------------------------------------------------------------ */

/* Each call of a courier that fails is the error of the replay, and all is closed. */
static void
test_bad_courier(void **state)
{
    static const char text[] = LONG_SHORT JOB("c", "short", "6", "3", "0-0-2,1-0-0");
    static const char *const what[] = {"no bus comes", "the bus is full",
                                       "the bus is broken"};
    int *const bad[] = {&seen.bad_open, &seen.bad_take, &seen.bad_send};
    struct heard heard;
    struct rec_error err;
    (void)state;
    for (int exact = 0; exact <= 2; exact += 2)
        for (int i = 0; i < 3; i++) {
            int n = 0;
            bool ok = false;
            while (!ok) {
                seen.opened = seen.closed = 0;
                *bad[i] = ++n;
                err = (struct rec_error){.text = ""};
                ok = try_replay(text, &buses_sharing, exact, INFINITY, &heard, &err);
                assert_int_equal(seen.opened, seen.closed);
                if (!ok)
                    assert_string_equal(err.text, what[i]);
            }
            assert_true(n > 4);
            *bad[i] = 0;
        }
    seen.deaf = true;
    err = (struct rec_error){.text = ""};
    assert_false(try_replay(text, &buses_sharing, INFINITY, INFINITY, &heard, &err));
    assert_string_equal(err.text,
                        "graph 'long': 1 batches have left and never arrive by the "
                        "courier 'company', with 1 ops left");
    assert_int_equal(err.code, REC_BUG);
    seen.deaf = false;
}

/* Beyond 2^53 s the next second is no other number: steps cannot be simulated there, even
 * if the end of all of them can be told. */
static void
test_too_late(void **state)
{
    struct heard heard;
    struct rec_error err = {.text = ""};
    (void)state;
    assert_false(try_replay(CLUSTER LONG JOB("a", "long", "1e17", "99999", "0-0-0,0-0-1")
                                JOB("b", "long", "1e17", "99999", "0-0-2,1-0-0"),
                            &buses_sharing, INFINITY, INFINITY, &heard, &err));
    assert_string_equal(err.text,
                        "graph 'long': a step is too short to be simulated at 1e+17 s");
    assert_int_equal(err.code, REC_DATA);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_jobs),     cmocka_unit_test(test_wait),
        cmocka_unit_test(test_line),         cmocka_unit_test(test_until),
        cmocka_unit_test(test_no_time),      cmocka_unit_test(test_phases),
        cmocka_unit_test(test_many_changes), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_bad_courier),  cmocka_unit_test(test_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
