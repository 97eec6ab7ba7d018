/* Collectives: states, and laws, on tables whose times are known in closed form. */
#include "unit.h"

#include "rampipe/collective.h"

static void
read_table(struct collective_table *table, const char *text)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = rec_reader_open_text("table", rec_str(text), &err);
    *table = (struct collective_table){.nseries = 0};
    assert_non_null(reader);
    if (!collective_table_read(table, reader, &err))
        fail_msg("%s", err.text);
    rec_reader_close(reader);
}

static struct collective_ask
ask(const char *system, const char *kind, uint64_t ranks, uint64_t nodes, double size)
{
    return (struct collective_ask){.what = {.kind = kind, .dtype = ""},
                                   .system = system,
                                   .gpu = "",
                                   .version = "",
                                   .ranks = ranks,
                                   .nodes = nodes,
                                   .size = size};
}

/* The time, which must be predicted in this way. */
static double
seconds(const struct collective_table *table, struct collective_ask question,
        enum collective_how how)
{
    struct collective_answer answer;
    struct rec_error err = {.text = ""};
    if (!collective_seconds(table, &question, &answer, &err))
        fail_msg("%s", err.text);
    assert_int_equal(answer.how, how);
    return answer.seconds;
}

/* Two states with a switch between 4,000 and 16,000 bytes: 10 us + S / 1e9, and 20 us + S
 * / 4e9, whose lines cross at S = 13,333 bytes. At 8,000 bytes the first one has 18 us,
 * and the chord from 14 to 24 us has 52/3 us, a third of the way; the geometric mean of
 * both counts. At 15,000 bytes the second one has 23.75 us, the chord 14 + 10 * 11 / 12
 * us. */
static void
test_states_cross(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(&table, "series\ts\tm\tall-gather\t2\t1\n"
                       "piece\ts\t1000\t4000\t1e-5\t1e9\n"
                       "piece\ts\t16000\t64000\t2e-5\t4e9\n");
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 2000), COLLECTIVE_STATE),
                12e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 32000), COLLECTIVE_STATE),
                28e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 8000), COLLECTIVE_STATE),
                sqrt(18e-6 * 52e-6 / 3), 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 15000), COLLECTIVE_STATE),
                sqrt(23.75e-6 * (14e-6 + 110e-6 / 12)), 1e-15);
    /* Outside of the measured sizes the last state goes on. */
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 500), COLLECTIVE_STATE),
                10.5e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 1e9), COLLECTIVE_STATE),
                20e-6 + 0.25, 1e-12);
    collective_table_free(&table);
}

/* Sizes alone, 10 us and 11 at 1,000 and 2,000 bytes, 15 and 17 at 8,000 and 16,000: 1
 * ns a byte before the gap and 0.25 behind it. At 4,000 bytes the line before has 13
 * us, that behind has 14, and the chord 11 + 4 / 3. Without other neighbours only the
 * chord is known: at 1,500 bytes 10.5 us. */
static void
test_sizes_alone(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(&table,
               "series\ts\tm\tall-gather\t2\t1\n"
               "piece\ts\t1000\t1000\t1e-5\tinf\npiece\ts\t2000\t2000\t11e-6\tinf\n"
               "piece\ts\t8000\t8000\t15e-6\tinf\n"
               "piece\ts\t16000\t16000\t17e-6\tinf\n"
               "series\tt\tm\tall-gather\t4\t1\n"
               "piece\tt\t1000\t1000\t1e-5\tinf\n"
               "piece\tt\t2000\t2000\t11e-6\tinf\n");
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 4000), COLLECTIVE_STATE),
                sqrt(13e-6 * (11e-6 + 4e-6 / 3)), 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 4, 1, 1500), COLLECTIVE_STATE),
                10.5e-6, 1e-15);
    collective_table_free(&table);
}

/* A jump: 10 us up to 4,000 bytes and 40 us from 16,000 on. Nothing says where, so the
 * chord counts: at 10,000 bytes, half-way, 25 us. Where time falls, from 40 to 10 us, the
 * geometric mean counts, 20 us. One size alone gets slower in proportion beyond it. */
