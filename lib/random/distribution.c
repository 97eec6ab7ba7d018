/* Random quantities named on a command line. */
#include "rampipe/random.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum kind {
    FIXED,
    UNIFORM,
    EXPONENTIAL,
    GAMMA,
    NORMAL,
    LOGNORMAL,
    SKEWNORMAL,
    PMF,
    VALUES
};

static const struct {
    const char *name, *form;
    enum kind kind;
    size_t least, most; /* parameters */
} kinds[] = {{"fixed", "fixed:X", FIXED, 1, 1},
             {"uniform", "uniform:A:B[:DECIMALS] with A <= B", UNIFORM, 2, 3},
             {"exponential", "exponential:MEAN", EXPONENTIAL, 1, 1},
             {"gamma", "gamma:MEAN:CV", GAMMA, 2, 2},
             {"normal", "normal:MEAN:SD", NORMAL, 2, 2},
             {"lognormal", "lognormal:MEAN:SD with MEAN > 0", LOGNORMAL, 2, 2},
             {"skewnormal", "skewnormal:SKEW:MIN:MAX with MIN < MAX", SKEWNORMAL, 3, 3},
             {"pmf", "pmf:V=P,V=P,... with P >= 0 that sum to 1", PMF, 0, 0},
             {"file", "file:PATH", VALUES, 0, 0}};
enum { NKINDS = sizeof kinds / sizeof *kinds };

struct rng_dist {
    enum kind kind;
    double p[3];
    size_t np;
    double low, high;   /* skewnormal: quantiles of the standard variable */
    double *value;      /* pmf, file */
    double *cumulative; /* pmf */
    size_t nvalues, room, cumulative_room, next;
    gsl_rng *rng;
};

void
rng_dist_free(struct rng_dist *dist)
{
    if (!dist)
        return;
    if (dist->rng)
        gsl_rng_free(dist->rng);
    free(dist->value);
    free(dist->cumulative);
    free(dist);
}

/* ---- reading ------------------------------------------------------------- */

static bool
read_numbers(struct rng_dist *dist, struct rec_str rest, size_t least, size_t most)
{
    struct rec_str part;
    while (rec_str_split(&rest, ':', &part))
        if (dist->np == most || !rec_parse_num(part, &dist->p[dist->np]) ||
            !isfinite(dist->p[dist->np++]))
            return false;
    return dist->np >= least;
}

static bool
add_value(struct rng_dist *dist, double value, struct rec_error *err)
{
    if (!rec_grow(&dist->value, &dist->room, dist->nvalues + 1, sizeof *dist->value, err))
        return false;
    dist->value[dist->nvalues++] = value;
    return true;
}

static bool
read_pmf(struct rng_dist *dist, struct rec_str rest, struct rec_error *err)
{
    struct rec_str pair, text;
    double value, probability, sum = 0;
    while (rec_str_split(&rest, ',', &pair)) {
        if (!rec_str_split(&pair, '=', &text) || !rec_parse_num(text, &value) ||
            !pair.ptr || !rec_parse_num(pair, &probability) || !isfinite(value) ||
            value < 0 || !(probability >= 0))
            return false;
        sum += probability;
        if (!rec_grow(&dist->cumulative, &dist->cumulative_room, dist->nvalues + 1,
                      sizeof *dist->cumulative, err))
            return false;
        dist->cumulative[dist->nvalues] = sum;
        if (!add_value(dist, value, err))
            return false;
    }
    return dist->nvalues > 0 && fabs(sum - 1) <= 1e-9;
}

static bool
read_values(struct rng_dist *dist, const char *path, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct rec_str line;
    double value;
    int status = -1;

    while (reader && (status = rec_next_line(reader, &line, err)) > 0) {
        if (line.len == 0 || *line.ptr == '#')
            continue;
        if (!rec_parse_num(line, &value) || !isfinite(value) || value < 0) {
            rec_reader_fail(reader, err, "a value must be a number >= 0, got '%.*s'",
                            (int)(line.len < 60 ? line.len : 60), line.ptr);
            status = -1;
            break;
        }
        if (!add_value(dist, value, err)) {
            status = -1;
            break;
        }
    }
    if (status == 0 && dist->nvalues == 0) {
        rec_reader_fail(reader, err, "the file has no values");
        status = -1;
    }
    rec_reader_close(reader);
    return status == 0;
}

/* Parameters that make sense, and can give a value >= 0 in reasonable time. */
static bool
is_sane(const struct rng_dist *dist)
{
    const double *p = dist->p;
    switch (dist->kind) {
    case FIXED: return p[0] >= 0;
    case UNIFORM:
        return p[0] >= 0 && p[0] <= p[1] &&
               (dist->np == 2 || (p[2] >= 0 && p[2] <= 15 && p[2] == floor(p[2])));
    case EXPONENTIAL: return p[0] > 0;
    case GAMMA: return p[0] > 0 && p[1] > 0;
    case NORMAL: return p[0] >= 0 && p[1] >= 0;
    case LOGNORMAL: return p[0] > 0 && p[1] >= 0;
    case SKEWNORMAL: return p[1] >= 0 && p[1] < p[2];
    case PMF:
    case VALUES: return true;
    }
    return false;
}

/* A standard skew normal variable (Azzalini and Henze): delta |x| + sqrt(1 - delta^2) y.
 */
