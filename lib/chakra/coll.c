/* Colls as nodes of traces: one for each slot of the group. */
#include "plan.h"

#include <stdlib.h>

/* ---- kinds and sizes --------------------------------------------------------- */

double
chakra_coll_share(enum graph_exchange_kind kind, double bytes, uint32_t n)
{
    return kind == GRAPH_ALL_GATHER ? bytes / n : bytes;
}

double
chakra_coll_bytes(enum graph_exchange_kind kind, double comm_size, uint32_t n)
{
    return kind == GRAPH_BARRIER      ? 0
           : kind == GRAPH_ALL_GATHER ? comm_size * n
                                      : comm_size;
}

uint32_t
chakra_coll_type(enum graph_exchange_kind kind)
{
    return kind == GRAPH_SEND
               ? REC_NONE
               : chakra_find_collective(
                     rec_str(rec_exchange_name((size_t)(kind - GRAPH_ALL_REDUCE))));
}

bool
chakra_coll_kind(uint32_t type, enum graph_exchange_kind *kind)
{
    if (type == CHAKRA_REDUCE_SCATTER_BLOCK)
        type = chakra_coll_type(GRAPH_REDUCE_SCATTER);
    for (*kind = GRAPH_ALL_REDUCE; *kind < GRAPH_SEND; (*kind)++)
        if (chakra_coll_type(*kind) == type)
            return true;
    return false;
}

/* ---- writing ------------------------------------------------------------------ */

/* The last op of the group on the slot of an entry, of which that is the first one. */
static uint32_t
last_op(const struct chakra_plan *plan, uint32_t entry)
{
    uint32_t last = 0;
    for (; entry != GRAPH_NONE; entry = plan->entry_next[entry])
        if (plan->graph->coll_op[entry] > last)
            last = plan->graph->coll_op[entry];
    return last;
}

/* Finds the node of each slot of a coll, and those that ops wait for. `first` is
 * GRAPH_NONE for each slot, before and after. */
static bool
plan_coll(struct chakra_plan *plan, uint32_t c, uint32_t *first, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    const struct graph_coll *coll = &graph->coll[c];
    const uint32_t *slot = plan->layout->slot;
    bool ok = true;
    if (plan->coll_folded[c]) {
        for (uint32_t k = coll->first; k < coll->first + coll->n; k++)
            plan->entry_coll[k] = GRAPH_NONE;
        return true;
    }
    for (uint32_t k = coll->first + coll->n; k-- > coll->first;) {
        uint32_t *at = &first[slot[graph->coll_op[k]]];
        plan->coll_slots[c] += *at == GRAPH_NONE;
        plan->entry_coll[k] = c;
        plan->entry_next[k] = *at;
        *at = k;
    }
    for (uint32_t a = coll->after; ok && a < coll->after + coll->nafter; a++) {
        uint32_t dst = graph->after[a].dst;
        plan->after_entry[a] = first[slot[dst]];
        ok = plan->after_entry[a] != GRAPH_NONE ||
             rec_fail(err, REC_DATA,
                      "op '%s' waits for coll '%s' on slot %u of layout '%s', where no "
                      "op takes part: execution traces have no node for that",
                      graph->op[dst].id, coll->id, slot[dst], plan->layout->id);
    }
    for (uint32_t k = coll->first; k < coll->first + coll->n; k++) {
        uint32_t *at = &first[slot[graph->coll_op[k]]];
        if (*at == k)
            plan->entry_start[last_op(plan, k) + 2]++;
        else
            plan->entry_coll[k] = GRAPH_NONE; /* it has no node of its own */
    }
    for (uint32_t k = coll->first; k < coll->first + coll->n; k++)
        first[slot[graph->coll_op[k]]] = GRAPH_NONE;
    return ok;
}

/* Lists the nodes behind each op and what it waits for, by counting sort (plan.c). */
static void
list_colls(struct chakra_plan *plan)
{
    const struct graph *graph = plan->graph;
    for (size_t a = 0; a < graph->nafter; a++)
        if (!plan->coll_folded[graph->after[a].src])
            plan->after_start[graph->after[a].dst + 2]++;
    for (size_t i = 0; i < graph->nops; i++) {
        plan->entry_start[i + 2] += plan->entry_start[i + 1];
        plan->after_start[i + 2] += plan->after_start[i + 1];
    }
    for (uint32_t k = 0; k < graph->ncoll_ops; k++)
        if (plan->entry_coll[k] != GRAPH_NONE)
            plan->op_entry[plan->entry_start[last_op(plan, k) + 1]++] = k;
    for (uint32_t a = 0; a < graph->nafter; a++)
        if (!plan->coll_folded[graph->after[a].src])
            plan->after_in[plan->after_start[graph->after[a].dst + 1]++] = a;
}

