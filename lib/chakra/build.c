/* Makes a graph and its layout from the nodes of all files. The links (deps between
 * nodes) are collected first, and then sorted into the order that the graph had when it
 * was written, so that reading the files of chakra_write() gives the same records. The
 * links of foreign traces keep the order of their files. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- dependencies ---------------------------------------------------------- */

/* The graph that is being built. */
struct building {
    struct chakra_traces *t;
    struct graph *graph;
    enum chakra_server server;
    struct rec_map ids; /* of the file at hand: the bytes of an id -> node */
    uint32_t *seen;     /* for each node: 1 + the last node that it was linked to */
    uint32_t *slot;     /* of each node */
    /* The layout: its number of slots; per op, its slot; the ops in their turns. */
    uint32_t nslots, *slot_of_op, *order;
    struct rec_error *err;
};

static struct rec_str
id_key(const uint64_t *id)
{
    return (struct rec_str){(const char *)id, sizeof *id};
}

static bool
index_file(struct building *b, uint32_t first, uint32_t end)
{
    rec_map_clear(&b->ids);
    for (uint32_t i = first; i < end; i++) {
        const struct chakra_node *node = &b->t->node[i];
        if (rec_map_get(&b->ids, id_key(&node->id)) != REC_NONE)
            return chakra_fail(b->t, node, b->err, "its id is there twice");
        if (!rec_map_add(&b->ids, id_key(&node->id), i, b->err))
            return false;
    }
    return true;
}

/* The node that an id names in the file at hand. REC_NONE: it names the node itself, or
 * no node; both are counted, for a warning. */
static uint32_t
find_parent(struct building *b, const struct chakra_node *node, const uint64_t *id)
{
    uint32_t parent = REC_NONE;
    if (*id == node->id)
        b->t->counts.self++;
    else if ((parent = rec_map_get(&b->ids, id_key(id))) == REC_NONE)
        b->t->counts.dangling++;
    return parent;
}

/* The node of the source of the dep that a receive carries; REC_NONE: it is unknown. */
static uint32_t
find_sender(const struct building *b, uint32_t receive)
{
    const struct chakra_node *node = &b->t->node[receive];
    return node->matched ? b->t->node[node->peer].sender : REC_NONE;
}

/* Adds a link from a parent of node dst. If the parent is a receive that carries a dep,
 * the link comes from the dep's source. A second dependency on the same node is
 * dropped. */
static bool
link_parent(struct building *b, uint32_t dst, uint32_t parent,
            const struct chakra_parent *as)
{
    const struct chakra_node *node = &b->t->node[parent];
    if (node->coll != CHAKRA_LAST) {
        struct chakra_part part = {parent, dst, true, as->order, as->keys};
        return chakra_add_part(b->t, &part, b->err);
    }
    if (node->carries) {
        if (node->type != CHAKRA_RECV || (parent = find_sender(b, parent)) == REC_NONE)
            return true;
        as = &node->carried;
    }
    if (b->seen[parent] == dst + 1)
        return true;
    b->seen[parent] = dst + 1;
    return chakra_add_link(b->t, parent, dst, as, b->err);
}

/* Adds the links to a node. Control parents are only counted. A receive that carries a
 * sync dep names the op that waits for it; that op has no data dependency on it. */
static bool
link_node(struct building *b, uint32_t i)
{
    struct chakra_node *node = &b->t->node[i];
    struct chakra_parent *parent = b->t->parent + node->first;
    for (size_t k = 0; k < node->ncontrol; k++)
        (void)find_parent(b, node, &parent[node->nparents + k].id);
    if (node->carries && node->type == CHAKRA_RECV && node->sync) {
        uint32_t dst = find_parent(b, node, &node->carried.id);
        uint32_t src = find_sender(b, i);
        return dst == REC_NONE || src == REC_NONE || b->t->node[dst].carries ||
               chakra_add_link(b->t, src, dst, &node->carried, b->err);
    }
    for (size_t k = 0; node->coll != CHAKRA_LAST && k < node->nparents; k++) {
        uint32_t op = find_parent(b, node, &parent[k].id);
        struct chakra_part part = {i, op, false, parent[k].order, ""};
        if (op != REC_NONE && !b->t->node[op].carries &&
            !chakra_add_part(b->t, &part, b->err))
            return false;
    }
    for (size_t k = 0; !node->carries && k < node->nparents; k++) {
        uint32_t from = find_parent(b, node, &parent[k].id);
        if (from != REC_NONE && !link_parent(b, i, from, &parent[k]))
            return false;
    }
    return true;
}

/* Finds, for each send of a file that carries a dep, the node of the dep's source. */
static void
find_senders(struct building *b, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        struct chakra_node *node = &b->t->node[i];
        node->sender = REC_NONE;
        if (!node->carries || node->type != CHAKRA_SEND || node->nparents == 0)
            continue;
        node->sender = rec_map_get(&b->ids, id_key(&b->t->parent[node->first].id));
        if (node->sender != REC_NONE && b->t->node[node->sender].carries)
            node->sender = REC_NONE;
    }
}

