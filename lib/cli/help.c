/*
 * Chooses the mode of a tool to run, and prints --help.
 *
 * The texts are gengetopt's, made from the .ggo. Printing them here adds what gengetopt
 * does not have: modes, the prefix, and examples that stay command lines.
 */
#include "private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WIDTH = 79 /* columns of a line of help */ };

/* The mode whose name is most similar to the word that a user wrote; NULL: none is
 * similar enough to be meant. */
static const char *
find_nearest(const struct cli_mode *modes, const char *meant)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (; modes->name; modes++)
        if (cli_is_nearer(meant, modes->name, &least))
            nearest = modes->name;
    return nearest;
}

int
cli_main(int argc, char **argv, const char *name, const struct cli_mode *modes,
         int (*entry)(int argc, char **argv, const char *prefix))
{
    const char *called = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *nearest;
    char prefix[64] = "";
    size_t len;

    cli_guard_descriptors();
    /* Then a limit on the size of files (ulimit -f) makes write() fail, as a full disk
     * does, and is reported like one. */
    signal(SIGXFSZ, SIG_IGN);
    /* The prefix is what precedes the tool's name in the last part of argv[0]. */
    called = called ? called + 1 : argc > 0 ? argv[0] : name;
    len = strlen(called);
    if (len >= strlen(name) && len - strlen(name) < sizeof prefix &&
        strcmp(called + len - strlen(name), name) == 0) {
        memcpy(prefix, called, len - strlen(name));
        prefix[len - strlen(name)] = '\0';
    }
    for (const struct cli_mode *mode = modes; argc > 1 && mode->name; mode++)
        if (strcmp(argv[1], mode->name) == 0)
            return mode->main(argc - 1, argv + 1, prefix);
    /* The first operand may be a file instead of a mode. If there is no such file, it may
     * be a misspelt mode. */
    nearest = argc > 1 && modes->name && access(argv[1], F_OK) != 0
                  ? find_nearest(modes, argv[1])
                  : NULL;
    if (nearest) {
        fprintf(stderr, "%s%s: there is no mode or file '%s'; is it %s%s %s?\n", prefix,
                name, argv[1], prefix, name, nearest);
        return REC_USAGE;
    }
    return entry(argc, argv, prefix);
}

/* ---- text ---------------------------------------------------------------- */

/* Prints a word, with the prefix where ^ stands before a name; returns its width. */
static size_t
put_word(struct rec_str word, const char *prefix)
{
    size_t width = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] == '^' && i + 1 < word.len && word.ptr[i + 1] >= 'a' &&
            word.ptr[i + 1] <= 'z') {
            fputs(prefix, stdout);
            width += strlen(prefix);
        } else {
            fputc(word.ptr[i], stdout);
            width++;
        }
    }
    return width;
}

/* The width that put_word() will return. */
static size_t
width_of(struct rec_str word, const char *prefix)
{
    size_t width = word.len;
    for (size_t i = 0; i + 1 < word.len; i++)
        if (word.ptr[i] == '^' && word.ptr[i + 1] >= 'a' && word.ptr[i + 1] <= 'z')
            width += strlen(prefix) - 1;
    return width;
}

/* Prints a paragraph in lines of up to WIDTH columns. */
static void
put_paragraph(struct rec_str text, const char *prefix)
{
    struct rec_str word;
    size_t column = 0;
    while (rec_str_split(&text, ' ', &word)) {
        if (word.len == 0)
            continue;
        if (column > 0 && column + 1 + width_of(word, prefix) > WIDTH) {
            fputc('\n', stdout);
            column = 0;
        } else if (column > 0) {
            fputc(' ', stdout);
            column++;
        }
        column += put_word(word, prefix);
    }
    fputc('\n', stdout);
}

/* Splits the next word off a command. Blanks inside quotes do not end it. */
static bool
next_word(struct rec_str *text, struct rec_str *word)
{
    char quote = '\0';
    while (text->len > 0 && *text->ptr == ' ')
        *text = (struct rec_str){text->ptr + 1, text->len - 1};
    *word = (struct rec_str){text->ptr, 0};
    for (; word->len < text->len; word->len++) {
        char c = text->ptr[word->len];
        if (!quote && c == ' ')
            break;
        if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? '\0' : c;
    }
    *text = (struct rec_str){text->ptr + word->len, text->len - word->len};
    return word->len > 0;
}

