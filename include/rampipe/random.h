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
 * As log(), log1p(), exp() and pow() for x >= 0, but the same bits on every machine with IEEE
 * doubles, and within 0.501 units in the last place (rng_pow: 0.6, rng_log1p: 1). The C library's
 * differ with its version and the processor: what is drawn, fitted and printed goes
 * through these.
 */
double rng_log(double x);
double rng_log1p(double x);
double rng_exp(double x);
double rng_pow(double x, double y);

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

REC_END_DECLS

#endif