static void
test_states_jump(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(&table, "series\ts\tm\tall-gather\t2\t1\n"
                       "piece\ts\t1000\t4000\t1e-5\tinf\n"
                       "piece\ts\t16000\t64000\t4e-5\tinf\n"
                       "piece\ts\t128000\t128000\t1e-5\tinf\n");
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 10000), COLLECTIVE_STATE),
                25e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 100000), COLLECTIVE_STATE),
                20e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 2, 1, 256000), COLLECTIVE_STATE),
                20e-6, 1e-15);
    collective_table_free(&table);
}

/* A ring: t(n) = 4 us + (n - 1) 2 us + S (n - 1) / n / 1e11. With 2 and 8 ranks measured
 * the law must give 4, 3 and 16 ranks exactly. */
static void
test_ring(void **state)
{
    static const uint64_t ranks[] = {3, 4, 16};
    char text[400], number[2][REC_NUM_MAX];
    struct collective_table table;
    double size = 1 << 20;
    (void)state;
    rec_format_num(number[0], 1e11 * 2);     /* of 2 ranks: S / 2 / B */
    rec_format_num(number[1], 1e11 * 8 / 7); /* of 8 ranks */
    snprintf(text, sizeof text,
             "series\ta\tm\tall-reduce\t2\t1\npiece\ta\t1024\t1e9\t6e-6\t%s\n"
             "series\tb\tm\tall-reduce\t8\t1\npiece\tb\t1024\t1e9\t18e-6\t%s\n",
             number[0], number[1]);
    read_table(&table, text);
    for (size_t i = 0; i < 3; i++) {
        double n = (double)ranks[i];
        assert_near(
            seconds(&table, ask("m", "all-reduce", ranks[i], 1, size), COLLECTIVE_RANKS),
            4e-6 + (n - 1) * 2e-6 + size * (n - 1) / n / 1e11, 1e-14);
    }
    collective_table_free(&table);
}

/* The library changes its protocol by the piece S / n: steps of 1 us up to 1,000 bytes,
 * of 5 us from 2,000 on. So 2 ranks change at buffers twice as large, 8 at eight times,
 * and 4 ranks take 3 steps of 1 us with 4,000 bytes and of 5 us with 8,000, where 8
 * ranks still are in the first state and 2 in the second. */
static void
test_ring_pieces(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(&table, "series\ta\tm\tall-gather\t2\t1\n"
                       "piece\ta\t200\t2000\t1e-6\tinf\n"
                       "piece\ta\t4000\t1e9\t5e-6\tinf\n"
                       "series\tb\tm\tall-gather\t8\t1\n"
                       "piece\tb\t800\t8000\t7e-6\tinf\n"
                       "piece\tb\t16000\t1e9\t35e-6\tinf\n");
    assert_near(seconds(&table, ask("m", "all-gather", 4, 1, 4000), COLLECTIVE_RANKS),
                3e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "all-gather", 4, 1, 8000), COLLECTIVE_RANKS),
                15e-6, 1e-15);
    collective_table_free(&table);
}

/* An exchange of tokens in one node: 10, 20 us at 8, 16 ranks whatever the tokens: each
 * doubling costs a factor of 2, so 64 ranks take 80 us. Between, at 11.3 ranks (not a
 * whole number) it would be the mean of the logarithms; 12 ranks: 10 * 2^log2(1.5). */
static void
test_growth(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(&table, "series\ta\tm\tx-dispatch\t8\t1\npiece\ta\t1\t512\t1e-5\tinf\n"
                       "series\tb\tm\tx-dispatch\t16\t1\npiece\tb\t1\t512\t2e-5\tinf\n");
    assert_near(seconds(&table, ask("m", "x-dispatch", 64, 1, 32), COLLECTIVE_RANKS),
                80e-6, 1e-15);
    assert_near(seconds(&table, ask("m", "x-dispatch", 12, 1, 32), COLLECTIVE_RANKS),
                15e-6, 1e-15);
    collective_table_free(&table);
}

