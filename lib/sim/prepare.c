/* Before a training step: ranks of ops, batches of deps, the arrays of the machine. */
#include "private.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Asks for large pages for an array that is not used yet. A step reads its arrays in no
 * order. If they are large, the processor looks up the address of nearly every small
 * page anew, and waits for that. Without large pages nothing changes but the time. */
static void
want_large_pages(void *array, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 1 << 21 }; /* bytes */
    size_t before = (PAGE - (uintptr_t)array % PAGE) % PAGE;
    if (bytes >= PAGE)
        (void)madvise((char *)array + before, (bytes - before) / PAGE * PAGE,
                      MADV_HUGEPAGE);
#else
    (void)array, (void)bytes;
#endif
}

/* Deps of a row, one after another, that have the same key. */
struct run {
    double key;
    uint32_t first, n; /* dep[first..first + n) of the graph */
    uint32_t to;       /* where the first one goes, with GRAPH_SYNC if they are sync */
};

static int
by_key(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts the runs of an op by their key; equal ones stay in order. Most ops have few, for
 * which insertion is faster than qsort(). */
static void
sort_runs(struct run *run, uint32_t n)
{
    if (n > 32) {
        qsort(run, n, sizeof *run, by_key);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        struct run r = run[i];
        uint32_t j = i;
        for (; j > 0 && run[j - 1].key > r.key; j--)
            run[j] = run[j - 1];
        run[j] = r;
    }
}

/* Rows stand in the order of the ops that they leave, keys in that of the records of the
 * deps: a key is fetched from memory when its row is this far ahead. */
enum { AHEAD = 32 };

/* True if one of the last few of n runs has this key. */
static inline bool
has_come(const struct run *run, uint32_t n, double key)
{
    for (uint32_t i = n; i > 0 && i + 8 > n; i--)
        if (run[i - 1].key == key)
            return true;
    return false;
}

/* Finds the runs of an op. Returns their number. Of sync deps, for which no op waits, one
 * run with a key is enough, if nobody asks for the deps. */
static uint32_t
find_runs(const struct machine *m, uint32_t op, const double *key, struct run *run)
{
    const struct graph *graph = m->graph;
    uint32_t n = 0;
    for (uint32_t i = graph->row_start[op]; i < graph->row_start[op + 1]; i++) {
        struct graph_row row = graph->row[i];
        const double *k = key + row.first;
        bool bare = row.to & GRAPH_SYNC && !m->dep;

        if (i + AHEAD < graph->nrows)
            __builtin_prefetch(&key[graph->row[i + AHEAD].first]);
        for (uint32_t j = 0, from; (from = j) < row.n;) {
            while (++j < row.n && k[j] == k[from])
                ;
            if (!bare || !has_come(run, n, k[from]))
                run[n++] =
                    (struct run){k[from], row.first + from, j - from, row.to + from};
        }
    }
    return n;
}

/* Writes the ops that wait for the deps of a run to `to`: none waits for a sync dep.
 * Returns the end of what was written. */
static inline uint32_t *
add_targets(uint32_t *to, struct run run)
{
    uint32_t n = run.to & GRAPH_SYNC ? 0 : run.n;
    for (uint32_t i = 0; i < n; i++)
        to[i] = run.to + i;
    return to + n;
}

/* Makes batches of the runs of an op, from batch[n] on. Their targets stand from
 * target[*at] on, their deps from dep[j] on. A batch of one target has it in `first`, a
 * larger one an index. Returns the number of all batches so far. */
static uint32_t
add_batches(struct machine *m, const struct run *run, uint32_t nruns, uint32_t j,
            uint32_t n, uint32_t *at)
{
    for (const struct run *stop = run + nruns; run < stop;) {
        uint32_t *first = m->target + *at, *end = first;
        double key = run->key;
        if (m->dep)
            m->first_dep[n] = j;
        do {
            end = add_targets(end, *run);
            for (uint32_t i = 0; m->dep && i < run->n; i++)
                m->dep[j++] = run->first + i;
        } while (++run < stop && run->key == key);
        m->batch[n++] = (struct batch){key, end - first == 1 ? *first : *at,
                                       (uint32_t)(end - first) & INT32_MAX, run == stop};
        *at += (uint32_t)(end - first);
    }
    return n;
}

enum { FEW = 16 };

/* Most ops that are not split have few deps, with keys of their own: each is a batch, and
 * its op stands in it. They are written from batch[n] on, each to its place, which is
 * the number of smaller keys: sorting would take branches that the processor predicts
 * wrongly. Returns the end of what was written; NONE: this op has others. */
static uint32_t
add_single(const struct machine *m, uint32_t op, const double *key, uint32_t n)
{
    const struct graph *graph = m->graph;
    const uint32_t begin = graph->row_start[op], count = graph->row_start[op + 1] - begin;
    double keys[FEW];
    uint32_t place[FEW];
    bool equal = false;
    if (count > FEW)
        return NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct graph_row *row = &graph->row[begin + i];
        double k = key[row->first];
        uint32_t at = 0;
        if (begin + i + AHEAD < graph->nrows)
            __builtin_prefetch(&key[row[AHEAD].first]);
        if (row->n != 1 || row->to & GRAPH_SYNC)
            return NONE;
        for (uint32_t j = 0; j < i; j++) {
            bool after = k > keys[j];
            at += after;
            place[j] += !after;
            equal |= k == keys[j];
        }
        keys[i] = k;
        place[i] = at;
    }
    if (equal)
        return NONE;
    for (uint32_t i = 0; i < count; i++)
        m->batch[n + place[i]] =
            (struct batch){keys[i], graph->row[begin + i].to, 1, place[i] + 1 == count};
    return n + count;
}

