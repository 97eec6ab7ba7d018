/* Quantiles of the skew normal distribution (Azzalini 1985): the root, by Brent's method,
 * of its distribution function, which is integrated numerically. */
#include "private.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_roots.h>
#include <math.h>

enum { MAX_INTERVALS = 200 }; /* of the adaptive integration */

struct skew {
    double shape, p;
    gsl_integration_workspace *workspace;
    double z; /* the argument of T, while the integrand is called */
};

/* Owen's function T(z, a) is 1/(2 pi) times the integral of exp(-z^2 (1 + x^2) / 2) / (1
 * + x^2) over x from 0 to a. With x = tan(angle), 1 + x^2 = 1 / cos^2(angle) and the
 * limits are 0 and atan(a), so the interval is short for every a. */
static double
integrand(double angle, void *context)
{
    const struct skew *s = context;
    double scaled = s->z / cos(angle);
    return exp(-scaled * scaled / 2);
}

/* P(X <= z) - p, where P(X <= z) = Phi(z) - 2 T(z, shape). */
static double
excess(double z, void *context)
{
    struct skew *s = context;
    gsl_function f = {integrand, s};
    double t = 0, error;
    s->z = z;
    gsl_integration_qag(&f, 0, atan(s->shape), 1e-12, 0, MAX_INTERVALS, GSL_INTEG_GAUSS61,
                        s->workspace, &t, &error);
    return gsl_cdf_ugaussian_P(z) - t / M_PI - s->p;
}

bool
rng_skew_quantile(double p, double shape, double *quantile, struct rec_error *err)
{
    struct skew skew = {shape, p, gsl_integration_workspace_alloc(MAX_INTERVALS), 0};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    gsl_function f = {excess, &skew};
    bool ok = skew.workspace && solver;

    if (ok) {
        gsl_root_fsolver_set(solver, &f, -10, 10);
        while (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                      gsl_root_fsolver_x_upper(solver), 1e-12,
                                      0) == GSL_CONTINUE &&
               gsl_root_fsolver_iterate(solver) == GSL_SUCCESS)
            ;
        /* The integrand uses exp() and cos() of the C library, whose last digits differ
         * among machines; nine decimals do not. */
        *quantile = rint(gsl_root_fsolver_root(solver) * 1e9) / 1e9;
    }
    if (skew.workspace)
        gsl_integration_workspace_free(skew.workspace);
    if (solver)
        gsl_root_fsolver_free(solver);
    return ok || rec_fail_memory(err);
}
