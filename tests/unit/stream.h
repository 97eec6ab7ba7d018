/* Streams in files: reading a whole one, filtering it, compressing it. */
#ifndef RAMPIPE_TEST_STREAM_H
#define RAMPIPE_TEST_STREAM_H

#include "unit.h"

#include <zlib.h>

#define OWN "#@\tme 1\tme"

/* What reading a stream gave: the records as text, and how it ended. */
struct result {
    int status; /* of the last rec_next(): 0 or -1 */
    struct rec_error err;
    size_t records, comments, marks;
    size_t fields; /* of the last record */
    char *provenance;
    char warning[400];
};

__attribute__((unused)) static void
keep_warning(void *context, const char *text)
{
    struct result *result = context;
    snprintf(result->warning, sizeof result->warning, "%s", text);
}

/* Reads files to the end; with `out`, filters them to that file. */
__attribute__((unused)) static struct result
read_files(const char *const *files, size_t count, bool partial, const char *out)
{
    struct result result = {0};
    struct rec_writer *writer = NULL;
    struct rec_reader *reader;
    struct rec rec;

    if (out) {
        writer = rec_writer_open(out, OWN, &result.err);
        assert_non_null(writer);
    }
    struct rec_reader_options options = {
        .partial = partial, .tie = writer, .warn = keep_warning, .context = &result};
    reader = rec_reader_open(files, count, &options, &result.err);
    assert_non_null(reader);
    while ((result.status = rec_next(reader, &rec, &result.err)) > 0) {
        result.records += rec.type != REC_COMMENT && rec.type != REC_MARK;
        result.comments += rec.type == REC_COMMENT;
        result.marks += rec.type == REC_MARK;
        result.fields = rec.nfields;
        /* The fields are views of the line, one TAB apart. */
        const char *p = rec.line.ptr;
        for (size_t i = 0; i < rec.nfields; i++) {
            assert_ptr_equal(rec.field[i].ptr, p);
            p += rec.field[i].len + 1;
        }
        if (rec.nfields)
            assert_ptr_equal(p, rec.line.ptr + rec.line.len + 1);
        if (writer)
            rec_put_line(writer, rec.line);
    }
    result.provenance = strdup(rec_reader_provenance(reader));
    rec_reader_close(reader);
    if (writer) {
        struct rec_error late;
        assert_true(rec_writer_close(writer, result.status == 0, &late));
    }
    return result;
}

__attribute__((unused)) static struct result
read_bytes(const void *bytes, size_t len)
{
    static const char *const file[] = {"in"};
    struct result result;
    write_file("in", bytes, len);
    result = read_files(file, 1, false, NULL);
    free(result.provenance);
    result.provenance = NULL;
    return result;
}

__attribute__((unused)) static struct result
read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

/* The bytes that a filter makes of `text`; free() them. */
__attribute__((unused)) static char *
filter_text(const char *text, size_t len)
{
    static const char *const file[] = {"in"};
    struct result result;
    write_file("in", text, len);
    result = read_files(file, 1, false, "out");
    if (result.status != 0)
        fail_msg("%s", result.err.text);
    free(result.provenance);
    return read_file("out", NULL);
}

__attribute__((unused)) static void
expect_filtered(const char *text, const char *want)
{
    char *got = filter_text(text, strlen(text));
    assert_string_equal(got, want);
    free(got);
}

/* One gzip member; free() it. */
__attribute__((unused)) static unsigned char *
gzip(const void *bytes, size_t len, size_t *out_len)
{
    z_stream z = {0};
    size_t room = len + len / 100 + 100;
    unsigned char *out = malloc(room);
    assert_non_null(out);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)len;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_len = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

#endif
