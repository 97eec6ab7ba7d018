/* What the files of the runner share: run.c a run and its loop, run_pool.c what runs of
 * one service share, run_attempt.c attempts, run_record.c their records, run_graph.c who
 * is ready, run_process.c processes, run_worker.c those that are given calls, run_lists.c
 * lists of who wrote what tasks read, run_log.c the log being written, run_journal.c and
 * being read, run_resume.c what of it is done again, run_alive.c processes that outlived
 * their runner, run_files.c what files are like. */
#ifndef RAMPIPE_TASK_RUN_H
#define RAMPIPE_TASK_RUN_H

#include "private.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

enum run_state {
    RUN_WAITS, /* for other tasks, for free cores, or for its next attempt */
    RUN_RUNS,
    RUN_DONE,
    RUN_FAILED /* or skipped: its outputs do not exist */
};

/* How a task writes a name. */
enum run_write {
    RUN_WRITES = 'w',   /* a file that it does not read */
    RUN_REWRITES = 'r', /* a file that it reads, too */
    RUN_BELOW = 'b'     /* all below a folder */
};

/* A task. Texts are parts of ->text. */
struct run_task {
    char *text;
    const char *id, *line, *command; /* line: its record */
    const char *cwd, *env;           /* as in the record; NULL: none */
    const char *call;                /* what a worker is given; NULL: it is a process */
    const char
        *results; /* of these tasks: IDs, NUL behind each, and one more at the end */
    char *result; /* as its worker gave it; its own; NULL: it gave none */
    const char *standard_input, *standard_output, *standard_error;
    const char
        *writes;   /* names that it writes, @NAMEs aside: a letter of enum run_write in
                         * front of each, NUL behind */
    uint64_t hash; /* equal for a task in a log and in the list if they are the same */
    double arrival, timeout, memory;
    double cost, weight; /* weight: of the costliest path from here to an end */
    uint64_t retries;
    uint32_t cores, nwrites, attempts;
    uint32_t waits;  /* the number of unfinished tasks that it waits for */
    uint32_t edge;   /* its first outgoing edge */
    uint32_t cause;  /* the failed task because of which it was skipped; REC_NONE */
    uint32_t logged; /* its number in the log; REC_NONE: it is not there */
    size_t access;   /* where its names begin among those of the run */
    uint8_t state;   /* enum run_state */
    bool ok_any;
    bool begun;    /* the log has its begin */
    bool finished; /* the log has its end, and it need not run again */
};

/* Edges are in the order in which `dst` came. Ends are numbers of tasks, or TASK_GATHER
 * and the number of a gather. */
struct run_edge {
    uint32_t src, dst, next; /* next: the next outgoing edge of src */
    enum task_hazard hazard;
};

/* Gathers (rampipe/task.h) are nodes like tasks, but take no time, and no record names
 * them: they end with the last task that they wait for. They have no names, costs or
 * place in a log. */
struct run_graph {
    struct run_task *task, *gather;
    struct run_edge *edge;
    uint32_t *ready; /* a heap by weight; of equal weights the task that came first */
    uint32_t *stack; /* work list of tasks to skip, and of gathers; room for all */
    size_t n, room, ngathers, gather_room, nedges, edge_room, nready, ready_room,
        stack_room;
    size_t weighed; /* the number of tasks when weights were computed last */
};

/* A worker: a process that receives calls through a socket, one after the other. */
struct run_worker {
    int socket;      /* -1: closed, so that the worker exits */
    const char *why; /* status of an unanswered call; NULL: that of its exit */
    uint32_t number; /* of the process, for logs */
    double began;    /* seconds since the machine was started, for logs */
    uint64_t used;   /* the number of its last call among those of the pool */
    int errors;      /* its standard error, if there is a folder of logs; -1: none */
    char *text;      /* the part of its answer that has come */
    char *unsent;    /* the call that is being sent */
    size_t ntext, text_room, nunsent, sent;
    char *kind; /* command, cwd and env, a NUL behind each: equal ones are exchangeable */
};

