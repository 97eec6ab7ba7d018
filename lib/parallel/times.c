/* The times that a training step is made of: of the passes of virtual stages, of their
 * messages, and of what a device does once. step.c puts them together. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

enum { ELEMENT = 2, CLIP = 4, ADAM_MOVED = 30, CLEAR = 4 };

void
parallel_parts_add(struct parallel_parts *sum, const struct parallel_parts *p,
                   double times)
{
    sum->products += p->products * times;
    sum->attention += p->attention * times;
    sum->moves += p->moves * times;
    sum->host += p->host * times;
    sum->tensor += p->tensor * times;
    sum->context += p->context * times;
    sum->expert += p->expert * times;
    sum->shards += p->shards * times;
    sum->measured += p->measured * times;
}

double
parallel_parts_sum(const struct parallel_parts *p)
{
    return p->products + p->attention + p->moves + p->host + p->tensor + p->context +
           p->expert + p->shards;
}

double
parallel_exposed(const struct parallel_mix *mix, const struct parallel_machine *machine)
{
    double exposed = machine->stack->exposed;
    return exposed + fmax(0, 1 - exposed) * mix->taken / machine->processors;
}

static double
shown(const struct parallel_ask *q, unsigned overlap, double seconds)
{
    return q->mix->overlap & overlap ? seconds * parallel_exposed(q->mix, q->machine)
                                     : seconds;
}

/* ---- exchanges of a layer ---------------------------------------------------- */

static double
activation_bytes(const struct parallel_ask *q)
{
    return ELEMENT * parallel_tokens(q->model, q->mix) * q->model->t.width;
}

/* An all-reduce of a microbatch, or what takes its place with sequence parallelism. */
static double
reduce_activation(const struct parallel_ask *q)
{
    double bytes = activation_bytes(q);
    if (!q->mix->sequence)
        return parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "all-reduce",
                                 bytes);
    return parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "all-gather", bytes) +
           parallel_exchange(q->mix, q->machine, PARALLEL_TENSOR, "reduce-scatter",
                             bytes);
}

unsigned
parallel_tensor_times(const struct parallel_model *model, const struct parallel_mix *mix,
                      const struct parallel_kind *kind)
{
    /* of experts tokens go to them from where they are */
    return kind->experts && mix->etp == 1 && mix->sequence && model->t.shared_inner == 0
               ? 1
               : 2;
}

static void
add_tensor(const struct parallel_ask *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    double t = shown(q, PARALLEL_OVERLAP_TP, reduce_activation(q));
    double times = parallel_tensor_times(q->model, q->mix, kind);
    p->forward.tensor += times * t;
    p->backward.tensor += times * t;
}

/* A piece of keys and values is sent while attention to the piece before is computed; if
 * heads are dealt, nothing is computed meanwhile. */
static void
add_context(const struct parallel_ask *q, struct parallel_passes *p)
{
    const struct parallel_traffic traffic = parallel_traffic_of(q->model, q->mix);
    double forward, backward;
    if (q->mix->deal_heads) {
        forward = parallel_exchange(q->mix, q->machine, PARALLEL_CONTEXT, "all-to-all",
                                    traffic.keys) +
                  parallel_exchange(q->mix, q->machine, PARALLEL_CONTEXT, "all-to-all",
                                    traffic.result);
        p->forward.context += forward;
        p->backward.context += forward;
        return;
    }
    forward = parallel_exchange(q->mix, q->machine, PARALLEL_CONTEXT, "all-gather",
                                traffic.keys);
    backward = 2 * forward;
    if (q->mix->overlap & PARALLEL_OVERLAP_CP) {
        double share = parallel_exposed(q->mix, q->machine);
        forward = fmax(forward * share, forward - p->forward.attention);
        backward = fmax(backward * share, backward - p->backward.attention);
    }
    p->forward.context += forward;
    p->backward.context += backward;
}

/* Each token goes to its experts and comes back. */
static void
add_expert(const struct parallel_ask *q, struct parallel_passes *p)
{
    double t = 2 * parallel_dispatch(q->mix, q->machine,
                                     activation_bytes(q) * q->mix->etp / q->mix->tp,
                                     q->model->t.experts_used);
    t = shown(q, PARALLEL_OVERLAP_EP, t);
    p->forward.expert += t;
    p->backward.expert += t;
}

