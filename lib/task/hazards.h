/*
 * The objects that tasks read and write, as nodes of a tree of path components. Shared by
 * hazards.c, which finds the tasks to wait for, and objects.c, which finds the nodes.
 */
#ifndef RAMPIPE_TASK_HAZARDS_H
#define RAMPIPE_TASK_HAZARDS_H

#include "rampipe/task.h"

#define NONE REC_NONE

/*
 * A node of the graph that is not a task. If n tasks write below dir/ and n tasks read
 * dir/, each reader waits for all writers: n * n edges. With a gather, which waits for
 * the writers and for which the readers wait, there are n + n. A later gather of the same
 * folder waits for the earlier one and for the tasks since. The earlier one may stand for
 * tasks that no longer matter, because their output was overwritten: the task that did so
 * came after them, so waiting for them adds no new order.
 */
struct gather {
    uint32_t turn;   /* it stands for all tasks up to this turn; 0: there is no gather */
    uint32_t number; /* 0, 1, ... in the order of making */
};
enum { FEW_EDGES = 8 }; /* with so few edges, or fewer, no gather is made */

/* What was done to one object. Readers before the last write are forgotten. */
struct object {
    uint32_t writer; /* turn; 0: none */
    uint32_t *reader;
    size_t nreaders, room;
    struct gather readers; /* stands for the readers up to its turn */
};

enum { BY_ACCESS, BY_WRITE, NLISTS };

struct node {
    struct object exact, below;
    struct gather writers; /* of everything below */
    uint32_t parent;
    struct list {
        uint32_t latest;        /* turn of the latest access or write, here or below */
        uint32_t first;         /* its child with the latest turn */
        uint32_t before, after; /* its siblings in the list; valid if latest > 0 */
    } list[NLISTS];
};

enum { RELATIVE, ABSOLUTE, SYMBOLIC, NROOTS };

struct task_hazards {
    struct node *node; /* [0]: of relative paths, [1]: of absolute ones, [2]: of @names */
    size_t nnodes, room;
    uint32_t *up; /* nodes of ., .., ../.., ...: each is the parent of the one before */
    size_t nup, up_room;
    struct rec_map children; /* parent's number and component -> node */
    char *key;
    size_t key_room;
    struct rec_map ids; /* id of a task -> turn */
    struct rec_arena arena;
    uint32_t turn, fence;   /* of the current task; of the last one before a fence */
    struct task_edge *edge; /* edges to the current task */
    size_t nedges, edge_room;
    uint32_t *mark; /* of each task: 1 + its index in `edge`; 0: it has no edge */
    size_t mark_room;
    const struct task_gathers *gathers; /* NULL: make no gathers */
    uint32_t ngathers;
    uint32_t *gather_mark; /* as `mark` */
    size_t gather_mark_room;
    struct task_late late;
};

/* A new node; NONE: *err. */
uint32_t hazards_add_node(struct task_hazards *h, uint32_t parent,
                          struct rec_error *err) REC_MUST_CHECK;
/* The node of a name, made if there is none. *below: the name ends in /, so it stands for
 * everything below the node. NONE: *err. */
uint32_t hazards_find_node(struct task_hazards *h, const char *name, bool *below,
                           struct rec_error *err) REC_MUST_CHECK;
/* Makes a node the latest in the lists of this kind (BY_ACCESS, BY_WRITE), and all nodes
 * above it, too. */
void hazards_touch(struct task_hazards *h, uint32_t node, int which);

#endif
