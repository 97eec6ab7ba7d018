/* Templates of tasks: what they are written out to, and what is refused, where. */
#include "unit.h"

#include "rampipe/task.h"

static struct rec_reader *
open_bytes(const char *const *file, const char *text)
{
    struct rec_error err;
    struct rec_reader *reader;
    write_file(*file, text, strlen(text));
    reader = rec_reader_open(file, 1, &(struct rec_reader_options){0}, &err);
    assert_non_null(reader);
    return reader;
}

static struct task_template *
read_template(const char *text, struct rec_error *err)
{
    static const char *const file = "t.yaml";
    struct rec_reader *reader = open_bytes(&file, text);
    struct task_template *template = task_template_read(reader, err);
    rec_reader_close(reader);
    return template;
}

static bool
give_rows(struct task_template *template, const char *csv, struct rec_error *err)
{
    static const char *const file = "rows.csv";
    struct rec_reader *reader = open_bytes(&file, csv);
    bool ok = task_template_rows(template, reader, err);
    rec_reader_close(reader);
    return ok;
}

/* "a=1,2 b=3" as options. */
static bool
give_sets(struct task_template *template, const char *sets, struct rec_error *err)
{
    struct rec_str rest = rec_str(sets), set, name;
    while (rec_str_split(&rest, ' ', &set))
        if (!rec_str_split(&set, '=', &name) ||
            !task_template_set(template, name, set, err))
            return false;
    return true;
}

/* The task records that a template makes, and "!message" if it ends in an error. `sets`
 * and `csv` may be NULL. */
static const char *
written(const char *text, const char *sets, const char *csv)
{
    static char *shown;
    struct rec_error err = {.text = ""};
    struct task_template *template = read_template(text, &err);
    struct rec_writer *writer = rec_writer_open("out", NULL, &err);
    struct task task = {0};
    double most = 0, n = 0;
    int status = -1;
    size_t used;

    assert_non_null(writer);
    if (template && (!sets || give_sets(template, sets, &err)) &&
        (!csv || give_rows(template, csv, &err)) &&
        task_template_count(template, &most, &err))
        while ((status = task_template_next(template, &task, &err)) > 0) {
            task_write(writer, &task);
            n++;
        }
    assert_true(n <= most);
    task_free(&task);
    task_template_free(template);
    assert_true(rec_writer_close(writer, true, &(struct rec_error){0}));
    free(shown);
    shown = read_file("out", &used);
    shown = realloc(shown, used + sizeof err.text + 2);
    assert_non_null(shown);
    if (status < 0) {
        assert_true(err.code == REC_DATA || err.code == REC_USAGE || err.code == REC_IO);
        sprintf(shown + used, "!%s", err.text);
    }
    return shown;
}

/* The error alone. */
#define refused(text, sets, csv, want) \
    assert_non_null(strstr(written(text, sets, csv), want))

/* ---- fields -------------------------------------------------------------- */

/* Every field of the reference, and those of the record. */
static void
test_fields(void **state)
{
    (void)state;
    assert_string_equal(
        written("name: all\n"
                "type: process\n"
                "executables:\n"
                "  - target: ./run\n"
                "    arguments: [a, 'b c', \"it's\", '', '{{x}}', a%b]\n"
                "    cwd: some/dir\n"
                "    env: {A: '1,2', B: 'x%y'}\n"
                "reads: [in/a.txt, './b//c', dir/, '@k', 'x,y']\n"
                "writes: {files: [out], keys: [k, 'l m']}\n"
                "timeout: {days: 1, hours: 2, minutes: 3, seconds: 4.5}\n"
                "cores: 3\nmemory: 1e9\ncost: 0.5\nretries: 2\nok: any\n"
                "stdin: '@b.stdout'\nstdout: o.txt\nstderr: e.txt\n",
                NULL, NULL),
        "task\tall\t93784.5\tin/a.txt,b/c,dir/,@k,x%2Cy\tout,@k,@l m\t"
        "./run a 'b c' 'it'\\''s' '' '{x}' a%b\tcost=0.5\tcores=3\tmemory=1000000000\t"
        "cwd=some/dir\tenv=A=1%2C2,B=x%25y\tstdin=@b.stdout\tstdout=o.txt\t"
        "stderr=e.txt\tretries=2\tok=any\n");
    assert_string_equal(written("name: x\nexecutables: [{target: true}]\n", NULL, NULL),
                        "task\tx\tinf\t-\t-\ttrue\n");
    /* a text for a list of one; a timeout in seconds; a block's last line end is
     * dropped */
    assert_string_equal(written("name: x\ntimeout: 90\nreads: a\n"
                                "executables:\n- target: sh\n"
                                "  arguments:\n  - -c\n  - >\n    a |\n    b\n",
                                NULL, NULL),
                        "task\tx\t90\ta\t-\tsh -c 'a | b'\n");
}

