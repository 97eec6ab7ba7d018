/* One clock for all models: the least next time happens first. */
#include "rampipe/sim.h"

#include <math.h>
#include <stdlib.h>

struct sim_clocked {
    const struct sim_model *model;
    void *self;
};

bool
sim_clock_add(struct sim_clock *clock, const struct sim_model *model, void *self,
              struct rec_error *err)
{
    if (!rec_grow(&clock->model, &clock->room, clock->n + 1, sizeof *clock->model, err))
        return false;
    clock->model[clock->n++] = (struct sim_clocked){model, self};
    return true;
}

/* The model whose next time is least, and that time. */
static struct sim_clocked *
first(struct sim_clock *clock, double *time)
{
    struct sim_clocked *least = NULL;
    *time = (double)INFINITY;
    for (size_t i = 0; i < clock->n; i++) {
        double next = clock->model[i].model->next(clock->model[i].self);
        if (next < *time) {
            *time = next;
            least = &clock->model[i];
        }
    }
    return least;
}

bool
sim_clock_reach(struct sim_clock *clock, double time, struct rec_error *err)
{
    struct sim_clocked *model;
    double next;
    while ((model = first(clock, &next)) && next < time)
        if (!model->model->advance(model->self, next, err))
            return false;
    return true;
}

int
sim_clock_take(struct sim_clock *clock, const struct rec_reader *reader,
               const struct rec *rec, struct rec_error *err)
{
    for (size_t i = 0; i < clock->n; i++) {
        int taken =
            clock->model[i].model->take(clock->model[i].self, clock, reader, rec, err);
        if (taken != 0)
            return taken;
    }
    return 0;
}

bool
sim_clock_end(struct sim_clock *clock, double time, struct rec_error *err)
{
    struct sim_clocked *model;
    double next;
    while ((model = first(clock, &next)) && next <= time)
        if (!model->model->advance(model->self, next, err))
            return false;
    for (size_t i = 0; i < clock->n; i++)
        if (!clock->model[i].model->end(clock->model[i].self, time, err))
            return false;
    return true;
}

void
sim_clock_free(struct sim_clock *clock)
{
    free(clock->model);
    *clock = (struct sim_clock){0};
}
