/* What the two files that write the ops of a transformer share. */
#ifndef RAMPIPE_INPUT_TRANSFORMER_H
#define RAMPIPE_INPUT_TRANSFORMER_H

#include "private.h"

/* A layer that normalizes `elements` elements: RMSNorm with `weights` weights, or
 * LayerNorm, which has as many biases, too. */
uint32_t input_norm(struct input_network *a, uint32_t x, bool rms, unsigned weights,
                    double elements);

/* Attention of the tokens of x over themselves, with its products before and after.
 * `bias`: the layer that makes one for the scores, or INPUT_NONE. */
uint32_t input_self_attention(struct input_network *a, uint32_t x, uint32_t bias,
                              bool causal, unsigned window,
                              const struct input_transformer *t);
/* Of the tokens of x over those of `memory`, of which there are as many. */
uint32_t input_cross_attention(struct input_network *a, uint32_t x, uint32_t memory,
                               const struct input_transformer *t);

#endif
