/*
 * rampipe/input.h - how graphs come into being: PipeDream profiles, named networks.
 *
 * A profile is what was measured: forward and backward time of each layer, its activation
 * and parameters. It is read as a forward graph and mirrored into forward and backward.
 *
 * A network is a list of layers in topological order; each knows its parameters, its
 * floating-point operations and the elements it reads and writes; how long that takes is
 * for the device to say.
 */
#ifndef RAMPIPE_INPUT_H
#define RAMPIPE_INPUT_H

#include "rampipe/device.h"
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
    char network[INPUT_NAME_MAX], family[INPUT_NAME_MAX], device[INPUT_NAME_MAX],
        batch[INPUT_NAME_MAX];
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
 * passes. Device, batch and family of `head`, which may be NULL, become keys of the graph
 * record.
 */
bool input_read_profile(struct graph *graph, struct rec_reader *reader,
                        const struct input_profile_options *options, struct rec_str id,
                        struct rec_str model, const struct input_head *head,
                        struct rec_error *err) REC_MUST_CHECK;

/* ---- forward and backward ------------------------------------------------ */

/** What the backward twin of an op has of its own. */
struct input_twin {
    double compute;    /* seconds */
    const char *extra; /* keys instead of the op's, each with its TAB; NULL: the op's */
};

/**
 * Builds *to, which was started, from a closed forward graph whose ids are integers, and
 * closes it: forward ops, and if `backward`, a twin for each op, is not NULL, those, the
 * mirrored deps and the join (as input_read_profile() says). A dep carries its source's
 * activation.
 */
bool input_mirror(const struct graph *forward, const struct input_twin *backward,
                  struct graph *to, struct rec_error *err) REC_MUST_CHECK;

/* ---- networks ------------------------------------------------------------ */

struct input_layer {
    char text[96];    /* as PyTorch prints it: "Conv2d(3, 64, kernel_size=(3, 3), ..." */
    double params;    /* trainable parameters that it owns; a sum counts each once */
    double weights;   /* parameters that it reads: its own, or those it is tied to */
    double flops;     /* forward, whole batch; a multiply-add counts two */
    double in, out;   /* elements read and written, whole batch, without parameters */
    const char *kind; /* of the work: convolution, matmul, attention or memory */
    double gemm[4];   /* BATCH, M, N, K of a matrix product; else 0 */
    size_t first,
        ninputs; /* network->read[first], ...: the earlier layers that it reads */
};

/** A network for one batch. Layers stand in topological order; the last is the only one
 * that no other reads. Starts as {0}. */
struct input_network {
    struct input_layer *layer; /* owned; input_network_free() */
    uint32_t *read;            /* owned */
    size_t nlayers, room, nreads, read_room;
    double batch; /* samples */
    double
        sequence; /* positions a sample (transformers): tokens, or patches of an image */
    bool has_tokens; /* they are tokens: the graph says how many, sequence= */
    bool failed;     /* out of memory while building */
};

#define INPUT_LEFT_MAX 300

enum input_activation { INPUT_GELU, INPUT_SILU, INPUT_RELU };

enum input_qk_norm { INPUT_QK_NONE, INPUT_QK_EACH_HEAD, INPUT_QK_ALL_HEADS };

/** What a layer has of its own. */
struct input_block {
    unsigned window; /* the most keys that a query attends to; 0: all before it */
    bool mixture;    /* its MLP is a mixture of experts */
};

/**
 * A transformer by its numbers: a stack of layers, each of them attention and an MLP. The
 * writing of ops (lib/input/transformer.c) only reads it. Starts as {0}; 0 means that a
 * model has no such part, unless said otherwise.
 */
struct input_transformer {
    unsigned width, layers, words;
    unsigned word_width;                  /* of the embeddings of words; 0: width */
    unsigned heads, kv_heads, head_width; /* of queries, of keys and values; of each */
    unsigned inner;                       /* of a dense MLP */

    /* Latent attention (DeepSeek-V2, 2024, section 2.1): keys and values come out of a
     * vector of kv_rank, queries of one of q_rank (0: of the whole width). The last
     * rope_width elements of a head's query and key hold the position; those of the key
     * are the same for all heads. */
    unsigned q_rank, kv_rank, rope_width;
    unsigned value_width; /* of a head's values; 0: head_width */

    /* A mixture: each token takes experts_used of `experts`, which are expert_inner wide,
     * and an MLP that all tokens share and is shared_inner wide. */
    unsigned experts, experts_used, expert_inner, shared_inner;

