/* What the files of the runner share: run.c the loop, run_attempt.c attempts, run_graph.c who is
 * ready, run_process.c processes, run_log.c the log. */
#ifndef RAMPIPE_TASK_RUN_H
#define RAMPIPE_TASK_RUN_H

#include "private.h"

#include <math.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

enum run_state {
    RUN_WAITS, /* for tasks before it, or in the heap, or to be tried again */
    RUN_RUNS,
    RUN_DONE,
    RUN_FAILED /* or skipped: nobody can read what it was to write */
};

/* A task. Texts are parts of ->text. */
struct run_task {
    char *text;
    const char *id, *line, *command; /* line: its record */
    const char *cwd, *env;           /* as in the record; NULL: none */
    const char *standard_input, *standard_output, *standard_error;
    const char *writes; /* files that are its own to write, NUL behind each */
    uint64_t hash;      /* of what makes it the same task in a log */
    double arrival, timeout, memory;
    double cost, weight; /* weight: of the heaviest way from here to the end */
    uint64_t retries;
    uint32_t cores, nwrites, attempts;
    uint32_t waits; /* for so many tasks */
    uint32_t edge;  /* the first that leads from it */
    uint32_t cause; /* the task whose failure is its own; REC_NONE */
    uint8_t state;  /* enum run_state */
    bool ok_any;
    bool rewrites; /* it writes what it reads */
    bool begun;    /* the log says that it was; and that it was finished: */
    bool logged;
    bool finished; /* and it is not run again */
};

/* Edges are in the order of `dst`. */
struct run_edge {
    uint32_t src, dst, next; /* next: that leads from src */
    enum task_hazard hazard;
};

struct run_graph {
    struct run_task *task;
    struct run_edge *edge;
    uint32_t *ready; /* a heap: the heaviest first, then the first */
    uint32_t *stack; /* of tasks that are not run; room for all */
    size_t n, room, nedges, edge_room, nready, ready_room, stack_room;
    size_t weighed; /* how many were known when weights were computed */
};

/* An attempt that runs. */
struct run_slot {
    uint32_t task; /* REC_NONE: none */
    pid_t pid;
    double start, deadline; /* deadline: of what comes next, SIGTERM or SIGKILL */
    bool timed_out, warned; /* warned: SIGTERM was sent */
    int output; /* what it says, if nothing else takes it; -1: not there yet */
};

/* How an attempt went. */
struct run_attempt {
    double start, end, user, system; /* seconds */
    double memory;                   /* bytes */
    const char *status, *host;
    int output; /* what it said, to be shown if it failed; -1: nothing */
    bool ok;
};

/* A task that failed and is to be tried again. */
struct run_pause {
    uint32_t task;
    double until;
};

/* The log of a run: where attempts are appended, what was read of it. */
struct run_log {
    const char *path;
    int fd, lock; /* lock: another way to it, which tasks inherit */
    struct rec_map ids;
    struct run_logged {
        uint64_t hash;
        bool finished, number; /* number: it ended, with an exit status */
    } * logged;
    size_t n, room;
    struct rec_arena arena;
};

/* Buffers for what a process is given. */
struct run_launch {
    char *words, *variables, *stack;
    char **argv, **environment;
    size_t word_room, variable_room, stack_room, argv_room, environment_room;
    sigset_t mask; /* that processes start with */
    int null;
};

struct run_jobs;

struct run {
    const struct task_run_options *options;
    struct rec_reader *reader;
    struct rec_writer *writer;
    struct rec_error *err;
    struct task_tally *tally;
    double told; /* time of the last block, seconds */
    struct task_hazards *hazards;
    struct run_graph graph;
    struct run_log log;
    struct run_launch launch;
    struct run_jobs *jobs; /* NULL: tasks are processes of this one */
    struct task task;      /* being read */
    struct rec_map ids;
    struct run_slot *slot;
    size_t nslots, slot_room;
    struct run_pause *pause;
    size_t npauses, pause_room;
    uint32_t cores; /* free */
    double memory;  /* free */
    uint32_t head;  /* the first that did not fit, and was overtaken `passed` times */
    uint64_t passed;
    double origin; /* of times, CLOCK_MONOTONIC */
    double began;  /* seconds since 1970 */
    char host[65];
    bool ended;   /* no more input */
    bool fenced;  /* none before all that is known has ended */
    bool stopped; /* nothing is started any more */
    bool ending;  /* what runs is ended */
    bool failed;  /* *err is why */
    size_t resumed,
        resumed_edges; /* so many tasks, edges have been looked up in the log */
    bool anew;         /* one of them runs again */
    sigset_t heard;
    int signal, events; /* events: can be read when one of those heard has come */
};

/* ---- run.c ---- */
/* Signals that end the run, but those that are ignored, wait until ->events is read;
 * ->launch.mask is what was heard before. */
