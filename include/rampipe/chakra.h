/*
 * rampipe/chakra.h - execution traces in Chakra's format, as graphs and from them.
 *
 *     trace.0.et  nodes of rank 0 --+
 *     trace.1.et  nodes of rank 1 --+--> graph: an op a node, deps between them
 *     ...                                layout: slot i is the rank of file i
 *
 * A file is a sequence of protobuf messages, each after its length as a varint: metadata,
 * then nodes. It has no trailer: a file that was cut between two messages looks whole.
 * Ids are unique in their file. What orders nodes are data dependencies. Times are
 * microseconds, sizes bytes. Source: MLCommons' Chakra, version 0.0.4 of the schema.
 */
#ifndef RAMPIPE_CHAKRA_H
#define RAMPIPE_CHAKRA_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** What a slot of the layout is. */
enum chakra_server {
    CHAKRA_RANK,   /* all that a rank does */
    CHAKRA_THREAD, /* a thread of a CPU, or a stream of a GPU, of a rank */
    CHAKRA_OP      /* one op: there is always a server for it */
};

/** What was left out, or has no other end or no other members. */
struct chakra_counts {
    uint64_t self, dangling; /* dependencies on the node itself, on none of the file */
    uint64_t sends, receives;
    uint64_t alone; /* collectives of one member that is here, and of no duration */
};

/** Where the ops of a graph lie, and which goes first. */
struct chakra_layout {
    const char *id; /* borrowed */
    uint32_t nslots;
    uint32_t *slot;   /* per op; all three owned; chakra_layout_free() */
    uint32_t *order;  /* the ops in the order of their place records */
    double *priority; /* per op, NAN: none */
};

void chakra_layout_free(struct chakra_layout *layout);
/** Writes layout and place records. */
void chakra_layout_write(const struct chakra_layout *layout, const struct graph *graph,
                         struct rec_writer *writer);

/* ---- reading ------------------------------------------------------------- */

/** The traces of several ranks. */
struct chakra_traces;

/** NULL: out of memory. */
struct chakra_traces *chakra_traces_new(struct rec_error *err) REC_MUST_CHECK;
void chakra_traces_free(struct chakra_traces *traces);

/** Reads the file of a rank, plain or gzip ("-": standard input); ranks come in ascending
 * order. `path` is kept, not copied. A message that is cut is REC_IO. */
bool chakra_read(struct chakra_traces *traces, const char *path, uint32_t rank,
                 struct rec_error *err) REC_MUST_CHECK;
/**
 * Makes the graph of all that was read (closed) and its layout, which points into
 * `traces`. Called once. `name` is what they are called if the files do not say it, as
 * those do that chakra_write() made. Op R.N is node N of rank R. Members of a collective
 * start together: a join op waits for what they wait for. If none of them has a duration,
 * each sends the next in the group what a ring algorithm sends: comm_size is what one
 * member puts in. REC_DATA: members of such a collective put in different sizes
 * (all-to-all and scatter may).
 */
bool chakra_build(struct chakra_traces *traces, const char *name,
                  enum chakra_server server, struct graph *graph,
                  struct chakra_layout *layout, struct chakra_counts *counts,
                  struct rec_error *err) REC_MUST_CHECK;

/* ---- writing ------------------------------------------------------------- */

/** How a graph becomes traces. */
struct chakra_plan;

/** The graph is closed, the layout places all its ops; both are borrowed. NULL: out of
 * memory. */
struct chakra_plan *chakra_plan_new(const struct graph *graph,
                                    const struct chakra_layout *layout,
                                    struct rec_error *err) REC_MUST_CHECK;
/** `plan` may be NULL. */
void chakra_plan_free(struct chakra_plan *plan);

/**
 * Writes the trace of one slot: a node for every op on it, and, for every dep to or from
 * another slot, a send or a receive. What the format has no place for stands in
 * attributes "rampipe.*", so that chakra_build() makes the same graph and layout of all
 * files. `writer` is of plain text.
 */
bool chakra_write(const struct chakra_plan *plan, uint32_t slot,
                  struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
