/*
 * The family of jobs: each done or block record is a case, and a cluster record says how
 * many servers there are. What a job does not say (a key is missing) is NAN, not 0, in
 * every sum and quantity made of it.
 */
#include "private.h"
#include "rampipe/net.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */

/* The keys, in the order in which sim writes them: so they are found without
 * searching. */
#define KEYS(X)                                                                          \
    X(DEGREE, "degree") X(STEPS, "steps") X(STEP, "step") X(COMM, "comm")                \
    X(COMP, "comp") X(SERVERS, "servers") X(BUSY, "busy") X(SEQUENTIAL, "sequential")    \
    X(DEADLINE, "deadline") X(MEMORY, "op_memory") X(DEP_BYTES, "dep_bytes")             \
    X(FLOW_BYTES, "flow_bytes") X(DEMAND_MEMORY, "demand_memory")                        \
    X(DEMAND_BYTES, "demand_bytes") X(ARRIVAL, "arrival") X(START, "start")              \
    X(PEAK_MEMORY, "peak_memory") X(BATCH, "batch") X(SEQUENCE, "sequence")              \
    X(FLOPS, "flops") X(PEAK, "peak") X(ALONE, "alone")                  \
    X(HEALTHY, "healthy")

/* The sums of jobs: when in its life a job adds to each, and whether it adds a rate, for
 * as long as it runs. A job that is blocked as unfinished has run until then; any other
 * blocked job never started. */
enum { AT_ARRIVAL, AT_START, AT_DONE, AT_BLOCK, WHILE_RUNNING, NMOMENTS };
#define SUMS(X)                                                                          \
    X(ARRIVED, AT_ARRIVAL, false)                                                        \
    X(STARTED, AT_START, false)                                                          \
    X(DONE, AT_DONE, false)                                                              \
    X(BLOCKED, AT_BLOCK, false)                                                          \
    X(JOB_SECONDS, WHILE_RUNNING, true)                                                  \
    X(SERVER_SECONDS, WHILE_RUNNING, true)                                               \
    X(MOUNTED_SECONDS, WHILE_RUNNING, true) /* server-seconds of jobs that say busy= */  \
    X(BUSY_SECONDS, WHILE_RUNNING, true)    /* server-seconds in which an op runs */     \
    X(COMPLETION_SECONDS, AT_DONE, false)                                                \
    X(DONE_SECONDS, AT_DONE, false)         /* from start to finish */                   \
    X(COMM_SECONDS, AT_DONE, false)                                                      \
    X(COMP_SECONDS, AT_DONE, false)                                                      \
    X(COMPUTED, AT_DONE, false)             /* bytes of memory, deps, flows */           \
    X(DEPS, AT_DONE, false)                                                              \
    X(FLOWS, AT_DONE, false)                                                             \
    X(DEMANDED, AT_DONE, false)             /* bytes of memory before partitioning */    \
    X(DEMANDED_DEPS, AT_DONE, false)        /* bytes of deps before partitioning */      \
    X(OFFERED, AT_ARRIVAL, false)           /* both, also of jobs that are blocked */    \
    X(SAMPLES, AT_DONE, false)              /* in all steps of a job */                  \
    X(TOKENS, AT_DONE, false)               /* in all steps of a job */                  \
    X(MODEL_FLOPS, AT_DONE, false)          /* in all steps of a job */                  \
    X(NO_SAMPLES, AT_DONE, false)           /* jobs whose samples are unknown */         \
    X(NO_TOKENS, AT_DONE, false)            /* jobs whose tokens are unknown */          \
    X(NO_FLOPS, AT_DONE, false)             /* jobs whose FLOPs are unknown */           \
    X(USED_FLOPS, AT_DONE, false)           /* FLOPs of jobs whose peak is known */      \
    X(PEAK_FLOPS, AT_DONE, false)           /* FLOPs that their servers could do */

