/* Every row of the table of records: its example is right, and wrong when damaged. */
#include "stream.h"

/* Reads a comment and then `line`, checks it. The error is empty if it is right. */
static struct rec_error
check_line(const char *line, size_t len)
{
    static const char *const files[] = {"rec"};
    struct rec_error err = {0};
    struct rec_reader *reader;
    struct rec rec;
    char *text = malloc(len + 20);

    assert_non_null(text);
    memcpy(text, "# first\n", 8);
    memcpy(text + 8, line, len);
    text[8 + len] = '\n';
    write_file("rec", text, len + 9);
    free(text);
    reader = rec_reader_open(files, 1, NULL, &err);
    assert_non_null(reader);
    assert_int_equal(rec_next(reader, &rec, &err), 1);
    assert_true(rec_check(reader, &rec, &err));
    if (rec_next(reader, &rec, &err) == 1 && rec_check(reader, &rec, &err))
        err.text[0] = '\0';
    rec_reader_close(reader);
    return err;
}

static void
expect_right(const char *line)
{
    struct rec_error err = check_line(line, strlen(line));
    if (err.text[0])
        fail_msg("'%s': %s", line, err.text);
}

static void
expect_wrong(const char *line, const char *part)
{
    struct rec_error err = check_line(line, strlen(line));
    if (err.code != REC_DATA || strncmp(err.text, "rec:2: ", 7) != 0 ||
        !strstr(err.text, part))
        fail_msg("'%s': '%s', expected '%s'", line, err.text, part);
}

/* `example` with its field `index` (0: the type) replaced; NULL removes it. free() it. */
static char *
replace_field(const char *example, size_t index, const char *text)
{
    struct rec_str rest = rec_str(example), field;
    char *line = malloc(strlen(example) + (text ? strlen(text) : 0) + 2), *p = line;
    assert_non_null(line);
    for (size_t i = 0; rec_str_split(&rest, '\t', &field); i++) {
        if (i == index && !text)
            continue;
        if (p > line)
            *p++ = '\t';
        if (i == index)
            field = rec_str(text);
        memcpy(p, field.ptr, field.len);
        p += field.len;
    }
    *p = '\0';
    return line;
}

/* Values that a kind refuses. */
static const char *const *
wrong_values(enum rec_kind kind)
{
    static const char *const id[] = {"", "a,b", "a=b", NULL};
    static const char *const ids[] = {"", "a,", ",a", "a,,b", "a=b", NULL};
    static const char *const number[] = {"",    "x",  "12x",   "inf",
                                         "nan", " 1", "1e999", NULL};
    static const char *const amount[] = {"", "-1", "12x", "inf", "-inf", "+1", NULL};
    static const char *const limit[] = {"", "-1", "-inf", "12x", "infinity", NULL};
    static const char *const count[] = {
        "", "-1", "1.5", "1e3", "inf", "x", "18446744073709551616", NULL};
    static const char *const fraction[] = {"", "-0.1", "1.1", "inf", "x", NULL};
    static const char *const part[] = {"", "1", "0/2", "3/2", "1/", "/2", "1/2/3", NULL};
    static const char *const product[] = {"",          "1",       "1x2x3",
                                          "1x2x3x4x5", "0x1x1x1", "1x2x3x1.5",
                                          "1x2x3x-4",  "1x2x3x",  NULL};
    static const char *const pass[] = {"", "Forward", "both", NULL};
    static const char *const exchange[] = {"", "allreduce", "All-reduce", NULL};
    static const char *const account[] = {"", "Useful", "idle", NULL};
    static const char *const text[] = {NULL};
    switch (kind) {
    case REC_KIND_ID: return id;
    case REC_KIND_IDS:
    case REC_KIND_NAMES: return ids;
    case REC_KIND_NUMBER: return number;
    case REC_KIND_LATER:
    case REC_KIND_PAST:
    case REC_KIND_AMOUNT: return amount;
    case REC_KIND_LIMIT: return limit;
    case REC_KIND_COUNT: return count;
    case REC_KIND_FRACTION: return fraction;
    case REC_KIND_PART: return part;
    case REC_KIND_PRODUCT: return product;
    case REC_KIND_PASS: return pass;
    case REC_KIND_EXCHANGE: return exchange;
    case REC_KIND_ACCOUNT: return account;
    case REC_KIND_TEXT: return text;
    }
    return text;
}

/* Every row that records are checked by: a type's own, or those of its kinds. */
struct row {
    const char *word;
    const struct rec_spec *spec;
};

static size_t
all_rows(struct row *rows)
{
    size_t n = 0;
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        const struct rec_spec *spec = rec_spec(type), *kind;
        if (spec->example)
            rows[n++] = (struct row){spec->name, spec};
        for (size_t i = 0; (kind = rec_spec_of_kind(type, i)); i++)
            rows[n++] = (struct row){spec->name, kind};
    }
    return n;
}

static struct row rows[200];
static size_t nrows;

