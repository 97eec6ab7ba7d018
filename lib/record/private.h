/* What the files of lib/record share with each other and with nobody else. */
#ifndef RAMPIPE_RECORD_PRIVATE_H
#define RAMPIPE_RECORD_PRIVATE_H

#include "rampipe/record.h"

/* As rec_input_open(), of bytes in memory, which are borrowed. */
struct rec_input *rec_input_open_text(const char *name, struct rec_str text,
                                      struct rec_error *err);
/* What comes through a descriptor, which stays the caller's, as it is. */
struct rec_input *rec_input_open_descriptor(const char *name, int fd,
                                            struct rec_error *err) REC_MUST_CHECK;
/* True when reading may wait for another process. */
bool rec_input_may_block(const struct rec_input *input);
/* What to poll() for. */
int rec_input_fd(const struct rec_input *input);
/* True when a read by the patient does not wait for another process. (The first read does
 * if the one byte that is there could begin a gzip.) */
bool rec_input_ready(const struct rec_input *input);
/* Bytes read from the file so far, before decompression. */
uint64_t rec_input_bytes(const struct rec_input *input);
/* Those of them that rec_input_read() has returned, unpacked. */
uint64_t rec_input_taken(const struct rec_input *input);

/*
 * A sink of bytes: standard output (path NULL) or a file, deflated if its name ends in
 * .gz. A regular file appears under its name only when it is closed to be kept.
 */
struct rec_output;

/* NULL: errno. */
struct rec_output *rec_output_open(const char *path);
/* A sink that takes the bytes as they are. NULL: out of memory. */
struct rec_output *rec_output_open_sink(const struct rec_sink *sink);
/* `len` < 2^31. 0, or an errno. */
int rec_output_write(struct rec_output *output, const char *bytes, size_t len);
/* From now on no file but the one that is at its place now, if any, is replaced: if
 * another is there, closing fails with EEXIST. 0, or an errno. */
int rec_output_claim(struct rec_output *output);
/* What the file is called until it is whole; NULL: it is written directly. */
const char *rec_output_temporary(const struct rec_output *output);
/* Frees it. 0, or an errno: the file is not there, or is the old one. */
int rec_output_close(struct rec_output *output, bool keep);

/* The row of a record of a known type: that of its kind, if its type has kinds. */
const struct rec_spec *rec_find_spec(const struct rec *rec);

/* The field or key of a list that has a name; NULL: none. */
const struct rec_field_spec *rec_list_find(const struct rec_field_spec *list,
                                           struct rec_str name);

/* Is it a number that the kind allows? */
bool rec_parse_number(struct rec_str text, enum rec_kind kind, double *value);

/* An id has no comma and no '=', and is not empty. */
bool rec_is_id(struct rec_str s);
/* What needs no row, or only the number of fields: UTF-8, no key twice. */
bool rec_check_line(const struct rec_reader *reader, const struct rec *rec,
                    struct rec_error *err) REC_MUST_CHECK;
/* Behind the fixed fields of a record of a known type stand key=value fields and no
 * others. Of a kind that has no row nobody knows how many are fixed. */
bool rec_check_extra(const struct rec_reader *reader, const struct rec *rec,
                     struct rec_error *err) REC_MUST_CHECK;
/* A field behind the fixed ones is no key=value: says so. Returns false. */
bool rec_fail_extra(const struct rec_reader *reader, const struct rec *rec,
                    struct rec_str field, struct rec_error *err);
/* A number of kind LATER or PAST is on the right side of its neighbour. */
bool rec_check_order(const struct rec_reader *reader, const struct rec *rec,
                     const struct rec_field_spec *spec, double value,
                     struct rec_error *err) REC_MUST_CHECK;

/* The first line of a stream, as it is written. */
#define REC_HEADER "#rampipe\t1\n"
_Static_assert(REC_VERSION == 1, "the header says another version");

/* What a seal says of a stream: how many records it has, and the CRC-32 of the bytes
 * between its header and its trailer. */
struct rec_seal {
    uint64_t records;
    uint32_t crc;
};
/* The last line of a sealed stream, as it is written. */
enum { REC_SEAL_MAX = 48 };
void rec_format_seal(char text[REC_SEAL_MAX], const struct rec_seal *seal);
/* "#end", or a seal: with the number of records and the CRC-32 as 8 hexadecimal digits,
 * TABs between them. False: neither. */
bool rec_read_trailer(struct rec_str line, bool *sealed, struct rec_seal *seal);
/* The stream does not fit its seal: says so. Returns false. */
bool rec_fail_seal(const struct rec_reader *reader, const struct rec_seal *said,
                   const struct rec_seal *found, struct rec_error *err);
/* Its first or last line, which the CRC-32 does not know, is not as it was written. */
bool rec_fail_sealed_line(const struct rec_reader *reader, const char *which,
                          struct rec_error *err);
bool rec_is_trailer(struct rec_str line);

/* The reader tells the writer tied to it what it saw around the records. */
void rec_writer_header(struct rec_writer *writer);
void rec_writer_provenance(struct rec_writer *writer, struct rec_str line);
/* Everything that comes before the first record, unless already written. */
void rec_writer_begin(struct rec_writer *writer);

#endif
