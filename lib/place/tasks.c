/*
 * Placing tasks by list scheduling (Graham, "Bounds for certain multiprocessing
 * anomalies", 1966): whenever a server is free, it gets the ready task that has the
 * longest path to the end, by compute. runtasks does the same with processors. The
 * schedule is simulated here with the times that the tasks will take. The result is the
 * server of each task, and the order of starts, from which the layout gets priorities
 * that make sim repeat this schedule.
 */
#include "private.h"

#include "rampipe/event.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX /* no server */

struct schedule {
    const struct place_plan *plan;
    uint32_t *child; /* of step i: child[first_child[i]..first_child[i + 1]) */
    uint32_t *first_child;
    uint32_t *waiting; /* per step: parents that have not ended */
    double *rank;      /* per step: its longest path to the end, itself included, s */
    uint32_t *turn;    /* per step: its position in order of ranks, highest first */
    struct event_queue ready; /* tasks that may start; "time" is the turn, key the step */
    struct event_queue ends;  /* running tasks; key is server << 32 | step */
    struct event_queue
        idle;         /* free servers; "time" is the server: the first one is taken */
    double now;       /* seconds */
    uint32_t started; /* tasks so far */
    struct event_queue full; /* idle servers that lack memory for the task at hand */
};

static uint32_t
op_of(const struct place_plan *plan, uint32_t step)
{
    return plan->graph->member[plan->graph->unit[plan->step[step].unit].first];
}

static double
seconds_of(const struct place_plan *plan, uint32_t step)
{
    return plan->graph->op[op_of(plan, step)].compute;
}

/* Makes the lists of children from those of parents, by a counting sort. */
static void
fill_children(struct schedule *s)
{
    const struct place_plan *plan = s->plan;
    uint32_t n = plan->nsteps, next = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct place_step *step = &plan->step[i];
        s->waiting[i] = step->nparents;
        for (uint32_t j = 0; j < step->nparents; j++)
            s->first_child[plan->parent[step->first_parent + j]]++;
    }
    for (uint32_t i = 0; i <= n; i++)
        s->first_child[i] = next += s->first_child[i]; /* the end, filled from behind */
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t j = plan->step[i].nparents; j-- > 0;) {
            uint32_t parent = plan->parent[plan->step[i].first_parent + j];
            s->child[--s->first_child[parent]] = i;
        }
}

/* From the last step to the first: children come behind their parents in a plan. */
static void
fill_ranks(struct schedule *s)
{
    for (uint32_t i = s->plan->nsteps; i-- > 0;) {
        double behind = 0;
        for (uint32_t c = s->first_child[i]; c < s->first_child[i + 1]; c++)
            behind = fmax(behind, s->rank[s->child[c]]);
        s->rank[i] = seconds_of(s->plan, i) + behind;
    }
}

/* The highest rank first; of equal ranks the op that comes first in the graph, so that
 * the order is the same on every machine. */
static int
by_rank(const void *a, const void *b, void *context)
{
    const struct schedule *s = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (s->rank[x] != s->rank[y])
        return s->rank[x] > s->rank[y] ? -1 : 1;
    return op_of(s->plan, x) < op_of(s->plan, y) ? -1 : 1;
}

/* `order` is scratch. */
static void
fill_turns(struct schedule *s, uint32_t *order)
{
    uint32_t n = s->plan->nsteps;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_rank, s);
    for (uint32_t i = 0; i < n; i++)
        s->turn[order[i]] = i;
}

static bool
make_ready(struct schedule *s, uint32_t step, struct rec_error *err)
{
    return event_queue_push(&s->ready, (struct event_entry){s->turn[step], step}, err);
}

/* Sets *server to the first idle one that has the memory for a task beside what earlier
 * tasks hold there; NONE: none has. */
static bool
take_idle(struct schedule *s, struct place_placer *p, double memory, uint32_t *server,
          struct rec_error *err)
{
    bool ok = true;
    *server = NONE;
    p->most = 0;
    while (ok && s->idle.n && *server == NONE) {
        struct event_entry first = event_queue_pop(&s->idle);
        uint32_t i = (uint32_t)first.time;
        p->most = fmax(p->most, p->memory - p->used[i]);
        if (place_has_room(p, i, memory))
            *server = i;
        else
            ok = event_queue_push(&s->full, first, err);
    }
    while (ok && s->full.n)
        ok = event_queue_push(&s->idle, event_queue_pop(&s->full), err);
    return ok;
}

