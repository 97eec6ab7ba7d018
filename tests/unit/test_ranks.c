/* Orders of ranks against a listing by nested loops, as a reader of the order would do
 * it: the first dimension changes fastest. */
#include "unit.h"

#include "../../lib/parallel/private.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 192, DIMENSIONS = PARALLEL_DIMENSIONS };
static const char *const words[] = {"tp", "cp", "ep", "dp", "pp"};

/* digit[rank][dimension] */
typedef unsigned listing[RANKS][DIMENSIONS];

/* The digits of ranks 0 to n - 1. */
static void
list(const unsigned order[DIMENSIONS], const unsigned size[DIMENSIONS], unsigned n,
     listing digit)
{
    unsigned now[DIMENSIONS] = {0};
    for (unsigned rank = 0; rank < n; rank++) {
        unsigned i = 0;
        memcpy(digit[rank], now, sizeof now);
        while (i < DIMENSIONS && ++now[order[i]] == size[order[i]])
            now[order[i++]] = 0;
    }
}

/* The ranks that have the digits of `rank` but for those of a and b. */
static unsigned
alike(listing digit, unsigned n, unsigned rank, unsigned a, unsigned b,
      unsigned member[RANKS])
{
    unsigned found = 0;
    for (unsigned other = 0; other < n; other++) {
        bool same = true;
        for (unsigned d = 0; d < DIMENSIONS; d++)
            same = same && (d == a || d == b || digit[other][d] == digit[rank][d]);
        if (same)
            member[found++] = other;
    }
    return found;
}

static struct parallel_stack stack = {.adapter = 1};

/* How many members share the node of the first, by the time of an exchange over adapters
 * of a byte a second: its ring leaves the node through so many. */
static unsigned
share(const struct parallel_mix *mix, enum parallel_group group, unsigned n,
      unsigned node)
{
    const struct parallel_machine machine = {
        .node = node, .inside = 1e9, .adapter = 1, .stack = &stack};
    double seconds = parallel_exchange(mix, &machine, group, "all-gather", n);
    return seconds < 1e-3 ? n : (unsigned)lrint((n - 1) / seconds);
}

/* A group of all ranks of a mix; `stage` and `column` of each rank. */
static void
compare(const struct parallel_mix *mix, enum parallel_group group, listing digit,
        unsigned a, unsigned b, unsigned rank_of[2][RANKS], unsigned columns)
{
    unsigned expected[RANKS];
    uint32_t member[RANKS];
    for (unsigned stage = 0; stage < mix->pp; stage++)
        for (unsigned column = 0; column < columns; column++) {
            unsigned n =
                alike(digit, columns * mix->pp, rank_of[stage][column], a, b, expected);
            unsigned here = 0;
            assert_int_equal(parallel_members(mix, group, column, member), n);
            for (unsigned i = 0; i < n; i++) {
                assert_int_equal(parallel_rank(mix, stage, member[i]), expected[i]);
                here += expected[i] / 8 == expected[0] / 8;
            }
            /* groups that nodes do not cut evenly are taken to be */
            if (stage + column == 0 && mix->dp % 3 != 0 && here < n)
                assert_int_equal(share(mix, group, n, 8), here);
        }
}

/* One order of one mix. Returns whether it can be laid out. */
static bool
try_order(const unsigned order[DIMENSIONS], bool experts, struct parallel_mix *mix)
{
    unsigned columns = mix->tp * mix->cp * mix->dp, all = columns * mix->pp;
    unsigned dense[] = {mix->tp, mix->cp, 1, mix->dp, mix->pp}, n = 0, seen[2] = {0, 0};
    unsigned routed[] = {mix->etp, 1, mix->ep, columns / mix->etp / mix->ep, 1};
    unsigned rank_of[2][RANKS], tensor[RANKS];
    static listing digit, stage, expert;
    struct rec_error err;
    char text[20] = "";
    for (unsigned i = 0; i < DIMENSIONS; i++)
        if (experts || order[i] != PARALLEL_DIM_EP)
            n += (unsigned)snprintf(text + n, sizeof text - n, "%s%s", n ? "-" : "",
                                    words[order[i]]);
    assert_true(parallel_order_read(rec_str(text), &mix->order));
    if (!parallel_order_check(mix, experts, &err)) {
        struct parallel_mix other = *mix;
        const char *nearest = strrchr(err.text, ' ') + 1;
        assert_true(parallel_order_read(rec_str(nearest), &other.order));
        assert_true(parallel_order_check(&other, experts, &err));
        return false;
    }
    list(order, dense, all, digit);
    for (unsigned rank = 0; rank < all; rank++) {
        unsigned s = digit[rank][PARALLEL_DIM_PP];
        assert_int_equal(parallel_rank(mix, s, seen[s]), rank);
        rank_of[s][seen[s]++] = rank;
    }
    compare(mix, PARALLEL_TENSOR, digit, PARALLEL_DIM_TP, PARALLEL_DIM_TP, rank_of,
            columns);
    compare(mix, PARALLEL_CONTEXT, digit, PARALLEL_DIM_CP, PARALLEL_DIM_CP, rank_of,
            columns);
    compare(mix, PARALLEL_SHARDS, digit, PARALLEL_DIM_CP, PARALLEL_DIM_DP, rank_of,
            columns);
    if (!experts)
        return true;
    /* the ranks of each stage, dealt anew */
    list(order, routed, columns, stage);
    for (unsigned s = 0; s < mix->pp; s++)
        for (unsigned column = 0; column < columns; column++) {
            memcpy(expert[rank_of[s][column]], stage[column], sizeof stage[column]);
            expert[rank_of[s][column]][PARALLEL_DIM_PP] = s;
        }
    compare(mix, PARALLEL_EXPERT, expert, PARALLEL_DIM_EP, PARALLEL_DIM_EP, rank_of,
            columns);
    compare(mix, PARALLEL_EXPERT_SHARDS, expert, PARALLEL_DIM_DP, PARALLEL_DIM_DP,
            rank_of, columns);
    for (unsigned rank = 0; rank < all; rank++) {
        unsigned k = alike(expert, all, rank, PARALLEL_DIM_TP, PARALLEL_DIM_TP, tensor);
        for (unsigned i = 0; i < k; i++)
            for (unsigned d = 1; d < DIMENSIONS; d++)
                assert_int_equal(digit[tensor[i]][d], digit[rank][d]);
    }
    return true;
}

