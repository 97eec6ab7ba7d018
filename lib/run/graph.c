/*
 * The graph of a run: which tasks are ready, which of them comes first, and which can no
 * longer be run because a task that they need has failed.
 *
 * Ready tasks lie in a binary heap by the cost of the longest path that begins with them
 * (critical-path list scheduling). Each edge is looked at once when a task ends, so all
 * of a run takes O(edges + tasks * log(tasks)).
 */
#include "private.h"

#include <stdlib.h>

/* ---- tasks --------------------------------------------------------------- */

/* Does a task read this object, or a part of it? */
static bool
is_read(const struct task *task, const char *name)
{
    for (size_t i = 0; i < task->reads.n; i++)
        if (task_overlap(task->reads.name[i], name))
            return true;
    return false;
}

static size_t
size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Appends a text with its NUL, and moves *at behind it. Returns the copy. */
static const char *
put(char **at, const char *text)
{
    char *to = *at;
    if (!text)
        return NULL;
    memcpy(to, text, strlen(text) + 1);
    *at += strlen(text) + 1;
    return to;
}

/* Copies all texts of a task into one piece of memory: a list may have millions of tasks,
 * and ten allocations for each would cost more time and memory than the texts. The size
 * computed here must cover all that is put below. */
static bool
copy_texts(struct run_task *to, const struct task *task, struct rec_str line,
           struct rec_error *err)
{
    size_t size = size_of(task->id) + size_of(task->command) + size_of(task->cwd) +
                  size_of(task->env) + size_of(task->standard_input) +
                  size_of(task->standard_output) + size_of(task->standard_error) +
                  size_of(task->call) + line.len + 3;
    char *at;
    for (size_t i = 0; task->call && i < task->reads.n; i++)
        size += size_of(task->reads.name[i]);
    for (size_t i = 0; i < task->writes.n; i++)
        size += 1 + size_of(task->writes.name[i]);
    if (!(at = to->text = malloc(size)))
        return rec_fail_memory(err);
    to->id = put(&at, task->id);
    to->command = put(&at, task->command);
    to->cwd = put(&at, task->cwd);
    to->env = put(&at, task->env);
    to->standard_input = put(&at, task->standard_input);
    to->standard_output = put(&at, task->standard_output);
    to->standard_error = put(&at, task->standard_error);
    to->call = put(&at, task->call);
    to->results = at;
    for (size_t i = 0; task->call && i < task->reads.n; i++) {
        const char *kind;
        struct rec_str id = task_output(task->reads.name[i], &kind);
        if (id.ptr && strcmp(kind, "result") == 0) {
            memcpy(at, id.ptr, id.len);
            at += id.len;
            *at++ = '\0';
        }
    }
    *at++ = '\0';
    to->writes = at;
    for (size_t i = 0; i < task->writes.n; i++) {
        const char *name = task->writes.name[i];
        if (*name == '@')
            continue;
        *at++ = name[strlen(name) - 1] == '/' ? RUN_BELOW
                : is_read(task, name)         ? RUN_REWRITES
                                              : RUN_WRITES;
        put(&at, name);
        to->nwrites++;
    }
    to->line = at;
    memcpy(at, line.ptr, line.len);
    memcpy(at + line.len, "\n", 2);
    return true;
}

struct run_task *
run_graph_node(const struct run_graph *graph, uint32_t node)
{
    return node & TASK_GATHER ? &graph->gather[node & ~TASK_GATHER] : &graph->task[node];
}

/* Makes room for one more task or gather, so that run_graph_end() needs no memory. */
static bool
grow_stack(struct run_graph *graph, struct rec_error *err)
{
    return rec_grow(&graph->stack, &graph->stack_room, graph->n + graph->ngathers + 1,
                    sizeof *graph->stack, err);
}

bool
run_graph_add(struct run_graph *graph, const struct task *task, struct rec_str line,
              double arrival, struct rec_error *err)
{
    struct run_task to = {.arrival = arrival,
                          .timeout = task->timeout,
                          .memory = task->memory,
                          .cost = isnan(task->cost) ? 1 : task->cost,
                          .retries = task->retries,
                          .cores = task->cores,
                          .edge = REC_NONE,
                          .cause = REC_NONE,
                          .logged = REC_NONE,
                          .ok_any = task->ok_any};
    to.weight = to.cost;
    if (!rec_grow(&graph->task, &graph->room, graph->n + 1, sizeof to, err) ||
        !grow_stack(graph, err) ||
        !rec_grow(&graph->ready, &graph->ready_room, graph->n + 1, sizeof *graph->ready,
                  err) ||
        !copy_texts(&to, task, line, err))
        return false;
    graph->task[graph->n++] = to;
    return true;
}

/* A task that needs the data of a failed task cannot be run. Its cause is the task that
 * really failed, not one that was itself skipped. */
static void
inherit(struct run_graph *graph, uint32_t src, uint32_t dst, enum task_hazard hazard)
{
    const struct run_task *from = run_graph_node(graph, src);
    struct run_task *to = run_graph_node(graph, dst);
    if (hazard == TASK_RAW && from->state == RUN_FAILED && to->cause == REC_NONE)
        to->cause = from->cause == REC_NONE ? src : from->cause;
}

/* Adds the edges that lead to `dst`. It waits for each source that has not ended; from
 * those that have failed it inherits the failure at once. */