static int
find_rows(void **state)
{
    (void)state;
    nrows = all_rows(rows);
    return 0;
}

static void
examples_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < nrows; i++) {
        const struct rec_spec *spec = rows[i].spec;
        size_t len = strlen(rows[i].word);
        assert_non_null(spec->about);
        assert_memory_equal(spec->example, rows[i].word, len);
        assert_int_equal(spec->example[len], '\t');
        if (spec->kind)
            assert_memory_equal(spec->example + len + 1, spec->kind, strlen(spec->kind));
        expect_right(spec->example);
    }
    assert_null(rec_spec(REC_OTHER));
    assert_null(rec_spec(REC_COMMENT));
    assert_null(rec_spec(REC_MARK));
    assert_null(rec_spec(REC_NTYPES));
}

/* Words are unique, names too within a row; a type without an example has kinds. */
static void
names_are_unique(void **state)
{
    (void)state;
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        assert_true(rec_spec(type)->example || rec_spec_of_kind(type, 0));
        for (enum rec_type other = REC_MARK + 1; other < type; other++)
            assert_string_not_equal(rec_spec(type)->name, rec_spec(other)->name);
    }
    for (size_t i = 0; i < nrows; i++) {
        const struct rec_spec *spec = rows[i].spec;
        const struct rec_field_spec *base = rec_spec(spec->type)->keys;
        assert_null(spec->fields[spec->nfields].name);
        for (size_t j = 0; spec->keys[j].name; j++)
            for (size_t k = 0; k < j; k++)
                assert_string_not_equal(spec->keys[j].name, spec->keys[k].name);
        for (size_t j = 0; spec->kind && spec->keys[j].name; j++)
            for (size_t k = 0; base[k].name; k++)
                assert_string_not_equal(spec->keys[j].name, base[k].name);
    }
}

static void
a_missing_field_is_refused(void **state)
{
    (void)state;
    for (size_t r = 0; r < nrows; r++) {
        const struct rec_spec *spec = rows[r].spec;
        char *line = strdup(spec->example), *end = line;
        for (size_t i = 0; i <= spec->nfields; i++)
            end += strcspn(end + (i > 0), "\t") + (i > 0);
        for (size_t have = spec->nfields; have-- > 0;) { /* the first `have` only */
            *end = '\0';
            *strrchr(line, '\t') = '\0';
            end = line + strlen(line);
            char want[100];
            snprintf(want, sizeof want, "%s needs %zu fields", rows[r].word,
                     have > 0 ? spec->nfields : rec_spec(spec->type)->nfields);
            expect_wrong(line, want);
        }
        free(line);
    }
}

static void
a_wrong_field_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t r = 0; r < nrows; r++) {
        const struct rec_spec *spec = rows[r].spec;
        for (size_t i = spec->kind != NULL; i < spec->nfields; i++)
            for (const char *const *v = wrong_values(spec->fields[i].kind); *v; v++) {
                char want[200], *line = replace_field(spec->example, i + 1, *v);
                snprintf(want, sizeof want, "%s must be %s, got '%s'",
                         spec->fields[i].name, rec_kind_text(spec->fields[i].kind), *v);
                expect_wrong(line, want);
                free(line);
            }
    }
    expect_wrong(
        "cluster\tring\t4\t4\t2\t1\t1",
        "KIND of cluster must be ramp, island, fat-tree, rail, torus, dragonfly or "
        "custom, got 'ring'");
    expect_wrong("trained\tidle\t0\t1\t2",
                 "MODEL of trained must be elastic or redundant");
}

/* A field that is wrong is named with its record, whose id is not wrong itself. */
static void
the_record_is_named(void **state)
{
    (void)state;
    expect_wrong("op\tg\t12\tforward\t12x\t1",
                 "rec:2: op '12': COMPUTE must be a number >= 0, got '12x'");
    expect_wrong("alloc\t7\tg\tL\tx\ts", "rec:2: alloc '7': TIME must be");
    expect_wrong("op\tg\t12\tforward\t1\t1\tparam=x", "rec:2: op '12': param must be");
    expect_wrong("op\tg\t\tforward\t1\t1", "rec:2: ID must be");
    expect_wrong("dep\tg\ta\tb\tx", "rec:2: BYTES must be");
}

/* The example of a row, its fixed fields alone. */
static const char *
bare(const struct rec_spec *spec)
{
    static char line[1000];
    const char *end = spec->example;
    for (size_t i = 0; i <= spec->nfields; i++)
        end += strcspn(end + (i > 0), "\t") + (i > 0);
    snprintf(line, sizeof line, "%.*s", (int)(end - spec->example), spec->example);
    return line;
}

static void
wrong_keys(const struct rec_spec *spec, const struct rec_field_spec *keys)
{
    char line[2000], want[200];
    for (size_t i = 0; keys[i].name; i++)
        for (const char *const *v = wrong_values(keys[i].kind); *v; v++) {
            snprintf(line, sizeof line, "%s\tunknown=,\t%s=%s", bare(spec), keys[i].name,
                     *v);
            snprintf(want, sizeof want, "%s must be", keys[i].name);
            expect_wrong(line, want);
        }
}

