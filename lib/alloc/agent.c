/*
 * Agents: choosers that are processes. The alternatives of a job are written to one pipe,
 * and the answer is read from another. An agent must not block the tool for longer than
 * its timeout, whatever it does, so poll() comes before each read and write. While the
 * tool writes, it also reads: otherwise both sides could wait for each other with full
 * pipes.
 */
#include "agent.h"
#include "answer.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_BYTES_MAX = 1 << 16 }; /* an answer and the comments before it, at most */
/* How long an agent that has closed a pipe may take to end, so that its exit status can
 * be told, seconds. */
static const double grace = 1;

struct alloc_agent {
    char *name;     /* for messages: its command, or fd:3,4 */
    double timeout; /* seconds */
    struct agent_process process;
    bool ours;                 /* the process was started here */
    struct rec_writer *writer; /* to the agent */
    const struct net *net;     /* borrowed */
    struct graph_store *store; /* borrowed; NULL: the agent has no whole actions */
    size_t ntold;              /* graphs of the store that it has been told, or made */
    struct act *act;           /* its action, if it has whole ones */
    struct rec_str job;        /* that it is asked about; ptr NULL: none */
    double until;              /* its time is over then, by agent_now() */
    /* Where the writer's sink reports errors: the error of the running call. NULL: the
     * agent is being freed, and nothing more is written to it. */
    struct rec_error *why;
    char *heard; /* bytes that were read and not yet taken: heard[start..end) */
    size_t room, start, end;
};

static bool fail(const struct alloc_agent *agent, struct rec_error *err,
                 enum rec_code code, const char *format, ...) REC_PRINTF(4, 5);

/* An error that names the agent, and the job that it was asked about. Returns false. */
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
                        REC_SAID(agent->job), text);
    return rec_fail(err, code, "agent '%.200s': %s", agent->name, text);
}

/* ---- time ---------------------------------------------------------------- */

static void
start_clock(struct alloc_agent *agent)
{
    agent->until = agent_now() + agent->timeout;
}

/* Waits by poll() until one of the ends is ready. False: *err, also if the agent's time
 * is over. */
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

/* ---- reading from the agent ---------------------------------------------- */

/* The agent has closed its input or output too early; an error that says how it ended, if
 * it ended. Returns false. */
static bool
fail_gone(struct alloc_agent *agent, const char *closed, struct rec_error *err)
{
    char how[80];
    int status;
    if (!agent->ours || !agent_wait(&agent->process, grace, &status))
        return fail(agent, err, REC_IO, "it closed its %s", closed);
    agent_describe_status(status, how, sizeof how);
    return fail(agent, err, REC_IO, "it %s before the last decision", how);
}

/* Reads what the agent has written. Returns 1; 0 at the end of its output; -1: *err. */
static int
hear(struct alloc_agent *agent, struct rec_error *err)
{
    ssize_t n;
    if (agent->start)
        memmove(agent->heard, agent->heard + agent->start, agent->end - agent->start);
    agent->end -= agent->start;
    agent->start = 0;
    if (!rec_grow(&agent->heard, &agent->room, agent->end + ANSWER_BYTES_MAX / 2, 1, err))
        return -1;
    while ((n = read(agent->process.from, agent->heard + agent->end,
                     agent->room - agent->end)) < 0) {
        if (errno == EAGAIN) /* non-blocking, and another process has read the bytes */
            return 1;
        if (errno != EINTR) {
            fail(agent, err, REC_IO, "reading its answer: %s", strerror(errno));
            return -1;
        }
    }
    agent->end += (size_t)n;
    return n > 0;
}

/* Takes the next whole line that is neither empty nor a comment; false: there is none. */
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

/* An agent that is not being asked may write only comments. A second answer would else be
 * taken for the answer about the next job. The last line may still be incomplete. */
static bool
check_silent(struct alloc_agent *agent, struct rec_error *err)
{
    struct rec_str line;
    bool spoke = take_line(agent, &line);
    size_t more = agent->end - agent->start;
    return (!spoke && (more == 0 || agent->heard[agent->start] == '#') &&
            more < ANSWER_BYTES_MAX) ||
           fail(agent, err, REC_DATA,
                "it answered before it was asked; each ask must get one answer, "
                "of one line");
}

/* Takes the lines of a whole action that are there. *taken: the next line is another one,
 * which is not taken. */
