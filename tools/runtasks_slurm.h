/* runtasks --engine slurm: this program again, in an allocation of Slurm. */
#ifndef RAMPIPE_RUNTASKS_SLURM_H
#define RAMPIPE_RUNTASKS_SLURM_H

#include "rampipe/cli.h"
#include "rampipe/run.h"

/* The path of this program, owned by the caller. NULL: cli->err. */
char *slurm_program(struct cli *cli);
struct runtasks_args;

/* Runs this program in an allocation, with the same options and files. *status: the exit
 * status to end with. */
bool slurm_run(struct cli *cli, const struct runtasks_args *args,
               const struct run_options *options, int *status);

#endif
