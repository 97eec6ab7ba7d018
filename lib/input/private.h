/* What the files of lib/input share with each other and with nobody else. */
#ifndef RAMPIPE_INPUT_PRIVATE_H
#define RAMPIPE_INPUT_PRIVATE_H

#include "rampipe/input.h"

/* No layer. */
#define INPUT_NONE UINT32_MAX

/* Appends a layer of class memory that reads x and y; its index. */
uint32_t input_add(struct input_network *a, uint32_t x, uint32_t y, double params,
                   double flops, double out, const char *format, ...) REC_PRINTF(7, 8);
/* Sets the class of the work of layer `at`. If `batch` is not 0, the layer computes
 * `batch` products of an M x K matrix and a K x N matrix. */
uint32_t input_classify(struct input_network *a, uint32_t at, const char *kind,
                        double batch, double m, double n, double k);
/* Lets layer `at`, which must be the last one, read the output of x, too. */
void input_also(struct input_network *a, uint32_t at, uint32_t x);
/* Sets how many elements layer `at` reads, if it does not read all that its inputs wrote.
 * Returns `at`. */
uint32_t input_reads(struct input_network *a, uint32_t at, double elements);
uint32_t input_linear(struct input_network *a, uint32_t x, double rows, unsigned in,
                      unsigned out, bool bias);
/* A layer that reads one operand and writes as many elements. */
uint32_t input_pointwise(struct input_network *a, uint32_t x, double flops_each,
                         const char *text);

void input_transformer_build(struct input_network *a,
                             const struct input_transformer *transformer);

#endif
