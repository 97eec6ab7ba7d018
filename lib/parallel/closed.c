/* The closed form of a step: costs of layers, what devices hold, the sum. The pipeline is
 * in closed_pipe.c. */
#include "closed.h"

#include <math.h>
#include <stdlib.h>

/* Kinds of layers whose sets are told apart for the working memory of a device. */
enum { KINDS_APART = 3 };

bool
closed_open(struct closed *c, const struct parallel_model *model,
            const struct parallel_machine *machine, struct rec_error *err)
{
    /* a virtual stage has a layer at least, or an end */
    size_t layers = model->t.layers, stages = layers + 2;
    double **const of_stages[] = {&c->pass[0],   &c->pass[1],   &c->kept,
                                  &c->before[0], &c->before[1], &c->last,
                                  &c->own[0],    &c->own[1],    &c->activations};
    bool ok;
    *c = (struct closed){.model = model, .machine = machine, .kinds = model->nkinds};
    c->gpipe = parallel_schedule_find("gpipe");
    c->signatures = c->kinds <= KINDS_APART ? 4U << c->kinds : 0;
    c->prefix = calloc(c->kinds * (layers + 1), sizeof *c->prefix);
    c->params = calloc(c->kinds + 2, sizeof *c->params);
    c->count = calloc(stages * c->kinds, sizeof *c->count);
    c->holding = calloc(stages, sizeof *c->holding);
    c->signature = calloc(stages, sizeof *c->signature);
    for (int i = 0; i < 2; i++)
        c->wait[i] = calloc(2 * stages, sizeof *c->wait[i]);
    ok = c->wait[0] && c->wait[1] && c->prefix && c->params && c->count && c->holding &&
         c->signature;
    for (size_t i = 0; i < sizeof of_stages / sizeof *of_stages; i++)
        ok = (*of_stages[i] = calloc(stages + 1, sizeof(double))) != NULL && ok;
    if (!ok)
        return rec_fail_memory(err);
    for (uint32_t k = 0; k < c->kinds; k++)
        for (size_t i = 0; i < layers; i++)
            c->prefix[k * (layers + 1) + i + 1] =
                c->prefix[k * (layers + 1) + i] + (model->of[i] == k);
    return true;
}

void
closed_free(struct closed *c)
{
    double *const owned[] = {c->pass[0],   c->pass[1],   c->kept,
                             c->before[0], c->before[1], c->last,
                             c->own[0],    c->own[1],    c->activations};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(c->wait[0]);
    free(c->wait[1]);
    free(c->prefix);
    free(c->params);
    free(c->count);
    free(c->holding);
    free(c->signature);
    free(c->held);
    *c = (struct closed){.kinds = 0};
}

/* ---- layers ------------------------------------------------------------------- */

size_t
closed_layers_size(const struct closed *c)
{
    return 3 * ((size_t)c->kinds + 2) + c->signatures;
}

void
closed_layers_place(const struct closed *c, struct closed_layers *layers, double *numbers)
{
    size_t n = (size_t)c->kinds + 2;
    *layers = (struct closed_layers){.forward = numbers,
                                     .backward = numbers + n,
                                     .kept = numbers + 2 * n,
                                     .working = numbers + 3 * n};
}

void
closed_layers_make(const struct closed *c, const struct parallel_mix *mix,
                   struct closed_layers *layers)
{
    const struct parallel_model *model = c->model;
    uint32_t n = model->t.layers;
    /* Each layer, and each end, as a stage of its own. */
    struct parallel_mix alone = *mix;
    alone.pp = n + 2;
    alone.vp = 1;
    alone.ends = true;
    alone.layers = NULL;
    alone.schedule = parallel_schedule_find("1f1b");
    for (uint32_t k = 0; k < c->kinds + 2; k++) {
        struct parallel_passes passes = {.forward = {0}};
        uint32_t stage = k == c->kinds ? 0 : n + 1;
        parallel_kind_passes(model, mix, c->machine,
                             k < c->kinds    ? &model->kind[k]
                             : k == c->kinds ? &model->embedding
                                             : &model->head,
                             &passes);
        for (uint32_t i = 0; k < c->kinds && i < n && stage == n + 1; i++)
            if (model->of[i] == k)
                stage = i + 1;
        layers->forward[k] = parallel_parts_sum(&passes.forward);
        layers->backward[k] = parallel_parts_sum(&passes.backward);
        if (!layers->stored)
            layers->kept[k] = parallel_stage_kept(&alone, model, stage) -
                              (k <= c->kinds ? parallel_sent_kept(&alone, model) : 0);
    }
    for (uint32_t i = 0; !layers->stored && i < c->signatures; i++)
        layers->working[i] = NAN;
    layers->made = layers->stored = true;
}

