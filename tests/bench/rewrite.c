/*
 * rewrite [FILE] - reads records, splits them and writes every field anew: what a filter
 * that changes one field of each record pays. Measured by tests/bench/passthrough.
 */
#include "rampipe/record.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open(NULL, "#@\trewrite 1\trewrite", &err);
    struct rec_reader_options options = {.tie = writer};
    struct rec_reader *reader;
    struct rec rec;
    int status = -1;

    if (!writer)
        goto failed;
    reader = rec_reader_open((const char *const *)argv + 1, (size_t)(argc - 1), &options,
                             &err);
    if (!reader)
        goto failed;
    while ((status = rec_next(reader, &rec, &err)) > 0) {
        if (!rec_spec(rec.type)) { /* a comment or a mark */
            rec_put_line(writer, rec.line);
            continue;
        }
        rec_begin(writer, rec_spec(rec.type)->name);
        for (size_t i = 1; i < rec.nfields; i++)
            rec_str_field(writer, rec.field[i]);
        rec_end(writer);
    }
    rec_reader_close(reader);
    if (status == 0 && rec_writer_close(writer, true, &err))
        return 0;
failed:
    fprintf(stderr, "rewrite: %s\n", err.text);
    return (int)err.code;
}
