/*
 * rampipe/net.h - clusters: how their servers are named, which sets of servers a job may
 * have, how long an exchange takes.
 *
 * A cluster is a struct net. What it is like is known to its kind alone, a row of
 * net_kinds[] with a file of its own (rampipe/net_kind.h says how to add one). Servers
 * are numbered from 0.
 */
#ifndef RAMPIPE_NET_H
#define RAMPIPE_NET_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** A cluster of any kind. */
struct net;

/** Room for the name of any server, with its NUL. */
#define NET_NAME_MAX 40
/** Room for a description of a cluster, with its NUL. */
#define NET_TEXT_MAX 80

/** True if there is a kind of cluster of this name. */
bool net_is_kind(struct rec_str name);
/**
 * Reads a cluster record of any kind, and checks it. NULL: *err. The caller owns it. Its
 * servers, their names and their memory are known from now on. The records that are parts
 * of it (links) follow: net_add() takes them, and net_close() ends them. Nothing else may
 * be asked before net_close().
 */
struct net *net_read(const struct rec_reader *reader, const struct rec *rec,
                     struct rec_error *err) REC_MUST_CHECK;
/** Takes a record for which rec_is_part(rec, REC_CLUSTER) is true, behind the cluster's
 * own. */
bool net_add(struct net *net, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err) REC_MUST_CHECK;
/** All parts have come: finds the routes. REC_DATA, with the file and line of the cluster
 * record: a server cannot be reached; with those of a fault: there is no such link. */
bool net_close(struct net *net, struct rec_error *err) REC_MUST_CHECK;

/** A cluster that is being read from a stream. Starts as {0}. */
struct net_reading {
    struct net *net; /* owned by the caller; NULL: none has come */
    bool open;       /* parts of it may still come */
};

/**
 * Takes the next record of a stream, of any type: a cluster record (if `net` is NULL) or
 * a part of one is read; any other record that cannot stand among the parts closes the
 * cluster. *taken, which may be NULL, says if the record was one of the cluster's. False:
 * *err.
 */
bool net_reading_take(struct net_reading *reading, const struct rec_reader *reader,
                      const struct rec *rec, bool *taken,
                      struct rec_error *err) REC_MUST_CHECK;
/** No more records come: closes the cluster, if it is open. */
bool net_reading_end(struct net_reading *reading, struct rec_error *err) REC_MUST_CHECK;

/**
 * Makes the cluster that a text describes: KIND:FIELD,FIELD,...,KEY=VALUE,... with the
 * fields and the keys of a cluster record, as "island:8,300e9,1e-6,80e9"; fields that a
 * kind has defaults for may be left out at the end. NULL: *err, REC_USAGE if the text is
 * wrong.
 */
struct net *net_parse(const char *text, struct rec_error *err) REC_MUST_CHECK;
/**
 * Finds the cluster that a user names: as net_parse(), but numbers may have units, as
 * "island:8,300GB/s,2us,80GB"; or, without a colon, a file whose first cluster record is
 * read. NULL: *err, REC_USAGE if the text is wrong, or the file has no cluster. The
 * caller owns it.
 */
struct net *net_find(const char *text, struct rec_error *err) REC_MUST_CHECK;
/** The cluster of a record, a line; `name` stands for its file in messages. NULL:
 * *err. */
struct net *net_find_record(const char *name, const char *line,
                            struct rec_error *err) REC_MUST_CHECK;
/** What descriptions of networks leave out. A rate or a latency may be NAN: unknown. */
struct net_assumed {
    double memory; /* of a server, bytes; may be infinite */
    /* For a matrix of nvidia-smi, one way: */
    double nvlink;  /* of one NVLink, bytes/s */
    double pcie;    /* of a device or a switch of PCIe, bytes/s */
    double socket;  /* of a host bridge to others, and of a socket, bytes/s */
    double latency; /* of a link, seconds */
};

/**
 * Reads a network that another program describes: the YAML of ASTRA-sim's analytical
 * networks, the text of a topology of SimAI, which begins with a digit, or the matrix of
 * `nvidia-smi topo -m`. NULL: *err, with file and line; REC_USAGE: what the matrix needs
 * is not known, or what only it needs was given. The caller owns the cluster, which is
 * closed.
 */
