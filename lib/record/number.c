/*
 * Numbers as text. Reading is strict and rounds correctly. Writing gives the shortest
 * decimal that reads back as the same double.
 *
 * Reading tries three ways, the fastest first: mantissa and power of ten are both exact
 * doubles (W. Clinger, 1990); 128 bits of the power of ten decide the rounding
 * (D. Lemire, "Number parsing at a gigabyte per second", 2021); strtod(). Writing follows
 * R. Giulietti, "The Schubfach way to render doubles" (2020), whose names the code keeps.
 */
#include "rampipe/record.h"

#include <math.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

/* ---- powers of ten -------------------------------------------------------- */

/* The exponents that shortest() needs for all doubles. */
enum { POW10_MIN = -292, POW10_MAX = 324 };

/* The 128 leading bits of a power of ten: hi * 2^64 + lo. */
struct pow10 {
    uint64_t hi, lo;
};

/* floor(log2(10^e)), exact in the range used: 1741647 / 2^19 is log2(10). */
static inline int
floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* 32-bit limbs of a long integer: 40 hold 10^324, and 2^(127 + 970) for 10^-292. */
enum { LIMBS = 40 };

/* The 128 leading bits of 10^k, rounded up unless they are exact. Plain long arithmetic
 * computes each k once, when it is first used: a table of 617 constants in the source
 * could hold an error that nobody sees. */
static struct pow10
compute_pow10(int k)
{
    uint32_t limb[LIMBS] = {0};
    int bits = floor_log2_pow10(k) + 1, shift;
    bool inexact = false;
    uint64_t out[2] = {0, 0};

    if (k >= 0) {
        limb[0] = 1;
        for (int i = 0; i < k; i++) {
            uint64_t carry = 0;
            for (int j = 0; j < LIMBS; j++) {
                carry += (uint64_t)limb[j] * 10;
                limb[j] = (uint32_t)carry;
                carry >>= 32;
            }
        }
        shift = bits - 128; /* drop this many low bits; negative: move up */
    } else {
        int top = 128 - bits; /* 2^top / 10^-k has exactly 128 bits */
        limb[top / 32] = (uint32_t)1 << (top % 32);
        for (int i = 0; i < -k; i++) {
            uint64_t rest = 0;
            for (int j = LIMBS - 1; j >= 0; j--) {
                rest = rest << 32 | limb[j];
                limb[j] = (uint32_t)(rest / 10);
                rest %= 10;
            }
        }
        inexact = true;
        shift = 0;
    }
    for (int b = 127; b >= 0; b--) {
        int from = b + shift;
        uint64_t bit = from < 0 ? 0 : (limb[from / 32] >> (from % 32)) & 1;
        out[b / 64] |= bit << (b % 64);
    }
    for (int b = 0; b < shift && !inexact; b++)
        inexact = (limb[b / 32] >> (b % 32)) & 1;
    if (inexact && ++out[0] == 0)
        out[1]++;
    return (struct pow10){out[1], out[0]};
}

/* Each thread has its own cache, so no lock is needed. The leading bit of a computed
 * entry is 1, so hi == 0 marks an entry that is not computed yet. */
static struct pow10
pow10_bits(int k)
{
    static _Thread_local struct pow10 table[POW10_MAX - POW10_MIN + 1];
    struct pow10 *entry = &table[k - POW10_MIN];
    if (entry->hi == 0)
        *entry = compute_pow10(k);
    return *entry;
}

/* ---- reading ------------------------------------------------------------- */

static const double exact_pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The slow way, for long mantissas and large exponents. `s` is well-formed, but need not
 * end in NUL. The tools never call setlocale(), so strtod() expects a decimal point
 * whatever the user's locale is. */
static bool
parse_slow(struct rec_str s, double *value)
{
    char small[64], *text = small, *end;
    bool ok;

    if (s.len >= sizeof small && !(text = malloc(s.len + 1)))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    *value = strtod(text, &end);
    ok = *end == '\0' && isfinite(*value);
    if (text != small)
        free(text);
    return ok;
}

