/*
 * Training (learn.h says what is done). Each expert is a search: an evolution strategy
 * whose points are the weights of its expert. judge.c runs the episodes of all points of
 * all searches at once.
 */
#include "start.h"
#include "train.h"

#include <stdlib.h>

enum {
    EPISODES_PER_EXPERT = 8, /* to compare the experts of a search while it goes on */
    WINDOWS = 6,             /* parts of the training: the mean of each is a candidate */
    ENDS = WINDOWS + 2,      /* candidates at the end of training */
    EPISODES_PER_START = 4,  /* to compare the weights that training can start from */
    EPISODES_PER_CANDIDATE = 12, /* to compare the candidates at the end */
    FINALISTS = 3, /* the best candidates, compared again over options->final episodes */
    UNIT = ALLOC_FEATURES + 1, /* weights of a hidden unit */
    /* Generations after which experts first look at each other; then after twice as
     * many. */
    SETTLE = 40
};

/* ---- what an expert starts from ------------------------------------------ */

/* From weights to coordinates; weights that the source does not have are 0. */
static void
to_point(const struct learn_trainer *t, const double *weight, size_t nweights,
         double *point)
{
    for (size_t k = 0; k < t->n; k++)
        point[k] = t->place[k] < nweights ? weight[t->place[k]] / t->scale[k] : 0;
}

/* A cluster on which jobs of a search come: with `by_shape` the only one. */
static const struct net *
net_of(const struct learn_trainer *t, uint32_t search)
{
    const struct learn_options *o = t->options;
    uint32_t s = 0;
    while (o->by_shape && learn_search_of(t, s) != &t->search[search])
        s++;
    return o->worlds[o->by_shape ? o->settings[s].world : 0].course.admission.placer.net;
}

/* How many simple policies there are for the clusters: for the largest one the most. */
static uint32_t
count_simple(const struct learn_trainer *t, double size)
{
    double simple[LEARN_STARTS][ALLOC_FEATURES];
    uint32_t most = 0;
    for (uint32_t i = 0; i < t->nsearches; i++) {
        uint32_t n = learn_starts(net_servers(net_of(t, i)), size, simple);
        most = n > most ? n : most;
    }
    return most;
}

/* Makes the points that each expert can start from, which the caller frees: the experts
 * of `start`, if there is one, and the first LEARN_PLAIN simple policies, or all simple
 * ones. Where there are fewer than elsewhere, the first comes again. Returns how many
 * there are for each; 0: *err. */
static uint32_t
propose(struct learn_trainer *t, const struct alloc_scorer *start, double **points,
        struct rec_error *err)
{
    double simple[LEARN_STARTS][ALLOC_FEATURES], size = 2 * t->options->sigma;
    uint32_t own = start ? start->nexperts : 0;
    uint32_t n = own + (start ? LEARN_PLAIN : count_simple(t, size));
    /* Only what depends on the cluster is made for each expert. */
    uint32_t copies = !start && t->options->by_shape ? t->nsearches : 1;
    if (!(*points = calloc((size_t)copies * n, t->n * sizeof **points))) {
        rec_fail_memory(err);
        return 0;
    }
    for (uint32_t k = 0; k < t->nsearches; k++) {
        double *point = *points + (size_t)(k % copies) * n * t->n;
        uint32_t nsimple;
        t->search[k].points = point;
        if (k >= copies)
            continue;
        nsimple = learn_starts(net_servers(net_of(t, k)), size, simple);
        for (uint32_t i = 0; i < own; i++, point += t->n)
            to_point(t, start->expert[i].weight, alloc_scorer_size(start->units), point);
        for (uint32_t i = 0; i < n - own; i++, point += t->n)
            to_point(t, simple[i < nsimple ? i : 0], ALLOC_FEATURES, point);
    }
    return n;
}

/* Allocates the points `first` and `start` of each search as one array. */
static bool
make_room(struct learn_trainer *t, struct rec_error *err)
{
    for (uint32_t i = 0; i < t->nsearches; i++) {
        struct learn_search *s = &t->search[i];
        if (!(s->first = calloc(2 * t->n, sizeof *s->first)))
            return rec_fail_memory(err);
        s->start = s->first + t->n;
        s->expert = &t->result->expert[i];
    }
    return true;
}

