/*
 * The forms of a list of tasks: a graph of records, a picture for Graphviz, a Makefile, a
 * check of names. Each form takes a task and its edges (struct task_list: add). Pictures
 * and Makefiles are written as tasks come; graph and check need all tasks first.
 */
#include "makefile.h"
#include "rampipe/task.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct op {
    const char *id;
    double cost, memory;
    bool awaited; /* another op waits for it */
};

struct dep {
    uint32_t src, dst;
    int hazard; /* enum task_hazard, or FENCE */
};

/* A name, for TASK_CHECK. */
struct used {
    const char *name, *task;                   /* task: the first that uses it */
    bool read, written, read_too, written_too; /* too: through dir/, or below it */
};

struct task_list {
    enum task_form form;
    struct rec_writer *writer;
    const char *name;
    double cost;
    struct task_hazards *hazards;
    struct task_streams streams;
    uint64_t count;
    uint64_t dropped; /* tasks of which a Makefile cannot say all */
    uint32_t fences;
    uint32_t behind; /* the first op behind the last fence */
    struct op *op;   /* tasks, gathers, and in a graph fences */
    size_t nops, op_room;
    uint32_t *task, *gather; /* their ops */
    size_t task_room, gather_room;
    uint32_t ngathers;
    struct task_gathers gathers;
    struct dep *dep;
    size_t ndeps, dep_room;
    struct rec_map names, fence_ids;
    struct used *used;
    size_t nused, used_room;
    struct rec_arena arena;
    bool (*add)(struct task_list *list, const struct task *task,
                const struct task_edge *edge, size_t nedges, struct rec_error *err);
};

static bool
keep_op(struct task_list *list, const char *id, double cost, double memory,
        struct rec_error *err)
{
    struct op op = {rec_arena_copy(&list->arena, rec_str(id), err), cost, memory, false};
    if (!op.id || !rec_grow(&list->op, &list->op_room, list->nops + 1, sizeof op, err))
        return false;
    list->op[list->nops++] = op;
    return true;
}

static bool
keep_task(struct task_list *list, const struct task *task, struct rec_error *err)
{
    return keep_op(list, task->id, isnan(task->cost) ? list->cost : task->cost,
                   task->memory, err);
}

/* The op that an edge comes from. */
static uint32_t
source(const struct task_list *list, const struct task_edge *edge)
{
    return edge->src & TASK_GATHER ? list->gather[edge->src & ~TASK_GATHER]
                                   : list->task[edge->src];
}

/* ---- records ------------------------------------------------------------- */

enum { FENCE = TASK_WAW + 1 };
static const char *const hazard_names[] = {"raw", "war", "waw", "fence"};

static bool
keep_dep(struct task_list *list, uint32_t src, uint32_t dst, int hazard,
         struct rec_error *err)
{
    if (!rec_grow(&list->dep, &list->dep_room, list->ndeps + 1, sizeof *list->dep, err))
        return false;
    list->dep[list->ndeps++] = (struct dep){src, dst, hazard};
    list->op[src].awaited = true;
    return true;
}

/* A task without other edges waits for the last fence; the others do through the tasks
 * that they wait for. */
static bool
add_to_graph(struct task_list *list, const struct task *task,
             const struct task_edge *edge, size_t nedges, struct rec_error *err)
{
    uint32_t op = (uint32_t)list->nops;
    if (!keep_task(list, task, err))
        return false;
    for (size_t i = 0; i < nedges; i++)
        if (!keep_dep(list, source(list, &edge[i]), op, (int)edge[i].hazard, err))
            return false;
    return nedges > 0 || list->fences == 0 ||
           keep_dep(list, list->behind - 1, op, FENCE, err);
}

static void
write_graph(struct task_list *list)
{
    struct rec_writer *w = list->writer;
    rec_begin(w, "graph");
    rec_text_field(w, list->name);
    rec_text_field(w, list->name);
    rec_end(w);
    for (size_t i = 0; i < list->nops; i++) {
        rec_begin(w, "op");
        rec_text_field(w, list->name);
        rec_text_field(w, list->op[i].id);
        rec_text_field(w, "task");
        rec_num_field(w, list->op[i].cost);
        rec_num_field(w, list->op[i].memory);
        rec_end(w);
    }
    for (size_t i = 0; i < list->ndeps; i++) {
        rec_begin(w, "dep");
        rec_text_field(w, list->name);
        rec_text_field(w, list->op[list->dep[i].src].id);
        rec_text_field(w, list->op[list->dep[i].dst].id);
        rec_uint_field(w, 0);
        rec_text_key(w, "hazard", hazard_names[list->dep[i].hazard]);
        rec_end(w);
    }
}

