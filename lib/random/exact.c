/* log, exp, pow and sinpi that give the same bits on every machine. They consist of IEEE
 * operations in a fixed order, and call only functions of libm whose results are exact
 * (frexp, ldexp, rint, fmod). Other functions of libm differ with its version and with
 * the instructions of the processor.
 *
 * The leading terms of each series are summed in pairs of doubles ("double-double"), so
 * that the error of a result is below 0.501 units in the last place: it is nearly always
 * the correctly rounded one. Arguments are reduced by tables, as in Tang, "Table-driven
 * implementation of the logarithm function" (1990).
 */
#include "rampipe/random.h"

#include <math.h>

/* A number hi + lo, where |lo| is at most about half a unit in the last place of hi. */
struct sum {
    double hi, lo;
};

/* ---- sums and products without error (Dekker 1971) ----------------------- */

/* a + b without error, in three operations. Precondition: |a| >= |b|, or a is 0. */
static struct sum
add_smaller(double a, double b)
{
    double hi = a + b;
    return (struct sum){hi, b - (hi - a)};
}

/* a * b without error: Veltkamp's constant splits each factor into halves of at most 26
 * bits, whose products are exact. The result overflows if a factor is near the largest
 * double. */
static struct sum
multiply(double a, double b)
{
    const double split = 0x1p27 + 1;
    double a1 = split * a - (split * a - a), a2 = a - a1;
    double b1 = split * b - (split * b - b), b2 = b - b1;
    double hi = a * b;
    return (struct sum){hi, ((a1 * b1 - hi + a1 * b2) + a2 * b1) + a2 * b2};
}

/* inverse[k] = 1/k: a product costs less than a division. */
static const double inverse[] = {0,        1,        1.0 / 2,  1.0 / 3,  1.0 / 4,
                                 1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,
                                 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14,
                                 1.0 / 15, 1.0 / 16, 1.0 / 17};

/* ---- the logarithm ------------------------------------------------------- */

/* hi has 40 bits, so that its product with an exponent (11 bits) is exact. */
static const struct sum ln2 = {0x1.62e42fefa2p-1, 0x1.9ef35793c7673p-41};

/* log_of[k - LOG_FIRST] = ln(k/32), for k = 22, ..., 45 */
enum { LOG_FIRST = 22 };
static const struct sum log_of[] = {{-0x1.7fafa3bd8151cp-2, 0x1.219024acd3b77p-58},
                                    {-0x1.522ae0738a3d8p-2, 0x1.8f7e9b38a6979p-57},
                                    {-0x1.269621134db92p-2, -0x1.e0efadd9db02bp-56},
                                    {-0x1.f991c6cb3b379p-3, -0x1.f665066f980a2p-57},
                                    {-0x1.a93ed3c8ad9e3p-3, -0x1.bcafa9de97203p-57},
                                    {-0x1.5bf406b543db2p-3, 0x1.1f5b44c0df7e7p-61},
                                    {-0x1.1178e8227e47cp-3, 0x1.0e63a5f01c691p-58},
                                    {-0x1.9335e5d594989p-4, 0x1.478a85704ccb7p-58},
                                    {-0x1.08598b59e3a07p-4, 0x1.dd7009902bf32p-58},
                                    {-0x1.0415d89e74444p-5, -0x1.c05cf1d753622p-59},
                                    {0, 0},
                                    {0x1.f829b0e7833p-6, 0x1.33e3f04f1ef23p-60},
                                    {0x1.f0a30c01162a6p-5, 0x1.85f325c5bbacdp-59},
                                    {0x1.6f0d28ae56b4cp-4, -0x1.906d99184b992p-58},
                                    {0x1.e27076e2af2e6p-4, -0x1.61578001e0162p-60},
                                    {0x1.29552f81ff523p-3, 0x1.301771c407dbfp-57},
                                    {0x1.5ff3070a793d4p-3, -0x1.bc60efafc6f6ep-58},
                                    {0x1.9525a9cf456b4p-3, 0x1.d904c1d4e2e26p-57},
                                    {0x1.c8ff7c79a9a22p-3, -0x1.4f689f8434012p-57},
                                    {0x1.fb9186d5e3e2bp-3, -0x1.caaae64f21acbp-57},
                                    {0x1.1675cababa60ep-2, 0x1.ce63eab883717p-61},
                                    {0x1.2e8e2bae11d31p-2, -0x1.8f4cdb95ebdf9p-56},
                                    {0x1.4618bc21c5ec2p-2, 0x1.f42decdeccf1dp-56},
                                    {0x1.5d1bdbf5809cap-2, 0x1.4236383dc7fe1p-56}};

