/* The state of a reducer, which the families do not see. metrics.c fills it, figures.c
 * computes figures from it, runs.c handles several streams, compare.c two reducers. */
#ifndef RAMPIPE_METRICS_ENGINE_H
#define RAMPIPE_METRICS_ENGINE_H

#include "private.h"

enum {
    METRICS_RECORDS = 4, /* types of records that are cases of a family, at most */
    METRICS_LEVELS = 40  /* levels of a series: 2^40 intervals do not fit into memory */
};

/* The sums and distributions of all cases (the total), or of those of one group. */
struct group {
    const char *name;
    uint32_t id; /* 0: the total. Does not change when the groups are sorted */
    double sum[METRICS_MOST];
    uint64_t known, unknown;         /* bit i: a case has amount i; a case lacks it */
    struct metrics_dist *dist;       /* one for each quantity of the family */
    uint64_t labelled[METRICS_MOST]; /* cases with each label of the family's list */
};

struct metrics_runs;

/* A label of cases, such as a cause of blocking. */
struct label {
    const char *name;
    uint32_t index; /* does not change when the labels are sorted */
};

/* The key of the map that counts the cases of a group with a label. */
struct labelled {
    uint32_t group, label;
};

/* A level of the series, which is a binary tree of intervals of time. Level 0 has the
 * intervals themselves. Node i of level k stands for the 2^k intervals from i * 2^k on,
 * and holds the amounts that were added to each of them at once. So a case that lasts for
 * n intervals changes O(log n) nodes; the sums of an interval are those of its node in
 * each level, added up. */
struct level {
    double *sum;
    size_t n, room; /* nodes */
};

struct metrics {
    const struct metrics_family *family;
    void *state;      /* what the family keeps between records */
    const char *by;   /* the key that makes groups; NULL: none does */
    double seconds;   /* width of an interval; 0: no series */
    double objective; /* NAN: none */
    bool predicted;   /* the stream is a prediction */
    /* Before a record of type `lead` has come, no record is a case. REC_OTHER: all
     * are. */
    enum rec_type lead;
    bool leads;                /* a record of type `lead` has come */
    struct metrics_kept *kept; /* values of cases by name; NULL: none are kept */
    uint64_t cases;
    struct metrics_span seen[METRICS_MOMENTS]; /* first and last of each; NAN: none yet */
    enum { NOTHING, NOTE, CASE } role[REC_NTYPES];
    /* The keys to read: those that the family lists, then those of its quantities. */
    const struct rec_field_spec *key[METRICS_MOST];
    size_t nkeys;
    size_t quantity_key[METRICS_MOST]; /* the index in `key` of a quantity's key */

    /* The figures, quantities and columns that are shown, as indexes into the family's
     * lists. metrics_find_present() chooses them. */
    size_t figure[METRICS_MOST], quantity[METRICS_MOST], shown[METRICS_MOST];
    size_t nfigures, nquantities, nshown;

    struct group *group; /* [0] is the total */
    size_t ngroups, room;
    struct rec_map names; /* of a group -> its index */
    struct label *label;  /* those of the family's list, then others */
    size_t nlabels, label_room;
    const char **label_figure; /* names of the figures of each label, by its index */
    size_t label_figure_room;
    struct rec_map labels; /* name -> index */
    /* Of a family whose cases share a time line: */
    const char *file; /* the file being read; NULL: none yet */
    uint64_t header;  /* the number of headers before the last record */
    bool marked;      /* the stream has ended; a record begins the next */
    bool apart;       /* a run before this one has cases */
    bool mixed;       /* a stream was refused because it does not belong to this run */
    double before;    /* when the streams before this one ended, seconds */
    double last;      /* when this one ended, as far as it was read */
    /* Types of records whose first fields name the same (done and block both name jobs)
     * share the set `ended` of the first of them, whose index is named[type]. what[type]
     * is the word for it ("job"); NULL: names may repeat. */
    struct rec_ids ended[METRICS_RECORDS];
    const char *what[REC_NTYPES];
    unsigned char named[REC_NTYPES];
    const char *noted[REC_NTYPES]; /* the first NOTE of a type: others must be equal */
    struct metrics_runs *runs;     /* NULL: all streams are one run */

