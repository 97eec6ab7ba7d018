/* Where tasks go: worked cases, and random ones against a plain list scheduler. */
#include "graphs.h"

#include "published.h"
#include "rampipe/alloc.h"

enum { MOST = 40 };

static double began[MOST], ended[MOST]; /* NAN: never, or in no time */

static void
see_run(void *context, uint32_t op, double start, double end)
{
    (void)context;
    assert_true(isnan(began[op])); /* a task is not interrupted */
    began[op] = start;
    ended[op] = end;
}

/* Places a graph on a rack of so many servers, of which some are taken, and simulates it.
 * Returns the servers used; 0: a task needs more memory than a server has. */
static uint32_t
place(const struct graph *graph, uint32_t servers, uint64_t taken, struct sim_step *step)
{
    const struct net_ramp cluster = RAMP(1, 1, servers, 10);
    struct alloc_placer_options options = {.net = &cluster.net,
                                           .heuristic = &alloc_heuristics[0]};
    struct rec_error err = {.text = ""};
    struct alloc_placer *placer = alloc_placer_new(&options, &err);
    struct alloc_vacancy *vacancy = alloc_vacancy_new(&cluster.net, &err);
    struct alloc_placement placement;
    struct alloc_plan plan;
    uint32_t server[MOST], placed[MOST];
    double priority[MOST], seconds[MOST * MOST] = {0};
    struct sim_observer observer = {.run = see_run};
    struct sim_placed on = {.graph = graph,
                            .nservers = servers,
                            .server = server,
                            .placed = placed,
                            .priority = priority,
                            .dep_seconds = seconds};

    for (uint32_t i = 0; i < MOST; i++)
        began[i] = ended[i] = NAN;
    for (uint32_t i = 0; i < servers; i++)
        alloc_set_free(vacancy, i, !(taken >> i & 1));
    assert_true(alloc_plan_make(graph, &plan, &err) && plan.tasks);
    assert_true(alloc_place(placer, &plan, vacancy, &placement, &err));
    if (placement.outcome == ALLOC_PLACED) {
        for (uint32_t i = 0; i < graph->nops; i++) {
            const struct graph_unit *unit =
                &graph->unit[plan.step[placement.order[i]].unit];
            uint32_t op = graph->member[unit->first];
            placed[op] = i;
            priority[op] = -(double)i;
            server[op] = placement.server[unit->first];
            assert_false(taken >> server[op] & 1);
        }
        assert_true(sim_step(&on, &observer, step, &err));
        assert_int_equal(step->used, placement.nused);
    } else
        assert_int_equal(placement.outcome, ALLOC_NO_MEMORY);
    alloc_plan_free(&plan);
    alloc_vacancy_free(vacancy);
    alloc_placer_free(placer);
    return placement.outcome == ALLOC_PLACED ? placement.nused : 0;
}

/*
 * Two servers; a (1) -> b (1) -> c (6) is 8 long, so a and then c go before the four that
 * are as early and shorter: a and d at 0, b and e at 1, c at 2, f at 3, g at 5. By order
 * alone c would start at 4 and all be done at 10; here at 8. What is done: 1 + 1 + 6 + 4
 * * 2 = 16.
 */
static void
test_critical_path(void **state)
{
    struct graph graph =
        graph_text("graph g g\nop g d task 2 0\nop g e task 2 0\nop g f task 2 0\n"
                   "op g h task 2 0\nop g a task 1 0\nop g b task 1 0\nop g c task 6 0\n"
                   "dep g a b 0\ndep g b c 0\n");
    struct sim_step step;
    (void)state;
    assert_int_equal(place(&graph, 2, 0, &step), 2);
    assert_same(step.seconds, 8);
    assert_same(step.busy, 16);
    assert_same(began[op_of(&graph, "c")], 2);
    assert_same(began[op_of(&graph, "d")], 0);
    assert_same(began[op_of(&graph, "e")], 2);
    assert_int_equal(place(&graph, 1, 0, &step), 1);
    assert_same(step.seconds, 16);
    /* 8 servers, three of them another's: all start at once that may, five */
    assert_int_equal(place(&graph, 8, 0x15, &step), 5);
    assert_same(step.seconds, 8);
    graph_free(&graph);
}

