/* JSON: what the pieces make, what is escaped or repaired, what is no document. */
#include "unit.h"

#include "rampipe/json.h"

#include <malloc.h>

static struct rec_writer *writer;
static struct rec_error err;

static struct json *
start(int lines)
{
    struct json *json;
    writer = rec_writer_open("out.json", NULL, &err);
    assert_non_null(writer);
    json = json_new(writer, lines, &err);
    assert_non_null(json);
    return json;
}

/* What was written; "!" and the message if it is no document. */
static const char *
finish(struct json *json)
{
    static char text[4000];
    struct rec_error late;
    bool ok = json_close(json, &err);
    char *bytes;
    assert_true(rec_writer_close(writer, ok, &late));
    bytes = read_file("out.json", NULL);
    snprintf(text, sizeof text, "%s%s", ok ? "" : "!", ok ? bytes : err.text);
    free(bytes);
    return text;
}

/* Two levels have lines, the third stands on one, and the lines go on behind it. */
static void
test_lines(void **state)
{
    struct json *json = start(2);
    (void)state;
    json_open_map(json);
    json_text(json, "a");
    json_open_list(json);
    for (int i = 0; i < 2; i++) {
        json_open_map(json);
        json_text(json, "{");
        json_num(json, i);
        json_text(json, "n");
        json_open_list(json);
        json_num(json, 1);
        json_num(json, 2);
        json_close_list(json);
        json_close_map(json);
    }
    json_close_list(json);
    json_text(json, "b");
    json_open_map(json);
    json_close_map(json);
    json_close_map(json);
    assert_string_equal(finish(json), "{\n"
                                      "  \"a\": [\n"
                                      "    {\"{\":0,\"n\":[1,2]},\n"
                                      "    {\"{\":1,\"n\":[1,2]}\n"
                                      "  ],\n"
                                      "  \"b\": {\n"
                                      "\n"
                                      "  }\n"
                                      "}\n");
}

static void
test_numbers(void **state)
{
    struct json *json = start(1);
    const double values[] = {0.1, 44302336, 5e-8, 1e300, -2.5, NAN, INFINITY, -INFINITY};
    (void)state;
    json_open_list(json);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        json_num(json, values[i]);
    json_close_list(json);
    assert_string_equal(finish(json),
                        "[\n  0.1,\n  44302336,\n  5e-8,\n  1e300,\n  -2.5,\n"
                        "  null,\n  null,\n  null\n]\n");
}

#define FFFD "\xef\xbf\xbd"

/* One text in a list, as it is written. */
static const char *
written(const char *bytes, size_t len)
{
    static char text[200];
    struct json *json = start(1);
    const char *got;
    json_open_list(json);
    json_str(json, (struct rec_str){bytes, len});
    json_close_list(json);
    got = finish(json);
    snprintf(text, sizeof text, "%.*s", (int)strlen(got) - 7, got + 4);
    return text;
}

