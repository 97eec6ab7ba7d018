/*
 * rampipe/parallel_step.h - how long a training step takes, and whether it fits.
 *
 *     struct parallel_model      what is trained
 *     struct parallel_mix        how it is divided        ->  struct parallel_step
 *     struct parallel_machine    on what                      seconds and bytes by kind
 *
 * The pipeline is run by its schedule, exactly (parallel_run()). The times that enter it
 * are sums over the ops of a stage: products of matrices by their shapes, attention,
 * memory traffic, and the exchanges of tensor, context and expert groups, each alone.
 * What is hidden behind computing is a share, one number of a software stack. Links that
 * groups share are not simulated here; groups that use the same adapters at the same time
 * divide them.
 *
 * Units: seconds, bytes, FLOP/s. Notation as in rampipe/parallel.h.
 */
#ifndef RAMPIPE_PARALLEL_STEP_H
#define RAMPIPE_PARALLEL_STEP_H

#include "rampipe/collective.h"
#include "rampipe/device.h"
#include "rampipe/kernel.h"
#include "rampipe/net.h"
#include "rampipe/parallel.h"

REC_BEGIN_DECLS

/* ---- the mix --------------------------------------------------------------- */

enum parallel_recompute {
    PARALLEL_KEEP_ALL,
    PARALLEL_SELECTIVE, /* the matrix of scores, and what is made of it */
    PARALLEL_HALF,      /* attention, and every second product */
    PARALLEL_FULL       /* only the input of a layer is kept */
};

/** Which exchanges run beside computing. */
enum parallel_overlap {
    PARALLEL_OVERLAP_TP = 1,
    PARALLEL_OVERLAP_PP = 2,
    PARALLEL_OVERLAP_DP = 4,
    PARALLEL_OVERLAP_CP = 8,
    PARALLEL_OVERLAP_EP = 16
};

/** Dimensions of the ranks. */
enum parallel_dimension {
    PARALLEL_DIM_TP,
    PARALLEL_DIM_CP,
    PARALLEL_DIM_EP,
    PARALLEL_DIM_DP,
    PARALLEL_DIM_PP,
    PARALLEL_DIMENSIONS
};

/** The order in which dimensions take neighbouring ranks; those of the first one are
 * neighbours. Of dimensions a < b, bit a * PARALLEL_DIMENSIONS + b is set if b comes
 * first: 0 is tp-cp-ep-dp-pp. Experts are dealt over the t c D ranks of a stage: those
 * have the order tp, cp, dp without experts, and etp, ep, replicas of an expert with
 * them, both as given. With PARALLEL_ORDER_ANY expert ranks lie inside the replicas,
 * wherever the stages are. */
#define PARALLEL_ORDER_ANY (1U << 31)
/** Reads dimensions, such as tp-cp-dp-pp, with or without ep. False: it is no order. */
bool parallel_order_read(struct rec_str text, unsigned *order);
/** True if dimension a comes before b. */
bool parallel_order_before(unsigned order, enum parallel_dimension a,
                           enum parallel_dimension b);

/** Which products have adapters where the base weights are frozen. */
enum parallel_adapt {
    PARALLEL_ADAPT_QKV = 1,
    PARALLEL_ADAPT_PROJECTION = 2,
    PARALLEL_ADAPT_MLP = 4
};

/** Numbers in which matrix products are computed. */
enum parallel_precision {
    PARALLEL_BF16, /* or fp16 */
    PARALLEL_FP8,
    PARALLEL_FP4
};

