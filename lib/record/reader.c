/* The reader: lines, fields without copying, header, provenance, trailer, cut streams. */
#include "private.h"

#include <endian.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    BUFFER_SIZE = 1 << 18,
    PAD = 64,                /* scanning may read so far past the data */
    LINE_MAX_SIZE = 1 << 28, /* a longer line is no record */
    TYPE_SLOTS = 256,        /* a power of two, several times the number of types */
};

_Static_assert(REC_NTYPES * 4 <= TYPE_SLOTS, "the types crowd their hash table");

struct rec_reader {
    const char *const *files;
    size_t nfiles, next_file;
    struct rec_reader_options options;
    const char *own_name; /* of text in memory, or of a descriptor, its only file */
    struct rec_str text;
    int descriptor; /* -1: none */

    struct rec_input *input; /* NULL between files */
    const char *name;
    bool ended;        /* no more bytes in this input */
    uint64_t line;     /* number of the last line returned */
    uint64_t bytes;    /* read from the files before this one */
    uint64_t unpacked; /* of this file, read into the buffer */

    char *buffer;
    size_t size, start, end; /* unread bytes are buffer[start..end) */
    bool patient, waiting;   /* not to wait for bytes; some were not there */
    bool unterminated;       /* the last line ended without LF */
    bool has_nul;            /* there is a NUL byte in the input: look for it */

    struct rec_str *field;
    size_t nfields, field_room;
    uint64_t packed[TYPE_SLOTS]; /* hash table of the known types' names */
    enum rec_type type[TYPE_SLOTS];

    bool headed;          /* inside a stream that opened with #rampipe */
    bool exact;           /* its header is what a writer puts, to the byte */
    bool closed;          /* behind its #end: in this file only a header may follow */
    bool opening;         /* header and provenance may still come */
    struct rec_seal seal; /* since the header, its sum up to buffer[summed] */
    size_t summed;
    char *provenance;
    size_t provenance_len, provenance_room;
};

/* ---- types --------------------------------------------------------------- */

/*
 * A word of at most 8 bytes as a number, 0 for a longer one; no type's name is longer.
 * 8 bytes are read, whatever its length: names have a copy, lines have PAD behind them.
 */
static inline uint64_t
pack_word(struct rec_str word)
{
    uint64_t packed;
    if (word.len == 0 || word.len > 8 || word.ptr[0] == '\0')
        return 0; /* (a leading NUL would look like a shorter word) */
    memcpy(&packed, word.ptr, 8);
    return le64toh(packed) << (64 - 8 * word.len);
}

static inline size_t
type_slot(uint64_t packed)
{
    return (size_t)(packed * 0x9e3779b97f4a7c15u >> 32) % TYPE_SLOTS;
}

static void
fill_types(struct rec_reader *reader)
{
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        const char *name = rec_spec(type)->name;
        char copy[9] = "";
        uint64_t packed;
        size_t slot;
        memcpy(copy, name, strnlen(name, 8));
        packed = pack_word(rec_str(copy));
        slot = type_slot(packed);
        while (reader->type[slot] != REC_OTHER)
            slot = (slot + 1) % TYPE_SLOTS;
        reader->type[slot] = type;
        reader->packed[slot] = packed;
    }
}

/* ---- opening and closing ------------------------------------------------- */

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
    reader->descriptor = -1;
    reader->files = count ? files : standard_input;
    reader->nfiles = count ? count : 1;
    reader->name = rec_input_name(reader->files[0]);
    reader->opening = true;
    fill_types(reader);
    if (options)
        reader->options = *options;
    return reader;
}

struct rec_reader *
rec_reader_open_text(const char *name, struct rec_str text, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(NULL, 0, NULL, err);
    if (!reader)
        return NULL;
    reader->own_name = reader->name = name;
    reader->text = text;
    reader->files = &reader->own_name;
    return reader;
}