static bool
hear_action(struct alloc_agent *agent, struct rec_str *line, bool *taken,
            struct rec_error *err)
{
    bool part = true;
    while (part && (*taken = take_line(agent, line)) && agent->act) {
        struct rec_error why;
        if (!act_take(agent->act, *line, agent->job, &part, &why))
            return fail(agent, err, why.code, "%s", why.text);
    }
    return true;
}

/* Reads until a whole answer is there. The limit on bytes ends an agent that writes
 * without end; a line may be as long as the names in it, which are as long as the
 * input's. */
static bool
hear_answer(struct alloc_agent *agent, struct rec_str *line, struct rec_error *err)
{
    size_t heard = 0;
    for (;;) {
        struct pollfd from = {agent->process.from, POLLIN, 0};
        size_t most = ANSWER_BYTES_MAX + agent->job.len, before;
        bool taken;
        int status;
        if (!hear_action(agent, line, &taken, err))
            return false;
        if (taken)
            return true;
        /* Each line of an action has an LF, too. One read may bring half a line. */
        most += agent->act ? 2 * act_bytes(agent->act) : 0;
        if (heard > most)
            return fail(agent, err, REC_DATA, "it wrote %zu bytes without an answer",
                        heard);
        before = agent->end - agent->start;
        status = wait_for(agent, &from, 1, err) ? hear(agent, err) : -1;
        if (status <= 0)
            return status == 0 && fail_gone(agent, "output", err);
        heard += agent->end - agent->start - before;
    }
}

/* ---- writing to the agent ------------------------------------------------ */

/* Writes to a pipe. If nobody reads it, that is the error EPIPE and no signal. SIGPIPE is
 * blocked for this write only, because it must still end the tool when nobody reads the
 * tool's own output; the blocked signal is taken off before the mask is restored. */
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

/* Writes some of the bytes, and reads what the agent writes meanwhile. Returns how many
 * were written, which may be 0; -1: *err. */
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
    /* When poll() says that a pipe can be written, only PIPE_BUF bytes will not block. */
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

/* The writer's sink: writes all bytes. Returns 0, or EPIPE with the reason in
 * *agent->why. */
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

/* Writes what the writer has buffered. False: *agent->why has the reason, the writer
 * knows only EPIPE. */
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
    agent->net = options->net;
    agent->store = options->store;
    if (!(agent->name = strdup(options->name)))
        return rec_fail_memory(err);
    if (agent->store && !(agent->act = act_new(agent->store, err)))
        return false;
    agent->ours = options->command != NULL;
    if (agent->ours &&
        !agent_start(&agent->process, options->command, options->started, err))
        return false;
    start_clock(agent);
    agent->writer = rec_writer_open_sink(&sink, agent->name, options->provenance, err);
    if (!agent->writer)
        return false;
    net_write(options->net, agent->writer);
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

/* Ends an agent that was started here: closes its input, reads its output to the end, in
 * which only comments may come, and checks its exit status. */
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
                    "it has not ended within %.9g s after the last decision",
                    agent->timeout);
    if (status == 0)
        return true;
    agent_describe_status(status, how, sizeof how);
    return fail(agent, err, REC_IO, "it %s after the last decision", how);
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
    agent->why = NULL; /* so that closing the writer writes nothing more */
    if (agent->writer && !rec_writer_close(agent->writer, false, &ignored))
        agent->writer = NULL;
    if (agent->process.pid)
        agent_kill(&agent->process, &status);
    if (agent->ours && agent->process.from >= 0)
        close(agent->process.from);
    if (agent->ours && agent->process.to >= 0)
        close(agent->process.to);
    act_free(agent->act);
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
    placed = q->tried[i].trial.outcome == PLACE_PLACED;
    rec_begin(writer, "offer");
    rec_str_field(writer, q->job->id);
    rec_text_field(writer, q->store->graph[a->graph]->id);
    rec_uint_field(writer, degree);
    rec_uint_field(writer, placed ? a->nservers : 0);
    rec_num_field(writer, placed ? a->step : (double)INFINITY);
    rec_num_field(writer, a->finish);
    if (pricer_ways(q->pricer) > 1)
        rec_text_key(writer, "place", pricer_way_name(q->pricer, a->way));
    if (a->cause)
        rec_text_key(writer, "cause", a->cause);
    for (int f = 0; !a->cause && f < ALLOC_FEATURES; f++)
        rec_num_key(writer, alloc_features[f].name, feature[f]);
    rec_end(writer);
    return true;
}

