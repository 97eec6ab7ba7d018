/* What the files of lib/graph share with each other and with nobody else. */
#ifndef RAMPIPE_GRAPH_PRIVATE_H
#define RAMPIPE_GRAPH_PRIVATE_H

#include "rampipe/graph.h"

/* An error about this graph, with file and line if it was read from a file. */
bool graph_fail(const struct graph *graph, uint32_t line, struct rec_error *err,
                const char *format, ...) REC_PRINTF(4, 5);
/** The op of that name; it is created if it is new, and `line` names it first.
 * GRAPH_NONE: *err. */
uint32_t graph_intern(struct graph *graph, struct rec_str id, uint32_t line,
                      struct rec_error *err);
/** Finds which names are colls and not ops, takes the deps that leave colls out of dep[],
 * and checks the colls. To be called first when the graph is closed: ops and deps are
 * numbered anew. */
bool graph_find_colls(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;
/** Groups the colls by op: coll_of[]. */
bool graph_group_colls(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;
/** True for hold and release. */
bool graph_is_hold(struct rec_str key);
/** True if there is one of them among the keys in `extra`. */
bool graph_has_hold(const char *extra);
/** Finds the bytes that ops hold (graph->hold), once all ops are there. */
bool graph_find_holds(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;
/** Finds the rows of deps. */
bool graph_find_rows(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;
/** Finds pairs of sync deps, and what the parts of units send and get alike. */
bool graph_find_alike(struct graph *graph, struct rec_error *err) REC_MUST_CHECK;
/** Writes the transfer records of a layout. */
void graph_layout_write_transfers(const struct graph_layout *layout,
                                  struct rec_writer *writer);

#endif
