/*
 * Admission: jobs arrive, take servers, wait or are turned away. It is an event
 * simulation whose events are the ends of running jobs and the last chances of waiting
 * ones (waiting.h). A job is decided by a question to the chooser (question.h), which
 * tries alternatives by the pricer (price.h). At one instant, jobs end first, then
 * waiting jobs are tried, then new ones arrive: so a job gets servers that come free as
 * it arrives, but not before those that waited for them.
 */
#include "question.h"
#include "running.h"
#include "waiting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct alloc_admission {
    struct alloc_admission_options options;
    struct graph_store *store; /* borrowed */
    alloc_decide *decide;
    void *context;
    double now;

    /* The admission whose pricer and features this one uses, itself or another one; and
     * of that, the one whose cluster and arrivals they have now. */
    struct alloc_admission *host, *guest;
    struct arrivals arrivals;       /* while another one is the guest */
    struct pricer *pricer;          /* the host's */
    size_t nwritten;                /* of a host: layouts with a name, with which some
                                     * job started */
    struct alloc_question question; /* about the job that is being decided */
    bool asked;                     /* about it already: its arrival is counted */

    struct occupancy jobs; /* that run */
    struct waiters waiters;
    /* The first waiting job, by its key, if it was tried in vain since a job last ended;
     * 0: no job is stuck. Before the next end it would fail again, so it is not tried. */
    uint64_t stuck;
};

/* Makes the pricer and the features those of this admission. */
static void
enter(struct alloc_admission *a)
{
    struct alloc_admission *guest = a->host->guest;
    struct features *features = a->question.features;
    if (guest == a)
        return;
    pricer_flip(a->pricer, guest->jobs.held, guest->jobs.marks);
    pricer_flip(a->pricer, a->jobs.held, a->jobs.marks);
    if (features) {
        guest->arrivals = features->arrivals;
        features->arrivals = a->arrivals;
    }
    a->host->guest = a;
}

struct alloc_admission *
alloc_admission_new(const struct alloc_admission_options *options,
                    struct graph_store *store, alloc_decide *decide, void *context,
                    struct rec_error *err)
{
    struct alloc_admission *a = calloc(1, sizeof *a);
    size_t nwords = 0; /* of a set of servers */
    if (!a) {
        rec_fail_memory(err);
        return NULL;
    }
    a->options = *options;
    a->store = store;
    a->decide = decide;
    a->context = context;
    a->jobs.anonymous = options->counted;
    a->question = (struct alloc_question){.store = store, .counted = options->counted};
    a->host = options->host ? options->host : a;
    if (!options->host)
        a->guest = a;
    a->pricer = a->question.pricer =
        options->host
            ? options->host->pricer
            : pricer_new(&a->options.placer, store,
                         options->layouts ? options->layouts : SIM_LAYOUTS_MAX_ALLOC,
                         options->counted, err);
    for (uint32_t i = 0; a->pricer && !options->host && i < options->nmore; i++)
        if (!pricer_add_way(a->pricer, &options->more[i], err)) {
            alloc_admission_free(a);
            return NULL;
        }
    if (options->host)
        a->question.features = options->host->question.features;
    else if (options->choosing->chooser->observes &&
             !(a->question.features = features_new(options->placer.net, err))) {
        alloc_admission_free(a);
        return NULL;
    }
    if (a->pricer)
        (void)pricer_taken(a->pricer, &nwords);
    if (!a->pricer ||
        !occupancy_init(&a->jobs, net_servers(options->placer.net), nwords, err)) {
        alloc_admission_free(a);
        return NULL;
    }
    for (uint32_t i = 0; i < options->ndown; i++)
        if (occupancy_set_down(&a->jobs, options->down[i]) && !options->host)
            pricer_set_down(a->pricer, options->down[i]);
    return a;
}

