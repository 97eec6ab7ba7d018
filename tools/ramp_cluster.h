/* The options that describe a RAMP cluster, and where jobs are placed on it. Each tool
 * whose .ggo includes "ramp_cluster" has them. */
#ifndef RAMPIPE_RAMP_CLUSTER_H
#define RAMPIPE_RAMP_CLUSTER_H

#include "rampipe/place.h"
#include "rampipe/cli.h"
#include "rampipe/net.h"

/* The texts of the options (tools/ramp_cluster.ggo). */
struct ramp_cluster_options {
    bool meta_given;
    const char *shape, *bandwidth, *propagation, *io, *memory, *collective_rate;
    const char *down; /* NULL: none */
    const char *heuristic, *meta;
};
#define RAMP_CLUSTER_OPTIONS(args)                                                  \
    {                                                                               \
        .meta_given = (args)->meta_given, .shape = (args)->shape_arg,               \
        .bandwidth = (args)->bandwidth_arg, .propagation = (args)->propagation_arg, \
        .io = (args)->io_arg, .memory = (args)->memory_arg,                         \
        .collective_rate = (args)->collective_rate_arg, .down = (args)->down_arg,   \
        .heuristic = (args)->heuristic_arg, .meta = (args)->meta_arg                \
    }

/* The values of the options; they become fields of struct alloc_admission_options and
 * the like. */
struct ramp_cluster {
    struct net *net; /* owned */
    struct place_options placer;
    uint32_t *down; /* owned */
    uint32_t ndown;
};

/* False: cli->err; *cluster must be freed even then. */
bool ramp_cluster_read(struct cli *cli, const struct ramp_cluster_options *options,
                       struct ramp_cluster *cluster) REC_MUST_CHECK;
void ramp_cluster_free(struct ramp_cluster *cluster);
/* Warns if the policy in a file was trained with another heuristic than this cluster's.
 * `trained` is NULL if the heuristic of the training is not known. */
void ramp_cluster_compare(const struct cli *cli, const struct ramp_cluster *cluster,
                          const char *file, const struct place_kind *trained);

#endif