static double
working(const struct closed *c, const struct parallel_mix *mix,
        const struct closed_layers *layers, uint32_t r)
{
    struct parallel_memory memory;
    uint32_t i = c->signature[r];
    if (i < c->signatures && !isnan(layers->working[i]))
        return layers->working[i];
    parallel_memory_of(mix, c->model, r, c->machine->stack, &memory);
    if (i < c->signatures)
        layers->working[i] = memory.working;
    return memory.working;
}

/* ---- what devices hold ---------------------------------------------------------- */

void
closed_params(struct closed *c, const struct parallel_mix *mix)
{
    const struct parallel_model *model = c->model;
    c->nheld = 0;
    for (uint32_t k = 0; k < c->kinds + 2; k++) {
        struct closed_params *p = &c->params[k];
        *p = (struct closed_params){.dense = 0};
        parallel_trained(k < c->kinds    ? &model->kind[k]
                         : k == c->kinds ? &model->embedding
                                         : &model->head,
                         mix, model, &p->dense, &p->experts);
    }
}

static void
add_params(struct closed_held *held, const struct closed_params *p, double times)
{
    held->dense += p->dense * times;
    held->experts += p->experts * times;
}

/* Which of the held is this one; it is added if there is none yet. */
static bool
find_held(struct closed *c, const struct closed_held *wanted, uint32_t *index,
          struct rec_error *err)
{
    size_t i = 0;
    while (i < c->nheld &&
           (c->held[i].dense != wanted->dense || c->held[i].experts != wanted->experts ||
            c->held[i].head != wanted->head))
        i++;
    if (i == c->nheld) {
        if (!rec_grow(&c->held, &c->room_held, c->nheld + 1, sizeof *c->held, err))
            return false;
        c->held[i] = *wanted;
        for (int zero = 0; zero < 4; zero++)
            c->held[i].fixed[zero] = c->held[i].once[zero].optimizer = NAN;
        c->nheld++;
    }
    *index = (uint32_t)i;
    return true;
}

bool
closed_split(struct closed *c, const struct parallel_mix *mix, struct rec_error *err)
{
    uint32_t n = c->model->t.layers;
    c->pp = mix->pp;
    c->vp = mix->vp;
    for (uint32_t r = 0; r < c->pp; r++) {
        struct closed_held held = {.dense = 0};
        c->signature[r] = 0;
        for (uint32_t i = 0; i < c->vp; i++) {
            uint32_t stage = i * c->pp + r;
            struct parallel_chunk chunk = parallel_chunk_of(mix, c->model, stage);
            for (uint32_t k = 0; k < c->kinds; k++) {
                const uint32_t *prefix = &c->prefix[k * ((size_t)n + 1)];
                uint32_t times = prefix[chunk.first + chunk.layers] - prefix[chunk.first];
                c->count[stage * c->kinds + k] = times;
                add_params(&held, &c->params[k], times);
                c->signature[r] |= times > 0 ? 4U << (k < KINDS_APART ? k : 20) : 0;
            }
            if (chunk.embedding)
                add_params(&held, &c->params[c->kinds], 1);
            if (chunk.head)
                add_params(&held, &c->params[c->kinds + 1], 1);
            held.head = held.head || chunk.head;
            c->signature[r] |= (chunk.embedding ? 1U : 0) | (chunk.head ? 2U : 0);
        }
        if (!find_held(c, &held, &c->holding[r], err))
            return false;
    }
    return true;
}

/* ---- the sum ---------------------------------------------------------------------- */