/*
 * mantissa * 10^power10, for a mantissa of up to 19 digits (D. Lemire, after M. Eisel).
 * The mantissa is multiplied by the 128 leading bits of the power of ten. The upper 128
 * bits of the product are off by less than one in their last bit. That is enough to round
 * to 53 bits, except where the bits below these are exactly a half: the true value may
 * then lie on either side. False in that case, and for results that are not normal
 * doubles.
 */
static bool
parse_wide(uint64_t mantissa, ptrdiff_t power10, double *value)
{
    struct pow10 power;
    wide high, rest, half;
    int exponent = (int)power10, shift, drop, binary;
    uint64_t bits;

    if (mantissa == 0 || power10 < POW10_MIN || power10 > POW10_MAX)
        return false;
    power = pow10_bits(exponent);
    shift = __builtin_clzll(mantissa);
    mantissa <<= shift;

    high = (wide)mantissa * power.hi + (uint64_t)(((wide)mantissa * power.lo) >> 64);
    drop = high >> 127 ? 128 - 53 : 127 - 53;
    binary = floor_log2_pow10(exponent) + 63 - shift + (drop == 128 - 53);
    half = (wide)1 << (drop - 1);
    rest = high & (2 * half - 1);
    if (rest == half || binary < -1022 || binary > 1022)
        return false;
    /* The leading one of the 53 bits adds 1 to the exponent field, so that its bias is
     * 1022 here, not 1023. If 53 ones are rounded up to 2^53, the carry adds 1 more. */
    bits = (uint64_t)(high >> drop) + (rest > half) + ((uint64_t)(binary + 1022) << 52);
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* The value of eight digits at p, most significant first; false if not all are digits. A
 * byte is a digit if its high half is 3, also when 6 is added. The products join what is
 * side by side: one digit each, two, four (after D. Lemire and W. Mula). */
static inline bool
eight_digits(const char *p, uint64_t *value)
{
    const uint64_t high = 0xf0f0f0f0f0f0f0f0;
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    if (((v & high) | ((v + 0x0606060606060606) & high) >> 4) != 0x3333333333333333)
        return false;
    v = (v & 0x0f0f0f0f0f0f0f0f) * (10 << 8 | 1) >> 8;
    v = (v & 0x00ff00ff00ff00ff) * (100 << 16 | 1) >> 16;
    *value = (v & 0x0000ffff0000ffff) * ((uint64_t)10000 << 32 | 1) >> 32;
    return true;
}

/* Appends the digits at p to the number, modulo 2^64. Returns where they end. */
static inline const char *
append_digits(const char *p, const char *end, uint64_t *number)
{
    uint64_t eight;
    for (; end - p >= 8 && eight_digits(p, &eight); p += 8)
        *number = *number * 100000000 + eight;
    for (; p < end && is_digit(*p); p++)
        *number = *number * 10 + (uint64_t)(*p - '0');
    return p;
}

bool
rec_parse_num(struct rec_str s, double *value)
{
    const char *p = s.ptr, *end, *first;
    uint64_t mantissa = 0;
    ptrdiff_t ndigits, scale = 0, exponent = 0;
    bool negative = false, negative_exponent = false;

    if (s.len == 0)
        return false; /* ptr may be NULL, to which nothing may be added */
    end = p + s.len;
    if (*p == '-') {
        negative = true;
        p++;
    }
    if (end - p == 3 && memcmp(p, "inf", 3) == 0) {
        *value = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    first = p;
    p = append_digits(p, end, &mantissa);
    ndigits = p - first;
    if (ndigits == 0)
        return false;
    if (p < end && *p == '.') {
        const char *point = ++p;
        p = append_digits(p, end, &mantissa);
        if (p == point)
            return false;
        ndigits += p - point;
        scale = point - p;
    }
    /* Up to 19 significant digits fit into 64 bits. With more, the slow way reads all. */
    for (; ndigits > 19 && (*first == '0' || *first == '.'); first++)
        ndigits -= *first == '0';
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '-' || *p == '+'))
            negative_exponent = *p++ == '-';
        for (first = p; p < end && is_digit(*p); p++)
            if (exponent < 100000) /* more digits would overflow, and change nothing */
                exponent = exponent * 10 + (*p - '0');
        if (p == first)
            return false;
    }
    if (p != end)
        return false;
    exponent = (negative_exponent ? -exponent : exponent) + scale;
    /* Both factors are exact doubles here, so the one operation rounds once (Clinger). */
    if (ndigits <= 19 && mantissa <= (uint64_t)1 << 53 && exponent >= -22 &&
        exponent <= 22) {
        double x = (double)mantissa;
        x = exponent < 0 ? x / exact_pow10[-exponent] : x * exact_pow10[exponent];
        *value = negative ? -x : x;
        return true;
    }
    if (ndigits <= 19 && parse_wide(mantissa, exponent, value)) {
        *value = negative ? -*value : *value;
        return true;
    }
    return parse_slow(s, value);
}

