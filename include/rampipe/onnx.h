/*
 * rampipe/onnx.h - models in ONNX's format, as networks.
 *
 *     node Conv, Relu, Gemm, ...      +  shapes of      ->   layers: operations, elements
 *     initialisers: parameters           inputs              read and written, parameters
 *
 * Weights need not be in the file, only how large they are. Shapes are inferred, or the file's
 * (value_info). Source: the protobuf schema and the operators of onnx.ai.
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
};

/**
 * Reads a model, plain or gzip, as the network of its forward pass. The first dimension of the
 * inputs is the batch: the layers are those of the file's, and for another all work and outputs
 * grow in proportion. What is computed of constants alone and what only gives a tensor another
 * shape are no layers. More outputs than one come together in a last layer. REC_DATA: it is no
 * such model, an operator is not known, or a shape cannot be inferred. Free *network with
 * input_network_free() after true.
 */
bool onnx_read(const char *path, const struct onnx_options *options,
               struct input_network *network, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
