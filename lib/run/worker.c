/*
 * Workers: programs that stay alive and take one call after the other.
 *
 *     call --- idle worker of the same command, cwd, env --- "call ID TEXT ..." ---> it
 *          \-- or a new one; an idle one of another kind       "end ID STATUS ..." <---
 *              makes way if there are as many as cores
 *
 * No more workers are kept than there are cores. A worker is told to exit by end of file
 * on its socket; if it does not, it gets SIGTERM after the grace time, and then SIGKILL.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 1 << 12,       /* of one recv() */
    ANSWER_MAX_BYTES = 1 << 26, /* of an answer */
    BUFFER_KEPT_BYTES = 1 << 16 /* a larger buffer is freed after the call */
};

/* ---- those that are there --------------------------------------------------- */

void
run_worker_free(struct run_worker *worker)
{
    if (!worker)
        return;
    if (worker->socket >= 0)
        close(worker->socket);
    if (worker->errors >= 0)
        close(worker->errors);
    free(worker->text);
    free(worker->unsent);
    free(worker->kind);
    free(worker);
}

static void
hang_up(struct run_worker *worker)
{
    if (worker->socket >= 0)
        close(worker->socket);
    worker->socket = -1;
}

void
run_worker_leave(struct run_pool *pool, struct run_slot *slot)
{
    hang_up(slot->worker);
    if (!slot->warned)
        slot->deadline =
            fmin(slot->deadline, run_seconds(CLOCK_MONOTONIC) + pool->options->grace);
}

static bool
is_idle(const struct run_slot *slot)
{
    return slot->worker && slot->task == REC_NONE && slot->worker->socket >= 0;
}

static bool
make_kind(struct run_worker *worker, const struct run_task *task, struct rec_error *err)
{
    const char *texts[] = {task->command, task->cwd, task->env};
    size_t n = 0;
    char *to;
    for (size_t i = 0; i < 3; i++)
        n += texts[i] ? strlen(texts[i]) + 2 : 1;
    if (!(to = worker->kind = malloc(n)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < 3; i++) /* = in front: "" is not the same as none */
        to += texts[i] ? sprintf(to, "=%s", texts[i]) + 1 : sprintf(to, "%s", "") + 1;
    return true;
}

static bool
is_kind(const char *kind, const struct run_task *task)
{
    const char *texts[] = {task->command, task->cwd, task->env};
    for (size_t i = 0; i < 3; i++) {
        if (texts[i] ? *kind != '=' || strcmp(kind + 1, texts[i]) != 0 : *kind != '\0')
            return false;
        kind += strlen(kind) + 1;
    }
    return true;
}

/* An idle worker for a task; of several the one used last, whose caches are warm. */
static struct run_slot *
find_idle(struct run_pool *pool, const struct run_task *task)
{
    struct run_slot *found = NULL;
    for (size_t i = 0; i < pool->nslots; i++) {
        struct run_slot *slot = &pool->slot[i];
        if (is_idle(slot) && (!found || slot->worker->used > found->worker->used) &&
            is_kind(slot->worker->kind, task))
            found = slot;
    }
    return found;
}

/* Tells idle workers to exit, the one that has been idle longest first, until there are
 * fewer than cores, so that one more may be started. */
static void
make_way(struct run_pool *pool)
{
    for (;;) {
        struct run_slot *oldest = NULL;
        uint32_t n = 0;
        for (size_t i = 0; i < pool->nslots; i++) {
            struct run_slot *slot = &pool->slot[i];
            n += slot->worker && slot->worker->socket >= 0;
            if (is_idle(slot) && (!oldest || slot->worker->used < oldest->worker->used))
                oldest = slot;
        }
        if (n < pool->options->cores || !oldest)
            return;
        run_worker_leave(pool, oldest);
    }
}

/* ---- starting one ------------------------------------------------------------ */

static struct run_worker *
new_worker(const struct run_task *task, struct rec_error *err)
{
    struct run_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        rec_fail_memory(err);
        return NULL;
    }
    worker->socket = worker->errors = -1;
    if (make_kind(worker, task, err))
        return worker;
    run_worker_free(worker);
    return NULL;
}

