/*
 * rampipe/spot.h - spot clusters: instances that come and go, measured and drawn.
 *
 * A trace is the list of additions and preemptions of a cluster's instances between two
 * times, in order of time. Traces are read from measured logs (foreign CSV) or from
 * records. A trace is reduced to a model, a set of figures; and random traces are drawn
 * from a model. Source of the figures and of the published generator: the notebook of
 * Thorpe et al., "Bamboo: making preemptible instances resilient for affordable training
 * of large DNNs" (NSDI 2023).
 */
#ifndef RAMPIPE_SPOT_H
#define RAMPIPE_SPOT_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- traces -------------------------------------------------------------- */

enum spot_kind { SPOT_ADD, SPOT_PREEMPT };

/** The largest time of a trace, seconds (30,000 years). A double still resolves 0.2 ms
 * there, so logs in milliseconds and sums of step times keep their digits. */
#define SPOT_TIME_MAX 1e12

struct spot_event {
    double time; /* seconds */
    enum spot_kind kind;
    uint64_t count;     /* instances; 0 is allowed and changes nothing */
    struct rec_str ids; /* their names, separated by commas; len 0: not named */
};

/** What is known of a trace while its records are read. Starts as {0}. */
struct spot_order {
    bool framed;        /* a trace record came: start and end are known */
    bool populated;     /* it had the key instances= */
    double start, end;  /* seconds */
    uint64_t instances; /* at start */
    bool begun;         /* an event came */
    double last;        /* time of the last event, or the trace's start, seconds */
};

/**
 * Takes the next record. 1: it was a preempt or an add, and *event is filled (its ids
 * point into the record); 0: it was another record (a trace record fills `order`); -1:
 * *err, as time runs backwards or past the trace's end, count and ids differ, or a field
 * is wrong.
 */
int spot_read(struct spot_order *order, const struct rec_reader *reader,
              const struct rec *rec, struct spot_event *event,
              struct rec_error *err) REC_MUST_CHECK;
/** The names of the instances that are there, as far as a trace's records tell. Events
 * without names leave doubt: after an unnamed preemption any instance may be the one that
 * went, and an unnamed addition may have any name. Starts as {0}. */
struct spot_names {
    struct rec_map there; /* name -> index in `name` */
    char **name;          /* owned; NULL: a gap, which the next addition fills */
    uint32_t *gap;        /* indices of the gaps */
    size_t n, room, ngaps, gap_room;
    bool some_unnamed; /* some instances came without a name */
    bool some_gone;    /* some went without a name */
};

/** Takes an event of spot_read(). False: *err, as it adds an instance that is surely
 * there or preempts one that is surely not. Memory grows with the number of instances
 * there. */
