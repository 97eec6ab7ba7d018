/* Rates that change in time, and the inverse of their integral, by which arrivals of any
 * spacings follow the rate (Cinlar 1975; see struct rng_arrivals in rampipe/random.h).
 * Each way to change is a row of `kinds`. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* Least mean number of arrivals in a cycle of on and off. With fewer, hundreds of cycles
 * pass between two arrivals: they come as at a constant rate, and each costs hundreds of
 * draws. */
static const double MIN_ARRIVALS_PER_CYCLE = 0.01;

struct step {
    double begin, rate;
};

/* Times are seconds, rates are 1/s. */
struct rng_rate {
    const struct kind *kind;
    double rate; /* the base rate */
    double p[3]; /* sinusoid, on-off: the numbers of the text, in its order */
    size_t np;
    double sum; /* constant, sinusoid: of the amounts that the rate was advanced by */
    /* on-off, piecewise: the current stretch of time, in which the rate is constant */
    double begin, end, now; /* `now`: its rate */
    double used;            /* how much of the stretch's integral is behind us */
    bool on;                /* on-off */
    struct step *step;      /* piecewise */
    size_t nsteps, room, next;
    uint32_t seed, stream;
    struct rng *rng; /* on-off */
};

struct kind {
    const char *name, *form; /* `form` is for messages */
    /* Reads the numbers. False: *err says why; or, if err->code is still REC_OK, the text
     * does not have the form. */
    bool (*read)(struct rng_rate *rate, struct rec_str text, struct rec_error *err);
    /* rng_rate_advance() and rng_rate_integral() of this kind */
    double (*advance)(struct rng_rate *rate, double amount);
    double (*integral)(const struct rng_rate *rate, double until);
    void (*next)(struct rng_rate *rate); /* goes to the next stretch; else NULL */
};

void
rng_rate_free(struct rng_rate *rate)
{
    if (!rate)
        return;
    rng_free(rate->rng);
    free(rate->step);
    free(rate);
}

static bool
read_numbers(struct rng_rate *r, struct rec_str text)
{
    struct rec_str part;
    while (rec_str_split(&text, ':', &part))
        if (r->np == 3 || !rec_parse_num(part, &r->p[r->np]) || !isfinite(r->p[r->np++]))
            return false;
    return true;
}

/* ---- constant ------------------------------------------------------------ */

/* The amounts are summed and the sum is divided, not the other way round: so no rounding
 * of a quotient adds up over millions of arrivals. */
static double
advance_constant(struct rng_rate *r, double amount)
{
    r->sum += amount;
    return r->sum / r->rate;
}

static double
integral_constant(const struct rng_rate *r, double until)
{
    return r->rate * until;
}

/* ---- sinusoid: rate (1 + A sin(2 pi x)), x = t/P ---------------------------- */

static bool
read_sinusoid(struct rng_rate *r, struct rec_str text, struct rec_error *err)
{
    (void)err;
    return read_numbers(r, text) && r->np == 2 && r->p[0] >= 0 && r->p[0] <= 1 &&
           r->p[1] > 0 && r->rate * r->p[1] > 0 && isfinite(r->rate * r->p[1]);
}

/* The integral over the first x of a cycle (x in [0, 1]), divided by rate P: x + A/(2 pi)
 * (1 - cos(2 pi x)), where 1 - cos(2 pi x) = 2 sin^2(pi x) loses no digits. */
static double
part_of_cycle(double amplitude, double x)
{
    double sine = rng_sinpi(x);
    return x + amplitude / M_PI * (sine * sine);
}

/* Solves part_of_cycle(x) = y for x in [0, 1] by Newton's method between bounds that
 * shrink. A step that would leave the bounds goes to their middle instead: with A = 1 the
 * rate, which Newton's method divides by, is 0 at x = 3/4. */
static double
invert_cycle(double amplitude, double y)
{
    double low = fmax(0, y - amplitude / M_PI), high = y, x = y;
    for (int i = 0; i < 100; i++) {
        double excess = part_of_cycle(amplitude, x) - y, next;
        if (excess == 0)
            break;
        if (excess > 0)
            high = x;
        else
            low = x;
        next = x - excess / (1 + amplitude * rng_sinpi(2 * x));
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (fabs(next - x) <= 0x1p-52 * x)
            break;
        x = next;
    }
    return x;
}

static double
advance_sinusoid(struct rng_rate *r, double amount)
{
    double cycles, whole;
    r->sum += amount;
    cycles = r->sum / (r->rate * r->p[1]);
    whole = floor(cycles);
    if (!isfinite(cycles))
        return (double)INFINITY;
    return (whole + invert_cycle(r->p[0], cycles - whole)) * r->p[1];
}

static double
integral_sinusoid(const struct rng_rate *r, double until)
{
    double cycles = until / r->p[1], whole = floor(cycles);
    if (!isfinite(cycles))
        return (double)INFINITY;
    return r->rate * r->p[1] * (whole + part_of_cycle(r->p[0], cycles - whole));
}

/* ---- stretches of one rate ------------------------------------------------- */

/* piecewise */
static void
next_step(struct rng_rate *r)
{
    const struct step *step = &r->step[r->next++];
    r->begin = step->begin;
    r->end = r->next < r->nsteps ? step[1].begin : (double)INFINITY;
    r->now = step->rate;
}

