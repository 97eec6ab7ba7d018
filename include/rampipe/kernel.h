/*
 * rampipe/kernel.h - how long a kernel takes on a device: matrix products, attention, and
 * ops that only move memory.
 *
 *     device records            data sheets
 *     law and timed records     constants, and what was measured     -> seconds, and how
 *     checked records           how far off such predictions are
 *
 * A product takes the time of its tiles in waves over the processors, of its bytes, and
 * of its launch (base.c). The law of a device and type holds the constants of that form,
 * and measured kernels, which correct it: the logarithm of measured / form is a random
 * field whose value is the best linear estimate from the 32 most similar kernels
 * (krige.c; Matheron, "Principles of geostatistics", 1963).
 *
 *     measured      the kernel itself was measured
 *     neighbours    a law of the device and type
 *     tiles         the same, but no measured kernel is similar: the form alone
 *     sheet         the law of the device whose data sheet is most alike, with the
 *                   device's own sheet, or a backward pass by the ratio of another law;
 *                   or memory alone
 */
#ifndef RAMPIPE_KERNEL_H
#define RAMPIPE_KERNEL_H

#include "rampipe/device.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- what is asked --------------------------------------------------------- */

enum kernel_op { KERNEL_GEMM, KERNEL_ATTENTION, KERNEL_MEMORY, KERNEL_NOPS };
enum kernel_dtype {
    KERNEL_FP32,
    KERNEL_TF32,
    KERNEL_FP16,
    KERNEL_BF16,
    KERNEL_FP8,
    KERNEL_NVFP4, /* blocks of 16 numbers with an fp8 scale */
    KERNEL_NDTYPES
};
enum kernel_pass {
    KERNEL_FORWARD,
    KERNEL_INPUT,    /* gradient of a product's input (NN) */
    KERNEL_WEIGHT,   /* gradient of its weight, added to what is there (NT) */
    KERNEL_BACKWARD, /* of attention */
    KERNEL_NPASSES
};
/** Libraries of which a law was measured: of serving, or of training. */
enum kernel_set { KERNEL_INFERENCE, KERNEL_TRAINING, KERNEL_NSETS };
/** Their names: "gemm", "attention", "memory"; "bf16", ...; "forward", "input-gradient",
 * "weight-gradient", "backward"; "inference", "training". Each list ends with NULL. */
extern const char *const kernel_ops[], *const kernel_dtypes[], *const kernel_passes[],
                                                                   *const kernel_sets[];

enum { KERNEL_SIZES = 6 };
/** A kernel. Starts as {0}. */
struct kernel_shape {
    enum kernel_op op;
    enum kernel_pass pass;
    /* gemm: M, K, N of an M x K by K x N product, as it is computed in this pass.
     * attention (causal): BATCH, SEQUENCE, HEADS, KV heads, and the widths of Q and K,
     * and of V. memory: bytes that are read and written. */
    uint64_t size[KERNEL_SIZES];
    uint64_t groups; /* products of this shape in one kernel; 0 counts as 1 */
    uint64_t out;    /* bytes of an element of the result: 4 or 2; 0 counts as 2 */
    bool cast;       /* fp8, nvfp4: the input is first cast from bf16, in this time */
};

/** FLOPs of the kernel; of attention on the full square, although the causal half is
 * skipped: forward 2 U and backward 5 U, U = batch * sequence^2 * heads * (QK + V). */
double kernel_flops(const struct kernel_shape *shape);

/** Reads "M,K,N", "BATCH,SEQUENCE,HEADS,KV,QK,V" or "BYTES" into shape->size. Numbers
 * from 1 to 2^40, KV divides HEADS. REC_DATA: *err says what is wrong. */
bool kernel_shape_read(struct kernel_shape *shape, struct rec_str text,
                       struct rec_error *err) REC_MUST_CHECK;

/* ---- the table ----------------------------------------------------------- */

struct kernel_law; /* lib/kernel/private.h */

/** How far predictions of one case were from times that no fit had seen. */
struct kernel_check {
    const char *name; /* LAW/large, LAW/small; sheet/gemm; ratio/gemm ... */
    uint64_t rows;
    double mean, p90, worst; /* of |predicted / measured - 1| */
};

/** Starts as {0}. */
struct kernel_table {
    struct kernel_law *law;
    size_t nlaws, law_room;
    struct kernel_check *check;
    size_t nchecks, check_room;
    const struct device_table *devices; /* borrowed; set it before anything is read */
    /* Laws that are not used, to check others: one, and all of a device. */
    const struct kernel_law *without;
    const struct device *without_device;
    const char *provenance; /* the #@ lines of what was read, each with LF; NULL: none */
    struct rec_arena arena;
};

/** Adds the law, timed and checked records of a reader. A law replaces one of equal
 * device, op, type and set. Other types are refused. */