/* Of `dense` and `experts` elements, among PARALLEL_SHARDS or PARALLEL_BETWEEN. */
static double
exchange_both(const struct parallel_ask *q, enum parallel_group group, const char *kind,
              double dense, double experts, double element)
{
    enum parallel_group of_experts =
        group == PARALLEL_SHARDS ? PARALLEL_EXPERT_SHARDS : PARALLEL_EXPERT_BETWEEN;
    return parallel_exchange(q->mix, q->machine, group, kind, element * dense) +
           parallel_exchange(q->mix, q->machine, of_experts, kind, element * experts);
}

double
parallel_gradient(const struct parallel_mix *mix, const struct parallel_machine *machine)
{
    return mix->gradient ? mix->gradient : machine->stack->gradient;
}

/* Weights that are sharded are gathered before each pass, and their gradients scattered
 * behind backward, both beside computing: the longer of the two counts, and a share of
 * the shorter. */
static void
add_shards(const struct parallel_ask *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    double dense = 0, experts = 0, gather, scatter, c;
    double element = q->mix->gather_fp8 ? 1 : ELEMENT;
    double x = parallel_exposed(q->mix, q->machine);
    parallel_held(kind, q->mix, q->model, &dense, &experts);
    gather = exchange_both(q, PARALLEL_SHARDS, "all-gather", dense, experts, element);
    dense = experts = 0;
    parallel_trained(kind, q->mix, q->model, &dense, &experts);
    scatter = exchange_both(q, PARALLEL_SHARDS, "reduce-scatter", dense, experts,
                            parallel_gradient(q->mix, q->machine));
    c = parallel_parts_sum(&p->forward);
    p->forward.shards += fmax(0, gather - c) + x * fmin(gather, c);
    c = parallel_parts_sum(&p->backward);
    p->backward.shards += fmax(0, gather + scatter - c) + x * fmin(gather + scatter, c);
}

/* The host issues kernels one after the other; if it is slower than they are, they wait
 * for it. */
static void
wait_host(const struct parallel_ask *q, struct parallel_parts *p, double kernels)
{
    double host = q->mix->graph ? 0 : kernels * q->machine->stack->host;
    p->host = fmax(0, host - parallel_parts_sum(p));
}

/* Of a pass backward, what the gradients of weights take. */
static double
time_weights(const struct parallel_ask *q, const struct parallel_kind *kind,
             const struct parallel_parts *backward)
{
    struct parallel_mix mix = *q->mix;
    struct parallel_parts ignored, rest;
    mix.frozen = PARALLEL_PART_ALL;
    parallel_layer_time(q->model, &mix, q->machine, kind, &ignored, &rest);
    return parallel_parts_sum(backward) - parallel_parts_sum(&rest);
}

static void
time_layer(const struct parallel_ask *q, const struct parallel_kind *kind,
           struct parallel_passes *p)
{
    bool layer = kind != &q->model->embedding && kind != &q->model->head;
    double forward = parallel_layer_time(q->model, q->mix, q->machine, kind, &p->forward,
                                         &p->backward);
    double backward = 2 * forward;
    if (q->mix->schedule->split)
        p->weight = time_weights(q, kind, &p->backward);
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
            parallel_parts_add(&p->backward, &again, 1);
        }
    } else if (kind == &q->model->embedding)
        p->forward.tensor += reduce_activation(q);
    else
        p->backward.tensor += reduce_activation(q);
    wait_host(q, &p->forward, forward);
    wait_host(q, &p->backward, backward);
    if (parallel_zero(q->mix) >= 3)
        add_shards(q, kind, p);
}

/* ---- stages -------------------------------------------------------------------- */

static void
add_passes(struct parallel_passes *sum, const struct parallel_passes *p)
{
    parallel_parts_add(&sum->forward, &p->forward, 1);
    parallel_parts_add(&sum->backward, &p->backward, 1);
    sum->weight += p->weight;
}

