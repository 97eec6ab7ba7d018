/* Training with redundant computation: the event simulation. The model and its source are
 * described in rampipe/train.h. The order in which simultaneous events happen, truncated
 * milliseconds and the averages are those of the original, so that its results are
 * reproduced; where this file says "as published", do not mend. Times are milliseconds,
 * except in what the sink and the clock see: seconds. */
#include "redundant_private.h"

#include <math.h>
#include <stdlib.h>

/* ---- calls of the sink, and accounting ------------------------------------ */

void
train_redundant_tell(struct train_redundant *r, const char *event)
{
    if (r->sink.train)
        r->sink.train(r->sink.context, &(struct train_redundant_row){
                                           r->now / 1000, event, r->pipelines, r->stages,
                                           train_fleet_size(r->fleet), r->waiting,
                                           r->steps, r->result.fatal, r->status});
}

static void
tell_state(struct train_redundant *r)
{
    uint64_t count[TRAIN_NSTATES];
    bool degraded = r->status == TRAIN_REDUNDANT_RUNNING && r->fallback;
    if (r->sink.state &&
        train_ledger_news(&r->ledger, r->fleet, 2 * (int)r->status + degraded, count))
        r->sink.state(r->sink.context, r->now / 1000, r->status, degraded, count);
}

/* Accounts for the time from now until `time`, and moves the clock there. */
static void
spend(struct train_redundant *r, double time)
{
    static const enum train_account accounts[] = {TRAIN_STALL, TRAIN_RECONFIGURE,
                                                  TRAIN_USEFUL};
    double ms = time - r->now;
    if (ms == 0)
        return;
    tell_state(r); /* not at each event: one call per instant suffices */
    train_ledger_spend(&r->ledger, r->fleet, accounts[r->status], ms);
    if (r->status == TRAIN_REDUNDANT_RUNNING && r->fallback)
        r->result.degraded += ms / 1000;
    r->now = time;
}

/* ---- rendezvous ---------------------------------------------------------- */

/* Starts a rendezvous, at which all ready and running instances meet, and those that get
 * ready before its end. It replaces a rendezvous that is going on. A global one follows a
 * fatal failure or a stop; a local one, at the end of a step, takes less time. */
void
train_redundant_start_rendezvous(struct train_redundant *r, bool global,
                                 const char *event)
{
    r->status = TRAIN_REDUNDANT_RENDEZVOUS;
    r->global = global;
    r->broken = false;
    r->next_step = INFINITY;
    r->timeout = r->now + (double)(global ? r->profile->global_ms : r->profile->local_ms);
    train_redundant_tell(r, event);
}

static int
by_pipelines(const void *a, const void *b)
{
    const struct train_redundant_speed *const *x = a, *const *y = b;
    return ((*x)->pipelines > (*y)->pipelines) - ((*x)->pipelines < (*y)->pipelines);
}

/* Collects the lines of the table whose pipelines have the profile's number of stages,
 * and sorts them by the number of pipelines for best_speed(). */
