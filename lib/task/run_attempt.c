/* Attempts: starting them, their end, what is told of it. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ASIDE = 64,     /* tasks that do not fit, over which others are looked for */
    SHOWN = 1 << 13 /* bytes of the output of a task that failed */
};

/* ---- time ---------------------------------------------------------------- */

double
run_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Since the run began, to the microsecond. */
double
run_now(const struct run *run)
{
    return round(1e6 * (run_seconds(CLOCK_MONOTONIC) - run->origin)) / 1e6;
}

static double
of_timeval(struct timeval t)
{
    return (1e6 * (double)t.tv_sec + (double)t.tv_usec) / 1e6;
}

/* ---- records ------------------------------------------------------------- */

void
run_put_end(struct run *run, uint32_t task, double start, double end, double busy,
            const char *status)
{
    const struct run_task *t = &run->graph.task[task];
    struct rec_writer *w = run->writer;
    bool done = t->state == RUN_DONE;
    if (done && run->options->brief)
        return;
    rec_begin(w, done ? "done" : "block");
    rec_text_field(w, t->id);
    if (done) {
        rec_text_field(w, "tasks");
        rec_num_field(w, t->arrival);
        rec_num_field(w, start);
        rec_num_field(w, end);
        rec_uint_key(w, "servers", t->cores);
        rec_num_key(w, "busy", busy);
    } else {
        /* told late, it ended before what has been told: times do not go back */
        run->told = fmax(run->told, end);
        rec_num_field(w, run->told);
        rec_text_field(w, status                 ? "failed"
                          : t->cause != REC_NONE ? "input_failed"
                                                 : "not_started");
        if (status) {
            rec_num_key(w, "start", start);
            rec_uint_key(w, "servers", t->cores);
            rec_text_key(w, "status", status);
        } else if (t->cause != REC_NONE)
            rec_text_key(w, "task", run->graph.task[t->cause].id);
        rec_num_key(w, "arrival", t->arrival);
    }
    rec_end(w);
}

bool
run_put_attempt(struct run *run, const struct run_task *task,
                const struct run_attempt *attempt)
{
    char text[6][REC_NUM_MAX], *line;
    double value[] = {attempt->start,  attempt->end,    attempt->user,
                      attempt->system, attempt->memory, run->began};
    struct rec_text record;
    bool ok;
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        text[i][rec_format_num(text[i], value[i])] = '\0';
    /* not asprintf(): glibc's overruns what it has when it cannot get one byte more */
    if (!rec_text_open(&record, run->err))
        return false;
    fprintf(record.out,
            "attempt\t%s\t%u\t%s\t%s\t%s\tuser=%s\tsystem=%s\tmemory=%s\thost=%s\t"
            "began=%s\n",
            task->id, task->attempts, text[0], text[1], attempt->status, text[2], text[3],
            text[4], attempt->host, text[5]);
    if (!(line = rec_text_close(&record, run->err)))
        return false;
    if (!run->options->brief)
        rec_put_line(run->writer, (struct rec_str){line, strlen(line) - 1});
    ok = run_log_end(run, task, attempt->ok, line);
    free(line);
    return ok;
}

static void warn(struct run *run, const char *format, ...) REC_PRINTF(2, 3);
static void
warn(struct run *run, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->options->warn(run->options->context, text);
}

/* ---- the end of a task ---------------------------------------------------- */

/* Those behind it are ready, or are not run. */
static bool
settle(struct run *run, uint32_t task)
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

/* How a task failed, and what it may have left half made. */
static void
warn_of_failure(struct run *run, const struct run_task *t, const char *status,
                double start, uint64_t retries)
{
    const char *in_all = retries ? ", in all its attempts" : "", *missing = NULL;
    char half[300];
    if (strcmp(status, "no_output") == 0)
        missing = run_find_missing(t);
    if (missing)
        warn(run, "task '%s' failed: it did not make '%.300s', which it should write%s",
             t->id, missing, in_all);
    else
        warn(run, "task '%s' failed: %s%s%s", t->id,
             *status >= '0' && *status <= '9' ? "exit status "
             : *status == 'E'                 ? "cannot be started, "
                                              : "",
             status, in_all);
    run_list_half(t, run->began + start, half, sizeof half);
    if (*half)
        warn(run, "task '%s' may have left half made: %s", t->id, half);
}

