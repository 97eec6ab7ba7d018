/* The functions of RAMP's row of net_kinds that are not in ramp.c. */
#ifndef RAMPIPE_NET_RAMP_ROW_H
#define RAMPIPE_NET_RAMP_ROW_H

#include "rampipe/net_ramp.h"

bool net_ramp_alone(const struct net *net, const struct net_exchange *exchange, size_t n,
                    double *seconds, struct rec_error *err) REC_MUST_CHECK;
uint64_t net_ramp_count_blocks(const struct net *net, uint32_t k);
void net_ramp_block(const struct net *net, uint32_t k, uint64_t which, uint32_t *server);

#endif
