/* Profiles: the time that a replica is busy with a batch. Between the batches that were
 * measured, 1/throughput is interpolated linearly. */
#include "private.h"

uint64_t
serve_largest(const struct serve_profile *profile)
{
    return profile->point[profile->n - 1].batch;
}

/* 1/throughput at a batch of n, seconds: y(n) of serve_seconds(). */
static double
seconds_each(const struct serve_profile *profile, uint64_t n)
{
    const struct serve_point *low = profile->point, *high = low;
    size_t from = 0, to = profile->n - 1;
    double y, slope;

    while (from < to) { /* the first point at or behind n */
        size_t middle = (from + to) / 2;
        if (low[middle].batch < n)
            from = middle + 1;
        else
            to = middle;
    }
    high = &profile->point[from];
    y = 1 / high->throughput;
    if (high->batch == n || from == 0)
        return y;
    low = high - 1;
    slope = (y - 1 / low->throughput) / ((double)high->batch - (double)low->batch);
    return 1 / low->throughput + ((double)n - (double)low->batch) * slope;
}

double
serve_seconds(const struct serve_profile *profile, enum serve_service service, uint64_t n)
{
    double each = seconds_each(profile, n);
    return service == SERVE_BATCH ? (double)n * each : each;
}

/* A larger batch need not have the higher throughput, so all sizes are looked at. */
double
serve_throughput(const struct serve_profile *profile, enum serve_service service,
                 uint64_t n)
{
    double most = 0, rate;
    for (uint64_t i = 1; i <= n; i++) {
        rate = (double)i / serve_seconds(profile, service, i);
        most = rate > most ? rate : most;
    }
    return most;
}
