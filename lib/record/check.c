/*
 * Validates one record against the table of records.
 *
 * Every tool makes the cheap checks when it reads a record (rec_need, rec_get_*): they
 * need only the line and its row. rec_check() makes all checks, of fields that the caller
 * does not read, too. The checks of a whole line run on every record of every tool, so
 * they look at 8 or 16 bytes at a time.
 */
#include "private.h"

#include <endian.h>
#include <stdio.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const char *const kind_text[] = {
    [REC_KIND_ID] = "an id (not empty, no comma, no '=')",
    [REC_KIND_IDS] = "ids separated by commas",
    [REC_KIND_NAMES] = "COUNT ids separated by commas",
    [REC_KIND_NUMBER] = "a number",
    [REC_KIND_AMOUNT] = "a number >= 0",
    [REC_KIND_LATER] = "a number >= the field before it",
    [REC_KIND_PAST] = "a number from 0 to TIME",
    [REC_KIND_LIMIT] = "a number >= 0 or inf",
    [REC_KIND_COUNT] = "an integer >= 0",
    [REC_KIND_FRACTION] = "a number from 0 to 1",
    [REC_KIND_PART] = "I/N with 1 <= I <= N",
    [REC_KIND_PRODUCT] = "BATCHxMxNxK, integers >= 1",
    [REC_KIND_PASS] = "forward, backward or task",
    [REC_KIND_EXCHANGE] =
        ("all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, barrier "
         "or send"),
    [REC_KIND_ACCOUNT] = "useful, wasted, reconfiguring or stalled",
    [REC_KIND_TEXT] = "text",
};

const char *
rec_kind_text(enum rec_kind kind)
{
    return kind_text[kind];
}

const char *
rec_exchange_name(size_t i)
{
    static const char *const name[] = {"all-reduce", "all-gather", "reduce-scatter",
                                       "all-to-all", "broadcast",  "reduce",
                                       "barrier",    "send"};
    return i < sizeof name / sizeof *name ? name[i] : NULL;
}

static bool
is_exchange(struct rec_str s)
{
    size_t i = 0;
    while (rec_exchange_name(i) && !rec_str_is(s, rec_exchange_name(i)))
        i++;
    return rec_exchange_name(i) != NULL;
}

/* Is the text an id: not empty, without comma and '='? */
static bool
is_id(struct rec_str s)
{
    /* A plain loop: most ids are too short for memchr() to be faster. */
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == ',' || s.ptr[i] == '=')
            return false;
    return s.len > 0;
}

void
rec_clean_id(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == ',' || *p == '=' || (unsigned char)*p < ' ' || *p == 0x7f)
            *p = '_';
}

bool
rec_parse_part(struct rec_str s, uint64_t *part, uint64_t *parts)
{
    struct rec_str first;
    return rec_str_split(&s, '/', &first) && rec_parse_uint(first, part) && s.ptr &&
           rec_parse_uint(s, parts) && *part >= 1 && *part <= *parts;
}

