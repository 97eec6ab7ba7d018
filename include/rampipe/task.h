/*
 * rampipe/task.h - task lists: commands in the order of a sequential program, and the
 * graph that what they read and write makes of them.
 *
 *     a  writes x            a ---raw---> b ---war---> d
 *     b  reads x              \--raw---> c ---war---/
 *     c  reads x, writes y
 *     d  writes x            b and c may run at one time; d after both
 *
 * An object is a path (normalised: a/../b is b), all that is below one (dir/, which
 * covers dir and what is in it), or a name (@NAME). A task that reads an object depends
 * by data on the last one that wrote it (raw); one that writes it comes after those that
 * have read it since (war), or, if nobody has, after the last one that wrote it (waw; raw
 * if it reads it, too). Between two tasks one edge is kept, raw if any is. Source: Dragon
 * Batch 0.14.1 (inference of dependencies), without its faults.
 */
#ifndef RAMPIPE_TASK_H
#define RAMPIPE_TASK_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- tasks --------------------------------------------------------------- */

/** A longer name is none of a file, and may not stand for one. */
enum { TASK_NAME_MAX = 4096 };

/** Names of objects, normalised. Owned by the task. */
struct task_names {
    const char **name;
    size_t n, room;
};

/** A task as its record says it. Starts as {0}; what it points to is its own, and may be
 * used until task_free() or the next task_read(). */
struct task {
    const char *id, *command;
    double timeout; /* seconds; INFINITY: none */
    double cost;    /* seconds; NAN: not said */
    double memory;  /* bytes; 0: not said */
    uint32_t cores; /* 1: not said */
    uint64_t retries;
    bool ok_any;
    const char *cwd, *env; /* as the record has them, escaped; NULL: not said */
    const char *standard_input, *standard_output, *standard_error; /* NULL: not said */
    const char
        *call; /* what a worker, which COMMAND is, is given, escaped; NULL: not said */
    struct task_names reads, writes; /* those of its streams, too */
    struct rec_arena arena;
};

/** Reads a task record. REC_DATA: a name is empty, an escape is none, a quote is open,
 * ... */
bool task_read(struct task *task, const struct rec_reader *reader, const struct rec *rec,
               struct rec_error *err) REC_MUST_CHECK;
/** Writes its record, names normalised. */
void task_write(struct rec_writer *writer, const struct task *task);
void task_free(struct task *task);

/** Tasks of a stream, each looked at alone, and their names. Starts as {0}. */
struct task_check {
    struct task task;
    struct rec_ids ids;
};

