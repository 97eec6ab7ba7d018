/*
 * The declarations that the files of the runner share:
 *
 *     run.c      a run and its loop            graph.c    which tasks are ready
 *     attempt.c  attempts of tasks             process.c  starting processes
 *     worker.c   workers, which take calls     record.c   result records
 *     pool.c     what several runs share: processes, cores, signals
 *     service.c, client.c, socket.c            a service and its clients
 *     jobs.c, submit.c                         tasks as jobs of Slurm
 *     slurm.c, allocation.c                    commands of Slurm; an allocation of it
 *     log.c      writing the log               journal.c  reading the log
 *     resume.c, given.c, turns.c               which tasks of an earlier run run again
 *     alive.c    processes that outlived the runner that had started them
 *     files.c    the state of files            lists.c    lists of writers
 */
#ifndef RAMPIPE_RUN_PRIVATE_H
#define RAMPIPE_RUN_PRIVATE_H

#include "rampipe/run.h"
#include "rampipe/task.h"

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
    RUN_REWRITES = 'r', /* a file that it also reads */
    RUN_BELOW = 'b'     /* everything below a folder */
};

/* A task. All texts lie in ->text, except ->result. */
struct run_task {
    char *text;
    const char *id, *line, *command; /* line: its record, with a line end */
    const char *cwd, *env;           /* with the escapes of the record; NULL: none */
    const char *call; /* the text to send to a worker; NULL: it is a process */
    const char
        *results; /* IDs of tasks whose results it reads, each with a NUL, then "" */
    char *result; /* the result that its worker returned, owned; NULL: none */
    const char *standard_input, *standard_output, *standard_error;
    const char *writes; /* names that it writes, without @NAMEs: each has a letter of
                         * enum run_write in front and a NUL behind */
    double arrival, timeout, memory;
    double cost, weight; /* weight: cost of the longest path that begins with it */
    uint64_t retries;
    uint32_t cores, nwrites, attempts;
    uint32_t waits;  /* the number of unfinished tasks that it waits for */
    uint32_t edge;   /* its first outgoing edge */
    uint32_t cause;  /* the failed task because of which it was skipped; REC_NONE */
    uint32_t logged; /* its index in run_log.logged; REC_NONE: it is not in the log */
    uint8_t state;   /* enum run_state */
    bool ok_any;
    bool begun;    /* here, or as the log says: its files may be half written */
    bool finished; /* the log says that it finished, and it need not run again */
};

/* Edges are in the order in which `dst` was added. Both ends are numbers of tasks, or
 * TASK_GATHER | number of a gather. */
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
    uint32_t *stack; /* work list of tasks and gathers; has room for all of them */
    size_t n, room, ngathers, gather_room, nedges, edge_room, nready, ready_room,
        stack_room;
    size_t weighed; /* the number of tasks when weights were computed last */
};

/* A worker: a process that receives calls through a socket, one after the other. */
struct run_worker {
    int socket;      /* -1: closed, so that the worker exits */
    const char *why; /* status of an unanswered call; NULL: use its exit status */
    uint32_t number; /* of the process, for logs */
    double began;    /* seconds since the machine was started, for logs */
    uint64_t used;   /* the number of its last call among those of the pool */
    int errors;      /* its standard error, if there is a folder of logs; -1: none */
    char *text;      /* the part of its answer that has come */
    char *unsent;    /* the call that is being sent */
    size_t ntext, text_room, nunsent, sent;
    char *kind; /* command, cwd, env, each with a NUL: it takes calls of this kind only */
};

/* A running process: the process of a task, or a worker. */
struct run_slot {
    struct run *run;        /* the run that has the task */
    uint32_t task;          /* REC_NONE: the worker is idle, or exits */
    pid_t pid;              /* 0: the slot is free */
    double start;           /* of the attempt, as run_now() */
    double deadline;        /* of SIGTERM, then of SIGKILL; CLOCK_MONOTONIC */
    bool timed_out, warned; /* warned: SIGTERM was sent */
    int output; /* the file of its output if the task names none; -1: not open */
    struct run_worker *worker; /* NULL: the process belongs to the task alone */
};

