/* Reads the options that describe a RAMP. */
#include "ramp_network.h"

#include <math.h>

bool
ramp_network_asked(const struct ramp_network *network)
{
    const struct ramp_network_options *o = &network->options;
    return o->shape_given || o->bandwidth_given || o->propagation_given || o->io_given;
}

bool
ramp_network_read(struct cli *cli, struct ramp_network *network)
{
    const struct ramp_network_options *o = &network->options;
    struct net_ramp *ramp = &network->ramp;
    struct rec_error wrong;
    *ramp = (struct net_ramp){.net.memory = (double)INFINITY};
    if (!cli_rate(cli, "bandwidth", o->bandwidth, false, &ramp->bandwidth) ||
        !cli_seconds(cli, "propagation", o->propagation, false, &ramp->propagation) ||
        !cli_seconds(cli, "io", o->io, false, &ramp->io))
        return false;
    return !o->shape_given || net_ramp_parse_shape(o->shape, ramp->shape, &wrong) ||
           cli_usage(cli, "--shape %s", wrong.text);
}

struct net *
ramp_network_make(struct cli *cli, struct ramp_network *network, uint32_t servers)
{
    struct net_ramp *ramp = &network->ramp;
    struct rec_error wrong;
    struct net *net;
    if (!network->options.shape_given) {
        ramp->shape[0] = ramp->shape[1] = 1;
        ramp->shape[2] = servers;
    }
    if (!(net = net_ramp_new(ramp, &wrong)))
        rec_fail(&cli->err, wrong.code == REC_DATA ? REC_USAGE : wrong.code, "%s",
                 wrong.text);
    return net;
}

void
ramp_network_warn(const struct cli *cli, const struct ramp_network *network)
{
    const struct ramp_network_options *o = &network->options;
    const struct net_ramp *ramp = &network->ramp;
    char text[60] = "", numbers[3][REC_NUM_MAX];
    if (!o->bandwidth_given)
        (void)rec_list_name(text, sizeof text, "--bandwidth");
    if (!o->propagation_given)
        (void)rec_list_name(text, sizeof text, "--propagation");
    if (!o->io_given)
        (void)rec_list_name(text, sizeof text, "--io");
    if (!*text)
        return;
    rec_format_num(numbers[0], ramp->bandwidth);
    rec_format_num(numbers[1], ramp->propagation);
    rec_format_num(numbers[2], ramp->io);
    cli_warn(cli,
             "without %s the cluster is RAMP, %ux%ux%u, %s bytes/s a server, propagation "
             "%s s, io %s s",
             text, ramp->shape[0], ramp->shape[1], ramp->shape[2], numbers[0], numbers[1],
             numbers[2]);
}
