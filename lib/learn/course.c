/*
 * Episodes: the pipeline tracegen jobs | ramp-alloc in memory. Jobs are drawn, arrive,
 * and start or are blocked; only the blocked ones are counted. The draws come from the
 * same numbered streams of the seed as in tracegen, so an episode can be made again as a
 * file.
 */
#include "rampipe/learn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct learn_course {
    struct learn_course_options options;
    struct alloc_admission *admission;
    uint32_t *order; /* templates; order[0..left) have not come in this round */
    size_t left;
    uint32_t **known; /* per template: the graphs of its alternatives in the store */
    uint32_t *nknown;
    double lost, all; /* sums over the jobs of this episode: see enum learn_objective */
    double work;      /* of the job that is decided: sequential time * steps, seconds */
};

/* Called for each decision; the course has no queue, so that is about the job that has
 * just arrived. */
static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct learn_course *c = context;
    bool blocked = decision->cause != NULL;
    double time = decision->finish - decision->job.arrival;
    (void)err;
    switch (c->options.objective) {
    case LEARN_BLOCKED:
        c->lost += blocked;
        c->all += 1;
        break;
    case LEARN_WORK:
        c->lost += blocked ? c->work : 0;
        c->all += c->work;
        break;
    case LEARN_COMPLETION:
        c->lost += blocked ? 1 : time / c->work;
        c->all += 1;
        break;
    case LEARN_COST:
        c->lost += blocked ? c->options.price * c->work : decision->nservers * time;
        c->all += c->work;
        break;
    }
    return true;
}

/* Looks up the graphs of all templates, once for all jobs. */
static bool
look_up(struct learn_course *c, const struct graph_store *store, struct rec_error *err)
{
    for (uint32_t i = 0; i < c->options.ntemplates; i++) {
        struct rec_str rest = c->options.templates[i].graphs, id;
        size_t room = 0;
        while (rec_str_split(&rest, ',', &id)) {
            if (!rec_grow(&c->known[i], &room, c->nknown[i] + 1, sizeof **c->known, err))
                return false;
            c->known[i][c->nknown[i]] = graph_store_find(store, id);
            if (c->known[i][c->nknown[i]++] == REC_NONE)
                return rec_fail(err, REC_DATA, "there is no graph '%.*s'", (int)id.len,
                                id.ptr);
        }
    }
    return true;
}

struct learn_course *
learn_course_new(const struct learn_course_options *options, struct graph_store *store,
                 struct rec_error *err)
{
    struct learn_course *c = calloc(1, sizeof *c);
    if (c)
        c->options = *options;
    if (!c || !(c->order = calloc(options->ntemplates, sizeof *c->order)) ||
        !(c->known = calloc(options->ntemplates, sizeof *c->known)) ||
        !(c->nknown = calloc(options->ntemplates, sizeof *c->nknown)))
        rec_fail_memory(err);
    else if (look_up(c, store, err)) {
        c->options.admission.counted = true;
        c->admission = alloc_admission_new(&c->options.admission, store, count, c, err);
        if (c->admission)
            return c;
    }
    learn_course_free(c);
    return NULL;
}

void
learn_course_free(struct learn_course *c)
{
    if (!c)
        return;
    alloc_admission_free(c->admission);
    for (uint32_t i = 0; c->known && i < c->options.ntemplates; i++)
        free(c->known[i]);
    free(c->known);
    free(c->nknown);
    free(c->order);
    free(c);
}

/* The generators of an episode. */
struct draws {
    struct rng_arrivals *arrivals;
    struct rng_dist *steps, *fraction;
    struct rng *choice;
};

static bool
open_draws(struct draws *d, const struct learn_setting *setting, uint32_t seed,
           struct rec_error *err)
{
    struct rng_arrivals_options arrivals = {
        .spacing = setting->interarrival, .rate = 1, .seed = seed};
    return (d->arrivals = rng_arrivals_new(&arrivals, err)) &&
           (d->steps = rng_dist_new(setting->steps, seed, 2, err)) &&
           (!setting->fraction ||
            (d->fraction = rng_dist_new(setting->fraction, seed, 3, err))) &&
           (d->choice = rng_new(seed, 4, err));
}

static void
close_draws(struct draws *d)
{
    rng_arrivals_free(d->arrivals);
    rng_dist_free(d->steps);
    rng_dist_free(d->fraction);
    rng_free(d->choice);
}

/* Draws the template of a job: without replacement until all have come, then a new round
 * begins. */
static const struct learn_template *
choose(struct learn_course *c, struct draws *d, struct graph_job *job)
{
    uint32_t i, chosen;
    if (c->left == 0) {
        c->left = c->options.ntemplates;
        for (i = 0; i < c->options.ntemplates; i++)
            c->order[i] = i;
    }
    i = rng_below(d->choice, (uint32_t)c->left);
    chosen = c->order[i];
    c->order[i] = c->order[--c->left];
    job->graphs = c->options.templates[chosen].graphs;
    job->known = c->known[chosen];
    job->nknown = c->nknown[chosen];
    return &c->options.templates[chosen];
}

static bool
run(struct learn_course *c, struct draws *d, struct rec_error *err)
{
    char name[24];
    for (uint64_t i = 0; i < c->options.jobs; i++) {
        struct graph_job job = {.deadline = INFINITY};
        const struct learn_template *template = choose(c, d, &job);
        int status = rng_arrivals_next(d->arrivals, &job.arrival, err);
        if (c->options.stop && c->options.stop()) {
            *err = (struct rec_error){.code = REC_OK};
            return false;
        }
        sprintf(name, "j%llu", (unsigned long long)i);
        job.id = rec_str(name);
        if (status < 0)
            return false;
        if (status == 0)
            return rec_fail(err, REC_DATA,
                            "a job would arrive later than a number can hold");
        job.steps = fmax(1, round(rng_dist_draw(d->steps)));
        c->work = template->sequential * job.steps;
        if (d->fraction)
            job.deadline = rng_dist_draw(d->fraction) * c->work;
        if (!alloc_admission_advance(c->admission, &job, err) ||
            !alloc_admission_arrive(c->admission, &job, err))
            return false;
    }
    return alloc_admission_end(c->admission, err);
}

bool
learn_course_run(struct learn_course *c, const struct learn_setting *setting,
                 uint32_t seed, double *blocking, struct rec_error *err)
{
    struct draws draws = {NULL, NULL, NULL, NULL};
    bool ok = alloc_admission_reset(c->admission, err) &&
              open_draws(&draws, setting, seed, err);
    c->lost = c->all = 0;
    c->left = 0;
    ok = ok && run(c, &draws, err);
    close_draws(&draws);
    *blocking = c->all > 0 ? c->lost / c->all : 0;
    return ok;
}

void
learn_course_regime(const struct learn_course *c, double value[ALLOC_REGIME])
{
    alloc_admission_regime(c->admission, value);
}
