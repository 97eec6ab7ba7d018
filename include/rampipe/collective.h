/*
 * rampipe/collective.h - how long an exchange among GPUs takes alone: measured times, and
 * laws for what was not measured.
 *
 *     series and piece records   what was measured: states of the library
 *     fabric records             data sheets                      -> seconds, and how
 *     checked records            how far off such predictions are
 *
 * Communication libraries choose an algorithm and a protocol by the size of the buffer.
 * Within one such state time is latency + size / rate. Where the state changes the time
 * jumps, up to a factor of two, so a table keeps states and not a smooth curve.
 *
 * A time that was not measured is predicted from the nearest that was:
 *
 *     another size      the state; between two states what both allow (curve.c)
 *     other ranks       a ring: latency grows by ranks, transfer by (n - 1) / n (law.c)
 *     other nodes       laws of adapters: an own one or a shared one (nodes.c)
 *     another system    the same states at sizes scaled by data sheets (predict.c)
 *
 * What none of these covers is refused.
 */
#ifndef RAMPIPE_COLLECTIVE_H
#define RAMPIPE_COLLECTIVE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- the table ----------------------------------------------------------- */

/** A state: from size `from` to size `to` time is latency + size / rate. */
struct collective_piece {
    double from, to; /* bytes, or tokens of a rank */
    double latency;  /* seconds */
    double rate;     /* size per second; inf: one size was measured */
};

/** What is exchanged. Texts are "" and counts 0 if they do not apply. */
struct collective_what {
    const char *kind; /* "all-reduce", ...; "deepep-ll-dispatch", ... */
    const char *dtype;
    uint64_t hidden, topk, experts, sms; /* of exchanges of tokens */
};

/** Measured times of one kind of exchange in groups of one size. */
struct collective_series {
    struct collective_what what;
    const char *id, *system, *version;
    uint64_t ranks, nodes;
    size_t first, npieces; /* its pieces in the table, by size */
    size_t of_system;      /* how many series of the table its system has */
};

enum collective_link { COLLECTIVE_NVLINK, COLLECTIVE_PAIRS, COLLECTIVE_PCIE };

/** A data sheet; see fabric in rampipe(5). Rates are bytes/s one way, 0: unknown. */
struct collective_fabric {
    const char *name, *like; /* like "": not given */
    enum collective_link link;
    double bandwidth, pcie, adapter;
    uint64_t adapters; /* of a node; 0: unknown */
    uint64_t adds;     /* 1: its switches add floating-point numbers */
    double latency;    /* seconds */
    double reach;
};

/** How far predictions of one case were from times that the table had not seen. */
struct collective_check {
    const char *name;
    uint64_t rows;
    double mean, p90, worst; /* of |predicted / measured - 1| */
    double trivial;          /* mean of a trivial model on the same rows; 0: unknown */
};

/** Starts as {0}. */
struct collective_table {
    struct collective_series *series;
    size_t nseries, series_room;
    struct collective_piece *piece;
    size_t npieces, piece_room;
    struct collective_fabric *fabric;
    size_t nfabrics, fabric_room;
    struct collective_check *check;
    size_t nchecks, check_room;
    struct rec_arena arena;
};

/** Adds all records of a reader. Of a series that is there already (the same exchange,
 * system, version, ranks and nodes), the later one counts; likewise of fabric and checked
 * records of one name. Other types than series, piece, fabric and checked are refused. */
bool collective_table_read(struct collective_table *table, struct rec_reader *reader,
                           struct rec_error *err) REC_MUST_CHECK;
/** Adds the records that come with rampipe: traces/fabrics.rec,
 * traces/collectives.rec. */
bool collective_table_read_shipped(struct collective_table *table,
                                   struct rec_error *err) REC_MUST_CHECK;
void collective_table_free(struct collective_table *table);

/* ---- predictions --------------------------------------------------------- */

/** A question. The texts are borrowed; "" if they are not known. */
struct collective_ask {
    struct collective_what what;
    const char *system, *gpu, *version;
    uint64_t ranks, nodes;
    double size; /* bytes as nccl-tests counts them; of tokens: tokens of a rank */
};

/** How a time was predicted; the least certain of what was needed counts. */
enum collective_how {
    COLLECTIVE_STATE, /* the group was measured, perhaps not with this size */
    COLLECTIVE_RANKS, /* a law from groups of other numbers of ranks */
    COLLECTIVE_NODES, /* a law from other numbers of nodes, or of ranks in each */
    COLLECTIVE_SHEET, /* data sheets, from another system */
    COLLECTIVE_NHOWS
};
/** "state", "ranks", "nodes", "sheet", NULL. */
extern const char *const collective_hows[];

struct collective_answer {
    double seconds;
    double busbw; /* bytes/s as nccl-tests prints it; 0: it has none for this kind */
    enum collective_how how;
    double largest; /* size that was measured, of the groups that the time comes from */
    char law[240];  /* the same in words */
    bool beyond;    /* a group of more ranks in a node than all that were measured, by
                          the law of a ring, which was checked between such groups only */
    const char *apart; /* the case that it was checked in; NULL: the one of `how` */
    const struct collective_check *check; /* NULL: never checked; owned by the table */
};

/** Predicts the time of an exchange that has the network for itself. REC_DATA: the
 * question is wrong (a group of one, ranks that do not divide over nodes, a kind that no
 * series has). REC_NO: it is well formed, but no law covers it. */
bool collective_seconds(const struct collective_table *table,
                        const struct collective_ask *ask,
                        struct collective_answer *answer,
                        struct rec_error *err) REC_MUST_CHECK;

/** Bytes that a rank puts on the wire for each byte of the buffer, by which nccl-tests
 * multiplies size / time: 2 (n - 1) / n of an all-reduce, (n - 1) / n of all-gather,
 * reduce-scatter and all-to-all, 1 of send-recv; 0: the kind is none of these. */
double collective_bus_factor(const char *kind, uint64_t ranks);

/** Reads a question from a collective record, and appends its texts to the arena. */
bool collective_ask_read(struct collective_ask *ask, const struct rec_reader *reader,
                         const struct rec *rec, struct rec_arena *arena,
                         struct rec_error *err) REC_MUST_CHECK;

struct collective_count {
    uint64_t asked;
    uint64_t refused;   /* of these */
    uint64_t unchecked; /* answers without error=: their law was never checked */
};

/** Answers a collective record: writes it with the answer, which replaces one that it has
 * already, and counts it. A question that no law covers gets how=none, and law= says why;
 * a wrong question is an error. A record of another type is passed on. */
bool collective_answer_record(const struct collective_table *table,
                              const struct rec_reader *reader, const struct rec *rec,
                              struct rec_writer *writer, struct collective_count *count,
                              struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
