/*
 * One training step. Deps that leave an op together and take equally long are one event
 * (a "batch"); deps that are no flow are delivered at once, ops of no length end at once;
 * so the queue holds only what takes time. Equal instants are processed whole before a
 * server chooses what to run, which makes the result independent of the order within an
 * instant.
 */
#include "rampipe/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX
/* Queue keys: bit 63 set: a server's op ends, (version << 32 | server) below it; clear:
 * a batch arrives, (source op's batch index). */
#define OP_ENDS ((uint64_t)1 << 63)
#define VERSION ((uint64_t)0x7fffffff)

struct batch {
    uint32_t first, end; /* target[first..end) */
    double seconds;
};

struct server {
    uint32_t running;      /* op, or NONE */
    uint32_t version;      /* counts starts: an event of an older one is void */
    uint32_t nready, heap; /* ready ops: ready[heap..heap + nready) */
    double started;
    bool dirty;
};

struct machine {
    const struct sim_placed *placed;
    const struct graph *graph;
    const struct sim_observer *observer;
    struct sim_step *result;
    struct sim_queue queue;
    double now;

    struct batch *batch;
    uint32_t *batch_start; /* per op: its batches */
    uint32_t *target;      /* per dep, grouped by batch: the dep */

    uint32_t *waiting; /* per op: parents' deps not yet arrived */
    double *remaining; /* per op, seconds */
    struct server *server;
    uint32_t *ready;
    uint32_t *dirty; /* servers that must choose anew */
    uint32_t ndirty;
    uint32_t *ended; /* ops that ended now and whose deps must leave */
    uint32_t nended;
    uint32_t nrunning;
    uint64_t nflying; /* batches on their way */
    size_t ops_left, deps_left;
};

/* ---- ready ops of a server: a heap by rank, later placed first
 * --------------------------- */

/* By priority if one has it (those with one first), then shortest first, later first. */
static inline bool
runs_before(const struct machine *m, uint32_t a, uint32_t b)
{
    double x = m->graph->op[a].compute, y = m->graph->op[b].compute;
    if (m->placed->priority) {
        double p = m->placed->priority[a], q = m->placed->priority[b];
        if (p > q || (!isnan(p) && isnan(q)))
            return true;
        if (p < q || (isnan(p) && !isnan(q)))
            return false;
    }
    return x < y || (x == y && m->placed->placed[a] > m->placed->placed[b]);
}

