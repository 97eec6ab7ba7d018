/* The advice names roofline, which fills in times, with the prefix of installed tools. */
#include "graph_times.h"

#include <stdio.h>

const char *
graph_times_advice(const struct cli *cli, bool allowed, char text[GRAPH_TIMES_MAX])
{
    snprintf(text, GRAPH_TIMES_MAX,
             "put %.100sroofline --device NAME before, or give --allow-zero if these "
             "times are really 0",
             cli->prefix);
    return allowed ? NULL : text;
}