/* Two passes, since a receive needs the source of its send, which may be in a later
 * file. */
static bool
link_all(struct building *b)
{
    struct chakra_traces *t = b->t;
    bool ok = true;
    for (int pass = 0; pass < 2; pass++)
        for (size_t f = 0; ok && f < t->nfiles; f++) {
            uint32_t first = t->file[f].first, end = t->file[f].end;
            ok = index_file(b, first, end);
            if (pass == 0 && ok)
                find_senders(b, first, end);
            for (uint32_t i = first; pass == 1 && ok && i < end; i++)
                ok = link_node(b, i);
        }
    return ok;
}

/* ---- ops ------------------------------------------------------------------- */

static int
by_order(const void *x, const void *y, void *context)
{
    const struct chakra_node *node = context;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (node[a].order != node[b].order)
        return node[a].order < node[b].order ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int
by_placed(const void *x, const void *y, void *context)
{
    const struct chakra_node *node = context;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (node[a].placed != node[b].placed)
        return node[a].placed < node[b].placed ? -1 : 1;
    return by_order(x, y, context);
}

static int
by_thread(const void *x, const void *y, void *context)
{
    const struct chakra_node *node = context;
    const struct chakra_node *a = &node[*(const uint32_t *)x],
                             *b = &node[*(const uint32_t *)y];
    double s = isnan(a->thread) ? -INFINITY : a->thread;
    double t = isnan(b->thread) ? -INFINITY : b->thread;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (s != t)
        return s < t ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* Chooses the slot of each of the nops nodes that become ops. For threads it sorts `ops`,
 * so that a change of file or thread from one op to the next starts a new slot. */
static void
choose_slots(struct building *b, uint32_t *ops, size_t nops)
{
    const struct chakra_node *node = b->t->node;
    uint32_t n = 0;
    if (b->server == CHAKRA_THREAD)
        qsort_r(ops, nops, sizeof *ops, by_thread, b->t->node);
    for (size_t i = 0; i < nops; i++) {
        const struct chakra_node *at = &node[ops[i]];
        const struct chakra_node *before = i ? &node[ops[i - 1]] : at;
        bool same =
            at->file == before->file && (at->thread == before->thread ||
                                         (isnan(at->thread) && isnan(before->thread)));
        n += b->server == CHAKRA_OP ? i > 0 : !same;
        b->slot[ops[i]] = b->server == CHAKRA_RANK ? at->file : n;
    }
    b->nslots = b->server == CHAKRA_RANK ? (uint32_t)b->t->nfiles : n + 1;
}

/* Adds an op that comes from no node: a join or a start. It takes no time. */
static bool
add_helper(struct building *b, const char *id, const char *word, uint32_t slot)
{
    char keys[16];
    struct graph_op op = {.id = id,
                          .extra = keys,
                          .pass = GRAPH_TASK,
                          .param = NAN,
                          .activation = NAN,
                          .part = 1,
                          .parts = 1};
    size_t i = b->graph->nops;
    snprintf(keys, sizeof keys, "\tcoll=%s", word);
    if (rec_map_get(&b->graph->index, rec_str(id)) != REC_NONE)
        return rec_fail(b->err, REC_DATA, "there are two ops '%s'", id);
    b->slot_of_op[i] = slot;
    b->order[i] = (uint32_t)i;
    return graph_add_op(b->graph, &op, NULL, b->err);
}

static bool
add_dep(struct building *b, const char *src, const char *dst)
{
    return graph_add_dep(b->graph, rec_str(src), rec_str(dst), 0, false, "", 0, b->err);
}

enum { HELPER_MAX = 48 }; /* bytes for the name of a join, start or coll */

static void
name_join(char name[HELPER_MAX], uint32_t gate)
{
    snprintf(name, HELPER_MAX, "join.%u", gate);
}

static void
name_start(char name[HELPER_MAX], uint32_t gate, uint32_t i)
{
    snprintf(name, HELPER_MAX, "start.%u.%u", gate, i);
}

/* Adds the join of a collective or, if it is a coll, an op for each member that takes
 * part in it. */
static bool
add_helpers(struct building *b, uint32_t g)
{
    const struct chakra_gate *gate = &b->t->gate[g];
    const uint32_t *member = b->t->member + gate->first;
    char name[HELPER_MAX];
    name_join(name, g);
    if (!gate->coll)
        return add_helper(b, name, CHAKRA_WORD_JOIN, b->slot[*member]);
    for (uint32_t i = 0; i < gate->members; i++) {
        name_start(name, g, i);
        if (!add_helper(b, name, CHAKRA_WORD_START, b->slot[member[i]]))
            return false;
    }
    return true;
}

/* Adds a coll in which the starts take part, and for whose end the members wait. */
static bool
add_coll(struct building *b, uint32_t g)
{
    const struct chakra_gate *gate = &b->t->gate[g];
    const uint32_t *member = b->t->member + gate->first;
    const struct chakra_node *node = b->t->node;
    double bytes = chakra_coll_bytes(gate->kind, node[*member].bytes, gate->members);
    struct graph_coll coll = {.kind = gate->kind, .bytes = bytes};
    char id[HELPER_MAX], name[HELPER_MAX];
    struct rec_text text;
    char *ops;
    bool ok;
    snprintf(id, sizeof id, "coll.%u", g);
    if (!rec_text_open(&text, b->err))
        return false;
    for (uint32_t i = 0; i < gate->members; i++) {
        name_start(name, g, i);
        fprintf(text.out, "%s%s", i ? "," : "", name);
    }
    ops = rec_text_close(&text, b->err);
    ok = ops && graph_add_coll(b->graph, &coll, rec_str(id), rec_str(ops),
                               (struct rec_str){NULL, 0}, rec_str(""), b->err);
    free(ops);
    for (uint32_t i = 0; ok && i < gate->members; i++)
        ok = add_dep(b, id, node[member[i]].op.id);
    return ok;
}

/* Adds the deps from a join to the members, or a coll. */
static bool
add_gate_deps(struct building *b, uint32_t g)
{
    const struct chakra_gate *gate = &b->t->gate[g];
    const uint32_t *member = b->t->member + gate->first;
    char join[HELPER_MAX];
    if (gate->coll)
        return add_coll(b, g);
    name_join(join, g);
    for (uint32_t i = 0; i < gate->members; i++)
        if (!add_dep(b, join, b->t->node[member[i]].op.id))
            return false;
    return true;
}

static size_t
count_helpers(const struct chakra_traces *t)
{
    size_t n = t->ngates;
    for (size_t g = 0; g < t->ngates; g++)
        n += t->gate[g].members;
    return n;
}

/* The priority of an op. Foreign nodes run in the order of their files, as they did when
 * they were traced; communication without a duration comes before all others, since it
 * occupies the server for no time. */
static double
priority_of(const struct chakra_node *node, size_t nops)
{
    if (node->ours)
        return node->priority;
    if (node->op.compute == 0 && node->type != CHAKRA_COMP)
        return (double)nops + 1;
    return (double)(nops - node->index);
}

static bool
add_ops(struct building *b, uint32_t *ops, size_t nops)
{
    struct chakra_traces *t = b->t;
    size_t room = nops + count_helpers(t);
    b->slot_of_op = malloc((room + 1) * sizeof *b->slot_of_op);
    b->order = malloc((room + 1) * sizeof *b->order);
    if (!b->slot_of_op || !b->order)
        return rec_fail_memory(b->err);
    qsort_r(ops, nops, sizeof *ops, by_order, t->node);
    for (size_t i = 0; i < nops; i++) {
        struct chakra_node *node = &t->node[ops[i]];
        node->index = (uint32_t)i;
        if (rec_map_get(&b->graph->index, rec_str(node->op.id)) != REC_NONE)
            return chakra_fail(t, node, b->err, "there is an op '%s' already",
                               node->op.id);
        if (!graph_add_op(b->graph, &node->op, node->pair, b->err))
            return false;
    }
    qsort_r(ops, nops, sizeof *ops, by_placed, t->node);
    for (size_t i = 0; i < nops; i++)
        b->order[i] = t->node[ops[i]].index;
    choose_slots(b, ops, nops);
    for (size_t i = 0; i < nops; i++)
        b->slot_of_op[t->node[ops[i]].index] = b->slot[ops[i]];
    for (uint32_t g = 0; g < t->ngates; g++)
        if (!add_helpers(b, g))
            return false;
    return true;
}

/* Makes the layout, now that all ops of the graph are there. Helpers go first. */
static bool
lay_out(struct building *b, struct graph_layout *layout, const uint32_t *ops, size_t nops)
{
    size_t all = b->graph->nops;
    const char *name = b->t->layout ? b->t->layout : "L1";
    bool ok = graph_layout_start(layout, rec_str(name), b->graph, b->nslots, b->err);
    for (size_t i = 0; ok && i < all; i++)
        graph_layout_place(layout, b->order[i], b->slot_of_op[b->order[i]]);
    for (size_t i = 0; ok && i < nops; i++) {
        const struct chakra_node *node = &b->t->node[ops[i]];
        ok = graph_layout_prefer(layout, node->index, priority_of(node, all), b->err) &&
             (!node->lane ||
              graph_layout_lane(layout, node->index, rec_str(node->lane), b->err)) &&
             (node->turn == GRAPH_NO_ORDER ||
              graph_layout_queue(layout, node->index, node->turn, b->err));
    }
    for (size_t i = nops; ok && i < all; i++)
        ok = graph_layout_prefer(layout, (uint32_t)i, (double)all + 1, b->err);
    return ok && graph_layout_check(layout, b->err);
}

/* ---- deps ------------------------------------------------------------------ */

/* Sorts links by their order. Links into collectives come last, those of one collective
 * together and sorted by their sources, so that add_links() sees equal sources side by
 * side. */
static int
by_turn(const void *x, const void *y)
{
    const struct chakra_link *a = x, *b = y;
    uint32_t g = a->gate + 1, h = b->gate + 1; /* REC_NONE becomes 0, the first */
    if (g != h)
        return g < h ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->turn < b->turn ? -1 : 1;
}

static bool
add_link(struct building *b, const struct chakra_link *link)
{
    static const char sync[] = "\tkind=sync";
    const struct chakra_node *node = b->t->node;
    bool is_sync = strncmp(link->keys, sync, sizeof sync - 1) == 0 &&
                   strchr("\t", link->keys[sizeof sync - 1]);
    return graph_add_dep(b->graph, rec_str(node[link->src].op.id),
                         rec_str(node[link->dst].op.id), link->bytes, is_sync,
                         link->keys + (is_sync ? sizeof sync - 1 : 0), 0, b->err);
}

/* Adds the deps of the graph. A link into a member of a collective becomes a dep into the
 * join, once for each source, or into what takes part in the coll for the member. */
static bool
add_links(struct building *b)
{
    struct chakra_traces *t = b->t;
    bool ok = true;
    for (size_t i = 0; i < t->nlinks; i++) {
        struct chakra_link *link = &t->link[i];
        link->gate = t->node[link->dst].gate;
        if (link->gate != REC_NONE)
            link->order = t->node[link->src].index;
    }
    if (t->nlinks)
        qsort(t->link, t->nlinks, sizeof *t->link, by_turn);
    for (size_t i = 0; ok && i < t->nlinks; i++) {
        const struct chakra_link *link = &t->link[i], *before = i ? link - 1 : NULL;
        char name[HELPER_MAX];
        if (link->gate == REC_NONE) {
            ok = add_link(b, link);
            continue;
        }
        if (t->gate[link->gate].coll)
            name_start(name, link->gate, t->node[link->dst].seat);
        else if (!before || before->gate != link->gate || before->src != link->src)
            name_join(name, link->gate);
        else
            continue;
        ok = add_dep(b, t->node[link->src].op.id, name);
    }
    for (uint32_t g = 0; ok && g < t->ngates; g++)
        ok = add_gate_deps(b, g);
    return ok;
}

/* ---- all ------------------------------------------------------------------- */

static bool
build(struct building *b, const char *name, uint32_t *ops, struct graph_layout *layout)
{
    struct chakra_traces *t = b->t;
    size_t nops = 0;
    for (uint32_t i = 0; i < t->nnodes; i++)
        if (!t->node[i].carries)
            ops[nops++] = i;
    if (nops == 0)
        return rec_fail(b->err, REC_DATA, "%s: the trace has no nodes",
                        rec_input_name(t->file[0].path));
    if (b->server == CHAKRA_OP && nops > GRAPH_SLOTS_MAX)
        return rec_fail(b->err, REC_DATA, "%zu ops are more than a layout has slots",
                        nops);
    if (!graph_start(b->graph, rec_str(t->graph ? t->graph : name),
                     rec_str(t->model ? t->model : name), t->keys ? t->keys : "",
                     b->err) ||
        !chakra_match(t, b->err) || !link_all(b) || !add_ops(b, ops, nops) ||
        !add_links(b) || !chakra_add_colls(t, b->graph, b->err))
        return false;
    return graph_close(b->graph, b->err) && lay_out(b, layout, ops, nops);
}

bool
chakra_build(struct chakra_traces *traces, const char *name, enum chakra_server server,
             struct graph *graph, struct graph_layout *layout,
             struct chakra_counts *counts, struct rec_error *err)
{
    struct building b = {.t = traces, .graph = graph, .server = server, .err = err};
    size_t n = traces->nnodes + 1;
    uint32_t *ops = malloc(n * sizeof *ops);
    bool ok;
    *layout = (struct graph_layout){.id = NULL};
    b.seen = calloc(n, sizeof *b.seen);
    b.slot = malloc(n * sizeof *b.slot);
    ok = ops && b.seen && b.slot ? build(&b, name, ops, layout) : rec_fail_memory(err);
    *counts = traces->counts;
    rec_map_free(&b.ids);
    free(b.seen);
    free(b.slot);
    free(b.slot_of_op);
    free(b.order);
    free(ops);
    return ok;
}