/* on-off: from on to off or back. The first call turns it on, at 0. */
static void
turn(struct rng_rate *r)
{
    r->on = !r->on;
    r->begin = r->end;
    r->end += rng_exponential(r->rng, r->p[r->on ? 0 : 1]);
    r->now = r->on ? r->rate : r->p[2];
}

/* Goes from stretch to stretch until one has enough of the integral left. A stretch of
 * rate 0 has none, however long (INFINITY * 0 would be NAN). */
static double
advance_stretches(struct rng_rate *r, double amount)
{
    for (;;) {
        double whole = r->now > 0 ? r->now * (r->end - r->begin) : 0;
        if (r->used + amount < whole)
            break;
        if (!isfinite(r->end))
            return (double)INFINITY;
        amount = fmax(0, amount - (whole - r->used));
        r->used = 0;
        r->kind->next(r);
    }
    r->used += amount;
    /* rounding may put the quotient past the end, and so past the next stretch's times */
    return fmin(r->end, r->begin + r->used / r->now);
}

static bool
read_on_off(struct rng_rate *r, struct rec_str text, struct rec_error *err)
{
    double cycle;
    if (!read_numbers(r, text) || r->np < 2 ||
        !(r->p[0] > 0 && r->p[1] > 0 && r->p[2] >= 0))
        return false;
    cycle = r->rate * r->p[0] + r->p[2] * r->p[1];
    if (!(cycle >= MIN_ARRIVALS_PER_CYCLE) || !isfinite(cycle))
        return false;
    if (!(r->rng = rng_new(r->seed, r->stream, err)))
        return false;
    turn(r);
    return true;
}

/* The expected integral: the mean rate over a cycle, times the time. */
static double
integral_on_off(const struct rng_rate *r, double until)
{
    return (r->rate * r->p[0] + r->p[2] * r->p[1]) / (r->p[0] + r->p[1]) * until;
}

static bool
read_piecewise(struct rng_rate *r, struct rec_str text, struct rec_error *err)
{
    struct rec_str pair, time;
    while (rec_str_split(&text, ',', &pair)) {
        struct step step;
        if (!rec_str_split(&pair, ':', &time) || !rec_parse_num(time, &step.begin) ||
            !pair.ptr || !rec_parse_num(pair, &step.rate) || !isfinite(step.begin) ||
            !(step.rate >= 0))
            return false;
        step.rate *= r->rate;
        if (!isfinite(step.rate) ||
            (r->nsteps == 0 ? step.begin != 0
                            : step.begin <= r->step[r->nsteps - 1].begin))
            return false;
        if (!rec_grow(&r->step, &r->room, r->nsteps + 1, sizeof step, err))
            return false;
        r->step[r->nsteps++] = step;
    }
    next_step(r);
    return true;
}

static double
integral_piecewise(const struct rng_rate *r, double until)
{
    double sum = 0;
    for (size_t i = 0; i < r->nsteps && r->step[i].begin < until; i++) {
        double end = i + 1 < r->nsteps ? fmin(until, r->step[i + 1].begin) : until;
        if (r->step[i].rate > 0)
            sum += r->step[i].rate * (end - r->step[i].begin);
    }
    return sum;
}

/* ---- one rate -------------------------------------------------------------- */

static const struct kind constant = {"constant",        NULL, NULL, advance_constant,
                                     integral_constant, NULL};

static const struct kind kinds[] = {
    {"on-off",
     "ON:OFF[:RATE_OFF] with ON and OFF > 0, RATE_OFF >= 0, and at least 0.01 arrivals "
     "in ON and OFF together",
     read_on_off, advance_stretches, integral_on_off, turn},
    {"sinusoid", "AMPLITUDE:PERIOD with AMPLITUDE in [0, 1] and PERIOD > 0",
     read_sinusoid, advance_sinusoid, integral_sinusoid, NULL},
    {"piecewise", "TIME:RATE,TIME:RATE,... with times that rise from 0 and rates >= 0",
     read_piecewise, advance_stretches, integral_piecewise, next_step}};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static bool
read_change(struct rng_rate *r, const char *change, const char *text,
            struct rec_error *err)
{
    size_t i = 0;
    while (i < NKINDS && strcmp(kinds[i].name, change) != 0)
        i++;
    if (i == NKINDS)
        return rec_fail(err, REC_BUG, "no rate changes as '%s'", change);
    r->kind = &kinds[i];
    err->code = REC_OK;
    if (r->kind->read(r, rec_str(text), err))
        return true;
    if (err->code != REC_OK)
        return false; /* out of memory */
    /* `change` is the name of an option of tracegen: "a rate sinusoid must be ..." */
    return rec_fail(err, REC_USAGE, "a rate %s must be %s, got '%s'", change,
                    r->kind->form, text);
}

struct rng_rate *
rng_rate_new(double base, const char *change, const char *text, uint32_t seed,
             uint32_t stream, struct rec_error *err)
{
    struct rng_rate *rate = calloc(1, sizeof *rate);
    if (!rate) {
        rec_fail_memory(err);
        return NULL;
    }
    rate->rate = base;
    rate->seed = seed;
    rate->stream = stream;
    rate->kind = &constant;
    if (!change || read_change(rate, change, text, err))
        return rate;
    rng_rate_free(rate);
    return NULL;
}

double
rng_rate_advance(struct rng_rate *rate, double amount)
{
    return isfinite(amount) ? rate->kind->advance(rate, amount) : (double)INFINITY;
}

double
rng_rate_integral(const struct rng_rate *rate, double until)
{
    return rate->kind->integral(rate, until);
}
