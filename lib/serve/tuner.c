/*
 * The tuner orders more replicas when more queries come than was planned for, and removes
 * some when fewer come. It remembers the arrivals of its widest window in a ring, and
 * keeps a list of the changes that are due; a rule (published.c, damped.c) decides what
 * to change.
 */
#include "tuning.h"

#include <stdlib.h>

/* The least time for which arrivals are remembered, seconds: both rules look back so
 * far. */
enum { HORIZON = 30 };

static const struct tuner_rule *const rules[] = {
    [SERVE_DAMPED] = &serve_tuner_damped, [SERVE_PUBLISHED] = &serve_tuner_published};

/* ---- what was planned ---------------------------------------------------- */

/* The batch of most throughput among the planned one and larger ones; of equal ones, the
 * smallest. */
static uint32_t
largest_useful(const struct serve_profile *profile, enum serve_service service,
               uint32_t batch)
{
    double most = serve_throughput(profile, service, batch);
    for (size_t i = 0; i < profile->n; i++) {
        uint32_t larger = (uint32_t)profile->point[i].batch;
        double rate = larger > batch ? serve_throughput(profile, service, larger) : 0;
        if (rate > most) {
            most = rate;
            batch = larger;
        }
    }
    return batch;
}

static bool
open_stages(struct serve_tuner *tuner, const struct serve_pipeline *p,
            enum serve_service service, struct rec_error *err)
{
    double most = 0;
    for (size_t s = 0; s < p->nstages; s++) {
        const struct serve_config *config = &p->stage[s].config;
        const struct serve_profile *profile;
        struct tuned *stage = &tuner->stage[s];
        if (p->stage[s].model == REC_NONE)
            continue;
        if (isnan(config->load))
            return rec_fail_at(err, config->place.file, config->place.line,
                               "the config of stage '%s' has no load=, the queries/s "
                               "that it was planned for: plan writes it",
                               p->stage[s].name);
        profile = &p->profile[config->profile];
        stage->planned = stage->replicas = stage->working = config->replicas;
        stage->batch = stage->small = config->batch;
        stage->profile = profile;
        stage->speed = serve_throughput(profile, service, config->batch);
        stage->load = config->load;
        stage->large = largest_useful(profile, service, config->batch);
        stage->offered = config->load / stage->speed;
        tuner->busiest = fmax(tuner->busiest, stage->offered / stage->planned);
        most = fmax(most, config->load);
    }
    tuner->rate = p->rate > 0 ? p->rate : most;
    return most > 0 ||
           rec_fail(err, REC_DATA,
                    "load= is 0 in the configs of all stages: one must be above 0");
}