/* ---- Graphviz ------------------------------------------------------------ */

static void
put_quoted(struct rec_writer *w, const char *text)
{
    rec_put_bytes(w, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            rec_put_bytes(w, "\\", 1);
        rec_put_bytes(w, text, 1);
    }
    rec_put_bytes(w, "\"", 1);
}

/* Writes an edge; solid if it is one by data. */
static void
put_arrow(struct rec_writer *w, const char *src, const char *dst, int hazard)
{
    rec_printf(w, "  ");
    put_quoted(w, src);
    rec_printf(w, " -> ");
    put_quoted(w, dst);
    rec_printf(w, hazard == TASK_RAW ? ";\n" : " [style=dashed, label=%s];\n",
               hazard_names[hazard]);
}

/* Writes a node with its attributes `looks`, and the edges that lead to it. */
static void
put_node(struct task_list *list, const char *id, const char *looks,
         const struct task_edge *edge, size_t nedges)
{
    rec_printf(list->writer, "  ");
    put_quoted(list->writer, id);
    rec_printf(list->writer, "%s", looks);
    for (size_t i = 0; i < nedges; i++) {
        struct op *src = &list->op[source(list, &edge[i])];
        src->awaited = true;
        put_arrow(list->writer, src->id, id, (int)edge[i].hazard);
    }
}

static bool
add_to_dot(struct task_list *list, const struct task *task, const struct task_edge *edge,
           size_t nedges, struct rec_error *err)
{
    if (!keep_task(list, task, err))
        return false;
    put_node(list, task->id, ";\n", edge, nedges);
    if (nedges == 0 && list->fences > 0) {
        list->op[list->behind - 1].awaited = true;
        put_arrow(list->writer, list->op[list->behind - 1].id, task->id, FENCE);
    }
    return true;
}

/* ---- make ---------------------------------------------------------------- */

/* Writes a target and its prerequisites. */
static void
put_rule(struct task_list *list, const char *id, const struct task_edge *edge,
         size_t nedges)
{
    struct rec_writer *w = list->writer;
    rec_printf(w, ".PHONY: ");
    task_make_target(w, id);
    rec_printf(w, "\n");
    task_make_target(w, id);
    rec_printf(w, ":");
    for (size_t i = 0; i < nedges; i++) {
        rec_put_bytes(w, " ", 1);
        task_make_target(w, list->op[source(list, &edge[i])].id);
    }
    if (list->fences > 0)
        rec_printf(w, " fence-%u", list->fences);
    rec_put_bytes(w, "\n", 1);
}

static bool
add_to_makefile(struct task_list *list, const struct task *task,
                const struct task_edge *edge, size_t nedges, struct rec_error *err)
{
    struct rec_writer *w = list->writer;
    if (!keep_task(list, task, err))
        return false;
    rec_printf(w, "all: ");
    task_make_target(w, task->id);
    rec_printf(w, "\n");
    put_rule(list, task->id, edge, nedges);
    list->dropped += task_make_drops(task);
    return task_make_command(w, task, err);
}

/* ---- checks -------------------------------------------------------------- */

static struct used *
find_used(struct task_list *list, const char *name, const char *task,
          struct rec_error *err)
{
    uint32_t index = rec_map_get(&list->names, rec_str(name));
    struct used used = {.read = false};
    if (index != REC_NONE)
        return &list->used[index];
    used.name = rec_arena_copy(&list->arena, rec_str(name), err);
    used.task = rec_arena_copy(&list->arena, rec_str(task), err);
    index = (uint32_t)list->nused;
    if (!used.name || !used.task ||
        !rec_grow(&list->used, &list->used_room, list->nused + 1, sizeof used, err) ||
        !rec_map_add(&list->names, rec_str(used.name), index, err))
        return NULL;
    list->used[list->nused++] = used;
    return &list->used[index];
}

static bool
add_to_check(struct task_list *list, const struct task *task,
             const struct task_edge *edge, size_t nedges, struct rec_error *err)
{
    struct used *used;
    (void)edge, (void)nedges;
    for (size_t i = 0; i < task->reads.n; i++) {
        const char *name = task->reads.name[i], *kind;
        const struct task_edge *writers;
        size_t n = 0;
        if (!(used = find_used(list, name, task->id, err)) ||
            (task_output(name, &kind).ptr &&
             !task_hazards_writers(list->hazards, name, &writers, &n, err)))
            return false;
        used->read = true;
        /* @ID.stdout and the like are written by the task ID, which does not list them */
        used->written = used->written || n > 0;
    }
    for (size_t i = 0; i < task->writes.n; i++) {
        if (!(used = find_used(list, task->writes.name[i], task->id, err)))
            return false;
        used->written = true;
    }
    return true;
}

