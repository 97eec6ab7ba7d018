/*
 * Admission: jobs arrive, take servers, wait or are turned away. Servers come free before
 * arrivals of the same instant are looked at; jobs that wait are looked at before new
 * ones.
 */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is known of a graph: how to place it, and the layouts it got so far. */
struct known {
    struct alloc_plan plan;
    bool planned;
    uint32_t degree;
    struct rec_map layouts; /* slots of all members -> index into admission->layout */
};

struct running {
    uint32_t *servers;
    uint32_t nservers;
};

struct waiting {
    char *id, *graphs;
    struct graph_job job;
    double size; /* sequential time, seconds: what shortest-first goes by */
};

/* One alternative, tried. */
struct attempt {
    const char *cause; /* NULL: it can start */
    uint32_t graph;
    const struct trial *trial; /* until the next one */
    double finish;
};

struct alloc_admission {
    struct alloc_admission_options options;
    struct graph_store *store; /* borrowed */
    alloc_decide *decide;
    void *context;
    double now;

    struct alloc_placer *allocator;
    uint32_t nservers, nfree;
    bool *taken;
    uint64_t *owner;
    struct trials trials;
    struct known *known;
    size_t nknown, known_room;
    struct sim_layout **layout;
    size_t nlayouts, layout_room;
    size_t nwritten; /* layouts that some job has started with: they have a name */
    struct rec_arena keys;

    struct sim_queue ends; /* key: index of the running job */
    struct running *running;
    size_t nrunning, running_room;
    uint32_t *vacant; /* unused places in running */
    size_t nvacant, vacant_room;
    uint64_t started;

    struct waiting *waiting; /* in the order they are tried */
    size_t nwaiting, waiting_room;

    uint32_t *slots; /* scratch: slot of each server, + 1; slots of members */
    uint32_t *members;
    size_t members_room;
};

static void
take_server(struct alloc_admission *a, uint32_t server, uint64_t owner)
{
    a->taken[server] = true;
    a->owner[server] = owner;
    a->nfree--;
    trials_flip(&a->trials, server);
}

static void
give_back(struct alloc_admission *a, uint32_t server)
{
    a->taken[server] = false;
    a->owner[server] = 0;
    a->nfree++;
    trials_flip(&a->trials, server);
}

struct alloc_admission *
alloc_admission_new(const struct alloc_admission_options *options,
                    struct graph_store *store, alloc_decide *decide, void *context,
                    struct rec_error *err)
{
    struct alloc_admission *a = calloc(1, sizeof *a);
    if (!a) {
        rec_fail_memory(err);
        return NULL;
    }
    a->options = *options;
    a->store = store;
    a->decide = decide;
    a->context = context;
    a->nservers = a->nfree = net_servers(&options->cluster);
    a->allocator =
        alloc_placer_new(&options->cluster, options->heuristic, options->meta, err);
    a->taken = calloc(a->nservers, sizeof *a->taken);
    a->owner = calloc(a->nservers, sizeof *a->owner);
    a->slots = calloc(a->nservers, sizeof *a->slots);
    if (!a->allocator || !a->taken || !a->owner || !a->slots ||
        !trials_init(&a->trials, a->nservers, err)) {
        if (a->allocator)
            rec_fail_memory(err);
        alloc_admission_free(a);
        return NULL;
    }
    for (uint32_t i = 0; i < options->ndown; i++)
        if (!a->taken[options->down[i]])
            take_server(a, options->down[i], ALLOC_DOWN);
    return a;
}

void
alloc_admission_free(struct alloc_admission *a)
{
    if (!a)
        return;
    alloc_placer_free(a->allocator);
    for (size_t i = 0; i < a->nknown; i++) {
        alloc_plan_free(&a->known[i].plan);
        rec_map_free(&a->known[i].layouts);
    }
    for (size_t i = 0; i < a->nlayouts; i++)
        sim_layout_free(a->layout[i]);
    for (size_t i = 0; i < a->nrunning; i++)
        free(a->running[i].servers);
    for (size_t i = 0; i < a->nwaiting; i++) {
        free(a->waiting[i].id);
        free(a->waiting[i].graphs);
    }
    trials_free(&a->trials);
    sim_queue_free(&a->ends);
    rec_arena_free(&a->keys);
    free(a->taken);
    free(a->owner);
    free(a->known);
    free(a->layout);
    free(a->running);
    free(a->vacant);
    free(a->waiting);
    free(a->slots);
    free(a->members);
    free(a);
}

const uint64_t *
alloc_admission_owners(const struct alloc_admission *a)
{
    return a->owner;
}

/* ---- one alternative ----------------------------------------------------- */