/** How a model is divided over ranks. Degrees are at least 1. */
struct parallel_mix {
    uint32_t tp, pp, vp, dp, cp, ep;
    uint32_t etp;    /* tensor degree of experts; divides tp */
    uint32_t zero;   /* what is sharded over replicas: 0 nothing, 1 the optimizer, 2 also
                        gradients, 3 also weights */
    uint32_t shard;  /* hybrid: sharded in groups of so many replicas; 0: over all */
    bool sequence;   /* sequence parallelism */
    bool ends;       /* embedding and head count as a layer each in the split */
    uint32_t micro;  /* samples of a microbatch of a replica */
    uint32_t global; /* samples of a step */
    enum parallel_recompute recompute;
    uint32_t again; /* number of layers that run again under full recomputation, from the
                       first of each virtual stage on; 0: all */
    const uint32_t *again_of; /* the same of each virtual stage, where 0 is none;
                                 borrowed. NULL: `again` */
    const uint32_t *layers;   /* of each virtual stage, borrowed; NULL: equally many, the
                                 first ones have one more */
    unsigned frozen;          /* of enum parallel_part: weights that are not trained */
    uint32_t lora;     /* rank of adapters; 0: none. With them all weights are frozen,
                        unless `frozen` says which */
    unsigned adapters; /* of enum parallel_adapt */
    unsigned overlap;  /* of enum parallel_overlap */
    unsigned order;    /* of ranks: parallel_order_read() */
    enum parallel_precision precision;
    bool deal_heads; /* context parallelism deals heads by all-to-alls; else keys and
                        values go round */
    bool blocks;     /* of 8 bits: each 32 elements have a scale (MXFP8) */
    bool frees;      /* a stage frees what it has sent to the next one */
    bool fp16;       /* its 16-bit numbers are fp16: the optimizer has 32-bit gradients */
    bool attention_fp8;
    bool activation_fp8; /* the input of activation functions is kept in 8 bits */
    bool turned;         /* frozen weights of 8 bits have a second, turned copy */
    bool gather_fp8;     /* shards of weights are gathered in 8 bits */
    unsigned
        gradient;   /* bytes of an element of the gradients that are held and exchanged;
                          0: as the stack says */
    unsigned taken; /* processors that an exchange beside computing takes from it; 0:
                       what the stack leaves exposed is all that it costs */
    bool graph;     /* CUDA graphs: the host issues no single kernels */
    const struct parallel_schedule *schedule;
};

/** True if the weights of an op are not trained: they have no gradient, no exchange and
 * no optimizer. */
bool parallel_frozen(const struct parallel_mix *mix, const struct parallel_op *op);
/** How many layers of a virtual stage run forward again before backward: the first
 * ones. */
uint32_t parallel_again(const struct parallel_mix *mix, uint32_t stage);
/** Microbatches of a replica in a step. */
uint32_t parallel_microbatches(const struct parallel_mix *mix);
/** p c t D. */
uint64_t parallel_ranks(const struct parallel_mix *mix);
/** REC_DATA: the mix does not divide the model or itself; *err says the nearest numbers
 * that would. */
bool parallel_mix_check(const struct parallel_mix *mix,
                        const struct parallel_model *model,
                        struct rec_error *err) REC_MUST_CHECK;

/** What a virtual stage holds. */
struct parallel_chunk {
    uint32_t first, layers; /* may be none */
    bool embedding, head;
};
/** Of virtual stage 0 to p v - 1; the mix has been checked. */
struct parallel_chunk parallel_chunk_of(const struct parallel_mix *mix,
                                        const struct parallel_model *model,
                                        uint32_t stage);

/* ---- memory ---------------------------------------------------------------- */

/** Bytes of a device by kind. */
struct parallel_memory {
    double weights, gradients, optimizer;
    double activations; /* at their peak */
    double working;     /* of the layer that is recomputed or gathered, and of the loss */
    double copy;        /* of gradients, when activations are free: not in the sum */
    double overhead;    /* of the stack: what is not counted op by op */
};
/** The sum of all kinds. */
double parallel_memory_sum(const struct parallel_memory *memory);

/** Bytes that backward needs of one microbatch of a layer of this kind, on one rank. */
double parallel_kept(const struct parallel_kind *kind, const struct parallel_model *model,
                     const struct parallel_mix *mix);
/** Parameters of a layer of this kind on one rank: in *dense those whose replicas are in
 * D c ranks, in *experts those whose replicas are in N / (p e etp). Both are added to. */
void parallel_held(const struct parallel_kind *kind, const struct parallel_mix *mix,
                   const struct parallel_model *model, double *dense, double *experts);
/** The same of what is not frozen. */
void parallel_trained(const struct parallel_kind *kind, const struct parallel_mix *mix,
                      const struct parallel_model *model, double *dense, double *experts);
/** Bytes that a virtual stage keeps of a microbatch until its backward pass. */
double parallel_stage_kept(const struct parallel_mix *mix,
                           const struct parallel_model *model, uint32_t stage);
/** Memory of device r without activations. */
struct parallel_stack;
void parallel_memory_of(const struct parallel_mix *mix,
                        const struct parallel_model *model, uint32_t r,
                        const struct parallel_stack *stack,
                        struct parallel_memory *memory);
/** Puts activations in, bytes at their peak. Where copies of gradients take more than
 * these and the working memory, they count as working memory. */
