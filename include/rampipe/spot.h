/*
 * rampipe/spot.h - spot clusters: instances that come and go, measured and drawn.
 *
 * A trace is what happened to a cluster between two times: additions and preemptions, in
 * order of time. It is read from measured logs (foreign CSV) or from records, reduced to
 * the figures of a model, and drawn from one. Source of the figures and of the published
 * generator: the notebook of Thorpe et al., "Bamboo: making preemptible instances
 * resilient for affordable training of large DNNs" (NSDI 2023).
 */
#ifndef RAMPIPE_SPOT_H
#define RAMPIPE_SPOT_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- traces -------------------------------------------------------------- */

enum spot_kind { SPOT_ADD, SPOT_PREEMPT };

/** Times end here, 30,000 years on: clocks of milliseconds, sums of steps stay exact. */
#define SPOT_TIME_MAX 1e12

struct spot_event {
    double time; /* seconds */
    enum spot_kind kind;
    uint64_t count;     /* instances; 0 is allowed and changes nothing */
    struct rec_str ids; /* their names, separated by commas; len 0: not named */
};

/** What a stream of records has said so far. Starts as {0}. */
struct spot_order {
    bool framed;        /* a trace record said start and end, */
    bool populated;     /* and how many instances there were */
    double start, end;  /* seconds */
    uint64_t instances; /* at start */
    bool begun;         /* an event came */
    double last;        /* its time */
};

/**
 * Takes the next record: 1 it was a preempt or an add (*event is filled; ids point into
 * the record), 0 it was another one (a trace record fills `order`), -1 *err: time runs
 * backwards or past the trace's end, count and ids differ, a field is wrong.
 */
int spot_read(struct spot_order *order, const struct rec_reader *reader,
              const struct rec *rec, struct spot_event *event,
              struct rec_error *err) REC_MUST_CHECK;
/** The instances of a trace that have names, as far as its records alone tell who is
 * there: any may have gone once some went unnamed, and one that was not named may have
 * any name. Starts as {0}. */
struct spot_names {
    struct rec_map there;
    char **name; /* of those that are there, and gaps */
    uint32_t *gap;
    size_t n, room, ngaps, gap_room;
    bool some_unnamed, some_gone;
};

/** An event happens, which spot_read() took: nobody comes who is there, or goes who is
 * not. Memory grows with those that are there. */
