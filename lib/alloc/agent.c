/*
 * Agents: processes that decide. One is offered the alternatives of a job and asked, on
 * one pipe, and answers on another; nothing that it does or does not do may hold us up
 * for longer than its time, or make us wait for each other.
 */
#include "agent.h"
#include "question.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HEARD_MAX = 1 << 16, /* bytes of an answer, and comments before it */
    SHOWN = 60,          /* bytes of a wrong one in a message */
};
static const double grace = 1; /* seconds to end, for who closed its output */

struct alloc_agent {
    char *name; /* what users call it: its command, fd:3,4 */
    double timeout;
    struct agent_process process;
    bool ours; /* it was started */
    struct rec_writer *writer;
    struct rec_str job; /* asked about; NULL: none */
    double until;       /* it has time, agent_now() */
    struct rec_error
        *why;    /* why writing failed; the caller's. NULL: nothing is written */
    char *heard; /* what it said and was not read yet: heard[start..end) */
    size_t room, start, end;
};

static bool fail(const struct alloc_agent *agent, struct rec_error *err,
                 enum rec_code code, const char *format, ...) REC_PRINTF(4, 5);

static bool
fail(const struct alloc_agent *agent, struct rec_error *err, enum rec_code code,
     const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (agent->job.ptr)
        return rec_fail(err, code, "agent '%.200s', job '%.*s': %s", agent->name,
                        (int)(agent->job.len < 100 ? agent->job.len : 100),
                        agent->job.ptr, text);
    return rec_fail(err, code, "agent '%.200s': %s", agent->name, text);
}

/* ---- time ---------------------------------------------------------------- */

static void
start_clock(struct alloc_agent *agent)
{
    agent->until = agent_now() + agent->timeout;
}

/* poll() until the agent's time is over. False: *err. */
static bool
wait_for(const struct alloc_agent *agent, struct pollfd *ends, nfds_t n,
         struct rec_error *err)
{
    for (;;) {
        double left = fmax(agent->until - agent_now(), 0);
        int ready = poll(ends, n, left < INT_MAX / 1000 ? (int)ceil(left * 1000) : -1);
        if (ready > 0 && left > 0)
            return true;
        if (ready >= 0)
            return fail(agent, err, REC_IO, "it took longer than %.9g s", agent->timeout);
        if (errno != EINTR)
            return fail(agent, err, REC_IO, "waiting for it: %s", strerror(errno));
    }
}

/* ---- what it says -------------------------------------------------------- */

/* Its output is at its end, or nobody reads its input: how did it go? Returns false. */
static bool
fail_gone(struct alloc_agent *agent, const char *closed, struct rec_error *err)
{
    char how[80];
    int status;
    if (!agent->ours || !agent_wait(&agent->process, grace, &status))
        return fail(agent, err, REC_IO, "it closed its %s", closed);
    agent_describe_status(status, how, sizeof how);
    return fail(agent, err, REC_IO, "it %s before all was decided", how);
}

/* Reads what is there. 1; 0: the end; -1: *err. */
static int
hear(struct alloc_agent *agent, struct rec_error *err)
{
    ssize_t n;
    if (agent->start)
        memmove(agent->heard, agent->heard + agent->start, agent->end - agent->start);
    agent->end -= agent->start;
    agent->start = 0;
    if (!rec_grow(&agent->heard, &agent->room, agent->end + HEARD_MAX / 2, 1, err))
        return -1;
    while ((n = read(agent->process.from, agent->heard + agent->end,
                     agent->room - agent->end)) < 0) {
        if (errno == EAGAIN) /* somebody else was faster, or made it non-blocking */
            return 1;
        if (errno != EINTR) {
            fail(agent, err, REC_IO, "reading its answer: %s", strerror(errno));
            return -1;
        }
    }
    agent->end += (size_t)n;
    return n > 0;
}

