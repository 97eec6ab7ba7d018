/*
 * The rules of a placement. Those that sim checks too have the words of its messages
 * (RULES in sim(1)). The rule of blocks is that of clusters which have blocks: there
 * the time of a collective is that of a block, and would be wrong for any other set.
 */
#include "act_rules.h"

#include <stdlib.h>

/* ---- legal blocks --------------------------------------------------------- */

/* What blocks of k servers look like: geometries (net_geometry()) of the servers in
 * order of their numbers. All blocks that are translations of each other have one. */
struct act_blocks {
    struct rec_map geometries; /* numbers of a geometry -> 0 */
    struct rec_arena arena;    /* of their bytes */
    bool *known;               /* per k: its blocks are in the map */
    size_t nknown;
    uint32_t *server, *numbers; /* scratch */
    size_t server_room, numbers_room;
};

struct act_blocks *
act_blocks_new(struct rec_error *err)
{
    struct act_blocks *b = calloc(1, sizeof *b);
    if (!b)
        rec_fail_memory(err);
    return b;
}

void
act_blocks_free(struct act_blocks *b)
{
    if (!b)
        return;
    rec_map_free(&b->geometries);
    rec_arena_free(&b->arena);
    free(b->known);
    free(b->server);
    free(b->numbers);
    free(b);
}

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sets *key to the geometry of b->server[n], which gets sorted. Stragglers do not matter:
 * their classes, the last n numbers, are left out. */
static bool
find_geometry(struct act_blocks *b, const struct net *net, uint32_t n,
              struct rec_str *key, struct rec_error *err)
{
    size_t numbers = net_geometry_numbers(net, n);
    if (!rec_grow(&b->numbers, &b->numbers_room, numbers + 1, sizeof *b->numbers, err))
        return false;
    qsort(b->server, n, sizeof *b->server, ascending);
    if (!net_geometry(net, b->server, n, b->numbers, err))
        return false;
    if (net_has_stragglers(net))
        numbers -= n;
    *key = (struct rec_str){(const char *)b->numbers, numbers * sizeof *b->numbers};
    return true;
}

static bool
learn_blocks(struct act_blocks *b, const struct net *net, uint32_t k,
             struct rec_error *err)
{
    uint64_t n = net_count_blocks(net, k);
    for (uint64_t i = 0; i < n; i++) {
        struct rec_str key;
        net_block(net, k, i, b->server);
        if (!find_geometry(b, net, k, &key, err))
            return false;
        if (rec_map_get(&b->geometries, key) != REC_NONE)
            continue;
        if (!(key.ptr = rec_arena_copy(&b->arena, key, err)) ||
            !rec_map_add(&b->geometries, key, 0, err))
            return false;
    }
    return true;
}

/* *legal: the k different servers in b->server lie to each other as those of a block. */
static bool
is_block(struct act_blocks *b, const struct net *net, uint32_t k, bool *legal,
         struct rec_error *err)
{
    uint32_t *servers = NULL;
    struct rec_str key;
    size_t before = b->nknown;
    bool ok = true;
    if (!rec_grow(&b->known, &b->nknown, k + 1, sizeof *b->known, err))
        return false;
    for (size_t i = before; i < b->nknown; i++)
        b->known[i] = false;
    if (!b->known[k]) {
        if (!(servers = malloc(k * sizeof *servers)))
            return rec_fail_memory(err);
        memcpy(servers, b->server, k * sizeof *servers);
        ok = learn_blocks(b, net, k, err);
        memcpy(b->server, servers, k * sizeof *servers);
        free(servers);
        b->known[k] = ok;
    }
    if (!ok || !find_geometry(b, net, k, &key, err))
        return false;
    *legal = rec_map_get(&b->geometries, key) != REC_NONE;
    return true;
}

/* The parts of a unit are spread evenly over a block. */
static bool
check_unit(struct act_blocks *b, const struct net *net, const struct graph_layout *where,
           const uint32_t *servers, const struct graph_unit *unit, bool *legal,
           struct rec_error *err)
{
    const uint32_t *member = where->graph->member + unit->first;
    uint32_t n = 0, each = 1;
    if (!rec_grow(&b->server, &b->server_room, unit->parts, sizeof *b->server, err))
        return false;
    for (uint32_t i = 0; i < unit->parts; i++)
        b->server[i] = servers[where->slot[member[i]]];
    qsort(b->server, unit->parts, sizeof *b->server, ascending);
    while (each < unit->parts && b->server[each] == b->server[0])
        each++;
    *legal = unit->parts % each == 0;
    for (uint32_t i = 0; i < unit->parts && *legal; i += each) {
        *legal = b->server[i] == b->server[i + each - 1] &&
                 (n == 0 || b->server[n - 1] != b->server[i]);
        b->server[n++] = b->server[i];
    }
    return !*legal || is_block(b, net, n, legal, err);
}

static bool
check_blocks(struct act_blocks *b, const struct net *net,
             const struct graph_layout *where, const uint32_t *servers,
             struct act_broken *broken, struct rec_error *err)
{
    const struct graph *graph = where->graph;
    for (uint32_t u = 0; u < graph->nunits && !net_takes_any(net); u++) {
        const struct graph_unit *unit = &graph->unit[u];
        bool legal = true;
        if (unit->parts > 1 && !check_unit(b, net, where, servers, unit, &legal, err))
            return false;
        if (!legal) {
            uint32_t op = graph->member[unit->first];
            *broken = (struct act_broken){
                .cause = "legal_block", .op = op, .server = servers[where->slot[op]]};
            return true;
        }
    }
    return true;
}