static bool
is_written(int fd)
{
    struct stat file;
    return fstat(fd, &file) != 0 || file.st_size > 0;
}

/* What a task that failed said last. */
static void
show_output(struct run *run, int fd)
{
    struct stat file;
    char bytes[SHOWN];
    ssize_t n;
    if (fd < 0 || fstat(fd, &file) != 0)
        return;
    n = pread(fd, bytes, SHOWN, file.st_size > SHOWN ? file.st_size - SHOWN : 0);
    if (n > 0)
        run->options->show(run->options->context, bytes, (size_t)n);
}

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
           cpu = attempt->user + attempt->system;
    uint64_t retries = t->retries ? t->retries : run->options->retries;
    bool ok = attempt->ok;

    t->state = RUN_WAITS;
    if (!run_put_attempt(run, t, attempt))
        return false;
    if (run->ending && !ok)
        return true;
    if (!ok && t->attempts <= retries && !run->stopped && !run->jobs)
        return pause_task(run, task);
    t->state = ok ? RUN_DONE : RUN_FAILED;
    run_put_end(run, task, start, end,
                end > start ? round(1e4 * fmin(1, cpu / (t->cores * (end - start)))) / 1e4
                            : 0,
                status);
    if (ok)
        run->tally->done++;
    else {
        run->tally->failed++;
        if (run->options->fail_fast)
            run->stopped = run->ended = true;
        warn_of_failure(run, t, status, start, retries);
        show_output(run, attempt->output);
    }
    return settle(run, task);
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

/* What a task wrote is on the disk before it is said to have ended. */
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

/* A process has ended, and is still there as far as its number goes. */
static bool
reap(struct run *run, pid_t pid)
{
    struct rusage used = {0};
    struct run_slot *slot = NULL;
    struct run_attempt attempt;
    char text[32];
    const char *name = text;
    uint32_t task;
    int status = 0, output;
    bool ok;

    for (size_t i = 0; i < run->nslots; i++)
        if (run->slot[i].task != REC_NONE && run->slot[i].pid == pid)
            slot = &run->slot[i];
    if (slot)
        kill(-pid, SIGKILL); /* what it left behind */
    wait4(pid, &status, 0, &used);
    if (!slot)
        return true;
    task = slot->task;
    slot->task = REC_NONE;
    run->cores += run->graph.task[task].cores;
    run->memory += run->graph.task[task].memory;
    run->tally->running--;
    ok = WIFEXITED(status) && !slot->timed_out &&
         (WEXITSTATUS(status) == 0 || run->graph.task[task].ok_any);
    if (slot->timed_out)
        name = "timeout";
    else if (WIFEXITED(status))
        snprintf(text, sizeof text, "%d", WEXITSTATUS(status));
    else
        name_signal(WTERMSIG(status), text, sizeof text);
    output = slot->output;
    attempt = (struct run_attempt){.start = slot->start,
                                   .end = run_now(run),
                                   .user = of_timeval(used.ru_utime),
                                   .system = of_timeval(used.ru_stime),
                                   .memory = 1024 * (double)used.ru_maxrss,
                                   .status = name,
                                   .host = run->host,
                                   .output = output,
                                   .ok = ok};
    if (ok && !run->options->unchecked && run_find_missing(&run->graph.task[task])) {
        attempt.status = "no_output";
        attempt.ok = false;
    }
    ok = (!attempt.ok || sync_outputs(run, &run->graph.task[task])) &&
         run_conclude(run, task, &attempt);
    if (output >= 0 && is_written(output) &&
        ftruncate(output, 0) != 0) { /* then another takes its place */
        close(output);
        slot->output = -1;
    }
    return ok;
}

