/*
 * rampipe/onnx.h - models in ONNX's format, as networks.
 *
 *     node Conv, Relu, Gemm, ...      +  shapes of      ->   layers: operations, elements
 *     initialisers: parameters           inputs              read and written, parameters
 *
 * Weights need not be in the file, only how large they are. Shapes are inferred, or the
 * file's (value_info). Source: the protobuf schema and the operators of onnx.ai.
 */
#ifndef RAMPIPE_ONNX_H
#define RAMPIPE_ONNX_H

#include "rampipe/input.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** A dimension that the file has a name for. */
struct onnx_dimension {
    const char *name;
    int64_t size;
};

struct onnx_options {
    double batch; /* samples; 0: as many as the file says, 1 if it has a name for it */
    const struct onnx_dimension *dimension; /* others that have names */
    size_t ndimensions;
    const char *const
        *data;    /* names of the inputs that are data: all others are weights */
    size_t ndata; /* 0: what reads an input tells */
};

/** What the inputs without values, those that a node reads, were taken for. */
struct onnx_inputs {
    size_t weights;
    /* Names for a message; "..." stands for those that have no room. */
    char unsure[200]; /* of weights whose shape alone says that they are no data */
    char data[300];
};

/**
 * Reads a model, plain or gzip, as the network of its forward pass. The first dimension
 * of the inputs is the batch: the layers are those of the file's, and for another all
 * work and outputs grow in proportion. What is computed of constants alone and what only
 * gives a tensor another shape are no layers. Inputs that are weights, as a file without
 * them has, are parameters as initialisers are: *inputs says how many. More outputs than
 * one come together in a last layer. REC_DATA: it is no such model, an operator is not
 * known, or a shape cannot be inferred. Free *network with input_network_free() after
 * true.
 */
bool onnx_read(const char *path, const struct onnx_options *options,
               struct input_network *network, struct onnx_inputs *inputs,
               struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