/* The columns from here to the next place where a line may be broken: behind a |, or
 * before an option. */
static size_t
width_up_to_break(struct rec_str text, const char *prefix)
{
    struct rec_str word;
    size_t width = 0;
    while (next_word(&text, &word) && (width == 0 || *word.ptr != '-')) {
        width += 1 + width_of(word, prefix);
        if (rec_str_is(word, "|"))
            break;
    }
    return width;
}

/* Prints an example: on one line if it fits, else broken behind each | and, where a
 * command is still too long, before an option. A broken line ends in a backslash, so that
 * a user can paste the example into a shell. */
static void
put_example(struct rec_str text, const char *prefix)
{
    struct rec_str word;
    bool whole = 1 + width_of(text, prefix) <= WIDTH, ended = false;
    size_t column = 1;

    fputc(' ', stdout);
    for (struct rec_str here = text; next_word(&text, &word); here = text) {
        bool option = *word.ptr == '-';
        if (!whole &&
            (ended || (option && column + width_up_to_break(here, prefix) > WIDTH - 2))) {
            fputs(" \\\n   ", stdout);
            column = 3;
        }
        fputc(' ', stdout);
        column += 1 + put_word(word, prefix);
        ended = rec_str_is(word, "|");
    }
    fputc('\n', stdout);
}

/* Prints a description. gengetopt has wrapped its text, so successive lines are joined to
 * paragraphs again; empty lines and examples end a paragraph. Empty lines before an
 * example are dropped. False: out of memory. */
static bool
put_description(const char *description, const char *prefix)
{
    struct rec_str rest = rec_str(description), line;
    char *paragraph = malloc(rest.len + 2), *text = strdup(description);
    size_t open = 0;  /* bytes of the paragraph that is being joined */
    size_t empty = 0; /* empty lines, printed when a line of text follows */
    bool ok;

    /* 0x1f stands for a blank in an example, so that gengetopt does not wrap there. */
    for (size_t i = 0; text && i < rest.len; i++)
        if (text[i] == '\x1f')
            text[i] = ' ';
    rest.ptr = text;
    while (paragraph && text && rec_str_split(&rest, '\n', &line)) {
        bool example = line.len > 2 && memcmp(line.ptr, "  ", 2) == 0;
        if (line.len > 0 && !example) {
            for (; empty > 0; empty--)
                fputc('\n', stdout);
            if (open > 0)
                paragraph[open++] = ' ';
            memcpy(paragraph + open, line.ptr, line.len);
            open += line.len;
            continue;
        }
        if (open > 0)
            put_paragraph((struct rec_str){paragraph, open}, prefix);
        open = 0;
        empty = example ? 0 : empty + 1;
        if (example)
            put_example(line, prefix);
    }
    if (open > 0)
        put_paragraph((struct rec_str){paragraph, open}, prefix);
    ok = paragraph && text;
    free(paragraph);
    free(text);
    return ok;
}

bool
cli_help(const struct cli_program *program, const struct cli_mode *modes,
         const char *prefix)
{
    const char *usage = strchr(program->usage, ' '); /* "Usage: tool ..." */
    printf("Usage: %s%s\n%s\n\n", prefix, usage ? usage + 1 : program->name,
           program->purpose);
    if (!put_description(program->description, prefix))
        return false;
    for (size_t i = 0; modes && modes[i].name; i++)
        printf("%s  %s%s %-10s %s\n", i ? "" : "\nModes, each with its own --help:\n",
               prefix, program->name, modes[i].name, modes[i].purpose);
    fputc('\n', stdout);
    for (size_t i = 0; program->options[i]; i++) {
        put_word(rec_str(program->options[i]), prefix);
        fputc('\n', stdout);
    }
    /* A description that says itself what is read from where is not repeated. */
    if (strstr(program->usage, "[FILE") && !strstr(program->usage, " MODE ") &&
        !strstr(program->description, "standard input"))
        puts("\nWithout FILE, or if FILE is -, standard input is read.");
    return true;
}