static double
memory_of(struct closed *c, const struct parallel_mix *mix, struct closed_layers *layers,
          uint32_t r)
{
    struct closed_held *held = &c->held[c->holding[r]];
    double *fixed = &held->fixed[mix->zero];
    if (isnan(*fixed)) {
        struct parallel_memory memory;
        parallel_memory_of(mix, c->model, r, c->machine->stack, &memory);
        *fixed = memory.weights + memory.gradients + memory.optimizer + memory.overhead;
        held->copy[mix->zero] = memory.copy;
    }
    if (isnan(c->activations[r]))
        c->activations[r] = closed_kept(c, mix, r);
    return *fixed +
           fmax(c->activations[r] + working(c, mix, layers, r), held->copy[mix->zero]);
}

double
closed_memory(struct closed *c, const struct parallel_mix *mix,
              struct closed_layers *layers)
{
    /* If all layers are alike, each device but the last holds and keeps at most what the
     * one before does, but that the first has the embedding. */
    bool alike = c->kinds == 1 && c->pp > 3;
    double most = 0;
    for (uint32_t r = 0; r < c->pp; r += alike && r == 1 ? c->pp - 2 : 1) {
        double bytes = memory_of(c, mix, layers, r);
        most = bytes > most ? bytes : most;
    }
    return most;
}

double
closed_seconds(struct closed *c, const struct parallel_mix *mix)
{
    double most = 0, tied = parallel_tied(c->model, mix, c->machine);
    if (!c->ran)
        closed_run(c, mix);
    c->ran = true;
    for (uint32_t r = 0; r < c->pp; r++) {
        struct closed_held *held = &c->held[c->holding[r]];
        struct parallel_once *of = &held->once[mix->zero], once;
        uint32_t ends = c->signature[r] & 3; /* of the model, that it has */
        double end;
        if (isnan(of->optimizer))
            parallel_once_alone(c->model, mix, c->machine, held->dense, held->experts,
                                of);
        once = *of;
        if (parallel_zero(mix) < 3)
            parallel_once_hide(mix, c->machine, c->own[0][r], c->own[1][r], &once);
        end = c->last[r] + once.gradients + once.optimizer + once.weights;
        end += ends == 1 || ends == 2 ? tied : 0;
        most = end > most ? end : most;
    }
    return most;
}

bool
parallel_closed_step(const struct parallel_model *model, const struct parallel_mix *mix,
                     const struct parallel_machine *machine,
                     struct parallel_closed *answer, struct rec_error *err)
{
    const struct parallel_pipe pipe = {
        .stages = mix->pp, .chunks = mix->vp, .microbatches = parallel_microbatches(mix)};
    struct closed c;
    struct closed_layers layers;
    double *numbers = NULL;
    bool ok = parallel_mix_check(mix, model, err) && mix->schedule->check(&pipe, err);
    if (ok && (mix->schedule->split || mix->schedule->vshape || mix->layers))
        return rec_fail(err, REC_DATA,
                        mix->layers ? "lists of layers have no closed form"
                                    : "the schedule %s has no closed form: gpipe, 1f1b "
                                      "and interleaved have one",
                        mix->schedule->name);
    if (ok && mix->vp > 1 && pipe.microbatches % mix->pp != 0)
        return rec_fail(err, REC_DATA,
                        "chunks have a closed form if the %u stages divide the "
                        "microbatches, which are %u",
                        mix->pp, pipe.microbatches);
    if (!ok)
        return false;
    ok = closed_open(&c, model, machine, err) &&
         ((numbers = calloc(closed_layers_size(&c), sizeof *numbers)) ||
          rec_fail_memory(err));
    if (ok) {
        closed_layers_place(&c, &layers, numbers);
        closed_params(&c, mix);
        closed_layers_make(&c, mix, &layers);
        ok = closed_split(&c, mix, err);
    }
    if (ok) {
        closed_stages(&c, mix, &layers);
        answer->seconds = closed_seconds(&c, mix);
        answer->memory = closed_memory(&c, mix, &layers);
    }
    free(numbers);
    closed_free(&c);
    return ok;
}
