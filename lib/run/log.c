/*
 * Writing the log:
 *
 *     a run begins         runner record
 *     an attempt begins    file records of inputs that are not in the log yet, and its
 *                          task record, in one write(); then a process record
 *     an attempt ends      file records of its outputs, and its attempt record
 *
 * Each step is written before the next one is made, so that the log is right however this
 * process ends; with --durable also after a power cut. The log is locked by flock(). The
 * tasks inherit the locked descriptor: the lock is free only when the runner and all
 * processes of its tasks have ended.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------- */

static bool
fail(const struct run_log *log, struct rec_error *err)
{
    return rec_fail(err, REC_IO, "%s: %s", log->path, strerror(errno));
}

static int
open_file(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Locks the log; waits up to `grace` seconds for tasks of a runner that was killed. The
 * lock is polled, for a blocking flock() has no time limit. */
static bool
lock(struct run_log *log, const struct run_pool *pool, double grace,
     struct rec_error *err)
{
    double waited = 0;
    /* The workers of a service outlive a client. They must not inherit the lock, or the
     * next client of this name could not open its log. */
    int flags = pool->serves ? O_RDONLY | O_CLOEXEC : O_RDONLY;
    if ((log->lock = open_file(log->path, flags)) < 0)
        return fail(log, err);
    while (flock(log->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return fail(log, err);
        if (waited >= grace)
            return rec_fail(
                err, REC_IO,
                "%s: the log is in use by another run, or by tasks of a killed run that "
                "are still running",
                log->path);
        poll(NULL, 0, 10);
        waited += 0.01;
    }
    return true;
}

/* Checks that a line begins as a record of a log, or is a comment, so that a file that
 * was given by mistake is not changed. The line may be cut, so a prefix is enough. */
static bool
check_line(const struct run_log *log, off_t at, struct rec_error *err)
{
    static const char *const begins[] = {"task\t",   "attempt\t", "#",
                                         "runner\t", "process\t", "file\t"};
    char text[8];
    ssize_t n = pread(log->fd, text, sizeof text, at);
    if (n < 0)
        return fail(log, err);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t len = strlen(begins[i]);
        if (memcmp(text, begins[i], len < (size_t)n ? len : (size_t)n) == 0)
            return true;
    }
    return rec_fail(
        err, REC_DATA,
        "%s: this file is not the log of a run: a log consists of task, attempt and "
        "similar records",
        log->path);
}

/* Removes a last line without a line end: the last run was killed while it wrote it. */
static bool
drop_cut_line(const struct run_log *log, off_t *size, const struct run_options *options,
              struct rec_error *err)
{
    off_t keep = *size;
    char c, text[400];
    for (; keep > 0; keep--) {
        if (pread(log->fd, &c, 1, keep - 1) != 1)
            return fail(log, err);
        if (c == '\n')
            break;
    }
    if (keep == *size)
        return true;
    if (!check_line(log, keep, err))
        return false;
    snprintf(text, sizeof text, "%.300s: the last line was cut, and is dropped",
             log->path);
    options->warn(options->context, text);
    *size = keep;
    return ftruncate(log->fd, keep) == 0 || fail(log, err);
}

/* Writes the runner record: the run and the machine that write from here on. */
static bool
put_runner(struct run_log *log, const struct run_pool *pool, struct rec_error *err)
{
    char boot[64], line[200];
    run_boot_name(boot);
    snprintf(line, sizeof line, "runner\t%s\t%s\t%s\n", pool->name, boot, pool->host);
    return run_log_line(log, rec_str(line), err);
}

bool
run_log_open(struct run_log *log, const struct run_pool *pool,
             const struct run_options *options, struct rec_error *err)
{
    struct stat status;
    log->fd = log->lock = -1;
    log->path = options->log;
    log->content = options->content;
    log->durable = options->durable;
    if (!log->path)
        return true;
    log->fd = open_file(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC);
    if (log->fd < 0 || fstat(log->fd, &status) != 0)
        return fail(log, err);
    if (!S_ISREG(status.st_mode))
        return options->resume
                   ? rec_fail(
                         err, REC_IO,
                         "%s: cannot resume from this log: it must be a regular file",
                         log->path)
                   : put_runner(log, pool, err);
    if (!lock(log, pool, options->grace, err))
        return false;
    if (fstat(log->fd, &status) != 0) /* again: it may have grown until it was locked */
        return fail(log, err);
    return check_line(log, 0, err) && drop_cut_line(log, &status.st_size, options, err) &&
           (!options->resume || (run_journal_read(log, status.st_size > 0, err) &&
                                 run_wait_for_alive(log, options, err))) &&
           (!log->durable || run_sync_file(log->path, err)) && put_runner(log, pool, err);
}

bool
run_log_line(struct run_log *log, struct rec_str line, struct rec_error *err)
{
    while (log->path && line.len > 0) {
        ssize_t n = write(log->fd, line.ptr, line.len);
        struct pollfd room = {log->fd, POLLOUT, 0};
        if (n >= 0)
            line = (struct rec_str){line.ptr + n, line.len - (size_t)n};
        else if (errno == EAGAIN)
            poll(&room, 1, -1);
        else if (errno != EINTR)
            return fail(log, err);
    }
    return true;
}

/* With --durable: waits until the log is on the disk. */
static bool
sync_log(const struct run_log *log, struct rec_error *err)
{
    while (log->durable && fsync(log->fd) != 0) {
        if (errno == EINVAL || errno == EROFS)
            return true;
        if (errno != EINTR)
            return rec_fail(err, REC_IO, "%s: %s", log->path, strerror(errno));
    }
    return true;
}

struct run_file *
run_log_file_of(struct run_log *log, const char *name, struct rec_error *err)
{
    uint32_t at = rec_map_get(&log->names, rec_str(name));
    if (at != REC_NONE)
        return &log->file[at];
    if (!rec_grow(&log->file, &log->file_room, log->nfiles + 1, sizeof *log->file, err) ||
        !(name = rec_arena_copy(&log->arena, rec_str(name), err)) ||
        !rec_map_add(&log->names, rec_str(name), (uint32_t)log->nfiles, err))
        return NULL;
    log->file[log->nfiles] = (struct run_file){.name = name};
    return &log->file[log->nfiles++];
}

/* ---- names of tasks -------------------------------------------------------- */

/* Keeps names of a task, and with each the tasks of the list that wrote it last. */
static bool
push_names(struct run *run, const struct task_names *names)
{
    struct run_accesses *access = &run->access;
    if (!rec_grow(&access->name, &access->name_room, access->nnames + names->n,
                  sizeof *access->name, run->err))
        return false;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->name[i];
        const struct task_edge *edges;
        size_t n;
        if (!(access->name[access->nnames++] =
                  rec_arena_copy(&access->arena, rec_str(name), run->err)) ||
            !task_hazards_writers(run->hazards, name, &edges, &n, run->err) ||
            !run_lists_add(&access->source, edges, n, run->err))
            return false;
    }
    return true;
}

