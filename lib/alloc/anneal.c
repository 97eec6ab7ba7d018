/*
 * A schedule of jobs that are all known: which start, on which alternative and on which
 * servers, by simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983). A move gives
 * one job a place, on servers that are free while it runs or that it takes from others;
 * these may find another place. Which servers are offered is drawn, and on those the job
 * is placed as the allocator would place it.
 *
 * What a job gets in the end was placed while its own servers were the only free ones.
 * This makes the plan one that an admission can follow: the last thing done is to let
 * jobs arrive at a real one, which for each job hides the servers that the plan does not
 * name (follow() below). Whatever starts there has started by all rules.
 */
#include "question.h"

#include <math.h>
#include <stdlib.h>

enum {
    RETRIES = 3, /* to find another place for a job that lost its own */
    OFFERED = 3, /* jobs in the way that are offered on average, at most */
    REFUSED = UINT16_MAX
};

/* By these an exchange of one job for none is accepted with exp(-1/.3) = .04 of moves at
 * the start, and with exp(-1/.05) = 2e-9 at the end. */
static const double warm = 0.3, cold = 0.05;
/* What it costs, in jobs, that a job takes the mean of all servers * time. Of two plans
 * with as many jobs the one that needs less leaves more room for others. */
static const double price = 0.1;

/* Where a job runs. */
struct plan {
    uint16_t alternative; /* of its graphs; REFUSED: it does not start */
    uint32_t nservers;
    uint32_t *servers; /* owned */
    double finish;     /* seconds */
};

struct planned {
    struct graph_job job;    /* its strings are in `text` */
    char *text;              /* owned: id and graphs */
    uint32_t first, ngraphs; /* graph[first...] are the indexes of its alternatives */
    uint32_t waiting;        /* index in waiting[], if it does not start */
    struct plan plan;
};

/* A plan that a move has changed, to undo it. */
struct before {
    uint32_t job;
    struct plan plan;
};

struct alloc_annealing {
    struct alloc_annealing_options options;
    struct graph_store *store; /* borrowed */
    struct pricer *pricer;     /* at rest all servers in service are free */
    struct rng *rng;
    struct planned *job; /* in order of arrival */
    uint32_t njobs;
    size_t job_room;
    uint32_t *graph;
    size_t ngraphs, graph_room;
    uint32_t *waiting; /* jobs that do not start */
    uint32_t nwaiting;
    double longest;  /* of all plans so far: finish - arrival, seconds */
    double mean;     /* of the plans at first: servers * seconds */
    uint32_t *taken; /* servers that are hidden from the trial at hand */
    uint32_t ntaken;
    uint32_t *mark; /* per server: stamp of the placement that has it */
    uint32_t stamp;
    uint32_t *crowd; /* jobs that run at the same time as the one at hand */
    uint32_t ncrowd;
    bool *offer;           /* per entry of crowd */
    struct before *before; /* of this move */
    uint32_t nbefore;
    size_t before_room;
    uint32_t at;      /* the job that the admission decides */
    uint64_t started; /* by the admission */
};

struct alloc_annealing *
alloc_annealing_new(const struct alloc_annealing_options *options,
                    struct graph_store *store, struct rec_error *err)
{
    struct alloc_annealing *a = calloc(1, sizeof *a);
    uint32_t servers = net_servers(options->placer.net);
    if (!a) {
        rec_fail_memory(err);
        return NULL;
    }
    a->options = *options;
    a->store = store;
    a->taken = calloc(servers, sizeof *a->taken);
    a->mark = calloc(servers, sizeof *a->mark);
    if (!a->taken || !a->mark)
        rec_fail_memory(err);
    else if ((a->pricer = pricer_new(&a->options.placer, store, SIM_LAYOUTS_MAX_ALLOC,
                                     false, err)) &&
             (a->rng = rng_new(options->seed, rng_stream("anneal"), err))) {
        for (uint32_t i = 0; i < options->ndown; i++)
            if (place_is_free(pricer_vacancy(a->pricer), options->down[i]))
                pricer_set_down(a->pricer, options->down[i]);
        return a;
    }
    alloc_annealing_free(a);
    return NULL;
}

