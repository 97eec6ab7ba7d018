/*
 * Distributions. Up to METRICS_EXACT values are kept, and quantiles are exact. Beyond,
 * only counts are kept, in buckets whose edges have the ratio 1 + METRICS_ERROR, so that
 * memory does not grow with the number of values (C. Masson, J. Rim, H. Lee, "DDSketch",
 * VLDB 2019). Count, sum, mean, deviation (Welford's), least and most are exact in both
 * cases.
 */
#include "rampipe/metrics.h"
#include "rampipe/random.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* The width of a bucket on a logarithmic scale: ln(1 + METRICS_ERROR), as a constant so
 * that it is the same on all machines. */
static const double width = 0x1.a363724822b31p-13;

/* The bucket of a value. The C library's log() is fast, but its last digits differ
 * between machines. Where they could decide (close to an edge), rng_log() does, which is
 * the same everywhere. */
static int64_t
bucket_of(double value)
{
    double at = log(value) / width;
    if (fabs(at - rint(at)) < 1e-6)
        at = rng_log(value) / width;
    return (int64_t)floor(at);
}

/* The value that stands for a bucket: its middle. */
static double
value_of(int64_t bucket)
{
    return rng_exp(((double)bucket + 0.5) * width);
}

/* Counts a value in its bucket, and makes the array of buckets longer, at its front or at
 * its end, if the bucket is not in it. */
static bool
count_value(struct metrics_dist *dist, double value, struct rec_error *err)
{
    int64_t index;
    if (value <= 0) {
        dist->zeros++;
        return true;
    }
    index = bucket_of(value);
    if (dist->nbuckets == 0)
        dist->first = index;
    if (index < dist->first) {
        size_t more = (size_t)(dist->first - index);
        /* An eighth more than needed: if values keep falling, the array would otherwise
         * be moved for each of them. */
        if (more < dist->nbuckets)
            more += dist->nbuckets / 8;
        if (!rec_grow(&dist->bucket, &dist->bucket_room, dist->nbuckets + more,
                      sizeof *dist->bucket, err))
            return false;
        memmove(dist->bucket + more, dist->bucket, dist->nbuckets * sizeof *dist->bucket);
        memset(dist->bucket, 0, more * sizeof *dist->bucket);
        dist->nbuckets += more;
        dist->first -= (int64_t)more;
    }
    if ((size_t)(index - dist->first) >= dist->nbuckets) {
        size_t need = (size_t)(index - dist->first) + 1;
        if (!rec_grow(&dist->bucket, &dist->bucket_room, need, sizeof *dist->bucket, err))
            return false;
        memset(dist->bucket + dist->nbuckets, 0,
               (need - dist->nbuckets) * sizeof *dist->bucket);
        dist->nbuckets = need;
    }
    dist->bucket[index - dist->first]++;
    return true;
}

bool
metrics_dist_add(struct metrics_dist *dist, double value, struct rec_error *err)
{
    double before = value - dist->middle;
    dist->n++;
    dist->sum += value;
    dist->mean = dist->sum / (double)dist->n;
    dist->middle += before / (double)dist->n;
    dist->square += before * (value - dist->middle);
    if (dist->n == 1 || value < dist->least)
        dist->least = value;
    if (dist->n == 1 || value > dist->most)
        dist->most = value;
    if (dist->n <= METRICS_EXACT) {
        if (!rec_grow(&dist->value, &dist->room, (size_t)dist->n, sizeof *dist->value,
                      err))
            return false;
        dist->value[dist->n - 1] = value;
        dist->sorted = false;
        return true;
    }
    /* The first value beyond METRICS_EXACT: move all values into buckets. */
    for (size_t i = 0; dist->value && i < METRICS_EXACT; i++)
        if (!count_value(dist, dist->value[i], err))
            return false;
    free(dist->value);
    dist->value = NULL;
    return count_value(dist, value, err);
}

double
metrics_dist_deviation(const struct metrics_dist *dist)
{
    return dist->n < 2 ? (double)NAN : sqrt(dist->square / (double)(dist->n - 1));
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void
sort_values(struct metrics_dist *dist)
{
    if (!dist->sorted)
        qsort(dist->value, (size_t)dist->n, sizeof *dist->value, compare);
    dist->sorted = true;
}

double
metrics_dist_quantile(struct metrics_dist *dist, double p)
{
    double rank, value;
    uint64_t seen = dist->zeros;

    if (dist->n == 0)
        return NAN;
    if (dist->value) {
        sort_values(dist);
        return gsl_stats_quantile_from_sorted_data(dist->value, 1, (size_t)dist->n, p);
    }
    rank = p * (double)(dist->n - 1); /* of the value that is sought, from 0 */
    if (rank < (double)seen)
        return 0;
    for (size_t i = 0; i < dist->nbuckets; i++) {
        seen += dist->bucket[i];
        if (rank < (double)seen) {
            value = value_of(dist->first + (int64_t)i);
            return fmin(fmax(value, dist->least), dist->most);
        }
    }
    return dist->most;
}

/* ---- bins ---------------------------------------------------------------- */

/* Iterates over the values in ascending order: a single value, or all values of a bucket
 * at once. *value is the value, *n how many there are of it, *i the position (0 at the
 * beginning). False: there are no more. */
static bool
next_values(const struct metrics_dist *dist, size_t *i, double *value, uint64_t *n)
{
    if (dist->value) {
        *n = 1;
        if (*i == dist->n)
            return false;
        *value = dist->value[(*i)++];
        return true;
    }
    while (*i < dist->nbuckets && dist->bucket[*i] == 0)
        ++*i;
    if (*i == dist->nbuckets)
        return false;
    *value = fmin(fmax(value_of(dist->first + (int64_t)*i), dist->least), dist->most);
    *n = dist->bucket[(*i)++];
    return true;
}

/* Sets the edges of up to n bins from `least` to `most`, and returns the number of bins.
 * A bin that rounding would leave without width is left out. */
static size_t
set_edges(struct metrics_bin *bin, size_t n, double least, double most)
{
    double span = rng_log(most) - rng_log(least), lower = least;
    size_t nbins = 0;
    for (size_t i = 1; i <= n; i++) {
        double upper = i == n ? most : least * rng_exp(span * ((double)i / (double)n));
        if (i < n && !(upper > lower && upper < most))
            continue;
        bin[nbins++] = (struct metrics_bin){lower, upper, 0};
        lower = upper;
    }
    return nbins;
}

bool
metrics_dist_bins(struct metrics_dist *dist, size_t n, struct metrics_bin **bin,
                  size_t *nbins, struct rec_error *err)
{
    uint64_t zeros = dist->zeros, count = 0;
    size_t room = 0, i = 0, at;
    double value = 0;
    bool more;

    *bin = NULL;
    *nbins = 0;
    if (dist->n == 0)
        return true;
    if (!rec_grow(bin, &room, n + 1, sizeof **bin, err))
        return false;
    if (dist->value)
        sort_values(dist);
    while ((more = next_values(dist, &i, &value, &count)) && value <= 0)
        zeros += count;
    if (zeros > 0)
        (*bin)[(*nbins)++] = (struct metrics_bin){0, 0, zeros};
    at = *nbins;
    if (more)
        *nbins += set_edges(*bin + at, n, value, dist->most);
    for (; more; more = next_values(dist, &i, &value, &count)) {
        while (value > (*bin)[at].upper)
            at++;
        (*bin)[at].n += count;
    }
    return true;
}

void
metrics_dist_free(struct metrics_dist *dist)
{
    free(dist->value);
    free(dist->bucket);
    *dist = (struct metrics_dist){0};
}
