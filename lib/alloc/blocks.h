/* Where blocks may lie on an empty cluster, and when each comes free; for features.c. */
#ifndef RAMPIPE_ALLOC_BLOCKS_H
#define RAMPIPE_ALLOC_BLOCKS_H

#include "rampipe/alloc.h"

enum { BLOCKS_DEGREES = 24, BLOCKS_SERVERS = 65536 };

/* Of each degree the positions of blocks of all its shapes, without wrapping around; if
 * they have more than BLOCKS_SERVERS servers together, every so many, evenly spaced. */
struct blocks {
    uint32_t nservers;
    uint32_t ndegrees, degree[BLOCKS_DEGREES]; /* ascending; valid ones */
    uint32_t first[BLOCKS_DEGREES + 1];        /* position first[d]..first[d + 1] */
    uint32_t *server;                          /* of position p from start[p] on */
    uint32_t *start;
    uint64_t *mask; /* per position: bit server % 64 of each server */
    double *when;   /* per position: seconds from now until all its servers are free; not
                       kept if a word has all servers */
    uint32_t *open; /* positions that are free now, of degree[d] from first_open[d] on */
    uint32_t first_open[BLOCKS_DEGREES + 1];
    size_t server_room, start_room, mask_room;
};

bool blocks_init(struct blocks *blocks, const uint32_t shape[3],
                 struct rec_error *err) REC_MUST_CHECK;
void blocks_free(struct blocks *blocks);
/* Fills when[] and open[]; `when` is that of each server. */
void blocks_set(struct blocks *blocks, const double *when);
/* A time, seconds from now, and a bit for each server that is not free by then; of the
 * first
 * 64. */
struct horizon {
    double within;
    uint64_t busy;
};
struct horizon blocks_horizon(const struct blocks *blocks, const double *when,
                              double within);
/* The servers that somebody takes, as struct taken. */
struct taken {
    const bool *is; /* per server */
    uint64_t mask;
};
/* How many positions of degree[d] are free now, taken ones not. */
uint32_t blocks_count(const struct blocks *blocks, uint32_t d, const struct taken *taken);
/* 1 + the index of the largest degree with a position that is free by then, 0: none has
 * one. NULL: now. */
uint32_t blocks_largest(const struct blocks *blocks, const struct horizon *horizon,
                        const struct taken *taken);

#endif
