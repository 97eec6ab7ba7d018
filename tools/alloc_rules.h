/* Admission: which of a stream's jobs start, when and where. It is what alloc and
 * ramp-alloc do; each tool whose .ggo includes "alloc_rules" and "alloc_map" has the
 * options. */
#ifndef RAMPIPE_ALLOC_RULES_H
#define RAMPIPE_ALLOC_RULES_H

#include "alloc_cluster.h"

/* The texts of the options (tools/alloc_rules.ggo, alloc_map.ggo, graph_times.ggo). */
struct alloc_rules {
    bool choose_given, base_given, horizon_given, seed_given, agent_given,
        agent_timeout_given, order_given, map_given, allow_zero_given,
        whole_actions_given;
    const char *choose, *base, *horizon, *seed, *agent, *agent_timeout, *queue, *order;

    /* Sets how jobs are placed on cluster->net, which is that of a record in the stream.
     * NULL: the cluster is known before, and the stream may have none. */
    bool (*place)(struct cli *cli, void *context, struct alloc_cluster *cluster);
    void *context;
    const char *refusal; /* of a cluster in the stream, if there may be none */
    bool follow;         /* the heuristics of a policy replace those of the cluster */
    bool unplaced; /* refuse what an allocator writes, in a stream without cluster, too */
};
#define ALLOC_RULES(args)                                                               \
    .choose_given = (args)->choose_given, .base_given = (args)->base_given,             \
    .horizon_given = (args)->horizon_given, .seed_given = (args)->seed_given,           \
    .agent_given = (args)->agent_given,                                                 \
    .agent_timeout_given = (args)->agent_timeout_given,                                 \
    .order_given = (args)->order_given, .map_given = (args)->map_given,                 \
    .whole_actions_given = (args)->whole_actions_given,                                 \
    .allow_zero_given = (args)->allow_zero_given, .choose = (args)->choose_arg,         \
    .base = (args)->base_arg, .horizon = (args)->horizon_arg, .seed = (args)->seed_arg, \
    .agent = (args)->agent_arg, .agent_timeout = (args)->agent_timeout_arg,             \
    .queue = (args)->queue_arg, .order = (args)->order_arg

/* Reads the stream, and writes it with the decisions. *cluster is filled if it is known
 * before; the caller frees it. False: cli->err. */
bool alloc_rules_run(struct cli *cli, const struct alloc_rules *rules,
                     struct alloc_cluster *cluster) REC_MUST_CHECK;

#endif
