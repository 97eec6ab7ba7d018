/* Reads which servers are out of service, and how jobs are placed. */
#include "alloc_cluster.h"

#include <stdlib.h>

/* What is wrong with an option, or else. */
static bool
refuse(struct cli *cli, const char *option, const struct rec_error *wrong)
{
    cli->err = *wrong;
    return wrong->code == REC_USAGE && cli_usage(cli, "--%s %s", option, wrong->text);
}

bool
alloc_cluster_place(struct cli *cli, const char *option, const char *text,
                    struct alloc_cluster *cluster)
{
    struct rec_error wrong;
    cluster->placer.net = cluster->net;
    return place_options_parse(&cluster->placer, text, &wrong) ||
           refuse(cli, option, &wrong);
}

bool
alloc_cluster_place_each(struct cli *cli, const char *option, const char *text,
                         struct alloc_cluster *cluster)
{
    struct rec_error wrong;
    char left_out[PLACE_WAYS_MAX], where[NET_TEXT_MAX];
    if (!place_list_parse(&cluster->ways, cluster->net, text, &wrong))
        return refuse(cli, option, &wrong);
    place_ways_format(cluster->ways.left_out, left_out);
    net_describe(cluster->net, where);
    if (*left_out)
        cli_tell(cli, "--%s: %s cannot place jobs on %s, and is left out", option,
                 left_out, where);
    cluster->placer = cluster->ways.options[0];
    cluster->more = cluster->ways.options + 1;
    cluster->nmore = cluster->ways.n - 1;
    return true;
}

bool
alloc_cluster_follow(struct cli *cli, struct place_ways trained,
                     struct alloc_cluster *cluster)
{
    char text[PLACE_WAYS_MAX];
    place_ways_format(place_ways_suiting(trained, cluster->net), text);
    if (!*text)
        return true;
    place_list_free(&cluster->ways);
    return alloc_cluster_place_each(cli, "heuristic", text, cluster);
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
    place_list_free(&cluster->ways);
    *cluster = (struct alloc_cluster){.down = NULL};
}

bool
alloc_cluster_compare(struct cli *cli, const struct alloc_cluster *cluster,
                      const char *file, struct place_ways trained)
{
    struct place_ways here = {.n = 0};
    char before[PLACE_WAYS_MAX], suiting[PLACE_WAYS_MAX], now[PLACE_WAYS_MAX];
    if (!place_ways_add(&here, &cluster->placer, cluster->more, cluster->nmore,
                        &cli->err))
        return false;
    place_ways_format(trained, before);
    place_ways_format(place_ways_suiting(trained, cluster->net), suiting);
    place_ways_format(here, now);
    if (trained.n && strcmp(suiting, now) != 0)
        cli_warn(
            cli,
            "%s was trained with --heuristic %s, but jobs are placed with %s: it may "
            "block more jobs than the other rules of --choose",
            file, before, now);
    return true;
}
