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

/* Adds n numbers, a multiple of VALUE_GROUP, each times a factor. */
static inline void
add_times(float *to, float factor, const float *from, size_t n)
{
    floats4 *t = (floats4 *)to;
    const floats4 *f = (const floats4 *)from;
    for (size_t i = 0; i < n / 4; i += 4) {
        t[i] += factor * f[i];
        t[i + 1] += factor * f[i + 1];
        t[i + 2] += factor * f[i + 2];
        t[i + 3] += factor * f[i + 3];
    }
}

/* Adds four inputs, each times its weights in `units` of the first layer. */
static inline void
add_four(float *sum, const float *input, const float *weight, uint32_t units)
{
    size_t n = units / 4;
    floats4 *s = (floats4 *)sum;
    const floats4 *w = (const floats4 *)weight;
    float input0 = input[0], input1 = input[1], input2 = input[2], input3 = input[3];
    for (size_t i = 0; i < n; i++, w++)
        s[i] = (((s[i] + input0 * w[0]) + input1 * w[n]) + input2 * w[2 * n]) +
               input3 * w[3 * n];
}

#endif