static struct known *
know(struct alloc_admission *a, uint32_t index, struct rec_error *err)
{
    const struct graph *graph = a->store->graph[index];
    struct known *known;
    struct rec_str degree;
    uint64_t n;

    if (!rec_grow(&a->known, &a->known_room, a->store->ngraphs, sizeof *a->known, err))
        return NULL;
    for (; a->nknown < a->store->ngraphs; a->nknown++)
        a->known[a->nknown] = (struct known){0};
    known = &a->known[index];
    if (known->planned)
        return known;
    if (!alloc_plan_make(graph, &known->plan, err))
        return NULL;
    known->planned = true;
    known->degree = 1;
    for (size_t u = 0; u < graph->nunits; u++)
        if (graph->unit[u].parts > known->degree)
            known->degree = graph->unit[u].parts;
    if (graph_key(graph, "degree", &degree) && rec_parse_uint(degree, &n) &&
        n < UINT32_MAX)
        known->degree = (uint32_t)n;
    return known;
}

/* The layout that puts members on these slots, found or made. */
static bool
find_layout(struct alloc_admission *a, struct known *known, struct trial *t,
            struct rec_error *err)
{
    const struct graph *graph = known->plan.graph;
    struct rec_str key = {(const char *)a->members, graph->nops * sizeof *a->members};
    uint32_t index = rec_map_get(&known->layouts, key), turn = 0;
    struct sim_layout *layout;
    const char *kept;

    if (index != REC_NONE) {
        t->layout = a->layout[index];
        return true;
    }
    layout = t->layout = sim_layout_new(rec_str(""), graph, t->nservers, err);
    if (!layout)
        return false;
    for (uint32_t i = 0; i < known->plan.nsteps; i++) {
        const struct graph_unit *unit = &graph->unit[known->plan.step[i].unit];
        for (uint32_t j = 0; j < unit->parts; j++) {
            uint32_t op = graph->member[unit->first + j], twin = graph->op[op].pair;
            layout->slot[op] = a->members[unit->first + j];
            layout->placed[op] = turn++;
            if (twin != GRAPH_NONE) {
                layout->slot[twin] = layout->slot[op];
                layout->placed[twin] = turn++;
            }
        }
    }
    layout->nplaced = turn;
    if (!sim_layout_seal(layout, err) || !(kept = rec_arena_copy(&a->keys, key, err)) ||
        !rec_grow(&a->layout, &a->layout_room, a->nlayouts + 1, sizeof *a->layout, err) ||
        !rec_map_add(&known->layouts, (struct rec_str){kept, key.len},
                     (uint32_t)a->nlayouts, err)) {
        sim_layout_free(layout);
        return false;
    }
    a->layout[a->nlayouts++] = layout;
    return true;
}

/* Places a graph on the servers that are free and prices the placement. */
static bool
place_graph(struct alloc_admission *a, uint32_t index, struct rec_error *err)
{
    struct known *known = know(a, index, err);
    struct trial trial = {.graph = index + 1};
    struct alloc_placement placement;

    if (!known || !alloc_place(a->allocator, &known->plan, a->taken, &trial.outcome,
                               &placement, err))
        return false;
    if (trial.outcome != ALLOC_PLACED)
        return trials_keep(&a->trials, &trial, err);
    if (!rec_grow(&a->members, &a->members_room, known->plan.graph->nops,
                  sizeof *a->members, err))
        return false;
    trial.servers = (uint32_t *)(uintptr_t)placement.held;
    trial.nservers = placement.nheld;
    for (uint32_t i = 0; i < placement.nheld; i++)
        a->slots[placement.held[i]] = i;
    for (size_t i = 0; i < known->plan.graph->nops; i++)
        a->members[i] = a->slots[placement.server[i]];
    return find_layout(a, known, &trial, err) &&
           sim_layout_cost(trial.layout, &a->options.cluster, trial.servers, &trial.cost,
                           err) &&
           trials_keep(&a->trials, &trial, err);
}

/* Tries one alternative. False: *err; otherwise t->cause tells. */
static bool
try_graph(struct alloc_admission *a, const struct graph_job *job, uint32_t index,
          struct attempt *t, struct rec_error *err)
{
    *t = (struct attempt){.graph = index, .trial = trials_find(&a->trials, index)};
    if (!t->trial) {
        if (!place_graph(a, index, err))
            return false;
        t->trial = trials_find(&a->trials, index);
    }
    if (t->trial->outcome != ALLOC_PLACED) {
        t->cause = alloc_outcome_name(t->trial->outcome);
        return true;
    }
    t->finish = a->now + t->trial->cost.step.seconds * job->steps;
    /* Not finish - arrival: late in a simulation, times are rounded more than 1e-9. */
    if (a->now - job->arrival + t->trial->cost.step.seconds * job->steps >
        job->deadline * (1 + 1e-9))
        t->cause = "deadline";
    else if (!isfinite(t->finish))
        return rec_fail(err, REC_DATA, "job '%.*s' would run longer than a number holds",
                        (int)job->id.len, job->id.ptr);
    else if (!isfinite(t->finish))
        return rec_fail(err, REC_DATA, "job '%.*s' would run longer than a number holds",
                        (int)job->id.len, job->id.ptr);
    return true;
}

