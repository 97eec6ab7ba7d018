/* Generators: GSL's Mersenne Twister, seeded in one place, and what is drawn with it. The
 * methods are GSL's, draw for draw, with functions that are the same everywhere. */
#include "private.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

/* Draws that the generator of state 0 is ahead of that of state 4357. */
enum { AHEAD = 1 << 20 };

/* GSL's own handler of errors aborts; without one its functions return what went
 * wrong. */
__attribute__((constructor)) static void
let_errors_return(void)
{
    gsl_set_error_handler_off();
}

struct rng *
rng_new(uint32_t seed, uint32_t stream, struct rec_error *err)
{
    struct rng *rng = calloc(1, sizeof *rng);
    /* One to one for each stream, for the factors are odd. */
    uint32_t state = stream == 0 ? seed : seed * 0x9e3779b1u ^ stream * 0x85ebca6bu;

    if (!rng || !(rng->gsl = gsl_rng_alloc(gsl_rng_mt19937))) {
        free(rng);
        rec_fail_memory(err);
        return NULL;
    }
    gsl_rng_set(rng->gsl, state);
    for (int i = 0; state == 0 && i < AHEAD; i++)
        gsl_rng_get(rng->gsl); /* GSL started at 4357: another stretch of its sequence */
    return rng;
}

/* Fowler, Noll and Vo's hash, 1a: what a name gives may never change. */
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

/* Marsaglia and Tsang's ziggurat is made of products, but for its tail: R - ln(u)/R, u a
 * multiple of 2^-32, which is found again from what the C library made of it. */
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

/* Box and Muller's method, as Marsaglia has it: two normal variables, but for a
 * factor. */
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

/* Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
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