/* A running process: that of a task, or a worker. */
struct run_slot {
    struct run *run;        /* whose task it is */
    uint32_t task;          /* REC_NONE: the worker is idle, or exits */
    pid_t pid;              /* 0: the slot is free */
    double start;           /* of the attempt, as run_now() */
    double deadline;        /* of SIGTERM, then of SIGKILL; CLOCK_MONOTONIC */
    bool timed_out, warned; /* warned: SIGTERM was sent */
    int output; /* the file of its output if the task names none; -1: not open */
    struct run_worker *worker; /* NULL: the process is the task's own */
};

/* How an attempt went. */
struct run_attempt {
    double start, end, user, system; /* seconds */
    double memory;                   /* bytes */
    const char *status, *host;
    /* a call's: as the worker gave them; NULL: it did not. user, system, memory: NAN
     * then */
    const char *result, *standard_output, *standard_error;
    int output; /* the file of its output, shown if it failed; -1: none */
    bool ok;
};

/* What a file was like. */
struct run_look {
    uint8_t state; /* enum run_look_state */
    bool summed;   /* sum: the CRC-32 of its bytes */
    uint32_t sum;
    uint64_t size, digest; /* digest: of a tree */
    int64_t mtime;         /* nanoseconds since 1970 */
};

enum run_look_state {
    RUN_NONE, /* there was none */
    RUN_FILE,
    RUN_TREE, /* a name that ends in /: all below that no task makes */
    RUN_OTHER /* a folder, a device */
};

/* A failed task that waits for its next attempt. */
struct run_pause {
    uint32_t task;
    double until;
};

/*
 * A turn: a task was begun, or somebody else changed a file (`logged` is REC_NONE). Turns
 * are counted as the tasks of ->touched are, which knows whose turn was the last to write
 * a name.
 */
struct run_turn {
    uint32_t logged, runner; /* runner: under which it was begun */
    bool ended, finished, ok_any;
    bool same;            /* no change in fact: the file is as it had been before */
    uint32_t number, pid; /* of its process; 0: not known */
    double started;       /* seconds since the machine was started */
    const char *writes;   /* names, NUL behind each, and one more at the end */
};

/* Numbers of tasks or turns, in order. */
struct run_list {
    uint32_t n;
    const uint32_t *value;
};

/* Lists, numbered 0, 1, ...; each that is another is kept once. Starts as {0}. */
struct run_lists {
    struct rec_map known;
    uint32_t **list;  /* each list: its length, then its values */
    uint32_t *number; /* of each: which of these */
    size_t n, room, nlists, list_room;
};

/* A task of the log. */
struct run_logged {
    const char *id;
    uint64_t hash;
    bool finished, number; /* number: it ended, with an exit status */
    uint32_t turn; /* when it was begun last; and where that, and its end, stand: */
    uint64_t begin, end;
    size_t source; /* whose turns had written what it read: the list of its first name */
    const char *attempt; /* its last record with a number; NULL: none */
    bool call;
};

/* A file of the log. */
struct run_file {
    const char *name;
    struct run_look look; /* the last that is logged, after so many turns */
    uint32_t turn;
    bool seen;  /* ->look is something */
    bool fresh; /* this run has looked at it already */
    bool ours;  /* a task wrote it; false: it was there when a task began to read it */
    bool there; /* it was there before any task wrote it, or nobody knows */
};

/* A run that is logged. */
struct run_runner {
    const char *name, *boot, *host;
};

/* The log of a run: where attempts are appended, what was read of it. */
struct run_log {
    const char *path;
    int fd, lock; /* lock: a second descriptor; tasks inherit it and its lock */
    bool content, durable;
    struct rec_map ids, names; /* of tasks, of files */
    struct run_logged *logged;
    struct run_turn *turn;
    struct run_file *file;
    struct run_runner *runner;
    struct run_lists source;
    size_t n, room, nturns, turn_room, nfiles, file_room, nrunners, runner_room;
    uint64_t records;
    struct task_hazards *touched;
    struct rec_arena arena;
};

/* Of the tasks of a run that has a log: what each reads and writes, and who wrote that
 * before. */
struct run_access {
    uint32_t nreads, nwrites;
    size_t name; /* where they begin */
};

