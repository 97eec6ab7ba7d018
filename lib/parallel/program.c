/* What the devices of a pipeline do in a step: ops on lanes, what they wait for, and what
 * replicas exchange. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT = 2, NONE = -1 };

static const char letter[] = {'F', 'B', 'W'};

/* The last exchanges of weights that all replicas have, and of experts'; NONE. */
struct pair {
    int64_t dense, experts;
};
static const struct pair none = {NONE, NONE};

struct making {
    struct parallel_program *program;
    const struct parallel_graph *graph;
    const struct parallel_question *q;
    const struct parallel_times *times;
    struct rec_error *err;
    struct parallel_item *item; /* the orders of all devices; owned */
    size_t each;                /* items of a device */
    uint32_t m, stages;         /* microbatches, virtual stages */
    bool replicas, messages;    /* exchanges that the network times */
    bool split;
    uint32_t *first,
        *last;        /* nodes of a pass, [pass][virtual stage][microbatch]; owned */
    uint32_t *member; /* room for a group; owned */
    /* of the device at hand */
    uint32_t r;
    uint32_t before[3]; /* the last nodes of its compute lane */
    uint32_t start;     /* the node behind which the step begins */
    struct pair waits;  /* the exchanges that the optimizer waits for */
    uint64_t exchanges; /* so many so far */
};

static uint32_t *
at(const struct making *mk, uint32_t *list, unsigned pass, uint32_t stage, uint32_t i)
{
    return &list[((size_t)pass * mk->stages + stage) * mk->m + i];
}

/* ---- nodes and edges --------------------------------------------------- */

static struct parallel_node *
add_node(struct making *mk, const char *pass, double seconds, enum parallel_lane lane)
{
    struct parallel_program *p = mk->program;
    struct parallel_node *node;
    if (p->nnodes >= UINT32_MAX ||
        !rec_grow(&p->node, &p->node_room, p->nnodes + 1, sizeof *p->node, mk->err))
        return NULL;
    node = &p->node[p->nnodes++];
    *node = (struct parallel_node){.pass = pass,
                                   .seconds = seconds,
                                   .device = mk->r,
                                   .release = UINT32_MAX,
                                   .lane = lane,
                                   .order = p->nnodes};
    if (lane == PARALLEL_LANE_COMPUTE) {
        mk->before[2] = mk->before[1];
        mk->before[1] = mk->before[0];
        mk->before[0] = (uint32_t)(p->nnodes - 1);
    }
    return node;
}

/* Exchanges run in the order in which they may begin: that of the nodes behind which they
 * do. */
static uint64_t
order_behind(struct making *mk, uint32_t from)
{
    return ((uint64_t)from << 20) + (mk->exchanges++ & 0xfffff);
}

static uint32_t
index_of(const struct making *mk, const struct parallel_node *node)
{
    return (uint32_t)(node - mk->program->node);
}

static bool
add_edge(struct making *mk, uint32_t from, uint32_t to, double bytes)
{
    struct parallel_program *p = mk->program;
    if (!rec_grow(&p->edge, &p->edge_room, p->nedges + 1, sizeof *p->edge, mk->err))
        return false;
    p->edge[p->nedges++] = (struct parallel_edge){from, to, bytes};
    return true;
}

/* ---- exchanges of replicas --------------------------------------------- */

static enum graph_exchange_kind
kind_of(const char *kind)
{
    return strcmp(kind, "all-reduce") == 0   ? GRAPH_ALL_REDUCE
           : strcmp(kind, "all-gather") == 0 ? GRAPH_ALL_GATHER
                                             : GRAPH_REDUCE_SCATTER;
}

/* How long the network takes for it alone: what the first of the groups takes. */
static bool
alone(const struct making *mk, const char *kind, uint32_t n, double bytes,
      double *seconds)
{
    struct net_exchange e = {.kind = kind_of(kind), .n = n, .bytes = bytes};
    uint32_t *server = calloc(n, sizeof *server);
    bool ok = server || rec_fail_memory(mk->err);
    e.flow = graph_coll_bytes(e.kind, bytes, n);
    for (uint32_t i = 0; ok && i < n; i++)
        server[i] = (uint32_t)parallel_rank(&mk->q->mix, mk->r, mk->member[i]);
    e.server = server;
    ok = ok && net_alone(mk->graph->net, &e, 1, seconds, mk->err);
    free(server);
    return ok;
}

static bool
await_one(struct making *mk, int64_t exchange, uint32_t to)
{
    if (exchange == NONE)
        return true;
    if (!mk->graph->unfold)
        return add_edge(mk, (uint32_t)exchange, to, 0);
    mk->program->swap[exchange].to = to;
    return true;
}

