/* Elastic training on spot instances by the sane rules, an event simulation that is exact
 * in time, and the functions that the published rules (elastic_tick.c) use too.
 * rampipe/train.h says what is simulated and from which source.
 *
 * Between two events of the trace, only iterations, checkpoints, reconfigurations and
 * preparations end; complete() and advance() let them end in order of time. At an event,
 * all losses of the instant are taken first; close_instant() then regroups once. */
#include "elastic_private.h"

#include <math.h>
#include <stdlib.h>

/* ---- accounting, and calls of the sink ----------------------------------- */

void
train_elastic_spend(struct train_elastic *e, double time)
{
    static const enum train_account accounts[] = {TRAIN_USEFUL, TRAIN_RECONFIGURE,
                                                  TRAIN_STALL};
    train_ledger_spend(&e->ledger, e->fleet, accounts[e->phase], time - e->now);
    e->now = time;
}

void
train_elastic_tell_state(struct train_elastic *e, double time)
{
    uint64_t count[TRAIN_NSTATES];
    if (e->sink.state && train_ledger_news(&e->ledger, e->fleet, (int)e->phase, count))
        e->sink.state(e->sink.context, time, e->phase, count);
}

/* The instance-time spent until `time` follows from that spent until now, since the
 * number of instances did not change in between. */
struct train_mark
train_elastic_mark(const struct train_elastic *e, double time)
{
    return (struct train_mark){time,
                               e->ledger.all - (e->now - time) * (double)e->population};
}

/* The first iteration after a roll-back moves the safe mark: the work that could be lost
 * begins here, not at the checkpoint, which was before the reconfiguration. */
void
train_elastic_tell_step(struct train_elastic *e, double time, uint64_t size)
{
    if (e->step == e->last_saved + 1)
        e->safe = train_elastic_mark(e, time);
    if (e->sink.train) {
        struct train_elastic_row row = {
            .time = time, .id = e->step, .size = size, .since = NAN};
        e->sink.train(e->sink.context, &row);
    }
}

/* In another phase than training, the roll-back has been done already. */
double
train_elastic_roll_back(struct train_elastic *e)
{
    int64_t redo = e->last_saved + 1;
    if (e->phase != TRAIN_ELASTIC_TRAINING)
        return NAN;
    train_ledger_roll_back(&e->ledger, e->safe, e->now);
    e->result.lost += e->step - redo;
    e->step = redo;
    return e->safe.time;
}

void
train_elastic_tell_reconfig(struct train_elastic *e, uint64_t size, double since)
{
    struct train_elastic_row row = {.time = e->now,
                                    .reconfig = true,
                                    .id = (int64_t)e->result.reconfigurations++,
                                    .size = size,
                                    .after = train_fleet_count(e->fleet, TRAIN_ACTIVE),
                                    .redo = e->last_saved + 1,
                                    .since = since};
    if (e->sink.train)
        e->sink.train(e->sink.context, &row);
}

/* ---- iterations, checkpoints and reconfigurations end --------------------- */

static void
start_iteration(struct train_elastic *e, double time)
{
    uint64_t size = train_fleet_count(e->fleet, TRAIN_ACTIVE);
    train_elastic_tell_step(e, time, size);
    e->step_end = time + train_elastic_iteration(e->options.profile, (double)size);
}

/* A checkpoint starts with the end of an iteration, if none is being written. */
static void
end_iteration(struct train_elastic *e)
{
    double time = e->step_end;
    e->result.iterations++;
    if (!e->saving) {
        e->saving = true;
        e->save_end = time + e->options.profile->checkpoint;
        e->save_step = e->step;
        e->saved = (struct train_mark){time, e->ledger.all};
    }
    e->step++;
    start_iteration(e, time);
}

static void
end_checkpoint(struct train_elastic *e)
{
    e->saving = false;
    e->last_saved = e->save_step;
    e->safe = e->saved;
    e->result.checkpoints++;
}

