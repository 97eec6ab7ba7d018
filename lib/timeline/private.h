/* What the files of lib/timeline share: timeline.c what is kept, take.c which records it
 * comes of, lanes.c where it lies, trace.c the trace, svg.c the picture, page.c the page,
 * whose program is viewer.css, viewer.html, viewer_*.js. */
#ifndef RAMPIPE_TIMELINE_PRIVATE_H
#define RAMPIPE_TIMELINE_PRIVATE_H

#include "rampipe/timeline.h"

enum timeline_shape {
    TIMELINE_SLICE, /* on a track, or a lane */
    TIMELINE_FLIGHT /* may overlap with others */
};

/* What a slice looks like: its category, and its colour. The phases of training are
 * called as state records call them. */
#define TIMELINE_LOOKS(X)                        \
    X(TASK, "task", "#7fbf9f")                   \
    X(FAILED, "failed", "#d95f4b")               \
    X(OP, "op", "#9ecae1")                       \
    X(FORWARD, "forward", "#9ecae1")             \
    X(BACKWARD, "backward", "#fdae6b")           \
    X(BATCH, "batch", "#9ecae1")                 \
    X(ITERATION, "iteration", "#9ecae1")         \
    X(TRAINING, "training", "#7fbf9f")           \
    X(DEGRADED, "degraded", "#c7e59b")           \
    X(RECONFIGURING, "reconfiguring", "#fdae6b") \
    X(STALLED, "stalled", "#bdbdbd")             \
    X(SEND, "send", "#444444")                   \
    X(WAIT, "wait", "#444444")
#define TIMELINE_LOOK(name, text, colour) TIMELINE_##name,
enum timeline_look { TIMELINE_LOOKS(TIMELINE_LOOK) TIMELINE_NLOOKS };

struct timeline_look_row {
    const char *name, *colour;
};
extern const struct timeline_look_row timeline_looks[TIMELINE_NLOOKS];

/* A type of record that is shown: the numbers of its fields, 0 for none. */
struct timeline_row {
    enum rec_type type;
    enum timeline_shape shape;
    enum timeline_look look;
    unsigned char process, track, name, start, end;
    unsigned char other;      /* a flight's: behind its name, at the head of its arrow */
    unsigned char from, to;   /* and its tracks */
    unsigned char scope;      /* names are those of this field, 0: of all */
    unsigned char status;     /* it failed unless that is 0 */
    unsigned char bytes;      /* of a flight */
    bool job;                 /* its process is a job */
    bool layer;               /* type= or label= says which layer it is */
    bool runs;                /* each stream is a run of its own */
    const char *process_key;  /* which names the process instead, */
    const char *process_else; /* if there is one */
    const char *counter;      /* of what goes on; NULL: none */
    const char *lane;         /* what a lane is called */
};

/* Slices on one track, or in lanes. */
struct timeline_group {
    uint32_t process;
    const char *name; /* NULL: of lanes */
    const char *lane; /* what one is called */
};

/* Times are nanoseconds. */
struct timeline_slice {
    const struct timeline_row *row;
    const char *line; /* the record */
    int64_t from, to;
    double bytes;
    uint32_t group; /* of a flight: its process */
    uint32_t name, track;
    uint32_t src, dst; /* of a flight: groups; REC_NONE */
    enum timeline_look look;
};

struct timeline_mark {
    const char *line;
    enum rec_type type;
    int64_t at;
    uint32_t process;
};

struct timeline_arrow {
    uint32_t src, dst; /* names */
    const char *category;
};

struct timeline_name {
    const char *text;
    uint32_t first, last; /* slices; REC_NONE */
};

/* A training run: what has begun and is shown once it ends. */
struct timeline_training {
    bool stateful, iterating;
    struct timeline_slice state;
    const char *phase;
    int64_t iteration; /* when the one that is under way began */
};

