/*
 * rampipe/parallel.h - one training step of a transformer under a mix of data, tensor,
 * pipeline, sequence, context and expert parallelism.
 *
 *     transformer          struct parallel_model    kinds of layers, each a list of ops
 *     and mix        ->    struct parallel_pipe     stages, chunks, what each device runs
 *                          memory, FLOPs            closed forms
 *
 * An op has the work of one token of one whole layer. Tensor parallelism divides it over
 * the ranks of a tensor group in the way its `split` says. All sizes are bytes, all times
 * seconds. Notation as in the literature: t tensor, p pipeline, v chunks of a stage, c
 * context, e expert, D data parallel degree; m microbatches of a replica.
 *
 * Sources: Shoeybi et al., "Megatron-LM", 2019 (tensor parallelism); Narayanan et al.,
 * "Efficient Large-Scale Language Model Training", SC 2021 (interleaved pipelines, counts
 * of operations); Korthikanti et al., "Reducing Activation Recomputation", 2022 (sequence
 * parallelism, memory of activations); Qi et al., "Zero Bubble Pipeline Parallelism",
 * 2024.
 */
#ifndef RAMPIPE_PARALLEL_H
#define RAMPIPE_PARALLEL_H

#include "rampipe/input.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- a transformer as kinds of layers -------------------------------------- */

enum parallel_class {
    PARALLEL_PRODUCT,   /* rows x k times k x n, `rows` rows a token */
    PARALLEL_ATTENTION, /* fused: the scores are never written */
    PARALLEL_SCORES,    /* a product of queries and keys, or of weights and values */
    PARALLEL_MOVE       /* moves elements through memory and computes little */
};

/** What the ranks of a tensor group divide among them. */
enum parallel_split {
    PARALLEL_TOKENS,       /* with sequence parallelism the tokens, else nothing */
    PARALLEL_WHOLE,        /* nothing: each rank does all of it */
    PARALLEL_COLUMNS,      /* n */
    PARALLEL_INNER,        /* k: the results are summed */
    PARALLEL_HEADS,        /* the heads; those of keys and values at most to one */
    PARALLEL_VOCABULARY,   /* the words */
    PARALLEL_EXPERTS,      /* the experts over expert ranks, and their columns over the
                            expert tensor group */
    PARALLEL_EXPERTS_INNER /* likewise, and k */
};

/** Parts of a model that may be frozen. */
enum parallel_part {
    PARALLEL_PART_EMBEDDING = 1,
    PARALLEL_PART_ATTENTION = 2,
    PARALLEL_PART_MLP = 4,
    PARALLEL_PART_EXPERTS = 8, /* and their router */
    PARALLEL_PART_NORMS = 16,
    PARALLEL_PART_HEAD = 32,
    PARALLEL_PART_ALL = 63
};

/** Where in a layer an op is: groups exchange something between these. */
enum parallel_segment {
    PARALLEL_BEFORE,     /* the first norm */
    PARALLEL_QUERIES,    /* queries, keys, values */
    PARALLEL_CORE,       /* attention proper */
    PARALLEL_PROJECTION, /* of its result */
    PARALLEL_MIDDLE,     /* the sum, the second norm */
    PARALLEL_ROUTE,      /* the router, tokens in the order of their experts */
    PARALLEL_MLP,        /* the MLP, or the experts of a rank */
    PARALLEL_RETURN,     /* what experts made, in the order of tokens; shared experts */
    PARALLEL_BEHIND,     /* the second sum */
    PARALLEL_SEGMENTS
};

struct parallel_op {
    const char *name;
    enum parallel_part part;
    enum parallel_segment segment;
    enum parallel_class does;
    enum parallel_split split;
    double rows;       /* of a product, a token */
    double k, n;       /* of a product; of attention the widths of a key and a value, of
                          scores k alone */
    double moved;      /* elements read and written forward, a token */
    double moved_back; /* backward */
    double params;     /* of the whole layer; 0: none */
    double kept;       /* bytes a token that backward needs, divided as `split` says */
    double kv;         /* of n or of `kept`: what is for keys and values */
    double kept_input; /* bytes a token of its input, divided as PARALLEL_TOKENS */
    double kernels;    /* of PARALLEL_MOVE, forward; backward twice as many */
    bool core;         /* between queries and the result of attention: selective
                          recomputation runs it again instead of keeping it */
    bool next_input;   /* `kept` is the input of the next product, for its weights */
    bool matched;      /* `moved`, `kept` are for each token and key, not each token */
};

enum { PARALLEL_OPS_MAX = 24 };

/** Layers that are alike. */
struct parallel_kind {
    struct parallel_op op[PARALLEL_OPS_MAX];
    unsigned nops;
    unsigned window; /* a query attends to at most this number of keys; 0: no limit */
    bool experts;
};

/** How a model is trained, as far as its ops depend on it. */
struct parallel_style {
    bool unfused;    /* attention writes its scores (three ops) */
    bool no_dropout; /* else there are masks */
};

/** A transformer. Starts as {0}; parallel_model_free() frees what it owns. */
struct parallel_model {
    struct input_transformer t; /* its numbers; `block` is owned */
    double sequence;            /* tokens of a sample */
    struct parallel_style style;
    struct parallel_kind *kind; /* owned */
    unsigned nkinds;
    unsigned *of; /* owned: the kind of each of t.layers */
    struct parallel_kind embedding, head;
};

