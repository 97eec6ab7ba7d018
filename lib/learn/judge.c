/*
 * Judges the points of searches (train.h). An episode is a number, which a thread takes
 * from a counter, and its result goes into a table at that number. Values are computed
 * from the table when all threads have ended, so they do not depend on how many there
 * are.
 */
#include "train.h"

#include <math.h>
#include <time.h>

/* Episodes of which the worst counts as much as the mean of all, if the tail counts. */
enum { TAIL = 20 };

double
learn_processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reports progress; `part` is the share of the running learn_judge() that is done. */
static void
tell(struct learn_trainer *t, double part)
{
    const struct learn_options *o = t->options;
    double of_time = learn_processor_seconds() / o->seconds, of_generations = 0;
    if (!o->tell)
        return;
    if (o->generations < UINT64_MAX)
        of_generations =
            ((double)t->generation + (t->breeding ? part : 0)) / (double)o->generations;
    t->progress.share = fmax(of_time, of_generations);
    if (t->generation == o->generations && isinf(o->seconds))
        t->progress.share = NAN;
    o->tell(o->context, &t->progress);
}

struct learn_search *
learn_search_of(const struct learn_trainer *t, uint32_t setting)
{
    return &t->search[t->options->settings[setting].expert];
}

void
learn_set_weights(const struct learn_trainer *t, const double *point, double *weight)
{
    for (size_t k = 0; k < t->n; k++)
        weight[t->place[k]] = point[k] * t->scale[k];
}

/* Sets a worker's scorer for an episode: the expert of the setting gets the point that is
 * judged, the others their means. */
static void
place(const struct learn_worker *w, uint32_t setting, uint32_t point)
{
    const struct learn_trainer *t = w->trainer;
    const struct learn_search *judged = learn_search_of(t, setting);
    for (uint32_t i = 0; i < t->nsearches; i++) {
        const struct learn_search *s = &t->search[i];
        learn_set_weights(
            t, s == judged || !s->mean ? judged->points + point * t->n : s->mean,
            w->scorer->expert[i].weight);
    }
}

/* Runs episodes until there are none left. A thread of its own for each worker but the
 * first, which also reports progress. */
static void *
work(void *argument)
{
    struct learn_worker *w = argument;
    struct learn_trainer *t = w->trainer;
    uint32_t settings = t->options->nsettings;
    uint32_t all = t->npoints * settings * t->nepisodes, i;
    while (!w->failed && (i = atomic_fetch_add(&t->next, 1)) < all) {
        uint32_t point = i / t->nepisodes / settings;
        uint32_t setting = i / t->nepisodes % settings;
        t->blocking[i] = 0;
        if (learn_search_of(t, setting)->rests)
            continue;
        place(w, setting, point);
        w->failed =
            !learn_course_run(w->course[t->options->settings[setting].world],
                              &t->options->settings[setting], t->seed + i % t->nepisodes,
                              &t->blocking[i], &w->err);
        if (w == t->worker)
            tell(t, (double)i / all);
    }
    return NULL;
}

static bool
run_episodes(struct learn_trainer *t, struct rec_error *err)
{
    uint32_t started = 1;
    bool ok = true;
    atomic_store(&t->next, 0);
    for (; started < t->nworkers; started++)
        if (pthread_create(&t->worker[started].thread, NULL, work, &t->worker[started]))
            break; /* no more threads: those that run do all the work */
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

/* The mean blocking rate of a point in a setting; if the tail counts, of that and of the
 * mean of the worst episode of each `TAIL`. */
static double
blocking_of(const struct learn_trainer *t, uint32_t point, uint32_t setting)
{
    const double *b =
        t->blocking + ((size_t)point * t->options->nsettings + setting) * t->nepisodes;
    double sum = 0, worst = 0, all = 0;
    uint32_t parts = 0;
    for (uint32_t e = 0; e < t->nepisodes; e++) {
        sum += b[e];
        worst = e % TAIL ? fmax(worst, b[e]) : b[e];
        if ((e + 1) % TAIL == 0 || (e + 1 == t->nepisodes && parts == 0)) {
            all += worst;
            parts++;
        }
    }
    return t->tail ? (sum / t->nepisodes + all / parts) / 2 : sum / t->nepisodes;
}

uint32_t
learn_settings_of(const struct learn_trainer *t, const struct learn_search *search)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < t->options->nsettings; s++)
        n += learn_search_of(t, s) == search;
    return n;
}

/* Sets the value of each point: its blocking rates over the settings, each divided by a
 * unit that grows with the mean rate of all points there, so that light loads count,
 * too. */
static void
value_points(struct learn_trainer *t)
{
    uint32_t settings = t->options->nsettings, n = t->npoints;
    for (uint32_t i = 0; i < t->nsearches; i++)
        memset(t->search[i].value, 0, n * sizeof(double));
    for (uint32_t s = 0; s < settings; s++) {
        struct learn_search *search = learn_search_of(t, s);
        double sum = 0, unit;
        for (uint32_t k = 0; k < n; k++)
            sum += blocking_of(t, k, s);
        unit = sqrt(sum / n + 0.001) * learn_settings_of(t, search);
        for (uint32_t k = 0; k < n; k++)
            search->value[k] += blocking_of(t, k, s) / unit;
    }
}

bool
learn_judge(struct learn_trainer *t, uint32_t npoints, uint32_t nepisodes,
            struct rec_error *err)
{
    size_t episodes = (size_t)npoints * t->options->nsettings * nepisodes;
    t->npoints = npoints;
    t->nepisodes = nepisodes;
    t->seed = t->options->seed + (uint32_t)t->generation + t->episodes;
    for (uint32_t i = 0; i < t->nsearches; i++)
        if (!rec_grow(&t->search[i].value, &t->search[i].value_room, npoints,
                      sizeof(double), err))
            return false;
    if (!rec_grow(&t->blocking, &t->room, episodes, sizeof *t->blocking, err) ||
        !run_episodes(t, err))
        return false;
    value_points(t);
    return true;
}

uint32_t
learn_best_point(const struct learn_search *search, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++)
        if (search->value[k] < search->value[best])
            best = k;
    return best;
}

bool
learn_is_better(const struct learn_trainer *t, uint32_t search, uint32_t point,
                uint32_t other)
{
    double n = t->nepisodes, sum = 0, squares = 0;
    for (uint32_t e = 0; e < t->nepisodes; e++) {
        double less = 0;
        for (uint32_t s = 0; s < t->options->nsettings; s++) {
            size_t a = (size_t)point * t->options->nsettings + s;
            size_t b = (size_t)other * t->options->nsettings + s;
            if (learn_search_of(t, s) == &t->search[search])
                less +=
                    t->blocking[b * t->nepisodes + e] - t->blocking[a * t->nepisodes + e];
        }
        sum += less;
        squares += less * less;
    }
    return sum > 2 * sqrt(fmax(squares - sum * sum / n, 0) * n / (n - 1));
}
