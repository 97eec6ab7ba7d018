/*
 * The families of results. A family is a file with a row `const struct metrics_family
 * metrics_NAME`, which is listed in families.c. A row without something that every family
 * needs does not build (METRICS_NEEDED). Everything else is optional. METRICS_LIST gives
 * a list with its length, and does not build if a list is longer than a reducer can hold.
 *
 * A case adds an amount to a sum at a moment (a job that ends), or at a rate from one
 * moment to another (servers in use while it runs). All figures are quotients of sums.
 * Figures of a group and figures of an interval of time come from the same amounts, so
 * that they agree.
 */
#ifndef RAMPIPE_METRICS_PRIVATE_H
#define RAMPIPE_METRICS_PRIVATE_H

#include "rampipe/metrics.h"

#define METRICS_MOMENTS 8
#define METRICS_NAME_MAX 2048 /* room for the name of a group that is made */
#define METRICS_MOST 48       /* keys, sums, terms, quantities, figures of a family */

#define METRICS_COUNT(list) (sizeof(list) / sizeof *(list))
#define METRICS_LIST(list) \
    (list),                \
        METRICS_COUNT(list) * sizeof(char[METRICS_COUNT(list) <= METRICS_MOST ? 1 : -1])

/* A type of record whose records are cases. `what` is the word for what its first field
 * names ("job"): among all records with the same word, each name may occur once. NULL:
 * names may repeat. */
struct metrics_record {
    enum rec_type type;
    const char *what;
};

/* A span of time in seconds. from == to: an instant. from is NAN: it never came. */
struct metrics_span {
    double from, to;
};

/* A case: what a family reads from a record. */
struct metrics_case {
    struct metrics_span at[METRICS_MOMENTS]; /* initially NAN: never */
    double amount[METRICS_MOST];             /* NAN: unknown. Initially 1 */
    double quantity[METRICS_MOST]; /* NAN: none. Initially the value of its key, or NAN */
    double objective;              /* the one that was set, seconds; NAN: none was */
    bool predicted;                /* the stream is a prediction */
    /* The first field names the case, for metrics_keep(). Initially true if the record is
     * of the family's first type, or of one that names the same. */
    bool named;
    struct rec_str label; /* ptr NULL: none */
};

struct metrics_sum {
    unsigned char at; /* the moment at which the amount is added */
    bool rate;        /* it is an amount per second, added over the span of the moment */
};

/* A quantity whose distribution over the cases of a group is a result. */
struct metrics_quantity {
    const char *name, *unit;
    const char *key; /* the key that holds it, in records of the family's first type;
                      * NULL: `take` computes it */
};

/* A quotient of two terms, `amount` / `per`; NAN unless `per` is > 0. */
struct metrics_quotient {
    const char *name, *unit;
    unsigned char amount, per;
};

/* The records of a family that say where its cases begin: records that other families
 * know, too, are cases of this one only behind one of them. */
struct metrics_lead {
    enum rec_type log;
    enum rec_type prediction; /* the same for a stream that is a prediction */
};

/* A name for --by, and the field of a record that is then the name of its group. */
struct metrics_group {
    const char *by;
    unsigned char field;
};

/* A column of the table that shows each group in one line. */
struct metrics_show {
    const char *title, *figure, *statistic;
};

struct metrics_family {
    const char *name;
    const struct metrics_record *cases; /* keys are read from these records */
    size_t ncases;
    /* NULL: all records of `cases` are cases, and none is of a prediction. */
    const struct metrics_lead *lead;
    bool whole; /* a stream has all cases of its run: those of two do not follow on */
    const enum rec_type *others; /* records that say something about later cases */
    size_t nothers;
    /* The keys whose values `take` gets, in this order. List them in the order in which
     * records have them, which makes them fast to find. */
    const char *const *keys;
    size_t nkeys;
    const struct metrics_sum *sums;
    size_t nsums;
    const struct metrics_quantity *quantities;
    size_t nquantities;
    const struct metrics_quotient *figures;
    size_t nfigures;
    /* The last figures and the last quantities of the lists, as many as these say, are
     * optional: they are shown only if a group has a value, and so are their columns. */
    size_t noptional_figures, noptional_quantities;
    /* Figures of each label. Their amount is the number of cases with the label, and the
     * label's name is put behind the figure's. The labels of the list are always shown,
     * in this order; others follow if they occur. */
    const struct metrics_quotient *label_figures;
    size_t nlabel_figures;
    const char *const *labels;
    size_t nlabels;
    const struct metrics_show *shown;
    size_t nshown;
    const struct metrics_quotient *series; /* the figures of an interval of time */
    size_t nseries;
    /* Cases are independent samples of one distribution: then a mean has a standard
     * error, each case is a run, and cases share no time line. */
    bool independent;
    bool objective;    /* the family has figures that need an objective, seconds */
    size_t state_size; /* bytes that `note` and `take` keep; zeros at the beginning */
    /* Takes a record of `others`. */
    bool (*note)(void *state, const struct rec_reader *reader, const struct rec *rec,
                 struct rec_error *err);
    /* Takes a record of `cases`. `key`: the values of the keys; NAN where the record does
     * not have the key. */
    bool (*take)(void *state, const struct rec_reader *reader, const struct rec *rec,
                 const double key[], struct metrics_case *one, struct rec_error *err);
    const struct metrics_group *groups;
    size_t ngroups;
    /* Names the group of a record that `groups` does not name. False, as without a
     * function: the value of the key `by` is its name. True with name->ptr NULL: the
     * record is in no group but the total. `text` is room for a name that is made. */
    bool (*name_group)(const struct rec *rec, const double key[], const char *by,
                       char text[METRICS_NAME_MAX], struct rec_str *name);
    /* The first term behind the sums is 1. Computes those that follow in term[], and may
     * change the sums. The sums are those of a group, or of an interval, that lasts
     * `seconds`. `seen` has the first and the last instant of each moment. `part`: they
     * are of a group, not the total. NULL: none follow. */
    void (*derive)(const void *state, const struct metrics_span seen[], double seconds,
                   bool part, double term[]);
};

/* What every family has; the other fields of a row are given by name. */
#define METRICS_NEEDED(title, records, keys_, sums_, quantities_, quotients, columns, \
                       takes)                                                         \
    .name = (title), .cases = METRICS_LIST(records), .keys = METRICS_LIST(keys_),     \
    .sums = METRICS_LIST(sums_), .quantities = METRICS_LIST(quantities_),             \
    .figures = METRICS_LIST(quotients), .shown = METRICS_LIST(columns), .take = (takes)

/* Names a link in `text`: "FROM > TO". */
void metrics_name_link(struct rec_str from, struct rec_str to,
                       char text[METRICS_NAME_MAX], struct rec_str *name);

extern const struct metrics_family metrics_jobs, metrics_training, metrics_queries,
    metrics_tasks, metrics_bounds, metrics_links, metrics_exchanges, metrics_steps,
    metrics_devices;

#endif
