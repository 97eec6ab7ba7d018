/*
 * What the runs of one process share: processes and workers, cores and memory, signals.
 *
 * All events arrive in one poll(): signals and the ends of processes through a signalfd,
 * answers of workers, and the descriptors of the caller. So there are no signal handlers,
 * and no event can be lost between a check and the wait.
 */
#include "private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* The longest time of one poll(), seconds: its argument is an int of milliseconds. */
#define LONGEST_WAIT 60.

/* Signals that come within this time count as one: timeout(1) sends its signal twice, to
 * this process and to its group. */
#define SAME_SIGNAL_SECONDS 0.25

/* ---- opening and closing --------------------------------------------------- */

/* Makes a name for this run that no other run has in any log. */
static void
make_name(struct run_pool *pool)
{
    char boot[64], line[200];
    struct timespec now;
    run_boot_name(boot);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(line, sizeof line, "%s %s %d %lld.%09ld", boot, pool->host, (int)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
    /* rec_hash() is salted anew in each process: even equal lines give different names */
    snprintf(pool->name, sizeof pool->name, "%016llx",
             (unsigned long long)rec_hash(rec_str(line)));
}

bool
run_pool_open(struct run_pool *pool, const struct run_options *options, bool marked,
              struct rec_error *err)
{
    *pool = (struct run_pool){.options = options,
                              .cores = options->cores,
                              .memory = options->memory,
                              .launch = {.null = -1},
                              .events = -1};
    if (gethostname(pool->host, sizeof pool->host - 1) != 0)
        strcpy(pool->host, "localhost");
    make_name(pool);
    return run_pool_reserve(pool, 1, err) && run_launch_open(&pool->launch, marked, err);
}

void
run_pool_close(struct run_pool *pool)
{
    for (size_t i = 0; i < pool->nslots; i++) {
        if (pool->slot[i].output >= 0)
            close(pool->slot[i].output);
        run_worker_free(pool->slot[i].worker);
    }
    free(pool->slot);
    free(pool->poll);
    run_launch_close(&pool->launch);
    if (pool->events >= 0)
        close(pool->events);
}

/* Makes room in ->poll for processes and other descriptors before they exist, so that
 * run_pool_wait() needs no memory and cannot fail for lack of it. */
static bool
make_room(struct run_pool *pool, size_t slots, size_t more, struct rec_error *err)
{
    return rec_grow(&pool->poll, &pool->poll_room, 1 + slots + more, sizeof *pool->poll,
                    err);
}

bool
run_pool_reserve(struct run_pool *pool, size_t more, struct rec_error *err)
{
    if (!make_room(pool, pool->nslots, more, err))
        return false;
    pool->more = more;
    return true;
}

struct run_slot *
run_free_slot(struct run_pool *pool, struct rec_error *err)
{
    for (size_t i = 0; i < pool->nslots; i++)
        if (pool->slot[i].pid == 0)
            return &pool->slot[i];
    if (!make_room(pool, pool->nslots + 1, pool->more, err) ||
        !rec_grow(&pool->slot, &pool->slot_room, pool->nslots + 1, sizeof *pool->slot,
                  err))
        return NULL;
    pool->slot[pool->nslots] = (struct run_slot){.task = REC_NONE, .output = -1};
    return &pool->slot[pool->nslots++];
}

/* ---- signals ---------------------------------------------------------------- */

bool
run_watch_signals(struct run_pool *pool, struct rec_error *err)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t blocked;
    sigemptyset(&pool->heard);
    sigaddset(&pool->heard, SIGCHLD);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(deadly[i], NULL, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&pool->heard, deadly[i]);
    }
    blocked = pool->heard;
    sigaddset(&blocked, SIGPIPE); /* writing fails instead, and tasks are ended first */
    sigprocmask(SIG_BLOCK, &blocked, &pool->launch.mask);
    pool->events = signalfd(-1, &pool->heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return pool->events >= 0 || rec_fail(err, REC_IO, "signals: %s", strerror(errno));
}

