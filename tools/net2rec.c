/* net2rec [OPTION]... [FILE] - a network that another program describes -> a cluster. */
#include "ggo/net2rec.h"
#include "main.h"

#include "rampipe/net.h"

#include <math.h>

/* An option that may be missing. */
static bool
read_rate(struct cli *cli, const char *option, const char *text, double *rate)
{
    if (!text)
        return true;
    return cli_rate(cli, option, text, false, rate) &&
           (*rate > 0 || cli_usage(cli, "--%s must be > 0, got '%s'", option, text));
}

static bool
run(struct cli *cli, const struct net2rec_args *args)
{
    struct net *net;
    struct net_assumed assumed = {.nvlink = NAN, .pcie = NAN, .socket = NAN};
    if (!cli_bytes(cli, "memory", args->memory_arg, true, &assumed.memory) ||
        !read_rate(cli, "nvlink", args->nvlink_arg, &assumed.nvlink) ||
        !read_rate(cli, "pcie", args->pcie_arg, &assumed.pcie) ||
        !read_rate(cli, "socket", args->socket_arg, &assumed.socket))
        return false;
    assumed.latency = NAN;
    if (args->latency_given &&
        !cli_seconds(cli, "latency", args->latency_arg, false, &assumed.latency))
        return false;
    if (cli->nfiles > 1)
        return cli_usage(cli, "there must be one FILE, got %zu", cli->nfiles);
    if (!cli_open_reader(cli) || !(net = net_convert(cli->reader, &assumed, &cli->err)))
        return false;
    if (!cli_open_writer(cli, true)) {
        net_free(net);
        return false;
    }
    net_write(net, cli->writer);
    net_free(net);
    return true;
}
