/*
 * rampipe/input.h - how graphs come into being: PipeDream profiles, named networks.
 *
 * A profile lists the measured values of a network: forward and backward time of each
 * layer, its activation and parameters. It is read as a forward graph and mirrored into
 * forward and backward.
 *
 * A network is a list of layers in topological order. Each layer has its parameters, its
 * floating-point operations and the elements that it reads and writes. The model of the
 * device (rampipe/device.h) makes a time of them.
 */
#ifndef RAMPIPE_INPUT_H
#define RAMPIPE_INPUT_H

#include "rampipe/device.h"
#include "rampipe/graph.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- profiles ------------------------------------------------------------ */

#define INPUT_NAME_MAX 128

/** The memory of an op: its activation and parameters, or its activation alone. */
enum input_memory { INPUT_MEMORY_TOTAL, INPUT_MEMORY_ACTIVATION };

struct input_profile_options {
    double time_unit; /* seconds per unit of the profile's times */
    enum input_memory memory;
    bool mirror; /* forward + backward; false: the forward graph alone */
};

/** What the comment lines at the head of a profile say, as "# network: vgg16"; "" if no
 * line says it. Profiles of PipeDream have no such lines. */
struct input_head {
    char network[INPUT_NAME_MAX], family[INPUT_NAME_MAX], device[INPUT_NAME_MAX],
        batch[INPUT_NAME_MAX];
    char *provenance;  /* the #@ lines, each with its LF; NULL: none. Owned */
    size_t used, room; /* bytes of provenance, without and with spare room */
};

/** Reads the comment lines, if there are any, with which the next file of the reader
 * starts. Free *head with input_head_free(), also if this fails. */
bool input_read_head(struct rec_reader *reader, struct input_head *head,
                     struct rec_error *err) REC_MUST_CHECK;
void input_head_free(struct input_head *head);

/**
 * Reads one PipeDream profile into *graph (closed): the next file of the reader, or the
 * rest of it after input_read_head(). The format: "node1 -- Conv2d(3, 64) --
 * forward_compute_time= 0.5, backward_compute_time=1, activation_size=[8; 8],
 * parameter_size=4[, stage_id=0]", and "\tnode1 -- node2"; # opens a comment line. The
 * mirrored graph is numbered as in the reference simulator, ddls: with n the largest
 * id, the backward twin of op i is b(i) = 2n-i+1; a dep u->v gives a dep b(v)->b(u); and
 * the dep n -> n+1 joins the two passes. Device, batch and family of `head`, which may be
 * NULL, become keys of the graph record.
 */
bool input_read_profile(struct graph *graph, struct rec_reader *reader,
                        const struct input_profile_options *options, struct rec_str id,
                        struct rec_str model, const struct input_head *head,
                        struct rec_error *err) REC_MUST_CHECK;

/* ---- forward and backward ------------------------------------------------ */

/** The properties in which the backward twin of an op differs from the op. */
struct input_twin {
    double compute;    /* seconds */
    const char *extra; /* its keys, each after a TAB; NULL: it has the op's keys */
};

/**
 * Builds *to from a closed forward graph whose ids are integers, and closes it. The
 * caller has started *to. It gets the forward ops and deps and, if `backward` is not
 * NULL, the backward twins, the mirrored deps and the dep that joins the passes, as
 * input_read_profile() says. `backward` has one entry for each op. The bytes of a dep are
 * the activation of its source, which a backward op has in common with its twin.
 */
bool input_mirror(const struct graph *forward, const struct input_twin *backward,
                  struct graph *to, struct rec_error *err) REC_MUST_CHECK;

/* ---- networks ------------------------------------------------------------ */

struct input_layer {
    char text[96];    /* as PyTorch prints it: "Conv2d(3, 64, kernel_size=(3, 3), ..." */
    double params;    /* trainable parameters that it owns: tied weights have one owner */
    double weights;   /* parameters that it reads: its own, or another layer's if tied; a
                         layer that is only a part of its parameter reads none */
    double flops;     /* of the forward pass of the batch; a multiply-add counts two */
    double in, out;   /* elements read and written for the batch, without parameters */
    const char *kind; /* class of its work: convolution, matmul, attention or memory */
    double gemm[4];   /* BATCH, M, N, K of a matrix product; else 0 */
    /* It reads the earlier layers network->read[first], ... read[first + ninputs - 1]. */
    size_t first, ninputs;
};

