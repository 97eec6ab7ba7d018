/*
 * The family of training runs on instances that may be preempted: each trained record is
 * a case, and the account records before it say how its time was spent. Value is
 * throughput per cost rate; "on-demand" figures are those of instances that are never
 * preempted.
 */
#include "private.h"

#include <math.h>

/* clang-format off */

#define KEYS(X)                                                                          \
    X(SAMPLES, "samples") X(TARGET, "target") X(PRICE, "price")                          \
    X(ON_DEMAND_PRICE, "on_demand_price")                                                \
    X(ON_DEMAND_INSTANCES, "on_demand_instances") X(ON_DEMAND_STEP, "on_demand_step")

#define QUANTITIES(X)                                                                    \
    X(STEPS, "steps", "", NULL)                                                          \
    X(TIME, "time", "s", NULL)                                                           \
    X(USEFUL, "useful share", "%", NULL)                                                 \
    X(WASTED, "wasted share", "%", NULL)                                                 \
    X(RECONFIGURING, "reconfiguring share", "%", NULL)                                   \
    X(STALLED, "stalled share", "%", NULL)                                               \
    X(IDLE, "idle share", "%", NULL)                                                     \
    X(GOODPUT, "goodput", "steps/h", NULL)                                               \
    X(THROUGHPUT, "throughput", "samples/s", NULL)                                       \
    X(INSTANCES, "instances", "", NULL)                                                  \
    X(COST, "cost", "US$", NULL)                                                         \
    X(COST_RATE, "cost rate", "US$/h", NULL)                                             \
    X(VALUE, "value", "samples/s/(US$/h)", NULL)                                         \
    X(ON_DEMAND_THROUGHPUT, "on-demand throughput", "samples/s", NULL)                   \
    X(ON_DEMAND_COST_RATE, "on-demand cost rate", "US$/h", NULL)                         \
    X(ON_DEMAND_VALUE, "on-demand value", "samples/s/(US$/h)", NULL)                     \
    X(AGAINST_THROUGHPUT, "throughput / on-demand", "", NULL)                            \
    X(AGAINST_COST_RATE, "cost rate / on-demand", "", NULL)                              \
    X(AGAINST_VALUE, "value / on-demand", "", NULL)                                      \
    X(PREEMPTED, "preempted instances", "", "preempted")                                 \
    X(LOST_ACTIVE, "preempted while active", "", "lost_active")                          \
    X(ADDED, "added instances", "", "added")                                             \
    X(REFUSED, "refused instances", "", "refused")                                       \
    X(LOST, "lost steps", "", "lost")                                                    \
    X(RECONFIGURATIONS, "reconfigurations", "", "reconfigurations")                      \
    X(CHECKPOINTS, "checkpoints", "", "checkpoints")                                     \
    X(RENDEZVOUS, "rendezvous", "", "rendezvous")                                        \
    X(FATAL, "fatal failures", "", "fatal")                                              \
    X(DEGRADED, "degraded time", "s", "degraded")                                        \
    X(LIFETIME, "lifetime of an instance", "s", "lifetime_mean")                         \
    X(SPACING, "time between preemptions", "s", "preemption_mean")                       \
    X(PUBLISHED_INSTANCES, "published instances", "", "average_instances")               \
    X(PUBLISHED_PERFORMANCE, "published performance", "samples/s",                       \
      "average_performance")                                                             \
    X(PUBLISHED_COST, "published cost", "US$/h", "average_cost")                         \
    X(PUBLISHED_VALUE, "published value", "samples/s/(US$/h)", "average_value")

#define KEY(name, text) KEY_##name,
#define KEY_NAME(name, text) text,
#define QUANTITY(name, text, unit, key) name,
#define QUANTITY_ROW(name, text, unit, key) {text, unit, key},

enum { KEYS(KEY) };
enum { QUANTITIES(QUANTITY) };
enum { AT_END };
enum { RUNS, SHORT, NSUMS, ONE = NSUMS };

static const char *const keys[] = {KEYS(KEY_NAME)};
static const struct metrics_sum sums[NSUMS] = {{AT_END, false}, {AT_END, false}};
static const struct metrics_quantity quantities[] = {QUANTITIES(QUANTITY_ROW)};

static const struct metrics_quotient figures[] = {
    {"runs", "", RUNS, ONE},
    {"runs short of their steps", "", SHORT, ONE},
};

static const struct metrics_show shown[] = {
    {"runs", "runs", "value"},
    {"steps", "steps", "mean"},
    {"goodput", "goodput", "mean"},
    {"useful share", "useful share", "mean"},
    {"wasted share", "wasted share", "mean"},
    {"idle share", "idle share", "mean"},
    {"throughput", "throughput", "mean"},
    {"cost rate", "cost rate", "mean"},
    {"value", "value", "mean"},
};

/* clang-format on */

/* ---- one run ------------------------------------------------------------- */