static bool
sort_speeds(struct train_redundant *r, struct rec_error *err)
{
    const struct train_redundant_profile *p = r->profile;
    if (!(r->speed = calloc(p->nspeeds + 1, sizeof *r->speed)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < p->nspeeds; i++)
        if (p->speed[i].stages == p->stages)
            r->speed[r->nspeeds++] = &p->speed[i];
    qsort(r->speed, r->nspeeds, sizeof *r->speed, by_pipelines);
    return true;
}

/* The line of the table with the most pipelines that n instances can form; .pipelines is
 * 0 if there is none. */
static struct train_redundant_speed
best_speed(const struct train_redundant *r, uint64_t n)
{
    uint64_t most = n / r->profile->stages;
    size_t low = 0, high = r->nspeeds;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->speed[middle]->pipelines <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? *r->speed[low - 1] : (struct train_redundant_speed){.pipelines = 0};
}

/* Puts the first instances that met, in the order in which they came, into the pipelines,
 * one pipeline after the other. The other instances wait. */
static bool
form_pipelines(struct train_redundant *r, struct rec_error *err)
{
    uint64_t met =
        train_fleet_size(r->fleet) - train_fleet_count(r->fleet, TRAIN_PREPARING);
    struct train_redundant_speed speed = best_speed(r, met);
    uint64_t n = speed.pipelines * speed.stages;

    r->pipelines = speed.pipelines;
    r->stages = speed.stages;
    r->step_ms = (double)speed.ms;
    r->waiting = met - n;
    r->doubled = 0;
    if (!rec_grow(&r->place, &r->place_room, n, sizeof *r->place, err))
        return false;
    for (uint64_t i = 0; i < n; i++)
        r->place[i] = (struct place){.there = true};
    /* all to standby first: the second move then numbers the n from 0 in ->place */
    train_fleet_move(r->fleet, TRAIN_ACTIVE, TRAIN_STANDBY, UINT64_MAX);
    train_fleet_move(r->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, n);
    return true;
}

/* The rendezvous succeeded: training goes on in a new configuration, or stops if there
 * are too few instances for one pipeline. */
static bool
configure(struct train_redundant *r, struct rec_error *err)
{
    if (!form_pipelines(r, err))
        return false;
    r->fallback = false;
    r->timeout = INFINITY;
    r->result.rendezvous++;
    r->status = r->pipelines > 0 ? TRAIN_REDUNDANT_RUNNING : TRAIN_REDUNDANT_STOPPED;
    if (r->pipelines > 0) {
        r->step_start = train_redundant_mark(r);
        r->next_step = r->now + r->step_ms;
        if (!r->configured) {
            r->configured = true;
            r->first = r->now;
            r->last = r->step_start;
        }
    }
    train_redundant_tell(r, "config");
    return true;
}

/* A rendezvous starts again if an instance that took part has gone meanwhile. */
static bool
end_rendezvous(struct train_redundant *r, struct rec_error *err)
{
    if (!r->broken)
        return configure(r, err);
    train_redundant_start_rendezvous(r, r->global, "redo");
    return true;
}

/* ---- steps --------------------------------------------------------------- */

/* The published rule, asked after each step: reconfigure if waiting instances can replace
 * all lost ones, if more than 5 % of the running instances are neighbours in a fallback
 * (the one that does two stages and the one whose stage it does), or if there are enough
 * for one more pipeline. */
static bool
should_reconfigure(const struct train_redundant *r)
{
    double doubled = (double)r->doubled;
    uint64_t running = r->pipelines * r->stages - r->doubled, n = running + r->waiting;
    if (r->doubled > 0 && r->waiting >= r->doubled)
        return true;
    if (r->doubled > 0 && 2 * doubled / (double)running > 0.05)
        return true;
    /* the cheap comparison first, since this is asked after each step */
    return n >= (r->pipelines + 1) * r->stages &&
           best_speed(r, n).pipelines > r->pipelines;
}

/* The step that was running when the fallback began takes longer, too. As published, its
 * end is put off when it comes, by the time since the loss multiplied by slowdown - 1. */
static void
end_step(struct train_redundant *r)
{
    if (r->fallback && !r->handled && r->fallback_steps == r->steps) {
        r->handled = true;
        r->next_step =
            r->now + trunc((r->now - r->fallback_time) * (r->profile->slowdown - 1));
        return;
    }
    r->steps++;
    r->inverse_cost +=
        (r->now - r->last.time) / ((r->ledger.all - r->last.all) * r->options.price);
    r->last = train_redundant_mark(r);
    r->step_start = train_redundant_mark(r);
    r->done = r->options.steps > 0 && r->steps == r->options.steps;
    r->next_step = r->now + r->step_ms;
    train_redundant_tell(r, "step");
    if (!r->done && should_reconfigure(r))
        train_redundant_start_rendezvous(r, false, "rendezvous_local");
}

/* An instance is prepared: it starts a rendezvous if nothing runs, takes part in one that
 * is going on, or waits for the next one. */
static void
get_ready(struct train_redundant *r)
{
    train_fleet_move(r->fleet, TRAIN_PREPARING, TRAIN_STANDBY, 1);
    if (r->status == TRAIN_REDUNDANT_STOPPED)
        train_redundant_start_rendezvous(r, true, "rendezvous_global");
    else if (r->status == TRAIN_REDUNDANT_RUNNING)
        r->waiting++;
    train_redundant_tell(r, "ready");
}

/* The time of the next event that the trace does not bring: the end of a rendezvous or of
 * a step, or `ready`, when the next instance gets ready. INFINITY: there is none. */
static double
next_event(const struct train_redundant *r, double ready)
{
    double next = r->timeout < r->next_step ? r->timeout : r->next_step;
    return ready < next ? ready : next;
}

/* Lets one event of next_event() happen, at `next`. Of simultaneous ones, an instance
 * gets ready first, then a rendezvous ends, then a step. */
static bool
happen(struct train_redundant *r, double next, double ready, struct rec_error *err)
{
    if (next > SPOT_TIME_MAX * 1000)
        return rec_fail(err, REC_DATA,
                        "training would go on after %g s, the latest time allowed",
                        SPOT_TIME_MAX);
    spend(r, next);
    if (next == ready)
        get_ready(r);
    else if (next != r->timeout)
        end_step(r);
    else
        return end_rendezvous(r, err);
    return true;
}

/* Refuses, before any is simulated, more steps until `time` than the limit allows. The
 * estimate assumes that the fleet does not change until then. */
static bool
check_work(const struct train_redundant *r, double time, struct rec_error *err)
{
    struct train_redundant_speed speed = best_speed(r, train_fleet_size(r->fleet));
    double steps = (double)r->steps;
    if (speed.pipelines > 0)
        steps += (time - r->now) / (double)speed.ms;
    if (r->options.steps > 0)
        steps = fmin(steps, (double)r->options.steps);
    return rec_limit(&r->options.limit, steps, "steps", err);
}

/* Lets all events of next_event() happen that come before `time`. */
static bool
advance(struct train_redundant *r, double time, struct rec_error *err)
{
    if (!check_work(r, time, err))
        return false;
    while (!r->done) {
        double ready = train_fleet_next_ready(r->fleet), next = next_event(r, ready);
        if (next >= time)
            break;
        if (!happen(r, next, ready, err))
            return false;
    }
    return true;
}

/* ---- events of the trace -------------------------------------------------- */

static bool
add_instance(struct train_redundant *r, struct rec_str id, struct rec_error *err)
{
    double ready = r->now + (double)r->profile->creation_ms;
    uint64_t added;

    r->changed = train_redundant_mark(r);
    if (!train_fleet_add(r->fleet, 1, id, UINT64_MAX, TRAIN_PREPARING, ready, &added,
                         err))
        return false;
    if (isnan(r->first_came))
        r->first_came = r->now;
    r->first_number += r->first_came == r->now;
    r->result.added++;
    train_redundant_tell(r, "add");
    return true;
}

/* Additions happen at once; removals of an instant are kept until all of its additions
 * are known, because the original handles additions first. */
static bool
take(struct train_redundant *r, const struct spot_event *event, struct rec_error *err)
{
    double time = round(event->time * 1000);
    struct rec_str ids = event->ids, id = {NULL, 0};

    if (r->done)
        return true;
    if (event->kind == SPOT_ADD && !train_fleet_fits(r->fleet, event->count, err))
        return false;
    if (time > r->now && !train_redundant_end_instant(r, err))
        return false;
    if (!advance(r, time, err))
        return false;
    if (r->done)
        return true;
    spend(r, time);
    if (event->kind == SPOT_PREEMPT)
        return train_redundant_keep_removal(r, event, err);
    if (!train_fleet_fits(r->fleet, event->count, err))
        return false;
    for (uint64_t i = 0; i < event->count; i++) {
        if (ids.len > 0)
            rec_str_split(&ids, ',', &id);
        if (!add_instance(r, id, err))
            return false;
    }
    return true;
}

/* Fixes when the run begins and with how many instances, from the options and the trace
 * record. */
static bool
open_run(struct train_redundant *r, struct rec_error *err)
{
    struct train_redundant_options *o = &r->options;
    struct spot_event start = {.kind = SPOT_ADD};
    if (r->opened)
        return true;
    r->opened = true;
    if (r->order.framed) {
        o->begin = r->order.start;
        o->end = isinf(o->end) ? r->order.end : o->end;
        o->start = r->order.instances;
    }
    if (o->end < o->begin)
        return rec_fail(err, REC_USAGE,
                        "the run ends at %.15g, before the start of the trace, %.15g",
                        o->end, o->begin);
    r->now = round(o->begin * 1000);
    r->result.begin = r->now / 1000;
    start.time = o->begin;
    start.count = o->start;
    return start.count == 0 || take(r, &start, err);
}

bool
train_redundant_take(struct train_redundant *r, const struct spot_event *event,
                     struct rec_error *err)
{
    return open_run(r, err) && take(r, event, err);
}

/* ---- start and end ------------------------------------------------------- */

struct train_redundant *
train_redundant_new(const struct train_redundant_options *options,
                    const struct train_redundant_sink *sink, struct rec_error *err)
{
    struct train_redundant *r = calloc(1, sizeof *r);
    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    r->options = *options;
    r->sink = *sink;
    r->profile = options->profile;
    r->ledger.unit = 1000;
    r->next_step = r->timeout = INFINITY;
    r->last_removal = r->first_came = NAN;
    r->fleet = train_fleet_new(options->victims, options->seed, options->stream, err);
    if (r->fleet && sort_speeds(r, err))
        return r;
    train_redundant_free(r);
    return NULL;
}

/* The mean, median and sample deviation of a distribution of milliseconds, in seconds;
 * NAN if it has no value. */
static void
describe(struct metrics_dist *dist, double *mean, double *median, double *stdev)
{
    *mean = *median = *stdev = NAN;
    if (dist->n == 0)
        return;
    *mean = dist->mean / 1000;
    *median = metrics_dist_quantile(dist, 0.5) / 1000;
    *stdev = metrics_dist_deviation(dist) / 1000;
}

/* The averages of the result, by the published formulas. Instance-time is in instance-ms
 * here: dividing it by a time in ms gives a mean number of instances. */
static void
average(struct train_redundant *r)
{
    double begin = r->result.begin * 1000, until = r->last.time - begin;
    double seconds = (r->last.time - r->first) / 1000, nodes;

    r->result.first = r->result.last = r->result.instances = r->result.cost = NAN;
    r->result.performance = r->result.value = NAN;
    if (r->steps == 0)
        return;
    r->result.first = r->first / 1000;
    r->result.last = r->last.time / 1000;
    /* As published: if the number of instances changed after the last step, the time from
     * the last step to that change is subtracted with the number after the change. */
    nodes = r->changed.time > r->last.time
                ? r->changed.all - (r->changed.time - r->last.time) *
                                       (double)train_fleet_size(r->fleet)
                : r->last.all;
    /* As published: the number of the first instances is counted from the begin on, even
     * if they came later. */
    if (r->first_came > begin)
        nodes += (r->first_came - begin) * r->first_number;
    r->result.instances = nodes / until;
    r->result.cost = r->result.instances * r->options.price;
    r->result.performance = r->profile->samples * (double)r->steps / seconds;
    if (r->options.price > 0)
        r->result.value = r->profile->samples * r->inverse_cost / seconds;
}

bool
train_redundant_finish(struct train_redundant *r, double end,
                       struct train_redundant_result *result, struct rec_error *err)
{
    double last = round(end * 1000) + 1, happened;
    struct train_instance instance;

    if (r->options.steps == 0 && isinf(last))
        return rec_fail(err, REC_USAGE, "the training has no end");
    if (!open_run(r, err) ||
        (!r->done && (!train_redundant_end_instant(r, err) || !advance(r, last, err))))
        return false;
    tell_state(r);
    /* As published, the lives of the remaining instances end at `end` if another event
     * would follow, else with the last event. */
    happened = r->now;
    if (!r->done && !isinf(last)) {
        spend(r, last - 1);
        if (!isinf(next_event(r, train_fleet_next_ready(r->fleet))))
            happened = r->now;
    }
    for (size_t at = 0; train_fleet_next(r->fleet, &at, &instance);)
        if (!train_redundant_end_life(r, &instance, happened, err))
            return false;
    train_ledger_report(&r->ledger, r->result.seconds, r->result.instance_seconds,
                        r->result.by_state);
    r->result.end = r->now / 1000;
    r->result.steps = r->steps;
    describe(&r->lifetime, &r->result.lifetime_mean, &r->result.lifetime_median,
             &r->result.lifetime_stdev);
    describe(&r->gap, &r->result.preemption_mean, &r->result.preemption_median,
             &r->result.preemption_stdev);
    average(r);
    *result = r->result;
    return true;
}

void
train_redundant_free(struct train_redundant *r)
{
    if (!r)
        return;
    train_fleet_free(r->fleet);
    free(r->speed);
    free(r->place);
    free(r->removal);
    metrics_dist_free(&r->lifetime);
    metrics_dist_free(&r->gap);
    free(r);
}

/* ---- on a clock ---------------------------------------------------------- */

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct train_redundant *r = self;
    struct spot_event event;
    int taken = spot_read(&r->order, reader, rec, &event, err);
    bool ok;

    if (taken < 0 || (taken == 0 && rec->type != REC_TRACE))
        return taken;
    ok = open_run(r, err);
    if (ok && taken > 0 && event.time <= r->options.end)
        ok = event_clock_reach(clock, round(event.time * 1000) / 1000, err) &&
             take(r, &event, err);
    return ok || rec_locate(reader, err) ? 1 : -1;
}

static double
model_next(void *self)
{
    const struct train_redundant *r = self;
    if (r->done)
        return INFINITY;
    if (r->nremovals > 0)
        return r->now / 1000;
    return next_event(r, train_fleet_next_ready(r->fleet)) / 1000;
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    struct train_redundant *r = self;
    double ready, next;
    if (!train_redundant_end_instant(r, err) || !check_work(r, time * 1000, err))
        return false;
    while (!r->done) {
        ready = train_fleet_next_ready(r->fleet);
        next = next_event(r, ready);
        if (isinf(next) || next / 1000 > time)
            break;
        if (!happen(r, next, ready, err))
            return false;
    }
    return true;
}

static double
model_close(void *self)
{
    const struct train_redundant *r = self;
    return isinf(r->options.end) && r->options.steps == 0 ? r->order.last
                                                          : r->options.end;
}

static bool
model_end(void *self, double time, struct rec_error *err)
{
    struct train_redundant *r = self;
    struct train_redundant_result result;
    if (!train_redundant_finish(r, time, &result, err))
        return false;
    if (r->sink.end)
        r->sink.end(r->sink.context, &result);
    return true;
}

const struct event_model train_redundant_model = {"redundant",   model_take, model_next,
                                                  model_advance, model_end,  model_close};
