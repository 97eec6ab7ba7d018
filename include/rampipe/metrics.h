/*
 * rampipe/metrics.h - results reduced to figures.
 *
 *     records --- family --- cases --- groups --- figures, distributions
 *            (jobs, training,      |
 *             queries)             |
 *                              intervals (series)
 *
 * A family of results is a row of a table. It says which records are its cases (a job, a
 * training run, a query), which numbers a case has, and which figures are computed from
 * many cases. A reducer takes the records of one family, and keeps sums and distributions
 * of all cases and of each group of cases. A family's figures always come in the same
 * order, and all are present, except those that the family calls optional. A figure
 * without a value (the mean of no values, a key that no record has) is NAN, never 0.
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

/** A distribution of values >= 0. Starts as {0}. */
struct metrics_dist {
    uint64_t n;
    double sum, mean;      /* added up in order, as SQL's avg() does: the same double */
    double middle, square; /* Welford's running mean and sum of squared deviations */
    double least, most;
    double *value; /* the values themselves, while n <= METRICS_EXACT; else NULL */
    size_t room;
    bool sorted;
    uint64_t *bucket; /* if n > METRICS_EXACT: counts; bucket[i] is of index first + i */
    int64_t first;
    size_t nbuckets, bucket_room;
    uint64_t zeros; /* values of 0, which have no bucket */
};

/** Adds a finite value >= 0. False: out of memory, *err is filled. */
bool metrics_dist_add(struct metrics_dist *dist, double value,
                      struct rec_error *err) REC_MUST_CHECK;
/** Sample standard deviation; NAN for fewer than two values. */
double metrics_dist_deviation(const struct metrics_dist *dist);
/** The p-quantile, 0 <= p <= 1; NAN if there are no values. */
double metrics_dist_quantile(struct metrics_dist *dist, double p);

/** A bin of a histogram: the n values v with lower < v <= upper. The first bin includes
 * its lower edge. */
struct metrics_bin {
    double lower, upper;
    uint64_t n;
};

/**
 * Divides the values above 0 into up to n > 0 bins whose edges have the same ratio, from
 * the least such value to the most. If there are zeros, a bin from 0 to 0 before these
 * counts them. Counts are as exact as quantiles. The caller frees *bin. *nbins is 0 if
 * there are no values. False: out of memory, *err is filled.
 */
bool metrics_dist_bins(struct metrics_dist *dist, size_t n, struct metrics_bin **bin,
                       size_t *nbins, struct rec_error *err) REC_MUST_CHECK;
void metrics_dist_free(struct metrics_dist *dist);

/* ---- families and reducers ----------------------------------------------- */

/** A family of results; a row of the table in lib/metrics. */
struct metrics_family;

/** The i-th family, from i = 0; NULL if i is past the last one. */
const struct metrics_family *metrics_family(size_t i);
/** What the cases of the family are called: "jobs". */
const char *metrics_family_name(const struct metrics_family *family);
/** The i-th type of record that is a case of the family, from i = 0; NULL if i is past
 * the last one. */
const char *metrics_family_record(const struct metrics_family *family, size_t i);

/** May cases of the family have an objective? */
bool metrics_has_objective(const struct metrics_family *family);

/** What was seen of the account records of training runs. Starts as {0}. */
struct metrics_accounts {
    unsigned seen; /* bit i: the run being read has an account of the i-th state */
    bool some;     /* a run with accounts has ended */
    bool none;     /* a run without accounts has ended */
};

/** Checks an account record, or a trained record, which ends its run: a run has each
 * account at most once, and either all runs have accounts or none has. *state is the
 * index of an account's state, in the order in which rampipe(5) lists them. Records of
 * other types: true. */
bool metrics_accounts_take(struct metrics_accounts *accounts,
                           const struct rec_reader *reader, const struct rec *rec,
                           size_t *state, struct rec_error *err) REC_MUST_CHECK;

/** Reads a bound record: *jobs jobs arrive, and at most *accepted of them are
 * accepted. An error if *accepted is more than *jobs, or if the keys whole and reached
 * say more than a bound above them. Records of other types: true, and both are 0. */
bool metrics_bound_read(const struct rec_reader *reader, const struct rec *rec,
                        uint64_t *jobs, double *accepted,
                        struct rec_error *err) REC_MUST_CHECK;

struct metrics;

/**
 * Makes an empty reducer. NULL: *err is filled.
 *
 * `by` is a key: cases with the same value of it form a group. Families know other words,
 * too (jobs: graph, cause, deadline as a fraction; training: model; queries: stage).
 * NULL: there is only the total. The caller keeps `by`. `seconds` > 0 is the width of the
 * intervals of a series, if the family has one.
 *
 * If several streams come (concatenated, or from several files), they are one run: all
 * must name the same cluster, no job may end twice, and no case may end before the
 * streams before have ended. With `runs`, each stream is a run of its own. Then the
 * results are the distributions of each figure over the runs (of a group's figure: over
 * the runs that have the group).
 */
struct metrics *metrics_new(const struct metrics_family *family, const char *by,
                            double seconds, bool runs,
                            struct rec_error *err) REC_MUST_CHECK;
/** Does the reducer compute distributions over runs? It does if metrics_new() got `runs`,
 * unless each case of the family is a run itself. */
