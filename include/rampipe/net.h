/*
 * rampipe/net.h - clusters: how servers are named and lie, which blocks are legal, how
 * long data take.
 *
 * A RAMP cluster has C communication groups of R racks of S servers (R <= C); a server is
 * c-r-s, its index (c*R + r)*S + s. Every pair of servers has a direct optical channel,
 * so jobs that share no server never wait for each other.
 *
 * Source: RAMP, as the ddls simulator has it ("Partitioning Distributed Compute Jobs with
 * Reinforcement Learning and Graph Neural Networks").
 */
#ifndef RAMPIPE_NET_H
#define RAMPIPE_NET_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

/** The published cluster's parameters: bytes/s, seconds, seconds, bytes. */
#define NET_RAMP_BANDWIDTH 1.6e12
#define NET_RAMP_PROPAGATION 50e-9
#define NET_RAMP_IO 100e-9
#define NET_RAMP_MEMORY 80e9

struct net_cluster {
    uint32_t shape[3];  /* C, R, S */
    double bandwidth;   /* of a node, bytes/s */
    double memory;      /* of a server, bytes; may be inf */
    double propagation; /* seconds */
    double io;          /* seconds, at each end */
};

/** Reads CxRxS, three integers >= 1 whose product is at most 2^24; *err says what would be
 * right. */
bool net_parse_shape(const char *text, uint32_t shape[3],
                     struct rec_error *err) REC_MUST_CHECK;
/** Checks R <= C and sizes. */
bool net_check(const struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
uint32_t net_servers(const struct net_cluster *cluster);
/** Room for any server's name. */
#define NET_NAME_MAX 36
size_t net_format_server(const struct net_cluster *cluster, uint32_t server,
                         char name[NET_NAME_MAX]);
/** Reads c-r-s; false if there is no such server. */
bool net_parse_server(const struct net_cluster *cluster, struct rec_str name,
                      uint32_t *server) REC_MUST_CHECK;
bool net_read(const struct rec_reader *reader, const struct rec *rec,
              struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
void net_write(const struct net_cluster *cluster, struct rec_writer *writer);

/* ---- legal blocks -------------------------------------------------------- */

/**
 * The legal shapes of k servers inside `limit`, from the factor pairs (p, i) of k with
 * p = k/i: square (q, q, i) with q*q = p, flat (p, 1, i) and (p, i, 1). The sources allow
 * the flat ones only if p fits both C and R, and i fits S. Set limit, k, i = 1, square
 * and flat, then take shapes with net_next_shape().
 */
struct net_shapes {
    const uint32_t *limit; /* C, R, S */
    uint32_t k, i;
    int which;
    bool square, flat;
    uint32_t shape[3];
};

/** The next shape; false: there is none left. */
bool net_next_shape(struct net_shapes *shapes);
/** True if a block of `parts` servers has a legal shape on an empty cluster (without the
 * two fallback shapes), the simulator's test of a valid degree. */
bool net_has_block(const uint32_t shape[3], uint32_t parts);

/* ---- communication ------------------------------------------------------- */

/**
 * Time of a collective among servers that differ in g communication groups, r racks and s
 * server positions, with `bytes` in all, seconds: up to four sub-steps over [g, min(g,s),
 * r, ceil(s/C)], each propagation + 2 io + bytes/rate, there and back, and the reduction
 * in between at min(2e12 AI, 130e12) FLOP/s. Servers that differ only in their position
 * in the rack cost nothing, as published.
 */
double net_collective_seconds(const struct net_cluster *cluster, uint32_t g, uint32_t r,
                              uint32_t s, double bytes);
/** propagation + 2 io + bytes/(bandwidth/C), seconds. */
double net_one_to_one_seconds(const struct net_cluster *cluster, double bytes);

struct net_traffic {
    uint64_t flows;       /* deps that cross servers with bytes > 0 */
    uint64_t collectives; /* as the reference counts them */
    double flow_bytes;
};

/**
 * The time of every dep of a placed graph: seconds[ndeps], 0 when it is no flow. The
 * out-deps of a split forward op are one collective if the deps' sources and destinations
 * are the same servers, equally often; so are the in-deps of a split backward op; each
 * pair of sync deps is one; all others are one to one.
 */
bool net_transfer_times(const struct net_cluster *cluster, const struct graph *graph,
                        const uint32_t *server_of_op, double *seconds,
                        struct net_traffic *traffic,
                        struct rec_error *err) REC_MUST_CHECK;

#endif
