/* One training step: worked cases, and random ones against a plain simulator. */
#include "graphs.h"

#include "rampipe/event.h"
#include "rampipe/sim.h"

enum { MOST = 64 };

/* A placed graph and what became of it. */
struct run {
    struct graph graph;
    uint32_t server[MOST], placed[MOST];
    double priority[MOST], seconds[4 * MOST];
    uint32_t nservers;
    bool has_priority;
    struct sim_step step;
    double end[MOST], ran[MOST]; /* seen by the observer */
    uint32_t pieces[MOST];
    uint32_t sends;
};

static void
see_run(void *context, uint32_t op, double start, double end)
{
    struct run *run = context;
    assert_true(end > start);
    run->ran[op] += end - start;
    run->end[op] = end;
    run->pieces[op]++;
}

static void
see_send(void *context, uint32_t dep, double start, double end)
{
    struct run *run = context;
    assert_same(end, start + run->seconds[dep]);
    run->sends++;
}

/* The same on a clock, event by event, from time `start` on. */
static bool
step_on_clock(const struct sim_placed *placed, double start, struct sim_step *step,
              struct rec_error *err)
{
    struct sim_stepping *s = sim_stepping_new(placed, NULL, start, err);
    struct event_clock clock = {0};
    bool ok = s && event_clock_add(&clock, &sim_step_model, s, err) &&
              event_clock_end(&clock, INFINITY, err) && sim_stepping_end(s, step, err);
    event_clock_free(&clock);
    sim_stepping_free(s);
    return ok;
}

static bool
step(struct run *run, struct rec_error *err)
{
    struct sim_observer observer = {.run = see_run, .send = see_send, .context = run};
    struct sim_placed placed = {.graph = &run->graph,
                                .nservers = run->nservers,
                                .server = run->server,
                                .placed = run->placed,
                                .priority = run->has_priority ? run->priority : NULL,
                                .dep_seconds = run->seconds};
    struct sim_step plain;
    bool ok = sim_step(&placed, &observer, &run->step, err);
    assert_true(sim_step(&placed, NULL, &plain, err) == ok);
    if (ok) {
        assert_memory_equal(&plain, &run->step, sizeof plain);
        assert_int_equal(run->step.events, run->graph.nops + run->graph.ndeps);
    }
    assert_true(step_on_clock(&placed, 0, &plain, err) == ok);
    if (ok)
        assert_memory_equal(&plain, &run->step, sizeof plain);
    return ok;
}

/*
 * Ops on servers "0 0 1", in order of records and placed in that order; the bytes of a
 * dep stand for its seconds.
 */
static struct run *
run_text(const char *records, const char *servers)
{
    static struct run run;
    struct rec_error err = {.text = ""};
    char text[2000];
    snprintf(text, sizeof text, "graph g m\n%s", records);
    memset(&run, 0, sizeof run);
    run.graph = graph_text(text);
    run.nservers = 4;
    for (uint32_t i = 0; i < run.graph.nops; i++) {
        run.server[i] = (uint32_t)strtoul(servers, (char **)&servers, 10);
        run.placed[i] = i;
    }
    for (size_t d = 0; d < run.graph.ndeps; d++)
        run.seconds[d] = run.graph.dep[d].bytes;
    if (!step(&run, &err))
        fail_msg("%s", err.text);
    graph_free(&run.graph);
    return &run;
}

static void
expect(const struct run *run, double seconds, double comm, double comp, double busy)
{
    assert_same(run->step.seconds, seconds);
    assert_same(run->step.comm, comm);
    assert_same(run->step.comp, comp);
    assert_same(run->step.busy, busy);
    assert_same(run->step.sequential, busy);
}

/* 2 + 1 (on the way) + 3 + 0 (same server) + 4 = 10. */
static void
test_chain(void **state)
{
    struct run *r =
        run_text("op g a forward 2 0\nop g b forward 3 0\nop g c forward 4 0\n"
                 "dep g a b 1\ndep g b c 0\n",
                 "0 1 1");
    (void)state;
    expect(r, 10, 1, 9, 9);
    assert_int_equal(r->step.used, 2);
    assert_int_equal(r->sends, 1);
}

/*
 * a (1) forks to b (2, same server) and c (1, other server, 4 on the way); d joins them,
 * 1 from each. b ends at 3; c runs 5..6; its dep arrives at 7, d runs 7..8. On the way:
 * 1..5 (a->c) with 3..4 (b->d) inside it, 6..7: comm 5. comp: 0..3, 5..6, 7..8: 5.
 */