/* Sets the centers of the experts, and what clusters they are for, in the result and in
 * the scorers of all workers. A center is the mean over their settings. One episode of
 * each setting says its regime: the jobs that come do not depend on decisions. */
static bool
find_centers(struct learn_trainer *t, struct rec_error *err)
{
    struct learn_worker *w = &t->worker[0];
    double blocking;
    for (uint32_t s = 0; t->nsearches > 1 && s < t->options->nsettings; s++) {
        const struct learn_setting *setting = &t->options->settings[s];
        struct learn_search *search = learn_search_of(t, s);
        double regime[ALLOC_REGIME];
        if (!learn_course_run(w->course[setting->world], setting, t->options->seed,
                              &blocking, err))
            return false;
        learn_course_regime(w->course[setting->world], regime);
        for (int i = 0; i < ALLOC_REGIME; i++)
            search->expert->center[i] += regime[i] / learn_settings_of(t, search);
        if (t->options->by_shape)
            net_describe(t->options->worlds[setting->world].course.admission.placer.net,
                         search->expert->cluster);
    }
    for (uint32_t i = 0; i < t->nworkers; i++)
        for (uint32_t e = 0; e < t->nsearches; e++) {
            struct alloc_expert *expert = &t->worker[i].scorer->expert[e];
            memcpy(expert->center, t->result->expert[e].center, sizeof expert->center);
            memcpy(expert->cluster, t->result->expert[e].cluster, sizeof expert->cluster);
        }
    return true;
}

/* Starts the strategy of an expert at a point; seeds differ by expert and generation. */
static bool
start_search(struct learn_trainer *t, uint32_t i, const double *point,
             struct rec_error *err)
{
    struct learn_search *s = &t->search[i];
    learn_cma_free(s->cma);
    memcpy(s->start, point, t->n * sizeof *s->start);
    s->cma = learn_cma_new(s->start, (uint32_t)t->n, s->sigma, 0,
                           t->options->seed + i + ((uint32_t)t->generation << 8), err);
    return s->cma != NULL;
}

/* Judges all candidates, the same for each search, and starts each from the best. */
static bool
start_searches(struct learn_trainer *t, const struct alloc_scorer *start,
               struct rec_error *err)
{
    double *points;
    uint32_t n = propose(t, start, &points, err);
    bool as_many = start && start->nexperts == t->nsearches;
    bool ok = n > 0 && make_room(t, err) && find_centers(t, err);
    ok = ok && learn_judge(t, n, EPISODES_PER_START, err);
    for (uint32_t i = 0; ok && i < t->nsearches; i++) {
        uint32_t best = learn_best_point(&t->search[i], n);
        if (as_many && !learn_is_better(t, i, best, i))
            best = i; /* the expert of this setting in the file */
        if (as_many)
            t->search[i].expert->after = start->expert[i].after;
        t->search[i].sigma = t->options->sigma;
        ok = start_search(t, i, t->search[i].points + best * t->n, err);
        memcpy(t->search[i].first, t->search[i].start, t->n * sizeof *points);
    }
    free(points);
    return ok;
}

/* ---- experts learn from each other --------------------------------------- */

/*
 * Decides how an expert goes on, after migrate() has judged the means of all experts in
 * its setting (points 0 to nsearches - 1) and what it first started from (the last
 * point). The rules are those of learn.h: from the best of the others if that is better;
 * else as before if it has gained on its first start; else from there again, with small
 * steps the first time; if it still has not gained then, it rests.
 */
static bool
settle(struct learn_trainer *t, uint32_t i, struct rec_error *err)
{
    struct learn_search *s = &t->search[i];
    uint32_t first = t->nsearches, best = i == 0;
    for (uint32_t k = 0; k < first; k++)
        if (k != i && s->value[k] < s->value[best])
            best = k;
    if (s->rests)
        return true;
    if (learn_is_better(t, i, best, i) && s->value[best] < s->value[first])
        return start_search(t, i, s->points + best * t->n, err);
    if (learn_is_better(t, i, i, first) || s->value[i] < s->value[first])
        return true;
    if (s->sigma < t->options->sigma && !learn_is_better(t, i, first, i))
        return true;
    s->rests = s->sigma < t->options->sigma;
    s->sigma = t->options->sigma / 10;
    return start_search(t, i, s->first, err);
}