/* Tokens over nodes. With times of (1 - 1/k) 1 us a token over 2 and 4 nodes, 8 nodes
 * take 7/8 us a token. Of 1 and 2 nodes, 10 us + 1 us a token and 20 us + 2 us a token,
 * 4 take 1.17 * 20 us and 2 * (3/4) / (1/2) us a token, 8 take 1.17^2 * 20 us and 7/2 us
 * a token. If the others are 2 and 4 nodes, with 110 and 220 us, the times lie on a line
 * in 1 - 1/k: 220 + 110 * (7/8 - 3/4) / (3/4 - 1/2) us. */
static void
test_more_nodes(void **state)
{
    struct collective_table table;
    (void)state;
    read_table(
        &table,
        "series\ta\tm\tx-dispatch\t16\t2\npiece\ta\t1\t512\t0\t2e6\n"
        "series\tb\tm\tx-dispatch\t32\t4\npiece\tb\t1\t512\t0\t1333333.3333333333\n"
        "series\tc\tm\tx-combine\t8\t1\npiece\tc\t1\t512\t1e-5\t1e6\n"
        "series\td\tm\tx-combine\t16\t2\npiece\td\t1\t512\t2e-5\t5e5\n"
        "series\te\tm\tx-back\t16\t2\npiece\te\t1\t512\t1e-5\t1e6\n"
        "series\tf\tm\tx-back\t32\t4\npiece\tf\t1\t512\t2e-5\t5e5\n");
    assert_near(seconds(&table, ask("m", "x-dispatch", 64, 8, 100), COLLECTIVE_NODES),
                87.5e-6, 1e-13);
    assert_near(seconds(&table, ask("m", "x-combine", 32, 4, 100), COLLECTIVE_NODES),
                23.4e-6 + 300e-6, 1e-13);
    assert_near(seconds(&table, ask("m", "x-combine", 64, 8, 100), COLLECTIVE_NODES),
                1.17 * 1.17 * 20e-6 + 350e-6, 1e-13);
    assert_near(seconds(&table, ask("m", "x-back", 64, 8, 100), COLLECTIVE_NODES), 275e-6,
                1e-13);
    collective_table_free(&table);
}

/* Tokens of 1,000 numbers in bf16 (a combine) over 4 nodes, of 2 and 8 measured, with
 * adapters of 5e9 bytes/s. 1,000 tokens are 2e6 bytes.
 *
 * 2 nodes: 10 us + 1 us a token; 8 nodes: 40 us + 10 us a token, so that to 3.5 other
 * nodes each they move 7e6 bytes in 10 ms: 7e8 bytes/s, congested. 4 nodes have a
 * latency of 20 us (halfway in doublings). Of 8 experts of a token, 4 are on each of 2
 * nodes, and reach 8 (1 - (7/8)^4) of its 8 ranks: processors move 2 + 6.6211 states.
 * Over 4 nodes it is 4 + 4 * 8 (1 - (7/8)^2) = 11.5, so that forwarding takes
 * 11.5 / 8.6211 of 1 ms. The adapters take 3 * 2e6 / (0.84 * 5e9) s = 1.4286 ms, so
 * that they count.
 *
 * If 8 nodes take 1 us a token, 7e9 bytes/s, they are not congested, and show the
 * wire: 3 / 3.5 of 1 ms, which is less than forwarding. With 2 us a token it is 12/7
 * ms. The error of such an answer is that of nodes between others. */
