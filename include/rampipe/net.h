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

/** At what rate a transceiver of RAMP sends in a collective. */
enum net_collective_rate {
    NET_COLLECTIVE_PUBLISHED, /* bandwidth / C / C: the division counts twice */
    NET_COLLECTIVE_NODE       /* bandwidth / C: C transceivers share the node's */
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

/** What is sent in a placed graph. */
struct net_traffic {
    uint64_t flows;       /* deps that cross servers with bytes > 0 */
    uint64_t collectives; /* as the reference counts them */
    double flow_bytes;
};

/** Room for any server's name. */
#define NET_NAME_MAX 36

/** A kind of cluster, named by the first field of its record. */
struct net_kind {
    const char *name;
    bool (*check)(const struct net_cluster *cluster, struct rec_error *err);
    uint32_t (*servers)(const struct net_cluster *cluster);
    size_t (*format)(const struct net_cluster *cluster, uint32_t server,
                     char name[NET_NAME_MAX]);
    bool (*parse)(const struct net_cluster *cluster, struct rec_str name,
                  uint32_t *server);
    /* the fields after KIND, and keys; a record has its fixed fields */
    bool (*read)(struct net_cluster *cluster, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err);
    void (*write)(const struct net_cluster *cluster, struct rec_writer *writer);
    uint32_t numbers; /* that a geometry has for each server */
    bool (*geometry)(const struct net_cluster *cluster, const uint32_t *server,
                     uint32_t n, uint32_t *numbers, struct rec_error *err);
    bool (*transfer_times)(const struct net_cluster *cluster, const struct graph *graph,
                           const uint32_t *server_of_op, double *seconds,
                           struct net_traffic *traffic, struct rec_error *err);
};

extern const struct net_kind net_ramp;
/** All kinds; NULL ends. */
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
/** Checks sizes, and what the kind demands: R <= C. */
bool net_check(const struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
uint32_t net_servers(const struct net_cluster *cluster);
size_t net_format_server(const struct net_cluster *cluster, uint32_t server,
                         char name[NET_NAME_MAX]);
/** Reads c-r-s; false if there is no such server. */
bool net_parse_server(const struct net_cluster *cluster, struct rec_str name,
                      uint32_t *server) REC_MUST_CHECK;
bool net_read(const struct rec_reader *reader, const struct rec *rec,
              struct net_cluster *cluster, struct rec_error *err) REC_MUST_CHECK;
void net_write(const struct net_cluster *cluster, struct rec_writer *writer);

/**
 * How n servers lie to each other, as net_geometry_numbers() numbers: lists of servers
 * with equal numbers cost the same, whatever is laid out on them.
 */
bool net_geometry(const struct net_cluster *cluster, const uint32_t *server, uint32_t n,
                  uint32_t *numbers, struct rec_error *err) REC_MUST_CHECK;
size_t net_geometry_numbers(const struct net_cluster *cluster, uint32_t n);

/* ---- legal blocks -------------------------------------------------------- */

/**
 * The legal shapes of k servers inside `limit`, from the factor pairs (p, i) of k with
 * p = k/i: square (q, q, i) with q*q = p, flat (p, 1, i) and (p, i, 1). The sources allow
 * the flat ones only if p fits both C and R, and i fits S. Set limit, k, i = 1, square
 * and flat, then take shapes with net_next_shape().
 */
struct net_shapes {
    const uint32_t *limit; /* C, R, S: of the cluster or the block they are legal in */
    uint32_t k, i;
    int which;
    bool square, flat;
    uint32_t shape[3];
};

/** The next shape; false: there is none left. */
bool net_next_shape(struct net_shapes *shapes);
/** True if a block of `parts` servers has a legal shape on an empty cluster (without the
 * two fallback shapes, diagonal and column), the simulator's test of a valid degree. */
bool net_has_block(const uint32_t shape[3], uint32_t parts);
/** The same with the fallback shapes, which have up to C servers: whether an op of so
 * many parts can be placed on an empty cluster. */
bool net_is_legal(const uint32_t shape[3], uint32_t parts);
/** All numbers for which net_is_legal(), as text: "1 to 4, 6, 8"; "..." if there is no
 * room for more. */
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
/** propagation + 2 io + bytes/(bandwidth/C), seconds. */
double net_ramp_one_to_one_seconds(const struct net_cluster *cluster, double bytes);

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

REC_END_DECLS

#endif
