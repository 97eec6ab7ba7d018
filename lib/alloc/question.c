/*
 * Questions: what a chooser may ask about a job and its alternatives. Graphs are looked
 * up and alternatives are tried only when the chooser asks for them, because trying one
 * may mean placing a graph and simulating a step. What was asked also decides what
 * becomes of a job that does not start: its cause is that of the alternative that was
 * tried last, and it may wait only if one of them could not be placed for want of free
 * servers or blocks.
 */
#include "question.h"

#include <math.h>
#include <stdlib.h>

const double alloc_allowance = 1 + 1e-9;

bool
question_find(const struct graph_store *store, const struct graph_job *job,
              struct rec_str id, uint32_t *index, struct rec_error *err)
{
    *index = graph_store_find(store, id);
    return *index != REC_NONE ||
           rec_fail(err, REC_DATA,
                    "job '%.*s' refers to graph '%.*s', which has not come before",
                    (int)job->id.len, job->id.ptr, (int)id.len, id.ptr);
}

/* Makes room for a set of servers in entries that do not have it yet. */
static bool
make_sets(struct alloc_question *q, struct rec_error *err)
{
    (void)pricer_taken(q->pricer, &q->nwords);
    for (; q->nroom < q->n; q->nroom++)
        if (!(q->tried[q->nroom].taken = calloc(q->nwords, sizeof *q->tried->taken)))
            return rec_fail_memory(err);
    return q->acted.taken ||
           (q->acted.taken = calloc(q->nwords, sizeof *q->acted.taken)) ||
           rec_fail_memory(err);
}

bool
question_ask(struct alloc_question *q, const struct graph_job *job, double now,
             uint32_t nfree, struct rec_error *err)
{
    uint32_t n = job->known ? job->nknown : 1;
    for (size_t i = 0; !job->known && i < job->graphs.len; i++)
        n += job->graphs.ptr[i] == ',';
    n *= pricer_ways(q->pricer);
    if (!rec_grow(&q->tried, &q->room, n, sizeof *q->tried, err))
        return false;
    q->now = now;
    q->nfree = nfree;
    q->job = job;
    q->rest = job->graphs;
    q->n = n;
    q->nknown = 0;
    q->graph = REC_NONE;
    q->way = 0;
    q->cause = "no_servers";
    q->explained = false;
    q->failed = 0;
    q->left = 0;
    q->unnamed = NULL;
    q->op = GRAPH_NONE;
    q->server = REC_NONE;
    q->may_wait = true;
    q->looked = false;
    return make_sets(q, err);
}

void
question_free(struct alloc_question *q)
{
    for (size_t i = 0; i < q->nroom; i++)
        free(q->tried[i].taken);
    free(q->acted.taken);
    free(q->trial.servers);
    free(q->tried);
    features_free(q->features);
}

/* Alternative i, with its graph looked up. It becomes the one that a block record would
 * name. Before the first alternative is looked at, the job may wait; from then on that is
 * for the alternatives to say. NULL: *err. */
static struct tried *
know(struct alloc_question *q, uint32_t i, struct rec_error *err)
{
    uint32_t ways = pricer_ways(q->pricer);
    while (q->nknown <= i) {
        uint32_t graph;
        struct rec_str id;
        if (q->job->known)
            graph = q->job->known[q->nknown / ways];
        else {
            rec_str_split(&q->rest, ',', &id);
            if (!question_find(q->store, q->job, id, &graph, err))
                return NULL;
        }
        for (uint32_t way = 0; way < ways; way++) {
            struct tried *t = &q->tried[q->nknown++];
            t->alternative.graph = graph;
            t->alternative.way = way;
            t->is_tried = false;
        }
    }
    if (q->graph == REC_NONE)
        q->may_wait = false;
    q->graph = q->tried[i].alternative.graph;
    q->way = q->tried[i].alternative.way;
    return &q->tried[i];
}

uint32_t
alloc_question_count(const struct alloc_question *q)
{
    return q->n;
}

uint32_t
alloc_question_free_servers(const struct alloc_question *q)
{
    return q->nfree;
}

bool
alloc_question_degree(struct alloc_question *q, uint32_t i, uint32_t *degree,
                      struct rec_error *err)
{
    struct tried *t = know(q, i, err);
    if (!t || !pricer_degree(q->pricer, t->alternative.graph, degree, err))
        return false;
    if (*degree > q->nfree) /* the chooser may skip it without trying it */
        q->may_wait = true;
    return true;
}

/* Copies an outline: the pricer may overwrite it with the next one. */
static void
keep(const struct alloc_question *q, uint32_t i, const struct outline *outline)
{
    struct tried *t = &q->tried[i];
    struct alloc_alternative *a = &t->alternative;
    t->trial.outcome = (enum place_outcome)outline->outcome;
    a->taken = t->taken;
    a->step = outline->step;
    a->nservers = outline->nservers;
    t->trial.marks = outline->marks;
    for (size_t w = 0; w < q->nwords; w++)
        t->taken[w] = outline->word[q->nwords + w];
    a->repeats = false;
    for (uint32_t way = 1; way <= a->way && !a->repeats; way++) {
        const struct tried *before = &q->tried[i - way];
        a->repeats = before->is_tried && before->trial.outcome == t->trial.outcome &&
                     before->trial.marks == t->trial.marks &&
                     memcmp(before->taken, t->taken, q->nwords * sizeof *t->taken) == 0;
    }
}