static void
resume(struct train_elastic *e)
{
    e->phase = TRAIN_ELASTIC_TRAINING;
    start_iteration(e, e->reconfig_end);
    train_elastic_tell_state(e, e->now);
}

/* Forms as many pipelines as the active and standby instances allow, if active instances
 * were lost or if there are enough on standby for one more pipeline. The checkpoint that
 * is being written is given up, for its pipelines no longer exist. */
static void
regroup(struct train_elastic *e, uint64_t lost)
{
    uint64_t active = train_fleet_count(e->fleet, TRAIN_ACTIVE);
    uint64_t standby = train_fleet_count(e->fleet, TRAIN_STANDBY),
             depth = e->options.depth;
    uint64_t target = (active + standby) / depth * depth;
    double since;

    if (lost == 0 && standby < depth)
        return;
    since = train_elastic_roll_back(e);
    e->saving = false;
    if (target > active)
        train_fleet_move(e->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, target - active);
    else
        train_fleet_move(e->fleet, TRAIN_ACTIVE, TRAIN_STANDBY, active - target);
    train_elastic_tell_reconfig(e, active, since);
    e->phase = target > 0 ? TRAIN_ELASTIC_RECONFIGURING : TRAIN_ELASTIC_STALLED;
    e->reconfig_end = e->now + e->options.profile->reconfigure + e->options.load;
}

/* Refuses, before any is simulated, more work until `time` than the limit allows. The
 * estimate assumes that the fleet does not change until then. */
static bool
check_work(const struct train_elastic *e, double time, struct rec_error *err)
{
    const struct train_elastic_options *o = &e->options;
    double span = time - e->now, done = (double)e->result.iterations;
    uint64_t active = train_fleet_size(e->fleet) / o->depth * o->depth;
    if (o->rules != TRAIN_ELASTIC_SANE)
        return rec_limit(&o->limit, (double)e->ticks + span / o->tick, "ticks", err);
    if (active > 0)
        done += span / train_elastic_iteration(o->profile, (double)active);
    return rec_limit(&o->limit, done, "iterations", err);
}

/* The time when the next iteration, checkpoint or reconfiguration ends. */
static double
next_end(const struct train_elastic *e)
{
    if (e->phase == TRAIN_ELASTIC_TRAINING)
        return e->saving && e->save_end <= e->step_end ? e->save_end : e->step_end;
    return e->phase == TRAIN_ELASTIC_RECONFIGURING ? e->reconfig_end : INFINITY;
}

/* Completes what ends up to and at `time`. Of what ends at the same time,
 * reconfigurations are first, then checkpoints, then iterations: an iteration that ends
 * together with a checkpoint may start the next checkpoint. */
static void
complete(struct train_elastic *e, double time)
{
    for (;;) {
        double next = next_end(e);
        bool save =
            e->phase == TRAIN_ELASTIC_TRAINING && e->saving && e->save_end <= next;
        if (next > time)
            return;
        train_elastic_spend(e, next);
        if (e->phase == TRAIN_ELASTIC_RECONFIGURING)
            resume(e);
        else if (!save)
            end_iteration(e);
        else {
            end_checkpoint(e);
            if (e->options.grow_saved &&
                train_fleet_count(e->fleet, TRAIN_STANDBY) >= e->options.depth) {
                if (e->step_end <= next) /* this iteration is complete: not lost */
                    end_iteration(e);
                regroup(e, 0);
                train_elastic_tell_state(e, next);
            }
        }
    }
}

/* ---- one instant --------------------------------------------------------- */

/* Does what follows the losses of an instant: preparations end, and the pipelines form
 * anew. With `grow_saved`, growth alone waits for the end of the running checkpoint, at
 * which complete() regroups. */
static void
close_instant(struct train_elastic *e)
{
    bool wait = e->options.grow_saved && e->phase == TRAIN_ELASTIC_TRAINING &&
                e->saving && e->lost == 0;
    train_fleet_settle(e->fleet, e->now);
    if (!wait)
        regroup(e, e->lost);
    e->lost = 0;
    train_elastic_tell_state(e, e->now);
}

