/* A training step: the times of the virtual stages, the pipeline run by its schedule, and
 * what replicas exchange. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

enum { ELEMENT = 2, CLIP = 4, ADAM_MOVED = 30 };

struct question {
    const struct parallel_model *model;
    const struct parallel_mix *mix;
    const struct parallel_machine *machine;
};

static void
add(struct parallel_parts *sum, const struct parallel_parts *p, double times)
{
    sum->products += p->products * times;
    sum->attention += p->attention * times;
    sum->moves += p->moves * times;
    sum->host += p->host * times;
    sum->tensor += p->tensor * times;
    sum->context += p->context * times;
    sum->expert += p->expert * times;
    sum->shards += p->shards * times;
}

double
parallel_parts_sum(const struct parallel_parts *p)
{
    return p->products + p->attention + p->moves + p->host + p->tensor + p->context +
           p->expert + p->shards;
}

static double
shown(const struct question *q, unsigned overlap, double seconds)
{
    return q->mix->overlap & overlap ? seconds * q->machine->stack->exposed : seconds;
}

/* ---- exchanges of a layer ---------------------------------------------------- */

static double
activation_bytes(const struct question *q)
{
    return ELEMENT * parallel_tokens(q->model, q->mix) * q->model->t.width;
}

/* An all-reduce of a microbatch, or what takes its place with sequence parallelism. */
static double
reduce_activation(const struct question *q)
{
    double bytes = activation_bytes(q);
    if (!q->mix->sequence)
        return parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "all-reduce",
                                 bytes);
    return parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "all-gather", bytes) +
           parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "reduce-scatter",
                             bytes);
}

static void
add_tensor(const struct question *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    double t = shown(q, PARALLEL_OVERLAP_TP, reduce_activation(q));
    double times = 2;
    if (kind->experts && q->mix->etp == 1 && q->mix->sequence &&
        q->model->t.shared_inner == 0)
        times = 1; /* tokens go to their experts from where they are */
    p->forward.tensor += times * t;
    p->backward.tensor += times * t;
}

/* Keys and values of the whole sequence, in a ring: a piece is sent while attention to
 * the piece before is computed. */
static void
add_context(const struct question *q, struct parallel_passes *p)
{
    const struct input_transformer *t = &q->model->t;
    double heads = t->kv_rank > 0 ? t->heads : t->kv_heads, width = 2.0 * t->head_width;
    double bytes = ELEMENT * q->mix->micro * q->model->sequence * width * heads /
                   parallel_divided_kv(q->model, q->mix);
    double forward =
        parallel_exchange(q->mix, q->machine, PARALLEL_CONTEXT, "all-gather", bytes);
    double backward = 2 * forward;
    if (q->mix->overlap & PARALLEL_OVERLAP_CP) {
        double share = q->machine->stack->exposed;
        forward = fmax(forward * share, forward - p->forward.attention);
        backward = fmax(backward * share, backward - p->backward.attention);
    }
    p->forward.context += forward;
    p->backward.context += backward;
}

/* Each token goes to its experts and comes back. */
static void
add_expert(const struct question *q, struct parallel_passes *p)
{
    double bytes =
        activation_bytes(q) * q->model->t.experts_used * q->mix->etp / q->mix->tp;
    double t =
        2 * parallel_exchange(q->mix, q->machine, PARALLEL_EXPERT, "all-to-all", bytes);
    t = shown(q, PARALLEL_OVERLAP_EP, t);
    p->forward.expert += t;
    p->backward.expert += t;
}

/* Weights that are sharded are gathered before each pass, and their gradients scattered
 * behind backward, both beside computing: the longer of the two counts, and a share of
 * the shorter. */
