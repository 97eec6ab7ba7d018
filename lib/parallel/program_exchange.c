/* What replicas exchange in the program of a step. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT = 2 };

/* ---- nodes and edges --------------------------------------------------- */

struct parallel_node *
parallel_add_node(struct parallel_making *mk, const char *pass, double seconds,
                  enum parallel_lane lane)
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
order_behind(struct parallel_making *mk, uint32_t from)
{
    return ((uint64_t)from << 20) + (mk->exchanges++ & 0xfffff);
}

uint32_t
parallel_node_index(const struct parallel_making *mk, const struct parallel_node *node)
{
    return (uint32_t)(node - mk->program->node);
}

bool
parallel_add_edge(struct parallel_making *mk, uint32_t from, uint32_t to, double bytes)
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
           : strcmp(kind, "all-to-all") == 0 ? GRAPH_ALL_TO_ALL
                                             : GRAPH_REDUCE_SCATTER;
}

/* How long the network takes for it alone: what the first of the groups takes. */
static bool
alone(const struct parallel_making *mk, const char *kind, uint32_t n, double bytes,
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

bool
parallel_await_one(struct parallel_making *mk, int64_t exchange, uint32_t to)
{
    if (exchange == PARALLEL_NONE)
        return true;
    if (!mk->graph->unfold)
        return parallel_add_edge(mk, (uint32_t)exchange, to, 0);
    mk->program->swap[exchange].to = to;
    return true;
}

/* Lets `to` wait for exchanges. */
bool
parallel_await(struct parallel_making *mk, struct parallel_pair exchange, uint32_t to)
{
    return parallel_await_one(mk, exchange.dense, to) &&
           parallel_await_one(mk, exchange.experts, to);
}

/* What is exchanged, and why. */
struct swap {
    const char *what, *kind;
    bool between;
    uint32_t from, order; /* nodes: what it is behind, and what it is in the order of */
    uint32_t named;       /* the node that it is for */
};

static const enum parallel_lane lanes[] = {
    [PARALLEL_TENSOR] = PARALLEL_LANE_TENSOR,
    [PARALLEL_CONTEXT] = PARALLEL_LANE_CONTEXT,
    [PARALLEL_EXPERT] = PARALLEL_LANE_TOKENS,
    [PARALLEL_SHARDS] = PARALLEL_LANE_DATA,
    [PARALLEL_EXPERT_SHARDS] = PARALLEL_LANE_EXPERTS,
    [PARALLEL_BETWEEN] = PARALLEL_LANE_BETWEEN,
    [PARALLEL_EXPERT_BETWEEN] = PARALLEL_LANE_EXPERTS_BETWEEN};

/* *which stays as it is if there is nothing to do. */
static bool
exchange(struct parallel_making *mk, const struct swap *swap, enum parallel_group group,
         double bytes, int64_t *which)
{
    struct parallel_program *p = mk->program;
    uint32_t n = parallel_members(&mk->q->mix, group, 0, mk->member);
    bool experts = group == PARALLEL_EXPERT_SHARDS || group == PARALLEL_EXPERT_BETWEEN;
    enum parallel_lane lane = lanes[group];
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
        !(node = parallel_add_node(mk, "task", seconds, lane)))
        return false;
    node->order = order_behind(mk, swap->order);
    memcpy(node->name, name, sizeof name);
    snprintf(node->type, sizeof node->type, "exchange");
    *which = (int64_t)parallel_node_index(mk, node);
    return parallel_add_edge(mk, swap->from, (uint32_t)*which, 0);
}

/* Those of layers j to j + n - 1 of a virtual stage, with the ends that they are beside,
 * or of all of the stage if it has no layers. */