/* Lets `to` wait for exchanges. */
static bool
await(struct making *mk, struct pair exchange, uint32_t to)
{
    return await_one(mk, exchange.dense, to) && await_one(mk, exchange.experts, to);
}

/* What is exchanged, and why. */
struct swap {
    const char *what, *kind;
    bool between;
    uint32_t from, order; /* nodes: what it is behind, and what it is in the order of */
    uint32_t named;       /* the node that it is for */
};

/* *which stays as it is if there is nothing to do. */
static bool
exchange(struct making *mk, const struct swap *swap, enum parallel_group group,
         double bytes, int64_t *which)
{
    struct parallel_program *p = mk->program;
    uint32_t n = parallel_members(&mk->q->mix, group, 0, mk->member);
    bool experts = group == PARALLEL_EXPERT_SHARDS || group == PARALLEL_EXPERT_BETWEEN;
    enum parallel_lane lane = group == PARALLEL_SHARDS          ? PARALLEL_LANE_DATA
                              : group == PARALLEL_EXPERT_SHARDS ? PARALLEL_LANE_EXPERTS
                              : group == PARALLEL_BETWEEN       ? PARALLEL_LANE_BETWEEN
                                                          : PARALLEL_LANE_EXPERTS_BETWEEN;
    struct parallel_node *node;
    char name[PARALLEL_NAME];
    double seconds;
    if (n < 2 || bytes <= 0)
        return true;
    snprintf(name, sizeof name, "%s%s.%.30s", swap->what, experts ? "-x" : "",
             p->node[swap->named].name);
    if (mk->graph->unfold) {
        struct parallel_swap one = {.kind = swap->kind,
                                    .group = group,
                                    .bytes = bytes,
                                    .device = mk->r,
                                    .lane = lane,
                                    .from = swap->from,
                                    .to = UINT32_MAX};
        memcpy(one.name, name, sizeof name);
        if (!rec_grow(&p->swap, &p->swap_room, p->nswaps + 1, sizeof one, mk->err))
            return false;
        *which = (int64_t)p->nswaps;
        p->swap[p->nswaps++] = one;
        return true;
    }
    if (!alone(mk, swap->kind, n, bytes, &seconds) ||
        !(node = add_node(mk, "task", seconds, lane)))
        return false;
    node->order = order_behind(mk, swap->order);
    memcpy(node->name, name, sizeof name);
    snprintf(node->type, sizeof node->type, "exchange");
    *which = (int64_t)index_of(mk, node);
    return add_edge(mk, swap->from, (uint32_t)*which, 0);
}

/* Parameters on a rank. */
struct params {
    double dense, experts;
};

/* Those of layers j to j + n - 1 of a virtual stage, with the ends that they are beside,
 * or of all of the stage if it has no layers. */
static struct params
params_of(const struct making *mk, uint32_t stage, uint32_t j, uint32_t n, bool trained)
{
    const struct parallel_model *model = &mk->q->model;
    const struct parallel_mix *mix = &mk->q->mix;
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    struct params p = {0, 0};
    unsigned (*add)(const struct parallel_kind *, const struct parallel_mix *,
                    const struct parallel_model *, double *, double *) =
        trained ? parallel_trained : parallel_held;
    for (uint32_t i = j; i < j + n; i++)
        add(&model->kind[model->of[chunk.first + i]], mix, model, &p.dense, &p.experts);
    if (chunk.embedding && j == 0)
        add(&model->embedding, mix, model, &p.dense, &p.experts);
    if (chunk.head && j + n == chunk.layers)
        add(&model->head, mix, model, &p.dense, &p.experts);
    return p;
}

static bool
exchange_both(struct making *mk, const struct swap *swap, struct params p, double element,
              struct pair *which)
{
    return exchange(mk, swap, swap->between ? PARALLEL_BETWEEN : PARALLEL_SHARDS,
                    element * p.dense, &which->dense) &&
           exchange(mk, swap,
                    swap->between ? PARALLEL_EXPERT_BETWEEN : PARALLEL_EXPERT_SHARDS,
                    element * p.experts, &which->experts);
}

/* Groups that hold copies sum their shards behind the exchange `scatter`, which was
 * behind the node `from`. */