void parallel_memory_keep(struct parallel_memory *memory, double activations);

/* ---- the machine ------------------------------------------------------------- */

/** What a software stack reaches on a device; see stack in rampipe(5). Its six numbers
 * are fitted to measured steps, the rest is known of it. */
struct parallel_stack {
    const char *name;
    double share, memory, attention;
    double exposed;
    double host; /* seconds */
    double adapter;
    bool blocking, copies;
    double between;  /* seconds between steps in which the device waits for the host */
    double gradient; /* bytes of an element in the exchange of gradients */
    double held;     /* bytes that the gradient of a parameter takes in memory */
    double loss;     /* bytes that the loss holds of a score of a word */
    double sharded_loss; /* the same where tensor ranks share the words */
    bool unpadded;   /* words are not filled up where tensor ranks do not share them */
    bool frees;      /* a stage frees what it sent */
    bool flat;       /* the optimizer makes flat copies of gradients */
    bool reserved;   /* memory is what PyTorch's allocator reserves */
    double overhead; /* bytes: context, buffers, what the allocator cannot use */
    const char *device, *precision, *families, *releases; /* lists; "": none given */
    double fit, error, like;                              /* mean errors; < 0: unknown */
    uint64_t rows;
};

/** Devices, and the links among them. */
struct parallel_machine {
    double peak[3]; /* FLOP/s by enum parallel_precision */
    double processors;
    double launch;    /* seconds until the first block of a kernel works */
    double bandwidth; /* of memory, bytes/s */
    double memory;    /* bytes */
    uint32_t node;    /* devices of an island */
    double inside;    /* bytes/s of a device one way to others of its island */
    double adapter;   /* bytes/s of a device one way to other nodes */
    double inside_latency, latency; /* seconds */
    const struct parallel_stack *stack;
    const struct collective_table *table; /* measured times inside nodes; NULL: none */
    const char *system;                   /* in that table */
    double widened; /* factor by which links inside are faster than measured; 0: none */
    struct parallel_looked *looked; /* what was looked up there; NULL: not kept */
    struct kernel *kernel[3];       /* measured, by enum parallel_precision; NULL: none */
};

/* ---- the step ---------------------------------------------------------------- */

/** Seconds of a pass of one microbatch, by what they are for. */
struct parallel_parts {
    double products, attention, moves, host; /* host: what it adds */
    double tensor, context, expert;          /* exchanges: what is not hidden */
    double shards;                           /* gathers and scatters of weights */
    double measured; /* of products and attention: by tables of measured kernels */
};
double parallel_parts_sum(const struct parallel_parts *parts);

/** Of a virtual stage. */
struct parallel_passes {
    struct parallel_parts forward, backward;
    double weight; /* of `backward`: gradients of weights, which a schedule may run as a
                      pass of its own */
};

/** What a device does once in a step. */
struct parallel_once {
    double gradients; /* their exchange behind backward, as far as it is not hidden */
    double tied;      /* of these: of the embedding, with the stage that has its copy */
    double optimizer;
    double weights; /* their gather before the next forward pass, likewise */
};

/** The times that a step is made of. Starts as {0}. */
struct parallel_times {
    struct parallel_passes *stage; /* of virtual stages 0 to p v - 1; owned */
    struct parallel_once *device;  /* of devices 0 to p - 1; owned */
    /* What the stages are made of: each kind of layer, embedding, head, and again each
       kind of layer where it is not run again; owned */
    struct parallel_passes *kind;
    double message; /* from a stage to the next, as far as it is not hidden; if the
                       stack is `blocking`, it holds up both devices */
    double message_bytes;
};

/** Finds the times. REC_DATA: the mix is wrong for the model. Free *times in any case. */
bool parallel_times_make(const struct parallel_model *model,
                         const struct parallel_mix *mix,
                         const struct parallel_machine *machine,
                         struct parallel_times *times,
                         struct rec_error *err) REC_MUST_CHECK;
void parallel_times_free(struct parallel_times *times);
/** Of layer j of a virtual stage, of which there is at least one. Of the first and of the
 * last layer of the model, with its end. */
struct parallel_passes parallel_times_layer(const struct parallel_times *times,
                                            const struct parallel_model *model,
                                            const struct parallel_mix *mix,
                                            uint32_t stage, uint32_t j);

