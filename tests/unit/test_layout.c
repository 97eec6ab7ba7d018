/* Layouts and what they remember. */
#include "graphs.h"
#include "published.h"

#include "rampipe/sim.h"

/*
 * Every geometry of up to four servers, exhaustively: a layout that has been priced for
 * all other quadruples before gives for each the very cost of a fresh simulation. The
 * translates of a block are one geometry.
 */
static void
test_memo(void **state)
{
    struct graph g = partitioned(CHAIN_OF_THREE, 4);
    struct rec_error err = {.text = ""};
    struct graph_layout where;
    struct sim_layout *layout;
    size_t after_translates;
    (void)state;
    assert_true(graph_layout_start(&where, rec_str("L"), &g, 4, &err));
    for (uint32_t i = 0; i < g.nops; i++)
        graph_layout_place(&where, i, g.op[i].part - 1);
    layout = sim_layout_new(&where, &err);
    assert_non_null(layout);
    assert_null(where.id);
    /* All translates of a 2x2x1 block in 4x4x2: 3 * 3 * 2 places, one simulation. */
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t r = 0; r < 3; r++)
            for (uint32_t s = 0; s < 2; s++) {
                uint32_t at = (c * 4 + r) * 2 + s;
                uint32_t servers[4] = {at, at + 2, at + 8, at + 10};
                struct sim_cost cost, fresh;
                assert_true(
                    sim_layout_cost(layout, &published.net, servers, &cost, &err));
                assert_true(sim_layout_observe(layout, &published.net, servers, NULL,
                                               &fresh, &err));
                assert_memory_equal(&cost, &fresh, sizeof cost);
            }
    assert_int_equal(layout->ncosts, 1);
    /* All ordered quadruples of different servers: 32*31*30*29 = 863,040; every 7th. */
    for (uint32_t n = 0; n < 32u * 32 * 32 * 32; n += 7) {
        uint32_t servers[4] = {n % 32, n / 32 % 32, n / 1024 % 32, n / 32768};
        struct sim_cost cost, fresh;
        bool same = false;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < i; j++)
                same = same || servers[i] == servers[j];
        if (same)
            continue;
        assert_true(sim_layout_cost(layout, &published.net, servers, &cost, &err));
        if (n % 49)
            continue; /* fresh ones are slow */
        assert_true(
            sim_layout_observe(layout, &published.net, servers, NULL, &fresh, &err));
        assert_memory_equal(&cost, &fresh, sizeof cost);
    }
    after_translates = layout->ncosts;
    /* At most as many as patterns of equality of 4 things: 15 in each coordinate. */
    assert_true(after_translates > 100 && after_translates <= 15 * 15 * 15);
    sim_layout_free(layout);
    graph_free(&g);
}

/* The layout with op i on slot[i]. */
static struct sim_layout *
laid_out(const struct graph *graph, uint32_t nslots, const uint32_t *slot)
{
    struct rec_error err;
    struct graph_layout where;
    struct sim_layout *layout;
    assert_true(graph_layout_start(&where, rec_str("L"), graph, nslots, &err));
    for (uint32_t i = 0; i < graph->nops; i++)
        graph_layout_place(&where, i, slot[i]);
    layout = sim_layout_new(&where, &err);
    assert_non_null(layout);
    return layout;
}

/* The fullest slot: twins on one slot need the larger of the two, on two slots both. */
static void
test_memory(void **state)
{
    static const uint32_t together[] = {0, 0, 0, 0}, apart[] = {0, 1, 1, 1};
    struct graph g = graph_text("graph g m\nop g 1 forward 1 10 pair=4\n"
                                "op g 2 forward 1 20 pair=3\nop g 4 backward 1 15\n"
                                "op g 3 backward 1 20\n");
    struct rec_error err;
    struct sim_layout *layout = laid_out(&g, 2, together);
    (void)state;
    assert_same(layout->memory, 15 + 20);
    sim_layout_free(layout);
    layout = laid_out(&g, 2, apart); /* 1 on 0; 2, 4, 3 on 1 */
    assert_same(layout->memory, 20 + 15);
    assert_int_equal(layout->full_slot, 1);
    sim_layout_free(layout);
    {
        struct graph_layout where;
        assert_true(graph_layout_start(&where, rec_str("L"), &g, 2, &err));
        graph_layout_place(&where, 0, 0);
        assert_null(sim_layout_new(&where, &err));
        assert_non_null(strstr(err.text, "op '2' is placed nowhere"));
    }
    graph_free(&g);
}

/* Of layouts that no job holds the one that was idle longest has to go, and costs that
 * are too many are simulated anew. */