void
alloc_annealing_free(struct alloc_annealing *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->njobs; i++) {
        free(a->job[i].text);
        free(a->job[i].plan.servers);
    }
    for (uint32_t i = 0; i < a->nbefore; i++)
        free(a->before[i].plan.servers);
    pricer_free(a->pricer);
    rng_free(a->rng);
    free(a->job);
    free(a->graph);
    free(a->waiting);
    free(a->taken);
    free(a->mark);
    free(a->crowd);
    free(a->offer);
    free(a->before);
    free(a);
}

bool
alloc_annealing_arrive(struct alloc_annealing *a, const struct graph_job *job,
                       struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    struct planned *p;
    if (!rec_grow(&a->job, &a->job_room, a->njobs + 1, sizeof *a->job, err))
        return false;
    p = &a->job[a->njobs];
    *p = (struct planned){.job = *job, .first = (uint32_t)a->ngraphs};
    p->plan.alternative = REFUSED;
    while (rec_str_split(&rest, ',', &id)) {
        if (!rec_grow(&a->graph, &a->graph_room, a->ngraphs + 1, sizeof *a->graph, err) ||
            !question_find(a->store, job, id, &a->graph[a->ngraphs], err))
            return false;
        a->ngraphs++;
        if (++p->ngraphs == REFUSED)
            return rec_fail(err, REC_USAGE, "job '%.*s' has %u alternatives or more",
                            (int)job->id.len, job->id.ptr, p->ngraphs);
    }
    if (!(p->text = malloc(job->id.len + job->graphs.len + 1)))
        return rec_fail_memory(err);
    memcpy(p->text, job->id.ptr, job->id.len);
    memcpy(p->text + job->id.len, job->graphs.ptr, job->graphs.len);
    p->job.id.ptr = p->text;
    p->job.graphs.ptr = p->text + job->id.len;
    a->njobs++;
    return true;
}

/* ---- plans --------------------------------------------------------------- */

static double
area_of(const struct planned *p)
{
    return p->plan.alternative == REFUSED
               ? 0
               : p->plan.nservers * (p->plan.finish - p->job.arrival);
}

/* Gives a job another plan, which is owned from now on, and keeps the old one. */
static bool
change(struct alloc_annealing *a, uint32_t index, struct plan plan, struct rec_error *err)
{
    struct planned *p = &a->job[index];
    bool ran = p->plan.alternative != REFUSED, runs = plan.alternative != REFUSED;
    if (!rec_grow(&a->before, &a->before_room, a->nbefore + 1, sizeof *a->before, err)) {
        free(plan.servers);
        return false;
    }
    a->before[a->nbefore++] = (struct before){index, p->plan};
    p->plan = plan;
    if (ran && !runs) {
        p->waiting = a->nwaiting;
        a->waiting[a->nwaiting++] = index;
    } else if (!ran && runs) {
        uint32_t last = a->waiting[--a->nwaiting];
        a->waiting[p->waiting] = last;
        a->job[last].waiting = p->waiting;
    }
    return true;
}

/* Ends a move: forgets the old plans, or takes them back, the last first. */
static bool
settle(struct alloc_annealing *a, bool accept, struct rec_error *err)
{
    uint32_t n = a->nbefore;
    while (!accept && n > 0) {
        const struct before old = a->before[--n];
        a->before[n].plan.servers = NULL; /* owned by the job again */
        if (!change(a, old.job, old.plan, err))
            return false;
    }
    for (uint32_t i = 0; i < a->nbefore; i++)
        free(a->before[i].plan.servers);
    a->nbefore = 0;
    return true;
}

/* Sets crowd[] to the jobs that this one meets if it runs until `end`: those before it
 * that run when it arrives, and those after it that arrive before it ends. */