    /* Counts of labels that are not in the family's list: struct labelled -> index of
     * count[]. */
    struct rec_map counted;
    uint64_t *count;
    size_t ncounts, count_room;
    struct rec_limit limit; /* on the number of intervals */
    size_t nintervals;
    struct level level[METRICS_LEVELS];
    size_t nlevels;
    struct rec_arena arena;
};

/* The number of cases of a group with a label that is not in the family's list; NULL:
 * none. */
uint64_t *metrics_labelled(const struct metrics *m, uint32_t group, uint32_t label);

_Static_assert(METRICS_MOST <= 64, "known and unknown have a bit for each sum");

/* ---- metrics.c ---- */

/* Forgets all records taken so far, for the next run. */
void metrics_clear(struct metrics *m);
/* Compares names of groups: numbers by value, and before other names. */
int metrics_compare_names(const char *a, const char *b);

/* ---- intervals.c ---- */

/* Adds the amounts of a case to the intervals, as metrics.c adds them to a group. */
bool metrics_spread_case(struct metrics *m, const struct metrics_case *one,
                         struct rec_error *err) REC_MUST_CHECK;

/* ---- compare.c ---- */

/* Keeps the value of a case under its name. A later value replaces it, unless it is not
 * finite. */
bool metrics_keep_case(struct metrics_kept *kept, struct rec_str id, double value,
                       struct rec_error *err) REC_MUST_CHECK;
void metrics_kept_free(struct metrics_kept *kept);

/* ---- figures.c ---- */

/* Call it when all cases of a run, or of the stream, are counted. Chooses the figures,
 * quantities and columns that are shown: optional ones only if a group has a value. */
void metrics_find_present(struct metrics *m);
/* The statistics of a distribution; with the mean's standard error if `independent`. */
void metrics_describe(bool independent, struct metrics_dist *dist,
                      struct metrics_figure *figure);
/* As metrics_figure(), for the run that is being reduced. */
bool metrics_run_figure(struct metrics *m, size_t group, size_t i,
                        struct metrics_figure *figure);

/* ---- runs.c ---- */

/* Call it before each record. Begins the next stream if a mark or another file has ended
 * the last one. */
bool metrics_next_stream(struct metrics *m, const struct rec_reader *reader,
                         struct rec_error *err) REC_MUST_CHECK;
/* Checks that a NOTE (a cluster) is the same in all streams. */
bool metrics_same_note(struct metrics *m, const struct rec_reader *reader,
                       const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/* Checks that a case has not ended before, and that it does not end before the streams
 * before this one have ended. */
bool metrics_follows(struct metrics *m, const struct rec_reader *reader,
                     const struct rec *rec, const struct metrics_case *one,
                     struct rec_error *err) REC_MUST_CHECK;

struct metrics_runs *metrics_runs_new(struct rec_error *err);
void metrics_runs_free(struct metrics_runs *runs);
/* Ends a run: adds its figures to the distributions, if it has a case, and clears m. */
bool metrics_end_run(struct metrics *m, struct rec_error *err) REC_MUST_CHECK;
void metrics_runs_end(struct metrics_runs *runs);
uint64_t metrics_runs_count(const struct metrics_runs *runs);
size_t metrics_runs_ngroups(const struct metrics_runs *runs);
const char *metrics_runs_group(const struct metrics_runs *runs, size_t group);
bool metrics_runs_figure(struct metrics_runs *runs, size_t group, size_t i,
                         struct metrics_figure *figure);
/* The value of a column: the mean of its figure over the runs. False: no run had the
 * figure. */
bool metrics_runs_mean(const struct metrics_runs *runs, size_t group,
                       const struct metrics_show *show, struct metrics_value *value);

/* Finds what a column shows: the index of its figure, where the family's quantities are
 * counted behind its figures, and the index of its statistic. False: there is none. */
bool metrics_find_shown(const struct metrics_family *family,
                        const struct metrics_show *show, size_t *figure,
                        size_t *statistic);

#endif
