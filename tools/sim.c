/* sim [OPTION]... [FILE]... - event simulation. */
#include "ggo/sim.h"
#include "main.h"

#include "sim_models.h"

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    return sim_ramp(cli, args);
}
