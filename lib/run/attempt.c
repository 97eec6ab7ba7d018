/*
 * Attempts of tasks: choosing the next ready task that fits, starting it, and what
 * follows from its end: records, retries, and tasks that are skipped.
 *
 * Ready tasks are started by list scheduling: the task with the longest path behind it
 * first (graph.c). A task that does not fit is overtaken, but a limited number of
 * times, so that it cannot starve.
 */
#include "private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_OVERTAKEN = 64, /* tasks that do not fit, before the search for one is given up */
    SHOWN_BYTES = 1 << 13 /* of the end of the output of a failed task */
};

static double
of_timeval(struct timeval t)
{
    return (1e6 * (double)t.tv_sec + (double)t.tv_usec) / 1e6;
}

/* ---- the end of a task ---------------------------------------------------- */

bool
run_settle(struct run *run, uint32_t task)
{
    size_t nskipped;
    double end = run_now(run);
    if (!run_graph_end(&run->graph, task, &nskipped, run->err))
        return false;
    run->tally->skipped += nskipped;
    if (run->jobs && !run_jobs_drop(run, run->graph.stack, nskipped))
        return false;
    for (size_t i = 0; i < nskipped; i++)
        run_put_end(run, run->graph.stack[i], 0, end, 0, NULL);
    return true;
}

/* Warns how a task failed, and which of its files changed while it ran: these may be half
 * written. */
static void
warn_of_failure(struct run *run, const struct run_task *t, const char *status,
                double start, uint64_t retries)
{
    const char *in_all = retries ? ", in all its attempts" : "", *missing = NULL;
    char half[300];
    if (strcmp(status, "no_output") == 0)
        missing = run_find_missing(t);
    if (missing)
        run_warn(
            run,
            "task '%s' failed: it did not make '%.300s', which it should have written%s",
            t->id, missing, in_all);
    else
        run_warn(run, "task '%s' failed: %s%s%s", t->id,
                 *status >= '0' && *status <= '9' ? "exit status "
                 : *status == 'E'                 ? "it cannot be started: "
                                                  : "",
                 status, in_all);
    run_list_half(t, run->began + start, half, sizeof half);
    if (*half)
        run_warn(run, "task '%s' may have left these files half written: %s", t->id,
                 half);
}

static bool
is_written(int fd)
{
    struct stat file;
    return fstat(fd, &file) != 0 || file.st_size > 0;
}

/* Shows the end of the output of a failed task, where the reason most likely stands. */
static void
show_output(struct run *run, int fd)
{
    struct stat file;
    char bytes[SHOWN_BYTES];
    ssize_t n;
    if (fd < 0 || fstat(fd, &file) != 0)
        return;
    n = pread(fd, bytes, SHOWN_BYTES,
              file.st_size > SHOWN_BYTES ? file.st_size - SHOWN_BYTES : 0);
    if (n > 0)
        run->options->show(run->options->context, bytes, (size_t)n);
}

/* Puts off the next attempt. The pause doubles with each attempt; the exponent is bounded
 * so that it cannot overflow. */
static bool
pause_task(struct run *run, uint32_t task)
{
    const struct run_task *t = &run->graph.task[task];
    double wait = run->options->backoff * exp2(fmin(t->attempts - 1, 30));
    if (!rec_grow(&run->pause, &run->pause_room, run->npauses + 1, sizeof *run->pause,
                  run->err))
        return false;
    run->pause[run->npauses++] = (struct run_pause){task, run_now(run) + wait};
    return true;
}

