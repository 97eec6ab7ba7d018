/* The cluster of the published experiments. */
#ifndef TESTS_PUBLISHED_H
#define TESTS_PUBLISHED_H

#include "rampipe/net_ramp.h"

/* A RAMP of C communication groups of R racks of S servers with the published
 * parameters. */
#define RAMP(c, r, s, bytes)                                                            \
    {                                                                                   \
        .net = {&net_ramp, bytes}, .shape = {c, r, s}, .bandwidth = NET_RAMP_BANDWIDTH, \
        .propagation = NET_RAMP_PROPAGATION, .io = NET_RAMP_IO, .level = {              \
            {"cluster", (c) * (r) * (s)},                                               \
            {"communication group", (r) * (s)},                                         \
            {"rack", s},                                                                \
            {"server", 1}                                                               \
        }                                                                               \
    }

static const struct net_ramp published = RAMP(4, 4, 2, NET_RAMP_MEMORY);

#endif
