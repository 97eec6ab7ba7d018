/*
 * Rollouts: one step of policy improvement on a base chooser (Bertsekas, "Rollout, Policy
 * Iteration, and Distributed Reinforcement Learning", 2020). Each alternative is played
 * through in the same sampled futures, in an admission of its own in which the base
 * decides. Common futures make the differences between alternatives less noisy than the
 * results themselves.
 */
#include "private.h"
#include "question.h"

#include <math.h>
#include <stdlib.h>

enum { PAST_JOBS = 1000 }; /* the last jobs that came; futures are drawn from them */

/* A job that came. */
struct past {
    char *graphs; /* owned */
    double steps;
    double deadline; /* from arrival, seconds */
    double spacing;  /* since the arrival of the job before, seconds; NAN: of the first */
};

struct rollout {
    struct alloc_choice choice;
    uint32_t futures; /* how many are sampled for a decision */
    struct rng *rng;
    struct alloc_admission *admission; /* where futures are played; NULL: not yet open */
    struct past *past; /* a ring of PAST_JOBS; past[next] is overwritten */
    size_t npast, next;
    double last;            /* arrival of the last of them, seconds */
    struct graph_job *jobs; /* of all futures, one future after the other */
    uint64_t accepted;      /* in the future that is being played */
    uint64_t *with_base;    /* per future: jobs accepted after the base's answer */
    uint64_t *tried;        /* the same after another answer */
};

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
    jobs = (size_t)futures * choice->horizon;
    if (!r || !(r->past = calloc(PAST_JOBS, sizeof *r->past)) ||
        !(r->jobs = calloc(jobs + 1, sizeof *r->jobs)) ||
        !(r->with_base = calloc(futures, sizeof *r->with_base)) ||
        !(r->tried = calloc(futures, sizeof *r->tried)))
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
    rng_free(r->rng);
    for (size_t i = 0; i < r->npast; i++)
        free(r->past[i].graphs);
    free(r->past);
    free(r->jobs);
    free(r->with_base);
    free(r->tried);
    free(r);
}

/* Puts a job into the ring as it arrives. At decisions it would be too late: a waiting
 * job is decided several times, and others have arrived meanwhile. */
bool
alloc_rollout_arrive(void *self, const struct graph_job *job, struct rec_error *err)
{
    struct rollout *r = self;
    struct past *past = &r->past[r->next];
    char *graphs = strndup(job->graphs.ptr, job->graphs.len);
    if (!graphs)
        return rec_fail_memory(err);
    free(past->graphs);
    *past = (struct past){graphs, job->steps, job->deadline,
                          r->npast ? job->arrival - r->last : (double)NAN};
    r->last = job->arrival;
    r->next = (r->next + 1) % PAST_JOBS;
    r->npast += r->npast < PAST_JOBS;
    return true;
}

/* Draws the jobs of all futures. A job, and the time between it and the one before, are
 * drawn independently. Needs a past of two jobs: the first one has no spacing. */
static void
draw_futures(struct rollout *r, double now)
{
    struct graph_job *job = r->jobs;
    for (uint32_t f = 0; f < r->futures; f++) {
        double time = now;
        for (uint32_t i = 0; i < r->choice.horizon; i++, job++) {
            const struct past *past = &r->past[rng_below(r->rng, (uint32_t)r->npast)];
            double spacing;
            do
                spacing = r->past[rng_below(r->rng, (uint32_t)r->npast)].spacing;
            while (isnan(spacing));
            *job = (struct graph_job){.id = rec_str("future"),
                                      .graphs = rec_str(past->graphs),
                                      .arrival = time += spacing,
                                      .steps = past->steps,
                                      .deadline = past->deadline};
        }
    }
}

/* Plays all futures after a job has taken an alternative (NULL: none). Sets accepted[] to
 * how many jobs were accepted in each, this one included. */
static bool
play(struct rollout *r, const struct alloc_question *q,
     const struct alloc_alternative *alternative, uint64_t *accepted,
     struct rec_error *err)
{
    const struct graph_job *job = r->jobs;
    for (uint32_t f = 0; f < r->futures; f++) {
        r->accepted = alternative != NULL;
        if (!admission_copy(r->admission, q->admission, err) ||
            (alternative && !admission_occupy(r->admission, alternative, err)))
            return false;
        for (uint32_t i = 0; i < r->choice.horizon; i++, job++)
            if (!alloc_admission_advance(r->admission, job, err) ||
                !alloc_admission_arrive(r->admission, job, err))
                return false;
        accepted[f] = r->accepted;
    }
    return true;
}

/* How many more jobs are accepted than after the base's answer: the mean of the
 * differences in the futures, less its standard error, so that chance does not overrule
 * the base. */
static double
gain(const struct rollout *r)
{
    double n = r->futures, sum = 0, squares = 0, mean;
    for (uint32_t f = 0; f < r->futures; f++) {
        double d = (double)r->tried[f] - (double)r->with_base[f];
        sum += d;
        squares += d * d;
    }
    mean = sum / n;
    return mean - (n > 1 ? sqrt(fmax(0, squares / n - mean * mean) / (n - 1)) : 0);
}

/* Plays one answer, and makes it the best if it gains most. */
static bool
consider(struct rollout *r, const struct alloc_question *q, uint32_t choice,
         uint32_t *best_choice, double *best, struct rec_error *err)
{
    double more;
    if (!play(r, q, choice == ALLOC_REFUSED ? NULL : &q->tried[choice].alternative,
              r->tried, err))
        return false;
    more = gain(r);
    if (more > *best) {
        *best = more;
        *best_choice = choice;
    }
    return true;
}

/* Opened at the first decision: when the rollout itself is opened, the options of the
 * admission that it copies are not complete yet. */
static bool
open_admission(struct rollout *r, struct rec_error *err)
{
    struct alloc_admission_options options = *r->choice.admission;
    options.choosing = r->choice.base;
    r->admission = alloc_admission_new(&options, r->choice.store, count, r, err);
    return r->admission != NULL;
}

bool
alloc_rollout_decide(void *self, struct alloc_question *q, uint32_t *choice,
                     struct rec_error *err)
{
    struct rollout *r = self;
    uint32_t base, n = alloc_question_count(q);
    double best = 0;
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
    if (r->npast < 2)
        return true;
    draw_futures(r, q->now);
    if (!play(r, q, base == ALLOC_REFUSED ? NULL : &q->tried[base].alternative,
              r->with_base, err))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (i != base && !q->tried[i].alternative.cause &&
            !consider(r, q, i, choice, &best, err))
            return false;
    return base == ALLOC_REFUSED || consider(r, q, ALLOC_REFUSED, choice, &best, err);
}
