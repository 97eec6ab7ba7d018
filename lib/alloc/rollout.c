/*
 * Rollouts: one step of policy improvement on a base chooser (Bertsekas, "Rollout, Policy
 * Iteration, and Distributed Reinforcement Learning", 2020). Each alternative is played
 * through in the same sampled futures, in an admission of its own in which the base
 * decides. Common futures make the differences between alternatives less noisy than the
 * results themselves. They also save most of the work: after some jobs the cluster is
 * often in the same state as after the first answer that was played. From there on the
 * future is the same, too, and is not played again. On small clusters a plain rule is
 * played without an admission, in the same way (future.c).
 *
 * A learned base that knows what states are worth says it of the last state of a future,
 * too. Futures of one job are then enough, and leave little to chance.
 */
#include "future.h"
#include "private.h"

#include <math.h>
#include <stdlib.h>

enum {
    PAST_JOBS = 1000,  /* the last jobs that came; futures are drawn from them */
    HORIZON = 30,      /* jobs in a future, if nothing is said */
    VALUED_ANSWERS = 6 /* that are played if a value decides */
};

struct rollout {
    struct alloc_choice choice;
    uint32_t futures; /* how many are sampled for a decision */
    struct rng *rng;
    struct alloc_admission *admission; /* where futures are played; NULL: not yet open */
    struct past *past; /* a ring of PAST_JOBS; past[next] is overwritten */
    size_t npast, next;
    double last;          /* arrival of the last of them, seconds */
    struct rounds rounds; /* a key is the number of a kind */
    struct rec_map kinds; /* the list of graphs of a kind -> its number */
    struct kind **kind;   /* owned */
    size_t nkinds, kinds_room;
    struct coming *coming;        /* jobs of all futures, one future after the other */
    struct futures *small;        /* plays them; NULL: admission does */
    struct alloc_admission *host; /* of `valued` */
    struct futures *valued;       /* plays them where a value decides; NULL: never */
    struct alloc_value *value;    /* of this decision; NULL: none */
    double *worths;               /* what it says of the answers */
    uint32_t nworths;
    uint64_t accepted; /* in the future that is being played */
    /* Unless `small` plays: after the first answer that is played, per future and job
     * of it, the state before that job arrives, and how many jobs are accepted from it
     * on. */
    uint64_t *state;
    uint32_t *rest;
};

/* Jobs in a future of this decision. */
static uint32_t
horizon(const struct rollout *r)
{
    if (r->choice.horizon)
        return r->choice.horizon;
    return r->value ? 1 : HORIZON;
}

/* Called for each decision in a future. */
static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct rollout *r = context;
    (void)err;
    r->accepted += decision->cause == NULL;
    return true;
}

void *
alloc_rollout_open(const struct alloc_choice *choice, struct rec_error *err)
{
    struct rollout *r = calloc(1, sizeof *r);
    uint64_t futures;
    size_t jobs;
    if (!rec_parse_uint(rec_str(choice->argument), &futures) || futures < 1 ||
        futures > 1000000) {
        free(r);
        rec_fail(err, REC_USAGE,
                 "rollouts need a number of futures, 1 to 1000000, got '%s'",
                 choice->argument);
        return NULL;
    }
    jobs = (size_t)futures * (choice->horizon ? choice->horizon : HORIZON);
    if (!r || !(r->past = calloc(PAST_JOBS, sizeof *r->past)) ||
        !(r->coming = calloc(jobs + 1, sizeof *r->coming)))
        rec_fail_memory(err);
    else if ((r->rng = rng_new(choice->seed, rng_stream("rollout"), err))) {
        r->choice = *choice;
        r->futures = (uint32_t)futures;
        return r;
    }
    alloc_rollout_free(r);
    return NULL;
}

void
alloc_rollout_free(void *self)
{
    struct rollout *r = self;
    if (!r)
        return;
    alloc_admission_free(r->admission);
    alloc_admission_free(r->host);
    rng_free(r->rng);
    for (size_t i = 0; i < r->nkinds; i++) {
        free(r->kind[i]->known);
        free(r->kind[i]->graphs);
        free(r->kind[i]);
    }
    free(r->kind);
    rec_map_free(&r->kinds);
    free(r->past);
    free(r->coming);
    futures_free(r->small);
    futures_free(r->valued);
    free(r->worths);
    free(r->state);
    free(r->rest);
    free(r);
}

