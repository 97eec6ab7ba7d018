/*
 * rampipe/distribution.h - random quantities named on a command line.
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
#ifndef RAMPIPE_DISTRIBUTION_H
#define RAMPIPE_DISTRIBUTION_H

#include "rampipe/record.h"

struct trace_dist;

/**
 * Reads a distribution. `stream` makes generators of one seed independent, so that what
 * one quantity draws does not depend on another's. NULL: *err (REC_USAGE or, for a file,
 * REC_DATA or REC_IO) says what would be right.
 */
struct trace_dist *trace_dist_new(const char *text, uint32_t seed, uint32_t stream,
                                  struct rec_error *err) REC_MUST_CHECK;
/** The next value, >= 0. */
double trace_dist_draw(struct trace_dist *dist);
/** An integer in [0, n), from the same generator. */
uint32_t trace_dist_index(struct trace_dist *dist, uint32_t n);
void trace_dist_free(struct trace_dist *dist);

#endif
