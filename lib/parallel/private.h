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

/* The orders of all devices, parallel_items() each, one behind the other; the caller
 * frees them. NULL: *err. */
struct parallel_item *parallel_orders(const struct parallel_schedule *schedule,
                                      const struct parallel_pipe *pipe,
                                      struct rec_error *err) REC_MUST_CHECK;

/* By how much tensor parallelism divides what an op does or keeps. */
double parallel_divided(enum parallel_split split, const struct parallel_mix *mix);
/* The same of its part for keys and values, of which a rank has at least one head. */
double parallel_divided_kv(const struct parallel_model *model,
                           const struct parallel_mix *mix);
/* Tokens of a microbatch on a rank. */
double parallel_tokens(const struct parallel_model *model,
                       const struct parallel_mix *mix);

/* ---- questions (question.c) --------------------------------------------------- */

/* What a training record asks. */
struct parallel_question {
    struct input_transformer t;
    struct input_block *block; /* owned */
    double sequence;
    struct parallel_style style;
    struct parallel_model model; /* owned */
    struct parallel_mix mix;
    struct parallel_machine machine;
    char device[64];
    bool like; /* the stack is one of like steps, not of this family */
};

/* REC_NO: the record is right, but the tables or the model do not cover it. Free *q in
 * any case. */
bool parallel_question_read(struct parallel_question *q,
                            const struct parallel_tables *tables,
                            const struct rec_reader *reader, const struct rec *rec,
                            struct rec_error *err) REC_MUST_CHECK;
void parallel_question_free(struct parallel_question *q);

/* True if the answer of a training record has this key. */
bool parallel_is_answer(struct rec_str key);
/* Writes the keys of an answer. */
void parallel_answer_keys(struct rec_writer *writer, const struct parallel_question *q,
                          const struct parallel_step *step);

/* ---- kernels (kernels.c) --------------------------------------------------- */

/* `count` products of m x k and k x n. */
struct parallel_product {
    double m, n, k, count;
    enum parallel_precision precision;
    bool accumulate; /* the result is added to a buffer of 32 bits */
};
double parallel_product(const struct parallel_machine *machine,
                        const struct parallel_product *p);
/* Moves bytes through memory. */
double parallel_move(const struct parallel_machine *machine, double bytes);

/* ---- layers (cost.c) --------------------------------------------------------- */

/* Adds up the parts of a layer's passes, without exchanges. Returns how many kernels the
 * forward pass has; backward has twice as many. */
double parallel_layer_time(const struct parallel_model *model,
                           const struct parallel_mix *mix,
                           const struct parallel_machine *machine,
                           const struct parallel_kind *kind,
                           struct parallel_parts *forward,
                           struct parallel_parts *backward);
/* The same of what is computed again of a layer before its backward pass, by the mix. */
double parallel_again_time(const struct parallel_model *model,
                           const struct parallel_mix *mix,
                           const struct parallel_machine *machine,
                           const struct parallel_kind *kind,
                           struct parallel_parts *again);

/* ---- exchanges (traffic.c) ---------------------------------------------------- */

enum parallel_group {
    PARALLEL_TENSOR,
    PARALLEL_CONTEXT,
    PARALLEL_REPLICAS,
    PARALLEL_EXPERT,
    PARALLEL_EXPERT_REPLICAS
};

/* Seconds of a collective of a group, alone but for the groups beside it that share its
 * nodes' adapters. `kind` is "all-reduce", "all-gather", "reduce-scatter" or
 * "all-to-all"; `bytes` as nccl-tests counts them. */
double parallel_exchange(const struct parallel_mix *mix,
                         const struct parallel_machine *machine,
                         enum parallel_group group, const char *kind, double bytes);
/* Times that were looked up in the table of a machine: a slot for each hash, of which the
 * last one stays. `kind` is compared as a pointer. */
enum { PARALLEL_LOOKED = 4096 };
struct parallel_looked {
    const char *kind;
    double ranks, bytes, seconds;
};

/* Seconds of a message from a stage to the next. */
double parallel_message(const struct parallel_mix *mix,
                        const struct parallel_machine *machine, double bytes);

/* ---- parts of a step (step.c), of which the closed form is made ------------------ */

/* The passes of a layer of this kind, or of the embedding or the head of the model; added
 * to nothing. */
void parallel_kind_passes(const struct parallel_model *model,
                          const struct parallel_mix *mix,
                          const struct parallel_machine *machine,
                          const struct parallel_kind *kind,
                          struct parallel_passes *passes);
/* `message` of struct parallel_times. */
double parallel_message_shown(const struct parallel_model *model,
                              const struct parallel_mix *mix,
                              const struct parallel_machine *machine);
/* What a device that holds so many parameters on a rank does once, nothing hidden. */
void parallel_once_alone(const struct parallel_model *model,
                         const struct parallel_mix *mix,
                         const struct parallel_machine *machine, double dense,
                         double experts, double tensors, struct parallel_once *once);
/* Hides exchanges behind the passes of a microbatch, as far as the mix overlaps them. */
void parallel_once_hide(const struct parallel_mix *mix,
                        const struct parallel_machine *machine, double forward,
                        double backward, struct parallel_once *once);

#endif
