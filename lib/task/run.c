/*
 * The loop of a run: it reads tasks, starts what is ready, and waits for more of both.
 *
 *     take() --- a task's edges --- waits for others, or: ready --- start() --- finish()
 *                                                           ^                     |
 *                                                           +--- retry, those ----+
 *                                                                behind it
 *
 * A signal, a full disk, bad input: nothing is started any more; tasks end, or are ended.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Tasks are read before any is started, if so many are there. */
enum { BATCH = 1 << 16 };
/* Jobs are looked at so often, seconds. */
#define JOBS_TICK 0.1

/* ---- stopping ------------------------------------------------------------ */

/* Processes get SIGTERM now, SIGKILL after the grace time. */
static void
end_running(struct run *run)
{
    run->stopped = true;
    if (run->ending)
        return;
    run->ending = true;
    for (size_t i = 0; i < run->nslots; i++)
        if (run->slot[i].task != REC_NONE && !run->slot[i].warned)
            run->slot[i].deadline = 0;
}

/* Something that cannot be made up for: what runs is ended, *err is kept. */
static void
give_up(struct run *run)
{
    run->failed = run->ended = true;
    end_running(run);
}

/* ---- input --------------------------------------------------------------- */

/* Can it be run at all? */
static bool
check_needs(struct run *run, const struct task *task)
{
    const struct task_run_options *o = run->options;
    const char *kind;
    const struct run_task *from;
    struct rec_str rest = rec_str(task->env ? task->env : "a="), part;
    while (rec_str_split(&rest, ',', &part))
        if (!memchr(part.ptr, '=', part.len) || *part.ptr == '=')
            return rec_reader_fail(run->reader, run->err,
                                   "env of task '%s' must be NAME=VALUE,..., got '%.*s'",
                                   task->id, (int)(part.len < 80 ? part.len : 80),
                                   part.ptr);
    if (task->cores > o->cores)
        return rec_reader_fail(run->reader, run->err,
                               "task '%s' needs %u cores, there are %u", task->id,
                               task->cores, o->cores);
    if (task->memory > o->memory)
        return rec_reader_fail(run->reader, run->err,
                               "task '%s' needs %.15g bytes of memory, there are %.15g",
                               task->id, task->memory, o->memory);
    if ((task->standard_output && *task->standard_output == '@') ||
        (task->standard_error && *task->standard_error == '@'))
        return rec_reader_fail(
            run->reader, run->err,
            "stdout and stderr of task '%s' go to files, not to @NAMEs", task->id);
    if (!task->standard_input || *task->standard_input != '@')
        return true;
    from = run_find_output(run, task->standard_input, &kind);
    if (!from)
        return rec_reader_fail(run->reader, run->err,
                               "'%s' is no output of a task before '%s': it would be "
                               "@ID.stdout or @ID.stderr",
                               task->standard_input, task->id);
    return o->logs ||
           (strcmp(kind, "stdout") == 0 ? from->standard_output : from->standard_error) ||
           rec_reader_fail(
               run->reader, run->err,
               "the %s of task '%s' is kept nowhere: it needs %s=FILE, or the "
               "run a folder of logs",
               kind, from->id, kind);
}

static bool
take_task(struct run *run, const struct rec *rec)
{
    const struct task_edge *edges;
    struct run_task *task;
    size_t n;
    uint64_t hash;
    uint32_t number = (uint32_t)run->graph.n;
    if (!task_read(&run->task, run->reader, rec, run->err) ||
        !check_needs(run, &run->task))
        return false;
    if (!run_log_access(run, &run->task))
        return false;
    if (!task_hazards_add(run->hazards, &run->task, &edges, &n, run->err))
        return rec_locate(run->reader, run->err);
    if (!run_graph_add(&run->graph, &run->task, rec->line, run_now(run), run->err) ||
        !run_graph_link(&run->graph, edges, n, run->err))
        return false;
    task = &run->graph.task[number];
    if (!rec_map_add(&run->ids, rec_str(task->id), number, run->err))
        return false;
    run->tally->known++;
    if (run->options->resume) { /* what is to be run is known when all are */
        if (!run_task_hash(&run->task, &hash, run->err))
            return false;
        run_journal_recall(&run->log, task, hash);
        return true;
    }
    if (task->waits > 0)
        return true;
    if (task->cause == REC_NONE)
        return run_graph_push(&run->graph, number, run->err);
    task->state = RUN_FAILED;
    run->tally->skipped++;
    run_put_end(run, number, 0, run_now(run), 0, NULL);
    return true;
}