/* *fits: all tasks that could start had a server with the memory for them. */
static bool
start_tasks(struct schedule *s, struct place_placer *p, bool *fits, struct rec_error *err)
{
    while (s->ready.n && s->idle.n) {
        uint32_t step = (uint32_t)event_queue_pop(&s->ready).key, server;
        struct event_entry end = {s->now + seconds_of(s->plan, step), step};
        p->failed = s->plan->step[step].unit;
        if (!take_idle(s, p, s->plan->step[step].memory, &server, err))
            return false;
        if (!(*fits = server != NONE))
            return true;
        end.key |= (uint64_t)server << 32;
        p->used[server] += graph_op_hold(s->plan->graph, op_of(s->plan, step));
        p->server[s->plan->graph->unit[p->failed].first] = server;
        place_hold(p, server);
        p->order[s->started++] = step;
        if (!event_queue_push(&s->ends, end, err))
            return false;
        if (end.time <= s->now)
            break; /* a task of no length ends now; its children may go before the next */
    }
    return true;
}

/* Ends all tasks that end next, before any other starts: the children of all of them
 * compete for the servers. */
static bool
end_tasks(struct schedule *s, struct rec_error *err)
{
    s->now = s->ends.event[0].time;
    while (s->ends.n && s->ends.event[0].time <= s->now) {
        uint64_t key = event_queue_pop(&s->ends).key;
        uint32_t step = (uint32_t)key;
        for (uint32_t c = s->first_child[step]; c < s->first_child[step + 1]; c++)
            if (--s->waiting[s->child[c]] == 0 && !make_ready(s, s->child[c], err))
                return false;
        if (!event_queue_push(&s->idle, (struct event_entry){(double)(key >> 32), 0},
                              err))
            return false;
    }
    return true;
}

static bool
run(struct schedule *s, struct place_placer *p, bool *fits, struct rec_error *err)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->nservers; i++)
        if (place_bit(p->vacancy, i))
            ok = event_queue_push(&s->idle, (struct event_entry){i, 0}, err);
    for (uint32_t i = 0; ok && i < s->plan->nsteps; i++)
        if (s->waiting[i] == 0)
            ok = make_ready(s, i, err);
    ok = ok && start_tasks(s, p, fits, err);
    while (ok && *fits && s->ends.n)
        ok = end_tasks(s, err) && start_tasks(s, p, fits, err);
    return ok;
}

/* The first task that no server has the memory for; the number of steps if there is
 * none. */
static uint32_t
find_too_large(const struct place_placer *p, const struct place_plan *plan)
{
    uint32_t i = 0;
    while (i < plan->nsteps && plan->step[i].memory <= p->memory * (1 + 1e-12))
        i++;
    return i;
}

bool
place_tasks(struct place_placer *p, const struct place_plan *plan,
            enum place_outcome *outcome, struct rec_error *err)
{
    size_t n = plan->nsteps, nparents = 0;
    uint32_t large = find_too_large(p, plan);
    struct schedule s = {.plan = plan};
    bool ok, fits = true;

    if (large < n) {
        p->failed = plan->step[large].unit;
        p->most = p->memory;
        *outcome = PLACE_NO_MEMORY;
        return true;
    }
    for (size_t i = 0; i < n; i++)
        nparents += plan->step[i].nparents;
    s.child = malloc((nparents + 1) * sizeof *s.child);
    s.first_child = calloc(n + 1, sizeof *s.first_child);
    s.waiting = malloc((n + 1) * sizeof *s.waiting);
    s.rank = malloc((n + 1) * sizeof *s.rank);
    s.turn = malloc((n + 1) * sizeof *s.turn);
    ok = s.child && s.first_child && s.waiting && s.rank && s.turn;
    if (!ok)
        rec_fail_memory(err);
    ok = ok && rec_grow(&p->order, &p->order_room, n, sizeof *p->order, err);
    if (ok) {
        fill_children(&s);
        fill_ranks(&s);
        fill_turns(&s, p->order);
        ok = run(&s, p, &fits, err);
    }
    p->nused = p->nheld;
    *outcome = fits ? PLACE_PLACED : PLACE_NO_MEMORY;
    free(s.child);
    free(s.first_child);
    free(s.waiting);
    free(s.rank);
    free(s.turn);
    event_queue_free(&s.ready);
    event_queue_free(&s.ends);
    event_queue_free(&s.idle);
    event_queue_free(&s.full);
    return ok;
}
