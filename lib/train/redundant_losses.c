/* Training with redundant computation: the effect of losses. The instance before a lost
 * one in its pipeline has the lost stage's parameters and takes over its work (fallback);
 * if it is gone, or does two stages already, the failure is fatal. */
#include "redundant_private.h"

#include <math.h>

bool
train_redundant_end_life(struct train_redundant *r, const struct train_instance *instance,
                         double time, struct rec_error *err)
{
    double came = instance->ready - (double)r->profile->creation_ms;
    return metrics_dist_add(&r->lifetime, time - came, err);
}

/* The place of the previous stage in the same pipeline; the last stage is before stage
 * 0. */
static uint64_t
before(const struct train_redundant *r, uint64_t place)
{
    return place % r->stages > 0 ? place - 1 : place + r->stages - 1;
}

/* Marks the place of a lost instance, and returns whether the failure is fatal. It is
 * fatal if the instance did two stages, or if the one before cannot take over. The loss
 * of an instance that is in no pipeline never is. */
static bool
is_fatal(struct train_redundant *r, const struct train_instance *gone)
{
    struct place *lost, *neighbour;
    if (gone->state != TRAIN_ACTIVE)
        return false;
    lost = &r->place[gone->place];
    neighbour = &r->place[before(r, gone->place)];
    lost->there = false;
    if (lost->doubled) {
        r->doubled--;
        return true;
    }
    if (!neighbour->there) {
        /* The neighbour went before. If the stage before it does its work, that stage
         * would have to do three; else the neighbour's loss was fatal already. */
        neighbour = &r->place[before(r, before(r, gone->place))];
        return neighbour->there && neighbour->doubled;
    }
    if (neighbour->doubled)
        return true;
    neighbour->doubled = true;
    r->doubled++;
    return false;
}

/* A fallback slows down all later steps once; end_step() prolongs the running one. */
static void
slow_down(struct train_redundant *r)
{
    r->fallback = true;
    r->handled = false;
    r->fallback_steps = r->steps;
    r->fallback_time = r->now;
    r->step_ms = trunc(r->step_ms * r->profile->slowdown);
    train_redundant_tell(r, "fallback");
}

/* One instance is lost. Statistics first; then the failure is fatal, slows training down,
 * or changes nothing. */
static bool
lose(struct train_redundant *r, const struct train_instance *gone, struct rec_error *err)
{
    if (!train_redundant_end_life(r, gone, r->now, err) ||
        (!isnan(r->last_removal) &&
         !metrics_dist_add(&r->gap, r->now - r->last_removal, err)))
        return false;
    r->changed = train_redundant_mark(r);
    r->last_removal = r->now;
    r->result.preempted++;
    r->result.lost_active += gone->state == TRAIN_ACTIVE;
    r->broken = r->broken || gone->state != TRAIN_PREPARING;
    if (is_fatal(r, gone)) {
        r->result.fatal++;
        if (r->status == TRAIN_REDUNDANT_RUNNING)
            train_ledger_roll_back(&r->ledger, r->step_start, r->now);
        train_redundant_start_rendezvous(r, true, "rendezvous_global");
        train_redundant_tell(r, "fatal");
        return true;
    }
    train_redundant_tell(r, "remove");
    if (r->status == TRAIN_REDUNDANT_RUNNING && !r->fallback)
        slow_down(r);
    return true;
}

/* Carries out one preemption. Named victims were marked as leaving when it was kept, in
 * order, and are taken from the front. Unnamed victims are chosen one by one, among the
 * instances that no preemption of this instant names, and are taken from the back. */
static bool
carry_out(struct train_redundant *r, struct removal removal, struct rec_error *err)
{
    struct train_instance gone;
    if (!removal.named && removal.count > train_fleet_staying(r->fleet))
        removal.count = train_fleet_staying(r->fleet);
    for (; removal.count > 0; removal.count--)
        if ((!removal.named && !train_fleet_choose(r->fleet, 1, err)) ||
            (train_fleet_take(r->fleet, !removal.named, &gone) && !lose(r, &gone, err)))
            return false;
    return true;
}

/* Carries out the removals that were kept, after all additions of their instant. */
bool
train_redundant_end_instant(struct train_redundant *r, struct rec_error *err)
{
    for (size_t i = 0; i < r->nremovals; i++)
        if (!carry_out(r, r->removal[i], err))
            return false;
    r->nremovals = 0;
    return true;
}

bool
train_redundant_keep_removal(struct train_redundant *r, const struct spot_event *event,
                             struct rec_error *err)
{
    struct removal removal = {event->count, event->ids.len > 0};
    uint64_t staying = train_fleet_staying(r->fleet);

    if (!rec_grow(&r->removal, &r->removal_room, r->nremovals + 1, sizeof *r->removal,
                  err) ||
        (removal.named && !train_fleet_leave(r->fleet, event->ids, err)))
        return false;
    if (removal.named)
        removal.count = staying - train_fleet_staying(r->fleet);
    r->removal[r->nremovals++] = removal;
    return true;
}
