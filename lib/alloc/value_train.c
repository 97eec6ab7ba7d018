/*
 * Trains what states of a small cluster are worth (value.h). Many streams of jobs are
 * played side by side; after each job of all streams the network makes a step.
 */
#include "future.h"

#include <math.h>
#include <stdlib.h>

/* Steps of Adam, and how many answers are drawn at random. */
#define RATE_FIRST 1e-3
#define RATE_LAST 2e-6
#define EXPLORE 0.02
#define DISCOUNT 0.99
#define MOMENT 0.9f
#define SQUARES 0.999f
/* Scales of time: the mean work of a job, divided by these. */

/* A stream. */
struct stream {
    struct lane lane;
    float *input;    /* the state after it was decided; in struct training */
    bool is_decided; /* there was one */
};

struct training {
    const struct alloc_value_options *options;
    struct alloc_value *value, slope; /* the slopes of the squared error */
    float *mean, *square;             /* Adam's moments */
    size_t nweights, ninputs;
    float *input; /* of all streams */
    struct stream *stream;
    struct alloc_admission *admission; /* its pricer places the jobs */
    struct futures *futures;
    struct kind *kind;
    struct rng *rng;
    uint64_t steps;
};

static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    (void)context;
    (void)decision;
    (void)err;
    return true;
}

/* Weights are drawn so that the sums of a layer are as large as those of the one before
 * (He et al., "Delving Deep into Rectifiers", 2015); about 60 inputs are not 0. */
static void
draw_weights(struct training *t)
{
    struct alloc_value *v = t->value;
    for (uint32_t i = 0; i < t->ninputs; i++)
        for (int j = 0; j < VALUE_FIRST; j++)
            value_first(v, i)[j] = (float)rng_normal(t->rng, sqrt(2.0 / 60));
    for (uint32_t i = 0; i < VALUE_FIRST; i++)
        for (int j = 0; j < VALUE_SECOND; j++)
            value_second(v, i)[j] = (float)rng_normal(t->rng, sqrt(2.0 / VALUE_FIRST));
    for (int j = 0; j < VALUE_SECOND; j++)
        value_third(v)[j] = (float)rng_normal(t->rng, sqrt(1.0 / VALUE_SECOND));
    *value_third_bias(v) = (float)(0.75 / (1 - v->discount));
}

static bool
know_kinds(struct training *t, struct rec_error *err)
{
    const struct alloc_value_options *o = t->options;
    if (!(t->kind = calloc(o->nkinds, sizeof *t->kind)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < o->nkinds; i++) {
        struct graph_job job = {.id = rec_str("job"), .graphs = o->graphs[i]};
        struct rec_str rest = o->graphs[i], id;
        struct kind *kind = &t->kind[i];
        size_t room = 0;
        kind->number = i;
        while (rec_str_split(&rest, ',', &id))
            if (!rec_grow(&kind->known, &room, kind->nknown + 1, sizeof *kind->known,
                          err) ||
                !question_find(o->store, &job, id, &kind->known[kind->nknown++], err))
                return false;
        if (!futures_know(t->futures, kind, err))
            return false;
    }
    return true;
}

static bool
begin(struct training *t, const struct alloc_choosing *none, struct rec_error *err)
{
    const struct alloc_value_options *o = t->options;
    struct alloc_admission_options admission = *o->admission;
    const struct net *net = admission.placer.net;
    char text[NET_TEXT_MAX];
    size_t nwords;
    net_describe(net, text);
    if (!futures_small(&admission))
        return rec_fail(err, REC_USAGE,
                        "values of states are for clusters of at most 64 servers, this "
                        "one has %u",
                        net_servers(net));
    admission.choosing = none;
    admission.counted = true;
    t->ninputs = (size_t)net_servers(net) * VALUE_SCALES;
    t->nweights = value_size(net_servers(net));
    if (!(t->value = value_new(text, net_servers(net), o->work, err)))
        return false;
    t->slope = *t->value;
    t->value->discount = DISCOUNT;
    t->slope.weight = calloc(t->nweights, sizeof(float));
    t->mean = calloc(t->nweights, sizeof(float));
    t->square = calloc(t->nweights, sizeof(float));
    t->stream = calloc(ALLOC_VALUE_STREAMS, sizeof *t->stream);
    t->input = calloc(ALLOC_VALUE_STREAMS * t->ninputs, sizeof(float));
    if (!t->slope.weight || !t->mean || !t->square || !t->stream || !t->input)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++)
        t->stream[i].input = t->input + i * t->ninputs;
    if (!(t->rng = rng_new(o->seed, rng_stream("value"), err)) ||
        !(t->admission = alloc_admission_new(&admission, o->store, count, t, err)) ||
        !(t->futures = futures_new(admission_pricer(t->admission), NULL, 1, 1, err)) ||
        !know_kinds(t, err))
        return false;
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++)
        t->stream[i].lane.busy = *pricer_taken(admission_pricer(t->admission), &nwords);
    draw_weights(t);
    return true;
}

static void
end(struct training *t)
{
    futures_free(t->futures);
    alloc_admission_free(t->admission);
    rng_free(t->rng);
    for (uint32_t i = 0; t->kind && i < t->options->nkinds; i++)
        free(t->kind[i].known);
    free(t->kind);
    free(t->stream);
    free(t->input);
    free(t->mean);
    free(t->square);
    free(t->slope.weight);
}

/* ---- the network learns -------------------------------------------------- */