/* Takes the next whole line that is no comment; false: there is none. */
static bool
take_line(struct alloc_agent *agent, struct rec_str *line)
{
    for (;;) {
        char *from, *lf;
        if (agent->start == agent->end)
            return false;
        from = agent->heard + agent->start;
        lf = memchr(from, '\n', agent->end - agent->start);
        if (!lf)
            return false;
        agent->start = (size_t)(lf - agent->heard) + 1;
        if (lf > from && lf[-1] == '\r')
            lf--;
        *line = (struct rec_str){from, (size_t)(lf - from)};
        if (line->len > 0 && *from != '#')
            return true;
    }
}

/* It may say comments only, while nothing is asked. */
static bool
check_silent(struct alloc_agent *agent, struct rec_error *err)
{
    struct rec_str line;
    bool spoke = take_line(agent, &line);
    size_t more = agent->end - agent->start;
    return (!spoke && (more == 0 || agent->heard[agent->start] == '#') &&
            more < HEARD_MAX) ||
           fail(agent, err, REC_DATA,
                "it answered before it was asked; an ask has one answer of one line");
}

static bool
hear_answer(struct alloc_agent *agent, struct rec_str *line, struct rec_error *err)
{
    size_t heard = 0, most = HEARD_MAX + agent->job.len;
    while (!take_line(agent, line)) {
        struct pollfd from = {agent->process.from, POLLIN, 0};
        size_t before = agent->end - agent->start;
        int status = wait_for(agent, &from, 1, err) ? hear(agent, err) : -1;
        if (status <= 0)
            return status == 0 && fail_gone(agent, "output", err);
        heard += agent->end - before;
        if (heard > most)
            return fail(agent, err, REC_DATA, "it wrote %zu bytes, and no answer", heard);
    }
    return true;
}

/* ---- what it is told ----------------------------------------------------- */

/* A write to a pipe that nobody reads is an error, no signal: that is for our own
 * output. */
static ssize_t
write_quietly(int fd, const char *bytes, size_t len)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe, before;
    ssize_t n;
    int why;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    n = write(fd, bytes, len);
    why = errno;
    if (n < 0 && why == EPIPE)
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return n;
}

/* Some of the bytes, listening meanwhile. -1: *err. */
static ptrdiff_t
tell_some(struct alloc_agent *agent, const char *bytes, size_t len, struct rec_error *err)
{
    struct pollfd ends[] = {{agent->process.to, POLLOUT, 0},
                            {agent->process.from, POLLIN, 0}};
    ssize_t n;
    if (!wait_for(agent, ends, 2, err))
        return -1;
    if (ends[1].revents) {
        int status = hear(agent, err);
        if (status == 0)
            fail_gone(agent, "output", err);
        if (status <= 0 || !check_silent(agent, err))
            return -1;
    }
    if (!ends[0].revents)
        return 0;
    /* So many can be written at once, without waiting, if poll() says that any can. */
    n = write_quietly(agent->process.to, bytes, len < PIPE_BUF ? len : PIPE_BUF);
    if (n >= 0)
        return n;
    if (errno == EINTR || errno == EAGAIN)
        return 0;
    if (errno == EPIPE)
        fail_gone(agent, "input", err);
    else
        fail(agent, err, REC_IO, "asking it: %s", strerror(errno));
    return -1;
}

/* The writer's sink; what went wrong is in *agent->why. */
static int
tell(void *context, const char *bytes, size_t len)
{
    struct alloc_agent *agent = context;
    while (agent->why && len > 0) {
        ptrdiff_t n = tell_some(agent, bytes, len, agent->why);
        if (n < 0)
            return EPIPE;
        bytes += n;
        len -= (size_t)n;
    }
    return len ? EPIPE : 0;
}

/* False: *agent->why. */
static bool
tell_now(struct alloc_agent *agent)
{
    struct rec_error ignored;
    rec_writer_flush(agent->writer);
    return rec_writer_ok(agent->writer, &ignored);
}

/* ---- opening and closing ------------------------------------------------- */

static bool
open_agent(struct alloc_agent *agent, const struct alloc_agent_options *options,
           struct rec_error *err)
{
    struct rec_sink sink = {tell, agent};
    agent->timeout = options->timeout;
    agent->process.to = options->to;
    agent->process.from = options->from;
    agent->why = err;
    if (!(agent->name = strdup(options->name)))
        return rec_fail_memory(err);
    agent->ours = options->command != NULL;
    if (agent->ours &&
        !agent_start(&agent->process, options->command, options->started, err))
        return false;
    start_clock(agent);
    agent->writer = rec_writer_open_sink(&sink, agent->name, options->provenance, err);
    if (!agent->writer)
        return false;
    net_write(options->cluster, agent->writer);
    return tell_now(agent);
}