struct run_accesses {
    struct run_access *task;
    const char **name;
    struct run_lists source; /* of each name */
    size_t n, room, nnames, name_room;
    struct rec_arena arena;
};

/* Buffers for what a process is given. */
struct run_launch {
    char *words, *variables, *stack;
    char **argv, **environment, **own; /* own: this process's, and ->mark */
    char **before;                     /* environ, as it was */
    char mark[256]; /* RAMPIPE_TASK=..., by which a process is found again; */
    size_t marked;  /* length of the part that is the same for all its processes */
    size_t word_room, variable_room, stack_room, argv_room, environment_room;
    sigset_t mask; /* the signal mask that processes start with */
    int null;
};

struct run_jobs;

/* What runs share that go on at one time: the machine. */
struct run_pool {
    const struct task_run_options *options;
    struct run_launch launch;
    struct run_slot *slot;
    size_t nslots, slot_room;
    struct pollfd *poll;
    size_t poll_room, more; /* more: descriptors beside those of slots, at most */
    uint32_t cores;         /* free */
    double memory;          /* free */
    uint32_t started;       /* processes */
    uint64_t used;          /* the number of calls given to workers */
    char name[17];          /* in logs, and in the environment of processes */
    char host[65];
    sigset_t heard;
    int signal, events; /* events: a signalfd of the signals that end the run */
    unsigned signals;   /* the number of them that have come */
    double signalled;   /* the time of the last, CLOCK_MONOTONIC */
    bool serves;        /* its runs are those of clients */
    uint64_t round;     /* counts rounds of asking each client for a task that fits */
    uint64_t turns;     /* counts starts of clients' tasks and arrivals of clients */
};

struct run {
    struct run_pool *pool;
    const struct task_run_options *options;
    struct rec_reader *reader;
    struct rec_writer *writer;
    struct rec_error *err;
    struct rec_error first; /* why it failed */
    struct task_tally *tally;
    double told; /* when the last block record was written, seconds */
    struct task_hazards *hazards;
    struct task_gathers gathers;
    struct run_graph graph;
    struct run_log log;
    struct run_accesses access;
    struct run_jobs *jobs; /* NULL: tasks are processes of this one */
    struct task task;      /* being read */
    struct rec_map ids;
    struct run_pause *pause;
    size_t npauses, pause_room;
    uint32_t head; /* the first ready task without room; `passed` others overtook it */
    uint64_t passed;
    double origin; /* time 0 of the run, CLOCK_MONOTONIC, seconds */
    double began;  /* seconds since 1970 */
    bool ended;    /* no more input */
    bool unread;   /* input may have come that is not read yet */
    bool gone;     /* the client closed before its #end; ->first is the reason */
    uint64_t turn,
        round;    /* of a client: when its last task was started; when none fitted */
    bool fenced;  /* a fence: no task is started until all known ones have ended */
    bool stopped; /* no more tasks are started */
    bool ending;  /* running tasks have been told to end */
    bool failed;  /* ->first is the reason */
    size_t resumed,
        resumed_edges;    /* so many tasks, edges have been looked up in the log */
    uint64_t resumed_end; /* where in the log the last of them had ended */
    bool verified;        /* files have been compared with the log */
    bool anew;            /* one of them runs again */
};

/* ---- run.c ---- */
/* Starts as {0} but for what is read, written and told; run_free() in any case. */
void run_init(struct run *run, struct run_pool *pool,
              const struct task_run_options *options);
bool run_open(struct run *run) REC_MUST_CHECK;
void run_free(struct run *run);
/* A record of the input. */
bool run_take(struct run *run, const struct rec *rec) REC_MUST_CHECK;
/* Reads what has come, and does all that can be done at once but start processes. */
bool run_prepare(struct run *run) REC_MUST_CHECK;
/* May what is ready be started? */
bool run_may_start(const struct run *run);
/* When there is something to be done if nothing happens before; seconds from now. */
double run_next(const struct run *run);
/* More is to be read when it comes. */
bool run_listens(const struct run *run);
/* Nothing runs, and nothing will. */
bool run_is_over(const struct run *run);
/* What is left when nothing is started any more. */
void run_put_not_started(struct run *run);
/* Something that cannot be made up for: what runs is ended, *run->err is kept. */
void run_give_up(struct run *run);
/* Its processes get SIGTERM now, SIGKILL after the grace time; no other is started. */
void run_end_running(struct run *run);

