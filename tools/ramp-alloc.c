/* ramp-alloc [OPTION]... [FILE]... - jobs -> layouts, allocs and blocks on a RAMP. */
#include "ggo/ramp-alloc.h"
#define CLI_UNSHOWN "map", "agent-timeout",
#include "main.h"

#include "alloc_rules.h"
#include "ramp_cluster.h"

static bool
run(struct cli *cli, const struct ramp_alloc_args *args)
{
    struct ramp_cluster_options options = RAMP_CLUSTER_OPTIONS(args);
    const struct alloc_rules rules = {
        ALLOC_RULES(args), .follow = !args->heuristic_given,
        .refusal = "the stream has a cluster already: it has been through an allocator"};
    struct alloc_cluster cluster = {.net = NULL};
    bool ok;
    options.several = true;
    ok = ramp_cluster_read(cli, &options, NULL, &cluster);
    /* The actions of an agent may be numbered by the list that was given. */
    if (ok && args->agent_given && cluster.ways.left_out.n)
        ok = cli_usage(cli, "--agent needs a --heuristic of which nothing is left out");
    ok = ok && alloc_rules_run(cli, &rules, &cluster);
    alloc_cluster_free(&cluster);
    return ok;
}
