/* Runs the orders of a pipeline's devices. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

struct state {
    const struct parallel_schedule *schedule;
    const struct parallel_pipe *pipe;
    size_t each; /* items of a device */
    struct parallel_item *item;
    size_t *next;    /* of each device: the head of its list */
    double *free;    /* of each device: when its last pass ends */
    double *end[2];  /* forward and backward, [virtual stage][microbatch]; NAN: not yet */
    double *sent[2]; /* likewise: when the result is on the device of the next stage */
    double *link[2]; /* of each device: when its link is free to send again */
    uint32_t *inflight, *peak;
    uint32_t *waiting; /* a stack of devices that may go on */
    size_t nwaiting;
    bool *listed; /* devices that stand in it */
};

static double *
ended(const struct state *s, enum parallel_pass pass, uint32_t stage, uint32_t microbatch)
{
    return &s->end[pass][(size_t)stage * s->pipe->microbatches + microbatch];
}

/* When the result of a pass is where the next virtual stage is. */
static double *
arrives(const struct state *s, enum parallel_pass pass, uint32_t stage,
        uint32_t microbatch)
{
    return &s->sent[pass][(size_t)stage * s->pipe->microbatches + microbatch];
}

/* When the input of an item of a virtual stage is there; NAN: that is not known yet. */
static double
ready(const struct state *s, const struct parallel_item *item, uint32_t stage)
{
    uint32_t last = s->pipe->stages * s->pipe->chunks - 1;
    if (item->pass == PARALLEL_FORWARD)
        return stage == 0 ? 0
                          : *arrives(s, PARALLEL_FORWARD, stage - 1, item->microbatch);
    if (item->pass == PARALLEL_WEIGHT)
        return *ended(s, PARALLEL_BACKWARD, stage, item->microbatch);
    double own = *ended(s, PARALLEL_FORWARD, stage, item->microbatch);
    double from =
        stage == last ? own : *arrives(s, PARALLEL_BACKWARD, stage + 1, item->microbatch);
    return isnan(own) ? own : from;
}

static void
wake(struct state *s, uint32_t device)
{
    if (!s->listed[device]) {
        s->listed[device] = true;
        s->waiting[s->nwaiting++] = device;
    }
}

/* Sends the result of a pass of device r, whose link carries one message after the other
 * in each direction, to the next virtual stage. */
static void
send(struct state *s, const struct parallel_item *item, uint32_t r, uint32_t stage)
{
    enum parallel_pass pass = item->pass;
    double at = *ended(s, pass, stage, item->microbatch), *link = &s->link[pass][r];
    uint32_t next = pass == PARALLEL_FORWARD ? stage + 1 : stage - 1, chunk;
    uint32_t to = parallel_device(s->schedule, s->pipe->stages, next, &chunk);
    if (to != r) {
        at = fmax(at, *link);
        *link = at + s->pipe->busy;
        at += s->pipe->transfer;
    }
    *arrives(s, pass, stage, item->microbatch) = at;
    wake(s, to);
}

static double
length(const struct state *s, enum parallel_pass pass, uint32_t stage)
{
    const struct parallel_pipe *pipe = s->pipe;
    const double *all[] = {pipe->forward, pipe->backward, pipe->weight};
    return all[pass][stage];
}

/* Runs device r until its head waits for another device. */
static void
go_on(struct state *s, uint32_t r)
{
    uint32_t last = s->pipe->stages * s->pipe->chunks - 1;
    enum parallel_pass release = s->schedule->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD;
    while (s->next[r] < s->each) {
        const struct parallel_item *item = &s->item[r * s->each + s->next[r]];
        enum parallel_pass pass = item->pass;
        uint32_t stage = parallel_stage(s->schedule, s->pipe->stages, r, item->chunk);
        double from = ready(s, item, stage);
        if (isnan(from))
            return;
        s->next[r]++;
        s->free[r] = fmax(s->free[r], from) + length(s, pass, stage);
        if (pass == PARALLEL_FORWARD && ++s->inflight[r] > s->peak[r])
            s->peak[r] = s->inflight[r];
        s->inflight[r] -= pass == release;
        if (pass == PARALLEL_WEIGHT)
            continue;
        *ended(s, pass, stage, item->microbatch) = s->free[r];
        if (pass == PARALLEL_FORWARD ? stage < last : stage > 0)
            send(s, item, r, stage);
    }
}

static bool
open_state(struct state *s)
{
    size_t p = s->pipe->stages, cells = p * s->pipe->chunks * s->pipe->microbatches;
    s->next = calloc(p, sizeof *s->next);
    s->free = calloc(p, sizeof *s->free);
    s->inflight = calloc(p, sizeof *s->inflight);
    s->peak = calloc(p, sizeof *s->peak);
    s->waiting = calloc(p, sizeof *s->waiting);
    s->listed = calloc(p, sizeof *s->listed);
    for (int i = 0; i < 2; i++) {
        s->end[i] = malloc(cells * sizeof *s->end[i]);
        s->sent[i] = malloc(cells * sizeof *s->sent[i]);
        s->link[i] = calloc(p, sizeof *s->link[i]);
        if (!s->end[i] || !s->sent[i] || !s->link[i])
            return false;
        for (size_t j = 0; j < cells; j++)
            s->end[i][j] = s->sent[i][j] = NAN;
    }
    return s->next && s->free && s->inflight && s->peak && s->waiting && s->listed;
}

static void
close_state(struct state *s)
{
    free(s->item);
    free(s->next);
    free(s->free);
    free(s->inflight);
    free(s->peak);
    free(s->waiting);
    free(s->listed);
    for (int i = 0; i < 2; i++) {
        free(s->end[i]);
        free(s->sent[i]);
        free(s->link[i]);
    }
}