static void
test_nodes_between(void **state)
{
    static const struct {
        const char *rate;
        double seconds;
    } rows[] = {{"1e5", 20e-6 + 1e-2 / 7},
                {"1e6", 20e-6 + 11.5e-3 / 8.62109375},
                {"5e5", 20e-6 + 2e-3 * 3 / 3.5}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct collective_table table;
        struct collective_ask question = ask("m", "x-combine", 32, 4, 1000);
        struct collective_answer answer;
        struct rec_error err;
        char text[500];
        question.what.hidden = 1000;
        question.what.topk = 8;
        snprintf(text, sizeof text,
                 "fabric\tm\tnvlink\t1e11\t1e-5\tadapter=5e9\n"
                 "series\ta\tm\tx-combine\t16\t2\thidden=1000\ttopk=8\n"
                 "piece\ta\t1\t2048\t1e-5\t1e6\n"
                 "series\tb\tm\tx-combine\t64\t8\thidden=1000\ttopk=8\n"
                 "piece\tb\t1\t2048\t4e-5\t%s\n"
                 "checked\ttokens-nodes\t1\t0.1\t0.1\t0.1\tabout=x\n"
                 "checked\ttokens-between\t1\t0.2\t0.2\t0.2\tabout=x\n",
                 rows[i].rate);
        read_table(&table, text);
        assert_near(seconds(&table, question, COLLECTIVE_NODES), rows[i].seconds, 1e-12);
        assert_true(collective_seconds(&table, &question, &answer, &err));
        assert_near(answer.check->mean, 0.2, 1e-15);
        collective_table_free(&table);
    }
}

/* All-reduce over two nodes of 4 adapters. Of 1 and 4 ranks in each, 2 in each take the
 * geometric mean: sqrt(1 ms * 4 ms). 8 in each share the adapters of 4, whose largest
 * size, 1 GB, takes 1.003 s: of the 4 ms of 1 MB the adapters take 1.003 ms, which grow
 * by (15/8) / (7/4) / 0.83. Without the number of adapters nothing says so. */
static void
test_shapes(void **state)
{
    struct collective_table table;
    struct collective_ask unknown = ask("u", "all-reduce", 16, 2, 1e6);
    struct collective_answer answer;
    struct rec_error err;
    (void)state;
    read_table(&table, "fabric\tm\tnvlink\t1e11\t1e-5\tadapters=4\n"
                       "series\ta\tm\tall-reduce\t2\t2\npiece\ta\t1\t1e9\t1e-3\tinf\n"
                       "series\tb\tm\tall-reduce\t8\t2\npiece\tb\t1\t1e9\t3e-3\t1e9\n"
                       "series\tc\tu\tall-reduce\t8\t2\npiece\tc\t1\t1e9\t4e-3\tinf\n");
    assert_near(seconds(&table, ask("m", "all-reduce", 4, 2, 1e6), COLLECTIVE_NODES),
                2e-3, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 16, 2, 1e6), COLLECTIVE_NODES),
                2.997e-3 + 1.003e-3 * (15.0 / 8) / (7.0 / 4) / 0.83, 1e-12);
    assert_false(collective_seconds(&table, &unknown, &answer, &err));
    assert_int_equal(err.code, REC_NO);
    collective_table_free(&table);
}

/* One rank in each of two nodes takes 10 us + S / 1e9; a node alone takes 2 us + S / 1e11
 * with 2 ranks and 4 us + S / 1e11 with 4.
 *
 * 4 in each, an adapter for each: a ring of 8 moves 7/4 S, of which one adapter carries
 * a quarter: 10 us + 7/16 S / 1e9, and 4 us + S / 1e11 inside. At 10 MB: 4385 + 104 us. 3
 * in each: 10 us + 5/3 S / 3 / 1e9, and inside by the law of a ring: latency is 3 us
 * (half-way from 1 step to 3), transfer that of both. 8 in each share the 4 adapters:
 * 1 GB takes 447.514 ms with 4, so 4475.14 of the 4489 us of 10 MB grow by (15/8) /
 * (7/4) / 0.83; inside a node 8 take 4 us more than 4, by the law of a ring.
 *
 * Flags: of 14 steps 4 are over adapters. By NCCL's estimate the plain protocol takes
 * 1.9 (8.4 + 10 * 3.4 + 4 * 14) = 186.96 us + 7/4 S / 1e11, and LL takes 6.6 + 10 * 1.08
 * + 4 * 2.7 = 28.2 us + 7/4 S / 2.5e10. They are equal at 3.024 MB. At 1 MB an adapter
 * carries 2 * 7/16 MB, with the 1.00001 s that 1 GB takes: 10 + 875.00875 us.
 *
 * A data sheet says nothing of several ranks in a node if the machine has another number
 * of adapters, or an unknown one. `same` has twice the bandwidth of an adapter, and half
 * the latency: the time of m without transfer, 14 us, and the rest, both halved.
 */
