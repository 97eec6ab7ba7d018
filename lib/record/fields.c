/*
 * Reads fields and keys of a record as numbers, ids and lists. Every error names the
 * file, the line, the record's id and the field.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>

/* Bytes of a wrong field that a message repeats: a field may have millions of bytes. */
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

/* "op needs 5 fields (op GRAPH ID ...), got 3" */
static bool
fail_need(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec;
    const char *word = rec_spec(rec->type)->name;
    char names[400] = "";
    size_t used = 0;

    for (size_t i = 0; i < spec->nfields && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s",
                                 spec->fields[i].name);
    return rec_reader_fail(reader, err, "%s needs %zu fields (%s%s), got %zu", word,
                           spec->nfields, word, names, rec->nfields - 1);
}

/* Records without a row have no fixed fields, so any number of fields will do. */
bool
rec_need(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    return !rec->spec || rec->nfields > rec->spec->nfields
               ? rec_check_line(reader, rec, err)
               : fail_need(reader, rec, err);
}

bool
rec_locate(const struct rec_reader *reader, struct rec_error *err)
{
    struct rec_error inner = *err;
    return inner.code == REC_DATA && !inner.located
               ? rec_reader_fail(reader, err, "%s", inner.text)
               : false;
}

/* Writes "op '12': " for a message, so that a person finds the record. Writes "" if the
 * record has no field ID or JOB, or if that field is the wrong one. */
static void
name_record(const struct rec *rec, const struct rec_field_spec *wrong, char text[100])
{
    const struct rec_spec *spec = rec->spec;
    text[0] = '\0';
    for (size_t i = 0; spec && i < spec->nfields && i + 1 < rec->nfields; i++) {
        const struct rec_field_spec *field = &spec->fields[i];
        if (field != wrong &&
            (strcmp(field->name, "ID") == 0 || strcmp(field->name, "JOB") == 0)) {
            struct rec_str id = rec->field[i + 1];
            snprintf(text, 100, "%s '%.*s': ", rec_spec(rec->type)->name, shown(id),
                     id.ptr);
            return;
        }
    }
}

bool
rec_bad_text(const struct rec_reader *reader, const struct rec *rec,
             const struct rec_field_spec *spec, struct rec_str text,
             struct rec_error *err)
{
    char name[100];
    name_record(rec, spec, name);
    return rec_reader_fail(reader, err, "%s%s must be %s, got '%.*s'", name, spec->name,
                           rec_kind_text(spec->kind), shown(text), text.ptr);
}

bool
rec_bad_field(const struct rec_reader *reader, const struct rec *rec, size_t index,
              struct rec_error *err)
{
    return rec_bad_text(reader, rec, &rec->spec->fields[index - 1], rec->field[index],
                        err);
}

bool
rec_parse_number(struct rec_str text, enum rec_kind kind, double *value)
{
    uint64_t n;
    if (kind == REC_KIND_COUNT) {
        bool ok = rec_parse_uint(text, &n);
        *value = (double)n;
        return ok;
    }
    if (!rec_parse_num(text, value))
        return false;
    switch (kind) {
    case REC_KIND_NUMBER: return isfinite(*value);
    case REC_KIND_LATER:
    case REC_KIND_PAST:
    case REC_KIND_AMOUNT: return *value >= 0 && isfinite(*value);
    case REC_KIND_LIMIT: return *value >= 0;
    case REC_KIND_FRACTION: return *value >= 0 && *value <= 1 + 1e-9;
    default: return false;
    }
}

bool
rec_read_number(const struct rec_reader *reader, const struct rec *rec,
                const struct rec_field_spec *spec, struct rec_str text, double *value,
                struct rec_error *err)
{
    double number;
    if (!rec_parse_number(text, spec->kind, &number))
        return rec_bad_text(reader, rec, spec, text, err);
    /* LATER and PAST, the last kinds of the enum, are compared with another field. */
    if (spec->kind >= REC_KIND_LATER && !rec_check_order(reader, rec, spec, number, err))
        return false;
    *value = number;
    return true;
}

bool
rec_get_number(const struct rec_reader *reader, const struct rec *rec, size_t index,
               double *value, struct rec_error *err)
{
    return rec_read_number(reader, rec, &rec->spec->fields[index - 1], rec->field[index],
                           value, err);
}