void
alloc_admission_free(struct alloc_admission *a)
{
    if (!a)
        return;
    if (a->host->guest == a && a->host != a)
        enter(a->host);
    if (a->host != a)
        a->question.features = NULL; /* the host's */
    question_free(&a->question);
    occupancy_free(&a->jobs);
    if (a->host == a)
        pricer_free(a->pricer);
    waiters_free(&a->waiters);
    free(a);
}

const uint64_t *
alloc_admission_owners(const struct alloc_admission *a)
{
    return a->jobs.owner;
}

/* ---- starting and ending ------------------------------------------------- */

/* Lets a job run. Its layout is NULL if it runs in another admission, too, of which this
 * one is a copy: the layout is held there. */
static bool
occupy(struct alloc_admission *a, const struct running *job, struct rec_error *err)
{
    pricer_flip(a->pricer, job->taken, job->marks);
    return occupancy_start(&a->jobs, job, err);
}

/* Lets it run on an alternative that was tried. */
static bool
occupy_tried(struct alloc_admission *a, const struct tried *t, struct sim_layout *layout,
             struct rec_error *err)
{
    const struct running job = {.layout = layout,
                                .taken = t->taken,
                                .nservers = t->alternative.nservers,
                                .finish = t->alternative.finish,
                                .marks = t->trial.marks};
    return occupy(a, &job, err);
}

/* True for the first decision that names a graph that was made for it. */
static bool
is_new_graph(const struct alloc_question *q)
{
    bool is = q->unnamed && *q->unnamed;
    if (is)
        *q->unnamed = false;
    return is;
}

/* Starts a job on an alternative that was tried, or on what an action gave. A layout gets
 * its name when the first job starts with it: those that were tried and not chosen never
 * appear in the output. */
static bool
start(struct alloc_admission *a, const struct graph_job *job, const struct tried *t,
      struct rec_error *err)
{
    const struct alloc_alternative *alternative = &t->alternative;
    const struct trial *trial = t == &a->question.acted ? &a->question.trial : NULL;
    char id[24];
    struct alloc_decision decision = {.job = *job,
                                      .time = a->now,
                                      .op = GRAPH_NONE,
                                      .server = REC_NONE,
                                      .graph = a->store->graph[alternative->graph],
                                      .new_graph = is_new_graph(&a->question),
                                      .nservers = alternative->nservers,
                                      .finish = alternative->finish};

    if (!a->options.counted) {
        if (!trial && !(trial = pricer_try_way(a->pricer, alternative->graph,
                                               alternative->way, err)))
            return false;
        decision.layout = trial->layout;
        decision.new_layout = trial->layout->where.id[0] == '\0';
        decision.servers = trial->servers;
        decision.cost = &trial->cost;
    }
    if (decision.new_layout) {
        snprintf(id, sizeof id, "L%zu", ++a->host->nwritten);
        if (!graph_layout_name(&decision.layout->where, rec_str(id), err))
            return false;
    }
    return occupy_tried(a, t, decision.layout, err) &&
           a->decide(a->context, &decision, err);
}

static bool
block(struct alloc_admission *a, const struct graph_job *job, uint32_t graph,
      const char *cause, struct rec_error *err)
{
    struct alloc_decision decision = {.job = *job,
                                      .time = a->now,
                                      .cause = cause,
                                      .op = GRAPH_NONE,
                                      .server = REC_NONE,
                                      .graph = a->store->graph[graph]};
    return a->decide(a->context, &decision, err);
}

void
alloc_decision_explain(const struct alloc_decision *decision, const struct net *net,
                       struct rec_writer *writer)
{
    char server[NET_NAME_MAX];
    if (decision->op == GRAPH_NONE)
        return;
    rec_text_key(writer, "op", decision->graph->op[decision->op].id);
    if (decision->server == REC_NONE)
        return;
    net_format_server(net, decision->server, server);
    rec_text_key(writer, "server", server);
}

