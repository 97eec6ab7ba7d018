/* The cluster of the published experiments. */
#ifndef TESTS_PUBLISHED_H
#define TESTS_PUBLISHED_H

#include "rampipe/net_ramp.h"

/* What a RAMP of C communication groups of R racks of S servers begins with. */
#define RAMP_NET(c, r, s, bytes)                                     \
    {                                                                \
        .kind = &net_ramp, .memory = bytes, .nlevels = 4, .level = { \
            {"cluster", (c) * (r) * (s)},                            \
            {"communication group", (r) * (s)},                      \
            {"rack", s},                                             \
            {"server", 1}                                            \
        }                                                            \
    }
/* Such a RAMP with the published parameters. */
#define RAMP(c, r, s, bytes)                                                  \
    {                                                                         \
        .net = RAMP_NET(c, r, s, bytes), .shape = {c, r, s},                  \
        .bandwidth = NET_RAMP_BANDWIDTH, .propagation = NET_RAMP_PROPAGATION, \
        .io = NET_RAMP_IO                                                     \
    }

static const struct net_ramp published = RAMP(4, 4, 2, NET_RAMP_MEMORY);

#endif