struct timeline {
    int64_t from, to;
    const char *job; /* NULL: all */
    bool sends, any, some;
    uint64_t run;  /* streams that have ended */
    double began;  /* of the first run, seconds since 1970 */
    int64_t later; /* the last one, since then */
    struct timeline_training training;
    struct timeline_slice batch; /* the last one, of `queries` more visits */
    uint64_t queries;
    struct timeline_slice *slice;
    size_t nslices, slice_room;
    struct timeline_mark *mark;
    size_t nmarks, mark_room;
    struct timeline_arrow *arrow;
    size_t narrows, arrow_room;
    const char **process;
    size_t nprocesses, process_room;
    struct timeline_group *group;
    size_t ngroups, group_room;
    struct timeline_name *name;
    size_t nnames, name_room;
    struct rec_map processes, groups, names;
    struct rec_arena arena;
    struct rec_map origins; /* which provenance is kept */
    char *provenance;       /* of the streams, a line each */
    size_t provenance_len, provenance_room;
    bool opened; /* the provenance of the stream that is read was taken */
    char *text;  /* scratch */
    size_t text_room;
};

/* ---- timeline.c: what is kept -------------------------------------------- */

bool timeline_find_process(struct timeline *t, struct rec_str text, uint32_t *process,
                           struct rec_error *err) REC_MUST_CHECK;
/* `track` is empty for lanes. */
bool timeline_find_group(struct timeline *t, uint32_t process, struct rec_str track,
                         const char *lane, uint32_t *group,
                         struct rec_error *err) REC_MUST_CHECK;
bool timeline_find_name(struct timeline *t, struct rec_str scope, struct rec_str text,
                        uint32_t *name, struct rec_error *err) REC_MUST_CHECK;
/* *name is REC_NONE if there is no such. */
bool timeline_get_name(struct timeline *t, struct rec_str text, uint32_t *name,
                       struct rec_error *err) REC_MUST_CHECK;
/* Is it in the time that is shown? */
bool timeline_shows(const struct timeline *t, int64_t from, int64_t to);
bool timeline_add_slice(struct timeline *t, const struct timeline_slice *slice,
                        struct rec_error *err) REC_MUST_CHECK;
bool timeline_add_mark(struct timeline *t, const struct timeline_mark *mark,
                       struct rec_error *err) REC_MUST_CHECK;
bool timeline_add_arrow(struct timeline *t, const struct timeline_arrow *arrow,
                        struct rec_error *err) REC_MUST_CHECK;
/* What a slice is called: its name and, if it has one, its layer's, "2a Conv2d". Without
 * a layer, or where both together are longer than `text`, the name alone, and `text` is
 * not used. */
enum { TIMELINE_SLICE_NAME = 300 };
const char *timeline_name_slice(const struct timeline *t,
                                const struct timeline_slice *slice,
                                char text[TIMELINE_SLICE_NAME]);
/* Keeps lines of provenance, if they are not there yet. */
bool timeline_add_provenance(struct timeline *t, struct rec_str lines,
                             struct rec_error *err) REC_MUST_CHECK;

/* The value of a key among fields KEY=VALUE with a TAB between; false: it is not
 * there. */
bool timeline_find_value(struct rec_str keys, const char *name, struct rec_str *value);
/* Finds the first and the last slice of each name, once all slices are there. */
void timeline_find_ends(struct timeline *t);
/* The slices that an arrow leads from and to; false: it is not drawn. */
bool timeline_find_arrow(const struct timeline *t, const struct timeline_arrow *arrow,
                         uint32_t *from, uint32_t *to);
enum { TIMELINE_MARK_NAME = 300 };
void timeline_name_mark(const struct timeline_mark *mark, char text[TIMELINE_MARK_NAME]);

/* ---- lanes.c: where slices lie ------------------------------------------- */

struct timeline_track {
    uint32_t group, lane; /* of flights: the process */
    enum timeline_shape shape;
};

/* Starts as {0}. */
struct timeline_lanes {
    struct timeline_track *track;
    size_t ntracks, track_room;
};

/* Gives each slice its track; flights have lanes of their own, if they shall have any. */
bool timeline_lay(struct timeline *t, struct timeline_lanes *lanes, bool flights,
                  struct rec_error *err) REC_MUST_CHECK;
uint32_t timeline_process(const struct timeline *t, struct timeline_track track);
/* The order in which tracks are shown: order[0..ntracks) is set. */
void timeline_order_tracks(const struct timeline *t, const struct timeline_lanes *lanes,
                           uint32_t *order);
void timeline_lanes_free(struct timeline_lanes *lanes);
/* What a track of slices is called. */
enum { TIMELINE_TRACK_NAME = 300 };
void timeline_name_track(const struct timeline *t, struct timeline_track track,
                         char text[TIMELINE_TRACK_NAME]);

#endif
