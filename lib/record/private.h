/* What the files of lib/record share with each other and with nobody else. */
#ifndef RAMPIPE_RECORD_PRIVATE_H
#define RAMPIPE_RECORD_PRIVATE_H

#include "rampipe/record.h"

/* As rec_input_open(), for text in memory, which the caller keeps. NULL: *err. */
struct rec_input *rec_input_open_text(const char *name, struct rec_str text,
                                      struct rec_error *err);
/* As rec_input_open(), for a descriptor, which the caller keeps and closes. Its bytes are
 * never decompressed. NULL: *err. */
struct rec_input *rec_input_open_descriptor(const char *name, int fd,
                                            struct rec_error *err) REC_MUST_CHECK;
/* True if a read may have to wait for another process: the input is no regular file. */
bool rec_input_may_block(const struct rec_input *input);
/* The descriptor to poll(); -1: the input is text in memory. */
int rec_input_fd(const struct rec_input *input);
/* True if a `patient` read returns without waiting for another process. There is one
 * exception: if the first read gets a single byte that could begin a gzip, it waits for
 * the second byte. */
bool rec_input_ready(const struct rec_input *input);
/* Bytes read from the file so far, before decompression. */
uint64_t rec_input_bytes(const struct rec_input *input);
/* Bytes of the file, before decompression, that rec_input_read() has used so far. */
uint64_t rec_input_taken(const struct rec_input *input);

/*
 * A sink of bytes: standard output (path NULL) or a file, deflated if its name ends in
 * .gz. A regular file appears under its name only when it is closed to be kept.
 */
struct rec_output;

/* `path` is copied. NULL: errno says why. */
struct rec_output *rec_output_open(const char *path);
/* An output whose bytes go to a caller's sink, never compressed. NULL: out of memory. */
struct rec_output *rec_output_open_sink(const struct rec_sink *sink);
/* `len` < 2^31. 0, or an errno. */
int rec_output_write(struct rec_output *output, const char *bytes, size_t len);
/* EPIPE, and the signal, if it is a pipe that nobody reads any more, else 0. */
int rec_output_probe(const struct rec_output *output);
/* From now on the output replaces only the file that is at its path now (or none, if
 * none is): if another file is there at the end, rec_output_close() fails with EEXIST and
 * keeps that file. 0, or an errno. */
int rec_output_claim(struct rec_output *output);
/* The temporary name of the file; NULL: the output is written directly. */
const char *rec_output_temporary(const struct rec_output *output);
/* Frees the output. If `keep`, gives a temporary file its final name; otherwise removes
 * it. 0, or an errno: then the old file, if there was one, is still in place. */
int rec_output_close(struct rec_output *output, bool keep);

/* As rec_hash(), for texts that count on, such as j1, j2, j3 or 7a, 7b, 7c. The family of
 * a text are the texts that differ from it at most in the lower halves of their last two
 * bytes. All have the same hash; `member`, 0 to 255, tells them apart, and is in their
 * order. */
uint64_t rec_hash_family(struct rec_str s, unsigned *member);

/* The row of a record of a known type. If the type has kinds, it is the row of the kind
 * that the first field names, or the type's own row if no kind has that name. */
const struct rec_spec *rec_find_spec(const struct rec *rec);

/* The entry of a list of fields or keys with this name; NULL: none. */
const struct rec_field_spec *rec_list_find(const struct rec_field_spec *list,
                                           struct rec_str name);

/* Reads a number. False if it is none, or one that the kind does not allow. */
bool rec_parse_number(struct rec_str text, enum rec_kind kind, double *value);

/* Makes the checks that need at most the number of fixed fields: the line is UTF-8, and
 * no key occurs twice. */
bool rec_check_line(const struct rec_reader *reader, const struct rec *rec,
                    struct rec_error *err) REC_MUST_CHECK;
/* Checks that only key=value fields follow the fixed fields of a record of a known type.
 * If the type has kinds and the record's kind has no row, the number of fixed fields is
 * not known, and nothing is checked. */
bool rec_check_extra(const struct rec_reader *reader, const struct rec *rec,
                     struct rec_error *err) REC_MUST_CHECK;
/* Fills *err: a field behind the fixed ones is not key=value. Returns false. */
bool rec_fail_extra(const struct rec_reader *reader, const struct rec *rec,
                    struct rec_str field, struct rec_error *err);
/* Compares a number of kind LATER with the field before it, one of kind PAST with the
 * field TIME. */
bool rec_check_order(const struct rec_reader *reader, const struct rec *rec,
                     const struct rec_field_spec *spec, double value,
                     struct rec_error *err) REC_MUST_CHECK;

/* The first line of a stream, as it is written. */
#define REC_HEADER "#rampipe\t1\n"
_Static_assert(REC_VERSION == 1, "the header says another version");

/* The content of a seal: the number of records of a stream, and the CRC-32 of the bytes
 * between its header and its trailer. */
struct rec_seal {
    uint64_t records;
    uint32_t crc;
};
/* The last line of a sealed stream, as it is written. */
enum { REC_SEAL_MAX = 48 };
void rec_format_seal(char text[REC_SEAL_MAX], const struct rec_seal *seal);
/* Reads a trailer: "#end", or a seal, which is "#end", the number of records and the
 * CRC-32 as 8 hexadecimal digits, with TABs between. False: the line is neither. */
bool rec_read_trailer(struct rec_str line, bool *sealed, struct rec_seal *seal);
/* Fills *err: the stream does not match its seal. `said` is what the seal says, `found`
 * what the reader counted. Returns false. */
bool rec_fail_seal(const struct rec_reader *reader, const struct rec_seal *said,
                   const struct rec_seal *found, struct rec_error *err);
/* Fills *err: the "first" or "last" line of a sealed stream, which its CRC-32 does not
 * cover, is not as a writer writes it. Returns false. */
bool rec_fail_sealed_line(const struct rec_reader *reader, const char *which,
                          struct rec_error *err);
bool rec_is_trailer(struct rec_str line);

/* The reader calls these on the writer tied to it when it has read a header or a line of
 * provenance, so that the writer forwards them. */
void rec_writer_header(struct rec_writer *writer);
void rec_writer_provenance(struct rec_writer *writer, struct rec_str line);
/* Writes this stage's own provenance line and the comments held back for it, unless they
 * are written already. */
void rec_writer_begin(struct rec_writer *writer);

#endif
