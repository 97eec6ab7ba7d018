/*
 * The reader: makes records of lines (lines.c), and handles what surrounds the records of
 * a stream: header, provenance, trailer. A record's type is looked up as a number of 8
 * bytes.
 */
#include "reader.h"

#include <endian.h>
#include <stdlib.h>

_Static_assert(REC_NTYPES * 4 <= TYPE_SLOTS, "the types crowd their hash table");

/* ---- types --------------------------------------------------------------- */

#define LONG_WORD ((uint64_t)1 << 63)

/*
 * A word as a number: its bytes if there are at most 8, else its first 8 bytes, marked by
 * a bit that no ASCII character has. So the number of a short name says all, and only a
 * long name must be compared. Always reads 8 bytes, so there must be 8: fill_types()
 * copies the names, and lines have READER_PAD bytes behind them.
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
    if (!reader || !(reader->buffer = malloc(READER_BUFFER + READER_PAD))) {
        free(reader);
        rec_fail_memory(err);
        return NULL;
    }
    reader->size = READER_BUFFER;
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
rec_reader_streams(const struct rec_reader *reader)
{
    return reader->streams;
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
    if (!rec_accept(reader, &cut, err))
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
    return reader->headed ? accept_cut(reader, err) : rec_accept(reader, &cut, err);
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
    reader->streams++;
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
                               REC_SAID(word));
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
    rec_sum_up(reader, (size_t)(line.ptr - reader->buffer));
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
    /* Where a header is expected, a line that only begins like one ("#rampip") is a
     * damaged header, which open_stream() refuses. Elsewhere it is a comment. */
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
        if (!rec_close_file(reader, err))
            return -1;
    }
    return rec_next_file(reader, err);
}

/* The loop goes round for each line that is neither a record nor a comment: headers,
 * provenance, cut lines, ends of files. */
int
rec_next(struct rec_reader *reader, struct rec *rec, struct rec_error *err)
{
    for (;;) {
        int status = reader->input ? rec_split_next(reader, &rec->line, true, err) : 0;
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