/* ln(1 + r + error), |r| <= 1/44, where `error` is what was lost when r was rounded. The
 * terms r - r^2/2 are summed in two doubles; r^3/3 - r^4/4 + ... is small enough for
 * one. */
static struct sum
log_near_1(double r, double error)
{
    struct sum square = multiply(r, r), s = add_smaller(r, -square.hi / 2);
    double tail = inverse[13];
    for (int k = 12; k >= 3; k--)
        tail = inverse[k] - r * tail;
    s.lo += r * square.hi * tail + (error * (1 - r) - square.lo / 2);
    return add_smaller(s.hi, s.lo);
}

/* x = m 2^e with m in [0.703125, 1.40625), and m = c (1 + r) with c = k/32 next to m:
 *
 *     ln x = e ln 2 + ln c + ln(1 + r)
 *
 * m is centred on 1, so that e is 0 for x near 1 and no digits cancel. add_smaller() may
 * be used, since each term is 0 or larger than those that follow it: |e ln 2| >= 0.69,
 * |ln c| is 0.03 to 0.38, |ln(1 + r)| < 0.023. */
static struct sum
logarithm(double x)
{
    int e, k;
    double m = frexp(x, &e), c, r;
    struct sum product, near, s, t;

    if (m < 0.703125) {
        m *= 2;
        e--;
    }
    k = (int)rint(m * 32);
    c = k / 32.0;
    r = (m - c) / c;
    product = multiply(r, c);
    near = log_near_1(r, (m - c - product.hi - product.lo) / c);
    s = log_of[k - LOG_FIRST];
    t = add_smaller(e * ln2.hi, s.hi);
    s.lo += e * ln2.lo + t.lo + near.lo;
    t = add_smaller(t.hi, near.hi);
    return add_smaller(t.hi, t.lo + s.lo);
}

double
rng_log(double x)
{
    if (x == 0)
        return -(double)INFINITY;
    return x > 0 && isfinite(x) ? logarithm(x).hi : x < 0 ? (double)NAN : x;
}

/* y is 1 + x rounded, and 1 + x = y + error: ln(1 + x) = ln y + ln(1 + error/y). */
double
rng_log1p(double x)
{
    double y = 1 + x, error = x > 1 ? 1 - (y - x) : x - (y - 1);
    struct sum log;
    if (!(y > 0) || !isfinite(y))
        return rng_log(y);
    log = logarithm(y);
    error /= y;
    return log.hi + (log.lo + (error - error * error / 2));
}

/* ---- powers of e --------------------------------------------------------- */

/* (ln 2)/8. hi has 36 bits, so that its product with k in power() (14 bits) is exact. */
static const struct sum eighth = {0x1.62e42fefap-4, 0x1.cf79abc9e3b3ap-43};

/* 2^(j/8) */
static const struct sum power_of_2[] = {{1, 0},
                                        {0x1.172b83c7d517bp+0, -0x1.19041b9d78a76p-55},
                                        {0x1.306fe0a31b715p+0, 0x1.6f46ad23182e4p-55},
                                        {0x1.4bfdad5362a27p+0, 0x1.d4397afec42e2p-56},
                                        {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54},
                                        {0x1.8ace5422aa0dbp+0, 0x1.6e9f156864b27p-54},
                                        {0x1.ae89f995ad3adp+0, 0x1.7a1cd345dcc81p-54},
                                        {0x1.d5818dcfba487p+0, 0x1.2ed02d75b3707p-55}};

