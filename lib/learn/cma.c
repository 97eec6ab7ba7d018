/*
 * The CMA-ES as in Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), with the two
 * changes that learn.h names. Each generation draws points from a normal distribution,
 * and moves its mean to the weighted mean of the better half. Two paths, decaying sums of
 * the mean's steps, adapt the distribution: long steps in one direction enlarge sigma,
 * and stretch the covariance there. Variables have the tutorial's names in words; its
 * symbols are in the comments. With n coordinates a generation takes O(n^2) a point and
 * O(n^3) for the factor.
 */
#include "rampipe/learn.h"

#include <math.h>
#include <stdlib.h>

struct learn_cma {
    uint32_t n, population, parents;
    struct rng *rng;
    double *weight;    /* w_i, of the parents, the best first; their sum is 1 */
    double effective;  /* mu_eff, the effective number of parents */
    double path_rate;  /* c_sigma */
    double damping;    /* d_sigma */
    double shape_rate; /* c_c */
    double one_rate;   /* c_1, of the rank-one update */
    double many_rate;  /* c_mu, of the rank-mu update */
    double expected;   /* chi_n, the expected length of a standard normal vector */
    double sigma;
    uint64_t generation;
    uint64_t diagonal; /* generations that learn variances only, and faster */
    double *mean, *path_sigma, *path_shape; /* m, p_sigma, p_c; n each */
    double *covariance;                     /* n x n, the lower triangle of C */
    double *factor; /* n x n, lower triangular: factor factor' = covariance */
    double *draw;   /* population x n: z, standard normal */
    double *step;   /* population x n: y = factor * draw */
    double *point;  /* population x n: x = mean + sigma * step */
    double *mean_draw, *mean_step; /* weighted means over the parents */
    uint32_t *order;               /* points, the best first */
};

/* The tutorial's default parameters, with positive weights only. */
static void
set_rates(struct learn_cma *c)
{
    double n = c->n, sum = 0, squares = 0, m;
    for (uint32_t i = 0; i < c->parents; i++) {
        c->weight[i] = rng_log(c->population / 2. + 0.5) - rng_log(i + 1.);
        sum += c->weight[i];
    }
    for (uint32_t i = 0; i < c->parents; i++) {
        c->weight[i] /= sum;
        squares += c->weight[i] * c->weight[i];
    }
    m = c->effective = 1 / squares;
    c->path_rate = (m + 2) / (n + m + 5);
    c->damping = 1 + 2 * fmax(0, sqrt((m - 1) / (n + 1)) - 1) + c->path_rate;
    c->shape_rate = (4 + m / n) / (n + 4 + 2 * m / n);
    c->one_rate = 2 / ((n + 1.3) * (n + 1.3) + m);
    c->many_rate = fmin(1 - c->one_rate, 2 * (m - 2 + 1 / m) / ((n + 2) * (n + 2) + m));
    c->diagonal = (uint64_t)(100 * n / sqrt(c->population));
    c->expected = sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
}

static double *
numbers(size_t n)
{
    return calloc(n, sizeof(double));
}

struct learn_cma *
learn_cma_new(const double *start, uint32_t n, double sigma, uint32_t population,
              uint32_t seed, struct rec_error *err)
{
    struct learn_cma *c = calloc(1, sizeof *c);
    size_t many;
    if (!c) {
        rec_fail_memory(err);
        return NULL;
    }
    c->n = n;
    c->population = population ? population : 4 + (uint32_t)(3 * rng_log(n));
    c->parents = c->population / 2;
    c->sigma = sigma;
    many = (size_t)c->population * n;
    c->weight = numbers(c->parents);
    c->mean = numbers(n);
    c->path_sigma = numbers(n);
    c->path_shape = numbers(n);
    c->covariance = numbers((size_t)n * n);
    c->factor = numbers((size_t)n * n);
    c->draw = numbers(many);
    c->step = numbers(many);
    c->point = numbers(many);
    c->mean_draw = numbers(n);
    c->mean_step = numbers(n);
    c->order = calloc(c->population, sizeof *c->order);
    if (!c->weight || !c->mean || !c->path_sigma || !c->path_shape || !c->covariance ||
        !c->factor || !c->draw || !c->step || !c->point || !c->mean_draw ||
        !c->mean_step || !c->order)
        rec_fail_memory(err);
    else if ((c->rng = rng_new(seed, rng_stream("cma"), err))) {
        set_rates(c);
        memcpy(c->mean, start, n * sizeof *start);
        for (uint32_t i = 0; i < n; i++)
            c->covariance[(size_t)i * n + i] = c->factor[(size_t)i * n + i] = 1;
        return c;
    }
    learn_cma_free(c);
    return NULL;
}

void
learn_cma_free(struct learn_cma *c)
{
    if (!c)
        return;
    rng_free(c->rng);
    free(c->weight);
    free(c->mean);
    free(c->path_sigma);
    free(c->path_shape);
    free(c->covariance);
    free(c->factor);
    free(c->draw);
    free(c->step);
    free(c->point);
    free(c->mean_draw);
    free(c->mean_step);
    free(c->order);
    free(c);
}

uint32_t
learn_cma_population(const struct learn_cma *c)
{
    return c->population;
}