/** Where the time of a step goes, on the device whose last pass, exchanges and optimizer
 * end last. The parts add up to `seconds`. */
struct parallel_step {
    double seconds;
    struct parallel_parts parts; /* of all microbatches */
    double transfer;             /* messages that hold it up */
    double idle;                 /* while it waits for others */
    struct parallel_once once;
    uint32_t device;               /* which one it is */
    struct parallel_memory memory; /* of the device that needs most */
    double flops;                  /* of the model, with attention in full */
    double causal;                 /* the same, with half the square */
    double bubble; /* share of the pipeline's time in which a device waits, of all */
};

/** Operations that the devices run in a step: those of the model but for gradients of
 * frozen weights, and what runs forward again. `attention` as of
 * parallel_model_flops(). */
double parallel_hardware_flops(const struct parallel_model *model,
                               const struct parallel_mix *mix, double attention);

/** Predicts a step. REC_DATA: the mix is wrong for the model. */
bool parallel_step(const struct parallel_model *model, const struct parallel_mix *mix,
                   const struct parallel_machine *machine, struct parallel_step *step,
                   struct rec_error *err) REC_MUST_CHECK;

/** The same, and in each[r] that of device r of the pipeline, whose idle time lasts until
 * the end of the step, and whose memory is its own. */
bool parallel_step_each(const struct parallel_model *model,
                        const struct parallel_mix *mix,
                        const struct parallel_machine *machine,
                        struct parallel_step *step, struct parallel_step *each,
                        struct rec_error *err) REC_MUST_CHECK;

/* ---- jitter ---------------------------------------------------------------------- */

/** The mean of the largest of n independent standard normal numbers, and a quantile of
 * it: what a `share` of the largest ones does not exceed, 0 < share < 1. */
double parallel_slowest(double n);
double parallel_slowest_quantile(double n, double share);

/** What it costs to wait for the slowest rank, if the times of ranks have this standard
 * deviation relative to the step's. */
struct parallel_wait {
    double mean;     /* seconds that a step takes longer */
    double p10, p90; /* seconds that a tenth, nine tenths of the steps do not exceed */
};
struct parallel_wait parallel_wait(double jitter, double ranks, double seconds);

/* ---- tables and questions ------------------------------------------------------ */

/** Stacks in the order of their records; later ones of a name replace earlier ones.
 * Starts as {0}. */
struct parallel_stacks {
    struct parallel_stack *stack;
    size_t n, room;
    struct rec_arena arena;
};
/** Adds all records of a reader. Other types than stack are refused. */
bool parallel_stacks_read(struct parallel_stacks *stacks, struct rec_reader *reader,
                          struct rec_error *err) REC_MUST_CHECK;
/** Adds the records that come with rampipe: traces/stacks.rec. */
bool parallel_stacks_read_shipped(struct parallel_stacks *stacks,
                                  struct rec_error *err) REC_MUST_CHECK;
void parallel_stacks_free(struct parallel_stacks *stacks);

/**
 * Measured kernels. Times of products and of attention come from there where it has the
 * kernel, or similar ones between which kernel(1) finds it (how=measured, neighbours),
 * and stand as they are; where it has none, the form of the stack does. The kernels that
 * come with rampipe do not count.
 */
struct parallel_kernels;
/** The table is borrowed. NULL: *err. */
struct parallel_kernels *parallel_kernels_new(const struct device_table *devices,
                                              struct rec_error *err) REC_MUST_CHECK;
/** Reads a file as kernel_table_read_file() does, or records as kernel_table_read(); all
 * before the first question. */
bool parallel_kernels_read(struct parallel_kernels *kernels, const char *path,
                           struct rec_error *err) REC_MUST_CHECK;
bool parallel_kernels_take(struct parallel_kernels *kernels, struct rec_reader *reader,
                           struct rec_error *err) REC_MUST_CHECK;
/** How many of them are of libraries for inference, which a step has none of: they only
 * stand near its own. */
size_t parallel_kernels_inference(const struct parallel_kernels *kernels);
/** Gives them to a machine of a device; fp16: its 16-bit numbers are those. */
bool parallel_kernels_open(struct parallel_kernels *kernels, const char *device,
                           bool fp16, struct parallel_machine *machine,
                           struct rec_error *err) REC_MUST_CHECK;
void parallel_kernels_free(struct parallel_kernels *kernels);

/** Writes the training record of a model, without a mix. REC_DATA: parallel training is
 * not modelled for it, or the record has no keys for it; *err says why. */
