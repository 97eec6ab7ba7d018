/* The map from texts to numbers: what is in it, and how many slots a search looks at. */
#include "unit.h"

/* Each slot that a search looks at, and that holds a text of the same length, is compared
 * by memcmp(). The library calls this one. */
static uint64_t compared;

int
memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    compared++;
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return p[i] - q[i];
    return 0;
}

enum { ROOM = 32 };

/* Ways to choose texts so that they might displace each other, all of the same length.
 * Member i of n. */
static size_t
write_text(char text[ROOM], int way, unsigned i, unsigned n)
{
    static const unsigned strides[] = {10, 16, 100, 256, 1000, 4096};
    switch (way) {
    case 0: return (size_t)snprintf(text, ROOM, "%08u", i);
    case 1: return (size_t)snprintf(text, ROOM, "node%u", 1000000 + i);
    /* parts of ops, as partition names them */
    case 2: return (size_t)snprintf(text, ROOM, "%u%c", 1000000 + i / 16, 'a' + i % 16);
    /* many runs of numbers, and few long ones */
    case 3: return (size_t)snprintf(text, ROOM, "%04x-%04u", i % 1000, i / 1000);
    case 4: return (size_t)snprintf(text, ROOM, "%c%07u", 'a' + i % 3, i / 3);
    /* equal ends; the last two bytes differ in the upper, or only in the lower halves */
    case 5: return (size_t)snprintf(text, ROOM, "%08u-fwd", i);
    case 6:
        return (size_t)snprintf(text, ROOM, "%06u%c%c", i / 36, "\x01!1AQa"[i % 6],
                                "\x01!1AQa"[i / 6 % 6]);
    case 7: return (size_t)snprintf(text, ROOM, "%06u%c%c", i / 4, '0' + i % 4, '7');
    case 8: /* the last bytes first */ memcpy(text, &i, sizeof i); return sizeof i;
    case 9: /* numbers of which only the front counts on */
        return (size_t)snprintf(text, ROOM, "%08u%08u", i, n - i);
    default: return (size_t)snprintf(text, ROOM, "%010u", i * strides[way - 10]);
    }
}

enum { WAYS = 16 };

/*
 * Linear probing of random slots, of which a share a is taken, compares
 * (1 + 1/(1 - a)) / 2 texts to find one, and (1/(1 - a)^2 - 1) / 2 to find none (Knuth,
 * TAOCP 3, 6.4; the free slot at the end is not compared): 2 and 4 when the map is as
 * full as it gets, a = 2/3. No choice of texts may need more, but by chance. If a run of
 * n numbers were displaced as a whole, each would need about n.
 */
static void
nobody_makes_searches_long(void **state)
{
    char(*text)[ROOM];
    struct rec_error err;
    (void)state;
    for (unsigned slots = 1 << 14; slots <= 1 << 17; slots <<= 3)
        for (int way = 0; way < WAYS; way++) {
            unsigned n = slots / 3 * 2 - 1, nmisses = 0;
            struct rec_map map = {0};
            double hits, misses = 0;
            text = calloc(n, sizeof *text);
            assert_non_null(text);
            for (unsigned i = 0; i < n; i++) {
                struct rec_str key = {text[i], write_text(text[i], way, i, n)};
                compared = 0;
                assert_true(rec_map_get(&map, key) == REC_NONE);
                if (i >= n / 10 * 9) { /* nearly full */
                    misses += (double)compared;
                    nmisses++;
                }
                assert_true(rec_map_add(&map, key, i, &err));
            }
            assert_int_equal(map.nslots, slots);
            compared = 0;
            for (unsigned i = 0; i < n; i++) {
                size_t len = write_text(text[i], way, i, n);
                assert_int_equal(rec_map_get(&map, (struct rec_str){text[i], len}), i);
            }
            hits = (double)compared / n;
            misses /= nmisses;
            if (hits > 3.5 || misses > 10)
                fail_msg("way %d, %u texts: %g compared to find one, %g to find none",
                         way, n, hits, misses);
            rec_map_free(&map);
            free(text);
        }
}

/* Small maps of the parts of ops, 4 an op. Random slots need 2 comparisons (see above).
 * Chance decides of one map, so the mean of many counts. */
static void
small_maps_are_searched_briefly(void **state)
{
    enum { MAPS = 60, OPS = 83 /* of 512 slots two thirds are taken */ };
    struct rec_error err;
    double hits = 0;
    (void)state;
    for (unsigned first = 1; first <= MAPS; first++) {
        struct rec_map map = {0};
        char text[4 * OPS][ROOM];
        for (unsigned i = 0; i < 4 * OPS; i++) {
            snprintf(text[i], ROOM, "%u%c", 97 * first + i / 4, 'a' + i % 4);
            assert_true(rec_map_add(&map, rec_str(text[i]), i, &err));
        }
        assert_int_equal(map.nslots, 512);
        compared = 0;
        for (unsigned i = 0; i < 4 * OPS; i++)
            assert_int_equal(rec_map_get(&map, rec_str(text[i])), i);
        hits += (double)compared / (MAPS * 4 * OPS);
        rec_map_free(&map);
    }
    if (hits > 3.5)
        fail_msg("%g compared to find one", hits);
}

/* Texts come and go, and the map has what a list has. */
static void
texts_come_and_go(void **state)
{
    enum { MOST = 3000 };
    static char text[MOST][ROOM];
    static bool there[MOST];
    struct rec_error err;
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (unsigned n = 5; n <= MOST; n *= 5) {
            struct rec_map map = {0};
            size_t used = 0;
            for (unsigned turn = 0; turn < 6 * n; turn++) {
                unsigned i = (unsigned)random_below(n);
                struct rec_str key = {text[i], write_text(text[i], way, i, n)};
                assert_int_equal(rec_map_get(&map, key), there[i] ? i : REC_NONE);
                if (there[i])
                    rec_map_remove(&map, key);
                else
                    assert_true(rec_map_add(&map, key, i, &err));
                there[i] = !there[i];
                used += there[i] ? 1 : (size_t)-1;
                assert_int_equal(map.used, used);
            }
            for (unsigned i = 0; i < n; i++) {
                struct rec_str key = {text[i], write_text(text[i], way, i, n)};
                assert_int_equal(rec_map_get(&map, key), there[i] ? i : REC_NONE);
                rec_map_remove(&map, key);
                assert_int_equal(rec_map_get(&map, key), REC_NONE);
                there[i] = false;
            }
            assert_int_equal(map.used, 0);
            rec_map_free(&map);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_makes_searches_long),
        cmocka_unit_test(small_maps_are_searched_briefly),
        cmocka_unit_test(texts_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
