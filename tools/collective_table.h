/* The option --collective-table of tools that work with a cluster. Their .ggo files
 * include "collective_table". */
#ifndef RAMPIPE_COLLECTIVE_TABLE_H
#define RAMPIPE_COLLECTIVE_TABLE_H

#include "rampipe/cli.h"
#include "rampipe/collective.h"

/* Reads the tables that are built in, and behind them those of a file; none if `path` is
 * "built-in". *table starts as
 * {0}; the caller frees it, also after an error (cli->err). */
bool collective_table_option(struct cli *cli, const char *path,
                             struct collective_table *table) REC_MUST_CHECK;

#endif
