/*
 * Lines: reads inputs into the reader's buffer, one file after the other, finds the ends
 * of lines, and splits them into fields.
 *
 * Nothing is copied. Fields are views of one buffer, into which fill() reads; a line is
 * always whole in it, so the buffer grows with the longest line. The caller may not keep
 * a record beyond the next rec_next(), because fill() moves the unread bytes to the
 * front.
 *
 * All tools spend much of their time here. So TABs and LFs are found 64 bytes at a time
 * (with SSE2, part of every x86-64).
 */
#include "reader.h"

#include <libdeflate.h>
#include <stdatomic.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE_MAX_SIZE = 1 << 28 /* bytes: a longer line is an error, not a record */ };

void
rec_sum_up(struct rec_reader *reader, size_t to)
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
        rec_sum_up(reader, reader->start);
        reader->summed = 0;
        memmove(reader->buffer, reader->buffer + reader->start,
                reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->size - reader->end < READER_BUFFER / 4) {
        char *grown;
        if (reader->end > LINE_MAX_SIZE) {
            reader->line++;
            return rec_reader_fail(reader, err, "a line is longer than %d bytes",
                                   LINE_MAX_SIZE);
        }
        grown = realloc(reader->buffer, reader->size * 2 + READER_PAD);
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
    memset(reader->buffer + reader->end, 0, READER_PAD);
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

int
rec_split_next(struct rec_reader *reader, struct rec_str *line, bool split,
               struct rec_error *err)
{
    size_t searched = 0; /* bytes at the front of the line that are known to hold no LF */

    for (;;) {
        char *from = reader->buffer + reader->start;
        char *stop = reader->buffer + reader->end;
        const char *lf;

        if (from == stop && reader->ended)
            return 0;
        *stop = '\n'; /* ends the searches; READER_PAD has room for it */
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

int
rec_next_file(struct rec_reader *reader, struct rec_error *err)
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

bool
rec_accept(struct rec_reader *reader, const struct rec_error *cut, struct rec_error *err)
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

bool
rec_close_file(struct rec_reader *reader, struct rec_error *err)
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
    return reader->line > 0 || rec_accept(reader, &cut, err);
}

int
rec_next_line(struct rec_reader *reader, struct rec_str *line, struct rec_error *err)
{
    for (;;) {
        int status = reader->input ? 1 : rec_next_file(reader, err);
        if (status <= 0)
            return status;
        status = rec_split_next(reader, line, false, err);
        if (status != 0)
            return status;
        if (!rec_close_file(reader, err))
            return -1;
    }
}

int
rec_peek_line(struct rec_reader *reader, struct rec_str *line, struct rec_error *err)
{
    int status = reader->input ? 1 : rec_next_file(reader, err);
    if (status > 0)
        status = rec_split_next(reader, line, false, err);
    if (status > 0) {
        reader->start = (size_t)(line->ptr - reader->buffer);
        reader->line--;
    }
    return status;
}
