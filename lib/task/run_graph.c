/* Who is ready, who comes first, who need not be run any more. */
#include "run.h"

#include <stdlib.h>

/* ---- tasks --------------------------------------------------------------- */

bool
run_name_covers(const char *a, const char *b)
{
    size_t n = strlen(a);
    return strcmp(a, b) == 0 || (strcmp(a, "./") == 0 && *b != '/' && *b != '@') ||
           (*a != '@' && n > 0 && a[n - 1] == '/' && strncmp(a, b, n) == 0);
}

static bool
is_read(const struct task *task, const char *name)
{
    for (size_t i = 0; i < task->reads.n; i++)
        if (run_name_covers(task->reads.name[i], name) ||
            run_name_covers(name, task->reads.name[i]))
            return true;
    return false;
}

static size_t
size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

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

/* Copies the texts of a task into one piece of memory. */
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
        !rec_grow(&graph->stack, &graph->stack_room, graph->n + 1, sizeof *graph->stack,
                  err) ||
        !rec_grow(&graph->ready, &graph->ready_room, graph->n + 1, sizeof *graph->ready,
                  err) ||
        !copy_texts(&to, task, line, err))
        return false;
    graph->task[graph->n++] = to;
    return true;
}

static void
inherit(struct run_graph *graph, uint32_t src, uint32_t dst, enum task_hazard hazard)
{
    const struct run_task *from = &graph->task[src];
    if (hazard == TASK_RAW && from->state == RUN_FAILED &&
        graph->task[dst].cause == REC_NONE)
        graph->task[dst].cause = from->cause == REC_NONE ? src : from->cause;
}

bool
run_graph_link(struct run_graph *graph, const struct task_edge *edges, size_t n,
               struct rec_error *err)
{
    uint32_t dst = (uint32_t)graph->n - 1;
    if (graph->nedges + n >= REC_NONE)
        return rec_fail(err, REC_DATA, "there are more than %u edges", REC_NONE);
    if (!rec_grow(&graph->edge, &graph->edge_room, graph->nedges + n, sizeof *graph->edge,
                  err))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct run_task *src = &graph->task[edges[i].src];
        graph->edge[graph->nedges] =
            (struct run_edge){edges[i].src, dst, src->edge, edges[i].hazard};
        src->edge = (uint32_t)graph->nedges++;
        if (src->state >= RUN_DONE)
            inherit(graph, edges[i].src, dst, edges[i].hazard);
        else
            graph->task[dst].waits++;
    }
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
    /* edges that lead from a task stand behind those that lead to it */
    for (size_t i = graph->nedges; i-- > 0;) {
        struct run_task *src = &graph->task[graph->edge[i].src];
        src->weight =
            fmax(src->weight, src->cost + graph->task[graph->edge[i].dst].weight);
    }
    for (size_t i = graph->nready / 2; i-- > 0;)
        sink(graph, i);
    graph->weighed = graph->n;
}

/* ---- the end of a task ---------------------------------------------------- */

bool
run_graph_end(struct run_graph *graph, uint32_t task, size_t *nskipped,
              struct rec_error *err)
{
    size_t done = 0; /* of those that are skipped; [0] stands for the task itself */
    *nskipped = 0;
    for (;;) {
        for (uint32_t e = graph->task[task].edge; e != REC_NONE;
             e = graph->edge[e].next) {
            struct run_task *dst = &graph->task[graph->edge[e].dst];
            inherit(graph, task, graph->edge[e].dst, graph->edge[e].hazard);
            if (--dst->waits > 0 || dst->state != RUN_WAITS)
                continue;
            if (dst->cause != REC_NONE) {
                dst->state = RUN_FAILED;
                graph->stack[(*nskipped)++] = graph->edge[e].dst;
            } else if (!run_graph_push(graph, graph->edge[e].dst, err))
                return false;
        }
        if (done == *nskipped)
            return true;
        task = graph->stack[done++];
    }
}