/* A job of several programs, as the MPI standard has it: ranks are cores. */
static void
test_jobs(void **state)
{
    (void)state;
    assert_string_equal(written("name: x\ntype: job\n"
                                "executables:\n- {target: a, ranks: 4, cwd: d}\n",
                                NULL, NULL),
                        "task\tx\tinf\t-\t-\tmpiexec -n 4 a\tcores=4\tcwd=d\n");
    assert_string_equal(
        written("parameters: {n: 2}\nname: x\ntype: job\n"
                "executables:\n- {target: a, ranks: '{n}'}\n"
                "- {target: b, arguments: [c], cwd: d, env: {E: 'f g'}}\n",
                NULL, NULL),
        "task\tx\tinf\t-\t-\tmpiexec -n 2 a : -n 1 env -C d 'E=f g' b c\tcores=3\n");
    refused("name: x\nexecutables: [{target: a}, {target: b}]\n", NULL, NULL,
            "!t.yaml:1: a process must have exactly one executable");
    refused("name: x\nexecutables: [{target: a,\n ranks: 2}]\n", NULL, NULL,
            "!t.yaml:3: a process has no ranks");
    refused("name: x\ntype: job\nexecutables: [{target: a, ranks: 0}]\n", NULL, NULL,
            "!t.yaml:3: ranks must be an integer >= 1, got '0'");
    refused("name: x\ntype: function\nexecutables: [{target: a}]\n", NULL, NULL,
            "!t.yaml:2: type must be process, or job");
}

/* ---- values -------------------------------------------------------------- */

#define ECHO "name: '{a}-{b}'\nexecutables: [{target: echo, arguments: ['{a}', '{b}']}]\n"
#define TASK(a, b) "task\t" a "-" b "\tinf\t-\t-\techo " a " " b "\n"

/* All combinations in order, whoever gives them: the template, an option, CSV. */
static void
test_values(void **state)
{
    const char *want = TASK("x", "1") TASK("x", "2") TASK("y", "1") TASK("y", "2");
    (void)state;
    assert_string_equal(written("parameters: {a: [x, y], b: 1..2}\n" ECHO, NULL, NULL),
                        want);
    assert_string_equal(written("parameters: [a, b]\n" ECHO, "b=1..2 a=x,y", NULL), want);
    assert_string_equal(
        written("parameters:\n  a:\n  b: [8, 9]\n" ECHO, "b=1,2", "a\nx\ny\n"), want);
    assert_string_equal(
        written("parameters: {a: 1, b: }\n" ECHO, NULL, "b,a\n1,x\n2,x\n1,y\n2,y\n"),
        want);
    /* one value; numbers of a width; texts that look like numbers only */
    assert_string_equal(
        written("parameters: {a: [08..10], b: '1..2'}\n" ECHO, NULL, NULL),
        TASK("08", "1..2") TASK("09", "1..2") TASK("10", "1..2"));
    assert_string_equal(written("parameters: {a: no, b: [0x1, 0.10]}\n" ECHO, NULL, NULL),
                        TASK("no", "0x1") TASK("no", "0.10"));
    assert_string_equal(written("parameters: {a: 1.., b: ..2}\n" ECHO, NULL, NULL),
                        TASK("1..", "..2"));
    /* a header alone: no rows, no tasks */
    assert_string_equal(written("parameters: [a, b]\n" ECHO, "b=1", "a\n"), "");
}

