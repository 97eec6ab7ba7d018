/*
 * Admission: jobs arrive, take servers, wait or are turned away. Servers come free before
 * arrivals of the same instant are looked at; jobs that wait are looked at before new
 * ones.
 */
#include "price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A job may complete so much later than its deadline: sums of times are rounded. */
static const double ALLOWANCE = 1 + 1e-9;

struct running {
    uint32_t *servers;
    uint32_t nservers;
};

struct waiting {
    char *id, *graphs;
    struct graph_job job;
    double size;     /* sequential time, seconds: what shortest-first goes by */
    uint32_t number; /* counts the jobs that waited: the key of its last chance */
    double latest;   /* it must start by then, seconds: its last chance, with ALLOWANCE */
    uint32_t graph;  /* of a block record */
};

/* One alternative, tried. */
struct attempt {
    const char *cause; /* NULL: it can start */
    uint32_t graph;
    const struct trial *trial; /* valid until the next attempt */
    double finish;
};

struct alloc_admission {
    struct alloc_admission_options options;
    struct graph_store *store; /* borrowed */
    alloc_decide *decide;
    void *context;
    double now;

    struct pricer *pricer;
    uint32_t nfree; /* servers */
    uint64_t *owner;
    size_t nwritten;   /* layouts that some job has started with: they have a name */
    struct trial best; /* the alternative to be taken of a job; its servers are: */
    uint32_t *best_servers;
    size_t best_room;

    struct sim_queue ends; /* key: index of the running job */
    struct running *running;
    size_t nrunning, running_room;
    uint32_t *vacant; /* unused places in running */
    size_t nvacant, vacant_room;
    uint64_t started;

    struct waiting *waiting; /* in the order they are tried */
    size_t nwaiting, waiting_room;
    uint32_t waited;               /* jobs that have waited so far */
    struct sim_queue last_chances; /* when a job that waits must start at the latest to
                                      meet its deadline; key: its number */
};

static void
take_server(struct alloc_admission *a, uint32_t server, uint64_t owner)
{
    a->owner[server] = owner;
    a->nfree--;
    pricer_take(a->pricer, server);
}

static void
give_back(struct alloc_admission *a, uint32_t server)
{
    a->owner[server] = 0;
    a->nfree++;
    pricer_give_back(a->pricer, server);
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
    a->nfree = net_servers(&options->placer.cluster);
    a->pricer = pricer_new(&a->options.placer, store, err);
    a->owner = a->pricer ? calloc(a->nfree, sizeof *a->owner) : NULL;
    if (!a->owner) {
        if (a->pricer)
            rec_fail_memory(err);
        alloc_admission_free(a);
        return NULL;
    }
    for (uint32_t i = 0; i < options->ndown; i++) {
        uint32_t server = options->down[i];
        if (a->owner[server] == ALLOC_DOWN)
            continue;
        a->owner[server] = ALLOC_DOWN;
        a->nfree--;
        pricer_set_down(a->pricer, server);
    }
    return a;
}

void
alloc_admission_free(struct alloc_admission *a)
{
    if (!a)
        return;
    pricer_free(a->pricer);
    for (size_t i = 0; i < a->nrunning; i++)
        free(a->running[i].servers);
    for (size_t i = 0; i < a->nwaiting; i++) {
        free(a->waiting[i].id);
        free(a->waiting[i].graphs);
    }
    sim_queue_free(&a->ends);
    sim_queue_free(&a->last_chances);
    free(a->best_servers);
    free(a->owner);
    free(a->running);
    free(a->vacant);
    free(a->waiting);
    free(a);
}

const uint64_t *
alloc_admission_owners(const struct alloc_admission *a)
{
    return a->owner;
}

/* ---- one alternative ----------------------------------------------------- */

static bool
find_graph(const struct alloc_admission *a, const struct graph_job *job,
           struct rec_str id, uint32_t *index, struct rec_error *err)
{
    *index = graph_store_find(a->store, id);
    return *index != REC_NONE ||
           rec_fail(err, REC_DATA,
                    "job '%.*s' refers to graph '%.*s', which has not come before",
                    (int)job->id.len, job->id.ptr, (int)id.len, id.ptr);
}