static int
launch(struct run *run, const struct run_task *task, struct run_slot *slot, int *why)
{
    struct run_pool *pool = run->pool;
    struct run_worker *worker = slot->worker;
    int end[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0) {
        *why = errno;
        return 0;
    }
    worker->socket = end[0];
    run_launch_mark(&pool->launch, pool->name, ++pool->started);
    worker->number = pool->started;
    status = run_launch(&pool->launch, task, slot, NULL, run->options->logs, end[1], why,
                        run->err);
    close(end[1]);
    worker->began = round(1e3 * run_seconds(CLOCK_BOOTTIME)) / 1e3;
    return status;
}

/* Starts a worker in a free slot. Returns 1; 0: it cannot be started, *why is an errno;
 * -1: *run->err. */
static int
start_worker(struct run *run, const struct run_task *task, struct run_slot **slot,
             int *why)
{
    int status;
    make_way(run->pool);
    if (!(*slot = run_free_slot(run->pool, run->err)) ||
        !((*slot)->worker = new_worker(task, run->err)))
        return -1;
    (*slot)->task = REC_NONE;
    (*slot)->deadline = INFINITY;
    (*slot)->warned = false;
    if ((status = launch(run, task, *slot, why)) > 0)
        return 1;
    run_worker_free((*slot)->worker);
    (*slot)->worker = NULL;
    (*slot)->pid = 0;
    return status;
}

/* ---- what it is told ----------------------------------------------------------- */

/* call ID TEXT [ID2=RESULT2]... */
static bool
make_line(struct run *run, const struct run_task *task, struct run_worker *worker)
{
    struct rec_text text;
    char *line;
    if (!rec_text_open(&text, run->err))
        return false;
    fprintf(text.out, "call\t%s\t%s", task->id, task->call);
    for (const char *id = task->results; *id; id += strlen(id) + 1) {
        uint32_t from = rec_map_get(&run->ids, rec_str(id));
        if (from != REC_NONE && run->graph.task[from].result)
            fprintf(text.out, "\t%s=%s", id, run->graph.task[from].result);
    }
    fputc('\n', text.out);
    if (!(line = rec_text_close(&text, run->err)))
        return false;
    free(worker->unsent);
    worker->unsent = line;
    worker->nunsent = text.used;
    worker->sent = 0;
    return true;
}

/* Sends as much of the call as the socket takes. False: the worker has closed it. */
static bool
send_more(struct run_worker *worker)
{
    return run_socket_send(worker->socket, worker->unsent, worker->nunsent,
                           &worker->sent);
}

int
run_worker_call(struct run *run, uint32_t task, struct run_slot **slot, int *why)
{
    const struct run_task *t = &run->graph.task[task];
    struct run_worker *worker;
    bool fresh, heard;
    do {
        *slot = find_idle(run->pool, t);
        fresh = !*slot;
        if (fresh) {
            int status = start_worker(run, t, slot, why);
            if (status <= 0)
                return status;
        }
        worker = (*slot)->worker;
        /* The log comes first, so that a resumed run finds the worker if this runner is
         * killed from here on; and if logging fails nothing has been sent. */
        if (!run_log_process(run, task, (*slot)->pid, worker->number, worker->began) ||
            !make_line(run, t, worker))
            return -1;
        if (!(heard = send_more(worker)))
            run_worker_leave(run->pool, *slot);
    } while (!heard && !fresh); /* an idle worker may have exited: take another one */
    worker->used = ++run->pool->used;
    worker->ntext = 0;
    return 1;
}

short
run_worker_events(const struct run_worker *worker)
{
    return worker->sent < worker->nunsent ? POLLIN | POLLOUT : POLLIN;
}

