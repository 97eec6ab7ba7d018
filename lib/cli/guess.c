/*
 * Guesses what kind of file an input is that a tool could not read, so that the message
 * can name the tool that reads it. This happens after the error, on the beginning of the
 * file, so that no reader needs to know the formats of the others.
 */
#include "private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the beginning of a file that the guess is made from. */
enum { LOOKED_AT = 1 << 16 };

/* ---- text ---------------------------------------------------------------- */

static bool
contains(struct rec_str text, const char *word)
{
    return text.len > 0 && memmem(text.ptr, text.len, word, strlen(word));
}

static bool
starts(struct rec_str text, const char *word)
{
    size_t n = strlen(word);
    return text.len >= n && memcmp(text.ptr, word, n) == 0;
}

/* Does a line begin with this word? */
static bool
has_line(struct rec_str text, const char *word)
{
    struct rec_str line;
    while (rec_str_split(&text, '\n', &line))
        if (starts(line, word))
            return true;
    return false;
}

static size_t
count_commas(struct rec_str line)
{
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++)
        n += line.ptr[i] == ',';
    return n;
}

/* ---- kinds --------------------------------------------------------------- */

static bool
is_stream(struct rec_str text)
{
    return starts(text, "#rampipe\t");
}

/* A profile of PipeDream has lines "node4 -- Conv2d(...) -- ...". */
static bool
is_profile(struct rec_str text)
{
    struct rec_str line;
    while (rec_str_split(&text, '\n', &line))
        if (starts(line, "node") && contains(line, " -- "))
            return true;
    return false;
}

/* An ONNX model is a protobuf message. It begins with field 1 (byte 0x08), a small
 * number, which is the version of the format. The tag of one of the fields 2 to 8
 * follows. */
static bool
is_onnx(struct rec_str text)
{
    return text.len > 4 && text.ptr[0] == 0x08 && text.ptr[1] > 0 && text.ptr[1] < 0x20 &&
           memchr("\x12\x1a\x22\x28\x32\x3a\x42", text.ptr[2], 7);
}

/* An execution trace of Chakra is a sequence of protobuf messages, each behind its
 * length: a number whose bytes but the last have their highest bit set. In the first
 * message, field 1 (byte 0x0a) is a version, such as "0.0.4". */
static bool
is_execution_trace(struct rec_str text)
{
    const char *p = text.ptr;
    size_t n = 0;
    while (n < 3 && n < text.len && (p[n] & 0x80))
        n++;
    p += n;
    return text.len > n + 4 && (n > 0 || p[0] > 3) && p[1] == 0x0a && p[2] > 0 &&
           p[2] < 16 && isdigit((unsigned char)p[3]);
}

static bool
is_json(struct rec_str text)
{
    while (text.len > 0 && isspace((unsigned char)*text.ptr)) {
        text.ptr++;
        text.len--;
    }
    return starts(text, "{") || starts(text, "[");
}

static bool
is_kineto(struct rec_str text)
{
    return is_json(text) && contains(text, "\"traceEvents\"");
}

static bool
is_transformer(struct rec_str text)
{
    return is_json(text) &&
           (contains(text, "\"hidden_size\"") || contains(text, "\"model_type\""));
}

static bool
is_template(struct rec_str text)
{
    return has_line(text, "parameters:") || has_line(text, "tasks:");
}

/* A task file has lines "NAME: READS -> WRITES | COMMAND". */
static bool
is_task_file(struct rec_str text)
{
    struct rec_str line, part;
    while (rec_str_split(&text, '\n', &line))
        if (!starts(line, "#") && contains(line, "->") &&
            rec_str_split(&line, ':', &part) && line.ptr && !contains(part, "->"))
            return true;
    return false;
}

/* CSV: the first two lines have the same number of commas, at least one, and the first
 * has no TAB, as a record would. */
static bool
is_csv(struct rec_str text)
{
    struct rec_str line, next;
    if (!rec_str_split(&text, '\n', &line) || !rec_str_split(&text, '\n', &next))
        return false;
    return count_commas(line) > 0 && count_commas(line) == count_commas(next) &&
           !contains(line, "\t");
}