/* ---- the other rules ------------------------------------------------------- */

static bool
check_ops(const struct graph_layout *where, struct act_broken *broken)
{
    for (uint32_t op = 0; op < where->graph->nops; op++)
        if (where->slot[op] == REC_NONE) {
            *broken = (struct act_broken){
                .cause = "every_op_placed", .op = op, .server = REC_NONE};
            return false;
        }
    return true;
}

/* The op of a slot that was placed first. */
static uint32_t
first_on(const struct graph_layout *where, uint32_t slot)
{
    uint32_t first = GRAPH_NONE;
    for (uint32_t op = 0; op < where->graph->nops; op++)
        if (where->slot[op] == slot &&
            (first == GRAPH_NONE || where->placed[op] < where->placed[first]))
            first = op;
    return first;
}

static bool
check_servers(const struct alloc_question *q, const struct graph_layout *where,
              const uint32_t *servers, struct act_broken *broken)
{
    const uint64_t *owner = alloc_admission_owners(q->admission);
    for (uint32_t i = 0; i < where->nslots; i++)
        if (owner[servers[i]] != 0) {
            *broken = (struct act_broken){.cause = owner[servers[i]] == ALLOC_DOWN
                                                       ? "server_in_service"
                                                       : "one_job_per_server",
                                          .op = first_on(where, i),
                                          .server = servers[i]};
            return false;
        }
    return true;
}

static bool
check_holds(const struct graph_layout *where, const uint32_t *servers,
            struct act_broken *broken)
{
    for (size_t i = 0; i < where->graph->nholds; i++) {
        const struct graph_hold *hold = &where->graph->hold[i];
        if (hold->release != GRAPH_NONE &&
            where->slot[hold->op] != where->slot[hold->release]) {
            *broken = (struct act_broken){.cause = "hold_and_release",
                                          .op = hold->release,
                                          .server = servers[where->slot[hold->release]]};
            return false;
        }
    }
    return true;
}

/* A server lacks memory: `over` bytes. The op is named with which it began to. */
static void
lack(const struct graph_layout *where, uint32_t op, uint32_t server, double over,
     struct act_broken *broken)
{
    uint32_t unit = where->graph->op[op].unit;
    *broken = (struct act_broken){.cause = "no_memory",
                                  .op = op,
                                  .server = server,
                                  .unit = unit,
                                  .left = place_part_memory(where->graph, unit) - over};
}

/* The op with which a slot first needs more than `most`, in the order of placing. */
static uint32_t
overfills(const struct graph_layout *where, uint32_t slot, double most, uint32_t *order)
{
    const struct graph *graph = where->graph;
    double used = 0;
    graph_layout_order(where, order);
    for (size_t i = 0; i < graph->nops; i++) {
        const struct graph_op *op = &graph->op[order[i]];
        double own = op->memory;
        if (where->slot[order[i]] != slot)
            continue;
        if (op->pair != GRAPH_NONE && where->slot[op->pair] == slot &&
            where->placed[op->pair] < i)
            own = own > graph->op[op->pair].memory ? own - graph->op[op->pair].memory : 0;
        used = op->pass == GRAPH_TASK ? own : used + own;
        if (used > most)
            return order[i];
    }
    return first_on(where, slot);
}

static bool
check_memory(const struct net *net, const struct graph_layout *where,
             const uint32_t *servers, struct act_broken *broken, struct rec_error *err)
{
    double most = net_memory(net) * (1 + 1e-12);
    double *memory = malloc((where->nslots + 1) * sizeof *memory);
    uint32_t *order = malloc((where->graph->nops + 1) * sizeof *order), full;
    bool ok = (memory && order) || rec_fail_memory(err);
    if (ok && memory[full = graph_layout_memory(where, memory)] > most)
        lack(where, overfills(where, full, most, order), servers[full],
             memory[full] - net_memory(net), broken);
    free(memory);
    free(order);
    return ok;
}

bool
act_check(struct act_blocks *blocks, const struct alloc_question *q,
          const struct graph_layout *where, const uint32_t *servers,
          struct act_broken *broken, struct rec_error *err)
{
    const struct net *net = pricer_net(q->pricer);
    *broken = (struct act_broken){.cause = NULL};
    if (!check_ops(where, broken) || !check_servers(q, where, servers, broken))
        return true;
    if (!check_blocks(blocks, net, where, servers, broken, err))
        return false;
    return broken->cause || !check_holds(where, servers, broken) ||
           check_memory(net, where, servers, broken, err);
}

void
act_check_peak(const struct net *net, const struct trial *trial,
               struct act_broken *broken)
{
    const struct graph_layout *where = &trial->layout->where;
    uint32_t slot, op = trial->cost.step.peak_op;
    double peak = sim_layout_peak(trial->layout, &trial->cost, &slot);
    *broken = (struct act_broken){.cause = NULL};
    if (peak > net_memory(net) * (1 + 1e-12))
        lack(where, op == GRAPH_NONE ? first_on(where, slot) : op, trial->servers[slot],
             peak - net_memory(net), broken);
}
