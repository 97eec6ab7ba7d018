/*
 * Trains what states of a small cluster are worth (value.h). Many streams of jobs are
 * played side by side; after each job of all streams the network makes a step.
 */
#include "future.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Steps of Adam, and how many answers are drawn at random. What a start has learned is
 * not to be forgotten: from there steps begin smaller. */
#define RATE_FIRST 1e-3
#define RATE_START 3e-4
#define RATE_LAST 2e-6
#define EXPLORE 0.02
#define MOMENT 0.9f
#define SQUARES 0.999f

/* The streams are shared out, and each share is played by one thread in a round. After
 * EPISODE jobs a stream begins anew on an empty cluster, as all streams of users begin:
 * where much more work arrives than the servers can do, it would never see one. */
enum {
    SHARES = 4,
    SHARE = ALLOC_VALUE_STREAMS / SHARES,
    EPISODE = 1000,
    BLIND = 8 /* every eighth stream is not told which kinds are still to come */
};

/* The worth of a state moves towards a mean of what the best answers to the next TRACE
 * jobs are worth, each LAMBDA times as heavy as the one before (Sutton and Barto, 12.1).
 * One job alone would leave most to what the network says, errors and all. */
#define LAMBDA 0.8
enum { TRACE = 16 };

/* Blocked jobs are counted beyond what is usual, which moves by this share of the error
 * in a step (Sutton and Barto, 10.3): faster than the network, else the two may swing.
 * Each world has its own: in one more jobs may be blocked than in another; the network
 * would learn that from what running jobs look like, and then think the best of answers
 * that look like those of the other world. */
#define USUAL_RATE 0.1

/* A stream. */
struct stream {
    struct lane lane;
    float *input;     /* the states after the last TRACE jobs; in struct training */
    uint32_t n, next; /* how many there are; where that after the next job goes */
    struct {
        double worth;          /* what the best answer was worth */
        bool is_refused, ends; /* was the job refused? was the answer not the best? */
    } then[TRACE];             /* the job after each state */
    bool is_blind;             /* its value is not told which kinds are still to come */
    struct rounds rounds;
};

/* Where the streams of a world are played. */
struct place {
    struct alloc_admission *admission; /* its pricer places the jobs */
    struct futures *futures;
    struct kind *kind;
    uint64_t down; /* bit s: server s is out of service */
    double error;  /* in this step: the sum over the states that were learned from */
    uint32_t nerrors;
};

struct share {
    struct training *training;
    uint32_t first;      /* of its streams */
    float *slope;        /* of the squared error by each weight; as the weights */
    struct place *place; /* of each world */
    struct value_sets *sets;
    struct rng *rng;
    bool failed; /* err says why */
    struct rec_error err;
};