static void
test_pool(void **state)
{
    struct graph g = graph_text("graph g m\nop g 1 forward 1 10\n");
    size_t each = sim_layout_bytes(&g);
    struct sim_layouts pool = {.limit = 3 * each};
    struct sim_layout *l[3];
    struct sim_cost cost;
    struct rec_error err;
    uint32_t server = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        l[i] = laid_out(&g, 1, &server);
        sim_layouts_add(&pool, l[i]);
    }
    assert_null(sim_layouts_excess(&pool, 0));
    assert_ptr_equal(sim_layouts_excess(&pool, 1), l[0]);
    sim_layout_hold(l[0]);
    sim_layout_hold(l[0]);
    assert_ptr_equal(sim_layouts_excess(&pool, 1), l[1]);
    sim_layout_release(l[0]);
    assert_ptr_equal(sim_layouts_excess(&pool, 1), l[1]);
    sim_layout_release(l[0]);
    sim_layout_free(l[1]);
    assert_null(sim_layouts_excess(&pool, each));
    assert_ptr_equal(sim_layouts_excess(&pool, each + 1), l[2]);
    sim_layout_hold(l[2]);
    for (int i = 0; i < 3; i += 2)
        assert_true(sim_layout_cost(l[i], &published.net, &server, &cost, &err));
    assert_int_equal(l[0]->ncosts + l[2]->ncosts, 2);
    pool.cost_bytes += SIM_COSTS_MAX;
    l[1] = laid_out(&g, 1, &server);
    sim_layouts_add(&pool, l[1]);
    assert_true(sim_layout_cost(l[1], &published.net, &server, &cost, &err));
    assert_int_equal(l[0]->ncosts + l[1]->ncosts + l[2]->ncosts, 1);
    assert_same(cost.step.seconds, 1);
    for (int i = 0; i < 3; i++)
        sim_layout_free(l[i]);
    assert_int_equal(pool.bytes, 0);
    assert_int_equal(pool.cost_bytes, SIM_COSTS_MAX);
    graph_free(&g);
}

/* Exchanges that need too much memory are forgotten: first which deps they are of, then
 * wholly. Costs of new geometries are those of a layout that forgets nothing. */
static void
test_forgotten(void **state)
{
    static const uint32_t servers[][4] = {
        {0, 1, 2, 3}, {0, 2, 8, 10}, {0, 1, 8, 9}, {0, 5, 10, 15}, {0, 1, 2, 31}};
    struct graph g = partitioned(CHAIN_OF_THREE, 4);
    struct sim_layouts pool = {.limit = SIZE_MAX};
    struct sim_layout *l[2], *fresh;
    struct sim_cost cost, again;
    struct rec_error err;
    uint32_t slot[64];
    size_t before, deps = g.ndeps * sizeof *l[0]->exchanges.of_dep;
    (void)state;
    assert_true(g.nops <= 64);
    for (uint32_t i = 0; i < g.nops; i++)
        slot[i] = g.op[i].part - 1;
    fresh = laid_out(&g, 4, slot);
    for (int i = 0; i < 2; i++)
        sim_layouts_add(&pool, l[i] = laid_out(&g, 4, slot));
    assert_true(sim_layout_cost(l[0], &published.net, servers[0], &cost, &err));
    assert_non_null(l[0]->exchanges.of_dep);
    /* Both layouts need half of the first one's deps too much. */
    before = SIM_EXCHANGES_MAX + deps / 2 - 2 * pool.exchange_bytes;
    pool.exchange_bytes += before;
    assert_true(sim_layout_cost(l[1], &published.net, servers[0], &cost, &err));
    assert_true(l[0]->exchanges.of_dep == NULL && l[0]->exchanges.n > 0);
    assert_true(l[1]->exchanges.of_dep != NULL);
    for (int i = 0; i < 5; i++) {
        if (i == 3) { /* not even the rest has room */
            assert_true(l[0]->exchanges.n > 0);
            pool.exchange_bytes += SIM_EXCHANGES_MAX;
            before += SIM_EXCHANGES_MAX;
        }
        for (int j = 0; j < 2; j++)
            assert_true(sim_layout_cost(l[j], &published.net, servers[i], &cost, &err));
        assert_true(
            sim_layout_observe(fresh, &published.net, servers[i], NULL, &again, &err));
        assert_memory_equal(&cost, &again, sizeof cost);
    }
    assert_true(l[0]->exchanges.of_dep == NULL && l[0]->exchanges.n == 0);
    for (int i = 0; i < 2; i++)
        sim_layout_free(l[i]);
    assert_int_equal(pool.exchange_bytes, before);
    sim_layout_free(fresh);
    graph_free(&g);
}

/*
 * Slot 0: tasks of 100 and 60 bytes, of which one is there at a time, and 7 + 20 held by
 * a and b: at most 127. b releases what a holds, so a step needs 100 + 20 there, from the
 * end of b on. Slot 1: 110 throughout and 5 held to the end: 115.
 */
static void
test_held(void **state)
{
    struct graph g = graph_text("graph g m\nop g a task 1 100 hold=7 release=b\n"
                                "op g b task 1 60 hold=20\nop g c task 1 110 hold=5\n"
                                "dep g a b 0\n");
    const uint32_t slot[] = {0, 0, 1}, servers[] = {0, 1};
    struct rec_error err = {.text = ""};
    struct graph_layout where;
    struct sim_layout *layout;
    struct sim_cost cost;
    uint32_t at;
    (void)state;

    assert_true(graph_layout_start(&where, rec_str("L"), &g, 2, &err));
    for (uint32_t i = 0; i < 3; i++)
        graph_layout_place(&where, i, slot[i]);
    layout = sim_layout_new(&where, &err);
    assert_non_null(layout);
    assert_same(layout->memory, 110);
    assert_int_equal(layout->full_slot, 1);
    assert_same(layout->memory_sum, 210);
    assert_same(layout->memory_bound, 127);
    assert_int_equal(layout->bound_slot, 0);
    assert_true(sim_layout_cost(layout, &published.net, servers, &cost, &err));
    assert_same(sim_layout_peak(layout, &cost, &at), 120);
    assert_int_equal(at, 0);
    assert_int_equal(cost.step.peak_op, 1);
    sim_layout_free(layout);
    graph_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memo),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_held),      cmocka_unit_test(test_pool),
        cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