static bool
exchange_shards(struct making *mk, struct params p, uint32_t from, struct pair scatter)
{
    double element = mk->q->machine.stack->gradient;
    struct swap swap = {"sum", "all-reduce", true, 0, from, from};
    for (int i = 0; i < 2; i++) { /* each on its lane */
        enum parallel_group group = i == 0 ? PARALLEL_SHARDS : PARALLEL_EXPERT_SHARDS;
        uint32_t n = parallel_members(&mk->q->mix, group, 0, mk->member);
        double bytes = element * (i == 0 ? p.dense : p.experts) / n;
        struct parallel_node *middle =
            add_node(mk, "task", 0,
                     i == 0 ? PARALLEL_LANE_BETWEEN : PARALLEL_LANE_EXPERTS_BETWEEN);
        if (!middle)
            return false;
        middle->order = order_behind(mk, from);
        swap.from = index_of(mk, middle);
        snprintf(middle->name, sizeof middle->name, "%s.%.30s",
                 i == 0 ? "shard" : "shard-x", mk->program->node[from].name);
        if (!add_edge(mk, from, swap.from, 0) ||
            !await_one(mk, i == 0 ? scatter.dense : scatter.experts, swap.from) ||
            !exchange(mk, &swap, i == 0 ? PARALLEL_BETWEEN : PARALLEL_EXPERT_BETWEEN,
                      bytes, i == 0 ? &mk->waits.dense : &mk->waits.experts))
            return false;
    }
    return true;
}

/* Gradients behind the node `from`; `last`: of the last microbatch. */
static bool
exchange_gradients(struct making *mk, struct params p, uint32_t from, bool last)
{
    struct swap swap = {"sum", "all-reduce", false, from, from, from};
    struct pair scatter = none;
    if (mk->q->mix.zero >= 1)
        swap.what = "scatter", swap.kind = "reduce-scatter";
    if (!exchange_both(mk, &swap, p, mk->q->machine.stack->gradient, &scatter))
        return false;
    if (scatter.dense != NONE)
        mk->waits.dense = scatter.dense;
    if (scatter.experts != NONE)
        mk->waits.experts = scatter.experts;
    return mk->q->mix.shard == 0 || !last || exchange_shards(mk, p, from, scatter);
}

/* ---- passes ------------------------------------------------------------ */

static double
part_seconds(const struct making *mk, const struct parallel_passes *p, unsigned pass)
{
    const struct parallel_parts *parts =
        pass == PARALLEL_FORWARD ? &p->forward : &p->backward;
    double shards = mk->replicas && mk->q->mix.zero >= 3 ? parts->shards : 0;
    if (pass == PARALLEL_WEIGHT)
        return p->weight;
    return parallel_parts_sum(parts) - shards -
           (pass == PARALLEL_BACKWARD && mk->split ? p->weight : 0);
}

/* What a blocking message adds to a pass. */
static double
blocked(const struct making *mk, unsigned pass, uint32_t stage)
{
    bool sends = pass == PARALLEL_FORWARD    ? stage + 1 < mk->stages
                 : pass == PARALLEL_BACKWARD ? stage > 0
                                             : false;
    return mk->q->machine.stack->blocking && !mk->messages && sends ? mk->times->message
                                                                    : 0;
}

/* FLOPs of the model in a pass on a rank, attention in full. */
static double
flops_of(const struct making *mk, unsigned pass, uint32_t stage, uint32_t j, uint32_t n)
{
    const struct parallel_model *model = &mk->q->model;
    struct parallel_chunk chunk = parallel_chunk_of(&mk->q->mix, model, stage);
    double work = chunk.head && j + n == chunk.layers
                      ? parallel_kind_work(model, &model->head, 1)
                      : 0;
    for (uint32_t i = j; i < j + n; i++)
        work += parallel_kind_work(model, &model->kind[model->of[chunk.first + i]], 1);
    return (pass == PARALLEL_FORWARD || mk->split ? 2 : 4) * work *
           parallel_tokens(model, &mk->q->mix) / mk->q->mix.tp;
}

/* Weights are gathered behind the node `from`, before the node `to`. */
static bool
gather(struct making *mk, struct params p, uint32_t from, uint32_t to)
{
    const struct swap swap = {"gather", "all-gather", false, from, from, to};
    struct pair which = none;
    return exchange_both(mk, &swap, p, mk->q->mix.gather_fp8 ? 1 : ELEMENT, &which) &&
           await(mk, which, to);
}

