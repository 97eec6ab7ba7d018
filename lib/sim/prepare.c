/* Before a training step: ranks of ops, batches of deps, the arrays of the machine. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

static int
by_key(const void *a, const void *b, void *context)
{
    const double *key = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (key[x] != key[y])
        return key[x] < key[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sorts the deps of an op by their key; equal ones stay in order. Most ops have few deps,
 * for which insertion is faster than qsort_r(). */
static void
sort_deps(uint32_t *dep, uint32_t n, const double *key)
{
    if (n > 32) {
        qsort_r(dep, n, sizeof *dep, by_key, (void *)(uintptr_t)key);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t d = dep[i], j = i;
        for (; j > 0 && key[dep[j - 1]] > key[d]; j--)
            dep[j] = dep[j - 1];
        dep[j] = d;
    }
}

/* Groups the deps of each op that have equal keys into batches. If nobody asks for `dep`,
 * `target` holds the sorted deps first, and each entry is replaced by its destination
 * when it has been read. A batch that grows beyond one dep changes `first` from a
 * destination to an index. */
static void
make_batches(struct machine *m, const double *key)
{
    const struct graph *graph = m->graph;
    uint32_t n = 0, *dep = m->dep;

    if (!dep)
        dep = m->target;
    memcpy(dep, graph->out, graph->ndeps * sizeof *dep);
    for (size_t i = 0; i < graph->nops; i++) {
        uint32_t first = graph->out_start[i], end = graph->out_start[i + 1];
        sort_deps(dep + first, end - first, key);
        m->task[i].batch = n;
        for (uint32_t j = first; j < end; j++) {
            const struct graph_dep *d = &graph->dep[dep[j]];
            double own = key[dep[j]];
            m->target[j] = d->dst | (d->sync ? SYNC : 0);
            m->task[d->dst].waiting += !d->sync;
            if (j > first && own == m->batch[n - 1].key) {
                if (m->batch[n - 1].n++ == 1)
                    m->batch[n - 1].first = j - 1;
                continue;
            }
            if (m->first_dep)
                m->first_dep[n] = j;
            m->batch[n++] = (struct batch){own, m->target[j], 1};
        }
    }
    m->task[graph->nops].batch = n;
}

/* Asks the courier for the keys of all deps; those of sim_alone are at hand. */
static bool
batch_deps(struct machine *m, struct rec_error *err)
{
    const struct sim_placed *placed = m->placed;
    size_t ndeps = m->graph->ndeps;
    double *key;

    if (!placed->courier) {
        make_batches(m, placed->dep_seconds);
        return true;
    }
    key = malloc((ndeps + 1) * sizeof *key);
    if (!key)
        return rec_fail_memory(err);
    for (uint32_t d = 0; d < ndeps; d++)
        key[d] = m->courier->key(m->carrier, placed, d);
    make_batches(m, key);
    free(key);
    return true;
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
    if ((placed->courier || sends) && !(m->dep = malloc(n * sizeof *m->dep)))
        return rec_fail_memory(err);
    if (placed->courier && sends) {
        m->first_dep = malloc(n * sizeof *m->first_dep);
        m->left = malloc(n * sizeof *m->left);
        if (!m->first_dep || !m->left)
            return rec_fail_memory(err);
    }
    return true;
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

bool
sim_machine_prepare(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t nops = graph->nops, ndeps = graph->ndeps;
    uint32_t nlanes = m->placed->lane ? m->placed->nlanes : m->placed->nservers;

    m->task = calloc(nops + 1, sizeof *m->task);
    m->batch = malloc((ndeps + 1) * sizeof *m->batch);
    m->target = malloc((ndeps + 1) * sizeof *m->target);
    m->lane = calloc((size_t)nlanes + 1, sizeof *m->lane);
    m->ready = malloc((nops + 1) * sizeof *m->ready);
    m->dirty = malloc(((size_t)nlanes + 1) * sizeof *m->dirty);
    m->ended = malloc((nops + 1) * sizeof *m->ended);
    if (!m->task || !m->batch || !m->target || !m->lane || !m->ready || !m->dirty ||
        !m->ended)
        return rec_fail_memory(err);
    if (!prepare_courier(m, err) || !batch_deps(m, err))
        return false;
    make_ranks(m);
    m->ops_left = nops;
    m->deps_left = ndeps;
    prepare_lanes(m, nlanes);
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
    free(m->task);
    free(m->batch);
    free(m->target);
    free(m->dep);
    free(m->first_dep);
    free(m->left);
    free(m->lane);
    free(m->ready);
    free(m->running);
    free(m->dirty);
    free(m->ended);
}