bool
run_log_access(struct run *run, const struct task *task)
{
    struct run_accesses *access = &run->access;
    if (!run->log.path)
        return true;
    if (!rec_grow(&access->task, &access->room, access->n + 1, sizeof *access->task,
                  run->err))
        return false;
    access->task[access->n++] = (struct run_access){
        (uint32_t)task->reads.n, (uint32_t)task->writes.n, access->nnames};
    return push_names(run, &task->reads) && push_names(run, &task->writes);
}

void
run_access_free(struct run_accesses *access)
{
    free(access->task);
    free(access->name);
    run_lists_free(&access->source);
    rec_arena_free(&access->arena);
}

/* ---- attempts --------------------------------------------------------------- */

/* Writes the state of a file that a task reads or overwrites and that no earlier task
 * makes, or of a folder that it reads. A state that the log has already is not repeated,
 * and each file is looked at once in a run (->fresh). */
static bool
put_given(struct run *run, const char *name, bool reads, FILE *out)
{
    struct run_log *log = &run->log;
    uint32_t at = rec_map_get(&log->names, rec_str(name));
    bool below = name[strlen(name) - 1] == '/';
    struct run_file *file;
    struct run_look look;
    if (at != REC_NONE && log->file[at].fresh)
        return true;
    if (!below)
        run_look_at(name, log->content, &look);
    else if (!run_look_below(run, name, &look))
        return false;
    if (!reads && look.state == RUN_NONE) /* the usual case: a new file will be written */
        return true;
    if (!(file = run_log_file_of(log, name, run->err)))
        return false;
    if (!file->seen || !run_look_same(&file->look, &look))
        run_look_write(out, name, "-", false, &look);
    file->look = look;
    file->seen = file->fresh = true;
    return true;
}

