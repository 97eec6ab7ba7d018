/* The option --allow-zero of tools whose results depend on the times of ops. Their .ggo
 * files include "graph_times". */
#ifndef RAMPIPE_GRAPH_TIMES_H
#define RAMPIPE_GRAPH_TIMES_H

#include "rampipe/cli.h"

/* Bytes of the advice, with its NUL. */
enum { GRAPH_TIMES_MAX = 200 };

/* The advice that graph_check_times() adds to its message about a graph without times.
 * NULL: such graphs are allowed. */
const char *graph_times_advice(const struct cli *cli, bool allowed,
                               char text[GRAPH_TIMES_MAX]);

#endif
