/*
 * Features of alternatives: what a choice costs, what it leaves free, and how busy the
 * cluster is. They have no units, so that a policy which was trained on one cluster can
 * be used on another of a different size, with jobs of other lengths. Exponentials and
 * logarithms are those of lib/random, which give the same bits on every machine: a choice
 * must not depend on the C library.
 */
#include "features.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { SHARES = BLOCKS_SHARES, HORIZONS = 3 }; /* features share-*; block-* and free-* */

/* The statistics of the first jobs would say little and change much. Therefore they
 * count imagined jobs, too, which came before: h() of the speed-up that these need is
 * PRIOR_NEED above 1/3, the standard deviation of their fractions is 1/5, and that of
 * the times between them is half their mean. */
enum { PRIOR_JOBS = 2 };
#define PRIOR_NEED 0.12

static const double horizons[HORIZONS] = {1, 3, 9}; /* in mean times between arrivals */
/* In sixteenths of the cluster: the blocks whose free share is a feature. */
static const uint32_t share_of[SHARES] = {1, 2, 3, 4, 8};

const struct alloc_feature alloc_features[] = {
    {"one", "1", 1, false},
    {"servers", "n / N", 0.065, false},
    {"completion", "ln(1 + t / ia) / 2", 0.18, false},
    {"work", "n t / W", 0.1, false},
    {"overhead", "n t / (sequential time * steps)", 0.08, false},
    {"left", "(f - n) / N", 0.065, false},
    {"left2", "left squared", 0.04, false},
    {"slack", "t / deadline", 0.19, false},
    {"fraction", "deadline / (sequential time * steps), at most 2", 0.3, false},
    {"size", "ln(sequential time * steps / W)", 0.8, false},
    {"load", "l", 1.3, true},
    {"load2", "l squared", 1.7, true},
    {"load-servers", "l * servers", 0.1, true},
    {"load-work", "l * work", 0.15, true},
    {"load-overhead", "l * overhead", 0.12, true},
    {"load-left", "l * left", 0.1, true},
    {"load-size", "l * size", 1, true},
    {"widest", "1 if no alternative that can start has more servers, else 0", 0.5, false},
    {"narrowest", "1 if no alternative that can start has fewer servers, else 0", 0.5,
     false},
    {"block", "h(the largest degree that would still have a free block)", 0.1, false},
    {"load-block", "l * block", 0.15, true},
    {"share-1", "share of the blocks of about N/16 servers that would be free", 0.05,
     false},
    {"share-2", "share of the blocks of about 2N/16 servers that would be free", 0.04,
     false},
    {"share-3", "share of the blocks of about 3N/16 servers that would be free", 0.03,
     false},
    {"share-4", "share of the blocks of about 4N/16 servers that would be free", 0.03,
     false},
    {"share-8", "share of the blocks of about 8N/16 servers that would be free", 0.03,
     false},
    {"block-1", "block, after all jobs that end within ia have ended", 0.07, false},
    {"block-3", "block, after all jobs that end within 3 ia have ended", 0.05, false},
    {"block-9", "block, after all jobs that end within 9 ia have ended", 0.06, false},
    {"free-1", "(free servers) / N, after all jobs that end within ia have ended", 0.06,
     false},
    {"free-3", "(free servers) / N, after all jobs that end within 3 ia have ended", 0.05,
     false},
    {"free-9", "(free servers) / N, after all jobs that end within 9 ia have ended", 0.04,
     false},
    {"ending", "(servers of running jobs that end within ia) / N, without this job", 0.1,
     false},
    {"remaining",
     "ln(1 + (mean remaining time of running jobs) / ia) / 2; 0 if none runs", 0.15,
     false},
    {"outlast", "(servers of jobs that would end after this one) / N", 0.1, false},
    {"full", "1 - f / N", 0.2, false},
    {"height", "h(n)", 0.15, false},
    {"height2", "height squared", 0.15, false},
    {"load-height", "l * height", 0.22, true},
    {"load-height2", "l * height2", 0.22, true},
    {"need",
     "(0.24 + sum over the jobs so far of (h(needed speed-up) - 1/3)) / (jobs + 2)", 0.08,
     true},
    {"need-height", "need * height", 0.03, true},
    {"need-height2", "need * height2", 0.02, true},
    {"spread",
     "s - 0.2, where s^2 = (D + 2/25) / (jobs + 2), and D is the sum over the jobs so "
     "far of (fraction - mean fraction)^2",
     0.06, true},
    {"spread-height", "spread * height", 0.03, true},
    {"spread-height2", "spread * height2", 0.02, true},
    {"variation",
     "v - 1, where v^2 = (Q + 2.5) / (G + 2) - 1, and Q is the sum over the G times "
     "between jobs of (time / mean time)^2; v is at most 10, and 1/2 if G is 0",
     0.4, true},
    {NULL, NULL, 0, false}};