static void
a_wrong_key_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t r = 0; r < nrows; r++) {
        const struct rec_spec *spec = rows[r].spec;
        char line[1000];
        wrong_keys(spec, spec->keys);
        if (spec->kind)
            wrong_keys(spec, rec_spec(spec->type)->keys);
        snprintf(line, sizeof line, "%s\tno key", spec->example);
        expect_wrong(line, "each field must be key=value, got 'no key'");
        snprintf(line, sizeof line, "%s\t=no key", spec->example);
        expect_wrong(line, "each field must be key=value, got '=no key'");
    }
}

/* A key stands once, among few and among many, known or not. */
static void
a_key_is_there_once(void **state)
{
    char line[4000];
    size_t n;
    (void)state;
    for (size_t r = 0; r < nrows; r++) {
        snprintf(line, sizeof line, "%s\tk=1\tkey=2\tke=\tkez=2", bare(rows[r].spec));
        expect_right(line);
        snprintf(line, sizeof line, "%s\tk=1\tkey=2\tk=1", bare(rows[r].spec));
        expect_wrong(line, "rec:2: the key 'k' is there twice");
        snprintf(line, sizeof line, "%s\tkey=\tkey=2", bare(rows[r].spec));
        expect_wrong(line, "rec:2: the key 'key' is there twice");
    }
    for (size_t many = 60; many <= 70; many++) {
        n = (size_t)snprintf(line, sizeof line, "graph\tg\tm");
        for (size_t i = 0; i < many; i++)
            n += (size_t)snprintf(line + n, sizeof line - n, "\tkey%zu=%zu", i, i);
        expect_right(line);
        for (size_t i = 0; i < many; i += many / 6) {
            snprintf(line + n, sizeof line - n, "\tkey%zu=", i);
            expect_wrong(line, "is there twice");
        }
    }
}

/* What is said of a neighbour is in order: times, names and their number. */
static void
neighbours_agree(void **state)
{
    (void)state;
    expect_right("done\t7\tg\t1\t1\t1");
    expect_wrong("done\t7\tg\t1\t0.9\t2", "START must not be before ARRIVAL: 0.9");
    expect_wrong("done\t7\tg\t1\t2\t1.5", "FINISH must not be before START: 1.5 < 2");
    expect_wrong("run\t7\to\ts\t2\t1", "END must not be before START: 1 < 2");
    expect_wrong("trace\t2\t1", "END must not be before START: 1 < 2");
    expect_wrong("trained\telastic\t2\t1\t5", "END must not be before START: 1 < 2");
    expect_right("block\t7\t2\tdeadline\tarrival=2\tstart=2");
    expect_wrong("block\t7\t2\tdeadline\tarrival=2.5",
                 "arrival must not be after TIME: 2.5 > 2");
    expect_wrong("block\t7\t2\tunfinished\tstart=3", "start must not be after TIME");
    expect_right("add\t1\t2\tids=a,b");
    expect_wrong("add\t1\t2\tids=a", "COUNT is 2, but ids= names 1");
    expect_wrong("preempt\t1\t1\tids=a,b", "COUNT is 1, but ids= names 2");
}

static void
text_is_utf8(void **state)
{
    static const char *const good[] = {
        "a line of more than sixteen bytes, all of them printable",
        "é",
        "日本",
        "\xf0\x9f\x98\x80",
        "\xef\xbf\xbf",
        "\xf4\x8f\xbf\xbf",
        " ",
        "~"};
    static const char *const bad[] = {"\xff",
                                      "\x80",
                                      "\xc3",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\x01",
                                      "\x7f",
                                      "\x1b[31m",
                                      "0123456789\x7f",
                                      "0123456789abcdef\x1f",
                                      "\x02 0123456789abcdef0123456789abcdef",
                                      "\xe6\x97",
                                      "a\xc3\tb=c"};
    char line[100];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(line, sizeof line, "graph\tg\t%s", good[i]);
        expect_right(line);
        snprintf(line, sizeof line, "other\t%s", good[i]);
        expect_right(line);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, "graph\tg\t%s", bad[i]);
        expect_wrong(line, "UTF-8");
        snprintf(line, sizeof line, "other\t%s", bad[i]);
        expect_wrong(line, "UTF-8");
    }
    assert_int_equal(check_line("other\ta\0b", 9).code, REC_DATA);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_right),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(the_record_is_named),
        cmocka_unit_test(a_missing_field_is_refused),
        cmocka_unit_test(a_wrong_field_is_refused_by_name),
        cmocka_unit_test(a_wrong_key_is_refused_by_name),
        cmocka_unit_test(a_key_is_there_once),
        cmocka_unit_test(neighbours_agree),
        cmocka_unit_test(text_is_utf8),
    };
    return cmocka_run_group_tests(tests, find_rows, NULL);
}