static bool
time_stages(const struct parallel_ask *q, struct parallel_times *times,
            struct rec_error *err)
{
    struct parallel_passes *stage = times->stage;
    const struct parallel_model *model = q->model;
    uint32_t kinds = model->nkinds;
    struct parallel_mix keep = *q->mix;
    const struct parallel_ask once = {model, &keep, q->machine};
    struct parallel_passes *kind = calloc(2 * (size_t)kinds + 2, sizeof *kind), *kept;
    bool full = q->mix->recompute == PARALLEL_FULL;
    times->kind = kind;
    if (!kind)
        return rec_fail_memory(err);
    keep.recompute = PARALLEL_KEEP_ALL;
    kept = kind + kinds + 2;
    for (uint32_t i = 0; i < kinds; i++) {
        time_layer(q, &model->kind[i], &kind[i]);
        if (full)
            time_layer(&once, &model->kind[i], &kept[i]);
    }
    time_layer(q, &model->embedding, &kind[kinds]);
    time_layer(q, &model->head, &kind[kinds + 1]);
    for (uint32_t i = 0; i < q->mix->pp * q->mix->vp; i++) {
        struct parallel_chunk chunk = parallel_chunk_of(q->mix, model, i);
        for (uint32_t j = 0; j < chunk.layers; j++)
            add_passes(&stage[i], full && j >= parallel_again(q->mix, i)
                                      ? &kept[model->of[chunk.first + j]]
                                      : &kind[model->of[chunk.first + j]]);
        if (chunk.embedding)
            add_passes(&stage[i], &kind[kinds]);
        if (chunk.head)
            add_passes(&stage[i], &kind[kinds + 1]);
    }
    return true;
}

const struct parallel_passes *
parallel_times_kind(const struct parallel_times *times,
                    const struct parallel_model *model, const struct parallel_mix *mix,
                    uint32_t stage, uint32_t j)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    uint32_t kinds = model->nkinds, of = model->of[chunk.first + j];
    bool kept = mix->recompute == PARALLEL_FULL && j >= parallel_again(mix, stage);
    return &times->kind[kept ? kinds + 2 + of : of];
}

struct parallel_passes
parallel_times_layer(const struct parallel_times *times,
                     const struct parallel_model *model, const struct parallel_mix *mix,
                     uint32_t stage, uint32_t j)
{
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    struct parallel_passes sum = *parallel_times_kind(times, model, mix, stage, j);
    if (chunk.embedding && j == 0)
        add_passes(&sum, &times->kind[model->nkinds]);
    if (chunk.head && j == chunk.layers - 1)
        add_passes(&sum, &times->kind[model->nkinds + 1]);
    return sum;
}

static void
time_message(const struct parallel_ask *q, struct parallel_times *times)
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

void
parallel_kind_passes(const struct parallel_model *model, const struct parallel_mix *mix,
                     const struct parallel_machine *machine,
                     const struct parallel_kind *kind, struct parallel_passes *passes)
{
    struct parallel_ask q = {model, mix, machine};
    time_layer(&q, kind, passes);
}

double
parallel_message_shown(const struct parallel_model *model, const struct parallel_mix *mix,
                       const struct parallel_machine *machine)
{
    struct parallel_ask q = {model, mix, machine};
    struct parallel_times times = {0};
    time_message(&q, &times);
    return times.message;
}

/* ---- replicas -------------------------------------------------------------------- */

/* Passes of how many microbatches an exchange of gradients can run beside. Without
 * chunks, all gradients become ready in the last one; with chunks, those of the last
 * chunk when the last group of p microbatches has left it. */
static double
beside(const struct parallel_mix *mix)
{
    double v = mix->vp, m = parallel_microbatches(mix);
    return v > 1 ? 1 / v + (v - 1) / v * fmin(mix->pp, m) : 1;
}

/* The parameters that device r trains, on one rank. Returns whether it has one end of
 * the model. */
