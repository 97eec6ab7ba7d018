/*
 * rampipe/random.h - random quantities named on a command line.
 *
 *     fixed:X                      always X
 *     uniform:A:B[:DECIMALS]       in [A, B), rounded to so many decimals
 *     exponential:MEAN
 *     gamma:MEAN:CV                CV = standard deviation / mean
 *     normal:MEAN:SD
 *     lognormal:MEAN:SD            mean and deviation of the variable itself
 *     skewnormal:SKEW:MIN:MAX      Azzalini's skew normal of shape SKEW, over [MIN, MAX]:
 *                                  its central 99.8 % is mapped there, the rest redrawn
 *     pmf:V=P,V=P,...              V with probability P; the P sum to 1
 *     file:PATH                    the numbers of a file, one a line, again and again
 *
 * Values below 0 are drawn again, so normal and skewnormal are truncated there.
 * Generators are GSL's (Mersenne Twister); the same seed gives the same values on every
 * machine.
 */
#ifndef RAMPIPE_RANDOM_H
#define RAMPIPE_RANDOM_H

#include "rampipe/record.h"

struct rng_dist;

/**
 * Reads a distribution. `stream` makes generators of one seed independent, so that what
 * one quantity draws does not depend on another's. NULL: *err (REC_USAGE or, for a file,
 * REC_DATA or REC_IO) says what would be right.
 */
struct rng_dist *rng_dist_new(const char *text, uint32_t seed, uint32_t stream,
                              struct rec_error *err) REC_MUST_CHECK;
/** The next value, >= 0. */
double rng_dist_draw(struct rng_dist *dist);
/** An integer in [0, n), from the same generator. */
uint32_t rng_dist_index(struct rng_dist *dist, uint32_t n);
void rng_dist_free(struct rng_dist *dist);

#endif