bool
rec_get_count(const struct rec_reader *reader, const struct rec *rec, size_t index,
              uint64_t *value, struct rec_error *err)
{
    return rec_parse_uint(rec->field[index], value) ||
           rec_bad_field(reader, rec, index, err);
}

static size_t
count_fields(const struct rec *rec)
{
    const struct rec_spec *spec = rec->spec;
    return spec ? spec->nfields : 0;
}

bool
rec_fail_extra(const struct rec_reader *reader, const struct rec *rec,
               struct rec_str field, struct rec_error *err)
{
    return rec_reader_fail(
        reader, err, "after the fields of %.*s, each field must be key=value, got '%.*s'",
        shown(rec->field[0]), rec->field[0].ptr, shown(field), field.ptr);
}

int
rec_next_key(const struct rec_reader *reader, const struct rec *rec, size_t *at,
             struct rec_str *key, struct rec_str *value, struct rec_error *err)
{
    struct rec_str field;
    const char *equal;

    if (*at == 0)
        *at = count_fields(rec) + 1;
    if (*at >= rec->nfields)
        return 0;
    field = rec->field[(*at)++];
    equal = field.len ? memchr(field.ptr, '=', field.len) : NULL;
    if (!equal || equal == field.ptr) {
        /* rec_next() refuses such fields, unless the record's type or kind has no row. */
        rec_fail_extra(reader, rec, field, err);
        return -1;
    }
    *key = (struct rec_str){field.ptr, (size_t)(equal - field.ptr)};
    *value = (struct rec_str){equal + 1, field.len - key->len - 1};
    return 1;
}

bool
rec_unknown_key(const struct rec_reader *reader, const struct rec *rec,
                struct rec_str *key)
{
    struct rec_str value;
    struct rec_error err;
    size_t at = 0;
    while (rec_next_key(reader, rec, &at, key, &value, &err) > 0)
        if (!rec_key_spec(rec, *key))
            return true;
    return false;
}

/* A linear search: records have few keys, and most callers ask for one or two of them. */
bool
rec_find_key(const struct rec *rec, const char *key, struct rec_str *value)
{
    size_t len = strlen(key);
    for (size_t i = count_fields(rec) + 1; i < rec->nfields; i++) {
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
rec_arena_key(struct rec_arena *arena, const struct rec *rec, const char *key,
              const char **text, struct rec_error *err)
{
    struct rec_str value;
    *text = "";
    return !rec_find_key(rec, key, &value) ||
           (*text = rec_arena_copy(arena, value, err)) != NULL;
}

/*
 * Finds a key by name, and its specification. 1: found; 0: the record does not have the
 * key, or only other kinds of its type know it, so that it has no meaning here; -1: no
 * row of the type knows the key, which is a bug of the caller (*err is filled).
 */
static int
find_own_key(const struct rec *rec, const char *key, const struct rec_field_spec **spec,
             struct rec_str *text, struct rec_error *err)
{
    struct rec_str name = rec_str(key);
    if (!rec_find_key(rec, key, text))
        return 0;
    *spec = rec_key_spec(rec, name);
    if (*spec)
        return 1;
    for (size_t i = 0; rec_spec_of_kind(rec->type, i); i++)
        if (rec_list_find(rec_spec_of_kind(rec->type, i)->keys, name))
            return 0;
    rec_fail(err, REC_BUG, "no row of %.*s has the key '%s'", shown(rec->field[0]),
             rec->field[0].ptr, key);
    return -1;
}

bool
rec_key_number(const struct rec_reader *reader, const struct rec *rec, const char *key,
               double *value, struct rec_error *err)
{
    const struct rec_field_spec *spec;
    struct rec_str text;
    int found = find_own_key(rec, key, &spec, &text, err);
    return found == 0 ||
           (found > 0 && rec_read_number(reader, rec, spec, text, value, err));
}

bool
rec_key_count(const struct rec_reader *reader, const struct rec *rec, const char *key,
              uint64_t *value, struct rec_error *err)
{
    const struct rec_field_spec *spec;
    struct rec_str text;
    int found = find_own_key(rec, key, &spec, &text, err);
    return found == 0 || (found > 0 && (rec_parse_uint(text, value) ||
                                        rec_bad_text(reader, rec, spec, text, err)));
}
