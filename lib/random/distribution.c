/* Random quantities named on a command line. Each kind of distribution is a row of
 *  `kinds`: how its text is read, which parameters are allowed, and how a value is
 * drawn. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

struct kind {
    const char *name, *form; /* `form` is for messages */
    /* Reads what follows the name and its colon. False: *err says why; or, if err->code
     * is still REC_OK, the text does not have the form. */
    bool (*read)(struct rng_dist *dist, struct rec_str rest, struct rec_error *err);
    bool (*is_sane)(const struct rng_dist *dist); /* NULL: `read` has checked all */
    double (*draw)(struct rng_dist *dist);
    size_t least, most; /* numbers of parameters that read_numbers() takes */
};

struct rng_dist {
    const struct kind *kind;
    double p[3]; /* the parameters, in the order of the form */
    size_t np;
    double low, high;               /* skewnormal: quantiles of the standard variable */
    double log_mean, log_deviation; /* lognormal: of the variable's logarithm */
    double *value;                  /* pmf, file */
    double *cumulative;             /* pmf: [i], the chance of value[0] to value[i] */
    size_t nvalues, room, cumulative_room;
    size_t next; /* file: index of the next draw, before the modulus */
    struct rng *rng;
};

void
rng_dist_free(struct rng_dist *dist)
{
    if (!dist)
        return;
    rng_free(dist->rng);
    free(dist->value);
    free(dist->cumulative);
    free(dist);
}

/* ---- reading ------------------------------------------------------------- */

static bool
read_numbers(struct rng_dist *dist, struct rec_str rest, struct rec_error *err)
{
    struct rec_str part;
    (void)err;
    while (rec_str_split(&rest, ':', &part))
        if (dist->np == dist->kind->most || !rec_parse_num(part, &dist->p[dist->np]) ||
            !isfinite(dist->p[dist->np++]))
            return false;
    return dist->np >= dist->kind->least;
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
    /* Decimal probabilities, such as 0.1, rarely sum to 1 exactly. */
    return dist->nvalues > 0 && fabs(sum - 1) <= 1e-9;
}

