/*
 * rampipe/task.h - task lists: commands in the order of a sequential program, and the
 * graph of dependencies that follows from what they read and write.
 *
 *     a  writes x            a ---raw---> b ---war---> d
 *     b  reads x              \--raw---> c ---war---/
 *     c  reads x, writes y
 *     d  writes x            b and c may run at the same time; d runs after both
 *
 * An object is a path (normalised: a/../b is b), a whole folder (dir/, which stands for
 * dir and everything below it), or a name (@NAME). A task that reads an object needs the
 * data of the last task that wrote it (raw: read after write). A task that writes an
 * object comes after all tasks that have read it since the last write (war); if there are
 * none, it comes after the last writer (waw; raw if it also reads the object). Between
 * two tasks one edge is kept: raw if any of the reasons is raw. Source: the inference of
 * dependencies in Dragon Batch 0.14.1, without two of its faults (task2graph(1)).
 */
#ifndef RAMPIPE_TASK_H
#define RAMPIPE_TASK_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- tasks --------------------------------------------------------------- */

/** The longest name of an object, bytes: no path can be longer. */
enum { TASK_NAME_MAX = 4096 };

/** Names of objects, normalised. Owned by the task. */
struct task_names {
    const char **name;
    size_t n, room;
};

/** The number of retries of a task that gives none: the caller of run_tasks() says it. */
#define TASK_NOT_GIVEN UINT64_MAX

/** A task, as its record describes it. Starts as {0}. It owns all that it points to,
 * which stays valid until task_free() or the next task_read(). */
struct task {
    const char *id, *command;
    double timeout;        /* seconds; INFINITY: none */
    double cost;           /* seconds; NAN: not given */
    double memory;         /* bytes; 0: not given */
    uint32_t cores;        /* 1 if not given */
    uint64_t retries;      /* TASK_NOT_GIVEN if not given */
    bool ok_any;           /* any exit status is success (ok=any) */
    const char *cwd, *env; /* with the escapes of the record; NULL: not given */
    const char *standard_input, *standard_output, *standard_error; /* NULL: not given */
    /* The text to send to a worker, whose command is COMMAND; with the escapes of the
     * record. NULL: the task is a process of its own. */
    const char *call;
    struct task_names reads, writes; /* includes the files of its streams */
    struct rec_arena arena;
};

/** Reads a task record. REC_DATA: the record is not valid, for example because a name is
 * empty, an escape is wrong or a quote is not closed. */
bool task_read(struct task *task, const struct rec_reader *reader, const struct rec *rec,
               struct rec_error *err) REC_MUST_CHECK;
/** Checks what task_read() checks of a task as a whole: its environment, and that its
 * streams are files. REC_DATA: they are not. */
bool task_check_form(const struct task *task, struct rec_error *err) REC_MUST_CHECK;
/** Writes the record of a task, with normalised names. */
void task_write(struct rec_writer *writer, const struct task *task);
void task_free(struct task *task);

/** A check of the tasks of a stream: each record by itself, and that no name comes twice.
 * Starts as {0}. */
struct task_check {
    struct task task;
    struct rec_ids ids;
};

/** Checks a record if it is a task; all other records pass. REC_DATA: the task is not
 * valid, or its name has come before. */
