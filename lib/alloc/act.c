/*
 * Whole actions. The lines of an agent are kept as they come, because only its answer
 * says which graph they are about. Splits come first: the other lines name the parts.
 */
#include "act.h"

#include "act_graphs.h"
#include "act_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PARTS_MAX = 65536,
    LINES_BYTES_MAX = 1 << 26 /* of one action */
};

struct said_place {
    const char *op, *server; /* server NULL: none is said */
    double priority;         /* NAN: none */
};

struct said_transfer {
    const char *src, *dst;
    uint64_t channel;
    double priority; /* NAN: none */
};

struct act {
    struct graph_store *store; /* borrowed */
    struct rec_arena texts;    /* of the lines */
    size_t bytes;              /* of the lines */
    struct act_part *split;
    struct said_place *place;
    struct said_transfer *transfer;
    size_t nsplits, split_room, nplaces, place_room, ntransfers, transfer_room;
    struct act_graphs *graphs;
    struct act_blocks *blocks;
    /* Scratch: */
    uint32_t *slot_of, *server; /* per server: its slot; per slot: its server */
    uint32_t *op;               /* per place: its op */
    uint32_t *said;             /* per op: 1 + its place; 0: none */
    uint32_t *of_dep;           /* per dep: 1 + its transfer; 0: none */
    size_t op_room, said_room, of_dep_room;
};

struct act *
act_new(struct graph_store *store, struct rec_error *err)
{
    struct act *act = calloc(1, sizeof *act);
    if (!act) {
        rec_fail_memory(err);
        return NULL;
    }
    act->store = store;
    if ((act->blocks = act_blocks_new(err)) && (act->graphs = act_graphs_new(store, err)))
        return act;
    act_free(act);
    return NULL;
}

void
act_free(struct act *act)
{
    if (!act)
        return;
    act_blocks_free(act->blocks);
    act_graphs_free(act->graphs);
    rec_arena_free(&act->texts);
    free(act->split);
    free(act->place);
    free(act->transfer);
    free(act->slot_of);
    free(act->server);
    free(act->op);
    free(act->said);
    free(act->of_dep);
    free(act);
}

void
act_clear(struct act *act)
{
    rec_arena_free(&act->texts);
    act->bytes = act->nsplits = act->nplaces = act->ntransfers = 0;
}

size_t
act_bytes(const struct act *act)
{
    return act->bytes;
}

/* ---- lines ----------------------------------------------------------------- */

static bool
fail_line(struct rec_str line, const char *what, const char *right, struct rec_error *err)
{
    return rec_fail(err, REC_DATA, "%s; right is '%s', with TABs, got '%.*s'", what,
                    right, REC_SAID(line));
}

/* Takes the fields behind the job apart: field[n], and the key priority=, NAN if it is
 * absent (NULL: the record has none). Other keys are skipped, as those of answers. */
static bool
read_fields(struct rec_str line, struct rec_str job, struct rec_str *field, int n,
            double *priority, const char *right, struct rec_error *err)
{
    struct rec_str rest = line, part, key;
    rec_str_split(&rest, '\t', &part);
    if (!rec_str_split(&rest, '\t', &part))
        return fail_line(line, "it wrote a line that lacks the job", right, err);
    if (!rec_str_eq(part, job))
        return fail_line(line, "it wrote a line about another job", right, err);
    for (int i = 0; i < n; i++)
        if (!rec_str_split(&rest, '\t', &field[i]) || field[i].len == 0)
            return fail_line(line, "it wrote a line that lacks a field", right, err);
    if (priority)
        *priority = NAN;
    while (rec_str_split(&rest, '\t', &part)) {
        if (!memchr(part.ptr, '=', part.len))
            return fail_line(line, "it wrote a line that has a field too many", right,
                             err);
        rec_str_split(&part, '=', &key);
        if (priority && rec_str_is(key, "priority") &&
            (!rec_parse_num(part, priority) || !isfinite(*priority)))
            return fail_line(line, "priority= is no finite number", right, err);
    }
    return true;
}