/* The outcome of an attempt. */
struct run_attempt {
    double start, end, user, system; /* seconds */
    double memory;                   /* bytes */
    const char *status, *host;
    /* Fields that the answer to a call may have; NULL: it has not. If it lacks user,
     * system or memory, these are NAN. */
    const char *result, *standard_output, *standard_error;
    int output; /* the file of its output, shown if it failed; -1: none */
    bool ok;
};

/* The state of a file at some time: enough to notice later that it has changed. */
struct run_look {
    uint8_t state; /* enum run_look_state */
    bool summed;   /* `sum` is the CRC-32 of its bytes */
    uint32_t sum;
    uint64_t size, digest; /* digest: of a tree */
    int64_t mtime;         /* nanoseconds since 1970 */
};

enum run_look_state {
    RUN_NONE, /* there was no such file */
    RUN_FILE,
    RUN_TREE, /* a name that ends in /: all files below it that no task makes */
    RUN_OTHER /* a folder, a device */
};

/* A failed task that waits for its next attempt. */
struct run_pause {
    uint32_t task;
    double until; /* as run_now() */
};

/*
 * A turn is an event that may change files: a task was begun, or somebody else changed a
 * file (`logged` is REC_NONE then). Turn number i is task number i of run_log.touched,
 * whose hazards tell which turn was the last to write a name.
 */
struct run_turn {
    uint32_t logged, runner; /* the task, and the runner that began it */
    bool ended, finished, ok_any;
    bool same;            /* a change that restored what the readers had found */
    uint32_t number, pid; /* of its process; 0: not known */
    double started;       /* its process: seconds since the machine was started */
    const char *writes;   /* names, each with a NUL; an empty name ends them */
};

/* Numbers of tasks or turns, in increasing order. */
struct run_list {
    uint32_t n;
    const uint32_t *value;
};

/* Lists, numbered 0, 1, ... Equal lists are stored once. Starts as {0}. */
struct run_lists {
    struct rec_map known; /* content of a list -> its index in `list` */
    uint32_t **list;      /* the different lists: length, then values */
    uint32_t *number;     /* of each of the n lists: its index in `list` */
    size_t n, room, nlists, list_room;
};

/* A task of the log. */
struct run_logged {
    const char *id;
    uint64_t hash;         /* run_task_hash() of its last record */
    bool finished, number; /* number: its last attempt ended with an exit status */
    uint32_t turn;         /* of its last begin; REC_NONE: none */
    uint64_t begin, end;   /* numbers of the records of its last begin and end */
    size_t
        source; /* in run_log.source: the first of one list for each name that it reads,
                    * of the turns that had written the name when the task began */
    const char *attempt; /* its last attempt with an exit status; NULL: none */
    double since, until; /* of that attempt, seconds since 1970; NAN: not known */
    bool call;
};

/* A file of the log. */
struct run_file {
    const char *name;
    struct run_look look; /* its last state in the log */
    uint32_t turn;        /* the number of turns before that state */
    bool seen;            /* there is such a state */
    bool fresh;           /* this run has looked at the file already */
    bool ours;  /* a task made that state; false: a task found it when it began */
    bool there; /* the file was there before any task wrote it, or this is not known */
};

/* A runner record of the log: one run. */
struct run_runner {
    const char *name, *boot, *host;
};

/* The log of a run: the file that is appended to, and what was read from it. */
struct run_log {
    const char *path;
    int fd, lock; /* lock: a second descriptor; tasks inherit it and its lock */
    bool content, durable;
    struct rec_map ids, names; /* to `logged`, to `file` */
    struct run_logged *logged;
    struct run_turn *turn;
    struct run_file *file;
    struct run_runner *runner;
    struct run_lists source; /* see run_logged.source */
    size_t n, room, nturns, turn_room, nfiles, file_room, nrunners, runner_room;
    uint64_t records;             /* the number of records read */
    struct task_hazards *touched; /* the last turns that wrote each name */
    struct task_streams streams;  /* of its tasks */
    struct rec_arena arena;
};