bool
rec_parse_product(struct rec_str s, uint64_t shape[4])
{
    struct rec_str part;
    for (int i = 0; i < 4; i++)
        if (!rec_str_split(&s, 'x', &part) || !rec_parse_uint(part, &shape[i]) ||
            shape[i] == 0)
            return false;
    return !s.ptr;
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

bool
rec_is_kind(struct rec_str s, enum rec_kind kind)
{
    uint64_t n[4];
    double x;
    switch (kind) {
    case REC_KIND_ID: return is_id(s);
    case REC_KIND_IDS:
    case REC_KIND_NAMES: return is_ids(s);
    case REC_KIND_NUMBER:
    case REC_KIND_AMOUNT:
    case REC_KIND_LATER:
    case REC_KIND_PAST:
    case REC_KIND_LIMIT:
    case REC_KIND_COUNT:
    case REC_KIND_FRACTION: return rec_parse_number(s, kind, &x);
    case REC_KIND_PART: return rec_parse_part(s, &n[0], &n[1]);
    case REC_KIND_PRODUCT: return rec_parse_product(s, n);
    case REC_KIND_PASS:
        return rec_str_is(s, "forward") || rec_str_is(s, "backward") ||
               rec_str_is(s, "task");
    case REC_KIND_EXCHANGE: return is_exchange(s);
    case REC_KIND_ACCOUNT:
        return rec_str_is(s, "useful") || rec_str_is(s, "wasted") ||
               rec_str_is(s, "reconfiguring") || rec_str_is(s, "stalled");
    case REC_KIND_TEXT: return true;
    }
    return false;
}

/* The length in bytes of the UTF-8 character at `p`; 0 if it is malformed or a control
 * character. Overlong forms, surrogates and code points above U+10FFFF are malformed
 * (RFC 3629). */
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

/* Are all bytes printable ASCII or TABs? This is the quick test that most lines pass; the
 * others are decoded as UTF-8. */
static bool
is_plain(const char *p, size_t n)
{
#ifdef __SSE2__
    const __m128i below = _mm_set1_epi8(0x1f), del = _mm_set1_epi8(0x7f),
                  tab = _mm_set1_epi8('\t');
    while (n >= 16) {
        size_t step = n >= 32 || n == 16 ? 16 : n - 16; /* the last two may overlap */
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p), good;
        good = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, del), _mm_cmpgt_epi8(bytes, below));
        good = _mm_or_si128(good, _mm_cmpeq_epi8(bytes, tab));
        if (_mm_movemask_epi8(good) != 0xffff)
            return false;
        p += step;
        n -= step;
    }
#endif
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || (unsigned char)p[i] >= 0x7f)
            return false;
    return true;
}

bool
rec_is_text(struct rec_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (is_plain(s.ptr, s.len))
        return true;
    for (size_t i = 0, n; i < s.len; i += n)
        if ((n = utf8_length(p + i, s.len - i)) == 0)
            return false;
    return true;
}

/* ---- rules for a whole record: its keys, and fields that depend on others ------- */

/* Do two key=value fields have the same key? */
static bool
same_key(struct rec_str a, struct rec_str b)
{
    const char *equal = memchr(a.ptr, '=', a.len);
    size_t len = equal ? (size_t)(equal - a.ptr) + 1 : a.len;
    return equal && b.len >= len && memcmp(a.ptr, b.ptr, len) == 0;
}

static bool
fail_twice(const struct rec_reader *reader, struct rec_str field, struct rec_error *err)
{
    struct rec_str key;
    rec_str_split(&field, '=', &key);
    return rec_reader_fail(reader, err, "the key '%.*s' is there twice", REC_SAID(key));
}

/* As check_keys(), for records with many keys: comparing all pairs would let one long
 * line take quadratic time. */
static bool
check_many_keys(const struct rec_reader *reader, const struct rec *rec, size_t first,
                struct rec_error *err)
{
    struct rec_map seen = {0};
    bool ok = true;
    for (size_t i = first; ok && i < rec->nfields; i++) {
        struct rec_str rest = rec->field[i], key;
        if (!rec_str_split(&rest, '=', &key) || !rest.ptr)
            continue; /* not key=value: rec_next_key() reports it */
        ok = rec_map_get(&seen, key) == REC_NONE ? rec_map_add(&seen, key, 0, err)
                                                 : fail_twice(reader, rec->field[i], err);
    }
    rec_map_free(&seen);
    return ok;
}

/* The first 8 bytes of a key as a number, with 0 for the bytes of '=' and behind it. The
 * function always reads 8 bytes, which may lie behind the field: the reader keeps PAD
 * readable bytes behind its data. */
static uint64_t
key_prefix(struct rec_str field)
{
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    uint64_t bytes, equal;
    memcpy(&bytes, field.ptr, 8);
    bytes = le64toh(bytes);
    /* Bytes that are '=' become zero bytes; the usual test for zero bytes then sets the
     * top bit of each. Only the lowest of these bits is reliable, and it is all we need:
     * it belongs to the first '='. */
    equal = bytes ^ ones * '=';
    equal = (equal - ones) & ~equal & tops;
    return equal ? bytes & (((equal & -equal) >> 7) - 1) : bytes;
}

