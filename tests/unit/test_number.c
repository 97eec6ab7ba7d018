/*
 * Numbers as text: strict reading, shortest writing. What is shortest is found by trying
 * %.1g to %.17g and strtod(), the C library's exact conversions.
 */
#include "unit.h"

#include <math.h>

/* ---- reading ------------------------------------------------------------- */

static const struct {
    const char *text;
    double value;
} good[] = {
    {"0", 0},
    {"-0", 0},
    {"1", 1},
    {"007", 7},
    {"-1", -1},
    {"0.1", 0.1},
    {"1.0", 1},
    {"1.50", 1.5},
    {"1e3", 1000},
    {"1E3", 1000},
    {"1e+3", 1000},
    {"1e-3", 0.001},
    {"1.6e12", 1.6e12},
    {"50e-9", 50e-9},
    {"9007199254740993", 9007199254740992},
    {"9007199254740993.0000000000000001", 9007199254740994},
    {"18446744073709551616", 18446744073709551616.0},
    {"123456789012345678901234567890", 123456789012345678901234567890.0},
    {"0.000000000000000000000000000001", 1e-30},
    {"1e22", 1e22},
    {"1e23", 1e23},
    {"3e-23", 3e-23},
    {"1.7976931348623157e308", 1.7976931348623157e308},
    {"4.9e-324", 4.9e-324},
    {"2.2250738585072011e-308", 2.2250738585072011e-308},
    {"1e-400", 0},
    {"0e999999999", 0},
    {"inf", INFINITY},
    {"-inf", -INFINITY},
};

static const char *const bad[] = {
    "",     " ",     " 1",  "1 ",  "+1",    "-",   "--1",   ".",      ".5",
    "5.",   "1.e3",  "e3",  "1e",  "1e+",   "1e-", "1e3.",  "1e3e3",  "1.2.3",
    "0x10", "0x1p3", "nan", "NaN", "-nan",  "INF", "Inf",   "+inf",   "infinity",
    "inf ", "in",    "1,5", "1_0", "1d3",   "12x", "1e400", "-1e400", "1e99999999",
    "\t1",  "1\n",   "1\r", "'1'", "\"1\"", "١",   "1e 3",  "1 e3",   "- 1",
};

static void
numbers_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -99;
        if (!rec_parse_num(rec_str(good[i].text), &value) || value != good[i].value)
            fail_msg("'%s' was read as %.17g", good[i].text, value);
    }
}

static void
what_is_no_number_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value;
        if (rec_parse_num(rec_str(bad[i]), &value))
            fail_msg("'%s' was read as %.17g", bad[i], value);
    }
    double value;
    assert_false(rec_parse_num((struct rec_str){"1\0", 2}, &value));
    assert_false(rec_parse_num((struct rec_str){"1\0002", 3}, &value));
}

/* Only the view counts, not what follows it in the buffer. */
static void
a_number_ends_with_its_view(void **state)
{
    double value;
    (void)state;
    assert_true(rec_parse_num((struct rec_str){"12345", 2}, &value));
    assert_true(value == 12);
    assert_true(rec_parse_num((struct rec_str){"1e400", 3}, &value));
    assert_true(value == 1e4);
    assert_true(rec_parse_num((struct rec_str){"infinity", 3}, &value));
}

static void
integers_are_read_strictly(void **state)
{
    static const char *const refused[] = {"",
                                          "-0",
                                          "-1",
                                          "+1",
                                          " 1",
                                          "1 ",
                                          "1.0",
                                          "1e",
                                          "x",
                                          "0x1",
                                          "1,",
                                          "18446744073709551616",
                                          "99999999999999999999999"};
    uint64_t n;
    (void)state;
    assert_true(rec_parse_uint(rec_str("0"), &n) && n == 0);
    assert_true(rec_parse_uint(rec_str("007"), &n) && n == 7);
    assert_true(rec_parse_uint(rec_str("18446744073709551615"), &n) && n == UINT64_MAX);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (rec_parse_uint(rec_str(refused[i]), &n))
            fail_msg("'%s' was read as %llu", refused[i], (unsigned long long)n);
}

