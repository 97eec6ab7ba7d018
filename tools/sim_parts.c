#include "sim_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a server does on its main lane; what exchanges it has beside is behind these. */
enum { FORWARD, BACKWARD, TASK, PASSES };
static const char *const passes[PASSES] = {"forward", "backward", "task"};

bool
parts_has(const struct sim_done *done)
{
    return done->layout && done->layout->where.lane;
}

static uint32_t
find_name(struct parts *parts, const char *text)
{
    struct parts_name *name;
    for (size_t i = 0; i < parts->nnames; i++)
        if (strncmp(parts->name[i].text, text, sizeof name->text - 1) == 0)
            return PASSES + (uint32_t)i;
    if (!rec_grow(&parts->name, &parts->name_room, parts->nnames + 1, sizeof *name,
                  NULL)) {
        parts->failed = true;
        return TASK;
    }
    name = &parts->name[parts->nnames];
    snprintf(name->text, sizeof name->text, "%s", text);
    return PASSES + (uint32_t)parts->nnames++;
}

static void
add(struct parts *parts, uint32_t slot, uint32_t what, double start, double end)
{
    if (!rec_grow(&parts->span, &parts->room, parts->n + 1, sizeof *parts->span, NULL))
        parts->failed = true;
    else
        parts->span[parts->n++] = (struct parts_span){start, end, slot, what};
}

/* ---- what happens -------------------------------------------------------------- */

static void
add_run(struct parts *parts, const struct sim_layout *layout, uint32_t op, double start,
        double end)
{
    const char *lane = graph_layout_lane_name(&layout->where, op);
    enum graph_pass pass = layout->where.graph->op[op].pass;
    uint32_t what = pass == GRAPH_FORWARD    ? FORWARD
                    : pass == GRAPH_BACKWARD ? BACKWARD
                                             : TASK;
    if (lane && strcmp(lane, "compute") != 0)
        what = find_name(parts, lane);
    add(parts, layout->where.slot[op], what, start, end);
}

static void
add_send(struct parts *parts, const struct sim_layout *layout, uint32_t d, double start,
         double end)
{
    const struct graph_dep *dep = &layout->where.graph->dep[d];
    uint32_t what = find_name(parts, "messages"), from = layout->where.slot[dep->src];
    uint32_t to = layout->where.slot[dep->dst];
    add(parts, from, what, start, end);
    if (to != from)
        add(parts, to, what, start, end);
}

static void
add_coll(struct parts *parts, const struct sim_layout *layout, uint32_t c, double start,
         double end)
{
    const struct graph *graph = layout->where.graph;
    const struct graph_coll *coll = &graph->coll[c];
    uint32_t what = find_name(parts, coll->lane ? coll->lane : graph_coll_name(coll));
    for (uint32_t i = 0; i < coll->n; i++)
        add(parts, layout->where.slot[graph->coll_op[coll->first + i]], what, start, end);
}

struct observing {
    struct parts *parts;
    const struct sim_layout *layout;
};

static void
observe_run(void *context, uint32_t op, double start, double end)
{
    struct observing *o = context;
    add_run(o->parts, o->layout, op, start, end);
}

static void
observe_send(void *context, uint32_t dep, double start, double end)
{
    struct observing *o = context;
    add_send(o->parts, o->layout, dep, start, end);
}

static void
observe_coll(void *context, uint32_t coll, double start, double end)
{
    struct observing *o = context;
    add_coll(o->parts, o->layout, coll, start, end);
}

bool
parts_observe(struct parts *parts, struct rec_writer *writer, const struct sim_done *done,
              const struct net *net, const uint32_t *servers, struct rec_error *err)
{
    struct observing o = {parts, done->layout};
    const struct sim_observer observer = {
        .run = observe_run, .send = observe_send, .coll = observe_coll, .context = &o};
    struct sim_cost again;
    return sim_layout_observe(done->layout, net, servers, &observer, &again, err) &&
           parts_write(parts, writer, done, 0, err);
}

void
parts_happened(struct parts *parts, const struct sim_done *done,
               const struct sim_moment *moment)
{
    const struct sim_layout *layout = done->layout;
    switch (moment->what) {
    case SIM_RAN:
        add_run(parts, layout, moment->which, moment->start, moment->end);
        break;
    case SIM_SENT:
        add_send(parts, layout, moment->which, moment->start, moment->end);
        break;
    case SIM_EXCHANGED:
        add_coll(parts, layout, moment->which, moment->start, moment->end);
        break;
    case SIM_CARRIED: break;
    }
}

/* ---- records ------------------------------------------------------------------- */

/* An end of a span. */
struct edge {
    double time;
    uint32_t slot, what;
    int more; /* 1: it begins, -1 */
};

static int
by_slot(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    if (x->time < y->time || x->time > y->time)
        return x->time < y->time ? -1 : 1;
    return 0;
}

static void
write_part(struct rec_writer *writer, const struct sim_done *done, uint32_t slot,
           const char *what, double seconds)
{
    if (seconds <= 0)
        return;
    rec_begin(writer, "part");
    rec_str_field(writer, done->job.id);
    rec_uint_field(writer, slot);
    rec_text_field(writer, what);
    rec_num_field(writer, seconds);
    rec_end(writer);
}

/* Each moment of a server belongs to the op on its main lane, or else to the first of the
 * exchanges that it has on its way, or else it waits. */
static void
write_slot(const struct parts *parts, struct rec_writer *writer,
           const struct sim_done *done, const struct edge *edge, size_t n, double start,
           double end, double *seconds)
{
    size_t kinds = PASSES + parts->nnames;
    double now = start, wait = 0;
    long *active = (long *)(void *)(seconds + kinds);
    memset(seconds, 0, kinds * (sizeof *seconds + sizeof *active));
    for (size_t i = 0; i <= n; i++) {
        double until = i < n ? edge[i].time : end;
        size_t what = 0;
        while (what < kinds && active[what] == 0)
            what++;
        *(what < kinds ? &seconds[what] : &wait) += until - now;
        now = until;
        if (i < n)
            active[edge[i].what] += edge[i].more;
    }
    for (size_t i = 0; i < kinds; i++)
        write_part(writer, done, edge->slot,
                   i < PASSES ? passes[i] : parts->name[i - PASSES].text, seconds[i]);
    write_part(writer, done, edge->slot, "wait", wait);
}

bool
parts_write(struct parts *parts, struct rec_writer *writer, const struct sim_done *done,
            double start, struct rec_error *err)
{
    size_t n = 2 * parts->n, kinds = PASSES + parts->nnames;
    struct edge *edge = calloc(n + 1, sizeof *edge);
    double *room = calloc(kinds, sizeof(double) + sizeof(long)), end = 0;
    bool ok = (edge && room && !parts->failed) || rec_fail_memory(err);
    for (size_t i = 0; ok && i < parts->n; i++) {
        const struct parts_span *s = &parts->span[i];
        end = i == 0 || s->end > end ? s->end : end;
        edge[2 * i] = (struct edge){s->start, s->slot, s->what, 1};
        edge[2 * i + 1] = (struct edge){s->end, s->slot, s->what, -1};
    }
    if (ok)
        qsort(edge, n, sizeof *edge, by_slot);
    for (size_t i = 0, last; ok && i < n; i = last) {
        for (last = i; last < n && edge[last].slot == edge[i].slot;)
            last++;
        write_slot(parts, writer, done, edge + i, last - i, start, end, room);
    }
    free(edge);
    free(room);
    parts->n = 0;
    return ok;
}

void
parts_free(struct parts *parts)
{
    free(parts->span);
    free(parts->name);
    *parts = (struct parts){.n = 0};
}
