/* Task files and task records: what they say and what is refused; what a list of tasks is
 * turned into. */
#include "unit.h"

#include "rampipe/task.h"

static struct rec_reader *
open_text(const char *text)
{
    static const char *const file = "in";
    struct rec_error err;
    struct rec_reader *reader;
    write_file(file, text, strlen(text));
    reader = rec_reader_open(&file, 1, NULL, &err);
    assert_non_null(reader);
    return reader;
}

static struct rec_writer *
open_out(void)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open("out", NULL, &err);
    assert_non_null(writer);
    return writer;
}

/* What was written, or the message; until the next time. */
static const char *
result(struct rec_writer *writer, bool ok, const struct rec_error *err)
{
    static char *shown;
    assert_true(rec_writer_close(writer, true, &(struct rec_error){0}));
    free(shown);
    shown = ok ? read_file("out", NULL) : strdup(err->text);
    return shown;
}

/* ---- task files ---------------------------------------------------------- */

static bool
take_lines(struct task_file *file, struct rec_reader *reader, struct rec_writer *writer,
           struct rec_error *err)
{
    struct rec_str line;
    enum task_line kind;
    int status, whole;
    while ((status = rec_next_line(reader, &line, err)) > 0)
        do {
            if ((whole = task_file_take(file, reader, line, &kind, err)) < 0)
                return false;
            if (whole > 0)
                task_write(writer, &file->task);
            if (kind == TASK_LINE_FENCE)
                rec_put_line(writer, rec_str("fence"));
        } while (kind == TASK_LINE_AGAIN);
    assert_int_equal(status, 0);
    if ((whole = task_file_end(file, reader, err)) > 0)
        task_write(writer, &file->task);
    return whole >= 0;
}

static const char *
file_as_records(const char *text)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = open_text(text);
    struct rec_writer *writer = open_out();
    struct task_file file = {.open = false};
    bool ok = take_lines(&file, reader, writer, &err);
    assert_true(ok || err.code == REC_DATA);
    task_file_free(&file);
    rec_reader_close(reader);
    return result(writer, ok, &err);
}

static void
test_file(void **state)
{
    (void)state;
    assert_string_equal(file_as_records("# all that it may have\n"
                                        "all : a './b  c' -> d/\r\n"
                                        "\treads ./e f\r\n"
                                        "    writes @g\n"
                                        "  \t\n"
                                        "\n"),
                        "in:2: task 'all' has no command");
    assert_string_equal(
        file_as_records("all : a './b  c' -> d/\r\n"
                        "\treads ./e f\r\n"
                        "    writes @g\n"
                        "    # between\n"
                        "    run  sh -c 'x; y' \t\n"
                        "    cost 2.5\n    memory 1e9\n    cores 3\n    timeout 9\n"
                        "    retries 2\n    cwd a%2Cb c\n    env A=1,B=%25\n"
                        "    stdin i\n    stdout 'o,%'\n    stderr o2\n    ok any\n"
                        "----\n\nb: | true # 1"),
        "task\tall\t9\ta,b  c,e,f\td/,@g\tsh -c 'x; y'\tcost=2.5\tcores=3\t"
        "memory=1000000000\tcwd=a%2Cb c\tenv=A=1,B=%25\tstdin=i\tstdout=o%2C%25\t"
        "stderr=o2\tretries=2\tok=any\nfence\ntask\tb\tinf\t-\t-\ttrue # 1\n");
    assert_string_equal(file_as_records(" \n\t\n# nothing"), "");
}

#define SEVENTY "7777777777777777777777777777777777777777777777777777777777777777777777"