static bool
take_split(struct act *act, struct rec_str line, struct rec_str job,
           struct rec_error *err)
{
    static const char right[] = "split JOB OP PARTS";
    struct rec_str field[2];
    struct act_part said;
    uint64_t parts;
    if (!read_fields(line, job, field, 2, NULL, right, err) ||
        !rec_grow(&act->split, &act->split_room, act->nsplits + 1, sizeof said, err))
        return false;
    if (!rec_parse_uint(field[1], &parts) || parts < 1 || parts > PARTS_MAX)
        return fail_line(line, "PARTS is no number from 1 to 65536", right, err);
    said.parts = (uint32_t)parts;
    if (!(said.op = rec_arena_copy(&act->texts, field[0], err)))
        return false;
    act->split[act->nsplits++] = said;
    return true;
}

static bool
take_place(struct act *act, struct rec_str line, struct rec_str job,
           struct rec_error *err)
{
    static const char right[] = "place JOB OP SERVER";
    struct rec_str field[2];
    struct said_place said = {.server = NULL};
    if (!read_fields(line, job, field, 2, &said.priority, right, err) ||
        !rec_grow(&act->place, &act->place_room, act->nplaces + 1, sizeof said, err))
        return false;
    if (!(said.op = rec_arena_copy(&act->texts, field[0], err)) ||
        (!rec_str_is(field[1], "-") &&
         !(said.server = rec_arena_copy(&act->texts, field[1], err))))
        return false;
    act->place[act->nplaces++] = said;
    return true;
}

static bool
take_transfer(struct act *act, struct rec_str line, struct rec_str job,
              struct rec_error *err)
{
    static const char right[] = "transfer JOB SRC DST CHANNEL";
    struct rec_str field[3];
    struct said_transfer said;
    if (!read_fields(line, job, field, 3, &said.priority, right, err) ||
        !rec_grow(&act->transfer, &act->transfer_room, act->ntransfers + 1, sizeof said,
                  err))
        return false;
    if (!rec_parse_uint(field[2], &said.channel))
        return fail_line(line, "CHANNEL is no integer >= 0", right, err);
    if (!(said.src = rec_arena_copy(&act->texts, field[0], err)) ||
        !(said.dst = rec_arena_copy(&act->texts, field[1], err)))
        return false;
    act->transfer[act->ntransfers++] = said;
    return true;
}

bool
act_take(struct act *act, struct rec_str line, struct rec_str job, bool *taken,
         struct rec_error *err)
{
    static const struct {
        const char *name;
        bool (*take)(struct act *, struct rec_str, struct rec_str, struct rec_error *);
    } kinds[] = {
        {"split", take_split}, {"place", take_place}, {"transfer", take_transfer}};
    struct rec_str rest = line, word;
    *taken = false;
    rec_str_split(&rest, '\t', &word);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!rec_str_is(word, kinds[i].name))
            continue;
        *taken = true;
        act->bytes += line.len;
        if (act->bytes > LINES_BYTES_MAX)
            return rec_fail(err, REC_DATA, "its action has more than %d bytes",
                            LINES_BYTES_MAX);
        return kinds[i].take(act, line, job, err);
    }
    return true;
}

/* ---- places and transfers --------------------------------------------------- */

/* Looks up the ops of the places. An op may be named once. */
static bool
find_ops(struct act *act, const struct graph *graph, struct rec_error *err)
{
    if (!rec_grow(&act->op, &act->op_room, act->nplaces + 1, sizeof *act->op, err) ||
        !rec_grow(&act->said, &act->said_room, graph->nops + 1, sizeof *act->said, err))
        return false;
    memset(act->said, 0, graph->nops * sizeof *act->said);
    for (uint32_t i = 0; i < act->nplaces; i++) {
        uint32_t op = graph_find(graph, rec_str(act->place[i].op));
        if (op == GRAPH_NONE)
            return rec_fail(err, REC_DATA, "it places op '%.60s', which graph '%s' lacks",
                            act->place[i].op, graph->id);
        if (act->said[op])
            return rec_fail(err, REC_DATA, "it places op '%s' twice", graph->op[op].id);
        act->said[op] = i + 1;
        act->op[i] = op;
    }
    return true;
}

/* The slot of a server: servers get slots in the order of their first use. */
static uint32_t
slot_of(struct act *act, uint32_t server, struct graph_layout *where)
{
    if (act->slot_of[server] == REC_NONE) {
        act->server[where->nslots] = server;
        act->slot_of[server] = where->nslots++;
    }
    return act->slot_of[server];
}