static bool
open_windows(struct serve_tuner *tuner, const struct serve_pipeline *p,
             struct rec_error *err)
{
    size_t n = p->nwindows;
    if (n == 0)
        return rec_fail(err, REC_DATA,
                        "there is no envelope record, which says for what traffic the "
                        "pipeline was planned: plan writes it");
    tuner->nwindows = n;
    for (size_t i = 0; i < n; i++) {
        const struct serve_window *window = &p->window[i];
        tuner->window[i] = (struct tuner_window){.seconds = window->seconds,
                                                 .most = window->queries,
                                                 .limit = window->queries};
        if (tuner->tuning.rule == SERVE_DAMPED && window->resampled > 0)
            tuner->window[i].most = window->resampled;
    }
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
    tuner->rule = rules[tuning->rule];
    tuner->tuning = *tuning;
    tuner->pipeline = pipeline;
    tuner->service = service;
    tuner->look = (double)INFINITY;
    tuner->nstages = pipeline->nstages;
    tuner->stage = calloc(pipeline->nstages + 1, sizeof *tuner->stage);
    tuner->window = calloc(pipeline->nwindows + 1, sizeof *tuner->window);
    if (!tuner->stage || !tuner->window)
        rec_fail_memory(err);
    else if (open_windows(tuner, pipeline, err) &&
             open_stages(tuner, pipeline, service, err)) {
        tuner->rule->open(tuner);
        return tuner;
    }
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

/* Puts an arrival into the ring, and forgets those that left the widest window. O(1) on
 * average: the ring doubles when it is full. */
static bool
remember(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    while (tuner->oldest < tuner->arrivals &&
           time - tuner_arrival(tuner, tuner->oldest) >= tuner->widest)
        tuner->oldest++;
    if (tuner->arrivals - tuner->oldest == tuner->room) {
        size_t room = tuner->room ? 2 * tuner->room : 1024;
        double *ring =
            room < SIZE_MAX / sizeof *ring ? malloc(room * sizeof *ring) : NULL;
        if (!ring)
            return rec_fail_memory(err);
        for (uint64_t i = tuner->oldest; i < tuner->arrivals; i++)
            ring[i & (room - 1)] = tuner_arrival(tuner, i);
        free(tuner->ring);
        tuner->ring = ring;
        tuner->room = room;
    }
    tuner->ring[tuner->arrivals++ & (tuner->room - 1)] = time;
    return true;
}

/* Binary search: arrivals are in order of time. */
uint64_t
serve_tuner_since(const struct serve_tuner *tuner, double time, double age)
{
    uint64_t from = tuner->oldest, to = tuner->arrivals;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (time - tuner_arrival(tuner, middle) >= age)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool
serve_tuner_arrival(struct serve_tuner *tuner, double time, struct rec_error *err)
{
    if (!remember(tuner, time, err))
        return false;
    if (tuner->arrivals == 1) {
        tuner->first_arrival = tuner->flowed = time;
        tuner->look = tuner_after(time, tuner->tuning.quiet);
    }
    return tuner->rule->arrived(tuner, time, err);
}

/* ---- changes ------------------------------------------------------------- */

/* Inserts a change behind those that are due before it or at the same time. */
static bool
add_change(struct serve_tuner *tuner, struct tuner_change change, struct rec_error *err)
{
    size_t at;
    if (tuner->first == tuner->nchanges)
        tuner->first = tuner->nchanges = 0;
    if (!rec_grow(&tuner->change, &tuner->change_room, tuner->nchanges + 1,
                  sizeof *tuner->change, err))
        return false;
    at = tuner->nchanges++;
    for (; at > tuner->first && tuner->change[at - 1].time > change.time; at--)
        tuner->change[at] = tuner->change[at - 1];
    tuner->change[at] = change;
    return true;
}

bool
serve_tuner_order(struct serve_tuner *tuner, uint32_t stage, uint32_t replicas,
                  double ordered, double time, struct rec_error *err)
{
    tuner->stage[stage].replicas = replicas;
    tuner->look = tuner_after(time, tuner->tuning.quiet);
    return add_change(tuner, (struct tuner_change){stage, replicas, ordered, time}, err);
}

/* A new batch replaces the changes of the stage's batch that are due at `time` or
 * later. */
bool
serve_tuner_resize(struct serve_tuner *tuner, uint32_t stage, uint32_t batch, double time,
                   struct rec_error *err)
{
    size_t kept = tuner->first;
    for (size_t i = tuner->first; i < tuner->nchanges; i++)
        if (tuner->change[i].stage != stage || !isnan(tuner->change[i].ordered) ||
            tuner->change[i].time < time)
            tuner->change[kept++] = tuner->change[i];
    tuner->nchanges = kept;
    return add_change(tuner, (struct tuner_change){stage, batch, (double)NAN, time}, err);
}

/* ---- time ---------------------------------------------------------------- */

double
serve_tuner_next(const struct serve_tuner *tuner)
{
    double due = tuner->first < tuner->nchanges ? tuner->change[tuner->first].time
                                                : (double)INFINITY;
    return fmin(due, tuner->look);
}

bool
serve_tuner_starting(struct serve_tuner *tuner, struct serve_change *next)
{
    const struct tuner_change *change;
    struct tuned *stage;
    if (tuner->first == tuner->nchanges)
        return false;
    change = &tuner->change[tuner->first++];
    stage = &tuner->stage[change->stage];
    if (isnan(change->ordered)) {
        stage->batch = change->value;
        stage->speed = serve_throughput(stage->profile, tuner->service, stage->batch);
    } else
        stage->working = change->value;
    *next = (struct serve_change){.stage = change->stage,
                                  .replicas = stage->working,
                                  .batch = stage->batch,
                                  .ordered = isnan(change->ordered) ? change->time
                                                                    : change->ordered,
                                  .time = change->time};
    return true;
}

/* If a change and a look are due at the same time, the change comes first. A look may
 * make changes for its own time, which are then taken in the same step. */
int
serve_tuner_step(struct serve_tuner *tuner, struct serve_change *next,
                 struct rec_error *err)
{
    double due = serve_tuner_next(tuner);
    if ((tuner->first == tuner->nchanges || tuner->change[tuner->first].time > due) &&
        !tuner->rule->look(tuner, tuner->look, err))
        return -1;
    return tuner->first < tuner->nchanges && tuner->change[tuner->first].time <= due
               ? serve_tuner_starting(tuner, next)
               : 0;
}

double
serve_tuner_fixed(const struct serve_tuner *tuner, uint32_t stage)
{
    return tuner->rule->fixed ? tuner->rule->fixed(tuner, stage) : (double)NAN;
}