/* Adds the kind of a job. */
static bool
add_kind(struct rollout *r, const struct graph_job *job, struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    struct kind *kind;
    size_t room = 0;
    if (!rec_grow(&r->kind, &r->kinds_room, r->nkinds + 1, sizeof *r->kind, err))
        return false;
    if (!(kind = calloc(1, sizeof *kind)))
        return rec_fail_memory(err);
    r->kind[r->nkinds] = kind;
    kind->number = (uint32_t)r->nkinds++;
    while (rec_str_split(&rest, ',', &id))
        if (!rec_grow(&kind->known, &room, kind->nknown + 1, sizeof *kind->known, err) ||
            !question_find(r->choice.store, job, id, &kind->known[kind->nknown++], err))
            return false;
    if (!(kind->graphs = strndup(job->graphs.ptr, job->graphs.len)))
        return rec_fail_memory(err);
    return rec_map_add(&r->kinds, rec_str(kind->graphs), kind->number, err);
}

/* Puts a job into the ring as it arrives. At decisions it would be too late: a waiting
 * job is decided several times, and others have arrived meanwhile. */
bool
alloc_rollout_arrive(void *self, const struct graph_job *job, struct rec_error *err)
{
    struct rollout *r = self;
    uint32_t kind = rec_map_get(&r->kinds, job->graphs);
    if (kind == REC_NONE) {
        kind = (uint32_t)r->nkinds;
        if (!add_kind(r, job, err))
            return false;
    }
    r->past[r->next] =
        (struct past){.kind = r->kind[kind],
                      .steps = job->steps,
                      .deadline = job->deadline,
                      .spacing = r->npast ? job->arrival - r->last : (double)NAN};
    rounds_arrive(&r->rounds, kind,
                  graph_sequential(r->choice.store->graph[r->kind[kind]->known[0]]));
    r->last = job->arrival;
    r->next = (r->next + 1) % PAST_JOBS;
    r->npast += r->npast < PAST_JOBS;
    return true;
}

/* By kind, and then by deadline. */
static int
compare_jobs(const void *a, const void *b)
{
    const struct past *x = *(const struct past *const *)a,
                      *y = *(const struct past *const *)b;
    if (x->kind->round != y->kind->round)
        return x->kind->round < y->kind->round ? -1 : 1;
    if (x->kind->number != y->kind->number)
        return x->kind->number < y->kind->number ? -1 : 1;
    if (x->deadline != y->deadline)
        return x->deadline < y->deadline ? -1 : 1;
    return (x->steps > y->steps) - (x->steps < y->steps);
}

