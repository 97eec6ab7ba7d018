/* --allow-zero, of all tools that include "graph_times" among theirs: those that decide
 * by the times of ops. */
#ifndef RAMPIPE_GRAPH_TIMES_H
#define RAMPIPE_GRAPH_TIMES_H

#include "rampipe/cli.h"

/* Room for the advice. */
enum { GRAPH_TIMES_MAX = 200 };

/* What to say of a graph without times, for graph_check_times(); NULL: it is allowed. */
const char *graph_times_advice(const struct cli *cli, bool allowed,
                               char text[GRAPH_TIMES_MAX]);

#endif
