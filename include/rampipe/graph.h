/*
 * rampipe/graph.h - computation graphs: build, read, index, split, write, store.
 *
 * A graph is a DAG of ops (nodes) and deps (edges). An op that was split appears as its
 * parts; the parts of one op form a unit:
 *
 *     forward   1 --> 2 --> 3          1 --> 2a 2b --> 3       units 1, {2a 2b}, 3,
 *                           |    split 2 into 2     |              6, {5a 5b}, 4
 *     backward  6 <-- 5 <-- 4          6 <-- 5a 5b <-- 4       5a <-> 5b: sync deps
 *
 * Backward op 2n-i+1 is the twin of forward op i (n forward ops). Compute is in seconds,
 * memory and deps in bytes. Units, twins and deps are indexes into the graph's arrays.
 * See rampipe(5) for the records. Sources: the ddls simulator of "Partitioning
 * Distributed Compute Jobs with Reinforcement Learning and Graph Neural Networks"
 * (PAC-ML) and PipeDream's profile format.
 */
#ifndef RAMPIPE_GRAPH_H
#define RAMPIPE_GRAPH_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

#define GRAPH_NONE UINT32_MAX

/** Marks the destination of a sync dep in graph->out_to. */
#define GRAPH_SYNC ((uint32_t)1 << 31)

enum graph_pass { GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_TASK };

/** What is exchanged as one. */
enum graph_exchange_kind {
    GRAPH_MESSAGE,    /* from one slot to another */
    GRAPH_COLLECTIVE, /* deps on one side of a split unit, by the published rule */
    GRAPH_SYNC_PAIR,  /* sync deps between two parts, in both directions */
    GRAPH_SYNC_ALL,   /* all sync deps of a unit */
    /* Of colls, in the order of rec_exchange_name(): */
    GRAPH_ALL_REDUCE,
    GRAPH_ALL_GATHER,
    GRAPH_REDUCE_SCATTER,
    GRAPH_ALL_TO_ALL,
    GRAPH_BROADCAST, /* from the first member to the others */
    GRAPH_REDUCE,    /* from all to the first member */
    GRAPH_BARRIER,   /* no member goes on before all have come; no bytes */
    GRAPH_SEND       /* from the first member to the second one */
};

struct graph_op {
    const char *id;    /* owned by the graph's arena */
    const char *of;    /* the op it is a part of; NULL: it is whole */
    const char *extra; /* keys that lib/graph does not read, each with a TAB before it */
    const char *pair_id;  /* the name of its twin, which graph_close() looks up */
    double compute;       /* seconds */
    double memory;        /* bytes */
    double activation;    /* bytes; NAN if not given */
    double param;         /* bytes; NAN if not given */
    uint32_t pair;        /* its twin, GRAPH_NONE if it has none */
    uint32_t part, parts; /* I of N, counted from 1; 1 of 1 when whole */
    uint32_t unit;        /* index into units */
    uint32_t line;        /* of its record, or of the dep that named it first; 0: none */
    enum graph_pass pass;
};

struct graph_dep {
    uint32_t src, dst; /* ops */
    uint32_t line;
    bool sync; /* exchange among parts: gates only the end of the step */
    double bytes;
    const char *extra;
};

/** What a group of ops exchanges as one. It starts when all of them have ended. */
struct graph_coll {
    const char *id;
    const char *lane;  /* exchanges of a lane wait for each other; NULL: it has none */
    const char *extra; /* keys that lib/graph does not read */
    enum graph_exchange_kind kind; /* GRAPH_ALL_REDUCE or one behind it */
    double bytes;                  /* as nccl-tests counts them (rampipe(5)) */
    uint32_t first,
        n; /* its ops in order of ranks: coll_op[first..first + n), different */
    uint32_t after, nafter; /* after[after..after + nafter) wait for it */
    uint32_t line;
};

/** Bytes that an op holds on its server from its end on (its keys hold= and release=),
 * apart from its MEMORY. */
struct graph_hold {
    uint32_t op;
    uint32_t release; /* the op at whose end they are released; GRAPH_NONE: at that of the
                         step */
    double bytes;
};

/** What all parts of a unit send alike, or get alike, apart from sync deps: to (from) the
 * same ops, in the same order, as many bytes. */
struct graph_alike {
    bool is;        /* they do, and there are several parts */
    uint32_t first; /* end[first..first + deps) are those of each part */
    uint32_t deps;
    double bytes; /* of all parts, added one by one */
};