static bool
take(struct run *run, const struct rec *rec)
{
    if (rec->type == REC_TASK)
        return take_task(run, rec);
    if (rec->type == REC_FENCE) {
        task_hazards_fence(run->hazards);
        run->fenced = true;
        return rec_need(run->reader, rec, run->err);
    }
    rec_put_line(run->writer, rec->line);
    return true;
}

/* All is read, up to a fence: what an earlier run has finished is done, unless something
 * before the last fence had to be run again. */
static bool
resume(struct run *run)
{
    struct run_graph *graph = &run->graph;
    size_t first = run->resumed, none;
    if (!run_resume(run))
        return false;
    for (size_t i = first; i < graph->n; i++)
        if (graph->task[i].finished) {
            graph->task[i].state = RUN_DONE;
            run->tally->before++;
        } else {
            run->anew = true;
            if (graph->task[i].waits == 0 &&
                !run_graph_push(graph, (uint32_t)i, run->err))
                return false;
        }
    for (size_t i = first; i < graph->n; i++)
        if (graph->task[i].finished &&
            !run_graph_end(graph, (uint32_t)i, &none, run->err))
            return false;
    run->resumed = graph->n;
    run->resumed_edges = graph->nedges;
    return true;
}

/* Nothing runs, or will by itself. */
static bool
is_settled(const struct run *run)
{
    if (run->tally->running > 0)
        return false;
    return run->jobs ? run_jobs_all_submitted(run)
                     : run->npauses == 0 && run->graph.nready == 0;
}

/* Reads what is there, but nothing behind a fence before all in front of it has ended. Bad
 * input does not end what runs. */
static bool
read_input(struct run *run)
{
    int status = 1;
    if (run->fenced && !is_settled(run))
        return true;
    run->fenced = false;
    for (size_t i = 0; i < BATCH && status == 1 && !run->fenced; i++) {
        struct rec rec;
        status = rec_try_next(run->reader, &rec, run->err);
        if (status == 1 && !take(run, &rec))
            status = -1;
    }
    if (status < 0)
        run->failed = run->stopped = true;
    run->ended = status <= 0;
    return status < 0 || !run->options->resume || !(run->ended || run->fenced) ||
           resume(run);
}

/* ---- waiting ------------------------------------------------------------- */

/* It may be over, and not looked at yet. */
static bool
has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* Timeouts that have passed. The next one. */
static double
end_late(struct run *run)
{
    double time = run_now(run), next = INFINITY;
    for (size_t i = 0; i < run->nslots; i++) {
        struct run_slot *slot = &run->slot[i];
        if (slot->task == REC_NONE)
            continue;
        if (slot->deadline <= time && !has_ended(slot->pid)) {
            kill(-slot->pid, slot->warned ? SIGKILL : SIGTERM);
            slot->timed_out = slot->timed_out || !run->ending;
            slot->deadline = slot->warned ? INFINITY : time + run->options->grace;
            slot->warned = true;
        }
        next = fmin(next, slot->deadline);
    }
    for (size_t i = 0; i < run->npauses; i++)
        next = fmin(next, run->pause[i].until);
    return next - time;
}

static void
take_signals(struct run *run)
{
    static const struct timespec none = {0, 0};
    int number;
    while ((number = sigtimedwait(&run->heard, NULL, &none)) > 0) {
        if (number == SIGCHLD)
            continue;
        if (run->signal && run->jobs)
            run_jobs_leave(run);
        if (run->signal) /* again: at once */
            for (size_t i = 0; i < run->nslots; i++)
                run->slot[i].deadline = 0;
        run->signal = number;
        run->ended = true;
        end_running(run);
    }
}

/* Until something happens. */
static bool
wait_for_events(struct run *run)
{
    struct pollfd at[2] = {{run->events, POLLIN, 0}, {-1, POLLIN, 0}};
    /* a second: progress */
    double left = fmin(fmax(end_late(run), 0), run->jobs ? JOBS_TICK : 1);
    int input = run->ended || run->fenced ? -1 : rec_reader_descriptor(run->reader);
    rec_writer_flush(run->writer);
    if (!run->ending && !rec_writer_ok(run->writer, run->err))
        return false;
    at[1].fd = input;
    if (!run->ended && (run->fenced ? is_settled(run) : input < 0))
        left = 0;
    if (poll(at, 2, (int)ceil(1000 * left)) < 0 && errno != EINTR)
        return rec_fail(run->err, REC_IO, "waiting for tasks: %s", strerror(errno));
    if (at[0].revents)
        take_signals(run);
    return run_reap(run);
}

