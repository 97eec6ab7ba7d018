/* Samples of queries whose arrivals record says how they were drawn. They can be drawn
 * again with another seed, which gives queries that a plan was not fitted to. */
#include "rampipe/serve.h"

#include <stdlib.h>

bool
serve_read_arrivals(struct serve_arrivals *drawn, const struct rec_reader *reader,
                    const struct rec *rec, struct rec_error *err)
{
    struct rng_arrivals_options *options = &drawn->options;
    const char **text[] = {&options->spacing, &options->change, &options->change_text};
    static const char *const keys[] = {"spacing", "change", "shape"};
    uint64_t seed;

    *options = (struct rng_arrivals_options){.rate = 1, .cv = 1};
    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 1, &seed, err) ||
        !rec_key_number(reader, rec, "rate", &options->rate, err) ||
        !rec_key_number(reader, rec, "cv", &options->cv, err))
        return false;
    if (seed > UINT32_MAX)
        return rec_reader_fail(reader, err, "SEED must be at most %u", UINT32_MAX);
    options->seed = (uint32_t)seed;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct rec_str value;
        if (rec_find_key(rec, keys[i], &value) &&
            !(*text[i] = rec_arena_copy(&drawn->arena, value, err)))
            return false;
    }
    drawn->known = true;
    return true;
}

/* Draws the first n arrivals. 1: done; 0: there are fewer, or the options are no valid
 * way to draw; -1: *err. */
static int
draw(const struct rng_arrivals_options *options, double *times, size_t n,
     struct rec_error *err)
{
    struct rng_arrivals *arrivals = rng_arrivals_new(options, err);
    int status = arrivals ? 1 : err->code == REC_USAGE ? 0 : -1;
    for (size_t i = 0; i < n && status > 0; i++)
        status = rng_arrivals_next(arrivals, &times[i], err);
    rng_arrivals_free(arrivals);
    return status;
}

bool
serve_draw_again(const struct serve_arrivals *drawn, const double *times, size_t n,
                 double **again, uint32_t *seed, struct rec_error *err)
{
    struct rng_arrivals_options options = drawn->options;
    int status;
    *again = NULL;
    if (!drawn->known || (options.spacing && strncmp(options.spacing, "file:", 5) == 0))
        return true;
    /* A spacing of any distribution may pass over any number of turns between on and off,
     * so a record of a few bytes could ask for years of work. Spacings of a gamma
     * distribution have mean 1, and the rate's own bound (MIN_ARRIVALS_PER_CYCLE) limits
     * their turns. */
    if (options.spacing && options.change && strcmp(options.change, "on-off") == 0)
        return true;
    if (!(*again = calloc(n + 1, sizeof **again)))
        return rec_fail_memory(err);
    status = draw(&options, *again, n, err);
    if (status > 0 && memcmp(*again, times, n * sizeof *times) != 0)
        status = 0;
    if (status > 0) {
        options.seed = *seed = options.seed + SERVE_SEED_DISTANCE;
        status = draw(&options, *again, n, err);
    }
    if (status <= 0) {
        free(*again);
        *again = NULL;
    }
    return status >= 0;
}

void
serve_arrivals_free(struct serve_arrivals *drawn)
{
    rec_arena_free(&drawn->arena);
    *drawn = (struct serve_arrivals){0};
}