/* ---- what it says ------------------------------------------------------------- */

/* Takes KEY=VALUE of an answer. False: the key is not known, comes twice, or its value is
 * not valid. */
static bool
take_key(struct run_attempt *attempt, char *key, char *value)
{
    const struct {
        const char *key, **text;
        double *number;
    } all[] = {{"result", &attempt->result, NULL},
               {"stdout", &attempt->standard_output, NULL},
               {"stderr", &attempt->standard_error, NULL},
               {"user", NULL, &attempt->user},
               {"system", NULL, &attempt->system},
               {"memory", NULL, &attempt->memory}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(key, all[i].key) != 0)
            continue;
        if (all[i].number)
            return isnan(*all[i].number) &&
                   rec_parse_num(rec_str(value), all[i].number) && *all[i].number >= 0 &&
                   !isinf(*all[i].number);
        if (*all[i].text || !task_is_escaped(rec_str(value)))
            return false;
        *all[i].text = value;
        return true;
    }
    return false;
}

/* Reads an answer: end ID STATUS [KEY=VALUE]... The texts of *attempt are parts of
 * `line`, which is cut into fields. */
static bool
read_answer(char *line, const char *id, struct run_attempt *attempt, uint64_t *status)
{
    char *field[3], *next = line;
    if (!rec_is_text(rec_str(line)))
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!(field[i] = strsep(&next, "\t")))
            return false;
    if (strcmp(field[0], "end") != 0 || strcmp(field[1], id) != 0 ||
        !rec_parse_uint(rec_str(field[2]), status) || *status > 255)
        return false;
    attempt->status = field[2];
    while (next) {
        char *key = strsep(&next, "\t"), *value = strchr(key, '=');
        if (!value)
            return false;
        *value++ = '\0';
        if (!take_key(attempt, key, value))
            return false;
    }
    return true;
}

/* Kills a worker that broke the protocol. Its call, if it has one, fails in run_reap().
 * */
static void
dismiss(struct run_slot *slot, const char *did, char *line)
{
    struct run *run = slot->run;
    if (slot->task != REC_NONE) {
        bool utf8 = rec_is_text(rec_str(line));
        slot->worker->why = "bad_answer";
        for (char *c = line; *c && !utf8; c++)
            if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
                *c = '?';
        run_warn(run,
                 "task '%.200s': its worker %s '%.150s': an answer must be end, TAB, the "
                 "task's ID, TAB, an exit status, and keys such as result=",
                 run->graph.task[slot->task].id, did, line);
    }
    hang_up(slot->worker);
    slot->warned = true; /* no further signal is needed */
    slot->deadline = INFINITY;
    kill(-slot->pid, SIGKILL);
}

/* Ends the call that a line answers. The worker is idle then, and may get a new call at
 * once. */
static void
take_answer(struct run_slot *slot, char *line)
{
    struct run *run = slot->run;
    const struct run_task *task = &run->graph.task[slot->task];
    struct run_attempt attempt = {.user = NAN, .system = NAN, .memory = NAN};
    char *copy = strndup(line, 200); /* for a message */
    uint64_t status;
    bool read = copy && read_answer(line, task->id, &attempt, &status);
    if (!copy)
        rec_fail_memory(run->err);
    else if (!read)
        dismiss(slot, "answered", copy);
    else {
        attempt.ok = status == 0 || task->ok_any;
        slot->deadline = INFINITY;
    }
    if (!copy || (read && !run_end_attempt(slot, &attempt)))
        run_give_up(run);
    free(copy);
}

/* Takes new bytes of a worker, those behind `before`. It may write one line for each call
 * and nothing else: anything more would be taken for the answer to the next call. */
