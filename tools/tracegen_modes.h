/* The modes of tracegen, one file each. */
#ifndef RAMPIPE_TRACEGEN_MODES_H
#define RAMPIPE_TRACEGEN_MODES_H

#include "rampipe/cli.h"

struct gengetopt_args_info;

/* Graphs in, graphs and jobs out. */
bool tracegen_jobs(struct cli *cli, const struct gengetopt_args_info *args);

#endif
