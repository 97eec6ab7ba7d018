/* Arithmetic of a value (value.h) on four numbers at once. */
#ifndef RAMPIPE_ALLOC_FLOATS4_H
#define RAMPIPE_ALLOC_FLOATS4_H

#include "value.h"

/* In an array of float. */
typedef float floats4
    __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t mask4 __attribute__((vector_size(4 * sizeof(float))));

static inline floats4
either(mask4 mask, floats4 a, floats4 b)
{
    return (floats4)((mask & (mask4)a) | (~mask & (mask4)b));
}

/* Adds four inputs, each times its weights in all units of the first layer. */
static inline void
add_four(float *restrict sum, const float *restrict input, const float *restrict weight)
{
    for (int j = 0; j < VALUE_FIRST; j++) {
        float x = sum[j];
        for (int i = 0; i < VALUE_SCALES; i++)
            x += input[i] * weight[i * VALUE_FIRST + j];
        sum[j] = x;
    }
}

#endif
