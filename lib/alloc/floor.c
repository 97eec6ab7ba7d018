/*
 * A lower bound of the time of a step, for all placements. Three things hold for each:
 *
 *     1 The parts of a unit lie on different servers, which are a block of a legal shape.
 *     2 If a server has memory for a part of every unit ("light" below), memory never
 *       decides where a unit goes: only its number of parts does. Then all units of k
 *       parts share one block, and each server of that block, called a machine below,
 *       runs one part of each of them.
 *     3 A dep between two servers takes no less time than on the legal block where it is
 *       fastest.
 *
 * List scheduling is not monotone: a step may take longer with faster deps, so simulating
 * it with the least times would prove nothing. The bound uses what holds for any
 * schedule: longest paths, and the time that a machine takes to run all its ops. An op
 * cannot start before its head (the longest path to it), and its tail (the longest path
 * behind it) follows its end. Jackson's preemptive schedule is the best one for such a
 * machine (Carlier, "The one-machine sequencing problem", 1982). An op with several
 * parents is a join: the machines must have run all ops before it, which makes its head
 * longer.
 *
 * The graph here is one of units. An edge is kept only if it is complete, which means
 * that each part of one unit has a dep to each part of the other, as graph_split() makes
 * them. Leaving out other edges lowers the bound, so it stays true; for the same reason
 * colls are left out.
 */
#include "floor.h"

#include <math.h>
#include <stdlib.h>

/* The bound is lowered by this share, because the simulator rounds its sums in another
 * order. */
static const double rounding = 1e-9;

/* Visits of edges and nodes that are spent on joins. In a graph that needs more, the
 * later joins have only the heads of paths, which are lower. */
enum { VISITS_MAX = 4000000 };

/* A lower bound of a time, seconds: `each` holds for every part of a unit, `most` for all
 * of its parts but at most one. */
struct time {
    double each, most;
};

/* A unit. Its collective is the exchange that its deps on one side may be. */
struct node {
    uint32_t parts;
    double compute;    /* of its shortest part, seconds */
    double collective; /* least time of its collective, seconds; INFINITY: none */
    bool leaving;      /* the collective is on the side of the deps that leave it */
    bool sure;         /* the deps are a collective on every placement */
    struct time head;  /* from the start of the step to the start of the part */
    struct time tail;  /* from the end of the part to the end of the step, or to a join */
    double sync;       /* least time of the exchange among its parts, seconds */
    uint32_t first, last; /* the edges edge[first..last) leave it */
    uint32_t up, up_last; /* the edges entering[up..up_last) enter it */
    double left;          /* compute that its machine has not run yet, seconds */
    bool before;          /* there is a path from it to the current join */
};

struct edge {
    uint32_t from, to;
    double seconds; /* least time of one of its deps, if that crosses servers */
};

struct floorer {
    const struct net *net;
    const struct graph *graph;
    bool light;
    struct node *node; /* per unit */
    uint32_t nnodes;
    struct edge *edge; /* sorted by `from` */
    size_t nedges, edge_room;
    uint32_t *entering; /* indexes of edges, sorted by `to` */
    uint32_t *order;    /* nodes, each behind those that it depends on */
    uint32_t *sorted;   /* nodes whose heads are known, sorted by head */
    uint32_t nsorted;
    uint32_t *seen, stamp; /* per unit: the stamp of the loop that saw it last */
    uint32_t *count;       /* per unit: deps to it from the unit that add_edges() reads */
    double *least;         /* per unit: the least time of these deps, seconds */
    uint32_t *kind;        /* the distinct numbers of parts */
    uint32_t nkinds;
    struct event_queue
        ready; /* ops of a machine that may start: the longest tail first */
};

/* ---- how long deps take at least ------------------------------------------ */

static double
fewer(double amount)
{
    return amount * (1 - rounding);
}

/* The least time of an exchange of `kind` among the servers of a unit of k parts, of
 * which `flow` bytes cross servers. */
static double
least_alone(const struct floorer *f, enum graph_exchange_kind kind, uint32_t k,
            double bytes, double flow)
{
    const struct net_exchange exchange = {kind, NULL, k, fewer(bytes), fewer(flow)};
    struct rec_error err;
    double seconds;
    /* Without servers it cannot fail; no time would be a lower bound, too. */
    return net_alone(f->net, &exchange, 1, &seconds, &err) ? seconds : 0;
}

/*
 * The bytes of a unit's deps on one side, without sync deps. *alike is set if all of
 * these deps are of complete edges to units with as many parts. *flow is the least part
 * of the bytes that crosses servers: a part of the unit shares its server with at most
 * one part of another unit.
 */