struct parallel_amount
parallel_amount_of(const struct parallel_making *mk, uint32_t stage, uint32_t j,
                   uint32_t n, bool trained)
{
    const struct parallel_model *model = &mk->q->model;
    const struct parallel_mix *mix = &mk->q->mix;
    struct parallel_chunk chunk = parallel_chunk_of(mix, model, stage);
    struct parallel_amount p = {0, 0};
    void (*add)(const struct parallel_kind *, const struct parallel_mix *,
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
exchange_both(struct parallel_making *mk, const struct swap *swap,
              struct parallel_amount p, double element, struct parallel_pair *which)
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
exchange_shards(struct parallel_making *mk, struct parallel_amount p, uint32_t from,
                struct parallel_pair scatter)
{
    double element = parallel_gradient(&mk->q->mix, &mk->q->machine);
    struct swap swap = {"sum", "all-reduce", true, 0, from, from};
    for (int i = 0; i < 2; i++) { /* each on its lane */
        enum parallel_group group = i == 0 ? PARALLEL_SHARDS : PARALLEL_EXPERT_SHARDS;
        uint32_t n = parallel_members(&mk->q->mix, group, 0, mk->member);
        double bytes = element * (i == 0 ? p.dense : p.experts) / n;
        struct parallel_node *middle = parallel_add_node(
            mk, "task", 0,
            i == 0 ? PARALLEL_LANE_BETWEEN : PARALLEL_LANE_EXPERTS_BETWEEN);
        if (!middle)
            return false;
        middle->order = order_behind(mk, from);
        swap.from = parallel_node_index(mk, middle);
        snprintf(middle->name, sizeof middle->name, "%s.%.30s",
                 i == 0 ? "shard" : "shard-x", mk->program->node[from].name);
        if (!parallel_add_edge(mk, from, swap.from, 0) ||
            !parallel_await_one(mk, i == 0 ? scatter.dense : scatter.experts,
                                swap.from) ||
            !exchange(mk, &swap, i == 0 ? PARALLEL_BETWEEN : PARALLEL_EXPERT_BETWEEN,
                      bytes, i == 0 ? &mk->waits.dense : &mk->waits.experts))
            return false;
    }
    return true;
}

/* Gradients behind the node `from`; `last`: of the last microbatch. */
bool
parallel_exchange_gradients(struct parallel_making *mk, struct parallel_amount p,
                            uint32_t from, bool last)
{
    struct swap swap = {"sum", "all-reduce", false, from, from, from};
    struct parallel_pair scatter = parallel_no_pair;
    if (mk->q->mix.zero >= 1)
        swap.what = "scatter", swap.kind = "reduce-scatter";
    if (!exchange_both(mk, &swap, p, parallel_gradient(&mk->q->mix, &mk->q->machine),
                       &scatter))
        return false;
    if (scatter.dense != PARALLEL_NONE)
        mk->waits.dense = scatter.dense;
    if (scatter.experts != PARALLEL_NONE)
        mk->waits.experts = scatter.experts;
    return mk->q->mix.shard == 0 || !last || exchange_shards(mk, p, from, scatter);
}

/* Weights are gathered behind the node `from`, before the node `to`. */
bool
parallel_gather(struct parallel_making *mk, struct parallel_amount p, uint32_t from,
                uint32_t to)
{
    const struct swap swap = {"gather", "all-gather", false,
                              from,     from,         to == UINT32_MAX ? from : to};
    struct parallel_pair which = parallel_no_pair;
    return exchange_both(mk, &swap, p, mk->q->mix.gather_fp8 ? 1 : ELEMENT, &which) &&
           (to == UINT32_MAX || parallel_await(mk, which, to));
}

/* ---- exchanges inside passes ------------------------------------------- */

uint32_t
parallel_group_size(struct parallel_making *mk, enum parallel_group group)
{
    struct parallel_spread s = parallel_spread_of(&mk->q->mix, group);
    return s.n * s.rows;
}

bool
parallel_exchange_behind(struct parallel_making *mk, const char *what, const char *kind,
                         enum parallel_group group, double bytes, uint32_t from,
                         int64_t *which)
{
    const struct swap swap = {what, kind, false, from, from, from};
    return exchange(mk, &swap, group, bytes, which);
}
