/*
 * rampipe/architecture.h - profiles of named networks from their layer shapes.
 *
 * An architecture is a list of layers in topological order; each knows its parameters,
 * its floating-point operations and the elements it reads and writes. A device is a
 * roofline: a layer takes as long as the slower of computing and moving (Williams,
 * Waterman and Patterson, "Roofline", 2009).
 */
#ifndef RAMPIPE_ARCHITECTURE_H
#define RAMPIPE_ARCHITECTURE_H

#include "rampipe/record.h"

#define ARCH_INPUTS_MAX 2

struct arch_layer {
    char text[96];  /* as PyTorch prints it: "Conv2d(3, 64, kernel_size=(3, 3), ..." */
    double params;  /* trainable parameters that it owns; a sum counts each once */
    double weights; /* parameters that it reads: its own, or those it is tied to */
    double flops;   /* forward, whole batch; a multiply-add counts two */
    double in, out; /* elements read and written, whole batch, without parameters */
    uint32_t input[ARCH_INPUTS_MAX]; /* indexes of earlier layers */
    uint32_t ninputs;
};

/** A network for one batch. Layers stand in topological order; the last is the only one
 * that no other reads. */
struct arch {
    struct arch_layer *layer; /* owned; arch_free() */
    size_t nlayers, room;
    double batch;    /* samples */
    double sequence; /* tokens a sample (transformers) */
    bool failed;     /* out of memory while building */
};

/** A known architecture. */
struct arch_spec {
    const char *name;
    double sequence; /* default and most, tokens; 0: takes images of 224 x 224 */
    void (*build)(struct arch *arch);
    const char *about;
};

/** Ends with a NULL name. */
extern const struct arch_spec arch_specs[];

/**
 * Builds an architecture for `batch` >= 1 samples of `sequence` <= spec->sequence tokens
 * (0 takes the most; networks of images have none). Free with arch_free(). False: out of
 * memory (REC_IO), nothing to free.
 */
bool arch_build(const struct arch_spec *spec, double batch, double sequence,
                struct arch *arch, struct rec_error *err) REC_MUST_CHECK;
/** Trainable parameters; a tied weight counts once, a batch norm has weight and bias. */
double arch_params(const struct arch *arch);
void arch_free(struct arch *arch);

enum arch_precision { ARCH_FP32, ARCH_TF32, ARCH_FP16, ARCH_BF16, ARCH_NPRECISIONS };

struct arch_device {
    const char *name;
    double peak[ARCH_NPRECISIONS]; /* FLOP/s without sparsity; 0: not supported */
    double bandwidth;              /* of its memory, bytes/s */
    const char *source;
};

/** Ends with a NULL name. */
extern const struct arch_device arch_devices[];

/** What limits a layer's time. */
struct arch_roofline {
    double peak, bandwidth; /* FLOP/s, bytes/s */
    double efficiency;      /* share of both that is reached, (0, 1] */
    double bytes;           /* per element */
};

/** Forward time, seconds: max(flops / peak, bytes moved / bandwidth) / efficiency, where
 * in, out and weights are moved. The input layer takes none. */
double arch_forward_seconds(const struct arch_layer *layer,
                            const struct arch_roofline *roofline);
/** Backward: the same work for the gradient of the inputs and, where the layer reads
 * parameters, once more for theirs. The input layer has none. */
double arch_backward_seconds(const struct arch_layer *layer,
                             const struct arch_roofline *roofline);

#endif
