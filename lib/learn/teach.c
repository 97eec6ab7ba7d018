/* Expert iteration (learn_teach()): the teacher is asked about each job of one long
 * episode, in which ever more answers are the pupil's own. */
#include "rampipe/learn.h"

#include <math.h>
#include <stdlib.h>

/* The sizes of Adam's first and last step, and its decay rates. */
#define RATE_FIRST 1e-2
#define RATE_LAST 1e-5
#define MOMENT 0.9
#define SQUARES 0.999

/* A step follows after this number of decisions, and uses the mean of their slopes. */
enum { DECISIONS = 128 };

/* A difference in worth, in jobs, for which the better answer has e times the share. */
#define SOFT 0.1

/* Weights of the first layer that a hidden unit begins with: their size, if features
 * differ by their spread. */
#define BEGIN 0.15

/* An alternative that can start. */
struct answer {
    uint32_t number;
    double score;
    double feature[ALLOC_FEATURES]; /* in units of their spread */
};

struct pupil {
    const struct learn_lesson *lesson;
    struct rng *rng;
    uint32_t units;
    size_t nweights;
    /* As those of an expert, in units of 1 / spread; Adam's moments of their slopes. */
    double *weight, *slope, *mean, *square;
    struct answer *answer;
    double *output; /* of the hidden units, for each answer */
    double *worths;
    size_t answer_room, output_room, worth_room;
    uint64_t decided;
};

static double
dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < ALLOC_FEATURES; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Scores answer i, and notes what hidden units say. */
static void
score(struct pupil *p, uint32_t i)
{
    struct answer *a = &p->answer[i];
    const double *unit = p->weight + ALLOC_FEATURES;
    double *output = p->output + (size_t)i * p->units;
    a->score = dot(p->weight, a->feature);
    for (uint32_t u = 0; u < p->units; u++, unit += ALLOC_FEATURES + 1) {
        output[u] = rng_tanh(dot(unit, a->feature));
        a->score += unit[ALLOC_FEATURES] * output[u];
    }
}

static void
add(double *to, double factor, const double *from)
{
    for (int i = 0; i < ALLOC_FEATURES; i++)
        to[i] += factor * from[i];
}

/* Adds the slopes of the error, whose slope by the score of answer i is `by`. */
static void
add_slopes(struct pupil *p, uint32_t i, double by)
{
    const double *feature = p->answer[i].feature;
    const double *unit = p->weight + ALLOC_FEATURES;
    const double *output = p->output + (size_t)i * p->units;
    double *slope = p->slope;
    add(slope, by, feature);
    slope += ALLOC_FEATURES;
    for (uint32_t u = 0; u < p->units; u++) {
        add(slope, by * unit[ALLOC_FEATURES] * (1 - output[u] * output[u]), feature);
        slope[ALLOC_FEATURES] += by * output[u];
        unit += ALLOC_FEATURES + 1;
        slope += ALLOC_FEATURES + 1;
    }
}

static double
done(const struct pupil *p)
{
    return (double)p->decided / (double)p->lesson->jobs;
}

/* A step of Adam. */
static void
step(struct pupil *p)
{
    double steps = (double)(p->decided / DECISIONS);
    double rate = RATE_FIRST * rng_pow(RATE_LAST / RATE_FIRST, done(p));
    double scale = rate / (1 - rng_pow(MOMENT, steps));
    double over = 1 / (1 - rng_pow(SQUARES, steps));
    for (size_t i = 0; i < p->nweights; i++) {
        double x = p->slope[i] / DECISIONS;
        p->mean[i] = MOMENT * p->mean[i] + (1 - MOMENT) * x;
        p->square[i] = SQUARES * p->square[i] + (1 - SQUARES) * x * x;
        p->weight[i] -= scale * p->mean[i] / (sqrt(p->square[i] * over) + 1e-8);
        p->slope[i] = 0;
    }
}

/* The cross entropy of the shares that scores stand for, against the teacher's. Of n
 * answers; `refused` is what a refusal is worth. */
static void
learn(struct pupil *p, uint32_t n, double refused)
{
    double highest = 0, most = refused, scores, worths;
    for (uint32_t i = 0; i < n; i++) {
        highest = fmax(highest, p->answer[i].score);
        most = fmax(most, p->worths[p->answer[i].number]);
    }
    if (isinf(most)) /* the teacher's answer is not among them */
        return;
    scores = rng_exp(-highest);
    worths = rng_exp((refused - most) / SOFT);
    for (uint32_t i = 0; i < n; i++) {
        scores += rng_exp(p->answer[i].score - highest);
        worths += rng_exp((p->worths[p->answer[i].number] - most) / SOFT);
    }
    for (uint32_t i = 0; i < n; i++)
        add_slopes(p, i,
                   rng_exp(p->answer[i].score - highest) / scores -
                       rng_exp((p->worths[p->answer[i].number] - most) / SOFT) / worths);
}

