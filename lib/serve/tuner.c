/*
 * The tuner: more replicas when more comes than was planned for, fewer when less does. What
 * it goes by is in a ring of the arrivals that the widest window holds.
 */
#include "tuner.h"

#include <math.h>
#include <stdlib.h>

/* The rate of the recent past: the highest over windows of RECENT, seconds, within HORIZON;
 * how often it is looked at while nothing changes. */
enum { RECENT = 5, HORIZON = 30 };

/* What rounding may add to a number. */
#define ROUNDING 1e-12

struct window {
    double seconds;
    uint64_t most;  /* arrivals that were planned for */
    uint64_t limit; /* arrivals, at least `most`, that are no reason to do anything now */
};

struct tuned {
    uint32_t replicas; /* with those that start; 0: the stage has no model */
    uint32_t batch;
    double planned;    /* replicas at the planned rate: with the utilisation that it was
                          planned for, */
    double busiest;    /* and with that of the busiest stage */
};

struct serve_tuner {
    struct serve_tuning tuning;
    double rate; /* that was planned for, queries/s */
    struct tuned *stage;
    size_t nstages;
    struct window *window; /* the envelope's, */
    size_t nwindows;
    struct window recent; /* and one of RECENT */
    double widest;        /* of all windows, and of HORIZON, seconds */
    double *ring;         /* of arrivals in that, seconds */
    size_t room;          /* a power of two, or 0 */
    uint64_t oldest, arrivals;
    double met;                  /* the highest rate that was scaled up for, queries/s */
    double look;                 /* when it looks next whether fewer would do, seconds */
    struct serve_change *change; /* that are due, in order of time */
    size_t first, nchanges, change_room;
};

/* After some seconds, and not at the same instant even if the number is too large for them. */
static double
after(double time, double seconds)
{
    return fmax(time + seconds, nextafter(time, (double)INFINITY));
}

/* Replicas for `rate` queries/s, where `planned` are for the planned rate. */
static uint32_t
needed(const struct serve_tuner *tuner, double planned, double rate)
{
    double n = ceil(planned * rate / tuner->rate * (1 - ROUNDING));
    return (uint32_t)fmin(fmax(n, 1), SERVE_REPLICAS_MAX);
}

/* ---- what was planned ---------------------------------------------------- */

/* How many stages' worth of replicas were planned, at which utilisation. */
static bool
open_stages(struct serve_tuner *tuner, const struct serve_pipeline *p,
            enum serve_service service, struct rec_error *err)
{
    double highest = 0, most = 0;
    for (size_t s = 0; s < p->nstages; s++) {
        const struct serve_config *config = &p->stage[s].config;
        struct tuned *stage = &tuner->stage[s];
        if (p->stage[s].model == REC_NONE)
            continue;
        if (isnan(config->load))
            return rec_fail_at(err, config->place.file, config->place.line,
                               "config of stage '%s' has no load=, what it was planned "
                               "for: plan writes it",
                               p->stage[s].name);
        stage->replicas = config->replicas;
        stage->batch = config->batch;
        stage->planned = config->replicas;
        stage->busiest = /* until all are known: replica-seconds a second */
            config->load /
            serve_throughput(&p->profile[config->profile], service, config->batch);
        highest = fmax(highest, stage->busiest / stage->planned);
        most = fmax(most, config->load);
    }
    tuner->rate = p->rate > 0 ? p->rate : most;
    for (size_t s = 0; s < p->nstages; s++)
        tuner->stage[s].busiest /= highest;
    return most > 0 || rec_fail(err, REC_DATA, "no stage was planned for any load");
}

static bool
open_windows(struct serve_tuner *tuner, const struct serve_pipeline *p,
             struct rec_error *err)
{
    size_t n = p->nwindows;
    if (n == 0)
        return rec_fail(err, REC_DATA,
                        "no envelope record says what the pipeline was planned for: plan "
                        "writes them");
    tuner->nwindows = n;
    for (size_t i = 0; i < n; i++)
        tuner->window[i] = (struct window){p->window[i].seconds, p->window[i].queries,
                                           p->window[i].queries};
    tuner->recent = (struct window){RECENT, UINT64_MAX, UINT64_MAX};
    tuner->widest = fmax(p->window[n - 1].seconds, HORIZON);
    return true;
}