/* ---- run_pool.c ---- */
/* `marked`: processes are to be found again. run_pool_close() frees it in any case. */
bool run_pool_open(struct run_pool *pool, const struct task_run_options *options,
                   bool marked, struct rec_error *err) REC_MUST_CHECK;
void run_pool_close(struct run_pool *pool);
/* run_pool_wait() is given so many descriptors at most; 1 without it. */
bool run_pool_reserve(struct run_pool *pool, size_t more,
                      struct rec_error *err) REC_MUST_CHECK;
/* Signals that end the run, but those that are ignored, wait until ->events is read;
 * ->launch.mask is what was heard before. */
bool run_watch_signals(struct run_pool *pool, struct rec_error *err) REC_MUST_CHECK;
/* Waits for what comes first, but not longer than `left` seconds; takes answers and the
 * end of processes. What comes to ->signal, or to the n descriptors at `more`, is the
 * caller's. */
bool run_pool_wait(struct run_pool *pool, double left, struct pollfd *more, size_t n,
                   struct rec_error *err) REC_MUST_CHECK;
/* Idle workers end; waits for that. */
bool run_pool_empty(struct run_pool *pool, struct rec_error *err) REC_MUST_CHECK;
/* A slot without a process; NULL: *err. */
struct run_slot *run_free_slot(struct run_pool *pool, struct rec_error *err);

/* ---- run_record.c ---- */
double run_seconds(clockid_t clock);
/* Since the run began, to the microsecond. */
double run_now(const struct run *run);
/* What a task came to: a done or block record. `status`: of its last attempt; NULL: it
 * was not run. */
void run_put_end(struct run *run, uint32_t task, double start, double end, double busy,
                 const char *status);
/* Number ->attempts of a task, to the output and the log, which has what it wrote. */
bool run_put_attempt(struct run *run, const struct run_task *task,
                     const struct run_attempt *attempt) REC_MUST_CHECK;
/* A task that the log says has finished: its attempt as it stands there, and that it is
 * done. Its result is the task's again. */
bool run_repeat(struct run *run, uint32_t task) REC_MUST_CHECK;
void run_warn(struct run *run, const char *format, ...) REC_PRINTF(2, 3);

/* ---- run_attempt.c ---- */
/* The task whose @ID.stdout, @ID.stderr or @ID.result it is; *kind: which. NULL: none. */
const struct run_task *run_find_output(const struct run *run, const char *name,
                                       const char **kind);
/* The file of a task's standard input; *path is the caller's, NULL: it has none. */
bool run_find_input(struct run *run, const struct run_task *task,
                    char **path) REC_MUST_CHECK;
/* An attempt, and what comes of it: the task ends, or waits to be tried again. */
bool run_conclude(struct run *run, uint32_t task,
                  const struct run_attempt *attempt) REC_MUST_CHECK;
/* Starts what is ready and fits, at most so many; *started: how many. */
bool run_start_ready(struct run *run, size_t most, size_t *started) REC_MUST_CHECK;
/* Does its first one that did not fit wait until it does, for it has been overtaken often
 * enough? */
bool run_is_due(const struct run *run);
/* Tasks whose pause is over are ready. */
bool run_wake(struct run *run) REC_MUST_CHECK;
/* The attempt in a slot has ended, and its worker, if it has one, is idle. What is not
 * known here of `attempt` is filled in: times, host, files that are missing. */
bool run_end_attempt(struct run_slot *slot, struct run_attempt *attempt) REC_MUST_CHECK;
/* A process has ended, and is still there as far as its number goes. */
void run_reap(struct run_pool *pool, pid_t pid);

/* ---- run_worker.c ---- */
/* Gives a call to a worker, in *slot. 1; 0: *why is an errno; -1: *run->err. */
int run_worker_call(struct run *run, uint32_t task, struct run_slot **slot,
                    int *why) REC_MUST_CHECK;
