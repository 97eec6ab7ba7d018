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

#define ARCH_INPUTS_MAX 3

struct arch_layer {
    char text[96];  /* "Conv2d(3, 64, kernel_size=11, stride=4, padding=2)" */
    double params;  /* trainable parameters */
    double flops;   /* forward, whole batch; a multiply-add counts two */
    double in, out; /* elements read and written, whole batch, without parameters */
    uint32_t input[ARCH_INPUTS_MAX]; /* indexes of earlier layers */
    uint32_t ninputs;
};

struct arch {
    struct arch_layer *layer;
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

/** Builds an architecture; sequence 0 takes the default. Free with arch_free(). */
bool arch_build(const struct arch_spec *spec, double batch, double sequence,
                struct arch *arch, struct rec_error *err) REC_MUST_CHECK;
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

/** Forward time, seconds: max(flops / peak, bytes moved / bandwidth) / efficiency. */
double arch_forward_seconds(const struct arch_layer *layer,
                            const struct arch_roofline *roofline);
/** Backward: the same work for the gradient of the inputs and, where there are any, once
 * more for that of the parameters. The input layer has none. */
double arch_backward_seconds(const struct arch_layer *layer,
                             const struct arch_roofline *roofline);

#endif
