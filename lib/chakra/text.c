/* Texts of files: what goes into records is checked or cleaned. */
#include "said.h"

#include <stdlib.h>

/* Copies a text to the arena of the traces. NULL: *err. */
const char *
chakra_keep(struct chakra_reading *r, const char *text)
{
    return rec_arena_copy(&r->traces->arena, rec_str(text), r->err);
}

/* Closes a text and copies it to the arena, as *kept. */
bool
chakra_keep_written(struct chakra_reading *r, struct rec_text *text, const char **kept)
{
    char *written = rec_text_close(text, r->err);
    *kept = written ? chakra_keep(r, written) : NULL;
    free(written);
    return *kept != NULL;
}

/* Writes a foreign name as text of a record: bytes that no field may hold, such as
 * control characters and damaged UTF-8, become _. */
void
chakra_put_clean(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if (c >= 0x80 && strnlen(text, n) == n &&
            rec_is_text((struct rec_str){text, n})) {
            fwrite(text, 1, n, out);
            text += n - 1;
        } else
            fputc(c < ' ' || c >= 0x7f ? '_' : c, out);
    }
}

/* Refuses an id in an attribute rampipe.* that no record may hold: such a file was
 * changed after chakra_write() wrote it. */
bool
chakra_check_id(struct chakra_reading *r, const struct chakra_node *node,
                const char *text)
{
    return (rec_is_text(rec_str(text)) && *text && !strpbrk(text, ",=\t")) ||
           chakra_fail(r->traces, node, r->err,
                       "an attribute rampipe.* is not a valid id");
}

/* Checks one key of a record of the type of `spec`: *good becomes whether it is there
 * once and has a value of its kind. False: *err. */
static bool
check_key(const struct rec_spec *spec, struct rec_str text, struct rec_map *seen,
          bool *good, struct rec_error *err)
{
    /* keys that struct graph_op has as members, and that have attributes of their own */
    static const char *const taken[] = {"pair", "of", "part", "param", "activation"};
    struct rec_str name, value = text;
    *good = rec_str_split(&value, '=', &name) && value.ptr && name.len > 0 &&
            rec_map_get(seen, name) == REC_NONE;
    for (size_t i = 0; *good && spec->type == REC_OP && i < sizeof taken / sizeof *taken;
         i++)
        *good = !rec_str_is(name, taken[i]);
    if (spec->type == REC_DEP && seen->used > 0 && rec_str_is(name, "kind"))
        *good = false; /* kind= must be the first key of a dep */
    for (const struct rec_field_spec *key = spec->keys; *good && key->name; key++)
        if (rec_str_is(name, key->name))
            *good = rec_is_kind(value, key->kind);
    return !*good || rec_map_add(seen, name, 0, err);
}

/* Checks a list of keys in an attribute rampipe.*, each of which follows a TAB. */
bool
chakra_check_keys(struct chakra_reading *r, enum rec_type type, const char *keys)
{
    struct rec_str rest = rec_str(keys), key;
    struct rec_map seen = {0};
    bool good = rec_is_text(rest), ok = true;
    if (!*keys)
        return true;
    good = good && rec_str_split(&rest, '\t', &key) && key.len == 0 && rest.ptr;
    while (ok && good && rec_str_split(&rest, '\t', &key))
        ok = check_key(rec_spec(type), key, &seen, &good, r->err);
    rec_map_free(&seen);
    return ok &&
           (good || rec_fail(r->err, REC_DATA,
                             "%s: message %llu: an attribute rampipe.* is not a list "
                             "of keys of a record",
                             r->name, (unsigned long long)r->messages));
}
