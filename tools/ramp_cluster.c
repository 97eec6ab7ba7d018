/* Reads the options that describe a RAMP cluster. */
#include "ramp_cluster.h"

#include "rampipe/net_ramp.h"

#include <stdlib.h>

/* The list of --down, c-r-s,c-r-s. A server that the cluster does not have is a mistake:
 * ignoring it would hide a wrong --shape. */
static bool
read_down(struct cli *cli, const char *text, struct ramp_cluster *cluster)
{
    struct rec_str rest = rec_str(text), name;
    struct rec_error why;
    size_t room = 0;
    while (rec_str_split(&rest, ',', &name)) {
        if (!rec_grow(&cluster->down, &room, cluster->ndown + 1, sizeof *cluster->down,
                      &cli->err))
            return false;
        if (!net_parse_server(cluster->net, name, &cluster->down[cluster->ndown++], &why))
            return cli_usage(cli,
                             "--down names server '%.*s', which is not in the cluster",
                             (int)name.len, name.ptr);
    }
    return true;
}

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

bool
ramp_cluster_read(struct cli *cli, const struct ramp_cluster_options *options,
                  struct ramp_cluster *cluster)
{
    struct alloc_placer_options *placer = &cluster->placer;
    size_t heuristic;

    *cluster = (struct ramp_cluster){.down = NULL};
    if (!read_network(cli, options, &cluster->net) ||
        !cli_choose_row(cli, "heuristic", options->heuristic, alloc_heuristics,
                        sizeof *alloc_heuristics, &heuristic) ||
        !read_shape(cli, "meta", options->meta, placer->meta) ||
        (options->down && !read_down(cli, options->down, cluster)))
        return false;
    placer->net = cluster->net;
    placer->heuristic = &alloc_heuristics[heuristic];
    return !options->meta_given || strcmp(options->heuristic, "block") == 0 ||
           cli_usage(cli, "--meta is for --heuristic block");
}

void
ramp_cluster_free(struct ramp_cluster *cluster)
{
    net_free(cluster->net);
    free(cluster->down);
    *cluster = (struct ramp_cluster){.down = NULL};
}

void
ramp_cluster_compare(const struct cli *cli, const struct ramp_cluster *cluster,
                     const char *file, const struct alloc_heuristic *trained)
{
    if (trained && trained != cluster->placer.heuristic)
        cli_warn(
            cli,
            "%s was trained with --heuristic %s, but jobs are placed with %s: it may "
            "block more jobs than the other rules of --choose",
            file, trained->name, cluster->placer.heuristic->name);
}