/* A value is one word and one name, whatever is in it. */
static void
test_hostile_values(void **state)
{
    static const char text[] =
        "parameters: [v]\nname: x\n"
        "executables: [{target: echo, arguments: ['{v}'], env: {E: '{v}'}}]\n"
        "reads: ['{v}']\n";
    (void)state;
    assert_string_equal(
        written(text, "v=a%2Cb;$(c)`'", NULL),
        "task\tx\tinf\ta%2Cb;$(c)`'\t-\techo 'a,b;$(c)`'\\'''\tenv=E=a%2Cb;$(c)`'\n");
    assert_string_equal(written(text, NULL, "v\n\"a,b {v} 1%2C\"\n"),
                        "task\tx\tinf\ta%2Cb {v} 1%252C\t-\techo 'a,b {v} 1%2C'\t"
                        "env=E=a%2Cb {v} 1%252C\n");
    /* numbers with an escape are a text */
    assert_non_null(strstr(written(text, "v=1%2E.2", NULL), "echo 1..2\t"));
    refused(text, "v=a%0Ab", NULL,
            "!t.yaml:3: a word of a command must not contain a TAB, line end or control "
            "character");
    refused(text, NULL, "v\n\"a\tb\"\n",
            "!t.yaml:3: a word of a command must not "
            "contain a TAB");
    /* elsewhere they are escaped */
    assert_string_equal(
        written("parameters: [v]\nname: x\nreads: '{v}'\nexecutables:\n- target: a\n"
                "  env: {E: '{v}'}\n  cwd: '{v}'\n",
                NULL, "v\n\"a\nb\tc\"\n"),
        "task\tx\tinf\ta%0Ab%09c\t-\ta\tcwd=a%0Ab%09c\tenv=E=a%0Ab%09c\n");
    refused(text, "v=", NULL,
            "!t.yaml:4: a name that a task reads or writes is empty, "
            "or longer than 4096 bytes "
            "(with v=)");
    refused(text, "v=a%FF", NULL, "!a value must be UTF-8 without control characters");
    refused(text, "v=%zz", NULL, "!a % must begin an escape such as %2C, got '%zz'");
    refused(text, NULL, "v\n\xff\n", "!rows.csv:2: a value must be UTF-8");
}

/* Steps for each combination; what does not depend on a parameter comes once; the second
 * document is behind all of the first. */
static void
test_steps(void **state)
{
    static const char text[] =
        "parameters: {n: [a, b], d: 1..2}\n"
        "tasks:\n"
        "- {name: 'g-{n}', writes: '{n}.g', executables: [{target: "
        "g, arguments: '{n}'}]}\n"
        "- {name: 's-{n}-{d}', reads: '{n}.g', writes: 'o/{n}{d}', "
        "executables: [{target: s}]}\n"
        "---\n"
        "name: all\nreads: o/\nexecutables: [{target: cat}]\n";
    (void)state;
    assert_string_equal(written(text, NULL, NULL), "task\tg-a\tinf\t-\ta.g\tg a\n"
                                                   "task\ts-a-1\tinf\ta.g\to/a1\ts\n"
                                                   "task\ts-a-2\tinf\ta.g\to/a2\ts\n"
                                                   "task\tg-b\tinf\t-\tb.g\tg b\n"
                                                   "task\ts-b-1\tinf\tb.g\to/b1\ts\n"
                                                   "task\ts-b-2\tinf\tb.g\to/b2\ts\n"
                                                   "task\tall\tinf\to/\t-\tcat\n");
    /* rows are gone through by each document that has one of the columns */
    assert_string_equal(
        written("parameters: [a]\nname: x{a}\nexecutables: [{target: t}]\n"
                "---\nname: y\nexecutables: [{target: t}]\n"
                "---\nparameters: [a]\nname: z{a}\nexecutables: [{target: t}]\n",
                NULL, "a\n1\n2\n"),
        "task\tx1\tinf\t-\t-\tt\ntask\tx2\tinf\t-\t-\tt\ntask\ty\tinf\t-\t-\tt\n"
        "task\tz1\tinf\t-\t-\tt\ntask\tz2\tinf\t-\t-\tt\n");
    /* the same name, but not the same task */
    refused("parameters: {a: [1, 2]}\nexecutables: [{target: t, arguments: '{a}'}]\n"
            "name: x\n",
            NULL, NULL,
            "task\tx\tinf\t-\t-\tt 1\n!t.yaml:3: another task is also called 'x': put");
    refused("tasks:\n- {name: x, executables: [{target: t}]}\n"
            "- {name: x, executables: [{target: t}]}\n",
            NULL, NULL, "!t.yaml:3: another task is also called 'x'");
}

