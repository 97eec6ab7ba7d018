/* Plans how a graph becomes traces. chakra_build() puts joins or colls before the members
 * of a collective; here they are recognised and taken out again (folded), so that reading
 * and writing a trace gives the same trace. A pair of ops send and recv becomes
 * one message of the format. */
#include "plan.h"

#include <stdlib.h>

static bool
is_word(const struct graph_op *op, const char *word)
{
    struct rec_str coll;
    return graph_op_key(op, "coll", &coll) && rec_str_is(coll, word);
}

uint32_t
chakra_collective_of(const struct graph_op *op)
{
    struct rec_str coll;
    return graph_op_key(op, "coll", &coll) ? chakra_find_collective(coll) : REC_NONE;
}

static uint32_t
count_out(const struct graph *graph, uint32_t op)
{
    return graph->out_start[op + 1] - graph->out_start[op];
}

static uint32_t
count_in(const struct graph *graph, uint32_t op)
{
    return graph->in_start[op + 1] - graph->in_start[op];
}

static const struct graph_dep *
dep_out(const struct graph *graph, uint32_t op, uint32_t i)
{
    return &graph->dep[graph->out[graph->out_start[op] + i]];
}

/* Has a dep no properties that a message or a join could not express? */
static bool
is_plain(const struct graph_dep *dep)
{
    return !dep->sync && *dep->extra == '\0';
}

/* ---- messages -------------------------------------------------------------- */

/* The dep from a send to its receive on another slot, if it is the only one of both; else
 * GRAPH_NONE. */
static uint32_t
find_message(const struct chakra_plan *plan, uint32_t op)
{
    const struct graph *graph = plan->graph;
    uint32_t found = GRAPH_NONE, ends = 0;
    for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++)
        if (is_word(&graph->op[graph->dep[graph->out[i]].dst], CHAKRA_WORD_RECV)) {
            found = graph->out[i];
            ends++;
        }
    if (ends != 1 || !is_plain(&graph->dep[found]) ||
        plan->layout->slot[op] == plan->layout->slot[graph->dep[found].dst])
        return GRAPH_NONE;
    ends = 0;
    for (uint32_t i = graph->in_start[graph->dep[found].dst];
         i < graph->in_start[graph->dep[found].dst + 1]; i++)
        ends += is_word(&graph->op[graph->dep[graph->in[i]].src], CHAKRA_WORD_SEND);
    return ends == 1 ? found : GRAPH_NONE;
}

/* ---- collectives ----------------------------------------------------------- */

/* Does it take part in a coll, or wait for one? Then it stays an op. */
static bool
touches_coll(const struct graph *graph, uint32_t op)
{
    return graph->coll_of &&
           (graph->coll_of_start[op + 1] > graph->coll_of_start[op] ||
            graph->parents[op] > graph->in_start[op + 1] - graph->in_start[op]);
}

/* Does a dep only make an op wait? */
static bool
is_wait(const struct graph_dep *dep)
{
    return is_plain(dep) && dep->bytes == 0;
}

/* Is an op a member of a collective, which waits for nothing but its join (ndeps is 1) or
 * coll (0)? */
static bool
is_member(const struct graph *graph, uint32_t op, uint32_t ndeps)
{
    return chakra_collective_of(&graph->op[op]) != REC_NONE && graph->parents[op] == 1 &&
           count_in(graph, op) == ndeps;
}

/* Is the op a join with members, as chakra_build() makes them? One of these has been
 * measured: else they would be a coll. */
static bool
is_join(const struct graph *graph, uint32_t op)
{
    bool measured = false;
    if (!is_word(&graph->op[op], CHAKRA_WORD_JOIN) || graph->op[op].compute > 0 ||
        count_out(graph, op) < 2 || touches_coll(graph, op))
        return false;
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (!is_wait(&graph->dep[graph->in[i]]))
            return false;
    for (uint32_t i = 0; i < count_out(graph, op); i++) {
        const struct graph_dep *dep = dep_out(graph, op, i);
        if (!is_wait(dep) || !is_member(graph, dep->dst, 1))
            return false;
        measured = measured || graph->op[dep->dst].compute > 0;
    }
    return measured;
}

/* Takes a join out: each dep into it becomes a dep into the member on the slot of its
 * source or, if no member is there, into the first member. `member_of_slot` is GRAPH_NONE
 * for each slot, before and after; so the cost does not depend on the number of slots. */