/* Which events of its socket are waited for. */
short run_worker_events(const struct run_worker *worker);
/* Takes what it says, and gives it what it has not taken yet. */
void run_worker_hear(struct run_pool *pool, size_t slot);
/* An idle one is to end. */
void run_worker_leave(struct run_pool *pool, struct run_slot *slot);
/* What it printed during a call goes to the folder of logs, if there is one. */
bool run_worker_keep_output(struct run_slot *slot, struct run *run,
                            const struct run_task *task) REC_MUST_CHECK;
void run_worker_free(struct run_worker *worker);

/* ---- run_client.c ---- */
struct run_client;
/* A client that has come through a socket, which is its own from now on. NULL: *err. */
struct run_client *run_client_open(struct run_pool *pool,
                                   const struct task_service *service, int socket,
                                   uint64_t number, struct rec_error *err);
void run_client_free(struct run_client *client);
/* NULL: it has not begun, or its stream has ended. */
struct run *run_client_run(struct run_client *client);
/* Takes what it has sent. `others` are the n clients, this one among them. */
void run_client_prepare(struct run_client *client, struct run_client *const *others,
                        size_t n);
/* Ends its stream if all is done; sends what it has room for. */
void run_client_tell(struct run_client *client);
/* Which events are waited for, and how long without any, seconds. */
struct pollfd run_client_poll(const struct run_client *client, double *left);
void run_client_take_events(struct run_client *client, short events);
/* It has been told all, or told nothing more, and has closed its end. */
bool run_client_is_over(const struct run_client *client);
void run_client_add_tally(const struct run_client *client, struct task_tally *tally);

/* ---- run_socket.c ---- */
/* A socket that accepts, for this user alone, where there is none, or one that nobody
 * listens to; *own: its file. -1: *err. */
int run_socket_open(const char *path, struct stat *own, struct rec_error *err);
/* Closes it, and removes its file if that is still its own. */
void run_socket_close(int socket, const char *path, const struct stat *own);
/* Sends of the n bytes, from *sent on, as many as the other end takes now. False: it does
 * not listen any more. */
bool run_socket_send(int socket, const char *bytes, size_t n,
                     size_t *sent) REC_MUST_CHECK;

/* ---- run_graph.c ---- */
/* Is `a` the file `b`, or all below a folder that b is in? */
bool run_name_covers(const char *a, const char *b);
bool run_graph_add(struct run_graph *graph, const struct task *task, struct rec_str line,
                   double arrival, struct rec_error *err) REC_MUST_CHECK;
/* A task, or a gather. */
struct run_task *run_graph_node(const struct run_graph *graph, uint32_t node);
/* The next gather and the edges that lead to it. `context` is the graph. */
bool run_graph_gather(void *context, const struct task_edge *edges, size_t n,
                      struct rec_error *err) REC_MUST_CHECK;
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

/* ---- run_lists.c ---- */
/* The next list: where edges come from. */
bool run_lists_add(struct run_lists *lists, const struct task_edge *from, size_t n,
                   struct rec_error *err) REC_MUST_CHECK;
struct run_list run_lists_get(const struct run_lists *lists, size_t at);
bool run_list_has(struct run_list list, uint32_t value);
void run_lists_free(struct run_lists *lists);

/* ---- run_log.c ---- */
/* Reads the log, if it is to be resumed, and opens it at its end. */
bool run_log_open(struct run_log *log, const struct run_pool *pool,
                  const struct task_run_options *options,
                  struct rec_error *err) REC_MUST_CHECK;
bool run_log_line(struct run_log *log, struct rec_str line,
                  struct rec_error *err) REC_MUST_CHECK;
void run_log_close(struct run_log *log);
/* Names that a task reads and writes, before it is added to the hazards. */
bool run_log_access(struct run *run, const struct task *task) REC_MUST_CHECK;
void run_access_free(struct run_accesses *access);
/* A task begins: its record, behind what the files are like that no task before it
 * made. */
bool run_log_begin(struct run *run, uint32_t task) REC_MUST_CHECK;
/* Its process, or worker, is number so and so, started so many seconds after the
 * machine. */
bool run_log_process(struct run *run, uint32_t task, pid_t pid, uint32_t number,
                     double started) REC_MUST_CHECK;