static void
take_signals(struct run_pool *pool)
{
    static const struct timespec none = {0, 0};
    double time = run_seconds(CLOCK_MONOTONIC);
    int number;
    while ((number = sigtimedwait(&pool->heard, NULL, &none)) > 0) {
        if (number == SIGCHLD ||
            (pool->signals > 0 && time < pool->signalled + SAME_SIGNAL_SECONDS))
            continue;
        pool->signalled = time;
        /* A deadline that has passed sends SIGTERM: to tasks and to workers. With the
         * second signal it sends SIGKILL to those that have got SIGTERM. */
        for (size_t i = 0; i < pool->nslots; i++)
            if (pool->signals > 0 || !pool->slot[i].warned)
                pool->slot[i].deadline = 0;
        pool->signals++;
        pool->signal = number;
    }
}

/* ---- waiting ---------------------------------------------------------------- */

/* Has a process ended, or a worker answered, without our having taken that yet? Then it
 * was in time, and must not be reported as timed out. */
static bool
has_ended(const struct run_slot *slot)
{
    siginfo_t info = {.si_pid = 0};
    struct pollfd answer = {slot->worker ? slot->worker->socket : -1, POLLIN, 0};
    if (slot->task != REC_NONE && !slot->warned && poll(&answer, 1, 0) > 0)
        return true;
    return waitid(P_PID, (id_t)slot->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == slot->pid;
}

/* Signals processes whose deadline has passed: first SIGTERM and, after the grace time,
 * SIGKILL. Returns the seconds until the next deadline. A process that is ended because
 * the run ends, or a worker that shall exit, has not timed out. */
static double
end_late(struct run_pool *pool)
{
    double time = run_seconds(CLOCK_MONOTONIC), next = INFINITY;
    for (size_t i = 0; i < pool->nslots; i++) {
        struct run_slot *slot = &pool->slot[i];
        if (slot->pid == 0)
            continue;
        if (slot->deadline <= time && !has_ended(slot)) {
            kill(-slot->pid, slot->warned ? SIGKILL : SIGTERM);
            if (slot->task != REC_NONE && pool->signals == 0 && !slot->run->ending &&
                !(slot->worker && slot->worker->socket < 0))
                slot->timed_out = true;
            slot->deadline = slot->warned ? INFINITY : time + pool->options->grace;
            slot->warned = true;
        }
        next = fmin(next, slot->deadline);
    }
    return next - time;
}

/* WNOWAIT leaves each process a zombie until run_reap(), which still signals its group:
 * until it is waited for, its number cannot be given to another group. */
static void
reap_all(struct run_pool *pool)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0) {
        run_reap(pool, info.si_pid);
        info.si_pid = 0;
    }
}

bool
run_pool_wait(struct run_pool *pool, double left, struct pollfd *more, size_t n,
              struct rec_error *err)
{
    size_t slots = pool->nslots; /* taking answers adds no slots */
    left = fmax(fmin(fmin(left, end_late(pool)), LONGEST_WAIT), 0);
    pool->poll[0] = (struct pollfd){pool->events, POLLIN, 0};
    for (size_t i = 0; i < slots; i++) {
        const struct run_worker *worker = pool->slot[i].worker;
        pool->poll[1 + i] = (struct pollfd){-1, 0, 0};
        if (worker)
            pool->poll[1 + i] =
                (struct pollfd){worker->socket, run_worker_events(worker), 0};
    }
    if (n > 0)
        memcpy(pool->poll + 1 + slots, more, n * sizeof *more);
    if (poll(pool->poll, 1 + slots + n, (int)ceil(1000 * left)) < 0) {
        if (errno != EINTR)
            return rec_fail(err, REC_IO, "waiting for tasks: %s", strerror(errno));
        for (size_t i = 0; i < 1 + slots + n; i++)
            pool->poll[i].revents = 0;
    }
    if (n > 0)
        memcpy(more, pool->poll + 1 + slots, n * sizeof *more);
    for (size_t i = 0; i < slots; i++)
        if (pool->poll[1 + i].revents)
            run_worker_hear(pool, i);
    if (pool->poll[0].revents)
        take_signals(pool);
    reap_all(pool);
    return true;
}

bool
run_pool_empty(struct run_pool *pool, struct rec_error *err)
{
    for (;;) {
        bool any = false;
        for (size_t i = 0; i < pool->nslots; i++) {
            struct run_slot *slot = &pool->slot[i];
            any = any || slot->pid > 0;
            if (slot->worker && slot->task == REC_NONE && slot->worker->socket >= 0)
                run_worker_leave(pool, slot);
        }
        if (!any)
            return true;
        if (!run_pool_wait(pool, INFINITY, NULL, 0, err))
            return false;
    }
}
