/* Lanes that wait for each other, though the deps of the graph have no cycle: each waits
 * for its next op, and that waits for an op which another lane runs later. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* The text of a message, which is cut where there is no room. */
struct text {
    char text[600];
    size_t len;
};

static void put(struct text *text, const char *format, ...) REC_PRINTF(2, 3);

static void
put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (text->len < sizeof text->text)
        text->len += (size_t)vsnprintf(text->text + text->len,
                                       sizeof text->text - text->len, format, args);
    va_end(args);
}

static const char *
name_of(const struct machine *m, uint32_t op)
{
    return m->graph->op[op].id;
}

static void
put_lane(const struct machine *m, struct text *text, uint32_t op)
{
    const struct sim_placed *placed = m->placed;
    uint32_t lane = m->task[op].lane;
    char name[NET_NAME_MAX];
    if (placed->name_server)
        placed->name_server(placed->names, m->lane[lane].server, name);
    else
        snprintf(name, sizeof name, "%u", m->lane[lane].server);
    if (placed->lane_name && placed->lane_name[lane])
        put(text, "lane '%s' of ", placed->lane_name[lane]);
    put(text, "server %s", name);
}

/* The op that a lane waits for before it runs this one: the next one of a strict lane. */
static uint32_t
head_before(const struct machine *m, uint32_t op)
{
    const struct lane *lane = &m->lane[m->task[op].lane];
    return lane->strict ? m->ready[lane->first + lane->nready].op : op;
}

/* An op ended if nothing keeps it: all ready ops of other lanes have run. */
static bool
has_ended(const struct machine *m, uint32_t op)
{
    const struct task *task = &m->task[op];
    const struct lane *lane = &m->lane[task->lane];
    return task->waiting == 0 && (!lane->strict || task->placed < lane->nready);
}

/* An op of the group of a coll that has not ended. */
static uint32_t
missing_in_group(const struct machine *m, uint32_t coll)
{
    const uint32_t *op = m->graph->coll_op + m->graph->coll[coll].first;
    while (has_ended(m, *op))
        op++;
    return *op;
}

/* A parent of the op that has not ended, or one of the group of a coll for which it
 * waits, *coll; GRAPH_NONE: all have, but not all deps have arrived. */
static uint32_t
missing_parent(const struct machine *m, uint32_t op, uint32_t *coll)
{
    const struct graph *graph = m->graph;
    *coll = GRAPH_NONE;
    for (uint32_t j = graph->in_start[op]; j < graph->in_start[op + 1]; j++) {
        const struct graph_dep *dep = &graph->dep[graph->in[j]];
        if (!dep->sync && !has_ended(m, dep->src))
            return dep->src;
    }
    if (m->colls && sim_colls_missing(m, op, coll))
        return missing_in_group(m, *coll);
    return GRAPH_NONE;
}

/* Says what an op that is next waits for, and returns the op that this is behind. */
static uint32_t
put_wait(const struct machine *m, struct text *text, uint32_t op)
{
    uint32_t coll, parent = missing_parent(m, op, &coll), head;
    put_lane(m, text, op);
    put(text, " waits to run op '%s', which needs ", name_of(m, op));
    if (parent == GRAPH_NONE) {
        put(text, "what is on its way");
        return GRAPH_NONE;
    }
    if (coll != GRAPH_NONE)
        put(text, "coll '%s' and so ", m->graph->coll[coll].id);
    put(text, "op '%s'", name_of(m, parent));
    head = head_before(m, parent);
    if (head != parent) {
        put(text, ", which ");
        put_lane(m, text, parent);
        put(text, " runs after op '%s'", name_of(m, head));
    }
    return head;
}

static uint32_t
next_waiting(const struct machine *m, uint32_t op)
{
    uint32_t coll, parent = missing_parent(m, op, &coll);
    return parent == GRAPH_NONE ? GRAPH_NONE : head_before(m, parent);
}

/* An op that has not ended, and before which its lane runs no other. */
static uint32_t
first_waiting(const struct machine *m)
{
    uint32_t op = 0;
    while (has_ended(m, op))
        op++;
    return head_before(m, op);
}

bool
sim_machine_fail_lanes(const struct machine *m, struct rec_error *err)
{
    struct text text = {.len = 0};
    bool *seen = calloc(m->graph->nops + 1, sizeof *seen);
    uint32_t op = first_waiting(m), first;

    if (!seen)
        return rec_fail_memory(err);
    /* From op to op, until one comes again, which is on the cycle. */
    for (first = op; op != GRAPH_NONE && !seen[op]; op = next_waiting(m, op))
        seen[op] = true;
    free(seen);
    if (op != GRAPH_NONE)
        first = op;
    op = first;
    for (int n = 0; n < 8; n++) {
        put(&text, n ? "; " : "");
        op = put_wait(m, &text, op);
        if (op == first || op == GRAPH_NONE)
            break;
    }
    return rec_fail(err, REC_DATA,
                    "graph '%s': deadlock with %zu of %zu ops left to run: %s%s",
                    m->graph->id, m->ops_left, m->graph->nops, text.text,
                    op == first || op == GRAPH_NONE ? "" : "; ...");
}