struct net *net_convert(struct rec_reader *reader, const struct net_assumed *assumed,
                        struct rec_error *err) REC_MUST_CHECK;
/** Writes a cluster record, and those of its parts. */
void net_write(const struct net *net, struct rec_writer *writer);
/** `net` may be NULL. */
void net_free(struct net *net);

/** How many servers there are, at least 1. */
uint32_t net_servers(const struct net *net);
/** Memory of a server, bytes; may be infinite. */
double net_memory(const struct net *net);
/** Says which cluster it is, for messages: "a 4x4x2 cluster". */
void net_describe(const struct net *net, char text[NET_TEXT_MAX]);
/** Writes the name of a server; returns its length. */
size_t net_format_server(const struct net *net, uint32_t server, char name[NET_NAME_MAX]);
/** Finds a server by its name. False: *err says that there is none in this cluster. */
bool net_parse_server(const struct net *net, struct rec_str name, uint32_t *server,
                      struct rec_error *err) REC_MUST_CHECK;
/** Adds a field with the names of n servers to the record being written; `server` NULL:
 * servers 0 to n-1. */
void net_servers_field(const struct net *net, const uint32_t *server, uint32_t n,
                       struct rec_writer *writer);

/* ---- which servers lie together ------------------------------------------ */

/** One size of what servers lie in together: the whole cluster, its pods, its leaves. */
struct net_level {
    const char *name; /* of one: "pod" */
    uint32_t servers; /* servers of each; they are numbered one after another */
};

/** The levels of a cluster from the largest to the smallest; each divides the one before
 * it. The last one is a single server. Returns how many there are, at least 1. */
size_t net_levels(const struct net *net, const struct net_level **level);

/** True if a job may have a unit of `parts` parts on an empty cluster, by the test of a
 * policy. For kinds without blocks: if there are as many servers. */
bool net_has_block(const struct net *net, uint32_t parts);
/** True if an op of `parts` parts can be placed on an empty cluster at all. */
bool net_is_legal(const struct net *net, uint32_t parts);
/** Writes the numbers for which net_is_legal() is true, as "1 to 4, 6, 8"; "..." stands
 * for those that there is no room for. */
void net_format_legal_parts(const struct net *net, char *text, size_t room);

/** True if a unit may go to any servers: this kind has no blocks. */
bool net_takes_any(const struct net *net);
/** How many sets of k servers there are that a unit of k parts may be put on, on an empty
 * cluster. For kinds without blocks: the runs of k servers in order of their numbers. */
uint64_t net_count_blocks(const struct net *net, uint32_t k);
/** Sets server[k] to set number `which`, which is less than net_count_blocks(). */
void net_block(const struct net *net, uint32_t k, uint64_t which, uint32_t *server);

/* ---- communication ------------------------------------------------------- */

/**
 * Describes how n servers lie to each other by net_geometry_numbers() numbers. Two lists
 * of servers with equal numbers cost the same, whatever graph is laid out on them: so a
 * simulated cost may be remembered for all of them. If there are stragglers, the last n
 * numbers are those of net_pace_class(), one for each server.
 */
bool net_geometry(const struct net *net, const uint32_t *server, uint32_t n,
                  uint32_t *numbers, struct rec_error *err) REC_MUST_CHECK;
/** How many numbers the geometry of n servers has. */
size_t net_geometry_numbers(const struct net *net, uint32_t n);

/** How the deps of a graph are exchanged, for graph_exchanges_make(). */
enum graph_sync net_sync(const struct net *net);
/** Which exchanges take equally long alone. */
enum graph_same net_same(const struct net *net);

/** What is exchanged among servers. */
struct net_exchange {
    enum graph_exchange_kind kind;
    const uint32_t *server; /* its members, all different; of a message SRC, DST. NULL:
                               any n servers that a unit of n parts may have */
    uint32_t n;
    /* What all members send in all, bytes, that to themselves included. From
     * GRAPH_ALL_REDUCE on: the size as nccl-tests counts it. Of an all-reduce, a
     * broadcast, a reduce and a send that is the buffer of a member; of an all-gather
     * what a member has afterwards; of a reduce-scatter and an all-to-all what a member
     * has before. A barrier has none. */
    double bytes;
    double flow; /* what goes from one server to another */
};

