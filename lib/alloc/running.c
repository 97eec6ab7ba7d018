/* The running jobs of an admission (running.h). */
#include "running.h"

#include <math.h>
#include <stdlib.h>

bool
occupancy_init(struct occupancy *o, uint32_t nservers, size_t nwords,
               struct rec_error *err)
{
    o->nwords = nwords;
    o->nfree = nservers;
    o->held = calloc(nwords, sizeof *o->held);
    o->owner = calloc(nservers, sizeof *o->owner);
    return (o->held && o->owner) || rec_fail_memory(err);
}

void
occupancy_free(struct occupancy *o)
{
    for (size_t i = 0; i < o->nrunning; i++) {
        if (o->running[i].layout)
            sim_layout_release(o->running[i].layout);
        free(o->running[i].taken);
    }
    free(o->held);
    free(o->owner);
    event_queue_free(&o->ends);
    free(o->running);
    free(o->vacant);
}

bool
occupancy_set_down(struct occupancy *o, uint32_t server)
{
    if (o->owner[server] == ALLOC_DOWN)
        return false;
    o->owner[server] = ALLOC_DOWN;
    o->nfree--;
    return true;
}

/* Gives servers to a job, counted from 1, or with owner 0 back. */
static void
hand_over(struct occupancy *o, const struct running *job, uint64_t owner)
{
    for (size_t w = 0; w < o->nwords; w++)
        o->held[w] ^= job->taken[w];
    o->marks ^= job->marks;
    o->state ^= job->mark;
    for (size_t w = 0; !o->anonymous && w < o->nwords; w++)
        for (uint64_t left = job->taken[w]; left; left &= left - 1)
            o->owner[w * 64 + (size_t)__builtin_ctzll(left)] = owner;
}

/* The same for the same servers and the same end, whatever else is free. */
static uint64_t
mark_of(uint64_t servers, double finish)
{
    uint64_t bits;
    memcpy(&bits, &finish, sizeof bits);
    return rec_mix(servers ^ rec_mix(bits));
}

/* An entry that is unused. */
static bool
find_entry(struct occupancy *o, uint32_t *index, struct rec_error *err)
{
    if (o->nvacant) {
        *index = o->vacant[--o->nvacant];
        return true;
    }
    if (!rec_grow(&o->running, &o->running_room, o->nrunning + 1, sizeof *o->running,
                  err))
        return false;
    *index = (uint32_t)o->nrunning;
    o->running[*index].taken = malloc(o->nwords * sizeof *o->held);
    if (!o->running[*index].taken)
        return rec_fail_memory(err);
    o->nrunning++;
    return true;
}

bool
occupancy_start(struct occupancy *o, const struct running *job, struct rec_error *err)
{
    struct running *r;
    uint32_t index;
    uint64_t *taken;
    if (!find_entry(o, &index, err))
        return false;
    r = &o->running[index];
    taken = r->taken;
    *r = *job;
    r->taken = memcpy(taken, job->taken, o->nwords * sizeof *taken);
    r->runs = true;
    r->mark = mark_of(r->marks, r->finish);
    if (r->layout)
        sim_layout_hold(r->layout);
    o->started++;
    o->nfree -= r->nservers;
    hand_over(o, r, o->started);
    return event_queue_push(&o->ends, (struct event_entry){r->finish, index}, err);
}

double
occupancy_next_end(const struct occupancy *o)
{
    return o->ends.n ? o->ends.event[0].time : (double)INFINITY;
}

const struct running *
occupancy_next(const struct occupancy *o)
{
    return &o->running[o->ends.event[0].key];
}

bool
occupancy_end(struct occupancy *o, struct rec_error *err)
{
    uint32_t index = (uint32_t)event_queue_pop(&o->ends).key;
    struct running *r = &o->running[index];
    o->nfree += r->nservers;
    hand_over(o, r, 0);
    if (r->layout)
        sim_layout_release(r->layout);
    r->layout = NULL;
    r->runs = false;
    if (!rec_grow(&o->vacant, &o->vacant_room, o->nvacant + 1, sizeof *o->vacant, err))
        return false;
    o->vacant[o->nvacant++] = index;
    return true;
}
