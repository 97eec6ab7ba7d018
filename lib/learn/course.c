/*
 * Episodes: the pipeline tracegen jobs | ramp-alloc in memory. Jobs are drawn, arrive,
 * and start or are blocked; only the blocked ones are counted.
 */
#include "draws.h"

#include <stdlib.h>

struct learn_course {
    struct learn_course_options options;
    struct alloc_admission *admission;
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

/* What is divided by the work of a job, or of all jobs, needs some. */
static bool
check_work(const struct learn_course_options *o, struct rec_error *err)
{
    uint32_t without = 0, last = 0;
    for (uint32_t i = 0; i < o->ntemplates; i++)
        if (!(o->templates[i].sequential > 0)) {
            without++;
            last = i;
        }
    if (o->objective == LEARN_BLOCKED || without == 0 ||
        (o->objective != LEARN_COMPLETION && without < o->ntemplates))
        return true;
    return rec_fail(err, REC_DATA,
                    "jobs with the graphs '%.*s' have no sequential work, by which the "
                    "objective divides",
                    (int)o->templates[last].graphs.len, o->templates[last].graphs.ptr);
}

struct learn_course *
learn_course_new(const struct learn_course_options *options, struct graph_store *store,
                 struct rec_error *err)
{
    struct learn_course *c = calloc(1, sizeof *c);
    if (c)
        c->options = *options;
    if (!c || !(c->known = calloc(options->ntemplates, sizeof *c->known)) ||
        !(c->nknown = calloc(options->ntemplates, sizeof *c->nknown)))
        rec_fail_memory(err);
    else if (check_work(options, err) && look_up(c, store, err)) {
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
        if (!drawn)
            return false;
        job.known = c->known[index];
        job.nknown = c->nknown[index];
        c->work = c->options.templates[index].sequential * job.steps;
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
    struct learn_draws *draws =
        learn_draws_new(c->options.templates, c->options.ntemplates, setting, seed, err);
    bool ok;
    c->lost = c->all = 0;
    ok = draws && alloc_admission_reset(c->admission, err) && run(c, draws, err);
    learn_draws_free(draws);
    *blocking = c->all > 0 ? c->lost / c->all : 0;
    return ok;
}

void
learn_course_regime(const struct learn_course *c, double value[ALLOC_REGIME])
{
    alloc_admission_regime(c->admission, value);
}