/* The names that a task of a run with a log reads and writes. */
struct run_access {
    uint32_t nreads, nwrites;
    size_t name; /* its first name in run_accesses.name: reads, then writes */
};

struct run_accesses {
    struct run_access *task;
    const char **name;
    struct run_lists source; /* of each name: the tasks that wrote it before */
    size_t n, room, nnames, name_room;
    struct rec_arena arena;
};

/* Buffers for the arguments and the environment of a process that is started. */
struct run_launch {
    char *words, *variables, *stack;
    char **argv, **environment;
    char **own;     /* this process's environment, with ->mark in front */
    char **before;  /* `environ`, as it was before */
    char mark[256]; /* RAMPIPE_TASK=..., by which a process is found again */
    size_t marked;  /* length of the part of `mark` that is the same for all processes */
    size_t word_room, variable_room, stack_room, argv_room, environment_room;
    sigset_t mask; /* the signal mask that processes start with */
    int null;
};

struct run_jobs;

/* What the runs of one process share: the machine. */
struct run_pool {
    const struct run_options *options;
    struct run_launch launch;
    struct run_slot *slot;
    size_t nslots, slot_room;
    struct pollfd *poll;
    size_t poll_room, more; /* more: the number of descriptors besides those of slots */
    uint32_t cores;         /* free */
    double memory;          /* free */
    uint32_t started;       /* the number of processes started */
    uint64_t used;          /* the number of calls given to workers */
    char name[17];          /* in logs, and in the environment of processes */
    char host[65];
    sigset_t heard;     /* SIGCHLD, and the signals that end the run */
    int signal, events; /* events: a signalfd of the signals of `heard` */
    unsigned signals;   /* the number of signals to end that have come */
    double signalled;   /* the time of the last of them, CLOCK_MONOTONIC */
    bool serves;        /* its runs belong to clients */
    uint64_t round;     /* counts rounds of asking each client for a task that fits */
    uint64_t turns;     /* counts starts of clients' tasks and arrivals of clients */
};

struct run {
    struct run_pool *pool;
    const struct run_options *options;
    struct rec_reader *reader;
    struct rec_writer *writer;
    struct rec_error *err;
    struct rec_error first; /* the first error: the reason why the run failed */
    struct run_tally *tally;
    double told; /* when the last block record was written, seconds */
    struct task_hazards *hazards;
    struct task_streams streams;
    struct task_gathers gathers;
    struct run_graph graph;
    struct run_log log;
    struct run_accesses access;
    struct run_jobs *jobs; /* NULL: tasks are processes of this one */
    struct task task;      /* the task that is being read */
    struct rec_map ids;    /* to graph.task */
    struct run_pause *pause;
    size_t npauses, pause_room;
    uint32_t head; /* the first ready task without room; `passed` others overtook it */
    uint64_t passed;
    double origin;  /* time 0 of the run, CLOCK_MONOTONIC, seconds */
    double began;   /* seconds since 1970 */
    bool ended;     /* no more input */
    bool unread;    /* input may have come that is not read yet */
    bool gone;      /* the client closed before its #end; ->first is the reason */
    uint64_t turn;  /* of a client: pool->turns when its last task was started */
    uint64_t round; /* of a client: the last pool->round in which none of its tasks fit */
    bool fenced;    /* a fence: no task is read until all known ones have ended */
    bool stopped;   /* no more tasks are started */
    bool ending;    /* running tasks have been told to end */
    bool failed;    /* ->first is the reason */
    size_t resumed, resumed_edges; /* numbers of tasks and edges of the graph for which
                                    * run_resume() has decided */
    uint64_t
        resumed_end; /* number of the log's record with the last end of these tasks */
    bool verified;   /* files have been compared with the log */
    bool anew;       /* one of these tasks runs again */
};

/* ---- run.c ---- */
/* Before: *run is {0}, except reader, writer, err and tally. run_free() must follow even
 * if run_open() fails. */
