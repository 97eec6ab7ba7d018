/*
 * What the files of lib/timeline share. take.c turns records into slices, flights, marks
 * and arrows, training.c those of a training run; timeline.c keeps them; lanes.c assigns
 * slices to tracks. trace.c writes the trace, svg.c the picture, page.c the page, whose
 * program is in viewer*.
 */
#ifndef RAMPIPE_TIMELINE_PRIVATE_H
#define RAMPIPE_TIMELINE_PRIVATE_H

#include "rampipe/timeline.h"

enum timeline_shape {
    TIMELINE_SLICE, /* a span of time on a track, or on a lane of it */
    TIMELINE_FLIGHT /* a span that may overlap with others: a transfer, a wait */
};

/* What a slice looks like: its category and its colour. TRAINING ... STALLED have the
 * names of the phases in state records. */
#define TIMELINE_LOOKS(X)                            \
    X(TASK, "task", "#7fbf9f")                       \
    X(FAILED, "failed", "#d95f4b")                   \
    X(OP, "op", "#9ecae1")                           \
    X(FORWARD, "forward", "#9ecae1")                 \
    X(BACKWARD, "backward", "#fdae6b")               \
    X(FORWARD_ODD, "forward odd chunk", "#6baed6")   \
    X(BACKWARD_ODD, "backward odd chunk", "#fd8d3c") \
    X(WEIGHTS, "weights", "#a1d99b")                 \
    X(BATCH, "batch", "#9ecae1")                     \
    X(ITERATION, "iteration", "#9ecae1")             \
    X(TRAINING, "training", "#7fbf9f")               \
    X(DEGRADED, "degraded", "#c7e59b")               \
    X(RECONFIGURING, "reconfiguring", "#fdae6b")     \
    X(STALLED, "stalled", "#bdbdbd")                 \
    X(SEND, "send", "#444444")                       \
    X(WAIT, "wait", "#444444")
#define TIMELINE_LOOK(name, text, colour) TIMELINE_##name,
enum timeline_look { TIMELINE_LOOKS(TIMELINE_LOOK) TIMELINE_NLOOKS };

struct timeline_look_row {
    const char *name, *colour;
};
extern const struct timeline_look_row timeline_looks[TIMELINE_NLOOKS];

/* How a type of record becomes a slice or a flight. The numbers are the indexes of the
 * record's fields, from 1; 0: the record has none. */
struct timeline_row {
    enum rec_type type;
    enum timeline_shape shape;
    enum timeline_look look;
    unsigned char process, track, name, start, end;
    unsigned char other;      /* a flight: what its arrow leads to (`name`: comes from) */
    unsigned char from, to;   /* a flight: the tracks that it leaves and reaches; equal: a
                                 list of them */
    unsigned char status;     /* a slice has failed unless this field is 0 */
    unsigned char bytes;      /* a flight: how many bytes it moves */
    bool job;                 /* its process is a job, in which names are unique */
    bool layer;               /* type= or label= says which layer it is */
    bool runs;                /* each stream is a run of its own */
    bool laned;               /* its track is a named lane, lane=, of the server's */
    const char *process_key;  /* the key that names the process, instead of a field; */
    const char *process_else; /* the process of records without that key */
    const char *counter;      /* the counter that slices add to; NULL: none */
    const char *lane;         /* the word for a lane: "replica" */
};

/* The slices that share a track, or its lanes. */
struct timeline_group {
    uint32_t process;
    const char *name; /* of the track; NULL: it has only lanes */
    const char *lane; /* the word for a lane */
};

/* A slice or a flight. Times are nanoseconds. */
struct timeline_slice {
    const struct timeline_row *row;
    const char *line; /* the record */
    int64_t from, to;
    double bytes;
    uint32_t group; /* index of its group; of a flight: of its process */
    uint32_t name, track;
    uint32_t src, dst; /* a flight: the groups that it leaves and reaches; or REC_NONE */
    enum timeline_look look;
};

struct timeline_mark {
    const char *line;
    enum rec_type type;
    int64_t at;
    uint32_t process;
};

/* An arrow from the last slice of one name to the first slice of another. */
struct timeline_arrow {
    uint32_t src, dst; /* indexes of the names */
    const char *category;
};

