/* Elastic training by the published rules ("published" and "later"), tick by tick. The
 * steps of a tick, their order and their faults are those of the original simulator, so
 * that its results are reproduced exactly; do not mend them here. The sane rules of
 * elastic.c are free of these faults. rampipe/train.h names the source. */
#include "elastic_private.h"

#include <math.h>

void
train_elastic_tick_start(struct train_elastic *e)
{
    e->last_is_step = true;
    e->last_time = e->now;
    e->last_size = train_fleet_count(e->fleet, TRAIN_ACTIVE);
    e->reconfig_end = NAN;
    e->safe = (struct train_mark){e->now, 0};
    train_elastic_tell_step(e, e->now, e->last_size);
}

/* Is `end` seen at this tick? "Later" sees what ends exactly on a tick at that tick,
 * "published" at the next one. */
static bool
passed(const struct train_elastic *e, double end)
{
    return e->options.rules == TRAIN_ELASTIC_LATER ? e->now >= end : e->now > end;
}

/* The seconds of an iteration. The original looks the size up in its table, and stops
 * with KeyError if the size was not measured; here such an iteration never ends. */
static double
iteration(const struct train_elastic *e, uint64_t size)
{
    const struct train_elastic_profile *p = e->options.profile;
    size_t i = train_elastic_profile_find(p, (double)size);
    return i < p->n && p->size[i] == (double)size ? p->seconds[i] : (double)INFINITY;
}

static void
end_checkpoint(struct train_elastic *e)
{
    if (!e->saving || !passed(e, e->save_end))
        return;
    e->saving = false;
    e->last_saved = e->save_step;
    e->safe = e->saved;
    e->result.checkpoints++;
}

/* As in the original, at most one iteration ends in a tick, even if iterations are
 * shorter than ticks. The next one starts at its exact end, not at the tick. */
static void
end_iteration(struct train_elastic *e)
{
    double end = e->last_time + iteration(e, e->last_size);
    if (!passed(e, end))
        return;
    if (!e->saving) {
        e->saving = true;
        e->save_end = end + e->options.profile->checkpoint;
        e->save_step = e->step;
        e->saved = train_elastic_mark(e, end);
    }
    e->step++;
    e->result.iterations++;
    e->last_time = end;
    train_elastic_tell_step(e, end, e->last_size);
}

/* A disturbance during a reconfiguration prolongs it: by "published", by one more
 * reconfiguration time; by "later", the reconfiguration starts again at this tick. */
static void
end_reconfiguration(struct train_elastic *e, bool disturbed)
{
    double late;
    if (disturbed)
        e->reconfig_end =
            (e->options.rules == TRAIN_ELASTIC_LATER ? e->now : e->reconfig_end) +
            e->options.profile->reconfigure;
    if (!passed(e, e->reconfig_end))
        return;
    /* -1 if no iteration was done: last_saved starts at 0, so that training resumes at
     * 1 */
    e->result.lost += e->step - (e->last_saved + 1);
    e->step = e->last_saved + 1;
    e->last_is_step = true;
    e->last_time = e->reconfig_end;
    e->last_size = train_fleet_count(e->fleet, TRAIN_ACTIVE);
    e->reconfig_end = NAN;
    e->phase = e->last_size > 0 ? TRAIN_ELASTIC_TRAINING : TRAIN_ELASTIC_STALLED;
    /* the reconfiguration ended before this tick: the time since its end belongs to the
     * account of the phase that follows */
    late = e->now - e->last_time;
    train_ledger_move(&e->ledger, TRAIN_RECONFIGURE,
                      e->last_size > 0 ? TRAIN_USEFUL : TRAIN_STALL, late,
                      late * (double)e->population);
    train_elastic_tell_step(e, e->last_time, e->last_size);
}

/* Moves instances so that the active ones form whole pipelines again. `over` are the
 * active instances that are left over after the losses. With `grown`, standby instances
 * fill the broken pipeline and form new ones. Without, standby instances fill the broken
 * pipeline if they suffice ("published" asks for one more than needed); else it is
 * dissolved, and its instances go to standby. */
static void
regroup(struct train_elastic *e, bool lost, bool grown)
{
    uint64_t depth = e->options.depth;
    uint64_t over = train_fleet_count(e->fleet, TRAIN_ACTIVE) % depth;
    uint64_t standby = train_fleet_count(e->fleet, TRAIN_STANDBY);

    if (grown) {
        uint64_t moved = standby / depth * depth - (lost ? over : 0);
        train_fleet_move(e->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, moved);
        while (lost && train_fleet_count(e->fleet, TRAIN_STANDBY) >= depth)
            train_fleet_move(e->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, depth);
    } else if (e->options.rules == TRAIN_ELASTIC_LATER ? standby >= depth - over
                                                       : standby > depth - over)
        train_fleet_move(e->fleet, TRAIN_STANDBY, TRAIN_ACTIVE, depth - over);
    else
        train_fleet_move(e->fleet, TRAIN_ACTIVE, TRAIN_STANDBY, over);
}

/* The row that is told has the size before regrouping, as in the original. */
static void
reconfigure(struct train_elastic *e, bool lost, bool grown)
{
    uint64_t size = train_fleet_count(e->fleet, TRAIN_ACTIVE);
    double since = train_elastic_roll_back(e);
    e->saving = false;
    e->last_is_step = false;
    if (isnan(e->reconfig_end))
        e->reconfig_end = e->now + e->options.profile->reconfigure;
    regroup(e, lost, grown);
    e->phase = TRAIN_ELASTIC_RECONFIGURING;
    train_elastic_tell_reconfig(e, size, since);
}

bool
train_elastic_tick(struct train_elastic *e, struct rec_error *err)
{
    bool lost = e->lost > 0, grown;

    /* The losses of this tick have been taken, but as in the original the capacity is
     * compared with the number of instances before them. */
    train_fleet_settle(e->fleet, e->now);
    e->limit = train_fleet_size(e->fleet) +
               (e->options.capacity > e->before ? e->options.capacity - e->before : 0);
    if (!train_elastic_add(e, err))
        return false;
    grown = train_fleet_count(e->fleet, TRAIN_STANDBY) >= e->options.depth;
    end_checkpoint(e);
    if (e->last_is_step)
        end_iteration(e);
    else
        end_reconfiguration(e, lost || grown);
    if (lost || grown)
        reconfigure(e, lost, grown);
    e->lost = 0;
    e->population = train_fleet_size(e->fleet);
    e->ticks++;
    train_elastic_tell_state(e, e->now);
    return true;
}

double
train_elastic_next_tick(const struct train_elastic *e)
{
    return e->options.begin + (double)e->ticks * e->options.tick;
}

bool
train_elastic_tick_alone(struct train_elastic *e, double time, struct rec_error *err)
{
    train_elastic_spend(e, time);
    e->before = train_fleet_size(e->fleet);
    return train_elastic_tick(e, err);
}

bool
train_elastic_tick_until(struct train_elastic *e, double time, struct rec_error *err)
{
    double next;
    while ((next = train_elastic_next_tick(e)) < time)
        if (!train_elastic_tick_alone(e, next, err))
            return false;
    train_elastic_spend(e, time);
    return true;
}
