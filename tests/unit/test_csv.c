/* Foreign CSV: quoting, line numbers, what is refused. */
#include "unit.h"

#include "rampipe/csv.h"

/* Rows as "line:a|b;line:c|d" or "!message". */
static const char *
rows_of(const char *const *files, size_t nfiles)
{
    static char text[2000];
    struct rec_error err;
    struct csv_row row;
    struct rec_reader *reader =
        rec_reader_open(files, nfiles, &(struct rec_reader_options){0}, &err);
    struct csv_source *source = reader ? csv_source_new(reader, &err) : NULL;
    size_t len = 0;
    int status = -1;

    text[0] = '\0';
    while (source && (status = csv_source_next(source, &row, &err)) > 0) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu:", len ? ";" : "",
                                (unsigned long long)row.line);
        for (size_t i = 0; i < row.nfields; i++) {
            assert_int_equal(strlen(row.field[i].ptr), row.field[i].len);
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? "|" : "",
                                    row.field[i].ptr);
        }
    }
    if (status < 0)
        snprintf(text + len, sizeof text - len, "!%s", err.text);
    csv_source_free(source);
    rec_reader_close(reader);
    return text;
}

static const char *
rows(const char *csv)
{
    static const char *const file = "x.csv";
    write_file(file, csv, strlen(csv));
    return rows_of(&file, 1);
}

static void
test_rows(void **state)
{
    (void)state;
    assert_non_null(strstr(rows(""), "it has no bytes"));
    assert_string_equal(rows("\n  \n\t\n"), "");
    assert_string_equal(rows("a,b\nc"), "1:a|b;2:c");
    assert_string_equal(rows("\xef\xbb\xbf"
                             "a,b\r\n\r\nc,d\r\n"),
                        "1:a|b;3:c|d");
    assert_string_equal(rows(" a , b c ,\n,\n"), "1:a|b c|;2:|");
    assert_string_equal(rows("\"a,\"\"b\"\"\",c\n"), "1:a,\"b\"|c");
    /* a quoted field over three lines: the row is where it starts, the next one behind */
    assert_string_equal(rows("x\n\"a\n\nb\",c\nd\n"), "1:x;2:a\n\nb|c;5:d");
}

static void
test_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(rows("a\nb\"c,d\n"), "1:a!x.csv:2: this is no CSV"));
    assert_non_null(strstr(rows("\"a\"b\n"), "x.csv:1: this is no CSV"));
    assert_non_null(strstr(rows("a\n\"b\nc\n"), "x.csv:2: a quoted field never ends"));
    assert_non_null(strstr(rows("a\n\"b\n\n"), "x.csv:2: a quoted field never ends"));
    assert_non_null(strstr(rows("a\rb\n"), "x.csv:1: a CR stands inside a line"));
}

static void
test_files(void **state)
{
    const char *const files[] = {"one.csv", "two.csv"};
    (void)state;
    write_file("one.csv", "a\nb", 3);
    write_file("two.csv", "c\n", 2);
    assert_string_equal(rows_of(files, 2), "1:a;2:b;1:c");
    write_file("one.csv", "a\n\"b", 4);
    assert_non_null(strstr(rows_of(files, 2), "one.csv:2: a quoted field never ends"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
