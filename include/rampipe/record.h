/*
 * rampipe/record.h - the record stream: one reader and one writer for every tool.
 *
 * A stream is text, one record a line, fields separated by one TAB:
 *
 *     #rampipe<TAB>1                    header: the format and its version
 *     #@<TAB>pd2graph 0.1.0<TAB>...     provenance, one line per stage, oldest first
 *     op<TAB>g<TAB>1<TAB>forward<TAB>0.5<TAB>1024<TAB>type=Linear
 *     ^type   ^fixed fields, in order                ^key=value fields, in any order
 *     #end                              trailer: the stream is whole; sealed: "#end", the
 *                                       number of records and a CRC-32
 *
 * The reader hides header, provenance and trailer (and copies them to the writer tied
 * to it, in place); a stage sees records and comments only. A stream that opens with
 * "#rampipe" and stops without "#end" was cut: the reader reports REC_IO and the stage
 * must not finish its output. What a stage does not consume it passes on with
 * rec_put_line(), which is exact. See rampipe(5).
 */
#ifndef RAMPIPE_RECORD_H
#define RAMPIPE_RECORD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REC_VERSION 1
#define REC_MUST_CHECK __attribute__((warn_unused_result))
#define REC_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* What a header declares between these has C linkage, and is what the shared library
 * shows; functions that rooms keep in a private.h are not. */
#ifdef __cplusplus
#define REC_BEGIN_DECLS \
    extern "C" {        \
    _Pragma("GCC visibility push(default)")
#define REC_END_DECLS             \
    _Pragma("GCC visibility pop") \
    }
#else
#define REC_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define REC_END_DECLS _Pragma("GCC visibility pop")
#endif

REC_BEGIN_DECLS

/* ---- errors -------------------------------------------------------------- */

/** What went wrong; the values are the exit status of the tools. */
enum rec_code {
    REC_OK = 0,    /* done */
    REC_NO = 1,    /* a well-formed "no": nothing feasible */
    REC_USAGE = 2, /* the command line is wrong */
    REC_DATA = 3,  /* the data are wrong */
    REC_IO = 4,    /* input or output failed, or the input was cut */
    REC_BUG = 70   /* a bug of rampipe */
};

/** An error: its kind and one line for a person, usually "FILE:LINE: what is wrong". */
struct rec_error {
    enum rec_code code;
    bool located; /* the text names file and line */
    char text[1000];
};

/** Fills *err (may be NULL) and returns false, so that callers `return rec_fail(...)`. */
bool rec_fail(struct rec_error *err, enum rec_code code, const char *format, ...)
    REC_PRINTF(3, 4);

/** "FILE:LINE: " is put before the formatted message. Returns false. */
bool rec_fail_at(struct rec_error *err, const char *file, uint64_t line,
                 const char *format, ...) REC_PRINTF(4, 5);

/** The largest amount of work that a small input may ask for. `most` is in the unit of
 * the estimate (operations, events, bytes); 0 or INFINITY means no limit. `option` is the
 * option that raises the limit, for messages ("--limit"); NULL if none does. */
struct rec_limit {
    double most;
    const char *option;
};
/** Checks an estimate before the work begins. False if it exceeds the limit: REC_USAGE,
 * "it would be about 1e+11 WHAT, more than ...". `what` is the unit of the estimate. */
bool rec_limit(const struct rec_limit *limit, double estimate, const char *what,
               struct rec_error *err) REC_MUST_CHECK;

/** REC_IO "out of memory". Returns false. */
bool rec_fail_memory(struct rec_error *err);

/** Appends a name to a list for a message: "a, b, c". `room` is the size of `list` in
 * bytes. False: the name does not fit; the list now ends in "...", and stays so. */
bool rec_list_name(char *list, size_t room, const char *name);

/** What rec_grow() does if there is too little room. */
bool rec_grow_array(void *array, size_t *capacity, size_t need, size_t size,
                    struct rec_error *err) REC_MUST_CHECK;
/**
 * Makes room for `need` elements of `size` bytes in *array, whose capacity is *capacity
 * elements; grows by doubling. *array is owned by the caller (free()). New elements are
 * not initialised. False: out of memory, *err filled, *array unchanged.
 */
