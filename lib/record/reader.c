/*
 * The reader: splits inputs into lines and fields, and handles what surrounds the records
 * of a stream: header, provenance, trailer.
 *
 * Nothing is copied. Fields are views of one buffer, into which fill() reads; a line is
 * always whole in it, so the buffer grows with the longest line. The caller may not keep
 * a record beyond the next rec_next(), because fill() moves the unread bytes to the
 * front.
 *
 * All tools spend much of their time here. So TABs and LFs are found 64 bytes at a time
 * (with SSE2, part of every x86-64), and a record's type is looked up as a number of 8
 * bytes.
 */
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
    BUFFER_SIZE = 1 << 18,   /* bytes, at the beginning */
    PAD = 64,                /* bytes behind the data that scanning may read */
    LINE_MAX_SIZE = 1 << 28, /* bytes: a longer line is an error, not a record */
    TYPE_SLOTS = 256,        /* a power of two, several times the number of types */
};

_Static_assert(REC_NTYPES * 4 <= TYPE_SLOTS, "the types crowd their hash table");

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
    struct rec_seal seal; /* of the bytes since the header, up to buffer[summed] */
    size_t summed;
    char *provenance;
    size_t provenance_len, provenance_room;
};

/* ---- types --------------------------------------------------------------- */

#define LONG_WORD ((uint64_t)1 << 63)

/*
 * A word as a number: its bytes if there are at most 8, else its first 8 bytes, marked by
 * a bit that no ASCII character has. So the number of a short name says all, and only a
 * long name must be compared. Always reads 8 bytes, so there must be 8: fill_types()
 * copies the names, and lines have PAD bytes behind them.
 */
