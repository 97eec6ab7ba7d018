/*
 * rampipe/net_ramp.h - RAMP, a kind of cluster, for what knows its shape.
 *
 * A RAMP cluster has C communication groups of R racks of S servers (R <= C); a server is
 * c-r-s, its index (c*R + r)*S + s. Every pair of servers has a direct optical channel,
 * so jobs that share no server never wait for each other.
 *
 * Source: RAMP, as the ddls simulator has it ("Partitioning Distributed Compute Jobs with
 * Reinforcement Learning and Graph Neural Networks").
 */
#ifndef RAMPIPE_NET_RAMP_H
#define RAMPIPE_NET_RAMP_H

#include "rampipe/net_kind.h"

REC_BEGIN_DECLS

/** The rate of a transceiver of RAMP in a collective. */
enum net_collective_rate {
    NET_COLLECTIVE_PUBLISHED, /* bandwidth / C / C: as published, divided by C twice */
    NET_COLLECTIVE_NODE /* bandwidth / C: C transceivers share the node's bandwidth */
};

struct net_ramp {
    struct net net;
    uint32_t shape[3];  /* C, R, S */
    double bandwidth;   /* of a node, bytes/s */
    double propagation; /* seconds */
    double io;          /* seconds, at each end */
    enum net_collective_rate collective_rate;
};

/** The published RAMP's parameters: bytes/s, seconds, seconds, bytes. */
#define NET_RAMP_BANDWIDTH 1.6e12
#define NET_RAMP_PROPAGATION 50e-9
#define NET_RAMP_IO 100e-9
#define NET_RAMP_MEMORY 80e9

/** Makes a RAMP with the values of *like, which it checks; like->net.kind may be NULL.
 * NULL: *err. The caller frees it with net_free(). */
struct net *net_ramp_new(const struct net_ramp *like,
                         struct rec_error *err) REC_MUST_CHECK;
/** The RAMP that a cluster is; NULL: it is of another kind. */
const struct net_ramp *net_ramp_of(const struct net *net);

/** Reads CxRxS, three integers >= 1 whose product is at most 2^24; *err says what would
 * be right. */
bool net_ramp_parse_shape(const char *text, uint32_t shape[3],
                          struct rec_error *err) REC_MUST_CHECK;

/* ---- legal blocks -------------------------------------------------------- */

/**
 * A walk over the legal shapes of k servers inside `limit`. They come from the factor
 * pairs (p, i) of k, p = k/i: square (q, q, i) with q*q = p, and flat (p, 1, i) and (p,
 * i, 1). The sources allow the flat ones only if p fits both C and R, and i fits S. Set
 * limit, k, i = 1, square and flat, then call net_ramp_next_shape() for each shape.
 */
struct net_ramp_shapes {
    const uint32_t *limit; /* C, R, S of the cluster or of the block around them */
    uint32_t k, i;
    int which;         /* next of the three shapes of (p, i); 0 at the start */
    bool square, flat; /* which shapes are wanted */
    uint32_t shape[3]; /* the result */
};

/** The next shape; false: there is none left. */
bool net_ramp_next_shape(struct net_ramp_shapes *shapes);
/** True if a block of `parts` servers has a legal shape on an empty cluster of this
 * shape. It is the published simulator's test of a valid degree, which leaves out the
 * two fallback shapes, diagonal and column. */
bool net_ramp_has_block(const uint32_t shape[3], uint32_t parts);
/** True if an op of `parts` parts can be placed on an empty cluster of this shape: in a
 * block as above, or in a column, which has up to C servers. */
bool net_ramp_is_legal(const uint32_t shape[3], uint32_t parts);

/* ---- communication ------------------------------------------------------- */

/**
 * Time of a collective among servers that differ in g communication groups, r racks and s
 * server positions, with `bytes` in all, seconds: up to four sub-steps over [g, min(g,s),
 * r, ceil(s/C)], each propagation + 2 io + bytes/rate, there and back, and the reduction
 * in between at min(2e12 AI, 130e12) FLOP/s. The rate is that of the transceivers in use,
 * each by collective_rate. Servers that differ only in their position in the rack cost
 * nothing, as published.
 */
double net_ramp_collective_seconds(const struct net_ramp *ramp, uint32_t g, uint32_t r,
                                   uint32_t s, double bytes);
/** Time of a transfer between two servers, propagation + 2 io + bytes/(bandwidth/C),
 * seconds. */
double net_ramp_one_to_one_seconds(const struct net_ramp *ramp, double bytes);

REC_END_DECLS

#endif