#define QUANTITIES(X)                                                                    \
    X(COMPLETION, "completion time", "s", NULL)                                          \
    X(WAITING, "waiting time", "s", NULL)                                                \
    X(STEP, "step time", "s", "step")                                                    \
    X(SPEED_UP, "speed-up", "", NULL)                                                    \
    X(COMM, "comm overhead", "%", NULL)                                                  \
    X(COMP, "comp overhead", "%", NULL)                                                  \
    X(BUSY, "utilisation", "%", "busy")                                                  \
    X(SERVERS, "servers", "", "servers")                                                 \
    X(DEGREE, "degree", "", "degree")                                                    \
    X(SEQUENTIAL, "sequential time", "s", NULL)                                          \
    X(DEADLINE, "deadline", "s", "deadline")                                             \
    X(FRACTION, "deadline fraction", "", NULL)                                           \
    X(BLOCKED_SEQUENTIAL, "sequential time of blocked", "s", NULL)                       \
    X(BLOCKED_DEADLINE, "deadline of blocked", "s", NULL)                                \
    X(BLOCKED_FRACTION, "deadline fraction of blocked", "", NULL)                        \
    OPTIONAL_QUANTITIES(X)

/* Quantities that are shown only if a job has them. The names of rates are their units,
 * because TSV shows no units. */
#define OPTIONAL_QUANTITIES(X)                                                           \
    X(SAMPLE_RATE, "samples/s", "", NULL)                                                \
    X(TOKEN_RATE, "tokens/s", "", NULL)                                                  \
    X(FLOP_RATE, "FLOP/s", "", NULL)                                                     \
    X(MFU, "MFU", "%", NULL)                                                             \
    X(PEAK_MEMORY, "peak memory", "B", "peak_memory")                                    \
    X(MEMORY_SHARE, "peak memory share", "%", NULL)                                      \
    X(SLOWDOWN, "slowdown", "", NULL)                                                    \
    X(STRAGGLING, "slowdown by stragglers", "", NULL)

#define KEY(name, text) KEY_##name,
#define KEY_NAME(name, text) text,
#define SUM(name, moment, rate) name,
#define SUM_ROW(name, moment, rate) {moment, rate},
#define QUANTITY(name, text, unit, key) QUANTITY_##name,
#define QUANTITY_ROW(name, text, unit, key) {text, unit, key},

enum { KEYS(KEY) };
enum {
    SUMS(SUM)
    /* the terms that are derived */
    ONE,
    ENDED,           /* done or blocked */
    BYTES,           /* of memory and deps */
    DEMANDED_BYTES,
    HORIZON,         /* seconds */
    CLUSTER_SECONDS, /* of all its servers */
    GAPS,            /* between two arrivals */
    GAP_SECONDS,
    ALL_SAMPLES,     /* NAN if the samples of one job are unknown; likewise below */
    ALL_TOKENS,
    ALL_FLOPS,
    NTERMS
};
enum { QUANTITIES(QUANTITY) NQUANTITIES };
enum {
    NQUANTITIES_OPTIONAL = NQUANTITIES - QUANTITY_SAMPLE_RATE,
    NFIGURES_OPTIONAL = 4
};

static const char *const keys[] = {KEYS(KEY_NAME)};
static const struct metrics_sum sums[] = {SUMS(SUM_ROW)};
static const struct metrics_quantity quantities[] = {QUANTITIES(QUANTITY_ROW)};

static const struct metrics_quotient figures[] = {
    {"jobs", "", ARRIVED, ONE},
    {"started", "", STARTED, ONE},
    {"done", "", DONE, ONE},
    {"blocked", "", BLOCKED, ONE},
    {"blocking rate", "%", BLOCKED, ARRIVED},
    {"acceptance rate", "%", DONE, ARRIVED},
    {"horizon", "s", HORIZON, ONE},
    {"arrival rate", "/s", GAPS, GAP_SECONDS},
    {"offered load", "B/s", OFFERED, GAP_SECONDS},
    {"jobs running", "", JOB_SECONDS, HORIZON},
    {"servers in use", "", SERVER_SECONDS, HORIZON},
    {"mounted utilisation", "%", BUSY_SECONDS, MOUNTED_SECONDS},
    {"cluster utilisation", "%", BUSY_SECONDS, CLUSTER_SECONDS},
    {"comm overhead, time weighted", "%", COMM_SECONDS, DONE_SECONDS},
    {"comp overhead, time weighted", "%", COMP_SECONDS, DONE_SECONDS},
    {"compute throughput", "B/s", COMPUTED, HORIZON},
    {"dep throughput", "B/s", DEPS, HORIZON},
    {"flow throughput", "B/s", FLOWS, HORIZON},
    {"cluster throughput", "B/s", BYTES, HORIZON},
    {"demand compute throughput", "B/s", DEMANDED, HORIZON},
    {"demand dep throughput", "B/s", DEMANDED_DEPS, HORIZON},
    {"demand throughput", "B/s", DEMANDED_BYTES, HORIZON},
    {"sample throughput", "samples/s", ALL_SAMPLES, HORIZON},
    {"token throughput", "tokens/s", ALL_TOKENS, HORIZON},
    {"FLOP throughput", "FLOP/s", ALL_FLOPS, HORIZON},
    {"MFU, time weighted", "%", USED_FLOPS, PEAK_FLOPS},
};