/* Who uses dir/ uses everything below it; and who uses a file below it uses dir/. */
static void
spread(struct task_list *list)
{
    for (size_t i = 0; i < list->nused; i++) {
        struct used *below = &list->used[i], *above;
        const char *name = below->name;
        for (size_t n = 1; name[n - 1] && name[n]; n++) {
            uint32_t index = name[n - 1] == '/'
                                 ? rec_map_get(&list->names, (struct rec_str){name, n})
                                 : REC_NONE;
            if (index == REC_NONE)
                continue;
            above = &list->used[index];
            above->read_too |= below->read;
            above->written_too |= below->written;
            below->read_too |= above->read;
            below->written_too |= above->written;
        }
    }
}

static bool
write_findings(struct task_list *list, struct rec_error *err)
{
    uint64_t findings = 0;
    spread(list);
    for (size_t i = 0; i < list->nused; i++) {
        const struct used *used = &list->used[i];
        const char *what = NULL;
        if (used->read && !used->written && !used->written_too &&
            (*used->name == '@' || access(used->name, F_OK) != 0))
            what = "is read, but no task writes it and it does not exist";
        else if (used->written && !used->read && !used->read_too)
            what = "is written, but no task reads it";
        if (!what)
            continue;
        findings++;
        rec_printf(list->writer, "task '%.200s': '%.500s' %s\n", used->task, used->name,
                   what);
    }
    return findings == 0 ||
           rec_fail(err, REC_NO,
                    "%llu of %zu names are read but not written, or written but not read",
                    (unsigned long long)findings, list->nused);
}

/* ---- all forms ----------------------------------------------------------- */

#define GATHER "@gather-"

/* A gather is an op that takes no time. */
static bool
add_gather(void *context, const struct task_edge *edge, size_t nedges,
           struct rec_error *err)
{
    struct task_list *list = context;
    char id[32];
    uint32_t op = (uint32_t)list->nops, number = list->ngathers++;
    snprintf(id, sizeof id, GATHER "%u", number + 1);
    if (!rec_grow(&list->gather, &list->gather_room, number + 1, sizeof *list->gather,
                  err) ||
        !keep_op(list, id, 0, 0, err))
        return false;
    list->gather[number] = op;
    if (list->form == TASK_DOT)
        put_node(list, id, " [shape=point];\n", edge, nedges);
    else if (list->form == TASK_MAKEFILE)
        put_rule(list, id, edge, nedges);
    for (size_t i = 0; list->form == TASK_GRAPH && i < nedges; i++)
        if (!keep_dep(list, source(list, &edge[i]), op, (int)edge[i].hazard, err))
            return false;
    return true;
}

struct task_list *
task_list_new(enum task_form form, struct rec_writer *writer, const char *name,
              double cost, struct rec_error *err)
{
    struct task_list *list = calloc(1, sizeof *list);
    if (!list) {
        rec_fail_memory(err);
        return NULL;
    }
    list->form = form;
    list->writer = writer;
    list->name = name;
    list->cost = cost;
    list->add = form == TASK_GRAPH      ? add_to_graph
                : form == TASK_DOT      ? add_to_dot
                : form == TASK_MAKEFILE ? add_to_makefile
                                        : add_to_check;
    if (!(list->hazards = task_hazards_new(err))) {
        free(list);
        return NULL;
    }
    list->gathers = (struct task_gathers){.context = list, .take = add_gather};
    task_hazards_gather(list->hazards, &list->gathers);
    if (form == TASK_DOT) {
        rec_printf(writer, "digraph ");
        put_quoted(writer, name);
        rec_printf(writer, " {\n");
    }
    if (form == TASK_MAKEFILE)
        rec_printf(writer, ".PHONY: all\nall:\n");
    return list;
}

void
task_list_free(struct task_list *list)
{
    if (!list)
        return;
    task_hazards_free(list->hazards);
    free(list->op);
    free(list->dep);
    free(list->task);
    free(list->gather);
    free(list->used);
    rec_map_free(&list->names);
    rec_map_free(&list->fence_ids);
    task_streams_free(&list->streams);
    rec_arena_free(&list->arena);
    free(list);
}