REC_MUST_CHECK static inline bool
rec_grow(void *array, size_t *capacity, size_t need, size_t size, struct rec_error *err)
{
    return need <= *capacity || rec_grow_array(array, capacity, need, size, err);
}

/** A stream that writes to memory, as open_memstream() makes one. Unlike glibc's, which
 * drops bytes without an error when memory runs out, it reports that. Open and close it
 * once each. */
struct rec_text {
    FILE *out; /* write here */
    char *bytes;
    size_t used, room;
    bool failed;
};

/** Starts a text. False: out of memory, *err filled. */
bool rec_text_open(struct rec_text *text, struct rec_error *err) REC_MUST_CHECK;
/** Ends it: what was written, NUL-terminated, owned by the caller (free()). NULL: out of
 * memory, *err filled. */
char *rec_text_close(struct rec_text *text, struct rec_error *err) REC_MUST_CHECK;

/* ---- strings and numbers ------------------------------------------------- */

/** A view of text inside somebody else's buffer; not NUL-terminated. */
struct rec_str {
    const char *ptr;
    size_t len;
};

static inline struct rec_str
rec_str(const char *text)
{
    struct rec_str view = {text, strlen(text)};
    return view;
}

/** What a message says of a text from outside, for "%.*s": its first 60 bytes. */
#define REC_SAID(s) (int)((s).len < 60 ? (s).len : 60), (s).ptr

