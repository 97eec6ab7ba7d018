/*
 * Steps of several jobs on one clock and one carrier. The carrier of a job changes when
 * others come or go, while its step goes on. So a step knows only its run, which passes
 * on what it sends to the carrier of the moment.
 */
#include "company.h"
#include "first.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

static const struct sim_courier *
courier_of(const struct sim_together *together)
{
    return together->pool->sharing->courier;
}

/* ---- what a step knows of its courier -------------------------------------- */

static double
pass_key(void *self, const struct sim_placed *placed, uint32_t dep)
{
    const struct sim_run *run = self;
    return courier_of(run->together)->key(run->together->carrier, placed, dep);
}

static bool
pass_send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
          struct rec_error *err)
{
    struct sim_run *run = self;
    run->sending++;
    return courier_of(run->together)
        ->send(run->together->carrier, batch, dep, exchange, time, err);
}

/* Steps that share a clock do not ask for arrivals: they are told. */
static const struct sim_courier passing = {
    .name = "company", .key = pass_key, .send = pass_send};

/* ---- the steps of a run ---------------------------------------------------- */

static bool
begin_step(struct sim_run *run, double time, struct rec_error *err)
{
    struct sim_placed placed;
    if (!sim_layout_place(&run->member, &placed, err) ||
        !sim_first_begin(run->member.first, run->member.layout, time, err))
        return false;
    sim_layout_share(&run->member, &placed, &passing);
    placed.carrier = run;
    if (!(run->stepping = sim_stepping_new(&placed, sim_first_observer(run->member.first),
                                           time, err)))
        return false;
    run->begun = time;
    run->next = sim_stepping_next(run->stepping);
    return true;
}

static bool
end_step(struct sim_run *run, double time, struct rec_error *err)
{
    struct sim_step step;
    if (!sim_stepping_end(run->stepping, &step, err))
        return false;
    if (!(time > run->begun))
        return rec_fail(err, REC_DATA,
                        "graph '%s': a step is too short to be simulated at %.17g s",
                        run->member.layout->where.graph->id, time);
    sim_stepping_free(run->stepping);
    run->stepping = NULL;
    if (!sim_first_end(run->member.first, time, err))
        return false;
    run->member.first = NULL; /* only the first step is asked for */
    run->next = (double)INFINITY;
    run->sum.seconds += step.seconds;
    run->sum.comm += step.comm;
    run->sum.comp += step.comp;
    run->sum.busy += step.busy;
    run->steps++;
    run->left--;
    run->ended = time;
    return run->left <= 0 || begin_step(run, time, err);
}

struct sim_run *
sim_run_new(const struct sim_layouts *pool, const struct sim_member *member, double left,
            double passed, double time, struct rec_error *err)
{
    struct sim_together *own = sim_together_new(pool, err);
    struct sim_run *run = own ? calloc(1, sizeof *run) : NULL;
    double begun = fmax(0, time - passed), stopped = 0;

    if (!run) {
        if (own)
            rec_fail_memory(err);
        sim_together_free(own);
        return NULL;
    }
    *run = (struct sim_run){.member = *member, .next = (double)INFINITY, .left = left};
    if (!sim_together_join(own, run, begun, err)) {
        sim_together_free(own);
        free(run);
        return NULL;
    }
    if (begin_step(run, begun, err)) {
        bool ok = true;
        while (ok && isfinite(stopped))
            ok = sim_together_advance(own, time, false, &stopped, err);
        if (ok)
            return run;
    }
    sim_run_free(run);
    return NULL;
}

/* ---- who is together ------------------------------------------------------- */

struct sim_together *
sim_together_new(const struct sim_layouts *pool, struct rec_error *err)
{
    struct sim_together *together = calloc(1, sizeof *together);
    if (!together) {
        rec_fail_memory(err);
        return NULL;
    }
    together->pool = pool;
    if ((together->carrier = pool->sharing->open(pool->shared, err)))
        return together;
    free(together);
    return NULL;
}

void
sim_together_free(struct sim_together *together)
{
    if (!together)
        return;
    together->pool->sharing->close(together->carrier);
    free(together->run);
    free(together);
}

