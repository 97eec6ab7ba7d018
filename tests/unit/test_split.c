/* Splitting: how many parts, their names, dep sizes. */
#include "graphs.h"

/* max(1, min(2*ceil(ceil(c/q)/2), D)), worked by hand. */
static void
test_parts(void **state)
{
    static const struct {
        double compute, quantum;
        uint32_t degree, parts;
    } table[] = {
        /* 0.07/0.01 is 7.000000000000001 in doubles: 8, not 7 rounded up to 8 by luck */
        {0.07, 0.01, 16, 8},
        {0.06, 0.01, 16, 6},
        {0.061, 0.01, 16, 8},
        {0.01, 0.01, 16, 2},
        {0.001, 0.01, 16, 2},
        {1e-300, 1e300, 16, 1}, /* c/q underflows to 0: 0 parts, at least 1 */
        {0.5, 0.01, 16, 16},
        {0.5, 0.01, 1, 1},
        {0.03, 0.01, 2, 2},
        {0, 0.01, 16, 1},
        {0, 0, 16, 1},
        {1, 0, 16, 16}, /* no quantum: as many as allowed */
        {1, 0, 1, 1},
        {1e308, 1e-308, 65536, 65536},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint32_t n = graph_parts(table[i].compute, table[i].quantum, table[i].degree);
        if (n != table[i].parts)
            fail_msg("%g/%g at most %u: got %u", table[i].compute, table[i].quantum,
                     table[i].degree, n);
    }
}

/* 26 letters, 26^2 = 676 pairs (26 to 701), then triples. */
static void
test_letters(void **state)
{
    static const struct {
        uint32_t i;
        const char *letters;
    } table[] = {{0, "a"},
                 {1, "b"},
                 {25, "z"},
                 {26, "aa"},
                 {27, "ab"},
                 {51, "az"},
                 {52, "ba"},
                 {701, "zz"},
                 {702, "aaa"},
                 {703, "aab"},
                 {26 + 676 + 17576 - 1, "zzz"},
                 {26 + 676 + 17576, "aaaa"},
                 {UINT32_MAX - 1, "mwlqkwu"}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char letters[GRAPH_LETTERS_MAX];
        graph_part_letters(table[i].i, letters);
        assert_string_equal(letters, table[i].letters);
    }
}

/*
 * A chain of two with twins: 1 -> 2 | 3 -> 4, b(1) = 4, b(2) = 3. Memory 12 and 30 (both
 * passes), activation 5 and 7, parameters 7 and 23.
 */
#define CHAIN                                             \
    "graph g m\n"                                         \
    "op g 1 forward 8 12 activation=5 param=7 pair=4\n"   \
    "op g 2 forward 4 30 activation=7 param=23 pair=3\n"  \
    "op g 4 backward 6 12 activation=5 param=7 pair=1\n"  \
    "op g 3 backward 2 30 activation=7 param=23 pair=2\n" \
    "dep g 1 2 1\ndep g 2 3 1\ndep g 3 4 1\n"

static struct graph
partition(const struct graph *from, const char *list, enum graph_sizes sizes)
{
    struct graph_split_op ops[8];
    struct graph_partition how = {.list = ops, .sizes = sizes, .degree = 1};
    struct rec_str rest = rec_str(list), item, op;
    struct graph to = {0};
    struct rec_error err = {.text = ""};
    uint64_t n;
    while (*list && rec_str_split(&rest, ',', &item)) {
        rec_str_split(&item, ':', &op);
        assert_true(rec_parse_uint(item, &n));
        ops[how.nlist++] = (struct graph_split_op){op, (uint32_t)n};
    }
    if (!graph_partition(from, &how, &to, &err))
        fail_msg("%s", err.text);
    return to;
}

/*
 * The published sizes (3.2): neither split mem(u); only v split mem(u)/kv; only u split
 * mem(v)/ku; both, u first: mem(u)/(ku kv); both, v first: mem(v)/(ku kv). For the pair
 * 1 -> 2: u = 1 (12), v = 2 (30). For the backward pair 3 -> 4, u = 3 (30), v = 4 (12),
 * and op 1's twin 4 is split when op 1 is. The join 2 -> 3 (30, 30; 2 splits first).
 */