struct timeline_name {
    const char *text;
    uint32_t first, last; /* indexes of the first and the last slice; or REC_NONE */
};

/* A training run: the phase and the iteration that have begun. They become slices when
 * the next record says that they have ended. */
struct timeline_training {
    bool stateful;               /* a phase has begun: see state, phase */
    bool iterating;              /* an iteration has begun: see iteration */
    struct timeline_slice state; /* the slice that the phase will be */
    const char *phase;           /* its name */
    int64_t iteration;           /* when the iteration began */
};

/* A job sends over a link at one rate. Times are nanoseconds. */
struct timeline_rate {
    int64_t from, to;
    double rate; /* bytes/s */
    uint32_t link;
};

struct timeline_link {
    const char *name; /* "FROM > TO" */
    double seconds;   /* for which all that it carries would fill it */
    bool shown;       /* it gets a counter */
    bool memory;      /* it is no link but what a server holds, bytes: it gets one */
};

/* What links carry over time. Starts as {0}. */
struct timeline_links {
    struct timeline_link *link;
    size_t nlinks, link_room;
    struct timeline_rate *rate;
    size_t nrates, rate_room;
    struct rec_map names;
    /* Those that have the counters of links, and of memory, once there are points. */
    uint32_t process, memory;
};

/* From `at` on a link carries so much. */
struct timeline_point {
    int64_t at;
    double rate; /* bytes/s */
    uint32_t link;
};

struct timeline {
    int64_t from, to; /* the span that is shown */
    const char *job;  /* NULL: all */
    bool sends, any;
    bool some;            /* `began` is known */
    uint64_t run;         /* streams that have ended */
    uint32_t run_process; /* the first of the present run; REC_NONE: it has none */
    size_t marked;        /* marks of runs that have ended */
    double began;         /* when the first run began, seconds since 1970 */
    int64_t later;        /* by how much the present run began later */
    struct timeline_training training;
    struct timeline_slice batch; /* the last batch of queries */
    uint64_t queries;            /* visits of that batch that are still to come */
    struct timeline_links links;
    uint64_t most; /* links that get a counter */
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
    struct rec_map origins; /* the provenances that are kept: equal ones only once */
    char *provenance;       /* the #@ lines of the streams */
    size_t provenance_len, provenance_room;
    bool opened; /* the provenance of the present stream is taken */
    char *text;  /* buffer of join() */
    size_t text_room;
};

/* ---- take.c, training.c: records ------------------------------------------ */

/* Converts seconds; times beyond 126 years become 126 years. */
int64_t timeline_nanoseconds(double seconds);
/* Reads the field of a record that is a time, and refuses one beyond 126 years. */
bool timeline_get_seconds(const struct rec_reader *reader, const struct rec *rec,
                          size_t index, double *seconds, struct rec_error *err);
/* Finds a process. If each stream is a run of its own (`runs`), then from the second run
 * on the name of a process has the number of the run behind it. */
bool timeline_find_run(struct timeline *t, struct rec_str name, bool runs,
                       uint32_t *process, struct rec_error *err) REC_MUST_CHECK;
