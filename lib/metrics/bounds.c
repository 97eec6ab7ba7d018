/*
 * The family of bounds on blocking: each bound record is a case, and a run of
 * its own.
 */
#include "private.h"

/* clang-format off */

#define QUANTITIES(X)                                                                    \
    X(JOBS, "jobs", "", NULL)                                                            \
    X(ABLE, "jobs able to start alone", "", "able")                                      \
    X(ACCEPTED, "accepted jobs at most", "", NULL)                                       \
    X(BLOCKING, "blocking rate at least", "%", NULL)                                     \
    X(SERVERS, "servers", "", "servers")                                                 \
    X(WHOLE, "accepted whole jobs at most", "", NULL)                                    \
    X(WHOLE_BLOCKING, "blocking rate of whole jobs at least", "%", NULL)                 \
    X(GAP, "gap of whole jobs", "", "gap")                                               \
    X(REACHED, "jobs that a schedule starts", "", NULL)                                  \
    X(REACHED_BLOCKING, "blocking rate of a schedule", "%", NULL)

#define QUANTITY(name, text, unit, key) name,
#define QUANTITY_ROW(name, text, unit, key) {text, unit, key},

enum { QUANTITIES(QUANTITY) };
/* the quantities from WHOLE on are optional */
enum { OPTIONAL = REACHED_BLOCKING - WHOLE + 1 };
enum { KEY_WHOLE, KEY_REACHED };
static const char *const keys[] = {"whole", "reached"};
enum { AT_END };
enum { RUNS, NSUMS, ONE = NSUMS };

static const struct metrics_sum sums[NSUMS] = {{AT_END, false}};
static const struct metrics_quantity quantities[] = {QUANTITIES(QUANTITY_ROW)};
static const struct metrics_quotient figures[] = {{"runs", "", RUNS, ONE}};

static const struct metrics_show shown[] = {
    {"runs", "runs", "value"},
    {"jobs", "jobs", "mean"},
    {"accepted at most", "accepted jobs at most", "mean"},
    {"blocking at least", "blocking rate at least", "mean"},
    {"whole at least", "blocking rate of whole jobs at least", "mean"},
    {"of a schedule", "blocking rate of a schedule", "mean"},
};

/* clang-format on */

bool
metrics_bound_read(const struct rec_reader *reader, const struct rec *rec, uint64_t *jobs,
                   double *accepted, struct rec_error *err)
{
    double whole, reached = 0;
    *jobs = 0;
    *accepted = 0;
    if (rec->type != REC_BOUND)
        return true;
    if (!rec_get_count(reader, rec, 1, jobs, err) ||
        !rec_get_number(reader, rec, 2, accepted, err))
        return false;
    whole = *accepted;
    if (!rec_key_number(reader, rec, "whole", &whole, err) ||
        !rec_key_number(reader, rec, "reached", &reached, err))
        return false;
    if (*accepted > (double)*jobs)
        return rec_reader_fail(reader, err, "more jobs are accepted than arrive");
    return (whole <= *accepted && reached <= whole) ||
           rec_reader_fail(reader, err,
                           "a schedule starts more jobs than a bound allows: right is "
                           "reached <= whole <= ACCEPTED");
}

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    uint64_t jobs;
    double accepted;
    (void)kept;
    if (!metrics_bound_read(reader, rec, &jobs, &accepted, err))
        return false;
    one->at[AT_END] = (struct metrics_span){0, 0};
    one->quantity[JOBS] = (double)jobs;
    one->quantity[ACCEPTED] = accepted;
    one->quantity[WHOLE] = key[KEY_WHOLE];
    one->quantity[REACHED] = key[KEY_REACHED];
    if (jobs > 0) {
        one->quantity[BLOCKING] = 1 - accepted / (double)jobs;
        one->quantity[WHOLE_BLOCKING] = 1 - key[KEY_WHOLE] / (double)jobs;
        one->quantity[REACHED_BLOCKING] = 1 - key[KEY_REACHED] / (double)jobs;
    }
    return true;
}

static const struct metrics_record cases[] = {{REC_BOUND, "run"}};

const struct metrics_family metrics_bounds = {
    METRICS_NEEDED("bounds", cases, keys, sums, quantities, figures, shown, take),
    .noptional_quantities = OPTIONAL,
    .independent = true,
};