static const struct metrics_quotient cause_figures[] = {
    {"blocked: ", "", ONE, ONE},
    {"blocking rate: ", "%", ONE, ARRIVED},
};
static const char *const causes[] = {"no_servers", "no_block", "no_memory", "deadline",
                                     "queue_full", "unfinished"};

static const struct metrics_show shown[] = {
    {"jobs", "jobs", "value"},
    {"done", "done", "value"},
    {"blocked", "blocking rate", "value"},
    {"completion", "completion time", "mean"},
    {"p95", "completion time", "p95"},
    {"speed-up", "speed-up", "mean"},
    {"comm", "comm overhead", "mean"},
    {"utilisation", "utilisation", "mean"},
    {"servers", "servers", "mean"},
    {"samples/s", "samples/s", "mean"},
    {"tokens/s", "tokens/s", "mean"},
    {"MFU", "MFU", "mean"},
};

static const struct metrics_quotient series[] = {
    {"arrived", "", ARRIVED, ONE},
    {"started", "", STARTED, ONE},
    {"done", "", DONE, ONE},
    {"blocked", "", BLOCKED, ONE},
    {"blocking_rate", "%", BLOCKED, ENDED},
    {"running", "", JOB_SECONDS, HORIZON},
    {"servers", "", SERVER_SECONDS, HORIZON},
    {"mounted_utilisation", "%", BUSY_SECONDS, MOUNTED_SECONDS},
    {"cluster_utilisation", "%", BUSY_SECONDS, CLUSTER_SECONDS},
    {"completion_mean", "s", COMPLETION_SECONDS, DONE},
    {"compute_throughput", "B/s", COMPUTED, HORIZON},
    {"dep_throughput", "B/s", DEPS, HORIZON},
    {"flow_throughput", "B/s", FLOWS, HORIZON},
};

/* clang-format on */

_Static_assert(NTERMS <= METRICS_MOST && NMOMENTS <= METRICS_MOMENTS, "room for all");

/* ---- the cluster --------------------------------------------------------- */

struct state {
    double servers; /* servers of the cluster; 0: unknown */
    double memory;  /* bytes of a server; 0: unknown, infinity: unlimited */
};

/* Takes the cluster. Of a kind that is not known, figures that need the number of servers
 * or their memory are NAN. */
static bool
note(void *kept, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    struct state *state = kept;
    struct net *net;
    state->servers = state->memory = 0;
    if (!net_is_kind(rec->field[1]))
        return true;
    if (!(net = net_read(reader, rec, err)))
        return false;
    state->servers = net_servers(net);
    state->memory = net_memory(net);
    net_free(net);
    return true;
}

/* ---- one job ------------------------------------------------------------- */

static void
set_moment(struct metrics_case *one, int moment, double from, double to)
{
    one->at[moment] = (struct metrics_span){from, to};
}

