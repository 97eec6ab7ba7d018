/* Reads tables of measured times of collectives. */
#include "collective_table.h"

bool
collective_table_option(struct cli *cli, const char *path, struct collective_table *table)
{
    struct rec_reader *reader;
    bool ok = collective_table_read_shipped(table, &cli->err);
    if (!ok || strcmp(path, "built-in") == 0)
        return ok;
    reader = rec_reader_open(&path, 1, NULL, &cli->err);
    ok = reader && collective_table_read(table, reader, &cli->err);
    rec_reader_close(reader);
    return ok;
}
