/*
 * The writer: one buffer in front of an output (output.c), header, provenance, trailer.
 *
 * Functions that write return nothing. The first error is kept in `failed`, later writes
 * do nothing, and rec_writer_close() reports it: a stage needs one check, not one a
 * field. This stage's own line of provenance follows those of the stages before, so it is
 * written late: with the first record, or when the reader says that no more come
 * (rec_writer_begin()).
 */
#include "private.h"

#include <errno.h>
#include <libdeflate.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BUFFER_SIZE = 1 << 16 };

struct rec_writer {
    char *name;
    struct rec_output *output;
    char *provenance; /* NULL: plain text without header and trailer */
    bool header_written, own_written;
    bool fresh; /* the header was written early, and nothing follows it yet */
    char *held; /* comments to be written behind this stage's own provenance */
    size_t held_len, held_room;
    bool sealed;          /* trailers are seals */
    int failed;           /* errno of the first failure; 0 if none */
    struct rec_seal seal; /* of all bytes since the header, up to buffer[summed] */
    bool in_line;         /* the last of these bytes is not an LF */
    size_t used, summed;  /* bytes of the buffer: filled; counted in the seal */
    char buffer[BUFFER_SIZE];
};

/* A writer with copies of its two texts, but without an output yet. NULL: *err. */
static struct rec_writer *
new_writer(const char *name, const char *provenance, struct rec_error *err)
{
    struct rec_writer *writer = malloc(sizeof *writer);
    /* The buffer is not cleared: that would touch all its pages, and a small output needs
     * one. */
    if (writer)
        memset(writer, 0, offsetof(struct rec_writer, buffer));
    if (writer && (writer->name = strdup(name)) &&
        (!provenance || (writer->provenance = strdup(provenance))))
        return writer;
    if (writer)
        free(writer->name);
    free(writer);
    rec_fail_memory(err);
    return NULL;
}

static struct rec_writer *
begin_output(struct rec_writer *writer, struct rec_output *output, struct rec_error *err)
{
    if (!output) {
        rec_fail(err, REC_IO, "%s: %s", writer->name, strerror(errno));
        free(writer->name);
        free(writer->provenance);
        free(writer);
        return NULL;
    }
    writer->output = output;
    /* The header goes out at once, so that the next stage can tell a stage that is still
     * computing from one that did not start: that leaves an input without a byte. */
    rec_writer_header(writer);
    rec_writer_flush(writer);
    writer->fresh = true;
    return writer;
}

struct rec_writer *
rec_writer_open(const char *path, const char *provenance, struct rec_error *err)
{
    bool standard = !path || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
    struct rec_writer *writer = new_writer(standard ? "<stdout>" : path, provenance, err);
    return writer ? begin_output(writer, rec_output_open(standard ? NULL : path), err)
                  : NULL;
}

struct rec_writer *
rec_writer_open_sink(const struct rec_sink *sink, const char *name,
                     const char *provenance, struct rec_error *err)
{
    struct rec_writer *writer = new_writer(name, provenance, err);
    return writer ? begin_output(writer, rec_output_open_sink(sink), err) : NULL;
}

void
rec_writer_seal(struct rec_writer *writer)
{
    writer->sealed = true;
}

bool
rec_writer_claim(struct rec_writer *writer, struct rec_error *err)
{
    if (!writer->failed)
        writer->failed = rec_output_claim(writer->output);
    return rec_writer_ok(writer, err);
}

const char *
rec_writer_temporary(const struct rec_writer *writer)
{
    return rec_output_temporary(writer->output);
}

bool
rec_writer_ok(const struct rec_writer *writer, struct rec_error *err)
{
    if (!writer->failed)
        return true;
    return rec_fail(
        err, REC_IO, "%s: %s", writer->name,
        writer->failed == EEXIST
            ? "another program has made this file meanwhile: that file is kept, "
              "and this output is dropped"
            : strerror(writer->failed));
}