_Static_assert(sizeof alloc_features / sizeof *alloc_features == ALLOC_FEATURES + 1,
               "as many features as alloc.h says");

const struct alloc_regime alloc_regime[ALLOC_REGIME] = {
    {ALLOC_LOAD, 0.6}, {ALLOC_NEED, 0.08}, {ALLOC_SPREAD, 0.06}, {ALLOC_VARIATION, 0.4}};

struct features *
features_new(const struct net *net, struct rec_error *err)
{
    struct features *f = calloc(1, sizeof *f);
    if (!f) {
        rec_fail_memory(err);
        return NULL;
    }
    f->nservers = net_servers(net);
    f->when = calloc(f->nservers, sizeof *f->when);
    f->taken = calloc(f->nservers, sizeof *f->taken);
    f->h = calloc(f->nservers + 1, sizeof *f->h);
    if (!f->when || !f->taken || !f->h)
        rec_fail_memory(err);
    else if (blocks_init(&f->blocks, net, err)) {
        for (uint32_t n = 0; n <= f->nservers; n++)
            f->h[n] = rng_log1p(n) / rng_log1p(f->nservers);
        for (uint32_t d = 0; d < f->blocks.ndegrees; d++)
            f->height[d + 1] = f->h[f->blocks.degree[d]];
        /* Not all degrees are valid: take the nearest one to each size. */
        for (int i = 0; i < SHARES; i++) {
            double aim = f->nservers * share_of[i] / 16.;
            for (uint32_t d = 0; d < f->blocks.ndegrees; d++)
                if (fabs(f->blocks.degree[d] - aim) <
                    fabs(f->blocks.degree[f->blocks.share[i]] - aim))
                    f->blocks.share[i] = d;
        }
        return f;
    }
    features_free(f);
    return NULL;
}

void
features_free(struct features *f)
{
    if (!f)
        return;
    blocks_free(&f->blocks);
    free(f->when);
    free(f->h);
    free(f->taken);
    free(f);
}

/* The feature "fraction". The limit keeps jobs without a deadline from being infinite. */
static double
fraction_of(double deadline, double work)
{
    return fmin(deadline / fmax(work, DBL_MIN), 2);
}

/* h() of the speed-up over one server that just meets the deadline, at most N. */
static double
need_of(const struct features *f, double deadline, double work)
{
    double speed_up = fmin(fmax(work, DBL_MIN) / deadline, f->nservers);
    return rng_log1p(speed_up) / rng_log1p(f->nservers);
}

void
features_arrive(struct features *f, const struct graph_job *job, double work)
{
    struct arrivals *so_far = &f->arrivals;
    double fraction = fraction_of(job->deadline, work), gap;
    if (so_far->n++ == 0)
        so_far->first = so_far->last = job->arrival;
    gap = job->arrival - so_far->last;
    so_far->last = job->arrival;
    so_far->work += work;
    so_far->fraction += fraction;
    so_far->fraction2 += fraction * fraction;
    so_far->needed += need_of(f, job->deadline, work);
    so_far->gap2 += gap * gap;
    rounds_arrive(&f->rounds, rec_hash(job->graphs), work / job->steps);
}

void
features_forget(struct features *f)
{
    f->arrivals = (struct arrivals){0};
    f->rounds = (struct rounds){0};
}

void
features_remember(struct features *f, const struct features *from)
{
    f->arrivals = from->arrivals;
    f->rounds = from->rounds;
}

/* ---- the cluster, once a decision ---------------------------------------- */

/* The coefficient of variation of the times between arrivals: 1 for a Poisson process,
 * less for a regular one, more for bursts. */
static double
variation_of(const struct arrivals *so_far)
{
    double n = (double)so_far->n - 1, mean = (so_far->last - so_far->first) / n;
    if (!(n > 0 && mean > 0))
        return 0.5;
    return fmin(
        /* mean square of the gaps / squared mean, less 1; 1.25 = 1 + 1/2^2 is imagined */
        sqrt(fmax((so_far->gap2 / mean / mean + 1.25 * PRIOR_JOBS) / (n + PRIOR_JOBS) - 1,
                  0)),
        10);
}