static bool
link_node(struct run_graph *graph, uint32_t dst, const struct task_edge *edges, size_t n,
          struct rec_error *err)
{
    if (graph->nedges + n >= REC_NONE)
        return rec_fail(err, REC_DATA, "there are more than %u edges", REC_NONE);
    if (!rec_grow(&graph->edge, &graph->edge_room, graph->nedges + n, sizeof *graph->edge,
                  err))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct run_task *src = run_graph_node(graph, edges[i].src);
        graph->edge[graph->nedges] =
            (struct run_edge){edges[i].src, dst, src->edge, edges[i].hazard};
        src->edge = (uint32_t)graph->nedges++;
        if (src->state >= RUN_DONE)
            inherit(graph, edges[i].src, dst, edges[i].hazard);
        else
            run_graph_node(graph, dst)->waits++;
    }
    return true;
}

bool
run_graph_link(struct run_graph *graph, const struct task_edge *edges, size_t n,
               struct rec_error *err)
{
    return link_node(graph, (uint32_t)graph->n - 1, edges, n, err);
}

bool
run_graph_gather(void *context, const struct task_edge *edges, size_t n,
                 struct rec_error *err)
{
    struct run_graph *graph = context;
    uint32_t number = (uint32_t)graph->ngathers;
    struct run_task *gather;
    if (!rec_grow(&graph->gather, &graph->gather_room, graph->ngathers + 1,
                  sizeof *graph->gather, err) ||
        !grow_stack(graph, err))
        return false;
    gather = &graph->gather[graph->ngathers++];
    *gather = (struct run_task){.edge = REC_NONE, .cause = REC_NONE, .finished = true};
    if (!link_node(graph, number | TASK_GATHER, edges, n, err))
        return false;
    /* nobody else would end a gather that waits for nothing */
    if (gather->waits == 0)
        gather->state = gather->cause == REC_NONE ? RUN_DONE : RUN_FAILED;
    return true;
}

void
run_graph_free(struct run_graph *graph)
{
    for (size_t i = 0; i < graph->n; i++) {
        free(graph->task[i].text);
        free(graph->task[i].result);
    }
    free(graph->task);
    free(graph->gather);
    free(graph->edge);
    free(graph->ready);
    free(graph->stack);
}

/* ---- the heap ------------------------------------------------------------ */

static bool
comes_first(const struct run_graph *graph, uint32_t a, uint32_t b)
{
    double x = graph->task[a].weight, y = graph->task[b].weight;
    return x > y || (!(x < y) && a < b);
}

/* Moves a task of the heap down until none of its children comes before it. */
static void
sink(struct run_graph *graph, size_t at)
{
    uint32_t *heap = graph->ready, task = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= graph->nready)
            break;
        if (child + 1 < graph->nready && comes_first(graph, heap[child + 1], heap[child]))
            child++;
        if (!comes_first(graph, heap[child], task))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = task;
}

bool
run_graph_push(struct run_graph *graph, uint32_t task, struct rec_error *err)
{
    size_t at = graph->nready;
    if (!rec_grow(&graph->ready, &graph->ready_room, at + 1, sizeof *graph->ready, err))
        return false;
    graph->nready++;
    while (at > 0 && comes_first(graph, task, graph->ready[(at - 1) / 2])) {
        graph->ready[at] = graph->ready[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    graph->ready[at] = task;
    return true;
}

uint32_t
run_graph_pop(struct run_graph *graph)
{
    uint32_t task = graph->ready[0];
    graph->ready[0] = graph->ready[--graph->nready];
    if (graph->nready > 0)
        sink(graph, 0);
    return task;
}

void
run_graph_weigh(struct run_graph *graph)
{
    for (size_t i = 0; i < graph->n; i++)
        graph->task[i].weight = graph->task[i].cost;
    for (size_t i = 0; i < graph->ngathers; i++)
        graph->gather[i].weight = 0;
    /* Edges are in the order of their `dst`, and a `src` always comes before its `dst`.
     * So in reverse order the weight of `dst` is final before an edge uses it. */
    for (size_t i = graph->nedges; i-- > 0;) {
        struct run_task *src = run_graph_node(graph, graph->edge[i].src);
        const struct run_task *dst = run_graph_node(graph, graph->edge[i].dst);
        src->weight = fmax(src->weight, src->cost + dst->weight);
    }
    for (size_t i = graph->nready / 2; i-- > 0;)
        sink(graph, i);
    graph->weighed = graph->n;
}

/* ---- the end of a task ---------------------------------------------------- */

/* Walks forward from the task over skipped tasks and gathers, which end at once, with a
 * work list instead of recursion: chains may be long. On return gathers are removed from
 * the list; skipped tasks stay on it in the order in which they were found. */
bool
run_graph_end(struct run_graph *graph, uint32_t task, size_t *nskipped,
              struct rec_error *err)
{
    size_t n = 0, done = 0; /* the length of the work list; how much of it is done */
    for (;;) {
        for (uint32_t e = run_graph_node(graph, task)->edge; e != REC_NONE;
             e = graph->edge[e].next) {
            uint32_t next = graph->edge[e].dst;
            struct run_task *dst = run_graph_node(graph, next);
            inherit(graph, task, next, graph->edge[e].hazard);
            if (--dst->waits > 0 || dst->state != RUN_WAITS)
                continue;
            if (dst->cause != REC_NONE || next & TASK_GATHER) {
                dst->state = dst->cause != REC_NONE ? RUN_FAILED : RUN_DONE;
                graph->stack[n++] = next;
            } else if (!run_graph_push(graph, next, err))
                return false;
        }
        if (done == n)
            break;
        task = graph->stack[done++];
    }
    *nskipped = 0;
    for (size_t i = 0; i < n; i++)
        if (!(graph->stack[i] & TASK_GATHER))
            graph->stack[(*nskipped)++] = graph->stack[i];
    return true;
}