static void
add_shards(const struct question *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    double dense = 0, experts = 0, gather, scatter, c;
    double element = q->mix->gather_fp8 ? 1 : ELEMENT, x = q->machine->stack->exposed;
    parallel_held(kind, q->mix, q->model, &dense, &experts);
    gather = parallel_exchange(q->mix, q->machine, PARALLEL_REPLICAS, "all-gather",
                               element * dense) +
             parallel_exchange(q->mix, q->machine, PARALLEL_EXPERT_REPLICAS, "all-gather",
                               element * experts);
    scatter = parallel_exchange(q->mix, q->machine, PARALLEL_REPLICAS, "reduce-scatter",
                                q->machine->stack->gradient * dense) +
              parallel_exchange(q->mix, q->machine, PARALLEL_EXPERT_REPLICAS,
                                "reduce-scatter", q->machine->stack->gradient * experts);
    c = parallel_parts_sum(&p->forward);
    p->forward.shards += fmax(0, gather - c) + x * fmin(gather, c);
    c = parallel_parts_sum(&p->backward);
    p->backward.shards += fmax(0, gather + scatter - c) + x * fmin(gather + scatter, c);
}

/* The host issues kernels one after the other; if it is slower than they are, they wait
 * for it. */
static void
wait_host(const struct question *q, struct parallel_parts *p, double kernels)
{
    double host = q->mix->graph ? 0 : kernels * q->machine->stack->host;
    p->host = fmax(0, host - parallel_parts_sum(p));
}

static void
time_layer(const struct question *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    bool layer = kind != &q->model->embedding && kind != &q->model->head;
    double forward = parallel_layer_time(q->model, q->mix, q->machine, kind, &p->forward,
                                         &p->backward);
    double backward = 2 * forward;
    if (layer) {
        add_tensor(q, kind, p);
        add_context(q, p);
        if (kind->experts)
            add_expert(q, p);
        if (q->mix->recompute != PARALLEL_KEEP_ALL) {
            struct parallel_parts again;
            backward += parallel_again_time(q->model, q->mix, q->machine, kind, &again);
            if (q->mix->recompute == PARALLEL_FULL) {
                again.tensor = p->forward.tensor;
                again.context = p->forward.context;
                again.expert = p->forward.expert;
            }
            add(&p->backward, &again, 1);
        }
    } else if (kind == &q->model->embedding)
        p->forward.tensor += reduce_activation(q);
    else
        p->backward.tensor += reduce_activation(q);
    wait_host(q, &p->forward, forward);
    wait_host(q, &p->backward, backward);
    if (q->mix->zero >= 3)
        add_shards(q, kind, p);
}

/* ---- stages -------------------------------------------------------------------- */

static void
add_passes(struct parallel_passes *sum, const struct parallel_passes *p)
{
    add(&sum->forward, &p->forward, 1);
    add(&sum->backward, &p->backward, 1);
}

static bool
time_stages(const struct question *q, struct parallel_passes *stage,
            struct rec_error *err)
{
    const struct parallel_model *model = q->model;
    uint32_t kinds = model->nkinds;
    /* of each kind of layer, then embedding and head */
    struct parallel_passes *kind = calloc((size_t)kinds + 2, sizeof *kind);
    if (!kind)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < kinds; i++)
        time_layer(q, &model->kind[i], &kind[i]);
    time_layer(q, &model->embedding, &kind[kinds]);
    time_layer(q, &model->head, &kind[kinds + 1]);
    for (uint32_t i = 0; i < q->mix->pp * q->mix->vp; i++) {
        struct parallel_chunk chunk = parallel_chunk_of(q->mix, model, i);
        for (uint32_t j = 0; j < chunk.layers; j++)
            add_passes(&stage[i], &kind[model->of[chunk.first + j]]);
        if (chunk.embedding)
            add_passes(&stage[i], &kind[kinds]);
        if (chunk.head)
            add_passes(&stage[i], &kind[kinds + 1]);
    }
    free(kind);
    return true;
}

static void
time_message(const struct question *q, struct parallel_times *times)
{
    double bytes = activation_bytes(q);
    if (q->mix->pp == 1)
        return;
    if (!q->machine->stack->copies || q->mix->sequence)
        bytes /= q->mix->tp;
    times->message_bytes = bytes;
    times->message =
        shown(q, PARALLEL_OVERLAP_PP, parallel_message(q->mix, q->machine, bytes));
}