struct alloc_agent *
alloc_agent_open(const struct alloc_agent_options *options, struct rec_error *err)
{
    struct alloc_agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        rec_fail_memory(err);
        return NULL;
    }
    if (open_agent(agent, options, err))
        return agent;
    alloc_agent_free(agent);
    return NULL;
}

/* What it started is heard to its end, then it ends. */
static bool
see_off(struct alloc_agent *agent, struct rec_error *err)
{
    char how[80];
    int status = 1;
    close(agent->process.to);
    agent->process.to = -1;
    while (status > 0) {
        struct pollfd from = {agent->process.from, POLLIN, 0};
        status = wait_for(agent, &from, 1, err) ? hear(agent, err) : -1;
        if (status < 0 || !check_silent(agent, err))
            return false;
    }
    if (!agent_wait(&agent->process, fmax(agent->until - agent_now(), 0), &status))
        return fail(agent, err, REC_IO,
                    "all is decided, and it has not ended after %.9g s", agent->timeout);
    if (status == 0)
        return true;
    agent_describe_status(status, how, sizeof how);
    return fail(agent, err, REC_IO, "it %s after all was decided", how);
}

bool
alloc_agent_end(struct alloc_agent *agent, struct rec_error *err)
{
    struct rec_writer *writer = agent->writer;
    struct rec_error ignored;
    agent->job = (struct rec_str){NULL, 0};
    agent->why = err;
    agent->writer = NULL;
    start_clock(agent);
    return check_silent(agent, err) && rec_writer_close(writer, true, &ignored) &&
           (!agent->ours || see_off(agent, err));
}

void
alloc_agent_free(struct alloc_agent *agent)
{
    struct rec_error ignored;
    int status;
    if (!agent)
        return;
    agent->why = NULL;
    if (agent->writer && !rec_writer_close(agent->writer, false, &ignored))
        agent->writer = NULL; /* which it is not told */
    if (agent->process.pid)
        agent_kill(&agent->process, &status);
    if (agent->ours && agent->process.from >= 0)
        close(agent->process.from);
    if (agent->ours && agent->process.to >= 0)
        close(agent->process.to);
    free(agent->heard);
    free(agent->name);
    free(agent);
}

/* ---- a decision ---------------------------------------------------------- */

static bool
write_offer(struct rec_writer *writer, struct alloc_question *q, uint32_t i,
            struct rec_error *err)
{
    const struct alloc_alternative *a = alloc_question_try(q, i, err);
    double feature[ALLOC_FEATURES];
    uint32_t degree;
    bool placed;

    if (!a || !alloc_question_degree(q, i, &degree, err) ||
        (!a->cause && !alloc_question_features(q, i, feature, err)))
        return false;
    placed = q->tried[i].trial.outcome == ALLOC_PLACED;
    rec_begin(writer, "offer");
    rec_str_field(writer, q->job->id);
    rec_text_field(writer, q->store->graph[a->graph]->id);
    rec_uint_field(writer, degree);
    rec_uint_field(writer, placed ? a->nservers : 0);
    rec_num_field(writer, placed ? a->step : (double)INFINITY);
    rec_num_field(writer, a->finish);
    if (a->cause)
        rec_text_key(writer, "cause", a->cause);
    for (int f = 0; !a->cause && f < ALLOC_FEATURES; f++)
        rec_num_key(writer, alloc_features[f].name, feature[f]);
    rec_end(writer);
    return true;
}