void run_init(struct run *run, struct run_pool *pool, const struct run_options *options);
bool run_open(struct run *run) REC_MUST_CHECK;
void run_free(struct run *run);
bool run_take(struct run *run, const struct rec *rec) REC_MUST_CHECK;
/* Reads input, and does all that can be done at once, except to start processes. */
bool run_prepare(struct run *run) REC_MUST_CHECK;
bool run_may_start(const struct run *run);
/* Seconds until the run must be looked at again even if no event comes. */
double run_next(const struct run *run);
/* Shall its input be read when more of it comes? */
bool run_listens(const struct run *run);
/* Nothing runs, and nothing will. */
bool run_is_over(const struct run *run);
/* Writes block records of the tasks that were not started. */
void run_put_not_started(struct run *run);
/* After an error that ends the run: keeps *run->err and ends the running tasks. */
void run_give_up(struct run *run);
/* Its processes get SIGTERM now, SIGKILL after the grace time; no other is started. */
void run_end_running(struct run *run);

/* ---- pool.c ---- */
/* `marked`: processes get an environment variable by which they can be found again.
 * run_pool_close() must follow even if this fails. */
bool run_pool_open(struct run_pool *pool, const struct run_options *options, bool marked,
                   struct rec_error *err) REC_MUST_CHECK;
void run_pool_close(struct run_pool *pool);
/* Sets how many descriptors run_pool_wait() may be given; 1 at first. */
bool run_pool_reserve(struct run_pool *pool, size_t more,
                      struct rec_error *err) REC_MUST_CHECK;
/* Blocks SIGCHLD and the signals that end the run, except ignored ones: they are read
 * from ->events instead. ->launch.mask is the signal mask before. */
bool run_watch_signals(struct run_pool *pool, struct rec_error *err) REC_MUST_CHECK;
/* Waits for an event, at most `left` seconds. Takes answers of workers and the end of
 * processes, and sets ->signal. The caller looks at ->signal and at the events of the n
 * descriptors of `more`. */
bool run_pool_wait(struct run_pool *pool, double left, struct pollfd *more, size_t n,
                   struct rec_error *err) REC_MUST_CHECK;
/* Tells idle workers to exit, and waits until there are no processes. */
bool run_pool_empty(struct run_pool *pool, struct rec_error *err) REC_MUST_CHECK;
/* A slot without a process; NULL: *err. */
struct run_slot *run_free_slot(struct run_pool *pool, struct rec_error *err);

/* ---- record.c ---- */
double run_seconds(clockid_t clock);
/* Seconds since the run began, rounded to microseconds. */
double run_now(const struct run *run);
/* Writes the record of the end of a task: done or block. `status`: of its last attempt;
 * NULL: it was not run. `busy`: share of its cores' time that it used; NAN: not known. */
void run_put_end(struct run *run, uint32_t task, double start, double end, double busy,
                 const char *status);
/* Writes the record of attempt number ->attempts of a task to the output and to the log,
 * where the state of the files that the task wrote stands in front of it. */
bool run_put_attempt(struct run *run, const struct run_task *task,
                     const struct run_attempt *attempt) REC_MUST_CHECK;
/* For a task that has finished in an earlier run: copies its attempt record from the log
 * to the output, writes a done record, and restores its result. */
bool run_repeat(struct run *run, uint32_t task) REC_MUST_CHECK;
void run_warn(struct run *run, const char *format, ...) REC_PRINTF(2, 3);

/* ---- attempt.c ---- */
/* The task ID if `name` is @ID.stdout, @ID.stderr or @ID.result; *kind is the part behind
 * the dot. NULL: it is another name, or there is no such task. */
const struct run_task *run_find_output(const struct run *run, const char *name,
                                       const char **kind);
/* The path of a task's standard input, owned by the caller; NULL: it has none. */
bool run_find_input(struct run *run, const struct run_task *task,
                    char **path) REC_MUST_CHECK;
