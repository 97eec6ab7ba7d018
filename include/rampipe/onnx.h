/*
 * rampipe/onnx.h - models in ONNX's format, as networks.
 *
 *     node Conv, Relu, Gemm, ...      +  shapes of      ->   layers: operations, elements
 *     initialisers: parameters           inputs              read and written, parameters
 *
 * The file need not have the values of weights, only their shapes. The shapes of other
 * tensors are inferred, or taken from the file (value_info). Source: the protobuf schema
 * and the operators of onnx.ai.
 */
#ifndef RAMPIPE_ONNX_H
#define RAMPIPE_ONNX_H

#include "rampipe/input.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** The size of a dimension for which the file has a name instead of a number. */
struct onnx_dimension {
    const char *name;
    int64_t size;
};

struct onnx_options {
    double batch; /* samples; 0: the number in the file, or 1 if it has a name instead */
    const struct onnx_dimension *dimension; /* sizes of other dimensions with names */
    size_t ndimensions;
    const char *const *data; /* names of the inputs that are data; others are weights */
    size_t ndata; /* 0: the operators that read an input tell whether it is a weight */
};

/** Whether the inputs without values were taken for weights or for data. Inputs that no
 * node reads are neither. The lists of names are for a message; they end with "..." if
 * not all names have room. */
struct onnx_inputs {
    size_t weights;   /* the number of inputs taken for weights */
    char unsure[200]; /* weights of which only the shape says that they are no data */
    char data[300];   /* inputs taken for data */
    bool guessed;     /* one of these may be a weight */
    /* "x: 8, y: 1": the data whose first dimensions, the samples, are not all the same;
     * empty: they are */
    char samples[300];
    char unknown[200]; /* names of options->dimension that the file does not have */
    double batch;      /* samples of the file if they differ, those of the first input */
};

/**
 * Reads a model, plain or gzip, as the network of its forward pass. The first dimension
 * of the inputs is the batch; if they differ, that of the first one. If options->batch
 * differs from the file's batch, the work and the outputs of all layers are scaled in
 * proportion. Nodes that are computed from
 * constants alone, and nodes that only give a tensor another shape, become no layers. A
 * file without values has its weights among the inputs; these are parameters, as
 * initialisers are, and *inputs counts them. If the model has several outputs, one last
 * layer reads them all. REC_DATA: the file is no such model, an operator is not known, or
 * a shape cannot be inferred. If this returns true, free *network with
 * input_network_free().
 */
bool onnx_read(const char *path, const struct onnx_options *options,
               struct input_network *network, struct onnx_inputs *inputs,
               struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
