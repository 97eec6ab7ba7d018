/* The option that is the shape of a RAMP. */
#ifndef RAMPIPE_RAMP_SHAPE_H
#define RAMPIPE_RAMP_SHAPE_H

#include "rampipe/cli.h"
#include "rampipe/net.h"

/* A RAMP of the shape that --option gives, with the published parameters. NULL: cli->err.
 * The caller frees it. */
struct net *ramp_shape(struct cli *cli, const char *option,
                       const char *text) REC_MUST_CHECK;

#endif
