/*
 * The tools themselves, in this process. The first line of the input is a command, the
 * rest is what it reads; behind a line "==" is a second file, which the command calls @:
 *
 *     sim redundant --steps 9 --profile @
 *     add<TAB>0<TAB>9
 *     ==
 *     stages<TAB>3
 *
 * Behind a "?" the options are any text, and the input is not there: no tool gets to
 * work.
 *
 * A tool ends with a status that is in the table and, if that is not 0, says why; what it
 * writes is whole, reccheck accepts it, and a second run writes the same.
 */
#include "fuzz.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* X(c_name, "name") of every tool: its main(), renamed. */
#define X(c, name) int fuzz_main_##c(int argc, char **argv);
FUZZ_TOOLS
#undef X

static const struct tool {
    const char *name;
    int (*main)(int argc, char **argv);
} tools[] = {
#define X(c, name) {name, fuzz_main_##c},
    FUZZ_TOOLS
#undef X
};

enum { WORDS = 40, OUTPUT = 1 << 20 };

struct command {
    char text[1024];
    char *word[WORDS + 1];
    int words;
    bool no_input;
    const uint8_t *input, *side;
    size_t input_size, side_size;
};

/* ---- what bounds the work -------------------------------------------------- */

/* Nobody waits for large numbers to be counted to: no number of the options has more than
 * two digits before or three behind the point, no exponent, no unit of hours. */
static bool
is_modest(const char *p, const char *end)
{
    while (p < end) {
        int digits = 0;
        bool fraction = p[0] == '.';
        for (p += fraction; p < end && isdigit((unsigned char)*p); p++)
            digits++;
        if (digits > 2 + fraction)
            return false;
        if (digits > 0 && p < end && strchr("ehdkMGTPm", *p))
            return false;
        p += p < end && *p != '.';
    }
    return true;
}

/* The largest number among the fields of the input's records of this type. */
static double
largest(const struct command *command, const char *type)
{
    const char *p = (const char *)command->input, *end = p + command->input_size;
    size_t len = strlen(type);
    double most = 0;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        if ((size_t)(stop - p) >= len && memcmp(p, type, len) == 0)
            for (const char *q = p; q < stop; q++)
                if (isdigit((unsigned char)*q) && !isdigit((unsigned char)q[-(q > p)])) {
                    char number[64] = "";
                    memcpy(number, q, (size_t)(stop - q < 63 ? stop - q : 63));
                    most = fmax(most, strtod(number, NULL));
                }
        p = stop + 1;
    }
    return most;
}

static bool
has(const struct command *command, const char *word)
{
    for (int i = 0; i < command->words; i++)
        if (strncmp(command->word[i], word, strlen(word)) == 0)
            return true;
    return false;
}

/* Adds an option, unless the command has one that may be it. */
static void
add(struct command *command, char *option)
{
    char prefix[5] = "";
    memcpy(prefix, option, 4);
    if (!has(command, prefix) && command->words < WORDS)
        command->word[command->words++] = option;
}

/* False: the work might take long. What it would take is bounded by input that others
 * test: fuzz_spot, fuzz_metrics. */
static bool
bound(struct command *command)
{
    static char nowhere[] = "nowhere";
    static char until[] = "--until=900", minutes[] = "--minutes=90";
    const char *tool = command->word[0], *mode = command->word[1];

    if (memmem(command->text, sizeof command->text, "agent", 5) || has(command, "--ag") ||
        memmem(command->side, command->side_size, "agent", 5))
        return false; /* no commands of any bytes */
    for (int i = 1; i < command->words; i++)
        if (strchr(command->word[i], '/') ||
            !(command->no_input ||
              is_modest(command->word[i], command->word[i] + strlen(command->word[i]))))
            return false;
    if (has(command, "--c") && /* options from a file */
        (memchr(command->side, '/', command->side_size) ||
         !(command->no_input ||
           is_modest((const char *)command->side,
                     (const char *)command->side + command->side_size))))
        return false;
    if (command->no_input) {
        if (command->words == WORDS)
            return false;
        command->word[command->words++] = nowhere;
        return true;
    }
    if (strcmp(tool, "sim") == 0 && command->words > 1 &&
        (strcmp(mode, "elastic") == 0 || strcmp(mode, "redundant") == 0)) {
        add(command, until);
        return largest(command, "add\t") < 2000 && largest(command, "preempt\t") < 2000 &&
               largest(command, "trace\t") < 2000;
    }
    if (strcmp(tool, "tracegen") == 0 && command->words > 1 &&
        strcmp(mode, "preempt") == 0) {
        add(command, minutes);
        return largest(command, "model\t") < 1e4;
    }
    if (strcmp(tool, "metrics") == 0 && has(command, "--s"))
        return largest(command, "done\t") < 1e4 && largest(command, "block\t") < 1e4;
    return largest(command, "cluster\tramp") < 1e300;
}

/* ---- one command ------------------------------------------------------------ */

/* Standard error of the last command. */
static char *said;
static size_t said_length;

static int
call(const struct tool *tool, int argc, char *const word[], int in, int out)
{
    FILE *ours = stderr;
    char *argv[WORDS + 1];
    int status;

    memcpy(argv, word, (size_t)argc * sizeof *argv); /* getopt puts them in order */
    argv[argc] = NULL;
    free(said);
    stderr = open_memstream(&said, &said_length);
    if (!stderr || lseek(in, 0, SEEK_SET) != 0 || dup2(in, 0) != 0 || dup2(out, 1) != 1)
        abort();
    status = tool->main(argc, argv);
    fflush(stdout);
    fclose(stderr);
    stderr = ours;
    return status;
}