/** Takes any record. */
bool task_check_take(struct task_check *check, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
void task_check_free(struct task_check *check);

/**
 * A path without empty and . components, and without .. where what is before it is known:
 * a//./b is a/b, a/../b is b, ../a stays, /../a is /a; a / at the end stays. Names with @
 * in front are left as they are. It is written into `text`, which has room for as many
 * bytes as `name` has, and 3 more. False: the name is empty, or longer than
 * TASK_NAME_MAX.
 */
bool task_normalise(char *text, struct rec_str name) REC_MUST_CHECK;

/** The next word of a command, as a shell would split it: blanks divide, '...', "..." and
 * \ quote; nothing is expanded. `word` has room for the rest. 1, 0 at the end, -1: a
 * quote is open. */
int task_word(struct rec_str *rest, char *word) REC_MUST_CHECK;

/* ---- task files ---------------------------------------------------------- */

/*
 * A task file has a task a line, or a block with more of what its record has:
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
 * Names are words, quoted as in commands. A line of three or more - is a fence.
 */

/** A task file being read. Starts as {0}. */
struct task_file {
    struct task task; /* the one that is open, or was last */
    bool open;
    uint64_t line; /* where it began */
    char *word;
    size_t room;
};

enum task_line {
    TASK_LINE_USED,
    TASK_LINE_AGAIN, /* it ended file->task: take it again */
    TASK_LINE_FENCE
};

/** Takes a line, without its end: 1 file->task is whole, 0 none is, -1 *err. */
int task_file_take(struct task_file *file, const struct rec_reader *reader,
                   struct rec_str line, enum task_line *kind,
                   struct rec_error *err) REC_MUST_CHECK;
/** No more lines come: as task_file_take(). */
int task_file_end(struct task_file *file, const struct rec_reader *reader,
                  struct rec_error *err) REC_MUST_CHECK;
void task_file_free(struct task_file *file);

/* ---- what tasks took ------------------------------------------------------ */

struct task_cost;

/** How long tasks took when they were run. Starts as {0}. */
struct task_costs {
    struct rec_map ids;
    struct task_cost *cost;
    size_t n, room;
    struct rec_arena arena;
};

/** Reads the log or the output of runs of task_run(): of each task the last attempt
 * counts that did not fail. A log may be cut (struct rec_reader_options: log). */
bool task_costs_read(struct task_costs *costs, struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
/** What the task of this name took, seconds; NAN: it is not there, or never succeeded. */
double task_costs_get(const struct task_costs *costs, const struct task *task);
void task_costs_free(struct task_costs *costs);

/* ---- templates ----------------------------------------------------------- */

/*
 * A template is YAML (rampipe/yaml.h): parameters, and tasks in whose texts {name} stands
 * for a parameter's value ({{ and }} for braces), written out for every combination of
 * values.
 *
 *     parameters:
 *       network:                    to be given
 *       degree: [1, 2, 4]           or 1..8
 *     tasks:
 *       - name: sim-{network}-{degree}
 *         executables:
 *           - target: sh
 *             arguments: [run.sh, "{network}", "{degree}"]
 *         reads: ["{network}.txt"]
 *         writes: ["out/{network}-{degree}.rec"]
 *
 * A document that is one task needs no `tasks`. For each combination, the last parameter
 * changing fastest, come its tasks, as a sequential program would run them; a task that
 * is in all its fields one that came before, as where it does not depend on every
 * parameter, comes once. Documents follow each other: what is in the second sees all that
 * the first wrote. Fields are those of Dragon Batch's templates (PTD), and those of the
 * task record.
 */
struct task_template;

/** Reads the template that is the reader's one file. NULL: *err, with file and line. */
struct task_template *task_template_read(struct rec_reader *reader,
                                         struct rec_error *err) REC_MUST_CHECK;
/**
 * Gives a parameter values, instead of those of the template: texts separated by commas,
 * %2C and the like as in task records, or A..B, numbers. REC_USAGE: it has no such
 * parameter, or it was given before.
 */
bool task_template_set(struct task_template *pattern, struct rec_str name,
                       struct rec_str values, struct rec_error *err) REC_MUST_CHECK;
/** Gives values as rows of CSV: the first row has the names of parameters. All
 * combinations come for each row. */
bool task_template_rows(struct task_template *pattern, struct rec_reader *reader,
                        struct rec_error *err) REC_MUST_CHECK;
/** How many tasks there will be, at most. REC_USAGE: a parameter has no value. */
bool task_template_count(const struct task_template *pattern, double *tasks,
                         struct rec_error *err) REC_MUST_CHECK;
/** The next task, which starts as {0}: 1, 0 at the end, -1: *err. To be called after
 * task_template_count() has succeeded. */
int task_template_next(struct task_template *pattern, struct task *task,
                       struct rec_error *err) REC_MUST_CHECK;
void task_template_free(struct task_template *pattern);

/* ---- hazards ------------------------------------------------------------- */

enum task_hazard { TASK_RAW, TASK_WAR, TASK_WAW };

/** An edge to the task at hand. */
struct task_edge {
    uint32_t src; /* which task, counted from 0; or TASK_GATHER and which gather */
    enum task_hazard hazard;
};
#define TASK_GATHER 0x80000000u

struct task_hazards;

/** NULL: out of memory. Free it with task_hazards_free(). */
struct task_hazards *task_hazards_new(struct rec_error *err) REC_MUST_CHECK;
void task_hazards_free(struct task_hazards *hazards);
/**
 * The next task, which is number 0, 1, ...: the edges that lead to it, by src, each once.
 * They are the hazards', until the next call. Takes time in proportion to the names'
 * lengths and the edges.
 */
bool task_hazards_add(struct task_hazards *hazards, const struct task *task,
                      const struct task_edge **edges, size_t *nedges,
                      struct rec_error *err) REC_MUST_CHECK;
/** Who is told of gathers: nodes that are no tasks, and through which many tasks wait for
 * many others. They are numbered 0, 1, ... */
struct task_gathers {
    void *context;
    /** A gather of tasks that write leads only to tasks that read what each of these
     * wrote, so that a failure may go along raw edges. Otherwise some of it may have been
     * overwritten before: then edges give the order, and there are fewer. */
    bool exact;
    /** The next gather and the edges that lead to it, before the task that needs it. */
    bool (*take)(void *context, const struct task_edge *edges, size_t nedges,
                 struct rec_error *err);
};
/** From now on, between n tasks that write below dir/ and n that read dir/, or the other
 * way round, there are n + n edges through a gather, in place of n * n. `gathers` is
 * borrowed. */
void task_hazards_gather(struct task_hazards *hazards,
                         const struct task_gathers *gathers);
/**
 * The tasks of which a task that came now and read `name` would read something: those
 * that wrote it last, fences or not. Edges are raw, and live as those of
 * task_hazards_add().
 */
bool task_hazards_writers(struct task_hazards *hazards, const char *name,
                          const struct task_edge **edges, size_t *nedges,
                          struct rec_error *err) REC_MUST_CHECK;
/** Names that tasks have read and that only tasks behind them write, and files of that
 * name that are not there: how many, and the first, with who writes it. Texts are the
 * hazards'. */
struct task_late {
    uint64_t n;
    const char *name, *writer;
};
const struct task_late *task_hazards_late(const struct task_hazards *hazards);
/** Tasks from now on depend on nothing before; numbers go on. */
void task_hazards_fence(struct task_hazards *hazards);

/* ---- the graph ----------------------------------------------------------- */

/** What a list of tasks is turned into as it comes. */
enum task_form {
    TASK_GRAPH,    /* graph, op and dep records, once all tasks are there */
    TASK_DOT,      /* a graph for Graphviz, a task's node and edges at a time */
    TASK_MAKEFILE, /* rules for make, one a task */
    TASK_CHECK     /* what is read and written by nobody else, once all are there */
};

struct task_list;

/** `form` says what is written to `writer`, which is borrowed. `name` is that of the
 * graph, `cost` what a task takes that does not say, seconds. NULL: *err. */
struct task_list *task_list_new(enum task_form form, struct rec_writer *writer,
                                const char *name, double cost,
                                struct rec_error *err) REC_MUST_CHECK;
void task_list_free(struct task_list *list);
/** The next task. */
bool task_list_add(struct task_list *list, const struct task *task,
                   struct rec_error *err) REC_MUST_CHECK;
/** A fence; in a graph it is an op of this name that takes no time. */
bool task_list_fence(struct task_list *list, const char *id,
                     struct rec_error *err) REC_MUST_CHECK;
/** All tasks are there. REC_NO: TASK_CHECK found something. */
bool task_list_end(struct task_list *list, struct rec_error *err) REC_MUST_CHECK;
/** task_hazards_late() of its tasks. */
const struct task_late *task_list_late(const struct task_list *list);
uint64_t task_list_count(const struct task_list *list);

/* ---- running ------------------------------------------------------------- */

/** What a run has come to. */
struct task_tally {
    uint64_t known, before; /* tasks read; those that an earlier run had finished */
    uint64_t running, done, failed, skipped;
    bool open; /* more of them may come: `known` are not all */
    bool lost; /* the run was refused, for an input is lost: see `again` */
};

/** How tasks are run. Names are the caller's. */
struct task_run_options {
    uint32_t cores;   /* that tasks share */
    double memory;    /* that they share, bytes */
    uint64_t retries; /* of tasks that do not say */
    double backoff;   /* seconds before the first retry, twice as many before the next */
    double grace;     /* seconds from SIGTERM to SIGKILL */
    bool fail_fast;   /* after a failure nothing is started */
    bool brief;       /* write what failed only */
    const char *logs; /* folder of ID.stdout, ID.stderr; NULL: shown when a task fails */
    const char *log;  /* file that attempts are appended to; NULL: none */
    bool resume;      /* what that file says is finished is not run again */
    bool again;     /* resume: a task may run on what is left of an input that is lost */
    bool content;   /* sums of files' contents say whether they have changed */
    bool unchecked; /* a task need not make the files that it writes */
    bool durable;   /* what a task wrote is on the disk before it is said to have ended */
    bool silent;    /* nothing is said of tasks that fail, but in the records */
    bool cancel;    /* of a client that goes away nothing more is run */
    const char
        *runner; /* a program that runs tasks, as runtasks does: each is given to it in
                         * a job of Slurm, which has as many cores and as much memory as
                         * the task says; NULL: tasks are processes here. No `resume`
                         * then */
    const char *slurm; /* options for sbatch, in a shell's quotes */
    void (*tell)(void *context, const struct task_tally *tally); /* now and then */
    void (*warn)(void *context, const char *text);               /* a line */
    void (*show)(void *context, const char *bytes, size_t n); /* output of what failed */
    void *context;
};

/**
 * Runs the tasks of a stream, each in a process group of its own, while they come: what
 * is ready in order of the critical path (its cost, 1 s if it is not said, and the
 * largest of those behind it), then as they came, as far as cores and memory go. What is
 * no task or fence goes to `writer`, and so do attempt, done and block records. False:
 * input, output or the log failed (*err); no task runs any more. *signal: which one ended
 * the run, which the caller dies of; 0: none did. The log is a stream without header: a
 * task record when an attempt begins, an attempt record when it ends.
 */
bool task_run(const struct task_run_options *options, struct rec_reader *reader,
              struct rec_writer *writer, struct task_tally *tally, int *signal,
              struct rec_error *err) REC_MUST_CHECK;

/** A service that runs the tasks of several clients. Texts are the caller's. */
struct task_service {
    const char *socket;     /* its path */
    const char *provenance; /* the service's own line in what clients are told */
};

/** No longer path of a socket can be connected to, bytes. */
enum { TASK_SOCKET_MAX = 107 };

/**
 * Runs tasks for whoever connects to a socket, each client's stream as by task_run(), and
 * tells each what its own came to, on the same connection. Clients share cores, memory
 * and workers, and nothing else: of those that have something ready that fits, the one is
 * next whose last task was started longest ago. `log` and `logs` of the options are
 * folders: of NAME.log and of NAME/ for each client; `tell` is not called. Returns when
 * clients have come and all have gone, *tally is the sum of theirs. False: the socket
 * cannot be opened, or a client could not be served nor told (*err). *signal: as of
 * task_run(); clients are cut off then.
 */
bool task_serve(const struct task_run_options *options,
                const struct task_service *service, struct task_tally *tally, int *signal,
                struct rec_error *err) REC_MUST_CHECK;

/** REC_USAGE: the log is one of the inputs (none, or "-": standard input), or the output
 * (NULL: standard output), under whatever name. Nothing is opened. */
bool task_check_log(const char *log, const char *output, const char *const *inputs,
                    size_t n, struct rec_error *err) REC_MUST_CHECK;

/** What Slurm is asked for. */
struct task_slurm_options {
    const char *options; /* words for srun, in a shell's quotes */
    uint32_t cores;      /* 0: a node of its own */
    double memory;       /* bytes; 0: what is usual */
    bool input;          /* the runner reads standard input */
    bool live;           /* what it says is shown before there is a whole line of it */
};

/**
 * Runs a runner, a command that ends with NULL, in an allocation of Slurm of its own. Its
 * standard input and error are those of this process; its output goes to standard output.
 * *status is what it exits with, or 4: srun said what is wrong. A signal ends the runner,
 * as in task_run(), and is *signal; so is SIGPIPE. False: there is no srun, the output
 * could not be written, or Slurm ended the job (*err).
 */
bool task_run_slurm(const struct task_slurm_options *options, char *const runner[],
                    int *status, int *signal, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
