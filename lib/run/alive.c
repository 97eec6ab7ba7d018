/*
 * Processes that outlived the runner that had started them. A resumed run must not start
 * a task while processes of its earlier attempt may still write its files.
 *
 * Such a process is recognised in /proc by its process group, which is that of the task's
 * process, or by RAMPIPE_TASK in its environment, which a process keeps even if it makes
 * a group or session of its own. No process is ever signalled: the number in the log may
 * by now belong to a process of somebody else.
 */
#include "private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { POLL_MS = 20 }; /* milliseconds between two looks at /proc */

/* Two start times closer than this, in seconds, are those of the same process. The kernel
 * counts in hundredths of a second, and the log's time was read just after the start. */
#define START_TOLERANCE 1.0

void
run_boot_name(char name[64])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, 63);
    if (fd >= 0)
        close(fd);
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    if (!*name)
        strcpy(name, "unknown");
}

/* The content of a file of /proc with a NUL behind it, owned by the caller. NULL: the
 * process has ended, or belongs to another user, or there is no memory. */
static char *
read_all(pid_t pid, const char *kind, size_t *size)
{
    char path[64], *text = NULL;
    size_t room = 0;
    ssize_t n = -1;
    struct rec_error err;
    int fd;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, kind);
    *size = 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (
        fd >= 0 && rec_grow(&text, &room, *size + 4096, 1, &err) &&
        ((n = read(fd, text + *size, room - *size - 1)) > 0 || (n < 0 && errno == EINTR)))
        *size += n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        close(fd);
    if (n != 0) {
        free(text);
        return NULL;
    }
    text[*size] = '\0';
    return text;
}

/* Reads the group of a process and its start, in seconds since the machine was started.
 * The name of the command, in parentheses, may hold anything: fields are counted from the
 * last ')'. False: there is no such process, or it is a zombie, which writes no files. */
static bool
read_stat(pid_t pid, uint32_t *group, double *started)
{
    size_t size;
    char *text = read_all(pid, "stat", &size), *at = text ? strrchr(text, ')') : NULL;
    char state = 'Z';
    int number = 0;
    unsigned long long ticks = 0;
    bool ok = at && sscanf(at,
                           ") %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                           "%*d %*d %*d %*d %llu",
                           &state, &number, &ticks) == 3;
    free(text);
    *group = (uint32_t)number;
    *started = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return ok && state != 'Z' && state != 'X';
}

/* Finds RUN.NUMBER in an environment: was the process, or an ancestor of it, started by
 * the runner `run`, and as which process of that runner? Nested runners each add their
 * own, so all of the value is searched. */
static bool
find_number(const char *environment, size_t size, const char *run, uint32_t *number)
{
    size_t len = strlen(run);
    const char *end = environment + size, *at = environment;
    while ((at = memmem(at, (size_t)(end - at), run, len))) {
        at += len;
        if (*at == '.') {
            *number = (uint32_t)strtoul(at + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

/* The turn without an end in the log to which a process belongs; NULL: none. */
static const struct run_turn *
turn_of(const struct run_log *log, const char *boot, pid_t pid)
{
    const struct run_turn *found = NULL;
    uint32_t group, number;
    double started, leader = 0;
    size_t size;
    char *environment;
    if (!read_stat(pid, &group, &started))
        return NULL;
    environment = read_all(pid, "environ", &size);
    for (size_t i = 0; !found && i < log->nturns; i++) {
        const struct run_turn *turn = &log->turn[i];
        uint32_t own;
        if (turn->logged == REC_NONE || turn->ended || turn->runner >= log->nrunners ||
            strcmp(log->runner[turn->runner].boot, boot) != 0)
            continue;
        if (environment &&
            find_number(environment, size, log->runner[turn->runner].name, &number)) {
            /* Does the log say that this process number belongs to another task? A runner
             * that was killed between starting a process and logging it leaves a turn
             * without a number: then any process that no other task has may be it. */
            bool other = false;
            for (size_t k = 0; k < log->nturns; k++)
                other = other || (k != i && log->turn[k].runner == turn->runner &&
                                  log->turn[k].logged != REC_NONE &&
                                  log->turn[k].number == number);
            if (turn->number == number || (turn->number == 0 && !other))
                found = turn;
            /* The times tell whether this number was reused since: no member
             * can be older than the task, and a leader that lives is as old. */
        } else if (turn->pid > 0 && group == turn->pid &&
                   started >= turn->started - START_TOLERANCE &&
                   (!read_stat((pid_t)turn->pid, &own, &leader) ||
                    fabs(leader - turn->started) <= START_TOLERANCE))
            found = turn;
    }
    free(environment);
    return found;
}

/* The number of a process of an unfinished turn, and the turn; 0: there is none. */
static pid_t
find_alive(const struct run_log *log, const char *boot, const struct run_turn **turn)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    while (all && !found && (entry = readdir(all))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && (*turn = turn_of(log, boot, pid)))
            found = pid;
    }
    if (all)
        closedir(all);
    return found;
}

static void
warn(const struct run_options *options, const char *format, const char *task,
     const char *where)
{
    char text[600];
    snprintf(text, sizeof text, format, task, where);
    options->warn(options->context, text);
}

/* May a task of this boot of this machine still run? Only then /proc is worth reading.
 * Processes of another machine cannot be seen from here: the user is warned, once. */
static bool
is_any_open(const struct run_log *log, const char *boot,
            const struct run_options *options)
{
    char host[65] = "";
    bool any = false, told = false;
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "localhost");
    for (size_t i = 0; i < log->nturns; i++) {
        const struct run_turn *turn = &log->turn[i];
        const struct run_runner *runner;
        if (turn->logged == REC_NONE || turn->ended || turn->runner >= log->nrunners)
            continue;
        runner = &log->runner[turn->runner];
        if (strcmp(runner->boot, boot) == 0)
            any = true;
        else if (strcmp(runner->host, host) != 0 && !told) {
            told = true;
            warn(options,
                 "according to the log, task '%.200s' has not ended on machine %.64s: "
                 "this machine cannot check whether it still runs there",
                 log->logged[turn->logged].id, runner->host);
        }
    }
    return any;
}

bool
run_wait_for_alive(const struct run_log *log, const struct run_options *options,
                   struct rec_error *err)
{
    const struct run_turn *turn = NULL;
    double waited = 0;
    char boot[64], number[24];
    pid_t pid;
    run_boot_name(boot);
    if (!is_any_open(log, boot, options))
        return true;
    while ((pid = find_alive(log, boot, &turn)) > 0) {
        const char *id = log->logged[turn->logged].id;
        if (waited >= options->grace)
            return rec_fail(
                err, REC_IO,
                "%s: task '%s' of a run that was killed still runs, as process "
                "%d: end it first, or wait longer for it",
                log->path, id, (int)pid);
        if (waited <= 0) {
            snprintf(number, sizeof number, "%d", (int)pid);
            warn(options,
                 "task '%.200s' of a run that was killed still runs, as process %s: "
                 "waiting for it",
                 id, number);
        }
        poll(NULL, 0, POLL_MS);
        waited += 1e-3 * POLL_MS;
    }
    return true;
}