/* True if the action says a server for the op. */
static bool
has_server(const struct act *act, uint32_t op)
{
    return act->said[op] && act->place[act->said[op] - 1].server;
}

/* Places ops on the servers that are said, in the order of the lines. A twin for which
 * none is said follows its op, as all heuristics place it. */
static bool
put_ops(struct act *act, const struct net *net, struct graph_layout *where,
        struct rec_error *err)
{
    const struct graph *graph = where->graph;
    uint32_t nservers = net_servers(net);
    if (!act->slot_of && (!(act->slot_of = malloc(nservers * sizeof *act->slot_of)) ||
                          !(act->server = malloc(nservers * sizeof *act->server))))
        return rec_fail_memory(err);
    memset(act->slot_of, 0xff, nservers * sizeof *act->slot_of); /* REC_NONE */
    for (size_t i = 0; i < act->nplaces; i++) {
        uint32_t op = act->op[i], twin = graph->op[op].pair, server, slot;
        struct rec_error why;
        if (!act->place[i].server)
            continue;
        if (!net_parse_server(net, rec_str(act->place[i].server), &server, &why))
            return rec_fail(err, REC_DATA, "it places op '%s': %s", graph->op[op].id,
                            why.text);
        slot = slot_of(act, server, where);
        graph_layout_place(where, op, slot);
        if (twin != GRAPH_NONE && !has_server(act, twin))
            graph_layout_place(where, twin, slot);
    }
    return true;
}

static bool
put_priorities(const struct act *act, struct graph_layout *where, struct rec_error *err)
{
    for (size_t i = 0; i < act->nplaces; i++)
        if (!isnan(act->place[i].priority) &&
            !graph_layout_prefer(where, act->op[i], act->place[i].priority, err))
            return false;
    return true;
}

/* Channels go into the layout in the order of the deps, so that equal actions give equal
 * layouts. */
static bool
put_transfers(struct act *act, struct graph_layout *where, struct rec_error *err)
{
    const struct graph *graph = where->graph;
    if (act->ntransfers == 0)
        return true;
    if (!rec_grow(&act->of_dep, &act->of_dep_room, graph->ndeps + 1, sizeof *act->of_dep,
                  err))
        return false;
    memset(act->of_dep, 0, graph->ndeps * sizeof *act->of_dep);
    for (uint32_t i = 0; i < act->ntransfers; i++) {
        const struct said_transfer *said = &act->transfer[i];
        uint32_t src = graph_find(graph, rec_str(said->src)), dep = GRAPH_NONE;
        uint32_t dst = graph_find(graph, rec_str(said->dst));
        if (src != GRAPH_NONE && dst != GRAPH_NONE)
            dep = graph_find_dep(graph, src, dst);
        if (dep == GRAPH_NONE || act->of_dep[dep])
            return rec_fail(err, REC_DATA,
                            dep == GRAPH_NONE
                                ? "it gives the dep from '%.60s' to '%.60s' a channel, "
                                  "which graph '%s' lacks"
                                : "it gives the dep from '%.60s' to '%.60s' of graph "
                                  "'%s' a channel twice",
                            said->src, said->dst, graph->id);
        act->of_dep[dep] = i + 1;
    }
    for (uint32_t dep = 0; dep < graph->ndeps; dep++) {
        const struct said_transfer *said = act->transfer + act->of_dep[dep] - 1;
        if (act->of_dep[dep] &&
            !graph_layout_transfer(where, dep, said->channel, said->priority, err))
            return false;
    }
    return true;
}

/* ---- the answer -------------------------------------------------------------- */

/* The job does not start: the action breaks a rule. It does not wait either: the same
 * action might be fine later, but the agent can say so itself. */
static void
refuse(struct alloc_question *q, const struct act_broken *broken, uint32_t *choice)
{
    q->cause = broken->cause;
    q->op = broken->op;
    q->server = broken->server;
    q->explained = true;
    q->failed = broken->unit;
    q->left = broken->left;
    q->may_wait = false;
    *choice = ALLOC_NONE;
}

