/*
 * The tuner's damped rule, which follows an estimate of the rate of arrivals.
 *
 * Noise. For a window of w seconds the envelope has E queries at the planned rate r0,
 * queries/s (E is resampled=, of a sequence 20 times as long as the sample, or else
 * QUERIES). Let spread = 1.25 (E - r0 w); the factor leaves room for sequences that are
 * longer still. At the rate r at most
 *
 *     E(r) = r w + spread sqrt(r / r0)
 *
 * queries should arrive, since counts of equally irregular traffic vary as the root of
 * their mean. So if n arrive, the rate is at least the r for which E(r) = n, which is a
 * quadratic equation in sqrt(r / r0).
 *
 * Up. Replicas are provided for a rate, at first r0. Rates go in steps, factors of
 * SERVE_STEP. The rule orders replicas when a window holds more queries than a rate half
 * a step above the provided one explains. (Here the true r0 may be as high as carried= of
 * the planned record, as the sample may have shown too low a rate.) The new rate is
 * estimated from the window with half of the spread, and replicas are provided for the
 * next step above it; each stage then gets the setting of the rung another step above,
 * since the rate may rise while replicas start. New replicas work `activation` seconds
 * later. From an estimate of the queries that wait, and of those that come until then,
 * the rule adds replicas to serve them within 5 s; until then the stage uses its batch of
 * most throughput.
 *
 * Down. `quiet` seconds after the last change, and then every 5 s, the rate is taken as
 * the higher of two: that of the last 10 s, and that of the last 30 s with half of the
 * spread on top. If this is below the provided rate by half a step, and does not rise,
 * each stage gets the setting of the rung one step above it. Below r0 there are no rungs:
 * with a = load / mu replicas busy at r0, the stage gets a r / r0 + (k0 - a) sqrt(r / r0)
 * replicas (square-root staffing: Halfin and Whitt, Operations Research 29, 1981). The
 * steps, times and factors were chosen on the image driver, seeds 13 and 14, with a look
 * at seed 11.
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

/* Estimated rates are rounded to the planned rate times a power of this factor, so that a
 * small change of the rate changes nothing. */
#define STEP SERVE_STEP

/* Times in seconds: the two windows of the recent past whose rates decide whether fewer
 * replicas would do, and the time between two such looks. */
enum { SHORT_WINDOW = 10, LONG_WINDOW = 30, LOOK_INTERVAL = 5 };

/* The step that is nearest to a rate. No arrivals count as 1000 steps down. */
static double
nearest_step(const struct serve_tuner *tuner, double rate)
{
    double n = rate > 0 ? round(rng_log(rate / tuner->rate) / rng_log(STEP)) : -1000;
    return tuner->rate * rng_pow(STEP, fmax(n, -1000));
}

/* E(r): the most queries that should arrive in a window at a rate. */
static double
most_at(const struct serve_tuner *tuner, const struct tuner_window *window, double rate)
{
    return rate * window->seconds + window->spread * sqrt(rate / tuner->rate);
}

/* An estimate of the rate from n arrivals in a window, if half of the spread made them
 * more: with x = sqrt(r / r0), r0 w x^2 + (spread / 2) x = n. The form of the root has no
 * difference of near numbers. */
static double
rate_of(const struct serve_tuner *tuner, const struct tuner_window *window, uint64_t n)
{
    double mean = tuner->rate * window->seconds;
    double sp = window->spread / 2;
    double x = 2 * (double)n / (sp + sqrt(sp * sp + 4 * mean * (double)n));
    return tuner->rate * x * x;
}

/* An upper estimate of the rate from n arrivals in `seconds`, if half of the spread made
 * them fewer: with x = sqrt(r / r0), r0 w x^2 - noise x = n. The envelope may have no
 * window of this width; then the spread is that of its widest window that is not longer,
 * and grows with the root of the time. */
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

struct setting {
    uint32_t replicas, batch;
};

/* The setting of a stage for a rate at the pipeline. Up to the planned rate it follows
 * square-root staffing, with the planned replicas as the most. Above it, it is that of
 * the first rung that is not below the rate; beyond the last rung, and without rungs,
 * replicas grow in proportion to the rate. */
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

/* Time in which new replicas should have served the queries that wait when they begin to
 * work, seconds. */