static void
test_fork_join(void **state)
{
    struct run *r =
        run_text("op g a forward 1 0\nop g b forward 2 0\nop g c forward 1 0\n"
                 "op g d forward 1 0\ndep g a b 0\ndep g a c 4\ndep g b d 1\n"
                 "dep g c d 1\n",
                 "0 0 1 1");
    (void)state;
    expect(r, 8, 5, 5, 5);
    assert_same(r->end[2], 6);
}

/*
 * long (10) starts at 0; short (1), ready at 2 + 1 = 3 from the other server, interrupts
 * it: runs 3..4; long goes on with 7 left, to 11.
 */
static void
test_preemption(void **state)
{
    struct run *r = run_text("op g long forward 10 0\nop g x forward 2 0\n"
                             "op g short forward 1 0\ndep g x short 1\n",
                             "0 1 0");
    (void)state;
    expect(r, 11, 1, 11, 13);
    assert_same(r->end[2], 4);
    assert_int_equal(r->pieces[0], 2);
    assert_same(r->ran[0], 10);
}

/* By initial time: at 3 long has 1 left of 4, but is not shorter than 2: it waits. */
static void
test_static_priority(void **state)
{
    struct run *r = run_text("op g long forward 4 0\nop g x forward 2 0\n"
                             "op g short forward 2 0\ndep g x short 1\n",
                             "0 1 0");
    (void)state;
    assert_same(r->end[2], 5);
    assert_same(r->end[0], 6);
}

/*
 * 0.1 + 0.7 is 0.8 but for rounding, which makes it less. So short gets ready when long
 * ends, not before: nothing is interrupted, and y runs from 0.8 on.
 */
static void
test_rounding(void **state)
{
    struct run *r = run_text("op g long forward 0.8 0\nop g x forward 0.1 0\n"
                             "op g short forward 0.1 0\nop g y forward 1 0\n"
                             "dep g x short 0.7\ndep g long y 0\n",
                             "0 1 0 1");
    (void)state;
    assert_true(0.1 + 0.7 < 0.8);
    assert_int_equal(r->pieces[0], 1);
    assert_same(r->end[0], 0.8);
    assert_same(r->end[2], 0.8 + 0.1);
    assert_same(r->end[3], 0.8 + 1);
}

/* Equal ops: the one placed later runs first, and interrupts one placed earlier. */
static void
test_tie(void **state)
{
    struct run *r =
        run_text("op g a forward 2 0\nop g b forward 2 0\nop g x forward 1 0\n"
                 "op g c forward 2 0\ndep g x c 0\n",
                 "0 0 1 0");
    (void)state;
    assert_same(r->end[3], 3); /* c: 1..3 */
    assert_same(r->end[1], 4); /* b: 0..1, 3..4 */
    assert_same(r->end[0], 6);
}

/*
 * priority= decides before length, highest first; equal priorities by length; ops
 * without one come last, by length. All ready at 0 on one server:
 * d (5, priority 2), b (1, priority 1), a (3, priority 1), e (1), c (2).
 */
static void
test_priority(void **state)
{
    static const double priority[] = {1, 1, NAN, 2, NAN};
    static const double end[] = {9, 6, 12, 5, 10};
    struct run run = {.nservers = 1, .has_priority = true};
    struct rec_error err;
    (void)state;
    run.graph =
        graph_text("graph g m\nop g a forward 3 0\nop g b forward 1 0\n"
                   "op g c forward 2 0\nop g d forward 5 0\nop g e forward 1 0\n");
    for (uint32_t i = 0; i < 5; i++) {
        run.placed[i] = i;
        run.priority[i] = priority[i];
    }
    assert_true(step(&run, &err));
    for (int i = 0; i < 5; i++)
        assert_same(run.end[i], end[i]);
    graph_free(&run.graph);
}

/* Ops and deps of no length pass on at once: c starts at 2, behind two empty ops. */
static void
test_zero(void **state)
{
    struct run *r =
        run_text("op g a forward 2 0\nop g z forward 0 0\nop g y forward 0 0\n"
                 "op g c forward 1 0\ndep g a z 0\ndep g z y 0\ndep g y c 0\n",
                 "0 1 0 2");
    (void)state;
    expect(r, 3, 0, 3, 3);
    r = run_text("op g z forward 0 0\n", "0");
    expect(r, 0, 0, 0, 0);
    assert_int_equal(r->step.used, 1);
}

