/* alloc [OPTION]... [FILE]... - jobs -> layouts, allocs and blocks on any cluster. */
#include "ggo/alloc.h"
#define CLI_UNSHOWN "map", "agent-timeout",
#include "main.h"

#include "alloc_rules.h"
#include "net_option.h"

static bool
place(struct cli *cli, void *context, struct alloc_cluster *cluster)
{
    const struct alloc_args *args = context;
    return alloc_cluster_place(cli, "place", args->place_arg, cluster) &&
           alloc_cluster_down(cli, args->down_arg, cluster);
}

static bool
run(struct cli *cli, const struct alloc_args *args)
{
    struct alloc_cluster cluster = {.net = NULL};
    struct alloc_rules rules = {ALLOC_RULES(args), .unplaced = true,
                                .context = (struct alloc_args *)(uintptr_t)args,
                                .refusal =
                                    "the stream has a cluster of its own: leave out "
                                    "--cluster, or take the record away"};
    bool ok = true;
    if (!args->cluster_given)
        rules.place = place;
    else
        ok = (cluster.net = net_option(cli, "cluster", args->cluster_arg)) &&
             place(cli, rules.context, &cluster);
    ok = ok && alloc_rules_run(cli, &rules, &cluster);
    alloc_cluster_free(&cluster);
    return ok;
}
