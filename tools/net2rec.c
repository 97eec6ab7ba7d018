/* net2rec [OPTION]... [FILE] - a network of another simulator -> a cluster. */
#include "ggo/net2rec.h"
#include "main.h"

#include "rampipe/net.h"

static bool
run(struct cli *cli, const struct net2rec_args *args)
{
    struct net *net;
    double memory;
    if (!cli_bytes(cli, "memory", args->memory_arg, true, &memory))
        return false;
    if (cli->nfiles > 1)
        return cli_usage(cli, "there must be one FILE, got %zu", cli->nfiles);
    if (!cli_open_reader(cli) || !(net = net_convert(cli->reader, memory, &cli->err)))
        return false;
    if (!cli_open_writer(cli, true)) {
        net_free(net);
        return false;
    }
    net_write(net, cli->writer);
    net_free(net);
    return true;
}
