/* One clock for all models: the earliest event of all happens first. There are few
 * models, so each is asked for its next time instead of a queue being kept. */
#include "rampipe/event.h"

#include <math.h>
#include <stdlib.h>

struct event_clocked {
    const struct event_model *model;
    void *self;
    double end; /* later events do not happen, seconds */
};

bool
event_clock_add(struct event_clock *clock, const struct event_model *model, void *self,
                struct rec_error *err)
{
    if (!rec_grow(&clock->model, &clock->room, clock->n + 1, sizeof *clock->model, err))
        return false;
    clock->model[clock->n++] = (struct event_clocked){model, self, (double)INFINITY};
    return true;
}

/* The model with the earliest event, and the *time of it; NULL: no model has one. */
static struct event_clocked *
first(struct event_clock *clock, double *time)
{
    struct event_clocked *least = NULL;
    *time = (double)INFINITY;
    for (size_t i = 0; i < clock->n; i++) {
        double next = clock->model[i].model->next(clock->model[i].self);
        if (next < *time && next <= clock->model[i].end) {
            *time = next;
            least = &clock->model[i];
        }
    }
    return least;
}

/* Lets all events up to and at `time` happen. A model that is alone is advanced all the
 * way at once, which saves asking it after each event. */
static bool
happen(struct event_clock *clock, double time, struct rec_error *err)
{
    struct event_clocked *model;
    double next;
    while ((model = first(clock, &next)) && next <= time)
        if (!model->model->advance(model->self,
                                   clock->n == 1 ? fmin(time, model->end) : next, err))
            return false;
    return true;
}

/* Events at `time` itself must wait for the record, which may come before them. */
bool
event_clock_reach(struct event_clock *clock, double time, struct rec_error *err)
{
    return happen(clock, nextafter(time, -(double)INFINITY), err);
}

int
event_clock_take(struct event_clock *clock, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err)
{
    int any = 0;
    for (size_t i = 0; i < clock->n; i++) {
        int taken =
            clock->model[i].model->take(clock->model[i].self, clock, reader, rec, err);
        if (taken < 0)
            return -1;
        any |= taken;
    }
    return any;
}

bool
event_clock_end(struct event_clock *clock, double time, struct rec_error *err)
{
    struct event_clocked *model;
    for (size_t i = 0; i < clock->n; i++) {
        model = &clock->model[i];
        model->end = time;
        if (model->model->close)
            model->end = fmin(time, model->model->close(model->self));
    }
    if (!happen(clock, (double)INFINITY, err))
        return false;
    for (size_t i = 0; i < clock->n; i++) {
        model = &clock->model[i];
        if (!model->model->end(model->self, model->end, err))
            return false;
    }
    return true;
}

void
event_clock_free(struct event_clock *clock)
{
    free(clock->model);
    *clock = (struct event_clock){0};
}
