/* What the files of lib/chakra share with each other and with nobody else. */
#ifndef RAMPIPE_CHAKRA_PRIVATE_H
#define RAMPIPE_CHAKRA_PRIVATE_H

#include "rampipe/chakra.h"

#include <math.h>

/* Type of a node, as in the files. */
enum chakra_type {
    CHAKRA_INVALID,
    CHAKRA_METADATA,
    CHAKRA_MEM_LOAD,
    CHAKRA_MEM_STORE,
    CHAKRA_COMP,
    CHAKRA_SEND,
    CHAKRA_RECV,
    CHAKRA_COLL,
    CHAKRA_NTYPES
};

/* What a member of a ring of n sends to the next in all, for the S bytes of comm_size.
 * These are what one member puts into the collective: its share of an all-gather, its
 * whole vector of a reduce-scatter. */
enum chakra_ring {
    CHAKRA_RING_NONE,   /* nothing */
    CHAKRA_RING_WHOLE,  /* S */
    CHAKRA_RING_SHARES, /* (n - 1) S/n: each n-th part but one */
    CHAKRA_RING_TWICE,  /* 2 (n - 1) S/n: parts are reduced, then gathered */
    CHAKRA_RING_OTHERS  /* (n - 1) S: what each other member puts in */
};

/* A collective operation; the index is its comm_type. */
struct chakra_collective {
    const char *name;
    enum chakra_ring ring;
    bool uneven; /* members may put in different sizes */
};
#define CHAKRA_ALL_TO_ALL 6
#define CHAKRA_BARRIER 9
/* NULL name ends. */
extern const struct chakra_collective chakra_collectives[];
/* Index of the one of that name; REC_NONE: none. */
uint32_t chakra_find_collective(struct rec_str name);

/* Words of coll= of ops that are no members of a collective. */
#define CHAKRA_WORD_SEND "send"
#define CHAKRA_WORD_RECV "recv"
#define CHAKRA_WORD_JOIN "join"
#define CHAKRA_WORD_RING "ring"

#define CHAKRA_LAST UINT64_MAX /* an order: behind all that have one */

/* A dependency of a node, or the dep that a pair of nodes carries. */
struct chakra_parent {
    uint64_t id;    /* of a node of the same file */
    uint64_t order; /* among the deps, or CHAKRA_LAST */
    double bytes;
    const char *keys; /* as in the record */
};

/* A node, as an op. Texts are in the arena of the traces. */
struct chakra_node {
    uint64_t id;
    struct graph_op op;
    const char *pair;
    uint32_t rank, file;
    enum chakra_type type; /* COMP: whatever is none of the last three */
    bool ours;             /* an op that chakra_write() wrote */
    bool carries;          /* SEND or RECV: it carries a dep, and is no op */
    bool sync;             /* the dep is one, to node carried.id */
    bool matched;          /* SEND and RECV: the other end is there, */
    uint32_t peer;         /* of a RECV that carries: which node it is */
    uint32_t sender; /* of a SEND that carries: the op that it is for, or REC_NONE */
    double thread;   /* NAN: not said */
    uint64_t order, placed;
    double priority;
    size_t first, nparents, ncontrol; /* parent[first]...: data parents, then control */
    struct chakra_parent carried;     /* of SEND and RECV */
    /* Of communication: */
    uint32_t collective;
    double bytes, src, dst, tag;
    uint64_t join;     /* of ours: which collective; CHAKRA_LAST: none */
    const char *group; /* "": all */
    uint32_t index;    /* the op's in the graph */
    uint32_t gate;     /* the collective that it is a member of, or REC_NONE */
};

/* A dep of the graph to be, between nodes. */
struct chakra_link {
    uint32_t src, dst; /* nodes */
    uint64_t order;
    double bytes;
    const char *keys;
    size_t turn;   /* among equal orders */
    uint32_t gate; /* the collective that dst is a member of, or REC_NONE */
};

/* A collective with more members than one: nodes member[first], ... in order of rank. */
struct chakra_gate {
    uint32_t first, members;
    bool ring;   /* nobody measured it: the network says how long it takes */
    double most; /* the largest comm_size of a member */
};

struct chakra_traces {
    struct rec_arena arena;
    struct {
        const char *path;
        uint32_t rank;
        uint32_t first, end; /* its nodes */
    } * file;
    struct chakra_node *node;
    struct chakra_parent *parent;
    struct chakra_link *link;
    struct chakra_gate *gate;
    uint32_t *member;
    size_t nfiles, file_room, nnodes, node_room, nparents, parent_room, nlinks, link_room,
        ngates, gate_room, member_room;
    const char *graph, *model, *keys, *layout; /* as a file says; NULL: none does */
    struct chakra_counts counts;
};

/* "FILE: node N: what". Returns false. */
bool chakra_fail(const struct chakra_traces *traces, const struct chakra_node *node,
                 struct rec_error *err, const char *format, ...) REC_PRINTF(4, 5);

/* ---- messages of a file (wire.c) ------------------------------------------ */

struct chakra_wire;

struct chakra_wire *chakra_wire_open(const char *path, struct rec_error *err);
/* 1: the bytes of the next message, valid until the next call; 0: the end; -1: *err. */
int chakra_wire_next(struct chakra_wire *wire, const uint8_t **bytes, size_t *size,
                     struct rec_error *err);
void chakra_wire_close(struct chakra_wire *wire);

/* ---- the collectives of all ranks (match.c) -------------------------------- */

/* Finds the other ends of sends, as links, and the members of collectives, as gates. */
bool chakra_match(struct chakra_traces *traces, struct rec_error *err);
bool chakra_add_link(struct chakra_traces *traces, uint32_t src, uint32_t dst,
                     const struct chakra_parent *as, struct rec_error *err);

/* ---- numbers that a file has as integers ----------------------------------- */

/* Microseconds of a time, bytes of a message. */
uint64_t chakra_micros(double seconds);
int64_t chakra_size(double bytes);

#endif