/* Blocks a job for the cause that the question ended with. */
static bool
turn_away(struct alloc_admission *a, const struct graph_job *job, struct rec_error *err)
{
    struct alloc_question *q = &a->question;
    struct alloc_decision decision = {.job = *job,
                                      .time = a->now,
                                      .cause = q->cause,
                                      .failed = q->failed,
                                      .left = q->left,
                                      .op = q->op,
                                      .server = q->server,
                                      .graph = a->store->graph[q->graph],
                                      .new_graph = is_new_graph(q)};
    if (!a->options.counted && !q->explained &&
        (strcmp(q->cause, "no_block") == 0 || strcmp(q->cause, "no_memory") == 0 ||
         strcmp(q->cause, "hold_and_release") == 0)) {
        const struct trial *trial = question_explain(q, err);
        if (!trial)
            return false;
        decision.failed = trial->failed;
        decision.left = trial->left;
    }
    return a->decide(a->context, &decision, err);
}

/* Ends the job that ends next. */
static bool
end_job(struct alloc_admission *a, struct rec_error *err)
{
    const struct running *r = occupancy_next(&a->jobs);
    a->stuck = 0;
    pricer_flip(a->pricer, r->taken, r->marks);
    return occupancy_end(&a->jobs, err);
}

/* ---- one job ------------------------------------------------------------- */

/* True if the job could start or wait, so that refusing it was the chooser's decision. If
 * there are whole actions, a free server is enough. */
static bool
has_choice(const struct alloc_admission *a)
{
    const struct alloc_question *q = &a->question;
    if (a->options.whole && a->jobs.nfree > 0)
        return true;
    for (uint32_t i = 0; i < q->nknown; i++)
        if (q->tried[i].is_tried && !q->tried[i].alternative.cause)
            return true;
    return q->may_wait && a->options.queue > 0 && a->jobs.ends.n > 0;
}

/* The question about a job; what was known of the last one is void. NULL: *err. */
static struct alloc_question *
ask(struct alloc_admission *a, const struct graph_job *job, struct rec_error *err)
{
    struct alloc_question *q = &a->question;
    q->admission = a;
    q->running = a->jobs.running;
    q->nrunning = a->jobs.nrunning;
    q->nwaiting = a->waiters.n;
    return pricer_forget(a->pricer, err) &&
                   question_ask(q, job, a->now, a->jobs.nfree, err)
               ? q
               : NULL;
}

/*
 * Asks the chooser about a job, and starts it on the alternative that is chosen. If the
 * job is refused although it could have started or waited, the cause of its block is
 * "policy". If there was nothing to refuse, the cause stays what kept the last
 * alternative from starting, so that choosers can be compared by their causes.
 */
static bool
try_job(struct alloc_admission *a, const struct graph_job *job, bool *started,
        struct rec_error *err)
{
    const struct alloc_choosing *choosing = a->options.choosing;
    struct alloc_question *q = ask(a, job, err);
    uint32_t choice;

    if (!q || !choosing->chooser->decide(choosing->self, q, &choice, err))
        return false;
    *started = choice < q->n || choice == ALLOC_ACTED;
    if (choice == ALLOC_REFUSED) {
        if (has_choice(a))
            q->cause = "policy";
        q->may_wait = false;
    }
    return !*started ||
           start(a, job, choice == ALLOC_ACTED ? &q->acted : &q->tried[choice], err);
}

/* ---- last chances -------------------------------------------------------- */

/*
 * The time at which a job must start at the latest: its alternative that may be fastest,
 * on whichever servers, would just meet the deadline. *time is without and *latest with
 * the allowance for rounding, seconds. *cause is set if no alternative can be placed even
 * on an empty cluster. If an agent may start it otherwise (options.whole), nothing is
 * certain: both times are INFINITY.
 */