struct rec_reader *
rec_reader_open_descriptor(const char *name, int descriptor,
                           const struct rec_reader_options *options,
                           struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(NULL, 0, options, err);
    if (!reader)
        return NULL;
    reader->own_name = reader->name = name;
    reader->descriptor = descriptor;
    reader->files = &reader->own_name;
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

bool
rec_reader_headed(const struct rec_reader *reader)
{
    return reader->headed;
}

uint64_t
rec_reader_bytes(const struct rec_reader *reader)
{
    return reader->bytes + (reader->input ? rec_input_bytes(reader->input) : 0);
}

double
rec_reader_used(const struct rec_reader *reader)
{
    struct rec_input *input = reader->input;
    double unread = (double)reader->end - (double)reader->start;
    double unpacked = (double)reader->unpacked, bytes = (double)reader->bytes;
    if (!input || !(unread >= 0 && unread < unpacked))
        return bytes;
    return bytes + (double)rec_input_taken(input) * ((unpacked - unread) / unpacked);
}

const char *
rec_reader_provenance(const struct rec_reader *reader)
{
    return reader->provenance ? reader->provenance : "";
}

/* ---- lines --------------------------------------------------------------- */

/* Takes the bytes before buffer[to] into the sum that a seal is compared with. */
static void
sum_up(struct rec_reader *reader, size_t to)
{
    if (reader->headed)
        reader->seal.crc = libdeflate_crc32(
            reader->seal.crc, reader->buffer + reader->summed, to - reader->summed);
    reader->summed = to;
}

/* Reads more behind the unread bytes. False: ->waiting for them, or *err. At the end of
 * the file: ->ended. */
static bool
fill(struct rec_reader *reader, struct rec_error *err)
{
    ptrdiff_t n;
    reader->waiting = reader->patient && !rec_input_ready(reader->input);
    if (reader->waiting)
        return false;
    if (reader->start > 0) {
        sum_up(reader, reader->start);
        reader->summed = 0;
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
                       reader->size - reader->end, reader->patient, err);
    reader->waiting = n == REC_INPUT_WAITS;
    if (n < 0)
        return false;
    reader->has_nul =
        reader->has_nul || memchr(reader->buffer + reader->end, '\0', (size_t)n);
    reader->end += (size_t)n;
    reader->unpacked += (uint64_t)n;
    reader->ended = n == 0;
    memset(reader->buffer + reader->end, 0, PAD);
    return true;
}

/* Bit i of the result says that byte i of the 64 at `p` is a TAB or an LF. */
static inline uint64_t
match_marks(const char *p)
{
    uint64_t mask = 0;
#ifdef __SSE2__
    const __m128i tab = _mm_set1_epi8('\t'), one = _mm_set1_epi8('\n' - '\t');
    for (int i = 48; i >= 0; i -= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        bytes = _mm_sub_epi8(bytes, tab); /* now 0 or 1, unsigned */
        bytes = _mm_cmpeq_epi8(_mm_min_epu8(bytes, one), bytes);
        mask = mask << 16 | (unsigned)_mm_movemask_epi8(bytes);
    }
#else
    for (int i = 63; i >= 0; i--)
        mask = mask << 1 | (p[i] == '\t' || p[i] == '\n');
#endif
    return mask;
}

/*
 * Splits the line at `p` into fields up to the LF, which is there: the caller put one
 * behind the data. NULL: out of memory.
 */
static const char *
split_line(struct rec_reader *reader, const char *p, struct rec_error *err)
{
    const char *from = p;
    size_t n = 0;

    for (;; p += 64) {
        uint64_t marks = match_marks(p);
        struct rec_str *field;
        if (reader->field_room - n <= 64 &&
            !rec_grow(&reader->field, &reader->field_room, n + 65, sizeof *field, err))
            return NULL;
        field = reader->field + n;
        for (; marks; marks &= marks - 1) {
            const char *mark = p + __builtin_ctzll(marks);
            *field++ = (struct rec_str){from, (size_t)(mark - from)};
            if (*mark == '\n') {
                reader->nfields = (size_t)(field - reader->field);
                return mark;
            }
            from = mark + 1;
        }
        n = (size_t)(field - reader->field);
    }
}

/*
 * The next line of the current input, without its end. 1, 0 at the end of the input, -1,
 * 2 if it is not there yet and the reader is patient. Fields are split if `split`.
 */
static int
next_line(struct rec_reader *reader, struct rec_str *line, bool split,
          struct rec_error *err)
{
    size_t searched = 0; /* so many bytes of the line are known to hold no LF */

    for (;;) {
        char *from = reader->buffer + reader->start;
        char *stop = reader->buffer + reader->end;
        const char *lf;

        if (from == stop && reader->ended)
            return 0;
        *stop = '\n';
        if (split && searched == 0) /* most often the whole line is there */
            lf = split_line(reader, from, err);
        else
            lf = memchr(from + searched, '\n', (size_t)(stop - from) - searched + 1);
        if (lf == stop && !reader->ended && !reader->has_nul) {
            searched = (size_t)(stop - from);
            if (!fill(reader, err))
                return reader->waiting ? 2 : -1;
            continue;
        }
        if (split && searched > 0)
            lf = split_line(reader, from, err);
        if (!lf)
            return -1;
        reader->unterminated = lf == stop;
        reader->start = (size_t)(lf - reader->buffer) + !reader->unterminated;
        reader->line++;
        if (lf > from && lf[-1] == '\r') {
            lf--;
            if (split)
                reader->field[reader->nfields - 1].len--;
        }
        *line = (struct rec_str){from, (size_t)(lf - from)};
        if (reader->has_nul && memchr(from, '\0', line->len)) {
            rec_reader_fail(reader, err,
                            "a NUL byte stands inside the line: this is no text");
            return -1;
        }
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
    reader->input = reader->text.ptr
                        ? rec_input_open_text(reader->name, reader->text, err)
                    : reader->descriptor >= 0
                        ? rec_input_open_descriptor(reader->name, reader->descriptor, err)
                        : rec_input_open(reader->files[reader->next_file], err);
    reader->next_file++;
    if (!reader->input)
        return -1;
    reader->ended = reader->has_nul = reader->closed = false;
    reader->start = reader->end = reader->summed = 0;
    reader->line = 0;
    return 1;
}

/* The input stopped too early. True if that is to be tolerated. */
static bool
accept(struct rec_reader *reader, const struct rec_error *cut, struct rec_error *err)
{
    if (!reader->options.partial && (reader->headed || !reader->options.log)) {
        if (err)
            *err = *cut;
        return false;
    }
    if (reader->options.warn)
        reader->options.warn(reader->options.context, cut->text);
    return true;
}

/* The end of a file, which no bytes at all are not. */
static bool
close_file(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_input *input = reader->input;
    struct rec_error cut;
    reader->bytes += rec_input_bytes(input);
    reader->input = NULL;
    atomic_signal_fence(memory_order_seq_cst); /* see rec_reader_used() */
    rec_input_close(input);
    reader->unpacked = 0;
    rec_fail(&cut, REC_IO,
             "%s: the stream is cut: there is not one byte (a stage upstream did not "
             "start, or the file is incomplete)",
             reader->name);
    return reader->line > 0 || accept(reader, &cut, err);
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
        if (!close_file(reader, err))
            return -1;
    }
}

int
rec_peek_line(struct rec_reader *reader, struct rec_str *line, struct rec_error *err)
{
    int status = reader->input ? 1 : next_file(reader, err);
    if (status > 0)
        status = next_line(reader, line, false, err);
    if (status > 0) {
        reader->start = (size_t)(line->ptr - reader->buffer);
        reader->line--;
    }
    return status;
}

/* ---- header, provenance, trailer ----------------------------------------- */

/* The stream stopped before its trailer. True if that is to be tolerated. */
static bool
accept_cut(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error cut;
    rec_fail(&cut, REC_IO,
             "%s: the stream is cut after line %llu: it has a #rampipe header but no "
             "#end (a stage upstream failed, or the file is incomplete)",
             reader->name, (unsigned long long)reader->line);
    if (!accept(reader, &cut, err))
        return false;
    reader->headed = false;
    return true;
}

/* The last line has no LF: of a stream it is half a record, of a log it may be. */
static bool
accept_cut_line(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error cut;
    rec_fail(&cut, REC_IO, "%s: the last line was cut, and is dropped", reader->name);
    return reader->headed ? accept_cut(reader, err) : accept(reader, &cut, err);
}

/* Is the line that was read last, with its end, these very bytes? */
static bool
is_line(const struct rec_reader *reader, struct rec_str line, const char *bytes)
{
    const char *next = reader->buffer + reader->start;
    return rec_str_is((struct rec_str){line.ptr, (size_t)(next - line.ptr)}, bytes);
}

static bool
open_stream(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    uint64_t version;
    if (reader->nfields != 2 || !rec_str_is(reader->field[0], "#rampipe") ||
        !rec_parse_uint(reader->field[1], &version))
        return rec_reader_fail(reader, err,
                               "a header is '#rampipe', a TAB and the version");
    if (version != REC_VERSION)
        return rec_reader_fail(
            reader, err,
            "the stream is of version %llu of the format, this program reads version %d",
            (unsigned long long)version, REC_VERSION);
    if (reader->headed && !accept_cut(reader, err))
        return false;
    reader->headed = true;
    reader->exact = is_line(reader, line, REC_HEADER);
    reader->opening = true;
    reader->closed = false;
    reader->seal = (struct rec_seal){0, 0};
    reader->summed = reader->start;
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
    if (!reader->headed || !reader->opening)
        return rec_reader_fail(reader, err,
                               "a #@ line of provenance stands below a #rampipe header, "
                               "before the records");
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
    uint64_t packed = pack_word(word);
    size_t slot = type_slot(packed);

    while (reader->type[slot] != REC_OTHER && reader->packed[slot] != packed)
        slot = (slot + 1) % TYPE_SLOTS;
    rec->type = reader->type[slot];
    rec->spec = rec->type == REC_OTHER ? NULL : rec_find_spec(rec);
    if (rec->type == REC_OTHER && !is_word(word))
        return rec_reader_fail(reader, err,
                               "a record starts with its type, a lower-case word, "
                               "got '%.*s'",
                               (int)(word.len < 40 ? word.len : 40), word.ptr);
    return true;
}

/*
 * True if the last line of the input, which has no LF, may be all that is left of a
 * header: nothing but a part of "#rampipe", or the whole word. (Not a hand-made "#
 * note".)
 */
static bool
is_cut_header(const struct rec_reader *reader, struct rec_str line)
{
    static const char header[] = "#rampipe\t";
    return reader->unterminated && line.len > 0 && line.len < sizeof header &&
           memcmp(line.ptr, header, line.len) == 0;
}

static bool
end_stream(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    struct rec_seal seal;
    bool sealed;
    if (!reader->headed)
        return rec_reader_fail(reader, err,
                               "#end without a #rampipe header before it: the header was "
                               "lost or damaged");
    if (!rec_read_trailer(line, &sealed, &seal))
        return rec_reader_fail(
            reader, err,
            "a trailer is '#end', or sealed: '#end', a TAB, the number "
            "of records, a TAB, the CRC-32 as 8 hexadecimal digits");
    sum_up(reader, (size_t)(line.ptr - reader->buffer));
    if (sealed) {
        char text[REC_SEAL_MAX];
        if (seal.records != reader->seal.records || seal.crc != reader->seal.crc)
            return rec_fail_seal(reader, &seal, &reader->seal, err);
        rec_format_seal(text, &seal);
        if (!reader->exact || !is_line(reader, line, text))
            return rec_fail_sealed_line(reader, reader->exact ? "last" : "first", err);
    }
    reader->headed = false;
    reader->closed = true;
    return true;
}

/* Header lines. 1: the line was one; 2: the trailer; 0: a comment; -1: *err. */
static int
control_line(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    /* what stands in its place and looks like it is a damaged header */
    size_t like = reader->line == 1 || reader->closed ? 5 : 8;
    if (line.len >= like && memcmp(line.ptr, "#rampipe", like) == 0)
        return open_stream(reader, line, err) ? 1 : -1;
    if (line.len >= 2 && memcmp(line.ptr, "#@", 2) == 0)
        return keep_provenance(reader, line, err) ? 1 : -1;
    if (line.len >= 4 && memcmp(line.ptr, "#end", 4) == 0 &&
        (line.len == 4 || line.ptr[4] == '\t'))
        return end_stream(reader, line, err) ? 2 : -1;
    return 0;
}

/* The end of a file, of all files, or a cut. 1: go on; 0: the end; -1: *err. */
static int
end_file(struct rec_reader *reader, struct rec_error *err)
{
    if (reader->input) {
        if (reader->headed && !accept_cut(reader, err))
            return -1;
        if (!close_file(reader, err))
            return -1;
    }
    return next_file(reader, err);
}

int
rec_next(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    for (;;) {
        int status = reader->input ? next_line(reader, &rec->line, true, err) : 0;
        if (status < 0 || status == 2)
            return status;
        if (status == 0) {
            status = end_file(reader, err);
            if (status > 0)
                continue;
            if (status == 0 && reader->options.tie)
                rec_writer_begin(reader->options.tie);
            return status;
        }
        if ((reader->headed || reader->options.log) && reader->unterminated &&
            !rec_is_trailer(rec->line)) {
            if (!accept_cut_line(reader, err))
                return -1;
            continue; /* the half line is dropped, the warning said so */
        }
        if (is_cut_header(reader, rec->line)) {
            reader->headed = true;
            continue; /* to the end of the file, which is a cut */
        }
        rec->field = reader->field;
        rec->nfields = reader->nfields;
        rec->type = REC_COMMENT;
        rec->spec = NULL;
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
        } else if (rec->line.len > 0) {
            if (!find_type(reader, rec, err) || !rec_check_extra(reader, rec, err))
                return -1;
            if (reader->closed) {
                rec_reader_fail(reader, err,
                                "a record between #end and the next #rampipe header");
                return -1;
            }
            reader->seal.records++;
        }
        if (reader->opening) {
            reader->opening = rec->type == REC_COMMENT; /* #@ lines may still come */
            if (reader->options.tie && !(reader->opening && reader->headed))
                rec_writer_begin(reader->options.tie);
        }
        return 1;
    }
}

int
rec_try_next(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    int status;
    reader->patient = true;
    status = rec_next(reader, rec, err);
    reader->patient = false;
    return status;
}

int
rec_reader_descriptor(const struct rec_reader *reader)
{
    return reader->input ? rec_input_fd(reader->input) : -1;
}