static void
test_own_adapters(void **state)
{
    struct collective_table table;
    struct collective_ask other = ask("other", "all-reduce", 8, 2, 1e6);
    struct collective_answer answer;
    struct rec_error err;
    (void)state;
    read_table(&table, "fabric\tm\tnvlink\t1e11\t1e-5\tadapters=4\tadapter=1e9\n"
                       "fabric\tsame\tnvlink\t1e11\t5e-6\tadapters=4\tadapter=2e9\n"
                       "fabric\tother\tnvlink\t1e11\t1e-5\tadapters=8\tadapter=1e9\n"
                       "series\ta\tm\tall-reduce\t2\t2\npiece\ta\t1\t1e9\t1e-5\t1e9\n"
                       "series\tb\tm\tall-reduce\t2\t1\npiece\tb\t1\t1e9\t2e-6\t1e11\n"
                       "series\tc\tm\tall-reduce\t4\t1\npiece\tc\t1\t1e9\t4e-6\t1e11\n");
    assert_near(seconds(&table, ask("m", "all-reduce", 8, 2, 1e7), COLLECTIVE_NODES),
                4489e-6, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 6, 2, 1e7), COLLECTIVE_NODES),
                10e-6 + 5e-2 / 9 + 3e-6 + 1e-4, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 16, 2, 1e7), COLLECTIVE_NODES),
                13.86e-6 + 4e-6 + 4475.14e-6 * (15.0 / 8) / (7.0 / 4) / 0.83, 1e-12);
    assert_near(seconds(&table, ask("same", "all-reduce", 8, 2, 1e7), COLLECTIVE_SHEET),
                4489e-6 / 2, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 8, 2, 1e6), COLLECTIVE_NODES),
                10e-6 + 875.00875e-6 + 14e-6, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 8, 2, 3.023e6), COLLECTIVE_NODES),
                10e-6 + 2 * 7.0 / 16 * 3.023e-3 * 1.00001 + 4e-6 + 3.023e-5, 1e-12);
    assert_near(seconds(&table, ask("m", "all-reduce", 8, 2, 3.025e6), COLLECTIVE_NODES),
                10e-6 + 7.0 / 16 * 3.025e-3 + 4e-6 + 3.025e-5, 1e-12);
    assert_false(collective_seconds(&table, &other, &answer, &err));
    assert_int_equal(err.code, REC_NO);
    collective_table_free(&table);
}

#define SHEETS                                                        \
    "fabric\told\tnvlink\t2e11\t2e-5\treach=0.5\n"                    \
    "fabric\tnew\tnvlink\t4e11\t1e-5\treach=0.75\n"                   \
    "fabric\tslot\tpcie\t2e10\t1e-5\treach=0.5\n"                     \
    "fabric\tfast-slot\tpcie\t4e10\t2e-5\treach=0.5\n"                \
    "fabric\tpair\tpairs\t2e11\t1e-5\tpcie=2e10\treach=0.5\n"         \
    "series\ta\tnew-8\tall-gather\t2\t1\n"                            \
    "piece\ta\t1000\t1e9\t1e-5\t1e11\n"                               \
    "series\tb\tslot-8\tall-gather\t2\t1\n"                           \
    "piece\tb\t1000\t1e9\t1e-5\t1e10\n"                               \
    "series\tc\tslot-8\tall-gather\t4\t1\n"                           \
    "piece\tc\t1000\t1e9\t3e-5\t1e9\n"                                \
    "series\td\tpair-8\tall-gather\t2\t1\n"                           \
    "piece\td\t1000\t1e9\t1e-5\t1e10\n"                               \
    "series\te\tpair-8\tall-gather\t4\t1\n"                           \
    "piece\te\t1000\t1e9\t1e-5\t1e10\n"                               \
    "series\tf\tnew-8\tx-dispatch\t8\t1\n"                            \
    "piece\tf\t1\t1e9\t1e-5\t1e6\n"                                   \
    "fabric\ttwin\tnvlink\t4e11\t3e-5\treach=0.5\n"                   \
    "series\th\tnew-8\tx-lent\t8\t1\tsms=4\n"                         \
    "piece\th\t1\t1e9\t1e-5\t1e6\n"                                   \
    "series\ti\tnew-8\tx-wide\t8\t1\tsms=4\thidden=1000000\ttopk=2\n" \
    "piece\ti\t1\t1e9\t1e-5\t1e6\n"                                   \
    "series\tg\tnew-8\tall-reduce\t2\t1\n"                            \
    "piece\tg\t1\t6000\t1e-5\tinf\n"                                  \
    "piece\tg\t6001\t1e9\t4e-5\t1e11\n"

