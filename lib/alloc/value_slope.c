/* How the worth of a state changes with the weights of its network. */
#include "floats.h"
#include "value.h"

#include <string.h>

/* The slopes of half the squared error by each weight, laid out as the weights. */
struct slopes {
    const struct value_sets *sets;
    float *slope;
};

static float *
slope_of(const struct slopes *s, const float *weight)
{
    return s->slope + (weight - value_of_sets(s->sets)->weight);
}

/* Adds the slopes of one image by the weights that only it has, and those by the sums
 * that it shares with the others to by_shared. Sums are in parts, so that the compiler
 * can make vectors of them in any order of the parts. */
static void
add_image(const struct slopes *s, uint32_t image, const float *input, float error,
          const float *sum, const float *second, float *by_shared)
{
    enum { PARTS = 8 };
    const struct alloc_value *v = value_of_sets(s->sets);
    float by_second[VALUE_SECOND] = {0}, by_first[ALLOC_VALUE_UNITS] = {0};
    *slope_of(s, value_third_bias(v)) += error;
    for (uint32_t i = 0; i < v->second; i++)
        by_second[i] = second[i] > 0 ? error * value_third(v)[i] : 0;
    add_times(slope_of(s, value_third(v)), error, second, v->second);
    add_times(slope_of(s, value_second_bias(v)), 1, by_second, v->second);
    for (uint32_t j = 0; j < v->units; j++) {
        const float *weight = value_second(v, j);
        float part[PARTS] = {0};
        if (!(sum[j] > 0))
            continue;
        add_times(slope_of(s, weight), sum[j], by_second, v->second);
        for (uint32_t i = 0; i < v->second; i += PARTS)
            for (uint32_t k = 0; k < PARTS; k++)
                part[k] += by_second[i + k] * weight[i + k];
        for (int k = 0; k < PARTS; k++)
            by_first[j] += part[k];
    }
    for (uint32_t i = 0; i < v->servers * VALUE_SCALES; i++)
        if (input[i] > 0) {
            uint32_t server = value_image(s->sets, image, i / VALUE_SCALES);
            add_times(
                slope_of(s, value_first(v, server * VALUE_SCALES + i % VALUE_SCALES)),
                input[i], by_first, v->units);
        }
    add_times(by_shared, 1, by_first, v->units);
}

double
value_slope(const struct value_sets *sets, const float *input, double target,
            float *slope)
{
    const struct slopes s = {sets, slope};
    const struct alloc_value *v = value_of_sets(sets);
    float sum[VALUE_IMAGES][ALLOC_VALUE_UNITS], second[VALUE_IMAGES][VALUE_SECOND],
        by_shared[ALLOC_VALUE_UNITS] = {0};
    uint32_t n = value_images(sets);
    double worth = 0;
    value_shared(v, input, sum[0]);
    for (uint32_t i = 1; i < n; i++)
        memcpy(sum[i], sum[0], v->units * sizeof *sum[i]);
    for (uint32_t i = 0; i < n; i++) {
        value_servers(sets, i, input, sum[i]);
        worth += value_of_sums(v, sum[i], second[i]) / n;
    }
    for (uint32_t i = 0; i < n; i++)
        add_image(&s, i, input, (float)((worth - target) / n), sum[i], second[i],
                  by_shared);
    add_times(slope_of(&s, value_first_bias(v)), 1, by_shared, v->units);
    for (uint32_t i = v->servers * VALUE_SCALES; i < value_inputs(v); i++)
        if (input[i] > 0)
            add_times(slope_of(&s, value_first(v, i)), input[i], by_shared, v->units);
    return worth - target;
}