struct training {
    const struct alloc_value_options *options;
    struct alloc_value *value;
    float *mean, *square; /* Adam's moments */
    float *input;         /* of all streams */
    double *usual;        /* of each world: the share of jobs that are blocked */
    struct stream *stream;
    struct share share[SHARES];
    double rate; /* of the first step */
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

/* An empty cluster becomes worth 0. A start may have counted from elsewhere, and that
 * would be forgotten slowly: an error shows only a share of 1 - discount of it. */
static void
count_from_empty(struct training *t)
{
    struct value_sets *sets = t->share[0].sets;
    struct value_state empty;
    value_empty(sets, 0, &empty);
    *value_third_bias(t->value) -= (float)value_worth(sets, &empty);
}

static bool
know_kinds(struct place *p, const struct alloc_value_world *w, struct rec_error *err)
{
    if (!(p->kind = calloc(w->nkinds, sizeof *p->kind)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < w->nkinds; i++) {
        struct graph_job job = {.id = rec_str("job"), .graphs = w->graphs[i]};
        struct rec_str rest = w->graphs[i], id;
        struct kind *kind = &p->kind[i];
        size_t room = 0;
        kind->number = i;
        while (rec_str_split(&rest, ',', &id))
            if (!rec_grow(&kind->known, &room, kind->nknown + 1, sizeof *kind->known,
                          err) ||
                !question_find(w->store, &job, id, &kind->known[kind->nknown++], err))
                return false;
        if (!futures_know(p->futures, kind, err))
            return false;
    }
    return true;
}

static bool
open_place(struct place *p, const struct alloc_value_world *w,
           const struct alloc_choosing *none, struct rec_error *err)
{
    struct alloc_admission_options options = *w->admission;
    struct pricer *pricer;
    size_t nwords;
    options.choosing = none;
    options.counted = true;
    if (!(p->admission = alloc_admission_new(&options, w->store, count, NULL, err)) ||
        !(pricer = admission_pricer(p->admission)) ||
        !(p->futures = futures_new(pricer, NULL, 1, 1, err)) || !know_kinds(p, w, err))
        return false;
    p->down = *pricer_taken(pricer, &nwords);
    return true;
}

static bool
begin_share(struct training *t, uint32_t i, const struct alloc_choosing *none,
            struct rec_error *err)
{
    const struct alloc_value_options *o = t->options;
    struct share *h = &t->share[i];
    h->training = t;
    h->first = i * SHARE;
    h->slope = calloc(value_weights(t->value), sizeof *h->slope);
    h->place = calloc(o->nworlds, sizeof *h->place);
    if (!h->slope || !h->place)
        return rec_fail_memory(err);
    if (!(h->rng = rng_new(o->seed + i, rng_stream("value/explore"), err)) ||
        !(h->sets = value_sets_new(t->value, o->world->admission->placer.net, err)))
        return false;
    for (uint32_t k = 0; k < o->nworlds; k++)
        if (!open_place(&h->place[k], &o->world[k], none, err))
            return false;
    return true;
}

static bool
begin(struct training *t, const struct alloc_choosing *none, struct rec_error *err)
{
    const struct alloc_value_options *o = t->options;
    bool goes_on;
    size_t n;
    if (!(t->value = value_start(o, &goes_on, err)))
        return false;
    if (!goes_on && o->jobs == 0)
        return rec_fail(
            err, REC_USAGE,
            "there is no value for such a cluster and such jobs to go on with");
    n = value_weights(t->value);
    t->mean = calloc(n, sizeof(float));
    t->square = calloc(n, sizeof(float));
    t->stream = calloc(ALLOC_VALUE_STREAMS, sizeof *t->stream);
    t->usual = calloc(o->nworlds, sizeof *t->usual);
    n = value_inputs(t->value);
    t->input = calloc(ALLOC_VALUE_STREAMS * n * TRACE, sizeof(float));
    if (!t->mean || !t->square || !t->stream || !t->usual || !t->input)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < ALLOC_VALUE_STREAMS; i++) {
        t->stream[i].input = t->input + i * n * TRACE;
        t->stream[i].is_blind = i % BLIND == 0;
    }
    for (uint32_t i = 0; i < SHARES; i++)
        if (!begin_share(t, i, none, err))
            return false;
    t->rate = goes_on ? RATE_START : RATE_FIRST;
    if (o->jobs > 0)
        count_from_empty(t);
    return true;
}

static void
close_place(struct place *p, const struct alloc_value_world *w)
{
    for (uint32_t i = 0; p->kind && i < w->nkinds; i++)
        free(p->kind[i].known);
    free(p->kind);
    futures_free(p->futures);
    alloc_admission_free(p->admission);
}

static void
end(struct training *t)
{
    for (uint32_t i = 0; i < SHARES; i++) {
        struct share *h = &t->share[i];
        for (uint32_t k = 0; h->place && k < t->options->nworlds; k++)
            close_place(&h->place[k], &t->options->world[k]);
        free(h->place);
        value_sets_free(h->sets);
        rng_free(h->rng);
        free(h->slope);
    }
    free(t->stream);
    free(t->usual);
    free(t->input);
    free(t->mean);
    free(t->square);
}

/* ---- the network learns -------------------------------------------------- */

static void
step_usual(struct training *t)
{
    for (uint32_t k = 0; k < t->options->nworlds; k++) {
        double error = 0, count = 0;
        for (int h = 0; h < SHARES; h++) {
            struct place *p = &t->share[h].place[k];
            error += p->error;
            count += p->nerrors;
            p->error = p->nerrors = 0;
        }
        if (count > 0)
            t->usual[k] += USUAL_RATE * error / count;
    }
}

/* A step of Adam. */
static void
step(struct training *t, double rate)
{
    float mean_left = 1 - (float)rng_pow((double)MOMENT, (double)++t->steps);
    float square_left = 1 - (float)rng_pow((double)SQUARES, (double)t->steps);
    float scale = (float)rate / mean_left, over = 1 / square_left;
    float *restrict mean = t->mean, *restrict square = t->square,
                    *restrict weight = t->value->weight;
    float *restrict slope[SHARES];
    for (int h = 0; h < SHARES; h++)
        slope[h] = t->share[h].slope;
    for (size_t i = 0, n = value_weights(t->value); i < n; i++) {
        float x = (slope[0][i] + slope[1][i]) + (slope[2][i] + slope[3][i]);
        x *= 1.0f / ALLOC_VALUE_STREAMS;
        mean[i] = MOMENT * mean[i] + (1 - MOMENT) * x;
        square[i] = SQUARES * square[i] + (1 - SQUARES) * x * x;
        weight[i] -= scale * mean[i] / (sqrtf(square[i] * over) + 1e-8f);
        slope[0][i] = slope[1][i] = slope[2][i] = slope[3][i] = 0;
    }
    step_usual(t);
    for (int h = 0; h < SHARES; h++)
        value_sets_forget(t->share[h].sets);
}

static void
note_servers(const struct value_sets *sets, float *noted, uint64_t taken, double seconds)
{
    float input[VALUE_SCALES];
    value_server(sets, seconds, input);
    for (; taken; taken &= taken - 1)
        memcpy(noted + __builtin_ctzll(taken) * VALUE_SCALES, input, sizeof input);
}

/* Notes the inputs of a state. */
static void
note(const struct share *h, struct stream *s, double now, uint32_t left,
     const struct value_state *state)
{
    const struct alloc_value *v = h->training->value;
    uint64_t down = s->lane.busy;
    float *noted = s->input + (size_t)s->next * value_inputs(v);
    memset(noted, 0, value_inputs(v) * sizeof *noted);
    for (uint32_t i = 0; i < s->lane.nstays; i++) {
        const struct stay *stay = &s->lane.stay[i];
        note_servers(h->sets, noted, stay->taken, stay->finish - now);
        down &= ~stay->taken;
    }
    note_servers(h->sets, noted, down, INFINITY);
    value_kinds(v, left, noted + value_kinds_at(v));
    value_blocks(h->sets, state, noted + v->servers * VALUE_SCALES);
    s->next = (s->next + 1) % TRACE;
    s->n += s->n < TRACE;
}

/* Does a stream begin? The streams take turns, so that each step learns from states of
 * all parts of an episode. */
static bool
begins(const struct training *t, uint32_t stream)
{
    uint64_t before = (uint64_t)stream * EPISODE / ALLOC_VALUE_STREAMS;
    return t->steps == 0 || (t->steps + before) % EPISODE == 0;
}

/* Notes how a job was decided in the last state, and learns what the oldest is worth. A
 * mean must not go beyond an answer that was not the best. */
static void
follow(struct share *h, uint32_t stream, double worth, bool is_refused, bool ends)
{
    const struct alloc_value *v = h->training->value;
    struct stream *s = &h->training->stream[stream];
    uint32_t world = stream % h->training->options->nworlds;
    struct place *p = &h->place[world];
    double usual = h->training->usual[world], mean;
    uint32_t at = (s->next + TRACE - 1) % TRACE;
    if (s->n == 0)
        return;
    mean = worth += usual;
    s->then[at].worth = worth;
    s->then[at].is_refused = is_refused;
    s->then[at].ends = ends;
    if (s->n < TRACE)
        return;
    for (uint32_t i = 1; i < TRACE; i++) {
        at = (at + TRACE - 1) % TRACE;
        if (s->then[at].ends)
            mean = s->then[at].worth;
        else
            mean = (1 - LAMBDA) * s->then[at].worth +
                   LAMBDA * (v->discount * mean - s->then[at].is_refused + usual);
    }
    p->error +=
        value_slope(h->sets, s->input + (size_t)at * value_inputs(v), mean, h->slope);
    p->nerrors++;
}

/* The next job of a stream. */
static bool
play(struct share *h, uint32_t stream, double explore)
{
    const struct alloc_value_options *o = h->training->options;
    const struct alloc_value_world *w = &o->world[stream % o->nworlds];
    const struct place *p = &h->place[stream % o->nworlds];
    struct stream *s = &h->training->stream[stream];
    const struct value_option *option;
    struct value_state state;
    struct graph_job job;
    uint32_t kind, n, chosen, best, left = 0;
    double worth;
    if (!o->next(o->context, stream, &job, &kind, &h->err))
        return false;
    if (begins(h->training, stream)) {
        s->lane = (struct lane){.busy = p->down};
        s->n = 0;
    }
    lane_pass(&s->lane, job.arrival);
    if (!futures_options(p->futures, &s->lane, &p->kind[kind], job.steps, job.deadline,
                         &option, &n, &h->err))
        return false;
    value_sets_work(h->sets, w->work);
    rounds_arrive(&s->rounds, kind, w->sequential[kind]);
    if (!s->is_blind)
        left = rounds_left(&s->rounds);
    lane_look(&s->lane, job.arrival, left, h->sets, &state);
    chosen = value_choose(h->sets, &state, option, n, &worth);
    best = chosen;
    if (rng_uniform(h->rng) < explore)
        chosen = rng_below(h->rng, n + 1);
    follow(h, stream, worth, chosen == n, chosen != best);
    if (chosen < n) {
        lane_occupy(&s->lane, option[chosen].taken, job.arrival + option[chosen].seconds);
        value_add(h->sets, &state, option[chosen].taken, option[chosen].seconds);
    }
    note(h, s, job.arrival, left, &state);
    return true;
}

/* ---- rounds -------------------------------------------------------------- */

/* Threads take the shares of a round one after another. Who starts the rounds takes
 * shares, too, so that all is done if no other thread can be had. */
struct crew {
    struct training *training;
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    uint32_t next, left; /* shares: the next to be taken, and how many are not done */
    double explore;      /* of this round */
    bool over;           /* no round comes */
};

/* Plays a share, with the lock held before and after. */
static void
take(struct crew *c)
{
    struct share *h = &c->training->share[c->next++];
    double explore = c->explore;
    pthread_mutex_unlock(&c->lock);
    for (uint32_t s = h->first; !h->failed && s < h->first + SHARE; s++)
        h->failed = !play(h, s, explore);
    pthread_mutex_lock(&c->lock);
    if (--c->left == 0)
        pthread_cond_signal(&c->ended);
}

static void *
help(void *context)
{
    struct crew *c = context;
    pthread_mutex_lock(&c->lock);
    while (!c->over)
        if (c->next < SHARES)
            take(c);
        else
            pthread_cond_wait(&c->begun, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool
play_round(struct crew *c, double explore, struct rec_error *err)
{
    pthread_mutex_lock(&c->lock);
    c->explore = explore;
    c->next = 0;
    c->left = SHARES;
    pthread_cond_broadcast(&c->begun);
    while (c->next < SHARES)
        take(c);
    while (c->left)
        pthread_cond_wait(&c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < SHARES; i++)
        if (c->training->share[i].failed) {
            *err = c->training->share[i].err;
            return false;
        }
    return true;
}

static bool
train(struct training *t, struct rec_error *err)
{
    struct crew c = {.training = t,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .begun = PTHREAD_COND_INITIALIZER,
                     .ended = PTHREAD_COND_INITIALIZER,
                     .next = SHARES};
    const struct alloc_value_options *o = t->options;
    uint64_t rounds = o->jobs / ALLOC_VALUE_STREAMS;
    pthread_t thread[SHARES];
    uint32_t nthreads = 1; /* with this one */
    bool ok = true;
    for (; nthreads < o->threads && nthreads < SHARES; nthreads++)
        if (pthread_create(&thread[nthreads], NULL, help, &c))
            break;
    for (uint64_t i = 0; ok && i < rounds; i++) {
        double done = (double)i / (double)rounds;
        if (o->stop && o->stop()) {
            *err = (struct rec_error){.code = REC_OK};
            ok = false;
            break;
        }
        ok = play_round(&c, EXPLORE * (1 - done), err);
        if (ok)
            step(t, t->rate * rng_pow(RATE_LAST / t->rate, done));
    }
    pthread_mutex_lock(&c.lock);
    c.over = true;
    pthread_cond_broadcast(&c.begun);
    pthread_mutex_unlock(&c.lock);
    for (uint32_t i = 1; i < nthreads; i++)
        pthread_join(thread[i], NULL);
    value_round(t->value);
    t->value->margin = !isnan(o->margin) ? o->margin : o->start ? o->start->margin : 0;
    return ok;
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