/* Layers j to j + n - 1 of a pass; `ends`: they are the last of it. */
static bool
add_piece(struct making *mk, const struct parallel_item *item, uint32_t stage, uint32_t j,
          uint32_t n, bool whole, bool ends)
{
    static const char *const passes[] = {"forward", "backward", "backward"};
    const struct parallel_passes layer =
        whole ? mk->times->stage[stage]
              : parallel_times_layer(mk->times, &mk->q->model, &mk->q->mix, stage, j);
    double seconds = part_seconds(mk, &layer, item->pass) +
                     (ends ? blocked(mk, item->pass, stage) : 0);
    struct parallel_node *node =
        add_node(mk, passes[item->pass], seconds, PARALLEL_LANE_COMPUTE);
    if (!node)
        return false;
    if (item->pass == PARALLEL_WEIGHT)
        snprintf(node->type, sizeof node->type, "weights");
    else if (mk->q->mix.vp > 1)
        snprintf(node->type, sizeof node->type, "chunk %u", item->chunk % 10000U);
    node->flops = flops_of(mk, item->pass, stage, j, n);
    if (ends)
        snprintf(node->name, sizeof node->name, "%c%u.%u", letter[item->pass],
                 item->microbatch, stage);
    else
        snprintf(node->name, sizeof node->name, "%c%u.%u/%u", letter[item->pass],
                 item->microbatch, stage, j);
    return true;
}

static bool
has_next(const struct making *mk, unsigned pass, uint32_t stage, uint32_t *next)
{
    if (pass == PARALLEL_WEIGHT ||
        (pass == PARALLEL_FORWARD ? stage + 1 == mk->stages : stage == 0))
        return false;
    *next = pass == PARALLEL_FORWARD ? stage + 1 : stage - 1;
    return true;
}

static bool
leaves(const struct making *mk, uint32_t next)
{
    uint32_t chunk;
    return parallel_device(mk->q->mix.schedule, mk->q->mix.pp, next, &chunk) != mk->r;
}

/* A message that is an op of its own. */
static bool
add_message(struct making *mk, const struct parallel_item *item, uint32_t stage)
{
    struct parallel_node *node;
    uint32_t *last = at(mk, mk->last, item->pass, stage, item->microbatch), next;
    if (mk->messages || mk->q->machine.stack->blocking || mk->times->message <= 0 ||
        !has_next(mk, item->pass, stage, &next) || !leaves(mk, next))
        return true;
    node = add_node(mk, "task", mk->times->message,
                    item->pass == PARALLEL_FORWARD ? PARALLEL_LANE_ACTIVATIONS
                                                   : PARALLEL_LANE_GRADIENTS);
    if (!node)
        return false;
    snprintf(node->name, sizeof node->name, "send.%.40s", mk->program->node[*last].name);
    snprintf(node->type, sizeof node->type, "exchange");
    if (!add_edge(mk, *last, index_of(mk, node), 0))
        return false;
    *last = index_of(mk, node); /* what comes next waits for the message */
    return true;
}

/* A pass, layer by layer if replicas exchange something beside it. `first` and `last`
 * ones of its kind on the device. */
static bool
add_pass(struct making *mk, const struct parallel_item *item, bool first, bool last)
{
    const struct parallel_mix *mix = &mk->q->mix;
    uint32_t stage = parallel_stage(mix->schedule, mix->pp, mk->r, item->chunk);
    uint32_t layers = parallel_chunk_of(mix, &mk->q->model, stage).layers, pieces;
    bool beside = mk->replicas && mix->overlap & PARALLEL_OVERLAP_DP;
    bool sharded = mk->replicas && mix->zero >= 3;
    bool gathers =
        item->pass != PARALLEL_WEIGHT && (sharded || (beside && mix->zero >= 1 && first &&
                                                      item->pass == PARALLEL_FORWARD));
    bool scatters = item->pass == (mk->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD) &&
                    (sharded || (beside && last));
    pieces = (gathers || scatters) && layers > 1 ? layers : 1;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t n = pieces > 1 ? 1 : layers;
        uint32_t j = pieces == 1                      ? 0
                     : item->pass == PARALLEL_FORWARD ? i
                                                      : pieces - 1 - i;
        uint32_t node;
        if (!add_piece(mk, item, stage, j, n, pieces == 1, i == pieces - 1))
            return false;
        node = mk->before[0];
        if (i == 0)
            *at(mk, mk->first, item->pass, stage, item->microbatch) = node;
        /* shards one layer ahead; else, behind the step before, at once */
        if (gathers && !gather(mk, params_of(mk, stage, j, n, !sharded),
                               sharded ? mk->before[2] : mk->start, node))
            return false;
        if (scatters &&
            !exchange_gradients(mk, params_of(mk, stage, j, n, true), node, last))
            return false;
    }
    *at(mk, mk->last, item->pass, stage, item->microbatch) = mk->before[0];
    return true;
}

/* ---- a device ---------------------------------------------------------- */

