/* Puts the file traces/kernels.rec into the library as it is, so that it is found
 * wherever the library is installed. The assembler reads it (.incbin), and appends a zero
 * byte. */
#include "private.h"

__asm__(".pushsection .rodata\n"
        ".hidden kernel_shipped, kernel_shipped_size\n"
        ".global kernel_shipped, kernel_shipped_size\n"
        ".balign 8\n"
        "kernel_shipped_size: .8byte 2f - 1f\n"
        "kernel_shipped:\n"
        "1: .incbin \"traces/kernels.rec\"\n"
        "2: .byte 0\n"
        ".popsection\n");

bool
kernel_table_read_shipped(struct kernel_table *table, struct rec_error *err)
{
    struct rec_str text = {kernel_shipped, kernel_shipped_size};
    struct rec_reader *reader = rec_reader_open_text("kernels.rec", text, err);
    bool ok = reader && kernel_table_read(table, reader, err);
    rec_reader_close(reader);
    return ok;
}