/** A sync dep and the one in the other direction, which come once, with the first op. */
struct graph_pair {
    uint32_t to;        /* the other op */
    uint32_t dep, back; /* back GRAPH_NONE: there is none in the other direction */
    double bytes;       /* of both */
};

/** The other end of a dep. */
struct graph_end {
    uint32_t op;
    double bytes;
};

/** As many deps dep[first..first + n) as possible that leave one op, go to ops of one
 * unit in the order of their numbers, none left out, and have as many bytes; all of them
 * are sync, or none is. */
struct graph_row {
    double bytes; /* of each */
    uint32_t first, n;
    uint32_t from, to; /* `to` is that of the first one, with GRAPH_SYNC if it is sync */
};

/** The parts of one op, in order of part; a whole op is a unit of one. */
struct graph_unit {
    uint32_t first; /* member[first] to member[first + parts - 1] */
    uint32_t parts;
    uint32_t twin;          /* the unit of the other pass, or GRAPH_NONE */
    struct graph_alike out; /* looked for if it is no backward op */
    struct graph_alike in;  /* looked for if it is a backward op with a twin */
};

struct graph {
    const char *id, *model;
    const char *extra; /* keys of the graph record */
    const char *file;  /* where it was read; for messages */
    uint32_t line;     /* of its record there; 0: it was not read but made */
    struct graph_op *op;
    struct graph_dep *dep;
    size_t nops, op_room, ndeps, dep_room;
    struct rec_map index; /* op id -> op */
    struct rec_arena arena;
    bool open;
    uint32_t row_head; /* where the first of the last deps goes that leave one op */
    /* The last BYTES of a dep that was read: most often the next ones are the same. */
    struct {
        char text[32];
        size_t len;
        double value;
    } bytes_read;
    bool holds; /* an op has hold= or release= */
    struct graph_coll *coll;
    size_t ncolls, coll_room;
    uint32_t *coll_op; /* ops of the colls */
    size_t ncoll_ops, coll_op_room;
    struct rec_map coll_index; /* id -> coll */
    /* After graph_close(): */
    uint32_t *out, *out_start; /* deps out[out_start[i]..out_start[i + 1]) leave op i, */
    uint32_t *in, *in_start;   /* in[in_start[i]..in_start[i + 1]) enter it */
    uint32_t *out_to; /* where dep out[j] goes: its dst, with GRAPH_SYNC if it is sync */
    /* pair[pair_start[i]..pair_start[i + 1]) leave op i; NULL: there are no sync deps */
    struct graph_pair *pair;
    uint32_t *pair_start;
    uint32_t
        *parents; /* per op: deps that enter it, also from colls, without sync deps */
    struct graph_dep *after; /* deps that leave colls, in order of these: src is a coll */
    size_t nafter;           /* dep[] does not have them */
    /* coll_of[coll_of_start[i]..coll_of_start[i + 1]) are the colls of op i; NULL: there
     * are no colls */
    uint32_t *coll_of, *coll_of_start;
    struct graph_unit *unit; /* in order of the first part's appearance */
    uint32_t *member;        /* ops of the units */
    struct graph_end *end;   /* of the deps of parts that are alike */
    size_t nends, end_room;
    struct graph_row *row; /* row[row_start[i]..row_start[i + 1]) leave op i; */
    uint32_t *row_start;
    uint32_t *row_order; /* the rows in the order of their records */
    size_t nrows;
    size_t nunits;
    struct graph_hold *hold; /* in order of the ops that hold */
    size_t nholds;
    double sequential; /* sum of compute over the ops, seconds */
    double memory;     /* sum of memory over the ops, bytes */
    double bytes;      /* sum over the deps, and graph_coll_bytes() of the colls */
    uint32_t degree;   /* its key degree=, the most parts an op was to get; 0: no key */
};

/** Frees the memory of a graph, which is {0} again, as before graph_start(). */
void graph_free(struct graph *graph);

/* ---- building ------------------------------------------------------------ */

/** Opens an empty graph. Texts are copied; extra may be "". */
bool graph_start(struct graph *graph, struct rec_str id, struct rec_str model,
                 const char *extra, struct rec_error *err) REC_MUST_CHECK;
/**
 * Adds an op with the fields of *op except pair and unit; its texts are copied, `pair`
 * names its twin (may come later; NULL: none). The op's line, if not 0, and graph->file
 * name the place in messages.
 */
