/* Clusters that options describe. */
#ifndef RAMPIPE_NET_OPTION_H
#define RAMPIPE_NET_OPTION_H

#include "rampipe/cli.h"
#include "rampipe/net.h"

/* net_find() of the value of --option. NULL: cli->err. The caller frees it. */
struct net *net_option(struct cli *cli, const char *option,
                       const char *text) REC_MUST_CHECK;

#endif
