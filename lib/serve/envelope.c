/* What traffic looks like through windows of time. */
#include "rampipe/serve.h"

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
