/* partition --policy: jobs are offered several partitionings of their graphs. */
#ifndef RAMPIPE_PARTITION_POLICY_H
#define RAMPIPE_PARTITION_POLICY_H

#include "rampipe/cli.h"
#include "rampipe/graph.h"

struct partition_args;

/* Says once, *warned, of a partitioned graph of a transformer what its parts are not. */
void partition_warn(const struct cli *cli, const struct graph *graph, bool *warned);

/* Reads the stream and writes it with partitioned graphs and their alternatives. `how`
 * has all but the degree; `advice` is for graph_check_times(), if not NULL. */
bool partition_by_policy(struct cli *cli, const struct partition_args *args,
                         struct graph_partition *how, const char *advice);

#endif
