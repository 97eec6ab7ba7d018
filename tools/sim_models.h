/* The models that sim knows, one file each. */
#ifndef RAMPIPE_SIM_MODELS_H
#define RAMPIPE_SIM_MODELS_H

#include "rampipe/cli.h"

struct gengetopt_args_info;

/* Jobs on a RAMP cluster: graphs, layouts, jobs, allocs -> done. */
bool sim_ramp(struct cli *cli, const struct gengetopt_args_info *args);

#endif
