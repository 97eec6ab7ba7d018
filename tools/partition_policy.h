/* partition --policy: offers each job several partitionings of its graph. */
#ifndef RAMPIPE_PARTITION_POLICY_H
#define RAMPIPE_PARTITION_POLICY_H

#include "rampipe/cli.h"
#include "rampipe/graph.h"

struct partition_args;

/* Warns that the parts of a transformer's ops are not tensor parallelism. *warned is set
 * with the first warning; there is none after it. */
void partition_warn(const struct cli *cli, const struct graph *graph, bool *warned);

/* Reads the stream, and writes it with the partitioned graphs and the alternatives of
 * jobs. `how` has all but the degree. `advice` is what graph_check_times() advises; NULL:
 * graphs without times are accepted. */
bool partition_by_policy(struct cli *cli, const struct partition_args *args,
                         struct graph_partition *how, const char *advice);

#endif