/* Lets the experts learn from each other: the mean of each is judged in the settings of
 * all others. Takes memory in proportion to the square of the number of experts. */
static bool
migrate(struct learn_trainer *t, struct rec_error *err)
{
    uint32_t all = t->nsearches;
    double *points = malloc(all * (all + 1) * t->n * sizeof *points);
    bool ok = points || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < all; i++) {
        struct learn_search *s = &t->search[i];
        double *point = points + i * (all + 1) * t->n;
        for (uint32_t k = 0; k < all; k++)
            memcpy(point + k * t->n, learn_cma_mean(t->search[k].cma),
                   t->n * sizeof *points);
        memcpy(point + all * t->n, s->first, t->n * sizeof *points);
        s->points = point;
        s->mean = point + i * t->n;
    }
    ok = ok && learn_judge(t, all + 1, EPISODES_PER_EXPERT, err);
    for (uint32_t i = 0; ok && i < all; i++)
        ok = settle(t, i, err);
    free(points);
    return ok;
}

/* ---- generations --------------------------------------------------------- */

static uint32_t
count_active(const struct learn_trainer *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->nsearches; i++)
        n += !t->search[i].rests;
    return n;
}

/* One generation of all searches that do not rest. */
static bool
breed(struct learn_trainer *t, struct rec_error *err)
{
    struct learn_progress *progress = &t->progress;
    uint32_t population = learn_cma_population(t->search[0].cma);
    uint32_t active = count_active(t);
    for (uint32_t i = 0; i < t->nsearches; i++) {
        if (!t->search[i].rests)
            t->search[i].points = learn_cma_ask(t->search[i].cma);
        t->search[i].mean = learn_cma_mean(t->search[i].cma);
    }
    t->breeding = true;
    if (!learn_judge(t, population, 1, err))
        return false;
    t->breeding = false;
    progress->value = progress->sigma = 0;
    for (uint32_t i = 0; i < t->nsearches; i++) {
        struct learn_search *s = &t->search[i];
        if (!rec_grow(&s->means, &s->means_room, (t->generation + 1) * t->n,
                      sizeof *s->means, err))
            return false;
        if (!s->rests) {
            learn_cma_tell(s->cma, s->value);
            progress->value += s->value[learn_best_point(s, population)] / active;
            progress->sigma += learn_cma_sigma(s->cma) / active;
        }
        memcpy(s->means + t->generation * t->n, learn_cma_mean(s->cma),
               t->n * sizeof *s->means);
    }
    progress->generation = ++t->generation;
    progress->seconds = learn_processor_seconds();
    return true;
}

/* ---- the end ------------------------------------------------------------- */

/* The mean of a search's means over the generations from..to - 1; if there are none, the
 * point that it last started from. */
static void
mean_over(const struct learn_trainer *t, const struct learn_search *s, uint64_t from,
          uint64_t to, double *point)
{
    for (size_t i = 0; i < t->n; i++) {
        double sum = 0;
        for (uint64_t g = from; g < to; g++)
            sum += s->means[g * t->n + i];
        point[i] = from < to ? sum / (double)(to - from) : s->start[i];
    }
}

/* Sorts the candidates of each expert by value, the best first (selection sort). As the
 * mean of a search is its first candidate, the others then decide by their best ones. */
static void
sort_points(struct learn_trainer *t, double *points, uint32_t n)
{
    for (uint32_t i = 0; i < t->nsearches; i++) {
        struct learn_search *s = &t->search[i];
        double *mine = points + i * ENDS * t->n;
        for (uint32_t first = 0; first < n; first++) {
            uint32_t best = first;
            for (uint32_t k = first + 1; k < n; k++)
                if (s->value[k] < s->value[best])
                    best = k;
            for (size_t j = 0; best != first && j < t->n; j++) {
                double point = mine[first * t->n + j];
                mine[first * t->n + j] = mine[best * t->n + j];
                mine[best * t->n + j] = point;
            }
            s->value[best] = s->value[first];
        }
    }
}