bool metrics_has_runs(const struct metrics *metrics);
/** Did metrics_take() fail because the streams do not belong to one run? */
bool metrics_mixed(const struct metrics *metrics);
/** Sets the time within which a case should end (a query be answered), in seconds.
 * Call it before any record is taken. Without it, or with NAN, figures of attainment
 * are NAN. */
void metrics_set_objective(struct metrics *metrics, double seconds);
/** Sets the limit on the number of intervals of a series. The default is a million. */
void metrics_limit(struct metrics *metrics, struct rec_limit limit);
/** Declares that the stream is a prediction of the family's cases. Call it before any
 * record is taken. False: the family has no records for predictions; a predicted stream
 * has the same records as a measured one. */
bool metrics_predict(struct metrics *metrics);
/** Makes the reducer keep the family's main quantity (its first) of each case, under the
 * name in the record's first field, for metrics_pair(). Cases without names, which are
 * drawn from a distribution, are not kept. Call it before any record is taken. */
bool metrics_keep(struct metrics *metrics, struct rec_error *err) REC_MUST_CHECK;
/** Takes a record. 1: it is a case of the family; 0: it is not; -1: *err is filled.
 * REC_USAGE: the series would have too many intervals. */
int metrics_take(struct metrics *metrics, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Call it when all records are taken. It sorts the groups by name: numbers by value, and
 * before other names. The total stays first. */
bool metrics_end(struct metrics *metrics, struct rec_error *err) REC_MUST_CHECK;
/** Orders the groups by a statistic of a figure, the largest first, and forgets all
 * behind the first `most`; the total stays. Call it after metrics_end(), not for a
 * reducer of runs. */
bool metrics_rank(struct metrics *metrics, const char *figure, const char *statistic,
                  size_t most, struct rec_error *err) REC_MUST_CHECK;
void metrics_free(struct metrics *metrics);

/* ---- results, after metrics_end() ---------------------------------------- */

const struct metrics_family *metrics_family_of(const struct metrics *metrics);
/** Do the results belong to this reducer's family rather than to that of `other`? True if
 * a record came that leads this family (an attempt, of tasks), and if every type of
 * record that is a case of the other family is a case of this one, too. */
bool metrics_covers(const struct metrics *metrics, const struct metrics *other);
/** The number of cases, or of runs; 0: the stream has no results of the family. */
uint64_t metrics_cases(const struct metrics *metrics);
/** The number of groups. Group 0 is the total, called "all". */
size_t metrics_ngroups(const struct metrics *metrics);
const char *metrics_group_name(const struct metrics *metrics, size_t group);

/** The number of figures of labels that the family does not know (causes of blocking).
 * Each group has figures of each label, so they may be many more than the cases. */
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
    size_t n; /* number of values; 1: a figure, whose statistic is "value" */
    const char *statistic[METRICS_STATISTICS]; /* "count" (no unit), "mean", "p95", ... */
    double value[METRICS_STATISTICS];
};

/** The i-th figure of a group, from i = 0; false if i is past the last one. */
bool metrics_figure(struct metrics *metrics, size_t group, size_t i,
                    struct metrics_figure *figure);
/** The i-th column of the table that shows a group in one line, from i = 0; false if i is
 * past the last one. */
bool metrics_column(struct metrics *metrics, size_t group, size_t i,
                    struct metrics_value *value);

/** The distribution of the family's main quantity (its first). */
struct metrics_histogram {
    const char *name, *unit;
    uint64_t n; /* values */
    struct metrics_bin *bin;
    size_t nbins;
};

/** The histogram of a group by metrics_dist_bins(); not for reducers of runs. The caller
 * frees histogram->bin. */
bool metrics_histogram(struct metrics *metrics, size_t group, size_t bins,
                       struct metrics_histogram *histogram,
                       struct rec_error *err) REC_MUST_CHECK;

/** The comparison of cases of the same name in two reducers of the same family, for both
 * of which metrics_keep() was called. If a name occurs again, its last value counts. */
struct metrics_pairs {
    uint64_t both;             /* names in both reducers, */
    uint64_t first, second;    /* in the first only, in the second only */
    struct metrics_dist error; /* |first - second| / second, where known and second > 0 */
    double weighted;           /* sum of |first - second| / sum of second; or NAN */
    const char *worst;         /* the first case with the largest error; NULL: none */
    double worst_first, worst_second; /* its two values */
};

/** Compares two reducers. Call metrics_pairs_free() also if it fails. *pairs points into
 * the reducers, which must outlive it. */
bool metrics_pair(const struct metrics *first, const struct metrics *second,
                  struct metrics_pairs *pairs, struct rec_error *err) REC_MUST_CHECK;
void metrics_pairs_free(struct metrics_pairs *pairs);

/** The name of the family's main quantity; *unit is its unit. */
const char *metrics_main_quantity(const struct metrics *metrics, const char **unit);

/** The number of intervals of the series, up to the last event; 0: there is no series. */
size_t metrics_nintervals(const struct metrics *metrics);
/** The i-th figure of an interval of time; i = 0 is its start. False if i is past the
 * last one. */
bool metrics_interval(const struct metrics *metrics, size_t interval, size_t i,
                      struct metrics_value *value);

REC_END_DECLS

#endif
