/*
 * What ops hold while a step runs (struct graph_hold), and its peak on each server. Ops
 * of an instant may end in any order, so nothing is counted before the instant is over:
 * what is released then makes room for what is held then.
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

struct memory {
    const struct graph *graph;
    const struct sim_placed *placed;
    const struct sim_observer *observer;
    double *bytes;     /* per server: held now */
    double *peak;      /* per server, with what it needs throughout */
    uint32_t *at;      /* per server: the op at whose end its peak was; GRAPH_NONE */
    uint32_t *last;    /* per server: the first of the ops that hold since this instant */
    uint32_t *held;    /* per server: holds; none left: bytes is 0, also after rounding */
    uint32_t *changed; /* servers whose bytes have changed at this instant */
    bool *has_changed; /* per server */
    uint32_t nchanged;
    uint32_t *own;   /* per op: its hold until the op ends, then GRAPH_NONE */
    uint32_t *start; /* the holds that op i releases are list[start[i]..start[i + 1]) */
    uint32_t *list;
    bool *released;  /* per hold: the op that releases it has ended */
    uint32_t nearly; /* holds that were released, but are not held yet */
    uint32_t early;  /* one that was so when an instant was over; GRAPH_NONE */
};

/* Groups the holds by the op that releases them. */
static void
group_holds(struct memory *m)
{
    const struct graph *graph = m->graph;
    for (size_t i = 0; i < graph->nholds; i++) {
        m->own[graph->hold[i].op] = (uint32_t)i;
        if (graph->hold[i].release != GRAPH_NONE)
            m->start[graph->hold[i].release + 1]++;
    }
    for (size_t i = 0; i < graph->nops; i++)
        m->start[i + 1] += m->start[i];
    for (size_t i = 0; i < graph->nholds; i++)
        if (graph->hold[i].release != GRAPH_NONE)
            m->list[m->start[graph->hold[i].release]++] = (uint32_t)i;
    for (size_t i = graph->nops; i > 0; i--)
        m->start[i] = m->start[i - 1];
    m->start[0] = 0;
}

struct memory *
sim_memory_new(const struct sim_placed *placed, const struct sim_observer *observer,
               struct rec_error *err)
{
    size_t nservers = placed->nservers, nops = placed->graph->nops,
           nholds = placed->graph->nholds;
    struct memory *m = calloc(1, sizeof *m);
    if (!m) {
        rec_fail_memory(err);
        return NULL;
    }
    m->graph = placed->graph;
    m->placed = placed;
    m->observer = observer && observer->hold ? observer : NULL;
    m->bytes = calloc(nservers + 1, sizeof *m->bytes);
    m->peak = calloc(nservers + 1, sizeof *m->peak);
    m->at = malloc((nservers + 1) * sizeof *m->at);
    m->last = malloc((nservers + 1) * sizeof *m->last);
    m->held = calloc(nservers + 1, sizeof *m->held);
    m->changed = malloc((nservers + 1) * sizeof *m->changed);
    m->has_changed = calloc(nservers + 1, sizeof *m->has_changed);
    m->own = malloc((nops + 1) * sizeof *m->own);
    m->start = calloc(nops + 1, sizeof *m->start);
    m->list = malloc((nholds + 1) * sizeof *m->list);
    m->released = calloc(nholds + 1, sizeof *m->released);
    if (!m->bytes || !m->peak || !m->at || !m->last || !m->held || !m->changed ||
        !m->has_changed || !m->own || !m->start || !m->list || !m->released) {
        sim_memory_free(m);
        rec_fail_memory(err);
        return NULL;
    }
    memset(m->own, 0xff, nops * sizeof *m->own); /* GRAPH_NONE */
    memset(m->at, 0xff, nservers * sizeof *m->at);
    memset(m->last, 0xff, nservers * sizeof *m->last);
    m->early = GRAPH_NONE;
    for (size_t i = 0; i < nservers && placed->memory; i++)
        m->peak[i] = placed->memory[i];
    group_holds(m);
    return m;
}