/* All orders of mixes of all degrees: groups, and how many of a group share a node of 8.
 * Without experts every order can be laid out. */
static void
test_orders(void **state)
{
    static const uint32_t mixes[][6] = {
        /* t c p D e etp */
        {2, 1, 2, 4, 1, 1}, {2, 2, 2, 2, 1, 1}, {4, 2, 2, 4, 1, 1},
        {2, 4, 1, 8, 1, 1}, {2, 1, 2, 4, 4, 1}, {2, 2, 2, 2, 4, 2},
        {4, 2, 2, 4, 8, 2}, {1, 2, 2, 8, 4, 1}, {4, 1, 2, 12, 6, 2}};
    unsigned refused = 0;
    (void)state;
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        for (unsigned code = 0; code < 3125; code++) {
            const uint32_t *d = mixes[i];
            struct parallel_mix mix = {
                .tp = d[0], .cp = d[1], .pp = d[2], .dp = d[3], .ep = d[4], .etp = d[5]};
            unsigned order[DIMENSIONS], rest = code, seen = 0;
            for (unsigned k = 0; k < DIMENSIONS; k++, rest /= 5)
                seen |= 1U << (order[k] = rest % 5);
            if (seen != 31)
                continue;
            if (!try_order(order, d[4] > 1, &mix)) {
                assert_true(d[4] > 1);
                refused++;
            }
        }
    assert_true(refused > 0);
}

/* tp-cp-pp-dp, 2 2 2 2: columns 0 to 3 of stage 0 are ranks 0 to 3, of stage 1 ranks 4 to
 * 7. 8 expert ranks are all columns of a stage, so that ep cannot come before pp. */
static void
test_by_hand(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3, 8, 9, 10, 11};
    struct parallel_mix mix = {.tp = 2, .cp = 2, .pp = 2, .dp = 2, .ep = 8, .etp = 1};
    uint32_t member[8];
    struct rec_error err;
    (void)state;
    assert_true(parallel_order_read(rec_str("tp-cp-pp-dp"), &mix.order));
    assert_true(parallel_order_check(&mix, true, &err));
    assert_int_equal(parallel_members(&mix, PARALLEL_EXPERT, 3, member), 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(parallel_rank(&mix, 0, member[i]), all[i]);
    assert_true(parallel_order_read(rec_str("tp,cp,ep,pp,dp"), &mix.order));
    assert_false(parallel_order_check(&mix, true, &err));
    assert_non_null(
        strstr(err.text, "the nearest that can be laid out is tp-cp-ep-dp-pp"));
    assert_false(parallel_order_read(rec_str("tp-cp-pp"), &mix.order));
    assert_false(parallel_order_read(rec_str("tp-cp-pp-pp"), &mix.order));
    assert_false(parallel_order_read(rec_str("tp-cp-ep-dp-pp-"), &mix.order));
    assert_false(parallel_order_read(rec_str("tp.cp.dp.pp"), &mix.order));
    assert_false(parallel_order_read(rec_str(""), &mix.order));
}

/* Hybrid shards: 4 replicas in groups of 2 are 0 1 and 2 3; context ranks between tensor
 * ranks and replicas would cut them. */
static void
test_shards(void **state)
{
    struct parallel_mix mix = {
        .tp = 2, .cp = 1, .pp = 1, .dp = 4, .ep = 1, .etp = 1, .shard = 2};
    uint32_t member[8];
    struct rec_error err;
    (void)state;
    assert_int_equal(parallel_members(&mix, PARALLEL_SHARDS, 6, member), 2);
    assert_int_equal(member[0], 4);
    assert_int_equal(member[1], 6);
    assert_int_equal(parallel_members(&mix, PARALLEL_BETWEEN, 6, member), 2);
    assert_int_equal(member[0], 2);
    assert_int_equal(member[1], 6);
    mix.cp = 2;
    assert_true(parallel_order_read(rec_str("cp-tp-dp-pp"), &mix.order));
    assert_false(parallel_order_check(&mix, false, &err));
    assert_non_null(strstr(err.text, "across tensor groups"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders),
                                       cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
