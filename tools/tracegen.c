/* tracegen MODE [OPTION]... [FILE]... - random traces. */
#include "ggo/tracegen.h"
#define CLI_SEED 1
#include "main.h"

#include "tracegen_modes.h"

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const modes[] = {"jobs", NULL};
    static bool (*const mode_run[])(struct cli *,
                                    const struct gengetopt_args_info *) = {tracegen_jobs};
    size_t mode = 0;

    if (cli->nfiles == 0)
        return cli_usage(cli, "the first operand is the mode: tracegen jobs");
    if (!cli_choice(cli, "MODE", cli->files[0], modes, &mode))
        return false;
    cli->files++;
    cli->nfiles--;
    return mode_run[mode](cli, args);
}