static void
push_ready(struct machine *m, struct server *server, uint32_t op)
{
    uint32_t *heap = m->ready + server->heap, i = server->nready++;
    for (; i > 0 && runs_before(m, op, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = op;
}

static uint32_t
pop_ready(struct machine *m, struct server *server)
{
    uint32_t *heap = m->ready + server->heap, first = heap[0];
    uint32_t n = --server->nready, last = heap[n], i = 0;
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && runs_before(m, heap[child + 1], heap[child]))
            child++;
        if (!runs_before(m, heap[child], last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return first;
}

/* ---- what happens at one instant
 * ------------------------------------------------------- */

static void
mark_dirty(struct machine *m, uint32_t server)
{
    if (m->server[server].dirty)
        return;
    m->server[server].dirty = true;
    m->dirty[m->ndirty++] = server;
}

static void
make_ready(struct machine *m, uint32_t op)
{
    uint32_t server = m->placed->server[op];
    push_ready(m, &m->server[server], op);
    mark_dirty(m, server);
}

static void
deliver(struct machine *m, uint32_t d)
{
    const struct graph_dep *dep = &m->graph->dep[d];
    m->deps_left--;
    if (!dep->sync && --m->waiting[dep->dst] == 0)
        make_ready(m, dep->dst);
}

static void
arrive(struct machine *m, const struct batch *batch)
{
    for (uint32_t i = batch->first; i < batch->end; i++) {
        if (m->observer && m->observer->send && batch->seconds > 0)
            m->observer->send(m->observer->context, m->target[i], m->now - batch->seconds,
                              m->now);
        deliver(m, m->target[i]);
    }
}

/* The deps of an op that has ended set out. */
static bool
send_off(struct machine *m, uint32_t op, struct rec_error *err)
{
    for (uint32_t b = m->batch_start[op]; b < m->batch_start[op + 1]; b++) {
        const struct batch *batch = &m->batch[b];
        if (batch->seconds == 0) {
            arrive(m, batch);
            continue;
        }
        m->nflying++;
        if (!sim_queue_push(&m->queue, (struct sim_event){m->now + batch->seconds, b},
                            err))
            return false;
    }
    return true;
}

static void
stop_running(struct machine *m, struct server *server)
{
    uint32_t op = server->running;
    if (m->observer && m->observer->run && m->now > server->started)
        m->observer->run(m->observer->context, op, server->started, m->now);
    server->running = NONE;
    server->version++;
    m->nrunning--;
}

static void
end_op(struct machine *m, uint32_t op)
{
    m->ended[m->nended++] = op;
    m->ops_left--;
}

/* A server whose ready ops changed chooses what to run. */
static bool
choose(struct machine *m, uint32_t index, struct rec_error *err)
{
    struct server *server = &m->server[index];
    server->dirty = false;
    if (server->nready == 0)
        return true;
    if (server->running != NONE) {
        uint32_t op = server->running;
        if (!runs_before(m, m->ready[server->heap], op))
            return true;
        m->remaining[op] -= m->now - server->started;
        if (m->remaining[op] < 0)
            m->remaining[op] = 0;
        stop_running(m, server);
        push_ready(m, server, op);
    }
    while (server->nready) {
        uint32_t op = pop_ready(m, server);
        if (m->remaining[op] > 0) {
            server->running = op;
            server->started = m->now;
            m->nrunning++;
            return sim_queue_push(
                &m->queue,
                (struct sim_event){m->now + m->remaining[op],
                                   OP_ENDS | (server->version & VERSION) << 32 | index},
                err);
        }
        end_op(m, op);
    }
    return true;
}

/* Lets everything happen that takes no time. */
static bool
settle(struct machine *m, struct rec_error *err)
{
    while (m->nended || m->ndirty) {
        while (m->nended)
            if (!send_off(m, m->ended[--m->nended], err))
                return false;
        for (uint32_t i = 0; i < m->ndirty; i++)
            if (!choose(m, m->dirty[i], err))
                return false;
        m->ndirty = 0;
    }
    return true;
}

/* True for the end of an op that was preempted meanwhile. */
static bool
is_void(const struct machine *m, struct sim_event event)
{
    const struct server *server = &m->server[(uint32_t)event.key];
    return (event.key & OP_ENDS) &&
           (server->running == NONE ||
            ((event.key >> 32) & VERSION) != (server->version & VERSION));
}

static void
happen(struct machine *m, struct sim_event event)
{
    if (is_void(m, event))
        return;
    if (event.key & OP_ENDS) {
        struct server *server = &m->server[(uint32_t)event.key];
        m->remaining[server->running] = 0;
        end_op(m, server->running);
        stop_running(m, server);
        mark_dirty(m, (uint32_t)event.key);
    } else {
        m->nflying--;
        arrive(m, &m->batch[event.key]);
    }
}

static bool
simulate(struct machine *m, struct rec_error *err)
{
    if (!settle(m, err))
        return false;
    while (m->queue.n) {
        struct sim_event event = sim_queue_pop(&m->queue);
        double elapsed = event.time - m->now;
        if (is_void(m, event))
            continue;
        if (m->nflying)
            m->result->comm += elapsed;
        if (m->nrunning)
            m->result->comp += elapsed;
        m->result->busy += m->nrunning * elapsed;
        m->now = event.time;
        happen(m, event);
        while (m->queue.n && m->queue.event[0].time == m->now)
            happen(m, sim_queue_pop(&m->queue));
        if (!settle(m, err))
            return false;
    }
    return true;
}

/* ---- before and after
 * -------------------------------------------------------------------- */

static int
by_seconds(const void *a, const void *b, void *context)
{
    const double *seconds = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (seconds[x] != seconds[y])
        return seconds[x] < seconds[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Groups each op's deps that take equally long. */
static void
make_batches(struct machine *m)
{
    const struct graph *graph = m->graph;
    const double *seconds = m->placed->dep_seconds;
    uint32_t nbatches = 0;

    memcpy(m->target, graph->out, graph->ndeps * sizeof *m->target);
    for (size_t i = 0; i < graph->nops; i++) {
        uint32_t first = graph->out_start[i], end = graph->out_start[i + 1];
        bool sorted = true;
        for (uint32_t j = first + 1; sorted && j < end; j++)
            sorted = seconds[m->target[j - 1]] <= seconds[m->target[j]];
        if (!sorted)
            qsort_r(m->target + first, end - first, sizeof *m->target, by_seconds,
                    (void *)(uintptr_t)seconds);
        m->batch_start[i] = nbatches;
        for (uint32_t j = first; j < end; j++) {
            if (j == first || seconds[m->target[j]] != m->batch[nbatches - 1].seconds)
                m->batch[nbatches++] = (struct batch){j, j, seconds[m->target[j]]};
            m->batch[nbatches - 1].end = j + 1;
        }
    }
    m->batch_start[graph->nops] = nbatches;
}

static bool
prepare(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t nops = graph->nops, ndeps = graph->ndeps;
    uint32_t next = 0;

    m->batch = malloc((ndeps + 1) * sizeof *m->batch);
    m->batch_start = malloc((nops + 1) * sizeof *m->batch_start);
    m->target = malloc((ndeps + 1) * sizeof *m->target);
    m->waiting = calloc(nops + 1, sizeof *m->waiting);
    m->remaining = malloc((nops + 1) * sizeof *m->remaining);
    m->server = calloc((size_t)m->placed->nservers + 1, sizeof *m->server);
    m->ready = malloc((nops + 1) * sizeof *m->ready);
    m->dirty = malloc(((size_t)m->placed->nservers + 1) * sizeof *m->dirty);
    m->ended = malloc((nops + 1) * sizeof *m->ended);
    if (!m->batch || !m->batch_start || !m->target || !m->waiting || !m->remaining ||
        !m->server || !m->ready || !m->dirty || !m->ended)
        return rec_fail_memory(err);
    make_batches(m);
    m->ops_left = nops;
    m->deps_left = ndeps;
    for (size_t d = 0; d < ndeps; d++)
        m->waiting[graph->dep[d].dst] += !graph->dep[d].sync;
    for (size_t i = 0; i < nops; i++) {
        m->remaining[i] = graph->op[i].compute;
        m->result->sequential += graph->op[i].compute;
        m->server[m->placed->server[i]].heap++;
    }
    for (uint32_t s = 0; s < m->placed->nservers; s++) {
        uint32_t count = m->server[s].heap;
        m->result->used += count > 0;
        m->server[s].heap = next;
        m->server[s].running = NONE;
        next += count;
    }
    for (uint32_t i = 0; i < nops; i++)
        if (m->waiting[i] == 0)
            make_ready(m, i);
    return true;
}

static void
release(struct machine *m)
{
    sim_queue_free(&m->queue);
    free(m->batch);
    free(m->batch_start);
    free(m->target);
    free(m->waiting);
    free(m->remaining);
    free(m->server);
    free(m->ready);
    free(m->dirty);
    free(m->ended);
}

/* Nothing can happen any more and ops are left: only a cycle does that. */
static bool
fail_deadlock(const struct machine *m, struct rec_error *err)
{
    struct rec_error why;
    uint32_t *order = calloc(m->graph->nops + 1, sizeof *order);
    bool ok = order && graph_order(m->graph, order, &why);
    free(order);
    if (ok)
        return rec_fail(err, REC_BUG, "graph '%s': the step stopped with %zu ops left",
                        m->graph->id, m->ops_left);
    if (!order)
        return rec_fail_memory(err);
    return rec_fail(err, REC_DATA, "deadlock with %zu of %zu ops left to run: %s",
                    m->ops_left, m->graph->nops, why.text);
}

bool
sim_step(const struct sim_placed *placed, const struct sim_observer *observer,
         struct sim_step *step, struct rec_error *err)
{
    struct machine m = {
        .placed = placed, .graph = placed->graph, .observer = observer, .result = step};
    bool ok;

    *step = (struct sim_step){0};
    ok = prepare(&m, err) && simulate(&m, err);
    if (ok && (m.ops_left || m.deps_left))
        ok = fail_deadlock(&m, err);
    step->seconds = m.now;
    step->events = m.graph->nops + m.graph->ndeps;
    release(&m);
    return ok;
}