bool graph_add_op(struct graph *graph, const struct graph_op *op, const char *pair,
                  struct rec_error *err) REC_MUST_CHECK;
/** Adds a dep between two ops by id; they may be added later. `extra` is copied. */
bool graph_add_dep(struct graph *graph, struct rec_str src, struct rec_str dst,
                   double bytes, bool sync, const char *extra, uint32_t line,
                   struct rec_error *err) REC_MUST_CHECK;
/**
 * Adds an exchange with the kind, bytes and line of *coll. Its ops are a list of names,
 * separated by commas, and may be added later; lane.ptr NULL: it has no lane. Texts are
 * copied. REC_DATA: there is such a coll, the group is too small, a send has more than
 * two ops, a barrier has bytes.
 */
bool graph_add_coll(struct graph *graph, const struct graph_coll *coll, struct rec_str id,
                    struct rec_str ops, struct rec_str lane, struct rec_str extra,
                    struct rec_error *err) REC_MUST_CHECK;
/**
 * Closes the graph: resolves names and builds the indexes. REC_DATA: an op is named but
 * not defined, a dep is repeated, deps (without sync deps) and colls have a cycle, an op
 * is in a group twice, a coll has the name of an op, a dep enters a coll or has bytes and
 * leaves one, parts of an op are missing or differ, twins do not fit, or what an op holds
 * is not a number of bytes or is released by no op.
 */
