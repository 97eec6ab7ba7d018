/* Writes numbers for people, with a unit: "38.5 MB". */
#include "rampipe/record.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A unit, and the least value that is written in it, both in the quantity's base unit.
 * Minutes, hours and days begin at ten of their kind, because "90 s" reads better than
 * "1.5 min". The lists run from large to small; the last unit takes all that is left. */
struct unit {
    const char *name;
    double base, from;
};

enum { NUNITS = 8 /* units of a quantity, at most */ };

static const struct unit units[][NUNITS] = {
    [REC_SECONDS] = {{"d", 86400, 864000},
                     {"h", 3600, 36000},
                     {"min", 60, 600},
                     {"s", 1, 1},
                     {"ms", 1e-3, 1e-3},
                     {"us", 1e-6, 1e-6},
                     {"ns", 1e-9, 0}},
    [REC_BYTES] = {{"EB", 1e18, 1e18},
                   {"PB", 1e15, 1e15},
                   {"TB", 1e12, 1e12},
                   {"GB", 1e9, 1e9},
                   {"MB", 1e6, 1e6},
                   {"kB", 1e3, 1e3},
                   {"B", 1, 0}},
    [REC_FLOPS] = {{"EFLOP", 1e18, 1e18},
                   {"PFLOP", 1e15, 1e15},
                   {"TFLOP", 1e12, 1e12},
                   {"GFLOP", 1e9, 1e9},
                   {"MFLOP", 1e6, 1e6},
                   {"kFLOP", 1e3, 1e3},
                   {"FLOP", 1, 0}},
};
static const char *const base_names[] = {
    [REC_SECONDS] = "s", [REC_BYTES] = "B", [REC_FLOPS] = "FLOP"};

void
rec_format_quantity(char text[REC_QUANTITY_MAX], double value, enum rec_quantity quantity,
                    int digits)
{
    const struct unit *unit = units[quantity];
    double rounded;
    if (value == 0 || !isfinite(value)) {
        snprintf(text, REC_QUANTITY_MAX, "%g %s", value, base_names[quantity]);
        return;
    }
    /* The value is rounded before its unit is chosen: 999.9 us are 1 ms, not 1000 us.
     * Rounding up may overflow to inf, which the fmin() undoes. */
    snprintf(text, REC_QUANTITY_MAX, "%.*e", digits - 1, value);
    rounded = fmax(-DBL_MAX, fmin(strtod(text, NULL), DBL_MAX));
    while (fabs(rounded) < unit->from)
        unit++;
    snprintf(text, REC_QUANTITY_MAX, "%.*g %s", digits, rounded / unit->base, unit->name);
}