/* A data sheet. `old` has twice the latency of `new` and a third of the bandwidth
 * that it reaches (1e11 of 3e11): 10 us + 1 MB / 1e11 become 20 us + 3 MB / 1e11 = 50
 * us. Its name may be that of the GPU. It changes its state at 2/3 of the size: with
 * 3,999 bytes it still takes 20 us, with 6,000 it takes 80 us + 3 * 6,000 / 1e11.
 *
 * Over slots, 4 ranks take 3 steps, each as fast as between two: 1 MB in 4 pieces of
 * 0.25 MB, which two ranks exchange as a buffer of 0.5 MB in 50 us. `fast-slot` has
 * twice the bandwidth, so 3 * 25 us, and twice the latency of 4 ranks, 60 us; that
 * those of slot-8 reach 1e9 bytes/s, because they go through host memory, does not
 * matter.
 *
 * (Tokens: test_sheet_tokens.) */
static void
test_sheet(void **state)
{
    struct collective_table table;
    struct collective_ask named = ask("cloud", "all-gather", 2, 1, 1e6);
    struct collective_answer answer;
    struct rec_error err;
    (void)state;
    read_table(&table, SHEETS);
    assert_near(
        seconds(&table, ask("OLD_sxm", "all-gather", 2, 1, 1e6), COLLECTIVE_SHEET), 50e-6,
        1e-14);
    assert_near(seconds(&table, ask("old", "all-reduce", 2, 1, 3999), COLLECTIVE_SHEET),
                20e-6, 1e-14);
    assert_near(seconds(&table, ask("old", "all-reduce", 2, 1, 6000), COLLECTIVE_SHEET),
                80e-6 + 3 * 6000 / 1e11, 1e-14);
    named.gpu = "old-80";
    assert_near(seconds(&table, named, COLLECTIVE_SHEET), 50e-6, 1e-14);
    assert_near(
        seconds(&table, ask("fast-slot-x", "all-gather", 4, 1, 1e6), COLLECTIVE_SHEET),
        135e-6, 1e-14);
    /* Of pairs, groups of 2 and 4 say nothing about 8: the slots of others do. 7 steps of
     * 0.125 MB, each as long as a buffer of 0.25 MB takes, 25 us; the latency of a ring
     * of 8 by those of 2 and 4, 10 and 30 us, is 70 us. */
    assert_near(seconds(&table, ask("pair-8", "all-gather", 8, 1, 1e6), COLLECTIVE_SHEET),
                70e-6 + 7 * 25e-6, 1e-14);
    /* What is refused: no data sheet; four ranks over NVLink, of which two are known. */
    named.gpu = "";
    assert_false(collective_seconds(&table, &named, &answer, &err));
    assert_int_equal(err.code, REC_NO);
    named = ask("old", "all-gather", 4, 1, 1e6);
    assert_false(collective_seconds(&table, &named, &answer, &err));
    assert_int_equal(err.code, REC_NO);
    named = ask("old", "all-gather", 1, 1, 1e6);
    assert_false(collective_seconds(&table, &named, &answer, &err));
    assert_int_equal(err.code, REC_DATA);
    collective_table_free(&table);
}

