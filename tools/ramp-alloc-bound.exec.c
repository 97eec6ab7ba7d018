/* ramp-alloc bound is a program of its own, because it alone links GLPK. Loading GLPK and
 * its libraries takes longer than a small run of ramp-alloc does. */
#include "ggo/ramp-alloc.h"

int
ramp_alloc_bound_main(int argc, char **argv, const char *prefix)
{
    (void)argc;
    return cli_run_apart("ramp-alloc-bound", TOOL_NAME " bound", argv, prefix);
}