bool
run_conclude(struct run *run, uint32_t task, const struct run_attempt *attempt)
{
    struct run_task *t = &run->graph.task[task];
    const char *status = attempt->status;
    double start = attempt->start, end = attempt->end,
           cpu = attempt->user + attempt->system, busy = NAN;
    uint64_t retries = t->retries == TASK_NOT_GIVEN ? run->options->retries : t->retries;
    bool ok = attempt->ok;

    t->state = RUN_WAITS;
    if (!run_put_attempt(run, t, attempt))
        return false;
    if (run->ending && !ok) /* the run ended it: this is no failure of the task */
        return true;
    /* a job of Slurm has made all its attempts by itself */
    if (!ok && t->attempts <= retries && !run->stopped && !run->jobs)
        return pause_task(run, task);
    if (ok && attempt->result && !(t->result = strdup(attempt->result)))
        return rec_fail_memory(run->err);
    t->state = ok ? RUN_DONE : RUN_FAILED;
    if (!isnan(cpu))
        busy = end > start ? round(1e4 * fmin(1, cpu / (t->cores * (end - start)))) / 1e4
                           : 0;
    run_put_end(run, task, start, end, busy, status);
    if (ok)
        run->tally->done++;
    else {
        run->tally->failed++;
        if (run->options->fail_fast)
            run->stopped = run->ended = true;
        if (!run->options->silent) {
            warn_of_failure(run, t, status, start, retries);
            show_output(run, attempt->output);
        }
    }
    return run_settle(run, task);
}

static void
name_signal(int number, char *text, size_t room)
{
    const char *name = sigabbrev_np(number);
    if (name)
        snprintf(text, room, "SIG%s", name);
    else
        snprintf(text, room, "SIG%d", number);
}

/* With --durable: syncs the files of a task, before the log says that it has ended. */
static bool
sync_outputs(const struct run *run, const struct run_task *task)
{
    const char *name = task->writes;
    if (!run->options->durable)
        return true;
    for (uint32_t i = 0; i < task->nwrites; i++, name += strlen(name) + 1)
        if (!run_sync_file(name + 1, run->err))
            return false;
    return true;
}

bool
run_end_attempt(struct run_slot *slot, struct run_attempt *attempt)
{
    struct run *run = slot->run;
    uint32_t task = slot->task;
    const struct run_task *t = &run->graph.task[task];
    bool ok = true;

    slot->task = REC_NONE;
    run->pool->cores += t->cores;
    run->pool->memory += t->memory;
    /* sums of fractions of a byte are rounded: no error may stay when nothing runs */
    if (run->pool->cores == run->pool->options->cores)
        run->pool->memory = run->pool->options->memory;
    run->tally->running--;
    attempt->start = slot->start;
    if (slot->worker)
        ok = run_worker_keep_output(slot, run, t);
    attempt->end = run_now(run);
    attempt->host = run->pool->host;
    attempt->output = slot->output;
    if (attempt->ok && !run->options->unchecked && run_find_missing(t)) {
        attempt->status = "no_output";
        attempt->ok = false;
    }
    ok = ok && (!attempt->ok || sync_outputs(run, t)) && run_conclude(run, task, attempt);
    /* the next task of the slot uses the same file, which must be empty for it; if it
     * cannot be emptied the task opens a new one */
    if (slot->output >= 0 && is_written(slot->output) &&
        ftruncate(slot->output, 0) != 0 && !slot->worker) {
        close(slot->output);
        slot->output = -1;
    }
    return ok;
}

static bool
end_process(struct run_slot *slot, int status, const struct rusage *used)
{
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : 0;
    struct run_attempt attempt = {
        .user = of_timeval(used->ru_utime),
        .system = of_timeval(used->ru_stime),
        .memory = 1024 * (double)used->ru_maxrss,
        .ok = exited && !slot->timed_out &&
              (number == 0 || slot->run->graph.task[slot->task].ok_any)};
    char text[32];
    attempt.status = text;
    if (slot->timed_out)
        attempt.status = "timeout";
    else if (exited)
        snprintf(text, sizeof text, "%d", number);
    else
        name_signal(WTERMSIG(status), text, sizeof text);
    return run_end_attempt(slot, &attempt);
}

/* Ends a call whose worker exited without an answer. Its rusage is not recorded: it
 * covers all calls of the worker. */
