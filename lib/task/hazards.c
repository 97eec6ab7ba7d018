/*
 * Finds the tasks that a task must wait for. Objects are nodes of a tree of path
 * components; a node records what was done to the path itself (exact) and, separately, to
 * everything below it (below: dir/). Tasks are known by their turn, 1, 2, ... The last
 * writer of a path is the latest turn among the writers of the path itself and of all
 * folders above it as a whole.
 *
 * The children of a node are in two lists, sorted by latest access and by latest write,
 * so that an access to dir/ visits only the children used since the last writer of dir/.
 */
#include "hazards.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- edges --------------------------------------------------------------- */

static uint32_t *
mark_of(struct task_hazards *h, uint32_t src)
{
    return src & TASK_GATHER ? &h->gather_mark[src & ~TASK_GATHER] : &h->mark[src];
}

/* Adds an edge to those of the current task. If there is one from `src` already, the
 * stronger hazard stays: raw before war before waw. */
static bool
put_edge(struct task_hazards *h, uint32_t src, enum task_hazard hazard,
         struct rec_error *err)
{
    uint32_t *mark = mark_of(h, src);
    if (*mark > 0) {
        struct task_edge *edge = &h->edge[*mark - 1];
        edge->hazard = hazard < edge->hazard ? hazard : edge->hazard;
        return true;
    }
    if (!rec_grow(&h->edge, &h->edge_room, h->nedges + 1, sizeof *h->edge, err))
        return false;
    h->edge[h->nedges++] = (struct task_edge){src, hazard};
    *mark = (uint32_t)h->nedges;
    return true;
}

/* Adds an edge from a task, by its turn. There is none from tasks in front of the last
 * fence (or turn 0: no task), nor from the current task to itself. */
static bool
add_edge(struct task_hazards *h, uint32_t turn, enum task_hazard hazard,
         struct rec_error *err)
{
    return turn <= h->fence || turn == h->turn || put_edge(h, turn - 1, hazard, err);
}

static int
compare_edges(const void *a, const void *b)
{
    const struct task_edge *x = a, *y = b;
    return (x->src > y->src) - (x->src < y->src);
}

/* Sorts the edges of the current task, and clears their marks for the next one. */
static void
settle_edges(struct task_hazards *h)
{
    for (size_t i = 0; i < h->nedges; i++)
        *mark_of(h, h->edge[i].src) = 0;
    if (h->nedges > 1)
        qsort(h->edge, h->nedges, sizeof *h->edge, compare_edges);
}

/* The latest reader of an object; 0: none. */
static uint32_t
last_reader(const struct object *object)
{
    return object->nreaders ? object->reader[object->nreaders - 1] : 0;
}

/* Waits for the tasks that have read an object after turn `bound`; readers that a gather
 * stands for are waited for through it. */
static bool
wait_for_readers(struct task_hazards *h, const struct object *object, uint32_t bound,
                 struct rec_error *err)
{
    for (size_t i = object->nreaders; i-- > 0 && object->reader[i] > bound;) {
        if (object->reader[i] <= object->readers.turn)
            return put_edge(h, object->readers.number | TASK_GATHER, TASK_WAR, err);
        if (!add_edge(h, object->reader[i], TASK_WAR, err))
            return false;
    }
    return true;
}

static uint32_t
later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Raises *writer and *reader to the last ones of the node's folder and of all folders
 * above it, each as a whole. */
static void
look_above(const struct task_hazards *h, uint32_t node, uint32_t *writer,
           uint32_t *reader)
{
    for (; node != NONE; node = h->node[node].parent) {
        *writer = later(*writer, h->node[node].below.writer);
        *reader = later(*reader, last_reader(&h->node[node].below));
    }
}

static bool
wait_for_readers_above(struct task_hazards *h, uint32_t node, uint32_t bound,
                       struct rec_error *err)
{
    for (; node != NONE; node = h->node[node].parent)
        if (!wait_for_readers(h, &h->node[node].below, bound, err))
            return false;
    return true;
}

/* Waits as the reader or writer of a single object. A writer need not wait for the last
 * writer if somebody has read since: that reader has waited for it. */
