/* The reader: lines, fields without copying, header, provenance, trailer, cut streams. */
#include "private.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    BUFFER_SIZE = 1 << 18,
    PAD = 32,                /* scanning may read so far past the data */
    LINE_MAX_SIZE = 1 << 28, /* a longer line is no record */
};

struct rec_reader {
    const char *const *files;
    size_t nfiles, next_file;
    struct rec_reader_options options;

    struct rec_input *input; /* NULL between files */
    const char *name;
    bool ended;    /* no more bytes in this input */
    uint64_t line; /* number of the last line returned */
    uint64_t bytes;

    char *buffer;
    size_t size, start, end; /* unread bytes are buffer[start..end) */
    bool unterminated;       /* the last line ended without LF */

    struct rec_str *field;
    size_t nfields, field_room;
    enum rec_type last_type; /* records of one type come in runs */
    struct rec_str last_word;

    bool headed;  /* inside a stream that opened with #rampipe */
    bool opening; /* header and provenance may still come */
    char *provenance;
    size_t provenance_len, provenance_room;
};

static const char *const standard_input[] = {"-"};

struct rec_reader *
rec_reader_open(const char *const *files, size_t count,
                const struct rec_reader_options *options, struct rec_error *err)
{
    struct rec_reader *reader = calloc(1, sizeof *reader);
    if (!reader || !(reader->buffer = malloc(BUFFER_SIZE + PAD))) {
        free(reader);
        rec_fail_memory(err);
        return NULL;
    }
    reader->size = BUFFER_SIZE;
    reader->files = count ? files : standard_input;
    reader->nfiles = count ? count : 1;
    reader->name = rec_input_name(reader->files[0]);
    reader->opening = true;
    reader->last_word = rec_str("");
    if (options)
        reader->options = *options;
    return reader;
}

void
rec_reader_close(struct rec_reader *reader)
{
    if (!reader)
        return;
    rec_input_close(reader->input);
    free(reader->buffer);
    free(reader->field);
    free(reader->provenance);
    free(reader);
}

const char *
rec_reader_file(const struct rec_reader *reader)
{
    return reader->name;
}

uint64_t
rec_reader_line(const struct rec_reader *reader)
{
    return reader->line;
}

uint64_t
rec_reader_bytes(const struct rec_reader *reader)
{
    return reader->bytes;
}

const char *
rec_reader_provenance(const struct rec_reader *reader)
{
    return reader->provenance ? reader->provenance : "";
}

/* ---- lines ------------------------------------------------------------------------ */

/* Reads more behind the unread bytes. False: *err. At the end of the file: ->ended. */
static bool
fill(struct rec_reader *reader, struct rec_error *err)
{
    ptrdiff_t n;
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start,
                reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->size - reader->end < BUFFER_SIZE / 4) {
        char *grown;
        if (reader->end > LINE_MAX_SIZE) {
            reader->line++;
            return rec_reader_fail(reader, err, "a line is longer than %d bytes",
                                   LINE_MAX_SIZE);
        }
        grown = realloc(reader->buffer, reader->size * 2 + PAD);
        if (!grown)
            return rec_fail_memory(err);
        reader->buffer = grown;
        reader->size *= 2;
    }
    /* What was computed so far is shown before waiting for more. */
    if (reader->options.tie && rec_input_may_block(reader->input))
        rec_writer_flush(reader->options.tie);
    n = rec_input_read(reader->input, reader->buffer + reader->end,
                       reader->size - reader->end, err);
    if (n < 0)
        return false;
    reader->end += (size_t)n;
    reader->bytes += (uint64_t)n;
    reader->ended = n == 0;
    return true;
}

enum { BLOCK = 16 };

/* Where the next BLOCK bytes have a TAB or LF, a bit each. */
static inline unsigned
find_marks(const char *p)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i tabs = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    __m128i ends = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(tabs, ends));
#else
    unsigned marks = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        marks |= (unsigned)(p[i] == '\t' || p[i] == '\n') << i;
    return marks;
#endif
}

