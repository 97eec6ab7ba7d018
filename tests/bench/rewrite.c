/* rewrite FILE - reads records, splits them and writes them field by field. */
#include "rampipe/record.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "-";
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(&name, 1, NULL, &err);
    struct rec_writer *writer = rec_writer_open(NULL, NULL, &err);
    struct rec rec;
    char type[64];
    int status;

    if (!reader || !writer)
        return 1;
    while ((status = rec_next(reader, &rec, &err)) > 0) {
        size_t n = rec.field[0].len < sizeof type ? rec.field[0].len : sizeof type - 1;
        memcpy(type, rec.field[0].ptr, n);
        type[n] = '\0';
        rec_begin(writer, type);
        for (size_t i = 1; i < rec.nfields; i++)
            rec_str_field(writer, rec.field[i]);
        rec_end(writer);
    }
    rec_reader_close(reader);
    if (!rec_writer_close(writer, status == 0, &err) || status < 0) {
        fprintf(stderr, "rewrite: %s\n", err.text);
        return 1;
    }
    return 0;
}