/* After the first failure, all further bytes are dropped. */
static void
write_out(struct rec_writer *writer, const char *bytes, size_t len)
{
    if (!writer->failed)
        writer->failed = rec_output_write(writer->output, bytes, len);
}

/* Counts bytes in the seal: in its CRC-32, and the lines that begin in them and are
 * neither empty nor comments in its number of records. */
static void
add_to_seal(struct rec_writer *writer, const char *bytes, size_t len)
{
    const char *end = bytes + len, *lf;
    if (!writer->sealed)
        return;
    writer->seal.crc = libdeflate_crc32(writer->seal.crc, bytes, len);
    for (; bytes < end; bytes = lf + 1) {
        writer->seal.records += !writer->in_line && *bytes != '#' && *bytes != '\n';
        lf = memchr(bytes, '\n', (size_t)(end - bytes));
        writer->in_line = !lf;
        if (!lf)
            return;
    }
}

void
rec_writer_flush(struct rec_writer *writer)
{
    add_to_seal(writer, writer->buffer + writer->summed, writer->used - writer->summed);
    write_out(writer, writer->buffer, writer->used);
    writer->used = writer->summed = 0;
}

void
rec_writer_probe(struct rec_writer *writer)
{
    if (!writer->failed)
        writer->failed = rec_output_probe(writer->output);
}

/* Bytes of a field that copy_short() copies: most fields are that short. */
enum { SHORT = 32, PAGE = 4096 /* bytes: no machine has smaller pages */ };

/*
 * As memcpy() of at most SHORT bytes; `to` has room for SHORT bytes, all of which may be
 * written. Choosing by the exact length would take more time than to copy 16 bytes too
 * many. So bytes behind the text are copied, too, unless they may be on the next page,
 * which need not be there. Sanitizers would report such reading.
 */
#ifdef __SSE2__
__attribute__((no_sanitize("address", "undefined"))) static inline void
copy_short(char *to, const char *from, size_t len)
{
    if (len == 0)
        return; /* `from` may be anything */
    if (((uintptr_t)from & (PAGE - 1)) > PAGE - SHORT) {
        memcpy(to, from, len);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_loadu_si128((const __m128i *)(const void *)from));
    if (len > 16)
        _mm_storeu_si128((__m128i *)(void *)(to + 16),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + 16)));
}
#else
static inline void
copy_short(char *to, const char *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
}
#endif

void
rec_put_bytes(struct rec_writer *writer, const char *bytes, size_t len)
{
    if (len > BUFFER_SIZE - writer->used) {
        rec_writer_flush(writer);
        /* Long texts bypass the buffer, in pieces that rec_output_write() can take. */
        if (len >= BUFFER_SIZE) {
            add_to_seal(writer, bytes, len);
            for (; len > 1u << 30; bytes += 1u << 30, len -= 1u << 30)
                write_out(writer, bytes, 1u << 30);
            write_out(writer, bytes, len);
            return;
        }
    }
    if (len <= SHORT && writer->used + SHORT <= BUFFER_SIZE)
        copy_short(writer->buffer + writer->used, bytes, len);
    else if (len > 0)
        memcpy(writer->buffer + writer->used, bytes, len);
    writer->used += len;
}

static inline void
put_byte(struct rec_writer *writer, char byte)
{
    if (writer->used == BUFFER_SIZE)
        rec_writer_flush(writer);
    writer->buffer[writer->used++] = byte;
}

static void
put_text(struct rec_writer *writer, const char *text)
{
    rec_put_bytes(writer, text, strlen(text));
}

/* Writes "#end", or a seal of all bytes since the header. */
static void
put_trailer(struct rec_writer *writer)
{
    size_t end = writer->used; /* the trailer itself is not part of the seal */
    char text[REC_SEAL_MAX];
    if (!writer->sealed) {
        put_text(writer, "#end\n");
        return;
    }
    add_to_seal(writer, writer->buffer + writer->summed, end - writer->summed);
    writer->summed = end;
    rec_format_seal(text, &writer->seal);
    put_text(writer, text);
}

