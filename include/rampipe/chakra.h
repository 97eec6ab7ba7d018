/*
 * rampipe/chakra.h - execution traces in Chakra's format: read as graphs, and written
 * from graphs.
 *
 *     trace.0.et  nodes of rank 0 --+
 *     trace.1.et  nodes of rank 1 --+--> graph: one op for each node, deps between them
 *     ...                                layout: slot i is the rank of file i
 *
 * A file is a sequence of protobuf messages, one of metadata and then the nodes. The
 * length of each message, as a varint, precedes it. A file has no trailer, so one that
 * was cut between two messages looks whole. Ids of nodes are unique in their file. Data
 * dependencies order the nodes. Times are microseconds, sizes bytes. Source: MLCommons'
 * Chakra, version 0.0.4 of the schema.
 */
#ifndef RAMPIPE_CHAKRA_H
#define RAMPIPE_CHAKRA_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** Which ops share a slot of the layout. */
enum chakra_server {
    CHAKRA_RANK,   /* all ops of a rank */
    CHAKRA_THREAD, /* the ops of one thread of a CPU, or one stream of a GPU, of a rank */
    CHAKRA_OP      /* each op has a slot of its own, and so never waits for a server */
};

/** The numbers of things in the files that were left out or are incomplete. */
struct chakra_counts {
    uint64_t self;     /* dependencies of a node on itself */
    uint64_t dangling; /* dependencies on a node that is not in the file */
    uint64_t sends;    /* sends without a receive */
    uint64_t receives; /* receives without a send */
};

/* ---- reading ------------------------------------------------------------- */

/** The traces of several ranks. */
struct chakra_traces;

/** NULL: out of memory. */
struct chakra_traces *chakra_traces_new(struct rec_error *err) REC_MUST_CHECK;
void chakra_traces_free(struct chakra_traces *traces);

/** Reads the file of a rank, plain or gzip ("-": standard input). Files must come in
 * ascending order of ranks. `path` is borrowed as long as `traces` lives. A message that
 * is cut is REC_IO. */
bool chakra_read(struct chakra_traces *traces, const char *path, uint32_t rank,
                 struct rec_error *err) REC_MUST_CHECK;
/**
 * Makes one graph (closed) of all files that were read, and its layout, which the caller
 * frees, before the graph. May be called once. `name` is the name of the graph and its
 * model if the files have none; those of chakra_write() have one. Op R.N is node N of
 * rank R. The members of a collective start together: a join op waits for all deps of all
 * members. If no member has a duration, the collective is a coll: an op start takes part
 * for each member, and the members wait for its end. comm_size is the size of what one
 * member puts in. REC_DATA: what such a collective does is not known: its members put in
 * different sizes, files of some are missing, or there is no such coll (gather, scatter).
 */
bool chakra_build(struct chakra_traces *traces, const char *name,
                  enum chakra_server server, struct graph *graph,
                  struct graph_layout *layout, struct chakra_counts *counts,
                  struct rec_error *err) REC_MUST_CHECK;

/** The cluster that the traces were written for, as the lines of its records, valid
 * as long as `traces`. NULL: the files do not name it, or one of them no server.
 * *nfiles becomes the number of files. */
const char *chakra_cluster(const struct chakra_traces *traces, size_t *nfiles);
/** The name of the server of a file, by the order of ranks. */
const char *chakra_server(const struct chakra_traces *traces, size_t file);

/* ---- writing ------------------------------------------------------------- */

/** A plan of the nodes that the ops and deps of a graph become. */
struct chakra_plan;

/** The graph must be closed, and the layout must place all its ops; both are borrowed.
 * NULL: out of memory. */
struct chakra_plan *chakra_plan_new(const struct graph *graph,
                                    const struct graph_layout *layout,
                                    struct rec_error *err) REC_MUST_CHECK;
/** Says on which cluster a job has the layout, as the lines of its records (borrowed),
 * and on which servers, by their names with commas between them (copied). Each file names
 * the cluster and its own server. */
bool chakra_plan_cluster(struct chakra_plan *plan, const char *cluster,
                         const char *servers, struct rec_error *err) REC_MUST_CHECK;
/** `plan` may be NULL. */
void chakra_plan_free(struct chakra_plan *plan);

/**
 * Writes the trace of one slot: a node for each op on it, and a send or a receive for
 * each dep to or from another slot. What the format cannot express is written in
 * attributes "rampipe.*", so that chakra_build() makes the same graph and layout again of
 * all files. `writer` is one of plain text.
 */
bool chakra_write(const struct chakra_plan *plan, uint32_t slot,
                  struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