static void
test_reference_sizes(void **state)
{
    struct graph g = graph_text(CHAIN), p;
    (void)state;
    p = partition(&g, "", GRAPH_SIZES_REFERENCE);
    assert_same(dep_size(&p, "1", "2"), 12);
    assert_same(dep_size(&p, "2", "3"), 30);
    assert_same(dep_size(&p, "3", "4"), 30);
    graph_free(&p);
    p = partition(&g, "2:3", GRAPH_SIZES_REFERENCE); /* only 2 (and 3) */
    assert_same(dep_size(&p, "1", "2c"), 4);         /* 12/3: mem(u)/kv */
    assert_same(dep_size(&p, "3a", "4"), 4);         /* 12/3: mem(v)/ku */
    assert_near(dep_size(&p, "2b", "3c"), 30.0 / 9);
    graph_free(&p);
    p = partition(&g, "1:2", GRAPH_SIZES_REFERENCE); /* only 1 (and 4) */
    assert_same(dep_size(&p, "1b", "2"), 15);        /* mem(v)/ku */
    assert_same(dep_size(&p, "3", "4a"), 15);        /* mem(u)/kv */
    assert_same(dep_size(&p, "2", "3"), 30);
    graph_free(&p);
    p = partition(&g, "1:2,2:3", GRAPH_SIZES_REFERENCE); /* 1 before 2 */
    assert_same(dep_size(&p, "1b", "2c"), 2);            /* 12/6 */
    assert_same(dep_size(&p, "3a", "4b"), 2);            /* v = 4 first: mem(4)/6 */
    graph_free(&p);
    p = partition(&g, "2:3,1:2", GRAPH_SIZES_REFERENCE); /* 2 before 1 */
    assert_same(dep_size(&p, "1b", "2c"), 5);            /* mem(v) = 30, /6 */
    assert_same(dep_size(&p, "3a", "4b"), 5);            /* u = 3 first: 30/6 */
    graph_free(&p);
    graph_free(&g);
}

/*
 * Physically right: 1 -> 2 carries activation(1) = 5, 3 -> 4 the gradient of it, also 5,
 * both in 2*3 pieces; the join activation(2) = 7 in 3*3. Sync: the part's parameters.
 */
static void
test_gradient_sizes(void **state)
{
    struct graph g = graph_text(CHAIN);
    struct graph p = partition(&g, "2:3,1:2", GRAPH_SIZES_GRADIENT);
    (void)state;
    assert_near(dep_size(&p, "1a", "2c"), 5.0 / 6);
    assert_near(dep_size(&p, "3c", "4a"), 5.0 / 6);
    assert_near(dep_size(&p, "2a", "3b"), 7.0 / 9);
    assert_near(dep_size(&p, "3a", "3b"), 23.0 / 3);
    assert_near(dep_size(&p, "4b", "4a"), 7.0 / 2);
    graph_free(&p);
    graph_free(&g);
}

/* All ordered pairs of the parts of the backward op, memory/k each; none forward. */
static void
test_sync(void **state)
{
    struct graph g = graph_text(CHAIN);
    struct graph p = partition(&g, "2:3", GRAPH_SIZES_REFERENCE);
    static const char *const parts[] = {"3a", "3b", "3c"};
    size_t sync = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const struct graph_dep *dep = find_dep(&p, parts[i], parts[j]);
            assert_true((dep != NULL) == (i != j));
            if (dep) {
                assert_true(dep->sync);
                assert_same(dep->bytes, 10);
            }
        }
    for (size_t d = 0; d < p.ndeps; d++)
        sync += p.dep[d].sync;
    assert_int_equal(sync, 6);
    /* 1 -> 2abc, 2abc -> 3abc, 3abc -> 4, sync */
    assert_int_equal(p.ndeps, 3 + 9 + 3 + 6);
    graph_free(&p);
    graph_free(&g);
}

/* Parts: even shares, of and part, twins by letter, keys of the graph. */
static void
test_part_ops(void **state)
{
    struct graph g = graph_text(CHAIN);
    struct graph p = partition(&g, "1:4", GRAPH_SIZES_REFERENCE);
    const struct graph_op *op = &p.op[op_of(&p, "1c")];
    struct rec_str value;
    (void)state;
    assert_string_equal(p.id, "g/4");
    assert_string_equal(p.model, "m");
    assert_true(graph_key(&p, "of", &value) && rec_str_is(value, "g"));
    assert_true(graph_key(&p, "degree", &value) && rec_str_is(value, "4"));
    assert_true(graph_key(&p, "demand_memory", &value) && rec_str_is(value, "84"));
    assert_true(graph_key(&p, "demand_bytes", &value) && rec_str_is(value, "3"));
    assert_same(op->compute, 2);
    assert_same(op->memory, 3);
    assert_same(op->activation, 1.25);
    assert_same(op->param, 1.75);
    assert_string_equal(op->of, "1");
    assert_int_equal(op->part, 3);
    assert_int_equal(op->parts, 4);
    assert_int_equal(op->pair, op_of(&p, "4c"));
    assert_null(p.op[op_of(&p, "2")].of);
    graph_free(&p);
    graph_free(&g);
}

static void
expect_refused(const char *text, const char *list, enum graph_sizes sizes,
               const char *message)
{
    struct graph g = graph_text(text), to = {0};
    struct graph_split_op op = {rec_str(list), 2};
    struct graph_partition how = {.list = &op, .nlist = 1, .sizes = sizes, .degree = 1};
    struct rec_error err = {.text = ""};
    if (graph_partition(&g, &how, &to, &err))
        fail_msg("accepted; expected %s", message);
    assert_int_equal(err.code, REC_DATA);
    if (!strstr(err.text, message))
        fail_msg("%s: expected %s", err.text, message);
    graph_free(&g);
    graph_free(&to);
}