static void
take_text(struct run_slot *slot, size_t before)
{
    struct run_worker *worker = slot->worker;
    char *end = memchr(worker->text + before, '\n', worker->ntext - before);
    if (slot->warned) { /* after SIGTERM an answer is too late */
        worker->ntext = 0;
        return;
    }
    if (slot->task == REC_NONE || (!end && worker->ntext > ANSWER_MAX_BYTES)) {
        worker->text[worker->ntext < 200 ? worker->ntext : 200] = '\0';
        dismiss(slot, "answered", worker->text);
    } else if (end) {
        size_t used = (size_t)(end + 1 - worker->text);
        *end = worker->text[worker->ntext] = '\0';
        if (used < worker->ntext)
            dismiss(slot, "wrote more than its answer:", end + 1);
        else if (worker->sent < worker->nunsent)
            dismiss(slot, "answered before it had the whole call:", worker->text);
        else if (memchr(worker->text, '\0', used - 1))
            dismiss(slot, "answered with a NUL byte after", worker->text);
        else
            take_answer(slot, worker->text);
        worker->ntext = 0;
        if (worker->text_room > BUFFER_KEPT_BYTES) {
            free(worker->text);
            worker->text = NULL;
            worker->text_room = 0;
        }
    }
}

void
run_worker_hear(struct run_pool *pool, size_t at)
{
    struct run_slot *slot = &pool->slot[at];
    struct run_worker *worker = slot->worker;
    struct rec_error err;
    ssize_t n = READ_BYTES;
    bool open = worker && worker->socket >= 0 && send_more(worker);
    while (worker && worker->socket >= 0 && n == READ_BYTES) {
        if (!rec_grow(&worker->text, &worker->text_room, worker->ntext + READ_BYTES + 1,
                      1, &err)) {
            if (slot->task != REC_NONE) {
                *slot->run->err = err;
                run_give_up(slot->run);
            }
            run_worker_leave(pool, slot);
            return;
        }
        do
            n = recv(worker->socket, worker->text + worker->ntext, READ_BYTES,
                     MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n > 0) {
            worker->ntext += (size_t)n;
            take_text(slot, worker->ntext - (size_t)n);
        } else if (n == 0 || errno != EAGAIN)
            open = false;
    }
    if (worker && worker->socket >= 0 && !open)
        run_worker_leave(pool, slot);
}

/* ---- what it printed ------------------------------------------------------------- */

static bool
write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t some = write(fd, bytes, n);
        if (some < 0 && errno == EAGAIN)
            poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1);
        else if (some < 0 && errno != EINTR)
            return false;
        bytes += some > 0 ? some : 0;
        n -= some > 0 ? (size_t)some : 0;
    }
    return true;
}

/* Appends the content of a nameless file to another file, and empties it. */
static bool
move_bytes(int from, int to)
{
    char bytes[1 << 13];
    off_t at = 0;
    ssize_t n;
    while ((n = pread(from, bytes, sizeof bytes, at)) != 0) {
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0 && !write_all(to, bytes, (size_t)n))
            return false;
        at += n > 0 ? n : 0;
    }
    return at == 0 || ftruncate(from, 0) == 0;
}

/* Moves one output of a call to its file in the folder of logs. */
static bool
move_output(struct run *run, const struct run_task *task, int from, const char *kind)
{
    char *path = run_log_file(run->options->logs, task->id, kind);
    int to = path ? run_open_file(path, O_WRONLY | O_CREAT | O_TRUNC) : -1;
    bool ok = to >= 0 && move_bytes(from, to);
    if (!path)
        rec_fail_memory(run->err);
    else if (!ok)
        rec_fail(run->err, REC_IO, "%s: %s", path, strerror(errno));
    if (to >= 0)
        close(to);
    free(path);
    return ok;
}

bool
run_worker_keep_output(struct run_slot *slot, struct run *run,
                       const struct run_task *task)
{
    return slot->worker->errors < 0 || !run->options->logs ||
           (move_output(run, task, slot->output, "stdout") &&
            move_output(run, task, slot->worker->errors, "stderr"));
}
