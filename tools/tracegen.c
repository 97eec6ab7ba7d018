/* tracegen MODE [OPTION]... [FILE]... - random traces, and their models. */
#include "ggo/tracegen.h"
#include "main.h"

static bool
run(struct cli *cli, const struct tracegen_args *args)
{
    (void)args;
    return cli_usage(cli,
                     "the first operand is the mode: jobs, queries, fit or preempt%s%s%s",
                     cli->nfiles ? ", got '" : "", cli->nfiles ? cli->files[0] : "",
                     cli->nfiles ? "'" : "");
}
