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

/* The p-quantile of Azzalini's standard skew normal; *err: out of memory. */
bool rng_skew_quantile(double p, double shape, double *quantile,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
