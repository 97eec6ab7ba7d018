/* A reducer at work, which no family sees: metrics.c fills it, figures.c reads it. */
#ifndef RAMPIPE_METRICS_ENGINE_H
#define RAMPIPE_METRICS_ENGINE_H

#include "private.h"

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

struct label {
    const char *name;
    uint32_t index;
};

/* Which label in which group, a key of a map. */
struct labelled {
    uint32_t group, label;
};

/* Intervals are joined in pairs, those in pairs, ...: node i of level k has the sums of what
 * lasted for all of the intervals from i * 2^k on, up to (i + 1) * 2^k. */
struct level {
    double *sum;
    size_t n, room; /* nodes */
};

struct metrics {
    const struct metrics_family *family;
    void *state; /* of the family */
    const char *by;
    double seconds; /* of an interval; 0: no series */
    uint64_t cases;
    struct metrics_span seen[METRICS_MOMENTS]; /* first and last of each; NAN: none yet */
    enum { NOTHING, NOTE, CASE } role[REC_NTYPES];
    const struct rec_field_spec *key[METRICS_MOST]; /* the family's, then others that */
    size_t nkeys;                                   /* are quantities; */
    size_t quantity_key[METRICS_MOST];              /* which of them, if it has one */

    struct group *group; /* [0] is the total */
    size_t ngroups, room;
    struct rec_map names;
    struct label *label; /* the family's, then others */
    size_t nlabels, label_room;
    const char **label_figure; /* names: those of the label of index 0, of 1, ... */
    size_t label_figure_room;
    struct rec_map labels;
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

/* Which figure, counted from 0 (quantities behind the others), and which statistic of it a
 * column shows. False: there is none. */
bool metrics_find_shown(const struct metrics_family *family,
                        const struct metrics_show *show, size_t *figure,
                        size_t *statistic);

#endif