static inline void
add(float *restrict to, float factor, const float *restrict from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* Adds the slopes of the squared error of a state that is worth `target`. Sums are in
 * parts, so that the compiler can make vectors of them in any order of the parts. */
static void
learn(struct training *t, const float *input, double target)
{
    enum { PARTS = 8 };
    const struct alloc_value *v = t->value;
    struct alloc_value *s = &t->slope;
    float sum[VALUE_FIRST], second[VALUE_SECOND], by_second[VALUE_SECOND],
        by_first[VALUE_FIRST], error;
    value_empty(v, sum);
    for (uint32_t i = 0; i < t->ninputs; i++)
        if (input[i] > 0)
            add(sum, input[i], value_first(v, i), VALUE_FIRST);
    error = (float)(value_worth(v, sum, second) - target);
    *value_third_bias(s) += error;
    for (int i = 0; i < VALUE_SECOND; i++) {
        value_third(s)[i] += error * second[i];
        by_second[i] = second[i] > 0 ? error * value_third(v)[i] : 0;
        value_second_bias(s)[i] += by_second[i];
    }
    for (uint32_t j = 0; j < VALUE_FIRST; j++) {
        const float *weight = value_second(v, j);
        float *slope = value_second(s, j), part[PARTS] = {0};
        by_first[j] = 0;
        if (!(sum[j] > 0))
            continue;
        add(slope, sum[j], by_second, VALUE_SECOND);
        for (int i = 0; i < VALUE_SECOND; i += PARTS)
            for (int k = 0; k < PARTS; k++)
                part[k] += by_second[i + k] * weight[i + k];
        for (int k = 0; k < PARTS; k++)
            by_first[j] += part[k];
    }
    add(value_first_bias(s), 1, by_first, VALUE_FIRST);
    for (uint32_t i = 0; i < t->ninputs; i++)
        if (input[i] > 0)
            add(value_first(s, i), input[i], by_first, VALUE_FIRST);
}

/* A step of Adam. */
static void
step(struct training *t, double rate)
{
    float mean_left = 1 - (float)rng_pow((double)MOMENT, (double)++t->steps);
    float square_left = 1 - (float)rng_pow((double)SQUARES, (double)t->steps);
    float scale = (float)rate / mean_left, over = 1 / square_left;
    float *restrict slope = t->slope.weight, *restrict mean = t->mean,
                    *restrict square = t->square, *restrict weight = t->value->weight;
    for (size_t i = 0; i < t->nweights; i++) {
        float x = slope[i] * (1.0f / ALLOC_VALUE_STREAMS);
        mean[i] = MOMENT * mean[i] + (1 - MOMENT) * x;
        square[i] = SQUARES * square[i] + (1 - SQUARES) * x * x;
        weight[i] -= scale * mean[i] / (sqrtf(square[i] * over) + 1e-8f);
        slope[i] = 0;
    }
}

static void
note_servers(const struct alloc_value *v, struct stream *s, uint64_t taken,
             double seconds)
{
    float input[VALUE_SCALES];
    value_inputs(v, seconds, input);
    for (; taken; taken &= taken - 1)
        memcpy(s->input + __builtin_ctzll(taken) * VALUE_SCALES, input, sizeof input);
}

/* Notes the inputs of a state. */
static void
note(const struct alloc_value *v, struct stream *s, size_t ninputs, double now)
{
    uint64_t down = s->lane.busy;
    memset(s->input, 0, ninputs * sizeof *s->input);
    for (uint32_t i = 0; i < s->lane.nstays; i++) {
        const struct stay *stay = &s->lane.stay[i];
        note_servers(v, s, stay->taken, stay->finish - now);
        down &= ~stay->taken;
    }
    note_servers(v, s, down, INFINITY);
}

/* The next job of a stream: what the best answer is worth, is the worth of the state
 * before. */
static bool
play(struct training *t, uint32_t stream, double explore, struct rec_error *err)
{
    const struct alloc_value_options *o = t->options;
    struct stream *s = &t->stream[stream];
    const struct value_option *option;
    struct graph_job job;
    float sum[VALUE_FIRST];
    uint32_t kind, n, chosen;
    double worth;
    if (!o->next(o->context, stream, &job, &kind, err))
        return false;
    lane_pass(&s->lane, job.arrival);
    if (!futures_options(t->futures, &s->lane, &t->kind[kind], job.steps, job.deadline,
                         &option, &n, err))
        return false;
    lane_look(&s->lane, job.arrival, t->value, NULL, sum);
    chosen = value_choose(t->value, NULL, sum, option, n, &worth);
    if (s->is_decided)
        learn(t, s->input, worth);
    if (rng_uniform(t->rng) < explore)
        chosen = rng_below(t->rng, n + 1);
    if (chosen < n)
        lane_occupy(&s->lane, option[chosen].taken, job.arrival + option[chosen].seconds);
    s->is_decided = true;
    note(t->value, s, t->ninputs, job.arrival);
    return true;
}

static bool
train(struct training *t, struct rec_error *err)
{
    uint64_t rounds = t->options->jobs / ALLOC_VALUE_STREAMS;
    for (uint64_t i = 0; i < rounds && !(t->options->stop && t->options->stop()); i++) {
        double done = (double)i / (double)rounds;
        for (uint32_t s = 0; s < ALLOC_VALUE_STREAMS; s++)
            if (!play(t, s, EXPLORE * (1 - done), err))
                return false;
        if (i > 0)
            step(t, RATE_FIRST * rng_pow(RATE_LAST / RATE_FIRST, done));
    }
    value_round(t->value);
    return true;
}

struct alloc_value *
alloc_value_train(const struct alloc_value_options *options, struct rec_error *err)
{
    struct training t = {.options = options};
    struct alloc_choosing none = {.chooser = alloc_chooser_find(rec_str("first"))};
    if (!begin(&t, &none, err) || !train(&t, err)) {
        alloc_value_free(t.value);
        t.value = NULL;
    }
    end(&t);
    return t.value;
}