static inline uint64_t
pack_word(struct rec_str word)
{
    uint64_t packed;
    if (word.len == 0 || word.ptr[0] == '\0')
        return 0; /* (a word with leading NULs would have the number of a shorter word) */
    memcpy(&packed, word.ptr, 8);
    return word.len > 8 ? le64toh(packed) | LONG_WORD
                        : le64toh(packed) << (64 - 8 * word.len);
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
        packed = pack_word((struct rec_str){copy, strlen(name)});
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

/* A signal handler calls this between any two instructions of the reader, so the numbers
 * need not fit together. Then the share of the current file is left out. */
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

/* Adds the bytes before buffer[to] to the CRC-32 that a seal is compared with. Streams
 * without a seal are summed, too, since the seal is the last line. */
static void
sum_up(struct rec_reader *reader, size_t to)
{
    if (reader->headed)
        reader->seal.crc = libdeflate_crc32(
            reader->seal.crc, reader->buffer + reader->summed, to - reader->summed);
    reader->summed = to;
}

/* Reads more bytes behind the unread ones, and sets ->ended at the end of the file.
 * False: ->waiting if the bytes have not arrived yet, otherwise *err. */
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
    /* Before this stage waits for input, the next one gets all that was written so
     * far. */
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

#ifdef __SSE2__
/* The same for the 16 bytes at `p`. */
static inline uint64_t
match_16(const char *p)
{
    const __m128i tab = _mm_set1_epi8('\t'), one = _mm_set1_epi8('\n' - '\t');
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    bytes = _mm_sub_epi8(bytes, tab); /* now 0 or 1, unsigned */
    bytes = _mm_cmpeq_epi8(_mm_min_epu8(bytes, one), bytes);
    return (unsigned)_mm_movemask_epi8(bytes);
}
#endif

/* Bit i of the result says that byte i of the 64 at `p` is a TAB or an LF. */
static inline uint64_t
match_marks(const char *p)
{
#ifdef __SSE2__
    return match_16(p) | match_16(p + 16) << 16 | match_16(p + 32) << 32 |
           match_16(p + 48) << 48;
#else
    uint64_t mask = 0;
    for (int i = 63; i >= 0; i--)
        mask = mask << 1 | (p[i] == '\t' || p[i] == '\n');
    return mask;
#endif
}

/*
 * Splits the line at `p` into fields, and returns its LF. There always is one, since the
 * caller has put one behind the data. NULL: out of memory.
 */
static const char *
split_line(struct rec_reader *reader, const char *p, struct rec_error *err)
{
    const char *from = p;
    size_t n = 0;

    for (;; p += 64) {
        uint64_t marks = match_marks(p);
        struct rec_str *field;
        /* 64 bytes end at most 64 fields: with room for them, the loop needs no
         * checks. */
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
 * Reads the next line of the current input, without its end, and splits it into fields if
 * `split`. 1; 0: the end of the input; -1: *err; 2: the reader is patient and the line
 * has not arrived yet.
 */
static int
next_line(struct rec_reader *reader, struct rec_str *line, bool split,
          struct rec_error *err)
{
    size_t searched = 0; /* bytes at the front of the line that are known to hold no LF */

    for (;;) {
        char *from = reader->buffer + reader->start;
        char *stop = reader->buffer + reader->end;
        const char *lf;

        if (from == stop && reader->ended)
            return 0;
        *stop = '\n'; /* ends the searches; PAD has room for it */
        /* Most often the whole line is in the buffer, so it is split at once. If it is
         * not, more is read, and the new bytes are searched for the LF before the line is
         * split again. */
        if (split && searched == 0)
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
                            "a NUL byte stands inside the line: the input is not text");
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

/* Called when the input stopped too early; `cut` is the message. If the reader's options
 * tolerate that, warns and returns true. Otherwise *err is *cut. */
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

/* Closes the current file at its end. False, *err: the file has not a single byte. That
 * is what a stage upstream leaves that did not start, so it is not a valid input. */
static bool
close_file(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_input *input = reader->input;
    struct rec_error cut;
    reader->bytes += rec_input_bytes(input);
    reader->input = NULL;
    /* A signal handler in rec_reader_used() must not see an input that is freed. */
    atomic_signal_fence(memory_order_seq_cst);
    rec_input_close(input);
    reader->unpacked = 0;
    rec_fail(&cut, REC_IO,
             "%s: the stream is cut: it has no bytes (a stage upstream did not "
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

/* Called when a stream stopped before its trailer. True if that is tolerated. */
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

/* Called when the last line has no LF. In a stream with a header that means that the
 * stream was cut. In a log, another program may still be writing the line: it is dropped.
 * True if that is tolerated. */
static bool
accept_cut_line(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error cut;
    rec_fail(&cut, REC_IO, "%s: the last line was cut, and is dropped", reader->name);
    return reader->headed ? accept_cut(reader, err) : accept(reader, &cut, err);
}

/* Is the line that was read last, its end included, equal to `bytes`? */
static bool
is_line(const struct rec_reader *reader, struct rec_str line, const char *bytes)
{
    const char *next = reader->buffer + reader->start;
    return rec_str_is((struct rec_str){line.ptr, (size_t)(next - line.ptr)}, bytes);
}

/* Handles a #rampipe header: begins a stream, whose seal and provenance start empty. */
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

/* Handles a #@ line: keeps it for rec_reader_provenance() and forwards it. */
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

static inline bool
is_type(const struct rec_reader *reader, size_t slot, uint64_t packed,
        struct rec_str word)
{
    return reader->packed[slot] == packed &&
           (!(packed & LONG_WORD) ||
            rec_str_is(word, rec_spec(reader->type[slot])->name));
}

/* Finds the type of a record and the row that describes it. An unknown type must at least
 * be a word: anything else shows that the input is no record stream. */
static bool
find_type(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    struct rec_str word = rec->field[0];
    uint64_t packed = pack_word(word);
    size_t slot = type_slot(packed);

    while (reader->type[slot] != REC_OTHER && !is_type(reader, slot, packed, word))
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
 * True if the input ends without LF in a line that is the beginning of a header: then the
 * header itself was cut. (A hand-made "# note" is a comment.)
 */
static bool
is_cut_header(const struct rec_reader *reader, struct rec_str line)
{
    static const char header[] = "#rampipe\t";
    return reader->unterminated && line.len > 0 && line.len < sizeof header &&
           memcmp(line.ptr, header, line.len) == 0;
}

/* Handles the trailer. A seal must match the stream: the number of records, the CRC-32 of
 * the bytes between header and trailer, and the exact bytes of these two lines, which the
 * CRC-32 does not cover. */
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

/* Handles a line that begins with '#'. 1: a header or provenance; 2: the trailer; 0: a
 * comment; -1: *err. */
static int
control_line(struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    /* Where a header is expected, a line that only begins like one ("#ramp") is a damaged
     * header, which open_stream() refuses. Elsewhere it is a comment. */
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

/* Ends the current file, if one is open, and opens the next. 1: there is one; 0: there
 * are no more files; -1: *err, for example because the stream in the file was cut. */
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

/* The loop goes round for each line that is neither a record nor a comment: headers,
 * provenance, cut lines, ends of files. */
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
            continue; /* the half line is dropped, as the warning has said */
        }
        if (is_cut_header(reader, rec->line)) {
            reader->headed = true;
            continue; /* the end of the file follows, and end_file() reports the cut */
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