void
sim_memory_free(struct memory *m)
{
    if (!m)
        return;
    free(m->bytes);
    free(m->peak);
    free(m->at);
    free(m->last);
    free(m->held);
    free(m->changed);
    free(m->has_changed);
    free(m->own);
    free(m->start);
    free(m->list);
    free(m->released);
    free(m);
}

static void
change(struct memory *m, uint32_t server)
{
    if (m->has_changed[server])
        return;
    m->has_changed[server] = true;
    m->changed[m->nchanged++] = server;
}

static void
release(struct memory *m, const struct graph_hold *hold)
{
    uint32_t server = m->placed->server[hold->op];
    /* fmax(): rounding may leave less than nothing of bytes that are no whole numbers */
    m->bytes[server] = fmax(0, m->bytes[server] - hold->bytes);
    if (--m->held[server] == 0)
        m->bytes[server] = 0;
    change(m, server);
}

/* The op of a hold has ended. */
static void
hold_from_now(struct memory *m, uint32_t index)
{
    const struct graph_hold *hold = &m->graph->hold[index];
    uint32_t server = m->placed->server[hold->op];
    if (m->released[index]) { /* at this instant: it is held for no time */
        m->nearly--;
        return;
    }
    m->bytes[server] += hold->bytes;
    m->held[server]++;
    if (m->last[server] == GRAPH_NONE || hold->op < m->last[server])
        m->last[server] = hold->op;
    change(m, server);
}

void
sim_memory_end(struct memory *m, uint32_t op)
{
    uint32_t own = m->own[op];
    for (uint32_t i = m->start[op]; i < m->start[op + 1]; i++) {
        const struct graph_hold *hold = &m->graph->hold[m->list[i]];
        m->released[m->list[i]] = true;
        if (m->own[hold->op] == GRAPH_NONE)
            release(m, hold);
        else
            m->nearly++;
    }
    m->own[op] = GRAPH_NONE;
    if (own != GRAPH_NONE)
        hold_from_now(m, own);
}

/* Finds a hold that was released, but whose op has not ended. */
static void
find_early(struct memory *m)
{
    for (uint32_t i = 0; i < m->graph->nholds && m->early == GRAPH_NONE; i++)
        if (m->released[i] && m->own[m->graph->hold[i].op] != GRAPH_NONE)
            m->early = i;
}

void
sim_memory_settle(struct memory *m, double time)
{
    if (m->nearly && m->early == GRAPH_NONE)
        find_early(m);
    while (m->nchanged) {
        uint32_t server = m->changed[--m->nchanged];
        double need = m->placed->memory ? m->placed->memory[server] : 0;
        if (m->bytes[server] + need > m->peak[server]) {
            m->peak[server] = m->bytes[server] + need;
            m->at[server] = m->last[server];
        }
        m->has_changed[server] = false;
        m->last[server] = GRAPH_NONE;
        if (m->observer)
            m->observer->hold(m->observer->context, server, time, m->bytes[server]);
    }
}

static bool
fail_early(const struct memory *m, struct rec_error *err)
{
    const struct graph_hold *hold = &m->graph->hold[m->early];
    return rec_fail(err, REC_DATA,
                    "graph '%s': op '%s' releases what op '%s' holds, but ends before it",
                    m->graph->id, m->graph->op[hold->release].id,
                    m->graph->op[hold->op].id);
}

bool
sim_memory_finish(struct memory *m, double time, struct sim_step *step,
                  struct rec_error *err)
{
    sim_memory_settle(m, time);
    if (m->early != GRAPH_NONE)
        return fail_early(m, err);
    step->peak_server = 0;
    for (uint32_t i = 0; i < m->placed->nservers; i++)
        if (m->peak[i] > m->peak[step->peak_server])
            step->peak_server = i;
    step->peak_memory = m->peak[step->peak_server];
    step->peak_op = m->at[step->peak_server];
    if (m->placed->peak)
        memcpy(m->placed->peak, m->peak, m->placed->nservers * sizeof *m->peak);
    for (size_t i = 0; i < m->graph->nholds; i++)
        if (m->graph->hold[i].release == GRAPH_NONE)
            release(m, &m->graph->hold[i]);
    sim_memory_settle(m, time);
    return true;
}
