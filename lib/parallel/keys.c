/* Reads the keys of a training record. */
#include "keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t
parallel_key_count(struct parallel_key *f, const char *key, uint32_t without)
{
    uint64_t value = without;
    f->ok = f->ok && rec_key_count(f->reader, f->rec, key, &value, f->err) &&
            (value <= INT32_MAX ||
             rec_reader_fail(f->reader, f->err, "%s is too large", key));
    return f->ok ? (uint32_t)value : 0;
}

/* A count that must be there, and at least 1. */
uint32_t
parallel_key_needed(struct parallel_key *f, const char *key)
{
    uint32_t value = parallel_key_count(f, key, 0);
    if (f->ok && value == 0)
        f->ok =
            rec_reader_fail(f->reader, f->err, "a question needs %s=, at least 1", key);
    return value;
}

/* A degree: 1 without its key. */
uint32_t
parallel_key_degree(struct parallel_key *f, const char *key)
{
    uint32_t value = parallel_key_count(f, key, 1);
    if (f->ok && value == 0)
        f->ok = rec_reader_fail(f->reader, f->err, "%s must be at least 1", key);
    return value;
}

/* Which of the words of a list the value is; the first without the key. */
unsigned
parallel_key_word(struct parallel_key *f, const char *key, const char *const *list)
{
    struct rec_str value;
    char all[120] = "";
    unsigned i = 0;
    if (!f->ok || !rec_find_key(f->rec, key, &value))
        return 0;
    while (list[i] && !rec_str_is(value, list[i]))
        i++;
    if (list[i])
        return i;
    for (i = 0; list[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "",
                 list[i]);
    f->ok = rec_reader_fail(f->reader, f->err, "%s must be one of %s, got '%.*s'", key,
                            all, REC_SAID(value));
    return 0;
}

/* True if one of the words of a list with commas is this one. */
bool
parallel_key_lists(const char *list, struct rec_str wanted)
{
    struct rec_str rest = rec_str(list), part;
    while (rec_str_split(&rest, ',', &part))
        if (part.len == wanted.len && memcmp(part.ptr, wanted.ptr, part.len) == 0)
            return true;
    return false;
}

/* Bits of the words that the value lists; `without` of a record without the key. */
unsigned
parallel_key_words(struct parallel_key *f, const char *key, const char *const *list,
                   unsigned without)
{
    struct rec_str value, part;
    unsigned sum = 0;
    if (!f->ok || !rec_find_key(f->rec, key, &value))
        return without;
    while (f->ok && rec_str_split(&value, ',', &part)) {
        unsigned i = 0;
        while (list[i] && !rec_str_is(part, list[i]))
            i++;
        if (!list[i] && !rec_str_is(part, "none"))
            f->ok = rec_reader_fail(f->reader, f->err, "%s has an unknown word '%.*s'",
                                    key, REC_SAID(part));
        sum |= list[i] ? 1U << i : 0;
    }
    return sum;
}

uint32_t *
parallel_key_counts(struct parallel_key *f, const char *key, size_t *n)
{
    struct rec_str value, part;
    uint32_t *list = NULL;
    size_t room = 0;
    *n = 0;
    if (!f->ok || !rec_find_key(f->rec, key, &value))
        return NULL;
    while (f->ok && rec_str_split(&value, ',', &part)) {
        uint32_t number = 0;
        bool digits = part.len > 0 && part.len < 8;
        for (size_t i = 0; digits && i < part.len; i++) {
            digits = part.ptr[i] >= '0' && part.ptr[i] <= '9';
            number = 10 * number + (uint32_t)(part.ptr[i] - '0');
        }
        if (!digits)
            f->ok = rec_reader_fail(f->reader, f->err,
                                    "%s must be counts with commas between, got '%.*s'",
                                    key, REC_SAID(part));
        else if ((f->ok = rec_grow(&list, &room, *n + 1, sizeof *list, f->err)))
            list[(*n)++] = number;
    }
    if (f->ok)
        return list;
    free(list);
    return NULL;
}