bool task_check_take(struct task_check *check, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
void task_check_free(struct task_check *check);

/**
 * Writes the normal form of a name into `text`, which must have room for the bytes of
 * `name` and 3 more. Empty and . components are left out; a .. removes the component
 * before it, if there is one: a//./b is a/b, a/../b is b, ../a stays, /../a is /a. A / at
 * the end stays. Names that begin with @ are copied. False: the name is empty, just "@",
 * or longer than TASK_NAME_MAX.
 */
bool task_normalise(char *text, struct rec_str name) REC_MUST_CHECK;

/** Do two normalised names overlap: are they the same object, or is one a folder (dir/)
 * and the other this folder itself or below it? The hazards agree. */
bool task_overlap(const char *a, const char *b);

/** The ID in @ID.stdout, @ID.stderr or @ID.result, as a part of `name`; *kind: the part
 * behind the dot. {NULL}: it is another name. */
struct rec_str task_output(const char *name, const char **kind);

/** Cuts the next word of a command from `rest` and writes it, without its quotes and with
 * a NUL, into `word`, which must have room for the bytes of `rest` and 1 more. Words are
 * those of a shell: blanks divide, '...', "..." and \ quote; nothing is expanded. Returns
 * 1 for a word, 0 at the end, -1 if a quote is not closed. */
int task_word(struct rec_str *rest, char *word) REC_MUST_CHECK;

/** Are all escapes of a text valid? An escape is %XX, as %2C for a comma. False: a % does
 * not begin an escape, or begins that of a NUL. */
bool task_is_escaped(struct rec_str text) REC_MUST_CHECK;
/** Writes a text with valid escapes without them; `to` must have room for the text
 * and a NUL. Returns the address behind the NUL. */
char *task_unescape(char *to, struct rec_str text);

/* ---- task files ---------------------------------------------------------- */

/*
 * A task file has one line for each task. Indented lines below it give more fields of the
 * task's record:
 *
 *     # the data
 *     fetch: -> raw.csv | curl -so raw.csv http://example.org/raw.csv
 *     clean: raw.csv -> clean.csv
 *         cost   12
 *         stdout clean.log
 *         run    python3 clean.py raw.csv clean.csv
 *     ---
 *     plot: clean.csv -> plot.svg | gnuplot plot.gp
 *
 * Names are words, quoted as in commands. A line of three or more hyphens is a fence.
 */

/** A task file that is being read. Starts as {0}. */
struct task_file {
    struct task task; /* the task that is being read, or the last one */
    bool open;        /* a task has begun; more lines of it may come */
    uint64_t line;    /* the line on which `task` began */
    char *word;       /* scratch for one word or name */
    size_t room;
    unsigned given; /* bits of the numbers that the task has been given */
};

enum task_line {
    TASK_LINE_USED,
    TASK_LINE_AGAIN, /* the line ended file->task: pass it to task_file_take() again */
    TASK_LINE_FENCE
};

/** Takes a line, without its line end. Returns 1 if file->task is complete, 0 if no task
 * is complete yet, -1 on an error (*err). */
int task_file_take(struct task_file *file, const struct rec_reader *reader,
                   struct rec_str line, enum task_line *kind,
                   struct rec_error *err) REC_MUST_CHECK;
/** Ends the task that is being read, after the last line. Returns what task_file_take()
 * returns. */
int task_file_end(struct task_file *file, const struct rec_reader *reader,
                  struct rec_error *err) REC_MUST_CHECK;
void task_file_free(struct task_file *file);

/* ---- measured costs ------------------------------------------------------- */

struct task_cost;

/** How long tasks took in an earlier run. Starts as {0}. */
struct task_costs {
    struct rec_map ids;
    struct task_cost *cost;
    size_t n, room;
    struct rec_arena arena;
};

/** Reads the log or the output of runs of run_tasks(). For each task, the last attempt
 * that did not fail counts. A log may be cut (struct rec_reader_options: log). */
bool task_costs_read(struct task_costs *costs, struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
/** How long the task with the id of `task` took, seconds. NAN: it was not run, or never
 * succeeded. */
double task_costs_get(const struct task_costs *costs, const struct task *task);
void task_costs_free(struct task_costs *costs);

/* ---- templates ----------------------------------------------------------- */

/*
 * A template is YAML (rampipe/yaml.h). It has parameters and tasks. In the texts of the
 * tasks, {name} stands for the value of a parameter ({{ and }} for braces). The tasks are
 * written out for every combination of values.
 *
 *     parameters:
 *       network:                    no value here: the caller must give one
 *       degree: [1, 2, 4]           or 1..8
 *     tasks:
 *       - name: sim-{network}-{degree}
 *         executables:
 *           - target: sh
 *             arguments: [run.sh, "{network}", "{degree}"]
 *         reads: ["{network}.txt"]
 *         writes: ["out/{network}-{degree}.rec"]
 *
 * A document with a single task needs no `tasks`: the fields of the task stand beside
 * `parameters`. Combinations come in order, the last parameter changing fastest; for each
 * of them, all tasks come in their order. A task that equals an earlier one in all its
 * fields is left out: this happens if it does not use every parameter. Documents are
 * written out one after the other, so tasks of the second may read all that the first
 * wrote. The fields are those of Dragon Batch's templates (PTD) and of the task record.
 */
struct task_template;

/** Reads a template; the reader must have exactly one file. NULL: *err, with file and
 * line. */
struct task_template *task_template_read(struct rec_reader *reader,
                                         struct rec_error *err) REC_MUST_CHECK;
/**
 * Gives a parameter values, which replace those of the template: texts separated by
 * commas, with escapes as in task records (%2C is a comma), or a range of integers A..B.
 * REC_USAGE: the template has no such parameter, it has been given values before, or a
 * value is not valid.
 */
bool task_template_set(struct task_template *pattern, struct rec_str name,
                       struct rec_str values, struct rec_error *err) REC_MUST_CHECK;
/** Gives values to several parameters at once, from CSV. The first row has the names of
 * the parameters. Every further row is combined with all values of other parameters. */
bool task_template_rows(struct task_template *pattern, struct rec_reader *reader,
                        struct rec_error *err) REC_MUST_CHECK;
/** Computes the largest number of tasks that the template can make (equal tasks are
 * counted each). REC_USAGE: a parameter has no value. */
bool task_template_count(const struct task_template *pattern, double *tasks,
                         struct rec_error *err) REC_MUST_CHECK;
/** Makes the next task. *task is {0} before the first call. Returns 1 for a task, 0 at
 * the end, -1 on an error (*err). May be called once task_template_count() has
 * succeeded. */
int task_template_next(struct task_template *pattern, struct task *task,
                       struct rec_error *err) REC_MUST_CHECK;
void task_template_free(struct task_template *pattern);

/* ---- streams ------------------------------------------------------------- */

/** The files behind the names @ID.stdout and @ID.stderr. Starts as {0}. */
struct task_streams {
    struct rec_map ids;
    struct task_stream *stream;
    size_t n, room;
    struct rec_arena arena;
};

/** Takes the next task. If it reads @ID.stdout or @ID.stderr of a task before it, and
 * that stream is a file (stdout=, stderr=), the file is added to its READS, for others
 * may write that file, too. The added names are valid until task_streams_free(). */
bool task_streams_take(struct task_streams *streams, struct task *task,
                       struct rec_error *err) REC_MUST_CHECK;
void task_streams_free(struct task_streams *streams);

/* ---- hazards ------------------------------------------------------------- */

enum task_hazard { TASK_RAW, TASK_WAR, TASK_WAW };

/** An edge that leads to the current task. */
struct task_edge {
    uint32_t src; /* number of a task, from 0; or TASK_GATHER | number of a gather */
    enum task_hazard hazard;
};
#define TASK_GATHER 0x80000000u /* bit that marks a gather (struct task_gathers) */

struct task_hazards;

/** NULL: out of memory. Free it with task_hazards_free(). */
struct task_hazards *task_hazards_new(struct rec_error *err) REC_MUST_CHECK;
void task_hazards_free(struct task_hazards *hazards);
/**
 * Adds the next task; tasks are numbered 0, 1, ... *edges are the edges that lead to it,
 * sorted by src, at most one for each src. They belong to `hazards` and are valid until
 * the next call. The time is proportional to the lengths of the names and the number of
 * edges. REC_DATA: its id has come before.
 */
bool task_hazards_add(struct task_hazards *hazards, const struct task *task,
                      const struct task_edge **edges, size_t *nedges,
                      struct rec_error *err) REC_MUST_CHECK;
/** Has a task with this id been added? */
bool task_hazards_know(const struct task_hazards *hazards, struct rec_str id);
/** The receiver of gathers. A gather is a node that is not a task: many tasks wait for
 * many others through it. Gathers are numbered 0, 1, ... */
struct task_gathers {
    void *context;
    /** True: a gather of writers is used only by tasks that read the output of every one
     * of these writers. Then a failure may spread along raw edges. False: some of that
     * output may have been overwritten in between. Then edges only give the order of the
     * tasks, and fewer gathers are needed. */
    bool exact;
    /** Takes the next gather and the edges that lead to it. Called before the task that
     * needs the gather is returned by task_hazards_add(). */
    bool (*take)(void *context, const struct task_edge *edges, size_t nedges,
                 struct rec_error *err);
};
/** From now on, n tasks that write below dir/ and n tasks that read dir/ (or the other
 * way round) are connected by n + n edges through a gather, instead of n * n edges.
 * `gathers` is borrowed. */
void task_hazards_gather(struct task_hazards *hazards,
                         const struct task_gathers *gathers);
/**
 * The tasks that wrote the present content of `name`: those whose output a task would
 * read if it came next and read `name`. Fences are ignored. All edges are raw; they are
 * valid as long as those of task_hazards_add().
 */
bool task_hazards_writers(struct task_hazards *hazards, const char *name,
                          const struct task_edge **edges, size_t *nedges,
                          struct rec_error *err) REC_MUST_CHECK;
/** Names that a task reads before any task writes them, although no such file exists: the
 * writer probably stands too late in the list. The texts belong to the hazards. */
struct task_late {
    uint64_t n;                /* the number of such names */
    const char *name, *writer; /* the first of them, and the task that writes it */
};
const struct task_late *task_hazards_late(const struct task_hazards *hazards);
/** A fence: the following tasks get no edges from the tasks so far. The numbers of tasks
 * go on. */
void task_hazards_fence(struct task_hazards *hazards);

/* ---- the graph ----------------------------------------------------------- */

/** What a list of tasks is turned into. */
enum task_form {
    TASK_GRAPH,    /* graph, op and dep records, written at the end */
    TASK_DOT,      /* a graph for Graphviz: node and edges of each task as it comes */
    TASK_MAKEFILE, /* rules for make: one for each task as it comes */
    TASK_CHECK     /* names that are only read or only written, listed at the end */
};

struct task_list;

/** `form` says what is written to `writer`, which is borrowed. `name` is the name of the
 * graph, borrowed; `cost` is the cost of tasks that give none, seconds. NULL: *err. */
struct task_list *task_list_new(enum task_form form, struct rec_writer *writer,
                                const char *name, double cost,
                                struct rec_error *err) REC_MUST_CHECK;
void task_list_free(struct task_list *list);
/** Adds the next task, whose reads become those of task_streams_take(). */
bool task_list_add(struct task_list *list, struct task *task,
                   struct rec_error *err) REC_MUST_CHECK;
/** Adds a fence. In a graph or picture it is an op of this name that takes no time.
 * REC_DATA: another op there has the name. */
bool task_list_fence(struct task_list *list, const char *id,
                     struct rec_error *err) REC_MUST_CHECK;
/** To be called after the last task. REC_NO: TASK_CHECK found something. */
bool task_list_end(struct task_list *list, struct rec_error *err) REC_MUST_CHECK;
/** task_hazards_late() of the tasks of the list. */
const struct task_late *task_list_late(const struct task_list *list);
/** The number of tasks so far. */
uint64_t task_list_count(const struct task_list *list);
/** With TASK_MAKEFILE, the number of tasks whose timeout=, retries=, cores= or memory= is
 * not in the Makefile. */
uint64_t task_list_dropped(const struct task_list *list);

REC_END_DECLS

#endif
