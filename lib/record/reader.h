/* The reader, as its two files see it: lines.c gets lines from inputs, and reader.c makes
 * records of them. */
#ifndef RAMPIPE_RECORD_READER_H
#define RAMPIPE_RECORD_READER_H

#include "private.h"

enum {
    READER_BUFFER = 1 << 18, /* bytes, at the beginning */
    READER_PAD = 64,         /* bytes behind the data that scanning may read */
    TYPE_SLOTS = 512,        /* a power of two, several times the number of types */
};

struct rec_reader {
    const char *const *files;
    size_t nfiles, next_file;
    struct rec_reader_options options;
    const char *own_name; /* the only "file", if the input is text or a descriptor */
    struct rec_str text;  /* ptr NULL: the input is no text in memory */
    int descriptor;       /* -1: the input is no descriptor */

    struct rec_input *input; /* NULL between files */
    const char *name;        /* the current file's, for messages */
    bool ended;              /* no more bytes in this input */
    uint64_t line;           /* number of the last line returned */
    uint64_t bytes;          /* read from the files before this one */
    uint64_t unpacked;       /* bytes of this file that came into the buffer */

    char *buffer;
    size_t size, start, end; /* unread bytes are buffer[start..end) */
    bool patient;            /* rec_try_next() is running: do not wait for bytes */
    bool waiting;            /* fill() stopped because it would have had to wait */
    bool unterminated;       /* the last line ended without LF */
    bool has_nul;            /* the input has a NUL byte: search each line for it */

    struct rec_str *field;
    size_t nfields, field_room;
    uint64_t packed[TYPE_SLOTS]; /* hash table of the known types' names */
    enum rec_type type[TYPE_SLOTS];

    bool headed;          /* inside a stream that opened with #rampipe */
    bool exact;           /* the header is byte for byte what a writer writes */
    bool closed;          /* behind #end: only a header may follow in this file */
    bool opening;         /* header and provenance may still come */
    uint64_t streams;     /* headers so far */
    struct rec_seal seal; /* of the bytes since the header, up to buffer[summed] */
    size_t summed;
    char *provenance;
    size_t provenance_len, provenance_room;
};

/* Adds the bytes before buffer[to] to the CRC-32 that a seal is compared with. Streams
 * without a seal are summed, too, since the seal is the last line. */
void rec_sum_up(struct rec_reader *reader, size_t to);
/* Reads the next line of the current input, without its end, and splits it into fields if
 * `split`. 1; 0: the end of the input; -1: *err; 2: the reader is patient and the line
 * has not arrived yet. */
int rec_split_next(struct rec_reader *reader, struct rec_str *line, bool split,
                   struct rec_error *err);
/* Opens the next file. 1; 0: there is none; -1: *err. */
int rec_next_file(struct rec_reader *reader, struct rec_error *err);
/* Called when the input stopped too early; `cut` is the message. If the reader's options
 * tolerate that, warns and returns true. Otherwise *err is *cut. */
bool rec_accept(struct rec_reader *reader, const struct rec_error *cut,
                struct rec_error *err) REC_MUST_CHECK;
/* Closes the current file at its end. False, *err: the file has not a single byte. That
 * is what a stage upstream leaves that did not start, so it is not a valid input. */
bool rec_close_file(struct rec_reader *reader, struct rec_error *err) REC_MUST_CHECK;

#endif