/* The first header is written when the writer is opened. When the reader then finds the
 * header of its first stream, `fresh` says that nothing is to be done. Each further
 * header ends the stream before it: concatenated inputs make concatenated outputs. */
void
rec_writer_header(struct rec_writer *writer)
{
    bool fresh = writer->fresh;
    writer->fresh = false;
    if (!writer->provenance || fresh) /* begin_output() has written this header */
        return;
    if (writer->header_written)
        put_trailer(writer); /* another stream follows the one before */
    put_text(writer, REC_HEADER);
    writer->summed = writer->used;
    writer->seal = (struct rec_seal){0, 0};
    writer->header_written = true;
    writer->own_written = false;
}

void
rec_writer_provenance(struct rec_writer *writer, struct rec_str line)
{
    if (!writer->provenance)
        return;
    writer->fresh = false;
    rec_put_bytes(writer, line.ptr, line.len);
    put_byte(writer, '\n');
}

void
rec_writer_begin(struct rec_writer *writer)
{
    if (!writer->provenance || writer->own_written)
        return;
    writer->fresh = false;
    put_text(writer, writer->provenance);
    put_byte(writer, '\n');
    writer->own_written = true;
    rec_put_bytes(writer, writer->held, writer->held_len);
    writer->held_len = 0;
}

/* Keeps a comment that was read before the first record. Lines of provenance may still
 * follow it, and it is written behind all of them and this stage's own line. */
static void
hold(struct rec_writer *writer, struct rec_str line)
{
    size_t need = writer->held_len + line.len + 1;
    if (!rec_grow(&writer->held, &writer->held_room, need, 1, NULL)) {
        writer->failed = ENOMEM;
        return;
    }
    memcpy(writer->held + writer->held_len, line.ptr, line.len);
    writer->held[need - 1] = '\n';
    writer->held_len = need;
}

bool
rec_writer_own(struct rec_writer *writer, const char *own, struct rec_error *err)
{
    char *line = strdup(own);
    if (!line)
        return rec_fail_memory(err);
    free(writer->provenance);
    writer->provenance = line;
    return true;
}

void
rec_writer_next(struct rec_writer *writer, const char *before, const char *own)
{
    rec_writer_header(writer);
    writer->fresh = false;
    put_text(writer, before);
    put_text(writer, own);
    put_byte(writer, '\n');
    writer->own_written = true;
}

/* The output is closed in any case, since it owns a descriptor and a temporary file; it
 * keeps the file only if nothing has failed until then. */
bool
rec_writer_close(struct rec_writer *writer, bool whole, struct rec_error *err)
{
    int late;
    bool ok;
    if (whole) { /* also a stream without a record has this stage's provenance */
        rec_writer_begin(writer);
        if (writer->provenance)
            put_trailer(writer);
    }
    rec_writer_flush(writer);
    late = rec_output_close(writer->output, whole && !writer->failed);
    if (!writer->failed)
        writer->failed = late;
    ok = rec_writer_ok(writer, err);
    free(writer->name);
    free(writer->held);
    free(writer->provenance);
    free(writer);
    return ok;
}

/* ---- records ------------------------------------------------------------- */

/* Comments before the first record are held back until this stage's own provenance is
 * written; a record writes it. */
void
rec_put_line(struct rec_writer *writer, struct rec_str line)
{
    if (!line.ptr)
        return; /* a REC_MARK has no line */
    if (!writer->own_written) {
        if (writer->provenance && (line.len == 0 || *line.ptr == '#')) {
            hold(writer, line);
            return;
        }
        rec_writer_begin(writer);
    }
    rec_put_bytes(writer, line.ptr, line.len);
    put_byte(writer, '\n');
}

