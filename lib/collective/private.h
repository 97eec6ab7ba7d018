/* What the files of lib/collective share. */
#ifndef RAMPIPE_COLLECTIVE_PRIVATE_H
#define RAMPIPE_COLLECTIVE_PRIVATE_H

#include "rampipe/collective.h"

/* The text of traces/fabrics.rec and traces/collectives.rec (shipped.c). */
extern const char collective_shipped[];
extern const uint64_t collective_shipped_size;

/* ---- curve.c: one series ---- */

/* The time of a measured series at a size, seconds. */
double collective_curve(const struct collective_table *table,
                        const struct collective_series *series, double size);
/* Its time without any transfer, seconds. */
double collective_floor(const struct collective_table *table,
                        const struct collective_series *series);
/* The smallest and the largest measured size. */
void collective_range(const struct collective_table *table,
                      const struct collective_series *series, double *from, double *to);

/* ---- laws: several series ---- */

/* The series that answer a question but for their ranks and nodes: those of one system
 * and one version. A law takes its times from these alone. */
enum { COLLECTIVE_GROUPS_MAX = 64 };
struct collective_groups {
    const struct collective_table *table;
    const struct collective_series *series[COLLECTIVE_GROUPS_MAX];
    size_t n;
};

/* A number of ranks or nodes among those that were measured: the nearest below, the one
 * below that, the nearest above. NULL: there is none. */
struct collective_near {
    const struct collective_series *second, *below, *above;
};

/* Each law sets seconds, how and law of *answer. False: the groups that it needs were not
 * measured. */

/* Groups of one node (law.c). */
bool collective_law_ranks(const struct collective_groups *groups, uint64_t ranks,
                          double size, struct collective_answer *answer);
/* Groups over several nodes (nodes.c). `fabric` is that of the system; NULL: unknown. */
bool collective_law_nodes(const struct collective_groups *groups, uint64_t ranks,
                          uint64_t nodes, double size,
                          const struct collective_fabric *fabric,
                          struct collective_answer *answer);

/* Tokens in a group of one node, from the only such group that was measured, of `from`
 * ranks (nodes.c). Its error is that of data sheets, for which it stands in. */
bool collective_law_one_group(const struct collective_groups *groups, uint64_t ranks,
                              double size, double *seconds, uint64_t *from);
/* What a link of this bandwidth needs at least for the tokens of a rank that are merged,
 * seconds (nodes.c). */
double collective_tokens_least(const struct collective_what *what, uint64_t ranks,
                               double size, double bandwidth);

/* ---- fabric.c ---- */

/* The record whose name is the longest beginning of `name`; NULL: there is none. */
const struct collective_fabric *collective_fabric_find(
    const struct collective_table *table, const char *name);
/* Does a group of this size exchange over PCI Express? */
bool collective_fabric_slots(const struct collective_fabric *fabric, uint64_t ranks);
/* The bandwidth of a GPU to the others of such a group within a node, bytes/s. */
double collective_fabric_bandwidth(const struct collective_fabric *fabric,
                                   uint64_t ranks);

#endif
