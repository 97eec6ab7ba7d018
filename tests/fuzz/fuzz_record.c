/* Any bytes as a stream: read, checked, written; what was written reads back the same. */
#include "fuzz.h"

#include "rampipe/alloc.h"

/* Passes a stream through; the number of records, or -1 for an error. */
static long
pass(const char *from, const char *to, bool partial, struct rec_error *err)
{
    struct rec_writer *writer = rec_writer_open(to, "#@\tfuzz 1\tfuzz", err);
    struct rec_reader_options options = {.partial = partial, .tie = writer};
    struct rec_reader *reader = rec_reader_open(&from, 1, &options, err);
    struct rec rec;
    long n = 0;
    int status;

    if (!writer || !reader)
        abort();
    while ((status = rec_next(reader, &rec, err)) > 0) {
        struct rec_error wrong;
        double number;
        n += rec.type != REC_MARK && rec.type != REC_COMMENT;
        if (!rec_check(reader, &rec, &wrong) && !wrong.text[0])
            abort();
        for (size_t i = 0; i < rec.nfields; i++)
            if (rec_parse_num(rec.field[i], &number)) {
                char text[REC_NUM_MAX];
                double again;
                size_t len = rec_format_num(text, number);
                if (!rec_parse_num((struct rec_str){text, len}, &again) ||
                    again != number)
                    abort();
            }
        rec_put_line(writer, rec.line);
    }
    rec_reader_close(reader);
    if (!rec_writer_close(writer, status == 0, err))
        abort();
    return status == 0 ? n : -1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64], out[64];
    int in = fuzz_file(bytes, size, path), copy = fuzz_file(NULL, 0, out);
    struct rec_error err;
    long n = pass(path, out, true, &err);

    if (n >= 0) { /* what we write is whole and has as many records */
        char last[64];
        int third = fuzz_file(NULL, 0, last);
        if (pass(out, last, false, &err) != n)
            abort();
        close(third);
    }
    close(in);
    close(copy);
    return 0;
}