/* ---- starting and ending ------------------------------------------------- */

static bool
start(struct alloc_admission *a, const struct graph_job *job, const struct attempt *t,
      struct rec_error *err)
{
    uint32_t index, n = t->trial->nservers;
    struct sim_layout *layout = t->trial->layout;
    struct running *r;
    char id[24];
    struct alloc_decision decision = {.job = *job,
                                      .time = a->now,
                                      .graph = a->store->graph[t->graph],
                                      .layout = layout,
                                      .new_layout = layout->id[0] == '\0',
                                      .cost = &t->trial->cost,
                                      .finish = t->finish};

    if (decision.new_layout) {
        snprintf(id, sizeof id, "L%zu", ++a->nwritten);
        layout->id = rec_arena_copy(&layout->arena, rec_str(id), err);
        if (!layout->id)
            return false;
    }
    if (a->nvacant)
        index = a->vacant[--a->nvacant];
    else {
        if (!rec_grow(&a->running, &a->running_room, a->nrunning + 1, sizeof *a->running,
                      err))
            return false;
        index = (uint32_t)a->nrunning++;
        a->running[index] = (struct running){0};
    }
    r = &a->running[index];
    if (!(r->servers = malloc((n + 1) * sizeof *r->servers)))
        return rec_fail_memory(err);
    memcpy(r->servers, t->trial->servers, n * sizeof *r->servers);
    r->nservers = n;
    decision.servers = r->servers;
    a->started++;
    for (uint32_t i = 0; i < n; i++)
        take_server(a, r->servers[i], a->started);
    return sim_queue_push(&a->ends, (struct sim_event){t->finish, index}, err) &&
           a->decide(a->context, &decision, err);
}

static bool
block(struct alloc_admission *a, const struct graph_job *job, uint32_t graph,
      const char *cause, struct rec_error *err)
{
    struct alloc_decision decision = {
        .job = *job, .time = a->now, .cause = cause, .graph = a->store->graph[graph]};
    return a->decide(a->context, &decision, err);
}

static bool
end_job(struct alloc_admission *a, uint32_t index, struct rec_error *err)
{
    struct running *r = &a->running[index];
    for (uint32_t i = 0; i < r->nservers; i++)
        give_back(a, r->servers[i]);
    free(r->servers);
    *r = (struct running){0};
    if (!rec_grow(&a->vacant, &a->vacant_room, a->nvacant + 1, sizeof *a->vacant, err))
        return false;
    a->vacant[a->nvacant++] = index;
    return true;
}

/* ---- one job ------------------------------------------------------------- */

/* What came of trying a job. */
struct verdict {
    bool started;
    bool may_wait; /* it failed for want of servers, which time may bring */
    uint32_t graph;
    const char *cause;
};

/* The alternative to be taken of those tried so far, when all are tried. */
struct best {
    bool any;
    uint32_t graph, nservers;
    double finish;
};

static void
keep_better(enum alloc_choose choose, const struct attempt *t, struct best *best)
{
    uint32_t n = t->trial->nservers;
    if (!best->any ||
        (choose == ALLOC_FASTEST ? t->finish < best->finish : n < best->nservers))
        *best = (struct best){true, t->graph, n, t->finish};
}

/* Tries the alternatives in order and starts the job on the one to be taken. */
static bool
try_job(struct alloc_admission *a, const struct graph_job *job, struct verdict *v,
        struct rec_error *err)
{
    enum alloc_choose choose = a->options.choose;
    struct rec_str rest = job->graphs, id;
    struct attempt t;
    struct best best = {0};

    *v = (struct verdict){.graph = REC_NONE, .cause = "no_servers", .may_wait = true};
    while (rec_str_split(&rest, ',', &id)) {
        uint32_t index = graph_store_find(a->store, id);
        if (index == REC_NONE)
            return rec_fail(
                err, REC_DATA,
                "job '%.*s' refers to graph '%.*s', which has not come before",
                (int)job->id.len, job->id.ptr, (int)id.len, id.ptr);
        if (v->graph == REC_NONE)
            v->may_wait = false;
        v->graph = index;
        if (choose == ALLOC_FIRST_DEGREE) {
            struct known *known = know(a, index, err);
            if (!known)
                return false;
            if (known->degree > a->nfree) {
                v->may_wait = true;
                continue;
            }
        }
        if (!try_graph(a, job, index, &t, err))
            return false;
        v->cause = t.cause;
        v->may_wait = v->may_wait || (t.cause && strcmp(t.cause, "deadline") != 0);
        if (!t.cause && (choose == ALLOC_FIRST || choose == ALLOC_FIRST_DEGREE)) {
            v->started = true;
            return start(a, job, &t, err);
        }
        if (choose == ALLOC_FIRST_DEGREE)
            return true;
        if (!t.cause)
            keep_better(choose, &t, &best);
    }
    if (!best.any)
        return true;
    v->started = true;
    return try_graph(a, job, best.graph, &t, err) && start(a, job, &t, err);
}

