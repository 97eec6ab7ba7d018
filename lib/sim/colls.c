/*
 * Colls in a step: exchanges of groups of ops. A coll is ready when all ops of its group
 * have ended. If it has a lane, it queues on each server of its group, and starts when it
 * is the first in all these queues. Colls that become ready at one instant queue in the
 * order of their records, so they do so when all else at that instant has happened. The
 * order is the same in all queues: of those that have not ended, the coll that was ready
 * first is the first everywhere, so queues never wait for each other in a circle.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

struct queue {
    uint32_t first, last; /* places; NONE: it is empty */
};

/* A coll on one server of its group. */
struct place {
    uint32_t coll, queue;
    uint32_t next; /* the place behind it in the queue */
};

struct state {
    uint32_t waiting; /* ops that have not ended */
    uint32_t blocked; /* queues of which it is not the first */
    uint32_t first;   /* place[first..first of the next coll) */
    double started;   /* seconds */
};

struct colls {
    struct state *state; /* per coll, and one more */
    struct place *place;
    struct queue *queue;
    uint32_t *ready; /* all ops have ended at this instant, and it does not queue yet */
    uint32_t nready;
    uint32_t *due; /* nothing keeps it from starting; in their order, as each is once */
    uint32_t ndue, nstarted;
};

/* ---- preparation ----------------------------------------------------------- */

/* The queues of a lane are numbered in the order in which they are first used: `known`
 * maps a server and a lane to a queue. */
static bool
find_queue(struct rec_map *known, struct rec_arena *keys, uint32_t *nqueues,
           uint32_t server, const char *lane, uint32_t *queue, struct rec_error *err)
{
    struct rec_text text;
    const char *copy = NULL;
    char *key;
    bool ok;
    if (!rec_text_open(&text, err))
        return false;
    fprintf(text.out, "%u %s", server, lane);
    if (!(key = rec_text_close(&text, err)))
        return false;
    *queue = rec_map_get(known, rec_str(key));
    ok = *queue != REC_NONE || ((copy = rec_arena_copy(keys, rec_str(key), err)) &&
                                rec_map_add(known, rec_str(copy), *nqueues, err));
    if (ok && copy)
        *queue = (*nqueues)++;
    free(key);
    return ok;
}

/* The places of the colls that have a lane. seen[server] is 1 + the last coll that has a
 * place there. */
static bool
make_places(const struct machine *m, struct colls *colls, uint32_t *seen,
            uint32_t *nqueues, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    struct rec_map known = {0};
    struct rec_arena keys = {0};
    uint32_t n = 0;
    bool ok = true;
    for (uint32_t c = 0; ok && c < graph->ncolls; c++) {
        const struct graph_coll *coll = &graph->coll[c];
        colls->state[c].first = n;
        for (uint32_t i = 0; ok && coll->lane && i < coll->n; i++) {
            uint32_t server = m->placed->server[graph->coll_op[coll->first + i]];
            if (seen[server] == c + 1)
                continue;
            seen[server] = c + 1;
            colls->place[n] = (struct place){.coll = c, .next = NONE};
            ok = find_queue(&known, &keys, nqueues, server, coll->lane,
                            &colls->place[n++].queue, err);
        }
    }
    colls->state[graph->ncolls].first = n;
    rec_map_free(&known);
    rec_arena_free(&keys);
    return ok;
}