/* `new` exchanges 20 tokens among 8 ranks in 10 us + 20 us. Reach does not count.
 *
 * `old` has twice the latency and half the bandwidth: 20 us + 40 us. Four processors that
 * are lent to an exchange move tokens as fast in both: 20 us + 20 us. But if a token of
 * 2e6 bytes goes to 7 (1 - (7/8)^2) = 105/64 others, 20 of them take 328.125 us over the
 * link of `old`, 2e11 bytes/s. `twin` has the link of `new`, so that its latency, three
 * times that of new, does not count: 30 us. Both sorts of links were checked apart. */
static void
test_sheet_tokens(void **state)
{
    struct collective_table table;
    struct collective_ask lent = ask("old", "x-lent", 8, 1, 20), wide = lent;
    struct collective_ask other = ask("old", "x-dispatch", 8, 1, 20), same = other;
    struct collective_answer answer;
    struct rec_error err;
    (void)state;
    read_table(&table, SHEETS "checked\ttokens-sheet\t1\t0.1\t0.1\t0.1\tabout=x\n"
                              "checked\ttokens-generation\t1\t0.2\t0.2\t0.2\tabout=x\n");
    lent.what.sms = 4;
    wide.what = (struct collective_what){"x-wide", "", 1000000, 2, 0, 4};
    same.system = "twin";
    assert_near(seconds(&table, other, COLLECTIVE_SHEET), 60e-6, 1e-14);
    assert_near(seconds(&table, lent, COLLECTIVE_SHEET), 40e-6, 1e-14);
    assert_near(seconds(&table, wide, COLLECTIVE_SHEET), 328.125e-6, 1e-14);
    assert_near(seconds(&table, same, COLLECTIVE_SHEET), 30e-6, 1e-14);
    assert_true(collective_seconds(&table, &same, &answer, &err) && answer.check);
    assert_near(answer.check->mean, 0.1, 1e-15);
    assert_true(collective_seconds(&table, &other, &answer, &err) && answer.check);
    assert_near(answer.check->mean, 0.2, 1e-15);
    collective_table_free(&table);
}

/* Among 4 ranks of `twin`, half as many as were measured, latency is 10 us / 1.17, and
 * 3/4 of the tokens leave their rank, not 7/8: 20 us * (3/4) / (7/8). Among 16 it is the
 * other way round. Other 4 ranks of `new` itself are as those of twin. More than twice or
 * less than half the ranks were never checked. */
static void
test_sheet_one_group(void **state)
{
    static const uint64_t far[] = {2, 3, 17, 32};
    struct collective_table table;
    struct collective_answer answer;
    struct rec_error err;
    (void)state;
    read_table(&table, SHEETS);
    assert_near(seconds(&table, ask("twin", "x-dispatch", 4, 1, 20), COLLECTIVE_SHEET),
                10e-6 / 1.17 + 120e-6 / 7, 1e-14);
    assert_near(seconds(&table, ask("twin", "x-dispatch", 16, 1, 20), COLLECTIVE_SHEET),
                11.7e-6 + 20e-6 * (15.0 / 16) / (7.0 / 8), 1e-14);
    assert_near(seconds(&table, ask("new-8", "x-dispatch", 4, 1, 20), COLLECTIVE_SHEET),
                10e-6 / 1.17 + 120e-6 / 7, 1e-14);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        struct collective_ask question = ask("twin", "x-dispatch", far[i], 1, 20);
        assert_false(collective_seconds(&table, &question, &answer, &err));
        assert_int_equal(err.code, REC_NO);
    }
    collective_table_free(&table);
}

/* The version that is asked for, or else the newest: 2.29 is newer than 2.3. */
static void
test_version(void **state)
{
    struct collective_table table;
    struct collective_ask question = ask("m", "all-gather", 2, 1, 1e6);
    (void)state;
    read_table(
        &table,
        "series\ta\tm\tall-gather\t2\t1\tversion=2.29\npiece\ta\t1\t9\t1e-5\tinf\n"
        "series\tb\tm\tall-gather\t2\t1\tversion=2.3\npiece\tb\t1\t9\t2e-5\tinf\n"
        "series\tc\tm\tall-gather\t2\t1\tversion=2.3\npiece\tc\t1\t9\t3e-5\tinf\n");
    question.size = 5;
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 1e-5, 1e-15);
    question.version = "2.3"; /* of two the later in the table */
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 3e-5, 1e-15);
    question.version = "2.4";
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 1e-5, 1e-15);
    collective_table_free(&table);
}

