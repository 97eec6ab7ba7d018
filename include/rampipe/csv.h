/*
 * rampipe/csv.h - foreign CSV, row by row, with the line each row starts on.
 *
 * RFC 4180 as libcsv reads it, strictly: a quote inside an unquoted field, or a quoted
 * field that never ends, is an error. Blank lines are skipped, blanks around a field are
 * dropped, a byte order mark is ignored, lines may end in CRLF. libcsv is known here and
 * nowhere else.
 */
#ifndef RAMPIPE_CSV_H
#define RAMPIPE_CSV_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct csv_source;

/** A row, valid until the next csv_source_next(). Fields are NUL-terminated too. */
struct csv_row {
    const struct rec_str *field;
    size_t nfields;
    uint64_t line; /* the line on which the row starts, from 1 */
};

/** Opens a source of the rows of a reader's files, one file after the other. The caller
 * keeps `reader`. NULL: out of memory, *err is filled. */
struct csv_source *csv_source_new(struct rec_reader *reader,
                                  struct rec_error *err) REC_MUST_CHECK;
/** Reads the next row. 1: *row is filled; 0: the end of all files; -1: *err is filled,
 * with file and line. */
int csv_source_next(struct csv_source *source, struct csv_row *row,
                    struct rec_error *err) REC_MUST_CHECK;
void csv_source_free(struct csv_source *source);

REC_END_DECLS

#endif