/** Makes the kinds of layers of a transformer for samples of `sequence` tokens. *t is
 * copied. REC_DATA: it has a part that parallel training is not modelled for (an encoder,
 * images, parallel attention and MLP ...), which *err names. */
bool parallel_model_make(const struct input_transformer *t, double sequence,
                         const struct parallel_style *style, struct parallel_model *model,
                         struct rec_error *err) REC_MUST_CHECK;
void parallel_model_free(struct parallel_model *model);

/** Trainable parameters; exact. */
double parallel_model_params(const struct parallel_model *model);

/** Operations of the products and of attention of a step with this number of samples,
 * forward and backward, as papers count them for utilisation: 2 for a multiply-add, three
 * times the forward pass; routers and what is not a product do not count. `attention` is
 * the share of the square of scores that counts: 1, or 1/2 for a causal mask (NVIDIA's
 * figures count 1 until 2024, 1/2 since). `again` counts the layers' forward pass twice,
 * as for full recomputation ("hardware FLOPs"). */
double parallel_model_flops(const struct parallel_model *model, double samples,
                            double attention, bool again);

/* ---- schedules of pipelines -------------------------------------------------- */

enum parallel_pass {
    PARALLEL_FORWARD,
    PARALLEL_BACKWARD, /* of a split backward pass: the gradient of the input */
    PARALLEL_WEIGHT    /* the gradient of the weights */
};

/** What a device does next: a pass of one chunk of layers for one microbatch. */
struct parallel_item {
    uint32_t microbatch;
    uint16_t chunk; /* of the device, 0 to v - 1 */
    uint8_t pass;   /* enum parallel_pass */
};

/** A pipeline. Virtual stages are numbered along the model, 0 to p v - 1. Times of passes
 * have an entry for each of them. */
struct parallel_pipe {
    uint32_t stages;       /* p: devices */
    uint32_t chunks;       /* v: of each device */
    uint32_t microbatches; /* m */
    const double *forward, *backward;
    const double *weight; /* NULL: part of `backward` */
    double transfer; /* from one virtual stage to the next on another device, and back;
                        both go on working meanwhile */
    double busy;     /* of it, how long the sender's link cannot begin the next one; each
                        direction of the pipeline has a link. 0: messages overlap */
};

/** An order that was read. */
struct parallel_given {
    uint32_t stages, chunks, microbatches;
    const struct parallel_item *item; /* as `order` writes them */
};

/** A way to order passes. */
struct parallel_schedule {
    const char *name;
    bool periodic; /* behind the first p microbatches, and up to the last, the order
                      repeats itself every p of them */
    bool split;    /* weight gradients are passes of their own */
    bool vshape;   /* device r has virtual stages r and 2p - 1 - r; else r, r + p, ... */
    /* REC_DATA: it has no order for these numbers; *err says what would do. */
    bool (*check)(const struct parallel_pipe *pipe, struct rec_error *err);
    /* Writes the orders of all devices, one after the other: of each pass m v items. */
    bool (*order)(const struct parallel_pipe *pipe, struct parallel_item *item,
                  struct rec_error *err);
    const struct parallel_given *given; /* NULL: `check` and `order` are there */
};

/** The number of items in the order of a device. */
size_t parallel_items(const struct parallel_schedule *schedule,
                      const struct parallel_pipe *pipe);

/** Ends with NULL. */
extern const struct parallel_schedule *const parallel_schedules[];
/** By name; NULL: there is none. */
const struct parallel_schedule *parallel_schedule_find(const char *name);

/** The virtual stage of a chunk of device r. */
uint32_t parallel_stage(const struct parallel_schedule *schedule, uint32_t stages,
                        uint32_t r, uint32_t chunk);
/** The device of a virtual stage, and its chunk there. */
uint32_t parallel_device(const struct parallel_schedule *schedule, uint32_t stages,
                         uint32_t stage, uint32_t *chunk);

/** Schedules that were read. Starts as {0}. */
struct parallel_own {
    struct parallel_schedule *schedule; /* names, orders are owned */
    size_t n, room;
    struct rec_arena arena;
};
/** Adds the schedules of a reader: schedule and pass records. Other types are refused. */
bool parallel_own_read(struct parallel_own *own, struct rec_reader *reader,
                       struct rec_error *err) REC_MUST_CHECK;
void parallel_own_free(struct parallel_own *own);
/** Writes the order of a schedule as such records. REC_DATA: it has none for these
 * numbers. */
bool parallel_own_write(const struct parallel_schedule *schedule,
                        const struct parallel_pipe *pipe, const char *id,
                        struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

/** What comes out of one step of a pipeline. */
struct parallel_run {
    double seconds;     /* from the start to the last end */
    double idle;        /* share of the devices' time without work */
    uint32_t *inflight; /* for each device: the most chunks that were forward and not yet
                           backward; owned by the caller, NULL: not asked for */
    double *last;       /* for each device: when its last pass ends; likewise */
};

/** Runs the orders: each device runs the head of its list when its input is there. Exact.
 * REC_DATA: the orders wait for each other forever; *err names a device and its pass. */
bool parallel_run(const struct parallel_schedule *schedule,
                  const struct parallel_pipe *pipe, struct parallel_run *run,
                  struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
