/* Orders of schedules with a split backward pass: weight gradients, which nothing waits
 * for, fill the holes (Qi et al., "Zero Bubble Pipeline Parallelism", 2024; the V shape:
 * Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
 *
 * The order is found by playing the pipeline with the given times. Whenever a device is
 * free it takes a backward pass that is ready, else a forward pass, else a weight
 * gradient. A microbatch is held from its forward pass to its weight gradient, and a
 * device holds at most as many as the first device of 1F1B: p of them, or 2p half ones.
 * */
#include "private.h"

#include <math.h>
#include <stdlib.h>

struct player {
    double free;         /* when it has done what it has begun */
    uint32_t next[3][2]; /* of each pass and chunk: the microbatch that is next */
    uint32_t held; /* chunks that went forward and whose weight gradient has not run */
    size_t items;
};

struct play {
    const struct parallel_pipe *pipe;
    const struct parallel_schedule *shape;
    size_t each;
    struct player *device;
    double *end[2]; /* as in run.c; NAN: not yet */
};

static double
end_of(const struct play *p, enum parallel_pass pass, uint32_t stage, uint32_t i)
{
    return p->end[pass][(size_t)stage * p->pipe->microbatches + i];
}

/* From when on device r may run its next pass of this kind and chunk; INFINITY: it has
 * none, or its input is not known yet. */
static double
ready(const struct play *p, uint32_t r, enum parallel_pass pass, uint32_t chunk)
{
    const struct parallel_pipe *pipe = p->pipe;
    const struct player *d = &p->device[r];
    uint32_t i = d->next[pass][chunk], last = pipe->stages * pipe->chunks - 1, other;
    uint32_t stage = parallel_stage(p->shape, pipe->stages, r, chunk);
    double at;
    /* The first chunk leaves room for one of the second, so that the oldest microbatch
     * can always go on. */
    if (i == pipe->microbatches ||
        (pass == PARALLEL_FORWARD && d->held >= 2 * pipe->stages - (chunk == 0 ? 1 : 0)))
        return INFINITY;
    if (pass == PARALLEL_FORWARD && stage == 0)
        return 0;
    if (pass == PARALLEL_WEIGHT || (pass == PARALLEL_BACKWARD && stage == last))
        at = end_of(p, pass - 1, stage, i);
    else {
        uint32_t from = pass == PARALLEL_FORWARD ? stage - 1 : stage + 1;
        bool here = parallel_device(p->shape, pipe->stages, from, &other) == r;
        at = end_of(p, pass, from, i) + (here ? 0 : pipe->transfer);
    }
    return isnan(at) ? INFINITY : at;
}

/* What device r does next, and from when on. Of what is ready when it is free the first
 * in this order: backward, forward, weights; the later chunk first. */
static double
choose(const struct play *p, uint32_t r, struct parallel_item *item)
{
    double best = INFINITY, now = p->device[r].free;
    for (int pass_at = 0; pass_at < 3; pass_at++) {
        static const enum parallel_pass order[] = {PARALLEL_BACKWARD, PARALLEL_FORWARD,
                                                   PARALLEL_WEIGHT};
        for (uint32_t chunk = p->pipe->chunks; chunk-- > 0;) {
            enum parallel_pass pass = order[pass_at];
            double from = fmax(ready(p, r, pass, chunk), now);
            if (from < best) {
                best = from;
                *item = (struct parallel_item){p->device[r].next[pass][chunk],
                                               (uint16_t)chunk, (uint8_t)pass};
            }
        }
    }
    return best;
}

static void
play(struct play *p, struct parallel_item *item)
{
    const struct parallel_pipe *pipe = p->pipe;
    const double *length[] = {pipe->forward, pipe->backward, pipe->weight};
    for (;;) {
        struct parallel_item next = {0}, best = {0};
        double first = INFINITY;
        uint32_t r = 0;
        for (uint32_t i = 0; i < pipe->stages; i++) {
            double from = choose(p, i, &next);
            if (from < first) {
                first = from;
                best = next;
                r = i;
            }
        }
        if (isinf(first))
            return;
        struct player *d = &p->device[r];
        uint32_t stage = parallel_stage(p->shape, pipe->stages, r, best.chunk);
        d->free = first + length[best.pass][stage];
        d->next[best.pass][best.chunk]++;
        d->held += best.pass == PARALLEL_FORWARD;
        d->held -= best.pass == PARALLEL_WEIGHT;
        if (best.pass != PARALLEL_WEIGHT)
            p->end[best.pass][(size_t)stage * pipe->microbatches + best.microbatch] =
                d->free;
        item[r * p->each + d->items++] = best;
    }
}

bool
parallel_fill_holes(const struct parallel_pipe *pipe, struct parallel_item *item,
                    struct rec_error *err)
{
    size_t cells = (size_t)pipe->stages * pipe->chunks * pipe->microbatches;
    struct play p = {.pipe = pipe,
                     .shape =
                         parallel_schedule_find(pipe->chunks == 2 ? "v" : "zero-bubble")};
    bool ok;
    p.each = parallel_items(p.shape, pipe);
    p.device = calloc(pipe->stages, sizeof *p.device);
    p.end[0] = malloc(cells * sizeof *p.end[0]);
    p.end[1] = malloc(cells * sizeof *p.end[1]);
    ok = p.device && p.end[0] && p.end[1];
    if (ok) {
        for (size_t i = 0; i < cells; i++)
            p.end[0][i] = p.end[1][i] = NAN;
        play(&p, item);
    }
    free(p.device);
    free(p.end[0]);
    free(p.end[1]);
    return ok || rec_fail_memory(err);
}
