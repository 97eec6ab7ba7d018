#include "explain.h"
#include "company.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct explanation {
    const struct sim_member *member;
    struct sim_reason *reason; /* those that were sent */
    uint32_t n;
    uint32_t *worst;      /* per exchange: as of sim_reasons_worst(); */
    uint32_t *coll, *dep; /* the coll, or the first dep; GRAPH_NONE */
    double *alone;        /* per exchange of the layout, seconds */
    double *start, *end;  /* without sharing: the same of each, seconds; NAN: not sent */
};

/* ---- where jobs share links: each exchange alone, by the courier ------------------- */

/* What leaves an op, or a coll, as one batch. */
struct leaving {
    uint32_t exchange, dep;
};

static int
by_exchange(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    if (x->exchange != y->exchange)
        return x->exchange < y->exchange ? -1 : 1;
    return (x->dep > y->dep) - (x->dep < y->dep);
}

/* Lists the batches of all exchanges: one dep of each that leaves an op in one. */
static struct leaving *
list_leaving(const struct sim_layout *layout, size_t *n, struct rec_error *err)
{
    const struct graph *graph = layout->where.graph;
    const struct graph_exchanges *e = &layout->exchanges;
    struct leaving *list = malloc((graph->ndeps + graph->ncolls + 1) * sizeof *list);
    uint32_t *seen = malloc((e->n + 1) * sizeof *seen); /* per exchange: the last op */
    *n = 0;
    for (size_t i = 0; seen && i < e->n; i++)
        seen[i] = NONE;
    for (uint32_t op = 0; list && seen && op < graph->nops; op++)
        for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
            uint32_t exchange = e->of_dep[graph->out[i]];
            if (exchange == GRAPH_NONE || seen[exchange] == op)
                continue;
            seen[exchange] = op;
            list[(*n)++] = (struct leaving){exchange, graph->out[i]};
        }
    for (uint32_t c = 0; list && seen && c < graph->ncolls; c++)
        if (e->of_coll[c] != GRAPH_NONE)
            list[(*n)++] = (struct leaving){e->of_coll[c], GRAPH_NONE};
    free(seen);
    if (!list || !seen) {
        free(list);
        rec_fail_memory(err);
        return NULL;
    }
    qsort(list, *n, sizeof *list, by_exchange);
    return list;
}

static void
hear(void *context, uint64_t token)
{
    (void)context, (void)token;
}

/* One exchange after the other, over links that are well and empty. */
static bool
time_by_courier(const struct explanation *x, void *carrier, const struct leaving *list,
                size_t n, struct rec_error *err)
{
    const struct sim_courier *courier = x->member->layout->pool->sharing->courier;
    double begun, now = 0, next;
    for (size_t i = 0; i < n;) {
        uint32_t exchange = list[i].exchange;
        for (begun = now; i < n && list[i].exchange == exchange; i++)
            if (!courier->send(carrier, (uint64_t)x->member->number << 32 | i,
                               list[i].dep, exchange, begun, err))
                return false;
        while (isfinite(next = courier->next(carrier))) {
            now = next;
            if (!courier->advance(carrier, now, hear, NULL, err))
                return false;
        }
        x->alone[exchange] = now - begun;
    }
    return true;
}

static bool
find_alone(const struct explanation *x, struct rec_error *err)
{
    const struct sim_layouts *pool = x->member->layout->pool;
    struct sim_member well = *x->member;
    struct leaving *list;
    void *carrier;
    size_t n;
    bool ok;
    well.health = SIM_LINKS_WELL;
    well.loads = NULL;
    well.first = NULL;
    if (!(list = list_leaving(well.layout, &n, err)))
        return false;
    carrier = pool->sharing->open(pool->shared, err);
    ok = carrier && pool->sharing->take(carrier, &well, NULL, 0, err) &&
         time_by_courier(x, carrier, list, n, err);
    if (carrier)
        pool->sharing->close(carrier);
    free(list);
    return ok;
}

/* ---- where they do not ------------------------------------------------------------- */

static void
note(struct explanation *x, uint32_t exchange, double start, double end)
{
    x->start[exchange] = fmin(start, x->start[exchange]); /* of NAN: the other */
    x->end[exchange] = fmax(end, x->end[exchange]);
}

static void
note_send(void *context, uint32_t dep, double start, double end)
{
    struct explanation *x = context;
    note(x, x->member->layout->exchanges.of_dep[dep], start, end);
}

static void
note_coll(void *context, uint32_t coll, double start, double end)
{
    struct explanation *x = context;
    note(x, x->member->layout->exchanges.of_coll[coll], start, end);
}

static bool
observe(struct explanation *x, struct rec_error *err)
{
    struct sim_observer observer = {.send = note_send, .coll = note_coll, .context = x};
    struct sim_cost cost;
    return sim_member_observe(x->member, &observer, &cost, err);
}

