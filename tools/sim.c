/* sim [OPTION]... [FILE]... - event simulation. */
#include "ggo/sim.h"
#define CLI_SEED (strcmp(args.model_arg, "ramp") != 0)
#include "main.h"

#include "sim_models.h"

/* Options that a model does not have would do nothing. */
static bool
check_ramp(struct cli *cli, const struct gengetopt_args_info *args)
{
    bool training = args->brief_given || args->victims_given || args->profile_given ||
                    args->price_given || args->on_demand_price_given ||
                    args->iteration_given || args->reconfigure_given ||
                    args->checkpoint_given || args->load_given || args->prepare_given ||
                    args->depth_given || args->start_given || args->capacity_given ||
                    args->grow_given || args->samples_given || args->on_demand_given ||
                    args->tick_given || args->rules_given || args->steps_given ||
                    args->seed_given;
    return !training || cli_usage(cli, "options of training need --model elastic or "
                                       "--model redundant");
}

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const models[] = {"ramp", "elastic", "redundant", NULL};
    static bool (*const model_run[])(struct cli *, const struct gengetopt_args_info *) = {
        sim_ramp, sim_elastic, sim_redundant};
    size_t model = 0;

    return cli_choice(cli, "model", args->model_arg, models, &model) &&
           (model > 0 || check_ramp(cli, args)) && model_run[model](cli, args);
}
