/* A training step: the pipeline of its times (times.c), run by its schedule, and where
 * the time goes. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

struct running {
    struct parallel_pipe pipe;
    double *kept; /* of each device: the most that activations take */
    struct parallel_run run;
};

bool
parallel_pipe_make(const struct parallel_mix *mix, const struct parallel_machine *machine,
                   const struct parallel_times *times, struct parallel_pipe *pipe,
                   struct rec_error *err)
{
    uint32_t n = mix->pp * mix->vp;
    double *seconds = calloc(3 * (size_t)n, sizeof *seconds);
    double message = machine->stack->blocking ? times->message : 0;
    *pipe = (struct parallel_pipe){
        .stages = mix->pp,
        .chunks = mix->vp,
        .microbatches = parallel_microbatches(mix),
        .transfer = machine->stack->blocking ? 0 : times->message,
        .busy = machine->stack->blocking ? 0 : times->message,
    };
    if (!seconds)
        return rec_fail_memory(err);
    pipe->forward = seconds;
    pipe->backward = seconds + n;
    pipe->weight = seconds + 2 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) {
        double weight = times->stage[i].weight; /* 0 unless the schedule splits */
        seconds[i] =
            parallel_parts_sum(&times->stage[i].forward) + (i + 1 < n ? message : 0);
        seconds[n + i] = parallel_parts_sum(&times->stage[i].backward) - weight +
                         (i > 0 ? message : 0);
        seconds[2 * (size_t)n + i] = weight;
    }
    return true;
}

/* What activations take at their peak: a pass forward keeps some, until backward, or the
 * gradient of weights, has read it. */
static bool
find_kept(const struct parallel_ask *q, const struct parallel_pipe *pipe, double *kept,
          struct rec_error *err)
{
    const struct parallel_schedule *schedule = q->mix->schedule;
    size_t n = parallel_items(schedule, pipe);
    uint8_t release = schedule->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD;
    struct parallel_item *item = parallel_orders(schedule, pipe, err);
    double *chunk = calloc(pipe->chunks, sizeof *chunk);
    bool ok = item && (chunk || rec_fail_memory(err));
    for (uint32_t r = 0; ok && r < pipe->stages; r++) {
        double now = 0;
        for (uint32_t i = 0; i < pipe->chunks; i++)
            chunk[i] = parallel_stage_kept(q->mix, q->model,
                                           parallel_stage(schedule, pipe->stages, r, i));
        for (size_t i = 0; i < n; i++) {
            const struct parallel_item *it = &item[r * n + i];
            if (it->pass == PARALLEL_FORWARD)
                now += chunk[it->chunk];
            kept[r] = now > kept[r] ? now : kept[r];
            if (it->pass == release)
                now -= chunk[it->chunk];
        }
    }
    free(item);
    free(chunk);
    return ok;
}

static bool
run_pipeline(const struct parallel_ask *q, const struct parallel_times *times,
             struct running *on, struct rec_error *err)
{
    const struct parallel_schedule *schedule = q->mix->schedule;
    struct parallel_pipe fewer;
    on->kept = calloc(q->mix->pp, sizeof *on->kept);
    on->run.last = calloc(q->mix->pp, sizeof *on->run.last);
    if (!on->kept || !on->run.last)
        return rec_fail_memory(err);
    if (!parallel_pipe_make(q->mix, q->machine, times, &on->pipe, err))
        return false;
    fewer = on->pipe;
    fewer.microbatches = parallel_fewer(schedule, &on->pipe, 4);
    return find_kept(q, &fewer, on->kept, err) &&
           parallel_run(schedule, &on->pipe, &on->run, err);
}

/* Where the time of device r goes. */
static void
explain(const struct parallel_ask *q, const struct parallel_times *times,
        const struct running *on, uint32_t r, struct parallel_step *step)
{
    const struct parallel_mix *mix = q->mix;
    double m = parallel_microbatches(mix), messages = 0;
    step->parts = (struct parallel_parts){0};
    for (uint32_t i = 0; i < mix->vp; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, r, i);
        parallel_parts_add(&step->parts, &times->stage[stage].forward, m);
        parallel_parts_add(&step->parts, &times->stage[stage].backward, m);
        messages += m * ((stage + 1 < mix->pp * mix->vp) + (stage > 0));
    }
    step->device = r;
    step->once = times->device[r];
    step->transfer = q->machine->stack->blocking ? messages * times->message : 0;
    /* fmax(): the sums have other roundings than the run */
    step->idle =
        fmax(0, on->run.last[r] - parallel_parts_sum(&step->parts) - step->transfer);
    parallel_memory_of(mix, q->model, r, q->machine->stack, &step->memory);
    parallel_memory_keep(&step->memory, on->kept[r]);
}

static double
end_of(const struct parallel_times *times, const struct running *on, uint32_t r)
{
    const struct parallel_once *once = &times->device[r];
    return on->run.last[r] + once->gradients + once->optimizer + once->weights;
}

static void
sum_up(const struct parallel_ask *q, const struct parallel_times *times,
       const struct running *on, struct parallel_step *step, struct parallel_step *each)
{
    struct parallel_memory most = {0};
    uint32_t last = 0;
    for (uint32_t r = 0; r < q->mix->pp; r++) {
        struct parallel_step one = {0};
        explain(q, times, on, r, &one);
        if (end_of(times, on, r) > end_of(times, on, last))
            last = r;
        if (r == 0 || parallel_memory_sum(&one.memory) > parallel_memory_sum(&most))
            most = one.memory;
        if (each)
            each[r] = one;
    }
    explain(q, times, on, last, step);
    step->memory = most;
    step->seconds = end_of(times, on, last);
    step->bubble = fmax(0, on->run.idle);
    for (uint32_t r = 0; each && r < q->mix->pp; r++) {
        each[r].seconds = step->seconds;
        each[r].idle += step->seconds - end_of(times, on, r);
    }
}

bool
parallel_step_each(const struct parallel_model *model, const struct parallel_mix *mix,
                   const struct parallel_machine *machine, struct parallel_step *step,
                   struct parallel_step *each, struct rec_error *err)
{
    struct parallel_ask q = {model, mix, machine};
    struct parallel_times times = {0};
    struct running on = {0};
    bool ok;
    *step = (struct parallel_step){0};
    ok = parallel_times_make(model, mix, machine, &times, err) &&
         run_pipeline(&q, &times, &on, err);
    if (ok) {
        sum_up(&q, &times, &on, step, each);
        step->flops = parallel_model_flops(model, mix->global, 1, false);
        step->causal = parallel_model_flops(model, mix->global, 0.5, false);
    }
    parallel_times_free(&times);
    free((double *)(uintptr_t)on.pipe.forward);
    free(on.kept);
    free(on.run.last);
    return ok;
}

bool
parallel_step(const struct parallel_model *model, const struct parallel_mix *mix,
              const struct parallel_machine *machine, struct parallel_step *step,
              struct rec_error *err)
{
    return parallel_step_each(model, mix, machine, step, NULL, err);
}
