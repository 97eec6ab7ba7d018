/* What training starts from: policies simple enough to write down. */
#ifndef RAMPIPE_LEARN_START_H
#define RAMPIPE_LEARN_START_H

#include "rampipe/learn.h"

enum { LEARN_STARTS = 4 + 2 * 32 };

/* Weights times `size` of: nothing; for d = 1, 2, 4, ... servers, d and no others,
 * without and with a reserve; packing, by how much a job must be worth. Returns how many
 * there are. */
uint32_t learn_starts(uint32_t servers, double size,
                      double weight[LEARN_STARTS][ALLOC_FEATURES]);

#endif
