/*
 * One training step: a discrete-event simulation by the model of rampipe/sim.h.
 *
 * Deps that leave an op together and that the courier takes together are one event (a
 * "batch"). Deps that are no flow arrive at once, and ops of no length end at once, so
 * the queues hold only what takes time. All events of an instant are processed before a
 * lane chooses what to run: the result does not depend on their order.
 *
 * For speed, ends of ops and arrivals have a queue each: most arrivals are soon, and
 * would pass by all the ends in a common heap. Of the batches that leave an op only the
 * next one to arrive is in the queue. And the data of an event lie together: a
 * batch for which one op waits names it itself, and a task holds all that is needed of an
 * op in half a cache line.
 */
#include "private.h"

#include <math.h>

/* An op that ends within this part of the time ends now. Else rounding would decide
 * whether what arrives at its end comes first, and holds it up for all its own time. */
#define SAME_INSTANT 1e-12

/* Sanitizers keep the compiler from seeing which function a pointer is, and an error is
 * what it says of one that must be inlined and cannot. */
#ifdef __SANITIZE_ADDRESS__
#define ALWAYS_INLINE inline
#else
#define ALWAYS_INLINE __attribute__((always_inline)) inline
#endif

/* ---- couriers ------------------------------------------------------------ */

double
sim_key_by_exchange(void *self, const struct sim_placed *placed, uint32_t dep)
{
    (void)self;
    return placed->exchange[dep] == GRAPH_NONE ? 0 : 1 + (double)placed->exchange[dep];
}

/* The key of a dep is its time on the way. */
static double
alone_key(void *self, const struct sim_placed *placed, uint32_t dep)
{
    (void)self;
    return placed->dep_seconds[dep];
}

/* Puts a batch behind the first one of its chain. */
static inline void
chain_batch(struct machine *m, uint32_t first, uint32_t batch)
{
    uint64_t *word = &m->chained[first / 64], bit = (uint64_t)1 << first % 64;
    m->next[batch] = *word & bit ? m->next[first] : NONE;
    m->next[first] = batch;
    *word |= bit;
}

/* The arrival of a batch whose op ended at `left`. Its key has served, and keeps that
 * time for the batch behind it. */
static inline struct event_entry
arrival_of(struct machine *m, uint32_t b, double left)
{
    struct batch *batch = &m->batch[b];
    struct event_entry event = {left + batch->key, b};
    if (!batch->last)
        batch->key = left;
    return event;
}

/* The parts of an op often end at one instant, and what they send arrives at one: it
 * passes through the queue as one. Of an instant that has come the chain may be gone. */
static inline bool
alone_send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
           struct rec_error *err)
{
    struct machine *m = self;
    struct event_entry event = arrival_of(m, (uint32_t)batch, time);
    double arrival = event.time;
    uint64_t bits;
    (void)dep, (void)exchange;
    if (!m->chained)
        return event_queue_push(&m->arrivals, event, err);
    memcpy(&bits, &arrival, sizeof bits);
    bits = bits * REC_MIX_STEP >> (64 - CHAIN_BITS);
    if (m->chain[bits].time == arrival && arrival > time) {
        chain_batch(m, m->chain[bits].first, (uint32_t)batch);
        return true;
    }
    m->chain[bits].time = arrival;
    m->chain[bits].first = (uint32_t)batch;
    return event_queue_push(&m->arrivals, event, err);
}

static inline double
alone_next(void *self)
{
    const struct machine *m = self;
    return m->arrivals.n ? m->arrivals.event[0].time : (double)INFINITY;
}

static inline bool
alone_advance(void *self, double time, sim_arrived *arrived, void *context,
              struct rec_error *err)
{
    struct machine *m = self;
    (void)err;
    while (m->arrivals.n && m->arrivals.event[0].time == time) {
        uint32_t batch = (uint32_t)m->arrivals.event[0].key;
        if (m->chained || m->batch[batch].last)
            event_queue_pop(&m->arrivals);
        else
            event_queue_replace(&m->arrivals,
                                arrival_of(m, batch + 1, m->batch[batch].key));
        arrived(context, batch);
        if (m->chained && m->chained[batch / 64] >> batch % 64 & 1)
            while ((batch = m->next[batch]) != NONE)
                arrived(context, batch);
    }
    return true;
}

