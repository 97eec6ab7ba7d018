/*
 * Processes that outlived the runner that had started them. They are known by their
 * process group, which is that of the task's process, and by RAMPIPE_TASK in their
 * environment, which one keeps that begins a group or a session of its own. No process is
 * ever signalled: a number may be a stranger's by now.
 */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAUSE = 20 }; /* milliseconds between two looks */

/* The kernel counts starts in hundredths of a second; ours is read just after it;
 * seconds. */
#define NEAR 1.0

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

/* All of a file of /proc, with a NUL behind; the caller's. NULL: it is gone, or not
 * ours. */
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

/* Its process group, and when it was started, seconds since the machine was. */
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

/* Was it, or an ancestor, started by a run as this number? 0: by none as any. */
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

/* The turn that is not over to which a process belongs; NULL: none. */
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
            bool other = false; /* the task it belongs to is known, and is not this one */
            for (size_t k = 0; k < log->nturns; k++)
                other = other || (k != i && log->turn[k].runner == turn->runner &&
                                  log->turn[k].logged != REC_NONE &&
                                  log->turn[k].number == number);
            if (turn->number == number || (turn->number == 0 && !other))
                found = turn;
        } else if (turn->pid > 0 && group == turn->pid &&
                   started >= turn->started - NEAR &&
                   (!read_stat((pid_t)turn->pid, &own, &leader) ||
                    fabs(leader - turn->started) <= NEAR))
            found = turn;
    }
    free(environment);
    return found;
}

/* One that is alive; 0: none. */
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
warn(const struct task_run_options *options, const char *format, const char *task,
     const char *where)
{
    char text[600];
    snprintf(text, sizeof text, format, task, where);
    options->warn(options->context, text);
}

/* Is there a task that may still run? Of those that ran elsewhere nothing can be seen. */
static bool
is_any_open(const struct run_log *log, const char *boot,
            const struct task_run_options *options)
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
            warn(
                options,
                "task '%.200s' had not ended on %.64s: whether it still runs there cannot "
                "be seen from here",
                log->logged[turn->logged].id, runner->host);
        }
    }
    return any;
}

bool
run_wait_for_alive(const struct run_log *log, const struct task_run_options *options,
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
            warn(
                options,
                "task '%.200s' of a run that was killed still runs, as process %s: waiting "
                "for it",
                id, number);
        }
        poll(NULL, 0, PAUSE);
        waited += 1e-3 * PAUSE;
    }
    return true;
}
