/* What the files of lib/net share with each other and with nobody else. */
#ifndef RAMPIPE_NET_PRIVATE_H
#define RAMPIPE_NET_PRIVATE_H

#include "rampipe/net.h"

bool net_ramp_transfer_times(const struct net_cluster *cluster, const struct graph *graph,
                             const uint32_t *server_of_op, double *seconds,
                             struct net_traffic *traffic,
                             struct rec_error *err) REC_MUST_CHECK;

#endif