void
rec_begin(struct rec_writer *writer, const char *type)
{
    if (!writer->own_written)
        rec_writer_begin(writer);
    for (; *type; type++) /* for a short word this is faster than strlen() and memcpy() */
        put_byte(writer, *type);
}

bool
rec_begin_answer(struct rec_writer *writer, const struct rec_reader *reader,
                 const struct rec *rec, bool (*is_old)(struct rec_str key),
                 struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;
    rec_begin(writer, rec->spec->name);
    for (size_t i = 1; i <= rec->spec->nfields; i++)
        rec_str_field(writer, rec->field[i]);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!is_old(key)) {
            put_byte(writer, '\t');
            rec_put_bytes(writer, key.ptr, key.len);
            put_byte(writer, '=');
            rec_put_bytes(writer, value.ptr, value.len);
        }
    return status == 0;
}

static void
put_long_field(struct rec_writer *writer, struct rec_str s)
{
    put_byte(writer, '\t');
    rec_put_bytes(writer, s.ptr, s.len);
}

void
rec_str_field(struct rec_writer *writer, struct rec_str s)
{
    char *to = writer->buffer + writer->used;
    /* The fast way needs room for the TAB and SHORT bytes: no flush in between. */
    if (s.len > SHORT || writer->used + SHORT >= BUFFER_SIZE) {
        put_long_field(writer, s);
        return;
    }
    writer->used += s.len + 1;
    to[0] = '\t';
    copy_short(to + 1, s.ptr, s.len);
}

void
rec_text_field(struct rec_writer *writer, const char *text)
{
    rec_str_field(writer, rec_str(text));
}

void
rec_num_field(struct rec_writer *writer, double value)
{
    char text[REC_NUM_MAX];
    size_t len = rec_format_num(text, value);
    rec_str_field(writer, (struct rec_str){text, len});
}

enum { DIGITS = 20 /* of 2^64 */ };

/* Writes the digits of an integer so that they end before `end`, and returns them. */
static struct rec_str
format_uint(char *end, uint64_t value)
{
    char *p = end;
    do
        *--p = (char)('0' + value % 10);
    while (value /= 10);
    return (struct rec_str){p, (size_t)(end - p)};
}

void
rec_uint_field(struct rec_writer *writer, uint64_t value)
{
    char text[DIGITS];
    rec_str_field(writer, format_uint(text + DIGITS, value));
}

void
rec_put_uint(struct rec_writer *writer, uint64_t value)
{
    char text[DIGITS];
    struct rec_str digits = format_uint(text + DIGITS, value);
    rec_put_bytes(writer, digits.ptr, digits.len);
}

/* Starts a key=value field; its value follows. */
static void
put_key(struct rec_writer *writer, const char *key)
{
    put_byte(writer, '\t');
    put_text(writer, key);
    put_byte(writer, '=');
}

void
rec_str_key(struct rec_writer *writer, const char *key, struct rec_str value)
{
    put_key(writer, key);
    rec_put_bytes(writer, value.ptr, value.len);
}

void
rec_text_key(struct rec_writer *writer, const char *key, const char *value)
{
    rec_str_key(writer, key, rec_str(value));
}

void
rec_num_key(struct rec_writer *writer, const char *key, double value)
{
    char text[REC_NUM_MAX];
    size_t len = rec_format_num(text, value);
    rec_str_key(writer, key, (struct rec_str){text, len});
}

void
rec_uint_key(struct rec_writer *writer, const char *key, uint64_t value)
{
    char text[DIGITS];
    rec_str_key(writer, key, format_uint(text + DIGITS, value));
}

void
rec_end(struct rec_writer *writer)
{
    put_byte(writer, '\n');
}

void
rec_printf(struct rec_writer *writer, const char *format, ...)
{
    char text[2000];
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        rec_put_bytes(writer, text,
                      (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

uint32_t
rec_crc32(uint32_t crc, const void *bytes, size_t n)
{
    return libdeflate_crc32(crc, bytes, n);
}
