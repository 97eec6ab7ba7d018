/* sim [OPTION]... [FILE]... - event simulation. */
#include "ggo/sim.h"
#define CLI_SEED (strcmp(args.model_arg, "ramp") != 0)
#include "main.h"

#include "sim_models.h"

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const models[] = {"ramp", "elastic", "redundant", NULL};
    static bool (*const model_run[])(struct cli *, const struct gengetopt_args_info *) = {
        sim_ramp, sim_elastic, sim_redundant};
    size_t model = 0;

    return cli_choice(cli, "model", args->model_arg, models, &model) &&
           model_run[model](cli, args);
}