/* After a task has ended: tasks behind it become ready, or are skipped. */
bool run_settle(struct run *run, uint32_t task) REC_MUST_CHECK;
/* Records an attempt. The task then ends, or waits for its next attempt. */
bool run_conclude(struct run *run, uint32_t task,
                  const struct run_attempt *attempt) REC_MUST_CHECK;
/* Starts ready tasks that fit, at most `most`; *started is their number. */
bool run_start_ready(struct run *run, size_t most, size_t *started) REC_MUST_CHECK;
/* Returns true if the first ready task does not fit and has been overtaken by as many
 * tasks as are allowed. Then no other task may start before it. */
bool run_is_due(const struct run *run);
/* Makes the tasks ready whose pause is over. */
bool run_wake(struct run *run) REC_MUST_CHECK;
/* Ends the attempt in a slot, whose worker is idle then. Fills in times, host and output
 * of `attempt`; if a file is missing it makes the attempt a failure. */
bool run_end_attempt(struct run_slot *slot, struct run_attempt *attempt) REC_MUST_CHECK;
/* Takes the end of a process that has not been waited for yet: until then no other
 * process can get its number. */
void run_reap(struct run_pool *pool, pid_t pid);

/* ---- worker.c ---- */
/* Gives a call to a worker; *slot is the slot of the worker. Returns 1; 0: the worker
 * cannot be started, *why is an errno; -1: *run->err. */
int run_worker_call(struct run *run, uint32_t task, struct run_slot **slot,
                    int *why) REC_MUST_CHECK;
/* The events of its socket to wait for. */
short run_worker_events(const struct run_worker *worker);
/* Reads what a worker has written, and sends what is left of its call. */
void run_worker_hear(struct run_pool *pool, size_t slot);
/* Tells a worker to exit, by closing its socket. */
void run_worker_leave(struct run_pool *pool, struct run_slot *slot);
/* Moves what a worker printed during a call to the folder of logs, if there is one. */
bool run_worker_keep_output(struct run_slot *slot, struct run *run,
                            const struct run_task *task) REC_MUST_CHECK;
void run_worker_free(struct run_worker *worker);

/* ---- client.c ---- */
struct run_client;
/* A new client; it owns `socket`, even if this fails. NULL: *err. */
struct run_client *run_client_open(struct run_pool *pool,
                                   const struct run_service *service, int socket,
                                   uint64_t number, struct rec_error *err);
void run_client_free(struct run_client *client);
/* NULL: its run has not begun, or has ended. */
struct run *run_client_run(struct run_client *client);
/* Takes what the client has sent. `others` are all n clients, including this one. */
void run_client_prepare(struct run_client *client, struct run_client *const *others,
                        size_t n);
/* Ends the client's stream if its run is over; sends as much as the socket takes. */
void run_client_tell(struct run_client *client);
/* The events to wait for; *left: for how long at most, seconds. */
struct pollfd run_client_poll(const struct run_client *client, double *left);
void run_client_take_events(struct run_client *client, short events);
/* Is the connection of no more use, so that the client can be freed? */
bool run_client_is_over(const struct run_client *client);
void run_client_add_tally(const struct run_client *client, struct run_tally *tally);

/* ---- socket.c ---- */
/* Makes a socket for this user alone, which accepts as soon as its file exists. Replaces
 * a socket that nobody listens to. *own: the status of its file. -1: *err. */
int run_socket_open(const char *path, struct stat *own, struct rec_error *err);
/* Closes the socket, and removes its file unless another file has taken its place. */
void run_socket_close(int socket, const char *path, const struct stat *own);
/* Sends of the n bytes, from *sent on, as many as the socket takes without waiting, and
 * adds their number to *sent. False: the other end has closed. */
bool run_socket_send(int socket, const char *bytes, size_t n,
                     size_t *sent) REC_MUST_CHECK;

/* ---- graph.c ---- */
/* Adds a task. `line` is its record; `arrival` is when it was read, as run_now(). */
bool run_graph_add(struct run_graph *graph, const struct task *task, struct rec_str line,
                   double arrival, struct rec_error *err) REC_MUST_CHECK;