/* Goes on to `time`. Preparations that end before it may form a pipeline; those that end
 * at `time` belong to the instant of the coming event, and close_instant() settles
 * them. */
static void
advance(struct train_elastic *e, double time)
{
    double ready;
    while ((ready = train_fleet_next_ready(e->fleet)) < time) {
        complete(e, ready);
        train_elastic_spend(e, ready);
        close_instant(e);
    }
    complete(e, time);
    train_elastic_spend(e, time);
}

/* The tick at which an event of `time` is seen: the next one, or the one at `time`. The
 * quotient is rounded, so its neighbour may be that tick. */
static double
to_tick(const struct train_elastic *e, double time)
{
    double tick = e->options.tick, begin = e->options.begin, n;
    if (!(tick > 0))
        return time;
    n = ceil((time - begin) / tick);
    if (begin + (n - 1) * tick >= time)
        n--;
    return begin + n * tick;
}

/* Counts refused instances. A trace may add 2^64 - 1 at once, so that the sum may not
 * fit. */
static bool
refuse(struct train_elastic *e, uint64_t count, struct rec_error *err)
{
    return !__builtin_add_overflow(e->result.refused, count, &e->result.refused) ||
           rec_fail(err, REC_DATA,
                    "more than 2^64 instances are added beyond the capacity");
}

bool
train_elastic_add(struct train_elastic *e, struct rec_error *err)
{
    uint64_t added;
    double ready;

    if (e->nadds == 0)
        return true;
    ready = to_tick(e, e->now + e->options.prepare);
    for (size_t i = 0; i < e->nadds; i++) {
        struct train_elastic_addition *a = &e->add[i];
        struct rec_str ids = {a->ids, a->ids ? strlen(a->ids) : 0};
        bool ok = train_fleet_add(e->fleet, a->count, ids, e->limit, TRAIN_PREPARING,
                                  ready, &added, err);
        free(a->ids);
        a->ids = NULL;
        if (!ok)
            return false;
        e->result.added += added;
        if (!refuse(e, a->count - added, err))
            return false;
    }
    e->nadds = 0;
    /* freed, not cleared: clearing costs time for the largest size it ever had */
    rec_map_free(&e->arriving);
    return true;
}

/* Ends the instant whose events were taken, if one is open. */
static bool
end_instant(struct train_elastic *e, struct rec_error *err)
{
    if (!e->open)
        return true;
    e->open = false;
    if (e->options.rules != TRAIN_ELASTIC_SANE)
        return train_elastic_tick(e, err);
    if (!train_elastic_add(e, err))
        return false;
    close_instant(e);
    return true;
}

/* Additions are carried out after the losses of their instant, so they are copied; a
 * wrong name is reported here, where the reader still knows the line. */
static bool
keep_addition(struct train_elastic *e, const struct spot_event *event,
              struct rec_error *err)
{
    struct train_elastic_addition addition = {event->count, NULL};
    struct rec_str rest, id;

    if (!rec_grow(&e->add, &e->add_room, e->nadds + 1, sizeof *e->add, err))
        return false;
    if (event->ids.len > 0 && !(addition.ids = strndup(event->ids.ptr, event->ids.len)))
        return rec_fail_memory(err);
    e->add[e->nadds++] = addition;
    rest = (struct rec_str){addition.ids, event->ids.len};
    while (rest.len > 0 && rec_str_split(&rest, ',', &id))
        if (train_fleet_has(e->fleet, id) || rec_map_get(&e->arriving, id) != REC_NONE)
            return train_fleet_fail(err, id, true);
        else if (!rec_map_add(&e->arriving, id, 0, err))
            return false;
    return true;
}

/* Does a preemption name an instance that is added at the same instant? Then the
 * additions must be carried out before it. */
static bool
names_newcomer(const struct train_elastic *e, struct rec_str ids)
{
    struct rec_str id;
    while (e->nadds > 0 && ids.len > 0 && rec_str_split(&ids, ',', &id))
        if (rec_map_get(&e->arriving, id) != REC_NONE)
            return true;
    return false;
}