static bool
make_queues(const struct machine *m, struct colls *colls, struct rec_error *err)
{
    uint32_t *seen = calloc((size_t)m->placed->nservers + 1, sizeof *seen), n = 0;
    bool ok = (seen || rec_fail_memory(err)) && make_places(m, colls, seen, &n, err);
    free(seen);
    if (!ok)
        return false;
    if (!(colls->queue = malloc((n + (size_t)1) * sizeof *colls->queue)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < n; i++)
        colls->queue[i] = (struct queue){NONE, NONE};
    return true;
}

/* The batch of each coll. */
static void
make_batches(struct machine *m)
{
    const struct graph *graph = m->graph;
    uint32_t at = (uint32_t)graph->ndeps;
    m->coll_batch = m->task[graph->nops].batch;
    for (size_t c = 0; c < graph->ncolls; c++) {
        const struct graph_coll *coll = &graph->coll[c];
        uint32_t n = coll->nafter;
        double key = m->placed->courier ? m->placed->coll_exchange[c] != GRAPH_NONE
                                        : m->placed->coll_seconds[c];
        for (uint32_t d = 0; d < n; d++)
            m->target[at + d] = graph->after[coll->after + d].dst;
        m->batch[m->coll_batch + c] =
            (struct batch){key, n == 1 ? m->target[at] : at, n & INT32_MAX, true};
        at += n;
    }
}

bool
sim_colls_prepare(struct machine *m, struct rec_error *err)
{
    const struct graph *graph = m->graph;
    size_t n = graph->ncolls;
    struct colls *colls;
    m->coll_batch = NONE;
    if (n == 0)
        return true;
    m->colls = colls = calloc(1, sizeof *colls);
    if (!colls)
        return rec_fail_memory(err);
    colls->state = calloc(n + 1, sizeof *colls->state);
    colls->place = malloc((graph->ncoll_ops + 1) * sizeof *colls->place);
    colls->ready = malloc(n * sizeof *colls->ready);
    colls->due = malloc(n * sizeof *colls->due);
    if (!colls->state || !colls->place || !colls->ready || !colls->due)
        return rec_fail_memory(err);
    for (size_t c = 0; c < n; c++)
        colls->state[c].waiting = graph->coll[c].n;
    make_batches(m);
    return make_queues(m, colls, err);
}

void
sim_colls_free(struct colls *colls)
{
    if (!colls)
        return;
    free(colls->state);
    free(colls->place);
    free(colls->queue);
    free(colls->ready);
    free(colls->due);
    free(colls);
}

/* ---- events ---------------------------------------------------------------- */

void
sim_colls_end_op(struct machine *m, uint32_t op)
{
    const struct graph *graph = m->graph;
    for (uint32_t j = graph->coll_of_start[op]; j < graph->coll_of_start[op + 1]; j++)
        if (--m->colls->state[graph->coll_of[j]].waiting == 0)
            m->colls->ready[m->colls->nready++] = graph->coll_of[j];
    m->colls_due = m->colls_due || m->colls->nready;
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void
enqueue(struct colls *colls, uint32_t c)
{
    for (uint32_t i = colls->state[c].first; i < colls->state[c + 1].first; i++) {
        struct queue *queue = &colls->queue[colls->place[i].queue];
        if (queue->first == NONE)
            queue->first = i;
        else {
            colls->place[queue->last].next = i;
            colls->state[c].blocked++;
        }
        queue->last = i;
    }
    if (colls->state[c].blocked == 0)
        colls->due[colls->ndue++] = c;
}

uint32_t
sim_colls_start(struct machine *m)
{
    struct colls *colls = m->colls;
    uint32_t c;
    qsort(colls->ready, colls->nready, sizeof *colls->ready, by_number);
    for (uint32_t i = 0; i < colls->nready; i++)
        enqueue(colls, colls->ready[i]);
    colls->nready = 0;
    m->colls_due = colls->nstarted < colls->ndue;
    if (!m->colls_due)
        return NONE;
    c = colls->due[colls->nstarted++];
    colls->state[c].started = m->now;
    return c;
}

void
sim_colls_end(struct machine *m, uint32_t c)
{
    struct colls *colls = m->colls;
    uint32_t first = colls->state[c].first, end = colls->state[c + 1].first;
    if (m->observer && m->observer->coll && m->batch[m->coll_batch + c].key != 0)
        m->observer->coll(m->observer->context, c, colls->state[c].started, m->now);
    for (uint32_t i = first; i < end; i++) {
        struct queue *queue = &colls->queue[colls->place[i].queue];
        uint32_t next;
        queue->first = colls->place[i].next;
        if (queue->first == NONE)
            continue;
        next = colls->place[queue->first].coll;
        if (--colls->state[next].blocked == 0)
            colls->due[colls->ndue++] = next;
    }
    m->colls_due = colls->nstarted < colls->ndue || colls->nready > 0;
}

bool
sim_colls_missing(const struct machine *m, uint32_t op, uint32_t *coll)
{
    const struct graph *graph = m->graph;
    for (size_t d = 0; d < graph->nafter; d++) {
        *coll = graph->after[d].src;
        if (graph->after[d].dst == op && m->colls->state[*coll].waiting)
            return true;
    }
    return false;
}