static bool
end_call(struct run_slot *slot, int status)
{
    bool exited = WIFEXITED(status), any = slot->run->graph.task[slot->task].ok_any;
    struct run_attempt attempt = {.user = NAN, .system = NAN, .memory = NAN};
    char text[32];
    attempt.status = text;
    if (slot->timed_out)
        attempt.status = "timeout";
    else if (slot->worker->why)
        attempt.status = slot->worker->why;
    else if (exited && (WEXITSTATUS(status) == 0 || any))
        attempt.status = "no_answer"; /* the exit status would look like success */
    else if (exited)
        snprintf(text, sizeof text, "%d", WEXITSTATUS(status));
    else
        name_signal(WTERMSIG(status), text, sizeof text);
    return run_end_attempt(slot, &attempt);
}

void
run_reap(struct run_pool *pool, pid_t pid)
{
    struct rusage used = {0};
    struct run_slot *slot = NULL;
    int status = 0;

    for (size_t i = 0; i < pool->nslots; i++)
        if (pool->slot[i].pid == pid)
            slot = &pool->slot[i];
    if (slot)
        kill(-pid, SIGKILL);  /* processes that it left in its group */
    if (slot && slot->worker) /* it may have answered just before it ended */
        run_worker_hear(pool, (size_t)(slot - pool->slot));
    wait4(pid, &status, 0, &used);
    if (!slot)
        return;
    if (slot->task != REC_NONE) {
        struct run *run = slot->run;
        if (!(slot->worker ? end_call(slot, status) : end_process(slot, status, &used)))
            run_give_up(run);
    }
    run_worker_free(slot->worker);
    slot->worker = NULL;
    slot->pid = 0;
}

/* ---- starting ------------------------------------------------------------ */

const struct run_task *
run_find_output(const struct run *run, const char *name, const char **kind)
{
    struct rec_str id = task_output(name, kind);
    uint32_t task = id.ptr ? rec_map_get(&run->ids, id) : REC_NONE;
    return task == REC_NONE ? NULL : &run->graph.task[task];
}

bool
run_find_input(struct run *run, const struct run_task *task, char **path)
{
    const char *name = task->standard_input, *kind, *file;
    const struct run_task *from;
    *path = NULL;
    if (!name)
        return true;
    from = run_find_output(run, name, &kind);
    file = !from                         ? name
           : strcmp(kind, "stdout") == 0 ? from->standard_output
                                         : from->standard_error;
    *path = file ? strdup(file) : run_log_file(run->options->logs, from->id, kind);
    return *path || rec_fail_memory(run->err);
}

/* Is this error a lack of processes, memory or descriptors, which may be over when
 * another task has ended? */
static bool
is_shortage(int why)
{
    return why == EAGAIN || why == ENOMEM || why == EMFILE || why == ENFILE;
}

/* Starts the process of a task. Returns 1; 0: it cannot be started, *why is an errno; -1:
 * *run->err. */
static int
start_process(struct run *run, struct run_task *t, struct run_slot **slot, int *why)
{
    struct run_pool *pool = run->pool;
    char *input = NULL;
    int status;
    if (!(*slot = run_free_slot(pool, run->err)) || !run_find_input(run, t, &input))
        return -1;
    run_launch_mark(&pool->launch, pool->name, ++pool->started);
    status =
        run_launch(&pool->launch, t, *slot, input, run->options->logs, -1, why, run->err);
    free(input);
    return status;
}

/* Logs a process that was just started. If that fails the process is killed: a resumed
 * run could not find it. */
static bool
log_process(struct run *run, uint32_t task, struct run_slot *slot)
{
    double time = round(1e3 * run_seconds(CLOCK_BOOTTIME)) / 1e3;
    if (run_log_process(run, task, slot->pid, run->pool->started, time))
        return true;
    kill(-slot->pid, SIGKILL);
    waitpid(slot->pid, NULL, 0);
    slot->pid = 0;
    return false;
}

/* Starts an attempt of a task. The log has its begin before the process exists: if this
 * runner is killed in between, the next one knows that the files may have changed.
 * *later: it could not be started now, and is ready again. */
