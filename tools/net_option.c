/* Reads options that describe a cluster. */
#include "net_option.h"

struct net *
net_option(struct cli *cli, const char *option, const char *text)
{
    struct rec_error wrong;
    struct net *net = net_find(text, &wrong);
    if (!net && wrong.code == REC_USAGE)
        cli_usage(cli, "--%s: %s", option, wrong.text);
    else if (!net)
        cli->err = wrong;
    return net;
}