struct serve_tuner *
serve_tuner_new(const struct serve_pipeline *pipeline, enum serve_service service,
                const struct serve_tuning *tuning, struct rec_error *err)
{
    struct serve_tuner *tuner = calloc(1, sizeof *tuner);
    if (!tuner) {
        rec_fail_memory(err);
        return NULL;
    }
    tuner->tuning = *tuning;
    tuner->look = (double)INFINITY;
    tuner->nstages = pipeline->nstages;
    tuner->stage = calloc(pipeline->nstages + 1, sizeof *tuner->stage);
    tuner->window = calloc(pipeline->nwindows + 1, sizeof *tuner->window);
    if (!tuner->stage || !tuner->window)
        rec_fail_memory(err);
    else if (open_windows(tuner, pipeline, err) &&
             open_stages(tuner, pipeline, service, err))
        return tuner;
    serve_tuner_free(tuner);
    return NULL;
}

void
serve_tuner_free(struct serve_tuner *tuner)
{
    if (!tuner)
        return;
    free(tuner->stage);
    free(tuner->window);
    free(tuner->ring);
    free(tuner->change);
    free(tuner);
}

/* ---- arrivals ------------------------------------------------------------ */

static double
arrival(const struct serve_tuner *tuner, uint64_t i)
{
    return tuner->ring[i & (tuner->room - 1)];
}

static bool
remember(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    while (tuner->oldest < tuner->arrivals &&
           time - arrival(tuner, tuner->oldest) >= tuner->widest)
        tuner->oldest++;
    if (tuner->arrivals - tuner->oldest == tuner->room) {
        size_t room = tuner->room ? 2 * tuner->room : 1024;
        double *ring =
            room < SIZE_MAX / sizeof *ring ? malloc(room * sizeof *ring) : NULL;
        if (!ring)
            return rec_fail_memory(err);
        for (uint64_t i = tuner->oldest; i < tuner->arrivals; i++)
            ring[i & (room - 1)] = arrival(tuner, i);
        free(tuner->ring);
        tuner->ring = ring;
        tuner->room = room;
    }
    tuner->ring[tuner->arrivals++ & (tuner->room - 1)] = time;
    return true;
}

/* A window that ends at `time` holds more than its limit. */
static bool
is_beyond(const struct serve_tuner *tuner, const struct window *window, double time)
{
    return tuner->arrivals - tuner->oldest > window->limit &&
           time - arrival(tuner, tuner->arrivals - 1 - window->limit) < window->seconds;
}

