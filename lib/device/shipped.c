/* Puts the file traces/devices.rec into the library as it is, so that it is found
 * wherever the library is installed. The assembler reads it (.incbin), and appends a zero
 * byte. */
#include "private.h"

__asm__(".pushsection .rodata\n"
        ".hidden device_shipped, device_shipped_size\n"
        ".global device_shipped, device_shipped_size\n"
        ".balign 8\n"
        "device_shipped_size: .8byte 2f - 1f\n"
        "device_shipped:\n"
        "1: .incbin \"traces/devices.rec\"\n"
        "2: .byte 0\n"
        ".popsection\n");

bool
device_table_read_shipped(struct device_table *table, struct rec_error *err)
{
    struct rec_str text = {device_shipped, device_shipped_size};
    struct rec_reader *reader = rec_reader_open_text("devices.rec", text, err);
    bool ok = reader && device_table_read(table, reader, err);
    rec_reader_close(reader);
    return ok;
}

bool
device_table_read_with(struct device_table *table, const char *path,
                       struct rec_error *err)
{
    struct rec_reader *reader;
    bool ok = device_table_read_shipped(table, err);
    if (!ok || !path)
        return ok;
    reader = rec_reader_open(&path, 1, NULL, err);
    ok = reader && device_table_read(table, reader, err);
    rec_reader_close(reader);
    return ok;
}
