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

enum graph_pass { GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_TASK };

struct graph_op {
    const char *id;    /* owned by the graph's arena */
    const char *of;    /* the op it is a part of; NULL: whole */
    const char *extra; /* keys that the room does not read, each with its TAB in front */
    const char *pair_id;  /* the name of its twin, resolved by graph_close() */
    double compute;       /* seconds */
    double memory;        /* bytes */
    double activation;    /* bytes; NAN if not given */
    double param;         /* bytes; NAN if not given */
    uint32_t pair;        /* its twin, GRAPH_NONE if it has none */
    uint32_t part, parts; /* I of N, counted from 1; 1 of 1 when whole */
    uint32_t unit;        /* index into units */
    uint32_t line;        /* where it was defined; 0: only named so far */
    enum graph_pass pass;
};

struct graph_dep {
    uint32_t src, dst; /* ops */
    uint32_t line;
    bool sync; /* exchange among parts: gates only the end of the step */
    double bytes;
    const char *extra;
};

/** The parts of one op, in order of part; a whole op is a unit of one. */
struct graph_unit {
    uint32_t first; /* member[first] to member[first + parts - 1] */
    uint32_t parts;
    uint32_t twin; /* the unit of the other pass, or GRAPH_NONE */
};

struct graph {
    const char *id, *model;
    const char *extra; /* keys of the graph record */
    const char *file;  /* where it was read; for messages */
    uint32_t line;     /* of its record there */
    struct graph_op *op;
    struct graph_dep *dep;
    size_t nops, op_room, ndeps, dep_room;
    struct rec_map index; /* op id -> op */
    struct rec_arena arena;
    bool open;
    /* After graph_close(): */
    uint32_t *out, *out_start; /* deps out[out_start[i]..out_start[i + 1]) leave op i, */
    uint32_t *in, *in_start;   /* in[in_start[i]..in_start[i + 1]) enter it */
    struct graph_unit *unit;   /* in order of the first part's appearance */
    uint32_t *member;          /* ops of the units */
    size_t nunits;
    double sequential, memory, bytes; /* sums over the ops, the ops, the deps */
    uint32_t degree;                  /* parts an op that were asked for; 0: not said */
};

/** Gives memory back; the graph is {0} again, as it starts. */
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
 * Closes the graph: resolves names, checks that every op is defined once, deps join
 * defined ops, are not repeated and have no cycle (sync deps left out), parts are
 * complete; builds the indexes.
 */
