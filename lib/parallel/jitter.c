/*
 * Jitter: ranks that do the same do not take the same time, and a step ends with the
 * slowest. The times of ranks are independent and normal around the step's, with one
 * relative standard deviation, a property of a site; ranks wait for each other once in a
 * step. Then a step takes as much longer as the largest of N normal numbers says.
 */
#include "private.h"

#include <math.h>

/* The probability that a normal number exceeds x. */
static double
above(double x)
{
    return erfc(x / sqrt(2)) / 2;
}

/* The same of the largest of n. */
static double
largest_above(double n, double x)
{
    return -expm1(n * log1p(-above(x)));
}

double
parallel_slowest(double n)
{
    /* The mean is the integral of P(> x) over x > 0 less that of P(< x) over x < 0.
     * Simpson's rule; what lies beyond 12 is below 1e-32 for each of n. */
    enum { STEPS = 3072 };
    const double from = -12, step = 24.0 / STEPS;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        double x = from + i * step, p = largest_above(n, x);
        double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        /* the integrand jumps by 1 at 0, where two of Simpson's pieces meet */
        sum += weight * (x < 0 ? p - 1 : x > 0 ? p : p - 0.5);
    }
    return sum * step / 3;
}

double
parallel_slowest_quantile(double n, double share)
{
    double p = -expm1(log(share) / n), low = -40, high = 40;
    for (int i = 0; i < 80; i++) { /* 2^-80 of the interval is below its rounding */
        double half = (low + high) / 2;
        if (above(half) > p)
            low = half;
        else
            high = half;
    }
    return (low + high) / 2;
}

struct parallel_wait
parallel_wait(double jitter, double ranks, double seconds)
{
    double deviation = jitter * seconds;
    return (struct parallel_wait){
        .mean = deviation * parallel_slowest(ranks),
        .p10 = seconds + deviation * parallel_slowest_quantile(ranks, 0.1),
        .p90 = seconds + deviation * parallel_slowest_quantile(ranks, 0.9),
    };
}
