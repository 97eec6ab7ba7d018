/*
 * rampipe/random.h - random generators, and random quantities named on a command line.
 *
 * GSL is known here and nowhere else. One way to make a generator: from the seed that a
 * user gave and the stream of the quantity it draws, so that what one quantity draws does
 * not depend on another's. The same seed and stream give the same numbers on every
 * machine: GSL gives integers, and what is made of them is made of IEEE operations.
 *
 * A program that draws has GSL's error handler turned off as it starts, so that nothing
 * aborts; it may set one of its own.
 */
#ifndef RAMPIPE_RANDOM_H
#define RAMPIPE_RANDOM_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- generators ---------------------------------------------------------- */

/** A Mersenne Twister (GSL's mt19937). Owned by whoever made it; rng_free(). */
struct rng;

/**
 * A generator. For a given stream no two seeds start the same sequence, 0 included (which
 * GSL takes for 4357). NULL: out of memory.
 */
struct rng *rng_new(uint32_t seed, uint32_t stream, struct rec_error *err) REC_MUST_CHECK;
/** A stream by its name, which a user may give; the same for ever. */
uint32_t rng_stream(const char *name);
/** `rng` may be NULL. */
void rng_free(struct rng *rng);

/** In [0, 1). */
double rng_uniform(struct rng *rng);
/** An integer in [0, n), 1 <= n < 2^32. */
uint32_t rng_below(struct rng *rng, uint32_t n);
/** Of mean 0. */
double rng_normal(struct rng *rng, double deviation);
double rng_exponential(struct rng *rng, double mean);
double rng_weibull(struct rng *rng, double scale, double shape);

/* ---- functions ----------------------------------------------------------- */

/**
 * As log(), log1p(), exp() and pow() for x >= 0, but the same bits on every machine with
 * IEEE doubles, and within 0.501 units in the last place (rng_pow: 0.6, rng_log1p: 1).
 * The C library's differ with its version and the processor: what is drawn, fitted and
 * printed goes through these.
 */
double rng_log(double x);
double rng_log1p(double x);
double rng_exp(double x);
double rng_pow(double x, double y);
/** sin(pi x), likewise, within 0.8 units in the last place. */
double rng_sinpi(double x);

/* ---- distributions ------------------------------------------------------- */

/**
 * A random quantity >= 0, as a user names it:
 *
 *     fixed:X                      always X
 *     uniform:A:B[:DECIMALS]       in [A, B), rounded to so many decimals
 *     exponential:MEAN
 *     gamma:MEAN:CV                CV = standard deviation / mean, 1e-6 to 1000
 *     normal:MEAN:SD
 *     lognormal:MEAN:SD            mean and deviation of the variable itself; SD at
 *                                  most 1e6 MEAN
 *     skewnormal:SKEW:MIN:MAX      Azzalini's skew normal of shape SKEW, over [MIN, MAX]:
 *                                  its central 99.8 % is mapped there, the rest redrawn
 *     pmf:V=P,V=P,...              V with probability P; the P sum to 1
 *     file:PATH                    the numbers of a file, one a line, again and again
 *
 * Values below 0 are drawn again, so normal and skewnormal are truncated there.
 */
struct rng_dist;

/**
 * Reads a distribution; it draws from a generator of its own. NULL: *err (REC_USAGE or,
 * for a file, REC_DATA or REC_IO) says what would be right.
 */
struct rng_dist *rng_dist_new(const char *text, uint32_t seed, uint32_t stream,
                              struct rec_error *err) REC_MUST_CHECK;
/** The next value, >= 0. */
double rng_dist_draw(struct rng_dist *dist);
/** `dist` may be NULL. */
void rng_dist_free(struct rng_dist *dist);

/* ---- arrivals ------------------------------------------------------------ */

/**
 * When jobs or queries arrive: the first at 0 (as published), each other a spacing after
 * the one before it.
 *
 * With a rate that changes in time, L(t) its integral, arrival i is where L reaches the
 * sum of the first i spacings, whose mean is 1: a change of time (Cinlar 1975), exact for
 * any spacings; with exponential ones it is the Poisson process of that rate. The first
 * arrives when the rate is first above 0. Rates by `change`:
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

/** Strings need not outlive rng_arrivals_new(), but for `file`. */
struct rng_arrivals_options {
    const char
        *spacing;     /* a distribution (struct rng_dist), in units of 1/rate; or NULL: */
    double cv;        /* a gamma's of mean 1, its standard deviation / mean: 1 makes it
                            exponential, 0 fixed; else 1e-6 to 1000 */
    const char *file; /* or spacings from there, one a line, plain or gzip, streamed */
    double speed_up;  /* they are divided by that; 0: by 1 */
    double rate; /* arrivals/s, or units of spacings in a second: sums of spacings are
                            divided by it */
    const char *change; /* NULL, or how the rate changes */
    const char *change_text;
    uint32_t seed;
};

/** NULL: *err says what would be right: REC_USAGE, or REC_IO if there is no such file. */
struct rng_arrivals *rng_arrivals_new(const struct rng_arrivals_options *options,
                                      struct rec_error *err) REC_MUST_CHECK;
/**
 * The next arrival, in seconds, never before the last one. 1: *time; 0: there are no
 * more, for the file ends, the rate stays 0, or time is beyond what a number holds; -1:
 * *err, the file is wrong. Memory does not grow.
 */
int rng_arrivals_next(struct rng_arrivals *arrivals, double *time,
                      struct rec_error *err) REC_MUST_CHECK;
/** About how many there will be before a time, but for the first; not for a file. */
bool rng_arrivals_estimate(const struct rng_arrivals_options *options, double until,
                           double *arrivals, struct rec_error *err) REC_MUST_CHECK;
/** `arrivals` may be NULL. */
void rng_arrivals_free(struct rng_arrivals *arrivals);

REC_END_DECLS

#endif