struct run_task *run_graph_node(const struct run_graph *graph, uint32_t node);
/* Adds a gather and the edges that lead to it. `context` is the graph. */
bool run_graph_gather(void *context, const struct task_edge *edges, size_t n,
                      struct rec_error *err) REC_MUST_CHECK;
/* Adds the edges that lead to the last task. */
bool run_graph_link(struct run_graph *graph, const struct task_edge *edges, size_t n,
                    struct rec_error *err) REC_MUST_CHECK;
bool run_graph_push(struct run_graph *graph, uint32_t task,
                    struct rec_error *err) REC_MUST_CHECK;
/* Removes and returns the ready task that comes first; there must be one. */
uint32_t run_graph_pop(struct run_graph *graph);
/* Computes the weights of all known tasks, and orders the heap of ready ones by them. */
void run_graph_weigh(struct run_graph *graph);
/* Ends a task: each task behind it waits for one task less. Tasks that can no longer be
 * run are failed, too; they are the first *nskipped values of graph->stack. */
bool run_graph_end(struct run_graph *graph, uint32_t task, size_t *nskipped,
                   struct rec_error *err) REC_MUST_CHECK;
void run_graph_free(struct run_graph *graph);

/* ---- jobs.c ---- */
/* From now on the tasks of the run are jobs of Slurm. */
bool run_jobs_open(struct run *run) REC_MUST_CHECK;
void run_jobs_close(struct run *run);
/* Submits tasks that have been read, and takes the results of jobs that have ended. */
bool run_jobs_step(struct run *run) REC_MUST_CHECK;
bool run_jobs_all_submitted(const struct run *run);
/* Cancels the jobs of n tasks. */
bool run_jobs_drop(struct run *run, const uint32_t *tasks, size_t n) REC_MUST_CHECK;
/* Stops waiting for jobs that have not ended. */
void run_jobs_leave(struct run *run);

/* ---- lists.c ---- */
/* Adds the next list: the sources of n edges. */
bool run_lists_add(struct run_lists *lists, const struct task_edge *from, size_t n,
                   struct rec_error *err) REC_MUST_CHECK;
struct run_list run_lists_get(const struct run_lists *lists, size_t at);
bool run_list_has(struct run_list list, uint32_t value);
void run_lists_free(struct run_lists *lists);

/* ---- log.c ---- */
/* Opens the log to append to it; reads it before if the run is to be resumed. */
bool run_log_open(struct run_log *log, const struct run_pool *pool,
                  const struct run_options *options,
                  struct rec_error *err) REC_MUST_CHECK;
/* Appends a text to the log. */
bool run_log_line(struct run_log *log, struct rec_str line,
                  struct rec_error *err) REC_MUST_CHECK;
void run_log_close(struct run_log *log);
/* Keeps the names of a task in run->access, before it is added to the hazards. */
bool run_log_access(struct run *run, const struct task *task) REC_MUST_CHECK;
void run_access_free(struct run_accesses *access);
/* Logs that a task begins: first the state of files that it uses and that no earlier task
 * made, then its record. */
bool run_log_begin(struct run *run, uint32_t task) REC_MUST_CHECK;
/* Logs the process, or worker, of a task. `number`: of the process within the run;
 * `started`: seconds since the machine was started. */
bool run_log_process(struct run *run, uint32_t task, pid_t pid, uint32_t number,
                     double started) REC_MUST_CHECK;
/* Logs that a task ended: the state of the files that it wrote, if it was `ok`, and the
 * record `attempt`. */
bool run_log_end(struct run *run, const struct run_task *task, bool ok,
                 const char *attempt) REC_MUST_CHECK;
/* The file of this name in the log; made if there is none. NULL: *err. */
struct run_file *run_log_file_of(struct run_log *log, const char *name,
                                 struct rec_error *err) REC_MUST_CHECK;

/* ---- journal.c ---- */
/* Reads the log; `any`: the file is not empty. */
bool run_journal_read(struct run_log *log, bool any,
                      struct rec_error *err) REC_MUST_CHECK;