bool
run_log_begin(struct run *run, uint32_t task)
{
    struct run_log *log = &run->log;
    const struct run_task *t = &run->graph.task[task];
    const struct run_access *a;
    struct rec_text text;
    bool ok = true;
    char *lines;
    if (!log->path)
        return true;
    if (!rec_text_open(&text, run->err))
        return false;
    a = &run->access.task[task];
    for (size_t i = 0; ok && i < a->nreads + a->nwrites; i++) {
        const char *name = run->access.name[a->name + i];
        bool below = name[strlen(name) - 1] == '/', reads = i < a->nreads;
        uint32_t n = run_lists_get(&run->access.source, a->name + i).n;
        /* logged are: folders and given files that it reads; given files that it will
         * overwrite, except ones that its own earlier attempt may have changed */
        if (*name != '@' &&
            (reads ? below || n == 0 : n == 0 && !below && !t->begun && t->attempts == 0))
            ok = put_given(run, name, reads, text.out);
    }
    fputs(t->line, text.out);
    lines = rec_text_close(&text, run->err);
    ok = ok && lines && run_log_line(log, (struct rec_str){lines, text.used}, run->err) &&
         sync_log(log, run->err);
    free(lines);
    return ok;
}

bool
run_log_process(struct run *run, uint32_t task, pid_t pid, uint32_t number,
                double started_at)
{
    struct run_log *log = &run->log;
    char started[REC_NUM_MAX], *line;
    struct rec_text text;
    bool ok;
    if (!log->path)
        return true;
    started[rec_format_num(started, started_at)] = '\0';
    if (!rec_text_open(&text, run->err))
        return false;
    fprintf(text.out, "process\t%s\t%u\t%d\t%s\n", run->graph.task[task].id, number,
            (int)pid, started);
    line = rec_text_close(&text, run->err);
    ok = line && run_log_line(log, (struct rec_str){line, text.used}, run->err);
    free(line);
    return ok;
}

bool
run_log_end(struct run *run, const struct run_task *task, bool ok, const char *attempt)
{
    struct run_log *log = &run->log;
    const char *name = task->writes;
    struct rec_text text;
    char *lines;
    if (!log->path)
        return true;
    if (!rec_text_open(&text, run->err))
        return false;
    for (uint32_t i = 0; i < task->nwrites; i++, name += strlen(name) + 1) {
        struct run_file *file;
        if (*name == RUN_BELOW)
            continue;
        if (!(file = run_log_file_of(log, name + 1, run->err))) {
            free(rec_text_close(&text, &(struct rec_error){.code = REC_OK}));
            return false;
        }
        file->fresh = ok; /* after a failure nobody knows the state of the file */
        if (!ok)
            continue;
        run_look_at(name + 1, log->content, &file->look);
        file->seen = true;
        run_look_write(text.out, name + 1, task->id, false, &file->look);
    }
    fputs(attempt, text.out);
    lines = rec_text_close(&text, run->err);
    ok = lines && run_log_line(log, (struct rec_str){lines, text.used}, run->err) &&
         sync_log(log, run->err);
    free(lines);
    return ok;
}

void
run_log_close(struct run_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    if (log->lock >= 0)
        close(log->lock);
    rec_map_free(&log->ids);
    rec_map_free(&log->names);
    rec_arena_free(&log->arena);
    task_hazards_free(log->touched);
    task_streams_free(&log->streams);
    free(log->logged);
    free(log->turn);
    free(log->file);
    free(log->runner);
    run_lists_free(&log->source);
}
