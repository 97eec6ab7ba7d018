/* What the devices of a pipeline do in a step: ops on lanes, and what they wait for. What
 * replicas exchange is in program_exchange.c. */
#include "program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letter[] = {'F', 'B', 'W'};

static uint32_t *
at(const struct parallel_making *mk, uint32_t *list, unsigned pass, uint32_t stage,
   uint32_t i)
{
    return &list[((size_t)pass * mk->stages + stage) * mk->m + i];
}

/* ---- passes ------------------------------------------------------------ */

double
parallel_part_seconds(const struct parallel_making *mk, const struct parallel_passes *p,
                      unsigned pass)
{
    const struct parallel_parts *parts =
        pass == PARALLEL_FORWARD ? &p->forward : &p->backward;
    double shards = mk->replicas && parallel_zero(&mk->q->mix) >= 3 ? parts->shards : 0;
    if (pass == PARALLEL_WEIGHT)
        return p->weight;
    return parallel_parts_sum(parts) - shards -
           (pass == PARALLEL_BACKWARD && mk->split ? p->weight : 0);
}

double
parallel_blocked(const struct parallel_making *mk, unsigned pass, uint32_t stage)
{
    bool sends = pass == PARALLEL_FORWARD    ? stage + 1 < mk->stages
                 : pass == PARALLEL_BACKWARD ? stage > 0
                                             : false;
    return mk->q->machine.stack->blocking && !mk->messages && sends ? mk->times->message
                                                                    : 0;
}

/* FLOPs of a pass for a multiply-add forward. The gradient of weights is half of a
 * backward pass that is split; where weights are frozen it takes no time and has none. */
static double
flops_of(const struct parallel_making *mk, unsigned pass, double weight)
{
    if (pass == PARALLEL_FORWARD)
        return 2;
    if (!mk->split)
        return 4;
    return weight > 0 ? 2 : pass == PARALLEL_WEIGHT ? 0 : 4;
}

double
parallel_pass_flops(const struct parallel_making *mk, unsigned pass, uint32_t stage,
                    uint32_t j, uint32_t n)
{
    const struct parallel_model *model = &mk->q->model;
    const struct parallel_mix *mix = &mk->q->mix;
    const struct parallel_passes *head = &mk->times->kind[model->nkinds + 1];
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    double sum = chunk.head && j + n == chunk.layers
                     ? flops_of(mk, pass, head->weight) *
                           parallel_kind_work(model, &model->head, 1)
                     : 0;
    for (uint32_t i = j; i < j + n; i++)
        sum += flops_of(mk, pass,
                        parallel_times_kind(mk->times, model, mix, stage, i)->weight) *
               parallel_kind_work(model, &model->kind[model->of[chunk.first + i]], 1);
    return sum * parallel_tokens(model, mix) / mix->tp;
}

struct parallel_node *
parallel_add_pass_node(struct parallel_making *mk, const struct parallel_item *item,
                       uint32_t stage, uint32_t j, const char *inner, double seconds)
{
    static const char *const passes[] = {"forward", "backward", "backward"};
    struct parallel_node *node =
        parallel_add_node(mk, passes[item->pass], seconds, PARALLEL_LANE_COMPUTE);
    if (!node)
        return NULL;
    if (item->pass == PARALLEL_WEIGHT)
        snprintf(node->type, sizeof node->type, "weights");
    else if (mk->q->mix.vp > 1)
        snprintf(node->type, sizeof node->type, "chunk %u", item->chunk % 10000U);
    if (j == UINT32_MAX)
        snprintf(node->name, sizeof node->name, "%c%u.%u", letter[item->pass],
                 item->microbatch, stage);
    else
        snprintf(node->name, sizeof node->name, "%c%u.%u/%u%s", letter[item->pass],
                 item->microbatch, stage, j, inner);
    return node;
}

/* Layers j to j + n - 1 of a pass; `ends`: they are the last of it. */
static bool
add_piece(struct parallel_making *mk, const struct parallel_item *item, uint32_t stage,
          uint32_t j, uint32_t n, bool whole, bool ends)
{
    const struct parallel_passes layer =
        whole ? mk->times->stage[stage]
              : parallel_times_layer(mk->times, &mk->q->model, &mk->q->mix, stage, j);
    double seconds = parallel_part_seconds(mk, &layer, item->pass) +
                     (ends ? parallel_blocked(mk, item->pass, stage) : 0);
    struct parallel_node *node =
        parallel_add_pass_node(mk, item, stage, ends ? UINT32_MAX : j, "", seconds);
    if (node)
        node->flops = parallel_pass_flops(mk, item->pass, stage, j, n);
    return node != NULL;
}

