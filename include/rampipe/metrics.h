/*
 * rampipe/metrics.h - results reduced to figures.
 *
 *     records --- family --- cases --- groups --- figures, distributions
 *            (jobs, training,      |
 *             queries)             |
 *                              intervals (series)
 *
 * A family of results is a row of a table: the records it takes, what one case (a job, a
 * training run, a query) says, and the figures that many have. A reducer takes one
 * family's records and keeps, for all cases and for each group of them, sums and
 * distributions. Every figure of the family is always there, in the same order: 0 is 0,
 * and what has no value (the mean of nothing, a key that no record has) is NAN.
 *
 * Memory does not grow with the number of cases: a distribution keeps its values, and
 * percentiles are exact (linear interpolation, type 7 of Hyndman and Fan), up to
 * METRICS_EXACT of them; beyond, it keeps counts in buckets of METRICS_ERROR relative
 * width (Masson et al., "DDSketch", 2019), while count, mean, deviation, least and most
 * stay exact.
 */
#ifndef RAMPIPE_METRICS_H
#define RAMPIPE_METRICS_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

#define METRICS_EXACT 262144
#define METRICS_ERROR 2e-4

/* ---- distributions ------------------------------------------------------- */

/** Values >= 0. Starts as {0}. */
struct metrics_dist {
    uint64_t n;
    double sum, mean;      /* added up in order, as avg() of SQL does: the same double */
    double middle, square; /* Welford's running mean and sum of squared deviations */
    double least, most;
    double *value; /* the values themselves, while n <= METRICS_EXACT */
    size_t room;
    bool sorted;
    uint64_t *bucket; /* then counts: bucket[i] is of index first + i */
    int64_t first;
    size_t nbuckets, bucket_room;
    uint64_t zeros;
};

bool metrics_dist_add(struct metrics_dist *dist, double value,
                      struct rec_error *err) REC_MUST_CHECK;
/** Sample standard deviation; NAN for fewer than two values. */
double metrics_dist_deviation(const struct metrics_dist *dist);
/** The p-quantile, 0 <= p <= 1; NAN if there are no values. */
double metrics_dist_quantile(struct metrics_dist *dist, double p);

/** A bin of a histogram: n values above lower, or equal if it is the first, up to
 * upper. */
struct metrics_bin {
    double lower, upper;
    uint64_t n;
};

/**
 * Divides the values into up to n > 0 bins whose edges have the same ratio, from the
 * least value above 0 to the most; a bin before them, from 0 to 0, has the zeros, if
 * there are any. Counts are exact as quantiles are. *bin is the caller's to free; *nbins
 * 0: no values.
 */
bool metrics_dist_bins(struct metrics_dist *dist, size_t n, struct metrics_bin **bin,
                       size_t *nbins, struct rec_error *err) REC_MUST_CHECK;
void metrics_dist_free(struct metrics_dist *dist);

/* ---- families and reducers ----------------------------------------------- */

/** What is common to all results of a kind; a row of the table in lib/metrics. */
struct metrics_family;

/** The families, i = 0, 1, ...; NULL: there are no more. */
const struct metrics_family *metrics_family(size_t i);
/** What its cases are called: "jobs". */
const char *metrics_family_name(const struct metrics_family *family);
/** The records that are its cases, i = 0, 1, ...; NULL: there are no more. */
const char *metrics_family_record(const struct metrics_family *family, size_t i);

/** May its cases have an objective? */
bool metrics_has_objective(const struct metrics_family *family);

/** The accounts of training runs, as they come. Starts as {0}. */
struct metrics_accounts {
    unsigned seen;   /* of the run being read: bit i for the i-th state */
    bool some, none; /* a run had them, had none */
};

/** Takes an account record, or a trained record, which ends its run: a run has an account
 * at most once, and of several runs all have some or none has. *state is the number of an
 * account's state, in the order of its row's text. Others: true. */
bool metrics_accounts_take(struct metrics_accounts *accounts,
                           const struct rec_reader *reader, const struct rec *rec,
                           size_t *state, struct rec_error *err) REC_MUST_CHECK;

/** Reads a bound record, of which no more jobs are accepted than arrive. Others: true,
 * and both are 0. */
bool metrics_bound_read(const struct rec_reader *reader, const struct rec *rec,
                        uint64_t *jobs, double *accepted,
                        struct rec_error *err) REC_MUST_CHECK;

struct metrics;

/**
 * An empty reducer. `by`: cases with the same value of this key are a group, where the
 * family may know more (jobs: graph, cause, deadline as a fraction; training: model;
 * queries: stage); NULL: only the total. Borrowed. `seconds` > 0: the width of the
 * intervals of a series, if the family has one. Jobs of several streams (of a
 * concatenation, or files) must be of one cluster, end once, and not before those of the
 * streams before; with `runs` each stream is a run of its own, and what comes out are the
 * distributions of its figures over the runs (of those that have the group).
 */
struct metrics *metrics_new(const struct metrics_family *family, const char *by,
                            double seconds, bool runs,
                            struct rec_error *err) REC_MUST_CHECK;
