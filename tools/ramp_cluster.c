/* Reads the options that describe a RAMP cluster. */
#include "ramp_cluster.h"

#include "rampipe/net_ramp.h"

static bool
read_shape(struct cli *cli, const char *option, const char *text, uint32_t shape[3])
{
    struct rec_error wrong;
    return net_ramp_parse_shape(text, shape, &wrong) ||
           cli_usage(cli, "--%s %s", option, wrong.text);
}

static bool
read_network(struct cli *cli, const struct ramp_cluster_options *options,
             struct net **net)
{
    static const char *const rates[] = {"published", "node", NULL};
    struct net_ramp ramp = {.propagation = 0};
    struct rec_error wrong;
    size_t rate;
    if (!read_shape(cli, "shape", options->shape, ramp.shape) ||
        !cli_rate(cli, "bandwidth", options->bandwidth, false, &ramp.bandwidth) ||
        !cli_seconds(cli, "propagation", options->propagation, false,
                     &ramp.propagation) ||
        !cli_seconds(cli, "io", options->io, false, &ramp.io) ||
        !cli_bytes(cli, "memory", options->memory, true, &ramp.net.memory) ||
        !cli_choice(cli, "collective-rate", options->collective_rate, rates, &rate))
        return false;
    ramp.collective_rate = (enum net_collective_rate)rate;
    *net = net_ramp_new(&ramp, &wrong);
    return *net || rec_fail(&cli->err, wrong.code == REC_DATA ? REC_USAGE : wrong.code,
                            "%s", wrong.text);
}

/* The first option of a RAMP that is given beside --cluster; NULL: none is. */
static const char *
find_given(const struct ramp_cluster_options *o)
{
    return o->shape_given             ? "shape"
           : o->bandwidth_given       ? "bandwidth"
           : o->propagation_given     ? "propagation"
           : o->io_given              ? "io"
           : o->memory_given          ? "memory"
           : o->collective_rate_given ? "collective-rate"
                                      : NULL;
}

bool
ramp_cluster_read(struct cli *cli, const struct ramp_cluster_options *options,
                  struct net *net, struct alloc_cluster *cluster)
{
    const char *heuristic = net && !options->heuristic_given ? NULL : options->heuristic;
    const char *given = net ? find_given(options) : NULL;
    const struct net_ramp *ramp;
    bool block = false;
    uint32_t meta[3];

    cluster->net = net;
    if (given)
        return cli_usage(cli, "--%s describes a RAMP: leave it out, or --cluster", given);
    if ((!net && !read_network(cli, options, &cluster->net)) ||
        !(options->several ? alloc_cluster_place_each
                           : alloc_cluster_place)(cli, "heuristic", heuristic, cluster) ||
        !read_shape(cli, "meta", options->meta, meta) ||
        !alloc_cluster_down(cli, options->down, cluster))
        return false;
    for (uint32_t i = 0; i <= cluster->nmore; i++) {
        struct place_options *placer = i ? &cluster->more[i - 1] : &cluster->placer;
        if (!placer->kind->argument || placer->kind->numbered || placer->argument)
            continue;
        block = true;
        placer->argument = options->meta;
    }
    ramp = net_ramp_of(cluster->net);
    if (block && ramp &&
        (meta[0] > ramp->shape[0] || meta[1] > ramp->shape[1] ||
         meta[2] > ramp->shape[2]))
        cli_warn(
            cli,
            "--meta %s is larger than the cluster, %ux%ux%u: --heuristic block places "
            "no job",
            options->meta, ramp->shape[0], ramp->shape[1], ramp->shape[2]);
    return !options->meta_given || block ||
           cli_usage(cli, "--meta is for --heuristic block");
}