/*
 * Sync deps gate nothing but the end: b (1) runs at once though a (1) owes it a sync dep
 * of 5; the step ends when that has arrived, 1 + 5. comm and comp do not overlap here.
 */
static void
test_sync(void **state)
{
    struct run *r = run_text("op g a backward 1 0\nop g b backward 1 0\n"
                             "dep g a b 5 kind=sync\ndep g b a 3 kind=sync\n",
                             "0 1");
    (void)state;
    expect(r, 6, 5, 1, 2);
    assert_same(r->end[1], 1);
    /* A sync dep that has arrived releases nobody: b waits for x, 4 + 1. */
    r = run_text("op g a backward 1 0\nop g b backward 1 0\nop g x forward 4 0\n"
                 "dep g a b 1 kind=sync\ndep g x b 1\n",
                 "0 1 2");
    assert_same(r->end[1], 6);
}

/* Overlap counts in both: a's dep is on its way 1..4 while b runs 0..5 elsewhere. */
static void
test_overlap(void **state)
{
    struct run *r =
        run_text("op g a forward 1 0\nop g b forward 5 0\nop g c forward 1 0\n"
                 "dep g a c 3\n",
                 "0 1 0");
    (void)state;
    expect(r, 5, 3, 5, 7);
}

static void
test_deadlock(void **state)
{
    struct run run = {.nservers = 1, .placed = {0, 1, 2}};
    struct rec_error err;
    (void)state;
    /* closing it fails last of all, when its indexes are there */
    assert_false(try_graph_text(&run.graph,
                                "graph g m\nop g a forward 1 0\nop g b forward 1 0\n"
                                "op g c forward 1 0\ndep g b c 1\ndep g c b 1\n",
                                &err));
    assert_false(step(&run, &err));
    assert_int_equal(err.code, REC_DATA);
    assert_non_null(strstr(err.text, "deadlock with 2 of 3 ops left"));
    assert_non_null(strstr(err.text, "waits for"));
    graph_free(&run.graph);
}

/* A time that no double holds is an error of the data, not of rampipe. */
static void
test_overflow(void **state)
{
    struct run run = {.nservers = 1, .placed = {0, 1}};
    struct rec_error err;
    (void)state;
    run.graph = graph_text("graph g m\nop g a forward 1e308 0\nop g b forward 1e308 0\n");
    assert_false(step(&run, &err));
    assert_int_equal(err.code, REC_DATA);
    graph_free(&run.graph);
}

/*
 * What happens at an instant is complete before a server chooses: z (no length) ends at 0
 * and releases p (priority 2) at once, which therefore goes before y (no length, 1).
 */
static void
test_instant(void **state)
{
    struct run run = {
        .nservers = 1, .has_priority = true, .placed = {0, 1, 2}, .priority = {3, 1, 2}};
    struct rec_error err;
    (void)state;
    run.graph = graph_text("graph g m\nop g z forward 0 0\nop g y forward 0 0\n"
                           "op g p forward 1 0\nop g x forward 1 0\ndep g z p 0\n"
                           "dep g y x 0\n");
    run.server[3] = 1;
    run.nservers = 2;
    run.placed[3] = 3;
    run.priority[3] = NAN;
    assert_true(step(&run, &err));
    assert_same(run.end[2], 1);
    assert_same(run.end[3], 2);
    graph_free(&run.graph);
}

/* ---- the plain simulator -------------------------------------------------------------
 * Section 7.4 of the reference with the rules of section 9: at every tick each server
 * runs its first ready op, all ready deps progress, and the clock goes to the next
 * completion; deps that are no flow arrive before a server chooses.
 */

static bool
goes_first(const struct run *r, uint32_t a, uint32_t b)
{
    double p = r->has_priority ? r->priority[a] : (double)NAN;
    double q = r->has_priority ? r->priority[b] : (double)NAN;
    double s = r->graph.op[a].compute, t = r->graph.op[b].compute;
    if (isnan(p) != isnan(q))
        return !isnan(p);
    if (!isnan(p) && p != q)
        return p > q;
    return s != t ? s < t : r->placed[a] > r->placed[b];
}

enum { WAITS, READY, DONE };