/* Adds a turn: somebody else has changed a file. `same`: the file is as it was before the
 * tasks began that were to write it, so that its readers see no change. */
bool run_journal_change(struct run_log *log, const char *name, bool same,
                        struct rec_error *err) REC_MUST_CHECK;
/* The turns that wrote what a name holds now. */
bool run_journal_last(const struct run_log *log, const char *name,
                      const struct task_edge **turns, size_t *n,
                      struct rec_error *err) REC_MUST_CHECK;
/* Sets ->logged, ->begun and ->finished of a task by what the log says of it. */
void run_journal_recall(const struct run_log *log, struct run_task *task, uint64_t hash);
/* A hash of a task's command, names, streams, folder, environment and call, valid only in
 * this process: equal hashes mean that the log and the list have the same task. */
bool run_task_hash(const struct task *task, uint64_t *hash,
                   struct rec_error *err) REC_MUST_CHECK;

/* ---- resume.c ---- */
/* To be called when all tasks up to a fence, or to the end of the input, have been read:
 * clears ->finished of the tasks that must run again. REC_DATA: a task must run again,
 * but a file that it reads is lost or half written. */
bool run_resume(struct run *run) REC_MUST_CHECK;

/* ---- alive.c ---- */
/* Waits until no process is left of tasks that have no end in the log; fails after
 * options->grace seconds. */
bool run_wait_for_alive(const struct run_log *log, const struct run_options *options,
                        struct rec_error *err) REC_MUST_CHECK;
/* The kernel's identifier of the present boot of the machine. */
void run_boot_name(char name[64]);

/* ---- files.c ---- */
/* The present state of a file; `content`: with its checksum. */
void run_look_at(const char *name, bool content, struct run_look *look);
/* The present state of all files below a folder, dir/, that no task makes. */
bool run_look_below(const struct run *run, const char *name,
                    struct run_look *look) REC_MUST_CHECK;
bool run_look_same(const struct run_look *a, const struct run_look *b);
/* Is there such a file, and did it change last in this time (since 1970)? NAN: any. */
bool run_changed_within(const char *name, double since, double until);
/* Writes a file record. `task`: the task that made this state, "-" for none; `given`: the
 * run takes the file as it is, whatever the log says before. */
void run_look_write(FILE *out, const char *name, const char *task, bool given,
                    const struct run_look *look);
bool run_look_read(const struct rec_reader *reader, const struct rec *rec,
                   struct run_look *look, struct rec_error *err) REC_MUST_CHECK;
/* The first file that a task writes and that does not exist; NULL: none. */
const char *run_find_missing(const struct run_task *task);
/* Lists the files that a task writes and that have changed since a time, seconds since
 * 1970: they may be half written. */
void run_list_half(const struct run_task *task, double since, char *list, size_t room);
/* Removes the files that a task writes and does not read. */
void run_remove_half(const struct run_task *task);
/* Waits until a file and its entry in the folder are on the disk. */
bool run_sync_file(const char *name, struct rec_error *err) REC_MUST_CHECK;

/* ---- process.c ---- */
bool run_launch_open(struct run_launch *launch, bool marked,
                     struct rec_error *err) REC_MUST_CHECK;
/* Sets the mark of the next process: its number in the run of this name. */
void run_launch_mark(struct run_launch *launch, const char *run, uint32_t number);
void run_launch_close(struct run_launch *launch);
/* Starts the process of a task, or the worker of the slot if it has one. Returns 1; 0: it
 * cannot be started, *why is an errno; -1: *err. `input`: the file of standard input,
 * NULL: none. `end`: the worker's end of its socket; -1: no worker. */
int run_launch(struct run_launch *launch, const struct run_task *task,
               struct run_slot *slot, const char *input, const char *logs, int end,
               int *why, struct rec_error *err) REC_MUST_CHECK;
/* Opens a file that started processes do not inherit. -1: errno. */
int run_open_file(const char *path, int flags);
/* The path LOGS/ID.KIND, owned by the caller. NULL: out of memory. */
char *run_log_file(const char *logs, const char *id, const char *kind);

#endif
