/* The cluster of the published experiments. */
#ifndef TESTS_PUBLISHED_H
#define TESTS_PUBLISHED_H

#include "rampipe/net.h"

static const struct net_cluster published = {&net_ramp,
                                             {4, 4, 2},
                                             NET_RAMP_BANDWIDTH,
                                             NET_RAMP_MEMORY,
                                             NET_RAMP_PROPAGATION,
                                             NET_RAMP_IO,
                                             NET_COLLECTIVE_PUBLISHED};

#endif