static double
draw_skew(struct rng_dist *dist)
{
    double delta = dist->p[0] / sqrt(1 + dist->p[0] * dist->p[0]);
    double x = gsl_ran_ugaussian(dist->rng), y = gsl_ran_ugaussian(dist->rng);
    return delta * fabs(x) + sqrt(1 - delta * delta) * y;
}

/* P(standard skew normal <= z) = Phi(z) - 2 T(z, shape), T Owen's integral. */
static double
skew_cdf(double z, double shape)
{
    const int n = 2000; /* Simpson's rule over [0, |shape|], which is smooth */
    double h = fabs(shape) / n, sum = 0, t;
    for (int i = 0; i <= n; i++) {
        double x = i * h;
        double f = exp(-0.5 * z * z * (1 + x * x)) / (1 + x * x);
        sum += f * (i == 0 || i == n ? 1 : i % 2 ? 4 : 2);
    }
    t = sum * h / 3 / (2 * M_PI);
    return gsl_cdf_ugaussian_P(z) - 2 * (shape < 0 ? -t : t);
}

static double
skew_quantile(double p, double shape)
{
    double low = -10, high = 10;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (skew_cdf(middle, shape) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static bool
parse(struct rng_dist *dist, const char *text, struct rec_error *err)
{
    struct rec_str rest = rec_str(text), name;
    char forms[400] = "";
    size_t i = 0;

    rec_str_split(&rest, ':', &name);
    while (i < NKINDS && !rec_str_is(name, kinds[i].name))
        i++;
    if (i == NKINDS || !rest.ptr) {
        for (i = 0; i < NKINDS; i++) {
            strcat(forms, i ? ", " : "");
            strcat(forms, kinds[i].name);
        }
        return rec_fail(
            err, REC_USAGE,
            "a distribution is one of %s, a colon and its parameters, got '%s'", forms,
            text);
    }
    dist->kind = kinds[i].kind;
    err->text[0] = '\0';
    if (dist->kind == VALUES)
        return read_values(dist, rest.ptr, err);
    if (dist->kind == PMF ? read_pmf(dist, rest, err)
                          : read_numbers(dist, rest, kinds[i].least, kinds[i].most))
        if (is_sane(dist))
            return true;
    if (err->text[0])
        return false; /* out of memory */
    return rec_fail(err, REC_USAGE, "a distribution %s must be %s, got '%s'",
                    kinds[i].name, kinds[i].form, text);
}

struct rng_dist *
rng_dist_new(const char *text, uint32_t seed, uint32_t stream, struct rec_error *err)
{
    struct rng_dist *dist = calloc(1, sizeof *dist);
    if (!dist || !(dist->rng = gsl_rng_alloc(gsl_rng_mt19937))) {
        rng_dist_free(dist);
        rec_fail_memory(err);
        return NULL;
    }
    /* Seeds that differ in any bit start unrelated sequences; 0 would mean 4357. */
    gsl_rng_set(dist->rng, (seed * 0x9e3779b1u ^ stream * 0x85ebca6bu) | 1u);
    if (!parse(dist, text, err)) {
        rng_dist_free(dist);
        return NULL;
    }
    if (dist->kind == SKEWNORMAL) {
        dist->low = skew_quantile(0.001, dist->p[0]);
        dist->high = skew_quantile(0.999, dist->p[0]);
    }
    return dist;
}

/* ---- drawing ------------------------------------------------------------- */

static double
draw_uniform(struct rng_dist *dist)
{
    double x = dist->p[0] + (dist->p[1] - dist->p[0]) * gsl_rng_uniform(dist->rng);
    if (dist->np == 3) {
        double scale = pow(10, dist->p[2]);
        x = round(x * scale) / scale;
    }
    return x;
}

static double
draw_lognormal(struct rng_dist *dist)
{
    double ratio = dist->p[1] / dist->p[0], variance = log1p(ratio * ratio);
    return gsl_ran_lognormal(dist->rng, log(dist->p[0]) - variance / 2, sqrt(variance));
}

static double
draw_skewnormal(struct rng_dist *dist)
{
    double z;
    do
        z = draw_skew(dist);
    while (z < dist->low || z > dist->high);
    return dist->p[1] +
           (dist->p[2] - dist->p[1]) * (z - dist->low) / (dist->high - dist->low);
}

static double
draw_pmf(struct rng_dist *dist)
{
    double u = gsl_rng_uniform(dist->rng);
    size_t i = 0;
    while (i + 1 < dist->nvalues && u >= dist->cumulative[i])
        i++;
    return dist->value[i];
}

static double
draw(struct rng_dist *dist)
{
    const double *p = dist->p;
    switch (dist->kind) {
    case FIXED: return p[0];
    case UNIFORM: return draw_uniform(dist);
    case EXPONENTIAL: return gsl_ran_exponential(dist->rng, p[0]);
    case GAMMA: return gsl_ran_gamma(dist->rng, 1 / (p[1] * p[1]), p[0] * p[1] * p[1]);
    case NORMAL: return p[0] + gsl_ran_gaussian(dist->rng, p[1]);
    case LOGNORMAL: return draw_lognormal(dist);
    case SKEWNORMAL: return draw_skewnormal(dist);
    case PMF: return draw_pmf(dist);
    case VALUES: return dist->value[dist->next++ % dist->nvalues];
    }
    return 0;
}

double
rng_dist_draw(struct rng_dist *dist)
{
    double x;
    do
        x = draw(dist);
    while (!(x >= 0));
    return x;
}

uint32_t
rng_dist_index(struct rng_dist *dist, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(dist->rng, n);
}
