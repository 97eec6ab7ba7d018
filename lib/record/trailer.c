/*
 * The last line of a stream: "#end", or a seal with the number of records and a CRC-32.
 * The seal finds records that were lost, added or changed after the stream was written.
 */
#include "private.h"

#include <stdio.h>

void
rec_format_seal(char text[REC_SEAL_MAX], const struct rec_seal *seal)
{
    snprintf(text, REC_SEAL_MAX, "#end\t%llu\t%08x\n", (unsigned long long)seal->records,
             (unsigned)seal->crc);
}

bool
rec_read_trailer(struct rec_str line, bool *sealed, struct rec_seal *seal)
{
    struct rec_str word;
    *sealed = false;
    *seal = (struct rec_seal){0, 0};
    if (!rec_str_split(&line, '\t', &word) || !rec_str_is(word, "#end"))
        return false;
    if (!line.ptr)
        return true;
    *sealed = true;
    if (!rec_str_split(&line, '\t', &word) || !rec_parse_uint(word, &seal->records) ||
        line.len != 8)
        return false;
    /* Only the form that rec_format_seal() writes is a seal: 8 lower-case digits. */
    for (size_t i = 0; i < 8; i++) {
        const char *digit = memchr("0123456789abcdef", line.ptr[i], 16);
        if (!digit)
            return false;
        seal->crc = seal->crc << 4 | (uint32_t)(digit - "0123456789abcdef");
    }
    return true;
}

bool
rec_is_trailer(struct rec_str line)
{
    struct rec_seal seal;
    bool sealed;
    return rec_read_trailer(line, &sealed, &seal);
}

bool
rec_fail_seal(const struct rec_reader *reader, const struct rec_seal *said,
              const struct rec_seal *found, struct rec_error *err)
{
    char what[100] = "bytes were changed";
    if (said->records != found->records)
        snprintf(what, sizeof what, "%llu record%s missing",
                 (unsigned long long)(said->records - found->records),
                 said->records - found->records == 1 ? " is" : "s are");
    if (said->records < found->records)
        snprintf(what, sizeof what, "%llu too many",
                 (unsigned long long)(found->records - said->records));
    return rec_fail(
        err, REC_IO,
        "%s:%llu: the stream is not the one that was sealed: %s (the seal is "
        "%llu %08x, but for this stream it should be %llu %08x; to edit a sealed "
        "stream, cut its last line to #end)",
        rec_reader_file(reader), (unsigned long long)rec_reader_line(reader), what,
        (unsigned long long)said->records, said->crc, (unsigned long long)found->records,
        found->crc);
}

bool
rec_fail_sealed_line(const struct rec_reader *reader, const char *which,
                     struct rec_error *err)
{
    return rec_fail(err, REC_IO,
                    "%s:%llu: the stream is not the one that was sealed: its %s line was "
                    "changed (lines of a sealed stream must end in LF alone; to edit a "
                    "sealed stream, cut its last line to #end)",
                    rec_reader_file(reader), (unsigned long long)rec_reader_line(reader),
                    which);
}
