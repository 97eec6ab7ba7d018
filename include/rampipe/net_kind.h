/*
 * rampipe/net_kind.h - how a kind of cluster is made: only files of lib/net, and programs
 * that add a kind of their own, include this.
 *
 * A new kind is a file: a struct whose first member is a struct net, its functions, and a
 * row struct net_kind that names them. The row goes into NET_KINDS below, and its record
 * into record_table.h. HACKING.md, "A kind of cluster", says more.
 */
#ifndef RAMPIPE_NET_KIND_H
#define RAMPIPE_NET_KIND_H

#include "rampipe/net.h"

REC_BEGIN_DECLS

enum { NET_LEVELS_MAX = 6 };

/** How the sync deps of an op are exchanged, an all-reduce among its parts. */
enum net_algorithm {
    NET_DIRECT,           /* each part sends its share to each other one */
    NET_RING,             /* on a ring, or several that leave a node side by side */
    NET_TREE,             /* on two binary trees, half of the bytes each */
    NET_HALVING_DOUBLING, /* with partners that are ever farther away */
    NET_HIERARCHICAL,     /* in each node, then among nodes, then in each node */
    NET_IN_SWITCH,        /* switches add up */
    NET_TORUS,            /* along one dimension after the other */
    NET_ALGORITHMS
};

/** The rounds of an exchange while they are being made (lib/net/rounds.h). */
struct net_maker;

/** Whether routes differ in nothing but one link, for many servers at once. */
enum net_fans {
    NET_NO_FANS,
    NET_FANS_FROM, /* the routes from the servers of a port (number / port) to a server:
                      they differ in the first link */
    NET_FANS_TO,   /* the routes to the servers of a port (number % port) from a server:
                      they differ in the last link */
};

/** What kinds with links keep. All is 0 for kinds without links. */
struct net_routes {
    uint32_t nodes, links; /* how many there are; 0 links: nothing is shared */
    uint32_t longest;      /* no route has more links */
    uint32_t node;         /* servers of a node whose inside is faster, numbered one after
                              another; 0 or 1: there are none */
    enum net_algorithm algorithm;
    /* Fans: of all routes but those inside a node, or without nodes from a server to
       itself. The link in which a route differs is the same whatever the other server,
       and is like the others of its port. */
    enum net_fans fans;
    uint32_t port;
    bool in_switch; /* there is a switch above the servers, so that it may add up */
    /* For lower bounds; those of different servers may be taken together. */
    double latency;   /* the least of a route between two servers, seconds */
    double bandwidth; /* the largest of a route, bytes/s */
    double leaving;   /* the largest sum of the capacities that leave a server, bytes/s */
};

/** Which system a cluster is, in tables of measured times of collectives. */
struct net_measures {
    char system[64]; /* its key system=; "": it has none */
    uint32_t node;   /* servers of a node, numbered one after another;
                                             0: its kind has no system= */
    const struct collective_table *table; /* borrowed; NULL: none */
};

/** What every cluster begins with. */
struct net {
    const struct net_kind *kind;
    double memory;                          /* of a server, bytes; may be infinite */
    uint32_t nlevels;                       /* set by net_set_levels() */
    struct net_level level[NET_LEVELS_MAX]; /* as net_levels() has them */
    struct net_routes routes;
    struct net_measures measured; /* kinds with system= set `node` */
    struct health *health; /* its stragglers and faults, kept by net.h's functions; NULL:
                              there are none, as when `read` returns */
};

/** A row of the table of kinds. Functions are those of net.h without the prefix net_.
 * What is not marked as optional must be there. */
struct net_kind {
    const char *name; /* the first field of the cluster record */
    /* Stands between the numbers of a server's name, one for each level: of server 1 in
     * pod 0 "0.1". */
    char mark;
    /* For each of the record's fields after KIND, the value that it has where net_parse()
     * is not given one; NULL: it must be given. Optional: all must be given. */
    const char *const *defaults;
    /* Reads the fields after KIND, and the keys; the fixed fields are known to be there.
     * NULL: *err, with file and line. */
    struct net *(*read)(const struct rec_reader *reader, const struct rec *rec,
                        struct rec_error *err);
    /* Writes the fields after KIND, and the keys. */
    void (*write)(const struct net *net, struct rec_writer *writer);
    void (*free)(struct net *net); /* optional: free() alone */
    void (*describe)(const struct net *net, char text[NET_TEXT_MAX]);

    /* Blocks. Optional, all four: without them a unit may go to any servers. */
    bool (*has_block)(const struct net *net, uint32_t parts);
    bool (*is_legal)(const struct net *net, uint32_t parts);
    uint64_t (*count_blocks)(const struct net *net, uint32_t k);
    void (*block)(const struct net *net, uint32_t k, uint64_t which, uint32_t *server);