bool
rec_parse_uint(struct rec_str s, uint64_t *value)
{
    uint64_t n = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *value = n;
    return true;
}

/* ---- writing ------------------------------------------------------------- */

/* floor(log10(2^e)), exact in the range used: 1262611 / 2^22 is log10(2). */
static inline int
floor_log10_pow2(int e)
{
    return (e * 1262611) >> 22;
}

/* g * cp / 2^128, with the lowest bit set if anything was cut off. Comparisons with this
 * value then have the result that the exact product would give. (What is cut off counts
 * from 2 on, because g is rounded up.) */
static inline uint64_t
round_to_odd(struct pow10 g, uint64_t cp)
{
    uint64_t x1 = (uint64_t)(((wide)g.lo * cp) >> 64);
    wide y = (wide)g.hi * cp + x1;
    return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

/*
 * The shortest decimal d * 10^e that reads back as the positive double with these bits;
 * of several with as many digits, the one closest to it.
 *
 * The double is c * 2^q. Every decimal between the midpoints to its two neighbours reads
 * back as it; the midpoints themselves do if c is even, for reading rounds to even. k is
 * chosen so that this interval holds at least one multiple of 10^k, and at most one of
 * 10^(k+1). vbl, vb and vbr are the lower midpoint, the value and the upper midpoint, in
 * units of 10^k / 4. If one of the two multiples of 10^(k+1) around the value lies in the
 * interval, it is the answer. If not, it is the multiple of 10^k in the interval that is
 * closest to the value.
 */
static void
shortest(uint64_t bits, uint64_t *digits, int *exponent)
{
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t c = e ? fraction | (uint64_t)1 << 52 : fraction;
    int q = (e ? e : 1) - 1075;
    bool even = (c & 1) == 0, lower_is_closer = fraction == 0 && e > 1;
    uint64_t cbl, cb, cbr, vbl, vb, vbr, lower, upper, s;
    int k, h;
    struct pow10 g;

    if (q <= 0 && q > -53 && (c & (((uint64_t)1 << -q) - 1)) == 0) {
        *digits = c >> -q; /* an integer below 2^53 is its own shortest decimal */
        *exponent = 0;
        return;
    }
    /* Below a power of two, doubles are twice as dense: its lower midpoint is closer. */
    cbl = 4 * c - 2 + lower_is_closer;
    cb = 4 * c;
    cbr = 4 * c + 2;
    k = lower_is_closer ? (q * 1262611 - 524031) >> 22 : floor_log10_pow2(q);
    h = q + floor_log2_pow10(-k) + 1;
    g = pow10_bits(-k);
    vbl = round_to_odd(g, cbl << h);
    vb = round_to_odd(g, cb << h);
    vbr = round_to_odd(g, cbr << h);
    lower = vbl + !even;
    upper = vbr - !even;
    s = vb / 4;
    if (s >= 10) {
        uint64_t sp = s / 10;
        bool up = lower <= 40 * sp, wp = 40 * sp + 40 <= upper;
        if (up != wp) {
            *digits = sp + wp;
            *exponent = k + 1;
            return;
        }
    }
    {
        bool u = lower <= 4 * s, w = 4 * s + 4 <= upper;
        uint64_t middle = 4 * s + 2;
        bool round_up = u != w ? w : vb > middle || (vb == middle && (s & 1));
        *digits = s + round_up;
        *exponent = k;
    }
}

/* How many decimal digits d has; d > 0. */
static int
count_digits(uint64_t d)
{
    int n = 1;
    for (; d >= 100000; d /= 100000)
        n += 5;
    return n + (d >= 10) + (d >= 100) + (d >= 1000) + (d >= 10000);
}

/* Writes the digits of d so that they end before `end`, two digits a step from a table.
 * Groups of 8 digits are split by divisions that do not depend on each other, which the
 * processor computes in parallel. */
static void
put_digits(char *end, uint64_t d)
{
    static const char pair[] = "00010203040506070809101112131415161718192021222324"
                               "25262728293031323334353637383940414243444546474849"
                               "50515253545556575859606162636465666768697071727374"
                               "75767778798081828384858687888990919293949596979899";
    uint32_t rest;
    for (; d >= 100000000; d /= 100000000) {
        uint32_t low = (uint32_t)(d % 100000000), high = low / 10000;
        low %= 10000;
        end -= 8;
        memcpy(end, pair + (size_t)2 * (high / 100), 2);
        memcpy(end + 2, pair + (size_t)2 * (high % 100), 2);
        memcpy(end + 4, pair + (size_t)2 * (low / 100), 2);
        memcpy(end + 6, pair + (size_t)2 * (low % 100), 2);
    }
    for (rest = (uint32_t)d; rest >= 100; rest /= 100)
        memcpy(end -= 2, pair + (size_t)2 * (rest % 100), 2);
    if (rest >= 10)
        memcpy(end - 2, pair + (size_t)2 * rest, 2);
    else
        end[-1] = (char)('0' + rest);
}

/* An exponent, as in 1e-7. */
static char *
put_exponent(char *p, int exponent)
{
    int n;
    *p++ = 'e';
    if (exponent < 0) {
        *p++ = '-';
        exponent = -exponent;
    }
    n = count_digits((uint64_t)exponent);
    put_digits(p + n, (uint64_t)exponent);
    return p + n;
}

size_t
rec_format_num(char text[REC_NUM_MAX], double value)
{
    char *p = text;
    uint64_t bits, digits;
    int n, exponent, point;

    memcpy(&bits, &value, sizeof bits);
    if (value == 0) { /* -0 is written as 0: no record means the sign */
        memcpy(text, "0", 2);
        return 1;
    }
    if (bits >> 63)
        *p++ = '-';
    if (!isfinite(value)) {
        memcpy(p, isnan(value) ? "nan" : "inf", 4);
        return (size_t)(p - text) + 3;
    }
    shortest(bits & ~((uint64_t)1 << 63), &digits, &exponent);
    /* Remove trailing zeros, then choose among 12300, 12.3, 0.0123 and 1.23e-7. */
    for (; digits % 100000000 == 0; digits /= 100000000)
        exponent += 8;
    for (; digits % 10 == 0; digits /= 10)
        exponent++;
    n = count_digits(digits);
    point = n + exponent; /* digits before the decimal point */
    if (point >= n && point <= 17) {
        put_digits(p + n, digits);
        memset(p + n, '0', (size_t)(point - n));
        p += point;
    } else if (point > 0 && point <= 17) {
        put_digits(p + n + 1, digits);
        for (int i = 0; i < point; i++)
            p[i] = p[i + 1];
        p[point] = '.';
        p += n + 1;
    } else if (point <= 0 && point > -4) {
        memcpy(p, "0.000", 5);
        p += 2 - point + n;
        put_digits(p, digits);
    } else {
        put_digits(p + n + 1, digits);
        p[0] = p[1];
        p[1] = '.';
        p = put_exponent(n > 1 ? p + n + 1 : p + 1, point - 1);
    }
    *p = '\0';
    return (size_t)(p - text);
}