static bool
find_last_chance(struct alloc_admission *a, const struct graph_job *job, double *time,
                 double *latest, const char **cause, struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    double step = INFINITY;
    enum place_outcome outcome = PLACE_PLACED;

    *cause = NULL;
    *time = *latest = INFINITY;
    if (a->options.whole)
        return true;
    for (uint32_t i = 0; job->known ? i < job->nknown : rec_str_split(&rest, ',', &id);
         i++) {
        uint32_t index = job->known ? job->known[i] : 0;
        double least;
        if ((!job->known && !question_find(a->store, job, id, &index, err)) ||
            !(isinf(job->deadline)
                  ? pricer_try_alone(a->pricer, index, &outcome, &least, err)
                  : pricer_try_least(a->pricer, index, &outcome, &least, err)))
            return false;
        step = fmin(step, least);
    }
    if (isinf(step))
        *cause = place_outcome_name(outcome);
    *time = job->arrival + job->deadline - step * job->steps;
    *latest = job->arrival + job->deadline * alloc_allowance - step * job->steps;
    return true;
}

/* ---- time ---------------------------------------------------------------- */

/* Tries the waiting jobs in order, until one must go on waiting. A job that was tried in
 * vain is not tried again before a job ends, because it would be placed in the same
 * way. */
static bool
try_waiting(struct alloc_admission *a, struct rec_error *err)
{
    struct waiter *first;
    while ((first = waiters_first(&a->waiters))) {
        const struct alloc_question *q = &a->question;
        bool started;
        if (first->key == a->stuck)
            return true;
        if (!try_job(a, &first->job, &started, err))
            return false;
        if (!started) {
            if (q->may_wait && a->jobs.ends.n) {
                a->stuck = first->key;
                return true;
            }
            if (!turn_away(a, &first->job, err))
                return false;
        }
        if (!waiters_remove(&a->waiters, first, err))
            return false;
    }
    return true;
}

/* Blocks the waiting job whose last chance is now. If it was the first in the queue, it
 * held up the others: they are tried. */
static bool
pass_last_chance(struct alloc_admission *a, struct rec_error *err)
{
    bool is_first;
    struct waiter *waiter = waiters_take_chance(&a->waiters);
    /* Servers that come free within the allowance for rounding are still in time. */
    if (a->now < waiter->latest && occupancy_next_end(&a->jobs) <= waiter->latest)
        return waiters_give_chance(&a->waiters, waiter, waiter->latest, err);
    is_first = waiter == waiters_first(&a->waiters);
    return block(a, &waiter->job, waiter->graph, "deadline", err) &&
           waiters_remove(&a->waiters, waiter, err) && (!is_first || try_waiting(a, err));
}

/* Handles all events up to and at `time`: jobs end, waiting jobs start or pass their last
 * chance. */
static bool
advance(struct alloc_admission *a, double time, struct rec_error *err)
{
    for (;;) {
        double end = occupancy_next_end(&a->jobs),
               chance = waiters_next_chance(&a->waiters);
        double next = fmin(end, chance);
        if (next > time || isinf(next))
            break;
        a->now = fmax(a->now, next);
        /* All jobs that end now give back their servers before a waiting one is tried. */
        while (end == next && occupancy_next_end(&a->jobs) == end)
            if (!end_job(a, err))
                return false;
        if (end == next ? !try_waiting(a, err) : !pass_last_chance(a, err))
            return false;
    }
    if (time > a->now && time < (double)INFINITY)
        a->now = time;
    return true;
}

/* Puts a job into the queue, or blocks it if it is too late whichever servers come free.
 * `graph` is the one that a block record would name. */
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
        return block(a, job, graph, cause ? cause : "deadline", err);
    /* not by `graph`: jobs with the same alternatives must have the same size */
    if (a->options.order == ALLOC_SHORTEST && !question_work(a->store, job, &size, err))
        return false;
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
    enter(a);
    return advance(a, job->arrival, err);
}

/* Counts a job once, whether it is asked about before it arrives or not. */
static bool
count_arrival(struct alloc_admission *a, const struct graph_job *job,
              struct rec_error *err)
{
    enter(a);
    if (a->asked)
        return true;
    a->asked = true;
    return question_arrive(&a->question, job, err);
}

