/*
 * A service: the runs of several clients on one machine, in one loop.
 *
 *     accept --- read clients' input --- start_ready(), in turn --- send results
 *        ^                                                               |
 *        +--- wait for: a client, input, room to send, an answer, -------+
 *             the end of a process, a signal
 */
#include "private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time before a client is accepted again after a lack of descriptors or memory, seconds:
 * meanwhile the socket is not polled, for it would report the client at once. */
#define SHORTAGE_PAUSE 0.1

struct service {
    struct run_pool pool;
    const struct run_service *options;
    struct rec_error *err; /* the first error that could not be sent to a client */
    bool failed;
    struct run_tally *tally;
    int socket;
    bool shortage; /* no other client can be taken now */
    bool coming;   /* somebody has connected */
    struct run_client **client;
    struct pollfd *poll; /* of clients, and of the socket behind them */
    size_t n, room, poll_room;
    uint64_t come;
};

static void
fail(struct service *s, const struct rec_error *err)
{
    if (!s->failed)
        *s->err = *err;
    s->failed = true;
}

/* ---- clients that come and go ----------------------------------------------------- */

static void
take_clients(struct service *s)
{
    struct rec_error err;
    int fd;
    errno = 0;
    while (s->coming && s->pool.signals == 0 &&
           (fd = accept4(s->socket, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct run_client *client;
        if (!rec_grow(&s->client, &s->room, s->n + 1, sizeof *s->client, &err) ||
            !rec_grow(&s->poll, &s->poll_room, s->n + 2, sizeof *s->poll, &err) ||
            !run_pool_reserve(&s->pool, s->n + 2, &err)) {
            close(fd);
            fail(s, &err);
        } else if (!(client =
                         run_client_open(&s->pool, s->options, fd, s->come + 1, &err)))
            fail(s, &err);
        else
            s->client[s->n++] = client;
        s->come++;
    }
    s->coming = false;
    s->shortage =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

static void
drop_clients(struct service *s, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (all || run_client_is_over(s->client[i])) {
            run_client_add_tally(s->client[i], s->tally);
            run_client_free(s->client[i]);
        } else
            s->client[kept++] = s->client[i];
    }
    s->n = kept;
}

/* ---- whose turn it is ---------------------------------------------------- */

/* The run of a client if it has a ready task and may start it; else NULL. */
static struct run *
run_of(const struct service *s, size_t i)
{
    struct run *run = run_client_run(s->client[i]);
    return run && !run->stopped && run_may_start(run) && run->graph.nready > 0 ? run
                                                                               : NULL;
}

/* The client that may start a task next: among those not asked in this round, the one
 * whose last task was started longest ago. If the first task of some client has been
 * overtaken often enough, only such clients are asked, so that it gets room. */
static struct run *
next_run(const struct service *s, uint64_t round)
{
    struct run *next = NULL;
    bool due = false;
    for (size_t i = 0; i < s->n; i++) {
        struct run *run = run_of(s, i);
        due = due || (run && run_is_due(run));
    }
    for (size_t i = 0; i < s->n; i++) {
        struct run *run = run_of(s, i);
        if (run && run->round != round && (!due || run_is_due(run)) &&
            (!next || run->turn < next->turn))
            next = run;
    }
    return next;
}

/* Starts one task of each client in turn, as long as one fits. A started task overtakes
 * the waiting first task of every other client: that is counted there. */
static void
start_ready(struct service *s)
{
    struct run *run;
    s->pool.round++;
    while (s->pool.cores > 0 && (run = next_run(s, s->pool.round))) {
        size_t started;
        if (!run_start_ready(run, 1, &started)) {
            run_give_up(run);
            continue;
        }
        if (started == 0) {
            run->round = s->pool.round; /* nothing of it fits */
            continue;
        }
        run->turn = ++s->pool.turns;
        for (size_t i = 0; i < s->n; i++) {
            struct run *other = run_of(s, i);
            if (other && other != run && other->head == other->graph.ready[0])
                other->passed++;
        }
    }
}

/* ---- the loop ------------------------------------------------------------ */

static bool
wait_for_events(struct service *s)
{
    double left = s->shortage ? SHORTAGE_PAUSE : INFINITY, next;
    for (size_t i = 0; i < s->n; i++) {
        s->poll[i] = run_client_poll(s->client[i], &next);
        left = fmin(left, next);
    }
    s->poll[s->n] = (struct pollfd){s->shortage ? -1 : s->socket, POLLIN, 0};
    if (!run_pool_wait(&s->pool, left, s->poll, s->n + 1, s->err))
        return false;
    s->coming = s->shortage || s->poll[s->n].revents;
    for (size_t i = 0; i < s->n; i++)
        if (s->poll[i].revents)
            run_client_take_events(s->client[i], s->poll[i].revents);
    return true;
}

static void
end_all(struct service *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct run *run = run_client_run(s->client[i]);
        if (!run)
            continue;
        run->ended = true;
        run_end_running(run);
        if (s->pool.signals > 1 && run->jobs)
            run_jobs_leave(run);
    }
}

/* Have clients come and all gone? After a signal, idle connections are not waited for,
 * only runs whose tasks are ending. */
static bool
is_over(const struct service *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->pool.signals == 0 || run_client_run(s->client[i]))
            return false;
    return s->come > 0 || s->pool.signals > 0;
}

static bool
serve(struct service *s)
{
    for (;;) {
        take_clients(s);
        for (size_t i = 0; i < s->n; i++)
            run_client_prepare(s->client[i], s->client, s->n);
        if (s->pool.signals >
            0) /* each time, for a run may have begun since the signal */
            end_all(s);
        else
            start_ready(s);
        for (size_t i = 0; i < s->n; i++)
            run_client_tell(s->client[i]);
        drop_clients(s, false);
        if (is_over(s))
            return true;
        if (!wait_for_events(s))
            return false;
    }
}

bool
run_serve(const struct run_options *options, const struct run_service *service,
          struct run_tally *tally, int *signal_number, struct rec_error *err)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, before;
    struct service s = {.options = service, .err = err, .tally = tally, .socket = -1};
    struct stat own;
    bool ok;

    *tally = (struct run_tally){0};
    *signal_number = 0;
    ok = run_pool_open(&s.pool, options, options->log != NULL, err) &&
         rec_grow(&s.poll, &s.poll_room, 1, sizeof *s.poll, err);
    s.pool.serves = true;
    if (ok) {
        /* if our parent ignored SIGCHLD, we inherit that, and wait() would fail */
        sigaction(SIGCHLD, &plain, &before);
        ok = run_watch_signals(&s.pool, err) &&
             (s.socket = run_socket_open(service->socket, &own, err)) >= 0;
        ok = ok && serve(&s);
        end_all(&s); /* (if waiting failed) */
        if (s.socket >= 0)
            run_socket_close(s.socket, service->socket, &own);
        ok = run_pool_empty(&s.pool, err) && ok && !s.failed;
        drop_clients(&s, true);
        sigaction(SIGCHLD, &before, NULL);
        *signal_number = s.pool.signal;
        sigprocmask(SIG_SETMASK, &s.pool.launch.mask, NULL);
    }
    free(s.client);
    free(s.poll);
    run_pool_close(&s.pool);
    return ok;
}