/* Groups the deps of each op that have equal keys into batches. */
static bool
make_batches(struct machine *m, const double *key, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    bool whole = graph->nunits == graph->nops; /* no op is split */
    uint32_t n = 0, at = 0, most = 0;
    struct run *run;

    for (size_t i = 0; i < graph->nops; i++)
        if (graph->out_start[i + 1] - graph->out_start[i] > most)
            most = graph->out_start[i + 1] - graph->out_start[i];
    run = malloc(((size_t)most + 1) * sizeof *run);
    if (!run)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < graph->nops; i++) {
        uint32_t end = whole && !m->dep ? add_single(m, i, key, n) : NONE;
        m->task[i].batch = n;
        if (end == NONE) {
            uint32_t nruns = find_runs(m, i, key, run);
            sort_runs(run, nruns);
            end = add_batches(m, run, nruns, graph->out_start[i], n, &at);
        }
        n = end;
    }
    m->task[graph->nops].batch = n;
    if (m->dep)
        m->first_dep[n] = (uint32_t)graph->ndeps;
    free(run);
    return true;
}

/* Asks the courier for the keys of all deps; those of sim_alone are at hand. */
static bool
batch_deps(struct machine *m, struct rec_error *err)
{
    const struct sim_placed *placed = m->placed;
    size_t ndeps = m->graph->ndeps;
    double *key;
    bool ok;

    if (!placed->courier)
        return make_batches(m, placed->dep_seconds, err);
    key = malloc((ndeps + 1) * sizeof *key);
    if (!key)
        return rec_fail_memory(err);
    for (uint32_t d = 0; d < ndeps; d++)
        key[d] = m->courier->key(m->carrier, placed, d);
    ok = make_batches(m, key, err);
    free(key);
    return ok;
}

/* Chooses what carries the deps, and makes the arrays that only some couriers and
 * observers need. */
