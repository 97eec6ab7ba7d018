/*
 * lib/net/rounds.h - how the rounds of an exchange are made.
 *
 *     rounds.c    algorithms
 *     members.c   the order of the members
 *     torus.c     algorithm=torus
 *
 * Transfers are added, then the round that they are is ended. If memory ends, `ok` is
 * false from then on, and no function does anything more.
 */
#ifndef RAMPIPE_NET_ROUNDS_H
#define RAMPIPE_NET_ROUNDS_H

#include "rampipe/net_kind.h"

struct net_maker {
    struct net_rounds *rounds;
    size_t first; /* transfer of the round that is being made */
    bool back;    /* all transfers go the other way */
    bool ok;      /* else *err */
    struct rec_error *err;
};

/** Adds a transfer. */
void rounds_send(struct net_maker *maker, uint32_t from, uint32_t to, double share);
/** Ends a round, which stands for `times` equal ones; each waits for so many latencies,
 * and sends `bytes` by each transfer. Without transfers it is none. */
void rounds_end(struct net_maker *maker, double times, double latencies, double bytes);
/** The least k with 2^k >= n. */
uint32_t rounds_log2_up(uint32_t n);

/** The members of an exchange, those of one node one after another. */
struct members {
    uint32_t *server;
    uint32_t n;
    uint32_t *first; /* node j has server[first[j]..first[j + 1]) */
    uint32_t nodes;
    uint32_t least, most; /* servers of a node */
};

/** Sorts the servers by their nodes, which come in the order in which they first appear,
 * so that lists with equal geometries are sorted alike. */
bool members_sort(const struct net *net, const uint32_t *server, uint32_t n,
                  struct members *members, struct rec_error *err) REC_MUST_CHECK;
void members_free(struct members *members);
/** Sorts servers so that those that lie together on any level (pod, leaf, node) follow
 * each other. What they lie in comes in the order in which it first appears. */
bool members_by_levels(const struct net *net, const uint32_t *server, uint32_t n,
                       uint32_t *sorted, struct rec_error *err) REC_MUST_CHECK;

#endif