/* Index of the first run whose number is not less. */
static size_t
position(const struct sim_together *together, uint32_t number)
{
    size_t from = 0, to = together->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (together->run[middle]->member.number < number)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void
leave(struct sim_run *run)
{
    struct sim_together *together = run->together;
    size_t i;
    if (!together)
        return;
    i = position(together, run->member.number);
    memmove(together->run + i, together->run + i + 1,
            (--together->n - i) * sizeof(struct sim_run *));
    run->together = NULL;
    if (together->n == 0)
        sim_together_free(together);
}

void
sim_run_free(struct sim_run *run)
{
    if (!run)
        return;
    leave(run);
    sim_first_stop(run->member.first);
    sim_stepping_free(run->stepping);
    free(run);
}

bool
sim_together_join(struct sim_together *together, struct sim_run *run, double time,
                  struct rec_error *err)
{
    void *from = run->together ? run->together->carrier : NULL;
    size_t i = position(together, run->member.number);
    if (!rec_grow(&together->run, &together->room, together->n + 1,
                  sizeof(struct sim_run *), err) ||
        !together->pool->sharing->take(together->carrier, &run->member, from, time, err))
        return false;
    memmove(together->run + i + 1, together->run + i,
            (together->n++ - i) * sizeof(struct sim_run *));
    together->run[i] = run;
    leave(run);
    run->together = together;
    return true;
}

bool
sim_together_count(struct sim_together *together, double time, struct rec_error *err)
{
    const struct sim_sharing *sharing = together->pool->sharing;
    return !sharing->count || sharing->count(together->carrier, time, err);
}

/* ---- the clock ------------------------------------------------------------- */

double
sim_together_next(const struct sim_together *together)
{
    double next = courier_of(together)->next(together->carrier);
    for (size_t i = 0; i < together->n; i++)
        next = together->run[i]->next < next ? together->run[i]->next : next;
    return next;
}

struct arrivals {
    struct sim_together *together;
    double time;
};

static void
hand_over(void *context, uint64_t batch)
{
    const struct arrivals *arrivals = context;
    const struct sim_together *together = arrivals->together;
    struct sim_run *run = together->run[position(together, (uint32_t)(batch >> 32))];
    run->sending--;
    run->next = arrivals->time;
    sim_stepping_arrive(run->stepping, batch, arrivals->time);
}

/* Lets what the run does at `time` happen. *ended: a step of it has ended, *last: that
 * was its last one. */
static bool
happen(struct sim_run *run, double time, bool *ended, bool *last, struct rec_error *err)
{
    if (!sim_stepping_advance(run->stepping, time, err))
        return false;
    run->next = sim_stepping_next(run->stepping);
    if (run->next < (double)INFINITY || run->sending > 0)
        return true;
    if (!end_step(run, time, err))
        return false;
    *ended = true;
    *last = *last || !run->stepping;
    return true;
}

/* True if a step waits for a link that has failed. The link may recover later. */
static bool
stands(const struct sim_together *together)
{
    const struct sim_sharing *sharing = together->pool->sharing;
    for (size_t i = 0; sharing->still && i < together->n; i++)
        if (sharing->still(together->carrier, together->run[i]->member.number) != NONE)
            return true;
    return false;
}

/* No event is left. False: a step still waits, for what the courier never brings. */
static bool
check_over(const struct sim_together *together, struct rec_error *err)
{
    struct sim_step step;
    if (stands(together))
        return true;
    for (size_t i = 0; i < together->n; i++)
        if (together->run[i]->stepping &&
            !sim_stepping_end(together->run[i]->stepping, &step, err))
            return false;
    return true;
}

bool
sim_together_advance(struct sim_together *together, double until, bool each,
                     double *stopped, struct rec_error *err)
{
    const struct sim_courier *courier = courier_of(together);
    double time;
    *stopped = (double)INFINITY;
    while ((time = sim_together_next(together)) <= until && isfinite(time)) {
        struct arrivals arrivals = {together, time};
        bool ended = false, last = false;
        if (courier->next(together->carrier) <= time &&
            !courier->advance(together->carrier, time, hand_over, &arrivals, err))
            return false;
        for (size_t i = 0; i < together->n; i++)
            if (together->run[i]->next <= time &&
                !happen(together->run[i], time, &ended, &last, err))
                return false;
        if (last || (each && ended)) {
            *stopped = time;
            return true;
        }
    }
    return isfinite(time) || check_over(together, err);
}
