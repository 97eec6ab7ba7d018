/*
 * The family of queries of a serving pipeline. Cases are queries (reply and drop records)
 * and stages (served records, which say what a stage did in a whole run). Figures of
 * queries and of stages share one table; where a group has no cases of one sort, figures
 * of that sort are NAN.
 */
#include "private.h"

#include <math.h>

/* clang-format off */

#define KEYS(X)                                                                          \
    X(QUERIES, "queries") X(BATCHES, "batches") X(BUSY, "busy") X(WAITING, "waiting")    \
    X(LONGEST, "longest") X(REPLICAS, "replicas") X(PRICE, "price")    \
    X(STATIC_PEAK, "static_peak")

/* A query ends with a reply, or when it is dropped. What a stage did is added when it
 * ends. */
enum { AT_ARRIVAL, AT_REPLY, AT_DROP, AT_END, IN_FLIGHT, WHILE_SERVED, NMOMENTS };
#define SUMS(X)                                                                          \
    X(ARRIVED, AT_ARRIVAL, false)                                                        \
    X(REPLIED, AT_REPLY, false)                                                          \
    X(DROPPED, AT_DROP, false)                                                           \
    X(ENDED, AT_END, false)                                                              \
    X(MET, AT_END, false)                     /* replies within the objective */         \
    X(LATENCY_SECONDS, AT_REPLY, false)                                                  \
    X(QUERY_SECONDS, IN_FLIGHT, true)                                                    \
    X(STAGES, WHILE_SERVED, false)                                                       \
    X(PRICED, WHILE_SERVED, false)            /* stages whose price is known */          \
    X(VISITS, WHILE_SERVED, false)                                                       \
    X(BATCHES, WHILE_SERVED, false)                                                      \
    X(QUEUED_SECONDS, WHILE_SERVED, false)    /* of queries */                           \
    X(BUSY_SECONDS, WHILE_SERVED, false)      /* of replicas */                          \
    X(REPLICA_SECONDS, WHILE_SERVED, false)                                              \
    X(COST, WHILE_SERVED, false)              /* US$ */                                  \
    X(PEAK_COST, WHILE_SERVED, false)         /* of a static plan for the peak */

#define QUANTITIES(X)                                                                    \
    X(LATENCY, "latency", "s", NULL)                                                     \
    X(LONGEST, "longest queue", "", NULL)

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
    QUERIES,         /* 1 if the group has queries, else NAN */
    HORIZON,         /* seconds */
    GAPS,            /* between two arrivals */
    GAP_SECONDS,
    SERVED_SECONDS,  /* from the start of the first stage to the end of the last */
    SERVED_HOURS,
    REPLIED_MILLIONS,
    NTERMS
};
enum { QUANTITIES(QUANTITY) };

static const char *const keys[] = {KEYS(KEY_NAME)};
static const struct metrics_sum sums[] = {SUMS(SUM_ROW)};
static const struct metrics_quantity quantities[] = {QUANTITIES(QUANTITY_ROW)};

static const struct metrics_quotient figures[] = {
    {"queries", "", ARRIVED, ONE},
    {"replied", "", REPLIED, ONE},
    {"dropped", "", DROPPED, ONE},
    {"drop rate", "%", DROPPED, ARRIVED},
    {"SLO attainment", "%", MET, ENDED},
    {"horizon", "s", HORIZON, ONE},
    {"arrival rate", "/s", GAPS, GAP_SECONDS},
    {"throughput", "/s", REPLIED, HORIZON},
    {"goodput", "/s", MET, HORIZON},
    {"queries in flight", "", QUERY_SECONDS, HORIZON},
    {"stages", "", STAGES, ONE},
    {"visits", "", VISITS, ONE},
    {"batches", "", BATCHES, ONE},
    {"batch size", "", VISITS, BATCHES},
    {"queue length", "", QUEUED_SECONDS, SERVED_SECONDS},
    {"wait in queue", "s", QUEUED_SECONDS, VISITS},
    {"replicas", "", REPLICA_SECONDS, SERVED_SECONDS},
    {"utilisation", "%", BUSY_SECONDS, REPLICA_SECONDS},
    {"cost rate", "US$/h", COST, SERVED_HOURS},
    {"cost", "US$", COST, ONE},
    {"static peak cost rate", "US$/h", PEAK_COST, SERVED_HOURS},
    {"cost of a million replies", "US$", COST, REPLIED_MILLIONS},
};

static const struct metrics_quotient stage_figures[] = {
    {"dropped: ", "", ONE, QUERIES},
    {"drop rate: ", "%", ONE, ARRIVED},
};

/* Columns are about stages, because --by stage is the usual way to group. */
static const struct metrics_show shown[] = {
    {"visits", "visits", "value"},
    {"batch size", "batch size", "value"},
    {"queue", "queue length", "value"},
    {"longest", "longest queue", "max"},
    {"wait", "wait in queue", "value"},
    {"utilisation", "utilisation", "value"},
    {"replicas", "replicas", "value"},
    {"cost rate", "cost rate", "value"},
    {"cost", "cost", "value"},
};