/* The features of the regime, from the sums over the arrivals. */
static void
look_at_load(struct features *f)
{
    const struct arrivals *so_far = &f->arrivals;
    double even, n = fmax((double)so_far->n, 1), mean = so_far->fraction / n, deviation;
    f->mean_work = so_far->work > 0 ? so_far->work / n : 1;
    f->need = (so_far->needed - n / 3 + PRIOR_JOBS * PRIOR_NEED) / (n + PRIOR_JOBS);
    deviation = fmax(so_far->fraction2 - n * mean * mean, 0);
    f->spread = sqrt((deviation + PRIOR_JOBS * 0.04) / (n + PRIOR_JOBS)) - 0.2;
    f->variation = variation_of(so_far) - 1;
    /* If a job came in each `even` seconds, its work would keep all servers busy. */
    even = f->mean_work / f->nservers;
    f->interarrival = so_far->n > 1 ? (so_far->last - so_far->first) / (n - 1) : even;
    f->interarrival = fmin(fmax(f->interarrival, even * rng_exp(-5)), even * rng_exp(5));
    f->load = rng_log(even / f->interarrival) / 2;
}

void
features_regime(struct features *f, double value[ALLOC_REGIME])
{
    look_at_load(f);
    value[0] = f->load;
    value[1] = f->need;
    value[2] = f->spread;
    value[3] = f->variation;
}

void
features_begin(const struct features *f, struct features_job *job)
{
    job->work = fmax(job->work, f->mean_work * 1e-9);
    job->size = rng_log(job->work / f->mean_work);
}

/* When each server is free, seconds from now. Servers that are taken by no job are out of
 * service. */
static void
set_times(struct features *f, const uint64_t *taken)
{
    for (uint32_t s = 0; s < f->nservers; s++)
        f->when[s] = taken[s / 64] >> s % 64 & 1 ? (double)INFINITY : 0;
    for (size_t r = 0; r < f->nrunning; r++)
        for (uint32_t w = 0; f->running[r].runs && w <= (f->nservers - 1) / 64; w++)
            for (uint64_t left = f->running[r].taken[w]; left; left &= left - 1)
                f->when[w * 64 + (uint32_t)__builtin_ctzll(left)] =
                    f->running[r].finish - f->now;
    blocks_set(&f->blocks, f->when);
}

void
features_look(struct features *f, const uint64_t *taken, double now,
              const struct running *running, size_t nrunning)
{
    bool small = blocks_small(&f->blocks);
    double left = 0;
    uint32_t jobs = 0;
    look_at_load(f);
    f->nfree = f->nservers;
    for (uint32_t w = 0; w <= (f->nservers - 1) / 64; w++)
        f->nfree -= (uint32_t)__builtin_popcountll(taken[w]);
    f->now = now;
    f->running = running;
    f->nrunning = nrunning;
    memset(f->ending, 0, sizeof f->ending);
    for (int h = 0; h < HORIZONS; h++)
        f->within[h] = horizons[h] * f->interarrival;
    for (int h = 0; h <= HORIZONS; h++)
        f->busy[h] = taken[0];
    for (size_t r = 0; r < nrunning; r++) {
        double more = running[r].finish - now;
        if (!running[r].runs)
            continue;
        jobs++;
        left += more;
        for (int h = 0; h < HORIZONS; h++)
            if (more <= f->within[h]) {
                f->ending[h] += running[r].nservers;
                f->busy[h + 1] &= ~running[r].taken[0];
            }
    }
    f->remaining = jobs ? rng_log1p(left / jobs / f->interarrival) / 2 : 0;
    if (!small)
        set_times(f, taken);
}

/* ---- an alternative ------------------------------------------------------ */

/* How many servers belong to jobs that end after `finish`. */
static double
outlasting(const struct features *f, double finish)
{
    uint32_t n = 0;
    for (size_t r = 0; r < f->nrunning; r++)
        if (f->running[r].runs && f->running[r].finish > finish)
            n += f->running[r].nservers;
    return n;
}

/* fill_blocks() for more than 64 servers. */
static void
fill_large(struct features *f, const struct alloc_alternative *a, double *x)
{
    struct taken taken = {f->taken, 0};
    static const struct taken none;
    uint32_t words = (f->nservers - 1) / 64 + 1;
    for (uint32_t w = 0; w < words; w++) {
        taken.mask |= a->taken[w];
        for (uint64_t left = a->taken[w]; left; left &= left - 1)
            f->taken[w * 64 + (uint32_t)__builtin_ctzll(left)] = true;
    }
    x[ALLOC_BLOCK] = f->height[blocks_largest(&f->blocks, 0, &taken)];
    for (int i = 0; i < SHARES; i++)
        x[ALLOC_SHARE + i] = blocks_count(&f->blocks, f->blocks.share[i], &taken);
    for (int h = 0; h < HORIZONS; h++)
        x[ALLOC_BLOCK_LATER + h] = f->height[blocks_largest(
            &f->blocks, f->within[h],
            a->finish - f->now <= f->within[h] ? &none : &taken)];
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t left = a->taken[w]; left; left &= left - 1)
            f->taken[w * 64 + (uint32_t)__builtin_ctzll(left)] = false;
}