/**
 * Sets seconds[i] to the time that exchange[i] takes when nothing else is sent. Without
 * servers: to a lower bound of it over all sets of servers that are legal, or 0 if there
 * is none. Exchanges without servers need no memory, so they never fail.
 */
bool net_alone(const struct net *net, const struct net_exchange *exchange, size_t n,
               double *seconds, struct rec_error *err) REC_MUST_CHECK;

/** What the time of an exchange alone is made of, on a cluster with links. */
struct net_why {
    double latency; /* seconds of it */
    /* The link that takes most of the others: */
    uint32_t link;
    double seconds; /* that it takes, in all rounds in which it is the slowest; 0: no link
                       is */
    double bytes;   /* over it in these rounds */
    double flows;   /* transfers that cross it at once in these rounds, at most */
};
/** Fills *why for an exchange that has servers, whatever a table has measured. */
bool net_alone_why(const struct net *net, const struct net_exchange *exchange,
                   struct net_why *why, struct rec_error *err) REC_MUST_CHECK;

struct collective_table;

/**
 * From now on collectives take the times that a table has measured of the system that the
 * cluster is (system=), or that follow from them by its laws (rampipe/collective.h), not
 * those of an algorithm; net_alone() then fails (REC_DATA) if the table does not cover
 * one. Messages take the time of their route. Lower bounds are 0. `table` is borrowed.
 * The cluster is closed. REC_DATA: it has no system=.
 */
bool net_measure(struct net *net, const struct collective_table *table,
                 struct rec_error *err) REC_MUST_CHECK;
/** Says what the table says of one exchange. *is is false if there is no table, or the
 * exchange is no collective. REC_DATA: the table does not cover it; its members are
 * spread unevenly over nodes; it is larger than what was measured. */
bool net_measured(const struct net *net, const struct net_exchange *exchange, bool *is,
                  double *seconds, struct rec_error *err) REC_MUST_CHECK;

/* ---- links and routes ---------------------------------------------------- */

/**
 * A directed link. It joins two nodes: servers have the numbers 0 to net_servers() - 1,
 * switches (and whatever else forwards) those behind.
 */
struct net_link {
    uint32_t from, to; /* nodes */
    double capacity;   /* bytes/s, > 0 */
    double latency;    /* seconds */
};

/** How many links a cluster has. 0: its kind has none, and exchanges never share
 * anything. The cluster is closed. */
uint32_t net_links(const struct net *net);
/** Describes link i. */
void net_link(const struct net *net, uint32_t i, struct net_link *link);
/** How many nodes the links join, servers included. */
uint32_t net_nodes(const struct net *net);
/** Room for the name of any node, with its NUL. */
#define NET_NODE_MAX 80
/** Writes the name of a node: that of a server, or as "leaf 0.1"; returns its length. */
size_t net_format_node(const struct net *net, uint32_t node, char name[NET_NODE_MAX]);
/** Writes what the node lies in: "host" of a server, "leaf" of "leaf 0.1"; "node" of a
 * node of a custom cluster that is no server. */
void net_format_level(const struct net *net, uint32_t node, char name[NET_NODE_MAX]);
/** No route of the cluster has more links than this. */
uint32_t net_longest_route(const struct net *net);
/** Lists the links that a message goes through, in order, from one server to another; a
 * link may come twice. `link` has room for net_longest_route() numbers. The latency of
 * the route is the sum of theirs. Returns how many there are; 0 from a server to
 * itself. */
uint32_t net_route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link);

/* ---- stragglers and faults ----------------------------------------------- */

/** True if a server is slower or later than the others. */
bool net_has_stragglers(const struct net *net);
/** Sets how fast a server is, as a part of a healthy one's speed (0 to 1, above 0), and
 * by how many seconds the first op that it runs in a step starts later. */