/* Says whether an alternative can start, and when it would complete. */
static bool
judge(const struct alloc_question *q, struct tried *t, struct rec_error *err)
{
    struct alloc_alternative *alternative = &t->alternative;
    const struct graph_job *job = q->job;
    alternative->cause = NULL;
    alternative->finish = INFINITY;
    if (t->trial.outcome != PLACE_PLACED) {
        alternative->cause = place_outcome_name(t->trial.outcome);
        return true;
    }
    alternative->finish = q->now + alternative->step * job->steps;
    /* Not finish - arrival: late in a simulation, times are rounded more than 1e-9. */
    if (q->now - job->arrival + alternative->step * job->steps >
        job->deadline * alloc_allowance)
        alternative->cause = "deadline";
    else if (!isfinite(alternative->finish))
        return rec_fail(err, REC_DATA, "job '%.*s' would run longer than a number holds",
                        (int)job->id.len, job->id.ptr);
    else if (event_is_late(q->now, alternative->step * job->steps))
        return rec_fail(err, REC_DATA,
                        "job '%.*s' would take %.9g s from %.17g s on: so late, its end "
                        "cannot be told",
                        (int)job->id.len, job->id.ptr, alternative->step * job->steps,
                        q->now);
    return true;
}

const struct alloc_alternative *
alloc_question_try(struct alloc_question *q, uint32_t i, struct rec_error *err)
{
    struct tried *t = know(q, i, err);
    const struct outline *outline;
    if (!t)
        return NULL;
    if (!t->is_tried) {
        outline =
            pricer_outline(q->pricer, t->alternative.graph, t->alternative.way, err);
        if (!outline)
            return NULL;
        keep(q, i, outline);
        if (!judge(q, t, err))
            return NULL;
        t->is_tried = true;
    }
    q->cause = t->alternative.cause;
    if (t->trial.outcome != PLACE_PLACED)
        q->may_wait = true;
    return &t->alternative;
}

/* Copies a trial: the pricer may overwrite it with the next one. */
static bool
keep_trial(struct alloc_question *q, const struct trial *trial, struct rec_error *err)
{
    uint32_t *servers = q->trial.servers;
    if (!rec_grow(&servers, &q->trial_room, trial->nservers + 1, sizeof *servers, err))
        return false;
    if (trial->nservers && trial->servers != q->trial.servers)
        memcpy(servers, trial->servers, trial->nservers * sizeof *servers);
    q->trial = *trial;
    q->trial.servers = servers;
    return true;
}

bool
question_settle(struct alloc_question *q, uint32_t graph, const struct trial *trial,
                struct rec_error *err)
{
    struct tried *t = &q->acted;
    if (!keep_trial(q, trial, err))
        return false;
    t->alternative.graph = q->graph = graph;
    t->alternative.taken = t->taken;
    t->alternative.step = trial->cost.step.seconds;
    t->alternative.nservers = trial->nservers;
    t->trial.outcome = trial->outcome;
    t->trial.marks = pricer_mask(q->pricer, &q->trial, t->taken);
    if (!judge(q, t, err))
        return false;
    q->cause = t->alternative.cause;
    q->may_wait = t->trial.outcome != PLACE_PLACED;
    q->explained = true;
    q->failed = q->trial.failed;
    q->left = q->trial.left;
    return true;
}

const struct trial *
question_explain(struct alloc_question *q, struct rec_error *err)
{
    return pricer_try_way(q->pricer, q->graph, q->way, err);
}

/* ---- features ------------------------------------------------------------ */

/* Alternatives of a job have the same work, but for rounding: the first one says it. */
bool
question_work(const struct graph_store *store, const struct graph_job *job, double *work,
              struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    uint32_t index;
    if (job->known)
        index = job->known[0];
    else {
        rec_str_split(&rest, ',', &id);
        if (!question_find(store, job, id, &index, err))
            return false;
    }
    *work = graph_sequential(store->graph[index]) * job->steps;
    return true;
}

bool
question_arrive(struct alloc_question *q, const struct graph_job *job,
                struct rec_error *err)
{
    double work;
    if (!q->features)
        return true;
    if (!question_work(q->store, job, &work, err))
        return false;
    features_arrive(q->features, job, work);
    return true;
}

/* Tries all alternatives, because two features compare them, and looks at the cluster.
 * Done once for a job, when its first features are asked for. */
static bool
look(struct alloc_question *q, struct rec_error *err)
{
    struct features_job *at = &q->at;
    size_t nwords;
    *at = (struct features_job){.arrival = q->job->arrival,
                                .deadline = q->job->deadline,
                                .narrowest = UINT32_MAX};
    if (!question_work(q->store, q->job, &at->work, err))
        return false;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct alloc_alternative *a = alloc_question_try(q, i, err);
        if (!a)
            return false;
        if (!a->cause && a->nservers > at->widest)
            at->widest = a->nservers;
        if (!a->cause && a->nservers < at->narrowest)
            at->narrowest = a->nservers;
    }
    features_look(q->features, pricer_taken(q->pricer, &nwords), q->now, q->running,
                  q->nrunning);
    features_begin(q->features, at);
    q->looked = true;
    return true;
}

bool
alloc_question_features(struct alloc_question *q, uint32_t i,
                        double value[ALLOC_FEATURES], struct rec_error *err)
{
    if (!q->looked && !look(q, err))
        return false;
    features_of(q->features, &q->at, &q->tried[i].alternative, value);
    return true;
}
