/*
 * The table of records as C data, made from record_table.h, and lookups in it.
 *
 * record_table.h is included three times: each time REC_ROW (one row a type),
 * REC_KIND_ROW and REC_KIND_NAMED (one a kind of a type) expand to other code. A type
 * that has kinds (cluster, model) has a row without an example; the rows of its kinds are
 * in `kinds`.
 */
#include "private.h"

/* A list of fields or keys, with the entry that marks its end. */
#define LIST(...)                     \
    {                                 \
        __VA_ARGS__                   \
        {                             \
            NULL, REC_KIND_TEXT, NULL \
        }                             \
    }
#define REC_FIELD(name, kind, about) {name, REC_KIND_##kind, about},
#define REC_KEY(name, kind, about) {name, REC_KIND_##kind, about},
#define COUNT(list) (sizeof list / sizeof *list - 1)

/* The fields and keys of each row. */
#define REC_ROW(type, whole, word, about, example, fields, keys)       \
    static const struct rec_field_spec type##_fields[] = LIST(fields); \
    static const struct rec_field_spec type##_keys[] = LIST(keys);
#define REC_KIND_ROW(type, kind, about, example, fields, keys)                  \
    static const struct rec_field_spec type##_##kind##_fields[] = LIST(fields); \
    static const struct rec_field_spec type##_##kind##_keys[] = LIST(keys);
#define REC_KIND_NAMED(type, kind, name, about, example, fields, keys)          \
    static const struct rec_field_spec type##_##kind##_fields[] = LIST(fields); \
    static const struct rec_field_spec type##_##kind##_keys[] = LIST(keys);
#include "rampipe/record_table.h"

static const struct rec_spec table[REC_NTYPES] = {
#define REC_ROW(type, whole, word, about, example, fields, keys)                  \
    [REC_##type] = {word,       NULL,        about,         example,              \
                    REC_##type, REC_##whole, type##_fields, COUNT(type##_fields), \
                    type##_keys},
#include "rampipe/record_table.h"
};

#define KIND(type, kind, name, about, example)                                     \
    {                                                                              \
        NULL, name, about, example, REC_##type, REC_OTHER, type##_##kind##_fields, \
            COUNT(type##_##kind##_fields), type##_##kind##_keys                    \
    }
static const struct rec_spec kinds[] = {
#define REC_KIND_ROW(type, kind, about, example, fields, keys) \
    KIND(type, kind, #kind, about, example),
#define REC_KIND_NAMED(type, kind, name, about, example, fields, keys) \
    KIND(type, kind, name, about, example),
#include "rampipe/record_table.h"
};

const struct rec_spec *
rec_spec(enum rec_type type)
{
    return type <= REC_MARK || type >= REC_NTYPES ? NULL : &table[type];
}

const struct rec_spec *
rec_spec_of_kind(enum rec_type type, size_t i)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].type == type && i-- == 0)
            return &kinds[k];
    for (size_t k = 0; rec_more_kinds && rec_more_kinds[k]; k++)
        if (rec_more_kinds[k]->type == type && i-- == 0)
            return rec_more_kinds[k];
    return NULL;
}

const struct rec_spec *
rec_find_spec(const struct rec *rec)
{
    const struct rec_spec *spec = &table[rec->type], *kind;
    if (spec->example || rec->nfields < 2) /* the type has no kinds, or none is named */
        return spec;
    for (size_t i = 0; (kind = rec_spec_of_kind(rec->type, i)); i++)
        if (rec_str_is(rec->field[1], kind->kind))
            return kind;
    return spec;
}

const struct rec_field_spec *
rec_list_find(const struct rec_field_spec *list, struct rec_str name)
{
    char first = name.len ? name.ptr[0] : '\0'; /* most names differ in it */
    while (list->name && (list->name[0] != first || !rec_str_is(name, list->name)))
        list++;
    return list->name ? list : NULL;
}

/* A kind has the keys of its own row, and those of its type's row. */
const struct rec_field_spec *
rec_key_spec(const struct rec *rec, struct rec_str key)
{
    const struct rec_spec *spec = rec->spec;
    const struct rec_field_spec *found = spec ? rec_list_find(spec->keys, key) : NULL;
    if (!found && spec && spec->kind)
        found = rec_list_find(table[spec->type].keys, key);
    return found;
}