static bool
wait_exact(struct task_hazards *h, uint32_t node, bool writes, struct rec_error *err)
{
    const struct object *object = &h->node[node].exact;
    uint32_t writer = later(h->fence, object->writer), reader = last_reader(object);
    look_above(h, node, &writer, &reader);
    if (!writes)
        return add_edge(h, writer, TASK_RAW, err);
    if (reader <= writer)
        return add_edge(h, writer, TASK_WAW, err);
    return wait_for_readers(h, object, writer, err) &&
           wait_for_readers_above(h, node, writer, err);
}

/* Waits for the users of one object below a folder that is read or written. `writer` and
 * `reader` are the last ones of the folders above the object: a user of the object before
 * that writer has been waited for already. */
static bool
wait_object(struct task_hazards *h, const struct object *object, uint32_t writer,
            uint32_t reader, bool writes, struct rec_error *err)
{
    uint32_t own = object->writer > writer ? object->writer : 0;
    if (!writes)
        return own == 0 || add_edge(h, own, TASK_RAW, err);
    if (!wait_for_readers(h, object, later(writer, own), err))
        return false;
    return own == 0 || later(reader, last_reader(object)) > own ||
           add_edge(h, own, TASK_WAW, err);
}

/* Waits for all users of the objects below a node. The tree is walked without recursion,
 * for paths may be deep. A subtree is skipped if nobody has used it since the last writer
 * above it; as siblings are sorted, all siblings behind are skipped with it. */
static bool
wait_below(struct task_hazards *h, uint32_t top, bool writes, struct rec_error *err)
{
    int which = writes ? BY_ACCESS : BY_WRITE;
    uint32_t writer = h->fence, reader = 0, node = top, next;
    look_above(h, top, &writer, &reader);
    if (!writes && h->gathers && h->node[top].writers.turn > writer) {
        if (!put_edge(h, h->node[top].writers.number | TASK_GATHER, TASK_RAW, err))
            return false;
        writer = h->node[top].writers.turn;
    } else if (!writes ? !add_edge(h, writer, TASK_RAW, err)
                       : (!wait_for_readers_above(h, top, writer, err) ||
                          (reader <= writer && !add_edge(h, writer, TASK_WAW, err))))
        return false;
    for (;;) {
        const struct node *at = &h->node[node];
        uint32_t w = writer, r = reader;
        for (uint32_t up = node; up != top; up = h->node[up].parent)
            if (up != node) {
                w = later(w, h->node[up].below.writer);
                r = later(r, last_reader(&h->node[up].below));
            }
        if (node != top) {
            if (!wait_object(h, &at->below, w, r, writes, err))
                return false;
            w = later(w, at->below.writer);
            r = later(r, last_reader(&at->below));
        }
        if (!wait_object(h, &at->exact, w, r, writes, err))
            return false;
        next = at->list[which].first;
        if (next == NONE || h->node[next].list[which].latest <= w) {
            while (node != top) {
                next = h->node[node].list[which].after;
                if (next != NONE && h->node[next].list[which].latest > writer)
                    break;
                node = h->node[node].parent;
            }
            if (node == top)
                return true;
        }
        node = next;
    }
}

/* ---- tasks --------------------------------------------------------------- */

static bool
push_reader(struct task_hazards *h, struct object *object, struct rec_error *err)
{
    if (last_reader(object) == h->turn || object->writer == h->turn)
        return true;
    if (!rec_grow(&object->reader, &object->room, object->nreaders + 1,
                  sizeof *object->reader, err))
        return false;
    object->reader[object->nreaders++] = h->turn;
    return true;
}

/* The turn of the task whose output an object is, @ID.stdout, .stderr or .result; 0:
 * none. */
static uint32_t
output_of(const struct task_hazards *h, const char *name)
{
    const char *kind;
    struct rec_str id = task_output(name, &kind);
    uint32_t turn = id.ptr ? rec_map_get(&h->ids, id) : NONE;
    return turn == NONE ? 0 : turn;
}

/* Notes that the current task writes a file which earlier tasks have read, although no
 * task had written it and it does not exist: `writer` probably stands too late. */
