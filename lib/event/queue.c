/* The event queue: a heap with four children a node. It is half as deep as one with two
 * children, and has half of its cache misses. */
#include "rampipe/event.h"

#include <stdlib.h>

/*
 * An event's rank. The bits of a double >= 0, taken as an integer, have the order of the
 * doubles, so time and key together make one wide integer. Comparing two of them takes no
 * branch, which the processor would often predict wrongly.
 */
__extension__ typedef unsigned __int128 wide;

static inline wide
rank(struct event_entry event)
{
    uint64_t bits;
    memcpy(&bits, &event.time, sizeof bits);
    return (wide)bits << 64 | event.key;
}

static inline bool
before(struct event_entry a, struct event_entry b)
{
    return rank(a) < rank(b);
}

bool
event_queue_push(struct event_queue *queue, struct event_entry event,
                 struct rec_error *err)
{
    size_t i = queue->n;
    if (i == queue->room &&
        !rec_grow(&queue->event, &queue->room, i + 1, sizeof *queue->event, err))
        return false;
    queue->n++;
    for (; i > 0 && before(event, queue->event[(i - 1) / 4]); i = (i - 1) / 4)
        queue->event[i] = queue->event[(i - 1) / 4];
    queue->event[i] = event;
    return true;
}

struct event_entry
event_queue_pop(struct event_queue *queue)
{
    struct event_entry *event = queue->event, first = event[0];
    struct event_entry last = event[--queue->n];
    size_t i = 0, n = queue->n, child;

    /* The hole at the top sinks to the bottom without a look at the last event, which
     * most likely belongs there; from there the last event rises, seldom far. */
    while ((child = 4 * i + 1) + 3 < n) {
        size_t left = child + before(event[child + 1], event[child]);
        size_t right = child + 2 + before(event[child + 3], event[child + 2]);
        child = before(event[right], event[left]) ? right : left;
        event[i] = event[child];
        i = child;
    }
    if (child < n) {
        size_t least = child;
        for (child++; child < n; child++)
            least = before(event[child], event[least]) ? child : least;
        event[i] = event[least];
        i = least;
    }
    for (; i > 0 && before(last, event[(i - 1) / 4]); i = (i - 1) / 4)
        event[i] = event[(i - 1) / 4];
    event[i] = last;
    return first;
}

void
event_queue_replace(struct event_queue *queue, struct event_entry with)
{
    struct event_entry *event = queue->event;
    size_t i = 0, n = queue->n;
    for (size_t child; (child = 4 * i + 1) < n; i = child) {
        size_t last = child + 3 < n ? child + 3 : n - 1, least = child;
        for (child++; child <= last; child++)
            least = before(event[child], event[least]) ? child : least;
        child = least;
        if (!before(event[child], with))
            break;
        event[i] = event[child];
    }
    event[i] = with;
}

void
event_queue_free(struct event_queue *queue)
{
    free(queue->event);
    *queue = (struct event_queue){0};
}
