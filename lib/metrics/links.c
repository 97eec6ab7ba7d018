/*
 * The family of links: each load record is a case. Links that carried nothing have no
 * record, so means are over the others; only the mean of a level counts all of its links.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */

enum { KEY_LINKS };
static const char *const keys[] = {"links"};

enum { AT_END };
enum { LINKS, BYTES, LEVEL, NSUMS, ONE = NSUMS, ALL };
static const struct metrics_sum sums[NSUMS] = {
    [LINKS] = {AT_END, false},
    [BYTES] = {AT_END, false},
    [LEVEL] = {AT_END, false}, /* its part of the mean over all links of its level */
};

enum { SHARE, BUSY };
static const struct metrics_quantity quantities[] = {
    {"utilisation", "%", NULL},
    {"busy", "%", NULL},
};

static const struct metrics_quotient figures[] = {
    {"links that carried something", "", LINKS, ONE},
    {"bytes", "B", BYTES, ONE},
    {"part of the mean utilisation of its level", "%", LEVEL, ALL},
};

static const struct metrics_show shown[] = {
    {"links", "links that carried something", "value"},
    {"bytes", "bytes", "value"},
    {"busy", "busy", "mean"},
    {"mean", "utilisation", "mean"},
    {"most", "utilisation", "max"},
    {"of the level", "part of the mean utilisation of its level", "value"},
};

/* clang-format on */

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    double bytes, busy, seconds, capacity;
    (void)kept;
    if (!rec_get_number(reader, rec, 3, &bytes, err) ||
        !rec_get_number(reader, rec, 4, &busy, err) ||
        !rec_get_number(reader, rec, 5, &seconds, err) ||
        !rec_get_number(reader, rec, 6, &capacity, err))
        return false;
    if (!(seconds > 0 && capacity > 0))
        return rec_reader_fail(reader, err,
                               "SECONDS and CAPACITY of a link that carried something "
                               "must be above 0");
    one->at[AT_END] = (struct metrics_span){seconds, seconds};
    one->amount[BYTES] = bytes;
    one->quantity[SHARE] = bytes / (capacity * seconds);
    one->quantity[BUSY] = busy / seconds;
    one->amount[LEVEL] =
        key[KEY_LINKS] > 0 ? one->quantity[SHARE] / key[KEY_LINKS] : (double)NAN;
    return true;
}

void
metrics_name_link(struct rec_str from, struct rec_str to, char text[METRICS_NAME_MAX],
                  struct rec_str *name)
{
    snprintf(text, METRICS_NAME_MAX, "%.*s > %.*s", (int)from.len, from.ptr, (int)to.len,
             to.ptr);
    *name = rec_str(text);
}

static bool
name_group(const struct rec *rec, const double key[], const char *by,
           char text[METRICS_NAME_MAX], struct rec_str *name)
{
    (void)key;
    if (strcmp(by, "link") != 0)
        return false;
    metrics_name_link(rec->field[1], rec->field[2], text, name);
    return true;
}

/* Of the total, which has all levels, there is no mean of a level. */
static void
derive(const void *kept, const struct metrics_span seen[], double seconds, bool part,
       double term[])
{
    (void)kept, (void)seen, (void)seconds;
    term[ALL] = part ? 1 : 0;
}

static const struct metrics_record cases[] = {{REC_LOAD, NULL}};

const struct metrics_family metrics_links = {
    METRICS_NEEDED("links", cases, keys, sums, quantities, figures, shown, take),
    .whole = true,
    .name_group = name_group,
    .derive = derive,
};