static double
sum_deps(struct floorer *f, uint32_t unit, bool leaving, bool *alike, double *flow)
{
    const struct graph *graph = f->graph;
    const struct graph_unit *u = &graph->unit[unit];
    const uint32_t *start = leaving ? graph->out_start : graph->in_start;
    const uint32_t *list = leaving ? graph->out : graph->in;
    uint64_t ndeps = 0, others = 0;
    double bytes = 0, largest = 0;
    *alike = true;
    f->stamp++;
    for (uint32_t j = 0; j < u->parts; j++) {
        uint32_t op = graph->member[u->first + j];
        for (uint32_t i = start[op]; i < start[op + 1]; i++) {
            const struct graph_dep *dep = &graph->dep[list[i]];
            uint32_t other = graph->op[leaving ? dep->dst : dep->src].unit;
            if (dep->sync)
                continue;
            bytes += dep->bytes;
            largest = fmax(largest, dep->bytes);
            *alike = *alike && other != unit && f->node[other].parts == u->parts;
            others += f->seen[other] != f->stamp;
            f->seen[other] = f->stamp;
            ndeps++;
        }
    }
    *alike = *alike && ndeps == others * u->parts * u->parts;
    *flow = fmax(0, bytes - largest * (double)others * u->parts);
    return bytes;
}

/* Do the deps of a unit that is split go one by one? A backward unit without a twin has
 * neither a collective nor an exchange (graph_exchanges_make()). */
static bool
is_single(const struct floorer *f, uint32_t unit)
{
    const struct graph_unit *u = &f->graph->unit[unit];
    return u->twin == GRAPH_NONE &&
           f->graph->op[f->graph->member[u->first]].pass == GRAPH_BACKWARD;
}

/*
 * The least time of the collective that the deps on one side of a unit may be (the rule
 * is at graph_exchanges_make()). It is an exchange among the servers of the unit's block:
 * only complete edges count, and by those each part sends or receives. If all deps are
 * complete edges to units with as many parts, and these share the unit's block (2), each
 * server sends and receives the same number of deps: then it is a collective for sure.
 */
static void
find_collective(struct floorer *f, uint32_t unit)
{
    const struct graph_unit *u = &f->graph->unit[unit];
    struct node *node = &f->node[unit];
    bool alike;
    double bytes, flow;
    node->collective = INFINITY;
    node->leaving = f->graph->op[f->graph->member[u->first]].pass != GRAPH_BACKWARD;
    if (u->parts == 1 || is_single(f, unit))
        return;
    bytes = sum_deps(f, unit, node->leaving, &alike, &flow);
    node->sure = f->light && alike;
    node->collective = least_alone(f, GRAPH_COLLECTIVE, u->parts, bytes, flow);
}

/* The least time of the exchange among the parts of a unit, if each pair exchanges. */
static void
find_exchange(struct floorer *f, uint32_t unit)
{
    const struct graph *graph = f->graph;
    const struct graph_unit *u = &graph->unit[unit];
    uint64_t ndeps = 0;
    double bytes = INFINITY;
    if (is_single(f, unit))
        return;
    for (uint32_t j = 0; j < u->parts; j++) {
        uint32_t op = graph->member[u->first + j];
        for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
            const struct graph_dep *dep = &graph->dep[graph->out[i]];
            if (!dep->sync || graph->op[dep->dst].unit != unit)
                continue;
            bytes = fmin(bytes, dep->bytes);
            ndeps++;
        }
    }
    if (u->parts < 2 || ndeps != (uint64_t)u->parts * (u->parts - 1) || bytes == 0)
        return;
    f->node[unit].sync =
        net_sync(f->net) == GRAPH_SYNC_BY_PAIR
            ? least_alone(f, GRAPH_SYNC_PAIR, u->parts, 2 * bytes, 2 * bytes)
            : least_alone(f, GRAPH_SYNC_ALL, u->parts, (double)ndeps * bytes,
                          (double)ndeps * bytes);
}

/* The least time of a dep that crosses servers: as a part of a collective of either end,
 * or one to one unless one of the collectives is sure. */
static double
cross_seconds(const struct floorer *f, uint32_t from, uint32_t to, double bytes)
{
    const struct node *u = &f->node[from], *v = &f->node[to];
    double least = INFINITY;
    bool sure = false;
    if (bytes == 0)
        return 0;
    if (u->leaving) {
        least = u->collective;
        sure = u->sure;
    }
    if (!v->leaving) {
        least = fmin(least, v->collective);
        sure = sure || v->sure;
    }
    return sure ? least : fmin(least, least_alone(f, GRAPH_MESSAGE, 1, bytes, bytes));
}

