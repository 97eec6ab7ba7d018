/* A reducer at work, which no family sees: metrics.c fills it, figures.c reads it. */
#ifndef RAMPIPE_METRICS_ENGINE_H
#define RAMPIPE_METRICS_ENGINE_H

#include "private.h"

enum { METRICS_RECORDS = 4 }; /* of a family, that are cases */
enum { METRICS_LEVELS = 40 }; /* of a series: 2^40 intervals are more than memory holds */

/* Cases that have something in common. */
struct group {
    const char *name;
    uint32_t id; /* 0: the total; they are sorted at the end */
    double sum[METRICS_MOST];
    uint64_t known, unknown;         /* bit i: a case gave amount i, a case lacked it */
    struct metrics_dist *dist;       /* per quantity */
    uint64_t labelled[METRICS_MOST]; /* cases per label of the family */
};

struct metrics_runs;

struct label {
    const char *name;
    uint32_t index;
};

/* Which label in which group, a key of a map. */
struct labelled {
    uint32_t group, label;
};

/* Intervals are joined in pairs, those in pairs, ...: node i of level k has the sums of
 * what lasted for all of the intervals from i * 2^k on, up to (i + 1) * 2^k. */
struct level {
    double *sum;
    size_t n, room; /* nodes */
};

struct metrics {
    const struct metrics_family *family;
    void *state; /* of the family */
    const char *by;
    double seconds;     /* of an interval; 0: no series */
    double objective;   /* NAN: none */
    bool predicted;     /* the stream is a prediction */
    enum rec_type lead; /* until it has come, there is no case; REC_OTHER: none has to */
    bool leads;         /* it was such a record that came */
    struct metrics_kept *kept; /* of each case; NULL: nothing is */
    uint64_t cases;
    struct metrics_span seen[METRICS_MOMENTS]; /* first and last of each; NAN: none yet */
    enum { NOTHING, NOTE, CASE } role[REC_NTYPES];
    const struct rec_field_spec *key[METRICS_MOST]; /* the family's, then others that */
    size_t nkeys;                                   /* are quantities; */
    size_t quantity_key[METRICS_MOST];              /* which of them, if it has one */

    /* What comes out, metrics_find_present(): indexes of the family's figures, quantities
     * and columns. */
    size_t figure[METRICS_MOST], quantity[METRICS_MOST], shown[METRICS_MOST];
    size_t nfigures, nquantities, nshown;

    struct group *group; /* [0] is the total */
    size_t ngroups, room;
    struct rec_map names;
    struct label *label; /* the family's, then others */
    size_t nlabels, label_room;
    const char **label_figure; /* names: those of the label of index 0, of 1, ... */
    size_t label_figure_room;
    struct rec_map labels;
    /* of a family whose cases share a time line: */
    const char *file;    /* being read; NULL: none yet */
    bool marked;         /* the stream has ended */
    bool mixed;          /* it was refused, for it is not of one run with the others */
    double before, last; /* when the streams before ended, this one so far */
    struct rec_ids
        ended[METRICS_RECORDS];   /* of the record of this index, and others that */
    const char *what[REC_NTYPES]; /* name the same: what, and which index */
    unsigned char named[REC_NTYPES];
    const char *noted[REC_NTYPES]; /* the line that said something of all cases */
    struct metrics_runs *runs;     /* NULL: all streams are one run */

    struct rec_map counted; /* labels that are not the family's, in a group -> count */
    uint64_t *count;
    size_t ncounts, count_room;
    struct rec_limit limit;
    size_t nintervals;
    struct level level[METRICS_LEVELS]; /* [0]: the intervals themselves */
    size_t nlevels;
    struct rec_arena arena;
};

/* Cases that a label that is not the family's has in a group; NULL: none. */
uint64_t *metrics_labelled(const struct metrics *m, uint32_t group, uint32_t label);

_Static_assert(METRICS_MOST <= 64, "known and unknown have a bit for each sum");

/* ---- metrics.c ---- */

/* All that was reduced is forgotten. */
void metrics_clear(struct metrics *m);
/* The order of groups. */
int metrics_compare_names(const char *a, const char *b);

/* ---- compare.c ---- */

/* The value of a case. */
bool metrics_keep_case(struct metrics_kept *kept, struct rec_str id, double value,
                       struct rec_error *err) REC_MUST_CHECK;
void metrics_kept_free(struct metrics_kept *kept);

/* ---- figures.c ---- */

/* All cases are counted, of a run or of the stream: finds out which of the family's
 * optional figures and quantities a group has a value of. */
void metrics_find_present(struct metrics *m);
/* The statistics of a distribution; with the mean's standard error if `independent`. */
void metrics_describe(bool independent, struct metrics_dist *dist,
                      struct metrics_figure *figure);
/* metrics_figure() of what is being reduced, a run. */
bool metrics_run_figure(struct metrics *m, size_t group, size_t i,
                        struct metrics_figure *figure);

/* ---- runs.c ---- */

/* A record is of the next stream, if the last one has ended or the file is another. */
bool metrics_next_stream(struct metrics *m, const struct rec_reader *reader,
                         struct rec_error *err) REC_MUST_CHECK;
/* What a record says of all cases it says alike in all streams. */
bool metrics_same_note(struct metrics *m, const struct rec_reader *reader,
                       const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/* A case is new, and on the time line behind the streams before. */
bool metrics_follows(struct metrics *m, const struct rec_reader *reader,
                     const struct rec *rec, const struct metrics_case *one,
                     struct rec_error *err) REC_MUST_CHECK;

struct metrics_runs *metrics_runs_new(struct rec_error *err);
void metrics_runs_free(struct metrics_runs *runs);
/* What is being reduced is a whole run, if it has a case. */
bool metrics_end_run(struct metrics *m, struct rec_error *err) REC_MUST_CHECK;
void metrics_runs_end(struct metrics_runs *runs);
uint64_t metrics_runs_count(const struct metrics_runs *runs);
size_t metrics_runs_ngroups(const struct metrics_runs *runs);
const char *metrics_runs_group(const struct metrics_runs *runs, size_t group);
bool metrics_runs_figure(struct metrics_runs *runs, size_t group, size_t i,
                         struct metrics_figure *figure);
/* A column: the mean over the runs. False: no run had the figure. */
bool metrics_runs_mean(const struct metrics_runs *runs, size_t group,
                       const struct metrics_show *show, struct metrics_value *value);

/* Which figure, counted from 0 (quantities behind the others), and which statistic of it
 * a column shows. False: there is none. */
bool metrics_find_shown(const struct metrics_family *family,
                        const struct metrics_show *show, size_t *figure,
                        size_t *statistic);

#endif
