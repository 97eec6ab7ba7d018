/* tracegen MODE [OPTION]... [FILE]... - random traces, and their models. */
#include "ggo/tracegen.h"
#define CLI_SEED (args.inputs_num > 0 && strcmp(args.inputs[0], "fit") != 0)
#include "main.h"

#include "tracegen_modes.h"

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const modes[] = {"jobs", "fit", "preempt", NULL};
    static bool (*const mode_run[])(struct cli *, const struct gengetopt_args_info *) = {
        tracegen_jobs, tracegen_fit, tracegen_preempt};
    size_t mode = 0;

    if (cli->nfiles == 0)
        return cli_usage(cli,
                         "the first operand is the mode: tracegen jobs, tracegen fit "
                         "or tracegen preempt");
    if (!cli_choice(cli, "MODE", cli->files[0], modes, &mode))
        return false;
    cli->files++;
    cli->nfiles--;
    return mode_run[mode](cli, args);
}
