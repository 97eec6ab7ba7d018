/*
 * Jobs that wait: an array of entries, and two queues of events that name entries. A
 * queue cannot remove an event from its middle, so events of jobs that are gone stay
 * until they come up. The key of an event has the number of its job besides the entry's
 * index: so an old event is not taken for one of the job that uses the entry now.
 */
#include "waiting.h"

#include <math.h>
#include <stdlib.h>

/* The job that an event names; NULL: it no longer waits. */
static struct waiter *
waiter_of(const struct waiters *w, struct event_entry event)
{
    struct waiter *waiter = &w->waiter[(uint32_t)event.key];
    return waiter->texts && waiter->key == event.key ? waiter : NULL;
}

/* The first event of a job that still waits; NULL: there is none. */
static const struct event_entry *
first_of(const struct waiters *w, struct event_queue *queue)
{
    while (queue->n && !waiter_of(w, queue->event[0]))
        event_queue_pop(queue);
    return queue->n ? &queue->event[0] : NULL;
}

/* Removes the events of jobs that are gone, once they are more than half of a queue: so
 * the work is O(log n) for each event, amortized. The others keep their order, because
 * no two events are equal. */
static bool
tidy(const struct waiters *w, struct event_queue *queue, struct rec_error *err)
{
    size_t all = queue->n;
    if (all <= 2 * w->n + 16)
        return true;
    queue->n = 0;
    for (size_t i = 0; i < all; i++)
        if (waiter_of(w, queue->event[i]) &&
            !event_queue_push(queue, queue->event[i], err))
            return false;
    return true;
}

bool
waiters_add(struct waiters *w, const struct waiter *from, double size, double chance,
            struct rec_error *err)
{
    const struct graph_job *job = &from->job;
    struct waiter *waiter;
    uint32_t place;
    char *texts;

    if (w->nvacant)
        place = w->vacant[w->nvacant - 1];
    else if (rec_grow(&w->waiter, &w->room, w->nplaces + 1, sizeof *w->waiter, err))
        w->waiter[place = (uint32_t)w->nplaces++].texts = NULL;
    else
        return false;
    if (!(texts = malloc(job->id.len + job->graphs.len + 1)))
        return rec_fail_memory(err);
    w->nvacant -= w->nvacant > 0;
    memcpy(texts, job->id.ptr, job->id.len);
    memcpy(texts + job->id.len, job->graphs.ptr, job->graphs.len);
    texts[job->id.len + job->graphs.len] = '\0';
    waiter = &w->waiter[place];
    *waiter = *from;
    waiter->texts = texts;
    waiter->job.id.ptr = texts;
    waiter->job.graphs.ptr = texts + job->id.len;
    waiter->key = (uint64_t)++w->counted << 32 | place;
    w->n++;
    return event_queue_push(&w->order, (struct event_entry){size, waiter->key}, err) &&
           (!isfinite(chance) || waiters_give_chance(w, waiter, chance, err));
}

struct waiter *
waiters_first(struct waiters *w)
{
    const struct event_entry *event = first_of(w, &w->order);
    return event ? waiter_of(w, *event) : NULL;
}

double
waiters_next_chance(struct waiters *w)
{
    const struct event_entry *event = first_of(w, &w->chances);
    return event ? event->time : (double)INFINITY;
}

struct waiter *
waiters_take_chance(struct waiters *w)
{
    return waiter_of(w, event_queue_pop(&w->chances));
}

bool
waiters_give_chance(struct waiters *w, const struct waiter *waiter, double time,
                    struct rec_error *err)
{
    time = time > 0 ? time : 0; /* rounding may make it negative: queues need >= 0 */
    return event_queue_push(&w->chances, (struct event_entry){time, waiter->key}, err);
}

bool
waiters_remove(struct waiters *w, struct waiter *waiter, struct rec_error *err)
{
    if (!rec_grow(&w->vacant, &w->vacant_room, w->nvacant + 1, sizeof *w->vacant, err))
        return false;
    w->vacant[w->nvacant++] = (uint32_t)waiter->key;
    free(waiter->texts);
    waiter->texts = NULL;
    w->n--;
    return tidy(w, &w->order, err) && tidy(w, &w->chances, err);
}

void
waiters_free(struct waiters *w)
{
    for (size_t i = 0; i < w->nplaces; i++)
        free(w->waiter[i].texts);
    free(w->waiter);
    free(w->vacant);
    event_queue_free(&w->order);
    event_queue_free(&w->chances);
    *w = (struct waiters){0};
}
