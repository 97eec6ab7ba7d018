/* The last line of a stream. */
#include "private.h"

bool
rec_read_trailer(struct rec_str line, bool *sealed, uint64_t *records, uint32_t *crc)
{
    struct rec_str word;
    *sealed = false;
    *crc = 0;
    if (!rec_str_split(&line, '\t', &word) || !rec_str_is(word, "#end"))
        return false;
    if (!line.ptr)
        return true;
    *sealed = true;
    if (!rec_str_split(&line, '\t', &word) || !rec_parse_uint(word, records) ||
        line.len != 8)
        return false;
    for (size_t i = 0; i < 8; i++) {
        const char *digit = memchr("0123456789abcdef", line.ptr[i], 16);
        if (!digit)
            return false;
        *crc = *crc << 4 | (uint32_t)(digit - "0123456789abcdef");
    }
    return true;
}

bool
rec_is_trailer(struct rec_str line)
{
    bool sealed;
    uint64_t records;
    uint32_t crc;
    return rec_read_trailer(line, &sealed, &records, &crc);
}
