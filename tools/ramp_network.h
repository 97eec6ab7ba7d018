/* The options that describe a RAMP of a tool that knows how many servers it needs. */
#ifndef RAMPIPE_RAMP_NETWORK_H
#define RAMPIPE_RAMP_NETWORK_H

#include "rampipe/cli.h"
#include "rampipe/net_ramp.h"

/* The texts of the options (tools/ramp_network.ggo). */
struct ramp_network_options {
    bool shape_given, bandwidth_given, propagation_given, io_given;
    const char *shape, *bandwidth, *propagation, *io;
};
#define RAMP_NETWORK_OPTIONS(args)                                                      \
    {                                                                                   \
        .shape_given = (args)->shape_given, .bandwidth_given = (args)->bandwidth_given, \
        .propagation_given = (args)->propagation_given, .io_given = (args)->io_given,   \
        .shape = (args)->shape_arg, .bandwidth = (args)->bandwidth_arg,                 \
        .propagation = (args)->propagation_arg, .io = (args)->io_arg                    \
    }

/* What the options describe. */
struct ramp_network {
    struct ramp_network_options options;
    struct net_ramp ramp;
};

/* True if one of the options was given. */
bool ramp_network_asked(const struct ramp_network *network);
/* Reads network->options. The memory of servers is unlimited. False: cli->err. */
bool ramp_network_read(struct cli *cli, struct ramp_network *network) REC_MUST_CHECK;
/* Makes the network. Without --shape it becomes one rack of `servers` servers. NULL:
 * cli->err. The caller frees it. */
struct net *ramp_network_make(struct cli *cli, struct ramp_network *network,
                              uint32_t servers) REC_MUST_CHECK;
/* Names the options that were not given, and the network that results: it decides how
 * long the messages take. */
void ramp_network_warn(const struct cli *cli, const struct ramp_network *network);

#endif
