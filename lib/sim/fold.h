/*
 * lib/sim/fold.h - transfers among many servers, as classes of flows that are alike.
 *
 *     group     transfers that start together and send as many bytes each: from each of
 *               some servers to each other one, or those of a list
 *     classes   of the flows of all groups (flow_classes_find()): those of a class have
 *               one rate at every instant, whenever groups start, and how often they do
 *
 * 16,384 servers that send to each other are 268 million flows, which are enumerated and
 * never stored: as fans, where the cluster has some (struct net_each).
 */
#ifndef SIM_FOLD_H
#define SIM_FOLD_H

#include "rampipe/flow.h"
#include "rampipe/net.h"

/** The most classes: more need memory as flows do that are not folded. */
enum { SIM_FOLD_CLASSES_MAX = 1 << 18 };

/** The groups of a carrier. */
struct sim_fold;

/** A fold without groups, of a cluster that has links. NULL: *err. */
struct sim_fold *sim_fold_new(const struct net *net,
                              struct rec_error *err) REC_MUST_CHECK;
/** `fold` may be NULL. */
void sim_fold_free(struct sim_fold *fold);
/** Adds n transfers, or, if `transfer` is NULL, those from each of n servers to each
 * other one. *group is the number of the group, the same for the same transfers. */
bool sim_fold_add(struct sim_fold *fold, const struct net_transfer *transfer,
                  const uint32_t *server, uint32_t n, uint32_t *group,
                  struct rec_error *err) REC_MUST_CHECK;
/** The largest latency of a route of a group, seconds. */
double sim_fold_latency(const struct sim_fold *fold, uint32_t group);
/** What a group was made of; *transfer NULL: *n servers send to each other. */
void sim_fold_group(const struct sim_fold *fold, uint32_t group,
                    const struct net_transfer **transfer, const uint32_t **server,
                    uint32_t *n);
/** How many groups there are. */
uint32_t sim_fold_groups(const struct sim_fold *fold);

/** The classes of the flows of all groups. Starts as {0}. */
struct sim_classes {
    struct flow_classes *found; /* NULL: none were looked for */
    uint32_t *first;            /* per group, and one more: its part of class[] */
    uint32_t *class;
    uint32_t groups;
};

/** Finds the classes. capacity[] and label[] (may be NULL) are per link of the cluster:
 * links of different labels are told apart. REC_USAGE: there are too many classes. */
bool sim_fold_find(struct sim_fold *fold, const double *capacity, const uint32_t *label,
                   struct sim_classes *classes, struct rec_error *err) REC_MUST_CHECK;
/** Leaves {0}. */
void sim_classes_free(struct sim_classes *classes);

#endif
