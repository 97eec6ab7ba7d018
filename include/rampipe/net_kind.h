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

/** What every cluster begins with. */
struct net {
    const struct net_kind *kind;
    double memory;                          /* of a server, bytes; may be infinite */
    uint32_t nlevels;                       /* set by net_set_levels() */
    struct net_level level[NET_LEVELS_MAX]; /* as net_levels() has them */
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
    void (*alone)(const struct net *net, const struct net_exchange *exchange, size_t n,
                  double *seconds);
};

/** Reads n fields from field `first` on: how many there are on each level inside one of
 * the level above. False: *err, also if there would be more than 2^24 servers. */
bool net_get_counts(const struct rec_reader *reader, const struct rec *rec, size_t first,
                    uint32_t n, uint32_t *count, struct rec_error *err) REC_MUST_CHECK;
/** Sets the levels of a cluster: name[0] is that of the whole, which has count[0] of
 * name[1], each of which has count[1] of name[2], to count[n - 1]. The names are kept. */
void net_set_levels(struct net *net, uint32_t n, const char *const *name,
                    const uint32_t *count);
/** A copy on the heap of what begins with *net and has `size` bytes. NULL: *err. */
struct net *net_keep(const struct net *net, size_t size,
                     struct rec_error *err) REC_MUST_CHECK;

/** All kinds; NULL ends the table. */
extern const struct net_kind *const net_kinds[];
extern const struct net_kind net_ramp, net_island;
#define NET_KINDS &net_ramp, &net_island

REC_END_DECLS

#endif
