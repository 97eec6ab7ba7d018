/* What the files of lib/parallel share. */
#ifndef RAMPIPE_PARALLEL_PRIVATE_H
#define RAMPIPE_PARALLEL_PRIVATE_H

#include "rampipe/parallel.h"

/* The order of schedules whose weight gradients fill the holes (zero.c). */
bool parallel_fill_holes(const struct parallel_pipe *pipe, struct parallel_item *item,
                         struct rec_error *err);

#endif
