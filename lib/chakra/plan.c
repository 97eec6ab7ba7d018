/* Plans how a graph becomes traces. chakra_build() puts joins and rings around the
 * members of a collective; here they are recognised and taken out again (folded), so that
 * reading and writing a trace gives the same trace. A pair of ops send and recv becomes
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

/* The member to which a dep of a join leads, directly or through a ring. GRAPH_NONE: the
 * graph differs from those of chakra_build(), so the join must stay an op. */
static uint32_t
find_member(const struct graph *graph, const struct graph_dep *dep)
{
    if (is_word(&graph->op[dep->dst], CHAKRA_WORD_RING)) {
        uint32_t ring = dep->dst;
        if (!is_plain(dep) || dep->bytes != 0 || graph->op[ring].compute > 0 ||
            count_in(graph, ring) != 1 || count_out(graph, ring) != 1 ||
            touches_coll(graph, ring))
            return GRAPH_NONE;
        dep = dep_out(graph, ring, 0);
    } else if (dep->bytes != 0)
        return GRAPH_NONE;
    return is_plain(dep) && count_in(graph, dep->dst) == 1 &&
                   chakra_collective_of(&graph->op[dep->dst]) != REC_NONE
               ? dep->dst
               : GRAPH_NONE;
}

/* Is the op a join with members, as chakra_build() makes them? */
static bool
is_join(const struct graph *graph, uint32_t op)
{
    if (!is_word(&graph->op[op], CHAKRA_WORD_JOIN) || graph->op[op].compute > 0 ||
        count_out(graph, op) < 2 || touches_coll(graph, op))
        return false;
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (!is_plain(&graph->dep[graph->in[i]]) || graph->dep[graph->in[i]].bytes != 0)
            return false;
    for (uint32_t i = 0; i < count_out(graph, op); i++)
        if (find_member(graph, dep_out(graph, op, i)) == GRAPH_NONE)
            return false;
    return true;
}

/* Takes a join and its rings out: each dep into the join becomes a dep into the member on
 * the slot of its source or, if no member is there, into the first member.
 * `member_of_slot` is GRAPH_NONE for each slot, before and after; so the cost does not
 * depend on the number of slots. */
static void
fold_join(struct chakra_plan *plan, uint32_t join, uint32_t *member_of_slot)
{
    const struct graph *graph = plan->graph;
    const uint32_t *slot = plan->layout->slot;
    uint32_t first = GRAPH_NONE, n = count_out(graph, join);
    plan->folded[join] = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_dep *dep = dep_out(graph, join, i);
        uint32_t member = find_member(graph, dep);
        plan->dst[dep - graph->dep] = GRAPH_NONE;
        if (member != dep->dst) {
            plan->folded[dep->dst] = true;
            plan->dst[graph->out[graph->out_start[dep->dst]]] = GRAPH_NONE;
        }
        plan->join[member] = join;
        member_of_slot[slot[member]] = member;
        first = member < first ? member : first;
    }
    for (uint32_t i = graph->in_start[join]; i < graph->in_start[join + 1]; i++) {
        uint32_t d = graph->in[i], member = member_of_slot[slot[graph->dep[d].src]];
        plan->dst[d] = member != GRAPH_NONE ? member : first;
    }
    for (uint32_t i = 0; i < n; i++)
        member_of_slot[slot[find_member(graph, dep_out(graph, join, i))]] = GRAPH_NONE;
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
        ok = plan->dst && plan->in && plan->in_start && plan->slot_op &&
             plan->slot_start && plan->join && plan->message && plan->folded;
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
