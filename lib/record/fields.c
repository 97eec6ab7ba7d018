/* Fields and keys of a record, with messages that name file, line and field. */
#include "rampipe/record.h"

#include <math.h>
#include <stdio.h>

/* How much of a hostile field a message repeats. */
enum { SHOWN = 60 };

static int
shown(struct rec_str s)
{
    return (int)(s.len < SHOWN ? s.len : SHOWN);
}

bool
rec_reader_fail(const struct rec_reader *reader, struct rec_error *err,
                const char *format, ...)
{
    char text[sizeof err->text];
    uint64_t line;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    line = rec_reader_line(reader);
    return rec_fail_at(err, rec_reader_file(reader), line ? line : 1, "%s", text);
}

static size_t
fixed_fields(const struct rec_spec *spec)
{
    size_t n = 0;
    while (spec && spec->fields[n].name)
        n++;
    return n;
}

bool
rec_need(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec_spec(rec->type);
    size_t need = fixed_fields(spec);
    char names[400];
    size_t used = 0;

    if (rec->nfields > need)
        return true;
    names[0] = '\0';
    for (size_t i = 0; i < need && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s",
                                 spec->fields[i].name);
    return rec_reader_fail(reader, err, "%s needs %zu fields (%s%s), got %zu", spec->name,
                           need, spec->name, names, rec->nfields - 1);
}

bool
rec_locate(const struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error inner = *err;
    return inner.code == REC_DATA && !inner.located
               ? rec_reader_fail(reader, err, "%s", inner.text)
               : false;
}

static bool
get_amount(const struct rec_reader *reader, struct rec_str s, const char *what,
           bool allow_inf, double *value, struct rec_error *err)
{
    double x;
    if (!rec_parse_num(s, &x) || x < 0 || (isinf(x) && !allow_inf))
        return rec_reader_fail(reader, err, "%s must be a number >= 0%s, got '%.*s'",
                               what, allow_inf ? " or inf" : "", shown(s), s.ptr);
    *value = x;
    return true;
}

bool
rec_get_amount(const struct rec_reader *reader, const struct rec *rec, size_t index,
               const char *what, bool allow_inf, double *value, struct rec_error *err)
{
    return get_amount(reader, rec->field[index], what, allow_inf, value, err);
}

bool
rec_get_count(const struct rec_reader *reader, const struct rec *rec, size_t index,
              const char *what, uint64_t *value, struct rec_error *err)
{
    struct rec_str s = rec->field[index];
    if (rec_parse_uint(s, value))
        return true;
    return rec_reader_fail(reader, err, "%s must be an integer >= 0, got '%.*s'", what,
                           shown(s), s.ptr);
}

int
rec_next_key(const struct rec_reader *reader, const struct rec *rec, size_t *at,
             struct rec_str *key, struct rec_str *value, struct rec_error *err)
{
    struct rec_str field;
    const char *equal;

    if (*at == 0)
        *at = fixed_fields(rec_spec(rec->type)) + 1;
    if (*at >= rec->nfields)
        return 0;
    field = rec->field[(*at)++];
    equal = field.len ? memchr(field.ptr, '=', field.len) : NULL;
    if (!equal || equal == field.ptr) {
        rec_reader_fail(reader, err,
                        "after the fields of %.*s come key=value, got '%.*s'",
                        shown(rec->field[0]), rec->field[0].ptr, shown(field), field.ptr);
        return -1;
    }
    *key = (struct rec_str){field.ptr, (size_t)(equal - field.ptr)};
    *value = (struct rec_str){equal + 1, field.len - key->len - 1};
    return 1;
}

bool
rec_find_key(const struct rec *rec, const char *key, struct rec_str *value)
{
    size_t len = strlen(key);
    for (size_t i = fixed_fields(rec_spec(rec->type)) + 1; i < rec->nfields; i++) {
        struct rec_str field = rec->field[i];
        if (field.len > len && field.ptr[len] == '=' &&
            memcmp(field.ptr, key, len) == 0) {
            *value = (struct rec_str){field.ptr + len + 1, field.len - len - 1};
            return true;
        }
    }
    return false;
}

bool
rec_key_amount(const struct rec_reader *reader, const struct rec *rec, const char *key,
               bool allow_inf, double *value, struct rec_error *err)
{
    struct rec_str s;
    return !rec_find_key(rec, key, &s) ||
           get_amount(reader, s, key, allow_inf, value, err);
}