static void
fold_join(struct chakra_plan *plan, uint32_t join, uint32_t *member_of_slot)
{
    const struct graph *graph = plan->graph;
    const uint32_t *slot = plan->layout->slot;
    uint32_t first = GRAPH_NONE, n = count_out(graph, join);
    plan->folded[join] = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_dep *dep = dep_out(graph, join, i);
        plan->dst[dep - graph->dep] = GRAPH_NONE;
        plan->join[dep->dst] = join;
        member_of_slot[slot[dep->dst]] = dep->dst;
        first = dep->dst < first ? dep->dst : first;
    }
    for (uint32_t i = graph->in_start[join]; i < graph->in_start[join + 1]; i++) {
        uint32_t d = graph->in[i], member = member_of_slot[slot[graph->dep[d].src]];
        plan->dst[d] = member != GRAPH_NONE ? member : first;
    }
    for (uint32_t i = 0; i < n; i++)
        member_of_slot[slot[dep_out(graph, join, i)->dst]] = GRAPH_NONE;
}

/* Is an op a start, as chakra_build() makes it for a member of a coll? */
static bool
is_start(const struct chakra_plan *plan, uint32_t op, uint32_t member)
{
    const struct graph *graph = plan->graph;
    if (!is_word(&graph->op[op], CHAKRA_WORD_START) || graph->op[op].compute > 0 ||
        count_out(graph, op) > 0 || graph->parents[op] > count_in(graph, op) ||
        graph->coll_of_start[op + 1] - graph->coll_of_start[op] != 1 ||
        plan->layout->slot[op] != plan->layout->slot[member])
        return false;
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (!is_wait(&graph->dep[graph->in[i]]))
            return false;
    return true;
}

/* Is it a coll as chakra_build() makes them, for members that have not been measured? */
static bool
is_of_members(const struct chakra_plan *plan, const struct graph_coll *coll)
{
    const struct graph *graph = plan->graph;
    if (coll->lane || *coll->extra || coll->nafter != coll->n)
        return false;
    for (uint32_t i = 0; i < coll->n; i++) {
        uint32_t member = graph->after[coll->after + i].dst;
        const struct graph_op *op = &graph->op[member];
        enum graph_exchange_kind kind;
        struct rec_str text;
        double bytes;
        if (*graph->after[coll->after + i].extra || op->compute > 0 ||
            !is_member(graph, member, 0) ||
            !is_start(plan, graph->coll_op[coll->first + i], member) ||
            !chakra_coll_kind(chakra_collective_of(op), &kind) || kind != coll->kind ||
            !graph_op_key(op, "bytes", &text) || !rec_parse_num(text, &bytes) ||
            chakra_coll_bytes(kind, bytes, coll->n) != coll->bytes)
            return false;
    }
    return true;
}

/* Takes a coll out: its members wait for what its starts wait for. */
static void
fold_coll(struct chakra_plan *plan, uint32_t c)
{
    const struct graph *graph = plan->graph;
    const struct graph_coll *coll = &graph->coll[c];
    plan->coll_folded[c] = true;
    for (uint32_t i = 0; i < coll->n; i++) {
        uint32_t start = graph->coll_op[coll->first + i];
        uint32_t member = graph->after[coll->after + i].dst;
        plan->folded[start] = true;
        plan->join[member] = graph->coll_op[coll->first];
        for (uint32_t k = graph->in_start[start]; k < graph->in_start[start + 1]; k++)
            plan->dst[graph->in[k]] = member;
    }
}

/* ---- all ------------------------------------------------------------------- */

/* Makes the lists of the deps that each op waits for and of the ops on each slot, in
 * ascending order. Counting sort: counts go two entries further, so that the start of a
 * list, one entry further, can move while it is filled, and ends where it belongs. */
static void
make_lists(struct chakra_plan *plan)
{
    const struct graph *graph = plan->graph;
    const uint32_t *slot = plan->layout->slot;
    for (size_t d = 0; d < graph->ndeps; d++)
        if (plan->dst[d] != GRAPH_NONE)
            plan->in_start[plan->dst[d] + 2]++;
    for (size_t i = 0; i < graph->nops; i++) {
        plan->in_start[i + 2] += plan->in_start[i + 1];
        plan->slot_start[slot[i] + 2]++;
    }
    for (size_t s = 0; s < plan->layout->nslots; s++)
        plan->slot_start[s + 2] += plan->slot_start[s + 1];
    for (uint32_t d = 0; d < graph->ndeps; d++)
        if (plan->dst[d] != GRAPH_NONE)
            plan->in[plan->in_start[plan->dst[d] + 1]++] = d;
    for (uint32_t i = 0; i < graph->nops; i++)
        plan->slot_op[plan->slot_start[slot[i] + 1]++] = i;
}

