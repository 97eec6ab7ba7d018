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

REC_BEGIN_DECLS

/* ---- clusters ------------------------------------------------------------ */

/** The rate of a transceiver of RAMP in a collective. */
enum net_collective_rate {
    NET_COLLECTIVE_PUBLISHED, /* bandwidth / C / C: as published, divided by C twice */
    NET_COLLECTIVE_NODE /* bandwidth / C: C transceivers share the node's bandwidth */
};

struct net_cluster {
    const struct net_kind *kind;
    uint32_t shape[3];  /* C, R, S */
    double bandwidth;   /* of a node, bytes/s */
    double memory;      /* of a server, bytes; may be inf */
    double propagation; /* seconds */
    double io;          /* seconds, at each end */
    enum net_collective_rate collective_rate;
};

/** What is sent in a step of a placed graph. */
struct net_traffic {
    uint64_t flows;       /* deps with bytes > 0 that cross servers */
    uint64_t collectives; /* groups of deps that count as one, see net_transfer_times() */
    double flow_bytes;    /* of the flows */
};

/** Room for the name of any server, with its NUL. */
#define NET_NAME_MAX 36

/** A kind of cluster. Each is a row of net_kinds; the functions are those below without
 * `kind`, for example check() is net_check(). */
struct net_kind {
    const char *name; /* the first field of the cluster record */
    bool (*check)(const struct net_cluster *cluster, struct rec_error *err);
    uint32_t (*servers)(const struct net_cluster *cluster);
    size_t (*format)(const struct net_cluster *cluster, uint32_t server,
                     char name[NET_NAME_MAX]);
    bool (*parse)(const struct net_cluster *cluster, struct rec_str name,
                  uint32_t *server);
    /* Reads the fields after KIND, and the keys; the fixed fields are known to be
     * there. */
    bool (*read)(struct net_cluster *cluster, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err);
    void (*write)(const struct net_cluster *cluster, struct rec_writer *writer);
    uint32_t numbers; /* how many numbers a geometry has for each server */
    bool (*geometry)(const struct net_cluster *cluster, const uint32_t *server,
                     uint32_t n, uint32_t *numbers, struct rec_error *err);
    bool (*transfer_times)(const struct net_cluster *cluster, const struct graph *graph,
                           const uint32_t *server_of_op, double *seconds,
                           struct net_traffic *traffic, struct rec_error *err);
};

extern const struct net_kind net_ramp;
/** All kinds; NULL ends the table. */
extern const struct net_kind *const net_kinds[];

/** The published RAMP's parameters: bytes/s, seconds, seconds, bytes. */
#define NET_RAMP_BANDWIDTH 1.6e12
#define NET_RAMP_PROPAGATION 50e-9
#define NET_RAMP_IO 100e-9
#define NET_RAMP_MEMORY 80e9

/** Reads CxRxS, three integers >= 1 whose product is at most 2^24; *err says what would
 * be right. */
bool net_parse_shape(const char *text, uint32_t shape[3],
                     struct rec_error *err) REC_MUST_CHECK;
/** Checks the bandwidth, and what the kind demands: of a RAMP R <= C. */
bool net_check(const struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
/** How many servers there are; they are numbered from 0. */
uint32_t net_servers(const struct net_cluster *cluster);
/** Writes the name of a server, c-r-s; returns its length. */
size_t net_format_server(const struct net_cluster *cluster, uint32_t server,
                         char name[NET_NAME_MAX]);
/** Reads c-r-s; false if there is no such server. */
bool net_parse_server(const struct net_cluster *cluster, struct rec_str name,
                      uint32_t *server) REC_MUST_CHECK;
/** Reads a cluster record of any kind, and checks it. */
bool net_read(const struct rec_reader *reader, const struct rec *rec,
              struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
void net_write(const struct net_cluster *cluster, struct rec_writer *writer);
/** Adds a field with the names of n servers to the record being written; `server` NULL:
 * servers 0 to n-1. */
void net_servers_field(const struct net_cluster *cluster, const uint32_t *server,
                       uint32_t n, struct rec_writer *writer);

/**
 * Describes how n servers lie to each other by net_geometry_numbers() numbers. Two lists
 * of servers with equal numbers cost the same, whatever graph is laid out on them: so a
 * simulated cost may be remembered for all of them.
 */
bool net_geometry(const struct net_cluster *cluster, const uint32_t *server, uint32_t n,
                  uint32_t *numbers, struct rec_error *err) REC_MUST_CHECK;
/** How many numbers the geometry of n servers has. */
size_t net_geometry_numbers(const struct net_cluster *cluster, uint32_t n);

/* ---- legal blocks -------------------------------------------------------- */

/**
 * A walk over the legal shapes of k servers inside `limit`. They come from the factor
 * pairs (p, i) of k, p = k/i: square (q, q, i) with q*q = p, and flat (p, 1, i) and (p,
 * i, 1). The sources allow the flat ones only if p fits both C and R, and i fits S. Set
 * limit, k, i = 1, square and flat, then call net_next_shape() for each shape.
 */
struct net_shapes {
    const uint32_t *limit; /* C, R, S of the cluster or of the block around them */
    uint32_t k, i;
    int which;         /* next of the three shapes of (p, i); 0 at the start */
    bool square, flat; /* which shapes are wanted */
    uint32_t shape[3]; /* the result */
};

/** The next shape; false: there is none left. */
bool net_next_shape(struct net_shapes *shapes);
/** True if a block of `parts` servers has a legal shape on an empty cluster of this
 * shape. It is the published simulator's test of a valid degree, which leaves out the
 * two fallback shapes, diagonal and column. */
bool net_has_block(const uint32_t shape[3], uint32_t parts);
/** True if an op of `parts` parts can be placed on an empty cluster of this shape: in a
 * block as above, or in a column, which has up to C servers. */
bool net_is_legal(const uint32_t shape[3], uint32_t parts);
/** Writes the numbers for which net_is_legal() is true, as "1 to 4, 6, 8"; "..." stands
 * for those that there is no room for. */
void net_format_legal_parts(const uint32_t shape[3], char *text, size_t room);

/* ---- communication ------------------------------------------------------- */

/**
 * Time of a collective among servers that differ in g communication groups, r racks and s
 * server positions, with `bytes` in all, seconds: up to four sub-steps over [g, min(g,s),
 * r, ceil(s/C)], each propagation + 2 io + bytes/rate, there and back, and the reduction
 * in between at min(2e12 AI, 130e12) FLOP/s. The rate is that of the transceivers in use,
 * each by cluster->collective_rate. Servers that differ only in their position in the
 * rack cost nothing, as published.
 */
double net_ramp_collective_seconds(const struct net_cluster *cluster, uint32_t g,
                                   uint32_t r, uint32_t s, double bytes);
/** Time of a transfer between two servers, propagation + 2 io + bytes/(bandwidth/C),
 * seconds. */
double net_ramp_one_to_one_seconds(const struct net_cluster *cluster, double bytes);

/**
 * Sets seconds[ndeps] to the time of every dep of a placed graph: 0 if it is not a flow,
 * because it stays on a server or has no bytes. The deps that leave a split forward op
 * are one collective if each server is as often a source as a destination of them; so are
 * those that enter a split backward op that has a twin. Each pair of sync deps between
 * two parts is a collective of its own. All other deps are one to one.
 */
bool net_transfer_times(const struct net_cluster *cluster, const struct graph *graph,
                        const uint32_t *server_of_op, double *seconds,
                        struct net_traffic *traffic,
                        struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