/* Parents' deps that have not arrived. */
static bool
has_parents_left(const struct run *r, uint32_t op, const int *dep_state)
{
    for (size_t d = 0; d < r->graph.ndeps; d++)
        if (r->graph.dep[d].dst == op && !r->graph.dep[d].sync && dep_state[d] != DONE)
            return true;
    return false;
}

static struct sim_step
plain_step(const struct run *r)
{
    const struct graph *g = &r->graph;
    struct sim_step result = {0};
    double op_left[MOST], dep_left[4 * MOST];
    int op_state[MOST] = {0}, dep_state[4 * MOST] = {0};

    for (size_t i = 0; i < g->nops; i++)
        op_left[i] = g->op[i].compute;
    for (size_t d = 0; d < g->ndeps; d++)
        dep_left[d] = r->seconds[d];
    for (;;) {
        uint32_t runs[4];
        size_t left = 0, sending = 0, running = 0;
        double tick = INFINITY;
        bool arrives;

        for (uint32_t s = 0; s < 4; s++)
            runs[s] = GRAPH_NONE;
        for (uint32_t i = 0; i < g->nops; i++) {
            left += op_state[i] != DONE;
            if (op_state[i] == WAITS && !has_parents_left(r, i, dep_state))
                op_state[i] = READY;
            if (op_state[i] == READY && (runs[r->server[i]] == GRAPH_NONE ||
                                         goes_first(r, i, runs[r->server[i]])))
                runs[r->server[i]] = i;
        }
        for (size_t d = 0; d < g->ndeps; d++) {
            left += dep_state[d] != DONE;
            if (dep_state[d] == WAITS && op_state[g->dep[d].src] == DONE)
                dep_state[d] = READY;
            if (dep_state[d] == READY) {
                sending++;
                tick = fmin(tick, dep_left[d]);
            }
        }
        arrives = tick == 0;
        for (int s = 0; s < 4; s++)
            if (runs[s] != GRAPH_NONE) {
                running++;
                tick = fmin(tick, op_left[runs[s]]);
            }
        if (left == 0)
            return result;
        assert_true(tick < (double)INFINITY);
        for (int s = 0; s < 4 && !arrives; s++)
            if (runs[s] != GRAPH_NONE && (op_left[runs[s]] -= tick) == 0)
                op_state[runs[s]] = DONE;
        for (size_t d = 0; d < g->ndeps; d++)
            if (dep_state[d] == READY && (dep_left[d] -= tick) == 0)
                dep_state[d] = DONE;
        result.seconds += tick;
        result.comm += sending ? tick : 0;
        result.comp += running ? tick : 0;
        result.busy += (double)running * tick;
    }
}

/* The longest way through the graph, servers being no limit. */
static double
critical_path(const struct run *r)
{
    const struct graph *g = &r->graph;
    uint32_t order[MOST];
    double end[MOST] = {0}, longest = 0;
    struct rec_error err;
    assert_true(graph_order(g, order, &err));
    for (size_t n = 0; n < g->nops; n++) {
        uint32_t i = order[n];
        for (size_t d = 0; d < g->ndeps; d++)
            if (g->dep[d].dst == i && !g->dep[d].sync)
                end[i] = fmax(end[i], end[g->dep[d].src] + r->seconds[d]);
        end[i] += g->op[i].compute;
        longest = fmax(longest, end[i]);
    }
    return longest;
}

/* A random DAG with sync deps; times are small integers, so that ties abound. In
 * half of them two ops are the parts of one: then batches pass through the queue in
 * chains, unless somebody observes the step. */
static void
make_random(struct run *r)
{
    uint32_t n = 1 + draw(14), servers = 1 + draw(4), length = 1 + draw(6);
    char text[8000] = "graph g m\n", *at = text + strlen(text);
    uint32_t density = 1 + draw(4), split = draw(2) && n > 2 ? n - 2 : n;

    memset(r, 0, sizeof *r);
    r->nservers = 4;
    r->has_priority = draw(2);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = draw(i + 1);
        r->server[i] = draw(servers);
        r->placed[i] = r->placed[j]; /* a random permutation */
        r->placed[j] = i;
        r->priority[i] = draw(3) ? (double)draw(3) : (double)NAN;
        at += sprintf(at, "op g %u forward %u 0", i, draw(length));
        at += i < split ? sprintf(at, "\n")
                        : sprintf(at, " of=s part=%u/2\n", i - split + 1);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            if (draw(density) == 0 && at - text < 7000)
                at += sprintf(at, "dep g %u %u %u%s\n", i, j, draw(length),
                              draw(6) ? "" : " kind=sync");
    for (uint32_t i = 0; i < n && i < 4; i++)
        at += sprintf(at, "dep g %u %u %u kind=sync\n", n + 1, i, draw(length));
    sprintf(at, "op g %u forward 1 0\n", n + 1);
    r->graph = graph_text(text);
    r->placed[n] = n;
    r->priority[n] = NAN;
    for (size_t d = 0; d < r->graph.ndeps; d++)
        r->seconds[d] = r->graph.dep[d].bytes;
}

