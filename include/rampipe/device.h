/*
 * rampipe/device.h - what a device makes of work: a roofline whose roofs are not reached.
 *
 *     op records                 device and reach records
 *     flops= moved=          +   peaks, bandwidth, what share     ->  COMPUTE, seconds
 *     class= gemm=               of them a class of ops reaches
 *
 * An op takes as long as the slower of computing and moving (Williams, Waterman and
 * Patterson, "Roofline", 2009), each at the share of the device's peak that its class
 * reaches, and its class's latency:
 *
 *     max(flops * padding / (peak * share(class)), moved / (bandwidth * share(memory)))
 *         + latency(class)
 *
 * So small ops reach less of the peak than large ones. Padding is what a matrix product
 * does in vain, whose M and N are no multiples of the tile.
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
/** Their names; NULL ends them. */
extern const char *const device_precisions[];
/** Bytes an element. */
double device_element(enum device_precision precision);

struct device {
    const char *name;
    double peak[DEVICE_NPRECISIONS]; /* FLOP/s without sparsity; 0: not supported */
    double bandwidth;                /* of its memory, bytes/s */
    double memory;                   /* bytes */
    const char *source;              /* "": not said */
};

/** What share of the peak a class of ops reaches. */
struct device_reach {
    const char *device;              /* "any": any */
    const char *kind;                /* the class */
    enum device_precision precision; /* DEVICE_NPRECISIONS: any */
    double share, latency, tile;
};

/** Devices and reaches, in order. Starts as {0}. */
struct device_table {
    struct device *device;
    size_t ndevices, device_room;
    struct device_reach *reach;
    size_t nreaches, reach_room;
    struct rec_arena arena;
};

