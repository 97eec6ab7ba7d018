/*
 * Starting processes. As with vfork(), the child shares the memory of this process until
 * it runs its command: fork() would copy page tables, which takes the longer the more
 * tasks are in memory. posix_spawn() works like that, too, but cannot set the
 * parent-death signal, by which a task ends when its runner is killed.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK =
        1 << 17,  /* bytes for the child; execvp() needs more for long argument lists */
    ALIGN = 64,   /* bytes */
    MARK_MAX = 40 /* bytes of RUN.NUMBER at the end of a mark */
};
#define MARK "RAMPIPE_TASK="

/* Replaces `environ` by a copy with a mark in front, so that processes inherit the mark
 * without a copy of the environment for each. */
static bool
mark_environment(struct run_launch *launch, struct rec_error *err)
{
    size_t n = 0, kept = 1;
    while (environ[n])
        n++;
    if (!(launch->own = calloc(n + 2, sizeof *launch->own)))
        return rec_fail_memory(err);
    launch->own[0] = launch->mark;
    strcpy(launch->mark, MARK);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], MARK, strlen(MARK)) == 0) /* this runner is in a task */
            snprintf(launch->mark, sizeof launch->mark - MARK_MAX, "%s ", environ[i]);
        else
            launch->own[kept++] = environ[i];
    launch->marked = strlen(launch->mark);
    launch->before = environ;
    environ = launch->own;
    return true;
}

bool
run_launch_open(struct run_launch *launch, bool marked, struct rec_error *err)
{
    do
        launch->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (launch->null < 0 && errno == EINTR);
    if (launch->null < 0)
        return rec_fail(err, REC_IO, "/dev/null: %s", strerror(errno));
    return !marked || mark_environment(launch, err);
}

void
run_launch_mark(struct run_launch *launch, const char *run, uint32_t number)
{
    if (launch->own)
        snprintf(launch->mark + launch->marked, MARK_MAX, "%s.%u", run, number);
}

void
run_launch_close(struct run_launch *launch)
{
    if (launch->null >= 0)
        close(launch->null);
    free(launch->words);
    free(launch->variables);
    free(launch->stack);
    free(launch->argv);
    free(launch->environment);
    if (launch->own)
        environ = launch->before;
    free(launch->own);
}

char *
run_log_file(const char *logs, const char *id, const char *kind)
{
    char *path = malloc(strlen(logs) + 3 * strlen(id) + strlen(kind) + 3), *to;
    if (!path)
        return NULL;
    to = path + sprintf(path, "%s/", logs);
    for (; *id; id++)
        to += sprintf(to, *id == '/' || *id == '%' ? "%%%02X" : "%c", (unsigned char)*id);
    sprintf(to, ".%s", kind);
    return path;
}

/* ---- what a command is ----------------------------------------------------- */

static bool
split_words(struct run_launch *launch, const char *command, size_t *n,
            struct rec_error *err)
{
    struct rec_str rest = rec_str(command);
    char *to;
    *n = 0;
    if (!rec_grow(&launch->words, &launch->word_room, rest.len + 2, 1, err))
        return false;
    for (to = launch->words;; to += strlen(to) + 1) {
        if (!rec_grow(&launch->argv, &launch->argv_room, *n + 1, sizeof *launch->argv,
                      err))
            return false;
        launch->argv[*n] = NULL;
        if (task_word(&rest, to) <= 0)
            return true;
        launch->argv[(*n)++] = to;
    }
}

/* Does a NAME=VALUE of the list take the place of a variable? */
static bool
is_set(char *const *list, size_t n, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i], variable, len) == 0)
            return true;
    return false;
}

/* Makes the environment of a process: `told`, the variable for a worker, then NAME=VALUE
 * of `list`, then the variables of this process that the list does not replace. `told`
 * and `list` may be NULL. Unescaped texts are written at `to`. */
static bool
make_environment(struct run_launch *launch, char *told, const char *list, char *to,
                 struct rec_error *err)
{
    struct rec_str rest = {list, list ? strlen(list) : 0}, part;
    size_t n = 0, own;
    if (told) {
        if (!rec_grow(&launch->environment, &launch->environment_room, 1,
                      sizeof *launch->environment, err))
            return false;
        launch->environment[n++] = told;
    }
    while (rec_str_split(&rest, ',', &part)) {
        if (!rec_grow(&launch->environment, &launch->environment_room, n + 1,
                      sizeof *launch->environment, err))
            return false;
        launch->environment[n++] = to;
        to = task_unescape(to, part);
    }
    own = n;
    for (char **variable = environ;; variable++) {
        if (!rec_grow(&launch->environment, &launch->environment_room, n + 1,
                      sizeof *launch->environment, err))
            return false;
        launch->environment[n] = *variable;
        if (!*variable)
            return true;
        n += !is_set(launch->environment, own, *variable);
    }
}

/* ---- the child ------------------------------------------------------------- */

struct child {
    char *const *argv;
    const char *cwd;
    int fd[3];
    int end; /* the worker's end of its socket; -1: it is no worker */
    const sigset_t *mask;
    pid_t parent;
    int why; /* errno, for the parent */
};

