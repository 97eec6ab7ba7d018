/*
 * The parts of a template, shared by the files that read it and write it out. Its texts
 * are owned by the YAML source, which lives as long as the template. All objects of one
 * kind lie in one array; a list is the index of its first object and their number.
 *
 *     documents > steps > executables > patterns > pieces
 *               > parameters > values
 */
#ifndef TASK_TEMPLATE_H
#define TASK_TEMPLATE_H

#include "rampipe/task.h"
#include "rampipe/yaml.h"

/** A piece of a text: as it is, or the value of a parameter. */
struct piece {
    struct rec_str text;
    uint32_t parameter; /* REC_NONE: as it is */
};

/** A text with parameters. Line 0: it is not given. */
struct pattern {
    size_t first, n; /* pieces */
    uint64_t line;
};

struct patterns {
    size_t first, n;
};

struct executable {
    uint64_t line;
    struct pattern target, ranks, cwd;
    struct patterns arguments, env; /* env: NAME=VALUE */
};

enum { DAYS, HOURS, MINUTES, SECONDS, NTIMES };

/** A task of a template. */
struct step {
    uint64_t line;
    bool job; /* its executables are started by mpiexec */
    struct pattern name, cores, memory, cost, retries, ok, input, output, error;
    struct pattern timeout[NTIMES];
    struct patterns reads, writes;
    size_t first, n; /* executables */
};

/** A text, or numbers from .. to. */
struct value {
    struct rec_str text; /* ptr NULL: numbers */
    uint64_t from, to;
    int width; /* least number of digits, filled with zeros */
};

struct parameter {
    const char *name;
    uint64_t line;
    size_t first, n; /* values; 0: it must be given */
    uint32_t column; /* of the rows; REC_NONE: in none */
    bool given;      /* values, by an option or by rows */
    size_t place;    /* index of its present value */
    uint64_t offset; /* present number of that value, if it is a range: from + offset */
    struct rec_str now;
    char number[24];
};

/** A document. */
struct part {
    size_t first, n; /* steps */
    size_t first_parameter, nparameters;
    bool columns; /* one of its parameters is a column */
};

struct text {
    char *bytes;
    size_t used, room;
};

struct task_template {
    const char *file; /* the arena's */
    struct yaml_source *source;
    struct rec_arena arena; /* of values given, cells, ids */
    struct rec_map names;   /* of the parameters of the document that is read */
#define ARRAY(type, name) \
    struct type *name;    \
    size_t n##name, name##_room
    ARRAY(piece, piece);
    ARRAY(pattern, pattern);
    ARRAY(executable, executable);
    ARRAY(step, step);
    ARRAY(parameter, parameter);
    ARRAY(value, value);
    ARRAY(part, part);
#undef ARRAY
    const char **cell; /* rows of ncolumns each */
    size_t ncells, cell_room, ncolumns, nrows;
    bool begun;
    size_t at_part, at_row, at_step;
    struct text text, command; /* of the task at hand */
    uint64_t mark;             /* a hash of all texts that it is made of */
    struct rec_map ids;        /* id of an earlier task -> index of its mark in `known` */
    uint64_t *known;
    size_t nknown, known_room;
};

/** Appends a value; with `ranges` A..B is numbers. REC_USAGE: they count down, ... */
bool template_add_value(struct task_template *t, struct parameter *parameter,
                        struct rec_str text, bool ranges,
                        struct rec_error *err) REC_MUST_CHECK;

#endif