/*
 * Splits the line at `p` into fields up to the LF, which is there: the caller put one
 * behind the data. NULL: out of memory.
 */
static const char *
split_line(struct rec_reader *reader, const char *p, struct rec_error *err)
{
    struct rec_str *field = reader->field;
    const char *from = p;
    size_t n = 0;

    for (;; p += BLOCK) {
        if (n + BLOCK > reader->field_room) { /* a block has no more than so many */
            if (!rec_grow(&reader->field, &reader->field_room, n + BLOCK,
                          sizeof *reader->field, err))
                return NULL;
            field = reader->field;
        }
        for (unsigned marks = find_marks(p); marks; marks &= marks - 1) {
            const char *mark = p + __builtin_ctz(marks);
            field[n++] = (struct rec_str){from, (size_t)(mark - from)};
            if (*mark == '\n') {
                reader->nfields = n;
                return mark;
            }
            from = mark + 1;
        }
    }
}

/* The next line of the current input. 1, 0 at its end, -1. Fields are split if `split`.
 */
static int
next_line(struct rec_reader *reader, struct rec_str *line, bool split,
          struct rec_error *err)
{
    for (;;) {
        char *from = reader->buffer + reader->start;
        char *stop = reader->buffer + reader->end;
        const char *lf = NULL;

        if (reader->start < reader->end || reader->ended) {
            if (reader->start == reader->end)
                return 0;
            *stop = '\n';
            if (split)
                lf = split_line(reader, from, err);
            else
                lf = memchr(from, '\n', (size_t)(stop - from) + 1);
            if (!lf)
                return -1;
        }
        if (!lf || (lf == stop && !reader->ended)) {
            if (!fill(reader, err))
                return -1;
            continue;
        }
        reader->unterminated = lf == stop;
        reader->start = (size_t)(lf - reader->buffer) + !reader->unterminated;
        reader->line++;
        if (lf > from && lf[-1] == '\r') {
            lf--;
            if (split)
                reader->field[reader->nfields - 1].len--;
        }
        *line = (struct rec_str){from, (size_t)(lf - from)};
        return 1;
    }
}

/* Opens the next file. 1; 0: there is none; -1: *err. */
static int
next_file(struct rec_reader *reader, struct rec_error *err)
{
    if (reader->next_file == reader->nfiles)
        return 0;
    reader->name = rec_input_name(reader->files[reader->next_file]);
    reader->input = rec_input_open(reader->files[reader->next_file++], err);
    if (!reader->input)
        return -1;
    reader->ended = false;
    reader->start = reader->end = 0;
    reader->line = 0;
    return 1;
}

int
rec_next_line(struct rec_reader *reader, struct rec_str *line, struct rec_error *err)
{
    for (;;) {
        int status = reader->input ? 1 : next_file(reader, err);
        if (status <= 0)
            return status;
        status = next_line(reader, line, false, err);
        if (status != 0)
            return status;
        rec_input_close(reader->input);
        reader->input = NULL;
    }
}

/* ---- header, provenance, trailer --------------------------------------------------- */

/* The stream stopped before its trailer. True if that is to be tolerated. */
static bool
accept_cut(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error cut;
    rec_fail(&cut, REC_IO,
             "%s: the stream is cut after line %llu: it has a #rampipe header but no "
             "#end (a stage upstream failed, or the file is incomplete)",
             reader->name, (unsigned long long)reader->line);
    reader->headed = false;
    if (!reader->options.partial) {
        if (err)
            *err = cut;
        return false;
    }
    if (reader->options.warn)
        reader->options.warn(reader->options.context, cut.text);
    return true;
}

static bool
open_stream(struct rec_reader *reader, struct rec_error *err)
{
    uint64_t version;
    if (reader->nfields != 2 || !rec_parse_uint(reader->field[1], &version))
        return rec_reader_fail(reader, err,
                               "a header is '#rampipe', a TAB and the version");
    if (version != REC_VERSION)
        return rec_reader_fail(
            reader, err,
            "the stream is of version %llu of the format, this program "
            "reads version %d",
            (unsigned long long)version, REC_VERSION);
    if (reader->headed && !accept_cut(reader, err))
        return false;
    reader->headed = true;
    reader->opening = true;
    reader->provenance_len = 0;
    if (reader->provenance)
        reader->provenance[0] = '\0';
    if (reader->options.tie)
        rec_writer_header(reader->options.tie);
    return true;
}