static bool
note_late(struct task_hazards *h, uint32_t node, const char *name, const char *writer,
          struct rec_error *err)
{
    const struct object *object = &h->node[node].exact;
    uint32_t written = object->writer, read = 0;
    if (object->nreaders == 0 || written > 0)
        return true;
    look_above(h, node, &written, &read);
    if (written > 0 || (*name != '@' && access(name, F_OK) == 0) || h->late.n++ > 0)
        return true;
    h->late.name = rec_arena_copy(&h->arena, rec_str(name), err);
    h->late.writer = rec_arena_copy(&h->arena, rec_str(writer), err);
    return h->late.name && h->late.writer;
}

const struct task_late *
task_hazards_late(const struct task_hazards *h)
{
    return &h->late;
}

/* Waits as the current task must for these names. `writer`: its id, if it writes them;
 * NULL: it reads them. */
static bool
wait_names(struct task_hazards *h, const struct task_names *names, const char *writer,
           struct rec_error *err)
{
    bool writes = writer;
    for (size_t i = 0; i < names->n; i++) {
        uint32_t turn = output_of(h, names->name[i]), node;
        bool below;
        if (turn > 0 && !add_edge(h, turn, TASK_RAW, err))
            return false;
        node = hazards_find_node(h, names->name[i], &below, err);
        if (node == NONE || !(below ? wait_below(h, node, writes, err)
                                    : wait_exact(h, node, writes, err)))
            return false;
        if (writes && !below && !note_late(h, node, names->name[i], writer, err))
            return false;
    }
    return true;
}

/* What was written in this turn is being overwritten: gathers of writers that stand for
 * it are not used any more, so that they stay exact (rampipe/task.h). */
static void
leave_gathers(struct task_hazards *h, uint32_t node, uint32_t turn)
{
    for (; turn > 0 && node != NONE; node = h->node[node].parent)
        if (turn <= h->node[node].writers.turn)
            h->node[node].writers.turn = 0;
}

/* Records that the current task uses these names. To be called after all waiting: a task
 * must not find itself. A write makes earlier readers irrelevant. */
static bool
settle_names(struct task_hazards *h, const struct task_names *names, bool writes,
             struct rec_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        struct object *object;
        bool below;
        uint32_t node = hazards_find_node(h, names->name[i], &below, err);
        if (node == NONE)
            return false;
        object = below ? &h->node[node].below : &h->node[node].exact;
        /* (a folder, if anything below it was written: turn 1 leaves every gather) */
        if (writes && h->gathers && h->gathers->exact)
            leave_gathers(h, node,
                          !below ? object->writer
                                 : h->node[node].list[BY_WRITE].latest > 0);
        hazards_touch(h, node, BY_ACCESS);
        if (writes) {
            hazards_touch(h, node, BY_WRITE);
            object->writer = h->turn;
            object->nreaders = 0;
            object->readers.turn = 0;
        } else if (!push_reader(h, object, err))
            return false;
    }
    return true;
}

static bool
add_id(struct task_hazards *h, const char *id, struct rec_error *err)
{
    if (rec_map_get(&h->ids, rec_str(id)) != NONE)
        return rec_fail(err, REC_DATA, "task '%s' comes twice", id);
    return (id = rec_arena_copy(&h->arena, rec_str(id), err)) &&
           rec_map_add(&h->ids, rec_str(id), h->turn, err);
}

/* ---- gathers ------------------------------------------------------------- */

/* Makes a gather with the current edges if they are many, else none. In both cases the
 * current edges are dropped. */
static bool
make_gather(struct task_hazards *h, struct gather *gather, struct rec_error *err)
{
    bool many = h->nedges > FEW_EDGES, ok = true;
    settle_edges(h);
    if (many) {
        ok = rec_grow(&h->gather_mark, &h->gather_mark_room, h->ngathers + 1,
                      sizeof *h->gather_mark, err);
        if (ok) {
            *gather = (struct gather){h->turn - 1, h->ngathers++};
            h->gather_mark[gather->number] = 0;
            ok = h->gathers->take(h->gathers->context, h->edge, h->nedges, err);
        }
    }
    h->nedges = 0;
    return ok;
}

/* Before a task writes at a node: makes gathers of the readers of its folder and of all
 * folders above, if there are readers that the present gather does not stand for. */
