/*
 * Draws jobs. Templates are drawn without replacement until all have come; then a new
 * round begins. Or each job is drawn from all templates.
 */
#include "draws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct learn_draws {
    const struct learn_template *templates; /* borrowed */
    uint32_t *order; /* templates; order[0..left) have not come in this round */
    uint32_t n, left;
    bool is_mixed;  /* there are no rounds */
    uint64_t drawn; /* jobs */
    char id[24];
    struct rng_arrivals *arrivals;
    struct rng_dist *steps, *fraction; /* fraction NULL: jobs have no deadlines */
    struct rng *choice;
};

struct learn_draws *
learn_draws_new(const struct learn_template *templates, uint32_t n,
                const struct learn_setting *setting, uint32_t seed, struct rec_error *err)
{
    struct rng_arrivals_options arrivals = {
        .spacing = setting->interarrival, .rate = 1, .seed = seed};
    struct learn_draws *d = calloc(1, sizeof *d);
    if (!d || !(d->order = calloc(n + 1, sizeof *d->order)))
        rec_fail_memory(err);
    else if ((d->arrivals = rng_arrivals_new(&arrivals, err)) &&
             (d->steps = rng_dist_new(setting->steps, seed, 2, err)) &&
             (!setting->fraction ||
              (d->fraction = rng_dist_new(setting->fraction, seed, 3, err))) &&
             (d->choice = rng_new(seed, 4, err))) {
        d->templates = templates;
        d->n = n;
        return d;
    }
    learn_draws_free(d);
    return NULL;
}

void
learn_draws_free(struct learn_draws *d)
{
    if (!d)
        return;
    rng_arrivals_free(d->arrivals);
    rng_dist_free(d->steps);
    rng_dist_free(d->fraction);
    rng_free(d->choice);
    free(d->order);
    free(d);
}

void
learn_draws_mix(struct learn_draws *d)
{
    d->is_mixed = true;
}

static uint32_t
choose(struct learn_draws *d)
{
    uint32_t i, chosen;
    if (d->is_mixed)
        return rng_below(d->choice, d->n);
    if (d->left == 0) {
        d->left = d->n;
        for (i = 0; i < d->n; i++)
            d->order[i] = i;
    }
    i = rng_below(d->choice, d->left);
    chosen = d->order[i];
    d->order[i] = d->order[--d->left];
    return chosen;
}

bool
learn_draws_next(struct learn_draws *d, struct graph_job *job, uint32_t *index,
                 struct rec_error *err)
{
    const struct learn_template *template = &d->templates[ *index = choose(d)];
    int status;
    *job = (struct graph_job){.graphs = template->graphs, .deadline = INFINITY};
    if ((status = rng_arrivals_next(d->arrivals, &job->arrival, err)) < 0)
        return false;
    if (status == 0)
        return rec_fail(err, REC_DATA, "a job would arrive later than a number can hold");
    sprintf(d->id, "j%llu", (unsigned long long)d->drawn++);
    job->id = rec_str(d->id);
    job->steps = fmax(1, round(rng_dist_draw(d->steps)));
    if (d->fraction)
        job->deadline = rng_dist_draw(d->fraction) * (template->sequential * job->steps);
    return true;
}