/* ---- replicas -------------------------------------------------------------------- */

static double
exchange_both(const struct question *q, const char *kind, double dense, double experts,
              double element)
{
    return parallel_exchange(q->mix, q->machine, PARALLEL_REPLICAS, kind,
                             element * dense) +
           parallel_exchange(q->mix, q->machine, PARALLEL_EXPERT_REPLICAS, kind,
                             element * experts);
}

/* Passes of how many microbatches an exchange of gradients can run beside. Without
 * chunks, all gradients become ready in the last one; with chunks, those of the last
 * chunk when the last group of p microbatches has left it. */
static double
beside(const struct parallel_mix *mix)
{
    double v = mix->vp, m = parallel_microbatches(mix);
    return v > 1 ? 1 / v + (v - 1) / v * fmin(mix->pp, m) : 1;
}

static void
time_once(const struct question *q, const struct parallel_passes *stages, uint32_t r,
          struct parallel_once *once)
{
    const struct parallel_mix *mix = q->mix;
    double dense = 0, experts = 0, held, forward = 0, backward = 0, tensors = 0;
    double replicas = (double)mix->dp * mix->cp;
    double others = replicas * mix->tp / ((double)mix->ep * mix->etp);
    if (mix->lora > 0)
        return;
    for (uint32_t i = 0; i < mix->vp; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, r, i);
        struct parallel_chunk chunk = parallel_chunk_of(mix, q->model, stage);
        for (uint32_t j = 0; j < chunk.layers; j++)
            tensors += parallel_held(&q->model->kind[q->model->of[chunk.first + j]], mix,
                                     q->model, &dense, &experts);
        if (chunk.embedding)
            tensors +=
                parallel_held(&q->model->embedding, mix, q->model, &dense, &experts);
        if (chunk.head)
            tensors += parallel_held(&q->model->head, mix, q->model, &dense, &experts);
        forward += parallel_parts_sum(&stages[stage].forward);
        backward += parallel_parts_sum(&stages[stage].backward);
    }
    held = mix->zero >= 1 ? dense / replicas + experts / others : dense + experts;
    once->optimizer = fmax(parallel_move(q->machine, held * (ADAM_MOVED + CLIP)),
                           tensors * q->machine->stack->host);
    if (mix->zero >= 3)
        return;
    once->gradients = exchange_both(q, mix->zero >= 1 ? "reduce-scatter" : "all-reduce",
                                    dense, experts, q->machine->stack->gradient);
    if (mix->zero >= 1)
        once->weights =
            exchange_both(q, "all-gather", dense, experts, mix->gather_fp8 ? 1 : ELEMENT);
    if (mix->overlap & PARALLEL_OVERLAP_DP) {
        double hidden = 1 - q->machine->stack->exposed;
        double rounds = beside(mix);
        once->gradients -= hidden * fmin(once->gradients, rounds * backward);
        once->weights -= hidden * fmin(once->weights, rounds * forward);
    }
}

bool
parallel_times_make(const struct parallel_model *model, const struct parallel_mix *mix,
                    const struct parallel_machine *machine, struct parallel_times *times,
                    struct rec_error *err)
{
    struct question q = {model, mix, machine};
    if (!parallel_mix_check(mix, model, err))
        return false;
    times->stage = calloc((size_t)mix->pp * mix->vp, sizeof *times->stage);
    times->device = calloc(mix->pp, sizeof *times->device);
    if (!times->stage || !times->device)
        return rec_fail_memory(err);
    if (!time_stages(&q, times->stage, err))
        return false;
    time_message(&q, times);
    for (uint32_t r = 0; r < mix->pp; r++)
        time_once(&q, times->stage, r, &times->device[r]);
    return true;
}

void
parallel_times_free(struct parallel_times *times)
{
    free(times->stage);
    free(times->device);
    *times = (struct parallel_times){0};
}