void net_pace(const struct net *net, uint32_t server, double *speed, double *delay);
/** Servers with equal numbers have the same speed and delay; 0: the server is healthy. */
uint32_t net_pace_class(const struct net *net, uint32_t server);

/** From `time` on a link has `factor` times its capacity. */
struct net_fault {
    double time;   /* seconds, >= 0 */
    double factor; /* 0: it has failed; 1: it is well again */
    uint32_t link;
    const char *file; /* of the record, with its line */
    uint64_t line;
};
/** The faults of a cluster in order of time, and at one time of links. No link is there
 * twice at one time. Returns how many there are. The cluster is closed. */
size_t net_faults(const struct net *net, const struct net_fault **fault);

/** The name of the algorithm by which sync deps are exchanged (algorithm=); "direct":
 * each part sends to each other one. */
const char *net_algorithm(const struct net *net);

/** One server sends to another one. */
struct net_transfer {
    uint32_t from, to; /* servers */
    double share;      /* > 0: it sends this share of the bytes of its round; mostly 1 */
};

/** What is sent at the same time. */
struct net_round {
    double latencies; /* it waits for so many times the largest latency of a route of its
                         transfers, */
    double bytes;     /* then each transfer sends so many bytes, summed over what is
                         repeated */
    const struct net_transfer *transfer; /* NULL: each member sends to each other one */
    uint32_t n;                          /* transfers; 0 of NULL */
    double times, each; /* it stands for so many equal rounds of `each` bytes */
};

/** The rounds of an exchange, one after another: a round begins when the one before has
 * ended. Starts as {0}; net_rounds_make() may be called again, and uses its memory. */
struct net_rounds {
    struct net_round *round;
    uint32_t n;
    /* Owned by lib/net. */
    struct net_transfer *transfer;
    size_t ntransfers, transfer_room, round_room;
};

/**
 * What an exchange sends, by the algorithm of the cluster. Alone it takes the time of
 * net_alone() but for rounding: each round its latencies, and then what its links take
 * for all the bytes that go through them, of which the slowest counts. An exchange of one
 * server has no rounds. The exchange has servers. REC_DATA: the cluster has no links, or
 * these servers cannot exchange by its algorithm.
 */
bool net_rounds_make(const struct net *net, const struct net_exchange *exchange,
                     struct net_rounds *rounds, struct rec_error *err) REC_MUST_CHECK;
/** Leaves {0}. */
void net_rounds_free(struct net_rounds *rounds);

/* ---- each to each ------------------------------------------------------------- */

/** A route, or a fan: routes that differ in nothing but one link, their tip. Arrays are
 * valid until the next call. */
struct net_fan {
    const uint32_t *route;  /* a route, or the first one of the fan, its tip included */
    uint32_t n;             /* links of it */
    const uint32_t *shared; /* the links that all have: n - 1 of a fan, n of a route */
    /* A route for each tip of tip[ntips] but for tip[skip..skip + nskip); ntips = 0: it
       is no fan. The tips of a port are always the same, and valid as long as the struct
       net_each; tips differ in nothing but their number and their faults. */
    const uint32_t *tip;
    uint32_t ntips, skip, nskip;
    uint32_t port;
};

/** The routes from each of some servers to each other one: n^2 of them, but as fans for
 * kinds that have some, so that there are n times the ports. */
struct net_each;

/** server[n] are different servers, borrowed. Time: O(n log n). NULL: *err. */
struct net_each *net_each_new(const struct net *net, const uint32_t *server, uint32_t n,
                              struct rec_error *err) REC_MUST_CHECK;
/** `each` may be NULL. */
void net_each_free(struct net_each *each);
/** How many ports there are. */
uint32_t net_each_ports(const struct net_each *each);
/** The next fan or route; false: there is none left. net_each_rewind() begins anew. */
bool net_each_next(struct net_each *each, struct net_fan *fan);
void net_each_rewind(struct net_each *each);

/** What is sent in a step of a placed graph. */
struct net_traffic {
    uint64_t flows;       /* deps with bytes > 0 that cross servers */
    uint64_t collectives; /* exchanges of more than one dep, by the published rule */
    double flow_bytes;    /* of the flows */
};

REC_END_DECLS

#endif