enum { NSTATES = 4 };
static const char *const states[NSTATES] = {"useful", "wasted", "reconfiguring",
                                            "stalled"};

bool
metrics_accounts_take(struct metrics_accounts *accounts, const struct rec_reader *reader,
                      const struct rec *rec, size_t *state, struct rec_error *err)
{
    if (rec->type == REC_TRAINED) {
        accounts->some = accounts->some || accounts->seen;
        accounts->none = accounts->none || !accounts->seen;
        accounts->seen = 0;
        return !(accounts->some && accounts->none) ||
               rec_reader_fail(reader, err,
                               "one run has account records, another run has none");
    }
    if (rec->type != REC_ACCOUNT)
        return true;
    for (*state = 0; *state < NSTATES; ++*state)
        if (rec_str_is(rec->field[1], states[*state]))
            break;
    if (*state == NSTATES)
        return rec_bad_field(reader, rec, 1, err);
    if (accounts->seen >> *state & 1)
        return rec_reader_fail(reader, err, "account '%s' is there twice",
                               states[*state]);
    accounts->seen |= 1u << *state;
    return true;
}

/* The accounts of the run being read, in the order of the quantities USEFUL ...
 * STALLED. */
struct state {
    double seconds[NSTATES], instance_seconds[NSTATES];
    struct metrics_accounts accounts;
};

static bool
note(void *kept, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    struct state *state = kept;
    size_t i;
    return metrics_accounts_take(&state->accounts, reader, rec, &i, err) &&
           rec_get_number(reader, rec, 2, &state->seconds[i], err) &&
           rec_get_number(reader, rec, 3, &state->instance_seconds[i], err);
}

/* a / b; NAN unless b > 0. */
static double
ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

/* Computes the quantities of a run. A quantity is NAN if a term of it is unknown. */
static void
derive_values(const struct state *state, double steps, double seconds, const double key[],
              double value[])
{
    double hours = seconds / 3600, instance_seconds = 0;
    value[STEPS] = steps;
    value[TIME] = seconds;
    for (size_t i = 0; i < METRICS_COUNT(state->seconds); i++) {
        value[USEFUL + i] =
            state->accounts.some ? ratio(state->seconds[i], seconds) : (double)NAN;
        instance_seconds +=
            state->accounts.some ? state->instance_seconds[i] : (double)NAN;
    }
    value[IDLE] = value[RECONFIGURING] + value[STALLED];
    value[GOODPUT] = ratio(steps, hours);
    value[THROUGHPUT] = ratio(steps * key[KEY_SAMPLES], seconds);
    value[INSTANCES] = ratio(instance_seconds, seconds);
    value[COST] = instance_seconds / 3600 * key[KEY_PRICE];
    value[COST_RATE] = ratio(value[COST], hours);
    value[VALUE] = ratio(value[THROUGHPUT], value[COST_RATE]);
    value[ON_DEMAND_THROUGHPUT] = ratio(key[KEY_SAMPLES], key[KEY_ON_DEMAND_STEP]);
    value[ON_DEMAND_COST_RATE] = key[KEY_ON_DEMAND_INSTANCES] * key[KEY_ON_DEMAND_PRICE];
    value[ON_DEMAND_VALUE] =
        ratio(value[ON_DEMAND_THROUGHPUT], value[ON_DEMAND_COST_RATE]);
    value[AGAINST_THROUGHPUT] = ratio(value[THROUGHPUT], value[ON_DEMAND_THROUGHPUT]);
    value[AGAINST_COST_RATE] = ratio(value[COST_RATE], value[ON_DEMAND_COST_RATE]);
    value[AGAINST_VALUE] = ratio(value[VALUE], value[ON_DEMAND_VALUE]);
}

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    struct state *state = kept;
    double start, end;
    uint64_t steps;
    size_t i;

    if (!metrics_accounts_take(&state->accounts, reader, rec, &i, err) ||
        !rec_get_number(reader, rec, 2, &start, err) ||
        !rec_get_later(reader, rec, 3, start, &end, err) ||
        !rec_get_count(reader, rec, 4, &steps, err))
        return false;
    one->at[AT_END] = (struct metrics_span){end, end};
    one->amount[SHORT] = (double)steps < key[KEY_TARGET]; /* 0 without target=, NAN */
    derive_values(state, (double)steps, end - start, key, one->quantity);
    return true;
}

static const struct metrics_record cases[] = {{REC_TRAINED, "run"}};
static const enum rec_type others[] = {REC_ACCOUNT};
static const struct metrics_group groups[] = {{"model", 1}};

const struct metrics_family metrics_training = {
    METRICS_NEEDED("training runs", cases, keys, sums, quantities, figures, shown, take),
    .others = METRICS_LIST(others),
    .independent = true,
    .groups = METRICS_LIST(groups),
    .state_size = sizeof(struct state),
    .note = note,
};
