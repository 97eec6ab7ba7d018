/* What the files of lib/parallel share. */
#ifndef RAMPIPE_PARALLEL_PRIVATE_H
#define RAMPIPE_PARALLEL_PRIVATE_H

#include "rampipe/parallel_search.h"

/* The text of traces/stacks.rec (stack.c). */
extern const char parallel_shipped[];
extern const uint64_t parallel_shipped_size;

/* The order of schedules whose weight gradients fill the holes (zero.c). */
bool parallel_fill_holes(const struct parallel_pipe *pipe, struct parallel_item *item,
                         struct rec_error *err);

/* Multiply-adds of the forward pass of a token through a layer, of which attention counts
 * this share of the square. */
double parallel_kind_work(const struct parallel_model *m,
                          const struct parallel_kind *kind, double share);

/* The same of an op. */
double parallel_op_work(const struct parallel_model *m, const struct parallel_kind *kind,
                        const struct parallel_op *op, double share);

/* The orders of all devices, parallel_items() each, one behind the other; the caller
 * frees them. NULL: *err. */
struct parallel_item *parallel_orders(const struct parallel_schedule *schedule,
                                      const struct parallel_pipe *pipe,
                                      struct rec_error *err) REC_MUST_CHECK;

/* A number of microbatches with which each device holds as much at its peak as with all:
 * so many periods of p. All of the pipe if there are no more, or the schedule has no
 * period, or chunks take groups of other sizes. */
uint32_t parallel_fewer(const struct parallel_schedule *schedule,
                        const struct parallel_pipe *pipe, uint32_t periods);

/* The times of a pipeline. The caller frees pipe->forward, which all lists are in. */
bool parallel_pipe_make(const struct parallel_mix *mix,
                        const struct parallel_machine *machine,
                        const struct parallel_times *times, struct parallel_pipe *pipe,
                        struct rec_error *err) REC_MUST_CHECK;

/* By how much tensor parallelism divides what an op does or keeps. */
double parallel_divided(enum parallel_split split, const struct parallel_mix *mix);
/* The same of its part for keys and values, of which a rank has at least one head. */
double parallel_divided_kv(const struct parallel_model *model,
                           const struct parallel_mix *mix);
/* Scale, mask and softmax of unfused attention are one kernel. That of Megatron-LM takes
 * a multiple of four matrices of scores (megatron/model/fused_softmax.py). */
bool parallel_softmax_joined(const struct parallel_model *model,
                             const struct parallel_mix *mix);
/* Tokens of a microbatch on a rank. */
double parallel_tokens(const struct parallel_model *model,
                       const struct parallel_mix *mix);

/* ---- questions (question.c) --------------------------------------------------- */

/* What a training record asks. */
struct parallel_question {
    struct input_transformer t;
    struct input_block *block;         /* owned */
    uint32_t *stage_layers, *again_of; /* lists of the mix; owned */
    double sequence;
    struct parallel_style style;
    struct parallel_model model; /* owned */
    struct parallel_mix mix;
    struct parallel_machine machine;
    char device[64];
    bool like; /* the stack is one of like steps, not of this family */
    bool chip; /* and of another device with the same chip */
};

/* REC_NO: the record is right, but the tables or the model do not cover it. Free *q in
 * any case. */
bool parallel_question_read(struct parallel_question *q,
                            const struct parallel_tables *tables,
                            const struct rec_reader *reader, const struct rec *rec,
                            struct rec_error *err) REC_MUST_CHECK;
void parallel_question_free(struct parallel_question *q);
/* True: selective recomputation runs nothing again (struct parallel_count). */
bool parallel_again_is_idle(const struct parallel_question *q);

/* Writes the n measured steps that are nearest to a question, as near records; the
 * nearest first (near.c). */