/** A network for one batch. Its layers are in topological order, and the last is the only
 * one that no other layer reads. Starts as {0}. */
struct input_network {
    struct input_layer *layer; /* owned; input_network_free() */
    uint32_t *read;            /* owned */
    size_t nlayers, room, nreads, read_room;
    double batch; /* samples */
    /* positions per sample (transformers): tokens, or patches of an image and the class
     * token */
    double sequence;
    bool has_tokens; /* positions are tokens, and go into the graph's key sequence= */
    bool failed;     /* memory ran out while building */
};

#define INPUT_LEFT_MAX 300

enum input_activation { INPUT_GELU, INPUT_SILU, INPUT_RELU };

enum input_qk_norm { INPUT_QK_NONE, INPUT_QK_EACH_HEAD, INPUT_QK_ALL_HEADS };

/** The properties that differ from layer to layer. */
struct input_block {
    unsigned window; /* a query attends to at most this number of keys; 0: no limit */
    bool mixture;    /* its MLP is a mixture of experts */
};

/**
 * A transformer described by its numbers: a stack of layers, each of them attention and
 * an MLP. lib/input/transformer.c makes the layers of a network of it, and knows nothing
 * of families. Starts as {0}; unless said otherwise, 0 means that a model has no such
 * part.
 */
struct input_transformer {
    unsigned width;      /* of the vector of a token between layers */
    unsigned layers;     /* without those of an encoder */
    unsigned words;      /* size of the vocabulary */
    unsigned word_width; /* of the embeddings of words; 0: width */
    unsigned heads;      /* of queries */
    unsigned kv_heads;   /* of keys and values */
    unsigned head_width; /* of one query or key */
    unsigned inner;      /* width of a dense MLP between its products */

    /* Latent attention (DeepSeek-V2, 2024, section 2.1): keys and values are projections
     * of a vector of kv_rank elements, queries of one of q_rank elements (0: of the
     * layer's input). The last rope_width elements of a head's query and key hold the
     * position; these elements of the key are the same for all heads. */
    unsigned q_rank, kv_rank, rope_width;
    unsigned value_width; /* of the value of one head; 0: head_width */

    /* A mixture of experts: each token goes through experts_used of `experts` MLPs of
     * inner width expert_inner, and through one MLP of inner width shared_inner that all
     * tokens share. */
    unsigned experts, experts_used, expert_inner, shared_inner;

    unsigned positions, types; /* rows of learned embeddings of positions, of types */
    unsigned relative_buckets; /* learned biases of scores by distance, for each head */
    bool alibi; /* scores have a bias: the distance multiplied by a constant */

    /* An encoder of this number of layers, without a mask, comes first. Each of `layers`
     * reads its output through a second attention. */
    unsigned encoder_layers;

    /* For models of images instead of words: the width of the square image and of a
     * square patch, in pixels, and the channels of a pixel. */
    unsigned image, patch, channels;
    unsigned labels; /* classes of a classifier that reads the first token */

    /* One entry for each of `layers`; input_transformer_free() frees it. NULL: no layer
     * has a window, and all layers are mixtures of experts if `experts` is not 0. */
    struct input_block *block;
    bool causal; /* a query attends to no later key */
    bool rms;    /* RMSNorm instead of LayerNorm with a bias */
    /* The places of norms: */
    bool norm_before;           /* before attention and before the MLP */
    bool norm_inside;           /* after attention and MLP, before the result is added */
    bool norm_behind;           /* after each addition */
    bool norm_embedding;        /* after the embedding */
    bool norm_final;            /* at the end of the stack */
    enum input_qk_norm qk_norm; /* of queries and keys */
    bool parallel;       /* MLP and attention read the same input, and both are added */
    bool one_norm;       /* if parallel: both read the input through the same norm */
    bool attention_bias; /* of the products that make queries, keys and values */
    bool output_bias;    /* of the product behind attention */
    bool mlp_bias, router_bias;
    bool sinks; /* a learned score for each head takes part in the softmax */
    /* an MLP has two products up, activates one, and multiplies the results */
    bool gated;
    bool shared_gate; /* the shared MLP has a learned gate */
    bool cap_scores;  /* a tanh bounds the scores of attention */
    bool cap_words;   /* a tanh bounds the scores of words */
    bool head;        /* a product at the end makes scores of words */
    bool tied;        /* its weights are those of the embedding of words */
    bool pooler;      /* a product and a tanh on the first token, as in BERT */
    /* 0: attention is fused. Else: how many elements are moved for each score between the
     * two products of attention (input_score_passes()). */
    double score_passes;
    enum input_activation activation;
};

