/* The envelope of traffic: how many queries its windows of time hold, in the sample and
 * in a longer sequence that is resampled from it. */
#include "rampipe/random.h"
#include "rampipe/serve.h"

/* Both ends of the window only move forward, so this takes O(n). */
uint64_t
serve_envelope(const double *times, size_t n, double seconds)
{
    size_t most = 0;
    for (size_t first = 0, last = 0; last < n; last++) {
        while (times[last] - times[first] >= seconds)
            first++;
        if (last - first + 1 > most)
            most = last - first + 1;
    }
    return most;
}

bool
serve_resample(const double *times, size_t n, double *longer, uint32_t seed,
               struct rec_error *err)
{
    size_t spacings = n - 1, piece = spacings / SERVE_PIECES + 1, at = 0;
    struct rng *rng = spacings > 0 && n < UINT32_MAX
                          ? rng_new(seed, rng_stream("envelope"), err)
                          : NULL;
    double time = 0;
    if (!rng)
        return n <= 1 ? true : n < UINT32_MAX ? false : rec_fail_memory(err);
    for (size_t i = 0; i < SERVE_RESAMPLED * n; i++) {
        longer[i] = time;
        if (i % piece == 0)
            at = rng_below(rng, (uint32_t)spacings);
        time += times[at + 1] - times[at];
        at = (at + 1) % spacings;
    }
    rng_free(rng);
    return true;
}