static off_t
size_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        abort();
    return status.st_size;
}

static void
broken(const struct command *command, const char *what, int status)
{
    fprintf(stderr, "broken: %s; status %d of", what, status);
    for (int i = 0; i < command->words; i++)
        fprintf(stderr, " %s", command->word[i]);
    fprintf(stderr, "\n%s\n", said ? said : "");
    abort();
}

static bool
is_same(int a, int b)
{
    static char x[OUTPUT + 1], y[OUTPUT + 1];
    ssize_t n = pread(a, x, sizeof x, 0), m = pread(b, y, sizeof y, 0);
    return n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

static bool
reccheck_accepts(int stream)
{
    static char name[] = "reccheck", *const reccheck[] = {name};
    char path[64];
    int status = -1, ignored = fuzz_file(NULL, 0, path);
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(tools[i].name, "reccheck") == 0)
            status = call(&tools[i], 1, reccheck, stream, ignored);
    close(ignored);
    return status == 0;
}

/* A stream that reccheck would refuse is not to be written, unless it holds what was read
 * and passed on. */
static void
check_stream(const struct command *command, int in, int out)
{
    char head[9] = "";
    for (size_t i = 0; i < command->input_size; i++)
        if (!isprint(command->input[i]) && !isspace(command->input[i]))
            return;
    if (pread(out, head, 8, 0) == 8 && strcmp(head, "#rampipe") == 0 &&
        (strcmp(command->word[0], "pd2graph") == 0 || reccheck_accepts(in)) &&
        !reccheck_accepts(out))
        broken(command, "reccheck refuses the output", 0);
}

static void
run_twice(const struct command *command, const struct tool *tool, int in)
{
    char path[64];
    int out = fuzz_file(NULL, 0, path), again = fuzz_file(NULL, 0, path);
    int status = call(tool, command->words, command->word, in, out);

    if (status < 0 || (status > 4))
        broken(command, "the status is in no table", status);
    if (status != 0 && said_length == 0)
        broken(command, "nothing is said", status);
    if (status == 0 && call(tool, command->words, command->word, in, again) != 0)
        broken(command, "the second run failed", status);
    if (status == 0 && !is_same(out, again))
        broken(command, "the second run writes something else", status);
    if (status == 0 && size_of(out) < OUTPUT)
        check_stream(command, in, out);
    close(out);
    close(again);
}

/* Splits the bytes into a command of words, its input and a second file. */
static bool
read_command(struct command *command, const uint8_t *bytes, size_t size, int *side,
             char path[64])
{
    const uint8_t *end = memchr(bytes, '\n', size), *mark;
    char *rest, *word;

    if (!end || (size_t)(end - bytes) >= sizeof command->text ||
        memchr(bytes, '\0', (size_t)(end - bytes)))
        return false;
    memcpy(command->text, bytes, (size_t)(end - bytes));
    command->text[end - bytes] = '\0';
    command->input = end + 1;
    command->input_size = (size_t)(bytes + size - command->input);
    command->side = command->input + command->input_size;
    command->side_size = 0;
    mark = memmem(command->input, command->input_size, "\n==\n", 4);
    if (mark) {
        command->side = mark + 4;
        command->side_size = (size_t)(bytes + size - command->side);
        command->input_size = (size_t)(mark + 1 - command->input);
    }
    *side = fuzz_file(command->side, command->side_size, path);
    for (word = strtok_r(command->text, " ", &rest); word && command->words < WORDS;
         word = strtok_r(NULL, " ", &rest))
        command->word[command->words++] = word;
    command->no_input = command->words > 1 && strcmp(command->word[0], "?") == 0;
    if (command->no_input)
        memmove(command->word, command->word + 1,
                (size_t)--command->words * sizeof *command->word);
    return command->words > 0;
}

/* Puts the path of the second file for the first @. */
static void
name_side(struct command *command, const char *path, char text[1200])
{
    for (int i = 1; i < command->words; i++) {
        char *at = strchr(command->word[i], '@');
        if (!at)
            continue;
        snprintf(text, 1200, "%.*s%s%s", (int)(at - command->word[i]), command->word[i],
                 path, at + 1);
        command->word[i] = text;
        return;
    }
}

/* Once: what a tool could write to is nowhere, and ends. */
static int
prepare(void)
{
    int home = open(".", O_RDONLY | O_DIRECTORY);
    signal(SIGXFSZ, SIG_IGN);
    if (home < 0)
        abort();
    return home;
}

static void
limit_output(rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
    limit.rlim_cur = most;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int home = -1;
    struct command command = {.words = 0};
    char path[64], input_path[64], text[1200];
    int side = -1, in;

    if (home < 0)
        home = prepare();
    if (read_command(&command, bytes, size, &side, path) && bound(&command)) {
        name_side(&command, path, text);
        in = fuzz_file(command.input, command.input_size, input_path);
        limit_output(OUTPUT);
        if (chdir("/proc/self/fdinfo") != 0)
            abort();
        for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
            if (strcmp(tools[i].name, command.word[0]) == 0)
                run_twice(&command, &tools[i], in);
        if (fchdir(home) != 0)
            abort();
        limit_output(RLIM_INFINITY);
        close(in);
    }
    if (side >= 0)
        close(side);
    return 0;
}