/* Starts training: the first instances form pipelines at once, without a
 * reconfiguration. */
static void
begin(struct train_elastic *e)
{
    uint64_t active = train_fleet_size(e->fleet) / e->options.depth * e->options.depth;
    e->begun = true;
    e->result.start = e->population = train_fleet_size(e->fleet);
    train_fleet_move(e->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, active);
    e->phase = active > 0 ? TRAIN_ELASTIC_TRAINING : TRAIN_ELASTIC_STALLED;
    if (e->options.rules != TRAIN_ELASTIC_SANE)
        train_elastic_tick_start(e);
    else if (active > 0)
        start_iteration(e, e->now);
    train_elastic_tell_state(e, e->now);
}

/* If no instances are there at the start, those that are added at that time are counted
 * as instances of the start: they need no preparation. */
static bool
is_first(const struct train_elastic *e, const struct spot_event *event)
{
    return !e->begun && e->options.start == 0 && event->kind == SPOT_ADD &&
           event->time == e->options.begin;
}

/* Takes the victims of a preemption away. Losses of one instant add up in ->lost, so that
 * they cause one reconfiguration. */
static bool
lose(struct train_elastic *e, const struct spot_event *event, struct rec_error *err)
{
    struct train_instance gone;
    if (event->ids.len > 0 ? !train_fleet_leave(e->fleet, event->ids, err)
                           : !train_fleet_choose(e->fleet, event->count, err))
        return false;
    while (train_fleet_take(e->fleet, false, &gone)) {
        e->result.preempted++;
        e->result.lost_active += gone.state == TRAIN_ACTIVE;
        e->lost += gone.state == TRAIN_ACTIVE;
    }
    return true;
}

/* Fixes when the run begins and with how many instances, from the options and the trace
 * record. Called at the first event, since the trace record comes before the events. */
static bool
open_run(struct train_elastic *e, struct rec_error *err)
{
    struct train_elastic_options *o = &e->options;
    uint64_t added;
    if (e->opened)
        return true;
    e->opened = true;
    if (e->order.framed)
        o->begin = e->order.start;
    if (e->order.framed && isinf(o->end))
        o->end = e->order.end;
    if (e->order.populated && !o->start_given)
        o->start = e->order.instances;
    if (o->end < o->begin)
        return rec_fail(err, REC_USAGE,
                        "the run ends at %.15g, before the start of the trace, %.15g",
                        o->end, o->begin);
    e->now = e->result.begin = o->begin;
    return train_fleet_add(e->fleet, o->start, (struct rec_str){NULL, 0}, UINT64_MAX,
                           TRAIN_STANDBY, 0, &added, err);
}

bool
train_elastic_take(struct train_elastic *e, const struct spot_event *event,
                   struct rec_error *err)
{
    double time;
    uint64_t added;

    if (!open_run(e, err))
        return false;
    time = to_tick(e, event->time);
    if (e->options.tick > 0 && time >= e->options.end)
        return true;
    if (is_first(e, event)) {
        bool ok = train_fleet_add(e->fleet, event->count, event->ids, e->limit,
                                  TRAIN_STANDBY, 0, &added, err);
        return ok && refuse(e, event->count - added, err);
    }
    if (!e->begun)
        begin(e);
    if (e->open && time > e->now && !end_instant(e, err))
        return false;
    if (!e->open) {
        if (!check_work(e, time, err))
            return false;
        if (e->options.rules == TRAIN_ELASTIC_SANE)
            advance(e, time);
        else if (!train_elastic_tick_until(e, time, err))
            return false;
        e->open = true;
        e->before = train_fleet_size(e->fleet);
    }
    if (event->kind == SPOT_ADD)
        return keep_addition(e, event, err);
    if (names_newcomer(e, event->ids) && !train_elastic_add(e, err))
        return false;
    return lose(e, event, err);
}

/* ---- start and end ------------------------------------------------------- */