static bool
is_over(const struct run *run)
{
    return run->ended && (run->stopped ? run->tally->running == 0 : is_settled(run));
}

static bool
step(struct run *run)
{
    if (!run->ended && !read_input(run))
        return false;
    if (run->graph.n > run->graph.weighed &&
        (run->ended || run->graph.n >= run->graph.weighed + run->graph.weighed / 4))
        run_graph_weigh(&run->graph);
    if (run->jobs) {
        if (!run_jobs_step(run))
            return false;
    } else if ((run->ended || run->fenced || !run->options->resume) &&
               (!run_wake(run) || !run_start_ready(run)))
        return false;
    run->options->tell(run->options->context, run->tally);
    return is_over(run) || wait_for_events(run);
}

static void
loop(struct run *run)
{
    struct rec_error first;
    while (!is_over(run)) {
        bool failed = run->failed;
        if (failed)
            first = *run->err;
        if (!step(run))
            give_up(run);
        if (failed)
            *run->err = first;
    }
    for (size_t i = 0; i < run->graph.n && !run->failed && !run->signal; i++)
        if (run->graph.task[i].state == RUN_WAITS) {
            run->graph.task[i].state = RUN_FAILED;
            run->tally->skipped++;
            run_put_end(run, (uint32_t)i, 0, run_now(run), 0, NULL);
        }
}

/* ---- the whole ----------------------------------------------------------- */

/* Signals that end the run, but those that are ignored, wait until they are looked for. */
bool
run_watch_signals(struct run *run)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t blocked;
    sigemptyset(&run->heard);
    sigaddset(&run->heard, SIGCHLD);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(deadly[i], NULL, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&run->heard, deadly[i]);
    }
    blocked = run->heard;
    sigaddset(&blocked, SIGPIPE); /* the reader goes away: tasks are ended first */
    sigprocmask(SIG_BLOCK, &blocked, &run->launch.mask);
    run->events = signalfd(-1, &run->heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->events >= 0 || rec_fail(run->err, REC_IO, "signals: %s", strerror(errno));
}

static void
free_run(struct run *run)
{
    for (size_t i = 0; i < run->nslots; i++)
        if (run->slot[i].output >= 0)
            close(run->slot[i].output);
    free(run->slot);
    free(run->pause);
    run_jobs_close(run);
    run_graph_free(&run->graph);
    run_log_close(&run->log);
    run_access_free(&run->access);
    run_launch_close(&run->launch);
    rec_map_free(&run->ids);
    task_free(&run->task);
    task_hazards_free(run->hazards);
    if (run->events >= 0)
        close(run->events);
}

bool
task_run(const struct task_run_options *options, struct rec_reader *reader,
         struct rec_writer *writer, struct task_tally *tally, int *signal_number,
         struct rec_error *err)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, before;
    struct run run = {.options = options,
                      .reader = reader,
                      .writer = writer,
                      .err = err,
                      .tally = tally,
                      .cores = options->cores,
                      .memory = options->memory,
                      .head = REC_NONE,
                      .launch = {.null = -1},
                      .events = -1};
    bool ok;

    *tally = (struct task_tally){0};
    *signal_number = 0;
    run.origin = run_seconds(CLOCK_MONOTONIC);
    run.began = round(1e6 * run_seconds(CLOCK_REALTIME)) / 1e6;
    if (gethostname(run.host, sizeof run.host - 1) != 0)
        strcpy(run.host, "localhost");
    ok = run_log_open(&run.log, options, err) &&
         run_launch_open(&run.launch, options->log != NULL, err) &&
         (run.hazards = task_hazards_new(err));
    /* a job of Slurm names each job that it waits for */
    run.gathers = (struct task_gathers){&run.graph, true, run_graph_gather};
    if (ok && !options->runner)
        task_hazards_gather(run.hazards, &run.gathers);
    if (ok) {
        sigaction(SIGCHLD, &plain, &before); /* who started us may have ignored it */
        ok = run_watch_signals(&run) && (!options->runner || run_jobs_open(&run));
        if (ok)
            loop(&run);
        ok = ok && !run.failed;
        sigaction(SIGCHLD, &before, NULL);
        *signal_number = run.signal;
        sigprocmask(SIG_SETMASK, &run.launch.mask, NULL);
    }
    free_run(&run);
    return ok;
}