bool
run_reap(struct run *run)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return true;
        if (!reap(run, info.si_pid))
            return false;
    }
}

/* ---- starting ------------------------------------------------------------ */

static struct run_slot *
free_slot(struct run *run)
{
    for (size_t i = 0; i < run->nslots; i++)
        if (run->slot[i].task == REC_NONE)
            return &run->slot[i];
    if (!rec_grow(&run->slot, &run->slot_room, run->nslots + 1, sizeof *run->slot,
                  run->err))
        return NULL;
    run->slot[run->nslots] = (struct run_slot){.task = REC_NONE, .output = -1};
    return &run->slot[run->nslots++];
}

/* The task whose output @ID.stdout or @ID.stderr is; *kind: which. NULL: none. */
const struct run_task *
run_find_output(const struct run *run, const char *name, const char **kind)
{
    struct rec_str id = task_output(name);
    uint32_t task = id.ptr ? rec_map_get(&run->ids, id) : REC_NONE;
    if (task == REC_NONE)
        return NULL;
    *kind = id.ptr + id.len + 1;
    return &run->graph.task[task];
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

/* Will there be room for a process, or its files, when another has ended? */
static bool
is_shortage(int why)
{
    return why == EAGAIN || why == ENOMEM || why == EMFILE || why == ENFILE;
}

/* *later: it is to be tried again when another has ended. */
static bool
start(struct run *run, uint32_t task, bool *later)
{
    struct run_task *t = &run->graph.task[task];
    struct run_slot *slot = free_slot(run);
    struct run_attempt attempt = {.host = run->host, .output = -1};
    char *input = NULL;
    int why = 0, status;

    if (!slot || !run_find_input(run, t, &input))
        return false;
    slot->start = run_now(run);
    if (!run_log_begin(run, task)) {
        free(input);
        return false;
    }
    if (t->begun)
        run_remove_half(t); /* (the log has it that they are being written) */
    t->begun = false;
    run_launch_mark(&run->launch, run->log.name, ++run->log.started);
    t->attempts++;
    status = run_launch(&run->launch, t, slot, input, run->options->logs, &why, run->err);
    free(input);
    if (status < 0)
        return false;
    if (status == 0 && is_shortage(why) && run->tally->running > 0) {
        *later = true;
        t->attempts--;
        return run_graph_push(&run->graph, task, run->err);
    }
    if (status == 0) {
        attempt.start = slot->start;
        attempt.end = run_now(run);
        attempt.status = strerrorname_np(why);
        return run_conclude(run, task, &attempt);
    }
    if (!run_log_process(run, task, slot->pid)) {
        kill(-slot->pid, SIGKILL);
        waitpid(slot->pid, NULL, 0);
        return false;
    }
    slot->task = task;
    slot->timed_out = slot->warned = false;
    slot->deadline = slot->start + t->timeout;
    t->state = RUN_RUNS;
    run->cores -= t->cores;
    run->memory -= t->memory;
    run->tally->running++;
    return true;
}

static bool
fits(const struct run *run, uint32_t task)
{
    return run->graph.task[task].cores <= run->cores &&
           run->graph.task[task].memory <= run->memory;
}

/*
 * Starts what is ready and fits, the first first. What does not fit is overtaken, as often
 * as there are cores; then all wait for it.
 */
bool
run_start_ready(struct run *run)
{
    uint32_t aside[ASIDE];
    size_t n = 0;
    bool ok = true, later = false;
    while (ok && !later && !run->stopped && run->graph.nready > 0 && run->cores > 0 &&
           n < ASIDE) {
        uint32_t task = run->graph.ready[0];
        if (fits(run, task)) {
            run_graph_pop(&run->graph);
            run->passed += n > 0;
            ok = start(run, task, &later);
            continue;
        }
        if (n == 0 && run->head != task) {
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