bool parallel_training_write(const struct input_transformer *t, const char *id,
                             double sequence, struct rec_writer *writer,
                             struct rec_error *err) REC_MUST_CHECK;

/** What a question is answered from; borrowed. */
struct parallel_tables {
    const struct parallel_stacks *stacks;
    const struct device_table *devices;
    const struct collective_table *collectives;
    const struct parallel_own *own;   /* schedules that were read; NULL: none */
    struct parallel_kernels *kernels; /* measured kernels; NULL: none */
    uint32_t servers; /* of a cluster, which a mix may not need more of; 0: no limit */
};

/** What connects devices: the fabric whose name is that of the device but for its memory,
 * as h100 of h100-80 and a100-pcie of a100-80-pcie; NULL: not known. */
const struct collective_fabric *parallel_fabric(const struct collective_table *table,
                                                const char *device);

/** How questions are answered, and how many were. */
struct parallel_count {
    uint64_t asked;
    uint64_t refused; /* of these */
    uint64_t unknown; /* of those that were answered: tables of measured kernels have
                         nothing of them */
    uint64_t idle;    /* of those that were answered: selective recomputation runs nothing
                         again, as fused attention keeps no scores */
    bool stages;      /* a spent record for each device of the pipeline follows */
    double jitter;    /* of the time of a rank, relative; 0: none is modelled */
    double tokens;    /* to be trained with: days and US$ are said; 0: not said */
    double price;     /* of a device, US$ an hour; 0: not known */
    uint32_t near;    /* number of near records (measured steps) that follow */
};

/** Answers a training record: writes it with the answer, which replaces one that it has
 * already, and counts it. A question that the tables or the model do not cover gets
 * how=none, and law= says why; a wrong record is an error. A record of another type is
 * passed on. */
bool parallel_answer_record(const struct parallel_tables *tables,
                            const struct rec_reader *reader, const struct rec *rec,
                            struct rec_writer *writer, struct parallel_count *count,
                            struct rec_error *err) REC_MUST_CHECK;

/** How a graph of a step is written. */
struct parallel_graph {
    const struct parallel_tables *tables;
    bool unfold;    /* all ranks, not one of each stage */
    unsigned colls; /* of enum parallel_overlap: exchanges that the cluster's network
                       times */
    struct rec_limit limit; /* of records */
    bool orders;            /* no graph, but the schedule as records */
    struct net *net; /* the cluster; NULL: an island of all devices of the mix is made.
                        Owned by the caller in any case */
    uint64_t steps;  /* of the job */
    bool written;    /* a training record has come */
    bool idle;       /* as in struct parallel_count */
};

/**
 * Takes a training record, and writes the step that it asks for as a graph that is
 * placed: the folded one, in which one tensor, context and data rank of each stage stands
 * for all, or all ranks, each on the server of its number. For each device of the
 * pipeline it has
 *
 *     ops FORWARD and BACKWARD   for each microbatch and virtual stage, in the strict
 *                                order of the schedule, with the seconds of
 *                                parallel_times; forward ops hold what backward needs
 *                                until it ends
 *     messages                   as ops on a lane of their own, or part of the passes if
 *                                the stack is blocking
 *     gradients, optimizer, weights    behind the last pass
 *     state                      holds weights, gradients, the optimizer, the working
 *                                layer: an op each
 *
 * then its layout, job and alloc. Simulated, the step takes the seconds of
 * parallel_step(), unless two messages of one kind leave a device at once.
 *
 * With `colls`, messages are deps with their bytes, and what groups exchange are colls of
 * their groups (in a folded graph: ops that take the time that the network takes alone).
 * Those of replicas run layer by layer beside the passes where they overlap: gradients
 * behind the last microbatch's backward pass, weights before the first one's forward
 * pass, or, if they are sharded, one layer ahead of each pass. At those of tensor,
 * context and expert groups each layer's passes are cut into ops; of what overlaps, the
 * stack's exposed share holds up the next op, and the rest runs beside the ops that make
 * or read it. A folded graph with colls says stands_for=: its exchanges do not share
 * links with those of the ranks that it stands for. Other records are passed on. REC_NO:
 * the question has no answer. REC_USAGE: the graph would have more records than `limit`.
 */
bool parallel_graph_record(struct parallel_graph *graph, const struct rec_reader *reader,
                           const struct rec *rec, struct rec_writer *writer,
                           struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
