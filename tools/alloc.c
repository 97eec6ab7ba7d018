/* alloc [OPTION]... [FILE]... - jobs -> layouts, allocs and blocks on any cluster. */
#include "ggo/alloc.h"
#define CLI_UNSHOWN "map", "agent-timeout",
#define CLI_PATHS "collective-table",
#include "main.h"

#include "alloc_rules.h"
#include "collective_table.h"
#include "net_option.h"

struct settings {
    const struct alloc_args *args;
    struct collective_table table;
};

static bool
place(struct cli *cli, void *context, struct alloc_cluster *cluster)
{
    const struct settings *settings = context;
    const struct alloc_args *args = settings->args;
    struct rec_error why;
    if (args->collective_table_given &&
        !net_measure(cluster->net, &settings->table, &why))
        return cli_usage(cli, "--collective-table: %s", why.text);
    return alloc_cluster_place(cli, "place", args->place_arg, cluster) &&
           alloc_cluster_down(cli, args->down_arg, cluster);
}

static bool
run(struct cli *cli, const struct alloc_args *args)
{
    struct alloc_cluster cluster = {.net = NULL};
    struct settings settings = {.args = args};
    struct alloc_rules rules = {ALLOC_RULES(args), .unplaced = true, .context = &settings,
                                .refusal =
                                    "the stream has a cluster of its own: leave out "
                                    "--cluster, or take the record away"};
    bool ok = !args->collective_table_given ||
              collective_table_option(cli, args->collective_table_arg, &settings.table);
    if (!args->cluster_given)
        rules.place = place;
    else
        ok = ok && (cluster.net = net_option(cli, "cluster", args->cluster_arg)) &&
             place(cli, rules.context, &cluster);
    ok = ok && alloc_rules_run(cli, &rules, &cluster);
    alloc_cluster_free(&cluster);
    collective_table_free(&settings.table);
    return ok;
}