static bool
hold(const struct parallel_ask *q, uint32_t r, double *dense, double *experts)
{
    const struct parallel_mix *mix = q->mix;
    bool one = false;
    *dense = *experts = 0;
    for (uint32_t i = 0; i < mix->vp; i++) {
        struct parallel_chunk chunk = parallel_chunk_of(
            mix, q->model, parallel_stage(mix->schedule, mix->pp, r, i));
        for (uint32_t j = 0; j < chunk.layers; j++)
            parallel_trained(&q->model->kind[q->model->of[chunk.first + j]], mix,
                             q->model, dense, experts);
        if (chunk.embedding)
            parallel_trained(&q->model->embedding, mix, q->model, dense, experts);
        if (chunk.head)
            parallel_trained(&q->model->head, mix, q->model, dense, experts);
        one = one != (chunk.embedding != chunk.head);
    }
    return one;
}

void
parallel_once_alone(const struct parallel_model *model, const struct parallel_mix *mix,
                    const struct parallel_machine *machine, double dense, double experts,
                    struct parallel_once *once)
{
    struct parallel_ask q = {model, mix, machine};
    double replicas = (double)mix->dp * mix->cp, held;
    double shards = mix->shard > 0 ? mix->shard : replicas;
    double spread = fmin(shards, replicas * mix->tp / ((double)mix->ep * mix->etp));
    uint32_t zero = parallel_zero(mix);
    *once = (struct parallel_once){0};
    held = zero >= 1 ? dense / shards + experts / spread : dense + experts;
    /* a few kernels update all tensors, so that the host does not slow them */
    once->optimizer =
        machine->stack->between + parallel_move(machine, held * (ADAM_MOVED + CLIP));
    /* gradients are cleared, and weights are cast for all microbatches of the step */
    if (zero < 3)
        once->optimizer += parallel_move(
            machine, (dense + experts) * (CLEAR + parallel_weight_cast(mix, machine)));
    if (zero < 3)
        once->gradients = exchange_both(&q, PARALLEL_SHARDS,
                                        zero >= 1 ? "reduce-scatter" : "all-reduce",
                                        dense, experts, parallel_gradient(mix, machine));
    once->gradients += exchange_both(&q, PARALLEL_BETWEEN, "all-reduce", dense / shards,
                                     experts / spread, parallel_gradient(mix, machine));
    if (zero >= 1 && zero < 3)
        once->weights = exchange_both(&q, PARALLEL_SHARDS, "all-gather", dense, experts,
                                      mix->gather_fp8 ? 1 : ELEMENT);
}

void
parallel_once_hide(const struct parallel_mix *mix, const struct parallel_machine *machine,
                   double forward, double backward, struct parallel_once *once)
{
    double hidden = 1 - parallel_exposed(mix, machine), rounds = beside(mix);
    if (!(mix->overlap & PARALLEL_OVERLAP_DP))
        return;
    once->gradients -= hidden * fmin(once->gradients, rounds * backward);
    once->weights -= hidden * fmin(once->weights, rounds * forward);
}

static void
time_once(const struct parallel_ask *q, const struct parallel_passes *stages, uint32_t r,
          struct parallel_once *once)
{
    double dense, experts, forward = 0, backward = 0;
    bool one = hold(q, r, &dense, &experts);
    for (uint32_t i = 0; i < q->mix->vp; i++) {
        uint32_t stage = parallel_stage(q->mix->schedule, q->mix->pp, r, i);
        forward += parallel_parts_sum(&stages[stage].forward);
        backward += parallel_parts_sum(&stages[stage].backward);
    }
    parallel_once_alone(q->model, q->mix, q->machine, dense, experts, once);
    parallel_once_hide(q->mix, q->machine, forward, backward, once);
    once->tied = one ? parallel_tied(q->model, q->mix, q->machine) : 0;
    once->gradients += once->tied;
}

bool
parallel_times_make(const struct parallel_model *model, const struct parallel_mix *mix,
                    const struct parallel_machine *machine, struct parallel_times *times,
                    struct rec_error *err)
{
    struct parallel_ask q = {model, mix, machine};
    if (!parallel_mix_check(mix, model, err))
        return false;
    times->stage = calloc((size_t)mix->pp * mix->vp, sizeof *times->stage);
    times->device = calloc(mix->pp, sizeof *times->device);
    if (!times->stage || !times->device)
        return rec_fail_memory(err);
    if (!time_stages(&q, times, err))
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
    free(times->kind);
    *times = (struct parallel_times){0};
}
