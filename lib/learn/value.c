/* What states are worth, for experts: streams of jobs are drawn as in episodes. */
#include "draws.h"

#include <math.h>
#include <stdlib.h>

/* Jobs from which the load is taken. */
enum { SAMPLE = 1000 };

static bool
next(void *context, uint32_t stream, struct graph_job *job, uint32_t *kind,
     struct rec_error *err)
{
    struct learn_draws **draws = context;
    return learn_draws_next(draws[stream], job, kind, err);
}

/* What later jobs count: one that comes when the cluster could have done all work of a
 * hundred jobs counts 1/e. The fewer jobs come in this time, the less chance has a say in
 * what a state is worth. Two digits are enough, and 0.99 at most. */
static double
discount_for(double load)
{
    double discount = nearbyint(100 * rng_exp(-1 / (100 * load))) / 100;
    return discount < 0.99 ? discount : 0.99;
}

/* Of a job the mean sequential time * steps, seconds, and the load: what share of the
 * servers' time such jobs need. */
static bool
draw_load(const struct learn_course_options *course, const struct learn_setting *setting,
          uint32_t seed, double *work, double *load, struct rec_error *err)
{
    struct learn_draws *draws =
        learn_draws_new(course->templates, course->ntemplates, setting, seed, err);
    bool ok = draws != NULL;
    double last = 0;
    *work = 0;
    for (int i = 0; ok && i < SAMPLE; i++) {
        struct graph_job job;
        uint32_t index;
        ok = learn_draws_next(draws, &job, &index, err);
        if (ok) {
            *work += course->templates[index].sequential * job.steps / SAMPLE;
            last = job.arrival;
        }
    }
    learn_draws_free(draws);
    *load = *work * SAMPLE / (last * net_servers(course->admission.placer.net));
    return ok;
}

struct alloc_value *
learn_value(const struct learn_world *world, const struct learn_setting *setting,
            const struct alloc_value *start, uint32_t units, uint64_t jobs, uint32_t seed,
            uint32_t threads, struct rec_error *err)
{
    const struct learn_course_options *course = &world->course;
    struct learn_draws *draws[ALLOC_VALUE_STREAMS] = {NULL};
    struct rec_str *graphs = calloc(course->ntemplates, sizeof *graphs);
    double *sequential = calloc(course->ntemplates, sizeof *sequential);
    struct alloc_value *value = NULL;
    struct alloc_value_options options = {.admission = &course->admission,
                                          .store = world->store,
                                          .graphs = graphs,
                                          .sequential = sequential,
                                          .nkinds = course->ntemplates,
                                          .jobs = jobs,
                                          .units = units,
                                          .start = start,
                                          .seed = seed,
                                          .threads = threads,
                                          .next = next,
                                          .context = draws,
                                          .stop = course->stop};
    double load = 0;
    bool ok = (graphs && sequential) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < course->ntemplates; i++) {
        graphs[i] = course->templates[i].graphs;
        sequential[i] = course->templates[i].sequential;
    }
    ok = ok && draw_load(course, setting, seed, &options.work, &load, err);
    options.discount = discount_for(load);
    for (uint32_t i = 0; ok && i < ALLOC_VALUE_STREAMS; i++)
        ok = (draws[i] = learn_draws_new(course->templates, course->ntemplates, setting,
                                         seed + i, err)) != NULL;
    if (ok)
        value = alloc_value_train(&options, err);
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++)
        learn_draws_free(draws[i]);
    free(graphs);
    free(sequential);
    return value;
}
