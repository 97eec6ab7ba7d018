/*
 * Episodes: the pipeline tracegen jobs | ramp-alloc in memory. Jobs are drawn, arrive,
 * and start or are blocked; only the blocked ones are counted.
 */
#include "draws.h"

#include <stdlib.h>

struct learn_course {
    struct learn_course_options options;
    struct alloc_admission *admission;
    uint64_t blocked; /* jobs of this episode */
};

/* Called for each decision. */
static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    struct learn_course *c = context;
    (void)err;
    c->blocked += decision->cause != NULL;
    return true;
}

struct learn_course *
learn_course_new(const struct learn_course_options *options, struct graph_store *store,
                 struct rec_error *err)
{
    struct learn_course *c = calloc(1, sizeof *c);
    if (!c)
        rec_fail_memory(err);
    else {
        c->options = *options;
        c->admission = alloc_admission_new(&options->admission, store, count, c, err);
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
    free(c);
}

static bool
run(struct learn_course *c, struct learn_draws *draws, struct rec_error *err)
{
    for (uint64_t i = 0; i < c->options.jobs; i++) {
        struct graph_job job;
        uint32_t index;
        bool drawn = learn_draws_next(draws, &job, &index, err);
        if (c->options.stop && c->options.stop()) {
            *err = (struct rec_error){.code = REC_OK};
            return false;
        }
        if (!drawn || !alloc_admission_advance(c->admission, &job, err) ||
            !alloc_admission_arrive(c->admission, &job, err))
            return false;
    }
    return alloc_admission_end(c->admission, err);
}

bool
learn_course_run(struct learn_course *c, const struct learn_setting *setting,
                 uint32_t seed, double *blocking, struct rec_error *err)
{
    struct learn_draws *draws =
        learn_draws_new(c->options.templates, c->options.ntemplates, setting,
                        c->options.steps, seed, err);
    bool ok;
    c->blocked = 0;
    ok = draws && alloc_admission_reset(c->admission, err) && run(c, draws, err);
    learn_draws_free(draws);
    *blocking = c->options.jobs ? (double)c->blocked / (double)c->options.jobs : 0;
    return ok;
}

void
learn_course_regime(const struct learn_course *c, double value[ALLOC_REGIME])
{
    alloc_admission_regime(c->admission, value);
}
