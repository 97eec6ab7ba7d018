/* The jobs of an episode, drawn one by one. They come from the same numbered streams of
 * the seed as in `tracegen jobs --sampling remove-and-repeat`, so that an episode can be
 * made again as a file. */
#ifndef RAMPIPE_LEARN_DRAWS_H
#define RAMPIPE_LEARN_DRAWS_H

#include "rampipe/learn.h"

struct learn_draws;

/* All that is pointed to is borrowed: the templates until learn_draws_free(), the rest
 * until this returns. NULL: *err. */
struct learn_draws *learn_draws_new(const struct learn_template *templates, uint32_t n,
                                    const struct learn_setting *setting, uint32_t seed,
                                    struct rec_error *err) REC_MUST_CHECK;
/* From now on jobs do not come in rounds: each is drawn independently. */
void learn_draws_mix(struct learn_draws *draws);
/* `draws` may be NULL. */
void learn_draws_free(struct learn_draws *draws);
/* Draws the next job; its id is the draws', until the next one. *index is that of its
 * template. */
bool learn_draws_next(struct learn_draws *draws, struct graph_job *job, uint32_t *index,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
