/* A reducer at work, which no family sees: metrics.c fills it, figures.c reads it. */
#ifndef RAMPIPE_METRICS_ENGINE_H
#define RAMPIPE_METRICS_ENGINE_H

#include "private.h"

/* Cases that have something in common. */
struct group {
    const char *name;
    double sum[METRICS_MOST];
    uint64_t known, unknown;   /* bit i: a case gave amount i, a case lacked it */
    struct metrics_dist *dist; /* per quantity */
    uint64_t *labelled;        /* cases per label, by its index */
    size_t nlabelled, labelled_room;
};

struct label {
    const char *name;
    uint32_t index;
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
    double *bin; /* the sums of each interval */
    size_t nbins, bin_room;
    struct rec_arena arena;
};

_Static_assert(METRICS_MOST <= 64, "known and unknown have a bit for each sum");

/* Which figure, counted from 0 (quantities behind the others), and which statistic of it a
 * column shows. False: there is none. */
bool metrics_find_shown(const struct metrics_family *family,
                        const struct metrics_show *show, size_t *figure,
                        size_t *statistic);

#endif
