/* What the files of lib/input share with each other and with nobody else. */
#ifndef RAMPIPE_INPUT_PRIVATE_H
#define RAMPIPE_INPUT_PRIVATE_H

#include "rampipe/input.h"

/* No layer. */
#define INPUT_NONE UINT32_MAX

/* Appends a layer of class memory that reads x and y; its index. */
uint32_t input_add(struct input_network *a, uint32_t x, uint32_t y, double params,
                   double flops, double out, const char *format, ...) REC_PRINTF(7, 8);
/* Says what kind of work the layer `at` is: `batch`, if not 0, products of M x K by K x N. */
uint32_t input_classify(struct input_network *a, uint32_t at, const char *kind,
                        double batch, double m, double n, double k);
/* The last layer, `at`, reads x, too. */
void input_also(struct input_network *a, uint32_t at, uint32_t x);
/* The layer `at` reads so many elements, instead of all that its inputs wrote; `at`. */
uint32_t input_reads(struct input_network *a, uint32_t at, double elements);
uint32_t input_linear(struct input_network *a, uint32_t x, double rows, unsigned in,
                      unsigned out, bool bias);
/* One operand in, as many elements out. */
uint32_t input_pointwise(struct input_network *a, uint32_t x, double flops_each,
                         const char *text);

void input_transformer_build(struct input_network *a,
                             const struct input_transformer *transformer);

#endif