/* ---- the whole -------------------------------------------------------------------- */

struct running {
    double *forward, *backward;
    double *kept; /* of each device: the most that activations take */
    struct parallel_run run;
};

/* What activations take at their peak: a pass forward keeps some, until backward, or the
 * gradient of weights, has read it. */
static bool
find_kept(const struct question *q, const struct parallel_pipe *pipe, double *kept,
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
run_pipeline(const struct question *q, const struct parallel_times *times,
             struct running *on, struct rec_error *err)
{
    bool blocking = q->machine->stack->blocking;
    struct parallel_pipe pipe = {
        .stages = q->mix->pp,
        .chunks = q->mix->vp,
        .microbatches = parallel_microbatches(q->mix),
        .transfer = blocking ? 0 : times->message,
    };
    uint32_t n = pipe.stages * pipe.chunks;
    on->forward = calloc(n, sizeof *on->forward);
    on->backward = calloc(n, sizeof *on->backward);
    on->kept = calloc(pipe.stages, sizeof *on->kept);
    on->run.last = calloc(pipe.stages, sizeof *on->run.last);
    if (!on->forward || !on->backward || !on->kept || !on->run.last)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        on->forward[i] = parallel_parts_sum(&times->stage[i].forward);
        on->backward[i] = parallel_parts_sum(&times->stage[i].backward);
        if (blocking && i + 1 < n)
            on->forward[i] += times->message;
        if (blocking && i > 0)
            on->backward[i] += times->message;
    }
    pipe.forward = on->forward;
    pipe.backward = on->backward;
    return find_kept(q, &pipe, on->kept, err) &&
           parallel_run(q->mix->schedule, &pipe, &on->run, err);
}

/* Where the time of device r goes. */
static void
explain(const struct question *q, const struct parallel_times *times,
        const struct running *on, uint32_t r, struct parallel_step *step)
{
    const struct parallel_mix *mix = q->mix;
    double m = parallel_microbatches(mix), busy = 0;
    step->parts = (struct parallel_parts){0};
    for (uint32_t i = 0; i < mix->vp; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, r, i);
        add(&step->parts, &times->stage[stage].forward, m);
        add(&step->parts, &times->stage[stage].backward, m);
        busy += m * (on->forward[stage] + on->backward[stage]);
    }
    step->device = r;
    step->once = times->device[r];
    step->transfer = busy - parallel_parts_sum(&step->parts);
    step->idle = on->run.last[r] - busy;
}

static void
sum_up(const struct question *q, const struct parallel_times *times,
       const struct running *on, struct parallel_step *step)
{
    for (uint32_t r = 0; r < q->mix->pp; r++) {
        const struct parallel_once *once = &times->device[r];
        double end = on->run.last[r] + once->gradients + once->optimizer + once->weights;
        struct parallel_memory memory;
        if (end > step->seconds) {
            step->seconds = end;
            explain(q, times, on, r, step);
        }
        parallel_memory_of(q->mix, q->model, r, q->machine->stack, &memory);
        memory.activations = on->kept[r];
        if (r == 0 || parallel_memory_sum(&memory) > parallel_memory_sum(&step->memory))
            step->memory = memory;
    }
}

bool
parallel_step(const struct parallel_model *model, const struct parallel_mix *mix,
              const struct parallel_machine *machine, struct parallel_step *step,
              struct rec_error *err)
{
    struct question q = {model, mix, machine};
    struct parallel_times times = {0};
    struct running on = {0};
    bool ok;
    *step = (struct parallel_step){0};
    ok = parallel_times_make(model, mix, machine, &times, err) &&
         run_pipeline(&q, &times, &on, err);
    if (ok) {
        sum_up(&q, &times, &on, step);
        step->flops = parallel_model_flops(model, mix->global, 1, false);
        step->causal = parallel_model_flops(model, mix->global, 0.5, false);
    }
    parallel_times_free(&times);
    free(on.forward);
    free(on.backward);
    free(on.kept);
    free(on.run.last);
    return ok;
}
