/* Training: an evolution strategy whose points are judged by episodes, in several threads. */
#include "rampipe/learn.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct worker {
    struct trainer *trainer;
    struct learn_course *course;
    struct alloc_choosing choosing;
    struct alloc_scorer *scorer; /* its self */
    pthread_t thread;
    struct rec_error err;
    bool failed;
};

struct trainer {
    const struct learn_options *options;
    struct graph_store *store;
    size_t n;      /* weights */
    double *scale; /* weight / coordinate of the strategy, as features differ in spread */
    double *unit;  /* per setting: what its blocking is divided by */
    struct learn_cma *cma;
    struct worker *worker;
    uint32_t nworkers;
    /* The generation: */
    uint32_t seed;
    const double *points;
    double *blocking; /* point after point, per setting */
    atomic_uint next; /* of them */
    double *value;    /* per point */
    /* The means of all generations, for the result: */
    double *means;
    size_t room;
    uint64_t generation;
};

static double
processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a generation -------------------------------------------------------- */

static void *
work(void *argument)
{
    struct worker *w = argument;
    struct trainer *t = w->trainer;
    uint32_t settings = t->options->nsettings;
    uint32_t all = learn_cma_population(t->cma) * settings, i;
    while (!w->failed && (i = atomic_fetch_add(&t->next, 1)) < all) {
        for (size_t k = 0; k < t->n; k++)
            w->scorer->weight[k] = t->points[i / settings * t->n + k] * t->scale[k];
        w->failed = !learn_course_run(w->course, &t->options->settings[i % settings],
                                      t->seed, &t->blocking[i], &w->err);
    }
    return NULL;
}

static bool
evaluate(struct trainer *t, struct rec_error *err)
{
    uint32_t started = 1;
    bool ok = true;
    atomic_store(&t->next, 0);
    for (; started < t->nworkers; started++)
        if (pthread_create(&t->worker[started].thread, NULL, work, &t->worker[started]))
            break; /* fewer do */
    work(&t->worker[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(t->worker[i].thread, NULL);
    for (uint32_t i = 0; ok && i < started; i++)
        if (t->worker[i].failed) {
            *err = t->worker[i].err;
            ok = false;
        }
    return ok;
}

/* Of each point the blocking rates of all settings, each in relation to what points have on
 * average: light loads count as heavy ones. Returns the least. */
static double
value_points(struct trainer *t)
{
    uint32_t settings = t->options->nsettings, population = learn_cma_population(t->cma);
    double least = INFINITY;
    memset(t->value, 0, population * sizeof *t->value);
    for (uint32_t s = 0; s < settings; s++) {
        double sum = 0, unit;
        for (uint32_t k = 0; k < population; k++)
            sum += t->blocking[k * settings + s];
        unit = sqrt(sum / population + 0.001);
        for (uint32_t k = 0; k < population; k++)
            t->value[k] += t->blocking[k * settings + s] / unit / settings;
    }
    for (uint32_t k = 0; k < population; k++)
        least = fmin(least, t->value[k]);
    return least;
}

static bool
breed(struct trainer *t, struct learn_progress *progress, struct rec_error *err)
{
    t->seed = t->options->seed + (uint32_t)t->generation;
    t->points = learn_cma_ask(t->cma);
    if (!evaluate(t, err) ||
        !rec_grow(&t->means, &t->room, (t->generation + 1) * t->n, sizeof *t->means, err))
        return false;
    progress->value = value_points(t);
    learn_cma_tell(t->cma, t->value);
    memcpy(t->means + t->generation * t->n, learn_cma_mean(t->cma),
           t->n * sizeof(double));
    t->generation++;
    return true;
}

/* The mean over the last third of the generations. */
static void
take_mean(const struct trainer *t, struct alloc_scorer *scorer)
{
    uint64_t first = t->generation - (t->generation + 2) / 3;
    for (size_t i = 0; i < t->n && t->generation; i++) {
        double sum = 0;
        for (uint64_t g = first; g < t->generation; g++)
            sum += t->means[g * t->n + i];
        scorer->weight[i] = sum / (double)(t->generation - first) * t->scale[i];
    }
}

/* ---- the whole ----------------------------------------------------------- */

/* Of a feature, and of each unit's; the outputs of units are about 1. */
static bool
start_strategy(struct trainer *t, const struct alloc_scorer *scorer,
               struct rec_error *err)
{
    const size_t row = ALLOC_FEATURES + 1;
    t->n = alloc_scorer_size(scorer->units);
    if (!(t->scale = malloc(2 * t->n * sizeof *t->scale)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < t->n; i++) {
        size_t k = i < ALLOC_FEATURES ? i : (i - ALLOC_FEATURES) % row;
        t->scale[i] = k < ALLOC_FEATURES ? 1 / alloc_features[k].spread : 1;
        t->scale[t->n + i] = scorer->weight[i] / t->scale[i];
    }
    t->cma = learn_cma_new(t->scale + t->n, (uint32_t)t->n, t->options->sigma, 0,
                           t->options->seed, err);
    return t->cma != NULL;
}

static bool
prepare(struct trainer *t, const struct alloc_scorer *scorer, struct rec_error *err)
{
    const struct learn_options *o = t->options;
    struct learn_course_options course = o->course;
    size_t population;
    if (!start_strategy(t, scorer, err))
        return false;
    population = learn_cma_population(t->cma);
    t->blocking = calloc(population * o->nsettings + 1, sizeof *t->blocking);
    t->value = calloc(population, sizeof *t->value);
    t->worker = calloc(o->threads, sizeof *t->worker);
    if (!t->blocking || !t->value || !t->worker)
        return rec_fail_memory(err);
    for (; t->nworkers < o->threads; t->nworkers++) {
        struct worker *w = &t->worker[t->nworkers];
        w->trainer = t;
        w->choosing.chooser = alloc_chooser_find(rec_str("learned"));
        course.admission.choosing = &w->choosing;
        if (!(w->scorer = alloc_scorer_new(scorer->units, err)))
            return false;
        w->choosing.self = w->scorer;
        if (!(w->course = learn_course_new(&course, t->store, err))) {
            alloc_scorer_free(w->scorer);
            return false;
        }
    }
    return true;
}

static void
release(struct trainer *t)
{
    for (uint32_t i = 0; i < t->nworkers; i++) {
        learn_course_free(t->worker[i].course);
        alloc_scorer_free(t->worker[i].scorer);
    }
    free(t->worker);
    learn_cma_free(t->cma);
    free(t->scale);
    free(t->blocking);
    free(t->value);
    free(t->means);
}

bool
learn_train(const struct learn_options *options, struct graph_store *store,
            struct alloc_scorer *scorer, uint64_t *generations, struct rec_error *err)
{
    struct trainer t = {.options = options, .store = store};
    struct learn_progress progress = {0};
    bool more = true, ok;

    *generations = 0;
    if (options->generations == 0)
        return true;
    ok = prepare(&t, scorer, err);

    while (ok && more && t.generation < options->generations &&
           progress.seconds < options->seconds) {
        if (!(ok = breed(&t, &progress, err)))
            break;
        progress.generation = t.generation;
        progress.seconds = processor_seconds();
        progress.sigma = learn_cma_sigma(t.cma);
        take_mean(&t, scorer);
        more = !options->tell || options->tell(options->context, &progress, scorer);
    }
    *generations = t.generation;
    release(&t);
    return ok;
}
