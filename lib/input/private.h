/* How the files of lib/input build networks. The functions return the index of a layer;
 * when memory runs out they set ->failed, after which they do nothing, so that a caller
 * checks it once at the end. */
#ifndef RAMPIPE_INPUT_PRIVATE_H
#define RAMPIPE_INPUT_PRIVATE_H

#include "rampipe/input.h"

/* The index that stands for no layer. */
#define INPUT_NONE UINT32_MAX

/* Appends a layer of class memory that reads layers x and y, each of which may be
 * INPUT_NONE, and that writes `out` elements. Its text is made of `format`. */
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
/* Appends a Linear layer, a product of `rows` x in and in x out. */
uint32_t input_linear(struct input_network *a, uint32_t x, double rows, unsigned in,
                      unsigned out, bool bias);
/* Appends a layer that reads x and writes as many elements, with `flops_each` operations
 * for each of them. */
uint32_t input_pointwise(struct input_network *a, uint32_t x, double flops_each,
                         const char *text);

/* Appends all layers of a transformer to an empty network. */
void input_transformer_build(struct input_network *a,
                             const struct input_transformer *transformer);

#endif
