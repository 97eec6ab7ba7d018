/* Generators, GSL's Mersenne Twister, and the variables that are drawn with them. The
 * methods are those of GSL and take its random integers in the same order; but where GSL
 * calls log() and pow() of the C library, they call those of exact.c, which are the same
 * everywhere. */
#include "private.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

/* GSL takes the seed 0 for 4357. For 0 we skip this many draws of the sequence of 4357,
 * so that no seed gives the same numbers as another. */
enum { SEED_0_SKIPS = 1 << 20 };

/* GSL's own error handler aborts the program. Without a handler, GSL's functions return
 * an error code, or NULL, and the library can report it. */
__attribute__((constructor)) static void
let_errors_return(void)
{
    gsl_set_error_handler_off();
}

struct rng *
rng_new(uint32_t seed, uint32_t stream, struct rec_error *err)
{
    struct rng *rng = calloc(1, sizeof *rng);
    /* Within a stream, different seeds give different states: the product with an odd
     * number modulo 2^32 is one to one, and so is the exclusive or. */
    uint32_t state = stream == 0 ? seed : seed * 0x9e3779b1u ^ stream * 0x85ebca6bu;

    if (!rng || !(rng->gsl = gsl_rng_alloc(gsl_rng_mt19937))) {
        free(rng);
        rec_fail_memory(err);
        return NULL;
    }
    gsl_rng_set(rng->gsl, state);
    for (int i = 0; state == 0 && i < SEED_0_SKIPS; i++)
        gsl_rng_get(rng->gsl);
    return rng;
}

/* The hash function FNV-1a (Fowler, Noll, Vo). It may never change: a name must give the
 * same stream, and so the same numbers, in every version. */
uint32_t
rng_stream(const char *name)
{
    uint32_t hash = 0x811c9dc5u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x01000193u;
    return hash;
}

void
rng_free(struct rng *rng)
{
    if (!rng)
        return;
    gsl_rng_free(rng->gsl);
    free(rng);
}

double
rng_uniform(struct rng *rng)
{
    return gsl_rng_uniform(rng->gsl);
}

uint32_t
rng_below(struct rng *rng, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(rng->gsl, n);
}

/* GSL's ziggurat (Marsaglia and Tsang 2000) makes its values by multiplication, which is
 * the same everywhere, except those of the tail beyond r: |x| = r - log(u) / r, by the C
 * library's log(). There u is a multiple of 2^-32, so rounding exp(r (r - |x|)) to such a
 * multiple gives u back exactly, and the value is computed again with our own
 * logarithm. */
double
rng_normal(struct rng *rng, double deviation)
{
    const double r = 3.44428647676; /* where GSL's tail begins */
    double x = gsl_ran_gaussian_ziggurat(rng->gsl, 1), u;
    if (fabs(x) > r) {
        u = rint(0x1p32 * rng_exp(r * (r - fabs(x)))) / 0x1p32;
        x = copysign(r - rng_log(u) / r, x);
    }
    return deviation * x;
}

/* Box and Muller's method in Marsaglia's polar form: a point drawn from the unit disc.
 * Its coordinates times the factor returned are two independent standard normal
 * variables. */
static double
draw_pair(struct rng *rng, double pair[2])
{
    double square;
    do {
        pair[0] = -1 + 2 * gsl_rng_uniform_pos(rng->gsl);
        pair[1] = -1 + 2 * gsl_rng_uniform_pos(rng->gsl);
        square = pair[0] * pair[0] + pair[1] * pair[1];
    } while (square > 1 || square == 0);
    return sqrt(-2 * rng_log(square) / square);
}

/* Of the pair GSL uses the second for a normal variable, and the first for a lognormal
 * one. */
double
rng_gaussian(struct rng *rng, double deviation)
{
    double pair[2], factor = draw_pair(rng, pair);
    return deviation * pair[1] * factor;
}

double
rng_lognormal(struct rng *rng, double mean, double deviation)
{
    double pair[2], factor = draw_pair(rng, pair);
    return rng_exp(deviation * (pair[0] * factor) + mean);
}

/* By the inverse of the distribution function, as the Weibull variable below. 1 - u is
 * above 0, so the logarithm is finite. */
double
rng_exponential(struct rng *rng, double mean)
{
    return -mean * rng_log(1 - gsl_rng_uniform(rng->gsl));
}

double
rng_weibull(struct rng *rng, double scale, double shape)
{
    return scale * rng_pow(-rng_log(gsl_rng_uniform_pos(rng->gsl)), 1 / shape);
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). It needs
 * a shape of at least 1; a smaller one is drawn as gamma(shape + 1) times u^(1/shape).
 * The first test of the loop is a bound that avoids the logarithms of the second in most
 * draws. */
double
rng_gamma(struct rng *rng, double shape, double scale)
{
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1.0 / 3 / sqrt(d);
    double power = 1, x, v, u;
    if (shape < 1)
        power = rng_pow(gsl_rng_uniform_pos(rng->gsl), 1 / shape);
    do {
        do {
            x = rng_normal(rng, 1);
            v = 1 + c * x;
        } while (v <= 0);
        v = v * v * v;
        u = gsl_rng_uniform_pos(rng->gsl);
    } while (!(u < 1 - 0.0331 * x * x * x * x) &&
             !(rng_log(u) < 0.5 * x * x + d * (1 - v + rng_log(v))));
    return scale * d * v * power;
}
