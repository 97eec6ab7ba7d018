/*
 * The log: a task record when an attempt begins, an attempt record when it ends, each one
 * write(). Nothing is synced: what was written survives the end of this process, however
 * it ends, and not that of the machine. A lock on it, that the tasks inherit, says that they
 * or a runner are alive.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what makes a task the same ------------------------------------------ */

static void
put_names(FILE *out, const struct task_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        fwrite(names->name[i], strlen(names->name[i]) + 1, 1, out);
    fputc('\n', out);
}

bool
run_task_hash(const struct task *task, uint64_t *hash, struct rec_error *err)
{
    struct rec_text text;
    char *bytes;
    if (!rec_text_open(&text, err))
        return false;
    fprintf(text.out, "%s\t%s\t%s\n", task->command, task->cwd ? task->cwd : "",
            task->env ? task->env : "");
    put_names(text.out, &task->reads);
    put_names(text.out, &task->writes);
    if (!(bytes = rec_text_close(&text, err)))
        return false;
    *hash = rec_hash((struct rec_str){bytes, text.used});
    free(bytes);
    return true;
}

/* ---- reading ------------------------------------------------------------- */

static struct run_logged *
find(struct run_log *log, struct rec_str id, struct rec_error *err)
{
    uint32_t at = rec_map_get(&log->ids, id);
    const char *kept;
    if (at != REC_NONE)
        return &log->logged[at];
    if (!rec_grow(&log->logged, &log->room, log->n + 1, sizeof *log->logged, err) ||
        !(kept = rec_arena_copy(&log->arena, id, err)) ||
        !rec_map_add(&log->ids, (struct rec_str){kept, id.len}, (uint32_t)log->n, err))
        return NULL;
    log->logged[log->n] = (struct run_logged){.hash = 0};
    return &log->logged[log->n++];
}

static bool
take(struct run_log *log, struct task *task, const struct rec_reader *reader,
     const struct rec *rec, struct rec_error *err)
{
    struct run_logged *logged;
    uint64_t status;
    if (rec->type == REC_TASK) {
        if (!task_read(task, reader, rec, err) ||
            !(logged = find(log, rec_str(task->id), err)))
            return false;
        logged->finished = logged->number = false;
        return run_task_hash(task, &logged->hash, err);
    }
    if (rec->type != REC_ATTEMPT)
        return true;
    if (!rec_check(reader, rec, err) || !(logged = find(log, rec->field[1], err)))
        return false;
    logged->number = rec_parse_uint(rec->field[5], &status);
    logged->finished = logged->number && status == 0;
    return true;
}

static bool
read_log(struct run_log *log, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&log->path, 1, NULL, err);
    struct task task = {0};
    struct rec rec;
    int status = -1;
    while (reader && (status = rec_next(reader, &rec, err)) > 0)
        if (!take(log, &task, reader, &rec, err)) {
            status = -1;
            break;
        }
    task_free(&task);
    rec_reader_close(reader);
    return status == 0;
}

void
run_log_recall(const struct run_log *log, struct run_task *task)
{
    uint32_t at = rec_map_get(&log->ids, rec_str(task->id));
    const struct run_logged *logged;
    if (at == REC_NONE)
        return;
    logged = &log->logged[at];
    task->begun = true;
    task->finished = task->logged =
        logged->hash == task->hash &&
        (logged->finished || (logged->number && task->ok_any));
}

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

/* Waits until no task of a runner that was killed is alive. */
static bool
lock(struct run_log *log, double grace, struct rec_error *err)
{
    double waited = 0;
    if ((log->lock = open_file(log->path, O_RDONLY)) < 0)
        return fail(log, err);
    while (flock(log->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return fail(log, err);
        if (waited >= grace)
            return rec_fail(err, REC_IO,
                            "%s: in use by another run, or by tasks of one that was "
                            "killed, which still run",
                            log->path);
        poll(NULL, 0, 10);
        waited += 0.01;
    }
    return true;
}

/* Another file that was given by mistake is left alone: is there a record of a log, or what
 * was written of one, or a comment? */
static bool
check_line(const struct run_log *log, off_t at, struct rec_error *err)
{
    static const char *const begins[] = {"task\t", "attempt\t", "#"};
    char text[8];
    ssize_t n = pread(log->fd, text, sizeof text, at);
    if (n < 0)
        return fail(log, err);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t len = strlen(begins[i]);
        if (memcmp(text, begins[i], len < (size_t)n ? len : (size_t)n) == 0)
            return true;
    }
    return rec_fail(err, REC_DATA,
                    "%s: no log of a run, which has task and attempt records", log->path);
}

/* A line that the last run did not end is dropped. */
static bool
drop_cut_line(const struct run_log *log, off_t *size,
              const struct task_run_options *options, struct rec_error *err)
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

bool
run_log_open(struct run_log *log, const struct task_run_options *options,
             struct rec_error *err)
{
    struct stat status;
    log->fd = log->lock = -1;
    log->path = options->log;
    if (!log->path)
        return true;
    log->fd = open_file(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC);
    if (log->fd < 0 || fstat(log->fd, &status) != 0)
        return fail(log, err);
    if (!S_ISREG(status.st_mode))
        return !options->resume ||
               rec_fail(err, REC_IO, "%s: not a file that can be read again", log->path);
    if (!lock(log, options->grace, err))
        return false;
    if (fstat(log->fd, &status) != 0) /* (it may have grown) */
        return fail(log, err);
    return check_line(log, 0, err) && drop_cut_line(log, &status.st_size, options, err) &&
           (!options->resume || status.st_size == 0 || read_log(log, err));
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

void
run_log_close(struct run_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    if (log->lock >= 0)
        close(log->lock);
    rec_map_free(&log->ids);
    rec_arena_free(&log->arena);
    free(log->logged);
}