static bool
prepare_courier(struct machine *m, struct rec_error *err)
{
    const struct sim_placed *placed = m->placed;
    bool sends = m->observer && m->observer->send;
    size_t n = m->graph->ndeps + 1;

    m->courier = placed->courier ? placed->courier : &sim_alone;
    m->carrier = placed->courier ? placed->carrier : m;
    m->foretold = sends && !placed->courier;
    if (placed->courier)
        m->member = (uint64_t)placed->member << 32;
    else
        m->drives = true;
    if (placed->courier || sends) {
        m->dep = malloc(n * sizeof *m->dep);
        m->first_dep = malloc(n * sizeof *m->first_dep);
        if (!m->dep || !m->first_dep)
            return rec_fail_memory(err);
    }
    return !(placed->courier && sends) || (m->left = malloc(n * sizeof *m->left)) ||
           rec_fail_memory(err);
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

/* Counts the servers with ops. If servers have several lanes, it makes what counts those
 * that run. */
static bool
prepare_servers(struct machine *m, uint32_t nlanes, struct rec_error *err)
{
    uint32_t nservers = m->placed->nservers;
    if (!m->placed->lane) {
        for (uint32_t i = 0; i < nlanes; i++)
            m->result->used += m->lane[i].nops > 0;
        return true;
    }
    m->running = calloc((size_t)nservers + 1, sizeof *m->running);
    if (!m->running)
        return rec_fail_memory(err);
    for (size_t i = 0; i < m->graph->nops; i++)
        m->running[m->placed->server[i]] = 1;
    for (uint32_t i = 0; i < nservers; i++)
        m->result->used += m->running[i];
    memset(m->running, 0, nservers * sizeof *m->running);
    return true;
}

/* The heaps or lists of all lanes share one array: a lane's part has room for all its
 * ops. */
static void
prepare_lanes(struct machine *m, uint32_t nlanes)
{
    const struct sim_placed *placed = m->placed;
    const uint32_t *turn = placed->turn;
    uint32_t next = 0;

    for (size_t i = 0; i < m->graph->nops; i++) {
        struct task *task = &m->task[i];
        struct lane *lane;
        task->lane = placed->lane ? placed->lane[i] : placed->server[i];
        task->waiting = m->graph->parents[i];
        task->remaining = m->graph->op[i].compute;
        task->placed = placed->placed[i];
        m->result->sequential += task->remaining;
        lane = &m->lane[task->lane];
        lane->server = placed->server[i];
        lane->nops++;
        if (turn && turn[i] != GRAPH_NONE) {
            lane->strict = true;
            task->placed = turn[i];
        }
    }
    for (uint32_t i = 0; i < nlanes; i++) {
        m->lane[i].first = next;
        m->lane[i].running.op = NONE;
        next += m->lane[i].nops;
    }
    for (uint32_t i = 0; turn && i < m->graph->nops; i++)
        if (turn[i] != GRAPH_NONE)
            m->ready[m->lane[m->task[i].lane].first + turn[i]] =
                (struct ready){0, turn[i], i};
}

/* Ops of slow servers take longer; those of late ones find their lanes asleep. */
static void
prepare_pace(struct machine *m)
{
    const struct sim_placed *placed = m->placed;
    for (size_t i = 0; placed->pace && i < m->graph->nops; i++) {
        double speed, delay;
        placed->pace(placed->names, placed->server[i], &speed, &delay);
        m->task[i].remaining /= speed;
        m->lane[m->task[i].lane].asleep = delay > 0;
        m->lane[m->nlanes + placed->server[i]].started = delay;
    }
}

/* ---- plans ------------------------------------------------------------------- */

struct sim_plan {
    struct task *task; /* ranks and batches of ops */
    struct batch *batch;
    uint32_t *target, *dep, *first_dep;
};

void
sim_plan_free(struct sim_plan *plan)
{
    if (!plan)
        return;
    free(plan->task);
    free(plan->batch);
    free(plan->target);
    free(plan->dep);
    free(plan->first_dep);
    free(plan);
}

size_t
sim_plan_bytes(const struct graph *graph)
{
    return graph->nops * sizeof(struct task) +
           graph->ndeps * (sizeof(struct batch) + 3 * sizeof(uint32_t));
}

/* The first machine leaves its arrays to the plan. */
static bool
keep_plan(struct machine *m, struct rec_error *err)
{
    size_t bytes = (m->graph->nops + 1) * sizeof *m->task;
    struct sim_plan *plan;
    if (!m->placed->plan)
        return true;
    if (!(plan = calloc(1, sizeof *plan)) || !(plan->task = malloc(bytes))) {
        free(plan);
        return rec_fail_memory(err);
    }
    memcpy(plan->task, m->task, bytes);
    plan->batch = m->batch;
    plan->target = m->target;
    plan->dep = m->dep;
    plan->first_dep = m->first_dep;
    *m->placed->plan = plan;
    m->planned = true;
    return true;
}

/* Ranks and batches, by the plan if there is one. */
static bool
plan_step(struct machine *m, size_t ntargets, struct rec_error *err)
{
    const struct sim_plan *plan = m->placed->plan ? *m->placed->plan : NULL;
    if (plan) {
        free(m->dep);
        free(m->first_dep);
        memcpy(m->task, plan->task, (m->graph->nops + 1) * sizeof *m->task);
        m->batch = plan->batch;
        m->target = plan->target;
        m->dep = plan->dep;
        m->first_dep = plan->first_dep;
        m->planned = true;
        return true;
    }
    m->batch = malloc(ntargets * sizeof *m->batch);
    m->target = malloc(ntargets * sizeof *m->target);
    if (!m->batch || !m->target)
        return rec_fail_memory(err);
    want_large_pages(m->batch, ntargets * sizeof *m->batch);
    want_large_pages(m->target, ntargets * sizeof *m->target);
    if (!batch_deps(m, err))
        return false;
    make_ranks(m);
    return keep_plan(m, err);
}

/* If ops are split, their batches often arrive together. In chains they do so in another
 * order, which must change nothing: an observer sees the order, and what ops hold or
 * colls may depend on it. */
static bool
prepare_chains(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t n = m->task[graph->nops].batch + (size_t)1;
    if (m->courier != &sim_alone || m->observer || graph->nholds || graph->ncolls ||
        graph->nunits == graph->nops)
        return true;
    m->next = malloc(n * sizeof *m->next);
    m->chained = calloc(n / 64 + 1, sizeof *m->chained);
    return (m->next && m->chained) || rec_fail_memory(err);
}

bool
sim_machine_prepare(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t nops = graph->nops;
    size_t ntargets = graph->ndeps + graph->nafter + graph->ncolls + 1;
    uint32_t nlanes = m->placed->lane ? m->placed->nlanes : m->placed->nservers;
    size_t late = m->placed->pace ? m->placed->nservers : 0;

    m->task = calloc(nops + 1, sizeof *m->task);
    m->lane = calloc(nlanes + late + 1, sizeof *m->lane);
    m->nlanes = nlanes;
    m->ready = malloc((nops + 1) * sizeof *m->ready);
    m->dirty = malloc(((size_t)nlanes + 1) * sizeof *m->dirty);
    m->ended = malloc((nops + 1) * sizeof *m->ended);
    if (!m->task || !m->lane || !m->ready || !m->dirty || !m->ended)
        return rec_fail_memory(err);
    want_large_pages(m->task, (nops + 1) * sizeof *m->task);
    want_large_pages(m->ready, (nops + 1) * sizeof *m->ready);
    if (!prepare_courier(m, err) || !plan_step(m, ntargets, err))
        return false;
    m->ops_left = nops;
    m->batches_left = m->task[nops].batch + graph->ncolls;
    if (!prepare_chains(m, err))
        return false;
    prepare_lanes(m, nlanes);
    prepare_pace(m);
    if (!sim_colls_prepare(m, err))
        return false;
    if (!prepare_servers(m, nlanes, err) ||
        (graph->nholds && !(m->memory = sim_memory_new(m->placed, m->observer, err))))
        return false;
    for (uint32_t i = 0; i < nops; i++)
        if (m->task[i].waiting == 0)
            sim_machine_ready(m, i);
    return true;
}

void
sim_machine_release(struct machine *m)
{
    event_queue_free(&m->ends);
    event_queue_free(&m->arrivals);
    sim_memory_free(m->memory);
    sim_colls_free(m->colls);
    free(m->task);
    if (!m->planned) {
        free(m->batch);
        free(m->target);
        free(m->dep);
        free(m->first_dep);
    }
    free(m->left);
    free(m->next);
    free(m->chained);
    free(m->lane);
    free(m->ready);
    free(m->running);
    free(m->dirty);
    free(m->ended);
}