/* Lists the alternatives that can start. *own is the pupil's answer. */
static bool
look(struct pupil *p, struct alloc_question *q, uint32_t *n, uint32_t *own,
     struct rec_error *err)
{
    double best = 0;
    *n = 0;
    *own = ALLOC_REFUSED;
    for (uint32_t i = 0; i < alloc_question_count(q); i++) {
        const struct alloc_alternative *tried = alloc_question_try(q, i, err);
        struct answer *a = &p->answer[*n];
        if (!tried)
            return false;
        if (tried->cause || tried->repeats)
            continue;
        if (!alloc_question_features(q, i, a->feature, err))
            return false;
        for (int k = 0; k < ALLOC_FEATURES; k++)
            a->feature[k] /= alloc_features[k].spread;
        a->number = i;
        score(p, *n);
        if (*own == ALLOC_REFUSED ? a->score >= 0 : a->score > best) {
            best = a->score;
            *own = i;
        }
        ++*n;
    }
    return true;
}

/* The answer of the teacher, and of the pupil. */
static bool
decide(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    struct pupil *p = self;
    uint32_t all = alloc_question_count(q), n, own;
    double *refused;
    if (!rec_grow(&p->answer, &p->answer_room, all, sizeof *p->answer, err) ||
        !rec_grow(&p->output, &p->output_room, (size_t)all * p->units + 1,
                  sizeof *p->output, err) ||
        !rec_grow(&p->worths, &p->worth_room, all + 1, sizeof *p->worths, err) ||
        !alloc_choosing_judge(p->lesson->teacher, q, choice, p->worths, err) ||
        !look(p, q, &n, &own, err))
        return false;
    refused = &p->worths[all];
    if (n == 0)
        *choice = ALLOC_NONE;
    else {
        double *known = *choice < all ? &p->worths[*choice] : refused;
        if (isinf(*known)) /* no more is known than the answer */
            *known = 0;
        learn(p, n, *refused);
        if (2 * done(p) > rng_uniform(p->rng))
            *choice = own;
    }
    if (++p->decided % DECISIONS == 0)
        step(p);
    return true;
}

static bool
arrive(void *self, const struct graph_job *job, struct rec_error *err)
{
    const struct alloc_choosing *teacher = ((struct pupil *)self)->lesson->teacher;
    return !teacher->chooser->arrive || teacher->chooser->arrive(teacher->self, job, err);
}

static const struct alloc_chooser chooser = {
    .name = "pupil", .observes = true, .arrive = arrive, .decide = decide};

static bool
play(struct pupil *p, struct rec_error *err)
{
    const struct learn_lesson *lesson = p->lesson;
    struct alloc_choosing choosing = {.chooser = &chooser, .self = p};
    struct learn_course_options options = lesson->world->course;
    struct learn_course *course;
    double blocking;
    bool ok;
    options.admission.choosing = &choosing;
    options.jobs = lesson->jobs;
    if (!(course = learn_course_new(&options, lesson->world->store, err)))
        return false;
    ok = learn_course_run(course, lesson->setting, lesson->seed, &blocking, err);
    learn_course_free(course);
    return ok;
}

/* What a weight of an expert is multiplied by in units of 1 / spread. */
static double
unit_of(size_t weight)
{
    size_t feature = weight < ALLOC_FEATURES
                         ? weight
                         : (weight - ALLOC_FEATURES) % (ALLOC_FEATURES + 1);
    return feature < ALLOC_FEATURES ? alloc_features[feature].spread : 1;
}

static bool
begin(struct pupil *p, const double *weight, struct rec_error *err)
{
    size_t n = p->nweights;
    p->weight = calloc(n, sizeof *p->weight);
    p->slope = calloc(n, sizeof *p->slope);
    p->mean = calloc(n, sizeof *p->mean);
    p->square = calloc(n, sizeof *p->square);
    if (!p->weight || !p->slope || !p->mean || !p->square)
        return rec_fail_memory(err);
    if (!(p->rng = rng_new(p->lesson->seed, rng_stream("teach"), err)))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool hidden = i >= ALLOC_FEATURES &&
                      (i - ALLOC_FEATURES) % (ALLOC_FEATURES + 1) != ALLOC_FEATURES;
        p->weight[i] =
            hidden && weight[i] == 0 ? rng_normal(p->rng, BEGIN) : weight[i] * unit_of(i);
    }
    return true;
}

bool
learn_teach(struct alloc_scorer *scorer, uint32_t expert,
            const struct learn_lesson *lesson, struct rec_error *err)
{
    double *weight = scorer->expert[expert].weight;
    struct pupil p = {.lesson = lesson,
                      .units = scorer->units,
                      .nweights = alloc_scorer_size(scorer->units)};
    bool ok = begin(&p, weight, err) && play(&p, err);
    for (size_t i = 0; ok && i < p.nweights; i++)
        weight[i] = p.weight[i] / unit_of(i);
    free(p.weight);
    free(p.slope);
    free(p.mean);
    free(p.square);
    free(p.answer);
    free(p.output);
    free(p.worths);
    rng_free(p.rng);
    return ok;
}
