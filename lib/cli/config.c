/*
 * Reads --config files: one name=value a line. Each line becomes a word of a command line
 * ("--name=value"), so that the option parser checks it as if a user had typed it, and
 * messages can name the line.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* A file of more options, far more than any tool has, is not a --config file. */
enum { LINES_MAX = 1000 };

/* Without blanks and TABs at both ends. */
static struct rec_str
trim(struct rec_str text)
{
    while (text.len > 0 && memchr(" \t", text.ptr[text.len - 1], 2))
        text.len--;
    while (text.len > 0 && memchr(" \t", *text.ptr, 2))
        text = (struct rec_str){text.ptr + 1, text.len - 1};
    return text;
}

/* Makes "--name=value" of a line that says name=value or name value, with or without
 * quotes, and "--name" of a name alone. The caller frees it. NULL: *err. */
static char *
read_option(const struct rec_reader *reader, struct rec_str line, struct rec_error *err)
{
    struct rec_str name = line, value = {NULL, 0};
    char *word;
    size_t len = 0;
    while (len < line.len && !memchr("= \t", line.ptr[len], 3))
        len++;
    name.len = len;
    if (len < line.len) {
        value = trim((struct rec_str){line.ptr + len, line.len - len});
        if (*value.ptr == '=')
            value = trim((struct rec_str){value.ptr + 1, value.len - 1});
        if (value.len > 0 && *value.ptr == '"') {
            if (value.len < 2 || value.ptr[value.len - 1] != '"') {
                rec_reader_fail(reader, err, "the value of '%.*s' has no closing quote",
                                (int)(len < 40 ? len : 40), name.ptr);
                return NULL;
            }
            value = (struct rec_str){value.ptr + 1, value.len - 2};
        }
    }
    if (name.len == 0 || name.len > 40 || *name.ptr == '-') {
        rec_reader_fail(reader, err, "a line is name=\"value\", got '%.*s'",
                        REC_SAID(line));
        return NULL;
    }
    if (asprintf(&word, "--%.*s%s%.*s", (int)name.len, name.ptr, value.ptr ? "=" : "",
                 (int)value.len, value.ptr ? value.ptr : "") < 0) {
        rec_fail_memory(err);
        return NULL;
    }
    return word;
}

bool
cli_config_read(struct cli_config *config, const char *path, struct rec_error *err)
{
    struct rec_reader_options options = {.partial = true};
    struct rec_reader *reader = rec_reader_open(&path, 1, &options, err);
    struct rec_str line;
    int status = -1;

    while (reader && (status = rec_next_line(reader, &line, err)) > 0) {
        struct cli_option *option;
        line = trim(line);
        if (line.len == 0 || *line.ptr == '#')
            continue;
        status = -1;
        if (config->n == LINES_MAX) {
            rec_reader_fail(reader, err, "more than %d options", LINES_MAX);
            break;
        }
        if (!rec_grow(&config->option, &config->room, config->n + 1, sizeof *option, err))
            break;
        option = &config->option[config->n];
        option->line = rec_reader_line(reader);
        if (!(option->word = read_option(reader, line, err)))
            break;
        config->n++;
    }
    rec_reader_close(reader);
    return status == 0;
}

void
cli_config_free(struct cli_config *config)
{
    for (size_t i = 0; i < config->n; i++)
        free(config->option[i].word);
    free(config->option);
    *config = (struct cli_config){.n = 0};
}