static void
find_crowd(struct alloc_annealing *a, uint32_t index, double end)
{
    double start = a->job[index].job.arrival;
    uint32_t low = 0, high = index;
    while (low < high) { /* no job from before this time runs at `start` */
        uint32_t middle = low + (high - low) / 2;
        if (a->job[middle].job.arrival < start * (1 - 1e-12) - a->longest)
            low = middle + 1;
        else
            high = middle;
    }
    a->ncrowd = 0;
    for (uint32_t i = low; i < a->njobs && (i <= index || a->job[i].job.arrival < end);
         i++)
        if (i != index && a->job[i].plan.alternative != REFUSED &&
            (i > index || a->job[i].plan.finish > start))
            a->crowd[a->ncrowd++] = i;
}

/* ---- placing ------------------------------------------------------------- */

static void
hide(struct alloc_annealing *a, uint32_t server)
{
    if (!place_is_free(pricer_vacancy(a->pricer), server))
        return;
    pricer_take(a->pricer, server);
    a->taken[a->ntaken++] = server;
}

static void
show(struct alloc_annealing *a)
{
    while (a->ntaken)
        pricer_give_back(a->pricer, a->taken[--a->ntaken]);
}

/* Hides what is not offered: the servers of jobs in the way, unless their place is
 * offered, and in every other trial also the servers below a number that is drawn. */
static void
hide_others(struct alloc_annealing *a)
{
    uint32_t servers = net_servers(a->options.placer.net);
    uint32_t from = rng_below(a->rng, 2) ? rng_below(a->rng, servers) : 0;
    for (uint32_t i = 0; i < a->ncrowd; i++) {
        const struct plan *plan = &a->job[a->crowd[i]].plan;
        for (uint32_t k = 0; !a->offer[i] && k < plan->nservers; k++)
            hide(a, plan->servers[k]);
    }
    for (uint32_t s = 0; s < from; s++)
        hide(a, s);
}

/* Marks the servers of a placement, and hides all others. */
static void
hide_all_but(struct alloc_annealing *a, const uint32_t *server, uint32_t n)
{
    a->stamp++;
    for (uint32_t i = 0; i < n; i++)
        a->mark[server[i]] = a->stamp;
    for (uint32_t s = 0; s < net_servers(a->options.placer.net); s++)
        if (a->mark[s] != a->stamp)
            hide(a, s);
}

/* Tries an alternative on the servers that are shown. *plan is set if it can start there;
 * plan->servers is the trial's. */
static bool
try_shown(struct alloc_annealing *a, const struct planned *p, uint16_t alternative,
          struct plan *plan, bool *ok, struct rec_error *err)
{
    const struct trial *trial;
    double seconds;
    *ok = false;
    if (!pricer_forget(a->pricer, err) ||
        !(trial = pricer_try(a->pricer, a->graph[p->first + alternative], err)))
        return false;
    if (trial->outcome != PLACE_PLACED)
        return true;
    seconds = trial->cost.step.seconds * p->job.steps;
    *plan = (struct plan){alternative, trial->nservers, trial->servers,
                          p->job.arrival + seconds};
    *ok = seconds <= p->job.deadline * alloc_allowance && isfinite(plan->finish);
    return true;
}

/* The same, and again with no other servers shown than those that it took: only if it
 * takes them again can the admission follow. plan->servers becomes owned. */
static bool
try_place(struct alloc_annealing *a, const struct planned *p, uint16_t alternative,
          struct plan *plan, bool *ok, struct rec_error *err)
{
    uint32_t n;
    bool fine = try_shown(a, p, alternative, plan, ok, err);
    if (fine && *ok) {
        uint32_t *servers = malloc((plan->nservers + 1) * sizeof *servers);
        n = plan->nservers;
        if (!servers) {
            show(a);
            return rec_fail_memory(err);
        }
        memcpy(servers, plan->servers, n * sizeof *servers);
        show(a);
        hide_all_but(a, servers, n);
        fine = try_shown(a, p, alternative, plan, ok, err);
        *ok = fine && *ok && plan->nservers == n;
        if (*ok) {
            memcpy(servers, plan->servers, n * sizeof *servers);
            plan->servers = servers;
        } else
            free(servers);
    }
    show(a);
    return fine;
}