/* The names of the servers that are free. */
static void
write_idle(const struct alloc_agent *agent, const struct alloc_question *q)
{
    const uint64_t *owner = alloc_admission_owners(q->admission);
    bool first = true;
    rec_text_key(agent->writer, "idle", "");
    for (uint32_t s = 0; s < net_servers(agent->net); s++) {
        char name[NET_NAME_MAX];
        size_t len = net_format_server(agent->net, s, name);
        if (owner[s] != 0)
            continue;
        if (!first)
            rec_put_bytes(agent->writer, ",", 1);
        rec_put_bytes(agent->writer, name, len);
        first = false;
    }
}

static void
write_ask(const struct alloc_agent *agent, const struct alloc_question *q)
{
    struct rec_writer *writer = agent->writer;
    const struct graph *graph = q->store->graph[q->tried[0].alternative.graph];
    uint32_t running = 0;
    for (size_t i = 0; i < q->nrunning; i++)
        running += q->running[i].runs;
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
    if (agent->act)
        write_idle(agent, q);
    rec_end(writer);
}

/* Begins to tell an agent of whole actions something, apart from its questions. */
static void
begin_to_tell(struct alloc_agent *agent, struct rec_error *err)
{
    agent->job = (struct rec_str){NULL, 0};
    agent->why = err;
    start_clock(agent);
}

static bool
end_telling(const struct alloc_agent *agent, struct rec_error *err)
{
    struct rec_error ignored;
    (void)err; /* the sink has filled it */
    return rec_writer_ok(agent->writer, &ignored);
}

/* A job has arrived: tells the graphs that have come since the last one, and the job.
 * Graphs that were made for the agent, it knows. */
static bool
arrive(void *self, const struct graph_job *job, struct rec_error *err)
{
    struct alloc_agent *agent = self;
    if (!agent->store)
        return true;
    begin_to_tell(agent, err);
    for (; agent->ntold < agent->store->ngraphs; agent->ntold++) {
        const struct graph *graph = agent->store->graph[agent->ntold];
        if (graph && graph->line > 0)
            graph_write(graph, agent->writer);
    }
    rec_begin(agent->writer, "job");
    rec_str_field(agent->writer, job->id);
    rec_str_field(agent->writer, job->graphs);
    rec_num_field(agent->writer, job->arrival);
    rec_num_field(agent->writer, job->steps);
    rec_num_field(agent->writer, job->deadline);
    rec_end(agent->writer);
    return end_telling(agent, err);
}

bool
alloc_agent_tell(struct alloc_agent *agent, const struct alloc_decision *decision,
                 struct rec_error *err)
{
    struct rec_writer *writer = agent->writer;
    begin_to_tell(agent, err);
    if (decision->cause) {
        graph_begin_block(writer, &decision->job, decision->time, decision->cause,
                          decision->graph);
        alloc_decision_explain(decision, agent->net, writer);
    } else {
        const struct sim_step *step = &decision->cost->step;
        uint32_t n = decision->layout->where.nslots;
        rec_begin(writer, "start");
        rec_str_field(writer, decision->job.id);
        rec_text_field(writer, decision->graph->id);
        rec_num_field(writer, decision->time);
        rec_num_field(writer, decision->finish);
        net_servers_field(agent->net, decision->servers, n, writer);
        rec_num_key(writer, "step", step->seconds);
        rec_num_key(writer, "comm", step->comm);
        rec_num_key(writer, "comp", step->comp);
        rec_num_key(writer, "busy",
                    step->seconds > 0 ? step->busy / (n * step->seconds) : 0);
        rec_num_key(writer, "sequential", step->sequential);
    }
    rec_end(writer);
    return end_telling(agent, err);
}

static bool
decide(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    struct alloc_agent *agent = self;
    struct rec_error why;
    struct rec_str line;

    agent->job = q->job->id;
    agent->why = err;
    start_clock(agent);
    if (!check_silent(agent, err))
        return false;
    if (agent->act)
        act_clear(agent->act);
    for (uint32_t i = 0; i < q->n; i++)
        if (!write_offer(agent->writer, q, i, err))
            return false;
    write_ask(agent, q);
    start_clock(agent); /* the time for trying alternatives was not the agent's */
    return tell_now(agent) && hear_answer(agent, &line, err) &&
           (answer_take(agent->act, q, line, choice, &why) ||
            fail(agent, err, why.code, "%s", why.text));
}

const struct alloc_chooser alloc_agent_chooser = {
    .name = "agent", .observes = true, .arrive = arrive, .decide = decide};
