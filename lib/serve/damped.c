/*
 * The tuner's damped rule: serve.h says what it does, and why. Here is how a rate comes
 * of a window: the most that should arrive in w seconds at the rate r is
 *
 *     E(r) = r w + spread sqrt(r / r0),
 *
 * so n arrivals say that the rate is at least that r with E(r) = n, a quadratic equation
 * in sqrt(r / r0).
 */
#include "tuning.h"

#include "rampipe/random.h"

static uint32_t
max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t
max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Rates are steps of this factor from the planned one, so that a rate that hardly changes
 * changes nothing. */
#define STEP SERVE_STEP

/* The recent past is so many seconds, a short one and a long one; it is looked at every
 * EVERY seconds while nothing changes. */
enum { SHORT = 10, LONG = 30, EVERY = 5 };

/* The nearest of the steps. */
static double
nearest_step(const struct serve_tuner *tuner, double rate)
{
    double n = rate > 0 ? round(rng_log(rate / tuner->rate) / rng_log(STEP)) : -1000;
    return tuner->rate * rng_pow(STEP, fmax(n, -1000));
}

/* The most that should arrive in a window at a rate. */
static double
most_at(const struct serve_tuner *tuner, const struct tuner_window *window, double rate)
{
    return rate * window->seconds + window->spread * sqrt(rate / tuner->rate);
}

/* The rate of n arrivals in a window, with half of the spread: with x = sqrt(r / r0),
 * r0 w x^2 + spread / 2 x = n. */
static double
rate_of(const struct serve_tuner *tuner, const struct tuner_window *window, uint64_t n)
{
    double mean = tuner->rate * window->seconds;
    double sp = window->spread / 2;
    double x = 2 * (double)n / (sp + sqrt(sp * sp + 4 * mean * (double)n));
    return tuner->rate * x * x;
}

/* The highest rate that n arrivals in so many seconds may come of: half of the noise,
 * which is that of the widest window of the envelope that is not longer, made them fewer.
 * With x = sqrt(r / r0): r0 w x^2 - noise x = n. */
static double
highest_rate(const struct serve_tuner *tuner, double seconds, double n)
{
    const struct tuner_window *window = &tuner->window[0];
    double mean = tuner->rate * seconds, noise, x;
    for (size_t i = 1; i < tuner->nwindows && tuner->window[i].seconds <= seconds; i++)
        window = &tuner->window[i];
    noise = window->spread / 2 * sqrt(seconds / window->seconds);
    x = (noise + sqrt(noise * noise + 4 * mean * n)) / (2 * mean);
    return tuner->rate * x * x;
}

/* How a stage is to be run. */
struct setting {
    uint32_t replicas, batch;
};

/* Above the planned rate rungs say it; beyond the last, and where there are none,
 * replicas grow with the rate. */
static struct setting
find_setting(const struct serve_tuner *tuner, uint32_t s, double rate)
{
    const struct serve_pipeline *p = tuner->pipeline;
    const struct tuned *stage = &tuner->stage[s];
    struct setting setting = {stage->planned, stage->small};
    double of = tuner->rate, x = rate / tuner->rate;
    if (x <= 1 + ROUNDING) {
        double spare = fmax(0, stage->planned - stage->offered);
        uint32_t n = tuner_round_up(stage->offered * x + spare * sqrt(x));
        setting.replicas = n < stage->planned ? n : stage->planned;
        return setting;
    }
    for (size_t i = 0; i < p->nrungs && of < rate * (1 - ROUNDING); i++)
        if (p->rung[i].stage == s) {
            setting = (struct setting){p->rung[i].replicas, p->rung[i].batch};
            of = p->rung[i].rate;
        }
    if (of < rate * (1 - 1e-9))
        setting.replicas = tuner_round_up(setting.replicas * rate / of);
    return setting;
}

/* What waits when new replicas begin to work should be served within so many seconds. */
#define DRAIN 5

/* Queries/s that one replica of a stage serves with batches of so many. */
static double
speed_with(const struct serve_tuner *tuner, const struct tuned *stage, uint32_t batch)
{
    return serve_throughput(stage->profile, tuner->service, batch);
}

/* An estimate of the queries that wait at each stage: those that came, less what the
 * working replicas can serve with the batch that they take now. */
static void
flow(struct serve_tuner *tuner, double time)
{
    double dt = time - tuner->flowed;
    for (size_t s = 0; s < tuner->nstages; s++) {
        struct tuned *stage = &tuner->stage[s];
        double served;
        if (stage->planned == 0)
            continue;
        served = stage->working * speed_with(tuner, stage, stage->batch) * dt;
        stage->backlog = fmax(0, stage->backlog + stage->load / tuner->rate - served);
    }
    tuner->flowed = time;
}

