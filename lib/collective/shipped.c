/* Puts the files traces/fabrics.rec and traces/collectives.rec into the library as they
 * are, one behind the other, so that they are found wherever the library is installed.
 * The assembler reads them (.incbin), and appends a zero byte. */
#include "private.h"

__asm__(".pushsection .rodata\n"
        ".hidden collective_shipped, collective_shipped_size\n"
        ".global collective_shipped, collective_shipped_size\n"
        ".balign 8\n"
        "collective_shipped_size: .8byte 2f - 1f\n"
        "collective_shipped:\n"
        "1: .incbin \"traces/fabrics.rec\"\n"
        ".incbin \"traces/collectives.rec\"\n"
        "2: .byte 0\n"
        ".popsection\n");

bool
collective_table_read_shipped(struct collective_table *table, struct rec_error *err)
{
    struct rec_str text = {collective_shipped, collective_shipped_size};
    struct rec_reader *reader = rec_reader_open_text("collectives.rec", text, err);
    bool ok = reader && collective_table_read(table, reader, err);
    rec_reader_close(reader);
    return ok;
}
