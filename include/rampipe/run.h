/*
 * rampipe/run.h - running the tasks of a stream (rampipe/task.h): on this machine, in an
 * allocation of Slurm, or each as a job of Slurm; for one caller, or as a service for
 * several clients.
 *
 *     task records --> run_tasks(): ready tasks --> processes, workers, jobs of Slurm
 *                          |             ^                  |
 *                          |             +---- their ends --+
 *                          +--> attempt, done and block records; a log to resume from
 */
#ifndef RAMPIPE_RUN_H
#define RAMPIPE_RUN_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/** Counts of the tasks of a run. */
struct run_tally {
    uint64_t known;  /* tasks read so far */
    uint64_t before; /* of these, tasks that an earlier run had finished */
    uint64_t running, done, failed, skipped;
    bool open; /* the input has not ended: `known` may still grow */
    bool lost; /* the run was refused because an input is lost: see `again` below */
};

/** How tasks are run. All texts are borrowed. */
struct run_options {
    uint32_t cores;   /* shared by all tasks */
    double memory;    /* shared by all tasks, bytes */
    uint64_t retries; /* for tasks that give no number of their own */
    double backoff;   /* seconds before the first retry; doubles with each retry */
    double grace;     /* seconds from SIGTERM to SIGKILL */
    bool fail_fast;   /* start no more tasks after a failure */
    bool brief;       /* write records of failures only */
    const char *logs; /* folder for ID.stdout and ID.stderr; NULL: output is shown if a
                       * task fails */
    const char *log;  /* file to append attempts to; NULL: none */
    bool resume;      /* do not run tasks again that `log` says have finished */
    bool again;       /* resume: if a task has changed an input that no task makes anew,
                       * use it as it is instead of refusing the run */
    bool content;     /* compare files by checksum instead of time of change */
    bool unchecked;   /* a task may succeed without making the files that it writes */
    bool durable;     /* sync the files of a task to the disk before it counts as done */
    bool silent;      /* report failures in the records only, not by `warn` and `show` */
    bool cancel;      /* service: cancel the tasks of a client that goes away */
    /* The program that runs one task inside a job of Slurm, with the options of runtasks;
     * each task is such a job, with the cores and memory of the task. NULL: tasks are
     * processes of this machine. Cannot be combined with `resume`. */
    const char *runner;
    const char *slurm; /* options for sbatch, quoted as in a shell */
    void (*tell)(void *context, const struct run_tally *tally); /* progress */
    void (*warn)(void *context, const char *text);              /* one line */
    void (*show)(void *context, const char *bytes,
                 size_t n); /* output of a failed task */
    void *context;
};

/**
 * Runs the tasks of a stream while it is read, each task in a process group of its own. A
 * task is ready when all tasks that it waits for have ended. Ready tasks start as cores
 * and memory allow, the one with the longest path behind it first (the sum of costs, 1 s
 * for a task without one), the earlier one of two equals. Attempt, done and block records
 * go to `writer`, and so does every record that is neither a task nor a fence. False:
 * input, output or log failed (*err); no task is running then. *signal: the number of the
 * signal that ended the run, by which the caller should end, too; 0: none. The log is a
 * stream without header; it gets a task record when an attempt begins and an attempt
 * record when it ends.
 */
bool run_tasks(const struct run_options *options, struct rec_reader *reader,
               struct rec_writer *writer, struct run_tally *tally, int *signal,
               struct rec_error *err) REC_MUST_CHECK;

/** A service that runs the tasks of several clients. Texts are borrowed. */
struct run_service {
    const char *socket;     /* path of its Unix socket */
    const char *provenance; /* the service's own provenance line in its answers */
};

/** The longest path of a Unix socket, bytes (sun_path of sockaddr_un without its NUL). */
enum { RUN_SOCKET_MAX = 107 };

/**
 * Runs tasks for all clients that connect to a socket: the stream of each client as by
 * run_tasks(), with its results on the same connection. Clients share cores, memory and
 * workers, and nothing else. Among the clients with a ready task that fits, the next is
 * the one whose last task was started longest ago. `log` and `logs` of the options are
 * folders, with NAME.log and NAME/ for each client; `tell` is not called. Returns when at
 * least one client has come and all have gone; *tally is the sum over all clients. False:
 * the socket cannot be opened, or a client could neither be served nor be sent an error
 * (*err). *signal: as for run_tasks(); the connections are closed then.
 */
bool run_serve(const struct run_options *options, const struct run_service *service,
               struct run_tally *tally, int *signal,
               struct rec_error *err) REC_MUST_CHECK;

/** Checks that the log is neither one of the n inputs (n = 0, or "-": standard input) nor
 * the output (NULL: standard output), even under another name. REC_USAGE: it is. No file
 * is opened. */
bool run_check_log(const char *log, const char *output, const char *const *inputs,
                   size_t n, struct rec_error *err) REC_MUST_CHECK;

/** The allocation to ask Slurm for. */
struct run_slurm_options {
    const char *options; /* further words for srun, quoted as in a shell */
    uint32_t cores;      /* 0: a whole node */
    double memory;       /* bytes; 0: Slurm's default */
    bool input;          /* the runner reads standard input */
    bool live;           /* show output at once, without waiting for the end of a line */
};

/**
 * Runs a command, the runner (words, ended by NULL), in a new allocation of Slurm. The
 * runner has the standard input and error of this process; its output is copied to
 * standard output. *status is its exit status; it is 4 if srun failed and has said why. A
 * signal to this process ends the runner as in run_tasks() and is *signal; SIGPIPE, if
 * nobody reads the output, is reported in the same way. False: srun is missing, the
 * output could not be written, or Slurm ended the job (*err).
 */
bool run_in_slurm(const struct run_slurm_options *options, char *const runner[],
                  int *status, int *signal, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
