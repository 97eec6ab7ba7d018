/* The frame of every tool: start, provenance, open, next, finish. */
#include "rampipe/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- provenance ---------------------------------------------------------- */

/* Options that do not change the records, so the same experiment has the same bytes. */
static const char *const not_shown[] = {"output",  "quiet", "verbose", "progress",
                                        "config",  "map",   "runs",    "help",
                                        "version", NULL};

static bool
is_shown(struct rec_str name)
{
    for (const char *const *p = not_shown; *p; p++)
        if (rec_str_is(name, *p))
            return false;
    return true;
}

/* Appends a word, quoted for a shell if need be; no TAB, CR or LF gets into the line. */
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
 * Splits the next option off a dump: name, or name="value". A value may hold line ends,
 * so it goes up to a quote that ends a line.
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

/* Paths lose their directories: the whole value, or what follows "file:". */
static struct rec_str
without_directory(struct rec_str name, struct rec_str value)
{
    static const char *const paths[] = {"profile", NULL};
    struct rec_str rest = value, part;
    bool is_path = value.len > 5 && memcmp(value.ptr, "file:", 5) == 0;
    for (const char *const *p = paths; *p && !is_path; p++)
        is_path = rec_str_is(name, *p);
    while (is_path && rec_str_split(&rest, '/', &part))
        if (part.len > 0)
            value = part;
    return value;
}

static char *
make_provenance(const struct cli *cli, const char *version, const char *dump)
{
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);
    struct rec_str name, value;

    if (!out)
        return NULL;
    fprintf(out, "#@\t%s %s\t%s", cli->tool, version, cli->tool);
    while (next_option(&dump, &name, &value)) {
        if (name.len == 0 || !is_shown(name))
            continue;
        fprintf(out, " --%.*s", (int)name.len, name.ptr);
        if (value.ptr) {
            struct rec_str shown = without_directory(name, value);
            fputc('=', out);
            if (shown.ptr > value.ptr && value.len > 5 &&
                memcmp(value.ptr, "file:", 5) == 0)
                fputs("file:", out);
            put_word(out, shown);
        }
    }
    for (size_t i = 0; i < cli->nfiles; i++) {
        const char *base = strrchr(cli->files[i], '/');
        fputc(' ', out);
        put_word(out, rec_str(base ? base + 1 : cli->files[i]));
    }
    if (fclose(out) != 0) {
        free(line);
        return NULL;
    }
    return line;
}

/* ---- start and finish ---------------------------------------------------- */

bool
cli_start(struct cli *cli, const char *version, const char *dump)
{
    /* A reader that goes away ends a filter; whoever started us may have ignored that. */
    signal(SIGPIPE, SIG_DFL);
    cli->started = cli->reported = now();
    if (!cli->progress)
        cli->progress = !cli->quiet && isatty(STDERR_FILENO);
    cli->provenance = make_provenance(cli, version, dump);
    return cli->provenance || rec_fail_memory(&cli->err);
}

int
cli_finish(struct cli *cli, bool ok)
{
    struct rec_error late;
    int status = ok ? REC_OK : (int)cli->err.code;

    if (cli->reported > cli->started)
        fputs("\r\033[K", stderr);
    rec_reader_close(cli->reader);
    if (cli->writer && !rec_writer_close(cli->writer, ok || status == REC_NO, &late)) {
        if (ok || status == REC_NO || cli->err.text[0] == '\0') {
            cli->err = late;
            status = REC_IO;
        }
    }
    if (status != REC_OK && cli->err.text[0])
        cli_error(cli->tool, cli->err.text);
    free(cli->provenance);
    return status;
}

/* ---- the two ends -------------------------------------------------------- */

static void
warn_from_reader(void *context, const char *text)
{
    cli_warn(context, "%s", text);
}

bool
cli_open_writer(struct cli *cli, bool stream)
{
    cli->writer =
        rec_writer_open(cli->output, stream ? cli->provenance : NULL, &cli->err);
    return cli->writer != NULL;
}

static bool
open_reader(struct cli *cli, struct rec_writer *tie)
{
    struct rec_reader_options options = {
        .partial = cli->partial, .tie = tie, .warn = warn_from_reader, .context = cli};
    cli->reader = rec_reader_open(cli->files, cli->nfiles, &options, &cli->err);
    return cli->reader != NULL;
}

bool
cli_open_filter(struct cli *cli)
{
    return cli_open_writer(cli, true) && open_reader(cli, cli->writer);
}