bool graph_close(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;

/** The value of a key of the graph record; false if it has no such key. */
bool graph_key(const struct graph *graph, const char *key, struct rec_str *value);
/** The same for a key in the `extra` of an op. */
bool graph_op_key(const struct graph_op *op, const char *key, struct rec_str *value);
/** Copies a key of the graph record, if it has that key, to the record being written. */
void graph_pass_key(const struct graph *graph, const char *key,
                    struct rec_writer *writer);
/** Bytes that an op holds from its end on; 0: nothing. */
double graph_op_hold(const struct graph *graph, uint32_t op);
/** The bytes that n members of a coll send in all, at least: 2 (n - 1) BYTES of an
 * all-reduce, none of a barrier, BYTES of a send, (n - 1) BYTES of the other kinds. */
double graph_coll_bytes(enum graph_exchange_kind kind, double bytes, uint32_t n);
/** The word for the kind of a coll. */
const char *graph_coll_name(const struct graph_coll *coll);
/** REC_DATA, with file and line, if the graph has colls: the message ends with "which "
 * and `why` they cannot be dealt with. */
bool graph_refuse_colls(const struct graph *graph, const char *why,
                        struct rec_error *err) REC_MUST_CHECK;
/** The op of that name, or GRAPH_NONE. */
uint32_t graph_find(const struct graph *graph, struct rec_str id);

/* ---- records ------------------------------------------------------------- */

/**
 * Takes a record: `graph` opens it (an open one must be closed before), op, dep and coll
 * are added. The caller closes the graph at the next record that is not rec_continues().
 */
bool graph_read(struct graph *graph, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Writes graph, op, dep and coll records. */
void graph_write(const struct graph *graph, struct rec_writer *writer);
/** Writes a job that trains the graph for `steps` steps, arrives at 0 and has no
 * deadline. */
void graph_write_job(const struct graph *graph, uint64_t steps,
                     struct rec_writer *writer);
/** Writes the graph in Graphviz's language: ops with their label=, type=, work and time,
 * deps with their bytes, in three digits; twins are side by side. */
void graph_write_dot(const struct graph *graph, struct rec_writer *writer);

/* ---- graphs that jobs refer to ------------------------------------------- */

/** All graphs of a stream, by id. Starts as {0} except for `advice`. The address of a
 * graph does not change. */
struct graph_store {
    /* Graphs must pass graph_check_times() with this advice; NULL: all are taken. */
    const char *advice;
    struct graph **graph; /* owned; NULL: it was dropped */
    size_t ngraphs, room;
    struct rec_map index;  /* id -> index in graph[] */
    struct graph *reading; /* the one that is open; NULL: none */
};

/** Takes a graph, op or dep record. */
bool graph_store_read(struct graph_store *store, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Closes the graph that is being read, if any, and checks its times if that is asked
 * for. */
bool graph_store_end(struct graph_store *store, struct rec_error *err) REC_MUST_CHECK;
/** Takes over a closed graph, whose id is new, as the last one. On failure the caller
 * keeps it. */
bool graph_store_add(struct graph_store *store, struct graph *graph,
                     struct rec_error *err) REC_MUST_CHECK;
/** Frees a graph of the store. Its index is not used again: graph[index] is NULL. */
void graph_store_drop(struct graph_store *store, uint32_t index);
/** The graph's index, or REC_NONE. */
uint32_t graph_store_find(const struct graph_store *store, struct rec_str id);
void graph_store_free(struct graph_store *store);

/** A job record. The texts are views. */
struct graph_job {
    struct rec_str id;
    struct rec_str graphs; /* alternatives, separated by commas */
    double arrival;        /* seconds */
    double steps;
    double deadline; /* seconds from arrival; inf: none */
    /* The indexes of the alternatives in a store, for one who knows them: then nobody
     * looks for their names. NULL: not known. Borrowed. */
    const uint32_t *known;
    uint32_t nknown;
};

/** Most steps of a job: beyond 2^53 not every integer is a double. */
#define GRAPH_STEPS_MAX 9007199254740992
/** Most slots of a layout. */
#define GRAPH_SLOTS_MAX 16777216
/** Reads a job record. The texts of *job are views of the record. */
bool graph_read_job(const struct rec_reader *reader, const struct rec *rec,
                    struct graph_job *job, struct rec_error *err) REC_MUST_CHECK;

/** What is remembered of the jobs of a stream. Starts as {0}. */
struct graph_jobs {
    struct rec_ids ids;
    double last; /* arrival of the last job, seconds */
};

/** Reads the next job of a stream. REC_DATA: it arrives before the last one, its id has
 * come before (as far back as struct rec_ids remembers), or one of its graphs is not in
 * `store`. If `store` is NULL, the caller must look them up. The texts are views. */
bool graph_jobs_read(struct graph_jobs *jobs, const struct graph_store *store,
                     const struct rec_reader *reader, const struct rec *rec,
                     struct graph_job *job, struct rec_error *err) REC_MUST_CHECK;
void graph_jobs_free(struct graph_jobs *jobs);

/* ---- how a tool takes graphs and jobs ------------------------------------ */

/** What a record was to a reading. */
enum graph_taken {
    GRAPH_NOT_TAKEN, /* not part of a graph, and no job: the caller must deal with it */
    GRAPH_PART_TAKEN,
    GRAPH_JOB_TAKEN /* a job, which is in `job` */
};

/**
 * The graphs and jobs of a stream, for a tool that goes through it once. Starts as {0},
 * but for the options.
 */
struct graph_reading {
    /* Called with each graph as soon as it is closed; it is freed afterwards. NULL: all
     * are kept in `store`, and jobs must refer to graphs there. */
    bool (*whole)(void *context, const struct graph *graph, struct rec_error *err);
    void *context;
    struct graph_store store; /* its `advice` is used in both cases */
    struct graph graph;       /* with `whole`: the graph that is open */
    struct rec_map ids; /* with `whole`: id of a graph -> 0, 1, ... in their order */
    uint32_t nhanded;   /* graphs in `ids` */
    struct rec_arena names;
    struct graph_jobs jobs;
    struct graph_job job; /* of the last job record; its texts are views */
};

/**
 * Takes the next record, of any type. Before a record that does not continue the open
 * graph, the graph is closed. *taken says what the record was. False: *err.
 */
bool graph_reading_take(struct graph_reading *reading, const struct rec_reader *reader,
                        const struct rec *rec, enum graph_taken *taken,
                        struct rec_error *err) REC_MUST_CHECK;
/** No more records come: closes the graph that is open, if any. */
bool graph_reading_end(struct graph_reading *reading,
                       struct rec_error *err) REC_MUST_CHECK;
/** Frees all graphs and jobs. The reading can be used again, with the same options. */
void graph_reading_free(struct graph_reading *reading);

/** Writes the block record of a job that is turned away, except for rec_end(), so that
 * the caller may add keys. `graph` is the alternative that was tried or would have been
 * tried; NULL: it is not known. */
void graph_begin_block(struct rec_writer *writer, const struct graph_job *job,
                       double time, const char *cause, const struct graph *graph);

/* ---- layouts ------------------------------------------------------------- */

/** No order: the op is on a lane that runs by priority. */
#define GRAPH_NO_ORDER UINT64_MAX

/** A dep that a layout gives a channel from the slot of its source to that of its
 * destination. */
struct graph_transfer {
    uint32_t dep;
    uint64_t channel; /* number of the channel between the two */
    double priority;  /* higher first; NAN: none */
};

/**
 * Where the ops of a graph go, and which of them goes first on its slot. A slot has a
 * lane without a name and those that its ops name. Lanes run beside each other, each one
 * op at a time: by priority, or, if its ops have an order, strictly in that order. Deps
 * may be given channels.
 */
struct graph_layout {
    char *id;                  /* owned; "": no name yet */
    const struct graph *graph; /* borrowed, closed */
    uint32_t nslots;
    uint32_t *slot;   /* per op: 0 to nslots-1; REC_NONE: not placed yet */
    uint32_t *placed; /* per op: its turn, counted from 0 */
    double *priority; /* per op, higher first, NAN: none; NULL: no op has one */
    uint32_t nplaced; /* ops placed so far */
    uint32_t *lane;   /* per op: its lane, GRAPH_NONE: without a name; NULL: all so */
    uint64_t *order;  /* per op: ascending, GRAPH_NO_ORDER: none; NULL: no op has one */
    const char **lane_name; /* of the lanes; in `names` */
    size_t nnames, lane_room;
    struct rec_map lanes; /* name -> lane */
    struct rec_arena names;
    struct graph_transfer *transfer; /* in the order of their records */
    size_t ntransfers, transfer_room;
    uint32_t *transfer_of; /* per dep: its transfer, GRAPH_NONE: none; NULL: no dep has */
};

/** The number of the dep from one op to another; GRAPH_NONE: there is none. */
uint32_t graph_find_dep(const struct graph *graph, uint32_t src, uint32_t dst);

/** Makes a layout in which no op is placed yet. The arrays are owned. */
bool graph_layout_start(struct graph_layout *layout, struct rec_str id,
                        const struct graph *graph, uint32_t nslots,
                        struct rec_error *err) REC_MUST_CHECK;
void graph_layout_free(struct graph_layout *layout);
/** Gives the layout another name. */
bool graph_layout_name(struct graph_layout *layout, struct rec_str id,
                       struct rec_error *err) REC_MUST_CHECK;
/** Places an op, as the next one. */
void graph_layout_place(struct graph_layout *layout, uint32_t op, uint32_t slot);
/** Gives an op a priority. */
bool graph_layout_prefer(struct graph_layout *layout, uint32_t op, double priority,
                         struct rec_error *err) REC_MUST_CHECK;
/** Puts an op on the lane of that name. */
bool graph_layout_lane(struct graph_layout *layout, uint32_t op, struct rec_str name,
                       struct rec_error *err) REC_MUST_CHECK;
/** Gives an op its place in the order of its lane. */
bool graph_layout_queue(struct graph_layout *layout, uint32_t op, uint64_t order,
                        struct rec_error *err) REC_MUST_CHECK;
/** Gives a dep, which has no channel yet, one between its slots. NAN: no priority. */
bool graph_layout_transfer(struct graph_layout *layout, uint32_t dep, uint64_t channel,
                           double priority, struct rec_error *err) REC_MUST_CHECK;
/** The name of an op's lane; NULL: it has none. */
const char *graph_layout_lane_name(const struct graph_layout *layout, uint32_t op);
/** REC_DATA: an op is not placed, only some ops of a lane have an order, two have the
 * same, or an op releases what one on another slot holds; the message names the ops. */
bool graph_layout_check(const struct graph_layout *layout,
                        struct rec_error *err) REC_MUST_CHECK;
/** Lists the ops in the order of their turns, order[nops]. All ops are placed. */
void graph_layout_order(const struct graph_layout *layout, uint32_t *order);
/** The memory of each slot, memory[nslots], bytes, without what ops hold: an op and its
 * twin on one slot need the larger of their memories; a task needs its memory only while
 * it runs, so a slot needs that of its largest task. All ops are placed. Returns the slot
 * that needs most: of equals, the one whose ops come first. */
uint32_t graph_layout_memory(const struct graph_layout *layout, double *memory);
/** The same, and all that ops hold at once: what a slot needs at most, in whatever order
 * the ops run. What it does need is found by simulating a step (rampipe/sim.h). */
uint32_t graph_layout_memory_bound(const struct graph_layout *layout, double *memory);
/** Writes the layout record, place records in the order of turns, and transfer records.
 * All ops are placed. */
bool graph_layout_write(const struct graph_layout *layout, struct rec_writer *writer,
                        struct rec_error *err) REC_MUST_CHECK;
/** Writes the alloc record of a job up to its servers, which the caller adds before
 * rec_end(). `time` is when it starts, seconds. */
void graph_begin_alloc(struct rec_writer *writer, struct rec_str job,
                       const struct graph_layout *layout, double time);

/** The lanes of a layout, numbered 0 to n-1 in order of slots. Owned. */
struct graph_lanes {
    uint32_t n;        /* 0: each slot has only the lane without a name, by priority */
    uint32_t *lane;    /* per op */
    uint32_t *turn;    /* per op: its place on a lane that has an order, counted from 0;
                          GRAPH_NONE: the lane runs by priority */
    uint32_t *slot;    /* per lane */
    const char **name; /* per lane: NULL: it has none; views of the layout */
};

/** All ops of the layout are placed. REC_DATA as of graph_layout_check(). */
bool graph_lanes_make(struct graph_lanes *lanes, const struct graph_layout *layout,
                      struct rec_error *err) REC_MUST_CHECK;
void graph_lanes_free(struct graph_lanes *lanes);

/* ---- exchanges ----------------------------------------------------------- */

/** Which sync deps of a unit are one exchange. */
enum graph_sync {
    GRAPH_SYNC_BY_PAIR, /* those between two parts, as published: each two servers have a
                           channel of their own */
    GRAPH_SYNC_BY_UNIT  /* all, because they share the links of the servers */
};

/** Which exchanges of two slots with as many bytes are one. */
enum graph_same {
    GRAPH_SAME_NONE,  /* none: each is sent, and begins when its op has ended */
    GRAPH_SAME_SLOTS, /* all: nobody sends them, only their times are asked for */
    GRAPH_SAME_BYTES  /* the same, and messages of different slots, too: they take equally
                         long between any two. The slots are those of one of them */
};

struct graph_exchange {
    enum graph_exchange_kind kind;
    uint32_t first, n; /* its slots, all different: member[first..first + n); of a
                          message the source, then the destination; of a coll in the
                          order of ranks */
    double bytes;      /* sum over its deps, also those that stay on their slot; of a coll
                          its BYTES */
    double flow;       /* what crosses slots, bytes; of a coll graph_coll_bytes() */
};

/** What a placed graph exchanges in a step. Starts as {0}. */
struct graph_exchanges {
    struct graph_exchange *exchange;
    size_t n, room;
    uint32_t *member; /* slots of the exchanges */
    size_t nmembers, member_room;
    uint32_t *of_dep;  /* per dep: its exchange; GRAPH_NONE: it is no flow, because it
                             stays on its slot or has no bytes */
    uint32_t *of_coll; /* per coll: its exchange; GRAPH_NONE: it takes no time, because
                             its group is on one slot, or it has no bytes and is no
                             barrier. NULL: there are no colls */
    uint64_t flows;    /* deps that are flows, and sends (colls) that have an exchange */
    uint64_t collectives; /* exchanges that are no messages and no sends, each counted as
                             often as it occurs */
    double flow_bytes;    /* sum over the flows, and graph_coll_bytes() of what the slots
                             of the other colls exchange */
};

/**
 * Finds which deps of a closed graph are one exchange. `slot` is per op, below `nslots`.
 * The deps that leave a split forward op are one collective if each slot is as often a
 * source as a destination of them; so are those that enter a split backward op that has a
 * twin. Sync deps of a split op are grouped by `sync`. All other deps are messages. A
 * coll is an exchange of the slots of its group. `same` says which exchanges are not told
 * apart. The work is O(ops + deps + groups).
 * Source: the ddls simulator.
 */
bool graph_exchanges_make(const struct graph *graph, const uint32_t *slot,
                          uint32_t nslots, enum graph_sync sync, enum graph_same same,
                          struct graph_exchanges *exchanges,
                          struct rec_error *err) REC_MUST_CHECK;
/** Leaves {0}. */
void graph_exchanges_free(struct graph_exchanges *exchanges);

/* ---- references among the records of a stream ---------------------------- */

/** What a record refers to; valid until the next one. */
struct graph_said {
    struct graph_job job; /* of a job record */
    /* Of job, alloc and block: a number of the caller's, which is kept with the job until
     * it starts or is blocked; NULL: the job is not kept. */
    uint32_t *tag;
    uint32_t layout; /* of an alloc: number of its layout, counted from 0 in the stream */
    double time;     /* of alloc and block, seconds */
};

/**
 * Checks the references in a stream of graphs, jobs, layouts, allocs and results: a
 * record comes after what it refers to, nothing comes twice, time does not run backwards,
 * every op of a graph is placed once, a job starts or is turned away once. Servers are
 * only names here. Memory grows with the graphs, the layouts, and the jobs that wait; of
 * other jobs struct rec_ids remembers the ids. Starts as {0} except for the options.
 */
struct graph_stream {
    bool await;   /* option: jobs need an alloc or a block even without a cluster */
    bool servers; /* option: the servers of an alloc must have different names */
    /* Option: called with each layout when all its places have come. It may take the
     * layout over: it then leaves {0}. NULL: layouts are only checked. */
    bool (*laid)(void *context, struct graph_layout *layout, struct rec_error *err);
    void *context;

    struct graph_store store;
    struct graph_jobs jobs;
    bool planned;      /* graphs, jobs or layouts have come, not only results */
    bool clustered;    /* a cluster has come */
    bool cluster_open; /* the last record was one of the cluster's */
    bool arrived;      /* a job has come */
    double now;        /* time of the last job, alloc or block, seconds */

    struct graph_known *layout; /* what is remembered of each layout */
    size_t nlayouts, layout_room;
    struct rec_map layouts;   /* id -> index in layout[] */
    struct rec_arena names;   /* ids of layouts */
    struct graph_layout open; /* the layout whose places are being read; or id NULL */
    bool forgets;             /* graph_stream_forget() has been called */

    struct graph_waiting *waiting; /* jobs neither started nor turned away, and gaps */
    uint32_t *gap;                 /* indexes of unused entries of waiting[] */
    size_t nwaiting, waiting_room, ngaps, gap_room;
    struct rec_map waits;  /* id -> index in waiting[] */
    struct rec_ids ended;  /* jobs that ended, in a stream that has only results */
    struct rec_map unique; /* scratch: servers of an alloc */
};

/** Takes the next record of any type, also REC_MARK, and fills *said. */
bool graph_stream_take(struct graph_stream *stream, const struct rec_reader *reader,
                       const struct rec *rec, struct graph_said *said,
                       struct rec_error *err) REC_MUST_CHECK;
/** Forgets a layout: its name may come again, and an alloc that names it is an error.
 * Returns its number, or REC_NONE. */
uint32_t graph_stream_forget(struct graph_stream *stream, struct rec_str layout);
/** Ends the stream: closes the graph and checks the layout that are still open. */
bool graph_stream_end(struct graph_stream *stream, struct rec_error *err) REC_MUST_CHECK;
/** REC_DATA: a job that needs an alloc or a block has had neither. */
bool graph_stream_decided(const struct graph_stream *stream,
                          struct rec_error *err) REC_MUST_CHECK;
void graph_stream_free(struct graph_stream *stream);

/* ---- walking ------------------------------------------------------------- */

/**
 * Kahn's order of the ops, first in first out, sync deps left out: order[nops]. False:
 * the graph has a cycle, *err names an op on it.
 */
bool graph_order(const struct graph *graph, uint32_t *order,
                 struct rec_error *err) REC_MUST_CHECK;
/** Of a closed graph: sum of the ops' compute, the time of a step on one server,
 * seconds. */
double graph_sequential(const struct graph *graph);
/** Of a closed graph: sum of MEMORY over all ops, forward and backward each, bytes. */
double graph_memory_sum(const struct graph *graph);
/**
 * Of a closed graph: bytes that its ops hold on their servers in all. An op and its twin
 * share their memory, so each pair counts once, with the larger of the two.
 */
double graph_memory_held(const struct graph *graph);
double graph_dep_bytes(const struct graph *graph);

/**
 * Checks that the ops of a closed graph say how long they take. Tools that decide by
 * times need it: zeros that mean "not known" would lead to a plan that looks like any
 * other. REC_DATA, with `advice` at the end of the message: an op other than
 * communication (coll=) does work (flops= or moved= above 0) in no time; or the graph
 * takes no time at all, though it has ops of a training step (neither tasks nor
 * communication). Tasks may take no time: a list of commands does not say how long they
 * take.
 */
bool graph_check_times(const struct graph *graph, const char *advice,
                       struct rec_error *err) REC_MUST_CHECK;

/**
 * Of a closed graph: floating-point operations of the model in a training step, for model
 * FLOPs utilization (Chowdhery et al., "PaLM", 2022, appendix B). The sum of flops= over
 * its ops without communication (coll=), where a backward op counts at most twice its
 * twin: a matrix product of the forward pass has two in the backward pass, for the
 * gradients of its two operands. What a backward op does beyond that is recomputation (as
 * that of the scores in fused attention), which utilization must not count. *flops is NAN
 * if it is not known, because an op has neither flops= nor moved=, or the sum is 0.
 * False: a flops= is not a number >= 0 (REC_DATA).
 */
bool graph_model_flops(const struct graph *graph, double *flops,
                       struct rec_error *err) REC_MUST_CHECK;

/* ---- splitting ----------------------------------------------------------- */

enum graph_sizes { GRAPH_SIZES_REFERENCE, GRAPH_SIZES_GRADIENT };

/** How the parts of a backward op exchange their gradients. b is what a sync dep of two
 * parts has, k the number of parts. */
enum graph_gradients {
    GRAPH_GRADIENTS_DEPS,     /* k (k - 1) sync deps of b bytes */
    GRAPH_GRADIENTS_GATHERED, /* a coll: an all-gather of k b bytes, what the deps send */
    GRAPH_GRADIENTS_REDUCED   /* a coll: an all-reduce of b bytes, for which algorithms of
                                 clusters take these deps, but for direct */
};

/** The SiP-ML rule: max(1, min(2*ceil(ceil(compute/quantum)/2), degree)). */
uint32_t graph_parts(double compute, double quantum, uint32_t degree);

/** Room for the letters of any part, with their NUL. */
#define GRAPH_LETTERS_MAX 8
/** The letters of part i (from 0): a, b, ... z, aa, ab, ... as spreadsheet columns. */
void graph_part_letters(uint32_t i, char letters[GRAPH_LETTERS_MAX]);

struct graph_split {
    const uint32_t *parts; /* per op, at least 1; twins have the same number */
    const uint32_t *rank;  /* per op: ops are split in this order, for reference sizes */
    enum graph_sizes sizes;
    enum graph_gradients gradients;
};

/**
 * Builds *to as *from (closed, of whole ops) with every op u in parts[u] parts; closed.
 * Compute, memory, activation, param, and the keys flops=, moved= and hold= are divided
 * evenly; every part of u is joined to every part of v; the parts of a backward op are
 * joined to each other as `gradients` says, those of op 5 by the coll "sync-5". A graph
 * that has colls is refused. What part i of an op holds is released by part i of
 * another, so both must have equally many parts (REC_DATA).
 * Sizes: GRAPH_SIZES_REFERENCE is the published rule, in which the op that is split
 * later decides; GRAPH_SIZES_GRADIENT lets a forward dep carry its source's activation,
 * a backward dep the gradient of the same size, each divided among the pairs of parts,
 * and sync deps the parts' parameters.
 */
bool graph_split(const struct graph *from, const struct graph_split *split,
                 struct rec_str id, const char *extra, struct graph *to,
                 struct rec_error *err) REC_MUST_CHECK;

struct graph_split_op {
    struct rec_str op;
    uint32_t parts;
};

/** How much to split. */
struct graph_partition {
    uint32_t degree; /* every op gets graph_parts(compute, quantum, degree) parts */
    double quantum;  /* no part is shorter than this, seconds */
    /* The numbers of parts that are allowed, ascending, the first is 1: the parts of an
     * op are rounded down to one of them. NULL: all are allowed. */
    const uint32_t *legal;
    uint32_t nlegal;
    const struct graph_split_op *list; /* if not NULL: only these are split, in order */
    uint32_t nlist;
    enum graph_sizes sizes;
    enum graph_gradients gradients;
};

/** Adds the number of ops and deps that graph_partition() would make to *made. A few
 * bytes of input can ask for very many: call this first for each graph of a stream, and
 * then rec_limit() with the sum. */
bool graph_partition_count(const struct graph *from, const struct graph_partition *how,
                           double *made, struct rec_error *err) REC_MUST_CHECK;

/**
 * graph_split() by degree or list. The new graph is called ID/DEGREE, DEGREE
 * of a list being its largest number, and carries the keys of=, degree=, parts=,
 * demand_memory= and demand_bytes= (sums over the graph before).
 */
bool graph_partition(const struct graph *from, const struct graph_partition *how,
                     struct graph *to, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