/** A known network. */
struct input_network_spec {
    const char *name;
    double sequence; /* the default and largest number of tokens; 0: the network takes
                        images of 224 x 224 pixels */
    void (*build)(struct input_network *network); /* NULL if there is a `transformer` */
    const struct input_transformer *transformer;  /* NULL if there is a `build` */
    const char *about;                            /* one line for a list of networks */
};

/**
 * Reads the config.json of a Hugging Face model, the reader's only file. Its key
 * model_type names the family, which has its own keys and defaults. *sequence becomes the
 * largest number of tokens. `left` gets a list, for a message, of the keys that are not
 * understood and may change the work; the caller must show it if it is not empty. Free
 * *transformer with input_transformer_free(), also if this fails.
 */
bool input_transformer_read(struct rec_reader *reader,
                            struct input_transformer *transformer, double *sequence,
                            char left[INPUT_LEFT_MAX],
                            struct rec_error *err) REC_MUST_CHECK;
void input_transformer_free(struct input_transformer *transformer);

/** Ends with a NULL name. */
extern const struct input_network_spec input_networks[];

/**
 * Builds a network for `batch` >= 1 samples of `sequence` <= spec->sequence tokens; 0
 * means spec->sequence. Free *network with input_network_free(). False: out of memory
 * (REC_IO), and there is nothing to free.
 */
bool input_network_build(const struct input_network_spec *spec, double batch,
                         double sequence, struct input_network *network,
                         struct rec_error *err) REC_MUST_CHECK;
/**
 * The value of input_transformer.score_passes for attention that is not fused. `bytes` is
 * the size of an element. Between the two products, PyTorch moves 37 bytes per score in
 * each pass, forward and backward, in mixed precision (read + written: scale 2 + 2, mask
 * 2 + 2, conversion to fp32 2 + 4, softmax 4 + 4, dropout 4 + 4 and its mask 1,
 * conversion to 16 bits 4 + 2), and 33 bytes in fp32, which needs no conversions.
 */
double input_score_passes(double bytes);
/** Appends a copy of *layer that reads the n layers of the indexes `reads`; the copy's
 * first and ninputs are set by them. False: out of memory. */
bool input_network_add(struct input_network *network, const struct input_layer *layer,
                       const uint32_t *reads, size_t n,
                       struct rec_error *err) REC_MUST_CHECK;
/** The number of trainable parameters. A tied weight counts once; a batch norm counts its
 * weight and bias, and not its running statistics. */
double input_network_params(const struct input_network *network);
/** The kind of network, for the key family= of its graph. It is "transformer" if the
 * network has attention: a layer of that kind, or a product of two activations of which
 * one comes from a softmax. "": not known. */
const char *input_network_family(const struct input_network *network);
void input_network_free(struct input_network *network);

/** The work of a layer's forward pass: its flops, and the bytes moved, which are those of
 * its inputs, outputs and weights. `bytes` is the size of an element. The input layer has
 * no work. */
struct device_work input_forward_work(const struct input_layer *layer, double bytes);
/** The work of the backward pass: that of the forward pass for the gradient of the inputs
 * and, if the layer has parameters, once more for their gradient. A matrix product of two
 * activations takes twice the forward work, too. Fused attention computes its scores
 * again: 2.5 times the flops, and twice the bytes moved. */
struct device_work input_backward_work(const struct input_layer *layer, double bytes);

/** Starts *graph and builds it from a network at the roofline's precision, mirrored. Ops
 * have keys for their work, and its time on the device (0 if roofline->device is NULL: no
 * device). MEMORY is activation and parameters. The ids are those of the network's
 * profile, as pdgen writes it. */
bool input_network_graph(const struct input_network *network, const char *name,
                         const struct device_roofline *roofline, struct graph *graph,
                         struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