/* ---- the graph of units --------------------------------------------------- */

/* Adds the complete edges that leave a unit: those with a dep for each pair of parts. The
 * candidates are written behind the edges that are kept, and then moved up. */
static bool
add_edges(struct floorer *f, uint32_t from, struct rec_error *err)
{
    const struct graph *graph = f->graph;
    const struct graph_unit *u = &graph->unit[from];
    size_t first = f->nedges, n = first;
    for (uint32_t j = 0; j < u->parts; j++) {
        uint32_t op = graph->member[u->first + j];
        for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
            const struct graph_dep *dep = &graph->dep[graph->out[i]];
            uint32_t to = graph->op[dep->dst].unit;
            double seconds;
            if (dep->sync || to == from)
                continue;
            seconds = cross_seconds(f, from, to, dep->bytes);
            if (f->count[to]++ == 0) {
                if (!rec_grow(&f->edge, &f->edge_room, n + 1, sizeof *f->edge, err))
                    return false;
                f->edge[n++] = (struct edge){from, to, INFINITY};
                f->least[to] = INFINITY;
            }
            f->least[to] = fmin(f->least[to], seconds);
        }
    }
    for (size_t i = first; i < n; i++) {
        struct edge edge = f->edge[i];
        edge.seconds = f->least[edge.to];
        if (f->count[edge.to] == (uint64_t)u->parts * f->node[edge.to].parts) {
            f->edge[f->nedges++] = edge;
            f->node[edge.to].up_last++; /* the number of edges, until turn_edges() */
        }
        f->count[edge.to] = 0;
    }
    f->node[from].first = (uint32_t)first;
    f->node[from].last = (uint32_t)f->nedges;
    return true;
}

/* Sorts the edges by the node that they enter (counting sort). */
static bool
turn_edges(struct floorer *f, struct rec_error *err)
{
    uint32_t next = 0;
    f->entering = malloc((f->nedges + 1) * sizeof *f->entering);
    if (!f->entering)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < f->nnodes; i++) {
        uint32_t n = f->node[i].up_last;
        f->node[i].up = f->node[i].up_last = next;
        next += n;
    }
    for (uint32_t i = 0; i < f->nedges; i++)
        f->entering[f->node[f->edge[i].to].up_last++] = i;
    return true;
}

/* Orders the units by their first parts in an order of the ops. Along a complete edge
 * all parts of one unit come before all parts of the other, so it is an order of the
 * nodes. */
static bool
order_nodes(struct floorer *f, struct rec_error *err)
{
    const struct graph *graph = f->graph;
    uint32_t *order = malloc((graph->nops + 1) * sizeof *order), n = 0;
    bool ok = order ? graph_order(graph, order, err) : rec_fail_memory(err);
    f->stamp++;
    for (size_t i = 0; ok && i < graph->nops; i++) {
        uint32_t unit = graph->op[order[i]].unit;
        if (f->seen[unit] != f->stamp)
            f->order[n++] = unit;
        f->seen[unit] = f->stamp;
    }
    free(order);
    return ok;
}

static void
add_node(struct floorer *f, uint32_t unit)
{
    const struct graph_unit *u = &f->graph->unit[unit];
    struct node *node = &f->node[unit];
    uint32_t k = 0;
    node->parts = u->parts;
    node->compute = INFINITY;
    for (uint32_t j = 0; j < u->parts; j++)
        node->compute =
            fmin(node->compute, f->graph->op[f->graph->member[u->first + j]].compute);
    while (k < f->nkinds && f->kind[k] != u->parts)
        k++;
    if (k == f->nkinds)
        f->kind[f->nkinds++] = u->parts;
}

static bool
make_nodes(struct floorer *f, struct rec_error *err)
{
    size_t n = f->graph->nunits + 1;
    bool ok = true;
    f->nnodes = (uint32_t)f->graph->nunits;
    f->node = calloc(n, sizeof *f->node);
    f->order = calloc(n, sizeof *f->order);
    f->sorted = calloc(n, sizeof *f->sorted);
    f->seen = calloc(n, sizeof *f->seen);
    f->count = calloc(n, sizeof *f->count);
    f->least = calloc(n, sizeof *f->least);
    f->kind = calloc(n, sizeof *f->kind);
    if (!f->node || !f->order || !f->sorted || !f->seen || !f->count || !f->least ||
        !f->kind)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < f->nnodes; i++)
        add_node(f, i);
    for (uint32_t i = 0; i < f->nnodes; i++) {
        find_collective(f, i);
        find_exchange(f, i);
    }
    for (uint32_t i = 0; ok && i < f->nnodes; i++)
        ok = add_edges(f, i, err);
    return ok && turn_edges(f, err) && order_nodes(f, err);
}