static bool
gather_readers(struct task_hazards *h, uint32_t node, bool below, struct rec_error *err)
{
    uint32_t writer = later(h->fence, below ? 0 : h->node[node].exact.writer), reader = 0;
    look_above(h, node, &writer, &reader);
    for (; node != NONE; node = h->node[node].parent) {
        struct object *object = &h->node[node].below;
        if (last_reader(object) > later(writer, object->readers.turn) &&
            (!wait_for_readers(h, object, h->fence, err) ||
             !make_gather(h, &object->readers, err)))
            return false;
    }
    return true;
}

/* Makes the gathers through which the current task will wait if it uses these names. They
 * come first, for a node must be known before an edge from it. */
static bool
gather_names(struct task_hazards *h, const struct task_names *names, bool writes,
             struct rec_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        bool below;
        uint32_t node = hazards_find_node(h, names->name[i], &below, err);
        if (node == NONE || (writes && !gather_readers(h, node, below, err)))
            return false;
        if (!writes && below &&
            (!wait_below(h, node, false, err) ||
             !make_gather(h, &h->node[node].writers, err)))
            return false;
    }
    return true;
}

void
task_hazards_gather(struct task_hazards *h, const struct task_gathers *gathers)
{
    h->gathers = gathers;
}

bool
task_hazards_writers(struct task_hazards *h, const char *name,
                     const struct task_edge **edges, size_t *nedges,
                     struct rec_error *err)
{
    const struct task_names names = {.name = &name, .n = 1};
    const struct task_gathers *gathers = h->gathers;
    uint32_t fence = h->fence;
    bool ok;
    h->turn++; /* as if a task came now, without a fence and without gathers */
    h->fence = 0;
    h->gathers = NULL;
    h->nedges = 0;
    ok = wait_names(h, &names, NULL, err);
    h->turn--;
    h->fence = fence;
    h->gathers = gathers;
    settle_edges(h);
    *edges = h->edge;
    *nedges = h->nedges;
    return ok;
}

/* ---- a task -------------------------------------------------------------- */

bool
task_hazards_know(const struct task_hazards *h, struct rec_str id)
{
    return rec_map_get(&h->ids, id) != NONE;
}

bool
task_hazards_add(struct task_hazards *h, const struct task *task,
                 const struct task_edge **edges, size_t *nedges, struct rec_error *err)
{
    if (h->turn == TASK_GATHER - 1)
        return rec_fail(err, REC_DATA, "there are more than %u tasks", h->turn);
    h->turn++;
    h->nedges = 0;
    if (!rec_grow(&h->mark, &h->mark_room, h->turn, sizeof *h->mark, err))
        return false;
    h->mark[h->turn - 1] = 0;
    if (h->gathers && (!gather_names(h, &task->reads, false, err) ||
                       !gather_names(h, &task->writes, true, err)))
        return false;
    if (!wait_names(h, &task->reads, NULL, err) ||
        !wait_names(h, &task->writes, task->id, err) ||
        !settle_names(h, &task->writes, true, err) ||
        !settle_names(h, &task->reads, false, err) || !add_id(h, task->id, err))
        return false;
    settle_edges(h);
    *edges = h->edge;
    *nedges = h->nedges;
    return true;
}

void
task_hazards_fence(struct task_hazards *h)
{
    h->fence = h->turn;
}

struct task_hazards *
task_hazards_new(struct rec_error *err)
{
    struct task_hazards *h = calloc(1, sizeof *h);
    if (!h) {
        rec_fail_memory(err);
        return NULL;
    }
    for (int i = 0; i < NROOTS; i++)
        if (hazards_add_node(h, NONE, err) == NONE) {
            task_hazards_free(h);
            return NULL;
        }
    return h;
}

void
task_hazards_free(struct task_hazards *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->nnodes; i++) {
        free(h->node[i].exact.reader);
        free(h->node[i].below.reader);
    }
    free(h->node);
    free(h->up);
    free(h->key);
    free(h->edge);
    free(h->mark);
    free(h->gather_mark);
    rec_map_free(&h->children);
    rec_map_free(&h->ids);
    rec_arena_free(&h->arena);
    free(h);
}
