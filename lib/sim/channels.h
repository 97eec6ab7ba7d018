/* lib/sim/channels.h - a courier for deps that a layout gives channels. */
#ifndef SIM_CHANNELS_H
#define SIM_CHANNELS_H

#include "rampipe/sim.h"

struct sim_channels;
/** Data of the courier for one step. `layout` has transfers; it and *placed, which needs
 * dep_seconds, are borrowed. NULL: *err. */
struct sim_channels *sim_channels_new(const struct graph_layout *layout,
                                      const struct sim_placed *placed,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `channels` may be NULL. */
void sim_channels_free(struct sim_channels *channels);
extern const struct sim_courier sim_channels_courier;

#endif
