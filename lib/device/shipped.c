/* traces/devices.rec, as it is, inside the library: found wherever that is installed. */
#include "private.h"

__asm__(".pushsection .rodata\n"
        ".global device_shipped\n"
        ".hidden device_shipped\n"
        "device_shipped:\n"
        ".incbin \"traces/devices.rec\"\n"
        ".global device_shipped_end\n"
        ".hidden device_shipped_end\n"
        "device_shipped_end:\n"
        ".byte 0\n"
        ".popsection\n");

bool
device_table_read_shipped(struct device_table *table, struct rec_error *err)
{
    struct rec_str text = {device_shipped, (size_t)(device_shipped_end - device_shipped)};
    struct rec_reader *reader = rec_reader_open_text("devices.rec", text, err);
    bool ok = reader && device_table_read(table, reader, err);
    rec_reader_close(reader);
    return ok;
}
