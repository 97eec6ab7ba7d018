/*
 * All positions of blocks on an empty cluster, and which of them are free, for
 * features.c. A position is a legal shape at an origin: a set of servers. On clusters of
 * up to 64 servers ask blocks_view(); on larger ones set the times when servers come free
 * by blocks_set(), and then ask blocks_count() and blocks_largest().
 */
#ifndef RAMPIPE_ALLOC_BLOCKS_H
#define RAMPIPE_ALLOC_BLOCKS_H

#include "rampipe/alloc.h"

enum {
    BLOCKS_DEGREES = 24,    /* degrees whose blocks are kept, at most */
    BLOCKS_SERVERS = 65536, /* servers that the positions of a degree may have in all */
    BLOCKS_SHARES = 5       /* sizes of blocks whose free positions a view counts */
};

/* What is free on a cluster of up to 64 servers. */
struct view {
    uint64_t busy;             /* bit s: server s is not free */
    uint16_t largest;          /* as blocks_largest() */
    uint16_t n[BLOCKS_SHARES]; /* free positions of each share */
};

/* The positions of each degree, of all its shapes, without wrapping around the cluster.
 * If they have more than BLOCKS_SERVERS servers in all, an evenly spaced sample of
 * them. */
struct blocks {
    uint32_t nservers;
    uint32_t ndegrees, degree[BLOCKS_DEGREES]; /* valid degrees, ascending */
    uint32_t first[BLOCKS_DEGREES + 1];        /* of degree[d]: first[d]..first[d + 1] */
    uint32_t *server; /* of position p: server[start[p]..start[p + 1]) */
    uint32_t *start;
    uint64_t *mask; /* per position: bit server % 64 of each of its servers */
    uint32_t share[BLOCKS_SHARES]; /* indexes of the degrees that views count */
    struct view *views; /* those that were asked for last, by hash; NULL: none yet */
    double *when; /* per position: seconds from now until all its servers are free */
    /* Positions that are free now; of degree[d]: first_open[d]..first_open[d + 1]. */
    uint32_t *open;
    uint32_t first_open[BLOCKS_DEGREES + 1];
    size_t server_room, start_room, mask_room;
};

bool blocks_init(struct blocks *blocks, const struct net *net,
                 struct rec_error *err) REC_MUST_CHECK;
void blocks_free(struct blocks *blocks);
/* True if the cluster has up to 64 servers. */
bool blocks_small(const struct blocks *blocks);
/* What is free if these servers are busy; valid until the next call. */
const struct view *blocks_view(struct blocks *blocks, uint64_t busy);
/* Fills when[] and open[] from `when`: seconds from now until each server is free. */
void blocks_set(struct blocks *blocks, const double *when);
/* The servers that the alternative at hand would take. */
struct taken {
    const bool *is; /* per server */
    uint64_t mask;  /* bit server % 64 of each of them */
};
/* How many positions of degree[d] are free now and have none of the taken servers. */
uint32_t blocks_count(const struct blocks *blocks, uint32_t d, const struct taken *taken);
/* The largest degree with a position that is free in `within` seconds from now, and that
 * has none of the taken servers. Returns 1 + its index; 0: there is none. */
uint32_t blocks_largest(const struct blocks *blocks, double within,
                        const struct taken *taken);

#endif