/* The first arrival since which less than `age` seconds are over at `time`. */
static uint64_t
since(const struct serve_tuner *tuner, double time, double age)
{
    uint64_t from = tuner->oldest, to = tuner->arrivals;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (time - arrival(tuner, middle) >= age)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The highest rate over the windows that end at `time` and hold more than was planned,
 * queries/s; 0: none does. */
static double
exceeded(const struct serve_tuner *tuner, double time)
{
    double highest = 0;
    for (size_t i = 0; i < tuner->nwindows; i++) {
        const struct window *window = &tuner->window[i];
        uint64_t n = tuner->arrivals - since(tuner, time, window->seconds);
        if (n > window->most)
            highest = fmax(highest, (double)n / window->seconds);
    }
    return highest;
}

/* There are replicas for a rate above what was planned: for less nothing is to do. */
static void
meet(struct serve_tuner *tuner, double rate)
{
    tuner->met = rate;
    for (size_t i = 0; i < tuner->nwindows; i++) {
        struct window *window = &tuner->window[i];
        double n = floor(rate * window->seconds * (1 - ROUNDING));
        window->limit =
            n > (double)window->most ? (uint64_t)fmin(n, 0x1p63) : window->most;
    }
}

/* The most arrivals in one of the windows of RECENT that end at `time`, RECENT before, and so
 * on through HORIZON. */
static uint64_t
most_recent(const struct serve_tuner *tuner, double time)
{
    uint64_t most = 0, end = tuner->arrivals;
    for (int age = RECENT; age <= HORIZON; age += RECENT) {
        uint64_t begin = since(tuner, time, age);
        most = end - begin > most ? end - begin : most;
        end = begin;
    }
    return most;
}

/* ---- changes ------------------------------------------------------------- */

static bool
change(struct serve_tuner *tuner, uint32_t stage, uint32_t replicas, double ordered,
       double time, struct rec_error *err)
{
    if (tuner->first == tuner->nchanges)
        tuner->first = tuner->nchanges = 0;
    if (!rec_grow(&tuner->change, &tuner->change_room, tuner->nchanges + 1,
                  sizeof *tuner->change, err))
        return false;
    tuner->change[tuner->nchanges++] =
        (struct serve_change){stage, replicas, tuner->stage[stage].batch, ordered, time};
    tuner->stage[stage].replicas = replicas;
    tuner->look = after(time, tuner->tuning.quiet);
    return true;
}

/*
 * More comes than there are replicas for. `rate` is above what was planned for, or 0; `recent`
 * is above what replicas were taken away for, or 0.
 */
static bool
scale_up(struct serve_tuner *tuner, double rate, double recent, double time,
         struct rec_error *err)
{
    double due = after(time, tuner->tuning.activation);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        const struct tuned *stage = &tuner->stage[s];
        uint32_t up = needed(tuner, stage->planned, rate);
        uint32_t back = needed(tuner, stage->busiest, recent);
        back = (uint32_t)fmin(back, stage->planned);
        up = up > back ? up : back;
        if (stage->replicas > 0 && up > stage->replicas &&
            !change(tuner, s, up, time, due, err))
            return false;
    }
    return true;
}

bool
serve_tuner_arrival(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    bool more = false;
    double rate = 0, recent = 0;
    if (!remember(tuner, time, err))
        return false;
    if (tuner->arrivals == 1)
        tuner->look = after(time, tuner->tuning.quiet);
    for (size_t i = 0; i < tuner->nwindows; i++)
        more |= is_beyond(tuner, &tuner->window[i], time);
    if (more && (rate = exceeded(tuner, time)) > tuner->met)
        meet(tuner, rate);
    else
        rate = 0;
    if (is_beyond(tuner, &tuner->recent, time)) {
        tuner->recent.limit = tuner->arrivals - since(tuner, time, RECENT);
        recent = (double)tuner->recent.limit / RECENT;
    }
    return !(rate > 0 || recent > 0) || scale_up(tuner, rate, recent, time, err);
}

/* Nothing has changed for a while: do fewer? */
static bool
scale_down(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    double rate = exceeded(tuner, time), recent;
    uint64_t most = most_recent(tuner, time);
    bool removable = false;

    recent = (double)most / RECENT;
    tuner->look = after(time, RECENT);
    for (uint32_t s = 0; s < tuner->nstages; s++) {
        struct tuned *stage = &tuner->stage[s];
        uint32_t up = needed(tuner, stage->planned, rate);
        uint32_t down = needed(tuner, stage->busiest, recent);
        down = up > down ? up : down;
        if (down < stage->replicas) {
            if (!change(tuner, s, down, time, time, err))
                return false;
            meet(tuner, rate);
            tuner->recent.limit = most;
        }
        removable = removable || stage->replicas > 1;
    }
    if (!removable)
        tuner->look = (double)INFINITY;
    return true;
}

/* ---- time ---------------------------------------------------------------- */

double
serve_tuner_next(const struct serve_tuner *tuner)
{
    return tuner->first < tuner->nchanges ? tuner->change[tuner->first].time
                                          : tuner->look;
}

bool
serve_tuner_starting(struct serve_tuner *tuner, struct serve_change *next)
{
    if (tuner->first == tuner->nchanges)
        return false;
    *next = tuner->change[tuner->first++];
    return true;
}

int
serve_tuner_step(struct serve_tuner *tuner, struct serve_change *next,
                 struct rec_error *err)
{
    if (tuner->first == tuner->nchanges && !scale_down(tuner, tuner->look, err))
        return -1;
    return serve_tuner_starting(tuner, next);
}
