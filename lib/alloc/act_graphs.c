/*
 * Graphs that are made for the whole actions of agents. Ops are split in the order of the
 * graph's records, as by degree, so equal splits give equal graphs. What was made is kept
 * up to MADE_BYTES_MAX: an agent may split each job in its own way.
 */
#include "act_graphs.h"

#include <stdio.h>
#include <stdlib.h>

enum { MADE_BYTES_MAX = 1 << 26 }; /* of graphs that no job runs on */
/* Ops and deps of a graph that an action asks for; as partition's --limit. */
static const struct rec_limit graph_limit = {2e7, NULL};

/* A graph that was made by splits. */
struct made {
    uint32_t graph;     /* index in the store */
    struct rec_str key; /* in act->made_index, owned */
    size_t bytes;       /* that it needs, about */
    uint64_t used;      /* the action that used it last */
    bool unnamed;       /* no decision has named it */
};

struct act_graphs {
    struct graph_store *store; /* borrowed */
    struct made **made;        /* owned, as are the entries */
    size_t nmade, made_room, made_bytes;
    struct rec_map made_index; /* a split -> index in made[] */
    struct rec_map names;      /* name of a graph that was made -> how often it was */
    struct rec_arena name_texts;
    uint64_t actions; /* so far */
};

struct act_graphs *
act_graphs_new(struct graph_store *store, struct rec_error *err)
{
    struct act_graphs *g = calloc(1, sizeof *g);
    if (g)
        g->store = store;
    else
        rec_fail_memory(err);
    return g;
}

static void
free_made(struct made *made)
{
    free((char *)(uintptr_t)made->key.ptr);
    free(made);
}

void
act_graphs_free(struct act_graphs *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->nmade; i++)
        free_made(g->made[i]);
    free(g->made);
    rec_map_free(&g->made_index);
    rec_map_free(&g->names);
    rec_arena_free(&g->name_texts);
    free(g);
}

struct item {
    uint32_t op, parts;
};

static int
by_op(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->op > y->op) - (x->op < y->op);
}

/* Looks the ops up, and sorts them. An op may be named once. Those that stay whole (*n
 * are left) are dropped: that an agent names them changes nothing. */
static bool
find_items(const struct act_part *part, size_t nparts, const struct graph *graph,
           struct item *item, size_t *n, struct rec_error *err)
{
    *n = 0;
    for (size_t i = 0; i < nparts; i++) {
        item[i] = (struct item){graph_find(graph, rec_str(part[i].op)), part[i].parts};
        if (item[i].op == GRAPH_NONE)
            return rec_fail(err, REC_DATA, "it splits op '%.60s', which graph '%s' lacks",
                            part[i].op, graph->id);
    }
    qsort(item, nparts, sizeof *item, by_op);
    for (size_t i = 1; i < nparts; i++)
        if (item[i].op == item[i - 1].op)
            return rec_fail(err, REC_DATA, "it splits op '%s' twice",
                            graph->op[item[i].op].id);
    for (size_t i = 0; i < nparts; i++)
        if (item[i].parts > 1)
            item[(*n)++] = item[i];
    return true;
}

/* Gives the graph a name that no other one has or had: ID/PARTS, else ID/PARTS-2, ... */
static bool
name_graph(struct act_graphs *g, struct graph *graph, struct rec_error *err)
{
    struct rec_str base = rec_str(graph->id);
    uint32_t n = rec_map_get(&g->names, base);
    const char *kept;
    if (!(base.ptr = rec_arena_copy(&g->name_texts, base, err)))
        return false;
    for (n = n == REC_NONE ? 1 : n + 1;; n++) {
        char *name = NULL;
        if (n > 1 && asprintf(&name, "%s-%u", base.ptr, n) < 0)
            return rec_fail_memory(err);
        kept = rec_arena_copy(&graph->arena, name ? rec_str(name) : base, err);
        free(name);
        if (!kept)
            return false;
        if (graph_store_find(g->store, rec_str(kept)) == REC_NONE)
            break;
    }
    graph->id = kept;
    rec_map_remove(&g->names, base);
    return rec_map_add(&g->names, base, n, err);
}

static bool
make_graph(struct act_graphs *g, const struct graph *from,
           const struct graph_partition *how, struct rec_error *err)
{
    struct graph *to = calloc(1, sizeof *to);
    struct rec_error why;
    double made = 0;
    bool ok = to || rec_fail_memory(err);
    if (ok && (!graph_partition_count(from, how, &made, &why) ||
               !rec_limit(&graph_limit, made, "ops and deps", &why)))
        ok = rec_fail(err, why.code == REC_IO ? REC_IO : REC_DATA, "its split: %s",
                      why.text);
    ok = ok && graph_partition(from, how, to, err) && name_graph(g, to, err) &&
         graph_store_add(g->store, to, err);
    if (ok || !to)
        return ok;
    graph_free(to);
    free(to);
    return false;
}