/* What it holds from the start on. */
static bool
add_state(struct making *mk)
{
    static const char *const kinds[] = {"weights", "gradients", "optimizer", "working"};
    struct parallel_memory memory;
    parallel_memory_of(&mk->q->mix, &mk->q->model, mk->r, mk->q->machine.stack->gradient,
                       &memory);
    const double bytes[] = {memory.weights, memory.gradients, memory.optimizer,
                            memory.working};
    for (int i = 0; i < 4; i++) {
        struct parallel_node *node = add_node(mk, "task", 0, PARALLEL_LANE_COMPUTE);
        if (!node)
            return false;
        node->hold = bytes[i];
        snprintf(node->name, sizeof node->name, "state-%s.%u", kinds[i], mk->r);
        mk->start = index_of(mk, node);
    }
    return true;
}

static bool
add_once(struct making *mk, const char *name, double seconds)
{
    struct parallel_node *node = add_node(mk, "task", seconds, PARALLEL_LANE_COMPUTE);
    if (node)
        snprintf(node->name, sizeof node->name, "%.20s.%u", name, mk->r);
    return node != NULL;
}

static struct params
params_of_device(const struct making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    struct params sum = {0, 0};
    for (uint32_t i = 0; i < mix->vp; i++) {
        uint32_t stage = parallel_stage(mix->schedule, mix->pp, mk->r, i);
        uint32_t n = parallel_chunk_of(mix, &mk->q->model, stage).layers;
        struct params p = params_of(mk, stage, 0, n, true);
        sum.dense += p.dense;
        sum.experts += p.experts;
    }
    return sum;
}

/* Behind the passes. What does not run beside them is exchanged at once. */
static bool
add_end(struct making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    const struct parallel_once *once = &mk->times->device[mk->r];
    bool late = !(mix->overlap & PARALLEL_OVERLAP_DP) && mix->zero < 3;
    struct params p = params_of_device(mk);
    struct pair ignored = none;
    if (!mk->replicas)
        return add_once(mk, "gradients", once->gradients) &&
               add_once(mk, "optimizer", once->optimizer) &&
               add_once(mk, "weights", once->weights);
    if (late && !exchange_gradients(mk, p, mk->before[0], true))
        return false;
    if (!add_once(mk, "optimizer", once->optimizer) ||
        !await(mk, mk->waits, mk->before[0]))
        return false;
    const struct swap swap = {"gather",      "all-gather",  false,
                              mk->before[0], mk->before[0], mk->before[0]};
    return !late || mix->zero == 0 ||
           exchange_both(mk, &swap, p, mix->gather_fp8 ? 1 : ELEMENT, &ignored);
}

static bool
add_device(struct making *mk)
{
    const struct parallel_mix *mix = &mk->q->mix;
    const struct parallel_item *item = mk->item + mk->r * mk->each;
    /* of each chunk the first forward pass, and the last one of gradients */
    size_t *ends = calloc((size_t)2 * mix->vp, sizeof *ends);
    uint8_t gradient = mk->split ? PARALLEL_WEIGHT : PARALLEL_BACKWARD;
    bool ok = ends || rec_fail_memory(mk->err);
    mk->waits = none;
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
connect(struct making *mk)
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
                if (!add_edge(mk, from, to, bytes))
                    return false;
            }
    return true;
}

/* ---- the whole --------------------------------------------------------- */

/* The orders of all devices. NULL: *err. */
static struct parallel_item *
make_orders(const struct making *mk)
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

bool
parallel_program_make(struct parallel_program *program,
                      const struct parallel_graph *graph,
                      const struct parallel_question *q,
                      const struct parallel_times *times, struct rec_error *err)
{
    const struct parallel_mix *mix = &q->mix;
    struct making mk = {
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
    struct parallel_pipe pipe = {.chunks = mix->vp, .microbatches = mk.m};
    size_t cells = (size_t)mk.stages * mk.m;
    bool ok = (mk.item = make_orders(&mk)) != NULL;
    mk.each = parallel_items(mix->schedule, &pipe);
    mk.first = calloc(4 * cells, sizeof *mk.first); /* [3]: where a forward pass ends */
    mk.last = calloc(3 * cells, sizeof *mk.last);
    mk.member = calloc((size_t)mix->tp * mix->cp * mix->dp, sizeof *mk.member);
    ok = ok && ((mk.first && mk.last && mk.member) || rec_fail_memory(err));
    for (mk.r = 0; ok && mk.r < mix->pp; mk.r++)
        ok = add_device(&mk);
    ok = ok && connect(&mk);
    free(mk.item);
    free(mk.first);
    free(mk.last);
    free(mk.member);
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