static bool
has_next(const struct parallel_making *mk, unsigned pass, uint32_t stage, uint32_t *next)
{
    if (pass == PARALLEL_WEIGHT ||
        (pass == PARALLEL_FORWARD ? stage + 1 == mk->stages : stage == 0))
        return false;
    *next = pass == PARALLEL_FORWARD ? stage + 1 : stage - 1;
    return true;
}

static bool
leaves(const struct parallel_making *mk, uint32_t next)
{
    uint32_t chunk;
    return parallel_device(mk->q->mix.schedule, mk->q->mix.pp, next, &chunk) != mk->r;
}

/* A message that is an op of its own. */
static bool
add_message(struct parallel_making *mk, const struct parallel_item *item, uint32_t stage)
{
    struct parallel_node *node;
    uint32_t *last = at(mk, mk->last, item->pass, stage, item->microbatch), next;
    if (mk->messages || mk->q->machine.stack->blocking || mk->times->message <= 0 ||
        !has_next(mk, item->pass, stage, &next) || !leaves(mk, next))
        return true;
    node = parallel_add_node(mk, "task", mk->times->message,
                             item->pass == PARALLEL_FORWARD ? PARALLEL_LANE_ACTIVATIONS
                                                            : PARALLEL_LANE_GRADIENTS);
    if (!node)
        return false;
    snprintf(node->name, sizeof node->name, "send.%.40s", mk->program->node[*last].name);
    snprintf(node->type, sizeof node->type, "exchange");
    if (!parallel_add_edge(mk, *last, parallel_node_index(mk, node), 0))
        return false;
    *last = parallel_node_index(mk, node); /* what comes next waits for the message */
    return true;
}

/* A pass, layer by layer if replicas exchange something beside it. `first` and `last`
 * ones of its kind on the device. */
static bool
add_pass(struct parallel_making *mk, const struct parallel_item *item, bool first,
         bool last)
{
    const struct parallel_mix *mix = &mk->q->mix;
    uint32_t stage = parallel_stage(mix->schedule, mix->pp, mk->r, item->chunk);
    uint32_t layers = parallel_chunk_of(mix, &mk->q->model, stage).layers, pieces;
    bool beside = mk->replicas && mix->overlap & PARALLEL_OVERLAP_DP;
    bool sharded = mk->replicas && parallel_zero(mix) >= 3;
    bool gathers =
        item->pass != PARALLEL_WEIGHT && (sharded || (beside && mix->zero >= 1 && first &&
                                                      item->pass == PARALLEL_FORWARD));
    bool scatters = item->pass == (mk->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD) &&
                    (sharded || (beside && last));
    bool cut = mk->inner && item->pass != PARALLEL_WEIGHT;
    pieces = (gathers || scatters || cut) && layers > 1 ? layers : 1;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t n = pieces > 1 ? 1 : layers;
        uint32_t j = pieces == 1                      ? 0
                     : item->pass == PARALLEL_FORWARD ? i
                                                      : pieces - 1 - i;
        uint32_t node, begins = (uint32_t)mk->program->nnodes;
        if (cut ? !parallel_cut_pass(mk, item, stage, j, i == pieces - 1)
                : !add_piece(mk, item, stage, j, n, pieces == 1, i == pieces - 1))
            return false;
        if (cut) /* exchanges may be nodes, but the first one is computed */
            n = layers > 0 ? 1 : 0;
        node = mk->before[0];
        if (i == 0)
            *at(mk, mk->first, item->pass, stage, item->microbatch) = begins;
        /* shards one layer ahead; else, behind the step before, at once */
        if (gathers && !parallel_gather(mk, parallel_amount_of(mk, stage, j, n, !sharded),
                                        sharded ? mk->before[2] : mk->start, begins))
            return false;
        if (scatters && !parallel_exchange_gradients(
                            mk, parallel_amount_of(mk, stage, j, n, true), node, last))
            return false;
    }
    *at(mk, mk->last, item->pass, stage, item->microbatch) = mk->before[0];
    return true;
}

/* ---- a device ---------------------------------------------------------- */