/* Plans a job, if it can start with a drawn alternative. Others lose their plans if they
 * were offered and are in its way: `offered` says how many are, on average. *ok: it has
 * the new plan. */
static bool
insert(struct alloc_annealing *a, uint32_t index, uint32_t offered, bool *ok,
       struct rec_error *err)
{
    struct planned *p = &a->job[index];
    uint16_t alternative = (uint16_t)rng_below(a->rng, p->ngraphs);
    enum place_outcome outcome;
    struct plan plan;
    double alone;
    *ok = false;
    if (!pricer_forget(a->pricer, err) ||
        !pricer_try_alone(a->pricer, a->graph[p->first + alternative], &outcome, &alone,
                          err))
        return false;
    if (isinf(alone))
        return true;
    find_crowd(a, index, p->job.arrival + alone * p->job.steps);
    for (uint32_t i = 0; i < a->ncrowd; i++)
        a->offer[i] = offered > 0 && rng_below(a->rng, a->ncrowd) < offered;
    hide_others(a);
    if (!try_place(a, p, alternative, &plan, ok, err))
        return false;
    if (!*ok)
        return true;
    /* It may run longer than alone: others may be in its way that were not looked at. */
    a->longest = fmax(a->longest, plan.finish - p->job.arrival);
    find_crowd(a, index, plan.finish);
    if (!change(a, index, plan, err))
        return false;
    for (uint32_t i = 0; i < a->ncrowd; i++) {
        const struct plan *other = &a->job[a->crowd[i]].plan;
        bool meets = false;
        for (uint32_t k = 0; k < other->nservers && !meets; k++)
            meets = a->mark[other->servers[k]] == a->stamp;
        if (meets && !change(a, a->crowd[i], (struct plan){.alternative = REFUSED}, err))
            return false;
    }
    return true;
}

/* ---- the search ---------------------------------------------------------- */

/* The gain of this move: jobs, and a little for servers * time. Each job counts once,
 * with its first old plan. */
static double
gain(const struct alloc_annealing *a)
{
    double jobs = 0, area = 0;
    for (uint32_t i = 0; i < a->nbefore; i++) {
        const struct before *old = &a->before[i];
        struct planned was = a->job[old->job];
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = a->before[k].job == old->job;
        if (seen)
            continue;
        was.plan = old->plan;
        jobs += (a->job[old->job].plan.alternative != REFUSED) -
                (old->plan.alternative != REFUSED);
        area += area_of(&a->job[old->job]) - area_of(&was);
    }
    return jobs - (a->mean > 0 ? price * area / a->mean : 0);
}

/* One move, at a temperature in jobs. */
static bool
move(struct alloc_annealing *a, double temperature, struct rec_error *err)
{
    uint32_t index = a->nwaiting && rng_below(a->rng, 3)
                         ? a->waiting[rng_below(a->rng, a->nwaiting)]
                         : rng_below(a->rng, a->njobs);
    uint32_t offered = rng_below(a->rng, OFFERED + 1), lost;
    double g;
    bool ok;
    if (!insert(a, index, offered, &ok, err))
        return false;
    if (!ok)
        return true;
    lost = a->nbefore;
    for (uint32_t i = 1; i < lost; i++) {
        ok = false;
        for (int turn = 0; turn < RETRIES && !ok; turn++)
            if (!insert(a, a->before[i].job, 0, &ok, err))
                return false;
    }
    g = gain(a);
    return settle(
        a, g >= 0 || rng_uniform(a->rng) * rng_exp(fmin(-g / temperature, 700)) < 1, err);
}