/* Take the records `state`, `train` and `trained`, which were checked. */
bool timeline_take_state(struct timeline *t, const struct rec_reader *reader,
                         const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
bool timeline_take_train(struct timeline *t, const struct rec_reader *reader,
                         const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
bool timeline_take_trained(struct timeline *t, const struct rec_reader *reader,
                           const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;

/* ---- timeline.c: what is kept -------------------------------------------- */

/* These find the index of a process, a group or a name, and add it if it is new. `track`
 * is empty if the group has only lanes. */
bool timeline_find_process(struct timeline *t, struct rec_str text, uint32_t *process,
                           struct rec_error *err) REC_MUST_CHECK;
bool timeline_find_group(struct timeline *t, uint32_t process, struct rec_str track,
                         const char *lane, uint32_t *group,
                         struct rec_error *err) REC_MUST_CHECK;
bool timeline_find_name(struct timeline *t, struct rec_str scope, struct rec_str text,
                        uint32_t *name, struct rec_error *err) REC_MUST_CHECK;
/* Finds a name without scope, but does not add it: *name is REC_NONE if it is new. */
bool timeline_get_name(struct timeline *t, struct rec_str text, uint32_t *name,
                       struct rec_error *err) REC_MUST_CHECK;
/* Does a span of time overlap with the one that is shown? */
bool timeline_shows(const struct timeline *t, int64_t from, int64_t to);
bool timeline_add_slice(struct timeline *t, const struct timeline_slice *slice,
                        struct rec_error *err) REC_MUST_CHECK;
bool timeline_add_mark(struct timeline *t, const struct timeline_mark *mark,
                       struct rec_error *err) REC_MUST_CHECK;
bool timeline_add_arrow(struct timeline *t, const struct timeline_arrow *arrow,
                        struct rec_error *err) REC_MUST_CHECK;
/* The name of a slice with that of its layer, "2a Conv2d", made in `text`. If it has no
 * layer, or if both are too long for `text`, its name alone, and `text` is not used. */
enum { TIMELINE_SLICE_NAME = 300 };
const char *timeline_name_slice(const struct timeline *t,
                                const struct timeline_slice *slice,
                                char text[TIMELINE_SLICE_NAME]);
/* Keeps lines of provenance, unless the same lines are kept already. */
bool timeline_add_provenance(struct timeline *t, struct rec_str lines,
                             struct rec_error *err) REC_MUST_CHECK;

/* Finds the value of a key in a list of fields KEY=VALUE with TABs between. False: the
 * key is not in it. */
bool timeline_find_value(struct rec_str keys, const char *name, struct rec_str *value);
/* Finds the first and the last slice of each name. Call it when all slices are added. */
void timeline_find_ends(struct timeline *t);
/* Finds the slices that an arrow leads from and to. False: the arrow cannot be drawn. */
bool timeline_find_arrow(const struct timeline *t, const struct timeline_arrow *arrow,
                         uint32_t *from, uint32_t *to);
enum { TIMELINE_MARK_NAME = 300 };
/* Names a mark: "JOB: CAUSE" of a block record, the event of a train record. */
void timeline_name_mark(const struct timeline_mark *mark, char text[TIMELINE_MARK_NAME]);

/* ---- links.c: what links carry -------------------------------------------- */

void timeline_links_free(struct timeline_links *links);
/* A job sends `bytes` over the link of that name at a rate. Capacity < 0: the name is no
 * link's, but of what a server holds, rate->rate bytes. */
bool timeline_add_rate(struct timeline *t, struct rec_str name, double capacity,
                       const struct timeline_rate *rate, double bytes,
                       struct rec_error *err) REC_MUST_CHECK;
/* Makes the values of the counters of the most loaded links, for each instant at which
 * they change, by links. *point is to be freed, also if this fails. */
bool timeline_make_points(struct timeline *t, struct timeline_point **point, size_t *n,
                          struct rec_error *err) REC_MUST_CHECK;

/* ---- lanes.c: which slice is on which track -------------------------------- */

/* A track, or a lane of one. */
struct timeline_track {
    uint32_t group; /* index of the group; of flights: of the process */
    uint32_t lane;  /* from 0 */
    enum timeline_shape shape;
};

/* Starts as {0}. */
struct timeline_lanes {
    struct timeline_track *track;
    size_t ntracks, track_room;
};

/* Sets the track of each slice and, if `flights`, of each flight, on lanes of their
 * own. */
bool timeline_lay(struct timeline *t, struct timeline_lanes *lanes, bool flights,
                  struct rec_error *err) REC_MUST_CHECK;
/* The index of a track's process. */
uint32_t timeline_process(const struct timeline *t, struct timeline_track track);
/* Sets order[0..ntracks) to the tracks in the order in which they are shown. */
void timeline_order_tracks(const struct timeline *t, const struct timeline_lanes *lanes,
                           uint32_t *order);
void timeline_lanes_free(struct timeline_lanes *lanes);
/* Names a track of slices: "server", "server, lane 2", "lane 1". Not for flights. */
enum { TIMELINE_TRACK_NAME = 300 };
void timeline_name_track(const struct timeline *t, struct timeline_track track,
                         char text[TIMELINE_TRACK_NAME]);

#endif