static bool
start(struct run *run, uint32_t task, bool *later)
{
    struct run_pool *pool = run->pool;
    struct run_task *t = &run->graph.task[task];
    struct run_slot *slot = NULL;
    double time = run_now(run), deadline;
    struct run_attempt attempt = {.host = pool->host, .output = -1, .start = time};
    int why = 0, status;

    if (!run_log_begin(run, task))
        return false;
    /* Files that an earlier attempt left half written are removed, so that no task takes
     * them for whole ones; if nothing was started they are as before. This comes after
     * run_log_begin(), for only then the log says that these files are being changed. */
    if (t->begun)
        run_remove_half(t);
    t->attempts++;
    status = t->call ? run_worker_call(run, task, &slot, &why)
                     : start_process(run, t, &slot, &why);
    if (status < 0)
        return false;
    if (status == 0 && is_shortage(why) && pool->cores < pool->options->cores) {
        *later = true;
        t->attempts--;
        return run_graph_push(&run->graph, task, run->err);
    }
    if (status == 0) {
        attempt.end = run_now(run);
        attempt.status = strerrorname_np(why);
        return run_conclude(run, task, &attempt);
    }
    if (!slot->worker && !log_process(run, task, slot))
        return false;
    t->begun = true;
    slot->run = run;
    slot->task = task;
    slot->start = time;
    slot->timed_out = slot->warned = false;
    deadline = time + run->origin + t->timeout;
    /* a worker that has hung up already has a deadline of its own, maybe earlier */
    slot->deadline = slot->worker ? fmin(slot->deadline, deadline) : deadline;
    t->state = RUN_RUNS;
    pool->cores -= t->cores;
    pool->memory -= t->memory;
    run->tally->running++;
    return true;
}

static bool
fits(const struct run *run, uint32_t task)
{
    return run->graph.task[task].cores <= run->pool->cores &&
           run->graph.task[task].memory <= run->pool->memory;
}

bool
run_is_due(const struct run *run)
{
    return run->graph.nready > 0 && run->head == run->graph.ready[0] &&
           run->passed >= run->options->cores;
}

/*
 * Starts ready tasks that fit, in the order of the heap. The first task that does not fit
 * is run->head; the tasks behind it may overtake it, but no more often than there are
 * cores. After that nothing is started before it fits, so that a task with many cores
 * does not wait for ever while small ones come. Tasks that do not fit are set aside and
 * pushed back at the end.
 */
bool
run_start_ready(struct run *run, size_t most, size_t *started)
{
    uint32_t aside[MAX_OVERTAKEN];
    size_t n = 0;
    bool ok = true, later = false;
    *started = 0;
    while (ok && !later && !run->stopped && run->graph.nready > 0 &&
           run->pool->cores > 0 && n < MAX_OVERTAKEN && *started < most) {
        uint32_t task = run->graph.ready[0];
        if (fits(run, task)) {
            run_graph_pop(&run->graph);
            run->passed += n > 0;
            ok = start(run, task, &later);
            *started += !later;
            continue;
        }
        if (n == 0 && run->head != task) { /* a new first task: count anew */
            run->head = task;
            run->passed = 0;
        }
        if (run->passed >= run->options->cores)
            break;
        aside[n++] = run_graph_pop(&run->graph);
    }
    while (n > 0)
        ok = run_graph_push(&run->graph, aside[--n], run->err) && ok;
    return ok;
}

/* Pauses are searched one by one: there are few. A run that is stopped waits for none. */
bool
run_wake(struct run *run)
{
    double time = run->npauses ? run_now(run) : 0;
    for (size_t i = 0; i < run->npauses;) {
        if (run->pause[i].until > time && !run->stopped)
            i++;
        else if (!run_graph_push(&run->graph, run->pause[i].task, run->err))
            return false;
        else
            run->pause[i] = run->pause[--run->npauses];
    }
    return true;
}