bool
cli_next_stream(struct cli *cli, uint64_t seed)
{
    static const char option[] = " --seed=";
    const char *at = strstr(cli->provenance, option);
    const char *rest = at ? at + sizeof option - 1 : NULL;
    char *line;
    int len;

    if (!rest)
        return rec_fail(&cli->err, REC_BUG, "the provenance has no seed");
    len = asprintf(&line, "%.*s%s%llu%s", (int)(at - cli->provenance), cli->provenance,
                   option, (unsigned long long)seed, rest + strcspn(rest, " "));
    if (len < 0)
        return rec_fail_memory(&cli->err);
    rec_writer_next(cli->writer, cli->reader ? rec_reader_provenance(cli->reader) : "",
                    line);
    free(line);
    return true;
}

bool
cli_open_reader(struct cli *cli)
{
    return open_reader(cli, NULL);
}

int
cli_next(struct cli *cli, struct rec *rec)
{
    if ((++cli->records & 4095) == 0)
        cli_progress(cli, cli->records, "records");
    if (cli->writer && rec_writer_failed(cli->writer)) {
        cli->err.text[0] = '\0'; /* closing the writer says why */
        cli->err.code = REC_IO;
        return -1;
    }
    return rec_next(cli->reader, rec, &cli->err);
}

void
cli_progress(struct cli *cli, uint64_t done, const char *what)
{
    double t;
    if (!cli->progress || (t = now()) - cli->reported < 1)
        return;
    cli->reported = t;
    fprintf(stderr, "\r%s: %llu %s, %.0f s\033[K", cli->tool, (unsigned long long)done,
            what, t - cli->started);
    fflush(stderr);
}

/* ---- messages ------------------------------------------------------------ */

void
cli_error(const char *tool, const char *text)
{
    fprintf(stderr, "%s: %s\n", tool, text);
}

static void
say(const struct cli *cli, const char *kind, const char *format, va_list args)
{
    if (cli->reported > cli->started)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "%s: %s", cli->tool, kind);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void
cli_warn(const struct cli *cli, const char *format, ...)
{
    va_list args;
    if (cli->quiet)
        return;
    va_start(args, format);
    say(cli, "warning: ", format, args);
    va_end(args);
}

void
cli_note(const struct cli *cli, const char *format, ...)
{
    va_list args;
    if (!cli->verbose)
        return;
    va_start(args, format);
    say(cli, "", format, args);
    va_end(args);
}

/* ---- option values ------------------------------------------------------- */

bool
cli_usage(struct cli *cli, const char *format, ...)
{
    char text[sizeof cli->err.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rec_fail(&cli->err, REC_USAGE, "%s", text);
}

bool
cli_amount(struct cli *cli, const char *option, const char *text, bool allow_inf,
           double *value)
{
    if (rec_parse_num(rec_str(text), value) && *value >= 0 &&
        (allow_inf || *value - *value == 0))
        return true;
    return cli_usage(cli, "--%s must be a number >= 0%s, got '%s'", option,
                     allow_inf ? " or inf" : "", text);
}

bool
cli_count(struct cli *cli, const char *option, const char *text, uint64_t least,
          uint64_t most, uint64_t *value)
{
    if (rec_parse_uint(rec_str(text), value) && *value >= least && *value <= most)
        return true;
    if (most == UINT64_MAX)
        return cli_usage(cli, "--%s must be an integer >= %llu, got '%s'", option,
                         (unsigned long long)least, text);
    return cli_usage(cli, "--%s must be an integer from %llu to %llu, got '%s'", option,
                     (unsigned long long)least, (unsigned long long)most, text);
}

bool
cli_choice(struct cli *cli, const char *option, const char *text,
           const char *const *words, size_t *index)
{
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *index = i;
            return true;
        }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     i ? ", " : "", words[i]);
    }
    /* Operands are named in capitals, and have no dashes. */
    return cli_usage(cli, "%s%s must be one of %s, got '%s'",
                     *option >= 'A' && *option <= 'Z' ? "" : "--", option, list, text);
}

bool
cli_shape(struct cli *cli, const char *option, const char *text, uint32_t shape[3])
{
    struct rec_str rest = rec_str(text), part;
    uint64_t n;
    for (int i = 0; i < 3; i++) {
        if (!rec_str_split(&rest, 'x', &part) || !rec_parse_uint(part, &n) || n < 1 ||
            n > 1u << 20)
            goto bad;
        shape[i] = (uint32_t)n;
    }
    if (!rest.ptr && (uint64_t)shape[0] * shape[1] <= 1u << 24 &&
        (uint64_t)shape[0] * shape[1] * shape[2] <= 1u << 24)
        return true;
bad:
    return cli_usage(cli,
                     "--%s must be CxRxS, three integers >= 1 whose product is at most "
                     "%u, got '%s'",
                     option, 1u << 24, text);
}
