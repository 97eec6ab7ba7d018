/*
 * Makes this stage's line of provenance: a command that can be run again to make the same
 * stream. It is made from the parsed options, not from argv, so that equal settings give
 * equal bytes, whether they came from the command line or from a --config file.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* The options of all tools that do not change the records. They are left out, so that the
 * same experiment gives the same bytes. A program adds its own (cli_program.unshown). */
static const char *const unshown[] = {"output", "quiet", "verbose", "progress",
                                      "config", "help",  "version", NULL};

static bool
is_listed(const char *const *list, struct rec_str name)
{
    for (; *list; list++)
        if (rec_str_is(name, *list))
            return true;
    return false;
}

/* Appends a word, quoted for a shell if necessary. Control characters become blanks: a
 * TAB or LF would break the line. */
static void
put_word(FILE *out, struct rec_str word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";
    bool quote = word.len == 0;
    for (size_t i = 0; i < word.len; i++)
        quote = quote || !memchr(plain, word.ptr[i], sizeof plain - 1);
    if (quote)
        fputc('\'', out);
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] == '\'')
            fputs("'\\''", out);
        else
            fputc((unsigned char)word.ptr[i] < ' ' ? ' ' : word.ptr[i], out);
    }
    if (quote)
        fputc('\'', out);
}

/*
 * Splits the next option off a dump: name, or name="value". gengetopt does not quote line
 * ends in values, so a value goes up to a quote at the end of a line.
 */
static bool
next_option(const char **dump, struct rec_str *name, struct rec_str *value)
{
    const char *p = *dump, *end;
    if (*p == '\0')
        return false;
    *name = (struct rec_str){p, strcspn(p, "=\n")};
    *value = (struct rec_str){NULL, 0};
    p += name->len;
    if (p[0] == '=' && p[1] == '"') {
        p += 2;
        end = strstr(p, "\"\n");
        *value = (struct rec_str){p, end ? (size_t)(end - p) : strlen(p)};
        p += value->len;
    }
    p += strcspn(p, "\n");
    *dump = *p ? p + 1 : p;
    return true;
}

/* The last part of a path; slashes at its end do not count. KIND:FIELD,FIELD, with which
 * a cluster may take the place of a file, has slashes in rates (450GB/s), and stays: its
 * colon comes before any slash. */
static struct rec_str
base_name(struct rec_str path)
{
    struct rec_str rest = path, part;
    (void)rec_str_split(&rest, '/', &part);
    if (memchr(part.ptr, ':', part.len))
        return path;
    rest = path;
    while (rec_str_split(&rest, '/', &part))
        if (part.len > 0)
            path = part;
    return path;
}

/* Appends "=value". A path loses its directories, which differ between machines: the
 * whole value if the option is one of program->paths, or the part behind "file:". */
static void
put_value(FILE *out, const struct cli_program *program, struct rec_str name,
          struct rec_str value)
{
    static const char file[] = "file:";
    size_t len = sizeof file - 1;
    fputc('=', out);
    if (value.len > len && memcmp(value.ptr, file, len) == 0) {
        fputs(file, out);
        value = base_name((struct rec_str){value.ptr + len, value.len - len});
    } else if (is_listed(program->paths, name))
        value = base_name(value);
    put_word(out, value);
}

char *
cli_make_provenance(const struct cli *cli, const char *dump)
{
    const struct cli_program *program = cli->program;
    struct rec_str name, value;
    struct rec_text text;
    FILE *out;

    if (!rec_text_open(&text, NULL))
        return NULL;
    out = text.out;
    fprintf(out, "#@\t%.*s %s\t%s", (int)strcspn(program->name, " "), program->name,
            program->version, program->name);
    while (next_option(&dump, &name, &value)) {
        if (name.len == 0 || is_listed(unshown, name) ||
            is_listed(program->unshown, name))
            continue;
        fprintf(out, " --%.*s", (int)name.len, name.ptr);
        if (value.ptr)
            put_value(out, program, name, value);
    }
    for (size_t i = 0; i < cli->nfiles; i++) {
        const char *base = strrchr(cli->files[i], '/');
        fputc(' ', out);
        put_word(out, rec_str(base ? base + 1 : cli->files[i]));
    }
    return rec_text_close(&text, NULL);
}

/* The end of a word that put_word() has written. */
static const char *
word_end(const char *p)
{
    while (*p && *p != ' ')
        p += *p == '\'' ? strcspn(p + 1, "'") + 2 : *p == '\\' ? 2 : 1;
    return p;
}

/* The tool's own line with another value of an option, or for NULL without it. If the
 * line does not have the option, it becomes the first one. The caller frees the result.
 * NULL: cli->err. */
static char *
change_text(struct cli *cli, const char *option, const char *value)
{
    char *name, *line;
    const char *at, *rest;
    int len;

    if (asprintf(&name, " --%s=", option) < 0) {
        rec_fail_memory(&cli->err);
        return NULL;
    }
    at = strstr(cli->provenance, name);
    if (at)
        rest = word_end(at + strlen(name));
    else { /* behind the tool's name */
        at = strrchr(cli->provenance, '\t');
        at += strcspn(at, " ");
        rest = at;
    }
    len = asprintf(&line, "%.*s%s%s%s", (int)(at - cli->provenance), cli->provenance,
                   value ? name : "", value ? value : "", rest);
    free(name);
    if (len < 0)
        rec_fail_memory(&cli->err);
    return len < 0 ? NULL : line;
}

static char *
change_value(struct cli *cli, const char *option, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return change_text(cli, option, text);
}

bool
cli_set_provenance_text(struct cli *cli, const char *option, const char *value)
{
    char *line = change_text(cli, option, value);
    if (!line)
        return false;
    free(cli->provenance);
    cli->provenance = line;
    return true;
}

bool
cli_set_provenance(struct cli *cli, const char *option, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return cli_set_provenance_text(cli, option, text);
}

bool
cli_change_provenance(struct cli *cli, const char *option, uint64_t value)
{
    char *line = change_value(cli, option, value);
    bool ok = line && rec_writer_own(cli->writer, line, &cli->err);
    free(line);
    return ok;
}

bool
cli_next_stream(struct cli *cli, const char *option, uint64_t value)
{
    char *line = change_value(cli, option, value);
    if (!line)
        return false;
    rec_writer_next(cli->writer, cli->reader ? rec_reader_provenance(cli->reader) : "",
                    line);
    free(line);
    return true;
}