/* Sets the weights of each expert to its best candidate, or to the first if they are not
 * compared. */
static bool
end_searches(struct learn_trainer *t, bool compared, struct rec_error *err)
{
    uint64_t g = t->generation;
    double *points = malloc(t->nsearches * ENDS * t->n * sizeof *points);
    bool ok = points || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < t->nsearches; i++) {
        double *point = points + i * ENDS * t->n;
        t->search[i].points = t->search[i].mean = point;
        t->search[i].rests = false;
        mean_over(t, &t->search[i], g - (g + 2) / 3, g, point);
        /* Window 0 is taken as empty: its candidate is what the search last started
         * from. */
        for (uint64_t w = 0; w < WINDOWS; w++)
            mean_over(t, &t->search[i], g * w / WINDOWS, w ? g * (w + 1) / WINDOWS : 0,
                      point + (w + 1) * t->n);
        memcpy(point + (WINDOWS + 1) * t->n, t->search[i].first, t->n * sizeof *point);
    }
    if (compared && (ok = ok && learn_judge(t, ENDS, EPISODES_PER_CANDIDATE, err)))
        sort_points(t, points, ENDS);
    t->episodes += EPISODES_PER_CANDIDATE;
    t->tail = true;
    if (compared && (ok = ok && learn_judge(t, FINALISTS, t->options->final, err)))
        sort_points(t, points, FINALISTS);
    for (uint32_t i = 0; ok && i < t->nsearches; i++)
        learn_set_weights(t, t->search[i].points, t->search[i].expert->weight);
    free(points);
    return ok;
}

uint64_t
learn_seeds(const struct learn_options *options, uint64_t generations)
{
    /* Each generation begins one seed after the last; most episodes compare the ends. */
    return generations + EPISODES_PER_CANDIDATE + options->final;
}

/* ---- the whole ----------------------------------------------------------- */

/* Returns false. */
static bool
free_worker(const struct learn_trainer *t, struct learn_worker *w)
{
    for (uint32_t i = 0; w->course && i < t->options->nworlds; i++)
        learn_course_free(w->course[i]);
    free(w->course);
    alloc_scorer_free(w->scorer);
    return false;
}

static bool
start_workers(struct learn_trainer *t, struct rec_error *err)
{
    for (; t->nworkers < t->options->threads; t->nworkers++) {
        struct learn_worker *w = &t->worker[t->nworkers];
        w->trainer = t;
        w->choosing.chooser = alloc_chooser_find(rec_str("learned"));
        if (!(w->scorer = alloc_scorer_new(t->result->units, t->nsearches, err)))
            return false;
        w->choosing.self = w->scorer;
        w->course = calloc(t->options->nworlds, sizeof *w->course);
        for (uint32_t i = 0; w->course && i < t->options->nworlds; i++) {
            struct learn_course_options course = t->options->worlds[i].course;
            course.admission.choosing = &w->choosing;
            w->course[i] = learn_course_new(&course, t->options->worlds[i].store, err);
            if (!w->course[i])
                return free_worker(t, w);
        }
        if (!w->course) {
            rec_fail_memory(err);
            return free_worker(t, w);
        }
    }
    return true;
}

/* True if a weight of a feature of the regime is not 0. `s` may be NULL. */
static bool
has_regime(const struct alloc_scorer *s)
{
    for (uint32_t e = 0; s && e < s->nexperts; e++)
        for (size_t i = 0; i < alloc_scorer_size(s->units); i++) {
            size_t k = i < ALLOC_FEATURES ? i : (i - ALLOC_FEATURES) % UNIT;
            if (k < ALLOC_FEATURES && alloc_features[k].regime &&
                s->expert[e].weight[i] != 0)
                return true;
        }
    return false;
}