/* a + b; if one of them is unknown, the other. */
static double
plus(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Sets three quantities, from the index `first` on: the time of a job on one server, its
 * deadline, and the quotient of the two. */
static void
set_demand(struct metrics_case *one, size_t first, const double key[])
{
    double sequential = key[KEY_STEPS] * key[KEY_SEQUENTIAL];
    one->quantity[first] = sequential;
    one->quantity[first + 1] = key[KEY_DEADLINE];
    one->quantity[first + 2] = key[KEY_DEADLINE] / sequential;
}

/* Sets what a job computes, and which share that is of the peak of its servers. A number
 * of which a part is unknown is NAN. A job that takes no time has infinite rates, which
 * do not count. */
static void
set_training(const struct state *state, const double key[], struct metrics_case *one)
{
    double step = key[KEY_STEP], tokens = key[KEY_BATCH] * key[KEY_SEQUENCE];
    double peak = step * key[KEY_SERVERS] * key[KEY_PEAK], mfu = key[KEY_FLOPS] / peak;
    double share = key[KEY_PEAK_MEMORY] / state->memory;

    one->amount[SAMPLES] = key[KEY_STEPS] * key[KEY_BATCH];
    one->amount[TOKENS] = key[KEY_STEPS] * tokens;
    one->amount[MODEL_FLOPS] = key[KEY_STEPS] * key[KEY_FLOPS];
    one->amount[NO_SAMPLES] = isnan(one->amount[SAMPLES]);
    one->amount[NO_TOKENS] = isnan(one->amount[TOKENS]);
    one->amount[NO_FLOPS] = isnan(one->amount[MODEL_FLOPS]);
    one->amount[USED_FLOPS] = isfinite(mfu) ? one->amount[MODEL_FLOPS] : (double)NAN;
    one->amount[PEAK_FLOPS] = isfinite(mfu) ? key[KEY_STEPS] * peak : (double)NAN;
    one->quantity[QUANTITY_SAMPLE_RATE] = key[KEY_BATCH] / step;
    one->quantity[QUANTITY_TOKEN_RATE] = tokens / step;
    one->quantity[QUANTITY_FLOP_RATE] = key[KEY_FLOPS] / step;
    one->quantity[QUANTITY_MFU] = mfu;
    one->quantity[QUANTITY_MEMORY_SHARE] = isinf(state->memory) ? (double)NAN : share;
    one->quantity[QUANTITY_SLOWDOWN] = step / key[KEY_ALONE];
    one->quantity[QUANTITY_STRAGGLING] =
        (isnan(key[KEY_ALONE]) ? step : key[KEY_ALONE]) / key[KEY_HEALTHY];
}

/* A job that has finished. */
static bool
take_done(const struct rec_reader *reader, const struct rec *rec, const double key[],
          struct metrics_case *one, struct rec_error *err)
{
    double arrival, start, finish;
    if (!rec_get_number(reader, rec, 3, &arrival, err) ||
        !rec_get_later(reader, rec, 4, arrival, &start, err) ||
        !rec_get_later(reader, rec, 5, start, &finish, err))
        return false;
    set_moment(one, AT_ARRIVAL, arrival, arrival);
    set_moment(one, AT_START, start, start);
    set_moment(one, AT_DONE, finish, finish);
    set_moment(one, WHILE_RUNNING, start, finish);
    one->amount[COMPLETION_SECONDS] = finish - arrival;
    one->amount[DONE_SECONDS] = finish - start;
    one->amount[COMM_SECONDS] = key[KEY_STEPS] * key[KEY_COMM];
    one->amount[COMP_SECONDS] = key[KEY_STEPS] * key[KEY_COMP];
    one->amount[COMPUTED] = key[KEY_MEMORY];
    one->amount[DEPS] = key[KEY_DEP_BYTES];
    one->amount[FLOWS] = key[KEY_FLOW_BYTES];
    one->amount[DEMANDED] = key[KEY_DEMAND_MEMORY];
    one->amount[DEMANDED_DEPS] = key[KEY_DEMAND_BYTES];
    set_demand(one, QUANTITY_SEQUENTIAL, key);
    one->quantity[QUANTITY_COMPLETION] = finish - arrival;
    one->quantity[QUANTITY_WAITING] = start - arrival;
    one->quantity[QUANTITY_SPEED_UP] =
        one->quantity[QUANTITY_SEQUENTIAL] / (finish - arrival);
    one->quantity[QUANTITY_COMM] = key[KEY_COMM] / key[KEY_STEP];
    one->quantity[QUANTITY_COMP] = key[KEY_COMP] / key[KEY_STEP];
    return true;
}

/* A job that was blocked: before it started, or, with start=, while it ran. Without
 * arrival=, it arrived at the earliest time that its record has. */
static bool
take_block(const struct rec_reader *reader, const struct rec *rec, const double key[],
           struct metrics_case *one, struct rec_error *err)
{
    double time, arrival, start = key[KEY_START];
    if (!rec_get_number(reader, rec, 2, &time, err))
        return false;
    arrival = isnan(key[KEY_ARRIVAL]) ? fmin(time, start) : key[KEY_ARRIVAL];
    set_moment(one, AT_ARRIVAL, arrival, arrival);
    set_moment(one, AT_START, start, start);
    set_moment(one, AT_BLOCK, time, time);
    set_moment(one, WHILE_RUNNING, start, time);
    set_demand(one, QUANTITY_BLOCKED_SEQUENTIAL, key);
    one->label = rec->field[3];
    return true;
}

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    double end, start;
    if (!(rec->type == REC_DONE ? take_done(reader, rec, key, one, err)
                                : take_block(reader, rec, key, one, err)))
        return false;
    end = fmax(one->at[AT_DONE].to, one->at[AT_BLOCK].to);
    start = fmin(one->at[AT_START].from, end); /* fmin() ignores NAN: it never started */
    if (one->at[AT_ARRIVAL].from > start || one->at[AT_START].from > end)
        return rec_reader_fail(reader, err,
                               "a job arrives, starts and finishes in this order");
    set_training(kept, key, one);
    one->amount[SERVER_SECONDS] = key[KEY_SERVERS];
    one->amount[MOUNTED_SECONDS] = isnan(key[KEY_BUSY]) ? (double)NAN : key[KEY_SERVERS];
    one->amount[BUSY_SECONDS] = key[KEY_BUSY] * key[KEY_SERVERS];
    one->amount[OFFERED] = plus(key[KEY_DEMAND_MEMORY], key[KEY_DEMAND_BYTES]);
    return true;
}

