/*
 * The families of results. A family is a file that says what one case is, and a row
 * `const struct metrics_family metrics_NAME` with a line in the table in families.c.
 * Its fields are given in order, so that a row without one of them does not build; counts
 * come with METRICS_LIST, which does not build if a list is longer than a reducer holds.
 *
 * What a case adds to a sum it adds at a moment, or at a rate from one moment to another:
 * the figures of a group, which are quotients of sums, and those of an interval of time
 * come from the same amounts, so they agree.
 */
#ifndef RAMPIPE_METRICS_PRIVATE_H
#define RAMPIPE_METRICS_PRIVATE_H

#include "rampipe/metrics.h"

#define METRICS_MOMENTS 8
#define METRICS_MOST 48 /* keys, sums, terms, quantities, figures of a family */

#define METRICS_COUNT(list) (sizeof(list) / sizeof *(list))
#define METRICS_LIST(list) \
    (list),                \
        METRICS_COUNT(list) * sizeof(char[METRICS_COUNT(list) <= METRICS_MOST ? 1 : -1])
#define METRICS_NONE NULL, 0

/* A record that is a case, and what its first field names: of those that name the same,
 * such as a job, each is there once. NULL: there may be more. */
struct metrics_record {
    enum rec_type type;
    const char *what;
};

/* From when to when, seconds; equal: an instant. from is NAN: it never came. */
struct metrics_span {
    double from, to;
};

/* A case: what a family makes of a record. */
struct metrics_case {
    struct metrics_span at[METRICS_MOMENTS]; /* starts as never */
    double amount[METRICS_MOST];             /* NAN: unknown. Starts as 1 */
    double quantity[METRICS_MOST];           /* NAN: none. Starts so, or as its key */
    double objective;                        /* that was set; NAN: none was */
    bool predicted;                          /* it is one of a prediction */
    bool named; /* by the first field, for metrics_keep(). Starts as: its record is the
                   family's first, or names the same */
    struct rec_str label; /* ptr NULL: none */
};

struct metrics_sum {
    unsigned char at; /* which moment */
    bool rate;        /* the amount is per second, from its start to its end */
};

/* The distribution of a quantity over the cases of a group. */
struct metrics_quantity {
    const char *name, *unit;
    const char *key; /* of the first type of record, which has the value; NULL: derived */
};

/* A quotient of two terms, NAN if the second is not > 0. */
struct metrics_quotient {
    const char *name, *unit;
    unsigned char amount, per;
};

/* A column of the line that is shown of a group. */
struct metrics_show {
    const char *title, *figure, *statistic;
};

struct metrics_family {
    const char *name;
    const struct metrics_record *cases; /* keys are read of them */
    size_t ncases;
    /* Until a record of this type has come, there is no case; then what is a case of
     * another family, too, is one of this. REC_OTHER: any is a case. */
    enum rec_type lead;
    enum rec_type
        predicted; /* the same for a stream that predicts; REC_OTHER: as above */
    const enum rec_type *others; /* records that say something about the cases to come */
    size_t nothers;
    /* Numbers that a case is made of, as `take` gets them; sought in this order first. */
    const char *const *keys;
    size_t nkeys;
    const struct metrics_sum *sums;
    size_t nsums;
    const struct metrics_quantity *quantities;
    size_t nquantities;
    const struct metrics_quotient *figures;
    size_t nfigures;
    /* So many of the last figures and of the last quantities come out only if a group has
     * a value: what most results say nothing of. Columns of such a figure do likewise. */
    size_t noptional_figures, noptional_quantities;
    /* Figures of each label: the amount is the number of cases with it, whose name is put
     * behind the figure's. The labels of the list are always there, in this order. */
    const struct metrics_quotient *label_figures;
    size_t nlabel_figures;
    const char *const *labels;
    size_t nlabels;
    const struct metrics_show *shown;
    size_t nshown;
    const struct metrics_quotient *series; /* of an interval of time */
    size_t nseries;
    bool independent;  /* cases are drawn alike: the mean has a standard error */
    bool objective;    /* there may be one, seconds */
    size_t state_size; /* of what `note` and `take` keep; starts as zeros */
    bool (*note)(void *state, const struct rec_reader *reader, const struct rec *rec,
                 struct rec_error *err);
    /* `key`: the values of the keys, NAN where the record has none. */
    bool (*take)(void *state, const struct rec_reader *reader, const struct rec *rec,
                 const double key[], struct metrics_case *one, struct rec_error *err);
    /* The name of a record's group where it is not simply the value of key `by`; `text`
     * is for what is made up. False: it is that. *name without ptr: it is in no group. */
    bool (*name_group)(const struct rec *rec, const double key[], const char *by,
                       char text[REC_NUM_MAX], struct rec_str *name);
    /* The terms behind the sums, of a group or an interval that lasts so many seconds;
     * `seen`: from the first to the last of each moment; `part`: a group, not the
     * total. */
    void (*derive)(const void *state, const struct metrics_span seen[], double seconds,
                   bool part, double term[]);
};

extern const struct metrics_family metrics_jobs, metrics_training, metrics_queries,
    metrics_tasks, metrics_bounds;

#endif