/* Long mantissas with any exponent: the same as strtod(). */
static void
reading_rounds_as_the_c_library(void **state)
{
    (void)state;
    for (int i = 0, n = part_of(200000); i < n; i++) {
        char text[80];
        double value, want;
        snprintf(text, sizeof text, "%llu.%0*llue%d",
                 (unsigned long long)(random64() >> random_below(64)),
                 (int)random_below(20), (unsigned long long)(random64() >> 8),
                 (int)random_below(660) - 340);
        want = strtod(text, NULL);
        if (isinf(want))
            continue;
        if (!rec_parse_num(rec_str(text), &value) || value != want)
            fail_msg("'%s' was read as %.17g, not %.17g", text, value, want);
    }
}

/* Zeros before the first digit that is none do not count, however many they are: n zeros
 * and a 1 behind the point are 10^-(n + 1). */
static void
zeros_do_not_count(void **state)
{
    enum { MOST = 150000 };
    static char text[MOST + 32];
    double value;
    (void)state;
    for (int n = 0; n <= MOST; n = n < 40 ? n + 1 : 2 * n) {
        snprintf(text, sizeof text, "%0*d.5", n + 1, 7);
        assert_true(rec_parse_num(rec_str(text), &value) && value == 7.5);
        snprintf(text, sizeof text, "0.%0*de%d", n + 1, 1, n + 3);
        assert_true(rec_parse_num(rec_str(text), &value) && value == 100);
    }
}

/* Integers halfway between two doubles, which go to the even one, and what is nearest to
 * them on both sides. */
static void
halves_are_rounded_to_even(void **state)
{
    (void)state;
    for (int i = 0, n = part_of(20000); i < n; i++) {
        uint64_t half = random64() >> 10 | (uint64_t)1 << 53 | 1;
        double want = (double)(half & 2 ? half + 1 : half - 1), value;
        char text[40];
        snprintf(text, sizeof text, "%llu", (unsigned long long)half);
        assert_true(rec_parse_num(rec_str(text), &value) && value == want);
        snprintf(text, sizeof text, "%llu.01", (unsigned long long)half);
        assert_true(rec_parse_num(rec_str(text), &value) && value == (double)(half + 1));
        snprintf(text, sizeof text, "%llu.99", (unsigned long long)half - 1);
        assert_true(rec_parse_num(rec_str(text), &value) && value == (double)(half - 1));
    }
}

/* ---- writing ------------------------------------------------------------- */

/* Digits and exponent of a decimal text, without sign, point, zeros at either end. */
static void
take_apart(const char *text, char digits[32], int *exponent)
{
    const char *e = strpbrk(text, "eE");
    int n = 0, point = -1;
    for (const char *p = text; *p && p != e; p++) {
        if (*p == '.')
            point = n;
        else if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    }
    *exponent = (e ? atoi(e + 1) : 0) - (point < 0 ? 0 : n - point);
    while (n > 0 && digits[n - 1] == '0') {
        n--;
        ++*exponent;
    }
    digits[n] = '\0';
    memmove(digits, digits + strspn(digits, "0"), strlen(digits) + 1);
}

static void
check_shortest(double value)
{
    char text[REC_NUM_MAX], other[64], digits[32], want[32], *end;
    int exponent, want_exponent, precision = 1;
    double back;
    size_t len = rec_format_num(text, value);

    assert_int_equal(len, strlen(text));
    if (strtod(text, &end) != value || *end)
        fail_msg("%.17g was written as '%s'", value, text);
    if (!rec_parse_num(rec_str(text), &back) || back != value)
        fail_msg("%.17g does not come back from '%s'", value, text);
    do
        snprintf(other, sizeof other, "%.*e", precision - 1, value);
    while (strtod(other, NULL) != value && ++precision <= 17);
    take_apart(text, digits, &exponent);
    take_apart(other, want, &want_exponent);
    /* As short as possible; among the shortest, %.*e gives the closest to the value. */
    if (strcmp(digits, want) != 0 || exponent != want_exponent) {
        /* a power of two: the closest of that length may be outside its interval */
        if (strlen(digits) > strlen(want) ||
            (strlen(digits) == strlen(want) && frexp(value, &precision) != 0.5))
            fail_msg("%.17g was written as '%s', shortest is '%s'", value, text, other);
    }
}