/* Why an exchange takes the time that it has alone. */
static bool
form_of(const struct explanation *x, uint32_t exchange, struct sim_reason *reason,
        struct rec_error *err)
{
    const struct sim_member *m = x->member;
    const struct graph_exchanges *all = &m->layout->exchanges;
    const struct graph_exchange *one = &all->exchange[exchange];
    uint32_t *server = malloc((one->n + (size_t)1) * sizeof *server);
    struct net_exchange e = {one->kind, server, one->n, one->bytes, one->flow};
    struct net_why why;
    bool ok = server || rec_fail_memory(err), measured;
    for (uint32_t i = 0; ok && i < one->n; i++)
        server[i] = m->servers[all->member[one->first + i]];
    *reason = (struct sim_reason){.exchange = exchange,
                                  .start = x->start[exchange],
                                  .seconds = x->end[exchange] - x->start[exchange],
                                  .by = SIM_BY_FORM,
                                  .link = NONE};
    ok = ok && net_measured(m->net, &e, &measured, &reason->alone, err);
    if (ok && measured)
        reason->by = SIM_BY_TABLE;
    else if (ok && (ok = net_alone(m->net, &e, 1, &reason->alone, err)) &&
             net_links(m->net) > 0) {
        ok = net_alone_why(m->net, &e, &why, err);
        reason->by = SIM_BY_LATENCY;
        reason->held = why.latency;
        if (ok && why.seconds > 0 && why.seconds >= why.latency) {
            reason->by = SIM_BY_LINK;
            reason->link = why.link;
            reason->held = why.seconds;
            reason->bytes = why.bytes;
            reason->own = why.flows - 1;
        }
    }
    if (reason->by == SIM_BY_TABLE || reason->by == SIM_BY_FORM)
        reason->held = reason->seconds;
    free(server);
    return ok;
}

/* ---- both ------------------------------------------------------------------ */

static int
by_start(const void *a, const void *b)
{
    const struct sim_reason *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->exchange > y->exchange) - (x->exchange < y->exchange);
}

/* Finds what each exchange sends. */
static void
name_exchanges(const struct explanation *x)
{
    const struct graph_exchanges *e = &x->member->layout->exchanges;
    const struct graph *graph = x->member->layout->where.graph;
    for (size_t i = 0; i < e->n; i++)
        x->coll[i] = x->dep[i] = GRAPH_NONE;
    for (uint32_t c = (uint32_t)graph->ncolls; c-- > 0;)
        if (e->of_coll[c] != GRAPH_NONE)
            x->coll[e->of_coll[c]] = c;
    for (uint32_t d = (uint32_t)graph->ndeps; d-- > 0;)
        if (e->of_dep[d] != GRAPH_NONE)
            x->dep[e->of_dep[d]] = d;
}

static bool
collect(struct explanation *x, const struct sim_first *reasons, struct rec_error *err)
{
    uint32_t n = (uint32_t)x->member->layout->exchanges.n;
    if (reasons)
        sim_reasons_worst(reasons, x->worst, n);
    name_exchanges(x);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_reason *reason = &x->reason[x->n];
        if (reasons) {
            if (!sim_reasons_of(reasons, i, x->worst[i], reason))
                continue;
            reason->alone = x->alone[i];
        } else if (isnan(x->end[i]))
            continue;
        else if (!form_of(x, i, reason, err))
            return false;
        reason->coll = x->coll[i];
        reason->dep = x->dep[i];
        x->n++;
    }
    if (x->n > 0)
        qsort(x->reason, x->n, sizeof *x->reason, by_start);
    return true;
}

bool
sim_explain(const struct sim_member *member, const struct sim_first *reasons,
            sim_explained *tell, void *context, struct rec_error *err)
{
    struct explanation x = {.member = member};
    struct sim_placed placed;
    size_t n;
    bool ok = sim_layout_place(member, &placed, err); /* finds the exchanges */
    n = member->layout->exchanges.n;
    x.reason = malloc((n + 1) * sizeof *x.reason);
    x.worst = malloc((n + 1) * sizeof *x.worst);
    x.coll = malloc((n + 1) * sizeof *x.coll);
    x.dep = malloc((n + 1) * sizeof *x.dep);
    x.alone = malloc((n + 1) * sizeof *x.alone);
    x.start = malloc((n + 1) * sizeof *x.start);
    x.end = malloc((n + 1) * sizeof *x.end);
    if (ok &&
        (!x.reason || !x.worst || !x.coll || !x.dep || !x.alone || !x.start || !x.end))
        ok = rec_fail_memory(err);
    for (size_t i = 0; ok && i < n; i++)
        x.start[i] = x.end[i] = x.alone[i] = (double)NAN;
    ok = ok && (reasons ? find_alone(&x, err) : observe(&x, err)) &&
         collect(&x, reasons, err);
    for (uint32_t i = 0; ok && i < x.n; i++)
        ok = tell(context, &x.reason[i], err);
    free(x.reason);
    free(x.worst);
    free(x.coll);
    free(x.dep);
    free(x.alone);
    free(x.start);
    free(x.end);
    return ok;
}