/* What it holds from the start on. */
static bool
add_state(struct parallel_making *mk)
{
    static const char *const kinds[] = {"weights", "gradients", "optimizer", "working"};
    struct parallel_memory memory;
    parallel_memory_of(&mk->q->mix, &mk->q->model, mk->r, mk->q->machine.stack, &memory);
    const double bytes[] = {memory.weights, memory.gradients, memory.optimizer,
                            memory.working};
    for (int i = 0; i < 4; i++) {
        struct parallel_node *node =
            parallel_add_node(mk, "task", 0, PARALLEL_LANE_COMPUTE);
        if (!node)
            return false;
        node->hold = bytes[i];
        snprintf(node->name, sizeof node->name, "state-%s.%u", kinds[i], mk->r);
        mk->start = parallel_node_index(mk, node);
    }
    return true;
}

static bool
add_once(struct parallel_making *mk, const char *name, double seconds)
{
    struct parallel_node *node =
        parallel_add_node(mk, "task", seconds, PARALLEL_LANE_COMPUTE);
    if (node)
        snprintf(node->name, sizeof node->name, "%.20s.%u", name, mk->r);
    return node != NULL;
}

/* Copies of gradients take the place of the working memory. */
static bool
add_optimizer(struct parallel_making *mk, double seconds)
{
    struct parallel_memory memory;
    struct parallel_node *node;
    if (!add_once(mk, "optimizer", seconds))
        return false;
    parallel_memory_of(&mk->q->mix, &mk->q->model, mk->r, mk->q->machine.stack, &memory);
    node = &mk->program->node[mk->before[0]];
    node->hold = fmax(0, memory.copy - memory.working);
    return true;
}

static struct parallel_amount
params_of_device(const struct parallel_making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    struct parallel_amount sum = {0, 0};
    for (uint32_t i = 0; i < mix->vp; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, mk->r, i);
        uint32_t n = parallel_chunk_of(mix, &mk->q->model, stage).layers;
        struct parallel_amount p = parallel_amount_of(mk, stage, 0, n, true);
        sum.dense += p.dense;
        sum.experts += p.experts;
    }
    return sum;
}

/* Behind the passes. What does not run beside them is exchanged at once. */
static bool
add_end(struct parallel_making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    const struct parallel_once *once = &mk->times->device[mk->r];
    bool late = !(mix->overlap & PARALLEL_OVERLAP_DP) && parallel_zero(mix) < 3;
    struct parallel_amount p = params_of_device(mk);
    if (!mk->replicas)
        return add_once(mk, "gradients", once->gradients) &&
               add_optimizer(mk, once->optimizer) &&
               add_once(mk, "weights", once->weights);
    if (late && !parallel_exchange_gradients(mk, p, mk->before[0], true))
        return false;
    if (once->tied > 0) {
        if (!add_once(mk, "tied", once->tied) ||
            !parallel_await(mk, mk->waits, mk->before[0]))
            return false;
        /* One node waits for an exchange. The optimizer is behind this one. */
        mk->waits = parallel_no_pair;
    }
    if (!add_optimizer(mk, once->optimizer) ||
        !parallel_await(mk, mk->waits, mk->before[0]))
        return false;
    return !late || mix->zero == 0 || parallel_gather(mk, p, mk->before[0], UINT32_MAX);
}

static bool
add_device(struct parallel_making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    const struct parallel_item *item = mk->item + mk->r * mk->each;
    /* of each chunk the first forward pass, and the last one of gradients */
    size_t *ends = calloc((size_t)2 * mix->vp, sizeof *ends);
    uint8_t gradient = mk->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD;
    bool ok = ends || rec_fail_memory(mk->err);
    mk->waits = parallel_no_pair;
    ok = ok && add_state(mk);
    for (size_t i = mk->each; ok && i-- > 0;)
        if (item[i].pass == PARALLEL_FORWARD)
            ends[2 * item[i].chunk] = i;
    for (size_t i = 0; ok && i < mk->each; i++)
        if (item[i].pass == gradient)
            ends[2 * item[i].chunk + 1] = i;
    for (size_t i = 0; ok && i < mk->each; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, mk->r, item[i].chunk);
        ok = add_pass(mk, &item[i], ends[2 * item[i].chunk] == i,
                      ends[2 * item[i].chunk + 1] == i);
        if (ok && item[i].pass == PARALLEL_FORWARD)
            mk->program->node[mk->before[0]].hold =
                parallel_stage_kept(mix, &mk->q->model, stage);
        if (ok && item[i].pass == gradient) {
            uint32_t f = *at(mk, mk->first, 3, stage, item[i].microbatch);
            mk->program->node[f].release = mk->before[0];
        }
        if (ok && item[i].pass == PARALLEL_FORWARD)
            *at(mk, mk->first, 3, stage, item[i].microbatch) = mk->before[0];
        ok = ok && add_message(mk, &item[i], stage);
    }
    free(ends);
    return ok && add_end(mk);
}