/* Does the field hold a '=' with a key before it? This runs on every key of every record,
 * and most keys are shorter than 16 bytes, so the first 16 bytes are compared at once
 * (they may be read, see key_prefix()). */
static inline bool
is_key_value(struct rec_str field)
{
    size_t seen = 0;
    const char *equal;
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)field.ptr);
    unsigned mask =
        (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('=')));
    seen = mask ? (size_t)__builtin_ctz(mask) : 16;
    if (mask || field.len <= 16)
        return seen > 0 && seen < field.len;
#endif
    equal = field.len ? memchr(field.ptr + seen, '=', field.len - seen) : NULL;
    return equal && equal != field.ptr;
}

bool
rec_check_extra(const struct rec_reader *reader, const struct rec *rec,
                struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec;
    if (!spec || !(spec->kind || spec->example))
        return true;
    for (size_t i = spec->nfields + 1; i < rec->nfields; i++)
        if (!is_key_value(rec->field[i]))
            return rec_fail_extra(reader, rec, rec->field[i], err);
    return true;
}

/* Checks that no key occurs twice. `seen` is a filter of 64 bits: each key sets the bit
 * that its first 8 bytes hash to. A key is compared with those before it only if its bit
 * is set already, and by its first 8 bytes before all of it. */
static bool
check_keys(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    enum { FEW = 64 };
    const struct rec_str *field = rec->field + rec->spec->nfields + 1;
    size_t n = rec->nfields - rec->spec->nfields - 1;
    uint64_t seen = 0, prefix[FEW];

    if (n > FEW)
        return check_many_keys(reader, rec, rec->spec->nfields + 1, err);
    for (size_t i = 0; i < n; i++) {
        uint64_t key = prefix[i] = key_prefix(field[i]);
        uint64_t bit = (uint64_t)1 << (key * 0x9e3779b97f4a7c15u >> 58);
        for (size_t j = 0; (seen & bit) && j < i; j++)
            if (prefix[j] == key && same_key(field[j], field[i]))
                return fail_twice(reader, field[i], err);
        seen |= bit;
    }
    return true;
}

bool
rec_check_line(const struct rec_reader *reader, const struct rec *rec,
               struct rec_error *err)
{
    if (!rec_is_text(rec->line))
        return rec_reader_fail(reader, err,
                               "a line must be UTF-8 without control characters");
    return !rec->spec || rec->nfields <= rec->spec->nfields + 2 ||
           check_keys(reader, rec, err);
}

/* The index, from 1, of the field that bounds a number: a LATER number must not be less
 * than it, a PAST number must not be more. 0: no field does. */
static size_t
bound(const struct rec *rec, const struct rec_field_spec *spec)
{
    const struct rec_field_spec *fields = rec->spec->fields;
    if (spec->kind == REC_KIND_LATER)
        return (size_t)(spec - fields);
    for (size_t i = 0; spec->kind == REC_KIND_PAST && i < rec->spec->nfields; i++)
        if (strcmp(fields[i].name, "TIME") == 0)
            return i + 1;
    return 0;
}

static bool
fail_order(const struct rec_reader *reader, const struct rec *rec,
           const struct rec_field_spec *spec, double value, double other,
           struct rec_error *err)
{
    bool later = spec->kind == REC_KIND_LATER;
    return rec_reader_fail(reader, err, "%s must not be %s %s: %.17g %s %.17g",
                           spec->name, later ? "before" : "after",
                           rec->spec->fields[bound(rec, spec) - 1].name, value,
                           later ? "<" : ">", other);
}

bool
rec_check_order(const struct rec_reader *reader, const struct rec *rec,
                const struct rec_field_spec *spec, double value, struct rec_error *err)
{
    size_t i = bound(rec, spec);
    double other;
    return i == 0 || !rec_parse_num(rec->field[i], &other) ||
           (spec->kind == REC_KIND_LATER ? value >= other : value <= other) ||
           fail_order(reader, rec, spec, value, other, err);
}