static bool
keep_provenance(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    if (!rec_grow(&reader->provenance, &reader->provenance_room,
                  reader->provenance_len + line.len + 2, 1, err))
        return false;
    memcpy(reader->provenance + reader->provenance_len, line.ptr, line.len);
    reader->provenance_len += line.len;
    memcpy(reader->provenance + reader->provenance_len++, "\n", 2);
    if (reader->options.tie)
        rec_writer_provenance(reader->options.tie, line);
    return true;
}

static bool
is_word(struct rec_str s)
{
    if (s.len == 0 || s.ptr[0] < 'a' || s.ptr[0] > 'z')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return true;
}

static bool
find_type(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    struct rec_str word = rec->field[0];

    if (word.len != reader->last_word.len ||
        memcmp(word.ptr, reader->last_word.ptr, word.len) != 0) {
        enum rec_type type = REC_MARK + 1;
        while (type < REC_NTYPES && !rec_str_is(word, rec_spec(type)->name))
            type++;
        reader->last_type = type < REC_NTYPES ? type : REC_OTHER;
        reader->last_word =
            type < REC_NTYPES ? rec_str(rec_spec(type)->name) : (struct rec_str){"", 0};
        if (type == REC_NTYPES && !is_word(word))
            return rec_reader_fail(reader, err,
                                   "a record starts with its type, a lower-case word, "
                                   "got '%.*s'",
                                   (int)(word.len < 40 ? word.len : 40), word.ptr);
    }
    rec->type = reader->last_type;
    return true;
}

/* Header lines. 1: the line was one; 2: the trailer; 0: a comment; -1: *err. */
static int
control_line(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    if (line.len >= 8 && memcmp(line.ptr, "#rampipe", 8) == 0)
        return open_stream(reader, err) ? 1 : -1;
    if (line.len >= 2 && memcmp(line.ptr, "#@", 2) == 0)
        return keep_provenance(reader, line, err) ? 1 : -1;
    if (rec_str_is(line, "#end")) {
        reader->headed = false;
        return 2;
    }
    return 0;
}

/* The end of a file, of all files, or a cut. 1: go on; 0: the end; -1: *err. */
static int
end_file(struct rec_reader *reader, struct rec_error *err)
{
    if (reader->input) {
        if (reader->headed && !accept_cut(reader, err))
            return -1;
        rec_input_close(reader->input);
        reader->input = NULL;
    }
    return next_file(reader, err);
}

int
rec_next(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    for (;;) {
        int status = reader->input ? next_line(reader, &rec->line, true, err) : 0;
        if (status < 0)
            return -1;
        if (status == 0) {
            status = end_file(reader, err);
            if (status > 0)
                continue;
            if (status == 0 && reader->options.tie)
                rec_writer_begin(reader->options.tie);
            return status;
        }
        if (reader->headed && reader->unterminated && !rec_str_is(rec->line, "#end")) {
            if (!accept_cut(reader, err))
                return -1;
            continue; /* the half line is dropped, the warning said so */
        }
        rec->field = reader->field;
        rec->nfields = reader->nfields;
        rec->type = REC_COMMENT;
        if (rec->line.len > 0 && rec->line.ptr[0] == '#') {
            status = control_line(reader, rec->line, err);
            if (status < 0)
                return -1;
            if (status == 1)
                continue;
            if (status == 2) {
                rec->type = REC_MARK;
                rec->line = (struct rec_str){NULL, 0};
                rec->nfields = 0;
            }
        } else if (rec->line.len > 0 && !find_type(reader, rec, err))
            return -1;
        if (reader->opening) {
            reader->opening = false;
            if (reader->options.tie)
                rec_writer_begin(reader->options.tie);
        }
        return 1;
    }
}
