/*
 * The tuner's published rule (InferLine, section 5). It knows what each stage was planned
 * for: its arrivals `load`, queries/s; its replicas k0; and the throughput mu =
 * serve_throughput() of one of them. So it knows the stage's share of the queries, s =
 * load / rate, and its utilisation, rho = load / (k0 mu). Here `rate` is that of the
 * planned record, or else the highest load of all stages.
 *
 * Up. At every arrival, at time t: for each window of the envelope, n is the number of
 * arrivals in (t - seconds, t]. Of the windows with n > QUERIES, r is the highest n /
 * seconds. A stage needs
 *
 *     k = ceil(r s / (mu rho)) = ceil(k0 r / rate)
 *
 * replicas. Those that it does not have and has not ordered yet are ordered. They work
 * `activation` seconds later, but never at t itself.
 *
 * Down. `quiet` seconds after the first query, and after the last change (for ordered
 * replicas: after they began to work), then every 5 s while nothing changes: r is the
 * highest n / 5 of the six windows of 5 s that end now and 5, 10, ..., 25 s ago. A stage
 * needs
 *
 *     k = ceil(r s / (mu rho_max)), rho_max = max over stages of rho,
 *
 * replicas, but at least 1, and at least what the envelope calls for now. The others go
 * at once. If a query comes at the same instant, this happens before it.
 *
 * Back. Replicas were removed for a rate r. When more than 5 r queries arrive in (t - 5,
 * t], the formula for going down is used with the new rate, for up to k0 replicas, and
 * those that are missing are ordered as above. (The envelope alone would not call for
 * replicas that were planned and then removed.)
 *
 * Ours are "at least what the envelope calls for", and Back.
 */
#include "tuning.h"

/* Times in seconds. The rate of the recent past is the highest over windows of RECENT
 * within the last HORIZON; while nothing changes, it is looked at every RECENT. */
enum { RECENT = 5, HORIZON = 30 };

/* The replicas that a stage needs for `rate` queries/s at the utilisation that it was
 * planned for (Up). */
static uint32_t
needed(const struct serve_tuner *tuner, const struct tuned *stage, double rate)
{
    return tuner_round_up(stage->planned * rate / tuner->rate);
}

/* The replicas that a stage needs for `rate` queries/s at the utilisation of the busiest
 * stage (Down): at most as many as needed(). */
static uint32_t
needed_at_least(const struct serve_tuner *tuner, const struct tuned *stage, double rate)
{
    return tuner_round_up(stage->offered / tuner->busiest * rate / tuner->rate);
}

static void
open_rule(struct serve_tuner *tuner)
{
    tuner->recent =
        (struct tuner_window){.seconds = RECENT, .most = UINT64_MAX, .limit = UINT64_MAX};
}

/* The highest rate over the windows that end at `time` and hold more arrivals than was
 * planned, queries/s; 0: no window does. */
static double
exceeded(const struct serve_tuner *tuner, double time)
{
    double highest = 0;
    for (size_t i = 0; i < tuner->nwindows; i++) {
        const struct tuner_window *window = &tuner->window[i];
        uint64_t n = tuner->arrivals - serve_tuner_since(tuner, time, window->seconds);
        if (n > window->most)
            highest = fmax(highest, (double)n / window->seconds);
    }
    return highest;
}

/* Replicas were ordered for `rate`. The limits rise to what this rate brings, so that
 * arrivals below it are not looked at again. */
static void
meet(struct serve_tuner *tuner, double rate)
{
    tuner->met = rate;
    for (size_t i = 0; i < tuner->nwindows; i++) {
        struct tuner_window *window = &tuner->window[i];
        double n = floor(rate * window->seconds * (1 - ROUNDING));
        window->limit =
            n > (double)window->most ? (uint64_t)fmin(n, 0x1p63) : window->most;
    }
}

/* The most arrivals in one of the windows of length RECENT that end at `time`, at RECENT
 * before it, and so on back to HORIZON before it. */
static uint64_t
most_recent(const struct serve_tuner *tuner, double time)
{
    uint64_t most = 0, end = tuner->arrivals;
    for (int age = RECENT; age <= HORIZON; age += RECENT) {
        uint64_t begin = serve_tuner_since(tuner, time, age);
        most = end - begin > most ? end - begin : most;
        end = begin;
    }
    return most;
}

/*
 * Orders the replicas that are missing. `rate` (Up) is above the rate that was planned
 * for, or 0; `recent` (Back) is above the rate for which replicas were removed, or 0.
 * Back gives no stage more than its planned replicas.
 */
static bool
scale_up(struct serve_tuner *tuner, double rate, double recent, double time,
         struct rec_error *err)
{
    double due = tuner_after(time, tuner->tuning.activation);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        const struct tuned *stage = &tuner->stage[s];
        uint32_t up = needed(tuner, stage, rate);
        uint32_t back = needed_at_least(tuner, stage, recent);
        back = back < stage->planned ? back : stage->planned;
        up = up > back ? up : back;
        if (stage->replicas > 0 && up > stage->replicas &&
            !serve_tuner_order(tuner, s, up, time, due, err))
            return false;
    }
    return true;
}

static bool
arrived(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    bool more = false;
    double rate = 0, recent = 0;
    for (size_t i = 0; i < tuner->nwindows; i++)
        more |= tuner_is_beyond(tuner, &tuner->window[i], time);
    if (more && (rate = exceeded(tuner, time)) > tuner->met)
        meet(tuner, rate);
    else
        rate = 0;
    if (tuner_is_beyond(tuner, &tuner->recent, time)) {
        tuner->recent.limit = tuner->arrivals - serve_tuner_since(tuner, time, RECENT);
        recent = (double)tuner->recent.limit / RECENT;
    }
    return !(rate > 0 || recent > 0) || scale_up(tuner, rate, recent, time, err);
}

static bool
look(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = exceeded(tuner, time), recent;
    uint64_t most = most_recent(tuner, time);
    bool removable = false;

    recent = (double)most / RECENT;
    tuner->look = tuner_after(time, RECENT);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        struct tuned *stage = &tuner->stage[s];
        uint32_t up = needed(tuner, stage, rate);
        uint32_t down = needed_at_least(tuner, stage, recent);
        down = up > down ? up : down;
        if (down < stage->replicas) {
            if (!serve_tuner_order(tuner, s, down, time, time, err))
                return false;
            meet(tuner, rate);
            tuner->recent.limit = most;
        }
        removable = removable || stage->replicas > 1;
    }
    if (!removable) /* every stage has one replica: look again once more are ordered */
        tuner->look = (double)INFINITY;
    return true;
}

const struct tuner_rule serve_tuner_published = {open_rule, arrived, look, NULL};