bool run_watch_signals(struct run *run) REC_MUST_CHECK;

/* ---- run_attempt.c ---- */
double run_seconds(clockid_t clock);
/* Since the run began, to the microsecond. */
double run_now(const struct run *run);
/* What a task came to: a done or block record. `status`: of its last attempt; NULL: it was not
  * run. */
void run_put_end(struct run *run, uint32_t task, double start, double end, double busy,
                 const char *status);
/* The task whose output @ID.stdout or @ID.stderr is; *kind: which. NULL: none. */
const struct run_task *run_find_output(const struct run *run, const char *name,
                                       const char **kind);
/* The file of a task's standard input; *path is the caller's, NULL: it has none. */
bool run_find_input(struct run *run, const struct run_task *task,
                    char **path) REC_MUST_CHECK;
/* Number ->attempts of a task, to the output and the log. */
bool run_put_attempt(struct run *run, const struct run_task *task,
                     const struct run_attempt *attempt) REC_MUST_CHECK;
/* That, and what comes of it: the task ends, or waits to be tried again. */
bool run_conclude(struct run *run, uint32_t task,
                  const struct run_attempt *attempt) REC_MUST_CHECK;
/* Starts what is ready and fits. */
bool run_start_ready(struct run *run) REC_MUST_CHECK;
/* Tasks whose pause is over are ready. */
bool run_wake(struct run *run) REC_MUST_CHECK;
/* Processes that have ended. */
bool run_reap(struct run *run) REC_MUST_CHECK;

/* ---- run_graph.c ---- */
bool run_graph_add(struct run_graph *graph, const struct task *task, struct rec_str line,
                   double arrival, struct rec_error *err) REC_MUST_CHECK;
/* The edges that lead to the last task; it waits for those that have not ended. */
bool run_graph_link(struct run_graph *graph, const struct task_edge *edges, size_t n,
                    struct rec_error *err) REC_MUST_CHECK;
bool run_graph_push(struct run_graph *graph, uint32_t task,
                    struct rec_error *err) REC_MUST_CHECK;
uint32_t run_graph_pop(struct run_graph *graph);
/* Weights of all that are known; the heap is ordered anew. */
void run_graph_weigh(struct run_graph *graph);
/* A task has ended: those behind it wait for one less, and what is not to be run goes to
 * graph->stack, *nskipped of them. */
bool run_graph_end(struct run_graph *graph, uint32_t task, size_t *nskipped,
                   struct rec_error *err) REC_MUST_CHECK;
/* Which tasks run again, given those that the log says are finished, of those from `first`
 * on, whose edges are those from `first_edge` on: ->finished is taken from the others. */
bool run_graph_resume(struct run_graph *graph, size_t first, size_t first_edge,
                      struct rec_error *err) REC_MUST_CHECK;
void run_graph_free(struct run_graph *graph);

/* ---- run_jobs.c ---- */
/* Tasks are jobs of Slurm. */
bool run_jobs_open(struct run *run) REC_MUST_CHECK;
void run_jobs_close(struct run *run);
/* Submits tasks that have come, and takes what has ended. */
bool run_jobs_step(struct run *run) REC_MUST_CHECK;
bool run_jobs_all_submitted(const struct run *run);
/* These are not to be run. */
bool run_jobs_drop(struct run *run, const uint32_t *tasks, size_t n) REC_MUST_CHECK;
/* Jobs that do not end are not waited for. */
void run_jobs_leave(struct run *run);

/* ---- run_log.c ---- */
/* Reads the log, if it is to be resumed, and opens it at its end. */
bool run_log_open(struct run_log *log, const struct task_run_options *options,
                  struct rec_error *err) REC_MUST_CHECK;
bool run_log_line(struct run_log *log, struct rec_str line,
                  struct rec_error *err) REC_MUST_CHECK;
/* What the log says of a task. */
void run_log_recall(const struct run_log *log, struct run_task *task);
void run_log_close(struct run_log *log);
/* Command, names, folder and environment of a task as one number, in this process. */
bool run_task_hash(const struct task *task, uint64_t *hash,
                   struct rec_error *err) REC_MUST_CHECK;

/* ---- run_process.c ---- */
bool run_launch_open(struct run_launch *launch, struct rec_error *err) REC_MUST_CHECK;
void run_launch_close(struct run_launch *launch);
/* Starts a task's process. 1; 0: *why is an errno; -1: *err. `input` is the file of its
 * standard input, NULL for none. */
int run_launch(struct run_launch *launch, const struct run_task *task,
               struct run_slot *slot, const char *input, const char *logs, int *why,
               struct rec_error *err) REC_MUST_CHECK;
/* LOGS/ID.KIND; the caller's, NULL: out of memory. */
char *run_log_file(const char *logs, const char *id, const char *kind);

#endif