bool kernel_table_read(struct kernel_table *table, struct rec_reader *reader,
                       struct rec_error *err) REC_MUST_CHECK;
/** Adds the records that come with rampipe: traces/kernels.rec. */
bool kernel_table_read_shipped(struct kernel_table *table,
                               struct rec_error *err) REC_MUST_CHECK;
/** Adds measured kernels of a file: records as above, or a table with a header line,
 * separated by TABs or commas, with the columns device, time_s, and either m, n, k or
 * batch, seq, heads, kv, qk_dim, v_dim; others that count are dtype (without it bf16),
 * pass, groups, out, quantize. Tables with the column dtype are of inference, others of
 * training. Rows go to the law of their device, type and set, and replace those of equal
 * kernels; if there is none, it gets one with the constants of its nearest relative. */
bool kernel_table_read_file(struct kernel_table *table, const char *path,
                            struct rec_error *err) REC_MUST_CHECK;
/** Forgets the measured kernels of all laws; their constants stay. */
void kernel_table_forget(struct kernel_table *table);
/** Drops the laws that have no measured kernels, so that the others answer. No kernel of
 * the table may be open. */
void kernel_table_prune(struct kernel_table *table);
/** Name and number of measured kernels of law `i`, from 0 to nlaws - 1. */
const char *kernel_law_name(const struct kernel_table *table, size_t i);
size_t kernel_law_kernels(const struct kernel_table *table, size_t i);
void kernel_table_free(struct kernel_table *table);

/* ---- predictions --------------------------------------------------------- */

enum kernel_how {
    KERNEL_MEASURED,
    KERNEL_NEIGHBOURS,
    KERNEL_TILES,
    KERNEL_SHEET,
    KERNEL_NHOWS
};
/** "measured", "neighbours", "tiles", "sheet", NULL. */
extern const char *const kernel_hows[];

struct kernel_answer {
    double seconds;
    double share; /* of the peak that its FLOPs reach; of memory: of the bandwidth */
    enum kernel_how how;
    const struct kernel_check *check; /* NULL: never checked; owned by the table */
};

struct kernel;

/** Opens the kernels of a device and type. The table and its devices must outlive it, and
 * may not change meanwhile. Not for several threads. NULL: *err; REC_NO: the device has
 * no peak for the type, REC_DATA: there is no such device. */
struct kernel *kernel_open(struct kernel_table *table, const char *device,
                           enum kernel_dtype dtype, enum kernel_set set,
                           struct rec_error *err) REC_MUST_CHECK;
/** Predicts a kernel. What was asked before comes from a memo. The sizes must be those of
 * kernel_shape_read(). False: *err, REC_NO: no law covers it. */
bool kernel_seconds(struct kernel *kernel, const struct kernel_shape *shape,
                    struct kernel_answer *answer, struct rec_error *err) REC_MUST_CHECK;
/** Writes in words whence the time of the kernel comes, with its parts. */
enum { KERNEL_WHY_MAX = 600 };
void kernel_why(struct kernel *kernel, const struct kernel_shape *shape,
                char text[KERNEL_WHY_MAX]);
void kernel_close(struct kernel *kernel);

/* ---- records --------------------------------------------------------------- */

struct kernel_asked; /* devices and types that were asked for, each opened once */

struct kernel_count {
    uint64_t asked, refused; /* refused: of these */
    uint64_t how[KERNEL_NHOWS];
};

struct kernel_asked *kernel_asked_new(struct kernel_table *table,
                                      struct rec_error *err) REC_MUST_CHECK;
/** Answers a kernel record: writes it with the answer, which replaces one that it has
 * already. A question that no law covers gets how=none, and law= says why; a wrong
 * question is an error. A record of another type is passed on. */
bool kernel_answer_record(struct kernel_asked *asked, const struct rec_reader *reader,
                          const struct rec *rec, struct rec_writer *writer, bool why,
                          struct kernel_count *count,
                          struct rec_error *err) REC_MUST_CHECK;
void kernel_asked_free(struct kernel_asked *asked);

/* ---- fits ------------------------------------------------------------------ */

/** Fits the constants of every law to its measured kernels: the largest likelihood of the
 * random field, by a search along coordinates. */
bool kernel_fit(struct kernel_table *table, struct rec_error *err) REC_MUST_CHECK;
/** Fits `folds` times without every folds-th shape (on all devices), predicts what was
 * left out, and adds checked records of it; then fits to all, as kernel_fit(), and
 * predicts every law from its relatives, too. For a table without checked records. */
bool kernel_check_folds(struct kernel_table *table, unsigned folds,
                        struct rec_error *err) REC_MUST_CHECK;
/** Writes the table as records. */
void kernel_table_write(const struct kernel_table *table, struct rec_writer *writer);

REC_END_DECLS

#endif