/** Adds a device or reach record; of other types does nothing. */
bool device_table_take(struct device_table *table, const struct rec_reader *reader,
                       const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Adds the records of a reader, device and reach; others are refused. */
bool device_table_read(struct device_table *table, struct rec_reader *reader,
                       struct rec_error *err) REC_MUST_CHECK;
/** Adds those that come with rampipe: traces/devices.rec. */
bool device_table_read_shipped(struct device_table *table,
                               struct rec_error *err) REC_MUST_CHECK;
/** The last of that name; NULL: none. */
const struct device *device_find(const struct device_table *table, const char *name);
void device_table_free(struct device_table *table);

/* ---- the roofline -------------------------------------------------------- */

/** What an op does. */
struct device_work {
    double flops; /* a multiply-add counts two */
    double moved; /* bytes */
    /* Its class; "": matmul if there is gemm, memory if flops is 0, else other. */
    struct rec_str kind;
    double gemm[4]; /* BATCH, M, N, K; 0: not given */
};

/** A device at work. */
struct device_roofline {
    const struct device_table *table; /* borrowed */
    const char *device;
    enum device_precision precision;
    double peak, bandwidth; /* FLOP/s, bytes/s */
    double
        flat; /* not 0: the share of both that any op reaches, instead of the table's */
};

/** Time, seconds; nothing to do takes none. False: the table does not know the op's
 * class, or the time, which is then inf, is no finite number (REC_DATA, *err names no
 * op). */
bool device_seconds(const struct device_roofline *roofline,
                    const struct device_work *work, double *seconds,
                    struct rec_error *err) REC_MUST_CHECK;

/** Writes the keys of an op that does this work, each with its TAB in front. */
enum { DEVICE_KEYS_MAX = 400 };
void device_work_keys(const struct device_work *work, char text[DEVICE_KEYS_MAX]);

/* ---- records ------------------------------------------------------------- */

struct device_held;

/** Fills COMPUTE of op records. Starts with what is asked for, else zero. */
struct device_fill {
    const struct device_roofline *roofline; /* borrowed */
    double batch; /* that the graphs are to be of; 0: as they are */
    bool
        keep_times; /* ops without work keep their COMPUTE, else their graph is refused */
    const char *option;    /* what sets keep_times, for messages; NULL: nothing does */
    uint64_t filled, kept; /* ops of ended graphs: with work; with none */
    /* Of the graph at hand: */
    struct device_held *held;
    double samples, elements; /* what grows with the batch, what with the precision */
};

/**
 * Passes a record on; those of a graph, with what stands among them, when it ends. Of
 * graph records device=, peak= and, as asked, batch= and precision= are set; of op
 * records COMPUTE, if they have work: flops= or moved=, 0 included. If others, but for
 * communication (coll=), have none, *err says how many (REC_NO), and nothing of the graph
 * is written. With keep_times it is, but it loses device= and peak=, for its times are of
 * several devices; if no op has work, it keeps those that it came with. With another
 * batch, flops=, activation= and bytes of deps grow in proportion; MEMORY and moved= in
 * what is more than param= (of a backward op's moved= more than twice that: parameters
 * and their gradients); gemm= in BATCH, or M. With another precision than a graph says,
 * all bytes do as the bytes of its elements. Graphs of parts are refused then, for
 * partition gives parts and their deps sizes by rules of its own; and so are ops that
 * take time but have no work.
 */
bool device_fill_take(struct device_fill *fill, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_writer *writer,
                      struct rec_error *err) REC_MUST_CHECK;
/** Ends the graph at hand, if there is one: it is written, or refused (REC_DATA: it has
 * no op). */
bool device_fill_end(struct device_fill *fill, struct rec_writer *writer,
                     struct rec_error *err) REC_MUST_CHECK;
void device_fill_free(struct device_fill *fill);

/* ---- memory of training -------------------------------------------------- */

/** How parameters are updated, and the fp32 numbers a parameter that this takes. */
struct device_optimizer {
    const char *name; /* NULL ends the table */
    double state;     /* moments */
    double master;    /* copies of the weight, if the weights have 2 bytes */
};
extern const struct device_optimizer device_optimizers[];

/** Bytes that training holds a parameter: the weight, its gradient, the optimizer's. */
double device_parameter_bytes(const struct device_optimizer *optimizer,
                              enum device_precision precision);

/** Fills MEMORY of op records. Starts with what is asked for, else zero. */
struct device_footprint {
    const struct device_optimizer *optimizer; /* NULL: the published rule */
    enum device_precision precision;          /* of graphs that do not say theirs; or
                                                 DEVICE_NPRECISIONS */
    uint64_t filled,
        kept;         /* ops: with param= or activation=; with neither, that keep their
                              MEMORY */
    double parameter; /* of the graph at hand: bytes of MEMORY a byte of param= */
    const char *file; /* where the graph at hand begins, until its first op; NULL */
    uint64_t line;
    char graph[64]; /* its name, which may be cut */
};

/**
 * Passes a record on. MEMORY of an op with pair= becomes what device_parameter_bytes()
 * says of its parameters, and its activation=, which the backward pass reads: the output
 * of an op is counted once, however many read it. Of an op with no pair=, which nothing
 * trains, and by the published rule, param= and activation=. Graph records get
 * optimizer=, or lose it. False, also if it is not known how many bytes a parameter has,
 * or if a graph ended without an op: *err.
 */
bool device_footprint_take(struct device_footprint *footprint,
                           const struct rec_reader *reader, const struct rec *rec,
                           struct rec_writer *writer,
                           struct rec_error *err) REC_MUST_CHECK;
/** The stream has ended. False: its last graph has no op (REC_DATA). */
bool device_footprint_end(const struct device_footprint *footprint,
                          struct rec_error *err) REC_MUST_CHECK;

struct device_model;

/** A batch of this many samples, 2^53, has no next one. */
#define DEVICE_BATCH_MAX 9007199254740992.0

/** Finds the largest batch that fits. Starts with what is asked for, else zero. */
struct device_fit {
    const struct device_optimizer *optimizer; /* as in device_footprint */
    enum device_precision precision;
    double batch;    /* of graphs that do not say theirs; 0: they are refused */
    double memory;   /* of a server, bytes */
    uint64_t graphs; /* answered */
    struct device_model *model; /* the graph at hand; device_fit_free() */
};

/**
 * Takes the records of graphs and jobs, and passes others on. When a graph ends, a
 * comment and a fit record say with which batch, at most, training it fits into the
 * memory of one server, where all its ops are: with the MEMORY that
 * device_footprint_take() gives them, an op and its twin sharing theirs, if activation=
 * grows in proportion to the batch and param= does not. False, *err: REC_NO if not even a
 * batch of 1 fits, or any batch does; REC_DATA if that cannot be known (no batch, parts
 * of ops, ops that have MEMORY but neither param= nor activation=).
 */
bool device_fit_take(struct device_fit *fit, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_writer *writer,
                     struct rec_error *err) REC_MUST_CHECK;
/** The stream has ended: answers for its last graph. */
bool device_fit_end(struct device_fit *fit, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
void device_fit_free(struct device_fit *fit);

REC_END_DECLS

#endif
