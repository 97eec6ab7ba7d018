/*
 * lib/net/rounds.h - how the rounds of an exchange are made.
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

#endif
