/*
 * rampipe/device.h - the time and memory that work takes on a device: a roofline model in
 * which ops reach only a share of the peaks.
 *
 *     op records                 device and reach records
 *     flops= moved=          +   peaks, bandwidth, the share      ->  COMPUTE, seconds
 *     class= gemm=               that a class of ops reaches
 *
 * An op takes the longer of the times for computing and for moving bytes (Williams,
 * Waterman and Patterson, "Roofline", 2009), and the latency of its class in addition.
 * Computing reaches the share of the peak that the op's class reaches; moving reaches the
 * share of the bandwidth that class memory reaches:
 *
 *     max(flops * padding / (peak * share(class)), moved / (bandwidth * share(memory)))
 *         + latency(class)
 *
 * Because of the latency, small ops reach less of the peak than large ones. Padding is
 * the factor by which a matrix product computes more than it needs if its M and N are no
 * multiples of the tile.
 */
#ifndef RAMPIPE_DEVICE_H
#define RAMPIPE_DEVICE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- the table of devices ------------------------------------------------ */

enum device_precision {
    DEVICE_FP32,
    DEVICE_TF32,
    DEVICE_FP16,
    DEVICE_BF16,
    DEVICE_NPRECISIONS
};
/** The names of the precisions; the list ends with NULL. */
extern const char *const device_precisions[];
/** Bytes per element. */
double device_element(enum device_precision precision);

struct device {
    const char *name;
    double peak[DEVICE_NPRECISIONS]; /* FLOP/s without sparsity; 0: not supported */
    double fp8, fp4;                 /* likewise, of matrix products in training steps */
    uint64_t processors; /* streaming multiprocessors, compute units; 0: unknown */
    double bandwidth;    /* of its memory, bytes/s */
    double memory;       /* bytes */
    const char *source;  /* of these numbers; "": unknown */
};

/** The share of the peak that a class of ops reaches. */
struct device_reach {
    const char *device;              /* "any": every device */
    const char *kind;                /* the class of ops */
    enum device_precision precision; /* DEVICE_NPRECISIONS: every precision */
    double share;                    /* of the peak; of class memory: of the bandwidth */
    double latency;                  /* seconds that each op takes in addition */
    double tile;                     /* rows and columns of a tile; 1: no padding */
};

/** Devices and reaches, in the order of their records; later ones replace earlier ones.
 * Starts as {0}. */
struct device_table {
    struct device *device;
    size_t ndevices, device_room;
    struct device_reach *reach;
    size_t nreaches, reach_room;
    struct rec_arena arena;
};

