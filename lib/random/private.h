/* What the files of lib/random share with each other and with nobody else. */
#ifndef RAMPIPE_RANDOM_PRIVATE_H
#define RAMPIPE_RANDOM_PRIVATE_H

#include "rampipe/random.h"

#include <gsl/gsl_rng.h>

struct rng {
    gsl_rng *gsl;
};

/* A normal variable of mean 0, as rng_normal() draws, but by Box and Muller's method.
 * Values of distributions keep this method: another would change what a seed has always
 * given. */
double rng_gaussian(struct rng *rng, double deviation);
/* `mean` and `deviation` are those of the variable's logarithm. */
double rng_lognormal(struct rng *rng, double mean, double deviation);
double rng_gamma(struct rng *rng, double shape, double scale);

/* A rate (1/s) that may change in time, as the comment of struct rng_arrivals lists.
 * NULL: *err. */
struct rng_rate;
struct rng_rate *rng_rate_new(double rate, const char *change, const char *text,
                              uint32_t seed, uint32_t stream,
                              struct rec_error *err) REC_MUST_CHECK;
/* The time (seconds) when the integral of the rate has grown by `amount` since the time
 * that the last call returned (0 at first). INFINITY: it never grows by that much. */
double rng_rate_advance(struct rng_rate *rate, double amount);
/* The integral from 0 to the time `until`; of a random rate, its expected value. */
double rng_rate_integral(const struct rng_rate *rate, double until);
/* `rate` may be NULL. */
void rng_rate_free(struct rng_rate *rate);

/* The p-quantile of Azzalini's standard skew normal; *err: out of memory. */
bool rng_skew_quantile(double p, double shape, double *quantile,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
