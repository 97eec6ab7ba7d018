/*
 * A fat tree of switches, of which kinds of clusters are made. Its ends (adapters) are
 * numbered from 0. On level 0 `down[0]` ends share a leaf; on level s `down[s]` blocks of
 * the level below are a block. A switch of level s has a link to each block below it, and
 * `up[s]` links up; a block of level s has width[s] switches, so that each link up of a
 * switch below leads to another one:
 *
 *     width[0] = 1, width[s] = width[s - 1] up[s - 1]
 *
 * Routes go up only as far as needed, and choose among the links up by the number of
 * their destination (d-mod-k: Zahavi, "D-Mod-K routing providing non-blocking traffic for
 * shift permutations on real life fat trees", 2010): to end d over switch d mod width[s]
 * of a block of level s. So all messages to one end come down by the same switches.
 *
 * Links and nodes of a tree are numbered from 0. Link 2 i leads up, 2 i + 1 is the same
 * cable down: first those of the ends, then those of each level. Nodes are switches.
 */
#ifndef RAMPIPE_NET_TREE_H
#define RAMPIPE_NET_TREE_H

#include "rampipe/net_kind.h"

enum { TREE_MAX = 3 };

struct tree {
    uint32_t n;              /* levels of switches */
    uint32_t down[TREE_MAX]; /* set before tree_make(), as n */
    double taper[TREE_MAX];  /* links down of a switch over its links up; set before */
    double bandwidth;        /* of a link, bytes/s; set before */
    double latency;          /* of a link, seconds; set before */
    uint32_t width[TREE_MAX], blocks[TREE_MAX];
    uint32_t size[TREE_MAX];  /* ends of a block of the level */
    uint32_t cable[TREE_MAX]; /* the first one that leads to switches of the level */
    uint32_t node[TREE_MAX];  /* the first switch of the level */
    uint32_t ends, links, nodes;
};

/** Works out the rest. REC_DATA, with file and line: a switch would have a broken number
 * of links up, or there are too many links. */
bool tree_make(struct tree *tree, const struct rec_reader *reader,
               struct rec_error *err) REC_MUST_CHECK;
/** Describes a link: the node below is UINT32_MAX if that is end *end. */
void tree_link(const struct tree *tree, uint32_t i, struct net_link *link, uint32_t *end);
/** Lists the links from one end to another, each number with `base` added. */
uint32_t tree_route(const struct tree *tree, uint32_t from, uint32_t to, uint32_t base,
                    uint32_t *link);
/** Names a switch: "leaf 0.1", "spine 3". */
void tree_name(const struct tree *tree, uint32_t node, char name[NET_NODE_MAX]);

#endif