/** Adds a device or reach record; records of other types are ignored. */
bool device_table_take(struct device_table *table, const struct rec_reader *reader,
                       const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Adds all records of a reader. Other types than device and reach are refused. */
bool device_table_read(struct device_table *table, struct rec_reader *reader,
                       struct rec_error *err) REC_MUST_CHECK;
/** Adds the records that come with rampipe: traces/devices.rec. */
bool device_table_read_shipped(struct device_table *table,
                               struct rec_error *err) REC_MUST_CHECK;
/** Adds these, and behind them those of a file; NULL: there is none. */
bool device_table_read_with(struct device_table *table, const char *path,
                            struct rec_error *err) REC_MUST_CHECK;
/** The last device of this name; NULL: there is none. */
const struct device *device_find(const struct device_table *table, const char *name);
/** What ops of a class reach on a device at a precision: a row of this very device goes
 * before one of any device, then one of this very precision before one of any, then the
 * later one. With DEVICE_NPRECISIONS only rows of any precision count. NULL: there is
 * none. */
const struct device_reach *device_reach_find(const struct device_table *table,
                                             const char *device,
                                             enum device_precision precision,
                                             struct rec_str kind);
void device_table_free(struct device_table *table);

/* ---- the roofline -------------------------------------------------------- */

/** The work of an op. */
struct device_work {
    double flops; /* a multiply-add counts two */
    double moved; /* bytes */
    /* The class of the op. "": matmul if gemm is given, else memory if flops is 0, else
     * other. */
    struct rec_str kind;
    double gemm[4]; /* BATCH, M, N, K of matrix products; 0: not given */
};

/** A device and the precision at which it works. */
struct device_roofline {
    const struct device_table *table; /* borrowed */
    const char *device;
    enum device_precision precision;
    double peak, bandwidth; /* FLOP/s, bytes/s */
    double flat; /* not 0: the share of both that every op reaches, without the table */
};

/** Sets *seconds to the time that the work takes; no work takes 0 s. REC_DATA: the table
 * does not have the op's class, or the time is not finite (*seconds is then inf). *err
 * does not name the op: the caller knows it. */
bool device_seconds(const struct device_roofline *roofline,
                    const struct device_work *work, double *seconds,
                    struct rec_error *err) REC_MUST_CHECK;

/** Writes the keys of an op that does this work, each after a TAB. */
enum { DEVICE_KEYS_MAX = 400 };
void device_work_keys(const struct device_work *work, char text[DEVICE_KEYS_MAX]);

/* ---- records ------------------------------------------------------------- */

struct device_held;

/** Fills in COMPUTE of op records. The caller sets what it wants, the rest starts as
 * 0. */
struct device_fill {
    const struct device_roofline *roofline; /* borrowed */
    double batch; /* to which graphs are scaled; 0: they are not */
    /* ops without work keep their COMPUTE; else a graph with such ops is refused */
    bool keep_times;
    const char *option; /* the option that sets keep_times, for messages; NULL: none */
    uint64_t filled;    /* ops with work in the graphs that have ended */
    uint64_t kept;      /* ops without work in these graphs */
    /* of the graph at hand: */
    struct device_held *held;
    double samples;  /* factor by which its batch grows */
    double elements; /* factor by which the bytes of an element grow */
};

/**
 * Passes a record on. The records of a graph, and comments and unknown records among
 * them, are held back until the graph ends. A graph record gets device=, peak= and, if
 * asked for, batch= and precision=. An op record gets its COMPUTE if it has work: flops=
 * or moved=, which may be 0.
 *
 * A graph with ops that have no work is refused (REC_NO, *err counts them), and nothing
 * of it is written; communication (coll=) needs no work. With keep_times it is written,
 * but loses device= and peak=, since its times are of several devices; if no op of it has
 * work, it keeps the keys that it came with.
 *
 * With another batch, flops=, activation= and the bytes of deps are scaled in proportion.
 * Of MEMORY and moved=, the parameters do not grow: param= is subtracted first, and twice
 * param= from moved= of a backward op (parameters and their gradients). gemm= is scaled
 * in BATCH, or in M if BATCH is 1. With another precision than the graph's, all bytes are
 * scaled by the size of an element. Graphs of parts cannot be scaled and are refused
 * then, since partition gives parts and their deps sizes by rules of its own; so are ops
 * that take time but have no work.
 */
bool device_fill_take(struct device_fill *fill, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_writer *writer,
                      struct rec_error *err) REC_MUST_CHECK;
/** Ends the graph at hand, if there is one: it is written, or refused as above (REC_DATA:
 * it has no op). */
bool device_fill_end(struct device_fill *fill, struct rec_writer *writer,
                     struct rec_error *err) REC_MUST_CHECK;
void device_fill_free(struct device_fill *fill);

/* ---- memory of training -------------------------------------------------- */

/** An optimizer, and how many fp32 numbers it holds for each parameter. */
struct device_optimizer {
    const char *name; /* the table ends with NULL */
    double state;     /* moments */
    double master;    /* fp32 copies of the weight, needed if weights have 2 bytes */
};
extern const struct device_optimizer device_optimizers[];

/** Bytes that training holds for each parameter: the weight, its gradient, and what the
 * optimizer holds. */
double device_parameter_bytes(const struct device_optimizer *optimizer,
                              enum device_precision precision);

/** Fills in MEMORY of op records. The caller sets what it wants, the rest starts as 0. */
struct device_footprint {
    const struct device_optimizer *optimizer; /* NULL: the published rule */
    enum device_precision precision; /* of graphs without precision=; DEVICE_NPRECISIONS:
                                        such graphs are refused */
    uint64_t filled;                 /* ops with param= or activation= */
    uint64_t kept;                   /* ops with neither, which keep their MEMORY */
    /* of the graph at hand: */
    double parameter; /* bytes of MEMORY for each byte of param= */
    const char *file; /* file of its graph record, until its first op came; else NULL */
    uint64_t line;    /* of its graph record */
    char graph[64];   /* its name, which may be cut */
};

/**
 * Passes a record on. The MEMORY of an op with pair= becomes device_parameter_bytes() of
 * its parameters plus its activation=, which is held until the backward pass reads it: an
 * output is counted once, however many ops read it. The MEMORY of an op without pair=,
 * which is not trained, and by the published rule that of every op, becomes param= plus
 * activation=. Graph records get the key optimizer=, or lose it by the published rule.
 * False: *err; the precision of a graph may be unknown, or a graph has ended without an
 * op.
 */
bool device_footprint_take(struct device_footprint *footprint,
                           const struct rec_reader *reader, const struct rec *rec,
                           struct rec_writer *writer,
                           struct rec_error *err) REC_MUST_CHECK;
/** Ends the stream. False: its last graph has no op (REC_DATA). */
bool device_footprint_end(const struct device_footprint *footprint,
                          struct rec_error *err) REC_MUST_CHECK;

struct device_model;

/** The largest batch, 2^53 samples: adding 1 to it does not change a double. */
#define DEVICE_BATCH_MAX 9007199254740992.0

/** Finds the largest batch that fits. The caller sets what it wants, the rest starts as
 * 0. */
struct device_fit {
    const struct device_optimizer *optimizer; /* as in struct device_footprint */
    enum device_precision precision;          /* likewise */
    double batch;               /* of graphs without batch=; 0: such graphs are refused */
    double memory;              /* of a server, bytes */
    uint64_t graphs;            /* for which an answer was written */
    struct device_model *model; /* the graph at hand; device_fit_free() */
};

/**
 * Takes the records of graphs and jobs out of the stream, and passes others on. When a
 * graph ends, a comment and a fit record give the largest batch with which training it
 * fits into the memory of one server that holds all its ops. The memory of an op is that
 * of device_footprint_take(), which an op shares with its twin; activation= is taken to
 * grow in proportion to the batch, and param= not to grow. REC_NO: not even a batch of 1
 * fits, or every batch does. REC_DATA: the answer cannot be known (no batch, parts of
 * ops, ops that have MEMORY but neither param= nor activation=).
 */
bool device_fit_take(struct device_fit *fit, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_writer *writer,
                     struct rec_error *err) REC_MUST_CHECK;
/** Ends the stream: writes the answer for its last graph. */
bool device_fit_end(struct device_fit *fit, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
void device_fit_free(struct device_fit *fit);

REC_END_DECLS

#endif