struct train_elastic *
train_elastic_new(const struct train_elastic_options *options,
                  const struct train_elastic_sink *sink, struct rec_error *err)
{
    struct train_elastic *e = calloc(1, sizeof *e);
    if (!e) {
        rec_fail_memory(err);
        return NULL;
    }
    e->options = *options;
    e->sink = *sink;
    e->ledger.unit = 1;
    e->limit = options->capacity;
    e->last_saved = options->rules == TRAIN_ELASTIC_SANE ? -1 : 0;
    e->fleet = train_fleet_new(options->victims, options->seed, options->stream, err);
    if (e->fleet)
        return e;
    train_elastic_free(e);
    return NULL;
}

bool
train_elastic_finish(struct train_elastic *e, double end,
                     struct train_elastic_result *result, struct rec_error *err)
{
    if (!open_run(e, err))
        return false;
    if (!e->begun)
        begin(e);
    if (!end_instant(e, err))
        return false;
    end = fmax(end, e->now);
    if (!check_work(e, end, err))
        return false;
    if (e->options.rules == TRAIN_ELASTIC_SANE)
        advance(e, end);
    else if (!train_elastic_tick_until(e, end, err))
        return false;
    train_elastic_spend(e, end);
    e->result.end = end;
    e->result.steps = e->step;
    train_ledger_report(&e->ledger, e->result.seconds, e->result.instance_seconds,
                        e->result.by_state);
    *result = e->result;
    return true;
}

void
train_elastic_free(struct train_elastic *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->nadds; i++)
        free(e->add[i].ids);
    free(e->add);
    rec_map_free(&e->arriving);
    train_fleet_free(e->fleet);
    free(e);
}

/* ---- on a clock ---------------------------------------------------------- */

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct train_elastic *e = self;
    struct spot_event event;
    int taken = spot_read(&e->order, reader, rec, &event, err);
    bool ok;

    if (taken < 0 || (taken == 0 && rec->type != REC_TRACE))
        return taken;
    ok = open_run(e, err);
    if (ok && taken > 0 && event.time <= e->options.end)
        ok = event_clock_reach(clock, event.time, err) &&
             train_elastic_take(e, &event, err);
    return ok || rec_locate(reader, err) ? 1 : -1;
}

/* While an instant is open, its end is the next thing that happens, at `now`. The clock
 * asks for it once no more events of this time can come. */
static double
model_next(void *self)
{
    const struct train_elastic *e = self;
    double next, ready;
    if (!e->opened)
        return INFINITY;
    if (!e->begun || e->open)
        return e->now;
    if (e->options.rules != TRAIN_ELASTIC_SANE) {
        next = train_elastic_next_tick(e);
        return next < e->options.end ? next : INFINITY;
    }
    next = next_end(e);
    ready = train_fleet_next_ready(e->fleet);
    return ready < next && ready < e->options.end ? ready : next;
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    struct train_elastic *e = self;
    double next;
    if (!e->begun)
        begin(e);
    if (!end_instant(e, err) || !check_work(e, time, err))
        return false;
    if (e->options.rules != TRAIN_ELASTIC_SANE) {
        while ((next = train_elastic_next_tick(e)) <= time && next < e->options.end)
            if (!train_elastic_tick_alone(e, next, err))
                return false;
        return true;
    }
    while ((next = train_fleet_next_ready(e->fleet)) <= time && next < e->options.end) {
        complete(e, next);
        train_elastic_spend(e, next);
        close_instant(e);
    }
    complete(e, time);
    return true;
}

static double
model_close(void *self)
{
    struct train_elastic *e = self;
    if (isinf(e->options.end))
        e->options.end = e->order.framed ? e->order.end : e->order.last;
    return e->options.end;
}

static bool
model_end(void *self, double time, struct rec_error *err)
{
    struct train_elastic *e = self;
    struct train_elastic_result result;
    if (!train_elastic_finish(e, time, &result, err))
        return false;
    if (e->sink.end)
        e->sink.end(e->sink.context, &result);
    return true;
}

const struct event_model train_elastic_model = {"elastic",     model_take, model_next,
                                                model_advance, model_end,  model_close};
