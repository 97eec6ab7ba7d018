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

/* What later jobs count: one that comes after twelve times as long as a mean job takes on
 * one server counts 1/e. If this were not much longer than jobs run, those that run long
 * on few servers would seem to take less than those that run shortly on many. The fewer
 * jobs come in this time, the less chance has a say in what a state is worth. */
static double
discount_for(double load, uint32_t servers)
{
    double discount = nearbyint(1e4 * rng_exp(-1 / (12 * load * servers))) / 1e4;
    return discount < 0.9999 ? discount : 0.9999;
}

/* Fills in the mean sequential time * steps of a job, seconds, and adds the load to
 * *load: what share of the servers' time such jobs need. */
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
    *load += *work * SAMPLE / (last * net_servers(course->admission.placer.net));
    return ok;
}

/* What the streams are drawn from, which take the settings of an expert in turns. If
 * there are several, the value is not told which kinds are still to come in a round, and
 * jobs come independently: else it would take the running jobs for a sign of those that
 * come, and think the best of answers that look like other jobs. */
struct streams {
    const struct learn_options *options;
    const struct learn_setting **setting;
    struct alloc_value_world *world; /* of each setting */
    uint32_t n;                      /* settings */
    struct rec_str *graphs;          /* of all worlds */
    double *sequential;              /* the same */
    struct learn_draws *draws[ALLOC_VALUE_STREAMS];
    double discount;
};

static const struct learn_course_options *
course_of(const struct streams *s, uint32_t i)
{
    return &s->options->worlds[s->setting[i]->world].course;
}

static bool
find_settings(struct streams *s, uint32_t expert, struct rec_error *err)
{
    const struct learn_options *o = s->options;
    size_t nkinds = 0;
    if (!(s->setting = calloc(o->nsettings, sizeof *s->setting)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < o->nsettings; i++)
        if (o->settings[i].expert == expert) {
            s->setting[s->n] = &o->settings[i];
            nkinds += course_of(s, s->n++)->ntemplates;
        }
    s->world = calloc(s->n, sizeof *s->world);
    s->graphs = calloc(nkinds, sizeof *s->graphs);
    s->sequential = calloc(nkinds, sizeof *s->sequential);
    return (s->world && s->graphs && s->sequential) || rec_fail_memory(err);
}

static void
make_worlds(struct streams *s)
{
    size_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct learn_course_options *course = course_of(s, i);
        s->world[i] = (struct alloc_value_world){
            .admission = &course->admission,
            .store = s->options->worlds[s->setting[i]->world].store,
            .graphs = s->graphs + at,
            .sequential = s->sequential + at,
            .nkinds = course->ntemplates};
        for (uint32_t k = 0; k < course->ntemplates; k++, at++) {
            s->graphs[at] = course->templates[k].graphs;
            s->sequential[at] = course->templates[k].sequential;
        }
    }
}

static bool
begin_streams(struct streams *s, uint32_t expert, uint32_t seed, struct rec_error *err)
{
    double load = 0;
    if (!find_settings(s, expert, err))
        return false;
    make_worlds(s);
    for (uint32_t i = 0; i < s->n; i++)
        if (!draw_load(course_of(s, i), s->setting[i], seed, &s->world[i].work, &load,
                       err))
            return false;
    s->discount =
        discount_for(load / s->n, net_servers(course_of(s, 0)->admission.placer.net));
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++) {
        const struct learn_course_options *course = course_of(s, i % s->n);
        if (!(s->draws[i] = learn_draws_new(course->templates, course->ntemplates,
                                            s->setting[i % s->n], seed + i, err)))
            return false;
        if (s->n > 1)
            learn_draws_mix(s->draws[i]);
    }
    return true;
}

static void
end_streams(struct streams *s)
{
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++)
        learn_draws_free(s->draws[i]);
    free(s->graphs);
    free(s->sequential);
    free(s->world);
    free(s->setting);
}

struct alloc_value *
learn_value(const struct learn_options *options, uint32_t expert,
            const struct alloc_value *start, uint32_t units, uint64_t jobs, double margin,
            uint32_t seed, struct rec_error *err)
{
    struct streams s = {.options = options};
    struct alloc_value *value = NULL;
    if (begin_streams(&s, expert, seed, err)) {
        struct alloc_value_options how = {.world = s.world,
                                          .nworlds = s.n,
                                          .discount = s.discount,
                                          .jobs = jobs,
                                          .margin = margin,
                                          .units = units,
                                          .start = start,
                                          .seed = seed,
                                          .threads = options->threads,
                                          .next = next,
                                          .context = s.draws,
                                          .stop = options->worlds->course.stop};
        value = alloc_value_train(&how, err);
    }
    end_streams(&s);
    return value;
}
