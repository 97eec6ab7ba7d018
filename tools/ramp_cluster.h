/* The options that describe a RAMP cluster, and where jobs are placed on it. Each tool
 * whose .ggo includes "ramp_cluster" has them. */
#ifndef RAMPIPE_RAMP_CLUSTER_H
#define RAMPIPE_RAMP_CLUSTER_H

#include "alloc_cluster.h"

/* The texts of the options (tools/ramp_cluster.ggo, alloc_cluster.ggo and
 * ramp_heuristic.ggo). */
struct ramp_cluster_options {
    bool shape_given, bandwidth_given, propagation_given, io_given, memory_given,
        collective_rate_given, heuristic_given, meta_given;
    const char *shape, *bandwidth, *propagation, *io, *memory, *collective_rate;
    const char *down; /* NULL: none */
    const char *heuristic, *meta;
    bool several; /* --heuristic may be a list */
};
#define RAMP_CLUSTER_OPTIONS(args)                                                      \
    {                                                                                   \
        .shape_given = (args)->shape_given, .bandwidth_given = (args)->bandwidth_given, \
        .propagation_given = (args)->propagation_given, .io_given = (args)->io_given,   \
        .memory_given = (args)->memory_given,                                           \
        .collective_rate_given = (args)->collective_rate_given,                         \
        .heuristic_given = (args)->heuristic_given, .meta_given = (args)->meta_given,   \
        .shape = (args)->shape_arg, .bandwidth = (args)->bandwidth_arg,                 \
        .propagation = (args)->propagation_arg, .io = (args)->io_arg,                   \
        .memory = (args)->memory_arg, .collective_rate = (args)->collective_rate_arg,   \
        .down = (args)->down_arg, .heuristic = (args)->heuristic_arg,                   \
        .meta = (args)->meta_arg                                                        \
    }

/* Fills *cluster, which is {0}. `net` is that of --cluster, which takes the place of the
 * options of a RAMP; NULL: without. It is the cluster's from now on. False: cli->err. */
bool ramp_cluster_read(struct cli *cli, const struct ramp_cluster_options *options,
                       struct net *net, struct alloc_cluster *cluster) REC_MUST_CHECK;

#endif