/* Tries one alternative. False: *err; otherwise t->cause tells. */
static bool
try_graph(struct alloc_admission *a, const struct graph_job *job, uint32_t index,
          struct attempt *t, struct rec_error *err)
{
    *t = (struct attempt){.graph = index, .trial = pricer_try(a->pricer, index, err)};
    if (!t->trial)
        return false;
    if (t->trial->outcome != ALLOC_PLACED) {
        t->cause = alloc_outcome_name(t->trial->outcome);
        return true;
    }
    t->finish = a->now + t->trial->cost.step.seconds * job->steps;
    /* Not finish - arrival: late in a simulation, times are rounded more than 1e-9. */
    if (a->now - job->arrival + t->trial->cost.step.seconds * job->steps >
        job->deadline * ALLOWANCE)
        t->cause = "deadline";
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
      const char *cause, uint32_t failed, struct rec_error *err)
{
    struct alloc_decision decision = {.job = *job,
                                      .time = a->now,
                                      .cause = cause,
                                      .failed = failed,
                                      .graph = a->store->graph[graph]};
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
    uint32_t failed; /* the unit that could not be placed */
};

/* Keeps the alternative to be taken of those tried so far; best->trial is NULL at first. */
static bool
keep_better(struct alloc_admission *a, const struct attempt *t, struct attempt *best,
            struct rec_error *err)
{
    uint32_t n = t->trial->nservers;
    if (best->trial && (a->options.choose == ALLOC_FASTEST ? t->finish >= best->finish
                                                           : n >= best->trial->nservers))
        return true;
    if (!rec_grow(&a->best_servers, &a->best_room, n + 1, sizeof *a->best_servers, err))
        return false;
    memcpy(a->best_servers, t->trial->servers, n * sizeof *a->best_servers);
    a->best = *t->trial;
    a->best.servers = a->best_servers;
    *best = *t;
    best->trial = &a->best;
    return true;
}

/* Tries the alternatives in order and starts the job on the one to be taken. */
static bool
try_job(struct alloc_admission *a, const struct graph_job *job, struct verdict *v,
        struct rec_error *err)
{
    enum alloc_choose choose = a->options.choose;
    struct rec_str rest = job->graphs, id;
    struct attempt t, best = {.trial = NULL};

    *v = (struct verdict){.graph = REC_NONE, .cause = "no_servers", .may_wait = true};
    while (rec_str_split(&rest, ',', &id)) {
        uint32_t index;
        if (!find_graph(a, job, id, &index, err))
            return false;
        if (v->graph == REC_NONE)
            v->may_wait = false;
        v->graph = index;
        if (choose == ALLOC_FIRST_DEGREE) {
            uint32_t degree;
            if (!pricer_degree(a->pricer, index, &degree, err))
                return false;
            if (degree > a->nfree) {
                v->may_wait = true;
                continue;
            }
        }
        if (!try_graph(a, job, index, &t, err))
            return false;
        v->cause = t.cause;
        v->failed = t.trial->failed;
        v->may_wait = v->may_wait || (t.cause && strcmp(t.cause, "deadline") != 0);
        if (!t.cause && (choose == ALLOC_FIRST || choose == ALLOC_FIRST_DEGREE)) {
            v->started = true;
            return start(a, job, &t, err);
        }
        if (choose == ALLOC_FIRST_DEGREE)
            return true;
        if (!t.cause && !keep_better(a, &t, &best, err))
            return false;
    }
    v->started = best.trial != NULL;
    return !v->started || start(a, job, &best, err);
}

/* ---- jobs that are without hope ------------------------------------------ */

/*
 * When a job must start at the latest: its fastest alternative would just meet the deadline
 * if the cluster were empty. *cause: not even then would one be placed. Where placements
 * are drawn nothing is certain.
 */
