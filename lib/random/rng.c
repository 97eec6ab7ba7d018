/* Generators: GSL's Mersenne Twister, seeded in one place. */
#include "private.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>

/* Draws that the generator of state 0 is ahead of that of state 4357. */
enum { AHEAD = 1 << 20 };

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

double
rng_normal(struct rng *rng, double deviation)
{
    return gsl_ran_gaussian_ziggurat(rng->gsl, deviation);
}

double
rng_exponential(struct rng *rng, double mean)
{
    return gsl_ran_exponential(rng->gsl, mean);
}

double
rng_weibull(struct rng *rng, double scale, double shape)
{
    return gsl_ran_weibull(rng->gsl, scale, shape);
}