static void
test_random(void **state)
{
    static struct run r;
    struct rec_error err = {.text = ""};
    (void)state;
    random_state = 7;
    for (int round = 0; round < 20000; round++) {
        struct sim_step plain;
        double sum = 0, most = 0, sent = 0, on[4] = {0};
        make_random(&r);
        if (!step(&r, &err))
            fail_msg("%s", err.text);
        plain = plain_step(&r);
        if (r.step.seconds != plain.seconds || r.step.comm != plain.comm ||
            r.step.comp != plain.comp || r.step.busy != plain.busy)
            fail_msg("round %d: %g %g %g %g, plain %g %g %g %g", round, r.step.seconds,
                     r.step.comm, r.step.comp, r.step.busy, plain.seconds, plain.comm,
                     plain.comp, plain.busy);
        for (size_t i = 0; i < r.graph.nops; i++) {
            double compute = r.graph.op[i].compute;
            assert_same(r.ran[i], compute);
            sum += compute;
            on[r.server[i]] += compute;
            most = fmax(most, on[r.server[i]]);
        }
        for (size_t d = 0; d < r.graph.ndeps; d++)
            sent += r.seconds[d];
        assert_same(r.step.busy, sum);
        assert_same(r.step.sequential, sum);
        assert_true(r.step.seconds >= critical_path(&r) && r.step.seconds >= most);
        assert_true(r.step.seconds <= sum + sent);
        graph_free(&r.graph);
    }
}

/* The queue: earliest first, equal times by key. */
static void
test_queue(void **state)
{
    struct event_queue q = {0};
    struct rec_error err;
    (void)state;
    random_state = 3;
    for (int round = 0; round < 200; round++) {
        struct event_entry last = {0, 0};
        uint32_t n = draw(100);
        for (uint32_t i = 0; i < n; i++)
            assert_true(event_queue_push(
                &q, (struct event_entry){draw(10) / 3.0, draw(5)}, &err));
        for (uint32_t i = 0; i < n; i++) {
            struct event_entry e = event_queue_pop(&q);
            assert_true(e.time > last.time || (e.time == last.time && e.key >= last.key));
            last = e;
        }
        assert_int_equal(q.n, 0);
    }
    event_queue_free(&q);
}

/* To replace the earliest event is to take it off and to push the other one: a second
 * queue does that. */
static void
test_replace(void **state)
{
    struct event_queue q = {0}, plain = {0};
    struct rec_error err;
    (void)state;
    random_state = 4;
    for (int round = 0; round < 200; round++) {
        for (uint32_t i = draw(60) + 1; i > 0; i--) {
            struct event_entry e = {draw(10) / 3.0, draw(5)};
            assert_true(event_queue_push(&q, e, &err) &&
                        event_queue_push(&plain, e, &err));
        }
        while (q.n) {
            struct event_entry e = event_queue_pop(&plain), with = e;
            assert_true(e.time == q.event[0].time && e.key == q.event[0].key);
            if (draw(3) == 0) {
                event_queue_pop(&q);
                continue;
            }
            with.time += draw(6) / 3.0;
            with.key = draw(5);
            event_queue_replace(&q, with);
            assert_true(event_queue_push(&plain, with, &err));
        }
        assert_int_equal(plain.n, 0);
    }
    event_queue_free(&q);
    event_queue_free(&plain);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),      cmocka_unit_test(test_fork_join),
        cmocka_unit_test(test_preemption), cmocka_unit_test(test_static_priority),
        cmocka_unit_test(test_tie),        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_rounding),   cmocka_unit_test(test_zero),
        cmocka_unit_test(test_sync),       cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_deadlock),   cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_instant),    cmocka_unit_test(test_random),
        cmocka_unit_test(test_queue),      cmocka_unit_test(test_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
