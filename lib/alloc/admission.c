/*
 * Admission: jobs arrive, take servers, wait or are turned away. Servers come free before
 * arrivals of the same instant are looked at; jobs that wait are looked at before new
 * ones.
 */
#include "price.h"
#include "waiting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A job may complete so much later than its deadline: sums of times are rounded. */
static const double ALLOWANCE = 1 + 1e-9;

struct running {
    struct sim_layout *layout;
    uint32_t *servers;
    uint32_t nservers;
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

    struct waiters waiters;
    uint64_t stuck; /* the key of the job that was tried first, in vain, since a server
                       came free; 0: of none */
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
    a->pricer =
        pricer_new(&a->options.placer, store,
                   options->layouts ? options->layouts : SIM_LAYOUTS_MAX_ALLOC, err);
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
    sim_queue_free(&a->ends);
    waiters_free(&a->waiters);
    free(a->best_servers);
    free(a->owner);
    free(a->running);
    free(a->vacant);
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
        if (!sim_layout_name(layout, rec_str(id), err))
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
    r->layout = layout;
    sim_layout_hold(layout);
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
    a->stuck = 0;
    for (uint32_t i = 0; i < r->nservers; i++)
        give_back(a, r->servers[i]);
    sim_layout_release(r->layout);
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
    if (!pricer_forget(a->pricer, err))
        return false;
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

/* Looks at the jobs that wait, in order, until one must wait on. Only an end can help one
 * that was tried in vain, unless where it would go is drawn. */
static bool
try_waiting(struct alloc_admission *a, struct rec_error *err)
{
    struct waiter *first;
    while ((first = waiters_first(&a->waiters))) {
        struct verdict v;
        if (first->key == a->stuck && a->options.placer.heuristic->pure)
            return true;
        if (!try_job(a, &first->job, &v, err))
            return false;
        if (!v.started) {
            if (v.may_wait && a->ends.n) {
                a->stuck = first->key;
                return true;
            }
            if (!block(a, &first->job, v.graph, v.cause, v.failed, err))
                return false;
        }
        if (!waiters_remove(&a->waiters, first, err))
            return false;
    }
    return true;
}

static double
next_end(const struct alloc_admission *a)
{
    return a->ends.n ? a->ends.event[0].time : (double)INFINITY;
}

/* A job whose last chance passes goes; others may be free to start. */
static bool
pass_last_chance(struct alloc_admission *a, struct rec_error *err)
{
    bool is_first;
    struct waiter *waiter = waiters_take_chance(&a->waiters);
    /* a server that comes free so soon after is in time, as far as rounding can tell */
    if (a->now < waiter->latest && next_end(a) <= waiter->latest)
        return waiters_give_chance(&a->waiters, waiter, waiter->latest, err);
    is_first = waiter == waiters_first(&a->waiters);
    return block(a, &waiter->job, waiter->graph, "deadline", 0, err) &&
           waiters_remove(&a->waiters, waiter, err) && (!is_first || try_waiting(a, err));
}

/* Lets the jobs that end by `time` end, and those that wait start, or give up. */
static bool
advance(struct alloc_admission *a, double time, struct rec_error *err)
{
    for (;;) {
        double end = next_end(a), chance = waiters_next_chance(&a->waiters);
        double next = fmin(end, chance);
        if (next > time || isinf(next))
            break;
        a->now = fmax(a->now, next);
        while (a->ends.n && a->ends.event[0].time == end && end == next)
            if (!end_job(a, (uint32_t)sim_queue_pop(&a->ends).key, err))
                return false;
        if (end == next ? !try_waiting(a, err) : !pass_last_chance(a, err))
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
    struct waiter w = {.job = *job, .graph = graph};
    const char *cause;
    double last_chance, size = 0;

    if (!find_last_chance(a, job, &last_chance, &w.latest, &cause, err))
        return false;
    if (cause || w.latest < a->now)
        return block(a, job, graph, cause ? cause : "deadline", 0, err);
    if (a->options.order == ALLOC_SHORTEST)
        size = graph_sequential(a->store->graph[graph]) * job->steps;
    return waiters_add(&a->waiters, &w, size, last_chance, err);
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
    if (a->waiters.n) { /* nobody overtakes without the order's leave */
        uint32_t graph;
        struct rec_str rest = job->graphs, id;
        rec_str_split(&rest, ',', &id);
        if (!find_graph(a, job, id, &graph, err))
            return false;
        if (a->waiters.n >= a->options.queue)
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