/* ---- groups -------------------------------------------------------------- */

static bool
name_group(const struct rec *rec, const double key[], const char *by,
           char text[METRICS_NAME_MAX], struct rec_str *name)
{
    bool done = rec->type == REC_DONE;
    double fraction;

    if (strcmp(by, "cause") == 0)
        *name = done ? rec_str("done") : rec->field[3];
    else if (strcmp(by, "graph") == 0 && done)
        *name = rec->field[2];
    else if (strcmp(by, "deadline") == 0) {
        fraction = key[KEY_DEADLINE] / (key[KEY_STEPS] * key[KEY_SEQUENTIAL]);
        if (isnan(fraction))
            return true;
        snprintf(text, METRICS_NAME_MAX, "%.3g", fraction);
        *name = rec_str(text);
    } else
        return false;
    return true;
}

/* A sum over the jobs that are done; NAN if `unknown` of them do not have the amount. */
static double
known(double sum, double unknown, double done)
{
    return done > 0 && unknown == 0 ? sum : (double)NAN;
}

static void
derive(const void *kept, const struct metrics_span seen[], double seconds, bool part,
       double term[])
{
    const struct state *state = kept;
    (void)part;
    term[ENDED] = term[DONE] + term[BLOCKED];
    term[BYTES] = plus(term[COMPUTED], term[DEPS]);
    term[DEMANDED_BYTES] = plus(term[DEMANDED], term[DEMANDED_DEPS]);
    term[HORIZON] = seconds;
    term[CLUSTER_SECONDS] = state->servers * seconds;
    term[ALL_SAMPLES] = known(term[SAMPLES], term[NO_SAMPLES], term[DONE]);
    term[ALL_TOKENS] = known(term[TOKENS], term[NO_TOKENS], term[DONE]);
    term[ALL_FLOPS] = known(term[MODEL_FLOPS], term[NO_FLOPS], term[DONE]);
    term[GAPS] = term[ARRIVED] - 1;
    term[GAP_SECONDS] = seen[AT_ARRIVAL].to - seen[AT_ARRIVAL].from;
}

static const struct metrics_record cases[] = {{REC_DONE, "job"}, {REC_BLOCK, "job"}};
static const enum rec_type others[] = {REC_CLUSTER};

const struct metrics_family metrics_jobs = {
    METRICS_NEEDED("jobs", cases, keys, sums, quantities, figures, shown, take),
    .others = METRICS_LIST(others),
    .noptional_figures = NFIGURES_OPTIONAL,
    .noptional_quantities = NQUANTITIES_OPTIONAL,
    .label_figures = METRICS_LIST(cause_figures),
    .labels = METRICS_LIST(causes),
    .series = METRICS_LIST(series),
    .state_size = sizeof(struct state),
    .note = note,
    .name_group = name_group,
    .derive = derive,
};
