/* The event queue: a heap with four children a node, which halves the cache misses of
 * two. */
#include "rampipe/sim.h"

#include <stdlib.h>

static inline bool
before(struct sim_event a, struct sim_event b)
{
    return a.time < b.time || (a.time == b.time && a.key < b.key);
}

bool
sim_queue_push(struct sim_queue *queue, struct sim_event event, struct rec_error *err)
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

struct sim_event
sim_queue_pop(struct sim_queue *queue)
{
    struct sim_event first = queue->event[0], last = queue->event[--queue->n];
    size_t i = 0, n = queue->n;

    for (;;) {
        size_t child = 4 * i + 1, least = child;
        size_t end = child + 4 < n ? child + 4 : n;
        if (child >= n)
            break;
        for (child++; child < end; child++)
            if (before(queue->event[child], queue->event[least]))
                least = child;
        if (!before(queue->event[least], last))
            break;
        queue->event[i] = queue->event[least];
        i = least;
    }
    queue->event[i] = last;
    return first;
}

void
sim_queue_free(struct sim_queue *queue)
{
    free(queue->event);
    *queue = (struct sim_queue){0};
}
