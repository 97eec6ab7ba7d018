/* Reads which servers are out of service, and how jobs are placed. */
#include "alloc_cluster.h"

#include <stdlib.h>

bool
alloc_cluster_place(struct cli *cli, const char *option, const char *text,
                    struct alloc_cluster *cluster)
{
    struct rec_error wrong;
    cluster->placer.net = cluster->net;
    return place_options_parse(&cluster->placer, text, &wrong) ||
           cli_usage(cli, "--%s %s", option, wrong.text);
}

/* A server that the cluster does not have is a mistake: ignoring it would hide a wrong
 * cluster. */
bool
alloc_cluster_down(struct cli *cli, const char *text, struct alloc_cluster *cluster)
{
    struct rec_str rest = {text, text ? strlen(text) : 0}, name;
    struct rec_error why;
    size_t room = 0;
    while (text && rec_str_split(&rest, ',', &name)) {
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

void
alloc_cluster_free(struct alloc_cluster *cluster)
{
    net_free(cluster->net);
    free(cluster->down);
    *cluster = (struct alloc_cluster){.down = NULL};
}

void
alloc_cluster_compare(const struct cli *cli, const struct alloc_cluster *cluster,
                      const char *file, const struct place_kind *trained)
{
    if (trained && trained != cluster->placer.kind)
        cli_warn(
            cli,
            "%s was trained with --heuristic %s, but jobs are placed with %s: it may "
            "block more jobs than the other rules of --choose",
            file, trained->name, cluster->placer.kind->name);
}