static bool
find_last_chance(struct alloc_admission *a, const struct graph_job *job, double *time,
                 double *latest, const char **cause, struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    double step = INFINITY;
    enum alloc_outcome outcome = ALLOC_PLACED;

    *cause = NULL;
    *time = *latest = INFINITY;
    if (!a->options.placer.heuristic->pure)
        return true;
    while (rec_str_split(&rest, ',', &id)) {
        uint32_t index;
        double alone;
        if (!find_graph(a, job, id, &index, err) ||
            !pricer_try_alone(a->pricer, index, &outcome, &alone, err))
            return false;
        step = fmin(step, alone);
    }
    if (isinf(step))
        *cause = alloc_outcome_name(outcome);
    *time = job->arrival + job->deadline - step * job->steps;
    *latest = job->arrival + job->deadline * ALLOWANCE - step * job->steps;
    return true;
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
            if (!block(a, &job, v.graph, v.cause, v.failed, err))
                return false;
        }
        forget_waiting(a, 0);
    }
    return true;
}

static double
next_time(const struct sim_queue *queue)
{
    return queue->n ? queue->event[0].time : (double)INFINITY;
}

/* A job whose last chance passes goes, if it still waits; others may be free to start. */
static bool
pass_last_chance(struct alloc_admission *a, uint64_t number, struct rec_error *err)
{
    size_t i = 0;
    while (i < a->nwaiting && a->waiting[i].number != number)
        i++;
    if (i == a->nwaiting)
        return true;
    /* a server that comes free so soon after is in time, as far as rounding can tell */
    if (a->now < a->waiting[i].latest && next_time(&a->ends) <= a->waiting[i].latest)
        return sim_queue_push(&a->last_chances,
                              (struct sim_event){a->waiting[i].latest, number}, err);
    if (!block(a, &a->waiting[i].job, a->waiting[i].graph, "deadline", 0, err))
        return false;
    forget_waiting(a, i);
    return i > 0 || try_waiting(a, err);
}

/* Lets the jobs that end by `time` end, and those that wait start, or give up. */
static bool
advance(struct alloc_admission *a, double time, struct rec_error *err)
{
    for (;;) {
        double end = next_time(&a->ends), chance = next_time(&a->last_chances);
        double next = fmin(end, chance);
        if (next > time || isinf(next))
            break;
        a->now = fmax(a->now, next);
        while (a->ends.n && a->ends.event[0].time == end && end == next)
            if (!end_job(a, (uint32_t)sim_queue_pop(&a->ends).key, err))
                return false;
        if (end == next ? !try_waiting(a, err)
                        : !pass_last_chance(a, sim_queue_pop(&a->last_chances).key, err))
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
    struct waiting w = {.job = *job, .graph = graph, .number = ++a->waited};
    const char *cause;
    double last_chance;
    size_t at;

    if (!find_last_chance(a, job, &last_chance, &w.latest, &cause, err))
        return false;
    if (cause || w.latest < a->now)
        return block(a, job, graph, cause ? cause : "deadline", 0, err);
    if (!rec_grow(&a->waiting, &a->waiting_room, a->nwaiting + 1, sizeof *a->waiting,
                  err) ||
        (isfinite(last_chance) &&
         !sim_queue_push(&a->last_chances, (struct sim_event){last_chance, w.number},
                         err)))
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
        if (!find_graph(a, job, id, &graph, err))
            return false;
        if (a->nwaiting >= a->options.queue)
            return block(a, job, graph, "queue_full", 0, err);
        return wait(a, job, graph, err) && try_waiting(a, err);
    }
    if (!try_job(a, job, &v, err))
        return false;
    if (v.started)
        return true;
    if (v.may_wait && a->options.queue > 0 && a->ends.n)
        return wait(a, job, v.graph, err);
    return block(a, job, v.graph, v.cause, v.failed, err);
}

bool
alloc_admission_end(struct alloc_admission *a, struct rec_error *err)
{
    return advance(a, INFINITY, err);
}