static bool
read_values(struct rng_dist *dist, struct rec_str rest, struct rec_error *err)
{
    const char *path = rest.ptr; /* a C string: the path is the end of the user's text */
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct rec_str line;
    double value;
    int status = -1;

    while (reader && (status = rec_next_line(reader, &line, err)) > 0) {
        if (line.len == 0 || *line.ptr == '#')
            continue;
        if (!rec_parse_num(line, &value) || !isfinite(value) || value < 0) {
            rec_reader_fail(reader, err, "a value must be a number >= 0, got '%.*s'",
                            REC_SAID(line));
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

/* ---- the kinds ----------------------------------------------------------- */

/* is_sane_*() accept parameters that have a meaning and that give a value >= 0 in few
 * tries, since rng_dist_draw() tries until it has one. */

static bool
is_sane_fixed(const struct rng_dist *dist)
{
    return dist->p[0] >= 0;
}

static double
draw_fixed(struct rng_dist *dist)
{
    return dist->p[0];
}

static bool
is_sane_uniform(const struct rng_dist *dist)
{
    const double *p = dist->p;
    return p[0] >= 0 && p[0] <= p[1] &&
           (dist->np == 2 || (p[2] >= 0 && p[2] <= 15 && p[2] == floor(p[2])));
}

static double
draw_uniform(struct rng_dist *dist)
{
    double x = dist->p[0] + (dist->p[1] - dist->p[0]) * rng_uniform(dist->rng);
    if (dist->np == 3) {
        double scale = pow(10, dist->p[2]), rounded = round(x * scale) / scale;
        /* x * scale may overflow; an x of that size has no decimals to round */
        x = isfinite(rounded) ? rounded : x;
    }
    return x;
}

static bool
is_sane_exponential(const struct rng_dist *dist)
{
    return dist->p[0] > 0;
}

static double
draw_exponential(struct rng_dist *dist)
{
    return rng_exponential(dist->rng, dist->p[0]);
}

/* The shape is 1 / CV^2. With a smaller CV than 1e-6 all draws are the mean; at a CV of
 * 1000 nearly all are 0, and one draw in 10^6 makes up the mean. */
static bool
is_sane_gamma(const struct rng_dist *dist)
{
    return dist->p[0] > 0 && dist->p[1] >= 1e-6 && dist->p[1] <= 1e3;
}

static double
draw_gamma(struct rng_dist *dist)
{
    const double *p = dist->p;
    return rng_gamma(dist->rng, 1 / (p[1] * p[1]), p[0] * p[1] * p[1]);
}

static bool
is_sane_normal(const struct rng_dist *dist)
{
    return dist->p[0] >= 0 && dist->p[1] >= 0;
}

static double
draw_normal(struct rng_dist *dist)
{
    return dist->p[0] + rng_gaussian(dist->rng, dist->p[1]);
}

static bool
is_sane_lognormal(const struct rng_dist *dist)
{
    return dist->p[0] > 0 && dist->p[1] >= 0 && dist->p[1] <= 1e6 * dist->p[0];
}

static double
draw_lognormal(struct rng_dist *dist)
{
    return rng_lognormal(dist->rng, dist->log_mean, dist->log_deviation);
}

/* Beyond 1e9 the skew normal equals the half-normal distribution in every digit of a
 * double; the bound keeps shape^2 from overflowing. */
static double
limit_shape(double shape)
{
    return fmax(-1e9, fmin(1e9, shape));
}

/* A standard skew normal variable is delta |x| + sqrt(1 - delta^2) y, where x and y are
 * standard normal and delta = shape / sqrt(1 + shape^2) (Azzalini; Henze). */
static double
draw_skew(struct rng_dist *dist)
{
    double shape = limit_shape(dist->p[0]), delta = shape / sqrt(1 + shape * shape);
    double x = rng_gaussian(dist->rng, 1), y = rng_gaussian(dist->rng, 1);
    return delta * fabs(x) + sqrt(1 - delta * delta) * y;
}

static bool
is_sane_skewnormal(const struct rng_dist *dist)
{
    return dist->p[1] >= 0 && dist->p[1] < dist->p[2];
}

/* Maps the part between the quantiles 0.001 and 0.999 to [MIN, MAX], linearly. The
 * quantiles are found once, by read_skewnormal(); one draw in 500 is drawn again. */
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

/* The user gives mean and deviation of the variable; draws need those of its logarithm,
 * which follow from the two moments. is_sane_lognormal() checks the parameters
 * afterwards, so the results here may be NAN. */
static bool
read_lognormal(struct rng_dist *dist, struct rec_str rest, struct rec_error *err)
{
    double ratio, variance;
    if (!read_numbers(dist, rest, err))
        return false;
    ratio = dist->p[1] / dist->p[0];
    variance = rng_log1p(ratio * ratio);
    dist->log_mean = rng_log(dist->p[0]) - variance / 2;
    dist->log_deviation = sqrt(variance);
    return true;
}

/* Binary search for the first cumulative chance above u. The last value's is not looked
 * at: the rounded sum may be a little less than 1, and then some u are above it. */
static double
draw_pmf(struct rng_dist *dist)
{
    double u = rng_uniform(dist->rng);
    size_t low = 0, high = dist->nvalues - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u < dist->cumulative[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return dist->value[low];
}

/* Not random: the values in the file's order, from the start again after the last. */
static double
draw_value(struct rng_dist *dist)
{
    return dist->value[dist->next++ % dist->nvalues];
}

static bool
read_skewnormal(struct rng_dist *dist, struct rec_str rest, struct rec_error *err)
{
    double shape;
    if (!read_numbers(dist, rest, err))
        return false;
    shape = limit_shape(dist->p[0]);
    return rng_skew_quantile(0.001, shape, &dist->low, err) &&
           rng_skew_quantile(0.999, shape, &dist->high, err);
}

static const struct kind kinds[] = {
    {"fixed", "fixed:X", read_numbers, is_sane_fixed, draw_fixed, 1, 1},
    {"uniform", "uniform:A:B[:DECIMALS] with A <= B", read_numbers, is_sane_uniform,
     draw_uniform, 2, 3},
    {"exponential", "exponential:MEAN", read_numbers, is_sane_exponential,
     draw_exponential, 1, 1},
    {"gamma", "gamma:MEAN:CV with CV from 1e-6 to 1000", read_numbers, is_sane_gamma,
     draw_gamma, 2, 2},
    {"normal", "normal:MEAN:SD", read_numbers, is_sane_normal, draw_normal, 2, 2},
    {"lognormal", "lognormal:MEAN:SD with MEAN > 0, SD at most 1e6 MEAN", read_lognormal,
     is_sane_lognormal, draw_lognormal, 2, 2},
    {"skewnormal", "skewnormal:SKEW:MIN:MAX with MIN < MAX", read_skewnormal,
     is_sane_skewnormal, draw_skewnormal, 3, 3},
    {"pmf", "pmf:V=P,V=P,... with P >= 0 that sum to 1", read_pmf, NULL, draw_pmf, 0, 0},
    {"file", "file:PATH", read_values, NULL, draw_value, 0, 0}};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* ---- one distribution ---------------------------------------------------- */

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
        for (i = 0; i < NKINDS; i++)
            rec_list_name(forms, sizeof forms, kinds[i].name);
        return rec_fail(
            err, REC_USAGE,
            "a distribution is one of %s, a colon and its parameters, got '%s'", forms,
            text);
    }
    dist->kind = &kinds[i];
    err->code = REC_OK;
    if (dist->kind->read(dist, rest, err) &&
        (!dist->kind->is_sane || dist->kind->is_sane(dist)))
        return true;
    if (err->code != REC_OK)
        return false; /* out of memory, or a bad file */
    return rec_fail(err, REC_USAGE, "a distribution %s must be %s, got '%s'",
                    dist->kind->name, dist->kind->form, text);
}

struct rng_dist *
rng_dist_new(const char *text, uint32_t seed, uint32_t stream, struct rec_error *err)
{
    struct rng_dist *dist = calloc(1, sizeof *dist);
    if (!dist) {
        rec_fail_memory(err);
        return NULL;
    }
    dist->rng = rng_new(seed, stream, err);
    if (dist->rng && parse(dist, text, err))
        return dist;
    rng_dist_free(dist);
    return NULL;
}

double
rng_dist_draw(struct rng_dist *dist)
{
    double x;
    do
        x = dist->kind->draw(dist);
    while (!(x >= 0)); /* NAN is drawn again, too */
    return x;
}