/* ---- refused ------------------------------------------------------------- */

#define RUN "executables: [{target: t}]\n"

static void
test_wrong_templates(void **state)
{
    (void)state;
    refused("# none\n", NULL, NULL, "!t.yaml:1: the file has no template");
    refused("a\n", NULL, NULL,
            "!t.yaml:1: a template (parameters: ..., tasks: ...) must "
            "be a map, and is a text");
    refused("name: x\n" RUN "readz: [a]\n", NULL, NULL,
            "!t.yaml:3: a task has no field 'readz'; its fields are name, type, "
            "executables, reads, "
            "writes, timeout, cores,");
    refused("tasks: [{name: x, executables: [{target: t}]}]\nname: y\n", NULL, NULL,
            "!t.yaml:2: a template of tasks has no field 'name'; its fields are "
            "parameters, tasks");
    refused("name: x\nexecutables:\n- target: t\n  args: [x]\n", NULL, NULL,
            "!t.yaml:4: an executable has no field 'args'; its fields are target, "
            "arguments, cwd, "
            "env, ranks");
    refused("name: x\ntimeout: {weeks: 1}\n" RUN, NULL, NULL,
            "!t.yaml:2: timeout has no field 'weeks'; its fields are days, hours, "
            "minutes, seconds");
    refused("name: x\nreads: {file: a}\n" RUN, NULL, NULL,
            "!t.yaml:2: reads has no field 'file'; its fields are files, keys");
    refused("name: x\nname: y\n" RUN, NULL, NULL, "!t.yaml:2: 'name' comes twice");
    refused(RUN, NULL, NULL, "!t.yaml:1: a task needs a name");
    refused("name: x\n", NULL, NULL, "!t.yaml:1: a task needs at least one executable");
    refused("name: x\nexecutables: []\n", NULL, NULL,
            "!t.yaml:1: a task needs at least one executable");
    refused("name: x\nexecutables: [{ranks: 2}]\n", NULL, NULL,
            "!t.yaml:2: an executable needs a target");
    refused("tasks: []\n", NULL, NULL, "!t.yaml:1: there are no tasks");
    refused("tasks:\n- {name: x, parameters: [a], executables: [{target: t}]}\n", NULL,
            NULL, "!t.yaml:2: parameters belong to the template");
    refused("name: [x]\n" RUN, NULL, NULL,
            "!t.yaml:1: name must be a text, and is a list");
    refused("name: x\nreads: [[a]]\n" RUN, NULL, NULL,
            "!t.yaml:2: each item of the list must be a text, and is a list");
    refused("name: x\nexecutables: [{target: t, arguments: {a: b}}]\n", NULL, NULL,
            "!t.yaml:2: arguments must be a list, and is a map");
    refused("name: x\nexecutables: [{target: t, env: {'A=B': c}}]\n", NULL, NULL,
            "!t.yaml:2: the name of an environment variable must not be empty or "
            "contain '='");
    refused("name: x\n---\n", NULL, NULL,
            "!t.yaml:1: a task needs at least one "
            "executable");
    refused("name: x\n" RUN "reads: [a\n", NULL, NULL, "!t.yaml:4: this is no YAML");
}

