/* Reads numbers that people write, with a unit: "80GB". */
#include "rampipe/record.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* A unit is factor * 10^power of the base unit. The power is kept apart because it can be
 * appended to the digits, which avoids a second rounding. */
struct unit {
    const char *name;
    int power;
    double factor;
};

static const struct unit none[] = {{NULL, 0, 0}};
static const struct unit times[] = {{"s", 0, 1},     {"ms", -3, 1},  {"us", -6, 1},
                                    {"ns", -9, 1},   {"min", 0, 60}, {"h", 0, 3600},
                                    {"d", 0, 86400}, {NULL, 0, 0}};
static const struct unit sizes[] = {
    {"B", 0, 1},        {"kB", 3, 1},       {"MB", 6, 1},       {"GB", 9, 1},
    {"TB", 12, 1},      {"PB", 15, 1},      {"KiB", 0, 0x1p10}, {"MiB", 0, 0x1p20},
    {"GiB", 0, 0x1p30}, {"TiB", 0, 0x1p40}, {"PiB", 0, 0x1p50}, {NULL, 0, 0}};
static const struct unit rates[] = {
    {"B/s", 0, 1},          {"kB/s", 3, 1},         {"MB/s", 6, 1},
    {"GB/s", 9, 1},         {"TB/s", 12, 1},        {"PB/s", 15, 1},
    {"KiB/s", 0, 0x1p10},   {"MiB/s", 0, 0x1p20},   {"GiB/s", 0, 0x1p30},
    {"TiB/s", 0, 0x1p40},   {"bit/s", 0, 1 / 8.0},  {"kbit/s", 3, 1 / 8.0},
    {"Mbit/s", 6, 1 / 8.0}, {"Gbit/s", 9, 1 / 8.0}, {"Tbit/s", 12, 1 / 8.0},
    {"b/s", 0, 1 / 8.0},    {"kb/s", 3, 1 / 8.0},   {"Mb/s", 6, 1 / 8.0},
    {"Gb/s", 9, 1 / 8.0},   {"Tb/s", 12, 1 / 8.0},  {"kbps", 3, 1 / 8.0},
    {"Mbps", 6, 1 / 8.0},   {"Gbps", 9, 1 / 8.0},   {"Tbps", 12, 1 / 8.0},
    {"GBps", 9, 1},         {"TBps", 12, 1},        {NULL, 0, 0}};

static const struct unit *const all[] = {[REC_UNITS_NONE] = none,
                                         [REC_UNITS_RATE] = rates,
                                         [REC_UNITS_SIZE] = sizes,
                                         [REC_UNITS_TIME] = times};

/* Reads digits * 10^power, rounded once: 0.1us is exactly the double that 1e-7 is.
 * Multiplying 0.1 by 1e-6 would round twice. */
static bool
parse_scaled(struct rec_str digits, int power, double *value)
{
    const char *e = digits.len ? memchr(digits.ptr, 'e', digits.len) : NULL;
    char text[80];
    long exponent = 0;
    int n;
    if (!e && digits.len)
        e = memchr(digits.ptr, 'E', digits.len);
    if (power == 0)
        return rec_parse_num(digits, value);
    if (e) {
        if (!rec_parse_num(digits, value))
            return false;
        /* beyond these bounds 60 digits are inf or 0 all the same */
        exponent = strtol(e + 1, NULL, 10);
        exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
        digits.len = (size_t)(e - digits.ptr);
    }
    n = snprintf(text, sizeof text, "%.*se%ld", REC_SAID(digits), exponent + power);
    return digits.len < 60 && rec_parse_num((struct rec_str){text, (size_t)n}, value);
}

/* The unit with this name; if there is none, the only unit with this name in other upper
 * and lower case. NULL: none, or several: gb/s may be GB/s or Gb/s, which differ by a
 * factor of 8. Where only a unit in bytes exists, a name with an upper-case prefix and a
 * b (Gb) is not taken for it: it means bits. */
static const struct unit *
find_unit(const struct unit *units, const char *name)
{
    const struct unit *found = NULL;
    for (const struct unit *unit = units; unit->name; unit++)
        if (strcmp(unit->name, name) == 0)
            return unit;
    for (const struct unit *unit = units; unit->name; unit++) {
        if (strcasecmp(unit->name, name) != 0)
            continue;
        if (found || (isupper((unsigned char)*name) && strchr(name, 'b')))
            return NULL;
        found = unit;
    }
    return found;
}

bool
rec_parse_amount(const char *text, enum rec_units units, bool allow_inf, double *value)
{
    size_t digits = strspn(text, "0123456789.+-eE");
    const struct unit one = {"", 0, 1}, *unit;
    const char *name = text + digits + strspn(text + digits, " ");

    if (strcmp(text, "inf") == 0) {
        *value = (double)INFINITY;
        return allow_inf;
    }
    unit = text[digits] ? find_unit(all[units], name) : &one;
    if (!unit || !parse_scaled((struct rec_str){text, digits}, unit->power, value))
        return false;
    *value *= unit->factor;
    return *value >= 0 && isfinite(*value);
}

bool
rec_parse_unit(struct rec_str text, double *value)
{
    char copy[80];
    if (text.len >= sizeof copy || text.len == strspn(text.ptr, "0123456789.+-eE"))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    for (int units = REC_UNITS_RATE; units <= REC_UNITS_TIME; units++)
        if (rec_parse_amount(copy, (enum rec_units)units, false, value))
            return true;
    return false;
}
