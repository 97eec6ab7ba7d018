/* YAML as a tree: lines, what is text, what is refused. */
#include "unit.h"

#include "rampipe/yaml.h"

static char shown[4000];
static size_t used;

static void
show(const char *text)
{
    used += (size_t)snprintf(shown + used, sizeof shown - used, "%s", text);
}

static void
show_value(const struct yaml_value *value)
{
    char line[30];
    if (value->key) {
        show(value->key);
        show("=");
    }
    snprintf(line, sizeof line, "%llu%s", (unsigned long long)value->line,
             value->kind == YAML_LIST  ? "["
             : value->kind == YAML_MAP ? "{"
             : value->plain            ? ":"
                                       : "'");
    show(line);
    if (value->kind == YAML_TEXT)
        show(value->text);
    for (const struct yaml_value *item = value->item; item; item = item->next) {
        show_value(item);
        show(item->next ? " " : "");
    }
    show(value->kind == YAML_LIST ? "]" : value->kind == YAML_MAP ? "}" : "");
}

/* The documents of some bytes: a line and : or ' before each text, or "!message". */
static const char *
tree_of(const char *bytes, size_t len)
{
    static const char *const file = "x.yaml";
    struct rec_error err;
    struct rec_reader *reader;
    struct yaml_source *source;
    const struct yaml_value *value;
    int status;

    write_file(file, bytes, len);
    reader = rec_reader_open(&file, 1, &(struct rec_reader_options){0}, &err);
    assert_non_null(reader);
    source = yaml_source_new(reader, &err);
    assert_non_null(source);
    used = 0;
    shown[0] = '\0';
    while ((status = yaml_source_next(source, &value, &err)) > 0) {
        show(used ? " | " : "");
        show_value(value);
    }
    if (status < 0) {
        show("!");
        show(err.text);
        assert_true(err.code == REC_DATA || err.code == REC_IO);
    } else
        assert_int_equal(yaml_source_next(source, &value, &err), 0);
    yaml_source_free(source);
    rec_reader_close(reader);
    return shown;
}

static const char *
tree(const char *text)
{
    return tree_of(text, strlen(text));
}

static void
test_tree(void **state)
{
    (void)state;
    assert_string_equal(tree("a: [1, 'x y']\nb:\n  c: 0.10\n\n  d: no\n"),
                        "1{a=1[1:1 1'x y] b=3{c=3:0.10 d=5:no}}");
    assert_string_equal(tree("- |\n  a\n  b\n- >\n  a\n  b\n-\n- \"\\t\"\n"),
                        "1[1'a\nb\n 4'a b\n 7: 8'\t]");
    assert_string_equal(tree("\xef\xbb\xbf"
                             "a: \xc3\xa9\r\nb: {}\r\nc: []"),
                        "1{a=1:\xc3\xa9 b=2{} c=3[]}");
    /* no document, one, several */
    assert_string_equal(tree("# nothing\n"), "");
    assert_string_equal(tree("--- a\n--- \nb: c\n...\n---\n"), "1:a | 3{b=3:c} | 6:");
    assert_string_equal(tree("%YAML 1.1\n--- a\n"), "2:a");
}

/* Where it is wrong, and what. */
static void
test_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(tree(""), "it has no bytes"));
    assert_string_equal(tree("a: 1\nb: [1, 2\nc: 3\n"),
                        "!x.yaml:3: this is no YAML: while parsing a flow sequence (line "
                        "2), did not find expected ',' or ']'");
    assert_non_null(strstr(tree("a: \"b\n\nc"),
                           "x.yaml:4: this is no YAML: while scanning "
                           "a quoted scalar (line 1)"));
    assert_non_null(strstr(tree("a: 1\n\tb: 2\n"), "x.yaml:2: this is no YAML"));
    assert_string_equal(tree("a: 1\nb: 2\na: 3\n"),
                        "!x.yaml:3: 'a' comes twice in this map");
    assert_non_null(strstr(tree("a: &x 1\nb: *x\n"), "!x.yaml:1: an anchor (&name)"));
    assert_non_null(strstr(tree("a:\n- *x\n"), "!x.yaml:2: an alias (*name)"));
    assert_non_null(strstr(tree("*x : 1\n"), "!x.yaml:1: an alias (*name)"));
    assert_non_null(strstr(tree("a: !!str 1\n"), "!x.yaml:1: a tag (!name)"));
    assert_non_null(strstr(tree("a: !x [1]\n"), "!x.yaml:1: a tag (!name)"));
    assert_non_null(strstr(tree("{x}: 1\n"), "!x.yaml:1: a key must be a text"));
    assert_string_equal(tree("a: b\nc: \"d\\0e\"\n"), "!x.yaml:2: a text holds a NUL");
    assert_non_null(strstr(tree("a: b\nc: \xc3(\n"), "!x.yaml:2: a line must be UTF-8"));
    assert_non_null(strstr(tree("\xff\xfe-\n"), "!x.yaml:1: a line must be UTF-8"));
    assert_non_null(strstr(tree_of("a: \0b\n", 7), "!x.yaml:1: "));
}

/* A bomb of brackets ends at a depth, before the memory does. */
static void
test_deep(void **state)
{
    enum { MANY = 200000 };
    char *text = malloc(MANY + 1);
    (void)state;
    memset(text, '[', MANY);
    text[MANY] = '\0';
    assert_string_equal(tree(text),
                        "!x.yaml:1: lists and maps are nested more than 16 deep");
    memset(text, ' ', 200);
    for (int i = 0; i < 20; i++)
        memcpy(text + 2 * i, "- ", 2);
    text[40] = 'x';
    text[41] = '\0';
    assert_string_equal(tree(text),
                        "!x.yaml:1: lists and maps are nested more than 16 deep");
    assert_string_equal(tree(text + 8),
                        "1[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1:x]]]]]]]]]]]]]]]]");
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tree),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