#define DRAIN_SECONDS 5

/* The throughput of one replica of a stage with batches of up to `batch`, queries/s. */
static double
speed_with(const struct serve_tuner *tuner, const struct tuned *stage, uint32_t batch)
{
    return serve_throughput(stage->profile, tuner->service, batch);
}

/* Called at each arrival: updates the estimate of the queries that wait at each stage.
 * The arrival adds the part of a query that comes to the stage on average; since the
 * arrival before, the working replicas can have served their throughput with the present
 * batch. */
static void
flow(struct serve_tuner *tuner, double time)
{
    double dt = time - tuner->flowed;
    for (size_t s = 0; s < tuner->nstages; s++) {
        struct tuned *stage = &tuner->stage[s];
        double served;
        if (stage->planned == 0)
            continue;
        served = stage->working * stage->speed * dt;
        stage->backlog = fmax(0, stage->backlog + stage->load / tuner->rate - served);
    }
    tuner->flowed = time;
}

/* Replicas are provided for `rate` from now on. The windows' limits become what a rate
 * half a step above it explains: so that each arrival needs only a comparison. */
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

/* The rate of arrivals in the last `seconds` before `time`, queries/s. */
static double
recent(const struct serve_tuner *tuner, double time, double seconds)
{
    return (double)(tuner->arrivals - serve_tuner_since(tuner, time, seconds)) / seconds;
}

/* Orders replicas for `rate` at all stages, and more where queries wait. Where they wait,
 * the stage takes its batch of most throughput until they should be served. Never fewer
 * replicas: only look() takes them away. */
static bool
scale_up(struct serve_tuner *tuner, double rate, double time, struct rec_error *err)
{
    double due = tuner_after(time, tuner->tuning.activation);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        const struct tuned *stage = &tuner->stage[s];
        if (stage->planned == 0)
            continue;
        struct setting setting = find_setting(tuner, s, rate);
        /* queries/s: that come to the stage, that it serves now, that a replica will
         * serve */
        double comes = stage->load * rate / tuner->rate;
        double now = stage->working * stage->speed;
        double then = speed_with(tuner, stage, setting.batch);
        /* queries that will wait when the new replicas begin to work */
        double waits = stage->backlog + fmax(0, comes - now) * tuner->tuning.activation;
        uint32_t up = max32(max32(setting.replicas,
                                  tuner_round_up((comes + waits / DRAIN_SECONDS) / then)),
                            stage->replicas);
        if ((up > stage->replicas && !serve_tuner_order(tuner, s, up, time, due, err)) ||
            (waits > 0 && stage->batch != stage->large &&
             !serve_tuner_resize(tuner, s, stage->large, tuner_after(time, 0), err)) ||
            ((waits > 0 || setting.batch != stage->batch) &&
             !serve_tuner_resize(tuner, s, setting.batch,
                                 waits > 0 ? due + DRAIN_SECONDS : tuner_after(time, 0),
                                 err)))
            return false;
    }
    return true;
}

static bool
arrived(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = 0;
    flow(tuner, time);
    tuner->highest = fmax(tuner->highest, recent(tuner, time, LONG_WINDOW));
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
    /* Provide for a step more: the rate may rise further while replicas start. */
    rate = nearest_step(tuner, rate * STEP);
    meet(tuner, rate);
    return scale_up(tuner, rate * STEP, time, err);
}

static bool
look(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = recent(tuner, time, LONG_WINDOW),
           last = recent(tuner, time, SHORT_WINDOW);
    double above;
    bool rises = last > rate;
    rate = nearest_step(tuner,
                        fmax(highest_rate(tuner, LONG_WINDOW, rate * LONG_WINDOW), last));
    tuner->look = tuner_after(time, LOOK_INTERVAL);
    if (rate >= tuner->met || rises || time - tuner->first_arrival < LONG_WINDOW)
        return true;
    above = rate > tuner->rate * (1 + ROUNDING) ? rate * STEP : rate;
    meet(tuner, rate);
    /* The arrivals of the higher rate are still in the windows: they must not scale up
     * again. */
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

/* The static plan is that of the highest rung that the highest rate reached, so that its
 * cost is rather too low than too high, and the tuner's saving not overstated. Beyond the
 * last rung it is not known. */
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