/*
 * Chooses the coordinates. If each setting has its expert, the regime hardly changes for
 * an expert, so weights of its features are left out, unless the start has some. A weight
 * of a feature, also in a hidden unit, is measured in 1 / the spread of the feature, so
 * that a step changes the score about as much in each coordinate; the output of a hidden
 * unit is about 1.
 */
static bool
prepare(struct learn_trainer *t, const struct alloc_scorer *start, uint32_t units,
        struct rec_error *err)
{
    size_t size = alloc_scorer_size(units);
    bool all = t->options->nexperts == 1 || has_regime(start);
    t->nsearches = t->options->nexperts;
    if (!(t->result = alloc_scorer_new(units, t->nsearches, err)))
        return false;
    t->scale = malloc(size * sizeof *t->scale);
    t->place = malloc(size * sizeof *t->place);
    t->search = calloc(t->nsearches, sizeof *t->search);
    t->worker = calloc(t->options->threads, sizeof *t->worker);
    if (!t->scale || !t->place || !t->search || !t->worker)
        return rec_fail_memory(err);
    for (size_t i = 0; i < size; i++) {
        size_t k = i < ALLOC_FEATURES ? i : (i - ALLOC_FEATURES) % UNIT;
        if (!all && k < ALLOC_FEATURES && alloc_features[k].regime)
            continue;
        t->place[t->n] = i;
        t->scale[t->n++] = k < ALLOC_FEATURES ? 1 / alloc_features[k].spread : 1;
    }
    return start_workers(t, err);
}

static void
release(struct learn_trainer *t)
{
    for (uint32_t i = 0; i < t->nworkers; i++) {
        (void)free_worker(t, &t->worker[i]);
    }
    for (uint32_t i = 0; t->search && i < t->nsearches; i++) {
        learn_cma_free(t->search[i].cma);
        free(t->search[i].value);
        free(t->search[i].first);
        free(t->search[i].means);
    }
    free(t->search);
    free(t->worker);
    free(t->scale);
    free(t->place);
    free(t->blocking);
}

/* True if another generation is wanted: an expert does not rest, and generations and time
 * are left. `end` is what comparing the candidates will take, seconds. */
static bool
goes_on(const struct learn_trainer *t, double end)
{
    const struct learn_progress *progress = &t->progress;
    double last =
        progress->generation ? progress->seconds / (double)progress->generation : 0;
    return count_active(t) > 0 && t->generation < t->options->generations &&
           (t->generation == 0 || progress->seconds + last + end < t->options->seconds);
}

struct alloc_scorer *
learn_train(const struct learn_options *options, const struct alloc_scorer *start,
            uint32_t units, uint64_t *generations, bool *stopped, struct rec_error *err)
{
    struct learn_trainer t = {.options = options};
    uint64_t settled = SETTLE;
    double end = 0;
    bool ok = prepare(&t, start, start ? start->units : units, err);

    if (ok) {
        end = learn_processor_seconds();
        ok = start_searches(&t, start, err);
    }
    /* The time for the end follows from that of the episodes which chose the start. */
    if (ok)
        end = (learn_processor_seconds() - end) / (t.npoints * t.nepisodes) *
              (options->final ? ENDS * EPISODES_PER_CANDIDATE + FINALISTS * options->final
                              : 0);
    while (ok && goes_on(&t, end)) {
        if (t.nsearches > 1 && t.generation == settled) {
            ok = migrate(&t, err);
            settled *= 2;
        }
        ok = ok && breed(&t, err);
    }
    ok = ok && end_searches(&t, options->final > 0, err);
    *stopped = !ok && err->code == REC_OK;
    *generations = t.generation;
    if (*stopped && t.generation > 0)
        ok = end_searches(&t, false, err);
    for (uint32_t i = 0; ok && i < options->nworlds; i++) {
        const struct alloc_admission_options *a = &options->worlds[i].course.admission;
        ok = place_ways_add(&t.result->ways, &a->placer, a->more, a->nmore, err);
    }
    if (!ok) {
        alloc_scorer_free(t.result);
        t.result = NULL;
    }
    release(&t);
    return t.result;
}
