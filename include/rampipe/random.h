/*
 * rampipe/random.h - random generators, and random quantities named on a command line.
 *
 * A generator is made of the seed that the user gave and of a stream, a number for each
 * quantity that is drawn: how often one quantity is drawn does not change another's
 * values. The same seed and stream give the same numbers on every machine: GSL draws
 * integers, and only IEEE operations make real numbers of them.
 *
 * Before main() starts, this room turns off GSL's error handler, which would abort, so
 * that GSL's functions return their errors. A program may set a handler of its own.
 */
#ifndef RAMPIPE_RANDOM_H
#define RAMPIPE_RANDOM_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- generators ---------------------------------------------------------- */

/** A Mersenne Twister (GSL's mt19937). Its maker owns it and calls rng_free(). */
struct rng;

/**
 * Makes a generator. In one stream, different seeds give different sequences; this holds
 * for seed 0, too, which GSL takes for 4357. NULL: out of memory.
 */
struct rng *rng_new(uint32_t seed, uint32_t stream, struct rec_error *err) REC_MUST_CHECK;
/** The number of a stream that the user names. It is the same in every version. */
uint32_t rng_stream(const char *name);
/** `rng` may be NULL. */
void rng_free(struct rng *rng);

/** Draws from [0, 1). */
double rng_uniform(struct rng *rng);
/** Draws an integer from [0, n), 1 <= n < 2^32. */
uint32_t rng_below(struct rng *rng, uint32_t n);
/** Draws from the normal distribution of mean 0. */
double rng_normal(struct rng *rng, double deviation);
double rng_exponential(struct rng *rng, double mean);
double rng_weibull(struct rng *rng, double scale, double shape);

/* ---- functions ----------------------------------------------------------- */

/**
 * As log(), log1p(), exp() and pow() for x >= 0, but the same bits on every machine with
 * IEEE doubles, and within 0.501 units in the last place (rng_pow: 0.6, rng_log1p: 1).
 * The C library's functions differ with its version and the processor, so all that is
 * drawn, fitted and printed uses these instead.
 */
double rng_log(double x);
double rng_log1p(double x);
double rng_exp(double x);
double rng_pow(double x, double y);
/** tanh(x), the same bits on every machine, within 3e-8. The coefficients are those of
 * Eigen (generic_fast_tanh_float, Eigen 3.3). */
static inline double
rng_tanh(double x)
{
    double y = x < -9 ? -9 : x > 9 ? 9 : x, z = y * y;
    double above = -2.76076847742355e-16, below = 1.19825839466702e-06;
    above = above * z + 2.00018790482477e-13;
    above = above * z - 8.60467152213735e-11;
    above = above * z + 5.12229709037114e-08;
    above = above * z + 1.48572235717979e-05;
    above = above * z + 6.37261928875436e-04;
    above = above * z + 4.89352455891786e-03;
    below = below * z + 1.18534705686654e-04;
    below = below * z + 2.26843463243900e-03;
    below = below * z + 4.89352518554385e-03;
    return y * above / below;
}
/** sin(pi x), the same bits on every machine, within 0.8 units in the last place. */
double rng_sinpi(double x);

/* ---- distributions ------------------------------------------------------- */

/**
 * A random quantity >= 0, as a user names it:
 *
 *     fixed:X                      always X
 *     uniform:A:B[:DECIMALS]       in [A, B), rounded to DECIMALS decimals
 *     exponential:MEAN
 *     gamma:MEAN:CV                CV = standard deviation / mean, 1e-6 to 1000
 *     normal:MEAN:SD
 *     lognormal:MEAN:SD            mean and deviation of the variable itself; SD at
 *                                  most 1e6 MEAN
 *     skewnormal:SKEW:MIN:MAX      Azzalini's skew normal of shape SKEW; its central
 *                                  99.8 % is mapped to [MIN, MAX], the rest redrawn
 *     pmf:V=P,V=P,...              V with probability P; the P sum to 1
 *     file:PATH                    the numbers of a file, one a line, again and again
 *
 * A value below 0 is drawn again, so the normal distribution is truncated at 0.
 */