static int
compare_spacings(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Is a job of this kind still to come? */
static bool
comes(const struct past *past, uint32_t left)
{
    return !left || (left >> past->kind->round & 1);
}

static const struct past *
draw_job(struct rollout *r, uint32_t left)
{
    const struct past *past;
    do
        past = &r->past[rng_below(r->rng, (uint32_t)r->npast)];
    while (!comes(past, left));
    return past;
}

static double
draw_spacing(struct rollout *r)
{
    double spacing;
    do
        spacing = r->past[rng_below(r->rng, (uint32_t)r->npast)].spacing;
    while (isnan(spacing));
    return spacing;
}

/* Which of n things is at a share of them, 0 to 1. */
static size_t
place_at(double share, size_t n)
{
    size_t i = (size_t)(share * (double)n);
    return i < n ? i : n - 1;
}

/* Draws the first jobs of all futures evenly: the n-th future gets the n-th of as many
 * equal parts of the jobs in order, and the times before them follow the golden ratio, so
 * that few futures have jobs and times of all sorts (Niederreiter, "Random Number
 * Generation and Quasi-Monte Carlo Methods", 1992, 3.1). */
static void
draw_evenly(struct rollout *r, uint32_t left)
{
    const struct past *job[PAST_JOBS] = {NULL};
    double spacing[PAST_JOBS] = {0}, from = rng_uniform(r->rng), at = rng_uniform(r->rng);
    size_t n = 0, nspacings = 0;
    for (size_t i = 0; i < r->npast; i++) {
        if (comes(&r->past[i], left))
            job[n++] = &r->past[i];
        if (!isnan(r->past[i].spacing))
            spacing[nspacings++] = r->past[i].spacing;
    }
    qsort(job, n, sizeof *job, compare_jobs);
    qsort(spacing, nspacings, sizeof *spacing, compare_spacings);
    for (uint32_t f = 0; f < r->futures; f++, at += 0.61803398874989485) {
        struct coming *coming = &r->coming[(size_t)f * horizon(r)];
        at -= at >= 1;
        coming->job = job[place_at((f + from) / r->futures, n)];
        coming->arrival = spacing[place_at(at, nspacings)];
    }
}

/* Draws the jobs of all futures. A job, and the time between it and the one before, are
 * drawn independently; but jobs that have come in rounds go on to do so. Needs a past of
 * two jobs: the first one has no spacing. Where a value decides, futures are short and
 * most depends on the first job, which is drawn evenly. One future alone cannot be. */
static void
draw_futures(struct rollout *r, double now)
{
    struct coming *job = r->coming;
    uint32_t begun = rounds_left(&r->rounds);
    bool evenly = r->value && r->futures > 1;
    for (size_t i = 0; i < r->nkinds; i++)
        r->kind[i]->round = rounds_find(&r->rounds, r->kind[i]->number);
    if (evenly)
        draw_evenly(r, begun);
    for (uint32_t f = 0; f < r->futures; f++) {
        double time = now;
        uint32_t left = begun;
        for (uint32_t i = 0; i < horizon(r); i++, job++) {
            if (i > 0 || !evenly) {
                job->job = draw_job(r, left);
                job->arrival = draw_spacing(r);
            }
            if (left)
                left = rounds_left_after(&r->rounds, left, job->job->kind->round);
            job->left = left;
            job->arrival = time += job->arrival;
        }
    }
}

/* A job of a future as an admission takes it. */
static struct graph_job
job_of(const struct coming *coming)
{
    const struct past *past = coming->job;
    return (struct graph_job){.id = rec_str("future"),
                              .graphs = rec_str(past->kind->graphs),
                              .arrival = coming->arrival,
                              .steps = past->steps,
                              .deadline = past->deadline,
                              .known = past->kind->known,
                              .nknown = past->kind->nknown};
}

/* Plays a future after a job has taken an alternative (NULL: none). The first answer's
 * states are noted; another answer follows its own way until it comes to one of them. */
static bool
play_future(struct rollout *r, const struct alloc_question *q, uint32_t future,
            const struct tried *alternative, bool is_first, struct rec_error *err)
{
    uint32_t n = horizon(r);
    const struct coming *coming = r->coming + (size_t)future * n;
    uint64_t *state = r->state + (size_t)future * n;
    uint32_t *rest = r->rest + (size_t)future * n;
    r->accepted = 0;
    if (!admission_copy(r->admission, q->admission, err) ||
        (alternative && !admission_occupy(r->admission, alternative, err)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct graph_job job = job_of(&coming[i]);
        uint64_t now;
        if (!alloc_admission_advance(r->admission, &job, err))
            return false;
        now = admission_state(r->admission);
        if (!is_first && now && now == state[i]) {
            r->accepted += rest[i];
            return true;
        }
        if (is_first) {
            state[i] = now;
            rest[i] = (uint32_t)r->accepted;
        }
        if (!alloc_admission_arrive(r->admission, &job, err))
            return false;
    }
    for (uint32_t i = 0; is_first && i < n; i++)
        rest[i] = (uint32_t)r->accepted - rest[i];
    return true;
}

/* How many jobs are accepted in all futures after an answer, this one included. */
static bool
play(struct rollout *r, const struct alloc_question *q, uint32_t choice, bool is_first,
     double *accepted, struct rec_error *err)
{
    const struct tried *alternative = choice < q->n ? &q->tried[choice] : NULL;
    uint64_t count;
    if (r->small) {
        bool ok =
            futures_play(r->small, q, alternative, r->coming, is_first, &count, err);
        *accepted = (double)count;
        return ok;
    }
    *accepted = alternative ? r->futures : 0;
    for (uint32_t f = 0; f < r->futures; f++) {
        if (!play_future(r, q, f, alternative, is_first, err))
            return false;
        *accepted += (double)r->accepted;
    }
    return true;
}

/* Opened at the first decision: when the rollout itself is opened, the options of the
 * admission that it copies are not complete yet. */
static bool
open_admission(struct rollout *r, struct rec_error *err)
{
    struct alloc_admission_options options = *r->choice.admission;
    size_t jobs = (size_t)r->futures * horizon(r);
    options.choosing = r->choice.base;
    options.counted = true;
    r->admission = alloc_admission_new(&options, r->choice.store, count, r, err);
    if (!r->admission)
        return false;
    if (futures_suit(&options))
        return (r->small = futures_new(admission_pricer(r->admission), r->choice.base,
                                       r->futures, horizon(r), err));
    r->state = calloc(jobs, sizeof *r->state);
    r->rest = calloc(jobs, sizeof *r->rest);
    return (r->state && r->rest) || rec_fail_memory(err);
}

/* Finds the value that decides in futures, if the base has one, and what plays them. */
static bool
find_value(struct rollout *r, struct alloc_question *q, struct rec_error *err)
{
    struct alloc_admission_options options = *r->choice.admission;
    uint32_t best, n = alloc_question_count(q);
    options.choosing = r->choice.base;
    options.counted = true;
    r->value = NULL;
    if (r->choice.base->chooser->decide != alloc_scorer_decide ||
        !futures_small(&options))
        return true;
    if (!scorer_value(r->choice.base->self, q, &r->value, err))
        return false;
    if (!r->value)
        return true;
    if (r->nworths < n + 1) {
        double *worths = realloc(r->worths, (n + 1) * sizeof *worths);
        if (!worths)
            return rec_fail_memory(err);
        r->worths = worths;
        r->nworths = n + 1;
    }
    if (!value_decide(r->value, q, &best, r->worths, err))
        return false;
    if (r->valued)
        return true;
    r->host = alloc_admission_new(&options, r->choice.store, count, r, err);
    return r->host && (r->valued = futures_new(admission_pricer(r->host), NULL,
                                               r->futures, horizon(r), err));
}

/* Are futures to be played after an answer, where a value decides? The best by it are
 * enough. */
static bool
is_tried(const struct rollout *r, uint32_t answer, uint32_t n)
{
    uint32_t better = 0;
    for (uint32_t i = 0; i <= n; i++)
        better += r->worths[i] > r->worths[answer];
    return better < VALUED_ANSWERS;
}

/* Plays the futures of a value after an answer. *worth is their mean. */
static bool
play_valued(struct rollout *r, const struct alloc_question *q, uint32_t choice,
            double *worth, struct rec_error *err)
{
    const struct tried *alternative = choice == ALLOC_REFUSED ? NULL : &q->tried[choice];
    return futures_worth(r->valued, q, alternative, r->coming, r->value,
                         value_left(r->value, &r->rounds) != 0, worth, err);
}

/* Where a value decides. */
static bool
judge_valued(struct rollout *r, const struct alloc_question *q, uint32_t base,
             uint32_t *choice, double *worths, struct rec_error *err)
{
    uint32_t n = alloc_question_count(q), first = base < n ? base : n;
    double best;
    if (!play_valued(r, q, base, &best, err))
        return false;
    if (worths)
        worths[first] = best;
    for (uint32_t i = 0; i <= n; i++) {
        double worth;
        if (i == first || isinf(r->worths[i]) || !is_tried(r, i, n))
            continue;
        if (!play_valued(r, q, i < n ? i : ALLOC_REFUSED, &worth, err))
            return false;
        if (worths)
            worths[i] = worth;
        if (worth > best) {
            best = worth;
            *choice = i < n ? i : ALLOC_REFUSED;
        }
    }
    return true;
}

/* Notes what an answer is worth. */
static void
note_worth(const struct rollout *r, uint32_t answer, uint32_t n, double accepted,
           double *worths)
{
    if (worths)
        worths[answer < n ? answer : n] = accepted / r->futures;
}

bool
alloc_rollout_judge(void *self, struct alloc_question *q, uint32_t *choice,
                    double *worths, struct rec_error *err)
{
    struct rollout *r = self;
    uint32_t base, n = alloc_question_count(q);
    double best;
    bool can_start = false;

    if (!r->admission && !open_admission(r, err))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        if (!alternative)
            return false;
        can_start = can_start || !alternative->cause;
    }
    *choice = ALLOC_NONE;
    if (!can_start)
        return true;
    if (!r->choice.base->chooser->decide(r->choice.base->self, q, &base, err))
        return false;
    *choice = base;
    /* A base that looks at degrees alone may give up where an alternative can start. */
    if (base == ALLOC_NONE && !q->cause)
        q->cause = "no_servers";
    if (r->npast < 2)
        return true;
    if (!find_value(r, q, err))
        return false;
    draw_futures(r, q->now);
    if (r->value)
        return judge_valued(r, q, base, choice, worths, err);
    if (!play(r, q, base, true, &best, err))
        return false;
    note_worth(r, base, n, best, worths);
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t other = i < n ? i : ALLOC_REFUSED;
        const struct alloc_alternative *alternative =
            &q->tried[i < n ? i : 0].alternative;
        double accepted;
        if (other == base || (i < n && (alternative->cause || alternative->repeats)))
            continue;
        if (!play(r, q, other, false, &accepted, err))
            return false;
        note_worth(r, other, n, accepted, worths);
        if (accepted > best) {
            best = accepted;
            *choice = other;
        }
    }
    return true;
}

bool
alloc_rollout_decide(void *self, struct alloc_question *q, uint32_t *choice,
                     struct rec_error *err)
{
    return alloc_rollout_judge(self, q, choice, NULL, err);
}