/* About the bytes of a graph with its indexes. */
static size_t
bytes_of(const struct graph *graph)
{
    return graph->nops * 250 + graph->ndeps * 80 + 1000;
}

/* Drops the graph that was used longest ago of those that no job runs on. *some: there
 * was one. */
static bool
drop_oldest(struct act_graphs *g, struct pricer *pricer, bool *some,
            struct rec_error *err)
{
    uint64_t before = g->actions; /* one that runs is tried once */
    *some = false;
    for (uint64_t least = 0; !*some;) {
        size_t oldest = g->nmade;
        for (size_t i = 0; i < g->nmade; i++)
            if (g->made[i]->used > least && g->made[i]->used < before &&
                (oldest == g->nmade || g->made[i]->used < g->made[oldest]->used))
                oldest = i;
        if (oldest == g->nmade)
            return true;
        least = g->made[oldest]->used;
        if (!pricer_drop(pricer, g->made[oldest]->graph, some, err))
            return false;
        if (!*some)
            continue;
        graph_store_drop(g->store, g->made[oldest]->graph);
        rec_map_remove(&g->made_index, g->made[oldest]->key);
        g->made_bytes -= g->made[oldest]->bytes;
        free_made(g->made[oldest]);
        if (oldest != --g->nmade) {
            g->made[oldest] = g->made[g->nmade];
            rec_map_remove(&g->made_index, g->made[oldest]->key);
            return rec_map_add(&g->made_index, g->made[oldest]->key, (uint32_t)oldest,
                               err);
        }
    }
    return true;
}

/* Keeps the last graph of the store, which was just made. */
static bool
keep_made(struct act_graphs *g, struct pricer *pricer, struct rec_str key,
          struct rec_error *err)
{
    struct made *made = calloc(1, sizeof *made);
    char *own = malloc(key.len);
    bool some = true, ok = (made && own) || rec_fail_memory(err);
    ok = ok && rec_grow(&g->made, &g->made_room, g->nmade + 1, sizeof *g->made, err);
    if (!ok) {
        free(made);
        free(own);
        return false;
    }
    key.ptr = memcpy(own, key.ptr, key.len);
    *made = (struct made){.graph = (uint32_t)g->store->ngraphs - 1,
                          .key = key,
                          .used = g->actions,
                          .unnamed = true};
    made->bytes = bytes_of(g->store->graph[made->graph]);
    g->made_bytes += made->bytes;
    g->made[g->nmade++] = made;
    ok = rec_map_add(&g->made_index, key, (uint32_t)g->nmade - 1, err);
    while (ok && some && g->made_bytes > MADE_BYTES_MAX)
        ok = drop_oldest(g, pricer, &some, err);
    return ok;
}

/* Finds what a list of splits makes of *graph, or makes it. *unnamed: see struct
 * alloc_question. */
static bool
find_split(struct act_graphs *g, struct pricer *pricer, const struct item *item, size_t n,
           const struct act_split *how, uint32_t *graph, bool **unnamed,
           struct rec_error *err)
{
    const struct graph *from = g->store->graph[*graph];
    struct graph_split_op *list = malloc((n + 1) * sizeof *list);
    size_t nkey = 3 + 2 * n;
    uint32_t *key = malloc(nkey * sizeof *key), at = REC_NONE;
    struct graph_partition partition = {.list = list,
                                        .nlist = (uint32_t)n,
                                        .sizes = how->sizes,
                                        .gradients = how->gradients};
    struct rec_str text = {(const char *)key, nkey * sizeof *key};
    bool ok = (list && key) || rec_fail_memory(err);
    for (size_t i = 0; ok && i < n; i++) {
        list[i] =
            (struct graph_split_op){rec_str(from->op[item[i].op].id), item[i].parts};
        key[3 + 2 * i] = item[i].op;
        key[4 + 2 * i] = item[i].parts;
    }
    if (ok) {
        key[0] = *graph;
        key[1] = how->sizes;
        key[2] = how->gradients;
        at = rec_map_get(&g->made_index, text);
    }
    if (ok && at == REC_NONE)
        ok = make_graph(g, from, &partition, err) && keep_made(g, pricer, text, err) &&
             (at = rec_map_get(&g->made_index, text)) != REC_NONE;
    if (ok) {
        g->made[at]->used = g->actions;
        *graph = g->made[at]->graph;
        *unnamed = &g->made[at]->unnamed;
    }
    free(list);
    free(key);
    return ok;
}

bool
act_graphs_split(struct act_graphs *g, struct alloc_question *q,
                 const struct act_part *part, size_t nparts, const struct act_split *how,
                 uint32_t *graph, struct rec_error *err)
{
    struct item *item;
    size_t n;
    bool ok;
    g->actions++;
    if (nparts == 0)
        return true;
    item = malloc(nparts * sizeof *item);
    ok = item || rec_fail_memory(err);
    ok = ok && find_items(part, nparts, g->store->graph[*graph], item, &n, err) &&
         find_split(g, q->pricer, item, n, how, graph, &q->unnamed, err);
    free(item);
    return ok;
}
