/*
 * How much an answer is better than the base's, from two estimates: what a value says of
 * both, and the mean of futures that were played after both. Both err, and each counts
 * the more the less it errs (the empirical Bayes estimator of Efron and Morris, "Stein's
 * Estimation Rule and its Competitors", 1973). How far the value errs is learned from all
 * answers so far: the squared difference of the two estimates is, in the mean, the sum of
 * what both err.
 */
#ifndef RAMPIPE_ALLOC_WEIGH_H
#define RAMPIPE_ALLOC_WEIGH_H

#include <stdint.h>

/* Of the answers so far. Starts as all 0. */
struct weighing {
    double errors;    /* the squares by which the value errs, summed */
    double variances; /* of the differences in a future, summed */
    uint64_t n;       /* answers */
};

/* Weighs what a value says of an answer, less what it says of the base's, with what n
 * futures are worth after the answer and after the base's. A single future does not tell
 * how far it errs, and counts alone. */
double weigh(struct weighing *weighing, double says, const double *answer,
             const double *base, uint32_t n);

#endif
