/*
 * The family of exchanges: each explain record is a case. What an exchange costs is the
 * time that it takes beyond that alone.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */

enum { KEY_HELD, KEY_BYTES, KEY_OWN, KEY_JOB, KEY_OTHERS };
static const char *const keys[] = {"held", "bytes", "own", "job", "others"};

enum { AT_END };
enum { EXCHANGES, SECONDS, ALONE, BYTES, NSUMS, ONE = NSUMS, LOST };
static const struct metrics_sum sums[NSUMS] = {
    [EXCHANGES] = {AT_END, false},
    [SECONDS] = {AT_END, false},
    [ALONE] = {AT_END, false},
    [BYTES] = {AT_END, false}, /* on the link; none where no link holds back */
};

enum { TIME, HELD, OWN, JOB, OTHERS };
static const struct metrics_quantity quantities[] = {
    {"time", "s", NULL},
    {"held back", "%", NULL},
    {"flows of the same exchange beside it", "", NULL},
    {"flows of the same job beside it", "", NULL},
    {"flows of other jobs beside it", "", NULL},
};

static const struct metrics_quotient figures[] = {
    {"exchanges", "", EXCHANGES, ONE},
    {"sum of times", "s", SECONDS, ONE},
    {"sum of times alone", "s", ALONE, ONE},
    {"beyond the times alone", "s", LOST, ONE},
    {"times over times alone", "", SECONDS, ALONE},
    {"bytes on the link", "B", BYTES, ONE},
};

static const struct metrics_show shown[] = {
    {"exchanges", "exchanges", "value"},
    {"time", "sum of times", "value"},
    {"beyond alone", "beyond the times alone", "value"},
    {"held back", "held back", "mean"},
    {"bytes there", "bytes on the link", "value"},
    {"own", "flows of the same exchange beside it", "mean"},
    {"of the job", "flows of the same job beside it", "mean"},
    {"of others", "flows of other jobs beside it", "mean"},
};

/* clang-format on */

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    double start, seconds, alone;
    (void)kept;
    if (!rec_get_number(reader, rec, 4, &start, err) ||
        !rec_get_number(reader, rec, 5, &seconds, err) ||
        !rec_get_number(reader, rec, 6, &alone, err))
        return false;
    one->at[AT_END] = (struct metrics_span){0, 0};
    one->amount[SECONDS] = one->quantity[TIME] = seconds;
    one->amount[ALONE] = alone;
    one->amount[BYTES] = isnan(key[KEY_BYTES]) ? 0 : key[KEY_BYTES];
    one->quantity[HELD] = key[KEY_HELD];
    one->quantity[OWN] = key[KEY_OWN];
    one->quantity[JOB] = key[KEY_JOB];
    one->quantity[OTHERS] = key[KEY_OTHERS];
    return true;
}

static struct rec_str
key_of(const struct rec *rec, const char *name)
{
    struct rec_str value = rec_str("");
    rec_find_key(rec, name, &value);
    return value;
}

/* An exchange is that of a job, an op, and the op that gets it; exchanges that no link
 * holds back are named by what does. */
static bool
name_group(const struct rec *rec, const double key[], const char *by,
           char text[METRICS_NAME_MAX], struct rec_str *name)
{
    struct rec_str a, b = rec->field[2], c;
    (void)key;
    if (strcmp(by, "exchange") == 0) {
        a = rec->field[1];
        c = key_of(rec, "dst");
        snprintf(text, METRICS_NAME_MAX, "%.*s: %.*s%s%.*s", (int)a.len, a.ptr,
                 (int)b.len, b.ptr, c.len ? " > " : " ",
                 (int)(c.len ? c.len : rec->field[3].len),
                 c.len ? c.ptr : rec->field[3].ptr);
    } else if (strcmp(by, "link") == 0 && rec_str_is(rec->field[7], "link")) {
        metrics_name_link(key_of(rec, "from"), key_of(rec, "to"), text, name);
        return true;
    } else if (strcmp(by, "link") == 0) {
        *name = rec->field[7];
        return true;
    } else
        return false;
    *name = rec_str(text);
    return true;
}

static void
derive(const void *kept, const struct metrics_span seen[], double seconds, bool part,
       double term[])
{
    (void)kept, (void)seen, (void)seconds, (void)part;
    term[LOST] = term[SECONDS] - term[ALONE];
}

static const struct metrics_record cases[] = {{REC_EXPLAIN, NULL}};
static const struct metrics_group groups[] = {{"job", 1}, {"kind", 3}};

const struct metrics_family metrics_exchanges = {
    METRICS_NEEDED("exchanges", cases, keys, sums, quantities, figures, shown, take),
    .groups = METRICS_LIST(groups),
    .whole = true,
    .name_group = name_group,
    .derive = derive,
};