/* Each byte that belongs to no character becomes one U+FFFD, its neighbours stay. */
static void
test_texts(void **state)
{
    static const struct {
        const char *in, *out;
    } text[] = {
        {"plain/1", "\"plain/1\""},
        {"", "\"\""},
        {"say \"a\\b\"", "\"say \\\"a\\\\b\\\"\""},
        {"a\tb\001c", "\"a\\tb\\u0001c\""},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", /* of 2, 3 and 4 bytes */
         "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"a\xffz", "\"a" FFFD "z\""},
        {"\x80\xc3\xbc", "\"" FFFD "\xc3\xbc\""},
        {"\xc0\x80", "\"" FFFD FFFD "\""},                   /* overlong NUL */
        {"\xed\xa0\x80", "\"" FFFD FFFD FFFD "\""},          /* surrogate */
        {"\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\""}, /* beyond U+10FFFF */
        {"cut \xe2\x82", "\"cut " FFFD FFFD "\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        assert_string_equal(written(text[i].in, strlen(text[i].in)), text[i].out);
    assert_string_equal(written("a\0b", 3), "\"a\\u0000b\"");
}

/* A key that is no text, a second document behind the first, a map left open. */
static void
test_misuse(void **state)
{
    struct json *json = start(1);
    (void)state;
    json_open_map(json);
    json_num(json, 1);
    json_close_map(json);
    assert_string_equal(finish(json), "!JSON: a piece that cannot stand here (1)");
    assert_int_equal(err.code, REC_BUG);

    json = start(1);
    json_open_map(json);
    json_close_map(json);
    json_open_map(json);
    assert_true(finish(json)[0] == '!' && err.code == REC_BUG);

    json = start(1);
    json_open_list(json);
    assert_string_equal(finish(json), "!JSON: 1 maps or lists are not closed");
}

/* A million events take no more memory than one. */
static void
test_long(void **state)
{
    struct json *json = start(1);
    size_t before = 0;
    (void)state;
    json_open_list(json);
    for (int i = 0; i < 1000000; i++) {
        json_open_map(json);
        json_text(json, "ts");
        json_num(json, i);
        json_close_map(json);
        if (i == 0)
            before = mallinfo2().uordblks;
    }
    assert_int_equal(mallinfo2().uordblks, before);
    json_close_list(json);
    finish(json);
}

/* What is read of a document: its members, the values of lists and maps among them, and
 * nothing deeper. A text in a list has no NUL either. */
static void
test_read(void **state)
{
    static const char text[] =
        "{\"a\": [1, \"b\", [2, 3], null],\n"
        " \"c\": {\"x\": true, \"y\": {\"z\": 5}}, \"d\": 6, \"e\": []}";
    static const char nul[] = "{\"a\": [\"\\u0000\"]}";
    const char *path = "in.json";
    const struct json_member *a, *c;
    struct json_map map = {0};
    struct rec_reader *reader;
    (void)state;
    write_file(path, text, strlen(text));
    reader = rec_reader_open(&path, 1, NULL, &err);
    assert_non_null(reader);
    assert_true(json_map_read(&map, reader, &err));
    rec_reader_close(reader);
    assert_int_equal(map.nmembers, 4);
    a = json_map_find(&map, "a");
    assert_true(a && a->kind == JSON_LIST && a->nitems == 4);
    assert_string_equal(map.item[a->first].text, "1");
    assert_string_equal(map.item[a->first + 1].text, "b");
    assert_true(map.item[a->first + 2].kind == JSON_LIST);
    assert_true(map.item[a->first + 3].kind == JSON_NULL);
    c = json_map_find(&map, "c");
    assert_true(c && c->kind == JSON_MAP && c->nitems == 2 && c->line == 2);
    assert_true(map.item[c->first].truth && map.item[c->first].line == 2);
    assert_true(map.item[c->first + 1].kind == JSON_MAP);
    assert_true(json_map_find(&map, "d")->nitems == 0);
    assert_true(json_map_find(&map, "e")->nitems == 0);
    assert_null(json_map_find(&map, "x"));
    json_map_free(&map);
    write_file(path, nul, strlen(nul));
    reader = rec_reader_open(&path, 1, NULL, &err);
    assert_non_null(reader);
    assert_false(json_map_read(&map, reader, &err));
    assert_string_equal(err.text, "in.json:1: a text must have no NUL in it");
    rec_reader_close(reader);
    json_map_free(&map);
}

/* 2^20 values in lists are kept, and no more. */
static void
test_many_values(void **state)
{
    const char *path = "in.json";
    const size_t most = 1 << 20;
    (void)state;
    for (size_t n = most; n <= most + 1; n++) {
        struct json_map map = {0};
        struct rec_reader *reader;
        char *text = malloc(2 * n + 16), *end = text;
        assert_non_null(text);
        end = stpcpy(end, "{\"a\":[0");
        for (size_t i = 1; i < n; i++)
            end = stpcpy(end, ",0");
        end = stpcpy(end, "]}");
        write_file(path, text, (size_t)(end - text));
        free(text);
        reader = rec_reader_open(&path, 1, NULL, &err);
        assert_non_null(reader);
        assert_true(json_map_read(&map, reader, &err) == (n == most));
        if (n > most)
            assert_string_equal(
                err.text, "in.json:1: its lists and maps hold more than 1048576 values");
        rec_reader_close(reader);
        json_map_free(&map);
    }
}

/* Escapes are decoded in a buffer that grows with the text, here to 3 and to 300,000
 * bytes. */
static void
test_escapes(void **state)
{
    const char *path = "in.json";
    (void)state;
    for (size_t n = 1; n <= 100000; n *= 100) {
        struct json_map map = {0};
        struct rec_reader *reader;
        const char *read;
        char *text = malloc(8 * n + 16), *end = text;
        assert_non_null(text);
        end = stpcpy(end, "{\"a\":\"");
        for (size_t i = 0; i < n; i++)
            end = stpcpy(end, "\\n\\u00fc");
        end = stpcpy(end, "\"}");
        write_file(path, text, (size_t)(end - text));
        free(text);
        reader = rec_reader_open(&path, 1, NULL, &err);
        assert_non_null(reader);
        assert_true(json_map_read(&map, reader, &err));
        read = json_map_find(&map, "a")->text;
        assert_int_equal(strlen(read), 3 * n);
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(read + 3 * i, "\n\xc3\xbc", 3);
        rec_reader_close(reader);
        json_map_free(&map);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts),       cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_long),        cmocka_unit_test(test_read),
        cmocka_unit_test(test_many_values), cmocka_unit_test(test_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