/* What is wrong with the second line of a task. */
static void
test_settings(void **state)
{
    static const char *const wrong[][2] = {
        {"cost 1x", "a number >= 0 is needed, got '1x'"},
        {"cost inf", "a number >= 0 is needed, got 'inf'"},
        {"cost -" SEVENTY, "a number >= 0 is needed, got '-77"},
        {"memory", "a number >= 0 is needed, got ''"},
        {"timeout -1", "a number >= 0 is needed, got '-1'"},
        {"cores 1.5", "an integer >= 1 is needed, got '1.5'"},
        {"cores 4294967295", "an integer >= 1 is needed"},
        {"retries " SEVENTY, "an integer >= 0 is needed, got '77"},
        {"retries -1", "an integer >= 0 is needed, got '-1'"},
        {"reads x -> y", "'->' may stand only in the first line of a task"},
        {"writes x | y", "'|' may stand only in the first line of a task"},
        {"reads 'x", "a quote is not closed"},
        {"writes 'x", "a quote is not closed"},
        {"reads ''", "a name is empty, or longer than 4096 bytes"},
        {"stdin", "stdin, stdout and stderr must each be one file, given once"},
        {"stdin x y", "stdin, stdout and stderr must each be one file, given once"},
        {"stdin 'x", "a quote is not closed"},
        {"stdin x 'y", "a quote is not closed"},
        {"stdout ''", "a name is empty"},
        {"stderr x\n  stderr x", "stdin, stdout and stderr must each be one file, given "
                                 "once"},
        {"cwd", "a value is missing"},
        {"cwd 5%", "a % must begin an escape such as %2C"},
        {"cwd x\n  cwd y", "task 'a' has this field twice"},
        {"env A=%4", "a % must begin an escape such as %2C"},
        {"env A=%g0", "a % must begin an escape such as %2C"},
        {"env A=%00", "a % must begin an escape such as %2C"},
        {"ok", "ok must be any"},
        {"ok no", "ok must be any"},
        {"run", "a value is missing"},
        {"run x\ty", "a value must not contain a TAB"},
        {"cwd x\t env A=1", "a value must not contain a TAB"},
        {"run x 'y", "a quote is not closed"},
        {"colour red", "a task has no field 'colour'; its fields are reads, writes, "},
        {"x" SEVENTY, "a task has no field 'x7777777777"},
        {"\xff", "the line is not UTF-8 text"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[400], want[200];
        bool twice = strchr(wrong[i][0], '\n');
        snprintf(text, sizeof text, "a:\n  %s\n  run true\n", wrong[i][0]);
        snprintf(want, sizeof want, "in:%d: %s", twice ? 3 : 2, wrong[i][1]);
        if (!strstr(file_as_records(text), want))
            fail_msg("%s: %s", wrong[i][0], file_as_records(text));
    }
}

/* What is wrong with the first. */
static void
test_first_lines(void **state)
{
    static const char *const wrong[][2] = {
        {"a true", "a task must begin with NAME: READS"},
        {"- -", "a task must begin with NAME: READS"},
        {"--", "a task must begin with NAME: READS"},
        {"  run true", "an indented line must stand below the first line of a task"},
        {" : | true", "an indented line must stand below the first line of a task"},
        {": | true", "the name of a task must not be empty"},
        {"a,b: | true", "the name of a task must not be empty or contain"},
        {"a=b: | true", "the name of a task must not be empty or contain"},
        {"a\tb: | true", "the name of a task must not be empty or contain"},
        {"a: x -> y -> z | true", "'->' stands twice"},
        {"a: 'x | true", "a quote is not closed"},
        {"a: x -> 'y | true", "a quote is not closed"},
        {"a: @ | true", "a name is empty"},
        {"a: |", "a value is missing"},
        {"a: | 'x", "a quote is not closed"},
        {"a: | x\n  run x", "task 'a' has this field twice"}};
    char text[TASK_NAME_MAX + 20] = "a: ";
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!strstr(file_as_records(wrong[i][0]), wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], file_as_records(wrong[i][0]));
    memset(text + 3, 'x', TASK_NAME_MAX + 1);
    strcat(text, " | x");
    assert_non_null(strstr(file_as_records(text), "longer than 4096 bytes"));
    memcpy(text, "b:  ", 4);
    assert_null(strstr(file_as_records(text), "longer than 4096 bytes"));
}

/* ---- lists --------------------------------------------------------------- */

static const char *
fence_name(const struct rec *rec, char name[8])
{
    snprintf(name, 8, "%.*s", (int)rec->field[1].len, rec->field[1].ptr);
    return name;
}

static bool
take_records(struct task_list *list, struct rec_reader *reader, struct rec_error *err)
{
    struct task task = {0};
    struct rec rec;
    char name[8];
    int status = 1;
    bool ok = true;
    while (ok && (status = rec_next(reader, &rec, err)) > 0)
        ok = rec.type == REC_FENCE
                 ? task_list_fence(list, fence_name(&rec, name), err)
                 : task_read(&task, reader, &rec, err) && task_list_add(list, &task, err);
    task_free(&task);
    return ok && status == 0;
}

