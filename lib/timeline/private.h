/* What the files of lib/timeline share: timeline.c what is kept, write.c the trace. */
#ifndef RAMPIPE_TIMELINE_PRIVATE_H
#define RAMPIPE_TIMELINE_PRIVATE_H

#include "rampipe/timeline.h"

enum timeline_shape {
    TIMELINE_SLICE, /* on a track, or a lane */
    TIMELINE_FLIGHT /* may overlap with others */
};

/* A type of record that is shown: the numbers of its fields, 0 for none. */
struct timeline_row {
    enum rec_type type;
    enum timeline_shape shape;
    const char *category;
    unsigned char process, track, name, other; /* other: behind the name and an arrow */
    unsigned char start, end, status, bytes;   /* status: it failed unless that is 0 */
    const char *process_key;                   /* which names the process instead, */
    const char *process_else;                  /* if there is one */
};

/* Slices on one track, or in lanes. */
struct timeline_group {
    uint32_t process;
    const char *name; /* NULL: of lanes */
};

/* Times are nanoseconds. */
struct timeline_slice {
    const struct timeline_row *row;
    const char *line; /* the record */
    int64_t from, to;
    double bytes;
    uint32_t group; /* of a flight: its process */
    uint32_t name, track;
    bool failed;
};

struct timeline_mark {
    const char *line;
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

struct timeline {
    int64_t from, to;
    bool any, some;
    double began;  /* of the first run, seconds since 1970 */
    int64_t later; /* the last one, since then */
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
};

#endif