/* ---- paths ---------------------------------------------------------------- */

/*
 * Raises *to by what follows for one end of a complete edge if the other end, its op
 * included, takes until *from. A server has at most one part of each unit. So a part at
 * `to` gets deps of all parts at `from`, of which at most one is on its own server. If
 * there are two or more parts at `from`, a dep of one of them crosses servers. If there
 * is one, its dep crosses for all parts at `to` but at most one.
 */
static void
relax(struct time from, uint32_t from_parts, double cross, struct time *to,
      uint32_t to_parts)
{
    double late = from_parts == 1 ? from.each : from.most, each = from.each;
    if (from_parts == 2)
        each = fmax(from.most, from.each + cross);
    else if (from_parts > 2)
        each = from.most + cross;
    to->each = fmax(to->each, each);
    to->most = fmax(fmax(to->most, to->each), to_parts > 1 ? late + cross : each);
}

static struct time
later(struct time time, double seconds)
{
    return (struct time){time.each + seconds, time.most + seconds};
}

/* The head of a node from the heads of the nodes before it. */
static void
find_head(const struct floorer *f, struct node *node)
{
    node->head = (struct time){0, 0};
    for (uint32_t i = node->up; i < node->up_last; i++) {
        const struct edge *edge = &f->edge[f->entering[i]];
        const struct node *from = &f->node[edge->from];
        relax(later(from->head, from->compute), from->parts, edge->seconds, &node->head,
              node->parts);
    }
}

/* The tails of the first n nodes of the order: to the start of a part of the join
 * order[n] if `join`, else to the end of the step. Sets node->before of those that have a
 * path there: of all, if it is the end. */
static void
find_tails(struct floorer *f, uint32_t n, bool join)
{
    for (uint32_t i = n; i-- > 0;) {
        struct node *node = &f->node[f->order[i]];
        node->before = !join;
        node->tail = join ? (struct time){0, 0} : (struct time){node->sync, node->sync};
        for (uint32_t e = node->first; e < node->last; e++) {
            const struct edge *edge = &f->edge[e];
            const struct node *to = &f->node[edge->to];
            if (join && edge->to == f->order[n])
                relax((struct time){0, 0}, 1, edge->seconds, &node->tail, node->parts);
            else if (to->before)
                relax(later(to->tail, to->compute), to->parts, edge->seconds, &node->tail,
                      node->parts);
            else
                continue;
            node->before = true;
        }
    }
}

/* ---- machines ------------------------------------------------------------- */

static bool
runs_on(const struct node *node, uint32_t parts)
{
    return node->before && node->parts == parts;
}

/*
 * Raises *over by Jackson's schedule of a machine: a server with one part of each unit of
 * `parts` parts that has `before` set. Of the ops whose heads are over, the machine
 * always runs the one with the longest tail, and is interrupted when the head of the next
 * op is over. *over becomes at least the end of each op and its tail. Takes O(n log n)
 * for n sorted nodes.
 */
static bool
run_machine(struct floorer *f, uint32_t parts, double *over, struct rec_error *err)
{
    double now = 0, longest = 0;
    uint32_t i = 0;
    for (uint32_t j = 0; j < f->nsorted; j++)
        if (runs_on(&f->node[f->sorted[j]], parts))
            longest = fmax(longest, f->node[f->sorted[j]].tail.each);
    for (;;) {
        struct node *node;
        double next;
        while (i < f->nsorted && !runs_on(&f->node[f->sorted[i]], parts))
            i++;
        if (i == f->nsorted && f->ready.n == 0)
            return true;
        node = &f->node[f->sorted[i < f->nsorted ? i : 0]];
        next = i < f->nsorted ? node->head.each : (double)INFINITY;
        if (f->ready.n == 0)
            now = fmax(now, next);
        if (next <= now) {
            node->left = node->compute;
            if (!event_queue_push(
                    &f->ready,
                    (struct event_entry){longest - node->tail.each, f->sorted[i++]}, err))
                return false;
            continue;
        }
        node = &f->node[f->ready.event[0].key];
        if (node->left > next - now) {
            node->left -= next - now;
            now = next;
            continue;
        }
        now += node->left;
        *over = fmax(*over, now + node->tail.each);
        event_queue_pop(&f->ready);
    }
}