/*
 * The features of what would be free after the alternative has started, now and at the
 * horizons. At a horizon the alternative has given its servers back if it has completed
 * by then.
 */
static void
fill_blocks(struct features *f, const struct alloc_alternative *a, double *x)
{
    const struct blocks *b = &f->blocks;
    bool small = blocks_small(b);
    if (!small)
        fill_large(f, a, x);
    else {
        const struct view *view = blocks_view(&f->blocks, f->busy[0] | a->taken[0]);
        x[ALLOC_BLOCK] = f->height[view->largest];
        for (int i = 0; i < SHARES; i++)
            x[ALLOC_SHARE + i] = view->n[i];
    }
    for (int i = 0; i < SHARES; i++)
        x[ALLOC_SHARE + i] /= b->first[b->share[i] + 1] - b->first[b->share[i]];
    for (int h = 0; h < HORIZONS; h++) {
        bool ends = a->finish - f->now <= f->within[h];
        if (small)
            x[ALLOC_BLOCK_LATER + h] =
                f->height[blocks_view(&f->blocks,
                                      f->busy[h + 1] | (ends ? 0 : a->taken[0]))
                              ->largest];
        x[ALLOC_FREE_LATER + h] =
            (f->nfree - (ends ? 0 : a->nservers) + f->ending[h]) / (double)f->nservers;
    }
}

void
features_of(struct features *f, const struct features_job *job,
            const struct alloc_alternative *a, double x[ALLOC_FEATURES])
{
    double N = f->nservers, n = a->nservers, l = f->load;
    double t = a->finish - job->arrival;
    x[ALLOC_ONE] = 1;
    x[ALLOC_SERVERS] = n / N;
    x[ALLOC_COMPLETION] = rng_log1p(t / f->interarrival) / 2;
    x[ALLOC_WORK] = n * t / f->mean_work;
    x[ALLOC_OVERHEAD] = n * t / job->work;
    x[ALLOC_LEFT] = (f->nfree - n) / N;
    x[ALLOC_LEFT2] = x[ALLOC_LEFT] * x[ALLOC_LEFT];
    x[ALLOC_SLACK] = job->deadline > 0 ? t / job->deadline : 0;
    x[ALLOC_FRACTION] = fraction_of(job->deadline, job->work);
    x[ALLOC_SIZE] = job->size;
    x[ALLOC_LOAD] = l;
    x[ALLOC_LOAD2] = l * l;
    x[ALLOC_LOAD_SERVERS] = l * x[ALLOC_SERVERS];
    x[ALLOC_LOAD_WORK] = l * x[ALLOC_WORK];
    x[ALLOC_LOAD_OVERHEAD] = l * x[ALLOC_OVERHEAD];
    x[ALLOC_LOAD_LEFT] = l * x[ALLOC_LEFT];
    x[ALLOC_LOAD_SIZE] = l * x[ALLOC_SIZE];
    x[ALLOC_WIDEST] = a->nservers == job->widest;
    x[ALLOC_NARROWEST] = a->nservers == job->narrowest;
    fill_blocks(f, a, x);
    x[ALLOC_LOAD_BLOCK] = l * x[ALLOC_BLOCK];
    x[ALLOC_ENDING] = f->ending[0] / N;
    x[ALLOC_REMAINING] = f->remaining;
    x[ALLOC_OUTLAST] = outlasting(f, a->finish) / N;
    x[ALLOC_FULL] = 1 - f->nfree / N;
    x[ALLOC_HEIGHT] = f->h[a->nservers];
    x[ALLOC_HEIGHT2] = x[ALLOC_HEIGHT] * x[ALLOC_HEIGHT];
    x[ALLOC_LOAD_HEIGHT] = l * x[ALLOC_HEIGHT];
    x[ALLOC_LOAD_HEIGHT2] = l * x[ALLOC_HEIGHT2];
    x[ALLOC_NEED] = f->need;
    x[ALLOC_NEED_HEIGHT] = f->need * x[ALLOC_HEIGHT];
    x[ALLOC_NEED_HEIGHT2] = f->need * x[ALLOC_HEIGHT2];
    x[ALLOC_SPREAD] = f->spread;
    x[ALLOC_SPREAD_HEIGHT] = f->spread * x[ALLOC_HEIGHT];
    x[ALLOC_SPREAD_HEIGHT2] = f->spread * x[ALLOC_HEIGHT2];
    x[ALLOC_VARIATION] = f->variation;
}