bool
rec_get_later(const struct rec_reader *reader, const struct rec *rec, size_t index,
              double before, double *value, struct rec_error *err)
{
    const struct rec_field_spec *spec = &rec->spec->fields[index - 1];
    if (!rec_parse_number(rec->field[index], spec->kind, value))
        return rec_bad_field(reader, rec, index, err);
    return *value >= before || fail_order(reader, rec, spec, *value, before, err);
}

/* Checks that a list of NAMES has as many ids as the record's field COUNT says. */
static bool
check_names(const struct rec_reader *reader, const struct rec *rec,
            const struct rec_field_spec *spec, struct rec_str text, struct rec_error *err)
{
    uint64_t n = 1, count;
    size_t i = 0;
    while (strcmp(rec->spec->fields[i].name, "COUNT") != 0)
        i++;
    for (const char *p = text.ptr;
         (p = memchr(p, ',', (size_t)(text.ptr + text.len - p))); p++)
        n++;
    return rec_get_count(reader, rec, i + 1, &count, err) &&
           (n == count ||
            rec_reader_fail(reader, err, "%.*s: COUNT is %llu, but %s= names %llu",
                            (int)rec->field[0].len, rec->field[0].ptr,
                            (unsigned long long)count, spec->name,
                            (unsigned long long)n));
}

/* ---- a field, a record --------------------------------------------------- */

bool
rec_check_text(const struct rec_reader *reader, const struct rec *rec,
               const struct rec_field_spec *spec, struct rec_str text,
               struct rec_error *err)
{
    if (!rec_is_kind(text, spec->kind))
        return rec_bad_text(reader, rec, spec, text, err);
    switch (spec->kind) {
    case REC_KIND_LATER:
    case REC_KIND_PAST: {
        double value;
        return rec_read_number(reader, rec, spec, text, &value, err);
    }
    case REC_KIND_NAMES: return check_names(reader, rec, spec, text, err);
    default: return true;
    }
}

bool
rec_get_id(const struct rec_reader *reader, const struct rec *rec, size_t index,
           struct rec_str *id, struct rec_error *err)
{
    *id = rec->field[index];
    return rec_check_text(reader, rec, &rec->spec->fields[index - 1], *id, err);
}

bool
rec_key_ids(const struct rec_reader *reader, const struct rec *rec, const char *key,
            struct rec_str *ids, struct rec_error *err)
{
    *ids = (struct rec_str){NULL, 0};
    return !rec_find_key(rec, key, ids) ||
           rec_check_text(reader, rec, rec_key_spec(rec, rec_str(key)), *ids, err);
}

/* If the record's type has kinds, its first field must name one of them. The message
 * lists the kinds: "elastic or redundant". */
static bool
check_kind(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec, *kind;
    char list[200] = "";
    size_t used = 0;
    /* A row of a kind was found, or the type has no kinds: then its row has an
     * example. */
    if (spec->kind || spec->example)
        return true;
    for (size_t i = 0; (kind = rec_spec_of_kind(rec->type, i)) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 !i                                   ? ""
                                 : rec_spec_of_kind(rec->type, i + 1) ? ", "
                                                                      : " or ",
                                 kind->kind);
    return rec_reader_fail(reader, err, "%s of %s must be %s, got '%.*s'",
                           spec->fields[0].name, spec->name, list,
                           REC_SAID(rec->field[1]));
}

bool
rec_check(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct rec_spec *spec = rec->spec;
    const struct rec_field_spec *known;
    struct rec_str key, value;
    size_t at = 0;
    int status;

    if (!spec)
        return rec_check_line(reader, rec, err);
    if (!rec_need(reader, rec, err) || !check_kind(reader, rec, err))
        return false;
    for (size_t i = 0; i < spec->nfields; i++)
        if (!rec_check_text(reader, rec, &spec->fields[i], rec->field[i + 1], err))
            return false;
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if ((known = rec_key_spec(rec, key)) &&
            !rec_check_text(reader, rec, known, value, err))
            return false;
    return status == 0;
}