static void
test_refused(void **state)
{
    (void)state;
    expect_refused(CHAIN, "9", GRAPH_SIZES_REFERENCE, "has no op '9'");
    expect_refused(CHAIN, "4", GRAPH_SIZES_REFERENCE, "when its forward twin is");
    expect_refused("graph g m\nop g 1 forward 1 1\nop g 2 forward 1 1\ndep g 1 2 1\n",
                   "1", GRAPH_SIZES_GRADIENT,
                   "gradient sizes need activation= of op '1'");
    expect_refused("graph g m\nop g a forward 1 1 of=x part=1/1\n", "a",
                   GRAPH_SIZES_REFERENCE, "already a part");
    /* The part 1a of 1 would be the op 1a. */
    expect_refused("graph g m\nop g 1 forward 1 1\nop g 1a forward 1 1\n", "1",
                   GRAPH_SIZES_REFERENCE, "defined twice");
}

/* ---- against the published procedure, step by step ----------------------- */

enum { NODES = 60 };

/* The graph of reference 3.2 while it is rewritten: a matrix, as plain as can be. */
static struct {
    int n;
    bool alive[NODES], edge[NODES][NODES], sync[NODES][NODES];
    double memory[NODES], in[NODES][NODES], out[NODES][NODES];
    char name[NODES][16];
} m;

static void
model_split(int e, int k, bool backward)
{
    int first = m.n;
    m.alive[e] = false;
    for (int j = 0; j < k; j++) {
        int sub = m.n++;
        m.alive[sub] = true;
        m.memory[sub] = m.memory[e] / k;
        strcpy(m.name[sub], m.name[e]);
        strcat(m.name[sub], (char[]){(char)('a' + j), 0});
        for (int o = 0; o < first; o++) {
            if (!m.alive[o])
                continue;
            if (m.edge[o][e]) {
                m.edge[o][sub] = true;
                m.in[o][sub] = m.memory[o] / k;
            }
            if (m.edge[e][o]) {
                m.edge[sub][o] = true;
                m.out[sub][o] = m.memory[o] / k;
            }
        }
    }
    for (int i = first; backward && i < m.n; i++)
        for (int j = first; j < m.n; j++)
            m.edge[i][j] = m.sync[i][j] = i != j;
}

/* What the procedure says the dep i -> j carries in the end. */
static double
model_size(int i, int j)
{
    if (m.sync[i][j])
        return m.memory[i];
    if (!isnan(m.out[i][j]))
        return m.out[i][j];
    return isnan(m.in[i][j]) ? m.memory[i] : m.in[i][j];
}

/* Random mirrored graphs of n <= 5 forward ops, split in random order. */
static void
test_against_procedure(void **state)
{
    (void)state;
    random_state = 1;
    for (int round = 0; round < 500; round++) {
        int n = 2 + (int)draw(4), order[5], k[5];
        char text[4000] = "graph g m\n", list[100] = "", *at = text + strlen(text);
        struct graph g, p;
        size_t edges = 0;

        memset(&m, 0, sizeof m);
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES; j++)
                m.in[i][j] = m.out[i][j] = NAN;
        m.n = 2 * n;
        for (int i = 0; i < 2 * n; i++) {
            int twin = 2 * n - 1 - i, of = i < n ? i : twin;
            m.alive[i] = true;
            m.memory[i] = i < n ? 1 + draw(100) : m.memory[of];
            snprintf(m.name[i], sizeof m.name[i], "%d", i + 1);
            at += sprintf(at, "op g %d %s 1 %g pair=%d\n", i + 1,
                          i < n ? "forward" : "backward", m.memory[i], twin + 1);
        }
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                if (draw(2)) {
                    m.edge[i][j] = m.edge[2 * n - 1 - j][2 * n - 1 - i] = true;
                    at += sprintf(at, "dep g %d %d 1\ndep g %d %d 1\n", i + 1, j + 1,
                                  2 * n - j, 2 * n - i);
                }
        m.edge[n - 1][n] = true;
        sprintf(at, "dep g %d %d 1\n", n, n + 1);
        for (int i = 0; i < n; i++) {
            int j = (int)draw((uint32_t)i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (int i = 0; i < n; i++) {
            k[i] = 1 + (int)draw(4);
            if (k[i] == 1)
                continue;
            sprintf(list + strlen(list), "%s%d:%d", *list ? "," : "", order[i] + 1, k[i]);
            model_split(order[i], k[i], false);
            model_split(2 * n - 1 - order[i], k[i], true);
        }
        g = graph_text(text);
        p = partition(&g, list, GRAPH_SIZES_REFERENCE);
        for (int i = 0; i < m.n; i++)
            for (int j = 0; j < m.n; j++)
                if (m.alive[i] && m.alive[j] && m.edge[i][j]) {
                    edges++;
                    assert_near(dep_size(&p, m.name[i], m.name[j]), model_size(i, j));
                    assert_true(find_dep(&p, m.name[i], m.name[j])->sync == m.sync[i][j]);
                }
        assert_int_equal(edges, p.ndeps);
        graph_free(&p);
        graph_free(&g);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_reference_sizes),
        cmocka_unit_test(test_gradient_sizes),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_part_ops),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_against_procedure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
