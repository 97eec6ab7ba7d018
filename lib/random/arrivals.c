/* The times at which jobs or queries arrive. Spacings are drawn or read from a file;
 * their sum becomes a time by the inverse of the rate's integral (rate.c), which works
 * for every kind of rate and keeps memory constant. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* Streams of random numbers. They may never change: the same seed gives the same
 * arrivals. The pilot has a stream of its own, so that an estimate does not change the
 * arrivals. */
enum { STREAM_SPACINGS = 1, STREAM_RATE = 2, STREAM_PILOT = 5 };

enum { PILOT_DRAWS = 4096 }; /* spacings drawn to estimate their mean */

struct rng_arrivals {
    struct rng_dist *spacing;  /* NULL: spacings come from a file, */
    struct rec_reader *reader; /* which this reads */
    const char *file;          /* the reader's list of files, of one file */
    double speed_up;
    double first_spacing; /* of the file, read when it was opened */
    struct rng_rate *rate;
    double time; /* of the last arrival, seconds */
    uint64_t n;  /* arrivals so far */
};

void
rng_arrivals_free(struct rng_arrivals *arrivals)
{
    if (!arrivals)
        return;
    rng_dist_free(arrivals->spacing);
    rec_reader_close(arrivals->reader);
    rng_rate_free(arrivals->rate);
    free(arrivals);
}

/* A coefficient of variation of 0 or 1 has a simpler distribution than gamma, which draws
 * faster; gamma itself does not allow 0. */
static struct rng_dist *
new_spacing(const struct rng_arrivals_options *options, uint32_t stream,
            struct rec_error *err)
{
    char text[REC_NUM_MAX + 16] = "gamma:1:";
    const char *form = options->spacing   ? options->spacing
                       : options->cv == 0 ? "fixed:1"
                       : options->cv == 1 ? "exponential:1"
                                          : text;
    text[8 + rec_format_num(text + 8, options->cv)] = '\0';
    return rng_dist_new(form, options->seed, stream, err);
}

static struct rng_rate *
new_rate(const struct rng_arrivals_options *options, struct rec_error *err)
{
    return rng_rate_new(options->rate, options->change, options->change_text,
                        options->seed, STREAM_RATE, err);
}

/* Reads the file's next spacing, past empty lines and comments. 1: *spacing; 0: the file
 * ends; -1: *err. */
static int
read_spacing(struct rng_arrivals *a, double *spacing, struct rec_error *err)
{
    struct rec_str line;
    int status;
    do
        status = rec_next_line(a->reader, &line, err);
    while (status > 0 && (line.len == 0 || *line.ptr == '#'));
    if (status <= 0)
        return status;
    if (!rec_parse_num(line, spacing) || !isfinite(*spacing) || *spacing < 0) {
        rec_reader_fail(a->reader, err,
                        "an inter-arrival time must be a number >= 0, got '%.*s'",
                        REC_SAID(line));
        return -1;
    }
    *spacing /= a->speed_up;
    return 1;
}

/* Reads the first spacing at once, so that a file without one is refused before the first
 * arrival, which needs none, is written. */
static bool
open_file(struct rng_arrivals *a, const struct rng_arrivals_options *options,
          struct rec_error *err)
{
    int status;
    a->file = options->file;
    a->speed_up = options->speed_up > 0 ? options->speed_up : 1;
    if (!(a->reader = rec_reader_open(&a->file, 1, NULL, err)))
        return false;
    status = read_spacing(a, &a->first_spacing, err);
    return status == 0
               ? rec_reader_fail(a->reader, err, "the file has no inter-arrival times")
               : status > 0;
}

struct rng_arrivals *
rng_arrivals_new(const struct rng_arrivals_options *options, struct rec_error *err)
{
    struct rng_arrivals *a = calloc(1, sizeof *a);
    bool ok = a || rec_fail_memory(err);

    if (ok && options->file)
        ok = open_file(a, options, err);
    else if (ok)
        ok = (a->spacing = new_spacing(options, STREAM_SPACINGS, err)) != NULL;
    if (ok && (a->rate = new_rate(options, err)))
        return a;
    rng_arrivals_free(a);
    return NULL;
}

int
rng_arrivals_next(struct rng_arrivals *a, double *time, struct rec_error *err)
{
    double spacing = 0;
    int status = 1;

    if (a->n > 0 && a->spacing)
        spacing = rng_dist_draw(a->spacing);
    else if (a->n == 1)
        spacing = a->first_spacing;
    else if (a->n > 1)
        status = read_spacing(a, &spacing, err);
    if (status <= 0)
        return status;
    a->n++;
    /* The inverse of the integral is rounded: it could step back by a last digit. */
    a->time = fmax(a->time, rng_rate_advance(a->rate, spacing));
    if (a->reader && !isfinite(a->time)) {
        rec_reader_fail(a->reader, err,
                        "the inter-arrival times sum to more than a number can say");
        return -1;
    }
    *time = a->time;
    return isfinite(a->time);
}

/* Gamma spacings have mean 1, so the number of arrivals is the rate's integral, plus the
 * second term of the renewal theorem, (cv^2 - 1) / 2: if cv is large, many arrive at
 * once. (The mean of a pilot's draws would be far off if cv is large.) For other
 * distributions a pilot estimates the mean. It cuts each spacing at the end of the trace:
 * otherwise a few huge spacings would make the mean large though nearly all are small,
 * and far more would arrive than estimated. */
bool
rng_arrivals_estimate(const struct rng_arrivals_options *options, double until,
                      double *arrivals, struct rec_error *err)
{
    struct rng_rate *rate = new_rate(options, err);
    struct rng_dist *pilot = rate ? new_spacing(options, STREAM_PILOT, err) : NULL;
    double most, sum = 0;

    if (pilot) {
        most = rng_rate_integral(rate, until);
        *arrivals = most + fmax(0, (options->cv * options->cv - 1) / 2);
    }
    if (pilot && options->spacing) {
        for (int i = 0; i < PILOT_DRAWS; i++)
            sum += fmin(most, rng_dist_draw(pilot));
        *arrivals = sum > 0 ? most * PILOT_DRAWS / sum : 0;
    }
    rng_dist_free(pilot);
    rng_rate_free(rate);
    return pilot != NULL;
}