bool spot_names_take(struct spot_names *names, const struct spot_order *order,
                     const struct spot_event *event, const struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
void spot_names_free(struct spot_names *names);

/** `instances` may be NULL: the trace does not say. */
void spot_write_trace(struct rec_writer *writer, double start, double end,
                      const uint64_t *instances);
void spot_write_event(struct rec_writer *writer, const struct spot_event *event);

/** A whole trace in memory. Starts as {0}. */
struct spot_trace {
    double start, end;        /* seconds */
    bool populated;           /* known are the instances at start; */
    uint64_t instances;       /* 0: those that are added then */
    struct spot_event *event; /* in order of time; ids live in the arena */
    size_t n, room;
    double *row; /* times at which a log gave a count, the start included; none: one at
                    the start and one wherever events are */
    size_t nrows, row_room;
    struct rec_arena arena;
};

/** Appends an event; ids are copied. */
bool spot_trace_add(struct spot_trace *trace, struct spot_event event,
                    struct rec_error *err) REC_MUST_CHECK;
void spot_trace_free(struct spot_trace *trace);

/** What the milliseconds of a log count from, and so where its trace starts: from the
 * log's own start, 0; or from 1970, and the trace starts at the first row. AUTO: from
 * 1970 if the first time is beyond a year. */
enum spot_clock { SPOT_CLOCK_AUTO, SPOT_CLOCK_RELATIVE, SPOT_CLOCK_EPOCH };

/** How a log is read. */
struct spot_log_options {
    bool repair;                                   /* see spot_log_read() */
    enum spot_clock clock;                         /* of a log of milliseconds */
    void (*warn)(void *context, const char *text); /* each repair; may be NULL */
    void (*note)(void *context, const char *text); /* what was guessed; may be NULL */
    /* records of a stream that are not of a trace; may be NULL */
    void (*other)(void *context, const struct rec *rec);
    void *context;
};

/**
 * Reads measured logs through a reader opened over them. A log is known by its first row:
 *
 *     timestamp,count       2021-09-14T17:00:00Z,32     instances after each change
 *     timestamp,number      2021-09-14T17:13:00Z,5      instances that were preempted
 *     (no header)           60000,add,node1             milliseconds, add or remove, name
 *     (no header)           2021-12-10, 13:07:45, 80    samples of the number of
 * instances
 *
 * or is a stream of trace, preempt and add records. Counts give additions where they
 * rise; where they fall they give preemptions, unless a log of terminations came with
 * them. Samples count where the number changes. Times are seconds from the first row,
 * where the trace starts; those of the third kind are the log's own (enum spot_clock).
 * The published statistics of such logs, "relative", start at 0 too: nobody is there
 * until the first row, and the time until then counts.
 *
 * False: *err, with file and line. With `repair`, a row that cannot be read or
 * contradicts what came before (a negative count, a node removed twice) is dropped; where
 * counts step back in time the later row supersedes what was said of its time and after;
 * other rows are sorted by time.
 */
bool spot_log_read(struct rec_reader *reader, const struct spot_log_options *options,
                   struct spot_trace *trace, struct rec_error *err) REC_MUST_CHECK;

/* ---- models -------------------------------------------------------------- */

struct spot_value {
    double value, weight;
};

/** Values with how often they came. */
struct spot_values {
    struct spot_value *at; /* in ascending order, unless loose; owned, free() */
    size_t n, room;
    double total; /* sum of the weights */
    bool loose;
};

/** Figures of a trace; NAN where it has none. A change is any row after the first. */
struct spot_model {
    double node_rows, term_rows, add_events, big_adds; /* rows and events counted */
    double mttp_mean_s, mttp_std_s; /* between changes, additions too; the published
                                       "mean time to preemption" */
    double alt_true_mttp_s, alt_true_mttp_std_s; /* between preemptions */
    double total_minutes; /* from the first row, or the start, to the last row */
    double total_preemptions, total_additions; /* instances */
    double preemptions_per_minute, additions_per_minute;
    double chance_preempt_minute, chance_add_minute; /* events a minute */
    double prob_big, prob_regular; /* of an addition; big: more than SPOT_BIG instances */
    double regular_mean, regular_std, alt_big_mean; /* instances an addition */
    double preempt_mean, preempt_std;               /* instances a preemption */
    double preempt_shape, preempt_scale_s;          /* Weibull fitted to spacings */
    double add_shape, add_scale_s;
    double start_instances, max_instances;
    struct spot_values preempt_spacings, add_spacings; /* seconds */
    struct spot_values preempt_counts, add_counts;
};

enum { SPOT_BIG = 10 };

/** All figures NAN, no values. */
void spot_model_clear(struct spot_model *model);
/** Standard deviations are those of samples (n - 1), 0 for fewer than two values. */
bool spot_model_fit(const struct spot_trace *trace, struct spot_model *model,
                    struct rec_error *err) REC_MUST_CHECK;
void spot_model_write(const struct spot_model *model, const char *name,
                      struct rec_writer *writer);
bool spot_model_read(struct spot_model *model, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
void spot_model_free(struct spot_model *model);

/** Appends a value. After values out of order, settle. */
bool spot_values_add(struct spot_values *values, double value, double weight,
                     struct rec_error *err) REC_MUST_CHECK;
/** Brings values in order, equal ones together. */
void spot_values_settle(struct spot_values *values);

/* ---- drawing ------------------------------------------------------------- */

enum spot_process {
    SPOT_COIN,        /* one coin an interval for each kind, as published */
    SPOT_EXPONENTIAL, /* renewal: the time from one event of a kind to the next */
    SPOT_WEIBULL,
    SPOT_EMPIRICAL
};

struct spot_drawing {
    enum spot_process process;
    bool empirical_counts; /* draw counts from the model's; else the published rule: a
                              rounded normal, its negative tail folded up, 0 made 1 */
    double minutes;        /* length of the trace */
    double interval;       /* of the coins, seconds */
    bool bounded;          /* keep the population in [0, capacity] */
    uint64_t start, capacity;
    uint32_t seed;
    struct rec_limit limit; /* on draws, by an estimate */
    double traces;          /* so many like this one share the limit; 0: one */
};

/** Called with each event, in order of time. False ends the drawing: *err. */
typedef bool spot_sink(void *context, const struct spot_event *event,
                       struct rec_error *err);

/** REC_USAGE if the model lacks what the process needs. */
bool spot_draw(const struct spot_model *model, const struct spot_drawing *drawing,
               spot_sink *sink, void *context, struct rec_error *err) REC_MUST_CHECK;

/** The later simulator's generator: chances by hour of day. */
struct spot_hourly {
    uint64_t desired; /* instances that are asked for */
    double addition[24], removal[24];
    bool random_addition; /* draw addition[] uniformly first */
    unsigned start_hour;
    double minutes;
    uint32_t seed;
    struct rec_limit limit; /* as above */
    double traces;
};

/**
 * At the start, `desired` trials add an instance each with the hour's chance. Every hour,
 * each instance is removed with that hour's chance, at a second drawn uniformly in the
 * hour, and as many trials as instances are missing or leave add one, likewise; one that
 * would exceed `desired` is skipped. A new instance may leave in the same hour. Instances
 * are named node1, node2, ...
 */
bool spot_draw_hourly(const struct spot_hourly *hourly, spot_sink *sink, void *context,
                      struct rec_error *err) REC_MUST_CHECK;

/* ---- goodness of fit ----------------------------------------------------- */

/** Kolmogorov and Smirnov's test of two samples. */
struct spot_ks {
    double n, m; /* sizes */
    double d;    /* the largest distance of the two distribution functions */
    double p;    /* chance of a larger one if both came of one distribution (asymptotic;
                    conservative where values repeat); NAN if a sample is empty */
};

struct spot_ks spot_ks_test(const struct spot_values *a, const struct spot_values *b);

REC_END_DECLS

#endif
