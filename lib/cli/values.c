/*
 * Option values: strict numbers, with units where they have one, and words from a list.
 * Options are strings for gengetopt, which would clamp wrong numbers without a message.
 */
#include "rampipe/cli.h"

#include <stdio.h>
#include <strings.h>

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

/* ---- numbers ------------------------------------------------------------- */

static bool
quantity(struct cli *cli, const char *option, const char *text, enum rec_units units,
         const char *examples, bool allow_inf, double *value)
{
    return rec_parse_amount(text, units, allow_inf, value) ||
           cli_usage(cli, "--%s must be a number >= 0%s%s, got '%s'", option, examples,
                     allow_inf ? " or inf" : "", text);
}

bool
cli_amount(struct cli *cli, const char *option, const char *text, bool allow_inf,
           double *value)
{
    return quantity(cli, option, text, REC_UNITS_NONE, "", allow_inf, value);
}

bool
cli_seconds(struct cli *cli, const char *option, const char *text, bool allow_inf,
            double *value)
{
    return quantity(cli, option, text, REC_UNITS_TIME, " (seconds, or with a unit: 10ms)",
                    allow_inf, value);
}

bool
cli_bytes(struct cli *cli, const char *option, const char *text, bool allow_inf,
          double *value)
{
    return quantity(cli, option, text, REC_UNITS_SIZE, " (bytes, or with a unit: 80GB)",
                    allow_inf, value);
}

bool
cli_rate(struct cli *cli, const char *option, const char *text, bool allow_inf,
         double *value)
{
    return quantity(cli, option, text, REC_UNITS_RATE,
                    " (bytes/s, or with a unit: 1.6TB/s, 400Gb/s)", allow_inf, value);
}

/* ---- integers and words -------------------------------------------------- */

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
cli_check_keys(struct cli *cli, const char *option, const char *keys)
{
    struct rec_str rest = rec_str(keys ? keys : ""), word;
    while (keys && rec_str_split(&rest, ',', &word))
        if (!memchr(word.ptr, '=', word.len))
            return cli_usage(cli, "--%s must be KEY=VALUE,..., got '%s'", option, keys);
    return true;
}

char *
cli_close_question(struct cli *cli, struct rec_text *text, const char *keys)
{
    if (keys)
        fputc('\t', text->out);
    for (const char *c = keys; c && *c; c++)
        fputc(*c == ',' ? '\t' : *c, text->out);
    fputc('\n', text->out);
    return rec_text_close(text, &cli->err);
}

bool
cli_open_question(struct cli *cli, const char *option, const char *line,
                  struct rec_reader **reader, struct rec *rec)
{
    struct rec_str key;
    *reader = rec_reader_open_text("the question", rec_str(line), &cli->err);
    if (!*reader || rec_next(*reader, rec, &cli->err) <= 0)
        return false;
    if (rec_unknown_key(*reader, rec, &key))
        return cli_usage(cli, "--%s: a %.*s record has no key '%.*s'", option,
                         REC_SAID(rec->field[0]), REC_SAID(key));
    return cli_open_writer(cli, true);
}

bool
cli_limit(struct cli *cli, const char *text, struct rec_limit *limit)
{
    limit->option = "--limit";
    return cli_amount(cli, "limit", text, true, &limit->most) &&
           (limit->most >= 1 ||
            cli_usage(cli, "--limit must be at least 1, got '%s'", text));
}

bool
cli_choose_row(struct cli *cli, const char *option, const char *text, const void *rows,
               size_t size, size_t *index)
{
    const char *name;
    char list[300] = "";
    for (size_t i = 0;; i++) {
        memcpy(&name, (const char *)rows + i * size, sizeof name);
        if (!name)
            break;
        if (strcasecmp(text, name) == 0) {
            *index = i;
            return true;
        }
        rec_list_name(list, sizeof list, name);
    }
    /* A name in capitals is an operand's, and gets no dashes. */
    return cli_usage(cli, "%s%s must be one of %s, got '%s'",
                     *option >= 'A' && *option <= 'Z' ? "" : "--", option, list, text);
}

bool
cli_choice(struct cli *cli, const char *option, const char *text,
           const char *const *words, size_t *index)
{
    return cli_choose_row(cli, option, text, words, sizeof *words, index);
}