static const char *
list_as(enum task_form form, const char *name, const char *records)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = open_text(records);
    struct rec_writer *writer = open_out();
    struct task_list *list = task_list_new(form, writer, name, 2, &err);
    bool ok;
    assert_non_null(list);
    ok = take_records(list, reader, &err) && task_list_end(list, &err);
    task_list_free(list);
    rec_reader_close(reader);
    return result(writer, ok || err.code == REC_NO, &err);
}

/* Fences behind each other, and nothing between them; tasks that wait for a fence
 * only. */
static void
test_graph(void **state)
{
    (void)state;
    assert_string_equal(
        list_as(TASK_GRAPH, "g",
                "fence\t-1\ntask\ta\tinf\t-\tx\ttrue\n"
                "task\tb\tinf\tx\t-\ttrue\tcost=0.5\tmemory=9\n"
                "fence\t-2\nfence\t-3\ntask\tc\tinf\tx\tx\ttrue\n"),
        "graph\tg\tg\n"
        "op\tg\t-1\ttask\t0\t0\nop\tg\ta\ttask\t2\t0\n"
        "op\tg\tb\ttask\t0.5\t9\nop\tg\t-2\ttask\t0\t0\n"
        "op\tg\t-3\ttask\t0\t0\nop\tg\tc\ttask\t2\t0\n"
        "dep\tg\t-1\ta\t0\thazard=fence\ndep\tg\ta\tb\t0\thazard=raw\n"
        "dep\tg\tb\t-2\t0\thazard=fence\ndep\tg\t-2\t-3\t0\thazard=fence\n"
        "dep\tg\t-3\tc\t0\thazard=fence\n");
}

static void
test_dot(void **state)
{
    (void)state;
    assert_string_equal(list_as(TASK_DOT, "a\"b\\",
                                "task\t\"\tinf\t-\tx\ttrue\n"
                                "task\tb\\\tinf\tx\tx\ttrue\n"
                                "task\tc\tinf\t-\tx\ttrue\n"),
                        "digraph \"a\\\"b\\\\\" {\n  \"\\\"\";\n  \"b\\\\\";\n"
                        "  \"\\\"\" -> \"b\\\\\";\n  \"c\";\n"
                        "  \"b\\\\\" -> \"c\" [style=dashed, label=waw];\n}\n");
}

static void
test_makefile(void **state)
{
    (void)state;
    assert_string_equal(
        list_as(TASK_MAKEFILE, "g",
                "task\ta-.z/AZ09 [\tinf\t-\t-\techo '$x' it\\'s\tcwd=d%2C e\t"
                "env=A=1,B=%27,C=%2f%2F\tstdin=i\tstderr=e\n"
                "fence\tf\nfence\tf\ntask\t{\tinf\t-\t-\ttrue\tok=any\n"),
        ".PHONY: all\nall:\n"
        "all: task-a-.z/AZ09_20_5B\n.PHONY: task-a-.z/AZ09_20_5B\n"
        "task-a-.z/AZ09_20_5B:\n"
        "\t@( cd 'd, e' && env 'A=1' 'B='\\''' 'C=//' 'echo' '$$x' 'it'\\''s' ) "
        "<'i' 2>'e'\n"
        ".PHONY: fence-1\nfence-1: task-a-.z/AZ09_20_5B\n"
        ".PHONY: fence-2\nfence-2: fence-1\n"
        "all: task-_7B\n.PHONY: task-_7B\ntask-_7B: fence-2\n\t-@'true'\n");
}

/* What is done to dir/ is done to what is in it. */
static void
test_check(void **state)
{
    (void)state;
    assert_string_equal(list_as(TASK_CHECK, "g",
                                "task\ta\tinf\t/\td/x,e/\ttrue\n"
                                "task\tb\tinf\td/,e/y,@z,in\tf,/nowhere/g\ttrue\n"),
                        "task 'b': '@z' is read, but no task writes it and it does not "
                        "exist\n"
                        "task 'b': 'f' is written, but no task reads it\n");
    assert_string_equal(list_as(TASK_CHECK, "g", "task\ta\tinf\t-\t-\ttrue\n"), "");
    assert_string_equal(list_as(TASK_CHECK, "g",
                                "task\ta\tinf\t-\t-\tx\n"
                                "task\ta\tinf\t-\t-\tx\n"),
                        "task 'a' comes twice");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_first_lines), cmocka_unit_test(test_graph),
        cmocka_unit_test(test_dot),         cmocka_unit_test(test_makefile),
        cmocka_unit_test(test_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