/** Does it reduce runs? Not if it was not asked to, or each case is a run. */
bool metrics_has_runs(const struct metrics *metrics);
/** Did metrics_take() fail because the streams are not of one run? */
bool metrics_mixed(const struct metrics *metrics);
/** Sets the time within which a case should be done (a query answered), seconds. To be
 * called before records are taken. Without it, or with NAN, figures of attainment are NAN. */
void metrics_set_objective(struct metrics *metrics, double seconds);
/** A limit on the intervals of the series; without this call it is a million. */
void metrics_limit(struct metrics *metrics, struct rec_limit limit);
/** Before records are taken: the stream is a prediction of what the family's cases are,
 * not they. False: of this family nothing but results predicts them. */
bool metrics_predict(struct metrics *metrics);
/** Before records are taken: the main quantity of the family, its first, is kept for each
 * case, by the name in the record's first field, for metrics_pair(); of cases that are
 * drawn alike, which have no names, nothing. */
bool metrics_keep(struct metrics *metrics, struct rec_error *err) REC_MUST_CHECK;
/** Takes a record: 1 it is a case, 0 it is none, or none of the family's, -1 *err.
 * REC_USAGE: there would be too many intervals. */
int metrics_take(struct metrics *metrics, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** All records are taken: puts the groups in order of name, numbers by value and before
 * others; the total stays first. */
bool metrics_end(struct metrics *metrics, struct rec_error *err) REC_MUST_CHECK;
void metrics_free(struct metrics *metrics);

/* ---- what comes out, after metrics_end() --------------------------------- */

const struct metrics_family *metrics_family_of(const struct metrics *metrics);
/** Has a record come that only this family has, and `other` has taken no record that this
 * family has not taken, too? Then the stream is of this family. */
bool metrics_covers(const struct metrics *metrics, const struct metrics *other);
/** How many cases, or runs, it took; 0: the stream has no results of its family. */
uint64_t metrics_cases(const struct metrics *metrics);
/** Groups, the total among them, which is group 0 and called "all". */
size_t metrics_ngroups(const struct metrics *metrics);
const char *metrics_group_name(const struct metrics *metrics, size_t group);

/** Rows of labels that the family does not know (causes of blocking): each has figures in
 * each group, so that they may be many more than the cases. */
double metrics_label_rows(const struct metrics *metrics);

/** A number with its name and unit: "", "s", "B", "B/s", "/s", "%" (the value is the
 * share: 0.5 is 50 %), "US$", ... */
struct metrics_value {
    const char *name, *unit;
    double value;
};

#define METRICS_STATISTICS 9

/** A figure of a group, or the distribution of a quantity over its cases. */
struct metrics_figure {
    const char *name, *unit;
    size_t n; /* values: 1, a figure, called "value"; else the count and what follows */
    const char *statistic[METRICS_STATISTICS]; /* "count" (no unit), "mean", "p95", ... */
    double value[METRICS_STATISTICS];
};

/** The figures of a group, i = 0, 1, ...; false: there are no more. */
bool metrics_figure(struct metrics *metrics, size_t group, size_t i,
                    struct metrics_figure *figure);
/** Those that one line shows of a group, i = 0, 1, ...; false: there are no more. */
bool metrics_column(struct metrics *metrics, size_t group, size_t i,
                    struct metrics_value *value);

/** How the main quantity of the family, its first, is distributed. */
struct metrics_histogram {
    const char *name, *unit;
    uint64_t n; /* values */
    struct metrics_bin *bin;
    size_t nbins;
};

/** Of a group, not of runs: metrics_dist_bins(). bin is the caller's to free. */
bool metrics_histogram(struct metrics *metrics, size_t group, size_t bins,
                       struct metrics_histogram *histogram,
                       struct rec_error *err) REC_MUST_CHECK;

/** Cases of the same name in two reducers that were told metrics_keep(), of the same
 * family. A name that comes again has its last value. */
struct metrics_pairs {
    uint64_t both, first,
        second;                /* names in both, in the first only, in the second only */
    struct metrics_dist error; /* |first - second| / second, where known, second > 0 */
    double weighted;           /* sum of |first - second| / sum of second; NAN */
    const char *worst;         /* whose error is the largest, the first of them; NULL */
    double worst_first, worst_second;
};

/** Free it with metrics_pairs_free(), whatever comes; it points into the reducers. */
bool metrics_pair(const struct metrics *first, const struct metrics *second,
                  struct metrics_pairs *pairs, struct rec_error *err) REC_MUST_CHECK;
void metrics_pairs_free(struct metrics_pairs *pairs);

/** What the main quantity of the family is called, and its unit. */
const char *metrics_main_quantity(const struct metrics *metrics, const char **unit);

/** Intervals of the series, up to the last event; 0: the family has none. */
size_t metrics_nintervals(const struct metrics *metrics);
/** The figures of one interval of time, i = 0 (its start), 1, ...; false: no more. */
bool metrics_interval(const struct metrics *metrics, size_t interval, size_t i,
                      struct metrics_value *value);

REC_END_DECLS

#endif
