/* How the files of lib/chakra work together. read.c makes nodes of files; match.c finds
 * the pairs of sends and receives and the members of collectives; build.c makes the
 * graph. plan.c and write.c go the other way. */
#ifndef RAMPIPE_CHAKRA_PRIVATE_H
#define RAMPIPE_CHAKRA_PRIVATE_H

#include "rampipe/chakra.h"

#include <math.h>

/* The type of a node, by its number in the schema. */
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

/* The names of the kinds of collective operations, by comm_type; the last is NULL. */
extern const char *const chakra_collectives[];
#define CHAKRA_REDUCE_SCATTER_BLOCK 8
#define CHAKRA_BARRIER 9
/* The index of the collective of this name; REC_NONE: there is none. */
uint32_t chakra_find_collective(struct rec_str name);

/* Values of the key coll= of ops that are no members of a collective. */
#define CHAKRA_WORD_SEND "send"
#define CHAKRA_WORD_RECV "recv"
#define CHAKRA_WORD_JOIN "join"
#define CHAKRA_WORD_START "start"

/* The order of a dep, op or place record that has none: it comes behind all that have. */
#define CHAKRA_LAST UINT64_MAX

/* A dependency of a node, or the dep that a send and a receive carry together. */
struct chakra_parent {
    uint64_t id;    /* of a node of the same file */
    uint64_t order; /* position among the deps of the graph, or CHAKRA_LAST */
    double bytes;
    const char *keys; /* of the dep record, each after a TAB */
};

/* A node of a file. Its texts are in the arena of the traces. "Carries" below means: the
 * node is a send or receive that chakra_write() made of a dep between two slots, and so
 * becomes a dep again, and no op. */
struct chakra_node {
    uint64_t id;
    struct graph_op op;
    const char *pair;
    uint32_t rank, file;
    enum chakra_type type; /* SEND, RECV, COLL; all others are COMP */
    bool ours;             /* chakra_write() wrote it, from an op */
    bool carries;          /* or is a coll */
    bool sync;             /* the dep that it carries is a sync dep, to node carried.id */
    bool matched;          /* SEND and RECV: the other end has been found */
    uint32_t peer;         /* of a RECV that carries and is matched: its SEND */
    uint32_t sender;  /* of a SEND that carries: node of the dep's source, or REC_NONE */
    double thread;    /* NAN: the file does not say */
    uint64_t order;   /* position among the ops of the graph, or CHAKRA_LAST */
    uint64_t placed;  /* position among the place records, or CHAKRA_LAST */
    double priority;  /* NAN: it has none */
    const char *lane; /* NULL: that without a name */
    uint64_t turn;    /* order= of its place; GRAPH_NO_ORDER: none */
    /* parent[first], ... are its data parents, followed by its control parents */
    size_t first, nparents, ncontrol;
    struct chakra_parent carried; /* of SEND and RECV: the dep between them */
    /* of communication: */
    uint32_t collective; /* index of chakra_collectives[] */
    double bytes, src, dst, tag;
    uint64_t join;     /* if ours: the number of its collective; CHAKRA_LAST: none */
    const char *group; /* "": all ranks */
    bool partly;       /* all ranks along some dimensions of a network only */
    uint32_t index;    /* of the op in the graph */
    uint32_t gate;     /* the collective of which it is a member, or REC_NONE */
    uint32_t seat;     /* its number among the members */
    /* If chakra_write() made it of a coll: */
    uint64_t coll; /* the number of the coll; CHAKRA_LAST: it is of none */
    const char *coll_id, *coll_keys;
    enum graph_exchange_kind coll_kind;
    double coll_bytes; /* the exact BYTES; NAN: not known */
};

/* An op that takes part in a coll, or that waits for it. */
struct chakra_part {
    uint32_t coll; /* its node in the file of the op */
    uint32_t op;   /* node */
    bool waits;
    uint64_t order; /* in the group, or of the dep */
    const char *keys;
};

/* A dep that the graph will have, between two nodes. */
struct chakra_link {
    uint32_t src, dst; /* nodes */
    uint64_t order;
    double bytes;
    const char *keys;
    size_t turn;   /* decides between equal orders: the link that was found first */
    uint32_t gate; /* the collective of which dst is a member, or REC_NONE */
};