bool spot_names_take(struct spot_names *names, const struct spot_order *order,
                     const struct spot_event *event, const struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
void spot_names_free(struct spot_names *names);

/** Writes a trace record. `instances` at the start; NULL: not known. */
void spot_write_trace(struct rec_writer *writer, double start, double end,
                      const uint64_t *instances);
void spot_write_event(struct rec_writer *writer, const struct spot_event *event);

/** A whole trace in memory. Starts as {0}. */
struct spot_trace {
    double start, end; /* seconds */
    bool populated;    /* `instances` is known */
    /* At `start`. If it is 0, what events at `start` add counts as there before. */
    uint64_t instances;
    struct spot_event *event; /* in order of time; ids live in the arena */
    size_t n, room;
    /* Times at which a log gave a count, the start included, seconds. Without any (nrows
     * is 0), the start and every time of an event count as rows. */
    double *row;
    size_t nrows, row_room;
    struct rec_arena arena;
};

/** Appends an event; ids are copied. */
bool spot_trace_add(struct spot_trace *trace, struct spot_event event,
                    struct rec_error *err) REC_MUST_CHECK;
void spot_trace_free(struct spot_trace *trace);

/** From when a log counts its milliseconds, and so where its trace starts. RELATIVE: from
 * the start of the log, and the trace starts at 0. EPOCH: from 1970, and the trace
 * starts at the first row. AUTO: EPOCH if the first time is more than a year, else
 * RELATIVE. */
enum spot_clock { SPOT_CLOCK_AUTO, SPOT_CLOCK_RELATIVE, SPOT_CLOCK_EPOCH };

/** How a log is read. */
struct spot_log_options {
    bool repair;                                   /* see spot_log_read() */
    enum spot_clock clock;                         /* of a log of milliseconds */
    void (*warn)(void *context, const char *text); /* each repair; may be NULL */
    void (*note)(void *context, const char *text); /* what was guessed; may be NULL */
    /* hears of the records of a stream that are no trace records; may be NULL */
    void (*other)(void *context, const struct rec *rec);
    void *context;
};

/**
 * Reads measured logs through a reader opened over them. The first row tells the kind of
 * log:
 *
 *     timestamp,count       2021-09-14T17:00:00Z,32     instances after each change
 *     timestamp,number      2021-09-14T17:13:00Z,5      instances that were preempted
 *     (no header)           60000,add,node1             milliseconds, add or remove, name
 *     (no header)           2021-12-10, 13:07:45, 80    samples of the instances there
 *
 * Or the input is a stream of trace, preempt and add records. A count that rises gives
 * additions; one that falls gives preemptions, unless a log of terminations came with the
 * counts. Of samples only those count that differ from the one before. Times of the trace
 * are seconds since the first row, where it starts; but logs of the third kind keep their
 * own times (enum spot_clock). With SPOT_CLOCK_RELATIVE their traces start at 0, as in
 * the published statistics of such logs: no instance is there until the first row, and
 * the time until then counts.
 *
 * False: *err, with file and line. With `repair`, a row that cannot be read, or that
 * contradicts earlier rows (a negative count, a node removed twice), is dropped. If the
 * times of counts step back, the later row replaces all rows of its time and after. Rows
 * of events and of terminations are sorted by time.
 */
bool spot_log_read(struct rec_reader *reader, const struct spot_log_options *options,
                   struct spot_trace *trace, struct rec_error *err) REC_MUST_CHECK;

/* ---- models -------------------------------------------------------------- */

struct spot_value {
    double value, weight;
};

/** Values and how often each came (its weight). */
struct spot_values {
    struct spot_value *at; /* in ascending order, unless loose; owned, free() */
    size_t n, room;
    double total; /* sum of the weights */
    bool loose;   /* values were added out of order: spot_values_settle() sorts them */
};

/** The figures of a trace; NAN: it has none. A change is any row after the first. Names
 * are those of the published notebook, and of the keys of the model record. */
struct spot_model {
    /* numbers of rows of counts, of times with preemptions, of times with additions, and
     * of additions of more than SPOT_BIG instances */
    double node_rows, term_rows, add_events, big_adds;
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

/** Sets all figures to NAN, and empties the lists without freeing them. */
void spot_model_clear(struct spot_model *model);
/** Measures a trace. Standard deviations are of samples (n - 1); of one value, 0. */
bool spot_model_fit(const struct spot_trace *trace, struct spot_model *model,
                    struct rec_error *err) REC_MUST_CHECK;
void spot_model_write(const struct spot_model *model, const char *name,
                      struct rec_writer *writer);
bool spot_model_read(struct spot_model *model, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
void spot_model_free(struct spot_model *model);

/** Appends a value. If values come out of order, settle them before they are read. */
bool spot_values_add(struct spot_values *values, double value, double weight,
                     struct rec_error *err) REC_MUST_CHECK;
/** Sorts the values, and merges equal ones. */
void spot_values_settle(struct spot_values *values);

/* ---- drawing ------------------------------------------------------------- */

enum spot_process {
    SPOT_COIN, /* each interval tosses a coin for each kind of event, as published */
    /* renewal processes: the time from one event of a kind to the next is drawn from */
    SPOT_EXPONENTIAL,
    SPOT_WEIBULL,
    SPOT_EMPIRICAL /* the model's list of spacings */
};

struct spot_drawing {
    enum spot_process process;
    /* Draw the instances of an event from the model's list; else by the published rule:
     * the absolute value of a rounded normal variable, at least 1. */
    bool empirical_counts;
    double minutes;  /* length of the trace */
    double interval; /* between tosses of the coins, seconds */
    bool bounded;    /* keep the number of instances in [0, capacity] */
    uint64_t start, capacity;
    uint32_t seed;
    struct rec_limit limit; /* on the number of draws, which is estimated first */
    double traces;          /* number of traces that share the limit; 0 stands for 1 */
};

/** Called with each event, in order of time. False ends the drawing: *err. */
typedef bool spot_sink(void *context, const struct spot_event *event,
                       struct rec_error *err);

/** Draws a trace. REC_USAGE: the model lacks what the process needs. */
bool spot_draw(const struct spot_model *model, const struct spot_drawing *drawing,
               spot_sink *sink, void *context, struct rec_error *err) REC_MUST_CHECK;

/** The later simulator's generator: chances by hour of day. */
struct spot_hourly {
    uint64_t desired;                 /* instances that are asked for */
    double addition[24], removal[24]; /* chances by hour of day */
    bool random_addition;             /* first draw addition[] uniformly from [0, 1) */
    unsigned start_hour;
    double minutes;
    uint32_t seed;
    struct rec_limit limit; /* as above */
    double traces;
};

/**
 * Draws a trace by hours. At the start, `desired` trials add an instance each with the
 * hour's chance. Then, in every hour:
 *
 *   - each instance is removed with the hour's chance, at a second drawn uniformly;
 *   - for each instance that is missing at the hour's start or is removed in it, a trial
 *     adds one with the hour's chance, at a second drawn uniformly, unless `desired` are
 *     there then; an instance that was added may be removed in the same hour.
 *
 * Instances are named node1, node2, ...
 */
bool spot_draw_hourly(const struct spot_hourly *hourly, spot_sink *sink, void *context,
                      struct rec_error *err) REC_MUST_CHECK;

/* ---- goodness of fit ----------------------------------------------------- */

/** Kolmogorov and Smirnov's test of two samples. */
struct spot_ks {
    double n, m; /* sizes of the samples */
    double d;    /* the largest distance of the two distribution functions */
    /* Chance of a larger distance if both samples came of one distribution. It is
     * asymptotic, and conservative if values repeat; NAN if a sample is empty. */
    double p;
};

struct spot_ks spot_ks_test(const struct spot_values *a, const struct spot_values *b);

REC_END_DECLS

#endif
