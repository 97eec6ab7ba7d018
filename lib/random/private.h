/* What the files of lib/random share with each other and with nobody else. */
#ifndef RAMPIPE_RANDOM_PRIVATE_H
#define RAMPIPE_RANDOM_PRIVATE_H

#include "rampipe/random.h"

#include <gsl/gsl_rng.h>

struct rng {
    gsl_rng *gsl;
};

#endif
