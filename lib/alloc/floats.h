/* Arithmetic of a value (value.h) on several numbers at once: four, or as many as the
 * vectors have that the compiler may use. Results do not depend on how many. */
#ifndef RAMPIPE_ALLOC_FLOATS_H
#define RAMPIPE_ALLOC_FLOATS_H

#include "value.h"

/* In an array of float. */
typedef float floats4
    __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t mask4 __attribute__((vector_size(4 * sizeof(float))));

#if defined __AVX512F__
enum { WIDE = 16 };
#elif defined __AVX__
enum { WIDE = 8 };
#else
enum { WIDE = 4 };
#endif
typedef float floats
    __attribute__((vector_size(WIDE * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline floats4
either(mask4 mask, floats4 a, floats4 b)
{
    return (floats4)((mask & (mask4)a) | (~mask & (mask4)b));
}

/* Adds n numbers, a multiple of VALUE_GROUP, each times a factor. */
static inline void
add_times(float *to, float factor, const float *from, size_t n)
{
    floats *t = (floats *)to;
    const floats *f = (const floats *)from;
    for (size_t i = 0; i < n / WIDE; i++)
        t[i] += factor * f[i];
}

/* Adds four inputs, each times its weights in `units` of the first layer. */
static inline void
add_four(float *sum, const float *input, const float *weight, uint32_t units)
{
    size_t n = units / WIDE;
    floats *s = (floats *)sum;
    const floats *w = (const floats *)weight;
    float input0 = input[0], input1 = input[1], input2 = input[2], input3 = input[3];
    for (size_t i = 0; i < n; i++, w++)
        s[i] = (((s[i] + input0 * w[0]) + input1 * w[n]) + input2 * w[2 * n]) +
               input3 * w[3 * n];
}

#endif
