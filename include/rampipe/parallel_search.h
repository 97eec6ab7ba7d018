/*
 * rampipe/parallel_search.h - which mix of parallelism is best.
 *
 *     parallel_closed_step()    a step in closed form: microseconds, not milliseconds
 *     parallel_search()         all mixes of so many devices by the closed form, the best
 *                               of them by parallel_step()
 *     parallel_search_why()     why it does not choose one
 *
 * Notation as in rampipe/parallel.h.
 */
#ifndef RAMPIPE_PARALLEL_SEARCH_H
#define RAMPIPE_PARALLEL_SEARCH_H

#include "rampipe/parallel_step.h"

REC_BEGIN_DECLS

/** A step in closed form. */
struct parallel_closed {
    double seconds;
    double memory; /* bytes of the device that needs most */
};

/**
 * The closed form of parallel_step(): the same costs of layers, exchanges and memory,
 * but the pipeline is not run. A device ends no sooner than
 *
 *     its start, while passes of other stages run that it waits for
 *     + all its passes
 *     + its end, while it waits for the passes of others of the last microbatches
 *
 * so that the closed form is at most what parallel_step() says but for rounding. It is
 * less where stages that differ hold each other up in the middle of a step.
 * REC_DATA: the mix is wrong for the model, or its schedule has no closed form (those
 * that split the backward pass).
 */
bool parallel_closed_step(const struct parallel_model *model,
                          const struct parallel_mix *mix,
                          const struct parallel_machine *machine,
                          struct parallel_closed *answer,
                          struct rec_error *err) REC_MUST_CHECK;

/* ---- search ------------------------------------------------------------------ */

/** What a search may choose. */
enum parallel_choice {
    PARALLEL_TP,
    PARALLEL_CP,
    PARALLEL_PP,
    PARALLEL_VP,
    PARALLEL_EP,
    PARALLEL_DP,
    PARALLEL_ZERO,
    PARALLEL_RECOMPUTE, /* of enum parallel_recompute */
    PARALLEL_MICRO,
    PARALLEL_SEQUENCE, /* 0 or 1 */
    PARALLEL_ENDS,     /* 0 or 1 */
    PARALLEL_CHOICES
};

/** The key of a choice in a training record. */
extern const char *const parallel_choice_keys[PARALLEL_CHOICES];
/** What a mix has chosen. */
uint32_t parallel_chosen(const struct parallel_mix *mix, enum parallel_choice choice);

/** Only values from `least` to `most`; with `forbid` none of these. All rules hold. */
struct parallel_rule {
    enum parallel_choice choice;
    uint32_t least, most;
    bool forbid;
};

struct parallel_search {
    const struct parallel_model *model;
    const struct parallel_machine *machine;
    /* What all mixes have in common: samples of a step, overlap, order, precision, etp
       (0: by sequence parallelism) ... A schedule rules out what it does not suit; NULL:
       1F1B, interleaved if there are chunks. */
    struct parallel_mix common;
    uint32_t devices;
    double memory; /* bytes that a device may need */
    const struct parallel_rule *rule;
    size_t rules;
    size_t top;             /* how many of the best are wanted */
    size_t simulations;     /* most mixes that are simulated; not below `top` */
    struct rec_limit limit; /* of mixes */
};

struct parallel_ranked {
    struct parallel_mix mix;
    struct parallel_closed closed;
    struct parallel_step step; /* simulated */
};

/** Starts as {0}; parallel_found_free() frees what it owns. */
struct parallel_found {
    struct parallel_ranked *best; /* owned: of those that fit the fastest, in order */
    size_t n;
    uint64_t mixes, fit; /* that there are; that fit by the closed form */
    size_t simulated;
    double bound;                 /* no mix that was not simulated is faster than this;
                                  INFINITY: there is none */
    struct parallel_ranked least; /* of all mixes the one that needs least memory, if
                                     there are any; without a step */
    char reason[240];             /* why there is no mix at all */
};

/**
 * Finds the fastest mixes of so many devices: the degrees divide heads, layers, experts,
 * tokens, samples and devices; tensor groups lie within an island unless a rule asks for
 * more; chunks are of equal layers if they can be; sequence parallelism goes with tensor
 * parallelism unless a rule says otherwise; op-selective recomputation is tried only if a
 * rule asks for it. All that fit by the closed form are ranked by it. The best are
 * simulated, until `top` of them are at least as fast as the closed form of the next, so
 * that they are the fastest of all, or `simulations` are over. Mixes of the same time are
 * told apart by memory, then by their degrees; one that only shards more and gains
 * nothing is left out.
 *
 * REC_DATA: the schedule has no closed form, or the bandwidth between nodes is not known.
 */
bool parallel_search(const struct parallel_search *search, struct parallel_found *found,
                     struct rec_error *err) REC_MUST_CHECK;
void parallel_found_free(struct parallel_found *found);

/* ---- training records ------------------------------------------------------------ */

/** A training record whose mix is searched. */
struct parallel_question;
struct parallel_plan {
    struct parallel_search search; /* borrows from here; `devices` is the caller's, unless
                                      the record says gpus=; memory is the device's */
    struct parallel_question *question; /* owned */
    struct parallel_rule *rule;         /* owned */
    size_t room;
};

/**
 * Takes a training record. Keys of the mix that it has become rules; what it leaves out
 * is searched. Without overlap=, exchanges of tensor, pipeline and data ranks run beside
 * computing, unless the stack is blocking. Free *plan in any case. REC_NO: the tables or
 * the model do not cover it.
 */
bool parallel_plan_read(struct parallel_plan *plan, const struct parallel_tables *tables,
                        const struct rec_reader *reader, const struct rec *rec,
                        struct rec_error *err) REC_MUST_CHECK;
bool parallel_plan_rule(struct parallel_plan *plan, const struct parallel_rule *rule,
                        struct rec_error *err) REC_MUST_CHECK;
void parallel_plan_free(struct parallel_plan *plan);
/** The mean error of such predictions on measured steps; < 0: unknown. *like: the stack
 * only stands in. */
double parallel_plan_error(const struct parallel_plan *plan, bool *like);

/** What else a planned record says. */
struct parallel_planned {
    double cost;          /* US$; < 0: no price was given */
    const char *frontier; /* NULL: not asked for */
    const char *vary;     /* what was changed; NULL: nothing */
    double factor, kept;  /* by how much; seconds of the unchanged mix, < 0: it does not
                             fit */
};

/** Writes the record with this mix, and with the answer. */
bool parallel_plan_write(const struct parallel_plan *plan,
                         const struct rec_reader *reader, const struct rec *rec,
                         const struct parallel_ranked *ranked,
                         const struct parallel_planned *planned,
                         struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

/** Tokens a second. */
double parallel_tokens_rate(const struct parallel_search *search,
                            const struct parallel_ranked *ranked);
/** Model FLOPs, with attention in full, over what the devices could do. */
double parallel_utilisation(const struct parallel_search *search,
                            const struct parallel_ranked *ranked);

/** A share of a step. */
struct parallel_share {
    const char *name;
    double seconds;
};
enum { PARALLEL_SHARES = 13 };
/** All of a step; their sum is its time. */
void parallel_shares(const struct parallel_step *step,
                     struct parallel_share share[PARALLEL_SHARES]);
/** The name of the largest. */
const char *parallel_bound(const struct parallel_step *step);

REC_END_DECLS

#endif
