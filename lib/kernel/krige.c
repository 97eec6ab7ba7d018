/* Corrects the form by measured kernels: the best linear estimate from similar ones. */
#include "private.h"

#include <math.h>

/* 32 neighbours leave the errors of all of them: 4.8 and 4.9 %, 5.3 and 5.2 % on H200 and
 * H100 in bf16, by folds. */
enum { NEIGHBOURS = 32 };

/* The square of the distance of two places, along each coordinate by its length. */
static double
distance(const double p[KERNEL_NPARAMETERS], const double *a, const double *b)
{
    const double *length = p + KERNEL_NCONSTANTS;
    double sum = 0;
    for (int i = 0; i < KERNEL_NCOORDINATES; i++) {
        double d = (a[i] - b[i]) / length[i];
        sum += d * d;
    }
    return sum;
}

/* The covariance falls with the distance. */
static double
covariance(const double p[KERNEL_NPARAMETERS], double square)
{
    const double *spread = p + KERNEL_NCONSTANTS + KERNEL_NCOORDINATES;
    double near = sqrt(square), far = near * spread[KERNEL_RATE];
    return spread[KERNEL_NEAR] * spread[KERNEL_NEAR] * exp(-near) +
           spread[KERNEL_FAR] * spread[KERNEL_FAR] * (1 + far) * exp(-far);
}

double
kernel_covariance(const double p[KERNEL_NPARAMETERS], const double a[KERNEL_NCOORDINATES],
                  const double b[KERNEL_NCOORDINATES])
{
    return covariance(p, distance(p, a, b));
}

static double
noise_of(const double p[KERNEL_NPARAMETERS], double form)
{
    const double *spread = p + KERNEL_NCONSTANTS + KERNEL_NCOORDINATES;
    double small = spread[KERNEL_SHORT] * 1e-5 / form;
    return spread[KERNEL_NOISE] * spread[KERNEL_NOISE] + small * small;
}

bool
kernel_law_ready(struct kernel_law *law, struct rec_error *err)
{
    struct kernel_sheet sheet;
    double sum[KERNEL_NPASSES] = {0};
    size_t count[KERNEL_NPASSES] = {0};

    if (law->ready)
        return true;
    if (!kernel_sheet_read(law->device, law->dtype, &sheet, err))
        return false;
    for (size_t i = 0; i < law->npoints; i++) {
        struct kernel_point *point = &law->point[i];
        struct kernel_form form;
        kernel_form(law->p, &sheet, &point->shape, &form);
        for (int j = 0; j < KERNEL_NCOORDINATES; j++)
            point->x[j] = form.x[j];
        point->y = log(point->seconds / form.seconds);
        point->noise = noise_of(law->p, form.seconds);
        sum[point->shape.pass] += point->y;
        count[point->shape.pass]++;
    }
    for (int k = 0; k < KERNEL_NPASSES; k++)
        if (isnan(law->mean[k]) && count[k] > 0)
            law->mean[k] = sum[k] / (double)count[k];
    for (size_t i = 0; i < law->npoints; i++)
        law->point[i].y -= law->mean[law->point[i].shape.pass];
    law->ready = true;
    return true;
}

/* The most similar points, in no order, and their covariances; returns how many. */
static size_t
neighbours(const struct kernel_law *law, const double *x, size_t at[NEIGHBOURS],
           double with[NEIGHBOURS])
{
    size_t n = 0, most = 0;
    for (size_t i = 0; i < law->npoints; i++) {
        double d = distance(law->p, x, law->point[i].x);
        if (n < NEIGHBOURS) {
            at[n] = i;
            with[n++] = d;
        } else if (d < with[most]) {
            at[most] = i;
            with[most] = d;
        } else
            continue;
        if (n == NEIGHBOURS) {
            most = 0;
            for (size_t j = 1; j < n; j++)
                if (with[j] > with[most])
                    most = j;
        }
    }
    for (size_t j = 0; j < n; j++)
        with[j] = covariance(law->p, with[j]);
    return n;
}

double
kernel_estimate(const struct kernel_law *law, const double x[KERNEL_NCOORDINATES],
                double *similar)
{
    double a[NEIGHBOURS][NEIGHBOURS], with[NEIGHBOURS], u[NEIGHBOURS], v[NEIGHBOURS];
    double result = 0, most = 0;
    size_t at[NEIGHBOURS], n = neighbours(law, x, at, with);

    for (size_t i = 0; i < n; i++) { /* Cholesky, and both triangular solutions */
        const struct kernel_point *p = &law->point[at[i]];
        double su = with[i], sv = p->y;
        for (size_t j = 0; j <= i; j++) {
            double s = i == j ? kernel_covariance(law->p, x, x) + p->noise
                              : kernel_covariance(law->p, p->x, law->point[at[j]].x);
            for (size_t k = 0; k < j; k++)
                s -= a[i][k] * a[j][k];
            /* equal kernels without noise would make this 0 */
            a[i][j] = i == j ? sqrt(fmax(s, 1e-10)) : s / a[j][j];
        }
        for (size_t k = 0; k < i; k++) {
            su -= a[i][k] * u[k];
            sv -= a[i][k] * v[k];
        }
        u[i] = su / a[i][i];
        v[i] = sv / a[i][i];
        result += u[i] * v[i];
        if (with[i] > most)
            most = with[i];
    }
    *similar = most / kernel_covariance(law->p, x, x);
    return result;
}