bool parallel_near_write(const struct parallel_tables *tables,
                         const struct parallel_question *q, struct rec_str id, uint32_t n,
                         struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

/* ---- groups ------------------------------------------------------------------- */

enum parallel_group {
    PARALLEL_TENSOR,
    PARALLEL_CONTEXT,
    PARALLEL_EXPERT,
    PARALLEL_SHARDS, /* replicas among which weights, gradients, optimizer are sharded */
    PARALLEL_EXPERT_SHARDS,
    PARALLEL_BETWEEN, /* those that have the same shard, one of each of such groups */
    PARALLEL_EXPERT_BETWEEN
};

/* ---- the program of a step (program.c) ----------------------------------------- */

enum { PARALLEL_NAME = 48 };

enum parallel_lane {
    PARALLEL_LANE_COMPUTE,
    PARALLEL_LANE_ACTIVATIONS, /* messages forward */
    PARALLEL_LANE_GRADIENTS,   /* messages backward */
    PARALLEL_LANE_TENSOR,
    PARALLEL_LANE_CONTEXT,
    PARALLEL_LANE_TOKENS, /* of experts */
    /* of each group of replicas, which has a communicator of its own: */
    PARALLEL_LANE_DATA,
    PARALLEL_LANE_EXPERTS,
    PARALLEL_LANE_BETWEEN,
    PARALLEL_LANE_EXPERTS_BETWEEN,
    PARALLEL_LANES
};

/* An op of a device. */
struct parallel_node {
    char name[PARALLEL_NAME];
    const char *pass;
    char type[12]; /* chunk N, weights or exchange; "": none */
    double seconds, flops, hold;
    uint32_t device;
    uint32_t release; /* the op at whose end `hold` is released; UINT32_MAX: none */
    enum parallel_lane lane;
    uint64_t order; /* on the lane */
};

struct parallel_edge {
    uint32_t from, to; /* nodes */
    double bytes;
};

/* What a group exchanges; each of its members has such nodes. */
struct parallel_swap {
    char name[PARALLEL_NAME];
    const char *kind;
    enum parallel_group group;
    double bytes;
    uint32_t device;
    enum parallel_lane lane;
    uint32_t from; /* the node behind which it begins */
    uint32_t to;   /* the node that waits for it; UINT32_MAX: none */
};

/* What the devices of a pipeline do, one rank of each stage. Starts as {0}. */
struct parallel_program {
    struct parallel_node *node; /* owned, as all lists here */
    size_t nnodes, node_room;
    struct parallel_edge *edge;
    size_t nedges, edge_room;
    struct parallel_swap *swap; /* none in a folded graph: they are nodes */
    size_t nswaps, swap_room;
};

/* REC_NO: the question has no answer. Free *program in any case. */
bool parallel_program_make(struct parallel_program *program,
                           const struct parallel_graph *graph,
                           const struct parallel_question *q,
                           const struct parallel_times *times,
                           struct rec_error *err) REC_MUST_CHECK;
void parallel_program_free(struct parallel_program *program);
/* Writes the graph and its layout (program_write.c). */
bool parallel_program_write(const struct parallel_program *program,
                            const struct parallel_question *q, bool unfold,
                            const char *id, struct rec_writer *writer,
                            struct rec_error *err) REC_MUST_CHECK;

/* ---- ranks (ranks.c) ----------------------------------------------------------- */

/* A stage has t c D ranks, `column` 0 to t c D - 1. The rank of one among all. */
uint64_t parallel_rank(const struct parallel_mix *mix, uint32_t device, uint32_t column);
/* How many columns have neighbouring ranks on a device of the pipeline. */
uint32_t parallel_together(const struct parallel_mix *mix);
/* A group: `rows` rows that are `far` columns apart, each of n columns `stride` apart. */
struct parallel_spread {
    uint32_t stride, n, far, rows;
};
struct parallel_spread parallel_spread_of(const struct parallel_mix *mix,
                                          enum parallel_group group);
/* REC_DATA: the order of ranks cannot be laid out for this mix; *err names one that
 * can. */
bool parallel_order_check(const struct parallel_mix *mix, bool experts,
                          struct rec_error *err) REC_MUST_CHECK;
/* The columns of the group of a column, in order; member[] has room for all of a stage.
 * Returns how many. */
uint32_t parallel_members(const struct parallel_mix *mix, enum parallel_group group,
                          uint32_t column, uint32_t *member);
/* What a virtual stage without the head keeps of what it sent, until its gradient comes,
 * unless it frees it; part of parallel_stage_kept(). */
double parallel_sent_kept(const struct parallel_mix *mix,
                          const struct parallel_model *model);
/* True if the answer of a training record has this key. */
bool parallel_is_answer(struct rec_str key);
/* Writes the keys of an answer. */
bool parallel_answer_keys(struct rec_writer *writer, const struct parallel_question *q,
                          const struct parallel_step *step, double jitter,
                          struct rec_error *err) REC_MUST_CHECK;

/* ---- kernels (kernels.c) --------------------------------------------------- */

/* `count` products of m x k and k x n. */
struct parallel_product {
    double m, n, k, count;
    enum parallel_precision precision;
    bool accumulate; /* the result is added to a buffer of 32 bits */
    enum kernel_pass pass;
    bool batched; /* each of them has operands of its own: no table has such */
};
/* *measured: of the seconds, those that a table of measured kernels says; added to. */
double parallel_product(const struct parallel_machine *machine,
                        const struct parallel_product *p, double *measured);
/* What a table says of it; 0: nothing (measured_kernels.c). */
double parallel_measured_product(const struct parallel_machine *machine,
                                 const struct parallel_product *p);
/* The same of attention in a layer. */
double parallel_measured_attention(const struct parallel_model *model,
                                   const struct parallel_mix *mix,
                                   const struct parallel_machine *machine,
                                   const struct parallel_kind *kind,
                                   const struct parallel_op *op, enum kernel_pass pass);
/* Moves bytes through memory. */
double parallel_move(const struct parallel_machine *machine, double bytes);

/* ---- layers (cost.c) --------------------------------------------------------- */

/* Whether a product has an adapter beside its frozen weights. */
bool parallel_adapted(const struct parallel_mix *mix, const struct parallel_op *op);
/* Whether what is multiplied in 8 bits has a second, turned copy. Before Blackwell the
 * units for 8 bits read their inputs along one dimension only, and scales of blocks hold
 * for one dimension; backward multiplies along the other one. */
bool parallel_turned(const struct parallel_mix *mix,
                     const struct parallel_machine *machine);

/* Adds up the parts of a layer's passes, without exchanges. Returns how many kernels the
 * forward pass has; backward has twice as many. */
double parallel_layer_time(const struct parallel_model *model,
                           const struct parallel_mix *mix,
                           const struct parallel_machine *machine,
                           const struct parallel_kind *kind,
                           struct parallel_parts *forward,
                           struct parallel_parts *backward);
/* The same of each segment of a layer, all parts in one. */
void parallel_segment_times(const struct parallel_model *model,
                            const struct parallel_mix *mix,
                            const struct parallel_machine *machine,
                            const struct parallel_kind *kind,
                            double forward[PARALLEL_SEGMENTS],
                            double backward[PARALLEL_SEGMENTS]);
/* Bytes that casting an element of the weights moves, once in a step. */
/* The share of an exchange beside computing that is not hidden: what the stack leaves
 * exposed, and of the rest what computing loses by the processors that it lacks. */
double parallel_exposed(const struct parallel_mix *mix,
                        const struct parallel_machine *machine);
/* Bytes of an element of the gradients that are exchanged. */
double parallel_gradient(const struct parallel_mix *mix,
                         const struct parallel_machine *machine);
double parallel_weight_cast(const struct parallel_mix *mix,
                            const struct parallel_machine *machine);
/* True if an op runs forward again before its layer's backward pass. `product`: how many
 * products are before it. PARALLEL_HALF keeps every second one, and what fused attention
 * gives (kept_result() in memory.c). */
bool parallel_runs_again(const struct parallel_mix *mix, const struct parallel_op *op,
                         unsigned product);

/* As parallel_layer_time(), of what is computed again of a layer before its backward
 * pass, by the mix. */
double parallel_again_time(const struct parallel_model *model,
                           const struct parallel_mix *mix,
                           const struct parallel_machine *machine,
                           const struct parallel_kind *kind,
                           struct parallel_parts *again);

/* ---- mixes (mix.c) ------------------------------------------------------------ */

/* What is sharded, as mix->zero: the only shard is the whole, and nothing is gathered
 * beside it. */
uint32_t parallel_zero(const struct parallel_mix *mix);
/* Parts of parallel_mix_check(): what tensor and expert tensor ranks divide, and what
 * context ranks and sequence parallelism do. */
bool parallel_tensor_check(const struct parallel_mix *mix,
                           const struct parallel_model *model,
                           struct rec_error *err) REC_MUST_CHECK;
bool parallel_context_check(const struct parallel_mix *mix,
                            const struct parallel_model *model,
                            struct rec_error *err) REC_MUST_CHECK;

/* ---- exchanges (traffic.c) ---------------------------------------------------- */

/* Seconds of a collective of a group, alone but for the groups beside it that share its
 * nodes' adapters. `kind` is "all-reduce", "all-gather", "reduce-scatter" or
 * "all-to-all"; `bytes` as nccl-tests counts them. */
double parallel_exchange(const struct parallel_mix *mix,
                         const struct parallel_machine *machine,
                         enum parallel_group group, const char *kind, double bytes);
/* Bytes of what groups exchange in a layer for a microbatch, of one rank's buffer. */
struct parallel_traffic {
    double tensor;     /* an all-reduce, or an all-gather and a reduce-scatter */
    double keys;       /* an all-gather among context ranks, or, if heads are dealt, an
                          all-to-all before attention */
    double result;     /* an all-to-all behind it; 0: heads are not dealt */
    double dispatched; /* an all-to-all among expert ranks: a token goes once to each rank
                          that has one of its experts */
};
struct parallel_traffic parallel_traffic_of(const struct parallel_model *model,
                                            const struct parallel_mix *mix);
/* Exchanges of a tensor group in a pass of a layer; each is an all-reduce, or what takes
 * its place. */
unsigned parallel_tensor_times(const struct parallel_model *model,
                               const struct parallel_mix *mix,
                               const struct parallel_kind *kind);
/* Seconds in which the tokens of a rank, so many bytes, go each to this number of experts
 * that lie anywhere in the expert group, or come back. As the libraries of 2025 do it, a
 * token is sent once to each node that needs it, and there once to each rank. */
double parallel_dispatch(const struct parallel_mix *mix,
                         const struct parallel_machine *machine, double bytes,
                         double experts);
/* Times that were looked up in the table of a machine: a slot for each hash, of which the
 * last one stays. `kind` is compared as a pointer. */
enum { PARALLEL_LOOKED = 4096 };
struct parallel_looked {
    const char *kind;
    double ranks, bytes, seconds;
};

/* What a step is asked of; borrowed. */
struct parallel_ask {
    const struct parallel_model *model;
    const struct parallel_mix *mix;
    const struct parallel_machine *machine;
};

void parallel_parts_add(struct parallel_parts *sum, const struct parallel_parts *p,
                        double times);
/* Seconds of a message from a stage to the next. */
double parallel_message(const struct parallel_mix *mix,
                        const struct parallel_machine *machine, double bytes);

/* ---- parts of a step (times.c), of which the closed form is made ------------------ */

/* The passes of a layer of this kind, or of the embedding or the head of the model; added
 * to nothing. */
void parallel_kind_passes(const struct parallel_model *model,
                          const struct parallel_mix *mix,
                          const struct parallel_machine *machine,
                          const struct parallel_kind *kind,
                          struct parallel_passes *passes);
/* Of layer j of a virtual stage, without the ends. */
const struct parallel_passes *parallel_times_kind(const struct parallel_times *times,
                                                  const struct parallel_model *model,
                                                  const struct parallel_mix *mix,
                                                  uint32_t stage, uint32_t j);
/* Seconds in which the first and the last stage add up gradients of the embedding, which
 * is the head, too, if the stages have a copy each (megatron/core/distributed/
 * finalize_model_grads.py). */
double parallel_tied(const struct parallel_model *model, const struct parallel_mix *mix,
                     const struct parallel_machine *machine);
/* `message` of struct parallel_times. */
double parallel_message_shown(const struct parallel_model *model,
                              const struct parallel_mix *mix,
                              const struct parallel_machine *machine);
/* What a device that holds so many parameters on a rank does once, nothing hidden. */
void parallel_once_alone(const struct parallel_model *model,
                         const struct parallel_mix *mix,
                         const struct parallel_machine *machine, double dense,
                         double experts, struct parallel_once *once);
/* Hides exchanges behind the passes of a microbatch, as far as the mix overlaps them. */
void parallel_once_hide(const struct parallel_mix *mix,
                        const struct parallel_machine *machine, double forward,
                        double backward, struct parallel_once *once);

#endif
