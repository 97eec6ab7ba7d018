/*
 * One training step: a discrete-event simulation by the model of rampipe/sim.h.
 *
 * Deps that leave an op together and take equally long are one event (a "batch"). Deps
 * that are no flow arrive at once, and ops of no length end at once, so the queues hold
 * only what takes time. All events of an instant are processed before a server chooses
 * what to run: the result does not depend on their order.
 *
 * For speed, ends of ops and arrivals have a queue each: most arrivals are soon, and
 * would pass by all the ends in a common heap. And the data of an event lie together: a
 * batch of one dep names its destination itself, and a task holds all that is needed of
 * an op in half a cache line.
 */
#include "rampipe/event.h"
#include "rampipe/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX
/* Marks a destination whose dep is a sync dep: the destination does not wait for it. */
#define SYNC ((uint32_t)1 << 31)

struct batch {
    double seconds; /* time on the way */
    uint32_t
        first;  /* n == 1: the destination itself; else index of the first in target[] */
    uint32_t n; /* deps */
};

/* An op. */
struct task {
    double rank;      /* the lower rank runs first: compute, or the order of priorities */
    double remaining; /* compute that is left, seconds */
    uint32_t waiting; /* deps to it that have not arrived */
    uint32_t server;
    uint32_t placed; /* among equal ranks the higher one runs first */
    uint32_t batch;  /* its first batch; they end where those of the next task begin */
};

struct ready {
    double rank;
    uint32_t placed, op;
};

struct server {
    struct ready running; /* op NONE: nothing runs */
    double started;       /* when that op was started last, seconds */
    uint32_t version;     /* counts the ops stopped: an end of an older version is void */
    uint32_t nready,
        first;  /* a heap of ready ops: ready[first] to ready[first + nready - 1] */
    bool dirty; /* it is in the list of servers that must choose anew */
};

struct machine {
    const struct sim_placed *placed;
    const struct graph *graph;
    const struct sim_observer *observer;
    struct sim_step *result;
    struct event_queue ends; /* key: the server's version, the server (32 bits each) */
    struct event_queue arrivals; /* key: the batch */
    double started, now;

    struct task *task;
    struct batch *batch;
    uint32_t *target; /* destinations of the deps in order of batches, marked if sync */
    uint32_t *dep;    /* the deps in the same order; only for an observer */

    struct server *server;
    struct ready *ready;
    uint32_t *dirty; /* servers that must choose anew */
    uint32_t ndirty;
    uint32_t *ended; /* ops that ended at this instant, whose deps have not left yet */
    uint32_t nended;
    uint32_t nrunning;
    size_t ops_left, deps_left;
};

/* ---- ready ops of a server ----------------------------------------------- */

static inline bool
runs_before(struct ready a, struct ready b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.placed > b.placed);
}