    /* How many numbers a geometry has for each server. Optional, both: without `geometry`
     * two lists of servers cost the same if the same servers lie together on each
     * level. */
    uint32_t numbers;
    bool (*geometry)(const struct net *net, const uint32_t *server, uint32_t n,
                     uint32_t *numbers, struct rec_error *err);
    enum graph_sync sync;
    bool uniform; /* a message takes equally long from any server to any other one */
    bool (*alone)(const struct net *net, const struct net_exchange *exchange, size_t n,
                  double *seconds, struct rec_error *err);

    /* Links and routes. Optional, all three: without them nothing is shared. `routes` of
     * the cluster says how many there are. `node_name` gets nodes that are no servers. */
    void (*link)(const struct net *net, uint32_t i, struct net_link *link);
    uint32_t (*route)(const struct net *net, uint32_t from, uint32_t to, uint32_t *link);
    void (*node_name)(const struct net *net, uint32_t node, char name[NET_NODE_MAX]);
    /* Optional: makes the rounds of algorithm=torus, of an all-reduce of S bytes, or
     * (half) of a reduce-scatter. REC_DATA: these servers cannot exchange so. */
    bool (*by_dimension)(const struct net *net, const struct net_exchange *exchange,
                         bool half, double bytes, struct net_maker *maker);

    /* Parts: records behind the cluster's own. Optional, all three: there are none. */
    bool (*add)(struct net *net, const struct rec_reader *reader, const struct rec *rec,
                struct rec_error *err);
    bool (*close)(struct net *net, struct rec_error *err);
    void (*write_parts)(const struct net *net, struct rec_writer *writer);

    /* Names of servers. Optional, both: without them they follow from the levels. */
    const char *(*server_name)(const struct net *net, uint32_t server);
    bool (*find_server)(const struct net *net, struct rec_str name, uint32_t *server);
};

/** Reads n fields from field `first` on: how many there are on each level inside one of
 * the level above. False: *err, also if there would be more than 2^24 servers. */
bool net_get_counts(const struct rec_reader *reader, const struct rec *rec, size_t first,
                    uint32_t n, uint32_t *count, struct rec_error *err) REC_MUST_CHECK;
/** Reads a text as "4x2x8": up to `room` numbers >= 1, whose product is at most 2^24.
 * Returns how many there are; 0: *err, with file and line. */
uint32_t net_get_shape(const struct rec_reader *reader, const struct rec *rec,
                       size_t index, uint32_t room, uint32_t *count,
                       struct rec_error *err) REC_MUST_CHECK;
/** Reads BANDWIDTH (> 0), LATENCY and MEMORY from field `first` on. */
bool net_get_rates(const struct rec_reader *reader, const struct rec *rec, size_t first,
                   double *bandwidth, double *latency, double *memory,
                   struct rec_error *err) REC_MUST_CHECK;
/** Reads a key that is a bandwidth (> 0); without it *bandwidth stays. */
bool net_key_bandwidth(const struct rec_reader *reader, const struct rec *rec,
                       const char *key, double *bandwidth,
                       struct rec_error *err) REC_MUST_CHECK;
/** Reads the key algorithm=; without it the algorithm stays. Only clusters with nodes
 * have hierarchical, those with `in_switch` in-switch, and kinds with `by_dimension`
 * torus. */
bool net_key_algorithm(const struct rec_reader *reader, const struct rec *rec,
                       struct net *net, struct rec_error *err) REC_MUST_CHECK;
/** Writes the key algorithm=, but for direct. */
void net_write_algorithm(const struct net *net, struct rec_writer *writer);
/** Links and nodes are numbered with 32 bits. False: there are too many, and *err says
 * so. */
bool net_check_links(const struct rec_reader *reader, double links, double nodes,
                     struct rec_error *err) REC_MUST_CHECK;
/** The function `alone` of kinds with routes: counts what each link carries.
 * lib/net/collective.c says how. */
bool net_alone_by_links(const struct net *net, const struct net_exchange *exchange,
                        size_t n, double *seconds, struct rec_error *err) REC_MUST_CHECK;

/** Replaces numbers[0], numbers[step], ... (n of them, below `names`) by numbers from 1
 * on, in the order in which they first appear: for a geometry. */
bool net_rename(uint32_t *numbers, uint32_t n, size_t step, uint32_t names,
                struct rec_error *err) REC_MUST_CHECK;

/** Sets the levels of a cluster: name[0] is that of the whole, which has count[0] of
 * name[1], each of which has count[1] of name[2], to count[n - 1]. The names are kept. */
void net_set_levels(struct net *net, uint32_t n, const char *const *name,
                    const uint32_t *count);
/** A copy on the heap of what begins with *net and has `size` bytes. NULL: *err. */
struct net *net_keep(const struct net *net, size_t size,
                     struct rec_error *err) REC_MUST_CHECK;

/** All kinds; NULL ends the table. */
extern const struct net_kind *const net_kinds[];
extern const struct net_kind net_ramp, net_island, net_fat_tree, net_rail, net_torus,
    net_dragonfly, net_custom;
#define NET_KINDS                                                                 \
    &net_ramp, &net_island, &net_fat_tree, &net_rail, &net_torus, &net_dragonfly, \
        &net_custom

REC_END_DECLS

#endif