/* Runs in the child, on a stack of its own but in the memory of the parent, which waits
 * until the child calls execvp() or _exit(). Signals are blocked until just before
 * execvp(), so that no handler runs in shared memory. */
static int
run_child(void *context)
{
    struct child *child = context;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent)
        _exit(127); /* the parent died before prctl(): no signal would come */
    if ((child->end < 0 || fcntl(child->end, F_SETFD, 0) == 0) &&
        dup2(child->fd[0], 0) == 0 && dup2(child->fd[1], 1) == 1 &&
        dup2(child->fd[2], 2) == 2 && (!child->cwd || chdir(child->cwd) == 0)) {
        sigprocmask(SIG_SETMASK, child->mask, NULL);
        execvp(child->argv[0], child->argv);
    }
    child->why = errno;
    _exit(127);
}

/* ---- its files ------------------------------------------------------------- */

int
run_open_file(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Opens a file without a name, for the output of a process. -1: errno. */
static int
open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    int fd =
        run_open_file(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_APPEND);
    return fd >= 0 ? fd : memfd_create("output", MFD_CLOEXEC);
}

/* The nameless file for output that the task sends nowhere else; each slot keeps one. */
static int
open_output(struct run_slot *slot)
{
    if (slot->output < 0)
        slot->output = open_nameless();
    return slot->output;
}

/* Opens standard output or error: the file that the task names, else the file in the
 * folder of logs, else the file of the slot. -1: errno. */
static int
open_stream(const struct run_task *task, struct run_slot *slot, const char *path,
            const char *logs, const char *kind)
{
    char *file;
    int fd;
    if (!path && !logs)
        return open_output(slot);
    if (path)
        return run_open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!(file = run_log_file(logs, task->id, kind)))
        return -1;
    fd = run_open_file(file, O_WRONLY | O_CREAT | O_TRUNC);
    free(file);
    return fd;
}

static void
close_files(const struct run_launch *launch, const struct run_slot *slot, const int fd[3])
{
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0 && fd[i] != launch->null && fd[i] != slot->output &&
            !(slot->worker && fd[i] == slot->worker->errors) && (i < 2 || fd[2] != fd[1]))
            close(fd[i]);
}

static bool
open_files(const struct run_launch *launch, const struct run_task *task,
           struct run_slot *slot, const char *input, const char *logs, int fd[3])
{
    const char *out = task->standard_output, *error = task->standard_error;
    fd[1] = fd[2] = -1;
    if (slot->worker) {
        fd[0] = launch->null;
        fd[1] = open_output(slot);
        fd[2] = logs ? slot->worker->errors = open_nameless() : fd[1];
        return fd[1] >= 0 && fd[2] >= 0;
    }
    fd[0] = input ? run_open_file(input, O_RDONLY) : launch->null;
    if (fd[0] < 0 || (fd[1] = open_stream(task, slot, out, logs, "stdout")) < 0)
        return false;
    fd[2] = out && error && strcmp(out, error) == 0
                ? fd[1]
                : open_stream(task, slot, error, logs, "stderr");
    return fd[2] >= 0;
}

int
run_launch(struct run_launch *launch, const struct run_task *task, struct run_slot *slot,
           const char *input, const char *logs, int end, int *why, struct rec_error *err)
{
    struct child child = {.end = end, .mask = &launch->mask, .parent = getpid()};
    struct rec_str cwd = rec_str(task->cwd ? task->cwd : ""),
                   env = rec_str(task->env ? task->env : "");
    char **before = environ, *to, told[40];
    uintptr_t top;
    size_t n;

    snprintf(told, sizeof told, "RAMPIPE_WORKER=%d", end);
    if (!split_words(launch, task->command, &n, err) ||
        !rec_grow(&launch->variables, &launch->variable_room, cwd.len + env.len + 3, 1,
                  err))
        return -1;
    to = task_unescape(launch->variables, cwd);
    if (task->cwd)
        child.cwd = launch->variables;
    if (((task->env || end >= 0) &&
         !make_environment(launch, end >= 0 ? told : NULL, task->env, to, err)) ||
        !rec_grow(&launch->stack, &launch->stack_room, STACK + 16 * n, 1, err))
        return -1;
    child.argv = launch->argv;
    if (!open_files(launch, task, slot, input, logs, child.fd)) {
        *why = errno;
        close_files(launch, slot, child.fd);
        if (*why != ENOMEM)
            return 0;
        rec_fail_memory(err);
        return -1;
    }
    top = (uintptr_t)(launch->stack + launch->stack_room) / ALIGN * ALIGN;
    if (task->env || end >= 0)
        environ = launch->environment; /* execvp() uses its PATH, and passes it on */
    slot->pid = clone(run_child, (void *)top, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
    *why = slot->pid < 0 ? errno : child.why;
    environ = before;
    close_files(launch, slot, child.fd);
    if (*why == 0)
        return 1;
    if (slot->pid >= 0)
        waitpid(slot->pid, NULL, 0);
    slot->pid = 0;
    return 0;
}