static const struct metrics_quotient series[] = {
    {"arrived", "", ARRIVED, ONE},
    {"replied", "", REPLIED, ONE},
    {"dropped", "", DROPPED, ONE},
    {"latency_mean", "s", LATENCY_SECONDS, REPLIED},
    {"slo_attainment", "%", MET, ENDED},
    {"in_flight", "", QUERY_SECONDS, HORIZON},
};

/* clang-format on */

_Static_assert(NTERMS <= METRICS_MOST && NMOMENTS <= METRICS_MOMENTS, "room for all");

/* ---- one query, one stage ------------------------------------------------ */

static bool
take_query(const struct rec_reader *reader, const struct rec *rec,
           struct metrics_case *one, struct rec_error *err)
{
    bool replied = rec->type == REC_REPLY;
    struct metrics_span span;
    double latency;

    if (!rec_get_number(reader, rec, 2, &span.from, err) ||
        !rec_get_later(reader, rec, 3, span.from, &span.to, err))
        return false;
    latency = span.to - span.from;
    one->at[AT_ARRIVAL] = (struct metrics_span){span.from, span.from};
    one->at[AT_END] = (struct metrics_span){span.to, span.to};
    one->at[replied ? AT_REPLY : AT_DROP] = one->at[AT_END];
    one->at[IN_FLIGHT] = span;
    one->amount[LATENCY_SECONDS] = latency;
    one->amount[MET] =
        isnan(one->objective) ? (double)NAN : replied && latency <= one->objective;
    if (replied)
        one->quantity[QUANTITY_LATENCY] = latency;
    else
        one->label = rec->field[4];
    return true;
}

static bool
take_stage(const struct rec_reader *reader, const struct rec *rec, const double key[],
           struct metrics_case *one, struct rec_error *err)
{
    struct metrics_span span;
    if (!rec_get_number(reader, rec, 2, &span.from, err) ||
        !rec_get_later(reader, rec, 3, span.from, &span.to, err))
        return false;
    one->at[WHILE_SERVED] = span;
    one->amount[PRICED] = !isnan(key[KEY_PRICE]);
    one->amount[VISITS] = key[KEY_QUERIES];
    one->amount[BATCHES] = key[KEY_BATCHES];
    one->amount[QUEUED_SECONDS] = key[KEY_WAITING];
    one->amount[BUSY_SECONDS] = key[KEY_BUSY];
    one->amount[REPLICA_SECONDS] = key[KEY_REPLICAS];
    one->amount[COST] = key[KEY_REPLICAS] / 3600 * key[KEY_PRICE];
    one->amount[PEAK_COST] = key[KEY_STATIC_PEAK] * (span.to - span.from) / 3600;
    one->quantity[QUANTITY_LONGEST] = key[KEY_LONGEST];
    return true;
}

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    (void)kept;
    return rec->type == REC_SERVED ? take_stage(reader, rec, key, one, err)
                                   : take_query(reader, rec, one, err);
}

/* A record without the key is in the total only: a query has no hardware, and passes
 * through several stages. */
static bool
name_group(const struct rec *rec, const double key[], const char *by,
           char text[METRICS_NAME_MAX], struct rec_str *name)
{
    (void)key, (void)text;
    *name = (struct rec_str){NULL, 0};
    if (strcmp(by, "stage") != 0)
        rec_find_key(rec, by, name);
    else if (rec->type == REC_SERVED)
        *name = rec->field[1];
    return true;
}

/* Makes sums unknown that no record of the group speaks of: a group of stages has no
 * queries of its own, and 0 would be wrong. The cost is unknown if the price of one stage
 * is, since a part of a cost would look like the whole. */
static void
forget_unsaid(bool part, double term[])
{
    bool stages = term[STAGES] > 0, queries = term[ENDED] > 0 || !part;
    for (int i = ARRIVED; i <= QUERY_SECONDS && !queries; i++)
        term[i] = NAN;
    for (int i = VISITS; i <= PEAK_COST && !stages; i++)
        term[i] = NAN;
    if (term[PRICED] < term[STAGES])
        term[COST] = NAN;
    term[QUERIES] = queries ? 1 : (double)NAN;
}

static void
derive(const void *kept, const struct metrics_span seen[], double seconds, bool part,
       double term[])
{
    (void)kept;
    forget_unsaid(part, term);
    term[HORIZON] = seconds;
    term[GAPS] = term[ARRIVED] - 1;
    term[GAP_SECONDS] = seen[AT_ARRIVAL].to - seen[AT_ARRIVAL].from;
    term[SERVED_SECONDS] = seen[WHILE_SERVED].to - seen[WHILE_SERVED].from;
    term[SERVED_HOURS] = term[SERVED_SECONDS] / 3600;
    term[REPLIED_MILLIONS] = term[REPLIED] / 1e6;
}

static const struct metrics_record cases[] = {
    {REC_REPLY, "query"}, {REC_DROP, "query"}, {REC_SERVED, "stage"}};

const struct metrics_family metrics_queries = {
    METRICS_NEEDED("queries", cases, keys, sums, quantities, figures, shown, take),
    .label_figures = METRICS_LIST(stage_figures),
    .series = METRICS_LIST(series),
    .objective = true /* for latency */,
    .name_group = name_group,
    .derive = derive,
};