/* Replicas are for `rate` now; half a step above it is time for more. */
static void
meet(struct serve_tuner *tuner, double rate)
{
    tuner->met = rate;
    for (size_t i = 0; i < tuner->nwindows; i++) {
        struct tuner_window *window = &tuner->window[i];
        double n = floor(most_at(tuner, window, rate * sqrt(STEP) * tuner->unsure));
        window->limit = (uint64_t)fmin(n, 0x1p63);
    }
}

static void
open_rule(struct serve_tuner *tuner)
{
    tuner->unsure = fmax(1, tuner->pipeline->carried / tuner->rate);
    for (size_t i = 0; i < tuner->nwindows; i++) {
        struct tuner_window *window = &tuner->window[i];
        window->spread =
            1.25 * fmax(0, (double)window->most - tuner->rate * window->seconds);
    }
    meet(tuner, tuner->rate);
}

/* What arrived in the last seconds, a second. */
static double
recent(const struct serve_tuner *tuner, double time, double seconds)
{
    return (double)(tuner->arrivals - serve_tuner_since(tuner, time, seconds)) / seconds;
}

static bool
scale_up(struct serve_tuner *tuner, double rate, double time, struct rec_error *err)
{
    double due = tuner_after(time, tuner->tuning.activation);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        const struct tuned *stage = &tuner->stage[s];
        if (stage->planned == 0)
            continue;
        struct setting setting = find_setting(tuner, s, rate);
        double comes = stage->load * rate / tuner->rate; /* queries/s */
        double now = stage->working * speed_with(tuner, stage, stage->batch);
        double then = speed_with(tuner, stage, setting.batch);
        double waits = stage->backlog + fmax(0, comes - now) * tuner->tuning.activation;
        uint32_t up =
            max32(max32(setting.replicas, tuner_round_up((comes + waits / DRAIN) / then)),
                  stage->replicas);
        if ((up > stage->replicas && !serve_tuner_order(tuner, s, up, time, due, err)) ||
            (waits > 0 && stage->batch != stage->large &&
             !serve_tuner_resize(tuner, s, stage->large, tuner_after(time, 0), err)) ||
            ((waits > 0 || setting.batch != stage->batch) &&
             !serve_tuner_resize(tuner, s, setting.batch,
                                 waits > 0 ? due + DRAIN : tuner_after(time, 0), err)))
            return false;
    }
    return true;
}

static bool
arrived(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = 0;
    flow(tuner, time);
    tuner->highest = fmax(tuner->highest, recent(tuner, time, LONG));
    for (size_t i = 0; i < tuner->nwindows; i++) {
        const struct tuner_window *window = &tuner->window[i];
        if (tuner_is_beyond(tuner, window, time))
            rate =
                fmax(rate,
                     rate_of(tuner, window,
                             tuner->arrivals -
                                 max64(tuner->counted,
                                       serve_tuner_since(tuner, time, window->seconds))));
    }
    if (rate <= tuner->met * sqrt(STEP))
        return true;
    /* A step of room: it may rise further while replicas start. */
    rate = nearest_step(tuner, rate * STEP);
    meet(tuner, rate);
    return scale_up(tuner, rate * STEP, time, err);
}

static bool
look(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = recent(tuner, time, LONG), last = recent(tuner, time, SHORT);
    double above;
    bool rises = last > rate;
    rate = nearest_step(tuner, fmax(highest_rate(tuner, LONG, rate * LONG), last));
    tuner->look = tuner_after(time, EVERY);
    if (rate >= tuner->met || rises || time - tuner->first_arrival < LONG)
        return true;
    above = rate > tuner->rate * (1 + ROUNDING) ? rate * STEP : rate;
    meet(tuner, rate);
    tuner->counted = tuner->arrivals;
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        const struct tuned *stage = &tuner->stage[s];
        if (stage->planned == 0)
            continue;
        struct setting setting = find_setting(tuner, s, above);
        if (setting.replicas < stage->replicas &&
            !serve_tuner_order(tuner, s, setting.replicas, time, time, err))
            return false;
        if (setting.batch != stage->batch &&
            !serve_tuner_resize(tuner, s, setting.batch, time, err))
            return false;
    }
    return true;
}

/* The highest rung that the rate reached, so that what a static plan costs is rather too
 * little than too much. */
static double
fixed_cost(const struct serve_tuner *tuner, uint32_t s)
{
    const struct serve_pipeline *p = tuner->pipeline;
    uint32_t hardware = p->profile[p->stage[s].config.profile].hardware;
    double cost = p->price[hardware] * tuner->stage[s].planned, last = tuner->rate;
    for (size_t i = 0; i < p->nrungs; i++) {
        if (p->rung[i].stage == s && p->rung[i].rate <= tuner->highest)
            cost = p->rung[i].fixed;
        last = fmax(last, p->rung[i].rate);
    }
    return tuner->highest < last * STEP ? cost : (double)NAN;
}

const struct tuner_rule serve_tuner_damped = {open_rule, arrived, look, fixed_cost};