static double
from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void
random_bit_patterns_are_shortest(void **state)
{
    (void)state;
    for (int i = 0, n = part_of(100000); i < n; i++) {
        double value = from_bits(random64());
        if (isfinite(value) && value != 0)
            check_shortest(value);
    }
}

static void
powers_and_their_neighbours_are_shortest(void **state)
{
    (void)state;
    for (int e = -1074; e <= 1023; e++) {
        double value = ldexp(1, e);
        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        if (e > -1074)
            check_shortest(nextafter(value, 0));
    }
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", e);
        double value = strtod(text, NULL);
        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        check_shortest(nextafter(value, 0) != 0 ? nextafter(value, 0) : value);
    }
    check_shortest(1.7976931348623157e308);
}

static void
subnormals_are_shortest(void **state)
{
    (void)state;
    for (uint64_t bits = 1; bits < 3000; bits++)
        check_shortest(from_bits(bits));
    for (int i = 0, n = part_of(20000); i < n; i++)
        check_shortest(from_bits(1 + random64() % (((uint64_t)1 << 52) - 1)));
}

static void
everyday_numbers_are_shortest(void **state)
{
    (void)state;
    for (int i = 0, n = part_of(100000); i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "%llu.%llu", (unsigned long long)random_below(100000),
                 (unsigned long long)random_below(1000));
        check_shortest(strtod(text, NULL) + 1e-3);
        check_shortest((double)(random64() >> random_below(64)) + 1);
    }
}

static void
numbers_look_as_people_write_them(void **state)
{
    static const struct {
        double value;
        const char *text;
    } table[] = {
        {0, "0"},
        {-0.0, "0"},
        {0.1, "0.1"},
        {-0.1, "-0.1"},
        {44302336, "44302336"},
        {5e-8, "5e-8"},
        {1600000000000, "1600000000000"},
        {0.001, "0.001"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {1.5, "1.5"},
        {100, "100"},
        {1e16, "10000000000000000"},
        {1e17, "1e17"},
        {9007199254740992, "9007199254740992"},
        {1e22, "1e22"},
        {1e100, "1e100"},
        {1.2345e-100, "1.2345e-100"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[REC_NUM_MAX];
        rec_format_num(text, table[i].value);
        assert_string_equal(text, table[i].text);
    }
}

static void
quantities_have_three_digits_and_a_unit(void **state)
{
    static const struct {
        double value;
        enum rec_quantity quantity;
        const char *text;
    } table[] = {
        {0, REC_SECONDS, "0 s"},
        {INFINITY, REC_BYTES, "inf B"},
        {0.00011532603076923076, REC_SECONDS, "115 us"},
        {9.996e-4, REC_SECONDS, "1 ms"},
        {9.994e-4, REC_SECONDS, "999 us"},
        {4e-12, REC_SECONDS, "0.004 ns"},
        {1.2345, REC_SECONDS, "1.23 s"},
        {599, REC_SECONDS, "599 s"},
        {599.9, REC_SECONDS, "10 min"},
        {35000, REC_SECONDS, "583 min"},
        {86400, REC_SECONDS, "24 h"},
        {864000, REC_SECONDS, "10 d"},
        {-0.0025, REC_SECONDS, "-2.5 ms"},
        {35.5, REC_BYTES, "35.5 B"},
        {999.6, REC_BYTES, "1 kB"},
        {38535168, REC_BYTES, "38.5 MB"},
        {2.96e10, REC_FLOPS, "29.6 GFLOP"},
        {1e21, REC_FLOPS, "1e+03 EFLOP"},
        {1.7976931348623157e308, REC_BYTES, "1.8e+290 EB"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[REC_QUANTITY_MAX];
        rec_format_quantity(text, table[i].value, table[i].quantity, 3);
        assert_string_equal(text, table[i].text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(a_number_ends_with_its_view),
        cmocka_unit_test(integers_are_read_strictly),
        cmocka_unit_test(reading_rounds_as_the_c_library),
        cmocka_unit_test(zeros_do_not_count),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(random_bit_patterns_are_shortest),
        cmocka_unit_test(powers_and_their_neighbours_are_shortest),
        cmocka_unit_test(subnormals_are_shortest),
        cmocka_unit_test(everyday_numbers_are_shortest),
        cmocka_unit_test(numbers_look_as_people_write_them),
        cmocka_unit_test(quantities_have_three_digits_and_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
