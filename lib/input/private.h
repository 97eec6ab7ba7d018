/* What the files of lib/input share with each other and with nobody else. */
#ifndef RAMPIPE_INPUT_PRIVATE_H
#define RAMPIPE_INPUT_PRIVATE_H

#include "rampipe/input.h"

/*
 * Builds *to from a closed forward graph whose ids are integers: forward ops, and if
 * `backward` (the backward compute of each op, seconds) is not NULL their twins, the
 * mirrored deps and the join.
 */
bool input_mirror(const struct graph *forward, const double *backward, struct graph *to,
                  struct rec_error *err) REC_MUST_CHECK;

#endif