/* A pass needs what the stage before it made; the first backward of a microbatch, its
 * last forward. */
static bool
connect(struct parallel_making *mk)
{
    uint32_t next;
    for (uint32_t stage = 0; stage < mk->stages; stage++)
        for (uint32_t i = 0; i < mk->m; i++)
            for (unsigned pass = 0; pass < 2; pass++) {
                uint32_t from = *at(mk, mk->last, pass, stage, i), to;
                uint32_t there = mk->program->node[from].device;
                double bytes = 0;
                if (has_next(mk, pass, stage, &next))
                    to = *at(mk, mk->first, pass, next, i);
                else if (pass == PARALLEL_FORWARD)
                    to = *at(mk, mk->first, PARALLEL_BACKWARD, stage, i);
                else
                    continue;
                if (mk->messages && mk->program->node[to].device != there)
                    bytes = mk->times->message_bytes;
                if (!parallel_add_edge(mk, from, to, bytes))
                    return false;
            }
    return true;
}

/* ---- the whole --------------------------------------------------------- */

/* The orders of all devices. NULL: *err. */
static struct parallel_item *
make_orders(const struct parallel_making *mk)
{
    struct parallel_pipe pipe = {.forward = NULL};
    struct parallel_item *item = NULL;
    if (parallel_pipe_make(&mk->q->mix, &mk->q->machine, mk->times, &pipe, mk->err))
        item = parallel_orders(mk->q->mix.schedule, &pipe, mk->err);
    if (!item && mk->err->code == REC_DATA)
        mk->err->code = REC_NO;
    free((double *)(uintptr_t)pipe.forward);
    return item;
}

/* The exchanges inside passes that there are. */
static unsigned
inner_of(unsigned colls, const struct parallel_mix *mix,
         const struct parallel_model *model)
{
    return (mix->tp > 1 ? colls & PARALLEL_OVERLAP_TP : 0) |
           (mix->cp > 1 ? colls & PARALLEL_OVERLAP_CP : 0) |
           (mix->ep > 1 && model->t.experts > 0 ? colls & PARALLEL_OVERLAP_EP : 0);
}

bool
parallel_program_make(struct parallel_program *program,
                      const struct parallel_graph *graph,
                      const struct parallel_question *q,
                      const struct parallel_times *times, struct rec_error *err)
{
    const struct parallel_mix *mix = &q->mix;
    struct parallel_making mk = {
        .program = program,
        .graph = graph,
        .q = q,
        .times = times,
        .err = err,
        .m = parallel_microbatches(mix),
        .stages = mix->pp * mix->vp,
        .replicas = graph->colls & PARALLEL_OVERLAP_DP,
        .messages = graph->colls & PARALLEL_OVERLAP_PP,
        .split = mix->schedule->split,
    };
    mk.inner = inner_of(graph->colls, mix, &q->model);
    struct parallel_pipe pipe = {.chunks = mix->vp, .microbatches = mk.m};
    size_t cells = (size_t)mk.stages * mk.m;
    bool ok = (mk.item = make_orders(&mk)) != NULL;
    mk.each = parallel_items(mix->schedule, &pipe);
    mk.first = calloc(4 * cells, sizeof *mk.first); /* [3]: where a forward pass ends */
    mk.last = calloc(3 * cells, sizeof *mk.last);
    mk.member = calloc((size_t)mix->tp * mix->cp * mix->dp, sizeof *mk.member);
    mk.cut = calloc(q->model.nkinds, sizeof *mk.cut);
    ok = ok && ((mk.first && mk.last && mk.member && mk.cut) || rec_fail_memory(err));
    for (mk.r = 0; ok && mk.r < mix->pp; mk.r++)
        ok = add_device(&mk);
    ok = ok && connect(&mk);
    free(mk.item);
    free(mk.first);
    free(mk.last);
    free(mk.member);
    free(mk.cut);
    return ok;
}

void
parallel_program_free(struct parallel_program *program)
{
    free(program->node);
    free(program->edge);
    free(program->swap);
    *program = (struct parallel_program){0};
}