/* e^(r + error), |r| < 0.044. As above: 1 + r + r^2/2 in two doubles, the rest in one. */
static struct sum
power_near_0(double r, double error)
{
    struct sum square = multiply(r, r), s = add_smaller(1, r), t;
    double tail = 1;
    for (int k = 12; k >= 4; k--)
        tail = 1 + r * tail * inverse[k];
    t = add_smaller(s.hi, square.hi / 2);
    t.lo += s.lo + (error * (1 + r) + square.lo / 2 + r * square.hi * tail / 6);
    return add_smaller(t.hi, t.lo);
}

/* e^x, with x = k (ln 2)/8 + r and k = 8 i + j: 2^i 2^(j/8) e^r. The bounds are those
 * beyond which every result is infinite, or 0; they keep k small. */
static double
power(struct sum x)
{
    struct sum r, s, t;
    int k, j;

    if (x.hi > 710)
        return (double)INFINITY;
    if (x.hi < -746)
        return 0;
    k = (int)rint(x.hi * 0x1.71547652b82fep+3); /* 8 / ln 2 */
    j = k & 7;
    r = add_smaller(x.hi - k * eighth.hi, x.lo - k * eighth.lo); /* hi's is exact */
    s = power_near_0(r.hi, r.lo);
    t = multiply(power_of_2[j].hi, s.hi);
    t.lo += power_of_2[j].hi * s.lo + power_of_2[j].lo * s.hi;
    return ldexp(t.hi + t.lo, (k - j) / 8);
}

double
rng_exp(double x)
{
    return isnan(x) ? x : power((struct sum){x, 0});
}

/* e^(y ln x). The error of ln x is multiplied by y, so both its doubles are needed. */
double
rng_pow(double x, double y)
{
    struct sum log, product;
    if (y == 0 || x == 1)
        return 1;
    if (x == 0 || !isfinite(x))
        return y > 0 ? x : 1 / x;
    if (!(x > 0) || isnan(y))
        return NAN;
    log = logarithm(x);
    if (fabs(y * log.hi) > 800) /* 0 or infinity; multiply() might overflow */
        return power((struct sum){y * log.hi, 0});
    product = multiply(y, log.hi);
    product.lo += y * log.lo;
    return power(product);
}

/* ---- the sine ------------------------------------------------------------ */

static const struct sum pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

/* The tail of the series of sine (k even) and cosine (k odd), without its first factors:
 * 1 - y/(k (k + 1)) (1 - y/((k + 2) (k + 3)) (1 - ...)), where y is the square of an
 * angle of at most pi/4. */
static double
series(double y, int k)
{
    double sum = 1;
    for (int last = k % 2 == 0 ? 16 : 15; last >= k; last -= 2)
        sum = 1 - y * sum * (inverse[last] * inverse[last + 1]);
    return sum;
}

/* sin y = y - y^3/6 + ..., cos y = 1 - y^2/2 + y^4/24 - ... */
static double
sine_near_0(struct sum y)
{
    double square = y.hi * y.hi;
    return y.hi + (y.lo * (1 - square / 2) - y.hi * square / 6 * series(square, 4));
}

static double
cosine_near_0(struct sum y)
{
    struct sum square = multiply(y.hi, y.hi), s = add_smaller(1, -square.hi / 2);
    double tail = square.hi * square.hi / 24 * series(square.hi, 5);
    return s.hi + (s.lo - square.lo / 2 - y.hi * y.lo + tail);
}

/* x = n/2 + r modulo 2, |r| <= 1/4, without error: whole turns and quarters are taken
 * away before anything is multiplied by pi, so large x lose no digits. */
double
rng_sinpi(double x)
{
    double whole = fmod(x, 2), n = rint(2 * whole), r = whole - n / 2, y;
    struct sum angle;

    if (isnan(whole))
        return whole;
    angle = multiply(r, pi.hi);
    angle.lo += r * pi.lo;
    y = (int)n & 1 ? cosine_near_0(angle) : sine_near_0(angle);
    return (int)n & 2 ? -y : y;
}
