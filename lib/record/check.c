/* Validates one record against the table. */
#include "private.h"

#include <stdio.h>

static const char *const kind_text[] = {
    [REC_KIND_ID] = "an id (not empty, no comma, no '=')",
    [REC_KIND_IDS] = "ids separated by commas",
    [REC_KIND_NUMBER] = "a number",
    [REC_KIND_AMOUNT] = "a number >= 0",
    [REC_KIND_LIMIT] = "a number >= 0 or inf",
    [REC_KIND_COUNT] = "an integer >= 0",
    [REC_KIND_FRACTION] = "a number from 0 to 1",
    [REC_KIND_PART] = "I/N with 1 <= I <= N",
    [REC_KIND_PASS] = "forward, backward or task",
    [REC_KIND_TEXT] = "text",
};

const char *
rec_kind_text(enum rec_kind kind)
{
    return kind_text[kind];
}

static bool
is_id(struct rec_str s)
{
    return s.len > 0 && !memchr(s.ptr, ',', s.len) && !memchr(s.ptr, '=', s.len);
}

static bool
is_part(struct rec_str s)
{
    struct rec_str part;
    uint64_t i, n;
    return rec_str_split(&s, '/', &part) && rec_parse_uint(part, &i) && s.ptr &&
           rec_parse_uint(s, &n) && i >= 1 && i <= n;
}

static bool
is_ids(struct rec_str s)
{
    struct rec_str part;
    while (rec_str_split(&s, ',', &part))
        if (!is_id(part))
            return false;
    return true;
}

static bool
is_kind(struct rec_str s, enum rec_kind kind)
{
    double x;
    switch (kind) {
    case REC_KIND_ID: return is_id(s);
    case REC_KIND_IDS: return is_ids(s);
    case REC_KIND_NUMBER:
    case REC_KIND_AMOUNT:
    case REC_KIND_LIMIT:
    case REC_KIND_COUNT:
    case REC_KIND_FRACTION: return rec_parse_number(s, kind, &x);
    case REC_KIND_PART: return is_part(s);
    case REC_KIND_PASS:
        return rec_str_is(s, "forward") || rec_str_is(s, "backward") ||
               rec_str_is(s, "task");
    case REC_KIND_TEXT: return true;
    }
    return false;
}

/* The length of one well-formed UTF-8 character that is no control character; 0: none. */
static size_t
utf8_length(const unsigned char *p, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

    if (n > left || (p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ||
        (c < 0x20 && c != '\t') || c == 0x7f)
        return 0;
    return n;
}

bool
rec_is_text(struct rec_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    for (size_t i = 0, n; i < s.len; i += n)
        if ((n = utf8_length(p + i, s.len - i)) == 0)
            return false;
    return true;
}

static bool
check_text(const struct rec_reader *reader, const struct rec *rec,
           const struct rec_field_spec *spec, struct rec_str text, struct rec_error *err)
{
    return is_kind(text, spec->kind) || rec_bad_text(reader, rec, spec, text, err);
}

/* The kinds of a type, "ramp or ring"; its first field must be one of them. */
static bool
check_kind(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec, *kind;
    char list[200] = "";
    size_t used = 0;
    if (spec->kind || spec->example)
        return true;
    for (size_t i = 0; (kind = rec_spec_of_kind(rec->type, i)) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " or " : "",
                                 kind->kind);
    return rec_reader_fail(
        reader, err, "%s of %s must be %s, got '%.*s'", spec->fields[0].name, spec->name,
        list, (int)(rec->field[1].len < 60 ? rec->field[1].len : 60), rec->field[1].ptr);
}

bool
rec_check(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec;
    const struct rec_field_spec *known;
    struct rec_str key, value;
    size_t at = 0;
    int status;

    if (!rec_is_text(rec->line))
        return rec_reader_fail(reader, err,
                               "a line must be UTF-8 without control characters");
    if (!spec)
        return true;
    if (!rec_need(reader, rec, err) || !check_kind(reader, rec, err))
        return false;
    for (size_t i = 0; i < spec->nfields; i++)
        if (!check_text(reader, rec, &spec->fields[i], rec->field[i + 1], err))
            return false;
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if ((known = rec_key_spec(rec, key)) &&
            !check_text(reader, rec, known, value, err))
            return false;
    return status == 0;
}