static bool
search(struct alloc_annealing *a, struct rec_error *err)
{
    double temperature = warm, total = 0;
    double factor = rng_pow(cold / warm, 1 / (double)a->options.steps);
    bool ok;
    for (uint32_t i = 0; i < a->njobs; i++) {
        a->job[i].waiting = a->nwaiting;
        a->waiting[a->nwaiting++] = i;
    }
    for (uint32_t i = 0; i < a->njobs; i++)
        for (int turn = 0; turn < RETRIES; turn++)
            if (!insert(a, i, 0, &ok, err) || !settle(a, gain(a) >= 0, err))
                return false;
    for (uint32_t i = 0; i < a->njobs; i++)
        total += area_of(&a->job[i]);
    a->mean = a->nwaiting < a->njobs ? total / (a->njobs - a->nwaiting) : 0;
    for (uint64_t i = 0; i < a->options.steps; i++, temperature *= factor)
        if (!move(a, temperature, err))
            return false;
    return true;
}

/* ---- the plan in an admission -------------------------------------------- */

static bool
arrive(void *self, const struct graph_job *job, struct rec_error *err)
{
    struct alloc_annealing *a = self;
    (void)job, (void)err;
    a->at++; /* counted from 1 */
    return true;
}

/* Chooses what is planned: on no other servers than the plan's. */
static bool
follow(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    struct alloc_annealing *a = self;
    const struct plan *plan = &a->job[a->at - 1].plan;
    const struct alloc_alternative *alternative;
    uint32_t degree, servers = net_servers(a->options.placer.net);

    *choice = ALLOC_REFUSED;
    if (plan->alternative == REFUSED)
        return alloc_question_degree(q, 0, &degree, err); /* a block names a graph */
    a->stamp++;
    for (uint32_t i = 0; i < plan->nservers; i++)
        a->mark[plan->servers[i]] = a->stamp;
    for (uint32_t s = 0; s < servers; s++)
        if (a->mark[s] != a->stamp && place_is_free(pricer_vacancy(q->pricer), s)) {
            pricer_take(q->pricer, s);
            a->taken[a->ntaken++] = s;
        }
    alternative = alloc_question_try(q, plan->alternative, err);
    while (a->ntaken)
        pricer_give_back(q->pricer, a->taken[--a->ntaken]);
    if (alternative && !alternative->cause)
        *choice = plan->alternative;
    return alternative != NULL;
}

static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct alloc_annealing *a = context;
    const struct planned *p = &a->job[a->at - 1];
    if ((decision->cause != NULL) != (p->plan.alternative == REFUSED) ||
        (!decision->cause && decision->finish != p->plan.finish))
        return rec_fail(err, REC_BUG, "job '%.*s' does not start as it was planned",
                        (int)p->job.id.len, p->job.id.ptr);
    a->started += decision->cause == NULL;
    return true;
}

static const struct alloc_chooser follower = {
    .name = "plan", .arrive = arrive, .decide = follow};

static bool
run_admission(struct alloc_annealing *a, struct rec_error *err)
{
    const struct alloc_choosing choosing = {.chooser = &follower, .self = a};
    /* follow() hides servers while an alternative is tried. An admission that is not
     * counted would place the graph again later, without the hiding, and elsewhere. */
    const struct alloc_admission_options options = {.placer = a->options.placer,
                                                    .counted = true,
                                                    .choosing = &choosing,
                                                    .down = a->options.down,
                                                    .ndown = a->options.ndown};
    struct alloc_admission *admission =
        alloc_admission_new(&options, a->store, count, a, err);
    bool ok = admission != NULL;
    for (uint32_t i = 0; ok && i < a->njobs; i++)
        ok = alloc_admission_advance(admission, &a->job[i].job, err) &&
             alloc_admission_arrive(admission, &a->job[i].job, err);
    ok = ok && alloc_admission_end(admission, err);
    alloc_admission_free(admission);
    return ok;
}

bool
alloc_annealing_run(struct alloc_annealing *a, uint64_t *started, struct rec_error *err)
{
    a->waiting = calloc(a->njobs + 1, sizeof *a->waiting);
    a->crowd = calloc(a->njobs + 1, sizeof *a->crowd);
    a->offer = calloc(a->njobs + 1, sizeof *a->offer);
    if (!a->waiting || !a->crowd || !a->offer)
        return rec_fail_memory(err);
    if (!search(a, err) || !run_admission(a, err))
        return false;
    *started = a->started;
    return true;
}
