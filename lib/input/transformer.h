/* What transformer.c and attention.c, which make the layers of a transformer, share. */
#ifndef RAMPIPE_INPUT_TRANSFORMER_H
#define RAMPIPE_INPUT_TRANSFORMER_H

#include "private.h"

/* Appends a layer that normalizes `elements` elements: RMSNorm with `weights` weights, or
 * LayerNorm with `weights` weights and as many biases. */
uint32_t input_norm(struct input_network *a, uint32_t x, bool rms, unsigned weights,
                    double elements);

/* Appends the attention of the tokens of x over themselves, with the products before and
 * after it. `bias` is the layer that makes a bias for the scores, or INPUT_NONE. */
uint32_t input_self_attention(struct input_network *a, uint32_t x, uint32_t bias,
                              bool causal, unsigned window,
                              const struct input_transformer *t);
/* Appends the attention of the tokens of x over the tokens of layer `memory`, the
 * encoder's output. Both have the same number of tokens. */
uint32_t input_cross_attention(struct input_network *a, uint32_t x, uint32_t memory,
                               const struct input_transformer *t);

#endif
