/*
 * The objects that tasks read and write, as nodes of a tree of path components: what
 * hazards.c, which says which tasks wait for which, and objects.c, which finds the nodes,
 * share.
 */
#ifndef RAMPIPE_TASK_HAZARDS_H
#define RAMPIPE_TASK_HAZARDS_H

#include "private.h"

#define NONE REC_NONE

/*
 * A node of the graph that is no task. Where many read dir/ and many write below it, each
 * of the ones waits for all of the others: n * n edges, or n + n through a gather that
 * waits for the ones, and that the others wait for. Later ones go on from it: a new
 * gather waits for the old one and for what came since. The old one may stand for a write
 * that was overwritten, or for a reader of what was: whoever overwrote it came behind
 * that reader or write, so that this orders nothing that is not in this order anyway.
 */
struct gather {
    uint32_t turn; /* it stands for all up to this one; 0: there is none */
    uint32_t number;
};
enum { FEW = 8 }; /* up to this number of edges a gather saves nothing */

/* What was done to one object. Readers of before the last write are forgotten. */
struct object {
    uint32_t writer; /* turn; 0: none */
    uint32_t *reader;
    size_t nreaders, room;
    struct gather readers; /* of those up to its turn */
};

enum { BY_ACCESS, BY_WRITE, NLISTS };

struct node {
    struct object exact, below;
    struct gather writers; /* of all below */
    uint32_t parent;
    struct list {
        uint32_t latest;        /* turn of an access or write, of it or below */
        uint32_t first;         /* child */
        uint32_t before, after; /* among its siblings; only if latest > 0 */
    } list[NLISTS];
};

enum { RELATIVE, ABSOLUTE, SYMBOLIC, NROOTS };

struct task_hazards {
    struct node *node; /* [0]: of relative paths, [1]: of absolute ones, [2]: of @names */
    size_t nnodes, room;
    uint32_t
        *up; /* the nodes of ., .., ../.., ...: each is the parent of the one before */
    size_t nup, up_room;
    struct rec_map children; /* parent's number and component -> node */
    char *key;
    size_t key_room;
    struct rec_map ids; /* -> turn */
    struct rec_arena arena;
    uint32_t turn, fence;
    struct task_edge *edge;
    size_t nedges, edge_room;
    uint32_t *mark; /* per task: one more than its place among the edges at hand */
    size_t mark_room;
    const struct task_gathers *gathers; /* NULL: there shall be none */
    uint32_t ngathers;
    uint32_t *gather_mark; /* as `mark` */
    size_t gather_mark_room;
    struct task_late late;
};

/* A new node; NONE: *err. */
uint32_t hazards_add_node(struct task_hazards *h, uint32_t parent,
                          struct rec_error *err) REC_MUST_CHECK;
/* The node of a name, which is made if it is not there; *below: the name stands for all
 * below it, too. NONE: *err. */
uint32_t hazards_find_node(struct task_hazards *h, const char *name, bool *below,
                           struct rec_error *err) REC_MUST_CHECK;
/* Something happens to a node now, of the kind of this list: all above it are touched,
 * too. */
void hazards_touch(struct task_hazards *h, uint32_t node, int which);

#endif