/* A series of the type that is asked for, or else the one without a type. The law of a
 * ring takes both: of integers, 2 ranks 30 us and 4 ranks, which were measured without a
 * type, 20 us, so that 3 are half-way. A system n whose switches do not add, as those of
 * m do, takes the times of integers for all types; o, whose switches add, those of each
 * type. */
static void
test_type(void **state)
{
    struct collective_table table;
    struct collective_ask question = ask("m", "all-reduce", 2, 1, 5);
    (void)state;
    read_table(&table,
               "fabric\tm\tnvlink\t1e11\t1e-5\tadds=1\n"
               "fabric\tn\tnvlink\t1e11\t1e-5\n"
               "fabric\to\tnvlink\t1e11\t1e-5\tadds=1\n"
               "series\ta\tm\tall-reduce\t2\t1\tdtype=int8\npiece\ta\t1\t9\t3e-5\tinf\n"
               "series\tb\tm\tall-reduce\t2\t1\npiece\tb\t1\t9\t1e-5\tinf\n"
               "series\tc\tm\tall-reduce\t4\t1\npiece\tc\t1\t9\t2e-5\tinf\n");
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 1e-5, 1e-15);
    question.what.dtype = "half";
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 1e-5, 1e-15);
    question.what.dtype = "int8";
    assert_near(seconds(&table, question, COLLECTIVE_STATE), 3e-5, 1e-15);
    question.ranks = 3;
    assert_near(seconds(&table, question, COLLECTIVE_RANKS), 2.5e-5, 1e-15);
    question.ranks = 2;
    question.what.dtype = "half";
    question.system = "n";
    assert_near(seconds(&table, question, COLLECTIVE_SHEET), 3e-5, 1e-15);
    question.system = "o";
    assert_near(seconds(&table, question, COLLECTIVE_SHEET), 1e-5, 1e-15);
    collective_table_free(&table);
}

static void
test_bus(void **state)
{
    (void)state;
    assert_near(collective_bus_factor("all-reduce", 8), 2 * 7.0 / 8, 1e-15);
    assert_near(collective_bus_factor("all-gather", 8), 7.0 / 8, 1e-15);
    assert_near(collective_bus_factor("reduce-scatter", 4), 3.0 / 4, 1e-15);
    assert_near(collective_bus_factor("all-to-all", 2), 1.0 / 2, 1e-15);
    assert_near(collective_bus_factor("send-recv", 2), 1, 1e-15);
    assert_near(collective_bus_factor("deepep-ll-dispatch", 8), 0, 0);
}

/* What is shipped can be read, has all ways of checks, and grows with the size. */
static void
test_shipped(void **state)
{
    struct collective_table table = {.nseries = 0};
    struct rec_error err = {.text = ""};
    double last = 0;
    (void)state;
    if (!collective_table_read_shipped(&table, &err))
        fail_msg("%s", err.text);
    assert_true(table.nchecks >= 9 && table.nfabrics > 20 && table.nseries > 400);
    for (double size = 1 << 20; size <= 1 << 30; size *= 4) {
        double t =
            seconds(&table, ask("h100-sxm", "all-reduce", 8, 1, size), COLLECTIVE_STATE);
        assert_true(t > last);
        last = t;
    }
    collective_table_free(&table);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_cross),
        cmocka_unit_test(test_states_jump),
        cmocka_unit_test(test_sizes_alone),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_pieces),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_more_nodes),
        cmocka_unit_test(test_nodes_between),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_own_adapters),
        cmocka_unit_test(test_sheet),
        cmocka_unit_test(test_sheet_tokens),
        cmocka_unit_test(test_sheet_one_group),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_type),
        cmocka_unit_test(test_bus),
        cmocka_unit_test(test_shipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