    unsigned positions, types; /* learned embeddings */
    unsigned relative_buckets; /* learned biases of scores, by distance, for each head */
    bool alibi; /* biases of scores that are the distance times a constant */

    /* Layers that come before, without a mask, and are read by each of `layers` through a
     * second attention. */
    unsigned encoder_layers;

    /* For models of images instead of words: pixels in a row of the square image, pixels in
     * a row of a patch, and channels of a pixel. */
    unsigned image, patch, channels;
    unsigned labels; /* a classifier of the first token */

    /* One for each of `layers`; input_transformer_free() frees it. NULL: no layer has a
     * window, and either all layers are mixtures of experts or none is. */
    struct input_block *block;
    bool causal;
    bool rms; /* RMSNorm instead of LayerNorm with a bias */
    /* Where norms stand: before attention and MLP; behind each of them, before it is
     * added; behind each addition; behind the embedding; at the end of the stack. */
    bool norm_before, norm_inside, norm_behind, norm_embedding, norm_final;
    enum input_qk_norm qk_norm; /* of queries and keys */
    bool parallel; /* MLP and attention have the same input, and are added at once */
    bool one_norm; /* which both read through the same norm */
    bool attention_bias, output_bias, mlp_bias, router_bias;
    bool sinks;       /* a learned score for each head, which takes part in the softmax */
    bool gated;       /* two products up, one of them through the activation */
    bool shared_gate; /* a learned gate of the shared MLP */
    bool cap_scores, cap_words; /* a tanh bounds scores of attention, of words */
    bool head, tied;            /* scores of words; by the weights of their embedding */
    bool pooler;
    double
        score_passes; /* how often a score is moved between the products of attention, in
                            elements, if that is not fused; 0: it is */
    enum input_activation activation;
};

/** A known network. */
struct input_network_spec {
    const char *name;
    double sequence; /* default and most, tokens; 0: takes images of 224 x 224 */
    void (*build)(struct input_network *network);
    const struct input_transformer *transformer; /* instead of `build`; or NULL */
    const char *about;
};

/**
 * Reads the config.json of a Hugging Face model, the reader's only file: model_type is
 * its family, which says which keys and defaults it has. *sequence is the most tokens.
 * `left` gets the keys that are not understood, as a list for a message; a caller must
 * show them. Free *transformer with input_transformer_free(), also if this fails.
 */
bool input_transformer_read(struct rec_reader *reader,
                            struct input_transformer *transformer, double *sequence,
                            char left[INPUT_LEFT_MAX],
                            struct rec_error *err) REC_MUST_CHECK;
void input_transformer_free(struct input_transformer *transformer);

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
/**
 * What input_transformer.score_passes is without fusing: PyTorch moves 37 or 33 bytes a
 * score between the products, in each direction. In mixed precision: scale 2 + 2, mask 2
 * + 2, to fp32 2 + 4, softmax 4 + 4, dropout 4 + 4 and its mask 1, to 16 bits 4 + 2; in
 * fp32 no conversions. `bytes`: an element.
 */
double input_score_passes(double bytes);
/** Appends a copy of a layer that reads those at the n indexes `reads`, which become its
 * first and ninputs. False: out of memory. */
bool input_network_add(struct input_network *network, const struct input_layer *layer,
                       const uint32_t *reads, size_t n,
                       struct rec_error *err) REC_MUST_CHECK;
/** Trainable parameters; a tied weight counts once, a batch norm has weight and bias. */
double input_network_params(const struct input_network *network);
/** The kind of network, for the key family= of its graph: "transformer" if it has
 * attention (a layer of that kind, or a product of activations one of which a softmax
 * made); "": not known. */
const char *input_network_family(const struct input_network *network);
void input_network_free(struct input_network *network);

/** The work of a layer's forward pass: its flops, and the bytes of its inputs, outputs and
 * weights, which are moved. `bytes`: of an element. All 0 for the input layer. */
struct device_work input_forward_work(const struct input_layer *layer, double bytes);
/** Backward: as much for the gradient of its inputs and, where it reads parameters, once
 * more for theirs; a matrix product has two operands in any case. Fused attention makes
 * its scores again: 2.5 times its flops, twice what it moves. */
struct device_work input_backward_work(const struct input_layer *layer, double bytes);

/** Starts *graph and builds it of a network at a precision, mirrored, its ops with the
 * work that they do and the time that it takes (none, if roofline->device is NULL, which
 * is no device); MEMORY is activation and parameters. The graph's ids are those of its
 * profile. */
bool input_network_graph(const struct input_network *network, const char *name,
                         const struct device_roofline *roofline, struct graph *graph,
                         struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
