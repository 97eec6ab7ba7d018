/*
 * rampipe/metrics.h - results reduced to figures.
 *
 * A reducer takes done, block and cluster records and keeps, for each group and for the
 * total, counts, time integrals and distributions. Memory does not grow with the number
 * of jobs: a distribution keeps its values, and percentiles are exact (linear
 * interpolation, type 7 of Hyndman and Fan), up to METRICS_EXACT of them; beyond, it
 * keeps counts in buckets of METRICS_ERROR relative width (Masson et al., "DDSketch",
 * 2019), while count, mean, deviation, least and most stay exact.
 */
#ifndef RAMPIPE_METRICS_H
#define RAMPIPE_METRICS_H

#include "rampipe/record.h"

#define METRICS_EXACT 262144
#define METRICS_ERROR 2e-4

/* ---- distributions ------------------------------------------------------- */

/** Values >= 0. Starts as {0}. */
struct metrics_dist {
    uint64_t n;
    double mean, square; /* Welford's running mean and sum of squared deviations */
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
/** Sample standard deviation; 0 for fewer than two values. */
double metrics_dist_deviation(const struct metrics_dist *dist);
/** The p-quantile, 0 <= p <= 1; n must not be 0. */
double metrics_dist_quantile(struct metrics_dist *dist, double p);
void metrics_dist_free(struct metrics_dist *dist);

/* ---- groups -------------------------------------------------------------- */

enum metrics_quantity {
    METRICS_COMPLETION, /* FINISH - ARRIVAL, seconds */
    METRICS_WAITING,    /* START - ARRIVAL, seconds */
    METRICS_SPEEDUP,    /* steps * sequential / completion time */
    METRICS_COMM,       /* comm / step */
    METRICS_COMP,       /* comp / step */
    METRICS_BUSY,       /* utilisation of the job's servers */
    METRICS_SERVERS,
    METRICS_DEGREE,
    METRICS_SEQUENTIAL,         /* steps * sequential, seconds */
    METRICS_DEADLINE,           /* those that have one, seconds */
    METRICS_FRACTION,           /* deadline / (steps * sequential) */
    METRICS_BLOCKED_SEQUENTIAL, /* the same of blocked jobs */
    METRICS_BLOCKED_DEADLINE,
    METRICS_BLOCKED_FRACTION,
    METRICS_NQUANTITIES
};
/** "completion time" and so on. */
const char *metrics_quantity_name(enum metrics_quantity quantity);

struct metrics_cause {
    const char *name;
    uint64_t n;
};

/** Jobs that have something in common; the total is group 0. Sums are over done jobs. */
struct metrics_group {
    const char *name;
    uint64_t done, blocked;
    struct metrics_cause *cause; /* of the blocked, in order of name */
    size_t ncauses, cause_room;
    struct metrics_dist dist[METRICS_NQUANTITIES];
    double running;                    /* sum of FINISH - START, job-seconds */
    double server_seconds;             /* sum of servers * (FINISH - START) */
    double busy_seconds;               /* the part of it in which an op ran */
    double comm_seconds, comp_seconds; /* sums of steps * comm, steps * comp */
    double memory, dep_bytes, flow_bytes, demand_memory, demand_bytes;
    double offered; /* demand_memory + demand_bytes of all that arrived */
};

struct metrics {
    struct metrics_group *group; /* [0] is the total */
    size_t ngroups, room;
    struct rec_map names;
    struct rec_arena arena;
    const char *by; /* key to group by: model, graph, degree, deadline, cause, servers or
                       any key of done and block records; NULL: only the total */
    double servers; /* of the cluster; 0: no cluster record was seen */
    double first, last_arrival, last; /* seconds; first is NAN before any job */
    uint64_t jobs;
};

/** What one record says, after checking. */
struct metrics_job {
    bool blocked;
    double arrival, start, finish;                       /* block: finish is its time */
    double servers, busy, memory, dep_bytes, flow_bytes; /* NAN: not given */
};

/** Starts an empty reducer. `by` is borrowed. */
bool metrics_start(struct metrics *metrics, const char *by,
                   struct rec_error *err) REC_MUST_CHECK;
/** Takes a record: 1 a job was counted (*job is filled), 0 not ours, -1 *err. */
int metrics_take(struct metrics *metrics, const struct rec_reader *reader,
                 const struct rec *rec, struct metrics_job *job,
                 struct rec_error *err) REC_MUST_CHECK;
/** Numbers by value, before other names. */
int metrics_compare_names(const char *a, const char *b);
/** Sorts the groups by name; the total stays first. */
void metrics_sort(struct metrics *metrics);
void metrics_free(struct metrics *metrics);

/** Called with each figure of a group. `statistic` is "value" or "mean", "p95" and so on.
 */
typedef void metrics_emit(void *context, const char *group, const char *metric,
                          const char *statistic, double value);
/** All figures, group by group; rates need a horizon, utilisation of the cluster needs a
 * cluster record, else they are left out. */
void metrics_figures(struct metrics *metrics, metrics_emit *emit, void *context);

/* ---- series -------------------------------------------------------------- */

/** Figures of one interval of time. */
struct metrics_bin {
    uint64_t arrived, started, done, blocked;
    double running, server_seconds, busy_seconds; /* as in a group, of this interval */
    double completion;                            /* sum over the jobs done in it */
    double memory, dep_bytes, flow_bytes;
};

struct metrics_series {
    double width; /* seconds */
    struct metrics_bin *bin;
    size_t nbins, room;
};

bool metrics_series_add(struct metrics_series *series, const struct metrics_job *job,
                        struct rec_error *err) REC_MUST_CHECK;
void metrics_series_free(struct metrics_series *series);

/* ---- training runs ------------------------------------------------------- */

#define METRICS_TRAINING_MAX 40

/** Runs that have something in common; the total is group 0. */
struct metrics_runs {
    const char *name;
    uint64_t runs, short_of_target;
    bool targeted;                                  /* a run had steps to reach */
    struct metrics_dist dist[METRICS_TRAINING_MAX]; /* of each quantity, a value a run */
};

/** Reduces account and trained records. */
struct metrics_training {
    struct metrics_runs *group; /* [0] is the total */
    size_t ngroups, room;
    struct rec_map names;
    struct rec_arena arena;
    const char *by; /* model (elastic, redundant) or a key of trained; NULL: the total */
    double seconds[4], instance_seconds[4]; /* accounts of the run being read */
    bool accounted;
};

/** Starts an empty reducer. `by` is borrowed. */
bool metrics_training_start(struct metrics_training *training, const char *by,
                            struct rec_error *err) REC_MUST_CHECK;
/** Takes a record: 1 it was ours, 0 not, -1 *err. */
int metrics_training_take(struct metrics_training *training,
                          const struct rec_reader *reader, const struct rec *rec,
                          struct rec_error *err) REC_MUST_CHECK;
/** Sorts the groups by name, when all records are taken; the total stays first. */
void metrics_training_sort(struct metrics_training *training);
/** Group by group: of one run the value of each quantity; of more its distribution over
 * the runs, with the standard error of the mean (se). */
void metrics_training_figures(struct metrics_training *training, metrics_emit *emit,
                              void *context);
/** "s", "%", "US$/h"...; "" if it is a number. */
const char *metrics_training_unit(const char *metric);
/** The mean over the runs of a group; NAN if no run has it. */
double metrics_training_mean(const struct metrics_runs *group, const char *metric);
void metrics_training_free(struct metrics_training *training);

#endif
