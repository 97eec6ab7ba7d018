/* The modes of tracegen, one file each. */
#ifndef RAMPIPE_TRACEGEN_MODES_H
#define RAMPIPE_TRACEGEN_MODES_H

#include "rampipe/cli.h"

struct gengetopt_args_info;

/* Graphs in, graphs and jobs out. */
bool tracegen_jobs(struct cli *cli, const struct gengetopt_args_info *args);
/* Measured logs in, a spot trace or its model out. */
bool tracegen_fit(struct cli *cli, const struct gengetopt_args_info *args);
/* A model in, spot traces out. */
bool tracegen_preempt(struct cli *cli, const struct gengetopt_args_info *args);

#endif