static void
write_ask(struct rec_writer *writer, const struct alloc_question *q)
{
    const struct graph *graph = q->store->graph[q->tried[0].alternative.graph];
    uint32_t running = 0;
    for (size_t i = 0; i < q->nrunning; i++)
        running += q->running[i].layout != NULL;
    rec_begin(writer, "ask");
    rec_str_field(writer, q->job->id);
    rec_num_field(writer, q->now);
    rec_text_key(writer, "model", graph->model);
    rec_num_key(writer, "arrival", q->job->arrival);
    rec_uint_key(writer, "steps", (uint64_t)q->job->steps);
    rec_num_key(writer, "sequential", graph_sequential(graph));
    rec_num_key(writer, "deadline", q->job->deadline);
    rec_uint_key(writer, "free", q->nfree);
    rec_uint_key(writer, "running", running);
    rec_uint_key(writer, "waiting", q->nwaiting);
    rec_end(writer);
}

static bool
fail_answer(const struct alloc_agent *agent, struct rec_str line, const char *what,
            struct rec_error *err)
{
    return fail(
        agent, err, REC_DATA,
        "%s; right is 'answer', a TAB, the job, a TAB, one of its alternatives or "
        "-, got '%.*s'",
        what, (int)(line.len < SHOWN ? line.len : SHOWN), line.ptr);
}

/* The job is refused: for good, or until servers come free. */
static bool
settle_refusal(struct alloc_question *q, struct rec_str cause, uint32_t *choice)
{
    if (rec_str_is(cause, "no_servers")) {
        *choice = ALLOC_NONE;
        q->cause = "no_servers";
        q->may_wait = true;
        return true;
    }
    *choice = ALLOC_REFUSED;
    return !cause.ptr || rec_str_is(cause, "policy");
}

/* As if this alternative, and those before it, had been looked at, and no others. */
static bool
settle_alternative(struct alloc_question *q, uint32_t i, uint32_t *choice,
                   struct rec_error *err)
{
    const struct alloc_alternative *a = NULL;
    q->may_wait = false;
    for (uint32_t j = 0; j <= i; j++) {
        if (!(a = alloc_question_try(q, j, err)))
            return false;
        q->may_wait = q->may_wait || !a->cause;
    }
    *choice = a->cause ? ALLOC_NONE : i;
    return true;
}

static bool
take_answer(const struct alloc_agent *agent, struct alloc_question *q,
            struct rec_str line, uint32_t *choice, struct rec_error *err)
{
    struct rec_str rest = line, word, job, graph, key, cause = {NULL, 0},
                   names = q->job->graphs, name;
    if (!rec_str_split(&rest, '\t', &word) || !rec_str_is(word, "answer") ||
        !rec_str_split(&rest, '\t', &job) || !rec_str_split(&rest, '\t', &graph))
        return fail_answer(agent, line, "it gave no answer", err);
    while (rec_str_split(&rest, '\t', &key)) {
        if (!memchr(key.ptr, '=', key.len))
            return fail_answer(agent, line, "its answer has a field too many", err);
        if (key.len > 6 && memcmp(key.ptr, "cause=", 6) == 0)
            cause = (struct rec_str){key.ptr + 6, key.len - 6};
    }
    if (!rec_str_eq(job, q->job->id))
        return fail_answer(agent, line, "it answered for another job", err);
    if (rec_str_is(graph, "-"))
        return settle_refusal(q, cause, choice) ||
               fail_answer(agent, line, "cause= is neither policy nor no_servers", err);
    for (uint32_t i = 0; rec_str_split(&names, ',', &name); i++)
        if (rec_str_eq(name, graph))
            return settle_alternative(q, i, choice, err);
    return fail_answer(agent, line, "it chose what is no alternative of the job", err);
}

static bool
decide(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    struct alloc_agent *agent = self;
    struct rec_str line;

    agent->job = q->job->id;
    agent->why = err;
    start_clock(agent);
    if (!check_silent(agent, err))
        return false;
    for (uint32_t i = 0; i < q->n; i++)
        if (!write_offer(agent->writer, q, i, err))
            return false;
    write_ask(agent->writer, q);
    start_clock(agent); /* trying alternatives took time of ours */
    return tell_now(agent) && hear_answer(agent, &line, err) &&
           take_answer(agent, q, line, choice, err);
}

const struct alloc_chooser alloc_agent_chooser = {"agent", NULL, true,
                                                  NULL,    NULL, decide};
