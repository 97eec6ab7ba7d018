/* The interface of a training step: at once, piece by piece and on a clock, and what is
 * said of a step that cannot end. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

static bool
fail_overflow(const struct machine *m, struct rec_error *err)
{
    return rec_fail(err, REC_DATA,
                    "graph '%s': the times of a step add up to more than a number holds",
                    m->graph->id);
}

/* No event is left, but ops are: the graph has a cycle, or times are not finite. */
static bool
fail_deadlock(const struct machine *m, struct rec_error *err)
{
    struct rec_error why;
    uint32_t *order = calloc(m->graph->nops + 1, sizeof *order);
    bool ok;

    if (!order)
        return rec_fail_memory(err);
    ok = graph_order(m->graph, order, &why);
    free(order);
    if (ok && (m->ends.n || m->arrivals.n))
        return fail_overflow(m, err);
    /* Of what waits for a failed link no lane is to blame: those that wait for each other
     * do so over links that are well, too, which was tried before. */
    if (ok && m->ops_left && m->placed->turn && !(m->nsending && m->placed->may_stand))
        return sim_machine_fail_lanes(m, err);
    if (ok && m->nsending)
        return rec_fail(err, m->placed->may_stand ? REC_NO : REC_BUG,
                        "graph '%s': %zu batches have left and never arrive by the "
                        "courier '%s', with %zu ops left",
                        m->graph->id, m->nsending, m->courier->name, m->ops_left);
    if (ok)
        return rec_fail(err, REC_BUG, "graph '%s': the step stopped with %zu ops left",
                        m->graph->id, m->ops_left);
    return rec_fail(err, why.code, "deadlock with %zu of %zu ops left to run: %s",
                    m->ops_left, m->graph->nops, why.text);
}

/* Starts a step at `time`: what takes no time has happened when it returns. `drives`: the
 * machine lets the events of a courier happen. */
static bool
start(struct machine *m, const struct sim_placed *placed,
      const struct sim_observer *observer, double time, bool drives,
      struct sim_step *step, struct rec_error *err)
{
    *m = (struct machine){.placed = placed,
                          .graph = placed->graph,
                          .observer = observer,
                          .result = step,
                          .started = time,
                          .now = time,
                          .drives = drives};
    *step = (struct sim_step){0};
    if (placed->graph->nops + placed->graph->ncolls >= GRAPH_SYNC)
        return rec_fail(err, REC_DATA, "graph '%s' has too many ops", placed->graph->id);
    return sim_machine_prepare(m, err) &&
           (isfinite(step->sequential) || fail_overflow(m, err)) &&
           sim_machine_settle(m, err);
}

static bool
end(const struct machine *m, struct rec_error *err)
{
    m->result->seconds = m->now - m->started;
    m->result->events =
        m->graph->nops + m->graph->ndeps + m->graph->nafter + m->graph->ncolls;
    if (m->ops_left || m->batches_left)
        return fail_deadlock(m, err);
    return !m->memory || sim_memory_finish(m->memory, m->now, m->result, err);
}

bool
sim_step(const struct sim_placed *placed, const struct sim_observer *observer,
         struct sim_step *step, struct rec_error *err)
{
    struct machine m;
    bool ok = start(&m, placed, observer, 0, true, step, err) &&
              sim_machine_advance(&m, (double)INFINITY, err) && end(&m, err);
    sim_machine_release(&m);
    return ok;
}

/* ---- piece by piece ------------------------------------------------------ */

struct sim_stepping {
    struct machine machine;
    struct sim_placed placed;
    struct sim_observer observer;
    struct sim_step step;
};

struct sim_stepping *
sim_stepping_new(const struct sim_placed *placed, const struct sim_observer *observer,
                 double time, struct rec_error *err)
{
    struct sim_stepping *s = calloc(1, sizeof *s);
    if (!s) {
        rec_fail_memory(err);
        return NULL;
    }
    s->placed = *placed;
    if (observer)
        s->observer = *observer;
    if (start(&s->machine, &s->placed, observer ? &s->observer : NULL, time, false,
              &s->step, err))
        return s;
    sim_stepping_free(s);
    return NULL;
}

double
sim_stepping_next(struct sim_stepping *s)
{
    return sim_machine_next(&s->machine);
}

void
sim_stepping_arrive(struct sim_stepping *s, uint64_t batch, double time)
{
    sim_machine_arrive(&s->machine, batch, time);
}

bool
sim_stepping_advance(struct sim_stepping *s, double time, struct rec_error *err)
{
    return sim_machine_advance(&s->machine, time, err);
}

bool
sim_stepping_end(struct sim_stepping *s, struct sim_step *step, struct rec_error *err)
{
    bool ok = end(&s->machine, err);
    *step = s->step;
    return ok;
}

void
sim_stepping_free(struct sim_stepping *s)
{
    if (!s)
        return;
    sim_machine_release(&s->machine);
    free(s);
}

/* ---- on a clock ---------------------------------------------------------- */

static int
model_take(void *self, struct event_clock *clock, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    (void)self, (void)clock, (void)reader, (void)rec, (void)err;
    return 0; /* a step reads no records */
}

static double
model_next(void *self)
{
    return sim_stepping_next(self);
}

static bool
model_advance(void *self, double time, struct rec_error *err)
{
    return sim_stepping_advance(self, time, err);
}

/* Nothing to do: the owner of the step calls sim_stepping_end(). */
static bool
model_end(void *self, double time, struct rec_error *err)
{
    (void)self, (void)time, (void)err;
    return true;
}

const struct event_model sim_step_model = {"step",        model_take, model_next,
                                           model_advance, model_end,  NULL};