bool graph_close(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;

/** The value of a key of the graph record; false if it has no such key. */
bool graph_key(const struct graph *graph, const char *key, struct rec_str *value);
/** Likewise a key of an op that is among its `extra`. */
bool graph_op_key(const struct graph_op *op, const char *key, struct rec_str *value);
/** Writes a key of the graph record into the record being written, if it is there. */
void graph_pass_key(const struct graph *graph, const char *key,
                    struct rec_writer *writer);
/** The op of that name, or GRAPH_NONE. */
uint32_t graph_find(const struct graph *graph, struct rec_str id);

/* ---- records ------------------------------------------------------------- */

/**
 * Takes a record: `graph` opens it (an open one must be closed before), op and dep are
 * added. The caller closes the graph at the next record of another known type.
 */
bool graph_read(struct graph *graph, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** True if the record belongs to an open graph or cannot end one (comments, others). */
bool graph_continues(const struct rec *rec);
/** Writes graph, op and dep records. */
void graph_write(const struct graph *graph, struct rec_writer *writer);
/** Writes the job that trains a graph at once, for so many steps, as long as it takes. */
void graph_write_job(const struct graph *graph, uint64_t steps,
                     struct rec_writer *writer);
/** Writes the graph in Graphviz's language: ops with their label=, type=, work and time,
 * deps with their bytes, in three digits; twins are side by side. */
void graph_write_dot(const struct graph *graph, struct rec_writer *writer);

/* ---- graphs that jobs refer to ------------------------------------------- */

/** All graphs of a stream, by id. Starts as {0}, but for the advice. Graphs stay where
 * they are. */
struct graph_store {
    const char
        *advice; /* graphs must pass graph_check_times(), with this; NULL: any may come */
    struct graph **graph;
    size_t ngraphs, room;
    struct rec_map index;
    struct graph *reading; /* the one that is open */
};

/** Takes a graph, op or dep record. */
bool graph_store_read(struct graph_store *store, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Closes the graph that is being read, if any, and checks its times if that is asked
 * for. */
bool graph_store_end(struct graph_store *store, struct rec_error *err) REC_MUST_CHECK;
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
};

/** A job with more steps than this is refused, for beyond it not every integer is a
 * double. */
#define GRAPH_STEPS_MAX 9007199254740992
/** So many slots a layout may have. */
#define GRAPH_SLOTS_MAX 16777216
bool graph_read_job(const struct rec_reader *reader, const struct rec *rec,
                    struct graph_job *job, struct rec_error *err) REC_MUST_CHECK;

/** The jobs of a stream, as they come. Starts as {0}. */
struct graph_jobs {
    struct rec_ids ids;
    double last; /* arrival, seconds */
};

/** Reads the next job of a stream: jobs come in order of arrival, each name comes once
 * (as far as struct rec_ids remembers), and all alternatives are in `store` (NULL:
 * whoever calls looks). The texts are views. */
bool graph_jobs_read(struct graph_jobs *jobs, const struct graph_store *store,
                     const struct rec_reader *reader, const struct rec *rec,
                     struct graph_job *job, struct rec_error *err) REC_MUST_CHECK;
void graph_jobs_free(struct graph_jobs *jobs);

/** Begins the record of a job that is turned away: all but rec_end(), so that keys may
 * follow. `graph` is the one that was tried, or would have been; NULL: none is known. */
void graph_begin_block(struct rec_writer *writer, const struct graph_job *job,
                       double time, const char *cause, const struct graph *graph);

/* ---- what the records of a stream say of each other ------------------------ */

/** What was found out about a record; valid until the next one. */
struct graph_said {
    struct graph_job job; /* of a job record */
    uint32_t *tag;   /* of job, alloc, block: a number that the caller may keep with the
                             job; NULL: there is none such */
    uint32_t graph;  /* of a layout: index in the store */
    uint32_t layout; /* of an alloc: counted from 0 as they came */
    uint32_t op;     /* of a place */
    uint32_t slot;   /* of a place; of a layout their number */
    double time;     /* of alloc and block, seconds */
};

/**
 * Checks a stream of graphs, jobs, layouts, allocs, and of results: what refers to
 * something comes after it, nothing comes twice, time does not run backwards, every op of
 * a graph is placed once, a job starts or is turned away once. It knows servers as names
 * only; what they are is the cluster's business. Memory grows with graphs and layouts,
 * and with the jobs that wait; of others it keeps struct rec_ids. Starts as {0}, but for
 * the options.
 */
struct graph_stream {
    bool await;   /* jobs wait for an alloc or block even if no cluster came */
    bool servers; /* the servers of an alloc must have different names */

    struct graph_store store;
    struct graph_jobs jobs;
    bool planned;   /* there are graphs, jobs, layouts or allocs, not results alone */
    bool clustered; /* a cluster came */
    bool arrived;   /* a job came */
    double now;     /* of the last job, alloc or block, seconds */

    struct graph_layout *layout;
    size_t nlayouts, layout_room;
    struct rec_map layouts; /* by id */
    struct rec_arena names; /* of layouts */
    bool placing;           /* the last one still gets places */
    bool forgets;           /* one was forgotten */
    uint32_t *slot;         /* of each op of its graph; REC_NONE: not placed yet */
    size_t slot_room;

    struct graph_waiting *waiting; /* jobs neither started nor turned away, and gaps */
    uint32_t *gap;
    size_t nwaiting, waiting_room, ngaps, gap_room;
    struct rec_map waits;  /* by id */
    struct rec_ids ended;  /* jobs that are done or turned away, of results alone */
    struct rec_map unique; /* servers of an alloc */
};

/** Takes the next record of any type, also REC_MARK; *said is filled. */
bool graph_stream_take(struct graph_stream *stream, const struct rec_reader *reader,
                       const struct rec *rec, struct graph_said *said,
                       struct rec_error *err) REC_MUST_CHECK;
/** A layout that came is no more: its name may come again, and no alloc may name it. Its
 * index, or REC_NONE. */
uint32_t graph_stream_forget(struct graph_stream *stream, struct rec_str layout);
/** No more records come: what is open is whole. */
bool graph_stream_end(struct graph_stream *stream, struct rec_error *err) REC_MUST_CHECK;
/** No job waits any more that came behind a cluster (with `await`: that came). */
bool graph_stream_decided(const struct graph_stream *stream,
                          struct rec_error *err) REC_MUST_CHECK;
void graph_stream_free(struct graph_stream *stream);

/** Checks that a layout (named in the message) has a slot for every op: REC_NONE is
 * none. */
bool graph_check_placed(const struct graph *graph, const char *layout,
                        const uint32_t *slot, struct rec_error *err) REC_MUST_CHECK;

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
 * Do the ops of a closed graph say how long they take? For who decides by times: what a
 * time of 0 that only means "not known" leads to looks like a result. False, *err with
 * `advice` at its end: an op that is no communication (coll=) does work (flops= or moved=
 * above 0) in no time; or there are ops of a training step (no tasks, no communication),
 * and the graph takes no time at all. Tasks that take none are fine: a list of commands
 * says what they do, not how long.
 */
bool graph_check_times(const struct graph *graph, const char *advice,
                       struct rec_error *err) REC_MUST_CHECK;

/**
 * Of a closed graph: floating-point operations of the model in a training step, for model
 * FLOPs utilization (Chowdhery et al., "PaLM", 2022, appendix B). They are flops= of its
 * ops, but a backward op counts at most twice its twin: a product of the forward pass has
 * two in the backward pass, for the gradients of both operands, and what is beyond is
 * computed again (fused attention its scores). Communication (coll=) counts none. NAN:
 * not known, for an op has neither flops= nor moved=, or none has any. False: a flops= is
 * no number >= 0, *err (REC_DATA).
 */
bool graph_model_flops(const struct graph *graph, double *flops,
                       struct rec_error *err) REC_MUST_CHECK;

/* ---- splitting ----------------------------------------------------------- */

enum graph_sizes { GRAPH_SIZES_REFERENCE, GRAPH_SIZES_GRADIENT };

/** The SiP-ML rule: max(1, min(2*ceil(ceil(compute/quantum)/2), degree)). */
uint32_t graph_parts(double compute, double quantum, uint32_t degree);

/** Room for the letters of any part, with their NUL. */
#define GRAPH_LETTERS_MAX 8
/** The letters of part i (from 0): a, b, ... z, aa, ab, ... as spreadsheet columns. */
void graph_part_letters(uint32_t i, char letters[GRAPH_LETTERS_MAX]);

struct graph_split {
    const uint32_t *parts; /* per op, >= 1; a twin's number is its forward op's */
    const uint32_t *rank;  /* per op: when it is split, for the reference's dep sizes */
    enum graph_sizes sizes;
};

/**
 * Builds *to as *from (closed, of whole ops) with every op u in parts[u] parts; closed.
 * Compute, memory, activation, param, and the keys flops= and moved= are divided evenly;
 * every part of u is joined to every part of v; the parts of a backward op are joined to
 * each other by sync deps.
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
    double quantum;  /* no part shorter than this, seconds */
    const uint32_t
        *legal; /* the numbers of parts that are allowed, ascending from 1: an op
                              gets the largest that is not more than its own; NULL: any */
    uint32_t nlegal;
    const struct graph_split_op *list; /* not NULL: these ops, in this order, instead */
    uint32_t nlist;
    enum graph_sizes sizes;
};

/** Adds the ops and deps that graph_partition() would make to *made. A few bytes can ask
 * for very many, so call it before, and rec_limit() with the sum over all graphs of a
 * stream. */
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
