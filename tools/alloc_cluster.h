/* The cluster that jobs are placed on, and how. Each tool whose .ggo includes
 * "alloc_cluster" has the option --down. */
#ifndef RAMPIPE_ALLOC_CLUSTER_H
#define RAMPIPE_ALLOC_CLUSTER_H

#include "rampipe/cli.h"
#include "rampipe/place.h"

/* Becomes fields of struct alloc_admission_options and the like. Starts as {0}; must be
 * freed even after an error. */
struct alloc_cluster {
    struct net *net; /* owned */
    struct place_options placer;
    struct place_options *more; /* other ways of placing, of the list */
    uint32_t nmore;
    struct place_list ways; /* if several are allowed */
    uint32_t *down;         /* owned: servers out of service */
    uint32_t ndown;
};

/* Sets how jobs are placed on cluster->net, from NAME or NAME:ARGUMENT, the text of
 * --option; NULL: in the way that is the default there. False: cli->err. */
bool alloc_cluster_place(struct cli *cli, const char *option, const char *text,
                         struct alloc_cluster *cluster) REC_MUST_CHECK;
/* The same of a list, separated by commas, or of "any", all ways that suit cluster->net:
 * the first one becomes cluster->placer. */
bool alloc_cluster_place_each(struct cli *cli, const char *option, const char *text,
                              struct alloc_cluster *cluster) REC_MUST_CHECK;
/* The same of the ways that a policy was trained with, as far as they suit cluster->net.
 * None: nothing changes. */
bool alloc_cluster_follow(struct cli *cli, struct place_ways trained,
                          struct alloc_cluster *cluster) REC_MUST_CHECK;
/* Reads the list of --down; NULL: none. False: cli->err. */
bool alloc_cluster_down(struct cli *cli, const char *text,
                        struct alloc_cluster *cluster) REC_MUST_CHECK;
void alloc_cluster_free(struct alloc_cluster *cluster);
/* Warns if the policy in a file was trained with other ways of placing than this
 * cluster's, or in another order. `trained` has none: not known. False: cli->err. */
bool alloc_cluster_compare(struct cli *cli, const struct alloc_cluster *cluster,
                           const char *file, struct place_ways trained) REC_MUST_CHECK;

#endif