bool
chakra_plan_colls(struct chakra_plan *plan, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    size_t n = graph->ncoll_ops + 1, nslots = (size_t)plan->layout->nslots + 1;
    uint32_t *first;
    bool ok;
    if (graph->ncolls == 0)
        return true;
    first = malloc(nslots * sizeof *first);
    plan->entry_coll = malloc(n * sizeof *plan->entry_coll);
    plan->entry_next = malloc(n * sizeof *plan->entry_next);
    plan->op_entry = malloc(n * sizeof *plan->op_entry);
    plan->coll_slots = calloc(graph->ncolls, sizeof *plan->coll_slots);
    plan->entry_start = calloc(graph->nops + 3, sizeof *plan->entry_start);
    plan->after_entry = malloc((graph->nafter + 1) * sizeof *plan->after_entry);
    plan->after_in = malloc((graph->nafter + 1) * sizeof *plan->after_in);
    plan->after_start = calloc(graph->nops + 3, sizeof *plan->after_start);
    ok = first && plan->entry_coll && plan->entry_next && plan->op_entry &&
         plan->coll_slots && plan->entry_start && plan->after_entry && plan->after_in &&
         plan->after_start;
    if (ok)
        memset(first, 0xff, nslots * sizeof *first);
    else
        rec_fail_memory(err);
    for (uint32_t c = 0; ok && c < graph->ncolls; c++)
        ok = plan_coll(plan, c, first, err);
    free(first);
    if (ok)
        list_colls(plan);
    return ok;
}

/* ---- reading ------------------------------------------------------------------ */

bool
chakra_add_part(struct chakra_traces *t, const struct chakra_part *part,
                struct rec_error *err)
{
    if (!rec_grow(&t->part, &t->part_room, t->nparts + 1, sizeof *t->part, err))
        return false;
    t->part[t->nparts++] = *part;
    return true;
}

static int
by_coll(const void *x, const void *y, void *context)
{
    const struct chakra_node *node = context;
    const struct chakra_part *a = x, *b = y;
    uint64_t c = node[a->coll].coll, d = node[b->coll].coll;
    if (c != d)
        return c < d ? -1 : 1;
    if (a->waits != b->waits)
        return b->waits ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

/* Checks that the nodes of a coll agree, and counts them: one for each slot. */
static bool
count_slots(const struct chakra_traces *t, const struct chakra_part *part, size_t n,
            uint32_t *slots, struct rec_error *err)
{
    const struct chakra_node *first = &t->node[part->coll];
    uint32_t *seen = malloc((t->nfiles + 1) * sizeof *seen);
    if (!seen)
        return rec_fail_memory(err);
    memset(seen, 0xff, (t->nfiles + 1) * sizeof *seen);
    *slots = 0;
    for (size_t i = 0; i < n; i++) {
        const struct chakra_node *node = &t->node[part[i].coll];
        *slots += seen[node->file] == REC_NONE;
        seen[node->file] = part[i].coll;
        if (strcmp(node->coll_id, first->coll_id) != 0 ||
            node->coll_kind != first->coll_kind || node->bytes != first->bytes) {
            free(seen);
            return chakra_fail(
                t, node, err,
                "coll '%s' has another name, comm_type or comm_size than in node %llu of "
                "rank %u",
                node->coll_id, (unsigned long long)first->id, first->rank);
        }
    }
    free(seen);
    return true;
}

/* Adds a coll with its n ops, and the deps to the ops that wait for it. */
static bool
add_coll(const struct chakra_traces *t, const struct chakra_part *part, size_t n,
         size_t all, struct graph *graph, struct rec_error *err)
{
    const struct chakra_node *first = &t->node[part->coll];
    struct graph_coll coll = {.kind = first->coll_kind, .bytes = first->coll_bytes};
    struct rec_str lane = {NULL, 0};
    struct rec_text ops;
    char *names;
    uint32_t slots = 0;
    bool ok;
    if (!count_slots(t, part, n, &slots, err))
        return false;
    if (coll.kind == GRAPH_BARRIER)
        coll.bytes = 0;
    else if (!(coll.bytes >= 0 && isfinite(coll.bytes)) ||
             (slots > 1 && (double)chakra_size(chakra_coll_share(coll.kind, coll.bytes,
                                                                 slots)) != first->bytes))
        coll.bytes = chakra_coll_bytes(coll.kind, first->bytes, slots);
    if (first->lane)
        lane = rec_str(first->lane);
    if (!rec_text_open(&ops, err))
        return false;
    for (size_t i = 0; i < n; i++)
        fprintf(ops.out, "%s%s", i ? "," : "", t->node[part[i].op].op.id);
    names = rec_text_close(&ops, err);
    ok = names && graph_add_coll(graph, &coll, rec_str(first->coll_id), rec_str(names),
                                 lane, rec_str(first->coll_keys), err);
    free(names);
    for (size_t i = n; ok && i < all; i++)
        ok = graph_add_dep(graph, rec_str(first->coll_id),
                           rec_str(t->node[part[i].op].op.id), 0, false, part[i].keys, 0,
                           err);
    return ok;
}

bool
chakra_add_colls(struct chakra_traces *t, struct graph *graph, struct rec_error *err)
{
    bool ok = true;
    if (t->nparts)
        qsort_r(t->part, t->nparts, sizeof *t->part, by_coll, t->node);
    for (size_t i = 0, end; ok && i < t->nparts; i = end) {
        size_t n = 0;
        for (end = i; end < t->nparts &&
                      t->node[t->part[end].coll].coll == t->node[t->part[i].coll].coll;
             end++)
            n += !t->part[end].waits;
        /* of a coll whose other members are in files that were not given, nothing is
         * left */
        ok = n < 2 || add_coll(t, t->part + i, n, end - i, graph, err);
    }
    return ok;
}