static inline bool
rec_str_eq(struct rec_str a, struct rec_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static inline bool
rec_str_is(struct rec_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

/** Continues a CRC-32 (gzip's polynomial): `crc` is the CRC-32 of the bytes before these,
 * 0 if there are none. */
uint32_t rec_crc32(uint32_t crc, const void *bytes, size_t n);

/** A 64-bit hash of the bytes (wyhash's mixing step). Its seed differs between processes,
 * so that nobody can construct ids that collide. Therefore no result may depend on it. */
uint64_t rec_hash(struct rec_str s);

/** What splitmix64 adds to its state at each step. */
#define REC_MIX_STEP 0x9e3779b97f4a7c15u
/** The number that splitmix64 gives from a state, in which each bit depends on all bits
 * of the state (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014). Number i of its sequence is that of the state i * REC_MIX_STEP. It is the same
 * on every machine. */
static inline uint64_t
rec_mix(uint64_t state)
{
    uint64_t z = state + REC_MIX_STEP;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** Cuts the text before the next `mark` off the front of *rest, and puts it into *part.
 * Without a mark, *part is all that is left, and rest->ptr becomes NULL. False if
 * rest->ptr was NULL already. */
bool rec_str_split(struct rec_str *rest, char mark, struct rec_str *part);

/**
 * Reads a decimal number: [-]digits[.digits][e[+-]digits], or inf, -inf. No blanks, no
 * leading +, no hexadecimal, no nan, and nothing after it. Rounds correctly.
 */
bool rec_parse_num(struct rec_str s, double *value) REC_MUST_CHECK;

/** Units that people write behind a number; without one it is in the first of them. */
enum rec_units {
    REC_UNITS_NONE,
    REC_UNITS_RATE, /* B/s, kB/s ... PB/s, KiB/s ..., or in bits: Gbit/s, Gb/s, Gbps */
    REC_UNITS_SIZE, /* B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB */
    REC_UNITS_TIME  /* s, ms, us, ns, min, h, d */
};
/** Reads a finite number >= 0 with an optional unit, or inf. Blanks may precede the unit,
 * and its case does not matter, except where it tells bits (b) from bytes (B). */
bool rec_parse_amount(const char *text, enum rec_units units, bool allow_inf,
                      double *value) REC_MUST_CHECK;
/** Reads a number with a unit of any kind. False: it is none, or has no unit. */
bool rec_parse_unit(struct rec_str text, double *value) REC_MUST_CHECK;

/** Reads an unsigned decimal integer without sign; false on overflow too. */
bool rec_parse_uint(struct rec_str s, uint64_t *value) REC_MUST_CHECK;

/** Reads I/N, integers, 1 <= I <= N. */
bool rec_parse_part(struct rec_str s, uint64_t *part, uint64_t *parts) REC_MUST_CHECK;

/** Reads the shape of a matrix product, BATCHxMxNxK: BATCH products of M x K by K x N,
 * integers >= 1. */
bool rec_parse_product(struct rec_str s, uint64_t shape[4]) REC_MUST_CHECK;

/** Room for any number that rec_format_num writes, with its NUL. */
#define REC_NUM_MAX 32

/**
 * Writes the shortest decimal that reads back as the same double: 0.1, 44302336, 5e-8,
 * inf. Returns its length. Algorithm: R. Giulietti, "The Schubfach way to render
 * doubles" (2020).
 */
size_t rec_format_num(char text[REC_NUM_MAX], double value);

/** The unit of a number: seconds, bytes, or floating-point operations. */
enum rec_quantity { REC_SECONDS, REC_BYTES, REC_FLOPS };
/** Room for any quantity, with its NUL. */
#define REC_QUANTITY_MAX 32
/**
 * Writes a number for people, with `digits` significant digits and the unit that suits
 * its size. With 3 digits: "367 us", "38.5 MB", "29.6 GFLOP", "10 min", "0 s". Use
 * rec_format_num() for numbers in records.
 */
void rec_format_quantity(char text[REC_QUANTITY_MAX], double value,
                         enum rec_quantity quantity, int digits);

/* ---- maps, ids and arenas ------------------------------------------------------ */

/* Lookup does not depend on addresses, and nothing iterates over a map, so no result
 * depends on the order of hashes. */

/** No index. */
#define REC_NONE UINT32_MAX

struct rec_map_slot {
    const char *key; /* NULL: free */
    uint32_t len;
    uint32_t value;
};

/** Text -> uint32_t. Starts as {0}. Keys are not copied and must outlive their entry. */
struct rec_map {
    struct rec_map_slot *slot;
    size_t nslots; /* a power of two, or 0 */
    size_t used;
};

/** The value of a key, REC_NONE if it has none. */
uint32_t rec_map_get(const struct rec_map *map, struct rec_str key);
/** Sets the value of a key that is not there yet. False: out of memory. */
bool rec_map_add(struct rec_map *map, struct rec_str key, uint32_t value,
                 struct rec_error *err) REC_MUST_CHECK;
/** Removes a key, if it is there. */
void rec_map_remove(struct rec_map *map, struct rec_str key);
void rec_map_clear(struct rec_map *map);
void rec_map_free(struct rec_map *map);

/** The number of hashed ids that a struct rec_ids knows for certain: the latest ones. */
#define REC_IDS_KEPT 1048576

enum {
    REC_IDS_RUNS = 16,      /* runs in one struct rec_ids */
    REC_IDS_PREFIX = 32,    /* bytes: the longest prefix of a run */
    REC_IDS_AHEAD = 1 << 16 /* numbers behind a run that may come out of order */
};

/** A set of ids that share a prefix and differ in the number at their end: all numbers
 * from `from` to `to`, and those of the next REC_IDS_AHEAD numbers whose bit is set. */
struct rec_ids_run {
    uint64_t from, to;
    uint64_t *ahead; /* bit number % REC_IDS_AHEAD: the number has come already */
    size_t len;      /* bytes of the prefix */
    char prefix[REC_IDS_PREFIX];
};

/**
 * A set of ids in bounded memory, which finds an id that a stream uses twice, even if the
 * stream has more ids than memory could hold.
 *
 * Ids that count up (j1, j3, j2 ...) are kept exactly and for ever, as up to REC_IDS_RUNS
 * runs. Any other id is kept as a 64-bit hash in one of two generations. New hashes go
 * into the newer generation. When it holds REC_IDS_KEPT of them, the older generation is
 * dropped, and an empty one becomes the newer. So the set always knows the latest
 * REC_IDS_KEPT hashed ids, and never more than twice that many, in 32 MB. The chance that
 * a new id is taken for a known one is less than 2^21 / 2^64.
 *
 * Starts as {0}.
 */
struct rec_ids {
    struct rec_ids_run run[REC_IDS_RUNS];
    size_t nruns;
    uint64_t *hash[2]; /* hash tables of the newer, the older generation; 0: free slot */
    size_t size[2];    /* slots of each table: a power of two, or 0 */
    size_t n;          /* hashes in the newer generation */
};

/** Adds an id. 1: the id is new; 0: it was in the set already; -1: *err is filled. */
int rec_ids_add(struct rec_ids *ids, struct rec_str id,
                struct rec_error *err) REC_MUST_CHECK;
void rec_ids_free(struct rec_ids *ids);

struct rec_arena_chunk;

/** An arena for texts: all its memory is freed at once. Starts as {0}. */
struct rec_arena {
    struct rec_arena_chunk *chunk;
    size_t left;
};

/** Copies a text into the arena. The copy is NUL-terminated, and its address stays valid
 * until rec_arena_free(). NULL: out of memory, *err is filled. */
const char *rec_arena_copy(struct rec_arena *arena, struct rec_str text,
                           struct rec_error *err);
void rec_arena_free(struct rec_arena *arena);

/* ---- the table of records ------------------------------------------------ */

/**
 * The known record types: those of record_table.h. REC_OTHER is any other lower-case
 * word. REC_COMMENT is a line that begins with #, or an empty line. REC_MARK is the end
 * of a stream (#end): it tells a stage to close the graph or run that is open. It has no
 * line, and rec_put_line() writes nothing for it.
 */
enum rec_type {
    REC_OTHER,
    REC_COMMENT,
    REC_MARK,
#define REC_ROW(type, ...) REC_##type,
#include "rampipe/record_table.h"
    REC_NTYPES,
    REC_ALONE = REC_OTHER /* in the table: the record is part of no other */
};

/** What a field or the value of a key holds; the checker enforces it. */
enum rec_kind {
    REC_KIND_ID,       /* an id: not empty, no comma, no '=' */
    REC_KIND_IDS,      /* ids separated by commas */
    REC_KIND_NUMBER,   /* a finite number */
    REC_KIND_AMOUNT,   /* a finite number >= 0 */
    REC_KIND_LIMIT,    /* a number >= 0, or inf */
    REC_KIND_COUNT,    /* an integer >= 0 */
    REC_KIND_FRACTION, /* a number in [0, 1] (1e-9 of rounding allowed) */
    REC_KIND_PART,     /* I/N, 1 <= I <= N */
    REC_KIND_PRODUCT,  /* BATCHxMxNxK, integers >= 1 */
    REC_KIND_PASS,     /* forward, backward or task */
    REC_KIND_EXCHANGE, /* what a group exchanges: one of rec_exchange_name() */
    REC_KIND_ACCOUNT,  /* useful, wasted, reconfiguring or stalled */
    REC_KIND_NAMES,    /* ids separated by commas, as many as the field COUNT says */
    REC_KIND_TEXT,     /* anything */
    /* numbers that are compared with another field of the record: */
    REC_KIND_LATER, /* an AMOUNT that is not less than the field before it */
    REC_KIND_PAST   /* an AMOUNT that is not more than the field TIME */
};

struct rec_field_spec {
    const char *name; /* NULL ends the list */
    enum rec_kind kind;
    const char *about;
};

/** One row of the table that rampipe(5), reccheck and the tests share. */
struct rec_spec {
    const char *name;    /* "op"; NULL in the row of a kind */
    const char *kind;    /* the value of the first field that the row is for; NULL: any */
    const char *about;   /* one or two sentences, with units */
    const char *example; /* a valid record; NULL if the rows of its kinds have them */
    enum rec_type type;
    enum rec_type whole; /* the type of the record that it is a part of, and stands
                             behind; REC_ALONE: of none */
    const struct rec_field_spec *fields; /* the fixed fields, in order */
    size_t nfields;
    const struct rec_field_spec *keys; /* the known keys (others may appear) */
};

/** Rows of kinds that a program adds to those of record_table.h by defining this table;
 * NULL ends it. tests/kind/pods.c does so; without it the table's address is NULL. */
extern const struct rec_spec *const rec_more_kinds[] __attribute__((weak));
/** The row of a type; NULL for REC_OTHER, REC_COMMENT and REC_MARK. */
const struct rec_spec *rec_spec(enum rec_type type);
/** The i-th row of a type that has kinds, from i = 0; NULL if i is past the last row. */
const struct rec_spec *rec_spec_of_kind(enum rec_type type, size_t i);

/** Is the text valid for this kind of field? Checks that need other fields of the record
 * (LATER, PAST, NAMES) are not made here; rec_check_text() makes them. */
bool rec_is_kind(struct rec_str text, enum rec_kind kind);
/** What a field of this kind must be, in words: "a number >= 0". */
const char *rec_kind_text(enum rec_kind kind);
/** The word for exchange i of a group, from i = 0: all-reduce, all-gather, ...; NULL if i
 * is past the last one. */
const char *rec_exchange_name(size_t i);

/* ---- reading ------------------------------------------------------------- */

struct rec_reader;
struct rec_writer;

/** One record, valid until the next rec_next() on the same reader. */
struct rec {
    enum rec_type type;
    /* The row of the record's type, or of its kind if the type has kinds. NULL for
     * REC_OTHER, REC_COMMENT and REC_MARK. */
    const struct rec_spec *spec;
    struct rec_str line;         /* the whole line without its end */
    const struct rec_str *field; /* field[0] is the type */
    size_t nfields;
};

/** Is it a record of type `whole`, or a part of one: of REC_GRAPH also op and dep. */
static inline bool
rec_is_part(const struct rec *rec, enum rec_type whole)
{
    return rec->type == whole || (rec->spec && rec->spec->whole == whole);
}

/** Does a record of type `whole` that is open stay so: is this one a part of it, or a
 * comment or record of an unknown type, which may stand anywhere? */
static inline bool
rec_continues(const struct rec *rec, enum rec_type whole)
{
    return rec->type == REC_COMMENT || rec->type == REC_OTHER ||
           (rec->type != whole && rec_is_part(rec, whole));
}

/** How a reader treats its input. */
struct rec_reader_options {
    bool partial; /* accept a cut stream, with a warning */
    /* The input is a log that another program may still be writing. If it has no header,
     * it may be empty, and a last line without LF is dropped with a warning. */
    bool log;
    struct rec_writer *tie; /* header, provenance and trailer go there; may be NULL */
    void (*warn)(void *context, const char *text); /* may be NULL */
    void *context;
};

/**
 * Opens a reader over `count` files, read in order ("-" is standard input; count 0 means
 * standard input). gzip is recognised by content. The names are kept, not copied.
 * NULL: *err is filled.
 */
struct rec_reader *rec_reader_open(const char *const *files, size_t count,
                                   const struct rec_reader_options *options,
                                   struct rec_error *err) REC_MUST_CHECK;

/** Opens a reader over text in memory. Neither the text nor `name`, which stands for a
 * file name in messages, is copied: both must outlive the reader. NULL: *err is
 * filled. */
struct rec_reader *rec_reader_open_text(const char *name, struct rec_str text,
                                        struct rec_error *err) REC_MUST_CHECK;

/** Opens a reader over a descriptor (a socket or a pipe). `name` stands for a file name
 * in messages. The caller owns both, and keeps them until after rec_reader_close(), which
 * does not close the descriptor. gzip is not recognised. NULL: *err is filled. */
struct rec_reader *rec_reader_open_descriptor(const char *name, int descriptor,
                                              const struct rec_reader_options *options,
                                              struct rec_error *err) REC_MUST_CHECK;

/** Reads the next record or comment. 1: *rec is filled; 0: the end of all files, and no
 * stream was cut; -1: *err is filled. */
int rec_next(struct rec_reader *reader, struct rec *rec,
             struct rec_error *err) REC_MUST_CHECK;

/** As rec_next(), for a caller that waits for other events, too. Returns 2 instead of
 * blocking when the next record has not arrived yet; then poll() rec_reader_descriptor()
 * for input before the next call. */
int rec_try_next(struct rec_reader *reader, struct rec *rec,
                 struct rec_error *err) REC_MUST_CHECK;
/** The descriptor of the file being read; -1 between files. */
int rec_reader_descriptor(const struct rec_reader *reader);

/** Reads the next line of foreign text: headers, comments and fields mean nothing here.
 * 1: *line is valid until the next read; 0: the end of all files; -1: *err is filled. */
int rec_next_line(struct rec_reader *reader, struct rec_str *line,
                  struct rec_error *err) REC_MUST_CHECK;

/** Shows the next line of the current file (at the beginning: of the first file) without
 * consuming it: the next rec_next() or rec_next_line() reads it again. 1; 0: the file has
 * no more lines; -1: *err is filled. */
int rec_peek_line(struct rec_reader *reader, struct rec_str *line,
                  struct rec_error *err) REC_MUST_CHECK;

/** The file being read ("<stdin>" for standard input) and the line of the last record. */
const char *rec_reader_file(const struct rec_reader *reader);
uint64_t rec_reader_line(const struct rec_reader *reader);

/** Is the reader inside a stream that began with a #rampipe header? */
bool rec_reader_headed(const struct rec_reader *reader);
/** The number of #rampipe headers so far. A record behind a new one is of another stream
 * than the record before, even if no #end stands between: the stream in front was written
 * by hand, or was cut and accepted. */
uint64_t rec_reader_streams(const struct rec_reader *reader);

/** How many bytes were read so far, before decompression. */
uint64_t rec_reader_bytes(const struct rec_reader *reader);

/** For progress: an estimate of how many of the bytes read belong to the records returned
 * so far. A signal handler may call it. */
double rec_reader_used(const struct rec_reader *reader);

/** The provenance of the stream being read: its #@ lines, each with LF; "" if none. */
const char *rec_reader_provenance(const struct rec_reader *reader);

void rec_reader_close(struct rec_reader *reader);

/** rec_fail_at() with the reader's file and line. Returns false. */
bool rec_reader_fail(const struct rec_reader *reader, struct rec_error *err,
                     const char *format, ...) REC_PRINTF(3, 4);

/** Adds the reader's file and line to an error of REC_DATA that does not name them yet.
 * Returns false. */
bool rec_locate(const struct rec_reader *reader, struct rec_error *err);

/*
 * Fields and keys. `index` counts from 1 (0 is the type). The record's row says what a
 * field is called and which numbers it may hold, inf included. All these functions
 * return false (or -1) with *err filled, file and line included.
 */

/** The specification of a key of the record; NULL if its row does not have the key. */
const struct rec_field_spec *rec_key_spec(const struct rec *rec, struct rec_str key);

/** Checks that the record has all fixed fields of its row, that its line is UTF-8, and
 * that no key occurs twice. Call it before any other function reads a field. */
bool rec_need(const struct rec_reader *reader, const struct rec *rec,
              struct rec_error *err) REC_MUST_CHECK;
/** Reads a field that is a number. */
bool rec_get_number(const struct rec_reader *reader, const struct rec *rec, size_t index,
                    double *value, struct rec_error *err) REC_MUST_CHECK;
/** Reads a field of kind LATER: it must not be less than `before`, the value of the field
 * before it, which the caller has read already. */
bool rec_get_later(const struct rec_reader *reader, const struct rec *rec, size_t index,
                   double before, double *value, struct rec_error *err) REC_MUST_CHECK;
/** Reads a field that is a COUNT. */
bool rec_get_count(const struct rec_reader *reader, const struct rec *rec, size_t index,
                   uint64_t *value, struct rec_error *err) REC_MUST_CHECK;
/** Reads a field that is an ID: *id is a view of it. */
bool rec_get_id(const struct rec_reader *reader, const struct rec *rec, size_t index,
                struct rec_str *id, struct rec_error *err) REC_MUST_CHECK;
/** Fills *err: the field is not what its row demands. Returns false. */
bool rec_bad_field(const struct rec_reader *reader, const struct rec *rec, size_t index,
                   struct rec_error *err);

/** True if the text is UTF-8 without control characters other than TAB. */
bool rec_is_text(struct rec_str s);
/** Replaces by '_' what an id must not hold: commas, '=' and control characters. */
void rec_clean_id(char *text);
/** Checks a text as the value of a field or key of the record, which `spec` describes. */
bool rec_check_text(const struct rec_reader *reader, const struct rec *rec,
                    const struct rec_field_spec *spec, struct rec_str text,
                    struct rec_error *err) REC_MUST_CHECK;
/** Checks a record against the table: rec_need(), every field, every known key. Of a
 * record of unknown type it checks only that it is UTF-8. */
bool rec_check(const struct rec_reader *reader, const struct rec *rec,
               struct rec_error *err) REC_MUST_CHECK;

/**
 * Iterates over the key=value fields after the fixed ones: *at starts at 0. A field
 * without '=' is an error. Returns 1 with key and value, 0 at the end, -1 with *err.
 */
int rec_next_key(const struct rec_reader *reader, const struct rec *rec, size_t *at,
                 struct rec_str *key, struct rec_str *value,
                 struct rec_error *err) REC_MUST_CHECK;
/** Has a record of a known type a key that its row does not have? *key: the first one. */
bool rec_unknown_key(const struct rec_reader *reader, const struct rec *rec,
                     struct rec_str *key);
/** The value of one key; false when the record does not have it. */
bool rec_find_key(const struct rec *rec, const char *key, struct rec_str *value);
/** The value of a key as a text that lives as long as the arena; "" without the key. */
bool rec_arena_key(struct rec_arena *arena, const struct rec *rec, const char *key,
                   const char **text, struct rec_error *err) REC_MUST_CHECK;
/** Reads a key whose value is a number. True, and *value unchanged, if it is absent. */
bool rec_key_number(const struct rec_reader *reader, const struct rec *rec,
                    const char *key, double *value, struct rec_error *err) REC_MUST_CHECK;
/** Reads a key whose value is a COUNT. True, and *value unchanged, if it is absent. */
bool rec_key_count(const struct rec_reader *reader, const struct rec *rec,
                   const char *key, uint64_t *value,
                   struct rec_error *err) REC_MUST_CHECK;
/** Reads a key whose value is NAMES, as many ids as the field COUNT says: *ids is a view
 * of it. True, and ids->ptr NULL, if the key is absent. */
bool rec_key_ids(const struct rec_reader *reader, const struct rec *rec, const char *key,
                 struct rec_str *ids, struct rec_error *err) REC_MUST_CHECK;
/** Reads a text as the number that a field or key of the record must be. */
bool rec_read_number(const struct rec_reader *reader, const struct rec *rec,
                     const struct rec_field_spec *spec, struct rec_str text,
                     double *value, struct rec_error *err) REC_MUST_CHECK;
/** Fills *err: the text is not what a field or key of the record must be. Returns
 * false. */
bool rec_bad_text(const struct rec_reader *reader, const struct rec *rec,
                  const struct rec_field_spec *spec, struct rec_str text,
                  struct rec_error *err);

/* ---- foreign bytes -------------------------------------------------------- */

/** A source of bytes that need not be text: a file or standard input, decompressed if it
 * is gzip. */
struct rec_input;

/** Opens a file; "-" is standard input. `path` is kept, not copied. NULL: *err. */
struct rec_input *rec_input_open(const char *path, struct rec_error *err) REC_MUST_CHECK;
/** Reads up to `room` (>= 2) bytes into `to`, and returns how many; 0 at the end; -1:
 * *err is filled. If `patient`, it returns REC_INPUT_WAITS instead of blocking when the
 * part of a gzip file that has arrived does not yield a byte yet. */
enum { REC_INPUT_WAITS = -2 };
ptrdiff_t rec_input_read(struct rec_input *input, char *to, size_t room, bool patient,
                         struct rec_error *err) REC_MUST_CHECK;
/** The name of an input in messages: the path, "<stdin>" for "-". */
const char *rec_input_name(const char *path);
/** `input` may be NULL. */
void rec_input_close(struct rec_input *input);

/* ---- writing ------------------------------------------------------------- */

/**
 * Opens a writer on standard output (path NULL or "-") or on a file.
 *
 * A regular file is written under a temporary name in the same directory. It is synced
 * and renamed only when rec_writer_close() is told that it is whole; until then, and
 * after any failure, the old file stays. So a stage may write the file that it reads.
 * Temporary files that killed writers of the same file left on this host are removed.
 * Anything else (a device, a FIFO) is written directly. If the path ends in .gz, the
 * output is compressed.
 *
 * `provenance` is this stage's own line without its end ("#@ TAB tool version TAB
 * command"), and is copied; NULL makes plain text without header and trailer. The
 * functions that write do not report errors: rec_writer_ok() and rec_writer_close() do.
 * NULL: *err is filled.
 */
struct rec_writer *rec_writer_open(const char *path, const char *provenance,
                                   struct rec_error *err) REC_MUST_CHECK;

/** A destination of bytes that is no file. `put` takes all bytes and returns 0, or
 * returns an errno. */
struct rec_sink {
    int (*put)(void *context, const char *bytes, size_t len);
    void *context;
};

/** Opens a writer on a sink; `name` stands for a file name in messages, and is copied.
 * Otherwise as rec_writer_open(). */
struct rec_writer *rec_writer_open_sink(const struct rec_sink *sink, const char *name,
                                        const char *provenance,
                                        struct rec_error *err) REC_MUST_CHECK;

/**
 * Ends the current stream, if there is one, and starts another. `before` holds the
 * provenance lines of the stages before (whole lines; "" if there are none), `own` is
 * this stage's own line. Not for writers of plain text.
 */
void rec_writer_next(struct rec_writer *writer, const char *before, const char *own);
/** Replaces this stage's own provenance line in all streams that begin from now on. */
bool rec_writer_own(struct rec_writer *writer, const char *own,
                    struct rec_error *err) REC_MUST_CHECK;

/** Makes the writer seal its streams: a trailer then holds `#end`, the number of records
 * and the CRC-32 (ISO 3309, as zlib's) of the bytes between header and trailer. Call it
 * before anything is written. */
void rec_writer_seal(struct rec_writer *writer);

/** Protects a file that another process may write at the same time: this writer replaces
 * only the file that is at its path now (or none, if none is). If another file is there
 * when the writer is closed, that file stays, and closing fails (REC_IO). */
bool rec_writer_claim(struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

/** The temporary name of the file, for a signal handler that must remove it; NULL: the
 * output is written directly. The writer owns it. */
const char *rec_writer_temporary(const struct rec_writer *writer);

/** False after a write has failed: *err says why (REC_IO). The result is lost then, so a
 * stage may stop early. */
bool rec_writer_ok(const struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

/** Passes the buffered bytes to the operating system. */
void rec_writer_flush(struct rec_writer *writer);
/** Fails with SIGPIPE, as a write would, if the output is a pipe that nobody reads any
 * more: for a tool that works for long without writing. */
void rec_writer_probe(struct rec_writer *writer);

/**
 * Closes and frees the writer. If `whole`, it writes the trailer and gives a file its
 * name. Otherwise the stream stays cut, and a temporary file is removed. False: *err says
 * what failed (REC_IO).
 */
bool rec_writer_close(struct rec_writer *writer, bool whole,
                      struct rec_error *err) REC_MUST_CHECK;

/** Writes a record or comment exactly as it was read. */
void rec_put_line(struct rec_writer *writer, struct rec_str line);
/** Starts a record; fields follow, each preceded by a TAB, then rec_end(). */
void rec_begin(struct rec_writer *writer, const char *type);
/**
 * Starts the record that was read anew: its fixed fields, and its keys but for those that
 * `is_old` names, such as an earlier answer. More keys follow, then rec_end(). False:
 * *err; what stands for a key is none.
 */
bool rec_begin_answer(struct rec_writer *writer, const struct rec_reader *reader,
                      const struct rec *rec, bool (*is_old)(struct rec_str key),
                      struct rec_error *err) REC_MUST_CHECK;
void rec_str_field(struct rec_writer *writer, struct rec_str s);
void rec_text_field(struct rec_writer *writer, const char *text);
void rec_num_field(struct rec_writer *writer, double value);
void rec_uint_field(struct rec_writer *writer, uint64_t value);
/** key=value fields. */
void rec_str_key(struct rec_writer *writer, const char *key, struct rec_str value);
void rec_text_key(struct rec_writer *writer, const char *key, const char *value);
void rec_num_key(struct rec_writer *writer, const char *key, double value);
void rec_uint_key(struct rec_writer *writer, const char *key, uint64_t value);
/** Raw bytes inside the current field or line (lists, tables); no TAB is added. */
void rec_put_bytes(struct rec_writer *writer, const char *bytes, size_t len);
/** An integer inside the current field or line; no TAB is added. */
void rec_put_uint(struct rec_writer *writer, uint64_t value);
void rec_end(struct rec_writer *writer);
/** Formatted text as it is, for tables; up to 1999 bytes a call. */
void rec_printf(struct rec_writer *writer, const char *format, ...) REC_PRINTF(2, 3);

REC_END_DECLS

#endif
