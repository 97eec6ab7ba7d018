/* Clusters that options describe. */
#ifndef RAMPIPE_NET_OPTION_H
#define RAMPIPE_NET_OPTION_H

#include "rampipe/cli.h"
#include "rampipe/net.h"

/* The cluster that --option describes by KIND:FIELD,..., in which numbers may have units,
 * or that is the first of a file. NULL: cli->err. The caller frees it. */
struct net *net_option(struct cli *cli, const char *option,
                       const char *text) REC_MUST_CHECK;
/* The cluster of a record; `name` stands for its file in messages. NULL: cli->err. */
struct net *net_option_record(struct cli *cli, const char *name,
                              const char *line) REC_MUST_CHECK;

#endif