static void
test_wrong_parameters(void **state)
{
    (void)state;
    refused(
        "parameters: {network: a, degree: 1}\nname: x\nreads:\n- a\n- '{netwrok}'\n" RUN,
        NULL, NULL,
        "!t.yaml:5: {netwrok} is not a parameter of this template (parameters: network, "
        "degree); write {{ for { itself");
    refused("name: x\nexecutables: [{target: awk, arguments: '{ print }'}]\n", NULL, NULL,
            "!t.yaml:2: { print } is not a parameter of this template (parameters: "
            "none)");
    refused("name: x{\n" RUN, NULL, NULL, "!t.yaml:1: a { is not closed by a }");
    refused("name: x}y\n" RUN, NULL, NULL, "!t.yaml:1: a } has no { in front of it");
    refused("parameters: [a, a]\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:1: parameter 'a' comes twice");
    refused("parameters: [1a]\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:1: a parameter's name is a letter, then");
    refused("parameters: a\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:1: parameters must be a");
    refused("parameters:\n  a: []\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:2: the list of values is empty");
    refused("parameters:\n  a: {b: c}\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:2: a must be a list, and is a map");
    refused("parameters:\n  a: 2..1\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:2: a range A..B must count up, from 0 and below 2^64, got '2..1'");
    refused("parameters:\n  a: [-2..1]\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:2: a range A..B must count up, from 0 and below 2^64, got '-2..1'");
    refused("parameters:\n  a: 1..18446744073709551616\nname: x\n" RUN, NULL, NULL,
            "!t.yaml:2: a range A..B must count up");
    refused("parameters: [a]\nname: x\n" RUN, NULL, NULL,
            "!parameter 'a' (t.yaml:1) has no value");
    refused("parameters: [a]\nname: x\n" RUN, "b=1", NULL,
            "!'b' is not a parameter of t.yaml (parameters: a)");
    refused("parameters: [a]\nname: x\n" RUN, "a=1 a=2", NULL, "!'a' is given twice");
    refused("parameters: [a]\nname: x\n" RUN, "a=1", "a\n1\n",
            "!rows.csv:1: 'a' is given twice");
    refused("parameters: [a]\nname: x\n" RUN, NULL, "a,b\n1,2\n",
            "!rows.csv:1: 'b' is not a parameter of t.yaml (parameters: a)");
    refused("parameters: [a, b]\nname: x\n" RUN, NULL, "a,b\n1,2\n3\n",
            "!rows.csv:3: a row must have 2 fields, as the first one, got 1");
    refused("parameters: [a]\nname: x\n" RUN, NULL, "\n",
            "!rows.csv:1: the first row must");
}

/* What a value makes wrong is told with the line of the template, and the values. */
static void
test_wrong_values(void **state)
{
    (void)state;
    refused("parameters: {a: [1, x], b: 2}\nname: n{a}\ntimeout: '{a}'\n" RUN, NULL, NULL,
            "!t.yaml:3: timeout must be a number >= 0 or inf, got 'x' (with a=x, b=2)");
    refused("name: n\ncost: inf\n" RUN, NULL, NULL,
            "!t.yaml:2: cost must be a number >= 0, got 'inf'");
    refused("name: n\ncores: 0\n" RUN, NULL, NULL,
            "!t.yaml:2: cores must be an integer >= 1");
    refused("name: n\nretries: -1\n" RUN, NULL, NULL, "!t.yaml:2: retries must be an");
    refused("name: n\nok: yes\n" RUN, NULL, NULL, "!t.yaml:2: ok must be any, got 'yes'");
    refused("name: 'a,b'\n" RUN, NULL, NULL,
            "!t.yaml:1: name must be a text without comma");
    refused("name: ''\n" RUN, NULL, NULL, "!t.yaml:1: name must be a text");
    refused("name: x\nexecutables: [{target: ''}]\n", NULL, NULL,
            "!t.yaml:2: target is empty");
    refused("name: x\nwrites: {keys: ['']}\n" RUN, NULL, NULL,
            "!t.yaml:2: a name that a task");
}

/* How many there will be is said before there is one, whatever was asked for. */
static void
test_count(void **state)
{
    struct rec_error err;
    double n;
    struct task_template *template =
        read_template("parameters: {a: 0..999999999999, b: 1..1000000, c: [1, 2..3]}\n"
                      "tasks:\n- {name: x, executables: [{target: t}]}\n"
                      "- {name: y, executables: [{target: t}]}\n---\nname: z\n" RUN,
                      &err);
    (void)state;
    assert_non_null(template);
    assert_true(task_template_count(template, &n, &err));
    assert_true(n == 6e18 + 1);
    task_template_free(template);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_hostile_values),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_wrong_templates),
        cmocka_unit_test(test_wrong_parameters),
        cmocka_unit_test(test_wrong_values),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