/* A collective of two or more members: nodes member[first], ... in order of rank. */
struct chakra_gate {
    uint32_t first, members;
    bool coll; /* no member has a duration: it becomes a coll of `kind` */
    enum graph_exchange_kind kind;
};

/* A process group that a file describes. */
struct chakra_group {
    const char *name;
    size_t first; /* its ranks are group_rank[first], ..., ascending */
    uint32_t n;   /* 0: it has all ranks */
};

struct chakra_traces {
    struct rec_arena arena;
    struct {
        const char *path;
        const char *server; /* from its metadata; NULL: it does not name one */
        uint32_t rank;
        uint32_t first, end; /* its nodes are first, ..., end - 1 */
    } * file;
    struct chakra_node *node;
    struct chakra_parent *parent;
    struct chakra_link *link;
    struct chakra_gate *gate;
    struct chakra_part *part;
    uint32_t *member;
    struct chakra_group *group;
    uint32_t *group_rank;
    size_t nfiles, file_room, nnodes, node_room, nparents, parent_room, nlinks, link_room,
        ngates, gate_room, member_room, nparts, part_room, ngroups, group_room,
        ngroup_ranks, group_rank_room;
    /* From metadata; NULL: no file has it. */
    const char *graph, *model, *keys, *layout, *cluster;
    struct chakra_counts counts;
};

/* Sets *err to "FILE: node N: ..." with REC_DATA. Returns false. */
bool chakra_fail(const struct chakra_traces *traces, const struct chakra_node *node,
                 struct rec_error *err, const char *format, ...) REC_PRINTF(4, 5);

/* ---- messages of a file (wire.c) ------------------------------------------ */

struct chakra_wire;

/* NULL: *err. */
struct chakra_wire *chakra_wire_open(const char *path, struct rec_error *err);
/* 1: the bytes of the next message, valid until the next call; 0: the end; -1: *err. */
int chakra_wire_next(struct chakra_wire *wire, const uint8_t **bytes, size_t *size,
                     struct rec_error *err);
void chakra_wire_close(struct chakra_wire *wire);

/* ---- the collectives of all ranks (match.c) -------------------------------- */

/* Finds the receive of each send and adds a link between them, or sets `peer` if they
 * carry a dep; and finds the members of each collective, which become gates. */
bool chakra_match(struct chakra_traces *traces, struct rec_error *err);
/* Adds a dep from node src to node dst with the order, bytes and keys of *as. */
bool chakra_add_link(struct chakra_traces *traces, uint32_t src, uint32_t dst,
                     const struct chakra_parent *as, struct rec_error *err);

/* ---- process groups (groups.c) ---------------------------------------------- */

/* The process group that files describe by this name; NULL: none does. */
const struct chakra_group *chakra_find_group(const struct chakra_traces *traces,
                                             const char *name);

/* ---- colls (coll.c) --------------------------------------------------------- */

/* The comm_size of a coll among n slots: what one of them puts in, or of BYTES. */
double chakra_coll_share(enum graph_exchange_kind kind, double bytes, uint32_t n);
/* The BYTES of a coll among n ranks with this comm_size. */
double chakra_coll_bytes(enum graph_exchange_kind kind, double comm_size, uint32_t n);
/* The comm_type of a coll; REC_NONE: the format has none, for a send. */
uint32_t chakra_coll_type(enum graph_exchange_kind kind);
/* The kind of coll with a comm_type. False: there is none. */
bool chakra_coll_kind(uint32_t type, enum graph_exchange_kind *kind);
/* Adds a part of a coll, when the nodes are linked. */
bool chakra_add_part(struct chakra_traces *traces, const struct chakra_part *part,
                     struct rec_error *err);
/* Adds the colls and the deps that leave them to the graph. */
bool chakra_add_colls(struct chakra_traces *traces, struct graph *graph,
                      struct rec_error *err);

/* ---- numbers that a file has as integers ----------------------------------- */

/* A time in whole microseconds. */
uint64_t chakra_micros(double seconds);
/* A size in whole bytes, at least 1. */
int64_t chakra_size(double bytes);

#endif
