/* The policies that training can start from: simple enough to be written as weights. */
#ifndef RAMPIPE_LEARN_START_H
#define RAMPIPE_LEARN_START_H

#include "rampipe/learn.h"

enum {
    LEARN_FEWEST = 3,                   /* of the fewest servers */
    LEARN_PLAIN = LEARN_FEWEST + 2,     /* these, and those of a price */
    LEARN_STARTS = LEARN_PLAIN + 4 + 64 /* at most: two for each power of 2, and more */
};

/* Writes the weights of the policies, all multiplied by `size`: LEARN_PLAIN, of which
 * those of the fewest servers are the first; all 0; for d = 1, 2, 4, ... up to `servers`,
 * d servers or none, without and with a reserve; packing with three thresholds. Returns
 * how many there are. */
uint32_t learn_starts(uint32_t servers, double size,
                      double weight[LEARN_STARTS][ALLOC_FEATURES]);

#endif