static void
push_ready(struct machine *m, struct server *server, struct ready op)
{
    struct ready *heap = m->ready + server->first;
    uint32_t i = server->nready++;
    for (; i > 0 && runs_before(op, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = op;
}

static struct ready
pop_ready(struct machine *m, struct server *server)
{
    struct ready *heap = m->ready + server->first, first = heap[0];
    uint32_t n = --server->nready, i = 0;
    struct ready last = heap[n];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && runs_before(heap[child + 1], heap[child]))
            child++;
        if (!runs_before(heap[child], last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return first;
}

/* ---- what happens at one instant ----------------------------------------- */

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
    const struct task *task = &m->task[op];
    push_ready(m, &m->server[task->server], (struct ready){task->rank, task->placed, op});
    mark_dirty(m, task->server);
}

static inline void
deliver(struct machine *m, uint32_t target)
{
    if (!(target & SYNC) && --m->task[target].waiting == 0)
        make_ready(m, target);
}

/* Tells the observer of the deps of a batch, which are those from dep[d] on. */
static void
observe_batch(const struct machine *m, const struct batch *batch, uint32_t d)
{
    for (uint32_t i = 0; i < batch->n; i++)
        m->observer->send(m->observer->context, m->dep[d + i], m->now,
                          m->now + batch->seconds);
}

static void
arrive(struct machine *m, const struct batch *batch)
{
    m->deps_left -= batch->n;
    if (batch->n == 1)
        deliver(m, batch->first);
    else
        for (uint32_t i = 0; i < batch->n; i++)
            deliver(m, m->target[batch->first + i]);
}

/* The deps of an op that has ended leave it. The task that a batch of one dep will touch
 * when it arrives is prefetched now, while the queue is at work. */
static bool
send_off(struct machine *m, uint32_t op, struct rec_error *err)
{
    uint32_t next = m->graph->out_start[op];
    for (uint32_t b = m->task[op].batch; b < m->task[op + 1].batch; b++) {
        const struct batch *batch = &m->batch[b];
        uint32_t first = next;
        next += batch->n;
        if (batch->seconds == 0) {
            arrive(m, batch);
            continue;
        }
        if (m->observer && m->observer->send)
            observe_batch(m, batch, first);
        if (batch->n == 1)
            __builtin_prefetch(&m->task[batch->first & ~SYNC]);
        if (!event_queue_push(&m->arrivals,
                              (struct event_entry){m->now + batch->seconds, b}, err))
            return false;
    }
    return true;
}

static void
stop_running(struct machine *m, struct server *server)
{
    if (m->observer && m->observer->run && m->now > server->started)
        m->observer->run(m->observer->context, server->running.op, server->started,
                         m->now);
    server->running.op = NONE;
    server->version++;
    m->nrunning--;
}

static void
end_op(struct machine *m, uint32_t op)
{
    m->ended[m->nended++] = op;
    m->ops_left--;
}

/* A server whose ready ops changed chooses what to run. If the running op is preempted,
 * its end stays in the queue and becomes void by the server's version: taking it out
 * would cost more. */
static bool
choose(struct machine *m, uint32_t index, struct rec_error *err)
{
    struct server *server = &m->server[index];
    struct ready op;
    double remaining;

    server->dirty = false;
    if (server->nready == 0)
        return true;
    if (server->running.op != NONE) {
        struct task *task = &m->task[server->running.op];
        op = server->running;
        if (!runs_before(m->ready[server->first], op))
            return true;
        task->remaining = fmax(0, task->remaining - (m->now - server->started));
        stop_running(m, server);
        push_ready(m, server, op);
    }
    op = pop_ready(m, server);
    remaining = m->task[op.op].remaining;
    if (remaining > 0) {
        struct event_entry end = {m->now + remaining,
                                  (uint64_t)server->version << 32 | index};
        server->running = op;
        server->started = m->now;
        m->nrunning++;
        __builtin_prefetch(&m->batch[m->task[op.op].batch]);
        return event_queue_push(&m->ends, end, err);
    }
    /* The op has no length. An op that its end makes ready may come before the next one
     * here, so the server chooses again later. */
    end_op(m, op.op);
    if (server->nready)
        mark_dirty(m, index);
    return true;
}

/* Lets everything happen at this instant that takes no time, until nothing more does:
 * deps leave ended ops, and servers choose, which may end more ops. */
static bool
settle(struct machine *m, struct rec_error *err)
{
    uint32_t n;
    while (m->nended || m->ndirty) {
        while (m->nended)
            if (!send_off(m, m->ended[--m->nended], err))
                return false;
        n = m->ndirty;
        m->ndirty = 0; /* server i may append itself anew, at index i or before it */
        for (uint32_t i = 0; i < n; i++)
            if (!choose(m, m->dirty[i], err))
                return false;
    }
    return true;
}

/* True for the end of an op that was preempted meanwhile. */
static inline bool
is_void(const struct machine *m, struct event_entry event)
{
    const struct server *server = &m->server[(uint32_t)event.key];
    return server->running.op == NONE || event.key >> 32 != server->version;
}

static void
end_running(struct machine *m, struct event_entry event)
{
    struct server *server = &m->server[(uint32_t)event.key];
    if (is_void(m, event))
        return;
    end_op(m, server->running.op);
    stop_running(m, server);
    mark_dirty(m, (uint32_t)event.key);
}

/* The time of the next event; INFINITY: there is none. Void ends are dropped on the
 * way. */
static double
next_time(struct machine *m)
{
    double end, arrival = m->arrivals.n ? m->arrivals.event[0].time : (double)INFINITY;
    while (m->ends.n && is_void(m, m->ends.event[0]))
        event_queue_pop(&m->ends);
    end = m->ends.n ? m->ends.event[0].time : (double)INFINITY;
    return end < arrival ? end : arrival;
}

/* Lets all events up to and at `until` happen. */
static bool
advance(struct machine *m, double until, struct rec_error *err)
{
    double time;
    while ((time = next_time(m)) <= until && time < (double)INFINITY) {
        double elapsed = time - m->now;
        if (m->arrivals.n)
            m->result->comm += elapsed;
        if (m->nrunning)
            m->result->comp += elapsed;
        m->result->busy += m->nrunning * elapsed;
        m->now = time;
        while (m->arrivals.n && m->arrivals.event[0].time == time)
            arrive(m, &m->batch[event_queue_pop(&m->arrivals).key]);
        while (m->ends.n && m->ends.event[0].time == time)
            end_running(m, event_queue_pop(&m->ends));
        if (!settle(m, err))
            return false;
    }
    return true;
}

/* ---- before and after ---------------------------------------------------- */

static int
by_seconds(const void *a, const void *b, void *context)
{
    const double *seconds = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (seconds[x] != seconds[y])
        return seconds[x] < seconds[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sorts the deps of an op by their time; equal ones stay in order. Most ops have few
 * deps, for which insertion is faster than qsort_r(). */
static void
sort_deps(uint32_t *dep, uint32_t n, const double *seconds)
{
    if (n > 32) {
        qsort_r(dep, n, sizeof *dep, by_seconds, (void *)(uintptr_t)seconds);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t d = dep[i], j = i;
        for (; j > 0 && seconds[dep[j - 1]] > seconds[d]; j--)
            dep[j] = dep[j - 1];
        dep[j] = d;
    }
}

/* Groups the deps of each op that take equally long into batches. Without an observer,
 * `target` holds the sorted deps first, and each entry is replaced by its destination
 * when it has been read. A batch that grows beyond one dep changes `first` from a
 * destination to an index. */
static void
make_batches(struct machine *m)
{
    const struct graph *graph = m->graph;
    const double *seconds = m->placed->dep_seconds;
    uint32_t n = 0, *dep = m->dep;

    if (!dep)
        dep = m->target;
    memcpy(dep, graph->out, graph->ndeps * sizeof *dep);
    for (size_t i = 0; i < graph->nops; i++) {
        uint32_t first = graph->out_start[i], end = graph->out_start[i + 1];
        sort_deps(dep + first, end - first, seconds);
        m->task[i].batch = n;
        for (uint32_t j = first; j < end; j++) {
            const struct graph_dep *d = &graph->dep[dep[j]];
            double time = seconds[dep[j]];
            m->target[j] = d->dst | (d->sync ? SYNC : 0);
            m->task[d->dst].waiting += !d->sync;
            if (j == first || time != m->batch[n - 1].seconds)
                m->batch[n++] = (struct batch){time, m->target[j], 1};
            else if (m->batch[n - 1].n++ == 1)
                m->batch[n - 1].first = j - 1;
        }
    }
    m->task[graph->nops].batch = n;
}

static int
by_priority(const void *a, const void *b, void *context)
{
    const struct machine *m = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double p = m->placed->priority[x], q = m->placed->priority[y];
    double s = m->graph->op[x].compute, t = m->graph->op[y].compute;
    if (isnan(p) != isnan(q))
        return isnan(p) ? 1 : -1;
    if (p != q && !isnan(p))
        return p > q ? -1 : 1;
    return s < t ? -1 : s > t;
}

/* Ops with a priority come first, the highest first; then those without one, the shortest
 * first. Ranks are counted along this order, and equal ops have equal ranks. */
static void
make_ranks(struct machine *m)
{
    uint32_t *order = m->ended; /* scratch: it is not in use yet */
    double rank = 0;
    for (uint32_t i = 0; i < m->graph->nops; i++) {
        m->task[i].rank = m->graph->op[i].compute;
        order[i] = i;
    }
    if (!m->placed->priority)
        return;
    qsort_r(order, m->graph->nops, sizeof *order, by_priority, m);
    for (size_t i = 0; i < m->graph->nops; i++) {
        rank += i > 0 && by_priority(&order[i - 1], &order[i], m) != 0;
        m->task[order[i]].rank = rank;
    }
}

/* Fills the arrays, and makes the ops ready that wait for nothing. The ready heaps of all
 * servers share one array: a server's part has room for all its ops. */
static bool
prepare(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t nops = graph->nops, ndeps = graph->ndeps;
    uint32_t nservers = m->placed->nservers, next = 0;

    m->task = calloc(nops + 1, sizeof *m->task);
    m->batch = malloc((ndeps + 1) * sizeof *m->batch);
    m->target = malloc((ndeps + 1) * sizeof *m->target);
    m->server = calloc((size_t)nservers + 1, sizeof *m->server);
    m->ready = malloc((nops + 1) * sizeof *m->ready);
    m->dirty = malloc(((size_t)nservers + 1) * sizeof *m->dirty);
    m->ended = malloc((nops + 1) * sizeof *m->ended);
    if (m->observer)
        m->dep = malloc((ndeps + 1) * sizeof *m->dep);
    if (!m->task || !m->batch || !m->target || !m->server || !m->ready || !m->dirty ||
        !m->ended || (m->observer && !m->dep))
        return rec_fail_memory(err);
    make_batches(m);
    make_ranks(m);
    m->ops_left = nops;
    m->deps_left = ndeps;
    for (size_t i = 0; i < nops; i++) {
        struct task *task = &m->task[i];
        task->remaining = graph->op[i].compute;
        task->server = m->placed->server[i];
        task->placed = m->placed->placed[i];
        m->result->sequential += task->remaining;
        m->server[task->server].first++;
    }
    for (uint32_t s = 0; s < nservers; s++) {
        uint32_t count = m->server[s].first;
        m->result->used += count > 0;
        m->server[s].first = next;
        m->server[s].running.op = NONE;
        next += count;
    }
    for (uint32_t i = 0; i < nops; i++)
        if (m->task[i].waiting == 0)
            make_ready(m, i);
    return true;
}

static void
release(struct machine *m)
{
    event_queue_free(&m->ends);
    event_queue_free(&m->arrivals);
    free(m->task);
    free(m->batch);
    free(m->target);
    free(m->dep);
    free(m->server);
    free(m->ready);
    free(m->dirty);
    free(m->ended);
}

static bool
fail_overflow(const struct machine *m, struct rec_error *err)
{
    return rec_fail(err, REC_DATA,
                    "graph '%s': the times of a step add up to more than a number holds",
                    m->graph->id);
}

/* No event is left, but ops are: the graph has a cycle, or times are not finite. */
static bool
fail_deadlock(const struct machine *m, struct rec_error *err)
{
    struct rec_error why;
    uint32_t *order = calloc(m->graph->nops + 1, sizeof *order);
    bool ok;

    if (!order)
        return rec_fail_memory(err);
    ok = graph_order(m->graph, order, &why);
    free(order);
    if (ok && (m->ends.n || m->arrivals.n))
        return fail_overflow(m, err);
    if (ok)
        return rec_fail(err, REC_BUG, "graph '%s': the step stopped with %zu ops left",
                        m->graph->id, m->ops_left);
    return rec_fail(err, why.code, "deadlock with %zu of %zu ops left to run: %s",
                    m->ops_left, m->graph->nops, why.text);
}

/* Starts a step at `time`: what takes no time has happened when it returns. */
static bool
start(struct machine *m, const struct sim_placed *placed,
      const struct sim_observer *observer, double time, struct sim_step *step,
      struct rec_error *err)
{
    *m = (struct machine){.placed = placed,
                          .graph = placed->graph,
                          .observer = observer,
                          .result = step,
                          .started = time,
                          .now = time};
    *step = (struct sim_step){0};
    if (placed->graph->nops >= SYNC)
        return rec_fail(err, REC_DATA, "graph '%s' has too many ops", placed->graph->id);
    return prepare(m, err) && (isfinite(step->sequential) || fail_overflow(m, err)) &&
           settle(m, err);
}

static bool
end(const struct machine *m, struct rec_error *err)
{
    m->result->seconds = m->now - m->started;
    m->result->events = m->graph->nops + m->graph->ndeps;
    return (!m->ops_left && !m->deps_left) || fail_deadlock(m, err);
}

bool
sim_step(const struct sim_placed *placed, const struct sim_observer *observer,
         struct sim_step *step, struct rec_error *err)
{
    struct machine m;
    bool ok = start(&m, placed, observer, 0, step, err) &&
              advance(&m, (double)INFINITY, err) && end(&m, err);
    release(&m);
    return ok;
}

/* ---- piece by piece ------------------------------------------------------ */

struct sim_stepping {
    struct machine machine;
    struct sim_placed placed;
    struct sim_observer observer;
    struct sim_step step;
};

struct sim_stepping *
sim_stepping_new(const struct sim_placed *placed, const struct sim_observer *observer,
                 double time, struct rec_error *err)
{
    struct sim_stepping *s = calloc(1, sizeof *s);
    if (!s) {
        rec_fail_memory(err);
        return NULL;
    }
    s->placed = *placed;
    if (observer)
        s->observer = *observer;
    if (start(&s->machine, &s->placed, observer ? &s->observer : NULL, time, &s->step,
              err))
        return s;
    sim_stepping_free(s);
    return NULL;
}

double
sim_stepping_next(struct sim_stepping *s)
{
    return next_time(&s->machine);
}

bool
sim_stepping_advance(struct sim_stepping *s, double time, struct rec_error *err)
{
    return advance(&s->machine, time, err);
}

bool
sim_stepping_end(struct sim_stepping *s, struct sim_step *step, struct rec_error *err)
{
    bool ok = end(&s->machine, err);
    *step = s->step;
    return ok;
}

void
sim_stepping_free(struct sim_stepping *s)
{
    if (!s)
        return;
    release(&s->machine);
    free(s);
}

/* ---- on a clock ---------------------------------------------------------- */

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    (void)self, (void)clock, (void)reader, (void)rec, (void)err;
    return 0; /* a step reads no records */
}

static double
model_next(void *self)
{
    return sim_stepping_next(self);
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    return sim_stepping_advance(self, time, err);
}

/* Nothing to do: the owner of the step calls sim_stepping_end(). */
static bool
model_end(void *self, double time, struct rec_error *err)
{
    (void)self, (void)time, (void)err;
    return true;
}

const struct event_model sim_step_model = {"step",        model_take, model_next,
                                           model_advance, model_end,  NULL};