/* A layout on servers that are free: what it costs, and whether it can start. */
static bool
settle(struct alloc_question *q, uint32_t graph, struct graph_layout *where,
       const uint32_t *servers, uint32_t *choice, struct rec_error *err)
{
    const struct trial *trial = pricer_lay(q->pricer, graph, where, servers, err);
    struct act_broken broken;
    if (!trial || !question_settle(q, graph, trial, err))
        return false;
    *choice = q->cause ? ALLOC_NONE : ALLOC_ACTED;
    act_check_peak(pricer_net(q->pricer), trial, &broken);
    if (broken.cause)
        refuse(q, &broken, choice);
    return true;
}

/* The agent has said servers. */
static bool
place_as_said(struct act *act, struct alloc_question *q, uint32_t graph, uint32_t *choice,
              struct rec_error *err)
{
    const struct net *net = pricer_net(q->pricer);
    struct graph_layout where;
    struct act_broken broken;
    bool ok = graph_layout_start(&where, rec_str(""), act->store->graph[graph], 0, err);
    if (!ok)
        return false;
    ok = put_ops(act, net, &where, err) && put_priorities(act, &where, err) &&
         put_transfers(act, &where, err) &&
         act_check(act->blocks, q, &where, act->server, &broken, err);
    if (ok && broken.cause)
        refuse(q, &broken, choice);
    else if (ok)
        ok = settle(q, graph, &where, act->server, choice, err);
    graph_layout_free(&where);
    return ok;
}

/* The layout that a heuristic has found gets the priorities and channels that are said.
 */
static bool
add_to(struct act *act, struct alloc_question *q, uint32_t graph,
       const struct trial *trial, uint32_t *choice, struct rec_error *err)
{
    const struct graph_layout *base = &trial->layout->where;
    struct graph_layout where;
    size_t n = base->graph->nops;
    bool ok = graph_layout_start(&where, rec_str(""), base->graph, base->nslots, err);
    if (!ok)
        return false;
    memcpy(where.slot, base->slot, n * sizeof *where.slot);
    memcpy(where.placed, base->placed, n * sizeof *where.placed);
    where.nplaced = base->nplaced;
    for (uint32_t i = 0; ok && base->priority && i < n; i++)
        ok = graph_layout_prefer(&where, i, base->priority[i], err);
    ok = ok && put_priorities(act, &where, err) && put_transfers(act, &where, err) &&
         settle(q, graph, &where, trial->servers, choice, err);
    graph_layout_free(&where);
    return ok;
}

/* The agent has said no server: the heuristic places the graph. */
static bool
place_by_rule(struct act *act, struct alloc_question *q, uint32_t graph, uint32_t way,
              uint32_t *choice, struct rec_error *err)
{
    const struct trial *trial = pricer_try_way(q->pricer, graph, way, err);
    if (!trial || !question_settle(q, graph, trial, err))
        return false;
    *choice = q->cause ? ALLOC_NONE : ALLOC_ACTED;
    return trial->outcome != PLACE_PLACED || act->nplaces + act->ntransfers == 0 ||
           add_to(act, q, graph, &q->trial, choice, err);
}

/* The first heuristic with which the job can start places the graph; if there is none,
 * the first one says why. */
static bool
place_by_rules(struct act *act, struct alloc_question *q, uint32_t graph,
               uint32_t *choice, struct rec_error *err)
{
    uint32_t way = 0, n = pricer_ways(q->pricer);
    for (; way < n; way++)
        if (!place_by_rule(act, q, graph, way, choice, err))
            return false;
        else if (*choice == ALLOC_ACTED)
            return true;
    return n == 1 || place_by_rule(act, q, graph, 0, choice, err);
}

bool
act_apply(struct act *act, struct alloc_question *q, uint32_t first, const uint32_t *way,
          const struct act_split *how, uint32_t *choice, struct rec_error *err)
{
    uint32_t graph = q->tried[first].alternative.graph;
    bool servers = false;
    if (!act_graphs_split(act->graphs, q, act->split, act->nsplits, how, &graph, err) ||
        !find_ops(act, act->store->graph[graph], err))
        return false;
    q->graph = graph;
    for (size_t p = 0; p < act->nplaces; p++)
        servers = servers || act->place[p].server;
    return servers ? place_as_said(act, q, graph, choice, err)
           : way   ? place_by_rule(act, q, graph, *way, choice, err)
                   : place_by_rules(act, q, graph, choice, err);
}