const double *
learn_cma_mean(const struct learn_cma *c)
{
    return c->mean;
}

double
learn_cma_sigma(const struct learn_cma *c)
{
    return c->sigma;
}

const double *
learn_cma_ask(struct learn_cma *c)
{
    uint32_t n = c->n;
    for (uint32_t k = 0; k < c->population; k++) {
        double *draw = c->draw + (size_t)k * n, *step = c->step + (size_t)k * n;
        for (uint32_t i = 0; i < n; i++)
            draw[i] = rng_normal(c->rng, 1);
        for (uint32_t i = 0; i < n; i++) {
            step[i] = 0;
            for (uint32_t j = 0; j <= i; j++)
                step[i] += c->factor[(size_t)i * n + j] * draw[j];
            c->point[(size_t)k * n + i] = c->mean[i] + c->sigma * step[i];
        }
    }
    return c->point;
}

/* Sorts the points by value, the best first; equal ones keep their order (insertion sort:
 * populations are small). */
static void
sort(struct learn_cma *c, const double *value)
{
    for (uint32_t k = 0; k < c->population; k++) {
        uint32_t i = k;
        for (; i > 0 && value[k] < value[c->order[i - 1]]; i--)
            c->order[i] = c->order[i - 1];
        c->order[i] = k;
    }
}

/* The Cholesky factor of the covariance. If rounding has made the matrix indefinite, a
 * pivot is not above 0: it is taken as 1e-20, so that the factor stays finite. */
static void
factorise(struct learn_cma *c)
{
    uint32_t n = c->n;
    const double *a = c->covariance;
    double *l = c->factor;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            double sum = a[(size_t)i * n + j];
            for (uint32_t k = 0; k < j; k++)
                sum -= l[(size_t)i * n + k] * l[(size_t)j * n + k];
            if (i == j)
                l[(size_t)i * n + i] = sqrt(fmax(sum, 1e-20));
            else
                l[(size_t)i * n + j] = sum / l[(size_t)j * n + j];
        }
}

static double
length(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void
move_mean(struct learn_cma *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->mean_draw[i] = c->mean_step[i] = 0;
        for (uint32_t k = 0; k < c->parents; k++) {
            size_t at = (size_t)c->order[k] * c->n + i;
            c->mean_draw[i] += c->weight[k] * c->draw[at];
            c->mean_step[i] += c->weight[k] * c->step[at];
        }
        c->mean[i] += c->sigma * c->mean_step[i];
    }
}

/* The rank-one update by the path, and the rank-mu update by the steps of the parents. In
 * the diagonal phase only variances are learned, (n + 2) / 3 times as fast. If the path
 * has stalled, `keep` makes up for the variance that the path did not gain. */
static void
change_covariance(struct learn_cma *c, bool stalled)
{
    uint32_t n = c->n;
    bool diagonal = c->generation <= c->diagonal;
    double faster = diagonal ? (n + 2) / 3. : 1, one = fmin(1, faster * c->one_rate);
    double all = fmin(1 - one, faster * c->many_rate), keep = 1 - one - all;
    if (stalled)
        keep += one * c->shape_rate * (2 - c->shape_rate);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = diagonal ? i : 0; j <= i; j++) {
            double many = 0;
            for (uint32_t k = 0; k < c->parents; k++) {
                const double *step = c->step + (size_t)c->order[k] * n;
                many += c->weight[k] * step[i] * step[j];
            }
            c->covariance[(size_t)i * n + j] = keep * c->covariance[(size_t)i * n + j] +
                                               one * c->path_shape[i] * c->path_shape[j] +
                                               all * many;
        }
    factorise(c);
}

/*
 * path_sigma uses the mean of the draws, which is C^(-1/2) times the mean step up to a
 * rotation: so no inverse of the covariance is needed (Krause, Arbones and Igel, 2016). A
 * path that is too long means that sigma is too small; path_shape then stalls, for else
 * the covariance would grow in place of sigma. Its length is compared with what is
 * expected in this generation: `fade` is how much of the start, a path of 0, is left.
 */
void
learn_cma_tell(struct learn_cma *c, const double *value)
{
    double a = sqrt(c->path_rate * (2 - c->path_rate) * c->effective);
    double b = sqrt(c->shape_rate * (2 - c->shape_rate) * c->effective);
    double path, fade;
    bool stalled;

    sort(c, value);
    move_mean(c);
    c->generation++;
    for (uint32_t i = 0; i < c->n; i++)
        c->path_sigma[i] = (1 - c->path_rate) * c->path_sigma[i] + a * c->mean_draw[i];
    path = length(c->path_sigma, c->n);
    fade = rng_exp(2. * (double)c->generation * rng_log(1 - c->path_rate));
    stalled = path / sqrt(1 - fade) >= (1.4 + 2 / (c->n + 1.)) * c->expected;
    for (uint32_t i = 0; i < c->n; i++)
        c->path_shape[i] =
            (1 - c->shape_rate) * c->path_shape[i] + (stalled ? 0 : b * c->mean_step[i]);
    change_covariance(c, stalled);
    c->sigma *= rng_exp(c->path_rate / c->damping * (path / c->expected - 1));
}