static bool
is_database(struct rec_str text)
{
    return starts(text, "SQLite format 3");
}

/* The kinds of files. The first whose fits() is true counts, so those that are certain
 * come first. In the texts, ^ stands for the prefix that tools are installed with. */
static const struct kind {
    bool (*fits)(struct rec_str text);
    const char *readers; /* tools and modes that read it, ",a,b,"; NULL: all that read
                          * records */
    const char *says;    /* continues the message: "...; the file is" */
} kinds[] = {
    {is_database, "", "a SQLite database: sqlite3 reads it"},
    {is_stream, NULL, "a stream of records: ^reccheck looks into it"},
    {is_profile, ",pd2graph,", "a profile of PipeDream: ^pd2graph reads it"},
    {is_onnx, ",onnx2graph,", "an ONNX model: ^onnx2graph reads it"},
    {is_execution_trace, ",et2graph,",
     "an execution trace of Chakra: ^et2graph reads it"},
    {is_kineto, "",
     "a trace of PyTorch's profiler (Kineto): no tool here reads it; Chakra's converter "
     "makes an execution trace of it, which ^et2graph reads"},
    {is_transformer, ",pdgen,",
     "the configuration of a transformer: ^pdgen --transformer reads it"},
    {is_task_file, ",task2graph,",
     "a task file: ^task2graph reads it, and passes tasks on"},
    {is_template, "", "a template of tasks: ^task2graph --template reads it"},
    {is_csv, ",tracegen fit,task2graph,",
     "CSV: ^tracegen fit reads logs of instances, ^task2graph --template rows of "
     "parameters"},
    {NULL, NULL, NULL}};

/* The tools that do not read records. */
static const char foreign[] = ",pd2graph,onnx2graph,et2graph,pdgen,";

static bool
is_among(const char *tools, const char *name)
{
    char word[32];
    snprintf(word, sizeof word, ",%s,", name);
    return strstr(tools, word) != NULL;
}

/* ---- files --------------------------------------------------------------- */

/* The path of the input whose name begins the message cli->err; NULL: none. It must be a
 * regular file, also behind standard input: the beginning of a pipe cannot be read
 * again. */
static const char *
find_input(const struct cli *cli)
{
    const char *text = cli->err.text;
    struct stat file;
    if (strncmp(text, "<stdin>:", 8) == 0)
        return fstat(0, &file) == 0 && S_ISREG(file.st_mode) ? "/proc/self/fd/0" : NULL;
    for (size_t i = 0; i < cli->nfiles; i++) {
        size_t n = strlen(cli->files[i]);
        if (strncmp(text, cli->files[i], n) == 0 && text[n] == ':' &&
            stat(cli->files[i], &file) == 0 && S_ISREG(file.st_mode))
            return cli->files[i];
    }
    return NULL;
}

/* Reads up to LOOKED_AT bytes of a file, and returns how many it got. Errors do not
 * matter: there is no guess then, and the first error is reported. */
static size_t
read_beginning(const char *name, char *bytes)
{
    struct rec_error none;
    struct rec_input *input = rec_input_open(name, &none);
    size_t n = 0;
    ptrdiff_t more = 1;
    while (input && n + 2 <= LOOKED_AT && more > 0) {
        more = rec_input_read(input, bytes + n, LOOKED_AT - n, false, &none);
        n += more > 0 ? (size_t)more : 0;
    }
    rec_input_close(input);
    return n;
}

const char *
cli_guess_input(const struct cli *cli)
{
    const char *name = find_input(cli), *program = cli->program->name;
    char *bytes = name ? malloc(LOOKED_AT) : NULL;
    struct rec_str beginning = {bytes, bytes ? read_beginning(name, bytes) : 0};
    const struct kind *kind = kinds;
    while (kind->fits && !(beginning.len > 0 && kind->fits(beginning)))
        kind++;
    free(bytes);
    if (!kind->fits ||
        (kind->readers ? is_among(kind->readers, program) : !is_among(foreign, program)))
        return NULL;
    return kind->says;
}