/* ---- time ---------------------------------------------------------------- */

static void
forget_waiting(struct alloc_admission *a, size_t i)
{
    free(a->waiting[i].id);
    free(a->waiting[i].graphs);
    memmove(a->waiting + i, a->waiting + i + 1, (--a->nwaiting - i) * sizeof *a->waiting);
}

/* Looks at the jobs that wait, in order, until one must wait on. */
static bool
try_waiting(struct alloc_admission *a, struct rec_error *err)
{
    while (a->nwaiting) {
        struct verdict v;
        struct graph_job job = a->waiting[0].job;
        if (!try_job(a, &job, &v, err))
            return false;
        if (!v.started) {
            if (v.may_wait && a->ends.n)
                return true;
            if (!block(a, &job, v.graph, v.cause, err))
                return false;
        }
        forget_waiting(a, 0);
    }
    return true;
}

/* Lets the jobs that end by `time` end, and those that wait start. */
static bool
advance(struct alloc_admission *a, double time, struct rec_error *err)
{
    while (a->ends.n && a->ends.event[0].time <= time) {
        a->now = a->ends.event[0].time;
        while (a->ends.n && a->ends.event[0].time == a->now)
            if (!end_job(a, (uint32_t)sim_queue_pop(&a->ends).key, err))
                return false;
        if (!try_waiting(a, err))
            return false;
    }
    if (time > a->now && time < (double)INFINITY)
        a->now = time;
    return true;
}

static bool
wait(struct alloc_admission *a, const struct graph_job *job, uint32_t graph,
     struct rec_error *err)
{
    struct waiting w = {.job = *job};
    size_t at;

    if (!rec_grow(&a->waiting, &a->waiting_room, a->nwaiting + 1, sizeof *a->waiting,
                  err))
        return false;
    w.id = strndup(job->id.ptr, job->id.len);
    w.graphs = strndup(job->graphs.ptr, job->graphs.len);
    if (!w.id || !w.graphs) {
        free(w.id);
        free(w.graphs);
        return rec_fail_memory(err);
    }
    w.job.id = rec_str(w.id);
    w.job.graphs = rec_str(w.graphs);
    w.size = graph_sequential(a->store->graph[graph]) * job->steps;
    at = a->nwaiting;
    if (a->options.order == ALLOC_SHORTEST)
        while (at > 0 && a->waiting[at - 1].size > w.size)
            at--;
    memmove(a->waiting + at + 1, a->waiting + at,
            (a->nwaiting++ - at) * sizeof *a->waiting);
    a->waiting[at] = w;
    return true;
}

bool
alloc_admission_advance(struct alloc_admission *a, const struct graph_job *job,
                        struct rec_error *err)
{
    if (job->arrival < a->now)
        return rec_fail(
            err, REC_DATA,
            "jobs must come in order of arrival: job '%.*s' arrives at %.17g, "
            "before %.17g",
            (int)job->id.len, job->id.ptr, job->arrival, a->now);
    return advance(a, job->arrival, err);
}

bool
alloc_admission_arrive(struct alloc_admission *a, const struct graph_job *job,
                       struct rec_error *err)
{
    struct verdict v;
    if (a->nwaiting) { /* nobody overtakes without the order's leave */
        uint32_t graph;
        struct rec_str rest = job->graphs, id;
        rec_str_split(&rest, ',', &id);
        graph = graph_store_find(a->store, id);
        if (graph == REC_NONE)
            return rec_fail(
                err, REC_DATA,
                "job '%.*s' refers to graph '%.*s', which has not come before",
                (int)job->id.len, job->id.ptr, (int)id.len, id.ptr);
        if (a->nwaiting >= a->options.queue)
            return block(a, job, graph, "queue_full", err);
        return wait(a, job, graph, err) && try_waiting(a, err);
    }
    if (!try_job(a, job, &v, err))
        return false;
    if (v.started)
        return true;
    if (v.may_wait && a->options.queue > 0 && a->ends.n)
        return wait(a, job, v.graph, err);
    return block(a, job, v.graph, v.cause, err);
}

bool
alloc_admission_end(struct alloc_admission *a, struct rec_error *err)
{
    return advance(a, INFINITY, err);
}