const struct sim_courier sim_alone = {"alone", alone_key, alone_send, alone_next,
                                      alone_advance};

/* ---- ready ops of a lane --------------------------------------------------- */

static inline bool
runs_before(struct ready a, struct ready b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.placed > b.placed);
}

static void
push_ready(struct machine *m, struct lane *lane, struct ready op)
{
    struct ready *heap = m->ready + lane->first;
    uint32_t i = lane->nready++;
    for (; i > 0 && runs_before(op, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = op;
}

static struct ready
pop_ready(struct machine *m, struct lane *lane)
{
    struct ready *heap = m->ready + lane->first, first = heap[0];
    uint32_t n = --lane->nready, i = 0;
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
mark_dirty(struct machine *m, uint32_t lane)
{
    if (m->lane[lane].dirty)
        return;
    m->lane[lane].dirty = true;
    m->dirty[m->ndirty++] = lane;
}

void
sim_machine_ready(struct machine *m, uint32_t op)
{
    const struct task *task = &m->task[op];
    struct lane *lane = &m->lane[task->lane];
    if (!lane->strict)
        push_ready(m, lane, (struct ready){task->rank, task->placed, op});
    else if (lane->nready != task->placed)
        return; /* the lane waits for another op */
    mark_dirty(m, task->lane);
}

static inline void
deliver(struct machine *m, uint32_t target)
{
    if (--m->task[target].waiting == 0)
        sim_machine_ready(m, target);
}

/* Tells the observer of the deps of a batch. */
static void
observe_batch(const struct machine *m, uint32_t b, double left, double arrived)
{
    for (uint32_t d = m->first_dep[b]; d < m->first_dep[b + 1]; d++)
        m->observer->send(m->observer->context, m->dep[d], left, arrived);
}

static inline void
arrive(struct machine *m, const struct batch *batch)
{
    m->batches_left--;
    if (batch->n == 1)
        deliver(m, batch->first);
    else
        for (uint32_t i = 0; i < batch->n; i++)
            deliver(m, m->target[batch->first + i]);
}

/* What a courier calls; `machine` is a struct machine. */
ALWAYS_INLINE static void
land(void *machine, uint64_t token)
{
    struct machine *m = machine;
    uint32_t b = (uint32_t)token;
    m->nsending--;
    if (b >= m->coll_batch)
        sim_colls_end(m, b - m->coll_batch);
    else if (m->left)
        observe_batch(m, b, m->left[b], m->now);
    arrive(m, &m->batch[b]);
}

static inline bool
send_batch(struct machine *m, uint32_t b, struct rec_error *err)
{
    const uint32_t *exchange = m->placed->exchange;
    uint32_t dep;
    m->nsending++;
    if (m->courier == &sim_alone)
        return alone_send(m, b, GRAPH_NONE, GRAPH_NONE, m->now, err);
    if (m->left)
        m->left[b] = m->now;
    dep = m->dep[m->first_dep[b]];
    return m->courier->send(m->carrier, m->member | b, dep,
                            exchange ? exchange[dep] : GRAPH_NONE, m->now, err);
}

/* The deps of an op that has ended leave it. The tasks that its batches of one target
 * will touch are prefetched now. To sim_alone, which sends them in the order of their
 * keys, the first one stands for all, unless they go by chains. */
static bool
send_off(struct machine *m, uint32_t op, struct rec_error *err)
{
    uint32_t b = m->task[op].batch, end = m->task[op + 1].batch;
    for (; b < end && m->batch[b].key == 0; b++)
        arrive(m, &m->batch[b]);
    for (uint32_t i = b; m->foretold && i < end; i++)
        observe_batch(m, i, m->now, m->now + m->batch[i].key);
    if (m->courier == &sim_alone && !m->chained && b < end) {
        for (uint32_t i = b; i < end; i++)
            if (m->batch[i].n == 1)
                __builtin_prefetch(&m->task[m->batch[i].first]);
        m->nsending += end - b - 1;
        if (!send_batch(m, b, err))
            return false;
        b = end;
    }
    for (; b < end; b++)
        if (!send_batch(m, b, err))
            return false;
    if (m->colls)
        sim_colls_end_op(m, op);
    return true;
}

static bool
start_coll(struct machine *m, uint32_t c, struct rec_error *err)
{
    uint32_t b = m->coll_batch + c;
    if (m->batch[b].key == 0) {
        sim_colls_end(m, c);
        arrive(m, &m->batch[b]);
        return true;
    }
    m->nsending++;
    return m->courier->send(
        m->carrier, m->member | b, GRAPH_NONE,
        m->placed->coll_exchange ? m->placed->coll_exchange[c] : GRAPH_NONE, m->now, err);
}

static inline void
count_start(struct machine *m, const struct lane *lane)
{
    if (!m->running || m->running[lane->server]++ == 0)
        m->nbusy++;
}

static inline void
count_stop(struct machine *m, const struct lane *lane)
{
    if (!m->running || --m->running[lane->server] == 0)
        m->nbusy--;
}

static void
stop_running(struct machine *m, struct lane *lane)
{
    if (m->observer && m->observer->run && m->now > lane->started)
        m->observer->run(m->observer->context, lane->running.op, lane->started, m->now);
    lane->running.op = NONE;
    lane->version++;
    count_stop(m, lane);
}

static void
end_op(struct machine *m, uint32_t op)
{
    m->ended[m->nended++] = op;
    m->ops_left--;
    if (m->memory)
        sim_memory_end(m->memory, op);
}

/* Starts an op that is the lane's turn. */
static bool
start_op(struct machine *m, uint32_t index, struct ready op, struct rec_error *err)
{
    struct lane *lane = &m->lane[index];
    double remaining = m->task[op.op].remaining;
    if (remaining > 0) {
        struct event_entry end = {m->now + remaining,
                                  (uint64_t)lane->version << 32 | index};
        lane->running = op;
        lane->started = m->now;
        count_start(m, lane);
        __builtin_prefetch(&m->batch[m->task[op.op].batch]);
        return event_queue_push(&m->ends, end, err);
    }
    /* The op has no length. An op that its end makes ready may come before the next one
     * here, so the lane chooses again later. */
    end_op(m, op.op);
    if (lane->strict ? lane->nready < lane->nops : lane->nready)
        mark_dirty(m, index);
    return true;
}

/* A strict lane starts its next op if that is ready. The lane looks at the op behind it
 * when something arrives for that, or this one ends: time enough to fetch it. */
static bool
choose_next(struct machine *m, uint32_t index, struct rec_error *err)
{
    struct lane *lane = &m->lane[index];
    struct ready op;
    if (lane->running.op != NONE || lane->nready == lane->nops)
        return true;
    op = m->ready[lane->first + lane->nready];
    if (m->task[op.op].waiting > 0)
        return true;
    if (++lane->nready < lane->nops)
        __builtin_prefetch(&m->task[m->ready[lane->first + lane->nready].op]);
    return start_op(m, index, op, err);
}

/* The first op of a server that starts late could start now. */
__attribute__((cold, noinline)) static bool
await_server(struct machine *m, uint32_t server, struct rec_error *err)
{
    uint32_t index = m->nlanes + server;
    struct lane *start = &m->lane[index];
    if (start->dirty)
        return true;
    start->dirty = true;
    return event_queue_push(&m->ends,
                            (struct event_entry){m->now + start->started, index}, err);
}

/* A server starts: its lanes choose. It is rare, so it stays out of the loop of ends. */
__attribute__((cold, noinline)) static void
wake(struct machine *m, uint32_t server)
{
    bool one = !m->placed->lane; /* lane i is server i */
    for (uint32_t i = one ? server : 0; i < (one ? server + 1 : m->nlanes); i++)
        if (m->lane[i].nops && m->lane[i].server == server) {
            m->lane[i].asleep = false;
            mark_dirty(m, i);
        }
}

/* A lane whose ready ops changed chooses what to run. If the running op is preempted, its
 * end stays in the queue and becomes void by the lane's version: taking it out would cost
 * more. */
static bool
choose(struct machine *m, uint32_t index, struct rec_error *err)
{
    struct lane *lane = &m->lane[index];

    lane->dirty = false;
    if (lane->asleep)
        return await_server(m, lane->server, err);
    if (lane->strict)
        return choose_next(m, index, err);
    if (lane->nready == 0)
        return true;
    if (lane->running.op != NONE) {
        struct ready op = lane->running;
        struct task *task = &m->task[op.op];
        double left = task->remaining - (m->now - lane->started);
        if (!runs_before(m->ready[lane->first], op) || left <= SAME_INSTANT * m->now)
            return true;
        task->remaining = left;
        stop_running(m, lane);
        push_ready(m, lane, op);
    }
    return start_op(m, index, pop_ready(m, lane), err);
}

/* Deps leave ended ops and lanes choose, until no lane has a choice left. */
static bool
settle_ops(struct machine *m, struct rec_error *err)
{
    uint32_t n;
    while (m->nended || m->ndirty) {
        while (m->nended)
            if (!send_off(m, m->ended[--m->nended], err))
                return false;
        n = m->ndirty;
        m->ndirty = 0; /* lane i may append itself anew, at index i or before it */
        for (uint32_t i = 0; i < n; i++)
            if (!choose(m, m->dirty[i], err))
                return false;
    }
    return true;
}

bool
sim_machine_settle(struct machine *m, struct rec_error *err)
{
    uint32_t c;
    if (!settle_ops(m, err))
        return false;
    while (m->colls_due && (c = sim_colls_start(m)) != NONE)
        if (!start_coll(m, c, err) || !settle_ops(m, err))
            return false;
    return true;
}

/* True for the end of an op that was preempted meanwhile. */
static inline bool
is_void(const struct machine *m, struct event_entry event)
{
    const struct lane *lane = &m->lane[(uint32_t)event.key];
    return lane->running.op == NONE || event.key >> 32 != lane->version;
}

static void
end_running(struct machine *m, struct event_entry event)
{
    struct lane *lane = &m->lane[(uint32_t)event.key];
    if (is_void(m, event))
        return;
    if ((uint32_t)event.key >= m->nlanes) {
        wake(m, (uint32_t)event.key - m->nlanes);
        return;
    }
    end_op(m, lane->running.op);
    stop_running(m, lane);
    mark_dirty(m, (uint32_t)event.key);
}

/* The time of the next end of an op. Void ends are dropped on the way. */
static inline double
next_end(struct machine *m)
{
    while (m->ends.n && is_void(m, m->ends.event[0]))
        event_queue_pop(&m->ends);
    return m->ends.n ? m->ends.event[0].time : (double)INFINITY;
}

static inline void
pass_time(struct machine *m, double time)
{
    double elapsed = time - m->now;
    if (m->memory && elapsed > 0)
        sim_memory_settle(m->memory, m->now);
    if (m->nsending)
        m->result->comm += elapsed;
    if (m->nbusy)
        m->result->comp += elapsed;
    m->result->busy += m->nbusy * elapsed;
    m->now = time;
}

void
sim_machine_arrive(struct machine *m, uint64_t batch, double time)
{
    pass_time(m, time);
    land(m, batch);
}

/* The time of the next arrival. If others let the courier's events happen, it is now when
 * they have: the lanes of what arrived have not chosen yet. */
static inline double
next_arrival(const struct machine *m, const struct sim_courier *courier, void *carrier)
{
    if (m->drives)
        return courier->next(carrier);
    return m->ndirty || m->colls_due ? m->now : (double)INFINITY;
}

double
sim_machine_next(struct machine *m)
{
    double end = next_end(m), arrival = next_arrival(m, m->courier, m->carrier);
    return end < arrival ? end : arrival;
}

/* sim_machine_advance() by a courier that the compiler may know. */
ALWAYS_INLINE static bool
advance(struct machine *m, const struct sim_courier *courier, void *carrier, double until,
        struct rec_error *err)
{
    for (;;) {
        double end = next_end(m), arrival = next_arrival(m, courier, carrier);
        double time = end < arrival ? end : arrival;
        if (!(time <= until) || time == (double)INFINITY)
            return true;
        pass_time(m, time);
        if (arrival == time && m->drives &&
            !courier->advance(carrier, time, land, m, err))
            return false;
        while (m->ends.n && m->ends.event[0].time == time)
            end_running(m, event_queue_pop(&m->ends));
        if ((m->nended || m->ndirty || m->colls_due) && !sim_machine_settle(m, err))
            return false;
    }
}

/* The loop is there twice, once for sim_alone: its functions are inlined. Calls by
 * pointers would cost 7 % of a step. */
bool
sim_machine_advance(struct machine *m, double until, struct rec_error *err)
{
    return m->courier == &sim_alone ? advance(m, &sim_alone, m, until, err)
                                    : advance(m, m->courier, m->carrier, until, err);
}
