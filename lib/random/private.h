/* What the files of lib/random share with each other and with nobody else. */
#ifndef RAMPIPE_RANDOM_PRIVATE_H
#define RAMPIPE_RANDOM_PRIVATE_H

#include "rampipe/random.h"

#include <gsl/gsl_rng.h>

struct rng {
    gsl_rng *gsl;
};

/* Of mean 0, as rng_normal() by another method, whose draws distributions have had. */
double rng_gaussian(struct rng *rng, double deviation);
/* Mean and deviation are of the logarithm. */
double rng_lognormal(struct rng *rng, double mean, double deviation);
double rng_gamma(struct rng *rng, double shape, double scale);

/* A rate in time; rng_arrivals says what there is. NULL: *err. */
struct rng_rate;
struct rng_rate *rng_rate_new(double rate, const char *change, const char *text,
                              uint32_t seed, uint32_t stream,
                              struct rec_error *err) REC_MUST_CHECK;
/* When the integral of the rate will have grown by so much since the last time that was
 * returned, at first 0; INFINITY: never. */
double rng_rate_advance(struct rng_rate *rate, double amount);
/* The integral from 0 to a time, or what is expected of it. */
double rng_rate_integral(const struct rng_rate *rate, double until);
/* `rate` may be NULL. */
void rng_rate_free(struct rng_rate *rate);

/* The p-quantile of Azzalini's standard skew normal; *err: out of memory. */
bool rng_skew_quantile(double p, double shape, double *quantile,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