/* It ended: what it wrote is like, `attempt` is its record. */
bool run_log_end(struct run *run, const struct run_task *task, bool ok,
                 const char *attempt) REC_MUST_CHECK;
/* The file of this name in the log, which is made if it is not there. */
struct run_file *run_log_file_of(struct run_log *log, const char *name,
                                 struct rec_error *err) REC_MUST_CHECK;

/* ---- run_journal.c ---- */
/* `any`: there is something in it. */
bool run_journal_read(struct run_log *log, bool any,
                      struct rec_error *err) REC_MUST_CHECK;
/* Somebody else has changed a file. `same`: not really, it is as it had been before tasks
 * that were to write it began. */
bool run_journal_change(struct run_log *log, const char *name, bool same,
                        struct rec_error *err) REC_MUST_CHECK;
/* Whose turns wrote what is there under a name now. */
bool run_journal_last(const struct run_log *log, const char *name,
                      const struct task_edge **turns, size_t *n,
                      struct rec_error *err) REC_MUST_CHECK;
/* What the log says of a task. */
void run_journal_recall(const struct run_log *log, struct run_task *task, uint64_t hash);
/* Command, names, folder and environment of a task as one number, in this process. */
bool run_task_hash(const struct task *task, uint64_t *hash,
                   struct rec_error *err) REC_MUST_CHECK;

/* ---- run_resume.c ---- */
/* All tasks up to the end of the input, or a fence, are there: ->finished is taken from
 * those that run again. REC_DATA: what one would read is lost, or half written. */
bool run_resume(struct run *run) REC_MUST_CHECK;

/* ---- run_alive.c ---- */
/* Waits, as long as `grace`, for processes of tasks that the log does not say have
 * ended. */
bool run_wait_for_alive(const struct run_log *log, const struct task_run_options *options,
                        struct rec_error *err) REC_MUST_CHECK;
/* The kernel's name for the time since the machine was started. */
void run_boot_name(char name[64]);

/* ---- run_files.c ---- */
/* What a file is like now; `content`: its sum, too. */
void run_look_at(const char *name, bool content, struct run_look *look);
/* And all those below a folder, dir/, that no task makes. */
bool run_look_below(const struct run *run, const char *name,
                    struct run_look *look) REC_MUST_CHECK;
bool run_look_same(const struct run_look *a, const struct run_look *b);
void run_look_write(FILE *out, const char *name, const char *task, bool given,
                    const struct run_look *look);
bool run_look_read(const struct rec_reader *reader, const struct rec *rec,
                   struct run_look *look, struct rec_error *err) REC_MUST_CHECK;
/* A file that a task writes and that is not there; NULL: none. */
const char *run_find_missing(const struct run_task *task);
/* Files that it writes and that have changed since a time, seconds since 1970. */
void run_list_half(const struct run_task *task, double since, char *list, size_t room);
/* Removes the files that it writes and does not read. */
void run_remove_half(const struct run_task *task);
/* Until a file, and that it is there, is on the disk. */
bool run_sync_file(const char *name, struct rec_error *err) REC_MUST_CHECK;

/* ---- run_process.c ---- */
bool run_launch_open(struct run_launch *launch, bool marked,
                     struct rec_error *err) REC_MUST_CHECK;
/* The next process is number so and so of a run. */
void run_launch_mark(struct run_launch *launch, const char *run, uint32_t number);
void run_launch_close(struct run_launch *launch);
/* Starts a task's process. 1; 0: *why is an errno; -1: *err. `input` is the file of its
 * standard input, NULL for none. If the slot has a worker it is that, and `end` the end
 * of its socket that it gets. */
int run_launch(struct run_launch *launch, const struct run_task *task,
               struct run_slot *slot, const char *input, const char *logs, int end,
               int *why, struct rec_error *err) REC_MUST_CHECK;
/* A file that processes started later do not have; -1: errno. */
int run_open_file(const char *path, int flags);
/* A file without a name, for what a process says; -1: errno. */
int run_open_nameless(void);
/* LOGS/ID.KIND; the caller's, NULL: out of memory. */
char *run_log_file(const char *logs, const char *id, const char *kind);

#endif