/* Results and outputs that a task waits for must be those of tasks in front of it. */
static bool
check_outputs(const struct task_list *list, const struct task *task,
              struct rec_error *err)
{
    for (size_t i = 0; i < task->reads.n; i++) {
        const char *kind, *name = task->reads.name[i];
        struct rec_str id = task_output(name, &kind);
        bool needed =
            name == task->standard_input || (id.ptr && strcmp(kind, "result") == 0);
        if (*name == '@' && needed &&
            (!id.ptr || !task_hazards_know(list->hazards, id) ||
             (name == task->standard_input && strcmp(kind, "result") == 0)))
            return rec_fail(err, REC_DATA,
                            "'%.300s' is not the %s of a task in front of task '%.200s', "
                            "which reads it",
                            name, name == task->standard_input ? "output" : "result",
                            task->id);
    }
    return true;
}

bool
task_list_add(struct task_list *list, struct task *task, struct rec_error *err)
{
    const struct task_edge *edge;
    size_t nedges;
    if (strncmp(task->id, GATHER, strlen(GATHER)) == 0)
        return rec_fail(err, REC_DATA,
                        "task '%.200s': a name must not begin with '" GATHER
                        "', which marks the nodes through which many tasks wait",
                        task->id);
    if (rec_map_get(&list->fence_ids, rec_str(task->id)) != REC_NONE)
        return rec_fail(err, REC_DATA, "task '%.200s' has the name of a fence", task->id);
    if (!task_check_form(task, err) ||
        (list->form != TASK_CHECK && !check_outputs(list, task, err)))
        return false;
    if (list->form == TASK_MAKEFILE && !task_make_check(task, err))
        return false;
    if (!rec_grow(&list->task, &list->task_room, list->count + 1, sizeof *list->task,
                  err) ||
        !task_streams_take(&list->streams, task, err) ||
        !task_hazards_add(list->hazards, task, &edge, &nedges, err))
        return false;
    list->task[list->count++] = (uint32_t)list->nops; /* (a check has no ops) */
    return list->add(list, task, edge, nedges, err);
}

/* Writes the target of a fence: it waits for all tasks since the last fence, and later
 * tasks wait for it. */
static void
put_fence(struct task_list *list)
{
    struct rec_writer *w = list->writer;
    rec_printf(w, ".PHONY: fence-%u\nfence-%u:", list->fences + 1, list->fences + 1);
    if (list->fences > 0)
        rec_printf(w, " fence-%u", list->fences);
    for (size_t i = list->behind; i < list->nops; i++) {
        rec_put_bytes(w, " ", 1);
        task_make_target(w, list->op[i].id);
    }
    rec_put_bytes(w, "\n", 1);
}

/* A fence is an op that takes no time. It waits for the ops since the last fence that no
 * other op waits for: through them it waits for all. */
static bool
add_fence_op(struct task_list *list, const char *id, struct rec_error *err)
{
    uint32_t op = (uint32_t)list->nops;
    const char *kept;
    if (rec_map_get(&list->fence_ids, rec_str(id)) != REC_NONE ||
        task_hazards_know(list->hazards, rec_str(id)) ||
        strncmp(id, GATHER, strlen(GATHER)) == 0)
        return rec_fail(err, REC_DATA,
                        "fence '%.200s' has the name of another op of the graph", id);
    if (!keep_op(list, id, 0, 0, err))
        return false;
    kept = list->op[op].id;
    if (!rec_map_add(&list->fence_ids, rec_str(kept), op, err))
        return false;
    if (list->form == TASK_DOT)
        put_node(list, id, " [shape=box];\n", NULL, 0);
    for (uint32_t i = list->fences > 0 ? list->behind - 1 : 0; i < op; i++) {
        if (list->op[i].awaited)
            continue;
        if (list->form == TASK_DOT)
            put_arrow(list->writer, list->op[i].id, id, FENCE);
        else if (!keep_dep(list, i, op, FENCE, err))
            return false;
    }
    return true;
}

bool
task_list_fence(struct task_list *list, const char *id, struct rec_error *err)
{
    task_hazards_fence(list->hazards);
    if ((list->form == TASK_GRAPH || list->form == TASK_DOT) &&
        !add_fence_op(list, id, err))
        return false;
    if (list->form == TASK_MAKEFILE)
        put_fence(list);
    list->fences++;
    list->behind = (uint32_t)list->nops;
    return true;
}

bool
task_list_end(struct task_list *list, struct rec_error *err)
{
    if (list->form == TASK_GRAPH)
        write_graph(list);
    else if (list->form == TASK_DOT)
        rec_printf(list->writer, "}\n");
    else if (list->form == TASK_CHECK)
        return write_findings(list, err);
    return true;
}

const struct task_late *
task_list_late(const struct task_list *list)
{
    return task_hazards_late(list->hazards);
}

uint64_t
task_list_dropped(const struct task_list *list)
{
    return list->dropped;
}

uint64_t
task_list_count(const struct task_list *list)
{
    return list->count;
}
