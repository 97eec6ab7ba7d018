/* Reads an option that is the shape of a RAMP. */
#include "ramp_shape.h"

#include "rampipe/net_ramp.h"

struct net *
ramp_shape(struct cli *cli, const char *option, const char *text)
{
    struct net_ramp ramp = {.net.memory = NET_RAMP_MEMORY,
                            .bandwidth = NET_RAMP_BANDWIDTH,
                            .propagation = NET_RAMP_PROPAGATION,
                            .io = NET_RAMP_IO};
    struct rec_error wrong;
    struct net *net;
    if (!net_ramp_parse_shape(text, ramp.shape, &wrong)) {
        cli_usage(cli, "--%s %s", option, wrong.text);
        return NULL;
    }
    if (!(net = net_ramp_new(&ramp, &wrong)))
        rec_fail(&cli->err, wrong.code == REC_DATA ? REC_USAGE : wrong.code, "--%s: %s",
                 option, wrong.text);
    return net;
}
