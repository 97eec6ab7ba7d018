/* Fits the parameters of laws: the largest likelihood of the measured kernels, if the
 * logarithm of measured / form is a Gaussian random field. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* The search takes the cube of the number of points; 300 give about the same as all,
 * but for their noise. */
enum { MOST_POINTS = 300, ROUNDS = 14 };

/* {start, low, high} */
/* clang-format off */
#define LENGTH {2, 0.05, 50}
#define LENGTHS LENGTH, LENGTH, LENGTH, {0.5, 0.05, 50}, LENGTH, LENGTH, LENGTH, LENGTH, \
                {1, 0.05, 50}, {1, 0.05, 50}, LENGTH, LENGTH, LENGTH
#define SPREADS {0.1, 0.001, 1}, {0.1, 0.001, 1}, {0.3, 0.05, 3}, {0.03, 0.005, 0.3}, \
                {0.03, 0.0005, 0.5}
/* A constant that an operation does not have has a range of one number. */
const struct kernel_range kernel_ranges[KERNEL_NOPS - 1][KERNEL_NPARAMETERS] = {
    [KERNEL_GEMM] = {{0.8, 0.1, 1}, {140, 1, 1000}, {0.8, 0.3, 1}, {4e-6, 1e-6, 3e-5},
                     {0.86, 0.1, 1.6}, {0.85, 0.3, 1}, {0.95, 0.5, 1}, {0.8, 0.3, 1},
                     {2e-6, 1e-7, 2e-5}, {1, 1, 1}, {1, 1, 1}, LENGTHS, SPREADS},
    [KERNEL_ATTENTION] = {{0.6, 0.05, 1}, {200, 1, 5000}, {0.8, 0.3, 1},
                          {8e-6, 1e-6, 1e-4}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1},
                          {2e-6, 2e-6, 2e-6}, {0.7, 0.05, 3}, {0.8, 0.3, 1.6}, LENGTHS,
                          SPREADS},
};

/* The sum of a[k] b[k]: eight sums, because one would wait for itself. */
static double
dot(const double *a, const double *b, size_t n)
{
    double s[8] = {0}, sum = 0;
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int i = 0; i < 8; i++)
            s[i] += a[k + (size_t)i] * b[k + (size_t)i];
    for (; k < n; k++)
        sum += a[k] * b[k];
    for (int i = 0; i < 8; i++)
        sum += s[i];
    return sum;
}

struct search {
    struct kernel_law law; /* with a part of the points */
    double *matrix;        /* npoints x npoints, its lower half */
};

/* The negative logarithm of the likelihood, up to a constant. */
static double
unlikelihood(struct search *search)
{
    struct kernel_law *law = &search->law;
    struct rec_error err;
    size_t n = law->npoints;
    double *a = search->matrix, *u = a + n * n, sum = 0;

    law->ready = false;
    for (int i = 0; i < KERNEL_NPASSES; i++)
        law->mean[i] = (double)NAN;
    if (!kernel_law_ready(law, &err))
        return INFINITY; /* fit_law() has read this data sheet already */
    for (size_t i = 0; i < n; i++) {
        const struct kernel_point *p = &law->point[i];
        for (size_t j = 0; j <= i; j++) {
            double c = kernel_covariance(law->p, p->x, law->point[j].x) +
                       (i == j ? p->noise : 0) - dot(a + i * n, a + j * n, j);
            if (i == j && !(c > 0))
                return INFINITY;
            a[i * n + j] = i == j ? sqrt(c) : c / a[j * n + j];
        }
        u[i] = (p->y - dot(a + i * n, u, i)) / a[i * n + i];
        sum += u[i] * u[i] / 2 + log(a[i * n + i]);
    }
    return sum;
}

/* Steps along one coordinate after the other, up or down by a factor, which grows where a
 * step was good and shrinks where none was. */
static void
descend(struct search *search)
{
    const struct kernel_range *range = kernel_ranges[search->law.op];
    double *p = search->law.p, step[KERNEL_NPARAMETERS], least;

    for (int i = 0; i < KERNEL_NPARAMETERS; i++) {
        p[i] = range[i].start;
        step[i] = 0.3;
    }
    least = unlikelihood(search);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < KERNEL_NPARAMETERS; i++) {
            double before = p[i];
            bool better = false;
            for (int sign = -1; sign <= 1 && !better; sign += 2) {
                double now;
                p[i] = fmin(fmax(before * exp(sign * step[i]), range[i].low),
                            range[i].high);
                if (p[i] == before)
                    continue;
                now = unlikelihood(search);
                better = now < least - 1e-3;
                if (better)
                    least = now;
                else
                    p[i] = before;
            }
            step[i] *= better ? 1.5 : 0.5;
        }
}

static bool
fit_law(struct kernel_law *law, struct rec_error *err)
{
    struct search search = {.law = *law};
    size_t step = (law->npoints + MOST_POINTS - 1) / MOST_POINTS, n = 0;
    bool ok;

    if (law->npoints == 0)
        return true;
    search.law.point = malloc((law->npoints / step + 1) * sizeof *law->point);
    ok = search.law.point != NULL;
    for (size_t i = 0; ok && i < law->npoints; i += step)
        search.law.point[n++] = law->point[i];
    search.law.npoints = n;
    search.matrix = ok ? malloc((n * n + n) * sizeof(double)) : NULL;
    ok = search.matrix ? kernel_law_ready(law, err) : rec_fail_memory(err);
    if (ok) {
        descend(&search);
        memcpy(law->p, search.law.p, sizeof law->p);
        law->ready = false;
        for (int i = 0; i < KERNEL_NPASSES; i++)
            law->mean[i] = (double)NAN;
        ok = kernel_law_ready(law, err);
    }
    free(search.law.point);
    free(search.matrix);
    return ok;
}

bool
kernel_fit(struct kernel_table *table, struct rec_error *err)
{
    for (size_t i = 0; i < table->nlaws; i++)
        if (!fit_law(&table->law[i], err))
            return false;
    return true;
}