/* A machine for each number of parts. */
static bool
run_machines(struct floorer *f, double *over, struct rec_error *err)
{
    for (uint32_t k = 0; k < f->nkinds; k++)
        if (!run_machine(f, f->kind[k], over, err))
            return false;
    return true;
}

/* Inserts a node whose head is known into f->sorted. Returns how many nodes it moved:
 * usually few, because heads mostly grow along the order. */
static uint32_t
sort_in(struct floorer *f, uint32_t index)
{
    double head = f->node[index].head.each;
    uint32_t last = f->nsorted++, i = last;
    for (; i > 0 && f->node[f->sorted[i - 1]].head.each > head; i--)
        f->sorted[i] = f->sorted[i - 1];
    f->sorted[i] = index;
    return last - i;
}

static int
by_head(const void *a, const void *b, void *context)
{
    const struct node *node = context;
    double x = node[*(const uint32_t *)a].head.each;
    double y = node[*(const uint32_t *)b].head.each;
    return (x > y) - (x < y);
}

/* The heads of all nodes. A join costs a pass over the edges and one over the nodes
 * before it, so all of them may cost the square of the graph: VISITS_MAX bounds that. */
static bool
find_heads(struct floorer *f, struct rec_error *err)
{
    uint64_t visits = 0;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        struct node *node = &f->node[f->order[i]];
        find_head(f, node);
        if (f->light && node->up_last - node->up > 1 && visits < VISITS_MAX) {
            visits += f->nedges + (uint64_t)i * f->nkinds;
            find_tails(f, i, true);
            if (!run_machines(f, &node->head.each, err))
                return false;
            node->head.most = fmax(node->head.most, node->head.each);
        }
        if (visits < VISITS_MAX)
            visits += sort_in(f, f->order[i]);
        else
            f->sorted[f->nsorted++] = f->order[i];
    }
    if (visits >= VISITS_MAX)
        qsort_r(f->sorted, f->nsorted, sizeof *f->sorted, by_head, f->node);
    return true;
}

/* Raises *step by head + compute + tail of each op, and by the machines. `most` holds for
 * all parts but one, so with more than two parts some part has both the late head and the
 * late tail; with two it may be one each. */
static bool
find_step(struct floorer *f, double *step, struct rec_error *err)
{
    if (!find_heads(f, err))
        return false;
    find_tails(f, f->nnodes, false);
    for (uint32_t i = 0; i < f->nnodes; i++) {
        const struct node *node = &f->node[i];
        double both = node->parts > 2 ? node->head.most + node->tail.most
                                      : fmax(node->head.most + node->tail.each,
                                             node->head.each + node->tail.most);
        *step = fmax(*step, both + node->compute);
    }
    return !f->light || run_machines(f, step, err);
}

/* ---- servers -------------------------------------------------------------- */

/* The parts of a unit lie on different servers, and all parts need their memory. */
static uint32_t
count_servers(const struct net *net, const struct place_plan *plan)
{
    double bytes = 0, room = net_memory(net) * (1 + rounding), least;
    if (plan->tasks)
        return 1;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        bytes += plan->step[i].memory * plan->graph->unit[plan->step[i].unit].parts;
    least = bytes > 0 ? ceil(fewer(bytes) / room) : 1;
    return least < UINT32_MAX ? (uint32_t)fmax(least, plan->largest) : UINT32_MAX;
}

bool
floor_find(const struct net *net, const struct place_plan *plan, uint32_t servers,
           struct floor *floor, struct rec_error *err)
{
    struct floorer f = {.net = net, .graph = plan->graph};
    double step = servers ? graph_sequential(plan->graph) / servers : 0;
    bool ok;
    f.light = !plan->tasks && plan->memory <= net_memory(net) * (1 - rounding);
    ok = make_nodes(&f, err) && find_step(&f, &step, err);
    if (ok && !isfinite(step))
        ok =
            rec_fail(err, REC_DATA,
                     "graph '%s': the times of a step add up to more than a number holds",
                     plan->graph->id);
    *floor = (struct floor){count_servers(net, plan), fewer(step)};
    event_queue_free(&f.ready);
    free(f.node);
    free(f.edge);
    free(f.entering);
    free(f.order);
    free(f.sorted);
    free(f.seen);
    free(f.count);
    free(f.least);
    free(f.kind);
    return ok;
}
