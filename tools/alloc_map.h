/* The picture of the cluster that --map draws on standard error. */
#ifndef RAMPIPE_ALLOC_MAP_H
#define RAMPIPE_ALLOC_MAP_H

#include "rampipe/alloc.h"

struct map_view;

struct map_view *map_view_new(const struct net *net, struct rec_error *err);
/* Draws the cluster after a decision; owners[server] is 0 or the number of its job. */
bool map_view_show(struct map_view *view, const struct alloc_decision *decision,
                   const uint64_t *owners, struct rec_error *err);
void map_view_free(struct map_view *view);

#endif