struct rng_dist;

/**
 * Reads a distribution, and makes the generator that it draws from. NULL: *err (REC_USAGE
 * or, for a file, REC_DATA or REC_IO) says what would be right.
 */
struct rng_dist *rng_dist_new(const char *text, uint32_t seed, uint32_t stream,
                              struct rec_error *err) REC_MUST_CHECK;
/** The next value, >= 0. */
double rng_dist_draw(struct rng_dist *dist);
/** `dist` may be NULL. */
void rng_dist_free(struct rng_dist *dist);

/* ---- arrivals ------------------------------------------------------------ */

/**
 * The times at which jobs or queries arrive: the first at 0 (as published), each other
 * one spacing after the one before it.
 *
 * If the rate changes in time, let L(t) be its integral from 0 to t. Then arrival i comes
 * when L reaches the sum of the first i spacings, whose mean is 1. This change of time
 * (Cinlar 1975) is exact for any spacings; exponential spacings give the Poisson process
 * of that rate. The first arrival comes when the rate is first above 0. Rates by
 * `change`:
 *
 *     NULL                                `rate` for ever
 *     "on-off"     ON:OFF[:RATE_OFF]      `rate` and RATE_OFF (0) in turn, on at 0, for
 *                                         exponential times of means ON and OFF, seconds
 *                                         (a Markov-modulated Poisson process)
 *     "sinusoid"   AMPLITUDE:PERIOD       rate (1 + AMPLITUDE sin(2 pi t / PERIOD)),
 *                                         AMPLITUDE in [0, 1]
 *     "piecewise"  TIME:RATE,TIME:RATE..  rate times RATE from TIME on, until the next;
 *                                         the first TIME is 0, the last RATE stays
 */
struct rng_arrivals;

/** The string `file` must outlive the arrivals; others need not outlive
 * rng_arrivals_new(). */
struct rng_arrivals_options {
    /* Spacings come from `file`, if it is given, else from the distribution `spacing`
     * (struct rng_dist; in units of 1/rate), else from a gamma distribution of mean 1. */
    const char *spacing; /* or NULL */
    /* Of the gamma distribution, standard deviation / mean: 1 makes it exponential, 0
     * fixed; else 1e-6 to 1000. */
    double cv;
    const char *file; /* or NULL: spacings, one a line, plain or gzip; read bit by bit */
    double speed_up;  /* spacings of `file` are divided by it; 0 stands for 1 */
    /* Sums of spacings are divided by it to give seconds: arrivals/s, if spacings have
     * mean 1. */
    double rate;
    const char *change;      /* how the rate changes, a name of the list above; or NULL */
    const char *change_text; /* its numbers, as in the list */
    uint32_t seed;
};

/** NULL: *err says what would be right: REC_USAGE, or REC_IO if there is no such file. */
struct rng_arrivals *rng_arrivals_new(const struct rng_arrivals_options *options,
                                      struct rec_error *err) REC_MUST_CHECK;
/**
 * The next arrival, in seconds, never before the last one. 1: *time is set; 0: no more
 * arrive, as the file ends, the rate stays 0 or the time exceeds the range of a double;
 * -1: *err, the file is wrong. Memory does not grow.
 */
int rng_arrivals_next(struct rng_arrivals *arrivals, double *time,
                      struct rec_error *err) REC_MUST_CHECK;
/** Estimates how many will arrive before the time `until` (seconds), not counting the
 * first. It does not look at `file`. */
bool rng_arrivals_estimate(const struct rng_arrivals_options *options, double until,
                           double *arrivals, struct rec_error *err) REC_MUST_CHECK;
/** Frees all that rng_arrivals_new() made; `arrivals` may be NULL. */
void rng_arrivals_free(struct rng_arrivals *arrivals);

REC_END_DECLS

#endif