/* Of 10 bytes a server: two tasks of 6 share one, one after the other; 11 are too
 * many. */
static void
test_memory(void **state)
{
    struct graph fits = graph_text("graph g g\nop g a task 1 6\nop g b task 1 6\n");
    struct graph large = graph_text("graph g g\nop g a task 1 6\nop g b task 1 11\n");
    struct sim_step step;
    (void)state;
    assert_int_equal(place(&fits, 1, 0, &step), 1);
    assert_int_equal(place(&large, 4, 0, &step), 0);
    graph_free(&fits);
    graph_free(&large);
}

/* ---- against a plain list scheduler ------------------------------------------------ */

struct random_graph {
    struct graph graph;
    bool before[MOST][MOST];
    double rank[MOST]; /* cost, and the longest way behind it */
    double work;
};

static void
make_random(struct random_graph *r, uint32_t n)
{
    char text[60 * MOST + 30 * MOST * MOST];
    size_t used = (size_t)sprintf(text, "graph g g\n");
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < n; i++) {
        int cost =
            rand() % 6 ? rand() % 5 + 1 : 0; /* some take no time; many are equal */
        used += (size_t)sprintf(text + used, "op g t%u task %d 0\n", i, cost);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            if ((uint32_t)rand() % n < 2) {
                r->before[i][j] = true;
                used += (size_t)sprintf(text + used, "dep g t%u t%u 0\n", i, j);
            }
    r->graph = graph_text(text);
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t j = i + 1; j < n; j++)
            if (r->before[i][j] && r->rank[j] > r->rank[i])
                r->rank[i] = r->rank[j];
        r->rank[i] += r->graph.op[i].compute;
        r->work += r->graph.op[i].compute;
    }
}

/* The task that may start now and has the longest way behind it; REC_NONE: none may. */
static uint32_t
first_ready(const struct random_graph *r, const double *end, double now)
{
    uint32_t best = REC_NONE;
    for (uint32_t i = 0; i < r->graph.nops; i++) {
        bool ready = isnan(end[i]);
        for (uint32_t j = 0; ready && j < i; j++)
            ready = !r->before[j][i] || end[j] <= now;
        if (ready && (best == REC_NONE || r->rank[i] > r->rank[best]))
            best = i;
    }
    return best;
}

static double
schedule(const struct random_graph *r, uint32_t servers, double *end)
{
    double now = 0, next;
    for (uint32_t i = 0; i < r->graph.nops; i++)
        end[i] = NAN;
    for (;; now = next) {
        uint32_t task, busy = 0;
        next = INFINITY;
        for (uint32_t i = 0; i < r->graph.nops; i++)
            busy += end[i] > now;
        while (busy < servers && (task = first_ready(r, end, now)) != REC_NONE) {
            end[task] = now + r->graph.op[task].compute;
            busy += end[task] > now;
        }
        for (uint32_t i = 0; i < r->graph.nops; i++)
            if (end[i] > now)
                next = fmin(next, end[i]);
        if (isinf(next))
            return now;
    }
}

/*
 * Each task starts and ends when the plain scheduler says, on 2,000 random graphs; and
 * the whole is between the bounds: the longest path and work / m, work / m + (1 - 1/m) *
 * path (Graham 1966).
 */
static void
test_random(void **state)
{
    static struct random_graph r;
    (void)state;
    srand(20261122);
    for (int round = 0; round < 2000; round++) {
        uint32_t n = (uint32_t)rand() % MOST + 1, servers = (uint32_t)rand() % 5 + 1;
        double end[MOST], seconds, path = 0, share;
        struct sim_step step;
        make_random(&r, n);
        seconds = schedule(&r, servers, end);
        assert_int_not_equal(place(&r.graph, servers, 0, &step), 0);
        assert_same(step.seconds, seconds);
        for (uint32_t i = 0; i < n; i++) {
            path = fmax(path, r.rank[i]);
            if (r.graph.op[i].compute > 0)
                assert_same(ended[i], end[i]);
        }
        share = r.work / servers;
        assert_same(step.busy, r.work);
        assert_true(seconds >= fmax(path, share));
        assert_true(seconds <= share + (1 - 1. / servers) * path + 1e-9);
        graph_free(&r.graph);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_critical_path),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
