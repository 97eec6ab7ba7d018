/*
 * rampipe/input.h - how graphs come into being: PipeDream profiles, named networks.
 *
 * A profile is what was measured: forward and backward time of each layer, its activation
 * and parameters. It is read as a forward graph and mirrored into forward and backward.
 *
 * A network is a list of layers in topological order; each knows its parameters, its
 * floating-point operations and the elements it reads and writes. A device is a roofline:
 * a layer takes as long as the slower of computing and moving (Williams, Waterman and
 * Patterson, "Roofline", 2009).
 */
#ifndef RAMPIPE_INPUT_H
#define RAMPIPE_INPUT_H

#include "rampipe/graph.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- profiles ------------------------------------------------------------ */

#define INPUT_NAME_MAX 128

enum input_memory { INPUT_MEMORY_TOTAL, INPUT_MEMORY_ACTIVATION };

struct input_profile_options {
    double time_unit; /* seconds per unit of the profile's times */
    enum input_memory memory;
    bool mirror; /* forward + backward; false: the forward graph alone */
};

/** What the comment lines at the head of a profile say: "# network: vgg16"; "" if they do
 * not. PipeDream's own have none. */
struct input_head {
    char network[INPUT_NAME_MAX], device[INPUT_NAME_MAX], batch[INPUT_NAME_MAX];
    char *provenance; /* its #@ lines, each with LF, or NULL; input_head_free() */
    size_t used, room;
};

/** Reads the comment lines that the next file of the reader starts with, if any. */
bool input_read_head(struct rec_reader *reader, struct input_head *head,
                     struct rec_error *err) REC_MUST_CHECK;
void input_head_free(struct input_head *head);

/**
 * Reads one PipeDream profile, the next file of the reader or what its head has left of
 * it, into *graph (closed). The format: "node1 -- Conv2d(3, 64) -- forward_compute_time=
 * 0.5, backward_compute_time=1, activation_size=[8; 8], parameter_size=4[, stage_id=0]",
 * and "\tnode1 -- node2"; # opens a comment line. Mirrors as the reference: op i's twin
 * is 2n-i+1 (n = the largest id), dep u->v gives b(v)->b(u), and n -> n+1 joins the
 * passes. Device and batch of `head`, which may be NULL, become keys of the graph record.
 */
bool input_read_profile(struct graph *graph, struct rec_reader *reader,
                        const struct input_profile_options *options, struct rec_str id,
                        struct rec_str model, const struct input_head *head,
                        struct rec_error *err) REC_MUST_CHECK;

/* ---- networks ------------------------------------------------------------ */

#define INPUT_READS_MAX 2

struct input_layer {
    char text[96];  /* as PyTorch prints it: "Conv2d(3, 64, kernel_size=(3, 3), ..." */
    double params;  /* trainable parameters that it owns; a sum counts each once */
    double weights; /* parameters that it reads: its own, or those it is tied to */
    double flops;   /* forward, whole batch; a multiply-add counts two */
    double in, out; /* elements read and written, whole batch, without parameters */
    uint32_t input[INPUT_READS_MAX]; /* indexes of earlier layers */
    uint32_t ninputs;
};

/** A network for one batch. Layers stand in topological order; the last is the only one
 * that no other reads. */
struct input_network {
    struct input_layer *layer; /* owned; input_network_free() */
    size_t nlayers, room;
    double batch;    /* samples */
    double sequence; /* tokens a sample (transformers) */
    bool failed;     /* out of memory while building */
};

/** A known network. */
struct input_network_spec {
    const char *name;
    double sequence; /* default and most, tokens; 0: takes images of 224 x 224 */
    void (*build)(struct input_network *network);
    const char *about;
};

/** Ends with a NULL name. */
extern const struct input_network_spec input_networks[];

/**
 * Builds a network for `batch` >= 1 samples of `sequence` <= spec->sequence tokens (0
 * takes the most; networks of images have none). Free with input_network_free(). False:
 * out of memory (REC_IO), nothing to free.
 */
bool input_network_build(const struct input_network_spec *spec, double batch,
                         double sequence, struct input_network *network,
                         struct rec_error *err) REC_MUST_CHECK;
/** Trainable parameters; a tied weight counts once, a batch norm has weight and bias. */
double input_network_params(const struct input_network *network);
void input_network_free(struct input_network *network);

enum input_precision {
    INPUT_FP32,
    INPUT_TF32,
    INPUT_FP16,
    INPUT_BF16,
    INPUT_NPRECISIONS
};

struct input_device {
    const char *name;
    double peak[INPUT_NPRECISIONS]; /* FLOP/s without sparsity; 0: not supported */
    double bandwidth;               /* of its memory, bytes/s */
    const char *source;
};

/** Ends with a NULL name. */
extern const struct input_device input_devices[];

/** What limits a layer's time. */
struct input_roofline {
    double peak, bandwidth; /* FLOP/s, bytes/s */
    double efficiency;      /* share of both that is reached, (0, 1] */
    double bytes;           /* per element */
};

/** Forward time, seconds: max(flops / peak, bytes moved / bandwidth) / efficiency, where
 * in, out and weights are moved. The input layer takes none. */
double input_forward_seconds(const struct input_layer *layer,
                             const struct input_roofline *roofline);
/** Backward: the same work for the gradient of the inputs and, where the layer reads
 * parameters, once more for theirs. The input layer has none. */
double input_backward_seconds(const struct input_layer *layer,
                              const struct input_roofline *roofline);

REC_END_DECLS

#endif