struct alloc_question *
alloc_admission_ask(struct alloc_admission *a, const struct graph_job *job,
                    struct rec_error *err)
{
    return count_arrival(a, job, err) ? ask(a, job, err) : NULL;
}

bool
alloc_admission_arrive(struct alloc_admission *a, const struct graph_job *job,
                       struct rec_error *err)
{
    const struct alloc_question *q = &a->question;
    const struct alloc_choosing *choosing = a->options.choosing;
    bool started, counted = count_arrival(a, job, err);
    a->asked = false;
    if (!counted || (choosing->chooser->arrive &&
                     !choosing->chooser->arrive(choosing->self, job, err)))
        return false;
    /* A new job does not overtake waiting ones, unless the order puts it before them: it
     * joins the queue, and the queue is tried. */
    if (a->waiters.n) {
        uint32_t graph;
        struct rec_str rest = job->graphs, id;
        rec_str_split(&rest, ',', &id);
        if (!question_find(a->store, job, id, &graph, err))
            return false;
        if (a->waiters.n >= a->options.queue)
            return block(a, job, graph, "queue_full", err);
        return wait(a, job, graph, err) && try_waiting(a, err);
    }
    if (!try_job(a, job, &started, err))
        return false;
    if (started)
        return true;
    /* a graph that was made for an action may be forgotten while the job waits */
    if (q->may_wait && a->options.queue > 0 && a->jobs.ends.n)
        return wait(a, job, q->unnamed ? q->tried[0].alternative.graph : q->graph, err);
    return turn_away(a, job, err);
}

bool
alloc_admission_end(struct alloc_admission *a, struct rec_error *err)
{
    enter(a);
    return advance(a, INFINITY, err);
}

bool
alloc_admission_reset(struct alloc_admission *a, struct rec_error *err)
{
    enter(a);
    while (a->jobs.ends.n)
        if (!end_job(a, err))
            return false;
    waiters_free(&a->waiters);
    a->waiters = (struct waiters){0};
    if (a->question.features)
        features_forget(a->question.features);
    a->now = 0;
    a->jobs.started = 0;
    a->asked = false;
    return true;
}

static void
prefetch(const void *start, size_t size)
{
    enum { CACHE_LINE = 64 };
    for (size_t i = 0; i < size; i += CACHE_LINE)
        __builtin_prefetch((const char *)start + i);
}

void
alloc_admission_prefetch(const struct alloc_admission *a)
{
    prefetch(a, sizeof *a);
    prefetch(a->jobs.running, a->jobs.nrunning * sizeof *a->jobs.running);
    prefetch(a->question.tried, a->question.nroom * sizeof *a->question.tried);
}

void
alloc_admission_regime(struct alloc_admission *a, double value[ALLOC_REGIME])
{
    enter(a);
    features_regime(a->question.features, value);
}

/* The running jobs without their layouts: a future needs only their servers and ends. */
bool
admission_copy(struct alloc_admission *to, const struct alloc_admission *from,
               struct rec_error *err)
{
    if (!alloc_admission_reset(to, err))
        return false;
    to->now = from->now;
    if (to->question.features)
        features_remember(to->question.features, from->question.features);
    for (size_t i = 0; i < from->jobs.nrunning; i++) {
        struct running job = from->jobs.running[i];
        job.layout = NULL;
        if (job.runs && !occupy(to, &job, err))
            return false;
    }
    return true;
}

bool
admission_occupy(struct alloc_admission *a, const struct tried *t, struct rec_error *err)
{
    return occupy_tried(a, t, NULL, err);
}

struct pricer *
admission_pricer(struct alloc_admission *a)
{
    return a->pricer;
}

uint64_t
admission_state(const struct alloc_admission *a)
{
    return a->waiters.n ? 0 : a->jobs.state | 1;
}