/* Fails if a device has not come to the end of its list. */
static bool
check_ends(const struct state *s, struct rec_error *err)
{
    static const char *const passes[] = {"forward", "backward", "weight"};
    for (uint32_t r = 0; r < s->pipe->stages; r++) {
        if (s->next[r] == s->each)
            continue;
        const struct parallel_item *item = &s->item[r * s->each + s->next[r]];
        return rec_fail(err, REC_DATA,
                        "the schedule waits forever: device %u waits for the input of "
                        "the %s pass of microbatch %u, chunk %u",
                        r, passes[item->pass], item->microbatch, item->chunk);
    }
    return true;
}

static void
say(const struct state *s, struct parallel_run *run)
{
    uint32_t p = s->pipe->stages, all = p * s->pipe->chunks;
    double busy = 0;
    run->seconds = 0;
    for (uint32_t i = 0; i < all; i++)
        busy += s->pipe->forward[i] + s->pipe->backward[i] +
                (s->schedule->split ? s->pipe->weight[i] : 0);
    for (uint32_t r = 0; r < p; r++) {
        run->seconds = fmax(run->seconds, s->free[r]);
        if (run->inflight)
            run->inflight[r] = s->peak[r];
        if (run->last)
            run->last[r] = s->free[r];
    }
    run->idle =
        run->seconds > 0 ? 1 - busy * s->pipe->microbatches / (p * run->seconds) : 0;
}

/* Runs the orders, and leaves *s for the caller to close. */
static bool
run_all(struct state *s, const struct parallel_schedule *schedule,
        const struct parallel_pipe *pipe, struct rec_error *err)
{
    *s = (struct state){
        .schedule = schedule, .pipe = pipe, .each = parallel_items(schedule, pipe)};
    s->item = parallel_orders(schedule, pipe, err);
    if (!s->item || !(open_state(s) || rec_fail_memory(err)))
        return false;
    for (uint32_t r = pipe->stages; r-- > 0;)
        wake(s, r);
    while (s->nwaiting > 0) {
        uint32_t r = s->waiting[--s->nwaiting];
        s->listed[r] = false;
        go_on(s, r);
    }
    return check_ends(s, err);
}

/* ---- the steady state ------------------------------------------------------------- */

uint32_t
parallel_fewer(const struct parallel_schedule *schedule, const struct parallel_pipe *pipe,
               uint32_t periods)
{
    uint32_t rest = pipe->microbatches % pipe->stages;
    uint64_t fewer = rest + (uint64_t)periods * pipe->stages;
    bool periodic = schedule->periodic && (pipe->chunks == 1 || rest == 0);
    return periodic && fewer < pipe->microbatches ? (uint32_t)fewer : pipe->microbatches;
}

/*
 * A period is p microbatches. Between the first and the last ones, where forward and
 * backward alternate, lists repeat themselves; forward passes are at most two periods
 * ahead of backward ones. So if all passes of a period end the same time after those of
 * the period before, forward in the last period and backward two periods earlier, and
 * their messages arrive so, all that would follow in a longer list does, too: what a pass
 * or a message waits for is one of these, or follows.
 */
static bool
follows(const struct state *s, const double *of, uint32_t i, double period, double near)
{
    const struct parallel_pipe *pipe = s->pipe;
    uint32_t p = pipe->stages, m = pipe->microbatches;
    for (uint32_t stage = 0; stage < p * pipe->chunks; stage++) {
        const double *at = of + (size_t)stage * m + i;
        /* NAN: what nothing waits for is not sent */
        for (uint32_t j = 0; j < p; j++)
            if (fabs(at[j] - at[(ptrdiff_t)j - p] - period) > near)
                return false;
    }
    return true;
}

static bool
is_steady(const struct state *s, double *period)
{
    const struct parallel_pipe *pipe = s->pipe;
    uint32_t p = pipe->stages, m = pipe->microbatches;
    double most = 0, near;
    for (uint32_t r = 0; r < p; r++)
        most = fmax(most, s->free[r]);
    near = 1e-13 * most;
    *period =
        *ended(s, PARALLEL_FORWARD, 0, m - 1) - *ended(s, PARALLEL_FORWARD, 0, m - 1 - p);
    for (int pass = 0; pass < 2; pass++) {
        uint32_t from = pass == PARALLEL_FORWARD ? m - p : m - 3 * p;
        if (!follows(s, s->end[pass], from, *period, near) ||
            !follows(s, s->sent[pass], from, *period, near))
            return false;
    }
    return true;
}

/* Runs fewer periods, if that tells how long all of them take. */
static bool
run_fewer(struct state *s, const struct parallel_schedule *schedule,
          const struct parallel_pipe *pipe, struct parallel_pipe *shorter, double *more,
          struct rec_error *err)
{
    double period;
    *more = 0;
    *shorter = *pipe;
    for (uint32_t periods = 5;; periods *= 2) {
        shorter->microbatches = parallel_fewer(schedule, pipe, periods);
        if (!run_all(s, schedule, shorter, err))
            return false;
        if (shorter->microbatches == pipe->microbatches)
            return true;
        if (is_steady(s, &period)) {
            *more =
                period * ((pipe->microbatches - shorter->microbatches) / pipe->stages);
            return true;
        }
        close_state(s);
    }
}

bool
parallel_run(const struct parallel_schedule *schedule, const struct parallel_pipe *pipe,
             struct parallel_run *run, struct rec_error *err)
{
    struct state s;
    struct parallel_pipe shorter;
    double more;
    bool ok = run_fewer(&s, schedule, pipe, &shorter, &more, err);
    if (ok) {
        for (uint32_t r = 0; r < pipe->stages; r++)
            s.free[r] += more;
        s.pipe = pipe;
        say(&s, run);
    }
    close_state(&s);
    return ok;
}
