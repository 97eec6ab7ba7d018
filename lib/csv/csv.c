/*
 * Reads foreign CSV with libcsv. libcsv does not count lines, so it gets one line at a
 * time: each row then knows the line on which it starts, also if a quoted field spans
 * several lines.
 */
#include "rampipe/csv.h"

#include <csv.h>
#include <stdlib.h>

struct csv_source {
    struct rec_reader *reader; /* borrowed */
    struct csv_parser parser;
    char *text; /* the fields of the row, each with its NUL */
    size_t ntext, text_room;
    size_t *end; /* where each field ends in text: the offset behind its NUL */
    size_t nfields, end_room;
    struct rec_str *field; /* views of text, made when the row is complete */
    size_t field_room;
    const char *file; /* the file and the line where the row starts */
    uint64_t line;
    bool row_ended;        /* libcsv has seen the end of the row */
    bool open;             /* at least one line of the row was read */
    struct rec_error *err; /* for the callbacks */
    bool failed;           /* a callback has filled *err */
};

struct csv_source *
csv_source_new(struct rec_reader *reader, struct rec_error *err)
{
    struct csv_source *source = calloc(1, sizeof *source);
    const unsigned char strict =
        CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL | CSV_APPEND_NULL;

    if (!source || csv_init(&source->parser, strict) != 0) {
        rec_fail_memory(err);
        free(source);
        return NULL;
    }
    source->reader = reader;
    return source;
}

void
csv_source_free(struct csv_source *source)
{
    if (!source)
        return;
    csv_free(&source->parser);
    free(source->text);
    free(source->end);
    free(source->field);
    free(source);
}

/* libcsv's callback for a field. `text` may move when it grows, so offsets are kept, not
 * pointers. */
static void
take_field(void *bytes, size_t len, void *context)
{
    struct csv_source *source = context;
    if (source->failed ||
        !rec_grow(&source->text, &source->text_room, source->ntext + len + 1, 1,
                  source->err) ||
        !rec_grow(&source->end, &source->end_room, source->nfields + 1,
                  sizeof *source->end, source->err)) {
        source->failed = true;
        return;
    }
    if (len > 0)
        memcpy(source->text + source->ntext, bytes, len);
    source->ntext += len;
    source->text[source->ntext++] = '\0';
    source->end[source->nfields++] = source->ntext;
}

/* libcsv's callback for the end of a row. */
static void
take_row(int mark, void *context)
{
    struct csv_source *source = context;
    (void)mark;
    source->row_ended = true;
}

static bool
parse(struct csv_source *source, const char *bytes, size_t len, struct rec_error *err)
{
    if (csv_parse(&source->parser, bytes, len, take_field, take_row, source) == len)
        return !source->failed;
    if (source->failed)
        return false;
    if (csv_error(&source->parser) == CSV_EPARSE)
        return rec_fail_at(err, source->file, source->line,
                           "this is no CSV: a quote stands inside a field that is not "
                           "quoted, or behind the end of one that is");
    return rec_fail_memory(err);
}

static bool
is_blank(struct rec_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t')
            return false;
    return true;
}

/* Gives one line to libcsv, with an LF. Numbers of lines start again with each file: if
 * the number has not grown, the row began in the file before, with a quote that was never
 * closed. */
static bool
feed(struct csv_source *source, struct rec_str line, struct rec_error *err)
{
    uint64_t number = rec_reader_line(source->reader);
    if (!source->open) {
        source->file = rec_reader_file(source->reader);
        source->line = number;
    } else if (number <= source->line)
        return rec_fail_at(err, source->file, source->line, "a quoted field never ends");
    if (number == 1 && line.len >= 3 && memcmp(line.ptr, "\xef\xbb\xbf", 3) == 0) {
        /* the byte order mark, U+FEFF, that spreadsheets write */
        line.ptr += 3;
        line.len -= 3;
    }
    source->open = true;
    /* libcsv would take a CR for the end of a row: two rows would come of one line. */
    if (memchr(line.ptr, '\r', line.len))
        return rec_fail_at(err, source->file, source->line, "a CR stands inside a line");
    return parse(source, line.ptr, line.len, err) && parse(source, "\n", 1, err);
}

int
csv_source_next(struct csv_source *source, struct csv_row *row, struct rec_error *err)
{
    struct rec_str line;
    int status;

    source->err = err;
    source->ntext = source->nfields = 0;
    source->row_ended = source->open = false;
    while (!source->row_ended) {
        status = rec_next_line(source->reader, &line, err);
        if (status < 0 || (status == 0 && !source->open))
            return status;
        if (status == 0) {
            rec_fail_at(err, source->file, source->line, "a quoted field never ends");
            return -1;
        }
        if (!source->open && is_blank(line))
            continue;
        if (!feed(source, line, err))
            return -1;
    }
    if (!rec_grow(&source->field, &source->field_room, source->nfields,
                  sizeof *source->field, err))
        return -1;
    for (size_t i = 0, from = 0; i < source->nfields; from = source->end[i++])
        source->field[i] =
            (struct rec_str){source->text + from, source->end[i] - 1 - from};
    *row = (struct csv_row){source->field, source->nfields, source->line};
    return 1;
}