static bool
fill(struct chakra_plan *plan, struct rec_error *err)
{
    const struct graph *graph = plan->graph;
    uint32_t *member_of_slot =
        malloc(((size_t)plan->layout->nslots + 1) * sizeof *member_of_slot);
    if (!member_of_slot)
        return rec_fail_memory(err);
    memset(member_of_slot, 0xff, plan->layout->nslots * sizeof *member_of_slot);
    for (uint32_t d = 0; d < graph->ndeps; d++)
        plan->dst[d] = graph->dep[d].dst;
    for (uint32_t i = 0; i < graph->nops; i++)
        plan->join[i] = plan->message[i] = GRAPH_NONE;
    for (uint32_t i = 0; i < graph->nops; i++)
        if (is_join(graph, i))
            fold_join(plan, i, member_of_slot);
        else if (is_word(&graph->op[i], CHAKRA_WORD_SEND)) {
            uint32_t d = find_message(plan, i);
            plan->message[i] = d;
            if (d != GRAPH_NONE)
                plan->message[graph->dep[d].dst] = d;
        }
    for (uint32_t c = 0; c < graph->ncolls; c++)
        if (is_of_members(plan, &graph->coll[c]))
            fold_coll(plan, c);
    free(member_of_slot);
    make_lists(plan);
    return true;
}

struct chakra_plan *
chakra_plan_new(const struct graph *graph, const struct graph_layout *layout,
                struct rec_error *err)
{
    struct chakra_plan *plan;
    size_t nops = graph->nops + 2, ndeps = graph->ndeps + 1;
    bool ok;
    plan = calloc(1, sizeof *plan);
    ok = plan != NULL;
    if (ok) {
        plan->graph = graph;
        plan->layout = layout;
        plan->dst = malloc(ndeps * sizeof *plan->dst);
        plan->in = malloc(ndeps * sizeof *plan->in);
        plan->in_start = calloc(nops, sizeof *plan->in_start);
        plan->slot_op = malloc(nops * sizeof *plan->slot_op);
        plan->slot_start = calloc((size_t)layout->nslots + 2, sizeof *plan->slot_start);
        plan->join = malloc(nops * sizeof *plan->join);
        plan->message = malloc(nops * sizeof *plan->message);
        plan->folded = calloc(nops, sizeof *plan->folded);
        plan->coll_folded = calloc(graph->ncolls + 1, sizeof *plan->coll_folded);
        ok = plan->coll_folded && plan->dst && plan->in && plan->in_start &&
             plan->slot_op && plan->slot_start && plan->join && plan->message &&
             plan->folded;
    }
    if (ok && layout->ntransfers) {
        rec_fail(err, REC_DATA,
                 "layout '%s' gives deps channels, which execution traces do not have",
                 layout->id);
        chakra_plan_free(plan);
        return NULL;
    }
    if (ok ? fill(plan, err) && chakra_plan_colls(plan, err) : rec_fail_memory(err))
        return plan;
    chakra_plan_free(plan);
    return NULL;
}

bool
chakra_plan_cluster(struct chakra_plan *plan, const char *cluster, const char *servers,
                    struct rec_error *err)
{
    char *rest;
    plan->servers = rest = strdup(servers);
    plan->server = calloc((size_t)plan->layout->nslots + 1, sizeof *plan->server);
    if (!plan->servers || !plan->server)
        return rec_fail_memory(err);
    plan->cluster = cluster;
    for (uint32_t i = 0; i < plan->layout->nslots; i++)
        plan->server[i] = strsep(&rest, ",");
    return true;
}

void
chakra_plan_free(struct chakra_plan *plan)
{
    if (!plan)
        return;
    free(plan->dst);
    free(plan->in);
    free(plan->in_start);
    free(plan->slot_op);
    free(plan->slot_start);
    free(plan->join);
    free(plan->message);
    free(plan->folded);
    free(plan->coll_folded);
    free(plan->entry_coll);
    free(plan->entry_next);
    free(plan->coll_slots);
    free(plan->op_entry);
    free(plan->entry_start);
    free(plan->after_entry);
    free(plan->after_in);
    free(plan->after_start);
    free(plan->servers);
    free(plan->server);
    free(plan);
}
